/* SPDX-License-Identifier: Apache-2.0 */
/* torture_program SEED [STEPS]: a random CUDA program on the driver API, the same for the same seed and number of
 * devices.
 *
 * Each host thread has a world of its own: buffers of all kinds (device, managed, pool, page-locked), streams, kernels,
 * on all devices. A step changes a buffer on the GPU and its copy on the CPU alike; each time that a buffer is read,
 * and at the end, the two must be the same. Prints "checksum X" and exits with 0, or says what is wrong and exits with
 * 1; 2: a call failed that must not.
 *
 * What always holds: a buffer's uses are in one order, by its stream, by events or by waiting; `last` is the stream of
 * the latest one. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "kernel.h"

enum { BUFFERS = 8, STREAMS = 4, KERNELS = 3, DEVICES = 4, THREADS = 3, IDLE = -1, NOT_READY = 600, CPU = -1 };
typedef enum buffer_kind { DEVICE, MANAGED, POOL, PINNED, KINDS } buffer_kind;

typedef struct buffer {
  buffer_kind kind;
  int device, last; /* last: the stream that used it, or IDLE: the host may touch it */
  uint32_t words;
  uint64_t at;
  uint32_t *copy; /* NULL: there is no such buffer */
} buffer;

typedef struct code {
  kernel kernel;
  void *module, *function;
} code;

typedef struct world {
  uint64_t state;
  uint32_t number, steps, host_functions;
  int streams_device[STREAMS];
  void *streams[STREAMS];
  buffer buffers[BUFFERS];
  code codes[KERNELS][DEVICES];
  char step[80]; /* what is being done, for messages */
} world;

static unsigned long long seed;
static int devices;
static bool alone; /* one host thread: no other thread captures, while which a device must not be waited for */
static void *contexts[DEVICES];

#define PICK(n) kernel_pick(&w->state, n)
#define DO(call, ...) check(w, #call, cuda.call(__VA_ARGS__))

static _Noreturn void wrong(const world *w, int status, const char *what, const char *why) {
  fprintf(stderr, "torture_program %llu: thread %u, step %u (%s): %s: %s\n", seed, w->number, w->steps, w->step, what,
          why);
  fflush(stderr);
  exit(status);
}

static void check(const world *w, const char *call, int result) {
  const char *name = "?";
  if (result) cuda.cuGetErrorName(result, &name), wrong(w, 2, call, name);
}

static void on(const world *w, int device) { DO(cuCtxSetCurrent, contexts[device]); }

/* ---- order ---- */

/* What the stream does next comes after what was done with the buffer. */
static void take(world *w, buffer *b, int stream) {
  int last = b->last;
  b->last = stream;
  if (last == IDLE || last == stream) return;
  if (PICK(3)) {
    void *event;
    on(w, w->streams_device[last]);
    DO(cuEventCreate, &event, PICK(2) * 2);
    DO(cuEventRecord, event, w->streams[last]);
    on(w, w->streams_device[stream]);
    DO(cuStreamWaitEvent, w->streams[stream], event, 0);
    DO(cuEventDestroy_v2, event);
  } else {
    DO(cuStreamSynchronize, w->streams[last]);
  }
}

static void settle(world *w, buffer *b) {
  if (b->last == IDLE) return;
  if (PICK(4) || !alone) DO(cuStreamSynchronize, w->streams[b->last]);
  else on(w, w->streams_device[b->last]), DO(cuCtxSynchronize);
  b->last = IDLE;
}

static void settle_all(world *w) {
  for (int n = 0; n < BUFFERS; n++)
    if (w->buffers[n].copy) settle(w, &w->buffers[n]);
}

/* ---- buffers ---- */

static buffer *any_buffer(world *w) {
  buffer *b = &w->buffers[PICK(BUFFERS)];
  while (!b->copy) b = b == &w->buffers[BUFFERS - 1] ? w->buffers : b + 1;
  return b;
}

/* A stream of the buffer's device. */
static int stream_for(world *w, const buffer *b) {
  int stream = (int)PICK(STREAMS);
  while (w->streams_device[stream] != b->device) stream = (stream + 1) % STREAMS;
  return stream;
}

