/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of some lanes by gathers and scatters, with AVX-512 and where nothing is told of them.
 *
 * All of one kind are a function of the module, as those of cells.c, but addresses and values pass in registers: only
 * the handler, on the slow way, finds them in the frame. Cells of one and two bytes are taken out of the aligned word
 * around them, which no page's end divides. A scatter writes lane after lane, which is the order of stores to one
 * cell; words only, as stores of less would write what is next to them. */
#include <stdio.h>

#include "compile/generator/emit_access.h"

enum { GATHER_INSTR = 3, GATHER_BITS, GATHER_IMMEDIATE, GATHER_PLACE, GATHER_ROW, GATHER_ADDRESSES, GATHER_DATA };

bool access_has_gathers(const access *a, bool global) {
  const generator *g = a->g;
  const native_instr *n = a->n;
  if (!g->wide_vectors || g->traced || g->watched || !a->bits || n->elements != 1) return false;
  if (n->bytes < 4 && (n->store || n->slot_bytes != 4)) return false;
  if (n->bytes >= 4 && n->bytes != n->slot_bytes) return false;
  return access_has_cells(a, global);
}

static LLVMTypeRef row_type(const access *a) { return gen_vector_type(a->slot); }

static value pointer_of(const access *a, value at, LLVMTypeRef type) {
  return LLVMBuildBitCast(a->b, at, LLVMPointerType(type, 0), "");
}

/* Operand k to its place in the frame, for the lanes that access. A constant is in the pool. */
static void to_frame(const access *a, uint32_t k, value v, value place) {
  if (a->g->plan->slot_of[k] == NATIVE_NONE) return;
  LLVMTypeRef type = LLVMTypeOf(v), types[2] = {type, LLVMPointerType(type, 0)};
  value arguments[4] = {v, pointer_of(a, place, type), gen_i32(a->g, 64), gen_lanes(a->g, a->bits)};
  gen_intrinsic(a->g, "llvm.masked.store", types, 2, arguments, 4);
}

/* Pointers of cells or words at base + offset; no offset is negative. */
static value pointers_at(const access *a, value base, value offset, LLVMTypeRef cell) {
  generator *g = a->g;
  /* offsets in shared memory are below 2^31: with their sign, they are indices of 32 bits to LLVM */
  if (LLVMTypeOf(offset) == gen_vector_type(g->i32)) offset = LLVMBuildSExt(a->b, offset, gen_vector_type(g->i64), "");
  value at = LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, "");
  return LLVMBuildBitCast(a->b, at, gen_vector_type(LLVMPointerType(cell, 0)), "");
}

static value gathered(const access *a, value pointers, LLVMTypeRef cell, value kept) {
  generator *g = a->g;
  LLVMTypeRef types[2] = {gen_vector_type(cell), LLVMTypeOf(pointers)};
  value arguments[4] = {pointers, gen_i32(g, cell == g->i64 ? 8 : 4), gen_lanes(g, a->bits), kept};
  return gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4);
}

/* kept: what lanes that do not access have. low: the lowest bits of each cell's address. */
static value load_cells(const access *a, value base, value offset, value low, value kept) {
  generator *g = a->g;
  if (a->n->bytes >= 4) return gathered(a, pointers_at(a, base, offset, a->cell), a->cell, kept);
  LLVMTypeRef word = gen_vector_type(g->i32);
  value in_word = LLVMBuildAnd(a->b, low, gen_splat(g, gen_i32(g, 3)), "");
  value back = LLVMTypeOf(offset) == word ? in_word : LLVMBuildZExt(a->b, in_word, LLVMTypeOf(offset), "");
  value words =
      gathered(a, pointers_at(a, base, LLVMBuildSub(a->b, offset, back, ""), g->i32), g->i32, LLVMConstNull(word));
  value moved = LLVMBuildLShr(a->b, words, LLVMBuildShl(a->b, in_word, gen_splat(g, gen_i32(g, 3)), ""), "");
  value cells = access_extended(a, LLVMBuildTrunc(a->b, moved, gen_vector_type(a->cell), ""), row_type(a));
  return a->guard ? LLVMBuildSelect(a->b, gen_lanes(g, a->bits), cells, kept, "") : cells;
}

value access_gather_narrow(const access *a, value base, value offset) {
  access copy = *a;
  copy.guard = NULL;
  return load_cells(&copy, base, offset, offset, NULL);
}

static void store_cells(const access *a, value base, value offset, value data) {
  generator *g = a->g;
  value pointers = pointers_at(a, base, offset, a->cell);
  LLVMTypeRef types[2] = {LLVMTypeOf(data), LLVMTypeOf(pointers)};
  value arguments[4] = {data, pointers, gen_i32(g, a->n->bytes), gen_lanes(g, a->bits)};
  gen_intrinsic(g, "llvm.masked.scatter", types, 2, arguments, 4);
}

/* ---- two rows, as where a short row ends among the lanes ---- */

typedef struct two_rows {
  value start[2]; /* the offset that lane 0 has in the row that the first lane that accesses is in, in the last one's */
  value bits[2];  /* i32: the lanes in the first, the others */
  value good;     /* are those in the second? If cells are stored, all of them have to be behind the first ones */
} two_rows;

