/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: sets of SMs, and the streams whose kernels run on them (Driver API, "Green Contexts").
 *
 * A green context has a stream of its own (checked by engine_check), which stands for NULL in threads where it is
 * current. The first operation of each of its streams gives the stream its SMs. The two helper streams carry no work:
 * `join` waits for the others so that one event stands for all of them; streams that are made later wait for `fence`.
 *
 *     engine_green_create --> streams come and go --engine_green_destroy--> its streams are orphans until they are reset */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph_private.h"

static _Thread_local engine_green *current; /* may be gone: current_id says whether it is still the one */
static _Thread_local uint64_t current_id;

static bool is_live(const engine_green *green) {
  return engine_handles_have(&ff_engine.handles, green, ENGINE_HANDLE_GREEN);
}

static uint64_t id_of(const engine_green *green) { return is_live(green) ? green->id : 0; }

engine_green *engine_green_current(void) { return current && id_of(current) == current_id ? current : NULL; }

static void fill_list(engine_green *green) {
  for (uint32_t i = 0; i < TRACE_SMS_MAX; i++)
    if (green->sms.mask[i / 64] >> i % 64 & 1) green->list[green->count++] = (uint16_t)i;
}

/* At least one, and only what the device has. */
static bool is_possible(const engine_green *green) {
  return green->count && green->list[green->count - 1] < ff_engine.machine->sm_count;
}

/* A device has such helpers, too: of all its streams. */
static struct { engine_stream *join, *fence; } helpers[ENGINE_DEVICES_MAX];

static void forget_helpers(int device) { helpers[device].join = helpers[device].fence = NULL; }

cudaError_t engine_green_create(int device, const trace_sms *sms, engine_green **out) {
  if (!sms || !out) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_green *green = ff_alloc(sizeof *green);
  *green = (engine_green){.device = device, .id = ff_engine.next_green + 1, .sms = *sms, .next = ff_engine.greens};
  fill_list(green);
  if (is_possible(green) && engine_device_exists(device)) {
    ff_engine.next_green++;
    ff_engine.greens = green;
    engine_handles_add(&ff_engine.handles, green, ENGINE_HANDLE_GREEN);
    green->main = engine_stream_make(device, cudaStreamDefault, 0, green);
    *out = green;
  } else {
    free(green);
    error = cudaErrorInvalidValue;
  }
  engine_leave();
  return error;
}

static void green_free(engine_green *green) {
  engine_green **at = &ff_engine.greens;
  while (*at != green) at = &(*at)->next;
  *at = green->next;
  engine_handles_remove(&ff_engine.handles, green);
  free(green);
}

static bool is_helper(const engine_stream *s) {
  return s == s->green->main || s == s->green->join || s == s->green->fence;
}

static void make_orphan(engine_stream *s) {
  engine_capture_forget(s);
  engine_bound_forget(s);
  free(s->tips.items);
  free(s->known.items);
  *s = (engine_stream){.number = s->number,
                       .device = s->device,
                       .flags = s->flags, /* it holds up the legacy stream as before */
                       .orphan = true,
                       .pending = s->pending,
                       .host_before = s->host_before,
                       .held = s->held,
                       .next = s->next};
}

uint64_t engine_green_id(const engine_green *green) {
  pthread_mutex_lock(&ff_engine.lock);
  const uint64_t id = id_of(green);
  pthread_mutex_unlock(&ff_engine.lock);
  return id;
}

static void (*_Atomic after_destroy)(uint64_t id);
void engine_green_tell(void (*destroyed)(uint64_t id)) { after_destroy = destroyed; }

/* ---- calls that wait ---- */

/* What a call is about. While it waits for kernels and host functions, another thread may destroy that, and a new one
 * may get its address: it has another id. An event is held, so that its address stays taken. */
typedef struct meant {
  engine_green *green; /* NULL: the device */
  uint64_t id;
  int device;
  engine_event *event; /* NULL: none is meant, or it is none */
} meant;

/* Without any wait before. On cudaSuccess with the lock, until leave_meant. */
static cudaError_t enter_meant(engine_green *green, int device, cudaEvent_t event, meant *what) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  const uint64_t id = id_of(green);
  *what = (meant){green, id, id ? green->device : device, engine_event_find(event)};
  if (what->event) what->event->held++;
  return cudaSuccess;
}

