/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs that write values or wait for them, made by hand and captured; what any node is; the numbers of
 * graphs and nodes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda_graph.h"
#include "driver/engine/engine_values.h"

CUresult cuInit(unsigned), cuDeviceGetAttribute(int *, int, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemHostAlloc(void **, size_t, unsigned), cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph), cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *),
    cuGraphClone(CUgraph *, CUgraph), cuGraphNodeGetType(CUgraphNode, int *), cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const engine_edge *, size_t,
                           CUgraphNodeParams *);
CUresult cuGraphAddBatchMemOpNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *),
    cuGraphBatchMemOpNodeSetParams(CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *),
    cuGraphExecBatchMemOpNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long), cuGraphExecDestroy(CUgraphExec),
    cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, cudaGraphExecUpdateResultInfo *);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned),
    cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned),
    cuStreamBatchMemOp_v2(CUstream, unsigned, engine_value *, unsigned);
CUresult cuGraphNodeGetParams(CUgraphNode, CUgraphNodeParams *), cuGraphGetId(CUgraph, unsigned *),
    cuGraphExecGetId(CUgraphExec, unsigned *), cuGraphNodeGetContainingGraph(CUgraphNode, CUgraph *),
    cuGraphNodeGetLocalId(CUgraphNode, unsigned *), cuGraphNodeGetToolsId(CUgraphNode, unsigned long long *);
CUresult cuGraphAddEmptyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t),
    cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const cudaMemsetParams *, CUcontext),
    cuGraphAddHostNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const cudaHostNodeParams *),
    cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, cudaMemAllocNodeParams *),
    cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph),
    cuGraphDebugDotPrint(CUgraph, const char *, unsigned);

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)
enum { BATCH = 12, EQUAL = 1 };

static CUcontext context;
static CUdeviceptr data; /* four words */

static engine_value operation(int type, CUdeviceptr at, uint64_t value, unsigned flags) {
  return (engine_value){.of = {.type = type, .address = at, .value = value, .flags = flags}};
}
static CUDA_BATCH_MEM_OP_NODE_PARAMS batch(engine_value *list, unsigned count) {
  return (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = context, .count = count, .paramArray = list};
}
static uint32_t word(int at) {
  uint32_t value;
  succeed(cuMemcpyDtoH_v2(&value, data + 4 * (unsigned)at, 4));
  return value;
}
static void clear(void) { succeed(cuMemsetD8_v2(data, 0, 16)); }

static void launch(CUgraphExec exec) {
  succeed(cuGraphLaunch(exec, NULL));
  succeed(cuCtxSynchronize());
}

static void added(void **state) {
  (void)state;
  CUgraph graph, clone;
  CUgraphExec exec, other;
  CUgraphNode node, second;
  int type;
  engine_value list[] = {operation(ENGINE_VALUE_WRITE_32, data, 7, 0),
                         operation(ENGINE_VALUE_WAIT_32, data, 7, EQUAL),
                         {.type = ENGINE_VALUE_BARRIER},
                         operation(ENGINE_VALUE_WRITE_64, data + 8, UINT64_C(0x1122334455667788), 0)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch(list, 4), found;
  clear();
  assert_int_equal(sizeof params, 32);
  succeed(cuGraphCreate(&graph, 0));
  invalid(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, NULL));
  succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  succeed(cuGraphNodeGetType(node, &type));
  assert_int_equal(type, BATCH);
  CUgraphNodeParams any = {.type = BATCH, .memOp = batch(&list[0], 1)};
  list[0].of.address = data + 4;
  succeed(cuGraphAddNode_v2(&second, graph, &node, NULL, 1, &any));
  memset(list, 0, sizeof list); /* they were copied */
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  launch(exec);
  assert_true(word(0) == 7 && word(1) == 7 && word(2) == 0x55667788 && word(3) == 0x11223344);

  succeed(cuGraphBatchMemOpNodeGetParams(node, &found));
  assert_true(found.count == 4 && found.paramArray[3].of.value == UINT64_C(0x1122334455667788));
  found.paramArray = memcpy(list, found.paramArray, sizeof list);
  list[0].of.value = list[1].of.value = 9;
  succeed(cuGraphExecBatchMemOpNodeSetParams(exec, node, &found));
  clear();
  launch(exec);
  assert_int_equal(word(0), 9);
  succeed(cuGraphBatchMemOpNodeGetParams(node, &params)); /* the node is as it was */
  assert_int_equal(params.paramArray[0].of.value, 7);
  succeed(cuGraphBatchMemOpNodeSetParams(node, &params)); /* with its own list */
  succeed(cuGraphClone(&clone, graph));
  succeed(cuGraphDestroy(graph));
  succeed(cuGraphInstantiateWithFlags(&other, clone, 0));
  clear();
  launch(other);
  assert_true(word(0) == 7 && word(1) == 7);
  succeed(cuGraphExecUpdate_v2(exec, clone, &(cudaGraphExecUpdateResultInfo){0}));
  clear();
  launch(exec);
  assert_int_equal(word(0), 7);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphExecDestroy(other));
  succeed(cuGraphDestroy(clone));
}

