/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations and the page table. The table is a hash of 2 MiB pieces (chunks), made when an address in them is first
 * looked up; a table of pieces for each GiB; a piece has the allocations that overlap it, so nothing here is linear in
 * the size of an allocation. Small allocations that share a window of unit_bytes hang behind each other as siblings. */
#include "paging/pager.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (UINT64_C(1) << PAGER_CHUNK_SHIFT)

static uint64_t round_down(uint64_t x, uint64_t unit) { return x & ~(unit - 1); }
static uint64_t round_up(uint64_t x, uint64_t unit) { return (x + unit - 1) & ~(unit - 1); }
static uint32_t units_per_chunk(const pager *p) { return 1u << (PAGER_CHUNK_SHIFT - p->unit_shift); }

/* Belongs to no allocation. */
static const pager_unit unowned = {.state = PAGER_RESIDENT, .cpu_newest = true, .gpu_newest = true};

static void unowned_clear(pager *p) {
  for (int i = 0; i < PAGER_CACHE; i++) p->unowned[i] = UINT64_MAX;
}

static pager_chunk *chunk_allocate(const pager *p, uint64_t number) {
  uint32_t units = units_per_chunk(p);
  pager_chunk *chunk = ff_alloc(sizeof *chunk + units * sizeof chunk->units[0]);
  chunk->number = number;
  chunk->windows = ff_alloc((units + 63) / 64 * sizeof *chunk->windows);
  for (uint32_t u = 0; u < units; u++) chunk->units[u] = unowned;
  return chunk;
}

static void chunk_free(pager_chunk *chunk) {
  free(chunk->windows);
  free(chunk->next);
  pager_thrash_free(chunk);
  free(chunk);
}

pager *pager_create(const pager_config *config) {
  pager *p = ff_alloc(sizeof *p);
  p->config = *config;
  if (!p->config.allotment) p->config.allotment = 1;
  FF_ASSERT(config->unit_bytes >= PAGER_MIN_UNIT && config->unit_bytes <= CHUNK_BYTES);
  FF_ASSERT((config->unit_bytes & (config->unit_bytes - 1)) == 0);
  p->unit_shift = (uint32_t)__builtin_ctzll(config->unit_bytes);
  p->grain = config->unit_bytes < FF_PAGE_BYTES ? config->unit_bytes : FF_PAGE_BYTES;
  p->memory = p->free = config->memory_bytes / FF_PAGE_BYTES * FF_PAGE_BYTES;
  p->bucket_count = 64;
  p->buckets = ff_alloc(p->bucket_count * sizeof *p->buckets);
  unowned_clear(p);
  for (int i = 0; i < PAGER_CACHE; i++) p->cache[i].number = UINT64_MAX;
  p->zero_chunk = chunk_allocate(p, UINT64_MAX);
  FF_PUSH(&p->allocations, ((pager_allocation){.live = false}));
  FF_PUSH(&p->flights, ((pager_flight){0}));
  FF_PUSH(&p->nacks, ((pager_nack){0}));
  FF_PUSH(&p->waiters, ((pager_waiter){0}));
  p->sibling_count = 1;
  p->pins_due = UINT64_MAX;
  p->sms = ff_alloc(config->sms * sizeof *p->sms);
  pager_view_init(p);
  pager_watermarks_set(p);
  return p;
}

void pager_free(pager *p) {
  if (!p) return;
  for (uint32_t b = 0; b < p->bucket_count; b++)
    while (p->buckets[b]) {
      pager_region *region = p->buckets[b];
      p->buckets[b] = region->next;
      for (uint32_t c = 0; c < PAGER_REGION_CHUNKS; c++)
        if (region->chunks[c]) chunk_free(region->chunks[c]);
      free(region);
    }
  chunk_free(p->zero_chunk);
  for (int s = 0; s < PAGER_SETS; s++) ff_numbers_free(&p->chunks[s]);
  ff_numbers_free(&p->owed);
  for (uint32_t i = 1; i < p->sibling_count; i++) free(p->siblings[i]);
  free(p->siblings);
  free(p->buckets);
  free(p->allocations.items);
  free(p->by_address.items);
  free(p->flights.items);
  free(p->nacks.items);
  free(p->waiters.items);
  free(p->buffer.items);
  free(p->taken.items);
  free(p->batch.items);
  free(p->batch_flights.items);
  free(p->to_bring.items);
  free(p->to_evict.items);
  free(p->pins.items);
  free(p->dirty.items);
  free(p->sms);
  free(p);
}

