/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: the SMs' TLBs (hits under misses), the TLB that they share, the GMMU's page walkers with their walk
 * cache, and the far-fault's way from a failed walk to the pager (Zheng et al., HPCA 2016, figure 4); far_fault.c has
 * the way back.
 *
 * A TLB entry exists from the moment its walk starts; until `ready` it answers requests as a miss that waits for the
 * same walk. It maps one page of the page table (pager_leaf). What of that page is resident is recorded separately: a
 * page larger than the unit that moves has one entry, whatever part of it is there (Zhang et al., 2019). tlb_forget
 * removes the entry from all TLBs when the page or a part of it leaves, tlb_remap when the page table maps the place by
 * a larger page or by smaller ones, so that no entry outlives its page (tlb_check). */
#include "machine/memory/tlb.h"

#include "machine/memory/address_map.h"
#include "machine/memory/far_fault.h"
#include "machine/memory/hierarchy.h"
#include "machine/observe/observer.h"
#include "machine/stacks/stacks.h"
#include "machine/tenants/device.h"

#define TABLES (UINT64_C(1) << 50) /* the page tables lie above all data */
enum { BLOCK_SHIFT = PAGER_CHUNK_SHIFT, GROUP_SHIFT = 16, LEVEL_BITS = 9 };

/* ---- what is translated by what ---- */

/* Pages grow under demand paging, unless a size was chosen or pages are partial: these are 2 MiB. A page that may not
 * grow is no larger than what moves as one, unless it was chosen. */
void tlb_init(gmmu *g, uint64_t unit_bytes) {
  const machine_spec *spec = g->spec;
  uint64_t page = spec->page_bytes, least = page;
  bool partial = g->manager->ranges,
       free_to_grow = g->manager->placement == MANAGER_PAGED && !partial && !g->page_fixed;
  if (partial && !g->page_fixed) least = FF_BLOCK_BYTES;
  if (free_to_grow && least > unit_bytes) least = unit_bytes;
  g->leaves_grow = free_to_grow && page >= FF_GROUP_BYTES && least < FF_BLOCK_BYTES && least < page;
  g->leaf_shift[PAGER_LEAF_MIN] = (uint32_t)__builtin_ctzll(least);
  g->leaf_shift[PAGER_LEAF_GROUP] = GROUP_SHIFT;
  g->leaf_shift[PAGER_LEAF_BLOCK] = BLOCK_SHIFT;
  g->alias_mask = g->manager->placement == MANAGER_PAGED && least <= unit_bytes ? UINT8_MAX : 0;
  g->seen_shift =
      (uint32_t)__builtin_ctzll(g->manager->placement == MANAGER_PAGED && least > unit_bytes ? unit_bytes : least);
}

static lru *shared_set(const gmmu *g, uint64_t key) {
  return &g->shared_tlb[modulo(key & ((UINT64_C(1) << 52) - 1), &g->shared_sets)];
}

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
typedef struct walk_level {
  uint64_t table, index;
} walk_level;

static walk_level level_of(const gmmu *g, uint32_t level, uint32_t leaf_shift, uint64_t address) {
  /* the machine's own pages are in level 1: its tables are numbered from there */
  bool large = g->walk_shift >= BLOCK_SHIFT;
  uint32_t upper = g->walk_shift > BLOCK_SHIFT ? g->walk_shift : BLOCK_SHIFT;
  if (level) return (walk_level){level - large, address >> (upper + LEVEL_BITS * (level - 1))};
  if (!large && leaf_shift == g->walk_shift) return (walk_level){0, address >> leaf_shift};
  /* pages of 64 KiB have tables of their own */
  return (walk_level){leaf_shift == GROUP_SHIFT ? 15 : 14, address >> leaf_shift};
}

/* Tables are in memory as data is: in frames of its colours, where memory is divided. */
static uint64_t table_address(gmmu *g, const walk_level *l) {
  uint64_t virtual = (TABLES + l->table * (TABLES >> 4) + l->index * 8) & ~UINT64_C(127);
  return g->map->hash ? address_map_find(g->map, virtual) : virtual;
}

