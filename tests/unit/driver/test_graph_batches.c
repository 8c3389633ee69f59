/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs through the driver API: batches of copies as nodes, added and captured; nodes with a context of their own;
 * and captures into a graph whose nodes are there already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_values.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemAllocAsync(CUdeviceptr *, size_t, CUstream),
    cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t),
    cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t), cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream),
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, cudaMemcpyAttributes *, size_t *, size_t,
                               CUstream),
    cuMemcpyWithAttributesAsync(CUdeviceptr, CUdeviceptr, size_t, cudaMemcpyAttributes *, CUstream);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuLaunchHostFunc(CUstream, cudaHostFn_t, void *),
    cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuEventCreate(CUevent *, unsigned), cuEventRecord(CUevent, CUstream),
    cuEventRecordWithFlags(CUevent, CUstream, unsigned), cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph), cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *),
    cuGraphClone(CUgraph *, CUgraph), cuGraphNodeGetType(CUgraphNode, int *), cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphAddNode_v3(CUgraphNode *, CUgraph, const CUgraphNode *, const engine_edge *, size_t,
                           CUgraphNodeParams *),
    cuGraphNodeSetParams(CUgraphNode, CUgraphNodeParams *), cuGraphNodeGetParams(CUgraphNode, CUgraphNodeParams *),
    cuGraphExecNodeSetParams(CUgraphExec, CUgraphNode, CUgraphNodeParams *),
    cuGraphAddEmptyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long), cuGraphExecDestroy(CUgraphExec),
    cuGraphLaunch(CUgraphExec, CUstream), cuGraphExecUpdate_v2(CUgraphExec, CUgraph, cudaGraphExecUpdateResultInfo *),
    cuGraphDebugDotPrint(CUgraph, const char *, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, CUgraph *),
    cuStreamIsCapturing(CUstream, int *);
CUresult cuUserObjectCreate(CUuserObject *, void *, cudaHostFn_t, unsigned, unsigned),
    cuGraphRetainUserObject(CUgraph, CUuserObject, unsigned, unsigned);
typedef CUresult (*recaptured)(void *, CUgraphNode, const CUgraphNodeParams *, const CUgraphNodeParams *, int);
CUresult cuStreamBeginRecaptureToGraph(CUstream, int, CUgraph, recaptured, void *);
typedef struct resource { /* CUdevResource */
  int type;
  unsigned char padding[92];
  struct {
    unsigned count, least, alignment, flags, domain, unused[7];
  } sm;
} resource;
CUresult cuDeviceGetDevResource(CUdevice, resource *, int),
    cuDevSmResourceSplitByCount(resource *, unsigned *, const resource *, resource *, unsigned, unsigned),
    cuDevResourceGenerateDesc(void **, resource *, unsigned),
    cuGreenCtxCreate(CUgreenCtx *, void *, CUdevice, unsigned), cuGreenCtxDestroy(CUgreenCtx),
    cuCtxFromGreenCtx(CUcontext *, CUgreenCtx), cuGreenCtxStreamCreate(CUstream *, CUgreenCtx, unsigned, int);
CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph),
    cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph *), cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *, CUstream),
    cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream),
    cuMemsetD16Async(CUdeviceptr, unsigned short, size_t, CUstream),
    cuMemsetD2D32Async(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void **),
    cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult cuGraphConditionalHandleCreate(uint64_t *, CUgraph, CUcontext, unsigned, unsigned);

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)
enum {
  ILLEGAL_STATE = 401,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  UPDATE_FAILURE = 910,
  RECAPTURE_FAILURE = 918,
  BLOCKS = 60,
  SM_RESOURCE = 1
};

static const char text[] =
    ".version 7.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [value];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, %r1;\nst.global.u32 [%rd3], %r3;\nret;\n}\n"
    ".visible .entry where(.param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r1, %smid;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r1;\nret;\n}\n";

static CUcontext context;
static CUfunction add, where;
static CUdeviceptr data; /* 64 words */
static CUstream stream;

static uint32_t word(unsigned at) {
  uint32_t value;
  succeed(cuMemcpyDtoH_v2(&value, data + 4 * at, 4));
  return value;
}

static void count_up(void) { /* word i is i */
  uint32_t words[64];
  for (uint32_t i = 0; i < 64; i++) words[i] = i;
  succeed(cuMemcpyHtoD_v2(data, words, sizeof words));
}

static void launch(CUgraphExec exec) {
  succeed(cuGraphLaunch(exec, stream));
  succeed(cuCtxSynchronize());
}

static size_t nodes_of(CUgraph graph, CUgraphNode *nodes) { /* room for eight */
  size_t count = 8;
  succeed(cuGraphGetNodes(graph, nodes, &count));
  return count;
}

/* ---- batches ---- */

static CUdeviceptr to[3], from[3];
static size_t sizes[3], starts[2] = {0, 2};
static cudaMemcpyAttributes kinds[2] = {{.srcAccessOrder = 1}, {.srcAccessOrder = 3}};