static engine_value reduction(int operation, int data_type, CUdeviceptr at, uint64_t value) {
  return (engine_value){
      .reduce = {
          .type = ENGINE_VALUE_REDUCE, .operation = operation, .data = data_type, .address = at, .value = value}};
}

static void reduced(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode node;
  engine_value list[] = {
      reduction(ENGINE_REDUCE_OR, ENGINE_REDUCE_U32, data, UINT64_C(0xff0000000c)), /* its lower half */
      reduction(ENGINE_REDUCE_AND, ENGINE_REDUCE_U32, data, 0xa),
      reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U32, data, 0xffffffff),
      reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U64, data + 8, UINT64_C(0x100000001)),
      reduction(ENGINE_REDUCE_OR, ENGINE_REDUCE_U64, data + 8, UINT64_C(0x3000000000)),
      reduction(ENGINE_REDUCE_AND, ENGINE_REDUCE_U64, data + 8, UINT64_C(0x2fffffffff))};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch(list, 6);
  assert_int_equal(offsetof(engine_value, reduce.address), 16);
  for (int way = 0; way < 2; way++) { /* in a stream, and as a node */
    succeed(cuMemsetD8_v2(data, 1, 4));
    succeed(cuMemsetD8_v2(data + 4, 0xff, 12));
    if (way == 0) {
      succeed(cuStreamBatchMemOp_v2(NULL, 6, list, 0));
    } else {
      succeed(cuGraphCreate(&graph, 0));
      succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
      succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
      launch(exec);
    }
    assert_int_equal(word(0), 7); /* ((0x01010101 | 0xc) & 0xa) - 1 */
    assert_int_equal(word(1), 0xffffffff);
    assert_true(word(2) == 0 && word(3) == 0x21); /* (0x100000000 | 0x3000000000) & 0x2fffffffff */
  }
  list[0].reduce.value = 0x70, list[1].reduce.value = 0xff, list[2].reduce.value = 1;
  succeed(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)); /* other values */
  clear();
  launch(exec);
  assert_int_equal(word(0), 0x71);
  list[0].reduce.operation = ENGINE_REDUCE_AND; /* another operation is another node */
  invalid(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
  list[0] = reduction(ENGINE_REDUCE_OR, ENGINE_REDUCE_U64, data, 1);
  invalid(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  engine_value wrong[] = {reduction(1, ENGINE_REDUCE_U32, data, 1),
                          reduction(ENGINE_REDUCE_ADD, 0, data, 1),
                          reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U32, data + 2, 1),
                          reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U64, data + 4, 1),
                          reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U32, data + 16, 1),
                          reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U32, 0, 1),
                          reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U32, data, 1)};
  wrong[6].reduce.flags = 1;
  clear();
  for (int i = 0; i < 7; i++) invalid(cuStreamBatchMemOp_v2(NULL, 1, &wrong[i], 0));
  assert_true(!word(0) && !word(1));
  uint64_t *pinned;
  int supported = 0;
  succeed(cuDeviceGetAttribute(&supported, 148, 0));
  assert_int_equal(supported, 1);
  succeed(cuMemHostAlloc((void **)&pinned, 8, 0));
  *pinned = 5;
  list[0] = reduction(ENGINE_REDUCE_ADD, ENGINE_REDUCE_U64, (uintptr_t)pinned, 37);
  succeed(cuStreamBatchMemOp_v2(NULL, 1, list, 0));
  succeed(cuCtxSynchronize());
  assert_int_equal(*pinned, 42);
}

