/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of some lanes: each lane's cell by itself.
 *
 * All of one kind are a function of the module: checking 32 addresses is a hundred instructions, and there are many
 * places that need it. It takes addresses and values from the frame and leaves results there, so that lanes that do not
 * access keep what they have, on its own way as on the handler's. */
#include "compile/generator/emit_access.h"

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

/* Cells that a gather of the processor's takes. LLVM makes a branch per lane of one for AVX2, which a loop over the
 * lanes that access is better than. */
static bool gathers(const access *a) {
  return a->g->wide_vectors && !a->n->store && a->n->elements == 1 && a->n->bytes == a->n->slot_bytes;
}

static value gather(const access *a, value base, value offset, value before) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell), pointers = gen_vector_type(LLVMPointerType(a->cell, 0)),
              types[2] = {type, pointers};
  value at = LLVMBuildBitCast(a->b, LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, ""), pointers, "");
  value arguments[4] = {at, gen_i32(g, a->n->bytes), gen_lanes(g, a->bits), before};
  return gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4);
}

static value element_of(const access *a, LLVMTypeRef type, value row, value lane, uint32_t bytes) {
  value at = LLVMBuildMul(a->b, lane, gen_i64(a->g, bytes), "");
  return gen_load(a->g, type, LLVMBuildGEP2(a->b, a->g->i8, row, &at, 1, ""), bytes);
}

/* ---- lane after lane, which is the order of stores to one cell ---- */

typedef struct lane_loop {
  LLVMBasicBlockRef loop, end;
  value left, lane;
} lane_loop;

/* Goes on inside a loop over these lanes. */
static lane_loop begin_lanes(const access *a, value lanes) {
  generator *g = a->g;
  LLVMBasicBlockRef first = LLVMGetInsertBlock(a->b);
  lane_loop l = {.loop = gen_block(g, "loop"), .end = gen_block(g, "end")};
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, lanes, gen_i32(g, 0), ""), l.end, l.loop);
  LLVMPositionBuilderAtEnd(a->b, l.loop);
  l.left = LLVMBuildPhi(a->b, g->i32, "");
  LLVMAddIncoming(l.left, &lanes, &first, 1);
  value count[2] = {l.left, LLVMConstInt(g->i1, 1, false)};
  l.lane = LLVMBuildZExt(a->b, gen_intrinsic(g, "llvm.cttz", &g->i32, 1, count, 2), g->i64, "");
  return l;
}

static void end_lanes(const access *a, lane_loop l) {
  value next = LLVMBuildAnd(a->b, l.left, LLVMBuildSub(a->b, l.left, gen_i32(a->g, 1), ""), "");
  LLVMAddIncoming(l.left, &next, &l.loop, 1);
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, next, gen_i32(a->g, 0), ""), l.end, l.loop);
  LLVMPositionBuilderAtEnd(a->b, l.end);
}

/* A cell between base + offsets[l] and row[l]. */
static void each(const access *a, uint32_t offset_bytes, value base, value offsets, value row) {
  generator *g = a->g;
  const native_instr *n = a->n;
  lane_loop l = begin_lanes(a, a->bits);
  value offset = element_of(a, offset_bytes == 4 ? g->i32 : g->i64, offsets, l.lane, offset_bytes);
  if (offset_bytes == 4) offset = LLVMBuildZExt(a->b, offset, g->i64, "");
  value cell = LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, ""),
        at = LLVMBuildMul(a->b, l.lane, gen_i64(g, n->slot_bytes), "");
  value slot = LLVMBuildGEP2(a->b, g->i8, row, &at, 1, "");
  if (n->store)
    gen_store(g, LLVMBuildTrunc(a->b, gen_load(g, a->slot, slot, n->slot_bytes), a->cell, ""), cell, n->bytes);
  else gen_store(g, access_extended(a, gen_load(g, a->cell, cell, n->bytes), a->slot), slot, n->slot_bytes);
  end_lanes(a, l);
}