static void make(world *w, buffer *b) {
  *b = (buffer){.kind = (buffer_kind)PICK(KINDS),
                .device = (int)PICK((uint32_t)devices),
                .last = IDLE,
                .words = UINT32_C(1) << (8 + PICK(11))};
  size_t bytes = b->words * (size_t)4;
  int stream = stream_for(w, b);
  void *host;
  on(w, b->device);
  b->copy = calloc(b->words, 4);
  if (!b->copy) exit(3);
  switch (b->kind) {
  case DEVICE: DO(cuMemAlloc_v2, &b->at, bytes); break;
  case MANAGED: DO(cuMemAllocManaged, &b->at, bytes, 1); break;
  case POOL:
    DO(cuMemAllocAsync, &b->at, bytes, w->streams[stream]);
    b->last = stream;
    break;
  default: DO(cuMemHostAlloc, &host, bytes, 0); b->at = (uintptr_t)host;
  }
  stream = b->last == IDLE ? stream : b->last;
  DO(cuMemsetD32Async, b->at, 0, b->words, w->streams[stream]);
  b->last = stream;
}

static void compare(world *w, const buffer *b, const uint32_t *words) {
  for (uint32_t n = 0; n < b->words; n++) {
    char text[160];
    if (words[n] == b->copy[n]) continue;
    snprintf(text, sizeof text, "word %u of buffer %d (kind %d, %u words, device %d) is %#x, expected %#x", n,
             (int)(b - w->buffers), b->kind, b->words, b->device, words[n], b->copy[n]);
    wrong(w, 1, "wrong value", text);
  }
}

static void read_back(world *w, buffer *b) {
  uint32_t *words = malloc(b->words * (size_t)4);
  if (!words) exit(3);
  if (PICK(2) || b->last == IDLE) {
    settle(w, b);
    on(w, b->device);
    DO(cuMemcpyDtoH_v2, words, b->at, b->words * (size_t)4);
  } else {
    on(w, w->streams_device[b->last]);
    DO(cuMemcpyDtoHAsync_v2, words, b->at, b->words * (size_t)4, w->streams[b->last]);
    settle(w, b);
  }
  compare(w, b, words);
  free(words);
}

static void end(world *w, buffer *b) {
  if (PICK(2)) read_back(w, b);
  if (b->kind != POOL || PICK(2)) settle(w, b);
  on(w, b->device);
  if (b->kind == PINNED) DO(cuMemFreeHost, (void *)(uintptr_t)b->at);
  else if (b->kind == POOL && b->last != IDLE) DO(cuMemFreeAsync, b->at, w->streams[b->last]);
  else DO(cuMemFree_v2, b->at);
  free(b->copy);
  b->copy = NULL;
}

/* ---- steps ---- */

static void step_write(world *w) {
  buffer *b = any_buffer(w);
  uint32_t first = PICK(b->words), count = 1 + PICK(b->words - first);
  uint32_t *words = malloc(count * (size_t)4);
  if (!words) exit(3);
  for (uint32_t n = 0; n < count; n++) b->copy[first + n] = words[n] = PICK(UINT32_MAX);
  if (PICK(2)) {
    settle(w, b);
    on(w, b->device);
    DO(cuMemcpyHtoD_v2, b->at + first * UINT64_C(4), words, count * (size_t)4);
  } else {
    int stream = stream_for(w, b);
    take(w, b, stream);
    on(w, b->device);
    DO(cuMemcpyHtoDAsync_v2, b->at + first * UINT64_C(4), words, count * (size_t)4, w->streams[stream]);
    settle(w, b); /* the words are still ours */
  }
  free(words);
}

/* The host's own accesses, where it may. */
static void step_touch(world *w) {
  buffer *b = any_buffer(w);
  if (b->kind != MANAGED && b->kind != PINNED) return;
  settle(w, b);
  uint32_t *words = (uint32_t *)(uintptr_t)b->at, stride = 1 + PICK(2000);
  if (PICK(2)) compare(w, b, words);
  for (uint32_t n = PICK(stride); n < b->words; n += stride) words[n] = b->copy[n] = n * 7 + PICK(100);
}

/* ---- what streams do ---- */

typedef enum action_kind { FILL, COPY, LAUNCH } action_kind;
typedef struct action {
  action_kind kind;
  int stream;
  buffer *used[4]; /* FILL: [0]; COPY: from [1] to [0]; LAUNCH: y, x, z, counters */
  uint32_t first, from, count, value;
  bool bytes;
  const code *code;
  uint32_t blocks, threads;
} action;

/* Memory of a pool is its own device's; all other memory is all devices'. */
static bool reaches(const world *w, int stream, buffer *const *used, int count) {
  for (int i = 0; i < count; i++)
    if (used[i]->kind == POOL && used[i]->device != w->streams_device[stream]) return false;
  return true;
}

