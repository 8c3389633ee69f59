/* SPDX-License-Identifier: Apache-2.0 */
/* Facts for persistent.c: first what each function does to its block, along the calls; then, kernel by kernel, where
 * the block divides (persistent_divide.c) and what that means for barriers and warp operations.
 *
 * Reasons against, besides those of window_facts.c: code that cannot run twice in one thread's life (mbarriers that are
 * set up but not taken down, tensor memory, setmaxnreg, alloca), and exits that would not be seen outside a
 * function. */
#include "ptx/rewrite/persistent_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/analysis/callers.h"
#include "ptx/rewrite/persistent_divide.h"

#define BARRIERS 16u
#define UNKNOWN_BARRIER (1u << BARRIERS)

typedef struct summary { /* of a function and all that it calls */
  bool barriers;         /* of the whole block */
  bool warps;            /* warp operations */
  bool copies;           /* cp.async */
  uint32_t counted;      /* numbers of barriers with a count, a bit each; UNKNOWN_BARRIER */
  uint32_t exit_line;    /* of an exit within it; 0: none */
  const char *exits;     /* the function that has it */
  bool inits, invals;    /* mbarriers */
  const char *reason;
} summary;

typedef struct finder {
  const ptx_module *module;
  const ptx_window_facts *grid;
  const ptx_persistent_options *options;
  ff_arena *arena;
  summary *summaries;
  ptx_callers *callers;
} finder;

