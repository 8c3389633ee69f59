/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of whole warps to shared memory: one cell, windows, rows. */
#include "compile/generator/emit_access.h"

/* Shared memory: cycles beyond the first, if there are any. */
void access_tell_passes_of(const access *a, value instr, value more) {
  generator *g = a->g;
  if (!g->traced || (LLVMIsConstant(more) && LLVMIsNull(more))) return;
  LLVMBasicBlockRef some = gen_block(g, "passes"), on = gen_block(g, "told");
  LLVMBuildCondBr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, more, gen_i32(g, 0), ""), on, some);
  LLVMPositionBuilderAtEnd(a->b, some);
  value arguments[2] = {instr, more};
  gen_call_api(g, g->at->api_passes, NULL, arguments, 2);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
}

void access_tell_passes(const access *a, value more) { access_tell_passes_of(a, gen_instr_address(a->g), more); }

static value shared_bytes(const access *a) {
  return LLVMBuildZExt(a->b, gen_field(a->g, a->g->i32, a->g->warp, a->g->at->warp_shared_bytes), a->g->i64, "");
}
value access_shared_base(const access *a) { return gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_shared); }

/* Are `bytes` from the offset (64 bits) on in shared memory? */
static value in_shared(const access *a, value offset, uint64_t bytes) {
  value room = shared_bytes(a), good = LLVMBuildICmp(a->b, LLVMIntULT, offset, room, "");
  return access_both(a, good, access_at_least(a, LLVMBuildSub(a->b, room, offset, ""), gen_i64(a->g, bytes)));
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

bool access_one_shared(const access *a, value base) {
  generator *g = a->g;
  if (a->n->store || (g->traced && !g->full && a->n->one_passes)) return false;
  value offset = shared_offset(a, base), results[4];
  fork f = access_begin_fast(a, access_both(a, in_shared(a, offset, a->total), aligned(a, offset)), GEN_NEARLY_ALWAYS);
  access_tell_passes(a, gen_i32(g, a->n->one_passes));
  value p = LLVMBuildGEP2(a->b, g->i8, access_shared_base(a), &offset, 1, "");
  for (uint32_t e = 0; e < a->n->elements; e++)
    results[e] = access_extended(a, gen_load(g, a->cell, gen_at(g, p, e * a->n->bytes), a->n->bytes), a->slot);
  access_end_fast(a, f, results, true);
  return true;
}

/* A piece of the warp is what one register holds: 16 lanes, without AVX-512 8. */
static uint32_t piece_lanes(const access *a) { return a->g->wide_vectors ? 16 : 8; }
static uint32_t register_bytes(const access *a) { return 4 * piece_lanes(a); }
/* A piece's window is one register for each word of a lane: as much as a row of the piece has. */
static uint32_t lane_words(const native_instr *n) { return (uint32_t)n->bytes * n->elements / 4; }
static uint32_t window_bytes(const access *a) { return register_bytes(a) * lane_words(a->n); }

static value piece_of(const access *a, value lanes, uint32_t piece) {
  value pick[EXEC_LANES];
  uint32_t count = piece_lanes(a);
  for (uint32_t l = 0; l < count; l++) pick[l] = gen_i32(a->g, piece * count + l);
  return LLVMBuildShuffleVector(a->b, lanes, LLVMGetUndef(LLVMTypeOf(lanes)), LLVMConstVector(pick, count), "");
}

static value splat_piece(const access *a, value scalar) {
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), piece_lanes(a));
  value one = LLVMBuildInsertElement(a->b, LLVMGetUndef(type), scalar, gen_i32(a->g, 0), "");
  return LLVMBuildShuffleVector(a->b, one, LLVMGetUndef(type), LLVMConstNull(LLVMVectorType(a->g->i32, piece_lanes(a))),
                                "");
}

static value all_piece(const access *a, uint32_t v) {
  value lanes[EXEC_LANES];
  for (uint32_t l = 0; l < piece_lanes(a); l++) lanes[l] = gen_i32(a->g, v);
  return LLVMConstVector(lanes, piece_lanes(a));
}

/* Two pieces one behind the other, until it is the whole warp. */
static value join(const access *a, value *parts, uint32_t count, uint32_t lanes) {
  for (; count > 1; count /= 2, lanes *= 2) {
    value pick[2 * EXEC_LANES];
    for (uint32_t l = 0; l < 2 * lanes; l++) pick[l] = gen_i32(a->g, l);
    for (uint32_t p = 0; p < count / 2; p++)
      parts[p] = LLVMBuildShuffleVector(a->b, parts[2 * p], parts[2 * p + 1], LLVMConstVector(pick, 2 * lanes), "");
  }
  return parts[0];
}