static bool choose_fill(world *w, action *a) {
  buffer *b = a->used[0];
  a->first = PICK(b->words), a->count = 1 + PICK(b->words - a->first), a->value = PICK(UINT32_MAX), a->bytes = PICK(2);
  if (a->bytes) a->value = (a->value & 255) * 0x01010101u;
  return reaches(w, a->stream, a->used, 1);
}

static bool choose_copy(world *w, action *a) {
  const buffer *to = a->used[0], *from = a->used[1];
  uint32_t room = to->words < from->words ? to->words : from->words;
  a->count = 1 + PICK(room), a->first = PICK(to->words - a->count + 1), a->from = PICK(from->words - a->count + 1);
  return to != from && reaches(w, a->stream, a->used, 2);
}

static bool choose_launch(world *w, action *a) {
  buffer *const *u = a->used;
  a->threads = 32u << PICK(4), a->blocks = 1u << PICK(5), a->value = PICK(1000),
  a->code = &w->codes[PICK(KERNELS)][w->streams_device[a->stream]];
  a->count = u[0]->words;
  for (int i = 1; i < 3; i++)
    if (u[i]->words < a->count) a->count = u[i]->words;
  while (a->threads * a->blocks > a->count) a->blocks > 1 ? (a->blocks /= 2) : (a->threads /= 2);
  bool apart = u[0] != u[1] && u[0] != u[2] && u[3] != u[0] && u[3] != u[1] && u[3] != u[2];
  return apart && reaches(w, a->stream, u, 4);
}

/* stream: IDLE for any. False: what was chosen cannot be. */
static bool choose(world *w, int stream, action *a) {
  *a = (action){.kind = PICK(5) > 2 ? LAUNCH : (action_kind)PICK(2)};
  for (int i = 0; i < 4; i++) a->used[i] = any_buffer(w);
  a->stream = stream == IDLE ? stream_for(w, a->used[PICK(2)]) : stream;
  return a->kind == FILL ? choose_fill(w, a) : a->kind == COPY ? choose_copy(w, a) : choose_launch(w, a);
}

static int buffers_used(const action *a) { return a->kind == FILL ? 1 : a->kind == COPY ? 2 : 4; }

/* On the GPU. */
static void enqueue(world *w, action *a) {
  void *stream = w->streams[a->stream];
  uint64_t at[4];
  for (int i = 0; i < 4; i++) at[i] = a->used[i]->at;
  for (int i = 0; i < buffers_used(a); i++) take(w, a->used[i], a->stream);
  on(w, w->streams_device[a->stream]);
  if (a->kind == LAUNCH)
    DO(cuLaunchKernel, a->code->function, a->blocks, 1, 1, a->threads, 1, 1, 0, stream,
       (void *[]){&at[0], &at[1], &at[2], &at[3], &a->count, &a->value}, NULL);
  else if (a->kind == COPY)
    DO(cuMemcpyAsync, at[0] + a->first * UINT64_C(4), at[1] + a->from * UINT64_C(4), a->count * (size_t)4, stream);
  else if (a->bytes)
    DO(cuMemsetD8Async, at[0] + a->first * UINT64_C(4), (unsigned char)a->value, a->count * (size_t)4, stream);
  else DO(cuMemsetD32Async, at[0] + a->first * UINT64_C(4), a->value, a->count, stream);
}

/* On the CPU. */
static void apply(const action *a) {
  buffer *const *u = a->used;
  if (a->kind == LAUNCH)
    kernel_reference(&a->code->kernel, &(kernel_arguments){u[0]->copy, u[1]->copy, u[2]->copy, u[3]->copy, a->count,
                                                           a->value, a->blocks, a->threads});
  else if (a->kind == COPY) memcpy(u[0]->copy + a->first, u[1]->copy + a->from, a->count * (size_t)4);
  else
    for (uint32_t n = 0; n < a->count; n++) u[0]->copy[a->first + n] = a->value;
}

static void step_action(world *w) {
  action a;
  if (!choose(w, IDLE, &a)) return;
  enqueue(w, &a);
  apply(&a);
}

