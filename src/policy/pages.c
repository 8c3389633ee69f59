/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of pages within a block: see pages.h. Sets are eight words, so that all of this is a few instructions a word. */
#include "policy/pages.h"

#include <string.h>

enum { WORDS = FF_BLOCK_PAGES / 64 };

/* The bits of word `w` that lie in [first, end). */
static uint64_t word_between(uint32_t w, uint32_t first, uint32_t end) {
  uint32_t low = w * 64, high = low + 64;
  if (first >= high || end <= low || first >= end) return 0;
  uint64_t bits = UINT64_MAX;
  if (first > low) bits &= UINT64_MAX << (first - low);
  if (end < high) bits &= UINT64_MAX >> (high - end);
  return bits;
}

void pages_add(ff_pages *pages, uint32_t first, uint32_t end) {
  for (uint32_t w = first / 64; w < WORDS && w * 64 < end; w++) pages->word[w] |= word_between(w, first, end);
}

uint32_t pages_count(const ff_pages *pages, uint32_t first, uint32_t end) {
  uint32_t count = 0;
  for (uint32_t w = first / 64; w < WORDS && w * 64 < end; w++)
    count += (uint32_t)__builtin_popcountll(pages->word[w] & word_between(w, first, end));
  return count;
}

uint32_t pages_next(const ff_pages *pages, uint32_t from) {
  for (uint32_t w = from / 64; w < WORDS; w++) {
    uint64_t bits = pages->word[w] & word_between(w, from, FF_BLOCK_PAGES);
    if (bits) return w * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return FF_BLOCK_PAGES;
}

ff_pages pages_and(const ff_pages *a, const ff_pages *b) {
  ff_pages result;
  for (uint32_t w = 0; w < WORDS; w++) result.word[w] = a->word[w] & b->word[w];
  return result;
}

ff_pages pages_or(const ff_pages *a, const ff_pages *b) {
  ff_pages result;
  for (uint32_t w = 0; w < WORDS; w++) result.word[w] = a->word[w] | b->word[w];
  return result;
}

ff_pages pages_without(const ff_pages *a, const ff_pages *b) {
  ff_pages result;
  for (uint32_t w = 0; w < WORDS; w++) result.word[w] = a->word[w] & ~b->word[w];
  return result;
}

ff_pages pages_between(uint32_t first, uint32_t end) {
  ff_pages result = {0};
  pages_add(&result, first, end);
  return result;
}

ff_pages pages_up(const ff_pages *pages, uint32_t by) {
  ff_pages result = {0};
  for (uint32_t w = by / 64; w < WORDS; w++) {
    result.word[w] = pages->word[w - by / 64] << by % 64;
    if (by % 64 && w > by / 64) result.word[w] |= pages->word[w - by / 64 - 1] >> (64 - by % 64);
  }
  return result;
}

ff_pages pages_down(const ff_pages *pages, uint32_t by) {
  ff_pages result = {0};
  for (uint32_t w = 0; w + by / 64 < WORDS; w++) {
    result.word[w] = pages->word[w + by / 64] >> by % 64;
    if (by % 64 && w + by / 64 + 1 < WORDS) result.word[w] |= pages->word[w + by / 64 + 1] << (64 - by % 64);
  }
  return result;
}

ff_pages pages_evictable(const ff_block *block) {
  ff_pages there = pages_and(&block->valid, &block->mapped);
  return pages_without(&there, &block->moving);
}

ff_pages pages_absent(const ff_block *block) { return pages_without(&block->mapped, &block->valid); }

/* The end of the run that begins at `first`. */
static uint32_t run_end(const ff_pages *pages, uint32_t first) {
  for (uint32_t w = first / 64; w < WORDS; w++) {
    uint64_t missing = ~pages->word[w] & word_between(w, first, FF_BLOCK_PAGES);
    if (missing) return w * 64 + (uint32_t)__builtin_ctzll(missing);
  }
  return FF_BLOCK_PAGES;
}

static void propose_run(ff_view *view, uint64_t block, uint32_t first, uint32_t end) {
  view->propose(view, block + first * FF_PAGE_BYTES, (end - first) * FF_PAGE_BYTES);
}

void pages_propose(ff_view *view, uint64_t block, const ff_pages *pages, uint32_t near) {
  uint32_t nearest = FF_BLOCK_PAGES; /* where the run begins that goes first */
  for (uint32_t page = pages_next(pages, 0), end; page <= near + 1 && page < FF_BLOCK_PAGES;
       page = pages_next(pages, end)) {
    end = run_end(pages, page);
    if (end > near) nearest = page;
  }
  if (nearest < FF_BLOCK_PAGES) propose_run(view, block, nearest, run_end(pages, nearest));
  for (uint32_t page = pages_next(pages, 0), end; page < FF_BLOCK_PAGES; page = pages_next(pages, end)) {
    end = run_end(pages, page);
    if (page != nearest) propose_run(view, block, page, end);
  }
}

uint64_t pages_next_absent(const ff_view *view, uint64_t address) {
  for (;;) {
    ff_block block;
    view->block(view, address, &block);
    ff_pages absent = pages_absent(&block);
    uint32_t page = pages_next(&absent, pages_index(address));
    if (page < FF_BLOCK_PAGES) return pages_block_of(address) + page * FF_PAGE_BYTES;
    uint64_t next = pages_block_of(address) + FF_BLOCK_BYTES;
    ff_allocation allocation;
    if (next < address) return FF_NEVER; /* the end of all addresses */
    if (!view->allocation(view, next, &allocation)) {
      if (!view->next_allocation(view, next, &allocation) || allocation.address < next) return FF_NEVER;
      next = allocation.address & ~(FF_PAGE_BYTES - 1);
    }
    address = next;
  }
}

uint64_t pages_allocation_end(const ff_allocation *a) {
  uint64_t last = a->bytes ? a->address + (a->bytes - 1) : a->address;
  if (last < a->address) last = UINT64_MAX;
  last &= ~(FF_PAGE_BYTES - 1);
  return last + FF_PAGE_BYTES > last ? last + FF_PAGE_BYTES : last; /* without the topmost page of all */
}

bool pages_piece_at(const ff_view *view, uint64_t address, pages_piece *piece) {
  ff_allocation a;
  if (!view->allocation(view, address, &a)) return false;
  uint64_t block = pages_block_of(address), end = pages_allocation_end(&a);
  *piece = (pages_piece){.allocation = a, .block = block, .first = 0, .end = FF_BLOCK_PAGES};
  if (a.address > block) piece->first = pages_index(a.address);
  if (end - block < FF_BLOCK_BYTES) piece->end = (uint32_t)((end - block) / FF_PAGE_BYTES);
  return piece->first < piece->end;
}

bool pages_piece_of_page(const ff_view *view, uint64_t block, uint32_t page, pages_piece *piece) {
  uint64_t address = block + page * FF_PAGE_BYTES;
  if (pages_piece_at(view, address, piece)) return true;
  ff_allocation next;
  return view->next_allocation(view, address, &next) && next.address >= address &&
         next.address - address < FF_PAGE_BYTES && pages_piece_at(view, next.address, piece);
}

void pages_add_faulted(const ff_view *view, uint64_t block, const ff_fault *faults, size_t count, ff_pages *pages) {
  uint32_t unit = view->unit_bytes > FF_PAGE_BYTES ? (uint32_t)(view->unit_bytes / FF_PAGE_BYTES) : 1;
  for (size_t i = 0; i < count; i++) {
    pages_piece piece;
    if (pages_block_of(faults[i].address) != block || !pages_piece_at(view, faults[i].address, &piece)) continue;
    uint32_t first = pages_index(faults[i].address) / unit * unit, end = first + unit;
    pages_add(pages, first > piece.first ? first : piece.first, end < piece.end ? end : piece.end);
  }
}

uint64_t pages_unit_bytes(const char *argument, uint64_t otherwise, const char **problem) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } units[] = {{"4K", FF_PAGE_BYTES}, {"64K", FF_GROUP_BYTES}, {"2M", FF_BLOCK_BYTES}};
  if (!argument) return otherwise;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (!strcmp(argument, units[i].name)) return units[i].bytes;
  *problem = "the unit of eviction is 4K, 64K or 2M";
  return 0;
}
