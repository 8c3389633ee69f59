/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_loads.h. The loads of each stretch without a write to shared memory are put in order of address, and each
 * window of 16 or 8 bytes that is full becomes one. */
#include "ptx/analysis/shared_loads.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ptx/analysis/dataflow.h"

enum { WORD = 2 }; /* log2 of 4 bytes */

/* ---- loads ---- */

typedef struct load {
  uint32_t instr, base, version; /* base: register or PTX_NO_REG; version: how often it was written before */
  const ptx_symbol *symbol;
  int64_t offset;
} load;

typedef struct joiner {
  const ptx_func *func;
  const ptx_lane_fact *facts;
  ptx_cost *costs;
  load *loads; /* of the present stretch */
  uint32_t count;
  uint32_t *versions; /* per register */
} joiner;

static bool is_word_load(const ptx_instr *instr) {
  return instr->opcode == PTX_OP_LD && ptx_instr_space(instr) == PTX_SPACE_SHARED && instr->vector == 1 &&
         instr->guard == PTX_NO_REG && instr->type_count == 1 && ptx_type_bits(instr->types[0]) == 32 &&
         instr->operand_count == 2 && instr->operands[0].kind == PTX_OPERAND_REG &&
         instr->operands[1].kind == PTX_OPERAND_ADDRESS && !ptx_has(instr, PTX_MOD_VOLATILE) &&
         !ptx_has(instr, PTX_MOD_RELAXED) && !ptx_has(instr, PTX_MOD_ACQUIRE);
}

/* Another thread or this one may have written to shared memory behind it. */
static bool ends_stretch(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_ST:
  case PTX_OP_RED:
  case PTX_OP_ATOM: {
    ptx_space space = ptx_instr_space(instr);
    return space == PTX_SPACE_SHARED || space == PTX_SPACE_GENERIC;
  }
  case PTX_OP_BAR:
  case PTX_OP_BARRIER:
  case PTX_OP_CALL:
  case PTX_OP_CP:
  case PTX_OP_FENCE:
  case PTX_OP_MBARRIER:
  case PTX_OP_MEMBAR:
  case PTX_OP_STMATRIX:
  case PTX_OP_WMMA: return true;
  default: return false;
  }
}

#define ORDER(a, b) \
  if ((a) != (b)) return (a) < (b) ? -1 : 1

static int by_address(const void *left, const void *right) {
  const load *a = left, *b = right;
  ORDER(a->base, b->base);
  ORDER(a->version, b->version);
  ORDER((uintptr_t)a->symbol, (uintptr_t)b->symbol);
  ORDER(a->offset, b->offset);
  ORDER(a->instr, b->instr);
  return 0;
}

/* Whether loads[0, words) are neighbours, and the first at a multiple of all of them. */
static bool is_window(const joiner *j, const load *loads, uint32_t left, uint32_t words) {
  uint32_t zeros = words == 4 ? LANE_ZEROS : WORD + 1;
  if (left < words || ptx_symbol_zeros(loads->symbol, loads->offset) < zeros) return false;
  if (loads->base != PTX_NO_REG && j->facts[loads->base].zeros < zeros) return false;
  for (uint32_t i = 1; i < words; i++)
    if (loads[i].base != loads->base || loads[i].version != loads->version || loads[i].symbol != loads->symbol ||
        loads[i].offset != loads->offset + 4 * (int64_t)i)
      return false;
  return true;
}

static void join(const joiner *j, const load *loads, uint32_t words) {
  bool same = loads->base == PTX_NO_REG || j->facts[loads->base].same;
  uint32_t first = 0; /* the one that comes first in the program stays */
  for (uint32_t i = 1; i < words; i++)
    if (loads[i].instr < loads[first].instr) first = i;
  for (uint32_t i = 0; i < words; i++) {
    if (i == first) continue;
    uint8_t *count = j->costs[loads[i].instr].count;
    count[PTX_PIPE_SLOTS] = count[PTX_PIPE_LOADS] = 0;
    if (same) count[PTX_PIPE_LSU] = 0;
  }
}

static void end_stretch(joiner *j) {
  if (j->count > 1) qsort(j->loads, j->count, sizeof *j->loads, by_address);
  for (uint32_t i = 0; i < j->count;) {
    uint32_t left = j->count - i, words = is_window(j, j->loads + i, left, 4)   ? 4
                                          : is_window(j, j->loads + i, left, 2) ? 2
                                                                                : 1;
    if (words > 1) join(j, j->loads + i, words);
    i += words;
  }
  j->count = 0;
}

static void join_block(joiner *j, const ptx_block *block, touched *t) {
  for (uint32_t n = block->first; n < block->end; n++) {
    const ptx_instr *instr = &j->func->instrs[n];
    if (is_word_load(instr)) {
      const ptx_operand *address = &instr->operands[1];
      uint32_t version = address->reg == PTX_NO_REG ? 0 : j->versions[address->reg];
      j->loads[j->count++] = (load){n, address->reg, version, address->symbol, address->offset};
    } else if (ends_stretch(instr)) end_stretch(j);
    ptx_touched(instr, t);
    for (uint32_t k = 0; k < t->writes; k++) j->versions[t->regs[t->reads + k]]++;
  }
  end_stretch(j);
}

void ptx_join_shared_loads(const ptx_func *func, const ptx_cfg *cfg, const ptx_lane_fact *facts, ptx_cost *costs) {
  uint32_t words = 0;
  for (uint32_t n = 0; n < func->instr_count; n++) words += is_word_load(&func->instrs[n]);
  if (words < 2) return;
  touched t = {0};
  joiner j = {.func = func, .facts = facts, .costs = costs};
  j.loads = ff_alloc(words * sizeof *j.loads);
  j.versions = ff_alloc((func->reg_count + (size_t)1) * sizeof *j.versions);
  for (uint32_t b = 0; b < cfg->block_count; b++) join_block(&j, &cfg->blocks[b], &t);
  free(j.loads);
  free(j.versions);
  free(t.regs);
}