/* offsets: the same in memory. */
static value start_of_row(const access *a, value offsets, LLVMTypeRef type, bool last) {
  generator *g = a->g;
  value arguments[2] = {a->bits, LLVMConstInt(g->i1, 1, false)};
  value lane = gen_intrinsic(g, last ? "llvm.ctlz" : "llvm.cttz", &g->i32, 1, arguments, 2);
  if (last) lane = LLVMBuildSub(a->b, gen_i32(g, EXEC_LANES - 1), lane, "");
  value wide = LLVMBuildZExt(a->b, lane, g->i64, ""),
        at = LLVMBuildMul(a->b, wide, gen_i64(g, type == g->i32 ? 4 : 8), "");
  value met = gen_field(g, type, LLVMBuildGEP2(a->b, g->i8, offsets, &at, 1, ""), 0);
  value before = LLVMBuildMul(a->b, type == g->i32 ? lane : wide, LLVMConstInt(type, a->total, false), "");
  return LLVMBuildSub(a->b, met, before, "");
}

/* i32: lanes that access, and are not in the row that begins there. */
static value off_row(const access *a, value offset, value start) {
  generator *g = a->g;
  value row = LLVMBuildAdd(a->b, gen_splat(g, start), access_ladder(g, LLVMTypeOf(start), a->total), "");
  return LLVMBuildAnd(a->b, gen_bits(g, LLVMBuildICmp(a->b, LLVMIntNE, offset, row, "")), a->bits, "");
}

/* Some lane accesses. */
static two_rows find_two_rows(const access *a, value offset) {
  generator *g = a->g;
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(offset));
  value offsets = gen_in_memory(g, offset), off[2];
  two_rows r;
  for (int n = 0; n < 2; n++) {
    r.start[n] = start_of_row(a, offsets, type, n);
    off[n] = off_row(a, offset, r.start[n]);
  }
  r.bits[0] = LLVMBuildXor(a->b, a->bits, off[0], "");
  r.bits[1] = off[0];
  r.good = LLVMBuildICmp(a->b, LLVMIntEQ, LLVMBuildAnd(a->b, off[0], off[1], ""), gen_i32(g, 0), "");
  if (!a->n->store) return r;
  /* no lane of the first is above the lowest of the others */
  value lowest = LLVMBuildAnd(a->b, off[0], LLVMBuildNeg(a->b, off[0], ""), "");
  value above = LLVMBuildAnd(a->b, r.bits[0], LLVMBuildNeg(a->b, lowest, ""), "");
  r.good = access_both(a, r.good, LLVMBuildICmp(a->b, LLVMIntEQ, above, gen_i32(g, 0), ""));
  return r;
}

/* Where its lane 0 would be, which may lie before the memory: with its sign. */
static value row_at(const access *a, value base, value start, LLVMTypeRef type) {
  if (LLVMTypeOf(start) == a->g->i32) start = LLVMBuildSExt(a->b, start, a->g->i64, "");
  return pointer_of(a, LLVMBuildGEP2(a->b, a->g->i8, base, &start, 1, ""), type);
}

/* Returns what is loaded. */
static value move_two_rows(const access *a, const two_rows *r, value base, value data) {
  generator *g = a->g;
  LLVMTypeRef type = LLVMTypeOf(data);
  for (int n = 0; n < 2; n++) {
    value at = row_at(a, base, r->start[n], type), align = gen_i32(g, a->n->bytes), mask = gen_lanes(g, r->bits[n]);
    value load[4] = {at, align, mask, data}, store[4] = {data, at, align, mask};
    LLVMTypeRef types[2] = {type, LLVMTypeOf(at)};
    if (a->n->store) gen_intrinsic(g, "llvm.masked.store", types, 2, store, 4);
    else data = gen_intrinsic(g, "llvm.masked.load", types, 2, load, 4);
  }
  return data;
}

/* ---- all of them ---- */

/* Returns from the function after a fast way, which has loaded that. */
static void return_fast(const access *a, bool global, value loaded) {
  generator *g = a->g;
  if (global) {
    value some = LLVMBuildZExt(a->b, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), g->i64, "");
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, gen_read(g, g->i64, g->accesses), some, ""), g->accesses);
  }
  if (a->n->store) LLVMBuildRetVoid(a->b);
  else LLVMBuildRet(a->b, loaded);
}

static void move_fast(const access *a, bool global, value base, value offset, value low, value data) {
  generator *g = a->g;
  if (a->n->bytes >= 4) {
    LLVMBasicBlockRef look = gen_block(g, "look"), two = gen_block(g, "two"), cells = gen_block(g, "cells");
    LLVMBuildCondBr(a->b, access_has_rows(a, offset), look, cells);
    LLVMPositionBuilderAtEnd(a->b, look);
    two_rows r = find_two_rows(a, offset);
    LLVMBuildCondBr(a->b, r.good, two, cells);
    LLVMPositionBuilderAtEnd(a->b, two);
    return_fast(a, global, move_two_rows(a, &r, base, data));
    LLVMPositionBuilderAtEnd(a->b, cells);
  }
  value loaded = NULL;
  if (a->n->store) store_cells(a, base, offset, data);
  else loaded = load_cells(a, base, offset, low, data);
  return_fast(a, global, loaded);
}

