/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of cache: bandwidth of all SMs, each reading the same working set with one block of 512 threads. What a round takes is the
 * difference of two launches, of few rounds and of more, so that neither the launch nor the first round counts; one before them leaves
 * the L2 as both will find it. */
#include "micro.h"

enum { THREADS = 512, STEP = 32 * THREADS };

static gpu_kernel kernel_of(long count) {
  char name[32];
  snprintf(name, sizeof name, "sum_%ld", count / THREADS);
  return gpu_find_kernel(count <= STEP ? name : "sum_any");
}

/* The kernel's loop twice, so that what the first time around waits for is not in the difference; of large sets, of
 * which even one round is long, one. */
static int first_rounds(long count) { return count > STEP ? 1 : (int)(2 * STEP / count); }

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"KiB", 64, 8, 1 << 20}, {"rounds", 8, 1, 1 << 20}, {"first", 0, 0, 1 << 20}};
  workload_arguments(argc, argv, "cache", "bandwidth of all SMs reading the same KiB (8, 16, 32, 64, 96, or 128 each)",
                     arguments, 3);
  long count = arguments[0].value * 1024 / 8; /* of one of the two streams */
  if (count > STEP) count = count / STEP * STEP;
  int first = arguments[2].value ? (int)arguments[2].value : first_rounds(count), zero = 0, words = (int)count;
  int more = first + (int)arguments[1].value;
  uint64_t all = 2 * (uint64_t)count;
  double us_first, us_more;
  gpu_open(workload_ptx);
  unsigned sms = (unsigned)gpu_attribute(GPU_SMS);
  gpu_shape shape = {sms, 1, THREADS, 1};
  gpu_kernel kernel = kernel_of(count);
  gpu_pointer from = gpu_allocate(all * sizeof(float)), out = gpu_allocate(THREADS * sizeof(float));
  GPU_LAUNCH(gpu_find_kernel("fill"), ((gpu_shape){52, 1, 256, 1}), from, all);
  GPU_LAUNCH(kernel, shape, out, from, first, zero, words);
  MICRO_TIME(us_first, GPU_LAUNCH(kernel, shape, out, from, first, zero, words));
  MICRO_TIME(us_more, GPU_LAUNCH(kernel, shape, out, from, more, zero, words));
  micro_print("bandwidth", (double)all * sizeof(float) * sms * (more - first) / (us_more - us_first) / 1000, "GB/s");
  gpu_close();
  return 0;
}
