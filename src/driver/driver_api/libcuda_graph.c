/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the driver API (Driver API: "Graph Management"): building them. Nodes and graphs are the engine's own, so
 * runtime and driver share them. Where a call has versions, the numbers behind the names say since which CUDA; the
 * layouts below are theirs. */
#include <string.h>

#include "driver/batch_params.h"
#include "driver/driver_api/libcuda_graph.h"

#define ADD CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count

static CUresult add(ADD, const engine_edge *edges, engine_node_params *params) {
  return libcuda_result(engine_graph_add(graph, (engine_node *const *)before, edges, count, params, node));
}
static CUresult set(CUgraphNode node, const engine_node_params *params) {
  return libcuda_result(engine_node_set(node, params));
}
static CUresult get(CUgraphNode node, engine_node_kind kind, const void *out, engine_node_params *params) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_get(node, params)));
  return params->kind == kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the driver's structures as the engine's ---- */

CUresult libcuda_node_kernel(const CUDA_KERNEL_NODE_PARAMS *from, bool v2, engine_node_params *to) {
  if (!from || (from->kernelParams && from->extra)) return CUDA_ERROR_INVALID_VALUE;
  CUfunction function = from->func || !v2 ? from->func : from->kern;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  *to = (engine_node_params){.kind = ENGINE_NODE_KERNEL,
                             .launch = {.function = function,
                                        .grid = {from->gridDimX, from->gridDimY, from->gridDimZ},
                                        .block = {from->blockDimX, from->blockDimY, from->blockDimZ},
                                        .dynamic_shared = from->sharedMemBytes,
                                        .arguments = from->kernelParams}};
  if (v2 && !from->func) LIBCUDA_TRY(libcuda_node_where(from->ctx, &to->where)); /* a CUfunction is of its module's */
  return from->extra ? libcuda_read_extra(from->extra, &to->launch) : CUDA_SUCCESS;
}

static CUresult make_copy(const CUDA_MEMCPY3D *from, engine_node_params *to) {
  engine_box box;
  LIBCUDA_TRY(libcuda_box(from, &box));
  *to = (engine_node_params){.kind = ENGINE_NODE_COPY};
  LIBCUDA_TRY(libcuda_result(engine_box_resolve(&box, &to->copy)));
  to->copy.async = true;
  return CUDA_SUCCESS;
}

static CUresult make_set(const cudaMemsetParams *from, engine_node_params *to) { /* the same layout as the runtime's */
  if (!from || (from->elementSize != 1 && from->elementSize != 2 && from->elementSize != 4))
    return CUDA_ERROR_INVALID_VALUE;
  *to = (engine_node_params){.kind = ENGINE_NODE_SET,
                             .set = {.to = (uint64_t)(uintptr_t)from->dst,
                                     .width = from->width,
                                     .height = from->height,
                                     .depth = 1,
                                     .pitch = from->pitch,
                                     .value = from->value,
                                     .element = from->elementSize,
                                     .async = true}};
  return CUDA_SUCCESS;
}

static CUresult make_batch(const cudaMemcpyBatchNodeParams *from, engine_node_params *to) {
  *to = (engine_node_params){.kind = ENGINE_NODE_BATCH, .batch = batch_from_params(from)};
  return libcuda_node_where(from->ctx, &to->where);
}

static CUresult make_alloc(const cudaMemAllocNodeParams *from, engine_node_params *to) {
  if (!from || from->poolProps.allocType != 1 || from->poolProps.location.type != cudaMemLocationTypeDevice)
    return CUDA_ERROR_INVALID_VALUE;
  if (from->accessDescCount && !from->accessDescs) return CUDA_ERROR_INVALID_VALUE;
  if (from->poolProps.handleTypes) return CUDA_ERROR_NOT_SUPPORTED;
  *to = (engine_node_params){.kind = ENGINE_NODE_ALLOC,
                             .memory = {.bytes = from->bytesize,
                                        .device = from->poolProps.location.id,
                                        .access = from->accessDescs,
                                        .access_count = from->accessDescCount}};
  return CUDA_SUCCESS;
}

