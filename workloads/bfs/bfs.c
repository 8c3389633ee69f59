/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of bfs: a random graph in compressed rows (node i's edges are edges[first[i]] to edges[first[i + 1] - 1]),
 * one launch per level until the frontier is empty, or with `sweeps` until none finds a node. The order within a frontier may differ from run to run; depths may
 * not. */
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char workload_ptx[];

typedef struct graph {
  unsigned nodes, edge_count;
  unsigned *first, *edges;
} graph;

/* Every node has 1 to 2 x mean - 1 edges to nodes anywhere. */
static graph random_graph(unsigned nodes, unsigned mean) {
  workload_random random = {3};
  graph graph = {.nodes = nodes, .first = workload_memory(nodes + (size_t)1, sizeof(unsigned))};
  for (unsigned i = 0; i < nodes; i++)
    graph.first[i + 1] = graph.first[i] + 1 + workload_random_below(&random, 2 * mean - 1);
  graph.edge_count = graph.first[nodes];
  graph.edges = workload_memory(graph.edge_count, sizeof(unsigned));
  for (unsigned i = 0; i < graph.edge_count; i++) graph.edges[i] = workload_random_below(&random, nodes);
  return graph;
}

static void search_on_cpu(const graph *graph, int *depth) {
  unsigned *queue = workload_memory(graph->nodes, sizeof *queue);
  memset(depth, 0xff, graph->nodes * sizeof *depth);
  depth[0] = 0;
  for (unsigned head = 0, tail = 1; head < tail; head++) {
    unsigned node = queue[head];
    for (unsigned edge = graph->first[node]; edge < graph->first[node + 1]; edge++) {
      unsigned neighbour = graph->edges[edge];
      if (depth[neighbour] >= 0) continue;
      depth[neighbour] = depth[node] + 1;
      queue[tail++] = neighbour;
    }
  }
  free(queue);
}

/* The frontier as a list, made by atomics. Returns the levels. */
static int search_by_frontier(const graph *graph, gpu_pointer first, gpu_pointer edges, gpu_pointer depths) {
  size_t node_bytes = graph->nodes * sizeof(unsigned);
  gpu_kernel kernel = gpu_find_kernel("bfs_level");
  gpu_pointer count_at = gpu_allocate(sizeof(unsigned)), frontier = gpu_allocate(node_bytes), next = gpu_allocate(node_bytes);
  gpu_set_words(frontier, 0, 1);

  int level = 0;
  for (unsigned count = 1; count;) {
    level++;
    gpu_set_words(count_at, 0, 1);
    gpu_shape shape = {gpu_divide_up(count, 256), 1, 256, 1};
    GPU_LAUNCH(kernel, shape, first, edges, depths, frontier, count, next, count_at, level);
    gpu_copy_to_host(&count, count_at, sizeof count);
    gpu_pointer swap = frontier;
    frontier = next;
    next = swap;
  }
  gpu_free(count_at), gpu_free(frontier), gpu_free(next);
  return level;
}

/* All nodes in every launch. */
static int search_by_sweeps(const graph *graph, gpu_pointer first, gpu_pointer edges, gpu_pointer depths) {
  gpu_kernel kernel = gpu_find_kernel("bfs_sweep");
  gpu_pointer found_at = gpu_allocate(sizeof(int));
  gpu_shape shape = {gpu_divide_up(graph->nodes, 256), 1, 256, 1};
  unsigned nodes = graph->nodes;
  int level = 0;
  for (int found = 1; found;) {
    level++;
    gpu_set_words(found_at, 0, 1);
    GPU_LAUNCH(kernel, shape, first, edges, depths, nodes, found_at, level);
    gpu_copy_to_host(&found, found_at, sizeof found);
  }
  gpu_free(found_at);
  return level;
}

static int search_on_gpu(const graph *graph, int sweeps, int *depth) {
  size_t node_bytes = graph->nodes * sizeof(unsigned);
  gpu_open(workload_ptx);
  gpu_pointer first = gpu_upload(graph->first, node_bytes + sizeof(unsigned));
  gpu_pointer edges = gpu_upload(graph->edges, graph->edge_count * sizeof(unsigned));
  gpu_pointer depths = gpu_allocate(node_bytes);
  gpu_set_words(depths, UINT32_MAX, graph->nodes);
  gpu_set_words(depths, 0, 1);
  int levels = sweeps ? search_by_sweeps(graph, first, edges, depths) : search_by_frontier(graph, first, edges, depths);
  gpu_copy_to_host(depth, depths, node_bytes);
  gpu_free(first), gpu_free(edges), gpu_free(depths);
  gpu_close();
  return levels;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"nodes", 65536, 1, 1 << 26}, {"mean-degree", 8, 1, 16}, {"sweeps", 0, 0, 1}};
  workload_arguments(argc, argv, "bfs", "breadth-first search of a random graph, level by level", arguments, 3);
  graph graph = random_graph((unsigned)arguments[0].value, (unsigned)arguments[1].value);
  int *expected = workload_memory(graph.nodes, sizeof *expected), *depth = workload_memory(graph.nodes, sizeof *depth);
  workload_cpu_begins();
  search_on_cpu(&graph, expected);
  workload_cpu_ends();
  int levels = search_on_gpu(&graph, arguments[2].value != 0, depth);

  size_t wrong = 0;
  for (unsigned i = 0; i < graph.nodes; i++) wrong += depth[i] != expected[i];
  printf("bfs: %u nodes, %u edges, %d levels\n", graph.nodes, graph.edge_count, levels);
  free(expected), free(depth), free(graph.first), free(graph.edges);
  return workload_verdict_exact("bfs", graph.nodes, wrong);
}
