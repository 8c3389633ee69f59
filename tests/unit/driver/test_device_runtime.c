/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that call the device runtime's functions for cooperative grids, on one device and on several, as Numba makes
 * them: declared, and defined nowhere. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_internal.h"
#include "farfault/virtual.h"
#include "unit/few_threads.h"

CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void **);

CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamSynchronize(CUstream), cuStreamQuery(CUstream),
    cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, void **),
    cuMemHostAlloc(void **, size_t, unsigned), cuEventCreate(CUevent *, unsigned), cuEventRecord(CUevent, CUstream),
    cuStreamWaitEvent(CUstream, CUevent, unsigned), cuLaunchHostFunc(CUstream, void (*)(void *), void *);
typedef struct several { /* CUDA_LAUNCH_PARAMS */
  CUfunction function;
  unsigned grid[3], block[3], shared;
  CUstream stream;
  void **arguments;
} several;
CUresult cuLaunchCooperativeKernelMultiDevice(several *, unsigned, unsigned);

enum { BLOCKS = 6, THREADS = 40, ROUNDS = 3, DEVICES = 3 };

/* Each round, each block writes to its own word and, when all have, adds what its neighbour wrote to its sum. */
static const char ptx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".visible .entry neighbours(.param .u64 words, .param .u64 sums) {\n"
    "  .reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [sums];\n"
    "  { .param .b32 a; .param .b64 b; st.param.b32 [a], 1;\n"
    "    call.uni (b), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd3, [b]; }\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r9, 0; mov.u32 %r10, 0;\n"
    "  add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2;\n"
    "  mad.wide.u32 %rd4, %r1, 4, %rd1; mad.wide.u32 %rd5, %r4, 4, %rd1; mad.wide.u32 %rd6, %r1, 4, %rd2;\n"
    "  setp.ne.u32 %p1, %r3, 0;\n"
    "AGAIN:\n"
    "  mad.lo.u32 %r5, %r9, 100, %r1;\n"
    "  @!%p1 st.global.u32 [%rd4], %r5;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  ld.volatile.global.u32 %r6, [%rd5]; add.u32 %r10, %r10, %r6; mad.lo.u32 %r10, %r11, 100000, %r10;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra AGAIN;\n"
    "  @!%p1 st.global.u32 [%rd6], %r10;\n"
    "  ret;\n}\n";

/* Each round, the first thread of each device writes to the device's word, and when all have, each first thread of a
 * block adds all words to its sum. What the thread knows of itself is in `places`. */
