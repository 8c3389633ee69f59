/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and virtual time.
 *
 * The device works in the host's order, so a stream is only a number in the access stream; what it decides is time.
 * Time comes from the first simulation (sim_event_time, sim_event_happened). Without one a local clock stands in: every
 * operation has a cost from the machine file, starts when its stream, the legacy stream's rule and (for a kernel) the
 * device allow, and the host moves on by its own cost. Both are deterministic; neither reads a real clock.
 *
 *   query:  an event record is put behind the stream's last operation (once), the query itself costs host time, and
 *           the two are compared. Each further query moves the host on, so every polling loop ends. */
#include <stdlib.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"

static _Thread_local struct {
  engine_stream *stream; /* this thread's default stream of the device */
  uint32_t generation;   /* of the device it belongs to: a reset makes it stale */
} own[ENGINE_DEVICES_MAX];

/* ---- local clock ---- */

static uint64_t picoseconds(double microseconds) { return microseconds > 0 ? (uint64_t)(microseconds * 1e6 + 0.5) : 0; }

void engine_time_host(double microseconds) { ff_engine.host_ps += ff_engine.batch ? 0 : picoseconds(microseconds); }

static uint64_t latest(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* When everything that the legacy stream's rule puts before an operation of `stream` is over. */
uint64_t engine_stream_ready(const engine_stream *stream) {
  uint64_t ready = latest(ff_engine.host_ps, stream->end_ps);
  if (stream->flags & cudaStreamNonBlocking) return ready;
  if (!engine_stream_is_legacy(stream)) return latest(ready, ff_engine.legacy[stream->device].end_ps);
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->device == stream->device && !(s->flags & cudaStreamNonBlocking)) ready = latest(ready, s->end_ps);
  return ready;
}

void engine_time_spend(engine_stream *stream, uint64_t ps, bool kernel, bool blocking) {
  uint64_t start = engine_stream_ready(stream);
  if (kernel) start = latest(start, ff_engine.device_ps[stream->device]);
  stream->end_ps = start + ps;
  stream->dirty = true;
  if (kernel) ff_engine.device_ps[stream->device] = stream->end_ps;
  if (blocking) ff_engine.host_ps = latest(ff_engine.host_ps, stream->end_ps);
  else engine_time_host(kernel ? ff_engine.machine->launch_us : ff_engine.machine->api_us);
}

uint64_t engine_time_transfer(uint64_t bytes, trace_direction direction) {
  const machine_spec *m = ff_engine.machine;
  double gbs = direction == TRACE_H2D   ? m->link_h2d_gbs
               : direction == TRACE_D2H ? m->link_d2h_gbs
               : direction == TRACE_H2H ? m->host_gbs
                                        : m->dram_gbs * spec_copy_share(m) / 2; /* a device copy reads and writes */
  double latency = direction == TRACE_D2D ? m->launch_latency_us : m->link_latency_us + m->link_copy_us;
  return picoseconds(latency) + (uint64_t)((double)bytes * 1e3 / gbs);
}

/* Every scheduler busy all the time: a lower bound, but it grows with the work and is not zero. */
uint64_t engine_time_kernel(const exec_stats *stats, uint32_t sms) {
  const machine_spec *m = ff_engine.machine;
  double cycles = (double)stats->warp_instructions / (double)(sms * m->schedulers) + 1;
  return picoseconds(m->launch_latency_us + cycles / m->clock_mhz);
}

/* ---- streams ---- */

bool engine_stream_is_legacy(const engine_stream *stream) { return stream == &ff_engine.legacy[stream->device]; }

bool engine_stream_lives(const engine_stream *stream) {
  bool standing = stream >= ff_engine.legacy && stream < ff_engine.legacy + ENGINE_DEVICES_MAX;
  return standing || engine_handles_have(&ff_engine.handles, stream, ENGINE_HANDLE_STREAM);
}

