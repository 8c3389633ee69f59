/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that wait for something that their launching thread does later, and the operations behind them. A kernel may
 * also wait for another one: of another stream, on another device, or of another process. They take turns.
 *
 * A launch returns when its kernel has finished, with one exception. A kernel that looks at memory in a way that may
 * wait for another thread (exec_kernel_info.may_wait) runs on a thread of the engine's own, a *lane*, for the launching
 * thread, which holds the engine's lock meanwhile. If all its blocks have only polled for a while, it *gives way*: the
 * launch returns, and the kernel goes on whenever it gets the lock.
 *
 *              engine_deferred_launch               give_way                 end, when the lane's queue is empty
 *     (nothing) -------------------> (for the launching thread) ---> active -----------------------------> (nothing)
 *                                        \___ it ends: as if it had run on that thread ___________________/
 *
 * An active lane is a stream's. While a stream has one
 *   - nothing of its kernel runs while another thread has the lock, so that every other file sees a device that does
 *     its work at once;
 *   - operations that CUDA orders after what its lane has to do are put into a lane's queue: those of the stream itself
 *     into its own, those of streams that wait for it (the legacy stream's rule, an event that is queued) into a lane
 *     of theirs. A queue is carried out in the order of the host's calls, on the lane's thread, and kernels in it may
 *     give way, too;
 *   - operations of other streams are carried out at once, as are allocations and what only asks; every other call
 *     waits until the lanes of its device, or of what it names, are over. It does not wait for other devices: their
 *     kernels may wait for what this thread does next;
 *   - the first simulation cannot get past it: queries ask the local clock (engine_happened).
 *
 * No set of lanes can wait for each other, unless the program's kernels do. Each kernel that begins on a lane and each
 * operation that is queued has a ticket, in the order of the host's calls. What is at the head of a queue waits for
 * operations with smaller tickets only: those of other lanes that `after` names, and recordings that were queued before
 * it; for recordings of other processes, which end with those; and for host functions, which may wait for calls that do
 * not come after them. So the head with the smallest ticket waits for no
 * lane: it is carried out. If it is a kernel, it holds the lock only while it does more than poll; then all others get
 * their turn, again and again. What is left is a kernel that polls for what nothing in front of it, and no kernel that
 * runs, will write. It waits for the host, or for ever on a GPU, too. (A GPU may not have room for all kernels that
 * wait here; LANES is how many can.) */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"

#define MAX_APPENDED \
  32768u /* operations that the access stream takes while it cannot move on: half of what it has room for */
#define REST_NANOSECONDS 100000

#define LANES EXEC_GIVEN_MAX

typedef struct job { /* a launch on a lane's thread; without a function: only what is queued */
  engine_launch launch;
  engine_function_info info;
  engine_stream *stream;
  unsigned char *params;
  engine_declared *declared;
  cudaError_t result;
  bool done, gave_way;
  uint64_t number; /* its ticket, once it has given way */
} job;

typedef struct engine_lane engine_lane;

typedef struct ticket { /* a lane has come so far when `over` has */
  const engine_lane *lane;
  uint64_t number;
} ticket;

typedef struct later { /* an operation that is queued */
  engine_stream *stream;
  engine_node_params params; /* KERNEL, COPY, SET, HOST, RECORD, WAIT; `hint` instead */
  bool is_hint;
  struct {
    uint64_t address, bytes;
    int device;
  } hint;
  engine_event *event;     /* of RECORD and WAIT: held */
  uint64_t recordings;     /* of WAIT: how many queued ones of the event must be over */
  engine_ipc_wait *others; /* of WAIT: what other processes have queued to record; NULL: nothing */
  unsigned char *packed;
  engine_declared *declared;
  uint64_t number;      /* its ticket */
  FF_VEC(ticket) after; /* of other lanes */
  struct later *next;
} later;

struct engine_lane {
  pthread_mutex_t lock; /* of `job` and what it says */
  pthread_cond_t wanted, changed;
  job *job;
  bool there; /* it has a thread */
  /* under the engine's lock */
  engine_stream *stream; /* whose it is, while it is active: ff_engine.given counts these */
  int device;
  uint64_t since;       /* ff_engine.last_sequence when what it is at began */
  uint64_t asked, over; /* the latest ticket of its own; the latest that is over */
  later *first, *last;  /* `last` only while there is a first */
};

static engine_lane lanes[LANES] = {[0 ... LANES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                                        .wanted = PTHREAD_COND_INITIALIZER,
                                                        .changed = PTHREAD_COND_INITIALIZER}};
static uint64_t tickets; /* so far */

static _Thread_local job *mine; /* on a lane's thread: the launch it runs, and */
static _Thread_local engine_lane *own;

static bool have_lane(engine_stream *stream);

/* ---- what is behind ---- */

static bool waits_for_default(const engine_stream *stream) {
  return !(stream->flags & cudaStreamNonBlocking) && !engine_stream_is_legacy(stream);
}

bool engine_deferred(const engine_stream *stream) {
  if (!ff_engine.given || mine) return false;
  if (stream->lane) return true;
  if (waits_for_default(stream)) return ff_engine.legacy[stream->device].lane != NULL;
  if (!engine_stream_is_legacy(stream)) return false;
  for (const engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->lane && s->device == stream->device && waits_for_default(s)) return true;
  return false;
}

static bool goes_on(void) { return ff_engine.given && !mine && ff_engine.phase == ENGINE_READY; }

static void wait_for_change(void) {
  ff_engine.waiting++;
  pthread_cond_wait(&ff_engine.behind_done, &ff_engine.lock);
  ff_engine.waiting--;
}

void engine_deferred_wait(void) {
  while (goes_on()) wait_for_change();
}

bool engine_deferred_is_active(int device) {
  for (uint32_t i = 0; i < LANES; i++)
    if (lanes[i].stream && lanes[i].device == device) return true;
  return false;
}

void engine_deferred_wait_device(int device) {
  while (goes_on() && engine_deferred_is_active(device)) wait_for_change();
}

/* A new stream may have the address of one that was destroyed; it has another number. */
static bool still_lives(const engine_stream *stream, uint32_t number) {
  return engine_stream_lives(stream) && stream->number == number;
}

/* Behind its lane it may have come after further host functions. */
engine_stream *engine_deferred_wait_stream(engine_stream *stream) {
  const uint32_t number = stream->number;
  while (!mine && still_lives(stream, number) && !ff_engine.stop)
    if (goes_on() && engine_deferred(stream)) wait_for_change();
    else if (engine_host_holds_up(stream)) engine_host_wait(stream);
    else break;
  return still_lives(stream, number) ? stream : NULL;
}

cudaError_t engine_deferred_settle(engine_stream *stream) {
  return engine_deferred_wait_stream(stream) ? ff_engine.sticky : cudaErrorContextIsDestroyed;
}

engine_event *engine_deferred_wait_event(cudaEvent_t handle) {
  engine_event *event = engine_event_find(handle);
  if (!event) return NULL;
  event->held++; /* so that no other event gets its address meanwhile */
  while (goes_on() && !event->gone && event->behind) wait_for_change();
  const bool gone = event->gone;
  engine_event_release(event);
  return gone ? NULL : event;
}

bool engine_deferred_full(void) {
  for (uint32_t i = 0; ff_engine.given && i < LANES; i++)
    if (lanes[i].stream && ff_engine.last_sequence - lanes[i].since > MAX_APPENDED) return true;
  return false;
}

void engine_deferred_rest(void) { nanosleep(&(struct timespec){.tv_nsec = REST_NANOSECONDS}, NULL); }

/* The legacy stream's rule: what is queued on `stream` now comes after all that `other` has queued. */
static void come_after(later *op, const engine_stream *other) {
  if (other->lane) FF_PUSH(&op->after, ((ticket){other->lane, other->lane->asked}));
}

/* On a stream that has a lane. */
static later *queue(engine_stream *stream) {
  engine_lane *lane = stream->lane;
  later *op = ff_alloc(sizeof *op);
  *op = (later){.stream = stream, .number = ++tickets};
  if (waits_for_default(stream)) come_after(op, &ff_engine.legacy[stream->device]);
  for (const engine_stream *s = ff_engine.streams; s && engine_stream_is_legacy(stream); s = s->next)
    if (s->device == stream->device && waits_for_default(s)) come_after(op, s);
  lane->asked = op->number;
  if (lane->first) lane->last->next = op;
  else lane->first = op;
  lane->last = op;
  return op;
}

/* Pageable memory is the program's again when the call returns. */
static bool is_pageable(uint64_t address) { return engine_pointer_find_locked(address).memory == ENGINE_PAGEABLE; }

cudaError_t engine_deferred_take(engine_stream *stream, const engine_node_params *params, bool async, bool *taken) {
  *taken = false;
  if (!engine_deferred(stream)) return cudaSuccess;
  if (params->kind == ENGINE_NODE_COPY) async &= !is_pageable(params->copy.to) && !is_pageable(params->copy.from);
  if (params->kind == ENGINE_NODE_SET) async |= !is_pageable(params->set.to);
  if (!async || !have_lane(stream)) return engine_deferred_settle(stream);
  cudaError_t error = params->kind == ENGINE_NODE_COPY  ? engine_copy_check_locked(&params->copy)
                      : params->kind == ENGINE_NODE_SET ? engine_set_check_locked(&params->set)
                                                        : cudaSuccess;
  if (error) return error;
  *taken = true;
  later *op = queue(stream);
  op->params = *params;
  engine_event *event = op->event = params->event ? engine_event_find(params->event) : NULL;
  if (event) event->held++;
  if (params->kind == ENGINE_NODE_RECORD) event->behind++;
  if (params->kind == ENGINE_NODE_RECORD && event->ipc) engine_ipc_event_begin(event->ipc);
  if (params->kind == ENGINE_NODE_WAIT) op->recordings = event->behind_over + event->behind;
  if (params->kind == ENGINE_NODE_WAIT) op->others = engine_ipc_wait_begin(event);
  return cudaSuccess;
}

/* A recording of this process is over when the lane that has it says so; without a lane for the waiting stream its
 * thread waits. */
cudaError_t engine_deferred_begin_wait(engine_stream *stream, const engine_event *event) {
  cudaError_t error = cudaSuccess;
  engine_ipc_wait *others = engine_ipc_wait_begin(event);
  if ((others || event->behind) && !have_lane(stream)) {
    engine_deferred_wait_event((cudaEvent_t)event);
    if (others) error = engine_ipc_wait_for(others);
  }
  engine_ipc_wait_free(others);
  return error;
}

cudaError_t engine_deferred_prefetch(engine_stream *stream, uint64_t address, uint64_t bytes, int device, bool *taken) {
  *taken = false;
  if (!engine_deferred(stream)) return cudaSuccess;
  if (!have_lane(stream)) return engine_deferred_settle(stream);
  *taken = true;
  later *op = queue(stream);
  op->is_hint = true;
  op->hint.address = address;
  op->hint.bytes = bytes;
  op->hint.device = device;
  return cudaSuccess;
}

/* ---- its turn has come ---- */

static void wait_for_others(const later *op) {
  for (size_t i = 0; i < op->after.count; i++)
    while (op->after.items[i].lane->over < op->after.items[i].number && !ff_engine.stop) wait_for_change();
}

/* Those that what was queued in front of it has waited for are known only now. Events carry them on, but not to other
 * processes; a host function comes after all that are there anyway. */
static void wait_for_host_functions(const later *op) {
  const engine_node_kind kind = op->is_hint ? ENGINE_NODE_SET : op->params.kind;
  const bool carried = kind == ENGINE_NODE_RECORD && !engine_event_is_shared(op->event);
  if (carried || kind == ENGINE_NODE_WAIT || kind == ENGINE_NODE_HOST || ff_engine.sticky) return;
  engine_host_wait(op->stream);
}

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
static void wait_for_recording(const later *op) {
  const engine_event *event = op->event;
  while (event->behind_over < op->recordings && event->behind && !ff_engine.stop) wait_for_change();
}

static void over(engine_event *event) {
  event->behind--;
  event->behind_over++;
  if (event->ipc) engine_ipc_event_end(event->ipc);
  pthread_cond_broadcast(&ff_engine.behind_done);
}

static cudaError_t wait_in_stream(const later *op) {
  wait_for_recording(op);
  cudaError_t error = op->others ? engine_ipc_wait_for(op->others) : cudaSuccess;
  if (!error && op->event->recorded) engine_stream_wait_event_locked(op->stream, op->event);
  return error;
}

static cudaError_t carry_out(later *op) {
  const engine_node_params *p = &op->params;
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
    engine_event_record_locked(op->event, op->stream);
    over(op->event);
    return cudaSuccess;
  case ENGINE_NODE_WAIT: return wait_in_stream(op);
  default: return cudaErrorNotSupported;
  }
}

