/* SPDX-License-Identifier: Apache-2.0 */
/* Warp-level instructions with a membermask (shfl.sync, vote.sync, bar.warp.sync, ...) when the lanes of the mask do
 * not arrive together: those that have arrived wait until all others that have not exited have arrived.
 *
 * Threads may come to the same kind of instruction at different places (as from Volta on); then the values are
 * exchanged over a meeting place in memory that stands in for the registers of all. */
#include <string.h>

#include "exec/launch/checker.h"

static const exec_sync *sync_of(const exec_instr *i) { return i->side; }

/* May two splits synchronise at these instructions? */
static bool compatible(const exec_instr *a, const exec_instr *b) {
  const exec_sync *x = sync_of(a), *y = sync_of(b);
  return a == b || (x->kind == y->kind && x->kind < EXEC_SYNC_MMA && x->mode == y->mode && x->wide == y->wide &&
                    x->is_signed == y->is_signed);
}

typedef struct meeting {
  uint32_t lanes; /* of all that have come */
  const exec_instr *at;
  bool one_place; /* all at the same instruction of the same frame */
  uint32_t splits[EXEC_LANES], count;
} meeting;

static meeting gather(const core_warp *w, const exec_split *first) {
  meeting met = {.at = first->pc, .one_place = true};
  for (uint32_t s = 0; s < w->other_count; s++) {
    const exec_split *split = &w->others[s];
    if (split->state != SPLIT_SYNC || split->member != first->member || !compatible(split->pc, first->pc)) continue;
    /* registers of all lanes in one frame */
    if (sync_of(first->pc)->kind >= EXEC_SYNC_MMA && split->frame != first->frame) continue;
    met.lanes |= split->mask;
    met.splits[met.count++] = s;
    if (split->pc != first->pc || split->frame != first->frame) met.one_place = false;
  }
  return met;
}

enum {
  PLACE_VALUE = 0,
  PLACE_B = 256,
  PLACE_C = 384,
  PLACE_MEMBER = 512,
  PLACE_DST = 640,
  PLACE_DST2 = 896,
  PLACE_BYTES = 960
};

static const unsigned char *operand_of(const exec_split *split, uint32_t offset) {
  const unsigned char *base = offset & 1 ? split->frame->function->constants : split->frame->registers;
  return base + (offset & ~1u);
}

static void bring(const exec_split *split, unsigned char *place) {
  const exec_instr *i = split->pc;
  const exec_sync *sync = i->side;
  if (sync->kind == EXEC_SYNC_VOTE) {
    uint32_t predicate;
    memcpy(&predicate, operand_of(split, i->src[0]), 4);
    if (sync->negated) predicate = ~predicate;
    *(uint32_t *)(void *)(place + PLACE_VALUE) |= predicate & split->mask;
    return;
  }
  uint32_t size = sync->wide ? 8 : 4;
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) {
    if (!(split->mask >> lane & 1)) continue;
    memcpy(place + PLACE_VALUE + lane * size, operand_of(split, i->src[0]) + lane * size, size);
    if (sync->kind != EXEC_SYNC_SHFL) continue;
    memcpy(place + PLACE_B + lane * 4, operand_of(split, i->src[1]) + lane * 4, 4);
    memcpy(place + PLACE_C + lane * 4, operand_of(split, i->src[2]) + lane * 4, 4);
  }
}

static void take_away(const exec_split *split, const unsigned char *place) {
  const exec_instr *i = split->pc;
  const exec_sync *sync = i->side;
  bool to_predicate = sync->kind == EXEC_SYNC_VOTE && sync->mode != EXEC_VOTE_BALLOT;
  uint32_t *dst = (uint32_t *)(void *)(split->frame->registers + i->dst);
  uint32_t bits;
  if (to_predicate) {
    memcpy(&bits, place + PLACE_DST, 4);
    *dst = (*dst & ~split->mask) | (bits & split->mask);
  } else {
    for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
      if (split->mask >> lane & 1) memcpy(&dst[lane], place + PLACE_DST + lane * 4, 4);
  }
  if (!sync->has_predicate) return;
  uint32_t *predicate = (uint32_t *)(void *)(split->frame->registers + i->dst2);
  memcpy(&bits, place + PLACE_DST2, 4);
  *predicate = (*predicate & ~split->mask) | (bits & split->mask);
}

/* Runs the operation once over the values of all, as if they stood in one frame. */
static void exchange(core_warp *w, const meeting *met) {
  _Alignas(64) unsigned char place[PLACE_BYTES] = {0};
  exec_sync sync = *sync_of(met->at);
  sync.constant = 0; /* b and c may differ from place to place */
  sync.negated = 0;
  sync.has_predicate = 1;
  exec_instr i = *met->at;
  i.src[0] = PLACE_VALUE;
  i.src[1] = PLACE_B;
  i.src[2] = PLACE_C;
  i.src[3] = PLACE_MEMBER;
  i.dst = PLACE_DST;
  i.dst2 = PLACE_DST2;
  i.side = &sync;
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++)
    memcpy(place + PLACE_MEMBER + 4 * lane, &w->others[met->splits[0]].member, 4);
  for (uint32_t s = 0; s < met->count; s++) bring(&w->others[met->splits[s]], place);
  exec_warp saved = w->x;
  uint32_t active = w->active;
  w->x.base[0] = place;
  w->x.mask = w->active = met->lanes;
  w->launch->isa->sync[sync.kind](&w->x, &i);
  w->x = saved;
  w->active = active;
  for (uint32_t s = 0; s < met->count; s++) take_away(&w->others[met->splits[s]], place);
}

/* The group of the split at `first` goes on if it is complete. */
static bool try_group(core_warp *w, uint32_t first) {
  exec_split at = w->others[first];
  meeting met = gather(w, &at);
  if (at.member & w->live & ~met.lanes) return false;
  exec_checker *checker = w->launch->checker;
  if (!met.one_place && sync_of(at.pc)->kind != EXEC_SYNC_WARP) exchange(w, &met);
  else if (!met.one_place && checker) checker->meet(checker, w, at.pc, met.lanes);
  for (uint32_t s = met.count; s-- > 0;) {
    exec_split split = w->others[met.splits[s]];
    core_drop_split(w, met.splits[s]);
    /* together: they run the instruction now; apart: they have */
    core_add_ready(w, split.mask, met.one_place ? split.pc : split.pc + 1, split.frame);
  }
  core_update_ready(w);
  return true;
}

void core_sync_wait(core_warp *w, const exec_instr *i, uint32_t member) {
  core_count(w, i->index);
  w->pc = i;
  core_park(w, i, SPLIT_SYNC, 0, member);
  try_group(w, w->other_count - 1);
}

void core_sync_recheck(core_warp *w) {
  for (uint32_t s = 0; s < w->other_count; s++)
    if (w->others[s].state == SPLIT_SYNC && try_group(w, s)) s = UINT32_MAX; /* the list has changed: from the start */
}
