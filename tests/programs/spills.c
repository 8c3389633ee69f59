/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels `free` and `held` of a PTX file: spills FILE.ptx BLOCKS ROUNDS. Prints PASSED if each thread's sum is
 * what the CPU has, else the kernel and the thread. */
#include "kernel_sums.h"

enum { THREADS = 1024, VALUES = 40 }; /* those of each thread */

/* A value is three times itself and its neighbour, so many times. */
static uint32_t sum_of(const kernel_sums *s, uint32_t thread) {
  uint32_t value[VALUES], sum = 0;
  for (uint32_t n = 0; n < VALUES; n++) value[n] = value_of((uint64_t)n * s->blocks * THREADS + thread);
  for (uint32_t round = 0; round < s->rounds; round++)
    for (uint32_t n = 0; n < VALUES; n++) value[n] = value[n] * 3 + value[(n + 1) % VALUES];
  for (uint32_t n = 0; n < VALUES; n++) sum += value[n];
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 4) return 4;
  const uint32_t blocks = (uint32_t)atoi(argv[2]), rounds = (uint32_t)atoi(argv[3]);
  return kernel_sums_run(&(kernel_sums){.kernels = (const char *const[]){"free", "held", NULL},
                                        .blocks = blocks,
                                        .threads = THREADS,
                                        .rounds = rounds,
                                        .words = (size_t)blocks * THREADS * VALUES,
                                        .right = sum_of},
                         argv[1]);
}