/* Words 0, 1 to 8, 9; 2 to 10; nothing to 11. */
static CUgraphNodeParams batch(void) {
  for (unsigned i = 0; i < 3; i++) {
    from[i] = data + 8 * i;
    to[i] = data + 32 + 8 * i;
    sizes[i] = i < 2 ? 8 - 4 * i : 0;
  }
  CUgraphNodeParams params = {.type = ENGINE_NODE_BATCH};
  params.memcpyBatch =
      (cudaMemcpyBatchNodeParams){3, (void **)(uintptr_t)to, (void **)(uintptr_t)from, sizes, kinds, starts, 2, NULL};
  return params;
}

static bool copied(void) { return word(8) == 0 && word(9) == 1 && word(10) == 2 && word(11) == 11 && word(12) == 12; }

static void added(void **state) {
  (void)state;
  CUgraph graph, clone;
  CUgraphNode node, nodes[8];
  CUgraphExec exec, other;
  CUgraphNodeParams params = batch(), found;
  cudaGraphExecUpdateResultInfo info;
  int type;
  assert_int_equal(sizeof params, 256);
  assert_int_equal(sizeof params.memcpyBatch, 64);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  memset(to, 0, sizeof to); /* they were copied */
  succeed(cuGraphNodeGetType(node, &type));
  assert_int_equal(type, 14);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  count_up();
  launch(exec);
  assert_true(copied());

  succeed(cuGraphNodeGetParams(node, &found));
  assert_true(found.type == 14 && found.memcpyBatch.count == 3 && found.memcpyBatch.numAttrs == 2 &&
              found.memcpyBatch.sizes[1] == 4 && found.memcpyBatch.attrsIdxs[1] == 2 &&
              found.memcpyBatch.attrs[1].srcAccessOrder == 3 && found.memcpyBatch.ctx == context);
  succeed(cuGraphNodeSetParams(node, &found)); /* its own lists */
  succeed(cuGraphClone(&clone, graph));
  succeed(cuGraphDestroy(graph));
  succeed(cuGraphInstantiateWithFlags(&other, clone, 0));
  count_up();
  launch(other);
  assert_true(copied());

  /* pointers and sizes may change in an exec; not how many there are, nor their kinds */
  assert_int_equal(nodes_of(clone, nodes), 1);
  node = nodes[0];
  params = batch();
  sizes[2] = 4;
  succeed(cuGraphExecNodeSetParams(other, node, &params));
  count_up();
  launch(other);
  assert_true(word(8) == 0 && word(10) == 2 && word(12) == 4);
  params.memcpyBatch.count = 2;
  params.memcpyBatch.numAttrs = 1;
  invalid(cuGraphExecNodeSetParams(other, node, &params));
  succeed(cuGraphNodeSetParams(node, &params));
  check(cuGraphExecUpdate_v2(other, clone, &info), UPDATE_FAILURE);
  assert_int_equal(info.result, ENGINE_UPDATE_PARAMETERS);
  params = batch();
  params.memcpyBatch.numAttrs = 1; /* fewer kinds, */
  invalid(cuGraphExecNodeSetParams(other, node, &params));
  params = batch();
  starts[1] = 1; /* or from another copy on */
  invalid(cuGraphExecNodeSetParams(other, node, &params));
  starts[1] = 2;
  params = batch();
  kinds[1].flags = 1;
  invalid(cuGraphExecNodeSetParams(other, node, &params));
  kinds[1].flags = 0;
  succeed(cuGraphNodeSetParams(node, &params));
  succeed(cuGraphExecUpdate_v2(other, clone, &info));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphExecDestroy(other));
  succeed(cuGraphDestroy(clone));
}

static void refused(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode node;
  succeed(cuGraphCreate(&graph, 0));
  CUgraphNodeParams params = batch();
  params.memcpyBatch.count = 0;
  invalid(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  params = batch();
  params.memcpyBatch.srcs = NULL;
  invalid(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  params = batch();
  starts[1] = 3; /* no such copy */
  invalid(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  starts[1] = 2;
  params = batch();
  sizes[1] = 1 << 20; /* over the end */
  invalid(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  params = batch();
  params.memcpyBatch.ctx = &params; /* no context */
  check(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_CONTEXT);
  CUgraphNode nodes[8];
  assert_int_equal(nodes_of(graph, nodes), 0);
  succeed(cuGraphDestroy(graph));
}

static void captured(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode nodes[8];
  CUgraphExec exec;
  int type;
  char path[64], dot[1024] = "";
  batch();
  succeed(cuStreamBeginCapture_v2(stream, 0));
  succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream));
  succeed(cuMemcpyWithAttributesAsync(data + 60, data, 4, kinds, stream)); /* a copy as any other */
  succeed(cuStreamEndCapture(stream, &graph));
  assert_int_equal(nodes_of(graph, nodes), 2);
  succeed(cuGraphNodeGetType(nodes[0], &type));
  assert_int_equal(type, 14);
  succeed(cuGraphNodeGetType(nodes[1], &type));
  assert_int_equal(type, ENGINE_NODE_COPY);
  snprintf(path, sizeof path, "/tmp/graph_batches_%d.dot", (int)getpid());
  succeed(cuGraphDebugDotPrint(graph, path, 1));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(fread(dot, 1, sizeof dot - 1, file) > 0);
  fclose(file);
  unlink(path);
  assert_non_null(strstr(dot, "memcpy batch\\n3 copies"));
  count_up();
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(word(8), 8); /* nothing was done yet */
  launch(exec);
  assert_true(copied() && word(15) == 0);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamBeginCapture_v2(stream, 0));
  sizes[0] = 1 << 20;
  invalid(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream)); /* which ends the capture */
  check(cuStreamEndCapture(stream, &graph), CAPTURE_INVALIDATED);
}

