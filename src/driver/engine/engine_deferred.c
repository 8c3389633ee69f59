/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for something that their launching thread does later, and the operations behind them. The kernel
 * may also wait for one on another device, or of another process: of each device one kernel may have given way, and
 * they take turns.
 *
 * A launch returns when its kernel has finished, with one exception. A kernel that looks at memory in a way that may
 * wait for another thread (exec_kernel_info.may_wait) runs on a thread of the engine's own, for the launching thread,
 * which holds the engine's lock meanwhile. If all its blocks have only polled for a while, it *gives way*: the launch
 * returns, and the kernel goes on whenever it gets the lock.
 *
 *              engine_deferred_launch               give_way                 end, when the device's queue is empty
 *     (nothing) -------------------> (for the launching thread) ---> active -----------------------------> (nothing)
 *                                        \___ it ends: as if it had run on that thread ___________________/
 *
 * While a device is active
 *   - nothing of its kernel runs while another thread has the lock, so that every other file sees a device that does
 *     its work at once;
 *   - operations that CUDA orders after it are put into the device's queue, in the order of the host's calls, and their
 *     streams are `behind`; the queue is carried out when the kernel is over, on the same thread, and kernels in it may
 *     give way, too;
 *   - a stream of another device that waits for an event which is in the queue makes its device active as well;
 *   - operations of other streams are carried out at once, as are allocations and what only asks; every other call
 *     waits until its device, or what it names, is over. It does not wait for other devices: their kernels may wait for
 *     what this thread does next;
 *   - the first simulation cannot get past it: queries ask the local clock (engine_happened). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"

#define MAX_APPENDED \
  32768u /* operations that the access stream takes while it cannot move on: half of what it has room for */
#define REST_NANOSECONDS 100000

typedef struct job { /* a launch on a thread of the engine's own; without a function: only what is queued */
  engine_launch launch;
  engine_function_info info;
  engine_stream *stream;
  unsigned char *params;
  engine_declared *declared;
  cudaError_t result;
  bool done, gave_way;
} job;

typedef struct later { /* an operation that is queued */
  engine_stream *stream;
  engine_node_params params; /* KERNEL, COPY, SET, HOST, RECORD, WAIT; `hint` instead */
  bool is_hint;
  struct {
    uint64_t address, bytes;
    int device;
  } hint;
  uint64_t recordings;     /* of WAIT: how many queued ones of the event must be over */
  engine_ipc_wait *others; /* of WAIT: what other processes have queued to record; NULL: nothing */
  unsigned char *packed;
  engine_declared *declared;
  struct later *next;
} later;

typedef struct own_thread { /* of a device */
  pthread_mutex_t lock;     /* of `job` and what it says */
  pthread_cond_t wanted, changed;
  job *job;
  bool there;
} own_thread;

static own_thread threads[ENGINE_DEVICES_MAX] = {
    [0 ... ENGINE_DEVICES_MAX -
     1] = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};

typedef struct device_queue { /* under the engine's lock */
  bool active;                /* ff_engine.given counts these */
  uint64_t since;             /* ff_engine.last_sequence when what it is at began */
  later *first, *last;        /* `last` only while there is a first */
} device_queue;
static device_queue queues[ENGINE_DEVICES_MAX];

static _Thread_local job *mine; /* on such a thread: the launch it runs */

static bool activate(int device);

/* ---- what is behind ---- */

bool engine_deferred(const engine_stream *stream) {
  if (!ff_engine.given || mine) return false;
  if (stream->behind) return true;
  if (stream->flags & cudaStreamNonBlocking) return false;
  if (!engine_stream_is_legacy(stream)) return ff_engine.legacy[stream->device].behind;
  for (const engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->behind && s->device == stream->device && !(s->flags & cudaStreamNonBlocking)) return true;
  return false;
}

static bool goes_on(void) { return ff_engine.given && !mine && ff_engine.phase == ENGINE_READY; }

static void wait_for_change(void) { pthread_cond_wait(&ff_engine.behind_done, &ff_engine.lock); }

void engine_deferred_wait(void) {
  while (goes_on()) wait_for_change();
}

void engine_deferred_wait_device(int device) {
  while (goes_on() && queues[device].active) wait_for_change();
}