static const char several_ptx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 result) cudaCGGetSize(.param .b64 n, .param .b64 grids, .param .b64 handle);\n"
    ".extern .func (.param .b32 result) cudaCGGetRank(.param .b64 n, .param .b64 grids, .param .b64 handle);\n"
    ".visible .entry all(.param .u64 words, .param .u64 sums, .param .u64 places) {\n"
    "  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<10>; .local .align 4 .b8 own[16];\n"
    "  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [sums]; ld.param.u64 %rd6, [places];\n"
    "  { .param .b32 a; .param .b64 b; st.param.b32 [a], 2;\n"
    "    call.uni (b), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd3, [b]; }\n"
    "  mov.u64 %rd4, own; cvta.local.u64 %rd4, %rd4; add.u64 %rd5, %rd4, 4; add.u64 %rd7, %rd4, 8; mov.b64 %rd9, 0;\n"
    "  { .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 d; st.param.b64 [a], %rd4; st.param.b64 [b], %rd5;\n"
    "    st.param.b64 [c], %rd3; call.uni (d), cudaCGGetRank, (a, b, c); ld.param.b32 %r13, [d]; }\n"
    "  { .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 d; st.param.b64 [a], %rd7; st.param.b64 [b], %rd9;\n"
    "    st.param.b64 [c], %rd3; call.uni (d), cudaCGGetSize, (a, b, c); }\n"
    "  setp.ne.u32 %p1, %r13, 0; @%p1 bra ALONE;\n"
    "  add.u64 %rd7, %rd7, 4;\n"
    "  { .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 d; st.param.b64 [a], %rd9; st.param.b64 [b], %rd7;\n"
    "    st.param.b64 [c], %rd3; call.uni (d), cudaCGGetSize, (a, b, c); }\n"
    "  ld.u32 %r1, [%rd4]; ld.u32 %r2, [%rd4+4]; ld.u32 %r3, [%rd4+8]; ld.u32 %r4, [%rd4+12];\n"
    "  mad.wide.u32 %rd6, %r1, 16, %rd6; st.global.v4.u32 [%rd6], {%r1, %r2, %r3, %r4};\n"
    "  mov.u32 %r5, %ctaid.x; mov.u32 %r6, %tid.x; or.b32 %r7, %r5, %r6; setp.ne.u32 %p2, %r7, 0;\n"
    "  mad.wide.u32 %rd4, %r2, 4, %rd1; mov.u32 %r9, 0; mov.u32 %r10, 0;\n"
    "AGAIN:\n"
    "  mad.lo.u32 %r8, %r9, 100, %r2; @!%p2 st.volatile.global.u32 [%rd4], %r8;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  mov.u32 %r14, 0;\n"
    "MORE: mad.wide.u32 %rd5, %r14, 4, %rd1; ld.volatile.global.u32 %r12, [%rd5]; add.u32 %r10, %r10, %r12;\n"
    "  add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, %r4; @%p1 bra MORE;\n"
    "  mad.lo.u32 %r10, %r11, 100000, %r10;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra AGAIN;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronizeGrid, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  mad.lo.u32 %r10, %r11, 100000, %r10;\n"
    "  setp.ne.u32 %p3, %r6, 0; @%p3 ret;\n"
    "  mov.u32 %r15, %nctaid.x; mad.lo.u32 %r15, %r2, %r15, %r5; mad.wide.u32 %rd2, %r15, 4, %rd2;\n"
    "  st.global.u32 [%rd2], %r10; ret;\n"
    "ALONE:\n"
    "  mov.u32 %r1, 1; st.global.u32 [%rd2], %r1; ret;\n}\n";

/* Waits for the first word, then sets the second one. */
static const char hold_ptx[] = ".version 7.8\n.target sm_75\n.address_size 64\n"
                               ".visible .entry hold(.param .u64 words) {\n"
                               "  .reg .pred %p; .reg .b32 %r1; .reg .b64 %rd1;\n  ld.param.u64 %rd1, [words];\n"
                               "WAIT: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra WAIT;\n"
                               "  st.volatile.global.u32 [%rd1+4], %r1; ret;\n}\n";

/* Waits for the first word, meets the other devices, then sets the second one to what that gave and 1 more. */
static const char meet_ptx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".visible .entry meet(.param .u64 words) {\n"
    "  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n  ld.param.u64 %rd1, [words];\n"
    "WAIT: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0; @%p bra WAIT;\n"
    "  { .param .b32 a; .param .b64 b; st.param.b32 [a], 2;\n"
    "    call.uni (b), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd3, [b]; }\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r2, [c]; }\n"
    "  add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd1+4], %r2; ret;\n}\n";

/* The word is 1. It waits for nothing. */
static const char put_ptx[] = ".version 7.8\n.target sm_75\n.address_size 64\n"
                              ".visible .entry put(.param .u64 word) {\n"
                              "  .reg .b32 %r1; .reg .b64 %rd1;\n  ld.param.u64 %rd1, [word];\n"
                              "  mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;\n}\n";

static CUdeviceptr words, sums;
static CUfunction kernel;

static int open_device(void **state) {
  CUcontext context;
  CUmodule module;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "3", 1);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&words, BLOCKS * 4) ||
         cuMemAlloc_v2(&sums, BLOCKS * 4) || cuModuleLoadData(&module, ptx) ||
         cuModuleGetFunction(&kernel, module, "neighbours");
}

