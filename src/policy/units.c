/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of units: see units.h.
 *
 *     place of a run: 1 + its index in the heap, or ASIDE + 1 + its index among those put aside
 *     heap[(i - 1) / 4] comes before heap[i]; the place of heap[i]'s run is i + 1
 *     a unit that is in the set is in the run that begins at it or nearest below it */
#include "policy/units.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "policy/pages.h"

#define ASIDE (UINT32_C(1) << 31)
enum { CHECK_EVERY = 64, BRANCHES = 4, WORDS = FF_BLOCK_PAGES / 64, MOST_SEARCHED = 64 };

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
  for (size_t i = 0; i < set->blocks.count; i++) free(set->blocks.items[i].runs);
  free(set->blocks.items);
  free(set->slots);
  free(set->heap.items);
  free(set->aside.items);
  *set = (units){0};
}

/* ---- units and their numbers ---- */

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
    units_runs *runs = ff_alloc(sizeof *runs);
    FF_PUSH(&set->blocks, ((units_block){.address = pages_block_of(address), .runs = runs}));
    *slot = (uint32_t)set->blocks.count;
  }
  return number_in(set, *slot - 1, address);
}

static units_block *block_of(const units *set, uint32_t number) {
  return &set->blocks.items[number >> set->block_shift];
}

static uint32_t within(const units *set, uint32_t number) { return number & ((UINT32_C(1) << set->block_shift) - 1); }

static uint64_t address_of(const units *set, uint32_t number) {
  return block_of(set, number)->address + ((uint64_t)within(set, number) << set->unit_shift);
}

/* Whether it is in the set, and then its number. */
static bool member_find(const units *set, uint64_t address, uint32_t *number) {
  return number_find(set, address, number) && pages_has(&block_of(set, *number)->runs->there, within(set, *number));
}

/* ---- runs ---- */

static void flip(ff_pages *units, uint32_t at) { units->word[at / 64] ^= UINT64_C(1) << at % 64; }

/* How many runs begin below the unit. */
static uint32_t runs_below(const units_runs *runs, uint32_t at) {
  uint64_t word = runs->first.word[at / 64] & ((UINT64_C(1) << at % 64) - 1);
  return runs->below[at / 64] + (uint32_t)__builtin_popcountll(word);
}

/* Where the place of the member's run is; direct: `at` begins the run. */
static uint32_t *place_in(units_runs *runs, uint32_t at) {
  if (runs->direct) return &runs->places[at];
  return &runs->places[runs_below(runs, at) - !pages_has(&runs->first, at)];
}

/* The first unit of the member's run. */
static uint32_t run_begin(const units_runs *runs, uint32_t at) {
  uint64_t word = runs->first.word[at / 64] & UINT64_MAX >> (63 - at % 64);
  uint32_t w = at / 64;
  while (!word) word = runs->first.word[--w];
  return w * 64 + 63 - (uint32_t)__builtin_clzll(word);
}

/* Of a member's run. */
static uint32_t *place_of(const units *set, uint32_t number) {
  units_runs *runs = block_of(set, number)->runs;
  uint32_t at = within(set, number);
  return place_in(runs, runs->direct ? run_begin(runs, at) : at);
}

/* One past the last unit of the member's run. */
static uint32_t run_end(const units_runs *runs, uint32_t at) {
  for (uint32_t next = at + 1, w = next / 64; w < WORDS; w++) {
    uint64_t ends = runs->first.word[w] | ~runs->there.word[w];
    if (w == next / 64) ends &= UINT64_MAX << next % 64;
    if (ends) return w * 64 + (uint32_t)__builtin_ctzll(ends);
  }
  return FF_BLOCK_PAGES;
}

/* Room for one more place: twice as many, or one for each unit of the block. */
static units_runs *grow_places(const units *set, units_block *block) {
  uint32_t units = UINT32_C(1) << set->block_shift, wanted = block->runs->capacity ? block->runs->capacity * 2u : 1;
  bool direct = wanted > MOST_SEARCHED || wanted >= units;
  if (direct) wanted = units;
  units_runs *runs = block->runs = ff_realloc(block->runs, sizeof *runs + wanted * sizeof *runs->places);
  runs->capacity = (uint16_t)wanted;
  runs->direct = direct;
  uint32_t at = units;
  for (uint32_t n = direct ? runs->count : 0; n--;) { /* from high to low: no place is moved over another one */
    at = run_begin(runs, at - 1);
    runs->places[at] = runs->places[n];
  }
  return runs;
}