/* Some actions of one stream, captured and then done several times over. */
static void step_graph(world *w) {
  enum { MOST = 6 };
  int stream = (int)PICK(STREAMS);
  uint32_t count = 0, launches = 1 + PICK(3);
  action actions[MOST];
  void *graph, *made;
  settle_all(w);
  for (int n = 0; n < BUFFERS; n++)
    if (w->buffers[n].copy) w->buffers[n].last = stream; /* nothing is to be waited for while it is captured */
  on(w, w->streams_device[stream]);
  DO(cuStreamBeginCapture_v2, w->streams[stream], 2);
  for (uint32_t tries = 0; tries < MOST; tries++)
    if (choose(w, stream, &actions[count])) enqueue(w, &actions[count++]);
  DO(cuStreamEndCapture, w->streams[stream], &graph);
  DO(cuGraphInstantiateWithFlags, &made, graph, 0);
  for (uint32_t n = 0; n < launches; n++) {
    DO(cuGraphLaunch, made, w->streams[stream]);
    for (uint32_t i = 0; i < count; i++) apply(&actions[i]);
  }
  if (PICK(2)) DO(cuStreamSynchronize, w->streams[stream]);
  DO(cuGraphExecDestroy, made);
  DO(cuGraphDestroy, graph);
}

static void step_hint(world *w) {
  buffer *b = any_buffer(w);
  if (b->kind != MANAGED) return;
  int where = PICK(3) ? (int)PICK((uint32_t)devices) : CPU, stream = stream_for(w, b);
  size_t bytes = b->words * (size_t)4;
  on(w, b->device);
  if (PICK(2)) {
    DO(cuMemAdvise, b->at, bytes, 1 + (int)PICK(6), where);
  } else {
    take(w, b, stream);
    on(w, b->device);
    DO(cuMemPrefetchAsync, b->at, bytes, where, w->streams[stream]);
  }
}

/* Times are the machine's; that they do not run backwards is ours to check. */
static void step_event(world *w) {
  void *from, *to;
  float milliseconds = -1;
  int stream = (int)PICK(STREAMS);
  on(w, w->streams_device[stream]);
  DO(cuEventCreate, &from, 0);
  DO(cuEventCreate, &to, 0);
  DO(cuEventRecord, from, w->streams[stream]);
  DO(cuEventRecord, to, w->streams[stream]);
  int result = cuda.cuEventQuery(to);
  if (result && result != NOT_READY) check(w, "cuEventQuery", result);
  DO(cuEventSynchronize, to);
  DO(cuEventElapsedTime, &milliseconds, from, to);
  if (!(milliseconds >= 0)) wrong(w, 1, "cuEventElapsedTime", "negative");
  DO(cuEventDestroy_v2, from);
  DO(cuEventDestroy_v2, to);
}

static void on_stream(void *data) { __atomic_add_fetch((uint32_t *)data, 1, __ATOMIC_SEQ_CST); }

static void step_host_function(world *w) {
  static const char *const name = "a host function";
  int stream = (int)PICK(STREAMS);
  uint32_t before = __atomic_load_n(&w->host_functions, __ATOMIC_SEQ_CST);
  on(w, w->streams_device[stream]);
  DO(cuLaunchHostFunc, w->streams[stream], on_stream, &w->host_functions);
  DO(cuStreamSynchronize, w->streams[stream]);
  if (__atomic_load_n(&w->host_functions, __ATOMIC_SEQ_CST) != before + 1) wrong(w, 1, name, "was not called once");
}

static void refuse(const world *w, const char *call, int result) {
  if (!result) wrong(w, 1, call, "a broken argument gave no error");
}

