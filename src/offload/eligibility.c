/* SPDX-License-Identifier: Apache-2.0 */
/* See eligibility.h. */
#include "offload/eligibility.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "offload/analysis.h"

static bool reads_clock(const ptx_operand *operand) {
  if (operand->kind == PTX_OPERAND_SREG) switch (operand->sreg) {
    case PTX_SREG_CLOCK:
    case PTX_SREG_CLOCK_HI:
    case PTX_SREG_CLOCK64:
    case PTX_SREG_GLOBALTIMER:
    case PTX_SREG_GLOBALTIMER_LO:
    case PTX_SREG_GLOBALTIMER_HI:
    case PTX_SREG_SMID:
    case PTX_SREG_NSMID:
    case PTX_SREG_WARPID:
    case PTX_SREG_NWARPID: return true;
    default: return false;
    }
  for (uint32_t i = 0; i < operand->element_count; i++)
    if (reads_clock(&operand->elements[i])) return true;
  return false;
}

/* Does control leave the function here, if only for some threads? */
static bool leaves(const ptx_func *func, uint32_t index) {
  const ptx_instr *instr = &func->instrs[index];
  if (instr->opcode == PTX_OP_BRA) {
    if (instr->operands[0].label >= func->instr_count) return true;
    return index + 1 == func->instr_count && instr->guard != PTX_NO_REG;
  }
  return index + 1 == func->instr_count;
}

/* Order between threads: what the memory model promises for these needs the caches of the GPU. */
static bool is_ordered(const ptx_instr *instr) {
  return ptx_has(instr, PTX_MOD_VOLATILE) || ptx_has(instr, PTX_MOD_RELAXED) || ptx_has(instr, PTX_MOD_ACQUIRE) ||
         ptx_has(instr, PTX_MOD_RELEASE) || ptx_has(instr, PTX_MOD_MMIO);
}

static offload_bar bar_of_opcode(ptx_opcode opcode) {
  switch (opcode) {
  case PTX_OP_BAR:
  case PTX_OP_BARRIER:
  case PTX_OP_MBARRIER:
  case PTX_OP_MEMBAR:
  case PTX_OP_FENCE:
  case PTX_OP_GRIDDEPCONTROL: return OFFLOAD_BARRIER;
  case PTX_OP_ATOM:
  case PTX_OP_RED:
  case PTX_OP_MULTIMEM: return OFFLOAD_ATOMIC;
  case PTX_OP_SHFL:
  case PTX_OP_VOTE:
  case PTX_OP_MATCH:
  case PTX_OP_ACTIVEMASK:
  case PTX_OP_REDUX:
  case PTX_OP_ELECT:
  case PTX_OP_MMA:
  case PTX_OP_WMMA:
  case PTX_OP_WGMMA:
  case PTX_OP_MOVMATRIX: return OFFLOAD_LANES;
  case PTX_OP_LDMATRIX:
  case PTX_OP_STMATRIX:
  case PTX_OP_MAPA:
  case PTX_OP_GETCTARANK: return OFFLOAD_SHARED;
  case PTX_OP_CALL: return OFFLOAD_CALL;
  case PTX_OP_RET:
  case PTX_OP_EXIT:
  case PTX_OP_TRAP:
  case PTX_OP_BRKPT: return OFFLOAD_EXIT;
  case PTX_OP_BRX: return OFFLOAD_INDIRECT;
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_TXQ:
  case PTX_OP_SULD:
  case PTX_OP_SUST:
  case PTX_OP_SURED:
  case PTX_OP_SUQ: return OFFLOAD_TEXTURE;
  case PTX_OP_CP:
  case PTX_OP_TENSORMAP: return OFFLOAD_ASYNC;
  case PTX_OP_TCGEN05:
  case PTX_OP_SETMAXNREG:
  case PTX_OP_CLUSTERLAUNCHCONTROL:
  case PTX_OP_ALLOCA:
  case PTX_OP_STACKSAVE:
  case PTX_OP_STACKRESTORE:
  case PTX_OP_APPLYPRIORITY:
  case PTX_OP_DISCARD:
  case PTX_OP_CREATEPOLICY:
  case PTX_OP_PMEVENT:
  case PTX_OP_UNKNOWN: return OFFLOAD_OTHER;
  default: return OFFLOAD_NONE;
  }
}

static const ptx_operand *address_of(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (instr->operands[i].kind == PTX_OPERAND_ADDRESS) return &instr->operands[i];
  return NULL;
}