engine_stream *engine_stream_make(int device, unsigned flags, int priority, engine_green *green) {
  engine_stream *stream = ff_alloc(sizeof *stream);
  *stream = (engine_stream){.number = ++ff_engine.next_stream[device] | engine_origin(device),
                            .device = device,
                            .flags = flags,
                            .priority = priority,
                            .green = green,
                            .next = ff_engine.streams};
  ff_engine.streams = stream;
  engine_handles_add(&ff_engine.handles, stream, ENGINE_HANDLE_STREAM);
  if (engine_handles_have(&ff_engine.ended, stream, ENGINE_HANDLE_STREAM))
    engine_handles_remove(&ff_engine.ended, stream);
  trace_op op = {.kind = TRACE_OP_STREAM_CREATE, .stream = stream->number};
  op.stream_create.flags = flags & cudaStreamNonBlocking ? TRACE_STREAM_NON_BLOCKING : 0;
  engine_append(&op);
  if (green) engine_append(&(trace_op){.kind = TRACE_OP_STREAM_SMS, .stream = stream->number, .sms = green->sms});
  engine_time_host(ff_engine.machine->api_us);
  return stream;
}

static engine_stream *thread_stream(int device) {
  if (own[device].stream && own[device].generation == ff_engine.generation[device]) return own[device].stream;
  own[device].generation = ff_engine.generation[device];
  own[device].stream = engine_stream_make(device, cudaStreamDefault, 0, NULL);
  engine_green_admit(own[device].stream);
  return own[device].stream;
}

engine_stream *engine_stream_find(cudaStream_t handle) {
  bool standing = !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  const engine_green *green = standing ? engine_green_current() : NULL;
  if (green) return green->main;
  if (!handle || handle == cudaStreamLegacy) return &ff_engine.legacy[engine_device_of(NULL)];
  if (handle == cudaStreamPerThread) return thread_stream(engine_device_of(NULL));
  engine_stream *stream =
      engine_handles_have(&ff_engine.handles, handle, ENGINE_HANDLE_STREAM) ? (engine_stream *)handle : NULL;
  return stream && !stream->orphan ? stream : NULL;
}

static engine_stream *orphan(cudaStream_t handle) {
  bool live = engine_handles_have(&ff_engine.handles, handle, ENGINE_HANDLE_STREAM);
  return live && ((engine_stream *)handle)->orphan ? (engine_stream *)handle : NULL;
}

static bool can_be_detached(void) { return engine_driver_version() >= 13010; }

/* The manual leaves open what the handle of a stream that was destroyed gives. NVIDIA's driver takes its context for
 * destroyed: so ROCm's hip-tests (catch/unit/stream/hipStreamDestroy.cc and others) find it on NVIDIA's platform. */
cudaError_t engine_stream_error(cudaStream_t handle) {
  if (orphan(handle) && can_be_detached()) return cudaErrorStreamDetached;
  bool ended = engine_handles_have(&ff_engine.ended, handle, ENGINE_HANDLE_STREAM);
  return orphan(handle) || ended ? cudaErrorContextIsDestroyed : cudaErrorInvalidResourceHandle;
}

void engine_stream_named(void *handle, const char *name) {
  if (engine_enter_now()) return;
  const engine_stream *stream = engine_stream_find((cudaStream_t)handle);
  if (stream) session_name_stream(ff_engine.session, stream->number, name);
  engine_leave();
}

uint32_t engine_stream_sms(const engine_stream *stream) {
  return stream->green ? stream->green->count : (uint32_t)ff_engine.machine->sm_count;
}

void engine_stream_free(engine_stream *stream) {
  engine_capture_forget(stream);
  engine_execs_forget(stream);
  engine_stream **at = &ff_engine.streams;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  for (engine_event *e = ff_engine.events; e; e = e->next)
    if (e->stream == stream) e->stream = NULL;
  engine_handles_remove(&ff_engine.handles, stream);
  engine_handles_add(&ff_engine.ended, stream, ENGINE_HANDLE_STREAM);
  engine_bound_forget(stream);
  engine_append(&(trace_op){.kind = TRACE_OP_STREAM_DESTROY, .stream = stream->number});
  free(stream->tips.items);
  free(stream->known.items);
  stream->gone = true;
  stream->held++;
  engine_stream_release(stream);
}

void engine_stream_hold(engine_stream *stream) { stream->held++; }

void engine_stream_release(engine_stream *stream) {
  if (!--stream->held && stream->gone) free(stream);
}