/* ---- nodes with a context ---- */

static CUgreenCtx green_of(const resource *device, unsigned count) {
  resource part;
  void *descriptor;
  CUgreenCtx green;
  unsigned groups = 1;
  succeed(cuDevSmResourceSplitByCount(&part, &groups, device, NULL, 0, count));
  assert_int_equal(part.sm.count, count);
  succeed(cuDevResourceGenerateDesc(&descriptor, &part, 1));
  succeed(cuGreenCtxCreate(&green, descriptor, 0, 1));
  return green;
}

/* Of how many SMs were the blocks of the launch? */
static unsigned seen(CUgraphExec exec, CUstream launched) {
  uint32_t sms[BLOCKS];
  unsigned count = 0;
  bool set[256] = {false};
  succeed(cuMemsetD8_v2(data, 0xff, sizeof sms));
  succeed(cuGraphLaunch(exec, launched));
  succeed(cuCtxSynchronize());
  succeed(cuMemcpyDtoH_v2(sms, data, sizeof sms));
  for (int i = 0; i < BLOCKS; i++) {
    assert_true(sms[i] < 256);
    count += !set[sms[i]];
    set[sms[i]] = true;
  }
  return count;
}

static CUgraphNodeParams asking(void *named) {
  static void *arguments[] = {&data};
  CUgraphNodeParams params = {.type = ENGINE_NODE_KERNEL};
  params.kernel = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = BLOCKS,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 32,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = arguments,
                                            .kern = where,
                                            .ctx = named};
  return params;
}

static void in_contexts(void **state) {
  (void)state;
  resource device;
  CUgreenCtx small, large;
  CUcontext small_context;
  CUstream in_large, in_small;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  CUgraphNodeParams params, found;
  unsigned all = 0;
  succeed(cuDeviceGetDevResource(0, &device, SM_RESOURCE));
  all = device.sm.count < BLOCKS ? device.sm.count : BLOCKS;
  small = green_of(&device, 4);
  large = green_of(&device, 8);
  succeed(cuCtxFromGreenCtx(&small_context, small));
  succeed(cuGreenCtxStreamCreate(&in_small, small, cudaStreamNonBlocking, 0));
  succeed(cuGreenCtxStreamCreate(&in_large, large, cudaStreamNonBlocking, 0));

  /* none: the SMs of the stream of the launch */
  params = asking(NULL);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, stream), all);
  assert_int_equal(seen(exec, in_large), 8);

  /* one, by either handle: its own, wherever it is launched; an exec's node stays where it is */
  params = asking(small_context);
  invalid(cuGraphExecNodeSetParams(exec, node, &params));
  succeed(cuGraphNodeSetParams(node, &params));
  check(cuGraphExecUpdate_v2(exec, graph, &(cudaGraphExecUpdateResultInfo){0}), UPDATE_FAILURE);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, stream), 4);
  assert_int_equal(seen(exec, in_large), 4);
  succeed(cuGraphNodeGetParams(node, &found));
  assert_ptr_equal(found.kernel.ctx, small_context);
  params = asking(large);
  succeed(cuGraphNodeSetParams(node, &params));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, in_small), 8);
  params = asking(NULL); /* stays */
  succeed(cuGraphExecNodeSetParams(exec, node, &params));
  assert_int_equal(seen(exec, stream), 8);
  params = asking(context); /* all SMs */
  succeed(cuGraphNodeSetParams(node, &params));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, in_small), all);
  succeed(cuGraphNodeGetParams(node, &found));
  assert_ptr_equal(found.kernel.ctx, context);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));

  /* what is current when it is added, or the captured stream's; a function's context is its module's */
  succeed(cuCtxSetCurrent(small_context));
  params = asking(NULL);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  succeed(cuCtxSetCurrent(context));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, stream), 4);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamBeginCapture_v2(in_large, 0));
  succeed(cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, in_large, (void *[]){&data}, NULL));
  succeed(cuStreamEndCapture(in_large, &graph));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, stream), 8);
  succeed(cuGraphDestroy(graph));
  succeed(cuGreenCtxDestroy(large));
  check(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  succeed(cuGraphExecDestroy(exec));
  params = asking(small);
  params.kernel.func = where;
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(seen(exec, stream), all);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamDestroy_v2(in_small));
  succeed(cuStreamDestroy_v2(in_large));
  succeed(cuGreenCtxDestroy(small));
}

static size_t streams_there(void) {
  size_t count = 0;
  for (const engine_stream *s = ff_engine.streams; s; s = s->next) count++;
  return count;
}

