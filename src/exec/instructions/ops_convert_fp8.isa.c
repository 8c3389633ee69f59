/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of cvt from and to pairs of floats of 8, 6 and 4 bits; the forms stand in ops_convert_fp8.def.
 *
 * e4m3: 4 bits of exponent (bias 7), 3 of fraction, largest number 448 (0x7e), NaN 0x7f, no infinity. e5m2: the upper
 * byte of an f16, largest number 57344 (0x7b), NaN written as 0x7f. e2m3, e3m2 and e2m1 have neither infinity nor NaN,
 * which becomes the largest number. ue8m0 is an exponent alone: 2^(x - 127), NaN 0xff; it has no sign, and a number's
 * is dropped (cuda_fp8.hpp). */
#include "exec/instructions/ops_convert.h"
#include "exec/instructions/ops_half.h"

/* A pair of 4 bits, as a result. */
#define ENC_u8(x) (x)

OPS_INLINE uint32_t e4m3(float x) {
  uint32_t bits = ops_u32_of(x), m = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  uint32_t normal = ((m + 0x7ffffu + (m >> 20 & 1u)) >> 20) - (120u << 3);
  /* 2^-9ths, to nearest even */
  uint32_t small = ops_u32_of(ops_f32_of(m < 0x3c800000u ? m : 0) + 0x1p14f) - 0x46800000u;
  uint32_t r = m < 0x3c800000u ? small : m < 0x43e00000u ? normal : 0x7eu; /* 2^-6, 448 */
  return m > 0x7f800000u ? 0x7fu : r | sign;
}
OPS_INLINE uint32_t e5m2(float x) {
  uint32_t bits = ops_u32_of(x), m = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  uint32_t normal = ((m + 0xfffffu + (m >> 21 & 1u)) >> 21) - (112u << 2);
  uint32_t small = ops_u32_of(ops_f32_of(m < 0x38800000u ? m : 0) + 0x1p7f) - 0x43000000u; /* 2^-16ths */
  uint32_t r = m < 0x38800000u ? small : m < 0x47600000u ? normal : 0x7bu;                 /* 2^-14, 57344 */
  return m > 0x7f800000u ? 0x7fu : r | sign;
}
OPS_INLINE uint32_t relu8(uint32_t x) { return x & 0x80u ? 0 : x; }

/* e4m3 as f16: every number is one. */
OPS_INLINE uint32_t of_e4m3(uint32_t x) {
  uint32_t m = x & 0x7fu, sign = (x & 0x80u) << 8;
  uint32_t normal = (m << 7) + (8u << 10);
  uint32_t small = ops_f16_rz((float)(int32_t)m * 0x1p-9f);
  return m == 0x7fu ? OPS_NAN16 : (m < 8u ? small : normal) | sign;
}
OPS_INLINE uint32_t of_e5m2(uint32_t x) { return (x & 0x7fu) > 0x7cu ? OPS_NAN16 : x << 8; }

/* To nearest even, with `fraction` bits behind the exponent. least: the smallest number that is no subnormal, as f32;
 * shift: a float whose last place is the unit of subnormals; rebias: the biases' difference. */
OPS_INLINE uint32_t tiny(float x, uint32_t fraction, uint32_t least, float shift, uint32_t rebias, uint32_t largest,
                         uint32_t sign_bit) {
  uint32_t bits = ops_u32_of(x), m = bits & 0x7fffffffu, sign = bits >> 31 ? sign_bit : 0, drop = 23 - fraction;
  uint32_t normal = ((m + (1u << (drop - 1)) - 1 + (m >> drop & 1u)) >> drop) - (rebias << fraction);
  uint32_t small = ops_u32_of(ops_f32_of(m < least ? m : 0) + shift) - ops_u32_of(shift);
  uint32_t r = m < least ? small : normal < largest ? normal : largest;
  return m > 0x7f800000u ? largest : r | sign;
}
OPS_INLINE uint32_t e2m1(float x) { return tiny(x, 1, 0x3f800000u, 0x1p22f, 126, 0x7, 0x8); }
OPS_INLINE uint32_t e2m3(float x) { return tiny(x, 3, 0x3f800000u, 0x1p20f, 126, 0x1f, 0x20); }
OPS_INLINE uint32_t e3m2(float x) { return tiny(x, 2, 0x3e800000u, 0x1p19f, 124, 0x1f, 0x20); }
OPS_INLINE uint32_t relu6(uint32_t x) { return x & 0x20u ? 0 : x; }
OPS_INLINE uint32_t relu4(uint32_t x) { return x & 0x8u ? 0 : x; }

/* As f16: every number is one. unit: of subnormals; rebias: the biases' difference. */
OPS_INLINE uint32_t of_tiny(uint32_t m, uint32_t fraction, float unit, uint32_t rebias, uint32_t sign) {
  uint32_t normal = (m << (10 - fraction)) + (rebias << 10), small = ops_f16_rz((float)(int32_t)m * unit);
  return (m < 1u << fraction ? small : normal) | (sign ? 0x8000u : 0);
}
OPS_INLINE uint32_t of_e2m1(uint32_t x) { return of_tiny(x & 0x7u, 1, 0.5f, 14, x & 0x8u); }
OPS_INLINE uint32_t of_e2m3(uint32_t x) { return of_tiny(x & 0x1fu, 3, 0.125f, 14, x & 0x20u); }
OPS_INLINE uint32_t of_e3m2(uint32_t x) { return of_tiny(x & 0x1fu, 2, 0.0625f, 12, x & 0x20u); }

/* up: to the next power of two, and else down; no_number: what is beyond the largest. */
OPS_INLINE uint32_t ue8m0(float x, uint32_t up, uint32_t no_number) {
  uint32_t m = ops_u32_of(x) & 0x7fffffffu, exponent = m >> 23;
  uint32_t more = up && (m & 0x7fffffu) && m > 0x400000u; /* 2^-127 is the smallest */
  uint32_t r = exponent + (exponent < 0xffu ? more : 0);
  return m > 0x7f800000u ? 0xffu : r < 0xffu ? r : no_number;
}
OPS_INLINE uint32_t of_ue8m0(uint32_t x) { return x == 0xffu ? OPS_NAN16 : x ? x << 7 : 0x40u; }

#define FROM_PAIR(T, fn, H, h)                                                  \
  OP1("cvt.rn.satfinite." T "x2." H "x2", fn##x2_##h##x2, u16, h##x2,           \
      fn(ops_of_##h(a >> 16)) << 8 | fn(ops_of_##h(a & 0xffffu)))               \
  OP1("cvt.rn.satfinite.relu." T "x2." H "x2", fn##x2_relu_##h##x2, u16, h##x2, \
      relu8(fn(ops_of_##h(a >> 16))) << 8 | relu8(fn(ops_of_##h(a & 0xffffu))))

#define OPS_DEF "exec/instructions/ops_convert_fp8.def"
#define OPS_TABLE ops_convert_fp8
#include "exec/instructions/ops_expand.h"