CUresult libcuda_node_params(const CUgraphNodeParams *from, engine_node_params *to) {
  if (!from) return CUDA_ERROR_INVALID_VALUE;
  *to = (engine_node_params){.kind = (engine_node_kind)from->type};
  switch (from->type) {
  case ENGINE_NODE_KERNEL: return libcuda_node_kernel(&from->kernel, true, to);
  case ENGINE_NODE_COPY:
    LIBCUDA_TRY(make_copy(&from->memcpy.copyParams, to));
    return libcuda_node_where(from->memcpy.copyCtx, &to->where);
  case ENGINE_NODE_SET:
    LIBCUDA_TRY(make_set(&from->memset.params, to));
    return libcuda_node_where(from->memset.ctx, &to->where);
  case ENGINE_NODE_BATCH: return make_batch(&from->memcpyBatch, to);
  case ENGINE_NODE_HOST: to->host.function = from->host.fn, to->host.data = from->host.userData; return CUDA_SUCCESS;
  case ENGINE_NODE_GRAPH: to->graph = from->graph.graph; return CUDA_SUCCESS;
  case ENGINE_NODE_EMPTY: return CUDA_SUCCESS;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD: to->event = from->event; return CUDA_SUCCESS;
  case ENGINE_NODE_ALLOC: return make_alloc(&from->alloc, to);
  case ENGINE_NODE_FREE: to->memory.address = from->free; return CUDA_SUCCESS;
  case ENGINE_NODE_VALUES: return libcuda_node_values(&from->memOp, to);
  case ENGINE_NODE_CONDITIONAL:
    to->conditional.handle = from->conditional.handle;
    to->conditional.type = (uint32_t)from->conditional.type;
    to->conditional.count = from->conditional.size;
    return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/* ---- graphs ---- */

LIBCUDA_CALL(cuGraphCreate, (CUgraph * graph, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  return flags ? CUDA_ERROR_INVALID_VALUE : libcuda_result(engine_graph_create(graph));
}
LIBCUDA_CALL(cuGraphDestroy, (CUgraph graph)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_destroy(graph));
}
LIBCUDA_CALL(cuGraphClone, (CUgraph * clone, CUgraph graph)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_clone(graph, clone));
}
LIBCUDA_CALL(cuGraphNodeFindInClone, (CUgraphNode * node, CUgraphNode original, CUgraph clone)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_node_in_clone(original, clone, node));
}
LIBCUDA_CALL(cuGraphNodeGetType, (CUgraphNode node, int *type)) {
  engine_node_params params;
  LIBCUDA_TRY(libcuda_ready());
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_node_get(node, &params)));
  *type = (int)params.kind;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_nodes(graph, false, nodes, count));
}
LIBCUDA_CALL(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_nodes(graph, true, nodes, count));
}
LIBCUDA_CALL(cuGraphDestroyNode, (CUgraphNode node)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_node_destroy(node));
}
LIBCUDA_CALL(cuGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_graph_dot(graph, path, flags));
}

/* ---- edges: since 12.3 with data ---- */

#define EDGE_CALLS(SUFFIX, DATA, EDGES)                                                                                \
  LIBCUDA_CALL(cuGraphGetEdges##SUFFIX,                                                                                \
               (CUgraph graph, CUgraphNode * from, CUgraphNode * to DATA(engine_edge * edges), size_t * count)) {      \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    return libcuda_result(engine_graph_edges(graph, from, to, EDGES, count));                                          \
  }                                                                                                                    \
  LIBCUDA_CALL(cuGraphNodeGetDependencies##SUFFIX,                                                                     \
               (CUgraphNode node, CUgraphNode * nodes DATA(engine_edge * edges), size_t * count)) {                    \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    return libcuda_result(engine_node_neighbours(node, false, nodes, EDGES, count));                                   \
  }                                                                                                                    \
  LIBCUDA_CALL(cuGraphNodeGetDependentNodes##SUFFIX,                                                                   \
               (CUgraphNode node, CUgraphNode * nodes DATA(engine_edge * edges), size_t * count)) {                    \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    return libcuda_result(engine_node_neighbours(node, true, nodes, EDGES, count));                                    \
  }                                                                                                                    \
  LIBCUDA_CALL(cuGraphAddDependencies##SUFFIX, (CUgraph graph, const CUgraphNode *from,                                \
                                                const CUgraphNode *to DATA(const engine_edge *edges), size_t count)) { \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    return libcuda_result(                                                                                             \
        engine_graph_connect(graph, (engine_node *const *)from, (engine_node *const *)to, EDGES, count));              \
  }                                                                                                                    \
  LIBCUDA_CALL(                                                                                                        \
      cuGraphRemoveDependencies##SUFFIX,                                                                               \
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to DATA(const engine_edge *edges), size_t count)) {  \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    (void)EDGES;                                                                                                       \
    return libcuda_result(                                                                                             \
        engine_graph_disconnect(graph, (engine_node *const *)from, (engine_node *const *)to, count));                  \
  }                                                                                                                    \
  LIBCUDA_CALL(cuGraphAddNode##SUFFIX,                                                                                 \
               (CUgraphNode * node, CUgraph graph, const CUgraphNode *before DATA(const engine_edge *edges),           \
                size_t count, CUgraphNodeParams *params)) {                                                            \
    engine_node_params made;                                                                                           \
    LIBCUDA_TRY(libcuda_ready());                                                                                      \
    LIBCUDA_TRY(libcuda_node_params(params, &made));                                                                   \
    LIBCUDA_TRY(add(node, graph, before, count, EDGES, &made));                                                        \
    if (made.kind == ENGINE_NODE_ALLOC) params->alloc.dptr = (void *)(uintptr_t)made.memory.address;                   \
    if (made.kind == ENGINE_NODE_CONDITIONAL) params->conditional.phGraph_out = made.conditional.bodies;               \
    return CUDA_SUCCESS;                                                                                               \
  }
