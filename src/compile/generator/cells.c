/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of some lanes, and of whole warps that are no row: eight lanes at once if they are a row, or two rows, as
 * where a short row ends among them; else each lane's cell by itself. Local memory, whose cells are each lane's own, is
 * moved by local.c.
 *
 * All of one kind are a function of the module: checking 32 addresses is a hundred instructions, and there are many
 * places that need it. It takes addresses and values from the frame and leaves results there, so that lanes that do not
 * access keep what they have, on its own way as on the handler's. */
#include "compile/generator/emit_access.h"

#include <stdio.h>

/* Is no lane of `bad` among those that access? */
value access_none_of(const access *a, value bad) {
  value bits = gen_bits(a->g, bad);
  if (a->bits) bits = LLVMBuildAnd(a->b, bits, a->bits, "");
  return LLVMBuildICmp(a->b, LLVMIntEQ, bits, gen_i32(a->g, 0), "");
}

value access_any_of(const access *a, value x, value y) { return LLVMBuildOr(a->b, x, y, ""); }

value access_misaligned(const access *a, value lanes, LLVMTypeRef type) {
  value low = LLVMBuildAnd(a->b, lanes, gen_splat(a->g, LLVMConstInt(type, a->total - 1, false)), "");
  return LLVMBuildICmp(a->b, LLVMIntNE, low, LLVMConstNull(gen_vector_type(type)), "");
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

/* A cell between base + offsets[l] and row[l], of these lanes. */
static void each(const access *a, uint32_t offset_bytes, value base, value offsets, value row, value lanes) {
  generator *g = a->g;
  const native_instr *n = a->n;
  lane_loop l = begin_lanes(a, lanes);
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
  lane_loop l = begin_lanes(a, a->bits ? a->bits : gen_i32(a->g, UINT32_MAX));
  value offset = LLVMBuildMul(a->b, l.lane, gen_i64(a->g, bytes), "");
  gen_store(a->g, element_of(a, type, from, l.lane, bytes), LLVMBuildGEP2(a->b, a->g->i8, place, &offset, 1, ""),
            bytes);
  end_lanes(a, l);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
}

/* ---- the function ---- */

value access_row_of(value function, uint32_t element) { return LLVMGetParam(function, CELLS_ROWS + 2 * element); }

/* ---- eight lanes at once ---- */

enum { PIECE = 8, PIECES = EXEC_LANES / PIECE };

typedef struct piece { /* lanes first .. first + PIECE - 1 */
  const access *a;
  uint32_t first;
  value base, offset, offsets, row; /* as `cells` has them */
  value bits, mask;                 /* i32, <PIECE x i1>: those that access; NULL: all of them */
} piece;

static value lanes_of_piece(const piece *p, value lanes) {
  value pick[PIECE];
  for (uint32_t l = 0; l < PIECE; l++) pick[l] = gen_i32(p->a->g, p->first + l);
  return LLVMBuildShuffleVector(p->a->b, lanes, LLVMGetUndef(LLVMTypeOf(lanes)), LLVMConstVector(pick, PIECE), "");
}

static value splat_of_piece(const piece *p, value scalar) {
  value one = LLVMBuildInsertElement(p->a->b, LLVMGetUndef(LLVMVectorType(LLVMTypeOf(scalar), PIECE)), scalar,
                                     gen_i32(p->a->g, 0), "");
  return LLVMBuildShuffleVector(p->a->b, one, LLVMGetUndef(LLVMTypeOf(one)),
                                LLVMConstNull(LLVMVectorType(p->a->g->i32, PIECE)), "");
}

/* 0, step, 2 * step ... */
static value ladder_of_piece(LLVMTypeRef type, uint64_t step) {
  value steps[PIECE];
  for (uint32_t l = 0; l < PIECE; l++) steps[l] = LLVMConstInt(type, l * step, false);
  return LLVMConstVector(steps, PIECE);
}

/* As gen_lanes. */
static value mask_of_piece(const piece *p, value bits) {
  generator *g = p->a->g;
  if (g->wide_vectors && !g->emulated)
    return LLVMBuildBitCast(g->b, LLVMBuildTrunc(g->b, bits, g->i8, ""), LLVMVectorType(g->i1, PIECE), "");
  value places[PIECE];
  for (uint32_t l = 0; l < PIECE; l++) places[l] = gen_i32(g, EXEC_LANES - 1 - l);
  value signs = LLVMBuildShl(g->b, splat_of_piece(p, bits), LLVMConstVector(places, PIECE), "");
  return LLVMBuildICmp(g->b, LLVMIntSLT, signs, LLVMConstNull(LLVMTypeOf(signs)), "");
}

/* The offset that lane p->first has in the row that the piece's first lane that accesses is in, or its last one. */
static value start_of_piece(const piece *p, LLVMTypeRef type, bool last) {
  const access *a = p->a;
  generator *g = a->g;
  uint32_t bytes = type == g->i32 ? 4 : 8, before = last ? (PIECE - 1) * a->n->bytes : 0;
  if (!p->bits)
    return LLVMBuildSub(a->b,
                        LLVMBuildExtractElement(a->b, p->offset, gen_i32(g, p->first + (last ? PIECE - 1 : 0)), ""),
                        LLVMConstInt(type, before, false), "");
  value arguments[2] = {p->bits, LLVMConstInt(g->i1, 1, false)};
  value lane = gen_intrinsic(g, last ? "llvm.ctlz" : "llvm.cttz", &g->i32, 1, arguments, 2);
  if (last) lane = LLVMBuildSub(a->b, gen_i32(g, EXEC_LANES - 1), lane, "");
  lane = LLVMBuildZExt(a->b, lane, g->i64, "");
  value met = element_of(a, type, gen_at(g, p->offsets, (uint64_t)p->first * bytes), lane, bytes);
  return LLVMBuildSub(a->b, met, LLVMBuildTrunc(a->b, LLVMBuildMul(a->b, lane, gen_i64(g, a->n->bytes), ""), type, ""),
                      "");
}

/* i32: lanes that access, and are not in the row that begins there. */
static value off_row_of_piece(const piece *p, value offset, value start) {
  const access *a = p->a;
  generator *g = a->g;
  value row = LLVMBuildAdd(a->b, splat_of_piece(p, start), ladder_of_piece(LLVMTypeOf(start), a->n->bytes), "");
  value off = LLVMBuildBitCast(a->b, LLVMBuildICmp(a->b, LLVMIntNE, offset, row, ""), g->i8, "");
  off = LLVMBuildZExt(a->b, off, g->i32, "");
  return p->bits ? LLVMBuildAnd(a->b, off, p->bits, "") : off;
}

static value place_in_row(const piece *p) { return gen_at(p->a->g, p->row, (uint64_t)p->first * p->a->n->slot_bytes); }

static value pointer_of_type(const access *a, value at, LLVMTypeRef type) {
  return LLVMBuildBitCast(a->b, at, LLVMPointerType(type, 0), "");
}

/* Where its lane p->first would be, which may lie before the memory: with its sign. */
static value row_at(const piece *p, value start) {
  generator *g = p->a->g;
  value wide = LLVMTypeOf(start) == g->i32 ? LLVMBuildSExt(g->b, start, g->i64, "") : start;
  return LLVMBuildGEP2(g->b, g->i8, p->base, &wide, 1, "");
}

static value load_masked(const piece *p, value at, value mask, value old) {
  const access *a = p->a;
  LLVMTypeRef type = LLVMTypeOf(old);
  value arguments[4] = {pointer_of_type(a, at, type), gen_i32(a->g, a->n->bytes), mask, old};
  LLVMTypeRef types[2] = {type, LLVMTypeOf(arguments[0])};
  return gen_intrinsic(a->g, "llvm.masked.load", types, 2, arguments, 4);
}

static void store_masked(const piece *p, value v, value at, value mask) {
  const access *a = p->a;
  LLVMTypeRef type = LLVMTypeOf(v);
  value arguments[4] = {v, pointer_of_type(a, at, type), gen_i32(a->g, a->n->bytes), mask};
  LLVMTypeRef types[2] = {type, LLVMTypeOf(arguments[1])};
  gen_intrinsic(a->g, "llvm.masked.store", types, 2, arguments, 4);
}

/* What lanes that do not access keep, or what is stored. */
static value old_of_piece(const piece *p) {
  LLVMTypeRef type = LLVMVectorType(p->a->cell, PIECE);
  return p->bits || p->a->n->store ? gen_load(p->a->g, type, place_in_row(p), 32) : LLVMGetUndef(type);
}

static void move_row_piece(const piece *p, value start) {
  const access *a = p->a;
  generator *g = a->g;
  value at = row_at(p, start), v = old_of_piece(p);
  if (a->n->store) {
    if (p->mask) store_masked(p, v, at, p->mask);
    else gen_store(g, v, at, a->n->bytes);
    return;
  }
  if (p->mask) v = load_masked(p, at, p->mask, v);
  else v = gen_load(g, LLVMTypeOf(v), at, a->n->bytes);
  gen_store(g, v, place_in_row(p), 32);
}

/* Some lanes are in one row, those of `second` in another: in this order. */
static void move_two_rows(const piece *p, value start, value second_start, value second) {
  const access *a = p->a;
  generator *g = a->g;
  value bits = p->bits ? p->bits : gen_i32(g, (1u << PIECE) - 1);
  value masks[2] = {mask_of_piece(p, LLVMBuildXor(a->b, bits, second, "")), mask_of_piece(p, second)};
  value at[2] = {row_at(p, start), row_at(p, second_start)}, v = old_of_piece(p);
  for (int n = 0; n < 2; n++)
    if (a->n->store) store_masked(p, v, at[n], masks[n]);
    else v = load_masked(p, at[n], masks[n], v);
  if (!a->n->store) gen_store(g, v, place_in_row(p), 32);
}

static void gather_piece(const piece *p, value offset) {
  const access *a = p->a;
  generator *g = a->g;
  LLVMTypeRef type = LLVMVectorType(a->cell, PIECE), pointers = LLVMVectorType(LLVMPointerType(a->cell, 0), PIECE),
              types[2] = {type, pointers};
  if (LLVMTypeOf(offset) == LLVMVectorType(g->i32, PIECE))
    offset = LLVMBuildSExt(a->b, offset, LLVMVectorType(g->i64, PIECE), "");
  value at = LLVMBuildBitCast(a->b, LLVMBuildGEP2(a->b, g->i8, p->base, &offset, 1, ""), pointers, "");
  value arguments[4] = {at, gen_i32(g, a->n->bytes), p->mask, gen_load(g, type, place_in_row(p), 32)};
  gen_store(g, gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4), place_in_row(p), 32);
}

