/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of cvt from and to pairs of 8-bit floats; the forms stand in ops_convert_fp8.def.
 *
 * e4m3: 4 bits of exponent (bias 7), 3 of fraction, largest number 448 (0x7e), NaN 0x7f, no infinity. e5m2: the upper
 * byte of an f16, largest number 57344 (0x7b), NaN written as 0x7f. */
#include "exec/instructions/ops_convert.h"
#include "exec/instructions/ops_half.h"

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

#define FROM_PAIR(T, fn, H, h)                                                  \
  OP1("cvt.rn.satfinite." T "x2." H "x2", fn##x2_##h##x2, u16, h##x2,           \
      fn(ops_of_##h(a >> 16)) << 8 | fn(ops_of_##h(a & 0xffffu)))               \
  OP1("cvt.rn.satfinite.relu." T "x2." H "x2", fn##x2_relu_##h##x2, u16, h##x2, \
      relu8(fn(ops_of_##h(a >> 16))) << 8 | relu8(fn(ops_of_##h(a & 0xffffu))))

#define OPS_DEF "exec/instructions/ops_convert_fp8.def"
#define OPS_TABLE ops_convert_fp8
#include "exec/instructions/ops_expand.h"
