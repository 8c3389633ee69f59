/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian elimination, column by column, two launches each: gaussian_shares divides what stands below the pivot by it, gaussian_rows takes that many
 * times the pivot's row from the rows below. The shares have a matrix of their own, as large as the first. Many small launches, ever less to do. */
#include "device.h"

#define TILE 16

extern "C" __global__ void gaussian_shares(float *shares, const float *matrix, unsigned size, unsigned pivot) {
  unsigned row = pivot + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (row < size) shares[row * size + pivot] = matrix[row * size + pivot] / matrix[pivot * size + pivot];
}

/* Columns from the pivot's on; the thread of that column has the right side as well. */
extern "C" __global__ void gaussian_rows(const float *shares, float *matrix, float *right, unsigned size, unsigned pivot) {
  unsigned column = pivot + blockIdx.x * TILE + threadIdx.x, row = pivot + 1 + blockIdx.y * TILE + threadIdx.y;
  if (row >= size || column >= size) return;
  float share = shares[row * size + pivot];
  matrix[row * size + column] = fmaf(-share, matrix[pivot * size + column], matrix[row * size + column]);
  if (column == pivot) right[row] = fmaf(-share, right[pivot], right[row]);
}
