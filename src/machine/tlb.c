/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: the SM's TLB (hits under misses), the GMMU's page walkers with their walk cache, and the far-fault's way
 * from a failed walk to the pager and back (Zheng et al., HPCA 2016, figure 4).
 *
 * A TLB entry exists from the moment its walk starts; until `ready` it answers requests as a miss that waits for the
 * same walk. An entry never outlives its page: tlb_forget removes it from all TLBs when the page leaves. */
#include "machine/model.h"

#define TABLES (UINT64_C(1) << 50) /* the page tables lie above all data */

/* Units of different allocations in one window have entries of their own. */
static uint64_t tlb_key(const sim *s, uint64_t address, const pager_unit *unit) {
  return address >> s->page_shift | (uint64_t)(is_paged(s) ? unit->ordinal : 0) << 52;
}

ps gmmu_walk(sim *s, uint64_t page, ps ask, ps at, const tally *tally) {
  const timing *t = &s->t;
  ps begin = slots_wait(&s->walkers, at), time = begin;
  COUNT(tally, walks, 1);
  for (uint32_t level = (uint32_t)s->spec->walk_levels; level-- > 0;) {
    uint64_t entry = (uint64_t)level << 52 | page >> 9 * level; /* 512 entries of 8 bytes per table */
    if (s->spec->walk_cache_bytes && lru_find(&s->walk_cache, entry)) {
      COUNT(tally, walk_cache_hits, 1);
      time += t->walk_cache;
      continue;
    }
    request r = {.address = (TABLES + (uint64_t)level * (TABLES >> 4) + (page >> 9 * level) * 8) & ~UINT64_C(127),
                 .sectors = 1u << (entry >> 2 & 3), .lanes = 1, .op = TRACE_LOAD, .ask = ask, .at = time, .tally = tally};
    time = l2_access(s, &r);
    if (s->spec->walk_cache_bytes) lru_insert(&s->walk_cache, entry, time);
  }
  slots_hold(&s->walkers, time);
  return time;
}

translation tlb_translate(sim *s, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready, const tally *tally) {
  if (m->tlb_blocked) return TRANSLATION_BLOCKED;
  uint64_t key = tlb_key(s, address, unit);
  *ready = server_take(&m->tlb_port, ask, at, s->t.tlb_port);
  COUNT(tally, tlb_lookups, 1);
  lru_entry *entry = lru_find(&m->tlb, key);
  if (entry) {
    if (entry->ready <= *ready) return TRANSLATION_DONE;
    COUNT(tally, tlb_misses, 1);
    *ready = entry->ready;
    return TRANSLATION_DONE;
  }
  COUNT(tally, tlb_misses, 1);
  bool absent = unit->state == PAGER_ABSENT || unit->state == PAGER_IN_FLIGHT, blocks;
  if (absent && pager_waits(s->pager, m->index, unit)) {
    if (pager_fault(s->pager, m->index, address, unit, w->index, &blocks) == PAGER_MERGED) COUNT(tally, faults_merged, 1);
    return TRANSLATION_ABSENT;
  }
  ps walked = gmmu_walk(s, address >> s->page_shift, ask + s->t.tlb_there, *ready + s->t.tlb_there, tally);
  if (!absent) {
    *ready = walked + s->t.tlb_back;
    lru_insert(&m->tlb, key, *ready);
    return TRANSLATION_DONE;
  }
  s->fault_from = walked;
  pager_outcome outcome = pager_fault(s->pager, m->index, address, unit, w->index, &blocks);
  s->fault_from = s->served_from = 0;
  if (outcome == PAGER_MERGED) COUNT(tally, faults_merged, 1);
  if (outcome == PAGER_THROTTLED) COUNT(tally, faults_throttled, 1);
  m->tlb_blocked |= blocks;
  return TRANSLATION_ABSENT;
}

void tlb_forget(sim *s, uint64_t address, const pager_unit *unit) {
  uint64_t window = address & ~(s->pager->config.unit_bytes - 1);
  for (uint32_t i = 0; i < s->spec->sm_count; i++)
    for (uint64_t a = window; a < window + s->pager->config.unit_bytes; a += UINT64_C(1) << s->page_shift)
      lru_remove(&s->sms[i].tlb, tlb_key(s, a, unit));
}

/* ---- far-faults: what the pager asks of the machine ---- */

/* resolve = max(from + fault_us, the link's backlog + this unit's transfer); a transfer into frames that are being
 * written back begins when that is over, unless both directions overlap (write_back_overlaps). */
static ps carry_in(sim *s, uint64_t bytes, ps from, ps not_before) {
  ps begin = s->room_at > from ? s->room_at : from;
  ps lands = link_carry(s, true, bytes, begin);
  s->room_at = 0;
  return lands < not_before ? not_before : lands;
}