/* Each of its lanes, one after the other, without a loop: where all access, that is faster than a gather on some
 * processors and as fast on others. */
static void move_cells_of_piece(const piece *p, uint32_t offset_bytes) {
  const access *a = p->a;
  generator *g = a->g;
  LLVMTypeRef type = LLVMVectorType(a->slot, PIECE), offset_type = offset_bytes == 4 ? g->i32 : g->i64;
  value all = a->n->store ? gen_load(g, type, place_in_row(p), 32) : LLVMGetUndef(type);
  for (uint32_t l = 0; l < PIECE; l++) {
    value lane = gen_i32(g, l), one = element_of(a, offset_type, p->offsets, gen_i64(g, p->first + l), offset_bytes);
    if (offset_bytes == 4) one = LLVMBuildZExt(a->b, one, g->i64, "");
    value at = LLVMBuildGEP2(a->b, g->i8, p->base, &one, 1, "");
    if (a->n->store) {
      value cell = LLVMBuildTrunc(a->b, LLVMBuildExtractElement(a->b, all, lane, ""), a->cell, "");
      gen_store(g, cell, at, a->n->bytes);
    } else {
      value cell = access_extended(a, gen_load(g, a->cell, at, a->n->bytes), a->slot);
      all = LLVMBuildInsertElement(a->b, all, cell, lane, "");
    }
  }
  if (!a->n->store) gen_store(g, all, place_in_row(p), 32);
}