static void refuse(const finder *f, const char **reason, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void refuse(const finder *f, const char **reason, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ptx_refuse(f->arena, reason, format, args);
  va_end(args);
}

/* ---- single instructions ---- */

typedef enum barrier_kind { NO_BARRIER, BARRIER_ALL, BARRIER_COUNTED } barrier_kind;

static barrier_kind barrier_of(const ptx_instr *instr, const ptx_operand **number) {
  if ((instr->opcode != PTX_OP_BAR && instr->opcode != PTX_OP_BARRIER) || ptx_has(instr, PTX_MOD_WARP) ||
      ptx_has(instr, PTX_MOD_CLUSTER))
    return NO_BARRIER;
  bool reduces = ptx_has(instr, PTX_MOD_RED);
  *number = &instr->operands[reduces];
  if (ptx_has(instr, PTX_MOD_ARRIVE)) return BARRIER_COUNTED;
  return instr->operand_count > (reduces ? 3 : 1) ? BARRIER_COUNTED : BARRIER_ALL;
}

uint32_t ptx_membermask(const ptx_instr *instr) {
  uint32_t at;
  switch (instr->opcode) {
  case PTX_OP_SHFL: at = 4; break;
  case PTX_OP_VOTE:
  case PTX_OP_MATCH:
  case PTX_OP_REDUX: at = 2; break;
  case PTX_OP_ELECT: at = 1; break;
  case PTX_OP_BAR:
  case PTX_OP_BARRIER: return ptx_has(instr, PTX_MOD_WARP) ? 0 : UINT32_MAX;
  default: return UINT32_MAX;
  }
  return ptx_has(instr, PTX_MOD_SYNC) && at < instr->operand_count ? at : UINT32_MAX;
}

static uint32_t barrier_bit(const ptx_operand *number) {
  return number->kind == PTX_OPERAND_INT && number->bits < BARRIERS ? 1u << number->bits : UNKNOWN_BARRIER;
}

/* Compilers put an exit behind a call that does not return, so that control ends there in the text. */
static bool is_dead_exit(const ptx_func *func, uint32_t i) {
  if (!i) return false;
  const ptx_instr *before = &func->instrs[i - 1];
  for (uint32_t l = 0; l < func->label_count; l++)
    if (func->labels[l].at == i) return false;
  if (before->guard != PTX_NO_REG) return false;
  if (before->opcode == PTX_OP_TRAP) return true;
  const ptx_operand *callee = before->opcode == PTX_OP_CALL ? ptx_call_parts(before).callee : NULL;
  return callee && callee->symbol && callee->symbol->func && callee->symbol->func->noreturn;
}

/* ---- functions ---- */

static void see_once_only(const finder *f, const ptx_func *func, const ptx_instr *instr, summary *s) {
  uint32_t line = instr->place.line;
  switch (instr->opcode) {
  case PTX_OP_MBARRIER:
    s->inits |= ptx_has(instr, PTX_MOD_INIT);
    s->invals |= ptx_has(instr, PTX_MOD_INVAL);
    break;
  case PTX_OP_CP:
    if (ptx_has(instr, PTX_MOD_BULK))
      refuse(f, &s->reason, "%s copies in bulk at line %u, and may end before that is done", func->name, line);
    s->copies |= ptx_has(instr, PTX_MOD_ASYNC);
    break;
  case PTX_OP_SETMAXNREG:
  case PTX_OP_TCGEN05:
  case PTX_OP_WGMMA:
    refuse(f, &s->reason, "%s has %s at line %u, which cannot be done again by the next block", func->name,
           ptx_opcode_text(instr->opcode), line);
    break;
  case PTX_OP_ALLOCA:
    if (func->entry)
      refuse(f, &s->reason, "%s takes memory with alloca at line %u, which lasts until a kernel ends", func->name,
             line);
    break;
  case PTX_OP_UNKNOWN:
    refuse(f, &s->reason, "%s has a statement at line %u that is not known", func->name, line);
    break;
  default: break;
  }
}

static void see_func(finder *f, const ptx_func *func) {
  summary *s = &f->summaries[func->index];
  for (uint32_t i = 0; i < func->instr_count; i++) {
    const ptx_instr *instr = &func->instrs[i];
    const ptx_operand *number;
    barrier_kind kind = barrier_of(instr, &number);
    s->barriers |= kind == BARRIER_ALL;
    s->warps |= kind == BARRIER_COUNTED || ptx_membermask(instr) != UINT32_MAX;
    if (kind == BARRIER_COUNTED) s->counted |= barrier_bit(number);
    if (instr->opcode == PTX_OP_EXIT && !func->entry && !s->exits && !is_dead_exit(func, i)) {
      s->exits = func->name;
      s->exit_line = instr->place.line;
    }
    see_once_only(f, func, instr, s);
    const ptx_operand *callee = instr->opcode == PTX_OP_CALL ? ptx_call_parts(instr).callee : NULL;
    if (callee && callee->symbol && callee->symbol->func)
      ptx_callers_add(f->callers, callee->symbol->func->index, func->index);
  }
}

static bool take_over(void *context, uint32_t to, uint32_t from) {
  summary *caller = &((summary *)context)[to], before = *caller;
  const summary *callee = &((summary *)context)[from];
  caller->barriers |= callee->barriers;
  caller->warps |= callee->warps;
  caller->copies |= callee->copies;
  caller->counted |= callee->counted;
  caller->inits |= callee->inits;
  caller->invals |= callee->invals;
  if (!caller->exits) {
    caller->exits = callee->exits;
    caller->exit_line = callee->exit_line;
  }
  if (!caller->reason) caller->reason = callee->reason;
  return before.barriers != caller->barriers || before.warps != caller->warps || before.copies != caller->copies ||
         before.counted != caller->counted || before.inits != caller->inits || before.invals != caller->invals ||
         before.exits != caller->exits || before.reason != caller->reason;
}

/* A call by address reaches any function whose address is taken. */
static void spread(finder *f) {
  ptx_callers_spread(f->callers, take_over, f->summaries);
  for (uint32_t i = 0; i < f->module->func_count; i++)
    for (uint32_t k = 0; f->grid[i].indirect && k < f->module->func_count; k++)
      if (f->grid[k].address_taken) take_over(f->summaries, i, k);
}

/* ---- kernels ---- */

typedef struct judge { /* of one kernel */
  finder *f;
  const ptx_func *func;
  const summary *s;
  ptx_persistent_facts *facts;
  ptx_divide *divide;
  bool *warps_ahead;   /* per block: warp operations can be reached from its beginning */
  bool outer_warps;    /* ... in functions, or barriers with a count: no mask can be cut */
  uint32_t mixed_line; /* of the first branch that some lanes leave by and others do not; 0: none */
} judge;

static const summary *callee_of(const judge *j, const ptx_instr *instr) {
  if (instr->opcode != PTX_OP_CALL) return NULL;
  const ptx_operand *callee = ptx_call_parts(instr).callee;
  if (callee && callee->symbol && callee->symbol->func) return &j->f->summaries[callee->symbol->func->index];
  return j->s; /* by address: the kernel's own has all that it may reach */
}

static bool is_warp_operation(judge *j, const ptx_instr *instr) {
  const ptx_operand *number;
  const summary *callee = callee_of(j, instr);
  bool outer = barrier_of(instr, &number) == BARRIER_COUNTED || (callee && callee->warps);
  j->outer_warps |= outer;
  return outer || ptx_membermask(instr) != UINT32_MAX;
}

/* From the blocks that have warp operations, backwards. */
static void find_warps_ahead(judge *j) {
  const ptx_cfg *cfg = j->divide->cfg;
  FF_VEC(uint32_t) work = {0};
  j->warps_ahead = ff_alloc(cfg->block_count + (size_t)1);
  for (uint32_t b = 0; b < cfg->block_count; b++)
    for (uint32_t i = cfg->blocks[b].first; cfg->blocks[b].reachable && i < cfg->blocks[b].end && !j->warps_ahead[b];
         i++)
      if (is_warp_operation(j, &j->func->instrs[i])) {
        j->warps_ahead[b] = true;
        FF_PUSH(&work, b);
      }
  while (work.count) {
    const ptx_block *block = &cfg->blocks[work.items[--work.count]];
    for (uint32_t p = 0; p < block->predecessor_count; p++)
      if (!j->warps_ahead[block->predecessors[p]]) {
        j->warps_ahead[block->predecessors[p]] = true;
        FF_PUSH(&work, block->predecessors[p]);
      }
  }
  free(work.items);
}

/* Some lanes go from here to warp operations, and others come to none any more. */
static bool is_mixed(const judge *j, const ptx_block *block) {
  const ptx_instr *last = &j->func->instrs[block->end - 1];
  bool some = false, others = ptx_divide_leaves(j->func, last);
  for (uint32_t i = 0; i < block->successor_count; i++) {
    if (j->warps_ahead[block->successors[i]]) some = true;
    else others = true;
  }
  return some && others;
}

/* The branch is taken by the lanes that stay, or by the ones that leave. */
static uint8_t ballot_of(const judge *j, const ptx_block *block) {
  const ptx_instr *last = &j->func->instrs[block->end - 1];
  if (last->opcode != PTX_OP_BRA) return PTX_STEP_BALLOT; /* a guarded exit */
  uint32_t target = last->operands[0].label;
  bool stays = target < j->func->instr_count && j->warps_ahead[j->divide->cfg->block_of[target]];
  return stays ? PTX_STEP_BALLOT | PTX_STEP_TAKEN : PTX_STEP_BALLOT;
}

static void mark_masks(judge *j) {
  for (uint32_t i = 0; i < j->func->instr_count; i++)
    if (ptx_membermask(&j->func->instrs[i]) != UINT32_MAX) j->facts->steps[i] |= PTX_STEP_MASK;
}

/* Lanes that leave are not missed by the others' warp operations where all lanes of the warp come to the branch
 * together. */
static void judge_warps(judge *j) {
  const ptx_cfg *cfg = j->divide->cfg;
  bool *mixed = ff_alloc(cfg->block_count + (size_t)1);
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    const ptx_instr *last = &j->func->instrs[cfg->blocks[b].end - 1];
    mixed[b] = j->divide->divides[b] && is_mixed(j, &cfg->blocks[b]);
    if (!mixed[b]) continue;
    if (!j->mixed_line) j->mixed_line = last->place.line;
    j->facts->masks = true;
    if (last->opcode == PTX_OP_BRX)
      refuse(j->f, &j->facts->reason,
             "%s: some lanes of a warp may leave by the branch at line %u, before others are done with each other",
             j->func->name, last->place.line);
    else j->facts->steps[cfg->blocks[b].end - 1] |= ballot_of(j, &cfg->blocks[b]);
  }
  if (j->facts->masks) {
    if (j->outer_warps)
      refuse(
          j->f, &j->facts->reason,
          "%s: some lanes of a warp may leave at line %u, before others come to a barrier with a count or to a function with warp operations",
          j->func->name, j->mixed_line);
    bool *inside = ptx_divide_regions(j->divide, mixed);
    for (uint32_t b = 0; b < cfg->block_count; b++)
      if (mixed[b] && inside[b])
        refuse(
            j->f, &j->facts->reason,
            "%s: some lanes of a warp may leave at line %u, where not all lanes come, before others are done with each other",
            j->func->name, j->func->instrs[cfg->blocks[b].end - 1].place.line);
    free(inside);
    mark_masks(j);
  }
  free(mixed);
}