/* A walk holds a walker from its begin on, or, with walk_cache_walker 0, from the first entry on that has to be read.
 * SMs in a memory stack have walkers and a walk cache there; the tables may be in other stacks. */
ps gmmu_walk(gmmu *g, const sm *m, uint64_t address, pager_leaf leaf, ps ask, ps at, const tally *tally) {
  const timing *t = g->t;
  memory_stack *near = m && m->stack ? &g->stacks->items[m->stack - 1] : NULL;
  slots *walkers = near ? &near->walkers : g->walkers;
  lru *walk_cache = near ? &near->walk_cache : g->walk_cache;
  uint32_t shift = g->leaf_shift[leaf], lowest = shift >= BLOCK_SHIFT,
           top = (uint32_t)g->spec->walk_levels + (g->walk_shift >= BLOCK_SHIFT);
  bool has_walker = g->spec->walk_cache_walker;
  ps time = has_walker ? slots_wait(walkers, at) : at;
  COUNT(tally, walks, 1);
  address |= g->space;
  for (uint32_t level = top > lowest ? top : lowest + 1; level-- > lowest;) {
    walk_level l = level_of(g, level, shift, address);
    uint64_t entry = l.table << 52 | l.index;
    const lru_entry *cached = g->spec->walk_cache_bytes ? lru_find(walk_cache, entry) : NULL;
    if (cached) { /* perhaps still on its way, for another walk */
      COUNT(tally, walk_cache_hits, 1);
      time = (cached->ready > time ? cached->ready : time) + t->walk_cache;
      continue;
    }
    if (!has_walker) time = slots_wait(walkers, time);
    has_walker = true;
    request r = {.address = table_address(g, &l),
                 .sectors = 1u << (entry >> 2 & 3),
                 .lanes = 1,
                 .op = TRACE_LOAD,
                 .ask = ask,
                 .at = time,
                 .tally = tally};
    time = near ? stacks_below(g->stacks, m, &r) : l2_access(g->memory, &r);
    if (g->spec->walk_cache_bytes) lru_insert(walk_cache, entry, time);
  }
  if (has_walker) slots_hold(walkers, time);
  return time;
}

/* ---- translation ---- */

/* At the GMMU: the shared TLB, if there is one, then a walk. Returns when the answer leaves for the SM. */
static ps gmmu_translate(gmmu *g, const sm *m, uint64_t address, pager_leaf leaf, uint64_t key, bool absent, ps ask,
                         ps at, const tally *tally) {
  lru *set = g->shared_tlb && !m->stack ? shared_set(g, key) : NULL;
  if (set) {
    ask += g->t->shared_tlb;
    at += g->t->shared_tlb;
    const lru_entry *entry = lru_find(set, key);
    if (entry && entry->ready > at) COUNT(tally, tlb_merged, 1);
    else if (entry) COUNT(tally, tlb_l2_hits, 1);
    if (entry) return entry->ready > at ? entry->ready : at;
  }
  COUNT(tally, tlb_misses, 1);
  ps walked = gmmu_walk(g, m, address, leaf, ask, at, tally);
  if (set && !absent) insert(set, key, walked, tally);
  return walked;
}

static void count_merged(gmmu *g, const tally *tally, ps time) {
  COUNT(tally, faults_merged, 1);
  history_add(g->observer->history, HISTORY_faults_merged, time, 1);
}

