/* SPDX-License-Identifier: Apache-2.0 */
/* The order of work: streams, their operations, and which bytes each has read and written (Wilt 2017, R5).
 *
 *     work_open -> history_after / work_after -> driver calls -> history_add -> work_close: an event is recorded
 *
 * An operation whose number is at most stream.completed is over; of the others the event is still
 * that of the operation (STREAM_EVENTS are kept, and the host waits before one is used again). */
#include "runtime/gpu.h"

#include <stdlib.h>

ff_result work_wait(ff_gpu *gpu, operation op) {
  stream *s = &gpu->streams[op.stream];
  if (op.number <= s->completed) return FF_SUCCESS;
  if (op.number == s->issued + 1) TRY(work_close(gpu, op.stream));
  if (op.number <= s->completed) return FF_SUCCESS;
  TRY(gpu_on(gpu, s->device));
  DRIVER_TRY(gpu, EventSynchronize, s->events[op.number % STREAM_EVENTS]);
  if (s->completed < op.number) s->completed = op.number;
  return FF_SUCCESS;
}

bool work_is_over(ff_gpu *gpu, operation op) { return op.number <= gpu->streams[op.stream].completed; }

ff_result work_ask(ff_gpu *gpu, operation op, bool *over) {
  stream *s = &gpu->streams[op.stream];
  *over = op.number <= s->completed;
  if (*over) return FF_SUCCESS;
  if (op.number == s->issued + 1) TRY(work_close(gpu, op.stream));
  TRY(gpu_on(gpu, s->device));
  int result = op.number <= s->completed ? CUDA_OK : gpu->driver->EventQuery(s->events[op.number % STREAM_EVENTS]);
  if (result == CUDA_NOT_READY) return FF_SUCCESS;
  if (result) return driver_failed(gpu, result, "cuEventQuery");
  if (s->completed < op.number) s->completed = op.number;
  *over = true;
  return FF_SUCCESS;
}

ff_result work_open(ff_gpu *gpu, uint32_t index, operation *op) {
  stream *s = &gpu->streams[index];
  TRY(gpu_on(gpu, s->device));
  operation next = {index, s->issued + 1};
  if (s->open) {
    *op = next;
    return FF_SUCCESS;
  }
  if (s->issued - s->completed >= STREAM_EVENTS - 1)
    TRY(work_wait(gpu, (operation){index, s->issued - STREAM_EVENTS / 2}));
  cuda_event *event = &s->events[next.number % STREAM_EVENTS];
  if (!*event) DRIVER_TRY(gpu, EventCreate, event, CUDA_EVENT_DISABLE_TIMING);
  s->open = true;
  *op = next; /* not before: no wait may be for what was never opened */
  return FF_SUCCESS;
}

/* Without an event there is nothing to wait for: then the host waits for all of the stream. */
ff_result work_close(ff_gpu *gpu, uint32_t index) {
  stream *s = &gpu->streams[index];
  if (!s->open) return FF_SUCCESS;
  TRY(gpu_on(gpu, s->device));
  int result = gpu->driver->EventRecord(s->events[(s->issued + 1) % STREAM_EVENTS], s->handle);
  if (result) {
    int waited = gpu->driver->StreamSynchronize(s->handle);
    /* it stays open */
    if (waited && gpu->driver->CtxSynchronize()) return driver_failed(gpu, waited, "cuStreamSynchronize");
    s->completed = s->issued + 1;
  }
  s->open = false;
  s->issued++;
  return FF_SUCCESS;
}

ff_result work_after(ff_gpu *gpu, uint32_t index, operation op) {
  stream *s = &gpu->streams[index], *other = &gpu->streams[op.stream];
  if (op.stream == index || op.number <= other->completed || s->seen[op.stream] >= op.number) return FF_SUCCESS;
  if (op.number == other->issued + 1) TRY(work_close(gpu, op.stream));
  TRY(gpu_on(gpu, s->device));
  if (op.number <= other->completed) return FF_SUCCESS;
  if (gpu->driver->StreamWaitEvent(s->handle, other->events[op.number % STREAM_EVENTS], 0)) {
    TRY(work_wait(gpu, op));
    return gpu_on(gpu, s->device);
  }
  s->seen[op.stream] = op.number;
  return FF_SUCCESS;
}

