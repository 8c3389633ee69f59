/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of some lanes: each lane's cell by itself. */
#include "compile/generator/access.h"

#include <stdio.h>

/* Is no lane of `bad` among those that access? */
static value none_of(const access *a, value bad) {
  value bits = LLVMBuildAnd(a->b, gen_bits(a->g, bad), a->bits, "");
  return LLVMBuildICmp(a->b, LLVMIntEQ, bits, gen_i32(a->g, 0), "");
}

static value any_of(const access *a, value x, value y) { return LLVMBuildOr(a->b, x, y, ""); }

static value misaligned(const access *a, value lanes, LLVMTypeRef type) {
  value low = LLVMBuildAnd(a->b, lanes, gen_splat(a->g, LLVMConstInt(type, a->total - 1, false)), "");
  return LLVMBuildICmp(a->b, LLVMIntNE, low, LLVMConstNull(gen_vector_type(type)), "");
}

/* Cells that a gather of the processor's takes. LLVM makes a branch per lane of one for AVX2, which a loop over the lanes that access is better than. */
static bool gathers(const access *a) { return a->g->wide_vectors && !a->n->store && a->n->elements == 1 && a->n->bytes == a->n->slot_bytes; }

static value gather(const access *a, value base, value offset) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell), pointers = gen_vector_type(LLVMPointerType(a->cell, 0)), types[2] = {type, pointers};
  value at = LLVMBuildBitCast(a->b, LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, ""), pointers, "");
  value arguments[4] = {at, gen_i32(g, a->n->bytes), gen_lanes(g, a->bits), LLVMConstNull(type)};
  return gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4);
}

static value in_memory(const access *a, value v) {
  value row = gen_variable(a->g, LLVMTypeOf(v));
  gen_store(a->g, v, row, 64);
  return LLVMBuildBitCast(a->b, row, a->g->pointer, "");
}

static value element_of(const access *a, LLVMTypeRef type, value row, value lane, uint32_t bytes) {
  value at = LLVMBuildMul(a->b, lane, gen_i64(a->g, bytes), "");
  return gen_load(a->g, type, LLVMBuildGEP2(a->b, a->g->i8, row, &at, 1, ""), bytes);
}

/* each(base, offsets, row, lanes): a cell between base + offsets[l] and row[l], lane after lane, which is the order of stores to one cell. A
 * function of the module for each width: there are many places that need it. */
static value each_function(const access *a, uint32_t offset_bytes) {
  generator *g = a->g;
  const native_instr *n = a->n;
  char name[64];
  snprintf(name, sizeof name, "each_%u_%u_%u_%u_%u_%u", n->store, n->bytes, n->slot_bytes, n->sign, n->to16, offset_bytes);
  value made = LLVMGetNamedFunction(g->module, name);
  if (made) return made;
  LLVMTypeRef types[4] = {g->pointer, g->pointer, g->pointer, g->i32};
  LLVMBasicBlockRef here = LLVMGetInsertBlock(a->b);
  made = LLVMAddFunction(g->module, name, LLVMFunctionType(LLVMVoidTypeInContext(g->context), types, 4, false));
  LLVMSetLinkage(made, LLVMInternalLinkage);
  LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(g->context, made, ""), loop = LLVMAppendBasicBlockInContext(g->context, made, ""),
                    end = LLVMAppendBasicBlockInContext(g->context, made, "");
  LLVMPositionBuilderAtEnd(a->b, first);
  value base = LLVMGetParam(made, 0), offsets = LLVMGetParam(made, 1), row = LLVMGetParam(made, 2), lanes = LLVMGetParam(made, 3);
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, lanes, gen_i32(g, 0), ""), end, loop);
  LLVMPositionBuilderAtEnd(a->b, loop);
  value left = LLVMBuildPhi(a->b, g->i32, ""), count[2] = {left, LLVMConstInt(g->i1, 1, false)};
  value lane = LLVMBuildZExt(a->b, gen_intrinsic(g, "llvm.cttz", &g->i32, 1, count, 2), g->i64, "");
  value offset = element_of(a, offset_bytes == 4 ? g->i32 : g->i64, offsets, lane, offset_bytes);
  if (offset_bytes == 4) offset = LLVMBuildZExt(a->b, offset, g->i64, "");
  value cell = LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, ""), at = LLVMBuildMul(a->b, lane, gen_i64(g, n->slot_bytes), "");
  value slot = LLVMBuildGEP2(a->b, g->i8, row, &at, 1, "");
  if (n->store) gen_store(g, LLVMBuildTrunc(a->b, gen_load(g, a->slot, slot, n->slot_bytes), a->cell, ""), cell, n->bytes);
  else gen_store(g, access_extended(a, gen_load(g, a->cell, cell, n->bytes), a->slot), slot, n->slot_bytes);
  value next = LLVMBuildAnd(a->b, left, LLVMBuildSub(a->b, left, gen_i32(g, 1), ""), "");
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, next, gen_i32(g, 0), ""), end, loop);
  value from[2] = {lanes, next};
  LLVMBasicBlockRef blocks[2] = {first, loop};
  LLVMAddIncoming(left, from, blocks, 2);
  LLVMPositionBuilderAtEnd(a->b, end);
  LLVMBuildRetVoid(a->b);
  LLVMPositionBuilderAtEnd(a->b, here);
  return made;
}