void engine_event_release(engine_event *event) {
  if (--event->held || !event->gone) return;
  engine_ipc_event_free(event->ipc);
  free(event->tips.items);
  free(event->known.items);
  free(event);
}

static void free_event(engine_event *event) {
  engine_event **at = &ff_engine.events;
  while (*at != event) at = &(*at)->next;
  *at = event->next;
  engine_handles_remove(&ff_engine.handles, event);
  event->gone = true;
  event->stream = NULL;
  event->held++;
  engine_event_release(event);
}

void engine_streams_reset(int device) {
  engine_stream *legacy = &ff_engine.legacy[device];
  engine_graphs_reset(device);
  engine_greens_reset(device);
  for (engine_stream *s = ff_engine.streams, *next; s; s = next) {
    next = s->next;
    if (s->device == device) engine_stream_free(s);
  }
  for (engine_event *e = ff_engine.events, *next; e; e = next) {
    next = e->next;
    if (e->device == device) free_event(e);
  }
  uint64_t end = legacy->end_ps;
  engine_bound_forget(legacy);
  free(legacy->known.items);
  *legacy = (engine_stream){.number = engine_origin(device),
                            .device = device,
                            .end_ps = end,
                            .pending = legacy->pending,
                            .host_before = legacy->host_before,
                            .held = legacy->held};
  ff_engine.generation[device]++;
}

static int in_range(int priority) {
  return priority > ENGINE_PRIORITY_LEAST      ? ENGINE_PRIORITY_LEAST
         : priority < ENGINE_PRIORITY_GREATEST ? ENGINE_PRIORITY_GREATEST
                                               : priority;
}

cudaError_t engine_stream_create(unsigned flags, int priority, cudaStream_t *stream) {
  if (!stream || (flags & ~(unsigned)cudaStreamNonBlocking)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  engine_green *green = engine_green_current();
  int device = green ? green->device : engine_device_of(NULL);
  *stream = (cudaStream_t)engine_stream_make(device, flags, in_range(priority), green);
  engine_green_admit((engine_stream *)*stream);
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_stream_create_on(int device, unsigned flags, int priority, cudaStream_t *stream) {
  if (!stream || (flags & ~(unsigned)cudaStreamNonBlocking)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  if (engine_device_exists(device)) {
    *stream = (cudaStream_t)engine_stream_make(device, flags, in_range(priority), NULL);
    engine_green_admit((engine_stream *)*stream);
  } else {
    error = cudaErrorInvalidDevice;
  }
  engine_leave();
  return error;
}

cudaError_t engine_stream_destroy(cudaStream_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream =
      handle && handle != cudaStreamLegacy && handle != cudaStreamPerThread ? engine_stream_find(handle) : NULL;
  if (!stream) error = engine_stream_error(handle);
  else if (!engine_deferred_wait_stream(stream)) error = cudaErrorContextIsDestroyed; /* it may be another device's */
  if (!stream && can_be_detached()) stream = orphan(handle), error = stream ? cudaSuccess : error;
  if (!error) engine_stream_free(stream);
  engine_leave();
  return error;
}

cudaError_t engine_stream_describe(cudaStream_t handle, engine_stream_info *info) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (stream)
    *info = (engine_stream_info){.flags = stream->flags,
                                 .priority = stream->priority,
                                 .device = stream->device,
                                 .id = stream->number + UINT64_C(1),
                                 .green = stream->green};
  else error = engine_stream_error(handle);
  engine_leave();
  return error;
}

/* ---- waiting ---- */

cudaError_t engine_synchronize_stream_locked(engine_stream *stream) {
  engine_host_access_collect(false);
  engine_append(&(trace_op){.kind = TRACE_OP_SYNC_STREAM, .stream = stream->number});
  ff_engine.host_ps = latest(ff_engine.host_ps, engine_stream_ready(stream));
  engine_time_host(ff_engine.machine->sync_us);
  engine_pools_synchronised_stream(stream);
  engine_print_flush();
  return cudaSuccess;
}

void engine_time_wait_device(int device) {
  ff_engine.host_ps = latest(ff_engine.host_ps, ff_engine.legacy[device].end_ps);
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->device == device) ff_engine.host_ps = latest(ff_engine.host_ps, s->end_ps);
}

void engine_synchronize_device_locked(int device) {
  engine_host_access_collect(false);
  engine_append(&(trace_op){.kind = TRACE_OP_SYNC_DEVICE, .stream = engine_origin(device)});
  engine_time_wait_device(device);
  engine_time_host(ff_engine.machine->sync_us);
  engine_pools_synchronised(device);
  engine_print_flush();
}

cudaError_t engine_stream_synchronize(cudaStream_t handle) {
  cudaError_t error = engine_enter_stream(handle);
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  error = stream ? engine_capture_refuse(stream) : engine_stream_error(handle);
  if (!error && engine_deferred(stream)) {
    stream = engine_deferred_wait_stream(stream);
    error = stream ? ff_engine.sticky : cudaErrorContextIsDestroyed;
  }
  if (!error) error = engine_synchronize_stream_locked(stream);
  engine_leave();
  return error;
}

cudaError_t engine_device_synchronize(int device) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_deferred_wait_device(device);
  error = ff_engine.sticky ? ff_engine.sticky : engine_capture_any();
  if (!error) engine_synchronize_device_locked(device);
  engine_leave();
  return error;
}

