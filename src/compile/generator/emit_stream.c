/* SPDX-License-Identifier: Apache-2.0 */
/* What code with an access stream does in addition to computing: instructions counted into the pending ISSUE, waits,
 * marks. Accesses tell their own (emit_memory.c).
 *
 * The records are those of the interpreter, and made by the same functions
 * (exec/launch/access_records.c, exec/launch/mark.c); code only leaves out calls that would do nothing, and counts by
 * itself what goes into an ISSUE that has room. */
#include "compile/generator/generate.h"

#include "exec/core.h"
#include "trace/stream.h"

/* The machine instructions of those from segment to end (trace_count_units). */
static void add_units(generator *g, value segment, uint32_t end) {
  const native_layout *at = g->at;
  value table = gen_field(g, g->pointer, gen_field(g, g->pointer, g->warp, at->warp_function), at->function_units);
  value first = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, segment, g->i64, ""), gen_i64(g, sizeof(trace_counts)), "");
  value before = LLVMBuildGEP2(g->b, g->i8, table, &first, 1, "");
  for (uint32_t w = 0; w < TRACE_UNIT_WORDS; w++) {
    value behind = gen_load(g, g->i64, gen_at(g, table, sizeof(trace_counts) * (uint64_t)end + 8 * w), 8);
    gen_add_to(g, at->writer_units + 8 * w, g->i64,
               LLVMBuildSub(g->b, behind, gen_load(g, g->i64, gen_at(g, before, 8 * w), 8), ""));
  }
}

/* What the access stream's pending ISSUE gets of the instructions from segment to end (trace_put_issue), if they fit;
 * else core_trace_issue does it. Returns how many are then still to be counted in the warp. */
value gen_issue(generator *g, uint32_t end) {
  const native_layout *at = g->at;
  value segment = gen_read(g, g->i32, g->segment), passed = LLVMBuildSub(g->b, gen_i32(g, end), segment, "");
  if (!g->traced) return passed;
  LLVMBasicBlockRef fits = gen_block(g, "fits"), full = gen_block(g, "cut"), on = gen_block(g, "issued");
  value pending = LLVMBuildAdd(g->b, gen_field(g, g->i32, g->warp, at->writer_issue), passed, "");
  LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULE, pending, gen_i32(g, TRACE_ISSUE_MAX), ""), fits, full);
  LLVMPositionBuilderAtEnd(g->b, fits);
  gen_store(g, pending, gen_at(g, g->warp, at->writer_issue), 4);
  const struct {
    bool some;
    uint32_t table, counter;
  } units[2] = {{g->has_sfu, at->function_sfu, at->writer_sfu}, {g->has_fp64, at->function_fp64, at->writer_fp64}};
  for (int u = 0; u < 2; u++) {
    if (!units[u].some) continue;
    value table = gen_field(g, g->pointer, gen_field(g, g->pointer, g->warp, at->warp_function), units[u].table);
    value first = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, segment, g->i64, ""), gen_i64(g, 2), "");
    value before = gen_load(g, g->i32, LLVMBuildGEP2(g->b, g->i8, table, &first, 1, ""), 4);
    gen_add_to(g, units[u].counter, g->i32,
               LLVMBuildSub(g->b, gen_load(g, g->i32, gen_at(g, table, 4 * (uint64_t)end), 4), before, ""));
  }
  add_units(g, segment, end);
  LLVMBuildBr(g->b, on);
  LLVMPositionBuilderAtEnd(g->b, full);
  value last = gen_i32(g, end);
  gen_call_api(g, at->api_count, NULL, &last, 1);
  LLVMBuildBr(g->b, on);
  LLVMPositionBuilderAtEnd(g->b, on);
  value phi = LLVMBuildPhi(g->b, g->i32, ""), from[2] = {passed, gen_i32(g, 0)};
  LLVMBasicBlockRef blocks[2] = {fits, full};
  LLVMAddIncoming(phi, from, blocks, 2);
  return phi;
}

/* Before an instruction where a marked region begins or ends. */
void gen_mark(generator *g, const native_instr *n) {
  if (!g->traced || !(n->attention & EXEC_ATTEND_MARK) || n->op == NATIVE_EXIT) return;
  for (uint32_t r = 0; r < n->read_count; r++) gen_write_back(g, n->operands + r);
  value instr = gen_instr_address(g);
  gen_call_api(g, g->at->api_mark, NULL, &instr, 1);
}

/* Before an instruction that may need a value that is on its way. */
void gen_wait(generator *g, const native_instr *n) {
  if (!n->wait_count || n->op == NATIVE_EXIT) return;
  value outstanding = NULL;
  for (uint32_t l = 0; l < n->wait_count; l++) {
    value newest = gen_load(g, g->i32, gen_at(g, g->frame, g->waits[n->wait + l]), 4);
    outstanding = outstanding ? LLVMBuildOr(g->b, outstanding, newest, "") : newest;
  }
  LLVMBasicBlockRef some = gen_block(g, "wait"), on = gen_block(g, "waited");
  LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, outstanding, gen_i32(g, 0), ""), on, some);
  LLVMPositionBuilderAtEnd(g->b, some);
  value instr = gen_instr_address(g);
  gen_call_api(g, g->at->api_waits, NULL, &instr, 1);
  LLVMBuildBr(g->b, on);
  LLVMPositionBuilderAtEnd(g->b, on);
}
