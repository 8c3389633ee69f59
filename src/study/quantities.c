/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of reproductions take from a program's counters: one short formula each, REPRO_NONE where it divides by zero. */
#include "study/reproduce.h"

static double over(double a, double b) { return b > 0 ? a / b : REPRO_NONE; }

double repro_time_ratio(const sim_counters *a, const sim_counters *b) { return over((double)a->time_ps, (double)b->time_ps); }
double repro_speedup(const sim_counters *a, const sim_counters *b) { return over((double)b->time_ps, (double)a->time_ps); }
double repro_time_lost(const sim_counters *a, const sim_counters *b) { return 1 - repro_speedup(a, b); }
double repro_time_saved(const sim_counters *a, const sim_counters *b) { return 1 - repro_time_ratio(a, b); }
double repro_kernel_time_ratio(const sim_counters *a, const sim_counters *b) { return over((double)a->kernel_ps, (double)b->kernel_ps); }
double repro_kernel_speedup(const sim_counters *a, const sim_counters *b) { return over((double)b->kernel_ps, (double)a->kernel_ps); }
double repro_kernel_saved(const sim_counters *a, const sim_counters *b) { return 1 - over((double)a->kernel_ps, (double)b->kernel_ps); }
double repro_footprint(const sim_counters *a, const sim_counters *b) { return (double)a->footprint_bytes / 1e6; }
double repro_faults(const sim_counters *a, const sim_counters *b) { return (double)a->faults; }
double repro_tlb_misses(const sim_counters *a, const sim_counters *b) { return over((double)a->tlb_misses, (double)a->tlb_lookups); }
double repro_bytes_ratio(const sim_counters *a, const sim_counters *b) { return over((double)a->h2d_bytes, (double)b->h2d_bytes); }
double repro_launch_microseconds(const sim_counters *a, const sim_counters *b) { return over((double)a->time_ps / 1e6, (double)a->launches); }

double repro_launch_bandwidth(const sim_counters *a, const sim_counters *b) {
  return over((double)a->footprint_bytes, repro_launch_microseconds(a, b)); /* bytes per us are MB/s */
}

/* Under paging nothing moves to the GPU but while a kernel runs. */
double repro_link_used(const sim_counters *a, const sim_counters *b) { return over((double)a->h2d_busy_ps, (double)a->kernel_ps); }

double repro_overlap_gain(const sim_counters *a, const sim_counters *b) {
  double kernels = (double)a->kernel_ps, transfers = (double)a->transfer_ps;
  return over(kernels + transfers, fmax(kernels, transfers)) - 1;
}

double repro_transfer_share(const sim_counters *a, const sim_counters *b) {
  return over((double)a->transfer_ps, (double)a->kernel_ps + (double)a->transfer_ps);
}