engine_stream *engine_deferred_wait_stream(engine_stream *stream) {
  while (goes_on() && engine_stream_lives(stream) && engine_deferred(stream)) wait_for_change();
  return engine_stream_lives(stream) ? stream : NULL;
}

engine_event *engine_deferred_wait_event(cudaEvent_t handle) {
  engine_event *event = engine_event_find(handle);
  while (goes_on() && event && event->behind) {
    wait_for_change();
    event = engine_event_find(handle);
  }
  return event;
}

bool engine_deferred_full(void) {
  for (uint32_t d = 0; ff_engine.given && d < ENGINE_DEVICES_MAX; d++)
    if (queues[d].active && ff_engine.last_sequence - queues[d].since > MAX_APPENDED) return true;
  return false;
}

void engine_deferred_rest(void) { nanosleep(&(struct timespec){.tv_nsec = REST_NANOSECONDS}, NULL); }

static later *queue(engine_stream *stream) {
  later *op = ff_alloc(sizeof *op);
  *op = (later){.stream = stream};
  device_queue *q = &queues[stream->device];
  if (q->first) q->last->next = op;
  else q->first = op;
  q->last = op;
  stream->behind = true;
  return op;
}

/* Pageable memory is the program's again when the call returns. */
static bool is_pageable(uint64_t address) { return engine_pointer_find_locked(address).memory == ENGINE_PAGEABLE; }

cudaError_t engine_deferred_take(engine_stream *stream, const engine_node_params *params, bool async, bool *taken) {
  *taken = false;
  if (!engine_deferred(stream)) return cudaSuccess;
  if (!queues[stream->device].active && !activate(stream->device)) { /* it was to wait for an event of another's */
    engine_deferred_wait();
    stream->behind = false;
    return ff_engine.sticky;
  }
  if (params->kind == ENGINE_NODE_COPY) async &= !is_pageable(params->copy.to) && !is_pageable(params->copy.from);
  if (params->kind == ENGINE_NODE_SET) async |= !is_pageable(params->set.to);
  if (!async) {
    return engine_deferred_wait_stream(stream) ? ff_engine.sticky : cudaErrorInvalidResourceHandle;
  }
  cudaError_t error = params->kind == ENGINE_NODE_COPY  ? engine_copy_check_locked(&params->copy)
                      : params->kind == ENGINE_NODE_SET ? engine_set_check_locked(&params->set)
                                                        : cudaSuccess;
  if (error) return error;
  *taken = true;
  later *op = queue(stream);
  op->params = *params;
  engine_event *event = params->event ? engine_event_find(params->event) : NULL;
  if (params->kind == ENGINE_NODE_RECORD) event->behind++;
  if (params->kind == ENGINE_NODE_RECORD && event->ipc) engine_ipc_event_begin(event->ipc);
  if (params->kind == ENGINE_NODE_WAIT) op->recordings = event->behind_over + event->behind;
  if (params->kind == ENGINE_NODE_WAIT) op->others = engine_ipc_wait_begin(event);
  return cudaSuccess;
}

cudaError_t engine_deferred_begin_wait(engine_stream *stream, const engine_event *event) {
  engine_ipc_wait *others = engine_ipc_wait_begin(event);
  if (!others) return cudaSuccess;
  bool queued = queues[stream->device].active || activate(stream->device);
  if (queued) stream->behind = true;
  cudaError_t error = queued ? cudaSuccess : engine_ipc_wait_for(others);
  engine_ipc_wait_free(others);
  return error;
}

bool engine_deferred_prefetch(engine_stream *stream, uint64_t address, uint64_t bytes, int device) {
  if (!engine_deferred(stream)) return false;
  later *op = queue(stream);
  op->is_hint = true;
  op->hint.address = address;
  op->hint.bytes = bytes;
  op->hint.device = device;
  return true;
}

/* ---- its turn has come ---- */

static cudaError_t launch_later(later *op) {
  engine_function_info info;
  unsigned char *params;
  cudaError_t error = engine_launch_pack_locked(&op->params.launch, op->stream->device, &info, &params);
  if (error) return error;
  error = engine_launch_packed(&op->params.launch, &info, op->stream, params, op->declared);
  free(params);
  return error;
}

/* Another device may have it in its queue. */
static engine_event *wait_for_recording(const later *op) {
  engine_event *event = engine_event_find(op->params.event);
  while (event && event->behind_over < op->recordings && event->behind && !ff_engine.stop) {
    wait_for_change();
    event = engine_event_find(op->params.event);
  }
  return event;
}

