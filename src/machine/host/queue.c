/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in streams.
 *
 * An operation (a node) begins when the host has issued it and everything before it is over:
 *   - the operation before it in its stream;
 *   - in the legacy default stream: what every blocking stream had to do;  in a blocking stream: what the legacy
 *     default stream had to do (CUDA C++ Programming Guide, "Legacy Default Stream");
 *   - for a wait: the event's recording.
 *
 *     queue_add          all before it over           (its own time)
 *   ------------> waits ---------------------> READY -----------------> DONE: its dependents wait for one less
 *
 * A node lives while something refers to it: its stream (as the tail), an event's record, the host, itself until
 * done. */
#include "machine/host/streams.h"

#include <stdlib.h>
#include <string.h>

#include "machine/answers.h"
#include "machine/host/host.h"
#include "machine/host/host_transfer.h"
#include "machine/memory/declared_residency.h"
#include "machine/observe/observer.h"
#include "machine/observe/profile.h"
#include "machine/sm/async.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/sample.h"
#include "machine/spec/allocation.h"
#include "machine/tenants/device.h"

void streams_begin(streams *q) {
  q->worked = UINT32_MAX;
  q->one = true;
  FF_PUSH(&q->nodes, NULL);
  FF_PUSH(&q->items, ((stream){.number = TRACE_STREAM_LEGACY}));
}

static void kernel_free(node *n) {
  if (n->kernel) sample_launch_free(n->kernel->sampled);
  if (n->kernel) async_far_free(n->kernel);
  free(n->kernel);
  n->kernel = NULL;
}

static void node_free(node *n) {
  free(n->dependents.items);
  free(n->uses.items);
  kernel_free(n); /* of a program that loops, stopped in the middle */
  free(n);
}

void streams_free(streams *q) {
  for (size_t i = 1; i < q->nodes.count; i++)
    if (q->nodes.items[i]) node_free(q->nodes.items[i]);
  for (size_t i = 0; i < q->sm_sets.count; i++) free(q->sm_sets.items[i]);
  free(q->nodes.items);
  free(q->free_nodes.items);
  free(q->items.items);
  free(q->records.items);
  free(q->sm_sets.items);
}

stream *stream_find(streams *q, uint32_t number) {
  for (size_t i = q->items.count; i-- > 0;)
    if (q->items.items[i].number == number) return &q->items.items[i];
  FF_PUSH(&q->items, ((stream){.number = number}));
  return &q->items.items[q->items.count - 1];
}

void stream_note_work(streams *q, uint32_t number) {
  if (q->worked == UINT32_MAX) q->worked = number;
  else if (q->worked != number) q->one = false;
}

void stream_create(streams *q, uint32_t number, bool non_blocking) {
  stream_find(q, number)->non_blocking = non_blocking;
  if (q->items.count > 2) q->one = false; /* the legacy default stream is one of them */
}

/* What of the set there is here: SMs of the device, of the tenant's own where it has such. */
static sm_set possible_sms(const streams *q, const trace_sms *wanted) {
  sm_set set = {0};
  const tenant *own = q->d->shared && q->d->isolation >= SIM_ISOLATION_SM ? &q->d->tenants[q->tenant] : NULL;
  for (uint32_t i = 0; i < TRACE_SMS_MAX && i < q->spec->sm_count; i++)
    if (wanted->mask[i / 64] >> i % 64 & 1 && (!own || sm_set_has(&own->sms, i)))
      set.bits[i / 64] |= UINT64_C(1) << i % 64;
  return set;
}

/* A tenant whose SMs are others than those that the program was recorded on has all of its own instead. */
void stream_bind(streams *q, uint32_t number, const trace_sms *wanted) {
  static const sm_set nothing;
  static const trace_sms all;
  stream *own = stream_find(q, number);
  sm_set set = possible_sms(q, wanted);
  bool none = !memcmp(&set, &nothing, sizeof set);
  own->sms = NULL;
  if (!memcmp(wanted, &all, sizeof all) || (none && q->d->whole->shared)) return;
  if (none) {
    host_fail(q->host, "stream %u is bound to SMs that %s does not have: it has %u", number, q->spec->name,
              (unsigned)q->spec->sm_count);
    return;
  }
  for (size_t i = 0; i < q->sm_sets.count && !own->sms; i++)
    if (!memcmp(q->sm_sets.items[i], &set, sizeof set)) own->sms = q->sm_sets.items[i];
  if (own->sms) return;
  if (q->sm_sets.count == SM_SETS) {
    host_fail(q->host, "streams are bound to more than %u different sets of SMs", (unsigned)SM_SETS);
    return;
  }
  sm_set *kept = ff_alloc(sizeof *kept);
  *kept = set;
  FF_PUSH(&q->sm_sets, kept);
  own->sms = kept;
}

