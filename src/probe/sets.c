/* SPDX-License-Identifier: Apache-2.0 */
/* Cache sets. Instead of a pointer chase that grows line by line (Jain 2019, algorithm 2), sets of lines that push one
 * out:
 *
 *   many lines push x out -> leave out groups of them as long as the rest still does -> `ways` lines of x's set are
 *   left those and many random lines: x is pushed out exactly if one of these is of the set -> the first one, by halves
 *   -> a pair all of it XORed with a number: in a linear map that is a set again, and the next pairs are of that one
 *
 * One pair takes about as many loads as there are sets. Needs an L2 that replaces the line used least recently, or
 * nearly so.
 *
 * After every search the lines do push x out and, without the one found, do not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/meter.h"

enum {
  FIRST_LINES = 1024, /* of the search for what pushes x out; then twice as many, and so on */
  MAX_LINES = 1 << 21,
  MAX_WAYS = 512,
  BATCH = 384, /* random lines that are looked at together */
  MAX_BATCHES = 100000,
  PER_SET = 12, /* pairs until the set is moved */
  MIN_WINDOW = 1 << 26,
  BATCH_WINDOW = 1 << 24,
  SAMPLES = 33, /* of a hit's and of a miss's time */
  REPEATS = 3,  /* of a test whose outcome becomes a pair */
};

typedef struct search {
  const meter *m;
  const probe_options *options;
  probe_finding *found;
  probe_random random;
  FF_VEC(double) times;
  findings pairs;
  uint64_t x, set[MAX_WAYS]; /* the lines next to x that push it out */
  uint32_t ways;
  uint64_t reference; /* a line of the set in the span that pairs are looked for in; 0: none yet */
  uint32_t wanted, since_move;
  ff_error *error;
} search;

#define TRY(call)                \
  do {                           \
    ff_status status_ = (call);  \
    if (status_) return status_; \
  } while (0)

static ff_status time_is_over(search *s, size_t count) {
  return ff_fail(s->error, FF_LIMIT, "the time is over: the fewest lines known to push one out of the L2 are %zu",
                 count);
}

static ff_status time_x(search *s, uint64_t x, const uint64_t *lines, size_t count, double *cycles) {
  TRY(s->m->time_again(s->m->context, x, lines, count, cycles, s->error));
  if (s->options->jitter > 0) *cycles += s->options->jitter * probe_random_normal(&s->random);
  FF_PUSH(&s->times, *cycles);
  return FF_OK;
}

