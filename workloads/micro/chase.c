/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of chase: the latency of a load against the working set. One thread goes through all lines of 128 bytes in a random
 * order, again and again; all loads depend on each other. Two launches first, so that the caches and TLBs hold what they can.
 *
 * With `indices` what is loaded is the index of a word of 4 bytes, from which an instruction makes the address of the next load.
 *
 * Of more than `lines` lines only so many are visited, at random places of the whole: enough that no cache holds them, and the pages
 * are all of the working set's. */
#include "micro.h"

#include <stdlib.h>

enum { LINE = 128, WORDS = 16, THREADS = 256 };

/* The first `used` of a random order of `count` lines, in memory of the caller's. */
static void shuffle(uint32_t *order, size_t count, size_t used) {
  workload_random random = {count};
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = 0; i < used; i++) {
    size_t other = i + workload_random_below(&random, (uint32_t)(count - i));
    uint32_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"KiB", 16, 1, 4 << 20}, {"loads", 500000, 32, 1 << 24}, {"lines", 1 << 20, 16, 1 << 24}, {"indices", 0, 0, 1}};
  workload_arguments(argc, argv, "chase", "latency of dependent loads in a working set of so many KiB", arguments, 4);
  int indices = arguments[3].value > 0;
  size_t count = (size_t)arguments[0].value * 1024 / LINE;
  uint32_t used = (uint32_t)(count < (size_t)arguments[2].value ? count : (size_t)arguments[2].value);
  int64_t loads = (arguments[1].value > used ? arguments[1].value : used) / 32 * 32;
  uint32_t lanes = (uint32_t)(loads / used + 1 < WORDS ? loads / used + 1 : WORDS);

  uint32_t *order = workload_memory(count, sizeof *order);
  shuffle(order, count, used);
  gpu_open(workload_ptx);
  gpu_kernel link_lines = gpu_find_kernel(indices ? "link_indices" : "link_lines");
  gpu_kernel chase = gpu_find_kernel(indices ? "chase_indices" : "chase");
  gpu_pointer lines = gpu_allocate(count * LINE), out = gpu_allocate(sizeof(int64_t));
  gpu_pointer places = gpu_upload(order, used * sizeof *order), start = lines + (size_t)order[0] * LINE;
  gpu_shape one = {1, 1, 1, 1}, all = {gpu_divide_up((uint64_t)used * lanes, THREADS), 1, THREADS, 1};
  GPU_LAUNCH(link_lines, all, lines, places, used, lanes);
  int first = (int)(order[0] * (LINE / sizeof(int)));
  void *addressed[] = {&start, &out, &loads}, *indexed[] = {&lines, &first, &out, &loads};
  void **values = indices ? indexed : addressed;
  for (int i = 0; i < 2; i++) gpu_launch(chase, one, values);
  double us;
  MICRO_TIME(us, gpu_launch(chase, one, values));
  micro_print("latency", micro_cycles(us) / (double)loads, "cycles");
  gpu_close();
  free(order);
  return 0;
}