/* ---- nodes ---- */

static node *node_make(streams *q, const trace_op *op) {
  node *n = ff_alloc(sizeof *n);
  n->op = *op;
  n->waits = 1;
  n->only_kernels = true;
  n->profiled = q->profile->made;
  q->unfinished++;
  n->references = 2; /* itself until done, and the caller */
  if (q->free_nodes.count) {
    n->index = q->free_nodes.items[--q->free_nodes.count];
    q->nodes.items[n->index] = n;
  } else {
    n->index = (uint32_t)q->nodes.count;
    FF_PUSH(&q->nodes, n);
  }
  return n;
}

void queue_release(streams *q, node *n) {
  if (--n->references) return;
  q->nodes.items[n->index] = NULL;
  FF_PUSH(&q->free_nodes, n->index);
  node_free(n);
}

/* n must wait for the node `before` (0: for nothing). */
static void wait_for(const streams *q, node *n, uint32_t before) {
  if (!before) return;
  node *b = q->nodes.items[before];
  if (b->done) {
    if (n->ready < b->done_at) n->ready = b->done_at;
    return;
  }
  bool takes_time =
      b->op.kind != TRACE_OP_LAUNCH && b->op.kind != TRACE_OP_EVENT_RECORD && b->op.kind != TRACE_OP_STREAM_WAIT;
  if (takes_time || !b->only_kernels) n->only_kernels = false;
  FF_PUSH(&b->dependents, n->index);
  n->waits++;
}

static void wait_for_stream(const streams *q, node *n, const stream *before) {
  wait_for(q, n, before->tail);
  if (n->ready < before->done_at) n->ready = before->done_at;
}

/* Numbers grow with the recordings; if a trace numbers them otherwise, they are looked for one by one. */
event_record *record_of(const streams *q, uint32_t number) {
  size_t low = 0, high = q->records.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (q->records.items[middle].number < number) low = middle + 1;
    else high = middle;
  }
  if (low < q->records.count && q->records.items[low].number == number) return &q->records.items[low];
  for (size_t i = q->records.count; i-- > 0;)
    if (q->records.items[i].number == number) return &q->records.items[i];
  return NULL;
}

event_record *record_at(const streams *q, uint64_t sequence) {
  size_t low = 0, high = q->records.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (q->records.items[middle].sequence < sequence) low = middle + 1;
    else high = middle;
  }
  return low < q->records.count && q->records.items[low].sequence == sequence ? &q->records.items[low] : NULL;
}

/* An event's recording that a wait or a synchronisation names. */
static void wait_for_event(const streams *q, node *n) {
  const event_record *record = record_of(q, n->op.event.event);
  if (!record) return; /* never recorded: nothing to wait for */
  if (record->known && n->ready < record->time) n->ready = record->time;
  if (!record->known) wait_for(q, n, record->node);
}

static void one_less(streams *q, node *n) {
  if (--n->waits == 0) agenda_add(q->agenda, n->ready, EVENT_NODE_READY, n->index);
}

node *queue_add(streams *q, const trace_op *op, ps issued) {
  node *n = node_make(q, op);
  n->ready = issued;
  n->call = (host_call){q->host->called, q->host->clock};
  stream *own = stream_find(q, op->stream);
  n->sms = own->sms;
  wait_for_stream(q, n, own);
  for (size_t i = 0; i < q->items.count; i++) {
    const stream *other = &q->items.items[i];
    bool legacy_pair = own->number == TRACE_STREAM_LEGACY ? !other->non_blocking
                                                          : other->number == TRACE_STREAM_LEGACY && !own->non_blocking;
    if (other != own && legacy_pair) wait_for_stream(q, n, other);
  }
  if (op->kind == TRACE_OP_STREAM_WAIT) wait_for_event(q, n);
  if (op->kind == TRACE_OP_EVENT_RECORD) {
    event_record record = {.sequence = op->sequence, .number = op->event.event, .node = n->index};
    FF_PUSH(&q->records, record);
    n->references++; /* until the record is known */
  }
  if (own->tail) queue_release(q, q->nodes.items[own->tail]);
  own->tail = n->index;
  n->references++;
  segments_declare(q->segments, n);
  /* where the device has been simulated further than the host has come */
  if (n->waits == 1) event_back(q->agenda->heap, n->ready);
  one_less(q, n);
  return n;
}

