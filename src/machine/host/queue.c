/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in streams, and the loop that runs events.
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
#include <stdlib.h>
#include <string.h>

#include "machine/simulation.h"

stream *stream_find(streams *q, uint32_t number) {
  for (size_t i = q->items.count; i-- > 0;)
    if (q->items.items[i].number == number) return &q->items.items[i];
  FF_PUSH(&q->items, ((stream){.number = number}));
  return &q->items.items[q->items.count - 1];
}

/* What of the set there is here: SMs of the device, of the tenant's own where it has such. */
static sm_set possible_sms(const sim *s, const trace_sms *wanted) {
  sm_set set = {0};
  const tenant *own = s->d->shared && s->d->isolation >= SIM_ISOLATION_SM ? &s->d->tenants[s->tenant] : NULL;
  for (uint32_t i = 0; i < TRACE_SMS_MAX && i < s->spec->sm_count; i++)
    if (wanted->mask[i / 64] >> i % 64 & 1 && (!own || sm_set_has(&own->sms, i)))
      set.bits[i / 64] |= UINT64_C(1) << i % 64;
  return set;
}

/* A tenant whose SMs are others than those that the program was recorded on has all of its own instead. */
void stream_bind(sim *s, uint32_t number, const trace_sms *wanted) {
  static const sm_set nothing;
  static const trace_sms all;
  stream *own = stream_find(&s->streams, number);
  sm_set set = possible_sms(s, wanted);
  bool none = !memcmp(&set, &nothing, sizeof set);
  own->sms = NULL;
  if (!memcmp(wanted, &all, sizeof all) || (none && s->d->shared)) return;
  if (none) {
    sim_fail(s, "stream %u is bound to SMs that %s does not have: it has %u", number, s->spec->name,
             (unsigned)s->spec->sm_count);
    return;
  }
  for (size_t i = 0; i < s->streams.sm_sets.count && !own->sms; i++)
    if (!memcmp(s->streams.sm_sets.items[i], &set, sizeof set)) own->sms = s->streams.sm_sets.items[i];
  if (own->sms) return;
  if (s->streams.sm_sets.count == SM_SETS) {
    sim_fail(s, "streams are bound to more than %u different sets of SMs", (unsigned)SM_SETS);
    return;
  }
  sm_set *kept = ff_alloc(sizeof *kept);
  *kept = set;
  FF_PUSH(&s->streams.sm_sets, kept);
  own->sms = kept;
}

/* ---- nodes ---- */

