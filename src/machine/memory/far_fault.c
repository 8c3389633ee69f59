/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults: what the pager asks of the machine. When a unit of memory will have come, what it costs the link, who wakes.
 *
 * Two kinds of service. *fixed* (the papers'): every far-fault takes fault_us, any number at once, and its bytes queue for
 * the link. *batches* (the real driver's): fault_batch_us after the first fault in an empty buffer the driver takes what
 * is there; each 2 MiB block costs fault_block_us, each contiguous piece a copy; all of it one after the other; then the
 * GPU replays everything.
 *
 *     BATCH_NONE --buffered--> BATCH_CALLED --fault_batch--> BATCH_SERVED --fault_batch--> BATCH_NONE */
#include "machine/simulation.h"

#define MIN_BATCH UINT64_C(1000000) /* a microsecond: a batch that serves nothing takes time, too */

/* Memory that was evicted ahead, and that `now` is written back, is forgotten: it is like any other free memory. */
static void freed_settle(sim *s, ps now) {
  while (s->faults.freed_first < s->faults.freed.count && s->faults.freed.items[s->faults.freed_first].at <= now) s->faults.freed_bytes -= s->faults.freed.items[s->faults.freed_first++].bytes;
  if (s->faults.freed_first == s->faults.freed.count) s->faults.freed_first = s->faults.freed.count = 0;
}

/* When `bytes` can be written to that the pager has just taken from free memory: what is settled is taken first, then
 * what was evicted ahead, oldest first. */
static ps freed_ready(sim *s, uint64_t bytes, ps from) {
  freed_settle(s, s->agenda.now < from ? s->agenda.now : from);
  uint64_t before = s->pager->free + bytes, settled = before > s->faults.freed_bytes ? before - s->faults.freed_bytes : 0;
  ps ready = 0;
  for (uint64_t wanted = bytes > settled ? bytes - settled : 0; wanted && s->faults.freed_first < s->faults.freed.count;) {
    freed_ahead *f = &s->faults.freed.items[s->faults.freed_first];
    uint64_t taken = f->bytes < wanted ? f->bytes : wanted;
    f->bytes -= taken;
    wanted -= taken;
    s->faults.freed_bytes -= taken;
    if (ready < f->at) ready = f->at;
    if (!f->bytes) s->faults.freed_first++;
  }
  return ready;
}

/* When the transfer in of `bytes` can begin. */
static ps room_ready(sim *s, uint64_t bytes, ps from) {
  ps ahead = s->faults.freed_bytes ? freed_ready(s, bytes, from) : 0, begin = s->faults.room_at > from ? s->faults.room_at : from;
  s->faults.room_at = 0;
  return ahead > begin ? ahead : begin;
}

/* resolve = max(from + fault_us, the link's backlog + this unit's transfer); a transfer into memory that is being
 * written back begins when that is over, unless both directions overlap (write_back_overlaps). */
static ps carry_in(sim *s, history_cause cause, uint64_t bytes, ps from, ps not_before) {
  ps lands = link_carry(&s->link, cause, true, bytes, room_ready(s, bytes, from));
  return lands < not_before ? not_before : lands;
}

static uint64_t flight_start(void *context, fault_request *request, uint64_t address, uint32_t flight, const pager_unit *unit) {
  sim *s = context;
  kernel *k = s->d->warps.items[request->warp]->block->kernel;
  tally t = tally_of(s, k, unit);
  ps from = request->from;
  if (!from) {
    ps at = s->agenda.now + s->t.tlb_there; /* replayed: from the TLB to the GMMU once more */
    from = gmmu_walk(&s->gmmu, &s->sms[request->sm], address, s->gmmu.leaves_grow ? pager_leaf_of(s->pager, address) : PAGER_LEAF_MIN, at, at, &t);
  }
  uint64_t bytes = unit->flight_kind < PAGER_FLIGHT_MAPPED ? unit->bytes : 0; /* a mapping moves nothing */
  ps lands = bytes ? carry_in(s, HISTORY_CAUSE_FAULT, bytes, from, from + s->t.fault) : from + s->t.fault;
  if (s->observer.history) record_fault(s, unit, address, from);
  COUNT(&t, faults, 1);
  if (unit->evicted) COUNT(&t, refaults, 1);
  if (s->manager->segments && !segments_declared(s, k, unit->allocation)) COUNT(&t, undeclared_faults, 1);
  COUNT(&t, fault_wait_ps, lands - from);
  k->counters->h2d_bytes += bytes;
  k->counters->pages_moved_in += (bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  request->served = from;
  request->counters = k->counters;
  sim_event(s, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* One piece of a batch, by the copy engine, one after the other. */
static uint64_t batch_fetch(sim *s, uint64_t address, uint64_t bytes, uint32_t flight) {
  ps from = s->faults.batch_at;
  s->faults.batch_at = link_copy(&s->link, HISTORY_CAUSE_FAULT, true, bytes, false, room_ready(s, bytes, from));
  s->faults.batch_bytes += bytes;
  pager_walk w = pager_walk_begin(s->pager, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (unit->flight != flight) continue;
    tally t = {s->faults.batch_faults.items[s->faults.batch_faults.count - 1].tally.kernel, &s->observer.allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters};
    if (unit->prefetched) COUNT(&t, prefetched_bytes, unit->bytes);
    if (unit->prefetched) history_add(s->observer.history, HISTORY_prefetched_bytes, from, unit->bytes);
    t.kernel->h2d_bytes += unit->bytes;
    t.kernel->pages_moved_in += (unit->bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  }
  return s->faults.batch_at;
}

/* Pages beside a far-fault come with its service; others as soon as the link has brought them. */
static uint64_t fetch(void *context, const fault_request *request, uint64_t address, uint64_t bytes, uint32_t flight, const pager_unit *first) {
  sim *s = context;
  if (request && request->declared) return segments_fetch(s, request->counters, bytes, flight, first);
  if (s->faults.batch == BATCH_SERVED) return batch_fetch(s, address, bytes, flight);
  bool beside = request && request->served;
  ps from = beside ? request->served : s->agenda.now;
  ps lands = carry_in(s, HISTORY_CAUSE_PREFETCH, bytes, from, from + (beside ? s->t.fault : s->t.link_latency));
  tally t = {beside ? request->counters : &s->observer.counters, &s->observer.allocations.items[s->pager->allocations.items[first->allocation].owner]->counters};
  COUNT(&t, prefetched_bytes, bytes);
  history_add(s->observer.history, HISTORY_prefetched_bytes, from, bytes);
  if (beside) {
    t.kernel->h2d_bytes += bytes;
    t.kernel->pages_moved_in += bytes / FF_PAGE_BYTES;
  }
  sim_event(s, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* A flight that nothing waits for begins to move at the latest moment at which it still lands in time: until then it waits for its
 * service, or for others on the link, and is mapped where it was. */
static bool departs(void *context, const fault_request *request, uint64_t bytes, uint32_t flight, uint64_t lands) {
  sim *s = context;
  ps moves = link_transfer(&s->link, bytes);
  if (!s->manager->reaches || (request && request->declared) || !moves || lands <= s->agenda.now + moves) return false;
  sim_event(s, lands - moves, EVENT_DEPART, flight);
  return true;
}

/* What is reached of a page that is to come goes over the link twice. While memory has room all that is absent is to come, so only a link with
 * nothing to do is used for that; later it pays if it takes less than half as long as to wait for the page. */
bool fault_reaches(const far_faults *f, const pager_unit *unit, ps at) {
  const link_direction *link = &f->link->wire->h2d;
  ps queue = link->bus.free > at ? link->bus.free - at : 0, lands = f->pager->flights.items[unit->flight].lands;
  if (f->pager->free >= FF_GROUP_BYTES && queue) return false;
  return at + 2 * (queue + f->t->link_latency) < lands;
}

static void evicted(void *context, const fault_request *request, uint64_t address, const pager_unit *unit, bool write_back) {
  sim *s = context;
  sim_counters *a = &s->observer.allocations.items[s->pager->allocations.items[unit->allocation].owner]->counters;
  tally t = {&s->observer.counters, a};
  COUNT(&t, evicted_bytes, unit->bytes);
  if (unit->prefetched && !unit->last_use) COUNT(&t, prefetched_unused_bytes, unit->bytes);
  ps from = s->faults.batch == BATCH_SERVED ? s->faults.batch_at : request && request->from ? request->from : s->agenda.now, end = pager_cleaning(s->pager, address, unit->bytes);
  if (s->observer.history) record_evicted(s, unit, address, write_back, s->agenda.now); /* as what is resident: its room is free from now on */
  if (write_back) {
    COUNT(&t, written_back_bytes, unit->bytes);
    end = link_carry(&s->link, HISTORY_CAUSE_WRITE_BACK, false, unit->bytes, from);
  }
  if (s->faults.write_back_overlaps || end <= from) return;
  if (s->pager->ahead) {
    FF_PUSH(&s->faults.freed, ((freed_ahead){unit->bytes, end}));
    s->faults.freed_bytes += unit->bytes;
  } else if (s->faults.room_at < end) {
    s->faults.room_at = end;
  }
}

/* ---- batches ---- */

static void buffered(void *context, const fault_request *request) {
  sim *s = context;
  if (s->faults.batch != BATCH_NONE) return;
  s->faults.batch = BATCH_CALLED;
  sim_event(s, (request->from ? request->from : s->agenda.now) + s->t.fault_batch, EVENT_BATCH, 0);
}

static void serve(void *context, const pager_buffered *fault, bool block) {
  sim *s = context;
  tally t = tally_of(s, s->d->warps.items[fault->warp]->block->kernel, fault->unit);
  COUNT(&t, faults, 1);
  if (fault->unit->evicted) COUNT(&t, refaults, 1);
  if (s->observer.history) record_fault(s, fault->unit, fault->address, fault->time);
  FF_PUSH(&s->faults.batch_faults, ((batch_fault){t, fault->time}));
  if (block) s->faults.batch_at += s->t.fault_block;
}

void fault_batch(sim *s) {
  if (s->faults.batch == BATCH_CALLED) {
    s->faults.batch = BATCH_SERVED;
    s->faults.batch_at = s->faults.batch_began = s->agenda.now;
    s->faults.batch_bytes = 0;
    pager_batch_begin(s->pager, s->spec->fault_batch ? (uint32_t)s->spec->fault_batch : 256);
    if (s->faults.batch_at == s->agenda.now) s->faults.batch_at += s->t.fault_block ? s->t.fault_block : MIN_BATCH; /* all was left alone */
    pager_batch_lands(s->pager, s->faults.batch_at);
    sim_event(s, s->faults.batch_at, EVENT_BATCH, 0);
    return;
  }
  s->faults.batch = BATCH_NONE;
  history_note_batch(s->observer.history, (history_batch){s->faults.batch_began, s->agenda.now, s->faults.batch_faults.count, s->faults.batch_bytes});
  for (size_t i = 0; i < s->faults.batch_faults.count; i++) COUNT(&s->faults.batch_faults.items[i].tally, fault_wait_ps, s->agenda.now - s->faults.batch_faults.items[i].time);
  s->faults.batch_faults.count = 0;
  pager_batch_end(s->pager);
}

static void wake(void *context, uint32_t sm_index, uint32_t warp_index) {
  sim *s = context;
  warp *w = s->d->warps.items[warp_index];
  FF_ASSERT(w->waiting_units);
  if (--w->waiting_units == 0 && w->asleep) event_push(&s->d->heap, s->agenda.now, EVENT_WARP, warp_index);
}

static bool writes(void *context, uint32_t warp_index) {
  const sim *s = context;
  const uint64_t *record = s->d->warps.items[warp_index]->record;
  trace_access_op op = record ? trace_access_operation(*record) : TRACE_LOAD;
  return op == TRACE_STORE || op == TRACE_ATOMIC;
}

static void unblock(void *context, uint32_t sm_index) {
  sim *s = context;
  sm *m = &s->sms[sm_index];
  m->tlb_blocked = false;
  for (size_t i = 0; i < m->blocked_warps->count; i++) event_push(&s->d->heap, s->agenda.now, EVENT_WARP, m->blocked_warps->items[i]);
  m->blocked_warps->count = 0;
}

static void left(void *context, uint64_t address, const pager_unit *unit) {
  sim *s = context;
  uint64_t window = address & ~(s->pager->config.unit_bytes - 1);
  uint64_t begin = s->pager->allocations.items[unit->allocation].address & ~(FF_PAGE_BYTES - 1);
  tlb_forget(&s->gmmu, address, unit);
  for (uint32_t i = 0; i < s->d->sm_total; i++) s->sms[i].seen_count = 0; /* an access that was held up asks again */
  l2_discard(&s->memory, begin > window ? begin : window, unit->bytes);
  address_map_give(&s->placing, begin > window ? begin : window, unit->bytes);
}

static void remapped(void *context, uint64_t address, uint64_t bytes, bool whole) { tlb_remap(&((sim *)context)->gmmu, address, bytes, whole); }

static void moved(void *context, uint32_t owner, bool in, uint64_t bytes) {
  sim *s = context;
  sim_counters *a = &s->observer.allocations.items[owner]->counters;
  uint64_t pages = (bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  *(in ? &a->h2d_bytes : &a->d2h_bytes) += bytes;
  *(in ? &a->pages_moved_in : &a->pages_moved_out) += pages;
  *(in ? &s->observer.counters.h2d_bytes : &s->observer.counters.d2h_bytes) += bytes;
  *(in ? &s->observer.counters.pages_moved_in : &s->observer.counters.pages_moved_out) += pages;
}

static void cleaned(void *context, uint64_t address, const pager_unit *unit) { tlb_clean(&((sim *)context)->gmmu, address, unit); }

/* Whenever the link to the host has carried all there is, the evictor may propose dirty pages to copy ahead; if it has none, it is
 * asked again after the time that a far-fault takes: pages become fit for it without an event. */
void fault_clean(sim *s) {
  if (s->faults.clean_pending || !s->dispatch.kernels.running || !pager_wants_clean(s->pager)) return;
  s->faults.clean_pending = true;
  if (s->link.wire->d2h.bus.free > s->agenda.now) {
    sim_event(s, s->link.wire->d2h.bus.free, EVENT_CLEAN, 0);
    return;
  }
  uint64_t address = 0, bytes = pager_clean(s->pager, &address);
  ps next = bytes ? link_carry(&s->link, HISTORY_CAUSE_CLEAN, false, bytes, s->agenda.now) : s->agenda.now + (s->t.fault ? s->t.fault : MIN_BATCH);
  if (bytes) pager_clean_until(s->pager, next);
  sim_event(s, next, EVENT_CLEAN, 0);
}

void fault_reached(sim *s, kernel *k, uint64_t address) {
  const link_direction *link = &s->link.wire->h2d;
  uint64_t queued = link->bus.free > s->agenda.now && link->per_byte > 0 ? (uint64_t)((double)(link->bus.free - s->agenda.now) / link->per_byte) : 0;
  pager_reached_tell(s->pager, &(fault_request){.served = s->agenda.now, .counters = k->counters}, address, queued);
}

/* Whenever the link to the GPU has carried all there is, the prefetcher may propose the next piece. */
static void idle_link(sim *s) {
  if (s->faults.idle_pending || s->faults.batch == BATCH_SERVED || !s->dispatch.kernels.running || !pager_wants_idle(s->pager)) return;
  if (s->link.wire->h2d.bus.free <= s->agenda.now) pager_idle(s->pager);
  if (s->link.wire->h2d.bus.free <= s->agenda.now) return; /* nothing was proposed; the next landing asks again */
  s->faults.idle_pending = true;
  sim_event(s, s->link.wire->h2d.bus.free, EVENT_LINK_IDLE, 0);
}

void fault_idle(sim *s) {
  segments_idle(s);
  fault_clean(s);
  idle_link(s);
  fault_clean(s); /* what came without a transfer is the first that there is */
}

void fault_hooks(sim *s, pager_hooks *hooks) {
  *hooks = (pager_hooks){.context = s, .wake = wake, .writes = writes, .start = flight_start, .fetch = fetch, .departs = departs, .evicted = evicted, .buffered = buffered, .serve = serve, .unblock = unblock, .left = left, .moved = moved, .remapped = remapped, .cleaned = cleaned};
}

