/* SPDX-License-Identifier: Apache-2.0 */
/* random: Zheng et al., HPCA 2016. While the link is idle, random absent 4 KiB pages of the allocation that faulted
 * last; every absent page with equal chances.
 *
 * For each allocation that has faulted: a list of its blocks in which something may be absent. A draw is a block of the
 * list and a page of it, drawn again while the page is there (so a fuller block is drawn in vain more often, which
 * keeps chances equal); a block that turns out to be full leaves the list and comes back when a page of it leaves. */
#include <stdlib.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

enum { DRAWS = 256 };

typedef struct pool { /* of one allocation */
  uint64_t address, bytes;
  uint32_t number;
  FF_VEC(uint32_t) blocks; /* counted from the allocation's first; those in which something may be absent */
  bool *listed;
} pool;

typedef struct randomly {
  FF_VEC(pool) pools;
  size_t current; /* the pool of the last fault */
} randomly;

static void *create(const char *argument, const char **problem) {
  if (!argument) return ff_alloc(sizeof(randomly));
  *problem = "random takes no argument";
  return NULL;
}

static void destroy(void *state) {
  randomly *r = state;
  for (size_t i = 0; i < r->pools.count; i++) {
    free(r->pools.items[i].blocks.items);
    free(r->pools.items[i].listed);
  }
  free(r->pools.items);
  free(r);
}

static uint64_t block_address(const pool *p, uint32_t block) {
  return pages_block_of(p->address) + block * FF_BLOCK_BYTES;
}

static void pool_fill(pool *p, const ff_allocation *a) {
  free(p->blocks.items);
  free(p->listed);
  uint32_t count = (uint32_t)((pages_allocation_end(a) - 1 - pages_block_of(a->address)) / FF_BLOCK_BYTES) + 1;
  *p = (pool){
      .address = a->address, .bytes = a->bytes, .number = a->number, .listed = ff_alloc(count * sizeof *p->listed)};
  for (uint32_t i = 0; i < count; i++) {
    FF_PUSH(&p->blocks, i);
    p->listed[i] = true;
  }
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  randomly *r = state;
  ff_allocation a;
  if (!count || !view->allocation(view, faults[count - 1].address, &a)) return;
  size_t i = r->current < r->pools.count && r->pools.items[r->current].address == a.address ? r->current : 0;
  while (i < r->pools.count && r->pools.items[i].address != a.address) i++;
  if (i == r->pools.count) FF_PUSH(&r->pools, (pool){0});
  pool *p = &r->pools.items[i];
  if (p->bytes != a.bytes || p->number != a.number || !p->listed) pool_fill(p, &a);
  r->current = i;
}

/* The absent pages of one of the pool's blocks. */
static ff_pages absent_of(const pool *p, const ff_view *view, uint32_t index) {
  ff_block block;
  pages_piece piece;
  uint64_t address = block_address(p, index);
  if (!pages_piece_at(view, index ? address : p->address, &piece)) return (ff_pages){0};
  view->block(view, address, &block);
  ff_pages absent = pages_absent(&block), own = pages_between(piece.first, piece.end);
  return pages_and(&absent, &own);
}

static void idle(void *state, ff_view *view) {
  randomly *r = state;
  if (!r->pools.count || view->free_bytes(view) < FF_PAGE_BYTES) return;
  pool *p = &r->pools.items[r->current];
  for (uint32_t draw = 1; p->blocks.count; draw++) {
    uint64_t number = view->random(view);
    size_t at = number / FF_BLOCK_PAGES % p->blocks.count;
    uint32_t block = p->blocks.items[at], page = number % FF_BLOCK_PAGES;
    ff_pages absent = absent_of(p, view, block);
    if (!pages_count(&absent, 0, FF_BLOCK_PAGES)) {
      p->listed[block] = false;
      p->blocks.items[at] = p->blocks.items[--p->blocks.count];
      continue;
    }
    if (draw >= DRAWS) { /* enough in vain: the next absent one, around the block's end */
      page = pages_next(&absent, page);
      if (page == FF_BLOCK_PAGES) page = pages_next(&absent, 0);
    }
    if (!pages_has(&absent, page)) continue;
    view->propose(view, block_address(p, block) + page * FF_PAGE_BYTES, FF_PAGE_BYTES);
    return;
  }
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  randomly *r = state;
  for (size_t i = 0; i < r->pools.count; i++) {
    pool *p = &r->pools.items[i];
    ff_allocation a = {.address = p->address, .bytes = p->bytes};
    if (address < pages_block_of(p->address) || address >= pages_allocation_end(&a)) continue;
    uint32_t block = (uint32_t)((address - pages_block_of(p->address)) / FF_BLOCK_BYTES);
    if (p->listed[block]) continue;
    p->listed[block] = true;
    FF_PUSH(&p->blocks, block);
  }
}

const ff_policy policy_prefetch_random = {
    .version = FF_POLICY_VERSION,
    .name = "random",
    .summary = "Zheng: while the link is idle, random pages of the allocation that faulted last",
    .create = create,
    .destroy = destroy,
    .faulted = faulted,
    .idle = idle,
    .left = left,
};
