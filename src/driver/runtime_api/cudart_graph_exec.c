/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run, and captures, of the CUDA runtime (CUDA Runtime API, "Graph Management" and "Stream Management"). */
#include <stdio.h>

#include "driver/runtime_api/cudart_graph.h"

/* ---- instantiating ---- */

CUDART_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                     unsigned long long flags) {
  if (flags & ENGINE_EXEC_UPLOAD) return engine_return(cudaErrorInvalidValue); /* only with a stream for it */
  return engine_return(engine_graph_instantiate(graph, flags, exec, NULL));
}

#if CUDART_MAJOR >= 12
CUDART_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}
#else
CUDART_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *error_node,
                                            char *log, size_t log_bytes) {
  engine_verdict verdict;
  cudaError_t error = engine_graph_instantiate(graph, 0, exec, &verdict);
  if (error_node) *error_node = error ? verdict.node : NULL;
  if (log && log_bytes) snprintf(log, log_bytes, "%s", error ? "the graph cannot be instantiated" : "");
  return engine_return(error);
}
#endif

static cudaError_t with_params(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphInstantiateParams *params, bool own) {
  engine_verdict verdict;
  if (!params) return cudaErrorInvalidValue;
  cudaError_t error = engine_graph_instantiate(graph, params->flags, exec, &verdict);
  params->result_out = verdict.result;
  params->errNode_out = verdict.node;
  if (!error && params->flags & ENGINE_EXEC_UPLOAD)
    error = engine_exec_upload(*exec, engine_stream_handle(params->uploadStream, own));
  return error;
}
CUDART_PAIR(cudaGraphInstantiateWithParams, _ptsz,
            (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
            with_params(exec, graph, params, own))

CUDART_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return engine_return(engine_exec_destroy(exec)); }

CUDART_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags) {
  uint64_t found;
  cudaError_t error = flags ? engine_exec_flags(exec, &found) : cudaErrorInvalidValue;
  if (!error) *flags = found;
  return engine_return(error);
}

CUDART_PAIR(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
            engine_exec_upload(exec, engine_stream_handle(stream, own)))
CUDART_PAIR(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
            engine_exec_launch(exec, engine_stream_handle(stream, own)))

/* ---- changing ---- */

#if CUDART_MAJOR >= 12
CUDART_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo *info) {
  engine_verdict verdict;
  cudaError_t error = engine_exec_update(exec, graph, &verdict);
  if (info) *info = (cudaGraphExecUpdateResultInfo){verdict.result, verdict.node, verdict.from};
  return engine_return(error);
}
#else
CUDART_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *error_node,
                                           int *result) {
  engine_verdict verdict;
  cudaError_t error = engine_exec_update(exec, graph, &verdict);
  if (error_node) *error_node = verdict.node;
  if (result) *result = verdict.result;
  return engine_return(error);
}
#endif

CUDART_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                  cudaGraphNodeParams *params) {
  engine_node_params made;
  cudaError_t error = params ? cudart_node_params(params, &made) : cudaErrorInvalidValue;
  return engine_return(error ? error : cudart_node_error(engine_exec_set(exec, node, &made)));
}

CUDART_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return engine_return(engine_exec_enable(exec, node, enabled != 0));
}

CUDART_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
  bool found;
  cudaError_t error = enabled ? engine_exec_enabled(exec, node, &found) : cudaErrorInvalidValue;
  if (!error) *enabled = found;
  return engine_return(error);
}

/* ---- captures ---- */

CUDART_PAIR(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, int mode),
            engine_capture_begin(engine_stream_handle(stream, own), mode, NULL, NULL, 0))

static cudaError_t begin_into(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t count,
                              int mode) {
  return graph ? engine_capture_begin(stream, mode, graph, (engine_node *const *)nodes, count) : cudaErrorInvalidValue;
}
CUDART_PAIR(cudaStreamBeginCaptureToGraph, _ptsz,
            (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const engine_edge *edges,
             size_t count, int mode),
            ((void)edges, begin_into(engine_stream_handle(stream, own), graph, nodes, count, mode)))

