/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of gaussian: a system of equations whose diagonal outweighs its rows. The CPU eliminates in the same order with the same operations, and
 * matrix, right side and shares are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILE 16
#define THREADS 256

extern const char workload_ptx[];

typedef struct system_of_equations {
  float *matrix, *right, *shares; /* shares[row][column]: what the row lost of that pivot's row */
} system_of_equations;

static void eliminate_on_cpu(system_of_equations s, size_t size) {
  for (size_t pivot = 0; pivot + 1 < size; pivot++)
    for (size_t row = pivot + 1; row < size; row++) {
      float share = s.matrix[row * size + pivot] / s.matrix[pivot * size + pivot];
      s.shares[row * size + pivot] = share;
      for (size_t x = pivot; x < size; x++) s.matrix[row * size + x] = fmaf(-share, s.matrix[pivot * size + x], s.matrix[row * size + x]);
      s.right[row] = fmaf(-share, s.right[pivot], s.right[row]);
    }
}

static void eliminate_on_gpu(system_of_equations s, unsigned size) {
  size_t cells = (size_t)size * size * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel shares = gpu_find_kernel("gaussian_shares"), rows = gpu_find_kernel("gaussian_rows");
  gpu_pointer device_matrix = gpu_upload(s.matrix, cells), device_right = gpu_upload(s.right, size * sizeof(float)),
              device_shares = gpu_upload(s.shares, cells); /* zeros: not all of it is written */
  for (unsigned pivot = 0; pivot + 1 < size; pivot++) {
    unsigned below = size - 1 - pivot;
    gpu_shape column = {gpu_divide_up(below, THREADS), 1, THREADS, 1}, rest = {gpu_divide_up(below + 1, TILE), gpu_divide_up(below, TILE), TILE, TILE};
    GPU_LAUNCH(shares, column, device_shares, device_matrix, size, pivot);
    GPU_LAUNCH(rows, rest, device_shares, device_matrix, device_right, size, pivot);
  }
  gpu_copy_to_host(s.shares, device_shares, cells);
  gpu_copy_to_host(s.matrix, device_matrix, cells);
  gpu_copy_to_host(s.right, device_right, size * sizeof(float));
  gpu_free(device_matrix), gpu_free(device_right), gpu_free(device_shares);
  gpu_close();
}

static system_of_equations random_system(size_t size) {
  workload_random random = {37};
  system_of_equations s = {workload_random_floats(&random, size * size, -1, 2), workload_random_floats(&random, size, -1, 2),
                           workload_memory(size * size, sizeof(float))};
  for (size_t i = 0; i < size; i++) s.matrix[i * size + i] += (float)size;
  return s;
}

static void free_system(system_of_equations s) { free(s.matrix), free(s.right), free(s.shares); }

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"size", 256, 2, 8192}};
  workload_arguments(argc, argv, "gaussian", "Gaussian elimination of a system of so many equations", arguments, 1);
  size_t size = (size_t)arguments[0].value, cells = size * size;
  system_of_equations expected = random_system(size), got = random_system(size);
  workload_cpu_begins();
  eliminate_on_cpu(expected, size);
  workload_cpu_ends();
  eliminate_on_gpu(got, (unsigned)size);
  printf("gaussian: %zu equations, the last unknown is %.6f\n", size, (double)(got.right[size - 1] / got.matrix[cells - 1]));
  size_t wrong = workload_floats_differ(got.matrix, expected.matrix, cells) + workload_floats_differ(got.shares, expected.shares, cells) +
                 workload_floats_differ(got.right, expected.right, size);
  free_system(expected), free_system(got);
  return workload_verdict_exact("gaussian", 2 * cells + size, wrong);
}
