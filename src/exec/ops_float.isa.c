/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of f32 and f64 arithmetic with IEEE rounding; the forms stand in ops_float.def. */
#include <fenv.h>

#include "exec/ops_math.h"

/* The variants of one f32 operation: D the result's kind, S the sources'; the directed modes share one function and
 * take the mode from aux. */
#define ROUND_NAMES(op, mode, variant, type) op "." mode variant "." type
#define FLOAT32_VARIANTS(X, op, fn, expr)                                                                           \
  X(op, fn, f32c, f32, "", expr) X(op, fn, f32z, f32z, ".ftz", expr)                                                \
  X(op, fn, f32s, f32, ".sat", expr) X(op, fn, f32zs, f32z, ".ftz.sat", expr)

#define FLOAT32_2_VARIANT(op, fn, D, S, text, expr)                                                                 \
  FN2(fn##_rn_##D, D, S, S, expr)                                                                                   \
  ROW2(op ".rn" text ".f32 " op text ".f32", fn##_rn_##D, OPS_RN, D, S, S)                                          \
  FNR2(fn##_dir_##D, D, S, S, expr)                                                                                 \
  ROW2(op ".rz" text ".f32", fn##_dir_##D, OPS_RZ, D, S, S)                                                         \
  ROW2(op ".rm" text ".f32", fn##_dir_##D, OPS_RM, D, S, S)                                                         \
  ROW2(op ".rp" text ".f32", fn##_dir_##D, OPS_RP, D, S, S)
#define FLOAT32_2(op, fn, expr) FLOAT32_VARIANTS(FLOAT32_2_VARIANT, op, fn, expr)

#define FLOAT32_1_VARIANT(op, fn, D, S, text, expr)                                                                 \
  FN1(fn##_rn_##D, D, S, expr)                                                                                      \
  ROW1(op ".rn" text ".f32", fn##_rn_##D, OPS_RN, D, S)                                                             \
  FNR1(fn##_dir_##D, D, S, expr)                                                                                    \
  ROW1(op ".rz" text ".f32", fn##_dir_##D, OPS_RZ, D, S)                                                            \
  ROW1(op ".rm" text ".f32", fn##_dir_##D, OPS_RM, D, S)                                                            \
  ROW1(op ".rp" text ".f32", fn##_dir_##D, OPS_RP, D, S)
#define FLOAT32_1(op, fn, expr)                                                                                     \
  FLOAT32_1_VARIANT(op, fn, f32c, f32, "", expr) FLOAT32_1_VARIANT(op, fn, f32z, f32z, ".ftz", expr)

#define FLOAT64_2(op, fn, expr)                                                                                     \
  FN2(fn##_rn_f64, f64, f64, f64, ops_nan2(expr, a, b))                                                             \
  ROW2(op ".rn.f64 " op ".f64", fn##_rn_f64, OPS_RN, f64, f64, f64)                                                 \
  FNR2(fn##_dir_f64, f64, f64, f64, ops_nan2(expr, a, b))                                                           \
  ROW2(op ".rz.f64", fn##_dir_f64, OPS_RZ, f64, f64, f64)                                                           \
  ROW2(op ".rm.f64", fn##_dir_f64, OPS_RM, f64, f64, f64)                                                           \
  ROW2(op ".rp.f64", fn##_dir_f64, OPS_RP, f64, f64, f64)
#define FLOAT64_1(op, fn, expr)                                                                                     \
  FN1(fn##_rn_f64, f64, f64, ops_nan1(expr, a))                                                                     \
  ROW1(op ".rn.f64", fn##_rn_f64, OPS_RN, f64, f64)                                                                 \
  FNR1(fn##_dir_f64, f64, f64, ops_nan1(expr, a))                                                                   \
  ROW1(op ".rz.f64", fn##_dir_f64, OPS_RZ, f64, f64)                                                                \
  ROW1(op ".rm.f64", fn##_dir_f64, OPS_RM, f64, f64)                                                                \
  ROW1(op ".rp.f64", fn##_dir_f64, OPS_RP, f64, f64)

/* fma in the directed modes. With the instruction, one loop under the mode. Without it, f32 sums to odd in double under
 * the default mode and rounds under the asked one; f64 asks the C library, which needs the whole environment set. */
#if defined(__FMA__)
#define FMA32_DIRECTED(form, D, S) \
  OPS_FORM3(form, fma_dir_##D, OPS_ROUND_ON, OPS_ROUND_OFF, D, S, S, S, ops_fma32(a, b, c))
#define FMA64_DIRECTED(form) \
  OPS_FORM3(form, fma_dir_f64, OPS_ROUND_ON, OPS_ROUND_OFF, f64, f64, f64, f64, ops_nan3(ops_fma64(a, b, c), a, b, c))
#else
#define FMA32_DIRECTED(form, D, S)                                                                                  \
  OPS_CHOSEN void fma_dir_##D##_##form(exec_warp *w, const exec_instr *in) {                                        \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                                                      \
    _Alignas(64) double sum[32];                                                                                    \
    OPS_READ(S, a, 0) OPS_READ(S, b, 1) OPS_READ(S, c, 2) OPS_LANES_##form                                          \
    OPS_LOOP { OPS_LANE(S, a) OPS_LANE(S, b) OPS_LANE(S, c) sum[l] = ops_odd_sum((double)a * b, c); }               \
    OPS_ROUND_ON;                                                                                                   \
    OPS_LOOP { OPS_STORE_##form(D, ((float)sum[l])); }                                                              \
    OPS_ROUND_OFF;                                                                                                  \
  }
#define FMA64_DIRECTED(form)                                                                                        \
  OPS_FORM3(form, fma_dir_f64, int saved = fma_round_enter(in->aux >> OPS_AUX_SHIFT), fesetround(saved), f64, f64, f64, f64, \
            ops_nan3(ops_fma64(a, b, c), a, b, c))
OPS_CHOSEN int fma_round_enter(uint32_t mode) {
  int saved = fegetround();
  fesetround(mode == OPS_RZ ? FE_TOWARDZERO : mode == OPS_RM ? FE_DOWNWARD : FE_UPWARD);
  return saved;
}
#endif

#define ops_fn_fma_dir_f32c(form) FMA32_DIRECTED(form, f32c, f32)
#define ops_fn_fma_dir_f32z(form) FMA32_DIRECTED(form, f32z, f32z)
#define ops_fn_fma_dir_f32s(form) FMA32_DIRECTED(form, f32s, f32)
#define ops_fn_fma_dir_f32zs(form) FMA32_DIRECTED(form, f32zs, f32z)
#define ops_fn_fma_dir_f64(form) FMA64_DIRECTED(form)

#define FMA32_VARIANT(op, fn, D, S, text, expr)                                                                     \
  FN3(fma_rn_##D, D, S, S, S, ops_fma32(a, b, c))                                                                   \
  ROW3("fma.rn" text ".f32 mad.rn" text ".f32 mad" text ".f32", fma_rn_##D, OPS_RN, D, S, S, S)                     \
  FN(fma_dir_##D)                                                                                                   \
  ROW3("fma.rz" text ".f32 mad.rz" text ".f32", fma_dir_##D, OPS_RZ, D, S, S, S)                                    \
  ROW3("fma.rm" text ".f32 mad.rm" text ".f32", fma_dir_##D, OPS_RM, D, S, S, S)                                    \
  ROW3("fma.rp" text ".f32 mad.rp" text ".f32", fma_dir_##D, OPS_RP, D, S, S, S)
#define FLOAT32_FMA FLOAT32_VARIANTS(FMA32_VARIANT, , , )
#define FLOAT64_FMA                                                                                                 \
  FN3(fma_rn_f64, f64, f64, f64, f64, ops_nan3(ops_fma64(a, b, c), a, b, c))                                        \
  ROW3("fma.rn.f64 mad.rn.f64 mad.f64", fma_rn_f64, OPS_RN, f64, f64, f64, f64)                                     \
  FN(fma_dir_f64)                                                                                                   \
  ROW3("fma.rz.f64 mad.rz.f64", fma_dir_f64, OPS_RZ, f64, f64, f64, f64)                                            \
  ROW3("fma.rm.f64 mad.rm.f64", fma_dir_f64, OPS_RM, f64, f64, f64, f64)                                            \
  ROW3("fma.rp.f64 mad.rp.f64", fma_dir_f64, OPS_RP, f64, f64, f64, f64)

/* Equal operands are the same number or zeros of different sign: or-ing (and-ing) the signs gives the smaller (larger).
 * Two NaNs go through a + b and become the canonical NaN (f64: a's payload). */
OPS_INLINE float ops_min32(float a, float b) {
  float less = a < b ? a : b;
  float equal = ops_f32_of(ops_u32_of(a) | ops_u32_of(b));
  return a != a ? b : b != b ? a : a == b ? equal : less;
}
OPS_INLINE float ops_max32(float a, float b) {
  float more = a > b ? a : b;
  float equal = ops_f32_of(ops_u32_of(a) & ops_u32_of(b));
  return a != a ? b : b != b ? a : a == b ? equal : more;
}
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

#define OPS_DEF "exec/ops_float.def"
#define OPS_TABLE ops_float
#include "exec/ops_expand.h"
