/* SPDX-License-Identifier: Apache-2.0 */
/* Which split runs, in the body for any lanes: it changes where lanes part and where they meet, without the
 * interpreter.
 *
 * Exec/launch/split.c decides, as it does for the interpreter; the code reads what it has decided
 * from the warp (gen_read_split) and goes on at that place. Between two blocks, everything but the lanes, their number,
 * the rank to stay below and the counters is in the frame. */
#include "compile/generator/generate.h"

#include "exec/launch/native.h"

/* Below which rank the running split may go on: that of the next runnable one, if that is in this frame. */
static value rank_limit(generator *g) {
  const native_layout *at = g->at;
  value next = gen_field(g, g->i64, g->warp, at->warp_next_key),
        frame = gen_field(g, g->pointer, g->warp, at->warp_frame);
  value depth = gen_field(g, g->i32, frame, at->frame_depth);
  value mine = LLVMBuildZExt(g->b, LLVMBuildNot(g->b, depth, ""), g->i64, ""),
        other = LLVMBuildLShr(g->b, next, gen_i64(g, 32), "");
  value none = gen_i64(g, INT64_MAX), low = LLVMBuildAnd(g->b, next, gen_i64(g, UINT32_MAX), "");
  value limit = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntULT, other, mine, ""), gen_i64(g, 0), none, "");
  limit = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, other, mine, ""), low, limit, "");
  value alone = LLVMBuildICmp(g->b, LLVMIntEQ, gen_field(g, g->i32, g->warp, at->warp_ready_count), gen_i32(g, 0), "");
  return LLVMBuildSelect(g->b, alone, none, limit, "");
}

/* The running split is another now: what `any` has of it. where: what diverge or meet of exec_native_api returned. */
static void read_split(generator *g, value where) {
  const native_layout *at = g->at;
  LLVMBuildStore(g->b, where, g->where);
  LLVMBuildStore(g->b, gen_field(g, g->i32, g->warp, at->warp_active), g->lanes);
  LLVMBuildStore(g->b, gen_field(g, g->i32, g->warp, at->warp_active_count), g->lane_count);
  LLVMBuildStore(g->b, rank_limit(g), g->below);
}

static value entered_at(generator *g) {
  return LLVMBuildAnd(g->b, LLVMGetParam(g->function, 1), gen_i32(g, ~EXEC_NATIVE_KNOWN), "");
}

void gen_begin_splits(generator *g) {
  g->where = gen_variable(g, g->i32);
  g->taken = gen_variable(g, g->i32);
  g->parting = gen_block(g, "parting");
  if (g->full) return;
  g->meeting = gen_block(g, "meeting");
  g->dispatch = gen_block(g, "dispatch");
  read_split(g, entered_at(g));
}

void gen_part(generator *g, value taken) {
  LLVMBuildStore(g->b, gen_i32(g, g->now), g->where);
  LLVMBuildStore(g->b, taken, g->taken);
  LLVMBuildBr(g->b, g->parting);
}

void gen_part_indexed(generator *g) {
  value instr = gen_instr_address(g), where = gen_call_api(g, g->at->api_indexed, g->i32, &instr, 1);
  LLVMBasicBlockRef over = gen_block(g, "over"), on = gen_block(g, "on");
  value is_over = LLVMBuildICmp(g->b, LLVMIntEQ, where, gen_i32(g, EXEC_NATIVE_OVER), "");
  gen_branch(g, is_over, over, on, on, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, over);
  LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_YIELD));
  LLVMPositionBuilderAtEnd(g->b, on);
  if (g->full) {
    LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_AGAIN));
    return;
  }
  read_split(g, where);
  LLVMBuildBr(g->b, g->dispatch);
}

void gen_meet(generator *g) {
  LLVMBuildStore(g->b, gen_i32(g, g->now), g->where);
  LLVMBuildBr(g->b, g->meeting);
}

static value where_address(generator *g) {
  value offset = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, gen_read(g, g->i32, g->where), g->i64, ""),
                              gen_i64(g, g->at->instr_bytes), "");
  return LLVMBuildGEP2(g->b, g->i8, g->code, &offset, 1, "");
}

void gen_end_splits(generator *g) {
  LLVMPositionBuilderAtEnd(g->b, g->parting);
  value arguments[2] = {where_address(g), gen_read(g, g->i32, g->taken)};
  value where = gen_call_api(g, g->at->api_diverge, g->i32, arguments, 2);
  if (g->full) {
    LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_AGAIN));
    return;
  }
  read_split(g, where);
  LLVMBuildBr(g->b, g->dispatch);
  LLVMPositionBuilderAtEnd(g->b, g->meeting);
  arguments[0] = where_address(g);
  read_split(g, gen_call_api(g, g->at->api_meet, g->i32, arguments, 1));
  LLVMBuildBr(g->b, g->dispatch);
}

value gen_dispatch(generator *g, LLVMBasicBlockRef none) {
  LLVMPositionBuilderAtEnd(g->b, g->entry);
  if (g->full) return LLVMBuildSwitch(g->b, entered_at(g), none, g->plan->block_count);
  LLVMBasicBlockRef again = gen_block(g, "again");
  LLVMBuildBr(g->b, g->dispatch);
  LLVMPositionBuilderAtEnd(g->b, g->dispatch);
  value made = LLVMBuildSwitch(g->b, gen_read(g, g->i32, g->where), none, g->plan->block_count + 1);
  LLVMAddCase(made, gen_i32(g, EXEC_NATIVE_NOWHERE), again);
  LLVMPositionBuilderAtEnd(g->b, again);
  LLVMBuildRet(g->b, gen_i32(g, EXEC_NATIVE_AGAIN));
  return made;
}
