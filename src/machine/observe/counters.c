/* SPDX-License-Identifier: Apache-2.0 */
/* Where the counters are kept: per kernel and per allocation while the simulation runs; the run's totals are made from
 * them when someone asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/observe/observer.h"

static sim_kernel_result *find_kernel(const observer *o, const char *name, const char *range) {
  for (size_t i = o->kernels.count; i-- > 0;)
    if (!strcmp(o->kernels.items[i]->name, name) && !strcmp(o->kernels.items[i]->range, range))
      return o->kernels.items[i];
  return NULL;
}

static sim_counters *launched_at(sim_kernel_result *k, const char *site) {
  bool first = !k->site[0];
  if (first) snprintf(k->site, sizeof k->site, "%s", site);
  if (first || !site[0] || k->others || !strcmp(k->site, site)) return &k->counters;
  size_t length = strlen(k->site);
  snprintf(k->site + length, sizeof k->site - length, " and others");
  k->others = true;
  return &k->counters;
}

sim_counters *counters_of_kernel(observer *o, const trace_launch *launch) {
  sim_kernel_result *same = find_kernel(o, launch->kernel, launch->range);
  if (same) return launched_at(same, launch->site);
  const char *range = launch->range;
  if (range[0] && o->kernels.count >= KERNELS_SHOWN) {
    range = "(further ranges)";
    same = find_kernel(o, launch->kernel, range);
  }
  if (same) return launched_at(same, launch->site);
  sim_kernel_result *k = ff_alloc(sizeof *k);
  snprintf(k->name, sizeof k->name, "%s", launch->kernel);
  snprintf(k->range, sizeof k->range, "%s", range);
  FF_PUSH(&o->kernels, k);
  return launched_at(k, launch->site);
}

uint32_t counters_of_allocation(observer *o, const trace_op *op) {
  bool full = o->allocations.count > ALLOCATIONS_SHOWN; /* the last one stands for all further ones */
  if (o->allocations.count && full) {
    sim_allocation_result *rest = o->allocations.items[ALLOCATIONS_SHOWN];
    snprintf(rest->name, sizeof rest->name, "(all further allocations)");
    rest->bytes += op->alloc.bytes;
    return ALLOCATIONS_SHOWN;
  }
  sim_allocation_result *a = ff_alloc(sizeof *a);
  snprintf(a->name, sizeof a->name, "%s", op->alloc.name);
  a->id = op->alloc.id;
  a->address = op->alloc.address;
  a->bytes = a->counters.footprint_bytes = op->alloc.bytes;
  a->managed = op->alloc.memory == TRACE_MEMORY_MANAGED;
  a->pinned = op->alloc.memory == TRACE_MEMORY_PINNED;
  FF_PUSH(&o->allocations, a);
  return (uint32_t)o->allocations.count - 1;
}

/* The latest first: it was asked for a moment ago. */
static uint32_t number_of(const observer *o, const sim_counters *counters) {
  uint32_t i = (uint32_t)o->kernels.count - 1;
  while (&o->kernels.items[i]->counters != counters) i--;
  return i;
}

kernel_lines *lines_of_kernel(observer *o, const trace_launch *launch, sim_counters *counters) {
  return o->lines ? lines_of_launch(o->lines, launch, number_of(o, counters), counters) : NULL;
}

void counters_of_all(const observer *o, uint32_t number, sim_counters *total) {
  *total = o->kernels.items[number]->counters;
  if (o->lines) lines_add(o->lines, number, total);
}

/* Counted per kernel only; everything else in the run's counters is counted there directly. */
static void add_kernel(sim_counters *total, const sim_counters *k) {
#define ADD(name) total->name += k->name;
  /* clang-format off */
  ADD(launches) ADD(blocks) ADD(warp_instructions) ADD(accesses) ADD(load_accesses) ADD(store_accesses)
  ADD(atomic_accesses) ADD(lines) ADD(sectors) ADD(l1_hits) ADD(l1_misses) ADD(l2_hits) ADD(l2_misses)
  ADD(dram_read_bytes) ADD(dram_write_bytes) ADD(dram_row_hits) ADD(dram_row_misses) ADD(tlb_lookups) ADD(tlb_misses) ADD(tlb_merged)
  ADD(tlb_l2_hits) ADD(tlb_evictions)
  ADD(walks) ADD(walk_cache_hits) ADD(faults) ADD(faults_merged) ADD(faults_throttled) ADD(fault_wait_ps)
  ADD(refaults) ADD(undeclared_faults) ADD(prefetched_bytes) ADD(remote_bytes) ADD(warp_stall_ps)
  ADD(spill_stores) ADD(spill_loads)
/* clang-format on */
#undef ADD
}

void counters_of_run(const observer *o, sim_counters *total) {
  *total = o->counters;
  for (uint32_t i = 0; i < o->kernels.count; i++) {
    sim_counters kernel;
    counters_of_all(o, i, &kernel);
    add_kernel(total, &kernel);
  }
}

void observer_free(observer *o) {
  for (size_t i = 0; i < o->kernels.count; i++) free(o->kernels.items[i]);
  for (size_t i = 0; i < o->allocations.count; i++) free(o->allocations.items[i]);
  free(o->kernels.items);
  free(o->allocations.items);
  history_free(o->history);
  lines_free(o->lines);
}
