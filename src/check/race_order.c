/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and knowledge: which accesses of others are ordered before a warp's next one, and how that spreads
 * (race.h). */
#include <stdlib.h>
#include <string.h>

#include "check/race_private.h"

/* ---- views ---- */

static uint32_t stride(const race *r) { return 1 + r->warps; }

static race_view *new_view(const race *r, uint32_t blocks) {
  race_view *view = ff_alloc(sizeof *view + (size_t)blocks * stride(r) * sizeof(uint32_t));
  view->refs = 1;
  return view;
}

static race_view *hold(race_view *view) {
  if (view) view->refs++;
  return view;
}

void race_view_drop(race_view *view) {
  if (view && !--view->refs) free(view);
}

static const uint32_t *entry(const race *r, const race_view *view, uint32_t n) {
  return &view->words[(size_t)n * stride(r)];
}

/* The clocks of a block's warps, or NULL. */
static const uint32_t *clocks_of(const race *r, const race_view *view, uint32_t block) {
  uint32_t low = 0, end = view ? view->count : 0;
  while (low < end) {
    uint32_t middle = (low + end) / 2, found = entry(r, view, middle)[0];
    if (found == block) return entry(r, view, middle) + 1;
    if (found < block) low = middle + 1;
    else end = middle;
  }
  return NULL;
}

static bool covers(const race *r, const race_view *a, const race_view *b) {
  if (!b || a == b) return true;
  if (!a || a->floor < b->floor) return false;
  for (uint32_t n = 0; n < b->count; n++) {
    const uint32_t *of_b = entry(r, b, n), *of_a = clocks_of(r, a, of_b[0]);
    if (!of_a) return false;
    for (uint32_t w = 0; w < r->warps; w++)
      if (of_a[w] < of_b[w + 1]) return false;
  }
  return true;
}

static void put(const race *r, race_view *view, const uint32_t *a, const uint32_t *b) {
  uint32_t *to = &view->words[(size_t)view->count++ * stride(r)];
  to[0] = a ? a[0] : b[0];
  for (uint32_t w = 1; w <= r->warps; w++) {
    uint32_t x = a ? a[w] : 0, y = b ? b[w] : 0;
    to[w] = x > y ? x : y;
  }
}

/* What both know together; the caller's to drop. Of more blocks than a view has room for it says: all until now. */
static race_view *join(race *r, race_view *a, race_view *b) {
  if (covers(r, a, b)) return hold(a);
  if (covers(r, b, a)) return hold(b);
  if (a->count + b->count > 2 * RACE_VIEW_BLOCKS) {
    race_view *all = new_view(r, 0);
    all->floor = r->now;
    return all;
  }
  race_view *view = new_view(r, a->count + b->count);
  view->floor = a->floor > b->floor ? a->floor : b->floor;
  uint32_t m = 0, n = 0;
  while (m < a->count || n < b->count) {
    const uint32_t *x = m < a->count ? entry(r, a, m) : NULL, *y = n < b->count ? entry(r, b, n) : NULL;
    if (x && y && x[0] != y[0]) {
      if (x[0] < y[0]) y = NULL;
      else x = NULL;
    }
    put(r, view, x, y);
    m += x != NULL;
    n += y != NULL;
  }
  if (view->count > RACE_VIEW_BLOCKS) {
    view->count = 0;
    view->floor = r->now;
  }
  return view;
}

static void learn(race *r, race_view **known, race_view *more) {
  race_view *both = join(r, *known, more);
  race_view_drop(*known);
  *known = both;
}

/* ---- what a warp knows ---- */

static void forget_lanes(race_warp *w) {
  free(w->lane_seen);
  w->lane_seen = NULL;
}

static void know_lanes(race_warp *w) {
  if (!w->lane_seen) w->lane_seen = ff_alloc(RACE_LANES * sizeof *w->lane_seen);
}

