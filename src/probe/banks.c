/* SPDX-License-Identifier: Apache-2.0 */
/* Banks (Jain 2019, algorithm 1): two addresses in one bank and different rows close each other's row, so that reading
 * them by turns takes longer.
 *
 *   random pairs -> time -> threshold between the two modes -> slow ones timed again, flushed in between -> their
 *   median
 *
 * Unlike in the paper both addresses are random: pairs with one primary address would show a map that is not linear as
 * if it were. */
#include <math.h>
#include <stdlib.h>

#include "probe/meter.h"

enum {
  CHUNK = 8192, /* pairs that are timed between looks at the histogram */
  REPEATS = 3,  /* of a pair that looks slow: the median counts */
  MAX_CHUNKS = 100,
  MAX_WITHOUT = 8, /* until the histogram must have two modes */
  MOVED = 64,      /* conflicts that are tried again elsewhere */
};

typedef struct search {
  const meter *m;
  const probe_options *options;
  probe_finding *found;
  probe_random random;
  FF_VEC(double) times; /* of all pairs that were timed alone, once */
  FF_VEC(probe_pair) slow;
  findings pairs;
  uint32_t wanted, drawn; /* conflicts; pairs */
  ff_error *error;
} search;

static ff_status time_pairs(search *s, const probe_pair *pairs, size_t count, double *cycles) {
  ff_status status = s->m->time_pairs(s->m->context, pairs, count, cycles, s->error);
  for (size_t i = 0; i < count && s->options->jitter > 0; i++)
    cycles[i] += s->options->jitter * probe_random_normal(&s->random);
  return status;
}

static double median3(double a, double b, double c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }

/* Times the pairs REPEATS - 1 more times; their medians with `first` replace it. */
static ff_status time_again(search *s, const probe_pair *pairs, size_t count, double *first) {
  double *second = ff_alloc((2 * count + 1) * sizeof *second), *third = second + count;
  ff_status status = FF_OK;
  for (int i = 1; i < REPEATS && !status; i++) {
    status = s->m->flush(s->m->context, s->error);
    if (!status) status = time_pairs(s, pairs, count, i == 1 ? second : third);
  }
  for (size_t i = 0; i < count && !status; i++) first[i] = median3(first[i], second[i], third[i]);
  free(second);
  return status;
}

static bool same_piece(probe_pair p) { return p.a >> 10 == p.b >> 10; } /* they would read the same lines */

static void draw(search *s, probe_pair *pairs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    do {
      pairs[i].a = probe_random_line(&s->random, s->m);
      pairs[i].b = probe_random_near(&s->random, s->m, pairs[i].a);
    } while (same_piece(pairs[i]) || !probe_in_range(s->m, pairs[i].b));
  }
}

/* Of timed pairs: those that are slow again are conflicts. */
static ff_status sort_out(search *s, const probe_pair *pairs, const double *cycles, size_t count) {
  probe_pair *slow = ff_alloc((count + 1) * sizeof *slow);
  double *again = ff_alloc((count + 1) * sizeof *again);
  size_t slow_count = 0;
  for (size_t i = 0; i < count; i++)
    if (cycles[i] > s->found->threshold) {
      slow[slow_count] = pairs[i];
      again[slow_count++] = cycles[i];
    } else findings_add(&s->pairs, s->options, &s->random, s->m, pairs[i].a, pairs[i].b, false);
  ff_status status = slow_count ? time_again(s, slow, slow_count, again) : FF_OK;
  for (size_t i = 0; i < slow_count && !status; i++) {
    bool conflict = again[i] > s->found->threshold;
    findings_add(&s->pairs, s->options, &s->random, s->m, slow[i].a, slow[i].b, conflict);
    if (conflict && s->slow.count < MOVED) FF_PUSH(&s->slow, slow[i]);
  }
  free(slow);
  free(again);
  return status;
}

