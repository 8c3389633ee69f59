/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pager asks policies (farfault/policy.h): what to bring along with a far-fault, and what to evict when GPU
 * memory is full. A proposal is walked unit by unit; what is not in the right state, not mapped or does not fit is
 * skipped.
 *
 *     pager_make_room:  enough free? -> all that the evictor proposes, in order -> whatever the hand comes upon
 *     pager_prefetch:   prefetcher's proposals, in order; neighbours travel in one transfer
 *     pager_keep_free:  free < low? -> the same until free >= high, before anyone waits for it
 *
 * A unit that came for a far-fault is not evicted before the access that wanted it was made, unless nothing else is
 * left: otherwise a memory of a few pages could throw out what it has just waited for, for ever. */
#include <stdlib.h>
#include <string.h>

#include "paging/pager.h"

enum { MAX_PROPOSALS = 1 << 16, GROUP_PAGES = FF_GROUP_BYTES / FF_PAGE_BYTES, MAX_SKIPS = 64 };
#define USE_PS UINT64_C(1000000) /* a walk and an access take less than this microsecond */

/* ---- what policies see ---- */

static pager *pager_of(const ff_view *view) { return (pager *)((char *)(uintptr_t)view - offsetof(pager, view)); }

static uint64_t view_free(const ff_view *view) { return pager_of(view)->free; }

/* Of a piece of the page table that was never looked up and that one allocation fills, all units are as they begin:
 * *unit. It is not made only to be shown to a policy, which may look at all of memory. false: it was, or several
 * allocations share it. */
static bool never_touched(const pager *p, uint64_t block, pager_unit *unit) {
  if (pager_chunk_made(p, block >> PAGER_CHUNK_SHIFT)) return false;
  size_t at = pager_first_behind(p, block);
  if (at == p->by_address.count) return false;
  uint32_t index = p->by_address.items[at];
  const pager_allocation *a = &p->allocations.items[index];
  if (a->address > block || a->address + a->bytes - block < FF_BLOCK_BYTES) return false;
  *unit = pager_unit_fresh(p, index, block);
  return true;
}

static void view_block(const ff_view *view, uint64_t address, ff_block *block) {
  pager_unit unit;
  if (never_touched(pager_of(view), address & ~(FF_BLOCK_BYTES - 1), &unit)) {
    *block = (ff_block){.address = address & ~(FF_BLOCK_BYTES - 1)};
    if (unit.state != PAGER_REMOTE || pager_may_come(&unit)) memset(&block->mapped, 0xff, sizeof block->mapped);
    if (unit.state == PAGER_RESIDENT) memset(&block->valid, 0xff, sizeof block->valid);
    return;
  }
  const pager_chunk *chunk = pager_chunk_at(pager_of(view), address); /* of `zero_chunk` all sets are empty */
  *block = (ff_block){.address = address & ~(FF_BLOCK_BYTES - 1),
                      .mapped = chunk->mapped,
                      .valid = chunk->valid,
                      .moving = pager_block_stays(pager_of(view), chunk) ? chunk->valid : chunk->moving,
                      .dirty = chunk->dirty};
}

static uint64_t view_blank_bytes(const ff_view *view, uint64_t address, uint64_t bytes) {
  pager *p = pager_of(view);
  uint64_t blank = 0;
  pager_unit fresh;
  if (bytes == FF_BLOCK_BYTES && !(address % FF_BLOCK_BYTES) && never_touched(p, address, &fresh))
    return pager_may_come(&fresh) && pager_blank(p, &fresh) ? FF_BLOCK_BYTES : 0;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (pager_may_come(unit) && pager_blank(p, unit)) blank += pager_bytes(p, unit);
  return blank;
}

static bool moves(const pager_allocation *a) {
  return a->kind == TRACE_MEMORY_DEVICE || a->kind == TRACE_MEMORY_MANAGED;
}

