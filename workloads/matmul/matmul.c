/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of matmul. The kernel's order of operations is known (one fused multiply-add per step, in order), so the
 * CPU makes the same sums and the results are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>

extern const char workload_ptx[];

static float *random_matrix(workload_random *random, unsigned size) {
  float *matrix = workload_memory((size_t)size * size, sizeof *matrix);
  for (size_t i = 0; i < (size_t)size * size; i++) matrix[i] = workload_random_float(random) - 0.5f;
  return matrix;
}

static void multiply_row(const float *a, const float *b, float *row, unsigned size) {
  for (unsigned column = 0; column < size; column++) row[column] = 0;
  for (unsigned k = 0; k < size; k++)
    for (unsigned column = 0; column < size; column++)
      row[column] = fmaf(a[k], b[(size_t)k * size + column], row[column]);
}

static size_t count_wrong(const float *a, const float *b, const float *c, unsigned size) {
  float *row = workload_memory(size, sizeof *row);
  size_t wrong = 0;
  for (unsigned y = 0; y < size; y++) {
    multiply_row(a + (size_t)y * size, b, row, size);
    for (unsigned x = 0; x < size; x++) wrong += row[x] != c[(size_t)y * size + x];
  }
  free(row);
  return wrong;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"size", 256, 1, 16384}, {"iterations", 1, 1, 1000000}};
  workload_arguments(argc, argv, "matmul", "multiplies two square matrices", arguments, 2);
  unsigned size = (unsigned)arguments[0].value;
  size_t bytes = (size_t)size * size * sizeof(float);

  workload_random random = {2};
  float *a = random_matrix(&random, size), *b = random_matrix(&random, size), *c = workload_memory(1, bytes);

  gpu_open(workload_ptx);
  gpu_pointer device_a = gpu_upload(a, bytes), device_b = gpu_upload(b, bytes), device_c = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up(size, 16), gpu_divide_up(size, 16), 16, 16};
  gpu_kernel kernel = gpu_find_kernel("matmul");
  for (long i = 0; i < arguments[1].value; i++) GPU_LAUNCH(kernel, shape, device_a, device_b, device_c, size);
  gpu_copy_to_host(c, device_c, bytes);
  gpu_free(device_a), gpu_free(device_b), gpu_free(device_c);
  gpu_close();

  workload_cpu_begins();
  size_t wrong = count_wrong(a, b, c, size);
  workload_cpu_ends();
  free(a), free(b), free(c);
  return workload_verdict_exact("matmul", (size_t)size * size, wrong);
}
