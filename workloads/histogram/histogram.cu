/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of bytes. A block counts its share in shared memory (atom.shared.add, with many lanes on one bin), then
 * adds its 256 counts to the result in global memory. */
#include "device.h"

#define BINS 256

extern "C" __global__ void histogram(const unsigned *words, unsigned word_count, unsigned *bins) {
  __shared__ unsigned local[BINS];
  for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < word_count; i += gridDim.x * blockDim.x) {
    unsigned word = words[i];
    for (unsigned shift = 0; shift < 32; shift += 8) atomicAdd(&local[word >> shift & 255], 1u);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < BINS; i += blockDim.x)
    if (local[i]) atomicAdd(&bins[i], local[i]);
}
