/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about one instruction that its form answers: how many operands, which space, the parts of a call. */
#include "ptx/ir.h"

typedef struct limits {
  uint8_t fewest, most;
} limits;

/* PTX ISA, "Instruction Set": optional operands are cache policies, barrier counts, third predicates and the like. An
 * opcode that is not listed may have any number. */
static const limits operand_limits[PTX_OPS] = {
    [PTX_OP_ABS] = {2, 2},
    [PTX_OP_ACTIVEMASK] = {1, 1},
    [PTX_OP_ADD] = {3, 3},
    [PTX_OP_ADDC] = {3, 3},
    [PTX_OP_ALLOCA] = {2, 3},
    [PTX_OP_AND] = {3, 3},
    [PTX_OP_APPLYPRIORITY] = {2, 2},
    [PTX_OP_ATOM] = {3, 5},
    [PTX_OP_BFE] = {4, 4},
    [PTX_OP_BFI] = {5, 5},
    [PTX_OP_BFIND] = {2, 2},
    [PTX_OP_BMSK] = {3, 3},
    [PTX_OP_BRA] = {1, 1},
    [PTX_OP_BREV] = {2, 2},
    [PTX_OP_BRX] = {2, 2},
    [PTX_OP_CALL] = {1, 4},
    [PTX_OP_CLUSTERLAUNCHCONTROL] = {2, 2},
    [PTX_OP_CLZ] = {2, 2},
    [PTX_OP_CNOT] = {2, 2},
    [PTX_OP_COPYSIGN] = {3, 3},
    [PTX_OP_COS] = {2, 2},
    [PTX_OP_CREATEPOLICY] = {1, 4},
    [PTX_OP_CVT] = {2, 4},
    [PTX_OP_CVTA] = {2, 2},
    [PTX_OP_DISCARD] = {2, 2},
    [PTX_OP_DIV] = {3, 3},
    [PTX_OP_DP2A] = {4, 4},
    [PTX_OP_DP4A] = {4, 4},
    [PTX_OP_ELECT] = {2, 2},
    [PTX_OP_EX2] = {2, 2},
    [PTX_OP_FMA] = {4, 4},
    [PTX_OP_FNS] = {4, 4},
    [PTX_OP_GETCTARANK] = {2, 2},
    [PTX_OP_ISSPACEP] = {2, 2},
    [PTX_OP_ISTYPEP] = {2, 2},
    [PTX_OP_LD] = {2, 3},
    [PTX_OP_LDMATRIX] = {2, 2},
    [PTX_OP_LDU] = {2, 2},
    [PTX_OP_LG2] = {2, 2},
    [PTX_OP_LOP3] = {5, 6},
    [PTX_OP_MAD] = {4, 4},
    [PTX_OP_MAD24] = {4, 4},
    [PTX_OP_MADC] = {4, 4},
    [PTX_OP_MAPA] = {3, 3},
    [PTX_OP_MATCH] = {3, 3},
    [PTX_OP_MAX] = {3, 4},
    [PTX_OP_MBARRIER] = {1, 4},
    [PTX_OP_MIN] = {3, 4},
    [PTX_OP_MMA] = {4, 12},
    [PTX_OP_MOV] = {2, 2},
    [PTX_OP_MOVMATRIX] = {2, 2},
    [PTX_OP_MUL] = {3, 3},
    [PTX_OP_MUL24] = {3, 3},
    [PTX_OP_MULTIMEM] = {2, 12},
    [PTX_OP_NANOSLEEP] = {1, 1},
    [PTX_OP_NEG] = {2, 2},
    [PTX_OP_NOT] = {2, 2},
    [PTX_OP_OR] = {3, 3},
    [PTX_OP_PMEVENT] = {1, 1},
    [PTX_OP_POPC] = {2, 2},
    [PTX_OP_PREFETCH] = {1, 1},
    [PTX_OP_PREFETCHU] = {1, 1},
    [PTX_OP_PRMT] = {4, 4},
    [PTX_OP_RCP] = {2, 2},
    [PTX_OP_RED] = {2, 4},
    [PTX_OP_REDUX] = {3, 3},
    [PTX_OP_REM] = {3, 3},
    [PTX_OP_RSQRT] = {2, 2},
    [PTX_OP_SAD] = {4, 4},
    [PTX_OP_SELP] = {4, 4},
    [PTX_OP_SET] = {3, 4},
    [PTX_OP_SETMAXNREG] = {1, 1},
    [PTX_OP_SETP] = {3, 4},
    [PTX_OP_SHF] = {4, 4},
    [PTX_OP_SHFL] = {4, 5},
    [PTX_OP_SHL] = {3, 3},
    [PTX_OP_SHR] = {3, 3},
    [PTX_OP_SIN] = {2, 2},
    [PTX_OP_SLCT] = {4, 4},
    [PTX_OP_SQRT] = {2, 2},
    [PTX_OP_ST] = {2, 4},
    [PTX_OP_STACKRESTORE] = {1, 1},
    [PTX_OP_STACKSAVE] = {1, 1},
    [PTX_OP_STMATRIX] = {2, 2},
    [PTX_OP_SUB] = {3, 3},
    [PTX_OP_SUBC] = {3, 3},
    [PTX_OP_SULD] = {2, 2},
    [PTX_OP_SUQ] = {2, 2},
    [PTX_OP_SURED] = {2, 2},
    [PTX_OP_SUST] = {2, 2},
    [PTX_OP_SZEXT] = {3, 3},
    [PTX_OP_TANH] = {2, 2},
    [PTX_OP_TESTP] = {2, 2},
    [PTX_OP_TEX] = {2, 6},
    [PTX_OP_TLD4] = {2, 4},
    [PTX_OP_TXQ] = {2, 3},
    [PTX_OP_VABSDIFF] = {3, 4},
    [PTX_OP_VABSDIFF2] = {4, 4},
    [PTX_OP_VABSDIFF4] = {4, 4},
    [PTX_OP_VADD] = {3, 4},
    [PTX_OP_VADD2] = {4, 4},
    [PTX_OP_VADD4] = {4, 4},
    [PTX_OP_VAVRG2] = {4, 4},
    [PTX_OP_VAVRG4] = {4, 4},
    [PTX_OP_VMAD] = {4, 4},
    [PTX_OP_VMAX] = {3, 4},
    [PTX_OP_VMAX2] = {4, 4},
    [PTX_OP_VMAX4] = {4, 4},
    [PTX_OP_VMIN] = {3, 4},
    [PTX_OP_VMIN2] = {4, 4},
    [PTX_OP_VMIN4] = {4, 4},
    [PTX_OP_VOTE] = {2, 3},
    [PTX_OP_VSET] = {3, 4},
    [PTX_OP_VSET2] = {4, 4},
    [PTX_OP_VSET4] = {4, 4},
    [PTX_OP_VSHL] = {3, 4},
    [PTX_OP_VSHR] = {3, 4},
    [PTX_OP_VSUB] = {3, 4},
    [PTX_OP_VSUB2] = {4, 4},
    [PTX_OP_VSUB4] = {4, 4},
    [PTX_OP_WMMA] = {2, 5},
    [PTX_OP_XOR] = {3, 3},
};