/* It is not carried out: nothing may wait for it. */
static void pass_over(const later *op) {
  if (op->params.kind == ENGINE_NODE_RECORD) over(op->event);
}

static void finish(later *op) {
  if (op->event) engine_event_release(op->event);
  free(op->packed);
  free(op->after.items);
  engine_declared_free(op->declared);
  engine_ipc_wait_free(op->others);
  free(op);
}

static void come_to(engine_lane *lane, uint64_t number) {
  lane->over = number;
  pthread_cond_broadcast(&ff_engine.behind_done);
}

/* What fails now fails as a kernel does: for all calls that come. An operation is in the queue until it is over. */
static void carry_out_all(engine_lane *lane) {
  while (lane->first) {
    later *op = lane->first;
    wait_for_others(op);
    wait_for_host_functions(op);
    lane->since = ff_engine.last_sequence;
    bool passed = ff_engine.stop || ff_engine.sticky;
    if (passed) pass_over(op);
    cudaError_t error = passed ? cudaSuccess : carry_out(op);
    if (error && !ff_engine.stop)
      engine_fault_locked(error, lane->device,
                          "an operation behind a kernel that had been waiting for the host could not be carried out");
    lane->first = op->next;
    come_to(lane, op->number);
    finish(op);
  }
}

static void begin(engine_lane *lane, engine_stream *stream) {
  lane->stream = stream;
  lane->device = stream->device;
  lane->since = ff_engine.last_sequence;
  lane->asked = ++tickets;
  stream->lane = lane;
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
    pthread_mutex_lock(&own->lock);
    begin(own, mine->stream);
    mine->number = own->asked;
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
static void end(engine_lane *lane) {
  carry_out_all(lane);
  lane->stream->lane = NULL;
  lane->stream = NULL;
  lane->job = NULL;
  mine = NULL;
  ff_engine.given--;
  pthread_cond_broadcast(&ff_engine.behind_done);
  pthread_mutex_unlock(&ff_engine.lock);
}

static void run(engine_lane *lane, job *j) {
  mine = j;
  if (j->launch.function) {
    j->result = engine_launch_packed(&j->launch, &j->info, j->stream, j->params, j->declared);
    if (!j->gave_way) {
      mine = NULL;
      pthread_mutex_lock(&lane->lock);
      lane->job = NULL;
      j->done = true;
      pthread_cond_signal(&lane->changed);
      pthread_mutex_unlock(&lane->lock);
      return;
    }
  } else {
    pthread_mutex_lock(&ff_engine.lock);
  }
  if (j->result && !ff_engine.stop)
    engine_fault_locked(j->result, lane->device, "a kernel that had been waiting for the host could not go on");
  come_to(lane, j->number);
  end(lane);
  free_job(j);
}

static void *thread_main(void *context) {
  own = context;
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
  static const engine_lane fresh = {
      .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  for (uint32_t i = 0; i < LANES; i++) lanes[i] = fresh; /* what the parent had queued is lost to the child, once */
}

static bool have_thread(engine_lane *lane) {
  pthread_t thread;
  if (!lane->there) lane->there = !pthread_create(&thread, NULL, thread_main, lane) && !pthread_detach(thread);
  return lane->there;
}

static uint32_t lanes_left(void) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < LANES; i++) left += !lanes[i].job;
  return left;
}

