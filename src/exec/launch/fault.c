/* SPDX-License-Identifier: Apache-2.0 */
/* What ended a launch, in words.
 *
 * Several blocks may fault at the same time on different workers: the one with the smallest index is reported, so that
 * a run does not depend on the number of workers. Blocks behind it stop (core_launch.stop_above). */
#include "exec/launch/fault.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exec/memory/overrun.h"
#include "exec/memory/system_memory.h"
#include "exec/decode/program.h"
#include "exec/memory/visibility.h"
#include "ptx/analysis/declared.h"

static void thread_of(const core_warp *w, uint32_t lane, uint32_t thread[3]) {
  const uint32_t *size = w->launch->block;
  uint32_t linear = w->index * EXEC_LANES + lane;
  thread[0] = linear % size[0];
  thread[1] = linear / size[0] % size[1];
  thread[2] = linear / size[0] / size[1];
}

static void add_place(ff_text *text, const core_warp *w, const exec_instr *i, uint32_t lane) {
  const ptx_func *func = w->frame->function->source;
  uint32_t thread[3];
  thread_of(w, lane, thread);
  ptx_put_thread(w->launch->functions[0]->name, w->block->ctaid, thread, text);
  if (i->index < func->instr_count) ptx_put_place(func, &func->instrs[i->index], w->frame->parent != NULL, text);
}

static _Noreturn void leave(core_warp *w, const exec_instr *i, uint32_t lane, exec_fault_kind kind, uint64_t address,
                            ff_text *text) {
  core_launch *launch = w->launch;
  uint64_t block = w->block->index;
  if (i->index > w->segment) core_count(w, i->index); /* what was executed up to it */
  pthread_mutex_lock(&launch->lock);
  if (launch->fault.kind == EXEC_FAULT_NONE || block < launch->fault_block) {
    exec_fault *fault = &launch->fault;
    const ptx_func *func = w->frame->function->source;
    launch->fault_block = block;
    fault->kind = kind;
    memcpy(fault->block, w->block->ctaid, sizeof fault->block);
    thread_of(w, lane, fault->thread);
    fault->address = address;
    fault->line = i->index < func->instr_count ? func->instrs[i->index].place.line : 0;
    snprintf(fault->message, sizeof fault->message, "%s", text->chars);
  }
  if (block < __atomic_load_n(&launch->stop_above, __ATOMIC_RELAXED))
    __atomic_store_n(&launch->stop_above, block, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&launch->lock);
  free(text->chars);
  longjmp(w->worker->escape, 1);
}

_Noreturn void core_fault(core_warp *w, const exec_instr *i, uint32_t lane, exec_fault_kind kind, uint64_t address,
                          const char *format, ...) {
  char what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  ff_text text = {0};
  ff_text_add(&text, "%s", what);
  add_place(&text, w, i, lane);
  leave(w, i, lane, kind, address, &text);
}

_Noreturn void core_fault_assert(core_warp *w, const exec_instr *i, uint32_t lane, const char *message) {
  ff_text text = {0};
  ff_text_add(&text, "%s", message);
  add_place(&text, w, i, lane);
  leave(w, i, lane, EXEC_FAULT_ASSERT, 0, &text);
}

/* ---- accesses ---- */

static const char *action(const exec_access *a) {
  return a->op == EXEC_OP_LOAD ? "read" : a->op == EXEC_OP_STORE ? "write" : "atomic";
}

static void add_allocation(ff_text *text, const exec_allocation *allocation) {
  char bytes[32];
  ff_text_add(text, "%s, %s at 0x%" PRIx64 " (%" PRIu64 " bytes)", allocation->name,
              ff_format_bytes(allocation->bytes, bytes, sizeof bytes), allocation->address, allocation->bytes);
}

