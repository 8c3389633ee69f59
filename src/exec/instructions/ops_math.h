/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point arithmetic of one lane, as PTX defines it, in operations that give the same bits on every instruction
 * set: IEEE add, subtract, multiply, divide, square root, and an exact fma.
 *
 * NaN. f32 results are the canonical 0x7fffffff, f16 and bf16 ones 0x7fff. f64 keeps payloads (PTX ISA, "Floating Point
 * Instructions"): the first NaN among the operands in textual order, made quiet; a new NaN is 0xfff8000000000000.
 * .ftz. Inputs, then the IEEE result, are flushed to a zero of the same sign. .sat: NaN gives +0. */
#ifndef FF_EXEC_OPS_MATH_H
#define FF_EXEC_OPS_MATH_H

#include <float.h>
#include <math.h>

#include "exec/instructions/ops_lane.h"

#define OPS_NAN32 __builtin_nanf("0x3fffff") /* 0x7fffffff */

OPS_INLINE uint32_t ops_u32_of(float x) {
  union {
    float f;
    uint32_t u;
  } v = {.f = x};
  return v.u;
}
OPS_INLINE float ops_f32_of(uint32_t x) {
  union {
    uint32_t u;
    float f;
  } v = {.u = x};
  return v.f;
}
OPS_INLINE uint64_t ops_u64_of(double x) {
  union {
    double f;
    uint64_t u;
  } v = {.f = x};
  return v.u;
}
OPS_INLINE double ops_f64_of(uint64_t x) {
  union {
    uint64_t u;
    double f;
  } v = {.u = x};
  return v.f;
}

/* --- NaN, flush, saturate. --- */

OPS_INLINE float ops_canon32(float x) { return x == x ? x : OPS_NAN32; }
OPS_INLINE float ops_ftz32(float x) {
  return ops_f32_of(ops_u32_of(x) & ((ops_u32_of(x) & 0x7f800000u) ? 0xffffffffu : 0x80000000u));
}
OPS_INLINE float ops_sat32(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
OPS_INLINE double ops_sat64(double x) { return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0; }

/* One select after the other, everything computed: such chains vectorise. */
OPS_INLINE double ops_quiet_or(double x, double other) {
  double quiet = ops_f64_of(ops_u64_of(x) | UINT64_C(0x8000000000000));
  return x != x ? quiet : other;
}
OPS_INLINE double ops_nan1(double r, double a) {
  double nan = ops_quiet_or(a, ops_f64_of(UINT64_C(0xfff8000000000000)));
  return r == r ? r : nan;
}
OPS_INLINE double ops_nan2(double r, double a, double b) {
  double nan = ops_quiet_or(b, ops_f64_of(UINT64_C(0xfff8000000000000)));
  nan = ops_quiet_or(a, nan);
  return r == r ? r : nan;
}
OPS_INLINE double ops_nan3(double r, double a, double b, double c) {
  double nan = ops_quiet_or(c, ops_f64_of(UINT64_C(0xfff8000000000000)));
  nan = ops_quiet_or(b, nan);
  nan = ops_quiet_or(a, nan);
  return r == r ? r : nan;
}

/* What stands between an f32 result and its cell: none, .ftz, .sat, both. */
#define OPS_IN_plain(x) (x)
#define OPS_IN_ftz(x) ops_ftz32(x)
#define OPS_IN_sat(x) (x)
#define OPS_IN_ftzsat(x) ops_ftz32(x)
#define OPS_OUT_plain(x) ops_canon32(x)
#define OPS_OUT_ftz(x) ops_ftz32(ops_canon32(x))
#define OPS_OUT_sat(x) ops_sat32(x)
#define OPS_OUT_ftzsat(x) ops_sat32(ops_ftz32(x))

/* --- Rounding modes. The processor's mode is switched around a loop whose operands come from memory after the switch
 * and whose results are stored before the switch back: the asm statements order both. --- */

#define OPS_RN 0u
#define OPS_RM 1u /* towards minus infinity: the field's values in MXCSR */
#define OPS_RP 2u
#define OPS_RZ 3u

OPS_INLINE uint32_t ops_round_enter(uint32_t mode) {
  uint32_t saved, wanted;
  __asm__ volatile("stmxcsr %0" : "=m"(saved) : : "memory");
  wanted = (saved & ~0x6000u) | mode << 13;
  __asm__ volatile("ldmxcsr %0" : : "m"(wanted) : "memory");
  return saved;
}
OPS_INLINE void ops_round_leave(uint32_t saved) { __asm__ volatile("ldmxcsr %0" : : "m"(saved) : "memory"); }

#define OPS_ROUND_ON uint32_t saved = ops_round_enter(in->aux >> OPS_AUX_SHIFT)
#define OPS_ROUND_OFF ops_round_leave(saved)

/* --- Fused multiply-add. --- */

/* a * b + c to 53 bits with the last bit set if anything was lost (rounding to odd): rounding that to 24 bits or fewer
 * is then a single rounding, in any mode (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums"). */
OPS_INLINE double ops_odd_sum(double p, double c) {
  double s = p + c;
  double back = s - p;
  double lost = (p - (s - back)) + (c - back); /* exact (Knuth); NaN if s is not finite */
  int64_t step = ((lost > 0.0) == (s > 0.0)) ? 1 : -1;
  uint64_t bits = ops_u64_of(s);
  int64_t even = (int64_t)(bits & 1) - 1;
  return ops_f64_of(bits + (uint64_t)((lost > 0.0 || lost < 0.0) ? step & even : 0));
}

#if defined(__FMA__)
OPS_INLINE float ops_fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OPS_INLINE double ops_fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
OPS_INLINE float ops_fma32(float a, float b, float c) { return (float)ops_odd_sum((double)a * b, c); }
OPS_INLINE double ops_fma64(double a, double b, double c) { return fma(a, b, c); }
#endif

/* A whole fma handler in a directed mode. Without the instruction: sums to odd under the default mode, kept in double;
 * then one rounding under the asked mode. */
#if defined(__FMA__)
#define OPS_FMA32_DIRECTED(form, fn, D, A, B, C) \
  OPS_FORM3(form, fn, OPS_ROUND_ON, OPS_ROUND_OFF, D, A, B, C, ops_fma32(a, b, c))
#else
#define OPS_FMA32_DIRECTED(form, fn, D, A, B, C)                                      \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                   \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                        \
    _Alignas(64) double sum[32], product[32];                                         \
    OPS_READ(A, a, 0) OPS_READ(B, b, 1) OPS_READ(C, c, 2) OPS_LANES_##form OPS_LOOP { \
      OPS_LANE(A, a) OPS_LANE(B, b) OPS_LANE(C, c) product[l] = (double)a * b;        \
      sum[l] = ops_odd_sum(product[l], c);                                            \
    }                                                                                 \
    OPS_ROUND_ON;                                                                     \
    OPS_LOOP { /* a zero sum is exact, but its sign is the mode's: add again */       \
      OPS_LANE(C, c)                                                                  \
      OPS_STORE_##form(D, ((float)(sum[l] == 0.0 ? product[l] + c : sum[l])));        \
    }                                                                                 \
    OPS_ROUND_OFF;                                                                    \
  }