void ptx_operand_limits(const ptx_instr *instr, uint32_t *fewest, uint32_t *most) {
  limits found = operand_limits[instr->opcode];
  switch (instr->opcode) {
  case PTX_OP_BRKPT:
  case PTX_OP_EXIT:
  case PTX_OP_GRIDDEPCONTROL:
  case PTX_OP_MEMBAR:
  case PTX_OP_RET:
  case PTX_OP_TRAP: break; /* none at all */
  case PTX_OP_ATOM:
    if (ptx_has(instr, PTX_MOD_CAS)) found.fewest = 4;
    break;
  case PTX_OP_BAR:
  case PTX_OP_BARRIER:
    found.most = 4;
    if (ptx_has(instr, PTX_MOD_RED)) found.fewest = 3;
    else if (!ptx_has(instr, PTX_MOD_CLUSTER)) found.fewest = 1;
    break;
  case PTX_OP_WMMA:
    if (ptx_has(instr, PTX_MOD_MMA)) found.fewest = 4;
    break;
  default:
    if (!found.most) found.most = PTX_MAX_OPERANDS;
  }
  *fewest = found.fewest;
  *most = found.most;
}

ptx_call ptx_call_parts(const ptx_instr *instr) {
  ptx_call call = {0};
  uint32_t next = 0;
  const ptx_operand *operands = instr->operands;
  if (instr->operand_count > next && operands[next].kind == PTX_OPERAND_LIST) call.results = &operands[next++];
  if (instr->operand_count > next) call.callee = &operands[next++];
  if (instr->operand_count > next && operands[next].kind == PTX_OPERAND_LIST) call.arguments = &operands[next++];
  if (instr->operand_count > next) call.targets = &operands[next];
  return call;
}

ptx_space ptx_instr_space(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->mod_count; i++) {
    switch ((ptx_mod)instr->mods[i]) {
    case PTX_MOD_CONST: return PTX_SPACE_CONST;
    case PTX_MOD_GLOBAL: return PTX_SPACE_GLOBAL;
    case PTX_MOD_LOCAL: return PTX_SPACE_LOCAL;
    case PTX_MOD_PARAM:
    case PTX_MOD_PARAM__ENTRY:
    case PTX_MOD_PARAM__FUNC: return PTX_SPACE_PARAM;
    case PTX_MOD_SHARED:
    case PTX_MOD_SHARED__CTA:
    case PTX_MOD_SHARED__CLUSTER: return PTX_SPACE_SHARED;
    case PTX_MOD_REG: return PTX_SPACE_REG;
    case PTX_MOD_SREG: return PTX_SPACE_SREG;
    default: break;
    }
  }
  return PTX_SPACE_GENERIC;
}