/* The streams that an exec has for nodes of other contexts serve whichever streams it is launched in. */
static void launched_in_many(void **state) {
  (void)state;
  resource device;
  CUstream launched;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  succeed(cuDeviceGetDevResource(0, &device, SM_RESOURCE));
  CUgreenCtx green = green_of(&device, 4);
  CUgraphNodeParams params = asking(green);
  const size_t before = streams_there();
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int turn = 0; turn < 4; turn++) {
    succeed(cuStreamCreate(&launched, cudaStreamNonBlocking));
    for (int again = 0; again < 2; again++) assert_int_equal(seen(exec, launched), 4);
    succeed(cuStreamDestroy_v2(launched));
  }
  assert_int_equal(streams_there(), before + 1);
  succeed(cuStreamCreateWithPriority(&launched, cudaStreamNonBlocking, -1)); /* which its nodes have as well */
  assert_int_equal(seen(exec, launched), 4);
  succeed(cuStreamDestroy_v2(launched));
  assert_int_equal(streams_there(), before + 2);
  succeed(cuGraphExecDestroy(exec));
  assert_int_equal(streams_there(), before);
  succeed(cuGraphDestroy(graph));
  succeed(cuGreenCtxDestroy(green));
}

/* ---- captured again ---- */

typedef struct told {
  int calls, status, type;
  unsigned before, now; /* values of a set, or of the kernel's second argument */
  CUgraphNode node;
  CUgraphExec exec; /* that gets the same; NULL: none does */
  CUresult answer;
} told;

static unsigned value_of(const CUgraphNodeParams *params) {
  return params->type == ENGINE_NODE_SET ? params->memset.params.value
         : params->type == ENGINE_NODE_KERNEL
             ? (params->kernel.kernelParams[1] ? *(unsigned *)params->kernel.kernelParams[1] : 0)
             : 0;
}

static CUresult listen(void *data_of, CUgraphNode node, const CUgraphNodeParams *before, const CUgraphNodeParams *now,
                       int status) {
  told *t = data_of;
  t->calls++;
  t->status = status;
  t->type = now->type;
  t->before = value_of(before);
  t->now = value_of(now);
  t->node = node;
  if (t->exec) succeed(cuGraphExecNodeSetParams(t->exec, node, (CUgraphNodeParams *)(uintptr_t)now));
  return t->answer;
}

static void put(unsigned set, unsigned added_value) { /* what is captured: word 0 becomes both */
  succeed(cuMemsetD32Async(data, set, 1, stream));
  succeed(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&data, &added_value}, NULL));
}

static CUgraph first_capture(unsigned set, unsigned added_value) {
  CUgraph graph;
  succeed(cuStreamBeginCapture_v2(stream, 0));
  put(set, added_value);
  succeed(cuStreamEndCapture(stream, &graph));
  return graph;
}

static void again(void **state) {
  (void)state;
  CUgraph graph = first_capture(5, 10), same;
  CUgraphNode nodes[8], later[8];
  CUgraphExec exec;
  told t = {0};
  assert_int_equal(nodes_of(graph, nodes), 2);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  launch(exec);
  assert_int_equal(word(0), 15);
  t.exec = exec;
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, listen, &t));
  put(5, 20); /* the set is as it was */
  succeed(cuStreamEndCapture(stream, &same));
  assert_ptr_equal(same, graph);
  assert_true(t.calls == 1 && t.status == 0 && t.type == ENGINE_NODE_KERNEL && t.before == 10 && t.now == 20 &&
              t.node == nodes[1]);
  assert_int_equal(nodes_of(graph, later), 2);
  assert_true(later[0] == nodes[0] && later[1] == nodes[1]);
  launch(exec); /* which the function has changed */
  assert_int_equal(word(0), 25);

  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, NULL, NULL)); /* nothing is asked */
  put(6, 30);
  succeed(cuStreamEndCapture(stream, NULL));
  launch(exec);
  assert_int_equal(word(0), 25);
  succeed(cuGraphExecUpdate_v2(exec, graph, &(cudaGraphExecUpdateResultInfo){0}));
  launch(exec);
  assert_int_equal(word(0), 36);

  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, listen, &t)); /* nothing has changed */
  put(6, 30);
  succeed(cuStreamEndCapture(stream, NULL));
  assert_int_equal(t.calls, 1);
  unsigned value = 30;
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, listen, &t)); /* more shared memory */
  succeed(cuMemsetD32Async(data, 6, 1, stream));
  succeed(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 64, stream, (void *[]){&data, &value}, NULL));
  succeed(cuStreamEndCapture(stream, NULL));
  assert_int_equal(t.calls, 2);
  t = (told){0};
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, listen, &t));
  succeed(cuMemsetD32Async(data, 6, 1, stream));
  succeed(cuLaunchKernel(where, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&data}, NULL)); /* another function */
  succeed(cuStreamEndCapture(stream, NULL));
  assert_int_equal(t.calls, 1);
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, NULL, NULL));
  succeed(cuMemsetD32Async(data, 6, 1, stream));
  succeed(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&data, &value}, NULL));
  succeed(cuStreamEndCapture(stream, NULL));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
}

static void begin_again(CUgraph graph, told *t) {
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, t ? listen : NULL, t));
}
static void ends_invalid(CUgraph graph) {
  CUgraph none;
  check(cuStreamEndCapture(stream, &none), CAPTURE_INVALIDATED);
  succeed(cuGraphDestroy(graph));
}

