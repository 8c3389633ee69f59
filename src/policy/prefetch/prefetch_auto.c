/* SPDX-License-Identifier: Apache-2.0 */
/* auto, the prefetcher: what lies in GPU memory is what costs most on the link if it does not.
 *
 *     a launch begins          if all that it declares fits: what was not written yet comes at once, for that needs no transfer
 *     the link is idle         all that the launch declares, or the four fifths of it that there is room for, if that comes before a far-fault would be
 *                              served; else a group of it. If all that it declares fits, of the allocation of which the
 *                              smallest part has been looked at (kernels go through their arrays side by side); else of
 *                              the smallest one. Then what is absent of others; while there is room
 *     reached over the link    memory has room: the group comes, and what was written in a row across its border if part of it was never
 *                              written. It is full: the group comes when it has cost what it is worth (worth()) since
 *                              its count began, and if a group can go that was not used since then; else its count
 *                              begins again
 *     the host takes it back   (a touch of managed memory) the group comes again only when it has cost the way there and back; and of that allocation
 *                              nothing comes that no launch declares
 *     a far-fault              under a manager with which the GPU reaches nothing over the link: its group
 *
 * The count is the test of both: what is reached is worth more than what was not used at all meanwhile. Data that is
 * swept over again and again and is larger than memory so keeps its place in part, and the rest is read where it is. */
#include "policy/auto_state.h"
#include "policy/policies.h"

enum { MAX_DECLARED = 64, QUEUE_MEMORY = 16, QUEUE_WEIGHT = 32, DOUBT = 4, MAX_SWAPS = 64, MAX_LOOKS = 64 };
#define MIN_WORTH (FF_GROUP_BYTES * 3 / 4)
#define MAX_WORTH (FF_GROUP_BYTES * 6)

static uint64_t group_of(uint64_t address) { return address & ~(FF_GROUP_BYTES - 1); }

/* What of the group is absent. */
static uint64_t absent_of(const ff_view *view, uint64_t group) {
  ff_block block;
  view->block(view, group, &block);
  ff_pages absent = pages_absent(&block);
  return pages_count(&absent, pages_index(group), pages_index(group) + FF_GROUP_PAGES) * FF_PAGE_BYTES;
}

/* What is absent of the allocation's groups, counted up to more than `most` bytes. */
static uint64_t absent_bytes(const ff_view *view, const auto_allocation *a, uint64_t most) {
  uint64_t end = a->address + a->bytes, bytes = 0;
  for (uint64_t page = a->address; bytes <= most && (page = pages_next_absent(view, page)) < end;
       page = group_of(page) + FF_GROUP_BYTES)
    bytes += absent_of(view, group_of(page));
  return bytes;
}

static bool has_room(const ff_view *view, uint64_t group) { return absent_of(view, group) <= view->free_bytes(view); }

/* What is absent of the group and must cross the link to come. */
static uint64_t written_of(const ff_view *view, uint64_t group) {
  return absent_of(view, group) - view->blank_bytes(view, group, FF_GROUP_BYTES);
}

/* All that is absent of the block needs no transfer to come. */
static bool is_blank(const ff_view *view, uint64_t block_address) {
  ff_block block;
  view->block(view, block_address, &block);
  ff_pages absent = pages_absent(&block);
  return view->blank_bytes(view, block_address, FF_BLOCK_BYTES) ==
         pages_count(&absent, 0, FF_BLOCK_PAGES) * (uint64_t)FF_PAGE_BYTES;
}

/* The next group, from the one of `from` on and before `end`, of which something is absent that must cross the link to
 * come; FF_NEVER: there is none. Blocks that are blank are passed as a whole: they can be most of memory. */
static uint64_t next_written(const ff_view *view, uint64_t from, uint64_t end) {
  uint64_t looked_at = FF_NEVER;
  for (uint64_t page = from; (page = pages_next_absent(view, page)) < end;) {
    uint64_t block = page & ~(FF_BLOCK_BYTES - 1);
    if (block != looked_at && is_blank(view, block)) {
      page = block + FF_BLOCK_BYTES;
      continue;
    }
    looked_at = block;
    if (written_of(view, group_of(page))) return group_of(page);
    page = group_of(page) + FF_GROUP_BYTES;
  }
  return FF_NEVER;
}

