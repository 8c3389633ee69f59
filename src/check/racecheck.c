/* SPDX-License-Identifier: Apache-2.0 */
/* racecheck: tells race.h of every event of a launch, and makes findings of the hazards; and looks at barriers that not
 * all threads reach together.
 *
 * Levels: an error, unless the later or the earlier write changed nothing (info), or both accesses are of one warp
 * whose lanes had not diverged in between (warning: right as long as the warp runs in step, which CUDA does not
 * promise). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_private.h"
#include "exec/decode/program.h"

static const ptx_instr *instruction_of(const core_warp *w, const exec_instr *i) {
  const ptx_func *func = w->function->source;
  return i->index < func->instr_count ? &func->instrs[i->index] : NULL;
}

/* ---- accesses ---- */

static bool is_strong(const ptx_instr *instr, ptx_space space) {
  static const ptx_mod strong[] = {PTX_MOD_RELAXED, PTX_MOD_ACQUIRE, PTX_MOD_RELEASE, PTX_MOD_ACQ_REL, PTX_MOD_MMIO};
  /* past the first-level cache: how flags are passed on */
  static const ptx_mod global[] = {PTX_MOD_VOLATILE, PTX_MOD_CG, PTX_MOD_CV, PTX_MOD_WT};
  for (size_t n = 0; n < sizeof strong / sizeof *strong; n++)
    if (ptx_has(instr, strong[n])) return true;
  for (size_t n = 0; n < sizeof global / sizeof *global && space != PTX_SPACE_SHARED; n++)
    if (ptx_has(instr, global[n])) return true;
  return ptx_has(instr, PTX_MOD_VOLATILE);
}

static uint32_t flags_of(const exec_watched *a, ptx_space space) {
  const ptx_instr *instr = instruction_of(a->warp, a->instr);
  uint32_t flags = a->access->op == EXEC_OP_LOAD    ? RACE_READ
                   : a->access->op == EXEC_OP_STORE ? RACE_WRITE
                                                    : RACE_ATOMIC | RACE_STRONG;
  if (a->synchronises) return RACE_ATOMIC | RACE_STRONG | RACE_ACQUIRES | RACE_RELEASES | RACE_BLOCK_SCOPE;
  if (!instr) return flags;
  if (is_strong(instr, space)) flags |= RACE_STRONG;
  if (ptx_has(instr, PTX_MOD_CTA)) flags |= RACE_BLOCK_SCOPE;
  if (ptx_has(instr, PTX_MOD_RELEASE) || ptx_has(instr, PTX_MOD_ACQ_REL)) flags |= RACE_RELEASES;
  if ((flags & RACE_STRONG) && (a->access->op == EXEC_OP_LOAD || a->access->returns)) flags |= RACE_ACQUIRES;
  return flags;
}

/* Do the writes of this instruction leave a lane's bytes as they are? Lanes before it that write there, too, are
 * done. */
static bool changes_nothing(check *c, const exec_watched *a, uint32_t lane, unsigned char data[EXEC_LANES][64]) {
  const exec_reach *at = &a->at[lane];
  for (uint32_t m = a->lanes & ((1u << lane) - 1); m; m &= m - 1) {
    uint32_t other = (uint32_t)__builtin_ctz(m);
    if (a->at[other].host == at->host) return !memcmp(data[other], data[lane], a->bytes);
  }
  if (memcmp(at->host, data[lane], a->bytes)) return false;
  if (at->space == PTX_SPACE_SHARED) return race_shared_written(a->warp->block->watched, at->address, a->bytes);
  /* bytes that were not written have no value, even if they are 0 here */
  const check_allocation *allocation = check_allocation_of(c, &at->span->info);
  return !allocation || !allocation->tracked || check_shadow_all(&c->written, at->address, a->bytes);
}

