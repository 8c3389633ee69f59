/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the prefetcher: what lies in GPU memory is what costs most on the link if it does not.
 *
 *     a launch begins          if all that it declares fits: what was not written yet comes at once, for that needs no transfer
 *     the link is idle         a group of what the launch declares, of the allocation of which the smallest part has been looked at (kernels go
 *                              through their arrays side by side); then anything that is absent; while there is room
 *     reached over the link    memory has room: the group comes. It is full: the group comes when it has cost what it is worth (worth()) since its
 *                              count began, and if a group can go that was not used since then; else its count begins again
 *     a far-fault              under a manager with which the GPU reaches nothing over the link: its group
 *
 * The count is the test of both: what is reached is worth more than what was not used at all meanwhile. Data that is swept over again and again
 * and is larger than memory so keeps its place in part, and the rest is read where it is. */
#include "policy/auto_state.h"
#include "policy/policies.h"

enum { MAX_DECLARED = 64, QUEUE_MEMORY = 16, QUEUE_WEIGHT = 32, DOUBT = 4, MAX_SWAPS = 64 };
#define MIN_WORTH (FF_GROUP_BYTES * 3 / 4)
#define MAX_WORTH (FF_GROUP_BYTES * 6)

static uint64_t group_of(uint64_t address) { return address & ~(FF_GROUP_BYTES - 1); }

/* Any launch may use what others left, so all is looked at again; but what had not been written is asked for once. */
static void launching(void *state, ff_view *view, const ff_allocation *declared, size_t count) {
  auto_state *s = state;
  uint64_t bytes = 0;
  s->declared.count = 0;
  s->rests = false;
  for (size_t i = 0; i < count; i++) bytes += declared[i].bytes;
  for (size_t i = 0; i < count && i < MAX_DECLARED; i++) {
    auto_allocation *a = auto_allocation_at(s, view, declared[i].address);
    if (!a) continue;
    FF_PUSH(&s->declared, declared[i].address);
    a->cursor = a->address;
    if (a->offered || bytes > view->capacity) continue; /* else what is read and what is written get their parts side by side */
    view->propose(view, a->address, a->bytes);
    a->offered = true;
  }
}

/* ---- reached over the link ---- */

/* Bytes that a group must have cost over the link before another one goes for it: while the link has time for the swap, little more than
 * the group takes to come; where others wait for the link, which the swap makes wait longer, several times that. */
static uint64_t worth(const auto_state *s) {
  uint64_t more = s->queued * QUEUE_WEIGHT < MAX_WORTH - MIN_WORTH ? s->queued * QUEUE_WEIGHT : MAX_WORTH - MIN_WORTH;
  uint64_t regrets = s->regrets < s->swaps ? s->regrets : s->swaps;
  return MIN_WORTH + more * (regrets + DOUBT) / (s->swaps + DOUBT);
}

/* The group is reached for the first time since it left. */
static void begin_count(auto_state *s, const ff_view *view, auto_group *g) {
  g->since = view->now;
  g->from = 0;
  s->regrets += g->swapped;
  g->swapped = false;
}

/* A group is to go for one that is reached. false: all that were looked at have been used since that one's count began. */
static bool swap(auto_state *s, const ff_view *view, uint64_t since) {
  s->victim = auto_coldest(s, view, since);
  if (s->victim == FF_NEVER) return false;
  auto_group_find(s, s->victim)->swapped = true;
  if (++s->swaps <= MAX_SWAPS) return true;
  s->swaps /= 2;
  s->regrets /= 2;
  return true;
}

static void reached(void *state, ff_view *view, uint64_t group, uint64_t bytes) {
  auto_state *s = state;
  auto_group *g = auto_group_make(s, group);
  s->queued += view->queued / QUEUE_MEMORY;
  s->queued -= s->queued / QUEUE_MEMORY;
  if (!g->since) begin_count(s, view, g);
  if (view->free_bytes(view) < FF_GROUP_BYTES) {
    if (bytes - g->from < worth(s)) return;
    uint64_t since = g->since;
    g->since = view->now;
    g->from = bytes;
    if (!swap(s, view, since)) return;
  }
  view->propose(view, group, FF_GROUP_BYTES);
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const auto_allocation *a = auto_allocation_at(state, view, faults[i].address);
    uint64_t group = group_of(faults[i].address), end = group + FF_GROUP_BYTES;
    if (!a) continue;
    uint64_t from = a->address > group ? a->address : group, to = a->address + a->bytes < end ? a->address + a->bytes : end;
    view->propose(view, from, to - from);
  }
}

/* ---- the idle link ---- */

/* The next absent part of a group of it; false: all of it has been looked at. */
static bool fill(ff_view *view, auto_allocation *a) {
  uint64_t end = a->address + a->bytes, page = pages_next_absent(view, a->cursor);
  if (page >= end) {
    a->cursor = end;
    return false;
  }
  uint64_t next = group_of(page) + FF_GROUP_BYTES;
  view->propose(view, page, (next < end ? next : end) - page);
  a->cursor = next < end ? next : end;
  return true;
}

/* Of what was declared the one of which the smallest part has been looked at; NULL: all of all has been. */
static auto_allocation *least_filled(auto_state *s, ff_view *view) {
  uint64_t best = FF_NEVER;
  double least = 1;
  for (size_t i = 0; i < s->declared.count; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    double part = a && a->cursor >= a->address ? (double)(a->cursor - a->address) / (double)a->bytes : 1;
    if (part >= least) continue;
    least = part;
    best = a->address;
  }
  return best == FF_NEVER ? NULL : auto_allocation_at(s, view, best);
}

static void idle(void *state, ff_view *view) {
  auto_state *s = state;
  if (s->rests || view->free_bytes(view) < FF_GROUP_BYTES) return;
  for (auto_allocation *a; (a = least_filled(s, view));)
    if (fill(view, a)) return;
  uint64_t page = pages_next_absent(view, s->next);
  if (page == FF_NEVER && s->next) page = pages_next_absent(view, 0);
  s->rests = page == FF_NEVER;
  s->next = page == FF_NEVER ? 0 : group_of(page) + FF_GROUP_BYTES;
  if (page != FF_NEVER) view->propose(view, page, s->next - page);
}

const ff_policy policy_prefetch_auto = {
    .version = FF_POLICY_VERSION,
    .name = "auto",
    .summary = "while memory has room, what launches declare; then what has cost more over the link than what was not used meanwhile",
    .create = auto_create,
    .destroy = auto_destroy,
    .faulted = faulted,
    .idle = idle,
    .launching = launching,
    .reached = reached,
    .arrived = auto_arrived,
    .left = auto_left,
    .shares_state = true,
};