static void over(engine_event *event) {
  event->behind--;
  event->behind_over++;
  if (event->ipc) engine_ipc_event_end(event->ipc);
  pthread_cond_broadcast(&ff_engine.behind_done);
}

static cudaError_t wait_in_stream(const later *op) {
  engine_event *event = wait_for_recording(op);
  cudaError_t error = op->others ? engine_ipc_wait_for(op->others) : cudaSuccess;
  if (op->others) event = engine_event_find(op->params.event);
  if (!error && event && event->recorded) engine_stream_wait_event_locked(op->stream, event);
  return error;
}

static cudaError_t carry_out(later *op) {
  const engine_node_params *p = &op->params;
  engine_event *event = p->event ? engine_event_find(p->event) : NULL;
  if (op->is_hint) {
    engine_prefetch_on(op->stream, op->hint.address, op->hint.bytes, op->hint.device);
    return cudaSuccess;
  }
  switch (p->kind) {
  case ENGINE_NODE_KERNEL: return launch_later(op);
  case ENGINE_NODE_COPY: return engine_copy_on(p->copy, op->stream, true);
  case ENGINE_NODE_SET: return engine_set_on(p->set, op->stream, true);
  case ENGINE_NODE_HOST: return engine_stream_host_locked(op->stream, p->host.function, p->host.data, true);
  case ENGINE_NODE_RECORD:
    if (event) engine_event_record_locked(event, op->stream);
    if (event) over(event);
    return cudaSuccess;
  case ENGINE_NODE_WAIT: return wait_in_stream(op);
  default: return cudaErrorNotSupported;
  }
}

/* It is not carried out: nothing may wait for it. */
static void pass_over(const later *op) {
  engine_event *event = op->params.kind == ENGINE_NODE_RECORD ? engine_event_find(op->params.event) : NULL;
  if (event) over(event);
}

/* What fails now fails as a kernel does: for all calls that come. An operation is in the queue until it is over. */
static void carry_out_all(int device) {
  device_queue *q = &queues[device];
  while (q->first) {
    later *op = q->first;
    q->since = ff_engine.last_sequence;
    bool passed = ff_engine.stop || ff_engine.sticky;
    if (passed) pass_over(op);
    cudaError_t error = passed ? cudaSuccess : carry_out(op);
    if (error && !ff_engine.stop)
      engine_fault_locked(error, device,
                          "an operation behind a kernel that had been waiting for the host could not be carried out");
    q->first = op->next;
    free(op->packed);
    engine_declared_free(op->declared);
    engine_ipc_wait_free(op->others);
    free(op);
  }
}

static void none_behind(int device) {
  ff_engine.legacy[device].behind = false;
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->device == device) s->behind = false;
}

static void begin(int device) {
  if (queues[device].active) return;
  queues[device].active = true;
  queues[device].since = ff_engine.last_sequence;
  ff_engine.given++;
}

/* ---- the engine's own thread ---- */

/* The thread that has the lock sees managed memory as between two operations. */
void engine_deferred_give_way(void *unused) {
  (void)unused;
  engine_host_access_settle_all();
  if (mine->gave_way) {
    pthread_mutex_unlock(&ff_engine.lock);
    engine_deferred_rest();
  } else {
    own_thread *own = &threads[mine->stream->device];
    pthread_mutex_lock(&own->lock);
    begin(mine->stream->device);
    mine->stream->behind = true;
    mine->gave_way = true;
    pthread_cond_signal(&own->changed);
    pthread_mutex_unlock(&own->lock);
  }
  pthread_mutex_lock(&ff_engine.lock);
  engine_host_access_collect(true);
  engine_peers_show(mine->stream->device);
}

bool engine_deferred_can(void) { return mine != NULL; }

static void free_job(job *j) {
  free(j->params);
  engine_declared_free(j->declared);
  free(j);
}

/* Under the engine's lock, which it gives back. */
static void end(own_thread *own, int device) {
  carry_out_all(device);
  none_behind(device);
  queues[device].active = false;
  mine = NULL;
  own->job = NULL;
  ff_engine.given--;
  pthread_cond_broadcast(&ff_engine.behind_done);
  pthread_mutex_unlock(&ff_engine.lock);
}