/* What an exec has may get other addresses and values, and a wait another comparison; nothing else. */
static void refused(void **state) {
  (void)state;
  CUgraph graph, other;
  CUgraphExec exec;
  CUgraphNode node, empty;
  engine_value list[2] = {operation(ENGINE_VALUE_WRITE_32, data, 7, 0),
                          operation(ENGINE_VALUE_WAIT_32, data, 7, EQUAL)},
               bad[2];
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch(list, 2), wrong = batch(bad, 2);
  cudaGraphExecUpdateResultInfo info;
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
  invalid(cuGraphBatchMemOpNodeSetParams(empty, &params));
  invalid(cuGraphBatchMemOpNodeGetParams(empty, &params));
  params.flags = 1;
  invalid(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  params.flags = 0;
  params.count = ENGINE_VALUES_MAX + 1;
  invalid(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  params.count = 2;
  const engine_value mistakes[] = {{.type = 77},
                                   operation(ENGINE_VALUE_WRITE_32, data + 2, 7, 0),
                                   operation(ENGINE_VALUE_WRITE_64, data + 4, 7, 0),
                                   operation(ENGINE_VALUE_WRITE_32, (uintptr_t)list, 7, 0),
                                   operation(ENGINE_VALUE_WRITE_32, data, 7, 2),
                                   operation(ENGINE_VALUE_WAIT_32, data, 7, 4)};
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    bad[0] = list[0];
    bad[1] = mistakes[i];
    invalid(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &wrong));
  }
  succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  invalid(cuGraphBatchMemOpNodeSetParams(node, &wrong));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  memcpy(bad, list, sizeof bad);
  bad[1].of.flags = 2; /* and */
  bad[0].of.address = bad[1].of.address = data + 4;
  succeed(cuGraphExecBatchMemOpNodeSetParams(exec, node, &wrong));
  clear();
  launch(exec);
  assert_true(word(0) == 0 && word(1) == 7);
  bad[1].of.flags |= 1u << 30; /* a flush */
  invalid(cuGraphExecBatchMemOpNodeSetParams(exec, node, &wrong));
  bad[1] = bad[0];
  invalid(cuGraphExecBatchMemOpNodeSetParams(exec, node, &wrong));
  wrong.count = 1;
  invalid(cuGraphExecBatchMemOpNodeSetParams(exec, node, &wrong));
  succeed(cuGraphCreate(&other, 0));
  succeed(cuGraphAddEmptyNode(&empty, other, NULL, 0));
  succeed(cuGraphAddBatchMemOpNode(&node, other, NULL, 0, &wrong));
  check(cuGraphExecUpdate_v2(exec, other, &info), 910); /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
  assert_int_equal(info.result, ENGINE_UPDATE_PARAMETERS);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuGraphDestroy(other));
}

static void pause_shortly(void) { nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); }

static void *write_later(void *flag) {
  pause_shortly();
  __atomic_store_n((uint64_t *)flag, 5, __ATOMIC_SEQ_CST);
  return NULL;
}

/* Nothing happens while it is captured: neither the write nor the wait. The launch does both. */
static void captured(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphExec exec;
  CUstream stream;
  CUgraphNode nodes[4];
  size_t count = 4;
  uint64_t *flag;
  int type;
  pthread_t thread;
  engine_value both[] = {operation(ENGINE_VALUE_WRITE_32, data + 4, 3, 0),
                         operation(ENGINE_VALUE_WRITE_32, data + 8, 4, 0)};
  clear();
  succeed(cuMemHostAlloc((void **)&flag, sizeof *flag, 0));
  *flag = 0;
  succeed(cuStreamCreate(&stream, 1));
  succeed(cuStreamBeginCapture_v2(stream, 0));
  succeed(cuStreamWriteValue32_v2(stream, data, 6, 0));
  succeed(cuStreamWaitValue64_v2(stream, (uintptr_t)flag, 5, EQUAL));
  succeed(cuStreamBatchMemOp_v2(stream, 2, both, 0));
  succeed(cuStreamEndCapture(stream, &graph));
  assert_int_equal(word(0), 0);
  succeed(cuGraphGetNodes(graph, nodes, &count));
  assert_int_equal(count, 3);
  for (size_t i = 0; i < count; i++) {
    succeed(cuGraphNodeGetType(nodes[i], &type));
    assert_int_equal(type, BATCH);
  }
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(pthread_create(&thread, NULL, write_later, flag), 0);
  succeed(cuGraphLaunch(exec, stream));
  pthread_join(thread, NULL);
  assert_true(word(0) == 6 && word(1) == 3 && word(2) == 4);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  /* a mistake ends the capture */
  succeed(cuStreamBeginCapture_v2(stream, 0));
  invalid(cuStreamWriteValue32_v2(stream, data + 1, 6, 0));
  check(cuStreamEndCapture(stream, &graph), 901); /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
  succeed(cuStreamDestroy_v2(stream));
}

