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
#include "trace/touched.h"

enum { FIRST_STRETCH = 8, LAST_STRETCH = 64, PATIENCE_MAX = 64 };

void sampler_init(sampler *s) {
  FF_PUSH(&s->kinds, (sample_kind){0});
  footprint_open(&s->touched, sample_page_meets, s);
  footprint_open(&s->ahead, sample_page_meets, s);
}

void sampler_free(sampler *s) {
  for (size_t i = 0; i < s->kinds.count; i++) {
    free(s->kinds.items[i].groups.items);
    free(s->kinds.items[i].touched.items);
  }
  free(s->kinds.items);
  sample_forget(s);
  free(s->owed.items);
  footprint_free(&s->touched);
  footprint_free(&s->ahead);
}

void sample_launch_free(sample_launch *launch) {
  if (launch) {
    free(launch->taken.items);
    free(launch->waves.groups.items);
  }
  free(launch);
}

/* ---- kinds ---- */

static bool same_controls(const trace_l2_controls *a, const trace_l2_controls *b) {
  return a->set_aside == b->set_aside && a->bytes == b->bytes && a->share == b->share && a->hit == b->hit &&
         a->miss == b->miss;
}

static bool same_kind(const sample_kind *a, const sample_kind *b) {
  return a->counters == b->counters && a->sms == b->sms && a->blocks == b->blocks && a->kernel == b->kernel &&
         !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) &&
         a->shared_bytes == b->shared_bytes && same_controls(&a->l2, &b->l2);
}

static uint32_t kind_of(sampler *s, const kernel *k) {
  const trace_launch *l = k->launch;
  sample_kind wanted = {.counters = k->counters,
                        .sms = k->sms,
                        .blocks = k->blocks,
                        .kernel = l->kernel_index,
                        .grid = {l->grid[0], l->grid[1], l->grid[2]},
                        .block = {l->block[0], l->block[1], l->block[2]},
                        .shared_bytes = k->block_shared,
                        .l2 = l->l2};
  uint64_t hash = (k->blocks * 31 + l->kernel_index) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t *bucket = &s->buckets[hash >> 54];
  for (uint32_t i = *bucket; i; i = s->kinds.items[i].next)
    if (same_kind(&s->kinds.items[i], &wanted)) return i;
  wanted.next = *bucket;
  *bucket = (uint32_t)s->kinds.count;
  FF_PUSH(&s->kinds, wanted);
  return *bucket;
}

/* ---- groups ---- */

bool sample_any_steady(const sample_groups *groups) {
  for (size_t i = 0; i < groups->count; i++)
    if (groups->items[i].steady) return true;
  return false;
}

static bool alike(uint64_t a, uint64_t b) {
  uint64_t more = a > b ? a : b, less = a > b ? b : a;
  return (double)(more - less) <= SAMPLE_ALIKE * (double)more;
}

sample_group *sample_group_of(const sample_groups *groups, const sample_counts *counts) {
  for (size_t i = 0; i < groups->count; i++) {
    sample_group *g = &groups->items[i];
    bool same = true;
#define X(name) same = same && alike(g->counts.name, counts->name);
    SAMPLE_COUNTS(X)
#undef X
    if (same) return g;
  }
  return NULL;
}

