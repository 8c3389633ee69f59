/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: the shapes that compiled code settles itself. Everything else, faults included, is its handler's.
 *
 *   parameters           one value for all lanes
 *   one address          global and shared loads: one cell, checked like every lane's
 *   a row (full warps)   global: consecutive cells in lane order, checked as one piece; where nothing is told and a lane
 *                        has one cell, each half of the warp may be a row of its own
 *   windows (full warps) shared, cells of 4 and 8 bytes and vectors of them: each piece of the warp inside what its own
 *   row would take:
 *                        loads of it and permutations
 *   a row of some lanes  global and shared, with AVX-512: consecutive cells in lane order, under their mask
 *   cells                global and shared, of some lanes, or of full warps that are none of these: eight lanes at once
 *                        where they are a row or two, else each lane's by itself; with AVX-512, under a mask and where
 *                        nothing is told: two rows of the whole warp, else gathers and scatters
 *   steps                addresses that are linear in the lane's number: steps.c
 *   local memory         one offset for all lanes of full warps: rows of words; any offsets: gathers and scatters of
 *                        words, without AVX-512 of full warps only
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

fork access_begin_fast(const access *a, value good, uint32_t times) {
  fork f = {gen_block(a->g, "fast"), gen_block(a->g, "slow"), gen_block(a->g, "on")};
  gen_branch(a->g, good, f.fast, f.slow, f.fast, times);
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
  bool others = n->space == NATIVE_PARAM || n->space == NATIVE_LOCAL; /* where the slow way is for faults alone */
  bool usual = gen_affine_operand(g, n->operands) != NULL;            /* then only what is no row or faults is here */
  if (!scalar && g->full && !a->guard && !others && !usual && access_cells_are_faster(a, global))
    access_call_cells(a, global, access_addresses(a));
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
  fork f = access_begin_fast(a, inside(a, address, a->total), GEN_NEARLY_ALWAYS);
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

static bool one_row_of_global(const access *a, value lanes) {
  generator *g = a->g;
  value first = LLVMBuildExtractElement(a->b, lanes, gen_i32(g, 0), ""), results[4];
  value address = LLVMBuildAdd(a->b, first, gen_i64(g, (uint64_t)a->n->immediate), "");
  value good = access_both(a, access_is_row(a, lanes, first, g->i64, a->total),
                           inside(a, address, (uint64_t)a->total * EXEC_LANES));
  /* known on both ways */
  for (uint32_t e = 0; e < a->n->elements && a->n->store; e++) gen_vector(g, a->n->operands + 1 + e);
  fork f = access_begin_fast(a, good, GEN_MOSTLY);
  access_tell(a, g->at->api_row, address);
  if (a->n->store) access_store_row(a, access_pointer_to(a, address));
  else access_load_row(a, access_pointer_to(a, address), results);
  access_end_fast(a, f, results, false);
  return true;
}

/* ---- each half of the warp a row, as where rows of 16 threads access a tile ---- */

enum { HALF = EXEC_LANES / 2 };

typedef struct halves { /* addresses of lanes 0 and HALF, without and with what is added */
  value first[2], address[2];
} halves;

static halves halves_of(const access *a, value lanes) {
  halves h;
  for (uint32_t n = 0; n < 2; n++) {
    h.first[n] = LLVMBuildExtractElement(a->b, lanes, gen_i32(a->g, n * HALF), "");
    h.address[n] = LLVMBuildAdd(a->b, h.first[n], gen_i64(a->g, (uint64_t)a->n->immediate), "");
  }
  return h;
}

static value are_rows(const access *a, value lanes, const halves *h) {
  generator *g = a->g;
  value pick[EXEC_LANES], steps[EXEC_LANES], both = LLVMGetUndef(LLVMVectorType(g->i64, 2));
  for (uint32_t n = 0; n < 2; n++) both = LLVMBuildInsertElement(a->b, both, h->first[n], gen_i32(g, n), "");
  for (uint32_t l = 0; l < EXEC_LANES; l++) {
    pick[l] = gen_i32(g, l / HALF);
    steps[l] = gen_i64(g, (uint64_t)(l % HALF) * a->total);
  }
  value starts =
      LLVMBuildShuffleVector(a->b, both, LLVMGetUndef(LLVMTypeOf(both)), LLVMConstVector(pick, EXEC_LANES), "");
  return gen_same(g, lanes, LLVMBuildAdd(a->b, starts, LLVMConstVector(steps, EXEC_LANES), ""));
}

/* As `inside`, of both halves. */
static value halves_inside(const access *a, const halves *h) {
  generator *g = a->g;
  const native_layout *at = g->at;
  value record = access_record_of(a, gen_instr_address(g)), start = gen_field(g, g->i64, record, at->record_address),
        room = gen_field(g, g->i64, record, a->n->store ? at->record_writable : at->record_readable),
        bytes = gen_i64(g, (uint64_t)a->total * HALF);
  value last = LLVMBuildSub(a->b, room, bytes, ""), good = access_at_least(a, room, bytes);
  for (uint32_t n = 0; n < 2; n++)
    good = access_both(a, good, access_at_least(a, last, LLVMBuildSub(a->b, h->address[n], start, "")));
  if (a->total == 1) return good;
  value low = LLVMBuildAnd(a->b, LLVMBuildOr(a->b, h->address[0], h->address[1], ""), gen_i64(g, a->total - 1), "");
  return access_both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(g, 0), ""));
}