/* Those that access, of any shape. */
static void move_any_piece(const piece *p, value offset, uint32_t offset_bytes) {
  const access *a = p->a;
  if (!p->bits) move_cells_of_piece(p, offset_bytes);
  else if (a->g->wide_vectors && !a->n->store) gather_piece(p, offset);
  else each(a, offset_bytes, p->base, p->offsets, p->row, LLVMBuildShl(a->b, p->bits, gen_i32(a->g, p->first), ""));
}

/* Are the lanes of `second` all behind the others? Of two rows that overlap, the last one's cells stay. */
static value comes_behind(const piece *p, value second) {
  const access *a = p->a;
  generator *g = a->g;
  value arguments[2] = {second, LLVMConstInt(g->i1, 1, false)};
  value from = gen_intrinsic(g, "llvm.cttz", &g->i32, 1, arguments, 2);
  value behind = LLVMBuildLShr(a->b, p->bits ? p->bits : gen_i32(g, (1u << PIECE) - 1), from, "");
  return LLVMBuildICmp(a->b, LLVMIntEQ, behind, LLVMBuildLShr(a->b, second, from, ""), "");
}

static void move_piece(piece *p, uint32_t offset_bytes) {
  const access *a = p->a;
  generator *g = a->g;
  LLVMTypeRef type = offset_bytes == 4 ? g->i32 : g->i64;
  LLVMBasicBlockRef some = gen_block(g, "piece"), row = gen_block(g, "row"), no_row = gen_block(g, "no_row"),
                    rows = gen_block(g, "rows"), cells = gen_block(g, "cells"), on = gen_block(g, "moved");
  if (a->bits) {
    value here = LLVMBuildLShr(a->b, a->bits, gen_i32(g, p->first), "");
    p->bits = LLVMBuildAnd(a->b, here, gen_i32(g, (1u << PIECE) - 1), "");
    LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, p->bits, gen_i32(g, 0), ""), on, some);
  } else {
    LLVMBuildBr(a->b, some);
  }
  LLVMPositionBuilderAtEnd(a->b, some);
  if (p->bits) p->mask = mask_of_piece(p, p->bits);
  value offset = lanes_of_piece(p, p->offset), start = start_of_piece(p, type, false),
        off = off_row_of_piece(p, offset, start);
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, off, gen_i32(g, 0), ""), row, no_row);
  LLVMPositionBuilderAtEnd(a->b, row);
  move_row_piece(p, start);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, no_row);
  value second = start_of_piece(p, type, true),
        off_both = LLVMBuildAnd(a->b, off_row_of_piece(p, offset, second), off, "");
  value two = LLVMBuildICmp(a->b, LLVMIntEQ, off_both, gen_i32(g, 0), "");
  if (a->n->store) two = LLVMBuildAnd(a->b, two, comes_behind(p, off), "");
  LLVMBuildCondBr(a->b, two, rows, cells);
  LLVMPositionBuilderAtEnd(a->b, rows);
  move_two_rows(p, start, second, off);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, cells);
  move_any_piece(p, offset, offset_bytes);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
}

