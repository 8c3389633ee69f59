/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of window: a kernel that goes through an array of so many MiB again and again, and once through a stream, without an access
 * policy window and with one over the array, whose share persists in the part of the L2 that is set aside. With `most` the window is of
 * the first MiB of the array only, and its share such that no more than these persist. Each is timed behind a launch like it. */
#include "micro.h"

enum { THREADS = 1024 };

static double second_of(gpu_kernel kernel, gpu_shape shape, void **arguments) {
  double us;
  gpu_launch(kernel, shape, arguments);
  MICRO_TIME(us, gpu_launch(kernel, shape, arguments));
  return us;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"MiB", 20, 1, 1024}, {"stream", 256, 1, 8192}, {"aside", 30, 0, 1024}, {"most", 0, 0, 1024}};
  workload_arguments(argc, argv, "window", "an array of MiB that persists in the L2 beside a stream of MiB", arguments, 4);
  size_t kept_bytes = (size_t)arguments[0].value << 20, stream_bytes = (size_t)arguments[1].value << 20,
         aside = (size_t)arguments[2].value << 20, most = (size_t)arguments[3].value << 20;
  size_t window = most && most < kept_bytes ? most : kept_bytes;
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("window");
  gpu_pointer kept = gpu_allocate(kept_bytes), stream = gpu_allocate(stream_bytes);
  unsigned count = (unsigned)(kept_bytes / 4);
  gpu_shape shape = {gpu_divide_up(stream_bytes / 4, THREADS), 1, THREADS, 1};
  void *values[] = {&kept, &stream, &count};
  double plain = second_of(kernel, shape, values);
  gpu_keep(kept, window, aside, (double)window / (double)kept_bytes);
  double kept_us = second_of(kernel, shape, values);
  gpu_keep(0, 0, 0, 0);
  double after = second_of(kernel, shape, values);
  micro_print("plain", plain, "us");
  micro_print("window", kept_us, "us");
  micro_print("reset", after, "us");
  gpu_close();
  return 0;
}
