/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the evictor: groups of 64 KiB, chosen a few at a time by a look at all that are in GPU memory.
 *
 *     1. what was used, or came, since the last eighth of memory arrived is left alone, if there is anything else
 *     2. then the oldest goes; or the youngest of those that were not seen used again after a pause, and then of the
 *        others: whichever of the two orders was regretted less
 *
 * The youngest is right for data that is swept over again and again and is larger than memory: least recently used would
 * always evict what comes next. An eviction is regretted when the group comes back, more the sooner it does; one choice in
 * sixteen is made by the other order, so that both are known. Of an allocation of whose pages few are used, a group's
 * pages go one by one: those that were not used lately.
 *
 * While the link to the host idles, dirty groups that have rested are written back and stay; how long that takes an
 * allocation finds out from groups that were dirty again too soon. */
#include <stdlib.h>

#include "policy/auto_state.h"
#include "policy/policies.h"

enum { SHARE = 16, EXPLORE = 16, REMEMBERED_PAGES = 4096, REMEMBERED_GROUPS = 256, ENOUGH_JUDGED = 6, CLEAN_LOOKS = 64 };

#define LEAST_QUIET UINT64_C(20000000) /* 20 us, about what a far-fault takes: a store that is to come soon has come by then */
#define MOST_QUIET (LEAST_QUIET << 20)

typedef struct auto_victim { uint64_t address, recency, stamp; uint8_t rounds; bool guarded; uint8_t by; } auto_victim;

static int by_age(const void *a, const void *b) {
  const auto_victim *x = a, *y = b;
  if (x->guarded != y->guarded) return x->guarded - y->guarded;
  if (x->recency != y->recency) return x->recency < y->recency ? -1 : 1;
  return (x->address > y->address) - (x->address < y->address);
}

static int by_youth(const void *a, const void *b) {
  const auto_victim *x = a, *y = b;
  if (x->guarded || y->guarded) return by_age(a, b);
  if ((x->rounds > 0) != (y->rounds > 0)) return (x->rounds > 0) - (y->rounds > 0);
  if (x->recency != y->recency) return x->recency > y->recency ? -1 : 1;
  return (x->address > y->address) - (x->address < y->address);
}

static auto_victim look_at(const auto_state *s, ff_view *view, uint64_t address, uint64_t guard) {
  auto_group *g = auto_group_find(s, address);
  uint64_t used = view->last_use(view, address, FF_GROUP_BYTES);
  if (used > g->used) {
    if (g->used && g->used < guard && g->rounds < UINT8_MAX) g->rounds++;
    g->used = used;
  }
  auto_victim v = {.address = address, .recency = used > g->came ? used : g->came, .rounds = g->rounds};
  v.guarded = v.recency >= guard;
  return v;
}

/* How wrong the order's latest evictions were, from 0 (what it evicted has not come back) to 1 (it came back at once); those
 * that are too young to say are left out. Less than 0: too few are left. */
static double regret(const auto_state *s, const ff_view *view, auto_order order) {
  double turnover = (double)auto_turnover(s, view), sum = 0;
  uint32_t judged = 0, known = s->departure_count < AUTO_DEPARTURES ? (uint32_t)s->departure_count : AUTO_DEPARTURES;
  for (uint32_t i = 0; i < known; i++) {
    const auto_departure *d = &s->departures[i];
    if (d->by != order || (!d->back && (double)(view->now - d->time) < turnover / 4)) continue;
    judged++;
    if (d->back) sum += turnover / (turnover + (double)(d->back - d->time) + 1);
  }
  return judged < ENOUGH_JUDGED ? -1 : sum / judged;
}

static void choose_order(auto_state *s, const ff_view *view) {
  auto_order other = s->order == AUTO_OLDEST ? AUTO_YOUNGEST : AUTO_OLDEST;
  double now = regret(s, view, s->order), then = regret(s, view, other);
  if (then >= 0 && now > then * 1.15 + 0.02) s->order = other;
}

/* Looks at everything and notes the next victims. */
static void look(auto_state *s, ff_view *view) {
  uint64_t guard = auto_guard(s);
  s->victims.count = s->next_victim = 0;
  for (size_t i = 0; i < s->resident.count; i++) {
    const auto_group *g = auto_group_find(s, s->resident.items[i]);
    if (g->asked != s->asked) FF_PUSH(&s->victims, look_at(s, view, s->resident.items[i], guard)); /* else: it is proposed already */
  }
  if (!s->victims.count) return;
  choose_order(s, view);
  auto_order order = s->turn++ % EXPLORE ? s->order : s->order == AUTO_OLDEST ? AUTO_YOUNGEST : AUTO_OLDEST;
  qsort(s->victims.items, s->victims.count, sizeof *s->victims.items, order == AUTO_YOUNGEST ? by_youth : by_age);
  s->victims.count = s->victims.count / SHARE + 1;
  for (size_t i = 0; i < s->victims.count; i++) s->victims.items[i].by = (uint8_t)order;
}

/* Of the group's pages those that go: all, or, where few pages are used, those that were not used lately (all, if each was).
 * Counts for the allocation how many of them had been used. */