/* Of the allocation's groups what must cross the link to come, counted up to more than `most` bytes. */
static uint64_t written_bytes(const ff_view *view, const auto_allocation *a, uint64_t most) {
  uint64_t end = a->address + a->bytes, bytes = 0;
  for (uint64_t at = a->address, group; bytes <= most && (group = next_written(view, at, end)) != FF_NEVER;
       at = group + FF_GROUP_BYTES)
    bytes += written_of(view, group);
  return bytes;
}

/* Not all that was declared fits: but does all of it that must cross the link, and come before a far-fault would be
 * served? */
static bool written_fits(auto_state *s, const ff_view *view) {
  uint64_t room = view->free_bytes(view), most = room < view->service_bytes ? room : view->service_bytes, bytes = 0;
  for (size_t i = 0; i < s->declared.count && bytes <= most; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    if (a) bytes += written_bytes(view, a, most);
  }
  return bytes <= most;
}

/* The smallest declared size above `size`; FF_NEVER: there is none. */
static uint64_t next_size(auto_state *s, const ff_view *view, uint64_t size) {
  uint64_t next = FF_NEVER;
  for (size_t i = 0; i < s->declared.count; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    if (a && a->bytes > size && a->bytes < next) next = a->bytes;
  }
  return next;
}

/* Little of what is declared is in use (written_fits): of the smaller allocations that fit together what was not
 * written yet comes now. Elsewhere it would take the room of what is read. */
static void offer_smaller(auto_state *s, ff_view *view) {
  uint64_t room = view->free_bytes(view), size = 0;
  while ((size = next_size(s, view, size)) <= room) {
    uint64_t absent = 0;
    for (size_t i = 0; i < s->declared.count; i++) {
      const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
      if (a && a->bytes == size) absent += absent_bytes(view, a, room);
    }
    if (absent > room) return;
    room -= absent;
    for (size_t i = 0; i < s->declared.count; i++) {
      const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
      if (a && a->bytes == size) view->propose(view, a->address, a->bytes);
    }
  }
}

/* Any launch may use what others left, so all is looked at again; but what had not been written is asked for once. */
static void launching(void *state, ff_view *view, const ff_allocation *declared, size_t count) {
  auto_state *s = state;
  uint64_t bytes = 0;
  s->declared.count = 0;
  s->rests = false;
  s->begins = true;
  for (size_t i = 0; i < count; i++) bytes += declared[i].bytes;
  s->fits = bytes <= view->capacity;
  for (size_t i = 0; i < count && i < MAX_DECLARED; i++) {
    auto_allocation *a = auto_allocation_at(s, view, declared[i].address);
    if (!a) continue;
    FF_PUSH(&s->declared, declared[i].address);
    a->cursor = a->address;
    if (a->offered || !s->fits) continue; /* else what is read and what is written get their parts side by side */
    view->propose(view, a->address, a->bytes);
    a->offered = true;
  }
  if (!s->fits && written_fits(s, view)) offer_smaller(s, view);
}

/* ---- reached over the link ---- */

/* Bytes that a group must have cost over the link before another one goes for it: while the link has time for the swap,
 * little more than the group takes to come; where others wait for the link, which the swap makes wait longer, several
 * times that. */
static uint64_t worth(const auto_state *s) {
  uint64_t more = s->queued * QUEUE_WEIGHT < MAX_WORTH - MIN_WORTH ? s->queued * QUEUE_WEIGHT : MAX_WORTH - MIN_WORTH;
  uint64_t regrets = s->regrets < s->swaps ? s->regrets : s->swaps;
  return MIN_WORTH + more * (regrets + DOUBT) / (s->swaps + DOUBT);
}

/* What was never written comes without a transfer, so only the rest of the group has a price. What the host took back
 * it may well touch again: the way there and back is what that must have cost at least. */
static uint64_t price(const auto_state *s, const ff_view *view, const auto_group *g, uint64_t group) {
  uint64_t blank = view->blank_bytes(view, group, FF_GROUP_BYTES), swap = worth(s), back = 2 * FF_GROUP_BYTES;
  swap -= swap * blank / FF_GROUP_BYTES;
  return g->taken && back > swap ? back : swap;
}