/* Has the operation recorded at `sequence` happened by the host's time? `local_ps`: its time on the local clock. */
static bool happened(int device, uint64_t sequence, uint64_t local_ps) {
  engine_append_host();
  return engine_happened(device, sequence, local_ps);
}

bool engine_happened(int device, uint64_t sequence, uint64_t local_ps) {
  if (ff_engine.primaries[device] && !ff_engine.given)
    return sim_event_happened(ff_engine.primaries[device], sequence, ff_engine.last_sequence);
  return ff_engine.host_ps >= local_ps;
}

uint32_t engine_stream_record(engine_stream *stream) {
  trace_op op = {.kind = TRACE_OP_EVENT_RECORD, .stream = stream->number};
  op.event.event = ++ff_engine.next_event;
  engine_append(&op);
  return ff_engine.next_event;
}

static bool stream_idle(engine_stream *stream) {
  if (stream->dirty) {
    engine_stream_record(stream);
    stream->marker = ff_engine.last_sequence;
    stream->marked = true;
    stream->dirty = false;
  }
  /* not engine_host_before: what it has been given so far, not what comes */
  return ff_engine.host_over >= stream->host_before &&
         (!stream->marked || happened(stream->device, stream->marker, engine_stream_ready(stream)));
}

cudaError_t engine_stream_query(cudaStream_t handle) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!(error = engine_capture_refuse(stream)) && (engine_deferred(stream) || !stream_idle(stream)))
    error = cudaErrorNotReady;
  bool behind = error == cudaErrorNotReady && ff_engine.given;
  engine_leave();
  if (behind) engine_deferred_rest();
  return error;
}

/* ---- events ---- */

bool engine_event_is_shared(const engine_event *event) { return event->flags & cudaEventInterprocess; }

engine_event *engine_event_find(cudaEvent_t handle) {
  return engine_handles_have(&ff_engine.handles, handle, ENGINE_HANDLE_EVENT) ? (engine_event *)handle : NULL;
}

engine_event *engine_event_make(unsigned flags) {
  engine_event *event = ff_alloc(sizeof *event);
  *event = (engine_event){.device = engine_device_of(NULL), .flags = flags, .next = ff_engine.events};
  ff_engine.events = event;
  engine_handles_add(&ff_engine.handles, event, ENGINE_HANDLE_EVENT);
  return event;
}

cudaError_t engine_event_create(unsigned flags, cudaEvent_t *out) {
  const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (!out || (flags & ~known)) return cudaErrorInvalidValue;
  if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  *out = (cudaEvent_t)engine_event_make(flags);
  engine_leave();
  return cudaSuccess;
}

/* What is queued about it goes on: nothing waits here. */
cudaError_t engine_event_destroy(cudaEvent_t handle) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  if (event) free_event(event);
  else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

void engine_event_record_locked(engine_event *event, engine_stream *stream) {
  engine_host_access_collect(false);
  event->number = engine_stream_record(stream);
  event->sequence = ff_engine.last_sequence;
  event->recorded = true;
  event->capture = 0;
  engine_known_record(event, stream);
  event->stream = stream;
  event->host_before = stream->host_before = engine_host_before(stream); /* in the legacy stream a barrier */
  event->time_ps = engine_stream_ready(stream);
  engine_time_host(ff_engine.machine->api_us);
}

