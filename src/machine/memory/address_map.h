/* SPDX-License-Identifier: Apache-2.0 */
/* Which physical address a virtual one has. A machine without address_map has none: the virtual one (with the tenant in
 * it) stands for it. */
#ifndef FF_MACHINE_MEMORY_ADDRESS_MAP_H
#define FF_MACHINE_MEMORY_ADDRESS_MAP_H

#include "base/memory.h"
#include "machine/time.h"
#include "partition/frames.h"
#include "partition/hash.h"

typedef struct placed_block placed_block;
/* an allocation in one piece of physical memory */
typedef struct placed_run {
  uint64_t address, bytes, physical;
} placed_run;
typedef struct placing {
  const address_hash *hash; /* NULL: there is no map */
  frames *frames;
  uint64_t space, colours; /* the tenant, in the upper bits of its addresses; of the frames that it may have */
  bool in_pieces;          /* an allocation gets one piece of memory, if that is to be had */
  struct memory *memory;   /* whose lines go with the frames that are given back */
  struct gmmu *gmmu;
  struct lent *lent; /* what of it lies in memory of others */
  /* virtual blocks of 2 MiB, by hash */
  placed_block **blocks, *last; /* last: that was asked for */
  uint32_t capacity, count;
  FF_VEC(placed_run) runs;
} placing;

uint64_t address_map_find(placing *p, uint64_t address);
/* false: it has none yet; nothing is placed */
bool address_map_peek(const placing *p, uint64_t address, uint64_t *physical);
/* comes to stay: in one piece if that can be had */
void address_map_allocated(placing *p, uint64_t address, uint64_t bytes);
void address_map_give(placing *p, uint64_t address, uint64_t bytes); /* all frames that lie wholly in it */
void address_map_free(placing *p);
void address_map_check(const placing *p); /* asserts; walks all */
/* the page lies there from now on; the caller keeps account of the frames */
void address_map_move(placing *p, uint64_t address, uint64_t physical);
typedef void address_map_visit(void *context, uint64_t address);
/* all pages of data that have a frame, in the same order each time */
void address_map_pages(placing *p, address_map_visit *visit, void *context);
static inline uint64_t physical_address(placing *p, uint64_t address) {
  return __builtin_expect(p->hash != NULL, 0) ? address_map_find(p, address) : address | p->space;
}

#endif
