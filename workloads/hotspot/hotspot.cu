/* SPDX-License-Identifier: Apache-2.0 */
/* One time step of heat on a chip: each cell moves towards its four neighbours and the air around, and is heated by its
 * power. A block loads its tile with a border of one cell into shared memory; cells outside the chip repeat its edge.
 */
#include "device.h"

#define TILE 16

struct hotspot_constants { /* same as in hotspot.c */
  float step, across, down, up_to_air, air;
};

static __device__ __forceinline__ int clamp_to(int value, int most) {
  return value < 0 ? 0 : value > most ? most : value;
}

extern "C" __global__ void hotspot_step(const float *power, const float *from, float *to, int width, int height,
                                        hotspot_constants constants) {
  __shared__ float tile[TILE + 2][TILE + 2];
  int left = (int)blockIdx.x * TILE - 1, top = (int)blockIdx.y * TILE - 1;
  for (int i = (int)(threadIdx.y * TILE + threadIdx.x); i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
    int y = i / (TILE + 2), x = i % (TILE + 2);
    tile[y][x] = from[clamp_to(top + y, height - 1) * width + clamp_to(left + x, width - 1)];
  }
  __syncthreads();

  int x = (int)threadIdx.x + 1, y = (int)threadIdx.y + 1, column = left + x, row = top + y;
  if (column >= width || row >= height) return;
  float here = tile[y][x];
  float flow = power[row * width + column];
  flow = fmaf(tile[y - 1][x] + tile[y + 1][x] - __fmul_rn(2.0f, here), constants.down, flow);
  flow = fmaf(tile[y][x - 1] + tile[y][x + 1] - __fmul_rn(2.0f, here), constants.across, flow);
  flow = fmaf(constants.air - here, constants.up_to_air, flow);
  to[row * width + column] = fmaf(constants.step, flow, here);
}
