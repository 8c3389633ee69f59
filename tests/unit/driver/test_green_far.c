/* SPDX-License-Identifier: Apache-2.0 */
/* A green context of another device than the thread's: what gives way on that device, because it waits for the host, is
 * over before the context is destroyed and before its events and the device's are recorded. And calls about one that is
 * destroyed while they wait, or whose event is: they leave alone what has its address then. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_resource.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr),
    cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream), cuLaunchHostFunc(CUstream, void (*)(void *), void *);
CUresult cuMemHostAlloc(void **, size_t, unsigned), cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream),
    cuStreamSynchronize(CUstream);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventSynchronize(CUevent),
    cuCtxRecordEvent(CUcontext, CUevent), cuCtxWaitEvent(CUcontext, CUevent);
cudaError_t cudaExecutionCtxSynchronize(CUgreenCtx);
CUresult cuDeviceGetDevResource(CUdevice, engine_resource *, int),
    cuDevResourceGenerateDesc(engine_descriptor **, engine_resource *, unsigned);
CUresult cuGreenCtxCreate(CUgreenCtx *, engine_descriptor *, CUdevice, unsigned), cuGreenCtxDestroy(CUgreenCtx),
    cuGreenCtxStreamCreate(CUstream *, CUgreenCtx, unsigned, int), cuGreenCtxRecordEvent(CUgreenCtx, CUevent),
    cuGreenCtxWaitEvent(CUgreenCtx, CUevent);

#define succeed(call) assert_int_equal(call, CUDA_SUCCESS)
enum { DETACHED = 917, WATCHDOG = 60 };

/* words[1] = 7 as soon as words[0] is not 0 */
static const char text[] =
    ".version 7.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry follow(.param .u64 words_)\n{\n.reg .b64 %words; .reg .b32 %r; .reg .pred %p;\n"
    "ld.param.u64 %words, [words_];\n"
    "AGAIN: ld.volatile.global.u32 %r, [%words]; setp.eq.u32 %p, %r, 0; @%p bra AGAIN;\n"
    "st.volatile.global.u32 [%words+4], 7; ret;\n}\n";

static CUcontext primary[2];
static CUfunction follow, follow_first; /* on device 1; on device 0 */
static CUevent event;
static engine_descriptor *descriptor;
static uint32_t *words;

static uint32_t word(int at) { return __atomic_load_n(&words[at], __ATOMIC_SEQ_CST); }

static void *write_later(void *unused) {
  (void)unused;
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  __atomic_store_n(&words[0], 1, __ATOMIC_SEQ_CST);
  return NULL;
}

enum { RECORD, RECORD_DEVICE, WAIT, WAIT_DEVICE, DESTROY, WAYS };

static void one_way(int way) {
  CUgreenCtx green;
  CUstream stream;
  pthread_t thread;
  words[0] = words[1] = 0;
  succeed(cuCtxSetCurrent(primary[1]));
  succeed(cuGreenCtxCreate(&green, descriptor, 1, 1));
  succeed(cuGreenCtxStreamCreate(&stream, green, 1, 0));
  succeed(cuLaunchKernel(follow, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&words}, NULL));
  succeed(cuCtxSetCurrent(primary[0]));
  assert_int_equal(pthread_create(&thread, NULL, write_later, NULL), 0);
  if (way == RECORD) succeed(cuGreenCtxRecordEvent(green, event));
  else if (way == RECORD_DEVICE) succeed(cuCtxRecordEvent(primary[1], event));
  else if (way == WAIT) succeed(cuGreenCtxWaitEvent(green, event));
  else if (way == WAIT_DEVICE) succeed(cuCtxWaitEvent(primary[1], event));
  else succeed(cuGreenCtxDestroy(green));
  if (way == RECORD || way == RECORD_DEVICE) succeed(cuEventSynchronize(event));
  uint32_t found = word(1);
  pthread_join(thread, NULL);
  assert_int_equal(found, 7);
  if (way == DESTROY) assert_int_equal(cuStreamSynchronize(stream), DETACHED);
  else succeed(cuGreenCtxDestroy(green));
  succeed(cuStreamDestroy_v2(stream));
}

