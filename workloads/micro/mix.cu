/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are read and streams that are written at once: element i of each, in steps of the whole grid. Streams lie `pitch`
 * elements apart; those written may be those read. All of an element's loads stand before its stores. */
#include "device.h"

struct __attribute__((aligned(16))) quad {
  float x, y, z, w;
};

#define INLINE static __device__ __forceinline__
INLINE float element_of(float, unsigned long long i) { return (float)(int)i; }
INLINE double element_of(double, unsigned long long i) { return (double)(int)i; }
INLINE quad element_of(quad, unsigned long long i) {
  float value = (float)(int)i;
  return quad{value, value, value, value};
}
INLINE float add(float a, float b) { return a + b; }
INLINE double add(double a, double b) { return a + b; }
INLINE quad add(quad a, quad b) { return quad{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
INLINE bool is_never(float a) { return a == 1.23e30f; }
INLINE bool is_never(double a) { return a == 1.23e30; }
INLINE bool is_never(quad a) { return a.x + a.y + a.z + a.w == 1.23e30f; }

#define MIX(READS, WRITES, BYTES, type)                                                                                \
  extern "C" __global__ void mix_##READS##_##WRITES##_##BYTES(const type *from, type *to, unsigned long long pitch,    \
                                                              unsigned long long count) {                              \
    unsigned long long step = (unsigned long long)blockDim.x * gridDim.x;                                              \
    _Pragma("unroll 1") for (unsigned long long i = threadIdx.x + (unsigned long long)blockIdx.x * blockDim.x;         \
                             i < count; i += step) {                                                                   \
      type sum = element_of(type(), i);                                                                                \
      _Pragma("unroll") for (int k = 0; k < READS; k++) sum = add(sum, from[k * pitch + i]);                           \
      _Pragma("unroll") for (int k = 0; k < WRITES; k++) to[k * pitch + i] = sum;                                      \
      if (!WRITES && is_never(sum)) to[i] = sum;                                                                       \
    }                                                                                                                  \
  }
#define MIXES(BYTES, type)                                                                                             \
  MIX(1, 0, BYTES, type)                                                                                               \
  MIX(0, 1, BYTES, type)                                                                                               \
  MIX(1, 1, BYTES, type)                                                                                               \
  MIX(2, 1, BYTES, type)                                                                                               \
  MIX(3, 1, BYTES, type)                                                                                               \
  MIX(1, 2, BYTES, type)                                                                                               \
  MIX(1, 3, BYTES, type)                                                                                               \
  MIX(2, 2, BYTES, type)                                                                                               \
  MIX(4, 4, BYTES, type)
MIXES(4, float)
MIXES(8, double)
MIXES(16, quad)

/* Floats of [1, 2) whose fractions are a hash of their place. */
extern "C" __global__ void fill(unsigned *words, unsigned long long count) {
  unsigned long long step = (unsigned long long)blockDim.x * gridDim.x;
  for (unsigned long long i = threadIdx.x + (unsigned long long)blockIdx.x * blockDim.x; i < count; i += step) {
    unsigned hash = (unsigned)i * 2654435761u;
    hash ^= hash >> 15;
    words[i] = 0x3f800000u | (hash * 2246822519u >> 9);
  }
}
