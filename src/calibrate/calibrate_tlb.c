/* SPDX-License-Identifier: Apache-2.0 */
/* TLBs: how many pages one SM reaches without a miss, how large a page is, what a miss takes, and how many pages later
 * its walk needs the L2. One line of each page, at a place of its own, past the L1.
 *
 *     pages      ... tlb_entries         ... what the walk cache holds      more
 *     a step     L2                      L2 + tlb_near_cycles               L2 + tlb_far_cycles */
#include <math.h>
#include <stdlib.h>

#include "calibrate/lab.h"

enum {
  MAX_PAGES = 1 << 15,
  STRIDE_MIN = 2048,
  UPPER = 2 << 20 /* what an entry of the level above that of small pages maps */
};

/* tried in turn: with many entries pages must be near */
static const uint64_t strides[] = {4 << 20, 256 << 10, 16 << 10};

typedef struct pages { /* where chains lie */
  cuda_address base;
  uint64_t bytes;
} pages;

/* Steps of a chain over `count` places, `stride` apart: cycles beyond an L2 hit. */
static ff_status beyond_l2(lab *l, const pages *p, uint64_t stride, uint64_t count, double *cycles) {
  cuda_address *at = ff_alloc(count * sizeof *at), start;
  uint64_t least = l->is_virtual ? 96 : 1024, two = 2 * count / CHASE_STEPS + 1;
  for (uint64_t i = 0; i < count; i++) at[i] = p->base + i * stride + lab_random(l, stride / 128) * 128;
  start = at[0];
  ff_status status = lab_chain(l, at, count, true);
  if (!status) status = lab_chase_hot(l, KERNEL_chase_l2, start, count, two > least ? two : least, cycles);
  if (!status) *cycles = lab_latency(l, *cycles) - lab_figure(l, FIGURE_l2_latency);
  free(at);
  return status;
}

/* The median of three chains: where lines fall in the L2 is by chance, and one set of it too full costs more than a
 * level of a walk. */
static ff_status steady(lab *l, const pages *p, uint64_t stride, uint64_t count, double *cycles) {
  double a, b, c;
  LAB_TRY(beyond_l2(l, p, stride, count, &a));
  LAB_TRY(beyond_l2(l, p, stride, count, &b));
  LAB_TRY(beyond_l2(l, p, stride, count, &c));
  *cycles = fmax(fmin(a, b), fmin(fmax(a, b), c));
  return FF_OK;
}

/* The most places, `stride` apart, at which a step is not `limit` longer than an L2 hit; `most`: there are no more. */
static ff_status largest(lab *l, const pages *p, uint64_t stride, uint64_t from, uint64_t most, double limit,
                         uint64_t *count) {
  double cycles;
  uint64_t fits = from, too_many = from;
  for (;; fits = too_many) {
    too_many = 2 * fits < most ? 2 * fits : most;
    if (fits >= most) {
      *count = most;
      return FF_OK;
    }
    LAB_TRY(beyond_l2(l, p, stride, too_many, &cycles));
    if (cycles > limit) break;
  }
  while (too_many - fits > 1 && too_many - fits > fits / 128) {
    uint64_t middle = (fits + too_many) / 2;
    LAB_TRY(beyond_l2(l, p, stride, middle, &cycles));
    *(cycles > limit ? &too_many : &fits) = middle;
  }
  *count = fits;
  return FF_OK;
}

/* With twice as many places as there are entries each misses, until they are so near that two are in a page. */
static ff_status page_size(lab *l, const pages *p, uint64_t stride, uint64_t entries, double limit, uint64_t *page) {
  double cycles;
  for (*page = stride; *page > STRIDE_MIN; *page /= 2) {
    if (*page / 2 * (entries + entries / 2 + 1) > p->bytes) continue;
    LAB_TRY(beyond_l2(l, p, *page / 2, entries + entries / 2 + 1, &cycles));
    if (cycles <= limit) return FF_OK;
  }
  return FF_OK;
}

/* The walk's last level no longer in the walk cache: the first knee after that of the TLB. */
static ff_status walks(lab *l, const pages *p, uint64_t entries, uint64_t page) {
  double near, far, base_l2 = lab_figure(l, FIGURE_l2_latency);
  uint64_t count, most = p->bytes / page < MAX_PAGES ? p->bytes / page : MAX_PAGES,
                  l2_lines = (uint64_t)l->result->device.l2_bytes / 128;
  if (l2_lines && most > l2_lines / 2) most = l2_lines / 2; /* with more, lines would be missing in the L2 */
  if (most < entries + entries / 2) return FF_OK;
  LAB_TRY(steady(l, p, page, 4 * entries < most ? 4 * entries : most, &near));
  lab_record(l, FIGURE_tlb_near_cycles, near);
  LAB_TRY(largest(l, p, page, 4 * entries, most, near + base_l2 / 4, &count));
  if (count >= most) return FF_OK; /* not reached with the memory there is */
  uint64_t many = 2 * count < most ? 2 * count : most;
  LAB_TRY(steady(l, p, page, many, &far));
  lab_record(l, FIGURE_tlb_far_cycles, far);
  lab_record(l, FIGURE_walk_cache_latency, base_l2 - (far - near));
  /* entries of the next level, which are in it as well */
  double above = page < UPPER ? (double)(count * page) / UPPER : (double)count / 512;
  lab_record(l, FIGURE_walk_cache_bytes, 8 * ((double)count + ceil(above) + 2));
  return FF_OK;
}

/* A miss that takes less than the limit is not found. On silicon the slices of an L2 are not equally near, so that the
 * mean of a few lines says no more than that. */
static ff_status once(lab *l, const pages *p) {
  uint64_t entries = 0, page, stride = 0, most = 0;
  double limit = lab_figure(l, FIGURE_l2_latency) / (l->is_virtual ? 64 : 8);
  for (size_t i = 0; i < sizeof strides / sizeof *strides && entries >= most; i++) {
    stride = strides[i];
    most = p->bytes / stride < MAX_PAGES ? p->bytes / stride : MAX_PAGES;
    LAB_TRY(largest(l, p, stride, 1, most, limit, &entries));
  }
  if (entries >= most) return FF_OK;
  lab_record(l, FIGURE_tlb_entries, (double)entries);
  LAB_TRY(page_size(l, p, stride, entries, limit, &page));
  lab_record(l, FIGURE_page_bytes, (double)page);
  return walks(l, p, entries, page);
}

ff_status measure_tlb(lab *l) {
  pages p = {0};
  size_t available, total;
  LAB_CALL(l, MemGetInfo, &available, &total);
  uint64_t wanted = (uint64_t)available / 8 * 7;
  p.bytes = UINT64_C(64) << 30;
  if (p.bytes > wanted) p.bytes = wanted / strides[0] * strides[0];
  ff_status status;
  while ((status = lab_allocate(l, p.bytes, &p.base)) == FF_NO_MEMORY && p.bytes > 64 << 20) p.bytes /= 2;
  for (uint32_t i = 0; i < l->repeats && !status; i++) status = once(l, &p);
  lab_free(l, p.base);
  return status;
}
