/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: what the first touch of a page costs the GPU, one at a time or many at once, what comes with it, what
 * the host's touch of a page costs that the GPU has. Small allocations. What is measured is touched AWAY from a page of
 * its block that came before: the entries of page tables that map it are in caches then, and not part of the
 * service. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/lab.h"

enum {
  BLOCK = 2 << 20,
  PAGE = 4096,
  AWAY = 256 << 10,
  TOUCH_SIZES = (FIGURE_touch_together_256 - FIGURE_touch_alone_1 + 1) / 2
};

typedef struct managed {
  cuda_address base; /* of whole blocks */
  cuda_address allocation;
  uint64_t blocks;
} managed;

/* Of its blocks the host writes the first `written`. */
static ff_status managed_make(lab *l, uint64_t blocks, uint64_t written, managed *m) {
  m->blocks = blocks;
  LAB_CALL(l, MemAllocManaged, &m->allocation, (blocks + 1) * BLOCK, 1);
  m->base = (m->allocation + BLOCK - 1) / BLOCK * BLOCK;
  memset((void *)(uintptr_t)m->base, 1, written * BLOCK); /* pages that were never written would come without a copy */
  return FF_OK;
}

static void managed_free(lab *l, managed *m) {
  l->cuda->StreamSynchronize(l->stream);
  if (m->allocation) l->cuda->MemFree(m->allocation);
}

static ff_status touch(lab *l, cuda_address base, uint64_t stride, uint32_t count, double *us) {
  void *arguments[] = {&base, &stride, &l->sink};
  return lab_time_kernel(l, KERNEL_touch, 1, count, arguments, us);
}

/* What a touch that was a far-fault takes beyond the service: its first walk finds the entry of a page that was never
 * there in no cache, then the access looks into the TLB and walks again, and the line itself is in no cache. */
static double replay_us(const lab *l) {
  double far = lab_figure(l, FIGURE_tlb_far_cycles), near = lab_figure(l, FIGURE_tlb_near_cycles),
         walk = far > near ? far : near;
  double cycles = walk + 2 * (lab_figure(l, FIGURE_dram_hit_cycles) - lab_figure(l, FIGURE_l2_latency));
  return cycles > 0 ? cycles / lab_figure(l, FIGURE_clock_mhz) : 0; /* not for NAN */
}

/* Microseconds of the first touch beyond what the second takes, `count` threads of a warp at once, one to each
 * block. */
static ff_status first_touch(lab *l, cuda_address base, uint32_t count, double *us) {
  double first, again;
  LAB_TRY(touch(l, base, BLOCK, count, &first));
  LAB_TRY(touch(l, base, BLOCK, count, &again));
  *us = first - again - replay_us(l);
  return FF_OK;
}

/* The smallest distance behind a touched byte whose touch is a far-fault again. Each distance in a block of its own. */
static ff_status unit_bytes(lab *l, const managed *m, uint64_t block, double fault_us, uint64_t *unit) {
  double us, first;
  *unit = PAGE;
  for (; *unit < BLOCK; *unit *= 2, block++) {
    cuda_address base = m->base + block * BLOCK;
    LAB_TRY(touch(l, base, BLOCK, 1, &first));
    LAB_TRY(touch(l, base, BLOCK, 1, &first));
    LAB_TRY(touch(l, base + *unit, BLOCK, 1, &us));
    if (us - first > fault_us / 2) return FF_OK;
  }
  return FF_OK;
}

/* As long as a copy of that size takes, which was measured. */
static double copy_us(const lab *l, uint64_t bytes, bool in) {
  int i = 0;
  while ((UINT64_C(4096) << i) < bytes && FIGURE_h2d_4K + 2 * i + 2 <= FIGURE_h2d_64M) i++;
  return (double)(UINT64_C(4096) << i) / 1e3 / lab_figure(l, (figure_id)(FIGURE_h2d_4K + 2 * i + !in));
}

/* The host reads a byte of each block that the GPU has touched. */
static ff_status host_touches(lab *l, const managed *m, uint64_t block, uint64_t count, uint64_t unit) {
  volatile unsigned char sum = 0;
  LAB_CALL(l, StreamSynchronize, l->stream);
  double start = lab_host_now(l), none;
  LAB_CALL(l, StreamSynchronize, l->stream);
  none = lab_host_now(l) - start;
  start = lab_host_now(l);
  for (uint64_t i = 0; i < count; i++)
    sum = (unsigned char)(sum + *(volatile unsigned char *)(uintptr_t)(m->base + (block + i) * BLOCK));
  LAB_CALL(l, StreamSynchronize, l->stream);
  double us = (lab_host_now(l) - start - none) / (double)count;
  lab_record(l, FIGURE_host_fault_us, us - copy_us(l, unit, false));
  return FF_OK;
}