/* What `conflicts` of exec_native_api says of these lanes' words. */
value access_ask_conflicts(const access *a, value lanes) {
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
  value from_first = LLVMBuildSub(a->b, banks, gen_i32(g, register_bytes(a)), "");
  value different = LLVMBuildICmp(a->b, LLVMIntULE, from_first, gen_i32(g, 4 * EXEC_LANES - 2 * register_bytes(a)), "");
  return LLVMBuildOr(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, apart, gen_i32(g, 0), ""), different, "");
}

/* Cycles beyond the first of one access at these addresses, if they are good: else the handler asks. */
static value window_passes(const access *a, value lanes, const struct gen_shape *shape) {
  generator *g = a->g;
  uint32_t pieces = EXEC_LANES / piece_lanes(a);
  value none = NULL;
  for (uint32_t p = 0; p < pieces; p++)
    for (uint32_t q = p + 1; q < pieces; q++)
      none = access_both(a, none, without_conflict(a, shape->base[p], shape->base[q]));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(a->b), ask = gen_block(g, "conflicts"), on = gen_block(g, "counted");
  LLVMBuildCondBr(a->b, LLVMBuildOr(a->b, LLVMBuildNot(a->b, shape->good, ""), none, ""), on, ask);
  LLVMPositionBuilderAtEnd(a->b, ask);
  value counted = access_ask_conflicts(a, lanes);
  LLVMBuildBr(a->b, on);
  LLVMPositionBuilderAtEnd(a->b, on);
  value phi = LLVMBuildPhi(a->b, g->i32, ""), from[2] = {gen_i32(g, 0), counted};
  LLVMBasicBlockRef blocks[2] = {before, ask};
  LLVMAddIncoming(phi, from, blocks, 2);
  return phi;
}

/* Shared addresses as 32 bits; *beyond: what does not fit, NULL: nothing can. */
value access_narrow(const access *a, value lanes, value *beyond) {
  LLVMTypeRef type = gen_vector_type(a->g->i32);
  *beyond = NULL;
  if (!a->n->wide) return lanes;
  *beyond = LLVMBuildTrunc(a->b, LLVMBuildLShr(a->b, lanes, gen_splat(a->g, gen_i64(a->g, 32)), ""), type, "");
  return LLVMBuildTrunc(a->b, lanes, type, "");
}

bool access_has_windows(const generator *g, const native_instr *n) {
  if (n->op != NATIVE_ACCESS || n->space != NATIVE_SHARED || n->store || n->guard != NATIVE_NONE) return false;
  bool cells = (n->bytes == 4 && !n->to16) || n->bytes == 8;
  uint32_t words = lane_words(n);
  bool shape = words == 1 || ((words == 2 || words == 4) && !g->traced); /* whose cycles are known */
  return cells && shape && n->immediate >= 0 && n->immediate < INT32_MAX && n->immediate % (4 * words) == 0;
}

static value offset_beyond(const access *a, const struct gen_shape *shape, int64_t add) {
  return LLVMBuildAdd(a->b, shape->largest, gen_i64(a->g, (uint64_t)add), "");
}

/* The largest offset that this instruction or a later one of the block, as long as they have the same address, adds to
 * it. *users: how many these are. */
static int64_t furthest_offset(const access *a, uint32_t *users) {
  const plan *p = a->g->plan;
  uint32_t slot = p->slot_of[a->n->operands], end = p->blocks[p->block_of[a->g->now]].end;
  int64_t furthest = a->n->immediate;
  *users = 0;
  for (uint32_t n = a->g->now; n < end; n++) {
    const native_instr *i = &p->code[n];
    if (access_has_windows(a->g, i) && lane_words(i) == lane_words(a->n) && p->slot_of[i->operands] == slot) {
      if (i->immediate > furthest) furthest = i->immediate;
      ++*users;
    }
    for (uint32_t w = 0; w < i->write_count; w++)
      if (p->slot_of[i->operands + i->read_count + w] == slot) return furthest;
  }
  return furthest;
}

/* What the addresses of a warp look like, found once per block: where each piece's window begins, and which of its
 * words each lane takes first. good: also with all offsets up to `furthest`. */
