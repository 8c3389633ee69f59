/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and captures: the same cases without a simulation (test_graph.c) and in parallel with two
 * (test_graph_simulated.c). */
#include <pthread.h>

#include "driver/runtime_api/cudart_graph.h"
#include "program.h"

#define COUNT 64u

/* scale: x[i] = x[i] * factor + offset; sum: out[i] = a[i] + b[i]; below: condition = ++*counter < limit */
static const char *const kernels = PTX_HEAD
    ".visible .entry scale(.param .u64 x, .param .u32 factor, .param .u32 offset) {\n"
    ".reg .u32 %r<6>; .reg .u64 %rd<4>;\n"
    "ld.param.u64 %rd1, [x]; ld.param.u32 %r2, [factor]; ld.param.u32 %r3, [offset];\n"
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r4, [%rd3]; mad.lo.u32 %r5, %r4, %r2, %r3; st.global.u32 [%rd3], %r5; ret;\n}\n"
    ".visible .entry sum(.param .u64 a, .param .u64 b, .param .u64 out) {\n"
    ".reg .u32 %r<6>; .reg .u64 %rd<8>;\n"
    "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [out];\n"
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;\n"
    "add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;\n"
    "ld.global.u32 %r2, [%rd5]; ld.global.u32 %r3, [%rd6]; add.u32 %r4, %r2, %r3; st.global.u32 [%rd7], %r4; ret;\n}\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry below(.param .u64 handle, .param .u64 counter, .param .u32 limit) {\n"
    ".reg .u32 %r<5>; .reg .u64 %rd<3>; .reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [handle]; ld.param.u64 %rd2, [counter]; ld.param.u32 %r1, [limit];\n"
    "ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1; st.global.u32 [%rd2], %r2;\n"
    "setp.lt.u32 %p1, %r2, %r1; selp.u32 %r3, 1, 0, %p1;\n"
    "{ .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], %r3; call.uni cudaGraphSetConditional, (a, b); }\n"
    "ret;\n}\n";
STUB(scale_stub);
STUB(sum_stub);
STUB(below_stub);

static void register_all(void) {
  static void **handle;
  if (handle) return;
  handle = register_ptx(&kernels, 1);
  register_kernel(handle, scale_stub, "scale");
  register_kernel(handle, sum_stub, "sum");
  register_kernel(handle, below_stub, "below");
}

typedef struct scale_arguments {
  void *x;
  unsigned factor, offset;
  void *list[3];
} scale_arguments;

static cudaKernelNodeParams scale_params(scale_arguments *a, void *x, unsigned factor, unsigned offset) {
  *a = (scale_arguments){.x = x, .factor = factor, .offset = offset};
  a->list[0] = &a->x;
  a->list[1] = &a->factor;
  a->list[2] = &a->offset;
  return (cudaKernelNodeParams){
      .func = scale_stub, .gridDim = {1, 1, 1}, .blockDim = {COUNT, 1, 1}, .kernelParams = a->list};
}

static cudaGraphNode_t add_scale(cudaGraph_t graph, cudaGraphNode_t before, void *x, unsigned factor, unsigned offset) {
  scale_arguments a;
  cudaKernelNodeParams params = scale_params(&a, x, factor, offset);
  cudaGraphNode_t node;
  succeed(cudaGraphAddKernelNode(&node, graph, &before, before ? 1 : 0, &params));
  return node;
}

static void launch_scale(void *x, unsigned factor, unsigned offset, cudaStream_t stream) {
  void *arguments[] = {&x, &factor, &offset};
  succeed(cudaLaunchKernel(scale_stub, (dim3){1, 1, 1}, (dim3){COUNT, 1, 1}, arguments, 0, stream));
}

static unsigned *device_array(unsigned value) {
  unsigned *made, host[COUNT];
  for (unsigned i = 0; i < COUNT; i++) host[i] = value;
  succeed(cudaMalloc((void **)&made, sizeof host));
  succeed(cudaMemcpy(made, host, sizeof host, cudaMemcpyHostToDevice));
  return made;
}

static void assert_all(const unsigned *device, unsigned value) {
  unsigned host[COUNT];
  succeed(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < COUNT; i++) assert_int_equal(host[i], value);
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

static void run_once(cudaGraph_t graph) {
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaDeviceSynchronize());
  succeed(cudaGraphExecDestroy(exec));
}

/* ---- building ---- */

