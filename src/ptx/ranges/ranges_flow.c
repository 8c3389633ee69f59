/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the states along the control flow, in the order of ptx/analysis/cfg.h: blocks of a loop are contiguous there.
 *
 * A loop is interpreted several times:
 *   1. counting: registers written in it are unknown, each with a base of its own. What comes round as its own base
 *      plus a step is a register that goes in steps; a comparison of such a one that must hold to stay bounds the
 *      trips.
 *   2. such registers are then first value + [0, trips] steps, for good; for the others a state is sought that what
 *      comes round does not leave (joined, then widened until it is found). What came in or round is then all there is:
 *      that narrows it again.
 *   3. a last run from that state, whose ways out go on.
 *
 * The state that step 2 finds covers what comes in and what comes round (`covers_entry` and `is_stable`). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/ranges/ranges_private.h"

enum { ROUNDS_MAX = 12, ROUNDS_TRIED = 8, EXITS_MAX = 8, WRITES_MAX = 64 };
#define STATES_BYTES_MAX (UINT64_C(256) << 20) /* of all states at once */

/* ---- states ---- */

static ranges_state *new_state(ranges_finder *f) {
  size_t bytes = sizeof(ranges_state) + f->slot_count * (sizeof(affine) + sizeof(uint32_t));
  ranges_state *state = ff_alloc(bytes);
  state->values = (affine *)(state + 1);
  state->defs = (uint32_t *)(state->values + f->slot_count);
  if (++f->states * bytes > STATES_BYTES_MAX) ranges_fail(f, "it has too many registers and branches to be analysed");
  return state;
}

ranges_state *ranges_copy(ranges_finder *f, const ranges_state *state) {
  ranges_state *copy = new_state(f);
  copy->blocks = state->blocks;
  if (f->slot_count) {
    memcpy(copy->values, state->values, f->slot_count * sizeof *copy->values);
    memcpy(copy->defs, state->defs, f->slot_count * sizeof *copy->defs);
  }
  f->steps += 1 + f->slot_count / 16;
  return copy;
}

void ranges_drop(ranges_finder *f, ranges_state *state) {
  if (state) f->states--;
  free(state);
}

/* What holds before the first instruction: of a register that is read before it is written nothing. */
static ranges_state *first_state(ranges_finder *f) {
  ranges_state *state = new_state(f);
  state->blocks = f->grid;
  for (uint32_t s = 0; s < f->slot_count; s++) {
    bool predicate = f->func->regs[f->reg_of[s]].type == PTX_PRED;
    state->values[s] = predicate ? affine_interval(0, 1) : affine_top(f->func->place.line, AFFINE_COMPUTED);
    if (!predicate) state->values[s].points = AFFINE_ANY;
    state->defs[s] = RANGES_NONE;
  }
  return state;
}

static void join_into(ranges_finder *f, ranges_state *into, const ranges_state *from) {
  affine_grid before = into->blocks;
  into->blocks = affine_grid_join(&before, &from->blocks);
  for (uint32_t s = 0; s < f->slot_count; s++) {
    if (into->defs[s] != from->defs[s]) into->defs[s] = RANGES_NONE;
    if (memcmp(&into->values[s], &from->values[s], sizeof into->values[s]) == 0) continue;
    into->values[s] = affine_join_of(&into->blocks, &before, &into->values[s], &from->blocks, &from->values[s]);
    f->steps++;
  }
  f->steps += 1 + f->slot_count / 16;
}

/* Takes the state over. */
static void merge(ranges_finder *f, ranges_state **into, ranges_state *state) {
  if (!*into) {
    *into = state;
    return;
  }
  join_into(f, *into, state);
  ranges_drop(f, state);
}

/* ---- writing registers ---- */

