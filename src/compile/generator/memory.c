/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: the shapes that compiled code settles itself. Everything else, faults included, is its handler's.
 *
 *   parameters           one value for all lanes
 *   one address          global and shared loads: one cell, checked like every lane's
 *   a row (full warps)   global: consecutive cells in lane order, checked as one piece
 *   windows (full warps) shared: each piece of the warp inside one register's bytes: a load and a permutation for each
 *   cells (some lanes)   global and shared: each lane's by itself; with AVX-512 loads of words are gathers
 *
 * What always holds: a check here is never weaker than the handler's (exec/access.isa.c); where it fails, the handler does
 * the whole access, and counts it. */
#include "compile/generator/generate.h"

#include <stdio.h>

#include "exec/core.h"

typedef struct access {
  generator *g;
  LLVMBuilderRef b;
  const native_instr *n;
  uint32_t total;             /* bytes of a lane */
  LLVMTypeRef cell, slot;     /* one element in memory, in its register */
  value guard;                /* i32: lanes whose guard is true; NULL: there is no guard */
  value bits;                 /* i32: lanes that access; NULL: all of a full warp */
} access;

static value both(const access *a, value x, value y) { return x ? LLVMBuildAnd(a->b, x, y, "") : y; }
static value at_least(const access *a, value x, value y) { return LLVMBuildICmp(a->b, LLVMIntUGE, x, y, ""); }

/* From memory's width to the register's, for one cell or many. */
static value extended(const access *a, value v, LLVMTypeRef slot) {
  const native_instr *n = a->n;
  if (n->bytes == n->slot_bytes) return v;
  v = n->sign ? LLVMBuildSExt(a->b, v, slot, "") : LLVMBuildZExt(a->b, v, slot, "");
  if (!n->to16) return v;
  value low = LLVMConstInt(a->slot, 0xffff, false);
  return LLVMBuildAnd(a->b, v, slot == a->slot ? low : gen_splat(a->g, low), "");
}

static uint32_t written(const access *a, uint32_t element) { return a->n->operands + a->n->read_count + element; }

/* ---- parameters ---- */

static void parameter(const access *a) {
  value params = gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_params);
  for (uint32_t e = 0; e < a->n->elements; e++) {
    value v = gen_load(a->g, a->cell, gen_at(a->g, params, (uint64_t)a->n->immediate + e * a->n->bytes), 1);
    gen_put(a->g, written(a, e), extended(a, v, a->slot), NULL);
  }
}

/* ---- a fast way and the handler beside it ---- */

typedef struct fork { LLVMBasicBlockRef fast, slow, on; } fork;

static fork begin_fast(const access *a, value good) {
  fork f = {gen_block(a->g, "fast"), gen_block(a->g, "slow"), gen_block(a->g, "on")};
  LLVMBuildCondBr(a->b, good, f.fast, f.slow);
  LLVMPositionBuilderAtEnd(a->b, f.fast);
  return f;
}

static value lane_of_frame(const access *a, uint32_t slot) { /* the first active lane's cell */
  generator *g = a->g;
  value at = gen_at(g, g->frame, g->plan->slots[slot].offset);
  if (!g->full) {
    value arguments[2] = {g->active, LLVMConstInt(g->i1, 1, false)};
    value lane = LLVMBuildZExt(a->b, gen_intrinsic(g, "llvm.cttz", &g->i32, 1, arguments, 2), g->i64, "");
    value offset = LLVMBuildMul(a->b, lane, gen_i64(g, g->plan->slots[slot].bytes), "");
    at = LLVMBuildGEP2(a->b, g->i8, at, &offset, 1, "");
  }
  return gen_load(g, a->slot, at, a->n->slot_bytes);
}

