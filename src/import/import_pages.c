/* SPDX-License-Identifier: Apache-2.0 */
/* Touched pages, a bit each, in blocks that are found by hash (import_pages.h). */
#include "import/import_pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { PAGE_SHIFT = 12, BLOCK_SHIFT = 21, BLOCK_WORDS = 1 << (BLOCK_SHIFT - PAGE_SHIFT - 6) };
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)

typedef struct block {
  uint64_t number, pages[BLOCK_WORDS];
} block;
typedef struct range {
  uint64_t start, end, copy;
} range;

struct page_map {
  FF_VEC(block) blocks;
  uint32_t *table;   /* index in `blocks` + 1; 0: empty */
  size_t table_size; /* a power of two */
  uint64_t last;     /* the block that was touched last is likely the next, too */
  size_t last_index; /* + 1; 0: none */
  FF_VEC(range) copies;
};

page_map *page_map_create(void) {
  page_map *m = ff_alloc(sizeof *m);
  m->table_size = 256;
  m->table = ff_alloc(m->table_size * sizeof *m->table);
  return m;
}

void page_map_free(page_map *m) {
  if (!m) return;
  free(m->blocks.items);
  free(m->copies.items);
  free(m->table);
  free(m);
}

static size_t place_of(const page_map *m, uint64_t number) {
  size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (m->table_size - 1);
  while (m->table[at] && m->blocks.items[m->table[at] - 1].number != number) at = (at + 1) & (m->table_size - 1);
  return at;
}

static void grow(page_map *m) {
  free(m->table);
  m->table_size *= 2;
  m->table = ff_alloc(m->table_size * sizeof *m->table);
  for (size_t i = 0; i < m->blocks.count; i++) m->table[place_of(m, m->blocks.items[i].number)] = (uint32_t)i + 1;
}

static bool find_block(page_map *m, uint64_t number) {
  size_t at = place_of(m, number);
  if (!m->table[at]) {
    if (m->blocks.count == PAGE_BLOCKS_MAX) return false;
    FF_PUSH(&m->blocks, (block){.number = number});
    m->table[at] = (uint32_t)m->blocks.count;
    if (2 * m->blocks.count > m->table_size) grow(m);
    at = place_of(m, number);
  }
  m->last = number;
  m->last_index = m->table[at];
  return true;
}

bool page_map_touch(page_map *m, uint64_t address) {
  uint64_t number = address >> BLOCK_SHIFT;
  if ((!m->last_index || m->last != number) && !find_block(m, number)) return false;
  uint32_t page = (uint32_t)(address >> PAGE_SHIFT) & (64 * BLOCK_WORDS - 1);
  m->blocks.items[m->last_index - 1].pages[page / 64] |= UINT64_C(1) << page % 64;
  return true;
}

void page_map_copy(page_map *m, uint64_t address, uint64_t bytes) {
  range r = {address, address + bytes, m->copies.count + 1};
  FF_PUSH(&m->copies, r);
}

/* ---- allocations ---- */

static int by_start(const void *a, const void *b) {
  const range *x = a, *y = b;
  return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                              : (x->copy > y->copy) - (x->copy < y->copy);
}

static int by_number(const void *a, const void *b) {
  uint64_t x = ((const block *)a)->number, y = ((const block *)b)->number;
  return (x > y) - (x < y);
}

static int by_address(const void *a, const void *b) {
  uint64_t x = ((const page_allocation *)a)->address, y = ((const page_allocation *)b)->address;
  return (x > y) - (x < y);
}