static void judge_barriers(judge *j) {
  ptx_persistent_facts *facts = j->facts;
  uint32_t calls_line = 0;
  for (uint32_t i = 0; i < j->func->instr_count; i++) {
    const ptx_instr *instr = &j->func->instrs[i];
    const ptx_operand *number;
    const summary *callee = callee_of(j, instr);
    bool divided = ptx_divide_at(j->divide, i), all = barrier_of(instr, &number) == BARRIER_ALL;
    if (callee && callee->barriers && !calls_line) calls_line = instr->place.line;
    if (callee && callee->barriers && divided) facts->drains = true;
    if (!all) continue;
    facts->steps[i] |= PTX_STEP_BARRIER;
    facts->drains |= divided;
    facts->reduces |= ptx_has(instr, PTX_MOD_RED);
  }
  if (facts->drains && calls_line)
    refuse(j->f, &facts->reason,
           "%s calls a function that waits at a barrier at line %u, and threads may leave before others do that",
           j->func->name, calls_line);
  while (facts->barrier < BARRIERS && (j->s->counted >> facts->barrier & 1)) facts->barrier++;
  if (j->s->counted & UNKNOWN_BARRIER)
    refuse(j->f, &facts->reason, "%s has a barrier with a count whose number is not a constant", j->func->name);
  if (facts->barrier == BARRIERS) refuse(j->f, &facts->reason, "%s uses all 16 barriers", j->func->name);
}

