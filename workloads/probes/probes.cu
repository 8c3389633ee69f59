/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of a hash table that fills the memory: each lane reads words at places that nothing foresees, so that every
 * access of a warp needs some 32 translations. What the probes will read is written by a launch before. */
#include "device.h"

/* Murmur3's finalizer; same as in probes.c. */
static __device__ __forceinline__ unsigned long long mixed(unsigned long long x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}

/* st.relaxed: two probes of one place write the same, but would race by plain stores. */
static __device__ __forceinline__ void store_whole(unsigned long long *at, unsigned long long value) {
  asm volatile("st.relaxed.gpu.b64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
}

extern "C" __global__ void insert(const unsigned *keys, unsigned long long *table, unsigned long long words, unsigned probes) {
  unsigned probe = blockIdx.x * blockDim.x + threadIdx.x;
  if (probe >= probes) return;
  unsigned long long place = mixed(keys[probe]) % words;
  store_whole(&table[place], mixed(~place));
}

/* sums[thread] of `each` probes. */
extern "C" __global__ void probe(const unsigned *keys, const unsigned long long *table, unsigned long long words,
                                 unsigned threads, unsigned each, unsigned long long *sums) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= threads) return;
  unsigned long long sum = 0;
  for (unsigned i = 0; i < each; i++) sum += table[mixed(keys[i * threads + thread]) % words];
  sums[thread] = sum;
}