static uint16_t leaving(auto_state *s, ff_view *view, const auto_group *g, uint64_t group) {
  auto_allocation *a = auto_allocation_at(s, view, group);
  if (!a) return g->pages; /* it begins within the group */
  uint64_t guard = auto_is_sparse(view, a) ? auto_guard(s) : UINT64_MAX;
  uint16_t pages = 0;
  for (uint32_t page = 0; page < FF_GROUP_PAGES; page++) {
    if (!(g->pages >> page & 1)) continue;
    uint64_t used = view->last_use(view, group + page * FF_PAGE_BYTES, FF_PAGE_BYTES);
    if ((used ? used : g->latest) > guard) continue;
    pages |= (uint16_t)(1u << page);
    a->useful += used != 0;
  }
  if (g->pages) a->brought += (uint64_t)FF_GROUP_PAGES * (uint64_t)__builtin_popcount(pages) / (uint64_t)__builtin_popcount(g->pages);
  if (a->brought > REMEMBERED_PAGES) {
    a->brought /= 2;
    a->useful /= 2;
  }
  return pages ? pages : g->pages;
}

/* The group goes: was it right to bring it ahead? */
static void judge_stream(auto_state *s, ff_view *view, auto_group *g, uint64_t group) {
  auto_allocation *a = g->ahead ? auto_allocation_at(s, view, group) : NULL;
  g->ahead = false;
  if (!a) return;
  a->ahead++;
  a->wasted += view->last_use(view, group, FF_GROUP_BYTES) == 0;
  if (a->ahead <= REMEMBERED_GROUPS) return;
  a->ahead /= 2;
  a->wasted /= 2;
}

/* Proposes the group or a part of it. Returns bytes. */
static uint64_t propose(auto_state *s, ff_view *view, const auto_victim *v) {
  auto_group *g = auto_group_find(s, v->address);
  judge_stream(s, view, g, v->address);
  uint16_t pages = leaving(s, view, g, v->address);
  for (uint32_t page = 0, end; page < FF_GROUP_PAGES; page = end + 1) {
    for (end = page; end < FF_GROUP_PAGES && pages >> end & 1;) end++;
    if (end > page) view->propose(view, v->address + page * FF_PAGE_BYTES, (end - page) * FF_PAGE_BYTES);
  }
  g->asked = s->asked;
  s->departures[s->departure_count++ % AUTO_DEPARTURES] = (auto_departure){.time = view->now, .by = (auto_order)v->by};
  g->departure = s->departure_count;
  return (uint64_t)__builtin_popcount(pages) * FF_PAGE_BYTES;
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  auto_state *s = state;
  uint64_t guard = auto_guard(s);
  s->full = true;
  s->asked++;
  bool looked = false;
  for (uint64_t proposed = 0; proposed < bytes;) {
    if (s->next_victim >= s->victims.count) {
      if (looked) return;
      look(s, view);
      looked = true;
      if (!s->victims.count) return;
    }
    auto_victim v = s->victims.items[s->next_victim++];
    auto_group *g = auto_group_find(s, v.address);
    if (!g->pages || (!v.guarded && view->last_use(view, v.address, FF_GROUP_BYTES) > guard)) continue; /* gone, or used meanwhile */
    proposed += propose(s, view, &v);
  }
}

/* ---- writing back ahead ---- */

/* The group's dirty pages can be written back now. If they are dirty again soon after the last time, that was too early: the
 * allocation's groups must rest twice as long from now on. */
static bool rests(const ff_view *view, auto_allocation *a, auto_group *g, uint64_t used) {
  uint64_t quiet = a->quiet ? a->quiet : LEAST_QUIET, latest = used > g->latest ? used : g->latest;
  if (g->cleaned) {
    if (view->now - g->cleaned < 4 * quiet && quiet < MOST_QUIET) a->quiet = quiet *= 2;
    g->cleaned = 0;
  }
  return view->now - latest >= quiet;
}

/* The hand goes round what is in GPU memory, a few groups at a time, to one that is dirty and rests. */
static void clean(void *state, ff_view *view) {
  auto_state *s = state;
  size_t count = s->resident.count < CLEAN_LOOKS ? s->resident.count : CLEAN_LOOKS;
  for (size_t i = 0; i < count; i++) {
    if (s->clean_hand >= s->resident.count) s->clean_hand = 0;
    uint64_t group = s->resident.items[s->clean_hand++];
    ff_block block;
    view->block(view, group, &block);
    uint32_t page = pages_index(group);
    if (!(block.dirty.word[page / 64] >> page % 64 & 0xffff)) continue;
    auto_allocation *a = auto_allocation_at(s, view, group);
    auto_group *g = auto_group_find(s, group);
    if (!a || !rests(view, a, g, view->last_use(view, group, FF_GROUP_BYTES))) continue;
    view->propose(view, group, FF_GROUP_BYTES);
    g->cleaned = view->now;
    return;
  }
}

const ff_policy policy_evict_auto = {
    .version = FF_POLICY_VERSION,
    .name = "auto",
    .summary = "groups not used again first, oldest or youngest, whichever was regretted less",
    .create = auto_create,
    .destroy = auto_destroy,
    .evict = evict,
    .clean = clean,
    .arrived = auto_arrived,
    .left = auto_left,
    .shares_state = true,
};
