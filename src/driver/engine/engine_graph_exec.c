/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run: instantiating, changing and launching them (engine_graph.h).
 *
 * A launch does its nodes one after the other, each after what it depends on, as everything here is done at once. What
 * may overlap lies in virtual time: nodes are on *branches*. Branch 0 is the launching stream, the others are streams
 * of the exec's own. A node continues the branch of one of the nodes before it, where that is still that branch's last;
 * else it begins a branch, and waits for the others by events. The launching stream waits for all ends.
 *
 *         a               a, b, d, e on branch 0
 *        / \              c on branch 1: waits for a; d waits for c
 *       b   c
 *        \ /              After ENGINE_GRAPH_BRANCHES branches nodes take turns on them: an order that no edge asks for.
 *         d
 *         |
 *         e
 *
 * A launch waits for the exec's one before. The lock is held throughout, but while a host function runs; meanwhile the
 * exec counts as running, and one that is destroyed then goes when the launch is over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/engine/engine_graph_private.h"
#include "driver/engine/engine_values.h"

static bool exec_live(const engine_exec *exec) {
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

static bool is_of_device(const engine_node *node) {
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
    return refuse(verdict, is_of_device(verdict->node) ? ENGINE_INSTANTIATE_DEVICES : ENGINE_INSTANTIATE_UNSUPPORTED,
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

cudaError_t engine_exec_destroy(engine_exec *exec) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!exec_live(exec)) error = cudaErrorInvalidValue;
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
    if (exec_live(exec)) engine_handles_remove(&ff_engine.handles, exec);
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
  if (exec_live(exec)) *flags = exec->flags;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_exec_id(engine_exec *exec, unsigned *id) {
  if (!id) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (exec_live(exec)) *id = exec->graph->id;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* ---- changing ---- */

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
    return a->conditional.type == b->conditional.type && a->conditional.count == b->conditional.count &&
                   a->conditional.handle == b->conditional.handle
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

/* They have the same shape, and every node's parameters were checked. */
static void take_over(engine_graph *ours, const engine_graph *theirs) {
  for (size_t i = 0; i < ours->nodes.count; i++) {
    engine_node *a = ours->nodes.items[i];
    const engine_node *b = theirs->nodes.items[i];
    a->origin = b->id;
    if (a->params.kind == ENGINE_NODE_GRAPH) take_over(a->params.graph, b->params.graph);
    else if (a->params.kind == ENGINE_NODE_CONDITIONAL)
      for (uint32_t k = 0; k < a->params.conditional.count; k++)
        take_over(a->params.conditional.bodies[k], b->params.conditional.bodies[k]);
    else if (a->params.kind != ENGINE_NODE_ALLOC && a->params.kind != ENGINE_NODE_FREE)
      engine_node_assign(a, &b->params);
  }
}

cudaError_t engine_exec_update(engine_exec *exec, engine_graph *graph, engine_verdict *verdict) {
  engine_verdict unasked;
  if (!verdict) verdict = &unasked;
  *verdict = (engine_verdict){.result = ENGINE_UPDATE_ERROR};
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!exec_live(exec) || !engine_graph_live(graph) || graph->exec) error = cudaErrorInvalidValue;
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
  if (!exec_live(exec)) return cudaErrorInvalidValue;
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

static bool can_disable(const engine_node *node) {
  return node && (node->params.kind == ENGINE_NODE_KERNEL || node->params.kind == ENGINE_NODE_COPY ||
                  node->params.kind == ENGINE_NODE_SET);
}

cudaError_t engine_exec_enable(engine_exec *exec, engine_node *node, bool enabled) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_node *ours = exec_live(exec) ? find_node(exec, node) : NULL;
  if (can_disable(ours)) ours->disabled = !enabled;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_exec_enabled(engine_exec *exec, engine_node *node, bool *enabled) {
  if (!enabled) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_node *ours = exec_live(exec) ? find_node(exec, node) : NULL;
  if (can_disable(ours)) *enabled = !ours->disabled;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* ---- launching ---- */

/* What follows is put by one call, until batch_end. */
static void batch_begin(void) {
  engine_time_host(ff_engine.machine->launch_us);
  ff_engine.batch = ENGINE_BATCH_UNPAID;
}

static void batch_end(void) {
  bool unpaid = ff_engine.batch == ENGINE_BATCH_UNPAID; /* a graph without kernels */
  ff_engine.batch = ENGINE_BATCH_NONE;
  if (unpaid) engine_append(&(trace_op){.kind = TRACE_OP_HOST});
}

/* Other threads may use the device while it runs, and pay for that. */
static cudaError_t run_host(const engine_node_params *params, engine_stream *stream) {
  batch_end();
  cudaError_t error = engine_stream_host_locked(stream, params->host.function, params->host.data, true);
  ff_engine.batch = ENGINE_BATCH_PAID;
  return error;
}

/* Must a launch end where it is? While a host function ran the exec or its stream may have gone; the next call says
 * why. */
static bool is_over(const engine_exec *exec, const engine_stream *stream) {
  if (ff_engine.sticky || ff_engine.stop || exec->orphaned) return true;
  return !engine_stream_lives(stream);
}

/* Other threads may use the device while one waits, and reset it or change the node: the list is this launch's own. */
static cudaError_t run_values(const engine_exec *exec, const engine_node *node, engine_stream *stream) {
  size_t count = node->params.values.count;
  cudaError_t error = engine_values_check_locked(node->params.values.list, count);
  if (error || !count) return error;
  engine_value *list = ff_alloc(count * sizeof *list);
  memcpy(list, node->params.values.list, count * sizeof *list);
  for (size_t i = 0; !error && i < count && !is_over(exec, stream); i++) {
    bool there;
    error = engine_value_look_locked(&list[i], &there);
    if (there) {
      error = engine_value_write_on(&list[i], stream);
    } else if (!error) {
      batch_end();
      error = engine_value_wait_locked(&list[i]);
      ff_engine.batch = ENGINE_BATCH_PAID;
    }
  }
  free(list);
  return error;
}

static cudaError_t run_graph(engine_exec *exec, engine_graph *graph, engine_stream *stream);

static uint32_t condition_value(uint64_t handle) { return *(const volatile uint32_t *)(uintptr_t)handle; }

static cudaError_t run_conditional(engine_exec *exec, const engine_node *node, engine_stream *stream) {
  uint32_t count = node->params.conditional.count, value = condition_value(node->params.conditional.handle);
  engine_graph **bodies = node->params.conditional.bodies;
  if (node->params.conditional.type == ENGINE_CONDITIONAL_SWITCH)
    return value < count ? run_graph(exec, bodies[value], stream) : cudaSuccess;
  if (node->params.conditional.type == ENGINE_CONDITIONAL_IF)
    return value ? run_graph(exec, bodies[0], stream) : count > 1 ? run_graph(exec, bodies[1], stream) : cudaSuccess;
  cudaError_t error = cudaSuccess;
  while (!error && !is_over(exec, stream) && condition_value(node->params.conditional.handle))
    error = run_graph(exec, bodies[0], stream);
  return error;
}

static cudaError_t run_node(engine_exec *exec, engine_node *node, engine_stream *stream) {
  const engine_node_params *p = &node->params;
  bool taken;
  if (node->disabled) return cudaSuccess;
  switch (p->kind) {
  case ENGINE_NODE_KERNEL: return engine_launch_on(&p->launch, stream);
  case ENGINE_NODE_COPY: return engine_copy_on(p->copy, stream, true);
  case ENGINE_NODE_SET: return engine_set_on(p->set, stream, true);
  case ENGINE_NODE_HOST: return run_host(p, stream);
  case ENGINE_NODE_VALUES: return run_values(exec, node, stream);
  case ENGINE_NODE_BATCH: return engine_copies_on(&p->batch, stream);
  case ENGINE_NODE_GRAPH: return run_graph(exec, p->graph, stream);
  case ENGINE_NODE_CONDITIONAL: return run_conditional(exec, node, stream);
  case ENGINE_NODE_ALLOC: return engine_graph_memory_take(node->memory, stream);
  case ENGINE_NODE_FREE: return engine_graph_free_address(p->memory.address, stream, &taken);
  case ENGINE_NODE_RECORD:
  case ENGINE_NODE_WAIT: {
    engine_event *event = engine_event_find(p->event);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (p->kind == ENGINE_NODE_RECORD) engine_event_record_locked(event, stream);
    else if (event->recorded && !event->capture) engine_stream_wait_for(stream, event->number, event->time_ps);
    return cudaSuccess;
  }
  case ENGINE_NODE_EMPTY: return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

static engine_stream *branch_stream(engine_exec *exec, const engine_graph *graph, uint32_t branch,
                                    engine_stream *main) {
  if (!branch) return main;
  size_t at = graph->first_branch + branch - 1;
  while (exec->streams.count <= at) FF_PUSH(&exec->streams, NULL);
  engine_stream **place = &exec->streams.items[at];
  bool moved = *place && ((*place)->green != main->green || (*place)->device != main->device || (*place)->orphan);
  if (moved && exec->running == 1) { /* else another launch is on it */
    engine_stream_free(*place);
    *place = NULL;
  }
  if (!*place) *place = engine_stream_make(main->device, cudaStreamNonBlocking, main->priority, main->green);
  return *place;
}

static bool runs_there(const engine_stream *stream, const engine_node *node, const engine_green *green) {
  return stream->device == node->device && stream->green == green && !stream->orphan;
}

/* One of the branch's, or of a stream that is gone; NULL: there is none. */
static engine_detour *detour_of(const engine_exec *exec, const engine_node *node, const engine_green *green,
                                const engine_stream *branch) {
  engine_detour *found = NULL;
  for (size_t i = 0; i < exec->detours.count; i++) {
    engine_detour *d = &exec->detours.items[i];
    if (!runs_there(d->stream, node, green) || d->stream->priority != branch->priority) continue;
    if (d->branch == branch) return d;
    if (!d->branch) found = d;
  }
  return found;
}

/* The stream for the node, in the place of its branch's. */
static engine_stream *stream_on(engine_exec *exec, const engine_node *node, engine_stream *branch) {
  const engine_where *where = &node->params.where;
  engine_green *green = where->given ? where->green : branch->device == node->device ? branch->green : NULL;
  if (runs_there(branch, node, green)) return branch;
  engine_detour *there = detour_of(exec, node, green, branch);
  if (there) {
    there->branch = branch;
    return there->stream;
  }
  engine_detour made = {branch, engine_stream_make(node->device, cudaStreamNonBlocking, branch->priority, green)};
  FF_PUSH(&exec->detours, made);
  return made.stream;
}

static void follow(engine_stream *stream, engine_stream *after) {
  if (stream != after) engine_stream_wait_for(stream, engine_stream_record(after), engine_stream_ready(after));
}

static cudaError_t run_on_device(engine_exec *exec, engine_node *node, engine_stream *own) {
  bool anywhere = !is_of_device(node) && node->params.kind != ENGINE_NODE_BATCH;
  if (!anywhere && !engine_where_live(&node->params.where)) return cudaErrorContextIsDestroyed;
  engine_stream *there = anywhere ? own : stream_on(exec, node, own);
  follow(there, own);
  cudaError_t error = run_node(exec, node, there);
  follow(own, there);
  return error;
}

static cudaError_t run_graph(engine_exec *exec, engine_graph *graph, engine_stream *stream) {
  cudaError_t error = cudaSuccess;
  uint32_t start = graph->branches ? engine_stream_record(stream) : 0;
  uint64_t start_ps = engine_stream_ready(stream);
  for (size_t i = 0; i < graph->order.count && !error; i++) {
    engine_node *node = graph->order.items[i];
    engine_stream *own = branch_stream(exec, graph, node->branch, stream);
    if (node->branch && !node->before.count) engine_stream_wait_for(own, start, start_ps);
    for (size_t k = 0; k < node->before.count; k++) {
      const engine_node *before = node->before.items[k].node;
      if (before->branch != node->branch) engine_stream_wait_for(own, before->event, before->event_ps);
    }
    error = run_on_device(exec, node, own);
    if (is_over(exec, stream) || is_over(exec, own)) break;
    if (!node->needs_event) continue;
    node->event = engine_stream_record(own);
    node->event_ps = engine_stream_ready(own);
    if (!node->after.count) engine_stream_wait_for(stream, node->event, node->event_ps);
  }
  return error;
}

static void set_conditions(const engine_graph *graph) {
  for (size_t i = 0; i < graph->conditions.count; i++)
    if (graph->conditions.items[i]->assign)
      *(volatile uint32_t *)(uintptr_t)graph->conditions.items[i]->handle = graph->conditions.items[i]->value;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const engine_node_params *p = &graph->nodes.items[i]->params;
    if (p->kind == ENGINE_NODE_GRAPH) set_conditions(p->graph);
    for (uint32_t k = 0; p->kind == ENGINE_NODE_CONDITIONAL && k < p->conditional.count; k++)
      set_conditions(p->conditional.bodies[k]);
  }
}

/* What a launch before has left allocated is freed, if the exec was made for that. */
static cudaError_t free_left(engine_exec *exec, engine_stream *stream) {
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; !error && i < exec->graph->nodes.count; i++) {
    const engine_node *node = exec->graph->nodes.items[i];
    if (!node->memory || !node->memory->allocated) continue;
    error =
        exec->flags & ENGINE_EXEC_AUTO_FREE ? engine_graph_memory_give(node->memory, stream) : cudaErrorInvalidValue;
  }
  return error;
}

/* ---- graphs that kernels launch (exec/launch/children.c) ----
 *
 * A kernel asks for a graph; it is run, in the stream of the graph that was launched by the host, when the asking graph
 * has ended: those that may run beside it before those of its tail, each with all that it asks for before the next. */

typedef struct asked_graph {
  engine_exec *exec;
  bool tail;
} asked_graph;

static _Thread_local engine_exec *inside; /* whose nodes run on this thread */
static _Thread_local FF_VEC(asked_graph) asked;

uint64_t engine_graph_inside(void) { return (uint64_t)(uintptr_t)inside; }

bool engine_graph_ask(const exec_child *child) {
  engine_exec *exec;
  memcpy(&exec, child->params, sizeof exec);
  if (!exec_live(exec) || !(exec->flags & ENGINE_EXEC_DEVICE_LAUNCH)) return false;
  FF_PUSH(&asked, ((asked_graph){exec, child->tail}));
  return true;
}

static cudaError_t launch_once(engine_exec *exec, engine_stream *stream, bool by_host);

static void forget_asked(void) {
  free(asked.items);
  asked.items = NULL;
  asked.count = asked.capacity = 0;
}

/* Graphs may launch each other until memory that the host writes says stop, and the host waits here. */
static void say_still_asked(uint64_t runs, const struct timespec *since) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if ((now.tv_sec - since->tv_sec) * 1000 >= ENGINE_WAITING_MS)
    engine_say_once("graphs that launch graphs",
                    "graphs that kernels launch have run %" PRIu64
                    " times and go on: cudaGraphLaunch returns when they end, so they cannot wait for what the host "
                    "does later",
                    runs);
}

cudaError_t engine_graph_run_asked(engine_stream *stream, cudaError_t error) {
  FF_VEC(asked_graph) stack = {0}; /* the newest runs next */
  if (inside || !asked.count) return error;
  struct timespec since;
  clock_gettime(CLOCK_MONOTONIC, &since);
  for (uint64_t runs = 1; !error && !ff_engine.sticky && !ff_engine.stop && engine_stream_lives(stream); runs++) {
    for (int tail = 1; tail >= 0; tail--)
      for (size_t i = asked.count; i-- > 0;)
        if (asked.items[i].tail == tail) FF_PUSH(&stack, asked.items[i]);
    asked.count = 0;
    if (!stack.count) break;
    engine_exec *exec = stack.items[--stack.count].exec;
    if (exec_live(exec)) error = launch_once(exec, stream, false);
    say_still_asked(runs, &since);
  }
  free(stack.items);
  forget_asked();
  return error;
}

static cudaError_t launch_once(engine_exec *exec, engine_stream *stream, bool by_host) {
  engine_exec *outer = inside;
  cudaError_t error;
  if (exec->ended) engine_stream_wait_for(stream, exec->end, exec->end_ps);
  set_conditions(exec->graph);
  exec->running++;
  if (by_host) batch_begin();
  else ff_engine.batch = ENGINE_BATCH_PAID; /* no call of the host's */
  inside = exec;
  error = run_graph(exec, exec->graph, stream);
  inside = outer;
  if (!is_over(exec, stream)) {
    exec->end = engine_stream_record(stream);
    exec->end_ps = engine_stream_ready(stream);
    exec->ended = true;
  }
  batch_end();
  exec->running--;
  if (exec->running) return error;
  if (exec->orphaned) {
    exec_forget(exec);
  } else if (exec->doomed) {
    exec_free(exec);
  }
  return error;
}

static cudaError_t launch_locked(engine_exec *exec, engine_stream *stream) {
  cudaError_t error = free_left(exec, stream);
  if (!error) error = launch_once(exec, stream, true);
  return engine_graph_run_asked(stream, error);
}

cudaError_t engine_exec_launch(engine_exec *exec, cudaStream_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!exec_live(exec)) error = cudaErrorInvalidValue;
  else {
    bool taken = false;
    engine_node_params params = {.kind = ENGINE_NODE_GRAPH, .graph = exec->graph};
    error = engine_capture_take(stream, &params, true, &taken);
    if (!error && !taken) error = launch_locked(exec, stream);
  }
  engine_leave();
  return error;
}

cudaError_t engine_exec_upload(engine_exec *exec, cudaStream_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!exec_live(exec)) error = cudaErrorInvalidValue;
  else if (stream->capture) error = engine_capture_refuse(stream);
  else engine_append_host();
  engine_leave();
  return error;
}
