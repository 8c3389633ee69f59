/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run, changed: node by node, or as a whole from a graph of the same shape (CUDA Runtime API, "Graph
 * Management"). What is changed is there for the next launch; nodes are neither added nor taken away. */
#include <string.h>

#include "driver/engine/engine_graph_private.h"
#include "driver/engine/engine_values.h"

static engine_node *node_of(engine_graph *graph, uint64_t origin) {
  engine_node *found = NULL;
  for (size_t i = 0; !found && i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    if (node->origin == origin) return node;
    if (node->params.kind == ENGINE_NODE_GRAPH) found = node_of(node->params.graph, origin);
    for (uint32_t k = 0; !found && node->params.kind == ENGINE_NODE_CONDITIONAL && k < node->params.conditional.count;
         k++)
      found = node_of(node->params.conditional.bodies[k], origin);
  }
  return found;
}

/* Nodes are copied in order, so the one that was node i of its graph is here node i, unless some were destroyed. */
static engine_node *find_node(engine_exec *exec, const engine_node *node) {
  if (!engine_node_live(node)) return NULL;
  size_t guess = node->index;
  if (guess < exec->graph->nodes.count && exec->graph->nodes.items[guess]->origin == node->id)
    return exec->graph->nodes.items[guess];
  return node_of(exec->graph, node->id);
}

/* A child graph in an exec is changed node by node: what it looks like must stay. */
static bool same_shape(const engine_graph *ours, const engine_graph *theirs, engine_verdict *verdict);

/* Addresses, values and what a wait compares by may change in an exec (Driver API,
 * cuGraphExecBatchMemOpNodeSetParams). */
static bool same_operations(const engine_node_params *a, const engine_node_params *b) {
  bool same = a->values.count == b->values.count && (!b->values.count || b->values.list);
  for (size_t i = 0; same && i < a->values.count; i++)
    same = engine_value_replaces(&a->values.list[i], &b->values.list[i]);
  return same;
}

/* What a node of an exec is given may not change where it runs. */
static bool stays(const engine_node *node, const engine_where *where) {
  const engine_where *before = &node->params.where;
  if (!where->given) return true;
  return where->device == node->device && where->green_id == (before->given ? before->green_id : 0);
}

int engine_node_change(const engine_node *ours, const engine_node *theirs) {
  const engine_node_params *a = &ours->params, *b = &theirs->params;
  if (!stays(ours, &b->where)) return ENGINE_UPDATE_PARAMETERS;
  switch (a->kind) {
  case ENGINE_NODE_ALLOC:
    return a->memory.bytes == b->memory.bytes && ours->memory == theirs->memory ? 0 : ENGINE_UPDATE_UNSUPPORTED;
  case ENGINE_NODE_FREE: return a->memory.address == b->memory.address ? 0 : ENGINE_UPDATE_UNSUPPORTED;
  case ENGINE_NODE_CONDITIONAL:
    return a->conditional.type == b->conditional.type && a->conditional.count == b->conditional.count
               ? 0
               : ENGINE_UPDATE_PARAMETERS;
  case ENGINE_NODE_KERNEL:
    return a->launch.cooperative == b->launch.cooperative &&
                   !memcmp(a->launch.cluster, b->launch.cluster, sizeof a->launch.cluster)
               ? 0
               : ENGINE_UPDATE_PARAMETERS;
  case ENGINE_NODE_VALUES: return same_operations(a, b) ? 0 : ENGINE_UPDATE_PARAMETERS;
  case ENGINE_NODE_BATCH: return engine_copies_replace(&a->batch, &b->batch) ? 0 : ENGINE_UPDATE_PARAMETERS;
  case ENGINE_NODE_SET:
    return a->set.height == b->set.height || (a->set.height == 1) == (b->set.height == 1) ? 0
                                                                                          : ENGINE_UPDATE_PARAMETERS;
  default: return 0;
  }
}

static bool same_edges(const engine_node *ours, const engine_node *theirs) {
  if (ours->before.count != theirs->before.count) return false;
  for (size_t i = 0; i < ours->before.count; i++) {
    bool found = false;
    for (size_t k = 0; k < theirs->before.count && !found; k++)
      found = theirs->before.items[(i + k) % theirs->before.count].node->index == ours->before.items[i].node->index;
    if (!found) return false;
  }
  return true;
}

static bool say(engine_verdict *verdict, int result, const engine_node *node) {
  *verdict = (engine_verdict){.result = result, .node = (engine_node *)(uintptr_t)node};
  return false;
}

static bool same_shape(const engine_graph *ours, const engine_graph *theirs, engine_verdict *verdict) {
  for (size_t i = 0; i < theirs->nodes.count; i++) theirs->nodes.items[i]->index = (uint32_t)i;
  for (size_t i = 0; i < ours->nodes.count; i++) ours->nodes.items[i]->index = (uint32_t)i;
  if (ours->nodes.count != theirs->nodes.count)
    return say(verdict, ENGINE_UPDATE_TOPOLOGY,
               theirs->nodes.count > ours->nodes.count ? theirs->nodes.items[ours->nodes.count] : NULL);
  for (size_t i = 0; i < ours->nodes.count; i++) {
    const engine_node *a = ours->nodes.items[i], *b = theirs->nodes.items[i];
    if (!same_edges(a, b)) return say(verdict, ENGINE_UPDATE_TOPOLOGY, b);
    if (a->params.kind != b->params.kind) return say(verdict, ENGINE_UPDATE_KIND, b);
    int change = engine_node_change(a, b);
    /* its module may be gone, or its memory */
    if (!change && engine_node_check(a, &b->params)) change = ENGINE_UPDATE_PARAMETERS;
    if (change) return say(verdict, change, b);
    if (a->params.kind == ENGINE_NODE_GRAPH && !same_shape(a->params.graph, b->params.graph, verdict)) return false;
    for (uint32_t k = 0; a->params.kind == ENGINE_NODE_CONDITIONAL && k < a->params.conditional.count; k++)
      if (!same_shape(a->params.conditional.bodies[k], b->params.conditional.bodies[k], verdict)) return false;
  }
  return true;
}

/* The references of an exec are those of the graph it was updated from (CUDA Programming Guide, "CUDA User
 * Objects"). */
static void take_objects(engine_graph *ours, const engine_graph *theirs) {
  const size_t before = ours->objects.count;
  for (size_t i = 0; i < theirs->objects.count; i++) engine_graph_hold(ours, theirs->objects.items[i]);
  if (!before) return;
  for (size_t i = 0; i < before; i++) engine_object_drop(ours->objects.items[i], true);
  ours->objects.count -= before;
  memmove(ours->objects.items, ours->objects.items + before, ours->objects.count * sizeof *ours->objects.items);
}

/* Kernels set a condition by its handle, which is of the graph that made it: handles, their flags and default values
 * are those of the new graph (Driver API, cuGraphExecUpdate). */
static void take_conditions(engine_graph *ours, const engine_graph *theirs) {
  const size_t before = ours->conditions.count;
  for (size_t i = 0; i < theirs->conditions.count; i++) engine_graph_share(ours, theirs->conditions.items[i]);
  if (!before) return;
  for (size_t i = 0; i < before; i++) engine_condition_drop(ours->conditions.items[i]);
  ours->conditions.count -= before;
  memmove(ours->conditions.items, ours->conditions.items + before,
          ours->conditions.count * sizeof *ours->conditions.items);
}

/* They have the same shape, and every node's parameters were checked. */
static void take_over(engine_graph *ours, const engine_graph *theirs) {
  take_objects(ours, theirs);
  take_conditions(ours, theirs);
  for (size_t i = 0; i < ours->nodes.count; i++) {
    engine_node *a = ours->nodes.items[i];
    const engine_node *b = theirs->nodes.items[i];
    a->origin = b->id;
    if (a->params.kind == ENGINE_NODE_GRAPH) take_over(a->params.graph, b->params.graph);
    else if (a->params.kind == ENGINE_NODE_CONDITIONAL) {
      a->params.conditional.handle = b->params.conditional.handle;
      for (uint32_t k = 0; k < a->params.conditional.count; k++)
        take_over(a->params.conditional.bodies[k], b->params.conditional.bodies[k]);
    } else if (a->params.kind != ENGINE_NODE_ALLOC && a->params.kind != ENGINE_NODE_FREE)
      engine_node_assign(a, &b->params);
  }
}

cudaError_t engine_exec_update(engine_exec *exec, engine_graph *graph, engine_verdict *verdict) {
  engine_verdict unasked;
  if (!verdict) verdict = &unasked;
  *verdict = (engine_verdict){.result = ENGINE_UPDATE_ERROR};
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_exec_live(exec) || !engine_graph_live(graph) || graph->exec) error = cudaErrorInvalidValue;
  else if (!same_shape(exec->graph, graph, verdict)) error = cudaErrorGraphExecUpdateFailure;
  else {
    take_over(exec->graph, graph);
    engine_append_host();
    verdict->result = ENGINE_UPDATE_SUCCESS;
  }
  engine_leave();
  return error;
}

