/* SPDX-License-Identifier: Apache-2.0 */
/* Access counters, as GPUs since Volta have them: how often the GPU has accessed each granule of memory that is the
 * CPU's and that it has mapped. When a count comes to the threshold, what of the granule may come is brought, as by a
 * far-fault, even if other pages must go, and the count begins again (NVIDIA's open driver, release 595.45.04,
 * uvm_gpu_access_counters.c: 256 accesses, 2 MiB).
 *
 * An access here is one line of one warp's access. The hardware notes which parts of 64 KiB of a granule were accessed,
 * and the driver leaves the others where they are; here the granule comes whole. While a batch of far-faults is served
 * nothing is brought: the next access behind it tries again. */
#include "paging/pager.h"

static uint64_t granule_of(const pager *p, uint64_t address) { return address & ~(p->config.counters.granule - 1); }

/* A chunk has a count for each of its groups; a larger granule has that of its first one. */
static uint32_t *count_of(pager *p, uint64_t address) {
  uint64_t granule = granule_of(p, address);
  return &pager_chunk_at(p, granule)->accesses[granule % FF_BLOCK_BYTES / FF_GROUP_BYTES];
}

bool pager_counted(const pager_unit *unit) {
  if (pager_may_come(unit)) return true;
  return unit->state == PAGER_REMOTE && unit->hints & PAGER_ACCESSED_BY_GPU &&
         !(unit->hints & (PAGER_PINNED | PAGER_PREFERS_CPU));
}

bool pager_count_access(pager *p, const pager_unit *unit, uint64_t address) {
  if (!pager_counted(unit)) return false;
  uint32_t *count = count_of(p, address);
  if (*count < p->config.counters.threshold) ++*count;
  return *count == p->config.counters.threshold && !p->serving;
}

void pager_count_reached(pager *p, const fault_request *request, uint64_t address) {
  *count_of(p, address) = 0;
  p->to_bring.count = 0;
  FF_PUSH(&p->to_bring, ((pager_range){granule_of(p, address), p->config.counters.granule}));
  p->counting = true;
  pager_bring(p, request, true);
  p->counting = false;
  pager_keep_free(p, request);
}