static const char *access_name(const core_warp *w, uint32_t pc, bool write) {
  const core_launch *launch = w->launch;
  for (uint32_t f = 0; f < launch->function_count; f++) {
    const exec_function *function = launch->functions[f];
    if (pc < function->pc_base || pc - function->pc_base >= function->source->instr_count) continue;
    ptx_opcode opcode = function->source->instrs[pc - function->pc_base].opcode;
    if (opcode == PTX_OP_ATOM || opcode == PTX_OP_RED) return "Atomic";
  }
  return write ? "Write" : "Read";
}

static const exec_function *function_of(const core_launch *launch, uint32_t pc) {
  for (uint32_t f = 0; f < launch->function_count; f++)
    if (pc >= launch->functions[f]->pc_base &&
        pc - launch->functions[f]->pc_base < launch->functions[f]->source->instr_count)
      return launch->functions[f];
  return launch->functions[0];
}

static void thread_of(const core_launch *launch, const race_who *who, check_thread *thread) {
  uint32_t linear = who->warp * EXEC_LANES + who->lane;
  const uint32_t *block = launch->block, *grid = launch->grid;
  *thread = (check_thread){{linear % block[0], linear / block[0] % block[1], linear / block[0] / block[1]},
                           {who->block % grid[0], who->block / grid[0] % grid[1], who->block / grid[0] / grid[1]},
                           true};
}

/* The shared variable that has this byte. */
static void add_shared_variable(const core_launch *launch, uint64_t offset, ff_text *out) {
  const exec_kernel *kernel = launch->kernel;
  const exec_shared_var *best = NULL;
  for (size_t n = 0; n < kernel->shared.count; n++) {
    const exec_shared_var *v = &kernel->shared.items[n];
    if (v->offset <= offset && (!best || v->offset >= best->offset)) best = v;
  }
  if (best && best->var->name && (best->var->unsized || offset - best->offset < best->var->size))
    ff_text_add(out, ", byte %" PRIu64 " of %s", offset - best->offset, best->var->name);
}

static void describe_race(check *c, check_finding *f, const exec_watched *a, const race_found *found, ptx_space space,
                          uint32_t pc) {
  static const char *const words[] = {"read after write (RAW)", "write after read (WAR)", "write after write (WAW)"};
  const core_launch *launch = a->warp->launch;
  const exec_function *before = function_of(launch, found->before_pc), *now = function_of(launch, pc);
  ff_text text = {0}, tail = {0};
  f->kernel = ff_strdup(c->title ? c->title : launch->functions[0]->name);
  check_site_fill(c->report, &f->sites[0], before->source, found->before_pc - before->pc_base,
                  access_name(a->warp, found->before_pc, found->hazard != RACE_WAR));
  check_site_fill(c->report, &f->sites[1], now->source, pc - now->pc_base,
                  access_name(a->warp, pc, found->hazard != RACE_RAW));
  f->site_count = 2;
  thread_of(launch, &found->before, &f->threads[0]);
  thread_of(launch, &found->now, &f->threads[1]);
  f->address = found->address;
  f->bytes = a->bytes;
  f->space = check_space_text(space);
  ff_text_add(&text, "Hazard: %s of __%s__ memory at 0x%" PRIx64, words[found->hazard], f->space, found->address);
  if (space == PTX_SPACE_SHARED) add_shared_variable(launch, found->address, &text);
  ff_text_add(&text, "\n");
  if (space != PTX_SPACE_SHARED) check_add_neighbour(c, found->address, 1, &text, NULL);
  if (found->benign) ff_text_add(&text, "The value stays the same\n");
  else if (found->lockstep)
    ff_text_add(&text, "Both threads are of one warp: in order only if it runs in step (__syncwarp promises it)\n");
  f->details = text.chars;
  f->title = ff_strdup("Race");
  if (c->options.backtrace)
    check_stack_add(&c->stack, "Saved host backtrace up to driver entry point at kernel launch time", c->demangle,
                    &tail);
  f->tail = tail.chars;
}