static void test_synchronises(void **state) {
  uint32_t found[BLOCKS];
  void *arguments[] = {&words, &sums};
  for (int again = 0; again < 2; again++) {
    assert_int_equal(cuMemsetD32_v2(words, 77, BLOCKS), 0);
    assert_int_equal(cuLaunchCooperativeKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments), 0);
    assert_int_equal(cuMemcpyDtoH_v2(found, sums, sizeof found), 0);
    for (uint32_t b = 0; b < BLOCKS; b++) assert_int_equal(found[b], 3 * ((b + 1) % BLOCKS) + 100 * (0 + 1 + 2));
  }
}

/* Without a cooperative launch there is no handle, and synchronising is an error that the kernel gets: nothing
 * hangs. */
static void test_ordinary_launch(void **state) {
  uint32_t found[BLOCKS];
  void *arguments[] = {&words, &sums};
  assert_int_equal(cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
  assert_int_equal(cuMemcpyDtoH_v2(found, sums, sizeof found), 0);
  for (uint32_t b = 0; b < BLOCKS; b++) assert_true(found[b] >= ROUNDS * 100000);
}

static int use_device(int device) {
  CUcontext context;
  return cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context);
}

/* A device's function, stream and arguments; which context is current does not matter afterwards. */
static several on_device_with(int device, void **arguments, const char *text, const char *name) {
  CUmodule module;
  several made = {.grid = {BLOCKS, 1, 1}, .block = {THREADS, 1, 1}, .arguments = arguments};
  assert_int_equal(use_device(device), 0);
  assert_int_equal(cuModuleLoadData(&module, text), 0);
  assert_int_equal(cuModuleGetFunction(&made.function, module, name), 0);
  assert_int_equal(cuStreamCreate(&made.stream, 1), 0);
  return made;
}

static several on_device(int device, void **arguments) { return on_device_with(device, arguments, several_ptx, "all"); }

enum { SHARED = 3 /* cuMemHostAlloc: portable, mapped */, TOTAL = DEVICES * BLOCKS * THREADS };

/* Grid and block; the blocks that differ in y and z only write the same sums. */
enum { SHAPES = 5 };
static const unsigned shapes[SHAPES][2][3] = {{{BLOCKS, 1, 1}, {THREADS, 1, 1}},
                                              {{BLOCKS, 1, 1}, {1, 1, 1}},
                                              {{1, 1, 1}, {1, 1, 1}},
                                              {{1, 1, 1}, {5, 3, 7}},
                                              {{2, 1, 3}, {4, 5, 2}}};

static void test_several_devices(void **state) {
  uint32_t *memory;
  int supported = 0;
  assert_int_equal(cuMemHostAlloc((void **)&memory, 4 * (DEVICES + DEVICES * BLOCKS + 4 * TOTAL), SHARED), 0);
  uint32_t *places = memory, *all = places + 4 * TOTAL, *sum = all + DEVICES;
  void *arguments[] = {&all, &sum, &places};
  several list[DEVICES];
  for (int d = 0; d < DEVICES; d++) list[d] = on_device(d, arguments);
  assert_int_equal(cuDeviceGetAttribute(&supported, 96, 0), 0);
  assert_int_equal(supported, 1);
  for (unsigned count = 1; count <= DEVICES; count++)
    for (unsigned flags = 0; flags <= 3; flags++) {
      const unsigned *grid = shapes[(count + flags) % SHAPES][0], *block = shapes[(count + flags) % SHAPES][1];
      for (unsigned i = 0; i < DEVICES + DEVICES * BLOCKS + 4 * TOTAL; i++) memory[i] = 77777;
      for (unsigned d = 0; d < count; d++) {
        memcpy(list[d].grid, grid, sizeof list[d].grid);
        memcpy(list[d].block, block, sizeof list[d].block);
      }
      assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, count, flags), 0);
      for (unsigned d = 0; d < count; d++) assert_int_equal(cuStreamSynchronize(list[d].stream), 0);
      uint32_t expected = (0 + 1 + 2) * 100 * count + ROUNDS * (count * (count - 1) / 2);
      for (unsigned b = 0; b < DEVICES * BLOCKS; b++) assert_int_equal(sum[b], b < count * grid[0] ? expected : 77777);
      uint32_t each = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2], threads = count * each;
      for (uint32_t t = 0; t < TOTAL; t++) {
        const uint32_t place[] = {t, t / each, threads, count}, none[] = {77777, 77777, 77777, 77777};
        assert_memory_equal(&places[4 * t], t < threads ? place : none, sizeof place);
      }
    }
  /* one device by its own call: there are no grids to meet */
  CUcontext context;
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(cuCtxSetCurrent(context), 0);
  assert_int_equal(
      cuLaunchCooperativeKernel(list[0].function, BLOCKS, 1, 1, THREADS, 1, 1, 0, list[0].stream, arguments), 0);
  assert_int_equal(cuStreamSynchronize(list[0].stream), 0);
  assert_int_equal(sum[0], 1);
}