static void not_the_same(void **state) {
  (void)state;
  unsigned value = 1;
  void *arguments[] = {&data, &value};
  CUgraph graph = first_capture(1, 2);
  begin_again(graph, NULL);
  check(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), RECAPTURE_FAILURE); /* another kind */
  ends_invalid(graph);

  graph = first_capture(1, 2);
  begin_again(graph, NULL);
  put(1, 2);
  check(cuMemsetD32Async(data, 1, 1, stream), RECAPTURE_FAILURE); /* one more */
  ends_invalid(graph);

  graph = first_capture(1, 2);
  begin_again(graph, NULL);
  succeed(cuMemsetD32Async(data, 1, 1, stream)); /* one less */
  check(cuStreamEndCapture(stream, NULL), RECAPTURE_FAILURE);
  succeed(cuGraphDestroy(graph));

  graph = first_capture(1, 2); /* the function says no */
  told t = {.answer = CUDA_ERROR_INVALID_VALUE};
  begin_again(graph, &t);
  check(cuMemsetD32Async(data, 9, 1, stream), RECAPTURE_FAILURE);
  assert_int_equal(t.calls, 1);
  ends_invalid(graph);

  graph = first_capture(1, 2); /* other edges: beside each other */
  CUstream second;
  CUevent event;
  succeed(cuStreamCreate(&second, cudaStreamNonBlocking));
  succeed(cuEventCreate(&event, 0));
  begin_again(graph, NULL);
  succeed(cuEventRecord(event, stream));
  succeed(cuStreamWaitEvent(second, event, 0));
  succeed(cuMemsetD32Async(data, 1, 1, stream));
  check(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, second, arguments, NULL), RECAPTURE_FAILURE);
  ends_invalid(graph);
  succeed(cuStreamDestroy_v2(second));

  graph = first_capture(1, 2); /* what would not be launched */
  begin_again(graph, &t);
  invalid(cuMemsetD32Async(data, 1, 1 << 28, stream));
  ends_invalid(graph);

  CUgraphNode nodes[8], made; /* as many edges, from others; or one twice */
  for (int twice = 0; twice < 2; twice++) {
    succeed(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 2; i++) succeed(cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
    succeed(cuGraphAddEmptyNode(&nodes[2], graph, nodes, twice ? 2 : 1));
    begin_again(graph, NULL);
    for (int i = 0; i < 2; i++) succeed(cuGraphAddEmptyNode(&made, graph, NULL, 0));
    const CUgraphNode before[2] = {nodes[1], nodes[1]};
    check(cuGraphAddEmptyNode(&made, graph, before, twice ? 2 : 1), RECAPTURE_FAILURE);
    ends_invalid(graph);
  }

  int status;
  invalid(cuStreamBeginRecaptureToGraph(stream, 0, NULL, NULL, NULL));
  invalid(cuStreamBeginRecaptureToGraph(stream, 3, NULL, NULL, NULL));
  succeed(cuStreamIsCapturing(stream, &status));
  assert_int_equal(status, 0);
}

static int dropped;
static void drop(void *unused) {
  (void)unused;
  dropped++;
}
static void nothing(void *unused) { (void)unused; }