/* results: what the fast way has loaded, one per element; scalars or vectors. */
static void end_fast(const access *a, fork f, const value *results, bool scalar) {
  generator *g = a->g;
  const native_instr *n = a->n;
  if (n->space == NATIVE_GLOBAL || n->space == NATIVE_GENERIC) {
    value counted = LLVMBuildLoad2(a->b, g->i64, g->accesses, ""), one = gen_i64(g, 1);
    if (a->guard) one = LLVMBuildZExt(a->b, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), g->i64, ""); /* by nobody: none */
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, counted, one, ""), g->accesses);
  }
  LLVMBasicBlockRef fast_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.slow);
  gen_call_handler(g, n);
  value slow[4];
  for (uint32_t e = 0; e < n->elements && !n->store; e++) {
    uint32_t slot = g->plan->slot_of[written(a, e)];
    slow[e] = scalar ? lane_of_frame(a, slot) : gen_frame_vector(g, slot);
  }
  LLVMBasicBlockRef slow_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.on);
  for (uint32_t e = 0; e < n->elements && !n->store; e++) {
    value phi = LLVMBuildPhi(a->b, LLVMTypeOf(results[e]), ""), from[2] = {results[e], slow[e]};
    LLVMBasicBlockRef blocks[2] = {fast_end, slow_end};
    LLVMAddIncoming(phi, from, blocks, 2);
    gen_put(g, written(a, e), scalar ? phi : NULL, scalar ? NULL : phi);
  }
}

/* ---- what is told of an access before it happens ---- */

/* Global memory: all lanes' cells begin at `address`, a row or one cell. */
static void tell(const access *a, uint32_t api, value address) {
  value arguments[2] = {gen_instr_address(a->g), address};
  if (a->g->watched) gen_call_api(a->g, api, NULL, arguments, 2);
}

/* Shared memory: cycles beyond the first, if there are any. */
static void tell_passes(const access *a, value more) {
  generator *g = a->g;
  if (!g->traced || (LLVMIsConstant(more) && LLVMIsNull(more))) return;
  LLVMBasicBlockRef some = gen_block(g, "passes"), on = gen_block(g, "told");
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, more, gen_i32(g, 0), ""), on, some);
  LLVMPositionBuilderAtEnd(a->b, some);
  value arguments[2] = {gen_instr_address(g), more};
  gen_call_api(g, g->at->api_passes, NULL, arguments, 2);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
}

/* ---- global memory ---- */

/* The allocation that this instruction met last. */
static value record_of(const access *a) {
  value side = gen_field(a->g, a->g->pointer, gen_instr_address(a->g), a->g->at->instr_side);
  return gen_field(a->g, a->g->pointer, side, a->g->at->access_hint);
}

/* Is [address, address + bytes) inside the allocation that this instruction met last, and the address aligned? */
static value inside(const access *a, value address, uint64_t bytes) {
  generator *g = a->g;
  const native_layout *at = g->at;
  value record = record_of(a);
  value room = gen_field(g, g->i64, record, a->n->store ? at->record_writable : at->record_readable);
  value offset = LLVMBuildSub(a->b, address, gen_field(g, g->i64, record, at->record_address), "");
  value good = LLVMBuildICmp(a->b, LLVMIntULT, offset, room, "");
  good = both(a, good, at_least(a, LLVMBuildSub(a->b, room, offset, ""), gen_i64(g, bytes)));
  if (a->total == 1) return good;
  value low = LLVMBuildAnd(a->b, address, gen_i64(g, a->total - 1), "");
  return both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(g, 0), ""));
}

static value pointer_to(const access *a, value address) { return LLVMBuildIntToPtr(a->b, address, a->g->pointer, ""); }

static bool one_global(const access *a, value base) {
  generator *g = a->g;
  if (a->n->store) return false;
  value address = LLVMBuildAdd(a->b, base, gen_i64(g, (uint64_t)a->n->immediate), ""), results[4];
  fork f = begin_fast(a, inside(a, address, a->total));
  tell(a, g->at->api_one, address);
  value p = pointer_to(a, address);
  bool generic = a->n->space == NATIVE_GENERIC; /* in local memory the lanes have different cells: on the slow way */
  for (uint32_t e = 0; e < a->n->elements; e++) {
    results[e] = extended(a, gen_load(g, a->cell, gen_at(g, p, e * a->n->bytes), a->n->bytes), a->slot);
    if (generic) results[e] = gen_splat(g, results[e]);
  }
  end_fast(a, f, results, !generic);
  return true;
}

