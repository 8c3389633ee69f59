/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of graphs while the engine's lock is free (engine_graph_private.h), checked at the deep level. */
#include "driver/engine/engine_graph_private.h"

static size_t links_to(const engine_node *node, const engine_node *before) {
  size_t count = 0;
  for (size_t i = 0; i < node->before.count; i++) count += node->before.items[i].node == before;
  return count;
}

static size_t links_from(const engine_node *node, const engine_node *after) {
  size_t count = 0;
  for (size_t i = 0; i < node->after.count; i++) count += node->after.items[i] == after;
  return count;
}

static void check_node(const engine_graph *graph, const engine_node *node) {
  FF_ASSERT(node->graph == graph && engine_handles_have(&ff_engine.handles, node, ENGINE_HANDLE_NODE));
  for (size_t i = 0; i < node->before.count; i++) {
    const engine_node *before = node->before.items[i].node;
    FF_ASSERT(before->graph == graph && links_from(before, node) == links_to(node, before));
  }
  for (size_t i = 0; i < node->after.count; i++) {
    const engine_node *after = node->after.items[i];
    FF_ASSERT(after->graph == graph && links_to(after, node) == links_from(node, after));
  }
}

size_t engine_graphs_check(void) {
  size_t handles = 0;
  for (const engine_graph *g = ff_graphs.graphs; g; g = g->next, handles++) {
    FF_ASSERT(engine_handles_have(&ff_engine.handles, g, ENGINE_HANDLE_GRAPH));
    FF_ASSERT(!g->owner || engine_node_live(g->owner));
    for (size_t i = 0; i < g->nodes.count; i++, handles++) check_node(g, g->nodes.items[i]);
  }
  for (const engine_exec *e = ff_graphs.execs; e; e = e->next) /* one that is doomed has none any more */
    handles += engine_handles_have(&ff_engine.handles, e, ENGINE_HANDLE_EXEC);
  for (const engine_object *o = ff_graphs.objects; o; o = o->next, handles++) {
    FF_ASSERT(engine_handles_have(&ff_engine.handles, o, ENGINE_HANDLE_OBJECT) && o->held <= o->references);
  }
  engine_graph_memory_references_check();
  return handles;
}
