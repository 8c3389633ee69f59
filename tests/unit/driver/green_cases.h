/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts on one machine in parallel with a simulation: documented errors, sizes of groups, what %smid says,
 * which stream is whose, events of all its streams, and time: half the SMs take twice as long, two halves side by side
 * no longer than one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "unit/share.h"

typedef struct resource {
  int type;
  unsigned char padding[92];
  struct {
    unsigned count, least, alignment, flags, domain, unused[7];
  } sm;
} resource;
_Static_assert(sizeof(resource) == 144, "");
typedef struct descriptor *descriptor;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxGetCurrent(CUcontext *), cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice), cuCtxDestroy_v2(CUcontext), cuCtxPushCurrent_v2(CUcontext),
    cuCtxPopCurrent_v2(CUcontext *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void **);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuStreamGetCtx(CUstream, CUcontext *);
CUresult cuStreamGetCtx_v2(CUstream, CUcontext *, CUgreenCtx *), cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventRecord(CUevent, CUstream),
    cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *);
cudaError_t cudaExecutionCtxDestroy(CUgreenCtx);
CUresult cuDeviceGetDevResource(CUdevice, resource *, int), cuCtxGetDevResource(CUcontext, resource *, int),
    cuGreenCtxGetDevResource(CUgreenCtx, resource *, int), cuStreamGetDevResource(CUstream, resource *, int);
CUresult cuDevSmResourceSplitByCount(resource *, unsigned *, const resource *, resource *, unsigned, unsigned);
CUresult cuDevResourceGenerateDesc(descriptor *, resource *, unsigned),
    cuGreenCtxCreate(CUgreenCtx *, descriptor, CUdevice, unsigned);
CUresult cuGreenCtxDestroy(CUgreenCtx), cuCtxFromGreenCtx(CUcontext *, CUgreenCtx),
    cuGreenCtxStreamCreate(CUstream *, CUgreenCtx, unsigned, int);
CUresult cuGreenCtxRecordEvent(CUgreenCtx, CUevent), cuGreenCtxWaitEvent(CUgreenCtx, CUevent),
    cuStreamGetGreenCtx(CUstream, CUgreenCtx *);
CUresult cuGreenCtxGetId(CUgreenCtx, unsigned long long *), cuStreamBeginCapture_v2(CUstream, int),
    cuStreamEndCapture(CUstream, void **), cuCtxRecordEvent(CUcontext, CUevent), cuCtxWaitEvent(CUcontext, CUevent);

typedef struct group {
  unsigned count, together, preferred, flags, domain, reserved[11];
} group;
CUresult cuDevSmResourceSplit(resource *, unsigned, const resource *, resource *, unsigned, group *);
typedef struct set_params { /* CUgraphNodeParams with CUDA_MEMSET_NODE_PARAMS_v2 */
  int type, reserved0[3];
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, element_size;
  size_t width, height;
  CUcontext context;
  char rest[256 - 64];
} set_params;
CUresult cuGraphCreate(void **, unsigned), cuGraphDestroy(void *), cuGraphNodeGetParams(void *, set_params *),
    cuGraphAddNode_v2(void **, void *, void *const *, const void *, size_t, set_params *), cuMemFree_v2(CUdeviceptr);

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)
enum {
  SM = 1,
  QUEUES = 1000,
  QUEUE = 10000,
  BACKFILL = 1,
  DETACHED = 917,
  DEFAULT_STREAM = 1,
  NON_BLOCKING = 1,
  BLOCKS = 600
};

/* where: each block writes its SM. spin: each thread goes round. */
static const char module_text[] =
    ".version 7.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry where(.param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r1, %smid;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r1;\nret;\n}\n"
    ".visible .entry spin(.param .u32 rounds)\n{\n.reg .b32 %r<3>;\n.reg .pred %p;\nld.param.u32 %r1, [rounds];\nmov.u32 %r2, 0;\n"
    "again:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p, %r2, %r1;\n@%p bra again;\nret;\n}\n"
    ".visible .entry hold(.param .u64 word)\n{\n.reg .b32 %r1;\n.reg .b64 %rd1;\n.reg .pred %p;\nld.param.u64 %rd1, [word];\n"
    "again:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p, %r1, 0;\n@%p bra again;\nret;\n}\n";

static CUcontext primary;
static CUfunction where, spin, hold;
static CUdeviceptr written;
static resource device;

static void load(void) {
  CUmodule module;
  succeed(cuModuleLoadData(&module, module_text));
  succeed(cuModuleGetFunction(&where, module, "where"));
  succeed(cuModuleGetFunction(&spin, module, "spin"));
  succeed(cuModuleGetFunction(&hold, module, "hold"));
  succeed(cuMemAlloc_v2(&written, BLOCKS * 4));
}