static bool view_next_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const pager *p = pager_of(view);
  for (size_t at = pager_first_behind(p, address); at < p->by_address.count; at++) {
    uint32_t index = p->by_address.items[at];
    const pager_allocation *a = &p->allocations.items[index];
    if (a->address < address || !moves(a)) continue;
    *allocation = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = index};
    return true;
  }
  return false;
}

static bool view_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const pager *p = pager_of(view);
  size_t at = pager_first_behind(p, address);
  if (at == p->by_address.count) return false;
  uint32_t index = p->by_address.items[at];
  const pager_allocation *a = &p->allocations.items[index];
  if (a->address > address || !moves(a)) return false;
  *allocation = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = index};
  return true;
}

uint64_t pager_latest_use(pager *p, uint64_t address, uint64_t bytes) {
  uint64_t latest = 0;
  pager_held h = pager_held_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_held_next(&h));)
    if (unit->state == PAGER_RESIDENT && unit->last_use > latest) latest = unit->last_use;
  return latest;
}

uint64_t pager_group_use(pager *p, pager_chunk *chunk, uint32_t group) {
  if (chunk->group_stale >> group & 1) {
    chunk->group_use[group] =
        pager_latest_use(p, (chunk->number << PAGER_CHUNK_SHIFT) + group * FF_GROUP_BYTES, FF_GROUP_BYTES);
    chunk->group_stale &= ~(UINT32_C(1) << group);
  }
  return chunk->group_use[group];
}

/* Whole groups of a block are answered from what is kept of them. */
static uint64_t view_last_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  pager *p = pager_of(view);
  uint64_t offset = address % FF_BLOCK_BYTES, latest = 0;
  bool groups = (address | bytes) % FF_GROUP_BYTES == 0 && bytes <= FF_BLOCK_BYTES - offset &&
                p->config.unit_bytes <= FF_GROUP_BYTES;
  if (!groups) return pager_latest_use(p, address, bytes);
  pager_chunk *chunk = pager_chunk_at(p, address);
  if (!chunk->counts[PAGER_HELD]) return 0;
  for (uint32_t g = (uint32_t)(offset / FF_GROUP_BYTES); g < (offset + bytes) / FF_GROUP_BYTES; g++) {
    uint64_t use = pager_group_use(p, chunk, g);
    if (use > latest) latest = use;
  }
  return latest;
}

static uint64_t view_next_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  const pager *p = pager_of(view);
  if (!p->config.future) return FF_NEVER;
  uint64_t next = trace_future_next_use(p->config.future, address, bytes, p->position);
  return next <= p->position_last ? p->position : next; /* blocks that run together have no order among them */
}

static uint64_t view_next_position(const ff_view *view, uint64_t address, uint64_t bytes) {
  const pager *p = pager_of(view);
  return p->config.future ? trace_future_next_use(p->config.future, address, bytes, p->position) : FF_NEVER;
}

static uint64_t view_first_touch(const ff_view *view, uint64_t index) {
  const pager *p = pager_of(view);
  return p->config.future ? trace_future_first_touch(p->config.future, index) : FF_NEVER;
}

