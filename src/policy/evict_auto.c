/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the evictor: groups of 64 KiB, chosen a few at a time by a look at all that are in GPU memory.
 *
 *     1. what was used, or came, since the last eighth of memory arrived is left alone, if there is anything else
 *     2. groups that were not seen used again after a pause go before those that were
 *     3. among equals the oldest or the youngest goes: whichever was regretted less
 *
 * The youngest is right for data that is swept over again and again and is larger than memory: least recently used would
 * always evict what comes next. An eviction is regretted when the group comes back, more the sooner it does; one choice in
 * sixteen is made by the other order, so that both are known. Of an allocation of whose pages few are used, a group's
 * pages go one by one: those that were not used lately. */
#include <stdlib.h>

#include "policy/auto_state.h"
#include "policy/policies.h"

enum { SHARE = 16, EXPLORE = 16 };

typedef struct auto_victim { uint64_t address, recency, stamp; uint8_t rounds; bool guarded; uint8_t by; } auto_victim;

static int by_age(const void *a, const void *b) {
  const auto_victim *x = a, *y = b;
  if (x->guarded != y->guarded) return x->guarded - y->guarded;
  if (x->guarded) return x->recency != y->recency ? (x->recency < y->recency ? -1 : 1) : (x->address > y->address) - (x->address < y->address);
  if ((x->rounds > 0) != (y->rounds > 0)) return (x->rounds > 0) - (y->rounds > 0);
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

static void choose_order(auto_state *s) {
  double rate[AUTO_ORDERS];
  for (int i = 0; i < AUTO_ORDERS; i++) rate[i] = s->regret[i] / (s->evictions[i] + 4);
  auto_order other = s->order == AUTO_OLDEST ? AUTO_YOUNGEST : AUTO_OLDEST;
  if (rate[s->order] > 1.25 * rate[other] + 0.02 && s->evictions[s->order] > 8) s->order = other;
}

/* Looks at everything and notes the next victims. */
static void look(auto_state *s, ff_view *view) {
  uint64_t guard = auto_guard(s);
  s->victims.count = s->next_victim = 0;
  for (size_t i = 0; i < s->resident.count; i++) FF_PUSH(&s->victims, look_at(s, view, s->resident.items[i], guard));
  if (!s->victims.count) return;
  choose_order(s);
  auto_order order = s->turn++ % EXPLORE ? s->order : s->order == AUTO_OLDEST ? AUTO_YOUNGEST : AUTO_OLDEST;
  qsort(s->victims.items, s->victims.count, sizeof *s->victims.items, order == AUTO_YOUNGEST ? by_youth : by_age);
  s->victims.count = s->victims.count / SHARE + 1;
  for (size_t i = 0; i < s->victims.count; i++) s->victims.items[i].by = (uint8_t)order;
}

/* Proposes the group, or those of its pages that were not used lately. Returns bytes. */
static uint64_t propose(auto_state *s, ff_view *view, const auto_victim *v) {
  auto_group *g = auto_group_find(s, v->address);
  auto_allocation *a = auto_allocation_at(s, view, v->address);
  if (!a) { /* it begins within the group */
    view->propose(view, v->address, FF_GROUP_BYTES);
    return (uint64_t)__builtin_popcount(g->pages) * FF_PAGE_BYTES;
  }
  bool sparse = auto_is_sparse(a);
  uint64_t guard = sparse ? auto_guard(s) : UINT64_MAX;
  uint32_t count = 0, all = 0;
  for (uint32_t page = 0; page < FF_GROUP_PAGES; page++) {
    if (!(g->pages >> page & 1)) continue;
    uint64_t address = v->address + page * FF_PAGE_BYTES, used = view->last_use(view, address, FF_PAGE_BYTES);
    all++;
    if (used > guard) continue;
    a->brought++;
    a->useful += used != 0;
    count++;
    if (sparse) view->propose(view, address, FF_PAGE_BYTES);
  }
  if (a->brought > 4096) {
    a->brought /= 2;
    a->useful /= 2;
  }
  if (!sparse || !count) view->propose(view, v->address, FF_GROUP_BYTES);
  g->left_at = s->clock + 1;
  g->left_by = v->by;
  s->evictions[v->by]++;
  return (uint64_t)(count ? count : all) * FF_PAGE_BYTES;
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  auto_state *s = state;
  uint64_t guard = auto_guard(s);
  s->full = true;
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

const ff_policy policy_evict_auto = {
    .version = FF_POLICY_VERSION,
    .name = "auto",
    .summary = "groups not used again first, oldest or youngest, whichever was regretted less",
    .create = auto_create,
    .destroy = auto_destroy,
    .evict = evict,
    .arrived = auto_arrived,
    .left = auto_left,
    .shares_state = true,
};