/* Where the address lies in relation to what is allocated. */
static void add_neighbour(ff_text *text, const core_warp *w, uint64_t address, uint32_t bytes, bool writes) {
  const exec_memory *memory = w->launch->memory;
  const exec_allocation *holder = exec_memory_find(memory, address);
  if (!holder && (holder = exec_memory_find(memory, address + bytes - 1)) && !holder->freed) {
    ff_text_add(text, "\n  it begins before ");
    add_allocation(text, holder);
    return;
  }
  if (holder && holder->freed) {
    ff_text_add(text, "\n  it is %" PRIu64 " bytes into ", address - holder->address);
    add_allocation(text, holder);
    ff_text_add(text, ", which was freed");
    return;
  }
  if (holder && holder->range == EXEC_RESERVED) {
    ff_text_add(text, "\n  it is %" PRIu64 " bytes into ", address - holder->address);
    add_allocation(text, holder);
    ff_text_add(text, ": reserved but not mapped");
    return;
  }
  const char *closed =
      holder && !holder->read_only && !exec_memory_may(holder, writes) ? exec_memory_why_closed(holder) : NULL;
  if (closed) {
    ff_text_add(text, "\n  it is %" PRIu64 " bytes into ", address - holder->address);
    add_allocation(text, holder);
    ff_text_add(text, ": %s", closed);
    return;
  }
  if (holder && holder->range == EXEC_MAPPED && !exec_memory_may(holder, writes)) {
    ff_text_add(text, "\n  it is %" PRIu64 " bytes into ", address - holder->address);
    add_allocation(text, holder);
    ff_text_add(text, exec_memory_may(holder, false) ? ": mapped for reading only"
                                                     : ": mapped without access (cuMemSetAccess gives it)");
    return;
  }
  if (holder && writes && holder->read_only) {
    ff_text_add(text, "\n  it is in constant memory: ");
    add_allocation(text, holder);
    return;
  }
  if (holder) {
    ff_text_add(text, "\n  it runs over the end of ");
    add_allocation(text, holder);
    return;
  }
  ff_text host = {0};
  if (exec_system_memory_describe(memory, address, &host)) {
    ff_text_add(text, "\n  it is in %s, which kernels of this machine cannot access; %s", host.chars, EXEC_REACHED_BY);
    free(host.chars);
    return;
  }
  const exec_allocation *nearest = exec_memory_nearest(memory, address);
  if (!nearest) {
    ff_text_add(text, "\n  nothing is allocated");
    return;
  }
  bool before = address < nearest->address;
  uint64_t distance = before ? nearest->address - address : address - (nearest->address + nearest->bytes);
  ff_text_add(text, "\n  it is %" PRIu64 " bytes %s the nearest allocation, ", distance,
              before ? "before" : "behind the end of");
  add_allocation(text, nearest);
}

static const char *space_name(ptx_space space) {
  switch (space) {
  case PTX_SPACE_SHARED: return "shared";
  case PTX_SPACE_LOCAL: return "local";
  case PTX_SPACE_CONST: return "constant";
  case PTX_SPACE_GLOBAL: return "global";
  default: return "generic";
  }
}

_Noreturn void core_fault_access(core_warp *w, const exec_instr *i, uint32_t lane, exec_fault_kind kind,
                                 uint64_t address, uint32_t bytes) {
  const exec_access *a = i->side;
  ff_text text = {0};
  ptx_space space = (ptx_space)a->space;
  bool generic_shared = space == PTX_SPACE_GENERIC && address - EXEC_SHARED_WINDOW < EXEC_CLUSTER_BYTES;
  bool generic_local = space == PTX_SPACE_GENERIC && address - EXEC_LOCAL_WINDOW < EXEC_WINDOW_BYTES;
  if (generic_shared) space = PTX_SPACE_SHARED;
  if (generic_local) space = PTX_SPACE_LOCAL;
  if (kind == EXEC_FAULT_MISALIGNED) {
    ff_text_add(&text, "misaligned %s %s of %u bytes at 0x%" PRIx64 ": the address must be a multiple of %u",
                space_name(space), action(a), bytes, address, bytes);
  } else if (kind == EXEC_FAULT_INVALID_SPACE) {
    ff_text_add(&text, "%s of %u bytes at 0x%" PRIx64 ": not possible in %s memory", action(a), bytes, address,
                space_name(space));
  } else {
    ff_text_add(&text, "illegal %s %s of %u bytes at 0x%" PRIx64, space_name(space), action(a), bytes, address);
    if (space == PTX_SPACE_SHARED)
      ff_text_add(&text, "\n  the block has %u bytes of shared memory", w->launch->shared_bytes);
    else if (space == PTX_SPACE_LOCAL)
      ff_text_add(&text, "\n  the thread has %u bytes of local memory in use", w->frame->stack);
    else add_neighbour(&text, w, address, bytes, a->op != EXEC_OP_LOAD);
  }
  add_place(&text, w, i, lane);
  leave(w, i, lane, kind, address, &text);
}

_Noreturn void core_fault_undeclared(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                                     uint32_t need) {
  const exec_launch_request *request = w->launch->request;
  const exec_access *a = i->side;
  ff_text text = {0};
  ptx_use_explain(request->uses, request->use_count, w->block->ctaid, (ptx_space)a->space, address, bytes, need, &text);
  add_place(&text, w, i, lane);
  leave(w, i, lane, EXEC_FAULT_UNDECLARED, address, &text);
}

/* ---- no thread can go on ---- */

static uint32_t line_of(const exec_split *split) {
  const ptx_func *func = split->frame->function->source;
  return split->pc->index < func->instr_count ? func->instrs[split->pc->index].place.line : 0;
}