static uint64_t view_random(ff_view *view) { /* splitmix64 */
  uint64_t x = pager_of(view)->random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static void view_propose(ff_view *view, uint64_t address, uint64_t bytes) {
  pager_proposals *proposals = pager_of(view)->proposals;
  if (!proposals || !bytes || proposals->count == MAX_PROPOSALS) return;
  if (bytes > UINT64_MAX - address) bytes = UINT64_MAX - address;
  FF_PUSH(proposals, ((pager_range){address, bytes}));
}

void pager_view_init(pager *p) {
  p->view = (ff_view){.unit_bytes = p->config.unit_bytes,
                      .capacity = p->config.memory_bytes,
                      .free_bytes = view_free,
                      .block = view_block,
                      .allocation = view_allocation,
                      .next_allocation = view_next_allocation,
                      .last_use = view_last_use,
                      .next_use = view_next_use,
                      .first_touch = view_first_touch,
                      .random = view_random,
                      .propose = view_propose,
                      .next_position = view_next_position,
                      .blank_bytes = view_blank_bytes};
}

/* ---- memory ---- */

uint64_t pager_room_wanted(pager *p, uint64_t address, const pager_unit *unit) {
  if (!p->config.whole_blocks) return pager_bytes(p, unit);
  return pager_chunk_at(p, address)->holding ? 0 : FF_BLOCK_BYTES;
}

void pager_room_take(pager *p, uint64_t address, const pager_unit *unit) {
  uint64_t bytes = pager_room_wanted(p, address, unit);
  FF_ASSERT(p->free >= bytes);
  p->free -= bytes;
  pager_chunk *chunk = pager_chunk_at(p, address);
  if (p->config.whole_blocks && !chunk->holding) p->held_blocks++;
  chunk->holding++;
  if (p->memory - p->free > p->resident_peak) p->resident_peak = p->memory - p->free;
}

void pager_room_give(pager *p, uint64_t address, const pager_unit *unit) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  FF_ASSERT(chunk->holding);
  chunk->holding--;
  if (!p->config.whole_blocks) {
    p->free += pager_bytes(p, unit);
  } else if (!chunk->holding) {
    p->free += FF_BLOCK_BYTES;
    p->held_blocks--;
  }
}

uint64_t pager_room_ready(pager *p) {
  uint64_t at = p->room_at;
  p->room_at = 0;
  return at;
}

/* ---- eviction ---- */

static void evict(pager *p, const fault_request *request, pager_unit *unit, uint64_t address, pager_marks *marks) {
  bool dirty = !unit->cpu_newest, write_back = dirty || (p->config.copy_clean && !unit->duplicate);
  FF_CHECK(!dirty || unit->gpu_newest);
  if (write_back) pager_tier_arrive(p, unit, address);
  uint64_t free_at = p->config.hooks.evicted(p->config.hooks.context, request, address, unit, write_back);
  if (p->room_at < free_at) p->room_at = free_at;
  unit->cpu_newest = true;
  unit->state = pager_away(unit);
  unit->duplicate = unit->cleaned = false;
  unit->populated |= write_back;
  unit->evicted = true;
  p->resident -= pager_bytes(p, unit);
  pager_room_give(p, address, unit);
  if (write_back) {
    p->moved_out += pager_bytes(p, unit);
    p->config.hooks.moved(p->config.hooks.context, p->allocations.items[unit->allocation].owner, false,
                          pager_bytes(p, unit));
  } else {
    p->dropped += pager_bytes(p, unit);
  }
  pager_note(p, unit, address, OWNERS_GIVES, 0);
  p->config.hooks.left(p->config.hooks.context, address, unit);
  pager_marks_add(p, marks, address, unit);
}

static pager_set may_go(bool used_too) { return used_too ? PAGER_LOOSE : PAGER_SPARE; }

static void evict_range(pager *p, const fault_request *request, uint64_t address, uint64_t bytes, bool used_too) {
  pager_held h = pager_set_begin(p, may_go(used_too), address, bytes);
  pager_marks marks = {0};
  for (pager_unit *unit; (unit = pager_held_next(&h));) evict(p, request, unit, h.address, &marks);
  pager_marks_end(p, &marks);
}

/* Of one window, in order of address: several small allocations may share it. */
static void sweep_window(pager *p, const fault_request *request, uint64_t window, uint64_t bytes, pager_set set) {
  pager_marks marks = {0};
  p->hand_address = window + p->config.unit_bytes;
  for (size_t at = pager_first_behind(p, window); p->free < bytes && at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    uint64_t address = a->address > window ? a->address : window;
    if (address - window >= p->config.unit_bytes) break;
    pager_unit *unit = pager_find(p, address);
    if (unit->state == PAGER_RESIDENT && pager_in_set(p, unit, set)) evict(p, request, unit, address, &marks);
  }
  pager_marks_end(p, &marks);
}

