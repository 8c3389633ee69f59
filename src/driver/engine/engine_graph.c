/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as programs build them: nodes, edges, clones, and what may be asked of them (engine_graph.h).
 *
 * A node's parameters are checked when it is made or changed, with the functions that the same operation on a stream
 * goes through; memory that only exists while the graph runs is let through, and looked at again at the launch. */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph_private.h"
#include "driver/engine/engine_values.h"

engine_graphs ff_graphs;

static bool is_live(const void *handle, engine_handle_kind kind) {
  return engine_handles_have(&ff_engine.handles, handle, kind);
}
bool engine_graph_live(const engine_graph *graph) { return is_live(graph, ENGINE_HANDLE_GRAPH); }
bool engine_node_live(const engine_node *node) { return is_live(node, ENGINE_HANDLE_NODE); }

/* ---- parameters ---- */

static void drop_params(engine_node *node) {
  free(node->packed);
  free(node->arguments);
  node->packed = NULL;
  node->arguments = NULL;
  if (node->params.kind == ENGINE_NODE_GRAPH && node->params.graph) engine_graph_free(node->params.graph);
  for (uint32_t i = 0; node->params.kind == ENGINE_NODE_CONDITIONAL && node->params.conditional.bodies &&
                       i < node->params.conditional.count;
       i++)
    engine_graph_free(node->params.conditional.bodies[i]);
  if (node->params.kind == ENGINE_NODE_CONDITIONAL) free(node->params.conditional.bodies);
  free((void *)(uintptr_t)node->params.values.list);
  node->params.values.list = NULL;
  engine_copies_free(&node->params.batch);
  node->params.graph = NULL;
  node->params.conditional.bodies = NULL;
}

/* Pointers to each parameter in the block, as a program gave them. */
static void point_arguments(engine_node *node, const exec_kernel_info *kernel) {
  node->arguments = ff_alloc((kernel->param_count + 1) * sizeof *node->arguments);
  node->argument_count = kernel->param_count;
  for (uint32_t i = 0; i < kernel->param_count; i++) node->arguments[i] = node->packed + kernel->params[i].offset;
  node->params.launch.packed = node->packed;
  node->params.launch.packed_bytes = kernel->param_bytes;
  node->params.launch.arguments = NULL;
  node->params.launch.stream = NULL;
}

static cudaError_t assign_launch(engine_node *node, const engine_node_params *params) {
  engine_function_info info;
  unsigned char *packed;
  cudaError_t error = engine_launch_pack_locked(&params->launch, node->device, &info, &packed);
  if (error) return error;
  drop_params(node);
  cudaAccessPolicyWindow window = node->params.launch.window; /* an attribute of the node, not of what it launches */
  node->params = *params;
  if (!params->launch.has_window) node->params.launch.window = window;
  node->packed = packed;
  point_arguments(node, &info.kernel);
  return cudaSuccess;
}

/* is `wanted` it, or something it is part of? */
static bool contains(const engine_graph *graph, const engine_graph *wanted) {
  for (const engine_graph *g = wanted; g; g = g->owner ? g->owner->graph : NULL)
    if (g == graph) return true;
  return false;
}

static cudaError_t assign_child(engine_node *node, const engine_node_params *params) {
  if (!engine_graph_live(params->graph) || contains(params->graph, node->graph)) return cudaErrorInvalidValue;
  if (engine_graph_has_memory(params->graph)) {
    engine_say_once("child graph memory", "a child graph with memory nodes is not implemented by the virtual GPU");
    return cudaErrorNotSupported;
  }
  engine_graph *copy = engine_graph_copy(params->graph, 0);
  if (!copy) return cudaErrorInvalidValue;
  drop_params(node);
  node->params = *params;
  node->params.graph = copy;
  copy->owner = node;
  return cudaSuccess;
}

/* a body may use those around it */
static const engine_condition *condition_of(const engine_graph *graph, uint64_t handle) {
  for (; graph; graph = graph->owner ? graph->owner->graph : NULL)
    for (size_t i = 0; i < graph->conditions.count; i++)
      if (graph->conditions.items[i]->handle == handle) return graph->conditions.items[i];
  return NULL;
}

