/* SPDX-License-Identifier: Apache-2.0 */
/* y = A x for a sparse matrix in compressed rows: one warp per row. The lanes stride over the row's entries, which lie
 * side by side, gather x from anywhere, and add up by shuffles (shfl.bfly). */
#include "device.h"

extern "C" __global__ void spmv(const unsigned *first, const unsigned *column, const float *value, const float *x,
                                float *y, unsigned rows) {
  unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP_LANES, lane = threadIdx.x % WARP_LANES;
  if (row >= rows) return;
  float sum = 0;
  for (unsigned i = first[row] + lane; i < first[row + 1]; i += WARP_LANES) sum = fmaf(value[i], x[column[i]], sum);
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, bits);
  if (lane == 0) y[row] = sum;
}
