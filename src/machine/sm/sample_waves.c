/* SPDX-License-Identifier: Apache-2.0 */
/* Inside one launch that is timed: which waves of its blocks are skipped, and how long these take.
 *
 * A wave is as many blocks as the GPU runs at a time. Waves are grouped as launches are: by what they count, and a
 * group is steady when its last timed waves took nearly the same time. Then the blocks that would start next are read,
 * a wave at a time, and skipped as long as they are like a steady group, touch only what is resident, and are not due
 * to be timed again.
 *
 * Nothing waits for a skipped wave, and no clock goes on: the blocks that run when it is skipped stay as they are, in
 * caches, queues and memory that they share with as many others as before, and the next ones that start are those
 * behind it. So what is timed never runs on a GPU that is emptier than it would be. The launch is simulated as one of
 * fewer blocks, and at its end the skipped waves' time is added (k->ended):
 *
 *     blocks over == timed + skipped,   a launch's time == simulated + debt
 *     debt == sum over stretches of skipped waves: waves * (time of a wave before + time of a wave after) / 2
 *
 * Of the two waves behind a stretch the first is of blocks that began before it, and is no measure. */
#include "machine/sm/sample.h"
#include "paging/pager.h"
#include "trace/ahead.h"

/* The launch is worth it if one wave can be skipped between the first one, those that must be timed, and the last. */
static uint64_t least_waves(const sampler *s) { return s->needed + 4; }

/* Its skipped waves lie between what its timed ones took before and what this one took. */
static void close_stretch(const sampler *s, sample_waves *v, sample_group *g) {
  double latest = sample_window(s, g, 0);
  v->debt += g->open * (g->level + latest) / 2;
  g->open = 0;
}

static double window_mean(const sampler *s, const sample_group *g) {
  double sum = 0;
  for (uint32_t i = 0; i < s->needed; i++) sum += sample_window(s, g, i);
  return sum / s->needed;
}

/* As many blocks as a wave has. Long waves end where a recording has the next footprint: between the frames of
 * blocks. */
static uint64_t wave_blocks(const sample_waves *v, const kernel *k) {
  enum { LONG = 10 * TRACE_FRAME_BLOCKS };
  if (v->length < LONG) return v->length;
  uint64_t end = k->next_block + v->length + TRACE_FRAME_BLOCKS / 2;
  return end / TRACE_FRAME_BLOCKS * TRACE_FRAME_BLOCKS - k->next_block;
}

/* What a whole wave of such blocks would count. */
static sample_counts whole_wave(const sample_waves *v, const sample_counts *counts, uint64_t blocks) {
  sample_counts whole;
#define X(name) whole.name = (uint64_t)((unsigned __int128)counts->name * v->length / blocks);
  SAMPLE_COUNTS(X)
#undef X
  return whole;
}

static void skip_wave(sampler *s, kernel *k, sample_group *g, const sample_counts *counts, uint64_t blocks) {
  sample_launch *launch = k->sampled;
  sample_waves *v = &launch->waves;
  ps now = s->pager->now;
  if (g->open == 0) g->level = window_mean(s, g);
  g->open += sample_scale(g, counts);
  g->skipped++;
  g->spent++;
  v->skipped += blocks;
  sample_count(k->counters, blocks, counts);
  sample_touch(s, k, launch, blocks, now, now, false);
}

/* Skips what may be. true: something was. */
static bool skip_waves(sampler *s, kernel *k) {
  sample_waves *v = &k->sampled->waves;
  bool any = false;
  while (sample_any_steady(&v->groups)) {
    uint64_t blocks = wave_blocks(v, k);
    if (k->blocks - k->next_block < blocks + v->length || !sample_try(&v->tries)) break;
    sample_counts counts = {0};
    bool here = sample_read(s, k, k->sampled, blocks, &counts);
    sample_counts whole = whole_wave(v, &counts, blocks);
    sample_group *g = here ? sample_group_of(&v->groups, &whole) : NULL;
    sample_learn(&v->tries, g != NULL);
    if (!g || !g->steady || g->spent >= g->stretch) break;
    skip_wave(s, k, g, &counts, blocks);
    any = true;
  }
  return any;
}

/* What lies between the wave before and this one: a wave's time, and its counts. */
static void measure(sampler *s, const kernel *k, sample_waves *v) {
  sample_counts counts;
#define X(name) counts.name = (v->sums.counts.name - v->last.counts.name) / v->length;
  SAMPLE_COUNTS(X)
#undef X
  sample_group *g =
      sample_timed(s, &v->groups, &counts, (double)(v->sums.time - v->last.time) / (double)v->length, false);
  if (g) close_stretch(s, v, g);
  if (!g || !g->steady) return;
#define X(name) v->of_steady.name += v->sums.estimates.name - v->last.estimates.name;
  SAMPLE_ESTIMATED(X)
#undef X
  v->steady++;
}

static void wave_over(sampler *s, kernel *k) {
  sample_waves *v = &k->sampled->waves;
  bool may = sample_may_skip(s, k);
  uint64_t moved = sample_moved(s, k);
  if (v->measured && may && moved == v->moved) measure(s, k, v);
  v->last = v->sums;
  v->sums = (sample_sums){0};
  v->measured = !may || !skip_waves(s, k);
  v->moved = moved;
  v->due += v->length;
}

void sampler_block(sampler *s, kernel *k, ps over) {
  sample_launch *launch = k->sampled;
  sample_waves *v = &launch->waves;
  /* it shares the GPU with another kernel */
  if (!launch->alone || launch->touched || s->begun != launch->begun) return;
  if (!v->timed++) {
    v->length = k->next_block <= k->blocks / least_waves(s) ? k->next_block : 0;
    v->due = v->length;
  }
  if (!v->length) return;
  v->sums.time += over - k->began;
#define X(name) v->sums.counts.name += k->counters->name - launch->before.name;
  SAMPLE_COUNTS(X)
#undef X
#define X(name) v->sums.estimates.name += k->counters->name - launch->before.name;
  SAMPLE_ESTIMATED(X)
#undef X
  if (v->timed == v->due) wave_over(s, k);
}

ps sample_waves_end(sampler *s, kernel *k) {
  sample_launch *launch = k->sampled;
  sample_waves *v = &launch->waves;
  if (!v->skipped) return 0;
  for (size_t i = 0; i < v->groups.count; i++) v->debt += v->groups.items[i].open * v->groups.items[i].level;
  sample_groups_close(s, &v->groups);
#define X(name)        \
  k->counters->name += \
      (uint64_t)((unsigned __int128)v->of_steady.name * v->skipped / v->length / (v->steady * v->length));
  SAMPLE_ESTIMATED(X)
#undef X
  ps debt = (ps)(v->debt + 0.5);
  launch->later = true;
  s->result.blocks += v->skipped;
  s->result.estimated_ps += debt;
  return debt;
}
