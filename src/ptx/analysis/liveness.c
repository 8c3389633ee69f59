/* SPDX-License-Identifier: Apache-2.0 */
/* How many hardware registers a function needs: the widest cut of live values (backward data flow over the blocks).
 *
 * Only registers that are live into some block need a bit per block; the others are born and die inside one. What is
 * live behind an instruction: (live after - written without a guard) + read. A value that is written counts at its
 * instruction even if no instruction reads it. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/analysis/dataflow.h"

/* What the assembler adds on top of the widest cut (2 to 4 in kernels that it does not unroll further), what a function
 * that calls another has at least (its calling convention), and the bounds of the hardware. */
enum { OVERHEAD = 4, WITH_CALL = 24, FEWEST = 8, MOST = 255 };

typedef struct liveness {
  const ptx_func *func;
  const ptx_cfg *cfg;
  dataflow flow;
  uint64_t *in, *kill; /* per block */
  touched t;
} liveness;

static uint32_t weight(const ptx_func *func, uint32_t reg) {
  ptx_type type = func->regs[reg].type;
  uint32_t bits = ptx_type_bits(type);
  return type == PTX_PRED ? 0 : bits <= 32 ? 1 : bits / 32;
}

/* Finds the registers that are read in a block before it writes them: they get bits. `seen` marks (block + 1). */
static void find_exposed(liveness *l) {
  uint32_t *seen = ff_alloc((l->func->reg_count + 1) * sizeof *seen);
  for (uint32_t i = 0; i < l->func->instr_count; i++) {
    uint32_t block = l->cfg->block_of[i] + 1;
    const ptx_instr *instr = &l->func->instrs[i];
    ptx_touched(instr, &l->t);
    bool guarded = instr->guard != PTX_NO_REG;
    for (uint32_t k = 0; k < l->t.reads + (guarded ? l->t.writes : 0); k++)
      if (seen[l->t.regs[k]] != block) ptx_dataflow_add(&l->flow, l->t.regs[k]);
    for (uint32_t k = 0; !guarded && k < l->t.writes; k++) seen[l->t.regs[l->t.reads + k]] = block;
  }
  free(seen);
}

/* in[] gets what each block reads before writing, kill[] what it writes for certain. */
static void find_local_sets(liveness *l) {
  for (uint32_t i = 0; i < l->func->instr_count; i++) {
    const ptx_instr *instr = &l->func->instrs[i];
    uint64_t *in = l->in + l->cfg->block_of[i] * l->flow.words, *kill = l->kill + l->cfg->block_of[i] * l->flow.words;
    ptx_touched(instr, &l->t);
    bool guarded = instr->guard != PTX_NO_REG;
    for (uint32_t k = 0; k < l->t.reads + l->t.writes; k++) {
      uint32_t bit = l->flow.bit_of[l->t.regs[k]];
      if (bit == PTX_NO_REG || bit_get(kill, bit)) continue;
      if (k < l->t.reads || guarded) bit_set(in, bit);
      else bit_set(kill, bit);
    }
  }
}

/* Live behind the block, into `out`. */
static void join(const liveness *l, const ptx_block *block, uint64_t *out) {
  memset(out, 0, l->flow.words * sizeof *out);
  for (uint32_t s = 0; s < block->successor_count; s++) {
    const uint64_t *next = l->in + block->successors[s] * l->flow.words;
    for (size_t w = 0; w < l->flow.words; w++) out[w] |= next[w];
  }
}

static bool pass(liveness *l, uint64_t *out) {
  bool changed = false;
  for (uint32_t i = l->cfg->block_count; i-- > 0;) {
    uint32_t b = l->cfg->by_order[i];
    uint64_t *in = l->in + b * l->flow.words;
    const uint64_t *kill = l->kill + b * l->flow.words;
    join(l, &l->cfg->blocks[b], out);
    for (size_t w = 0; w < l->flow.words; w++) {
      uint64_t more = in[w] | (out[w] & ~kill[w]);
      changed |= more != in[w];
      in[w] = more;
    }
  }
  return changed;
}

/* A walk through the block's instructions finds no register live before it that the block's set does not have. */
static void check_block_start(const liveness *l, uint32_t block, const uint8_t *live) {
  for (uint32_t r = 0; r < l->func->reg_count; r++) {
    uint32_t bit = l->flow.bit_of[r];
    FF_ASSERT(!live[r] || (bit != PTX_NO_REG && bit_get(l->in + block * l->flow.words, bit)));
  }
}

