/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a thread block (PTX ISA, "bar, barrier").
 *
 *     barrier.arrived == threads of the splits that wait at it, or of parked warps, + barrier.absent   (core_block_check)
 *
 * Without a thread count a barrier completes when all threads that have not exited have arrived. With one, a warp whose
 * live lanes have all arrived counts 32, as on the hardware, where a barrier counts warps. */
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "exec/memory/tensor_memory.h"

static const exec_sync *sync_of(const exec_instr *i) { return i->side; }

/* Threads that the running split adds: with a count, the last live lanes of a warp bring the dead ones along. */
static uint32_t threads_of(const core_warp *w, const exec_instr *i, uint32_t id, bool counted) {
  uint32_t together = w->active;
  for (uint32_t s = 0; s < w->other_count; s++)
    if (w->others[s].state == SPLIT_BARRIER && w->others[s].barrier == id) together |= w->others[s].mask;
  uint32_t threads = w->active_count;
  if (counted && together == w->live) threads += EXEC_LANES - (uint32_t)__builtin_popcount(w->live);
  return threads;
}

static bool complete(const core_block *block, const core_barrier *barrier) {
  return barrier->arrived && barrier->arrived >= (barrier->expected ? barrier->expected : block->live_threads);
}

static void give_result(const exec_split *split, const core_barrier *barrier) {
  const exec_instr *i = split->pc;
  unsigned char *cell = split->frame->registers + i->dst;
  uint32_t mode = sync_of(i)->mode;
  if (mode == EXEC_BARRIER_POPC) {
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      if (split->mask >> lane & 1) ((uint32_t *)(void *)cell)[lane] = barrier->popc;
  } else if (mode == EXEC_BARRIER_AND || mode == EXEC_BARRIER_OR) {
    bool result = mode == EXEC_BARRIER_AND ? barrier->popc == barrier->threads : barrier->popc != 0;
    uint32_t *predicate = (uint32_t *)(void *)cell;
    *predicate = result ? *predicate | split->mask : *predicate & ~split->mask;
  }
}

static bool waits_at(const core_warp *w, uint32_t id) {
  for (uint32_t s = 0; s < w->other_count; s++)
    if (w->others[s].state == SPLIT_BARRIER && w->others[s].barrier == id) return true;
  return false;
}

static void trace_barrier(core_warp *w, uint32_t id, bool arrive_only, uint32_t expected) {
  if (w->inside) core_mark_leave(w);
  w->looks = 0;
  trace_put_barrier(w->trace, id, arrive_only, expected);
}

/* One BARRIER record per warp that waited; those that only arrived have theirs already. */
static void trace_completion(core_block *block, uint32_t id, uint32_t arrived_only) {
  uint32_t records = arrived_only;
  for (uint32_t n = 0; n < block->warp_count; n++) records += waits_at(&block->warps[n], id);
  for (uint32_t n = 0; n < block->warp_count; n++)
    if (waits_at(&block->warps[n], id)) trace_barrier(&block->warps[n], id, false, records);
}

/* A warp that waits as a whole, and nothing of it runs: as dropping its split and adding it again. */
static bool release_alone(core_warp *w, uint32_t id, const core_barrier *done) {
  exec_split *split = &w->others[0];
  if (w->active || w->other_count != 1 || split->state != SPLIT_BARRIER || split->barrier != id) return false;
  give_result(split, done);
  *split = (exec_split){
      .mask = split->mask, .state = SPLIT_READY, .last = w->clock, .pc = split->pc + 1, .frame = split->frame};
  w->next_key = core_key(split->frame, split->pc);
  w->ready_count = 1;
  return true;
}

/* The same for a barrier that gives no result, of which most are, without an access stream, for a warp whose turn it is
 * not: as if core_pick had been called, too. */
static bool release_simply(core_warp *w, uint32_t id) {
  const exec_split *split = &w->others[0];
  if (w->active || w->trace || w->other_count != 1 || split->state != SPLIT_BARRIER || split->barrier != id ||
      sync_of(split->pc)->mode >= EXEC_BARRIER_POPC)
    return false;
  w->active = split->mask;
  w->active_count = core_lane_count(split->mask);
  w->pc = split->pc + 1;
  w->frame = split->frame;
  w->segment = w->pc->index;
  w->other_count = w->ready_count = w->rotated = 0;
  w->next_key = EXEC_NO_KEY;
  return true;
}

