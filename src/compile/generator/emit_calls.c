/* SPDX-License-Identifier: Apache-2.0 */
/* What running code counts, and calls out of it.
 *
 * What is not yet counted in the warp stands in one structure on the stack, not in registers: there are many blocks,
 * and each would pass them to all others. Whatever looks at the warp's counters is called through a function of the
 * module that brings them up to date first, so that the many places that do so (nearly all of them on slow ways) are
 * one call each. */
#include "compile/generator/generate.h"

#include <stdio.h>

#include "exec/launch/native.h"

/* ---- what is not counted yet ---- */

enum { COUNT, SEGMENT, ACCESSES, BELOW, LANES, LANE_COUNT, DONE, DONE_THREADS, FIELDS };

static LLVMTypeRef pending_type(generator *g) {
  LLVMTypeRef types[FIELDS] = {g->i32, g->i32, g->i64, g->i64, g->i32, g->i32, g->i32, g->i64};
  return LLVMStructTypeInContext(g->context, types, FIELDS, false);
}

static value field_of(generator *g, value pending, unsigned field) {
  return LLVMBuildStructGEP2(g->b, pending_type(g), pending, field, "");
}

/* g->pending is known; the builder is where its fields' addresses may stand. */
static void find_fields(generator *g) {
  g->count = field_of(g, g->pending, COUNT);
  g->segment = field_of(g, g->pending, SEGMENT);
  g->accesses = field_of(g, g->pending, ACCESSES);
  g->below = field_of(g, g->pending, BELOW);
  g->lanes = field_of(g, g->pending, LANES);
  g->lane_count = field_of(g, g->pending, LANE_COUNT);
  g->done = field_of(g, g->pending, DONE);
  g->done_threads = field_of(g, g->pending, DONE_THREADS);
}

static void read_segment(generator *g) {
  LLVMBuildStore(g->b, gen_field(g, g->i32, g->warp, g->at->warp_segment), g->segment);
}

void gen_begin_counting(generator *g) {
  g->pending = LLVMBuildAlloca(g->b, pending_type(g), "pending");
  find_fields(g);
  LLVMBuildStore(g->b, gen_i32(g, 0), g->count);
  LLVMBuildStore(g->b, gen_i64(g, 0), g->accesses);
  LLVMBuildStore(g->b, gen_i32(g, 0), g->done);
  LLVMBuildStore(g->b, gen_i64(g, 0), g->done_threads);
  if (g->full) LLVMBuildStore(g->b, gen_i32(g, EXEC_LANES), g->lane_count);
  read_segment(g);
}

void gen_add_to(generator *g, uint32_t offset, LLVMTypeRef type, value v) {
  value at = gen_at(g, g->warp, offset);
  uint32_t align = type == g->i32 ? 4 : 8;
  gen_store(g, LLVMBuildAdd(g->b, gen_load(g, type, at, align), v, ""), at, align);
}

void gen_flush_counters(generator *g) {
  const native_layout *at = g->at;
  value count = gen_read(g, g->i32, g->count), lanes = gen_read(g, g->i32, g->lane_count);
  value threads =
      LLVMBuildMul(g->b, LLVMBuildZExt(g->b, count, g->i64, ""), LLVMBuildZExt(g->b, lanes, g->i64, ""), "");
  threads = LLVMBuildAdd(g->b, threads, gen_read(g, g->i64, g->done_threads), "");
  count = LLVMBuildAdd(g->b, count, gen_read(g, g->i32, g->done), "");
  value wide = LLVMBuildZExt(g->b, count, g->i64, "");
  /* both at once, as the interpreter's core_count does: its load of both would else wait for two stores */
  LLVMTypeRef two = LLVMVectorType(g->i64, 2);
  value both = LLVMBuildInsertElement(g->b, LLVMGetUndef(two), wide, gen_i32(g, 0), ""),
        cell = gen_at(g, g->warp, at->warp_executed);
  both = LLVMBuildInsertElement(g->b, both, threads, gen_i32(g, 1), "");
  gen_store(g, LLVMBuildAdd(g->b, gen_load(g, two, cell, 8), both, ""), cell, 8);
  gen_add_to(g, at->warp_budget, g->i32, LLVMBuildNeg(g->b, count, ""));
  gen_add_to(g, at->warp_accesses, g->i64, gen_read(g, g->i64, g->accesses));
  gen_store(g, gen_read(g, g->i32, g->segment), gen_at(g, g->warp, at->warp_segment), 4);
  LLVMBuildStore(g->b, gen_i32(g, 0), g->count);
  LLVMBuildStore(g->b, gen_i64(g, 0), g->accesses);
  LLVMBuildStore(g->b, gen_i32(g, 0), g->done);
  LLVMBuildStore(g->b, gen_i64(g, 0), g->done_threads);
}