static void call_each(const access *a, uint32_t offset_bytes, value base, value offsets, value row) {
  LLVMTypeRef types[4] = {a->g->pointer, a->g->pointer, a->g->pointer, a->g->i32};
  value arguments[4] = {base, offsets, row, a->bits};
  LLVMBuildCall2(a->b, LLVMFunctionType(LLVMVoidTypeInContext(a->g->context), types, 4, false), each_function(a, offset_bytes), arguments, 4, "");
}

/* Where the guard is false the old value stays. */
static value merged(const access *a, uint32_t element, value v) {
  return a->guard ? LLVMBuildSelect(a->b, gen_lanes(a->g, a->bits), v, gen_vector(a->g, access_written(a, element)), "") : v;
}

/* base: of the pointers; offset: bytes from it, of each lane that accesses, not negative. */
static void cells(const access *a, value base, value offset, value *results) {
  generator *g = a->g;
  const native_instr *n = a->n;
  uint32_t offset_bytes = LLVMTypeOf(offset) == gen_vector_type(g->i32) ? 4 : 8;
  if (gathers(a)) {
    value wide = offset_bytes == 4 ? LLVMBuildSExt(a->b, offset, gen_vector_type(g->i64), "") : offset;
    results[0] = merged(a, 0, gather(a, base, wide));
    return;
  }
  value offsets = in_memory(a, offset);
  for (uint32_t e = 0; e < n->elements; e++) {
    value from = gen_at(g, base, (uint64_t)e * n->bytes);
    LLVMTypeRef type = gen_vector_type(a->slot);
    value row = in_memory(a, n->store ? gen_vector(g, n->operands + 1 + e) : LLVMConstNull(type));
    call_each(a, offset_bytes, from, offsets, row);
    if (!n->store) results[e] = merged(a, e, gen_load(g, type, row, 64));
  }
}

/* What is needed on both ways. */
static void know_operands(const access *a) {
  for (uint32_t e = 0; e < a->n->elements; e++)
    if (a->n->store) gen_vector(a->g, a->n->operands + 1 + e);
    else if (a->guard) gen_vector(a->g, access_written(a, e));
}

bool access_cells_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  if (a->n->immediate < 0 || a->n->immediate > INT32_MAX || (g->traced && a->total != 4)) return false;
  value beyond, high = NULL, results[4];
  lanes = access_narrow(a, lanes, &beyond);
  if (beyond) high = LLVMBuildICmp(a->b, LLVMIntNE, beyond, LLVMConstNull(LLVMTypeOf(beyond)), "");
  value offset = LLVMBuildAdd(a->b, lanes, gen_splat(g, gen_i32(g, (uint32_t)a->n->immediate)), "");
  value bytes = gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes), room = LLVMBuildSub(a->b, bytes, gen_i32(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, room), "");
  if (high) outside = any_of(a, outside, any_of(a, high, LLVMBuildICmp(a->b, LLVMIntULT, offset, lanes, ""))); /* the sum may not fit either */
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, offset, g->i32));
  value good = access_both(a, LLVMBuildICmp(a->b, LLVMIntUGE, bytes, gen_i32(g, a->total), ""), none_of(a, outside));
  know_operands(a);
  fork f = access_begin_fast(a, good);
  if (g->traced) access_tell_passes(a, access_ask_conflicts(a, offset));
  cells(a, access_shared_base(a), offset, results);
  access_end_fast(a, f, results, false);
  return true;
}

bool access_cells_of_global(const access *a, value lanes) {
  generator *g = a->g;
  value record = access_record_of(a), start = gen_field(g, g->i64, record, g->at->record_address), results[4];
  value room = gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable);
  value add = LLVMBuildSub(a->b, gen_i64(g, (uint64_t)a->n->immediate), start, "");
  value offset = LLVMBuildAdd(a->b, lanes, gen_splat(g, add), ""), last = LLVMBuildSub(a->b, room, gen_i64(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), "");
  value address = LLVMBuildAdd(a->b, lanes, gen_splat(g, gen_i64(g, (uint64_t)a->n->immediate)), "");
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, address, g->i64));
  know_operands(a);
  fork f = access_begin_fast(a, access_both(a, access_at_least(a, room, gen_i64(g, a->total)), none_of(a, outside)));
  if (g->watched) access_tell(a, g->at->api_scattered, in_memory(a, lanes));
  cells(a, access_pointer_to(a, start), offset, results);
  access_end_fast(a, f, results, false);
  return true;
}