void pager_grow(pager *p, uint64_t bytes) {
  p->config.memory_bytes += bytes;
  p->view.capacity = p->config.memory_bytes;
  uint64_t more = p->config.memory_bytes / FF_PAGE_BYTES * FF_PAGE_BYTES - p->memory;
  p->memory += more;
  p->free += more;
  pager_watermarks_set(p);
}

/* ---- units ---- */

pager_unit pager_unit_fresh(const pager *p, uint32_t index, uint64_t window) {
  const pager_allocation *a = &p->allocations.items[index];
  uint64_t begin = a->address > window ? a->address : window;
  uint64_t end = window + p->config.unit_bytes;
  if (a->address + a->bytes < end) end = a->address + a->bytes;
  uint32_t pieces = (uint32_t)((round_up(end, p->grain) - round_down(begin, p->grain)) / p->grain);
  pager_unit unit = {.allocation = index & PAGER_INDEX_MAX,
                     .pieces = pieces & 1023,
                     .cpu_newest = true,
                     .gpu_newest = true,
                     .state = PAGER_RESIDENT};
  if (p->config.manager->placement == MANAGER_EVERYWHERE) return unit;
  if (a->kind == TRACE_MEMORY_PINNED || a->kind == TRACE_MEMORY_HOST ||
      p->config.manager->placement == MANAGER_REMOTE) {
    unit.state = PAGER_REMOTE;
  } else if (p->config.manager->placement == MANAGER_PAGED) {
    unit.hints = (a->hints | (p->config.manager->reaches ? PAGER_REACHED : 0)) & PAGER_HINTS;
    unit.state = pager_away(&unit);
    unit.gpu_newest = false;
  } else if (a->kind == TRACE_MEMORY_MANAGED && pager_managed_pages(p)) {
    unit.mapped = a->mapped & PAGER_INDEX_MAX;
  } else if (a->kind == TRACE_MEMORY_MANAGED) {
    unit.gpu_newest = a->on_gpu;
    unit.cpu_newest = a->on_cpu;
  }
  return unit;
}

static uint32_t sibling_take(pager *p) {
  if (p->sibling_free) {
    uint32_t index = p->sibling_free;
    p->sibling_free = p->siblings[index]->next;
    return index;
  }
  if (p->sibling_count >= p->sibling_capacity) {
    p->sibling_capacity = p->sibling_capacity ? p->sibling_capacity * 2 : 64;
    p->siblings = ff_realloc(p->siblings, p->sibling_capacity * sizeof *p->siblings);
  }
  FF_ASSERT(p->sibling_count < PAGER_INDEX_MAX);
  p->siblings[p->sibling_count] = ff_alloc(sizeof(pager_sibling));
  return p->sibling_count++;
}

static void sibling_give(pager *p, uint32_t index) {
  p->siblings[index]->next = p->sibling_free;
  p->sibling_free = index;
}

/* Where the index of the unit behind this one is kept. */
static uint32_t *next_of(const pager *p, const pager_chunk *chunk, const pager_unit *unit) {
  uintptr_t place = ((uintptr_t)unit - (uintptr_t)chunk->units) / sizeof *unit; /* before them: huge */
  return place < units_per_chunk(p) ? &chunk->next[place] : &((pager_sibling *)(uintptr_t)unit)->next;
}

pager_unit *pager_sibling_behind(const pager *p, const pager_chunk *chunk, const pager_unit *unit) {
  return &p->siblings[*next_of(p, chunk, unit)]->unit;
}

/* Adds the unit behind the last one of the window. */
static void sibling_append(pager *p, pager_chunk *chunk, pager_unit *unit, pager_unit fresh) {
  uint32_t sibling = sibling_take(p);
  if (!chunk->next) chunk->next = ff_alloc(units_per_chunk(p) * sizeof *chunk->next);
  for (pager_unit *next; (next = pager_unit_next(p, chunk, unit));) unit = next;
  fresh.alias_tag = unit->alias_tag + 1;
  unit->shared = true;
  *next_of(p, chunk, unit) = sibling;
  p->siblings[sibling]->unit = fresh;
}

