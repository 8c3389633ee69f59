/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of the driver API's graph calls, for libcuda_graph*.c. Those that are laid out as the runtime's are the
 * runtime's. */
#ifndef FF_DRIVER_LIBCUDA_GRAPH_H
#define FF_DRIVER_LIBCUDA_GRAPH_H

#include "driver/engine/engine_array.h"
#include "driver/engine/engine_graph.h"
#include "driver/graph_abi.h"
#include "driver/driver_api/libcuda.h"

typedef engine_graph *CUgraph;
typedef engine_node *CUgraphNode;
typedef engine_exec *CUgraphExec;
typedef engine_object *CUuserObject;

typedef struct CUDA_KERNEL_NODE_PARAMS { /* of CUDA 12 on; before, it ends before `kern` */
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
  CUcontext ctx;
  unsigned count;
  union engine_value *paramArray; /* CUstreamBatchMemOpParams */
  unsigned flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

typedef struct CUgraphNodeParams {
  int type, reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    struct {
      int flags, reserved;
      CUcontext copyCtx;
      CUDA_MEMCPY3D copyParams;
    } memcpy;
    struct {
      cudaMemsetParams params;
      CUcontext ctx;
    } memset;
    cudaHostNodeParams host;
    cudaChildGraphNodeParams graph;
    CUevent event;
    cudaMemAllocNodeParams alloc;
    CUdeviceptr free;
    CUDA_BATCH_MEM_OP_NODE_PARAMS memOp;
    cudaConditionalNodeParams conditional; /* and a context behind it */
    cudaMemcpyBatchNodeParams memcpyBatch;
  };
  long long reserved2;
} CUgraphNodeParams;

CUresult libcuda_box(const CUDA_MEMCPY3D *from, engine_box *box); /* libcuda_copy.c; without a stream */
CUresult libcuda_node_kernel(const CUDA_KERNEL_NODE_PARAMS *from, bool v2, engine_node_params *to);
/* libcuda_graph_node.c */
/* context: NULL, one, or a green context (unions of the manual's have either). CUDA_ERROR_INVALID_CONTEXT */
CUresult libcuda_node_where(const void *context, engine_where *where);
CUresult libcuda_node_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS *from, engine_node_params *to);
CUresult libcuda_node_params(const CUgraphNodeParams *from, engine_node_params *to);

#endif
