/* SPDX-License-Identifier: Apache-2.0 */
/* One level of a breadth-first search, in three ways. bfs_level: a thread takes one node of the frontier and looks at its edges; the thread that
 * changes a neighbour's depth from "not seen" claims it for the next frontier. Neighbours are anywhere in memory: the
 * loads scatter, and under demand paging nearly every page is wanted. bfs_sweep: a thread looks whether a node is of the last level, and gives the
 * neighbours that have no depth yet theirs: no atomics, as all who write the same word write the same number.
 * bfs_visit, bfs_mark: as Rodinia's bfs does it, with bytes that say which nodes are of the level, were reached, and were reached in this level. */
#include "device.h"

extern "C" __global__ void bfs_level(const unsigned *first_edge, const unsigned *edges, int *depth,
                                     const unsigned *frontier, unsigned frontier_count, unsigned *next,
                                     unsigned *next_count, int level) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= frontier_count) return;
  unsigned node = frontier[i];
  for (unsigned edge = first_edge[node]; edge < first_edge[node + 1]; edge++) {
    unsigned neighbour = edges[edge];
    if (depth[neighbour] >= 0) continue;
    if (atomicCAS(&depth[neighbour], -1, level) == -1) next[atomicAdd(next_count, 1u)] = neighbour;
  }
}

extern "C" __global__ void bfs_sweep(const unsigned *first_edge, const unsigned *edges, int *depth, unsigned nodes, int *found, int level) {
  unsigned node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || depth[node] != level - 1) return;
  unsigned end = first_edge[node + 1];
  int any = 0;
#pragma unroll 1
  for (unsigned edge = first_edge[node]; edge < end; edge++) {
    unsigned neighbour = edges[edge];
    if (depth[neighbour] < 0) depth[neighbour] = level, any = 1;
  }
  if (any) *found = 1;
}

struct bfs_node {
  unsigned first, count; /* of its edges */
};

extern "C" __global__ void bfs_visit(const bfs_node *all, const unsigned *edges, unsigned char *of_level,
                                     unsigned char *reached_now, const unsigned char *reached, int *depth, unsigned nodes) {
  unsigned node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || !of_level[node]) return;
  of_level[node] = 0;
  unsigned end = all[node].first + all[node].count;
#pragma unroll 1
  for (unsigned edge = all[node].first; edge < end; edge++) {
    unsigned neighbour = edges[edge];
    if (reached[neighbour]) continue;
    depth[neighbour] = depth[node] + 1;
    reached_now[neighbour] = 1;
  }
}

extern "C" __global__ void bfs_mark(unsigned char *of_level, unsigned char *reached_now, unsigned char *reached, int *found,
                                    unsigned nodes) {
  unsigned node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || !reached_now[node]) return;
  of_level[node] = reached[node] = 1;
  reached_now[node] = 0;
  *found = 1;
}
