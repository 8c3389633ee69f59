/* SPDX-License-Identifier: Apache-2.0 */
/* One block of 1024 threads loads the same words again and again: 8 loads per thread and round, 4 elements apart, each thread from
 * `stride` elements after its neighbour's place, or in rows of `pitch` elements. */
#include "device.h"

#define EIGHT_LOADS                                                                                                    \
  at += zero;                                                                                                          \
  sum += at[0] * at[4];                                                                                                \
  sum += at[8] * at[12];                                                                                               \
  sum += at[20] * at[16];                                                                                              \
  sum += at[24] * at[28];

#define STRIDES(type)                                                                                                  \
  extern "C" __global__ void stride_##type(type *from, type *out, int rounds, int zero, int stride) {                  \
    type sum = 0, *at = from + (int)(threadIdx.x % 64) * stride;                                                       \
    _Pragma("unroll 1") for (int n = 0; n < rounds; n++) { EIGHT_LOADS }                                               \
    if (sum == (type)123123.23) out[threadIdx.x] = sum;                                                                \
  }                                                                                                                    \
  extern "C" __global__ void block_##type(type *from, type *out, int rounds, int zero, int pitch) {                    \
    int x = (int)(threadIdx.x % 64), y = (int)(threadIdx.y % 32);                                                      \
    type sum = 0, *at = from + x + y * pitch + pitch;                                                                  \
    _Pragma("unroll 1") for (int n = 0; n < rounds; n++) { EIGHT_LOADS }                                               \
    if (sum == (type)123123.23) out[x] = sum;                                                                          \
  }

STRIDES(float)
STRIDES(double)