/* Another thread's work goes on while a graph waits: it writes what the graph waits for by a stream of its own. */
static CUstream writer;
static void *write_by_stream(void *unused) {
  (void)unused;
  pause_shortly();
  if (cuCtxSetCurrent(context)) return NULL;
  cuStreamWriteValue32_v2(writer, data + 12, 8, 0);
  return NULL;
}

static void waits_without_the_lock(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode node;
  pthread_t thread;
  engine_value list[] = {operation(ENGINE_VALUE_WAIT_32, data + 12, 8, EQUAL),
                         operation(ENGINE_VALUE_WRITE_32, data, 1, 0)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch(list, 2);
  clear();
  succeed(cuStreamCreate(&writer, 1));
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(pthread_create(&thread, NULL, write_by_stream, NULL), 0);
  launch(exec);
  pthread_join(thread, NULL);
  assert_int_equal(word(0), 1);
  clear();
  check(cuGraphLaunch(exec, NULL), CUDA_ERROR_NOT_SUPPORTED); /* given up, as a stream's wait is */
  assert_int_equal(word(0), 0);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuStreamDestroy_v2(writer));
}

/* Who looks at a value of 64 bits while it is written sees the one before or the one after. */
static atomic_bool enough;
static atomic_int looks;
static const uint64_t either[2] = {UINT64_C(0x00000000ffffffff), UINT64_C(0xffffffff00000000)};
static void *look(void *at) {
  uintptr_t others = 0;
  while (!enough) {
    const uint64_t seen = atomic_load((_Atomic uint64_t *)at);
    looks++;
    others += seen != either[0] && seen != either[1];
  }
  return (void *)others;
}

static void is_whole(void **state) {
  (void)state;
  uint64_t *word;
  pthread_t thread;
  void *others;
  succeed(cuMemHostAlloc((void **)&word, 64, 3));
  *word = either[0];
  assert_int_equal(pthread_create(&thread, NULL, look, word), 0);
  for (int i = 0; i < 4000 || looks < 100000; i++) {
    engine_value value = operation(ENGINE_VALUE_WRITE_64, (uintptr_t)word, either[i % 2], 0);
    succeed(cuStreamBatchMemOp_v2(NULL, 1, &value, 0));
  }
  enough = true;
  pthread_join(thread, &others);
  assert_null(others);
}

/* A stream that is destroyed while a batch waits in it: what comes after the wait is done in no other, also if that has
 * its address. */
static engine_value in_turn[3];
static CUstream goes;
static void *run_batch(void *result) {
  const CUresult error = cuCtxSetCurrent(context);
  *(CUresult *)result = error ? error : cuStreamBatchMemOp_v2(goes, 3, in_turn, 0);
  return NULL;
}