/* For the handler: what `from` has of the accessing lanes goes to its place in the frame, if that is another. */
static void to_frame(const access *a, value from, value place, uint32_t bytes) {
  LLVMBasicBlockRef copy = gen_block(a->g, "copy"), on = gen_block(a->g, "copied");
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, from, place, ""), on, copy);
  LLVMPositionBuilderAtEnd(a->b, copy);
  LLVMTypeRef type = bytes == 4 ? a->g->i32 : a->g->i64;
  lane_loop l = begin_lanes(a, a->bits);
  value offset = LLVMBuildMul(a->b, l.lane, gen_i64(a->g, bytes), "");
  gen_store(a->g, element_of(a, type, from, l.lane, bytes), LLVMBuildGEP2(a->b, a->g->i8, place, &offset, 1, ""),
            bytes);
  end_lanes(a, l);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
}

/* ---- the function ---- */

/* Its parameters, behind those that all such functions have: for the addresses, and for each element its row; where
 * they are, and their places in the frame. */
enum { INSTR = 3, BITS, IMMEDIATE, ADDRESSES, ADDRESSES_PLACE, ROWS };

static value row_of(value function, uint32_t element) { return LLVMGetParam(function, ROWS + 2 * element); }

/* base: of the pointers; offset: bytes from it, of each lane that accesses, not negative; offsets: the same in memory,
 * if base is `from` there. */
static void do_cells(const access *a, value function, value base, value offset, value from, value offsets) {
  generator *g = a->g;
  const native_instr *n = a->n;
  uint32_t offset_bytes = LLVMTypeOf(offset) == gen_vector_type(g->i32) ? 4 : 8;
  if (gathers(a)) {
    value wide = offset_bytes == 4 ? LLVMBuildSExt(a->b, offset, gen_vector_type(g->i64), "") : offset,
          row = row_of(function, 0);
    gen_store(g, gather(a, base, wide, gen_load(g, gen_vector_type(a->cell), row, 64)), row, 64);
    return;
  }
  for (uint32_t e = 0; e < n->elements; e++)
    each(a, offset_bytes, gen_at(g, from, (uint64_t)e * n->bytes), offsets, row_of(function, e));
}

static void end_function(const access *a, value function, fork f, bool global) {
  generator *g = a->g;
  if (global) {
    /* no lane: none */
    value some = LLVMBuildZExt(a->b, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), g->i64, "");
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, gen_read(g, g->i64, g->accesses), some, ""), g->accesses);
  }
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.slow);
  to_frame(a, LLVMGetParam(function, ADDRESSES), LLVMGetParam(function, ADDRESSES_PLACE), a->n->wide ? 8 : 4);
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++)
    to_frame(a, row_of(function, e), LLVMGetParam(function, ROWS + 2 * e + 1), a->n->slot_bytes);
  gen_call_handler_of(g, a->n, LLVMGetParam(function, INSTR));
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.on);
  LLVMBuildRetVoid(a->b);
}

static void global_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  value instr = LLVMGetParam(function, INSTR), addresses = LLVMGetParam(function, ADDRESSES),
        immediate = LLVMGetParam(function, IMMEDIATE);
  a->bits = LLVMGetParam(function, BITS);
  value lanes = gen_load(g, gen_vector_type(g->i64), addresses, 64),
        address = LLVMBuildAdd(a->b, lanes, gen_splat(g, immediate), "");
  value record = access_record_of(a, instr), start = gen_field(g, g->i64, record, g->at->record_address);
  value room = gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable),
        last = LLVMBuildSub(a->b, room, gen_i64(g, a->total), "");
  value offset = LLVMBuildSub(a->b, address, gen_splat(g, start), ""),
        outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), "");
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, address, g->i64));
  fork f = access_begin_fast(a, access_both(a, access_at_least(a, room, gen_i64(g, a->total)), none_of(a, outside)));
  value arguments[2] = {instr, addresses};
  if (g->watched) gen_call_api(g, g->at->api_scattered, NULL, arguments, 2);
  value base = access_pointer_to(a, start);
  if (a->n->store) do_cells(a, function, base, offset, access_pointer_to(a, immediate), addresses);
  else
    do_cells(a, function, base, offset, base,
             gathers(a) ? NULL : gen_in_memory(g, offset)); /* results may come where the addresses are */
  end_function(a, function, f, true);
}