static cudaError_t assign_conditional(engine_node *node, const engine_node_params *params) {
  uint32_t count = params->conditional.count, most = params->conditional.type == ENGINE_CONDITIONAL_IF ? 2 : 1;
  if (params->conditional.type > ENGINE_CONDITIONAL_SWITCH || !count || count > 1024) return cudaErrorInvalidValue;
  if (params->conditional.type != ENGINE_CONDITIONAL_SWITCH && count > most) return cudaErrorInvalidValue;
  if (!condition_of(node->graph, params->conditional.handle)) return cudaErrorInvalidValue;
  drop_params(node);
  node->params = *params;
  node->params.conditional.bodies = ff_alloc(count * sizeof(engine_graph *));
  for (uint32_t i = 0; i < count; i++) {
    node->params.conditional.bodies[i] = engine_graph_make();
    node->params.conditional.bodies[i]->owner = node;
  }
  return cudaSuccess;
}

static cudaError_t check_params(const engine_node *node, const engine_node_params *params) {
  switch (params->kind) {
  case ENGINE_NODE_COPY: return engine_copy_check_locked(&params->copy);
  case ENGINE_NODE_SET: return engine_set_check_locked(&params->set);
  case ENGINE_NODE_HOST: return params->host.function ? cudaSuccess : cudaErrorInvalidValue;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD:
    if (!params->event) return cudaErrorInvalidValue;
    return engine_event_find(params->event) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  case ENGINE_NODE_ALLOC:
    if (node->graph->owner) return cudaErrorInvalidValue;
    return engine_graph_memory_check(params);
  case ENGINE_NODE_EMPTY: return cudaSuccess;
  case ENGINE_NODE_VALUES: return engine_values_check_locked(params->values.list, params->values.count);
  case ENGINE_NODE_BATCH: return engine_copies_check_locked(&params->batch);
  default: return cudaErrorInvalidValue;
  }
}

static engine_value *copy_values(const engine_node_params *params) {
  engine_value *copy = ff_alloc((params->values.count + 1) * sizeof *copy);
  if (params->values.count) memcpy(copy, params->values.list, params->values.count * sizeof *copy);
  return copy;
}

static bool can_change(engine_node_kind kind) { /* in an exec, other than part by part */
  return kind != ENGINE_NODE_GRAPH && kind != ENGINE_NODE_CONDITIONAL && kind != ENGINE_NODE_ALLOC &&
         kind != ENGINE_NODE_FREE;
}

bool engine_node_depends(const engine_node *node, const engine_node *wanted) {
  FF_VEC(const engine_node *) open = {0};
  uint64_t mark = ++ff_graphs.next_mark;
  bool found = node == wanted;
  FF_PUSH(&open, node);
  while (!found && open.count) {
    const engine_node *at = open.items[--open.count];
    for (size_t i = 0; !found && i < at->before.count; i++) {
      engine_node *before = at->before.items[i].node;
      found = before == wanted;
      if (before->mark == mark) continue;
      before->mark = mark;
      FF_PUSH(&open, before);
    }
  }
  free(open.items);
  return found;
}

/* What the graph itself gave out may be freed once, and after that; other graphs' memory is theirs to know. */
static cudaError_t assign_free(engine_node *node, const engine_node_params *params) {
  engine_graph_memory *memory = engine_graph_memory_at(params->memory.address);
  if (!memory || node->graph->owner) return cudaErrorInvalidValue;
  engine_node *from = NULL;
  for (size_t i = node->graph->nodes.count; i-- > 0 && !from;) { /* the latest: an address may be used again */
    engine_node *n = node->graph->nodes.items[i];
    if (n->memory == memory && !n->freed_by) from = n;
    else if (n->memory == memory) return cudaErrorInvalidValue;
  }
  if (from && !engine_node_depends(node, from)) return cudaErrorInvalidValue;
  if (from) from->freed_by = node;
  drop_params(node);
  node->params = *params;
  node->params.memory.bytes = memory->bytes;
  return cudaSuccess;
}

static cudaError_t assign_alloc(engine_node *node, const engine_node_params *params) {
  cudaError_t error;
  engine_graph_memory *memory = engine_graph_memory_make(node, params, &error);
  if (error) return error;
  node->memory = memory;
  node->params = *params;
  node->params.memory.address = memory->address;
  node->params.memory.access = memory->access_count ? memory->access : NULL;
  return cudaSuccess;
}

cudaError_t engine_node_check(const engine_node *node, const engine_node_params *params) {
  if (params->kind != ENGINE_NODE_KERNEL) return can_change(params->kind) ? check_params(node, params) : cudaSuccess;
  engine_function_info info;
  unsigned char *packed = NULL;
  cudaError_t error = engine_launch_pack_locked(&params->launch, node->device, &info, &packed);
  free(packed);
  return error;
}

