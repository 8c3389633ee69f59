/* SPDX-License-Identifier: Apache-2.0 */
/* Lengauer-Tarjan: see dominators.h. Everything below is in terms of preorder numbers (1 is the root, 0 is no node). */
#include "ptx/analysis/dominators.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct finder {
  uint32_t count;   /* nodes reached */
  uint32_t *number; /* node -> preorder number, 0: not reached */
  uint32_t *node;   /* preorder number -> node */
  uint32_t *parent, *semi, *ancestor, *label, *idom;
  uint32_t *bucket, *next_in_bucket; /* numbers whose semidominator is this one, as a list */
  uint32_t *stack;
} finder;

static void visit(finder *f, uint32_t node, uint32_t parent) {
  uint32_t n = ++f->count;
  f->number[node] = n;
  f->node[n] = node;
  f->parent[n] = parent;
  f->semi[n] = f->label[n] = n;
}

/* Depth-first numbering without recursion: stack holds nodes, at[] the next edge of each. */
static void number_nodes(finder *f, const ptx_graph *graph, uint32_t root) {
  uint32_t *at = ff_alloc(graph->node_count * sizeof *at), depth = 0;
  visit(f, root, 0);
  f->stack[depth++] = root;
  at[root] = graph->first[root];
  while (depth) {
    uint32_t node = f->stack[depth - 1];
    if (at[node] == graph->first[node + 1]) {
      depth--;
      continue;
    }
    uint32_t to = graph->to[at[node]++];
    if (f->number[to]) continue;
    visit(f, to, f->number[node]);
    f->stack[depth++] = to;
    at[to] = graph->first[to];
  }
  free(at);
}

/* The number with the least semidominator on the path from n up to its tree's root (which is left out); shortens the
 * path. */
static uint32_t evaluate(finder *f, uint32_t n) {
  if (!f->ancestor[n]) return n;
  uint32_t depth = 0;
  for (uint32_t v = n; f->ancestor[f->ancestor[v]]; v = f->ancestor[v]) f->stack[depth++] = v;
  while (depth) {
    uint32_t v = f->stack[--depth], up = f->ancestor[v];
    if (f->semi[f->label[up]] < f->semi[f->label[v]]) f->label[v] = f->label[up];
    f->ancestor[v] = f->ancestor[up];
  }
  return f->label[n];
}

static void find_semidominator(finder *f, const ptx_graph *reverse, uint32_t w) {
  uint32_t node = f->node[w];
  for (uint32_t e = reverse->first[node]; e < reverse->first[node + 1]; e++) {
    uint32_t v = f->number[reverse->to[e]];
    if (!v) continue;
    uint32_t u = evaluate(f, v);
    if (f->semi[u] < f->semi[w]) f->semi[w] = f->semi[u];
  }
}

static void find_all(finder *f, const ptx_graph *reverse) {
  for (uint32_t w = f->count; w > 1; w--) {
    find_semidominator(f, reverse, w);
    f->next_in_bucket[w] = f->bucket[f->semi[w]];
    f->bucket[f->semi[w]] = w;
    uint32_t parent = f->parent[w];
    f->ancestor[w] = parent;
    for (uint32_t v = f->bucket[parent]; v; v = f->next_in_bucket[v]) {
      uint32_t u = evaluate(f, v);
      f->idom[v] = f->semi[u] < f->semi[v] ? u : parent;
    }
    f->bucket[parent] = 0;
  }
  for (uint32_t w = 2; w <= f->count; w++)
    if (f->idom[w] != f->semi[w]) f->idom[w] = f->idom[f->idom[w]];
}

void ptx_dominators(const ptx_graph *graph, const ptx_graph *reverse, uint32_t root, uint32_t *idom) {
  uint32_t room = graph->node_count + 1;
  uint32_t *memory = ff_alloc(10 * (size_t)room * sizeof *memory);
  finder f = {0,
              memory,
              memory + room,
              memory + 2 * room,
              memory + 3 * room,
              memory + 4 * room,
              memory + 5 * room,
              memory + 6 * room,
              memory + 7 * room,
              memory + 8 * room,
              memory + 9 * room};
  number_nodes(&f, graph, root);
  find_all(&f, reverse);
  for (uint32_t n = 0; n < graph->node_count; n++) idom[n] = UINT32_MAX;
  for (uint32_t w = 2; w <= f.count; w++) idom[f.node[w]] = f.node[f.idom[w]];
  free(memory);
}
