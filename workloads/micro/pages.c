/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of pages: the latency of a load that the L2 has, against the number of pages that loads go to. One thread goes through one
 * line of each page, at a random place of it, in a random order, again and again; all loads depend on each other and leave out the L1,
 * which may need no translation where it has a line. Two launches first, so that the L2 and the TLBs hold what they can. */
#include "micro.h"

#include <stdlib.h>

enum { LINE = 128, THREADS = 256 };

/* The place of a line in each page, in a random order of the pages. The caller frees it. */
static uint64_t *places_of(uint32_t pages, uint64_t page_bytes) {
  workload_random random = {pages};
  uint64_t *places = workload_memory(pages, sizeof *places);
  for (uint32_t i = 0; i < pages; i++)
    places[i] = i * page_bytes + workload_random_below(&random, (uint32_t)(page_bytes / LINE)) * (uint64_t)LINE;
  for (uint32_t i = 0; i < pages; i++) {
    uint32_t other = i + workload_random_below(&random, pages - i);
    uint64_t kept = places[i];
    places[i] = places[other];
    places[other] = kept;
  }
  return places;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"pages", 64, 1, 1 << 16}, {"KiB", 2048, 4, 1 << 16}, {"loads", 65536, 32, 1 << 24}};
  workload_arguments(argc, argv, "pages", "latency of dependent loads from so many pages of KiB, a line of each",
                     arguments, 3);
  uint32_t pages = (uint32_t)arguments[0].value;
  uint64_t page_bytes = (uint64_t)arguments[1].value * 1024;
  int64_t loads = (arguments[2].value > pages ? arguments[2].value : pages) / 32 * 32;
  uint64_t *places = places_of(pages, page_bytes);
  double us;
  gpu_open(workload_ptx);
  gpu_kernel chase = gpu_find_kernel("chase");
  gpu_pointer memory = gpu_allocate(pages * page_bytes), out = gpu_allocate(sizeof(uint64_t));
  gpu_pointer device_places = gpu_upload(places, pages * sizeof *places), start = memory + places[0];
  gpu_shape one = {1, 1, 1, 1}, all = {gpu_divide_up(pages, THREADS), 1, THREADS, 1};
  GPU_LAUNCH(gpu_find_kernel("link_places"), all, memory, device_places, pages);
  for (int i = 0; i < 2; i++) GPU_LAUNCH(chase, one, start, out, loads);
  MICRO_TIME(us, GPU_LAUNCH(chase, one, start, out, loads));
  micro_print("latency", micro_cycles(us) / (double)loads, "cycles");
  gpu_close();
  free(places);
  return 0;
}