static cudaError_t assign(engine_node *node, const engine_node_params *params) {
  if (params->kind == ENGINE_NODE_KERNEL) return assign_launch(node, params);
  if (params->kind == ENGINE_NODE_GRAPH) return assign_child(node, params);
  if (params->kind == ENGINE_NODE_CONDITIONAL) return assign_conditional(node, params);
  if (params->kind == ENGINE_NODE_FREE) return assign_free(node, params);
  cudaError_t error = check_params(node, params);
  if (error) return error;
  if (params->kind == ENGINE_NODE_ALLOC) return assign_alloc(node, params);
  /* before the node's own go: the lists may be those */
  engine_value *values = params->kind == ENGINE_NODE_VALUES ? copy_values(params) : NULL;
  engine_batch batch = {.count = 0};
  if (params->kind == ENGINE_NODE_BATCH) batch = engine_copies_keep(&params->batch);
  drop_params(node);
  node->params = *params;
  node->params.values.list = values;
  node->params.batch = batch;
  return cudaSuccess;
}

cudaError_t engine_node_assign(engine_node *node, const engine_node_params *params) {
  const engine_where before = node->params.where;
  const int device = node->device;
  if (params->where.given) node->device = params->where.device; /* the kernel's code is that device's */
  cudaError_t error = assign(node, params);
  if (error) node->device = device;
  else if (!params->where.given) node->params.where = before;
  return error;
}

/* ---- nodes and edges ---- */

static engine_node *node_make(engine_graph *graph) {
  engine_node *node = ff_alloc(sizeof *node);
  *node = (engine_node){.graph = graph,
                        .id = ++ff_graphs.next_node,
                        .local = graph->next_local++,
                        .index = (uint32_t)graph->nodes.count,
                        .params.kind = ENGINE_NODE_EMPTY};
  FF_PUSH(&graph->nodes, node);
  engine_handles_add(&ff_engine.handles, node, ENGINE_HANDLE_NODE);
  return node;
}

static void link_remove(engine_node *from, engine_node *to) {
  size_t at = 0;
  while (to->before.items[at].node != from) at++;
  to->before.count--;
  memmove(to->before.items + at, to->before.items + at + 1, (to->before.count - at) * sizeof *to->before.items);
  for (at = 0; from->after.items[at] != to;) at++;
  from->after.count--;
  memmove(from->after.items + at, from->after.items + at + 1, (from->after.count - at) * sizeof *from->after.items);
}

static void link_add(engine_node *from, engine_node *to, engine_edge edge) {
  FF_PUSH(&to->before, ((engine_link){from, edge}));
  FF_PUSH(&from->after, to);
}

static bool linked(const engine_node *from, const engine_node *to) {
  bool short_list = from->after.count < to->before.count;
  for (size_t i = 0; i < (short_list ? from->after.count : to->before.count); i++)
    if (short_list ? from->after.items[i] == to : to->before.items[i].node == from) return true;
  return false;
}

static void node_free(engine_node *node) { /* its edges are gone, or all nodes go */
  drop_params(node);
  if (node->memory) engine_graph_memory_release(node->memory);
  engine_handles_remove(&ff_engine.handles, node);
  free(node->before.items);
  free(node->after.items);
  free(node->attributes.items);
  free(node);
}

static void unlink_all(engine_node *node) {
  while (node->before.count) link_remove(node->before.items[node->before.count - 1].node, node);
  while (node->after.count) link_remove(node, node->after.items[node->after.count - 1]);
}

static void node_remove(engine_node *node) {
  engine_graph *graph = node->graph;
  unlink_all(node);
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i]->freed_by == node) graph->nodes.items[i]->freed_by = NULL;
  size_t at = 0;
  while (graph->nodes.items[at] != node) at++;
  graph->nodes.count--;
  memmove(graph->nodes.items + at, graph->nodes.items + at + 1, (graph->nodes.count - at) * sizeof *graph->nodes.items);
  node_free(node);
}

