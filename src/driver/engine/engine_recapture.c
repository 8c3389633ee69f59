/* SPDX-License-Identifier: Apache-2.0 */
/* Capture into a graph whose nodes are there already (Driver API, cuStreamBeginRecaptureToGraph): what is put on the
 * stream must be the same nodes in the order of their making, each after the same ones, and gives them its parameters.
 *
 *     next node --same parameters--> the one after it
 *               --others, the program's function agrees--> it takes them; the one after it
 *               --another kind, other edges, memory of other bytes, the function says no--> the capture is over:
 *                 cudaErrorGraphRecaptureFailure
 *
 * The function may make calls: the lock is free meanwhile. What it is shown as captured is a node of a graph that
 * lives as long as it runs. */
#include <string.h>

#include "driver/engine/engine_graph_private.h"

/* ---- are they the same? ---- */

static bool same_launch(const engine_launch *a, const engine_launch *b) {
  return a->function == b->function && !memcmp(a->grid, b->grid, sizeof a->grid) &&
         !memcmp(a->block, b->block, sizeof a->block) && !memcmp(a->cluster, b->cluster, sizeof a->cluster) &&
         a->dynamic_shared == b->dynamic_shared && a->cooperative == b->cooperative &&
         a->packed_bytes == b->packed_bytes && !memcmp(a->packed, b->packed, a->packed_bytes);
}

static bool same_copy(const engine_copy *a, const engine_copy *b) {
  bool rows = a->height > 1 || a->depth > 1;
  return a->to == b->to && a->from == b->from && a->width == b->width && a->height == b->height &&
         a->depth == b->depth && a->to_side == b->to_side && a->from_side == b->from_side &&
         (!rows || (a->to_pitch == b->to_pitch && a->from_pitch == b->from_pitch)) &&
         (a->depth == 1 || (a->to_slice == b->to_slice && a->from_slice == b->from_slice));
}

static bool same_set(const engine_set *a, const engine_set *b) {
  return a->to == b->to && a->width == b->width && a->height == b->height && a->depth == b->depth &&
         a->value == b->value && a->element == b->element && (a->height == 1 || a->pitch == b->pitch) &&
         (a->depth == 1 || a->slice == b->slice);
}

static bool same_batch(const engine_batch *a, const engine_batch *b) {
  bool same = engine_copies_replace(a, b);
  for (size_t i = 0; same && i < a->count; i++)
    same = a->to[i] == b->to[i] && a->from[i] == b->from[i] && a->sizes[i] == b->sizes[i];
  return same;
}

static bool same_node(const engine_node *ours, const engine_node *theirs);

static bool same_graph(const engine_graph *a, const engine_graph *b) {
  bool same = a->nodes.count == b->nodes.count;
  for (size_t i = 0; same && i < a->nodes.count; i++)
    same = a->nodes.items[i]->params.kind == b->nodes.items[i]->params.kind &&
           same_node(a->nodes.items[i], b->nodes.items[i]);
  return same;
}

/* Both are of one kind. */
static bool same_node(const engine_node *ours, const engine_node *theirs) {
  const engine_node_params *a = &ours->params, *b = &theirs->params;
  if (ours->device != theirs->device || a->where.green_id != b->where.green_id) return false;
  switch (a->kind) {
  case ENGINE_NODE_KERNEL: return same_launch(&a->launch, &b->launch);
  case ENGINE_NODE_COPY: return same_copy(&a->copy, &b->copy);
  case ENGINE_NODE_SET: return same_set(&a->set, &b->set);
  case ENGINE_NODE_BATCH: return same_batch(&a->batch, &b->batch);
  case ENGINE_NODE_HOST: return a->host.function == b->host.function && a->host.data == b->host.data;
  case ENGINE_NODE_WAIT:
  case ENGINE_NODE_RECORD: return a->event == b->event;
  case ENGINE_NODE_VALUES:
    return a->values.count == b->values.count && engine_values_same(a->values.list, b->values.list, a->values.count);
  case ENGINE_NODE_GRAPH: return same_graph(a->graph, b->graph);
  case ENGINE_NODE_EMPTY: return true;
  default: return false;
  }
}

/* ---- one node ---- */

static bool is_before(const engine_node *node, const engine_node *wanted) {
  bool found = false;
  for (size_t i = 0; !found && i < node->before.count; i++) found = node->before.items[i].node == wanted;
  return found;
}

/* The next node, if what is captured has its kind and comes after the same nodes. */
static engine_node *expected(const engine_capture *capture, engine_node *const *before, size_t count,
                             const engine_node_params *params) {
  const engine_graph *graph = capture->graph;
  if (capture->invalid || capture->next_node >= graph->nodes.count) return NULL;
  engine_node *node = graph->nodes.items[capture->next_node];
  if (node->params.kind != params->kind || node->before.count != count) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (!is_before(node, before[i])) return NULL;
    for (size_t k = 0; k < i; k++)
      if (before[k] == before[i]) return NULL;
  }
  return node;
}

