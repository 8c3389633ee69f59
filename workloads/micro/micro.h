/* SPDX-License-Identifier: Apache-2.0 */
/* What the microbenchmarks of `farfault validate` share. Each measures one thing the way a public program measured it on real GPUs,
 * by CUDA's events, and prints lines of the form
 *
 *   QUANTITY = VALUE UNIT
 *
 * which the command reads; a line of any other form is for people. On a machine with an NVIDIA driver the same programs measure the
 * real GPU. */
#ifndef WORKLOADS_MICRO_H
#define WORKLOADS_MICRO_H

#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"
#include "workload.h"

extern const char workload_ptx[];

static inline void micro_print(const char *quantity, double value, const char *unit) {
  printf("%s = %.6g %s\n", quantity, value, unit);
}

/* Microseconds that the launches of `body` take, as events around them see it. */
#define MICRO_TIME(us, body)                            \
  do {                                                  \
    gpu_wait();                                         \
    gpu_time micro_begin = gpu_record();                \
    body;                                               \
    (us) = gpu_microseconds(micro_begin, gpu_record()); \
  } while (0)

/* Cycles of the device's clock in that time. */
static inline double micro_cycles(double us) { return us * gpu_attribute(GPU_CLOCK_KHZ) / 1000; }

static inline int micro_compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* The median of `count` values, at least one; it sorts them. Of an even number the lower one of the two in the middle. */
static inline double micro_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, micro_compare);
  return values[(count - 1) / 2];
}

#endif
