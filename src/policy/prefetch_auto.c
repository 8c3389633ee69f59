/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the prefetcher: picks what comes beside a far-fault by what the allocation's faults and evictions have shown.
 *
 *     a fault brings its group of 64 KiB; where less than a quarter of the pages was used: only what is more than half there or
 *     faulting of the group's tree
 *     a fault right behind what a stream has asked for doubles the stream's depth (1 to 32 groups, 8 at first while memory
 *     is not full); what a stream wants comes while the link idles, at most 256 KiB of it beside the fault; once memory is
 *     full and the link has not idled since the last fault, only if hardly any of what streams brought was evicted unused
 *     while all that is allocated fits an idle link fills memory: the allocations that faulted last, from where they did
 *
 * What an idle piece costs a fault that comes meanwhile is hidden in the fault's own service. Once memory is full, no more
 * than a sixteenth of it may be ahead of its use. */
#include <string.h>

#include "policy/auto_state.h"
#include "policy/policies.h"

enum { MOST_DEPTH = 32, FAULT_GROUPS = 4, NEAR_GROUPS = 3, FIRST_DEPTH = 8, BETWEEN_LOOKS = 16 };

static uint64_t group_of(uint64_t address) { return address & ~(FF_GROUP_BYTES - 1); }

/* ---- streams ---- */

/* The stream that the fault goes on with: it lies within what the stream was to bring next. */
static auto_stream *stream_of(auto_state *s, auto_allocation *a, uint64_t group) {
  auto_stream *oldest = &a->streams[0];
  for (int i = 0; i < AUTO_STREAMS; i++) {
    auto_stream *t = &a->streams[i];
    if (t->next && group + FF_GROUP_BYTES >= t->next && group < t->next + (t->depth + NEAR_GROUPS) * FF_GROUP_BYTES) return t;
    if (t->stamp < oldest->stamp) oldest = t;
  }
  *oldest = (auto_stream){0};
  return oldest;
}

static void bring_ahead(auto_state *s, ff_view *view, auto_stream *t) {
  view->propose(view, t->next, FF_GROUP_BYTES);
  if (s->full) {
    auto_group *g = auto_group_find(s, t->next);
    if (g && !g->pages) g->ahead = true;
    FF_PUSH(&s->ahead, t->next);
  }
  t->next += FF_GROUP_BYTES;
}

static void stream_fault(auto_state *s, ff_view *view, auto_allocation *a, uint64_t group) {
  auto_stream *t = stream_of(s, a, group);
  uint64_t end = pages_allocation_end(&(ff_allocation){.address = a->address, .bytes = a->bytes});
  t->stamp = ++s->faults;
  if (!t->next) {
    *t = (auto_stream){.next = group + FF_GROUP_BYTES, .last_fault = group, .depth = s->full ? 1 : FIRST_DEPTH, .stamp = t->stamp};
    return;
  }
  if (group != t->last_fault && t->depth < MOST_DEPTH) t->depth *= 2;
  t->last_fault = group;
  if (t->next < group + FF_GROUP_BYTES) t->next = group + FF_GROUP_BYTES;
  uint32_t groups = t->depth < FAULT_GROUPS ? t->depth : FAULT_GROUPS;
  if (s->full && s->busy_faults && auto_is_wasteful(a)) return; /* what waits for the link waits longer, perhaps for nothing */
  for (uint32_t i = 0; i < groups && t->next < end && t->next <= group + t->depth * FF_GROUP_BYTES; i++) bring_ahead(s, view, t);
}

/* ---- faults ---- */

/* The largest node around the page, of the group's tree of pages, of which more than half is there or faulting. */
static void propose_dense(ff_view *view, uint64_t address, const ff_pages *known) {
  uint32_t page = pages_index(address), first = page, end = page + 1;
  for (uint32_t size = 2; size <= FF_GROUP_PAGES; size *= 2) {
    uint32_t node = page / size * size;
    if (pages_count(known, node, node + size) * 2 > size) {
      first = node;
      end = node + size;
    }
  }
  if (end - first > 1) view->propose(view, pages_block_of(address) + first * FF_PAGE_BYTES, (end - first) * FF_PAGE_BYTES);
}

static void note_latest(auto_state *s, const auto_allocation *a) {
  uint32_t number = (uint32_t)(a - s->allocations.items), count = sizeof s->latest / sizeof *s->latest, i = 0;
  while (i < count - 1 && s->latest[i] != number) i++;
  memmove(&s->latest[1], &s->latest[0], i * sizeof *s->latest);
  s->latest[0] = number;
}

