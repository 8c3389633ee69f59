/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says about managed memory (cudaMemAdvise, cudaMemPrefetchAsync), and what its own loads and stores
 * do to pages that lie in GPU memory. Only for managers that move pages (MANAGER_PAGED) and for managed allocations.
 *
 * CUDA C++ Programming Guide, "Unified Memory Programming", "Data Usage Hints", and CUDA Runtime API, cudaMemAdvise,
 * for a GPU behind PCIe: the CPU cannot map GPU memory, the GPU can map the CPU's.
 *
 *   hint on a page      the GPU asks for it, it is the CPU's            the CPU asks for it, it is in GPU memory
 *   none                moves to the GPU                                moves to the CPU
 *   read mostly         a read copies it: both have it (`duplicate`);   a read copies it; a write takes it, the GPU's copy is
 *                       a write takes it (so does one to a duplicate)   no longer valid
 *   preferred: CPU      one fault, then mapped: stays (REMOTE)          moves to the CPU
 *   preferred: GPU      moves to the GPU                                moves to the CPU, and back at the GPU's next access
 *   accessed by GPU     mapped always, no fault (REMOTE)                moves to the CPU, and is mapped there
 *
 * "Read mostly" overrides the others, "preferred: GPU" overrides "accessed by". A prefetch moves (or copies) whatever
 * the other hints say. A unit larger than a page has the hints of every range that it overlaps. */
#include "paging/pager.h"

static bool hinted(const pager *p, const pager_unit *unit) {
  return p->config.manager->placement == MANAGER_PAGED &&
         p->allocations.items[unit->allocation].kind == TRACE_MEMORY_MANAGED;
}

/* ---- what a unit's hints mean ---- */

pager_state pager_away(const pager_unit *unit) {
  bool mapped = unit->hints & PAGER_ACCESSED_BY_GPU && !(unit->hints & (PAGER_READ_MOSTLY | PAGER_PREFERS_GPU));
  mapped = mapped || unit->hints & (PAGER_PINNED | PAGER_REACHED);
  return mapped ? PAGER_REMOTE : PAGER_ABSENT;
}

bool pager_stays(const pager_unit *unit) {
  return unit->hints & (PAGER_PREFERS_CPU | PAGER_PINNED) && !(unit->hints & PAGER_READ_MOSTLY);
}

bool pager_may_come(const pager_unit *unit) {
  if (unit->state == PAGER_ABSENT) return true;
  return unit->state == PAGER_REMOTE && unit->hints & PAGER_REACHED &&
         !(unit->hints & (PAGER_PINNED | PAGER_PREFERS_CPU | PAGER_ACCESSED_BY_GPU));
}

pager_flight_kind pager_flight_kind_of(const pager *p, const pager_unit *unit, uint32_t warp) {
  bool writes = p->config.hooks.writes && p->config.hooks.writes(p->config.hooks.context, warp);
  if (unit->state == PAGER_RESIDENT) return PAGER_FLIGHT_WRITABLE;
  if (pager_stays(unit)) return PAGER_FLIGHT_MAPPED;
  if (p->config.zeroes && pager_blank(p, unit)) return PAGER_FLIGHT_ZEROED;
  return unit->hints & PAGER_READ_MOSTLY && !writes ? PAGER_FLIGHT_COPIED : PAGER_FLIGHT_MOVED;
}

/* ---- advice ---- */

/* A page that is the CPU's is mapped by the GPU, or not, as the new hints say. */
void pager_remap(pager *p, pager_unit *unit, uint64_t address) {
  if (unit->state != PAGER_ABSENT && unit->state != PAGER_REMOTE) return;
  if (unit->hints & PAGER_REACHED) pager_remark(p, address);
  pager_state wanted = pager_away(unit);
  if (unit->state == PAGER_REMOTE && pager_stays(unit)) return; /* was mapped by a fault */
  if (unit->state == wanted) return;
  if (unit->state == PAGER_REMOTE) p->config.hooks.left(p->config.hooks.context, address, unit);
  unit->state = wanted;
  pager_remark(p, address);
}

/* Of two copies one is left: in the preferred place, or else the CPU's. */
static void collapse(pager *p, pager_unit *unit, uint64_t address) {
  if (unit->state != PAGER_RESIDENT || !unit->duplicate) return;
  unit->duplicate = false;
  if (unit->hints & PAGER_PREFERS_GPU || !unit->cpu_newest) { /* the host's copy is old: another device
                                                                                 has copied it */
    pager_note(p, unit, address, OWNERS_TAKES, 0);
    return;
  }
  pager_unit_leaves(p, unit, address);
  p->dropped += pager_bytes(p, unit);
}