static void keep_raw(search *s, const probe_pair *pairs, const double *cycles, size_t count) {
  for (size_t i = 0; i < count && s->m->raw; i++)
    if (!isnan(cycles[i]))
      ff_text_add(s->m->raw, "0x%llx,0x%llx,%.9g\n", (unsigned long long)pairs[i].a, (unsigned long long)pairs[i].b,
                  cycles[i]);
}

/* Pairs are kept until the histogram has two modes, then sorted out together. */
static ff_status collect(search *s) {
  FF_VEC(probe_pair) kept = {0};
  FF_VEC(double) kept_cycles = {0};
  probe_pair *pairs = ff_alloc(CHUNK * sizeof *pairs);
  double cycles[CHUNK];
  ff_status status = FF_OK;
  bool two = false;
  for (uint32_t chunk = 0; chunk < MAX_CHUNKS && s->pairs.conflicts.count < s->wanted && !status && !probe_over(s->m);
       chunk++) {
    draw(s, pairs, CHUNK);
    if ((status = time_pairs(s, pairs, CHUNK, cycles))) break;
    keep_raw(s, pairs, cycles, CHUNK);
    for (size_t i = 0; i < CHUNK; i++) {
      if (!isnan(cycles[i])) FF_PUSH(&s->times, cycles[i]);
      if (!two) FF_PUSH(&kept, pairs[i]);
      if (!two) FF_PUSH(&kept_cycles, cycles[i]);
    }
    if (two) status = sort_out(s, pairs, cycles, CHUNK);
    else if ((two =
                  modes_split(s->times.items, s->times.count, &s->found->fast, &s->found->slow, &s->found->threshold)))
      status = sort_out(s, kept.items, kept_cycles.items, kept.count);
    s->drawn += CHUNK;
    if (!two && chunk + 1 == MAX_WITHOUT) break;
    if (s->m->progress)
      s->m->progress(s->m->context, "pairs that share a bank", fmin(1, (double)s->pairs.conflicts.count / s->wanted));
  }
  free(pairs);
  free(kept.items);
  free(kept_cycles.items);
  return status;
}

/* A linear map has a conflict between a + y and b + y (XOR) wherever a and b have one: whether it does. */
static ff_status move_conflicts(search *s) {
  probe_pair moved[MOVED];
  double cycles[MOVED];
  uint32_t count = 0;
  for (size_t i = 0; i < s->slow.count; i++) {
    uint64_t a = s->slow.items[i].a, y = a ^ probe_random_near(&s->random, s->m, a);
    moved[count] = (probe_pair){a ^ y, s->slow.items[i].b ^ y};
    count += probe_in_range(s->m, moved[count].a) && probe_in_range(s->m, moved[count].b);
  }
  if (!count) return FF_OK;
  ff_status status = s->m->flush(s->m->context, s->error);
  if (!status) status = time_pairs(s, moved, count, cycles);
  if (!status) status = time_again(s, moved, count, cycles);
  for (uint32_t i = 0; i < count && !status; i++) s->found->moved += cycles[i] > s->found->threshold;
  s->found->moved_tested = count;
  return status;
}

ff_status probe_banks(const meter *m, const probe_options *options, probe_finding *found, ff_error *error) {
  search s = {.m = m,
              .options = options,
              .found = found,
              .random = {options->seed ^ 0xba4c5},
              .wanted = options->pairs ? options->pairs : 256,
              .error = error};
  ff_status status = collect(&s);
  if (!status) status = move_conflicts(&s);
  modes_histogram(s.times.items, s.times.count, &found->times);
  if (!status && !s.pairs.conflicts.count)
    status = ff_fail(error, FF_UNSUPPORTED,
                     "of %u pairs of addresses none took clearly longer than the others: no bank conflict can be seen",
                     s.drawn);
  if (!status) findings_solve(&s.pairs, options, found);
  free(s.times.items);
  free(s.slow.items);
  findings_free(&s.pairs);
  return status;
}