/* Memory, host functions, events, values, batches; nodes that are added meanwhile. */
static void of_all_kinds(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode nodes[8];
  CUuserObject object;
  CUevent event;
  told t = {0};
  CUdeviceptr memory[2] = {0};
  succeed(cuEventCreate(&event, 0));
  for (int turn = 0; turn < 2; turn++) {
    if (turn) begin_again(graph, &t);
    else succeed(cuStreamBeginCapture_v2(stream, 0));
    batch();
    succeed(cuMemAllocAsync(&memory[turn], 4096, stream));
    succeed(cuMemcpyDtoDAsync_v2(memory[turn], data, 64, stream));
    succeed(cuLaunchHostFunc(stream, nothing, NULL));
    succeed(cuEventRecordWithFlags(event, stream, 1));
    succeed(cuStreamWriteValue32_v2(stream, data + 128, 3, 0));
    succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream));
    succeed(cuMemFreeAsync(memory[turn], stream));
    succeed(cuStreamEndCapture(stream, &graph));
    if (turn) continue;
    succeed(cuUserObjectCreate(&object, NULL, drop, 1, 1));
    succeed(cuGraphRetainUserObject(graph, object, 1, 1));
  }
  assert_int_equal(t.calls, 0);
  assert_true(memory[0] == memory[1] && nodes_of(graph, nodes) == 7);
  succeed(cuCtxSynchronize());
  assert_int_equal(dropped, 1); /* the graph's objects go when it is captured again */

  /* other memory is another graph */
  begin_again(graph, &t);
  check(cuMemAllocAsync(&memory[0], 8192, stream), RECAPTURE_FAILURE);
  ends_invalid(graph);

  /* what an exec could not take is said to be so: another count of operations */
  succeed(cuStreamBeginCapture_v2(stream, 0));
  succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream));
  succeed(cuStreamEndCapture(stream, &graph));
  begin_again(graph, &t);
  succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 2, kinds, starts, 1, stream));
  succeed(cuStreamEndCapture(stream, &graph));
  assert_true(t.calls == 1 && t.status == 1 && t.type == ENGINE_NODE_BATCH);
  begin_again(graph, &t);
  to[0] += 8;
  succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 2, kinds, starts, 1, stream));
  succeed(cuStreamEndCapture(stream, &graph));
  assert_true(t.calls == 2 && t.status == 0);
  succeed(cuGraphDestroy(graph));

  /* a node that is added by its own call is the next one, too */
  CUgraphNode node, made;
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddEmptyNode(&node, graph, NULL, 0));
  begin_again(graph, &t);
  succeed(cuGraphAddEmptyNode(&made, graph, NULL, 0));
  assert_ptr_equal(made, node);
  succeed(cuStreamEndCapture(stream, NULL));
  assert_int_equal(nodes_of(graph, nodes), 1);
  succeed(cuGraphDestroy(graph));

  /* conditional nodes are not */
  uint64_t handle;
  CUgraphNodeParams params = {.type = ENGINE_NODE_CONDITIONAL};
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphConditionalHandleCreate(&handle, graph, context, 1, 1));
  params.conditional = (cudaConditionalNodeParams){.handle = handle, .type = 0, .size = 1};
  succeed(cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &params));
  begin_again(graph, &t);
  check(cuGraphAddNode_v3(&made, graph, NULL, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
  ends_invalid(graph);
}

/* ---- each of what makes a node another one ---- */

static uint32_t on_host[64];

static void one(unsigned which, bool other) {
  unsigned value = 1;
  void *arguments[] = {&data, &value};
  CUDA_MEMCPY2D rows = {.srcMemoryType = 2, .dstMemoryType = 2, .srcDevice = data, .dstDevice = data + 128};
  rows.srcPitch = rows.dstPitch = 16;
  rows.WidthInBytes = 8, rows.Height = 2;
  switch (which) {
  case 0:
    succeed((other ? cuLaunchCooperativeKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, arguments)
                   : cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL)));
    break;
  case 1:
    rows.dstPitch += other ? 16 : 0;
    succeed(cuMemcpy2DAsync_v2(&rows, stream));
    break;
  case 2:
    rows.srcPitch += other ? 16 : 0;
    succeed(cuMemcpy2DAsync_v2(&rows, stream));
    break;
  case 3:
    rows.dstMemoryType = 1, rows.dstHost = on_host + (other ? 4 : 0);
    succeed(cuMemcpy2DAsync_v2(&rows, stream));
    break;
  case 4: succeed((other ? cuMemsetD16Async(data, 1, 4, stream) : cuMemsetD8Async(data, 1, 4, stream))); break;
  case 5: succeed(cuMemsetD2D32Async(data, other ? 32 : 16, 1, 2, 2, stream)); break;
  case 6: succeed(cuStreamWriteValue32_v2(stream, data, 1, other)); break;
  case 7:
    batch();
    from[1] += other ? 4 : 0;
    succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream));
    break;
  case 8:
    batch();
    sizes[1] += other ? 4 : 0;
    succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, stream));
    break;
  default: {
    batch();
    cudaMemcpyAttributes hinted[2] = {kinds[0], kinds[1]};
    hinted[1].dstLocHint = (cudaMemLocation){.type = cudaMemLocationTypeDevice, .id = other};
    succeed(cuMemcpyBatchAsync_v2(to, from, sizes, 3, hinted, starts, 2, stream));
  }
  }
}
enum { WAYS = 10 };

static void told_apart(void **state) {
  (void)state;
  for (unsigned which = 0; which < WAYS; which++) {
    CUgraph graph;
    told t = {.status = 9};
    succeed(cuStreamBeginCapture_v2(stream, 0));
    one(which, false);
    succeed(cuStreamEndCapture(stream, &graph));
    for (int turn = 0; turn < 3; turn++) { /* as it is; otherwise; as that */
      begin_again(graph, &t);
      one(which, turn);
      succeed(cuStreamEndCapture(stream, NULL));
      assert_int_equal(t.calls, turn > 0);
    }
    /* an exec's node stays cooperative or not, and keeps a write's flags and a batch's hints */
    assert_int_equal(t.status, which == 0 || which == 6 || which == 9);
    succeed(cuGraphDestroy(graph));
  }
}

/* ---- the program's function ends what it was called for ---- */

static CUresult end_it(void *data_of, CUgraphNode node, const CUgraphNodeParams *before, const CUgraphNodeParams *now,
                       int status) {
  (void)node, (void)before, (void)now, (void)status;
  succeed(cuGraphDestroy(*(CUgraph *)data_of));
  return CUDA_SUCCESS;
}

static CUresult end_node(void *data_of, CUgraphNode node, const CUgraphNodeParams *before, const CUgraphNodeParams *now,
                         int status) {
  (void)data_of, (void)before, (void)now, (void)status;
  succeed(cuGraphDestroyNode(node));
  return CUDA_SUCCESS;
}