/* The function's way through the fast one and the handler: no offset of a lane that accesses is negative. */
static void finish(const access *a, value function, bool global, value good, value base, value offset, value low) {
  generator *g = a->g;
  value data = LLVMGetParam(function, GATHER_DATA);
  LLVMBasicBlockRef fast = gen_block(g, "fast"), slow = gen_block(g, "slow");
  gen_branch(g, good, fast, slow, fast, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(a->b, fast);
  move_fast(a, global, base, offset, low, data);
  LLVMPositionBuilderAtEnd(a->b, slow);
  value row = LLVMGetParam(function, GATHER_ROW);
  to_frame(a, a->n->operands, LLVMGetParam(function, GATHER_ADDRESSES), LLVMGetParam(function, GATHER_PLACE));
  if (a->n->store) to_frame(a, a->n->operands + 1, data, row);
  gen_call_handler_of(g, a->n, LLVMGetParam(function, GATHER_INSTR));
  if (a->n->store) {
    LLVMBuildRetVoid(a->b);
  } else {
    value loaded = gen_load(g, row_type(a), row, 64);
    LLVMBuildRet(a->b, a->guard ? LLVMBuildSelect(a->b, gen_lanes(g, a->bits), loaded, data, "") : loaded);
  }
}

static void global_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  a->bits = LLVMGetParam(function, GATHER_BITS);
  value address = LLVMBuildAdd(a->b, LLVMGetParam(function, GATHER_ADDRESSES),
                               gen_splat(g, LLVMGetParam(function, GATHER_IMMEDIATE)), "");
  value record = access_record_of(a, LLVMGetParam(function, GATHER_INSTR)),
        start = gen_field(g, g->i64, record, g->at->record_address);
  value room = gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable),
        last = LLVMBuildSub(a->b, room, gen_i64(g, a->total), "");
  value offset = LLVMBuildSub(a->b, address, gen_splat(g, start), ""),
        outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), ""), low = NULL;
  if (a->total > 1) outside = access_any_of(a, outside, access_misaligned(a, address, g->i64));
  if (a->total < 4) low = LLVMBuildTrunc(a->b, address, gen_vector_type(g->i32), "");
  value good = access_both(a, access_at_least(a, room, gen_i64(g, a->total)), access_none_of(a, outside));
  finish(a, function, true, good, access_pointer_to(a, start), offset, low);
}

static void shared_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  a->bits = LLVMGetParam(function, GATHER_BITS);
  value beyond, lanes = access_narrow(a, LLVMGetParam(function, GATHER_ADDRESSES), &beyond),
                immediate = LLVMBuildTrunc(a->b, LLVMGetParam(function, GATHER_IMMEDIATE), g->i32, "");
  value offset = LLVMBuildAdd(a->b, lanes, gen_splat(g, immediate), "");
  value bytes = gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes),
        last = LLVMBuildSub(a->b, bytes, gen_i32(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), "");
  if (beyond) { /* the sum may not fit either */
    value high = LLVMBuildICmp(a->b, LLVMIntNE, beyond, LLVMConstNull(LLVMTypeOf(beyond)), "");
    outside = access_any_of(a, outside, access_any_of(a, high, LLVMBuildICmp(a->b, LLVMIntULT, offset, lanes, "")));
  }
  if (a->total > 1) outside = access_any_of(a, outside, access_misaligned(a, offset, g->i32));
  value good =
      access_both(a, LLVMBuildICmp(a->b, LLVMIntUGE, bytes, gen_i32(g, a->total), ""), access_none_of(a, outside));
  finish(a, function, false, good, access_shared_base(a), offset, offset);
}

value access_gather(const access *a, bool global, value addresses, value data) {
  generator *g = a->g;
  const native_instr *n = a->n;
  char name[96];
  uint32_t row = n->store ? n->operands + 1 : access_written(a, 0);
  bool of_pool = g->plan->slot_of[n->operands] == NATIVE_NONE, data_of_pool = g->plan->slot_of[row] == NATIVE_NONE;
  snprintf(name, sizeof name, "gather_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u", g->masked, global, a->guard != NULL,
           n->store, n->bytes, n->slot_bytes, n->sign, n->to16, n->wide, n->flow, n->observes, of_pool, data_of_pool);
  if (a->guard) gen_write_back(g, n->operands + n->read_count - 1); /* the handler looks at it */
  if (!n->store && a->guard) gen_write_back(g, row);                /* of lanes whose guard is false */
  value more[] = {gen_instr_address(g),
                  a->bits,
                  gen_i64(g, (uint64_t)n->immediate),
                  access_place(g, n->operands),
                  access_place(g, row),
                  addresses,
                  data};
  return gen_call_outline(g, name, n->store ? NULL : row_type(a), more, sizeof more / sizeof *more,
                          global ? global_inside : shared_inside, a);
}