translation tlb_ask(gmmu *g, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready,
                    const tally *tally) {
  if (m->tlb_blocked) return TRANSLATION_BLOCKED;
  if (g->pager->pins_due <= g->agenda->now) pager_unpin(g->pager, g->agenda->now);
  pager_leaf leaf = tlb_leaf(g, address);
  uint64_t key = tlb_key(g, address, leaf, unit);
  *ready = server_take(&m->tlb_port, ask, at, g->t->tlb_port);
  COUNT(tally, tlb_lookups, 1);
  lru_entry *entry = lru_find(&m->tlb, key);
  bool absent = unit->state == PAGER_ABSENT ||
                (unit->state == PAGER_IN_FLIGHT && !(unit->departs && fault_reaches(g->faults, unit, ask))),
       blocks;
  /* may only be read */
  absent = absent || (unit->duplicate && g->pager->config.hooks.writes(g->pager->config.hooks.context, w->index));
  if (entry && !absent) {
    if (entry->ready <= *ready) return TRANSLATION_DONE;
    COUNT(tally, tlb_merged, 1);
    *ready = entry->ready;
    return TRANSLATION_DONE;
  }
  if (absent && pager_waits(g->pager, m->index, unit)) {
    COUNT(tally, tlb_merged, 1);
    if (pager_fault(g->pager, &(fault_request){.sm = m->index, .warp = w->index}, address, unit, &blocks) ==
        PAGER_MERGED)
      count_merged(g, tally, *ready);
    return TRANSLATION_ABSENT;
  }
  ps walked;
  if (entry) { /* of a page that is larger than the unit: it says that the unit is not there */
    walked = (entry->ready > *ready ? entry->ready : *ready) + g->t->tlb_there;
  } else {
    walked = gmmu_translate(g, m, address, leaf, key, absent, ask + g->t->tlb_there, *ready + g->t->tlb_there, tally);
  }
  if (!absent) {
    *ready = walked + g->t->tlb_back;
    if (m->tlb.capacity) insert(&m->tlb, key, *ready, tally);
    return TRANSLATION_DONE;
  }
  fault_request request = {.sm = m->index, .warp = w->index, .from = walked};
  pager_outcome outcome = pager_fault(g->pager, &request, address, unit, &blocks);
  if (outcome == PAGER_MERGED) count_merged(g, tally, walked);
  if (outcome == PAGER_THROTTLED) {
    COUNT(tally, faults_throttled, 1);
    history_add(g->observer->history, HISTORY_faults_throttled, walked, 1);
  }
  m->tlb_blocked |= blocks;
  return TRANSLATION_ABSENT;
}

bool tlb_reaches(const gmmu *g, const sm *m, const pager_unit *unit) {
  if (m->tlb_blocked || g->pager->pins_due <= g->agenda->now) return false;
  return unit->state != PAGER_ABSENT && unit->state != PAGER_IN_FLIGHT && !unit->duplicate;
}

tlb_look tlb_look_up(gmmu *g, sm *m, uint64_t address, const pager_unit *unit, ps ask, const tally *tally) {
  tlb_look look = {.leaf = tlb_leaf(g, address)};
  look.key = tlb_key(g, address, look.leaf, unit);
  look.at = server_take(&m->tlb_port, ask, ask, g->t->tlb_port);
  COUNT(tally, tlb_lookups, 1);
  look.entry = lru_find(&m->tlb, look.key);
  return look;
}

/* As gmmu_walk. Known where all of the walk is in the walk cache, and that needs no walker. Else not before a walker
 * reads the first entry that is not there, be it for another walk; when one is free only gets later. */
static ps walk_foresee(gmmu *g, uint64_t address, pager_leaf leaf, ps at, bool *known) {
  uint32_t shift = g->leaf_shift[leaf], lowest = shift >= BLOCK_SHIFT,
           top = (uint32_t)g->spec->walk_levels + (g->walk_shift >= BLOCK_SHIFT);
  *known = !g->spec->walk_cache_walker;
  address |= g->space;
  for (uint32_t level = top > lowest ? top : lowest + 1; *known && level-- > lowest;) {
    walk_level l = level_of(g, level, shift, address);
    const lru_entry *cached = g->spec->walk_cache_bytes ? lru_peek(g->walk_cache, l.table << 52 | l.index) : NULL;
    *known = cached != NULL;
    at = cached ? (cached->ready > at ? cached->ready : at) + g->t->walk_cache : slots_wait(g->walkers, at);
  }
  return at;
}