void gen_count_part(generator *g, value count, value lanes) {
  value threads =
      LLVMBuildMul(g->b, LLVMBuildZExt(g->b, count, g->i64, ""), LLVMBuildZExt(g->b, lanes, g->i64, ""), "");
  value done = LLVMBuildAdd(g->b, gen_read(g, g->i32, g->done), count, "");
  LLVMBuildStore(g->b, done, g->done);
  done = LLVMBuildAdd(g->b, gen_read(g, g->i64, g->done_threads), threads, "");
  LLVMBuildStore(g->b, done, g->done_threads);
  LLVMBuildStore(g->b, gen_i32(g, 0), g->count);
}

/* ---- functions of the module ---- */

#define MAX_PARAMETERS 16 /* warp, api, pending, and what more there is */

typedef struct outside {           /* what such a function calls */
  uint32_t offset;                 /* of exec_native_api; or a handler: */
  bool handler, guarded, observes; /* guarded: the handler's lanes are not all that run: see exec_native_api */
  bool flush;                      /* nothing: the counters are to be right */
  LLVMTypeRef type, result;        /* NULL: none */
  uint32_t more;                   /* its parameters behind the warp */
} outside;

/* The handler of the instruction that is the parameter `instr`: form 1 if the warp's mask says so. */
static value handler_of(generator *g, value instr) {
  value run = gen_at(g, instr, g->at->instr_run);
  if (!g->full) {
    value some =
        LLVMBuildICmp(g->b, LLVMIntNE, gen_field(g, g->i32, g->warp, g->at->warp_mask), gen_i32(g, UINT32_MAX), "");
    value index = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, some, g->i64, ""), gen_i64(g, 3), "");
    run = LLVMBuildGEP2(g->b, g->i8, run, &index, 1, "");
  }
  return gen_load(g, LLVMPointerType(g->handler, 0), run, 8);
}

static void call_it(generator *g, value function, const void *context) {
  const outside *o = context;
  value arguments[MAX_PARAMETERS] = {g->warp};
  for (uint32_t n = 0; n < o->more; n++) arguments[n + 1] = LLVMGetParam(function, n + 3);
  if (!o->handler || o->observes) gen_flush_counters(g);
  if (o->flush) {
    LLVMBuildRetVoid(g->b);
    return;
  }
  value called = o->handler && !o->guarded ? handler_of(g, arguments[1])
                                           : gen_field(g, LLVMPointerType(o->type, 0), g->api, o->offset);
  value result = LLVMBuildCall2(g->b, o->type, called, arguments, o->more + 1, "");
  if (!o->handler || (o->observes && g->watched)) read_segment(g);
  if (o->result) LLVMBuildRet(g->b, result);
  else LLVMBuildRetVoid(g->b);
}

/* What belongs to the function under construction, while another one is. */
typedef struct function_scope {
  value function, warp, api, pending, count, segment, accesses, below, lanes, lane_count, done, done_threads;
  LLVMBasicBlockRef entry, here;
} function_scope;

/* A function (warp, api, pending, more...) is under construction from here on. */
static function_scope push_function(generator *g, value function) {
  function_scope outer = {
      g->function, g->warp,  g->api,        g->pending, g->count,        g->segment, g->accesses,
      g->below,    g->lanes, g->lane_count, g->done,    g->done_threads, g->entry,   LLVMGetInsertBlock(g->b)};
  g->function = function;
  LLVMSetLinkage(function, LLVMInternalLinkage);
  gen_set_attributes(g);
  g->entry = gen_block(g, "");
  LLVMPositionBuilderAtEnd(g->b, g->entry);
  g->warp = LLVMGetParam(function, 0);
  g->api = LLVMGetParam(function, 1);
  g->pending = LLVMGetParam(function, 2);
  find_fields(g);
  return outer;
}

