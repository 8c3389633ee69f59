/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of units: see units.h.
 *
 *     place of a unit: 1 + its index in the heap, or ASIDE + 1 + its index among those put aside; 0: it is in neither
 *     heap[(i - 1) / 4] comes before heap[i]; the place of heap[i]'s unit is i + 1 */
#include "policy/units.h"

#include <stdlib.h>

#include "base/check.h"
#include "policy/pages.h"

#define ASIDE (UINT32_C(1) << 31)
enum { CHECK_EVERY = 64, BRANCHES = 4 };

static void set_unit(units *set, uint64_t unit_bytes) {
  set->unit_bytes = unit_bytes;
  set->unit_shift = (uint32_t)__builtin_ctzll(unit_bytes);
  set->block_shift = (uint32_t)__builtin_ctzll(FF_BLOCK_BYTES / unit_bytes);
}

void units_init(units *set, uint64_t unit_bytes) {
  *set = (units){0};
  set_unit(set, unit_bytes);
}

void units_free(units *set) {
  for (size_t i = 0; i < set->blocks.count; i++) free(set->blocks.items[i].places);
  free(set->blocks.items);
  free(set->slots);
  free(set->heap.items);
  free(set->aside.items);
  *set = (units){0};
}

/* ---- units and their places ---- */