cudaError_t engine_event_record(cudaEvent_t handle, cudaStream_t stream_handle) {
  cudaError_t error = engine_enter_record(handle, stream_handle);
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  engine_stream *stream = engine_stream_find(stream_handle);
  bool taken = false;
  error = event && stream ? engine_capture_record(event, stream, &taken) : engine_stream_error(stream_handle);
  if (!error && !taken && event->device != stream->device) error = cudaErrorInvalidResourceHandle;
  engine_node_params node = {.kind = ENGINE_NODE_RECORD, .event = handle};
  if (!error && !taken) {
    event->held++; /* what gives the lock away meanwhile */
    error = engine_deferred_take(stream, &node, true, &taken);
    if (!error && !taken && event->gone) error = cudaErrorInvalidResourceHandle;
    if (!error && !taken) engine_event_record_locked(event, stream);
    engine_event_release(event);
  }
  engine_leave();
  return error;
}

void engine_stream_wait_for(engine_stream *stream, uint32_t number, uint64_t time_ps) {
  trace_op op = {.kind = TRACE_OP_STREAM_WAIT, .stream = stream->number};
  op.event.event = number;
  engine_append(&op);
  stream->end_ps = latest(stream->end_ps, time_ps);
  stream->dirty = true;
}

/* In the legacy stream a barrier, too. */
static void come_after_host(engine_stream *stream, uint64_t before) {
  stream->host_before = latest(before, engine_host_before(stream));
}

void engine_stream_wait_for_event(engine_stream *stream, const engine_event *event) {
  engine_stream_wait_for(stream, event->number, event->time_ps);
  come_after_host(stream, event->host_before);
}

void engine_stream_follow(engine_stream *stream, engine_stream *after) {
  engine_stream_wait_for(stream, engine_stream_record(after), engine_stream_ready(after));
  come_after_host(stream, engine_host_before(after));
}

void engine_stream_wait_event_locked(engine_stream *stream, engine_event *event) {
  engine_stream_wait_for_event(stream, event);
  engine_known_wait(stream, event);
  engine_time_host(ff_engine.machine->api_us);
}

cudaError_t engine_stream_wait(cudaStream_t stream_handle, cudaEvent_t handle) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  engine_stream *stream = engine_stream_find(stream_handle);
  bool taken = false;
  error = event && stream ? engine_capture_wait(stream, event, &taken) : engine_stream_error(stream_handle);
  engine_node_params node = {.kind = ENGINE_NODE_WAIT, .event = handle};
  if (!error && !taken) { /* what gives the lock away meanwhile: no other event and no other stream is meant then */
    const uint32_t number = stream->number;
    event->held++;
    error = engine_deferred_begin_wait(stream, event);
    stream = engine_stream_find(stream_handle);
    if (!error && (!stream || stream->number != number)) error = cudaErrorContextIsDestroyed;
    if (!error && event->gone) error = cudaErrorInvalidResourceHandle;
    if (!error) error = engine_deferred_take(stream, &node, true, &taken);
    if (!error && !taken && event->gone) error = cudaErrorInvalidResourceHandle;
    if (!error && !taken && event->recorded) engine_stream_wait_event_locked(stream, event);
    engine_event_release(event);
  }
  engine_leave();
  return error;
}

/* For what other processes have queued to record. */
static cudaError_t wait_for_others(cudaEvent_t handle) {
  const engine_event *event = engine_event_find(handle);
  engine_ipc_wait *wait = event ? engine_ipc_wait_begin(event) : NULL;
  cudaError_t error = wait ? engine_ipc_wait_for(wait) : cudaSuccess;
  engine_ipc_wait_free(wait);
  return error;
}

/* Have they? */
static cudaError_t ask_others(const engine_event *event) {
  engine_ipc_wait *wait = engine_ipc_wait_begin(event);
  cudaError_t error = wait ? engine_ipc_wait_ask(wait) : cudaSuccess;
  engine_ipc_wait_free(wait);
  return error;
}

