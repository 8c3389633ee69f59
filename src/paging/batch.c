/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults served in batches by the host's driver, as NVIDIA's managed memory does it (release 595.45.04): the driver
 * takes what is in the fault buffer, up to a limit; sorts it by address; serves one 2 MiB block after the other; and
 * then lets the GPU replay everything, flushing the buffer: a fault that came meanwhile is forgotten and comes again.
 *
 *     pager_fault --> buffer --pager_batch_begin--> batch: IN_FLIGHT units --pager_batch_end--> RESIDENT, all woken
 *                        '------------------------- flushed at pager_batch_end: woken, they fault again
 *
 * A unit of the batch that found no room stays absent; its warps fault again when the batch has landed, and what has
 * landed can be evicted then. */
#include <stdlib.h>

#include "paging/pager.h"

void pager_buffer_add(pager *p, const fault_request *request, const pager_buffered *fault) {
  FF_PUSH(&p->buffer, *fault);
  p->config.hooks.buffered(p->config.hooks.context, request);
}

static int by_unit(const void *a, const void *b) {
  const pager_buffered *x = a, *y = b;
  uint64_t xa = x->address, ya = y->address;
  if (xa != ya) return xa < ya ? -1 : 1;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->sm > y->sm) - (x->sm < y->sm);
}

/* Moves the oldest faults to the batch, the first of each unit only. */
static void take(pager *p, uint32_t limit) {
  size_t count = p->buffer.count < limit ? p->buffer.count : limit, kept = 0;
  p->batch.count = 0;
  for (size_t i = 0; i < count; i++) FF_PUSH(&p->batch, p->buffer.items[i]);
  for (size_t i = count; i < p->buffer.count; i++) p->buffer.items[i - count] = p->buffer.items[i];
  p->buffer.count -= count;
  if (p->batch.count) qsort(p->batch.items, p->batch.count, sizeof *p->batch.items, by_unit);
  for (size_t i = 0; i < p->batch.count; i++) {
    bool again = false; /* another address of the same unit */
    for (size_t k = kept;
         k-- > 0 && !again &&
         p->batch.items[k].address >> PAGER_CHUNK_SHIFT == p->batch.items[i].address >> PAGER_CHUNK_SHIFT;)
      again = p->batch.items[k].unit == p->batch.items[i].unit;
    if (!again) p->batch.items[kept++] = p->batch.items[i];
  }
  p->batch.count = kept;
}

static int by_range(const void *a, const void *b) {
  const pager_range *x = a, *y = b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* A fault that is over without a transfer: the page is mapped where it is, or may be written from now on. */
static bool served_in_place(pager *p, const pager_buffered *fault) {
  pager_unit *unit = fault->unit;
  pager_flight_kind kind = pager_flight_kind_of(p, unit, fault->warp);
  if (unit->state == PAGER_RESIDENT && unit->duplicate && kind == PAGER_FLIGHT_WRITABLE) {
    unit->duplicate = false;
    return true;
  }
  if (unit->state != PAGER_ABSENT || kind != PAGER_FLIGHT_MAPPED) return false;
  unit->state = PAGER_REMOTE;
  pager_remark(p, fault->address);
  return true;
}

/* A fault on a page that thrashes is left alone for a while: it comes again when the batch is over. Or the page is
 * pinned. */
static bool left_alone(pager *p, const pager_buffered *fault) {
  uint64_t until;
  if (fault->unit->state != PAGER_ABSENT || fault->unit->hints & PAGER_READ_MOSTLY) return false;
  return pager_thrash_ask(p, fault->address, PAGER_GPU, p->now, &until) == PAGER_THRASH_THROTTLE;
}

/* The faults of one block, and what the prefetcher adds to them, in order of address. */
static void serve_block(pager *p, const pager_buffered *faults, size_t count) {
  ff_fault *shown = ff_alloc(count * sizeof *shown);
  size_t absent = 0, in_place = 0;
  p->to_bring.count = 0;
  for (size_t i = 0; i < count; i++) {
    if (left_alone(p, &faults[i])) continue;
    bool stays = served_in_place(p, &faults[i]);
    /* brought by the service of another block, or filled */
    if (!stays && faults[i].unit->state != PAGER_ABSENT) continue;
    p->config.hooks.serve(p->config.hooks.context, &faults[i], absent + in_place == 0);
    if (stays) {
      in_place++;
      continue;
    }
    shown[absent++] = (ff_fault){.address = faults[i].address, .time = faults[i].time, .sm = faults[i].sm};
    FF_PUSH(&p->to_bring, ((pager_range){faults[i].address & ~(p->config.unit_bytes - 1), p->config.unit_bytes}));
  }
  if (absent) {
    /* the driver's does nothing where pages of a block go to several places */
    if (!in_place) pager_ask_prefetcher(p, shown, absent);
    qsort(p->to_bring.items, p->to_bring.count, sizeof *p->to_bring.items, by_range);
    pager_bring(p, NULL, true);
  }
  for (size_t i = 0; i < count; i++)
    if (faults[i].unit->state == PAGER_IN_FLIGHT)
      faults[i].unit->flight_kind = (uint8_t)pager_flight_kind_of(p, faults[i].unit, faults[i].warp);
  free(shown);
}

void pager_batch_begin(pager *p, uint32_t limit) {
  FF_ASSERT(!p->serving);
  p->serving = true;
  p->batch_flights.count = 0;
  take(p, limit);
  for (size_t first = 0, end; first < p->batch.count; first = end) {
    uint64_t block = p->batch.items[first].address >> PAGER_CHUNK_SHIFT;
    for (end = first; end < p->batch.count && p->batch.items[end].address >> PAGER_CHUNK_SHIFT == block;) end++;
    serve_block(p, &p->batch.items[first], end - first);
  }
  pager_keep_free(p, NULL);
}

void pager_batch_lands(pager *p, uint64_t time) {
  for (size_t i = 0; i < p->batch_flights.count; i++) p->flights.items[p->batch_flights.items[i]].lands = time;
  if (p->lands_last < time) p->lands_last = time;
}

void pager_batch_end(pager *p) {
  p->serving = false;
  for (size_t i = 0; i < p->batch_flights.count; i++) pager_complete(p, p->batch_flights.items[i]);
  p->batch_flights.count = 0;
  size_t flushed = p->buffer.count;
  for (size_t i = 0; i < p->batch.count; i++) pager_end_tracked(p, p->batch.items[i].unit);
  for (size_t i = 0; i < flushed; i++) pager_end_tracked(p, p->buffer.items[i].unit);
  FF_ASSERT(p->buffer.count == flushed); /* warps try again only later */
  p->batch.count = p->buffer.count = 0;
}
