/* SPDX-License-Identifier: Apache-2.0 */
/* A thread block in progress: its warps take turns until all have exited.
 *
 * A warp runs until it exits, waits, or has used its turn up; a block until it has finished or until all its warps that
 * can run have used up a turn by polling, without any barrier or exit in between: then they wait for something outside
 * the block, and another block gets its turn. If the loop that waits has barriers in it (all threads ask what one has
 * read), no turn ends by polling: the block gives way after so many barriers with a poll before each. A warp that
 * computes for long keeps its block going, but not for ever: it may wait in a way that does not look like it.
 *
 * The warps of a block start together: the first turn of each ends at a store in a loop or at the end of a loop's first
 * round. On a device they do, and programs rely on it without saying so (eight warps read an element, add the same row
 * to it, and all write it). */
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/launch/native.h"
#include "exec/launch/print_order.h"
#include "exec/launch/reserved_shared.h"
#include "exec/memory/tensor_memory.h"

#define BUSY_TURNS 64u                 /* turns of computing after which a block counts as waiting */
#define MOST_BARRIERS 8192u            /* after which it counts as waiting, too */
#define COUNT_STEP (UINT64_C(1) << 16) /* warp instructions that a block may be ahead of the launch's total */

/* ---- contexts: kept by the worker for the next block ---- */

/* They are what the last launch left, if its blocks had the same sides: launches of one warp do little else. */
static void set_thread_ids(core_block *block, const core_launch *launch) {
  if (!memcmp(block->sides, launch->block, sizeof block->sides)) return;
  memcpy(block->sides, launch->block, sizeof block->sides);
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++) {
      uint32_t linear = n * EXEC_LANES + lane;
      w->tid[0][lane] = linear % launch->block[0];
      w->tid[1][lane] = linear / launch->block[0] % launch->block[1];
      w->tid[2][lane] = linear / launch->block[0] / launch->block[1];
    }
    uint32_t left = block->thread_count - n * EXEC_LANES;
    w->present = left >= EXEC_LANES ? EXEC_ALL_LANES : (1u << left) - 1;
  }
}

/* Local memory: 32 lanes of `limit` bytes per warp, not cleared (frames do that). */
static void set_local(core_block *block, const core_launch *launch) {
  uint64_t per_warp = (uint64_t)launch->stack_limit * EXEC_LANES, wanted = per_warp * block->warp_count;
  if (wanted > block->local_room) {
    free(block->local);
    block->local = aligned_alloc(64, wanted);
    if (!block->local) block->local = ff_alloc_aligned(64, wanted);
    block->local_room = wanted;
  }
  for (uint32_t n = 0; n < block->warp_count; n++)
    block->warps[n].local = block->local ? block->local + n * per_warp : NULL;
}

/* How far accesses reach: to the end of the widest access, 16 bytes, that begins in what was asked for. A GPU gives out
 * shared memory in larger units, and compilers load a whole vector where the program reads its first elements. A
 * checker looks at the bytes that were asked for. */
static uint32_t shared_reach(const core_launch *launch) {
  uint32_t reserved = reserved_shared_bytes(launch);
  if (reserved) return reserved_shared_at(launch) + reserved;
  return launch->checker ? launch->shared_bytes : (launch->shared_bytes + 15) & ~15u;
}

/* Native code loads windows of up to 256 bytes that begin in the shared memory (compile/generator/shared.c). */
#define WINDOW_ROOM 256u

static void set_shape(core_block *block, core_launch *launch) {
  if (block->warps_room < launch->warp_count) {
    free(block->warps);
    block->warps = ff_alloc_aligned(64, launch->warp_count * sizeof *block->warps);
    block->warps_room = launch->warp_count;
  }
  uint32_t wanted = ((shared_reach(launch) + 63) & ~63u) + WINDOW_ROOM;
  if (block->shared_room < wanted) {
    free(block->shared);
    block->shared = ff_alloc_aligned(64, wanted);
    block->shared_room = wanted;
  }
  if (launch->touches) core_touched_begin(block->worker, launch);
  block->launch = launch;
  block->warp_count = launch->warp_count;
  block->thread_count = launch->thread_count;
  block->shared_bytes = shared_reach(launch);
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    w->block = block;
    w->launch = launch;
    w->worker = block->worker;
    w->index = n;
    w->shared = block->shared;
    w->shared_bytes = block->shared_bytes;
    w->params = launch->params;
    w->trace = core_records(launch) ? &w->writer : NULL;
    w->touched = launch->touches ? block->worker->touched : NULL;
    w->watched = launch->trace || launch->request->uses;
  }
  set_local(block, launch);
  set_thread_ids(block, launch);
  block->shape = launch->shape;
}