static void order_follows_edges(void **state) {
  (void)state;
  cudaGraph_t graph;
  unsigned *x = device_array(3);
  succeed(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last = add_scale(graph, NULL, x, 10, 7); /* made first, but runs last */
  cudaGraphNode_t first = add_scale(graph, NULL, x, 2, 1);
  succeed(cudaGraphAddDependencies(graph, &first, &last, NULL, 1));
  run_once(graph);
  assert_all(x, (3 * 2 + 1) * 10 + 7);
  expect(cudaGraphAddDependencies(graph, &first, &last, NULL, 1), cudaErrorInvalidValue); /* there already */
  expect(cudaGraphAddDependencies(graph, &first, &first, NULL, 1), cudaErrorInvalidValue);
  succeed(cudaGraphAddDependencies(graph, &last, &first, NULL, 1)); /* a cycle is seen when it is instantiated */
  cudaGraphExec_t exec;
  expect(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  succeed(cudaGraphRemoveDependencies(graph, &last, &first, NULL, 1));
  expect(cudaGraphRemoveDependencies(graph, &last, &first, NULL, 1), cudaErrorInvalidValue);
  run_once(graph);
  succeed(cudaGraphDestroy(graph));
  expect(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  expect(cudaGraphNodeGetType(first, &(int){0}), cudaErrorInvalidValue);
  succeed(cudaFree(x));
}

static void asking(void **state) {
  (void)state;
  cudaGraph_t graph;
  unsigned *x = device_array(0);
  succeed(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t a = add_scale(graph, NULL, x, 1, 1), b = add_scale(graph, a, x, 1, 1),
                  c = add_scale(graph, a, x, 1, 1), found[4], from[4], to[4];
  size_t count = 0;
  succeed(cudaGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 3);
  count = 4;
  succeed(cudaGraphGetNodes(graph, found, &count));
  assert_true(count == 3 && found[0] == a && found[1] == b && found[2] == c && !found[3]);
  count = 4;
  succeed(cudaGraphGetRootNodes(graph, found, &count));
  assert_true(count == 1 && found[0] == a);
  count = 4;
  succeed(cudaGraphGetEdges(graph, from, to, NULL, &count));
  assert_true(count == 2 && from[0] == a && to[0] == b && from[1] == a && to[1] == c);
  count = 4;
  succeed(cudaGraphNodeGetDependentNodes(a, found, NULL, &count));
  assert_true(count == 2 && found[0] == b && found[1] == c);
  count = 1;
  succeed(cudaGraphNodeGetDependencies(c, found, NULL, &count));
  assert_true(count == 1 && found[0] == a);
  cudaKernelNodeParams params;
  succeed(cudaGraphKernelNodeGetParams(b, &params));
  assert_ptr_equal(params.func, scale_stub);
  assert_true(params.blockDim.x == COUNT && *(void **)params.kernelParams[0] == x &&
              *(unsigned *)params.kernelParams[1] == 1);
  expect(cudaGraphMemsetNodeGetParams(b, &(cudaMemsetParams){0}), cudaErrorInvalidValue); /* another kind */
  succeed(cudaGraphDestroyNode(b));
  count = 0;
  succeed(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
  assert_int_equal(count, 1);
  expect(cudaGraphAddEmptyNode(&found[0], graph, &b, 1), cudaErrorInvalidValue); /* after a node that is gone */
  params.blockDim.x = 2048;
  expect(cudaGraphAddKernelNode(&found[0], graph, NULL, 0, &params), cudaErrorInvalidValue); /* nothing is launched */
  succeed(cudaGraphDestroy(graph));
  succeed(cudaFree(x));
}

static void clones(void **state) {
  (void)state;
  cudaGraph_t graph, clone, inner;
  cudaGraphNode_t child, twin;
  unsigned *x = device_array(1);
  succeed(cudaGraphCreate(&inner, 0));
  add_scale(inner, NULL, x, 5, 0);
  succeed(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = add_scale(graph, NULL, x, 1, 2);
  succeed(cudaGraphAddChildGraphNode(&child, graph, &first, 1, inner));
  succeed(cudaGraphDestroy(inner)); /* the node has its own */
  succeed(cudaGraphClone(&clone, graph));
  succeed(cudaGraphNodeFindInClone(&twin, first, clone));
  assert_true(twin && twin != first);
  expect(cudaGraphNodeFindInClone(&twin, first, graph), cudaErrorInvalidValue);
  succeed(cudaGraphDestroy(graph));
  run_once(clone);
  assert_all(x, (1 + 2) * 5);
  succeed(cudaGraphDestroy(clone));
  succeed(cudaFree(x));
}

/* ---- every kind of node ---- */

static void host_adds(void *data) { ++*(unsigned *)data; }

static void kinds(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphNode_t set, copy, back, host, record, empty;
  cudaEvent_t event;
  unsigned *x = device_array(9), *y = device_array(8), result[COUNT], calls = 0;
  succeed(cudaEventCreate(&event));
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddMemsetNode(
      &set, graph, NULL, 0, &(cudaMemsetParams){.dst = x, .value = 6, .elementSize = 4, .width = COUNT, .height = 1}));
  succeed(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, y, x, COUNT * 4, cudaMemcpyDeviceToDevice));
  cudaGraphNode_t kernel = add_scale(graph, copy, y, 7, 0);
  cudaMemcpy3DParms p = {.srcPtr = {y, COUNT * 4, COUNT * 4, 1},
                         .dstPtr = {result, COUNT * 4, COUNT * 4, 1},
                         .extent = {COUNT * 4, 1, 1},
                         .kind = cudaMemcpyDeviceToHost};
  succeed(cudaGraphAddMemcpyNode(&back, graph, &kernel, 1, &p));
  succeed(cudaGraphAddHostNode(&host, graph, &back, 1, &(cudaHostNodeParams){host_adds, &calls}));
  succeed(cudaGraphAddEventRecordNode(&record, graph, &host, 1, event));
  succeed(cudaGraphAddEmptyNode(&empty, graph, &record, 1));
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaEventSynchronize(event));
  assert_int_equal(calls, 2);
  for (unsigned i = 0; i < COUNT; i++) assert_int_equal(result[i], 42);
  cudaMemsetParams other = {.dst = x, .value = 1, .elementSize = 4, .width = COUNT, .height = 1};
  succeed(cudaGraphExecMemsetNodeSetParams(exec, set, &other)); /* the exec's, not the graph's */
  succeed(cudaGraphNodeSetEnabled(exec, kernel, 0));
  unsigned enabled = 1;
  succeed(cudaGraphNodeGetEnabled(exec, kernel, &enabled));
  assert_int_equal(enabled, 0);
  expect(cudaGraphNodeSetEnabled(exec, host, 0), cudaErrorInvalidValue);
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaDeviceSynchronize());
  for (unsigned i = 0; i < COUNT; i++) assert_int_equal(result[i], 1);
  succeed(cudaGraphMemsetNodeGetParams(set, &other));
  assert_int_equal(other.value, 6);
  int type;
  succeed(cudaGraphNodeGetType(record, &type));
  assert_int_equal(type, ENGINE_NODE_RECORD);
  expect(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, y, x, COUNT * 4 + 1, cudaMemcpyDeviceToDevice),
         cudaErrorInvalidValue);
  expect(cudaGraphAddMemsetNode(&set, graph, NULL, 0,
                                &(cudaMemsetParams){.dst = x, .elementSize = 3, .width = 1, .height = 1}),
         cudaErrorInvalidValue);
  succeed(cudaGraphExecDestroy(exec));
  expect(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
  succeed(cudaGraphDestroy(graph));
  succeed(cudaEventDestroy(event));
  succeed(cudaFree(x));
  succeed(cudaFree(y));
}

static void updates(void **state) {
  (void)state;
  cudaGraph_t graph, other;
  unsigned *x = device_array(1);
  succeed(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t node = add_scale(graph, NULL, x, 2, 0);
  cudaGraphExec_t exec = instantiate(graph);
  scale_arguments a;
  cudaKernelNodeParams params = scale_params(&a, x, 3, 0);
  succeed(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 3);
  succeed(cudaGraphCreate(&other, 0));
  cudaGraphNode_t first = add_scale(other, NULL, x, 1, 4);
  cudaGraphExecUpdateResultInfo info;
  succeed(cudaGraphExecUpdate(exec, other, &info));
  assert_int_equal(info.result, ENGINE_UPDATE_SUCCESS);
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 7);
  add_scale(other, first, x, 1, 4);
  expect(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
  assert_int_equal(info.result, ENGINE_UPDATE_TOPOLOGY);
  cudaGraphNode_t empty;
  succeed(cudaGraphDestroy(other));
  succeed(cudaGraphCreate(&other, 0));
  succeed(cudaGraphAddEmptyNode(&empty, other, NULL, 0));
  expect(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
  assert_int_equal(info.result, ENGINE_UPDATE_KIND);
  assert_ptr_equal(info.errorNode, empty);
  succeed(cudaGraphLaunch(exec, NULL)); /* as it was */
  assert_all(x, 11);
  succeed(cudaGraphDestroy(other));
  succeed(cudaGraphCreate(&other, 0)); /* what it sets is there no longer */
  succeed(
      cudaGraphAddMemsetNode(&empty, graph, &node, 1,
                             &(cudaMemsetParams){.dst = x, .value = 0, .elementSize = 4, .width = COUNT, .height = 1}));
  cudaGraphExec_t both = instantiate(graph);
  void *gone;
  succeed(cudaMalloc(&gone, COUNT * 4));
  first = add_scale(other, NULL, x, 1, 100);
  succeed(cudaGraphAddMemsetNode(
      &empty, other, &first, 1,
      &(cudaMemsetParams){.dst = gone, .value = 0, .elementSize = 4, .width = COUNT, .height = 1}));
  succeed(cudaFree(gone));
  expect(cudaGraphExecUpdate(both, other, &info), cudaErrorGraphExecUpdateFailure);
  assert_int_equal(info.result, ENGINE_UPDATE_PARAMETERS);
  assert_ptr_equal(info.errorNode, empty);
  succeed(cudaGraphLaunch(both, NULL)); /* the node before it is as it was, too */
  assert_all(x, 0);
  succeed(cudaGraphExecDestroy(both));
  succeed(cudaGraphDestroy(other));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaFree(x));
}

static void conditions(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle;
  unsigned *x = device_array(1), *counter = device_array(0), limit = 5;
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphConditionalHandleCreate(&handle, graph, 1, 1));
  cudaGraphNodeParams params = {.type = ENGINE_NODE_CONDITIONAL};
  params.conditional = (cudaConditionalNodeParams){.handle = handle + 4, .type = ENGINE_CONDITIONAL_WHILE, .size = 1};
  expect(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params), cudaErrorInvalidValue); /* no such condition */
  params.conditional.handle = handle;
  succeed(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  cudaGraph_t body = params.conditional.phGraph_out[0];
  cudaGraphNode_t twice = add_scale(body, NULL, x, 2, 0), decide;
  void *arguments[] = {&handle, &counter, &limit};
  succeed(cudaGraphAddKernelNode(
      &decide, body, &twice, 1,
      &(cudaKernelNodeParams){
          .func = below_stub, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments}));
  expect(cudaGraphDestroy(body), cudaErrorInvalidValue); /* it is the node's */
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 32);
  succeed(cudaMemset(counter, 0, 4));
  limit = 100;                          /* was copied */
  succeed(cudaGraphLaunch(exec, NULL)); /* the condition is its default again */
  assert_all(x, 1024);
  cudaGraph_t around; /* and where the graph is a node of another one */
  succeed(cudaGraphCreate(&around, 0));
  succeed(cudaGraphAddChildGraphNode(&node, around, NULL, 0, graph));
  succeed(cudaMemset(counter, 0, 4));
  run_once(around);
  assert_all(x, 32768);
  succeed(cudaGraphDestroy(around));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaFree(x));
  succeed(cudaFree(counter));
}

