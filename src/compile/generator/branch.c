/* SPDX-License-Identifier: Apache-2.0 */
/* Branches: taken by all lanes, by none, or by some. In the last case short regions are executed under masks
 * (hammock.c); else the frame gets everything, and the lanes that come first go on (emit_split.c). */
#include "compile/generator/generate.h"

#include "exec/launch/native.h"

void gen_go_to(generator *g, uint32_t instr) { LLVMBuildBr(g->b, g->edges[g->plan->block_of[instr]]); }

/* A branch that is taken by all lanes: counts, and gives way if the turn is over. */
void gen_take(generator *g, const native_instr *n) {
  const plan *p = g->plan;
  value passed = gen_issue(g, n->index + 1), count = LLVMBuildAdd(g->b, gen_read(g, g->i32, g->count), passed, "");
  LLVMBuildStore(g->b, count, g->count);
  LLVMBuildStore(g->b, gen_i32(g, p->code[n->target].index), g->segment);
  if (n->target <= g->now) {
    value over = LLVMBuildICmp(g->b, LLVMIntSGT, count, gen_field(g, g->i32, g->warp, g->at->warp_budget), "");
    gen_leave_if(g, over, n->target, EXEC_NATIVE_YIELD, p->blocks[p->block_of[n->target]].live_in, NATIVE_NONE);
  }
  gen_go_to(g, n->target);
}

value gen_guard_bits(generator *g, const native_instr *n) {
  value bits = gen_vector(g, n->operands + n->read_count - 1);
  return n->guard_negated ? LLVMBuildNot(g->b, bits, "") : bits;
}

void gen_branch_if(generator *g, const native_instr *n, const plan_block *block) {
  LLVMBasicBlockRef taken = gen_block(g, "taken"), not_taken = gen_block(g, "not_taken");
  value one = gen_scalar(g, n->operands + n->read_count - 1);
  if (one) {
    LLVMBuildCondBr(g->b, n->guard_negated ? LLVMBuildNot(g->b, one, "") : one, taken, not_taken);
  } else {
    LLVMBasicBlockRef some = gen_block(g, "some");
    value lanes = gen_guard_bits(g, n);
    if (!g->full) lanes = LLVMBuildAnd(g->b, lanes, g->active, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, lanes, gen_i32(g, 0), ""), not_taken, some);
    LLVMPositionBuilderAtEnd(g->b, some);
    LLVMBasicBlockRef apart = gen_block(g, "apart");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, lanes, g->active, ""), taken, apart);
    LLVMPositionBuilderAtEnd(g->b, apart);
    if (!gen_hammock(g, g->plan->block_of[g->now], lanes)) {
      gen_write_stale(g, block->live_out, true);
      gen_part(g, lanes);
    }
  }
  LLVMPositionBuilderAtEnd(g->b, not_taken);
  gen_go_to(g, block->end);
  LLVMPositionBuilderAtEnd(g->b, taken);
  gen_take(g, n);
}
