/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run: instantiating them, and their end (engine_graph.h); engine_graph_update.c changes them,
 * engine_graph_launch.c launches them.
 *
 * What may overlap in virtual time is planned here: nodes are on *branches*. Branch 0 is the launching stream, the
 * others are streams of the exec's own. A node continues the branch of one of the nodes before it, where that is still
 * that branch's last; else it begins a branch, and waits for the others by events. The launching stream waits for all
 * ends.
 *
 *         a               a, b, d, e on branch 0
 *        / \              c on branch 1: waits for a; d waits for c
 *       b   c
 *        \ /              After ENGINE_GRAPH_BRANCHES branches nodes take turns on them: an order that no edge asks for.
 *         d
 *         |
 *         e */
#include <stdlib.h>

#include "driver/engine/engine_graph_private.h"

bool engine_exec_live(const engine_exec *exec) {
  return engine_handles_have(&ff_engine.handles, exec, ENGINE_HANDLE_EXEC);
}

/* ---- branches ---- */

/* Is the last node of a branch surely over when this one begins: is it, or what comes after it, directly before the
 * node? */
static bool over_for(const engine_node *node, const engine_node *last) {
  for (size_t i = 0; i < node->before.count; i++) {
    const engine_node *before = node->before.items[i].node;
    if (before == last) return true;
    for (size_t k = 0; k < last->after.count && k < 8; k++)
      if (last->after.items[k] == before) return true;
  }
  return false;
}

static uint32_t choose_branch(const engine_node *node, engine_node **last, uint32_t *count) {
  for (size_t i = 0; i < node->before.count; i++) {
    const engine_node *before = node->before.items[i].node;
    if (last[before->branch] == before) return before->branch;
  }
  for (uint32_t b = 0; b < *count; b++)
    if (!last[b] || over_for(node, last[b])) return b;
  if (*count < ENGINE_GRAPH_BRANCHES) return (*count)++;
  return (uint32_t)(node->id % *count);
}

static void plan(engine_graph *graph, uint32_t *streams);

static void plan_inner(engine_node *node, uint32_t *streams) {
  if (node->params.kind == ENGINE_NODE_GRAPH) plan(node->params.graph, streams);
  if (node->params.kind != ENGINE_NODE_CONDITIONAL) return;
  for (uint32_t i = 0; i < node->params.conditional.count; i++) plan(node->params.conditional.bodies[i], streams);
}

/* The graph is sorted. `streams`: how many of the exec's streams were given away. */
static void plan(engine_graph *graph, uint32_t *streams) {
  engine_node *last[ENGINE_GRAPH_BRANCHES] = {NULL};
  uint32_t count = 1;
  for (size_t i = 0; i < graph->order.count; i++) {
    engine_node *node = graph->order.items[i];
    node->needs_event = false;
    node->branch = choose_branch(node, last, &count);
    last[node->branch] = node;
  }
  for (size_t i = 0; i < graph->order.count; i++) {
    engine_node *node = graph->order.items[i];
    if (node->branch && !node->after.count) node->needs_event = true;
    for (size_t k = 0; k < node->before.count; k++)
      if (node->before.items[k].node->branch != node->branch) node->before.items[k].node->needs_event = true;
  }
  graph->branches = count - 1;
  graph->first_branch = *streams;
  *streams += graph->branches;
  for (size_t i = 0; i < graph->order.count; i++) plan_inner(graph->order.items[i], streams);
}

static bool sort_all(engine_graph *graph) {
  if (!engine_graph_sort(graph)) return false;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    if (node->params.kind == ENGINE_NODE_GRAPH && !sort_all(node->params.graph)) return false;
    for (uint32_t k = 0; node->params.kind == ENGINE_NODE_CONDITIONAL && k < node->params.conditional.count; k++)
      if (!sort_all(node->params.conditional.bodies[k])) return false;
  }
  return true;
}

/* ---- instantiating ---- */

static void own_all(engine_graph *graph, engine_exec *exec) { /* nodes of it are not for the program to change */
  graph->exec = exec;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    if (node->params.kind == ENGINE_NODE_GRAPH) own_all(node->params.graph, exec);
    for (uint32_t k = 0; node->params.kind == ENGINE_NODE_CONDITIONAL && k < node->params.conditional.count; k++)
      own_all(node->params.conditional.bodies[k], exec);
  }
}

static void replan(engine_exec *exec) {
  uint32_t streams = 0;
  plan(exec->graph, &streams);
}

static cudaError_t refuse(engine_verdict *verdict, int result, cudaError_t error) {
  verdict->result = result;
  return error;
}

/* The first node of a graph that kernels are to launch which may not be in one; NULL: none. device: that of the nodes
 * before, -1 at first. */
static engine_node *not_for_kernels(const engine_graph *graph, int *device) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i], *within;
    switch (node->params.kind) {
    case ENGINE_NODE_KERNEL:
    case ENGINE_NODE_COPY:
    case ENGINE_NODE_SET:
      if (*device < 0) *device = node->device;
      if (node->device != *device) return node;
      break;
    case ENGINE_NODE_EMPTY: break;
    case ENGINE_NODE_GRAPH:
      within = not_for_kernels(node->params.graph, device);
      if (within) return within;
      break;
    default: return node;
    }
  }
  return NULL;
}

bool engine_node_has_device(const engine_node *node) {
  return node->params.kind == ENGINE_NODE_KERNEL || node->params.kind == ENGINE_NODE_COPY ||
         node->params.kind == ENGINE_NODE_SET;
}

