/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of comparison and selection; the forms stand in ops_compare.def.
 *
 * A comparison becomes one bit per lane. setp combines the bits with its predicate source and stores them; set does the
 * same and then spreads them to a value per lane, which aux names. One function is both forms: it looks at the mask. */
#include "exec/instructions/ops_half.h"

#define EXPONENT64 UINT64_C(0x7ff0000000000000)

/* f16 with .ftz: subnormals become zeros of the same sign. */
#define CELL_h16z uint32_t
#define LANE_h16z float
#define DEC_h16z(x) ops_of_f16((x)&0x7c00u ? (x)&0xffffu : (x)&0x8000u)
#define TYPE_h16z PTX_F16
#define OPS_WIDE_h16 32
#define OPS_WIDE_h16z 32
#define OPS_WIDE_h16b 32
#define OPS_WIDE_f32b 32
#define OPS_WIDE_f64b 64

/* --- set: what true is, by aux. --- */

enum { TRUE_32, TRUE_16, ONE_F32, ONE_F16, ONE_BF16 };
OPS_CHOSEN const uint32_t true_values[] = {UINT32_MAX, 0xffffu, 0x3f800000u, 0x3c00u, 0x3f80u};

OPS_INLINE uint32_t set_condition(const exec_warp *w, const exec_instr *in, uint32_t compared) {
  if (!(in->aux & OPS_AUX_BOOLEAN)) return compared;
  return ops_combine(in->aux, compared, ops_get_pred(w, in, 2));
}

/* What set stores: `low` where the bit of p is set, `high` as well where that of q is. */
static __attribute__((noinline)) void set_store(exec_warp *w, const exec_instr *in, uint32_t p, uint32_t low,
                                                uint32_t q, uint32_t high) {
  uint32_t *d = OPS_SLOT(uint32_t, in->dst);
  OPS_LANES_some if (w->mask == UINT32_MAX) {
    OPS_LOOP { d[l] = (p & ops_bit_32[l] ? low : 0) | (q & ops_bit_32[l] ? high : 0); }
  }
  else {
    OPS_LOOP { d[l] = lanes[l] ? (p & ops_bit_32[l] ? low : 0) | (q & ops_bit_32[l] ? high : 0) : d[l]; }
  }
}

