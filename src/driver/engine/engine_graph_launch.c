/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that run, launched: by the host, and by kernels of other graphs.
 *
 * A launch does its nodes one after the other, each after what it depends on, as everything here is done at once; on
 * which stream each is, and what waits for what by events, engine_graph_exec.c has planned.
 *
 * A launch waits for the exec's one before. The lock is held throughout, but while a host function runs or a value is
 * waited for; meanwhile the exec counts as running, and one that is destroyed then goes when the launch is over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/engine/engine_graph_private.h"
#include "driver/engine/engine_values.h"

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

/* The launch waits for host functions before the event: what comes then is carried out at once. */
static void wait_for_event(const engine_event *event, engine_stream *stream) {
  engine_stream_wait_for_event(stream, event);
  if (!engine_host_holds_up(stream)) return;
  batch_end();
  engine_host_wait(stream);
  ff_engine.batch = ENGINE_BATCH_PAID;
}

/* Must a launch end where it is? While a host function ran the exec or its stream may have gone; the next call says
 * why. (Both are held: no other one has their address.) */
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
    else if (event->recorded && !event->capture) wait_for_event(event, stream);
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
  if (stream != after) engine_stream_follow(stream, after);
}

static cudaError_t run_on_device(engine_exec *exec, engine_node *node, engine_stream *own) {
  bool anywhere = !engine_node_has_device(node) && node->params.kind != ENGINE_NODE_BATCH;
  if (!anywhere && !engine_where_live(&node->params.where)) return cudaErrorContextIsDestroyed;
  engine_stream *there = anywhere ? own : stream_on(exec, node, own);
  engine_stream_hold(there);
  follow(there, own);
  cudaError_t error = run_node(exec, node, there);
  if (engine_stream_lives(own) && engine_stream_lives(there)) follow(own, there);
  engine_stream_release(there);
  return error;
}

static cudaError_t run_graph(engine_exec *exec, engine_graph *graph, engine_stream *stream) {
  cudaError_t error = cudaSuccess;
  uint32_t start = graph->branches ? engine_stream_record(stream) : 0;
  uint64_t start_ps = engine_stream_ready(stream);
  for (size_t i = 0; i < graph->order.count && !error; i++) {
    engine_node *node = graph->order.items[i];
    engine_stream *own = branch_stream(exec, graph, node->branch, stream);
    engine_stream_hold(own);
    if (node->branch && !node->before.count) engine_stream_wait_for(own, start, start_ps);
    for (size_t k = 0; k < node->before.count; k++) {
      const engine_node *before = node->before.items[k].node;
      if (before->branch != node->branch) engine_stream_wait_for(own, before->event, before->event_ps);
    }
    error = run_on_device(exec, node, own);
    const bool over = is_over(exec, stream) || is_over(exec, own);
    engine_stream_release(own);
    if (over) break;
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
  uint64_t id; /* its own: it may be destroyed before it runs, and another get its address */
  bool tail;
} asked_graph;

static _Thread_local engine_exec *inside; /* whose nodes run on this thread */
static _Thread_local FF_VEC(asked_graph) asked;

uint64_t engine_graph_inside(void) { return (uint64_t)(uintptr_t)inside; }

bool engine_graph_ask(const exec_child *child) {
  engine_exec *exec;
  memcpy(&exec, child->params, sizeof exec);
  if (!engine_exec_live(exec) || !(exec->flags & ENGINE_EXEC_DEVICE_LAUNCH)) return false;
  FF_PUSH(&asked, ((asked_graph){exec, exec->graph->id, child->tail}));
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
  engine_stream_hold(stream);
  for (uint64_t runs = 1; !error && !ff_engine.sticky && !ff_engine.stop && engine_stream_lives(stream); runs++) {
    for (int tail = 1; tail >= 0; tail--)
      for (size_t i = asked.count; i-- > 0;)
        if (asked.items[i].tail == tail) FF_PUSH(&stack, asked.items[i]);
    asked.count = 0;
    if (!stack.count) break;
    const asked_graph next = stack.items[--stack.count];
    if (engine_exec_live(next.exec) && next.exec->graph->id == next.id) error = launch_once(next.exec, stream, false);
    say_still_asked(runs, &since);
  }
  engine_stream_release(stream);
  free(stack.items);
  forget_asked();
  return error;
}

static cudaError_t launch_once(engine_exec *exec, engine_stream *stream, bool by_host) {
  engine_exec *outer = inside;
  cudaError_t error;
  if (exec->ended) engine_stream_wait_for(stream, exec->end, exec->end_ps);
  set_conditions(exec->graph);
  exec->running++; /* until engine_exec_end */
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
  engine_exec_end(exec);
  return error;
}

static cudaError_t launch_locked(engine_exec *exec, engine_stream *stream) {
  engine_stream_hold(stream);
  cudaError_t error = free_left(exec, stream);
  if (!error) error = launch_once(exec, stream, true);
  error = engine_graph_run_asked(stream, error);
  engine_stream_release(stream);
  return error;
}

cudaError_t engine_exec_launch(engine_exec *exec, cudaStream_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!engine_exec_live(exec)) error = cudaErrorInvalidValue;
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
  else if (!engine_exec_live(exec)) error = cudaErrorInvalidValue;
  else if (stream->capture) error = engine_capture_refuse(stream);
  else engine_append_host();
  engine_leave();
  return error;
}
