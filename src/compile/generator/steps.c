/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses whose addresses are linear in the lane's number, by a step that is known when the code is made (affine.c):
 * the first and the last address say all, and no lane's own is computed or compared.
 *
 *   a row (step: a lane's bytes)   of full warps one access; of some lanes, with AVX-512, one under their mask
 *   other steps                    with AVX-512: gathers and scatters, whose indices are constants
 *
 * A scatter writes lane after lane, which is the order of stores to one cell. */
#include "compile/generator/emit_access.h"

typedef struct steps {
  value low, high; /* i32: the first and the last lane that accesses */
  value met;       /* i64: the address of lane `low`, or its offset in shared memory */
  value good;      /* i1: are the addresses linear? NULL: they are */
  int64_t step;
} steps;

static bool is_power(uint32_t bytes) { return bytes && !(bytes & (bytes - 1)); }

/* Of some lanes, or of a full warp that is no row. */
static bool has_cells_of(const access *a, bool global, int64_t step) {
  const native_instr *n = a->n;
  if (!a->g->wide_vectors || a->g->watched || n->elements != 1) return false;
  if (n->bytes >= 4) return n->bytes == n->slot_bytes;
  if (step == (int64_t)a->total) return a->bits && !a->g->emulated;
  return a->bits && !n->store && !global && n->slot_bytes == 4;
}

bool access_has_steps(const access *a, bool global) {
  const gen_affine *f = gen_affine_operand(a->g, a->n->operands);
  if (!f || !is_power(a->total) || a->n->elements == 3) return false;
  int64_t step = gen_affine_step(f);
  if (step % (int64_t)a->total) return false;
  return (!a->bits && step == (int64_t)a->total) || has_cells_of(a, global, step);
}

static value lane_number(const access *a, bool last) {
  generator *g = a->g;
  if (!a->bits) return gen_i32(g, last ? EXEC_LANES - 1 : 0);
  value arguments[2] = {a->bits, LLVMConstInt(g->i1, 0, false)};
  value zeros = gen_intrinsic(g, last ? "llvm.ctlz" : "llvm.cttz", &g->i32, 1, arguments, 2);
  if (last) zeros = LLVMBuildSub(a->b, gen_i32(g, EXEC_LANES - 1), zeros, "");
  return LLVMBuildAnd(a->b, zeros, gen_i32(g, EXEC_LANES - 1), ""); /* no lane: any number */
}

static steps find_steps(const access *a) {
  generator *g = a->g;
  const gen_affine *f = gen_affine_operand(g, a->n->operands);
  steps s = {.low = lane_number(a, false), .high = lane_number(a, true), .step = gen_affine_step(f)};
  value first = gen_affine_at(g, f, s.low);
  value add = LLVMConstInt(LLVMTypeOf(first), (uint64_t)a->n->immediate, true);
  s.met = LLVMBuildAdd(a->b, first, add, "");
  if (!a->n->wide) s.met = LLVMBuildZExt(a->b, s.met, g->i64, "");
  s.good = gen_affine_holds(g, f, s.low, s.high);
  return s;
}

/* i1: may all of it be accessed, and is each cell aligned? */
static value steps_inside(const access *a, bool global, const steps *s) {
  generator *g = a->g;
  uint64_t most = (uint64_t)(s->step < 0 ? -s->step : s->step);
  value lanes = LLVMBuildZExt(a->b, LLVMBuildSub(a->b, s->high, s->low, ""), g->i64, "");
  value between = LLVMBuildMul(a->b, lanes, gen_i64(g, most), ""), lowest = s->met, offset;
  if (s->step < 0) lowest = LLVMBuildSub(a->b, lowest, between, "");
  value room = access_room(a, global, lowest, &offset), bytes = LLVMBuildAdd(a->b, between, gen_i64(g, a->total), "");
  value good = access_both(a, s->good, LLVMBuildICmp(a->b, LLVMIntULT, offset, room, ""));
  good = access_both(a, good, access_at_least(a, LLVMBuildSub(a->b, room, offset, ""), bytes));
  if (a->bits) good = access_both(a, good, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""));
  if (a->total == 1) return good;
  value odd = LLVMBuildAnd(a->b, s->met, gen_i64(g, a->total - 1), "");
  return access_both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, odd, gen_i64(g, 0), ""));
}