/* 0, step, 2 * step ... */
static value ladder(generator *g, LLVMTypeRef type, uint64_t step) {
  value steps[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) steps[l] = LLVMConstInt(type, l * step, false);
  return LLVMConstVector(steps, EXEC_LANES);
}

static value is_row(const access *a, value lanes, value first, LLVMTypeRef type, uint64_t step) {
  value want = LLVMBuildAdd(a->b, gen_splat(a->g, first), ladder(a->g, type, step), "");
  value bits = gen_bits(a->g, LLVMBuildICmp(a->b, LLVMIntEQ, lanes, want, ""));
  return LLVMBuildICmp(a->b, LLVMIntEQ, bits, gen_i32(a->g, UINT32_MAX), "");
}

static void load_row(const access *a, value p, value *results) {
  generator *g = a->g;
  uint32_t elements = a->n->elements;
  value all = gen_load(g, LLVMVectorType(a->cell, EXEC_LANES * elements), p, a->n->bytes);
  for (uint32_t e = 0; e < elements; e++) {
    value pick[EXEC_LANES];
    for (uint32_t l = 0; l < EXEC_LANES; l++) pick[l] = gen_i32(g, l * elements + e);
    value one = elements == 1 ? all : LLVMBuildShuffleVector(a->b, all, LLVMGetUndef(LLVMTypeOf(all)), LLVMConstVector(pick, EXEC_LANES), "");
    results[e] = extended(a, one, gen_vector_type(a->slot));
  }
}

static value row_data(const access *a, uint32_t element) {
  value v = gen_vector(a->g, a->n->operands + 1 + element);
  return a->n->bytes == a->n->slot_bytes ? v : LLVMBuildTrunc(a->b, v, gen_vector_type(a->cell), "");
}

/* a[0] b[0] a[1] b[1] ... */
static value interleave(const access *a, value x, value y) {
  value pick[4 * EXEC_LANES];
  uint32_t count = LLVMGetVectorSize(LLVMTypeOf(x));
  for (uint32_t l = 0; l < count; l++) pick[2 * l] = gen_i32(a->g, l), pick[2 * l + 1] = gen_i32(a->g, count + l);
  return LLVMBuildShuffleVector(a->b, x, y, LLVMConstVector(pick, 2 * count), "");
}

static void store_row(const access *a, value p) {
  value v = row_data(a, 0);
  if (a->n->elements == 2) v = interleave(a, v, row_data(a, 1));
  if (a->n->elements == 4) v = interleave(a, interleave(a, v, row_data(a, 2)), interleave(a, row_data(a, 1), row_data(a, 3)));
  gen_store(a->g, v, p, a->n->bytes);
}

static bool row_of_global(const access *a, value lanes) {
  generator *g = a->g;
  value first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, 0), ""), results[4];
  value address = LLVMBuildAdd(a->b, first, gen_i64(g, (uint64_t)a->n->immediate), "");
  value good = both(a, is_row(a, lanes, first, g->i64, a->total), inside(a, address, (uint64_t)a->total * EXEC_LANES));
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e); /* known on both ways */
  fork f = begin_fast(a, good);
  tell(a, g->at->api_row, address);
  if (a->n->store) store_row(a, pointer_to(a, address));
  else load_row(a, pointer_to(a, address), results);
  end_fast(a, f, results, false);
  return true;
}

/* ---- shared memory ---- */

static value shared_bytes(const access *a) {
  return LLVMBuildZExt(a->b, gen_field(a->g, a->g->i32, a->g->warp, a->g->at->warp_shared_bytes), a->g->i64, "");
}
static value shared_base(const access *a) { return gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_shared); }

/* Are `bytes` from the offset (64 bits) on in shared memory? */
static value in_shared(const access *a, value offset, uint64_t bytes) {
  value room = shared_bytes(a), good = LLVMBuildICmp(a->b, LLVMIntULT, offset, room, "");
  return both(a, good, at_least(a, LLVMBuildSub(a->b, room, offset, ""), gen_i64(a->g, bytes)));
}

