/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a kernel's body into a loop over virtual blocks.
 *
 *         block 0: set the other counter to 0; leave if %smid is outside of the range
 *         thread 0: index = atomic add to the counter
 *   TAKE: thread 0: slot[turn] = the index's coordinates, and whether it is one of the grid's
 *   MEET: barrier; all read the slot; leave if there are no more; the other slot is next
 *         thread 0: index = atomic add to the counter, which has its answer by the end of the body
 *   BODY: ... exits become branches to NEXT ...
 *   NEXT: branch to TAKE
 *
 * A block that takes an index ahead of time still runs them in order: the lowest index that is not done is being
 * run, so that blocks which wait for blocks of lower index go on.
 *
 * One barrier a round suffices with two slots: a slot is written again only after a barrier that all threads pass
 * behind reading it. What the loop needs of the parameters is read again each time: registers held through the body
 * would cost blocks that fit (on a V100 four of them made a matrix product 27 % slower). The barrier also parts two
 * virtual blocks' uses of shared memory.
 *
 * Threads that leave early. In NAME they are not waited for: a barrier of the whole block is complete when all threads
 * that have not exited are there. Here they stand at MEET, so the body's barriers become reductions, `barrier.red.or
 * more, n, true`, and MEET is `barrier.red.or more, n, false` with the same number, again and again while `more` holds:
 * those that left arrive with the others at every barrier, and MEET is over when all have left. (With bar.red in the
 * body each barrier becomes two that count: one says how many are still in the body, one does the reduction.)
 *
 * Lanes that leave early. NAME's shfl.sync and the like do not wait for lanes that have exited. Where some lanes of a
 * warp leave for good, a vote among the lanes that are left says which stay, and the membermasks that follow are cut to
 * those. */
#include "ptx/rewrite/persistent.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/rewrite/grid_copy.h"
#include "ptx/rewrite/persistent_facts.h"
#include "ptx/rewrite/window.h"

enum { LABEL_TAKE, LABEL_WIDE, LABEL_STORE, LABEL_MEET, LABEL_BODY, LABEL_NEXT };

static const ptx_grid_names names = {"__persistent",
                                     {"persistent_block_x", "persistent_block_y", "persistent_block_z",
                                      "persistent_grid_x", "persistent_grid_y", "persistent_grid_z"},
                                     {"%persistent_block_x", "%persistent_block_y", "%persistent_block_z",
                                      "%persistent_grid_x", "%persistent_grid_y", "%persistent_grid_z"},
                                     {"$persistent_take", "$persistent_wide", "$persistent_store", "$persistent_meet",
                                      "$persistent_body", "$persistent_next"}};

/* The registers that a kernel gets besides the grid's six. The virtual GPU recognises a queue by the name PULL. */
typedef enum extra {
  PULL,
  QUEUE,
  TOTAL,
  QUOTIENT,
  SIDE,
  SLOT,
  X,
  Y,
  Z,
  FLAG,
  ROWS,
  LEADER,
  MORE,
  TRUE,
  LANES,
  MASK,
  COUNT,
  SUM,
  EXTRAS
} extra;
static const ptx_grid_register extras[EXTRAS] = {
    {"%farfault_pull", PTX_U64},       {"%persistent_queue", PTX_U64}, {"%persistent_total", PTX_U64},
    {"%persistent_quotient", PTX_U64}, {"%persistent_side", PTX_U64},  {"%persistent_slot", PTX_U32},
    {"%persistent_x", PTX_U32},        {"%persistent_y", PTX_U32},     {"%persistent_z", PTX_U32},
    {"%persistent_flag", PTX_U32},     {"%persistent_rows", PTX_U32},  {"%persistent_leader", PTX_PRED},
    {"%persistent_more", PTX_PRED},    {"%persistent_true", PTX_PRED}, {"%persistent_lanes", PTX_B32},
    {"%persistent_mask", PTX_B32},     {"%persistent_count", PTX_U32}, {"%persistent_sum", PTX_U32}};

/* The parameters, as in ptx_persistent_params. */
typedef enum param { P_QUEUE, P_FIRST, P_SMS, P_GRID_X, P_GRID_Y, P_GRID_Z, P_TURN, PARAMS } param;
static const char *const param_names[PARAMS] = {"persistent_queue",  "persistent_sm_first", "persistent_sm_count",
                                                "persistent_grid_x", "persistent_grid_y",   "persistent_grid_z",
                                                "persistent_turn"};
_Static_assert(sizeof(ptx_persistent_params) == 32 && offsetof(ptx_persistent_params, turn) == 28,
               "as the parameters are declared");

enum { SLOT_BYTES = 16, SLOTS_BYTES = 2 * SLOT_BYTES, SLOTS_ALIGN = 32, SHARED_MAX = 48 << 10 };

typedef struct writer { /* of one kernel */
  ptx_grid_copy c;
  const ptx_persistent_facts *facts;
  const ptx_persistent_kernel *kernel;
  ptx_var *params, *slots;
  bool voltage; /* threads of a warp may arrive at a barrier one by one (sm_70, PTX 6.0) */
} writer;

/* ---- operands ---- */

static uint32_t reg_of(const writer *w, extra which) { return w->c.first_reg + PTX_GRID_WORDS + which; }
#define R(which) ptx_build_reg(reg_of(w, which))
#define GRID(word) ptx_build_reg(w->c.first_reg + (word))
#define INT(n) ptx_build_int((uint64_t)(n))
#define ADD(opcode, ...) PTX_GRID_ADD(&w->c, opcode, __VA_ARGS__)

static ptx_instr *guarded(ptx_instr *instr, uint32_t predicate, bool negated) {
  instr->guard = predicate;
  instr->guard_negated = negated;
  return instr;
}

static void load_param(writer *w, const char *opcode, ptx_operand to, param which) {
  ADD(opcode, to, ptx_build_at_symbol(&w->params[which].symbol));
}

static ptx_operand slot_vector(writer *w, ptx_operand x, ptx_operand y, ptx_operand z, ptx_operand flag) {
  return ptx_build_list(&w->c.m->arena, PTX_OPERAND_VECTOR, (const ptx_operand[]){x, y, z, flag}, 4);
}

static void branch(writer *w, uint32_t label) { ADD("bra", ptx_grid_label(&w->c, label)); }

static void branch_if(writer *w, extra predicate, bool negated, uint32_t label) {
  guarded(ADD("bra", ptx_grid_label(&w->c, label)), reg_of(w, predicate), negated);
}

/* QUEUE = the address of counter `turn`, or of the other one. */
static void counter_address(writer *w, bool other) {
  load_param(w, "ld.param.u64", R(QUEUE), P_QUEUE);
  load_param(w, "ld.param.u32", R(X), P_TURN);
  if (other) ADD("xor.b32", R(X), R(X), INT(1));
  ADD("mul.wide.u32", R(TOTAL), R(X), INT(sizeof(uint64_t)));
  ADD("add.s64", R(QUEUE), R(QUEUE), R(TOTAL));
}

/* ---- before the loop ---- */

static void or_sregs(writer *w, extra to, ptx_sreg first) { /* .x | .y | .z */
  ADD("mov.u32", R(to), ptx_build_sreg(first));
  for (int d = 1; d < 3; d++) {
    ADD("mov.u32", R(FLAG), ptx_build_sreg((ptx_sreg)(first + d)));
    ADD("or.b32", R(to), R(to), R(FLAG));
  }
}

static void write_start(writer *w) {
  or_sregs(w, X, PTX_SREG_TID_X);
  ADD("setp.eq.u32", R(LEADER), R(X), INT(0));
  or_sregs(w, Y, PTX_SREG_CTAID_X);
  ADD("or.b32", R(Y), R(Y), R(X));
  ADD("setp.eq.u32", R(MORE), R(Y), INT(0));
  counter_address(w, true);
  guarded(ADD("st.global.u64", ptx_build_at_reg(reg_of(w, QUEUE)), INT(0)), reg_of(w, MORE), false);
  ADD("mov.u32", R(X), ptx_build_sreg(PTX_SREG_SMID));
  load_param(w, "ld.param.u32", R(Y), P_FIRST);
  load_param(w, "ld.param.u32", R(Z), P_SMS);
  ADD("sub.u32", R(X), R(X), R(Y));
  ADD("setp.ge.u32", R(MORE), R(X), R(Z));
  guarded(ptx_grid_add(&w->c, "exit", NULL, 0), reg_of(w, MORE), false);
  ADD("mov.u32", R(SLOT), ptx_build_symbol(&w->slots->symbol));
  if (w->facts->drains) ADD("setp.eq.u32", R(TRUE), R(SLOT), R(SLOT));
}

/* ---- the queue ---- */

/* PULL in a grid of x * y * z, whose rows are many, to X Y Z: in 32 bits if they suffice. */
static void write_coordinates(writer *w) {
  ADD("setp.le.u64", R(MORE), R(TOTAL), INT(UINT32_MAX));
  branch_if(w, MORE, true, LABEL_WIDE);
  ADD("div.u32", R(ROWS), R(X), GRID(3));
  ADD("rem.u32", R(X), R(X), GRID(3));
  ADD("rem.u32", R(Y), R(ROWS), GRID(4));
  ADD("div.u32", R(Z), R(ROWS), GRID(4));
  branch(w, LABEL_STORE);
  ptx_grid_label_here(&w->c, LABEL_WIDE);
  ADD("cvt.u64.u32", R(SIDE), GRID(3));
  ADD("div.u64", R(QUOTIENT), R(PULL), R(SIDE));
  ADD("rem.u64", R(PULL), R(PULL), R(SIDE));
  ADD("cvt.u32.u64", R(X), R(PULL));
  ADD("cvt.u64.u32", R(SIDE), GRID(4));
  ADD("rem.u64", R(PULL), R(QUOTIENT), R(SIDE));
  ADD("cvt.u32.u64", R(Y), R(PULL));
  ADD("div.u64", R(QUOTIENT), R(QUOTIENT), R(SIDE));
  ADD("cvt.u32.u64", R(Z), R(QUOTIENT));
}

/* Thread 0 takes an index; the others go on at once. */
static void write_pull(writer *w, uint32_t others) {
  branch_if(w, LEADER, true, others);
  counter_address(w, false);
  ADD("atom.global.add.u64", R(PULL), ptx_build_at_reg(reg_of(w, QUEUE)), INT(1));
}

static void write_take(writer *w) {
  ptx_grid_label_here(&w->c, LABEL_TAKE);
  branch_if(w, LEADER, true, LABEL_MEET);
  for (uint32_t d = 0; d < 3; d++) load_param(w, "ld.param.u32", GRID(3 + d), (param)(P_GRID_X + d));
  ADD("mul.lo.u32", R(ROWS), GRID(4), GRID(5));
  ADD("mul.wide.u32", R(TOTAL), R(ROWS), GRID(3));
  ADD("setp.lt.u64", R(MORE), R(PULL), R(TOTAL));
  ADD("selp.u32", R(FLAG), INT(1), INT(0), R(MORE));
  ADD("cvt.u32.u64", R(X), R(PULL));
  ADD("mov.u32", R(Y), INT(0));
  ADD("mov.u32", R(Z), INT(0));
  ADD("setp.eq.u32", R(MORE), R(ROWS), INT(1));
  branch_if(w, MORE, false, LABEL_STORE);
  write_coordinates(w);
  ptx_grid_label_here(&w->c, LABEL_STORE);
  ADD("st.shared.v4.u32", ptx_build_at_reg(reg_of(w, SLOT)), slot_vector(w, R(X), R(Y), R(Z), R(FLAG)));
}

/* The barrier between two virtual blocks. */
static void write_barrier(writer *w) {
  const ptx_operand number = INT(w->facts->barrier);
  if (!w->facts->drains) {
    ADD(w->voltage ? "barrier.sync" : "bar.sync", number);
    return;
  }
  ptx_operand none = ptx_build_not(reg_of(w, TRUE));
  if (w->facts->reduces) {
    ADD("barrier.red.popc.u32", R(COUNT), number, none);
    ADD("setp.ne.u32", R(MORE), R(COUNT), INT(0));
    guarded(ADD("barrier.red.popc.u32", R(SUM), number, none), reg_of(w, MORE), false);
  } else {
    ADD("barrier.red.or.pred", R(MORE), number, none);
  }
  branch_if(w, MORE, false, LABEL_MEET);
}

static void write_meet(writer *w, const bool used[3]) {
  ptx_grid_label_here(&w->c, LABEL_MEET);
  write_barrier(w);
  ADD("ld.shared.v4.u32", slot_vector(w, GRID(0), GRID(1), GRID(2), R(FLAG)), ptx_build_at_reg(reg_of(w, SLOT)));
  ADD("xor.b32", R(SLOT), R(SLOT), INT(SLOT_BYTES));
  ADD("setp.eq.u32", R(MORE), R(FLAG), INT(0));
  guarded(ptx_grid_add(&w->c, "exit", NULL, 0), reg_of(w, MORE), false);
  for (uint32_t d = 0; d < 3; d++)
    if (used[d]) load_param(w, "ld.param.u32", GRID(3 + d), (param)(P_GRID_X + d));
  if (w->facts->masks) ADD("mov.b32", R(LANES), INT(UINT32_MAX));
  write_pull(w, LABEL_BODY);
  ptx_grid_label_here(&w->c, LABEL_BODY);
}

/* ---- the body ---- */

static void same_guard(ptx_instr *made, const ptx_instr *from) {
  made->guard = from->guard;
  made->guard_negated = from->guard_negated;
}

static void write_exit(writer *w, const ptx_instr *from) {
  same_guard(ADD("bra", ptx_grid_label(&w->c, LABEL_NEXT)), from);
}

/* Which of the lanes that are left stay: those whose predicate makes them. */
static void write_ballot(writer *w, const ptx_instr *from, bool taken) {
  ptx_operand stays = ptx_build_reg(from->guard);
  stays.negated = taken == from->guard_negated; /* taken by those whose guard holds */
  ADD("vote.sync.ballot.b32", R(LANES), stays, R(LANES));
}

static void write_masked(writer *w, const ptx_instr *from) {
  uint32_t at = ptx_membermask(from);
  ADD("and.b32", R(MASK), R(LANES), from->operands[at]);
  ptx_grid_instr(&w->c, from)->operands[at] = R(MASK);
}

/* bar.red.op d, a, c  as two barriers that count. */
static void write_reduction(writer *w, const ptx_instr *from, ptx_operand number) {
  bool popc = ptx_has(from, PTX_MOD_POPC), and = ptx_has(from, PTX_MOD_AND);
  ptx_operand to = from->operands[0], what = from->operands[2];
  same_guard(ADD("barrier.red.popc.u32", R(COUNT), number, R(TRUE)), from);
  same_guard(ADD("barrier.red.popc.u32", popc ? to : R(SUM), number, what), from);
  if (!popc) same_guard(ADD(and? "setp.eq.u32" : "setp.ne.u32", to, R(SUM), and? R(COUNT) : INT(0)), from);
}

/* A barrier of the whole block, at which those that left arrive too. All such barriers get one number: at a time only
 * one of them can be waited at by all. */
static void write_body_barrier(writer *w, const ptx_instr *from) {
  const ptx_operand number = INT(w->facts->barrier);
  if (ptx_has(from, PTX_MOD_RED)) {
    write_reduction(w, from, number);
  } else if (w->facts->reduces) {
    same_guard(ADD("barrier.red.popc.u32", R(COUNT), number, R(TRUE)), from);
    same_guard(ADD("barrier.red.popc.u32", R(SUM), number, R(TRUE)), from);
  } else {
    same_guard(ADD("barrier.red.or.pred", R(MORE), number, R(TRUE)), from);
  }
}

static void write_instr(writer *w, const ptx_instr *from, uint8_t steps) {
  w->c.original = from;
  if (steps & PTX_STEP_BALLOT) write_ballot(w, from, steps & PTX_STEP_TAKEN);
  if (from->opcode == PTX_OP_EXIT || from->opcode == PTX_OP_RET) write_exit(w, from);
  else if ((steps & PTX_STEP_MASK) && w->facts->masks) write_masked(w, from);
  else if ((steps & PTX_STEP_BARRIER) && w->facts->drains) write_body_barrier(w, from);
  else ptx_grid_instr(&w->c, from);
}

static void write_body(writer *w) {
  const ptx_func *from = w->c.from;
  for (uint32_t i = 0; i < from->instr_count; i++) {
    ptx_grid_here(&w->c, i);
    write_instr(w, &from->instrs[i], w->facts->steps[i]);
  }
  w->c.original = NULL;
  ptx_grid_here(&w->c, from->instr_count);
  ptx_grid_label_here(&w->c, LABEL_NEXT);
  if (w->facts->copies) ptx_grid_add(&w->c, "cp.async.wait_all", NULL, 0);
  branch(w, LABEL_TAKE);
}

/* ---- kernels ---- */

static void see_grid(const ptx_operand *operands, uint32_t count, bool used[3]) {
  uint32_t which;
  for (uint32_t i = 0; i < count; i++) {
    if (operands[i].kind == PTX_OPERAND_SREG && ptx_window_sreg(operands[i].sreg, &which) && which >= 3)
      used[which - 3] = true;
    see_grid(operands[i].elements, operands[i].element_count, used);
  }
}

/* The dimensions of the grid that the body or what it calls may read. */
static void find_used(const ptx_grid_maker *m, const ptx_func *from, bool used[3]) {
  for (uint32_t i = 0; i < from->instr_count; i++) {
    const ptx_instr *instr = &from->instrs[i];
    see_grid(instr->operands, instr->operand_count, used);
    const ptx_operand *callee = instr->opcode == PTX_OP_CALL ? ptx_call_parts(instr).callee : NULL;
    if (callee && callee->symbol && callee->symbol->func && m->copies[callee->symbol->func->index])
      used[0] = used[1] = used[2] = true;
  }
}

static ptx_var *make_params(ptx_grid_maker *m, const ptx_func *from) {
  ptx_var *params = ff_arena_alloc(&m->arena, PARAMS * sizeof *params);
  for (uint32_t i = 0; i < PARAMS; i++)
    params[i] = (ptx_var){.name = param_names[i],
                          .place = from->place,
                          .space = PTX_SPACE_PARAM,
                          .type = i ? PTX_U32 : PTX_U64,
                          .vector = 1,
                          .align = i ? 4 : 8,
                          .size = i ? 4 : 8,
                          .reg = PTX_NO_REG};
  return params;
}

static ptx_var *make_slots(ptx_grid_maker *m, const ptx_func *from) {
  ptx_var *slots = ff_arena_alloc(&m->arena, sizeof *slots);
  *slots = (ptx_var){.name = "persistent_slots",
                     .place = from->place,
                     .space = PTX_SPACE_SHARED,
                     .type = PTX_B8,
                     .vector = 1,
                     .align = SLOTS_ALIGN,
                     .size = SLOTS_BYTES,
                     .reg = PTX_NO_REG};
  return slots;
}

static void fill(ptx_grid_maker *m, const ptx_func *from, const ptx_persistent_facts *facts) {
  bool used[3] = {false};
  writer writer_ = {.facts = facts, .params = make_params(m, from), .slots = make_slots(m, from)}, *w = &writer_;
  w->voltage = m->module->target >= 70 && m->module->version_major >= 6;
  ptx_grid_begin(&w->c, m, from, w->params, PARAMS, w->slots, 1, extras, EXTRAS);
  find_used(m, from, used);
  write_start(w);
  write_pull(w, LABEL_MEET);
  write_take(w);
  write_meet(w, used);
  write_body(w);
  ptx_grid_end(&w->c);
}

/* ---- the module ---- */

/* Bytes of the kernel's own static shared memory. */
static uint64_t shared_bytes(const ptx_func *func) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < func->var_count; i++)
    if (func->vars[i]->space == PTX_SPACE_SHARED)
      bytes = (bytes + func->vars[i]->align - 1) / func->vars[i]->align * func->vars[i]->align + func->vars[i]->size;
  return bytes;
}

static void judge(const ptx_window_facts *grid, const ptx_persistent_facts *facts, const ptx_func *func,
                  const char *old, ptx_persistent_kernel *kernel) {
  uint32_t bytes = ptx_param_layout(func, NULL);
  kernel->reason = facts[func->index].reason;
  if (!kernel->reason && grid[func->index].reads) kernel->reason = old;
  if (!kernel->reason && ptx_grid_register_parameters(func)) kernel->reason = "its parameters are in registers";
  if (!kernel->reason &&
      (bytes > PTX_PARAMETERS_MAX || (bytes + 7) / 8 * 8 + sizeof(ptx_persistent_params) > PTX_PARAMETERS_MAX))
    kernel->reason = "its parameters leave no room for seven more (4096 bytes)";
  if (!kernel->reason && shared_bytes(func) > SHARED_MAX - SLOTS_BYTES - SLOTS_ALIGN + 1)
    kernel->reason = "its shared memory leaves no room for the queue's (48 KiB)";
  if (kernel->reason) return;
  kernel->offset = (bytes + 7) / 8 * 8;
  kernel->bytes = kernel->offset + (uint32_t)sizeof(ptx_persistent_params);
  kernel->shared_bytes = SLOTS_BYTES + SLOTS_ALIGN - 1;
}

/* The copy takes the kernel's name. */
static const char *change_names(ptx_grid_maker *m, const ptx_func *func) {
  ptx_func *original = ff_arena_alloc(&m->arena, sizeof *original), *copy = m->copies[func->index];
  *original = *func;
  original->name = ptx_grid_free_name(m, func->name, "__original");
  copy->name = func->name;
  copy->symbol.name = func->name;
  m->funcs.items[func->index] = original;
  return copy->name;
}

static void list_kernels(ptx_grid_maker *m, const ptx_persistent_facts *facts, bool replace, ptx_persistents *made) {
  const ptx_module *module = m->module;
  const char *old = ptx_grid_old_form(module, m->facts, &made->arena);
  made->kernels = ff_arena_alloc(&made->arena, (module->func_count + (size_t)1) * sizeof *made->kernels);
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (!func->entry || !func->has_body) continue;
    ptx_persistent_kernel *kernel = &made->kernels[made->kernel_count++];
    kernel->name = ff_arena_strndup(&made->arena, func->name, strlen(func->name));
    judge(m->facts, facts, func, old, kernel);
    if (kernel->reason) continue;
    const char *name = ptx_grid_announce(m, func);
    if (replace) name = change_names(m, func);
    kernel->persistent_name = ff_arena_strndup(&made->arena, name, strlen(name));
  }
}

ptx_persistents *ptx_persistent_make(const ptx_module *module, const ptx_persistent_options *options) {
  ptx_persistents *made = ff_alloc(sizeof *made);
  ptx_persistent_facts *facts = ff_alloc((module->func_count + (size_t)1) * sizeof *facts);
  ptx_grid_maker m;
  ptx_window_facts *grid = ptx_window_facts_find(module, options->polling, &made->arena);
  ptx_persistent_facts_find(module, grid, options, &made->arena, facts);
  ptx_grid_start(&m, module, grid, &names);
  list_kernels(&m, facts, options->replace, made);
  ptx_grid_functions(&m);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (m.copies[i] && m.copies[i]->entry) fill(&m, module->funcs[i], &facts[i]);
  ptx_grid_print(&m, &made->text);
  ptx_grid_free(&m);
  for (uint32_t i = 0; i < module->func_count; i++) free(facts[i].steps);
  free(facts);
  free(grid);
  return made;
}

void ptx_persistent_free(ptx_persistents *persistents) {
  if (!persistents) return;
  free(persistents->text.chars);
  ff_arena_free(&persistents->arena);
  free(persistents);
}

const ptx_persistent_kernel *ptx_persistent_find(const ptx_persistents *persistents, const char *name) {
  for (uint32_t i = 0; i < persistents->kernel_count; i++)
    if (strcmp(persistents->kernels[i].name, name) == 0) return &persistents->kernels[i];
  return NULL;
}

bool ptx_persistent_pulls(const ptx_func *func, const ptx_instr *instr) {
  if (instr->opcode != PTX_OP_ATOM || instr->operands[0].kind != PTX_OPERAND_REG) return false;
  const char *name = extras[PULL].name;
  return strncmp(func->regs[instr->operands[0].reg].name, name, strlen(name)) == 0; /* a number may stand behind it */
}

uint32_t ptx_persistent_blocks(uint32_t fitting, uint32_t sm_total, uint32_t sm_count, const uint32_t grid[3]) {
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], needed;
  if (!sm_count || sm_count > sm_total) sm_count = sm_total ? sm_total : 1;
  needed = blocks / sm_count + (blocks % sm_count != 0);
  uint64_t each = needed < fitting ? needed : fitting;
  uint64_t launched = (each ? each : 1) * (sm_total ? sm_total : 1);
  return launched > INT32_MAX ? INT32_MAX : (uint32_t)launched;
}
