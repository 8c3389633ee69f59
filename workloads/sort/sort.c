/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of sort: 2^n random words, compared with the C library's sort. Each iteration sorts the same words. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

#define THREADS 512
#define TILE (2 * THREADS)

extern const char workload_ptx[];

static int compare_words(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

typedef struct kernels {
  gpu_kernel tile, step;
} kernels;

static void launch_sort(const kernels *k, gpu_pointer data, unsigned count) {
  gpu_shape tiles = {gpu_divide_up(count, TILE), 1, THREADS, 1};
  unsigned shortest = 2, longest = count < TILE ? count : TILE;
  GPU_LAUNCH(k->tile, tiles, data, count, shortest, longest);
  for (unsigned length = 2 * TILE; length <= count; length *= 2) {
    for (unsigned distance = length / 2; distance >= TILE; distance /= 2)
      GPU_LAUNCH(k->step, tiles, data, length, distance);
    GPU_LAUNCH(k->tile, tiles, data, count, length, length);
  }
}

static void sort_on_gpu(uint32_t *words, unsigned count, long iterations) {
  gpu_open(workload_ptx);
  kernels k = {gpu_find_kernel("sort_tile"), gpu_find_kernel("sort_step")};
  gpu_pointer data = gpu_upload(words, count * sizeof *words);
  for (long i = 0; i < iterations; i++) {
    if (i) gpu_copy_to_device(data, words, count * sizeof *words);
    launch_sort(&k, data, count);
  }
  gpu_copy_to_host(words, data, count * sizeof *words);
  gpu_free(data);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"log2-elements", 16, 1, 27}, {"iterations", 1, 1, 1000000}};
  workload_arguments(argc, argv, "sort", "bitonic sort of 2^n words", arguments, 2);
  unsigned count = 1u << arguments[0].value;

  workload_random random = {11};
  uint32_t *words = workload_memory(count, sizeof *words), *expected = workload_memory(count, sizeof *expected);
  for (unsigned i = 0; i < count; i++) words[i] = expected[i] = workload_random_u32(&random);
  qsort(expected, count, sizeof *expected, compare_words);
  sort_on_gpu(words, count, arguments[1].value);

  size_t wrong = 0;
  for (unsigned i = 0; i < count; i++) wrong += words[i] != expected[i];
  free(words), free(expected);
  return workload_verdict_exact("sort", count, wrong);
}
