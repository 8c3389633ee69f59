/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the tiers below GPU memory when the pager moves units (tiers.h). Each function does nothing where the
 * machine has no tiers. */
#include "paging/pager.h"

/* Its first byte: that of its window, or of its allocation if that begins there. */
static uint64_t first_byte(const pager *p, const pager_unit *unit, uint64_t address) {
  uint64_t window = address & ~(p->config.unit_bytes - 1), begin = p->allocations.items[unit->allocation].address;
  return begin > window ? begin : window;
}

static bool has_tiers(const pager *p, const pager_unit *unit) {
  trace_memory_kind kind = p->allocations.items[unit->allocation].kind;
  return p->config.tiers && unit->allocation && (kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_MANAGED);
}

void pager_tier_arrive(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_arrive(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), p->now);
}

void pager_tier_put(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_put(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), p->now);
}

void pager_tier_host(pager *p, const pager_unit *unit, bool write, uint64_t address) {
  if (!has_tiers(p, unit)) return;
  uint64_t first = first_byte(p, unit, address);
  if (!tiers_raise(p->config.tiers, first, p->now) && write)
    tiers_put(p->config.tiers, first, pager_bytes(p, unit), p->now);
}

void pager_tier_gpu(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_read(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), p->now);
}

void pager_tier_flight(pager *p, uint32_t flight, uint64_t address, uint64_t bytes) {
  if (!p->config.tiers) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (pager_flies(unit, flight) && unit->flight_kind < PAGER_FLIGHT_ZEROED) pager_tier_gpu(p, unit, w.address);
}

void pager_tier_old(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_drop(p->config.tiers, first_byte(p, unit, address), p->now);
}

tier_place *pager_tier_place(pager *p, const pager_unit *unit, uint64_t address) {
  return has_tiers(p, unit) ? tiers_find(p->config.tiers, first_byte(p, unit, address)) : NULL;
}

void pager_tier_host_range(pager *p, uint64_t address, uint64_t bytes) {
  if (!p->config.tiers) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (unit->cpu_newest) pager_tier_host(p, unit, false, w.address);
}

/* A place is a newest copy's, and a newest copy that was ever written has one. */
void pager_tier_check(pager *p, const pager_unit *unit, uint64_t window) {
  if (!has_tiers(p, unit)) return;
  bool placed = tiers_find(p->config.tiers, first_byte(p, unit, window)) != NULL;
  FF_ASSERT(unit->cpu_newest ? placed || !unit->written : !placed);
}