static value aligned(const access *a, value offset) {
  value low = LLVMBuildAnd(a->b, offset, gen_i64(a->g, a->total - 1), "");
  return LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(a->g, 0), "");
}

/* The offset as 64 bits, with what is added. */
static value shared_offset(const access *a, value base) {
  generator *g = a->g;
  if (a->n->wide) return LLVMBuildAdd(a->b, base, gen_i64(g, (uint64_t)a->n->immediate), "");
  return LLVMBuildZExt(a->b, LLVMBuildAdd(a->b, base, gen_i32(g, (uint32_t)a->n->immediate), ""), g->i64, "");
}

static bool one_shared(const access *a, value base) {
  generator *g = a->g;
  if (a->n->store || (g->traced && !g->full && a->n->one_passes)) return false;
  value offset = shared_offset(a, base), results[4];
  fork f = begin_fast(a, both(a, in_shared(a, offset, a->total), aligned(a, offset)));
  tell_passes(a, gen_i32(g, a->n->one_passes));
  value p = LLVMBuildGEP2(a->b, g->i8, shared_base(a), &offset, 1, "");
  for (uint32_t e = 0; e < a->n->elements; e++)
    results[e] = extended(a, gen_load(g, a->cell, gen_at(g, p, e * a->n->bytes), a->n->bytes), a->slot);
  end_fast(a, f, results, true);
  return true;
}

/* A piece of the warp is what one register holds: 16 lanes, without AVX-512 8. */
static uint32_t piece_lanes(const access *a) { return a->g->wide_vectors ? 16 : 8; }
static uint32_t window_bytes(const access *a) { return 4 * piece_lanes(a); }

static value piece_of(const access *a, value lanes, uint32_t piece) {
  value pick[EXEC_LANES];
  uint32_t count = piece_lanes(a);
  for (uint32_t l = 0; l < count; l++) pick[l] = gen_i32(a->g, piece * count + l);
  return LLVMBuildShuffleVector(a->b, lanes, LLVMGetUndef(LLVMTypeOf(lanes)), LLVMConstVector(pick, count), "");
}

static value splat_piece(const access *a, value scalar) {
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), piece_lanes(a));
  value one = LLVMBuildInsertElement(a->b, LLVMGetUndef(type), scalar, gen_i32(a->g, 0), "");
  return LLVMBuildShuffleVector(a->b, one, LLVMGetUndef(type), LLVMConstNull(LLVMVectorType(a->g->i32, piece_lanes(a))), "");
}

static value all_piece(const access *a, uint32_t v) {
  value lanes[EXEC_LANES];
  for (uint32_t l = 0; l < piece_lanes(a); l++) lanes[l] = gen_i32(a->g, v);
  return LLVMConstVector(lanes, piece_lanes(a));
}

/* Two pieces one behind the other, until it is the whole warp. */
static value join(const access *a, value *parts, uint32_t count, uint32_t lanes) {
  for (; count > 1; count /= 2, lanes *= 2) {
    value pick[EXEC_LANES];
    for (uint32_t l = 0; l < 2 * lanes; l++) pick[l] = gen_i32(a->g, l);
    for (uint32_t p = 0; p < count / 2; p++)
      parts[p] = LLVMBuildShuffleVector(a->b, parts[2 * p], parts[2 * p + 1], LLVMConstVector(pick, 2 * lanes), "");
  }
  return parts[0];
}

/* What `conflicts` of exec_native_api says of these lanes' words. */
static value ask_conflicts(const access *a, value lanes) {
  generator *g = a->g;
  value row = gen_variable(g, LLVMTypeOf(lanes));
  gen_store(g, lanes, row, 64);
  value argument = LLVMBuildBitCast(a->b, row, g->pointer, "");
  return gen_call_api(g, g->at->api_conflicts, g->i32, &argument, 1);
}