/* The group is reached for the first time since it left. */
static void begin_count(auto_state *s, const ff_view *view, auto_group *g) {
  g->since = view->now;
  g->from = 0;
  s->regrets += g->swapped;
  g->swapped = false;
}

/* A group is to go for one that is reached. false: all that were looked at have been used since that one's count
 * began. */
static bool swap(auto_state *s, const ff_view *view, uint64_t since) {
  s->victim = auto_coldest(s, view, since);
  if (s->victim == FF_NEVER) return false;
  auto_group_find(s, s->victim)->swapped = true;
  if (++s->swaps <= MAX_SWAPS) return true;
  s->swaps /= 2;
  s->regrets /= 2;
  return true;
}

static bool is_taken(const auto_state *s, uint64_t group) {
  const auto_group *g = auto_group_find(s, group);
  return g && g->taken;
}

/* The page must cross the link to come, and the host has not taken it back. */
static bool must_cross(const auto_state *s, const ff_view *view, uint64_t page) {
  ff_block block;
  view->block(view, page, &block);
  ff_pages absent = pages_absent(&block);
  return pages_has(&absent, pages_index(page)) && !view->blank_bytes(view, page, FF_PAGE_BYTES) &&
         !is_taken(s, group_of(page));
}

/* The bytes from `page` on, or, with `step` -1, down from the end of `page`, of pages that must cross the link; up to a
 * group's. 0 if that is a group's, or more: nothing says where it ends. */
static uint64_t run_of(const auto_state *s, const ff_view *view, uint64_t page, int step) {
  uint64_t bytes = 0;
  while (bytes < FF_GROUP_BYTES && must_cross(s, view, step < 0 ? page - bytes : page + bytes)) bytes += FF_PAGE_BYTES;
  return bytes < FF_GROUP_BYTES ? bytes : 0;
}

/* Of a group of which part was never written: what was written in a row across its border was probably written, and is
 * read, together. The rest of that, in the next group and in the one before, comes by the same service, if there is
 * room for all. */
static void propose_across(const auto_state *s, ff_view *view, uint64_t group) {
  uint64_t next = group + FF_GROUP_BYTES, behind = 0, before = 0;
  if (must_cross(s, view, next - FF_PAGE_BYTES)) behind = run_of(s, view, next, 1);
  if (must_cross(s, view, group)) before = run_of(s, view, group - FF_PAGE_BYTES, -1);
  if (absent_of(view, group) + behind + before > view->free_bytes(view)) return;
  if (behind) view->propose(view, next, behind);
  if (before) view->propose(view, group - before, before);
}

static void reached(void *state, ff_view *view, uint64_t group, uint64_t bytes) {
  auto_state *s = state;
  auto_group *g = auto_group_make(s, group);
  s->queued += view->queued / QUEUE_MEMORY;
  s->queued -= s->queued / QUEUE_MEMORY;
  if (!g->since) begin_count(s, view, g);
  bool room = has_room(view, group);
  if (!room || g->taken) {
    if (bytes - g->from < price(s, view, g, group)) return;
    uint64_t since = g->since;
    g->since = view->now;
    g->from = bytes;
    if (!room && !swap(s, view, since)) return;
  }
  view->propose(view, group, FF_GROUP_BYTES);
  if (room && view->blank_bytes(view, group, FF_GROUP_BYTES)) propose_across(s, view, group);
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const auto_allocation *a = auto_allocation_at(state, view, faults[i].address);
    uint64_t group = group_of(faults[i].address), end = group + FF_GROUP_BYTES;
    if (!a) continue;
    uint64_t from = a->address > group ? a->address : group,
             to = a->address + a->bytes < end ? a->address + a->bytes : end;
    view->propose(view, from, to - from);
  }
}

/* ---- the idle link ---- */

/* The next absent part of a group of it that the host has not taken back, of so many at most that are looked at; false:
 * there is none. */
static bool fill(const auto_state *s, ff_view *view, auto_allocation *a) {
  uint64_t end = a->address + a->bytes;
  for (int looks = 0; looks < MAX_LOOKS && a->cursor < end; looks++) {
    uint64_t page = pages_next_absent(view, a->cursor), next = page < end ? group_of(page) + FF_GROUP_BYTES : end;
    a->cursor = next < end ? next : end;
    if (page >= end || is_taken(s, group_of(page)) || !has_room(view, group_of(page))) continue;
    view->propose(view, page, a->cursor - page);
    return true;
  }
  return false;
}