/* Where lane 0's cell is, or would be. */
static value first_cell(const access *a, bool global, const steps *s) {
  generator *g = a->g;
  value before = LLVMBuildMul(a->b, LLVMBuildZExt(a->b, s->low, g->i64, ""), gen_i64(g, (uint64_t)s->step), "");
  value at = LLVMBuildSub(a->b, s->met, before, "");
  return global ? access_pointer_to(a, at) : LLVMBuildGEP2(a->b, g->i8, access_shared_base(a), &at, 1, "");
}

/* ---- of some lanes, or no row ---- */

static value mask_of(const access *a) {
  return a->bits ? gen_lanes(a->g, a->bits) : LLVMConstAllOnes(gen_vector_type(a->g->i1));
}

static value cells_to_store(const access *a) {
  value v = gen_vector(a->g, a->n->operands + 1);
  return a->n->bytes == a->n->slot_bytes ? v : LLVMBuildTrunc(a->b, v, gen_vector_type(a->cell), "");
}

/* Cells in a row; returns what is loaded. */
static value move_row(const access *a, value p, value data) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell), pointer = LLVMPointerType(type, 0), types[2] = {type, pointer};
  value at = LLVMBuildBitCast(a->b, p, pointer, ""), mask = mask_of(a), align = gen_i32(g, a->n->bytes);
  value store[4] = {data, at, align, mask}, load[4] = {at, align, mask, LLVMGetUndef(type)};
  if (a->n->store) return gen_intrinsic(g, "llvm.masked.store", types, 2, store, 4);
  return access_extended(a, gen_intrinsic(g, "llvm.masked.load", types, 2, load, 4), gen_vector_type(a->slot));
}

static value move_cells(const access *a, value p, int64_t step, value data) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell);
  value index = access_ladder(g, g->i64, (uint64_t)step), places = LLVMBuildGEP2(a->b, g->i8, p, &index, 1, "");
  places = LLVMBuildBitCast(a->b, places, gen_vector_type(LLVMPointerType(a->cell, 0)), "");
  LLVMTypeRef types[2] = {type, LLVMTypeOf(places)};
  value mask = mask_of(a), align = gen_i32(g, a->n->bytes);
  value store[4] = {data, places, align, mask}, load[4] = {places, align, mask, LLVMGetUndef(type)};
  if (a->n->store) return gen_intrinsic(g, "llvm.masked.scatter", types, 2, store, 4);
  return gen_intrinsic(g, "llvm.masked.gather", types, 2, load, 4);
}

/* Cells of one or two bytes of shared memory: taken out of words. Offsets of lanes that access fit 32 bits. */
static value load_narrow(const access *a, const steps *s) {
  generator *g = a->g;
  value low = LLVMBuildTrunc(a->b, s->met, g->i32, ""), by = gen_i32(g, (uint32_t)s->step);
  low = LLVMBuildSub(a->b, low, LLVMBuildMul(a->b, s->low, by, ""), "");
  value offset = LLVMBuildAdd(a->b, gen_splat(g, low), access_ladder(g, g->i32, (uint64_t)s->step), "");
  return access_gather_narrow(a, access_shared_base(a), offset);
}

static value move(const access *a, bool global, const steps *s, value data) {
  bool row = s->step == (int64_t)a->total;
  if (!row && a->n->bytes < 4) return load_narrow(a, s);
  value p = first_cell(a, global, s);
  return row ? move_row(a, p, data) : move_cells(a, p, s->step, data);
}

/* ---- all of them ---- */

bool access_by_steps(const access *a, bool global) {
  generator *g = a->g;
  steps s = find_steps(a);
  value results[4], data = NULL, kept = NULL;
  bool row = !a->bits && s.step == (int64_t)a->total;
  /* known on both ways */
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e);
  if (!row && a->n->store) data = cells_to_store(a);
  if (!a->n->store && a->guard) kept = gen_vector(g, access_written(a, 0));
  fork f = access_begin_fast(a, steps_inside(a, global, &s), GEN_MOSTLY);
  if (!row) {
    results[0] = move(a, global, &s, data);
    if (kept) results[0] = LLVMBuildSelect(a->b, mask_of(a), results[0], kept, "");
  } else {
    if (global) access_tell(a, g->at->api_row, s.met);
    else access_tell_passes(a, gen_i32(g, a->n->row_passes));
    if (a->n->store) access_store_row(a, first_cell(a, global, &s));
    else access_load_row(a, first_cell(a, global, &s), results);
  }
  access_end_fast(a, f, results, false);
  return true;
}
