/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of f16 and bf16 arithmetic; the forms stand in ops_half.def.
 *
 * One function per operation works on 16-bit patterns; the packed forms apply it to both halves. f16 sums and products
 * are exact enough in f32 that rounding twice is rounding once (24 >= 2 * 11 + 2), products of bf16 are exact in
 * double; every fma sums to odd first. */
#include "exec/instructions/ops_half.h"

/* --- One half each. --- */

OPS_INLINE uint32_t add_f16(uint32_t a, uint32_t b) { return ops_f16_rn(ops_of_f16(a) + ops_of_f16(b)); }
OPS_INLINE uint32_t sub_f16(uint32_t a, uint32_t b) { return ops_f16_rn(ops_of_f16(a) - ops_of_f16(b)); }
OPS_INLINE uint32_t mul_f16(uint32_t a, uint32_t b) { return ops_f16_rn(ops_of_f16(a) * ops_of_f16(b)); }
/* ops_odd_sum in f32. A product of two f16 is exact there (22 bits, multiples of 2^-48), and so is what a sum of it and
 * an f16 loses: twice as many lanes at a time as in f64. */
OPS_INLINE float odd_sum_f16(float p, float c) {
  float s = p + c;
  float back = s - p;
  float lost = (p - (s - back)) + (c - back); /* NaN if s is not finite */
  int32_t step = ((lost > 0.0f) == (s > 0.0f)) ? 1 : -1;
  uint32_t bits = ops_u32_of(s);
  int32_t even = (int32_t)(bits & 1) - 1;
  return ops_f32_of(bits + (uint32_t)((lost > 0.0f || lost < 0.0f) ? step & even : 0));
}
OPS_INLINE uint32_t fma_f16(uint32_t a, uint32_t b, uint32_t c) {
  return ops_f16_rn(odd_sum_f16(ops_of_f16(a) * ops_of_f16(b), ops_of_f16(c)));
}
OPS_INLINE uint32_t add_bf16(uint32_t a, uint32_t b) { return ops_bf16_rn(ops_of_bf16(a) + ops_of_bf16(b)); }
OPS_INLINE uint32_t sub_bf16(uint32_t a, uint32_t b) { return ops_bf16_rn(ops_of_bf16(a) - ops_of_bf16(b)); }
OPS_INLINE uint32_t mul_bf16(uint32_t a, uint32_t b) {
  return ops_bf16_rn(ops_odd32((double)ops_of_bf16(a) * (double)ops_of_bf16(b)));
}
OPS_INLINE uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c) {
  return ops_bf16_rn(ops_odd32(ops_odd_sum((double)ops_of_bf16(a) * (double)ops_of_bf16(b), (double)ops_of_bf16(c))));
}

OPS_INLINE uint32_t half_same(uint32_t h) { return h; }
OPS_INLINE uint32_t half_ftz(uint32_t h) { return ops_pick(h & 0x7c00u, h, h & 0x8000u); }
OPS_INLINE uint32_t half_ftz_sat(uint32_t h) { return ops_f16_sat(half_ftz(h)); }
OPS_INLINE uint32_t half_ftz_relu(uint32_t h) { return ops_relu16(half_ftz(h)); }
OPS_INLINE uint32_t half_neg(uint32_t h) { return h ^ 0x8000u; }
OPS_INLINE uint32_t half_abs(uint32_t h) { return h & 0x7fffu; }
OPS_INLINE uint32_t half_neg_ftz(uint32_t h) { return half_neg(half_ftz(h)); }
OPS_INLINE uint32_t half_abs_ftz(uint32_t h) { return half_abs(half_ftz(h)); }

/* --- Both halves. --- */

