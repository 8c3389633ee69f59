/* SPDX-License-Identifier: Apache-2.0 */
/* The host: its virtual clock, and what each operation of the program costs it.
 *
 * Rule: before an operation is given to its stream, the device has been simulated up to the host's clock, and no
 * further - what the host does next may matter to it. One exception: while only one stream has ever had work (and at
 * most one was created), nothing can overtake a launch, so it is simulated to its end at once; that lets the
 * simulation run beside the execution and frees the access stream early. A synchronisation runs the device until its
 * condition holds.
 *
 *     host clock: += api_us, launch_us, malloc_us, map_us ... (virtual_memory.c), link_copy_us (explicit copies under
 *                    MANAGER_PROGRAM)
 *                 = max(clock, condition) + sync_us for synchronisations */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "machine/simulation.h"
#include "machine/host/peers.h"
#include "trace/origin.h"

void sim_fail(sim *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(s->host.error, sizeof s->host.error, format, args);
  va_end(args);
  s->host.failed = true;
}

static void spend(sim *s, ps cost) {
  s->host.clock += cost;
  s->observer.counters.host_api_ps += cost;
  run_until(s, s->host.clock);
}

void host_spend(sim *s, ps cost) { spend(s, s->instant ? 0 : cost); }

void host_spend_call(sim *s) { host_spend(s, s->t.api); }

/* For one of the operations that a single call puts: that has been paid for. */
static void spend_queueing(sim *s, ps cost) {
  if (s->host.paid) run_until(s, s->host.clock);
  else host_spend(s, cost);
}

static void wait_until(sim *s, ps time) {
  if (time <= s->host.clock) return;
  s->observer.counters.host_wait_ps += time - s->host.clock;
  s->host.clock = time;
}

static void wait_for_node(sim *s, node *n) {
  n->references++;
  run_until_done(s, n);
  wait_until(s, n->done_at);
  queue_release(&s->streams, n);
}

void host_wait_for_device(sim *s) {
  run_all(s);
  wait_until(s, s->streams.end);
}

/* ---- allocations ---- */

static uint64_t page_bytes_of(uint64_t address, uint64_t bytes) {
  uint64_t first = address / FF_PAGE_BYTES, last = (address + bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  return (last - first) * FF_PAGE_BYTES;
}

static bool lives_on_gpu(trace_memory_kind kind) { return kind == TRACE_MEMORY_DEVICE || kind == TRACE_MEMORY_MANAGED; }

static bool block_used(const sim *s, uint64_t block) { /* by any allocation that lives on the GPU */
  const pager *p = s->pager;
  for (size_t at = pager_first_behind(p, block << PAGER_CHUNK_SHIFT); at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address >> PAGER_CHUNK_SHIFT > block) return false;
    if (lives_on_gpu(a->kind)) return true;
  }
  return false;
}

/* GPU memory for all of an allocation which is not mapped now: its pages, or the blocks that no other one is in. */
host_memory host_memory_for(const sim *s, uint64_t address, uint64_t bytes) {
  uint64_t pages = page_bytes_of(address, bytes);
  if (!s->manager->whole_blocks || !bytes) return (host_memory){pages, pages, bytes};
  uint64_t first = address >> PAGER_CHUNK_SHIFT, last = (address + bytes - 1) >> PAGER_CHUNK_SHIFT;
  uint64_t blocks = last - first + 1 - block_used(s, first) - (last != first && block_used(s, last));
  return (host_memory){blocks * FF_BLOCK_BYTES, pages, bytes};
}

/* From 100 % on all that is allocated fits, whichever way the manager hands memory out, and nothing is evicted. */
static bool has_room_for_all(const sim *s) { return s->budget.share >= 1; }

/* --gpu-memory 75%: of the most that was allocated at one time, in pages, whichever way the manager hands memory out:
 * the same bytes for all. The program's memory comes bit by bit, so does the GPU's. */
