/* SPDX-License-Identifier: Apache-2.0 */
/* The approximate functions of one lane: ex2, lg2, sin, cos, tanh, rsqrt, the fast divisions.
 *
 * Everything is computed in double by additions, multiplications, divisions and square roots (no fma), so that all
 * instruction sets give the same bits; most results are the correctly rounded f32 but for rare cases, well inside the
 * bounds that the PTX ISA states for each function (given below). */
#ifndef FF_EXEC_OPS_APPROX_H
#define FF_EXEC_OPS_APPROX_H

#include "exec/instructions/ops_math.h"

#define OPS_SHIFTER 0x1.8p52 /* x + shifter - shifter: the integer nearest to x, for |x| < 2^51 */

/* 2^x; 2 ulp. |error| < 2^-34 before the last rounding. */
OPS_INLINE float ops_ex2(float a) {
  double x = a < -200.0f ? -200.0 : a > 200.0f ? 200.0 : (double)a; /* NaN stays */
  double shifted = x + OPS_SHIFTER, n = shifted - OPS_SHIFTER, f = x - n;
  double p = 0x1.b5253d395e7c4p-24; /* ln(2)^k / k!, k = 9 .. 0 */
  p = p * f + 0x1.62c0223a5c824p-20;
  p = p * f + 0x1.ffcbfc588b0c7p-17;
  p = p * f + 0x1.430912f86c787p-13;
  p = p * f + 0x1.5d87fe78a6731p-10;
  p = p * f + 0x1.3b2ab6fba4e77p-7;
  p = p * f + 0x1.c6b08d704a0c0p-5;
  p = p * f + 0x1.ebfbdff82c58fp-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  p = p * f + 1.0;
  double scale = ops_f64_of((ops_u64_of(shifted) << 52) + UINT64_C(0x3ff0000000000000)); /* 2^n */
  return (float)(p * scale);
}

/* log2 x; absolute 2^-22 in (0.5, 2), relative 2^-22 elsewhere. x = 2^e m, m in [sqrt(1/2), sqrt 2);
 * log2 m = 2 / ln 2 * atanh((m - 1) / (m + 1)). */
