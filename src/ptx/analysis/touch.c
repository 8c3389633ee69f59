/* SPDX-License-Identifier: Apache-2.0 */
/* Which registers an instruction reads and writes. The rule: the first operand is the destination, unless it is an
 * address or the opcode has none (stores, reductions, branches, barriers, fences, prefetches ...). */
#include "ptx/analysis/cfg.h"

typedef struct collector {
  uint32_t *regs;
  uint32_t room, count;
} collector;

static void add(collector *c, uint32_t reg) {
  if (reg == PTX_NO_REG) return;
  if (c->count < c->room) c->regs[c->count] = reg;
  c->count++;
}

static void add_operand(collector *c, const ptx_operand *operand) {
  switch (operand->kind) {
  case PTX_OPERAND_REG: add(c, operand->reg); break;
  case PTX_OPERAND_REG_PAIR:
    add(c, operand->reg);
    add(c, operand->reg2);
    break;
  case PTX_OPERAND_VECTOR: /* {a, b}|p */
    add(c, operand->reg2);
    /* fall through */
  case PTX_OPERAND_LIST:
  case PTX_OPERAND_ADDRESS:
    if (operand->kind == PTX_OPERAND_ADDRESS) add(c, operand->reg);
    for (uint32_t i = 0; i < operand->element_count; i++) add_operand(c, &operand->elements[i]);
    break;
  default: break;
  }
}

/* Opcodes whose first operand is not written. */
static bool has_no_destination(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_APPLYPRIORITY:
  case PTX_OP_BRA:
  case PTX_OP_BRKPT:
  case PTX_OP_BRX:
  case PTX_OP_CP:
  case PTX_OP_DISCARD:
  case PTX_OP_EXIT:
  case PTX_OP_FENCE:
  case PTX_OP_GRIDDEPCONTROL:
  case PTX_OP_MEMBAR:
  case PTX_OP_NANOSLEEP:
  case PTX_OP_PMEVENT:
  case PTX_OP_PREFETCH:
  case PTX_OP_PREFETCHU:
  case PTX_OP_RED:
  case PTX_OP_RET:
  case PTX_OP_SETMAXNREG:
  case PTX_OP_ST:
  case PTX_OP_STACKRESTORE:
  case PTX_OP_STMATRIX:
  case PTX_OP_SURED:
  case PTX_OP_SUST:
  case PTX_OP_TENSORMAP:
  case PTX_OP_TRAP:
  case PTX_OP_UNKNOWN: return true;
  case PTX_OP_BAR:
  case PTX_OP_BARRIER: return !ptx_has(instr, PTX_MOD_RED);
  case PTX_OP_TCGEN05: return !ptx_has(instr, PTX_MOD_LD);
  default: return false;
  }
}

/* The destination operand, or NULL. */
static const ptx_operand *destination(const ptx_instr *instr) {
  if (!instr->operand_count || has_no_destination(instr)) return NULL;
  const ptx_operand *first = &instr->operands[0];
  if (instr->opcode == PTX_OP_CALL) return first->kind == PTX_OPERAND_LIST ? first : NULL;
  return first->kind == PTX_OPERAND_ADDRESS ? NULL : first;
}

/* tcgen05.ld.red has two: the registers, and what they are reduced to. */
static const ptx_operand *second_destination(const ptx_instr *instr) {
  bool two = instr->opcode == PTX_OP_TCGEN05 && ptx_has(instr, PTX_MOD_LD) && ptx_has(instr, PTX_MOD_RED);
  return two && instr->operand_count > 1 ? &instr->operands[1] : NULL;
}

/* wgmma.mma_async adds into its destination; a destination with a selector keeps the bytes that it does not name. */
static bool reads_destination(const ptx_instr *instr, const ptx_operand *written) {
  return instr->opcode == PTX_OP_WGMMA || written->selector;
}

uint32_t ptx_instr_reads(const ptx_instr *instr, uint32_t *regs, uint32_t room) {
  collector c = {regs, room, 0};
  const ptx_operand *written = destination(instr), *second = second_destination(instr);
  add(&c, instr->guard);
  for (uint32_t i = 0; i < instr->operand_count; i++) {
    const ptx_operand *operand = &instr->operands[i];
    if (operand == second || (operand == written && !reads_destination(instr, operand))) continue;
    add_operand(&c, operand);
  }
  return c.count;
}

uint32_t ptx_instr_writes(const ptx_instr *instr, uint32_t *regs, uint32_t room) {
  collector c = {regs, room, 0};
  const ptx_operand *written = destination(instr), *second = second_destination(instr);
  if (written) add_operand(&c, written);
  if (second) add_operand(&c, second);
  return c.count;
}