static void the_stream_goes(void **state) {
  (void)state;
  pthread_t thread;
  CUresult result;
  CUstream fresh;
  const engine_value last[] = {operation(ENGINE_VALUE_WRITE_32, data, 7, 0),
                               {.reduce = {.type = ENGINE_VALUE_REDUCE,
                                           .operation = ENGINE_REDUCE_ADD,
                                           .data = ENGINE_REDUCE_U32,
                                           .address = data,
                                           .value = 7}}};
  in_turn[0] = operation(ENGINE_VALUE_WRITE_32, data + 4, 1, 0);
  in_turn[1] = operation(ENGINE_VALUE_WAIT_32, data + 8, 1, EQUAL);
  for (int i = 0; i < 2; i++) {
    clear();
    in_turn[2] = last[i];
    succeed(cuStreamCreate(&goes, 1));
    assert_int_equal(pthread_create(&thread, NULL, run_batch, &result), 0);
    while (!word(1)) pause_shortly();
    succeed(cuStreamDestroy_v2(goes));
    succeed(cuStreamCreate(&fresh, 1));
    succeed(cuStreamWriteValue32_v2(fresh, data + 8, 1, 0));
    pthread_join(thread, NULL);
    check(result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(word(0), 0);
    succeed(cuStreamDestroy_v2(fresh));
  }
}

/* The same of a graph. (The allocator gives a piece again soon if its cache for this thread is full of others.) */
static CUgraphExec in_stream;
static void *run_graph(void *result) {
  const CUresult error = cuCtxSetCurrent(context);
  *(CUresult *)result = error ? error : cuGraphLaunch(in_stream, goes);
  return NULL;
}

static void the_stream_of_a_graph_goes(void **state) {
  (void)state;
  enum { MANY = 16 };
  CUgraph graph;
  CUgraphNode first, second;
  CUstream others[MANY];
  CUresult result;
  pthread_t thread;
  engine_value waits[] = {operation(ENGINE_VALUE_WRITE_32, data + 4, 1, 0),
                          operation(ENGINE_VALUE_WAIT_32, data + 8, 1, EQUAL)},
               writes = operation(ENGINE_VALUE_WRITE_32, data, 7, 0);
  CUDA_BATCH_MEM_OP_NODE_PARAMS before = batch(waits, 2), after = batch(&writes, 1);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddBatchMemOpNode(&first, graph, NULL, 0, &before));
  succeed(cuGraphAddBatchMemOpNode(&second, graph, &first, 1, &after));
  succeed(cuGraphInstantiateWithFlags(&in_stream, graph, 0));
  clear();
  for (int i = 0; i < MANY; i++) {
    if (i == MANY / 2) succeed(cuStreamCreate(&goes, 1));
    succeed(cuStreamCreate(&others[i], 1));
  }
  assert_int_equal(pthread_create(&thread, NULL, run_graph, &result), 0);
  while (!word(1)) pause_shortly();
  for (int i = 0; i < MANY; i += 2) succeed(cuStreamDestroy_v2(others[i]));
  succeed(cuStreamDestroy_v2(goes));
  for (int i = 0; i < MANY; i += 2) succeed(cuStreamCreate(&others[i], 1));
  succeed(cuStreamWriteValue32_v2(others[0], data + 8, 1, 0));
  pthread_join(thread, NULL);
  succeed(result); /* it had begun; the stream's end is for the next call to find */
  assert_int_equal(word(0), 0);
  for (int i = 0; i < MANY; i++) succeed(cuStreamDestroy_v2(others[i]));
  succeed(cuGraphExecDestroy(in_stream));
  succeed(cuGraphDestroy(graph));
}

/* What a graph allocates is there while it runs only; an ordinary allocation may go while a graph waits. Neither is
 * read then. */
static CUdeviceptr brief;
static void *free_and_write(void *flag) {
  pause_shortly();
  if (cuCtxSetCurrent(context) || cuMemFree_v2(brief)) return NULL;
  return write_later(flag);
}

static void memory_that_is_gone(void **state) {
  (void)state;
  CUgraph graph, other;
  CUgraphExec exec;
  CUgraphNode node;
  pthread_t thread;
  uint64_t *flag;
  enum { BYTES = 64 << 20 };
  cudaMemAllocNodeParams alloc = {.poolProps.allocType = 1, .poolProps.location.type = 1, .bytesize = BYTES};
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
  engine_value list[2] = {operation(ENGINE_VALUE_WAIT_32, (uintptr_t)alloc.dptr, 1, EQUAL)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = batch(list, 1);
  succeed(cuGraphCreate(&other, 0));
  succeed(cuGraphAddBatchMemOpNode(&node, other, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, other, 0));
  invalid(cuGraphLaunch(exec, NULL));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(other));
  succeed(cuGraphDestroy(graph));

  succeed(cuMemAlloc_v2(&brief, BYTES));
  succeed(cuMemHostAlloc((void **)&flag, sizeof *flag, 0));
  *flag = 0;
  list[0] = operation(ENGINE_VALUE_WAIT_64, (uintptr_t)flag, 5, EQUAL);
  list[1] = operation(ENGINE_VALUE_WAIT_32, brief, 1, EQUAL);
  params = batch(list, 2);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(pthread_create(&thread, NULL, free_and_write, flag), 0);
  invalid(cuGraphLaunch(exec, NULL));
  pthread_join(thread, NULL);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
}

/* ---- any node ---- */

static void nothing(void *unused) { (void)unused; }