static cudaError_t enter_green(engine_green *green, cudaEvent_t event, meant *what) {
  return green ? enter_meant(green, 0, event, what) : cudaErrorContextIsDestroyed;
}

static void leave_meant(const meant *what) {
  if (what->event) engine_event_release(what->event);
  engine_leave();
}

static bool is_there(const meant *what) {
  return what->green ? what->id && id_of(what->green) == what->id : engine_device_exists(what->device);
}

/* As engine_enter, and for what has given way on its device, which may be another than the thread's. Is it still
 * there? */
static cudaError_t settle_meant(const meant *what) {
  cudaError_t error = engine_wait_locked();
  if (!error && is_there(what)) engine_deferred_wait_device(what->device);
  if (!error) error = ff_engine.sticky;
  if (error || is_there(what)) return error;
  return what->green ? cudaErrorContextIsDestroyed : cudaErrorInvalidDevice;
}

cudaError_t engine_green_destroy(engine_green *green) {
  meant what;
  cudaError_t error = enter_green(green, NULL, &what);
  if (error) return error;
  error = settle_meant(&what);
  for (engine_stream *s = ff_engine.streams, *next; !error && s; s = next) {
    next = s->next;
    if (s->green != green) continue;
    if (is_helper(s)) engine_stream_free(s);
    else make_orphan(s);
  }
  if (!error) green_free(green);
  leave_meant(&what);
  void (*tell)(uint64_t id) = after_destroy;
  if (!error && tell) tell(what.id);
  return error;
}

void engine_greens_reset(int device) { /* the streams are freed with all others */
  forget_helpers(device);
  for (engine_green *green = ff_engine.greens, *next; green; green = next) {
    next = green->next;
    if (green->device == device) green_free(green);
  }
}

int engine_green_device(engine_green *green) {
  pthread_mutex_lock(&ff_engine.lock);
  int device = is_live(green) ? green->device : 0;
  pthread_mutex_unlock(&ff_engine.lock);
  return device;
}

bool engine_green_valid(const engine_green *green) {
  pthread_mutex_lock(&ff_engine.lock);
  bool live = is_live(green);
  pthread_mutex_unlock(&ff_engine.lock);
  return live;
}

cudaError_t engine_green_describe(engine_green *green, trace_sms *sms, uint64_t *id) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  if (is_live(green)) {
    *sms = green->sms;
    *id = green->id;
  } else {
    error = cudaErrorContextIsDestroyed;
  }
  engine_leave();
  return error;
}

void engine_green_use(engine_green *green) {
  current = NULL;
  if (!green) return; /* without the lock: a kernel of another thread's may hold it for long */
  pthread_mutex_lock(&ff_engine.lock);
  if (is_live(green)) {
    current = green;
    current_id = green->id;
  }
  pthread_mutex_unlock(&ff_engine.lock);
}

/* ---- nodes of graphs ---- */

static engine_where where_of(engine_green *green) {
  return green ? (engine_where){.given = true, .device = green->device, .green = green, .green_id = green->id}
               : (engine_where){.given = false};
}

engine_where engine_where_now(const engine_stream *stream) {
  return where_of(stream ? stream->green : engine_green_current());
}

bool engine_where_live(const engine_where *where) {
  return !where->green || (is_live(where->green) && where->green->id == where->green_id);
}

cudaError_t engine_where_green(engine_green *green, engine_where *where) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  if (is_live(green)) *where = where_of(green);
  else error = cudaErrorContextIsDestroyed;
  engine_leave();
  return error;
}

/* ---- streams ---- */

void engine_green_admit(engine_stream *stream) {
  if (stream->green && stream->green->fence) engine_stream_follow(stream, stream->green->fence);
  if (helpers[stream->device].fence) engine_stream_follow(stream, helpers[stream->device].fence);
}

cudaError_t engine_green_stream(engine_green *green, unsigned flags, int priority, cudaStream_t *stream) {
  if (!stream || (flags & ~(unsigned)cudaStreamNonBlocking)) return cudaErrorInvalidValue;
  meant what;
  cudaError_t error = enter_green(green, NULL, &what);
  if (error) return error;
  if (priority > ENGINE_PRIORITY_LEAST) priority = ENGINE_PRIORITY_LEAST;
  if (priority < ENGINE_PRIORITY_GREATEST) priority = ENGINE_PRIORITY_GREATEST;
  error = engine_wait_locked();
  if (!error && !is_there(&what)) error = cudaErrorContextIsDestroyed;
  if (!error) {
    engine_stream *made = engine_stream_make(green->device, flags, priority, green);
    engine_green_admit(made);
    *stream = (cudaStream_t)made;
  }
  leave_meant(&what);
  return error;
}

