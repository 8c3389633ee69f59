/* SPDX-License-Identifier: Apache-2.0 */
/* All regions of a function, and the set of them that saves most and in which no two overlap.
 *
 * Regions are stretches of the layout, so the best set is found from the end of the function to its beginning (weighted
 * interval scheduling):
 *
 *   best(i) = max(best(i + 1), saved(i, j) + best(j) for each region [i, j))         best(end) = 0
 *
 * where saved() are words of 4 bytes for the nominal number of trips, times the number of times that a warp comes by.
 * Of equal sets the one with fewer instructions is taken. Regions that begin at i are found by growing them: through
 * the rest of i's block, and on through stretches of whole blocks that are entered at one place and left to one (span),
 * into the block behind.
 *
 * saved() is a multiple of 1/4 word below 2^51 (asserted), so sums are exact and the choice is the same everywhere. */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "offload/analysis.h"

enum { SHORTEST_RUN = 128, LONGEST_RUN = 2048, RUN_WORK = 20000000, MAX_BLOCKS = 512, SPAN_WORK = 40000000 };

typedef struct block_facts {
  /* instructions; first_bar: the block's end if none; last_bar: first instruction behind the last bar */
  uint32_t first_bar, last_bar;
  uint32_t predecessors; /* reachable ones, and the function's start */
} block_facts;

/* Blocks [first, next) of the layout, and how many places there are where control comes in and goes out. Of a tail only
 * what follows some instruction of block `first` is in it: a branch to that block leaves. */
typedef struct grower {
  uint32_t first, next;
  bool tail;
  uint32_t entries, exits;
  uint64_t entry_sum, exit_sum; /* of their blocks: the block itself where there is one */
} grower;

/* behind: the block whose beginning may follow, or OFFLOAD_NONE_INDEX: the region ends here */
typedef struct found_span {
  span s;
  uint32_t behind;
} found_span;

typedef struct chooser {
  const analysis *a;
  block_facts *blocks;
  uint32_t *from_inside, *rounds, round; /* per block: edges from the grower's blocks, in this round */
  double *best;
  /* per instruction: of the best set from here on; the end of the region that begins here, or 0 */
  uint32_t *covered, *next;
  uint32_t longest;
  int64_t work;
  effects all;
  FF_VEC(found_span) tails, wholes;
  region_state state;
  undo_log log;
} chooser;

/* ---- stretches of blocks ---- */

static uint32_t *edges_to(chooser *c, uint32_t block) {
  if (c->rounds[block] != c->round) c->from_inside[block] = 0;
  c->rounds[block] = c->round;
  return &c->from_inside[block];
}

static bool holds(const grower *g, uint32_t block) { return block >= g->first + g->tail && block < g->next; }

static void grow(chooser *c, grower *g) {
  uint32_t added = g->next++;
  const ptx_block *block = &c->a->cfg->blocks[added];
  if (!holds(g, added)) {
    g->entries++; /* at some instruction of it */
    g->entry_sum += added;
  } else {
    if (*edges_to(c, added)) {
      g->exits--;
      g->exit_sum -= added;
    }
    if (c->blocks[added].predecessors > *edges_to(c, added)) {
      g->entries++;
      g->entry_sum += added;
    }
  }
  for (uint32_t i = 0; i < block->successor_count; i++) {
    uint32_t to = block->successors[i], edges = ++*edges_to(c, to);
    if (!holds(g, to) && edges == 1) {
      g->exits++;
      g->exit_sum += to;
    }
    if (holds(g, to) && edges == c->blocks[to].predecessors) {
      g->entries--;
      g->entry_sum -= to;
    }
  }
}