bool race_ordered(const race_block *b, uint32_t warp, uint32_t lane, const race_visit *access) {
  const race_warp *w = &b->warp[warp];
  uint32_t other = access->thread / RACE_LANES;
  if (access->block != b->number) {
    const race_view *view = w->others;
    if (!view) return false;
    if (view->floor && (access->when < view->floor || access->when == RACE_WHEN_MAX)) return true;
    const uint32_t *clocks = clocks_of(b->race, view, access->block);
    return clocks && clocks[other] >= access->clock;
  }
  if (other != warp) return w->seen[other] >= access->clock;
  uint32_t whom = access->thread % RACE_LANES;
  if (whom == lane || access->clock <= w->met) return true;
  return w->lane_seen && w->lane_seen[lane][whom] >= access->clock;
}

static void max_into(uint32_t *to, const uint32_t *from, uint32_t count) {
  for (uint32_t n = 0; n < count; n++) to[n] = to[n] > from[n] ? to[n] : from[n];
}

/* All that the warp knows, with its own accesses so far. */
static race_view *whole_view(race_block *b, uint32_t warp) {
  race *r = b->race;
  race_warp *w = &b->warp[warp];
  race_view *own = new_view(r, 1);
  own->count = 1;
  own->words[0] = b->number;
  memcpy(own->words + 1, w->seen, r->warps * sizeof(uint32_t));
  own->words[1 + warp] = w->clock;
  race_view *both = join(r, w->others, own);
  race_view_drop(own);
  return both;
}

void race_fence(race_block *b, uint32_t warp, bool block_scope) {
  race_warp *w = &b->warp[warp];
  if (b->race->now < RACE_WHEN_MAX) b->race->now++;
  race_view *view = whole_view(b, warp);
  race_view_drop(w->fenced[0]);
  w->fenced[0] = hold(view);
  if (!block_scope) {
    race_view_drop(w->fenced[1]);
    w->fenced[1] = hold(view);
  }
  race_view_drop(view);
  w->clock++;
}

void race_meet(race_block *b, uint32_t warp, uint32_t lanes, uint32_t live, bool orders) {
  race_warp *w = &b->warp[warp];
  bool all = !(live & ~lanes);
  if (all) w->together = w->clock;
  if (orders && all) {
    w->met = w->clock;
    forget_lanes(w);
  } else if (orders) {
    uint32_t together[RACE_LANES] = {0};
    know_lanes(w);
    for (uint32_t m = lanes; m; m &= m - 1) max_into(together, w->lane_seen[__builtin_ctz(m)], RACE_LANES);
    for (uint32_t m = lanes; m; m &= m - 1) together[__builtin_ctz(m)] = w->clock;
    for (uint32_t m = lanes; m; m &= m - 1) memcpy(w->lane_seen[__builtin_ctz(m)], together, sizeof together);
  }
  w->clock++;
}

/* ---- barriers ---- */

/* All lanes of the warp know what it knew. */
static void gather_lanes(race_warp *w) {
  w->met = w->together = w->clock++;
  forget_lanes(w);
}

void race_barrier(race_block *b) {
  uint32_t seen[RACE_WARPS] = {0};
  race_view *others = NULL;
  for (uint32_t n = 0; n < b->warps; n++) {
    race_warp *w = &b->warp[n];
    max_into(seen, w->seen, b->warps);
    if (seen[n] < w->clock) seen[n] = w->clock;
    learn(b->race, &others, w->others);
  }
  for (uint32_t n = 0; n < b->warps; n++) {
    race_warp *w = &b->warp[n];
    memcpy(w->seen, seen, b->warps * sizeof *seen);
    learn(b->race, &w->others, others);
    gather_lanes(w);
  }
  race_view_drop(others);
}

void race_arrive(race_block *b, uint32_t warp, uint32_t id) {
  race_warp *w = &b->warp[warp];
  race_gate *gate = &b->gates[id];
  max_into(gate->seen, w->seen, b->warps);
  gate->seen[warp] = w->clock++;
  learn(b->race, &gate->others, w->others);
}

