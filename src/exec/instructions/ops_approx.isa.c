/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the approximate functions; the forms stand in ops_approx.def. */
#include "exec/instructions/ops_approx.h"

#include "exec/instructions/ops_half.h"

#define APPROX_1(op, fn, expr) \
  OP1(op ".approx.f32", fn##_f32, f32c, f32, expr) OP1(op ".approx.ftz.f32", fn##_ftz_f32, f32z, f32z, expr)

/* Both halves of a packed operand. */
#define HALVES_1(x, narrow, fn, widen) (narrow(fn(widen((x)&0xffffu))) | narrow(fn(widen((x) >> 16))) << 16)
OPS_INLINE float ex2_ftz(float a) { return ops_ftz32(ops_ex2(ops_ftz32(a))); }

#define OPS_DEF "exec/instructions/ops_approx.def"
#define OPS_TABLE ops_approx
#include "exec/instructions/ops_expand.h"
