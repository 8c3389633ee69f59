/* SPDX-License-Identifier: Apache-2.0 */
/* The splits of a warp: adding, merging, picking and rotating them. core.h has the order and the invariants. */
#include "exec/core.h"
#include "exec/launch/fault.h"
#include "exec/memory/tensor_memory.h"

void core_update_ready(core_warp *w) {
  w->next_key = EXEC_NO_KEY;
  w->ready_count = 0;
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (split->state != SPLIT_READY) continue;
    uint64_t key = core_key(split->frame, split->pc);
    if (key < w->next_key) w->next_key = key;
    w->ready_count++;
  }
}

void core_add_ready(core_warp *w, uint32_t mask, const exec_instr *pc, exec_frame *frame) {
  for (uint32_t s = 0; s < w->other_count; s++) {
    exec_split *split = &w->others[s];
    if (split->state != SPLIT_READY || split->pc != pc || split->frame != frame) continue;
    split->mask |= mask;
    return;
  }
  w->others[w->other_count++] =
      (exec_split){.mask = mask, .state = SPLIT_READY, .last = w->clock, .pc = pc, .frame = frame};
  uint64_t key = core_key(frame, pc);
  if (key < w->next_key) w->next_key = key;
  w->ready_count++;
}

void core_drop_split(core_warp *w, uint32_t index) { w->others[index] = w->others[--w->other_count]; }

/* The runnable splits, in one look at all of them. */
typedef struct first_splits {
  uint64_t key, next_key; /* the smallest, and the smallest of the others; EXEC_NO_KEY: there is none */
  uint32_t index, count;  /* of the first one with the smallest key; how many there are */
} first_splits;

static inline first_splits find_first(const core_warp *w) {
  first_splits f = {.key = EXEC_NO_KEY, .next_key = EXEC_NO_KEY};
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (split->state != SPLIT_READY) continue;
    uint64_t key = core_key(split->frame, split->pc);
    f.count++;
    if (key < f.key) {
      f.next_key = f.key;
      f.key = key;
      f.index = s;
    } else if (key < f.next_key) {
      f.next_key = key;
    }
  }
  return f;
}

static inline void run_split(core_warp *w, const exec_split *split) {
  w->active = split->mask;
  w->active_count = core_lane_count(split->mask);
  w->pc = split->pc;
  w->frame = split->frame;
  w->looks = 0;
  w->segment = split->pc->index;
  core_mark_check(w);
}

bool core_pick(core_warp *w) {
  first_splits f = find_first(w);
  w->active = 0;
  w->rotated = 0;
  if (f.key == EXEC_NO_KEY) return false;
  exec_split split = w->others[f.index];
  core_drop_split(w, f.index);
  w->next_key = f.next_key;
  w->ready_count = f.count - 1;
  run_split(w, &split);
  return true;
}

void core_switch(core_warp *w) {
  core_count(w, w->pc->index);
  uint64_t key = core_key(w->frame, w->pc);
  for (uint32_t s = 0; s < w->other_count;) {
    const exec_split *split = &w->others[s];
    if (split->state == SPLIT_READY && split->pc == w->pc && split->frame == w->frame) {
      w->active |= split->mask;
      w->rotated = 0;
      w->rotation = 0;
      core_drop_split(w, s);
    } else {
      s++;
    }
  }
  w->active_count = core_lane_count(w->active);
  if (w->inside) w->inside |= w->active; /* lanes that were in the region before are in it again */
  first_splits f = find_first(w);
  w->next_key = f.key;
  w->ready_count = f.count;
  if (f.key >= key || w->rotated) return;
  /* the two change places: none of the others stands where the running one does */
  exec_split split = w->others[f.index];
  w->others[f.index] =
      (exec_split){.mask = w->active, .state = SPLIT_READY, .last = w->clock, .pc = w->pc, .frame = w->frame};
  w->next_key = key < f.next_key ? key : f.next_key;
  run_split(w, &split);
}

void core_diverge(core_warp *w, const exec_instr *i, uint32_t taken) {
  const exec_instr *target = w->function->code + i->target, *next = i + 1;
  uint32_t rest = w->active & ~taken;
  core_count(w, i->index + 1);
  w->diverged++;
  if (target->rank < next->rank) {
    core_add_ready(w, rest, next, w->frame);
    w->active = taken;
    w->pc = target;
  } else {
    core_add_ready(w, taken, target, w->frame);
    w->active = rest;
    w->pc = next;
  }
  w->active_count = core_lane_count(w->active);
  w->segment = w->pc->index;
}

void core_branch_indexed(core_warp *w, const exec_instr *i) {
  const uint32_t *index = exec_u32(&w->x, i->src[0]), *targets = i->side;
  const exec_instr *code = w->function->code;
  uint32_t left = w->active, chosen = 0, chosen_lanes = 0;
  core_count(w, i->index + 1);
  while (left) {
    uint32_t lane = (uint32_t)__builtin_ctz(left), same = 0;
    if (index[lane] >= i->aux)
      core_fault(w, i, lane, EXEC_FAULT_INVALID_PC, 0, "branch index %u: the list has %u targets", index[lane], i->aux);
    for (uint32_t m = left; m; m &= m - 1)
      same |= (uint32_t)(index[__builtin_ctz(m)] == index[lane]) << __builtin_ctz(m);
    if (!chosen_lanes) {
      chosen = targets[index[lane]];
      chosen_lanes = same;
    } else {
      core_add_ready(w, same, code + targets[index[lane]], w->frame);
    }
    left &= ~same;
  }
  w->diverged += chosen_lanes != w->active;
  w->active = chosen_lanes;
  w->active_count = core_lane_count(chosen_lanes);
  w->pc = code + chosen;
  w->segment = w->pc->index;
}

void core_rotate(core_warp *w) {
  uint32_t mask = w->active, oldest = UINT32_MAX, found = 0;
  for (uint32_t s = 0; s < w->other_count; s++) {
    if (w->others[s].state != SPLIT_READY || w->others[s].last >= oldest) continue;
    oldest = w->others[s].last;
    found = s;
  }
  const exec_instr *pc = w->pc;
  exec_frame *frame = w->frame;
  core_count(w, pc->index);
  exec_split split = w->others[found];
  core_drop_split(w, found);
  run_split(w, &split);
  w->clock++;
  core_add_ready(w, mask, pc, frame);
  core_update_ready(w);
  if (!w->rotation) w->rotation = 64;
  else if (w->rotation < (1u << 16)) w->rotation *= 2;
  w->rotated = w->rotation;
}

void core_park(core_warp *w, const exec_instr *pc, split_state state, uint32_t barrier, uint32_t member) {
  w->others[w->other_count++] = (exec_split){.mask = w->active,
                                             .state = (uint8_t)state,
                                             .barrier = (uint8_t)barrier,
                                             .member = member,
                                             .last = w->clock,
                                             .pc = pc,
                                             .frame = w->frame};
  w->active = 0;
}

void core_exit(core_warp *w, const exec_instr *i) {
  uint32_t mask = w->active;
  if (w->block->live_threads == core_lane_count(mask)) core_tensor_exit(w, i);
  for (exec_frame *frame = w->frame, *parent; frame; frame = parent) {
    parent = frame->parent;
    frame->lanes &= ~mask;
    if (!frame->lanes) core_frame_free(w->worker, frame);
  }
  w->live &= ~mask;
  w->active = 0;
  w->block->live_threads -= core_lane_count(mask);
  w->block->idle_turns = w->block->busy_turns = 0;
  if (w->other_count) core_sync_recheck(w);
  core_barrier_recheck(w->block);
  core_cluster_exit(w, mask);
}
