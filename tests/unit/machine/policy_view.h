/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest pager that policies can be tried on: pages in a few blocks, a capacity, a clock that counts calls, and a
 * future that a test writes down. It is exact and slow: nothing is kept that could be asked of the page array.
 *
 *     mini m; mini_open(&m, 4, MINI_ALL);  mini_prefetcher(&m, "tbn");
 *     mini_allocate(&m, MINI_BASE, 2 << 20);  mini_touch(&m, 5);  m.moved (bytes)  m.log (what moved, as text)
 *     mini_close(&m);
 *
 * It asserts that valid pages <= capacity, and that moving is part of valid and valid of mapped. A policy is told of a
 * page that comes or goes after the view shows it. Proposals are noted and carried out after the call. */
#ifndef FF_TEST_POLICY_VIEW_H
#define FF_TEST_POLICY_VIEW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/policies.h"

#define MINI_BASE UINT64_C(0x700000000000)
#define MINI_ALL UINT64_C(0xffffffff) /* pages: as many as there are */
#define KB UINT64_C(1024)

typedef struct mini_page {
  bool mapped, valid, moving, dirty;
  bool blank; /* nothing has been written to it; not set by mini_allocate */
  uint64_t used;
} mini_page;
typedef struct mini_range {
  uint64_t address, bytes;
} mini_range;

typedef struct mini {
  ff_view view; /* first: the policy's pointer is the mini's */
  mini_page *pages;
  uint64_t count, capacity, valid; /* pages */
  FF_VEC(ff_allocation) allocations;
  FF_VEC(mini_range) proposals;    /* of the latest call */
  const uint32_t *future;          /* page numbers, in the order of their uses */
  uint64_t future_count, position; /* uses before `position` have been made */
  ff_policy_instance prefetch, evict;
  uint64_t random;
  /* moved, proposed: bytes by the latest fault or idle call, the fault's page included */
  uint64_t faults, moved, proposed, evicted;
  /* KiB moved by each fault: "4+60, 4+60, 4+60 64@2, " (@: 64 KiB group, where not next to it) */
  char log[4096];
} mini;

static inline uint64_t mini_address(uint64_t page) { return MINI_BASE + page * FF_PAGE_BYTES; }
static inline mini *mini_of(const ff_view *view) { return (mini *)(uintptr_t)view; }

/* The pages that a range touches, as far as they exist here: [*first, *end). Any range is allowed. */
static inline void mini_range_pages(const mini *m, uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *end) {
  *first = *end = 0;
  if (!bytes) return;
  uint64_t last = address + (bytes - 1) < address ? UINT64_MAX : address + (bytes - 1),
           top = mini_address(m->count) - 1;
  if (last < MINI_BASE || address > top) return;
  *first = address < MINI_BASE ? 0 : (address - MINI_BASE) / FF_PAGE_BYTES;
  *end = ((last > top ? top : last) - MINI_BASE) / FF_PAGE_BYTES + 1;
}

/* ---- the view ---- */

static inline uint64_t mini_free_bytes(const ff_view *view) {
  const mini *m = mini_of(view);
  return (m->capacity - m->valid) * FF_PAGE_BYTES;
}

static inline void mini_set(ff_pages *pages, uint32_t page, bool on) {
  if (on) pages->word[page / 64] |= UINT64_C(1) << page % 64;
}

static inline void mini_block(const ff_view *view, uint64_t address, ff_block *block) {
  const mini *m = mini_of(view);
  *block = (ff_block){.address = address & ~(FF_BLOCK_BYTES - 1)};
  if (block->address < MINI_BASE) return;
  const uint64_t first = (block->address - MINI_BASE) / FF_PAGE_BYTES;
  for (uint32_t i = 0; i < FF_BLOCK_PAGES && first + i < m->count; i++) {
    const mini_page *page = &m->pages[first + i];
    if (!page->mapped && !page->valid && !page->moving && !page->dirty) continue;
    mini_set(&block->mapped, i, page->mapped);
    mini_set(&block->valid, i, page->valid);
    mini_set(&block->moving, i, page->moving);
    mini_set(&block->dirty, i, page->dirty);
  }
}

