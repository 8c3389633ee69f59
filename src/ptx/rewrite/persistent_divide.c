/* SPDX-License-Identifier: Apache-2.0 */
/* Which values differ between the threads of a block, and where control does: see persistent_divide.h.
 *
 * Both depend on each other: a register written where only some threads come differs behind it, and a branch on it
 * divides the block. So both grow together until nothing is new. */
#include "ptx/rewrite/persistent_divide.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/analysis/dataflow.h"
#include "ptx/analysis/lane_facts.h"

enum { PASSES = 64 };                /* over a function; then every register counts as different */
#define MAX_WORK (UINT64_C(1) << 25) /* blocks looked at, over all branches */

/* ---- values ---- */

static bool sreg_differs(ptx_sreg sreg) {
  switch (sreg) {
  case PTX_SREG_NWARPID:
  case PTX_SREG_NSMID:
  case PTX_SREG_WARP_SZ:
  case PTX_SREG_TOTAL_SMEM_SIZE:
  case PTX_SREG_DYNAMIC_SMEM_SIZE: return false;
  default: return !ptx_sreg_of_block(sreg);
  }
}

static bool operand_differs(const ptx_operand *operand) {
  if (operand->kind == PTX_OPERAND_SREG && sreg_differs(operand->sreg)) return true;
  if (operand->kind == PTX_OPERAND_SYMBOL && operand->symbol && operand->symbol->var &&
      operand->symbol->var->space == PTX_SPACE_LOCAL)
    return true;
  for (uint32_t i = 0; i < operand->element_count; i++)
    if (operand_differs(&operand->elements[i])) return true;
  return false;
}

static bool is_kernel_parameter(const ptx_func *func, const ptx_operand *address) {
  const ptx_var *var = address->symbol ? address->symbol->var : NULL;
  for (uint32_t i = 0; var && i < func->param_count; i++)
    if (func->params[i] == var) return true;
  return false;
}

/* What comes from outside the registers: the same for all threads only from constants and the kernel's parameters. */
static bool source_differs(const ptx_func *func, const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_LD:
  case PTX_OP_LDU:
    if (ptx_instr_space(instr) == PTX_SPACE_CONST) return false;
    return ptx_instr_space(instr) != PTX_SPACE_PARAM || instr->operand_count < 2 ||
           !is_kernel_parameter(func, &instr->operands[1]);
  case PTX_OP_ABS:
  case PTX_OP_ADD:
  case PTX_OP_ADDC:
  case PTX_OP_AND:
  case PTX_OP_BFE:
  case PTX_OP_BFI:
  case PTX_OP_BFIND:
  case PTX_OP_BMSK:
  case PTX_OP_BREV:
  case PTX_OP_CLZ:
  case PTX_OP_CNOT:
  case PTX_OP_COPYSIGN:
  case PTX_OP_COS:
  case PTX_OP_CVT:
  case PTX_OP_CVTA:
  case PTX_OP_DIV:
  case PTX_OP_EX2:
  case PTX_OP_FMA:
  case PTX_OP_LG2:
  case PTX_OP_LOP3:
  case PTX_OP_MAD:
  case PTX_OP_MAD24:
  case PTX_OP_MADC:
  case PTX_OP_MAX:
  case PTX_OP_MIN:
  case PTX_OP_MOV:
  case PTX_OP_MUL:
  case PTX_OP_MUL24:
  case PTX_OP_NEG:
  case PTX_OP_NOT:
  case PTX_OP_OR:
  case PTX_OP_POPC:
  case PTX_OP_PRMT:
  case PTX_OP_RCP:
  case PTX_OP_REM:
  case PTX_OP_RSQRT:
  case PTX_OP_SAD:
  case PTX_OP_SELP:
  case PTX_OP_SET:
  case PTX_OP_SETP:
  case PTX_OP_SHF:
  case PTX_OP_SHL:
  case PTX_OP_SHR:
  case PTX_OP_SIN:
  case PTX_OP_SLCT:
  case PTX_OP_SQRT:
  case PTX_OP_SUB:
  case PTX_OP_SUBC:
  case PTX_OP_SZEXT:
  case PTX_OP_TANH:
  case PTX_OP_TESTP:
  case PTX_OP_XOR: return false;
  default: return true;
  }
}

/* bar.red over the whole block gives all threads the same. */
static bool is_agreed(const ptx_instr *instr) {
  bool barrier = instr->opcode == PTX_OP_BAR || instr->opcode == PTX_OP_BARRIER;
  return barrier && ptx_has(instr, PTX_MOD_RED) && instr->operand_count == 3 && instr->guard == PTX_NO_REG;
}

static bool writes_differ(const ptx_divide *d, uint32_t block, const ptx_instr *instr, const touched *t) {
  if (d->parted[block]) return true;
  if (is_agreed(instr)) return false;
  for (uint32_t i = 0; i < t->reads; i++)
    if (d->differs[t->regs[i]]) return true;
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (operand_differs(&instr->operands[i])) return true;
  return source_differs(d->func, instr);
}

/* One pass over all instructions; true: something is new. */
static bool pass_values(ptx_divide *d, touched *t) {
  bool news = false;
  for (uint32_t b = 0; b < d->cfg->block_count; b++)
    for (uint32_t i = d->cfg->blocks[b].first; d->cfg->blocks[b].reachable && i < d->cfg->blocks[b].end; i++) {
      ptx_touched(&d->func->instrs[i], t);
      if (!t->writes || !writes_differ(d, b, &d->func->instrs[i], t)) continue;
      for (uint32_t w = 0; w < t->writes; w++) {
        bool *differs = &d->differs[t->regs[t->reads + w]];
        news |= !*differs;
        *differs = true;
      }
    }
  return news;
}

/* ---- control ---- */

