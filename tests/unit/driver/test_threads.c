/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads that use one virtual GPU at once, each with things of its own and with things that all have: graphs,
 * captures, pools, events, modules, host functions, devices, green contexts; and threads that take from each other what
 * they use. Small, and made for ThreadSanitizer (FARFAULT_SANITIZE_THREADS=ON): what all do is right, whatever the
 * order. Once without a simulation, and once with two. `driver_test_threads ROUNDS` goes on for longer. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "unit/share.h"

typedef struct descriptor *descriptor;
typedef struct graph *graph;
typedef struct graph_exec *graph_exec;
typedef struct resource {
  int type;
  unsigned char room[140];
} resource;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuCtxSetCurrent(CUcontext), cuCtxSynchronize(void), cuCtxEnablePeerAccess(CUcontext, unsigned);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocManaged(CUdeviceptr *, size_t, unsigned), cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream), cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream), cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleUnload(CUmodule),
    cuModuleGetFunction(CUfunction *, CUmodule, const char *),
    cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuStreamQuery(CUstream), cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventRecord(CUevent, CUstream),
    cuEventQuery(CUevent), cuEventSynchronize(CUevent), cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuLaunchHostFunc(CUstream, void (*)(void *), void *);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, graph *), cuGraphDestroy(graph),
    cuGraphInstantiateWithFlags(graph_exec *, graph, unsigned long long), cuGraphLaunch(graph_exec, CUstream),
    cuGraphExecDestroy(graph_exec), cuGraphClone(graph *, graph);
CUresult cuDeviceGetDevResource(CUdevice, resource *, int),
    cuDevSmResourceSplitByCount(resource *, unsigned *, const resource *, resource *, unsigned, unsigned),
    cuDevResourceGenerateDesc(descriptor *, resource *, unsigned),
    cuGreenCtxCreate(CUgreenCtx *, descriptor, CUdevice, unsigned), cuGreenCtxDestroy(CUgreenCtx),
    cuGreenCtxStreamCreate(CUstream *, CUgreenCtx, unsigned, int);

enum { THREADS = 4, DEVICES = 2, THREAD_LOCAL = 1, NON_BLOCKING = 1, NO_TIMING = 2, PINNED = 3 };

/* `add`: each of the block's threads adds n to the word; `count` is the module's own. */
static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 count;\n"
    ".visible .entry add(.param .u64 word, .param .u32 n)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [word];\nld.param.u32 %r1, [n];\nred.global.add.u32 [%rd1], %r1;\n"
    "mov.u64 %rd2, count;\nred.global.add.u32 [%rd2], 1;\nret;\n}\n";

static CUcontext context[DEVICES];
static CUmodule module[DEVICES];
static CUfunction add[DEVICES];
static CUdeviceptr shared; /* a word that all threads add to */
static pthread_barrier_t begin;

#define DO(call)                                                                   \
  do {                                                                             \
    CUresult result_ = (call);                                                     \
    if (result_) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)result_); \
      return "failed";                                                             \
    }                                                                              \
  } while (0)
#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
      return "failed";                                                    \
    }                                                                     \
  } while (0)

static int launch(CUfunction function, CUdeviceptr word, uint32_t n, CUstream stream) {
  static _Thread_local unsigned calls;
  if (++calls % 8 == 0) sched_yield(); /* so that threads are at different places */
  return (int)cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){&word, &n}, NULL);
}

static uint32_t read_word(CUdeviceptr word) {
  uint32_t value;
  return cuMemcpyDtoH_v2(&value, word, 4) ? UINT32_MAX : value;
}

typedef struct work {
  const char *(*body)(int self);
  int self;
} work;

static void *run_work(void *of) {
  const work *w = of;
  pthread_barrier_wait(&begin);
  if (cuCtxSetCurrent(context[0])) return "no context";
  return (void *)(uintptr_t)w->body(w->self);
}

