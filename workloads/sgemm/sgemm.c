/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of sgemm: one product of any three sizes. The CPU adds in the same order with fused multiply-adds, so C is
 * compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 128
#define COLUMNS 16

extern const char workload_ptx[];

static const float alpha = 0.75f, beta = 0.5f;

/* a and c by columns, b by rows. */
static void multiply_on_cpu(const float *a, const float *b, float *c, size_t rows, size_t columns, size_t depth) {
  float *sum = workload_memory(rows, sizeof *sum);
  for (size_t column = 0; column < columns; column++) {
    memset(sum, 0, rows * sizeof *sum);
    for (size_t k = 0; k < depth; k++)
      for (size_t row = 0; row < rows; row++) sum[row] = fmaf(a[k * rows + row], b[k * columns + column], sum[row]);
    for (size_t row = 0; row < rows; row++)
      c[column * rows + row] = fmaf(alpha, sum[row], beta * c[column * rows + row]);
  }
  free(sum);
}

static void multiply_on_gpu(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned depth) {
  size_t c_bytes = (size_t)rows * columns * sizeof *c;
  gpu_open(workload_ptx);
  gpu_pointer device_a = gpu_upload(a, (size_t)rows * depth * sizeof *a),
              device_b = gpu_upload(b, (size_t)depth * columns * sizeof *b), device_c = gpu_upload(c, c_bytes);
  gpu_shape shape = {gpu_divide_up(rows, ROWS), gpu_divide_up(columns, COLUMNS), ROWS, 1};
  float alpha_argument = alpha, beta_argument = beta;
  GPU_LAUNCH(gpu_find_kernel("sgemm"), shape, device_a, device_b, device_c, rows, columns, depth, alpha_argument,
             beta_argument);
  gpu_copy_to_host(c, device_c, c_bytes);
  gpu_free(device_a), gpu_free(device_b), gpu_free(device_c);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"rows", 512, 1, 16384}, {"columns", 512, 1, 16384}, {"depth", 256, 1, 16384}};
  workload_arguments(argc, argv, "sgemm", "matrix product by tiles in registers", arguments, 3);
  unsigned rows = (unsigned)arguments[0].value, columns = (unsigned)arguments[1].value,
           depth = (unsigned)arguments[2].value;
  size_t cells = (size_t)rows * columns;
  workload_random random = {15};
  float *a = workload_random_floats(&random, (size_t)rows * depth, -0.5f, 1),
        *b = workload_random_floats(&random, (size_t)depth * columns, -0.5f, 1),
        *c = workload_random_floats(&random, cells, -0.5f, 1), *expected = workload_memory(cells, sizeof *expected);
  memcpy(expected, c, cells * sizeof *c);
  workload_cpu_begins();
  multiply_on_cpu(a, b, expected, rows, columns, depth);
  workload_cpu_ends();
  multiply_on_gpu(a, b, c, rows, columns, depth);

  size_t wrong = workload_floats_differ(c, expected, cells);
  free(a), free(b), free(c), free(expected);
  return workload_verdict_exact("sgemm", cells, wrong);
}