static void what_gives_way_is_over(void **state) {
  (void)state;
  for (int way = 0; way < WAYS; way++) one_way(way);
}

/* ---- something else at the same address ---- */

typedef enum way_to_wait {
  W_RECORD,
  W_WAIT,
  W_RECORD_DEVICE,
  W_WAIT_DEVICE,
  W_SYNCHRONIZE,
  W_STREAM,
  W_DESTROY
} way_to_wait;

typedef struct call { /* on a thread whose current device is 0 */
  way_to_wait way;
  CUgreenCtx green;
  CUevent event;
  int result;
} call;

static int result_of(const call *c) {
  CUstream stream;
  switch (c->way) {
  case W_RECORD: return (int)cuGreenCtxRecordEvent(c->green, c->event);
  case W_WAIT: return (int)cuGreenCtxWaitEvent(c->green, c->event);
  case W_RECORD_DEVICE: return (int)cuCtxRecordEvent(primary[1], c->event);
  case W_WAIT_DEVICE: return (int)cuCtxWaitEvent(primary[1], c->event);
  case W_SYNCHRONIZE: return (int)cudaExecutionCtxSynchronize(c->green);
  case W_STREAM: return (int)cuGreenCtxStreamCreate(&stream, c->green, 1, 0);
  case W_DESTROY: return (int)cuGreenCtxDestroy(c->green);
  }
  return -1;
}

static void *make_call(void *context) {
  call *c = context;
  if (cuCtxSetCurrent(primary[0])) return NULL;
  c->result = result_of(c);
  return NULL;
}

/* It waits for the kernel: with the lock that it has given up. */
static void await_waiting(void) {
  for (uint32_t waiting = 0; !waiting; usleep(100)) {
    pthread_mutex_lock(&ff_engine.lock);
    waiting = ff_engine.waiting;
    pthread_mutex_unlock(&ff_engine.lock);
  }
}

enum { MANY = 16, CONTEXT_IS_DESTROYED = 709, INVALID_HANDLE = 400 };

/* Destroys it and makes others, until one has its address. (The allocator gives a piece again soon if its cache for
 * this thread is full of others.) */
static void replace_green(CUgreenCtx green, CUgreenCtx others[MANY]) {
  for (int i = 0; i < MANY; i += 2) succeed(cuGreenCtxDestroy(others[i]));
  succeed(cuGreenCtxDestroy(green));
  for (int i = 0; i < MANY; i += 2) {
    succeed(cuGreenCtxCreate(&others[i], descriptor, 1, 1));
    if (others[i] == green) return;
  }
}

static void replace_event(CUevent gone, CUevent others[MANY]) {
  for (int i = 0; i < MANY; i += 2) succeed(cuEventDestroy_v2(others[i]));
  succeed(cuEventDestroy_v2(gone));
  for (int i = 0; i < MANY; i += 2) {
    succeed(cuEventCreate(&others[i], 0));
    if (others[i] == gone) return;
  }
}

/* The call waits for a kernel of its thread's device, and meanwhile what it is about, on the other one, is replaced. */
static void call_meanwhile(way_to_wait way, bool event_goes, int expected) {
  CUgreenCtx green = NULL, greens[MANY];
  CUevent gone = NULL, events[MANY];
  CUstream stream;
  pthread_t thread;
  words[0] = words[1] = 0;
  succeed(cuCtxSetCurrent(primary[0]));
  succeed(cuStreamCreate(&stream, 1));
  succeed(cuLaunchKernel(follow_first, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&words}, NULL));
  succeed(cuCtxSetCurrent(primary[1]));
  for (int i = 0; i < MANY; i++) {
    if (i == MANY / 2) succeed(cuGreenCtxCreate(&green, descriptor, 1, 1));
    succeed(cuGreenCtxCreate(&greens[i], descriptor, 1, 1));
  }
  for (int i = 0; i < MANY; i++) {
    if (i == MANY / 2) succeed(cuEventCreate(&gone, 0));
    succeed(cuEventCreate(&events[i], 0));
  }
  call c = {.way = way, .green = green, .event = gone, .result = -1};
  assert_int_equal(pthread_create(&thread, NULL, make_call, &c), 0);
  await_waiting();
  if (event_goes) replace_event(gone, events);
  else replace_green(green, greens);
  __atomic_store_n(&words[0], 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  assert_int_equal(c.result, expected);
  succeed(cuStreamDestroy_v2(stream));
}