/* Lanes from HALF * n on. */
static value half_of(const access *a, value v, uint32_t n) {
  value pick[HALF];
  for (uint32_t l = 0; l < HALF; l++) pick[l] = gen_i32(a->g, n * HALF + l);
  return LLVMBuildShuffleVector(a->b, v, LLVMGetUndef(LLVMTypeOf(v)), LLVMConstVector(pick, HALF), "");
}

static value load_halves(const access *a, const halves *h) {
  generator *g = a->g;
  value parts[2], pick[EXEC_LANES];
  for (uint32_t n = 0; n < 2; n++)
    parts[n] = gen_load(g, LLVMVectorType(a->cell, HALF), access_pointer_to(a, h->address[n]), a->n->bytes);
  for (uint32_t l = 0; l < EXEC_LANES; l++) pick[l] = gen_i32(g, l);
  value all = LLVMBuildShuffleVector(a->b, parts[0], parts[1], LLVMConstVector(pick, EXEC_LANES), "");
  return access_extended(a, all, gen_vector_type(a->slot));
}

static bool two_rows_of_global(const access *a, value lanes) {
  halves h = halves_of(a, lanes);
  value data = a->n->store ? row_data(a, 0) : NULL, result = NULL; /* known on both ways */
  fork f = access_begin_fast(a, access_both(a, are_rows(a, lanes, &h), halves_inside(a, &h)), GEN_MOSTLY);
  /* in the order of the lanes: of two cells at one place the last one's stays */
  for (uint32_t n = 0; n < 2 && data; n++)
    gen_store(a->g, half_of(a, data, n), access_pointer_to(a, h.address[n]), a->n->bytes);
  if (!data) result = load_halves(a, &h);
  access_end_fast(a, f, &result, false);
  return true;
}

/* What is told of an access is told of a row. */
static bool row_of_global(const access *a, value lanes) {
  return a->g->watched || a->n->elements > 1 ? one_row_of_global(a, lanes) : two_rows_of_global(a, lanes);
}

/* ---- a row of some lanes ---- */

/* Of AVX-512: elsewhere masked stores are slow. Where lanes have parted for long, they are few, or their addresses are
 * no row. Nothing has to be told. */
static bool may_be_masked_row(const access *a, bool global) {
  const native_instr *n = a->n;
  return a->g->wide_vectors && (a->g->full || (a->g->masked && !a->g->rounds)) && !a->g->traced && !a->g->watched &&
         n->elements == 1 && n->bytes == n->slot_bytes && n->bytes >= 4 && access_has_gathers(a, global);
}

static value lane_number(const access *a, const char *count, bool from_above) {
  generator *g = a->g;
  value arguments[2] = {a->bits, LLVMConstInt(g->i1, 0, false)};
  value zeros = gen_intrinsic(g, count, &g->i32, 1, arguments, 2);
  if (from_above) zeros = LLVMBuildSub(a->b, gen_i32(g, EXEC_LANES - 1), zeros, "");
  return LLVMBuildAnd(a->b, zeros, gen_i32(g, EXEC_LANES - 1), ""); /* no lane: any number */
}