/* Where the captured stream's work is done is a parameter, too. */
static void elsewhere(void **state) {
  (void)state;
  resource device;
  CUstream in_green;
  CUgraph graph;
  CUgraphExec exec;
  told t = {0};
  succeed(cuDeviceGetDevResource(0, &device, SM_RESOURCE));
  CUgreenCtx green = green_of(&device, 4);
  succeed(cuGreenCtxStreamCreate(&in_green, green, cudaStreamNonBlocking, 0));
  for (int turn = 0; turn < 3; turn++) {
    CUstream captured_one = turn == 1 ? in_green : stream;
    if (turn) succeed(cuStreamBeginRecaptureToGraph(captured_one, 0, graph, listen, &t));
    else succeed(cuStreamBeginCapture_v2(captured_one, 0));
    succeed(cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, captured_one, (void *[]){&data}, NULL));
    succeed(cuStreamEndCapture(captured_one, &graph));
    assert_int_equal(t.calls, turn);
    succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_true((seen(exec, stream) == 4) == (turn == 1));
    succeed(cuGraphExecDestroy(exec));
  }
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamDestroy_v2(in_green));
  succeed(cuGreenCtxDestroy(green));

  /* another green context, which may be at the address of one that is gone */
  for (int turn = 0; turn < 3; turn++) {
    green = green_of(&device, 4);
    succeed(cuGreenCtxStreamCreate(&in_green, green, cudaStreamNonBlocking, 0));
    if (turn) succeed(cuStreamBeginRecaptureToGraph(in_green, 0, graph, NULL, NULL));
    else succeed(cuStreamBeginCapture_v2(in_green, 0));
    succeed(cuLaunchKernel(where, BLOCKS, 1, 1, 32, 1, 1, 0, in_green, (void *[]){&data}, NULL));
    succeed(cuStreamEndCapture(in_green, &graph));
    succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_int_equal(seen(exec, stream), 4);
    succeed(cuGraphExecDestroy(exec));
    succeed(cuStreamDestroy_v2(in_green));
    succeed(cuGreenCtxDestroy(green));
  }
  succeed(cuGraphDestroy(graph));
}

/* What is asked of a node names the context of its device, whichever is current: given back, it changes nothing. */
static void asked_elsewhere(void **state) {
  (void)state;
  CUcontext other;
  CUgraph graph = first_capture(1, 2);
  CUgraphNode nodes[8];
  CUgraphExec exec;
  CUgraphNodeParams params;
  assert_int_equal(nodes_of(graph, nodes), 2);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  succeed(cuDevicePrimaryCtxRetain(&other, 1));
  resource device;
  CUcontext some_sms;
  succeed(cuDeviceGetDevResource(0, &device, SM_RESOURCE));
  CUgreenCtx green = green_of(&device, 4);
  succeed(cuCtxFromGreenCtx(&some_sms, green));
  const CUcontext current[3] = {other, some_sms, NULL};
  for (int turn = 0; turn < 3; turn++) {
    succeed(cuCtxSetCurrent(current[turn]));
    succeed(cuGraphNodeGetParams(nodes[0], &params));
    assert_ptr_equal(params.memset.ctx, context);
    params.memset.params.value = 7;
    succeed(cuGraphExecNodeSetParams(exec, nodes[0], &params));
    succeed(cuGraphNodeSetParams(nodes[0], &params));
  }
  succeed(cuCtxSetCurrent(context));
  succeed(cuGreenCtxDestroy(green));
  launch(exec);
  assert_int_equal(word(0), 9);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
}

/* On another device, and in an exec whose nodes stay where they are. */
static void on_another_device(void **state) {
  (void)state;
  CUcontext other;
  CUstream there;
  CUgraph graph;
  CUgraphNode nodes[8];
  CUgraphExec exec;
  CUgraphNodeParams params = {.type = ENGINE_NODE_SET};
  told t = {0};
  succeed(cuDevicePrimaryCtxRetain(&other, 1));
  succeed(cuCtxSetCurrent(other));
  succeed(cuStreamCreate(&there, cudaStreamNonBlocking));
  succeed(cuCtxSetCurrent(context));
  for (int turn = 0; turn < 3; turn++) {
    CUstream captured_one = turn ? there : stream;
    if (turn) succeed(cuStreamBeginRecaptureToGraph(captured_one, 0, graph, listen, &t));
    else succeed(cuStreamBeginCapture_v2(captured_one, 0));
    succeed(cuLaunchHostFunc(captured_one, nothing, NULL));
    succeed(cuStreamEndCapture(captured_one, &graph));
    assert_int_equal(t.calls, turn > 0); /* the third is as the second */
  }
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamBeginCapture_v2(there, 0));
  succeed(cuMemsetD32Async(data, 1, 1, there));
  succeed(cuStreamEndCapture(there, &graph));
  assert_int_equal(nodes_of(graph, nodes), 1);
  succeed(cuGraphNodeGetParams(nodes[0], &params));
  assert_ptr_equal(params.memset.ctx, other);
  succeed(cuGraphDestroy(graph));
  graph = first_capture(1, 2);
  assert_int_equal(nodes_of(graph, nodes), 2);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  params.memset.params =
      (cudaMemsetParams){.dst = (void *)(uintptr_t)data, .value = 3, .elementSize = 4, .width = 1, .height = 1};
  params.memset.ctx = other;
  invalid(cuGraphExecNodeSetParams(exec, nodes[0], &params));
  params.memset.ctx = context;
  succeed(cuGraphExecNodeSetParams(exec, nodes[0], &params));
  launch(exec);
  assert_int_equal(word(0), 5);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamDestroy_v2(there));
}