static void in_threads(const char *(*body)(int self)) {
  pthread_t threads[THREADS];
  work works[THREADS];
  assert_int_equal(cuMemsetD32_v2(shared, 0, 1), 0);
  for (int i = 0; i < THREADS; i++) {
    works[i] = (work){body, i};
    assert_int_equal(pthread_create(&threads[i], NULL, run_work, &works[i]), 0);
  }
  int failed = 0;
  for (int i = 0; i < THREADS; i++) {
    void *what;
    pthread_join(threads[i], &what);
    failed += what != NULL;
  }
  assert_int_equal(failed, 0);
}

static int asked_rounds;
static int rounds(void) { return asked_rounds ? asked_rounds : 24 / (int)one_in(2); }

/* ---- each thread's own, and what all have ---- */

static graph_exec common_exec;

static const char *capture_and_launch(int self) {
  CUstream stream, side;
  CUevent fork, join;
  CUdeviceptr own;
  graph made, copy;
  graph_exec exec;
  DO(cuStreamCreate(&stream, NON_BLOCKING));
  DO(cuStreamCreate(&side, NON_BLOCKING));
  DO(cuEventCreate(&fork, NO_TIMING));
  DO(cuEventCreate(&join, NO_TIMING));
  DO(cuMemAlloc_v2(&own, 4));
  DO(cuMemsetD32_v2(own, 0, 1));
  for (int i = 0; i < rounds(); i++) {
    DO(cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
    DO(launch(add[0], own, 1, stream));
    DO(cuEventRecord(fork, stream));
    DO(cuStreamWaitEvent(side, fork, 0));
    DO(launch(add[0], own, 2, side));
    DO(cuEventRecord(join, side));
    DO(cuStreamWaitEvent(stream, join, 0));
    DO(cuStreamEndCapture(stream, &made));
    DO(cuGraphClone(&copy, made));
    DO(cuGraphInstantiateWithFlags(&exec, i % 2 ? copy : made, 0));
    DO(cuGraphDestroy(made));
    DO(cuGraphLaunch(exec, stream));
    DO(cuGraphLaunch(common_exec, stream));
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(copy));
  }
  DO(cuStreamSynchronize(stream));
  EXPECT(read_word(own) == 96u * (uint32_t)rounds());
  DO(cuMemFree_v2(own));
  DO(cuEventDestroy_v2(fork));
  DO(cuEventDestroy_v2(join));
  DO(cuStreamDestroy_v2(stream));
  DO(cuStreamDestroy_v2(side));
  return NULL;
}

