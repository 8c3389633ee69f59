/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of managed: kernels on managed memory.
 *
 *   kind 0   the CPU fills two arrays of floats, a kernel adds one to the other `launches` times, the CPU reads the sum
 *   kind 1   a kernel fills them instead
 *   kind 2   as kind 0, with both prefetched to the GPU
 *   kind 3   a triad of three arrays of doubles that only the GPU touches, again and again
 *
 * What kinds 0 to 2 take is printed, by events around the launch, and is in the kernels' own times: of `fill`, of `add`, which is the
 * first launch, and of `add_again`, the shortest of the later ones. Of kind 3 all launches but the first one are measured, each with the host's wait for it. */
#include "micro.h"

enum { BLOCK = 256, TRIAD_BLOCKS = 640 };

static int add_arrays(long kind, uint64_t count, long launches) {
  gpu_shape shape = {gpu_divide_up(count, BLOCK), 1, BLOCK, 1};
  float *x = gpu_allocate_managed(count * sizeof *x), *y = gpu_allocate_managed(count * sizeof *y);
  size_t wrong = 0;
  double us, us_again = 0;
  if (kind == 1) {
    MICRO_TIME(us, GPU_LAUNCH(gpu_find_kernel("fill"), shape, x, y, count));
    micro_print("fill", us, "us");
  } else {
    for (uint64_t i = 0; i < count; i++) x[i] = 1.0f, y[i] = 2.0f;
  }
  if (kind == 2) gpu_prefetch(x, count * sizeof *x), gpu_prefetch(y, count * sizeof *y);
  MICRO_TIME(us, GPU_LAUNCH(gpu_find_kernel("add"), shape, x, y, count));
  micro_print("add", us, "us");
  for (long i = 1; i < launches; i++) {
    MICRO_TIME(us, GPU_LAUNCH(gpu_find_kernel("add_again"), shape, x, y, count));
    if (i == 1 || us < us_again) us_again = us;
  }
  if (launches > 1) micro_print("add_again", us_again, "us");
  for (uint64_t i = 0; i < count; i++) wrong += y[i] != 2.0f + (float)launches;
  return workload_verdict_exact("managed", count, wrong);
}

static int triad_arrays(uint64_t bytes, long launches) {
  uint64_t count = bytes / 3 / sizeof(double);
  gpu_shape shape = {TRIAD_BLOCKS, 1, BLOCK, 1};
  gpu_kernel triad = gpu_find_kernel("triad");
  void *arrays[3];
  double us;
  for (int i = 0; i < 3; i++) arrays[i] = gpu_allocate_managed(count * sizeof(double));
  GPU_LAUNCH(triad, shape, arrays[0], arrays[1], arrays[2], count);
  MICRO_TIME(
      us, for (long i = 0; i < launches; i++) {
        GPU_LAUNCH(triad, shape, arrays[0], arrays[1], arrays[2], count);
        gpu_wait();
      });
  micro_print("bandwidth", (double)bytes * (double)launches / us / 1000, "GB/s");
  return 0;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"kind", 0, 0, 3}, {"KiB", 8192, 1, 1 << 26}, {"launches", 1, 1, 1000}};
  workload_arguments(argc, argv, "managed", "kernels on so many KiB of managed memory in all", arguments, 3);
  uint64_t bytes = (uint64_t)arguments[1].value * 1024;
  long kind = arguments[0].value, launches = arguments[2].value;
  gpu_open(workload_ptx);
  int status = kind < 3 ? add_arrays(kind, bytes / 8, launches) : triad_arrays(bytes, launches);
  gpu_close();
  return status;
}
