/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: the SMs' TLBs (hits under misses), the TLB that they share, the GMMU's page walkers with their walk cache,
 * and the far-fault's way from a failed walk to the pager (Zheng et al., HPCA 2016, figure 4); far_fault.c has the way back.
 *
 * A TLB entry exists from the moment its walk starts; until `ready` it answers requests as a miss that waits for the
 * same walk. It maps one page of the page table (pager_leaf). What of that page is resident is known beside it: a page
 * larger than the unit that moves has one entry, whatever part of it is there (Zhang et al., 2019). An entry never
 * outlives its page: tlb_forget removes it from all TLBs when the page or a part of it leaves, tlb_remap when the
 * page table maps the place by a larger page or by smaller ones. */
#include "machine/simulation.h"

#define TABLES (UINT64_C(1) << 50) /* the page tables lie above all data */
enum { BLOCK_SHIFT = PAGER_CHUNK_SHIFT, GROUP_SHIFT = 16, LEVEL_BITS = 9 };

/* ---- what is translated by what ---- */

/* Pages grow under demand paging, unless a size was chosen or pages are partial: these are 2 MiB. A page that may not
 * grow is no larger than what moves as one, unless it was chosen. */
void tlb_init(sim *s, uint64_t unit_bytes) {
  const machine_spec *spec = s->spec;
  uint64_t page = spec->page_bytes, least = page;
  bool partial = s->manager->ranges, free_to_grow = is_paged(s) && !partial && !s->gmmu.page_fixed;
  if (partial && !s->gmmu.page_fixed) least = FF_BLOCK_BYTES;
  if (free_to_grow && least > unit_bytes) least = unit_bytes;
  s->gmmu.leaves_grow = free_to_grow && page >= FF_GROUP_BYTES && least < FF_BLOCK_BYTES && least < page;
  s->gmmu.leaf_shift[PAGER_LEAF_MIN] = (uint32_t)__builtin_ctzll(least);
  s->gmmu.leaf_shift[PAGER_LEAF_GROUP] = GROUP_SHIFT;
  s->gmmu.leaf_shift[PAGER_LEAF_BLOCK] = BLOCK_SHIFT;
  s->gmmu.alias_mask = is_paged(s) && least <= unit_bytes ? UINT8_MAX : 0;
  s->gmmu.seen_shift = (uint32_t)__builtin_ctzll(is_paged(s) && least > unit_bytes ? unit_bytes : least);
}

static inline pager_leaf leaf_of(sim *s, uint64_t address) {
  return s->gmmu.leaves_grow ? pager_leaf_of(s->pager, address) : PAGER_LEAF_MIN;
}

/* Units of different allocations in one window have entries of their own, where no page is larger than the window. */
static inline uint64_t tlb_key(const sim *s, uint64_t address, pager_leaf leaf, const pager_unit *unit) {
  uint64_t alias = leaf == PAGER_LEAF_MIN ? unit->alias_tag & s->gmmu.alias_mask : 0;
  return (address | s->space) >> s->gmmu.leaf_shift[leaf] | alias << 52 | (uint64_t)leaf << 60;
}

static lru *shared_set(const sim *s, uint64_t key) { return &s->gmmu.shared_tlb[modulo(key & ((UINT64_C(1) << 52) - 1), &s->gmmu.shared_sets)]; }

static void insert(lru *table, uint64_t key, ps ready, const tally *tally) {
  if (table->count == table->capacity) COUNT(tally, tlb_evictions, 1);
  lru_insert(table, key, ready);
}

/* ---- walks ---- */

/* The page table: tables of 512 entries of 8 bytes. Pages of 2 MiB and more are entries of the level above the one that
 * maps smaller ones, so their walk is one access shorter; walk_levels is the length for page_bytes of the machine.
 *
 *     level      0: pages below 2 MiB       1: pages of 2 MiB, or the tables of level 0       2: tables of level 1 ...
 *     entry of   the page itself            address >> 21                                     address >> 30
 *
 * A machine whose pages are larger than 2 MiB has them in level 1. */
typedef struct walk_level { uint64_t table, index; } walk_level;

static walk_level level_of(const sim *s, uint32_t level, uint32_t leaf_shift, uint64_t address) {
  bool large = s->gmmu.walk_shift >= BLOCK_SHIFT; /* the machine's own pages are in level 1: its tables are numbered from there */
  uint32_t upper = s->gmmu.walk_shift > BLOCK_SHIFT ? s->gmmu.walk_shift : BLOCK_SHIFT;
  if (level) return (walk_level){level - large, address >> (upper + LEVEL_BITS * (level - 1))};
  if (!large && leaf_shift == s->gmmu.walk_shift) return (walk_level){0, address >> leaf_shift};
  return (walk_level){leaf_shift == GROUP_SHIFT ? 15 : 14, address >> leaf_shift}; /* pages of 64 KiB have tables of their own */
}

