/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of bfs: a random graph in compressed rows (node i's edges are edges[first[i]] to edges[first[i + 1] - 1]),
 * one launch per level until the frontier is empty (form 0), or until none finds a node (form 1); or as Rodinia's, two launches per level, and edges
 * that go both ways (form 2). The order within a frontier may differ from run to run; depths may not. */
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

/* Every node draws half as many neighbours as it has on average, one more or less, anywhere: each edge goes both ways. */
static graph two_way_graph(unsigned nodes, unsigned mean) {
  workload_random random = {3};
  unsigned half = mean > 1 ? mean / 2 : 1, most = (half + 1) * nodes, pairs = 0;
  unsigned(*ends)[2] = workload_memory(most, sizeof *ends);
  graph graph = {.nodes = nodes, .first = workload_memory(nodes + (size_t)1, sizeof(unsigned))};
  for (unsigned i = 0; i < nodes; i++)
    for (unsigned left = half - 1 + workload_random_below(&random, 3); left; left--, pairs++) {
      ends[pairs][0] = i;
      ends[pairs][1] = workload_random_below(&random, nodes);
      graph.first[i + 1]++;
      graph.first[ends[pairs][1] + 1]++;
    }
  for (unsigned i = 0; i < nodes; i++) graph.first[i + 1] += graph.first[i];
  graph.edge_count = graph.first[nodes];
  graph.edges = workload_memory(graph.edge_count, sizeof(unsigned)); /* at least one word */
  unsigned *next = workload_memory(nodes, sizeof *next);
  memcpy(next, graph.first, nodes * sizeof *next);
  for (unsigned i = 0; i < pairs; i++)
    for (unsigned way = 0; way < 2; way++) graph.edges[next[ends[i][way]]++] = ends[i][1 - way];
  free(next), free(ends);
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

/* As Rodinia's: nodes are pairs of the first edge and how many there are; three bytes of each say where it stands. */
static int search_by_masks(const graph *graph, gpu_pointer edges, gpu_pointer depths) {
  gpu_kernel visit = gpu_find_kernel("bfs_visit"), mark = gpu_find_kernel("bfs_mark");
  unsigned nodes = graph->nodes, (*pairs)[2] = workload_memory(nodes, sizeof *pairs);
  unsigned char *bytes = workload_memory(nodes, 1);
  for (unsigned i = 0; i < nodes; i++) pairs[i][0] = graph->first[i], pairs[i][1] = graph->first[i + 1] - graph->first[i];
  gpu_pointer all = gpu_upload(pairs, nodes * sizeof *pairs), reached_now = gpu_upload(bytes, nodes);
  bytes[0] = 1;
  gpu_pointer of_level = gpu_upload(bytes, nodes), reached = gpu_upload(bytes, nodes), found_at = gpu_allocate(sizeof(int));
  gpu_shape shape = {gpu_divide_up(nodes, 256), 1, 256, 1};
  int level = 0;
  for (int found = 1; found;) {
    level++;
    gpu_set_words(found_at, 0, 1);
    GPU_LAUNCH(visit, shape, all, edges, of_level, reached_now, reached, depths, nodes);
    GPU_LAUNCH(mark, shape, of_level, reached_now, reached, found_at, nodes);
    gpu_copy_to_host(&found, found_at, sizeof found);
  }
  gpu_free(all), gpu_free(of_level), gpu_free(reached_now), gpu_free(reached), gpu_free(found_at);
  free(pairs), free(bytes);
  return level;
}

enum { BY_FRONTIER, BY_SWEEPS, BY_MASKS, FORMS };

static int search_on_gpu(const graph *graph, int form, int *depth) {
  size_t node_bytes = graph->nodes * sizeof(unsigned);
  gpu_open(workload_ptx);
  gpu_pointer first = form == BY_MASKS ? 0 : gpu_upload(graph->first, node_bytes + sizeof(unsigned));
  gpu_pointer edges = gpu_upload(graph->edges, (graph->edge_count ? graph->edge_count : 1) * sizeof(unsigned));
  gpu_pointer depths = gpu_allocate(node_bytes);
  if (form == BY_MASKS) { /* Rodinia's host makes them */
    memset(depth, 0xff, node_bytes);
    depth[0] = 0;
    gpu_copy_to_device(depths, depth, node_bytes);
  } else {
    gpu_set_words(depths, UINT32_MAX, graph->nodes);
    gpu_set_words(depths, 0, 1);
  }
  int levels = form == BY_MASKS    ? search_by_masks(graph, edges, depths)
               : form == BY_SWEEPS ? search_by_sweeps(graph, first, edges, depths)
                                   : search_by_frontier(graph, first, edges, depths);
  gpu_copy_to_host(depth, depths, node_bytes);
  if (first) gpu_free(first);
  gpu_free(edges), gpu_free(depths);
  gpu_close();
  return levels;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"nodes", 65536, 1, 1 << 26}, {"mean-degree", 8, 1, 16}, {"form", 0, 0, FORMS - 1}};
  workload_arguments(argc, argv, "bfs", "breadth-first search of a random graph, level by level", arguments, 3);
  unsigned nodes = (unsigned)arguments[0].value, mean = (unsigned)arguments[1].value;
  int form = (int)arguments[2].value;
  graph graph = form == BY_MASKS ? two_way_graph(nodes, mean) : random_graph(nodes, mean);
  int *expected = workload_memory(graph.nodes, sizeof *expected), *depth = workload_memory(graph.nodes, sizeof *depth);
  workload_cpu_begins();
  search_on_cpu(&graph, expected);
  workload_cpu_ends();
  int levels = search_on_gpu(&graph, form, depth);

  size_t wrong = 0;
  for (unsigned i = 0; i < graph.nodes; i++) wrong += depth[i] != expected[i];
  printf("bfs: %u nodes, %u edges, %d levels\n", graph.nodes, graph.edge_count, levels);
  free(expected), free(depth), free(graph.first), free(graph.edges);
  return workload_verdict_exact("bfs", graph.nodes, wrong);
}