/* ---- all of them ---- */

/* One cell for all lanes that access, if it is that; goes on where it is not. done: behind both. */
static void load_one_cell(const access *a, value function, value base, value offset, LLVMBasicBlockRef done) {
  generator *g = a->g;
  LLVMBasicBlockRef one = gen_block(g, "one"), many = gen_block(g, "many");
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(offset));
  value first = LLVMBuildExtractElement(a->b, offset, gen_i32(g, 0), ""), row = access_row_of(function, 0);
  if (a->bits) {
    value arguments[2] = {a->bits, LLVMConstInt(g->i1, 0, false)};
    value lane =
        LLVMBuildAnd(a->b, gen_intrinsic(g, "llvm.cttz", &g->i32, 1, arguments, 2), gen_i32(g, EXEC_LANES - 1), "");
    first =
        element_of(a, type, gen_in_memory(g, offset), LLVMBuildZExt(a->b, lane, g->i64, ""), type == g->i32 ? 4 : 8);
  }
  value other = LLVMBuildICmp(a->b, LLVMIntNE, offset, gen_splat(g, first), "");
  value same = a->bits ? access_none_of(a, other) : gen_same(g, offset, gen_splat(g, first));
  if (a->bits) same = LLVMBuildAnd(a->b, same, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), "");
  LLVMBuildCondBr(a->b, same, one, many);
  LLVMPositionBuilderAtEnd(a->b, one);
  if (type == g->i32) first = LLVMBuildZExt(a->b, first, g->i64, "");
  value all = gen_splat(g, gen_load(g, a->cell, LLVMBuildGEP2(a->b, g->i8, base, &first, 1, ""), a->n->bytes));
  if (a->bits) all = LLVMBuildSelect(a->b, gen_lanes(g, a->bits), all, gen_load(g, LLVMTypeOf(all), row, 64), "");
  gen_store(g, all, row, 64);
  LLVMBuildBr(a->b, done);
  LLVMPositionBuilderAtEnd(a->b, many);
}

