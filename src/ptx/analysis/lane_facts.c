/* SPDX-License-Identifier: Apache-2.0 */
/* See lane_facts.h. It starts with the best for all registers and is lowered until nothing changes, so that what holds
 * around a loop is found. */
#include "ptx/analysis/lane_facts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ptx/analysis/dataflow.h"

enum { PASSES = 32 }; /* over a function to learn about its registers; compilers' code needs loop depth + 2 */

static const ptx_lane_fact best = {LANE_ZEROS, true}, unknown = {0, false};

static ptx_lane_fact lower(ptx_lane_fact a, ptx_lane_fact b) {
  return (ptx_lane_fact){a.zeros < b.zeros ? a.zeros : b.zeros, a.same && b.same};
}

static uint8_t zeros_of(uint64_t bits) {
  uint8_t zeros = 0;
  while (zeros < LANE_ZEROS && !(bits >> zeros & 1)) zeros++;
  return zeros;
}

/* ptxas places variables of a known size at multiples of 16 where that helps; those of a launch's size are where their
 * alignment allows. */
uint8_t ptx_symbol_zeros(const ptx_symbol *symbol, int64_t offset) {
  const ptx_var *var = symbol ? symbol->var : NULL;
  uint8_t zeros = zeros_of((uint64_t)offset), place = var && var->size ? LANE_ZEROS : zeros_of(var ? var->align : 0);
  return !symbol || zeros < place ? zeros : place;
}

static ptx_lane_fact of_operand(const ptx_lane_fact *facts, const ptx_operand *operand) {
  switch (operand->kind) {
  case PTX_OPERAND_REG: return operand->negated || operand->selector ? unknown : facts[operand->reg];
  case PTX_OPERAND_INT: return (ptx_lane_fact){zeros_of(operand->bits), true};
  case PTX_OPERAND_SYMBOL: return (ptx_lane_fact){ptx_symbol_zeros(operand->symbol, operand->offset), true};
  case PTX_OPERAND_SREG: return (ptx_lane_fact){0, ptx_sreg_of_block(operand->sreg)};
  default: return unknown;
  }
}

static uint8_t sum(uint32_t zeros) { return (uint8_t)(zeros < LANE_ZEROS ? zeros : LANE_ZEROS); }

static ptx_lane_fact of_product(const ptx_instr *instr, const ptx_lane_fact *f) {
  bool adds = instr->opcode == PTX_OP_MAD;
  ptx_lane_fact product = {sum((uint32_t)f[0].zeros + f[1].zeros), f[0].same && f[1].same};
  if (ptx_has(instr, PTX_MOD_HI)) product.zeros = 0;
  return adds ? lower(product, f[2]) : product;
}

/* What an instruction of integers writes, from its operands. */
static ptx_lane_fact of_result(const ptx_instr *instr, const ptx_lane_fact *facts) {
  ptx_lane_fact f[3] = {best, best, best};
  uint32_t count = instr->operand_count;
  if (count < 2 || count > 4) return unknown;
  for (uint32_t i = 1; i < count; i++) f[i - 1] = of_operand(facts, &instr->operands[i]);
  ptx_lane_fact all = lower(lower(f[0], f[1]), f[2]);
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
  case PTX_OP_SELP: return (ptx_lane_fact){lower(f[0], f[1]).zeros, all.same};
  case PTX_OP_AND: return (ptx_lane_fact){f[0].zeros > f[1].zeros ? f[0].zeros : f[1].zeros, all.same};
  case PTX_OP_SHL: {
    const ptx_operand *by = &instr->operands[2];
    uint32_t more = by->kind == PTX_OPERAND_INT ? (uint32_t)(by->bits < LANE_ZEROS ? by->bits : LANE_ZEROS) : 0;
    return (ptx_lane_fact){sum(f[0].zeros + more), all.same};
  }
  case PTX_OP_NOT:
  case PTX_OP_SETP:
  case PTX_OP_SHR: return (ptx_lane_fact){0, all.same};
  case PTX_OP_MUL:
  case PTX_OP_MAD: return of_product(instr, f);
  case PTX_OP_LD: return (ptx_lane_fact){0, ptx_instr_space(instr) == PTX_SPACE_PARAM};
  default: return unknown;
  }
}

ptx_lane_fact *ptx_lane_facts(const ptx_func *func) {
  touched t = {0};
  ptx_lane_fact *facts = ff_alloc((func->reg_count + (size_t)1) * sizeof *facts);
  for (uint32_t r = 0; r < func->reg_count; r++) facts[r] = best;
  for (int pass = 0; pass < PASSES; pass++) {
    bool changed = false;
    for (uint32_t n = 0; n < func->instr_count; n++) {
      ptx_touched(&func->instrs[n], &t);
      if (!t.writes) continue;
      ptx_lane_fact result = of_result(&func->instrs[n], facts);
      for (uint32_t k = 0; k < t.writes; k++) {
        ptx_lane_fact *known = &facts[t.regs[t.reads + k]], now = lower(*known, result);
        changed |= now.zeros != known->zeros || now.same != known->same;
        *known = now;
      }
    }
    if (!changed) {
      free(t.regs);
      return facts;
    }
  }
  free(t.regs);
  free(facts);
  return NULL;
}