static void start_warp(core_block *block, core_warp *w) {
  w->started = false;
  w->known = NULL;
  w->kept_places = NULL;
  w->starting = block->warp_count > 1;
  w->active = 0;
  w->live = w->present;
  w->other_count = w->ready_count = 0;
  w->executed = w->thread_executed = w->accesses = w->sectors = w->diverged = w->mark = 0;
  w->loads = w->waited = w->waited_early = w->inside = w->looks = w->cluster_arrived = 0;
  w->waiting = w->woken = 0;
  w->stuck = false;
  w->unrecorded = 0;
  w->cluster_owes = false;
  w->clock = 0;
  w->x.carry = 0;
  if (block->chunk) trace_chunk_writer(block->chunk, w->index, &w->writer);
}

core_block *core_block_start(core_worker *worker, core_launch *launch, uint64_t index) {
  core_block *block = worker->spare;
  if (block) worker->spare = block->next;
  else block = ff_alloc(sizeof *block);
  block->worker = worker;
  block->next = NULL;
  block->index = index;
  if (block->shape != launch->shape) set_shape(block, launch);
  core_cluster_place(launch, index, block->ctaid);
  block->cluster = &block->own_cluster;
  block->own_cluster.blocks[0] = block; /* those behind `count` do not matter */
  block->own_cluster.count = 1;
  block->own_cluster.live = launch->thread_count;
  block->own_cluster.arrived = 0;
  block->rank = 0;
  block->done = false;
  core_phases_start(block);
  block->work = 0;
  core_declared_start(block);
  block->live_threads = block->thread_count;
  block->ready = block->warp_count == 64 ? UINT64_MAX : (UINT64_C(1) << block->warp_count) - 1;
  block->at = block->idle_turns = block->busy_turns = block->stuck_turns = 0;
  for (uint32_t m = block->barriers_waiting; m; m &= m - 1) /* the others are 0: core_block_check */
    block->barriers[__builtin_ctz(m)] = (core_barrier){0};
  block->barriers_waiting = 0;
  block->parked = block->parked_threads = 0;
  block->pulled = false;
  if (block->tensor) block->tensor->used = false;
  block->barrier_count = block->counted = 0;
  block->print.length = 0;
  memset(block->shared, 0, block->shared_bytes);
  block->chunk = core_records(launch) ? trace_chunk_begin(launch->trace, index) : NULL;
  for (uint32_t n = 0; n < block->warp_count; n++) start_warp(block, &block->warps[n]);
  exec_checker *checker = launch->checker;
  if (checker) checker->block_begin(checker, block);
  return block;
}

/* ---- turns ---- */

static bool too_many(const core_launch *launch, uint64_t executed) {
  return launch->config->max_instructions && executed > launch->config->max_instructions;
}

static _Noreturn void stop_at(core_warp *w, uint64_t executed) {
  uint32_t lane = (uint32_t)__builtin_ctz(w->active);
  if (!too_many(w->launch, executed)) core_fault(w, w->pc, lane, EXEC_FAULT_TIMEOUT, 0, "the kernel was stopped");
  core_fault(w, w->pc, lane, EXEC_FAULT_TIMEOUT, 0,
             "the kernel is not done after %llu warp instructions (the limit is %llu)", (unsigned long long)executed,
             (unsigned long long)w->launch->config->max_instructions);
}

/* Adds to a counter of the launch that its workers share, and that others may read; returns the sum. */
static uint64_t add_shared(const core_launch *launch, uint64_t *counter, uint64_t n) {
  if (launch->threads > 1) return __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
  uint64_t sum = __atomic_load_n(counter, __ATOMIC_RELAXED) + n; /* by one worker, which need not lock the bus */
  __atomic_store_n(counter, sum, __ATOMIC_RELAXED);
  return sum;
}

static bool is_parked(const core_block *block, const core_warp *w) { return block->parked >> w->index & 1; }

/* Adds to the launch's total of warp instructions, and stops for the reasons that are looked at now and then. A block
 * may run for long, perhaps it is the last one: the warps whose next turns begin find code that has come meanwhile. */
static void count_all(core_block *block, core_warp *w) {
  core_launch *launch = block->launch;
  uint64_t total = add_shared(launch, &launch->executed, block->counted);
  block->counted = 0;
  if (launch->native_job) exec_native_ask(launch);
  if (block->index > __atomic_load_n(&launch->stop_above, __ATOMIC_RELAXED)) longjmp(block->worker->escape, 1);
  bool cancelled = launch->config->cancel && __atomic_load_n(launch->config->cancel, __ATOMIC_RELAXED);
  if ((cancelled || too_many(launch, total)) && w->active && !is_parked(block, w)) stop_at(w, total);
}

