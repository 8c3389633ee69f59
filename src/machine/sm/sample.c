/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches are timed, and what the others take: kinds, groups, and the interval of what is estimated.
 *
 * A steady group's launch takes the mean of those that were timed since it is steady, by warp instruction. The interval
 * is that of a sum of `skipped` new times, if times are independent and normal:
 *
 *     variance = sum over groups of t(n - 1)^2 * s^2 * (skipped + skipped^2 / n),   half = sqrt(variance)
 *
 * t(n - 1): 97.5 % quantile of Student's t; s: standard deviation of the n times. */
#include "machine/sm/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/memory/far_fault.h"
#include "machine/observe/observer.h"
#include "machine/sm/dispatch.h"
#include "paging/pager.h"

enum { FIRST_STRETCH = 8, LAST_STRETCH = 64, PATIENCE_MAX = 64 };

void sampler_init(sampler *s) { FF_PUSH(&s->kinds, (sample_kind){0}); }

void sampler_free(sampler *s) {
  for (size_t i = 0; i < s->kinds.count; i++) free(s->kinds.items[i].groups.items);
  free(s->kinds.items);
}

void sample_launch_free(sample_launch *launch) {
  if (launch) free(launch->taken);
  free(launch);
}

/* ---- kinds ---- */

static bool same_kind(const sample_kind *a, const sample_kind *b) {
  return a->counters == b->counters && a->sms == b->sms && a->blocks == b->blocks && a->kernel == b->kernel &&
         !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) &&
         a->shared_bytes == b->shared_bytes;
}

static uint32_t kind_of(sampler *s, const kernel *k) {
  const trace_launch *l = k->launch;
  sample_kind wanted = {.counters = k->counters,
                        .sms = k->sms,
                        .blocks = k->blocks,
                        .kernel = l->kernel_index,
                        .grid = {l->grid[0], l->grid[1], l->grid[2]},
                        .block = {l->block[0], l->block[1], l->block[2]},
                        .shared_bytes = k->block_shared};
  uint64_t hash = (k->blocks * 31 + l->kernel_index) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t *bucket = &s->buckets[hash >> 54];
  for (uint32_t i = *bucket; i; i = s->kinds.items[i].next)
    if (same_kind(&s->kinds.items[i], &wanted)) return i;
  wanted.next = *bucket;
  *bucket = (uint32_t)s->kinds.count;
  FF_PUSH(&s->kinds, wanted);
  return *bucket;
}

static bool any_steady(const sample_kind *kind) {
  for (size_t i = 0; i < kind->groups.count; i++)
    if (kind->groups.items[i].steady) return true;
  return false;
}

/* ---- groups ---- */

static bool alike(uint64_t a, uint64_t b) {
  uint64_t more = a > b ? a : b, less = a > b ? b : a;
  return (double)(more - less) <= SAMPLE_ALIKE * (double)more;
}

static sample_group *group_of(sample_kind *kind, const sample_counts *counts) {
  for (size_t i = 0; i < kind->groups.count; i++) {
    sample_group *g = &kind->groups.items[i];
    bool same = true;
#define X(name) same = same && alike(g->counts.name, counts->name);
    SAMPLE_COUNTS(X)
#undef X
    if (same) return g;
  }
  return NULL;
}

/* The group's time is that of a launch with its counts; this one's is longer by so much. */
static double scale_of(const sample_group *g, const sample_counts *counts) {
  return g->counts.warp_instructions ? (double)counts->warp_instructions / (double)g->counts.warp_instructions : 1;
}

static double student(uint64_t freedom) {
  static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                     2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  enum { KNOWN = sizeof quantiles / sizeof *quantiles };
  return freedom <= KNOWN ? quantiles[freedom - 1] : quantiles[KNOWN - 1]; /* no less than it is */
}

static double variance_of(const sample_group *g) {
  if (!g->steady || !g->skipped || g->n < 2) return 0;
  double n = (double)g->n, skipped = (double)g->skipped, t = student(g->n - 1);
  return t * t * g->squares / (n - 1) * (skipped + skipped * skipped / n);
}

static void add_time(sample_group *g, double time) {
  double distance = time - g->mean;
  g->mean += distance / (double)++g->n;
  g->squares += distance * (time - g->mean);
}

/* A group that is steady begins with the times in its window. */
static void settle(sampler *s, sample_group *g) {
  double least = g->window[0], most = g->window[0], sum = 0;
  for (uint32_t i = 0; i < s->needed; i++) {
    if (g->window[i] < least) least = g->window[i];
    if (g->window[i] > most) most = g->window[i];
    sum += g->window[i];
  }
  bool steady = g->timed >= s->needed && most - least <= SAMPLE_STEADY * sum / s->needed;
  if (g->steady && !steady) s->variance_closed += variance_of(g);
  if (steady && !g->steady) {
    g->n = g->skipped = g->spent = 0;
    g->mean = g->squares = 0;
    g->stretch = FIRST_STRETCH;
    for (uint32_t i = 0; i < s->needed; i++) add_time(g, g->window[i]);
  }
  g->steady = steady;
}

static void group_timed(sampler *s, sample_group *g, double time) {
  g->window[g->timed++ % s->needed] = time;
  if (g->steady) {
    add_time(g, time);
    if (g->spent >= g->stretch && g->stretch < LAST_STRETCH) g->stretch *= 2;
    g->spent = 0;
  }
  settle(s, g);
}