/* Tables are in memory as data is: in frames of its colours, where memory is divided. */
static uint64_t table_address(sim *s, const walk_level *l) {
  uint64_t virtual = (TABLES + l->table * (TABLES >> 4) + l->index * 8) & ~UINT64_C(127);
  return s->d->hash ? address_map_find(s, virtual) : virtual;
}

/* SMs in a memory stack have walkers and a walk cache there; the tables may be in other stacks. */
ps gmmu_walk(sim *s, const sm *m, uint64_t address, pager_leaf leaf, ps ask, ps at, const tally *tally) {
  const timing *t = &s->t;
  memory_stack *near = m && m->stack ? &s->stacks->items[m->stack - 1] : NULL;
  slots *walkers = near ? &near->walkers : &s->d->walkers;
  lru *walk_cache = near ? &near->walk_cache : &s->d->walk_cache;
  uint32_t shift = s->gmmu.leaf_shift[leaf], lowest = shift >= BLOCK_SHIFT, top = (uint32_t)s->spec->walk_levels + (s->gmmu.walk_shift >= BLOCK_SHIFT);
  ps begin = slots_wait(walkers, at), time = begin;
  COUNT(tally, walks, 1);
  address |= s->space;
  for (uint32_t level = top > lowest ? top : lowest + 1; level-- > lowest;) {
    walk_level l = level_of(s, level, shift, address);
    uint64_t entry = l.table << 52 | l.index;
    const lru_entry *cached = s->spec->walk_cache_bytes ? lru_find(walk_cache, entry) : NULL;
    if (cached) { /* perhaps still on its way, for another walk */
      COUNT(tally, walk_cache_hits, 1);
      time = (cached->ready > time ? cached->ready : time) + t->walk_cache;
      continue;
    }
    request r = {.address = table_address(s, &l),
                 .sectors = 1u << (entry >> 2 & 3), .lanes = 1, .op = TRACE_LOAD, .ask = ask, .at = time, .tally = tally};
    time = near ? stacks_below(s, m, &r) : l2_access(s, &r);
    if (s->spec->walk_cache_bytes) lru_insert(walk_cache, entry, time);
  }
  slots_hold(walkers, time);
  return time;
}

/* ---- translation ---- */

/* At the GMMU: the shared TLB, if there is one, then a walk. Returns when the answer leaves for the SM. */
static ps gmmu_translate(sim *s, const sm *m, uint64_t address, pager_leaf leaf, uint64_t key, bool absent, ps ask, ps at, const tally *tally) {
  lru *set = s->gmmu.shared_tlb && !m->stack ? shared_set(s, key) : NULL;
  if (set) {
    ask += s->t.shared_tlb;
    at += s->t.shared_tlb;
    const lru_entry *entry = lru_find(set, key);
    if (entry && entry->ready > at) COUNT(tally, tlb_merged, 1);
    else if (entry) COUNT(tally, tlb_l2_hits, 1);
    if (entry) return entry->ready > at ? entry->ready : at;
  }
  COUNT(tally, tlb_misses, 1);
  ps walked = gmmu_walk(s, m, address, leaf, ask, at, tally);
  if (set && !absent) insert(set, key, walked, tally);
  return walked;
}

static void count_merged(sim *s, const tally *tally, ps time) {
  COUNT(tally, faults_merged, 1);
  history_add(s->observer.history, HISTORY_faults_merged, time, 1);
}

translation tlb_translate(sim *s, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready, const tally *tally) {
  if (m->tlb_blocked) return TRANSLATION_BLOCKED;
  if (s->pager->pins_due <= s->agenda.now) pager_unpin(s->pager, s->agenda.now);
  pager_leaf leaf = leaf_of(s, address);
  uint64_t key = tlb_key(s, address, leaf, unit);
  *ready = server_take(&m->tlb_port, ask, at, s->t.tlb_port);
  COUNT(tally, tlb_lookups, 1);
  lru_entry *entry = lru_find(&m->tlb, key);
  bool absent = unit->state == PAGER_ABSENT || (unit->state == PAGER_IN_FLIGHT && !(unit->departs && fault_reaches(s, unit, ask))), blocks;
  absent = absent || (unit->duplicate && s->pager->config.hooks.writes(s, w->index)); /* may only be read */
  if (entry && !absent) {
    if (entry->ready <= *ready) return TRANSLATION_DONE;
    COUNT(tally, tlb_merged, 1);
    *ready = entry->ready;
    return TRANSLATION_DONE;
  }
  if (absent && pager_waits(s->pager, m->index, unit)) {
    COUNT(tally, tlb_merged, 1);
    if (pager_fault(s->pager, &(fault_request){.sm = m->index, .warp = w->index}, address, unit, &blocks) == PAGER_MERGED) count_merged(s, tally, *ready);
    return TRANSLATION_ABSENT;
  }
  ps walked;
  if (entry) { /* of a page that is larger than the unit: it says that the unit is not there */
    walked = (entry->ready > *ready ? entry->ready : *ready) + s->t.tlb_there;
  } else {
    walked = gmmu_translate(s, m, address, leaf, key, absent, ask + s->t.tlb_there, *ready + s->t.tlb_there, tally);
  }
  if (!absent) {
    *ready = walked + s->t.tlb_back;
    if (m->tlb.capacity) insert(&m->tlb, key, *ready, tally);
    return TRANSLATION_DONE;
  }
  fault_request request = {.sm = m->index, .warp = w->index, .from = walked};
  pager_outcome outcome = pager_fault(s->pager, &request, address, unit, &blocks);
  if (outcome == PAGER_MERGED) count_merged(s, tally, walked);
  if (outcome == PAGER_THROTTLED) {
    COUNT(tally, faults_throttled, 1);
    history_add(s->observer.history, HISTORY_faults_throttled, walked, 1);
  }
  m->tlb_blocked |= blocks;
  return TRANSLATION_ABSENT;
}

