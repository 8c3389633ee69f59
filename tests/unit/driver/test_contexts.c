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
  X(cudaGraphNodeSetParams, (cudaGraphNode_t, cudaGraphNodeParams *))                                             \
  X(cudaGraphInstantiate, (cudaGraphExec_t *, cudaGraph_t, unsigned long long))                                   \
  X(cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t))                                                             \
  X(cudaGraphExecDestroy, (cudaGraphExec_t))                                                                      \
  X(cudaStreamCreate, (cudaStream_t *))                                                                           \
  X(cudaStreamBeginCapture, (cudaStream_t, int))                                                                  \
  X(cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *))                                                          \
  X(cudaStreamBeginRecaptureToGraph, (cudaStream_t, int, cudaGraph_t, cudaGraphRecaptureCallbackData *))          \
  X(cudaMemcpyBatchAsync, (void *const *, const void *const *, const size_t *, size_t, cudaMemcpyAttributes *,    \
                           size_t *, size_t, cudaStream_t))                                                       \
  X(cudaMemsetAsync, (void *, int, size_t, cudaStream_t))                                                         \
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

/* How many different SMs blocks of a launch in the stream, of a graph or of the kernel, say they are on. */
static unsigned seen_of(cudaGraphExec_t exec, cudaStream_t stream, bool set[256]) {
  uint32_t sms[BLOCKS];
  unsigned count = 0;
  void *arguments[] = {&written};
  succeed(cudaMemset(written, 0xff, sizeof sms));
  if (exec) succeed(cudaGraphLaunch(exec, stream));
  else succeed(cudaLaunchKernel(where, (dim3){BLOCKS, 1, 1}, (dim3){32, 1, 1}, arguments, 0, stream));
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

static unsigned seen(cudaStream_t stream, bool set[256]) { return seen_of(NULL, stream, set); }

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
  kernel.kernel.of = (cudaKernelNodeParams){
      .func = where, .gridDim = {3, 1, 1}, .blockDim = {32, 1, 1}, .sharedMemBytes = 0, .kernelParams = arguments};
  set.memset.of = (cudaMemsetParams){.dst = written, .value = 5, .elementSize = 4, .width = 4, .height = 1};
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &kernel));
  succeed(cudaGraphAddNode(&nodes[1], graph, nodes, NULL, 1, &set));
  succeed(cudaGraphNodeGetParams(nodes[0], &got));
  assert_true(got.type == 0 && got.kernel.of.gridDim.x == 3 && *(void **)got.kernel.of.kernelParams[0] == written);
  succeed(cudaGraphNodeGetParams(nodes[1], &got));
  assert_true(got.type == 2 && got.memset.of.value == 5 && got.memset.of.width == 4);
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

