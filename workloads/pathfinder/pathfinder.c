/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of pathfinder: a random wall, some of its rows per launch, between two rows of costs. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>
#include <string.h>

#define THREADS 256

extern const char workload_ptx[];

static void rows_on_cpu(const int *wall, int *cost, int columns, int rows) {
  int *above = workload_memory((size_t)columns, sizeof *above);
  memcpy(cost, wall, (size_t)columns * sizeof *cost);
  for (int row = 1; row < rows; row++) {
    memcpy(above, cost, (size_t)columns * sizeof *cost);
    for (int x = 0; x < columns; x++) {
      int best = above[x];
      if (x > 0 && above[x - 1] < best) best = above[x - 1];
      if (x < columns - 1 && above[x + 1] < best) best = above[x + 1];
      cost[x] = best + wall[(size_t)row * (size_t)columns + (size_t)x];
    }
  }
  free(above);
}

static void rows_on_gpu(const int *wall, int *cost, int columns, int rows, int at_once) {
  size_t row_bytes = (size_t)columns * sizeof *wall;
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("pathfinder_rows");
  gpu_pointer device_wall = gpu_upload(wall, row_bytes * (size_t)rows), from = gpu_upload(wall, row_bytes),
              to = gpu_allocate(row_bytes);
  for (int row = 1; row < rows; row += at_once) {
    int count = rows - row < at_once ? rows - row : at_once;
    gpu_pointer here = device_wall + row_bytes * (size_t)row;
    gpu_shape shape = {gpu_divide_up((uint64_t)columns, (unsigned)(THREADS - 2 * count)), 1, THREADS, 1};
    GPU_LAUNCH(kernel, shape, here, from, to, columns, count);
    gpu_swap(&from, &to);
  }
  gpu_copy_to_host(cost, from, row_bytes);
  gpu_free(device_wall), gpu_free(from), gpu_free(to);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"columns", 16384, 1, 1 << 24}, {"rows", 100, 1, 4096}, {"rows-at-once", 20, 1, 127}};
  workload_arguments(argc, argv, "pathfinder", "the cheapest way down a wall, by rows", arguments, 3);
  int columns = (int)arguments[0].value, rows = (int)arguments[1].value;
  size_t cells = (size_t)columns * (size_t)rows;
  workload_random random = {18};
  int *wall = workload_memory(cells, sizeof *wall);
  for (size_t i = 0; i < cells; i++) wall[i] = (int)workload_random_below(&random, 10);
  int *expected = workload_memory((size_t)columns, sizeof *expected),
      *cost = workload_memory((size_t)columns, sizeof *cost);
  workload_cpu_begins();
  rows_on_cpu(wall, expected, columns, rows);
  workload_cpu_ends();
  rows_on_gpu(wall, cost, columns, rows, (int)arguments[2].value);

  size_t wrong = 0;
  for (int i = 0; i < columns; i++) wrong += cost[i] != expected[i];
  free(wall), free(expected), free(cost);
  return workload_verdict_exact("pathfinder", (size_t)columns, wrong);
}