static node *node_make(streams *q, const trace_op *op) {
  node *n = ff_alloc(sizeof *n);
  n->op = *op;
  n->waits = 1;
  n->only_kernels = true;
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
  free(n->dependents.items);
  free(n->uses.items);
  free(n);
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

static void one_less(sim *s, node *n) {
  if (--n->waits == 0) agenda_add(&s->agenda, n->ready, EVENT_NODE_READY, n->index);
}

node *queue_add(sim *s, const trace_op *op, ps issued) {
  node *n = node_make(&s->streams, op);
  n->ready = issued;
  stream *own = stream_find(&s->streams, op->stream);
  n->sms = own->sms;
  wait_for_stream(&s->streams, n, own);
  for (size_t i = 0; i < s->streams.items.count; i++) {
    const stream *other = &s->streams.items.items[i];
    bool legacy_pair = own->number == TRACE_STREAM_LEGACY ? !other->non_blocking
                                                          : other->number == TRACE_STREAM_LEGACY && !own->non_blocking;
    if (other != own && legacy_pair) wait_for_stream(&s->streams, n, other);
  }
  if (op->kind == TRACE_OP_STREAM_WAIT) wait_for_event(&s->streams, n);
  if (op->kind == TRACE_OP_EVENT_RECORD) {
    event_record record = {.sequence = op->sequence, .number = op->event.event, .node = n->index};
    FF_PUSH(&s->streams.records, record);
    n->references++; /* until the record is known */
  }
  if (own->tail) queue_release(&s->streams, s->streams.nodes.items[own->tail]);
  own->tail = n->index;
  n->references++;
  segments_declare(&s->segments, n);
  /* where the device has been simulated further than the host has come */
  if (n->waits == 1) event_back(s->agenda.heap, n->ready);
  one_less(s, n);
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

void node_done(sim *s, node *n, ps time) {
  n->done = true;
  n->done_at = time;
  s->streams.unfinished--;
  if (s->streams.end < time) s->streams.end = time;
  stream *own = stream_find(&s->streams, n->op.stream);
  if (own->done_at < time) own->done_at = time;
  for (size_t i = 0; i < n->dependents.count; i++) {
    node *d = s->streams.nodes.items[n->dependents.items[i]];
    if (d->ready < time) d->ready = time;
    one_less(s, d);
  }
  if (n->op.kind == TRACE_OP_EVENT_RECORD) {
    event_record *record = record_at(&s->streams, n->op.sequence);
    record->known = true;
    record->time = time;
    answers_progress(&s->answers);
    queue_release(&s->streams, n);
  }
  if (own->destroyed && own->tail == n->index) stream_drop(&s->streams, own);
  queue_release(&s->streams, n);
}

/* ---- beginning ---- */

static void launch_ready(sim *s, node *n, ps time) {
  ps resident = segments_resident(&s->segments, n, time);
  if (resident > time) {
    agenda_add(&s->agenda, n->ready = resident, EVENT_NODE_READY, n->index);
    return;
  }
  const trace_launch *l = n->op.launch;
  kernel *k = ff_alloc(sizeof *k);
  uint64_t threads = (uint64_t)l->warps_per_block * 32;
  *k = (kernel){.dispatch = &s->dispatch,
                .sms = n->sms,
                .launch = n->op.launch,
                .number = l->id,
                .counters = counters_of_kernel(&s->observer, l),
                .node = n->index,
                .stream = n->op.stream,
                .blocks = l->blocks,
                .warps_per_block = l->warps_per_block,
                .block_threads = (uint32_t)threads,
                .block_registers = threads * l->registers,
                .block_shared = l->shared_bytes};
  n->kernel = k;
  time = transfer_managed_in(s, time);
  agenda_add(&s->agenda, time + s->t.launch, EVENT_KERNEL_BEGIN, n->index);
}

void node_ready(sim *s, node *n) {
  bool again = false;
  ps end = n->ready;
  switch (n->op.kind) {
  case TRACE_OP_LAUNCH: launch_ready(s, n, n->ready); return;
  case TRACE_OP_COPY:
  case TRACE_OP_SET:
  case TRACE_OP_PREFETCH: end = operation_begin(s, n, n->ready, &again); break;
  default: break; /* events and waits take no time */
  }
  if (again) {
    n->ready = end;
    agenda_add(&s->agenda, end, EVENT_NODE_READY, n->index);
  } else if (end == n->ready) {
    record_operation(&s->observer, &n->op, n->ready, end);
    node_done(s, n, end);
  } else {
    record_operation(&s->observer, &n->op, n->ready, end);
    agenda_add(&s->agenda, end, EVENT_NODE_DONE, n->index);
  }
}

/* ---- the loop ---- */

static void kernel_event(sim *s, node *n, ps time) {
  if (s->host.failed || !n->kernel->blocks || !n->kernel->warps_per_block) {
    trace_reader_skip(s->reader, n->kernel->launch);
    agenda_add(&s->agenda, time, EVENT_NODE_DONE, n->index);
    return;
  }
  kernel_begin(&s->dispatch, n->kernel, time);
}

/* The entries below the root come next, and those below the first of them soon: what they will need is fetched into the
 * host's caches meanwhile (the warps of 132 SMs and their streams do not fit there). */
static inline void prefetch_next(const sim *s) {
  const event_heap *heap = s->agenda.heap;
  if (heap->count < 21) return;
  for (uint32_t c = 1; c < 5; c++) {
    if (event_kind_of(heap->items[c]) != EVENT_WARP) continue;
    const warp *w = s->d->warps.items[event_index(heap->items[c])];
    __builtin_prefetch(w->cursor.at);
    __builtin_prefetch(w->scheduler);
  }
  for (uint32_t c = 5; c < 21; c++) {
    if (event_kind_of(heap->items[c]) != EVENT_WARP) continue;
    const char *w = (const char *)s->d->warps.items[event_index(heap->items[c])];
    __builtin_prefetch(w);
    __builtin_prefetch(w + 64);
  }
}

void queue_run_event(sim *s, event e) {
  uint32_t index = event_own_index(e);
  ps time = event_time(e);
  /* else it follows from an operation that the host put late: event_back */
  if (s->agenda.now < time) s->agenda.now = time;
  s->pager->now = s->agenda.now;
  if (__builtin_expect(time >= s->observer.next_sample, 0)) record_sample(&s->observer, time);
  prefetch_next(s);
  if (event_kind_of(e) != EVENT_WARP) s->agenda.pending--;
  switch (event_kind_of(e)) {
  case EVENT_WARP: warp_wake(&s->front, s->d->warps.items[event_index(e)], time); break;
  case EVENT_NODE_READY: node_ready(s, s->streams.nodes.items[index]); break;
  case EVENT_KERNEL_BEGIN: kernel_event(s, s->streams.nodes.items[index], time); break;
  case EVENT_DEPART: pager_depart(s->pager, index); break;
  case EVENT_FLIGHT:
    pager_complete(s->pager, index);
    fault_idle(&s->faults);
    break;
  case EVENT_LINK_IDLE:
    s->faults.idle_pending = false;
    fault_idle(&s->faults);
    break;
  case EVENT_CLEAN:
    s->faults.clean_pending = false;
    pager_clean_end(s->pager);
    fault_clean(&s->faults);
    break;
  case EVENT_BATCH: fault_batch(&s->faults); break;
  case EVENT_SLICE: break; /* nobody's: device.c */
  case EVENT_NODE_DONE:
    free(s->streams.nodes.items[index]->kernel);
    s->streams.nodes.items[index]->kernel = NULL;
    segments_over(&s->segments, s->streams.nodes.items[index]);
    node_done(s, s->streams.nodes.items[index], time);
    break;
  }
  if (__builtin_expect(s->answers.askers != 0, 0)) answers_yield(&s->answers);
}

void run_until(sim *s, ps limit) {
  if (s->d->shared) {
    device_wait(s, WAIT_TIME, limit, NULL);
    return;
  }
  while (s->agenda.heap->next_time <= limit) queue_run_event(s, event_pop(s->agenda.heap));
}

void run_until_done(sim *s, node *n) {
  if (s->d->shared) {
    if (!n->done) device_wait(s, WAIT_NODE, 0, n);
    return;
  }
  while (!n->done) {
    FF_ASSERT(event_any(s->agenda.heap)); /* an operation that nothing will ever end */
    queue_run_event(s, event_pop(s->agenda.heap));
  }
}

void run_all(sim *s) {
  if (s->d->shared) {
    device_wait(s, WAIT_ALL, 0, NULL);
    return;
  }
  while (event_any(s->agenda.heap)) queue_run_event(s, event_pop(s->agenda.heap));
}
