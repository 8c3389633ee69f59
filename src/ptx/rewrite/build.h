/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions and operands that rewriting adds to a module, made from the words of PTX.
 *
 *   instr = ptx_build_instr(&arena, "add.s64", operands, 3);
 *
 * No function here checks that an instruction exists; the caller makes valid PTX. */
#ifndef FF_PTX_BUILD_H
#define FF_PTX_BUILD_H

#include "ptx/ir.h"

static inline ptx_operand ptx_build_operand(ptx_operand_kind kind) {
  return (ptx_operand){.kind = kind, .reg = PTX_NO_REG, .reg2 = PTX_NO_REG};
}

static inline ptx_operand ptx_build_reg(uint32_t reg) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_REG);
  operand.reg = reg;
  return operand;
}

static inline ptx_operand ptx_build_not(uint32_t reg) { /* !p */
  ptx_operand operand = ptx_build_reg(reg);
  operand.negated = true;
  return operand;
}

static inline ptx_operand ptx_build_int(uint64_t bits) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_INT);
  operand.bits = bits;
  return operand;
}

static inline ptx_operand ptx_build_sreg(ptx_sreg sreg) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_SREG);
  operand.sreg = sreg;
  return operand;
}

static inline ptx_operand ptx_build_symbol(const ptx_symbol *symbol) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_SYMBOL);
  operand.symbol = symbol;
  return operand;
}

/* [symbol], and [reg]. */
static inline ptx_operand ptx_build_at_symbol(const ptx_symbol *symbol) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_ADDRESS);
  operand.symbol = symbol;
  return operand;
}

static inline ptx_operand ptx_build_at_reg(uint32_t reg) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_ADDRESS);
  operand.reg = reg;
  return operand;
}

/* A LIST or a VECTOR of copies of the elements. */
ptx_operand ptx_build_list(ff_arena *arena, ptx_operand_kind kind, const ptx_operand *elements, uint32_t count);

/* opcode: "ld.shared.v4.u32"; its words must be known ones. The operands are copied. Without a guard and a place. */
ptx_instr ptx_build_instr(ff_arena *arena, const char *opcode, const ptx_operand *operands, uint32_t count);

#endif