/* The copies as allocations: those that overlap joined, each widened as far as its neighbours let it. */
static void add_copies(page_map *m, page_allocations *out) {
  size_t count = 0;
  range *r = m->copies.items;
  if (m->copies.count) qsort(r, m->copies.count, sizeof *r, by_start);
  for (size_t i = 0; i < m->copies.count; i++) {
    if (count && r[i].start < r[count - 1].end) {
      if (r[i].end > r[count - 1].end) r[count - 1].end = r[i].end;
      if (r[i].copy < r[count - 1].copy) r[count - 1].copy = r[i].copy;
    } else {
      r[count++] = r[i];
    }
  }
  for (size_t i = 0; i < count; i++) {
    uint64_t start = r[i].start & ~(PAGE_BYTES - 1), end = (r[i].end + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    if (i && start < r[i - 1].end) start = r[i - 1].end; /* it is widened already */
    if (i + 1 < count && end > r[i + 1].start) end = r[i + 1].start;
    r[i].start = start;
    r[i].end = end;
    FF_PUSH(out, ((page_allocation){.address = start, .bytes = end - start, .copy = r[i].copy}));
  }
}

/* Further touched pages, as they come in order; `copied` are the allocations of copies, sorted. */
/* open: index + 1 of the one that grows */
typedef struct joiner {
  page_allocations *out;
  size_t copied, next_copied, open;
} joiner;

static void add_page(joiner *j, uint64_t address) {
  const page_allocation *copies = j->out->items;
  size_t before = j->next_copied;
  while (j->next_copied < j->copied && copies[j->next_copied].address + copies[j->next_copied].bytes <= address)
    j->next_copied++;
  bool is_copied = j->next_copied < j->copied && copies[j->next_copied].address < address + PAGE_BYTES;
  if (j->next_copied != before || is_copied) j->open = 0;
  if (is_copied) return;
  page_allocation *grows = j->open ? &j->out->items[j->open - 1] : NULL;
  if (grows && (address >> BLOCK_SHIFT) - ((grows->address + grows->bytes - 1) >> BLOCK_SHIFT) <= 1) {
    grows->bytes = address + PAGE_BYTES - grows->address;
    return;
  }
  FF_PUSH(j->out, ((page_allocation){.address = address, .bytes = PAGE_BYTES}));
  j->open = j->out->count;
}

static bool in_order(const page_allocations *all) {
  for (size_t i = 1; i < all->count; i++)
    if (all->items[i - 1].address + all->items[i - 1].bytes > all->items[i].address) return false;
  return true;
}

static bool has_every_page(const page_map *m, const page_allocations *all) {
  for (size_t b = 0; b < m->blocks.count; b++)
    for (uint32_t page = 0; page < 64 * BLOCK_WORDS; page++) {
      uint64_t address = (m->blocks.items[b].number << BLOCK_SHIFT) + ((uint64_t)page << PAGE_SHIFT);
      const page_allocation *next = page_allocation_at(all, address + PAGE_BYTES - 1);
      if (m->blocks.items[b].pages[page / 64] >> page % 64 & 1 && !next && !page_allocation_at(all, address))
        return false;
    }
  return true;
}

void page_map_allocations(page_map *m, page_allocations *out) {
  add_copies(m, out);
  joiner j = {.out = out, .copied = out->count};
  if (m->blocks.count) qsort(m->blocks.items, m->blocks.count, sizeof m->blocks.items[0], by_number);
  for (size_t b = 0; b < m->blocks.count; b++)
    for (uint32_t page = 0; page < 64 * BLOCK_WORDS; page++)
      if (m->blocks.items[b].pages[page / 64] >> page % 64 & 1)
        add_page(&j, (m->blocks.items[b].number << BLOCK_SHIFT) + ((uint64_t)page << PAGE_SHIFT));
  if (out->count) qsort(out->items, out->count, sizeof out->items[0], by_address);
  memset(m->table, 0, m->table_size * sizeof *m->table); /* the blocks have moved */
  for (size_t i = 0; i < m->blocks.count; i++) m->table[place_of(m, m->blocks.items[i].number)] = (uint32_t)i + 1;
  m->last_index = 0;
  FF_CHECK_DEEP(in_order(out) && has_every_page(m, out));
}

page_allocation *page_allocation_at(const page_allocations *all, uint64_t address) {
  size_t low = 0, high = all->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (all->items[middle].address + all->items[middle].bytes <= address) low = middle + 1;
    else high = middle;
  }
  return low < all->count && all->items[low].address <= address ? &all->items[low] : NULL;
}
