/* SPDX-License-Identifier: Apache-2.0 */
/* One region: what it costs and saves, from how many trips on, and what bars it.
 *
 * Equations (3) and (4) of the paper, with S_W = 32, S_C = 32 and the ratios that it assumes (offload_assumed). A
 * predicate counts as one word for a whole warp, one bit a lane; any other register as 32 words, as in the paper,
 * though a 64-bit one takes twice that (in_bytes, out_bytes). A special register or a parameter that is read in the
 * region counts as a register: a region gains nothing by reading it itself instead of a register. */
#include <stdlib.h>

#include "base/memory.h"
#include "offload/analysis.h"

enum { WARP = 32 };
const offload_ratios offload_assumed = {.coal_load = 1, .coal_store = 1, .miss_load = 0.5, .line_words = 32};

const char *offload_bar_text(offload_bar bar) {
  static const char *const texts[] = {
#define X(id, text) text,
#include "offload/eligibility.def"
#undef X
  };
  return texts[bar];
}

void offload_cost(const offload_region *r, const offload_ratios *ratios, double *tx_fixed, double *tx_trip,
                  double *rx_fixed, double *rx_trip) {
  double load_tx = ratios->coal_load * ratios->miss_load, load_rx = load_tx * ratios->line_words;
  double store_tx = WARP + ratios->coal_store, store_rx = ratios->coal_store / 4;
  *tx_fixed = r->in_words - (r->once_loads * load_tx + r->once_stores * store_tx);
  *rx_fixed = r->out_words - (r->once_loads * load_rx + r->once_stores * store_rx);
  *tx_trip = 0 - (r->loads * load_tx + r->stores * store_tx);
  *rx_trip = 0 - (r->loads * load_rx + r->stores * store_rx);
}

/* The smallest k > 0 for which fixed + k * trip is negative. */
static uint32_t first_negative(double fixed, double trip) {
  if (fixed + trip < 0) return 1;
  if (trip >= 0 || fixed / -trip >= TRACE_TRIPS_MAX) return OFFLOAD_NEVER;
  return (uint32_t)(fixed / -trip) + 1;
}

/* Of a loop whose trips only its run says, as many as it takes to save, TRIPS_NOMINAL at least. */
static uint32_t nominal_trips(const offload_region *r) {
  if (r->trips.kind == OFFLOAD_TRIPS_STATIC) return r->trips.count;
  if (r->trips.kind != OFFLOAD_TRIPS_KNOWN) return 1;
  return r->threshold == OFFLOAD_NEVER || r->threshold < TRIPS_NOMINAL ? TRIPS_NOMINAL : r->threshold;
}

double region_cost(offload_region *r) {
  offload_cost(r, &offload_assumed, &r->tx_fixed, &r->tx_trip, &r->rx_fixed, &r->rx_trip);
  r->threshold = first_negative(r->tx_fixed + r->rx_fixed, r->tx_trip + r->rx_trip);
  r->tx_from = first_negative(r->tx_fixed, r->tx_trip);
  r->rx_from = first_negative(r->rx_fixed, r->rx_trip);
  return -(r->tx_fixed + r->rx_fixed + nominal_trips(r) * (r->tx_trip + r->rx_trip)) * r->times;
}

double times_of(const analysis *a, uint32_t first, uint32_t end) {
  for (uint32_t l = a->loop_of[first]; l != OFFLOAD_NONE_INDEX; l = a->loops[l].parent)
    if (a->loops[l].first_block < first || a->loops[l].last_block >= end) return a->loops[l].times;
  return 1;
}

offload_trips region_trips(const analysis *a, uint32_t index, bool written) {
  offload_trips trips = {.kind = OFFLOAD_TRIPS_ONE, .from = {PTX_NO_REG, 0}, .to = {PTX_NO_REG, 0}};
  if (index == OFFLOAD_NONE_INDEX) return trips;
  trips.kind = OFFLOAD_TRIPS_UNKNOWN;
  return written && a->loops[index].trips.kind == OFFLOAD_TRIPS_KNOWN ? trips : a->loops[index].trips;
}

bool bounds_written(const region_state *r, const span *s) {
  if (s->loop == OFFLOAD_NONE_INDEX) return false;
  const offload_trips *t = &r->a->loops[s->loop].trips;
  return s->bounds_written || (t->from.reg != PTX_NO_REG && region_state_writes(r, t->from.reg)) ||
         (t->to.reg != PTX_NO_REG && region_state_writes(r, t->to.reg));
}