/* A graph of one conditional node whose kernel, in its body, sets the graph's own handle. */
static cudaGraph_t counting_graph(unsigned *x, unsigned *counter, unsigned limit, unsigned start, unsigned factor) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle;
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphConditionalHandleCreate(&handle, graph, start, 1));
  cudaGraphNodeParams params = {.type = ENGINE_NODE_CONDITIONAL};
  params.conditional = (cudaConditionalNodeParams){.handle = handle, .type = ENGINE_CONDITIONAL_WHILE, .size = 1};
  succeed(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  cudaGraph_t body = params.conditional.phGraph_out[0];
  cudaGraphNode_t scale = add_scale(body, NULL, x, factor, 0);
  void *arguments[] = {&handle, &counter, &limit};
  succeed(cudaGraphAddKernelNode(
      &node, body, &scale, 1,
      &(cudaKernelNodeParams){
          .func = below_stub, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments}));
  return graph;
}

/* The exec's handle, with its default value, is the new graph's, which may be gone by then. */
static void conditions_are_updated(void **state) {
  (void)state;
  unsigned *x = device_array(1), *counter = device_array(0);
  cudaGraphExecUpdateResultInfo info;
  cudaGraph_t first = counting_graph(x, counter, 2, 1, 2), second = counting_graph(x, counter, 3, 1, 3),
              never = counting_graph(x, counter, 3, 0, 5);
  cudaGraphExec_t exec = instantiate(first);
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 4);
  succeed(cudaGraphDestroy(first));
  succeed(cudaGraphExecUpdate(exec, second, &info));
  succeed(cudaGraphDestroy(second));
  succeed(cudaMemset(counter, 0, 4));
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 4 * 27);
  succeed(cudaGraphExecUpdate(exec, never, &info));
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 4 * 27);
  succeed(cudaGraphDestroy(never));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaFree(x));
  succeed(cudaFree(counter));
}