OPS_INLINE float ops_lg2(float a) {
  uint64_t bits = ops_u64_of((double)a);
  uint64_t above = bits - UINT64_C(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
  double e = (double)((int32_t)(uint32_t)(above >> 32) >> 20);
  double m = ops_f64_of(bits - (above & UINT64_C(0xfff0000000000000)));
  double t = (m - 1.0) / (m + 1.0), s = t * t;
  double p = 0x1.c68f568d31760p-3; /* 2 / (ln 2 (2 k + 1)), k = 6 .. 0 */
  p = p * s + 0x1.0c9a84994022dp-2;
  p = p * s + 0x1.484b13d7c02a9p-2;
  p = p * s + 0x1.a61762a7aded9p-2;
  p = p * s + 0x1.2776c50ef9bfep-1;
  p = p * s + 0x1.ec709dc3a03fdp-1;
  p = p * s + 0x1.71547652b82fep+1;
  float r = (float)(e + p * t);
  return a > 0.0f ? (a < INFINITY ? r : a) : a == 0.0f ? -INFINITY : OPS_NAN32;
}

/* sin and cos; absolute 2^-20.5 in [-2 pi, 2 pi], 2^-14.7 in [-100 pi, 100 pi]. pi/2 in three parts makes the reduction
 * exact to 2^-50 for |x| < 2^26; beyond, where neighbouring f32 numbers are further apart than a period, the result is
 * only kept within [-1, 1]. `quarters` is 0 for sin and 1 for cos. */
OPS_INLINE float ops_sine(float a, int64_t quarters) {
  double x = (double)a;
  x = __builtin_fabs(x) < 0x1p30 ? x : x * 0x1p-104;
  double shifted = x * 0x1.45f306dc9c883p-1 + OPS_SHIFTER, k = shifted - OPS_SHIFTER;
  double r = ((x - k * 0x1.921fb5p+0) - k * 0x1.110b46p-26) - k * 0x1.1a62633145c07p-54;
  r = r > 0.8 ? 0.8 : r < -0.8 ? -0.8 : r;
  uint64_t quadrant = ops_u64_of(shifted) + (uint64_t)quarters;
  double s = r * r;
  double sine = -0x1.ae64567f544e4p-26; /* Taylor */
  sine = sine * s + 0x1.71de3a556c734p-19;
  sine = sine * s - 0x1.a01a01a01a01ap-13;
  sine = sine * s + 0x1.1111111111111p-7;
  sine = sine * s - 0x1.5555555555555p-3;
  sine = sine * s * r + r;
  double cosine = -0x1.27e4fb7789f5cp-22;
  cosine = cosine * s + 0x1.a01a01a01a01ap-16;
  cosine = cosine * s - 0x1.6c16c16c16c17p-10;
  cosine = cosine * s + 0x1.5555555555555p-5;
  cosine = cosine * s - 0.5;
  cosine = cosine * s + 1.0;
  double m = quadrant & 1 ? cosine : sine;
  float result = (float)ops_f64_of(ops_u64_of(m) ^ (quadrant & 2) << 62);
  result = a - a == 0.0f ? result : OPS_NAN32;    /* infinity, NaN */
  return quarters == 0 && a == 0.0f ? a : result; /* sin -0 is -0 */
}
OPS_INLINE float ops_sin(float a) { return ops_sine(a, 0); }
OPS_INLINE float ops_cos(float a) { return ops_sine(a, 1); }

/* tanh; relative 2^-11. Near 0 the odd Taylor polynomial; elsewhere 1 - 2 / (e^2x + 1). */
OPS_INLINE float ops_tanh(float a) {
  double m = __builtin_fabs((double)a), s = m * m;
  double small = m - m * s * (0x1.5555555555555p-2 - s * 0x1.1111111111111p-3); /* x - x^3/3 + 2 x^5/15 */
  double x = (m < 20.0 ? m : 20.0) * 0x1.71547652b82fep+1;                      /* 2 / ln 2 */
  double shifted = x + OPS_SHIFTER, n = shifted - OPS_SHIFTER, f = x - n;
  double p = 0x1.430912f86c787p-13;
  p = p * f + 0x1.5d87fe78a6731p-10;
  p = p * f + 0x1.3b2ab6fba4e77p-7;
  p = p * f + 0x1.c6b08d704a0c0p-5;
  p = p * f + 0x1.ebfbdff82c58fp-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  p = p * f + 1.0;
  double e = p * ops_f64_of((ops_u64_of(shifted) << 52) + UINT64_C(0x3ff0000000000000));
  double large = 1.0 - 2.0 / (e + 1.0);
  float r = (float)(m < 0x1p-5 ? small : large);
  return a == a ? __builtin_copysignf(r, a) : OPS_NAN32;
}

/* Relative 2^-22.9: two roundings of at most 2^-24 each. -0 gives -infinity. */
OPS_INLINE float ops_rsqrt(float a) { return 1.0f / __builtin_sqrtf(a); }

/* div.approx: 2 ulp for |b| in [2^-126, 2^126]; above, a * 0 (1/b would be subnormal): NaN for an infinite a. */
OPS_INLINE float ops_div_approx(float a, float b) {
  float m = __builtin_fabsf(b), zero = a * __builtin_copysignf(0.0f, b);
  return m > 0x1p126f && m < INFINITY ? zero : a / b;
}

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 work on the upper 32 bits: sign, exponent, 20 bits of fraction. */
#define OPS_UPPER UINT64_C(0xffffffff00000000)
OPS_INLINE uint64_t ops_ftz_upper(uint64_t bits) {
  uint64_t magnitude = bits & UINT64_C(0x7fffffff00000000);
  return magnitude < UINT64_C(0x0010000000000000) ? bits & UINT64_C(0x8000000000000000) : bits & OPS_UPPER;
}
OPS_INLINE uint64_t ops_upper_result(double r) {
  uint64_t bits = (ops_u64_of(r) + UINT64_C(0x80000000)) & OPS_UPPER; /* to nearest; infinity and zero are exact */
  return r == r ? ops_ftz_upper(bits) : UINT64_C(0x7fffffff00000000);
}
OPS_INLINE uint64_t ops_rcp_upper(uint64_t bits) { return ops_upper_result(1.0 / ops_f64_of(ops_ftz_upper(bits))); }
OPS_INLINE uint64_t ops_rsqrt_upper(uint64_t bits) {
  return ops_upper_result(1.0 / __builtin_sqrt(ops_f64_of(ops_ftz_upper(bits))));
}

#endif
