/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: their names, what of many samples is reported, and what a machine file says of each
 * (calibrate_figures.def). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "machine/spec/allocation.h"

const figure_info figure_infos[FIGURE_COUNT] = {
#define X(name, unit, kind, expression, help) {#name, unit, help, FIGURE_##kind},
#include "calibrate/calibrate_figures.def"
#undef X
};

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile(const double *sorted, uint32_t count, double part) {
  double at = part * (count - 1);
  uint32_t i = (uint32_t)at;
  return i + 1 < count ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[count - 1];
}

figure_summary figure_summarise(const figure *f) {
  double sorted[CALIBRATE_SAMPLES];
  memcpy(sorted, f->samples, f->count * sizeof *sorted);
  qsort(sorted, f->count, sizeof *sorted, compare_doubles);
  return (figure_summary){.median = quantile(sorted, f->count, 0.5),
                          .low = sorted[0],
                          .high = sorted[f->count - 1],
                          .quarter = quantile(sorted, f->count, 0.25),
                          .three_quarters = quantile(sorted, f->count, 0.75)};
}

/* ---- what a machine says: the formulas of docs/timing.md ---- */

#define CYCLES(ns) ((ns)*m->clock_mhz / 1e3)

/* Nanoseconds of an explicit copy: by the table, interpolated over the logarithm of the size, or latency and peak. */
static double copy_ns(const machine_spec *m, double bytes, double peak) {
  const machine_size_table *t = &m->link_table;
  if (!t->count) return m->link_latency_us * 1e3 + bytes / peak;
  const machine_size_point *last = &t->points[t->count - 1];
  if (bytes >= (double)last->bytes) return (double)last->bytes / last->gbs + (bytes - (double)last->bytes) / peak;
  if (bytes <= (double)t->points[0].bytes) return (double)t->points[0].bytes / t->points[0].gbs;
  uint32_t i = 1;
  while ((double)t->points[i].bytes < bytes) i++;
  const machine_size_point *a = &t->points[i - 1], *b = &t->points[i];
  double x = log(bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);
  return bytes / (a->gbs + x * (b->gbs - a->gbs));
}

/* An SM's turn to start a block comes by its own limit or by the GPU's. */
static double block_interval(const machine_spec *m) {
  return fmax(m->block_launch_cycles, (double)m->sm_count * m->gpu_block_launch_cycles);
}

/* A block with most shared memory has the SM to itself, or there is no such block; it issues its return and ends. */
static double place_interval(const machine_spec *m) {
  if (2 * m->shared_per_block_optin <= m->shared_bytes) return NAN;
  return fmax(block_interval(m), m->block_start_cycles + m->issue_interval);
}

/* What an L2 of two sides gives and keeps depends on which SMs read what: no closed form. */
static double one_side(const machine_spec *m, double value) { return m->l2_copies ? NAN : value; }

/* The slices of the L2 give it, and the SMs' ports of the on-chip network let it through. */
static double l2_gbs(const machine_spec *m) {
  double slices = m->l2_bytes_per_cycle * (double)m->l2_slices, ports = m->sm_read_bytes * (double)m->sm_count;
  return one_side(m, (ports > 0 && ports < slices ? ports : slices) * m->clock_mhz / 1e3);
}

/* Half of the lines are the other side's. */
static double side_cycles(const machine_spec *m) { return m->l2_copies ? m->side_latency / 2 : 0; }

/* Of what all SMs read half comes from the other side, half of that each way. */
static double dram_read_gbs(const machine_spec *m) {
  double memory = m->dram_gbs * spec_read_share(m), crossing = 4 * m->side_bytes * m->clock_mhz / 1e3;
  return m->l2_copies && m->side_bytes > 0 && crossing < memory ? crossing : memory;
}

double figure_expected(figure_id id, const machine_spec *m) {
  switch (id) {
#define X(name, unit, kind, expression, help) \
  case FIGURE_##name:                         \
    return (double)(expression);
#include "calibrate/calibrate_figures.def"
#undef X
  default: return NAN;
  }
}
