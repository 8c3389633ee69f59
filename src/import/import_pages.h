/* SPDX-License-Identifier: Apache-2.0 */
/* From what a program copied to and touched to allocations, which an Accel-Sim trace does not have.
 *
 *   a copy to or from the device is an allocation from its first to its last byte, widened to whole pages of 4 KiB
 *                                where nothing else is; copies that overlap are one
 *   pages touched elsewhere      are one allocation as long as no whole block of 2 MiB between two of them is untouched, and no copied
 *                                allocation lies between
 *
 * What always holds: allocations do not overlap, are sorted by address, and every page that was touched lies in one. */
#ifndef FF_IMPORT_PAGES_H
#define FF_IMPORT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct page_map page_map;

page_map *page_map_create(void);
void page_map_free(page_map *map);
/* false: more than PAGE_BLOCKS_MAX blocks of 2 MiB are touched. */
#define PAGE_BLOCKS_MAX (UINT64_C(1) << 20)
bool page_map_touch(page_map *map, uint64_t address);
void page_map_copy(page_map *map, uint64_t address, uint64_t bytes); /* not empty, below 2^56 */

typedef struct page_allocation {
  uint64_t address, bytes;
  uint64_t copy;    /* the number, from 1, of the first copy to it; 0: none */
  uint64_t used_by; /* for the caller */
} page_allocation;
typedef FF_VEC(page_allocation) page_allocations;

void page_map_allocations(page_map *map, page_allocations *out); /* appends */
/* The one that the address is in; NULL: none. */
page_allocation *page_allocation_at(const page_allocations *all, uint64_t address);

#endif
