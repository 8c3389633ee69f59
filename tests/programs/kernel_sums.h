/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a PTX file, one after the other, on the same words: (out, in, rounds), where each thread leaves a sum. */
#ifndef FF_TESTS_KERNEL_SUMS_H
#define FF_TESTS_KERNEL_SUMS_H

#include <stdint.h>

#include "driver_call.h"

static inline uint32_t value_of(uint64_t word) { return (uint32_t)(word * UINT64_C(0x9E3779B97F4A7C15) >> 32); }

typedef struct kernel_sums {
  const char *const *kernels; /* their names; NULL behind the last */
  uint32_t blocks, threads, rounds;
  size_t words;                                                    /* word n is value_of(n) */
  uint32_t (*right)(const struct kernel_sums *s, uint32_t thread); /* of the thread of that number in the grid */
} kernel_sums;

/* 0: each sum is right, which is said; else the kernel and the thread are. */
static inline int kernel_sums_run(const kernel_sums *s, const char *file) {
  const uint32_t threads = s->blocks * s->threads;
  const size_t results = threads * sizeof(uint32_t);
  char *text = driver_text(file);
  void *module = driver_open(text), *kernel;
  uint32_t *values = malloc(s->words * sizeof *values), *sums = malloc(results);
  uint64_t in, out;
  for (size_t n = 0; n < s->words; n++) values[n] = value_of(n);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &in, s->words * sizeof *values);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &out, results);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), in, values, s->words * sizeof *values);
  for (const char *const *name = s->kernels; *name; name++) {
    void *arguments[] = {&out, &in, (void *)&s->rounds};
    CALL(cuMemsetD32_v2, (uint64_t, unsigned, size_t), out, 0, results / 4);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, *name);
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         kernel, s->blocks, 1, 1, s->threads, 1, 1, 0, NULL, arguments, NULL);
    CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), sums, out, results);
    for (uint32_t t = 0; t < threads; t++) {
      if (sums[t] == s->right(s, t)) continue;
      printf("%s: thread %u of block %u is wrong\n", *name, t % s->threads, t / s->threads);
      return 1;
    }
  }
  puts("PASSED");
  free(sums);
  free(values);
  free(text);
  return 0;
}

#endif
