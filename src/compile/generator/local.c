/* SPDX-License-Identifier: Apache-2.0 */
/* Local memory: words of all lanes side by side (exec/memory/access_local.h), so that one offset for all lanes is a row
 * of 32 words, and arrays that lanes index by themselves are gathers and scatters of words, one in each lane's column.
 * No two lanes share a word: a cell of one or two bytes is written by way of its word, and the order of lanes is free.
 *
 * Where an access stream is wanted one offset for all lanes only, whose cycles are known: other records are the
 * handler's. Of some lanes only with AVX-512, as LLVM makes a branch for each lane of a gather under a mask for
 * AVX2. */
#include "compile/generator/emit_access.h"

/* Stacks up to this size have 32-bit indices into a warp's local memory. */
enum { INDEXED_STACK = 1 << 25, ROW_BYTES = 4 * EXEC_LANES };

bool access_has_local(const access *a) {
  const native_instr *n = a->n;
  bool cells = n->bytes == n->slot_bytes || (n->bytes <= 4 && n->slot_bytes == 4);
  return cells;
}

static value local_base(const access *a) { return gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_local); }

/* i32: bytes of each lane that may be accessed. */
static value stack_bytes(const access *a) {
  value frame = gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_frame);
  return gen_field(a->g, a->g->i32, frame, a->g->at->frame_stack);
}

static value constant_like(const access *a, value v, uint64_t constant) {
  LLVMTypeRef type = LLVMTypeOf(v);
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return LLVMConstInt(type, constant, false);
  return gen_splat(a->g, LLVMConstInt(LLVMGetElementType(type), constant, false));
}

/* Which bits of its word a cell of one or two bytes begins at; offset: i32, or a vector of them. */
static value first_bit(const access *a, value offset) {
  value byte = LLVMBuildAnd(a->b, offset, constant_like(a, offset, 3), "");
  return LLVMBuildShl(a->b, byte, constant_like(a, offset, 3), "");
}

/* From words, and those behind them for cells of eight bytes, to what the register gets. shift: <32 x i32>. */
static value cells_of_words(const access *a, value words, value high, value shift) {
  generator *g = a->g;
  if (a->n->bytes == 8) {
    LLVMTypeRef wide = gen_vector_type(g->i64);
    value upper = LLVMBuildShl(a->b, LLVMBuildZExt(a->b, high, wide, ""), gen_splat(g, gen_i64(g, 32)), "");
    return LLVMBuildOr(a->b, LLVMBuildZExt(a->b, words, wide, ""), upper, "");
  }
  if (a->n->bytes == 4) return words;
  value low = LLVMBuildTrunc(a->b, LLVMBuildLShr(a->b, words, shift, ""), gen_vector_type(a->cell), "");
  return access_extended(a, low, gen_vector_type(a->slot));
}

/* Half a register's cells as words. */
static value half_of(const access *a, value data, bool high) {
  if (a->n->bytes != 8) return data;
  if (high) data = LLVMBuildLShr(a->b, data, gen_splat(a->g, gen_i64(a->g, 32)), "");
  return LLVMBuildTrunc(a->b, data, gen_vector_type(a->g->i32), "");
}

/* `words` with cells of one or two bytes in them; shift: <32 x i32>. */
static value put_into_words(const access *a, value words, value data, value shift) {
  value bits = gen_splat(a->g, gen_i32(a->g, a->n->bytes == 1 ? 0xff : 0xffff));
  value kept = LLVMBuildAnd(a->b, words, LLVMBuildNot(a->b, LLVMBuildShl(a->b, bits, shift, ""), ""), "");
  return LLVMBuildOr(a->b, kept, LLVMBuildShl(a->b, LLVMBuildAnd(a->b, data, bits, ""), shift, ""), "");
}

/* ---- one offset for all lanes ---- */

