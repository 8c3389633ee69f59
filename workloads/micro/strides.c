/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of strides: cycles of one SM per load of a warp from the L1, against the stride between lanes (kind 0: float, 1: double) or
 * the width of a block of threads (kind 2: float, 3: double; in rows of 4098 elements). The difference of two launches counts, behind
 * one that leaves the L2 and the TLBs as both will find them. */
#include "micro.h"

enum { THREADS = 1024, WARPS = THREADS / 32, PITCH = 4098, LOADS = 8 };

int main(int argc, char **argv) {
  static const char *const names[] = {"stride_float", "stride_double", "block_float", "block_double"};
  workload_argument arguments[] = {{"kind", 0, 0, 3}, {"stride", 1, 0, 1024}, {"rounds", 64, 1, 1 << 20}};
  workload_arguments(argc, argv, "strides", "cycles per warp load from the L1", arguments, 3);
  int kind = (int)arguments[0].value, number = (int)arguments[1].value, zero = 0;
  int first = 4, more = first + (int)arguments[2].value, step = kind < 2 ? number : PITCH;
  unsigned width = kind < 2 ? THREADS : (unsigned)(number ? number : 1);
  gpu_shape shape = {1, 1, width, THREADS / width};
  double us_first, us_more;
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel(names[kind]);
  size_t bytes = (size_t)8 * (PITCH * 34 + 64 * 1024 + 64);
  gpu_pointer from = gpu_allocate(bytes), out = gpu_allocate(8 * THREADS);
  GPU_LAUNCH(kernel, shape, from, out, first, zero, step);
  MICRO_TIME(us_first, GPU_LAUNCH(kernel, shape, from, out, first, zero, step));
  MICRO_TIME(us_more, GPU_LAUNCH(kernel, shape, from, out, more, zero, step));
  micro_print("load", micro_cycles(us_more - us_first) / ((double)(more - first) * LOADS * WARPS), "cycles");
  gpu_close();
  return 0;
}
