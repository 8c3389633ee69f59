/* SPDX-License-Identifier: Apache-2.0 */
/* Results: ownership, and the ratios that reports show. */
#include "machine/result.h"

#include <stdlib.h>

#include "machine/history.h"

void sim_result_free(sim_result *result) {
  if (!result) return;
  free(result->kernels);
  free(result->allocations);
  history_free(result->history);
  result->history = NULL;
  result->kernels = NULL;
  result->allocations = NULL;
  result->kernel_count = result->allocation_count = 0;
}

double sim_link_utilisation(const sim_counters *c) {
  uint64_t busy = c->h2d_busy_ps > c->d2h_busy_ps ? c->h2d_busy_ps : c->d2h_busy_ps;
  return c->time_ps ? (double)busy / (double)c->time_ps : 0;
}

double sim_tlb_miss_rate(const sim_counters *c) {
  return c->tlb_lookups ? (double)c->tlb_misses / (double)c->tlb_lookups : 0;
}