/* The element that begins at `offset` (i32) of every lane; data: what is stored, NULL: it is loaded. */
static value move_row(const access *a, value offset, value data) {
  generator *g = a->g;
  LLVMTypeRef row = gen_vector_type(g->i32);
  value word = LLVMBuildAnd(a->b, offset, gen_i32(g, ~3u), "");
  value place = LLVMBuildShl(a->b, LLVMBuildZExt(a->b, word, g->i64, ""), gen_i64(g, 5), "");
  value at = LLVMBuildGEP2(a->b, g->i8, local_base(a), &place, 1, "");
  value shift = a->n->bytes < 4 ? gen_splat(g, first_bit(a, offset)) : NULL;
  if (!data) {
    value high = a->n->bytes == 8 ? gen_load(g, row, gen_at(g, at, ROW_BYTES), 4) : NULL;
    return cells_of_words(a, gen_load(g, row, at, 4), high, shift);
  }
  value words = half_of(a, data, false);
  if (shift) words = put_into_words(a, gen_load(g, row, at, 4), words, shift);
  gen_store(g, words, at, 4);
  if (a->n->bytes == 8) gen_store(g, half_of(a, data, true), gen_at(g, at, ROW_BYTES), 4);
  return NULL;
}

bool access_local_rows(const access *a, value base) {
  generator *g = a->g;
  const native_instr *n = a->n;
  value address, stack = LLVMBuildZExt(a->b, stack_bytes(a), g->i64, ""), data[4], results[4];
  if (n->wide) address = LLVMBuildAdd(a->b, base, gen_i64(g, (uint64_t)n->immediate), "");
  else address = LLVMBuildZExt(a->b, LLVMBuildAdd(a->b, base, gen_i32(g, (uint32_t)n->immediate), ""), g->i64, "");
  value good = LLVMBuildICmp(a->b, LLVMIntULT, address, stack, "");
  good = access_both(a, good, access_at_least(a, LLVMBuildSub(a->b, stack, address, ""), gen_i64(g, a->total)));
  if (a->total > 1) {
    value low = LLVMBuildAnd(a->b, address, gen_i64(g, a->total - 1), "");
    good = access_both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(g, 0), ""));
  }
  /* known on both ways */
  for (uint32_t e = 0; e < n->elements; e++) data[e] = n->store ? gen_vector(g, n->operands + 1 + e) : NULL;
  fork f = access_begin_fast(a, good, GEN_NEARLY_ALWAYS);
  /* trace_local_passes: a cycle for each row of words */
  if (g->traced) access_tell_passes(a, gen_i32(g, a->total > 4 ? a->total / 4 - 1 : 0));
  value offset = LLVMBuildTrunc(a->b, address, g->i32, "");
  for (uint32_t e = 0; e < n->elements; e++)
    results[e] = move_row(a, LLVMBuildAdd(a->b, offset, gen_i32(g, e * n->bytes), ""), data[e]);
  access_end_fast(a, f, results, false);
  return true;
}

/* ---- each lane's own offset ---- */

static value all_lanes(const access *a) {
  if (a->bits) return gen_lanes(a->g, a->bits);
  return LLVMConstAllOnes(gen_vector_type(a->g->i1));
}

static value gather_words(const access *a, value pointers) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(g->i32), types[2] = {type, LLVMTypeOf(pointers)};
  value arguments[4] = {pointers, gen_i32(g, 4), all_lanes(a), LLVMConstNull(type)};
  return gen_intrinsic(g, "llvm.masked.gather", types, 2, arguments, 4);
}

static void scatter_words(const access *a, value words, value pointers) {
  generator *g = a->g;
  LLVMTypeRef types[2] = {LLVMTypeOf(words), LLVMTypeOf(pointers)};
  value arguments[4] = {words, pointers, gen_i32(g, 4), all_lanes(a)};
  gen_intrinsic(g, "llvm.masked.scatter", types, 2, arguments, 4);
}