static void shared_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  a->bits = LLVMGetParam(function, BITS);
  value lanes = gen_load(g, gen_vector_type(a->n->wide ? g->i64 : g->i32), LLVMGetParam(function, ADDRESSES), 64),
        beyond, high = NULL;
  lanes = access_narrow(a, lanes, &beyond);
  if (beyond) high = LLVMBuildICmp(a->b, LLVMIntNE, beyond, LLVMConstNull(LLVMTypeOf(beyond)), "");
  value offset =
      LLVMBuildAdd(a->b, lanes, gen_splat(g, LLVMBuildTrunc(a->b, LLVMGetParam(function, IMMEDIATE), g->i32, "")), "");
  value bytes = gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes),
        room = LLVMBuildSub(a->b, bytes, gen_i32(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, room), "");
  /* the sum may not fit either */
  if (high) outside = any_of(a, outside, any_of(a, high, LLVMBuildICmp(a->b, LLVMIntULT, offset, lanes, "")));
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, offset, g->i32));
  fork f = access_begin_fast(
      a, access_both(a, LLVMBuildICmp(a->b, LLVMIntUGE, bytes, gen_i32(g, a->total), ""), none_of(a, outside)));
  if (g->traced) access_tell_passes_of(a, LLVMGetParam(function, INSTR), access_ask_conflicts(a, offset));
  value base = access_shared_base(a);
  do_cells(a, function, base, offset, base, gathers(a) ? NULL : gen_in_memory(g, offset));
  end_function(a, function, f, false);
}

/* ---- its calls ---- */

/* Where operand k is, and its place in the frame (the pool, for a constant): another one if the frame does not have it
 * yet. */
static void operand_places(generator *g, uint32_t k, bool read, value *places) {
  uint32_t offset = g->plan->operands[k].offset, slot = g->plan->slot_of[k];
  places[0] = places[1] = offset & 1 ? gen_at(g, g->pool, offset & ~1u) : gen_at(g, g->frame, offset);
  if (read && slot != NATIVE_NONE && g->slots[slot].stale) places[0] = gen_in_memory(g, gen_vector(g, k));
}

bool access_cells(const access *a, bool global) {
  generator *g = a->g;
  const native_instr *n = a->n;
  if (!global && (n->immediate < 0 || n->immediate > INT32_MAX || (g->traced && a->total != 4))) return false;
  char name[80];
  snprintf(name, sizeof name, "cells_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u", g->masked, global, n->store, n->bytes,
           n->elements, n->slot_bytes, n->sign, n->to16, n->wide, n->flow, n->observes);
  value more[5 + 2 * 4] = {gen_instr_address(g), a->bits, gen_i64(g, (uint64_t)n->immediate)};
  operand_places(g, n->operands, true, more + 3);
  if (a->guard) gen_write_back(g, n->operands + n->read_count - 1); /* the handler looks at it */
  for (uint32_t e = 0; e < n->elements; e++) {
    uint32_t k = n->store ? n->operands + 1 + e : access_written(a, e);
    if (!n->store && a->guard) gen_write_back(g, k); /* of lanes whose guard is false */
    operand_places(g, k, n->store, more + 5 + 2 * e);
  }
  gen_call_outline(g, name, NULL, more, 5 + 2 * n->elements, global ? global_inside : shared_inside, a);
  gen_written(g, n);
  return true;
}
