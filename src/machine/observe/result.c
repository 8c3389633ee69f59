/* SPDX-License-Identifier: Apache-2.0 */
/* Results: ownership, and the ratios that reports show. */
#include "machine/observe/result.h"

#include <stdlib.h>

#include "base/memory.h"
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

void sim_counters_add(sim_counters *to, const sim_counters *more) {
#define X(name, unit, help) to->name += more->name;
#include "machine/observe/counters.def"
#undef X
}

void sim_counters_subtract(sim_counters *to, const sim_counters *less) {
#define X(name, unit, help) to->name -= less->name;
#include "machine/observe/counters.def"
#undef X
}

static bool did_something(const sim_kernel_result *k) {
#define X(name, unit, help) \
  if (k->counters.name) return true;
#include "machine/observe/counters.def"
#undef X
  return false;
}

/* What names a kernel names one that did something. */
static void number_anew(sim_result *result, const uint32_t *number) {
  sim_history *h = result->history;
  for (size_t i = 0; h && i < h->kernels.count; i++) h->kernels.items[i].kernel = number[h->kernels.items[i].kernel];
  for (size_t i = 0; h && i < h->blocks.count; i++) h->blocks.items[i].kernel = number[h->blocks.items[i].kernel];
  for (uint32_t i = 0; i < result->line_count; i++) result->lines[i].kernel = number[result->lines[i].kernel];
}

static bool is_named(const sim_result *result, uint32_t kernel) {
  const sim_history *h = result->history;
  for (size_t i = 0; h && i < h->kernels.count; i++)
    if (h->kernels.items[i].kernel == kernel) return true;
  for (size_t i = 0; h && i < h->blocks.count; i++)
    if (h->blocks.items[i].kernel == kernel) return true;
  return false;
}

void sim_result_drop_idle(sim_result *result) {
  uint32_t *number = ff_alloc((result->kernel_count + (size_t)1) * sizeof *number), kept = 0;
  for (uint32_t i = 0; i < result->kernel_count; i++) {
    number[i] = kept;
    if (did_something(&result->kernels[i]) || is_named(result, i)) result->kernels[kept++] = result->kernels[i];
  }
  result->kernel_count = kept;
  number_anew(result, number);
  free(number);
}

double sim_link_utilisation(const sim_counters *c) {
  uint64_t busy = c->h2d_busy_ps > c->d2h_busy_ps ? c->h2d_busy_ps : c->d2h_busy_ps;
  /* of a range of the program (profile.h) also what was asked for in it and carried behind it */
  if (busy > c->time_ps) busy = c->time_ps;
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
