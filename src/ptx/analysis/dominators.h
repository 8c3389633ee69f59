/* SPDX-License-Identifier: Apache-2.0 */
/* Immediate dominators of any directed graph (Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a
 * Flowgraph", 1979, the simple variant: O(edges log nodes) whatever the graph). */
#ifndef FF_PTX_DOMINATORS_H
#define FF_PTX_DOMINATORS_H

#include <stdint.h>

typedef struct ptx_graph { /* edges of node n: to[first[n]] ... to[first[n + 1] - 1] */
  uint32_t node_count;
  uint32_t *first, *to;
} ptx_graph;

/* idom[n] for each node; UINT32_MAX for the root and for nodes that it does not reach. `reverse` has the same edges
 * turned round. */
void ptx_dominators(const ptx_graph *graph, const ptx_graph *reverse, uint32_t root, uint32_t *idom);

#endif