/* ---- histories ---- */

static bool overlaps(span a, uint64_t begin, uint64_t end) { return a.begin < end && begin < a.end; }

ff_result history_after(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write, uint32_t index) {
  for (size_t i = 0; i < h->count; i++)
    if ((write || h->items[i].write) && overlaps(h->items[i].bytes, begin, end))
      TRY(work_after(gpu, index, h->items[i].by));
  return FF_SUCCESS;
}

/* Asks first: most of what an eviction waits for is over long since, and asking costs less than waiting. */
ff_result history_wait(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write) {
  bool over;
  for (size_t i = 0; i < h->count; i++) {
    if (!(write || h->items[i].write) || !overlaps(h->items[i].bytes, begin, end)) continue;
    TRY(work_ask(gpu, h->items[i].by, &over));
    if (!over) TRY(work_wait(gpu, h->items[i].by));
  }
  return FF_SUCCESS;
}

/* Takes [begin, end) out of the records that `which` chooses: all of one stream's reads, or everything. */
static void cut(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool all, uint32_t reads_of) {
  size_t kept = 0, count = h->count;
  for (size_t i = 0; i < count; i++) {
    history_record r = h->items[i];
    if (gpu && work_is_over(gpu, r.by)) continue;
    bool chosen = overlaps(r.bytes, begin, end) && (all || (!r.write && r.by.stream == reads_of));
    if (chosen && r.bytes.begin < begin && r.bytes.end > end) { /* its second part goes to the end */
      history_record behind = r;
      behind.bytes.begin = end;
      FF_PUSH(h, behind);
    }
    if (chosen && r.bytes.begin < begin) r.bytes.end = begin;
    else if (chosen && r.bytes.end > end) r.bytes.begin = end;
    else if (chosen) continue;
    h->items[kept++] = r;
  }
  for (size_t i = count; i < h->count; i++) h->items[kept++] = h->items[i];
  h->count = kept;
}

/* A write comes after all that it covers, so what comes after the write need not wait for these; likewise a stream's
 * reads. */
void history_add(ff_gpu *gpu, history *h, uint64_t begin, uint64_t end, bool write, operation by) {
  if (begin >= end) return;
  for (size_t i = 0; i < h->count; i++) { /* the same again: the most frequent case */
    history_record *r = &h->items[i];
    if (r->bytes.begin != begin || r->bytes.end != end || r->write != write || r->by.stream != by.stream) continue;
    if (write && h->count > 1) break;
    r->by = by;
    return;
  }
  cut(gpu, h, begin, end, write, by.stream);
  FF_PUSH(h, ((history_record){{begin, end}, by, write}));
}

void history_forget(history *h, uint64_t begin, uint64_t end) { cut(NULL, h, begin, end, true, 0); }

/* ---- a kernel's stream ---- */

uint32_t kernel_stream(ff_gpu *gpu, const launch *l, uint32_t index, const span *ranges) {
  operation latest = {0};
  const ff_partition *in = l->partition;
  uint32_t first = in ? partition_stream(in, 0) : stream_of(index, STREAM_KERNELS),
           count = in ? PARTITION_STREAMS : KERNEL_STREAMS;
  for (uint32_t u = 0; u < l->use_count; u++) {
    const history *h = &l->uses[u].segment->store->sides[index].history;
    bool write = l->uses[u].access & FF_WRITE;
    for (size_t i = 0; i < h->count; i++) {
      const history_record *r = &h->items[i];
      uint32_t which = r->by.stream - first; /* large where it is before that */
      if (!(write || r->write) || !overlaps(r->bytes, ranges[u].begin, ranges[u].end) || which >= count) continue;
      const stream *s = &gpu->streams[r->by.stream];
      if (r->by.number == s->issued && r->by.number > s->completed) latest = r->by;
    }
  }
  if (latest.number) return latest.stream;
  uint32_t *next = in ? &l->partition->next_stream : &gpu->devices[index].next_stream;
  return first + (*next)++ % count;
}