/* The group's time is that of a launch with its counts; this one's is longer by so much. */
double sample_scale(const sample_group *g, const sample_counts *counts) {
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

typedef struct spread {
  double least, most, sum;
  uint32_t n;
} spread;

/* Of `n` times in the window: every `step`th, back from that which is `first` before the latest. */
static spread spread_of(const sampler *s, const sample_group *g, uint32_t first, uint32_t step, uint32_t n) {
  double latest = sample_window(s, g, first);
  spread found = {latest, latest, 0, n};
  for (uint32_t i = 0; i < n; i++) {
    double time = sample_window(s, g, first + i * step);
    if (time < found.least) found.least = time;
    if (time > found.most) found.most = time;
    found.sum += time;
  }
  return found;
}

static bool within(spread times, double share) { return times.most - times.least <= share * times.sum / times.n; }

/* How many of the latest times make the group steady: `needed` that are near each other, or, where launches may take
 * turns (`turns`), twice as many of which every second one is; 0: it is not. */
static uint32_t steady_times(const sampler *s, const sample_group *g, bool turns) {
  uint32_t n = s->needed;
  if (g->timed >= n && within(spread_of(s, g, 0, 1, n), SAMPLE_STEADY)) return n;
  if (!turns || g->timed < 2 * n || !within(spread_of(s, g, 0, 1, 2 * n), 2 * SAMPLE_STEADY)) return 0;
  bool both = within(spread_of(s, g, 0, 2, n), SAMPLE_STEADY) && within(spread_of(s, g, 1, 2, n), SAMPLE_STEADY);
  return both ? 2 * n : 0;
}

/* A group that is steady begins with the times that make it so. */
static void settle(sampler *s, sample_group *g, bool turns) {
  uint32_t steady = steady_times(s, g, turns);
  if (g->steady && !steady) s->variance_closed += variance_of(g);
  if (steady && !g->steady) {
    g->n = g->skipped = g->spent = 0;
    g->mean = g->squares = 0;
    g->stretch = FIRST_STRETCH;
    for (uint32_t i = 0; i < steady; i++) add_time(g, sample_window(s, g, i));
  }
  g->steady = steady > 0;
}

static void group_timed(sampler *s, sample_group *g, double time, bool turns) {
  g->window[g->timed++ % (2 * s->needed)] = time;
  if (g->steady) {
    add_time(g, time);
    if (g->spent >= g->stretch && g->stretch < LAST_STRETCH) g->stretch *= 2;
    g->spent = 0;
  }
  settle(s, g, turns);
}

sample_group *sample_timed(sampler *s, sample_groups *groups, const sample_counts *counts, double time, bool turns) {
  sample_group *g = sample_group_of(groups, counts);
  if (!g && groups->count == SAMPLE_GROUPS) return NULL;
  if (!g) {
    FF_PUSH(groups, (sample_group){.counts = *counts});
    g = &groups->items[groups->count - 1];
  }
  group_timed(s, g, time / sample_scale(g, counts), turns);
  return g;
}

void sample_groups_close(sampler *s, sample_groups *groups) {
  for (size_t i = 0; i < groups->count; i++) s->variance_closed += variance_of(&groups->items[i]);
  free(groups->items);
  *groups = (sample_groups){0};
}

void sample_count(sim_counters *c, uint64_t blocks, const sample_counts *counts) {
  c->blocks += blocks;
#define X(name) c->name += counts->name;
  SAMPLE_COUNTS(X)
#undef X
}

/* ---- launches ---- */

uint64_t sample_moved(const sampler *s, const kernel *k) {
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

bool sample_may_skip(const sampler *s, const kernel *k) { return !k->launch->smids && quiet(s) && !may_evict(s); }

bool sample_try(sample_tries *tries) {
  if (!tries->wait) return true;
  tries->wait--;
  return false;
}

void sample_learn(sample_tries *t, bool useful) {
  t->patience = useful ? 0 : !t->patience ? 1 : t->patience < PATIENCE_MAX ? t->patience * 2 : PATIENCE_MAX;
  t->wait = t->patience;
}

/* A launch of this group was read or timed. */
static void note_group(sample_kind *kind, const sample_group *g) {
  size_t index = (size_t)(g - kind->groups.items);
  kind->alike = kind->alike && index == kind->last ? kind->alike + 1 : 1;
  kind->last = index;
}

/* Will the next launch of the kind be skipped, as far as can be foreseen? */
static bool foresees(const sampler *s, const sample_kind *kind) {
  if (kind->alike < s->needed || !kind->touched.count) return false;
  const sample_group *g = &kind->groups.items[kind->last];
  return g->steady && g->spent < g->stretch && sample_still_here(s, kind);
}

static ps time_of(const sample_group *g, const sample_counts *counts) {
  return (ps)(g->mean * sample_scale(g, counts) + 0.5);
}

static void skip(sampler *s, kernel *k, sample_launch *launch, sample_group *g) {
  ps time = time_of(g, &launch->counts);
  g->skipped++;
  g->spent++;
  k->ended = k->began + time;
  s->result.estimated++;
  s->result.estimated_ps += time;
  sample_count(k->counters, k->blocks, &launch->counts);
#define X(name) k->counters->name += g->last.name;
  SAMPLE_ESTIMATED(X)
#undef X
  sample_touch(s, k, launch, k->blocks, k->began, k->ended, true);
}

static void read_launch(sampler *s, kernel *k, sample_launch *launch, sample_kind *kind) {
  if (launch->foreseen) launch->read = sample_read_touched(s, k, launch, &launch->counts);
  if (!launch->touched) launch->read = sample_read(s, k, launch, k->blocks, &launch->counts);
  sample_group *g = launch->read || launch->touched ? sample_group_of(&kind->groups, &launch->counts) : NULL;
  sample_learn(&kind->tries, launch->read && g);
  launch->skipped = launch->later = launch->read && g && g->steady && (g->spent < g->stretch || launch->touched);
  if (launch->skipped) {
    note_group(kind, g);
    sample_note_touched(s, kind);
    skip(s, k, launch, g);
  } else if (launch->touched) {
    kind->alike = 0;
    s->result.without_records++;
    launch->least = g && g->steady ? time_of(g, &launch->counts) : 0;
  }
  /* a recording's footprints may say what its blocks do not do */
  if (launch->ahead || launch->touched) launch->read = false;
}

bool sampler_begin(sampler *s, kernel *k, ps time) {
  sample_launch *launch = k->sampled = ff_alloc(sizeof *launch);
  launch->alone = !s->dispatch->kernels.running && time >= s->dispatch->kernels.until;
  launch->begun = ++s->begun;
  launch->kind = kind_of(s, k);
  sample_kind *kind = &s->kinds.items[launch->kind];
  bool may = launch->alone && sample_any_steady(&kind->groups) && sample_may_skip(s, k) && sample_try(&kind->tries);
  launch->foreseen = may && foresees(s, kind);
  trace_reader_answer(s->reader, k->launch, launch->foreseen);
  if (may) read_launch(s, k, launch, kind);
  if (!launch->skipped && s->dispatch->flushed) sample_forget(s);
  if (!launch->skipped) sample_settle(s);
  launch->before = *k->counters;
  launch->moved = sample_moved(s, k);
  return launch->skipped;
}

void sampler_end(sampler *s, kernel *k) {
  sample_launch *launch = k->sampled;
  const sim_counters *c = k->counters;
  s->result.timed++;
  k->ended += sample_waves_end(s, k);
  if (launch->touched) {
    launch->later = true;
    if (k->ended < k->began + launch->least) k->ended = k->began + launch->least;
    return;
  }
  if (!launch->alone || s->begun != launch->begun || sample_moved(s, k) != launch->moved || !quiet(s)) {
    s->kinds.items[launch->kind].alike = 0;
    return;
  }
  sample_counts counts;
#define X(name) counts.name = c->name - launch->before.name;
  SAMPLE_COUNTS(X)
#undef X
  FF_CHECK_DEEP(!launch->read || !memcmp(&counts, &launch->counts, sizeof counts));
  sample_group *g = sample_timed(s, &s->kinds.items[launch->kind].groups, &counts, (double)(k->ended - k->began), true);
  if (!g) return;
  note_group(&s->kinds.items[launch->kind], g);
#define X(name) g->last.name = c->name - launch->before.name;
  SAMPLE_ESTIMATED(X)
#undef X
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