/* Is there memory for all that is allocated? Asked now and then: there may be many allocations. */
static void look_whether_it_fits(auto_state *s, const ff_view *view) {
  if (s->served++ % BETWEEN_LOOKS) return;
  uint64_t bytes = 0;
  ff_allocation a;
  for (uint64_t at = 0; view->next_allocation(view, at, &a); at = a.address + 1) bytes += pages_allocation_end(&a) - (a.address & ~(FF_PAGE_BYTES - 1));
  s->fits = bytes <= view->capacity;
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  auto_state *s = state;
  look_whether_it_fits(s, view);
  for (size_t i = 0; i < count; i++) {
    auto_allocation *a = auto_allocation_at(s, view, faults[i].address);
    if (!a) continue;
    note_latest(s, a);
    uint64_t group = group_of(faults[i].address);
    if (!auto_is_sparse(view, a)) {
      uint64_t begin = a->address > group ? a->address : group, end = a->address + a->bytes;
      view->propose(view, begin, (end < group + FF_GROUP_BYTES ? end : group + FF_GROUP_BYTES) - begin);
      stream_fault(s, view, a, group);
    } else {
      ff_block block;
      view->block(view, faults[i].address, &block);
      pages_add_faulted(view, block.address, faults, count, &block.valid);
      propose_dense(view, faults[i].address, &block.valid);
    }
    if (!a->cursor) a->cursor = group;
  }
  s->busy_faults++;
}

/* ---- the idle link ---- */

/* Forgets what has been used, or is gone, of what was brought ahead. Returns how many groups are still unused. */
static size_t still_ahead(auto_state *s, const ff_view *view) {
  while (s->ahead_first < s->ahead.count) {
    uint64_t group = s->ahead.items[s->ahead_first];
    const auto_group *g = auto_group_find(s, group);
    bool there = g && g->pages, waits = !there || !view->last_use(view, group, FF_GROUP_BYTES);
    if (waits && there) break;
    s->ahead_first++;
  }
  if (s->ahead_first == s->ahead.count) s->ahead_first = s->ahead.count = 0;
  return s->ahead.count - s->ahead_first;
}

static bool idle_stream(auto_state *s, ff_view *view) {
  for (size_t l = 0; l < sizeof s->latest / sizeof *s->latest; l++) {
    if (!s->latest[l]) break;
    auto_allocation *a = &s->allocations.items[s->latest[l]];
    uint64_t end = a->address + a->bytes;
    auto_stream *best = NULL;
    for (int i = 0; i < AUTO_STREAMS; i++) {
      auto_stream *t = &a->streams[i];
      if (!t->next || t->depth < 2 || t->next >= end || t->next > t->last_fault + t->depth * FF_GROUP_BYTES) continue;
      if (!best || best->stamp < t->stamp) best = t;
    }
    if (!best) continue;
    bring_ahead(s, view, best);
    return true;
  }
  return false;
}

/* The next absent group of what faulted last, from the first fault on and then from the beginning. */
static bool idle_fill(auto_state *s, ff_view *view) {
  for (size_t l = 0; l < sizeof s->latest / sizeof *s->latest; l++) {
    if (!s->latest[l]) break;
    auto_allocation *a = &s->allocations.items[s->latest[l]];
    if (a->cursor == FF_NEVER) continue;
    uint64_t end = a->address + a->bytes, page = pages_next_absent(view, a->cursor > a->address ? a->cursor : a->address);
    if (page >= end) page = pages_next_absent(view, a->address);
    if (page >= end) {
      a->cursor = FF_NEVER;
      continue;
    }
    view->propose(view, page, group_of(page) + FF_GROUP_BYTES - page);
    a->cursor = group_of(page) + FF_GROUP_BYTES;
    return true;
  }
  return false;
}

static void idle(void *state, ff_view *view) {
  auto_state *s = state;
  s->busy_faults = 0;
  if (view->free_bytes(view) < FF_GROUP_BYTES) return;
  if (s->full && still_ahead(s, view) >= view->capacity / FF_GROUP_BYTES / 16 + 1) return;
  if (idle_stream(s, view) || s->full || !s->fits) return;
  idle_fill(s, view);
}

const ff_policy policy_prefetch_auto = {
    .version = FF_POLICY_VERSION,
    .name = "auto",
    .summary = "by each allocation's faults: streams ahead, groups where pages are used, single pages where few are",
    .create = auto_create,
    .destroy = auto_destroy,
    .faulted = faulted,
    .idle = idle,
    .arrived = auto_arrived,
    .left = auto_left,
    .shares_state = true,
};