static void described(void **state) {
  (void)state;
  CUgraph graph, child;
  CUgraphNode set, host, inner, last;
  CUgraphNodeParams found;
  engine_value value = operation(ENGINE_VALUE_WRITE_32, data, 7, 0);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphCreate(&child, 0));
  succeed(cuGraphAddMemsetNode(
      &set, graph, NULL, 0,
      &(cudaMemsetParams){.dst = (void *)(uintptr_t)data, .value = 3, .elementSize = 4, .width = 2, .height = 1},
      context));
  succeed(cuGraphAddHostNode(&host, graph, &set, 1, &(cudaHostNodeParams){nothing, &value}));
  succeed(cuGraphAddChildGraphNode(&inner, graph, &host, 1, child));
  succeed(cuGraphAddBatchMemOpNode(&last, graph, &inner, 1,
                                   &(CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = context, .count = 1, .paramArray = &value}));
  invalid(cuGraphNodeGetParams(set, NULL));
  invalid(cuGraphNodeGetParams((CUgraphNode)&value, &found));
  succeed(cuGraphNodeGetParams(set, &found));
  assert_true(found.type == ENGINE_NODE_SET && found.memset.params.value == 3 && found.memset.params.width == 2 &&
              found.memset.ctx == context);
  succeed(cuGraphNodeGetParams(host, &found));
  assert_true(found.type == ENGINE_NODE_HOST && found.host.fn == nothing && found.host.userData == &value);
  succeed(cuGraphNodeGetParams(inner, &found));
  assert_true(found.type == ENGINE_NODE_GRAPH && found.graph.graph && found.graph.graph != child); /* its clone */
  CUgraph within = found.graph.graph;
  succeed(cuGraphAddEmptyNode(&set, within, NULL, 0));
  succeed(cuGraphNodeGetContainingGraph(set, &child));
  assert_ptr_equal(child, within);
  succeed(cuGraphNodeGetParams(last, &found));
  assert_true(found.type == BATCH && found.memOp.count == 1 && found.memOp.paramArray[0].of.value == 7);
  succeed(cuGraphDestroy(graph));
}

static void numbered(void **state) {
  (void)state;
  CUgraph graph, other, found;
  CUgraphExec exec;
  CUgraphNode nodes[3];
  unsigned first, second, third, local;
  unsigned long long tools[3];
  char path[64], text[2048] = "", wanted[64];
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphCreate(&other, 0));
  succeed(cuGraphGetId(graph, &first));
  succeed(cuGraphGetId(other, &second));
  assert_true(first && second == first + 1);
  for (unsigned i = 0; i < 2; i++) succeed(cuGraphAddEmptyNode(&nodes[i], graph, nodes, i));
  succeed(cuGraphDestroyNode(nodes[1]));
  succeed(cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1)); /* 2: numbers are not used again */
  succeed(cuGraphAddEmptyNode(&nodes[2], other, NULL, 0));
  const unsigned locals[3] = {0, 2, 0};
  for (int i = 0; i < 3; i++) {
    succeed(cuGraphNodeGetLocalId(nodes[i], &local));
    assert_int_equal(local, locals[i]);
    succeed(cuGraphNodeGetToolsId(nodes[i], &tools[i]));
    succeed(cuGraphNodeGetContainingGraph(nodes[i], &found));
    assert_ptr_equal(found, i < 2 ? graph : other);
  }
  assert_true(tools[0] != tools[1] && tools[0] != tools[2] && tools[1] != tools[2]);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  succeed(cuGraphExecGetId(exec, &third));
  assert_true(third != first && third != second);
  snprintf(path, sizeof path, "/tmp/graph_numbers_%d.dot", (int)getpid());
  succeed(cuGraphDebugDotPrint(graph, path, 0));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_true(fread(text, 1, sizeof text - 1, file) > 0);
  fclose(file);
  unlink(path);
  snprintf(wanted, sizeof wanted, "graph_%u_node_0 -> graph_%u_node_2", first, first);
  assert_non_null(strstr(text, wanted));
  invalid(cuGraphGetId(graph, NULL));
  invalid(cuGraphGetId((CUgraph)&local, &local));
  invalid(cuGraphExecGetId((CUgraphExec)graph, &local));
  invalid(cuGraphNodeGetLocalId((CUgraphNode)graph, &local));
  invalid(cuGraphNodeGetContainingGraph(nodes[0], NULL));
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(graph));
  succeed(cuGraphDestroy(other));
}

static int start(void **state) {
  (void)state;
  setenv("FARFAULT_MACHINE", "v100", 0);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&data, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(added),
      cmocka_unit_test(reduced),
      cmocka_unit_test(refused),
      cmocka_unit_test(captured),
      cmocka_unit_test(waits_without_the_lock),
      cmocka_unit_test(is_whole),
      cmocka_unit_test(the_stream_goes),
      cmocka_unit_test(the_stream_of_a_graph_goes),
      cmocka_unit_test(memory_that_is_gone),
      cmocka_unit_test(described),
      cmocka_unit_test(numbered),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