static inline bool mini_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const mini *m = mini_of(view);
  for (size_t i = 0; i < m->allocations.count; i++) {
    *allocation = m->allocations.items[i];
    if (address >= allocation->address && address - allocation->address < allocation->bytes) return true;
  }
  return false;
}

static inline bool mini_next_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const mini *m = mini_of(view);
  bool found = false;
  for (size_t i = 0; i < m->allocations.count; i++) {
    const ff_allocation *a = &m->allocations.items[i];
    if (a->address < address || (found && a->address >= allocation->address)) continue;
    *allocation = *a;
    found = true;
  }
  return found;
}

static inline uint64_t mini_last_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  uint64_t first, end, latest = 0;
  mini_range_pages(mini_of(view), address, bytes, &first, &end);
  for (uint64_t i = first; i < end; i++)
    if (mini_of(view)->pages[i].used > latest) latest = mini_of(view)->pages[i].used;
  return latest;
}

static inline uint64_t mini_blank_bytes(const ff_view *view, uint64_t address, uint64_t bytes) {
  uint64_t first, end, blank = 0;
  mini_range_pages(mini_of(view), address, bytes, &first, &end);
  for (uint64_t i = first; i < end; i++) {
    const mini_page *page = &mini_of(view)->pages[i];
    if (page->mapped && !page->valid && page->blank) blank += FF_PAGE_BYTES;
  }
  return blank;
}

static inline uint64_t mini_next_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  const mini *m = mini_of(view);
  uint64_t first, end;
  mini_range_pages(m, address, bytes, &first, &end);
  for (uint64_t i = m->position; i < m->future_count; i++)
    if (m->future[i] >= first && m->future[i] < end) return i;
  return FF_NEVER;
}

static inline uint64_t mini_first_touch(const ff_view *view, uint64_t index) {
  const mini *m = mini_of(view);
  for (uint64_t i = 0; i < m->future_count; i++) {
    bool again = false;
    for (uint64_t j = 0; j < i && !again; j++) again = m->future[j] == m->future[i];
    if (!again && index-- == 0) return mini_address(m->future[i]);
  }
  return FF_NEVER;
}

static inline uint64_t mini_random(ff_view *view) { /* xorshift64* */
  mini *m = mini_of(view);
  m->random ^= m->random >> 12;
  m->random ^= m->random << 25;
  m->random ^= m->random >> 27;
  return m->random * UINT64_C(0x2545f4914f6cdd1d);
}

static inline void mini_propose(ff_view *view, uint64_t address, uint64_t bytes) {
  FF_PUSH(&mini_of(view)->proposals, ((mini_range){address, bytes}));
}

/* ---- making one ---- */

static inline void mini_open(mini *m, uint64_t blocks, uint64_t capacity_pages) {
  memset(m, 0, sizeof *m);
  m->count = blocks * FF_BLOCK_PAGES;
  m->capacity = capacity_pages < m->count ? capacity_pages : m->count;
  m->pages = ff_alloc(m->count * sizeof *m->pages);
  m->random = 88172645463325252u;
  m->view = (ff_view){.unit_bytes = FF_PAGE_BYTES,
                      .capacity = m->capacity * FF_PAGE_BYTES,
                      .free_bytes = mini_free_bytes,
                      .block = mini_block,
                      .allocation = mini_allocation,
                      .next_allocation = mini_next_allocation,
                      .last_use = mini_last_use,
                      .next_use = mini_next_use,
                      .first_touch = mini_first_touch,
                      .random = mini_random,
                      .propose = mini_propose,
                      .next_position = mini_next_use,
                      .blank_bytes = mini_blank_bytes};
}

static inline void mini_close(mini *m) {
  policy_close(&m->prefetch);
  policy_close(&m->evict);
  free(m->pages);
  free(m->allocations.items);
  free(m->proposals.items);
}

