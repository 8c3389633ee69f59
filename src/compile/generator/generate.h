/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the generator: a function under construction, and the values that its slots have at this point.
 *
 * Vectors of 32 lanes are LLVM vectors (<32 x i32>, <32 x i64>); LLVM splits them into what the processor has. A
 * predicate of all lanes is an i32, bit l for lane l, as in the frame. A value that is the same in all lanes is a
 * scalar (i32, i64, i1) for as long as no instruction needs a vector of it. Values that live in slots are integers;
 * floats are made where they are used.
 *
 * There are two bodies of each function (exec/launch/native.h), `full` and `any`; a request is for one of them. In
 * `full`, slots that the plan calls uniform pass from block to block as scalars; all other values pass through the
 * frame. In `any` everything does, under the mask of the active lanes, which may change between two blocks
 * (emit_split.c). */
#ifndef FF_COMPILE_GENERATE_H
#define FF_COMPILE_GENERATE_H

#include <llvm-c/Core.h>

#include "base/memory.h"
#include "compile/generator/emit_plan.h"

typedef LLVMValueRef value;

typedef struct spill_use { /* the address of a spill slot */
  value place;
  uint32_t index;
} spill_use;

/* A value that is linear in the lane's number: in lane l
 *
 *     base + l * step  [ + factor * extended to 64 bits(narrow + l * narrow_step) ]
 *
 * in the slot's width, where everything wraps. The sum of the steps is what it grows by from lane to lane, unless the
 * number of 32 bits wraps between two of them. |narrow_step| <= PLAN_STEP_MOST, as the sum of the steps is. */
typedef struct gen_affine {
  value base; /* NULL: it is not known to be linear */
  int64_t step;
  value narrow; /* i32; NULL: there is no such part */
  int64_t narrow_step, factor;
  bool is_signed;
} gen_affine;

typedef struct gen_one { /* a slot that passes from block to block as one number */
  uint32_t slot;
  int32_t step; /* 0: the same in all lanes; else lane 0's, and so much more in each lane */
} gen_one;

typedef struct gen_slot {
  value scalar, vector; /* NULL: not known so */
  gen_affine affine;    /* where neither of these is, or beside a vector */
  /* one of the two before its NaNs were made canonical: for instructions that only ask whether it is one. NULL: there
   * is no such */
  value raw;
  bool stale; /* the frame does not have it yet */
} gen_slot;

typedef struct generator {
  const native_request *request;
  const native_layout *at;
  const uint32_t *waits; /* the request's */
  bool traced, watched;  /* the access stream is wanted; it is, or uses are declared */
  bool rows;             /* NATIVE_ROWS */
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMTypeRef i1, i8, i32, i64, f32, f64, pointer, handler;
  bool wide_vectors; /* the form for AVX-512, */
  bool emulated;     /* with another processor's instructions (native_request.wide) */
  /* the function */
  const plan *plan;
  bool has_sfu, has_fp64;
  bool full;
  value function, warp, api, frame, pool, code, active, mask, starting;
  value pending;                  /* on the stack (emit_calls.c); its fields: */
  value count, segment, accesses; /* what is not yet counted in the warp */
  value lanes, lane_count, below; /* of `any`: active, active_count, limit */
  /* of parts of hammocks, which run different lanes: as count, and lanes times that */
  value done, done_threads;
  value spill_slots;                 /* of `full`: on the stack (uniform.c) */
  FF_VEC(spill_use) spill_uses;      /* what is computed from it */
  uint32_t *spill_slot, spill_count; /* by slot: which of the spill_slots is its; 0: none yet */
  value *kept;                       /* by slot: its variable, if an innermost loop needs it */
  /* variables: the instruction to go on at, or where lanes part or meet; those that branch there */
  value where, taken;
  LLVMBasicBlockRef parting, meeting; /* these happen here, for all places; meeting: of `any` */
  LLVMBasicBlockRef dispatch;         /* of `any`: to the block at `where`, or away */
  bool masked;           /* in a hammock: `active` is a part of the running lanes (hammock.c); then `full` is false */
  bool rounds;           /* which is a loop */
  uint32_t hammock_room; /* instructions that may still be made once more for hammocks */
  value leave_pc, leave_how; /* variables: where the interpreter goes on, EXEC_NATIVE_* */
  LLVMBasicBlockRef entry, *edges, *bodies, leaving;
  gen_slot *slots; /* at this point of the block */
  uint32_t now;    /* the instruction */
  /* of shared addresses (shared.c) */
  struct gen_shape {
    value address, base[4], place[4], index[4], largest, good, passes;
    int64_t furthest;
    uint32_t words; /* of a lane */
    uint32_t users; /* accesses of the block with this address */
  } shapes[8];
  uint32_t shape_count;
} generator;

/* Adds the function native_<number>, the body that the request asks for, to the module. */
void gen_function(generator *g, const plan *p, const native_function *function, uint32_t number);

