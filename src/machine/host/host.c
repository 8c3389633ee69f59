/* SPDX-License-Identifier: Apache-2.0 */
/* The host: its virtual clock, and what each operation of the program costs it.
 *
 * Rule: before an operation is given to its stream, the device has been simulated up to the host's clock, and no
 * further - what the host does next may matter to it. One exception: while only one stream has ever had work (and at
 * most one was created), nothing can overtake a launch, so it is simulated to its end at once; that lets the
 * simulation run in parallel with the execution and frees the access stream early. A synchronisation runs the device
 * until its condition holds.
 *
 *     host clock: += api_us, launch_us, malloc_us, map_us ... (virtual_memory.c), link_copy_us (explicit copies under
 *                    MANAGER_PROGRAM)
 *                 = max(clock, condition) + sync_us for synchronisations */
#include "machine/host/host.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "machine/answers.h"
#include "machine/event_loop.h"
#include "machine/host/hints.h"
#include "machine/host/host_transfer.h"
#include "machine/host/peer_link.h"
#include "machine/host/peers.h"
#include "machine/host/streams.h"
#include "machine/host/tier_store.h"
#include "machine/host/virtual_memory.h"
#include "machine/memory/address_map.h"
#include "machine/memory/declared_residency.h"
#include "machine/observe/observer.h"
#include "machine/observe/profile.h"
#include "trace/origin.h"
#include "trace/touched.h"

void host_begin(host *h) { h->times = ff_alloc(HOST_TIMES * sizeof *h->times); }
void host_free(host *h) { free(h->times); }

void host_fail(host *h, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(h->error, sizeof h->error, format, args);
  va_end(args);
  h->failed = true;
}

static void spend(host *h, ps cost) {
  h->clock += cost;
  h->observer->counters.host_api_ps += cost;
  run_until(h->loop, h->clock);
}

void host_spend(host *h, ps cost) { spend(h, h->instant ? 0 : cost); }

void host_spend_call(host *h) { host_spend(h, h->t->api); }

/* For one of the operations that a single call puts: that has been paid for. */
static void spend_queueing(host *h, ps cost) {
  if (h->paid) run_until(h->loop, h->clock);
  else host_spend(h, cost);
}

static void wait_until(host *h, ps time) {
  if (time <= h->clock) return;
  h->observer->counters.host_wait_ps += time - h->clock;
  h->clock = time;
}

static void wait_for_node(host *h, node *n) {
  n->references++;
  run_until_done(h->loop, n);
  wait_until(h, n->done_at);
  queue_release(h->streams, n);
}

void host_wait_for_device(host *h) {
  run_all(h->loop);
  wait_until(h, h->streams->end);
}

/* ---- allocations ---- */

static uint64_t page_bytes_of(uint64_t address, uint64_t bytes) {
  uint64_t first = address / FF_PAGE_BYTES, last = (address + bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  return (last - first) * FF_PAGE_BYTES;
}

static bool lives_on_gpu(trace_memory_kind kind) { return kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_MANAGED; }

static bool block_used(const host *h, uint64_t block) { /* by any allocation that lives on the GPU */
  const pager *p = h->pager;
  for (size_t at = pager_first_behind(p, block << PAGER_CHUNK_SHIFT); at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address >> PAGER_CHUNK_SHIFT > block) return false;
    if (lives_on_gpu(a->kind)) return true;
  }
  return false;
}

/* GPU memory for all of an allocation which is not mapped now: its pages, or the blocks that no other one is in. */
host_memory host_memory_for(const host *h, uint64_t address, uint64_t bytes) {
  uint64_t pages = page_bytes_of(address, bytes);
  if (!h->manager->whole_blocks || !bytes) return (host_memory){pages, pages, bytes};
  uint64_t first = address >> PAGER_CHUNK_SHIFT, last = (address + bytes - 1) >> PAGER_CHUNK_SHIFT;
  uint64_t blocks = last - first + 1 - block_used(h, first) - (last != first && block_used(h, last));
  return (host_memory){blocks * FF_BLOCK_BYTES, pages, bytes};
}