static void grow_memory(sim *s, host_memory more) {
  if (!(s->budget.share > 0)) return;
  uint64_t all = has_room_for_all(s) ? s->budget.mapped + more.bytes : s->budget.mapped_pages + more.pages;
  uint64_t share = (uint64_t)llround(s->budget.share * (double)all);
  share = (share + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES * FF_PAGE_BYTES;
  if (share > s->budget.given) s->budget.given = share;
  if (s->budget.given <= s->budget.bytes) return;
  pager_grow(s->pager, s->budget.given - s->budget.bytes);
  s->budget.bytes = s->budget.given;
}

/* A manager that would need more than the others have is no part of a comparison. Of a share this is known at the
 * program's end only. */
static void check_memory(sim *s) {
  char needed[32], given[32];
  if (s->host.failed || !is_paged(s) || has_room_for_all(s) || !s->budget.given || s->budget.given >= s->budget.least)
    return;
  run_all(s);
  s->budget.left_out = true;
  sim_fail(s, "%s: needs at least %s of GPU memory (%" PRIu64 " bytes) and was given %s (%" PRIu64 "): it is left out",
           s->label, ff_format_bytes(s->budget.least, needed, sizeof needed), s->budget.least,
           ff_format_bytes(s->budget.given, given, sizeof given), s->budget.given);
}

bool host_take_memory(sim *s, host_memory memory, const char *name) {
  grow_memory(s, memory);
  if (!(s->budget.share > 0)) check_memory(s);
  if (s->host.failed) return false;
  if (s->manager->placement == MANAGER_PROGRAM && s->budget.mapped + memory.bytes > s->budget.bytes) {
    char wanted[32], there[32];
    ff_format_bytes(s->budget.mapped + memory.bytes, wanted, sizeof wanted);
    ff_format_bytes(s->budget.bytes, there, sizeof there);
    run_all(s);
    sim_fail(
        s,
        "%s: with %s the program has %s in use, but the GPU has %s of memory: give it more (--gpu-memory), or choose a "
        "manager that moves pages",
        s->manager->name, name, wanted, there);
    return false;
  }
  s->budget.mapped += memory.bytes;
  s->budget.mapped_pages += memory.pages;
  s->budget.mapped_raw += memory.raw;
  if (s->budget.mapped_raw > s->observer.counters.footprint_bytes)
    s->observer.counters.footprint_bytes = s->budget.mapped_raw;
  return true;
}

void host_give_memory(sim *s, host_memory memory) {
  s->budget.mapped -= memory.bytes;
  s->budget.mapped_pages -= memory.pages;
  s->budget.mapped_raw -= memory.raw;
}

static void allocate(sim *s, const trace_op *op) {
  host_spend(s, s->t.malloc);
  if (s->host.failed) return;
  record_sample(&s->observer, s->host.clock);
  bool counted = lives_on_gpu(op->alloc.memory);
  host_memory memory = host_memory_for(s, op->alloc.address, op->alloc.bytes);
  if (counted && !host_take_memory(s, memory, op->alloc.name)) return;
  uint32_t index = pager_map(s->pager, op->alloc.address, op->alloc.bytes, hints_memory(s, op),
                             counters_of_allocation(&s->observer, op));
  if (!index && counted) host_give_memory(s, memory);
  if (!index || !counted) return;
  address_map_allocated(&s->placing, op->alloc.address, op->alloc.bytes);
  bool writes_seen = op->alloc.memory == TRACE_MEMORY_DEVICE || s->host.touches_recorded;
  s->pager->allocations.items[index].blank = s->manager->segments && !op->alloc.initialised && writes_seen;
  hints_allocated(s, op);
}

/* As cudaFree, it waits for the device. */
static void release(sim *s, const trace_op *op) {
  host_wait_for_device(s);
  host_spend(s, s->t.malloc);
  uint32_t index = s->host.failed ? 0 : pager_allocation_at(s->pager, op->free.address);
  if (!index || s->pager->allocations.items[index].mapping) return;
  pager_allocation a = s->pager->allocations.items[index];
  record_released(&s->observer, a.owner, s->host.clock);
  hints_released(s, a.address);
  pager_unmap(s->pager, op->free.address);
  address_map_give(&s->placing, a.address, a.bytes);
  if (!lives_on_gpu(a.kind)) return;
  host_give_memory(s, host_memory_for(s, a.address, a.bytes));
}

/* ---- work for streams ---- */

static void note_work(sim *s, uint32_t stream) {
  if (s->streams.worked == UINT32_MAX) s->streams.worked = stream;
  else if (s->streams.worked != stream) s->streams.one = false;
}

/* What the program's future consists of beside its blocks. */
static void record_future(sim *s, const trace_op *op) {
  if (op->kind == TRACE_OP_LAUNCH) trace_future_launch(s->record, op->launch);
  for (uint64_t row = 0; op->kind == TRACE_OP_SET && row < op->set.height; row++)
    trace_future_range(s->record, op->set.to + row * op->set.pitch, op->set.width);
  for (uint64_t row = 0; op->kind == TRACE_OP_COPY && op->copy.direction == TRACE_D2D && row < op->copy.height; row++) {
    trace_future_range(s->record, op->copy.from + row * op->copy.from_pitch, op->copy.width);
    trace_future_range(s->record, op->copy.to + row * op->copy.to_pitch, op->copy.width);
  }
}

/* Segments: the device goes on only as far as SEGMENTS_AHEAD launches back, so that these are known while it does. */
static void keep_back(sim *s, node *n) {
  node **place = &s->segments.kept_back[s->segments.next_kept_back++ % SEGMENTS_AHEAD], *oldest = *place;
  *place = n;
  n->references++;
  if (oldest) {
    run_until_done(s, oldest);
    queue_release(&s->streams, oldest);
  }
  run_until(s, s->host.clock);
}

static void enqueue(sim *s, const trace_op *op) {
  if (s->record) record_future(s, op);
  if (s->host.failed) {
    if (op->kind == TRACE_OP_LAUNCH) trace_reader_skip(s->reader, op->launch);
    return;
  }
  bool work = op->kind != TRACE_OP_EVENT_RECORD && op->kind != TRACE_OP_STREAM_WAIT;
  if (work) note_work(s, op->stream);
  if (op->kind == TRACE_OP_LAUNCH && !op->launch->blocks) return;
  bool later = op->kind == TRACE_OP_STREAM_WAIT && s->host.not_before > s->host.clock;
  node *n = queue_add(s, op, later ? s->host.not_before : s->host.clock);
  if (op->blocking) wait_for_node(s, n);
  else if (s->streams.one && s->manager->segments && op->kind == TRACE_OP_LAUNCH) keep_back(s, n);
  else if (work && s->streams.one) run_until_done(s, n);
  else run_until(s, s->host.clock);
  queue_release(&s->streams, n);
}

/* ---- synchronisation ---- */

/* Under MANAGER_PROGRAM written managed allocations come back while the host waits. */
static void synchronised(sim *s) {
  wait_until(s, transfer_managed_out(s, s->host.clock));
  host_spend(s, s->t.sync);
}

static void synchronise_stream(sim *s, uint32_t number) {
  stream *own = stream_find(&s->streams, number);
  if (own->tail) wait_for_node(s, s->streams.nodes.items[own->tail]);
  wait_until(s, stream_find(&s->streams, number)->done_at);
  synchronised(s);
}

static void synchronise_event(sim *s, uint32_t number) {
  event_record *record = record_of(&s->streams, number);
  if (record && !record->known) wait_for_node(s, s->streams.nodes.items[record->node]);
  else if (record) wait_until(s, record->time);
  synchronised(s);
}

static void touch(sim *s, const trace_op *op) {
  s->host.touches_recorded = true;
  if (s->host.failed || !op->touch.bytes) return; /* of nothing: says only that touches are recorded */
  if (!is_paged(s)) host_wait_for_device(s);
  wait_until(s, transfer_touch(s, op, s->host.clock));
  hints_touched(s, op);
}

static void prefetch_hinted(sim *s, const trace_op *launch) {
  trace_op prefetch;
  while (!s->host.failed && hints_launch(s, launch, &prefetch)) {
    host_spend(s, s->t.api);
    enqueue(s, &prefetch);
  }
}

/* ---- several devices ---- */

#define ELSEWHERE (TRACE_STREAM_NUMBERS - 1) /* the stream of what others' streams do with this device's memory */

static ps copy_call(const sim *s) { return s->manager->placement == MANAGER_PROGRAM ? s->t.link_copy : s->t.api; }

/* A hint that names another device says of this one only that the data is to be elsewhere. */
static void advise(sim *s, const trace_op *op) {
  host_spend(s, s->t.api);
  bool others = op->hint.device >= 0 && (uint32_t)op->hint.device != s->host.device_index;
  if (!s->host.failed)
    pager_advise(s->pager, op->hint.address, op->hint.bytes, (trace_advice)op->hint.advice,
                 others ? -1 : op->hint.device);
}

static void prefetch(sim *s, const trace_op *op) {
  trace_op own = *op;
  if (op->hint.device >= 0 && (uint32_t)op->hint.device != s->host.device_index) own.hint.device = -1;
  spend_queueing(s, s->t.api);
  enqueue(s, &own);
}

/* What other devices' streams do with memory of this one, in the order of the calls, at the earliest when they are
 * made. */
static void process_elsewhere(sim *s, const trace_op *op) {
  trace_op own = *op;
  own.stream = ELSEWHERE;
  stream_find(&s->streams, ELSEWHERE)->non_blocking = true;
  enqueue(s, &own);
}

/* Of the other devices a simulation knows their memory, which its kernels reach over the link, what calls for them cost
 * the host, and what they do with its own memory. */
static void process_foreign(sim *s, const trace_op *op) {
  trace_op remote = *op;
  switch (op->kind) {
  case TRACE_OP_ALLOC:
    if (op->alloc.memory == TRACE_MEMORY_DEVICE) remote.alloc.memory = TRACE_MEMORY_PINNED;
    allocate(s, &remote);
    break;
  case TRACE_OP_FREE: release(s, op); break;
  case TRACE_OP_LAUNCH:
    trace_reader_skip(s->reader, op->launch);
    spend(s, s->host.paid ? 0 : s->t.launch_call);
    break;
  case TRACE_OP_COPY:
    spend_queueing(s, copy_call(s));
    if (transfer_reaches(s, op)) process_elsewhere(s, op);
    break;
  case TRACE_OP_SET:
    spend_queueing(s, s->t.api);
    if (transfer_reaches(s, op)) process_elsewhere(s, op);
    break;
  case TRACE_OP_PREFETCH:
    spend_queueing(s, s->t.api);
    if ((uint32_t)op->hint.device == s->host.device_index) process_elsewhere(s, op);
    break;
  case TRACE_OP_SYNC_STREAM:
  case TRACE_OP_SYNC_EVENT:
  case TRACE_OP_SYNC_DEVICE: host_spend(s, s->t.sync); break;
  case TRACE_OP_HOST_TOUCH: touch(s, op); break;
  case TRACE_OP_ADVISE: advise(s, op); break;
  case TRACE_OP_MODULE:
  case TRACE_OP_STREAM_SMS:
  case TRACE_OP_END: break;
  case TRACE_OP_RESERVE:
  case TRACE_OP_UNRESERVE:
  case TRACE_OP_CREATE:
  case TRACE_OP_RELEASE:
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS: mapping_foreign(s, op); break;
  default: spend_queueing(s, s->t.api);
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

/* Meanwhile the others' questions can be answered. */
static ps meet(sim *s, ps time) {
  answers_unlock(&s->answers);
  trace_reader_waits(s->reader, true);
  time = peers_meet(s->host.peers, s->host.device_index, time);
  trace_reader_waits(s->reader, false);
  answers_lock(&s->answers);
  return time;
}

/* When the event of this device happened for which a stream of another one's is to wait: the device goes on until it
 * has. Else 0. */
static ps happened_for_others(sim *s, const trace_op *op) {
  const event_record *record = record_of(&s->streams, op->event.event);
  if (!record) return 0;
  if (!record->known) {
    node *n = s->streams.nodes.items[record->node];
    n->references++;
    run_until_done(s, n);
    queue_release(&s->streams, n);
    record = record_of(&s->streams, op->event.event);
  }
  return record && record->known ? record->time : 0;
}

static void process_own(sim *s, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_ALLOC: allocate(s, op); break;
  case TRACE_OP_FREE: release(s, op); break;
  case TRACE_OP_COPY:
    spend_queueing(s, copy_call(s));
    enqueue(s, op);
    hints_touched(s, op);
    break;
  case TRACE_OP_LAUNCH:
    prefetch_hinted(s, op);
    /* also of a program that loops: its kernels are what it is there for */
    spend(s, s->host.paid ? 0 : s->t.launch_call);
    enqueue(s, op);
    break;
  case TRACE_OP_PREFETCH: prefetch(s, op); break;
  case TRACE_OP_SET:
  case TRACE_OP_EVENT_RECORD:
  case TRACE_OP_STREAM_WAIT:
    spend_queueing(s, s->t.api);
    enqueue(s, op);
    break;
  case TRACE_OP_STREAM_CREATE:
    host_spend(s, s->t.api);
    stream_find(&s->streams, op->stream)->non_blocking = op->stream_create.flags & TRACE_STREAM_NON_BLOCKING;
    if (s->streams.items.count > 2) s->streams.one = false; /* the legacy default stream is always there */
    break;
  case TRACE_OP_STREAM_DESTROY:
    host_spend(s, s->t.api);
    stream_destroy(&s->streams, op->stream);
    break;
  case TRACE_OP_SYNC_STREAM: synchronise_stream(s, op->stream); break;
  case TRACE_OP_SYNC_EVENT: synchronise_event(s, op->event.event); break;
  case TRACE_OP_SYNC_DEVICE:
    host_wait_for_device(s);
    synchronised(s);
    break;
  case TRACE_OP_HOST_TOUCH: touch(s, op); break;
  case TRACE_OP_HOST: host_spend(s, s->t.api); break;
  case TRACE_OP_ADVISE: advise(s, op); break;
  case TRACE_OP_STREAM_SMS: stream_bind(s, op->stream, &op->sms); break;
  case TRACE_OP_MODULE: break;
  case TRACE_OP_RESERVE:
  case TRACE_OP_UNRESERVE:
  case TRACE_OP_CREATE:
  case TRACE_OP_RELEASE:
  case TRACE_OP_MAP:
  case TRACE_OP_UNMAP:
  case TRACE_OP_SET_ACCESS: mapping_process(s, op); break;
  case TRACE_OP_END:
    run_all(s);
    check_memory(s);
    break;
  }
}

void host_process(sim *s, const trace_op *op) {
  trace_op own;
  s->host.paid = trace_is_paid(op->stream);
  bool foreign = trace_device(op->stream) != s->host.device_index && op->kind != TRACE_OP_END;
  if (op->stream >= TRACE_STREAM_NUMBERS) {
    own = *op;
    own.stream = trace_stream_number(op->stream);
    op = &own;
  }
  if (s->host.peers && op->kind == TRACE_OP_STREAM_WAIT)
    s->host.not_before = meet(s, foreign ? happened_for_others(s, op) : 0);
  if (foreign) process_foreign(s, op);
  else process_own(s, op);
  if (s->host.peers && host_may_wait(op)) wait_until(s, meet(s, s->host.clock));
  s->host.times[op->sequence % HOST_TIMES] = s->host.clock;
  s->host.processed = op->sequence + 1;
  answers_progress(&s->answers);
}
