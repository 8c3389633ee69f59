/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of the CUDA runtime's graph calls, as in cuda_abi.h (tests/unit/driver/test_abi_*.c assert their
 * sizes). */
#ifndef FF_DRIVER_GRAPH_ABI_H
#define FF_DRIVER_GRAPH_ABI_H

#include "driver/copy_attributes.h"
#include "driver/cuda_abi.h"

typedef struct engine_graph *cudaGraph_t;
typedef struct engine_node *cudaGraphNode_t;
typedef struct engine_exec *cudaGraphExec_t;
typedef struct engine_object *cudaUserObject_t;
typedef unsigned long long cudaGraphConditionalHandle;

typedef struct cudaKernelNodeParams {
  void *func;
  dim3 gridDim, blockDim;
  unsigned int sharedMemBytes;
  void **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height;
} cudaMemsetParams;

typedef struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void *userData;
} cudaHostNodeParams;

typedef struct cudaMemPoolProps {
  int allocType, handleTypes;
  cudaMemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize; /* from CUDA 12.2 on; zero before */
  unsigned short usage;
  unsigned char reserved[54];
} cudaMemPoolProps;

typedef struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const cudaMemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  void *dptr;
} cudaMemAllocNodeParams;

typedef void *cudaExecutionContext_t; /* from CUDA 13 on; NULL before, as all that is reserved */

/* as parameters of any node, kernels and sets have a context behind them */
typedef struct cudaKernelNodeParamsV2 {
  cudaKernelNodeParams of;
  cudaExecutionContext_t ctx;
  int functionType;
} cudaKernelNodeParamsV2;
typedef struct cudaMemsetParamsV2 {
  cudaMemsetParams of;
  cudaExecutionContext_t ctx;
} cudaMemsetParamsV2;
typedef struct cudaMemcpyNodeParams {
  int flags, reserved;
  cudaExecutionContext_t ctx;
  cudaMemcpy3DParms copyParams;
} cudaMemcpyNodeParams;
typedef struct cudaChildGraphNodeParams {
  cudaGraph_t graph;
  int ownership;
} cudaChildGraphNodeParams;
typedef struct cudaMemcpyBatchNodeParams { /* CUDA_MEMCPY_BATCH_NODE_PARAMS, with its context */
  size_t count;
  void **dsts, **srcs;
  size_t *sizes;
  cudaMemcpyAttributes *attrs;
  size_t *attrsIdxs, numAttrs;
  void *ctx;
} cudaMemcpyBatchNodeParams;
typedef struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle;
  int type;
  unsigned int size;
  cudaGraph_t *phGraph_out;
} cudaConditionalNodeParams;

typedef struct cudaGraphNodeParams {
  int type, reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParamsV2 kernel;
    cudaMemcpyNodeParams memcpy;
    cudaMemsetParamsV2 memset;
    cudaHostNodeParams host;
    cudaChildGraphNodeParams graph;
    struct {
      cudaEvent_t event;
    } event;
    cudaMemAllocNodeParams alloc;
    struct {
      void *dptr;
    } free;
    cudaConditionalNodeParams conditional;
    cudaMemcpyBatchNodeParams memcpyBatch;
  };
  long long reserved2;
} cudaGraphNodeParams;

/* status: 0: an instantiated graph can have the new parameters, too; 1: it cannot */
typedef cudaError_t (*cudaGraphRecaptureCallback_t)(void *data, cudaGraphNode_t node,
                                                    const cudaGraphNodeParams *original,
                                                    const cudaGraphNodeParams *captured, int status);
typedef struct cudaGraphRecaptureCallbackData {
  cudaGraphRecaptureCallback_t callbackFunc;
  void *userData;
} cudaGraphRecaptureCallbackData;

typedef struct cudaGraphInstantiateParams {
  unsigned long long flags;
  cudaStream_t uploadStream;
  cudaGraphNode_t errNode_out;
  int result_out;
} cudaGraphInstantiateParams;

typedef struct cudaGraphExecUpdateResultInfo {
  int result;
  cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

#endif
