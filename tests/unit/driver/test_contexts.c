/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts, numbers and parameters of graphs as libcudart.so.13 has them, found as a program finds them:
 * blocks of a green context's streams are on its SMs, events and synchronisation are of all its streams, and a stream
 * outlives it only to be destroyed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "driver/cuda_abi.h"
#include "driver/engine/engine_resource.h"
#include "driver/graph_abi.h"

enum { BLOCKS = 400, SM_DETACHED = 917 };
typedef void *context;

#define FUNCTIONS(X)                                                                                              \
  X(cudaMalloc, (void **, size_t))                                                                                \
  X(cudaMemcpy, (void *, const void *, size_t, int))                                                              \
  X(cudaMemset, (void *, int, size_t))                                                                            \
  X(cudaDeviceSynchronize, (void))                                                                                \
  X(cudaLibraryLoadData, (void **, const void *, void *, void *, unsigned, void *, void *, unsigned))             \
  X(cudaLibraryGetKernel, (void **, void *, const char *))                                                        \
  X(cudaLaunchKernel, (const void *, dim3, dim3, void **, size_t, cudaStream_t))                                  \
  X(cudaStreamDestroy, (cudaStream_t))                                                                            \
  X(cudaStreamQuery, (cudaStream_t))                                                                              \
  X(cudaStreamGetFlags, (cudaStream_t, unsigned *))                                                               \
  X(cudaStreamGetDevice, (cudaStream_t, int *))                                                                   \
  X(cudaEventCreate, (cudaEvent_t *))                                                                             \
  X(cudaEventQuery, (cudaEvent_t))                                                                                \
  X(cudaDeviceGetDevResource, (int, engine_resource *, int))                                                      \
  X(cudaDevSmResourceSplitByCount,                                                                                \
    (engine_resource *, unsigned *, const engine_resource *, engine_resource *, unsigned, unsigned))              \
  X(cudaDevSmResourceSplit,                                                                                       \
    (engine_resource *, unsigned, const engine_resource *, engine_resource *, unsigned, engine_resource_group *)) \
  X(cudaDevResourceGenerateDesc, (engine_descriptor **, engine_resource *, unsigned))                             \
  X(cudaGreenCtxCreate, (context *, engine_descriptor *, int, unsigned))                                          \
  X(cudaDeviceGetExecutionCtx, (context *, int))                                                                  \
  X(cudaExecutionCtxDestroy, (context))                                                                           \
  X(cudaExecutionCtxGetDevResource, (context, engine_resource *, int))                                            \
  X(cudaExecutionCtxGetDevice, (int *, context))                                                                  \
  X(cudaExecutionCtxGetId, (context, unsigned long long *))                                                       \
  X(cudaExecutionCtxStreamCreate, (cudaStream_t *, context, unsigned, int))                                       \
  X(cudaExecutionCtxSynchronize, (context))                                                                       \
  X(cudaExecutionCtxRecordEvent, (context, cudaEvent_t))                                                          \
  X(cudaExecutionCtxWaitEvent, (context, cudaEvent_t))                                                            \
  X(cudaStreamGetDevResource, (cudaStream_t, engine_resource *, int))                                             \
  X(cudaGraphCreate, (cudaGraph_t *, unsigned))                                                                   \
  X(cudaGraphDestroy, (cudaGraph_t))                                                                              \
  X(cudaGraphAddNode,                                                                                             \
    (cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, const void *, size_t, cudaGraphNodeParams *))       \
  X(cudaGraphNodeGetParams, (cudaGraphNode_t, cudaGraphNodeParams *))                                             \
  X(cudaGraphNodeGetContainingGraph, (cudaGraphNode_t, cudaGraph_t *))                                            \
  X(cudaGraphNodeGetLocalId, (cudaGraphNode_t, unsigned *))                                                       \
  X(cudaGraphNodeGetToolsId, (cudaGraphNode_t, unsigned long long *))                                             \
  X(cudaGraphGetId, (cudaGraph_t, unsigned *))                                                                    \
  X(cudaGraphConditionalHandleCreate_v2, (cudaGraphConditionalHandle *, cudaGraph_t, context, unsigned, unsigned))
#define X(NAME, PARAMETERS) static int(*NAME) PARAMETERS;
FUNCTIONS(X)
#undef X

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, cudaSuccess)
#define invalid(call) check(call, cudaErrorInvalidValue)

static const char module_text[] =
    ".version 7.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry where(.param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r1, %smid;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r1;\nret;\n}\n";

static void *where, *written;
static engine_resource device;