/* The streams wait for each other before and after, unless the flags say otherwise. */
static void test_several_in_order(void **state) {
  enum { NO_SYNC_BEFORE = 1, NO_SYNC_AFTER = 2, NOT_READY = 600 };
  uint32_t *memory;
  assert_int_equal(cuMemHostAlloc((void **)&memory, 64, SHARED), 0);
  uint32_t *first = memory, *second = memory + 2, *early = memory + 4;
  void *arguments[][1] = {{&first}, {&second}, {&early}};
  several list[2] = {on_device_with(0, arguments[0], hold_ptx, "hold"),
                     on_device_with(1, arguments[1], hold_ptx, "hold")};
  for (int d = 0; d < 2; d++) list[d].grid[0] = list[d].block[0] = 1;
  for (unsigned flags = 0; flags <= 3; flags++) {
    memset(memory, 0, 64);
    __atomic_store_n(first, 1, __ATOMIC_SEQ_CST);
    /* device 1 is current; its stream has a kernel already */
    assert_int_equal(cuLaunchKernel(list[1].function, 1, 1, 1, 1, 1, 1, 0, list[1].stream, arguments[2], NULL), 0);
    assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, flags), 0);
    bool runs = flags & NO_SYNC_BEFORE, ends = runs && flags & NO_SYNC_AFTER;
    assert_int_equal(__atomic_load_n(&first[1], __ATOMIC_SEQ_CST), runs);
    assert_int_equal(cuStreamQuery(list[0].stream), ends ? 0 : NOT_READY);
    __atomic_store_n(early, 1, __ATOMIC_SEQ_CST);
    if (flags & NO_SYNC_AFTER) assert_int_equal(cuStreamSynchronize(list[0].stream), 0);
    else assert_int_equal(cuStreamQuery(list[0].stream), NOT_READY);
    __atomic_store_n(second, 1, __ATOMIC_SEQ_CST);
    for (int d = 0; d < 2; d++) assert_int_equal(cuStreamSynchronize(list[d].stream), 0);
    assert_true(first[1] && second[1] && early[1]);
  }
}