/* What must fail, and must change nothing. */
static void step_mistake(world *w) {
  buffer *b = any_buffer(w);
  char room[8];
  settle(w, b);
  on(w, b->device);
  switch (PICK(6)) {
  case 0: refuse(w, "cuMemFree", cuda.cuMemFree_v2(b->at + 4)); break;
  case 1: refuse(w, "cuMemcpyDtoH", cuda.cuMemcpyDtoH_v2(room, 12345, sizeof room)); break;
  case 2:
    refuse(w, "cuLaunchKernel",
           cuda.cuLaunchKernel(w->codes[0][b->device].function, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    break;
  case 3:
    refuse(w, "cuModuleGetFunction",
           cuda.cuModuleGetFunction(&(void *){NULL}, w->codes[0][b->device].module, "no such kernel"));
    break;
  case 4:
    refuse(
        w, "cuModuleLoadData",
        cuda.cuModuleLoadData(&(void *){NULL},
                              ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { add.u32 %r0; }\n"));
    break;
  default: refuse(w, "cuMemAlloc", cuda.cuMemAlloc_v2(&(uint64_t){0}, 0));
  }
}

static void step_renew(world *w) {
  buffer *b = &w->buffers[PICK(BUFFERS)];
  void *pool;
  if (b->copy) end(w, b);
  make(w, b);
  if (PICK(5)) return;
  on(w, b->device);
  DO(cuDeviceGetDefaultMemPool, &pool, b->device);
  DO(cuMemPoolTrimTo, pool, 0);
}

static void new_code(world *w, code *codes) {
  kernel k = kernel_random(&w->state);
  ff_text text = kernel_ptx(&k);
  settle_all(w);
  for (int d = 0; d < devices; d++) {
    on(w, d);
    if (codes[d].module) DO(cuModuleUnload, codes[d].module);
    codes[d].kernel = k;
    DO(cuModuleLoadData, &codes[d].module, text.chars);
    DO(cuModuleGetFunction, &codes[d].function, codes[d].module, "k");
  }
  free(text.chars);
}

static void step_code(world *w) { new_code(w, w->codes[PICK(KERNELS)]); }

static const struct {
  const char *name;
  void (*step)(world *);
  uint32_t often;
} steps[] = {{"action", step_action, 20},
             {"write", step_write, 5},
             {"touch", step_touch, 5},
             {"graph", step_graph, 2},
             {"hint", step_hint, 4},
             {"event", step_event, 2},
             {"host function", step_host_function, 1},
             {"mistake", step_mistake, 2},
             {"renew", step_renew, 4},
             {"code", step_code, 1}};
enum { STEPS = sizeof steps / sizeof *steps };

static void one_step(world *w) {
  uint32_t all = 0, which = 0;
  for (int n = 0; n < STEPS; n++) all += steps[n].often;
  for (all = PICK(all); all >= steps[which].often; which++) all -= steps[which].often;
  snprintf(w->step, sizeof w->step, "%s", steps[which].name);
  steps[which].step(w);
}

/* ---- worlds ---- */

static void *run_world(void *argument) {
  world *w = argument;
  uint32_t count = w->steps;
  snprintf(w->step, sizeof w->step, "beginning");
  for (int n = 0; n < STREAMS; n++) {
    w->streams_device[n] = n % devices;
    on(w, n % devices);
    /* a blocking one must not be captured while others use the default stream */
    DO(cuStreamCreate, &w->streams[n], alone ? PICK(2) : 1);
  }
  for (int n = 0; n < BUFFERS; n += 1 + (int)PICK(2)) make(w, &w->buffers[n]);
  for (int n = 0; n < KERNELS; n++) new_code(w, w->codes[n]);
  for (w->steps = 0; w->steps < count; w->steps++) one_step(w);
  snprintf(w->step, sizeof w->step, "end");
  for (int n = 0; n < BUFFERS; n++)
    if (w->buffers[n].copy) read_back(w, &w->buffers[n]);
  return NULL;
}

static void finish(world *w, uint64_t *sum) {
  for (int n = 0; n < BUFFERS; n++) {
    buffer *b = &w->buffers[n];
    if (!b->copy) continue;
    for (uint32_t i = 0; i < b->words; i++) *sum = (*sum ^ b->copy[i]) * UINT64_C(1099511628211);
    end(w, b);
  }
  for (int n = 0; n < STREAMS; n++) on(w, w->streams_device[n]), DO(cuStreamDestroy_v2, w->streams[n]);
}

static void begin_devices(const world *w) {
  DO(cuInit, 0);
  DO(cuDeviceGetCount, &devices);
  if (devices > DEVICES) devices = DEVICES;
  for (int d = 0; d < devices; d++) DO(cuDevicePrimaryCtxRetain, &contexts[d], d);
  for (int d = 0; d < devices; d++)
    for (int other = 0; other < devices; other++) {
      if (other == d) continue;
      on(w, d);
      DO(cuCtxEnablePeerAccess, contexts[other], 0);
    }
}

int main(int argc, char **argv) {
  static world worlds[THREADS];
  pthread_t threads[THREADS];
  uint64_t sum = UINT64_C(14695981039346656037), state;
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  state = seed;
  driver_load();
  begin_devices(&worlds[0]);
  uint32_t count = kernel_pick(&state, 3) ? 1 : 1 + kernel_pick(&state, THREADS),
           length = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20 + kernel_pick(&state, 100);
  alone = count == 1;
  for (uint32_t n = 0; n < count; n++) worlds[n] = (world){.state = seed * 1000 + n, .number = n, .steps = length};
  for (uint32_t n = 1; n < count; n++)
    if (pthread_create(&threads[n], NULL, run_world, &worlds[n])) return 3;
  run_world(&worlds[0]);
  for (uint32_t n = 1; n < count; n++) pthread_join(threads[n], NULL);
  for (uint32_t n = 0; n < count; n++) finish(&worlds[n], &sum);
  printf("checksum %016llx\n", (unsigned long long)sum);
  return 0;
}
