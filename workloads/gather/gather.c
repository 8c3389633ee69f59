/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of gather: values are small whole numbers, whose sums are exact in any order. Only the rows that are read
 * are copied, a bag's at once, to where they lie in the table. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

extern const char workload_ptx[];

typedef struct table {
  uint64_t rows, width; /* of floats */
  unsigned bags, count; /* rows of a bag */
  float *values;        /* what no bag reads stays zero */
  unsigned *read;       /* bags * count rows */
} table;

static table make_table(const workload_argument *arguments) {
  table t = {.rows = (uint64_t)arguments[0].value,
             .width = (uint64_t)arguments[1].value,
             .bags = (unsigned)arguments[2].value,
             .count = (unsigned)arguments[3].value};
  workload_random random = {53};
  if (t.count > t.rows) t.count = (unsigned)t.rows;
  t.values = workload_memory(t.rows * t.width, sizeof *t.values);
  t.read = workload_memory((size_t)t.bags * t.count, sizeof *t.read);
  for (unsigned bag = 0; bag < t.bags; bag++) {
    unsigned first = workload_random_below(&random, (uint32_t)(t.rows - t.count + 1));
    for (unsigned i = 0; i < t.count; i++) t.read[(size_t)bag * t.count + i] = first + i;
    for (uint64_t i = 0; i < t.count * t.width; i++)
      t.values[first * t.width + i] = (float)workload_random_below(&random, 64);
  }
  return t;
}

static void sum_on_cpu(const table *t, float *sums) {
  for (unsigned bag = 0; bag < t->bags; bag++)
    for (unsigned i = 0; i < t->count; i++)
      for (uint64_t x = 0; x < t->width; x++)
        sums[bag * t->width + x] += t->values[t->read[(size_t)bag * t->count + i] * t->width + x];
}

static void sum_on_gpu(const table *t, float *sums) {
  unsigned width = (unsigned)t->width, count = t->count;
  size_t row = t->width * sizeof(float);
  gpu_open(workload_ptx);
  gpu_pointer values = gpu_allocate(t->rows * row);
  gpu_pointer read = gpu_upload(t->read, (size_t)t->bags * count * sizeof *t->read),
              out = gpu_allocate(t->bags * row);
  for (unsigned bag = 0; bag < t->bags; bag++) {
    uint64_t first = t->read[(size_t)bag * count];
    gpu_copy_to_device(values + first * row, t->values + first * t->width, count * row);
  }
  gpu_shape shape = {t->bags, 1, 128, 1};
  GPU_LAUNCH(gpu_find_kernel("gather"), shape, values, read, out, width, count);
  gpu_copy_to_host(sums, out, t->bags * row);
  gpu_free(values), gpu_free(read), gpu_free(out);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"rows", 65536, 1, 1 << 24}, {"width", 256, 1, 1 << 16}, {"bags", 128, 1, 1 << 20}, {"count", 16, 1, 4096}};
  workload_arguments(argc, argv, "gather", "sums rows of a large table, of which few are read", arguments, 4);
  table t = make_table(arguments);
  size_t results = (size_t)t.bags * t.width;
  float *expected = workload_memory(results, sizeof *expected), *got = workload_memory(results, sizeof *got);
  workload_cpu_begins();
  sum_on_cpu(&t, expected);
  workload_cpu_ends();
  sum_on_gpu(&t, got);
  size_t wrong = workload_floats_differ(got, expected, results);
  int status = workload_verdict_exact("gather", results, wrong);
  free(t.values), free(t.read), free(expected), free(got);
  return status;
}