/* Milliseconds of virtual time that one launch of a graph takes in which two copies, to the device and back, are in a
 * row or not. */
static float time_of_copies(bool row) {
  enum { BYTES = 1 << 24 };
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  cudaEvent_t start, stop;
  char *a, *b, *pinned;
  float ms;
  succeed(cudaMalloc((void **)&a, BYTES));
  succeed(cudaMalloc((void **)&b, BYTES));
  succeed(cudaMallocHost((void **)&pinned, 2 * BYTES));
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddMemcpyNode1D(&first, graph, NULL, 0, a, pinned, BYTES, cudaMemcpyHostToDevice));
  succeed(cudaGraphAddMemcpyNode1D(&second, graph, &first, row, pinned + BYTES, b, BYTES, cudaMemcpyDeviceToHost));
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaGraphLaunch(exec, NULL)); /* makes the streams that it needs */
  succeed(cudaEventCreate(&start));
  succeed(cudaEventCreate(&stop));
  succeed(cudaDeviceSynchronize());
  succeed(cudaEventRecord(start, NULL));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaEventRecord(stop, NULL));
  succeed(cudaEventSynchronize(stop));
  succeed(cudaEventElapsedTime(&ms, start, stop));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaEventDestroy(start));
  succeed(cudaEventDestroy(stop));
  succeed(cudaFree(a));
  succeed(cudaFree(b));
  succeed(cudaFreeHost(pinned));
  return ms;
}

static void branches_overlap(void **state) {
  (void)state;
  float row = time_of_copies(true), parallel = time_of_copies(false);
  assert_true(parallel > 0.4f * row); /* each takes its own time, */
  assert_true(parallel < 0.8f * row); /* at the same time */
}

