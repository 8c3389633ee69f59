/* SPDX-License-Identifier: Apache-2.0 */
/* What moves other than by far-faults: the host's reads and writes, fills and fetches by the GPU, whole managed
 * allocations; and the checks of the pager's equations. */
#include <string.h>

#include "paging/pager.h"

pager_walk pager_walk_begin(pager *p, uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
  return (pager_walk){.p = p, .at = address, .begin = address, .end = end};
}

/* Moves on to the next allocation in the range; false: there is none. */
static bool walk_enter(pager_walk *w) {
  pager *p = w->p;
  size_t position = pager_first_behind(p, w->at);
  if (position == p->by_address.count) return false;
  w->in = &p->allocations.items[p->by_address.items[position]];
  if (w->in->address > w->at) w->at = w->in->address;
  return w->at < w->end;
}

pager_unit *pager_walk_next(pager_walk *w) {
  if (w->at >= w->end) return NULL;
  if (!w->in && !walk_enter(w)) return NULL;
  uint64_t window = w->at & ~(w->p->config.unit_bytes - 1), next = window + w->p->config.unit_bytes;
  uint64_t allocation_end = w->in->address + w->in->bytes;
  uint64_t first = w->in->address > window ? w->in->address : window;
  uint64_t last = allocation_end < next ? allocation_end : next;
  bool same = w->chunk && w->chunk->number == window >> PAGER_CHUNK_SHIFT;
  if (!same) w->chunk = pager_chunk_at(w->p, w->at);
  pager_unit *unit = &w->chunk->units[window % FF_BLOCK_BYTES >> w->p->unit_shift];
  if (__builtin_expect(unit->shared, 0)) unit = pager_sibling_find(w->p, w->chunk, unit, w->at);
  w->covered = first >= w->begin && last <= w->end;
  w->address = w->at;
  w->first = first;
  w->at = w->last = last;
  if (last == allocation_end) w->in = NULL;
  return unit;
}

pager_held pager_set_begin(pager *p, pager_set set, uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
  pager_held h = {.p = p, .set = set, .begin = address, .end = end, .number = address >> PAGER_CHUNK_SHIFT};
  h.window = (uint32_t)((address & ((UINT64_C(1) << PAGER_CHUNK_SHIFT) - 1)) >> p->unit_shift);
  return h;
}

pager_held pager_held_begin(pager *p, uint64_t address, uint64_t bytes) {
  return pager_set_begin(p, PAGER_HELD, address, bytes);
}

/* To the next chunk that has anything in the set. */
static bool held_turn(pager_held *h) {
  uint64_t number;
  if (h->begin >= h->end || !ff_numbers_next(&h->p->chunks[h->set], h->number, &number) ||
      number > (h->end - 1) >> PAGER_CHUNK_SHIFT)
    return false;
  if (number != h->number) h->window = 0;
  h->number = number;
  h->chunk = pager_chunk_at(h->p, number << PAGER_CHUNK_SHIFT);
  return true;
}

/* To the next window that has anything in the set; false: there is none in the range. */
static bool held_advance(pager_held *h) {
  uint32_t windows = 1u << (PAGER_CHUNK_SHIFT - h->p->unit_shift);
  while (h->chunk || held_turn(h)) {
    while (h->window < windows) {
      uint64_t word = h->chunk->windows[h->window / 64].in[h->set] >> h->window % 64;
      if (word) h->window += (uint32_t)__builtin_ctzll(word);
      else h->window = (h->window / 64 + 1) * 64;
      if (word) return (h->number << PAGER_CHUNK_SHIFT) + ((uint64_t)h->window << h->p->unit_shift) < h->end;
    }
    h->chunk = NULL;
    h->number++;
    h->window = 0;
  }
  return false;
}

int pager_sets_of(const pager *p, const pager_unit *unit) {
  if (!unit->allocation || (unit->state != PAGER_RESIDENT && unit->state != PAGER_IN_FLIGHT)) return 0;
  if (unit->state != PAGER_RESIDENT || unit->fresh) return PAGER_HELD + 1;
  return p->allocations.items[unit->allocation].users ? PAGER_LOOSE + 1 : PAGER_SPARE + 1;
}