/* ---- building (generate.c) ---- */
LLVMTypeRef gen_vector_type(LLVMTypeRef of);
value gen_i32(generator *g, uint32_t v);
value gen_i64(generator *g, uint64_t v);
value gen_splat(generator *g, value scalar);
value gen_at(generator *g, value base, uint64_t offset); /* base + offset bytes */
value gen_load(generator *g, LLVMTypeRef type, value at, uint32_t align);
void gen_store(generator *g, value v, value at, uint32_t align);
value gen_field(generator *g, LLVMTypeRef type, value base, uint32_t offset); /* naturally aligned */
value gen_intrinsic(generator *g, const char *name, LLVMTypeRef *types, uint32_t type_count, value *arguments,
                    uint32_t count);
value gen_lanes(generator *g, value bits);      /* i32 -> <32 x i1> */
value gen_bits(generator *g, value lanes);      /* <32 x i1> -> i32 */
value gen_same(generator *g, value x, value y); /* vectors of integers: are they equal in all lanes? */
value gen_any_nan(generator *g, value v);       /* of f64: is one of them a NaN? */
void gen_set_attributes(generator *g);          /* of g->function */
LLVMBasicBlockRef gen_block(generator *g, const char *name);
enum { GEN_MOSTLY = 2, GEN_NEARLY_ALWAYS = 2000 };
/* A branch that goes to `usual` so many times as often as to the other: LLVM keeps what calls on the other way would
 * overwrite in registers, and saves it there only. */
void gen_branch(generator *g, value condition, LLVMBasicBlockRef yes, LLVMBasicBlockRef no, LLVMBasicBlockRef usual,
                uint32_t times);
/* The instruction under generation. */
value gen_instr_address(generator *g);

/* ---- values of operands: k is an index into the request's operands ---- */
value gen_scalar(generator *g, uint32_t k); /* NULL: not the same in all lanes */
value gen_vector(generator *g, uint32_t k);
value gen_slot_vector(generator *g, uint32_t slot);
void gen_put(generator *g, uint32_t k, value scalar, value vector); /* one of the two */
/* What gen_put has just put, as gen_slot.raw; and that of an operand, if `vector` says what it is; else NULL. */
void gen_put_raw(generator *g, uint32_t k, value raw);
value gen_raw(generator *g, uint32_t k, bool vector);
/* Puts what the frame does not have yet of this operand there, without noting that it has (for a side path). */
void gen_write_back(generator *g, uint32_t k);
value gen_frame_vector(generator *g, uint32_t slot); /* what the frame has */
/* The scalar of a slot that is the same by the plan in all lanes, though `known` may be a vector or nothing; of one
 * that is linear, lane 0's. */
value gen_one_of_all(generator *g, uint32_t slot, const gen_slot *known);

/* ---- values that are linear in the lane's number (affine.c) ---- */
const gen_affine *gen_affine_operand(const generator *g, uint32_t k); /* NULL: it is none */
void gen_put_affine(generator *g, uint32_t k, gen_affine a);
bool gen_affine_form(generator *g, const native_instr *n); /* false: its result is not linear, or not known so */
value gen_affine_vector(generator *g, const gen_affine *a);
int64_t gen_affine_step(const gen_affine *a); /* from lane to lane, */
/* i1: if that is so between these lanes (i32, low <= high); NULL: it is. */
value gen_affine_holds(generator *g, const gen_affine *a, value low, value high);
value gen_affine_at(generator *g, const gen_affine *a, value lane); /* in this lane (i32) */
/* At the end of a block of `full`, behind which one of these blocks comes: what they take for linear is that from here
 * on; if it is not, the interpreter goes on at pc, where `live` is live. */
void gen_settle_steps(generator *g, const uint32_t *blocks, uint32_t count, const uint64_t *live, uint32_t pc);

/* ---- values that are one number for all lanes, of `full`: the same in each, or linear (uniform.c) ---- */
/* In the entry block, and when all is made. */
void gen_begin_spill_slots(generator *g);
void gen_end_spill_slots(generator *g);
value gen_uniform(generator *g, uint32_t slot);
void gen_put_uniform(generator *g, uint32_t slot, value scalar);
/* These slots' scalars go to the frame. put: the block's end has put them. */
void gen_spread(generator *g, const gen_one *slots, uint32_t count, bool put);
/* They come from there. Returns whether they are one number each. */
value gen_collect(generator *g, const gen_one *slots, uint32_t count);
/* Over a barrier: they stay in the warp (core_warp.kept), EXEC_KEPT of them at most, and come from there. */
void gen_keep(generator *g, const gen_one *slots, uint32_t count);
void gen_take_kept(generator *g, const gen_one *slots, uint32_t count);

void gen_write_slot(generator *g, uint32_t slot); /* to the frame, for the active lanes */
/* Of what the frame does not have yet: all that is live goes there (NULL: all). put: the block's end has put its
 * scalars. */
