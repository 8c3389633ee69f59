/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, captures and memory pools through the driver API: layouts, each form of a call that has versions, results,
 * errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/engine/engine_pool.h"
#include "driver/driver_api/libcuda_graph.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *), cuMemAlloc_v2(CUdeviceptr *, size_t),
    cuMemFree_v2(CUdeviceptr);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t), cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuCtxSynchronize(void);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph), cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphAddKernelNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphKernelNodeGetParams(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *),
    cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const cudaMemsetParams *, CUcontext);
CUresult cuGraphAddMemcpyNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext);
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const engine_edge *, size_t,
                           CUgraphNodeParams *);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuGraphGetEdges_v2(CUgraph, CUgraphNode *, CUgraphNode *, engine_edge *, size_t *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long),
    cuGraphInstantiate_v2(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
CUresult cuGraphLaunch(CUgraphExec, CUstream), cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *);
CUresult cuModuleUnload(CUmodule), cuGraphClone(CUgraph *, CUgraph),
    cuGraphNodeFindInClone(CUgraphNode *, CUgraphNode, CUgraph);
CUresult cuGraphDebugDotPrint(CUgraph, const char *, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, CUgraph *),
    cuStreamIsCapturing(CUstream, int *);
CUresult cuDeviceGetDefaultMemPool(engine_pool **, CUdevice), cuMemPoolGetAttribute(engine_pool *, int, void *),
    cuMemPoolTrimTo(engine_pool *, size_t);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, engine_pool *, CUstream);

static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [value];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, %r1;\nst.global.u32 [%rd3], %r3;\nret;\n}\n";

static CUcontext context;
static CUfunction add;

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

static void layouts(void **state) {
  (void)state;
  assert_int_equal(sizeof(CUDA_KERNEL_NODE_PARAMS), 72);
  assert_int_equal(offsetof(CUDA_KERNEL_NODE_PARAMS, kern), 56);
  assert_int_equal(sizeof(CUgraphNodeParams), 256);
  assert_int_equal(sizeof(cudaGraphNodeParams), 256);
  assert_int_equal(offsetof(cudaGraphNodeParams, kernel), 16);
  assert_int_equal(sizeof(cudaKernelNodeParams), 56);
  assert_int_equal(sizeof(cudaMemsetParams), 40);
  assert_int_equal(sizeof(cudaMemPoolProps), 88);
  assert_int_equal(sizeof(cudaMemAllocNodeParams), 120);
  assert_int_equal(sizeof(cudaMemcpyNodeParams), 176);
  assert_int_equal(sizeof(cudaGraphInstantiateParams), 32);
  assert_int_equal(sizeof(cudaGraphExecUpdateResultInfo), 24);
  assert_int_equal(sizeof(engine_edge), 8);
}

static unsigned first_of(CUdeviceptr address) {
  unsigned value;
  succeed(cuMemcpyDtoH_v2(&value, address, sizeof value));
  return value;
}

static void built(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode set, kernel, copy, same;
  CUdeviceptr a, b;
  unsigned value = 5, host = 0;
  size_t count = 0;
  struct {
    CUDA_KERNEL_NODE_PARAMS params;
    uint64_t behind;
  } old = {.behind = 77};
  succeed(cuMemAlloc_v2(&a, 256));
  succeed(cuMemAlloc_v2(&b, 256));
  void *arguments[] = {&a, &value};
  check(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddMemsetNode(
      &set, graph, NULL, 0,
      &(cudaMemsetParams){.dst = (void *)(uintptr_t)a, .value = 3, .elementSize = 4, .width = 64, .height = 1},
      context));
  CUDA_KERNEL_NODE_PARAMS params = {.func = add,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 64,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = arguments};
  succeed(cuGraphAddKernelNode_v2(&kernel, graph, &set, 1, &params));
  CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = a,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = &host,
                        .WidthInBytes = 4,
                        .Height = 1,
                        .Depth = 1};
  succeed(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &back, context));
  check(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &back, NULL), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  value = 1000; /* was copied */
  succeed(cuGraphLaunch(exec, NULL));
  succeed(cuCtxSynchronize());
  check(host, 8);
  succeed(cuGraphExecKernelNodeSetParams_v2(exec, kernel, &params));
  succeed(cuGraphLaunch(exec, NULL));
  succeed(cuCtxSynchronize());
  check(host, 1003);
  succeed(cuGraphExecDestroy(exec));
  memset(&old.params.kern, 0x55, sizeof old.params.kern);
  succeed(cuGraphKernelNodeGetParams(kernel, &old.params)); /* the old form ends earlier */
  assert_true(old.params.func == add && *(unsigned *)old.params.kernelParams[1] == 5 &&
              (uintptr_t)old.params.kern == 0x5555555555555555u);
  succeed(cuGraphKernelNodeGetParams_v2(kernel, &old.params));
  assert_ptr_equal(old.params.kern, add); /* by which CUDA's runtimes find the program's function */
  CUgraphNodeParams any = {.type = ENGINE_NODE_KERNEL};
  any.kernel = params;
  any.kernel.func = NULL;
  check(cuGraphAddNode_v2(&same, graph, &kernel, NULL, 1, &any), CUDA_ERROR_INVALID_VALUE);
  any.kernel.kern = add;
  succeed(cuGraphAddNode_v2(&same, graph, &kernel, NULL, 1, &any));
  succeed(cuGraphGetEdges(graph, NULL, NULL, &count));
  check(count, 3);
  CUgraphNode from[3], to[3];
  engine_edge edges[3];
  succeed(cuGraphGetEdges_v2(graph, from, to, edges, &count));
  assert_true(from[2] == kernel && to[2] == same && !edges[2].type);
  char log[32] = "x";
  CUgraphNode wrong = set;
  succeed(cuGraphInstantiate_v2(&exec, graph, &wrong, log, sizeof log));
  assert_true(!wrong && !log[0]);
  succeed(cuGraphExecDestroy(exec));
  check(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
  succeed(cuGraphDestroy(graph));
  succeed(cuMemFree_v2(a));
  succeed(cuMemFree_v2(b));
}

