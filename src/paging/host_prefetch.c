/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to the host with a page that the program's own load or store has faulted on: NVIDIA's driver prefetches at
 * faults of the CPU as it does at those of the GPU. The prefetcher proposes (host_faulted), and of that goes what is in
 * GPU memory and can go: no page that is on its way or waits for the access that it came for, and none that
 * thrashes. What was never written comes to be the host's as zeros, under a manager that keeps no account of writes. */
#include "paging/pager.h"
#include "policy/pages.h"

bool pager_host_prefetches(const pager *p) {
  return p->config.prefetch && p->config.prefetch->host_faulted && !p->config.ranges;
}

/* The pages of the block that the host has: not those that hold nothing. */
static ff_pages host_pages(pager *p, uint64_t block) {
  ff_pages there = {0};
  pager_walk w = pager_walk_begin(p, block, FF_BLOCK_BYTES);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
    if ((unit->state == PAGER_RESIDENT && !unit->duplicate) || unit->state == PAGER_IN_FLIGHT) continue;
    if (pager_blank(p, unit)) continue;
    pages_add(&there, pages_index(w.first), pages_index(w.last - 1) + 1);
  }
  return there;
}

void pager_host_ask(pager *p, uint64_t address) {
  ff_pages there = host_pages(p, address & ~(FF_BLOCK_BYTES - 1));
  p->view.now = p->now;
  p->to_evict.count = 0;
  p->proposals = &p->to_evict;
  p->config.prefetch->host_faulted(p->config.prefetch_state, &p->view, address, &there);
  p->proposals = NULL;
}

static bool can_go(pager *p, const pager_unit *unit, uint64_t address, uint64_t now) {
  return unit->state == PAGER_RESIDENT && !unit->fresh && !unit->duplicate &&
         p->allocations.items[unit->allocation].kind == TRACE_MEMORY_MANAGED &&
         pager_cleaning(p, address, pager_bytes(p, unit)) <= now &&
         !pager_thrashes(p, pager_chunk_at(p, address), address);
}

void pager_host_prefetch(pager *p, uint64_t now, pager_moves *moves) {
  for (size_t i = 0; i < p->to_evict.count; i++) {
    pager_walk w = pager_walk_begin(p, p->to_evict.items[i].address, p->to_evict.items[i].bytes);
    for (pager_unit *unit; (unit = pager_walk_next(&w));) {
      if (can_go(p, unit, w.address, now))
        pager_host_takes(p, unit, unit->hints & PAGER_READ_MOSTLY, w.address, now, moves);
      else if (unit->state == PAGER_ABSENT && pager_blank(p, unit)) unit->populated = p->config.copy_clean;
    }
  }
}