/* The barrier is as none had arrived, and the block has got further. */
static void close_barrier(core_block *block, uint32_t id) {
  block->barriers[id] = (core_barrier){0};
  block->barriers_waiting &= ~(1u << id);
  block->barrier_count++;
  block->moved = true;
  block->idle_turns = block->busy_turns = 0;
}

static void release(core_block *block, uint32_t id) {
  core_barrier done = block->barriers[id];
  exec_checker *checker = block->launch->checker;
  if (core_records(block->launch) && id < EXEC_CLUSTER_BARRIER) trace_completion(block, id, done.arrive_records);
  if (checker) checker->release(checker, block, id, done.expected);
  close_barrier(block, id);
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    if ((n != block->at && release_simply(w, id)) || release_alone(w, id, &done)) {
      block->ready |= UINT64_C(1) << n;
      continue;
    }
    for (uint32_t s = 0; s < w->other_count; s++) {
      exec_split *split = &w->others[s];
      if (split->state != SPLIT_BARRIER || split->barrier != id) continue;
      give_result(split, &done);
      exec_split freed = *split;
      core_drop_split(w, s--);
      core_add_ready(w, freed.mask, freed.pc + 1, freed.frame);
      block->ready |= UINT64_C(1) << n;
    }
  }
}

void core_barrier_retry(core_block *block, uint32_t id) {
  block->moved = true;
  block->idle_turns = 0;
  if (!(block->barriers_waiting >> id & 1)) return;
  block->barriers[id] = (core_barrier){0};
  block->barriers_waiting &= ~(1u << id);
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp *w = &block->warps[n];
    for (uint32_t s = 0; s < w->other_count; s++) {
      exec_split freed = w->others[s];
      if (freed.state != SPLIT_BARRIER || freed.barrier != id) continue;
      core_drop_split(w, s--);
      core_add_ready(w, freed.mask, freed.pc, freed.frame);
      block->ready |= UINT64_C(1) << n;
    }
  }
}

void core_barrier_open_cluster(core_block *block) {
  if (core_records(block->launch))
    for (uint32_t n = 0; n < block->warp_count; n++)
      if (waits_at(&block->warps[n], EXEC_CLUSTER_BARRIER)) core_cluster_trace(&block->warps[n], false);
  release(block, EXEC_CLUSTER_BARRIER);
}

void core_barrier_recheck(core_block *block) {
  if (!block->barriers_waiting) return;
  core_barrier_settle(block);
  for (uint32_t id = 0; id < EXEC_BARRIERS; id++)
    if (id != EXEC_CLUSTER_BARRIER && id != EXEC_TENSOR_BARRIER && (block->barriers_waiting >> id & 1) &&
        complete(block, &block->barriers[id]))
      release(block, id);
}

static uint32_t operand_value(const core_warp *w, uint32_t operand) {
  return exec_u32(&w->x, operand)[__builtin_ctz(w->active)];
}

static uint32_t expected_threads(core_warp *w, const exec_instr *i) {
  if (i->src[1] == EXEC_NO_OFFSET) return 0;
  uint32_t count = (operand_value(w, i->src[1]) + EXEC_LANES - 1) & ~(EXEC_LANES - 1);
  uint32_t lane = (uint32_t)__builtin_ctz(w->active);
  if (!count || count > w->block->warp_count * EXEC_LANES)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "a barrier of %u threads in a block of %u",
               operand_value(w, i->src[1]), w->block->thread_count);
  return count == w->block->warp_count * EXEC_LANES && sync_of(i)->mode != EXEC_BARRIER_ARRIVE ? 0 : count;
}

/* A warp that arrives as a whole and as the last one need not wait, if neither the access stream nor a checker is told
 * of it, and it gets no result. */
static bool passes(const core_warp *w, const core_barrier *barrier, uint32_t mode) {
  return !w->other_count && w->active && mode < EXEC_BARRIER_POPC && !w->trace && !w->launch->checker &&
         complete(w->block, barrier);
}