/* Adds the allocation's units to a chunk that it overlaps. */
static void chunk_attach(pager *p, pager_chunk *chunk, uint32_t index) {
  const pager_allocation *a = &p->allocations.items[index];
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  uint64_t begin = a->address > base ? a->address : base;
  uint64_t end = a->address + a->bytes < base + CHUNK_BYTES ? a->address + a->bytes : base + CHUNK_BYTES;
  uint64_t unmarked = 0, first = 0; /* windows that end here are to be marked, from `first` on */
  for (uint64_t w = round_down(begin, p->config.unit_bytes); w < end; w += p->config.unit_bytes) {
    pager_unit *unit = &chunk->units[(w - base) >> p->unit_shift], fresh = pager_unit_fresh(p, index, w);
    chunk->used++;
    /* most are: they only exist */
    if (!unit->allocation && fresh.state == PAGER_ABSENT && p->config.unit_bytes == FF_PAGE_BYTES) {
      uint32_t page = (uint32_t)((w - base) / FF_PAGE_BYTES);
      *unit = fresh;
      chunk->mapped.word[page / 64] |= UINT64_C(1) << page % 64;
      continue;
    }
    if (!unit->allocation) {
      *unit = fresh;
    } else {
      sibling_append(p, chunk, unit, fresh);
    }
    if (unmarked != w) {
      if (unmarked) pager_mark_windows(p, chunk, first, unmarked);
      first = w;
    }
    unmarked = w + p->config.unit_bytes;
  }
  if (unmarked) pager_mark_windows(p, chunk, first, unmarked);
}

/* Forgets an allocation's unit; its window's other units move up. Its frame, if it has one, is dropped. */
static void unit_detach(pager *p, pager_chunk *chunk, pager_unit *unit, uint32_t index, uint64_t address) {
  pager_unit *before = NULL;
  for (; unit->allocation != index; unit = pager_unit_next(p, chunk, unit)) {
    FF_ASSERT(unit->shared);
    before = unit;
  }
  FF_ASSERT((pager_managed_pages(p) || !unit->nacks) && unit->state != PAGER_IN_FLIGHT);
  pager_tier_old(p, unit, address);
  if (unit->state == PAGER_RESIDENT && p->config.manager->placement == MANAGER_PAGED) {
    p->resident -= pager_bytes(p, unit);
    pager_room_give(p, address, unit);
    p->dropped += pager_bytes(p, unit);
    pager_note(p, unit, address, OWNERS_GIVES, 0);
    p->config.hooks.left(p->config.hooks.context, address, unit);
    pager_tell(p, address, false);
  }
  if (unit->state == PAGER_REMOTE && p->config.manager->placement == MANAGER_PAGED)
    p->config.hooks.left(p->config.hooks.context, address, unit);
  if (!before && !unit->shared) {
    *unit = unowned;
    return;
  }
  /* the place of a sibling becomes free: its own, or that of the one that moves into the chunk */
  uint32_t *link = next_of(p, chunk, before ? before : unit), freed = *link;
  pager_sibling *gone = p->siblings[freed];
  if (before) before->shared = gone->unit.shared;
  else *unit = gone->unit;
  *link = gone->next;
  sibling_give(p, freed);
}

static void chunk_detach(pager *p, pager_chunk *chunk, uint32_t index) {
  const pager_allocation *a = &p->allocations.items[index];
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  uint64_t begin = a->address > base ? a->address : base;
  uint64_t end = a->address + a->bytes < base + CHUNK_BYTES ? a->address + a->bytes : base + CHUNK_BYTES;
  ff_pages before = chunk->moving;
  chunk->group_stale = UINT32_MAX;
  uint64_t first = round_down(begin, p->config.unit_bytes);
  for (uint64_t w = first; w < end; w += p->config.unit_bytes) {
    if (chunk->thrash) pager_thrash_forget(p, w);
    unit_detach(p, chunk, &chunk->units[(w - base) >> p->unit_shift], index, w);
    chunk->used--;
  }
  pager_mark_windows(p, chunk, first, round_up(end, p->config.unit_bytes));
  pager_tell_settled(p, chunk, &before);
}

pager_unit *pager_sibling_find(pager *p, pager_chunk *chunk, pager_unit *unit, uint64_t address) {
  for (pager_unit *u = unit; u; u = pager_unit_next(p, chunk, u)) {
    const pager_allocation *a = &p->allocations.items[u->allocation];
    if (address >= a->address && address - a->address < a->bytes) return u;
  }
  return unit;
}

/* ---- chunks ---- */