/* From 100 % on all that is allocated fits, whichever way the manager hands memory out, and nothing is evicted. */
static bool has_room_for_all(const host *h) { return h->budget->share >= 1; }

/* --gpu-memory 75%: of the most that was allocated at one time, in pages, whichever way the manager hands memory out:
 * the same bytes for all. The program's memory comes bit by bit, so does the GPU's. */
static void grow_memory(host *h, host_memory more) {
  if (!(h->budget->share > 0)) return;
  uint64_t all = has_room_for_all(h) ? h->budget->mapped + more.bytes : h->budget->mapped_pages + more.pages;
  uint64_t share = (uint64_t)llround(h->budget->share * (double)all);
  share = (share + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES * FF_PAGE_BYTES;
  if (share > h->budget->given) h->budget->given = share;
  if (h->budget->given <= h->budget->bytes) return;
  pager_grow(h->pager, h->budget->given - h->budget->bytes);
  h->budget->bytes = h->budget->given;
}

/* A manager that would need more than the others have is no part of a comparison. Of a share this is known at the
 * program's end only. */
static void check_memory(host *h) {
  char needed[32], given[32];
  if (h->failed || !manager_pages(h->manager) || has_room_for_all(h) || !h->budget->given ||
      h->budget->given >= h->budget->least)
    return;
  run_all(h->loop);
  h->budget->left_out = true;
  host_fail(h, "%s: needs at least %s of GPU memory (%" PRIu64 " bytes) and was given %s (%" PRIu64 "): it is left out",
            h->label, ff_format_bytes(h->budget->least, needed, sizeof needed), h->budget->least,
            ff_format_bytes(h->budget->given, given, sizeof given), h->budget->given);
}

/* What must have a place: memory of the program on all its devices, and of all programs on the device. */
static uint64_t allocated_pages(host *h, uint64_t more) {
  return tier_store_allocated(h->tiers, h->budget->mapped_pages + h->budget->elsewhere_pages + more);
}

/* Whatever is not in GPU memory must have a place. */
static bool fits_below(host *h, uint64_t more, const char *name) {
  char wanted[32], there[32];
  if (!h->tiers->places) return true;
  uint64_t all = allocated_pages(h, more);
  uint64_t capacity = tier_store_capacity(h->tiers);
  if (all <= capacity) return true;
  run_all(h->loop);
  host_fail(h,
            "%s: with %s there are %s of pages, but the host's memory and the tiers below it hold %s: give them "
            "more (--host-memory, or below_host in the machine file)",
            h->label, name, ff_format_bytes(all, wanted, sizeof wanted),
            ff_format_bytes(capacity, there, sizeof there));
  return false;
}

bool host_take_memory(host *h, host_memory memory, const char *name) {
  grow_memory(h, memory);
  if (!fits_below(h, memory.pages, name)) return false;
  if (!(h->budget->share > 0)) check_memory(h);
  if (h->failed) return false;
  if (h->manager->placement == MANAGER_PROGRAM && h->budget->mapped + memory.bytes > h->budget->bytes) {
    char wanted[32], there[32];
    ff_format_bytes(h->budget->mapped + memory.bytes, wanted, sizeof wanted);
    ff_format_bytes(h->budget->bytes, there, sizeof there);
    run_all(h->loop);
    host_fail(
        h,
        "%s: with %s the program has %s in use, but the GPU has %s of memory%s: give it more (--gpu-memory), or choose a "
        "manager that moves pages",
        h->manager->name, name, wanted, there, h->budget->share > 0 ? ", its share of that" : "");
    return false;
  }
  h->budget->mapped += memory.bytes;
  h->budget->mapped_pages += memory.pages;
  h->budget->mapped_raw += memory.raw;
  if (h->budget->mapped_raw > h->observer->counters.footprint_bytes)
    h->observer->counters.footprint_bytes = h->budget->mapped_raw;
  return true;
}

void host_take_elsewhere(host *h, uint64_t address, uint64_t bytes, const char *name) {
  uint64_t pages = page_bytes_of(address, bytes);
  if (fits_below(h, pages, name)) h->budget->elsewhere_pages += pages;
}

void host_give_elsewhere(host *h, uint64_t address, uint64_t bytes) {
  h->budget->elsewhere_pages -= page_bytes_of(address, bytes);
  allocated_pages(h, 0);
}

void host_give_memory(host *h, host_memory memory) {
  h->budget->mapped -= memory.bytes;
  h->budget->mapped_pages -= memory.pages;
  allocated_pages(h, 0);
  h->budget->mapped_raw -= memory.raw;
}

static void allocate(host *h, const trace_op *op) {
  bool given = op->alloc.system || op->alloc.initialised;
  if (!given) host_spend(h, h->t->malloc);
  if (h->failed) return;
  record_sample(h->observer, h->clock);
  bool counted = lives_on_gpu(op->alloc.memory);
  if (op->alloc.system) mappings_show(h->mappings, op->alloc.address, op->alloc.bytes);
  host_memory memory = host_memory_for(h, op->alloc.address, op->alloc.bytes);
  if (counted && !host_take_memory(h, memory, op->alloc.name)) return;
  uint32_t index = pager_map(h->pager, op->alloc.address, op->alloc.bytes, hints_memory(h->hints, op),
                             counters_of_allocation(h->observer, op));
  if (!index && counted) host_give_memory(h, memory);
  if (index) h->pager->allocations.items[index].given = given;
  if (!index || !counted) return;
  address_map_allocated(h->map, op->alloc.address, op->alloc.bytes);
  bool writes_seen = op->alloc.memory == TRACE_MEMORY_DEVICE || h->touches_recorded;
  if (!op->alloc.initialised && writes_seen) pager_map_blank(h->pager, index);
  hints_allocated(h->hints, op);
}

/* As cudaFree, it waits for the device. */
static void release(host *h, const trace_op *op) {
  host_wait_for_device(h);
  uint32_t index = h->failed ? 0 : pager_allocation_at(h->pager, op->free.address);
  if (!index || !h->pager->allocations.items[index].given) host_spend(h, h->t->malloc);
  if (!index || h->pager->allocations.items[index].mapping) return;
  pager_allocation a = h->pager->allocations.items[index];
  record_released(h->observer, a.owner, h->clock);
  hints_released(h->hints, a.address);
  pager_unmap(h->pager, op->free.address);
  address_map_give(h->map, a.address, a.bytes);
  if (a.device) host_give_elsewhere(h, a.address, a.bytes);
  if (!lives_on_gpu(a.kind)) return;
  host_give_memory(h, host_memory_for(h, a.address, a.bytes));
}

/* ---- work for streams ---- */

/* What the program's future consists of in addition to its blocks. */
static void record_future(host *h, const trace_op *op) {
  if (op->kind == TRACE_OP_LAUNCH) trace_future_launch(h->written, op->launch);
  for (uint64_t row = 0; op->kind == TRACE_OP_SET && row < op->set.height; row++)
    trace_future_range(h->written, op->set.to + row * op->set.pitch, op->set.width);
  for (uint64_t row = 0; op->kind == TRACE_OP_COPY && op->copy.direction == TRACE_D2D && row < op->copy.height; row++) {
    trace_future_range(h->written, op->copy.from + row * op->copy.from_pitch, op->copy.width);
    trace_future_range(h->written, op->copy.to + row * op->copy.to_pitch, op->copy.width);
  }
}

/* Segments: the device goes on only as far as SEGMENTS_AHEAD launches back, so that these are known while it does. */
static void keep_back(host *h, node *n) {
  node *oldest = segments_keep_back(h->segments, n);
  if (oldest) {
    run_until_done(h->loop, oldest);
    queue_release(h->streams, oldest);
  }
  run_until(h->loop, h->clock);
}

static void enqueue(host *h, const trace_op *op) {
  if (h->written) record_future(h, op);
  if (h->failed) {
    if (op->kind == TRACE_OP_LAUNCH) trace_reader_skip(h->reader, op->launch);
    return;
  }
  bool work = op->kind != TRACE_OP_EVENT_RECORD && op->kind != TRACE_OP_STREAM_WAIT;
  if (work) stream_note_work(h->streams, op->stream);
  if (op->kind == TRACE_OP_LAUNCH && !op->launch->blocks) return;
  bool later = op->kind == TRACE_OP_STREAM_WAIT && h->not_before > h->clock;
  node *n = queue_add(h->streams, op, later ? h->not_before : h->clock);
  if (op->blocking) wait_for_node(h, n);
  else if (h->streams->one && h->manager->segments && op->kind == TRACE_OP_LAUNCH) keep_back(h, n);
  else if (work && h->streams->one) run_until_done(h->loop, n);
  else run_until(h->loop, h->clock);
  queue_release(h->streams, n);
}

/* ---- synchronisation ---- */

/* Under MANAGER_PROGRAM written managed allocations come back while the host waits. */
static void synchronised(host *h) {
  wait_until(h, transfer_managed_out(h->transfers, h->touches_recorded, h->clock));
  host_spend(h, h->t->sync);
}

static void synchronise_stream(host *h, uint32_t number) {
  stream *own = stream_find(h->streams, number);
  if (own->tail) wait_for_node(h, h->streams->nodes.items[own->tail]);
  wait_until(h, stream_find(h->streams, number)->done_at);
  synchronised(h);
}

static void synchronise_event(host *h, uint32_t number) {
  event_record *record = record_of(h->streams, number);
  if (record && !record->known) wait_for_node(h, h->streams->nodes.items[record->node]);
  else if (record) wait_until(h, record->time);
  synchronised(h);
}

static void touch(host *h, const trace_op *op) {
  h->touches_recorded = true;
  if (h->failed || !op->touch.bytes) return; /* of nothing: says only that touches are recorded */
  if (!manager_pages(h->manager)) host_wait_for_device(h);
  h->transfers->for_other = h->op_device != h->device_index;
  wait_until(h, transfer_touch(h->transfers, op, h->clock));
  h->transfers->for_other = false;
  hints_touched(h->hints, op);
}

static void prefetch_hinted(host *h, const trace_op *launch) {
  trace_op prefetch;
  while (!h->failed && hints_launch(h->hints, launch, &prefetch)) {
    host_spend(h, h->t->api);
    enqueue(h, &prefetch);
  }
}

/* ---- several devices ---- */

static ps copy_call(const host *h) { return h->manager->placement == MANAGER_PROGRAM ? h->t->link_copy : h->t->api; }

/* What is to be in another device's memory: this one's kernels reach it there, as they do the host's, if they can. A
 * hint that another device accesses it says nothing of this one. */
static void advise(host *h, const trace_op *op) {
  host_spend(h, h->t->api);
  bool others = op->hint.device >= 0 && (uint32_t)op->hint.device != h->device_index;
  trace_advice advice = (trace_advice)op->hint.advice;
  if (others && advice == TRACE_ADVICE_SET_PREFERRED_LOCATION && !(h->pager->config.peers >> op->hint.device & 1))
    advice = TRACE_ADVICE_UNSET_PREFERRED_LOCATION;
  if (!h->failed) pager_advise(h->pager, op->hint.address, op->hint.bytes, advice, others ? -1 : op->hint.device);
}

/* To another device's memory: that one takes the pages, these leave when it has. */
static void prefetch(host *h, const trace_op *op) {
  spend_queueing(h, h->t->api);
  bool others = op->hint.device >= 0 && (uint32_t)op->hint.device != h->device_index;
  trace_op own = *op;
  if (others && h->peers) own.hint.bytes = 0;
  else if (others) own.hint.device = -1;
  enqueue(h, &own);
}

/* What other devices' streams do with memory of this one, in the order of the calls, at the earliest when they are
 * made. */
static void process_elsewhere(host *h, const trace_op *op) {
  trace_op own = *op;
  own.stream = STREAM_ELSEWHERE(h->op_device);
  stream_find(h->streams, own.stream)->non_blocking = true;
  enqueue(h, &own);
}

/* The memory there is another device's. */
static void set_device(host *h, const trace_op *op) {
  uint32_t index = h->failed ? 0 : pager_allocation_at(h->pager, op->alloc.address);
  if (!index) return;
  h->pager->allocations.items[index].device = (uint8_t)(1 + h->op_device);
  host_take_elsewhere(h, op->alloc.address, op->alloc.bytes, op->alloc.name);
}

/* Of the other devices a simulation has their memory, which its kernels reach over the link, what calls for them cost
 * the host, and what they do with its own memory. */
static void process_foreign(host *h, const trace_op *op) {
  trace_op remote = *op;
  switch (op->kind) {
  case TRACE_OP_ALLOC:
    if (op->alloc.memory == TRACE_MEMORY_DEVICE) remote.alloc.memory = TRACE_MEMORY_PINNED;
    allocate(h, &remote);
    if (op->alloc.memory == TRACE_MEMORY_DEVICE) set_device(h, op);
    break;
  case TRACE_OP_FREE: release(h, op); break;
  case TRACE_OP_LAUNCH:
    trace_reader_skip(h->reader, op->launch);
    transfer_managed_elsewhere(h->transfers);
    spend(h, h->paid ? 0 : h->t->launch_call);
    break;
  case TRACE_OP_COPY:
    spend_queueing(h, copy_call(h));
    if (transfer_reaches(h->transfers, op)) process_elsewhere(h, op);
    break;
  case TRACE_OP_SET:
    spend_queueing(h, h->t->api);
    if (transfer_reaches(h->transfers, op)) process_elsewhere(h, op);
    break;
  case TRACE_OP_PREFETCH:
    spend_queueing(h, h->t->api);
    if (op->hint.device < 0 || (uint32_t)op->hint.device == h->device_index) process_elsewhere(h, op);
    break;
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_EVENT:
  case TRACE_OP_SYNC_DEVICE: host_spend(h, h->t->sync); break;
  case TRACE_OP_HOST_TOUCH: touch(h, op); break;
  case TRACE_OP_ADVISE: advise(h, op); break;
  case TRACE_OP_MODULE:
    if (h->observer->lines) lines_take_module(h->observer->lines, op);
    break;
  case TRACE_OP_PROFILE: profile_call(h->profile, op->profile.start); break;
  case TRACE_OP_RANGE: record_range(h->observer, op, h->clock); break;
  case TRACE_OP_STREAM_SMS:
  case TRACE_OP_END: break;
  case TRACE_OP_RESERVE:
  case TRACE_OP_UNRESERVE:
  case TRACE_OP_CREATE:
  case TRACE_OP_RELEASE:
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS: mapping_foreign(h->mappings, op); break;
  default: spend_queueing(h, h->t->api);
  }
}

/* Before such an operation is over for the host, it may have waited for a device. */
static bool host_may_wait(const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_EVENT:
  case TRACE_OP_SYNC_DEVICE:
  case TRACE_OP_FREE:
  case TRACE_OP_UNMAP:
  case TRACE_OP_HOST_TOUCH: return true;
  case TRACE_OP_COPY:
  case TRACE_OP_SET: return op->blocking;
  default: return false;
  }
}