/* Registers that were computed from this one are no longer functions of it. */
static void forget_users(const ranges_finder *f, ranges_state *state, uint32_t slot) {
  for (uint32_t i = f->user_first[slot]; i < f->user_first[slot + 1]; i++) {
    uint32_t regs[WRITES_MAX], count = ptx_instr_writes(&f->func->instrs[f->users[i]], regs, WRITES_MAX);
    for (uint32_t k = 0; k < count && k < WRITES_MAX; k++) {
      uint32_t target = ranges_slot(f, regs[k]);
      if (target != RANGES_NONE && state->defs[target] == f->users[i]) state->defs[target] = RANGES_NONE;
    }
  }
}

static bool reads_register(const ptx_instr *instr, uint32_t reg) {
  uint32_t regs[WRITES_MAX], count = ptx_instr_reads(instr, regs, WRITES_MAX);
  for (uint32_t i = 0; i < count && i < WRITES_MAX; i++)
    if (regs[i] == reg) return true;
  return count > WRITES_MAX;
}

static void write_register(ranges_finder *f, ranges_state *state, uint32_t at, uint32_t reg, affine value,
                           bool guarded) {
  const ptx_instr *instr = &f->func->instrs[at];
  uint32_t slot = ranges_slot(f, reg);
  if (slot == RANGES_NONE) return;
  if (guarded) value = affine_join(&state->blocks, &state->values[slot], &value);
  if (!affine_tighten(&state->blocks, &value)) {
    value = affine_top(instr->place.line, AFFINE_COMPUTED);
    value.points = AFFINE_ANY;
  }
  forget_users(f, state, slot);
  state->values[slot] = value;
  state->defs[slot] = guarded || reads_register(instr, reg) ? RANGES_NONE : at;
}

/* ---- accesses ---- */

static void record(ranges_finder *f, const ranges_state *state, uint32_t at, affine address, uint64_t bytes, bool reads,
                   bool writes) {
  ranges_access *access = &f->accesses[at];
  if (!f->recording || f->failed) return;
  if (!address.top) {
    if (address.max > INT64_MAX / 2 || address.hi > INT64_MAX / 2 || bytes > UINT32_MAX) address.top = true;
    address.hi += (int64_t)bytes - 1;
    address.max += (int64_t)bytes - 1;
  }
  address.base = 0;
  address.zeros = 0;
  if (access->seen) {
    affine_grid both = affine_grid_join(&access->blocks, &state->blocks);
    access->address = affine_join_of(&both, &access->blocks, &access->address, &state->blocks, &address);
    access->blocks = both;
  } else {
    access->address = address;
    access->blocks = state->blocks;
  }
  access->seen = true;
  access->reads |= reads;
  access->writes |= writes;
}

static bool may_be_global(const ptx_instr *instr) {
  ptx_space space = ptx_instr_space(instr);
  return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
}

static uint64_t access_bytes(const ptx_instr *instr) {
  ptx_type type = instr->type_count ? instr->types[instr->type_count - 1] : PTX_B128;
  uint32_t bits = ptx_type_bits(type);
  return (uint64_t)((bits ? bits : 128) + 7) / 8 * (instr->vector ? instr->vector : 1);
}

/* cp.async from global to shared memory: a third operand says how many bytes. */
static void async_copy(ranges_finder *f, const ranges_state *state, uint32_t at) {
  const ptx_instr *instr = &f->func->instrs[at];
  bool plain = ptx_has(instr, PTX_MOD_ASYNC) && ptx_has(instr, PTX_MOD_GLOBAL) && instr->operand_count >= 3 &&
               !ptx_has(instr, PTX_MOD_BULK) && instr->operands[1].kind == PTX_OPERAND_ADDRESS &&
               instr->operands[2].kind == PTX_OPERAND_INT;
  bool any_address = false;
  for (uint32_t i = 0; i < instr->operand_count; i++) any_address |= instr->operands[i].kind == PTX_OPERAND_ADDRESS;
  if (!any_address || ptx_has(instr, PTX_MOD_MBARRIER)) return; /* commit and wait */
  if (!plain || instr->operands[2].bits > 16) {
    ranges_fail(f, "a copy in the background at line %u is of a form that is not analysed", instr->place.line);
    return;
  }
  record(f, state, at, ranges_address(f, state, instr, &instr->operands[1]), instr->operands[2].bits, true, false);
}

