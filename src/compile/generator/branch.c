/* SPDX-License-Identifier: Apache-2.0 */
/* Branches: taken by all lanes, by none, or by some. In the last case short regions are executed under masks
 * (hammock.c); else the frame gets everything, and the lanes that come first go on (emit_split.c). By an index, too. */
#include "compile/generator/generate.h"

#include "exec/launch/native.h"

void gen_go_to(generator *g, uint32_t instr) { LLVMBuildBr(g->b, g->edges[g->plan->block_of[instr]]); }

/* On a way back: gives way if the turn is over after `count` instructions that are not counted yet. */
static void leave_if_over(generator *g, uint32_t target, value count) {
  if (target > g->now) return;
  const plan *p = g->plan;
  value over = LLVMBuildICmp(g->b, LLVMIntSGT, count, gen_field(g, g->i32, g->warp, g->at->warp_budget), "");
  gen_leave_if(g, over, target, EXEC_NATIVE_YIELD, p->blocks[p->block_of[target]].live_in, NATIVE_NONE);
}

/* A branch that is taken by all lanes: counts, and gives way if the turn is over. */
void gen_take(generator *g, const native_instr *n) {
  const plan *p = g->plan;
  value passed = gen_issue(g, n->index + 1), count = LLVMBuildAdd(g->b, gen_read(g, g->i32, g->count), passed, "");
  LLVMBuildStore(g->b, count, g->count);
  LLVMBuildStore(g->b, gen_i32(g, p->code[n->target].index), g->segment);
  leave_if_over(g, n->target, count);
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

/* The index of one of the lanes that run; *same: all of them have it. */
static value common_index(generator *g, uint32_t k, value *same) {
  value index = gen_vector(g, k);
  if (g->full) {
    value first = LLVMBuildExtractElement(g->b, index, gen_i32(g, 0), "");
    *same = gen_same(g, index, gen_splat(g, first));
    return first;
  }
  value arguments[2] = {g->active, LLVMConstInt(g->i1, 1, false)};
  value lane = gen_intrinsic(g, "llvm.cttz", &g->i32, 1, arguments, 2);
  value offset = LLVMBuildZExt(g->b, LLVMBuildShl(g->b, lane, gen_i32(g, 2), ""), g->i64, "");
  value first = gen_load(g, g->i32, LLVMBuildGEP2(g->b, g->i8, gen_in_memory(g, index), &offset, 1, ""), 4);
  value others = gen_bits(g, LLVMBuildICmp(g->b, LLVMIntNE, index, gen_splat(g, first), ""));
  *same = LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildAnd(g->b, others, g->active, ""), gen_i32(g, 0), "");
  return first;
}

void gen_branch_indexed(generator *g, const native_instr *n, const plan_block *block) {
  const uint32_t *targets = g->waits + n->target;
  LLVMBasicBlockRef together = gen_block(g, "together"), apart = gen_block(g, "apart");
  value same = NULL, one = gen_scalar(g, n->operands);
  if (!one) one = common_index(g, n->operands, &same);
  value good = LLVMBuildICmp(g->b, LLVMIntULT, one, gen_i32(g, n->aux), "");
  LLVMBuildCondBr(g->b, same ? LLVMBuildAnd(g->b, same, good, "") : good, together, apart);
  LLVMPositionBuilderAtEnd(g->b, apart);
  gen_write_stale(g, block->live_out, true);
  gen_write_back(g, n->operands);
  gen_part_indexed(g);
  LLVMPositionBuilderAtEnd(g->b, together);
  value passed = gen_issue(g, n->index + 1);
  value count = LLVMBuildAdd(g->b, gen_read(g, g->i32, g->count), passed, "");
  LLVMBuildStore(g->b, count, g->count);
  LLVMBasicBlockRef last = gen_block(g, "target");
  value which = LLVMBuildSwitch(g->b, one, last, n->aux);
  for (uint32_t t = 0; t < n->aux; t++) {
    LLVMBasicBlockRef here = t + 1 < n->aux ? gen_block(g, "target") : last;
    if (here != last) LLVMAddCase(which, gen_i32(g, t), here);
    LLVMPositionBuilderAtEnd(g->b, here);
    LLVMBuildStore(g->b, gen_i32(g, g->plan->code[targets[t]].index), g->segment);
    leave_if_over(g, targets[t], count);
    gen_go_to(g, targets[t]);
  }
}