ps tlb_foresee(gmmu *g, const tlb_look *look, uint64_t address, bool *known) {
  ps at = look->at + g->t->tlb_there;
  if (!g->shared_tlb) return walk_foresee(g, address, look->leaf, at, known) + g->t->tlb_back;
  at += g->t->shared_tlb;
  const lru_entry *shared = lru_peek(shared_set(g, look->key), look->key);
  *known = shared != NULL;
  if (shared) return (shared->ready > at ? shared->ready : at) + g->t->tlb_back;
  ps least = at, walked = walk_foresee(g, address, look->leaf, at, known);
  return (*known ? walked : least) + g->t->tlb_back; /* another SM's walk may be on its way there */
}

ps tlb_walk(gmmu *g, const sm *m, uint64_t address, pager_leaf leaf, uint64_t key, ps ask, ps at, const tally *tally) {
  return gmmu_translate(g, m, address, leaf, key, false, ask + g->t->tlb_there, at + g->t->tlb_there, tally) +
         g->t->tlb_back;
}

bool tlb_walk_reads(const gmmu *g, uint64_t address, pager_leaf leaf, uint64_t key) {
  if (g->shared_tlb && lru_peek(shared_set(g, key), key)) return false;
  if (!g->spec->walk_cache_bytes) return true;
  uint32_t shift = g->leaf_shift[leaf], lowest = shift >= BLOCK_SHIFT,
           top = (uint32_t)g->spec->walk_levels + (g->walk_shift >= BLOCK_SHIFT);
  for (uint32_t level = top > lowest ? top : lowest + 1; level-- > lowest;) {
    walk_level l = level_of(g, level, shift, address | g->space);
    if (!lru_peek(g->walk_cache, l.table << 52 | l.index)) return true;
  }
  return false;
}

/* ---- shootdowns ---- */

static void shoot(gmmu *g, lru *table, uint64_t key) {
  if (table->count && lru_remove(table, key)) g->observer->counters.tlb_shootdowns++;
}

/* From all TLBs. */
static void shoot_down(gmmu *g, uint64_t key) {
  for (uint32_t holders = lru_census_holders(g->tlb_census, key); holders; holders &= holders - 1)
    for (uint32_t i = (uint32_t)__builtin_ctz(holders); i < g->sm_total; i += 32) shoot(g, &g->sms[i].tlb, key);
  if (g->shared_tlb) shoot(g, shared_set(g, key), key);
}

void tlb_forget(gmmu *g, uint64_t address, const pager_unit *unit) {
  uint64_t window = address & ~(g->pager->config.unit_bytes - 1);
  for (uint64_t a = window; a < window + g->pager->config.unit_bytes; a += UINT64_C(1) << g->leaf_shift[PAGER_LEAF_MIN])
    shoot_down(g, tlb_key(g, a, PAGER_LEAF_MIN, unit));
}

void tlb_forget_range(gmmu *g, uint64_t address, uint64_t bytes) {
  address |= g->space;
  uint32_t shift = g->leaf_shift[PAGER_LEAF_MIN];
  uint64_t first = address >> shift, last = (address + bytes - 1) >> shift;
  for (uint32_t i = 0; i < g->sm_total; i++)
    g->observer->counters.tlb_shootdowns += lru_remove_range(&g->sms[i].tlb, first, last);
  ++*g->removals; /* an access that was held up asks again */
  for (uint64_t i = 0; g->shared_tlb && i < g->shared_sets.by; i++)
    g->observer->counters.tlb_shootdowns += lru_remove_range(&g->shared_tlb[i], first, last);
  walk_level from = level_of(g, shift >= BLOCK_SHIFT, shift, address),
             to = level_of(g, shift >= BLOCK_SHIFT, shift, address + bytes - 1);
  lru_remove_range(g->walk_cache, from.table << 52 | from.index, to.table << 52 | to.index);
  for (uint32_t i = 0; g->stacks && i < g->stacks->count; i++)
    lru_remove_range(&g->stacks->items[i].walk_cache, from.table << 52 | from.index, to.table << 52 | to.index);
}

