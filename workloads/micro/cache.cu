/* SPDX-License-Identifier: Apache-2.0 */
/* One block per SM reads the same words again and again: two streams of `count` floats each. */
#include "device.h"

extern "C" __global__ void fill(float *words, unsigned long long count) {
  for (unsigned long long i = threadIdx.x + blockIdx.x * blockDim.x; i < count; i += blockDim.x * gridDim.x)
    words[i] = 1.1f;
}

/* Of FACTOR x 512 floats per stream, read as straight code: a short loop around it where there is little of it. */
#define SUM(FACTOR, ROUNDS)                                                                                            \
  extern "C" __global__ void sum_##FACTOR(float *out, const float *__restrict__ from, int rounds, int zero) {          \
    const int count = FACTOR * 512;                                                                                    \
    float sum = 0;                                                                                                     \
    from += threadIdx.x;                                                                                               \
    _Pragma(ROUNDS) for (int round = 0; round < rounds; round++) {                                                     \
      from += zero;                                                                                                    \
      const float *second = from + count;                                                                              \
      _Pragma("unroll") for (int i = 0; i < count; i += 512) sum += from[i] * second[i];                               \
      sum *= 1.3f;                                                                                                     \
    }                                                                                                                  \
    if (sum == 1233.0f) out[threadIdx.x] += sum;                                                                       \
  }

SUM(2, "unroll 16")
SUM(4, "unroll 8")
SUM(8, "unroll 4")
SUM(16, "unroll 2")
SUM(24, "unroll 1")
SUM(32, "unroll 1")

/* Of any multiple of 32 x 512. */
extern "C" __global__ void sum_any(float *out, const float *__restrict__ from, int rounds, int zero, int count) {
  float sum = 0;
  from += threadIdx.x;
#pragma unroll 1
  for (int round = 0; round < rounds; round++) {
    from += zero;
    const float *second = from + count;
#pragma unroll 1
    for (int i = 0; i < count; i += 32 * 512) {
#pragma unroll
      for (int k = 0; k < 32; k++) sum += from[i + k * 512] * second[i + k * 512];
    }
    sum *= 1.3f;
  }
  if (sum == 1233.0f) out[threadIdx.x] += sum;
}
