/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the evictor: groups of 64 KiB. Of the next few that a hand comes upon the one goes that was used longest ago, or came if it
 * was not used: as old as the oldest within a few per cent, for a cost that does not grow with memory. The prefetcher, when it brings what is
 * reached over the link, has chosen already.
 *
 * While the link to the host idles, dirty groups that have rested are written back and stay; how long that takes an
 * allocation finds out from groups that were dirty again too soon. */
#include "policy/auto_state.h"
#include "policy/policies.h"

enum { LOOKS = 32, CLEAN_LOOKS = 64 };

#define MIN_QUIET UINT64_C(20000000) /* 20 us, about what a far-fault takes: a store that is to come soon has come by then */
#define MAX_QUIET (MIN_QUIET << 20)

uint64_t auto_coldest(auto_state *s, const ff_view *view, uint64_t since) {
  uint64_t coldest = FF_NEVER, least = since;
  size_t looks = s->resident.count < LOOKS ? s->resident.count : LOOKS;
  for (size_t i = 0; i < looks; i++) {
    if (s->hand >= s->resident.count) s->hand = 0;
    uint64_t group = s->resident.items[s->hand++];
    uint64_t used = view->last_use(view, group, FF_GROUP_BYTES), came = auto_group_find(s, group)->came;
    if (used < came) used = came;
    if (used >= least) continue;
    least = used;
    coldest = group;
  }
  return coldest;
}

/* What of the group is there, one range per run of pages. */
static void propose(const auto_state *s, ff_view *view, uint64_t group) {
  uint16_t pages = auto_group_find(s, group)->pages;
  for (uint32_t page = 0, end; page < FF_GROUP_PAGES; page = end + 1) {
    for (end = page; end < FF_GROUP_PAGES && pages >> end & 1;) end++;
    if (end > page) view->propose(view, group + page * FF_PAGE_BYTES, (end - page) * FF_PAGE_BYTES);
  }
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  auto_state *s = state;
  if (s->victim == FF_NEVER) s->victim = auto_coldest(s, view, FF_NEVER);
  if (s->victim != FF_NEVER) propose(s, view, s->victim);
  s->victim = FF_NEVER; /* the pager asks again if that was not enough */
}

/* ---- writing back ahead ---- */

/* The group's dirty pages can be written back now. If they are dirty again soon after the last time, that was too early: the
 * allocation's groups must rest twice as long from now on. */
static bool rests(const ff_view *view, auto_allocation *a, auto_group *g, uint64_t used) {
  uint64_t quiet = a->quiet ? a->quiet : MIN_QUIET, latest = used > g->came ? used : g->came;
  if (g->cleaned) {
    if (view->now - g->cleaned < 4 * quiet && quiet < MAX_QUIET) a->quiet = quiet *= 2;
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
    .summary = "of a few groups the one that was used longest ago, or what the prefetcher auto has chosen",
    .create = auto_create,
    .destroy = auto_destroy,
    .evict = evict,
    .clean = clean,
    .arrived = auto_arrived,
    .left = auto_left,
    .shares_state = true,
};