static uint64_t flight_start(void *context, uint32_t sm_index, uint32_t warp_index, uint64_t address, uint32_t flight, const pager_unit *unit) {
  sim *s = context;
  kernel *k = s->warps.items[warp_index]->block->kernel;
  tally t = tally_of(s, k, unit);
  ps from = s->fault_from;
  if (!from) {
    ps at = s->now + s->t.tlb_there; /* replayed: from the TLB to the GMMU once more */
    from = gmmu_walk(s, address >> s->page_shift, at, at, &t);
  }
  uint64_t bytes = unit->frames * PAGER_FRAME_BYTES;
  ps lands = carry_in(s, bytes, from, from + s->t.fault);
  COUNT(&t, faults, 1);
  if (unit->evicted) COUNT(&t, refaults, 1);
  COUNT(&t, fault_wait_ps, lands - from);
  k->counters->h2d_bytes += bytes;
  k->counters->pages_moved_in += unit->frames;
  s->served_from = from;
  s->served_kernel = k->counters;
  event_push(&s->heap, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* Pages beside a far-fault come with its service; others as soon as the link has brought them. */
static uint64_t fetch(void *context, uint64_t address, uint64_t bytes, uint32_t flight, const pager_unit *first) {
  sim *s = context;
  bool beside = s->served_from != 0;
  ps from = beside ? s->served_from : s->now;
  ps lands = carry_in(s, bytes, from, from + (beside ? s->t.fault : s->t.link_latency));
  tally t = {beside ? s->served_kernel : &s->counters, &s->allocations.items[s->pager->allocations.items[first->allocation].owner]->counters};
  COUNT(&t, pages_prefetched, bytes / PAGER_FRAME_BYTES);
  if (beside) {
    t.kernel->h2d_bytes += bytes;
    t.kernel->pages_moved_in += bytes / PAGER_FRAME_BYTES;
  }
  event_push(&s->heap, lands, EVENT_FLIGHT, flight);
  return lands;
}

static void evicted(void *context, uint64_t address, const pager_unit *unit, bool write_back) {
  sim *s = context;
  sim_counters *a = &s->allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters;
  tally t = {&s->counters, a};
  COUNT(&t, pages_evicted, unit->frames);
  if (unit->prefetched && !unit->last_use) COUNT(&t, prefetches_unused, unit->frames);
  if (!write_back) return;
  COUNT(&t, pages_written_back, unit->frames);
  ps end = link_carry(s, false, unit->frames * PAGER_FRAME_BYTES, s->fault_from ? s->fault_from : s->now);
  if (!s->write_back_overlaps && s->room_at < end) s->room_at = end;
}

static void wake(void *context, uint32_t sm_index, uint32_t warp_index) {
  sim *s = context;
  warp *w = s->warps.items[warp_index];
  FF_ASSERT(w->waiting_units);
  if (--w->waiting_units == 0) event_push(&s->heap, s->now, EVENT_WARP, warp_index);
}

static void unblock(void *context, uint32_t sm_index) {
  sim *s = context;
  sm *m = &s->sms[sm_index];
  m->tlb_blocked = false;
  for (size_t i = 0; i < m->blocked_warps.count; i++) event_push(&s->heap, s->now, EVENT_WARP, m->blocked_warps.items[i]);
  m->blocked_warps.count = 0;
}

static void left(void *context, uint64_t address, const pager_unit *unit) {
  sim *s = context;
  uint64_t window = address & ~(s->pager->config.unit_bytes - 1);
  uint64_t begin = s->pager->allocations.items[unit->allocation].address & ~(PAGER_FRAME_BYTES - 1);
  tlb_forget(s, address, unit);
  l2_discard(s, begin > window ? begin : window, unit->frames * PAGER_FRAME_BYTES);
}

static void moved(void *context, uint32_t owner, bool in, uint64_t bytes) {
  sim *s = context;
  sim_counters *a = &s->allocations.items[owner]->counters;
  uint64_t pages = (bytes + PAGER_FRAME_BYTES - 1) / PAGER_FRAME_BYTES;
  *(in ? &a->h2d_bytes : &a->d2h_bytes) += bytes;
  *(in ? &a->pages_moved_in : &a->pages_moved_out) += pages;
  *(in ? &s->counters.h2d_bytes : &s->counters.d2h_bytes) += bytes;
  *(in ? &s->counters.pages_moved_in : &s->counters.pages_moved_out) += pages;
}

void fault_idle(sim *s) {
  if (s->running_count && pager_wants_idle(s->pager) && s->link.h2d.bus.free <= s->now) pager_idle(s->pager);
}

void fault_hooks(sim *s, pager_hooks *hooks) {
  *hooks = (pager_hooks){.context = s, .wake = wake, .start = flight_start, .fetch = fetch, .evicted = evicted, .unblock = unblock, .left = left, .moved = moved};
}