bool pager_in_set(const pager *p, const pager_unit *unit, pager_set set) { return pager_sets_of(p, unit) > (int)set; }

pager_unit *pager_held_next(pager_held *h) {
  pager *p = h->p;
  while (h->sibling || held_advance(h)) {
    pager_unit *unit = h->sibling ? h->sibling : &h->chunk->units[h->window];
    uint64_t window = (h->number << PAGER_CHUNK_SHIFT) + ((uint64_t)h->window << p->unit_shift);
    const pager_allocation *a = &p->allocations.items[unit->allocation];
    h->sibling = pager_unit_next(p, h->chunk, unit);
    if (!h->sibling) h->window++;
    h->address = a->address > window ? a->address : window;
    bool within = h->address < h->end && a->address + a->bytes > h->begin;
    if (within && pager_in_set(p, unit, h->set)) return unit;
  }
  return NULL;
}

void pager_moved(pager *p, const pager_unit *unit, bool in) {
  p->config.hooks.moved(p->config.hooks.context, p->allocations.items[unit->allocation].owner, in,
                        pager_bytes(p, unit));
}

void pager_zeroed(pager *p, const pager_unit *unit) {
  if (p->config.hooks.zeroed)
    p->config.hooks.zeroed(p->config.hooks.context, p->allocations.items[unit->allocation].owner, pager_bytes(p, unit));
}

static bool is_paged(const pager *p) { return p->config.manager->placement == MANAGER_PAGED; }

/* Nothing is in flight when memory is short (the machine waits for that), so there is always something to evict. */
static void unit_enters(pager *p, pager_unit *unit, uint64_t address) {
  FF_ASSERT(pager_may_come(unit));
  /* it is mapped elsewhere now */
  if (unit->state == PAGER_REMOTE) p->config.hooks.left(p->config.hooks.context, address, unit);
  unit->state = PAGER_ABSENT;
  bool room = pager_make_room(p, NULL, pager_room_wanted(p, address, unit));
  FF_ASSERT(room);
  unit->state = PAGER_RESIDENT;
  unit->prefetched = unit->fresh = unit->duplicate = false;
  unit->last_use = p->now;
  if (!p->allocations.items[unit->allocation].users) p->no_unused = false;
  pager_room_take(p, address, unit);
  p->resident += pager_bytes(p, unit);
  pager_mark(p, address, unit);
}

void pager_unit_appears(pager *p, pager_unit *unit, uint64_t address) {
  unit_enters(p, unit, address);
  unit->gpu_newest = unit->cpu_newest;
  p->filled += pager_bytes(p, unit);
  pager_note(p, unit, address, OWNERS_TAKES, 0);
  pager_zeroed(p, unit);
}

void pager_unit_leaves(pager *p, pager_unit *unit, uint64_t address) {
  FF_ASSERT(unit->state == PAGER_RESIDENT);
  pager_note(p, unit, address, OWNERS_GIVES, 0);
  unit->state = pager_away(unit);
  unit->duplicate = unit->cleaned = false;
  p->resident -= pager_bytes(p, unit);
  pager_room_give(p, address, unit);
  p->config.hooks.left(p->config.hooks.context, address, unit);
  pager_mark(p, address, unit);
}

/* The CPU's copy is made the newest; the page leaves the GPU if that takes a transfer. */
static void bring_back(pager *p, pager_unit *unit, uint64_t address, pager_moves *moves) {
  if (unit->state != PAGER_RESIDENT || unit->cpu_newest) return;
  FF_CHECK(unit->gpu_newest);
  moves->units++;
  moves->bytes += pager_bytes(p, unit);
  if (p->config.manager->coherent) {
    pager_clean_unit(p, unit, true, address);
    return;
  }
  unit->cpu_newest = unit->gpu_newest;
  pager_tier_put(p, unit, address);
  pager_unit_leaves(p, unit, address);
  p->moved_out += pager_bytes(p, unit);
  pager_moved(p, unit, false);
}

