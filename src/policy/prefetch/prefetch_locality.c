/* SPDX-License-Identifier: Apache-2.0 */
/* locality: the locality-aware prefetcher of Zheng et al., HPCA 2016: 128 consecutive 4 KiB pages (512 KiB) that begin
 * at the faulting page, cut at the allocation's end, page by page while the link is idle. Regions wait in the order of
 * their faults; a fault within a region that waits or is being brought makes none of its own.
 *
 * When a region is exhausted the next in the queue follows; when the queue is empty, the 512 KiB behind the last
 * region, up to the allocation's end. */
#include <stdlib.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

enum { REGION_PAGES = 128, REGIONS = 256 };
#define REGION_BYTES (REGION_PAGES * FF_PAGE_BYTES)

typedef struct region {
  uint64_t begin, next, end;
} region; /* `next`: the page to go on from */

typedef struct locality {
  region queue[REGIONS]; /* a ring; the first is being brought */
  uint32_t first, count; /* when it is full, a new fault's region takes the place of the one that waits longest */
  uint64_t behind;       /* end of the region that was exhausted last; 0: none yet */
} locality;

static void *create(const char *argument, const char **problem) {
  if (!argument) return ff_alloc(sizeof(locality));
  *problem = "locality takes no argument";
  return NULL;
}

static void destroy(void *state) { free(state); }

static bool waits(const locality *l, uint64_t page) {
  for (uint32_t i = 0; i < l->count; i++) {
    const region *r = &l->queue[(l->first + i) % REGIONS];
    if (page >= r->begin && page < r->end) return true;
  }
  return false;
}

/* Appends the region that begins at the page, as far as the allocation around `address` goes. */
static bool append(locality *l, const ff_view *view, uint64_t address) {
  ff_allocation a;
  if (!view->allocation(view, address, &a)) return false;
  uint64_t page = address & ~(FF_PAGE_BYTES - 1), end = pages_allocation_end(&a);
  if (end - page > REGION_BYTES) end = page + REGION_BYTES;
  if (l->count == REGIONS) {
    l->first = (l->first + 1) % REGIONS;
    l->count--;
  }
  l->queue[(l->first + l->count++) % REGIONS] = (region){page, page, end};
  return true;
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!waits(state, faults[i].address & ~(FF_PAGE_BYTES - 1))) append(state, view, faults[i].address);
}

/* The first page of the region that is absent; its end: there is none. */
static uint64_t next_of(const ff_view *view, const region *r) {
  uint64_t page = r->next < r->end ? pages_next_absent(view, r->next) : r->end;
  return page < r->end ? page : r->end;
}

static void idle(void *state, ff_view *view) {
  locality *l = state;
  if (view->free_bytes(view) < FF_PAGE_BYTES) return;
  while (l->count || (l->behind && append(l, view, l->behind))) {
    region *r = &l->queue[l->first];
    r->next = next_of(view, r);
    if (r->next < r->end) {
      view->propose(view, r->next, FF_PAGE_BYTES);
      r->next += FF_PAGE_BYTES;
      return;
    }
    ff_allocation of_region, of_end;
    l->behind = r->end;
    bool goes_on = view->allocation(view, r->end - FF_PAGE_BYTES, &of_region) &&
                   view->allocation(view, r->end, &of_end) && of_region.address == of_end.address;
    if (!goes_on) l->behind = 0;
    l->first = (l->first + 1) % REGIONS;
    l->count--;
  }
}

const ff_policy policy_prefetch_locality = {
    .version = FF_POLICY_VERSION,
    .name = "locality",
    .summary = "Zheng: while the link is idle, the 128 pages from the faulting one on, then the next 128",
    .create = create,
    .destroy = destroy,
    .faulted = faulted,
    .idle = idle,
};