static void count_run(units_runs *runs, uint32_t at, int sign) {
  flip(&runs->first, at);
  runs->count = (uint16_t)(runs->count + sign);
  for (uint32_t w = at / 64 + 1; w < WORDS; w++) runs->below[w] = (uint16_t)(runs->below[w] + sign);
}

static void run_add(const units *set, uint32_t number, uint32_t place) {
  units_block *block = block_of(set, number);
  units_runs *runs = block->runs;
  uint32_t at = within(set, number);
  if (runs->count == runs->capacity) runs = grow_places(set, block);
  uint32_t *here = &runs->places[runs->direct ? at : runs_below(runs, at)];
  if (!runs->direct) memmove(here + 1, here, (size_t)(&runs->places[runs->count] - here) * sizeof *here);
  *here = place;
  count_run(runs, at, 1);
}

static void run_remove(const units *set, uint32_t number) {
  units_runs *runs = block_of(set, number)->runs;
  uint32_t at = within(set, number), *here = place_in(runs, at);
  if (!runs->direct) memmove(here, here + 1, (size_t)(&runs->places[runs->count] - here - 1) * sizeof *here);
  count_run(runs, at, -1);
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

/* The run leaves the heap; its place is the caller's. */
static void heap_drop(units *set, size_t index) {
  units_entry last = set->heap.items[--set->heap.count];
  if (index < set->heap.count) sift(set, index, last);
}

static void run_push(units *set, uint32_t number, uint64_t key) {
  units_entry e = {.key = key, .number = number};
  FF_PUSH(&set->heap, e);
  run_add(set, number, (uint32_t)set->heap.count);
  sift(set, set->heap.count - 1, e);
}

/* The run that begins at `from` begins at its neighbour `to`. */
static void run_move(units *set, uint32_t from, uint32_t to) {
  uint32_t place = *place_of(set, from);
  run_remove(set, from);
  run_add(set, to, place);
  sift(set, place - 1, (units_entry){.key = set->heap.items[place - 1].key, .number = to});
}

/* Whether the unit at `at` of the number's block is in a run of the order that has the key. */
static bool has_key(const units *set, units_runs *runs, uint32_t at, uint64_t key) {
  if (set->apart || at >= FF_BLOCK_PAGES || !pages_has(&runs->there, at)) return false; /* or 0 - 1 */
  uint32_t place = *place_in(runs, runs->direct ? run_begin(runs, at) : at);
  return !(place & ASIDE) && set->heap.items[place - 1].key == key;
}

/* One that is not a member becomes one. */
static void add(units *set, uint32_t number, uint64_t key) {
  units_runs *runs = block_of(set, number)->runs;
  uint32_t at = within(set, number);
  bool follows = has_key(set, runs, at - 1, key), precedes = has_key(set, runs, at + 1, key);
  flip(&runs->there, at);
  if (follows && precedes) {
    size_t index = *place_of(set, number + 1) - 1;
    run_remove(set, number + 1);
    heap_drop(set, index);
  } else if (precedes) run_move(set, number + 1, number);
  else if (!follows) run_push(set, number, key);
}

/* Takes it from those put aside; the last of them gets its index. */
static void aside_drop(units *set, uint32_t index) {
  units_entry last = set->aside.items[--set->aside.count];
  if (index == set->aside.count) return;
  set->aside.items[index] = last;
  *place_of(set, last.number) = ASIDE | (index + 1);
}

/* A member is none any more. */
static void take(units *set, uint32_t number) {
  units_runs *runs = block_of(set, number)->runs;
  uint32_t at = within(set, number), place = *place_of(set, number), end = run_end(runs, at);
  bool begins = pages_has(&runs->first, at);
  flip(&runs->there, at);
  if (begins && end > at + 1) run_move(set, number, number + 1);
  else if (begins) {
    run_remove(set, number);
    if (place & ASIDE) aside_drop(set, (place & ~ASIDE) - 1);
    else heap_drop(set, place - 1);
  } else if (end > at + 1) run_push(set, number + 1, set->heap.items[place - 1].key);
}

static uint64_t key_of(const units *set, uint32_t number) {
  uint32_t place = *place_of(set, number);
  return place & ASIDE ? set->aside.items[(place & ~ASIDE) - 1].key : set->heap.items[place - 1].key;
}

/* ---- the set ---- */

unit units_at(const units *set, size_t index) {
  units_entry e = set->heap.items[index];
  return (unit){.key = e.key, .address = address_of(set, e.number)};
}

bool units_has(const units *set, uint64_t address) {
  uint32_t number;
  return member_find(set, address, &number);
}

uint64_t units_key(const units *set, uint64_t address) {
  uint32_t number;
  return member_find(set, address, &number) ? key_of(set, number) : 0;
}

void units_put(units *set, uint64_t address, uint64_t key) {
  uint32_t number = number_make(set, address), at = within(set, number);
  units_runs *runs = block_of(set, number)->runs;
  if (pages_has(&runs->there, at)) {
    uint32_t place = *place_of(set, number);
    if (!(place & ASIDE) && set->heap.items[place - 1].key == key) return;
    bool alone = pages_has(&runs->first, at) && run_end(runs, at) == at + 1;
    if (!(place & ASIDE) && alone && !has_key(set, runs, at - 1, key) && !has_key(set, runs, at + 1, key)) {
      sift(set, place - 1, (units_entry){.key = key, .number = number});
      return;
    }
    take(set, number);
  }
  add(set, number, key);
}

void units_drop(units *set, uint64_t address) {
  uint32_t number;
  if (member_find(set, address, &number)) take(set, number);
}

void units_put_aside(units *set, uint64_t address) {
  uint32_t number = 0;
  FF_ASSERT(member_find(set, address, &number));
  units_entry e = {.key = key_of(set, number), .number = number};
  take(set, number);
  FF_PUSH(&set->aside, e);
  flip(&block_of(set, number)->runs->there, within(set, number));
  run_add(set, number, ASIDE | (uint32_t)set->aside.count);
}

void units_put_back(units *set, uint64_t address) {
  uint32_t number;
  if (member_find(set, address, &number) && *place_of(set, number) & ASIDE)
    units_put(set, address, key_of(set, number));
}

/* Returns how many runs the block has. */
static size_t check_block(const units *set, uint32_t b) {
  const units_runs *runs = set->blocks.items[b].runs;
  FF_ASSERT(*slot_of(set, set->blocks.items[b].address) == b + 1);
  FF_ASSERT(runs->count == pages_count(&runs->first, 0, FF_BLOCK_PAGES));
  for (uint32_t w = 0; w < WORDS; w++) FF_ASSERT(runs->below[w] == pages_count(&runs->first, 0, w * 64));
  ff_pages after = pages_up(&runs->there, 1), begin = pages_without(&runs->there, &after);
  ff_pages astray = pages_without(&runs->first, &runs->there), lost = pages_without(&begin, &runs->first);
  FF_ASSERT(pages_next(&astray, 0) == FF_BLOCK_PAGES && pages_next(&lost, 0) == FF_BLOCK_PAGES);
  return runs->count;
}

void units_check(const units *set) {
  size_t runs = 0;
  for (uint32_t b = 0; b < set->blocks.count; b++) runs += check_block(set, b);
  FF_ASSERT(runs == set->heap.count + set->aside.count);
  for (size_t i = 0; i < set->heap.count; i++) {
    FF_ASSERT(*place_of(set, set->heap.items[i].number) == i + 1);
    FF_ASSERT(i == 0 || before(set, &set->heap.items[(i - 1) / BRANCHES], &set->heap.items[i]));
  }
  for (size_t i = 0; i < set->aside.count; i++) {
    uint32_t number = set->aside.items[i].number, at = within(set, number);
    FF_ASSERT(*place_of(set, number) == (ASIDE | (i + 1)));
    FF_ASSERT(run_end(block_of(set, number)->runs, at) == at + 1);
  }
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