static void widen(const pager *p, uint64_t *address, uint64_t *bytes) {
  if (!p->config.ranges || !*bytes) return;
  uint64_t end = *address + *bytes < *address ? UINT64_MAX : *address + *bytes;
  *address &= ~(FF_BLOCK_BYTES - 1);
  *bytes = ((end - *address + FF_BLOCK_BYTES - 1) & ~(FF_BLOCK_BYTES - 1));
}

/* Partial pages: a request of the CPU takes the whole of each page back. What is not newer on the GPU is only
 * forgotten. */
void pager_whole_pages_back(pager *p, uint64_t address, uint64_t bytes, pager_moves *moves) {
  if (!p->config.ranges) return;
  widen(p, &address, &bytes);
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT);
    bring_back(p, unit, w.address, moves);
    if (unit->state != PAGER_RESIDENT) continue;
    pager_unit_leaves(p, unit, w.address);
    p->dropped += pager_bytes(p, unit);
  }
}

/* The next unit in the range that the host may want back: it is newer in GPU memory, or was cleaned; and others of the
 * same pieces of the page table. */
typedef struct owed_walk {
  pager_walk in; /* the piece */
  uint64_t number, begin, end;
} owed_walk;

static owed_walk owed_begin(pager *p, uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
  return (owed_walk){.in = {.p = p}, .number = address >> PAGER_CHUNK_SHIFT, .begin = address, .end = end};
}

static pager_unit *owed_next(owed_walk *w) {
  for (pager_unit *unit;;) {
    if ((unit = pager_walk_next(&w->in))) return unit;
    if (!ff_numbers_next(&w->in.p->owed, w->number, &w->number)) return NULL;
    uint64_t base = w->number << PAGER_CHUNK_SHIFT, from = base > w->begin ? base : w->begin;
    if (from >= w->end) return NULL;
    uint64_t left = (UINT64_C(1) << PAGER_CHUNK_SHIFT) - (from - base);
    w->in = pager_walk_begin(w->in.p, from, left < w->end - from ? left : w->end - from);
    w->number++;
  }
}

/* What is newer in GPU memory comes back. */
static pager_moves read_back(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  pager_whole_pages_back(p, address, bytes, &moves);
  owed_walk w = owed_begin(p, address, bytes);
  for (pager_unit *unit; (unit = owed_next(&w));) {
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT || unit->departs);
    bring_back(p, unit, w.in.address, &moves);
  }
  return moves;
}

pager_moves pager_host_read(pager *p, uint64_t address, uint64_t bytes) {
  if (!is_paged(p)) return (pager_moves){0};
  pager_moves moves = read_back(p, address, bytes);
  pager_tier_host_range(p, address, bytes);
  pager_check(p);
  return moves;
}

pager_moves pager_host_take(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (!is_paged(p)) return moves;
  moves = read_back(p, address, bytes);
  owed_walk w = owed_begin(p, address, bytes);
  for (pager_unit *unit; (unit = owed_next(&w));) {
    if (!unit->cleaned) continue;
    pager_unit_leaves(p, unit, w.in.address);
    p->dropped += pager_bytes(p, unit);
    moves.faults = 1;
  }
  if (moves.units) moves.faults = 1;
  pager_check(p);
  return moves;
}

pager_moves pager_host_write(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (!is_paged(p)) return moves;
  pager_whole_pages_back(p, address, bytes, &moves);
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT || unit->departs);
    if (w.covered && pager_speaks_for(p, unit, w.address)) pager_tier_put(p, unit, w.address);
    if (unit->state == PAGER_REMOTE && !pager_may_come(unit)) {
      if (!w.covered) pager_tier_host(p, unit, true, w.address);
      pager_written(unit, PAGER_CPU);
      continue;
    }
    if (!w.covered) bring_back(p, unit, w.address, &moves);
    if (!w.covered) pager_tier_host(p, unit, true, w.address);
    if (unit->state == PAGER_RESIDENT) {
      pager_unit_leaves(p, unit, w.address);
      p->dropped += pager_bytes(p, unit);
    }
    pager_written(unit, PAGER_CPU);
  }
  pager_check(p);
  return moves;
}