/* Are two windows the same, or in different banks? */
static value without_conflict(const access *a, value x, value y) {
  generator *g = a->g;
  value apart = LLVMBuildSub(a->b, y, x, ""), banks = LLVMBuildAnd(a->b, apart, gen_i32(g, 4 * EXEC_LANES - 1), "");
  value from_first = LLVMBuildSub(a->b, banks, gen_i32(g, window_bytes(a)), "");
  value different = LLVMBuildICmp(a->b, LLVMIntULE, from_first, gen_i32(g, 4 * EXEC_LANES - 2 * window_bytes(a)), "");
  return LLVMBuildOr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, apart, gen_i32(g, 0), ""), different, "");
}

/* Cycles beyond the first of one access at these addresses. */
static value window_passes(const access *a, value lanes, const struct gen_shape *shape) {
  generator *g = a->g;
  uint32_t pieces = EXEC_LANES / piece_lanes(a);
  value none = NULL;
  for (uint32_t p = 0; p < pieces; p++)
    for (uint32_t q = p + 1; q < pieces; q++) none = both(a, none, without_conflict(a, shape->base[p], shape->base[q]));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(a->b), ask = gen_block(g, "conflicts"), on = gen_block(g, "counted");
  LLVMBuildCondBr(a->b, none, on, ask);
  LLVMPositionBuilderAtEnd(a->b, ask);
  value counted = ask_conflicts(a, lanes);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
  value phi = LLVMBuildPhi(a->b, g->i32, ""), from[2] = {gen_i32(g, 0), counted};
  LLVMBasicBlockRef blocks[2] = {before, ask};
  LLVMAddIncoming(phi, from, blocks, 2);
  return phi;
}

/* Shared addresses as 32 bits; *beyond: what does not fit, NULL: nothing can. */
static value narrow(const access *a, value lanes, value *beyond) {
  LLVMTypeRef type = gen_vector_type(a->g->i32);
  *beyond = NULL;
  if (!a->n->wide) return lanes;
  *beyond = LLVMBuildTrunc(a->b, LLVMBuildLShr(a->b, lanes, gen_splat(a->g, gen_i64(a->g, 32)), ""), type, "");
  return LLVMBuildTrunc(a->b, lanes, type, "");
}

/* What the addresses of a warp look like, found once per block: where each piece's window begins, and which of its words each
 * lane takes. */
static const struct gen_shape *shape_of(const access *a, value lanes) {
  generator *g = a->g;
  for (uint32_t s = 0; s < g->shape_count; s++)
    if (g->shapes[s].address == lanes) return &g->shapes[s];
  if (g->shape_count == sizeof g->shapes / sizeof *g->shapes) g->shape_count = 0;
  struct gen_shape *shape = &g->shapes[g->shape_count++];
  value bad = NULL, low = NULL, beyond;
  shape->address = lanes;
  lanes = narrow(a, lanes, &beyond);
  for (uint32_t p = 0; p < EXEC_LANES / piece_lanes(a); p++) {
    value piece = piece_of(a, lanes, p), first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, p * piece_lanes(a)), "");
    value apart = LLVMBuildSub(a->b, piece, splat_piece(a, first), "");
    /* a multiple of 4 inside the window: no bit but those of its last word's place is set */
    value odd = LLVMBuildAnd(a->b, apart, all_piece(a, ~(window_bytes(a) - 4)), "");
    if (beyond) odd = LLVMBuildOr(a->b, odd, piece_of(a, beyond, p), "");
    bad = bad ? LLVMBuildOr(a->b, bad, odd, "") : odd;
    low = low ? LLVMBuildOr(a->b, low, first, "") : first;
    shape->base[p] = first;
    shape->index[p] = LLVMBuildLShr(a->b, apart, all_piece(a, 2), "");
  }
  LLVMTypeRef together = LLVMIntTypeInContext(g->context, piece_lanes(a)), type = gen_vector_type(g->i32);
  value bits = LLVMBuildBitCast(a->b, LLVMBuildICmp(a->b, LLVMIntNE, bad, LLVMConstNull(LLVMTypeOf(bad)), ""), together, "");
  value aligned4 = LLVMBuildICmp(a->b, LLVMIntEQ, LLVMBuildAnd(a->b, low, gen_i32(g, 3), ""), gen_i32(g, 0), "");
  shape->good = both(a, LLVMBuildICmp(a->b, LLVMIntEQ, bits, LLVMConstInt(together, 0, false), ""), aligned4);
  shape->largest = LLVMBuildZExt(a->b, gen_intrinsic(g, "llvm.vector.reduce.umax", &type, 1, &lanes, 1), g->i64, "");
  shape->passes = g->traced ? window_passes(a, lanes, shape) : NULL;
  return shape;
}