static void test_several_wrong(void **state) {
  uint32_t *memory;
  assert_int_equal(cuMemHostAlloc((void **)&memory, 4 * (DEVICES + DEVICES * BLOCKS + 4 * TOTAL), SHARED), 0);
  uint32_t *all = memory + 4 * TOTAL, *sum = all + DEVICES;
  void *arguments[] = {&all, &sum, &memory}, *graph;
  several list[DEVICES], wrong[DEVICES + 1];
  for (int d = 0; d < DEVICES; d++) list[d] = on_device(d, arguments);
#define refused(count, flags, error) assert_int_equal(cuLaunchCooperativeKernelMultiDevice(wrong, count, flags), error)
#define again() memcpy(wrong, list, sizeof list)
  again();
  wrong[DEVICES] = list[0];
  refused(0, 0, CUDA_ERROR_INVALID_VALUE);
  refused(DEVICES, 4, CUDA_ERROR_INVALID_VALUE);
  refused(DEVICES + 1, 0, CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
  wrong[1].stream = NULL;
  refused(2, 0, CUDA_ERROR_INVALID_HANDLE);
  wrong[1] = list[0];
  refused(2, 0, CUDA_ERROR_INVALID_DEVICE);
  again();
  wrong[1].grid[1] = 2;
  refused(2, 0, CUDA_ERROR_INVALID_VALUE);
  again();
  wrong[1].block[0] = 32;
  refused(2, 0, CUDA_ERROR_INVALID_VALUE);
  again();
  wrong[1].shared = 16;
  refused(2, 0, CUDA_ERROR_INVALID_VALUE);
  again();
  wrong[1].function = kernel;
  refused(2, 0, CUDA_ERROR_INVALID_VALUE);
  wrong[1].function = NULL;
  refused(2, 0, CUDA_ERROR_INVALID_HANDLE);
  again();
  for (int d = 0; d < DEVICES; d++) wrong[d].grid[0] = 1 << 20;
  refused(DEVICES, 0, 720);
  again();
  assert_int_equal(cuStreamBeginCapture_v2(list[1].stream, 0), 0);
  refused(2, 0, 900);
  assert_int_equal(cuStreamEndCapture(list[1].stream, &graph), 0);
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, DEVICES, 0), 0); /* as before */
  assert_int_equal(cuStreamSynchronize(list[0].stream), 0);
}

enum { NO_SYNC = 3, PATIENCE_SECONDS = 30 };

/* Not cuStreamSynchronize, which would wait for ever if the kernels did. */
static void assert_ends(CUstream stream) {
  time_t last = time(NULL) + PATIENCE_SECONDS;
  while (cuStreamQuery(stream) != CUDA_SUCCESS && time(NULL) < last) continue;
  assert_int_equal(cuStreamQuery(stream), CUDA_SUCCESS);
}

/* Of each device: a kernel with a word to wait for, and one that it sets. */
static void meeting_kernels(several list[2], void *arguments[2][1], uint32_t *places[2]) {
  uint32_t *memory;
  assert_int_equal(cuMemHostAlloc((void **)&memory, 64, SHARED), 0);
  memset(memory, 0, 64);
  for (int d = 0; d < 2; d++) {
    places[d] = memory + 2 * d;
    arguments[d][0] = &places[d];
    list[d] = on_device_with(d, arguments[d], meet_ptx, "meet");
    list[d].grid[0] = list[d].block[0] = 1;
  }
}

/* Kernels that wait for each other do so however many launches come meanwhile, and however many are queued. */
static void test_several_meanwhile(void **state) {
  enum { MANY = 300 };
  several early[2], late[2];
  void *arguments[2][2][1];
  uint32_t *places[2], *others[2];
  meeting_kernels(early, arguments[0], places);
  meeting_kernels(late, arguments[1], others);
  *places[0] = *others[0] = 1;
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(early, 2, NO_SYNC), 0); /* device 0 waits for device 1 */
  for (int i = 0; i < MANY; i++) assert_int_equal(cuLaunchCooperativeKernelMultiDevice(late, 1, NO_SYNC), 0);
  assert_ends(late[0].stream);
  assert_int_equal(others[0][1], 1);
  late[0].stream = early[0].stream;
  others[0][1] = 0;
  for (int i = 0; i < MANY; i++) assert_int_equal(cuLaunchCooperativeKernelMultiDevice(late, 1, NO_SYNC), 0);
  assert_int_equal(others[0][1], 0);
  __atomic_store_n(places[1], 1, __ATOMIC_SEQ_CST);
  for (int d = 0; d < 2; d++) assert_ends(early[d].stream);
  assert_true(places[0][1] == 1 && places[1][1] == 1 && others[0][1] == 1);
}