static offload_bar bar_of(const ptx_func *func, uint32_t index, const uint8_t *shared) {
  const ptx_instr *instr = &func->instrs[index];
  offload_bar bar = bar_of_opcode(instr->opcode);
  if (bar) return bar;
  if (leaves(func, index)) return OFFLOAD_EXIT;
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (reads_clock(&instr->operands[i])) return OFFLOAD_CLOCK;
  if (instr->opcode != PTX_OP_LD && instr->opcode != PTX_OP_ST && instr->opcode != PTX_OP_LDU) return OFFLOAD_NONE;
  const ptx_operand *address = address_of(instr);
  ptx_space space = ptx_instr_space(instr);
  if (space == PTX_SPACE_SHARED) return OFFLOAD_SHARED;
  if (space == PTX_SPACE_GENERIC && address) {
    if (address->reg != PTX_NO_REG && shared[address->reg]) return OFFLOAD_SHARED;
    if (address->symbol && address->symbol->var && address->symbol->var->space == PTX_SPACE_SHARED)
      return OFFLOAD_SHARED;
  }
  return is_ordered(instr) ? OFFLOAD_BARRIER : OFFLOAD_NONE;
}

static access access_of(const ptx_instr *instr) {
  ptx_space space = ptx_instr_space(instr);
  if (space != PTX_SPACE_GLOBAL && space != PTX_SPACE_GENERIC) return ACCESS_NONE;
  if (instr->opcode == PTX_OP_LD || instr->opcode == PTX_OP_LDU) return ACCESS_LOAD;
  return instr->opcode == PTX_OP_ST ? ACCESS_STORE : ACCESS_NONE;
}

/* ---- generic addresses that are of shared memory ---- */

/* Does the instruction make one out of one? mov and integer add and sub keep what they point into. */
static bool makes_shared(const ptx_instr *instr, const uint8_t *shared) {
  if (instr->opcode == PTX_OP_CVTA) return ptx_has(instr, PTX_MOD_SHARED) && !ptx_has(instr, PTX_MOD_TO);
  if (instr->opcode != PTX_OP_MOV && instr->opcode != PTX_OP_ADD && instr->opcode != PTX_OP_SUB) return false;
  for (uint32_t i = 1; i < instr->operand_count; i++)
    if (instr->operands[i].kind == PTX_OPERAND_REG && shared[instr->operands[i].reg]) return true;
  return false;
}

/* shared[reg]: some instruction writes a shared address to it, and none anything else. Registers are taken back until
 * all agree; if that takes too long, none is left. */
static uint8_t *find_shared(const ptx_func *func) {
  enum { PASSES = 16 };
  uint8_t *shared = ff_alloc(func->reg_count + 1);
  touched t = {0};
  bool changed = true, any = false;
  for (uint32_t i = 0; i < func->instr_count; i++)
    any |= func->instrs[i].opcode == PTX_OP_CVTA && makes_shared(&func->instrs[i], shared);
  for (int pass = 0; any && changed && pass < PASSES; pass++) {
    changed = false;
    for (uint32_t i = 0; i < func->instr_count; i++) {
      const ptx_instr *instr = &func->instrs[i];
      ptx_touched(instr, &t);
      if (t.writes != 1) continue;
      uint32_t reg = t.regs[t.reads];
      if (shared[reg] || !makes_shared(instr, shared)) continue;
      shared[reg] = 1;
      changed = true;
    }
  }
  changed = any;
  for (int pass = 0; changed; pass++) {
    changed = false;
    if (pass == PASSES) {
      memset(shared, 0, func->reg_count);
      break;
    }
    for (uint32_t i = 0; i < func->instr_count; i++) {
      ptx_touched(&func->instrs[i], &t);
      for (uint32_t k = 0; k < t.writes; k++) {
        uint32_t reg = t.regs[t.reads + k];
        if (!shared[reg] || makes_shared(&func->instrs[i], shared)) continue;
        shared[reg] = 0;
        changed = true;
      }
    }
  }
  free(t.regs);
  return shared;
}

void eligibility_find(const ptx_func *func, uint8_t *ineligible, uint8_t *accesses) {
  uint8_t *shared = find_shared(func);
  for (uint32_t i = 0; i < func->instr_count; i++) {
    ineligible[i] = (uint8_t)bar_of(func, i, shared);
    accesses[i] = (uint8_t)access_of(&func->instrs[i]);
  }
  free(shared);
}
