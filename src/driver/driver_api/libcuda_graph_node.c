/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the driver API's graphs: those that read and write values in memory (engine_values.h), what any node is, and
 * the numbers by which nodes and graphs are told apart (Driver API: "Graph Management"). */
#include <string.h>

#include "driver/batch_params.h"
#include "driver/driver_api/libcuda_graph.h"
#include "driver/engine/engine_values.h"

/* ---- contexts of nodes ---- */

CUresult libcuda_node_where(const void *named, engine_where *where) {
  CUcontext context = (CUcontext)(uintptr_t)named;
  engine_green *green = (engine_green *)(uintptr_t)named;
  if (!named) return CUDA_SUCCESS;
  if (!engine_green_valid(green)) {
    if (!libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
    green = libcuda_green_of(context);
  }
  if (green) return libcuda_result(engine_where_green(green, where));
  *where = (engine_where){.given = true, .device = libcuda_device_of(context)};
  return CUDA_SUCCESS;
}

/* Without one of its own: its device's, whichever is current, so that parameters that are given back do not move it. */
static CUcontext context_of(const engine_node_params *p) {
  if (p->where.green) { /* another one may have its address now */
    bool same = engine_green_id(p->where.green) == p->where.green_id;
    return same ? libcuda_green_context(p->where.green) : NULL;
  }
  CUcontext context = libcuda_context_on(p->where.device);
  if (libcuda_green_of(context)) (void)libcuda_primary(p->where.device, &context); /* the current one has some SMs */
  return context;
}

/* ---- batches of memory operations ---- */

CUresult libcuda_node_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS *from, engine_node_params *to) {
  if (!from || from->flags || (from->count && !from->paramArray)) return CUDA_ERROR_INVALID_VALUE;
  *to = (engine_node_params){.kind = ENGINE_NODE_VALUES, .values = {from->paramArray, from->count}};
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuGraphAddBatchMemOpNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_node_values(params, &made));
  return libcuda_result(engine_graph_add(graph, (engine_node *const *)before, NULL, count, &made, node));
}
LIBCUDA_CALL(cuGraphBatchMemOpNodeSetParams, (CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_node_values(params, &made));
  return libcuda_result(engine_node_set(node, &made));
}
LIBCUDA_CALL(cuGraphExecBatchMemOpNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_node_values(params, &made));
  return libcuda_result(engine_exec_set(exec, node, &made));
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS values_of(const engine_node_params *p) {
  return (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = libcuda_current(),
                                         .count = (unsigned)p->values.count,
                                         .paramArray = (engine_value *)(uintptr_t)p->values.list};
}
LIBCUDA_CALL(cuGraphBatchMemOpNodeGetParams, (CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_get(node, &p)));
  if (p.kind != ENGINE_NODE_VALUES) return CUDA_ERROR_INVALID_VALUE;
  *out = values_of(&p);
  return CUDA_SUCCESS;
}

/* ---- what any node is ---- */

/* libcuda_graph.c */
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *),
    cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D *),
    cuGraphMemsetNodeGetParams(CUgraphNode, cudaMemsetParams *),
    cuGraphMemAllocNodeGetParams(CUgraphNode, cudaMemAllocNodeParams *);

static cudaMemcpyBatchNodeParams batch_of(const engine_node_params *p) {
  cudaMemcpyBatchNodeParams batch = batch_to_params(&p->batch);
  batch.ctx = context_of(p);
  return batch;
}

static CUresult describe(CUgraphNode node, const engine_node_params *p, CUgraphNodeParams *to) {
  switch (p->kind) {
  case ENGINE_NODE_KERNEL:
    LIBCUDA_TRY(cuGraphKernelNodeGetParams_v2(node, &to->kernel));
    to->kernel.ctx = context_of(p);
    return CUDA_SUCCESS;
  case ENGINE_NODE_COPY:
    to->memcpy.copyCtx = context_of(p);
    return cuGraphMemcpyNodeGetParams(node, &to->memcpy.copyParams);
  case ENGINE_NODE_SET: to->memset.ctx = context_of(p); return cuGraphMemsetNodeGetParams(node, &to->memset.params);
  case ENGINE_NODE_HOST: to->host = (cudaHostNodeParams){p->host.function, p->host.data}; return CUDA_SUCCESS;
  case ENGINE_NODE_GRAPH: to->graph.graph = p->graph; return CUDA_SUCCESS;
  case ENGINE_NODE_EMPTY: return CUDA_SUCCESS;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD: to->event = p->event; return CUDA_SUCCESS;
  case ENGINE_NODE_ALLOC: return cuGraphMemAllocNodeGetParams(node, &to->alloc);
  case ENGINE_NODE_FREE: to->free = p->memory.address; return CUDA_SUCCESS;
  case ENGINE_NODE_VALUES: to->memOp = values_of(p); return CUDA_SUCCESS;
  case ENGINE_NODE_BATCH: to->memcpyBatch = batch_of(p); return CUDA_SUCCESS;
  case ENGINE_NODE_CONDITIONAL:
    to->conditional = (cudaConditionalNodeParams){.handle = p->conditional.handle,
                                                  .type = (int)p->conditional.type,
                                                  .size = p->conditional.count,
                                                  .phGraph_out = p->conditional.bodies};
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuGraphNodeGetParams, (CUgraphNode node, CUgraphNodeParams *out)) {
  engine_node_params p;
  CUgraphNodeParams found = {.type = 0};
  LIBCUDA_TRY(libcuda_ready());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_get(node, &p)));
  found.type = (int)p.kind;
  LIBCUDA_TRY(describe(node, &p, &found));
  *out = found;
  return CUDA_SUCCESS;
}

/* ---- numbers ---- */

LIBCUDA_CALL(cuGraphGetId, (CUgraph graph, unsigned *id)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_id(graph, id));
}
LIBCUDA_CALL(cuGraphExecGetId, (CUgraphExec exec, unsigned *id)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_exec_id(exec, id));
}
LIBCUDA_CALL(cuGraphNodeGetContainingGraph, (CUgraphNode node, CUgraph *graph)) {
  LIBCUDA_TRY(libcuda_ready());
  engine_node_place place;
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_where(node, &place)));
  *graph = place.graph;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphNodeGetLocalId, (CUgraphNode node, unsigned *id)) {
  LIBCUDA_TRY(libcuda_ready());
  engine_node_place place;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_where(node, &place)));
  *id = place.local;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphNodeGetToolsId, (CUgraphNode node, unsigned long long *id)) {
  LIBCUDA_TRY(libcuda_ready());
  engine_node_place place;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_where(node, &place)));
  *id = place.id;
  return CUDA_SUCCESS;
}
