/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of hosttouch: what a launch costs next to managed memory that the CPU uses, after the microbenchmark of Wilt, "Managed
 * Memory: Belated Comments on Implementation" (2017). So many times: launch a kernel that does nothing, wait for it, read and
 * write one byte in each page of 4 KiB of a managed range of `first` (0: none), ... 1, 2, 4 ... up to `last` pages. With `touch` 0
 * the touching is left out. The time per iteration is measured by CUDA's events around the loop.
 *
 * The check: the bytes count the iterations; then the GPU adds one to each, and the host must see that. */
#include "gpu.h"
#include "workload.h"

#include <stdio.h>

enum { PAGE = 4096 };

extern const char workload_ptx[];

static unsigned char *managed;

/* Launches, waits, touches; microseconds per iteration. */
static double run(gpu_kernel kernel, long iterations, size_t pages, int touches) {
  gpu_shape one = {1, 1, 1, 1};
  gpu_time begin = gpu_record();
  for (long i = 0; i < iterations; i++) {
    gpu_launch(kernel, one, NULL);
    gpu_wait();
    for (size_t page = 0; touches && page < pages; page++) (*(volatile unsigned char *)&managed[page * PAGE])++;
  }
  return gpu_microseconds(begin, gpu_record()) / (double)iterations;
}

/* How many pages do not hold `expected`, seen by the host after the GPU has added one. */
static size_t check(gpu_kernel kernel, size_t pages, unsigned char expected) {
  unsigned count = (unsigned)pages, page_bytes = PAGE;
  size_t wrong = 0;
  GPU_LAUNCH(kernel, ((gpu_shape){1, 1, 1, 1}), managed, count, page_bytes);
  gpu_wait();
  for (size_t page = 0; page < pages; page++) wrong += managed[page * PAGE] != (unsigned char)(expected + 1);
  return wrong;
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"iterations", 1000, 1, 1 << 20}, {"first", 0, 0, 1 << 18}, {"last", 4096, 0, 1 << 18}, {"touch", 1, 0, 1}};
  workload_arguments(argc, argv, "hosttouch", "launch, wait, touch managed pages from the CPU", arguments, 4);
  long iterations = arguments[0].value, last = arguments[2].value;
  int touches = arguments[3].value != 0;

  gpu_open(workload_ptx);
  gpu_kernel null_kernel = gpu_find_kernel("null_kernel"), count_pages = gpu_find_kernel("count_pages");
  size_t checked = 0, wrong = 0;
  printf("%8s %8s %12s %10s\n", "pages", "KB", "us", "MB/s");
  for (long pages = arguments[1].value; pages <= last; pages = pages ? 2 * pages : 1) {
    if (pages) managed = gpu_allocate_managed((size_t)pages * PAGE);
    double us = run(null_kernel, iterations, (size_t)pages, touches);
    printf("%8ld %8ld %12.2f %10.0f\n", pages, pages * PAGE / 1024, us, (double)pages * PAGE / us);
    if (!pages) continue;
    wrong += check(count_pages, (size_t)pages, (unsigned char)(touches ? iterations : 0));
    checked += (size_t)pages;
    gpu_free((gpu_pointer)(uintptr_t)managed);
  }
  gpu_close();
  return workload_verdict_exact("hosttouch", checked, wrong);
}
