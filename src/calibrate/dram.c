/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's memory behind the L2: latency in an open row and with another one open; how much of a range the L2 keeps;
 * bandwidth.
 *
 * Lines that a chase should find in memory were written, then pushed out of the L2 by reading twice
 * its size. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/lab.h"

enum { LINE = 128, REGION = 32 << 20 /* at least so large */ };

/* Enough to push all else out of the L2, by its size as the driver tells it (no figure comes from that), in whole
 * units. */
static uint64_t flush_bytes(const lab *l) {
  uint64_t l2 = l->result->device.l2_bytes > 0 ? (uint64_t)l->result->device.l2_bytes : 64 << 20,
           unit = lab_read_unit(l);
  return ((l->is_virtual ? l2 + l2 / 4 : 3 * l2) / unit + 1) * unit;
}

typedef struct ground {
  cuda_address flush, region, rows; /* read to push others out; where chains lie: of random lines, of rows */
  uint64_t flush_bytes, region_bytes, rows_bytes, page;
} ground;

static ff_status flush(lab *l, const ground *g) {
  double us;
  return lab_read(l, g->flush, g->flush_bytes, &us);
}

/* ---- latency ---- */

/* Chains through the same pages in the same order: one that fills the walk cache, one with a line of each page, one
 * with two. What the last takes more than the second are second lines, whose page the TLB has. The lines of a page lie
 * in quarters of their own, so that no two of them are in one row. Half of the smallest walk cache that there is holds
 * the pages. */
enum { ROUNDS = 3, PAGES = 512 };

static ff_status random_chains(lab *l, const ground *g, cuda_address *starts) {
  uint64_t page = g->region_bytes / PAGES, quarter = g->page / 4;
  cuda_address order[PAGES], at[2 * PAGES];
  for (uint64_t i = 0; i < PAGES; i++) {
    uint64_t k = lab_random(l, i + 1);
    order[i] = order[k];
    order[k] = g->region + i * page;
  }
  for (uint64_t chain = 0; chain < ROUNDS; chain++) {
    uint64_t lines = chain == 2 ? 2 : 1;
    for (uint64_t i = 0; i < PAGES * lines; i++) {
      /* a second line is a quarter away at least */
      uint64_t place = (chain + i % lines) * quarter + i % lines * quarter / 2;
      at[i] = order[i / lines] + place + lab_random(l, quarter / 2 / LINE) * LINE;
    }
    starts[chain] = at[0];
    LAB_TRY(lab_chain(l, at, PAGES * lines, false));
  }
  return FF_OK;
}

/* Cycles of a line in a row that is not open. */
static ff_status random_lines(lab *l, const cuda_address *starts, double *cycles) {
  double us[ROUNDS];
  for (int chain = 0; chain < ROUNDS; chain++)
    LAB_TRY(lab_chase(l, KERNEL_chase_l2, starts[chain], (chain == 2 ? 2 : 1) * PAGES / CHASE_STEPS, &us[chain]));
  *cycles = lab_cycles(l, us[2] - us[1]) / PAGES;
  return FF_OK;
}

/* A chain through `lines` lines, `stride` apart, of each 4 KiB, ascending. */
enum { CHUNK = 4096, DENSE = 16 /* lines of a chunk, its first half */ };

static ff_status ascending(lab *l, cuda_address base, uint64_t bytes, uint64_t stride, uint64_t lines) {
  size_t count = bytes / CHUNK * lines;
  cuda_address *at = ff_alloc(count * sizeof *at);
  for (size_t i = 0; i < count; i++) at[i] = base + i / lines * CHUNK + i % lines * stride;
  ff_status status = lab_chain(l, at, count, false);
  free(at);
  return status;
}

/* Two regions of rows, in one every line of a half chunk, in the other every second one, so that the former has as many
 * rows more often. Its lines more are in rows that are open. A chain through the chunks' last lines brings the page
 * table's entries of both before. */
static ff_status open_rows_chains(lab *l, const ground *g) {
  LAB_TRY(ascending(l, g->rows, g->rows_bytes, LINE, DENSE));
  LAB_TRY(ascending(l, g->rows + g->rows_bytes, g->rows_bytes, 2 * LINE, DENSE / 2));
  return ascending(l, g->rows + CHUNK - LINE, 2 * g->rows_bytes, LINE, 1);
}

static ff_status open_rows(lab *l, const ground *g, double *cycles) {
  double dense, sparse;
  uint64_t chunks = g->rows_bytes / CHUNK;
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, g->rows + CHUNK - LINE, 2 * chunks / CHASE_STEPS, &dense));
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, g->rows, chunks * DENSE / CHASE_STEPS, &dense));
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, g->rows + g->rows_bytes, chunks * DENSE / 2 / CHASE_STEPS, &sparse));
  *cycles = lab_cycles(l, dense - sparse) / (double)(chunks * DENSE / 2);
  return FF_OK;
}