/* Meanwhile the others' questions can be answered. Behind it all know what the others have had of managed memory, and
 * of the tiers below GPU memory. */
static ps meet(host *h, const trace_op *op, bool waits, ps time) {
  peer_tell(h->peer_link, waits);
  tier_tell(h->tiers, waits, h->clock);
  answers_unlock(h->answers);
  trace_reader_waits(h->reader, true);
  time = peers_meet(h->peers, h->device_index, op->sequence, time);
  trace_reader_waits(h->reader, false);
  answers_lock(h->answers);
  tier_meet(h->tiers);
  pager_owners_changed(h->pager);
  ps ports = peer_charge(h->peer_link, waits), drives = tier_charge(h->tiers, waits, waits ? time : h->clock);
  return time + (ports > drives ? ports : drives);
}

/* A launch may use managed memory that kernels before it have had on other devices. */
static bool shares_pages(host *h, const trace_op *op) {
  if (op->kind == TRACE_OP_ALLOC) h->managed |= op->alloc.memory == TRACE_MEMORY_MANAGED;
  return h->managed && manager_pages(h->manager) && (op->kind == TRACE_OP_LAUNCH || op->kind == TRACE_OP_PREFETCH);
}

/* When the event of this device happened for which a stream of another one's is to wait: the device goes on until it
 * has. Else 0. */