static void captured(void **state) {
  (void)state;
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr a, inner;
  unsigned value = 4;
  int status;
  size_t count = 0;
  succeed(cuStreamCreate(&stream, 1));
  succeed(cuMemAlloc_v2(&a, 256));
  succeed(cuStreamBeginCapture_v2(stream, 0));
  succeed(cuStreamIsCapturing(stream, &status));
  check(status, 1);
  succeed(cuMemAllocAsync(&inner, 256, stream));
  succeed(cuMemsetD32Async(a, 6, 64, stream));
  void *arguments[] = {&a, &value};
  succeed(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
  succeed(cuMemFreeAsync(inner, stream));
  succeed(cuStreamEndCapture(stream, &graph));
  succeed(cuGraphGetNodes(graph, NULL, &count));
  check(count, 4);
  succeed(cuGraphInstantiateWithFlags(&exec, graph, 0));
  succeed(cuGraphLaunch(exec, stream));
  succeed(cuStreamSynchronize(stream));
  check(first_of(a), 10);
  succeed(cuStreamBeginCapture_v2(stream, 0));
  check(cuStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  check(cuStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuStreamDestroy_v2(stream));
  succeed(cuMemFree_v2(a));
}

static void pools(void **state) {
  (void)state;
  engine_pool *pool;
  CUdeviceptr a, b;
  uint64_t used;
  succeed(cuDeviceGetDefaultMemPool(&pool, 0));
  check(cuDeviceGetDefaultMemPool(&pool, 1), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMemAllocFromPoolAsync(&a, 1000, pool, NULL));
  succeed(cuMemPoolGetAttribute(pool, 7, &used));
  check(used, 1000);
  succeed(cuMemFreeAsync(a, NULL));
  succeed(cuMemAllocAsync(&b, 1000, NULL));
  check(a, b); /* the same stream, the same size */
  succeed(cuMemFreeAsync(b, NULL));
  check(cuMemFreeAsync(b, NULL), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr none = 1;
  succeed(cuMemAllocAsync(&none, 0, NULL));
  assert_int_equal(none, 0);
  succeed(cuMemFreeAsync(none, NULL));
  check(cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Nodes outlive the module of their kernel: what may be asked of them still works, running them does not. */
static void unloaded(void **state) {
  (void)state;
  CUmodule module;
  CUfunction function;
  CUgraph graph, clone;
  CUgraphNode node;
  CUgraphExec exec;
  CUdeviceptr a = 4096;
  unsigned value = 9;
  void *arguments[] = {&a, &value};
  succeed(cuModuleLoadData(&module, text));
  succeed(cuModuleGetFunction(&function, module, "add"));
  CUDA_KERNEL_NODE_PARAMS params = {.func = function,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = arguments};
  succeed(cuGraphCreate(&graph, 0));
  succeed(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
  succeed(cuModuleUnload(module));
  succeed(cuGraphClone(&clone, graph));
  succeed(cuGraphNodeFindInClone(&node, node, clone));
  succeed(cuGraphKernelNodeGetParams(node, &params));
  assert_int_equal(*(unsigned *)params.kernelParams[1], 9);
  succeed(cuGraphDebugDotPrint(clone, "unloaded.dot", 0));
  char line[128] = "";
  FILE *file = fopen("unloaded.dot", "r");
  assert_non_null(file);
  while (!strstr(line, "unloaded") && fgets(line, sizeof line, file)) {}
  fclose(file);
  unlink("unloaded.dot");
  assert_non_null(strstr(line, "kernel\\n(its module was unloaded)"));
  succeed(cuGraphInstantiateWithFlags(&exec, clone, 0));
  check(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuGraphExecDestroy(exec));
  succeed(cuGraphDestroy(clone));
  succeed(cuGraphDestroy(graph));
}

int main(void) {
  CUmodule module;
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, text) ||
      cuModuleGetFunction(&add, module, "add"))
    return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(built), cmocka_unit_test(captured),
                                     cmocka_unit_test(pools), cmocka_unit_test(unloaded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