/* Of the chunk's windows the last one in [first, end) that holds anything, plus 1; 0: there is none. */
static uint32_t last_held(const pager_chunk *chunk, uint32_t first, uint32_t end) {
  while (first < end) {
    uint64_t word = chunk->windows[(end - 1) / 64].in[PAGER_HELD] & UINT64_MAX >> (63 - (end - 1) % 64);
    uint32_t found = word ? (end - 1) / 64 * 64 + 64 - (uint32_t)__builtin_clzll(word) : 0;
    if (word) return found > first ? found : 0;
    end = (end - 1) / 64 * 64;
  }
  return 0;
}

/* The address behind the last window in [begin, end), whole windows, that holds anything; of a block that goes whole or
 * not at all its first window counts. 0: there is none. */
static uint64_t behind_last_held(pager *p, uint64_t begin, uint64_t end) {
  uint64_t number;
  if (begin >= end || !ff_numbers_previous(&p->chunks[PAGER_HELD], (end - 1) >> PAGER_CHUNK_SHIFT, &number)) return 0;
  const pager_chunk *chunk = pager_chunk_at(p, number << PAGER_CHUNK_SHIFT);
  uint64_t base = number << PAGER_CHUNK_SHIFT;
  uint32_t windows = 1u << (PAGER_CHUNK_SHIFT - p->unit_shift),
           first = begin > base ? (uint32_t)((begin - base) >> p->unit_shift) : 0;
  if (end - base < FF_BLOCK_BYTES) windows = (uint32_t)((end - base) >> p->unit_shift);
  uint32_t found = first < windows ? last_held(chunk, first, windows) : 0;
  if (found && p->config.whole_blocks) found = pager_chunk_next(p, chunk, first, true) + 1;
  if (found) return base + ((uint64_t)found << p->unit_shift);
  return base > begin ? behind_last_held(p, begin, base) : 0;
}

/* A search that finds too little ends where all that holds anything has been passed once. */
static void hand_passes_all(pager *p, uint64_t hand, bool turned) {
  uint64_t behind = behind_last_held(p, 0, hand);
  if (!behind && !turned) behind = behind_last_held(p, hand, UINT64_MAX);
  if (behind && (!turned || behind > p->hand_address)) p->hand_address = behind;
}

/* Goes round all that is in the set, from where the last search ended. */
static void evict_by_hand(pager *p, const fault_request *request, uint64_t bytes, pager_set set) {
  uint64_t hand = p->hand_address;
  bool turned = false;                      /* something was found before the hand */
  for (int round = 0; round < 2; round++) { /* from the hand to the end, then from the beginning to it */
    pager_held h = pager_set_begin(p, set, round ? 0 : hand, round ? hand : UINT64_MAX);
    while (p->free < bytes && pager_held_next(&h)) {
      uint64_t window = h.address & ~(p->config.unit_bytes - 1), next = window + p->config.unit_bytes;
      h = pager_set_begin(p, set, next, next ? h.end - next : 0); /* 0: it was the topmost window of all */
      sweep_window(p, request, window, bytes, set);
      turned = round == 1;
    }
  }
  if (p->free < bytes) hand_passes_all(p, hand, turned);
}

/* Of whole blocks it is asked for one at a time: how much its pages make says nothing about the memory they hold. */
static void ask_evictor(pager *p, const fault_request *request, uint64_t bytes, bool used_too) {
  const ff_policy *policy = p->config.evict;
  if (!policy || !policy->evict) return;
  pager_view_update(p);
  p->to_evict.count = 0;
  p->proposals = &p->to_evict;
  policy->evict(p->config.evict_state, &p->view, p->config.whole_blocks ? 1 : bytes);
  p->proposals = NULL;
  for (size_t i = 0; i < p->to_evict.count; i++)
    evict_range(p, request, p->to_evict.items[i].address, p->to_evict.items[i].bytes, used_too);
}