static void matrix_access(ranges_finder *f, uint32_t at) {
  const ptx_instr *instr = &f->func->instrs[at];
  bool store = ptx_has(instr, PTX_MOD_STORE);
  if (!store && !ptx_has(instr, PTX_MOD_LOAD)) return;
  if (!may_be_global(instr)) return;
  ranges_fail(f, "a matrix is moved at line %u (wmma.%s), which is not analysed", instr->place.line,
              store ? "store" : "load");
}

static void memory_access(ranges_finder *f, const ranges_state *state, uint32_t at) {
  const ptx_instr *instr = &f->func->instrs[at];
  const ptx_operand *first = instr->operand_count ? &instr->operands[0] : NULL;
  uint32_t line = instr->place.line;
  switch (instr->opcode) {
  case PTX_OP_LD:
  case PTX_OP_LDU:
    if (may_be_global(instr))
      record(f, state, at, ranges_address(f, state, instr, &instr->operands[1]), access_bytes(instr), true, false);
    return;
  case PTX_OP_ST:
    if (may_be_global(instr))
      record(f, state, at, ranges_address(f, state, instr, first), access_bytes(instr), false, true);
    return;
  case PTX_OP_ATOM:
  case PTX_OP_RED:
    if (may_be_global(instr))
      record(f, state, at, ranges_address(f, state, instr, &instr->operands[instr->opcode == PTX_OP_ATOM]),
             access_bytes(instr), true, true);
    return;
  case PTX_OP_PREFETCH:
  case PTX_OP_PREFETCHU:
  case PTX_OP_APPLYPRIORITY:
  case PTX_OP_DISCARD:
    if (may_be_global(instr)) { /* the whole line of the cache */
      affine address = ranges_address(f, state, instr, first), before = affine_constant(127);
      address = affine_subtract(&state->blocks, &address, &before);
      record(f, state, at, address, 255, true, instr->opcode == PTX_OP_DISCARD);
    }
    return;
  case PTX_OP_CP: async_copy(f, state, at); return;
  case PTX_OP_WMMA: matrix_access(f, at); return;
  case PTX_OP_LDMATRIX:
  case PTX_OP_STMATRIX:
  case PTX_OP_MBARRIER:
  case PTX_OP_ISSPACEP:
  case PTX_OP_CVTA:
  case PTX_OP_MOV: return; /* shared memory, or none */
  case PTX_OP_CALL: {
    ptx_call call = ptx_call_parts(instr);
    const ptx_func *callee = call.callee && call.callee->symbol ? call.callee->symbol->func : NULL;
    bool harmless = callee && !callee->has_body &&
                    (!strcmp(callee->name, "malloc") || !strcmp(callee->name, "free") ||
                     !strcmp(callee->name, "vprintf") || !strcmp(callee->name, "__assertfail"));
    if (!harmless)
      ranges_fail(f, "it calls %s at line %u, which is not analysed",
                  callee ? callee->name : "a function by its address", line);
    return;
  }
  case PTX_OP_MULTIMEM: ranges_fail(f, "it reaches several GPUs' memory at line %u (multimem)", line); return;
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_SULD:
  case PTX_OP_SUST:
  case PTX_OP_SURED: ranges_fail(f, "it reads or writes a texture or a surface at line %u", line); return;
  case PTX_OP_UNKNOWN: ranges_fail(f, "the statement at line %u is not known", line); return;
  default: break;
  }
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (instr->operands[i].kind == PTX_OPERAND_ADDRESS)
      ranges_fail(f, "%s at line %u reaches memory in a way that is not analysed", ptx_opcode_text(instr->opcode),
                  line);
}

/* ---- one instruction, one block ---- */

static int guard_truth(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr) {
  uint32_t slot = ranges_slot(f, instr->guard);
  if (instr->guard == PTX_NO_REG) return 1;
  if (slot == RANGES_NONE || state->values[slot].top || state->values[slot].min != state->values[slot].max) return -1;
  return (state->values[slot].min != 0) != instr->guard_negated;
}

