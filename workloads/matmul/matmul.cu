/* SPDX-License-Identifier: Apache-2.0 */
/* C = A B for square matrices in row order, by tiles in shared memory: a block of 16 x 16 threads makes a 16 x 16 tile
 * of C, walking over the tiles of a row of A and a column of B. Every element is loaded once per tile, not once per
 * use. Ragged edges are filled with zeros. */
#include "device.h"

#define TILE 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, unsigned size) {
  __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
  unsigned x = threadIdx.x, y = threadIdx.y;
  unsigned column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (unsigned start = 0; start < size; start += TILE) {
    tile_a[y][x] = row < size && start + x < size ? a[row * size + start + x] : 0;
    tile_b[y][x] = start + y < size && column < size ? b[(start + y) * size + column] : 0;
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < TILE; k++) sum = fmaf(tile_a[y][k], tile_b[k][x], sum);
    __syncthreads();
  }
  if (row < size && column < size) c[row * size + column] = sum;
}
