/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of cvt between integers; the forms stand in ops_convert_int.def. C's own conversion from the source's lane
 * type does the extension, the destination's kind the truncation. */
#include "exec/instructions/ops_convert.h"

/* K the source's kind, S its name, at the name's end for sources in wider registers. */
/* clang-format off */
#define CONVERT_EACH(X, K, S, at)                                                                                   \
  X("cvt.u8." S at " cvt.u8." S at "@32", t8u, K) X("cvt.s8." S at, t8s_16, K) X("cvt.s8." S at "@32", t8s_32, K)   \
  X("cvt.u16." S at " cvt.u16." S at "@32 cvt.s16." S at, t16u, K) X("cvt.s16." S at "@32", t16s_32, K)             \
  X("cvt.u32." S at " cvt.s32." S at, t32, K)                                                                       \
  X("cvt.u8." S at "@64", t8u_64, K) X("cvt.s8." S at "@64", t8s_64, K)                                             \
  X("cvt.u16." S at "@64", t16u_64, K) X("cvt.s16." S at "@64", t16s_64, K)                                         \
  X("cvt.u32." S at "@64", t32u_64, K) X("cvt.s32." S at "@64", t32s_64, K)                                         \
  X("cvt.u64." S at " cvt.s64." S at, t64, K)
/* clang-format on */
#define CONVERT_OP(names, D, K) OP1(names, cvt_##D##_##K, D, K, a)
#define CONVERT_ROW(names, D, K) ROW1(names, cvt_##D##_##K, 0, D, K)
#define CONVERT_FROM(K, S, at) CONVERT_EACH(CONVERT_OP, K, S, at)
#define CONVERT_AGAIN(K, S, at) CONVERT_EACH(CONVERT_ROW, K, S, at)

/* Sources of 32 bits or fewer fit int64_t; u64 has only an upper end to pass. */
OPS_INLINE int64_t ops_clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
OPS_INLINE uint64_t ops_clamp_u64(uint64_t x, uint64_t high) { return x > high ? high : x; }
#define SATURATED_u8 ops_clamp
#define SATURATED_s8 ops_clamp
#define SATURATED_m16 ops_clamp
#define SATURATED_s16 ops_clamp
#define SATURATED_u32 ops_clamp
#define SATURATED_s32 ops_clamp
#define SATURATED_s64 ops_clamp
#define SATURATED_u64(x, low, high) ops_clamp_u64(x, (uint64_t)(high))
/* clang-format off */
#define SATURATE_FROM(K, S)                                                                                         \
  OP1("cvt.sat.u8." S " cvt.sat.u8." S "@32", sat_u8_##K, t8u, K, SATURATED_##K(a, 0, 0xff))                        \
  OP1("cvt.sat.s8." S, sat_s8_##K, t8s_16, K, SATURATED_##K(a, -0x80, 0x7f))                                        \
  OP1("cvt.sat.s8." S "@32", sat_s8_32_##K, t8s_32, K, SATURATED_##K(a, -0x80, 0x7f))                               \
  OP1("cvt.sat.u16." S " cvt.sat.u16." S "@32", sat_u16_##K, t16u, K, SATURATED_##K(a, 0, 0xffff))                  \
  OP1("cvt.sat.s16." S, sat_s16_##K, t16u, K, SATURATED_##K(a, -0x8000, 0x7fff))                                    \
  OP1("cvt.sat.s16." S "@32", sat_s16_32_##K, t16s_32, K, SATURATED_##K(a, -0x8000, 0x7fff))                        \
  OP1("cvt.sat.u32." S, sat_u32_##K, t32, K, SATURATED_##K(a, 0, 0xffffffff))                                       \
  OP1("cvt.sat.s32." S, sat_s32_##K, t32, K, SATURATED_##K(a, -0x80000000ll, 0x7fffffff))                           \
  OP1("cvt.sat.u64." S, sat_u64_##K, t64, K, SATURATE_U64_##K(a))                                                   \
  OP1("cvt.sat.s64." S, sat_s64_##K, t64, K, SATURATED_##K(a, INT64_MIN, INT64_MAX))
/* clang-format on */
#define SATURATE_U64_u8(x) (x)
#define SATURATE_U64_m16(x) (x)
#define SATURATE_U64_u32(x) (x)
#define SATURATE_U64_u64(x) (x)
#define SATURATE_U64_s8(x) ops_clamp(x, 0, INT64_MAX)
#define SATURATE_U64_s16(x) ops_clamp(x, 0, INT64_MAX)
#define SATURATE_U64_s32(x) ops_clamp(x, 0, INT64_MAX)
#define SATURATE_U64_s64(x) ops_clamp(x, 0, INT64_MAX)

OPS_INLINE uint32_t clamp_bits(int32_t x, int32_t low, int32_t high, uint32_t bits) {
  return (uint32_t)(x < low ? low : x > high ? high : x) & ((1u << bits) - 1);
}
#define PACK_TWO(bits, low, high, a, b) (clamp_bits(a, low, high, bits) << (bits) | clamp_bits(b, low, high, bits))

#define OPS_DEF "exec/instructions/ops_convert_int.def"
#define OPS_TABLE ops_convert_int
#include "exec/instructions/ops_expand.h"