#define WITH_DATA(parameter) , parameter
#define WITHOUT_DATA(parameter)
EDGE_CALLS(, WITHOUT_DATA, NULL)
EDGE_CALLS(_v2, WITH_DATA, edges)

/* The forms of 13.4 are those that take batches of copies; here all do. */
LIBCUDA_CALL(cuGraphAddNode_v3, (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, const engine_edge *edges,
                                 size_t count, CUgraphNodeParams *params)) {
  return cuGraphAddNode_v2(node, graph, before, edges, count, params);
}

LIBCUDA_CALL(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(libcuda_node_params(params, &made));
  return set(node, &made);
}
LIBCUDA_CALL(cuGraphNodeSetParams_v2, (CUgraphNode node, CUgraphNodeParams *params)) {
  return cuGraphNodeSetParams(node, params);
}

/* ---- kernels: _v2 since 12.0 ---- */

#define KERNEL_CALLS(SUFFIX, V2)                                                                                \
  LIBCUDA_CALL(cuGraphAddKernelNode##SUFFIX, (ADD, const CUDA_KERNEL_NODE_PARAMS *params)) {                    \
    engine_node_params made;                                                                                    \
    LIBCUDA_TRY(libcuda_enter());                                                                               \
    LIBCUDA_TRY(libcuda_node_kernel(params, V2, &made));                                                        \
    return add(node, graph, before, count, NULL, &made);                                                        \
  }                                                                                                             \
  LIBCUDA_CALL(cuGraphKernelNodeSetParams##SUFFIX, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)) { \
    engine_node_params made;                                                                                    \
    LIBCUDA_TRY(libcuda_ready());                                                                               \
    LIBCUDA_TRY(libcuda_node_kernel(params, V2, &made));                                                        \
    return set(node, &made);                                                                                    \
  }                                                                                                             \
  LIBCUDA_CALL(cuGraphExecKernelNodeSetParams##SUFFIX,                                                          \
               (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)) {                   \
    engine_node_params made;                                                                                    \
    LIBCUDA_TRY(libcuda_ready());                                                                               \
    LIBCUDA_TRY(libcuda_node_kernel(params, V2, &made));                                                        \
    return libcuda_result(engine_exec_set(exec, node, &made));                                                  \
  }                                                                                                             \
  LIBCUDA_CALL(cuGraphKernelNodeGetParams##SUFFIX, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS * out)) {         \
    engine_node_params p;                                                                                       \
    LIBCUDA_TRY(libcuda_ready());                                                                               \
    LIBCUDA_TRY(get(node, ENGINE_NODE_KERNEL, out, &p));                                                        \
    const CUDA_KERNEL_NODE_PARAMS found = {.func = p.launch.function,                                           \
                                           .gridDimX = p.launch.grid[0],                                        \
                                           .gridDimY = p.launch.grid[1],                                        \
                                           .gridDimZ = p.launch.grid[2],                                        \
                                           .blockDimX = p.launch.block[0],                                      \
                                           .blockDimY = p.launch.block[1],                                      \
                                           .blockDimZ = p.launch.block[2],                                      \
                                           .sharedMemBytes = (unsigned)p.launch.dynamic_shared,                 \
                                           .kernelParams = p.launch.arguments,                                  \
                                           .kern = p.launch.function};                                          \
    memcpy(out, &found, V2 ? sizeof found : offsetof(CUDA_KERNEL_NODE_PARAMS, kern));                           \
    return CUDA_SUCCESS;                                                                                        \
  }
KERNEL_CALLS(, false)
KERNEL_CALLS(_v2, true)

