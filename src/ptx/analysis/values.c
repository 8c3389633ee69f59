/* SPDX-License-Identifier: Apache-2.0 */
/* See values.h. Machine registers have 32 bits. PTX makes addresses of 64 bits of everything, also where the machine
 * needs less:
 *   - addresses of shared and local memory have 32 bits, and so has what they are computed from, as far as nothing
 *     else needs its upper half (`find_narrow`);
 *   - a 32-bit number that was made wider is an operand of the instructions that add and multiply addresses as it is;
 *   - parameters of a kernel, constants and the block's shape stand in the constant bank, from which most instructions
 *     take an operand. */
#include "ptx/analysis/values.h"

#include <stdlib.h>

#include "ptx/analysis/dataflow.h"

typedef struct finder {
  const ptx_func *func;
  ptx_value *values;
  touched t;
} finder;

static bool is_integer(const ptx_instr *instr) { return instr->type_count && ptx_type_class(instr->types[0]) != 'F'; }

static void find_definitions(finder *f) {
  uint32_t *writes = ff_alloc((f->func->reg_count + (size_t)1) * sizeof *writes);
  for (uint32_t n = 0; n < f->func->instr_count; n++) {
    ptx_touched(&f->func->instrs[n], &f->t);
    for (uint32_t k = f->t.reads; k < f->t.reads + f->t.writes; k++) {
      uint32_t reg = f->t.regs[k];
      bool only = ++writes[reg] == 1 && f->func->instrs[n].guard == PTX_NO_REG;
      f->values[reg].defined_at = only ? n : PTX_NO_REG;
    }
  }
  free(writes);
}

/* ---- 64-bit registers of which only the low half is needed ---- */

/* Does the instruction need no more than the low half of operand n, given those that are `narrow`? */
static bool takes_low_half(const ptx_instr *instr, uint32_t n, const uint8_t *narrow) {
  const ptx_operand *to = &instr->operands[0];
  if (instr->operands[n].kind == PTX_OPERAND_ADDRESS) {
    ptx_space space = ptx_instr_space(instr);
    return space == PTX_SPACE_SHARED || space == PTX_SPACE_LOCAL;
  }
  if (instr->operands[n].kind != PTX_OPERAND_REG || !is_integer(instr)) return false;
  if (instr->opcode == PTX_OP_CVT) return ptx_type_bits(instr->types[0]) <= 32 && !ptx_has(instr, PTX_MOD_SAT);
  if (to->kind != PTX_OPERAND_REG || !narrow[to->reg]) return false;
  switch (instr->opcode) {
  case PTX_OP_MUL:
  case PTX_OP_MAD: return ptx_has(instr, PTX_MOD_LO);
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_SHL:
  case PTX_OP_AND:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_NOT:
  case PTX_OP_NEG:
  case PTX_OP_SELP:
  case PTX_OP_CVTA:
  case PTX_OP_MOV: return true;
  default: return false;
  }
}

typedef FF_VEC(uint32_t) number_list;

/* Takes from `narrow` the registers of an operand, and puts them into the list. */
static void widen(const ptx_operand *operand, uint8_t *narrow, number_list *widened) {
  uint32_t regs[2] = {PTX_NO_REG, PTX_NO_REG};
  if (operand->kind == PTX_OPERAND_REG || operand->kind == PTX_OPERAND_REG_PAIR || operand->kind == PTX_OPERAND_ADDRESS)
    regs[0] = operand->reg;
  if (operand->kind == PTX_OPERAND_REG_PAIR || operand->kind == PTX_OPERAND_VECTOR) regs[1] = operand->reg2;
  for (int i = 0; i < 2; i++) {
    if (regs[i] == PTX_NO_REG || !narrow[regs[i]]) continue;
    narrow[regs[i]] = 0;
    FF_PUSH(widened, regs[i]);
  }
  for (uint32_t e = 0; e < operand->element_count; e++) widen(&operand->elements[e], narrow, widened);
}

static bool writes_register(const ptx_instr *instr) {
  return ptx_instr_writes(instr, NULL, 0) && instr->operands[0].kind == PTX_OPERAND_REG;
}

static void widen_operands(const ptx_instr *instr, uint8_t *narrow, number_list *widened) {
  for (uint32_t n = writes_register(instr) ? 1 : 0; n < instr->operand_count; n++)
    if (!takes_low_half(instr, n, narrow)) widen(&instr->operands[n], narrow, widened);
}

