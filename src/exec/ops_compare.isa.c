/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of comparison and selection; the forms stand in ops_compare.def. */
#include "exec/ops_math.h"

#define EQUAL_TEST(text, fn, K)                                                                                     \
  TEST2("setp.eq." text, setp_eq_##fn, K, K, a == b) TEST2("setp.ne." text, setp_ne_##fn, K, K, a != b)
#define SIGNED_TEST(text, fn, K)                                                                                    \
  EQUAL_TEST(text, fn, K)                                                                                           \
  TEST2("setp.lt." text, setp_lt_##fn, K, K, a < b) TEST2("setp.le." text, setp_le_##fn, K, K, a <= b)              \
  TEST2("setp.gt." text, setp_gt_##fn, K, K, a > b) TEST2("setp.ge." text, setp_ge_##fn, K, K, a >= b)
#define UNSIGNED_TEST(text, fn, K)                                                                                  \
  EQUAL_TEST(text, fn, K)                                                                                           \
  TEST2("setp.lt." text " setp.lo." text, setp_lt_##fn, K, K, a < b)                                                \
  TEST2("setp.le." text " setp.ls." text, setp_le_##fn, K, K, a <= b)                                               \
  TEST2("setp.gt." text " setp.hi." text, setp_gt_##fn, K, K, a > b)                                                \
  TEST2("setp.ge." text " setp.hs." text, setp_ge_##fn, K, K, a >= b)
#define FLOAT_TEST(text, fn, K)                                                                                     \
  TEST2("setp.eq." text, setp_eq_##fn, K, K, a == b)                                                                \
  TEST2("setp.ne." text, setp_ne_##fn, K, K, (a < b) | (a > b))                                                     \
  TEST2("setp.lt." text, setp_lt_##fn, K, K, a < b) TEST2("setp.le." text, setp_le_##fn, K, K, a <= b)              \
  TEST2("setp.gt." text, setp_gt_##fn, K, K, a > b) TEST2("setp.ge." text, setp_ge_##fn, K, K, a >= b)              \
  TEST2("setp.equ." text, setp_equ_##fn, K, K, !((a < b) | (a > b)))                                                \
  TEST2("setp.neu." text, setp_neu_##fn, K, K, a != b)                                                              \
  TEST2("setp.ltu." text, setp_ltu_##fn, K, K, !(a >= b)) TEST2("setp.leu." text, setp_leu_##fn, K, K, !(a > b))    \
  TEST2("setp.gtu." text, setp_gtu_##fn, K, K, !(a <= b)) TEST2("setp.geu." text, setp_geu_##fn, K, K, !(a < b))    \
  TEST2("setp.num." text, setp_num_##fn, K, K, (a == a) & (b == b))                                                 \
  TEST2("setp.nan." text, setp_nan_##fn, K, K, (a != a) | (b != b))

#define OPS_SELECT(form, fn, K, bits)                                                                               \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                                 \
    CELL_##K *d = OPS_SLOT(CELL_##K, in->dst);                                                                      \
    const CELL_##K c = ops_get_pred(w, in, 2);                                                                      \
    OPS_READ(K, a, 0) OPS_READ(K, b, 1) OPS_LANES_##form                                                            \
    OPS_LOOP { OPS_LANE(K, a) OPS_LANE(K, b) OPS_STORE_##form(K, (c & OPS_BIT(bits) ? a : b)); }                    \
  }
#define ops_fn_selp_32(form) OPS_SELECT(form, selp_32, u32, 32)
#define ops_fn_selp_64(form) OPS_SELECT(form, selp_64, u64, 64)

#define OPS_DEF "exec/ops_compare.def"
#define OPS_TABLE ops_compare
#include "exec/ops_expand.h"