static inline void mini_choose(policy_use use, const char *text, ff_policy_instance *instance) {
  ff_error error = {0};
  if (policy_open(use, text, instance, &error)) fail_msg("%s", error.message);
}
static inline void mini_prefetcher(mini *m, const char *text) { mini_choose(POLICY_PREFETCH, text, &m->prefetch); }
static inline void mini_evictor(mini *m, const char *text) { mini_choose(POLICY_EVICT, text, &m->evict); }

static inline void mini_allocate(mini *m, uint64_t address, uint64_t bytes) {
  uint64_t first, end;
  FF_PUSH(&m->allocations, ((ff_allocation){address, bytes, (uint32_t)m->allocations.count + 1}));
  mini_range_pages(m, address, bytes, &first, &end);
  for (uint64_t i = first; i < end; i++) m->pages[i].mapped = true;
}

/* ---- what happens ---- */

static inline void mini_tell(mini *m, uint64_t page, bool arrived) {
  ff_policy_instance *both[] = {&m->prefetch, &m->evict};
  for (int i = 0; i < 2; i++) {
    if (!both[i]->policy || both[i]->borrowed) continue;
    void (*tell)(void *, ff_view *, uint64_t, uint64_t) = arrived ? both[i]->policy->arrived : both[i]->policy->left;
    if (tell) tell(both[i]->state, &m->view, mini_address(page), FF_PAGE_BYTES);
  }
}

/* The page is on its way, or waits for the access that it came for; or no longer, which policies are told. */
static inline void mini_set_moving(mini *m, uint64_t page, bool moving) {
  ff_policy_instance *both[] = {&m->prefetch, &m->evict};
  assert_true(m->pages[page].valid);
  bool settles = m->pages[page].moving && !moving;
  m->pages[page].moving = moving;
  for (int i = 0; settles && i < 2; i++)
    if (both[i]->policy && !both[i]->borrowed && both[i]->policy->settled)
      both[i]->policy->settled(both[i]->state, &m->view, mini_address(page), FF_PAGE_BYTES);
}

static inline void mini_arrive(mini *m, uint64_t page) {
  assert_true(m->pages[page].mapped && !m->pages[page].valid && m->valid < m->capacity);
  m->pages[page].valid = true;
  m->valid++;
  mini_tell(m, page, true);
}

static inline void mini_leave(mini *m, uint64_t page) {
  assert_true(m->pages[page].valid && !m->pages[page].moving);
  m->pages[page].valid = m->pages[page].dirty = false;
  m->valid--;
  m->evicted++;
  mini_tell(m, page, false);
}

static inline void mini_use(mini *m, uint64_t page) {
  assert_true(m->pages[page].valid);
  m->pages[page].used = ++m->view.now;
}

/* What the evictor proposes for so many pages, left in m->proposals. */
static inline void mini_ask_evictor(mini *m, uint64_t pages) {
  m->proposals.count = 0;
  m->view.running_first = m->view.running_last = m->position;
  m->evict.policy->evict(m->evict.state, &m->view, pages * FF_PAGE_BYTES);
}

/* Carries out what the evictor proposed, strictly: all of it must be there and able to go. Returns the pages that
 * went. */
static inline uint64_t mini_carry_out(mini *m) {
  uint64_t before = m->evicted;
  for (size_t i = 0; i < m->proposals.count; i++) {
    mini_range r = m->proposals.items[i];
    uint64_t first, end;
    mini_range_pages(m, r.address, r.bytes, &first, &end);
    assert_true((end - first) * FF_PAGE_BYTES == r.bytes && end > first);
    for (uint64_t page = first; page < end; page++) mini_leave(m, page);
  }
  return m->evicted - before;
}

static inline bool mini_make_room(mini *m, uint64_t pages) {
  if (m->capacity - m->valid >= pages) return true;
  if (!m->evict.policy) return false;
  FF_VEC(mini_range) wanted = {0}; /* the prefetcher's proposals, put aside */
  for (size_t i = 0; i < m->proposals.count; i++) FF_PUSH(&wanted, m->proposals.items[i]);
  mini_ask_evictor(m, pages - (m->capacity - m->valid));
  mini_carry_out(m);
  m->proposals.count = 0;
  for (size_t i = 0; i < wanted.count; i++) FF_PUSH(&m->proposals, wanted.items[i]);
  free(wanted.items);
  return m->capacity - m->valid >= pages;
}

