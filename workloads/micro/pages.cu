/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that loads addresses, each from where the one before points to, from the L2. */
#include "device.h"

/* The line at places[i] gets the address of the one at places[i + 1], the last one's that of the first. */
extern "C" __global__ void link_places(char *memory, const unsigned long long *places, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  *(char **)(memory + places[i]) = memory + places[i + 1 < count ? i + 1 : 0];
}

extern "C" __global__ void chase(unsigned long long start, unsigned long long *out, long long count) {
  unsigned long long at = start;
#pragma unroll 1
  for (long long n = 0; n < count; n += 32) {
#pragma unroll
    for (int u = 0; u < 32; u++) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at) : : "memory");
  }
  if (threadIdx.x > 12313) *out = at;
}