/* ---- events of all its streams ---- */

static engine_stream *helper(engine_green *green, int device, engine_stream **place) {
  if (!*place) *place = engine_stream_make(device, cudaStreamNonBlocking, 0, green);
  return *place;
}

static bool is_of(const engine_stream *s, const engine_green *green, int device) {
  return !s->orphan && (green ? s->green == green : s->device == device);
}

static bool carries_work(const engine_stream *s) {
  if (s->green && (s == s->green->join || s == s->green->fence)) return false;
  return s != helpers[s->device].join && s != helpers[s->device].fence;
}

/* green NULL: of the device. */
static void record_all(engine_green *green, int device, engine_stream **join, engine_event *event) {
  engine_stream *all = helper(green, device, join), *legacy = &ff_engine.legacy[device];
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (is_of(s, green, device) && carries_work(s)) engine_stream_follow(all, s);
  if (!green) engine_stream_follow(all, legacy);
  engine_event_record_locked(event, all);
}

static void wait_all(engine_green *green, int device, engine_stream **fence, const engine_event *event) {
  const engine_stream *later = helper(green, device, fence);
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (is_of(s, green, device) && (carries_work(s) || s == later)) engine_stream_wait_for_event(s, event);
  if (!green) engine_stream_wait_for_event(&ff_engine.legacy[device], event);
  engine_time_host(ff_engine.machine->api_us);
}

/* The event, too, is still there. */
static cudaError_t settle_with_event(const meant *what) {
  cudaError_t error = settle_meant(what);
  return error || (what->event && !what->event->gone) ? error : cudaErrorInvalidResourceHandle;
}

cudaError_t engine_green_record(engine_green *green, cudaEvent_t event) {
  meant what;
  cudaError_t error = enter_green(green, event, &what);
  if (error) return error;
  error = settle_with_event(&what);
  if (!error) record_all(green, what.device, &green->join, what.event);
  leave_meant(&what);
  return error;
}

cudaError_t engine_green_wait(engine_green *green, cudaEvent_t event) {
  meant what;
  cudaError_t error = enter_green(green, event, &what);
  if (error) return error;
  error = settle_with_event(&what);
  if (!error && what.event->recorded) wait_all(green, what.device, &green->fence, what.event);
  leave_meant(&what);
  return error;
}

cudaError_t engine_device_record(int device, cudaEvent_t event) {
  meant what;
  cudaError_t error = enter_meant(NULL, device, event, &what);
  if (error) return error;
  error = settle_with_event(&what);
  if (!error) record_all(NULL, device, &helpers[device].join, what.event);
  leave_meant(&what);
  return error;
}

cudaError_t engine_device_wait(int device, cudaEvent_t event) {
  meant what;
  cudaError_t error = enter_meant(NULL, device, event, &what);
  if (error) return error;
  error = settle_with_event(&what);
  if (!error && what.event->recorded) wait_all(NULL, device, &helpers[device].fence, what.event);
  leave_meant(&what);
  return error;
}

cudaError_t engine_green_synchronize(engine_green *green) {
  meant what;
  cudaError_t error = enter_green(green, NULL, &what);
  if (error) return error;
  error = settle_meant(&what);
  for (engine_stream *s = ff_engine.streams; !error && s; s = s->next)
    if (s->green == green) error = engine_capture_refuse(s);
  for (engine_stream *s = ff_engine.streams; !error && s; s = s->next)
    if (s->green == green) error = engine_synchronize_stream_locked(s);
  leave_meant(&what);
  return error;
}

/* ---- work queues ---- */

cudaError_t engine_green_get_queues(engine_green *green, engine_green_queues *queues) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  if (is_live(green)) *queues = green->queues;
  else error = cudaErrorContextIsDestroyed;
  engine_leave();
  return error;
}

cudaError_t engine_green_set_queues(engine_green *green, engine_green_queues queues) {
  cudaError_t error = engine_enter_now();
  if (error) return error;
  if (is_live(green)) green->queues = queues;
  else error = cudaErrorContextIsDestroyed;
  engine_leave();
  return error;
}