#endif

/* --- Rounding to an integral value: 2^23 (2^52) pushes the fraction out. --- */

OPS_INLINE float ops_rni32(float x) {
  float m = __builtin_fabsf(x), r = (m + 0x1p23f) - 0x1p23f;
  return m < 0x1p23f ? __builtin_copysignf(r, x) : x;
}
OPS_INLINE float ops_rzi32(float x) {
  float m = __builtin_fabsf(x), r = (m + 0x1p23f) - 0x1p23f;
  r = r > m ? r - 1.0f : r;
  return m < 0x1p23f ? __builtin_copysignf(r, x) : x;
}
OPS_INLINE float ops_rmi32(float x) {
  float r = ops_rni32(x);
  return __builtin_copysignf(r > x ? r - 1.0f : r, x);
}
OPS_INLINE float ops_rpi32(float x) {
  float r = ops_rni32(x);
  return __builtin_copysignf(r < x ? r + 1.0f : r, x);
}
OPS_INLINE double ops_rni64(double x) {
  double m = __builtin_fabs(x), r = (m + 0x1p52) - 0x1p52;
  return m < 0x1p52 ? __builtin_copysign(r, x) : x;
}
OPS_INLINE double ops_rzi64(double x) {
  double m = __builtin_fabs(x), r = (m + 0x1p52) - 0x1p52;
  r = r > m ? r - 1.0 : r;
  return m < 0x1p52 ? __builtin_copysign(r, x) : x;
}
OPS_INLINE double ops_rmi64(double x) {
  double r = ops_rni64(x);
  return __builtin_copysign(r > x ? r - 1.0 : r, x);
}
OPS_INLINE double ops_rpi64(double x) {
  double r = ops_rni64(x);
  return __builtin_copysign(r < x ? r + 1.0 : r, x);
}

/* --- min, max. A NaN loses against a number, with .NaN it wins; -0 < +0. Equal operands are the same number or zeros
 * of different sign: or-ing (and-ing) their bits gives the smaller (larger). .xorsign.abs: magnitudes, then the
 * product's sign. NaN results still go through ops_canon32 or their like. --- */

OPS_INLINE float ops_min32(float a, float b) {
  float equal = ops_f32_of(ops_u32_of(a) | ops_u32_of(b)), less = a < b ? a : b;
  return a != a ? b : b != b ? a : a == b ? equal : less;
}
OPS_INLINE float ops_max32(float a, float b) {
  float equal = ops_f32_of(ops_u32_of(a) & ops_u32_of(b)), more = a > b ? a : b;
  return a != a ? b : b != b ? a : a == b ? equal : more;
}
OPS_INLINE float ops_min_nan32(float a, float b) { return a != a || b != b ? OPS_NAN32 : ops_min32(a, b); }
OPS_INLINE float ops_max_nan32(float a, float b) { return a != a || b != b ? OPS_NAN32 : ops_max32(a, b); }
/* .xorsign.abs with f one of the above. */
#define OPS_XORSIGN32(f, a, b) \
  ops_xorsign32(f(__builtin_fabsf(a), __builtin_fabsf(b)), (ops_u32_of(a) ^ ops_u32_of(b)) & 0x80000000u)
OPS_INLINE float ops_xorsign32(float r, uint32_t sign) { return r == r ? ops_f32_of(ops_u32_of(r) | sign) : OPS_NAN32; }
OPS_INLINE float ops_min_xorsign32(float a, float b) { return OPS_XORSIGN32(ops_min32, a, b); }
OPS_INLINE float ops_max_xorsign32(float a, float b) { return OPS_XORSIGN32(ops_max32, a, b); }
OPS_INLINE float ops_min_nan_xorsign32(float a, float b) { return OPS_XORSIGN32(ops_min_nan32, a, b); }
OPS_INLINE float ops_max_nan_xorsign32(float a, float b) { return OPS_XORSIGN32(ops_max_nan32, a, b); }

#endif