cudaError_t engine_event_synchronize(cudaEvent_t handle) {
  cudaError_t error = engine_enter_event(handle);
  if (error) return error;
  engine_event *held = engine_event_find(handle); /* so that no other event gets its address while this waits */
  if (held) held->held++;
  error = wait_for_others(handle);
  if (engine_deferred_wait_event(handle)) engine_host_wait_event(handle);
  engine_event *event = engine_event_find(handle);
  if (held) engine_event_release(held);
  if (ff_engine.sticky) error = ff_engine.sticky;
  if (error) event = NULL;
  else if (!event) error = cudaErrorInvalidResourceHandle;
  else if (event->capture) error = cudaErrorCapturedEvent;
  else if (event->recorded) {
    engine_host_access_collect(false);
    trace_op op = {.kind = TRACE_OP_SYNC_EVENT, .stream = engine_origin(event->device)};
    op.event.event = event->number;
    engine_append(&op);
    ff_engine.host_ps = latest(ff_engine.host_ps, event->time_ps);
    engine_time_host(ff_engine.machine->sync_us);
    engine_pools_synchronised_event(event);
    engine_print_flush();
  }
  engine_leave();
  return error;
}

static bool is_over(const engine_event *event) {
  return !event->behind && ff_engine.host_over >= event->host_before &&
         happened(event->device, event->sequence, event->time_ps);
}

cudaError_t engine_event_query(cudaEvent_t handle) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  if (!event) error = cudaErrorInvalidResourceHandle;
  else if (event->capture) error = cudaErrorCapturedEvent;
  else if (event->behind) error = cudaErrorNotReady;
  else error = ask_others(event);
  if (!error && event->recorded && !is_over(event)) error = cudaErrorNotReady;
  bool behind = error == cudaErrorNotReady && ff_engine.given;
  engine_leave();
  if (behind) engine_deferred_rest();
  return error;
}

/* The first simulation cannot get past a kernel that has given way, and may have to for an event in front of it, too:
 * another kernel's time depends on all that run at once. */
static uint64_t event_time(const engine_event *event) {
  sim *primary = ff_engine.given ? NULL : ff_engine.primaries[event->device];
  return primary ? sim_event_time(primary, event->sequence) : event->time_ps;
}

static cudaError_t elapsed_locked(const engine_event *start, const engine_event *stop, float *milliseconds) {
  if (!start || !stop || !(start->recorded || start->behind) || !(stop->recorded || stop->behind))
    return cudaErrorInvalidResourceHandle;
  if ((start->flags | stop->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
  if (start->device != stop->device) return cudaErrorInvalidResourceHandle;
  if (start->capture || stop->capture) return cudaErrorCapturedEvent;
  if (!is_over(stop) || !is_over(start)) return cudaErrorNotReady;
  int64_t difference = (int64_t)(event_time(stop) - event_time(start));
  *milliseconds = (float)((double)difference / 1e9);
  return cudaSuccess;
}

cudaError_t engine_event_elapsed(cudaEvent_t start, cudaEvent_t stop, float *milliseconds) {
  if (!milliseconds) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter_now();
  if (error) return error;
  error = elapsed_locked(engine_event_find(start), engine_event_find(stop), milliseconds);
  const bool behind = error == cudaErrorNotReady && ff_engine.given;
  engine_leave();
  if (behind) engine_deferred_rest();
  return error;
}

cudaError_t engine_host_time(uint64_t *picoseconds) {
  cudaError_t error = engine_enter();
  if (error) return error;
  sim *primary = ff_engine.primaries[engine_device_of(NULL)];
  *picoseconds =
      primary && ff_engine.last_sequence ? sim_host_time(primary, ff_engine.last_sequence) : ff_engine.host_ps;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_physical(uint64_t address, uint64_t *physical) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *there = exec_memory_find(ff_engine.memory, address);
  sim *primary = there ? ff_engine.primaries[engine_memory_device(there)] : NULL;
  bool known = primary && sim_physical(primary, ff_engine.last_sequence,
                                       exec_memory_canonical(ff_engine.memory, address), physical);
  engine_leave();
  return known ? cudaSuccess : there ? cudaErrorNotSupported : cudaErrorInvalidValue;
}