cudaError_t engine_graph_add_locked(engine_graph *graph, int device, engine_node *const *before,
                                    const engine_edge *edges, size_t count, engine_node_params *params,
                                    engine_node **out) {
  uint64_t mark = ++ff_graphs.next_mark;
  for (size_t i = 0; i < count; i++) {
    if (!engine_node_live(before[i]) || before[i]->graph != graph || before[i]->mark == mark)
      return cudaErrorInvalidValue;
    before[i]->mark = mark;
  }
  engine_node *node = node_make(graph);
  node->device = device;
  for (size_t i = 0; i < count; i++) link_add(before[i], node, edges ? edges[i] : (engine_edge){0});
  cudaError_t error = engine_node_assign(node, params);
  if (error) {
    node_remove(node);
    return error;
  }
  if (params->kind == ENGINE_NODE_ALLOC) params->memory.address = node->params.memory.address;
  if (params->kind == ENGINE_NODE_CONDITIONAL) params->conditional.bodies = node->params.conditional.bodies;
  *out = node;
  return cudaSuccess;
}

cudaError_t engine_graph_add(engine_graph *graph, engine_node *const *before, const engine_edge *edges, size_t count,
                             engine_node_params *params, engine_node **node) {
  if (!node || (count && !before)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_capture *again = engine_recapture_of(graph);
  if (!params->where.given) params->where = engine_where_now(NULL);
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  else if (again) error = engine_recapture_node(again, engine_device_of(NULL), before, count, params, node);
  else error = engine_graph_add_locked(graph, engine_device_of(NULL), before, edges, count, params, node);
  engine_leave();
  return error;
}

static bool has_memory(const engine_node *node) {
  return node->params.kind == ENGINE_NODE_ALLOC || node->params.kind == ENGINE_NODE_FREE;
}

cudaError_t engine_node_destroy(engine_node *node) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_node_live(node) || node->graph->exec) error = cudaErrorInvalidValue;
  else if (has_memory(node) || ((node->before.count || node->after.count) && engine_graph_has_memory(node->graph)))
    error = cudaErrorNotSupported;
  else node_remove(node);
  engine_leave();
  return error;
}

cudaError_t engine_node_get(engine_node *node, engine_node_params *params) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_node_live(node)) {
    *params = node->params;
    params->where.device = node->device;
    params->launch.arguments = node->arguments;
  } else {
    error = cudaErrorInvalidValue;
  }
  engine_leave();
  return error;
}

cudaError_t engine_node_set(engine_node *node, const engine_node_params *params) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_node_live(node) || node->params.kind != params->kind) error = cudaErrorInvalidValue;
  else if (has_memory(node) || params->kind == ENGINE_NODE_CONDITIONAL) error = cudaErrorNotSupported;
  else error = engine_node_assign(node, params);
  engine_leave();
  return error;
}

/* ---- edges from outside ---- */

static bool pair_valid(const engine_graph *graph, const engine_node *from, const engine_node *to) {
  return engine_node_live(from) && engine_node_live(to) && from != to && from->graph == graph && to->graph == graph;
}

cudaError_t engine_graph_connect(engine_graph *graph, engine_node *const *from, engine_node *const *to,
                                 const engine_edge *edges, size_t count) {
  if (count && (!from || !to)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  size_t done = 0;
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  for (; !error && done < count; done++) {
    if (!pair_valid(graph, from[done], to[done]) || linked(from[done], to[done])) error = cudaErrorInvalidValue;
    else link_add(from[done], to[done], edges ? edges[done] : (engine_edge){0});
    if (error) break;
  }
  while (error && done > 0) {
    done--;
    link_remove(from[done], to[done]);
  }
  engine_leave();
  return error;
}

cudaError_t engine_graph_disconnect(engine_graph *graph, engine_node *const *from, engine_node *const *to,
                                    size_t count) {
  if (count && (!from || !to)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < count; i++)
    if (!pair_valid(graph, from[i], to[i]) || !linked(from[i], to[i])) error = cudaErrorInvalidValue;
  if (!error && count && engine_graph_has_memory(graph)) error = cudaErrorNotSupported;
  for (size_t i = 0; !error && i < count; i++)
    if (linked(from[i], to[i])) link_remove(from[i], to[i]);
  engine_leave();
  return error;
}

/* ---- graphs ---- */

engine_graph *engine_graph_make(void) {
  engine_graph *graph = ff_alloc(sizeof *graph);
  *graph = (engine_graph){.device = engine_device_of(NULL), .id = ++ff_graphs.next_graph, .next = ff_graphs.graphs};
  ff_graphs.graphs = graph;
  engine_handles_add(&ff_engine.handles, graph, ENGINE_HANDLE_GRAPH);
  return graph;
}

/* The captures into it are over; execs forget it. */
static void graph_forget(engine_graph *graph) {
  for (engine_capture *c = ff_graphs.captures; c; c = c->next)
    if (c->graph == graph) {
      c->invalid = true;
      c->graph = NULL;
    }
  for (engine_exec *e = ff_graphs.execs; e; e = e->next)
    if (e->from == graph) e->from = NULL;
}

void engine_graph_free(engine_graph *graph) {
  graph_forget(graph);
  for (size_t i = 0; i < graph->nodes.count; i++) node_free(graph->nodes.items[i]);
  for (size_t i = 0; i < graph->objects.count; i++) engine_object_drop(graph->objects.items[i], true);
  for (size_t i = 0; i < graph->conditions.count; i++) engine_condition_drop(graph->conditions.items[i]);
  engine_graph **at = &ff_graphs.graphs;
  while (*at != graph) at = &(*at)->next;
  *at = graph->next;
  engine_handles_remove(&ff_engine.handles, graph);
  free(graph->nodes.items);
  free(graph->objects.items);
  free(graph->conditions.items);
  free(graph->order.items);
  free(graph);
}

cudaError_t engine_graph_create(engine_graph **graph) {
  if (!graph) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  *graph = engine_graph_make();
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_graph_destroy(engine_graph *graph) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_graph_live(graph) || graph->owner || graph->exec) error = cudaErrorInvalidValue;
  else engine_graph_free(graph);
  engine_leave();
  return error;
}

