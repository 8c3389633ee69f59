/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of loads and stores: one access under construction, and what emit_memory.c, shared.c, cells.c, gathers.c
 * and local.c make for each other.
 *
 * A check here is never weaker than the handler's (exec/memory/access.isa.c); where it fails, the
 * handler does the whole access, and counts it. */
#ifndef FF_COMPILE_ACCESS_H
#define FF_COMPILE_ACCESS_H

#include "compile/generator/generate.h"
#include "exec/core.h"

typedef struct access {
  generator *g;
  LLVMBuilderRef b;
  const native_instr *n;
  uint32_t total;         /* bytes of a lane */
  LLVMTypeRef cell, slot; /* one element in memory, in its register */
  value guard;            /* i32: lanes whose guard is true; NULL: there is no guard */
  value bits;             /* i32: lanes that access; NULL: all of a full warp */
} access;

/* ---- emit_memory.c ---- */
typedef struct fork {
  LLVMBasicBlockRef fast, slow, on;
} fork;
value access_both(const access *a, value x, value y);
value access_at_least(const access *a, value x, value y);
value access_extended(const access *a, value v, LLVMTypeRef slot);
uint32_t access_written(const access *a, uint32_t element);
fork access_begin_fast(const access *a, value good, uint32_t times); /* as often as not: gen_branch */
void access_end_fast(const access *a, fork f, const value *results, bool scalar);
void access_tell(const access *a, uint32_t api, value address);
value access_record_of(const access *a, value instr); /* the allocation that the instruction met last */
value access_pointer_to(const access *a, value address);
/* How much there is from where on: of the allocation that the instruction met last, or of shared memory. *offset: where
 * in it `met` is. */
value access_room(const access *a, bool global, value met, value *offset);
value access_ladder(generator *g, LLVMTypeRef type, uint64_t step); /* 0, step, 2 * step ... */
value access_is_row(const access *a, value lanes, value first, LLVMTypeRef type, uint64_t step);
void access_load_row(const access *a, value p, value *results);
void access_store_row(const access *a, value p);

/* ---- shared.c ---- */
void access_tell_passes(const access *a, value more);
void access_tell_passes_of(const access *a, value instr, value more);
value access_shared_base(const access *a);
value access_narrow(const access *a, value lanes, value *beyond);
value access_ask_conflicts(const access *a, value lanes);
bool access_has_windows(const generator *g, const native_instr *n); /* may it be done window by window? */
bool access_one_shared(const access *a, value base);
bool access_windows_of_shared(const access *a, value lanes);
bool access_row_of_shared(const access *a, value lanes);

/* ---- cells.c ---- */
/* Of the lanes a->bits; false: not of this kind. */
bool access_cells(const access *a, bool global);
/* The same in two steps: is it of such a kind? And the call alone, after which results are in the frame. Faster: than
 * the handler is for a full warp. */
bool access_cells_are_faster(const access *a, bool global);
bool access_has_cells(const access *a, bool global);
void access_call_cells(const access *a, bool global, value addresses);
/* Where all lanes' addresses are in memory: in the frame, or put on the stack. */
value access_addresses(const access *a);
value access_place(generator *g, uint32_t k); /* of operand k, in the frame or the pool */
/* The parameters of the functions that do it, behind those that all such functions have: for the addresses, and for
 * each element its row; where they are, and their places in the frame. */
enum { CELLS_INSTR = 3, CELLS_BITS, CELLS_IMMEDIATE, CELLS_ADDRESSES, CELLS_ADDRESSES_PLACE, CELLS_ROWS };
value access_row_of(value function, uint32_t element);
/* i1: is no lane of `bad` (<32 x i1>) among those that access? */
value access_none_of(const access *a, value bad);
value access_any_of(const access *a, value x, value y);
value access_misaligned(const access *a, value lanes, LLVMTypeRef type);
/* i1: do so many lanes access the cell behind the one that the lane before accesses that there are rows to look for? */
value access_has_rows(const access *a, value offset);
/* Behind the fast way: makes the slow one, and returns. */
void access_end_function(const access *a, value function, fork f, bool global);

/* ---- gathers.c ---- */
/* Is it, of the lanes a->bits, of a kind that is done by gathers and scatters? */
bool access_has_gathers(const access *a, bool global);
/* addresses: a vector. data: what is stored; of loads what lanes that do not access keep, which matters if there is a
 * guard. Returns the register, of loads. */
value access_gather(const access *a, bool global, value addresses, value data);

/* Cells of one or two bytes at base + offset (<32 x i32>), none of which is negative. */
value access_gather_narrow(const access *a, value base, value offset);

/* ---- steps.c ---- */
/* Are its addresses linear in the lane's number by a step with which that can be done here? */
bool access_has_steps(const access *a, bool global);
bool access_by_steps(const access *a, bool global);

/* ---- local.c ---- */
bool access_has_local(const access *a);                                      /* is it of a kind that is done here? */
void access_local_inside(generator *g, value function, const void *context); /* by access_call_cells: any lanes */
/* One offset for all lanes of a full warp, known to be that by the plan. */
bool access_local_rows(const access *a, value base);

#endif
