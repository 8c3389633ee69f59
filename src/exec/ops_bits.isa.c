/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of moves, logic, shifts and bit fields; the forms stand in ops_bits.def. */
#include "exec/ops_lane.h"

/* Predicates: all 32 lanes are one word. */
#define OPS_PRED(form, fn, expr)                                          \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {        \
    ops_put_pred(w, in->dst, (expr), OPS_LIVE_##form);                     \
  }
#define ops_fn_mov_pred(form) OPS_PRED(form, mov_pred, ops_get_pred(w, in, 0))
#define ops_fn_not_pred(form) OPS_PRED(form, not_pred, ~ops_get_pred(w, in, 0))
#define ops_fn_and_pred(form) OPS_PRED(form, and_pred, ops_get_pred(w, in, 0) & ops_get_pred(w, in, 1))
#define ops_fn_or_pred(form) OPS_PRED(form, or_pred, ops_get_pred(w, in, 0) | ops_get_pred(w, in, 1))
#define ops_fn_xor_pred(form) OPS_PRED(form, xor_pred, ops_get_pred(w, in, 0) ^ ops_get_pred(w, in, 1))

/* SHIFT(fn, D, A, expr): two sources, the second a u32 amount b. Without AVX2 there is no shift by a different amount
 * in each lane; there a constant amount (nearly all are) gets a loop of its own. */
#if defined(__AVX2__)
#define OPS_SHIFT(form, fn, D, A, expr) OPS_FORM2(form, fn, (void)0, (void)0, D, A, u32, expr)
#else
#define OPS_SHIFT(form, fn, D, A, expr)                                    \
  OPS_FORM2(form, fn##_lanes, (void)0, (void)0, D, A, u32, expr)           \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {        \
    if (!(in->src[1] & 1)) {                                               \
      fn##_lanes_##form(w, in);                                            \
      return;                                                              \
    }                                                                      \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                             \
    const uint32_t b = *OPS_SLOT(const uint32_t, in->src[1]);              \
    OPS_READ(A, a, 0) OPS_LANES_##form                                     \
    OPS_LOOP { OPS_LANE(A, a) OPS_STORE_##form(D, (expr)); }               \
  }
#endif

#define OPS_DEF "exec/ops_bits.def"
#define OPS_TABLE ops_bits
#include "exec/ops_expand.h"