static cudaError_t set_locked(engine_exec *exec, engine_node *node, const engine_node_params *params) {
  if (!engine_exec_live(exec)) return cudaErrorInvalidValue;
  engine_node *ours = find_node(exec, node);
  if (!ours || ours->params.kind != params->kind) return cudaErrorInvalidValue;
  if (params->kind == ENGINE_NODE_ALLOC || params->kind == ENGINE_NODE_FREE || params->kind == ENGINE_NODE_CONDITIONAL)
    return cudaErrorNotSupported;
  if (!stays(ours, &params->where)) return cudaErrorInvalidValue;
  if (params->kind == ENGINE_NODE_VALUES && !same_operations(&ours->params, params)) return cudaErrorInvalidValue;
  if (params->kind == ENGINE_NODE_BATCH && !engine_copies_replace(&ours->params.batch, &params->batch))
    return cudaErrorInvalidValue;
  if (params->kind != ENGINE_NODE_GRAPH) return engine_node_assign(ours, params);
  engine_verdict verdict;
  if (!engine_graph_live(params->graph)) return cudaErrorInvalidValue;
  if (!same_shape(ours->params.graph, params->graph, &verdict)) return cudaErrorGraphExecUpdateFailure;
  uint64_t origin = ours->origin;
  take_over(ours->params.graph, params->graph);
  ours->origin = origin;
  return cudaSuccess;
}

cudaError_t engine_exec_set(engine_exec *exec, engine_node *node, const engine_node_params *params) {
  cudaError_t error = engine_enter();
  if (error) return error;
  error = set_locked(exec, node, params);
  if (!error) engine_append_host();
  engine_leave();
  return error;
}

/* Driver API, cuGraphNodeSetEnabled: kernels, copies and sets. */
static bool can_disable(const engine_node *node) { return node && engine_node_has_device(node); }

cudaError_t engine_exec_enable(engine_exec *exec, engine_node *node, bool enabled) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_node *ours = engine_exec_live(exec) ? find_node(exec, node) : NULL;
  if (can_disable(ours)) ours->disabled = !enabled;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_exec_enabled(engine_exec *exec, engine_node *node, bool *enabled) {
  if (!enabled) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_node *ours = engine_exec_live(exec) ? find_node(exec, node) : NULL;
  if (can_disable(ours)) *enabled = !ours->disabled;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}
