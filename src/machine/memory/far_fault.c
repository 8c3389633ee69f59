/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults: what the pager asks of the machine. When a unit of memory will have come, what it costs the link, who
 * wakes.
 *
 * Two kinds of service. *fixed* (the papers'): every far-fault takes fault_us, any number at once, and its bytes queue
 * for the link. *batches* (the real driver's): fault_batch_us after the first fault in an empty buffer the driver takes
 * what is there; each 2 MiB block costs fault_block_us, one after the other; each contiguous piece is a copy, and each
 * eviction one to the host, queued meanwhile; when all is over the GPU replays everything.
 *
 *     BATCH_NONE --buffered--> BATCH_CALLED --fault_batch--> BATCH_SERVED --fault_batch--> BATCH_NONE */
#include "machine/memory/far_fault.h"

#include <math.h>
#include <stdlib.h>

#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/host/tier_store.h"
#include "machine/memory/address_map.h"
#include "machine/memory/declared_residency.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/observe/observer.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/rounds.h"

#define MIN_BATCH UINT64_C(1000000) /* a microsecond: a batch that serves nothing takes time, too */

/* Memory that was evicted ahead, and that `now` is written back, is forgotten: it is like any other free memory. */
static void freed_settle(far_faults *f, ps now) {
  while (f->freed_first < f->freed.count && f->freed.items[f->freed_first].at <= now)
    f->freed_bytes -= f->freed.items[f->freed_first++].bytes;
  if (f->freed_first == f->freed.count) f->freed_first = f->freed.count = 0;
}

/* When `bytes` can be written to that the pager has just taken from free memory: what is settled is taken first, then
 * what was evicted ahead, oldest first. */
static ps freed_ready(far_faults *f, uint64_t bytes, ps from) {
  freed_settle(f, f->agenda->now < from ? f->agenda->now : from);
  uint64_t before = f->pager->free + bytes, settled = before > f->freed_bytes ? before - f->freed_bytes : 0;
  ps ready = 0;
  for (uint64_t wanted = bytes > settled ? bytes - settled : 0; wanted && f->freed_first < f->freed.count;) {
    freed_ahead *oldest = &f->freed.items[f->freed_first];
    uint64_t taken = oldest->bytes < wanted ? oldest->bytes : wanted;
    oldest->bytes -= taken;
    wanted -= taken;
    f->freed_bytes -= taken;
    if (ready < oldest->at) ready = oldest->at;
    if (!oldest->bytes) f->freed_first++;
  }
  return ready;
}

/* When the transfer in of `bytes` can begin: also in memory that was evicted ahead. */
static ps room_ready(far_faults *f, uint64_t bytes, ps from, ps room) {
  ps ahead = f->freed_bytes ? freed_ready(f, bytes, from) : 0, begin = room > from ? room : from;
  return ahead > begin ? ahead : begin;
}

/* resolve = max(from + fault_us, the link's backlog + this unit's transfer); a transfer into memory that is being
 * written back begins when that is over, unless both directions overlap (write_back_overlaps). */
static ps carry_in(far_faults *f, history_cause cause, uint8_t source, uint64_t bytes, ps from, ps not_before,
                   ps room) {
  ps begin = tier_to_gpu(f->tiers, bytes, from, room_ready(f, bytes, from, room));
  ps lands =
      source ? peer_carry(f->peers, cause, source - 1u, bytes, begin) : link_carry(f->link, cause, true, bytes, begin);
  return lands < not_before ? not_before : lands;
}

/* Zeros take memory, but nothing of the link. */
static ps zero_in(far_faults *f, const tally *t, uint64_t bytes, ps from, ps not_before, ps room) {
  ps ready = room_ready(f, bytes, from, room);
  t->kernel->zero_filled_bytes += bytes; /* the allocation's and the run's: `zeroed` */
  return ready < not_before ? not_before : ready;
}

/* When an access that is replayed has reached the GMMU once more, and that has walked. */
static ps replayed(far_faults *f, const fault_request *request, uint64_t address, const tally *t) {
  ps at = f->agenda->now + f->t->tlb_there;
  return gmmu_walk(f->gmmu, &f->sms[request->sm], address,
                   f->gmmu->leaves_grow ? pager_leaf_of(f->pager, address) : PAGER_LEAF_MIN, at, at, t);
}

static uint64_t flight_start(void *context, fault_request *request, uint64_t address, uint32_t flight,
                             const pager_unit *unit, uint64_t room) {
  far_faults *f = context;
  const warp *w = f->warps->items[request->warp];
  tally t = tally_of(f->observer, w, unit);
  ps from = request->from;
  if (!from) from = replayed(f, request, address, &t);
  /* zeros and mappings move nothing */
  uint64_t bytes = unit->flight_kind < PAGER_FLIGHT_ZEROED ? pager_bytes(f->pager, unit) : 0;
  ps lands = from + f->t->fault;
  if (bytes) lands = carry_in(f, HISTORY_CAUSE_FAULT, unit->source, bytes, from, lands, room);
  else if (unit->flight_kind == PAGER_FLIGHT_ZEROED)
    lands = zero_in(f, &t, pager_bytes(f->pager, unit), from, lands, room);
  if (f->observer->history) record_fault(f->observer, unit, address, from);
  COUNT(&t, faults, 1);
  if (unit->evicted) COUNT(&t, refaults, 1);
  if (f->manager->segments && !segments_declared(f->segments, w->block->kernel, unit->allocation))
    COUNT(&t, undeclared_faults, 1);
  COUNT(&t, fault_wait_ps, lands - from);
  t.kernel->h2d_bytes += bytes;
  t.kernel->pages_moved_in += (bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  request->served = from;
  request->counters = t.kernel;
  agenda_add(f->agenda, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* One piece of a batch. The driver queues its copy and goes on (or, with fault_copies_wait, waits for it); the copy
 * engine takes the pieces one after the other, each when the memory of its block is free. */
static uint64_t batch_fetch(far_faults *f, uint64_t address, uint64_t bytes, uint32_t flight, const pager_unit *first,
                            ps room) {
  ps from = f->batch_at, lands = room_ready(f, bytes, from, room);
  bool zeroes = first->flight_kind == PAGER_FLIGHT_ZEROED;
  if (!zeroes) lands = tier_to_gpu(f->tiers, bytes, from, lands);
  if (first->source && !zeroes) lands = peer_bring(f->peers, HISTORY_CAUSE_FAULT, first->source - 1u, bytes, lands);
  else if (!zeroes) lands = link_copy(f->link, HISTORY_CAUSE_FAULT, true, bytes, false, lands);
  if (f->batch_lands < lands) f->batch_lands = lands;
  if (f->spec->fault_copies_wait) f->batch_at = lands;
  if (!zeroes) f->batch_bytes += bytes;
  pager_walk w = pager_walk_begin(f->pager, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (!pager_flies(unit, flight)) continue;
    tally t = {f->batch_faults.items[f->batch_faults.count - 1].tally.kernel,
               &f->observer->allocations.items[f->pager->allocations.items[unit->allocation].owner]->counters};
    if (unit->prefetched) COUNT(&t, prefetched_bytes, pager_bytes(f->pager, unit));
    if (unit->prefetched)
      history_add(f->observer->history, HISTORY_prefetched_bytes, from, pager_bytes(f->pager, unit));
    if (zeroes) {
      t.kernel->zero_filled_bytes += pager_bytes(f->pager, unit);
      continue;
    }
    t.kernel->h2d_bytes += pager_bytes(f->pager, unit);
    t.kernel->pages_moved_in += (pager_bytes(f->pager, unit) + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  }
  return lands;
}

/* Pages brought along with a far-fault come with its service; others as soon as the link has brought them. */
static uint64_t fetch(void *context, const fault_request *request, uint64_t address, uint64_t bytes, uint32_t flight,
                      const pager_unit *first, uint64_t room) {
  far_faults *f = context;
  if (request && request->declared) return segments_fetch(f->segments, request->counters, bytes, flight, first, room);
  if (f->batch == BATCH_SERVED) return batch_fetch(f, address, bytes, flight, first, room);
  bool with_fault = request && request->served;
  bool zeroes = first->flight_kind == PAGER_FLIGHT_ZEROED;
  ps from = with_fault ? request->served : f->agenda->now;
  ps served = from + (with_fault ? f->t->fault : f->t->link_latency);
  sim_counters none = {0};
  tally t = {with_fault ? request->counters : &f->observer->counters,
             &f->observer->allocations.items[f->pager->allocations.items[first->allocation].owner]->counters};
  ps lands = zeroes ? zero_in(f, with_fault ? &t : &(tally){&none, &none}, bytes, from, served, room)
                    : carry_in(f, HISTORY_CAUSE_PREFETCH, first->source, bytes, from, served, room);
  COUNT(&t, prefetched_bytes, bytes);
  history_add(f->observer->history, HISTORY_prefetched_bytes, from, bytes);
  if (with_fault && !zeroes) {
    t.kernel->h2d_bytes += bytes;
    t.kernel->pages_moved_in += bytes / FF_PAGE_BYTES;
  }
  agenda_add(f->agenda, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* A flight that nothing waits for begins to move at the latest moment at which it still lands in time: until then it
 * waits for its service, or for others on the link, and is mapped where it was. */
static bool departs(void *context, const fault_request *request, uint64_t bytes, uint32_t flight, uint64_t lands) {
  far_faults *f = context;
  ps moves = link_transfer(f->link, bytes);
  if (!manager_departs(f->manager) || (request && request->declared) || !moves || lands <= f->agenda->now + moves)
    return false;
  agenda_add(f->agenda, lands - moves, EVENT_DEPART, flight);
  return true;
}

/* What is reached of a page that is to come goes over the link twice. While memory has room all that is absent is to
 * come, so only a link with nothing to do is used for that; later it pays if it takes less than half as long as to wait
 * for the page. */
bool fault_reaches(const far_faults *f, const pager_unit *unit, ps at) {
  if (f->manager->counters.threshold) return true; /* nothing decides: the page stays mapped */
  const link_direction *link = &f->link->wire->h2d;
  ps queue = link_free(link) > at ? link_free(link) - at : 0, lands = f->pager->flights.items[unit->flight].lands;
  if (f->pager->free >= FF_GROUP_BYTES && queue) return false;
  return at + 2 * (queue + f->t->link_latency) < lands;
}

static uint64_t evicted(void *context, const fault_request *request, uint64_t address, const pager_unit *unit,
                        bool write_back) {
  far_faults *f = context;
  sim_counters *a = &f->observer->allocations.items[f->pager->allocations.items[unit->allocation].owner]->counters;
  tally t = {&f->observer->counters, a};
  COUNT(&t, evicted_bytes, pager_bytes(f->pager, unit));
  if (unit->prefetched && !unit->last_use) COUNT(&t, prefetched_unused_bytes, pager_bytes(f->pager, unit));
  ps from = f->agenda->now, end = pager_cleaning(f->pager, address, pager_bytes(f->pager, unit));
  if (f->batch == BATCH_SERVED) from = f->batch_at;
  else if (request && request->from) from = request->from;
  /* as what is resident: its room is free from now on */
  if (f->observer->history) record_evicted(f->observer, unit, address, write_back, f->agenda->now);
  if (write_back) {
    COUNT(&t, written_back_bytes, pager_bytes(f->pager, unit));
    end = tier_to_host(f->tiers, from,
                       link_carry(f->link, HISTORY_CAUSE_WRITE_BACK, false, pager_bytes(f->pager, unit), from));
  }
  if (f->write_back_overlaps || end <= from) return 0;
  if (!f->pager->ahead) return end;
  FF_PUSH(&f->freed, ((freed_ahead){pager_bytes(f->pager, unit), end}));
  f->freed_bytes += pager_bytes(f->pager, unit);
  return 0;
}

/* ---- batches ---- */

static void buffered(void *context, const fault_request *request, uint64_t address) {
  far_faults *f = context;
  if (f->batch != BATCH_NONE) return;
  f->batch = BATCH_CALLED;
  ps from = request->from;
  if (!from) {
    tally t = tally_of(f->observer, f->warps->items[request->warp], pager_find(f->pager, address));
    from = replayed(f, request, address, &t);
  }
  agenda_add(f->agenda, from + f->t->fault_batch, EVENT_BATCH, 0);
}

static void serve(void *context, const pager_buffered *fault, bool block) {
  far_faults *f = context;
  tally t = tally_of(f->observer, f->warps->items[fault->warp], fault->unit);
  COUNT(&t, faults, 1);
  if (fault->unit->evicted) COUNT(&t, refaults, 1);
  if (f->observer->history) record_fault(f->observer, fault->unit, fault->address, fault->time);
  FF_PUSH(&f->batch_faults, ((batch_fault){t, fault->time}));
  if (block) f->batch_at += f->t->fault_block;
}

void fault_batch(far_faults *f) {
  if (f->batch == BATCH_CALLED) {
    f->batch = BATCH_SERVED;
    f->batch_at = f->batch_lands = f->batch_began = f->agenda->now;
    f->batch_bytes = 0;
    f->observer->counters.fault_batches++;
    pager_batch_begin(f->pager, f->spec->fault_batch ? (uint32_t)f->spec->fault_batch : 256);
    ps end = f->batch_lands > f->batch_at ? f->batch_lands : f->batch_at;
    if (end == f->agenda->now) end += f->t->fault_block ? f->t->fault_block : MIN_BATCH; /* all was left alone */
    pager_batch_lands(f->pager, end);
    agenda_add(f->agenda, end, EVENT_BATCH, 0);
    return;
  }
  f->batch = BATCH_NONE;
  history_note_batch(f->observer->history,
                     (history_batch){f->batch_began, f->agenda->now, f->batch_faults.count, f->batch_bytes});
  for (size_t i = 0; i < f->batch_faults.count; i++)
    COUNT(&f->batch_faults.items[i].tally, fault_wait_ps, f->agenda->now - f->batch_faults.items[i].time);
  f->batch_faults.count = 0;
  pager_batch_end(f->pager);
}

/* Of the lines of the warp's access that wait for a far-fault, those that it is not over for. */
static uint64_t unserved_but(const far_faults *f, const warp *w, uint64_t address) {
  const uint64_t *lines = w->record + 2 + w->first_line;
  uint64_t still = 0;
  for (uint64_t left = w->unserved; left; left &= left - 1) {
    bool other = (trace_line_address(lines[__builtin_ctzll(left)]) ^ address) >> f->pager->unit_shift;
    if (other) still |= left & -left;
  }
  return still;
}

/* With batches a warp goes on with each page that has come, once for all that come at the same time. */
static void wake(void *context, uint32_t sm_index, uint32_t warp_index, uint64_t address) {
  far_faults *f = context;
  warp *w = f->warps->items[warp_index];
  FF_ASSERT(w->waiting_units);
  w->waiting_units--;
  if (w->unserved) w->unserved = unserved_but(f, w, address);
  if (w->woken || (w->waiting_units && !f->manager->batches)) return;
  w->woken = f->manager->batches;
  if (w->asleep) warp_wake_at(w->sm, f->agenda->now, warp_index);
}

static bool writes(void *context, uint32_t warp_index) {
  const far_faults *f = context;
  const uint64_t *record = f->warps->items[warp_index]->record;
  trace_access_op op = record ? trace_access_operation(*record) : TRACE_LOAD;
  return op == TRACE_STORE || op == TRACE_ATOMIC;
}

static void unblock(void *context, uint32_t sm_index) {
  far_faults *f = context;
  sm *m = &f->sms[sm_index];
  m->tlb_blocked = false;
  for (size_t i = 0; i < m->blocked_warps->count; i++) warp_wake_at(m, f->agenda->now, m->blocked_warps->items[i]);
  m->blocked_warps->count = 0;
}

/* The bytes of the unit's own allocation, without what the page holds of others. */
static bool in_l2(far_faults *f, uint64_t window, const pager_unit *unit) {
  const pager_allocation *a = &f->pager->allocations.items[unit->allocation];
  uint64_t end = window + f->pager->config.unit_bytes, begin = a->address > window ? a->address : window;
  if (a->address + a->bytes < end) end = a->address + a->bytes;
  return l2_has_any(f->memory, begin, end - begin);
}

/* Only lines that were used can be in the L2. */
static void discard(far_faults *f, uint64_t begin, pager_unit *unit) {
  for (uint64_t line = begin; unit->used && line < begin + pager_bytes(f->pager, unit); line += TRACE_LINE_BYTES)
    if (unit->used & pager_used_bit(f->pager, line)) l2_discard(f->memory, line, TRACE_LINE_BYTES);
  unit->used = 0;
}

static void left(void *context, uint64_t address, pager_unit *unit) {
  far_faults *f = context;
  uint64_t window = address & ~(f->pager->config.unit_bytes - 1);
  uint64_t begin = f->pager->allocations.items[unit->allocation].address & ~(FF_PAGE_BYTES - 1);
  if (begin < window) begin = window;
  rounds_settle(f->sms); /* no walk of before makes an entry after this */
  /* what is translated is used at once; but an entry of a larger page may be of others */
  if (unit->used || f->gmmu->leaf_shift[PAGER_LEAF_MIN] > f->pager->unit_shift) tlb_forget(f->gmmu, address, unit);
  ++*f->gmmu->removals; /* an access that was held up asks again */
  discard(f, begin, unit);
  if (ff_check_level >= 2) FF_ASSERT(!in_l2(f, window, unit));
  address_map_give(f->map, begin, pager_bytes(f->pager, unit));
}

static void remapped(void *context, uint64_t address, uint64_t bytes, bool whole) {
  far_faults *f = context;
  rounds_settle(f->sms);
  tlb_remap(f->gmmu, address, bytes, whole);
}

static void moved(void *context, uint32_t owner, bool in, uint64_t bytes) {
  far_faults *f = context;
  sim_counters *a = &f->observer->allocations.items[owner]->counters;
  uint64_t pages = (bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  *(in ? &a->h2d_bytes : &a->d2h_bytes) += bytes;
  *(in ? &a->pages_moved_in : &a->pages_moved_out) += pages;
  *(in ? &f->observer->counters.h2d_bytes : &f->observer->counters.d2h_bytes) += bytes;
  *(in ? &f->observer->counters.pages_moved_in : &f->observer->counters.pages_moved_out) += pages;
}

static void zeroed(void *context, uint32_t owner, uint64_t bytes) {
  far_faults *f = context;
  f->observer->allocations.items[owner]->counters.zero_filled_bytes += bytes;
  f->observer->counters.zero_filled_bytes += bytes;
}

static void cleaned(void *context, uint64_t address, const pager_unit *unit) {
  tlb_clean(((far_faults *)context)->gmmu, address, unit);
}

/* Whenever the link to the host has carried all there is, the evictor may propose dirty pages to copy ahead; if it has
 * none, it is asked again after the time that a group takes over the link: pages become fit for it without an event. */
void fault_clean(far_faults *f) {
  if (f->clean_pending || !f->kernels->running || !pager_wants_clean(f->pager)) return;
  f->clean_pending = true;
  if (link_free(&f->link->wire->d2h) > f->agenda->now) {
    agenda_add(f->agenda, link_free(&f->link->wire->d2h), EVENT_CLEAN, 0);
    return;
  }
  uint64_t address = 0, bytes = pager_clean(f->pager, &address);
  ps next = f->agenda->now + (f->pager->view.group_time ? f->pager->view.group_time : MIN_BATCH);
  if (bytes) {
    next =
        tier_to_host(f->tiers, f->agenda->now, link_carry(f->link, HISTORY_CAUSE_CLEAN, false, bytes, f->agenda->now));
    pager_clean_until(f->pager, next);
  }
  agenda_add(f->agenda, next, EVENT_CLEAN, 0);
}

void fault_reached(far_faults *f, sim_counters *kernel, uint64_t address, ps at) {
  const link_direction *link = &f->link->wire->h2d;
  uint64_t queued = link_free(link) > f->agenda->now && link->per_byte > 0
                        ? (uint64_t)((double)(link_free(link) - f->agenda->now) / link->per_byte)
                        : 0;
  if (!f->manager->counters.threshold) at = f->agenda->now;
  pager_reached_tell(f->pager, &(fault_request){.served = at, .counters = kernel}, address, queued);
}

void fault_clean_over(far_faults *f) {
  f->clean_pending = false;
  pager_clean_end(f->pager);
  fault_clean(f);
}

void fault_idle_at(far_faults *f, ps time) {
  f->idle_pending = true;
  agenda_add(f->agenda, time, EVENT_LINK_IDLE, 0);
}

void fault_link_idle(far_faults *f) {
  f->idle_pending = false;
  fault_idle(f);
}

/* Whenever the link to the GPU has carried all there is, the prefetcher may propose the next piece. */
static void idle_link(far_faults *f) {
  if (f->idle_pending || f->batch == BATCH_SERVED || !f->kernels->running || !pager_wants_idle(f->pager)) return;
  if (link_free(&f->link->wire->h2d) <= f->agenda->now) pager_idle(f->pager);
  if (link_free(&f->link->wire->h2d) <= f->agenda->now) return; /* nothing was proposed; the next landing asks again */
  fault_idle_at(f, link_free(&f->link->wire->h2d));
}

void fault_idle(far_faults *f) {
  segments_idle(f->segments);
  fault_clean(f);
  idle_link(f);
  fault_clean(f); /* what came without a transfer is the first that there is */
}

static void retry(void *context, uint64_t time) {
  far_faults *f = context;
  agenda_add(f->agenda, time, EVENT_ROOM, 0);
}

/* What policies are told of the link. */
void fault_view(const far_faults *f, ff_view *view) {
  double per_byte = f->t->h2d_per_byte;
  view->group_time = (uint64_t)llround(per_byte * (double)FF_GROUP_BYTES) + f->t->link_latency;
  view->service_bytes = per_byte > 0 ? (uint64_t)((double)f->t->fault / per_byte) : 0;
}

void fault_hooks(far_faults *f, pager_hooks *hooks) {
  *hooks = (pager_hooks){.context = f,
                         .wake = wake,
                         .writes = writes,
                         .start = flight_start,
                         .fetch = fetch,
                         .departs = departs,
                         .evicted = evicted,
                         .buffered = buffered,
                         .serve = serve,
                         .unblock = unblock,
                         .retry = retry,
                         .left = left,
                         .moved = moved,
                         .zeroed = zeroed,
                         .remapped = remapped,
                         .cleaned = cleaned};
}

void fault_free(far_faults *f) {
  free(f->batch_faults.items);
  free(f->freed.items);
}
