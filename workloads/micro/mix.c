/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of mix: bandwidth of DRAM with some streams read and some written, each much larger than the L2: bytes that threads read
 * and write, per time. With `blocks` 0 an element per thread, else so many blocks of 256 threads per SM, which go through the streams
 * together. `place` 1 writes to where it reads. The difference of launches over all and over half of the streams counts, behind one
 * over all that leaves the L2 as it will be found; of several such differences the median. */
#include "micro.h"

enum { THREADS = 256, MOST_REPEATS = 64 };

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"reads", 1, 0, 4},     {"writes", 1, 0, 4}, {"bytes", 8, 4, 16},
                                   {"blocks", 0, 0, 8},    {"MiB", 128, 1, 8192}, {"place", 0, 0, 1},
                                   {"repeats", 1, 1, MOST_REPEATS}};
  workload_arguments(argc, argv, "mix", "bandwidth of streams of MiB, read and written by elements of 4, 8 or 16 bytes",
                     arguments, 7);
  int reads = (int)arguments[0].value, writes = (int)arguments[1].value, bytes = (int)arguments[2].value;
  int repeats = (int)arguments[6].value, place = (int)arguments[5].value;
  uint64_t stream = (uint64_t)arguments[4].value << 20, pitch = stream / (uint64_t)bytes, half = pitch / 2;
  int streams = place ? (reads > writes ? reads : writes) : reads + writes;
  uint64_t words = stream * (uint64_t)(streams + !writes) / 4; /* what only seems to be written is there, too */
  char name[32];
  double us[MOST_REPEATS];
  snprintf(name, sizeof name, "mix_%d_%d_%d", reads, writes, bytes);
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel(name);
  gpu_pointer from = gpu_allocate(words * 4), to = place ? from : from + (uint64_t)reads * stream;
  unsigned held = (unsigned)(gpu_attribute(GPU_SMS) * arguments[3].value);
  gpu_shape all = {held ? held : gpu_divide_up(pitch, THREADS), 1, THREADS, 1};
  gpu_shape some = {held ? held : gpu_divide_up(half, THREADS), 1, THREADS, 1};
  GPU_LAUNCH(gpu_find_kernel("fill"), ((gpu_shape){1024, 1, THREADS, 1}), from, words);
  GPU_LAUNCH(kernel, all, from, to, pitch, pitch);
  for (int i = 0; i < repeats; i++) {
    double us_half;
    MICRO_TIME(us[i], GPU_LAUNCH(kernel, all, from, to, pitch, pitch));
    MICRO_TIME(us_half, GPU_LAUNCH(kernel, some, from, to, pitch, half));
    us[i] -= us_half;
  }
  double moved = (double)(pitch - half) * bytes * (reads + writes);
  micro_print("bandwidth", moved / micro_median(us, repeats) / 1000, "GB/s");
  gpu_close();
  return 0;
}