/* A chain of nodes costs the host one launch: less than half of what as many launches do. */
static void one_launch_pays(void **state) {
  (void)state;
  enum { NODES = 64 };
  cudaGraph_t graph;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  unsigned *x = device_array(0);
  uint64_t before, between, after;
  succeed(cudaStreamCreate(&stream));
  succeed(cudaEventCreate(&start));
  succeed(cudaEventCreate(&stop));
  succeed(cudaStreamBeginCapture(stream, 0));
  for (int i = 0; i < NODES; i++) launch_scale(x, 1, 1, stream);
  succeed(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaDeviceSynchronize());
  succeed(engine_host_time(&before));
  succeed(cudaGraphLaunch(exec, stream));
  succeed(engine_host_time(&between));
  for (int i = 0; i < NODES; i++) launch_scale(x, 1, 1, stream);
  succeed(engine_host_time(&after));
  assert_true(between > before && (between - before) * 2 < after - between);
  succeed(cudaDeviceSynchronize());
  assert_all(x, 2 * NODES);
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamDestroy(stream));
  succeed(cudaEventDestroy(start));
  succeed(cudaEventDestroy(stop));
  succeed(cudaFree(x));
}

/* ---- captures ---- */

static void captures(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  unsigned *x = device_array(1), result[COUNT], calls = 0;
  int status;
  size_t count = 0;
  succeed(cudaStreamCreate(&stream));
  succeed(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, 0);
  expect(cudaStreamBeginCapture(NULL, 0), cudaErrorStreamCaptureUnsupported);
  expect(cudaStreamBeginCapture(stream, 3), cudaErrorInvalidValue);
  expect(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  succeed(cudaStreamBeginCapture(stream, 0));
  expect(cudaStreamBeginCapture(stream, 0), cudaErrorIllegalState);
  succeed(cudaMemsetAsync(x, 0, COUNT * 4, stream));
  launch_scale(x, 1, 3, stream);
  launch_scale(x, 5, 0, stream);
  succeed(cudaMemcpyAsync(result, x, COUNT * 4, cudaMemcpyDeviceToHost, stream));
  succeed(cudaLaunchHostFunc(stream, host_adds, &calls));
  unsigned long long id = 0;
  cudaGraph_t so_far;
  const cudaGraphNode_t *tips;
  succeed(cudaStreamGetCaptureInfo(stream, &status, &id, &so_far, &tips, NULL, &count));
  assert_true(status == 1 && id && count == 1);
  succeed(cudaStreamEndCapture(stream, &graph));
  assert_ptr_equal(graph, so_far);
  assert_int_equal(calls, 0);
  count = 0;
  succeed(cudaGraphGetNodes(graph, NULL, &count));
  assert_int_equal(count, 5);
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaGraphLaunch(exec, stream));
  succeed(cudaStreamSynchronize(stream));
  assert_int_equal(calls, 1);
  for (unsigned i = 0; i < COUNT; i++) assert_int_equal(result[i], 15);
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamDestroy(stream));
  succeed(cudaFree(x));
}

