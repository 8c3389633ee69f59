/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses: compared with what is known of their bytes, and remembered (race.h). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "check/race_private.h"

race *race_create(uint64_t limit) {
  race *r = ff_alloc(sizeof *r);
  r->limit = limit;
  return r;
}

void race_free(race *r) {
  if (!r) return;
  race_cells_free(r);
  race_variables_free(&r->variables);
  free(r);
}

void race_launch(race *r, uint32_t warps_per_block) {
  r->launch++;
  r->warps = warps_per_block;
  r->now = 1;
  race_variables_free(&r->variables);
}

bool race_overflowed(const race *r) { return r->overflowed; }

race_block *race_block_begin(race *r, uint32_t block, uint32_t shared_bytes) {
  race_block *b = ff_alloc(sizeof *b + r->warps * sizeof b->warp[0]);
  b->race = r;
  b->number = block;
  b->warps = r->warps;
  b->shared.bytes = (shared_bytes + 63) & ~63u;
  for (uint32_t n = 0; n < b->warps; n++) {
    b->warp[n].clock = 1;
    b->warp[n].running = UINT32_MAX;
  }
  return b;
}

void race_block_end(race_block *b) {
  if (ff_check_level >= 2) race_block_check(b);
  for (uint32_t n = 0; n < b->warps; n++) {
    race_view_drop(b->warp[n].others);
    race_view_drop(b->warp[n].fenced[0]);
    race_view_drop(b->warp[n].fenced[1]);
    free(b->warp[n].lane_seen);
  }
  for (uint32_t n = 0; n < RACE_BARRIERS; n++) race_view_drop(b->gates[n].others);
  race_variables_free(&b->variables);
  free(b->shared.cells);
  free(b);
}

/* ---- one access ---- */

typedef struct current { /* the access that is being done */
  race_block *b;
  uint32_t warp, lane, flags;
  race_visit visit;
  race_found *found;
  uint32_t count, room;
} current;

static bool is_ordered(const current *now, const race_visit *before) {
  return !before->clock || race_ordered(now->b, now->warp, now->lane, before);
}

/* Both are made for meeting, in a scope that has both threads. */
static bool may_meet(const current *now, const race_visit *before) {
  if (!(now->flags & RACE_STRONG) || !before->strong) return false;
  return before->block == now->b->number || (!before->block_scope && !(now->flags & RACE_BLOCK_SCOPE));
}

static bool in_step(const current *now, const race_visit *before) {
  const race_warp *w = &now->b->warp[now->warp];
  if (before->block != now->b->number || before->thread / RACE_LANES != now->warp) return false;
  return (w->parted <= before->clock && (w->running >> before->thread % RACE_LANES & 1)) ||
         w->together >= before->clock;
}

static void report(current *now, const race_visit *before, race_hazard hazard, uint64_t address) {
  for (uint32_t n = 0; n < now->count; n++)
    if (now->found[n].before_pc == before->pc && now->found[n].hazard == hazard) return; /* another byte of the same */
  if (now->count == now->room) return;
  bool benign = hazard == RACE_RAW
                    ? before->same
                    : now->flags & RACE_SAME || (hazard == RACE_WAW && before->same && now->flags & RACE_SAME);
  now->found[now->count++] =
      (race_found){.hazard = hazard,
                   .before = {before->block, before->thread / RACE_LANES, before->thread % RACE_LANES},
                   .now = {now->b->number, now->warp, now->lane},
                   .before_pc = before->pc,
                   .before_atomic = before->atomic,
                   .benign = benign,
                   .lockstep = in_step(now, before),
                   .address = address};
}

/* How far the other thread is from this one. */
static uint32_t distance(const current *now, const race_visit *other) {
  if (!other->clock) return 0;
  if (other->block != now->b->number) return 3;
  if (other->thread / RACE_LANES != now->warp) return 2;
  return other->thread % RACE_LANES != now->lane;
}

static void do_read(const current *now, race_cell *cell) {
  race_visit none = {0}, first = is_ordered(now, &cell->read) ? none : cell->read,
             second = is_ordered(now, &cell->other) ? none : cell->other;
  cell->other = distance(now, &second) >= distance(now, &first) ? second : first;
  cell->read = now->visit;
}

static void do_write(const current *now, race_cell *cell) {
  race_visit none = {0};
  if (is_ordered(now, &cell->read)) cell->read = none;
  if (is_ordered(now, &cell->other)) cell->other = none;
  /* that one says more */
  if ((now->flags & RACE_SAME) && cell->write.clock && !cell->write.same && !is_ordered(now, &cell->write)) return;
  cell->write = now->visit;
}

static void do_cell(current *now, race_cell *cell, uint64_t address) {
  bool writes = now->flags & (RACE_WRITE | RACE_ATOMIC);
  if (!is_ordered(now, &cell->write) && !may_meet(now, &cell->write))
    report(now, &cell->write, writes ? RACE_WAW : RACE_RAW, address);
  if (writes && !is_ordered(now, &cell->read) && !may_meet(now, &cell->read))
    report(now, &cell->read, RACE_WAR, address);
  if (writes && !is_ordered(now, &cell->other) && !may_meet(now, &cell->other))
    report(now, &cell->other, RACE_WAR, address);
  if (writes) do_write(now, cell);
  else do_read(now, cell);
}

bool race_shared_written(race_block *b, uint64_t offset, uint32_t bytes) {
  race_cell *cells;
  uint32_t each, count = race_cells_find(b, true, offset, bytes, &cells, &each);
  for (uint32_t n = 0; n < count; n++)
    if (!cells[n].write.clock) return false;
  return count > 0;
}

uint32_t race_access(race_block *b, uint32_t warp, uint32_t lane, bool shared, uint64_t address, uint32_t bytes,
                     uint32_t flags, uint32_t pc, uint32_t running, race_found *found, uint32_t room) {
  race_warp *w = &b->warp[warp];
  if (running != w->running) {
    w->running = running;
    w->parted = ++w->clock;
  }
  current now = {.b = b, .warp = warp, .lane = lane, .flags = flags, .found = found, .room = room};
  now.visit = (race_visit){.block = b->number,
                           .clock = w->clock,
                           .pc = pc & 0x3fffff,
                           .thread = (warp * RACE_LANES + lane) & 0x3ff,
                           .when = b->race->now & RACE_WHEN_MAX,
                           .strong = (flags & RACE_STRONG) != 0,
                           .atomic = (flags & RACE_ATOMIC) != 0,
                           .same = (flags & RACE_SAME) != 0,
                           .block_scope = (flags & RACE_BLOCK_SCOPE) != 0};
  race_cell *cells;
  uint32_t each, count = race_cells_find(b, shared, address, bytes, &cells, &each);
  for (uint32_t n = 0; n < count; n++) do_cell(&now, &cells[n], address + (uint64_t)n * each);
  return now.count;
}