/* The stretch has nothing in it but a tail's instructions: no span. */
static void take_span(chooser *c, const grower *g, bool tail, uint32_t behind) {
  found_span f = {.s = {.first = g->first + tail,
                        .last = g->next - 1,
                        .exit = c->a->cfg->blocks[g->exit_sum].first,
                        .loop = OFFLOAD_NONE_INDEX},
                  .behind = behind};
  f.s.entry = tail ? OFFLOAD_NONE_INDEX : (uint32_t)g->entry_sum;
  if (f.s.first <= f.s.last) {
    if (!span_make(c->a, &f.s, &c->all)) return;
    c->work -= (int64_t)f.s.work;
  }
  if (tail) FF_PUSH(&c->tails, f);
  else FF_PUSH(&c->wholes, f);
}

/* All stretches that begin with the block, or with the tail of it. */
static void find_spans(chooser *c, uint32_t first, bool tail) {
  const ptx_cfg *cfg = c->a->cfg;
  grower g = {.first = first, .next = first, .tail = tail};
  c->round++;
  for (uint32_t b = first; b < cfg->block_count && b - first < MAX_BLOCKS && c->work > 0; b++) {
    const block_facts *facts = &c->blocks[b];
    bool enters_behind =
        b > first && g.entries == 1 && g.exits == 1 && g.exit_sum == b && *edges_to(c, b) == facts->predecessors;
    if (!cfg->blocks[b].reachable) return;
    if (enters_behind && facts->first_bar > cfg->blocks[b].first) take_span(c, &g, tail, b);
    if (facts->first_bar < cfg->blocks[b].end && !(tail && b == first)) return;
    grow(c, &g);
    c->work--;
    if (g.entries == 1 && g.exits == 1) take_span(c, &g, tail, OFFLOAD_NONE_INDEX);
  }
}

/* ---- regions that begin at one instruction ---- */

static void offer(chooser *c, uint32_t begin, uint32_t end, double saved) {
  double total = saved + c->best[end];
  FF_CHECK(fabs(saved) < 0x1p51 && saved * 4 == floor(saved * 4));
  uint32_t covered = c->covered[end] + (end - begin);
  if (saved <= 0 || total < c->best[begin] || (total == c->best[begin] && covered >= c->covered[begin])) return;
  c->best[begin] = total;
  c->covered[begin] = covered;
  c->next[begin] = end;
}

static void offer_run(chooser *c, uint32_t begin, uint32_t end, double times) {
  const region_state *r = &c->state;
  if (r->loads + r->stores)
    offer(c, begin, end, (16.5 * r->loads + 33.25 * r->stores - r->in_words - r->out_words) * times);
}

static void offer_span(chooser *c, uint32_t begin, uint32_t end, const span *s, bool written, double times) {
  if (s->loop == OFFLOAD_NONE_INDEX) {
    offer_run(c, begin, end, times);
    return;
  }
  const loop *l = &c->a->loops[s->loop];
  offload_region r = {.in_words = c->state.in_words,
                      .out_words = c->state.out_words,
                      .loads = l->loads,
                      .stores = l->stores,
                      .once_loads = c->state.loads,
                      .once_stores = c->state.stores,
                      .trips = region_trips(c->a, s->loop, written),
                      .times = times};
  offer(c, begin, end, region_cost(&r));
}

/* The state is that of the region so far, which reaches the end of its first block (or has not begun). */
static void go_on(chooser *c, uint32_t begin, const found_span *f, double times) {
  region_state *r = &c->state;
  uint32_t loads = r->loads, stores = r->stores;
  bool written = bounds_written(r, &f->s);
  c->log.count = 0;
  if (f->s.effect_count) region_state_add_span(r, c->all.items + f->s.effect_first, f->s.effect_count, &c->log);
  r->loads += f->s.once_loads;
  r->stores += f->s.once_stores;
  if (f->behind == OFFLOAD_NONE_INDEX) {
    offer_span(c, begin, c->a->cfg->blocks[f->s.last].end, &f->s, written, times);
  } else {
    const ptx_block *b = &c->a->cfg->blocks[f->behind];
    for (uint32_t i = b->first; i + 1 < b->end && i < c->blocks[f->behind].first_bar && i - b->first < c->longest;
         i++) {
      region_state_add(r, i, &c->log);
      offer_span(c, begin, i + 1, &f->s, written, times);
    }
  }
  c->work -= (int64_t)c->log.count;
  region_state_undo(r, &c->log);
  r->loads = loads;
  r->stores = stores;
}