bool engine_graph_has_memory(const engine_graph *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (has_memory(graph->nodes.items[i])) return true;
  return false; /* graphs of nodes have none */
}

/* ---- clones ---- */

static engine_node *node_copy(const engine_node *node, engine_graph *into, uint32_t depth) {
  engine_node *copy = node_make(into);
  copy->origin = node->id;
  copy->device = node->device;
  copy->params = node->params;
  copy->params.graph = NULL;
  copy->params.conditional.bodies = NULL;
  copy->params.values.list = node->params.values.list ? copy_values(&node->params) : NULL;
  if (node->params.kind == ENGINE_NODE_BATCH) copy->params.batch = engine_copies_keep(&node->params.batch);
  copy->disabled = node->disabled;
  if (node->packed) {
    size_t bytes = node->params.launch.packed_bytes; /* the function may be gone with its module: it is not looked at */
    copy->packed = ff_alloc(bytes + 8);
    memcpy(copy->packed, node->packed, bytes);
    copy->arguments = ff_alloc((node->argument_count + 1) * sizeof *copy->arguments);
    copy->argument_count = node->argument_count;
    for (uint32_t i = 0; i < node->argument_count; i++)
      copy->arguments[i] = copy->packed + ((unsigned char *)node->arguments[i] - node->packed);
    copy->params.launch.packed = copy->packed;
  }
  for (size_t i = 0; i < node->attributes.count; i++) FF_PUSH(&copy->attributes, node->attributes.items[i]);
  if (node->memory) {
    copy->memory = node->memory;
    copy->memory->references++;
  }
  if (node->params.kind == ENGINE_NODE_GRAPH) {
    copy->params.graph = engine_graph_copy(node->params.graph, depth + 1);
    if (!copy->params.graph) return NULL;
    copy->params.graph->owner = copy;
  }
  if (node->params.kind == ENGINE_NODE_CONDITIONAL) {
    uint32_t count = node->params.conditional.count;
    copy->params.conditional.bodies = ff_alloc(count * sizeof(engine_graph *));
    copy->params.conditional.count = 0;
    for (uint32_t i = 0; i < count; i++) {
      engine_graph *body = engine_graph_copy(node->params.conditional.bodies[i], depth + 1);
      if (!body) return NULL;
      body->owner = copy;
      copy->params.conditional.bodies[copy->params.conditional.count++] = body;
    }
  }
  return copy;
}