/* All of them are launched, or none, which would wait for the others. */
static void test_several_or_none(void **state) {
  several list[2];
  void *arguments[2][1];
  uint32_t *places[2];
  meeting_kernels(list, arguments, places);
  *places[0] = *places[1] = 1;
  list[1].arguments = NULL;
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuStreamQuery(list[0].stream), CUDA_SUCCESS);
  assert_true(!places[0][1] && !places[1][1]);
  /* on the second device a kernel of that name has shared memory, so that fewer of its blocks are resident */
  char text[sizeof meet_ptx + 64];
  const char *body = strstr(meet_ptx, "  .reg");
  snprintf(text, sizeof text, "%.*s.shared .align 4 .b8 room[49152];\n%s", (int)(body - meet_ptx), meet_ptx, body);
  several both[2] = {list[0], on_device_with(1, arguments[1], text, "meet")};
  for (int d = 0; d < 2; d++) {
    both[d].grid[0] = 200;
    both[d].block[0] = 1;
  }
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(both, 2, 0), 720);
  assert_int_equal(cuStreamQuery(list[0].stream), CUDA_SUCCESS);
  assert_true(!places[0][1] && !places[1][1]);
  list[1].arguments = arguments[1];
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), 0);
  for (int d = 0; d < 2; d++) assert_ends(list[d].stream);
}

static pthread_barrier_t both_there;

/* Two threads, one in the order of the devices, one in the other, on the same streams: whichever launch comes first
 * does so on both devices. */
static void *launch_again_and_again(void *list) {
  pthread_barrier_wait(&both_there);
  for (int i = 0; i < 8; i++)
    if (cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC)) return list;
  return NULL;
}

static void test_several_threads(void **state) {
  several list[2];
  void *arguments[2][1], *failed;
  uint32_t *places[2];
  pthread_t other;
  meeting_kernels(list, arguments, places);
  *places[0] = *places[1] = 1;
  pthread_barrier_init(&both_there, NULL, 2);
  several backwards[2] = {list[1], list[0]};
  assert_int_equal(pthread_create(&other, NULL, launch_again_and_again, backwards), 0);
  assert_null(launch_again_and_again(list));
  assert_int_equal(pthread_join(other, &failed), 0);
  assert_null(failed);
  for (int d = 0; d < 2; d++) assert_ends(list[d].stream);
}

/* Only so many kernels can wait at a time: where there is room for one of two, neither is launched. */
static void test_several_without_room(void **state) {
  enum { ROOM = 64 /* engine_deferred.c */, OUT_OF_RESOURCES = 701 };
  several list[2], holder;
  void *arguments[2][1], *holding[1];
  uint32_t *places[2], *memory;
  CUstream held[ROOM - 1];
  meeting_kernels(list, arguments, places);
  *places[0] = *places[1] = 1;
  assert_int_equal(cuMemHostAlloc((void **)&memory, 64, SHARED), 0);
  memset(memory, 0, 64);
  holding[0] = &memory;
  holder = on_device_with(0, holding, hold_ptx, "hold");
  for (int i = 0; i < ROOM - 1; i++) {
    assert_int_equal(cuStreamCreate(&held[i], 1), 0);
    assert_int_equal(cuLaunchKernel(holder.function, 1, 1, 1, 1, 1, 1, 0, held[i], holding, NULL), 0);
  }
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC), OUT_OF_RESOURCES);
  assert_true(!places[0][1] && !places[1][1]);
  list[0].stream = held[0]; /* which has room of its own */
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC), 0);
  __atomic_store_n(memory, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < ROOM - 1; i++) assert_ends(held[i]);
  assert_ends(list[1].stream);
  assert_true(places[0][1] == 1 && places[1][1] == 1);
}

/* Nor where the host has no thread for the second one. (These are the process's first kernels that wait: there are
 * no threads for them yet.) */