/* ---- the condition ---- */

static int64_t sum(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }

/* trips >= threshold, as a comparison of the one register that decides it. */
static void find_condition(offload_region *r) {
  const offload_trips *t = &r->trips;
  uint32_t tests = r->threshold - (t->tested_first ? 0 : 1);
  r->compared = PTX_NO_REG;
  if (t->kind != OFFLOAD_TRIPS_KNOWN || r->threshold == OFFLOAD_NEVER || !tests) return;
  bool by_from = t->from.reg != PTX_NO_REG, by_to = t->to.reg != PTX_NO_REG;
  if (by_from == by_to) return;
  const offload_bound *fixed = by_from ? &t->to : &t->from, *moving = by_from ? &t->from : &t->to;
  uint64_t step = t->step < 0 ? 0 - (uint64_t)t->step : (uint64_t)t->step;
  bool strict = t->compare == PTX_MOD_LT || t->compare == PTX_MOD_GT;
  uint64_t way = t->compare == PTX_MOD_NE ? step * tests : step * (tests - 1) + strict;
  r->compared_down = by_from == (t->step > 0); /* a start further down, or an end */
  r->compared = moving->reg;
  r->compared_with = sum(sum(fixed->value, r->compared_down ? (int64_t)(0 - way) : (int64_t)way), -moving->value);
}

/* ---- what bars it ---- */

/* How many places there are where control comes into [begin, end) and goes out of it; one of each, and where its branch
 * stands. */
typedef struct borders {
  uint32_t entries, exits, entry, exit, entry_line, exit_line;
} borders;

static void note(uint32_t *count, uint32_t *place, uint32_t *line, uint32_t at, uint32_t from_line) {
  if (*count && *place == at) return;
  ++*count;
  *place = at;
  *line = from_line;
}

static uint32_t line_of(const analysis *a, uint32_t instr) { return a->func->instrs[instr].place.line; }

static borders find_borders(const analysis *a, uint32_t begin, uint32_t end) {
  borders found = {0};
  uint32_t first = a->cfg->block_of[begin], last = a->cfg->block_of[end - 1];
  const ptx_block *blocks = a->cfg->blocks;
  if (begin == 0 || begin > blocks[first].first)
    note(&found.entries, &found.entry, &found.entry_line, begin, line_of(a, begin));
  if (end < blocks[last].end) note(&found.exits, &found.exit, &found.exit_line, end, line_of(a, end - 1));
  for (uint32_t b = first; b <= last; b++) {
    const ptx_block *block = &blocks[b];
    /* its first instruction is in the region, its last one */
    bool top = block->first >= begin, bottom = block->end <= end;
    for (uint32_t i = 0; top && i < block->predecessor_count; i++) {
      const ptx_block *from = &blocks[block->predecessors[i]];
      if (from->reachable && (from->end <= begin || from->end > end))
        note(&found.entries, &found.entry, &found.entry_line, block->first, line_of(a, from->end - 1));
    }
    for (uint32_t i = 0; bottom && i < block->successor_count; i++) {
      const ptx_block *to = &blocks[block->successors[i]];
      if (to->first < begin || to->first >= end)
        note(&found.exits, &found.exit, &found.exit_line, to->first, line_of(a, block->end - 1));
    }
  }
  return found;
}

static void find_bar(const analysis *a, const borders *found, offload_region *r) {
  for (uint32_t i = r->begin; i < r->end; i++) {
    if (!a->ineligible[i]) continue;
    r->bar = a->ineligible[i];
    r->bar_line = line_of(a, i);
    return;
  }
  for (uint32_t b = a->cfg->block_of[r->begin]; b <= a->cfg->block_of[r->end - 1]; b++) {
    if (a->cfg->blocks[b].reachable) continue;
    r->bar = OFFLOAD_UNREACHED;
    r->bar_line = line_of(a, a->cfg->blocks[b].first);
    return;
  }
  if (found->entries != 1) {
    r->bar = OFFLOAD_ENTERED;
    r->bar_line = found->entry_line;
  } else if (found->exits != 1) {
    r->bar = OFFLOAD_DIVERGENCE;
    r->bar_line = found->exits ? found->exit_line : r->last_line;
  }
}

/* ---- description ---- */

