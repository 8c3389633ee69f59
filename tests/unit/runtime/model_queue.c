/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver's streams: which pending operation may run, which one does, and what waiting for one makes
 * necessary.
 *
 *   an operation may run when it is its stream's first, the record that it waits for has run, and - where the legacy
 *   stream of its device is in play - no older operation of the legacy stream (or, for one of that, of any blocking
 *   stream) is pending.
 *
 * All dependences lead to older operations, so among pending ones there is always one that may run, or a host function
 * is running. Host functions run in a thread of their own, without the lock: CUDA lets them take locks that callers
 * hold. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "model_state.h"

#define EACH_STREAM(stream) for (struct cuda_stream_ *stream = first_stream(); stream; stream = next_stream(stream))

/* The null streams of all devices, then the others. */
static struct cuda_stream_ *first_stream(void) { return &model.devices[0].null; }
static struct cuda_stream_ *next_stream(struct cuda_stream_ *stream) {
  if (!stream->null) return stream->next;
  return stream->device + 1 < model.options.devices ? &model.devices[stream->device + 1].null : model.streams;
}

completion *completion_hold(completion *one) {
  one->references++;
  return one;
}
void completion_drop(completion *one) {
  if (one && !--one->references) free(one);
}

const char *operation_name(const operation *op) {
  static const char *const names[] = {"copy", "set", "kernel", "record", "wait", "host function"};
  return op->kind == OPERATION_KERNEL ? op->kernel->name : names[op->kind];
}

operation *queue_make(operation_kind kind) {
  operation *op = ff_alloc(sizeof *op);
  op->kind = kind;
  op->own = ff_alloc(sizeof *op->own);
  *op->own = (completion){.references = 1, .operation = op};
  return op;
}

void queue_add(struct cuda_stream_ *stream, operation *op) {
  op->stream = stream;
  op->sequence = ++model.sequence;
  if (stream->last) stream->last->next = op;
  else stream->first = op;
  stream->last = op;
  model.pending++;
  queue_start_thread();
}

/* The first of its stream is over, run or dropped. */
static void finish(operation *op) {
  struct cuda_stream_ *stream = op->stream;
  stream->first = op->next;
  if (!stream->first) stream->last = NULL;
  op->own->done = true;
  op->own->lost = model.devices[stream->device].lost;
  op->own->operation = NULL;
  op->own->time = ++model.time;
  completion_drop(op->own);
  completion_drop(op->awaited);
  free(op->staging);
  free(op->argument_bytes);
  free(op->touched.items);
  free(op);
  model.pending--;
  if (stream->destroyed && !stream->first)
    for (struct cuda_stream_ **at = &model.streams; *at; at = &(*at)->next)
      if (*at == stream) {
        *at = stream->next;
        free(stream);
        break;
      }
  pthread_cond_broadcast(&model.changed);
}

static bool held_by_legacy(const operation *op) {
  const struct cuda_stream_ *own = op->stream, *null = &model.devices[own->device].null;
  if (!own->null) return own->blocking && null->first && null->first->sequence < op->sequence;
  EACH_STREAM(other)
  if (!other->null && other->blocking && other->device == own->device && other->first &&
      other->first->sequence < op->sequence)
    return true;
  return false;
}

static bool may_run(const operation *op) {
  return !op->running && !(op->awaited && !op->awaited->done) && !held_by_legacy(op);
}

/* ---- running ---- */

static bool kernel_read(model_launch *launch, uint64_t address, void *to, uint64_t bytes) {
  const operation *op = launch->more;
  if (!launch->error && memory_read(op->stream->device, address, to, bytes, operation_name(op))) return true;
  if (!launch->error) launch->error = MODEL_ILLEGAL_ADDRESS;
  memset(to, 0, bytes);
  return false;
}
static bool kernel_write(model_launch *launch, uint64_t address, const void *from, uint64_t bytes) {
  const operation *op = launch->more;
  if (!launch->error && memory_write(op->stream->device, address, from, bytes, operation_name(op))) return true;
  if (!launch->error) launch->error = MODEL_ILLEGAL_ADDRESS;
  return false;
}
static bool note_read(model_launch *launch, uint64_t address, void *to, uint64_t bytes) {
  operation *op = launch->more;
  if (bytes) FF_PUSH(&op->touched, ((range){address, address + bytes}));
  memset(to, 0, bytes);
  return true;
}
static bool note_write(model_launch *launch, uint64_t address, const void *from, uint64_t bytes) {
  operation *op = launch->more;
  if (bytes) FF_PUSH(&op->touched, ((range){address, address + bytes}));
  return true;
}