static const struct gen_shape *shape_of(const access *a, value lanes) {
  generator *g = a->g;
  for (uint32_t s = 0; s < g->shape_count; s++)
    if (g->shapes[s].address == lanes && g->shapes[s].words == lane_words(a->n)) return &g->shapes[s];
  if (g->shape_count == sizeof g->shapes / sizeof *g->shapes) g->shape_count = 0;
  struct gen_shape *shape = &g->shapes[g->shape_count++];
  value bad = NULL, low = NULL, beyond;
  shape->address = lanes;
  shape->words = lane_words(a->n);
  lanes = access_narrow(a, lanes, &beyond);
  for (uint32_t p = 0; p < EXEC_LANES / piece_lanes(a); p++) {
    value piece = piece_of(a, lanes, p),
          first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, p * piece_lanes(a)), "");
    value apart = LLVMBuildSub(a->b, piece, splat_piece(a, first), "");
    /* a multiple of the lane's bytes inside the window: no bit but those of its last lane's place is set */
    value odd = LLVMBuildAnd(a->b, apart, all_piece(a, ~(window_bytes(a) - a->total)), "");
    if (beyond) odd = LLVMBuildOr(a->b, odd, piece_of(a, beyond, p), "");
    bad = bad ? LLVMBuildOr(a->b, bad, odd, "") : odd;
    low = low ? LLVMBuildOr(a->b, low, first, "") : first;
    shape->base[p] = first;
    shape->index[p] = LLVMBuildLShr(a->b, apart, all_piece(a, 2), "");
  }
  LLVMTypeRef together = LLVMIntTypeInContext(g->context, piece_lanes(a)), type = gen_vector_type(g->i32);
  value bits =
      LLVMBuildBitCast(a->b, LLVMBuildICmp(a->b, LLVMIntNE, bad, LLVMConstNull(LLVMTypeOf(bad)), ""), together, "");
  value low_bits = LLVMBuildAnd(a->b, low, gen_i32(g, a->total - 1), "");
  value all_aligned = LLVMBuildICmp(a->b, LLVMIntEQ, low_bits, gen_i32(g, 0), "");
  shape->furthest = furthest_offset(a, &shape->users);
  shape->good = access_both(a, LLVMBuildICmp(a->b, LLVMIntEQ, bits, LLVMConstInt(together, 0, false), ""), all_aligned);
  shape->largest = LLVMBuildZExt(a->b, gen_intrinsic(g, "llvm.vector.reduce.umax", &type, 1, &lanes, 1), g->i64, "");
  shape->good = access_both(a, shape->good, in_shared(a, offset_beyond(a, shape, shape->furthest), a->total));
  shape->passes = g->traced ? window_passes(a, lanes, shape) : NULL;
  for (uint32_t p = 0; p < EXEC_LANES / piece_lanes(a); p++) {
    value offset = LLVMBuildZExt(a->b, shape->base[p], g->i64, "");
    shape->place[p] = LLVMBuildGEP2(a->b, g->i8, access_shared_base(a), &offset, 1, "");
  }
  return shape;
}

/* Lane l: words[index[l]]; of an index the bits count that number the lanes of `words`. */
static value permuted(const access *a, value words, value index) {
  generator *g = a->g;
  value arguments[2] = {words, index};
  if (!g->emulated)
    return gen_intrinsic(g, g->wide_vectors ? "llvm.x86.avx512.permvar.si.512" : "llvm.x86.avx2.permd", NULL, 0,
                         arguments, 2);
  uint32_t lanes = piece_lanes(a);
  value result = LLVMGetUndef(LLVMTypeOf(words));
  for (uint32_t l = 0; l < lanes; l++) {
    value from = LLVMBuildAnd(a->b, LLVMBuildExtractElement(a->b, index, gen_i32(g, l), ""), gen_i32(g, lanes - 1), "");
    result = LLVMBuildInsertElement(a->b, result, LLVMBuildExtractElement(a->b, words, from, ""), gen_i32(g, l), "");
  }
  return result;
}

/* x where that bit of the index is 0, else y. `base`: an index with the same bit, so that it is looked at once. */
static value chosen(const access *a, value base, uint32_t bit, value x, value y) {
  value set = LLVMBuildAnd(a->b, base, all_piece(a, bit), "");
  return LLVMBuildSelect(a->b, LLVMBuildICmp(a->b, LLVMIntEQ, set, all_piece(a, 0), ""), x, y, "");
}

/* The same of two registers of words. */
static value permuted2(const access *a, const value *words, value index, value base) {
  generator *g = a->g;
  value arguments[3] = {words[0], index, words[1]};
  if (g->wide_vectors && !g->emulated)
    return gen_intrinsic(g, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, arguments, 3);
  return chosen(a, base, piece_lanes(a), permuted(a, words[0], index), permuted(a, words[1], index));
}