/* Lane l: words[index[l]]; of an index the low bits count. */
static value permuted(const access *a, value words, value index) {
  generator *g = a->g;
  value arguments[2] = {words, index};
  if (!g->emulated) return gen_intrinsic(g, g->wide_vectors ? "llvm.x86.avx512.permvar.si.512" : "llvm.x86.avx2.permd", NULL, 0, arguments, 2);
  uint32_t lanes = piece_lanes(a);
  value result = LLVMGetUndef(LLVMTypeOf(words));
  for (uint32_t l = 0; l < lanes; l++) {
    value from = LLVMBuildAnd(a->b, LLVMBuildExtractElement(a->b, index, gen_i32(g, l), ""), gen_i32(g, lanes - 1), "");
    result = LLVMBuildInsertElement(a->b, result, LLVMBuildExtractElement(a->b, words, from, ""), gen_i32(g, l), "");
  }
  return result;
}

static bool windows_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  const struct gen_shape *shape = shape_of(a, lanes);
  uint32_t pieces = EXEC_LANES / piece_lanes(a);
  value last = LLVMBuildAdd(a->b, shape->largest, gen_i64(g, (uint64_t)a->n->immediate), ""), parts[4];
  fork f = begin_fast(a, both(a, shape->good, in_shared(a, last, 4)));
  if (g->traced) tell_passes(a, shape->passes);
  for (uint32_t piece = 0; piece < pieces; piece++) {
    value offset = LLVMBuildZExt(a->b, shape->base[piece], g->i64, "");
    value p = gen_at(g, LLVMBuildGEP2(a->b, g->i8, shared_base(a), &offset, 1, ""), (uint64_t)a->n->immediate);
    parts[piece] = permuted(a, gen_load(g, LLVMVectorType(g->i32, piece_lanes(a)), p, 4), shape->index[piece]);
  }
  value result = join(a, parts, pieces, piece_lanes(a));
  end_fast(a, f, &result, false);
  return true;
}

/* ---- some lanes only: each lane's cell by itself ---- */

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
  else gen_store(g, extended(a, gen_load(g, a->cell, cell, n->bytes), a->slot), slot, n->slot_bytes);
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
  return a->guard ? LLVMBuildSelect(a->b, gen_lanes(a->g, a->bits), v, gen_vector(a->g, written(a, element)), "") : v;
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
    else if (a->guard) gen_vector(a->g, written(a, e));
}

static bool cells_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  if (a->n->immediate < 0 || a->n->immediate > INT32_MAX || (g->traced && a->total != 4)) return false;
  value beyond, high = NULL, results[4];
  lanes = narrow(a, lanes, &beyond);
  if (beyond) high = LLVMBuildICmp(a->b, LLVMIntNE, beyond, LLVMConstNull(LLVMTypeOf(beyond)), "");
  value offset = LLVMBuildAdd(a->b, lanes, gen_splat(g, gen_i32(g, (uint32_t)a->n->immediate)), "");
  value bytes = gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes), room = LLVMBuildSub(a->b, bytes, gen_i32(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, room), "");
  if (high) outside = any_of(a, outside, any_of(a, high, LLVMBuildICmp(a->b, LLVMIntULT, offset, lanes, ""))); /* the sum may not fit either */
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, offset, g->i32));
  value good = both(a, LLVMBuildICmp(a->b, LLVMIntUGE, bytes, gen_i32(g, a->total), ""), none_of(a, outside));
  know_operands(a);
  fork f = begin_fast(a, good);
  if (g->traced) tell_passes(a, ask_conflicts(a, offset));
  cells(a, shared_base(a), offset, results);
  end_fast(a, f, results, false);
  return true;
}

