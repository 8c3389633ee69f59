/* SPDX-License-Identifier: Apache-2.0 */
/* One step towards the solution of Laplace's equation in a box: every cell becomes the mean of its six neighbours, the
 * outermost keep theirs. A block of 32 x 4 walks up through the planes and keeps three of them, each with a border of
 * one cell, in shared memory. */
#include "device.h"

#define BLOCK_X 32
#define BLOCK_Y 4
#define TILE_X (BLOCK_X + 2)
#define TILE_Y (BLOCK_Y + 2)

struct laplace_box { /* same as in laplace.c */
  int width, height, depth;
  int pitch, plane; /* from a row, a plane to the next, in cells: of the grid that the box is a part of */
};

/* The tile's part of plane z, if there is such a plane. */
static __device__ __forceinline__ void load_plane(float (*tile)[TILE_X], const float *from, laplace_box box, int z) {
  if (z >= box.depth) return;
  for (int i = (int)(threadIdx.y * BLOCK_X + threadIdx.x); i < TILE_X * TILE_Y; i += BLOCK_X * BLOCK_Y) {
    int x = (int)blockIdx.x * BLOCK_X + i % TILE_X - 1, y = (int)blockIdx.y * BLOCK_Y + i / TILE_X - 1;
    if (x >= 0 && x < box.width && y >= 0 && y < box.height)
      tile[i / TILE_X][i % TILE_X] = from[(long long)z * box.plane + y * box.pitch + x];
  }
}

extern "C" __global__ void laplace_step(const float *from, float *to, laplace_box box) {
  __shared__ float planes[3][TILE_Y][TILE_X];
  int tx = (int)threadIdx.x + 1, ty = (int)threadIdx.y + 1;
  int x = (int)blockIdx.x * BLOCK_X + tx - 1, y = (int)blockIdx.y * BLOCK_Y + ty - 1;
  bool inside = x < box.width && y < box.height;
  bool edge = x == 0 || x >= box.width - 1 || y == 0 || y >= box.height - 1;
  load_plane(planes[0], from, box, 0);
  for (int z = 0, here = 0; z < box.depth; z++) {
    int above = here == 2 ? 0 : here + 1, below = here == 0 ? 2 : here - 1;
    load_plane(planes[above], from, box, z + 1);
    __syncthreads();
    if (inside) {
      float value = planes[here][ty][tx];
      if (!edge && z > 0 && z < box.depth - 1) {
        value = planes[here][ty][tx - 1] + planes[here][ty][tx + 1] + planes[here][ty - 1][tx];
        value = value + planes[here][ty + 1][tx] + planes[below][ty][tx] + planes[above][ty][tx];
        value = __fmul_rn(value, 1.0f / 6);
      }
      to[(long long)z * box.plane + y * box.pitch + x] = value;
    }
    __syncthreads();
    here = above;
  }
}
