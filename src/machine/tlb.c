/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: the SM's TLB (hits under misses), the GMMU's page walkers with their walk cache, and the far-fault's way
 * from a failed walk to the pager (Zheng et al., HPCA 2016, figure 4); fault.c has the way back.
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
    const lru_entry *cached = s->spec->walk_cache_bytes ? lru_find(&s->walk_cache, entry) : NULL;
    if (cached) { /* perhaps still on its way, for another walk */
      COUNT(tally, walk_cache_hits, 1);
      time = (cached->ready > time ? cached->ready : time) + t->walk_cache;
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
  if (s->pager->pins_due <= s->now) pager_unpin(s->pager, s->now);
  uint64_t key = tlb_key(s, address, unit);
  *ready = server_take(&m->tlb_port, ask, at, s->t.tlb_port);
  COUNT(tally, tlb_lookups, 1);
  lru_entry *entry = lru_find(&m->tlb, key);
  bool absent = unit->state == PAGER_ABSENT || unit->state == PAGER_IN_FLIGHT, blocks;
  absent = absent || (unit->duplicate && s->pager->config.hooks.writes(s, w->index)); /* may only be read */
  if (entry && !absent) {
    if (entry->ready <= *ready) return TRANSLATION_DONE;
    COUNT(tally, tlb_merged, 1);
    *ready = entry->ready;
    return TRANSLATION_DONE;
  }
  if (absent && pager_waits(s->pager, m->index, unit)) {
    COUNT(tally, tlb_merged, 1);
    if (pager_fault(s->pager, m->index, address, unit, w->index, &blocks) == PAGER_MERGED) COUNT(tally, faults_merged, 1);
    return TRANSLATION_ABSENT;
  }
  ps walked;
  if (entry) { /* a partial page: its entry says that the unit is not valid */
    walked = (entry->ready > *ready ? entry->ready : *ready) + s->t.tlb_there;
  } else {
    COUNT(tally, tlb_misses, 1);
    walked = gmmu_walk(s, address >> s->page_shift, ask + s->t.tlb_there, *ready + s->t.tlb_there, tally);
  }
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
