/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: the shapes that compiled code settles itself. Everything else, faults included, is its handler's.
 *
 *   parameters           one value for all lanes
 *   one address          global and shared loads: one cell, checked like every lane's
 *   a row (full warps)   global: consecutive cells in lane order, checked as one piece
 *   windows (full warps) shared, cells of 4 and 8 bytes and vectors of them: each piece of the warp inside what its own
 *   row would take:
 *                        loads of it and permutations
 *   cells                global and shared, of some lanes, or of full warps that are none of these: eight lanes at once
 *                        where they are a row or two, else each lane's by itself; with AVX-512, loads of words under a
 *                        mask are gathers
 *
 * A check here is never weaker than the handler's (exec/memory/access.isa.c); where it fails, the
 * handler does the whole access, and counts it. */
#include "compile/generator/emit_access.h"

value access_both(const access *a, value x, value y) { return x ? LLVMBuildAnd(a->b, x, y, "") : y; }
value access_at_least(const access *a, value x, value y) { return LLVMBuildICmp(a->b, LLVMIntUGE, x, y, ""); }

/* From memory's width to the register's, for one cell or many. */
value access_extended(const access *a, value v, LLVMTypeRef slot) {
  const native_instr *n = a->n;
  if (n->bytes == n->slot_bytes) return v;
  v = n->sign ? LLVMBuildSExt(a->b, v, slot, "") : LLVMBuildZExt(a->b, v, slot, "");
  if (!n->to16) return v;
  value low = LLVMConstInt(a->slot, 0xffff, false);
  return LLVMBuildAnd(a->b, v, slot == a->slot ? low : gen_splat(a->g, low), "");
}

uint32_t access_written(const access *a, uint32_t element) { return a->n->operands + a->n->read_count + element; }

/* ---- parameters ---- */

static void parameter(const access *a) {
  value params = gen_field(a->g, a->g->pointer, a->g->warp, a->g->at->warp_params);
  for (uint32_t e = 0; e < a->n->elements; e++) {
    value v = gen_load(a->g, a->cell, gen_at(a->g, params, (uint64_t)a->n->immediate + e * a->n->bytes), 1);
    gen_put(a->g, access_written(a, e), access_extended(a, v, a->slot), NULL);
  }
}

/* ---- a fast way and the handler next to it ---- */

fork access_begin_fast(const access *a, value good) {
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
void access_end_fast(const access *a, fork f, const value *results, bool scalar) {
  generator *g = a->g;
  const native_instr *n = a->n;
  if (n->space == NATIVE_GLOBAL || n->space == NATIVE_GENERIC) {
    value counted = LLVMBuildLoad2(a->b, g->i64, g->accesses, ""), one = gen_i64(g, 1);
    /* no lane: none */
    if (a->guard) one = LLVMBuildZExt(a->b, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""), g->i64, "");
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, counted, one, ""), g->accesses);
  }
  LLVMBasicBlockRef fast_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.slow);
  bool global = n->space == NATIVE_GLOBAL || n->space == NATIVE_GENERIC;
  if (!scalar && g->full && !a->guard && n->space != NATIVE_PARAM && access_cells_are_faster(a, global))
    access_call_cells(a, global);
  else gen_call_handler(g, n);
  value slow[4];
  for (uint32_t e = 0; e < n->elements && !n->store; e++) {
    uint32_t slot = g->plan->slot_of[access_written(a, e)];
    slow[e] = scalar ? lane_of_frame(a, slot) : gen_frame_vector(g, slot);
  }
  LLVMBasicBlockRef slow_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.on);
  for (uint32_t e = 0; e < n->elements && !n->store; e++) {
    value phi = LLVMBuildPhi(a->b, LLVMTypeOf(results[e]), ""), from[2] = {results[e], slow[e]};
    LLVMBasicBlockRef blocks[2] = {fast_end, slow_end};
    LLVMAddIncoming(phi, from, blocks, 2);
    gen_put(g, access_written(a, e), scalar ? phi : NULL, scalar ? NULL : phi);
  }
}

/* ---- what is told of an access before it happens ---- */

/* Global memory: all lanes' cells begin at `address`, a row or one cell. */
void access_tell(const access *a, uint32_t api, value address) {
  value arguments[2] = {gen_instr_address(a->g), address};
  if (a->g->watched) gen_call_api(a->g, api, NULL, arguments, 2);
}

/* ---- global memory ---- */

value access_record_of(const access *a, value instr) {
  value side = gen_field(a->g, a->g->pointer, instr, a->g->at->instr_side);
  return gen_field(a->g, a->g->pointer, side, a->g->at->access_hint);
}

/* Is [address, address + bytes) inside the allocation that this instruction met last, and the address aligned? */
static value inside(const access *a, value address, uint64_t bytes) {
  generator *g = a->g;
  const native_layout *at = g->at;
  value record = access_record_of(a, gen_instr_address(g));
  value room = gen_field(g, g->i64, record, a->n->store ? at->record_writable : at->record_readable);
  value offset = LLVMBuildSub(a->b, address, gen_field(g, g->i64, record, at->record_address), "");
  value good = LLVMBuildICmp(a->b, LLVMIntULT, offset, room, "");
  good = access_both(a, good, access_at_least(a, LLVMBuildSub(a->b, room, offset, ""), gen_i64(g, bytes)));
  if (a->total == 1) return good;
  value low = LLVMBuildAnd(a->b, address, gen_i64(g, a->total - 1), "");
  return access_both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(g, 0), ""));
}

