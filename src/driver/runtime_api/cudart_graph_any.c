/* SPDX-License-Identifier: Apache-2.0 */
/* What any node of a graph is, and the numbers by which graphs and nodes are told apart (CUDA Runtime API: "Graph
 * Management", CUDA 13). */
#include "driver/batch_params.h"
#include "driver/runtime_api/cudart_graph.h"

#if CUDART_MAJOR >= 13
cudaError_t cudaGraphGetId(cudaGraph_t graph, unsigned *id);
cudaError_t cudaGraphExecGetId(cudaGraphExec_t exec, unsigned *id);
cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph);
cudaError_t cudaGraphNodeGetLocalId(cudaGraphNode_t node, unsigned *id);
cudaError_t cudaGraphNodeGetToolsId(cudaGraphNode_t node, unsigned long long *id);

static cudaMemcpyBatchNodeParams batch_of(const engine_node_params *p) {
  cudaMemcpyBatchNodeParams batch = batch_to_params(&p->batch);
  batch.ctx = cudart_context_of(&p->where);
  return batch;
}

static cudaError_t describe(cudaGraphNode_t node, const engine_node_params *p, cudaGraphNodeParams *to) {
  switch (p->kind) {
  case ENGINE_NODE_KERNEL:
    to->kernel.ctx = cudart_context_of(&p->where);
    return cudaGraphKernelNodeGetParams(node, &to->kernel.of);
  case ENGINE_NODE_COPY:
    to->memcpy.ctx = cudart_context_of(&p->where);
    return cudaGraphMemcpyNodeGetParams(node, &to->memcpy.copyParams);
  case ENGINE_NODE_SET:
    to->memset.ctx = cudart_context_of(&p->where);
    return cudaGraphMemsetNodeGetParams(node, &to->memset.of);
  case ENGINE_NODE_BATCH: to->memcpyBatch = batch_of(p); return cudaSuccess;
  case ENGINE_NODE_HOST: return cudaGraphHostNodeGetParams(node, &to->host);
  case ENGINE_NODE_GRAPH: to->graph.graph = p->graph; return cudaSuccess;
  case ENGINE_NODE_EMPTY: return cudaSuccess;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD: to->event.event = p->event; return cudaSuccess;
  case ENGINE_NODE_ALLOC: return cudaGraphMemAllocNodeGetParams(node, &to->alloc);
  case ENGINE_NODE_FREE: to->free.dptr = (void *)(uintptr_t)p->memory.address; return cudaSuccess;
  case ENGINE_NODE_CONDITIONAL:
    to->conditional = (cudaConditionalNodeParams){.handle = p->conditional.handle,
                                                  .type = (int)p->conditional.type,
                                                  .size = p->conditional.count,
                                                  .phGraph_out = p->conditional.bodies};
    return cudaSuccess;
  case ENGINE_NODE_VALUES: return cudaErrorNotSupported; /* the runtime has no structure for these */
  }
  return cudaErrorInvalidValue;
}

CUDART_API cudaError_t cudaGraphNodeGetParams(cudaGraphNode_t node, cudaGraphNodeParams *params) {
  engine_node_params p;
  cudaGraphNodeParams found = {.type = 0};
  cudaError_t error = params ? engine_node_get(node, &p) : cudaErrorInvalidValue;
  if (!error) found.type = (int)p.kind;
  if (!error) error = describe(node, &p, &found);
  if (!error) *params = found;
  return engine_return(error);
}

CUDART_API cudaError_t cudaGraphGetId(cudaGraph_t graph, unsigned *id) {
  return engine_return(engine_graph_id(graph, id));
}
CUDART_API cudaError_t cudaGraphExecGetId(cudaGraphExec_t exec, unsigned *id) {
  return engine_return(engine_exec_id(exec, id));
}
CUDART_API cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  engine_node_place place;
  cudaError_t error = graph ? engine_node_where(node, &place) : cudaErrorInvalidValue;
  if (!error) *graph = place.graph;
  return engine_return(error);
}
CUDART_API cudaError_t cudaGraphNodeGetLocalId(cudaGraphNode_t node, unsigned *id) {
  engine_node_place place;
  cudaError_t error = id ? engine_node_where(node, &place) : cudaErrorInvalidValue;
  if (!error) *id = place.local;
  return engine_return(error);
}
CUDART_API cudaError_t cudaGraphNodeGetToolsId(cudaGraphNode_t node, unsigned long long *id) {
  engine_node_place place;
  cudaError_t error = id ? engine_node_where(node, &place) : cudaErrorInvalidValue;
  if (!error) *id = place.id;
  return engine_return(error);
}
#endif