engine_graph *engine_graph_copy(const engine_graph *graph, uint32_t depth) {
  if (depth >= ENGINE_GRAPH_DEPTH) return NULL;
  engine_graph *copy = engine_graph_make();
  for (size_t i = 0; i < graph->objects.count; i++) engine_graph_hold(copy, graph->objects.items[i]);
  for (size_t i = 0; i < graph->conditions.count; i++) engine_graph_share(copy, graph->conditions.items[i]);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    graph->nodes.items[i]->index = (uint32_t)i;
    if (node_copy(graph->nodes.items[i], copy, depth)) continue;
    engine_graph_free(copy);
    return NULL;
  }
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const engine_node *node = graph->nodes.items[i];
    for (size_t k = 0; k < node->before.count; k++)
      link_add(copy->nodes.items[node->before.items[k].node->index], copy->nodes.items[i], node->before.items[k].edge);
    if (node->freed_by) copy->nodes.items[i]->freed_by = copy->nodes.items[node->freed_by->index];
  }
  return copy;
}

cudaError_t engine_graph_clone(engine_graph *graph, engine_graph **clone) {
  if (!clone) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  else if (engine_graph_has_memory(graph)) error = cudaErrorNotSupported;
  else *clone = engine_graph_copy(graph, 0);
  if (!error && !*clone) error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_node_in_clone(engine_node *original, engine_graph *clone, engine_node **node) {
  if (!node) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  *node = NULL;
  bool live = engine_node_live(original) && engine_graph_live(clone);
  for (size_t i = 0; live && i < clone->nodes.count; i++)
    if (clone->nodes.items[i]->origin == original->id) *node = clone->nodes.items[i];
  if (!*node) error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_node_where(engine_node *node, engine_node_place *place) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_node_live(node)) *place = (engine_node_place){node->graph, node->local, node->id};
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_graph_id(engine_graph *graph, unsigned *id) {
  if (!id) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_graph_live(graph)) *id = graph->id;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* ---- order ---- */

bool engine_graph_sort(engine_graph *graph) {
  graph->order.count = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    node->waiting = (uint32_t)node->before.count;
    if (!node->waiting) FF_PUSH(&graph->order, node);
  }
  for (size_t done = 0; done < graph->order.count; done++) {
    engine_node *node = graph->order.items[done];
    for (size_t i = 0; i < node->after.count; i++)
      if (!--node->after.items[i]->waiting) FF_PUSH(&graph->order, node->after.items[i]);
  }
  return graph->order.count == graph->nodes.count;
}

/* ---- asking ---- */

typedef struct filler {
  engine_node **nodes;
  size_t room, count;
} filler;

static void fill(filler *f, engine_node *node) {
  if (f->nodes && f->count < f->room) f->nodes[f->count] = node;
  f->count++;
}

static void filled(filler *f, size_t *count) {
  for (size_t i = f->count; f->nodes && i < f->room; i++) f->nodes[i] = NULL;
  *count = f->nodes && f->count > f->room ? f->room : f->count; /* how many there are, or were given */
}

cudaError_t engine_graph_nodes(engine_graph *graph, bool roots, engine_node **nodes, size_t *count) {
  if (!count) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  filler f = {nodes, *count, 0};
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < graph->nodes.count; i++)
    if (!roots || !graph->nodes.items[i]->before.count) fill(&f, graph->nodes.items[i]);
  if (!error) filled(&f, count);
  engine_leave();
  return error;
}

cudaError_t engine_graph_edges(engine_graph *graph, engine_node **from, engine_node **to, engine_edge *edges,
                               size_t *count) {
  if (!count || !from != !to) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  filler starts = {from, *count, 0}, ends = {to, *count, 0};
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    for (size_t k = 0; k < node->before.count; k++) {
      if (from && edges && starts.count < starts.room) edges[starts.count] = node->before.items[k].edge;
      fill(&starts, node->before.items[k].node);
      fill(&ends, node);
    }
  }
  if (!error) {
    filled(&starts, count);
    filled(&ends, count);
  }
  engine_leave();
  return error;
}

static engine_edge edge_between(const engine_node *from, const engine_node *to) {
  for (size_t i = 0; i < to->before.count; i++)
    if (to->before.items[i].node == from) return to->before.items[i].edge;
  return (engine_edge){0};
}

cudaError_t engine_node_neighbours(engine_node *node, bool after, engine_node **nodes, engine_edge *edges,
                                   size_t *count) {
  if (!count) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  filler f = {nodes, *count, 0};
  if (!engine_node_live(node)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < (after ? node->after.count : node->before.count); i++) {
    engine_node *other = after ? node->after.items[i] : node->before.items[i].node;
    if (nodes && edges && f.count < f.room)
      edges[f.count] = after ? edge_between(node, other) : edge_between(other, node);
    fill(&f, other);
  }
  if (!error) filled(&f, count);
  engine_leave();
  return error;
}