value access_has_rows(const access *a, value offset) {
  generator *g = a->g;
  value pick[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) pick[l] = gen_i32(g, l ? l - 1 : 0);
  value before =
      LLVMBuildShuffleVector(a->b, offset, LLVMGetUndef(LLVMTypeOf(offset)), LLVMConstVector(pick, EXEC_LANES), "");
  value step = gen_splat(g, LLVMConstInt(LLVMGetElementType(LLVMTypeOf(offset)), a->n->bytes, false));
  value bits = gen_bits(g, LLVMBuildICmp(a->b, LLVMIntEQ, offset, LLVMBuildAdd(a->b, before, step, ""), ""));
  if (a->bits) bits = LLVMBuildAnd(a->b, bits, a->bits, "");
  value count = gen_intrinsic(g, "llvm.ctpop", &g->i32, 1, &bits, 1);
  return LLVMBuildICmp(a->b, LLVMIntUGE, count, gen_i32(g, EXEC_LANES / 4), "");
}

/* LLVM makes a branch per lane of a gather for AVX2, which a loop over the lanes that access is better than. */
static void gather_all(const access *a, value function, value base, value offset) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell), pointers = gen_vector_type(LLVMPointerType(a->cell, 0)),
              types[2] = {type, pointers};
  value row = access_row_of(function, 0);
  /* offsets in shared memory are below 2^31: with their sign, they are indices of 32 bits to LLVM */
  if (LLVMTypeOf(offset) == gen_vector_type(g->i32)) offset = LLVMBuildSExt(a->b, offset, gen_vector_type(g->i64), "");
  value at = LLVMBuildBitCast(a->b, LLVMBuildGEP2(a->b, g->i8, base, &offset, 1, ""), pointers, "");
  value arguments[4] = {at, gen_i32(g, a->n->bytes), gen_lanes(g, a->bits), gen_load(g, type, row, 64)};
  gen_store(g, gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4), row, 64);
}

typedef struct all_cells {
  const access *a;
  value function, base, offset; /* base: of the pointers; offset: bytes from it, of each lane that accesses */
  value offsets;                /* the same in memory: results may come where the addresses are */
  uint32_t offset_bytes;
} all_cells;

/* What belongs to lanes first .. first + PIECE - 1. */
static piece piece_of_cells(const all_cells *c, uint32_t first) {
  return (piece){.a = c->a,
                 .first = first,
                 .base = c->base,
                 .offset = c->offset,
                 .offsets = c->offsets,
                 .row = access_row_of(c->function, 0)};
}

static void move_pieces(all_cells c) {
  c.offsets = gen_in_memory(c.a->g, c.offset);
  for (uint32_t first = 0; first < EXEC_LANES; first += PIECE) {
    piece p = piece_of_cells(&c, first);
    move_piece(&p, c.offset_bytes);
  }
}

/* Without looking for rows. */
static void move_scattered(all_cells c) {
  const access *a = c.a;
  c.offsets = gen_in_memory(a->g, c.offset);
  for (uint32_t first = 0; first < EXEC_LANES && !a->bits && a->n->elements == 1; first += PIECE) {
    piece p = piece_of_cells(&c, first);
    move_cells_of_piece(&p, c.offset_bytes);
  }
  if (!a->bits && a->n->elements == 1) return;
  value lanes = a->bits ? a->bits : gen_i32(a->g, UINT32_MAX);
  for (uint32_t e = 0; e < a->n->elements; e++)
    each(a, c.offset_bytes, gen_at(a->g, c.base, (uint64_t)e * a->n->bytes), c.offsets, access_row_of(c.function, e),
         lanes);
}

