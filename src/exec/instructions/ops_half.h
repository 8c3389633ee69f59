/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16: exact widening to f32, correctly rounded narrowing in every mode. Integer operations and exact
 * floating-point steps only, so that every instruction set gives the same bits.
 *
 * The narrowing functions take an f32. A wider number is first rounded to odd to 24 bits (ops_odd32): 24 >= 11 + 2, so
 * the second rounding is the only one that counts. Results are 16 bits; NaN becomes 0x7fff. */
#ifndef FF_EXEC_OPS_HALF_H
#define FF_EXEC_OPS_HALF_H

#include "exec/instructions/ops_math.h"

#define OPS_NAN16 0x7fffu
#define OPS_INF_F16 0x7c00u
#define OPS_INF_BF16 0x7f80u

/* --- Widening. --- */

OPS_INLINE float ops_of_f16(uint32_t h) {
  uint32_t m = h & 0x7fffu;
  uint32_t normal = (m << 13) + (112u << 23);
  uint32_t small = ops_u32_of((float)(int32_t)m * 0x1p-24f); /* subnormals: an integer times 2^-24 */
  uint32_t bits = m >= 0x7c00u ? (m == 0x7c00u ? 0x7f800000u : 0x7fffffffu) : m >= 0x400u ? normal : small;
  return ops_f32_of(bits | (m > 0x7c00u ? 0 : (h & 0x8000u) << 16));
}
OPS_INLINE float ops_of_bf16(uint32_t h) {
  uint32_t bits = h << 16;
  return ops_f32_of((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits);
}

/* --- Narrowing. --- */

/* A double as an f32 whose last bit says that something was lost. */
OPS_INLINE float ops_odd32(double x) {
  float r = (float)x;
  double m = __builtin_fabs(x), n = __builtin_fabs((double)r);
  uint32_t bits = ops_u32_of(r);
  bits -= n > m; /* overflow: infinity becomes the largest number, which is odd */
  bits |= (n > m) | (n < m);
  return ops_f32_of(bits);
}

/* What is added to a magnitude before its low bits are cut off; `low` are those bits, all set. */
#define OPS_BIAS_rn(sign, odd, low) (((low) >> 1) + (odd))
#define OPS_BIAS_rz(sign, odd, low) 0u
#define OPS_BIAS_rm(sign, odd, low) ((sign) ? (low) : 0u)
#define OPS_BIAS_rp(sign, odd, low) ((sign) ? 0u : (low))

/* A choice that stays one: of `chosen ? a : b` gcc makes branches here, which end every vector. */
OPS_INLINE uint32_t ops_pick(bool chosen, uint32_t a, uint32_t b) {
  const uint32_t mask = 0u - (uint32_t)chosen;
  return (a & mask) | (b & ~mask);
}

/* f16: subnormals are counted in 2^-24ths with 24 more bits behind the point (anything smaller only says "more"); they
 * and the normal numbers then go the same way. Beyond 65504 the same rounding decides between that and infinity. */
#define OPS_DEFINE_F16(mode)                                                                                          \
  OPS_INLINE uint32_t ops_f16_##mode(float x) {                                                                       \
    const uint32_t bits = ops_u32_of(x), m = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;                         \
    const uint32_t normal = ((m + OPS_BIAS_##mode(sign, m >> 13 & 1u, 0x1fffu)) >> 13) - (112u << 10);                \
    const float scaled = ops_f32_of(m < 0x38800000u ? m : 0x38800000u) * 0x1p24f;                                     \
    const int32_t whole = (int32_t)scaled;                                                                            \
    const float rest = (scaled - (float)(whole & 0x7ff)) * 0x1p24f; /* without & gcc makes a call of it */            \
    const uint32_t more = (uint32_t)(int32_t)rest | ((rest > 0.0f) & (rest < 1.0f));                                  \
    const uint32_t small = (uint32_t)whole + ((more + OPS_BIAS_##mode(sign, (uint32_t)whole & 1u, 0xffffffu)) >> 24); \
    const uint32_t large = OPS_BIAS_##mode(sign, 1u, 0x1fffu) ? OPS_INF_F16 : OPS_INF_F16 - 1;                        \
    uint32_t r = ops_pick(m < 0x38800000u, small, normal);                                                            \
    r = ops_pick(m >= 0x47800000u, large, r);                                                                         \
    r = ops_pick(m >= 0x7f800000u, OPS_INF_F16, r);                                                                   \
    return ops_pick(m > 0x7f800000u, OPS_NAN16, r | sign);                                                            \
  }                                                                                                                   \
  OPS_INLINE uint32_t ops_bf16_##mode(float x) {                                                                      \
    const uint32_t bits = ops_u32_of(x), m = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;                         \
    const uint32_t finite = (m + OPS_BIAS_##mode(sign, m >> 16 & 1u, 0xffffu)) >> 16;                                 \
    const uint32_t r = (m >= 0x7f800000u ? OPS_INF_BF16 : finite) | sign;                                             \
    return m > 0x7f800000u ? OPS_NAN16 : r;                                                                           \
  }
OPS_DEFINE_F16(rn)
OPS_DEFINE_F16(rz)
OPS_DEFINE_F16(rm)
OPS_DEFINE_F16(rp)

/* --- What follows: .sat, .relu, .satfinite on the 16 bits. --- */

/* NaN is 0x7fff here */
OPS_INLINE uint32_t ops_f16_sat(uint32_t h) { return ops_pick(h > 0x7c00u, 0, h > 0x3c00u ? 0x3c00u : h); }
OPS_INLINE uint32_t ops_bf16_sat(uint32_t h) { return ops_pick(h > 0x7f80u, 0, h > 0x3f80u ? 0x3f80u : h); }
OPS_INLINE uint32_t ops_relu16(uint32_t h) { return ops_pick(h & 0x8000u, 0, h); }
OPS_INLINE uint32_t ops_f16_finite(uint32_t h) { return (h & 0x7fffu) == OPS_INF_F16 ? h - 1 : h; }
OPS_INLINE uint32_t ops_bf16_finite(uint32_t h) { return (h & 0x7fffu) == OPS_INF_BF16 ? h - 1 : h; }

/* Halves as kinds: the lane is a float. */
#define CELL_h16 uint32_t
#define LANE_h16 float
#define DEC_h16(x) ops_of_f16((x)&0xffffu)
#define TYPE_h16 PTX_F16
#define CELL_h16b uint32_t
#define LANE_h16b float
#define DEC_h16b(x) ops_of_bf16((x)&0xffffu)
#define TYPE_h16b PTX_BF16

#endif