static bool touches_memory(const ptx_instr *instr) {
  if (instr->opcode == PTX_OP_CALL || instr->opcode == PTX_OP_UNKNOWN) return true;
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (instr->operands[i].kind == PTX_OPERAND_ADDRESS) return true;
  return false;
}

/* What the instruction reads gets a name, so that what is computed from it can be told to be so. */
static void name_sources(ranges_finder *f, ranges_state *state, const ptx_instr *instr) {
  bool names = instr->opcode == PTX_OP_ADD || instr->opcode == PTX_OP_SUB || instr->opcode == PTX_OP_MOV ||
               instr->opcode == PTX_OP_SETP || instr->opcode == PTX_OP_SELP;
  for (uint32_t i = 1; names && i < instr->operand_count; i++) {
    const ptx_operand *operand = &instr->operands[i];
    uint32_t slot = operand->kind == PTX_OPERAND_REG ? ranges_slot(f, operand->reg) : RANGES_NONE;
    if (slot == RANGES_NONE || f->func->regs[operand->reg].type == PTX_PRED || state->values[slot].root ||
        f->next_root == UINT32_MAX)
      continue;
    state->values[slot].root = ++f->next_root;
    state->values[slot].root_offset = 0;
  }
}

enum { COMPARED_MAX = 1 << 15 };

/* Keeps what a setp compares; the number of it, or 0. */
static uint32_t keep_compared(ranges_finder *f, const ranges_state *state, uint32_t at) {
  const ptx_instr *instr = &f->func->instrs[at];
  ptx_type type = instr->type_count ? instr->types[instr->type_count - 1] : PTX_TYPE_NONE;
  if (instr->opcode != PTX_OP_SETP || !ranges_is_integer(type) || f->compared.count >= COMPARED_MAX) return 0;
  for (uint32_t i = 1; i < 3; i++)
    if (instr->operands[i].kind == PTX_OPERAND_REG &&
        ptx_type_bits(f->func->regs[instr->operands[i].reg].type) != ptx_type_bits(type))
      return 0;
  ranges_compared made = {at, ranges_operand(f, state, instr, &instr->operands[1]),
                          ranges_operand(f, state, instr, &instr->operands[2])};
  FF_PUSH(&f->compared, made);
  return (uint32_t)f->compared.count;
}

static void step(ranges_finder *f, ranges_state *state, uint32_t at) {
  const ptx_instr *instr = &f->func->instrs[at];
  int guard = guard_truth(f, state, instr);
  f->steps++;
  if (!guard) return;
  if (touches_memory(instr)) {
    if (guard < 0 && f->recording) {
      ranges_state *within = ranges_copy(f, state);
      if (ranges_refine(f, within, instr->guard, !instr->guard_negated)) memory_access(f, within, at);
      ranges_drop(f, within);
    } else {
      memory_access(f, state, at);
    }
  }
  uint32_t regs[WRITES_MAX], count = ptx_instr_writes(instr, regs, WRITES_MAX);
  affine values[WRITES_MAX];
  if (count > WRITES_MAX) {
    ranges_fail(f, "the instruction at line %u writes too many registers", instr->place.line);
    return;
  }
  name_sources(f, state, instr);
  uint32_t compared = keep_compared(f, state, at);
  for (uint32_t i = 0; i < count; i++) { /* all before any is written: {a, b} = {b, a} */
    if (ranges_slot(f, regs[i]) == RANGES_NONE) continue;
    values[i] = ranges_evaluate(f, state, instr, regs[i]);
    FF_CHECK_DEEP(affine_is_sound(&f->grid, &values[i]));
    if (f->func->regs[regs[i]].type != PTX_PRED) continue;
    values[i].root = compared;
    values[i].root_offset = 0;
  }
  for (uint32_t i = 0; i < count; i++)
    if (ranges_slot(f, regs[i]) != RANGES_NONE) write_register(f, state, at, regs[i], values[i], guard < 0);
}

/* ---- edges ---- */