static void grow_from(chooser *c, uint32_t begin) {
  const analysis *a = c->a;
  uint32_t first = a->cfg->block_of[begin];
  const ptx_block *block = &a->cfg->blocks[first];
  double times = times_of(a, first, first);
  uint32_t i = begin;
  region_state_clear(&c->state);
  for (; i < block->end && !a->ineligible[i] && i - begin < c->longest; i++) {
    region_state_add(&c->state, i, NULL);
    if (i + 1 < block->end) offer_run(c, begin, i + 1, times);
  }
  if (begin > block->first && i == block->end)
    for (size_t k = 0; k < c->tails.count && c->work > 0; k++) go_on(c, begin, &c->tails.items[k], times);
  region_state_clear(&c->state);
  if (begin > block->first) return;
  for (size_t k = 0; k < c->wholes.count && c->work > 0; k++)
    go_on(c, begin, &c->wholes.items[k], times_of(a, first, c->wholes.items[k].s.last + 1));
}

/* ---- the whole ---- */

static void choose_in_block(chooser *c, uint32_t block) {
  const analysis *a = c->a;
  const ptx_block *b = &a->cfg->blocks[block];
  c->tails.count = c->wholes.count = c->all.count = 0;
  if (a->live_in && b->reachable) {
    if (c->blocks[block].last_bar < b->end) find_spans(c, block, true);
    find_spans(c, block, false);
  }
  for (uint32_t i = b->end; i-- > b->first;) {
    c->best[i] = c->best[i + 1];
    c->covered[i] = c->covered[i + 1];
    if (b->reachable && !a->ineligible[i]) grow_from(c, i);
  }
}

static void find_block_facts(chooser *c) {
  const analysis *a = c->a;
  for (uint32_t b = 0; b < a->cfg->block_count; b++) {
    const ptx_block *block = &a->cfg->blocks[b];
    block_facts *facts = &c->blocks[b];
    *facts = (block_facts){block->end, block->first, b == 0};
    for (uint32_t i = block->end; i-- > block->first;) {
      if (!a->ineligible[i]) continue;
      if (facts->first_bar == block->end) facts->last_bar = i + 1;
      facts->first_bar = i;
    }
    for (uint32_t i = 0; i < block->predecessor_count; i++)
      facts->predecessors += a->cfg->blocks[block->predecessors[i]].reachable;
  }
}

void choose(const analysis *a, choices *chosen) {
  uint32_t count = a->func->instr_count;
  chooser c = {.a = a, .work = SPAN_WORK};
  uint32_t run = RUN_WORK / (count + 1);
  c.longest = run < SHORTEST_RUN ? SHORTEST_RUN : run > LONGEST_RUN ? LONGEST_RUN : run;
  c.blocks = ff_alloc((a->cfg->block_count + 1) * sizeof *c.blocks);
  c.from_inside = ff_alloc((a->cfg->block_count + 1) * sizeof *c.from_inside);
  c.rounds = ff_alloc((a->cfg->block_count + 1) * sizeof *c.rounds);
  c.best = ff_alloc((count + 1) * sizeof *c.best);
  c.covered = ff_alloc((count + 1) * sizeof *c.covered);
  c.next = ff_alloc((count + 1) * sizeof *c.next);
  region_state_make(&c.state, a);
  find_block_facts(&c);
  for (uint32_t b = a->cfg->block_count; b-- > 0;) choose_in_block(&c, b);
  for (uint32_t i = 0; i < count; i = c.next[i] ? c.next[i] : i + 1)
    if (c.next[i]) FF_PUSH(chosen, ((choice){i, c.next[i]}));
  region_state_free(&c.state);
  void *owned[] = {c.blocks, c.from_inside, c.rounds,      c.best,         c.covered,
                   c.next,   c.all.items,   c.tails.items, c.wholes.items, c.log.items};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
}