/* Lane l: of the window's words that at index[l], which is no more than three behind base[l]. */
static value of_window(const access *a, const value *words, value base, value index) {
  uint32_t count = lane_words(a->n);
  if (count == 1) return permuted(a, words[0], index);
  value low = permuted2(a, words, index, base);
  return count == 2 ? low : chosen(a, base, 2 * piece_lanes(a), low, permuted2(a, words + 2, index, base));
}

/* Element e, of one word, of a piece's lanes. */
static value word_of_window(const access *a, const value *words, value base, uint32_t e) {
  return of_window(a, words, base, e ? LLVMBuildAdd(a->b, base, all_piece(a, e), "") : base);
}

/* Element e, of two words, of one half of a piece's lanes: word by word. */
static value pair_of_window(const access *a, const value *words, value base, uint32_t e, uint32_t half) {
  value pick[EXEC_LANES], add[EXEC_LANES];
  uint32_t lanes = piece_lanes(a);
  for (uint32_t l = 0; l < lanes; l++) {
    pick[l] = gen_i32(a->g, half * lanes / 2 + l / 2);
    add[l] = gen_i32(a->g, 2 * e + l % 2);
  }
  value twice = LLVMBuildShuffleVector(a->b, base, LLVMGetUndef(LLVMTypeOf(base)), LLVMConstVector(pick, lanes), "");
  return of_window(a, words, twice, LLVMBuildAdd(a->b, twice, LLVMConstVector(add, lanes), ""));
}

/* Element e of all lanes; words: of each piece's window. */
static value element_of_windows(const access *a, value words[4][4], const struct gen_shape *shape, uint32_t e) {
  value parts[8];
  uint32_t pieces = EXEC_LANES / piece_lanes(a), halves = a->n->bytes / 4;
  for (uint32_t p = 0; p < pieces; p++)
    for (uint32_t half = 0; half < halves; half++)
      parts[p * halves + half] = halves == 1 ? word_of_window(a, words[p], shape->index[p], e)
                                             : pair_of_window(a, words[p], shape->index[p], e, half);
  value whole = join(a, parts, pieces * halves, piece_lanes(a));
  if (halves == 2) return LLVMBuildBitCast(a->b, whole, gen_vector_type(a->g->i64), "");
  return access_extended(a, whole, gen_vector_type(a->slot));
}

bool access_windows_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  const struct gen_shape *shape = shape_of(a, lanes);
  value good = shape->good, words[4][4], results[4];
  /* a copy of the address */
  if (a->n->immediate > shape->furthest)
    good = access_both(a, good, in_shared(a, offset_beyond(a, shape, a->n->immediate), a->total));
  /* loads of a tile at constant offsets; others may have strides of their own */
  fork f = access_begin_fast(a, good, shape->users > 2 ? GEN_NEARLY_ALWAYS : GEN_MOSTLY);
  if (g->traced) access_tell_passes(a, shape->passes);
  for (uint32_t piece = 0; piece < EXEC_LANES / piece_lanes(a); piece++) {
    value p = gen_at(g, shape->place[piece], (uint64_t)a->n->immediate);
    for (uint32_t r = 0; r < lane_words(a->n); r++)
      words[piece][r] = gen_load(g, LLVMVectorType(g->i32, piece_lanes(a)), gen_at(g, p, r * register_bytes(a)), 4);
  }
  for (uint32_t e = 0; e < a->n->elements; e++) results[e] = element_of_windows(a, words, shape, e);
  access_end_fast(a, f, results, false);
  return true;
}

bool access_row_of_shared(const access *a, value lanes) {
  generator *g = a->g;
  value first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, 0), ""), offset = shared_offset(a, first), results[4];
  value good = access_both(a, in_shared(a, offset, (uint64_t)a->total * EXEC_LANES), aligned(a, offset));
  good = access_both(a, good, access_is_row(a, lanes, first, a->n->wide ? g->i64 : g->i32, a->total));
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e);
  fork f = access_begin_fast(a, good, GEN_MOSTLY);
  access_tell_passes(a, gen_i32(g, a->n->row_passes));
  value p = LLVMBuildGEP2(a->b, g->i8, access_shared_base(a), &offset, 1, "");
  if (a->n->store) access_store_row(a, p);
  else access_load_row(a, p, results);
  access_end_fast(a, f, results, false);
  return true;
}