static pager_region **bucket_of(const pager *p, uint64_t region) {
  uint64_t hash = region * UINT64_C(0x9e3779b97f4a7c15);
  return &p->buckets[(hash >> 32) & (p->bucket_count - 1)];
}

static pager_region *region_lookup(const pager *p, uint64_t number) {
  pager_region *region = *bucket_of(p, number);
  while (region && region->number != number) region = region->next;
  return region;
}

static pager_chunk *chunk_lookup(const pager *p, uint64_t number) {
  const pager_region *region = region_lookup(p, number / PAGER_REGION_CHUNKS);
  return region ? region->chunks[number % PAGER_REGION_CHUNKS] : NULL;
}

bool pager_chunk_made(const pager *p, uint64_t number) { return chunk_lookup(p, number) != NULL; }

static void buckets_grow(pager *p) {
  uint32_t old_count = p->bucket_count;
  pager_region **old = p->buckets;
  p->bucket_count *= 2;
  p->buckets = ff_alloc(p->bucket_count * sizeof *p->buckets);
  for (uint32_t b = 0; b < old_count; b++)
    while (old[b]) {
      pager_region *region = old[b], **bucket = bucket_of(p, region->number);
      old[b] = region->next;
      region->next = *bucket;
      *bucket = region;
    }
  free(old);
}

static pager_region *region_make(pager *p, uint64_t number) {
  pager_region *region = region_lookup(p, number);
  if (region) return region;
  if (++p->region_count > p->bucket_count) buckets_grow(p);
  pager_region **bucket = bucket_of(p, number);
  region = ff_alloc(sizeof *region);
  region->number = number;
  region->next = *bucket;
  *bucket = region;
  return region;
}

static void region_drop(pager *p, pager_region *region) {
  pager_region **link = bucket_of(p, region->number);
  while (*link != region) link = &(*link)->next;
  *link = region->next;
  p->region_count--;
  if (p->cache[region->number % PAGER_CACHE].number == region->number)
    p->cache[region->number % PAGER_CACHE].number = UINT64_MAX;
  free(region);
}