/* A way into block `target`, which takes the state over. */
static void go(ranges_finder *f, uint32_t target, ranges_state *state) {
  uint32_t order = f->cfg->blocks[target].order;
  for (uint32_t i = f->loop_count; i-- > 0;) {
    ranges_loop *loop = &f->loops[i];
    if (order == loop->first) { /* round, of this loop */
      merge(f, &loop->back, state);
      return;
    }
    if (order > loop->first && order <= loop->last) break;
    if (!loop->final) {
      ranges_drop(f, state);
      return;
    }
  }
  merge(f, &f->pending[target], state);
}

static bool dominates(ranges_finder *f, uint32_t above, uint32_t block) {
  for (; block != above && block != UINT32_MAX; block = f->dominator[block]) f->steps++;
  return block == above;
}

/* Is the block passed in every round of the loop? */
static bool in_every_round(ranges_finder *f, const ranges_loop *loop, uint32_t block) {
  const ptx_block *head = &f->cfg->blocks[f->cfg->by_order[loop->first]];
  for (uint32_t i = 0; i < head->predecessor_count; i++) {
    uint32_t from = head->predecessors[i], order = f->cfg->blocks[from].order;
    if (order >= loop->first && order <= loop->last && !dominates(f, block, from)) return false;
  }
  return true;
}

typedef struct exit_branch {
  uint32_t pred;
  bool stays;
  ranges_state *state;
} exit_branch;

typedef struct exit_list {
  exit_branch items[EXITS_MAX];
  uint32_t count;
} exit_list;

static bool is_inside(const ranges_finder *f, const ranges_loop *loop, uint32_t block) {
  uint32_t order = f->cfg->blocks[block].order;
  return order >= loop->first && order <= loop->last;
}

/* A branch of two ways, one of them out of the loop that is being counted. */
static void note_exit(ranges_finder *f, exit_list *exits, uint32_t block, const ranges_state *state) {
  const ptx_block *b = &f->cfg->blocks[block];
  const ptx_instr *end = &f->func->instrs[b->end - 1];
  if (!f->loop_count || !exits || exits->count == EXITS_MAX || end->guard == PTX_NO_REG) return;
  const ranges_loop *loop = &f->loops[f->loop_count - 1];
  bool taken_stays, falls_stays;
  if (end->opcode == PTX_OP_BRA && b->successor_count == 2) {
    falls_stays = is_inside(f, loop, b->successors[0]);
    taken_stays = is_inside(f, loop, b->successors[1]);
  } else if ((end->opcode == PTX_OP_EXIT || end->opcode == PTX_OP_RET) && b->successor_count == 1) {
    falls_stays = is_inside(f, loop, b->successors[0]);
    taken_stays = false;
  } else {
    return;
  }
  if (taken_stays == falls_stays || !in_every_round(f, loop, block)) return;
  exits->items[exits->count++] = (exit_branch){end->guard, taken_stays != end->guard_negated, ranges_copy(f, state)};
}

/* From a block's end to its successors; takes the state over. */
static void leave(ranges_finder *f, uint32_t block, ranges_state *state) {
  const ptx_block *b = &f->cfg->blocks[block];
  const ptx_instr *end = &f->func->instrs[b->end - 1];
  bool two_ways = end->guard != PTX_NO_REG && end->opcode == PTX_OP_BRA && b->successor_count == 2;
  bool ends = end->guard != PTX_NO_REG &&
              (end->opcode == PTX_OP_EXIT || end->opcode == PTX_OP_RET || end->opcode == PTX_OP_TRAP);
  for (uint32_t i = 0; i < b->successor_count && !f->failed; i++) {
    ranges_state *copy = ranges_copy(f, state);
    bool possible = true;
    if (two_ways) possible = ranges_refine(f, copy, end->guard, (i == 1) != end->guard_negated);
    else if (ends) possible = ranges_refine(f, copy, end->guard, end->guard_negated);
    if (possible) go(f, b->successors[i], copy);
    else ranges_drop(f, copy);
  }
  ranges_drop(f, state);
}

