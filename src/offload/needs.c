/* SPDX-License-Identifier: Apache-2.0 */
/* What a region takes of the SM that it runs on: registers; and whether its addresses come from memory.
 *
 * Registers: the most 32-bit ones that are live at once in it, of those that it reads or writes itself. What is only
 * live across it stays where the warp came from. As for a kernel (ptx/analysis/liveness.c), a value that is written
 * counts at its instruction even if no instruction reads it; predicates take none. */
#include <stdlib.h>

#include "base/memory.h"
#include "offload/analysis.h"

typedef struct needs {
  const analysis *a;
  const offload_region *r;
  uint8_t *mine, *live; /* per register */
  uint32_t width, widest;
} needs;

static uint32_t width_of(const analysis *a, uint32_t reg) {
  if (reg >= a->func->reg_count) {
    const offload_other *other = &a->others.items[reg - a->func->reg_count];
    return other->param ? (uint32_t)((other->param->size + 3) / 4) : 1;
  }
  uint32_t bits = ptx_type_bits(a->func->regs[reg].type);
  return a->func->regs[reg].type == PTX_PRED ? 0 : bits <= 32 ? 1 : bits / 32;
}

static void set_live(needs *n, uint32_t reg, uint8_t live) {
  if (n->mine[reg] && n->live[reg] != live) n->width += live ? width_of(n->a, reg) : 0 - width_of(n->a, reg);
  n->live[reg] = live;
}

static void set_live_behind(needs *n, const ptx_block *block) {
  const analysis *a = n->a;
  for (uint32_t s = 0; s < block->successor_count; s++) {
    const uint64_t *set = block_set(a, a->live_in, block->successors[s]);
    for (size_t w = 0; w < a->flow.words; w++)
      for (uint64_t rest = set[w]; rest; rest &= rest - 1)
        set_live(n, a->reg_of_bit[w * 64 + (size_t)__builtin_ctzll(rest)], 1);
  }
}

static void note(needs *n, uint32_t instr, uint32_t width) {
  if (instr >= n->r->begin && instr < n->r->end && width > n->widest) n->widest = width;
}

/* From what is live behind the instruction to what is live before it. */
static void step_back(needs *n, uint32_t instr) {
  const touch *all = n->a->touches; /* NULL: the function has no register at all */
  const touch *first = all ? all + n->a->touch_first[instr] : NULL,
              *end = all ? all + n->a->touch_first[instr + 1] : NULL;
  uint32_t here = n->width;
  for (const touch *t = first; t < end; t++)
    if (t->flags & TOUCH_WRITE && !n->live[t->reg] && n->mine[t->reg]) here += width_of(n->a, t->reg);
  note(n, instr, here);
  for (const touch *t = first; t < end; t++)
    if (t->flags & TOUCH_WRITE && !(t->flags & TOUCH_MAYBE)) set_live(n, t->reg, 0);
  for (const touch *t = first; t < end; t++)
    if (t->flags & TOUCH_READ) set_live(n, t->reg, 1);
  note(n, instr, n->width);
}

uint32_t region_registers(const analysis *a, const offload_region *r) {
  if (!a->live_in) return 0;
  needs n = {.a = a, .r = r, .mine = ff_alloc(a->reg_count + 1), .live = ff_alloc(a->reg_count + 1)};
  for (uint32_t k = a->touch_first[r->begin]; k < a->touch_first[r->end]; k++) n.mine[a->touches[k].reg] = 1;
  for (uint32_t b = a->cfg->block_of[r->begin]; b <= a->cfg->block_of[r->end - 1]; b++) {
    const ptx_block *block = &a->cfg->blocks[b];
    for (uint32_t reg = 0; reg < a->reg_count; reg++) n.live[reg] = 0;
    n.width = 0;
    set_live_behind(&n, block);
    for (uint32_t i = block->end; i-- > block->first;) step_back(&n, i);
  }
  free(n.mine);
  free(n.live);
  return n.widest;
}

/* ---- addresses from memory ---- */

static bool is_predicate(const analysis *a, uint32_t reg) {
  return reg < a->func->reg_count && a->func->regs[reg].type == PTX_PRED;
}

static bool is_floating(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->type_count; i++)
    if (ptx_type_class(instr->types[i]) == 'F') return true;
  return false;
}

/* Marks what the instruction writes, if that is an integer that a load brought or that was made of one. Predicates only
 * choose, and what is computed in floating point is no place in a structure. */
static bool taint(const analysis *a, uint32_t instr, uint8_t *loaded) {
  bool from_memory = a->accesses[instr] == ACCESS_LOAD, changed = false;
  if (is_floating(&a->func->instrs[instr])) return false;
  for (uint32_t k = a->touch_first[instr]; k < a->touch_first[instr + 1]; k++)
    from_memory |= a->touches[k].flags & TOUCH_READ && loaded[a->touches[k].reg];
  for (uint32_t k = a->touch_first[instr]; from_memory && k < a->touch_first[instr + 1]; k++) {
    if (!(a->touches[k].flags & TOUCH_WRITE) || loaded[a->touches[k].reg] || is_predicate(a, a->touches[k].reg))
      continue;
    loaded[a->touches[k].reg] = 1;
    changed = true;
  }
  return changed;
}

static bool follows(const analysis *a, uint32_t instr, const uint8_t *loaded) {
  const ptx_instr *in = &a->func->instrs[instr];
  for (uint32_t i = 0; i < in->operand_count; i++)
    if (in->operands[i].kind == PTX_OPERAND_ADDRESS && in->operands[i].reg != PTX_NO_REG && loaded[in->operands[i].reg])
      return true;
  return false;
}

bool region_follows(const analysis *a, const offload_region *r) {
  uint8_t *loaded = ff_alloc(a->reg_count + 1);
  bool changed = true, found = false;
  for (int pass = 0; changed && pass < DATAFLOW_PASSES; pass++) {
    changed = false;
    for (uint32_t i = r->begin; i < r->end; i++) changed |= taint(a, i, loaded);
  }
  for (uint32_t i = r->begin; i < r->end; i++) found |= a->accesses[i] && follows(a, i, loaded);
  free(loaded);
  return found;
}
