/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults served in batches by the host's driver, as NVIDIA's managed memory does it (release 595.45.04): the driver
 * takes what is in the fault buffer, up to a limit; sorts it by address; serves one 2 MiB block after the other; and
 * then flushes the buffer and lets the GPU replay everything: an access whose page is still absent faults once more.
 *
 *     pager_fault --> buffer --pager_batch_begin--> taken: IN_FLIGHT units --pager_batch_end--> RESIDENT, woken
 *                     |  ^                            '-- no room, or left alone --.
 *                     |  '-------------------------pager_batch_end-----------------'
 *                     '--> over before a batch took it: another's batch has brought its unit (pager_buffer_drop)
 *
 * On the GPU each replay repeats each access that waits. Here those whose page is still absent stay asleep, and their
 * far-faults stay in the buffer, before all that comes later: repeating them costs the more the more lanes wait. On the
 * GPU what a warp raises that goes on comes between them; docs/timing.md has what the difference is. A warp is woken
 * when any of its pages has come, and goes on with what is there: a page that it must wait for longer may be evicted
 * before the last of its others has come.
 *
 *     live entries of the buffer = tracked NACKs with a place in it, each entry its NACK's */
#include <stdlib.h>
#include <string.h>

#include "paging/pager.h"

static void put(pager *p, const pager_buffered *fault) {
  FF_PUSH(&p->buffer, *fault);
  p->buffer_live++;
  p->nacks.items[fault->nack].buffered = p->buffer_gone + p->buffer.count;
}

void pager_buffer_add(pager *p, const fault_request *request, const pager_buffered *fault) {
  put(p, fault);
  p->config.hooks.buffered(p->config.hooks.context, request, fault->address);
}

void pager_buffer_drop(pager *p, const pager_nack *nack) {
  pager_buffered *fault = &p->buffer.items[nack->buffered - 1 - p->buffer_gone];
  FF_ASSERT(fault->unit == nack->unit && fault->sm == nack->sm);
  fault->unit = NULL;
  p->buffer_live--;
}

/* Gives back the places that batches have emptied, once they are as many as the others. */
static void close_ranks(pager *p) {
  if (2 * p->buffer_first < p->buffer.count) return;
  p->buffer.count -= p->buffer_first;
  if (p->buffer.count)
    memmove(p->buffer.items, p->buffer.items + p->buffer_first, p->buffer.count * sizeof *p->buffer.items);
  p->buffer_gone += p->buffer_first;
  p->buffer_first = 0;
}

static int by_unit(const void *a, const void *b) {
  const pager_buffered *x = a, *y = b;
  uint64_t xa = x->address, ya = y->address;
  if (xa != ya) return xa < ya ? -1 : 1;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->sm > y->sm) - (x->sm < y->sm);
}

/* Moves the oldest faults to `taken`, and the first of each unit to the batch. */
static void take(pager *p, uint32_t limit) {
  p->taken.count = p->batch.count = 0;
  for (; p->buffer_first < p->buffer.count && p->taken.count < limit; p->buffer_first++) {
    pager_buffered *fault = &p->buffer.items[p->buffer_first];
    if (!fault->unit) continue;
    p->nacks.items[fault->nack].buffered = 0;
    p->buffer_live--;
    FF_PUSH(&p->taken, *fault);
    FF_PUSH(&p->batch, *fault);
  }
  close_ranks(p);
  size_t kept = 0;
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
    pager_note(p, unit, fault->address, OWNERS_TAKES, 0);
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

static void bring_in_order(pager *p) {
  qsort(p->to_bring.items, p->to_bring.count, sizeof *p->to_bring.items, by_range);
  pager_bring(p, NULL, true);
}

/* Brings the `faults` first ranges and what the prefetcher has added to them. Where that may be more than memory has
 * room for the far-faults come first: of what is absent in order of address the prefetcher's part could take all room
 * before the first of them, batch after batch, for ever. */
static void bring_faults_and_added(pager *p, size_t faults) {
  uint64_t bytes = 0, room = p->memory - p->in_flight;
  size_t all = p->to_bring.count;
  for (size_t i = 0; i < all && bytes <= room; i++) bytes += p->to_bring.items[i].bytes;
  if (bytes > room && all > faults && !p->config.whole_blocks) {
    p->to_bring.count = faults;
    bring_in_order(p);
    p->to_bring.count = all;
  }
  bring_in_order(p);
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
    bring_faults_and_added(p, absent);
  }
  for (size_t i = 0; i < count; i++)
    if (faults[i].unit->state == PAGER_IN_FLIGHT)
      faults[i].unit->flight_kind = pager_flight_kind_of(p, faults[i].unit, faults[i].warp);
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

static void check_buffer(const pager *p) {
  uint64_t live = 0;
  for (size_t i = p->buffer_first; i < p->buffer.count; i++) {
    const pager_buffered *fault = &p->buffer.items[i];
    if (!fault->unit) continue;
    live++;
    const pager_nack *nack = &p->nacks.items[fault->nack];
    FF_ASSERT(nack->tracked && nack->unit == fault->unit && nack->sm == fault->sm &&
              nack->buffered == p->buffer_gone + i + 1);
  }
  FF_ASSERT(live == p->buffer_live);
}

/* What the batch took of a unit that is neither here nor on its way waits for another batch, if its NACK is not
 * over. */
static void put_back(pager *p, const pager_buffered *fault) {
  const pager_nack *nack = &p->nacks.items[fault->nack];
  if (fault->unit->state != PAGER_ABSENT || nack->unit != fault->unit || nack->sm != fault->sm || nack->buffered)
    return;
  put(p, fault);
}

void pager_batch_end(pager *p) {
  p->serving = false;
  for (size_t i = 0; i < p->batch_flights.count; i++) pager_complete(p, p->batch_flights.items[i]);
  p->batch_flights.count = 0;
  for (size_t i = 0; i < p->batch.count; i++) {
    pager_unit *unit = p->batch.items[i].unit;
    if (unit->state == PAGER_RESIDENT || unit->state == PAGER_REMOTE) pager_end_tracked(p, unit);
  }
  for (size_t i = 0; i < p->taken.count; i++) put_back(p, &p->taken.items[i]);
  p->taken.count = p->batch.count = 0;
  if (ff_check_level >= 2) check_buffer(p);
  for (size_t i = p->buffer_first; i < p->buffer.count; i++) {
    const pager_buffered *first = &p->buffer.items[i];
    if (!first->unit) continue;
    p->config.hooks.buffered(p->config.hooks.context, &(fault_request){.sm = first->sm, .warp = first->warp},
                             first->address);
    break;
  }
}