#define OPS_SET(fn, K, expr)                                                                                         \
  OPS_CHOSEN void fn##_all(exec_warp *w, const exec_instr *in) {                                                     \
    _Alignas(64) OPS_FLAG_(OPS_WIDE_##K) t[32];                                                                      \
    OPS_READ(K, a, 0) OPS_READ(K, b, 1) OPS_LOOP { OPS_LANE(K, a) OPS_LANE(K, b) t[l] = (expr) ? -1 : 0; }           \
    set_store(w, in, set_condition(w, in, OPS_BITS_(OPS_WIDE_##K)(t)), true_values[in->aux >> OPS_AUX_SHIFT], 0, 0); \
  }                                                                                                                  \
  OPS_BOTH(fn)

/* X_SET: the set rows of one comparison: cmp and what stands between it and the types, S the source type. */
/* clang-format off */
#define INT_SET(cmp, S, fn, K)                                                                                      \
  ROW2("set." cmp ".u32." S " set." cmp ".s32." S, fn, TRUE_32, u32, K, K)                                          \
  ROW2("set." cmp ".f32." S, fn, ONE_F32, f32, K, K)                                                                \
  ROW2("set." cmp ".f16." S, fn, ONE_F16, f16, K, K) ROW2("set." cmp ".bf16." S, fn, ONE_BF16, bf16, K, K)
/* clang-format on */
/* clang-format off */
#define HALF_SET(cmp, S, fn, K)                                                                                     \
  INT_SET(cmp, S, fn, K) ROW2("set." cmp ".u16." S " set." cmp ".s16." S, fn, TRUE_16, u16, K, K)
/* clang-format on */

/* clang-format off */
#define COMPARE(SET, cmp, between, S, fn, K, expr)                                                                  \
  TEST2("setp." cmp between "." S, setp_##fn, K, K, expr)                                                           \
  FNB(OPS_SET, set_##fn, K, expr) SET(cmp between, S, set_##fn, K)
/* clang-format on */
/* clang-format off */
#define EQUAL_TEST(SET, between, S, fn, K)                                                                          \
  COMPARE(SET, "eq", between, S, eq_##fn, K, a == b) COMPARE(SET, "ne", between, S, ne_##fn, K, a != b)
/* clang-format on */
/* clang-format off */
#define SIGNED_TEST(S, fn, K)                                                                                       \
  EQUAL_TEST(INT_SET, "", S, fn, K)                                                                                 \
  COMPARE(INT_SET, "lt", "", S, lt_##fn, K, a < b) COMPARE(INT_SET, "le", "", S, le_##fn, K, a <= b)                \
  COMPARE(INT_SET, "gt", "", S, gt_##fn, K, a > b) COMPARE(INT_SET, "ge", "", S, ge_##fn, K, a >= b)
/* clang-format on */
/* clang-format off */
#define UNSIGNED_TEST(S, fn, K)                                                                                     \
  SIGNED_TEST(S, fn, K)                                                                                             \
  ALSO("lo", S, lt_##fn, K) ALSO("ls", S, le_##fn, K) ALSO("hi", S, gt_##fn, K) ALSO("hs", S, ge_##fn, K)
/* clang-format on */
/* clang-format off */
#define ALSO(cmp, S, fn, K)                                                                                         \
  ROW("setp." cmp "." S, setp_##fn, 0, PTX_PRED, PTX_TYPE_NONE, TYPE_##K, TYPE_##K) INT_SET(cmp, S, set_##fn, K)
/* clang-format on */

/* clang-format off */
#define FLOAT_COMPARISONS(X, SET, between, S, fn, K)                                                                \
  X(SET, "eq", between, S, eq_##fn, K, a == b) X(SET, "ne", between, S, ne_##fn, K, (a < b) | (a > b))              \
  X(SET, "lt", between, S, lt_##fn, K, a < b) X(SET, "le", between, S, le_##fn, K, a <= b)                          \
  X(SET, "gt", between, S, gt_##fn, K, a > b) X(SET, "ge", between, S, ge_##fn, K, a >= b)                          \
  X(SET, "equ", between, S, equ_##fn, K, !((a < b) | (a > b))) X(SET, "neu", between, S, neu_##fn, K, a != b)       \
  X(SET, "ltu", between, S, ltu_##fn, K, !(a >= b)) X(SET, "leu", between, S, leu_##fn, K, !(a > b))                \
  X(SET, "gtu", between, S, gtu_##fn, K, !(a <= b)) X(SET, "geu", between, S, geu_##fn, K, !(a < b))                \
  X(SET, "num", between, S, num_##fn, K, (a == a) & (b == b)) X(SET, "nan", between, S, nan_##fn, K, (a != a) | (b != b))
/* clang-format on */
#define FLOAT_TEST(SET, between, S, fn, K) FLOAT_COMPARISONS(COMPARE, SET, between, S, fn, K)

/* --- Packed: each half compared; setp gives p for the lower and q for the upper one. --- */

#define OPS_COMPARE_HALVES(fn, K, expr)                                                                      \
  static __attribute__((noinline))                                                                           \
  uint64_t bits_##fn(exec_warp *w, const exec_instr *in) { /* the upper halves' above */                     \
    _Alignas(64) int32_t low[32], high[32];                                                                  \
    OPS_READ(u32, x, 0) OPS_READ(u32, y, 1) OPS_LOOP {                                                       \
      {                                                                                                      \
        const float a = DEC_##K(px[l] & 0xffffu), b = DEC_##K(py[l] & 0xffffu);                              \
        low[l] = (expr) ? -1 : 0;                                                                            \
      }                                                                                                      \
      {                                                                                                      \
        const float a = DEC_##K(px[l] >> 16), b = DEC_##K(py[l] >> 16);                                      \
        high[l] = (expr) ? -1 : 0;                                                                           \
      }                                                                                                      \
    }                                                                                                        \
    return (uint64_t)set_condition(w, in, ops_bits_32(high)) << 32 | set_condition(w, in, ops_bits_32(low)); \
  }                                                                                                          \
  OPS_CHOSEN void setp_##fn##_all(exec_warp *w, const exec_instr *in) {                                      \
    const uint64_t bits = bits_##fn(w, in);                                                                  \
    ops_put_pred(w, in->dst, (uint32_t)bits, w->mask);                                                       \
    if (in->aux & OPS_AUX_SECOND) ops_put_pred(w, in->dst2, (uint32_t)(bits >> 32), w->mask);                \
  }                                                                                                          \
  OPS_BOTH(setp_##fn)                                                                                        \
  OPS_CHOSEN void set_##fn##_all(exec_warp *w, const exec_instr *in) {                                       \
    const uint32_t value = true_values[in->aux >> OPS_AUX_SHIFT];                                            \
    const uint64_t bits = bits_##fn(w, in);                                                                  \
    set_store(w, in, (uint32_t)bits, value, (uint32_t)(bits >> 32), value << 16);                            \
  }                                                                                                          \
  OPS_BOTH(set_##fn)
/* clang-format off */
#define COMPARE_HALVES(SET, cmp, between, S, fn, K, expr)                                                           \
  FNB(OPS_COMPARE_HALVES, fn, K, expr)                                                                              \
  ROW("setp." cmp between "." S, setp_##fn, 0, PTX_PRED, PTX_TYPE_NONE, PTX_B32, PTX_B32)                           \
  ROW("set." cmp between ".u32." S " set." cmp between ".s32." S, set_##fn, TRUE_16, PTX_B32, PTX_TYPE_NONE, PTX_B32, PTX_B32) \
  ROW("set." cmp between "." S "." S, set_##fn, SET, PTX_B32, PTX_TYPE_NONE, PTX_B32, PTX_B32)
/* clang-format on */
#define FLOAT_TEST2(between, S, fn, K, D, one) FLOAT_COMPARISONS(COMPARE_HALVES, one, between, S, fn, K)

/* --- Selection. --- */

#define OPS_SELECT(form, fn, K, bits)                                                 \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                   \
    CELL_##K *d = OPS_SLOT(CELL_##K, in->dst);                                        \
    const CELL_##K c = ops_get_pred(w, in, 2);                                        \
    OPS_READ(K, a, 0) OPS_READ(K, b, 1) OPS_LANES_##form OPS_LOOP {                   \
      OPS_LANE(K, a) OPS_LANE(K, b) OPS_STORE_##form(K, (c & OPS_BIT(bits) ? a : b)); \
    }                                                                                 \
  }

/* clang-format off */
#define SELECT_SIGN(C, ftz, fn, K)                                                                                  \
  FN3(slct_32_##fn, u32, u32, u32, K, c >= 0 ? a : b) FN3(slct_64_##fn, u64, u64, u64, K, c >= 0 ? a : b)           \
  ROW3("slct" ftz ".b32." C " slct" ftz ".u32." C " slct" ftz ".s32." C, slct_32_##fn, 0, u32, u32, u32, K)         \
  ROW3("slct" ftz ".b16." C " slct" ftz ".u16." C " slct" ftz ".s16." C, slct_32_##fn, 0, u16, u16, u16, K)         \
  ROW3("slct" ftz ".f32." C, slct_32_##fn, 0, f32, f32, f32, K)                                                     \
  ROW3("slct" ftz ".b64." C " slct" ftz ".u64." C " slct" ftz ".s64." C, slct_64_##fn, 0, u64, u64, u64, K)         \
  ROW3("slct" ftz ".f64." C, slct_64_##fn, 0, f64, f64, f64, K)
/* clang-format on */

#define OPS_DEF "exec/instructions/ops_compare.def"
#define OPS_TABLE ops_compare
#include "exec/instructions/ops_expand.h"
