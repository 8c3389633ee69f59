/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of l2cache: bandwidth of the L2, and of DRAM beyond it, against the working set. The set is read once before, or so much of
 * it that no cache holds it. The bandwidth is that of the difference of two launches, of one and of `waves` times the blocks that the
 * SMs hold, so that neither the launch nor its end counts. Of as many blocks as it takes on silicon no two keep step; here those that
 * begin together would, and would find in the L2 what their neighbours fetched: the first blocks of a launch read unequal parts. */
#include "micro.h"

enum { THREADS = 1024, BLOCK_BYTES = 512 * 1024, WARM_BLOCKS = 512 };

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"KiB", 6144, 1536, 1 << 23}, {"waves", 3, 2, 1 << 16}};
  workload_arguments(argc, argv, "l2cache", "bandwidth of the L2 in a working set of so many KiB", arguments, 2);
  int none = 0, run = (int)(arguments[0].value * 1024 / BLOCK_BYTES);
  gpu_open(workload_ptx);
  unsigned held = (unsigned)(gpu_attribute(GPU_SMS) * (gpu_attribute(GPU_SM_THREADS) / THREADS));
  unsigned more = held * (unsigned)arguments[1].value;
  int staggered = (int)held;
  gpu_kernel sum = gpu_find_kernel("sum");
  gpu_pointer from = gpu_allocate((size_t)run * BLOCK_BYTES), out = gpu_allocate(THREADS * sizeof(double));
  gpu_shape warm = {(unsigned)(run < WARM_BLOCKS ? run : WARM_BLOCKS), 1, THREADS, 1};
  gpu_shape one = {held, 1, THREADS, 1}, all = {more, 1, THREADS, 1};
  double us_one, us_all;
  GPU_LAUNCH(sum, warm, out, from, run, none);
  MICRO_TIME(us_one, GPU_LAUNCH(sum, one, out, from, run, staggered));
  MICRO_TIME(us_all, GPU_LAUNCH(sum, all, out, from, run, staggered));
  micro_print("bandwidth", (double)(more - held) * BLOCK_BYTES / (us_all - us_one) / 1000, "GB/s");
  gpu_close();
  return 0;
}