static void what_has_the_address_of_a_green_context_is_left_alone(void **state) {
  (void)state;
  const way_to_wait ways[] = {W_RECORD, W_WAIT, W_SYNCHRONIZE, W_STREAM, W_DESTROY};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) call_meanwhile(ways[i], false, CONTEXT_IS_DESTROYED);
}

static void what_has_the_address_of_an_event_is_left_alone(void **state) {
  (void)state;
  const way_to_wait ways[] = {W_RECORD, W_WAIT, W_RECORD_DEVICE, W_WAIT_DEVICE};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) call_meanwhile(ways[i], true, INVALID_HANDLE);
}

/* ---- a stream that its green context leaves behind ---- */

static sem_t go;
static atomic_bool has_gone_on;
static void wait_for_go(void *unused) {
  while (sem_wait(&go)) {}
  has_gone_on = true;
}

/* The stream gets a host function while its context's end waits for a kernel. It does not block the legacy stream
 * then, either. */
static void a_stream_left_behind_blocks_what_it_did(void **state) {
  (void)state;
  CUgreenCtx green;
  CUstream stream, other;
  CUdeviceptr memory;
  pthread_t thread;
  const uint32_t grace = engine_grace_ms;
  words[0] = words[1] = 0;
  assert_int_equal(sem_init(&go, 0, 0), 0);
  succeed(cuCtxSetCurrent(primary[1]));
  succeed(cuMemAlloc_v2(&memory, 64));
  succeed(cuGreenCtxCreate(&green, descriptor, 1, 1));
  succeed(cuGreenCtxStreamCreate(&stream, green, 1, 0));
  succeed(cuStreamCreate(&other, 1));
  succeed(cuLaunchKernel(follow, 1, 1, 1, 1, 1, 1, 0, other, (void *[]){&words}, NULL));
  call c = {.way = W_DESTROY, .green = green, .result = -1};
  assert_int_equal(pthread_create(&thread, NULL, make_call, &c), 0);
  await_waiting();
  succeed(cuLaunchHostFunc(stream, wait_for_go, NULL));
  __atomic_store_n(&words[0], 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  assert_int_equal(c.result, CUDA_SUCCESS);
  engine_grace_ms = 0;
  succeed(cuMemsetD8Async(memory, 1, 4, NULL));
  engine_grace_ms = grace;
  assert_false(has_gone_on);
  assert_int_equal(sem_post(&go), 0);
  succeed(cuStreamDestroy_v2(stream));
  succeed(cuStreamDestroy_v2(other));
  succeed(cuMemFree_v2(memory));
  assert_true(has_gone_on);
  sem_destroy(&go);
}

static int start(void **state) {
  (void)state;
  CUmodule module;
  engine_resource all;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary[0], 0) || cuDevicePrimaryCtxRetain(&primary[1], 1)) return -1;
  if (cuCtxSetCurrent(primary[0]) || cuModuleLoadData(&module, text) ||
      cuModuleGetFunction(&follow_first, module, "follow"))
    return -1;
  return cuCtxSetCurrent(primary[1]) || cuModuleLoadData(&module, text) ||
         cuModuleGetFunction(&follow, module, "follow") || cuEventCreate(&event, 0) ||
         cuMemHostAlloc((void **)&words, 2 * sizeof *words, 0) || cuDeviceGetDevResource(1, &all, ENGINE_RESOURCE_SM) ||
         cuDevResourceGenerateDesc(&descriptor, &all, 1);
}

int main(void) {
  alarm(WATCHDOG);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_gives_way_is_over),
      cmocka_unit_test(what_has_the_address_of_a_green_context_is_left_alone),
      cmocka_unit_test(what_has_the_address_of_an_event_is_left_alone),
      cmocka_unit_test(a_stream_left_behind_blocks_what_it_did),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
