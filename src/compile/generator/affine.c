/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are linear in the lane's number, as the few numbers that say which (gen_affine, generate.h). Vectors are
 * made of them only where an instruction needs one; an access to memory takes them as they are (steps.c). */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "compile/generator/generate.h"
#include "exec/launch/native.h"

static value number(LLVMTypeRef type, int64_t v) { return LLVMConstInt(type, (uint64_t)v, true); }

static value ladder(generator *g, LLVMTypeRef type, int64_t step) {
  value steps[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) steps[l] = number(type, l * step);
  return LLVMConstVector(steps, EXEC_LANES);
}

static value scaled(generator *g, value v, int64_t factor) {
  return factor == 1 ? v : LLVMBuildMul(g->b, v, number(LLVMTypeOf(v), factor), "");
}

static value widened(generator *g, value narrow, bool is_signed) {
  return is_signed ? LLVMBuildSExt(g->b, narrow, g->i64, "") : LLVMBuildZExt(g->b, narrow, g->i64, "");
}

value gen_affine_vector(generator *g, const gen_affine *a) {
  LLVMTypeRef type = LLVMTypeOf(a->base);
  value v = LLVMBuildAdd(g->b, gen_splat(g, a->base), ladder(g, type, a->step), "");
  if (!a->narrow) return v;
  value narrow = LLVMBuildAdd(g->b, gen_splat(g, a->narrow), ladder(g, g->i32, a->narrow_step), "");
  LLVMTypeRef wide = gen_vector_type(g->i64);
  narrow = a->is_signed ? LLVMBuildSExt(g->b, narrow, wide, "") : LLVMBuildZExt(g->b, narrow, wide, "");
  if (a->factor != 1) narrow = LLVMBuildMul(g->b, narrow, gen_splat(g, number(g->i64, a->factor)), "");
  return LLVMBuildAdd(g->b, v, narrow, "");
}

int64_t gen_affine_step(const gen_affine *a) { return a->step + (a->narrow ? a->factor * a->narrow_step : 0); }

static value narrow_at(generator *g, const gen_affine *a, value lane) {
  return LLVMBuildAdd(g->b, a->narrow, LLVMBuildMul(g->b, lane, number(g->i32, a->narrow_step), ""), "");
}

value gen_affine_at(generator *g, const gen_affine *a, value lane) {
  LLVMTypeRef type = LLVMTypeOf(a->base);
  value number_of = type == g->i64 ? LLVMBuildZExt(g->b, lane, type, "") : lane;
  value v = LLVMBuildAdd(g->b, a->base, LLVMBuildMul(g->b, number_of, number(type, a->step), ""), "");
  if (!a->narrow) return v;
  return LLVMBuildAdd(g->b, v, scaled(g, widened(g, narrow_at(g, a, lane), a->is_signed), a->factor), "");
}

/* The numbers of 32 bits are less than 2^31 apart: where they wrap, the last is on the wrong side of the first. */
value gen_affine_holds(generator *g, const gen_affine *a, value low, value high) {
  if (!a->narrow) return NULL;
  LLVMIntPredicate order =
      a->narrow_step > 0 ? (a->is_signed ? LLVMIntSLE : LLVMIntULE) : (a->is_signed ? LLVMIntSGE : LLVMIntUGE);
  return LLVMBuildICmp(g->b, order, narrow_at(g, a, low), narrow_at(g, a, high), "");
}

/* ---- operands ---- */

static const gen_affine *affine_operand(const generator *g, uint32_t k) {
  uint32_t slot = g->plan->slot_of[k];
  return slot != NATIVE_NONE && g->slots[slot].affine.base ? &g->slots[slot].affine : NULL;
}

const gen_affine *gen_affine_operand(const generator *g, uint32_t k) { return affine_operand(g, k); }

void gen_put_affine(generator *g, uint32_t k, gen_affine a) {
  gen_put(g, k, NULL, NULL);
  g->slots[g->plan->slot_of[k]].affine = a;
}

static bool special(generator *g, const native_instr *n) {
  bool is_tid = g->rows && n->aux == PTX_SREG_TID_X;
  if (n->guard != NATIVE_NONE || !n->write_count || (n->aux != PTX_SREG_LANEID && !is_tid)) return false;
  value first = is_tid ? gen_field(g, g->i32, g->warp, g->at->warp_tid) : gen_i32(g, 0);
  gen_put_affine(g, n->operands, (gen_affine){.base = first, .step = 1});
  return true;
}

/* ---- sums ---- */

/* sum += factor * (x, extended to 64 bits). It is the first such part: of an instruction's sources one is extended, and
 * the product comes before what is added. */
static bool add_widened(generator *g, gen_affine *sum, const gen_affine *x, int64_t factor, bool is_signed) {
  FF_ASSERT(!x->narrow && !sum->narrow);
  sum->narrow = x->base;
  sum->narrow_step = x->step;
  sum->factor = factor;
  sum->is_signed = is_signed;
  return true;
}