static void run_block(ranges_finder *f, uint32_t block, ranges_state *state, exit_list *exits) {
  const ptx_block *b = &f->cfg->blocks[block];
  for (uint32_t at = b->first; at < b->end && !f->failed; at++) step(f, state, at);
  if (f->steps > f->step_limit) ranges_fail(f, "it is too long to be analysed");
  note_exit(f, exits, block, state);
  leave(f, block, state);
}

/* ---- loops ---- */

static void run_orders(ranges_finder *f, uint32_t from, uint32_t to, exit_list *exits);

static bool is_head(const ranges_finder *f, const ptx_block *block) {
  for (uint32_t i = 0; i < block->predecessor_count; i++)
    if (f->cfg->blocks[block->predecessors[i]].reachable &&
        f->cfg->blocks[block->predecessors[i]].order >= block->order)
      return true;
  return false;
}

/* The loop's body once, from `start` (not taken over); what comes round is left in loop->back. */
static void run_body(ranges_finder *f, const ranges_state *start, bool final, exit_list *exits) {
  ranges_loop *loop = &f->loops[f->loop_count - 1];
  bool recording = f->recording;
  loop->final = final;
  f->recording = recording && final;
  ranges_drop(f, loop->back);
  loop->back = NULL;
  run_block(f, f->cfg->by_order[loop->first], ranges_copy(f, start), exits);
  run_orders(f, loop->first + 1, loop->last, exits);
  f->recording = recording;
}

/* Marks the slots that the loop writes. */
static bool *written_slots(const ranges_finder *f, const ranges_loop *loop) {
  bool *written = ff_alloc(f->slot_count + 1);
  for (uint32_t order = loop->first; order <= loop->last; order++) {
    const ptx_block *b = &f->cfg->blocks[f->cfg->by_order[order]];
    for (uint32_t at = b->first; at < b->end; at++) {
      uint32_t regs[WRITES_MAX], count = ptx_instr_writes(&f->func->instrs[at], regs, WRITES_MAX);
      for (uint32_t i = 0; i < count && i < WRITES_MAX; i++)
        if (ranges_slot(f, regs[i]) != RANGES_NONE) written[ranges_slot(f, regs[i])] = true;
    }
  }
  return written;
}

static bool is_predicate(const ranges_finder *f, uint32_t slot) {
  return f->func->regs[f->reg_of[slot]].type == PTX_PRED;
}

static void forget_written(const ranges_finder *f, ranges_state *state, const bool *written) {
  for (uint32_t s = 0; s < f->slot_count; s++) {
    if (!written[s]) continue;
    state->defs[s] = RANGES_NONE;
    forget_users(f, state, s);
  }
}

/* Step 1. `start` becomes the entry's state with registers that go in steps in their place; others as they come in.
 * Sets stepping[]. */
static void count_trips(ranges_finder *f, ranges_loop *loop, const bool *written, ranges_state *start, bool *stepping) {
  exit_list exits = {.count = 0};
  ranges_state *unknown = ranges_copy(f, start);
  loop->base_first = f->next_base;
  if (f->next_base > UINT32_MAX - f->slot_count - 1) f->next_base = 1;
  f->next_base += f->slot_count;
  for (uint32_t s = 0; s < f->slot_count; s++) {
    if (!written[s]) continue;
    unknown->values[s] =
        is_predicate(f, s) ? affine_interval(0, 1)
                           : affine_top(f->func->instrs[f->cfg->blocks[f->cfg->by_order[loop->first]].first].place.line,
                                        AFFINE_LOOPED);
    if (!is_predicate(f, s)) unknown->values[s].base = loop->base_first + s;
  }
  loop->trips = -1;
  loop->entry = start;
  run_body(f, unknown, false, &exits);
  for (uint32_t i = 0; i < exits.count; i++) {
    if (loop->back && !f->failed)
      ranges_count_trips(f, loop, exits.items[i].state, exits.items[i].pred, exits.items[i].stays);
    ranges_drop(f, exits.items[i].state);
  }
  ranges_drop(f, unknown);
  for (uint32_t s = 0; s < f->slot_count; s++) /* not the same value in each round */
    if (written[s]) start->values[s].root = 0;
  for (uint32_t s = 0; loop->back && s < f->slot_count; s++) {
    affine *round = &loop->back->values[s];
    if (!written[s] || round->base != loop->base_first + s) continue;
    uint8_t bits = (uint8_t)ptx_type_bits(f->func->regs[f->reg_of[s]].type);
    affine by = affine_interval(round->step_lo, round->step_hi);
    by = affine_as(&f->grid, &by, (affine_type){bits, true});
    bool still = by.min == 0 && by.max == 0;
    if (!still && loop->trips < 0) continue;
    uint64_t points = start->values[s].points | round->points;
    start->values[s] =
        still ? start->values[s] : affine_repeat(&start->blocks, &start->values[s], by.min, by.max, loop->trips);
    start->values[s].points = points;
    stepping[s] = true;
  }
}