/* The same of a turn, once it is worth it. */
static inline void count_turn(core_block *block, core_warp *w, uint64_t before, uint64_t least) {
  block->counted += w->executed - before;
  if (block->counted >= least) count_all(block, w);
}

/* A grid of many short blocks is stopped between two of them. */
static void check_start(core_block *block) {
  core_launch *launch = block->launch;
  uint64_t total = __atomic_load_n(&launch->executed, __ATOMIC_RELAXED);
  bool cancelled = launch->config->cancel && __atomic_load_n(launch->config->cancel, __ATOMIC_RELAXED);
  if (!cancelled && !too_many(launch, total)) return;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    if (!w->live || (w->started && !w->active) || is_parked(block, w)) continue;
    if (!w->started) core_warp_start(w);
    stop_at(w, total);
  }
}

static uint32_t next_ready(const core_block *block) {
  uint64_t behind = block->ready & ~((UINT64_C(2) << block->at) - 1);
  return (uint32_t)__builtin_ctzll(behind ? behind : block->ready);
}

static void warp_done(core_block *block, core_warp *w) {
  block->ready &= ~(UINT64_C(1) << w->index);
  if (w->inside) core_mark_leave(w);
  if (w->cluster_owes) core_cluster_trace(w, true);
  if (w->trace) trace_put_exit(w->trace);
}

/* The block has taken a virtual block: what it has done so far says when its next turn is. The last one took as long as
 * its slowest warp. */
static block_result pulled(core_block *block) {
  block->pulled = false;
  uint64_t longest = 0;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    uint64_t all = w->executed + w->sectors;
    if (longest < all - w->mark) longest = all - w->mark;
    w->mark = all;
  }
  block->work += longest;
  return BLOCK_PULLED;
}

/* A turn of w is over. Has the block passed so many barriers since its own turn began, with polls before them or not,
 * that it may wait for another one? */
static bool waits_at_barriers(core_block *block, const core_warp *w) {
  block->looked |= w->polls > 0;
  if (block->seen_barriers != block->barrier_count) {
    block->seen_barriers = block->barrier_count;
    block->looks += block->looked;
    block->looked = false;
  }
  return block->looks >= EXEC_SPIN_POLLS || block->barrier_count - block->first_barrier >= MOST_BARRIERS;
}

static void begin_turn(core_block *block) {
  block->idle_turns = block->busy_turns = block->looks = 0;
  block->first_barrier = block->seen_barriers = block->barrier_count;
  block->moved = block->looked = false;
}

/* ---- blocks that only wait at mbarriers ---- */

#define STUCK_TURNS 256u /* so many that all splits of a warp had theirs */

static uint64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A turn of the block is over. */
static void note_stuck(core_block *block) {
  bool stuck = !block->moved && block->live_threads;
  for (uint64_t m = block->ready; m && stuck; m &= m - 1) stuck = block->warps[__builtin_ctzll(m)].stuck;
  if (!stuck) block->stuck_turns = 0;
  else if (!block->stuck_turns++) block->stuck_since = milliseconds();
}

/* Only blocks of the cluster can end a phase, and all of them wait for one. They do so for a while, as a loop may ask
 * the clock, too, and go on when it has waited for long enough. */
void core_block_check_stuck(const core_cluster *cluster) {
  const exec_config *config = cluster->blocks[0]->launch->config;
  core_block *stuck = NULL;
  for (uint32_t n = 0; n < cluster->count; n++) {
    core_block *block = cluster->blocks[n];
    if (block->done || !block->ready) continue;
    if (block->stuck_turns < STUCK_TURNS) return;
    if (!stuck || block->stuck_since > stuck->stuck_since) stuck = block;
  }
  if (stuck && config->waiting_ms && milliseconds() - stuck->stuck_since >= config->waiting_ms) core_fault_stuck(stuck);
}

