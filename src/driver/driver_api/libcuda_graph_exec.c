/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run, captures and user objects (Driver API: "Graph Management", "Stream Management"), thin on the
 * engine's. */
#include <stdio.h>

#include "driver/driver_api/libcuda_graph.h"

/* ---- instantiating: three forms, by the CUDA that has them ---- */

LIBCUDA_CALL(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (flags & ENGINE_EXEC_UPLOAD) return CUDA_ERROR_INVALID_VALUE; /* only with a stream for it */
  return libcuda_result(engine_graph_instantiate(graph, flags, exec, NULL));
}

static CUresult instantiate_old(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                size_t log_bytes) {
  engine_verdict verdict;
  LIBCUDA_TRY(libcuda_ready());
  cudaError_t error = engine_graph_instantiate(graph, 0, exec, &verdict);
  if (error_node) *error_node = error ? verdict.node : NULL;
  if (log && log_bytes) snprintf(log, log_bytes, "%s", error ? "the graph cannot be instantiated" : "");
  return libcuda_result(error);
}
LIBCUDA_CALL(cuGraphInstantiate, (CUgraphExec * exec, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)) {
  return instantiate_old(exec, graph, node, log, bytes);
}
LIBCUDA_CALL(cuGraphInstantiate_v2, (CUgraphExec * exec, CUgraph graph, CUgraphNode *node, char *log, size_t bytes)) {
  return instantiate_old(exec, graph, node, log, bytes);
}

static CUresult with_params(CUgraphExec *exec, CUgraph graph, cudaGraphInstantiateParams *params, bool own) {
  engine_verdict verdict;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  cudaError_t error = engine_graph_instantiate(graph, params->flags, exec, &verdict);
  params->result_out = verdict.result;
  params->errNode_out = verdict.node;
  if (!error && params->flags & ENGINE_EXEC_UPLOAD)
    error = engine_exec_upload(*exec, engine_stream_handle(params->uploadStream, own));
  return libcuda_result(error);
}
LIBCUDA_PAIR(cuGraphInstantiateWithParams, _ptsz,
             (CUgraphExec * exec, CUgraph graph, cudaGraphInstantiateParams *params),
             with_params(exec, graph, params, own))

LIBCUDA_CALL(cuGraphExecDestroy, (CUgraphExec exec)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_exec_destroy(exec));
}
LIBCUDA_CALL(cuGraphExecGetFlags, (CUgraphExec exec, uint64_t *flags)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_exec_flags(exec, flags));
}
LIBCUDA_STREAM_PAIR(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream),
                    libcuda_result(engine_exec_upload(exec, engine_stream_handle(stream, own))))
LIBCUDA_STREAM_PAIR(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream),
                    libcuda_result(engine_exec_launch(exec, engine_stream_handle(stream, own))))

/* ---- changing ---- */

LIBCUDA_CALL(cuGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *result)) {
  engine_verdict verdict;
  LIBCUDA_TRY(libcuda_ready());
  cudaError_t error = engine_exec_update(exec, graph, &verdict);
  if (error_node) *error_node = verdict.node;
  if (result) *result = verdict.result;
  return libcuda_result(error);
}
LIBCUDA_CALL(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, cudaGraphExecUpdateResultInfo *info)) {
  engine_verdict verdict;
  LIBCUDA_TRY(libcuda_ready());
  cudaError_t error = engine_exec_update(exec, graph, &verdict);
  if (info) *info = (cudaGraphExecUpdateResultInfo){verdict.result, verdict.node, verdict.from};
  return libcuda_result(error);
}
LIBCUDA_CALL(cuGraphExecNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_node_params(params, &made));
  return libcuda_result(engine_exec_set(exec, node, &made));
}
LIBCUDA_CALL(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_exec_enable(exec, node, enabled != 0));
}
LIBCUDA_CALL(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned *enabled)) {
  bool found;
  LIBCUDA_TRY(libcuda_ready());
  if (!enabled) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_exec_enabled(exec, node, &found)));
  *enabled = found;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphConditionalHandleCreate,
             (uint64_t * handle, CUgraph graph, CUcontext context, unsigned value, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  /* 1: CU_GRAPH_COND_ASSIGN_DEFAULT */
  return libcuda_result(engine_conditional_create(graph, value, flags == 1, handle));
}

/* ---- captures: cuStreamBeginCapture is as with the global mode ---- */

LIBCUDA_STREAM_PAIR(cuStreamBeginCapture, _ptsz, (CUstream stream),
                    libcuda_result(engine_capture_begin(engine_stream_handle(stream, own), ENGINE_CAPTURE_GLOBAL, NULL,
                                                        NULL, 0)))
LIBCUDA_STREAM_PAIR(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, int mode),
                    libcuda_result(engine_capture_begin(engine_stream_handle(stream, own), mode, NULL, NULL, 0)))
LIBCUDA_STREAM_PAIR(cuStreamBeginCaptureToGraph, _ptsz,
                    (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const engine_edge *edges, size_t count,
                     int mode),
                    graph ? libcuda_result(engine_capture_begin(engine_stream_handle(stream, own), mode, graph,
                                                                (engine_node *const *)nodes, count))
                          : CUDA_ERROR_INVALID_VALUE)