static uint8_t with_advice(uint8_t hints, trace_advice advice, bool gpu) {
  const uint8_t preferred = PAGER_PREFERS_CPU | PAGER_PREFERS_GPU;
  switch (advice) {
  case TRACE_ADVICE_SET_READ_MOSTLY: return hints | PAGER_READ_MOSTLY;
  case TRACE_ADVICE_UNSET_READ_MOSTLY: return hints & (uint8_t)~PAGER_READ_MOSTLY;
  case TRACE_ADVICE_SET_PREFERRED_LOCATION:
    return (hints & (uint8_t)~preferred) | (gpu ? PAGER_PREFERS_GPU : PAGER_PREFERS_CPU);
  case TRACE_ADVICE_UNSET_PREFERRED_LOCATION: return hints & (uint8_t)~preferred;
  case TRACE_ADVICE_SET_ACCESSED_BY:
    return gpu ? hints | PAGER_ACCESSED_BY_GPU : hints; /* the CPU cannot map GPU memory */
  case TRACE_ADVICE_UNSET_ACCESSED_BY: return gpu ? hints & (uint8_t)~PAGER_ACCESSED_BY_GPU : hints;
  }
  return hints;
}

static void advise_units(pager *p, uint64_t address, uint64_t bytes, trace_advice advice, bool gpu) {
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    unit->hints = with_advice(unit->hints, advice, gpu) & PAGER_HINTS;
    if (advice == TRACE_ADVICE_UNSET_READ_MOSTLY) collapse(p, unit, w.address);
    pager_remap(p, unit, w.address);
  }
}

void pager_advise(pager *p, uint64_t address, uint64_t bytes, trace_advice advice, int32_t device) {
  if (p->config.manager->placement != MANAGER_PAGED || !bytes) return;
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
  for (size_t i = pager_first_behind(p, address); i < p->by_address.count; i++) {
    pager_allocation *a = &p->allocations.items[p->by_address.items[i]];
    if (a->address >= end) break;
    if (a->kind != TRACE_MEMORY_MANAGED) continue;
    /* then units that were not touched need not be made */
    bool whole = a->address >= address && a->address + a->bytes <= end;
    if (whole) a->hints = with_advice(a->hints, advice, device >= 0);
    uint64_t from = a->address > address ? a->address : address,
             to = a->address + a->bytes < end ? a->address + a->bytes : end;
    for (uint64_t at = from, next; at < to; at = next) {
      next = ((at >> PAGER_CHUNK_SHIFT) + 1) << PAGER_CHUNK_SHIFT;
      if (next > to) next = to;
      if (!whole || pager_chunk_made(p, at >> PAGER_CHUNK_SHIFT)) advise_units(p, at, next - at, advice, device >= 0);
    }
  }
  pager_check(p);
}

/* ---- prefetches of the program ---- */

/* The CPU gets the newest bytes. Copied if they are newer than its own, or if no account is kept of that. */
static void copy_out(pager *p, pager_unit *unit, bool leaves, uint64_t address, pager_moves *moves) {
  bool copied = !unit->cpu_newest || (p->config.copy_clean && !unit->duplicate);
  FF_CHECK(unit->cpu_newest || unit->gpu_newest);
  unit->cpu_newest = true;
  unit->populated |= copied;
  if (copied) pager_tier_put(p, unit, address);
  if (leaves) pager_unit_leaves(p, unit, address);
  else {
    unit->duplicate = true;
    pager_remark(p, address);
  }
  if (copied) {
    moves->units++;
    moves->bytes += pager_bytes(p, unit);
    pager_moved(p, unit, false);
  }
  if (leaves && copied) p->moved_out += pager_bytes(p, unit);
  else if (leaves) p->dropped += pager_bytes(p, unit);
}

pager_moves pager_prefetch_out(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (p->config.manager->placement != MANAGER_PAGED) return moves;
  pager_whole_pages_back(p, address, bytes, &moves);
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    pager_thrash_forget(p, w.address);
    if (unit->state == PAGER_RESIDENT && !unit->duplicate)
      copy_out(p, unit, !(unit->hints & PAGER_READ_MOSTLY), w.address, &moves);
    if (unit->cpu_newest) pager_tier_host(p, unit, false, w.address);
  }
  pager_check(p);
  return moves;
}

