/* SPDX-License-Identifier: Apache-2.0 */
/* Some rows of a sparse matrix times a vector: compressed rows of thousands of entries, a block for each of those that
 * are wanted. */
#include "device.h"

extern "C" __global__ void csr(const unsigned long long *first, const unsigned *column, const float *value,
                               const float *x, const unsigned *wanted, float *y) {
  __shared__ float warps[32];
  unsigned row = wanted[blockIdx.x], lane = threadIdx.x % WARP_LANES;
  unsigned long long end = first[row + 1];
  float sum = 0;
  for (unsigned long long i = first[row] + threadIdx.x; i < end; i += blockDim.x) sum += value[i] * x[column[i]];
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(ALL_LANES, sum, delta);
  if (lane == 0) warps[threadIdx.x / WARP_LANES] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned i = 1; i < blockDim.x / WARP_LANES; i++) sum += warps[i];
  y[blockIdx.x] = sum;
}