static void setup(void) {
  check(cuDeviceGetDevResource(0, &device, SM), CUDA_ERROR_NOT_INITIALIZED);
  succeed(cuInit(0));
  succeed(cuDevicePrimaryCtxRetain(&primary, 0));
  succeed(cuCtxSetCurrent(primary));
  succeed(cuDeviceGetDevResource(0, &device, SM));
  load();
}

/* `count` groups of at least `least` SMs. */
static void split(resource *groups, unsigned count, unsigned least, resource *remaining) {
  unsigned made = count;
  succeed(cuDevSmResourceSplitByCount(groups, &made, &device, remaining, 0, least));
  assert_int_equal(made, count);
}

static CUgreenCtx green_of(resource *parts, unsigned count) {
  descriptor d;
  CUgreenCtx green;
  succeed(cuDevResourceGenerateDesc(&d, parts, count));
  succeed(cuGreenCtxCreate(&green, d, 0, DEFAULT_STREAM));
  return green;
}

static CUstream stream_in(CUgreenCtx green) {
  CUstream stream;
  succeed(cuGreenCtxStreamCreate(&stream, green, NON_BLOCKING, 0));
  return stream;
}

/* The set of SMs that blocks of a launch in the stream say they are on. */
static void seen(CUstream stream, bool set[256]) {
  uint32_t sms[BLOCKS];
  void *arguments[] = {&written};
  succeed(cuMemsetD8_v2(written, 0xff, sizeof sms));
  succeed(cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
  succeed(cuMemcpyDtoH_v2(sms, written, sizeof sms));
  memset(set, 0, 256 * sizeof *set);
  for (int i = 0; i < BLOCKS; i++) {
    assert_true(sms[i] < device.sm.count);
    set[sms[i]] = true;
  }
}

static unsigned count(const bool set[256]) {
  unsigned n = 0;
  for (int i = 0; i < 256; i++) n += set[i];
  return n;
}

static void documented_errors(void **state) {
  (void)state;
  resource r, groups[4], rest;
  unsigned n = 1;
  descriptor d;
  CUgreenCtx green;
  CUcontext context;
  CUstream stream;
  CUevent event;
  void *graph;
  unsigned long long id;
  check(cuDeviceGetDevResource(1, &r, SM), CUDA_ERROR_INVALID_DEVICE);
  check(cuDeviceGetDevResource(0, &r, 0), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  invalid(cuDeviceGetDevResource(0, NULL, SM));
  check(cuCtxGetDevResource(NULL, &r, SM), CUDA_ERROR_INVALID_CONTEXT);
  check(cuGreenCtxGetDevResource(NULL, &r, SM), CUDA_ERROR_INVALID_CONTEXT);
  check(cuStreamGetDevResource(NULL, &r, 0), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  invalid(cuStreamGetDevResource(NULL, NULL, SM));
  succeed(cuStreamGetDevResource(NULL, &r, SM));
  assert_int_equal(r.sm.count, device.sm.count);
  invalid(cuDevSmResourceSplitByCount(groups, NULL, &device, NULL, 0, 2));
  invalid(cuDevSmResourceSplitByCount(groups, &n, NULL, NULL, 0, 2));
  invalid(cuDevSmResourceSplitByCount(groups, &n, &device, NULL, 4, 2));
  invalid(cuDevSmResourceSplitByCount(groups, &n, &device, NULL, 0, device.sm.count + 1));
  n = 0;
  invalid(cuDevSmResourceSplitByCount(groups, &n, &device, NULL, 0, 2));
  r = device;
  r.type = 0;
  n = 1;
  check(cuDevSmResourceSplitByCount(groups, &n, &r, NULL, 0, 2), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  r = device;
  r.sm.count--; /* "an output parameter only, do not write to this field" */
  invalid(cuDevSmResourceSplitByCount(groups, &n, &r, NULL, 0, 2));
  memset(&r, 0, sizeof r);
  r.type = SM;
  r.sm.count = 4;
  invalid(cuDevSmResourceSplitByCount(groups, &n, &r, NULL, 0, 2));
  split(groups, 2, device.sm.least, &rest);
  n = 1;
  /* no green context's yet */
  check(cuDevSmResourceSplitByCount(&r, &n, &groups[0], NULL, 0, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  invalid(cuDevResourceGenerateDesc(NULL, groups, 1));
  invalid(cuDevResourceGenerateDesc(&d, NULL, 1));
  invalid(cuDevResourceGenerateDesc(&d, groups, 0));
  split(&groups[2], 2, device.sm.least, &r);
  check(cuDevResourceGenerateDesc(&d, &groups[1], 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* of two splits */
  groups[3] = groups[2];
  check(cuDevResourceGenerateDesc(&d, &groups[2], 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* twice the same */
  groups[3].type = 0;
  check(cuDevResourceGenerateDesc(&d, &groups[3], 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  succeed(cuDevResourceGenerateDesc(&d, groups, 2));
  invalid(cuGreenCtxCreate(&green, d, 0, 2));
  invalid(cuGreenCtxCreate(NULL, d, 0, DEFAULT_STREAM));
  invalid(cuGreenCtxCreate(&green, NULL, 0, DEFAULT_STREAM));
  invalid(cuGreenCtxCreate(&green, (descriptor)&n, 0, DEFAULT_STREAM));
  check(cuGreenCtxCreate(&green, d, 1, DEFAULT_STREAM), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuGreenCtxCreate(&green, d, 0, DEFAULT_STREAM));
  invalid(cuGreenCtxStreamCreate(&stream, green, 0, 0));
  invalid(cuGreenCtxStreamCreate(NULL, green, NON_BLOCKING, 0));
  check(cuGreenCtxStreamCreate(&stream, NULL, NON_BLOCKING, 0), CUDA_ERROR_INVALID_CONTEXT);
  invalid(cuCtxFromGreenCtx(NULL, green));
  check(cuCtxFromGreenCtx(&context, NULL), CUDA_ERROR_INVALID_CONTEXT);
  check(cuGreenCtxGetId(NULL, &id), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuGreenCtxGetId(green, &id));
  check(cuGreenCtxRecordEvent(green, NULL), CUDA_ERROR_INVALID_HANDLE);
  check(cuGreenCtxWaitEvent(green, NULL), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuCtxFromGreenCtx(&context, green));
  check(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuEventCreate(&event, 0));
  stream = stream_in(green);
  succeed(cuGreenCtxDestroy(green));
  check(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuGreenCtxDestroy(NULL), CUDA_ERROR_INVALID_CONTEXT);
  check(cuGreenCtxRecordEvent(green, event), CUDA_ERROR_INVALID_CONTEXT);
  check(cuStreamSynchronize(stream), DETACHED);
  check(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){&n}, NULL), DETACHED);
  succeed(cuStreamDestroy_v2(stream));
  check(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  /* before CUDA 13.1 the flag had to be set, and streams stayed behind */
  setenv("FARFAULT_DRIVER_VERSION", "12.8", 1);
  invalid(cuGreenCtxCreate(&green, d, 0, 0));
  succeed(cuGreenCtxCreate(&green, d, 0, DEFAULT_STREAM));
  stream = stream_in(green);
  succeed(cuGreenCtxDestroy(green));
  check(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  unsetenv("FARFAULT_DRIVER_VERSION");
  succeed(cuGreenCtxCreate(&green, d, 0, 0));
  stream = stream_in(green);
  /* what is captured goes with it */
  succeed(cuStreamBeginCapture_v2(stream, 0));
  succeed(cuGreenCtxDestroy(green));
  check(cuStreamEndCapture(stream, &graph), DETACHED);
  succeed(cuStreamDestroy_v2(stream));
  check(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuEventDestroy_v2(event));
}

static void groups_are_rounded_up(void **state) {
  (void)state;
  resource groups[256], rest, again;
  unsigned n = 256, least = device.sm.least, step = device.sm.alignment;
  assert_int_equal(least, GREEN_MIN);
  assert_int_equal(step, GREEN_STEP);
  assert_int_equal(device.sm.count, GREEN_SMS);
  succeed(cuDevSmResourceSplitByCount(NULL, &n, &device, NULL, 0, 0)); /* a question */
  assert_int_equal(n, GREEN_SMS / least);
  n = 256;
  succeed(cuDevSmResourceSplitByCount(groups, &n, &device, &rest, 0, 1));
  assert_int_equal(n, GREEN_SMS / least);
  for (unsigned i = 0; i < n; i++) assert_int_equal(groups[i].sm.count, least);
  assert_int_equal(rest.type, GREEN_SMS % least ? SM : 0);
  if (rest.type) assert_int_equal(rest.sm.count, GREEN_SMS % least);
  n = 1;
  succeed(cuDevSmResourceSplitByCount(groups, &n, &device, &rest, 0, least + 1));
  assert_int_equal(n, 1);
  assert_int_equal(groups[0].sm.count, least + step);
  assert_int_equal(rest.sm.count, GREEN_SMS - least - step);
  n = 256;
  succeed(cuDevSmResourceSplitByCount(groups, &n, &device, NULL, 1, 1)); /* without co-scheduling */
  assert_int_equal(n, GREEN_SMS / 2);
  assert_int_equal(groups[n - 1].sm.count, 2);
  /* what a green context has may be split further */
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  succeed(cuGreenCtxGetDevResource(green, &again, SM));
  assert_int_equal(again.sm.count, groups[0].sm.count);
  n = 1;
  succeed(cuDevSmResourceSplitByCount(groups, &n, &again, &rest, 0, least));
  assert_int_equal(rest.sm.count, again.sm.count - least);
  succeed(cuGreenCtxDestroy(green));
}

/* The manual's examples, and what it refuses. */
static void groups_of_any_sizes(void **state) {
  (void)state;
  resource made[2], rest, again;
  const unsigned usual = device.sm.alignment, all = device.sm.count;
  group one = {0}, two[2] = {{.count = 10, .together = 2}, {.together = 2, .flags = BACKFILL}};
  succeed(cuDevSmResourceSplit(NULL, 1, &device, NULL, 0, &one)); /* what is there */
  assert_true(one.count == all / usual * usual && one.together == 0);
  one.count = 0;
  succeed(cuDevSmResourceSplit(made, 1, &device, &rest, 0, &one));
  assert_true(made[0].sm.count == one.count && made[0].sm.alignment == usual);
  assert_true(all % usual ? rest.sm.count == all % usual : rest.type == 0);
  succeed(cuDevSmResourceSplit(made, 2, &device, &rest, 0, two));
  assert_true(made[0].sm.count == 10 && made[0].sm.alignment == 2 && made[1].sm.count == (all - 10) / 2 * 2);
  assert_true(made[1].sm.flags == BACKFILL && two[1].count == made[1].sm.count);
  /* the two are apart; what was split off is not split again, the rest is */
  CUgreenCtx a = green_of(&made[0], 1), b = green_of(&made[1], 1);
  CUstream streams[2] = {stream_in(a), stream_in(b)};
  bool first[256], second[256];
  seen(streams[0], first), seen(streams[1], second);
  for (int i = 0; i < 256; i++) assert_true(first[i] + second[i] < 2);
  assert_true(count(first) == 10 && count(second) == made[1].sm.count);
  two[1] = (group){.count = 4, .together = 2};
  check(cuDevSmResourceSplit(&again, 1, &made[1], NULL, 0, &two[1]), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  succeed(cuDevSmResourceSplit(made, 1, &device, &rest, 0, two));
  succeed(cuDevSmResourceSplit(&made[1], 1, &rest, &again, 0, &two[1]));
  assert_true(made[1].sm.count == 4 && again.sm.count == all - 14);
  descriptor d;
  check(cuDevResourceGenerateDesc(&d, made, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* of two splits */
  two[0] = (group){.count = 2, .together = 2};
  two[1] = (group){.count = usual, .together = usual};
  succeed(cuDevSmResourceSplit(made, 2, &device, NULL, 0, two));
  check(cuDevResourceGenerateDesc(&d, made, 2),
        usual == 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* of two alignments */
  succeed(cuGreenCtxDestroy(a));
  succeed(cuGreenCtxDestroy(b));
  for (int i = 0; i < 2; i++) succeed(cuStreamDestroy_v2(streams[i]));
  const group mistakes[] = {{.count = 1},
                            {.count = 3, .together = 2},
                            {.count = all + 2, .together = 2},
                            {.count = 8, .together = 3},
                            {.count = 8, .together = 34},
                            {.count = 6, .together = 4},
                            {.count = 8, .together = 2, .flags = 4},
                            {.count = 8, .together = 2, .flags = 2, .domain = 1},
                            {.count = 8, .together = 2, .flags = 8}};
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    one = mistakes[i];
    invalid(cuDevSmResourceSplit(made, 1, &device, NULL, 0, &one));
  }
  for (unsigned any = 0; any < 2; any++) { /* there is one domain of locality */
    one = (group){.count = 8, .together = 2, .flags = any ? 6 : 2, .domain = any ? UINT32_MAX : 0};
    succeed(cuDevSmResourceSplit(made, 1, &device, NULL, 0, &one));
    assert_true(made[0].sm.count == 8 && made[0].sm.domain == one.domain);
  }
  made[0] = device; /* its first group takes the place of what is split */
  two[0] = (group){.count = 4, .together = 2};
  two[1] = (group){.count = 8, .together = 2};
  succeed(cuDevSmResourceSplit(made, 2, made, NULL, 0, two));
  assert_true(made[0].sm.count == 4 && made[1].sm.count == 8);
  two[0] = (group){.count = all / 2 * 2, .together = 2};
  two[1] = (group){.count = 2, .together = 2};
  check(cuDevSmResourceSplit(made, 2, &device, NULL, 0, two), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  invalid(cuDevSmResourceSplit(made, 0, &device, NULL, 0, two));
  invalid(cuDevSmResourceSplit(made, 1, &device, NULL, 1, two));
  invalid(cuDevSmResourceSplit(made, 1, &device, NULL, 0, NULL));
  invalid(cuDevSmResourceSplit(made, 1, NULL, NULL, 0, two));
}

/* Nothing is simulated by them, but what was asked for is told. */
static void work_queues(void **state) {
  (void)state;
  resource parts[2], found;
  struct queues {
    int device;
    unsigned limit;
    int scope;
  } *queues = (struct queues *)&parts[1].sm;
  descriptor d;
  CUgreenCtx green;
  split(parts, 1, device.sm.least, NULL);
  succeed(cuDeviceGetDevResource(0, &parts[1], QUEUES));
  assert_true(parts[1].type == QUEUES && queues->limit > 0 && queues->scope == 0);
  queues->limit = 3;
  queues->scope = 1;
  succeed(cuDevResourceGenerateDesc(&d, parts, 2));
  succeed(cuGreenCtxCreate(&green, d, 0, DEFAULT_STREAM));
  succeed(cuGreenCtxGetDevResource(green, &found, QUEUES));
  assert_memory_equal(&found.sm, &parts[1].sm, sizeof *queues);
  succeed(cuGreenCtxGetDevResource(green, &found, QUEUE));
  assert_int_equal(found.type, QUEUE);
  check(cuStreamGetDevResource(stream_in(green), &found, QUEUES), CUDA_ERROR_INVALID_RESOURCE_TYPE);
  succeed(cuGreenCtxDestroy(green));
  succeed(cuDevResourceGenerateDesc(&d, &parts[1], 1)); /* of all SMs */
  succeed(cuGreenCtxCreate(&green, d, 0, DEFAULT_STREAM));
  succeed(cuGreenCtxGetDevResource(green, &found, SM));
  assert_int_equal(found.sm.count, device.sm.count);
  succeed(cuGreenCtxDestroy(green));
  parts[0] = parts[1];
  check(cuDevResourceGenerateDesc(&d, parts, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* twice */
  queues->limit = 0;
  invalid(cuDevResourceGenerateDesc(&d, &parts[1], 1));
  queues->limit = 1, queues->scope = 2;
  invalid(cuDevResourceGenerateDesc(&d, &parts[1], 1));
  queues->scope = 0, queues->device = 1;
  invalid(cuDevResourceGenerateDesc(&d, &parts[1], 1));
}

static void blocks_are_on_its_sms(void **state) {
  (void)state;
  resource groups[2], rest;
  bool all[256], a[256], b[256], c[256];
  split(groups, 2, GREEN_SMS / 4, &rest);
  CUgreenCtx first = green_of(&groups[0], 1), second = green_of(&groups[1], 1), others = green_of(&rest, 1);
  CUstream streams[] = {stream_in(first), stream_in(second), stream_in(others)};
  seen(NULL, all);
  seen(streams[0], a), seen(streams[1], b), seen(streams[2], c);
  assert_int_equal(count(all), GREEN_SMS);
  assert_int_equal(count(a), groups[0].sm.count);
  assert_int_equal(count(b), groups[1].sm.count);
  assert_int_equal(count(c), rest.sm.count);
  for (int i = 0; i < 256; i++) assert_int_equal(a[i] + b[i] + c[i], all[i]); /* disjoint, and together everything */
  for (int i = 0; i < 3; i++) succeed(cuStreamDestroy_v2(streams[i]));
  succeed(cuGreenCtxDestroy(first));
  succeed(cuGreenCtxDestroy(second));
  CUgreenCtx both = green_of(groups, 2); /* two resources of one split */
  CUstream stream = stream_in(both);
  seen(stream, c);
  for (int i = 0; i < 256; i++) assert_int_equal(a[i] || b[i], c[i]);
  succeed(cuGreenCtxDestroy(both));
  succeed(cuGreenCtxDestroy(others));
}

static void the_current_one_has_the_null_stream(void **state) {
  (void)state;
  resource groups[1], rest, mine;
  bool a[256], b[256];
  CUcontext context, found, regular;
  CUgreenCtx of;
  CUstream made, own;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  own = stream_in(green);
  seen(own, a);
  succeed(cuCtxFromGreenCtx(&context, green));
  succeed(cuCtxPushCurrent_v2(context));
  succeed(cuCtxGetCurrent(&found));
  assert_ptr_equal(found, context);
  succeed(cuCtxGetDevResource(context, &mine, SM));
  assert_int_equal(mine.sm.count, groups[0].sm.count);
  seen(NULL, b);
  assert_memory_equal(a, b, sizeof a);
  succeed(cuStreamCreate(&made, 0)); /* in what is current */
  seen(made, b);
  assert_memory_equal(a, b, sizeof a);
  succeed(cuStreamGetGreenCtx(made, &of));
  assert_ptr_equal(of, green);
  succeed(cuStreamGetGreenCtx(NULL, &of));
  assert_ptr_equal(of, green);
  check(cuStreamGetCtx_v2(cudaStreamPerThread, &regular, &of), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuCtxPopCurrent_v2(&found));
  assert_ptr_equal(found, context);
  succeed(cuStreamGetCtx(own, &found));
  assert_ptr_equal(found, context);
  succeed(cuStreamGetCtx_v2(own, &regular, &of));
  assert_ptr_equal(regular, primary);
  assert_ptr_equal(of, green);
  succeed(cuStreamGetGreenCtx(NULL, &of));
  assert_null(of);
  seen(NULL, b);
  assert_int_equal(count(b), GREEN_SMS);
  succeed(cuCtxSetCurrent(context));
  succeed(cuGreenCtxDestroy(green)); /* while it is current */
  check(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  succeed(cuCtxSetCurrent(primary));
  succeed(cuCtxSynchronize());
}

/* NVIDIA's runtime names a green context by the context that stands for it. */
static void its_context_names_it(void **state) {
  (void)state;
  resource groups[1], found;
  CUcontext context, same;
  CUstream stream;
  CUevent event;
  CUgreenCtx of;
  unsigned long long id, other;
  split(groups, 1, GREEN_SMS / 2, NULL);
  CUgreenCtx green = green_of(groups, 1), alias;
  succeed(cuCtxFromGreenCtx(&context, green));
  alias = (CUgreenCtx)(void *)context;
  succeed(cuGreenCtxGetDevResource(alias, &found, SM));
  assert_int_equal(found.sm.count, groups[0].sm.count);
  succeed(cuGreenCtxGetId(green, &id));
  succeed(cuGreenCtxGetId(alias, &other));
  assert_int_equal(id, other);
  succeed(cuCtxFromGreenCtx(&same, alias));
  assert_ptr_equal(same, context);
  succeed(cuGreenCtxStreamCreate(&stream, alias, NON_BLOCKING, 0));
  succeed(cuStreamGetGreenCtx(stream, &of));
  assert_ptr_equal(of, green);
  succeed(cuEventCreate(&event, 0));
  succeed(cuGreenCtxRecordEvent(alias, event));
  succeed(cuGreenCtxWaitEvent(alias, event));
  check(cuGreenCtxGetDevResource((CUgreenCtx)(void *)primary, &found, SM), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuGreenCtxDestroy(alias));
  check(cuGreenCtxDestroy(alias), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuGreenCtxGetDevResource(green, &found, SM), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuStreamDestroy_v2(stream));
  succeed(cuEventDestroy_v2(event));
}

/* A cooperative grid must fit its SMs. */
static void cooperative_grids_are_bounded(void **state) {
  (void)state;
  resource groups[1], rest;
  uint32_t rounds = 1;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  CUstream stream = stream_in(green);
  void *arguments[] = {&rounds};
  CUresult fits = CUDA_SUCCESS;
  unsigned blocks = 0;
  while (!fits && blocks < 64)
    fits = cuLaunchCooperativeKernel(spin, ++blocks * groups[0].sm.count, 1, 1, 1024, 1, 1, 0, stream, arguments);
  assert_int_equal(fits, 720); /* CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE */
  assert_true(blocks > 1);
  if (blocks * groups[0].sm.count <= (blocks - 1) * GREEN_SMS)
    succeed(cuLaunchCooperativeKernel(spin, blocks * groups[0].sm.count, 1, 1, 1024, 1, 1, 0, NULL, arguments));
  succeed(cuGreenCtxDestroy(green));
}

/* ---- time ---- */

static void run(CUstream stream) {
  uint32_t rounds = 2000;
  succeed(cuLaunchKernel(spin, GREEN_SMS * 8, 1, 1, 256, 1, 1, 0, stream, (void *[]){&rounds}, NULL));
}

/* From the host's first launch to the end of all, in microseconds of virtual time. */
static double took(const CUstream *streams, int count) {
  uint64_t begin, end;
  succeed(cuCtxSynchronize());
  assert_int_equal(engine_host_time(&begin), cudaSuccess);
  for (int i = 0; i < count; i++) run(streams[i]);
  succeed(cuCtxSynchronize());
  assert_int_equal(engine_host_time(&end), cudaSuccess);
  return (double)(end - begin) * 1e-6;
}

static void half_the_sms_take_twice_as_long(void **state) {
  (void)state;
  if (CHECKED_BUILD && GREEN_SMS > 64) skip(); /* a minute, and few SMs show the same */
  resource groups[2], rest;
  split(groups, 1, (GREEN_SMS + 1) / 2, &rest);
  CUgreenCtx first = green_of(&groups[0], 1), second = green_of(&rest, 1);
  CUstream streams[] = {stream_in(first), stream_in(second), NULL};
  double whole = took(&streams[2], 1), half = took(streams, 1), other = took(&streams[1], 1), both = took(streams, 2);
  double expected = whole * GREEN_SMS / groups[0].sm.count, longer = half > other ? half : other;
  if (half < 0.95 * expected || half > 1.05 * expected)
    fail_msg("whole %.1f us, half %.1f us, expected %.1f us", whole, half, expected);
  if (both > 1.05 * longer) fail_msg("each half %.1f and %.1f us, side by side %.1f us", half, other, both);
  succeed(cuGreenCtxDestroy(first));
  succeed(cuGreenCtxDestroy(second));
}

static double since(CUevent begin, CUevent end) {
  float milliseconds;
  succeed(cuEventElapsedTime(&milliseconds, begin, end));
  return milliseconds * 1e3;
}

static void events_are_of_all_its_streams(void **state) {
  (void)state;
  resource groups[1], rest;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1), other = green_of(&rest, 1);
  CUstream a = stream_in(green), b = stream_in(green), away = stream_in(other);
  CUevent begin, idle, all, waited, later;
  CUevent *events[] = {&begin, &idle, &all, &waited, &later};
  for (int i = 0; i < 5; i++) succeed(cuEventCreate(events[i], 0));
  succeed(cuCtxSynchronize());
  succeed(cuEventRecord(begin, away));
  run(b);
  succeed(cuEventRecord(idle, a));
  succeed(cuGreenCtxRecordEvent(green, all));
  succeed(cuGreenCtxWaitEvent(other, all));
  succeed(cuEventRecord(waited, away));            /* a stream that was there */
  succeed(cuEventRecord(later, stream_in(other))); /* and one that was not */
  succeed(cuCtxSynchronize());
  double kernel = took(&b, 1);
  assert_true(since(begin, idle) < 0.1 * kernel);
  assert_true(since(begin, all) > 0.8 * kernel);
  assert_true(since(all, waited) >= 0 && since(all, later) >= 0);
  succeed(cuGreenCtxDestroy(green));
  succeed(cuGreenCtxDestroy(other));
  for (int i = 0; i < 5; i++) succeed(cuEventDestroy_v2(*events[i]));
}

/* Those of the device's own context are of its green contexts and its default stream, too, and of streams that are made
 * later. */
static void events_of_the_device(void **state) {
  (void)state;
  resource groups[1], rest;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  CUstream busy[3] = {stream_in(green), NULL}, plain, fresh;
  CUevent begin, idle, all, later[4];
  CUevent *events[] = {&begin, &idle, &all, &later[0], &later[1], &later[2], &later[3]};
  succeed(cuStreamCreate(&plain, 1));
  succeed(cuStreamCreate(&busy[2], 1));
  for (int i = 0; i < 7; i++) succeed(cuEventCreate(events[i], 0));
  check(cuCtxRecordEvent(primary, NULL), CUDA_ERROR_INVALID_HANDLE);
  check(cuCtxWaitEvent(NULL, all), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxWaitEvent(primary, all)); /* nothing was recorded: nothing to wait for */
  for (int turn = 0; turn < 3; turn++) { /* later turns have no blocking stream, which would wait for the default one */
    double kernel = took(&busy[turn], 1);
    succeed(cuCtxSynchronize());
    succeed(cuEventRecord(begin, plain));
    run(busy[turn]);
    succeed(cuEventRecord(idle, plain));
    succeed(cuCtxRecordEvent(primary, all));
    succeed(cuCtxWaitEvent(primary, all));
    succeed(cuStreamCreate(&fresh, 1));
    CUstream waiting[4] = {plain, turn ? fresh : stream_in(green), fresh, NULL};
    for (int i = 0; i < 4; i++) succeed(cuEventRecord(later[i], waiting[i]));
    succeed(cuCtxSynchronize());
    assert_true(since(begin, idle) < 0.1 * kernel && since(begin, all) > 0.8 * kernel);
    for (int i = 0; i < 4; i++) assert_true(since(all, later[i]) >= 0);
    succeed(cuStreamDestroy_v2(fresh));
    if (!turn) succeed(cuGreenCtxDestroy(green));
  }
  succeed(cuStreamDestroy_v2(plain));
  succeed(cuStreamDestroy_v2(busy[2]));
  for (int i = 0; i < 7; i++) succeed(cuEventDestroy_v2(*events[i]));
}

static void a_reset_destroys_them(void **state) {
  (void)state;
  resource groups[1], rest, again;
  CUcontext context;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  succeed(cuCtxFromGreenCtx(&context, green));
  succeed(cuCtxPushCurrent_v2(context));
  succeed(cuDevicePrimaryCtxReset_v2(0));
  check(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuGreenCtxGetDevResource(green, &again, SM), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxPopCurrent_v2(NULL));
  succeed(cuCtxSynchronize());
  CUgreenCtx others[8];
  /* one may have the address of the old one, and gets a context of its own all the same */
  for (int i = 0; i < 8; i++) {
    CUcontext other;
    split(groups, 1, GREEN_SMS / 2, &rest);
    others[i] = green_of(groups, 1);
    succeed(cuCtxFromGreenCtx(&other, others[i]));
    assert_ptr_not_equal(other, context);
  }
  for (int i = 0; i < 8; i++) succeed(cuGreenCtxDestroy(others[i]));
  load();
}

/* One that the runtime destroyed is gone for the driver API, too, whatever gets its address. */
/* A graph's node does not come into the hands of a green context that has the address of its own, which is gone. */
static void a_node_keeps_its_own(void **state) {
  (void)state;
  enum { AGAIN = 8, SET_NODE = 2 };
  resource groups[1], rest;
  CUcontext context;
  CUgreenCtx others[AGAIN];
  void *graph, *node;
  CUdeviceptr memory;
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  succeed(cuCtxFromGreenCtx(&context, green));
  succeed(cuMemAlloc_v2(&memory, 64));
  set_params params = {.type = SET_NODE, .dst = memory, .element_size = 4, .width = 4, .height = 1, .context = context};
  _Static_assert(sizeof params == 256, "as cuda.h has it");
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
  succeed(cuGraphNodeGetParams(node, &params));
  assert_ptr_equal(params.context, context);
  succeed(cuGreenCtxDestroy(green));
  for (int i = 0; i < AGAIN; i++) {
    others[i] = green_of(groups, 1);
    succeed(cuGraphNodeGetParams(node, &params));
    assert_null(params.context);
  }
  for (int i = 0; i < AGAIN; i++) succeed(cuGreenCtxDestroy(others[i]));
  succeed(cuGraphDestroy(graph));
  succeed(cuMemFree_v2(memory));
}

static void an_address_is_used_again(void **state) {
  (void)state;
  resource groups[1], rest;
  CUcontext context;
  CUgreenCtx others[8];
  split(groups, 1, GREEN_SMS / 2, &rest);
  CUgreenCtx green = green_of(groups, 1);
  succeed(cuCtxFromGreenCtx(&context, green));
  assert_int_equal(cudaExecutionCtxDestroy(green), 0);
  for (int i = 0; i < 8; i++) {
    CUcontext other;
    others[i] = green_of(groups, 1);
    check(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
    succeed(cuCtxFromGreenCtx(&other, others[i]));
    assert_ptr_not_equal(other, context);
  }
  for (int i = 0; i < 8; i++) succeed(cuGreenCtxDestroy(others[i]));
}

static _Atomic pid_t destroyer;

static void *destroy(void *green) {
  destroyer = gettid();
  const CUresult result = cuGreenCtxDestroy(green);
  return result ? green : NULL;
}

/* It has been asleep for a while. */
static void await_sleep(pid_t thread) {
  char path[64], state;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
  for (int asleep = 0; asleep < 4;) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
    fclose(file);
    asleep = state == 'S' ? asleep + 1 : 0;
    usleep(1000);
  }
}

/* Two threads destroy one and wait for a kernel of the device: one of them does, and leaves a new one alone. */
static void one_is_destroyed_once(void **state) {
  (void)state;
  enum { ROUNDS = 40, PINNED = 3 };
  resource groups[1], rest;
  uint32_t *word;
  CUstream stream;
  pthread_t other;
  succeed(cuMemHostAlloc((void **)&word, 64, PINNED));
  succeed(cuStreamCreate(&stream, 1));
  split(groups, 1, GREEN_SMS / 2, &rest);
  for (int round = 0; round < ROUNDS; round++) {
    CUgreenCtx green = green_of(groups, 1), fresh;
    unsigned long long id;
    void *failed;
    descriptor d;
    *word = 0;
    succeed(cuDevResourceGenerateDesc(&d, groups, 1));
    succeed(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&word}, NULL));
    destroyer = 0;
    assert_int_equal(pthread_create(&other, NULL, destroy, green), 0);
    while (!destroyer) usleep(100);
    await_sleep(destroyer);
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    const CUresult result = cuGreenCtxDestroy(green);
    succeed(cuGreenCtxCreate(&fresh, d, 0, DEFAULT_STREAM));
    assert_int_equal(pthread_join(other, &failed), 0);
    if (result) check(result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_true(!result == (failed != NULL));
    succeed(cuGreenCtxGetId(fresh, &id));
    succeed(cuGreenCtxDestroy(fresh));
  }
  succeed(cuStreamDestroy_v2(stream));
  succeed(cuMemFreeHost(word));
}

static int run_green_cases(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(documented_errors),
      cmocka_unit_test(groups_are_rounded_up),
      cmocka_unit_test(groups_of_any_sizes),
      cmocka_unit_test(work_queues),
      cmocka_unit_test(blocks_are_on_its_sms),
      cmocka_unit_test(the_current_one_has_the_null_stream),
      cmocka_unit_test(its_context_names_it),
      cmocka_unit_test(cooperative_grids_are_bounded),
      cmocka_unit_test(half_the_sms_take_twice_as_long),
      cmocka_unit_test(events_are_of_all_its_streams),
      cmocka_unit_test(events_of_the_device),
      cmocka_unit_test(an_address_is_used_again),
      cmocka_unit_test(a_node_keeps_its_own),
      cmocka_unit_test(one_is_destroyed_once),
      cmocka_unit_test(a_reset_destroys_them),
  };
  setup();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
