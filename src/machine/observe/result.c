/* SPDX-License-Identifier: Apache-2.0 */
/* Results: ownership, and the ratios that reports show. */
#include "machine/observe/result.h"

#include <stdlib.h>

#include "machine/observe/history.h"

void sim_result_free(sim_result *result) {
  if (!result) return;
  free(result->kernels);
  free(result->allocations);
  for (uint32_t i = 0; i < result->line_count; i++) {
    free(result->lines[i].file);
    free(result->lines[i].text);
  }
  free(result->lines);
  free(result->codes);
  result->lines = NULL;
  result->codes = NULL;
  result->line_count = result->code_count = 0;
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

double sim_thrashes(const sim_result *result) {
  if (!result->came_first || result->came_back < UINT64_C(1) << 20 || result->came_back / 2 < result->came_first)
    return 0;
  return (double)(result->came_back + result->came_first) / (double)result->came_first;
}