typedef struct masked_row {
  value first, last; /* i32: lanes */
  value met;         /* the address of lane `first`, or its offset in shared memory: i64 */
  value good;        /* are the lanes that access a row? */
} masked_row;

/* addresses: the same as `lanes`, in memory. */
static masked_row find_masked_row(const access *a, value lanes, value addresses, LLVMTypeRef type) {
  generator *g = a->g;
  masked_row r = {lane_number(a, "llvm.cttz", false), lane_number(a, "llvm.ctlz", true), NULL, NULL};
  value wide = LLVMBuildZExt(a->b, r.first, g->i64, ""), number = type == g->i32 ? r.first : wide;
  value cell = LLVMBuildMul(a->b, wide, gen_i64(g, type == g->i32 ? 4 : 8), "");
  value at = gen_field(g, type, LLVMBuildGEP2(a->b, g->i8, addresses, &cell, 1, ""), 0);
  value step = LLVMConstInt(type, a->total, false);
  value start = LLVMBuildSub(a->b, at, LLVMBuildMul(a->b, number, step, ""), "");
  value row = LLVMBuildAdd(a->b, gen_splat(g, start), access_ladder(g, type, a->total), "");
  value off = LLVMBuildAnd(a->b, gen_bits(g, LLVMBuildICmp(a->b, LLVMIntNE, lanes, row, "")), a->bits, "");
  r.good = LLVMBuildICmp(a->b, LLVMIntEQ, off, gen_i32(g, 0), "");
  r.good = access_both(a, r.good, LLVMBuildICmp(a->b, LLVMIntNE, a->bits, gen_i32(g, 0), ""));
  if (type == g->i32) at = LLVMBuildZExt(a->b, at, g->i64, "");
  r.met = LLVMBuildAdd(a->b, at, gen_i64(g, (uint64_t)a->n->immediate), "");
  return r;
}

/* Is what these lanes access, from `offset` on, in `room` bytes, and the first lane's cell aligned? */
static value masked_row_inside(const access *a, const masked_row *r, value offset, value room) {
  generator *g = a->g;
  value span = LLVMBuildZExt(a->b, LLVMBuildSub(a->b, r->last, r->first, ""), g->i64, "");
  span = LLVMBuildMul(a->b, LLVMBuildAdd(a->b, span, gen_i64(g, 1), ""), gen_i64(g, a->total), "");
  value good = access_both(a, r->good, LLVMBuildICmp(a->b, LLVMIntULT, offset, room, ""));
  good = access_both(a, good, access_at_least(a, LLVMBuildSub(a->b, room, offset, ""), span));
  value low = LLVMBuildAnd(a->b, r->met, gen_i64(g, a->total - 1), "");
  return access_both(a, good, LLVMBuildICmp(a->b, LLVMIntEQ, low, gen_i64(g, 0), ""));
}

/* p: where lane 0's cell would be. `kept`: what lanes that do not access have. Returns what is loaded. */
static value move_masked_row(const access *a, value p, value kept) {
  generator *g = a->g;
  LLVMTypeRef type = gen_vector_type(a->cell), pointer = LLVMPointerType(type, 0), types[2] = {type, pointer};
  value at = LLVMBuildBitCast(a->b, p, pointer, ""), mask = gen_lanes(g, a->bits), align = gen_i32(g, a->n->bytes);
  if (a->n->store) {
    value arguments[4] = {gen_vector(g, a->n->operands + 1), at, align, mask};
    return gen_intrinsic(g, "llvm.masked.store", types, 2, arguments, 4);
  }
  value arguments[4] = {at, align, mask, kept};
  return gen_intrinsic(g, "llvm.masked.load", types, 2, arguments, 4);
}

value access_room(const access *a, bool global, value met, value *offset) {
  generator *g = a->g;
  *offset = met;
  if (!global) return LLVMBuildZExt(a->b, gen_field(g, g->i32, g->warp, g->at->warp_shared_bytes), g->i64, "");
  value record = access_record_of(a, gen_instr_address(g));
  *offset = LLVMBuildSub(a->b, met, gen_field(g, g->i64, record, g->at->record_address), "");
  return gen_field(g, g->i64, record, a->n->store ? g->at->record_writable : g->at->record_readable);
}