/* The widest cut inside one block. `live` is per register: 1 live; `out` what is live behind the block. */
static uint32_t widest_in_block(liveness *l, const ptx_block *block, const uint64_t *out, const uint32_t *reg_of_bit,
                                uint8_t *live) {
  uint32_t width = 0, widest = 0;
  memset(live, 0, l->func->reg_count);
  for (size_t w = 0; w < l->flow.words; w++)
    for (uint64_t rest = out[w]; rest; rest &= rest - 1) {
      uint32_t reg = reg_of_bit[w * 64 + (size_t)__builtin_ctzll(rest)];
      live[reg] = 1;
      width += weight(l->func, reg);
    }
  widest = width;
  for (uint32_t i = block->end; i-- > block->first;) {
    const ptx_instr *instr = &l->func->instrs[i];
    ptx_touched(instr, &l->t);
    uint32_t here = width;
    for (uint32_t k = l->t.reads; k < l->t.reads + l->t.writes; k++) {
      uint32_t reg = l->t.regs[k];
      if (!live[reg]) here += weight(l->func, reg);
      else if (instr->guard == PTX_NO_REG) {
        width -= weight(l->func, reg);
        live[reg] = 0;
      }
    }
    if (here > widest) widest = here;
    for (uint32_t k = 0; k < l->t.reads; k++) {
      uint32_t reg = l->t.regs[k];
      if (!live[reg]) {
        width += weight(l->func, reg);
        live[reg] = 1;
      }
    }
    if (width > widest) widest = width;
  }
  if (ff_check_level >= 2) check_block_start(l, (uint32_t)(block - l->cfg->blocks), live);
  return widest;
}

static uint32_t widest_cut(liveness *l) {
  uint64_t *out = ff_alloc((l->flow.words + 1) * sizeof *out);
  uint32_t *reg_of_bit = ff_alloc((l->flow.bit_count + 1) * sizeof *reg_of_bit), widest = 0;
  uint8_t *live = ff_alloc(l->func->reg_count);
  for (uint32_t r = 0; r < l->func->reg_count; r++)
    if (l->flow.bit_of[r] != PTX_NO_REG) reg_of_bit[l->flow.bit_of[r]] = r;
  find_local_sets(l);
  for (int i = 0; i < DATAFLOW_PASSES && pass(l, out); i++) continue;
  for (uint32_t b = 0; b < l->cfg->block_count; b++) {
    if (!l->cfg->blocks[b].reachable) continue;
    join(l, &l->cfg->blocks[b], out);
    uint32_t width = widest_in_block(l, &l->cfg->blocks[b], out, reg_of_bit, live);
    if (width > widest) widest = width;
  }
  free(out);
  free(reg_of_bit);
  free(live);
  return widest;
}

static bool has_call(const ptx_func *func) {
  for (uint32_t i = 0; i < func->instr_count; i++)
    if (func->instrs[i].opcode == PTX_OP_CALL) return true;
  return false;
}

uint32_t ptx_register_estimate(const ptx_func *func, const ptx_cfg *cfg) {
  liveness l = {.func = func, .cfg = cfg};
  l.flow.bit_of = ff_alloc((func->reg_count + 1) * sizeof *l.flow.bit_of);
  memset(l.flow.bit_of, 0xff, (func->reg_count + 1) * sizeof *l.flow.bit_of);
  find_exposed(&l);
  l.flow.words = (l.flow.bit_count + 63) / 64;
  uint32_t estimate = MOST; /* of a function too large to analyse */
  size_t cost = l.flow.words * cfg->block_count + (size_t)func->reg_count / 8 * cfg->block_count;
  if (cost <= DATAFLOW_WORDS) {
    l.in = ff_alloc(cfg->block_count * l.flow.words * sizeof *l.in);
    l.kill = ff_alloc(cfg->block_count * l.flow.words * sizeof *l.kill);
    estimate = widest_cut(&l) + OVERHEAD;
  }
  free(l.flow.bit_of);
  free(l.in);
  free(l.kill);
  free(l.t.regs);
  uint32_t cap = func->maxnreg && func->maxnreg < MOST ? func->maxnreg : MOST;
  uint32_t floor = has_call(func) ? WITH_CALL : FEWEST;
  if (estimate < floor) estimate = floor;
  return estimate < cap ? estimate : cap < FEWEST ? FEWEST : cap;
}
