/* SPDX-License-Identifier: Apache-2.0 */
/* The future as a table of 2 MiB pieces, made when an address in them is first used; each of their pages has its uses
 * as runs of consecutive positions, because neighbouring blocks mostly share pages or follow each other. */
#include "trace/future.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

enum { PAGE_SHIFT = 12, PIECE_SHIFT = 21, PIECE_PAGES = 1 << (PIECE_SHIFT - PAGE_SHIFT) };

typedef struct run {
  uint64_t first, last;
} run; /* positions, both inclusive */
typedef struct page_uses {
  run *runs;
  uint32_t count, capacity;
  bool touched;
  bool disordered; /* a run begins before the one ahead of it: sorted when the future is complete */
} page_uses;
typedef struct piece {
  uint64_t number; /* address >> PIECE_SHIFT */
  page_uses pages[PIECE_PAGES];
} piece;

struct trace_future {
  pthread_mutex_t mutex;
  pthread_cond_t completed;
  bool complete;
  piece **pieces; /* open addressing; NULL: empty */
  size_t piece_count, piece_capacity;
  piece *last_found;      /* by the recorder */
  FF_VEC(uint64_t) bases; /* by launch: the position of its first block */
  FF_VEC(uint64_t) order; /* pages in the order of their first touches */
  uint64_t next_position;
};

trace_future *trace_future_create(void) {
  trace_future *f = ff_alloc(sizeof *f);
  pthread_mutex_init(&f->mutex, NULL);
  pthread_cond_init(&f->completed, NULL);
  f->piece_capacity = 64;
  f->pieces = ff_alloc(f->piece_capacity * sizeof *f->pieces);
  return f;
}

void trace_future_free(trace_future *f) {
  if (!f) return;
  for (size_t i = 0; i < f->piece_capacity; i++) {
    if (!f->pieces[i]) continue;
    for (uint32_t page = 0; page < PIECE_PAGES; page++) free(f->pieces[i]->pages[page].runs);
    free(f->pieces[i]);
  }
  free(f->pieces);
  free(f->bases.items);
  free(f->order.items);
  pthread_cond_destroy(&f->completed);
  pthread_mutex_destroy(&f->mutex);
  free(f);
}

/* ---- pieces ---- */