void pager_bring_in(pager *p, pager_unit *unit, bool keeps, uint64_t address, pager_moves *moves) {
  FF_CHECK(unit->cpu_newest);
  if (p->config.zeroes && pager_blank(p, unit)) {
    pager_unit_appears(p, unit, address);
    return;
  }
  uint8_t source = pager_source(p, unit, address);
  bool copies = keeps && unit->hints & PAGER_READ_MOSTLY;
  pager_tier_gpu(p, unit, address);
  unit_enters(p, unit, address);
  unit->gpu_newest = unit->cpu_newest;
  p->moved_in += pager_bytes(p, unit);
  *(unit->evicted ? &p->came_back : &p->came_first) += pager_bytes(p, unit);
  pager_note(p, unit, address, copies ? OWNERS_COPIES : OWNERS_TAKES, source);
  if (source && !copies) {
    pager_came_from_device(p, unit, address);
    pager_remark(p, address);
  }
  if (source) {
    p->from_devices[source - 1] += pager_bytes(p, unit);
  } else {
    moves->units++;
    moves->bytes += pager_bytes(p, unit);
  }
  pager_moved(p, unit, true);
}

pager_moves pager_gpu_fill(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (!is_paged(p)) return moves;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT);
    if (unit->state == PAGER_REMOTE && !pager_may_come(unit)) {
      pager_tier_host(p, unit, true, w.address);
      pager_written(unit, PAGER_CPU);
      continue;
    }
    if (pager_may_come(unit) && w.covered) {
      unit_enters(p, unit, w.address);
      p->filled += pager_bytes(p, unit);
      pager_note(p, unit, w.address, OWNERS_TAKES, 0);
    } else if (pager_may_come(unit)) {
      pager_bring_in(p, unit, false, w.address, &moves);
    }
    if (unit->duplicate) pager_note(p, unit, w.address, OWNERS_TAKES, 0);
    pager_written(unit, PAGER_GPU);
    pager_tier_old(p, unit, w.address);
    unit->duplicate = false;
    pager_remark(p, w.address);
  }
  pager_check(p);
  return moves;
}

pager_moves pager_gpu_fetch(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  if (!is_paged(p)) return moves;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    FF_ASSERT(unit->state != PAGER_IN_FLIGHT);
    if (pager_may_come(unit)) pager_bring_in(p, unit, false, w.address, &moves);
    pager_gpu_read(p, unit, w.address);
  }
  pager_check(p);
  return moves;
}

static uint64_t busy_until(pager *p, uint64_t address, uint64_t bytes, bool host) {
  uint64_t latest = pager_cleaning(p, address, bytes);
  if (!p->flight_count) return latest;
  widen(p, &address, &bytes);
  pager_held h = pager_held_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_held_next(&h));)
    if (unit->state == PAGER_IN_FLIGHT && !(host && unit->departs) && p->flights.items[unit->flight].lands > latest)
      latest = p->flights.items[unit->flight].lands;
  return latest;
}

uint64_t pager_busy_until(pager *p, uint64_t address, uint64_t bytes) { return busy_until(p, address, bytes, false); }

uint64_t pager_host_busy_until(pager *p, uint64_t address, uint64_t bytes) {
  return busy_until(p, address, bytes, true);
}

uint64_t pager_all_busy_until(const pager *p) {
  uint64_t latest = p->flight_count ? p->lands_last : 0;
  return p->cleaning.bytes && p->cleaning.until > latest ? p->cleaning.until : latest;
}

/* ---- MANAGER_PROGRAM ---- */