static void pop_function(generator *g, const function_scope *outer) {
  g->function = outer->function;
  g->warp = outer->warp;
  g->api = outer->api;
  g->pending = outer->pending;
  g->count = outer->count;
  g->segment = outer->segment;
  g->accesses = outer->accesses;
  g->below = outer->below;
  g->lanes = outer->lanes;
  g->lane_count = outer->lane_count;
  g->done = outer->done;
  g->done_threads = outer->done_threads;
  g->entry = outer->entry;
  LLVMPositionBuilderAtEnd(g->b, outer->here);
}

static value make_outline(generator *g, const char *name, LLVMTypeRef type, gen_inside inside, const void *context) {
  value made = LLVMAddFunction(g->module, name, type);
  function_scope outer = push_function(g, made);
  inside(g, made, context);
  pop_function(g, &outer);
  return made;
}

value gen_call_outline(generator *g, const char *name, LLVMTypeRef result, value *more, uint32_t count,
                       gen_inside inside, const void *context) {
  value arguments[MAX_PARAMETERS] = {g->warp, g->api, g->pending};
  LLVMTypeRef types[MAX_PARAMETERS] = {g->pointer, g->pointer, LLVMTypeOf(g->pending)};
  for (uint32_t n = 0; n < count; n++) {
    arguments[n + 3] = more[n];
    types[n + 3] = LLVMTypeOf(more[n]);
  }
  LLVMTypeRef type = LLVMFunctionType(result ? result : LLVMVoidTypeInContext(g->context), types, count + 3, false);
  value function = LLVMGetNamedFunction(g->module, name);
  if (!function) function = make_outline(g, name, type, inside, context);
  return LLVMBuildCall2(g->b, type, function, arguments, count + 3, "");
}

value gen_call_api(generator *g, uint32_t offset, LLVMTypeRef result, value *more, uint32_t count) {
  char name[32];
  LLVMTypeRef types[MAX_PARAMETERS] = {g->pointer};
  for (uint32_t n = 0; n < count; n++) types[n + 1] = LLVMTypeOf(more[n]);
  outside o = {.offset = offset,
               .type = LLVMFunctionType(result ? result : LLVMVoidTypeInContext(g->context), types, count + 1, false),
               .result = result,
               .more = count};
  snprintf(name, sizeof name, "api_%u", offset);
  return gen_call_outline(g, name, result, more, count, call_it, &o);
}

void gen_call_flush(generator *g) {
  outside o = {.flush = true};
  gen_call_outline(g, "flush", NULL, NULL, 0, call_it, &o);
}

/* In a hammock: for the lanes that are there and whose guard is true. */
static void call_masked(generator *g, const native_instr *n, value instr) {
  LLVMTypeRef types[3] = {g->pointer, g->pointer, g->i32};
  outside o = {.offset = g->at->api_masked, .handler = true, .guarded = true, .observes = n->observes, .more = 2};
  o.type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), types, 3, false);
  value more[2] = {instr, gen_read(g, g->i32, g->lanes)};
  gen_call_outline(g, n->observes ? "masked_1" : "masked_0", NULL, more, 2, call_it, &o);
}

void gen_call_handler_of(generator *g, const native_instr *n, value instr) {
  value arguments[2] = {g->warp, instr};
  if (g->masked) {
    call_masked(g, n, instr);
    return;
  }
  if (!n->observes && g->full && n->flow != EXEC_FLOW_GUARDED) { /* nothing to do before it */
    LLVMBuildCall2(g->b, g->handler, handler_of(g, instr), arguments, 2, "");
    return;
  }
  outside o = {.offset = g->at->api_guarded,
               .handler = true,
               .guarded = n->flow == EXEC_FLOW_GUARDED,
               .observes = n->observes,
               .type = g->handler,
               .more = 1};
  char name[32];
  snprintf(name, sizeof name, "handler_%u_%u", o.guarded, o.observes);
  gen_call_outline(g, name, NULL, &instr, 1, call_it, &o);
}

void gen_call_handler(generator *g, const native_instr *n) {
  for (uint32_t r = 0; r < n->read_count; r++) gen_write_back(g, n->operands + r);
  gen_call_handler_of(g, n, gen_instr_address(g));
}
