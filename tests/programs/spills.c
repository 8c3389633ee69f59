/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels `free` and `held` of a PTX file, one after the other, on the same values: spills FILE.ptx BLOCKS ROUNDS.
 * Prints PASSED if each thread's sum is what the CPU has, else the kernel and the thread. */
#include <stdint.h>

#include "driver_call.h"

enum { THREADS = 1024, VALUES = 40 }; /* those of each thread */

static const char *const kernels[] = {"free", "held"};

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 16);
  if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) exit(4);
  fclose(file);
  return text;
}

static uint32_t value_of(uint64_t word) { return (uint32_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> 32); }

/* A value is three times itself and its neighbour, so many times. */
static uint32_t sum_of(uint32_t thread, uint32_t threads, uint32_t rounds) {
  uint32_t value[VALUES], sum = 0;
  for (uint32_t n = 0; n < VALUES; n++) value[n] = value_of((uint64_t)n * threads + thread);
  for (uint32_t round = 0; round < rounds; round++)
    for (uint32_t n = 0; n < VALUES; n++) value[n] = value[n] * 3 + value[(n + 1) % VALUES];
  for (uint32_t n = 0; n < VALUES; n++) sum += value[n];
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 4) return 4;
  uint32_t blocks = (uint32_t)atoi(argv[2]), rounds = (uint32_t)atoi(argv[3]), threads = blocks * THREADS;
  size_t words = (size_t)threads * VALUES, results = threads * sizeof(uint32_t);
  char *text = read_file(argv[1]);
  void *module = driver_open(text), *kernel;
  uint32_t *values = malloc(words * sizeof *values), *sums = malloc(results);
  uint64_t in, out;
  for (size_t n = 0; n < words; n++) values[n] = value_of(n);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &in, words * sizeof *values);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &out, results);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), in, values, words * sizeof *values);
  for (size_t n = 0; n < sizeof kernels / sizeof *kernels; n++) {
    void *arguments[] = {&out, &in, &rounds};
    CALL(cuMemsetD32_v2, (uint64_t, unsigned, size_t), out, 0, results / 4);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, kernels[n]);
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), sums, out, results);
    for (uint32_t t = 0; t < threads; t++) {
      if (sums[t] == sum_of(t, threads, rounds)) continue;
      printf("%s: thread %u is wrong\n", kernels[n], t);
      return 1;
    }
  }
  puts("PASSED");
  free(sums);
  free(values);
  free(text);
  return 0;
}
