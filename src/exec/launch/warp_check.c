/* SPDX-License-Identifier: Apache-2.0 */
/* What always holds for a warp and a block between two turns (core.h), checked at the deep level. */
#include "base/check.h"
#include "exec/core.h"

typedef struct part {
  uint32_t mask;
  const exec_frame *frame;
} part; /* a split, whatever its state */

/* The running split and the others; returns how many. */
static uint32_t parts_of(const core_warp *w, part *parts) {
  uint32_t count = 0;
  if (w->active) parts[count++] = (part){w->active, w->frame};
  for (uint32_t s = 0; s < w->other_count; s++) parts[count++] = (part){w->others[s].mask, w->others[s].frame};
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

void core_warp_check(const core_warp *w) {
  part parts[EXEC_LANES + 1];
  if (!w->started) return;
  uint32_t count = parts_of(w, parts);
  check_lanes(w, parts, count);
  check_ready(w);
  check_frames(parts, count);
}

/* Of a barrier: no more threads wait than have arrived. */
static void check_barriers(const core_block *block) {
  uint32_t waiting[EXEC_BARRIERS] = {0};
  for (uint32_t n = 0; n < block->warp_count; n++) {
    const core_warp *w = &block->warps[n];
    for (uint32_t s = 0; w->started && s < w->other_count; s++)
      if (w->others[s].state == SPLIT_BARRIER) waiting[w->others[s].barrier] += core_lane_count(w->others[s].mask);
  }
  for (uint32_t b = 0; b < EXEC_BARRIERS; b++) FF_ASSERT(waiting[b] <= block->barriers[b].arrived);
}

void core_block_check(const core_block *block) {
  uint32_t live = 0;
  for (uint32_t n = 0; n < block->warp_count; n++) {
    core_warp_check(&block->warps[n]);
    live += core_lane_count(block->warps[n].live);
  }
  FF_ASSERT(live == block->live_threads);
  check_barriers(block);
}
