/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for something that their launching thread does later, and the operations behind them. The kernel
 * may also wait for one on another device: of each device one kernel may have given way, and they take turns.
 *
 * A launch returns when its kernel has finished, with one exception. A kernel that looks at memory in a way that may
 * wait for another thread (exec_kernel_info.may_wait) runs on a thread of the engine's own, for the launching thread,
 * which holds the engine's lock meanwhile. If all its blocks have only polled for a while, it *gives way*: the launch
 * returns, and the kernel goes on whenever it gets the lock.
 *
 *              engine_deferred_launch               give_way                    end, when `first` is empty
 *     (nothing) -------------------> (for the launching thread) ---> ff_engine.given -----------------> (nothing)
 *                                        \___ it ends: as if it had run on that thread ___________________/
 *
 * While kernels have given way
 *   - nothing of it runs while another thread has the lock, so that every other file sees a device that does its work
 *     at once;
 *   - operations that CUDA orders after it are queued, in the order of the host's calls, and their streams are
 *     `behind`;
 *   - operations of other streams are carried out at once, as are allocations and what only asks; every other call
 *     waits until all are over;
 *   - the first simulation cannot get past it: queries ask the local clock (engine_happened). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"

#define MAX_APPENDED \
  32768u /* operations that the access stream takes while it cannot move on: half of what it has room for */
#define REST_NANOSECONDS 100000

typedef struct job { /* a launch on a thread of the engine's own */
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

/* Under the engine's lock. */
static later *first, **end = &first;
static uint64_t given_sequence; /* ff_engine.last_sequence when the kernel gave way */

static _Thread_local job *mine; /* on such a thread: the launch it runs */

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

void engine_deferred_wait(void) {
  while (ff_engine.given && !mine && ff_engine.phase == ENGINE_READY)
    pthread_cond_wait(&ff_engine.behind_done, &ff_engine.lock);
}

bool engine_deferred_full(void) { return ff_engine.given && ff_engine.last_sequence - given_sequence > MAX_APPENDED; }

void engine_deferred_rest(void) { nanosleep(&(struct timespec){.tv_nsec = REST_NANOSECONDS}, NULL); }

static later *queue(engine_stream *stream) {
  later *op = ff_alloc(sizeof *op);
  *op = (later){.stream = stream};
  *end = op;
  end = &op->next;
  stream->behind = true;
  return op;
}

/* Pageable memory is the program's again when the call returns. */
static bool is_pageable(uint64_t address) { return engine_pointer_find_locked(address).memory == ENGINE_PAGEABLE; }

cudaError_t engine_deferred_take(engine_stream *stream, const engine_node_params *params, bool async, bool *taken) {
  *taken = false;
  if (!engine_deferred(stream)) return cudaSuccess;
  if (params->kind == ENGINE_NODE_COPY) async &= !is_pageable(params->copy.to) && !is_pageable(params->copy.from);
  if (params->kind == ENGINE_NODE_SET) async |= !is_pageable(params->set.to);
  if (!async) {
    engine_deferred_wait();
    return engine_stream_lives(stream) ? ff_engine.sticky : cudaErrorInvalidResourceHandle;
  }
  cudaError_t error = params->kind == ENGINE_NODE_COPY  ? engine_copy_check_locked(&params->copy)
                      : params->kind == ENGINE_NODE_SET ? engine_set_check_locked(&params->set)
                                                        : cudaSuccess;
  if (error) return error;
  *taken = true;
  queue(stream)->params = *params;
  if (params->kind == ENGINE_NODE_RECORD) ((engine_event *)params->event)->behind++;
  return cudaSuccess;
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
    if (!event) return cudaSuccess;
    event->behind--;
    engine_event_record_locked(event, op->stream);
    return cudaSuccess;
  case ENGINE_NODE_WAIT:
    if (event && event->recorded) engine_stream_wait_event_locked(op->stream, event);
    return cudaSuccess;
  default: return cudaErrorNotSupported;
  }
}

/* What fails now fails as a kernel does: for all calls that come. */
static void carry_out_all(void) {
  while (first) {
    later *op = first;
    int device = op->stream->device;
    cudaError_t error = ff_engine.stop || ff_engine.sticky ? cudaSuccess : carry_out(op);
    if (error && !ff_engine.stop)
      engine_fault_locked(error, device,
                          "an operation behind a kernel that had been waiting for the host could not be carried out");
    first = op->next;
    if (!first) end = &first;
    free(op->packed);
    engine_declared_free(op->declared);
    free(op);
  }
}

static void none_behind(void) {
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++) ff_engine.legacy[d].behind = false;
  for (engine_stream *s = ff_engine.streams; s; s = s->next) s->behind = false;
  for (engine_event *e = ff_engine.events; e; e = e->next) e->behind = 0;
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
    if (!ff_engine.given++) given_sequence = ff_engine.last_sequence;
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

/* What was queued is carried out behind the last of them: it may have come behind any. */
static void run(own_thread *own, job *j) {
  mine = j;
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
  if (j->result && !ff_engine.stop)
    engine_fault_locked(j->result, j->stream->device, "a kernel that had been waiting for the host could not go on");
  bool last = ff_engine.given == 1;
  if (last) carry_out_all();
  if (last) none_behind();
  mine = NULL;
  own->job = NULL;
  ff_engine.given--;
  if (last) pthread_cond_broadcast(&ff_engine.behind_done);
  pthread_mutex_unlock(&ff_engine.lock);
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
  }
}

static bool have_thread(own_thread *own) {
  pthread_t thread;
  if (!own->there) own->there = !pthread_create(&thread, NULL, thread_main, own) && !pthread_detach(thread);
  return own->there;
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
  if (engine_deferred(stream)) return queue_launch(launch, stream, info.kernel.param_bytes, params, declared);
  own_thread *own = &threads[stream->device];
  if (!may_give_way(&info, own)) {
    error = engine_launch_packed(launch, &info, stream, params, *declared);
    free(params);
    return error;
  }
  job *j = ff_alloc(sizeof *j);
  *j = (job){.launch = *launch, .info = info, .stream = stream, .params = params, .declared = *declared};
  *declared = NULL;
  pthread_mutex_lock(&own->lock);
  own->job = j;
  pthread_cond_signal(&own->wanted);
  while (!j->done && !j->gave_way) pthread_cond_wait(&own->changed, &own->lock);
  bool done = j->done;
  pthread_mutex_unlock(&own->lock);
  if (!done) return cudaSuccess;
  error = j->result;
  free_job(j);
  return error;
}