/* Where the words are that hold bytes `offset` (<32 x i32>) of the lanes, and `add` bytes behind. */
static value word_pointers(const access *a, value offset, uint64_t add) {
  generator *g = a->g;
  value row = LLVMBuildShl(a->b, LLVMBuildAnd(a->b, offset, gen_splat(g, gen_i32(g, ~3u)), ""),
                           gen_splat(g, gen_i32(g, 5)), "");
  /* below 2^31 (INDEXED_STACK): with their sign, they are indices of 32 bits to LLVM */
  value index = LLVMBuildOr(a->b, row, access_ladder(g, g->i32, 4), "");
  index = LLVMBuildSExt(a->b, index, gen_vector_type(g->i64), "");
  value at = LLVMBuildGEP2(a->b, g->i8, gen_at(g, local_base(a), add), &index, 1, "");
  return LLVMBuildBitCast(a->b, at, gen_vector_type(LLVMPointerType(g->i32, 0)), "");
}

static void load_element(const access *a, value offset, value row) {
  generator *g = a->g;
  value words = gather_words(a, word_pointers(a, offset, 0)), high = NULL, shift = NULL;
  if (a->n->bytes == 8) high = gather_words(a, word_pointers(a, offset, ROW_BYTES));
  if (a->n->bytes < 4) shift = first_bit(a, offset);
  value cells = cells_of_words(a, words, high, shift);
  if (a->bits) /* other lanes keep what they have */
    cells = LLVMBuildSelect(a->b, gen_lanes(g, a->bits), cells, gen_load(g, LLVMTypeOf(cells), row, 64), "");
  gen_store(g, cells, row, 64);
}

static void store_element(const access *a, value offset, value row) {
  value data = gen_load(a->g, gen_vector_type(a->slot), row, 64), at = word_pointers(a, offset, 0);
  value words = half_of(a, data, false);
  if (a->n->bytes < 4) words = put_into_words(a, gather_words(a, at), words, first_bit(a, offset));
  scatter_words(a, words, at);
  if (a->n->bytes == 8) scatter_words(a, half_of(a, data, true), word_pointers(a, offset, ROW_BYTES));
}

void access_local_inside(generator *g, value function, const void *context) {
  access copy = *(const access *)context, *a = &copy;
  LLVMTypeRef type = a->n->wide ? g->i64 : g->i32;
  value immediate = LLVMGetParam(function, CELLS_IMMEDIATE), stack = stack_bytes(a);
  if (a->bits) a->bits = LLVMGetParam(function, CELLS_BITS);
  if (!a->n->wide) immediate = LLVMBuildTrunc(a->b, immediate, g->i32, "");
  value lanes = gen_load(g, gen_vector_type(type), LLVMGetParam(function, CELLS_ADDRESSES), 64);
  value address = LLVMBuildAdd(a->b, lanes, gen_splat(g, immediate), "");
  value last = LLVMBuildSub(a->b, stack, gen_i32(g, a->total), "");
  if (a->n->wide) last = LLVMBuildZExt(a->b, last, g->i64, "");
  value outside = LLVMBuildICmp(a->b, LLVMIntUGT, address, gen_splat(g, last), "");
  if (a->total > 1) outside = access_any_of(a, outside, access_misaligned(a, address, type));
  value good = access_both(a, access_at_least(a, stack, gen_i32(g, a->total)),
                           LLVMBuildICmp(a->b, LLVMIntULE, stack, gen_i32(g, INDEXED_STACK), ""));
  fork f = access_begin_fast(a, access_both(a, good, access_none_of(a, outside)), GEN_NEARLY_ALWAYS);
  value offset = a->n->wide ? LLVMBuildTrunc(a->b, address, gen_vector_type(g->i32), "") : address;
  for (uint32_t e = 0; e < a->n->elements; e++) {
    value at = LLVMBuildAdd(a->b, offset, gen_splat(g, gen_i32(g, e * a->n->bytes)), "");
    if (a->n->store) store_element(a, at, access_row_of(function, e));
    else load_element(a, at, access_row_of(function, e));
  }
  access_end_function(a, function, f, false);
}
