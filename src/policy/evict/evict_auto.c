/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the evictor: groups of 64 KiB. Of the next few that a hand comes upon the one goes that was used longest ago,
 * or came if it was not used: as old as the oldest within a few per cent, for a cost that does not grow with memory.
 * The prefetcher, when it brings what is reached over the link, has chosen already.
 *
 * While the link to the host idles, dirty groups are written back and stay: of those that have not been used for the
 * time that a group takes over the link, the one that has rested longest. If it is written to again, only an idle link
 * was used in vain. */
#include "policy/auto_state.h"
#include "policy/policies.h"

enum { LOOKS = 32, CLEAN_LOOKS = 32, CLEAN_BLOCKS = 128 };

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

/* Of the block's dirty groups the one that has rested longest, if longer than *longest. Returns how many are dirty. */
static int look(auto_state *s, const ff_view *view, uint64_t address, uint64_t *longest, uint64_t *best) {
  ff_block block;
  int dirty = 0;
  view->block(view, address, &block);
  for (uint32_t page = 0; page < FF_BLOCK_PAGES; page += FF_GROUP_PAGES) {
    if (!(block.dirty.word[page / 64] >> page % 64 & 0xffff)) continue;
    uint64_t group = address + page * FF_PAGE_BYTES;
    uint64_t used = view->last_use(view, group, FF_GROUP_BYTES), came = auto_group_find(s, group)->came;
    if (used < came) used = came;
    uint64_t rest = view->now > used ? view->now - used : 0;
    dirty++;
    if (rest < view->group_time || rest < *longest) continue;
    *longest = rest;
    *best = group;
  }
  return dirty;
}

/* The hand goes round the blocks, a few at a time; of their dirty groups the one goes that has rested longest. */
static void clean(void *state, ff_view *view) {
  auto_state *s = state;
  uint64_t longest = 0, best = FF_NEVER;
  size_t looks = s->block_capacity < CLEAN_BLOCKS ? s->block_capacity : CLEAN_BLOCKS;
  for (int dirty = 0; looks && dirty < CLEAN_LOOKS; looks--) {
    if (s->clean_hand >= s->block_capacity) s->clean_hand = 0;
    uint64_t block = auto_block_in(s, s->clean_hand++);
    if (block != FF_NEVER) dirty += look(s, view, block, &longest, &best);
  }
  if (best != FF_NEVER) view->propose(view, best, FF_GROUP_BYTES);
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