static void add_waiting(ff_text *text, const core_warp *w, const exec_split *split) {
  if (split->state == SPLIT_BARRIER && split->barrier == EXEC_TENSOR_BARRIER)
    ff_text_add(text, "\n  warp %u: waits for columns of tensor memory that no other warp can free or allocate with it",
                w->index);
  else if (split->state == SPLIT_BARRIER)
    ff_text_add(text, "\n  warp %u: lanes 0x%08x wait at barrier %u", w->index, split->mask, split->barrier);
  else
    ff_text_add(text, "\n  warp %u: lanes 0x%08x wait for lanes 0x%08x", w->index, split->mask,
                split->member & w->live & ~split->mask);
  ff_text_add(text, ", PTX line %u", line_of(split));
}

_Noreturn void core_fault_deadlock(core_block *block) {
  ff_text text = {0};
  core_warp *first = NULL;
  const exec_split *at = NULL;
  core_barrier_settle(block);
  ff_text_add(&text, "no thread of the block can go on: a barrier can never be met");
  for (uint32_t n = 0, lines = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    for (uint32_t s = 0; s < w->other_count; s++) {
      if (!first) {
        first = w;
        at = &w->others[s];
      }
      if (lines++ < 8) add_waiting(&text, w, &w->others[s]);
      if (lines == 9) ff_text_add(&text, "\n  ...");
    }
  }
  first->frame = at->frame;
  uint32_t lane = (uint32_t)__builtin_ctz(at->mask);
  add_place(&text, first, at->pc, lane);
  leave(first, at->pc, lane, EXEC_FAULT_BARRIER, 0, &text);
}

_Noreturn void core_fault_stuck(core_block *block) {
  ff_text text = {0};
  core_warp *first = NULL;
  ff_text_add(&text, "no thread of the block can go on: the phase of an mbarrier can never end");
  for (uint32_t n = 0, lines = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    if (!(block->ready >> n & 1)) continue;
    if (!w->active) core_pick(w);
    if (!first) first = w;
    exec_split running = {.mask = w->active, .pc = w->pc, .frame = w->frame};
    if (lines++ < 8)
      ff_text_add(&text, "\n  warp %u: lanes 0x%08x wait at an mbarrier, PTX line %u", n, w->active, line_of(&running));
    if (lines == 9) ff_text_add(&text, "\n  ...");
  }
  uint32_t lane = (uint32_t)__builtin_ctz(first->active);
  add_place(&text, first, first->pc, lane);
  leave(first, first->pc, lane, EXEC_FAULT_BARRIER, 0, &text);
}

void core_overrun_explain(const core_warp *w, const exec_instr *i, uint32_t lane, const exec_allocation *allocation,
                          uint64_t address, uint32_t bytes, ff_text *text) {
  const char *did = action(i->side);
  ff_text_add(text, "%s %s of %u bytes at 0x%" PRIx64 " goes over the end of ", *did == 'a' ? "an" : "a", did, bytes,
              address);
  add_allocation(text, allocation);
  ff_text_add(text, ", but not of its last page");
  add_place(text, w, i, lane);
}

/* Warps that wait for columns, while another warp, which may have them, looks at memory. */
static void add_waiting_for_columns(ff_text *text, const core_block *block) {
  if (!(block->barriers_waiting >> EXEC_TENSOR_BARRIER & 1)) return;
  for (uint32_t n = 0; n < block->warp_count; n++)
    for (uint32_t s = 0; s < block->warps[n].other_count; s++) {
      const exec_split *split = &block->warps[n].others[s];
      if (split->state == SPLIT_BARRIER && split->barrier == EXEC_TENSOR_BARRIER)
        ff_text_add(text, "\n  warp %u of the block waits for columns of tensor memory, PTX line %u", n,
                    line_of(split));
    }
}

void core_tell_waiting(core_block *block) {
  const exec_config *config = block->launch->config;
  core_warp *w = &block->warps[block->at];
  core_barrier_settle(block);
  const exec_instr *at = w->pc;
  uint32_t lanes = w->active;
  if (!lanes && !w->other_count) return;
  if (!lanes) { /* the loop has a barrier in it: the place where its first threads wait */
    lanes = w->others[0].mask;
    at = w->others[0].pc;
    w->frame = w->others[0].frame;
  }
  ff_text text = {0};
  ff_text_add(&text, "a block has been waiting for %u s for memory that it reads to change", config->waiting_ms / 1000);
  add_place(&text, w, at, (uint32_t)__builtin_ctz(lanes));
  add_waiting_for_columns(&text, block);
  config->waiting(text.chars);
  free(text.chars);
}