static int run_kernel(operation *op) {
  int error;
  bool lost;
  if (model_fails(MODEL_RUN_KERNEL, &error, &lost)) return error;
  op->launch.read = kernel_read;
  op->launch.write = kernel_write;
  op->launch.more = op;
  op->kernel->function(&op->launch);
  return op->launch.error;
}

/* Moves `bytes` of a copy, from where it stands. */
static int move(operation *op, uint64_t bytes) {
  uint32_t device = op->stream->device;
  char *between = op->to && op->from ? ff_alloc(bytes) : NULL;
  bool good = true;
  if (op->kind == OPERATION_SET) {
    char *set = ff_alloc(bytes);
    memset(set, op->value, bytes);
    good = memory_write(device, op->to + op->moved, set, bytes, "a set");
    free(set);
  } else if (between) {
    good = memory_read(device, op->from + op->moved, between, bytes, "a copy") &&
           memory_write(device, op->to + op->moved, between, bytes, "a copy");
    free(between);
  } else if (op->to) {
    good = memory_write(device, op->to + op->moved, (op->staging ? op->staging : op->host_from) + op->moved, bytes,
                        "a copy");
  } else {
    good = memory_read(device, op->from + op->moved, op->host_to + op->moved, bytes, "a copy");
  }
  op->moved += bytes;
  return good ? MODEL_OK : MODEL_ILLEGAL_ADDRESS;
}

static int run_move(operation *op) {
  int error;
  bool lost;
  if (!op->moved && model_fails(MODEL_RUN_COPY, &error, &lost)) return error;
  uint64_t left = op->bytes - op->moved;
  return move(op, left > 1 && !model_random(4) ? 1 + model_random(left - 1) : left);
}

static void hand_to_thread(operation *op) {
  op->running = true;
  FF_PUSH(&model.host_queue, op);
  pthread_cond_signal(&model.host_work);
  /* Mostly it needs nothing that the caller holds: then the order is the same every time. */
  completion *own = completion_hold(op->own);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 5000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  while (!own->done && pthread_cond_timedwait(&model.changed, &model.lock, &until) != ETIMEDOUT) {}
  completion_drop(own);
}

/* Runs what may run; a copy perhaps in part. */
static void run(operation *op) {
  int error = MODEL_OK;
  uint32_t device = op->stream->device;
  switch (op->kind) {
  case OPERATION_COPY:
  case OPERATION_SET: error = run_move(op); break;
  case OPERATION_KERNEL: error = run_kernel(op); break;
  case OPERATION_RECORD: break;
  case OPERATION_WAIT: error = op->awaited->lost; break; /* what waits for what never comes is lost as well */
  case OPERATION_HOST: hand_to_thread(op); return;
  }
  if (error) queue_lose(device, error);
  else if (op->moved == op->bytes) finish(op);
}

/* One of those that may run, if `mark` is not 0 of those with that mark only; NULL: there is none. */
static operation *choose(uint64_t mark) {
  operation *chosen = NULL;
  uint64_t seen = 0;
  EACH_STREAM(stream)
  if (stream->first && (!mark || stream->first->mark == mark) && may_run(stream->first) && !model_random(++seen))
    chosen = stream->first;
  return chosen;
}

void queue_progress(void) {
  while (model.pending && model.options.eagerness && model_random(100) < model.options.eagerness) {
    operation *op = choose(0);
    if (!op) return;
    run(op);
  }
}

/* ---- waiting ---- */

static void mark_needed(operation *op, uint64_t mark);

static void mark_older(struct cuda_stream_ *stream, uint64_t sequence, uint64_t mark) {
  for (operation *op = stream->first; op && op->sequence < sequence; op = op->next) mark_needed(op, mark);
}

/* Marks the operation and all that must run before it. */
static void mark_needed(operation *op, uint64_t mark) {
  if (op->mark == mark) return;
  op->mark = mark;
  mark_older(op->stream, op->sequence, mark);
  if (op->awaited && op->awaited->operation) mark_needed(op->awaited->operation, mark);
  if (op->stream->null) {
    EACH_STREAM(other)
    if (!other->null && other->blocking && other->device == op->stream->device) mark_older(other, op->sequence, mark);
  } else if (op->stream->blocking) {
    mark_older(&model.devices[op->stream->device].null, op->sequence, mark);
  }
}

bool queue_step_towards(completion *wanted) {
  if (wanted->done) return false;
  mark_needed(wanted->operation, ++model.mark);
  operation *op = choose(model.mark);
  if (op) run(op);
  return op != NULL;
}

void queue_wait(completion *wanted) {
  completion_hold(wanted);
  if (!wanted->done) mark_needed(wanted->operation, ++model.mark);
  uint64_t mark = model.mark;
  while (!wanted->done) {
    operation *op = choose(mark);
    if (op) run(op);
    else if (!wanted->done) pthread_cond_wait(&model.changed, &model.lock);
    /* another thread marked its own meanwhile */
    if (!wanted->done && mark != model.mark) mark_needed(wanted->operation, mark = ++model.mark);
  }
  completion_drop(wanted);
}

