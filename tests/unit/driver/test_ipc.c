/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events that two processes have by handle (cudaIpc). The parent never starts an engine, so that each child
 * has one of its own; a pipe carries handles one way, and "go on" the other. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"

typedef struct handle {
  unsigned char bytes[ENGINE_IPC_HANDLE_BYTES];
} handle;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void), cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr),
    cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t), cuMemAllocManaged(CUdeviceptr *, size_t, unsigned),
    cuMemHostAlloc(void **, size_t, unsigned), cuMemAllocAsync(CUdeviceptr *, size_t, CUstream),
    cuMemGetInfo_v2(size_t *, size_t *), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuPointerGetAttribute(void *, int, CUdeviceptr);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuIpcGetMemHandle(handle *, CUdeviceptr), cuIpcOpenMemHandle_v2(CUdeviceptr *, handle, unsigned),
    cuIpcCloseMemHandle(CUdeviceptr), cuIpcGetEventHandle(handle *, CUevent), cuIpcOpenEventHandle(CUevent *, handle);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventRecord(CUevent, CUstream),
    cuEventQuery(CUevent), cuEventSynchronize(CUevent), cuStreamWaitEvent(CUstream, CUevent, unsigned),
    cuStreamCreate(CUstream *, unsigned), cuStreamSynchronize(CUstream), cuStreamQuery(CUstream);

#define NOT_READY 600
#define LAUNCH_FAILED 719
#define MAP_FAILED 205
enum { LAZY = 1, IPC_CAPABLE = 10, INTERPROCESS = 4, NO_TIMING = 2 };

/* In a child: the line that fails is its exit status. */
#define CHECK(condition)                         \
  do {                                           \
    if (!(condition)) return __LINE__ % 250 + 1; \
  } while (0)

static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    /* *flag = 1 is waited for */
    ".visible .entry hold(.param .u64 flag)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\nld.param.u64 %rd1, [flag];\n"
    "wait:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.ne.u32 %p, %r1, 1;\n@%p bra wait;\nret;\n}\n"
    /* each of 256 words becomes three times as large */
    ".visible .entry triple(.param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [to];\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\nmul.lo.u32 %r2, %r2, 3;\nst.global.u32 [%rd3], %r2;\nret;\n}\n";

enum { WORDS = 256, BYTES = 3 << 20 };

static int sockets[2]; /* [0]: of the exporter, [1]: of the importer */

static int start(void) {
  CUcontext context;
  CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
  return 0;
}

static int launch(const char *name, CUdeviceptr at, unsigned threads, CUstream stream) {
  static CUmodule module; /* to load one waits for the device */
  CUfunction function;
  CHECK(module || !cuModuleLoadData(&module, text));
  CHECK(!cuModuleGetFunction(&function, module, name));
  CHECK(!cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, (void *[]){&at}, NULL));
  return 0;
}

static int put(int end, const void *data, size_t bytes) { return write(sockets[end], data, bytes) != (ssize_t)bytes; }
static int get(int end, void *data, size_t bytes) {
  return recv(sockets[end], data, bytes, MSG_WAITALL) != (ssize_t)bytes;
}
static int go_on(int end) { return put(end, "g", 1); }
static int wait_turn(int end) {
  char turn;
  return get(end, &turn, 1);
}

static int fill(CUdeviceptr at, uint32_t first) {
  uint32_t words[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) words[i] = first + i;
  CHECK(!cuMemcpyHtoD_v2(at, words, sizeof words));
  return 0;
}
static int is_filled(CUdeviceptr at, uint32_t first, uint32_t times) {
  uint32_t words[WORDS];
  CHECK(!cuMemcpyDtoH_v2(words, at, sizeof words));
  for (uint32_t i = 0; i < WORDS; i++) CHECK(words[i] == (first + i) * times);
  return 0;
}

/* ---- memory ---- */

static int gives(void) {
  CUdeviceptr small, large;
  handle handles[2], again;
  int capable = 0;
  CHECK(!start() && !cuMemAlloc_v2(&small, 1024) && !cuMemAlloc_v2(&large, BYTES));
  CHECK(!cuPointerGetAttribute(&capable, IPC_CAPABLE, small) && capable == 1);
  CHECK(!fill(small, 7) && !fill(large, 1) && !fill(large + BYTES - 1024, 50));
  CHECK(!cuIpcGetMemHandle(&handles[0], small) && !cuIpcGetMemHandle(&handles[1], large));
  CHECK(!cuIpcGetMemHandle(&again, large + 4096) && !memcmp(&again, &handles[1], sizeof again));
  CHECK(!is_filled(small, 7, 1) && !is_filled(large + BYTES - 1024, 50, 1)); /* they are where they were */
  CHECK(!put(0, handles, sizeof handles) && !wait_turn(0));
  CHECK(!is_filled(small, 7, 3) && !is_filled(large, 1, 3));
  CHECK(!launch("triple", small, WORDS, NULL) && !cuCtxSynchronize() && !go_on(0) && !wait_turn(0));
  CHECK(!cuMemFree_v2(small) && !go_on(0) && !wait_turn(0));
  CHECK(!cuMemAlloc_v2(&small, 1024) && !is_filled(small, 0, 0)); /* it is empty again */
  return 0;
}