static ps happened_for_others(host *h, const trace_op *op) {
  const event_record *record = record_of(h->streams, op->event.event);
  if (!record) return 0;
  if (!record->known) {
    node *n = h->streams->nodes.items[record->node];
    n->references++;
    run_until_done(h->loop, n);
    queue_release(h->streams, n);
    record = record_of(h->streams, op->event.event);
  }
  return record && record->known ? record->time : 0;
}

static void process_own(host *h, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_ALLOC: allocate(h, op); break;
  case TRACE_OP_FREE: release(h, op); break;
  case TRACE_OP_COPY:
    spend_queueing(h, copy_call(h));
    enqueue(h, op);
    hints_touched(h->hints, op);
    break;
  case TRACE_OP_LAUNCH:
    prefetch_hinted(h, op);
    /* also of a program that loops: its kernels are what it is there for */
    spend(h, h->paid ? 0 : h->t->launch_call);
    enqueue(h, op);
    break;
  case TRACE_OP_PREFETCH: prefetch(h, op); break;
  case TRACE_OP_SET:
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
    spend_queueing(h, h->t->api);
    enqueue(h, op);
    break;
  case TRACE_OP_STREAM_CREATE:
    host_spend(h, h->t->api);
    stream_create(h->streams, op->stream, op->stream_create.flags & TRACE_STREAM_NON_BLOCKING);
    break;
  case TRACE_OP_STREAM_DESTROY:
    host_spend(h, h->t->api);
    stream_destroy(h->streams, op->stream);
    break;
  case TRACE_OP_SYNC_STREAM: synchronise_stream(h, op->stream); break;
  case TRACE_OP_SYNC_EVENT: synchronise_event(h, op->event.event); break;
  case TRACE_OP_SYNC_DEVICE:
    host_wait_for_device(h);
    synchronised(h);
    break;
  case TRACE_OP_HOST_TOUCH: touch(h, op); break;
  case TRACE_OP_HOST: host_spend(h, h->t->api); break;
  case TRACE_OP_ADVISE: advise(h, op); break;
  case TRACE_OP_PROFILE: profile_call(h->profile, op->profile.start); break;
  case TRACE_OP_RANGE: record_range(h->observer, op, h->clock); break;
  case TRACE_OP_STREAM_SMS: stream_bind(h->streams, op->stream, &op->sms); break;
  case TRACE_OP_MODULE:
    if (h->observer->lines) lines_take_module(h->observer->lines, op);
    break;
  case TRACE_OP_RESERVE:
  case TRACE_OP_UNRESERVE:
  case TRACE_OP_CREATE:
  case TRACE_OP_RELEASE:
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS: mapping_process(h->mappings, op); break;
  case TRACE_OP_END:
    run_all(h->loop);
    check_memory(h);
    break;
  }
}