bool ptx_divide_leaves(const ptx_func *func, const ptx_instr *last) {
  if (last->opcode == PTX_OP_EXIT || last->opcode == PTX_OP_RET) return true;
  if (last->opcode == PTX_OP_BRA && last->operands[0].label >= func->instr_count) return true;
  if (last->opcode == PTX_OP_BRX)
    for (uint32_t i = 0; i < last->operands[1].element_count; i++)
      if (last->operands[1].elements[i].kind == PTX_OPERAND_LABEL &&
          last->operands[1].elements[i].label >= func->instr_count)
        return true;
  return last == &func->instrs[func->instr_count - 1] && (last->guard != PTX_NO_REG || last->opcode != PTX_OP_BRA);
}

static bool branches_apart(const ptx_divide *d, const ptx_block *block) {
  const ptx_instr *last = &d->func->instrs[block->end - 1];
  if (last->opcode == PTX_OP_BRX)
    return last->operands[0].kind != PTX_OPERAND_REG || d->differs[last->operands[0].reg] ||
           (last->guard != PTX_NO_REG && d->differs[last->guard]);
  bool ends = last->opcode == PTX_OP_BRA || last->opcode == PTX_OP_EXIT || last->opcode == PTX_OP_RET;
  return ends && last->guard != PTX_NO_REG && d->differs[last->guard];
}

static bool only_leaves(const ptx_divide *d, uint32_t block) {
  const ptx_instr *first = &d->func->instrs[d->cfg->blocks[block].first];
  return (first->opcode == PTX_OP_EXIT || first->opcode == PTX_OP_RET) && first->guard == PTX_NO_REG;
}

/* Do all that go one way leave at once? Those that go the other way are then all that there are. */
static bool is_way_out(const ptx_divide *d, const ptx_block *block) {
  const ptx_instr *last = &d->func->instrs[block->end - 1];
  if (last->opcode != PTX_OP_BRA && last->opcode != PTX_OP_EXIT && last->opcode != PTX_OP_RET) return false;
  if (ptx_divide_leaves(d->func, last)) return true;
  for (uint32_t i = 0; i < block->successor_count; i++)
    if (only_leaves(d, block->successors[i])) return true;
  return false;
}

/* Everything between the block's end and where its paths reconverge. False: too much work. */
static bool mark_region(ptx_divide *d, uint32_t from, bool *divided, uint32_t *seen, uint32_t mark) {
  FF_VEC(uint32_t) work = {0};
  uint32_t meeting = d->cfg->blocks[from].postdominator;
  FF_PUSH(&work, from);
  while (work.count && d->work) {
    const ptx_block *block = &d->cfg->blocks[work.items[--work.count]];
    d->work--;
    for (uint32_t i = 0; i < block->successor_count; i++) {
      uint32_t to = block->successors[i];
      if (to == meeting || seen[to] == mark) continue;
      seen[to] = mark;
      divided[to] = true;
      FF_PUSH(&work, to);
    }
  }
  free(work.items);
  return d->work > 0;
}

/* Branches that have come to divide the block; false: too much work. */
static bool pass_control(ptx_divide *d, uint32_t *seen, bool *news) {
  for (uint32_t b = 0; b < d->cfg->block_count; b++) {
    if (d->divides[b] || !d->cfg->blocks[b].reachable || !branches_apart(d, &d->cfg->blocks[b])) continue;
    d->divides[b] = *news = true;
    if (!mark_region(d, b, d->divided, seen, 2 * b + 1)) return false;
    if (!is_way_out(d, &d->cfg->blocks[b]) && !mark_region(d, b, d->parted, seen, 2 * b + 2)) return false;
  }
  return true;
}

static bool find(ptx_divide *d) {
  touched t = {0};
  uint32_t *seen = ff_alloc((d->cfg->block_count + (size_t)1) * sizeof *seen);
  bool good = true, news = true;
  for (int pass = 0; good && news; pass++) {
    news = pass < PASSES ? pass_values(d, &t) : false;
    if (pass == PASSES) memset(d->differs, 1, d->func->reg_count);
    good = pass_control(d, seen, &news);
  }
  free(t.regs);
  free(seen);
  return good;
}

ptx_divide *ptx_divide_find(const ptx_func *func) {
  ptx_divide *d = ff_alloc(sizeof *d);
  d->func = func;
  d->work = MAX_WORK;
  d->cfg = ptx_cfg_build(func);
  d->differs = ff_alloc(func->reg_count + (size_t)1);
  d->divides = ff_alloc(d->cfg->block_count + (size_t)1);
  d->divided = ff_alloc(d->cfg->block_count + (size_t)1);
  d->parted = ff_alloc(d->cfg->block_count + (size_t)1);
  if (find(d)) return d;
  ptx_divide_free(d);
  return NULL;
}

bool *ptx_divide_regions(ptx_divide *d, const bool *except) {
  bool *divided = ff_alloc(d->cfg->block_count + (size_t)1);
  uint32_t *seen = ff_alloc((d->cfg->block_count + (size_t)1) * sizeof *seen);
  for (uint32_t b = 0; b < d->cfg->block_count; b++)
    if (d->divides[b] && !except[b] && !mark_region(d, b, divided, seen, b + 1))
      memset(divided, 1, d->cfg->block_count);
  free(seen);
  return divided;
}

bool ptx_divide_at(const ptx_divide *d, uint32_t instr) {
  uint32_t guard = d->func->instrs[instr].guard;
  return d->divided[d->cfg->block_of[instr]] || (guard != PTX_NO_REG && d->differs[guard]);
}

void ptx_divide_free(ptx_divide *d) {
  if (!d) return;
  ptx_cfg_free(d->cfg);
  free(d->differs);
  free(d->divides);
  free(d->divided);
  free(d->parted);
  free(d);
}