static ff_status latencies(lab *l, const ground *g) {
  double row, random;
  cuda_address starts[ROUNDS];
  LAB_TRY(random_chains(l, g, starts));
  LAB_TRY(open_rows_chains(l, g));
  LAB_TRY(flush(l, g));
  LAB_TRY(open_rows(l, g, &row));
  LAB_TRY(random_lines(l, starts, &random));
  lab_record(l, FIGURE_dram_hit_cycles, lab_latency(l, row));
  lab_record(l, FIGURE_dram_conflict_cycles, random - row);
  return FF_OK;
}

/* ---- size of the L2 ---- */

/* A chain over one line in each of `count` parts of the range; the parts in random order within `windows` of them that
 * follow each other, so that there are few TLB misses. */
static ff_status sampled(lab *l, cuda_address base, uint64_t bytes, uint64_t page, uint64_t count,
                         cuda_address *start) {
  enum { WINDOW = 16 };
  cuda_address *at = ff_alloc(count * sizeof *at);
  uint64_t part = bytes / count / LINE; /* but its first line, and the first line of a page */
  for (uint64_t i = 0; i < count; i++) {
    uint64_t first = i / WINDOW * WINDOW, k = first + lab_random(l, i - first + 1);
    at[i] = at[k];
    at[k] = base + (i * part + (part > 1 ? 1 + lab_random(l, part - 1) : 0)) * LINE;
    if ((at[k] - base) % page == 0) at[k] += LINE;
  }
  *start = at[0];
  ff_status status = lab_chain(l, at, count, false);
  free(at);
  return status;
}

/* A chase with the page table's entries in the walk cache: after one through a line of each page. */
static ff_status warm_chase(lab *l, cuda_address pages, uint64_t page_count, cuda_address start, uint64_t rounds,
                            double *us) {
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, pages, page_count / CHASE_STEPS + 1, us));
  return lab_chase(l, KERNEL_chase_l2, start, rounds, us);
}

/* The share of a range that the L2 still has after all SMs read through it: between no line of the same chain, and all
 * of them. */
static ff_status kept_sample(lab *l, const ground *g, cuda_address base, uint64_t range, uint64_t samples,
                             double *kept) {
  uint64_t rounds = samples / CHASE_STEPS, pages = range / g->page ? range / g->page : 1;
  cuda_address start, *at = ff_alloc(pages * sizeof *at);
  double some, all, none, us;
  for (uint64_t i = 0; i < pages; i++) at[i] = base + i * g->page;
  ff_status status = sampled(l, base, range, g->page, samples, &start);
  if (!status) status = lab_chain(l, at, pages, false);
  free(at);
  if (status) return status;
  LAB_TRY(lab_read(l, base, range, &us));
  LAB_TRY(warm_chase(l, base, pages, start, rounds, &some));
  LAB_TRY(warm_chase(l, base, pages, start, rounds, &all));
  LAB_TRY(flush(l, g));
  LAB_TRY(warm_chase(l, base, pages, start, rounds, &none));
  *kept = (none - some) / (none - all);
  return FF_OK;
}

/* Lines that are looked at push others out, so they are few; of a small range the mean of several looks. */
static ff_status kept_share(lab *l, const ground *g, cuda_address base, uint64_t range, double *kept) {
  uint64_t most = l->is_virtual ? 1024 : 8192, few = range / LINE / 64 + CHASE_STEPS, samples = few < most ? few : most;
  int looks = few < most ? 8 : 1;
  double sum = 0, one;
  for (int i = 0; i < looks; i++) {
    LAB_TRY(kept_sample(l, g, base, range, samples, &one));
    sum += one;
  }
  *kept = sum / looks;
  return FF_OK;
}

/* Ranges from 4/3 of what the driver says on: larger while nearly all is kept, smaller while little is. */
static ff_status l2_size(lab *l, const ground *g) {
  uint64_t unit = lab_read_unit(l),
           range = l->result->device.l2_bytes > 0 ? (uint64_t)l->result->device.l2_bytes / 3 * 4 : 8 << 20;
  for (int i = 0; i < 12; i++) {
    uint64_t bytes = (range / unit ? range / unit : 1) * unit;
    double kept;
    cuda_address base;
    LAB_TRY(lab_allocate(l, bytes, &base));
    ff_status status = kept_share(l, g, base, bytes, &kept);
    lab_free(l, base);
    if (status) return status;
    if (kept > 0.9) range = bytes * 2;
    else if (kept < 0.4 && bytes > unit) range = bytes / 2;
    else {
      lab_record(l, FIGURE_l2_bytes, kept * (double)bytes);
      return FF_OK;
    }
  }
  return FF_OK;
}