/* Brings what was proposed and is absent, as far as there is room. Returns bytes. */
static inline uint64_t mini_bring(mini *m, bool may_evict) {
  uint64_t moved = 0;
  for (size_t i = 0; i < m->proposals.count; i++) {
    uint64_t first, end;
    mini_range_pages(m, m->proposals.items[i].address, m->proposals.items[i].bytes, &first, &end);
    for (uint64_t page = first; page < end; page++) {
      if (!m->pages[page].mapped || m->pages[page].valid) continue;
      if (m->valid == m->capacity && !(may_evict && mini_make_room(m, 1))) return moved;
      mini_arrive(m, page);
      moved += FF_PAGE_BYTES;
    }
  }
  return moved;
}

static inline void mini_log(mini *m, const char *format, ...) {
  size_t length = strlen(m->log);
  va_list args;
  va_start(args, format);
  vsnprintf(m->log + length, sizeof m->log - length, format, args);
  va_end(args);
}

/* Writes the latest proposals behind a fault on `page`: "+60" next to it, " 64@2" elsewhere. */
static inline void mini_log_fault(mini *m, uint64_t page) {
  mini_log(m, "%s4", *m->log ? ", " : "");
  for (size_t i = 0; i < m->proposals.count; i++) {
    mini_range r = m->proposals.items[i];
    if (r.address == mini_address(page + 1)) mini_log(m, "+%d", (int)(r.bytes / KB));
    else mini_log(m, " %d@%d", (int)(r.bytes / KB), (int)((r.address - MINI_BASE) / FF_GROUP_BYTES));
    m->proposed += r.bytes;
  }
}

/* The faults, served together. m->moved: what that brought. */
static inline void mini_fault(mini *m, const uint64_t *addresses, size_t count) {
  ff_fault faults[64];
  m->proposals.count = 0;
  m->proposed = m->moved = count * FF_PAGE_BYTES;
  for (size_t i = 0; i < count; i++) faults[i] = (ff_fault){.address = addresses[i], .time = m->view.now};
  if (m->prefetch.policy && m->prefetch.policy->faulted)
    m->prefetch.policy->faulted(m->prefetch.state, &m->view, faults, count);
  for (size_t i = 0; i < count; i++) {
    uint64_t page = (addresses[i] - MINI_BASE) / FF_PAGE_BYTES;
    if (i == 0) mini_log_fault(m, page);
    m->faults++;
    m->view.now++;
    assert_true(mini_make_room(m, 1));
    mini_arrive(m, page);
  }
  m->moved += mini_bring(m, true);
}

/* The GPU uses the page, after a fault if it is absent. Returns whether there was one. */
static inline bool mini_touch(mini *m, uint64_t page) {
  bool absent = !m->pages[page].valid;
  if (absent) mini_fault(m, (uint64_t[]){mini_address(page)}, 1);
  mini_use(m, page);
  return absent;
}

/* The link is idle. Returns the page that comes; UINT64_MAX: none. The policy may propose one page at most. */
static inline uint64_t mini_idle(mini *m) {
  m->proposals.count = 0;
  m->prefetch.policy->idle(m->prefetch.state, &m->view);
  assert_true(m->proposals.count <= 1);
  if (!m->proposals.count) return UINT64_MAX;
  uint64_t first, end;
  mini_range_pages(m, m->proposals.items[0].address, m->proposals.items[0].bytes, &first, &end);
  assert_int_equal(m->proposals.items[0].bytes, FF_PAGE_BYTES);
  assert_true(m->pages[first].mapped && !m->pages[first].valid);
  m->view.now++;
  m->moved = mini_bring(m, false);
  return first;
}

#endif
