/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of stream: bandwidth of seven kernels with an element per thread, and of four that go through 155617 elements again and
 * again, against the threads of a block and the blocks that an SM takes at once (as many as its shared memory allows). Each is
 * launched once before it is measured, so that the L2 begins as it ends; the difference to a launch over half of the arrays counts,
 * so that the launch itself does not. */
#include "micro.h"

static const struct {
  const char *kernel, *prints;
  int streams; /* doubles moved per element */
} kinds[] = {{"init", "init", 1},
             {"read", "read", 1},
             {"scale", "scale", 2},
             {"triad", "triad", 4},
             {"points3", "3pt", 2},
             {"points5", "5pt", 2},
             {"sum", "sum", 3},
             {"init_again", "init again", 1},
             {"read_again", "read again", 1},
             {"scale_again", "scale again", 2},
             {"triad_again", "triad again", 4}};

/* So many bytes that an SM takes `blocks` blocks and no more. */
static unsigned spoiler_bytes(int blocks) {
  unsigned bytes = (unsigned)gpu_attribute(GPU_SM_SHARED_BYTES) / (unsigned)blocks / 256 * 256;
  bytes -= (unsigned)gpu_attribute(GPU_RESERVED_BYTES);
  unsigned most = (unsigned)gpu_attribute(GPU_BLOCK_SHARED_BYTES);
  return bytes < most ? bytes : most;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"block", 128, 1, 1024}, {"blocks", 2, 1, 32}, {"MiB", 32, 1, 4096}, {"kinds", 63, 1, 2047}};
  workload_arguments(argc, argv, "stream", "bandwidth by threads of a block and blocks of an SM", arguments, 4);
  uint64_t count = (uint64_t)arguments[2].value * 1024 * 1024 / sizeof(double);
  unsigned block = (unsigned)arguments[0].value;
  int never = 0;
  gpu_open(workload_ptx);
  gpu_pointer arrays[4];
  for (int i = 0; i < 4; i++) arrays[i] = gpu_allocate(count * sizeof(double));
  unsigned shared = spoiler_bytes((int)arguments[1].value);
  gpu_shape all = {gpu_divide_up(count, block), 1, block, 1}, half = {all.grid_x / 2, 1, block, 1};
  void *values[] = {&arrays[0], &arrays[1], &arrays[2], &arrays[3], &count, &never};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!(arguments[3].value >> i & 1)) continue;
    double us, us_half;
    gpu_kernel kernel = gpu_find_kernel(kinds[i].kernel);
    gpu_allow_shared(kernel, shared);
    gpu_launch_shared(kernel, all, shared, values);
    MICRO_TIME(us, gpu_launch_shared(kernel, all, shared, values));
    MICRO_TIME(us_half, gpu_launch_shared(kernel, half, shared, values));
    double bytes = (double)(all.grid_x - half.grid_x) * block * sizeof(double) * kinds[i].streams;
    micro_print(kinds[i].prints, bytes / (us - us_half) / 1000, "GB/s");
  }
  gpu_close();
  return 0;
}
