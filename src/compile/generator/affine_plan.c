/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions are linear in the lane's number if their sources are, and which slots are so between blocks:
 *
 *     in lane l:   first + l * step,   step a constant that is known when the code is made
 *
 * As "uniform", it is a guess that is tested where code comes from the interpreter. Steps are found for launches whose
 * warps are parts of rows (NATIVE_ROWS): what begins with tid.x, and laneid. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/generator/emit_plan.h"
#include "exec/core.h"

#define MAX_STEPS (UINT64_C(4) << 20) /* of all blocks and slots */
#define UNKNOWN INT32_MAX             /* not yet */

static uint32_t bytes_of(uint8_t kind) {
  static const uint8_t bytes[] = {
#define K(name, bytes, bits, class) bytes,
#include "exec/instructions/ops_kinds.def"
#undef K
  };
  return bytes[kind];
}

/* Is source s, or the result, a whole register to this instruction? */
static bool whole(uint8_t kind) {
  return kind == NATIVE_K_u32 || kind == NATIVE_K_s32 || kind == NATIVE_K_b32 || kind == NATIVE_K_u64 ||
         kind == NATIVE_K_s64 || kind == NATIVE_K_b64 || kind == NATIVE_K_t32 || kind == NATIVE_K_t64;
}

static bool is_constant(const plan *p, const native_instr *n, uint32_t s, bool is_signed, int64_t *v) {
  const native_operand *o = &p->operands[n->operands + s];
  if (p->slot_of[n->operands + s] != NATIVE_NONE || o->constant != 1) return false;
  *v = o->bytes == 8 ? (int64_t)o->value : is_signed ? (int64_t)(int32_t)o->value : (int64_t)(uint32_t)o->value;
  return *v >= -INT32_MAX && *v <= INT32_MAX;
}

/* One of the first two sources is a constant: the factor of the other. */
static bool product(const plan *p, const native_instr *n, bool is_signed, plan_linear *l) {
  int64_t v;
  for (uint32_t s = 0; s < 2; s++)
    if (is_constant(p, n, 1 - s, is_signed, &v)) {
      l->factor[s] = v;
      l->first = s;
      return v != 0;
    }
  return false;
}

/* The same of two factors and what is added to their product, which may also be the product of two registers. */
static bool product_and(const plan *p, const native_instr *n, bool is_signed, plan_linear *l) {
  l->factor[2] = 1;
  if (product(p, n, is_signed, l)) return true;
  l->factor[0] = l->factor[1] = 0;
  return l->product = true;
}

static bool convert(const native_instr *n, plan_linear *l) {
  uint8_t from = n->src_kind[0];
  bool low = from == NATIVE_K_w32u || from == NATIVE_K_w32s; /* of a register of 64 bits */
  if (!whole(n->dst_kind) || (!low && !whole(from)) || (low && bytes_of(n->dst_kind) == 8)) return false;
  l->factor[0] = 1;
  l->widens = bytes_of(from) < bytes_of(n->dst_kind);
  l->is_signed = from == NATIVE_K_s32;
  l->narrows = bytes_of(from) > bytes_of(n->dst_kind);
  return true;
}

bool plan_is_linear(const plan *p, const native_instr *n, plan_linear *l) {
  int64_t v;
  *l = (plan_linear){.is_signed = n->src_kind[0] == NATIVE_K_s32};
  if (n->guard != NATIVE_NONE || n->write_count != 1) return false;
  bool sign = l->is_signed;
  switch (n->op) {
  case NATIVE_ADD_IMMEDIATE: l->factor[0] = 1; return true;
  case NATIVE_NARROW: l->factor[0] = 1; return l->narrows = true;
  case NATIVE_WIDEN_ZERO:
  case NATIVE_WIDEN_SIGN:
    l->factor[0] = 1;
    l->is_signed = n->op == NATIVE_WIDEN_SIGN;
    return l->widens = true;
  case NATIVE_CONVERT: return convert(n, l);
  case NATIVE_MUL_WIDE: l->widens = true; return product(p, n, sign, l);
  case NATIVE_MAD_WIDE: l->widens = true; return product_and(p, n, sign, l);
  default: break;
  }
  if (n->op > NATIVE_SHL || !whole(n->src_kind[0]) || !whole(n->dst_kind)) return false;
  switch (n->op) {
  case NATIVE_MOVE:
  case NATIVE_NEG: l->factor[0] = n->op == NATIVE_NEG ? -1 : 1; return true;
  case NATIVE_ADD:
  case NATIVE_SUB:
    l->factor[0] = 1;
    l->factor[1] = n->op == NATIVE_SUB ? -1 : 1;
    return true;
  case NATIVE_MUL: return product(p, n, true, l);
  case NATIVE_MAD: return product_and(p, n, true, l);
  case NATIVE_SHL:
    if (!is_constant(p, n, 1, false, &v) || v > 30) return false;
    l->factor[0] = (int64_t)1 << v;
    return true;
  default: return false;
  }
}