/* A node's context says whose SMs it has, wherever the graph is launched. */
static void contexts_of_nodes(void **state) {
  (void)state;
  engine_resource part;
  cudaGraph_t graph;
  cudaGraphNode_t node, others[3];
  cudaGraphExec_t exec;
  cudaGraphNodeParams kernel = {.type = 0}, set = {.type = 2}, copy = {.type = 1}, batch = {.type = 14}, got;
  void *arguments[] = {&written}, *to = written, *from = (char *)written + 16;
  size_t bytes = 16, first = 0;
  cudaMemcpyAttributes kind = {.srcAccessOrder = 1};
  unsigned one = 1;
  bool on[256];
  context own;
  succeed(cudaDevSmResourceSplitByCount(&part, &one, &device, NULL, 0, 10));
  context green = green_of(&part);
  succeed(cudaDeviceGetExecutionCtx(&own, 0));
  assert_true(sizeof kernel == 256 && offsetof(cudaGraphNodeParams, kernel.ctx) == 72 &&
              offsetof(cudaGraphNodeParams, memcpy.ctx) == 24 && offsetof(cudaGraphNodeParams, memset.ctx) == 56 &&
              offsetof(cudaGraphNodeParams, memcpyBatch.ctx) == 72);
  kernel.kernel.of = (cudaKernelNodeParams){
      .func = where, .gridDim = {BLOCKS, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = arguments};
  kernel.kernel.ctx = &part; /* no context */
  succeed(cudaGraphCreate(&graph, 0));
  invalid(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &kernel));
  kernel.kernel.ctx = green;
  set.memset = (cudaMemsetParamsV2){{.dst = from, .value = 5, .elementSize = 4, .width = 4, .height = 1}, green};
  copy.memcpy = (cudaMemcpyNodeParams){.ctx = green,
                                       .copyParams = {.srcPtr = {from, 16, 16, 1},
                                                      .dstPtr = {(char *)written + 64, 16, 16, 1},
                                                      .extent = {16, 1, 1},
                                                      .kind = cudaMemcpyDefault}};
  batch.memcpyBatch = (cudaMemcpyBatchNodeParams){1, &to, &from, &bytes, &kind, &first, 1, own};
  succeed(cudaGraphAddNode(&others[0], graph, NULL, NULL, 0, &set));
  succeed(cudaGraphAddNode(&others[1], graph, &others[0], NULL, 1, &copy));
  succeed(cudaGraphAddNode(&others[2], graph, &others[1], NULL, 1, &batch));
  succeed(cudaGraphAddNode(&node, graph, &others[2], NULL, 1, &kernel));
  succeed(cudaGraphNodeGetParams(node, &got));
  assert_ptr_equal(got.kernel.ctx, green);
  succeed(cudaGraphNodeGetParams(others[0], &got));
  assert_ptr_equal(got.memset.ctx, green);
  succeed(cudaGraphNodeGetParams(others[1], &got));
  assert_ptr_equal(got.memcpy.ctx, green);
  succeed(cudaGraphNodeGetParams(others[2], &got));
  assert_true(got.memcpyBatch.ctx == own && got.memcpyBatch.count == 1 && got.memcpyBatch.dsts[0] == written);
  succeed(cudaGraphInstantiate(&exec, graph, 0));
  assert_int_equal(seen_of(exec, NULL, on), 10);
  succeed(cudaGraphExecDestroy(exec));
  kernel.kernel.ctx = own;
  succeed(cudaGraphNodeSetParams(node, &kernel));
  succeed(cudaGraphNodeGetParams(node, &got));
  assert_ptr_equal(got.kernel.ctx, own);
  succeed(cudaGraphInstantiate(&exec, graph, 0));
  assert_int_equal(seen_of(exec, NULL, on), device.sm.count);
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaExecutionCtxDestroy(green));
}

static unsigned told;
static cudaError_t listen(void *data, cudaGraphNode_t node, const cudaGraphNodeParams *before,
                          const cudaGraphNodeParams *now, int status) {
  assert_true(data == &told && node && !status);
  if (now->type == 2) assert_true(before->memset.of.value == 1 && now->memset.of.value == 2);
  else assert_true(now->type == 14 && before->memcpyBatch.sizes[0] == 16 && now->memcpyBatch.sizes[0] == 8);
  told++;
  return cudaSuccess;
}

static void captured_again(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  void *to = (char *)written + 64, *from = written;
  size_t bytes = 16, first = 0;
  cudaMemcpyAttributes kind = {.srcAccessOrder = 1};
  cudaGraphRecaptureCallbackData callback = {listen, &told};
  unsigned char seen_bytes[80];
  cudaGraphExec_t exec;
  succeed(cudaStreamCreate(&stream));
  invalid(cudaStreamBeginRecaptureToGraph(stream, 0, NULL, &callback));
  for (int turn = 0; turn < 3; turn++) {
    if (turn) succeed(cudaStreamBeginRecaptureToGraph(stream, 0, graph, turn == 1 ? &callback : NULL));
    else succeed(cudaStreamBeginCapture(stream, 0));
    succeed(cudaMemsetAsync(written, turn + 1, 16, stream));
    succeed(cudaMemcpyBatchAsync(&to, (const void *const *)&from, &bytes, 1, &kind, &first, 1, stream));
    succeed(cudaStreamEndCapture(stream, &graph));
    bytes = 8;
  }
  assert_int_equal(told, 2);
  succeed(cudaMemset(written, 0xff, sizeof seen_bytes));
  succeed(cudaGraphInstantiate(&exec, graph, 0));
  succeed(cudaGraphLaunch(exec, stream));
  succeed(cudaDeviceSynchronize());
  succeed(cudaMemcpy(seen_bytes, written, sizeof seen_bytes, 2));
  assert_true(seen_bytes[0] == 3 && seen_bytes[71] == 3 && seen_bytes[72] == 0xff);
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamDestroy(stream));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_share_of_the_device),
                                     cmocka_unit_test(the_devices_own),
                                     cmocka_unit_test(refused),
                                     cmocka_unit_test(graphs),
                                     cmocka_unit_test(contexts_of_nodes),
                                     cmocka_unit_test(captured_again)};
  return cmocka_run_group_tests(tests, start, NULL);
}