static void stream_drop(streams *q, stream *gone) {
  stream *legacy = &q->items.items[0]; /* made first, never destroyed */
  /* it waits for that still */
  if (!gone->non_blocking && legacy->done_at < gone->done_at) legacy->done_at = gone->done_at;
  if (gone->tail) queue_release(q, q->nodes.items[gone->tail]);
  *gone = q->items.items[--q->items.count];
}

void stream_destroy(streams *q, uint32_t number) {
  if (number == TRACE_STREAM_LEGACY) return;
  stream *gone = stream_find(q, number);
  gone->destroyed = true;
  if (!gone->tail || q->nodes.items[gone->tail]->done) stream_drop(q, gone);
}

void node_done(streams *q, node *n, ps time) {
  if (n->kernel && n->kernel->sampled && n->kernel->sampled->later) kernel_over(q->dispatch, n->kernel);
  kernel_free(n);
  segments_over(q->segments, n);
  n->done = true;
  n->done_at = time;
  q->unfinished--;
  if (q->end < time) q->end = time;
  stream *own = stream_find(q, n->op.stream);
  if (own->done_at < time) own->done_at = time;
  for (size_t i = 0; i < n->dependents.count; i++) {
    node *d = q->nodes.items[n->dependents.items[i]];
    if (d->ready < time) d->ready = time;
    one_less(q, d);
  }
  if (n->op.kind == TRACE_OP_EVENT_RECORD) {
    event_record *record = record_at(q, n->op.sequence);
    record->known = true;
    record->time = time;
    answers_progress(q->answers);
    queue_release(q, n);
  }
  if (own->destroyed && own->tail == n->index) stream_drop(q, own);
  if (q->profile->pending.count) profile_operation_over(q->profile, n->profiled, time);
  queue_release(q, n);
}

/* ---- beginning ---- */

static void launch_ready(streams *q, node *n, ps time) {
  ps resident = segments_resident(q->segments, n, time);
  if (resident > time) {
    n->ready = resident;
    agenda_add(q->agenda, resident, EVENT_NODE_READY, n->index);
    return;
  }
  const trace_launch *l = n->op.launch;
  kernel *k = ff_alloc(sizeof *k);
  uint64_t threads = (uint64_t)l->warps_per_block * 32;
  uint64_t registers = allocation_registers(q->spec, l->warps_per_block, l->registers);
  uint64_t shared = allocation_shared(q->spec, l->shared_bytes);
  *k = (kernel){.dispatch = q->dispatch,
                .sms = n->sms,
                .launch = n->op.launch,
                .number = l->id,
                .call = n->call,
                .counters = counters_of_kernel(q->observer, l),
                .node = n->index,
                .stream = n->op.stream,
                .blocks = l->blocks,
                .warps_per_block = l->warps_per_block,
                .block_threads = (uint32_t)threads,
                .block_registers = registers,
                .block_shared = shared,
                .l2 = l->l2,
                .carve_out = allocation_carve_out(q->spec, threads, registers, shared, l->carve_out - 1)};
  n->kernel = k;
  k->lines = lines_of_kernel(q->observer, l, k->counters);
  if (q->observer->history) record_arguments(q->observer, l, k->counters);
  time = transfer_managed_in(q->transfers, time);
  agenda_add(q->agenda, time + q->t->launch, EVENT_KERNEL_BEGIN, n->index);
}

void node_ready(streams *q, node *n) {
  bool again = false;
  ps end = n->ready;
  switch (n->op.kind) {
  case TRACE_OP_LAUNCH: launch_ready(q, n, n->ready); return;
  case TRACE_OP_COPY:
  case TRACE_OP_SET:
  case TRACE_OP_PREFETCH: end = transfer_begin(q->transfers, &n->op, n->ready, &again); break;
  default: break; /* events and waits take no time */
  }
  if (again) {
    n->ready = end;
    agenda_add(q->agenda, end, EVENT_NODE_READY, n->index);
  } else if (end == n->ready) {
    record_operation(q->observer, &n->op, n->call, n->ready, end);
    node_done(q, n, end);
  } else {
    record_operation(q->observer, &n->op, n->call, n->ready, end);
    agenda_add(q->agenda, end, EVENT_NODE_DONE, n->index);
  }
}

void node_begin_kernel(streams *q, node *n, ps time) {
  if (q->host->failed || !n->kernel->blocks || !n->kernel->warps_per_block) {
    trace_reader_skip(q->reader, n->kernel->launch);
    agenda_add(q->agenda, time, EVENT_NODE_DONE, n->index);
    return;
  }
  kernel_begin(q->dispatch, n->kernel, time);
}
