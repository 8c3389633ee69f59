/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as a DOT text (cudaGraphDebugDotPrint): one box per node, named by the numbers
 * of its graph and of the node in it, child graphs and bodies as clusters. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/engine/engine_graph_private.h"

#define DOT_VERBOSE 1u
#define DOT_HANDLES (1u << 10)

const char *engine_node_kind_name(engine_node_kind kind) {
  switch (kind) {
  case ENGINE_NODE_KERNEL: return "kernel";
  case ENGINE_NODE_COPY: return "memcpy";
  case ENGINE_NODE_SET: return "memset";
  case ENGINE_NODE_HOST: return "host";
  case ENGINE_NODE_GRAPH: return "graph";
  case ENGINE_NODE_EMPTY: return "empty";
  case ENGINE_NODE_WAIT: return "event wait";
  case ENGINE_NODE_RECORD: return "event record";
  case ENGINE_NODE_ALLOC: return "alloc";
  case ENGINE_NODE_FREE: return "free";
  case ENGINE_NODE_CONDITIONAL: return "conditional";
  case ENGINE_NODE_VALUES: return "batch mem op";
  case ENGINE_NODE_BATCH: return "memcpy batch";
  }
  return "?";
}

static void label(ff_text *out, const engine_node *node, unsigned flags) {
  const engine_node_params *p = &node->params;
  bool verbose = flags & DOT_VERBOSE;
  ff_text_add(out, "%zu %s", (size_t)node->local, engine_node_kind_name(p->kind));
  bool there = p->kind == ENGINE_NODE_KERNEL &&
               engine_handles_have(&ff_engine.handles, p->launch.function, ENGINE_HANDLE_FUNCTION);
  if (p->kind == ENGINE_NODE_KERNEL)
    ff_text_add(out, "\\n%s", there ? engine_function_name(p->launch.function) : "(its module was unloaded)");
  if (p->kind == ENGINE_NODE_KERNEL && verbose)
    ff_text_add(out, "\\n<<<%ux%ux%u, %ux%ux%u, %llu>>>", p->launch.grid[0], p->launch.grid[1], p->launch.grid[2],
                p->launch.block[0], p->launch.block[1], p->launch.block[2],
                (unsigned long long)p->launch.dynamic_shared);
  if (p->kind == ENGINE_NODE_COPY && verbose)
    ff_text_add(out, "\\n%#llx to %#llx, %llu x %llu x %llu bytes", (unsigned long long)p->copy.from,
                (unsigned long long)p->copy.to, (unsigned long long)p->copy.width, (unsigned long long)p->copy.height,
                (unsigned long long)p->copy.depth);
  if (p->kind == ENGINE_NODE_BATCH && verbose) ff_text_add(out, "\\n%zu copies", p->batch.count);
  if (p->kind == ENGINE_NODE_SET && verbose)
    ff_text_add(out, "\\n%#llx, %llu x %llu, value %u", (unsigned long long)p->set.to, (unsigned long long)p->set.width,
                (unsigned long long)p->set.height, (unsigned)p->set.value);
  if ((p->kind == ENGINE_NODE_ALLOC || p->kind == ENGINE_NODE_FREE) && verbose)
    ff_text_add(out, "\\n%#llx, %llu bytes", (unsigned long long)p->memory.address,
                (unsigned long long)p->memory.bytes);
  if (flags & DOT_HANDLES) ff_text_add(out, "\\n%p", (const void *)node);
}

static void write_graph(ff_text *out, engine_graph *graph, unsigned flags, unsigned depth, unsigned *clusters);

static void write_inner(ff_text *out, engine_graph *graph, unsigned flags, unsigned depth, unsigned *clusters) {
  ff_text_add(out, "%*ssubgraph cluster_%u {\n", (int)(2 * depth), "", ++*clusters);
  write_graph(out, graph, flags, depth + 1, clusters);
  ff_text_add(out, "%*s}\n", (int)(2 * depth), "");
}

static void write_graph(ff_text *out, engine_graph *graph, unsigned flags, unsigned depth, unsigned *clusters) {
  int indent = (int)(2 * depth);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    engine_node *node = graph->nodes.items[i];
    ff_text_add(out, "%*sgraph_%u_node_%u [shape=box, label=\"", indent, "", graph->id, node->local);
    label(out, node, flags);
    ff_text_add(out, "\"];\n");
    if (node->params.kind == ENGINE_NODE_GRAPH) write_inner(out, node->params.graph, flags, depth, clusters);
    for (uint32_t k = 0; node->params.kind == ENGINE_NODE_CONDITIONAL && k < node->params.conditional.count; k++)
      write_inner(out, node->params.conditional.bodies[k], flags, depth, clusters);
  }
  for (size_t i = 0; i < graph->nodes.count; i++)
    for (size_t k = 0; k < graph->nodes.items[i]->before.count; k++)
      ff_text_add(out, "%*sgraph_%u_node_%u -> graph_%u_node_%u;\n", indent, "", graph->id,
                  graph->nodes.items[i]->before.items[k].node->local, graph->id, graph->nodes.items[i]->local);
}

cudaError_t engine_graph_dot(engine_graph *graph, const char *path, unsigned flags) {
  if (!path) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  ff_text out = {0};
  unsigned clusters = 0;
  if (engine_graph_live(graph)) {
    ff_text_add(&out, "digraph cuda_graph {\n");
    write_graph(&out, graph, flags, 1, &clusters);
    ff_text_add(&out, "}\n");
    ff_error reason;
    if (ff_file_write(path, out.chars, out.length, &reason)) {
      engine_say("cudaGraphDebugDotPrint: %s", reason.message);
      error = cudaErrorOperatingSystem;
    }
  } else {
    error = cudaErrorInvalidValue;
  }
  free(out.chars);
  engine_leave();
  return error;
}