static void take_found(check *c, const exec_watched *a, const race_found *found, ptx_space space, uint32_t pc) {
  check_level level = found->benign ? CHECK_INFO : found->lockstep ? CHECK_WARNING : CHECK_ERROR;
  bool fresh;
  uint64_t key = check_key(CHECK_RACE, a->warp->launch->kernel, (uint64_t)found->before_pc << 32 | pc,
                           (void *)(uintptr_t)space, (uint64_t)found->hazard << 8 | level);
  check_finding *f = check_report_find(c->report, CHECK_RACE, level, key, &fresh);
  if (fresh) describe_race(c, f, a, found, space, pc);
}

static bool followed(const exec_reach *at) {
  return at->fault == EXEC_PLACE_GOOD && at->host &&
         (at->space == PTX_SPACE_SHARED || (at->space == PTX_SPACE_GLOBAL && !at->span->info.read_only));
}

static uint32_t access_memory(exec_checker *checker, const exec_watched *a) {
  check *c = check_of(checker);
  core_warp *w = a->warp;
  race_block *block = w->block->watched;
  unsigned char data[EXEC_LANES][64];
  uint32_t running = w->other_count ? a->lanes : UINT32_MAX;
  bool stores = a->access->op == EXEC_OP_STORE && a->bytes <= 64 && a->access->bytes * a->access->elements == a->bytes;
  uint32_t pc = w->function->pc_base + a->instr->index, strong = 0;
  bool copies = a->instr->side != a->access; /* cp.async: its data are not in registers */
  if (!block) return a->lanes;
  for (uint32_t m = a->lanes; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    const exec_reach *at = &a->at[lane];
    if (!followed(at)) continue;
    uint32_t flags = flags_of(a, at->space);
    if (stores && !copies) {
      exec_watched_data(a, lane, data[lane]);
      if (changes_nothing(c, a, lane, data)) flags |= RACE_SAME;
    }
    race_found found[3];
    uint32_t count = race_access(block, w->index, lane, at->space == PTX_SPACE_SHARED, at->address, a->bytes, flags, pc,
                                 running, found, 3);
    for (uint32_t n = 0; n < count && !c->muted; n++) take_found(c, a, &found[n], at->space, pc);
    if (flags & RACE_STRONG) strong |= 1u << lane;
    if (a->access->op != EXEC_OP_LOAD && at->space == PTX_SPACE_GLOBAL)
      check_shadow_set(&c->written, at->address, a->bytes);
  }
  for (uint32_t m = strong; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    race_synchronise(block, w->index, lane, a->at[lane].space == PTX_SPACE_SHARED, a->at[lane].address,
                     flags_of(a, a->at[lane].space));
  }
  return a->lanes;
}

/* ---- what orders ---- */

static void fence(exec_checker *checker, core_warp *w, const exec_instr *i) {
  const ptx_instr *instr = instruction_of(w, i);
  if (w->block->watched) race_fence(w->block->watched, w->index, instr && ptx_has(instr, PTX_MOD_CTA));
}

static void report_barrier(check *c, const core_warp *w, const exec_instr *i, uint32_t lane, check_level level,
                           uint64_t detail, const char *what, const char *details) {
  if (c->muted) return;
  check_finding *f = check_found_at(c, CHECK_BARRIER, level, w, i, lane, detail, NULL);
  if (!f) return;
  ff_text title = {0};
  ff_text_add(&title, "Barrier error detected. %s", what);
  f->title = title.chars;
  f->details = ff_strdup(details);
}

static void meet(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t lanes) {
  check *c = check_of(checker);
  const exec_sync *sync = i->side;
  if (!w->block->watched) return;
  if (!sync->legacy && w->active == lanes)
    for (uint32_t m = lanes; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m), member = exec_u32(&w->x, i->src[3])[lane];
      char details[96];
      if (member >> lane & 1) continue;
      snprintf(details, sizeof details, "The mask 0x%08x lacks the calling thread, lane %u of its warp\n", member,
               lane);
      report_barrier(c, w, i, lane, CHECK_ERROR, 1, "Invalid arguments.", details);
      break;
    }
  race_meet(w->block->watched, w->index, lanes, w->live, sync->kind == EXEC_SYNC_WARP);
}

