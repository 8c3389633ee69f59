/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs and their nodes have in addition to parameters and edges: launch attributes, conditions, and user
 * objects, which live as long as anything refers to them. */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph_private.h"

/* ---- attributes ---- */

static cudaError_t attribute_set(engine_node *node, int id, const cudaLaunchAttributeValue *value) {
  if (id == cudaLaunchAttributeProgrammaticEvent || id == cudaLaunchAttributeLaunchCompletionEvent)
    return cudaErrorInvalidValue; /* of launches only */
  cudaError_t error = engine_launch_attribute(&node->params.launch, id, value);
  if (error) return error;
  for (size_t i = 0; i < node->attributes.count; i++)
    if (node->attributes.items[i].id == id) {
      node->attributes.items[i].value = *value;
      return cudaSuccess;
    }
  FF_PUSH(&node->attributes, ((engine_attribute){id, *value}));
  return cudaSuccess;
}

static bool takes_attributes(const engine_node *node) {
  return engine_node_live(node) && node->params.kind == ENGINE_NODE_KERNEL;
}

cudaError_t engine_node_attribute(engine_node *node, int attribute, cudaLaunchAttributeValue *value) {
  if (!value || attribute <= 0 || attribute > 16) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  memset(value, 0, sizeof *value);
  if (!takes_attributes(node)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && i < node->attributes.count; i++)
    if (node->attributes.items[i].id == attribute) *value = node->attributes.items[i].value;
  if (!error && attribute == cudaLaunchAttributeAccessPolicyWindow)
    value->accessPolicyWindow = node->params.launch.window;
  if (!error && attribute == cudaLaunchAttributeCooperative) value->cooperative = node->params.launch.cooperative;
  if (!error && attribute == cudaLaunchAttributeClusterDimension)
    memcpy(&value->clusterDim, node->params.launch.cluster, sizeof node->params.launch.cluster);
  engine_leave();
  return error;
}

cudaError_t engine_node_set_attribute(engine_node *node, int attribute, const cudaLaunchAttributeValue *value) {
  if (!value || attribute <= 0 || attribute > 16) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (takes_attributes(node)) error = attribute_set(node, attribute, value);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_node_copy_attributes(engine_node *to, engine_node *from) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!takes_attributes(to) || !takes_attributes(from)) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && to != from && i < from->attributes.count; i++)
    error = attribute_set(to, from->attributes.items[i].id, &from->attributes.items[i].value);
  if (!error) {
    to->params.launch.cooperative = from->params.launch.cooperative;
    to->params.launch.window = from->params.launch.window;
  }
  if (!error) memcpy(to->params.launch.cluster, from->params.launch.cluster, sizeof to->params.launch.cluster);
  engine_leave();
  return error;
}

/* ---- conditions ---- */

void engine_condition_drop(engine_condition *condition) {
  if (--condition->references) return;
  engine_condition **at = &ff_graphs.conditions;
  while (*at != condition) at = &(*at)->next;
  *at = condition->next;
  engine_release_hidden(condition->handle);
  free(condition);
}

void engine_graph_share(engine_graph *graph, engine_condition *condition) {
  FF_PUSH(&graph->conditions, condition);
  condition->references++;
}

cudaError_t engine_conditional_create(engine_graph *graph, uint32_t value, bool assign, uint64_t *handle) {
  if (!handle) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  uint64_t cell = 0;
  if (!engine_graph_live(graph)) error = cudaErrorInvalidValue;
  else if (!(cell = engine_allocate_hidden(engine_device_of(NULL), sizeof(uint32_t), "graph condition")))
    error = cudaErrorMemoryAllocation;
  else {
    engine_condition *condition = ff_alloc(sizeof *condition);
    *condition = (engine_condition){
        .handle = cell, .value = value, .assign = assign, .references = 1, .next = ff_graphs.conditions};
    ff_graphs.conditions = condition;
    FF_PUSH(&graph->conditions, condition);
    *handle = cell;
  }
  engine_leave();
  return error;
}

/* ---- user objects ---- */

static bool object_live(const engine_object *object) {
  return engine_handles_have(&ff_engine.handles, object, ENGINE_HANDLE_OBJECT);
}

/* References that are the program's to give away. */
static uint64_t program_references(const engine_object *object) { return object->references - object->held; }

void engine_object_drop(engine_object *object, bool held) {
  if (held) object->held--;
  if (--object->references) return;
  engine_object **at = &ff_graphs.objects;
  while (*at != object) at = &(*at)->next;
  *at = object->next;
  engine_handles_remove(&ff_engine.handles, object);
  engine_stream_host_locked(&ff_engine.legacy[engine_device_of(NULL)], object->destroy, object->data, false);
  free(object);
}

void engine_graph_hold(engine_graph *graph, engine_object *object) {
  FF_PUSH(&graph->objects, object);
  object->references++;
  object->held++;
}

cudaError_t engine_object_create(void *data, cudaHostFn_t destroy, unsigned references, engine_object **object) {
  if (!object || !destroy || !references || references > INT32_MAX) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_object *made = ff_alloc(sizeof *made);
  *made = (engine_object){.data = data, .destroy = destroy, .references = references, .next = ff_graphs.objects};
  ff_graphs.objects = made;
  engine_handles_add(&ff_engine.handles, made, ENGINE_HANDLE_OBJECT);
  *object = made;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_object_retain(engine_object *object, unsigned count) {
  if (!count || count > INT32_MAX) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (object_live(object)) object->references += count;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_object_release(engine_object *object, unsigned count) {
  if (!count || count > INT32_MAX) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!object_live(object) || program_references(object) < count) error = cudaErrorInvalidValue;
  else {
    object->references -= count - 1;
    engine_object_drop(object, false);
  }
  engine_leave();
  return error;
}

#define GRAPH_OBJECTS 1000000u /* references of one graph */

cudaError_t engine_graph_retain_object(engine_graph *graph, engine_object *object, unsigned count, bool move) {
  if (!count || count > GRAPH_OBJECTS) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_graph_live(graph) || !object_live(object) || graph->objects.count + count > GRAPH_OBJECTS)
    error = cudaErrorInvalidValue;
  else if (move && program_references(object) < count) error = cudaErrorInvalidValue;
  for (unsigned i = 0; !error && i < count; i++) engine_graph_hold(graph, object);
  if (!error && move) object->references -= count;
  engine_leave();
  return error;
}

cudaError_t engine_graph_release_object(engine_graph *graph, engine_object *object, unsigned count) {
  if (!count || count > INT32_MAX) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  size_t has = 0;
  bool live = engine_graph_live(graph) && object_live(object);
  for (size_t i = 0; live && i < graph->objects.count; i++) has += graph->objects.items[i] == object;
  if (!live || has < count) error = cudaErrorInvalidValue;
  for (size_t i = 0; !error && count && i < graph->objects.count;) {
    if (graph->objects.items[i] != object) i++;
    else {
      graph->objects.items[i] = graph->objects.items[--graph->objects.count];
      count--;
      engine_object_drop(object, true);
    }
  }
  engine_leave();
  return error;
}