static void test_several_without_threads(void **state) {
  enum { OUT_OF_RESOURCES = 701 };
  several list[2];
  void *arguments[2][1];
  uint32_t *places[2];
  meeting_kernels(list, arguments, places);
  *places[0] = *places[1] = 1;
  for (int left = 0; left < 2; left++) {
    threads_left = left;
    assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC), OUT_OF_RESOURCES);
    assert_true(!places[0][1] && !places[1][1]);
  }
  threads_left = -1;
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC), 0);
  for (int d = 0; d < 2; d++) assert_ends(list[d].stream);
  assert_true(places[0][1] == 1 && places[1][1] == 1);
}

/* What is declared for a call of several is for the first of its kernels, and for no other. */
static void test_several_declared(void **state) {
  enum { ILLEGAL_ADDRESS = 700 };
  several list[2];
  void *arguments[2][1];
  uint32_t *own[2];
  for (int d = 0; d < 2; d++) {
    assert_int_equal(cuMemHostAlloc((void **)&own[d], 64, SHARED), 0);
    own[d][0] = 0;
    arguments[d][0] = &own[d];
    list[d] = on_device_with(d, arguments[d], put_ptx, "put");
    list[d].grid[0] = list[d].block[0] = 1;
  }
  ff_virtual_use first = {.base = (uintptr_t)own[0], .bytes = 64, .write = 1, .segment = "first"};
  assert_int_equal(farfaultDeclareUses(&first, 1), 0);
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), 0);
  for (int d = 0; d < 2; d++) assert_int_equal(cuStreamSynchronize(list[d].stream), 0);
  assert_true(own[0][0] == 1 && own[1][0] == 1);
  several backwards[2] = {list[1], list[0]};
  assert_int_equal(farfaultDeclareUses(&first, 1), 0);
  const int result = (int)cuLaunchCooperativeKernelMultiDevice(backwards, 2, NO_SYNC);
  assert_true(!result || result == ILLEGAL_ADDRESS);
  assert_int_equal(cuStreamSynchronize(list[1].stream), ILLEGAL_ADDRESS);
}

/* Another thread, which takes room after a while; all calls that come meanwhile wait for a host function first. */
typedef struct taker {
  several kernel;
  void *arguments[1];
  uint32_t *word;
  int after_us;
} taker;

static void rest_a_while(void *unused) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void *take_room(void *context) {
  enum { OUT_OF_RESOURCES = 701 };
  taker *t = context;
  struct timespec now, from;
  if (use_device(0)) return t;
  pthread_barrier_wait(&both_there);
  clock_gettime(CLOCK_MONOTONIC, &from);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < t->after_us);
  if (cuLaunchHostFunc(t->kernel.stream, rest_a_while, NULL)) return t;
  int result = (int)cuLaunchKernel(t->kernel.function, 1, 1, 1, 1, 1, 1, 0, t->kernel.stream, t->arguments, NULL);
  return result && result != OUT_OF_RESOURCES ? t : NULL;
}

static uint32_t *new_word(void) {
  uint32_t *word;
  assert_int_equal(cuMemHostAlloc((void **)&word, 64, SHARED), 0);
  memset(word, 0, 64);
  return word;
}

/* The second kernel has the room of its stream's, whose kernel is about to end. It may have ended when the call comes
 * to it, and another thread may have the room: then none is launched. */