LIBCUDA_CALL(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_node_copy_attributes(to, from));
}
LIBCUDA_CALL(cuGraphKernelNodeGetAttribute, (CUgraphNode node, int attribute, cudaLaunchAttributeValue *value)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_node_attribute(node, attribute, value));
}
LIBCUDA_CALL(cuGraphKernelNodeSetAttribute, (CUgraphNode node, int attribute, const cudaLaunchAttributeValue *value)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_node_set_attribute(node, attribute, value));
}

/* ---- copies and sets ---- */

LIBCUDA_CALL(cuGraphAddMemcpyNode, (ADD, const CUDA_MEMCPY3D *params, CUcontext context)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  if (!params || !libcuda_is_live(context)) return params ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(make_copy(params, &made));
  LIBCUDA_TRY(libcuda_node_where(context, &made.where));
  return add(node, graph, before, count, NULL, &made);
}
LIBCUDA_CALL(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(make_copy(params, &made));
  return set(node, &made);
}
LIBCUDA_CALL(cuGraphExecMemcpyNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  if (!params || !libcuda_is_live(context)) return params ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(make_copy(params, &made));
  LIBCUDA_TRY(libcuda_node_where(context, &made.where));
  return libcuda_result(engine_exec_set(exec, node, &made));
}
static CUmemorytype type_of(engine_side side) {
  return side == ENGINE_SIDE_HOST     ? CU_MEMORYTYPE_HOST
         : side == ENGINE_SIDE_DEVICE ? CU_MEMORYTYPE_DEVICE
                                      : CU_MEMORYTYPE_UNIFIED;
}

LIBCUDA_CALL(cuGraphMemcpyNodeGetParams, (CUgraphNode node, CUDA_MEMCPY3D *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_COPY, out, &p));
  const engine_copy *c = &p.copy;
  size_t to_row = c->height > 1 || c->depth > 1 ? c->to_pitch : c->width,
         from_row = c->height > 1 || c->depth > 1 ? c->from_pitch : c->width;
  *out = (CUDA_MEMCPY3D){.srcMemoryType = type_of(c->from_side),
                         .srcHost = c->from_side == ENGINE_SIDE_HOST ? (const void *)(uintptr_t)c->from : NULL,
                         .srcDevice = c->from_side == ENGINE_SIDE_HOST ? 0 : c->from,
                         .srcPitch = from_row,
                         .srcHeight = c->depth > 1 && from_row ? c->from_slice / from_row : c->height,
                         .dstMemoryType = type_of(c->to_side),
                         .dstHost = c->to_side == ENGINE_SIDE_HOST ? (void *)(uintptr_t)c->to : NULL,
                         .dstDevice = c->to_side == ENGINE_SIDE_HOST ? 0 : c->to,
                         .dstPitch = to_row,
                         .dstHeight = c->depth > 1 && to_row ? c->to_slice / to_row : c->height,
                         .WidthInBytes = c->width,
                         .Height = c->height,
                         .Depth = c->depth};
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphAddMemsetNode, (ADD, const cudaMemsetParams *params, CUcontext context)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  if (!libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  LIBCUDA_TRY(make_set(params, &made));
  LIBCUDA_TRY(libcuda_node_where(context, &made.where));
  return add(node, graph, before, count, NULL, &made);
}
LIBCUDA_CALL(cuGraphMemsetNodeSetParams, (CUgraphNode node, const cudaMemsetParams *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(make_set(params, &made));
  return set(node, &made);
}
LIBCUDA_CALL(cuGraphExecMemsetNodeSetParams,
             (CUgraphExec exec, CUgraphNode node, const cudaMemsetParams *params, CUcontext context)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  if (!libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  LIBCUDA_TRY(make_set(params, &made));
  LIBCUDA_TRY(libcuda_node_where(context, &made.where));
  return libcuda_result(engine_exec_set(exec, node, &made));
}
LIBCUDA_CALL(cuGraphMemsetNodeGetParams, (CUgraphNode node, cudaMemsetParams *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_SET, out, &p));
  *out = (cudaMemsetParams){
      (void *)(uintptr_t)p.set.to, p.set.pitch, (unsigned)p.set.value, p.set.element, p.set.width, p.set.height};
  return CUDA_SUCCESS;
}

/* ---- host functions, child graphs, events, memory ---- */

LIBCUDA_CALL(cuGraphAddHostNode, (ADD, const cudaHostNodeParams *params)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return add(node, graph, before, count, NULL,
             &(engine_node_params){.kind = ENGINE_NODE_HOST, .host = {params->fn, params->userData}});
}
LIBCUDA_CALL(cuGraphHostNodeSetParams, (CUgraphNode node, const cudaHostNodeParams *params)) {
  LIBCUDA_TRY(libcuda_ready());
  return params ? set(node, &(engine_node_params){.kind = ENGINE_NODE_HOST, .host = {params->fn, params->userData}})
                : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuGraphExecHostNodeSetParams, (CUgraphExec exec, CUgraphNode node, const cudaHostNodeParams *params)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_exec_set(
      exec, node, &(engine_node_params){.kind = ENGINE_NODE_HOST, .host = {params->fn, params->userData}}));
}
LIBCUDA_CALL(cuGraphHostNodeGetParams, (CUgraphNode node, cudaHostNodeParams *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_HOST, out, &p));
  *out = (cudaHostNodeParams){p.host.function, p.host.data};
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphAddChildGraphNode, (ADD, CUgraph child)) {
  LIBCUDA_TRY(libcuda_ready());
  return add(node, graph, before, count, NULL, &(engine_node_params){.kind = ENGINE_NODE_GRAPH, .graph = child});
}
LIBCUDA_CALL(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_GRAPH, out, &p));
  *out = p.graph;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_exec_set(exec, node, &(engine_node_params){.kind = ENGINE_NODE_GRAPH, .graph = child}));
}
LIBCUDA_CALL(cuGraphAddEmptyNode, (ADD)) {
  LIBCUDA_TRY(libcuda_ready());
  return add(node, graph, before, count, NULL, &(engine_node_params){.kind = ENGINE_NODE_EMPTY});
}