/* NULL: none is left, or the host has no more threads. */
static engine_lane *free_lane(void) {
  for (uint32_t i = 0; i < LANES; i++)
    if (!lanes[i].job && have_thread(&lanes[i])) return &lanes[i];
  return NULL;
}

static void hand_over(engine_lane *lane, job *j) {
  pthread_mutex_lock(&lane->lock);
  lane->job = j;
  pthread_cond_signal(&lane->wanted);
  pthread_mutex_unlock(&lane->lock);
}

/* The stream has a lane now, if it had none with an empty queue. */
static bool have_lane(engine_stream *stream) {
  if (stream->lane) return true;
  engine_lane *lane = mine ? NULL : free_lane();
  if (!lane) return false;
  job *j = ff_alloc(sizeof *j);
  begin(lane, stream);
  *j = (job){.stream = stream, .gave_way = true, .number = lane->asked};
  hand_over(lane, j);
  return true;
}

/* ---- launches ---- */

/* A checked program's kernels are seen by the checker on the thread that launches. */
static bool may_give_way(const engine_function_info *info) {
  return info->kernel.may_wait && !mine && !ff_engine.check;
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

/* On a lane, for this thread. */
static cudaError_t run_on(engine_lane *lane, job *j) {
  hand_over(lane, j);
  pthread_mutex_lock(&lane->lock);
  while (!j->done && !j->gave_way) pthread_cond_wait(&lane->changed, &lane->lock);
  bool done = j->done;
  pthread_mutex_unlock(&lane->lock);
  if (!done) return cudaSuccess;
  cudaError_t error = j->result;
  free_job(j);
  return error;
}

static cudaError_t too_many(const engine_launch *launch) {
  engine_say(
      "%u kernels wait for memory to change already, or are about to, and %s may wait, too: that many run at once at most",
      LANES, launch->function->title);
  return cudaErrorLaunchOutOfResources;
}

cudaError_t engine_deferred_launch(const engine_launch *launch, engine_stream *stream, engine_declared **declared) {
  engine_function_info info;
  unsigned char *params;
  cudaError_t error = engine_launch_pack_locked(launch, stream->device, &info, &params);
  if (error) return error;
  if (engine_deferred(stream) && have_lane(stream))
    return queue_launch(launch, stream, info.kernel.param_bytes, params, declared);
  if (engine_deferred(stream)) stream = engine_deferred_wait_stream(stream);
  engine_lane *lane = stream && may_give_way(&info) ? free_lane() : NULL;
  if (lane) {
    job *j = ff_alloc(sizeof *j);
    *j = (job){.launch = *launch, .info = info, .stream = stream, .params = params, .declared = *declared};
    *declared = NULL;
    return run_on(lane, j);
  }
  if (!stream) error = cudaErrorContextIsDestroyed;
  else if (may_give_way(&info) && !lanes_left()) error = too_many(launch);
  else error = engine_launch_packed(launch, &info, stream, params, *declared);
  free(params);
  return error;
}

/* ---- launches on several devices ---- */

/* While the engine's lock is free, a lane's job is a kernel that has given way, or none. */
static bool lane_meets(const engine_lane *lane, uint64_t meeting) {
  if (lane->job && lane->job->launch.grids.meeting == meeting) return true;
  for (const later *op = lane->first; op; op = op->next)
    if (op->params.kind == ENGINE_NODE_KERNEL && !op->is_hint && op->params.launch.grids.meeting == meeting)
      return true;
  return false;
}

bool engine_deferred_meet(uint64_t meeting) {
  for (uint32_t i = 0; i < LANES; i++)
    if (lane_meets(&lanes[i], meeting)) return true;
  return false;
}

bool engine_deferred_have_room(const engine_launch *launch, uint32_t kernels) {
  if (ff_engine.check) {
    engine_say(
        "%s may wait for what it does on another device, and a program that is checked runs one kernel at a time",
        launch->function->title);
    return false;
  }
  if (kernels > lanes_left()) {
    too_many(launch);
    return false;
  }
  uint32_t there = 0;
  for (uint32_t i = 0; i < LANES && there < kernels; i++) there += !lanes[i].job && have_thread(&lanes[i]);
  if (there < kernels)
    engine_say("the host has no more threads: %s may wait for what it does on another device", launch->function->title);
  return there >= kernels;
}