value access_pointer_to(const access *a, value address) { return LLVMBuildIntToPtr(a->b, address, a->g->pointer, ""); }

static bool one_global(const access *a, value base) {
  generator *g = a->g;
  if (a->n->store) return false;
  value address = LLVMBuildAdd(a->b, base, gen_i64(g, (uint64_t)a->n->immediate), ""), results[4];
  fork f = access_begin_fast(a, inside(a, address, a->total));
  access_tell(a, g->at->api_one, address);
  value p = access_pointer_to(a, address);
  bool generic = a->n->space == NATIVE_GENERIC; /* in local memory the lanes have different cells: on the slow way */
  for (uint32_t e = 0; e < a->n->elements; e++) {
    results[e] = access_extended(a, gen_load(g, a->cell, gen_at(g, p, e * a->n->bytes), a->n->bytes), a->slot);
    if (generic) results[e] = gen_splat(g, results[e]);
  }
  access_end_fast(a, f, results, !generic);
  return true;
}

/* 0, step, 2 * step ... */
value access_ladder(generator *g, LLVMTypeRef type, uint64_t step) {
  value steps[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) steps[l] = LLVMConstInt(type, l * step, false);
  return LLVMConstVector(steps, EXEC_LANES);
}

value access_is_row(const access *a, value lanes, value first, LLVMTypeRef type, uint64_t step) {
  return gen_same(a->g, lanes, LLVMBuildAdd(a->b, gen_splat(a->g, first), access_ladder(a->g, type, step), ""));
}

void access_load_row(const access *a, value p, value *results) {
  generator *g = a->g;
  uint32_t elements = a->n->elements;
  value all = gen_load(g, LLVMVectorType(a->cell, EXEC_LANES * elements), p, a->n->bytes);
  for (uint32_t e = 0; e < elements; e++) {
    value pick[EXEC_LANES];
    for (uint32_t l = 0; l < EXEC_LANES; l++) pick[l] = gen_i32(g, l * elements + e);
    value one = elements == 1 ? all
                              : LLVMBuildShuffleVector(a->b, all, LLVMGetUndef(LLVMTypeOf(all)),
                                                       LLVMConstVector(pick, EXEC_LANES), "");
    results[e] = access_extended(a, one, gen_vector_type(a->slot));
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
  for (uint32_t l = 0; l < count; l++) {
    pick[2 * l] = gen_i32(a->g, l);
    pick[2 * l + 1] = gen_i32(a->g, count + l);
  }
  return LLVMBuildShuffleVector(a->b, x, y, LLVMConstVector(pick, 2 * count), "");
}

void access_store_row(const access *a, value p) {
  value v = row_data(a, 0);
  if (a->n->elements == 2) v = interleave(a, v, row_data(a, 1));
  if (a->n->elements == 4)
    v = interleave(a, interleave(a, v, row_data(a, 2)), interleave(a, row_data(a, 1), row_data(a, 3)));
  gen_store(a->g, v, p, a->n->bytes);
}

static bool row_of_global(const access *a, value lanes) {
  generator *g = a->g;
  value first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, 0), ""), results[4];
  value address = LLVMBuildAdd(a->b, first, gen_i64(g, (uint64_t)a->n->immediate), "");
  value good = access_both(a, access_is_row(a, lanes, first, g->i64, a->total),
                           inside(a, address, (uint64_t)a->total * EXEC_LANES));
  /* known on both ways */
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e);
  fork f = access_begin_fast(a, good);
  access_tell(a, g->at->api_row, address);
  if (a->n->store) access_store_row(a, access_pointer_to(a, address));
  else access_load_row(a, access_pointer_to(a, address), results);
  access_end_fast(a, f, results, false);
  return true;
}

/* ---- choosing ---- */

static value guard_of(const access *a) {
  if (a->n->guard == NATIVE_NONE) return NULL;
  value bits = gen_vector(a->g, a->n->operands + a->n->read_count - 1);
  return a->n->guard_negated ? LLVMBuildNot(a->b, bits, "") : bits;
}

bool gen_access(generator *g, const native_instr *n) {
  access a = {g,
              g->b,
              n,
              (uint32_t)n->bytes * n->elements,
              LLVMIntTypeInContext(g->context, n->bytes * 8u),
              n->slot_bytes == 4 ? g->i32 : g->i64,
              NULL,
              NULL};
  bool guarded = n->guard != NATIVE_NONE, global = (n->space == NATIVE_GLOBAL || n->space == NATIVE_GENERIC) && n->wide;
  /* the listener of a guarded access looks at the warp's mask, which only the handler changes */
  if (n->elements == 3 || n->elements > 4 || (guarded && (g->watched || n->space == NATIVE_PARAM))) return false;
  if (n->space == NATIVE_PARAM) {
    parameter(&a);
    return true;
  }
  if (!global && n->space != NATIVE_SHARED) return false;
  value one = guarded || (n->store && !g->full) ? NULL : gen_scalar(g, n->operands);
  if (one) return global ? one_global(&a, one) : access_one_shared(&a, one);
  if (!g->full || guarded) {
    a.guard = guard_of(&a);
    if (!a.guard) a.bits = g->active;
    else if (g->full) a.bits = a.guard;
    else a.bits = LLVMBuildAnd(a.b, g->active, a.guard, "");
    return access_cells(&a, global);
  }
  if (global) return row_of_global(&a, gen_vector(g, n->operands));
  if (access_has_windows(g, n)) return access_windows_of_shared(&a, gen_vector(g, n->operands));
  return access_row_of_shared(&a, gen_vector(g, n->operands));
}