static bool cells_of_global(const access *a, value lanes) {
  generator *g = a->g;
  value record = record_of(a), start = gen_field(g, g->i64, record, g->at->record_address), results[4];
  value room = gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable);
  value add = LLVMBuildSub(a->b, gen_i64(g, (uint64_t)a->n->immediate), start, "");
  value offset = LLVMBuildAdd(a->b, lanes, gen_splat(g, add), ""), last = LLVMBuildSub(a->b, room, gen_i64(g, a->total), "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, offset, gen_splat(g, last), "");
  value address = LLVMBuildAdd(a->b, lanes, gen_splat(g, gen_i64(g, (uint64_t)a->n->immediate)), "");
  if (a->total > 1) outside = any_of(a, outside, misaligned(a, address, g->i64));
  know_operands(a);
  fork f = begin_fast(a, both(a, at_least(a, room, gen_i64(g, a->total)), none_of(a, outside)));
  if (g->watched) tell(a, g->at->api_scattered, in_memory(a, lanes));
  cells(a, pointer_to(a, start), offset, results);
  end_fast(a, f, results, false);
  return true;
}

static bool row_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  value first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, 0), ""), offset = shared_offset(a, first), results[4];
  value good = both(a, in_shared(a, offset, (uint64_t)a->total * EXEC_LANES), aligned(a, offset));
  good = both(a, good, is_row(a, lanes, first, a->n->wide ? g->i64 : g->i32, a->total));
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e);
  fork f = begin_fast(a, good);
  tell_passes(a, gen_i32(g, a->n->row_passes));
  value p = LLVMBuildGEP2(a->b, g->i8, shared_base(a), &offset, 1, "");
  if (a->n->store) store_row(a, p);
  else load_row(a, p, results);
  end_fast(a, f, results, false);
  return true;
}

/* ---- choosing ---- */

static value guard_of(const access *a) {
  if (a->n->guard == NATIVE_NONE) return NULL;
  value bits = gen_vector(a->g, a->n->operands + a->n->read_count - 1);
  return a->n->guard_negated ? LLVMBuildNot(a->b, bits, "") : bits;
}

bool gen_access(generator *g, const native_instr *n) {
  access a = {g, g->b, n, (uint32_t)n->bytes * n->elements, LLVMIntTypeInContext(g->context, n->bytes * 8u), n->slot_bytes == 4 ? g->i32 : g->i64, NULL, NULL};
  bool guarded = n->guard != NATIVE_NONE, global = (n->space == NATIVE_GLOBAL || n->space == NATIVE_GENERIC) && n->wide;
  /* whoever is told of a guarded access looks at the warp's mask, which only the handler changes */
  if (n->elements == 3 || n->elements > 4 || (guarded && (g->watched || n->space == NATIVE_PARAM))) return false;
  if (n->space == NATIVE_PARAM) {
    parameter(&a);
    return true;
  }
  if (!global && n->space != NATIVE_SHARED) return false;
  value one = guarded || (n->store && !g->full) ? NULL : gen_scalar(g, n->operands);
  if (one) return global ? one_global(&a, one) : one_shared(&a, one);
  if (!g->full || guarded) {
    a.guard = guard_of(&a);
    a.bits = !a.guard ? g->active : g->full ? a.guard : LLVMBuildAnd(a.b, g->active, a.guard, "");
    return (global ? cells_of_global : cells_of_shared)(&a, gen_vector(g, n->operands));
  }
  if (global) return row_of_global(&a, gen_vector(g, n->operands));
  bool words = n->elements == 1 && n->bytes == 4 && n->slot_bytes == 4 && n->immediate >= 0 && n->immediate % 4 == 0 && n->immediate < INT32_MAX;
  if (words && !n->store) return windows_of_shared(&a, gen_vector(g, n->operands));
  return row_of_shared(&a, gen_vector(g, n->operands));
}
