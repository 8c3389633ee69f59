/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of spmv: rows of very different lengths. The CPU sums in double precision; the error is measured against
 * the sum of the absolute products, which bounds what rounding in single precision can do. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>

extern const char workload_ptx[];

typedef struct matrix {
  unsigned rows, entries;
  unsigned *first, *column;
  float *value;
} matrix;

/* One row in 16 has 8 x mean entries, the others 0 to mean - 1. */
static matrix random_matrix(unsigned rows, unsigned mean, workload_random *random) {
  matrix m = {.rows = rows, .first = workload_memory(rows + (size_t)1, sizeof(unsigned))};
  for (unsigned i = 0; i < rows; i++)
    m.first[i + 1] = m.first[i] + (workload_random_below(random, 16) ? workload_random_below(random, mean) : 8 * mean);
  m.entries = m.first[rows];
  m.column = workload_memory(m.entries, sizeof *m.column);
  m.value = workload_memory(m.entries, sizeof *m.value);
  for (unsigned i = 0; i < m.entries; i++) {
    m.column[i] = workload_random_below(random, rows);
    m.value[i] = workload_random_float(random) - 0.5f;
  }
  return m;
}

static double row_error(const matrix *m, const float *x, float got, unsigned row) {
  double sum = 0, size = 0x1p-126;
  for (unsigned i = m->first[row]; i < m->first[row + 1]; i++) {
    double product = (double)m->value[i] * x[m->column[i]];
    sum += product;
    size += fabs(product);
  }
  return workload_error(got, sum, size);
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"rows", 16384, 1, 1 << 24}, {"mean-entries", 16, 1, 64}, {"products", 1, 1, 1000}};
  workload_arguments(argc, argv, "spmv", "sparse matrix times vector, a warp per row", arguments, 3);
  workload_random random = {10};
  matrix m = random_matrix((unsigned)arguments[0].value, (unsigned)arguments[1].value, &random);
  float *x = workload_memory(m.rows, sizeof *x), *y = workload_memory(m.rows, sizeof *y);
  for (unsigned i = 0; i < m.rows; i++) x[i] = workload_random_float(&random);

  gpu_open(workload_ptx);
  size_t row_bytes = m.rows * sizeof(float), entry_bytes = m.entries * sizeof(float) + sizeof(float);
  gpu_pointer first = gpu_upload(m.first, row_bytes + sizeof(unsigned)), column = gpu_allocate(entry_bytes),
              value = gpu_allocate(entry_bytes);
  gpu_pointer device_x = gpu_upload(x, row_bytes), device_y = gpu_allocate(row_bytes);
  if (m.entries) gpu_copy_to_device(column, m.column, m.entries * sizeof *m.column);
  if (m.entries) gpu_copy_to_device(value, m.value, m.entries * sizeof *m.value);
  gpu_shape shape = {gpu_divide_up(m.rows, 8), 1, 256, 1};
  gpu_kernel kernel = gpu_find_kernel("spmv");
  for (long i = 0; i < arguments[2].value; i++)
    GPU_LAUNCH(kernel, shape, first, column, value, device_x, device_y, m.rows);
  gpu_copy_to_host(y, device_y, row_bytes);
  gpu_free(first), gpu_free(column), gpu_free(value), gpu_free(device_x), gpu_free(device_y);
  gpu_close();

  double worst = 0;
  for (unsigned row = 0; row < m.rows; row++) worst = fmax(worst, row_error(&m, x, y[row], row));
  free(m.first), free(m.column), free(m.value), free(x), free(y);
  return workload_verdict_error("spmv", m.rows, worst, 32 * 0x1p-24);
}