static void find_lines(const analysis *a, offload_region *r) {
  r->first_line = r->last_line = line_of(a, r->begin);
  for (uint32_t i = r->begin; i < r->end; i++) {
    uint32_t line = line_of(a, i);
    if (line < r->first_line) r->first_line = line;
    if (line > r->last_line) r->last_line = line;
  }
}

static int by_number(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return a < b ? -1 : a > b;
}

static bool is_per_lane(const offload_other *other) { return !other->param && other->sreg <= PTX_SREG_TID_Z; }

static uint64_t bytes_of(const analysis *a, uint32_t reg) {
  if (reg >= a->func->reg_count) {
    const offload_other *other = &a->others.items[reg - a->func->reg_count];
    return other->param ? other->param->size : is_per_lane(other) ? WARP * 4 : 4;
  }
  uint32_t bits = ptx_type_bits(a->func->regs[reg].type);
  return a->func->regs[reg].type == PTX_PRED ? WARP / 8 : WARP * (bits <= 32 ? 4 : bits / 8);
}

static void list_registers(const region_state *state, ff_arena *arena, offload_region *r) {
  const analysis *a = state->a;
  uint32_t count = state->changed_count;
  uint32_t *in = ff_arena_alloc(arena, (count + 1) * sizeof *in),
           *out = ff_arena_alloc(arena, (count + 1) * sizeof *out), in_count = 0;
  uint64_t in_bytes = 0, out_bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t reg = state->changed[i];
    if (region_state_is_in(state, reg)) {
      in[in_count++] = reg;
      in_bytes += bytes_of(a, reg);
    }
    if (region_state_is_out(state, reg)) {
      out[r->live_out_count++] = reg;
      out_bytes += bytes_of(a, reg);
    }
  }
  qsort(in, in_count, sizeof *in, by_number);
  qsort(out, r->live_out_count, sizeof *out, by_number);
  while (r->live_in_count < in_count && in[r->live_in_count] < a->func->reg_count) r->live_in_count++;
  r->live_in = in;
  r->others = in + r->live_in_count; /* are numbered behind the registers */
  r->other_count = in_count - r->live_in_count;
  for (uint32_t i = 0; i < r->other_count; i++) r->others[i] -= a->func->reg_count;
  r->live_out = out;
  r->in_bytes = in_bytes < UINT32_MAX ? (uint32_t)in_bytes : UINT32_MAX;
  r->out_bytes = out_bytes < UINT32_MAX ? (uint32_t)out_bytes : UINT32_MAX;
  r->in_words = state->in_words;
  r->out_words = state->out_words;
}

/* Grows the region as choose.c does: the rest of a block, whole blocks, the beginning of a block. Returns the loop
 * whose trips count. */
static span run_through(const analysis *a, const offload_region *r, region_state *state, effects *all, bool *written) {
  const ptx_block *blocks = a->cfg->blocks;
  uint32_t first = a->cfg->block_of[r->begin], last = a->cfg->block_of[r->end - 1];
  bool tail = r->begin > blocks[first].first, top = r->end < blocks[last].end;
  span s = {.first = first + tail,
            .last = last - top,
            .entry = tail ? OFFLOAD_NONE_INDEX : a->cfg->block_of[r->entry],
            .exit = r->exit,
            .loop = OFFLOAD_NONE_INDEX};
  if (top) s.exit = blocks[last].first;
  bool one_block = first == last && (tail || top), spans = !one_block && s.first < s.last + 1 && a->live_in;
  *written = false;
  region_state_clear(state);
  for (uint32_t i = r->begin; i < r->end && i < blocks[first].end && (tail || one_block); i++)
    region_state_add(state, i, NULL);
  if (one_block) return s;
  all->count = 0;
  if (spans) {
    span_make(a, &s, all);
    *written = bounds_written(state, &s);
    if (s.effect_count) region_state_add_span(state, all->items + s.effect_first, s.effect_count, NULL);
  }
  for (uint32_t i = blocks[last].first; i < r->end && top; i++) region_state_add(state, i, NULL);
  return s;
}

/* ---- where trips begin ---- */

static bool dominates(const analysis *a, uint32_t block, uint32_t other) {
  while (other != block && a->idom[other] != UINT32_MAX && a->cfg->blocks[other].order > a->cfg->blocks[block].order)
    other = a->idom[other];
  return other == block;
}