/* sum += factor * x */
static bool add_scaled(generator *g, gen_affine *sum, const gen_affine *x, int64_t factor, bool narrows) {
  value base = x->base;
  int64_t step = x->step;
  if (narrows) base = LLVMBuildTrunc(g->b, base, g->i32, "");
  if (x->narrow && narrows) {
    base = LLVMBuildAdd(g->b, base, scaled(g, x->narrow, x->factor), "");
    step = gen_affine_step(x);
  } else if (x->narrow) {
    bool same = sum->narrow == x->narrow && sum->narrow_step == x->narrow_step && sum->is_signed == x->is_signed;
    if (sum->narrow && !same) return false;
    *sum = (gen_affine){
        sum->base, sum->step, x->narrow, x->narrow_step, (same ? sum->factor : 0) + factor * x->factor, x->is_signed};
  }
  sum->base = LLVMBuildAdd(g->b, sum->base, scaled(g, base, factor), "");
  sum->step += factor * step;
  return true;
}

static bool add_scalar(generator *g, gen_affine *sum, value x, int64_t factor, const plan_linear *l, bool widens) {
  if (widens) x = widened(g, x, l->is_signed);
  if (l->narrows) x = LLVMBuildTrunc(g->b, x, g->i32, "");
  sum->base = LLVMBuildAdd(g->b, sum->base, scaled(g, x, factor), "");
  return true;
}

static bool add_source(generator *g, gen_affine *sum, const native_instr *n, uint32_t s, const plan_linear *l) {
  const gen_affine *x = affine_operand(g, n->operands + s);
  bool widens = l->widens && s == l->first;
  if (!x) {
    value one = gen_scalar(g, n->operands + s);
    return one && add_scalar(g, sum, one, l->factor[s], l, widens);
  }
  return widens ? add_widened(g, sum, x, l->factor[s], l->is_signed) : add_scaled(g, sum, x, l->factor[s], l->narrows);
}

/* sum += source 0 * source 1, if each is one number. */
static bool add_product(generator *g, gen_affine *sum, const native_instr *n, const plan_linear *l) {
  value a = gen_scalar(g, n->operands), b = a ? gen_scalar(g, n->operands + 1) : NULL;
  if (!b) return false;
  if (l->widens) a = widened(g, a, l->is_signed), b = widened(g, b, l->is_signed);
  sum->base = LLVMBuildAdd(g->b, sum->base, LLVMBuildMul(g->b, a, b, ""), "");
  return true;
}

static bool has_affine(const generator *g, const native_instr *n, const plan_linear *l) {
  for (uint32_t s = 0; s < PLAN_SOURCES; s++)
    if (l->factor[s] && affine_operand(g, n->operands + s)) return true;
  return false;
}

/* Are all its numbers small enough, so that steps between any two lanes are less than 2^31? */
static bool fits(const gen_affine *a, uint32_t bytes) {
  int64_t step = gen_affine_step(a);
  return plan_step_of(step, bytes) != PLAN_VARIES && a->factor <= INT32_MAX && a->factor >= -INT32_MAX;
}

bool gen_affine_form(generator *g, const native_instr *n) {
  plan_linear l;
  if (n->op == NATIVE_SREG) return special(g, n);
  if (!plan_is_linear(g->plan, n, &l) || !has_affine(g, n, &l)) return false;
  uint32_t to = n->operands + n->read_count, bytes = g->plan->operands[to].bytes;
  LLVMTypeRef type = bytes == 8 ? g->i64 : g->i32;
  gen_affine sum = {.base = number(type, n->op == NATIVE_ADD_IMMEDIATE ? n->immediate : 0)};
  if (l.product && !add_product(g, &sum, n, &l)) return false;
  for (uint32_t s = 0; s < PLAN_SOURCES; s++)
    if (l.factor[s] && !add_source(g, &sum, n, s, &l)) return false;
  if (bytes == 4) sum.step = (int32_t)sum.step;
  if (!fits(&sum, bytes)) return false;
  gen_put_affine(g, to, sum);
  return true;
}

/* ---- from block to block ---- */

/* i1: is what slot s has linear, with this step? NULL: it is. Afterwards it is taken for that. */
static value settle_slot(generator *g, uint32_t s, int32_t step, gen_affine *settled) {
  const gen_slot *slot = &g->slots[s];
  value good = NULL;
  *settled = (gen_affine){.base = gen_one_of_all(g, s, slot), .step = step};
  if (slot->affine.base && gen_affine_step(&slot->affine) == step)
    return gen_affine_holds(g, &slot->affine, gen_i32(g, 0), gen_i32(g, EXEC_LANES - 1));
  /* the plan knows more than was made of it */
  good = gen_same(g, gen_slot_vector(g, s), gen_affine_vector(g, settled));
  return good;
}

void gen_settle_steps(generator *g, const uint32_t *blocks, uint32_t count, const uint64_t *live, uint32_t pc) {
  const plan *p = g->plan;
  if (!g->full || !p->steps) return;
  gen_affine *settled = ff_alloc((p->slot_count + 1) * sizeof *settled);
  value good = NULL;
  for (uint32_t s = 0; s < p->slot_count; s++)
    for (uint32_t n = 0; n < count && !settled[s].base; n++) {
      int32_t step = plan_passes(p, blocks[n], s) ? plan_step_in(p, blocks[n], s) : 0;
      if (!step) continue;
      value one = settle_slot(g, s, step, &settled[s]);
      if (one) good = good ? LLVMBuildAnd(g->b, good, one, "") : one;
    }
  if (good) gen_leave_unless(g, good, pc, live);
  for (uint32_t s = 0; s < p->slot_count; s++)
    if (settled[s].base) g->slots[s].affine = settled[s];
  free(settled);
}