static void make_room_of(pager *p, const fault_request *request, uint64_t bytes, bool used_too) {
  for (uint64_t before = UINT64_MAX; p->free < bytes && p->resident < before;) { /* as long as it helps */
    before = p->resident;
    ask_evictor(p, request, bytes - p->free, used_too);
  }
  if (p->free < bytes) evict_by_hand(p, request, bytes, may_go(used_too));
}

/* All that is there came for far-faults. What came just now stays until the warps that were woken can have used it, and
 * who wants room tries again then: else two that take the only room from each other would never get on. */
static bool waits_for_uses(pager *p) {
  if (!p->may_wait || !p->config.hooks.retry || p->now >= p->landed + USE_PS) return false;
  if (!p->retrying) p->config.hooks.retry(p->config.hooks.context, p->landed + USE_PS);
  p->retrying = true;
  return true;
}

bool pager_make_room(pager *p, const fault_request *request, uint64_t bytes) {
  if (p->free >= bytes) return true;
  if (!p->resident) return false;
  /* First what no launch has declared. Where nothing waits for what is absent (reaches), what was used longest ago is
   * the better choice, but what comes for a launch takes nothing of another's. */
  if (p->used_allocations && !p->no_unused && (p->spare_used || !p->config.manager->reaches)) {
    make_room_of(p, request, bytes, false);
    p->no_unused = p->free < bytes;
  }
  if (p->free < bytes && !p->spare_used) make_room_of(p, request, bytes, true);
  /* While something is on its way a landing comes, and what has come will have been used. */
  if (p->free < bytes && !p->spare_used && !p->in_flight && !waits_for_uses(p))
    evict_by_hand(p, request, bytes, PAGER_HELD);
  pager_check(p);
  return p->free >= bytes;
}

/* ---- segments ---- */

static void mark_declared(pager *p, const pager_allocation *a) {
  pager_held h = pager_held_begin(p, a->address, a->bytes);
  while (pager_held_next(&h)) pager_mark_declared(p, h.chunk, h.address & ~(p->config.unit_bytes - 1));
}

void pager_declare(pager *p, uint32_t allocation, bool declared) {
  pager_allocation *a = &p->allocations.items[allocation];
  FF_ASSERT(a->live && (declared || a->users));
  if (declared) {
    p->used_allocations += !a->users++;
    if (a->users == 1) mark_declared(p, a);
  } else {
    p->used_allocations -= !--a->users;
    p->no_unused = false;
    if (!a->users) mark_declared(p, a);
  }
}

uint64_t pager_request(pager *p, const fault_request *request, uint64_t address, uint64_t bytes) {
  uint64_t before = p->in_flight;
  p->to_bring.count = 0;
  FF_PUSH(&p->to_bring, ((pager_range){address, bytes}));
  p->spare_used = true;
  pager_bring(p, request, true);
  p->spare_used = false;
  return p->in_flight - before;
}

/* ---- watermarks ---- */

static uint64_t watermark(const pager *p, uint64_t bytes, double share) {
  if (share > 0) bytes = (uint64_t)(share * (double)p->memory);
  if (bytes > p->memory / 2) bytes = p->memory / 2;
  return bytes & ~(FF_PAGE_BYTES - 1);
}

void pager_watermarks_set(pager *p) {
  const watermarks *w = &p->config.watermarks;
  p->low = watermark(p, w->low, w->low_share);
  p->high = watermark(p, w->high, w->high_share);
  if (p->high < p->low) p->high = p->low;
}

void pager_keep_free(pager *p, const fault_request *request) {
  if (p->free >= p->low || p->mapped <= p->memory || !p->resident) return;
  p->ahead = true;
  make_room_of(p, request, p->high, !p->used_allocations); /* what a launch has declared stays */
  p->ahead = false;
  pager_check(p);
}

/* ---- prefetch ---- */

static uint32_t *reached_of(pager_chunk *chunk, uint64_t address) {
  return &chunk->reached[address % FF_BLOCK_BYTES / FF_GROUP_BYTES];
}

/* A run of neighbouring units that travel together. */
typedef struct run {
  uint64_t address, end;
  pager_unit *first;
  uint32_t flight;
  pager_marks marks; /* of its units */
} run;