void host_process(host *h, const trace_op *op) {
  trace_op own;
  h->paid = trace_is_paid(op->stream);
  h->op_device = trace_device(op->stream);
  bool foreign = h->op_device != h->device_index && op->kind != TRACE_OP_END;
  h->pager->met = false;
  h->called = h->clock;
  if (op->stream >= TRACE_STREAM_NUMBERS) {
    own = *op;
    own.stream = trace_stream_number(op->stream);
    op = &own;
  }
  if (h->peers && op->kind == TRACE_OP_STREAM_WAIT)
    h->not_before = meet(h, op, false, foreign ? happened_for_others(h, op) : 0);
  if (h->peers && shares_pages(h, op)) meet(h, op, false, 0);
  if (foreign) process_foreign(h, op);
  else process_own(h, op);
  if (op->kind == TRACE_OP_LAUNCH) trace_reader_answer(h->reader, op->launch, false); /* if no sampler has */
  if (h->peers && op->kind == TRACE_OP_END) meet(h, op, false, 0); /* what has landed since the last wait */
  if (h->peers && host_may_wait(op)) wait_until(h, meet(h, op, true, h->clock));
  h->times[op->sequence % HOST_TIMES] = h->clock;
  h->processed = op->sequence + 1;
  answers_progress(h->answers);
}