/* Does what came round stay within the state? */
static bool is_stable(const ranges_finder *f, const ranges_loop *loop, const ranges_state *state, const bool *written,
                      const bool *stepping) {
  for (uint32_t s = 0; loop->back && s < f->slot_count; s++)
    if (written[s] && !stepping[s] && !affine_covers(&loop->back->blocks, &state->values[s], &loop->back->values[s]))
      return false;
  return true;
}

static void widen(const ranges_finder *f, const ranges_loop *loop, ranges_state *state, const bool *written,
                  const bool *stepping, uint32_t round) {
  for (uint32_t s = 0; s < f->slot_count; s++) {
    affine *v = &state->values[s];
    if (!written[s] || stepping[s] || affine_covers(&loop->back->blocks, v, &loop->back->values[s])) continue;
    uint8_t bits = is_predicate(f, s) ? 32 : (uint8_t)ptx_type_bits(f->func->regs[f->reg_of[s]].type);
    *v = affine_widen(&state->blocks, v, &loop->back->values[s], bits, is_predicate(f, s) ? 0 : round / 2);
  }
}

/* Of what the loop writes nothing is known any more: that is stable. */
static void give_up(const ranges_finder *f, ranges_state *state, const bool *written, const bool *stepping) {
  for (uint32_t s = 0; s < f->slot_count; s++) {
    if (!written[s] || stepping[s]) continue;
    affine *v = &state->values[s];
    *v = is_predicate(f, s) ? affine_interval(0, 1)
                            : affine_top(v->line, v->line ? (affine_cause)v->cause : AFFINE_LOOPED);
    if (!is_predicate(f, s)) v->points = UINT64_MAX;
  }
}

/* What is at the head came in or came round: at most what the last run from a state that covers all that brought
 * round. */
static void narrow_head(ranges_finder *f, const ranges_loop *loop, const ranges_state *entry, ranges_state *state,
                        const bool *written) {
  for (uint32_t s = 0; s < f->slot_count; s++) {
    affine either, *v = &state->values[s];
    if (!written[s] || is_predicate(f, s)) continue;
    either =
        affine_join_of(&state->blocks, &entry->blocks, &entry->values[s], &loop->back->blocks, &loop->back->values[s]);
    either.base = either.root = 0;
    either.points = v->points;
    affine met;
    if (!affine_meet(&state->blocks, v, &either, (uint8_t)ptx_type_bits(f->func->regs[f->reg_of[s]].type), &met))
      continue;
    met.points = v->points;
    met.base = v->base;
    met.step_lo = v->step_lo;
    met.step_hi = v->step_hi;
    met.root = 0;
    *v = met;
  }
}

static bool covers_entry(const ranges_finder *f, const ranges_state *entry, const ranges_state *state) {
  for (uint32_t s = 0; s < f->slot_count; s++) {
    affine in = entry->values[s]; /* its bounds may be those of more blocks than get here */
    if (affine_tighten(&entry->blocks, &in) && !affine_covers(&entry->blocks, &state->values[s], &in)) return false;
  }
  return true;
}

