/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of a warp and a block between two turns, checked at the deep level before each turn.
 *
 * Of a warp (core.h draws a split's life):
 *     sum of the splits' lanes == live: their sets are disjoint and together the lanes that have not exited
 *     frame->lanes == lanes of the splits in the frame and in what was called from it
 *     ready_count == READY splits, no two of them at the same place; next_key == their smallest key
 *     a split stands in the code of its frame's function; one that waits stands at an instruction that waits
 * Of a block:
 *     live_threads == sum of its warps' live lanes
 *     ready has a warp exactly if something of it can run
 *     parked has whole warps that stand behind a barrier of all threads, which has not opened
 *     barrier.arrived == threads of the splits that wait at it, or of parked warps, + barrier.absent, and less than
 *     completes it
 * Of a block that has finished:
 *     sum of the ISSUEs of its chunk == sum of its warps' executed instructions */
#include "base/check.h"
#include "exec/core.h"

typedef struct part {
  uint32_t mask;
  const exec_instr *pc;
  const exec_frame *frame;
} part; /* a split, whatever its state */

/* The running split and the others; returns how many. */
static uint32_t parts_of(const core_warp *w, part *parts) {
  uint32_t count = 0;
  if (w->active) parts[count++] = (part){w->active, w->pc, w->frame};
  for (uint32_t s = 0; s < w->other_count; s++)
    parts[count++] = (part){w->others[s].mask, w->others[s].pc, w->others[s].frame};
  return count;
}

/* Their lanes are disjoint and together the live ones. */
static void check_lanes(const core_warp *w, const part *parts, uint32_t count) {
  uint32_t seen = 0;
  for (uint32_t n = 0; n < count; n++) {
    FF_ASSERT(parts[n].mask && !(seen & parts[n].mask));
    seen |= parts[n].mask;
  }
  FF_ASSERT(seen == w->live && (!w->active || w->active_count == core_lane_count(w->active)));
}

/* No two runnable splits stand at the same place, and the smallest of their keys is known. */
static void check_ready(const core_warp *w) {
  uint64_t smallest = EXEC_NO_KEY;
  uint32_t count = 0;
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (split->state != SPLIT_READY) continue;
    count++;
    if (core_key(split->frame, split->pc) < smallest) smallest = core_key(split->frame, split->pc);
    for (uint32_t t = 0; t < s; t++)
      FF_ASSERT(w->others[t].state != SPLIT_READY || w->others[t].pc != split->pc ||
                w->others[t].frame != split->frame);
  }
  FF_ASSERT(count == w->ready_count && (!w->active || smallest == w->next_key));
}

static uint32_t lanes_below(const exec_frame *frame, const part *parts, uint32_t count) {
  uint32_t lanes = 0;
  for (uint32_t n = 0; n < count; n++)
    for (const exec_frame *at = parts[n].frame; at; at = at->parent)
      if (at == frame) lanes |= parts[n].mask;
  return lanes;
}

/* A frame's lanes are those of the splits in it and in what was called from it. */
static void check_frames(const part *parts, uint32_t count) {
  for (uint32_t n = 0; n < count; n++)
    for (const exec_frame *at = parts[n].frame; at; at = at->parent) {
      FF_ASSERT(at->lanes == lanes_below(at, parts, count));
      FF_ASSERT(at->depth == (at->parent ? at->parent->depth + 1 : 0));
    }
}

static void check_places(const core_warp *w, const part *parts, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) {
    const exec_function *f = parts[n].frame->function;
    FF_ASSERT(parts[n].pc >= f->code && parts[n].pc < f->code + f->count);
  }
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (split->state == SPLIT_BARRIER)
      FF_ASSERT(split->pc->flow == EXEC_FLOW_BARRIER && split->barrier < EXEC_BARRIERS);
    if (split->state == SPLIT_SYNC) FF_ASSERT(split->pc->flow == EXEC_FLOW_SYNC && !(split->mask & ~split->member));
  }
}

void core_warp_check(const core_warp *w) {
  part parts[EXEC_LANES + 1];
  if (!w->started) return;
  FF_ASSERT(!(w->live & ~w->present) && w->waited <= w->loads && w->waited_early <= w->loads);
  uint32_t count = parts_of(w, parts);
  check_lanes(w, parts, count);
  check_ready(w);
  check_frames(parts, count);
  check_places(w, parts, count);
}

static bool is_parked(const core_block *block, uint32_t n) { return block->parked >> n & 1; }

static void check_parked(const core_warp *w) {
  FF_ASSERT(w->started && w->active == EXEC_ALL_LANES && !w->other_count && !w->trace);
  FF_ASSERT(w->pc > w->frame->function->code && w->pc[-1].flow == EXEC_FLOW_BARRIER);
}

static void check_barriers(const core_block *block) {
  uint32_t waiting[EXEC_BARRIERS] = {0};
  for (uint32_t n = 0; n < block->warp_count; n++) {
    const core_warp *w = &block->warps[n];
    if (is_parked(block, n)) waiting[block->parked_at] += EXEC_LANES;
    for (uint32_t s = 0; w->started && s < w->other_count; s++)
      if (w->others[s].state == SPLIT_BARRIER) waiting[w->others[s].barrier] += core_lane_count(w->others[s].mask);
  }
  for (uint32_t b = 0; b < EXEC_BARRIERS; b++) {
    const core_barrier *barrier = &block->barriers[b];
    FF_ASSERT(barrier->arrived == waiting[b] + barrier->absent);
    FF_ASSERT(!barrier->arrived == !(block->barriers_waiting >> b & 1));
    /* opens when all of the cluster have arrived, whoever waits; when columns are freed */
    if (b == EXEC_CLUSTER_BARRIER || b == EXEC_TENSOR_BARRIER) continue;
    FF_ASSERT(!barrier->arrived || barrier->arrived < (barrier->expected ? barrier->expected : block->live_threads));
  }
}

void core_block_check(const core_block *block) {
  uint32_t live = 0;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    const core_warp *w = &block->warps[n];
    core_warp_check(w);
    live += core_lane_count(w->live);
    if (is_parked(block, n)) check_parked(w);
    FF_ASSERT((block->ready >> n & 1) ==
              (w->live && !is_parked(block, n) && (!w->started || w->active || w->ready_count)));
  }
  FF_ASSERT(live == block->live_threads);
  FF_ASSERT(block->parked_threads == EXEC_LANES * (uint32_t)__builtin_popcountll(block->parked));
  check_barriers(block);
  core_phases_check(block);
}

/* Every executed instruction is counted in exactly one ISSUE of the access stream, or in a round of waiting. */
void core_block_check_end(const core_block *block) {
  uint64_t executed = 0;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    FF_ASSERT(!block->warps[n].live && !block->warps[n].inside);
    executed += block->warps[n].executed - block->warps[n].unrecorded;
  }
  FF_ASSERT(!block->live_threads && !block->ready);
  FF_ASSERT(!block->chunk || trace_chunk_instructions(block->chunk) == executed);
}
