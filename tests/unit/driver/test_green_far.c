/* SPDX-License-Identifier: Apache-2.0 */
/* A green context of another device than the thread's: what gives way on that device, because it waits for the host, is
 * over before the context is destroyed and before its events and the device's are recorded. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_resource.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemHostAlloc(void **, size_t, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream);
CUresult cuEventCreate(CUevent *, unsigned), cuEventSynchronize(CUevent), cuCtxRecordEvent(CUcontext, CUevent),
    cuCtxWaitEvent(CUcontext, CUevent);
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
static CUfunction follow;
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

static int start(void **state) {
  (void)state;
  CUmodule module;
  engine_resource all;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&primary[0], 0) || cuDevicePrimaryCtxRetain(&primary[1], 1)) return -1;
  return cuCtxSetCurrent(primary[1]) || cuModuleLoadData(&module, text) ||
         cuModuleGetFunction(&follow, module, "follow") || cuEventCreate(&event, 0) ||
         cuMemHostAlloc((void **)&words, 2 * sizeof *words, 0) || cuDeviceGetDevResource(1, &all, ENGINE_RESOURCE_SM) ||
         cuDevResourceGenerateDesc(&descriptor, &all, 1);
}

int main(void) {
  alarm(WATCHDOG);
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_gives_way_is_over)};
  return cmocka_run_group_tests(tests, start, NULL);
}