static void run_start(pager *p, const fault_request *request, run *r) {
  if (!r->flight) return;
  pager_marks_end(p, &r->marks);
  pager_tier_flight(p, r->flight, r->address, r->end - r->address);
  uint64_t lands = p->config.hooks.fetch(p->config.hooks.context, request, r->address, r->end - r->address, r->flight,
                                         r->first, pager_room_ready(p));
  pager_flight_set(p, r->flight, r->address, r->end - r->address, lands);
  const pager_hooks *hooks = &p->config.hooks;
  bool later = hooks->departs && hooks->departs(hooks->context, request, r->end - r->address, r->flight, lands);
  if (manager_departs(p->config.manager) && !later) pager_depart(p, r->flight);
  if (p->serving && !p->spare_used) FF_PUSH(&p->batch_flights, r->flight);
  *r = (run){0};
}

static void bring_range(pager *p, const fault_request *request, uint64_t address, uint64_t bytes, bool may_evict,
                        run *r) {
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    /* a throttled request brings it by itself */
    if (!(p->counting ? pager_counted(unit) : pager_may_come(unit)) ||
        (unit->nacks && !p->serving && !p->config.ranges))
      continue;
    if (pager_stays(unit) || (!unit->nacks && pager_thrashes(p, w.chunk, w.address))) continue;
    bool blank = pager_blank(p, unit) && !unit->nacks, zeroes = p->config.zeroes && pager_blank(p, unit);
    if (p->blank_only && !blank) continue;
    if (p->idles && blank && p->config.manager->reaches && !p->allocations.items[unit->allocation].users) {
      p->blank_skipped = true; /* the host may write it before any launch does */
      continue;
    }
    uint64_t wanted = pager_room_wanted(p, w.address, unit);
    if (p->free < wanted) pager_marks_end(p, &r->marks);
    if (p->free < wanted && !(may_evict && pager_make_room(p, request, wanted))) return;
    if (blank && (p->spare_used || p->config.manager->reaches || (zeroes && p->idles))) {
      pager_marks_end(p, &r->marks);
      pager_unit_appears(p, unit, w.address);
      continue;
    }
    uint64_t begin = w.first & ~(p->grain - 1);
    uint8_t source = zeroes ? 0 : pager_source(p, unit, w.address);
    bool joins = r->flight && source == r->first->source && zeroes == (r->first->flight_kind == PAGER_FLIGHT_ZEROED) &&
                 begin <= r->end && begin >= r->address &&
                 begin >> PAGER_CHUNK_SHIFT == r->address >> PAGER_CHUNK_SHIFT &&
                 /* what is reached meanwhile waits for its group only */
                 !(p->config.manager->reaches && begin % FF_GROUP_BYTES == 0);
    if (!joins) {
      run_start(p, request, r);
      *r = (run){.address = begin, .first = unit, .flight = pager_flight_take(p)};
    }
    r->end = (w.last + p->grain - 1) & ~(p->grain - 1);
    unit->departs = unit->state == PAGER_REMOTE;
    if (unit->starved) pager_starved_drop(p, unit); /* a gap that closes holds one whose far-fault waits for room */
    unit->state = PAGER_IN_FLIGHT;
    unit->flight = r->flight & PAGER_INDEX_MAX;
    unit->source = source;
    unit->flight_kind = unit->hints & PAGER_READ_MOSTLY ? PAGER_FLIGHT_COPIED : PAGER_FLIGHT_MOVED;
    if (zeroes) unit->flight_kind = PAGER_FLIGHT_ZEROED;
    unit->prefetched = !unit->nacks;
    if (p->serving && unit->flight_kind == PAGER_FLIGHT_MOVED) pager_thrash_event(p, w.address, PAGER_GPU, p->now);
    pager_room_take(p, w.address, unit);
    p->in_flight += pager_bytes(p, unit);
    *reached_of(w.chunk, w.address) = 0;
    pager_marks_add(p, &r->marks, w.address, unit);
  }
}