#define LOW(x) ((x)&0xffffu)
#define HIGH(x) ((x) >> 16)
/* clang-format off */
#define HALF_UNARY(name, name2, fn, K, f)                                                                           \
  OP1(name, fn, K, K, f(a)) OP1(name2, fn##x2, K##x2, K##x2, f(LOW(a)) | f(HIGH(a)) << 16)
/* clang-format on */
/* clang-format off */
#define HALF_2(names, names2, fn, K, pre, f, post)                                                                  \
  OP2(names, fn, K, K, K, post(f(pre(a), pre(b))))                                                                  \
  OP2(names2, fn##x2, K##x2, K##x2, K##x2, post(f(pre(LOW(a)), pre(LOW(b)))) | post(f(pre(HIGH(a)), pre(HIGH(b)))) << 16)
/* clang-format on */
/* clang-format off */
#define HALF_3(names, names2, fn, K, pre, f, post)                                                                  \
  OP3(names, fn, K, K, K, K, post(f(pre(a), pre(b), pre(c))))                                                       \
  OP3(names2, fn##x2, K##x2, K##x2, K##x2, K##x2,                                                                   \
      post(f(pre(LOW(a)), pre(LOW(b)), pre(LOW(c)))) | post(f(pre(HIGH(a)), pre(HIGH(b)), pre(HIGH(c)))) << 16)
/* clang-format on */

/* clang-format off */
#define HALF_BINARY(op, fn, words, K, T, pre, f, post)                                                              \
  HALF_2(op words "." T " " op ".rn" words "." T, op words "." T "x2 " op ".rn" words "." T "x2", fn, K, pre, f, post)
/* clang-format on */
/* clang-format off */
#define HALF_ARITHMETIC(op, f)                                                                                      \
  HALF_BINARY(op, f##_h, "", f16, "f16", half_same, f##_f16, half_same)                                             \
  HALF_BINARY(op, f##_h_ftz, ".ftz", f16, "f16", half_ftz, f##_f16, half_ftz)                                       \
  HALF_BINARY(op, f##_h_sat, ".sat", f16, "f16", half_same, f##_f16, ops_f16_sat)                                   \
  HALF_BINARY(op, f##_h_ftz_sat, ".ftz.sat", f16, "f16", half_ftz, f##_f16, half_ftz_sat)                           \
  HALF_BINARY(op, f##_b, "", bf16, "bf16", half_same, f##_bf16, half_same)
/* clang-format on */
/* clang-format off */
#define HALF_FMA                                                                                                    \
  HALF_3("fma.rn.f16", "fma.rn.f16x2", fma_h, f16, half_same, fma_f16, half_same)                                   \
  HALF_3("fma.rn.ftz.f16", "fma.rn.ftz.f16x2", fma_h_ftz, f16, half_ftz, fma_f16, half_ftz)                         \
  HALF_3("fma.rn.sat.f16", "fma.rn.sat.f16x2", fma_h_sat, f16, half_same, fma_f16, ops_f16_sat)                     \
  HALF_3("fma.rn.ftz.sat.f16", "fma.rn.ftz.sat.f16x2", fma_h_ftz_sat, f16, half_ftz, fma_f16, half_ftz_sat)         \
  HALF_3("fma.rn.relu.f16", "fma.rn.relu.f16x2", fma_h_relu, f16, half_same, fma_f16, ops_relu16)                   \
  HALF_3("fma.rn.ftz.relu.f16", "fma.rn.ftz.relu.f16x2", fma_h_ftz_relu, f16, half_ftz, fma_f16, half_ftz_relu)     \
  HALF_3("fma.rn.bf16", "fma.rn.bf16x2", fma_b, bf16, half_same, fma_bf16, half_same)                               \
  HALF_3("fma.rn.relu.bf16", "fma.rn.relu.bf16x2", fma_b_relu, bf16, half_same, fma_bf16, ops_relu16)
/* clang-format on */

/* --- min, max: of the patterns, as numbers that are in the order of their values, -0 before 0. .xorsign takes the
 * signs from the patterns: a NaN's sign counts. --- */

OPS_INLINE uint32_t half_order(uint32_t h) { return h ^ (0x8000u | ((0u - (h >> 15)) & 0x7fffu)); }
OPS_INLINE uint32_t half_number(uint32_t first, uint32_t a, uint32_t b, bool a_nan, bool b_nan) {
  return ops_pick(a_nan & b_nan, OPS_NAN16, ops_pick(a_nan, b, ops_pick(b_nan, a, first)));
}
OPS_INLINE uint32_t half_number_nan(uint32_t first, uint32_t a, uint32_t b, bool a_nan, bool b_nan) {
  return ops_pick(a_nan | b_nan, OPS_NAN16, first);
}
OPS_INLINE uint32_t half_min(uint32_t a, uint32_t b) { return ops_pick(half_order(a) < half_order(b), a, b); }
OPS_INLINE uint32_t half_max(uint32_t a, uint32_t b) { return ops_pick(half_order(a) < half_order(b), b, a); }
#define OPS_INF_f16 OPS_INF_F16
#define OPS_INF_bf16 OPS_INF_BF16
OPS_INLINE uint32_t half_xorsign(uint32_t r, uint32_t a, uint32_t b) {
  return r | ops_pick(r == OPS_NAN16, 0, (a ^ b) & 0x8000u);
}
#define HALF_DEFINE_MINMAX(op, H, ftz, nan, pre)                                                          \
  OPS_INLINE uint32_t op##_##H##ftz##nan(uint32_t a, uint32_t b) {                                        \
    const uint32_t x = pre(a), y = pre(b);                                                                \
    return half_number##nan(half_##op(x, y), x, y, half_abs(x) > OPS_INF_##H, half_abs(y) > OPS_INF_##H); \
  }                                                                                                       \
  OPS_INLINE uint32_t op##_##H##ftz##nan##_xorsign(uint32_t a, uint32_t b) {                              \
    return half_xorsign(op##_##H##ftz##nan(half_abs(a), half_abs(b)), a, b);                              \
  }
/* clang-format off */
#define HALF_DEFINE_MINMAXES(op)                                                                                    \
  HALF_DEFINE_MINMAX(op, f16, , , half_same) HALF_DEFINE_MINMAX(op, f16, , _nan, half_same)                         \
  HALF_DEFINE_MINMAX(op, f16, _ftz, , half_ftz) HALF_DEFINE_MINMAX(op, f16, _ftz, _nan, half_ftz)                   \
  HALF_DEFINE_MINMAX(op, bf16, , , half_same) HALF_DEFINE_MINMAX(op, bf16, , _nan, half_same)
/* clang-format on */
HALF_DEFINE_MINMAXES(min)
HALF_DEFINE_MINMAXES(max)

/* clang-format off */
#define HALF_MINMAX_1(op, f, words, H, variant)                                                                     \
  HALF_2(op words "." #H, op words "." #H "x2", f##_##H##_h##variant, H, half_same, f##_##H##variant, half_same)
/* clang-format on */
/* clang-format off */
#define HALF_MINMAX(op, f)                                                                                          \
  HALF_MINMAX_1(op, f, "", f16, ) HALF_MINMAX_1(op, f, ".NaN", f16, _nan)                                           \
  HALF_MINMAX_1(op, f, ".xorsign.abs", f16, _xorsign) HALF_MINMAX_1(op, f, ".NaN.xorsign.abs", f16, _nan_xorsign)   \
  HALF_MINMAX_1(op, f, ".ftz", f16, _ftz) HALF_MINMAX_1(op, f, ".ftz.NaN", f16, _ftz_nan)                           \
  HALF_MINMAX_1(op, f, ".ftz.xorsign.abs", f16, _ftz_xorsign)                                                       \
  HALF_MINMAX_1(op, f, ".ftz.NaN.xorsign.abs", f16, _ftz_nan_xorsign)                                               \
  HALF_MINMAX_1(op, f, "", bf16, ) HALF_MINMAX_1(op, f, ".NaN", bf16, _nan)                                         \
  HALF_MINMAX_1(op, f, ".xorsign.abs", bf16, _xorsign) HALF_MINMAX_1(op, f, ".NaN.xorsign.abs", bf16, _nan_xorsign)
/* clang-format on */

/* --- Mixed precision: the 16-bit sources are widened, the rest is f32. --- */

/* clang-format off */
#define MIXED_2(op, fn, T, H, D, words, expr)                                                                       \
  FN2(fn##_rn_##H##D, D, H, f32, expr)                                                                              \
  ROW2(op ".rn" words ".f32." T " " op words ".f32." T, fn##_rn_##H##D, OPS_RN, D, H, f32)                          \
  FNR2(fn##_dir_##H##D, D, H, f32, expr)                                                                            \
  ROW2(op ".rz" words ".f32." T, fn##_dir_##H##D, OPS_RZ, D, H, f32)                                                \
  ROW2(op ".rm" words ".f32." T, fn##_dir_##H##D, OPS_RM, D, H, f32)                                                \
  ROW2(op ".rp" words ".f32." T, fn##_dir_##H##D, OPS_RP, D, H, f32)
/* clang-format on */
/* clang-format off */
#define MIXED_FMA(T, H, D, words)                                                                                   \
  FN3(mixed_fma_rn_##H##D, D, H, H, f32, ops_fma32(a, b, c))                                                        \
  ROW3("fma.rn" words ".f32." T, mixed_fma_rn_##H##D, OPS_RN, D, H, H, f32)                                         \
  FNX(OPS_FMA32_DIRECTED, mixed_fma_dir_##H##D, D, H, H, f32)                                                                                         \
  ROW3("fma.rz" words ".f32." T, mixed_fma_dir_##H##D, OPS_RZ, D, H, H, f32)                                        \
  ROW3("fma.rm" words ".f32." T, mixed_fma_dir_##H##D, OPS_RM, D, H, H, f32)                                        \
  ROW3("fma.rp" words ".f32." T, mixed_fma_dir_##H##D, OPS_RP, D, H, H, f32)
/* clang-format on */
/* clang-format off */
#define MIXED(T, H)                                                                                                 \
  MIXED_2("add", mixed_add, T, H, f32c, "", a + b) MIXED_2("add", mixed_add, T, H, f32s, ".sat", a + b)             \
  MIXED_2("sub", mixed_sub, T, H, f32c, "", a - b) MIXED_2("sub", mixed_sub, T, H, f32s, ".sat", a - b)             \
  MIXED_FMA(T, H, f32c, "") MIXED_FMA(T, H, f32s, ".sat")
/* clang-format on */

#define OPS_MASKED_AFTER
#define OPS_DEF "exec/instructions/ops_half.def"
#define OPS_TABLE ops_half
#include "exec/instructions/ops_expand.h"