pager_moves pager_prefetch_in(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (p->config.manager->placement != MANAGER_PAGED) return moves;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (!hinted(p, unit)) continue;
    pager_thrash_forget(p, w.address);
    if (unit->state == PAGER_RESIDENT) continue;
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT);
    /* it is mapped elsewhere now */
    if (unit->state == PAGER_REMOTE) p->config.hooks.left(p->config.hooks.context, w.address, unit);
    unit->state = PAGER_ABSENT;
    bool blank = pager_blank(p, unit);
    pager_bring_in(p, unit, true, w.address, &moves);
    unit->duplicate = unit->hints & PAGER_READ_MOSTLY && !blank;
  }
  pager_check(p);
  return moves;
}

/* ---- the host's loads and stores ---- */

void pager_host_takes(pager *p, pager_unit *unit, bool keeps, uint64_t address, uint64_t now, pager_moves *moves) {
  if (!(unit->hints & (PAGER_READ_MOSTLY | PAGER_PINNED))) pager_thrash_event(p, address, PAGER_CPU, now);
  copy_out(p, unit, !keeps, address, moves);
}

/* The host's memory for the page is made. What comes along may lie in GPU memory: then it is a fault like others. */
static void first_touch(pager *p, pager_unit *unit, uint64_t address, uint64_t now, pager_moves *moves) {
  uint64_t before = moves->bytes;
  if (pager_host_prefetches(p)) pager_host_ask(p, address);
  unit->populated = p->config.copy_clean;
  if (pager_host_prefetches(p)) pager_host_prefetch(p, now, moves);
  *(moves->bytes > before ? &moves->faults : &moves->first_touches) += 1;
}

/* The host reads what is newer in GPU memory over the link, once; what it writes is there at once, for both. */
static void touch_coherent(pager *p, pager_unit *unit, bool write, uint64_t address, pager_moves *moves) {
  if (!unit->cpu_newest) {
    pager_clean_unit(p, unit, true, address);
    moves->units++;
    moves->bytes += pager_bytes(p, unit);
  }
  if (write) pager_written(unit, PAGER_CPU | PAGER_GPU);
  pager_tier_host(p, unit, write, address);
}

static void touch_unit(pager *p, pager_unit *unit, bool write, uint64_t address, uint64_t now, pager_moves *moves) {
  if (p->config.manager->coherent && unit->state == PAGER_RESIDENT && !unit->duplicate) {
    touch_coherent(p, unit, write, address, moves);
    return;
  }
  if (unit->state == PAGER_RESIDENT && !(unit->duplicate && !write && unit->cpu_newest)) {
    moves->faults++;
    moves->faulted += pager_bytes(p, unit);
    if (pager_host_prefetches(p)) pager_host_ask(p, address);
    pager_host_takes(p, unit, !write && unit->hints & PAGER_READ_MOSTLY, address, now, moves);
    if (pager_host_prefetches(p)) pager_host_prefetch(p, now, moves);
  } else if (pager_blank(p, unit) && (write || p->config.copy_clean)) {
    first_touch(p, unit, address, now, moves);
  }
  if (write) pager_written(unit, PAGER_CPU);
  pager_tier_host(p, unit, write || unit->populated, address);
}

/* When the host may touch the unit: when it has landed; when a period of throttling is over; 0: now. */
static uint64_t host_waits(pager *p, const pager_unit *unit, uint64_t address, uint64_t now) {
  uint64_t until;
  if (unit->state == PAGER_IN_FLIGHT && !unit->departs) return p->flights.items[unit->flight].lands;
  if (pager_cleaning(p, address, pager_bytes(p, unit)) > now) return pager_cleaning(p, address, pager_bytes(p, unit));
  if (unit->state != PAGER_RESIDENT || unit->hints & PAGER_READ_MOSTLY) return 0;
  return pager_thrash_ask(p, address, PAGER_CPU, now, &until) == PAGER_THRASH_THROTTLE ? until : 0;
}

pager_moves pager_host_touch(pager *p, uint64_t *address, uint64_t end, bool write, uint64_t now, uint64_t *until) {
  pager_moves moves = {0};
  *until = 0;
  p->touched_at = now;
  if (p->config.manager->placement == MANAGER_PAGED) {
    pager_whole_pages_back(p, *address, end - *address, &moves);
    moves.faults = moves.units;
    moves.faulted = moves.bytes;
    pager_walk w = pager_walk_begin(p, *address, end - *address);
    for (pager_unit *unit; (unit = pager_walk_next(&w));) {
      *address = w.address;
      if ((*until = host_waits(p, unit, w.address, now)) != 0) return moves;
      p->view.by_host = true;
      touch_unit(p, unit, write, w.address, now, &moves);
      p->view.by_host = false;
      if (!moves.faults || !pager_host_prefetches(p)) continue;
      *address = w.at; /* a fault and what goes with it: one transfer */
      pager_check(p);
      return moves;
    }
    pager_check(p);
  }
  *address = end;
  return moves;
}