/* Where the piece is, or would go. */
static size_t place_of(piece *const *pieces, size_t capacity, uint64_t number) {
  size_t at = (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
  while (pieces[at] && pieces[at]->number != number) at = (at + 1) & (capacity - 1);
  return at;
}

static void pieces_grow(trace_future *f) {
  size_t capacity = f->piece_capacity * 2;
  piece **pieces = ff_alloc(capacity * sizeof *pieces);
  for (size_t i = 0; i < f->piece_capacity; i++)
    if (f->pieces[i]) pieces[place_of(pieces, capacity, f->pieces[i]->number)] = f->pieces[i];
  free(f->pieces);
  f->pieces = pieces;
  f->piece_capacity = capacity;
}

static page_uses *page_make(trace_future *f, uint64_t address) {
  FF_ASSERT(!f->complete);
  uint64_t number = address >> PIECE_SHIFT;
  if (!f->last_found || f->last_found->number != number) {
    size_t at = place_of(f->pieces, f->piece_capacity, number);
    if (!f->pieces[at]) {
      if (2 * ++f->piece_count > f->piece_capacity) {
        pieces_grow(f);
        at = place_of(f->pieces, f->piece_capacity, number);
      }
      f->pieces[at] = ff_alloc(sizeof *f->pieces[at]);
      f->pieces[at]->number = number;
    }
    f->last_found = f->pieces[at];
  }
  return &f->last_found->pages[address >> PAGE_SHIFT & (PIECE_PAGES - 1)];
}

/* ---- recording ---- */

static void page_add(page_uses *page, uint64_t position) {
  run *last = page->count ? &page->runs[page->count - 1] : NULL;
  if (last && position >= last->first && position <= last->last + 1) {
    if (position > last->last) last->last = position;
    return;
  }
  if (last && position < last->first) page->disordered = true;
  if (page->count == page->capacity) {
    page->capacity = page->capacity ? page->capacity * 2 : 2;
    page->runs = ff_realloc(page->runs, page->capacity * sizeof *page->runs);
  }
  page->runs[page->count++] = (run){position, position};
}

void trace_future_launch(trace_future *f, const trace_launch *launch) {
  FF_ASSERT(!f->complete);
  while (f->bases.count < launch->id) FF_PUSH(&f->bases, TRACE_FUTURE_NEVER); /* launches that did not come */
  FF_PUSH(&f->bases, f->next_position);
  f->next_position += launch->blocks;
}

void trace_future_range(trace_future *f, uint64_t address, uint64_t bytes) {
  if (!bytes || address + bytes < address) return;
  for (uint64_t page = address >> PAGE_SHIFT; page <= (address + bytes - 1) >> PAGE_SHIFT; page++)
    page_add(page_make(f, page << PAGE_SHIFT), f->next_position);
}

static void warp_uses(trace_future *f, trace_reader *reader, trace_chunk *chunk, uint32_t warp, uint64_t position) {
  trace_cursor cursor;
  trace_cursor_open(reader, chunk, warp, &cursor);
  uint64_t before = UINT64_MAX;
  for (const uint64_t *record = trace_cursor_next(reader, &cursor); trace_word_kind(*record) != TRACE_EXIT;
       record = trace_cursor_next(reader, &cursor)) {
    if (trace_word_kind(*record) != TRACE_ACCESS) continue;
    for (uint32_t i = 0; i < trace_access_lines(*record); i++) {
      uint64_t address = trace_line_address(record[2 + i]);
      if (address >> PAGE_SHIFT == before) continue;
      before = address >> PAGE_SHIFT;
      page_add(page_make(f, address), position);
    }
  }
  trace_cursor_close(reader, &cursor);
}

void trace_future_block(trace_future *f, trace_reader *reader, trace_chunk *chunk, const trace_launch *launch,
                        uint64_t block) {
  uint64_t position = trace_future_position(f, launch, block);
  for (uint32_t w = 0; w < launch->warps_per_block; w++) warp_uses(f, reader, chunk, w, position);
}

void trace_future_touch(trace_future *f, uint64_t address) {
  page_uses *page = page_make(f, address);
  if (page->touched) return;
  page->touched = true;
  FF_PUSH(&f->order, address >> PAGE_SHIFT << PAGE_SHIFT);
}

static int by_first(const void *a, const void *b) {
  const run *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

/* Runs that touch become one. */
static void page_sort(page_uses *page) {
  qsort(page->runs, page->count, sizeof *page->runs, by_first);
  uint32_t kept = 0;
  for (uint32_t i = 1; i < page->count; i++) {
    run *last = &page->runs[kept], *next = &page->runs[i];
    if (next->first > last->last + 1) page->runs[++kept] = *next;
    else if (next->last > last->last) last->last = next->last;
  }
  page->count = kept + 1;
}

static bool runs_are_apart(const page_uses *page) {
  for (uint32_t i = 0; i < page->count; i++)
    if (page->runs[i].first > page->runs[i].last || (i && page->runs[i - 1].last + 1 >= page->runs[i].first))
      return false;
  return true;
}

void trace_future_complete(trace_future *f) {
  FF_ASSERT(!f->complete);
  for (size_t i = 0; i < f->piece_capacity; i++)
    for (uint32_t page = 0; f->pieces[i] && page < PIECE_PAGES; page++) {
      if (f->pieces[i]->pages[page].disordered) page_sort(&f->pieces[i]->pages[page]);
      FF_CHECK_DEEP(runs_are_apart(&f->pieces[i]->pages[page]));
    }
  pthread_mutex_lock(&f->mutex);
  f->complete = true;
  pthread_cond_broadcast(&f->completed);
  pthread_mutex_unlock(&f->mutex);
}

/* ---- look-ups ---- */

void trace_future_wait(trace_future *f) {
  pthread_mutex_lock(&f->mutex);
  while (!f->complete) pthread_cond_wait(&f->completed, &f->mutex);
  pthread_mutex_unlock(&f->mutex);
}

uint64_t trace_future_position(const trace_future *f, const trace_launch *launch, uint64_t block) {
  FF_ASSERT(launch->id < f->bases.count && f->bases.items[launch->id] != TRACE_FUTURE_NEVER);
  return f->bases.items[launch->id] + block;
}

static uint64_t page_next(const page_uses *page, uint64_t from) {
  uint32_t low = 0, high = page->count;
  while (low < high) { /* the first run that ends at `from` or later */
    uint32_t middle = low + (high - low) / 2;
    if (page->runs[middle].last < from) low = middle + 1;
    else high = middle;
  }
  if (low == page->count) return TRACE_FUTURE_NEVER;
  return page->runs[low].first > from ? page->runs[low].first : from;
}

uint64_t trace_future_next_use(const trace_future *f, uint64_t address, uint64_t bytes, uint64_t from) {
  uint64_t next = TRACE_FUTURE_NEVER;
  if (!bytes || address + bytes < address) return next;
  const piece *found = NULL;
  for (uint64_t page = address >> PAGE_SHIFT; page <= (address + bytes - 1) >> PAGE_SHIFT; page++) {
    uint64_t number = page >> (PIECE_SHIFT - PAGE_SHIFT);
    if (!found || found->number != number) found = f->pieces[place_of(f->pieces, f->piece_capacity, number)];
    if (!found) { /* nothing of this piece is ever used */
      page |= PIECE_PAGES - 1;
      continue;
    }
    uint64_t use = page_next(&found->pages[page & (PIECE_PAGES - 1)], from);
    if (use < next) next = use;
    if (next == from) break;
  }
  return next;
}

uint64_t trace_future_first_touch(const trace_future *f, uint64_t index) {
  return index < f->order.count ? f->order.items[index] : TRACE_FUTURE_NEVER;
}
