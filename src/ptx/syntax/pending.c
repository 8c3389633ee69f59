/* SPDX-License-Identifier: Apache-2.0 */
/* Forward data flow over outstanding loads: see pending.h. A register becomes outstanding at its load and stops being
 * so at the first instruction that touches it without a guard, or that it guards. */
#include "ptx/syntax/pending.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/analysis/dataflow.h"

bool ptx_is_pending_load(const ptx_instr *instr) {
  ptx_space space = ptx_instr_space(instr);
  bool far = space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL || space == PTX_SPACE_LOCAL;
  switch (instr->opcode) {
  case PTX_OP_LD:
  case PTX_OP_LDU:
  case PTX_OP_ATOM: return far;
  case PTX_OP_WMMA: return far && ptx_has(instr, PTX_MOD_LOAD);
  case PTX_OP_MULTIMEM: return ptx_has(instr, PTX_MOD_LD_REDUCE);
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_SULD: return true;
  default: return false;
  }
}

typedef struct analysis {
  const ptx_func *func;
  const ptx_cfg *cfg;
  dataflow flow;
  uint64_t *out; /* per block: outstanding behind it */
  touched t;
} analysis;

static void find_destinations(analysis *a) {
  for (uint32_t i = 0; i < a->func->instr_count; i++) {
    if (!ptx_is_pending_load(&a->func->instrs[i])) continue;
    ptx_touched(&a->func->instrs[i], &a->t);
    for (uint32_t k = 0; k < a->t.writes; k++) ptx_dataflow_add(&a->flow, a->t.regs[a->t.reads + k]);
  }
}

/* What the instruction does to the set; true: it touches something outstanding. */
static bool step(analysis *a, const ptx_instr *instr, uint64_t *set) {
  bool touches = false, guarded = instr->guard != PTX_NO_REG;
  ptx_touched(instr, &a->t);
  for (uint32_t k = 0; k < a->t.reads + a->t.writes; k++) {
    uint32_t bit = a->flow.bit_of[a->t.regs[k]];
    if (bit == PTX_NO_REG || !bit_get(set, bit)) continue;
    touches = true;
    if (!guarded || a->t.regs[k] == instr->guard) bit_clear(set, bit);
  }
  if (!ptx_is_pending_load(instr)) return touches;
  for (uint32_t k = 0; k < a->t.writes; k++) bit_set(set, a->flow.bit_of[a->t.regs[a->t.reads + k]]);
  return touches;
}

/* Outstanding at the start of the block, into `set`. */
static void join(const analysis *a, const ptx_block *block, uint64_t *set) {
  memset(set, 0, a->flow.words * sizeof *set);
  for (uint32_t p = 0; p < block->predecessor_count; p++) {
    const uint64_t *before = a->out + block->predecessors[p] * a->flow.words;
    for (size_t w = 0; w < a->flow.words; w++) set[w] |= before[w];
  }
}

static bool pass(analysis *a, uint64_t *set) {
  bool changed = false;
  for (uint32_t i = 0; i < a->cfg->block_count; i++) {
    uint32_t b = a->cfg->by_order[i];
    const ptx_block *block = &a->cfg->blocks[b];
    uint64_t *out = a->out + b * a->flow.words;
    if (!block->reachable) continue;
    join(a, block, set);
    for (uint32_t k = block->first; k < block->end; k++) step(a, &a->func->instrs[k], set);
    changed |= memcmp(out, set, a->flow.words * sizeof *out) != 0;
    memcpy(out, set, a->flow.words * sizeof *out);
  }
  return changed;
}

/* The exact answer; false: the passes did not settle. */
static bool solve(analysis *a, bool *flags) {
  uint64_t *set = ff_alloc((a->flow.words + 1) * sizeof *set);
  a->out = ff_alloc(a->cfg->block_count * a->flow.words * sizeof *a->out);
  int passes = 0;
  while (passes < DATAFLOW_PASSES && pass(a, set)) passes++;
  for (uint32_t b = 0; b < a->cfg->block_count; b++) {
    const ptx_block *block = &a->cfg->blocks[b];
    if (!block->reachable) continue;
    join(a, block, set);
    for (uint32_t i = block->first; i < block->end; i++) flags[i] = step(a, &a->func->instrs[i], set);
  }
  free(set);
  free(a->out);
  return passes < DATAFLOW_PASSES;
}

/* The coarse answer: whatever touches a register that some load fills. */
static void give_coarse(analysis *a, bool *flags) {
  for (uint32_t i = 0; i < a->func->instr_count; i++) {
    ptx_touched(&a->func->instrs[i], &a->t);
    flags[i] = false;
    for (uint32_t k = 0; k < a->t.reads + a->t.writes; k++) flags[i] |= a->flow.bit_of[a->t.regs[k]] != PTX_NO_REG;
  }
}

bool *ptx_pending_loads(const ptx_func *func, const ptx_cfg *cfg) {
  bool *flags = ff_alloc((func->instr_count + 1) * sizeof *flags);
  analysis a = {.func = func, .cfg = cfg};
  a.flow.bit_of = ff_alloc((func->reg_count + 1) * sizeof *a.flow.bit_of);
  memset(a.flow.bit_of, 0xff, (func->reg_count + 1) * sizeof *a.flow.bit_of);
  find_destinations(&a);
  a.flow.words = (a.flow.bit_count + 63) / 64;
  if (a.flow.words * cfg->block_count > DATAFLOW_WORDS || !solve(&a, flags)) give_coarse(&a, flags);
  free(a.flow.bit_of);
  free(a.t.regs);
  return flags;
}