/* Memory keeps its address, so it must be the same. */
static bool same_memory(const engine_node *node, engine_node_params *params) {
  const engine_node_params *p = &node->params;
  if (params->kind == ENGINE_NODE_FREE) return params->memory.address == p->memory.address;
  bool same = params->memory.bytes == p->memory.bytes && params->memory.device == p->memory.device &&
              params->memory.access_count == p->memory.access_count;
  for (size_t i = 0; same && i < params->memory.access_count; i++)
    same = !memcmp(&params->memory.access[i], &p->memory.access[i], sizeof p->memory.access[i]);
  params->memory.address = p->memory.address;
  return same;
}

static engine_capture *capture_of(uint64_t id) {
  engine_capture *capture = ff_graphs.captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

/* Asks the program's function, if there is one, with the lock free. */
static cudaError_t ask(const engine_capture *capture, engine_node *node, engine_node *captured) {
  const engine_recapture hook = capture->recapture;
  const uint64_t id = capture->id;
  int eligible = engine_node_change(node, captured) ? ENGINE_RECAPTURE_INELIGIBLE : ENGINE_RECAPTURE_ELIGIBLE;
  if (!hook.tell) return cudaSuccess;
  pthread_mutex_unlock(&ff_engine.lock);
  bool agreed = hook.tell(&hook, node, captured, eligible);
  pthread_mutex_lock(&ff_engine.lock);
  capture = capture_of(id);
  if (!capture || capture->invalid || !engine_node_live(node)) return cudaErrorStreamCaptureInvalidated;
  return agreed ? cudaSuccess : cudaErrorGraphRecaptureFailure;
}

/* `shown` is a graph for the captured node alone. */
static cudaError_t change(const engine_capture *capture, engine_node *node, engine_graph *shown, int device,
                          engine_node_params *params) {
  engine_node *captured;
  shown->device = capture->device; /* a reset takes both */
  cudaError_t error = engine_graph_add_locked(shown, device, NULL, NULL, 0, params, &captured);
  if (error || same_node(node, captured)) return error;
  error = ask(capture, node, captured);
  if (error) return error;
  node->device = captured->device;
  node->params.where = captured->params.where;
  return engine_node_assign(node, &captured->params);
}

static cudaError_t take(const engine_capture *capture, engine_node *node, int device, engine_node_params *params) {
  if (!node) return cudaErrorGraphRecaptureFailure;
  if (params->kind == ENGINE_NODE_CONDITIONAL) {
    engine_say_once("conditional captured again", "a graph with conditional nodes cannot be captured again");
    return cudaErrorNotSupported;
  }
  if (params->kind == ENGINE_NODE_ALLOC || params->kind == ENGINE_NODE_FREE)
    return same_memory(node, params) ? cudaSuccess : cudaErrorGraphRecaptureFailure;
  engine_graph *shown = engine_graph_make();
  const uint32_t number = shown->id;
  cudaError_t error = change(capture, node, shown, device, params);
  if (engine_graph_live(shown) && shown->id == number) engine_graph_free(shown);
  return error;
}

cudaError_t engine_recapture_node(engine_capture *capture, int device, engine_node *const *before, size_t count,
                                  engine_node_params *params, engine_node **out) {
  const uint64_t id = capture->id;
  engine_node *node = expected(capture, before, count, params);
  cudaError_t error = take(capture, node, device, params);
  capture = capture_of(id);
  if (!error) {
    capture->next_node++;
    *out = node;
  } else if (capture) {
    capture->invalid = true;
  }
  return error;
}

engine_capture *engine_recapture_of(const engine_graph *graph) {
  engine_capture *capture = ff_graphs.captures;
  while (capture && !(capture->again && capture->graph == graph)) capture = capture->next;
  return capture;
}

/* ---- the whole ---- */

cudaError_t engine_recapture_begin(cudaStream_t handle, int mode, engine_graph *graph, const engine_recapture *hook) {
  if (mode < ENGINE_CAPTURE_GLOBAL || mode > ENGINE_CAPTURE_RELAXED || !graph) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  error = stream ? engine_capture_begin_locked(stream, mode, graph, NULL, 0) : engine_stream_error(handle);
  if (!error) {
    stream->capture->again = true;
    stream->capture->recapture = *hook;
    while (graph->objects.count) engine_object_drop(graph->objects.items[--graph->objects.count], true);
  }
  engine_leave();
  return error;
}

bool engine_recapture_whole(const engine_capture *capture) {
  return !capture->again || capture->next_node == capture->graph->nodes.count;
}
