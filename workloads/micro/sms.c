/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of sms: bandwidth of the L2, or of DRAM beyond it, against the number of SMs that take part: one block each, as its shared
 * memory leaves no room for a second one. Kind 0 reads, 1 writes, 2 copies to an array of the same size; bytes read and bytes written are
 * both counted. The difference of launches of one round through all tiles and of more counts, behind one of one round that leaves the L2
 * as both will find it; of several such differences the median. */
#include "micro.h"

enum { THREADS = 1024, TILE_KIB = 64, MOST_REPEATS = 64 };

int main(int argc, char **argv) {
  static const char *const names[] = {"read", "write", "copy"};
  workload_argument arguments[] = {{"kind", 0, 0, 2},
                                   {"blocks", 1, 1, 1024},
                                   {"KiB", 8448, TILE_KIB, 1 << 23},
                                   {"rounds", 4, 1, 1 << 20},
                                   {"repeats", 1, 1, MOST_REPEATS}};
  workload_arguments(argc, argv, "sms", "bandwidth of so many SMs going through KiB again and again", arguments, 5);
  int kind = (int)arguments[0].value, tiles = (int)(arguments[2].value / TILE_KIB), repeats = (int)arguments[4].value;
  int first = 1, more = first + (int)arguments[3].value;
  uint64_t bytes = (uint64_t)tiles * TILE_KIB * 1024, words = bytes / 4 * 2;
  double us[MOST_REPEATS];
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel(names[kind]);
  gpu_pointer from = gpu_allocate(words * 4), to = from + bytes;
  unsigned shared = (unsigned)gpu_attribute(GPU_SM_SHARED_BYTES) / 2;
  gpu_shape shape = {(unsigned)arguments[1].value, 1, THREADS, 1};
  gpu_allow_shared(kernel, shared);
  void *once[] = {&from, &to, &tiles, &first}, *often[] = {&from, &to, &tiles, &more};
  GPU_LAUNCH(gpu_find_kernel("fill"), ((gpu_shape){1024, 1, 256, 1}), from, words);
  gpu_launch_shared(kernel, shape, shared, once);
  for (int i = 0; i < repeats; i++) {
    double us_once;
    MICRO_TIME(us_once, gpu_launch_shared(kernel, shape, shared, once));
    MICRO_TIME(us[i], gpu_launch_shared(kernel, shape, shared, often));
    us[i] -= us_once;
  }
  double moved = (double)bytes * (more - first) * (kind == 2 ? 2 : 1);
  micro_print("bandwidth", moved / micro_median(us, repeats) / 1000, "GB/s");
  gpu_close();
  return 0;
}
