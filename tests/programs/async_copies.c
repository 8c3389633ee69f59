/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of async_copies.ptx, one after the other, on the same rows: async_copies FILE.ptx BLOCKS ROUNDS. Prints
 * PASSED if each thread's sum is what the CPU has, else the kernel and the thread. */
#include <stdint.h>

#include "driver_call.h"

enum { THREADS = 128, ROW = 512 }; /* words of a row: four for each thread */

static const char *const kernels[] = {"loads", "groups", "ahead", "arrivals", "bulk"};

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 16);
  if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) exit(4);
  fclose(file);
  return text;
}

static uint32_t value_of(uint64_t word) { return (uint32_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> 32); }

static uint32_t sum_of(uint32_t block, uint32_t thread, uint32_t rounds) {
  uint32_t sum = 0;
  for (uint32_t round = 0; round < rounds; round++)
    for (uint32_t n = 0; n < 4; n++)
      sum += value_of(((uint64_t)block * rounds + round) * ROW + (thread + 33) % THREADS * 4 + n);
  return sum;
}

static int wrong(const char *kernel, const uint32_t *sums, uint32_t blocks, uint32_t rounds) {
  for (uint32_t block = 0; block < blocks; block++)
    for (uint32_t thread = 0; thread < THREADS; thread++) {
      if (sums[block * THREADS + thread] == sum_of(block, thread, rounds)) continue;
      printf("%s: thread %u of block %u is wrong\n", kernel, thread, block);
      return 1;
    }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4) return 4;
  uint32_t blocks = (uint32_t)atoi(argv[2]), rounds = (uint32_t)atoi(argv[3]);
  size_t words = (size_t)blocks * rounds * ROW, results = (size_t)blocks * THREADS * sizeof(uint32_t);
  char *text = read_file(argv[1]);
  void *module = driver_open(text), *kernel;
  uint32_t *rows = malloc(words * sizeof *rows), *sums = malloc(results);
  uint64_t in, out;
  for (size_t n = 0; n < words; n++) rows[n] = value_of(n);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &in, words * sizeof *rows);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &out, results);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), in, rows, words * sizeof *rows);
  for (size_t n = 0; n < sizeof kernels / sizeof *kernels; n++) {
    void *arguments[] = {&out, &in, &rounds};
    CALL(cuMemsetD32_v2, (uint64_t, unsigned, size_t), out, 0, results / 4);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, kernels[n]);
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), sums, out, results);
    if (wrong(kernels[n], sums, blocks, rounds)) return 1;
  }
  puts("PASSED");
  free(sums);
  free(rows);
  free(text);
  return 0;
}