/* No offset of a lane that accesses is negative. */
static void do_cells(const access *a, value function, value base, value offset) {
  generator *g = a->g;
  all_cells c = {a, function, base, offset, NULL, LLVMTypeOf(offset) == gen_vector_type(g->i32) ? 4 : 8};
  if (a->n->elements > 1 || a->n->bytes != a->n->slot_bytes) {
    move_scattered(c);
    return;
  }
  LLVMBasicBlockRef done = gen_block(g, "done"), rows = gen_block(g, "rows"), scattered = gen_block(g, "scattered");
  bool gathers = a->bits && g->wide_vectors && !a->n->store; /* also of one cell */
  if (!a->n->store && !gathers) load_one_cell(a, function, base, offset, done);
  LLVMBuildCondBr(a->b, access_has_rows(a, offset), rows, scattered);
  LLVMPositionBuilderAtEnd(a->b, rows);
  move_pieces(c);
  LLVMBuildBr(a->b, done);
  LLVMPositionBuilderAtEnd(a->b, scattered);
  if (gathers) gather_all(a, function, base, offset);
  else move_scattered(c);
  LLVMBuildBr(a->b, done);
  LLVMPositionBuilderAtEnd(a->b, done);
}

void access_end_function(const access *a, value function, fork f, bool global) {
  generator *g = a->g;
  if (global) {
    value some = gen_i64(g, 1);
    if (a->bits) /* no lane: none */
      some = LLVMBuildZExt(a->b, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), g->i64, "");
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, gen_read(g, g->i64, g->accesses), some, ""), g->accesses);
  }
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.slow);
  to_frame(a, LLVMGetParam(function, CELLS_ADDRESSES), LLVMGetParam(function, CELLS_ADDRESSES_PLACE),
           a->n->wide ? 8 : 4);
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++)
    to_frame(a, access_row_of(function, e), LLVMGetParam(function, CELLS_ROWS + 2 * e + 1), a->n->slot_bytes);
  gen_call_handler_of(g, a->n, LLVMGetParam(function, CELLS_INSTR));
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.on);
  LLVMBuildRetVoid(a->b);
}

static void global_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  value instr = LLVMGetParam(function, CELLS_INSTR), addresses = LLVMGetParam(function, CELLS_ADDRESSES),
        immediate = LLVMGetParam(function, CELLS_IMMEDIATE);
  if (a->bits) a->bits = LLVMGetParam(function, CELLS_BITS);
  value lanes = gen_load(g, gen_vector_type(g->i64), addresses, 64),
        address = LLVMBuildAdd(a->b, lanes, gen_splat(g, immediate), "");
  value record = access_record_of(a, instr), start = gen_field(g, g->i64, record, g->at->record_address);
  value room = gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable),
        last = LLVMBuildSub(a->b, room, gen_i64(g, a->total), "");
  value offset = LLVMBuildSub(a->b, address, gen_splat(g, start), ""),
        outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), "");
  if (a->total > 1) outside = access_any_of(a, outside, access_misaligned(a, address, g->i64));
  fork f = access_begin_fast(
      a, access_both(a, access_at_least(a, room, gen_i64(g, a->total)), access_none_of(a, outside)), GEN_NEARLY_ALWAYS);
  value arguments[2] = {instr, addresses};
  if (g->watched) gen_call_api(g, g->at->api_scattered, NULL, arguments, 2);
  do_cells(a, function, access_pointer_to(a, start), offset);
  access_end_function(a, function, f, true);
}