bool core_barrier_arrive(core_warp *w, const exec_instr *i) {
  const exec_sync *sync = i->side;
  core_block *block = w->block;
  w->waiting = w->woken = 0; /* at mbarriers: mbarrier.c */
  core_barrier_settle(block);
  if (sync->cluster) return core_cluster_barrier(w, i);
  if (sync->tensor) return core_tensor_alloc(w, i);
  uint32_t id = operand_value(w, i->src[0]);
  if (sync->group) id = EXEC_GROUP_BARRIER + w->index / 4;
  else if (id >= EXEC_CLUSTER_BARRIER)
    core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "barrier %u: there are 16",
               id);
  core_barrier *barrier = &block->barriers[id];
  uint32_t expected = expected_threads(w, i);
  exec_checker *checker = w->launch->checker;
  if (checker) checker->arrive(checker, w, i, id, expected);
  core_count(w, i->index + 1);
  uint32_t threads = threads_of(w, i, id, expected != 0);
  barrier->arrived += threads;
  barrier->absent += sync->mode == EXEC_BARRIER_ARRIVE ? threads : threads - w->active_count;
  if (expected) barrier->expected = expected;
  block->barriers_waiting |= 1u << id;
  if (sync->mode >= EXEC_BARRIER_POPC) {
    uint32_t predicate = *exec_pred(&w->x, i->src[2]);
    if (sync->negated) predicate = ~predicate;
    barrier->popc += (uint32_t)__builtin_popcount(predicate & w->active);
    barrier->threads += w->active_count;
  }
  w->pc = i;
  if (sync->mode == EXEC_BARRIER_ARRIVE) {
    barrier->arrive_records++;
    if (w->trace) trace_barrier(w, id, true, expected / EXEC_LANES);
    if (complete(block, barrier)) release(block, id);
    return true;
  }
  if (passes(w, barrier, sync->mode)) {
    release(block, id);
    w->segment = (i + 1)->index;
    w->rotated = 0;
    return true;
  }
  core_park(w, i, SPLIT_BARRIER, id, 0);
  if (complete(block, barrier)) release(block, id);
  return false;
}

/* ---- whole warps of which no one is told ----
 *
 * Most barriers are reached by whole warps only, each of which waits for the others and for nothing else. Such a warp
 * stays as it is, behind the barrier already, and a bit of block->parked keeps its turn back: the last one to come only
 * has to set `ready`. Whatever else happens at such a barrier makes splits of these warps first. */

static bool waits_for_all(const core_warp *w, const exec_sync *sync) {
  return sync->plain && w->active == EXEC_ALL_LANES && !w->other_count && !w->trace && !w->launch->checker;
}

core_arrival core_barrier_arrive_whole(core_warp *w, const exec_instr *i) {
  if (!waits_for_all(w, sync_of(i))) return ARRIVED_NOT;
  core_block *block = w->block;
  uint32_t id = sync_of(i)->number;
  if (block->parked && block->parked_at != id) return ARRIVED_NOT;
  core_barrier *barrier = &block->barriers[id];
  /* others have come in parts, or with a count, or without waiting */
  if (barrier->arrived != block->parked_threads) return ARRIVED_NOT;
  w->waiting = w->woken = 0; /* at mbarriers: mbarrier.c */
  core_count(w, i->index + 1);
  w->pc = i + 1;
  w->segment = w->pc->index;
  w->rotated = 0;
  if (barrier->arrived + EXEC_LANES >= block->live_threads) {
    block->ready |= block->parked;
    block->parked = block->parked_threads = 0;
    close_barrier(block, id);
    return ARRIVED_PASSES;
  }
  barrier->arrived += EXEC_LANES;
  block->barriers_waiting |= 1u << id;
  block->parked |= UINT64_C(1) << w->index;
  block->parked_threads += EXEC_LANES;
  block->parked_at = id;
  return ARRIVED_WAITS;
}

void core_barrier_settle(core_block *block) {
  for (uint64_t m = block->parked; m; m &= m - 1) {
    core_warp *w = &block->warps[__builtin_ctzll(m)];
    w->pc--;
    core_park(w, w->pc, SPLIT_BARRIER, block->parked_at, 0);
  }
  block->parked = block->parked_threads = 0;
}
