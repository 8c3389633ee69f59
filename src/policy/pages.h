/* SPDX-License-Identifier: Apache-2.0 */
/* What the policies share: sets of pages within a block, and the part of an allocation that lies in a block.
 *
 * Pages of a block are numbered 0 to 511, ranges are [first, end). No state: what is where is asked of the
 * view each time. An allocation may begin or end inside a page; that page is the allocation's. */
#ifndef FF_POLICY_PAGES_H
#define FF_POLICY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "farfault/policy.h"

#define FF_GROUP_PAGES 16u

static inline uint64_t pages_block_of(uint64_t address) { return address & ~(FF_BLOCK_BYTES - 1); }
static inline uint32_t pages_index(uint64_t address) { return (uint32_t)(address % FF_BLOCK_BYTES / FF_PAGE_BYTES); }

static inline bool pages_has(const ff_pages *pages, uint32_t page) { return pages->word[page / 64] >> page % 64 & 1; }
void pages_add(ff_pages *pages, uint32_t first, uint32_t end);
uint32_t pages_count(const ff_pages *pages, uint32_t first, uint32_t end);
/* The first page of the set at `from` or above; FF_BLOCK_PAGES: there is none. */
uint32_t pages_next(const ff_pages *pages, uint32_t from);

ff_pages pages_and(const ff_pages *a, const ff_pages *b);
ff_pages pages_or(const ff_pages *a, const ff_pages *b);
ff_pages pages_without(const ff_pages *a, const ff_pages *b);
ff_pages pages_between(uint32_t first, uint32_t end);
/* Page i becomes page i + by, or i - by; what would leave the block is dropped. by < FF_BLOCK_PAGES. */
ff_pages pages_up(const ff_pages *pages, uint32_t by);
ff_pages pages_down(const ff_pages *pages, uint32_t by);

/* Of a block: what can be evicted, and what could be brought. */
ff_pages pages_evictable(const ff_block *block);
ff_pages pages_absent(const ff_block *block);

/* Proposes the set, one range per run of neighbours: first the run that holds `near` or begins right behind it, then
 * the others from low to high. */
void pages_propose(ff_view *view, uint64_t block, const ff_pages *pages, uint32_t near);

/* The lowest page of any allocation, at `address` or above, that is not in GPU memory; FF_NEVER: there is none. */
uint64_t pages_next_absent(const ff_view *view, uint64_t address);

/* The part of one allocation that lies in one block. */
typedef struct pages_piece {
  ff_allocation allocation;
  uint64_t block;
  uint32_t first, end; /* its pages */
} pages_piece;
/* The piece around the address; false: it belongs to no allocation. */
bool pages_piece_at(const ff_view *view, uint64_t address, pages_piece *piece);
/* The piece around a page of the block: of the allocation that holds its first byte, else of the first that begins in
 * it. */
bool pages_piece_of_page(const ff_view *view, uint64_t block, uint32_t page, pages_piece *piece);
/* One past the allocation's last page, as an address. */
uint64_t pages_allocation_end(const ff_allocation *allocation);

/* Adds the pages that these faults move by themselves (their units, cut to their allocations), of those in the
 * block. */
void pages_add_faulted(const ff_view *view, uint64_t block, const ff_fault *faults, size_t count, ff_pages *pages);

/* Reads "4K", "64K" or "2M" (NULL: `otherwise`); 0 with *problem set: it is none of them. */
uint64_t pages_unit_bytes(const char *argument, uint64_t otherwise, const char **problem);

#endif
