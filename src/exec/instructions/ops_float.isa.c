/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of f32 and f64 arithmetic with IEEE rounding; the forms stand in ops_float.def. */
#include <fenv.h>

#include "exec/instructions/ops_math.h"

/* The variants of one f32 operation: D the result's kind, S the sources'; the directed modes share one function and
 * take the mode from aux. */
/* clang-format off */
#define FLOAT32_VARIANTS(X, op, fn, expr)                                                                           \
  X(op, fn, f32c, f32, "", expr) X(op, fn, f32z, f32z, ".ftz", expr)                                                \
  X(op, fn, f32s, f32, ".sat", expr) X(op, fn, f32zs, f32z, ".ftz.sat", expr)
/* clang-format on */

/* clang-format off */
#define FLOAT32_2_VARIANT(op, fn, D, S, text, expr)                                                                 \
  FN2(fn##_rn_##D, D, S, S, expr)                                                                                   \
  ROW2(op ".rn" text ".f32 " op text ".f32", fn##_rn_##D, OPS_RN, D, S, S)                                          \
  FNR2(fn##_dir_##D, D, S, S, expr)                                                                                 \
  ROW2(op ".rz" text ".f32", fn##_dir_##D, OPS_RZ, D, S, S)                                                         \
  ROW2(op ".rm" text ".f32", fn##_dir_##D, OPS_RM, D, S, S)                                                         \
  ROW2(op ".rp" text ".f32", fn##_dir_##D, OPS_RP, D, S, S)
/* clang-format on */
#define FLOAT32_2(op, fn, expr) FLOAT32_VARIANTS(FLOAT32_2_VARIANT, op, fn, expr)

/* clang-format off */
#define FLOAT32_1_VARIANT(op, fn, D, S, text, expr)                                                                 \
  FN1(fn##_rn_##D, D, S, expr)                                                                                      \
  ROW1(op ".rn" text ".f32", fn##_rn_##D, OPS_RN, D, S)                                                             \
  FNR1(fn##_dir_##D, D, S, expr)                                                                                    \
  ROW1(op ".rz" text ".f32", fn##_dir_##D, OPS_RZ, D, S)                                                            \
  ROW1(op ".rm" text ".f32", fn##_dir_##D, OPS_RM, D, S)                                                            \
  ROW1(op ".rp" text ".f32", fn##_dir_##D, OPS_RP, D, S)
/* clang-format on */
/* clang-format off */
#define FLOAT32_1(op, fn, expr)                                                                                     \
  FLOAT32_1_VARIANT(op, fn, f32c, f32, "", expr) FLOAT32_1_VARIANT(op, fn, f32z, f32z, ".ftz", expr)
/* clang-format on */

/* clang-format off */
#define FLOAT64_2(op, fn, expr)                                                                                     \
  FN2(fn##_rn_f64, f64, f64, f64, ops_nan2(expr, a, b))                                                             \
  ROW2(op ".rn.f64 " op ".f64", fn##_rn_f64, OPS_RN, f64, f64, f64)                                                 \
  FNR2(fn##_dir_f64, f64, f64, f64, ops_nan2(expr, a, b))                                                           \
  ROW2(op ".rz.f64", fn##_dir_f64, OPS_RZ, f64, f64, f64)                                                           \
  ROW2(op ".rm.f64", fn##_dir_f64, OPS_RM, f64, f64, f64)                                                           \
  ROW2(op ".rp.f64", fn##_dir_f64, OPS_RP, f64, f64, f64)
/* clang-format on */
/* clang-format off */
#define FLOAT64_1(op, fn, expr)                                                                                     \
  FN1(fn##_rn_f64, f64, f64, ops_nan1(expr, a))                                                                     \
  ROW1(op ".rn.f64", fn##_rn_f64, OPS_RN, f64, f64)                                                                 \
  FNR1(fn##_dir_f64, f64, f64, ops_nan1(expr, a))                                                                   \
  ROW1(op ".rz.f64", fn##_dir_f64, OPS_RZ, f64, f64)                                                                \
  ROW1(op ".rm.f64", fn##_dir_f64, OPS_RM, f64, f64)                                                                \
  ROW1(op ".rp.f64", fn##_dir_f64, OPS_RP, f64, f64)
/* clang-format on */

/* f64 fma in a directed mode without the instruction asks the C library, which needs the whole environment set. */
#if defined(__FMA__)
/* clang-format off */
#define FMA64_DIRECTED(form, fn, ...) \
  OPS_FORM3(form, fn, OPS_ROUND_ON, OPS_ROUND_OFF, f64, f64, f64, f64, ops_nan3(ops_fma64(a, b, c), a, b, c))
/* clang-format on */
#else
OPS_CHOSEN int fma_round_enter(uint32_t mode) {
  int saved = fegetround();
  fesetround(mode == OPS_RZ ? FE_TOWARDZERO : mode == OPS_RM ? FE_DOWNWARD : FE_UPWARD);
  return saved;
}
#define FMA64_DIRECTED(form, fn, ...)                                                                               \
  OPS_FORM3(form, fn, int saved = fma_round_enter(in->aux >> OPS_AUX_SHIFT), fesetround(saved), f64, f64, f64, f64, \
            ops_nan3(ops_fma64(a, b, c), a, b, c))
#endif


/* clang-format off */
#define FMA32_VARIANT(op, fn, D, S, text, expr)                                                                     \
  FN3(fma_rn_##D, D, S, S, S, ops_fma32(a, b, c))                                                                   \
  ROW3("fma.rn" text ".f32 mad.rn" text ".f32 mad" text ".f32", fma_rn_##D, OPS_RN, D, S, S, S)                     \
  FNX(OPS_FMA32_DIRECTED, fma_dir_##D, D, S, S, S)                                                                                                   \
  ROW3("fma.rz" text ".f32 mad.rz" text ".f32", fma_dir_##D, OPS_RZ, D, S, S, S)                                    \
  ROW3("fma.rm" text ".f32 mad.rm" text ".f32", fma_dir_##D, OPS_RM, D, S, S, S)                                    \
  ROW3("fma.rp" text ".f32 mad.rp" text ".f32", fma_dir_##D, OPS_RP, D, S, S, S)
/* clang-format on */
#define FLOAT32_FMA FLOAT32_VARIANTS(FMA32_VARIANT, , , )
/* clang-format off */
#define FLOAT64_FMA                                                                                                 \
  FN3(fma_rn_f64, f64, f64, f64, f64, ops_nan3(ops_fma64(a, b, c), a, b, c))                                        \
  ROW3("fma.rn.f64 mad.rn.f64 mad.f64", fma_rn_f64, OPS_RN, f64, f64, f64, f64)                                     \
  FNX(FMA64_DIRECTED, fma_dir_f64, )                                                                                                   \
  ROW3("fma.rz.f64 mad.rz.f64", fma_dir_f64, OPS_RZ, f64, f64, f64, f64)                                            \
  ROW3("fma.rm.f64 mad.rm.f64", fma_dir_f64, OPS_RM, f64, f64, f64, f64)                                            \
  ROW3("fma.rp.f64 mad.rp.f64", fma_dir_f64, OPS_RP, f64, f64, f64, f64)
/* clang-format on */

/* f32x2: a 64-bit slot is 64 floats, two for each lane. */
#define OPS_F32X2_STORE_all(D, value) d[i] = ENC_##D(value)
#define OPS_F32X2_STORE_some(D, value) d[i] = lanes[i >> 1] ? ENC_##D(value) : d[i]
#ifdef __clang__
#define OPS_F32X2_LOOP _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < 64; i++)
#else
#define OPS_F32X2_LOOP _Pragma("GCC ivdep") for (int i = 0; i < 64; i++)
#endif
#define OPS_F32X2(form, fn, D, S, before, after, expr)                                            \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                               \
    float *d = OPS_SLOT(float, in->dst);                                                          \
    const float *pa = OPS_SLOT(const float, in->src[0]), *pb = OPS_SLOT(const float, in->src[1]); \
    const float *pc __attribute__((unused)) = OPS_SLOT(const float, in->src[2]);                  \
    OPS_LANES_##form before;                                                                      \
    OPS_F32X2_LOOP {                                                                              \
      const float a = DEC_##S(pa[i]), b = DEC_##S(pb[i]);                                         \
      OPS_F32X2_STORE_##form(D, (expr));                                                          \
    }                                                                                             \
    after;                                                                                        \
  }
/* clang-format off */
#define F32X2_VARIANT(op, fn, D, S, text, expr)                                                                     \
  FNX(OPS_F32X2, fn##_rn2_##D, D, S, (void)0, (void)0, expr)                                                        \
  ROW2(op ".rn" text ".f32x2 " op text ".f32x2", fn##_rn2_##D, OPS_RN, u64, u64, u64)                               \
  FNX(OPS_F32X2, fn##_dir2_##D, D, S, OPS_ROUND_ON, OPS_ROUND_OFF, expr)                                            \
  ROW2(op ".rz" text ".f32x2", fn##_dir2_##D, OPS_RZ, u64, u64, u64)                                                \
  ROW2(op ".rm" text ".f32x2", fn##_dir2_##D, OPS_RM, u64, u64, u64)                                                \
  ROW2(op ".rp" text ".f32x2", fn##_dir2_##D, OPS_RP, u64, u64, u64)
/* clang-format on */
#define F32X2(op, fn, expr) F32X2_VARIANT(op, fn, f32c, f32, "", expr) F32X2_VARIANT(op, fn, f32z, f32z, ".ftz", expr)

/* The directed fma without the instruction as in OPS_FMA32_DIRECTED; with it, one loop. */
#if defined(__FMA__)
/* clang-format off */
#define OPS_F32X2_FMA(form, fn, D, S) \
  OPS_F32X2(form, fn, D, S, OPS_ROUND_ON, OPS_ROUND_OFF, ops_fma32(a, b, DEC_##S(pc[i])))
/* clang-format on */
#else
#define OPS_F32X2_FMA(form, fn, D, S)                                                                              \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                                \
    float *d = OPS_SLOT(float, in->dst);                                                                           \
    _Alignas(64) double sum[64], product[64];                                                                      \
    const float *pa = OPS_SLOT(const float, in->src[0]), *pb = OPS_SLOT(const float, in->src[1]);                  \
    const float *pc = OPS_SLOT(const float, in->src[2]);                                                           \
    OPS_LANES_##form OPS_F32X2_LOOP {                                                                              \
      product[i] = (double)DEC_##S(pa[i]) * DEC_##S(pb[i]);                                                        \
      sum[i] = ops_odd_sum(product[i], DEC_##S(pc[i]));                                                            \
    }                                                                                                              \
    OPS_ROUND_ON;                                                                                                  \
    OPS_F32X2_LOOP { OPS_F32X2_STORE_##form(D, ((float)(sum[i] == 0.0 ? product[i] + DEC_##S(pc[i]) : sum[i]))); } \
    OPS_ROUND_OFF;                                                                                                 \
  }
#endif
/* clang-format off */
#define F32X2_FMA_VARIANT(D, S, text)                                                                               \
  FNX(OPS_F32X2, fma_rn2_##D, D, S, (void)0, (void)0, ops_fma32(a, b, DEC_##S(pc[i])))                              \
  ROW3("fma.rn" text ".f32x2", fma_rn2_##D, OPS_RN, u64, u64, u64, u64)                                             \
  FNX(OPS_F32X2_FMA, fma_dir2_##D, D, S)                                                                            \
  ROW3("fma.rz" text ".f32x2", fma_dir2_##D, OPS_RZ, u64, u64, u64, u64)                                            \
  ROW3("fma.rm" text ".f32x2", fma_dir2_##D, OPS_RM, u64, u64, u64, u64)                                            \
  ROW3("fma.rp" text ".f32x2", fma_dir2_##D, OPS_RP, u64, u64, u64, u64)
/* clang-format on */
#define F32X2_FMA F32X2_FMA_VARIANT(f32c, f32, "") F32X2_FMA_VARIANT(f32z, f32z, ".ftz")

/* f64 keeps a's payload when both are NaN. */
OPS_INLINE double ops_min64(double a, double b) {
  double less = a < b ? a : b;
  double equal = ops_f64_of(ops_u64_of(a) | ops_u64_of(b));
  double r = a != a ? b : b != b ? a : a == b ? equal : less;
  return ops_nan2(r, a, b);
}
OPS_INLINE double ops_max64(double a, double b) {
  double more = a > b ? a : b;
  double equal = ops_f64_of(ops_u64_of(a) & ops_u64_of(b));
  double r = a != a ? b : b != b ? a : a == b ? equal : more;
  return ops_nan2(r, a, b);
}

/* f32 min and max with every modifier, and the three-operand forms (their names end in /3). */
/* clang-format off */
#define MINMAX_2(op, words, fn, f)                                                                                  \
  OP2(op words ".f32", fn##_f32, f32c, f32, f32, f(a, b))                                                           \
  OP2(op ".ftz" words ".f32", fn##_ftz_f32, f32z, f32z, f32z, f(a, b))
/* clang-format on */
/* clang-format off */
#define MINMAX_3(op, words, fn, f, pre)                                                                             \
  OP3(op words ".f32/3", fn##3_f32, f32c, f32, f32, f32, f(f(pre(a), pre(b)), pre(c)))                              \
  OP3(op ".ftz" words ".f32/3", fn##3_ftz_f32, f32z, f32z, f32z, f32z, f(f(pre(a), pre(b)), pre(c)))
/* clang-format on */
/* clang-format off */
#define MINMAX32(op, fn)                                                                                            \
  MINMAX_2(op, "", fn, ops_##fn##32) MINMAX_2(op, ".NaN", fn##_nan, ops_##fn##_nan32)                               \
  MINMAX_2(op, ".xorsign.abs", fn##_xorsign, ops_##fn##_xorsign32)                                                  \
  MINMAX_2(op, ".NaN.xorsign.abs", fn##_nan_xorsign, ops_##fn##_nan_xorsign32)                                      \
  MINMAX_3(op, "", fn, ops_##fn##32, ) MINMAX_3(op, ".NaN", fn##_nan, ops_##fn##_nan32, )                           \
  MINMAX_3(op, ".abs", fn##_abs, ops_##fn##32, __builtin_fabsf)                                                     \
  MINMAX_3(op, ".NaN.abs", fn##_nan_abs, ops_##fn##_nan32, __builtin_fabsf)
/* clang-format on */

#define OPS_DEF "exec/instructions/ops_float.def"
#define OPS_TABLE ops_float
#include "exec/instructions/ops_expand.h"