/* ---- shootdowns ---- */

static void shoot(sim *s, lru *table, uint64_t key) {
  if (table->count && lru_remove(table, key)) s->observer.counters.tlb_shootdowns++;
}

/* From all TLBs. */
static void shoot_down(sim *s, uint64_t key) {
  for (uint32_t i = 0; i < s->d->sm_total; i++) shoot(s, &s->sms[i].tlb, key);
  if (s->gmmu.shared_tlb) shoot(s, shared_set(s, key), key);
}

void tlb_forget(sim *s, uint64_t address, const pager_unit *unit) {
  uint64_t window = address & ~(s->pager->config.unit_bytes - 1);
  for (uint64_t a = window; a < window + s->pager->config.unit_bytes; a += UINT64_C(1) << s->gmmu.leaf_shift[PAGER_LEAF_MIN])
    shoot_down(s, tlb_key(s, a, PAGER_LEAF_MIN, unit));
}

void tlb_forget_range(sim *s, uint64_t address, uint64_t bytes) {
  address |= s->space;
  uint32_t shift = s->gmmu.leaf_shift[PAGER_LEAF_MIN];
  uint64_t first = address >> shift, last = (address + bytes - 1) >> shift;
  for (uint32_t i = 0; i < s->d->sm_total; i++) {
    s->observer.counters.tlb_shootdowns += lru_remove_range(&s->sms[i].tlb, first, last);
    s->sms[i].seen_count = 0; /* an access that was held up asks again */
  }
  for (uint64_t i = 0; s->gmmu.shared_tlb && i < s->gmmu.shared_sets.by; i++) s->observer.counters.tlb_shootdowns += lru_remove_range(&s->gmmu.shared_tlb[i], first, last);
  walk_level from = level_of(s, shift >= BLOCK_SHIFT, shift, address), to = level_of(s, shift >= BLOCK_SHIFT, shift, address + bytes - 1);
  lru_remove_range(&s->d->walk_cache, from.table << 52 | from.index, to.table << 52 | to.index);
  for (uint32_t i = 0; s->stacks && i < s->stacks->count; i++) lru_remove_range(&s->stacks->items[i].walk_cache, from.table << 52 | from.index, to.table << 52 | to.index);
}

/* The page that maps the unit has been written to, and entries remember that: the next write must be seen again. */
void tlb_clean(sim *s, uint64_t address, const pager_unit *unit) {
  static const pager_unit alone = {.alias_tag = 0};
  pager_leaf leaf = s->gmmu.leaves_grow ? pager_leaf_of(s->pager, address) : PAGER_LEAF_MIN;
  if (leaf == PAGER_LEAF_MIN) tlb_forget(s, address, unit);
  else shoot_down(s, tlb_key(s, address & ~((UINT64_C(1) << s->gmmu.leaf_shift[leaf]) - 1), leaf, &alone));
}

/* When a block becomes one page all its groups were: no smaller entries are left to remove. */
void tlb_remap(sim *s, uint64_t address, uint64_t bytes, bool whole) {
  static const pager_unit alone = {.alias_tag = 0};
  bool block = bytes == FF_BLOCK_BYTES;
  if (!whole) {
    shoot_down(s, tlb_key(s, address, block ? PAGER_LEAF_BLOCK : PAGER_LEAF_GROUP, &alone));
    return;
  }
  uint32_t least = s->gmmu.leaf_shift[PAGER_LEAF_MIN];
  pager_leaf smaller = block && least < GROUP_SHIFT ? PAGER_LEAF_GROUP : PAGER_LEAF_MIN;
  for (uint64_t a = address; a < address + bytes; a += UINT64_C(1) << s->gmmu.leaf_shift[smaller]) shoot_down(s, tlb_key(s, a, smaller, &alone));
}