static ff_status faults_once(lab *l, const managed *m) {
  enum { ALONE = 8, UNITS = 9 };
  double us, sum = 0;
  uint64_t unit;
  for (uint64_t i = 0; i < ALONE; i++) {
    LAB_TRY(touch(l, m->base + i * BLOCK, BLOCK, 1, &us));
    LAB_TRY(first_touch(l, m->base + i * BLOCK + AWAY, 1, &us));
    sum += us;
  }
  lab_record(l, FIGURE_fault_us, sum / ALONE);
  LAB_TRY(unit_bytes(l, m, ALONE, sum / ALONE, &unit));
  lab_record(l, FIGURE_fault_page_bytes, (double)unit);
  return host_touches(l, m, 0, ALONE, unit);
}

ff_status measure_faults(lab *l) {
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    managed m = {0};
    status = managed_make(l, 8 + 9, 8 + 9, &m);
    if (!status) status = faults_once(l, &m);
    managed_free(l, &m);
  }
  return status;
}

enum { FEW = 2, MANY = 16, BATCH_BLOCKS = 1 + FEW + MANY, BATCH_UNITS = 9 };

/* Far-faults of one warp in `count` blocks come in one batch: blocks are served one after the other. Measured in the
 * blocks from `blank` on, which were never written: copies would hide the service. Where even these are copied in, as
 * their touch shows, each takes its service and its copy. */
static ff_status batches_once(lab *l, const managed *m, uint64_t blank) {
  double one, zeros, few, many;
  uint64_t unit;
  cuda_address base = m->base + blank * BLOCK;
  LAB_TRY(touch(l, m->base, BLOCK, 1, &one));
  LAB_TRY(touch(l, base, BLOCK, BATCH_BLOCKS, &zeros));
  LAB_TRY(first_touch(l, m->base + AWAY, 1, &one));
  LAB_TRY(first_touch(l, base + AWAY, 1, &zeros));
  LAB_TRY(first_touch(l, base + BLOCK + AWAY, FEW, &few));
  LAB_TRY(first_touch(l, base + (1 + FEW) * BLOCK + AWAY, MANY, &many));
  LAB_TRY(unit_bytes(l, m, 1, one, &unit));
  double each = (many - few) / (MANY - FEW), copy = copy_us(l, unit, true);
  lab_record(l, FIGURE_batch_page_bytes, (double)unit);
  lab_record(l, FIGURE_fault_block_us, one - zeros > copy / 2 ? each : each - copy);
  lab_record(l, FIGURE_fault_batch_us, few - FEW * each);
  return FF_OK;
}

/* First touches of 1, 2, 4 ... 256 pages that follow each other, in a block of 2 MiB of their own, less what the second
 * ones take. */
static ff_status pages_touched(lab *l, const managed *m, uint64_t block) {
  for (int i = 0; i < TOUCH_SIZES; i++) {
    uint64_t pages = UINT64_C(1) << i, stride = PAGE;
    double first, again;
    for (int together = 0; together < 2; together++) {
      cuda_address base = m->base + block++ * BLOCK;
      void *arguments[] = {&base, &stride, together ? (void *)&l->sink : (void *)&pages};
      lab_kernel kernel = together ? KERNEL_touch : KERNEL_touch_alone;
      LAB_TRY(lab_time_kernel(l, kernel, 1, together ? (uint32_t)pages : 1, arguments, &first));
      LAB_TRY(lab_time_kernel(l, kernel, 1, together ? (uint32_t)pages : 1, arguments, &again));
      lab_record(l, (figure_id)(FIGURE_touch_alone_1 + 2 * i + together), first - again);
    }
  }
  return FF_OK;
}

ff_status measure_batches(lab *l) {
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    managed m = {0};
    uint64_t written = 1 + BATCH_UNITS + 2 * TOUCH_SIZES;
    status = managed_make(l, written + BATCH_BLOCKS, written, &m);
    if (!status) status = batches_once(l, &m, written);
    if (!status) status = pages_touched(l, &m, 1 + BATCH_UNITS);
    managed_free(l, &m);
  }
  return status;
}