static void shared_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  if (a->bits) a->bits = LLVMGetParam(function, CELLS_BITS);
  value lanes = gen_load(g, gen_vector_type(a->n->wide ? g->i64 : g->i32), LLVMGetParam(function, CELLS_ADDRESSES), 64),
        beyond, high = NULL;
  lanes = access_narrow(a, lanes, &beyond);
  if (beyond) high = LLVMBuildICmp(a->b, LLVMIntNE, beyond, LLVMConstNull(LLVMTypeOf(beyond)), "");
  value offset = LLVMBuildAdd(
      a->b, lanes, gen_splat(g, LLVMBuildTrunc(a->b, LLVMGetParam(function, CELLS_IMMEDIATE), g->i32, "")), "");
  value bytes = gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes),
        room = LLVMBuildSub(a->b, bytes, gen_i32(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, room), "");
  /* the sum may not fit either */
  if (high)
    outside = access_any_of(a, outside, access_any_of(a, high, LLVMBuildICmp(a->b, LLVMIntULT, offset, lanes, "")));
  if (a->total > 1) outside = access_any_of(a, outside, access_misaligned(a, offset, g->i32));
  fork f = access_begin_fast(
      a, access_both(a, LLVMBuildICmp(a->b, LLVMIntUGE, bytes, gen_i32(g, a->total), ""), access_none_of(a, outside)),
      GEN_NEARLY_ALWAYS);
  if (g->traced) access_tell_passes_of(a, LLVMGetParam(function, CELLS_INSTR), access_ask_conflicts(a, offset));
  do_cells(a, function, access_shared_base(a), offset);
  access_end_function(a, function, f, false);
}

/* ---- its calls ---- */

value access_place(generator *g, uint32_t k) {
  uint32_t offset = g->plan->operands[k].offset;
  return offset & 1 ? gen_at(g, g->pool, offset & ~1u) : gen_at(g, g->frame, offset);
}

/* Where operand k is, and its place in the frame (the pool, for a constant): another one if the frame does not have it
 * yet. */
static void operand_places(generator *g, uint32_t k, bool read, value *places) {
  uint32_t slot = g->plan->slot_of[k];
  places[0] = places[1] = access_place(g, k);
  if (read && slot != NATIVE_NONE && g->slots[slot].stale) places[0] = gen_in_memory(g, gen_vector(g, k));
}

bool access_cells_are_faster(const access *a, bool global) {
  return a->n->elements == 1 && access_has_cells(a, global);
}

bool access_has_cells(const access *a, bool global) {
  const native_instr *n = a->n;
  if (n->space == NATIVE_LOCAL) return access_has_local(a);
  return global || (n->immediate >= 0 && n->immediate <= INT32_MAX && (!a->g->traced || a->total == 4));
}

value access_addresses(const access *a) {
  value places[2];
  operand_places(a->g, a->n->operands, true, places);
  return places[0];
}

void access_call_cells(const access *a, bool global, value addresses) {
  generator *g = a->g;
  const native_instr *n = a->n;
  bool local = n->space == NATIVE_LOCAL;
  uint32_t kind = local ? 2 : global;
  gen_inside inside = local ? access_local_inside : global ? global_inside : shared_inside;
  char name[80];
  snprintf(name, sizeof name, "cells_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u_%u", g->masked, kind, a->bits != NULL, n->store,
           n->bytes, n->elements, n->slot_bytes, n->sign, n->to16, n->wide, n->flow, n->observes);
  value more[5 + 2 * 4] = {gen_instr_address(g), a->bits ? a->bits : gen_i32(g, UINT32_MAX),
                           gen_i64(g, (uint64_t)n->immediate)};
  operand_places(g, n->operands, false, more + 3);
  more[3] = addresses;
  if (a->guard) gen_write_back(g, n->operands + n->read_count - 1); /* the handler looks at it */
  for (uint32_t e = 0; e < n->elements; e++) {
    uint32_t k = n->store ? n->operands + 1 + e : access_written(a, e);
    if (!n->store && a->guard) gen_write_back(g, k); /* of lanes whose guard is false */
    operand_places(g, k, n->store, more + 5 + 2 * e);
  }
  gen_call_outline(g, name, NULL, more, 5 + 2 * n->elements, inside, a);
}

bool access_cells(const access *a, bool global) {
  if (!access_has_cells(a, global)) return false;
  access_call_cells(a, global, access_addresses(a));
  gen_written(a->g, a->n);
  return true;
}