#define EVENT_CALLS(NAME, KIND)                                                                              \
  LIBCUDA_CALL(cuGraphAddEvent##NAME##Node, (ADD, CUevent event)) {                                          \
    LIBCUDA_TRY(libcuda_ready());                                                                            \
    return add(node, graph, before, count, NULL, &(engine_node_params){.kind = KIND, .event = event});       \
  }                                                                                                          \
  LIBCUDA_CALL(cuGraphEvent##NAME##NodeSetEvent, (CUgraphNode node, CUevent event)) {                        \
    LIBCUDA_TRY(libcuda_ready());                                                                            \
    return set(node, &(engine_node_params){.kind = KIND, .event = event});                                   \
  }                                                                                                          \
  LIBCUDA_CALL(cuGraphExecEvent##NAME##NodeSetEvent, (CUgraphExec exec, CUgraphNode node, CUevent event)) {  \
    LIBCUDA_TRY(libcuda_ready());                                                                            \
    return libcuda_result(engine_exec_set(exec, node, &(engine_node_params){.kind = KIND, .event = event})); \
  }                                                                                                          \
  LIBCUDA_CALL(cuGraphEvent##NAME##NodeGetEvent, (CUgraphNode node, CUevent * event)) {                      \
    engine_node_params p;                                                                                    \
    LIBCUDA_TRY(libcuda_ready());                                                                            \
    LIBCUDA_TRY(get(node, KIND, event, &p));                                                                 \
    *event = p.event;                                                                                        \
    return CUDA_SUCCESS;                                                                                     \
  }
EVENT_CALLS(Record, ENGINE_NODE_RECORD)
EVENT_CALLS(Wait, ENGINE_NODE_WAIT)

LIBCUDA_CALL(cuGraphAddMemAllocNode, (ADD, cudaMemAllocNodeParams *params)) {
  engine_node_params made;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(make_alloc(params, &made));
  LIBCUDA_TRY(add(node, graph, before, count, NULL, &made));
  params->dptr = (void *)(uintptr_t)made.memory.address;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphMemAllocNodeGetParams, (CUgraphNode node, cudaMemAllocNodeParams *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_ALLOC, out, &p));
  *out =
      (cudaMemAllocNodeParams){.poolProps = {.allocType = 1, .location = {cudaMemLocationTypeDevice, p.memory.device}},
                               .bytesize = p.memory.bytes,
                               .accessDescs = p.memory.access,
                               .accessDescCount = p.memory.access_count,
                               .dptr = (void *)(uintptr_t)p.memory.address};
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuGraphAddMemFreeNode, (ADD, CUdeviceptr address)) {
  LIBCUDA_TRY(libcuda_ready());
  return add(node, graph, before, count, NULL,
             &(engine_node_params){.kind = ENGINE_NODE_FREE, .memory = {.address = address}});
}
LIBCUDA_CALL(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *out)) {
  engine_node_params p;
  LIBCUDA_TRY(libcuda_ready());
  LIBCUDA_TRY(get(node, ENGINE_NODE_FREE, out, &p));
  *out = p.memory.address;
  return CUDA_SUCCESS;
}