static block_result run_turns(core_block *block) {
  core_launch *launch = block->launch;
  begin_turn(block);
  check_start(block);
  while (block->live_threads) {
    if (!block->ready && block->cluster->count > 1) return BLOCK_YIELD;
    if (!block->ready) core_fault_deadlock(block);
    if (!(block->ready >> block->at & 1)) block->at = next_ready(block);
    core_warp *w = &block->warps[block->at];
    uint64_t before = w->executed;
    w->budget = EXEC_TURN_BUDGET;
    w->polls = 0;
    w->stuck = false;
    bool first = w->starting;
    if (ff_check_level >= 2) core_block_check(block);
    warp_turn turn = launch->isa->run(w);
    w->starting = false;
    w->stuck &= w->polls == EXEC_SPIN_POLLS; /* else it looked at memory, too */
    if (turn != TURN_YIELD) block->moved = true;
    if (turn == TURN_DONE) {
      warp_done(block, w);
    } else if (turn == TURN_BLOCKED) {
      if (!w->ready_count) block->ready &= ~(UINT64_C(1) << w->index);
    }
    if (turn == TURN_YIELD) {
      count_turn(block, w, before, 0);
      block->at = next_ready(block);
      if (block->pulled) return pulled(block);
      if (first) continue;
      bool waits = w->polls >= EXEC_SPIN_POLLS || ++block->busy_turns > BUSY_TURNS;
      block->moved |= w->polls < EXEC_SPIN_POLLS;
      block->idle_turns = waits ? block->idle_turns + 1 : 0;
      block->polled = block->busy_turns <= BUSY_TURNS;
      if (block->idle_turns >= (uint32_t)__builtin_popcountll(block->ready)) return BLOCK_YIELD;
    } else {
      count_turn(block, w, before, COUNT_STEP);
    }
    bool news = w->polls || block->seen_barriers != block->barrier_count; /* else it waits no more than before */
    if (news && waits_at_barriers(block, w) && block->live_threads) {
      block->polled = block->looks >= EXEC_SPIN_POLLS;
      return BLOCK_YIELD;
    }
  }
  return BLOCK_DONE;
}

block_result core_block_run(core_block *block) {
  if (block->launch->touches) core_touched_block(block);
  block_result result = run_turns(block);
  note_stuck(block);
  return result;
}

/* ---- the end ---- */

static void collect_stats(core_block *block) {
  exec_stats *stats = &block->worker->stats, sum = {0};
  for (uint32_t n = 0; n < block->warp_count; n++) {
    const core_warp *w = &block->warps[n];
    sum.warp_instructions += w->executed;
    sum.thread_instructions += w->thread_executed;
    sum.warp_accesses += w->accesses;
    sum.sectors += w->sectors;
    sum.divergent_branches += w->diverged;
  }
  stats->warp_instructions += sum.warp_instructions;
  stats->thread_instructions += sum.thread_instructions;
  stats->warp_accesses += sum.warp_accesses;
  stats->sectors += sum.sectors;
  stats->divergent_branches += sum.divergent_branches;
  stats->barriers += block->barrier_count;
}

static void back_to_pool(core_block *block) {
  exec_checker *checker = block->launch->checker;
  if (checker) checker->block_end(checker, block);
  free(block->errors);
  block->errors = NULL;
  block->next = block->worker->spare;
  block->worker->spare = block;
}

void core_block_end(core_block *block) {
  core_launch *launch = block->launch;
  collect_stats(block);
  block->worker->stats.blocks++;
  core_output_flush(launch->output, block, true);
  if (ff_check_level >= 2) core_block_check_end(block);
  if (block->chunk) trace_chunk_publish(block->chunk);
  add_shared(launch, &launch->executed, block->counted);
  add_shared(launch, &launch->progress, 1);
  if (launch->config->progress_blocks) __atomic_add_fetch(launch->config->progress_blocks, 1, __ATOMIC_RELAXED);
  back_to_pool(block);
}

/* Frames of a warp that stopped in the middle: those of the running split and of the others, each once. */
static void free_frames(core_warp *w) {
  uint32_t masks[EXEC_LANES + 1];
  exec_frame *frames[EXEC_LANES + 1];
  uint32_t count = 0, running = w->live; /* w->active may be less: a guarded instruction has faulted */
  for (uint32_t s = 0; s < w->other_count; s++) running &= ~w->others[s].mask;
  if (running) {
    masks[count] = running;
    frames[count++] = w->frame;
  }
  for (uint32_t s = 0; s < w->other_count; s++, count++) {
    masks[count] = w->others[s].mask;
    frames[count] = w->others[s].frame;
  }
  for (uint32_t n = 0; n < count; n++)
    for (exec_frame *frame = frames[n], *parent; frame; frame = parent) {
      parent = frame->parent;
      frame->lanes &= ~masks[n];
      if (!frame->lanes) core_frame_free(w->worker, frame);
    }
}

void core_block_abort(core_block *block) {
  collect_stats(block);
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    if (w->started && w->live) free_frames(w);
    if (w->inside && w->live) core_mark_leave(w);
    if (w->trace && w->live) trace_put_exit(w->trace);
  }
  core_output_flush(block->launch->output, block, true);
  if (block->chunk) trace_chunk_publish(block->chunk);
  block->shape = 0;
  back_to_pool(block);
}

void core_block_destroy(core_block *block) {
  free(block->shared);
  free(block->local);
  free(block->warps);
  free(block->own_ranges);
  free(block->phases);
  free(block->tensor);
  free(block->print.chars);
  free(block);
}