/* Of what was declared the one that is to be filled next; NULL: all of all has been looked at. If all of it fits, the
 * one of which the smallest part has been looked at. Else the smaller one first: of a launch that uses all that it
 * declares, a byte of that is used more often. */
static auto_allocation *least_filled(auto_state *s, ff_view *view) {
  uint64_t best = FF_NEVER, smallest = FF_NEVER;
  double least = 1;
  for (size_t i = 0; i < s->declared.count; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    double part = a && a->cursor >= a->address ? (double)(a->cursor - a->address) / (double)a->bytes : 1;
    if (part >= 1 || (s->fits || a->bytes == smallest ? part >= least : a->bytes > smallest)) continue;
    least = part;
    smallest = a->bytes;
    best = a->address;
  }
  return best == FF_NEVER ? NULL : auto_allocation_at(s, view, best);
}

/* Does what is absent of all that was declared come before a far-fault would be served, all of it or the four fifths of
 * it that there is room for? Then it need not wait for an idle link. */
static bool comes_at_once(auto_state *s, const ff_view *view) {
  uint64_t room = view->free_bytes(view), fits = room + room / 4, bytes = 0,
           most = room <= view->service_bytes ? fits : view->service_bytes;
  for (size_t i = 0; i < s->declared.count && bytes <= most; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    if (a) bytes += absent_bytes(view, a, most);
  }
  return bytes && bytes <= most;
}

/* Proposes the absent pages of the group that must cross the link. */
static void propose_written(ff_view *view, uint64_t group) {
  for (uint64_t page = group, end; page < group + FF_GROUP_BYTES; page = end + FF_PAGE_BYTES) {
    for (end = page; end < group + FF_GROUP_BYTES && !view->blank_bytes(view, end, FF_PAGE_BYTES);)
      end += FF_PAGE_BYTES;
    if (end > page) view->propose(view, page, end - page);
  }
}

/* What must cross the link of all that was declared comes at once, before blank pages take its room. */
static void bring_written(auto_state *s, ff_view *view) {
  for (size_t i = 0; i < s->declared.count; i++) {
    const auto_allocation *a = auto_allocation_at(s, view, s->declared.items[i]);
    if (!a) continue;
    uint64_t end = a->address + a->bytes;
    for (uint64_t at = a->address, group; (group = next_written(view, at, end)) != FF_NEVER;
         at = group + FF_GROUP_BYTES)
      propose_written(view, group);
  }
}

/* What no launch has declared lately, from the lowest address to the highest and round again, but of no allocation that
 * the host took pages back of. */
static void fill_rest(auto_state *s, ff_view *view) {
  for (int looks = 0; looks < MAX_LOOKS; looks++) {
    uint64_t page = pages_next_absent(view, s->next);
    if (page == FF_NEVER) {
      s->rests = !s->next || s->swept;
      s->swept = !s->rests;
      s->next = 0;
      if (s->rests) return;
      continue;
    }
    const auto_allocation *a = auto_allocation_at(s, view, page);
    s->next = (a && a->taken ? (a->address + a->bytes - 1) & ~(FF_PAGE_BYTES - 1)
                             : group_of(page) + FF_GROUP_BYTES - FF_PAGE_BYTES) +
              FF_PAGE_BYTES;
    if (a && a->taken) continue;
    s->swept = false;
    if (!has_room(view, group_of(page))) return;
    view->propose(view, page, s->next - page);
    return;
  }
}

static void idle(void *state, ff_view *view) {
  auto_state *s = state;
  if (s->rests || !view->free_bytes(view)) return;
  bool all = s->begins && comes_at_once(s, view), some = false;
  if (s->begins && !all && !s->fits && written_fits(s, view)) bring_written(s, view);
  s->begins = false;
  for (auto_allocation *a; !(some && !all) && (a = least_filled(s, view));) some |= fill(s, view, a);
  if (!some) fill_rest(s, view);
}

const ff_policy policy_prefetch_auto = {
    .version = FF_POLICY_VERSION,
    .name = "auto",
    .summary =
        "while memory has room, what launches declare; then what has cost more over the link than what was not used meanwhile",
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