/* Do all accesses of the loop, and all ways round it, come behind this block of it? */
static bool comes_first(const analysis *a, const loop *l, uint32_t block) {
  const ptx_block *blocks = a->cfg->blocks, *header = &blocks[l->header];
  for (uint32_t k = 0; k < header->predecessor_count; k++)
    if (in_loop(a, l, header->predecessors[k]) && !dominates(a, block, header->predecessors[k])) return false;
  for (uint32_t b = l->first_block; b <= l->last_block; b++)
    for (uint32_t i = blocks[b].first; in_loop(a, l, b) && i < blocks[b].end; i++)
      if (a->accesses[i] && !dominates(a, block, b)) return false;
  return true;
}

static uint32_t first_access(const analysis *a, uint32_t block) {
  for (uint32_t i = a->cfg->blocks[block].first; i < a->cfg->blocks[block].end; i++)
    if (a->accesses[i]) return i;
  return OFFLOAD_NONE_INDEX;
}

/* The access with which each trip of the loop begins: once in each, for all lanes that are there, and before all
 * others. */
static uint32_t trip_begins(const analysis *a, uint32_t index) {
  const loop *l = &a->loops[index];
  for (uint32_t b = l->first_block; b <= l->last_block; b++) {
    uint32_t access = a->loop_of[b] == index ? first_access(a, b) : OFFLOAD_NONE_INDEX;
    if (access == OFFLOAD_NONE_INDEX || a->func->instrs[access].guard != PTX_NO_REG || !comes_first(a, l, b)) continue;
    return access;
  }
  return OFFLOAD_NONE_INDEX;
}

/* ---- the whole ---- */

/* All but `again`; returns the loop whose trips count. */
static uint32_t describe(const analysis *a, uint32_t begin, uint32_t end, region_state *state, effects *all,
                         ff_arena *arena, offload_region *r) {
  borders found = find_borders(a, begin, end);
  bool written;
  *r = (offload_region){
      .begin = begin, .end = end, .entry = found.entries ? found.entry : begin, .exit = found.exits ? found.exit : end};
  find_lines(a, r);
  span s = run_through(a, r, state, all, &written);
  list_registers(state, arena, r);
  r->trips = region_trips(a, s.loop, written);
  uint32_t once_loads = state->loads + s.once_loads, once_stores = state->stores + s.once_stores;
  if (s.loop == OFFLOAD_NONE_INDEX) {
    r->loads = once_loads;
    r->stores = once_stores;
  } else {
    r->loads = a->loops[s.loop].loads;
    r->stores = a->loops[s.loop].stores;
    r->once_loads = once_loads;
    r->once_stores = once_stores;
  }
  uint32_t first = a->cfg->block_of[begin];
  bool tail = begin > a->cfg->blocks[first].first;
  r->times = times_of(a, first, tail ? first : s.last + 1);
  double saved = region_cost(r);
  find_bar(a, &found, r);
  if (!r->bar && !(r->loads + r->stores + once_loads + once_stores)) r->bar = OFFLOAD_NO_MEMORY;
  if (!r->bar && saved <= 0) r->bar = OFFLOAD_NO_SAVING;
  if (r->bar && !r->bar_line) r->bar_line = r->first_line;
  r->candidate = !r->bar;
  find_condition(r);
  return s.loop;
}

/* What is left of the region where its loop begins is a region itself, which the loop's first instruction enters; else
 * it cannot be sent alone. */
static void find_again(const analysis *a, uint32_t index, region_state *state, effects *all, ff_arena *arena,
                       offload_region *r) {
  if (index == OFFLOAD_NONE_INDEX || !r->candidate) return;
  uint32_t header = a->cfg->blocks[a->loops[index].header].first, access = trip_begins(a, index);
  offload_region left = *r;
  if (access == OFFLOAD_NONE_INDEX) return;
  if (r->entry != header) {
    uint32_t begin = a->cfg->blocks[a->loops[index].first_block].first;
    borders found = find_borders(a, begin, r->end);
    if (found.entries != 1 || found.entry != header || found.exits != 1 || found.exit != r->exit) return;
    if (describe(a, begin, r->end, state, all, arena, &left) != index) return;
  }
  r->again = (offload_again){true,          access,         left.in_bytes,   left.out_bytes,
                             left.in_words, left.out_words, left.once_loads, left.once_stores};
}

void region_describe(const analysis *a, uint32_t begin, uint32_t end, region_state *state, effects *all,
                     ff_arena *arena, offload_region *r) {
  uint32_t index = describe(a, begin, end, state, all, arena, r);
  find_again(a, index, state, all, arena, r);
}
