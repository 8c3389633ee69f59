/* SPDX-License-Identifier: Apache-2.0 */
/* sum[i] = a[i] + b[i], one element per thread: the smallest streaming kernel. Two loads and a store per element, so
 * its time is the memory's, or under demand paging the link's. */
#include "device.h"

extern "C" __global__ void vectoradd(const float *a, const float *b, float *sum, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}