#if CUDART_MAJOR >= 13
static bool tell(const engine_recapture *hook, cudaGraphNode_t node, cudaGraphNode_t captured, int eligible) {
  cudaGraphNodeParams before, now;
  if (cudaGraphNodeGetParams(node, &before) || cudaGraphNodeGetParams(captured, &now)) return false;
  return !((cudaGraphRecaptureCallback_t)hook->function)(hook->data, node, &before, &now, eligible);
}

static cudaError_t recapture(cudaStream_t stream, int mode, cudaGraph_t graph,
                             const cudaGraphRecaptureCallbackData *callback) {
  engine_recapture hook = {.tell = NULL};
  if (callback && callback->callbackFunc)
    hook = (engine_recapture){tell, (void (*)(void))callback->callbackFunc, callback->userData};
  return engine_recapture_begin(stream, mode, graph, &hook);
}
CUDART_PAIR(cudaStreamBeginRecaptureToGraph, _ptsz,
            (cudaStream_t stream, int mode, cudaGraph_t graph, cudaGraphRecaptureCallbackData *callback),
            recapture(engine_stream_handle(stream, own), mode, graph, callback))
#endif

CUDART_PAIR(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph),
            engine_capture_end(engine_stream_handle(stream, own), graph))

static cudaError_t capture_info(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                const cudaGraphNode_t **nodes, const engine_edge **edges, size_t *count) {
  engine_capture_info info;
  if (!status) return cudaErrorInvalidValue;
  cudaError_t error = engine_capture_query(stream, &info);
  if (error) return error;
  *status = info.status;
  if (info.status != ENGINE_CAPTURE_ACTIVE) return cudaSuccess;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = (const cudaGraphNode_t *)info.tips;
  if (edges) *edges = info.edges;
  if (count) *count = info.count;
  return cudaSuccess;
}

CUDART_PAIR(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, int *status),
            capture_info(engine_stream_handle(stream, own), status, NULL, NULL, NULL, NULL, NULL))

#define INFO_PARAMETERS \
  cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes
#define UPDATE(NODES, COUNT, FLAGS)   \
  (FLAGS) > 1 ? cudaErrorInvalidValue \
              : engine_capture_update(engine_stream_handle(stream, own), NODES, COUNT, (FLAGS) == 1)
#if CUDART_EDGES
CUDART_PAIR(cudaStreamGetCaptureInfo, _ptsz, (INFO_PARAMETERS, const engine_edge **edges, size_t *count),
            capture_info(engine_stream_handle(stream, own), status, id, graph, nodes, edges, count))
CUDART_PAIR(cudaStreamUpdateCaptureDependencies, _ptsz,
            (cudaStream_t stream, cudaGraphNode_t *nodes, const engine_edge *edges, size_t count, unsigned flags),
            ((void)edges, UPDATE(nodes, count, flags)))
#else
CUDART_PAIR(cudaStreamGetCaptureInfo, _ptsz, (cudaStream_t stream, int *status, unsigned long long *id),
            capture_info(engine_stream_handle(stream, own), status, id, NULL, NULL, NULL, NULL))
CUDART_PAIR(cudaStreamGetCaptureInfo_v2, _ptsz, (INFO_PARAMETERS, size_t *count),
            capture_info(engine_stream_handle(stream, own), status, id, graph, nodes, NULL, count))
CUDART_PAIR(cudaStreamUpdateCaptureDependencies, _ptsz,
            (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags), UPDATE(nodes, count, flags))
#if CUDART_MAJOR == 12
CUDART_DECLARE(cudaStreamGetCaptureInfo_v3, _ptsz, (INFO_PARAMETERS, const engine_edge **edges, size_t *count))
CUDART_PAIR(cudaStreamGetCaptureInfo_v3, _ptsz, (INFO_PARAMETERS, const engine_edge **edges, size_t *count),
            capture_info(engine_stream_handle(stream, own), status, id, graph, nodes, edges, count))
CUDART_DECLARE(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
               (cudaStream_t stream, cudaGraphNode_t *nodes, const engine_edge *edges, size_t count, unsigned flags))
CUDART_PAIR(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
            (cudaStream_t stream, cudaGraphNode_t *nodes, const engine_edge *edges, size_t count, unsigned flags),
            ((void)edges, UPDATE(nodes, count, flags)))
#endif
#endif

CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
  return engine_return(engine_capture_exchange(mode));
}