void queue_wait_stream(struct cuda_stream_ *stream) {
  if (stream->last) queue_wait(stream->last->own);
  if (!stream->null) return;
  operation *newest = NULL; /* waiting for the legacy stream waits for the blocking ones before it */
  do {
    newest = NULL;
    EACH_STREAM(other)
    if (!other->null && other->blocking && other->device == stream->device && other->last) newest = other->last;
    if (newest) queue_wait(newest->own);
  } while (newest);
}

void queue_wait_device(uint32_t device) {
  for (bool again = true; again;) {
    again = false;
    EACH_STREAM(stream)
    if (stream->device == device && stream->last) {
      queue_wait(stream->last->own);
      again = true;
      break;
    }
  }
}

void queue_lose(uint32_t device, int error) {
  model.devices[device].lost = error;
  for (bool again = true; again;) {
    again = false;
    EACH_STREAM(stream)
    if (stream->device == device && stream->first && !stream->first->running) {
      finish(stream->first); /* may free the stream */
      again = true;
      break;
    }
  }
}

/* ---- who uses this ---- */

static void find_touched(operation *op) {
  if (op->touched_known) return;
  op->touched_known = true;
  if (op->kind == OPERATION_COPY || op->kind == OPERATION_SET) {
    if (op->to) FF_PUSH(&op->touched, ((range){op->to, op->to + op->bytes}));
    if (op->from) FF_PUSH(&op->touched, ((range){op->from, op->from + op->bytes}));
  }
  if (op->kind != OPERATION_KERNEL || op->kernel->follows) return;
  model_launch trial = op->launch;
  trial.read = note_read;
  trial.write = note_write;
  trial.more = op;
  op->kernel->function(&trial);
}

operation *queue_user(uint64_t begin, uint64_t end) {
  EACH_STREAM(stream)
  for (operation *op = stream->first; op; op = op->next) {
    find_touched(op);
    for (size_t i = 0; i < op->touched.count; i++)
      if (op->touched.items[i].begin < end && begin < op->touched.items[i].end) return op;
  }
  return NULL;
}

operation *queue_host_user(const char *begin, const char *end) {
  EACH_STREAM(stream)
  for (operation *op = stream->first; op; op = op->next)
    if ((op->host_to && op->host_to < end && op->host_to + op->bytes > begin) ||
        (op->host_from && !op->staging && op->host_from < end && op->host_from + op->bytes > begin))
      return op;
  return NULL;
}

/* ---- the thread: host functions, and progress while no thread calls ---- */

static void run_host_function(void) {
  operation *op = model.host_queue.items[0];
  for (size_t i = 1; i < model.host_queue.count; i++) model.host_queue.items[i - 1] = model.host_queue.items[i];
  model.host_queue.count--;
  void (*function)(void *) = op->function;
  void *data = op->data;
  bool lost = model.devices[op->stream->device].lost;
  if (!lost) {
    pthread_mutex_unlock(&model.lock);
    function(data);
    pthread_mutex_lock(&model.lock);
  }
  uint32_t device = op->stream->device;
  finish(op);
  if (model.devices[device].lost) queue_lose(device, model.devices[device].lost); /* what was behind it */
}

static void *host_thread(void *unused) {
  pthread_mutex_lock(&model.lock);
  for (;;) {
    if (model.host_queue.count) {
      run_host_function();
      continue;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t nanoseconds = (uint64_t)until.tv_nsec + model.options.idle_ms * 1000000ull, before = model.activity;
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    int result = pthread_cond_timedwait(&model.host_work, &model.lock, &until);
    operation *op = result == ETIMEDOUT && before == model.activity ? choose(0) : NULL;
    if (op && op->kind != OPERATION_HOST) {
      run(op);
    } else if (op) {
      op->running = true;
      FF_PUSH(&model.host_queue, op);
    }
  }
  return NULL;
}

void queue_start_thread(void) {
  if (model.thread_started) return;
  model.thread_started = true;
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attributes, host_thread, NULL)) model_violation("no thread for host functions");
  pthread_attr_destroy(&attributes);
}

void queue_reset(void) {
  for (uint32_t d = 0; d < MODEL_DEVICES; d++) {
    model.devices[d].null.device = d;
    model.devices[d].null.null = true;
    queue_lose(d, 0);
  }
  while (model.pending) pthread_cond_wait(&model.changed, &model.lock); /* host functions that run */
  while (model.streams) {
    struct cuda_stream_ *stream = model.streams;
    model.streams = stream->next;
    free(stream);
  }
}