static int start(void **state) {
  (void)state;
  setenv("FARFAULT_MACHINE", "v100", 1);
  void *library = dlopen(FF_BUILD_DIR "/lib/farfault/libcudart.so.13", RTLD_NOW | RTLD_LOCAL), *module;
  if (!library) return -1;
#define X(NAME, PARAMETERS)                                      \
  *(void **)&NAME = dlsym(library, #NAME); /* as POSIX has it */ \
  if (!NAME) return -1;
  FUNCTIONS(X)
#undef X
  return cudaLibraryLoadData(&module, module_text, NULL, NULL, 0, NULL, NULL, 0) ||
         cudaLibraryGetKernel(&where, module, "where") || cudaMalloc(&written, BLOCKS * 4) ||
         cudaDeviceGetDevResource(0, &device, ENGINE_RESOURCE_SM);
}

/* How many different SMs blocks of a launch in the stream say they are on. */
static unsigned seen(cudaStream_t stream, bool set[256]) {
  uint32_t sms[BLOCKS];
  unsigned count = 0;
  void *arguments[] = {&written};
  succeed(cudaMemset(written, 0xff, sizeof sms));
  succeed(cudaLaunchKernel(where, (dim3){BLOCKS, 1, 1}, (dim3){32, 1, 1}, arguments, 0, stream));
  succeed(cudaDeviceSynchronize());
  succeed(cudaMemcpy(sms, written, sizeof sms, 2));
  memset(set, 0, 256 * sizeof *set);
  for (int i = 0; i < BLOCKS; i++) {
    assert_true(sms[i] < device.sm.count);
    count += !set[sms[i]];
    set[sms[i]] = true;
  }
  return count;
}

static context green_of(engine_resource *part) {
  engine_descriptor *descriptor;
  context made;
  succeed(cudaDevResourceGenerateDesc(&descriptor, part, 1));
  succeed(cudaGreenCtxCreate(&made, descriptor, 0, 0));
  return made;
}

static void a_share_of_the_device(void **state) {
  (void)state;
  engine_resource parts[2], rest, found;
  engine_resource_group groups[2] = {{.count = 20, .together = 2}, {.count = 6, .together = 2}};
  bool first[256], second[256];
  cudaStream_t streams[2];
  unsigned flags, one = 1;
  int on = 9;
  succeed(cudaDevSmResourceSplit(parts, 2, &device, &rest, 0, groups));
  context green[2] = {green_of(&parts[0]), green_of(&parts[1])};
  for (int i = 0; i < 2; i++) succeed(cudaExecutionCtxStreamCreate(&streams[i], green[i], 0, 0));
  assert_int_equal(seen(streams[0], first), 20);
  assert_int_equal(seen(streams[1], second), 6);
  for (int i = 0; i < 256; i++) assert_true(first[i] + second[i] < 2);
  succeed(cudaStreamGetFlags(streams[0], &flags)); /* as all of a green context */
  assert_int_equal(flags, cudaStreamNonBlocking);
  succeed(cudaStreamGetDevice(streams[0], &on));
  assert_int_equal(on, 0);
  succeed(cudaStreamGetDevResource(streams[0], &found, ENGINE_RESOURCE_SM));
  assert_int_equal(found.sm.count, 20);
  succeed(cudaExecutionCtxGetDevResource(green[1], &found, ENGINE_RESOURCE_SM));
  assert_int_equal(found.sm.count, 6);
  succeed(cudaDevSmResourceSplitByCount(&parts[0], &one, &found, &rest, 0, 2)); /* again */
  assert_true(parts[0].sm.count == 2 && rest.sm.count == 4);
  succeed(cudaExecutionCtxSynchronize(green[0]));
  succeed(cudaExecutionCtxDestroy(green[0]));
  invalid(cudaExecutionCtxDestroy(green[0]));
  invalid(cudaExecutionCtxSynchronize(green[0]));
  check(cudaStreamQuery(streams[0]), SM_DETACHED);
  for (int i = 0; i < 2; i++) succeed(cudaStreamDestroy(streams[i]));
  succeed(cudaExecutionCtxDestroy(green[1]));
}

static void the_devices_own(void **state) {
  (void)state;
  context own, green;
  engine_resource part, found;
  unsigned one = 1, flags;
  unsigned long long ids[2];
  int on = 9;
  bool set[256];
  cudaStream_t stream;
  cudaEvent_t event;
  check(cudaDeviceGetExecutionCtx(&own, 1), cudaErrorInvalidDevice);
  invalid(cudaDeviceGetExecutionCtx(NULL, 0));
  succeed(cudaDeviceGetExecutionCtx(&own, 0));
  invalid(cudaExecutionCtxDestroy(own));
  succeed(cudaDevSmResourceSplitByCount(&part, &one, &device, NULL, 0, 10));
  green = green_of(&part);
  succeed(cudaExecutionCtxGetId(own, &ids[0]));
  succeed(cudaExecutionCtxGetId(green, &ids[1]));
  assert_true(ids[0] && ids[1] && ids[0] != ids[1]);
  succeed(cudaExecutionCtxGetDevice(&on, own));
  assert_int_equal(on, 0);
  succeed(cudaExecutionCtxGetDevice(&on, green));
  assert_int_equal(on, 0);
  succeed(cudaExecutionCtxGetDevResource(own, &found, ENGINE_RESOURCE_SM));
  assert_int_equal(found.sm.count, device.sm.count);
  succeed(cudaExecutionCtxStreamCreate(&stream, own, 0, 0));
  succeed(cudaStreamGetFlags(stream, &flags));
  assert_int_equal(flags, 0);
  assert_int_equal(seen(stream, set), device.sm.count);
  succeed(cudaEventCreate(&event));
  context both[2] = {own, green};
  for (int i = 0; i < 2; i++) {
    succeed(cudaExecutionCtxRecordEvent(both[i], event));
    succeed(cudaExecutionCtxWaitEvent(both[i], event));
    succeed(cudaExecutionCtxSynchronize(both[i]));
    succeed(cudaEventQuery(event));
    check(cudaExecutionCtxRecordEvent(both[i], NULL), cudaErrorInvalidResourceHandle);
  }
  succeed(cudaStreamDestroy(stream));
  succeed(cudaExecutionCtxDestroy(green));
}

static void refused(void **state) {
  (void)state;
  engine_descriptor *descriptor;
  engine_resource part, found;
  context green;
  cudaStream_t stream;
  unsigned one = 1;
  unsigned long long id;
  int on;
  check(cudaDeviceGetDevResource(0, &found, 7), cudaErrorInvalidResourceType);
  check(cudaDeviceGetDevResource(1, &found, ENGINE_RESOURCE_SM), cudaErrorInvalidDevice);
  succeed(cudaDevSmResourceSplitByCount(&part, &one, &device, NULL, 0, 10));
  succeed(cudaDevResourceGenerateDesc(&descriptor, &part, 1));
  invalid(cudaGreenCtxCreate(&green, descriptor, 0, 1));
  invalid(cudaGreenCtxCreate(NULL, descriptor, 0, 0));
  invalid(cudaGreenCtxCreate(&green, NULL, 0, 0));
  check(cudaGreenCtxCreate(&green, descriptor, 1, 0), cudaErrorInvalidDevice);
  context nothing[] = {NULL, &id};
  for (int i = 0; i < 2; i++) {
    invalid(cudaExecutionCtxStreamCreate(&stream, nothing[i], 0, 0));
    invalid(cudaExecutionCtxGetDevResource(nothing[i], &found, ENGINE_RESOURCE_SM));
    invalid(cudaExecutionCtxGetDevice(&on, nothing[i]));
    invalid(cudaExecutionCtxGetId(nothing[i], &id));
    invalid(cudaExecutionCtxRecordEvent(nothing[i], NULL));
    invalid(cudaExecutionCtxDestroy(nothing[i]));
  }
  succeed(cudaGreenCtxCreate(&green, descriptor, 0, 0));
  invalid(cudaExecutionCtxStreamCreate(&stream, green, 2, 0));
  invalid(cudaExecutionCtxStreamCreate(NULL, green, 0, 0));
  invalid(cudaExecutionCtxGetId(green, NULL));
  succeed(cudaExecutionCtxDestroy(green));
}

static void graphs(void **state) {
  (void)state;
  cudaGraph_t graph, found;
  cudaGraphNode_t nodes[2];
  cudaGraphConditionalHandle handle;
  cudaGraphNodeParams kernel = {.type = 0}, set = {.type = 2}, got;
  void *arguments[] = {&written};
  unsigned id, local;
  unsigned long long tools[2];
  context own;
  kernel.kernel = (cudaKernelNodeParams){
      .func = where, .gridDim = {3, 1, 1}, .blockDim = {32, 1, 1}, .sharedMemBytes = 0, .kernelParams = arguments};
  set.memset = (cudaMemsetParams){.dst = written, .value = 5, .elementSize = 4, .width = 4, .height = 1};
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &kernel));
  succeed(cudaGraphAddNode(&nodes[1], graph, nodes, NULL, 1, &set));
  succeed(cudaGraphNodeGetParams(nodes[0], &got));
  assert_true(got.type == 0 && got.kernel.gridDim.x == 3 && *(void **)got.kernel.kernelParams[0] == written);
  succeed(cudaGraphNodeGetParams(nodes[1], &got));
  assert_true(got.type == 2 && got.memset.value == 5 && got.memset.width == 4);
  invalid(cudaGraphNodeGetParams(nodes[1], NULL));
  succeed(cudaGraphGetId(graph, &id));
  for (unsigned i = 0; i < 2; i++) {
    succeed(cudaGraphNodeGetLocalId(nodes[i], &local));
    assert_int_equal(local, i);
    succeed(cudaGraphNodeGetToolsId(nodes[i], &tools[i]));
    succeed(cudaGraphNodeGetContainingGraph(nodes[i], &found));
    assert_ptr_equal(found, graph);
  }
  assert_true(id && tools[0] != tools[1]);
  succeed(cudaDeviceGetExecutionCtx(&own, 0));
  succeed(cudaGraphConditionalHandleCreate_v2(&handle, graph, own, 1, 1));
  succeed(cudaGraphConditionalHandleCreate_v2(&handle, graph, NULL, 1, 1));
  invalid(cudaGraphConditionalHandleCreate_v2(&handle, graph, &id, 1, 1));
  succeed(cudaGraphDestroy(graph));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_share_of_the_device), cmocka_unit_test(the_devices_own),
                                     cmocka_unit_test(refused), cmocka_unit_test(graphs)};
  return cmocka_run_group_tests(tests, start, NULL);
}
