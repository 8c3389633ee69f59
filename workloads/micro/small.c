/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of small: short kernels in a row on one stream, each of which reads one array and writes the other one; bandwidth against
 * their size and the threads of a block. */
#include "micro.h"

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"doubles", 106831, 1, 1 << 28}, {"block", 256, 1, 1024}, {"launches", 20, 2, 30000}};
  workload_arguments(argc, argv, "small", "bandwidth of small kernels, launched one after the other", arguments, 3);
  int count = (int)arguments[0].value, launches = (int)arguments[2].value;
  unsigned block = (unsigned)arguments[1].value;
  gpu_shape shape = {(unsigned)count / block + 1, 1, block, 1};
  double us;
  gpu_open(workload_ptx);
  gpu_kernel scale = gpu_find_kernel("scale");
  gpu_pointer a = gpu_allocate((size_t)count * 8), b = gpu_allocate((size_t)count * 8);
  for (int i = 0; i < 2; i++) {
    GPU_LAUNCH(scale, shape, a, b, count);
    gpu_swap(&a, &b);
  }
  MICRO_TIME(
      us, for (int i = 0; i < launches; i++) {
        GPU_LAUNCH(scale, shape, a, b, count);
        gpu_swap(&a, &b);
      });
  micro_print("bandwidth", (double)count * 16 * launches / us / 1000, "GB/s");
  gpu_close();
  return 0;
}