static void destroyed_meanwhile(void **state) {
  (void)state;
  CUgraph graph = first_capture(1, 2), none;
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, end_it, &graph));
  check(cuMemsetD32Async(data, 9, 1, stream), CAPTURE_INVALIDATED);
  check(cuStreamEndCapture(stream, &none), CAPTURE_INVALIDATED);
  graph = first_capture(1, 2);
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, end_node, NULL));
  check(cuMemsetD32Async(data, 9, 1, stream), CAPTURE_INVALIDATED);
  ends_invalid(graph);
}

/* Streams and graphs that are none, or are captured already. */
static void begun_in_vain(void **state) {
  (void)state;
  CUgraph graph = first_capture(1, 2), gone = first_capture(1, 2), inner;
  CUgraphNode child, node;
  CUstream second;
  succeed(cuGraphDestroy(gone));
  succeed(cuStreamCreate(&second, cudaStreamNonBlocking));
  succeed(cuStreamDestroy_v2(second));
  invalid(cuStreamBeginRecaptureToGraph(stream, 0, gone, NULL, NULL));
  check(cuStreamBeginRecaptureToGraph(second, 0, graph, NULL, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuStreamBeginRecaptureToGraph(NULL, 0, graph, NULL, NULL), CAPTURE_UNSUPPORTED);
  begin_again(graph, NULL);
  check(cuStreamBeginRecaptureToGraph(stream, 0, graph, NULL, NULL), ILLEGAL_STATE);
  put(3, 4); /* which goes on */
  succeed(cuStreamEndCapture(stream, NULL));

  /* the stream goes, and with it the capture: the graph can be captured once more */
  succeed(cuStreamCreate(&second, cudaStreamNonBlocking));
  succeed(cuStreamBeginRecaptureToGraph(second, 0, graph, NULL, NULL));
  succeed(cuStreamDestroy_v2(second));
  begin_again(graph, NULL);
  put(3, 4);
  succeed(cuStreamEndCapture(stream, NULL));

  /* into a child graph, which is a node's own */
  succeed(cuGraphCreate(&gone, 0));
  succeed(cuGraphAddChildGraphNode(&child, gone, NULL, 0, graph));
  succeed(cuGraphChildGraphNodeGetGraph(child, &inner));
  begin_again(inner, NULL);
  put(5, 6);
  succeed(cuStreamEndCapture(stream, NULL));
  CUgraphExec exec;
  succeed(cuGraphInstantiateWithFlags(&exec, gone, 0));
  launch(exec);
  assert_int_equal(word(0), 11);
  succeed(cuGraphExecDestroy(exec));

  /* a batch that is given its own lists */
  CUgraphNodeParams params = batch(), found;
  succeed(cuGraphAddNode_v3(&node, gone, NULL, NULL, 0, &params));
  succeed(cuGraphNodeGetParams(node, &found));
  succeed(cuGraphNodeSetParams(node, &found));
  invalid(cuGraphNodeGetParams(NULL, &found));
  invalid(cuGraphNodeGetParams(node, NULL));
  check(cuMemcpyBatchAsync_v2(to, from, sizes, 3, kinds, starts, 2, second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  succeed(cuGraphDestroy(gone));
  invalid(cuGraphNodeSetParams(node, &params));
  succeed(cuGraphDestroy(graph));
}

static CUresult reset(void *data_of, CUgraphNode node, const CUgraphNodeParams *before, const CUgraphNodeParams *now,
                      int status) {
  (void)data_of, (void)node, (void)before, (void)now, (void)status;
  return cuDevicePrimaryCtxReset_v2(0);
}

/* The last: all that is on the device goes while a node is looked at. */
static void reset_meanwhile(void **state) {
  (void)state;
  CUgraph graph = first_capture(1, 2);
  succeed(cuStreamBeginRecaptureToGraph(stream, 0, graph, reset, NULL));
  check(cuMemsetD32Async(data, 9, 1, stream), CAPTURE_INVALIDATED);
  assert_true(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
}

static int start(void **state) {
  (void)state;
  CUmodule module;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
         cuModuleLoadData(&module, text) || cuModuleGetFunction(&add, module, "add") ||
         cuModuleGetFunction(&where, module, "where") || cuMemAlloc_v2(&data, 256) ||
         cuStreamCreate(&stream, cudaStreamNonBlocking);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(added),
                                     cmocka_unit_test(refused),
                                     cmocka_unit_test(captured),
                                     cmocka_unit_test(in_contexts),
                                     cmocka_unit_test(launched_in_many),
                                     cmocka_unit_test(again),
                                     cmocka_unit_test(not_the_same),
                                     cmocka_unit_test(of_all_kinds),
                                     cmocka_unit_test(told_apart),
                                     cmocka_unit_test(elsewhere),
                                     cmocka_unit_test(asked_elsewhere),
                                     cmocka_unit_test(on_another_device),
                                     cmocka_unit_test(destroyed_meanwhile),
                                     cmocka_unit_test(begun_in_vain),
                                     cmocka_unit_test(reset_meanwhile)};
  return cmocka_run_group_tests(tests, start, NULL);
}
