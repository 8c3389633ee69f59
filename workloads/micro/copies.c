/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of copies: bandwidth of a copy from pinned host memory to the device against its size, with the call and the host's wait for
 * it. The mean of some copies after one. */
#include "micro.h"

#include <string.h>

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"KiB", 1024, 1, 1 << 22}, {"copies", 3, 1, 1000}};
  workload_arguments(argc, argv, "copies", "bandwidth of copies of so many KiB to the device", arguments, 2);
  size_t bytes = (size_t)arguments[0].value * 1024;
  uint64_t words = bytes / 4;
  uint32_t expected = 0x2a2a2a2a, wrong = 0;
  double us;
  gpu_open(workload_ptx);
  void *from = gpu_allocate_pinned(bytes);
  gpu_pointer to = gpu_allocate(bytes), counter = gpu_upload(&wrong, sizeof wrong);
  memset(from, 0x2a, bytes);
  gpu_copy_pinned(to, from, bytes);
  MICRO_TIME(
      us, for (long i = 0; i < arguments[1].value; i++) {
        gpu_copy_pinned(to, from, bytes);
        gpu_wait();
      });
  micro_print("bandwidth", (double)bytes * (double)arguments[1].value / us / 1000, "GB/s");
  GPU_LAUNCH(gpu_find_kernel("count_wrong"), ((gpu_shape){64, 1, 256, 1}), to, words, expected, counter);
  gpu_copy_to_host(&wrong, counter, sizeof wrong);
  gpu_free_pinned(from);
  gpu_close();
  return workload_verdict_exact("copies", words, wrong);
}