/* libcuda_graph_node.c */
CUresult cuGraphNodeGetParams(CUgraphNode node, CUgraphNodeParams *out);

typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node, const CUgraphNodeParams *original,
                                             const CUgraphNodeParams *captured, int status);

static bool tell(const engine_recapture *hook, CUgraphNode node, CUgraphNode captured, int eligible) {
  CUgraphNodeParams before, now;
  if (cuGraphNodeGetParams(node, &before) || cuGraphNodeGetParams(captured, &now)) return false;
  return !((CUgraphRecaptureCallback)hook->function)(hook->data, node, &before, &now, eligible);
}

static CUresult recapture(CUstream stream, int mode, CUgraph graph, CUgraphRecaptureCallback function, void *data) {
  const engine_recapture hook = {function ? tell : NULL, (void (*)(void))function, data};
  return libcuda_result(engine_recapture_begin(stream, mode, graph, &hook));
}
LIBCUDA_STREAM_PAIR(cuStreamBeginRecaptureToGraph, _ptsz,
                    (CUstream stream, int mode, CUgraph graph, CUgraphRecaptureCallback function, void *data),
                    recapture(engine_stream_handle(stream, own), mode, graph, function, data))
LIBCUDA_STREAM_PAIR(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
                    libcuda_result(engine_capture_end(engine_stream_handle(stream, own), graph)))

static CUresult capture_info(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                             const engine_edge **edges, size_t *count) {
  engine_capture_info info;
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_capture_query(stream, &info)));
  *status = info.status;
  if (info.status != ENGINE_CAPTURE_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = info.id;
  if (graph) *graph = info.graph;
  if (nodes) *nodes = (const CUgraphNode *)info.tips;
  if (edges) *edges = info.edges;
  if (count) *count = info.count;
  return CUDA_SUCCESS;
}
#define INFO CUstream stream, int *status, uint64_t *id
LIBCUDA_STREAM_PAIR(cuStreamIsCapturing, _ptsz, (CUstream stream, int *status),
                    capture_info(engine_stream_handle(stream, own), status, NULL, NULL, NULL, NULL, NULL))
LIBCUDA_STREAM_PAIR(cuStreamGetCaptureInfo, _ptsz, (INFO),
                    capture_info(engine_stream_handle(stream, own), status, id, NULL, NULL, NULL, NULL))
LIBCUDA_STREAM_PAIR(cuStreamGetCaptureInfo_v2, _ptsz, (INFO, CUgraph *graph, const CUgraphNode **nodes, size_t *count),
                    capture_info(engine_stream_handle(stream, own), status, id, graph, nodes, NULL, count))
LIBCUDA_STREAM_PAIR(cuStreamGetCaptureInfo_v3, _ptsz,
                    (INFO, CUgraph *graph, const CUgraphNode **nodes, const engine_edge **edges, size_t *count),
                    capture_info(engine_stream_handle(stream, own), status, id, graph, nodes, edges, count))

#define UPDATE                         \
  flags > 1 ? CUDA_ERROR_INVALID_VALUE \
            : libcuda_result(engine_capture_update(engine_stream_handle(stream, own), nodes, count, flags == 1))
LIBCUDA_STREAM_PAIR(cuStreamUpdateCaptureDependencies, _ptsz,
                    (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags), UPDATE)
LIBCUDA_STREAM_PAIR(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                    (CUstream stream, CUgraphNode *nodes, const engine_edge *edges, size_t count, unsigned flags),
                    UPDATE)

LIBCUDA_CALL(cuThreadExchangeStreamCaptureMode, (int *mode)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_capture_exchange(mode));
}

/* ---- user objects ---- */

LIBCUDA_CALL(cuUserObjectCreate,
             (CUuserObject * object, void *data, cudaHostFn_t destroy, unsigned references, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  return flags != 1 ? CUDA_ERROR_INVALID_VALUE
                    : libcuda_result(engine_object_create(data, destroy, references, object));
}
LIBCUDA_CALL(cuUserObjectRetain, (CUuserObject object, unsigned count)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_object_retain(object, count));
}
LIBCUDA_CALL(cuUserObjectRelease, (CUuserObject object, unsigned count)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_object_release(object, count));
}
LIBCUDA_CALL(cuGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE
                   : libcuda_result(engine_graph_retain_object(graph, object, count, flags == 1));
}
LIBCUDA_CALL(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned count)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_release_object(graph, object, count));
}

/* ---- memory of graphs ---- */

LIBCUDA_CALL(cuDeviceGraphMemTrim, (CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_graph_memory_trim(device));
}
LIBCUDA_CALL(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *value)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_graph_memory_attribute(device, attribute, value));
}
LIBCUDA_CALL(cuDeviceSetGraphMemAttribute, (CUdevice device, int attribute, void *value)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_graph_memory_reset_high(device, attribute, value));
}