static void run(own_thread *own, job *j) {
  mine = j;
  if (j->launch.function) {
    j->result = engine_launch_packed(&j->launch, &j->info, j->stream, j->params, j->declared);
    if (!j->gave_way) {
      mine = NULL;
      pthread_mutex_lock(&own->lock);
      own->job = NULL;
      j->done = true;
      pthread_cond_signal(&own->changed);
      pthread_mutex_unlock(&own->lock);
      return;
    }
  } else {
    pthread_mutex_lock(&ff_engine.lock);
  }
  if (j->result && !ff_engine.stop)
    engine_fault_locked(j->result, j->stream->device, "a kernel that had been waiting for the host could not go on");
  end(own, j->stream->device);
  free_job(j);
}

static void *thread_main(void *context) {
  own_thread *own = context;
  for (;;) {
    pthread_mutex_lock(&own->lock);
    while (!own->job) pthread_cond_wait(&own->wanted, &own->lock);
    job *j = own->job;
    pthread_mutex_unlock(&own->lock);
    run(own, j);
  }
  return NULL;
}

void engine_deferred_forget(void) {
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++) {
    pthread_mutex_init(&threads[d].lock, NULL);
    pthread_cond_init(&threads[d].wanted, NULL);
    pthread_cond_init(&threads[d].changed, NULL);
    threads[d].job = NULL;
    threads[d].there = false;
    queues[d] = (device_queue){0}; /* what the parent had queued is lost to the child, once */
  }
}

static bool have_thread(own_thread *own) {
  pthread_t thread;
  if (!own->there) own->there = !pthread_create(&thread, NULL, thread_main, own) && !pthread_detach(thread);
  return own->there;
}

static void hand_over(own_thread *own, job *j) {
  pthread_mutex_lock(&own->lock);
  own->job = j;
  pthread_cond_signal(&own->wanted);
  pthread_mutex_unlock(&own->lock);
}

/* For a device without such a kernel, whose queue begins with waiting for another's. */
static bool activate(int device) {
  own_thread *own = &threads[device];
  if (mine || own->job || !have_thread(own)) return false;
  job *j = ff_alloc(sizeof *j);
  *j = (job){.stream = &ff_engine.legacy[device], .gave_way = true};
  begin(device);
  hand_over(own, j);
  return true;
}

/* ---- launches ---- */

/* One of a device that waits is enough; a checked program's kernels are seen by the checker on the thread that
 * launches. */
static bool may_give_way(const engine_function_info *info, own_thread *own) {
  return info->kernel.may_wait && !own->job && !mine && !ff_engine.check && have_thread(own);
}

static cudaError_t queue_launch(const engine_launch *launch, engine_stream *stream, size_t bytes, unsigned char *params,
                                engine_declared **declared) {
  later *op = queue(stream);
  op->params.kind = ENGINE_NODE_KERNEL;
  op->params.launch = *launch;
  op->params.launch.arguments = NULL;
  op->params.launch.packed = op->packed = params;
  op->params.launch.packed_bytes = bytes;
  op->declared = *declared;
  *declared = NULL;
  return cudaSuccess;
}

cudaError_t engine_deferred_launch(const engine_launch *launch, engine_stream *stream, engine_declared **declared) {
  engine_function_info info;
  unsigned char *params;
  cudaError_t error = engine_launch_pack_locked(launch, stream->device, &info, &params);
  if (error) return error;
  if (engine_deferred(stream) && (queues[stream->device].active || activate(stream->device)))
    return queue_launch(launch, stream, info.kernel.param_bytes, params, declared);
  if (engine_deferred(stream)) engine_deferred_wait();
  own_thread *own = &threads[stream->device];
  if (!may_give_way(&info, own)) {
    error = engine_launch_packed(launch, &info, stream, params, *declared);
    free(params);
    return error;
  }
  job *j = ff_alloc(sizeof *j);
  *j = (job){.launch = *launch, .info = info, .stream = stream, .params = params, .declared = *declared};
  *declared = NULL;
  hand_over(own, j);
  pthread_mutex_lock(&own->lock);
  while (!j->done && !j->gave_way) pthread_cond_wait(&own->changed, &own->lock);
  bool done = j->done;
  pthread_mutex_unlock(&own->lock);
  if (!done) return cudaSuccess;
  error = j->result;
  free_job(j);
  return error;
}