size_t pager_first_behind(const pager *p, uint64_t address) {
  size_t low = 0, high = p->by_address.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const pager_allocation *a = &p->allocations.items[p->by_address.items[middle]];
    if (a->address + a->bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* The chunk with all allocations that overlap it; `zero_chunk` if none does. */
static pager_chunk *chunk_make(pager *p, uint64_t number) {
  uint64_t base = number << PAGER_CHUNK_SHIFT;
  size_t first = pager_first_behind(p, base);
  if (first == p->by_address.count || p->allocations.items[p->by_address.items[first]].address >= base + CHUNK_BYTES)
    return p->zero_chunk;
  pager_chunk *chunk = chunk_allocate(p, number);
  pager_region *region = region_make(p, number / PAGER_REGION_CHUNKS);
  region->chunks[number % PAGER_REGION_CHUNKS] = chunk;
  region->made++;
  p->chunk_count++;
  for (size_t i = first; i < p->by_address.count; i++) {
    if (p->allocations.items[p->by_address.items[i]].address >= base + CHUNK_BYTES) break;
    chunk_attach(p, chunk, p->by_address.items[i]);
  }
  return chunk;
}

pager_chunk *pager_chunk_find(pager *p, uint64_t number) {
  if (p->unowned[number % PAGER_CACHE] == number) return p->zero_chunk;
  pager_chunk *chunk = chunk_lookup(p, number);
  if (!chunk) chunk = chunk_make(p, number);
  uint64_t region = number / PAGER_REGION_CHUNKS;
  if (chunk == p->zero_chunk) {
    p->unowned[number % PAGER_CACHE] = number;
  } else {
    p->cache[region % PAGER_CACHE].number = region;
    p->cache[region % PAGER_CACHE].region = region_lookup(p, region);
  }
  return chunk;
}

uint32_t pager_chunk_next(const pager *p, const pager_chunk *chunk, uint32_t at, bool held) {
  uint32_t windows = units_per_chunk(p);
  while (at < windows) {
    uint64_t bits = chunk->windows[at / 64].in[PAGER_HELD], word = (held ? bits : ~bits) >> (at % 64);
    if (word) return at + (uint32_t)__builtin_ctzll(word) < windows ? at + (uint32_t)__builtin_ctzll(word) : windows;
    at = (at / 64 + 1) * 64;
  }
  return windows;
}

static void chunk_drop(pager *p, pager_chunk *chunk) {
  pager_region *region = region_lookup(p, chunk->number / PAGER_REGION_CHUNKS);
  region->chunks[chunk->number % PAGER_REGION_CHUNKS] = NULL;
  p->chunk_count--;
  if (!--region->made) region_drop(p, region);
  for (int s = 0; s < PAGER_SETS; s++) FF_ASSERT(!chunk->listed[s]);
  FF_ASSERT(!chunk->owed_listed);
  chunk_free(chunk);
}

/* ---- allocations ---- */

static uint32_t allocation_take(pager *p) {
  uint32_t index = p->free_allocation;
  if (index) {
    p->free_allocation = p->allocations.items[index].owner;
    return index;
  }
  FF_ASSERT(p->allocations.count < PAGER_INDEX_MAX);
  FF_PUSH(&p->allocations, ((pager_allocation){0}));
  return (uint32_t)p->allocations.count - 1;
}

/* What it takes of GPU memory when all of it is there. */
static uint64_t allocation_room(const pager *p, const pager_allocation *a) {
  if (a->kind == TRACE_MEMORY_PINNED || a->kind == TRACE_MEMORY_HOST) return 0;
  uint64_t piece = p->config.whole_blocks ? FF_BLOCK_BYTES : p->grain;
  return round_up(a->address + a->bytes, piece) - round_down(a->address, piece);
}

uint32_t pager_map(pager *p, uint64_t address, uint64_t bytes, trace_memory_kind kind, uint32_t owner) {
  if (!bytes || address + bytes < address) return 0;
  size_t at = pager_first_behind(p, address);
  if (at < p->by_address.count && p->allocations.items[p->by_address.items[at]].address < address + bytes) return 0;
  uint32_t index = allocation_take(p);
  p->allocations.items[index] = (pager_allocation){.address = address,
                                                   .bytes = bytes,
                                                   .kind = kind,
                                                   .owner = owner,
                                                   .live = true,
                                                   .mapped = p->unmappings,
                                                   .on_gpu = kind != TRACE_MEMORY_MANAGED,
                                                   .on_cpu = kind == TRACE_MEMORY_MANAGED,
                                                   .host_wrote = kind == TRACE_MEMORY_MANAGED};
  p->mapped += allocation_room(p, &p->allocations.items[index]);
  unowned_clear(p);
  FF_PUSH(&p->by_address, 0);
  memmove(&p->by_address.items[at + 1], &p->by_address.items[at], (p->by_address.count - 1 - at) * sizeof(uint32_t));
  p->by_address.items[at] = index;
  for (uint64_t n = address >> PAGER_CHUNK_SHIFT; n <= (address + bytes - 1) >> PAGER_CHUNK_SHIFT; n++) {
    pager_chunk *chunk = chunk_lookup(p, n);
    if (chunk) chunk_attach(p, chunk, index);
  }
  return index;
}

void pager_map_blank(pager *p, uint32_t allocation) {
  const manager *m = p->config.manager;
  p->allocations.items[allocation].blank = m->placement == MANAGER_PAGED && (m->segments || p->config.zeroes);
}

uint32_t pager_allocation_at(const pager *p, uint64_t address) {
  for (size_t at = pager_first_behind(p, address); at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address == address) return p->by_address.items[at];
    if (a->address > address) break;
  }
  return 0;
}

uint32_t pager_unmap(pager *p, uint64_t address) {
  uint32_t index = pager_allocation_at(p, address);
  if (!index) return 0;
  pager_allocation *a = &p->allocations.items[index];
  for (uint64_t n = a->address >> PAGER_CHUNK_SHIFT; n <= (a->address + a->bytes - 1) >> PAGER_CHUNK_SHIFT; n++) {
    pager_chunk *chunk = chunk_lookup(p, n);
    if (!chunk) continue;
    chunk_detach(p, chunk, index);
    if (!chunk->used) chunk_drop(p, chunk);
  }
  FF_ASSERT(!a->users);
  p->mapped -= allocation_room(p, a);
  *a = (pager_allocation){.address = address, .live = false, .owner = p->free_allocation, .bytes = a->bytes};
  p->free_allocation = index;
  size_t at = pager_first_behind(p, address);
  while (p->by_address.items[at] != index) at++;
  memmove(&p->by_address.items[at], &p->by_address.items[at + 1], (p->by_address.count - 1 - at) * sizeof(uint32_t));
  p->by_address.count--;
  return index;
}