/* The step of a register with so many bytes, if it is small enough that no more than one lane's bytes are between two
 * lanes; else PLAN_VARIES. */
int32_t plan_step_of(int64_t step, uint32_t bytes) {
  if (bytes == 4) step = (int32_t)step;
  return step >= -PLAN_STEP_MOST && step <= PLAN_STEP_MOST && step ? (int32_t)step : PLAN_VARIES;
}

typedef struct lattice { /* by slot: a step; 0: the same in all lanes, */
  int32_t *now;          /* PLAN_VARIES, UNKNOWN */
  uint64_t *uniform;
} lattice;

static int32_t operand_step(const plan *p, const lattice *at, uint32_t k) {
  uint32_t slot = p->slot_of[k];
  if (slot == NATIVE_NONE) return p->operands[k].constant ? 0 : PLAN_VARIES;
  return plan_has(at->uniform, slot) ? 0 : at->now[slot];
}

static int32_t result_step(const plan *p, const native_instr *n, const lattice *at) {
  plan_linear l;
  if (n->op == NATIVE_SREG && n->guard == NATIVE_NONE)
    return n->aux == PTX_SREG_LANEID || (p->rows && n->aux == PTX_SREG_TID_X) ? 1 : PLAN_VARIES;
  if (!plan_is_linear(p, n, &l)) return PLAN_VARIES;
  if (l.product && (operand_step(p, at, n->operands) || operand_step(p, at, n->operands + 1))) return PLAN_VARIES;
  int64_t step = 0;
  bool unknown = false;
  for (uint32_t s = 0; s < PLAN_SOURCES; s++) {
    if (!l.factor[s]) continue;
    int32_t one = operand_step(p, at, n->operands + s);
    if (one == PLAN_VARIES) return PLAN_VARIES;
    if (one == UNKNOWN) unknown = true;
    else step += l.factor[s] * one;
  }
  return unknown ? UNKNOWN : plan_step_of(step, p->operands[n->operands + n->read_count].bytes);
}

static void step_after(const plan *p, const native_instr *n, lattice *at) {
  int32_t step = n->write_count == 1 ? result_step(p, n, at) : PLAN_VARIES;
  plan_uniform_after(p, n, at->uniform);
  for (uint32_t w = 0; w < n->write_count; w++) {
    uint32_t slot = p->slot_of[n->operands + n->read_count + w];
    for (uint32_t twin = p->slots[slot].twin; twin != slot; twin = p->slots[twin].twin) at->now[twin] = PLAN_VARIES;
    at->now[slot] = plan_has(at->uniform, slot) ? 0 : step;
  }
}

/* What comes to block b from this way. True: that was news. */
static bool arrive(const plan *p, const lattice *at, const uint64_t *spoilt, uint32_t b, int32_t *into) {
  bool news = false;
  for (uint32_t s = 0; s < p->slot_count; s++) {
    int32_t step = plan_has(at->uniform, s) ? 0 : at->now[s];
    if (plan_has(spoilt + (size_t)b * p->words, s) || !plan_has(p->blocks[b].live_in, s)) step = PLAN_VARIES;
    if (step == UNKNOWN || into[s] == step || into[s] == PLAN_VARIES) continue;
    into[s] = into[s] == UNKNOWN ? step : PLAN_VARIES;
    news = true;
  }
  return news;
}

static void find_steps(plan *p, const uint64_t *spoilt, int32_t *into) {
  lattice at = {ff_alloc((p->slot_count + 1) * sizeof *at.now), ff_alloc(p->words * sizeof *at.uniform)};
  for (uint64_t n = 0; n < (uint64_t)p->block_count * p->slot_count; n++)
    into[n] = n < p->slot_count ? PLAN_VARIES : UNKNOWN;
  for (bool news = true; news;) {
    news = false;
    for (uint32_t b = 0; b < p->block_count; b++) {
      const plan_block *block = &p->blocks[b];
      memcpy(at.now, into + (size_t)b * p->slot_count, p->slot_count * sizeof *at.now);
      memcpy(at.uniform, block->uniform_in, p->words * sizeof *at.uniform);
      for (uint32_t n = block->first; n < block->end; n++) step_after(p, &p->code[n], &at);
      for (uint32_t n = 0; n < block->next_count; n++)
        news |= arrive(p, &at, spoilt, block->next[n], into + (size_t)block->next[n] * p->slot_count);
    }
  }
  free(at.now);
  free(at.uniform);
}

void plan_find_steps(plan *p, const uint64_t *spoilt) {
  uint64_t count = (uint64_t)p->block_count * p->slot_count;
  if (count > MAX_STEPS) return;
  p->steps = ff_alloc((count + 1) * sizeof *p->steps);
  find_steps(p, spoilt, p->steps);
  for (uint32_t b = 0; b < p->block_count; b++)
    for (uint32_t s = 0; s < p->slot_count; s++) {
      int32_t *step = &p->steps[(size_t)b * p->slot_count + s];
      if (*step == UNKNOWN || *step == PLAN_VARIES || plan_has(p->blocks[b].uniform_in, s)) *step = 0;
    }
}