/* Step 2: makes `state` one that covers what comes round. `entry`: what comes in. */
static void stabilise(ranges_finder *f, ranges_loop *loop, const ranges_state *entry, ranges_state *state,
                      const bool *written, const bool *stepping) {
  for (uint32_t round = 0; !f->failed; round++) {
    run_body(f, state, false, NULL);
    if (is_stable(f, loop, state, written, stepping)) break;
    if (round >= ROUNDS_MAX) {
      ranges_fail(f, "a loop at line %u is too involved",
                  f->func->instrs[f->cfg->blocks[f->cfg->by_order[loop->first]].first].place.line);
      return;
    }
    if (round < ROUNDS_TRIED) widen(f, loop, state, written, stepping, round);
    else give_up(f, state, written, stepping);
  }
  FF_CHECK_DEEP(f->failed || covers_entry(f, entry, state));
  if (!f->failed && loop->back) narrow_head(f, loop, entry, state, written);
}

static void run_loop(ranges_finder *f, uint32_t head, ranges_state *start) {
  const ptx_block *block = &f->cfg->blocks[head];
  if (f->loop_count == RANGES_LOOPS_NESTED) {
    ranges_fail(f, "its loops are nested deeper than %d", (int)RANGES_LOOPS_NESTED);
    ranges_drop(f, start);
    return;
  }
  ranges_loop *loop = &f->loops[f->loop_count++];
  *loop = (ranges_loop){.first = block->order, .last = block->loop_end, .trips = -1};
  bool *written = written_slots(f, loop), *stepping = ff_alloc(f->slot_count + 1);
  forget_written(f, start, written);
  ranges_state *entry = ranges_copy(f, start);
  count_trips(f, loop, written, start, stepping);
  stabilise(f, loop, entry, start, written, stepping);
  run_body(f, start, true, NULL);
  ranges_drop(f, loop->back);
  ranges_drop(f, entry);
  ranges_drop(f, start);
  free(written);
  free(stepping);
  f->loop_count--;
}

/* Blocks in order; each takes what is pending for it. Blocks of a loop that was run as a whole have nothing pending. */
static void run_orders(ranges_finder *f, uint32_t from, uint32_t to, exit_list *exits) {
  for (uint32_t order = from; order <= to && order < f->cfg->block_count; order++) {
    uint32_t block = f->cfg->by_order[order];
    ranges_state *state = f->pending[block];
    if (!state) continue;
    f->pending[block] = NULL;
    if (f->failed) ranges_drop(f, state);
    else if (is_head(f, &f->cfg->blocks[block])) run_loop(f, block, state);
    else run_block(f, block, state, exits);
  }
}

/* ---- the whole ---- */

/* Edges go forward, or back to the head of a loop around them; nothing enters a loop but through its head. */
static bool is_orderly(ranges_finder *f) {
  const ptx_cfg *cfg = f->cfg;
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    const ptx_block *from = &cfg->blocks[b];
    for (uint32_t i = 0; from->reachable && i < from->successor_count; i++) {
      const ptx_block *to = &cfg->blocks[from->successors[i]];
      if (to->order <= from->order && (from->order > to->loop_end || !dominates(f, from->successors[i], b)))
        return false;
    }
  }
  for (uint32_t h = 0; h < cfg->block_count; h++) {
    const ptx_block *head = &cfg->blocks[h];
    if (!head->reachable || !is_head(f, head)) continue;
    for (uint32_t order = head->order; order <= head->loop_end && f->steps < f->step_limit; order++)
      if (cfg->blocks[cfg->by_order[order]].reachable && !dominates(f, h, cfg->by_order[order])) return false;
  }
  return true;
}

void ranges_run(ranges_finder *f) {
  if (!f->cfg->block_count) return;
  if (!is_orderly(f) || f->steps >= f->step_limit) {
    ranges_fail(f, "its control flow is not made of nested loops");
    return;
  }
  f->next_base = 1;
  f->recording = true;
  uint32_t first = f->cfg->block_of[0];
  f->pending[first] = first_state(f);
  run_orders(f, 0, f->cfg->block_count - 1, NULL);
  for (uint32_t b = 0; b < f->cfg->block_count; b++) ranges_drop(f, f->pending[b]);
}
