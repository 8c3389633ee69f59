/* SPDX-License-Identifier: Apache-2.0 */
/* L1 and L2 by pointer chases: latency, the L1's size, what a miss of it brings. */
#include <stdlib.h>

#include "calibrate/lab.h"

enum {
  LINE = 128,
  L1_MIN = 2048,
  L1_MAX = 1 << 20,
  SECTOR_RANGE = 64 << 10,
  L2_FOOTPRINT = 32 << 10 /* few pages: no TLB misses */
};

static uint64_t rounds_for(const lab *l, size_t count) { /* at least four times through the chain */
  uint64_t least = l->is_virtual ? 128 : 4096, four = 4 * (count + CHASE_STEPS - 1) / CHASE_STEPS;
  return four > least ? four : least;
}

/* A chain of all `stride`s of `bytes`, in random order. */
static ff_status footprint(lab *l, cuda_address base, uint64_t bytes, uint64_t stride, bool shuffle) {
  size_t count = bytes / stride;
  cuda_address *at = ff_alloc(count * sizeof *at);
  for (size_t i = 0; i < count; i++) at[i] = base + i * stride;
  ff_status status = lab_chain(l, at, count, shuffle);
  free(at);
  return status;
}

static ff_status hot_cycles(lab *l, lab_kernel kernel, cuda_address base, uint64_t bytes, double *cycles) {
  LAB_TRY(footprint(l, base, bytes, LINE, true));
  return lab_chase_hot(l, kernel, base, bytes / LINE, rounds_for(l, bytes / LINE), cycles);
}

/* The largest footprint whose latency is that of the smallest: doubled until it is not, then halved between. */
static ff_status l1_size(lab *l, cuda_address base) {
  double small, cycles = 0;
  LAB_TRY(hot_cycles(l, KERNEL_chase, base, L1_MIN, &small));
  lab_record(l, FIGURE_l1_latency, lab_latency(l, small));
  double limit = small * 1.1;
  uint64_t fits = L1_MIN, too_large = 2 * L1_MIN;
  for (; too_large <= L1_MAX; fits = too_large, too_large *= 2) {
    LAB_TRY(hot_cycles(l, KERNEL_chase, base, too_large, &cycles));
    if (cycles > limit) break;
  }
  if (too_large > L1_MAX) return FF_OK; /* there is no L1, or all of this is in it */
  while (too_large - fits > LINE && too_large - fits > fits / 100) {
    uint64_t middle = (fits + too_large) / 2 / LINE * LINE;
    LAB_TRY(hot_cycles(l, KERNEL_chase, base, middle, &cycles));
    *(cycles > limit ? &too_large : &fits) = middle;
  }
  lab_record(l, FIGURE_l1_bytes, (double)fits);
  return FF_OK;
}

/* From 8 bytes to 8 bytes through what the L1 has not seen: one of sector / 8 loads misses. */
static ff_status sector(lab *l, cuda_address base) {
  uint64_t bytes = SECTOR_RANGE, few = 2048 / 8 / CHASE_STEPS, all = bytes / 8 / CHASE_STEPS;
  double short_us, long_us, l1 = lab_figure(l, FIGURE_l1_latency), l2 = lab_figure(l, FIGURE_l2_latency);
  LAB_TRY(footprint(l, base, bytes, 8, false));
  for (int i = 0; i < 2; i++)
    LAB_TRY(lab_chase(l, KERNEL_chase, base, all, &long_us)); /* on SMs of both sides of the L2 */
  LAB_TRY(lab_chase(l, KERNEL_chase, base, few, &short_us));
  LAB_TRY(lab_chase(l, KERNEL_chase, base, all, &long_us));
  double missing =
      (lab_latency(l, lab_cycles(l, long_us - short_us) / (double)((all - few) * CHASE_STEPS)) - l1) / (l2 - l1);
  lab_record(l, FIGURE_sector_bytes, 8 / missing);
  return FF_OK;
}

/* At a round address: elsewhere a range has other lines of the sets at its two ends, if sets are hashed. */
ff_status measure_l1(lab *l) {
  cuda_address base;
  LAB_TRY(lab_allocate(l, 2 * L1_MAX, &base));
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) status = l1_size(l, (base + L1_MAX - 1) / L1_MAX * L1_MAX);
  lab_free(l, base);
  return status;
}

ff_status measure_l2_latency(lab *l) {
  cuda_address base;
  double cycles;
  LAB_TRY(lab_allocate(l, SECTOR_RANGE, &base));
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    status = hot_cycles(l, KERNEL_chase_l2, base, L2_FOOTPRINT, &cycles);
    if (status) break;
    lab_record(l, FIGURE_l2_latency, lab_latency(l, cycles));
    status = sector(l, base);
  }
  lab_free(l, base);
  return status;
}