void pager_copy_write(pager *p, uint64_t address, uint64_t bytes) {
  if (p->config.manager->placement != MANAGER_PROGRAM) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));)
    if (unit->state == PAGER_RESIDENT) {
      pager_written(unit, PAGER_GPU);
      p->allocations.items[unit->allocation].on_cpu = false;
    }
}

/* Sets the copies of all units of the allocation that exist as table entries; the others follow on_gpu and on_cpu. */
static void managed_copy(pager *p, uint32_t index, bool to_gpu) {
  const pager_allocation *a = &p->allocations.items[index];
  pager_walk w = pager_walk_begin(p, a->address, a->bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (unit->allocation != index) continue;
    FF_CHECK(to_gpu ? unit->cpu_newest : unit->gpu_newest);
    if (to_gpu) unit->gpu_newest = unit->cpu_newest;
    else unit->cpu_newest = unit->gpu_newest;
  }
}

bool pager_managed_on_gpu(const pager_allocation *a) { return a->on_gpu && !(a->host_wrote && a->on_cpu); }

uint64_t pager_managed_in(pager *p, uint32_t index) {
  pager_allocation *a = &p->allocations.items[index];
  if (!a->live || a->kind != TRACE_MEMORY_MANAGED || pager_managed_on_gpu(a)) return 0;
  managed_copy(p, index, true);
  a->on_gpu = true;
  a->host_wrote = false;
  p->config.hooks.moved(p->config.hooks.context, a->owner, true, a->bytes);
  return a->bytes;
}

uint64_t pager_managed_out(pager *p, uint32_t index) {
  pager_allocation *a = &p->allocations.items[index];
  if (!a->live || a->kind != TRACE_MEMORY_MANAGED || a->on_cpu) return 0;
  managed_copy(p, index, false);
  a->on_cpu = true;
  p->config.hooks.moved(p->config.hooks.context, a->owner, false, a->bytes);
  return a->bytes;
}

void pager_managed_host_write(pager *p, uint64_t address, uint64_t bytes) {
  if (p->config.manager->placement != MANAGER_PROGRAM) return;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    pager_allocation *a = &p->allocations.items[unit->allocation];
    if (a->kind != TRACE_MEMORY_MANAGED) continue;
    FF_CHECK(unit->cpu_newest || w.covered);
    pager_written(unit, PAGER_CPU);
    a->host_wrote = true;
    a->on_gpu = false;
  }
}

/* ---- checks ---- */

void pager_check(const pager *p) {
  if (ff_check_level < 2 || !is_paged(p)) return;
  uint64_t held = p->config.whole_blocks ? p->held_blocks * FF_BLOCK_BYTES : p->resident + p->in_flight;
  FF_ASSERT(held + p->free == p->memory && p->resident + p->in_flight <= held);
  FF_ASSERT(p->moved_in + p->filled - p->moved_out - p->dropped == p->resident);
  FF_ASSERT(p->came_back + p->came_first == p->moved_in);
}

/* What is kept of sets of units and of uses is what the units say. */
static void sets_check(pager *p, pager_chunk *chunk) {
  uint32_t units = 1u << (PAGER_CHUNK_SHIFT - p->unit_shift);
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  bool moving = false, owed = false;
  for (size_t w = 0; w < FF_BLOCK_PAGES / 64; w++) {
    moving |= chunk->moving.word[w] != 0;
    owed |= chunk->dirty.word[w] || chunk->cleaned.word[w];
  }
  FF_ASSERT(chunk->moves == moving);
  FF_ASSERT(chunk->owed_listed == owed && ff_numbers_has(&p->owed, chunk->number) == owed);
  for (int s = 0; s < PAGER_SETS; s++) {
    uint32_t count = 0;
    for (uint32_t u = 0; u < units; u++) {
      const pager_unit *unit = &chunk->units[u];
      while (!pager_in_set(p, unit, s) && unit->shared) unit = pager_unit_next(p, chunk, unit);
      FF_ASSERT((chunk->windows[u / 64].in[s] >> u % 64 & 1) == pager_in_set(p, unit, s));
      count += pager_in_set(p, unit, s);
    }
    bool stays = s != PAGER_HELD && p->config.whole_blocks && moving;
    FF_ASSERT(chunk->counts[s] == count && chunk->listed[s] == (count && !stays) &&
              ff_numbers_has(&p->chunks[s], chunk->number) == chunk->listed[s]);
  }
  if (!p->config.evict || p->config.unit_bytes > FF_GROUP_BYTES) return;
  for (uint32_t g = 0; g < FF_BLOCK_BYTES / FF_GROUP_BYTES; g++)
    FF_ASSERT(chunk->group_stale >> g & 1 ||
              chunk->group_use[g] == pager_latest_use(p, base + g * FF_GROUP_BYTES, FF_GROUP_BYTES));
}

