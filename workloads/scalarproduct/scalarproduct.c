/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of scalarproduct. The CPU keeps the same partial sums and adds them in the same order: compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>

#define SUMS 1024
#define BLOCKS 128

extern const char workload_ptx[];

static float product_on_cpu(const float *a, const float *b, size_t elements) {
  float sums[SUMS] = {0};
  for (size_t i = 0; i < elements; i++) sums[i % SUMS] = fmaf(a[i], b[i], sums[i % SUMS]);
  for (size_t half = SUMS / 2; half > 0; half /= 2)
    for (size_t at = 0; at < half; at++) sums[at] += sums[half + at];
  return sums[0];
}

static void products_on_gpu(const float *a, const float *b, float *products, unsigned pairs, unsigned elements, long iterations) {
  size_t bytes = (size_t)pairs * elements * sizeof *a;
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("scalarproduct");
  gpu_pointer device_a = gpu_upload(a, bytes), device_b = gpu_upload(b, bytes), device_products = gpu_allocate(pairs * sizeof *products);
  gpu_shape shape = {pairs < BLOCKS ? pairs : BLOCKS, 1, 256, 1};
  for (long i = 0; i < iterations; i++) GPU_LAUNCH(kernel, shape, device_a, device_b, device_products, pairs, elements);
  gpu_copy_to_host(products, device_products, pairs * sizeof *products);
  gpu_free(device_a), gpu_free(device_b), gpu_free(device_products);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"pairs", 256, 1, 1 << 20}, {"elements", 4096, 1, 1 << 24}, {"iterations", 1, 1, 1000000}};
  workload_arguments(argc, argv, "scalarproduct", "scalar products of many pairs of vectors", arguments, 3);
  unsigned pairs = (unsigned)arguments[0].value, elements = (unsigned)arguments[1].value;

  workload_random random = {31};
  float *a = workload_random_floats(&random, (size_t)pairs * elements, -1, 2), *b = workload_random_floats(&random, (size_t)pairs * elements, -1, 2),
        *got = workload_memory(pairs, sizeof *got), *expected = workload_memory(pairs, sizeof *expected);
  products_on_gpu(a, b, got, pairs, elements, arguments[2].value);
  workload_cpu_begins();
  for (size_t pair = 0; pair < pairs; pair++) expected[pair] = product_on_cpu(a + pair * elements, b + pair * elements, elements);
  workload_cpu_ends();

  size_t wrong = workload_floats_differ(got, expected, pairs);
  free(a), free(b), free(got), free(expected);
  return workload_verdict_exact("scalarproduct", pairs, wrong);
}