static uint32_t *slot_of(const units *set, uint64_t block) {
  size_t mask = set->slot_count - 1, slot = (block / FF_BLOCK_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
  while (set->slots[slot] && set->blocks.items[set->slots[slot] - 1].address != block) slot = (slot + 1) & mask;
  return &set->slots[slot];
}

static void grow(units *set) {
  free(set->slots);
  set->slot_count = set->slot_count ? set->slot_count * 2 : 64;
  set->slots = ff_alloc(set->slot_count * sizeof *set->slots);
  for (uint32_t b = 0; b < set->blocks.count; b++) *slot_of(set, set->blocks.items[b].address) = b + 1;
}

static uint32_t number_in(const units *set, uint32_t block, uint64_t address) {
  return block << set->block_shift | (uint32_t)(address % FF_BLOCK_BYTES >> set->unit_shift);
}

/* The unit's number; false: nothing of its block has ever been in the set. */
static bool number_find(const units *set, uint64_t address, uint32_t *number) {
  if (!set->slot_count) return false;
  uint32_t slot = *slot_of(set, pages_block_of(address));
  if (slot) *number = number_in(set, slot - 1, address);
  return slot != 0;
}

static uint32_t number_make(units *set, uint64_t address) {
  if (set->blocks.count * 4 >= set->slot_count * 3) grow(set);
  uint32_t *slot = slot_of(set, pages_block_of(address));
  if (!*slot) {
    FF_ASSERT(set->blocks.count < UINT32_MAX >> set->block_shift); /* 16 TiB of units of 4 KiB */
    uint32_t *places = ff_alloc((FF_BLOCK_BYTES / set->unit_bytes) * sizeof *places);
    FF_PUSH(&set->blocks, ((units_block){.address = pages_block_of(address), .places = places}));
    *slot = (uint32_t)set->blocks.count;
  }
  return number_in(set, *slot - 1, address);
}

static uint32_t *place_of(const units *set, uint32_t number) {
  const units_block *block = &set->blocks.items[number >> set->block_shift];
  return &block->places[number & ((UINT32_C(1) << set->block_shift) - 1)];
}

static uint64_t address_of(const units *set, uint32_t number) {
  uint64_t within = number & ((UINT32_C(1) << set->block_shift) - 1);
  return set->blocks.items[number >> set->block_shift].address + (within << set->unit_shift);
}

/* Where the unit's place is kept; NULL: it is not in the set. */
static uint32_t *place_find(const units *set, uint64_t address) {
  uint32_t number, *place = number_find(set, address, &number) ? place_of(set, number) : NULL;
  return place && *place ? place : NULL;
}

/* ---- the heap ---- */

static bool before(const units *set, const units_entry *a, const units_entry *b) {
  return a->key < b->key || (a->key == b->key && address_of(set, a->number) < address_of(set, b->number));
}

static void settle(units *set, size_t index, units_entry e) {
  set->heap.items[index] = e;
  *place_of(set, e.number) = (uint32_t)index + 1;
}

/* Puts `e` at `index` or, if it does not belong there, above or below. */
static void sift(units *set, size_t index, units_entry e) {
  const units_entry *heap = set->heap.items;
  for (size_t parent; index && before(set, &e, &heap[parent = (index - 1) / BRANCHES]); index = parent)
    settle(set, index, heap[parent]);
  for (size_t first = index * BRANCHES + 1; first < set->heap.count; first = index * BRANCHES + 1) {
    size_t child = first;
    for (size_t other = first + 1; other < first + BRANCHES && other < set->heap.count; other++)
      if (before(set, &heap[other], &heap[child])) child = other;
    if (!before(set, &heap[child], &e)) break;
    settle(set, index, heap[child]);
    index = child;
  }
  settle(set, index, e);
}

unit units_at(const units *set, size_t index) {
  units_entry e = set->heap.items[index];
  return (unit){.key = e.key, .address = address_of(set, e.number)};
}

bool units_has(const units *set, uint64_t address) { return place_find(set, address) != NULL; }

static uint64_t key_at(const units *set, uint32_t place) {
  return place & ASIDE ? set->aside.items[(place & ~ASIDE) - 1].key : set->heap.items[place - 1].key;
}

uint64_t units_key(const units *set, uint64_t address) {
  const uint32_t *place = place_find(set, address);
  return place ? key_at(set, *place) : 0;
}

/* Takes it from those put aside; the last of them gets its index. */
static void aside_drop(units *set, uint32_t *place) {
  uint32_t index = (*place & ~ASIDE) - 1;
  *place = 0;
  units_entry last = set->aside.items[--set->aside.count];
  if (index == set->aside.count) return;
  set->aside.items[index] = last;
  *place_of(set, last.number) = ASIDE | (index + 1);
}

void units_put(units *set, uint64_t address, uint64_t key) {
  units_entry e = {.key = key, .number = number_make(set, address)};
  uint32_t *place = place_of(set, e.number);
  if (*place & ASIDE) aside_drop(set, place);
  if (!*place) {
    FF_PUSH(&set->heap, e);
    *place = (uint32_t)set->heap.count;
  }
  sift(set, *place - 1, e);
}

void units_drop(units *set, uint64_t address) {
  uint32_t *place = place_find(set, address);
  if (!place) return;
  if (*place & ASIDE) {
    aside_drop(set, place);
    return;
  }
  size_t index = *place - 1;
  *place = 0;
  units_entry last = set->heap.items[--set->heap.count];
  if (index < set->heap.count) sift(set, index, last);
}

void units_put_aside(units *set, uint64_t address) {
  FF_ASSERT(units_has(set, address));
  units_entry e = {.key = units_key(set, address), .number = number_make(set, address)};
  units_drop(set, address);
  FF_PUSH(&set->aside, e);
  *place_of(set, e.number) = ASIDE | (uint32_t)set->aside.count;
}

void units_put_back(units *set, uint64_t address) {
  const uint32_t *place = place_find(set, address);
  if (place && *place & ASIDE) units_put(set, address, key_at(set, *place));
}

void units_check(const units *set) {
  for (size_t i = 0; i < set->heap.count; i++) {
    FF_ASSERT(*place_of(set, set->heap.items[i].number) == i + 1);
    FF_ASSERT(i == 0 || before(set, &set->heap.items[(i - 1) / BRANCHES], &set->heap.items[i]));
  }
  for (size_t i = 0; i < set->aside.count; i++)
    FF_ASSERT(*place_of(set, set->aside.items[i].number) == (ASIDE | (i + 1)));
  size_t places = 0;
  for (size_t b = 0; b < set->blocks.count; b++) {
    FF_ASSERT(*slot_of(set, set->blocks.items[b].address) == b + 1);
    for (size_t u = 0; u < FF_BLOCK_BYTES / set->unit_bytes; u++) places += set->blocks.items[b].places[u] != 0;
  }
  FF_ASSERT(places == set->heap.count + set->aside.count);
}

/* ---- evictors ---- */

void units_fit(units *set, const ff_view *view) {
  if (set->blocks.count || view->unit_bytes <= set->unit_bytes) return;
  set_unit(set, view->unit_bytes < FF_BLOCK_BYTES ? view->unit_bytes : FF_BLOCK_BYTES);
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
  for (uint64_t proposed = 0; proposed < bytes && units_count(set);) {
    unit first = units_at(set, 0);
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
