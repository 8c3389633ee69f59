/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_loads.h. What is known of registers comes first (`learn`): it starts with the best for all and is lowered
 * until nothing changes, so that what holds around a loop is found. Then the loads of each stretch without a write to
 * shared memory are put in order of address, and each window of 16 or 8 bytes that is full becomes one. */
#include "ptx/analysis/shared_loads.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ptx/analysis/dataflow.h"

enum {
  WIDEST = 4, /* log2 of 16 bytes */
  WORD = 2,   /* log2 of 4 bytes */
  PASSES = 32 /* over a function to learn about its registers; compilers' code needs loop depth + 2 */
};

typedef struct fact {
  uint8_t zeros; /* low bits that are 0, at most WIDEST */
  bool same;     /* all lanes of a warp have this value; by data flow alone, whatever branches they took */
} fact;

static const fact best = {WIDEST, true}, unknown = {0, false};

static fact lower(fact a, fact b) { return (fact){a.zeros < b.zeros ? a.zeros : b.zeros, a.same && b.same}; }

static uint8_t zeros_of(uint64_t bits) {
  uint8_t zeros = 0;
  while (zeros < WIDEST && !(bits >> zeros & 1)) zeros++;
  return zeros;
}

/* ptxas places variables of a known size at multiples of 16 where that helps; those of a launch's size are where their
 * alignment allows. */
static uint8_t zeros_of_symbol(const ptx_symbol *symbol, int64_t offset) {
  const ptx_var *var = symbol ? symbol->var : NULL;
  uint8_t zeros = zeros_of((uint64_t)offset),
          place = var && !var->unsized && var->size ? WIDEST : zeros_of(var ? var->align : 0);
  return !symbol || zeros < place ? zeros : place;
}

static fact of_operand(const fact *facts, const ptx_operand *operand) {
  switch (operand->kind) {
  case PTX_OPERAND_REG: return operand->negated || operand->selector ? unknown : facts[operand->reg];
  case PTX_OPERAND_INT: return (fact){zeros_of(operand->bits), true};
  case PTX_OPERAND_SYMBOL: return (fact){zeros_of_symbol(operand->symbol, operand->offset), true};
  case PTX_OPERAND_SREG:
    switch (operand->sreg) {
    case PTX_SREG_CTAID_X:
    case PTX_SREG_CTAID_Y:
    case PTX_SREG_CTAID_Z:
    case PTX_SREG_NCTAID_X:
    case PTX_SREG_NCTAID_Y:
    case PTX_SREG_NCTAID_Z:
    case PTX_SREG_NTID_X:
    case PTX_SREG_NTID_Y:
    case PTX_SREG_NTID_Z: return (fact){0, true};
    default: return unknown;
    }
  default: return unknown;
  }
}

static uint8_t sum(uint32_t zeros) { return (uint8_t)(zeros < WIDEST ? zeros : WIDEST); }

static fact of_product(const ptx_instr *instr, const fact *f) {
  bool adds = instr->opcode == PTX_OP_MAD;
  fact product = {sum((uint32_t)f[0].zeros + f[1].zeros), f[0].same && f[1].same};
  if (ptx_has(instr, PTX_MOD_HI)) product.zeros = 0;
  return adds ? lower(product, f[2]) : product;
}

/* What an instruction of integers writes, from its operands. */
static fact of_result(const ptx_instr *instr, const fact *facts) {
  fact f[3] = {best, best, best};
  uint32_t count = instr->operand_count;
  if (count < 2 || count > 4) return unknown;
  for (uint32_t i = 1; i < count; i++) f[i - 1] = of_operand(facts, &instr->operands[i]);
  fact all = lower(lower(f[0], f[1]), f[2]);
  switch (instr->opcode) {
  case PTX_OP_MOV:
  case PTX_OP_CVTA:
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_MIN:
  case PTX_OP_MAX: return all;
  case PTX_OP_CVT:
    for (uint32_t i = 0; i < instr->type_count; i++)
      if (ptx_type_class(instr->types[i]) == 'F') return unknown;
    return all;
  case PTX_OP_SELP: return (fact){lower(f[0], f[1]).zeros, all.same};
  case PTX_OP_AND: return (fact){f[0].zeros > f[1].zeros ? f[0].zeros : f[1].zeros, all.same};
  case PTX_OP_SHL: {
    const ptx_operand *by = &instr->operands[2];
    uint32_t more = by->kind == PTX_OPERAND_INT ? (uint32_t)(by->bits < WIDEST ? by->bits : WIDEST) : 0;
    return (fact){sum(f[0].zeros + more), all.same};
  }
  case PTX_OP_SHR: return (fact){0, all.same};
  case PTX_OP_MUL:
  case PTX_OP_MAD: return of_product(instr, f);
  case PTX_OP_LD: return (fact){0, ptx_instr_space(instr) == PTX_SPACE_PARAM};
  default: return unknown;
  }
}

/* NULL: it did not settle. To be freed with free(). */
static fact *learn(const ptx_func *func, touched *t) {
  fact *facts = ff_alloc((func->reg_count + (size_t)1) * sizeof *facts);
  for (uint32_t r = 0; r < func->reg_count; r++) facts[r] = best;
  for (int pass = 0; pass < PASSES; pass++) {
    bool changed = false;
    for (uint32_t n = 0; n < func->instr_count; n++) {
      ptx_touched(&func->instrs[n], t);
      if (!t->writes) continue;
      fact result = of_result(&func->instrs[n], facts);
      for (uint32_t k = 0; k < t->writes; k++) {
        fact *known = &facts[t->regs[t->reads + k]], now = lower(*known, result);
        changed |= now.zeros != known->zeros || now.same != known->same;
        *known = now;
      }
    }
    if (!changed) return facts;
  }
  free(facts);
  return NULL;
}

/* ---- loads ---- */

typedef struct load {
  uint32_t instr, base, version; /* base: register or PTX_NO_REG; version: how often it was written before */
  const ptx_symbol *symbol;
  int64_t offset;
} load;

typedef struct joiner {
  const ptx_func *func;
  const fact *facts;
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
  uint32_t zeros = words == 4 ? WIDEST : WORD + 1;
  if (left < words || zeros_of_symbol(loads->symbol, loads->offset) < zeros) return false;
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

void ptx_join_shared_loads(const ptx_func *func, const ptx_cfg *cfg, ptx_cost *costs) {
  uint32_t words = 0;
  for (uint32_t n = 0; n < func->instr_count; n++) words += is_word_load(&func->instrs[n]);
  if (words < 2) return;
  touched t = {0};
  fact *facts = learn(func, &t);
  joiner j = {.func = func, .facts = facts, .costs = costs};
  j.loads = ff_alloc(words * sizeof *j.loads);
  j.versions = ff_alloc((func->reg_count + (size_t)1) * sizeof *j.versions);
  if (facts)
    for (uint32_t b = 0; b < cfg->block_count; b++) join_block(&j, &cfg->blocks[b], &t);
  free(facts);
  free(j.loads);
  free(j.versions);
  free(t.regs);
}
