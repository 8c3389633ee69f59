/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each byte: pages of cells, one per word of 4 bytes until an access needs less, then one per byte.
 * Pages of earlier launches say nothing and are used again, or freed when the limit is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "check/race_private.h"

enum { PAGE = 4096 };

static size_t cells_bytes(const race_page *page) {
  return (page->by_byte ? page->bytes : page->bytes / 4u) * sizeof(race_cell);
}

static size_t slot_of(const race *r, uint64_t number) {
  size_t at = (number * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (r->page_capacity - 1);
  while (r->pages[at] && r->pages[at]->number != number) at = (at + 1) & (r->page_capacity - 1);
  return at;
}

static void rebuild(race *r, size_t capacity) {
  race_page **old = r->pages;
  size_t before = r->page_capacity;
  r->pages = ff_alloc(capacity * sizeof *r->pages);
  r->page_capacity = capacity;
  for (size_t n = 0; n < before; n++)
    if (old[n]) r->pages[slot_of(r, old[n]->number)] = old[n];
  free(old);
}

/* Frees the pages of earlier launches. */
static void sweep(race *r) {
  for (size_t n = 0; n < r->page_capacity; n++) {
    race_page *page = r->pages[n];
    if (!page || page->launch == r->launch) continue;
    r->used -= cells_bytes(page);
    r->page_count--;
    free(page->cells);
    free(page);
    r->pages[n] = NULL;
  }
  r->last = NULL;
  r->swept = r->launch;
  if (r->page_capacity) rebuild(r, r->page_capacity);
}

static bool room_for(race *r, size_t bytes) {
  if (r->used + bytes <= r->limit) return true;
  if (r->swept != r->launch) sweep(r); /* what this launch has touched stays, so once is enough */
  if (r->used + bytes <= r->limit) return true;
  r->overflowed = true;
  return false;
}

static race_page *find_page(race *r, uint64_t number) {
  race_page *page = r->last;
  if (!page || page->number != number) {
    if (2 * (r->page_count + 1) > r->page_capacity) rebuild(r, r->page_capacity ? 2 * r->page_capacity : 256);
    page = r->pages[slot_of(r, number)];
    if (!page) {
      if (!room_for(r, PAGE / 4 * sizeof(race_cell))) return NULL;
      page = ff_alloc(sizeof *page);
      *page = (race_page){.number = number, .launch = r->launch, .bytes = PAGE};
      page->cells = ff_alloc(cells_bytes(page));
      r->used += cells_bytes(page);
      r->page_count++;
      r->pages[slot_of(r, number)] = page;
    }
    r->last = page;
  }
  if (page->launch == r->launch) return page;
  page->launch = r->launch;
  memset(page->cells, 0, cells_bytes(page));
  return page;
}

/* A cell per byte from now on, each with what its word had. */
static bool split(race *r, race_page *page, bool counted) {
  size_t before = cells_bytes(page);
  if (counted && !room_for(r, 3 * before)) return false;
  race_cell *cells = ff_alloc(page->bytes * sizeof *cells);
  for (uint32_t n = 0; n < page->bytes; n++) cells[n] = page->cells[n / 4];
  free(page->cells);
  page->cells = cells;
  page->by_byte = true;
  if (counted) r->used += 3 * before;
  return true;
}

uint32_t race_cells_find(race_block *b, bool shared, uint64_t address, uint32_t bytes, race_cell **cells,
                         uint32_t *cell_bytes) {
  race_page *page = shared ? &b->shared : find_page(b->race, address / PAGE);
  uint32_t at = (uint32_t)(shared ? address : address % PAGE);
  if (!page || at + bytes > page->bytes) return 0; /* an aligned access does not cross a page */
  if (!page->cells) page->cells = ff_alloc(cells_bytes(page));
  if (!page->by_byte && ((at | bytes) & 3) && !split(b->race, page, !shared)) return 0;
  *cell_bytes = page->by_byte ? 1 : 4;
  *cells = &page->cells[at / *cell_bytes];
  return bytes / *cell_bytes;
}

void race_pages_check(const race *r) {
  size_t count = 0;
  uint64_t used = 0;
  for (size_t n = 0; n < r->page_capacity; n++) {
    const race_page *page = r->pages[n];
    if (!page) continue;
    FF_ASSERT(slot_of(r, page->number) == n && page->launch <= r->launch && page->bytes == PAGE);
    count++;
    used += cells_bytes(page);
  }
  FF_ASSERT(count == r->page_count && used == r->used && used <= r->limit);
}

void race_forget(race *r, uint64_t address, uint64_t bytes) {
  for (uint64_t at = address, end = address + bytes; at < end && r->page_capacity;) {
    uint64_t next = (at / PAGE + 1) * PAGE < end ? (at / PAGE + 1) * PAGE : end;
    race_page *page = r->pages[slot_of(r, at / PAGE)];
    uint32_t each = page && page->by_byte ? 1 : 4, first = (uint32_t)(at % PAGE) / each,
             behind = ((uint32_t)(next - 1 - at / PAGE * PAGE)) / each + 1;
    if (page) memset(&page->cells[first], 0, (behind - first) * sizeof(race_cell));
    at = next;
  }
}

void race_cells_free(race *r) {
  for (size_t n = 0; n < r->page_capacity; n++) {
    if (!r->pages[n]) continue;
    free(r->pages[n]->cells);
    free(r->pages[n]);
  }
  free(r->pages);
}
