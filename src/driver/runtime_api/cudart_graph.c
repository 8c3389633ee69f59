/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the CUDA runtime (CUDA Runtime API, "Graph Management"): graphs, nodes and edges whatever their kind, user
 * objects. */
#include "driver/runtime_api/cudart_graph.h"

static engine_node *const *list(const cudaGraphNode_t *nodes) { return (engine_node *const *)nodes; }

CUDART_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
  return engine_return(flags ? cudaErrorInvalidValue : engine_graph_create(graph));
}
CUDART_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return engine_return(engine_graph_destroy(graph)); }
CUDART_API cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  return engine_return(engine_graph_clone(graph, clone));
}

CUDART_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone) {
  return engine_return(engine_node_in_clone(original, clone, node));
}

CUDART_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type) {
  engine_node_params params;
  cudaError_t error = type ? engine_node_get(node, &params) : cudaErrorInvalidValue;
  if (!error) *type = (int)params.kind;
  return engine_return(error);
}

CUDART_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return engine_return(engine_graph_nodes(graph, false, nodes, count));
}
CUDART_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return engine_return(engine_graph_nodes(graph, true, nodes, count));
}
CUDART_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return engine_return(engine_node_destroy(node)); }

CUDART_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  return engine_return(engine_graph_dot(graph, path, flags));
}

/* ---- edges: with their data, or without ---- */

static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                            const engine_edge *edges, size_t count, cudaGraphNodeParams *params) {
  engine_node_params made;
  if (!params) return cudaErrorInvalidValue;
  cudaError_t error = cudart_node_params(params, &made);
  if (!error) error = engine_graph_add(graph, list(before), edges, count, &made, node);
  if (!error && made.kind == ENGINE_NODE_ALLOC) params->alloc.dptr = (void *)(uintptr_t)made.memory.address;
  if (!error && made.kind == ENGINE_NODE_CONDITIONAL) params->conditional.phGraph_out = made.conditional.bodies;
  return cudart_node_error(error);
}

#define WITH_EDGES(GET_EDGES, GET_DEPENDENCIES, GET_DEPENDENTS, ADD, REMOVE, ADD_NODE)                                \
  CUDART_API cudaError_t GET_EDGES(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, engine_edge *edges, \
                                   size_t *count) {                                                                   \
    return engine_return(engine_graph_edges(graph, from, to, edges, count));                                          \
  }                                                                                                                   \
  CUDART_API cudaError_t GET_DEPENDENCIES(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,           \
                                          size_t *count) {                                                            \
    return engine_return(engine_node_neighbours(node, false, nodes, edges, count));                                   \
  }                                                                                                                   \
  CUDART_API cudaError_t GET_DEPENDENTS(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,             \
                                        size_t *count) {                                                              \
    return engine_return(engine_node_neighbours(node, true, nodes, edges, count));                                    \
  }                                                                                                                   \
  CUDART_API cudaError_t ADD(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,               \
                             const engine_edge *edges, size_t count) {                                                \
    return engine_return(engine_graph_connect(graph, list(from), list(to), edges, count));                            \
  }                                                                                                                   \
  CUDART_API cudaError_t REMOVE(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,            \
                                const engine_edge *edges, size_t count) {                                             \
    (void)edges;                                                                                                      \
    return engine_return(engine_graph_disconnect(graph, list(from), list(to), count));                                \
  }                                                                                                                   \
  CUDART_API cudaError_t ADD_NODE(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,            \
                                  const engine_edge *edges, size_t count, cudaGraphNodeParams *params) {              \
    return engine_return(add_node(node, graph, before, edges, count, params));                                        \
  }

#if CUDART_EDGES
WITH_EDGES(cudaGraphGetEdges, cudaGraphNodeGetDependencies, cudaGraphNodeGetDependentNodes, cudaGraphAddDependencies,
           cudaGraphRemoveDependencies, cudaGraphAddNode)
#else
#if CUDART_MAJOR == 12
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, engine_edge *edges,
                                 size_t *count);
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,
                                            size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, engine_edge *edges,
                                              size_t *count);
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const engine_edge *edges, size_t count);
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                           const engine_edge *edges, size_t count);
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                const engine_edge *edges, size_t count, cudaGraphNodeParams *params);
WITH_EDGES(cudaGraphGetEdges_v2, cudaGraphNodeGetDependencies_v2, cudaGraphNodeGetDependentNodes_v2,
           cudaGraphAddDependencies_v2, cudaGraphRemoveDependencies_v2, cudaGraphAddNode_v2)
#endif
CUDART_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
  return engine_return(engine_graph_edges(graph, from, to, NULL, count));
}
CUDART_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return engine_return(engine_node_neighbours(node, false, nodes, NULL, count));
}
CUDART_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return engine_return(engine_node_neighbours(node, true, nodes, NULL, count));
}
CUDART_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                const cudaGraphNode_t *to, size_t count) {
  return engine_return(engine_graph_connect(graph, list(from), list(to), NULL, count));
}
CUDART_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                   const cudaGraphNode_t *to, size_t count) {
  return engine_return(engine_graph_disconnect(graph, list(from), list(to), count));
}
CUDART_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                        size_t count, cudaGraphNodeParams *params) {
  return engine_return(add_node(node, graph, before, NULL, count, params));
}
#endif

CUDART_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *params) {
  engine_node_params made;
  cudaError_t error = params ? cudart_node_params(params, &made) : cudaErrorInvalidValue;
  return engine_return(error ? error : cudart_node_error(engine_node_set(node, &made)));
}

CUDART_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                                        unsigned value, unsigned flags) {
  uint64_t made;
  if (!handle || flags > 1) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_conditional_create(graph, value, flags == 1, &made); /* 1: cudaGraphCondAssignDefault */
  if (!error) *handle = made;
  return engine_return(error);
}

/* ---- user objects ---- */

CUDART_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                            unsigned references, unsigned flags) {
  if (flags != 1) return engine_return(cudaErrorInvalidValue); /* cudaUserObjectNoDestructorSync must be said */
  return engine_return(engine_object_create(data, destroy, references, object));
}
CUDART_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return engine_return(engine_object_retain(object, count));
}
CUDART_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return engine_return(engine_object_release(object, count));
}
CUDART_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                                 unsigned flags) {
  if (flags > 1) return engine_return(cudaErrorInvalidValue); /* 1: cudaGraphUserObjectMove */
  return engine_return(engine_graph_retain_object(graph, object, count, flags == 1));
}
CUDART_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return engine_return(engine_graph_release_object(graph, object, count));
}

/* ---- memory of graphs ---- */

CUDART_API cudaError_t cudaDeviceGraphMemTrim(int device) { return engine_return(engine_graph_memory_trim(device)); }
CUDART_API cudaError_t cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value) {
  return engine_return(engine_graph_memory_attribute(device, attribute, value));
}
CUDART_API cudaError_t cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value) {
  return engine_return(engine_graph_memory_reset_high(device, attribute, value));
}
