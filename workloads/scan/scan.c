/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of scan: random words, sums modulo 2^32, compared exactly. The CPU writes its sums, as the kernel does, to
 * memory that has been touched: first touches are none of its work. */
#include "gpu.h"
#include "workload.h"

#include <stdlib.h>

#define TILE 2048 /* elements of a block, as in scan.cu */

extern const char workload_ptx[];

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"elements", 1 << 20, 1, 1 << 28}};
  workload_arguments(argc, argv, "scan", "inclusive prefix sum in one pass, blocks waiting for each other", arguments,
                     1);
  unsigned count = (unsigned)arguments[0].value, tiles = gpu_divide_up(count, TILE);
  size_t bytes = count * sizeof(unsigned);

  workload_random random = {9};
  unsigned *values = workload_memory(count, sizeof *values), *sums = workload_memory(count, sizeof *sums),
           *expected = workload_memory(count, sizeof *expected);
  for (unsigned i = 0; i < count; i++) {
    values[i] = workload_random_u32(&random);
    expected[i] = 0;
  }

  gpu_open(workload_ptx);
  gpu_pointer from = gpu_upload(values, bytes), to = gpu_allocate(bytes);
  gpu_pointer states = gpu_allocate(tiles * sizeof(uint64_t)), next_tile = gpu_allocate(sizeof(unsigned));
  gpu_set_words(states, 0, (size_t)tiles * 2);
  gpu_set_words(next_tile, 0, 1);
  gpu_shape shape = {tiles, 1, 256, 1};
  GPU_LAUNCH(gpu_find_kernel("scan"), shape, from, to, count, states, next_tile);
  gpu_copy_to_host(sums, to, bytes);
  gpu_free(from), gpu_free(to), gpu_free(states), gpu_free(next_tile);
  gpu_close();

  workload_cpu_begins();
  for (unsigned i = 0, sum = 0; i < count; i++) expected[i] = sum += values[i];
  workload_cpu_ends();
  size_t wrong = 0;
  for (unsigned i = 0; i < count; i++) wrong += sums[i] != expected[i];
  free(values), free(sums), free(expected);
  return workload_verdict_exact("scan", count, wrong);
}