void gen_write_stale(generator *g, const uint64_t *live, bool put);
LLVMTypeRef gen_scalar_type(generator *g, uint32_t bytes);

/* ---- branches (branch.c) ---- */
void gen_go_to(generator *g, uint32_t instr);
void gen_take(generator *g, const native_instr *n); /* by all lanes: counts, and gives way if the turn is over */
/* i32: lanes whose guard is true, among them such that do not run */
value gen_guard_bits(generator *g, const native_instr *n);
void gen_branch_if(generator *g, const native_instr *n, const plan_block *block);
void gen_branch_indexed(generator *g, const native_instr *n, const plan_block *block);

/* ---- short regions that some lanes run (hammock.c) ---- */
/* The branch at the end of block b parts lanes, and everything that is live is in the frame or in scalars: executes the
 * region up to where all ways meet under masks, `taken` and the others, and goes on there. False: what comes next is
 * for when that cannot be. */
bool gen_hammock(generator *g, uint32_t b, value taken);

/* ---- which split runs (emit_split.c) ---- */
/* In the entry block, and when all other blocks are made. */
void gen_begin_splits(generator *g);
void gen_end_splits(generator *g);
/* This branch is one that only the lanes `taken` take; what the blocks behind it need is in the frame. `any` goes on
 * with the lanes that come first, code for full warps is left. Ends the LLVM block. */
void gen_part(generator *g, value taken);
/* The same of a brx.idx that lanes take to different targets, or to none: its index is in the frame, too. */
void gen_part_indexed(generator *g);
/* Of `any`, at the beginning of a block where others wait, or that is not before all of them. Ends the LLVM block. */
void gen_meet(generator *g);
/* The switch to the block that begins at the instruction to go on at; its cases are added by the caller. none: there is
 * no such block. */
value gen_dispatch(generator *g, LLVMBasicBlockRef none);

/* ---- the access stream (emit_stream.c) ---- */
/* Instructions up to PTX instruction `end` are done. Returns how many of them are still to be counted in the warp. */
value gen_issue(generator *g, uint32_t end);
/* Before an instruction. */
void gen_mark(generator *g, const native_instr *n);
void gen_wait(generator *g, const native_instr *n);

/* ---- counters, and calls that look at them (emit_calls.c) ---- */
/* In the entry block. */
void gen_begin_counting(generator *g);
void gen_flush_counters(generator *g);
void gen_count_part(generator *g, value count, value lanes); /* i32: so many instructions, by so many lanes */
void gen_call_flush(generator *g);                           /* the same, as a call */
void gen_add_to(generator *g, uint32_t offset, LLVMTypeRef type, value v); /* a counter of the warp */
/* Calls one of exec_native_api, with the warp's counters right, and reads them again. more: arguments behind the warp;
 * NULL: no result. */
value gen_call_api(generator *g, uint32_t offset, LLVMTypeRef result, value *more, uint32_t count);
/* The handler on a side path: what it reads is written to the frame; w->accesses is right before and after it. */
void gen_call_handler(generator *g, const native_instr *n);
void gen_call_handler_of(generator *g, const native_instr *n, value instr); /* without the frame; instr: its address */
/* Calls a function (warp, api, pending, more...) of the module, for code that many places need. It is made when its
 * name is first called: `inside` builds it, with g's warp, api and counters being the function's; only those, the frame
 * and the code are not known there. */
typedef void (*gen_inside)(generator *g, value function, const void *context);
value gen_call_outline(generator *g, const char *name, LLVMTypeRef result, value *more, uint32_t count,
                       gen_inside inside, const void *context);

/* ---- instructions ---- */
void gen_handler(generator *g, const native_instr *n);
/* What it writes is in the frame, and nothing else is known of it. */
void gen_written(generator *g, const native_instr *n);
void gen_compute(generator *g, const native_instr *n); /* everything but the end of a block */
/* If `condition`, everything that is live goes to the frame (and operand `also`, if it is not NATIVE_NONE) and the
 * interpreter goes on at pc; goes on in a new block. */
void gen_leave_if(generator *g, value condition, uint32_t pc, uint32_t how, const uint64_t *live, uint32_t also);
/* Unless `good`, the same at pc, of what the block's end has not put yet; behind a barrier at pc all is tested. */
void gen_leave_unless(generator *g, value good, uint32_t pc, const uint64_t *live);
/* A variable of the function: LLVM makes registers of them. */
value gen_variable(generator *g, LLVMTypeRef type);
value gen_in_memory(generator *g, value v); /* a variable with this vector: its address */
value gen_read(generator *g, LLVMTypeRef type, value variable);
bool gen_form(generator *g, const native_instr *n);   /* forms.c; false: not in this shape, take the handler */
bool gen_access(generator *g, const native_instr *n); /* emit_memory.c; the same */

#endif