static void fork_and_join(void **state) {
  (void)state;
  cudaStream_t one, two;
  cudaEvent_t forked, joined;
  cudaGraph_t graph;
  unsigned *x = device_array(1), *y = device_array(2), *z = device_array(0);
  succeed(cudaStreamCreate(&one));
  succeed(cudaStreamCreate(&two));
  succeed(cudaEventCreate(&forked));
  succeed(cudaEventCreate(&joined));
  succeed(cudaStreamBeginCapture(one, 0));
  launch_scale(x, 1, 1, one);
  succeed(cudaEventRecord(forked, one));
  succeed(cudaStreamWaitEvent(two, forked, 0));
  int status;
  succeed(cudaStreamIsCapturing(two, &status));
  assert_int_equal(status, 1);
  launch_scale(y, 3, 0, two);
  launch_scale(x, 2, 0, one);
  succeed(cudaEventRecord(joined, two));
  expect(cudaEventQuery(joined), cudaErrorCapturedEvent);
  succeed(cudaStreamWaitEvent(one, joined, 0));
  void *arguments[] = {&x, &y, &z};
  succeed(cudaLaunchKernel(sum_stub, (dim3){1, 1, 1}, (dim3){COUNT, 1, 1}, arguments, 0, one));
  succeed(cudaStreamEndCapture(one, &graph));
  succeed(cudaStreamIsCapturing(two, &status));
  assert_int_equal(status, 0);
  size_t edges = 0;
  succeed(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
  assert_int_equal(edges, 4);
  run_once(graph);
  assert_all(z, 2 * 2 + 6);
  succeed(cudaGraphDestroy(graph));
  /* a stream may go when it is joined, and does not take what it had to do with it */
  for (int join = 0; join < 2; join++) {
    cudaStream_t third;
    succeed(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    succeed(cudaStreamBeginCapture(one, 0));
    succeed(cudaEventRecord(forked, one));
    succeed(cudaStreamWaitEvent(third, forked, 0));
    launch_scale(y, 1, 0, third);
    succeed(cudaEventRecord(joined, third));
    if (join) succeed(cudaStreamWaitEvent(one, joined, 0));
    succeed(cudaStreamDestroy(third));
    cudaError_t error = cudaStreamEndCapture(one, &graph);
    assert_int_equal(error, join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (join) succeed(cudaGraphDestroy(graph));
  }
  /* what is not joined */
  succeed(cudaStreamBeginCapture(one, 0));
  succeed(cudaEventRecord(forked, one));
  succeed(cudaStreamWaitEvent(two, forked, 0));
  launch_scale(y, 3, 0, two);
  expect(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
  assert_null(graph);
  /* ended elsewhere */
  succeed(cudaStreamBeginCapture(one, 0));
  succeed(cudaEventRecord(forked, one));
  succeed(cudaStreamWaitEvent(two, forked, 0));
  expect(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
  expect(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
  succeed(cudaStreamDestroy(one));
  succeed(cudaStreamDestroy(two));
  succeed(cudaEventDestroy(forked));
  succeed(cudaEventDestroy(joined));
  succeed(cudaFree(x));
  succeed(cudaFree(y));
  succeed(cudaFree(z));
}

/* Each of these ends the capture that it breaks. */
static void broken_by(cudaStream_t stream, int which, void *x) {
  char host[4];
  void *p;
  cudaEvent_t event;
  switch (which) {
  case 0: expect(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported); break;
  case 1: expect(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported); break;
  case 2: expect(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported); break;
  case 3: expect(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported); break;
  case 4: expect(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost), cudaErrorStreamCaptureImplicit); break;
  case 5: expect(cudaMemsetAsync(x, 0, 4, NULL), cudaErrorStreamCaptureImplicit); break;
  default:
    expect(cudaEventCreate(&event), cudaSuccess);
    expect(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
    break;
  }
}

static void illegal_calls(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph;
  unsigned *x = device_array(1);
  int status;
  succeed(cudaStreamCreate(&stream));
  for (int which = 0; which < 7; which++) {
    succeed(cudaStreamBeginCapture(stream, 0));
    broken_by(stream, which, x);
    succeed(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, 2);
    expect(cudaMemsetAsync(x, 0, 4, stream), cudaErrorStreamCaptureInvalidated);
    expect(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    succeed(cudaStreamSynchronize(stream));
  }
  void *p;
  succeed(cudaStreamBeginCapture(stream, ENGINE_CAPTURE_RELAXED));
  succeed(cudaMalloc(&p, 4)); /* allowed there */
  succeed(cudaStreamEndCapture(stream, &graph));
  succeed(cudaGraphDestroy(graph));
  int mode = ENGINE_CAPTURE_RELAXED;
  succeed(cudaThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, ENGINE_CAPTURE_GLOBAL);
  succeed(cudaStreamBeginCapture(stream, ENGINE_CAPTURE_GLOBAL));
  succeed(cudaFree(p));
  succeed(cudaThreadExchangeStreamCaptureMode(&mode));
  succeed(cudaStreamEndCapture(stream, &graph));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamBeginCapture(stream, 0));
  succeed(cudaStreamDestroy(stream)); /* and with it the capture */
  succeed(cudaDeviceSynchronize());
  succeed(cudaFree(x));
}

static void *end_elsewhere(void *stream) {
  cudaGraph_t graph;
  expect(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread);
  return NULL;
}

static void into_a_graph(void **state) {
  (void)state;
  cudaStream_t stream;
  cudaGraph_t graph, same;
  pthread_t thread;
  unsigned *x = device_array(1);
  succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  succeed(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = add_scale(graph, NULL, x, 3, 0), other = add_scale(graph, first, x, 1, 1);
  succeed(cudaStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, 0));
  succeed(cudaMemset(x + 1, 0, 0)); /* the legacy stream is not in its way */
  succeed(cudaStreamUpdateCaptureDependencies(stream, &other, NULL, 1, 1));
  launch_scale(x, 10, 0, stream);
  assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, stream), 0);
  pthread_join(thread, NULL);
  succeed(cudaStreamEndCapture(stream, &same));
  assert_ptr_equal(graph, same);
  run_once(graph);
  assert_all(x, 40);
  succeed(cudaGraphDestroy(graph));
  succeed(cudaStreamDestroy(stream));
  succeed(cudaFree(x));
}

/* ---- memory and objects ---- */

static cudaMemAllocNodeParams alloc_params(size_t bytes) {
  return (cudaMemAllocNodeParams){.poolProps = {.allocType = 1, .location = {cudaMemLocationTypeDevice, 0}},
                                  .bytesize = bytes};
}

static uint64_t graph_memory(int attribute) {
  uint64_t value = 1;
  succeed(cudaDeviceGetGraphMemAttribute(0, attribute, &value));
  return value;
}

static void memory_nodes(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaGraphNode_t alloc, set, copy, release, again;
  unsigned *x = device_array(1);
  cudaMemAllocNodeParams params = alloc_params(COUNT * 4);
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
  void *p = params.dptr;
  assert_int_equal(graph_memory(ENGINE_GRAPH_RESERVED), 0); /* no memory before it runs */
  expect(cudaMemset(p, 0, 4), cudaErrorInvalidValue);
  succeed(cudaGraphAddMemsetNode(
      &set, graph, &alloc, 1,
      &(cudaMemsetParams){.dst = p, .value = 77, .elementSize = 4, .width = COUNT, .height = 1}));
  succeed(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, x, p, COUNT * 4, cudaMemcpyDeviceToDevice));
  expect(cudaGraphAddMemFreeNode(&release, graph, NULL, 0, p), cudaErrorInvalidValue); /* not after its allocation */
  succeed(cudaGraphAddMemFreeNode(&release, graph, &copy, 1, p));
  expect(cudaGraphAddMemFreeNode(&again, graph, &copy, 1, p), cudaErrorInvalidValue);
  expect(cudaGraphDestroyNode(alloc), cudaErrorNotSupported);
  expect(cudaGraphDestroyNode(set), cudaErrorNotSupported); /* nor what has an edge in such a graph, nor the edge */
  expect(cudaGraphRemoveDependencies(graph, &alloc, &set, NULL, 1), cudaErrorNotSupported);
  cudaGraphNode_t lone;
  succeed(cudaGraphAddEmptyNode(&lone, graph, NULL, 0));
  succeed(cudaGraphDestroyNode(lone));
  expect(cudaGraphClone(&(cudaGraph_t){NULL}, graph), cudaErrorNotSupported);
  cudaMemAllocNodeParams second = alloc_params(COUNT * 2), third = alloc_params(COUNT * 4);
  succeed(cudaGraphAddMemAllocNode(&again, graph, &release, 1, &second));
  assert_ptr_equal(second.dptr, p); /* the same addresses: it comes after the freeing */
  succeed(cudaGraphAddMemAllocNode(&again, graph, NULL, 0, &third));
  assert_ptr_not_equal(third.dptr, p);
  cudaGraphExec_t exec = instantiate(graph), twice;
  expect(cudaGraphInstantiate(&twice, graph, 0), cudaErrorNotSupported); /* one at a time */
  succeed(cudaGraphLaunch(exec, NULL));
  assert_all(x, 77);
  assert_int_equal(graph_memory(ENGINE_GRAPH_USED), 2 * ENGINE_GRANULARITY); /* the second and the third stay */
  expect(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
  succeed(cudaMemset(third.dptr, 1, 4));
  succeed(cudaFree(second.dptr));
  succeed(cudaFreeAsync(third.dptr, NULL));
  expect(cudaFree(second.dptr), cudaErrorInvalidValue);
  expect(cudaMemset(p, 0, 4), cudaErrorInvalidValue);
  succeed(cudaGraphLaunch(exec, NULL));
  assert_int_equal(graph_memory(ENGINE_GRAPH_RESERVED), 2 * ENGINE_GRANULARITY); /* used again */
  succeed(cudaFree(second.dptr));
  succeed(cudaFree(third.dptr));
  succeed(cudaDeviceSynchronize());
  succeed(cudaDeviceGraphMemTrim(0));
  assert_int_equal(graph_memory(ENGINE_GRAPH_RESERVED), 0);
  assert_int_equal(graph_memory(ENGINE_GRAPH_RESERVED_HIGH), 2 * ENGINE_GRANULARITY);
  succeed(cudaDeviceSetGraphMemAttribute(0, ENGINE_GRAPH_RESERVED_HIGH, &(uint64_t){0}));
  expect(cudaDeviceSetGraphMemAttribute(0, ENGINE_GRAPH_RESERVED_HIGH, &(uint64_t){1}), cudaErrorInvalidValue);
  expect(cudaDeviceSetGraphMemAttribute(0, ENGINE_GRAPH_RESERVED_HIGH, NULL), cudaErrorInvalidValue);
  expect(cudaDeviceSetGraphMemAttribute(0, ENGINE_GRAPH_RESERVED, (void *)-1), cudaErrorInvalidValue);
  expect(cudaDeviceSetGraphMemAttribute(-3, ENGINE_GRAPH_RESERVED, &(uint64_t){0}), cudaErrorInvalidDevice);
  assert_int_equal(graph_memory(ENGINE_GRAPH_RESERVED_HIGH), 0);
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphInstantiateWithFlags(&exec, graph, ENGINE_EXEC_AUTO_FREE));
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaGraphLaunch(exec, NULL)); /* what the launch before left is freed */
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaFree(second.dptr));
  succeed(cudaFree(third.dptr));
  succeed(cudaFree(x));
}

static void objects(void **state) {
  (void)state;
  cudaGraph_t graph, clone;
  cudaUserObject_t object;
  unsigned destroyed = 0;
  expect(cudaUserObjectCreate(&object, &destroyed, host_adds, 1, 0), cudaErrorInvalidValue);
  succeed(cudaUserObjectCreate(&object, &destroyed, host_adds, 2, 1));
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphRetainUserObject(graph, object, 1, 1)); /* moves one */
  succeed(cudaGraphClone(&clone, graph));
  expect(cudaGraphRetainUserObject(graph, object, 2, 1), cudaErrorInvalidValue); /* the program has one left */
  expect(cudaUserObjectRelease(object, 2), cudaErrorInvalidValue);               /* the others are the graphs' */
  succeed(cudaUserObjectRelease(object, 1));
  expect(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
  succeed(cudaUserObjectRetain(object, 1));
  succeed(cudaGraphReleaseUserObject(graph, object, 1));
  expect(cudaGraphReleaseUserObject(graph, object, 1), cudaErrorInvalidValue);
  succeed(cudaGraphRetainUserObject(graph, object, 1, 0));
  succeed(cudaUserObjectRelease(object, 1));
  succeed(cudaGraphDestroy(graph));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(destroyed, 0);
  succeed(cudaGraphDestroy(clone));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(destroyed, 1);
  expect(cudaUserObjectRetain(object, 1), cudaErrorInvalidValue);
}

static cudaGraph_t graph_with_object(unsigned *destroyed) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaUserObject_t object;
  succeed(cudaUserObjectCreate(&object, destroyed, host_adds, 1, 1));
  succeed(cudaGraphCreate(&graph, 0));
  succeed(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  succeed(cudaGraphRetainUserObject(graph, object, 1, 1));
  return graph;
}

/* An exec holds what the graph holds that it was made from, or updated from. */
static void objects_are_updated(void **state) {
  (void)state;
  unsigned old = 0, new = 0;
  cudaGraphExecUpdateResultInfo info;
  cudaGraph_t first = graph_with_object(&old), second = graph_with_object(&new);
  cudaGraphExec_t exec = instantiate(first);
  succeed(cudaGraphDestroy(first));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(old, 0);
  succeed(cudaGraphExecUpdate(exec, second, &info));
  succeed(cudaGraphDestroy(second));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(old, 1);
  assert_int_equal(new, 0);
  succeed(cudaGraphLaunch(exec, NULL));
  succeed(cudaGraphExecDestroy(exec));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(new, 1);
}

static void reset_takes_all(void **state) {
  (void)state;
  cudaGraph_t graph;
  cudaStream_t stream;
  unsigned *x = device_array(1);
  succeed(cudaGraphCreate(&graph, 0));
  add_scale(graph, NULL, x, 1, 1);
  cudaGraphExec_t exec = instantiate(graph);
  succeed(cudaStreamCreate(&stream));
  succeed(cudaDeviceReset());
  expect(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
  expect(cudaGraphDestroy(graph), cudaErrorInvalidValue);
  succeed(cudaDeviceSynchronize());
}

/* While a graph's host function runs, another thread destroys the exec, or its stream, or resets the device. */
typedef struct meanwhile {
  volatile int running, go;
  cudaGraphExec_t exec;
  cudaStream_t stream;
  bool reset;
} meanwhile;

static void wait_to_go(void *data) {
  meanwhile *m = data;
  m->running = 1;
  while (!m->go) usleep(100);
}

static void *destroy_meanwhile(void *data) {
  meanwhile *m = data;
  while (!m->running) usleep(100);
  m->go = 1;
  cudaError_t error = m->reset    ? cudaDeviceReset()
                      : m->stream ? cudaStreamDestroy(m->stream)
                                  : cudaGraphExecDestroy(m->exec);
  assert_int_equal(error, cudaSuccess);
  return NULL;
}

static void gone_while_it_runs(void **state) {
  (void)state;
  for (int i = 0; i < 40; i++) {
    meanwhile m = {.reset = i % 3 == 1};
    cudaGraph_t graph;
    cudaGraphNode_t host;
    pthread_t thread;
    unsigned *x = device_array(1);
    succeed(cudaGraphCreate(&graph, 0));
    succeed(cudaGraphAddHostNode(&host, graph, NULL, 0, &(cudaHostNodeParams){wait_to_go, &m}));
    add_scale(graph, host, x, 2, 0);
    add_scale(graph, host, x, 1, 0); /* in parallel with it, on a stream of the exec's */
    m.exec = instantiate(graph);
    if (i % 3 == 2) succeed(cudaStreamCreate(&m.stream));
    assert_int_equal(pthread_create(&thread, NULL, destroy_meanwhile, &m), 0);
    succeed(cudaGraphLaunch(m.exec, m.stream));
    pthread_join(thread, NULL);
    if (m.stream) { /* what came after the host function was done or not */
      expect(cudaGraphLaunch(m.exec, m.stream), cudaErrorContextIsDestroyed);
      succeed(cudaGraphExecDestroy(m.exec));
    }
    if (!m.reset && !m.stream) {
      assert_all(x, 2); /* what was launched is done */
      succeed(cudaGraphDestroy(graph));
      succeed(cudaFree(x));
    }
    expect(cudaGraphLaunch(m.exec, NULL), cudaErrorInvalidValue);
  }
}

static int run_graph_cases(void) {
  register_all();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_follows_edges),
      cmocka_unit_test(asking),
      cmocka_unit_test(clones),
      cmocka_unit_test(kinds),
      cmocka_unit_test(updates),
      cmocka_unit_test(conditions),
      cmocka_unit_test(conditions_are_updated),
      cmocka_unit_test(conditions_are_updated),
      cmocka_unit_test(branches_overlap),
      cmocka_unit_test(one_launch_pays),
      cmocka_unit_test(captures),
      cmocka_unit_test(fork_and_join),
      cmocka_unit_test(illegal_calls),
      cmocka_unit_test(into_a_graph),
      cmocka_unit_test(memory_nodes),
      cmocka_unit_test(objects),
      cmocka_unit_test(objects_are_updated),
      cmocka_unit_test(reset_takes_all),
      cmocka_unit_test(gone_while_it_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