ff_status measure_dram(lab *l) {
  if (!isfinite(lab_figure(l, FIGURE_page_bytes)))
    return ff_fail(l->error, FF_UNSUPPORTED, "the size of a page was not found");
  ground g = {.page = (uint64_t)lab_figure(l, FIGURE_page_bytes),
              .rows_bytes = l->is_virtual ? 1 << 20 : 8 << 20,
              .flush_bytes = flush_bytes(l)};
  g.region_bytes = PAGES * g.page > REGION ? PAGES * g.page : REGION;
  ff_status status = lab_allocate(l, g.flush_bytes, &g.flush);
  if (!status) status = lab_allocate(l, g.region_bytes, &g.region);
  if (!status) status = lab_allocate(l, 2 * g.rows_bytes, &g.rows);
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    status = latencies(l, &g);
    if (!status) status = l2_size(l, &g);
  }
  lab_free(l, g.flush);
  lab_free(l, g.region);
  lab_free(l, g.rows);
  return status;
}

/* ---- bandwidth ---- */

typedef ff_status (*stream_function)(lab *l, cuda_address base, uint64_t bytes, double *us);

/* GB/s by the difference of a short and a long stretch, which moves *at on. */
static ff_status stretch(lab *l, stream_function go, cuda_address *at, uint64_t few, uint64_t many, figure_id id) {
  uint64_t unit = lab_read_unit(l);
  double short_us, long_us;
  LAB_TRY(go(l, *at, few * unit, &short_us));
  LAB_TRY(go(l, *at + few * unit, many * unit, &long_us));
  *at += (few + many) * unit;
  lab_record(l, id, (double)((many - few) * unit) / 1e3 / (long_us - short_us));
  return FF_OK;
}

/* Reading and writing what the L2 does not have: not even from before, when other data lay at these addresses; of
 * writing only what is done once the L2 is full of written lines. */
static ff_status streams(lab *l, cuda_address base, uint64_t flush, uint64_t few, uint64_t many) {
  cuda_address at = base + flush;
  double us;
  LAB_TRY(lab_read(l, base, flush, &us));
  LAB_TRY(stretch(l, lab_read, &at, few, many, FIGURE_dram_read_gbs));
  LAB_TRY(lab_write(l, base, flush, &us));
  return stretch(l, lab_write, &at, few, many, FIGURE_dram_write_gbs);
}

/* From the first half of a range to the second. */
static ff_status copy_time(lab *l, cuda_address base, uint64_t bytes, double *us) {
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  LAB_CALL(l, MemcpyDtoDAsync, base + bytes, base, bytes, l->stream);
  LAB_CALL(l, EventRecord, l->end, l->stream);
  return lab_elapsed(l, l->begin, l->end, us);
}

static ff_status copies(lab *l, cuda_address base, uint64_t bytes) {
  double half, whole;
  LAB_TRY(copy_time(l, base, bytes / 4, &half));
  LAB_TRY(copy_time(l, base, bytes / 2, &whole));
  lab_record(l, FIGURE_dram_copy_gbs, 2 * (double)(bytes / 2 - bytes / 4) / 1e3 / (whole - half));
  return FF_OK;
}

/* All threads read the same again and again, past the L1. */
static ff_status l2_stream(lab *l, cuda_address base) {
  uint64_t few = 4, many = 36, step = 0; /* step 0: of a round */
  uint32_t sms = (uint32_t)l->result->device.sm_count;
  double short_us, long_us;
  void *few_arguments[] = {&base, &few, &step, &l->sink}, *many_arguments[] = {&base, &many, &step, &l->sink};
  LAB_TRY(lab_time_kernel(l, KERNEL_read_l2, sms, 512, few_arguments, &short_us));
  LAB_TRY(lab_time_kernel(l, KERNEL_read_l2, sms, 512, few_arguments, &short_us));
  LAB_TRY(lab_time_kernel(l, KERNEL_read_l2, sms, 512, many_arguments, &long_us));
  lab_record(l, FIGURE_l2_gbs, (double)((many - few) * lab_read_unit(l) / 2) / 1e3 / (long_us - short_us));
  return FF_OK;
}

static double sample(const lab *l, figure_id id, uint32_t i) {
  const figure *f = &l->result->figures[id];
  return i < f->count ? f->samples[i] : 0;
}

ff_status measure_bandwidth(lab *l) {
  uint64_t unit = lab_read_unit(l), few = l->is_virtual ? 2 : 16, many = (l->is_virtual ? 4 : 10) * few,
           flush = flush_bytes(l);
  cuda_address base;
  LAB_TRY(lab_allocate(l, flush + 2 * (few + many) * unit, &base));
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    status = streams(l, base, flush, few, many);
    if (!status) status = copies(l, base, flush + 2 * (few + many) * unit);
    if (!status) status = l2_stream(l, base);
    if (!status)
      lab_record(l, FIGURE_dram_gbs, fmax(sample(l, FIGURE_dram_read_gbs, i), sample(l, FIGURE_dram_copy_gbs, i)));
  }
  lab_free(l, base);
  return status;
}