/* What is stored; of loads what lanes whose guard is false keep. */
static value data_of(const access *a) {
  if (a->n->store) return gen_vector(a->g, a->n->operands + 1);
  return a->guard ? gen_vector(a->g, access_written(a, 0)) : LLVMGetUndef(gen_vector_type(a->slot));
}

/* Behind the fast way, which has loaded that. */
static void end_masked_row(const access *a, bool global, fork f, value lanes, value data, value loaded) {
  generator *g = a->g;
  const native_instr *n = a->n;
  if (global)
    LLVMBuildStore(a->b, LLVMBuildAdd(a->b, gen_read(g, g->i64, g->accesses), gen_i64(g, 1), ""), g->accesses);
  LLVMBasicBlockRef fast_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.slow);
  value slow = access_gather(a, global, lanes, data);
  LLVMBasicBlockRef slow_end = LLVMGetInsertBlock(a->b);
  LLVMBuildBr(a->b, f.on);
  LLVMPositionBuilderAtEnd(a->b, f.on);
  if (n->store) return;
  value phi = LLVMBuildPhi(a->b, LLVMTypeOf(slow), ""), from[2] = {loaded, slow};
  LLVMBasicBlockRef blocks[2] = {fast_end, slow_end};
  LLVMAddIncoming(phi, from, blocks, 2);
  gen_put(g, access_written(a, 0), NULL, phi);
}

/* Some lanes access consecutive cells in lane order; else their cells are gathered, or scattered. */
static bool masked_row_of(const access *a, bool global) {
  generator *g = a->g;
  value lanes = gen_vector(g, a->n->operands), addresses = access_addresses(a), data = data_of(a), offset;
  masked_row r = find_masked_row(a, lanes, addresses, a->n->wide ? g->i64 : g->i32);
  value room = access_room(a, global, r.met, &offset);
  fork f = access_begin_fast(a, masked_row_inside(a, &r, offset, room), GEN_MOSTLY);
  value before = LLVMBuildMul(a->b, LLVMBuildZExt(a->b, r.first, g->i64, ""), gen_i64(g, a->total), ""),
        base = LLVMBuildSub(a->b, r.met, before, "");
  value p = global ? access_pointer_to(a, base) : LLVMBuildGEP2(a->b, g->i8, access_shared_base(a), &base, 1, "");
  end_masked_row(a, global, f, lanes, data, move_masked_row(a, p, data));
  return true;
}

static bool gather(const access *a, bool global) {
  value loaded = access_gather(a, global, gen_vector(a->g, a->n->operands), data_of(a));
  if (!a->n->store) gen_put(a->g, access_written(a, 0), NULL, loaded);
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
  bool local = n->space == NATIVE_LOCAL;
  if (local ? !access_has_local(&a) : !global && n->space != NATIVE_SHARED) return false;
  value one = guarded || (n->store && !g->full) ? NULL : gen_scalar(g, n->operands);
  if (local && one && g->full) return access_local_rows(&a, one);
  /* without their records, or gathers under a mask */
  if (local && g->traced) return false;
  if (local && !g->wide_vectors && (!g->full || guarded)) return false;
  if (one && !local) return global ? one_global(&a, one) : access_one_shared(&a, one);
  if (local || !g->full || guarded) {
    a.guard = guard_of(&a);
    value running = g->full ? NULL : g->active;
    if (a.guard) a.bits = running ? LLVMBuildAnd(a.b, running, a.guard, "") : a.guard;
    else a.bits = running;
    if (!local && access_has_steps(&a, global)) return access_by_steps(&a, global);
    if (!local && may_be_masked_row(&a, global)) return masked_row_of(&a, global);
    if (!local && access_has_gathers(&a, global)) return gather(&a, global);
    return access_cells(&a, global);
  }
  if (access_has_steps(&a, global)) return access_by_steps(&a, global);
  if (global) return row_of_global(&a, gen_vector(g, n->operands));
  if (access_has_windows(g, n)) { /* which look at an address once for all of a block's accesses */
    value lanes = gen_vector(g, n->operands);
    if (g->plan->slot_of[n->operands] != NATIVE_NONE) g->slots[g->plan->slot_of[n->operands]].vector = lanes;
    return access_windows_of_shared(&a, lanes);
  }
  return access_row_of_shared(&a, gen_vector(g, n->operands));
}