/* ---- launches ---- */

/* What has moved so far, or may have made a launch's time another: equal before and after, if nothing did. */
static uint64_t moved(const sampler *s, const kernel *k) {
  const pager *p = s->pager;
  return p->moved_in + p->moved_out + p->filled + p->dropped + p->cleaned + p->throttled + p->pinned +
         k->counters->faults + k->counters->remote_bytes;
}

/* Pages may have to go for others: which ones depends on when each was used, to the order within a launch. */
static bool may_evict(const sampler *s) { return s->observer->paged && s->pager->mapped > s->pager->memory; }

/* Nothing is on its way, and nothing is due. */
static bool quiet(const sampler *s) {
  const pager *p = s->pager;
  return !p->flight_count && !p->buffer_live && !p->cleaning.bytes && p->pins_due == UINT64_MAX &&
         s->faults->batch == BATCH_NONE;
}

static bool may_skip(const sampler *s, const kernel *k, sample_kind *kind) {
  if (!any_steady(kind) || k->launch->smids || !quiet(s) || may_evict(s)) return false;
  if (!kind->wait) return true;
  kind->wait--;
  return false;
}

/* A stream was read in vain, or not: the next ones are read less often, or always. */
static void learn(sample_kind *kind, bool useful) {
  kind->patience = useful ? 0 : !kind->patience ? 1 : kind->patience < PATIENCE_MAX ? kind->patience * 2 : PATIENCE_MAX;
  kind->wait = kind->patience;
}

/* What the caches, the TLBs and the DRAM count is taken from the group's last launch that was timed. */
static void count_skipped(sim_counters *c, const sample_group *g, const kernel *k, const sample_counts *counts) {
  c->blocks += k->blocks;
#define X(name) c->name += counts->name;
  SAMPLE_COUNTS(X)
#undef X
#define X(name) c->name += g->last.name;
  X(l1_hits)
  X(l1_misses)
  X(l2_hits)
  X(l2_misses)
  X(dram_read_bytes)
  X(dram_write_bytes)
  X(dram_row_hits)
  X(dram_row_misses)
  X(tlb_lookups)
  X(tlb_misses) X(tlb_merged) X(tlb_l2_hits) X(tlb_evictions) X(walks) X(walk_cache_hits) X(warp_stall_ps)
#undef X
}

static void skip(sampler *s, kernel *k, sample_launch *launch, sample_group *g) {
  ps time = (ps)(g->mean * scale_of(g, &launch->counts) + 0.5);
  g->skipped++;
  g->spent++;
  k->ended = k->began + time;
  s->result.estimated++;
  s->result.estimated_ps += time;
  count_skipped(k->counters, g, k, &launch->counts);
  sample_touch(s, k, launch);
}

bool sampler_begin(sampler *s, kernel *k, ps time) {
  sample_launch *launch = k->sampled = ff_alloc(sizeof *launch);
  launch->alone = !s->dispatch->kernels.running && time >= s->dispatch->kernels.until;
  launch->begun = ++s->begun;
  launch->kind = kind_of(s, k);
  sample_kind *kind = &s->kinds.items[launch->kind];
  if (launch->alone && may_skip(s, k, kind)) {
    bool here = sample_read(s, k, launch);
    sample_group *g = here ? group_of(kind, &launch->counts) : NULL;
    learn(kind, g != NULL);
    launch->skipped = g && g->steady && g->spent < g->stretch;
    if (launch->skipped) skip(s, k, launch, g);
  }
  launch->before = *k->counters;
  launch->moved = moved(s, k);
  return launch->skipped;
}

void sampler_end(sampler *s, kernel *k) {
  const sample_launch *launch = k->sampled;
  sim_counters *c = k->counters;
  s->result.timed++;
  if (!launch->alone || s->begun != launch->begun || moved(s, k) != launch->moved || !quiet(s)) return;
  sample_counts counts;
#define X(name) counts.name = c->name - launch->before.name;
  SAMPLE_COUNTS(X)
#undef X
  FF_CHECK_DEEP(!launch->read || !memcmp(&counts, &launch->counts, sizeof counts));
  sample_kind *kind = &s->kinds.items[launch->kind];
  sample_group *g = group_of(kind, &counts);
  if (!g && kind->groups.count == SAMPLE_GROUPS) return;
  if (!g) {
    FF_PUSH(&kind->groups, (sample_group){.counts = counts});
    g = &kind->groups.items[kind->groups.count - 1];
  }
#define X(name, unit, help) g->last.name = c->name - launch->before.name;
#include "machine/observe/counters.def"
#undef X
  group_timed(s, g, (double)(k->ended - k->began) / scale_of(g, &counts));
}

sim_sampling sampler_result(const sampler *s) {
  sim_sampling result = s->result;
  double variance = s->variance_closed;
  for (size_t i = 1; i < s->kinds.count; i++)
    for (size_t j = 0; j < s->kinds.items[i].groups.count; j++)
      variance += variance_of(&s->kinds.items[i].groups.items[j]);
  result.interval_ps = (uint64_t)(sqrt(variance) + 0.5);
  return result;
}