static void graphs(void **state) {
  graph made;
  CUstream stream;
  assert_int_equal(cuStreamCreate(&stream, NON_BLOCKING), 0);
  assert_int_equal(cuStreamBeginCapture_v2(stream, THREAD_LOCAL), 0);
  assert_int_equal(launch(add[0], shared, 1, stream), 0);
  assert_int_equal(cuStreamEndCapture(stream, &made), 0);
  assert_int_equal(cuGraphInstantiateWithFlags(&common_exec, made, 0), 0);
  in_threads(capture_and_launch);
  assert_int_equal(read_word(shared), 32 * THREADS * rounds());
  assert_int_equal(cuGraphExecDestroy(common_exec), 0);
  assert_int_equal(cuGraphDestroy(made), 0);
  assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

/* An allocation of one thread's stream is freed in the next one's. */
static CUdeviceptr handed[THREADS];
static CUstream pool_streams[THREADS];
static CUevent ready[THREADS];
static pthread_barrier_t turn;

static const char *use_pool(int self) {
  const int before = (self + THREADS - 1) % THREADS;
  for (int i = 0; i < rounds(); i++) {
    const size_t bytes = 4096u << (i + self) % 5;
    uint32_t word = 0;
    DO(cuMemAllocAsync(&handed[self], bytes, pool_streams[self]));
    DO(cuMemsetD32Async(handed[self], (unsigned)(100 * i + self), bytes / 4, pool_streams[self]));
    DO(cuEventRecord(ready[self], pool_streams[self]));
    pthread_barrier_wait(&turn);
    DO(cuStreamWaitEvent(pool_streams[self], ready[before], 0));
    DO(cuMemcpyDtoHAsync_v2(&word, handed[before] + 4000, 4, pool_streams[self]));
    DO(cuMemFreeAsync(handed[before], pool_streams[self]));
    DO(cuStreamSynchronize(pool_streams[self]));
    EXPECT(word == (uint32_t)(100 * i + before));
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

static void pools(void **state) {
  pthread_barrier_init(&turn, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(cuStreamCreate(&pool_streams[i], NON_BLOCKING), 0);
    assert_int_equal(cuEventCreate(&ready[i], NO_TIMING), 0);
  }
  in_threads(use_pool);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(cuStreamDestroy_v2(pool_streams[i]), 0);
    assert_int_equal(cuEventDestroy_v2(ready[i]), 0);
  }
}

/* All record the same events in streams of their own, and ask and wait for them. */
static CUevent common_events[2];

static const char *share_events(int self) {
  CUstream stream;
  CUevent own;
  float ms;
  DO(cuStreamCreate(&stream, self % 2 ? NON_BLOCKING : 0));
  DO(cuEventCreate(&own, 0));
  for (int i = 0; i < rounds(); i++) {
    CUevent common = common_events[(i + self) % 2];
    DO(launch(add[0], shared, 1, stream));
    DO(cuEventRecord(common, stream));
    DO(cuEventRecord(own, stream));
    DO(cuStreamWaitEvent(stream, common_events[i % 2], 0));
    const int query = (int)cuEventQuery(common), elapsed = (int)cuEventElapsedTime(&ms, own, common_events[i % 2]);
    EXPECT(query == 0 || query == 600);
    EXPECT(elapsed == 0 || elapsed == 400 || elapsed == 600);
    DO(cuEventSynchronize(common));
    const int busy = (int)cuStreamQuery(stream);
    EXPECT(busy == 0 || busy == 600);
  }
  DO(cuStreamSynchronize(stream));
  DO(cuEventDestroy_v2(own));
  DO(cuStreamDestroy_v2(stream));
  return NULL;
}

static void events(void **state) {
  for (int i = 0; i < 2; i++) assert_int_equal(cuEventCreate(&common_events[i], 0), 0);
  in_threads(share_events);
  assert_int_equal(read_word(shared), 32 * THREADS * rounds());
  for (int i = 0; i < 2; i++) assert_int_equal(cuEventDestroy_v2(common_events[i]), 0);
}

static const char *load_and_unload(int self) {
  for (int i = 0; i < rounds(); i++) {
    CUmodule own;
    CUfunction function;
    CUdeviceptr count;
    size_t bytes;
    DO(cuModuleLoadData(&own, text));
    DO(cuModuleGetFunction(&function, own, "add"));
    DO(cuModuleGetGlobal_v2(&count, &bytes, own, "count"));
    DO(launch(function, shared, 1, NULL));
    DO(launch(add[0], shared, 1, NULL));
    EXPECT(bytes == 4 && read_word(count) == 32);
    DO(cuModuleUnload(own));
  }
  return NULL;
}

static void modules(void **state) {
  in_threads(load_and_unload);
  assert_int_equal(read_word(shared), 64 * THREADS * rounds());
}

static atomic_int called;
static void note_call(void *own) {
  called++;
  ++*(int *)own;
}

static const char *call_host(int self) {
  CUstream stream;
  int own = 0;
  DO(cuStreamCreate(&stream, NON_BLOCKING));
  for (int i = 0; i < rounds(); i++) {
    DO(launch(add[0], shared, 1, stream));
    DO(cuLaunchHostFunc(stream, note_call, &own));
    if (i % 4 == 0) DO(cuStreamSynchronize(stream));
    if (i % 4 == 0) EXPECT(own == i + 1);
  }
  DO(cuStreamSynchronize(stream));
  EXPECT(own == rounds());
  DO(cuStreamDestroy_v2(stream));
  return NULL;
}

static void host_functions(void **state) {
  called = 0;
  in_threads(call_host);
  assert_int_equal(called, THREADS * rounds());
}

/* Each thread on a device, with copies between the two, managed memory that the host reads, and pinned memory. */
static const char *use_device(int self) {
  const int device = self % DEVICES;
  CUstream stream;
  CUdeviceptr here, there, managed;
  void *pinned;
  uint32_t word;
  DO(cuCtxSetCurrent(context[1 - device]));
  DO(cuMemAlloc_v2(&there, 4096));
  DO(cuCtxSetCurrent(context[device]));
  DO(cuMemAlloc_v2(&here, 4096));
  DO(cuMemAllocManaged(&managed, 4096, 1));
  DO(cuMemHostAlloc(&pinned, 4096, PINNED));
  DO(cuStreamCreate(&stream, NON_BLOCKING));
  *(uint32_t *)pinned = 0;
  *(uint32_t *)(uintptr_t)managed = 0;
  DO(cuMemsetD32Async(here, 0, 1024, stream));
  for (uint32_t i = 1; i <= (uint32_t)rounds(); i++) {
    DO(launch(add[device], here, 1, stream));
    DO(launch(add[device], managed, 1, stream));
    DO(launch(add[device], (uintptr_t)pinned, 1, stream));
    DO(cuMemcpyAsync(there, here, 4096, stream));
    DO(cuMemcpyDtoHAsync_v2(&word, there, 4, stream));
    DO(cuStreamSynchronize(stream));
    EXPECT(word == 32 * i);
    EXPECT(*(volatile uint32_t *)(uintptr_t)managed == 32 * i);
    EXPECT(*(volatile uint32_t *)pinned == 32 * i);
  }
  DO(cuStreamDestroy_v2(stream));
  DO(cuMemFree_v2(here));
  DO(cuMemFree_v2(there));
  DO(cuMemFree_v2(managed));
  DO(cuMemFreeHost(pinned));
  return NULL;
}

static void devices(void **state) { in_threads(use_device); }

static const char *use_green(int self) {
  for (int i = 0; i < rounds(); i++) {
    resource all, part, rest;
    descriptor d;
    unsigned one = 1;
    CUgreenCtx green;
    CUstream stream;
    DO(cuDeviceGetDevResource(0, &all, 1));
    DO(cuDevSmResourceSplitByCount(&part, &one, &all, &rest, 0, 8));
    DO(cuDevResourceGenerateDesc(&d, &part, 1));
    DO(cuGreenCtxCreate(&green, d, 0, 1));
    DO(cuGreenCtxStreamCreate(&stream, green, NON_BLOCKING, 0));
    DO(launch(add[0], shared, 1, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuStreamDestroy_v2(stream));
    DO(cuGreenCtxDestroy(green));
  }
  return NULL;
}

static void greens(void **state) {
  in_threads(use_green);
  assert_int_equal(read_word(shared), 32 * THREADS * rounds());
}

/* ---- what goes while others use it ---- */

/* A handle may be gone when a thread comes to use it, or be another thing's by then: any error will do, and nothing
 * may crash or hang. */
enum { SLOTS = 6 };
static _Atomic CUstream stream_slots[SLOTS];
static _Atomic CUevent event_slots[SLOTS];
static _Atomic(CUmodule) module_slots[SLOTS];
static _Atomic CUdeviceptr memory_slots[SLOTS];

static void refill(uint32_t kind, uint32_t slot) {
  CUstream stream = NULL;
  CUevent event = NULL;
  CUmodule loaded = NULL;
  CUdeviceptr memory = 0;
  switch (kind) {
  case 0:
    if (cuStreamCreate(&stream, slot % 2) == 0 && (stream = atomic_exchange(&stream_slots[slot], stream)))
      cuStreamDestroy_v2(stream);
    break;
  case 1:
    if (cuEventCreate(&event, 0) == 0 && (event = atomic_exchange(&event_slots[slot], event))) cuEventDestroy_v2(event);
    break;
  case 2:
    if (cuModuleLoadData(&loaded, text) == 0 && (loaded = atomic_exchange(&module_slots[slot], loaded)))
      cuModuleUnload(loaded);
    break;
  default:
    if (cuMemAlloc_v2(&memory, 4096) == 0 && (memory = atomic_exchange(&memory_slots[slot], memory)))
      cuMemFree_v2(memory);
  }
}

static void use(uint32_t what, uint32_t slot, uint32_t other) {
  CUstream stream = stream_slots[slot];
  CUevent event = event_slots[other];
  CUmodule loaded = module_slots[slot];
  const CUdeviceptr memory = memory_slots[other];
  CUfunction function;
  graph made = NULL;
  uint32_t word;
  switch (what) {
  case 0: /* only memory that is there is written by kernels: an illegal address would be the end of all */
    if (loaded && !cuModuleGetFunction(&function, loaded, "add")) launch(function, shared, 1, stream);
    break;
  case 1:
    if (event) cuEventRecord(event, stream);
    break;
  case 2:
    if (event) cuStreamWaitEvent(stream, event, 0);
    break;
  case 3: cuStreamSynchronize(stream); break;
  case 4:
    if (event) cuEventSynchronize(event);
    break;
  case 5: cuMemsetD32Async(memory, 5, 1024, stream); break;
  case 6: cuMemcpyDtoHAsync_v2(&word, memory, 4, stream); break;
  case 7:
    if (!stream || cuStreamBeginCapture_v2(stream, THREAD_LOCAL)) break;
    launch(add[0], shared, 1, stream);
    if (!cuStreamEndCapture(stream, &made) && made) cuGraphDestroy(made);
    break;
  default: cuCtxSynchronize();
  }
}

static const char *take_from_others(int self) {
  uint32_t random = 12345u * (uint32_t)(self + 1);
  for (int i = 0; i < 8 * rounds(); i++) {
    random = random * 1664525u + 1013904223u;
    const uint32_t slot = (random >> 8) % SLOTS, other = (random >> 16) % SLOTS, what = (random >> 24) % 13;
    if (what < 4) refill(what, slot);
    else use(what - 4, slot, other);
  }
  return NULL;
}

static void what_goes(void **state) {
  in_threads(take_from_others);
  assert_int_equal(cuCtxSynchronize(), 0);
}

/* Resets of the device while others launch, allocate and wait: their calls may fail. */
static const char *reset_meanwhile(int self) {
  for (int i = 0; i < rounds() / 4; i++) {
    CUmodule own;
    CUfunction function;
    CUdeviceptr word;
    CUstream stream;
    if (!self) {
      DO(cuDevicePrimaryCtxReset_v2(0));
      continue;
    }
    if (cuModuleLoadData(&own, text) || cuModuleGetFunction(&function, own, "add")) continue;
    if (cuMemAlloc_v2(&word, 4) || cuStreamCreate(&stream, 0)) continue;
    cuMemsetD32Async(word, 0, 1, stream);
    cuStreamSynchronize(stream);
    cuStreamDestroy_v2(stream);
    cuMemFree_v2(word);
    cuModuleUnload(own);
  }
  return NULL;
}

static void resets(void **state) {
  in_threads(reset_meanwhile);
  assert_int_equal(cuCtxSynchronize(), 0);
}

/* ---- */

static int start(void **state) {
  if (cuInit(0) || pthread_barrier_init(&begin, NULL, THREADS)) return 1;
  for (int d = 0; d < DEVICES; d++)
    if (cuDevicePrimaryCtxRetain(&context[d], d) || cuCtxSetCurrent(context[d]) || cuModuleLoadData(&module[d], text) ||
        cuModuleGetFunction(&add[d], module[d], "add"))
      return 1;
  return cuCtxSetCurrent(context[0]) || cuMemAlloc_v2(&shared, 4);
}

static int run(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(graphs),  cmocka_unit_test(pools),          cmocka_unit_test(events),
      cmocka_unit_test(modules), cmocka_unit_test(host_functions), cmocka_unit_test(devices),
      cmocka_unit_test(greens),  cmocka_unit_test(what_goes),      cmocka_unit_test(resets),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}

int main(int count, char **arguments) {
  asked_rounds = count > 1 ? atoi(arguments[1]) : 0;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  int status = 1;
  pid_t child = fork();
  if (!child) {
    setenv("FARFAULT_MEMORY", "copy,uvm", 1);
    exit(run());
  }
  const int failed = run();
  return waitpid(child, &status, 0) != child || status || failed;
}