static void test_several_keep_their_room(void **state) {
  enum { ROOM = 64, OUT_OF_RESOURCES = 701, AGAIN = 150, STEP_US = 2 };
  several list[2];
  void *arguments[2][1], *holding[1], *before[1], *failed;
  uint32_t *places[2], *held_word = new_word(), *before_word = new_word();
  CUstream held[ROOM - 3];
  CUevent event;
  pthread_t other;
  meeting_kernels(list, arguments, places);
  holding[0] = &held_word;
  before[0] = &before_word;
  const several holder = on_device_with(0, holding, hold_ptx, "hold"),
                ends = on_device_with(1, before, hold_ptx, "hold");
  taker t = {.kernel = on_device_with(0, NULL, hold_ptx, "hold"), .word = new_word()};
  t.arguments[0] = &t.word;
  assert_int_equal(use_device(0), 0);
  assert_int_equal(cuEventCreate(&event, 2), 0);
  assert_int_equal(cuLaunchKernel(holder.function, 1, 1, 1, 1, 1, 1, 0, holder.stream, holding, NULL), 0);
  assert_int_equal(cuEventRecord(event, holder.stream), 0);
  for (int i = 0; i < ROOM - 3; i++) { /* what is queued in them has room, too */
    assert_int_equal(cuStreamCreate(&held[i], 1), 0);
    assert_int_equal(cuStreamWaitEvent(held[i], event, 0), 0);
  }
  pthread_barrier_init(&both_there, NULL, 2);
  for (int round = 0; round < AGAIN; round++) {
    *before_word = *t.word = places[0][1] = places[1][1] = 0;
    *places[0] = *places[1] = 1;
    t.after_us = STEP_US * round;
    assert_int_equal(use_device(1), 0);
    assert_int_equal(cuLaunchKernel(ends.function, 1, 1, 1, 1, 1, 1, 0, list[1].stream, before, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, take_room, &t), 0);
    pthread_barrier_wait(&both_there);
    __atomic_store_n(before_word, 1, __ATOMIC_SEQ_CST);
    const CUresult result = cuLaunchCooperativeKernelMultiDevice(list, 2, NO_SYNC);
    for (int d = 0; d < 2; d++) assert_ends(list[d].stream);
    assert_true(!result || (int)result == OUT_OF_RESOURCES);
    for (int d = 0; d < 2; d++) assert_int_equal(places[d][1], !result);
    __atomic_store_n(t.word, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
    assert_ends(t.kernel.stream);
  }
  __atomic_store_n(held_word, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < ROOM - 3; i++) assert_ends(held[i]);
}

/* A checked program's kernels run one after the other: those that would wait for each other are refused. */
static void test_several_checked(void **state) {
  enum { NOT_SUPPORTED = 801 };
  several list[2];
  void *arguments[2][1];
  uint32_t *places[2];
  meeting_kernels(list, arguments, places);
  *places[0] = *places[1] = 1;
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), NOT_SUPPORTED);
  assert_true(!places[0][1] && !places[1][1]);
  assert_int_equal(cuLaunchCooperativeKernelMultiDevice(list, 1, 0), 0);
  assert_ends(list[0].stream);
  assert_int_equal(places[0][1], 1);
}

/* In a process of its own, before there is an engine. checker: NULL: none. */
static int run_apart(CMUnitTestFunction test, const char *checker) {
  const struct CMUnitTest tests[] = {{.name = "in a process of its own", .test_func = test}};
  int status = 1;
  pid_t child = fork();
  if (!child) {
    alarm(2 * PATIENCE_SECONDS); /* kernels that wait for one that was not launched do so for ever */
    if (checker) setenv("FARFAULT_CHECKER", checker, 1);
    exit(cmocka_run_group_tests(tests, open_device, NULL));
  }
  return waitpid(child, &status, 0) != child || status;
}

int main(void) {
  exec_give_way_ms = 5;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_synchronises),         cmocka_unit_test(test_ordinary_launch),
      cmocka_unit_test(test_several_devices),      cmocka_unit_test(test_several_in_order),
      cmocka_unit_test(test_several_wrong),        cmocka_unit_test(test_several_meanwhile),
      cmocka_unit_test(test_several_or_none),      cmocka_unit_test(test_several_threads),
      cmocka_unit_test(test_several_without_room), cmocka_unit_test(test_several_keep_their_room),
      cmocka_unit_test(test_several_declared), /* the last: it leaves an error */
  };
  int apart = run_apart(test_several_checked, "memcheck") + run_apart(test_several_without_threads, NULL);
  return cmocka_run_group_tests(tests, open_device, NULL) + apart;
}
