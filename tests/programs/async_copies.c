/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of async_copies.ptx, on the same rows: async_copies FILE.ptx BLOCKS ROUNDS. Prints PASSED if each
 * thread's sum is what the CPU has, else the kernel and the thread. */
#include "kernel_sums.h"

enum { THREADS = 128, ROW = 512 }; /* words of a row: four for each thread */

static uint32_t sum_of(const kernel_sums *s, uint32_t thread) {
  const uint32_t block = thread / THREADS;
  uint32_t sum = 0;
  for (uint32_t round = 0; round < s->rounds; round++)
    for (uint32_t n = 0; n < 4; n++)
      sum += value_of(((uint64_t)block * s->rounds + round) * ROW + (thread % THREADS + 33) % THREADS * 4 + n);
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 4) return 4;
  const uint32_t blocks = (uint32_t)atoi(argv[2]), rounds = (uint32_t)atoi(argv[3]);
  return kernel_sums_run(
      &(kernel_sums){.kernels = (const char *const[]){"loads", "groups", "ahead", "arrivals", "bulk", NULL},
                     .blocks = blocks,
                     .threads = THREADS,
                     .rounds = rounds,
                     .words = (size_t)blocks * rounds * ROW,
                     .right = sum_of},
      argv[1]);
}