static int takes(void) {
  CUdeviceptr small, large, again;
  handle handles[2];
  size_t before, after, total;
  CHECK(!start() && !get(1, handles, sizeof handles) && !cuMemGetInfo_v2(&before, &total));
  CHECK(cuIpcOpenMemHandle_v2(&small, handles[0], 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuIpcOpenMemHandle_v2(&small, handles[0], LAZY) && !cuIpcOpenMemHandle_v2(&large, handles[1], LAZY));
  CHECK(!cuMemGetInfo_v2(&after, &total) && after == before); /* the other process has paid for it */
  CHECK(!is_filled(small, 7, 1) && !is_filled(large + BYTES - 1024, 50, 1));
  CHECK(cuMemcpyDtoH_v2(&before, small + 1024, 4) && cuMemcpyDtoH_v2(&before, large + BYTES, 4)); /* their own sizes */
  CHECK(!launch("triple", small, WORDS, NULL) && !launch("triple", large, WORDS, NULL) && !cuCtxSynchronize());
  CHECK(!cuIpcOpenMemHandle_v2(&again, handles[0], LAZY) && again == small); /* opened twice */
  CHECK(cuMemFree_v2(small) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuIpcGetMemHandle(&handles[1], small) == CUDA_ERROR_INVALID_VALUE); /* nor handed on */
  CHECK(!go_on(1) && !wait_turn(1) && !is_filled(small, 7, 9));
  CHECK(!go_on(1) && !wait_turn(1) && !is_filled(small, 7, 9)); /* its owner has freed it */
  CHECK(!cuIpcCloseMemHandle(small) && !is_filled(small, 7, 9) && !cuIpcCloseMemHandle(small));
  CHECK(cuIpcCloseMemHandle(small) == CUDA_ERROR_INVALID_VALUE && cuMemcpyDtoH_v2(&before, small, 4));
  CHECK(cuIpcCloseMemHandle(large + 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuIpcOpenMemHandle_v2(&again, handles[0], LAZY) == MAP_FAILED); /* a stale one */
  CHECK(!go_on(1));
  CHECK(!cuDevicePrimaryCtxReset_v2(0) && cuIpcCloseMemHandle(large)); /* closed by that */
  return 0;
}

/* Both end with 0. A wait that does not end would not: the children are killed after a while. */
static void run_both(int (*first)(void), int (*second)(void), int first_ends) {
  int (*bodies[2])(void) = {first, second};
  pid_t children[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  fflush(NULL);
  for (int n = 0; n < 2; n++) {
    children[n] = fork();
    assert_true(children[n] >= 0);
    if (children[n]) continue;
    close(sockets[!n]);
    alarm(120);
    exit(bodies[n]());
  }
  for (int n = 0; n < 2; n++) close(sockets[n]);
  for (int n = 0; n < 2; n++) {
    int status;
    assert_int_equal(waitpid(children[n], &status, 0), children[n]);
    assert_int_equal(status, n ? 0 : first_ends);
  }
}

static void one_memory_in_two_processes(void **state) {
  (void)state;
  run_both(gives, takes, 0);
}

static int dies(void) {
  CUdeviceptr at;
  handle h;
  CHECK(!start() && !cuMemAlloc_v2(&at, 4096) && !fill(at, 3) && !cuIpcGetMemHandle(&h, at));
  CHECK(!put(0, &h, sizeof h) && !wait_turn(0));
  kill(getpid(), SIGKILL);
  return 1;
}
static int survives(void) {
  CUdeviceptr at, late;
  handle h;
  char end;
  CHECK(!start() && !get(1, &h, sizeof h) && !cuIpcOpenMemHandle_v2(&at, h, LAZY) && !go_on(1));
  CHECK(read(sockets[1], &end, 1) == 0); /* it is gone */
  CHECK(!is_filled(at, 3, 1) && !launch("triple", at, WORDS, NULL) && !is_filled(at, 3, 3));
  CHECK(!cuIpcCloseMemHandle(at));
  CHECK(cuIpcOpenMemHandle_v2(&late, h, LAZY) == MAP_FAILED);
  return 0;
}
static void the_exporter_dies(void **state) {
  (void)state;
  run_both(dies, survives, SIGKILL);
}

/* ---- what is refused ---- */

static int alone(void) {
  CUdeviceptr at, other, managed, pooled;
  void *host;
  handle h, bad;
  int capable = 1;
  CHECK(!start() && !cuMemAlloc_v2(&at, 4096));
  CHECK(!cuMemAllocManaged(&managed, 4096, 1) && cuIpcGetMemHandle(&h, managed) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuMemHostAlloc(&host, 4096, 0) && cuIpcGetMemHandle(&h, (uintptr_t)host) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuMemAllocAsync(&pooled, 4096, NULL) && cuIpcGetMemHandle(&h, pooled) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuPointerGetAttribute(&capable, IPC_CAPABLE, pooled) && capable == 0);
  CHECK(cuIpcGetMemHandle(&h, 0) == CUDA_ERROR_INVALID_VALUE &&
        cuIpcGetMemHandle(NULL, at) == CUDA_ERROR_INVALID_VALUE);
  CHECK(!cuIpcGetMemHandle(&h, at) && cuIpcOpenMemHandle_v2(NULL, h, LAZY) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuIpcOpenMemHandle_v2(&other, h, LAZY) == CUDA_ERROR_INVALID_CONTEXT); /* its own process */
  CUevent event;
  CHECK(cuIpcOpenEventHandle(&event, h) == CUDA_ERROR_INVALID_VALUE); /* of another kind */
  CHECK(!cuEventCreate(&event, NO_TIMING) && cuIpcGetEventHandle(&bad, event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuIpcGetEventHandle(&bad, (CUevent)&bad) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(!cuEventCreate(&event, NO_TIMING | INTERPROCESS) && !cuIpcGetEventHandle(&bad, event));
  CHECK(cuIpcOpenEventHandle(&event, bad) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuIpcOpenMemHandle_v2(&other, bad, LAZY) == CUDA_ERROR_INVALID_VALUE);
  return 0;
}

/* A handle whose bytes are changed opens nothing; the process and the descriptor in it may be any. */
static int hostile(void) {
  CUdeviceptr at, other;
  handle h, bad;
  CHECK(!start() && !cuMemAlloc_v2(&at, 4096) && !cuIpcGetMemHandle(&h, at));
  for (size_t i = 0; i < sizeof h; i++)
    for (unsigned bit = 0; bit < 8; bit++) {
      bad = h;
      bad.bytes[i] ^= (unsigned char)(1u << bit);
      CHECK(cuIpcOpenMemHandle_v2(&other, bad, LAZY));
    }
  for (int i = 0; i < 1000; i++) {
    CHECK(getrandom(&bad, sizeof bad, 0) == sizeof bad);
    CHECK(cuIpcOpenMemHandle_v2(&other, bad, LAZY) == CUDA_ERROR_INVALID_VALUE);
  }
  int pipes[2], process = getpid(), parent = getppid();
  CHECK(!pipe(pipes));
  for (int n = 0; n < 40; n++) { /* pipes, files, terminals of this and another process */
    bad = h;
    bad.bytes[8] ^= 1; /* the token */
    memcpy(bad.bytes + 24, n % 2 ? &process : &parent, sizeof process);
    int descriptor = n / 2;
    memcpy(bad.bytes + 28, &descriptor, sizeof descriptor);
    CHECK(cuIpcOpenMemHandle_v2(&other, bad, LAZY) == MAP_FAILED);
  }
  bad = h;
  bad.bytes[8] ^= 1;
  memcpy(bad.bytes + 24, (int[]){1}, sizeof(int)); /* another user's, where this is not the first one */
  CHECK(cuIpcOpenMemHandle_v2(&other, bad, LAZY) == MAP_FAILED);
  return 0;
}
static int nothing(void) { return 0; }

static void what_is_refused(void **state) {
  (void)state;
  run_both(alone, nothing, 0);
  run_both(hostile, nothing, 0);
}

/* The exporter closes the file that its handle is of, or something else has its number. */
static int closes_files(void) {
  CUdeviceptr at;
  handle h, later;
  int descriptor;
  CHECK(!start() && !cuMemAlloc_v2(&at, 4096) && !cuIpcGetMemHandle(&h, at));
  memcpy(&descriptor, h.bytes + 28, sizeof descriptor);
  CHECK(!close(descriptor) && cuIpcGetMemHandle(&later, at) == 304);
  CHECK(!put(0, &h, sizeof h) && !wait_turn(0));
  CHECK(dup2(sockets[0], descriptor) == descriptor && !put(0, &h, sizeof h) && !wait_turn(0));
  CHECK(!fill(at, 5) && !is_filled(at, 5, 1) && !cuMemFree_v2(at));
  return 0;
}
static int finds_none(void) {
  CUdeviceptr at;
  handle h;
  CHECK(!start());
  for (int n = 0; n < 2; n++)
    CHECK(!get(1, &h, sizeof h) && cuIpcOpenMemHandle_v2(&at, h, LAZY) == MAP_FAILED && !go_on(1));
  return 0;
}
static void a_closed_file(void **state) {
  (void)state;
  run_both(closes_files, finds_none, 0);
}

/* ---- events ---- */

static int records(void) {
  CUdeviceptr at, flag;
  CUevent event;
  CUstream stream;
  handle handles[2];
  uint32_t one = 1;
  CHECK(!start() && !cuMemAlloc_v2(&at, 4096) && !cuMemAlloc_v2(&flag, 4) && !cuMemsetD8_v2(flag, 0, 4));
  CHECK(!cuStreamCreate(&stream, 1) && !cuEventCreate(&event, NO_TIMING | INTERPROCESS));
  CHECK(!cuIpcGetMemHandle(&handles[0], at) && !cuIpcGetEventHandle(&handles[1], event));
  CHECK(!put(0, handles, sizeof handles) && !wait_turn(0));
  CHECK(!fill(at, 11) && !cuEventRecord(event, stream)); /* it is over at once */
  CHECK(!go_on(0) && !wait_turn(0));
  CHECK(!launch("hold", flag, 1, stream) && !launch("triple", at, WORDS, stream) && !cuEventRecord(event, stream));
  CHECK(cuEventQuery(event) == NOT_READY && !go_on(0) && !wait_turn(0));
  CHECK(!cuMemcpyHtoD_v2(flag, &one, 4) && !cuStreamSynchronize(stream) && !wait_turn(0));
  return 0;
}

static int waits(void) {
  CUdeviceptr at;
  CUevent event;
  CUstream stream;
  handle handles[2];
  CHECK(!start() && !get(1, handles, sizeof handles) && !cuStreamCreate(&stream, 1));
  CHECK(!cuIpcOpenMemHandle_v2(&at, handles[0], LAZY) && !cuIpcOpenEventHandle(&event, handles[1]));
  CHECK(!launch("triple", at + 1024, 1, stream) && !cuEventQuery(event) &&
        !cuEventSynchronize(event)); /* never recorded */
  CHECK(cuIpcGetEventHandle(&handles[0], event) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(!go_on(1) && !wait_turn(1) && !cuEventQuery(event) && !is_filled(at, 11, 1));
  CHECK(!go_on(1) && !wait_turn(1) && cuEventQuery(event) == NOT_READY);
  CHECK(!cuStreamWaitEvent(stream, event, 0) && !launch("triple", at, WORDS, stream)); /* the host does not wait */
  CHECK(cuStreamQuery(stream) == NOT_READY && is_filled(at, 11, 3) && !go_on(1));
  CHECK(!cuEventSynchronize(event) && !cuEventQuery(event));
  CHECK(!cuStreamSynchronize(stream) && !is_filled(at, 11, 9));
  CHECK(!cuEventRecord(event, stream) && !cuEventSynchronize(event) && !cuEventDestroy_v2(event) && !go_on(1));
  return 0;
}

static void an_event_of_two_processes(void **state) {
  (void)state;
  run_both(records, waits, 0);
}

/* Its recording is queued behind a kernel that never ends, and the process is killed. */
static int dies_first(void) {
  CUdeviceptr flag;
  CUevent event;
  CUstream stream;
  handle h;
  CHECK(!start() && !cuMemAlloc_v2(&flag, 4) && !cuMemsetD8_v2(flag, 0, 4) && !cuStreamCreate(&stream, 1));
  CHECK(!cuEventCreate(&event, NO_TIMING | INTERPROCESS) && !cuIpcGetEventHandle(&h, event));
  CHECK(!launch("hold", flag, 1, stream) && !cuEventRecord(event, stream));
  CHECK(!put(0, &h, sizeof h) && !wait_turn(0) && !kill(getpid(), SIGKILL));
  return 1;
}
static int is_told(void) {
  CUevent event;
  CUstream stream;
  handle h;
  CHECK(!start() && !get(1, &h, sizeof h) && !cuIpcOpenEventHandle(&event, h) && !cuStreamCreate(&stream, 1));
  CHECK(cuEventQuery(event) == NOT_READY && !cuStreamWaitEvent(stream, event, 0) && !go_on(1));
  CHECK(cuEventSynchronize(event) == LAUNCH_FAILED && cuStreamSynchronize(stream) == LAUNCH_FAILED);
  return 0;
}
static void the_recorder_dies(void **state) {
  (void)state;
  run_both(dies_first, is_told, SIGKILL);
}

int main(void) {
  setenv("FARFAULT_THREADS", "1", 1);
  setenv("FARFAULT_CHECK", "2", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_memory_in_two_processes),
                                     cmocka_unit_test(the_exporter_dies),
                                     cmocka_unit_test(what_is_refused),
                                     cmocka_unit_test(a_closed_file),
                                     cmocka_unit_test(an_event_of_two_processes),
                                     cmocka_unit_test(the_recorder_dies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
