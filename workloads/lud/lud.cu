/* SPDX-License-Identifier: Apache-2.0 */
/* LU decomposition in place, without pivoting, by tiles of 16 x 16: L below the diagonal (its ones are not kept), U on it and above. A step decomposes
 * one tile of the diagonal, then the tiles right of it and below it, then takes their products from all the others: three launches, over ever fewer
 * tiles. What is taken from an element is taken in the order of columns, one rounding each, so that tiles change no bit of it. */
#include "device.h"

#define TILE 16

/* One block of TILE threads: thread t has row t of the tile. */
extern "C" __global__ void lud_diagonal(float *matrix, unsigned size, unsigned first) {
  __shared__ float tile[TILE][TILE];
  unsigned t = threadIdx.x;
  float *corner = matrix + first * size + first;
  for (unsigned y = 0; y < TILE; y++) tile[y][t] = corner[y * size + t];
  __syncthreads();
  for (unsigned k = 0; k < TILE - 1; k++) {
    if (t > k) {
      float share = tile[t][k] / tile[k][k];
      tile[t][k] = share;
      for (unsigned x = k + 1; x < TILE; x++) tile[t][x] = fmaf(-share, tile[k][x], tile[t][x]);
    }
    __syncthreads();
  }
  for (unsigned y = 0; y < TILE; y++) corner[y * size + t] = tile[y][t];
}

/* Block b, 2 x TILE threads: the first half has the columns of the b-th tile right of the diagonal's, the second the rows of the b-th below it. */
extern "C" __global__ void lud_perimeter(float *matrix, unsigned size, unsigned first) {
  __shared__ float diagonal[TILE][TILE], right[TILE][TILE], below[TILE][TILE + 1];
  unsigned t = threadIdx.x % TILE, away = (blockIdx.x + 1) * TILE;
  bool is_right = threadIdx.x < TILE;
  float *corner = matrix + first * size + first, *row = corner + away, *column = corner + away * size;
  for (unsigned y = threadIdx.x / TILE; y < TILE; y += 2) diagonal[y][t] = corner[y * size + t];
  for (unsigned y = 0; y < TILE; y++)
    if (is_right)
      right[y][t] = row[y * size + t];
    else
      below[y][t] = column[y * size + t];
  __syncthreads();
  if (is_right) {
    for (unsigned k = 0; k < TILE - 1; k++)
      for (unsigned y = k + 1; y < TILE; y++) right[y][t] = fmaf(-diagonal[y][k], right[k][t], right[y][t]);
  } else {
    for (unsigned k = 0; k < TILE; k++) {
      float share = below[t][k] / diagonal[k][k];
      below[t][k] = share;
      for (unsigned x = k + 1; x < TILE; x++) below[t][x] = fmaf(-share, diagonal[k][x], below[t][x]);
    }
  }
  __syncthreads();
  for (unsigned y = 0; y < TILE; y++)
    if (is_right)
      row[y * size + t] = right[y][t];
    else
      column[y * size + t] = below[y][t];
}

/* A block of TILE x TILE threads per tile that is left. */
extern "C" __global__ void lud_internal(float *matrix, unsigned size, unsigned first) {
  __shared__ float left[TILE][TILE], above[TILE][TILE];
  unsigned x = threadIdx.x, y = threadIdx.y;
  float *corner = matrix + first * size + first, *tile = corner + (blockIdx.y + 1) * TILE * size + (blockIdx.x + 1) * TILE;
  left[y][x] = corner[((blockIdx.y + 1) * TILE + y) * size + x];
  above[y][x] = corner[y * size + (blockIdx.x + 1) * TILE + x];
  __syncthreads();
  float value = tile[y * size + x];
#pragma unroll
  for (unsigned k = 0; k < TILE; k++) value = fmaf(-left[y][k], above[k][x], value);
  tile[y * size + x] = value;
}
