/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with the same bits on both sides: the hosts and the kernels include them, and they use fused multiply-adds
 * and exact operations only, in an order that no compiler changes. So results that need an exponential can be compared
 * bit for bit, and kernels need no mathematical library.
 *
 * In a kernel file, include device.h first. */
#ifndef WORKLOADS_COMMON_EXACT_H
#define WORKLOADS_COMMON_EXACT_H

#ifdef __cplusplus
#define EXACT static __device__ __forceinline__
#else
#include <math.h>
#define EXACT static inline
#endif

/* e^x for x in [-80, 80] (others are moved to the ends), within one unit in the last place: x = n ln 2 + r, a
 * polynomial for e^r, |r| <= 0.35, and n added to the exponent. */
EXACT float exact_exp(float x) {
  x = x < -80.0f ? -80.0f : x > 80.0f ? 80.0f : x;
  float n = fmaf(x, 1.44269504f, 12582912.0f) - 12582912.0f; /* 1.5 x 2^23: rounds to a whole number */
  float r = fmaf(n, -0.693359375f, x);                       /* exact: ln 2's first nine bits */
  r = fmaf(n, 2.12194440e-4f, r);
  float sum = fmaf(r, 1.0f / 5040, 1.0f / 720);
  sum = fmaf(r, sum, 1.0f / 120);
  sum = fmaf(r, sum, 1.0f / 24);
  sum = fmaf(r, sum, 1.0f / 6);
  sum = fmaf(r, sum, 0.5f);
  sum = fmaf(r, sum, 1.0f);
  union {
    float number;
    int bits;
  } scaled;
  scaled.number = fmaf(r, sum, 1.0f);
  scaled.bits += (int)n * (1 << 23);
  return scaled.number;
}

#undef EXACT

#endif