/* Backwards from what needs whole values: what a register that is wide is computed from is looked at again. */
static uint8_t *find_narrow(const finder *f) {
  const uint32_t regs = f->func->reg_count, count = f->func->instr_count;
  uint8_t *narrow = ff_alloc(regs + (size_t)1);
  uint32_t *writer = ff_alloc((regs + (size_t)1) * sizeof *writer);  /* 1 + the last instruction that writes it; */
  uint32_t *before = ff_alloc((count + (size_t)1) * sizeof *before); /* 1 + the one before that writes the same */
  number_list widened = {0};
  for (uint32_t r = 0; r < regs; r++) narrow[r] = ptx_type_bits(f->func->regs[r].type) == 64;
  for (uint32_t i = 0; i < count; i++) {
    const ptx_instr *instr = &f->func->instrs[i];
    if (!writes_register(instr)) continue;
    before[i] = writer[instr->operands[0].reg];
    writer[instr->operands[0].reg] = i + 1;
  }
  for (uint32_t i = count; i-- > 0;) widen_operands(&f->func->instrs[i], narrow, &widened);
  while (widened.count)
    for (uint32_t i = writer[widened.items[--widened.count]]; i; i = before[i - 1])
      widen_operands(&f->func->instrs[i - 1], narrow, &widened);
  free(widened.items);
  free(writer);
  free(before);
  return narrow;
}

/* ---- what is in the constant bank, or made from that ---- */

static bool holds_constant(const finder *f, uint32_t reg) {
  return f->func->regs[reg].type != PTX_PRED && !f->values[reg].words && f->values[reg].defined_at != PTX_NO_REG;
}

static bool is_constant(const finder *f, const ptx_operand *operand) {
  switch (operand->kind) {
  case PTX_OPERAND_INT:
  case PTX_OPERAND_F32:
  case PTX_OPERAND_F64:
  case PTX_OPERAND_SYMBOL: return true;
  case PTX_OPERAND_SREG:
    return (operand->sreg >= PTX_SREG_NTID_X && operand->sreg <= PTX_SREG_NTID_Z) ||
           (operand->sreg >= PTX_SREG_NCTAID_X && operand->sreg <= PTX_SREG_NCTAID_Z);
  case PTX_OPERAND_REG: return holds_constant(f, operand->reg);
  default: return false;
  }
}

static bool in_constant_bank(const finder *f, const ptx_instr *instr) {
  const ptx_operand *from = &instr->operands[1];
  if (instr->opcode == PTX_OP_LD)
    return f->func->entry && ptx_instr_space(instr) == PTX_SPACE_PARAM && from->kind == PTX_OPERAND_ADDRESS &&
           (from->reg == PTX_NO_REG || holds_constant(f, from->reg));
  return (instr->opcode == PTX_OP_MOV || instr->opcode == PTX_OP_CVTA) && is_constant(f, from);
}

static bool is_made_of_constants(const finder *f, const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_MUL:
  case PTX_OP_MAD:
  case PTX_OP_AND:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_NOT:
  case PTX_OP_NEG:
  case PTX_OP_SHL:
  case PTX_OP_SHR:
  case PTX_OP_MIN:
  case PTX_OP_MAX:
  case PTX_OP_CVT:
  case PTX_OP_CVTA:
  case PTX_OP_MOV: break;
  default: return false;
  }
  if (!is_integer(instr) || ptx_has(instr, PTX_MOD_CC)) return false;
  for (uint32_t n = 1; n < instr->operand_count; n++) {
    const ptx_operand *operand = &instr->operands[n];
    bool again = operand->kind == PTX_OPERAND_REG && f->values[operand->reg].made_again;
    if (!again && !is_constant(f, operand)) return false;
  }
  return true;
}

/* A 32-bit integer in a wider register. */
static bool is_extended(const ptx_instr *instr) {
  return instr->opcode == PTX_OP_CVT && instr->type_count == 2 && is_integer(instr) &&
         ptx_type_bits(instr->types[0]) == 64 && ptx_type_bits(instr->types[1]) == 32 &&
         ptx_type_class(instr->types[1]) != 'F' && instr->operands[1].kind == PTX_OPERAND_REG;
}

static void value_of(finder *f, uint32_t n) {
  const ptx_instr *instr = &f->func->instrs[n];
  const ptx_operand *to = instr->operand_count > 1 ? &instr->operands[0] : NULL;
  if (!to || to->kind != PTX_OPERAND_REG || f->values[to->reg].defined_at != n) return;
  ptx_value *value = &f->values[to->reg];
  if (in_constant_bank(f, instr)) value->words = 0;
  else if (is_made_of_constants(f, instr)) value->made_again = true;
  if (value->words && is_extended(instr)) value->words = f->values[instr->operands[1].reg].words;
}

ptx_value *ptx_values(const ptx_func *func) {
  finder f = {.func = func, .values = ff_alloc((func->reg_count + (size_t)1) * sizeof *f.values)};
  uint8_t *narrow = find_narrow(&f);
  for (uint32_t r = 0; r < func->reg_count; r++) {
    ptx_type type = func->regs[r].type;
    uint32_t bits = ptx_type_bits(type);
    f.values[r] = (ptx_value){.defined_at = PTX_NO_REG,
                              .words = (uint8_t)(type == PTX_PRED          ? 0
                                                 : bits <= 32 || narrow[r] ? 1
                                                                           : bits / 32)};
  }
  find_definitions(&f);
  for (uint32_t n = 0; n < func->instr_count; n++) value_of(&f, n);
  free(narrow);
  free(f.t.regs);
  return f.values;
}