static void arrive(exec_checker *checker, core_warp *w, const exec_instr *i, uint32_t id, uint32_t expected) {
  if (w->block->watched) race_arrive(w->block->watched, w->index, id);
}

static bool waits_at(const exec_split *split, uint32_t id) {
  return split->state == SPLIT_BARRIER && split->barrier == id;
}

static bool is_aligned(const exec_split *split) {
  const ptx_func *func = split->frame->function->source;
  const ptx_instr *instr = split->pc->index < func->instr_count ? &func->instrs[split->pc->index] : NULL;
  return instr && (instr->opcode == PTX_OP_BAR || ptx_has(instr, PTX_MOD_ALIGNED));
}

/* A barrier that a warp must come to as one (PTX ISA, "bar": .aligned): did its threads? False: none of them is
 * here. */
static bool look_at_warp(check *c, core_warp *w, uint32_t id) {
  const exec_split *first = NULL, *elsewhere = NULL;
  uint32_t here = 0, gone = w->present & ~w->live;
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (!waits_at(split, id)) continue;
    here |= split->mask;
    if (!first) first = split;
    else if (split->pc != first->pc) elsewhere = split;
  }
  if (!first || !is_aligned(first) || c->muted || (!elsewhere && !gone)) return first != NULL;
  char details[160];
  uint32_t lane = (uint32_t)__builtin_ctz(first->mask);
  const exec_function *saved = w->function;
  w->function = first->frame->function;
  if (elsewhere) {
    snprintf(details, sizeof details, "Threads 0x%08x of the warp are here, 0x%08x at another barrier instruction\n",
             first->mask, here & ~first->mask);
    report_barrier(c, w, first->pc, lane, CHECK_ERROR, 2, "Divergent thread(s) in warp.", details);
  } else {
    snprintf(details, sizeof details, "Threads 0x%08x of the warp are here, 0x%08x have ended\n", here, gone);
    report_barrier(c, w, first->pc, lane, CHECK_WARNING, 3, "Divergent thread(s) in warp: some have ended.", details);
  }
  w->function = saved;
  return true;
}

static void release(exec_checker *checker, core_block *block, uint32_t id, uint32_t expected) {
  if (!block->watched) return;
  for (uint32_t n = 0; n < block->warp_count; n++)
    if (look_at_warp(check_of(checker), &block->warps[n], id) && expected) race_depart(block->watched, n, id);
  if (!expected) race_barrier(block->watched);
  race_barrier_over(block->watched, id);
}

static void heap_malloc(exec_checker *checker, core_warp *w, uint64_t address, uint64_t bytes) {
  race_forget(check_of(checker)->race, address, bytes);
}

/* ---- launches and blocks ---- */

static void launch_begin(exec_checker *checker, const core_launch *launch) {
  race_launch(check_of(checker)->race, launch->warp_count);
}

static void block_begin(exec_checker *checker, core_block *block) {
  block->watched = race_block_begin(check_of(checker)->race, (uint32_t)block->index, block->shared_bytes);
}

static void block_end(exec_checker *checker, core_block *block) {
  if (block->watched) race_block_end(block->watched);
  block->watched = NULL;
}

void check_racecheck_hooks(exec_checker *hooks) {
  hooks->launch_begin = launch_begin;
  hooks->launch_end = check_launch_end;
  hooks->block_begin = block_begin;
  hooks->block_end = block_end;
  hooks->access = access_memory;
  hooks->fence = fence;
  hooks->meet = meet;
  hooks->arrive = arrive;
  hooks->release = release;
  hooks->heap_malloc = heap_malloc;
}
