/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime's graph calls as libcudart exports them, for cudart_graph*.c and the tests: like cudart.h. Where
 * majors differ, this is the form of CUDART_MAJOR; the names with _v2 are CUDA 12's. */
#ifndef FF_DRIVER_CUDART_GRAPH_H
#define FF_DRIVER_CUDART_GRAPH_H

#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_graph.h"
#include "driver/graph_abi.h"

#define CUDART_EDGES (CUDART_MAJOR >= 13) /* whether the plain names have edge data */

/* cudart_graph.c */
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags);
#if CUDART_EDGES
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, engine_edge *edges,
                              size_t *count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,
                                         size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,
                                           size_t *count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const engine_edge *edges, size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const engine_edge *edges, size_t count);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                             const engine_edge *edges, size_t count, cudaGraphNodeParams *params);
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        size_t count);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                             cudaGraphNodeParams *params);
#endif
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *params);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned value,
                                             unsigned flags);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count);
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags);
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count);
cudaError_t cudaDeviceGraphMemTrim(int device);
cudaError_t cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value);
cudaError_t cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value);

/* cudart_graph_node.c: by kind of node */
#define CUDART_ADD cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count
cudaError_t cudaGraphAddKernelNode(CUDART_ADD, const cudaKernelNodeParams *params);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *params);
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t first, cudaGraphNode_t second);
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, int attribute, cudaLaunchAttributeValue *value);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, int attribute, const cudaLaunchAttributeValue *value);
cudaError_t cudaGraphAddMemcpyNode(CUDART_ADD, const cudaMemcpy3DParms *params);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *params);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *params);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms *params);
cudaError_t cudaGraphAddMemcpyNode1D(CUDART_ADD, void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNodeToSymbol(CUDART_ADD, const void *symbol, const void *from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                     const void *from, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(CUDART_ADD, void *to, const void *symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(CUDART_ADD, const cudaMemsetParams *params);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *params);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *params);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams *params);
cudaError_t cudaGraphAddHostNode(CUDART_ADD, const cudaHostNodeParams *params);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *params);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *params);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams *params);
cudaError_t cudaGraphAddChildGraphNode(CUDART_ADD, cudaGraph_t child);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child);
cudaError_t cudaGraphAddEmptyNode(CUDART_ADD);
cudaError_t cudaGraphAddEventRecordNode(CUDART_ADD, cudaEvent_t event);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphAddEventWaitNode(CUDART_ADD, cudaEvent_t event);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphAddMemAllocNode(CUDART_ADD, cudaMemAllocNodeParams *params);
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *params);
cudaError_t cudaGraphAddMemFreeNode(CUDART_ADD, void *pointer);
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer);
/* cudart_context.c: NULL is none in particular. cudaErrorInvalidValue: no context. */
cudaError_t cudart_node_where(cudaExecutionContext_t context, engine_where *where);
cudaExecutionContext_t cudart_context_of(const engine_where *where);                     /* NULL: none is given */
cudaError_t cudart_node_params(const cudaGraphNodeParams *from, engine_node_params *to); /* any kind */
cudaError_t cudart_node_error(cudaError_t error); /* what the runtime makes of the engine's error about a node */

/* cudart_graph_exec.c */
#if CUDART_MAJOR >= 12
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info);
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *error_node, char *log,
                                 size_t log_bytes);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *error_node, int *result);
#endif
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
CUDART_DECLARE(cudaGraphInstantiateWithParams, _ptsz,
               (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params))
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags);
CUDART_DECLARE(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream))
CUDART_DECLARE(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream))
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams *params);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled);
CUDART_DECLARE(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, int mode))
CUDART_DECLARE(cudaStreamBeginCaptureToGraph, _ptsz,
               (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const engine_edge *edges,
                size_t count, int mode))
#if CUDART_MAJOR >= 13
cudaError_t cudaGraphNodeGetParams(cudaGraphNode_t node, cudaGraphNodeParams *params); /* cudart_graph_any.c */
CUDART_DECLARE(cudaStreamBeginRecaptureToGraph, _ptsz,
               (cudaStream_t stream, int mode, cudaGraph_t graph, cudaGraphRecaptureCallbackData *callback))
#endif
CUDART_DECLARE(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph))
CUDART_DECLARE(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, int *status))
#if CUDART_EDGES
CUDART_DECLARE(cudaStreamGetCaptureInfo, _ptsz,
               (cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                const cudaGraphNode_t **nodes, const engine_edge **edges, size_t *count))
CUDART_DECLARE(cudaStreamUpdateCaptureDependencies, _ptsz,
               (cudaStream_t stream, cudaGraphNode_t *nodes, const engine_edge *edges, size_t count, unsigned flags))
#else
CUDART_DECLARE(cudaStreamGetCaptureInfo, _ptsz, (cudaStream_t stream, int *status, unsigned long long *id))
CUDART_DECLARE(cudaStreamGetCaptureInfo_v2, _ptsz,
               (cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                const cudaGraphNode_t **nodes, size_t *count))
CUDART_DECLARE(cudaStreamUpdateCaptureDependencies, _ptsz,
               (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags))
#endif
cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode);

#endif