/* Whether the lines push x out: most of `repeats` times. */
static ff_status pushes_out(search *s, uint64_t x, const uint64_t *lines, size_t count, int repeats, bool *out) {
  int times = 0;
  for (int i = 0; i < repeats; i++) {
    double cycles;
    TRY(time_x(s, x, lines, count, &cycles));
    times += cycles > s->found->threshold;
  }
  *out = 2 * times > repeats;
  return FF_OK;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

/* A hit is a line read twice in a row; a miss one with more lines in between than the L2 can have. */
static ff_status find_threshold(search *s) {
  double hits[SAMPLES], misses[SAMPLES];
  size_t count = (size_t)(2 * s->m->l2_bytes / PROBE_LINE);
  if (count > MAX_LINES) count = MAX_LINES;
  uint64_t *lines = ff_alloc(count * sizeof *lines + 1);
  for (size_t i = 0; i < count; i++) lines[i] = probe_random_line(&s->random, s->m);
  ff_status status = FF_OK;
  for (int i = 0; i < SAMPLES && !status; i++)
    status = time_x(s, probe_random_line(&s->random, s->m), NULL, 0, &hits[i]);
  for (int i = 0; i < 3 && !status; i++)
    status = time_x(s, probe_random_line(&s->random, s->m), lines, count, &misses[i]);
  free(lines);
  if (status) return status;
  s->found->fast = middle(hits, SAMPLES);
  s->found->slow = middle(misses, 3);
  s->found->threshold = (s->found->fast + s->found->slow) / 2;
  if (s->found->slow < 1.1 * s->found->fast)
    return ff_fail(
        s->error, FF_UNSUPPORTED,
        "a line read again takes %.0f cycles, whether twice as many lines as the L2 has were read in between or not (%.0f)",
        s->found->fast, s->found->slow);
  return FF_OK;
}

/* ---- the first set ---- */

/* Any line of the aligned window that has `a`. Pages of few windows have few page table entries: those go through the
 * L2, too, and push lines out. */
static uint64_t line_in_window(search *s, uint64_t a, uint64_t window) {
  uint64_t line, base = a & ~(window - 1);
  do line = base + probe_random_next(&s->random) % (window / PROBE_LINE) * PROBE_LINE;
  while (!probe_in_range(s->m, line));
  return line;
}

/* Random lines, of a window eight times as large as the L2, until they push x out. */
static ff_status find_many(search *s, uint64_t **lines, size_t *count) {
  bool out = false;
  uint64_t window = MIN_WINDOW;
  while (window < 8 * s->m->l2_bytes) window *= 2;
  *lines = ff_alloc(MAX_LINES * sizeof **lines);
  *count = 0;
  s->x = probe_random_line(&s->random, s->m);
  for (size_t wanted = FIRST_LINES; wanted <= MAX_LINES && !out; wanted *= 2) {
    if (probe_over(s->m))
      return ff_fail(s->error, FF_LIMIT, "the time is over: %zu random lines do not push a line out of the L2", *count);
    while (*count < wanted) {
      uint64_t line = line_in_window(s, s->x, window);
      if (line != s->x) (*lines)[(*count)++] = line;
    }
    TRY(pushes_out(s, s->x, *lines, *count, REPEATS, &out));
  }
  return out ? FF_OK : ff_fail(s->error, FF_UNSUPPORTED, "%d random lines do not push a line out of the L2", MAX_LINES);
}

/* Leaves out every group of lines that is not needed; groups get smaller until they are single lines. A pass without
 * success at single lines ends it. The lines stay in order, so that with an L2 of another kind it at least ends. */
static ff_status leave_out(search *s, uint64_t *lines, size_t *count) {
  uint64_t *rest = ff_alloc(*count * sizeof *rest + 1);
  size_t groups = 16;
  ff_status status = FF_OK;
  while (!status) {
    size_t size = (*count + groups - 1) / groups, before = *count;
    for (size_t at = 0; at < *count && !status;) {
      size_t some = *count - at < size ? *count - at : size;
      bool out = false;
      if (probe_over(s->m)) {
        status = time_is_over(s, *count);
        break;
      }
      memcpy(rest, lines, at * sizeof *rest);
      memcpy(rest + at, lines + at + some, (*count - at - some) * sizeof *rest);
      status = pushes_out(s, s->x, rest, *count - some, 1, &out);
      /* what was left out wrongly does not come back */
      if (!status && out) status = pushes_out(s, s->x, rest, *count - some, REPEATS, &out);
      if (status || !out) at += some;
      else memcpy(lines, rest, (*count -= some) * sizeof *rest);
    }
    if (s->m->progress) s->m->progress(s->m->context, "lines that push one out of the L2", 0);
    if (size == 1) break;
    if (*count > before - before / 4) groups *= 2; /* most groups are needed */
    if (groups > *count) groups = *count;
  }
  free(rest);
  return status;
}

static ff_status find_set(search *s) {
  uint64_t *lines;
  size_t count;
  bool out = false;
  ff_status status = find_many(s, &lines, &count);
  if (!status) status = leave_out(s, lines, &count);
  if (!status) status = pushes_out(s, s->x, lines, count, REPEATS, &out);
  if (!status && (!out || count > MAX_WAYS))
    status = ff_fail(
        s->error, FF_UNSUPPORTED,
        "no small set of lines pushes a line out of the L2 (%zu do%s): it does not replace what was used least recently",
        count, out ? "" : " not always");
  if (!status) {
    memcpy(s->set, lines, count * sizeof *lines);
    s->ways = s->found->ways = (uint32_t)count;
  }
  free(lines);
  return status;
}

/* ---- pairs ---- */

/* x, then all but one of its set, then these lines: only if one of them is of the set, too, x goes. */
static ff_status batch_has(search *s, const uint64_t *batch, size_t count, int repeats, bool *has) {
  uint64_t lines[MAX_WAYS + BATCH];
  memcpy(lines, s->set, (s->ways - 1) * sizeof *lines);
  memcpy(lines + s->ways - 1, batch, count * sizeof *lines);
  return pushes_out(s, s->x, lines, s->ways - 1 + count, repeats, has);
}

/* The first line of the batch that is of the set, which has one; count if none is when it is looked at closely. */
static ff_status first_of(search *s, const uint64_t *batch, size_t count, size_t *first) {
  size_t low = 0, high = count; /* none before low; one before high */
  bool has;
  while (high - low > 1) {
    size_t half = low + (high - low) / 2;
    TRY(batch_has(s, batch + low, half - low, 1, &has));
    if (has) high = half;
    else low = half;
  }
  TRY(batch_has(s, batch + low, 1, REPEATS, &has));
  *first = has ? low : count;
  return FF_OK;
}

static bool is_of_set(const search *s, uint64_t line) {
  bool found = line == s->x;
  for (uint32_t i = 0; i < s->ways; i++) found |= line == s->set[i];
  return found;
}

static void note(search *s, uint64_t line, bool conflict) {
  if (s->reference) findings_add(&s->pairs, s->options, &s->random, s->m, s->reference, line, conflict);
  else if (conflict) s->reference = line;
}

static ff_status look_at_batch(search *s) {
  uint64_t batch[BATCH], near = probe_random_near(&s->random, s->m, s->reference ? s->reference : s->x);
  uint64_t window = s->m->span && s->m->span < BATCH_WINDOW ? s->m->span : BATCH_WINDOW;
  size_t first = 0;
  bool has;
  for (size_t i = 0; i < BATCH; i++) {
    do batch[i] = line_in_window(s, near, window);
    while (is_of_set(s, batch[i]) || batch[i] == s->reference || !probe_in_range(s->m, batch[i]));
  }
  TRY(batch_has(s, batch, BATCH, 1, &has));
  if (has) TRY(first_of(s, batch, BATCH, &first));
  bool sure = has && first < BATCH;
  size_t others = has ? 0 : BATCH; /* those before the first, where that is known */
  if (sure) others = first;
  for (size_t i = 0; i < others; i++) note(s, batch[i], false);
  if (sure) note(s, batch[first], true);
  s->since_move += sure;
  return FF_OK;
}

/* Another set: this one moved. Stays where it is if that is none. */
static ff_status move_set(search *s) {
  uint64_t moved[MAX_WAYS], to = probe_random_line(&s->random, s->m), y = s->x ^ to;
  bool inside = true, out;
  for (uint32_t i = 0; i < s->ways; i++) inside &= probe_in_range(s->m, moved[i] = s->set[i] ^ y);
  /* only within a span the XOR is one of physical addresses */
  if (!inside || (s->m->span && y >= s->m->span)) return FF_OK;
  TRY(pushes_out(s, to, moved, s->ways, REPEATS, &out));
  s->found->moved_tested++;
  s->since_move = 0;
  if (!out) return FF_OK;
  s->found->moved++;
  s->x = to;
  memcpy(s->set, moved, s->ways * sizeof *moved);
  s->reference = 0;
  return FF_OK;
}

static ff_status collect(search *s) {
  for (uint32_t i = 0; i < MAX_BATCHES && s->pairs.conflicts.count < s->wanted && !probe_over(s->m); i++) {
    TRY(look_at_batch(s));
    if (s->since_move >= PER_SET) TRY(move_set(s));
    if (s->m->progress)
      s->m->progress(s->m->context, "pairs that share a cache set",
                     fmin(1, (double)s->pairs.conflicts.count / s->wanted));
  }
  return FF_OK;
}

ff_status probe_sets(const meter *m, const probe_options *options, probe_finding *found, ff_error *error) {
  search *s = ff_alloc(sizeof *s);
  *s = (search){.m = m,
                .options = options,
                .found = found,
                .random = {options->seed ^ 0x5e75},
                .wanted = options->pairs ? options->pairs : 256,
                .error = error};
  ff_status status = find_threshold(s);
  if (!status) status = find_set(s);
  if (!status) status = collect(s);
  modes_histogram(s->times.items, s->times.count, &found->times);
  if (!status && !s->pairs.conflicts.count)
    status = ff_fail(error, FF_UNSUPPORTED, "no two lines were found to share a set of the L2");
  if (!status) findings_solve(&s->pairs, options, found);
  free(s->times.items);
  findings_free(&s->pairs);
  free(s);
  return status;
}