void race_depart(race_block *b, uint32_t warp, uint32_t id) {
  race_warp *w = &b->warp[warp];
  const race_gate *gate = &b->gates[id];
  max_into(w->seen, gate->seen, b->warps);
  learn(b->race, &w->others, gate->others);
  gather_lanes(w);
}

void race_barrier_over(race_block *b, uint32_t id) {
  race_view_drop(b->gates[id].others);
  b->gates[id] = (race_gate){.others = NULL};
}

/* ---- through memory ---- */

static race_variable *find_variable(race_variables *v, uint64_t address, bool make) {
  if (!v->capacity && !make) return NULL;
  if (2 * (v->count + 1) > v->capacity) {
    race_variables old = *v;
    v->capacity = old.capacity ? 2 * old.capacity : 64;
    v->items = ff_alloc(v->capacity * sizeof *v->items);
    v->count = 0;
    for (size_t n = 0; n < old.capacity; n++)
      if (old.items[n].address) *find_variable(v, old.items[n].address, true) = old.items[n];
    free(old.items);
  }
  size_t at = (address * UINT64_C(0x9E3779B97F4A7C15) >> 24) & (v->capacity - 1);
  while (v->items[at].address && v->items[at].address != address) at = (at + 1) & (v->capacity - 1);
  if (!v->items[at].address) {
    if (!make) return NULL;
    v->items[at].address = address;
    v->count++;
  }
  return &v->items[at];
}

void race_variables_free(race_variables *v) {
  for (size_t n = 0; n < v->capacity; n++) {
    race_view_drop(v->items[n].device);
    race_view_drop(v->items[n].block);
  }
  free(v->items);
  *v = (race_variables){.items = NULL};
}

static void take_view(race_block *b, uint32_t warp, uint32_t lane, race_view *view) {
  race_warp *w = &b->warp[warp];
  const uint32_t *own = clocks_of(b->race, view, b->number);
  if (!view) return;
  if (own) {
    uint32_t before = w->seen[warp];
    max_into(w->seen, own, b->warps);
    w->seen[warp] = before;
    if (own[warp] > w->met) { /* lanes of one warp tell each other */
      know_lanes(w);
      for (uint32_t u = 0; u < RACE_LANES; u++)
        if (w->lane_seen[lane][u] < own[warp]) w->lane_seen[lane][u] = own[warp];
    }
  }
  learn(b->race, &w->others, view);
}

static void give_view(race *r, race_view **to, race_view *view, bool adds) {
  if (adds) {
    learn(r, to, view);
    return;
  }
  hold(view);
  race_view_drop(*to);
  *to = view;
}

void race_synchronise(race_block *b, uint32_t warp, uint32_t lane, bool shared, uint64_t address, uint32_t flags) {
  race_warp *w = &b->warp[warp];
  race_variables *variables = shared ? &b->variables : &b->race->variables;
  if (flags & RACE_RELEASES) race_fence(b, warp, flags & RACE_BLOCK_SCOPE);
  bool writes = flags & (RACE_WRITE | RACE_ATOMIC), gives = writes && w->fenced[0];
  race_variable *v = find_variable(variables, address + 1, gives); /* 0 is no address */
  if (!v) return;
  race_view *block = v->owner == b->number ? v->block : NULL;
  if (flags & RACE_ACQUIRES) {
    take_view(b, warp, lane, v->device);
    take_view(b, warp, lane, block);
  }
  if (!writes) return;
  bool adds = flags & RACE_ATOMIC;
  give_view(b->race, &v->device, w->fenced[1], adds);
  if (v->owner != b->number) {
    race_view_drop(v->block);
    v->block = NULL;
    v->owner = b->number;
  }
  give_view(b->race, &v->block, w->fenced[0], adds);
}
