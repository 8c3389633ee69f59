/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory that other devices of the program use, too: what a pager tells the owner map (owners.h), what it asks
 * it, and what it does when the map has changed.
 *
 * To a pager "the CPU's copy" (cpu_newest) is the copy elsewhere: the host's, or that of the device that the map
 * names. A page that has come from another device, which gave it up, is newer than the host's copy, whatever that was:
 * it is written back when it goes.
 *
 *     RESIDENT --another device TAKES it--> away        RESIDENT --another device COPIES it--> RESIDENT, duplicate
 *     RESIDENT --another device WRITES it--> RESIDENT, newer than the host's copy
 *
 * What hints map where it is (REMOTE) is mapped also in another device's memory, if that is a peer; else the unit is
 * ABSENT while that device has it, and a far-fault brings it.
 *
 * After every meeting, for units that are not on their way: a unit that is resident is in this device's set (asserted
 * at the deep check level). */
#include "paging/pager.h"

static bool is_shared(const pager *p, const pager_unit *unit) {
  return p->config.owners && p->config.manager->placement == MANAGER_PAGED && unit->allocation &&
         p->allocations.items[unit->allocation].kind == TRACE_MEMORY_MANAGED;
}

/* The unit's first byte: what the map knows it by. */
static uint64_t key_of(const pager *p, const pager_unit *unit, uint64_t address) {
  uint64_t window = address & ~(p->config.unit_bytes - 1), begin = p->allocations.items[unit->allocation].address;
  return begin > window ? begin : window;
}

static owners_set own_bit(const pager *p) { return (owners_set)(1u << p->config.device); }

uint8_t pager_source(pager *p, const pager_unit *unit, uint64_t address) {
  if (!is_shared(p, unit)) return 0;
  owners_set others = owners_of(p->config.owners, key_of(p, unit, address)) & (owners_set)~own_bit(p);
  return others ? (uint8_t)(1 + __builtin_ctz(others)) : 0;
}

pager_place pager_remote_place(pager *p, const pager_unit *unit, uint64_t address) {
  const pager_allocation *a = &p->allocations.items[unit->allocation];
  pager_place place = {.device = -1, .team = a->team};
  if (!p->config.owners) return place;
  if (a->kind == TRACE_MEMORY_PINNED) place.device = (int)a->device - 1;
  else if (is_shared(p, unit)) place.device = (int)pager_source(p, unit, address) - 1;
  return place;
}

void pager_note(pager *p, const pager_unit *unit, uint64_t address, owners_kind kind, uint8_t source) {
  if (!is_shared(p, unit)) return;
  owners_note(p->config.owners, p->config.device,
              (owners_event){.address = key_of(p, unit, address),
                             .time = p->now,
                             .bytes = pager_bytes(p, unit),
                             .from = source ? source - 1 : OWNERS_HOST,
                             .kind = (uint8_t)kind});
}

void pager_wrote_far(pager *p, pager_unit *unit, uint64_t address) {
  if (unit->wrote_far || !is_shared(p, unit) || !pager_source(p, unit, address)) return;
  unit->wrote_far = true;
  pager_note(p, unit, address, OWNERS_WRITES, 0);
}

void pager_came_from_device(pager *p, pager_unit *unit, uint64_t address) {
  FF_CHECK(is_shared(p, unit));
  pager_written(unit, PAGER_GPU);
  pager_tier_old(p, unit, address);
  unit->populated = true;
}

bool pager_speaks_for(const pager *p, const pager_unit *unit, uint64_t address) {
  if (!is_shared(p, unit)) return true;
  owners_set holders = owners_of(p->config.owners, key_of(p, unit, address));
  return holders ? (uint32_t)__builtin_ctz(holders) == p->config.device : !p->for_other;
}

uint64_t pager_from_device(pager *p, uint32_t device) {
  uint64_t bytes = p->from_devices[device];
  p->from_devices[device] = 0;
  return bytes;
}

/* A unit that is not here is mapped, or not, as its hints and the way to where it is say. */
static void map_again(pager *p, pager_unit *unit, uint64_t address, owners_set set) {
  owners_set others = set & (owners_set)~own_bit(p);
  if (!others || others & p->config.peers) {
    pager_remap(p, unit, address);
  } else if (unit->state == PAGER_REMOTE) {
    p->config.hooks.left(p->config.hooks.context, address, unit);
    unit->state = PAGER_ABSENT;
    pager_remark(p, address);
  }
}

static void written_by_other(pager *p, pager_unit *unit, uint64_t address) {
  if (unit->state != PAGER_RESIDENT || !unit->cpu_newest) return;
  pager_written(unit, PAGER_GPU);
  pager_tier_old(p, unit, address);
  unit->cleaned = false;
  pager_remark(p, address);
}

/* What another device has noted of the unit. */
static void changed(pager *p, pager_unit *unit, const owners_event *event) {
  owners_set set = owners_of(p->config.owners, event->address);
  bool carried = event->from == (int32_t)p->config.device, here = set & own_bit(p);
  if (event->kind != OWNERS_GIVES) unit->populated = true; /* it need not be zeros any more */
  if (event->kind == OWNERS_WRITES) {
    written_by_other(p, unit, event->address);
    return;
  }
  unit->wrote_far = false;
  if (unit->state != PAGER_RESIDENT) {
    map_again(p, unit, event->address, set);
    return;
  }
  if (here) {
    if (event->kind != OWNERS_COPIES || unit->duplicate || set == own_bit(p)) return;
    unit->duplicate = true;
    pager_remark(p, event->address);
    return;
  }
  unit->cpu_newest = true;
  pager_unit_leaves(p, unit, event->address);
  *(carried ? &p->moved_out : &p->dropped) += pager_bytes(p, unit);
  map_again(p, unit, event->address, set);
}

void pager_owners_changed(pager *p) {
  size_t count;
  const owners_event *events = owners_events(p->config.owners, &count);
  if (p->config.manager->placement != MANAGER_PAGED) return;
  for (size_t i = 0; i < count; i++) {
    pager_unit *unit = pager_find(p, events[i].address);
    if (events[i].from == (int32_t)p->config.device) /* what was freed since counts, too */
      p->config.hooks.moved(p->config.hooks.context,
                            is_shared(p, unit) ? p->allocations.items[unit->allocation].owner : 0, false,
                            events[i].bytes);
    if (is_shared(p, unit) && events[i].device != p->config.device) changed(p, unit, &events[i]);
  }
  for (size_t i = 0; p->config.tiers && i < count; i++) {
    const pager_unit *unit = pager_find(p, events[i].address);
    if (is_shared(p, unit) && !pager_source(p, unit, events[i].address)) pager_tier_agree(p, unit, events[i].address);
  }
  p->met = true;
  for (size_t i = 0; ff_check_level >= 2 && i < count; i++) {
    const pager_unit *unit = pager_find(p, events[i].address);
    FF_ASSERT(!is_shared(p, unit) || unit->state != PAGER_RESIDENT ||
              owners_of(p->config.owners, events[i].address) & own_bit(p));
  }
  pager_check(p);
}