static void judge_kernel(finder *f, const ptx_func *func, ptx_persistent_facts *facts) {
  const summary *s = &f->summaries[func->index];
  judge j = {.f = f, .func = func, .s = s, .facts = facts};
  facts->steps = ff_alloc(func->instr_count + (size_t)1);
  facts->copies = s->copies;
  facts->reason = f->grid[func->index].reason;
  if (!facts->reason) facts->reason = s->reason;
  if (s->exits)
    refuse(f, &facts->reason, "%s calls %s, which ends threads at line %u", func->name, s->exits, s->exit_line);
  if (s->inits && !s->invals)
    refuse(f, &facts->reason, "%s sets up an mbarrier and never takes it down (mbarrier.inval)", func->name);
  if (facts->reason || !func->instr_count) return;
  j.divide = ptx_divide_find(func);
  if (!j.divide) {
    refuse(f, &facts->reason, "%s is too large to be looked through", func->name);
    return;
  }
  find_warps_ahead(&j);
  judge_barriers(&j);
  if (!f->options->whole_warps) judge_warps(&j);
  const ptx_module *m = f->module;
  if ((facts->drains || facts->masks) && (m->target < 70 || m->version_major < 6))
    refuse(f, &facts->reason, "%s: threads may leave before others are done with them, which needs sm_70 and PTX 6.0",
           func->name);
  free(j.warps_ahead);
  ptx_divide_free(j.divide);
}

void ptx_persistent_facts_find(const ptx_module *module, const ptx_window_facts *grid,
                               const ptx_persistent_options *options, ff_arena *arena, ptx_persistent_facts *facts) {
  finder f = {.module = module, .grid = grid, .options = options, .arena = arena};
  f.summaries = ff_alloc((module->func_count + (size_t)1) * sizeof *f.summaries);
  f.callers = ptx_callers_create(module->func_count);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (module->funcs[i]->has_body) see_func(&f, module->funcs[i]);
  spread(&f);
  ptx_callers_free(f.callers);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (module->funcs[i]->entry && module->funcs[i]->has_body) judge_kernel(&f, module->funcs[i], &facts[i]);
  free(f.summaries);
}
