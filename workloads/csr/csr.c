/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of csr: values and the vector are small whole numbers, whose sums are exact in any order. The whole matrix
 * has its place on the GPU; only the entries of the rows that are wanted are copied, row by row, as a step of an
 * iteration does that works on an active set. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

extern const char workload_ptx[];

typedef struct matrix {
  unsigned rows, columns, wanted_count;
  uint64_t entries;
  uint64_t *first;  /* rows + 1 */
  unsigned *column; /* of rows that nobody wants zero, as their values */
  float *value, *x;
  unsigned *wanted;
} matrix;

/* Rows of half to one and a half times `mean` entries. */
static matrix make_matrix(unsigned rows, unsigned mean, unsigned wanted, unsigned columns) {
  matrix m = {.rows = rows, .columns = columns, .wanted_count = wanted};
  workload_random random = {59};
  m.first = workload_memory(rows + (size_t)1, sizeof *m.first);
  for (unsigned i = 0; i < rows; i++)
    m.first[i + 1] = m.first[i] + mean - mean / 2 + workload_random_below(&random, mean + 1);
  m.entries = m.first[rows];
  m.column = workload_memory(m.entries, sizeof *m.column);
  m.value = workload_memory(m.entries, sizeof *m.value);
  m.x = workload_memory(columns, sizeof *m.x);
  m.wanted = workload_memory(wanted, sizeof *m.wanted);
  for (unsigned i = 0; i < columns; i++) m.x[i] = (float)workload_random_below(&random, 16);
  for (unsigned w = 0; w < wanted; w++) {
    m.wanted[w] = workload_random_below(&random, rows);
    for (uint64_t i = m.first[m.wanted[w]]; i < m.first[m.wanted[w] + 1]; i++) {
      m.column[i] = workload_random_below(&random, columns);
      m.value[i] = (float)workload_random_below(&random, 16);
    }
  }
  return m;
}

static void free_matrix(matrix *m) {
  free(m->first), free(m->column), free(m->value), free(m->x), free(m->wanted);
}

static void multiply_on_cpu(const matrix *m, float *y) {
  for (unsigned w = 0; w < m->wanted_count; w++)
    for (uint64_t i = m->first[m->wanted[w]]; i < m->first[m->wanted[w] + 1]; i++)
      y[w] += m->value[i] * m->x[m->column[i]];
}

static void multiply_on_gpu(const matrix *m, float *y) {
  gpu_open(workload_ptx);
  gpu_pointer first = gpu_upload(m->first, (m->rows + (size_t)1) * sizeof *m->first);
  gpu_pointer column = gpu_allocate(m->entries * sizeof *m->column), value = gpu_allocate(m->entries * sizeof *m->value);
  gpu_pointer x = gpu_upload(m->x, m->columns * sizeof *m->x);
  gpu_pointer wanted = gpu_upload(m->wanted, m->wanted_count * sizeof *m->wanted),
              out = gpu_allocate(m->wanted_count * sizeof *y);
  for (unsigned w = 0; w < m->wanted_count; w++) {
    uint64_t from = m->first[m->wanted[w]], count = m->first[m->wanted[w] + 1] - from;
    gpu_copy_to_device(column + from * sizeof *m->column, m->column + from, count * sizeof *m->column);
    gpu_copy_to_device(value + from * sizeof *m->value, m->value + from, count * sizeof *m->value);
  }
  gpu_shape shape = {m->wanted_count, 1, 128, 1};
  GPU_LAUNCH(gpu_find_kernel("csr"), shape, first, column, value, x, wanted, out);
  gpu_copy_to_host(y, out, m->wanted_count * sizeof *y);
  gpu_free(first), gpu_free(column), gpu_free(value), gpu_free(x), gpu_free(wanted), gpu_free(out);
  gpu_close();
}

int main(int argc, char **argv) {
  /* at most 3/2 * 16384 products of at most 225: exact in a float */
  workload_argument arguments[] = {
      {"rows", 1024, 1, 1 << 16}, {"mean", 7168, 1, 16384}, {"wanted", 40, 1, 1 << 16}, {"columns", 16384, 1, 1 << 24}};
  workload_arguments(argc, argv, "csr", "some rows of a sparse matrix with long rows, times a vector", arguments, 4);
  matrix m = make_matrix((unsigned)arguments[0].value, (unsigned)arguments[1].value, (unsigned)arguments[2].value,
                         (unsigned)arguments[3].value);
  float *expected = workload_memory(m.wanted_count, sizeof *expected),
        *got = workload_memory(m.wanted_count, sizeof *got);
  workload_cpu_begins();
  multiply_on_cpu(&m, expected);
  workload_cpu_ends();
  multiply_on_gpu(&m, got);
  size_t wrong = workload_floats_differ(got, expected, m.wanted_count);
  int status = workload_verdict_exact("csr", m.wanted_count, wrong);
  free_matrix(&m);
  free(expected), free(got);
  return status;
}
