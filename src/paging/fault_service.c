/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults: NACKs, flights, merging, the throttle (Zheng et al., HPCA 2016, section 3).
 *
 *                    decide: TRACK/BLOCK                     flight lands
 *    (warp's miss) ---------------------> tracked NACK ---------------------> its warps are woken
 *          |                                  ^
 *          | decide: THROTTLE                 | a tracked NACK of the same SM is over: the TLB replays, oldest first,
 *          `------------> SM's queue ---------'   while the manager answers TRACK
 *
 * A NACK whose unit is on its way for another SM joins that flight; whether it takes an MSHR of its own SM all the same
 * is the machine's choice (fault_merge_mshrs). One that is replayed and finds its unit resident wakes its warps at
 * once. A manager that throttles an SM with nothing pending would stop it for ever: the pager then tracks all the same.
 *
 * A tracked NACK whose unit finds no room, because all of GPU memory is on its way, keeps its MSHR and waits in one
 * queue for the next landing: what has landed can be evicted. */
#include "paging/pager.h"

uint32_t pager_flight_take(pager *p) {
  p->flight_count++;
  uint32_t index = p->free_flight;
  if (index) {
    p->free_flight = p->flights.items[index].next_free;
    return index;
  }
  FF_ASSERT(p->flights.count < PAGER_INDEX_MAX);
  FF_PUSH(&p->flights, ((pager_flight){0}));
  return (uint32_t)p->flights.count - 1;
}

void pager_flight_set(pager *p, uint32_t flight, uint64_t address, uint64_t bytes, uint64_t lands) {
  p->flights.items[flight] = (pager_flight){.address = address, .bytes = bytes, .lands = lands};
  if (p->lands_last < lands) p->lands_last = lands;
}

static uint32_t nack_take(pager *p) {
  uint32_t index = p->free_nack;
  if (index) {
    p->free_nack = p->nacks.items[index].next_of_sm;
    return index;
  }
  FF_ASSERT(p->nacks.count < PAGER_INDEX_MAX);
  FF_PUSH(&p->nacks, ((pager_nack){0}));
  return (uint32_t)p->nacks.count - 1;
}

static void waiter_add(pager *p, uint32_t nack, uint32_t warp) {
  uint32_t index = p->free_waiter;
  if (index) {
    p->free_waiter = p->waiters.items[index].next;
  } else {
    FF_PUSH(&p->waiters, ((pager_waiter){0}));
    index = (uint32_t)p->waiters.count - 1;
  }
  p->waiters.items[index] = (pager_waiter){warp, 0};
  pager_nack *n = &p->nacks.items[nack];
  if (n->last_waiter) p->waiters.items[n->last_waiter].next = index;
  else n->first_waiter = index;
  n->last_waiter = index;
}

static uint32_t nack_find(const pager *p, uint32_t sm, const pager_unit *unit) {
  uint32_t nack = unit->nacks;
  while (nack && p->nacks.items[nack].sm != sm) nack = p->nacks.items[nack].next_of_unit;
  return nack;
}

bool pager_waits(const pager *p, uint32_t sm, const pager_unit *unit) { return nack_find(p, sm, unit) != 0; }

bool pager_warp_waits(const pager *p, uint32_t sm, uint32_t warp, const pager_unit *unit) {
  uint32_t nack = nack_find(p, sm, unit), waiter = nack ? p->nacks.items[nack].first_waiter : 0;
  while (waiter && p->waiters.items[waiter].warp != warp) waiter = p->waiters.items[waiter].next;
  return waiter != 0;
}

static manager_answer decide(const pager *p, uint32_t sm) {
  manager_nack nack = {.pending = p->sms[sm].pending, .allotment = p->config.allotment};
  manager_answer answer = p->config.manager->decide(&nack);
  return answer == MANAGER_THROTTLE && !nack.pending ? MANAGER_TRACK : answer;
}

/* Takes what the flight needs: memory, if anything comes. false: there is no room now. */
static bool flight_room(pager *p, const fault_request *request, pager_unit *unit, uint64_t address,
                        pager_flight_kind kind) {
  if (kind == PAGER_FLIGHT_MAPPED) return true;
  /* its frame stays; for the equations the read-only copy goes and another one comes */
  if (kind == PAGER_FLIGHT_WRITABLE) {
    p->resident -= pager_bytes(p, unit);
    p->dropped += pager_bytes(p, unit);
  } else {
    p->may_wait = true;
    bool room = pager_make_room(p, request, pager_room_wanted(p, address, unit));
    p->may_wait = false;
    if (!room) return false;
    pager_room_take(p, address, unit);
  }
  p->in_flight += pager_bytes(p, unit);
  return true;
}

/* The GMMU tracks the unit's far-fault already, and a further request joins it without an MSHR. */
static bool joins_free(const pager *p, const pager_unit *unit) {
  return !p->config.merges_take_mshr && (unit->state == PAGER_IN_FLIGHT || unit->starved);
}

/* Starts to move the NACK's unit. request: NULL: it is tried again. false: there is no room now. */
static bool nack_start(pager *p, fault_request *request, uint32_t nack) {
  pager_nack *n = &p->nacks.items[nack];
  fault_request again = {.sm = n->sm, .warp = p->waiters.items[n->first_waiter].warp};
  if (!request) request = &again;
  pager_unit *unit = n->unit;
  FF_ASSERT(unit->state == PAGER_ABSENT || (unit->state == PAGER_RESIDENT && unit->duplicate));
  if (p->config.flight_limit && p->flight_count >= p->config.flight_limit) return false;
  pager_flight_kind kind = pager_flight_kind_of(p, unit, request->warp);
  if (!flight_room(p, request, unit, n->address, kind)) return false;
  uint64_t last_use = kind == PAGER_FLIGHT_WRITABLE ? unit->last_use : 0;
  unit->state = PAGER_IN_FLIGHT;
  unit->flight_kind = kind;
  unit->flight = pager_flight_take(p) & PAGER_INDEX_MAX;
  unit->prefetched = false;
  unit->source = kind <= PAGER_FLIGHT_COPIED ? pager_source(p, unit, n->address) : 0;
  uint32_t flight = unit->flight;
  uint64_t address = n->address, window = address & ~(p->config.unit_bytes - 1);
  pager_mark(p, address, unit);
  uint64_t room = kind < PAGER_FLIGHT_MAPPED ? pager_room_ready(p) : 0; /* a mapping moves nothing */
  if (kind < PAGER_FLIGHT_ZEROED) pager_tier_gpu(p, unit, address);
  uint64_t lands = p->config.hooks.start(p->config.hooks.context, request, address, flight, unit, room);
  pager_flight_set(p, flight, window, p->config.unit_bytes, lands);
  p->flights.items[flight].last_use = last_use;
  if (kind >= PAGER_FLIGHT_MAPPED) return true; /* nothing moves, so nothing moves along with it */
  if (p->config.ranges) pager_partial(p, request, address);
  pager_prefetch(p, request, &(ff_fault){.address = address, .time = p->now, .sm = request->sm}, 1);
  pager_keep_free(p, request);
  return true;
}

/* Gives the NACK an MSHR, if it needs one: its unit starts to move unless it moves already. */
static pager_outcome nack_track(pager *p, fault_request *request, uint32_t nack) {
  pager_nack *n = &p->nacks.items[nack];
  n->tracked = true;
  n->counted = !joins_free(p, n->unit);
  p->sms[n->sm].pending += n->counted;
  if (n->unit->state == PAGER_IN_FLIGHT || n->unit->starved) return PAGER_MERGED;
  if (!p->starved_first && nack_start(p, request, nack)) return PAGER_STARTED;
  n = &p->nacks.items[nack];
  n->unit->starved = true;
  n->next_of_sm = 0;
  if (p->starved_last) p->nacks.items[p->starved_last].next_of_sm = nack;
  else p->starved_first = nack;
  p->starved_last = nack;
  return PAGER_STARVED;
}

/* Behind the unit's others: they are woken in the order in which they asked. */
static void nack_append(pager *p, pager_unit *unit, uint32_t nack) {
  uint32_t last = unit->nacks;
  if (!last) {
    unit->nacks = nack & PAGER_INDEX_MAX;
    return;
  }
  while (p->nacks.items[last].next_of_unit) last = p->nacks.items[last].next_of_unit;
  p->nacks.items[last].next_of_unit = nack;
}

pager_outcome pager_fault(pager *p, fault_request *request, uint64_t address, pager_unit *unit, bool *blocks) {
  uint32_t sm = request->sm, warp = request->warp;
  *blocks = false;
  uint32_t nack = nack_find(p, sm, unit);
  if (nack) {
    waiter_add(p, nack, warp);
    return unit->state == PAGER_IN_FLIGHT ? PAGER_MERGED : PAGER_JOINED;
  }
  nack = nack_take(p);
  p->nacks.items[nack] = (pager_nack){.unit = unit, .address = address, .sm = sm};
  nack_append(p, unit, nack);
  waiter_add(p, nack, warp);
  manager_answer answer = decide(p, sm);
  if (answer == MANAGER_THROTTLE && joins_free(p, unit)) answer = MANAGER_TRACK;
  if (answer == MANAGER_BUFFER) {
    p->nacks.items[nack].tracked = p->nacks.items[nack].counted = true;
    p->sms[sm].pending++;
    if (unit->state == PAGER_IN_FLIGHT) return PAGER_MERGED;
    pager_buffer_add(
        p, request,
        &(pager_buffered){.address = address, .time = p->now, .unit = unit, .sm = sm, .warp = warp, .nack = nack});
    return PAGER_BUFFERED;
  }
  if (answer != MANAGER_THROTTLE) {
    *blocks = p->nacks.items[nack].blocking = answer == MANAGER_BLOCK;
    return nack_track(p, request, nack);
  }
  if (p->sms[sm].queue_last) p->nacks.items[p->sms[sm].queue_last].next_of_sm = nack;
  else p->sms[sm].queue_first = nack;
  p->sms[sm].queue_last = nack;
  return PAGER_THROTTLED;
}

/* Wakes the NACK's warps and forgets it. */
static void nack_end(pager *p, uint32_t nack) {
  pager_nack n = p->nacks.items[nack];
  p->sms[n.sm].pending -= n.counted;
  if (n.buffered) pager_buffer_drop(p, &n);
  p->nacks.items[nack].next_of_sm = p->free_nack;
  p->free_nack = nack;
  for (uint32_t w = n.first_waiter; w;) {
    pager_waiter waiter = p->waiters.items[w];
    p->waiters.items[w].next = p->free_waiter;
    p->free_waiter = w;
    p->config.hooks.wake(p->config.hooks.context, n.sm, waiter.warp, n.address);
    w = waiter.next;
  }
  if (n.blocking) p->config.hooks.unblock(p->config.hooks.context, n.sm);
}

static void nack_unlink(pager *p, uint32_t nack) {
  pager_unit *unit = p->nacks.items[nack].unit;
  uint32_t before = unit->nacks, next = p->nacks.items[nack].next_of_unit;
  if (before == nack) {
    unit->nacks = next & PAGER_INDEX_MAX;
    return;
  }
  while (p->nacks.items[before].next_of_unit != nack) before = p->nacks.items[before].next_of_unit;
  p->nacks.items[before].next_of_unit = next;
}

/* The SM's TLB replays what was throttled, oldest first, until its allotment is full again. */
static void replay(pager *p, uint32_t sm) {
  for (uint32_t nack; (nack = p->sms[sm].queue_first);) {
    pager_unit *unit = p->nacks.items[nack].unit;
    bool here = unit->state == PAGER_RESIDENT || unit->state == PAGER_REMOTE;
    if (!here && !joins_free(p, unit) && decide(p, sm) == MANAGER_THROTTLE) return;
    p->sms[sm].queue_first = p->nacks.items[nack].next_of_sm;
    if (!p->sms[sm].queue_first) p->sms[sm].queue_last = 0;
    if (!here) {
      nack_track(p, NULL, nack);
      continue;
    }
    nack_unlink(p, nack);
    nack_end(p, nack);
  }
}

/* The unit is there: its tracked NACKs are over, in order; throttled ones stay for their SM's replay. */
void pager_end_tracked(pager *p, pager_unit *unit) {
  uint32_t done = 0, kept = 0, *done_link = &done, *kept_link = &kept;
  for (uint32_t nack = unit->nacks, next; nack; nack = next) {
    uint32_t **link = p->nacks.items[nack].tracked ? &done_link : &kept_link;
    next = p->nacks.items[nack].next_of_unit;
    p->nacks.items[nack].next_of_unit = 0;
    **link = nack;
    *link = &p->nacks.items[nack].next_of_unit;
  }
  unit->nacks = kept & PAGER_INDEX_MAX;
  while (done) {
    uint32_t sm = p->nacks.items[done].sm, next = p->nacks.items[done].next_of_unit;
    nack_end(p, done);
    replay(p, sm);
    done = next;
  }
}

/* A flight that brought no bytes. Policies are told nothing: what lies in GPU memory is the same as before. */
static void unit_permitted(pager *p, pager_unit *unit, uint64_t address) {
  bool mapped = unit->flight_kind == PAGER_FLIGHT_MAPPED;
  unit->last_use = p->flights.items[unit->flight].last_use;
  if (mapped) {
    unit->state = PAGER_REMOTE;
  } else {
    unit->state = PAGER_RESIDENT;
    unit->duplicate = false;
    unit->fresh = unit->nacks != 0;
    p->in_flight -= pager_bytes(p, unit);
    p->resident += pager_bytes(p, unit);
    p->filled += pager_bytes(p, unit);
    pager_note(p, unit, address, OWNERS_TAKES, 0);
  }
  pager_remark(p, address);
  pager_end_tracked(p, unit);
}

static void unit_arrives(pager *p, pager_unit *unit, uint64_t address, pager_marks *marks) {
  if (unit->flight_kind >= PAGER_FLIGHT_MAPPED) {
    pager_marks_end(p, marks);
    unit_permitted(p, unit, address);
    return;
  }
  FF_ASSERT(!unit->departs);
  pager_flight_kind kind = unit->flight_kind;
  uint8_t source = unit->source;
  unit->state = PAGER_RESIDENT;
  unit->last_use = 0;
  unit->gpu_newest = unit->cpu_newest;
  unit->duplicate = kind == PAGER_FLIGHT_COPIED;
  pager_note(p, unit, address, unit->duplicate ? OWNERS_COPIES : OWNERS_TAKES, source);
  if (source && !unit->duplicate) pager_came_from_device(p, unit, address);
  unit->fresh = unit->nacks != 0;
  if (unit->fresh) p->landed = p->now;
  if (!p->allocations.items[unit->allocation].users) p->no_unused = false;
  p->in_flight -= pager_bytes(p, unit);
  p->resident += pager_bytes(p, unit);
  if (kind == PAGER_FLIGHT_ZEROED) {
    p->filled += pager_bytes(p, unit);
    if (!unit->evicted) p->zeroed_first += pager_bytes(p, unit);
    pager_zeroed(p, unit);
  } else {
    p->moved_in += pager_bytes(p, unit);
    *(unit->evicted ? &p->came_back : &p->came_first) += pager_bytes(p, unit);
    pager_moved(p, unit, true);
  }
  pager_marks_add(p, marks, address, unit);
  if (!unit->nacks) return;
  pager_marks_end(p, marks);
  pager_end_tracked(p, unit);
}

void pager_starved_drop(pager *p, pager_unit *unit) {
  uint32_t before = 0, nack = p->starved_first;
  for (; p->nacks.items[nack].unit != unit; nack = p->nacks.items[nack].next_of_sm) before = nack;
  uint32_t next = p->nacks.items[nack].next_of_sm;
  if (before) p->nacks.items[before].next_of_sm = next;
  else p->starved_first = next;
  if (!next) p->starved_last = before;
  unit->starved = false;
}

/* Tries the far-faults that found no room again, oldest first. One whose unit was filled meanwhile is over. */
static void feed_starved(pager *p) {
  for (uint32_t nack; (nack = p->starved_first);) {
    pager_unit *unit = p->nacks.items[nack].unit;
    if (unit->state == PAGER_ABSENT && !nack_start(p, NULL, nack)) return;
    p->starved_first = p->nacks.items[nack].next_of_sm;
    if (!p->starved_first) p->starved_last = 0;
    unit->starved = false;
    if (unit->state == PAGER_RESIDENT || unit->state == PAGER_REMOTE) pager_end_tracked(p, unit);
  }
}

void pager_retry(pager *p) {
  p->retrying = false;
  feed_starved(p);
  pager_keep_free(p, NULL);
}

void pager_depart(pager *p, uint32_t flight) {
  pager_flight f = p->flights.items[flight];
  pager_walk w = pager_walk_begin(p, f.address, f.bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (!pager_flies(unit, flight) || !unit->departs) continue;
    unit->departs = false;
    p->config.hooks.left(p->config.hooks.context, w.address, unit); /* it is mapped nowhere until it has landed */
  }
}

void pager_complete(pager *p, uint32_t flight) {
  pager_flight f = p->flights.items[flight];
  FF_ASSERT(f.bytes);
  pager_walk w = pager_walk_begin(p, f.address, f.bytes);
  pager_marks marks = {0};
  for (pager_unit *unit; (unit = pager_walk_next(&w));)
    if (pager_flies(unit, flight)) unit_arrives(p, unit, w.address, &marks);
  pager_marks_end(p, &marks);
  p->flights.items[flight] = (pager_flight){.next_free = p->free_flight};
  p->free_flight = flight;
  p->flight_count--;
  feed_starved(p);
  pager_keep_free(p, NULL);
  if (ff_check_level >= 2) pager_check(p);
}
