/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of reproductions take from a program's counters: one short formula each, REPRO_NONE where it divides by
 * zero. */
#include "reproduce/reproduce.h"

static double over(double a, double b) { return b > 0 ? a / b : REPRO_NONE; }

double repro_time_ratio(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.time_ps, (double)b->counters.time_ps);
}
double repro_speedup(const repro_measured *a, const repro_measured *b) {
  return over((double)b->counters.time_ps, (double)a->counters.time_ps);
}
double repro_time_lost(const repro_measured *a, const repro_measured *b) { return 1 - repro_speedup(a, b); }
double repro_time_saved(const repro_measured *a, const repro_measured *b) { return 1 - repro_time_ratio(a, b); }
double repro_kernel_time_ratio(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.kernel_ps, (double)b->counters.kernel_ps);
}
double repro_kernel_speedup(const repro_measured *a, const repro_measured *b) {
  return over((double)b->counters.kernel_ps, (double)a->counters.kernel_ps);
}
double repro_kernel_saved(const repro_measured *a, const repro_measured *b) {
  return 1 - over((double)a->counters.kernel_ps, (double)b->counters.kernel_ps);
}
double repro_footprint(const repro_measured *a, const repro_measured *b) {
  return (double)a->counters.footprint_bytes / 1e6;
}
double repro_faults(const repro_measured *a, const repro_measured *b) { return (double)a->counters.faults; }
double repro_tlb_misses(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.tlb_misses, (double)a->counters.tlb_lookups);
}
double repro_bytes_ratio(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.h2d_bytes, (double)b->counters.h2d_bytes);
}
double repro_launch_microseconds(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.time_ps / 1e6, (double)a->counters.launches);
}

double repro_launch_bandwidth(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.footprint_bytes, repro_launch_microseconds(a, b)); /* bytes per us are MB/s */
}

/* Under paging nothing moves to the GPU but while a kernel runs. */
double repro_link_used(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.h2d_busy_ps, (double)a->counters.kernel_ps);
}

double repro_overlap_saved(const repro_measured *a, const repro_measured *b) {
  double kernels = (double)a->counters.kernel_ps, transfers = (double)a->counters.transfer_ps;
  return over(fmin(kernels, transfers), kernels + transfers);
}

double repro_transfer_share(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.transfer_ps, (double)a->counters.kernel_ps + (double)a->counters.transfer_ps);
}

/* What a copying program leaves out, results and scratch memory, takes the link as well, at the rate of its copies. */
static double all_copied_ps(const repro_measured *m) {
  double footprint = (double)m->counters.footprint_bytes, copied = (double)m->counters.h2d_bytes;
  double left_out = footprint > copied ? footprint - copied : 0;
  return (double)m->counters.time_ps + left_out * over((double)m->counters.h2d_busy_ps, copied);
}

double repro_time_over_all_copied(const repro_measured *a, const repro_measured *b) {
  return over((double)a->counters.time_ps, all_copied_ps(b));
}

double repro_speed_over_all_copied(const repro_measured *a, const repro_measured *b) {
  return over(all_copied_ps(b), (double)a->counters.time_ps);
}

bool repro_is_gain(repro_quantity quantity) {
  return quantity == repro_time_ratio || quantity == repro_speedup || quantity == repro_kernel_time_ratio ||
         quantity == repro_kernel_speedup || quantity == repro_time_over_all_copied ||
         quantity == repro_speed_over_all_copied;
}
