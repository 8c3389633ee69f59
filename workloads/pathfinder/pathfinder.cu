/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest way down a wall of numbers, row by row: a step goes straight down or one aside. A block does several
 * rows in one launch: it starts with a wider part of the row than it will write, and at every row one cell less on
 * either side is right (ghost zones), so blocks need nothing of each other. */
#include "device.h"

#define THREADS 256
#define UNREACHED 0x3fffffff

static __device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }

/* wall is at the first of the `rows` rows; from has the costs of the row above it. */
extern "C" __global__ void pathfinder_rows(const int *wall, const int *from, int *to, int columns, int rows) {
  __shared__ int above[THREADS + 2];
  int t = (int)threadIdx.x, written = THREADS - 2 * rows, x = (int)blockIdx.x * written - rows + t;
  bool inside = x >= 0 && x < columns;
  int cost = inside ? from[x] : UNREACHED;
  if (t < 2) above[t * (THREADS + 1)] = UNREACHED;
  for (int row = 0; row < rows; row++) {
    above[t + 1] = cost;
    __syncthreads();
    if (inside && t > row && t < THREADS - 1 - row)
      cost = smaller(above[t], smaller(above[t + 1], above[t + 2])) + wall[row * columns + x];
    __syncthreads();
  }
  if (inside && t >= rows && t < THREADS - rows) to[x] = cost;
}