void pager_bring(pager *p, const fault_request *request, bool may_evict) {
  run r = {0};
  for (size_t i = 0; i < p->to_bring.count; i++)
    bring_range(p, request, p->to_bring.items[i].address, p->to_bring.items[i].bytes, may_evict, &r);
  run_start(p, request, &r);
  pager_check(p);
}

void pager_ask_prefetcher(pager *p, const ff_fault *faults, size_t count) {
  const ff_policy *policy = p->config.prefetch;
  if (!policy || !policy->faulted) return;
  pager_view_update(p);
  p->proposals = &p->to_bring;
  policy->faulted(p->config.prefetch_state, &p->view, faults, count);
  p->proposals = NULL;
}

void pager_prefetch(pager *p, const fault_request *request, const ff_fault *faults, size_t count) {
  p->to_bring.count = 0;
  pager_ask_prefetcher(p, faults, count);
  pager_bring(p, request, true);
}

/* ---- what the GPU reaches over the link ---- */

bool pager_reached(pager *p, const pager_unit *unit, uint64_t address, uint64_t bytes) {
  if (p->config.counters.threshold) return pager_count_access(p, unit, address);
  if (!p->config.prefetch || !p->config.prefetch->reached || !pager_may_come(unit)) return false;
  uint32_t *reached = reached_of(pager_chunk_at(p, address), address), before = *reached;
  if (*reached < UINT32_MAX / 2) *reached += (uint32_t)bytes;
  return before / FF_REACHED_BYTES != *reached / FF_REACHED_BYTES;
}

void pager_launching(pager *p, const uint32_t *allocations, size_t count) {
  const ff_policy *policy = p->config.prefetch;
  if (!policy || !policy->launching) return;
  ff_allocation *declared = ff_alloc((count + 1) * sizeof *declared);
  for (size_t i = 0; i < count; i++) {
    const pager_allocation *a = &p->allocations.items[allocations[i]];
    declared[i] = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = allocations[i]};
  }
  pager_view_update(p);
  p->to_bring.count = 0;
  p->proposals = &p->to_bring;
  policy->launching(p->config.prefetch_state, &p->view, declared, count);
  p->proposals = NULL;
  free(declared);
  p->blank_only = true;
  pager_bring(p, NULL, false);
  p->blank_only = false;
}

void pager_reached_tell(pager *p, const fault_request *request, uint64_t address, uint64_t queued) {
  if (p->config.counters.threshold) {
    pager_count_reached(p, request, address);
    return;
  }
  p->view.queued = queued;
  pager_view_update(p);
  p->to_bring.count = 0;
  p->proposals = &p->to_bring;
  p->config.prefetch->reached(p->config.prefetch_state, &p->view, address & ~(FF_GROUP_BYTES - 1),
                              *reached_of(pager_chunk_at(p, address), address));
  p->proposals = NULL;
  pager_bring(p, request, true);
  pager_keep_free(p, request);
  p->view.queued = 0;
}

bool pager_wants_idle(const pager *p) { return p->config.prefetch && p->config.prefetch->idle; }

/* Again while what is proposed comes without a transfer, or is passed over, some times. */
void pager_idle(pager *p) {
  int skips = 0;
  p->idles = true;
  uint64_t flights = p->flight_count;
  for (uint64_t before = UINT64_MAX;
       pager_wants_idle(p) && p->free && before != p->filled && p->flight_count == flights;) {
    before = p->filled;
    p->blank_skipped = false;
    pager_view_update(p);
    p->to_bring.count = 0;
    p->proposals = &p->to_bring;
    p->config.prefetch->idle(p->config.prefetch_state, &p->view);
    p->proposals = NULL;
    pager_bring(p, NULL, false);
    pager_keep_free(p, NULL);
    if (p->blank_skipped && skips++ < MAX_SKIPS) before = UINT64_MAX;
  }
  p->idles = false;
}
