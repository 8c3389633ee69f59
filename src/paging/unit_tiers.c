/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the tiers below GPU memory when the pager moves units (tiers.h). Each function does nothing where the
 * machine has no tiers.
 *
 * Where several devices use managed memory, a unit that one of them holds alone has no place, whatever the others'
 * pagers say: their "CPU's copy" is that device's (other_devices.c). What the host does to a unit all pagers are told,
 * and one of them tells the tiers (pager_speaks_for). */
#include "paging/pager.h"

/* Its first byte: that of its window, or of its allocation if that begins there; and whose it is. */
static uint64_t first_byte(const pager *p, const pager_unit *unit, uint64_t address) {
  uint64_t window = address & ~(p->config.unit_bytes - 1), begin = p->allocations.items[unit->allocation].address;
  return p->config.tier_space | (begin > window ? begin : window);
}

static bool has_tiers(const pager *p, const pager_unit *unit) {
  trace_memory_kind kind = p->allocations.items[unit->allocation].kind;
  return p->config.tiers && unit->allocation && (kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_MANAGED);
}

/* What the host does comes behind the device's last event. */
static uint64_t now_of(const pager *p) { return p->now > p->touched_at ? p->now : p->touched_at; }

void pager_tier_arrive(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_arrive(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), now_of(p));
}

void pager_tier_put(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_put(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), now_of(p));
}

void pager_tier_host(pager *p, const pager_unit *unit, bool write, uint64_t address) {
  if (!has_tiers(p, unit) || !pager_speaks_for(p, unit, address)) return;
  uint64_t first = first_byte(p, unit, address);
  if (!tiers_raise(p->config.tiers, first, now_of(p)) && write)
    tiers_put(p->config.tiers, first, pager_bytes(p, unit), now_of(p));
}

void pager_tier_gpu(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit) && !pager_source(p, unit, address))
    tiers_read(p->config.tiers, first_byte(p, unit, address), pager_bytes(p, unit), now_of(p));
}

void pager_tier_flight(pager *p, uint32_t flight, uint64_t address, uint64_t bytes) {
  if (!p->config.tiers) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (pager_flies(unit, flight) && unit->flight_kind < PAGER_FLIGHT_ZEROED) pager_tier_gpu(p, unit, w.address);
}

void pager_tier_old(pager *p, const pager_unit *unit, uint64_t address) {
  if (has_tiers(p, unit)) tiers_drop(p->config.tiers, first_byte(p, unit, address), now_of(p));
}

tier_place *pager_tier_place(pager *p, const pager_unit *unit, uint64_t address) {
  bool there = has_tiers(p, unit) && !pager_source(p, unit, address);
  return there ? tiers_find(p->config.tiers, first_byte(p, unit, address)) : NULL;
}

void pager_tier_host_range(pager *p, uint64_t address, uint64_t bytes) {
  if (!p->config.tiers) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (unit->cpu_newest) pager_tier_host(p, unit, false, w.address);
}

void pager_tier_agree(pager *p, const pager_unit *unit, uint64_t address) {
  if (!has_tiers(p, unit) || unit->state == PAGER_IN_FLIGHT) return;
  bool placed = tiers_find(p->config.tiers, first_byte(p, unit, address)) != NULL;
  if (unit->cpu_newest && unit->written && !placed) pager_tier_put(p, unit, address);
  if (!unit->cpu_newest && placed) pager_tier_old(p, unit, address);
}

/* A place is a newest copy's, and a newest copy that was ever written has one. What other devices and the host have
 * done with managed memory since the devices last met is not known here. */
void pager_tier_check(pager *p, const pager_unit *unit, uint64_t window) {
  if (!has_tiers(p, unit) || (p->config.owners && !p->met) || pager_source(p, unit, window)) return;
  bool placed = tiers_find(p->config.tiers, first_byte(p, unit, window)) != NULL;
  FF_ASSERT(unit->cpu_newest ? placed || !unit->written : !placed);
}