/* The page that maps the unit has been written to, and entries remember that: the next write must be seen again. */
void tlb_clean(gmmu *g, uint64_t address, const pager_unit *unit) {
  static const pager_unit alone = {.alias_tag = 0};
  pager_leaf leaf = g->leaves_grow ? pager_leaf_of(g->pager, address) : PAGER_LEAF_MIN;
  if (leaf == PAGER_LEAF_MIN) tlb_forget(g, address, unit);
  else shoot_down(g, tlb_key(g, address & ~((UINT64_C(1) << g->leaf_shift[leaf]) - 1), leaf, &alone));
}

/* The smallest page there: each allocation that has some of it has an entry of its own. */
static void shoot_down_units(gmmu *g, uint64_t address) {
  const pager_chunk *chunk = pager_chunk_at(g->pager, address);
  const pager_unit *unit = &chunk->units[address % FF_BLOCK_BYTES >> g->pager->unit_shift];
  for (; unit; unit = pager_unit_next(g->pager, chunk, unit)) shoot_down(g, tlb_key(g, address, PAGER_LEAF_MIN, unit));
}

/* When a block becomes one page all its groups were: no smaller entries are left to remove. */
void tlb_remap(gmmu *g, uint64_t address, uint64_t bytes, bool whole) {
  static const pager_unit alone = {.alias_tag = 0};
  bool block = bytes == FF_BLOCK_BYTES;
  if (!whole) {
    shoot_down(g, tlb_key(g, address, block ? PAGER_LEAF_BLOCK : PAGER_LEAF_GROUP, &alone));
    return;
  }
  uint32_t least = g->leaf_shift[PAGER_LEAF_MIN];
  pager_leaf smaller = block && least < GROUP_SHIFT ? PAGER_LEAF_GROUP : PAGER_LEAF_MIN;
  for (uint64_t a = address; a < address + bytes; a += UINT64_C(1) << g->leaf_shift[smaller])
    if (smaller == PAGER_LEAF_MIN && g->alias_mask) shoot_down_units(g, a);
    else shoot_down(g, tlb_key(g, a, smaller, &alone));
}

/* ---- checks ---- */

/* Is anything of what the entry maps in GPU memory, or reached from there? */
static bool is_there(const gmmu *g, uint64_t base, uint64_t bytes) {
  for (uint64_t at = base; at < base + bytes; at += g->pager->config.unit_bytes)
    for (const pager_unit *unit = pager_find(g->pager, at); unit;
         unit = pager_unit_next(g->pager, pager_chunk_at(g->pager, at), unit))
      if (unit->state != PAGER_ABSENT) return true;
  return false;
}

static void check_table(const gmmu *g, const lru *table) {
  for (uint32_t i = table->entries[0].newer; i; i = table->entries[i].newer) {
    uint64_t key = table->entries[i].key;
    pager_leaf leaf = (pager_leaf)(key >> 60);
    uint64_t address = (key & ((UINT64_C(1) << 52) - 1)) << g->leaf_shift[leaf];
    if ((address & ~((UINT64_C(1) << SPACE_SHIFT) - 1)) != g->space) continue; /* another tenant's */
    address &= ~g->space;
    FF_ASSERT(!g->leaves_grow || pager_leaf_of(g->pager, address) == leaf);
    FF_ASSERT(is_there(g, address, UINT64_C(1) << g->leaf_shift[leaf]));
  }
}

void tlb_check(const gmmu *g) {
  if (!manager_pages(g->manager)) return;
  for (uint32_t i = 0; i < g->sm_total; i++) check_table(g, &g->sms[i].tlb);
  for (uint64_t i = 0; g->shared_tlb && i < g->shared_sets.by; i++) check_table(g, &g->shared_tlb[i]);
}