/* The sets of pages that policies see are what the units say. */
static void pages_check(pager *p, pager_chunk *chunk) {
  ff_pages sets[4] = {chunk->mapped, chunk->valid, chunk->moving, chunk->dirty};
  for (uint64_t at = 0; at < UINT64_C(1) << PAGER_CHUNK_SHIFT; at += p->config.unit_bytes)
    pager_mark_window(p, chunk, (chunk->number << PAGER_CHUNK_SHIFT) + at);
  const ff_pages again[4] = {chunk->mapped, chunk->valid, chunk->moving, chunk->dirty};
  FF_ASSERT(!memcmp(sets, again, sizeof sets));
}

static void unit_check(const pager *p, const pager_unit *unit, uint64_t *resident, uint64_t *in_flight) {
  if (!unit->allocation) return;
  FF_ASSERT(p->allocations.items[unit->allocation].live);
  if (unit->state == PAGER_RESIDENT) *resident += pager_bytes(p, unit);
  if (unit->state == PAGER_IN_FLIGHT && unit->flight_kind != PAGER_FLIGHT_MAPPED) *in_flight += pager_bytes(p, unit);
  FF_ASSERT(!unit->duplicate || unit->cpu_newest || p->config.owners);
  FF_ASSERT(unit->cpu_newest || (unit->state == PAGER_RESIDENT && unit->gpu_newest));
  FF_ASSERT(unit->state != PAGER_IN_FLIGHT || p->flights.items[unit->flight].bytes);
  FF_ASSERT(unit->state == PAGER_IN_FLIGHT || !unit->departs);
}

static void chunk_check(pager *p, pager_chunk *chunk, uint64_t *resident, uint64_t *in_flight) {
  uint32_t units = 1u << (PAGER_CHUNK_SHIFT - p->unit_shift);
  sets_check(p, chunk);
  pages_check(p, chunk);
  for (uint32_t u = 0; u < units; u++)
    for (const pager_unit *unit = &chunk->units[u]; unit; unit = pager_unit_next(p, chunk, unit)) {
      unit_check(p, unit, resident, in_flight);
      pager_tier_check(p, unit, (chunk->number << PAGER_CHUNK_SHIFT) + ((uint64_t)u << p->unit_shift));
    }
}

void pager_check_all(pager *p) {
  pager_check(p);
  if (p->config.tiers) tiers_check(p->config.tiers);
  if (pager_managed_pages(p)) pager_managed_check(p);
  if (!is_paged(p)) return;
  uint64_t resident = 0, in_flight = 0;
  for (uint32_t b = 0; b < p->bucket_count; b++)
    for (const pager_region *region = p->buckets[b]; region; region = region->next)
      for (uint32_t c = 0; c < PAGER_REGION_CHUNKS; c++)
        if (region->chunks[c]) chunk_check(p, region->chunks[c], &resident, &in_flight);
  FF_ASSERT(resident == p->resident && in_flight == p->in_flight);
  if (!p->config.manager->batches)
    for (uint32_t sm = 0; sm < p->config.sms; sm++) FF_ASSERT(p->sms[sm].pending <= p->config.allotment);
}

void pager_break_for_test(pager *p, uint64_t address) { pager_written(pager_find(p, address), 0); }