static cudaError_t instantiate_locked(engine_graph *graph, uint64_t flags, engine_exec **out, engine_verdict *verdict) {
  if (!engine_graph_live(graph) || graph->exec || graph->owner)
    return refuse(verdict, ENGINE_INSTANTIATE_ERROR, cudaErrorInvalidValue);
  bool both = flags & ENGINE_EXEC_DEVICE_LAUNCH && flags & ENGINE_EXEC_AUTO_FREE;
  if (flags & ~(uint64_t)15 || both) return refuse(verdict, ENGINE_INSTANTIATE_ERROR, cudaErrorInvalidValue);
  int device = -1;
  if (flags & ENGINE_EXEC_DEVICE_LAUNCH && (verdict->node = not_for_kernels(graph, &device)))
    return refuse(verdict,
                  engine_node_has_device(verdict->node) ? ENGINE_INSTANTIATE_DEVICES : ENGINE_INSTANTIATE_UNSUPPORTED,
                  cudaErrorNotSupported);
  bool memory = engine_graph_has_memory(graph);
  for (engine_exec *e = ff_graphs.execs; memory && e; e = e->next) /* the manual: one at a time */
    if (e->from == graph) return refuse(verdict, ENGINE_INSTANTIATE_UNSUPPORTED, cudaErrorNotSupported);
  engine_graph *copy = engine_graph_copy(graph, 0);
  if (!copy || !sort_all(copy)) {
    if (copy) engine_graph_free(copy);
    return refuse(verdict, ENGINE_INSTANTIATE_STRUCTURE, cudaErrorInvalidValue);
  }
  engine_exec *exec = ff_alloc(sizeof *exec);
  *exec = (engine_exec){.device = engine_device_of(NULL),
                        .graph = copy,
                        .from = memory ? graph : NULL,
                        .flags = flags,
                        .next = ff_graphs.execs};
  ff_graphs.execs = exec;
  engine_handles_add(&ff_engine.handles, exec, ENGINE_HANDLE_EXEC);
  own_all(copy, exec);
  replan(exec);
  engine_append_host();
  *out = exec;
  return cudaSuccess;
}

cudaError_t engine_graph_instantiate(engine_graph *graph, uint64_t flags, engine_exec **exec, engine_verdict *verdict) {
  engine_verdict unasked;
  if (!verdict) verdict = &unasked;
  *verdict = (engine_verdict){.result = ENGINE_INSTANTIATE_SUCCESS};
  if (!exec) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = instantiate_locked(graph, flags, exec, verdict);
  engine_leave();
  return error;
}

static void exec_forget(engine_exec *exec) {
  free(exec->streams.items);
  free(exec->detours.items);
  free(exec);
}

static void exec_free(engine_exec *exec) {
  engine_exec **at = &ff_graphs.execs;
  while (*at != exec) at = &(*at)->next;
  *at = exec->next;
  engine_graph_free(exec->graph);
  for (size_t i = 0; i < exec->streams.count; i++)
    if (exec->streams.items[i]) engine_stream_free(exec->streams.items[i]);
  for (size_t i = 0; i < exec->detours.count; i++) engine_stream_free(exec->detours.items[i].stream);
  exec_forget(exec);
}

void engine_exec_end(engine_exec *exec) {
  exec->running--;
  if (exec->running) return;
  if (exec->orphaned) exec_forget(exec);
  else if (exec->doomed) exec_free(exec);
}

cudaError_t engine_exec_destroy(engine_exec *exec) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_exec_live(exec)) error = cudaErrorInvalidValue;
  else {
    engine_handles_remove(&ff_engine.handles, exec);
    exec->doomed = true;
    if (!exec->running) exec_free(exec);
  }
  engine_leave();
  return error;
}

/* A stream goes: one of its own with its device, or one that it was launched in, whose detours others may take. */
void engine_execs_forget(const engine_stream *stream) {
  for (engine_exec *exec = ff_graphs.execs; exec; exec = exec->next) {
    for (size_t i = 0; i < exec->streams.count; i++)
      if (exec->streams.items[i] == stream) exec->streams.items[i] = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < exec->detours.count; i++) {
      engine_detour detour = exec->detours.items[i];
      if (detour.branch == stream) detour.branch = NULL;
      if (detour.stream != stream) exec->detours.items[kept++] = detour;
    }
    exec->detours.count = kept;
  }
}

static void reset_execs(int device) {
  for (engine_exec **at = &ff_graphs.execs; *at;) {
    engine_exec *exec = *at;
    if (exec->device != device) {
      at = &exec->next;
      continue;
    }
    if (engine_exec_live(exec)) engine_handles_remove(&ff_engine.handles, exec);
    if (!exec->running) exec_free(exec);
    else { /* another thread waits for its host function */ exec->orphaned = true;
      *at = exec->next;
      engine_graph_free(exec->graph);
    }
  }
}

static engine_graph *graph_of(int device) { /* one that the program has; NULL: none is left */
  for (engine_graph *g = ff_graphs.graphs; g; g = g->next)
    if (g->device == device && !g->owner && !g->exec) return g;
  return NULL;
}

void engine_graphs_reset(int device) {
  reset_execs(device);
  for (engine_capture **at = &ff_graphs.captures; *at;) {
    engine_capture *c = *at;
    if (c->device != device) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    for (engine_stream *s = ff_engine.streams; s; s = s->next)
      if (s->capture == c) s->capture = NULL;
    free(c->left.items);
    free(c);
  }
  for (engine_graph *g; (g = graph_of(device));) engine_graph_free(g);
  engine_graph_memory_clear(device);
}

cudaError_t engine_exec_flags(engine_exec *exec, uint64_t *flags) {
  if (!flags) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_exec_live(exec)) *flags = exec->flags;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_exec_id(engine_exec *exec, unsigned *id) {
  if (!id) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_exec_live(exec)) *id = exec->graph->id;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}
