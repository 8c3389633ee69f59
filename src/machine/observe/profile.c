/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the program in which it is profiled (profile.h). Peaks are no sums: a range begins with what there is, and
 * the highest of all ranges is reported; of tiers below GPU memory that of the whole program. */
#include "machine/observe/profile.h"

#include <stdlib.h>
#include <string.h>

#include "machine/host/host.h"
#include "machine/host/streams.h"
#include "machine/host/tier_store.h"
#include "machine/observe/observer.h"

void profile_free(profile *p) {
  free(p->pending.items);
  free(p->kernels.items);
  free(p->allocations.items);
}

/* ---- offsets ---- */

/* All but peaks. */
static void move(sim_counters *offset, const sim_counters *counter, bool start) {
  const uint64_t footprint = offset->footprint_bytes, resident = offset->resident_peak_bytes;
  if (start) sim_counters_subtract(offset, counter);
  else sim_counters_add(offset, counter);
  offset->footprint_bytes = footprint;
  offset->resident_peak_bytes = resident;
}

static void move_tiers(sim_tiers *offsets, const sim_tiers *counted, bool start) {
  const uint64_t sign = start ? UINT64_MAX : 1;
  for (uint32_t i = 0; i < counted->count; i++) {
#define X(name, unit, help) offsets->of[i].name += sign * counted->of[i].name;
#include "machine/observe/tiers.def"
#undef X
  }
}

static void move_parts(profile *p, bool start) {
  observer *o = p->observer;
  while (p->kernels.count < o->kernels.count) FF_PUSH(&p->kernels, (sim_counters){0});
  while (p->allocations.count < o->allocations.count) FF_PUSH(&p->allocations, (sim_counters){0});
  for (uint32_t i = 0; i < o->kernels.count; i++) {
    sim_counters counted;
    counters_of_all(o, i, &counted);
    move(&p->kernels.items[i], &counted, start);
  }
  for (size_t i = 0; i < o->allocations.count; i++)
    move(&p->allocations.items[i], &o->allocations.items[i]->counters, start);
  if (o->lines) lines_profile(o->lines, start);
}

/* ---- peaks ---- */

static uint64_t resident_now(const pager *p) { return p->memory - p->free; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void move_peaks(profile *p, const sim_counters *now, bool start) {
  if (start) {
    p->observer->counters.footprint_bytes = p->host->budget->mapped_raw;
    p->pager->resident_peak = resident_now(p->pager);
    return;
  }
  p->run.footprint_bytes = larger(p->run.footprint_bytes, now->footprint_bytes);
  p->run.resident_peak_bytes = larger(p->run.resident_peak_bytes, now->resident_peak_bytes);
}

/* ---- marks ---- */

static void take_effect(profile *p, const profile_mark *mark) {
  sim_counters now;
  sim_tiers tiers = {0};
  p->totals(p->context, larger(mark->clock, mark->end), &now);
  tier_store_result(p->tiers, &tiers);
  now.host_api_ps = mark->host_api_ps;
  now.host_wait_ps = mark->host_wait_ps;
  move(&p->run, &now, mark->start);
  move_tiers(&p->tier_offsets, &tiers, mark->start);
  move_parts(p, mark->start);
  move_peaks(p, &now, mark->start);
  p->came_back += (mark->start ? UINT64_MAX : 1) * p->pager->came_back;
  if (!mark->start) p->came_first = p->pager->came_first + p->pager->zeroed_first;
  p->inside = mark->start;
  p->ranges += mark->start;
  if (p->observer->history) history_pause(p->observer->history, !mark->start);
}

static void take_what_is_due(profile *p) {
  while (p->pending.count && !p->pending.items[0].left) {
    const profile_mark mark = p->pending.items[0];
    memmove(p->pending.items, p->pending.items + 1, --p->pending.count * sizeof mark);
    take_effect(p, &mark);
  }
}

void profile_call(profile *p, bool start) {
  if (!p->asked || start == p->called) return;
  p->called = start;
  p->made++;
  FF_PUSH(&p->pending, ((profile_mark){.start = start,
                                       .left = p->streams->unfinished,
                                       .clock = p->host->clock,
                                       .end = p->streams->end,
                                       .host_api_ps = p->observer->counters.host_api_ps,
                                       .host_wait_ps = p->observer->counters.host_wait_ps}));
  take_what_is_due(p);
}

void profile_operation_over(profile *p, uint32_t made, ps time) {
  for (size_t i = 0; i < p->pending.count; i++) {
    profile_mark *mark = &p->pending.items[i];
    if (made + p->pending.count > p->made + i) continue; /* the operation was called behind the mark */
    FF_CHECK(mark->left);
    mark->left--;
    mark->end = larger(mark->end, time);
  }
  take_what_is_due(p);
}

/* ---- what is reported ---- */

static void report(const profile *p, const sim_counters *offset, sim_counters *counter) {
  const uint64_t footprint = counter->footprint_bytes, resident = counter->resident_peak_bytes;
  if (!p->inside) *counter = (sim_counters){0};
  if (offset) sim_counters_add(counter, offset);
  counter->footprint_bytes = footprint;
  counter->resident_peak_bytes = resident;
}

void profile_run(const profile *p, sim_counters *run) {
  if (!p->asked) return;
  const uint64_t footprint = p->inside ? run->footprint_bytes : 0, resident = p->inside ? run->resident_peak_bytes : 0;
  report(p, &p->run, run);
  run->footprint_bytes = larger(p->run.footprint_bytes, footprint);
  run->resident_peak_bytes = larger(p->run.resident_peak_bytes, resident);
}

void profile_kernel(const profile *p, size_t number, sim_counters *kernel) {
  if (p->asked) report(p, number < p->kernels.count ? &p->kernels.items[number] : NULL, kernel);
}

void profile_allocation(const profile *p, size_t number, sim_counters *allocation) {
  if (p->asked) report(p, number < p->allocations.count ? &p->allocations.items[number] : NULL, allocation);
}

void profile_paging(const profile *p, uint64_t *came_back, uint64_t *came_first) {
  if (!p->asked) return;
  *came_back = p->came_back + (p->inside ? *came_back : 0);
  if (!p->inside) *came_first = p->came_first;
}

void profile_tiers(const profile *p, sim_tiers *tiers) {
  for (uint32_t i = 0; p->asked && i < tiers->count; i++) {
    sim_tier *t = &tiers->of[i];
    const sim_tier *offset = &p->tier_offsets.of[i];
    const uint64_t peak = t->peak_bytes;
#define X(name, unit, help) t->name = offset->name + (p->inside ? t->name : 0);
#include "machine/observe/tiers.def"
#undef X
    t->peak_bytes = peak;
  }
}
