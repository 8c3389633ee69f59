/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes of what was copied are not what they should be. */
#include "device.h"

extern "C" __global__ void count_wrong(const unsigned *words, unsigned long long count, unsigned expected, unsigned *wrong) {
  unsigned long long step = (unsigned long long)blockDim.x * gridDim.x;
  for (unsigned long long i = threadIdx.x + (unsigned long long)blockIdx.x * blockDim.x; i < count; i += step)
    if (words[i] != expected) atomicAdd(wrong, 1u);
}
