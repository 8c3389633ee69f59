/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of lud: a random matrix whose diagonal outweighs its rows, so that no pivot is small. The CPU decomposes it column by column; both results
 * are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILE 16

extern const char workload_ptx[];

static void decompose_on_cpu(float *matrix, size_t size) {
  for (size_t k = 0; k < size; k++)
    for (size_t y = k + 1; y < size; y++) {
      float share = matrix[y * size + k] / matrix[k * size + k];
      matrix[y * size + k] = share;
      for (size_t x = k + 1; x < size; x++) matrix[y * size + x] = fmaf(-share, matrix[k * size + x], matrix[y * size + x]);
    }
}

static void decompose_on_gpu(float *matrix, unsigned size) {
  size_t bytes = (size_t)size * size * sizeof *matrix;
  gpu_open(workload_ptx);
  gpu_kernel diagonal = gpu_find_kernel("lud_diagonal"), perimeter = gpu_find_kernel("lud_perimeter"), internal = gpu_find_kernel("lud_internal");
  gpu_pointer device = gpu_upload(matrix, bytes);
  for (unsigned first = 0; first < size; first += TILE) {
    unsigned left = (size - first) / TILE - 1; /* tiles to the right, and below */
    gpu_shape one = {1, 1, TILE, 1}, edge = {left, 1, 2 * TILE, 1}, rest = {left, left, TILE, TILE};
    GPU_LAUNCH(diagonal, one, device, size, first);
    if (!left) break;
    GPU_LAUNCH(perimeter, edge, device, size, first);
    GPU_LAUNCH(internal, rest, device, size, first);
  }
  gpu_copy_to_host(matrix, device, bytes);
  gpu_free(device);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"tiles", 16, 1, 1024}};
  workload_arguments(argc, argv, "lud", "LU decomposition of a matrix of so many tiles of 16 a side", arguments, 1);
  unsigned size = (unsigned)arguments[0].value * TILE;
  size_t cells = (size_t)size * size;
  workload_random random = {31};
  float *matrix = workload_random_floats(&random, cells, -1, 2);
  for (size_t i = 0; i < size; i++) matrix[i * size + i] += (float)size;
  float *expected = workload_memory(cells, sizeof *expected);
  memcpy(expected, matrix, cells * sizeof *expected);
  workload_cpu_begins();
  decompose_on_cpu(expected, size);
  workload_cpu_ends();
  decompose_on_gpu(matrix, size);
  printf("lud: %u x %u, last pivot %.4f\n", size, size, (double)matrix[cells - 1]);
  size_t wrong = workload_floats_differ(matrix, expected, cells);
  free(matrix), free(expected);
  return workload_verdict_exact("lud", cells, wrong);
}
