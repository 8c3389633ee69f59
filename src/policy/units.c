/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of units: see units.h.
 *
 *     place of a unit: 1 + its index in the heap, or ASIDE + 1 + its index among those put aside; 0: it is not in the
 *     set heap[(i - 1) / 4] comes before heap[i]; *heap[i].place is its place */
#include "policy/units.h"

#include <stdlib.h>

#include "base/check.h"
#include "policy/pages.h"

#define ASIDE (UINT32_C(1) << 31)
enum { CHECK_EVERY = 64, BRANCHES = 4 };

typedef struct units_block {
  uint64_t address; /* of the block; UINT64_MAX: an empty slot */
  uint32_t *places; /* one per unit of the block */
} units_block;

void units_init(units *set, uint64_t unit_bytes) { *set = (units){.unit_bytes = unit_bytes}; }

void units_free(units *set) {
  for (size_t i = 0; i < set->block_capacity; i++) free(set->blocks[i].places);
  free(set->blocks);
  free(set->heap.items);
  free(set->aside.items);
  *set = (units){0};
}

/* ---- places ---- */

static units_block *slot_of(units_block *blocks, size_t capacity, uint64_t block) {
  size_t slot = (block / FF_BLOCK_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
  while (blocks[slot].address != block && blocks[slot].address != UINT64_MAX) slot = (slot + 1) & (capacity - 1);
  return &blocks[slot];
}

static void grow(units *set) {
  size_t capacity = set->block_capacity ? set->block_capacity * 2 : 64;
  units_block *blocks = ff_alloc(capacity * sizeof *blocks);
  for (size_t i = 0; i < capacity; i++) blocks[i].address = UINT64_MAX;
  for (size_t i = 0; i < set->block_capacity; i++)
    if (set->blocks[i].address != UINT64_MAX) *slot_of(blocks, capacity, set->blocks[i].address) = set->blocks[i];
  free(set->blocks);
  set->blocks = blocks;
  set->block_capacity = capacity;
}

/* Where the unit's place is kept; NULL: nothing of its block has ever been in the set. */
static uint32_t *place_find(const units *set, uint64_t address) {
  if (!set->block_capacity) return NULL;
  const units_block *block = slot_of(set->blocks, set->block_capacity, pages_block_of(address));
  return block->places ? &block->places[address % FF_BLOCK_BYTES / set->unit_bytes] : NULL;
}

static uint32_t *place_make(units *set, uint64_t address) {
  if (set->block_count * 4 >= set->block_capacity * 3) grow(set);
  units_block *block = slot_of(set->blocks, set->block_capacity, pages_block_of(address));
  if (!block->places) {
    block->address = pages_block_of(address);
    block->places = ff_alloc(FF_BLOCK_BYTES / set->unit_bytes * sizeof *block->places);
    set->block_count++;
  }
  return &block->places[address % FF_BLOCK_BYTES / set->unit_bytes];
}

/* ---- the heap ---- */

static bool before(const unit *a, const unit *b) {
  return a->key < b->key || (a->key == b->key && a->address < b->address);
}

static void settle(units *set, size_t index, unit u) {
  set->heap.items[index] = u;
  *u.place = (uint32_t)index + 1;
}

/* Puts `u` at `index` or, if it does not belong there, above or below. */
static void sift(units *set, size_t index, unit u) {
  const unit *heap = set->heap.items;
  for (size_t parent; index && before(&u, &heap[parent = (index - 1) / BRANCHES]); index = parent)
    settle(set, index, heap[parent]);
  for (size_t first = index * BRANCHES + 1; first < set->heap.count; first = index * BRANCHES + 1) {
    size_t child = first;
    for (size_t other = first + 1; other < first + BRANCHES && other < set->heap.count; other++)
      if (before(&heap[other], &heap[child])) child = other;
    if (!before(&heap[child], &u)) break;
    settle(set, index, heap[child]);
    index = child;
  }
  settle(set, index, u);
}

bool units_has(const units *set, uint64_t address) {
  const uint32_t *place = place_find(set, address);
  return place && *place;
}

uint64_t units_key(const units *set, uint64_t address) {
  const uint32_t *place = place_find(set, address);
  if (!place || !*place) return 0;
  return *place & ASIDE ? set->aside.items[(*place & ~ASIDE) - 1].key : set->heap.items[*place - 1].key;
}

/* Takes it from those put aside; the last of them gets its index. */
static void aside_drop(units *set, uint32_t *place) {
  uint32_t index = (*place & ~ASIDE) - 1;
  *place = 0;
  unit last = set->aside.items[--set->aside.count];
  if (index == set->aside.count) return;
  set->aside.items[index] = last;
  *last.place = ASIDE | (index + 1);
}

void units_put(units *set, uint64_t address, uint64_t key) {
  uint32_t *place = place_make(set, address);
  unit u = {.key = key, .address = address & ~(set->unit_bytes - 1), .place = place};
  if (*place & ASIDE) aside_drop(set, place);
  if (!*place) {
    FF_PUSH(&set->heap, u);
    *place = (uint32_t)set->heap.count;
  }
  sift(set, *place - 1, u);
}

void units_drop(units *set, uint64_t address) {
  uint32_t *place = place_find(set, address);
  if (!place || !*place) return;
  if (*place & ASIDE) {
    aside_drop(set, place);
    return;
  }
  size_t index = *place - 1;
  *place = 0;
  unit last = set->heap.items[--set->heap.count];
  if (index < set->heap.count) sift(set, index, last);
}

void units_put_aside(units *set, uint64_t address) {
  FF_ASSERT(units_has(set, address));
  unit u = {
      .key = units_key(set, address), .address = address & ~(set->unit_bytes - 1), .place = place_find(set, address)};
  units_drop(set, address);
  FF_PUSH(&set->aside, u);
  *u.place = ASIDE | (uint32_t)set->aside.count;
}

void units_put_back(units *set, uint64_t address) {
  const uint32_t *place = place_find(set, address);
  if (place && *place & ASIDE) units_put(set, address, units_key(set, address));
}

void units_check(const units *set) {
  for (size_t i = 0; i < set->heap.count; i++) {
    FF_ASSERT(place_find(set, set->heap.items[i].address) == set->heap.items[i].place &&
              *set->heap.items[i].place == i + 1);
    FF_ASSERT(i == 0 || before(&set->heap.items[(i - 1) / BRANCHES], &set->heap.items[i]));
  }
  for (size_t i = 0; i < set->aside.count; i++)
    FF_ASSERT(*place_find(set, set->aside.items[i].address) == (ASIDE | (i + 1)));
  size_t places = 0;
  for (size_t b = 0; b < set->block_capacity; b++)
    for (size_t u = 0; set->blocks[b].places && u < FF_BLOCK_BYTES / set->unit_bytes; u++)
      places += set->blocks[b].places[u] != 0;
  FF_ASSERT(places == set->heap.count + set->aside.count);
}

/* ---- evictors ---- */

void units_fit(units *set, const ff_view *view) {
  if (set->block_capacity || view->unit_bytes <= set->unit_bytes) return;
  set->unit_bytes = view->unit_bytes < FF_BLOCK_BYTES ? view->unit_bytes : FF_BLOCK_BYTES;
}

void units_each(uint64_t unit_bytes, uint64_t address, uint64_t bytes, void (*each)(void *context, uint64_t unit),
                void *context) {
  uint64_t last = address + (bytes - 1);
  for (uint64_t at = address & ~(unit_bytes - 1); bytes && last >= address && at <= last; at += unit_bytes) {
    each(context, at);
    if (at > UINT64_MAX - unit_bytes) break;
  }
}

uint64_t units_propose(ff_view *view, uint64_t unit_bytes, uint64_t address, bool *gone) {
  ff_block block;
  view->block(view, address, &block);
  uint32_t first = pages_index(address), end = first + (uint32_t)(unit_bytes / FF_PAGE_BYTES);
  ff_pages within = pages_between(first, end), evictable = pages_evictable(&block);
  evictable = pages_and(&evictable, &within);
  *gone = pages_count(&block.valid, first, end) == 0;
  pages_propose(view, pages_block_of(address), &evictable, FF_BLOCK_PAGES);
  return pages_count(&evictable, first, end) * FF_PAGE_BYTES;
}

void units_evict(units *set, ff_view *view, uint64_t bytes,
                 uint64_t (*refresh)(ff_view *view, const units *set, const unit *unit)) {
  FF_VEC(unit) taken = {0};
  if (ff_check_level >= 2 && set->asked++ % CHECK_EVERY == 0) units_check(set);
  for (uint64_t proposed = 0; proposed < bytes && set->heap.count;) {
    unit first = *units_first(set);
    uint64_t key = refresh ? refresh(view, set, &first) : first.key;
    if (key != first.key) {
      units_put(set, first.address, key);
      continue;
    }
    bool gone;
    uint64_t goes = units_propose(view, set->unit_bytes, first.address, &gone);
    proposed += goes;
    if (!goes && !gone) {
      units_put_aside(set, first.address);
      continue;
    }
    if (!gone && proposed >= bytes) break; /* it may stay where it is */
    units_drop(set, first.address);
    if (!gone) FF_PUSH(&taken, first);
  }
  for (size_t i = 0; i < taken.count; i++) units_put(set, taken.items[i].address, taken.items[i].key);
  free(taken.items);
}

uint64_t units_last_used(ff_view *view, const units *set, const unit *unit) {
  uint64_t used = view->last_use(view, unit->address, set->unit_bytes);
  return used > unit->key ? used : unit->key;
}

static void put_back(void *context, uint64_t address) { units_put_back(context, address); }
void units_settled(units *set, uint64_t address, uint64_t bytes) {
  units_each(set->unit_bytes, address, bytes, put_back, set);
}

typedef struct departure {
  units *set;
  ff_view *view;
  uint64_t known;
  ff_block block;
} departure;

static void unit_left(void *context, uint64_t address) {
  departure *d = context;
  if (d->known != pages_block_of(address)) {
    d->known = pages_block_of(address);
    d->view->block(d->view, address, &d->block);
  }
  uint32_t first = pages_index(address), end = first + (uint32_t)(d->set->unit_bytes / FF_PAGE_BYTES);
  if (pages_count(&d->block.valid, first, end) == 0) units_drop(d->set, address);
}

void units_left(units *set, ff_view *view, uint64_t address, uint64_t bytes) {
  units_each(set->unit_bytes, address, bytes, unit_left, &(departure){.set = set, .view = view, .known = UINT64_MAX});
}
