/* SPDX-License-Identifier: Apache-2.0 */
/* C = alpha A B + beta C by tiles in registers: a thread has one row of A and 16 columns of C, a block 128 rows. A and
 * C are stored by columns, so a warp's loads are side by side; B's tile of 8 x 16 is in shared memory and every lane
 * reads the same of it. Where A and B end, zeros are added. */
#include "device.h"

#define ROWS 128
#define COLUMNS 16
#define DEPTH 8

extern "C" __global__ void __launch_bounds__(ROWS) sgemm(const float *a, const float *b, float *c, unsigned rows,
                                                         unsigned columns, unsigned depth, float alpha, float beta) {
  __shared__ float tile[DEPTH][COLUMNS];
  unsigned t = threadIdx.x, row = blockIdx.x * ROWS + t, left = blockIdx.y * COLUMNS;
  unsigned tile_row = t / COLUMNS, tile_column = t % COLUMNS;
  float sum[COLUMNS] = {};
  for (unsigned start = 0; start < depth; start += DEPTH) {
    bool inside = start + tile_row < depth && left + tile_column < columns;
    tile[tile_row][tile_column] = inside ? b[(start + tile_row) * columns + left + tile_column] : 0;
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k++) {
      float value = row < rows && start + k < depth ? a[(start + k) * rows + row] : 0;
#pragma unroll
      for (unsigned i = 0; i < COLUMNS; i++) sum[i] = fmaf(value, tile[k][i], sum[i]);
    }
    __syncthreads();
  }
#pragma unroll
  for (unsigned i = 0; i < COLUMNS; i++)
    if (row < rows && left + i < columns) {
      unsigned at = (left + i) * rows + row;
      c[at] = fmaf(alpha, sum[i], __fmul_rn(beta, c[at]));
    }
}
