/* SPDX-License-Identifier: Apache-2.0 */
/* Two modes of measured times, and chance.
 *
 * No constant of a machine stands here; the bulk of the samples says what is fast, and what counts
 * as a gap. */
#include <math.h>
#include <stdlib.h>

#include "probe/meter.h"

enum { MIN_SLOW = 8, STEPS = 2048 };
static const double SIGNIFICANT = 4, MIN_APART = 0.02; /* of the fast mode's time */

uint64_t probe_random_next(probe_random *r) { /* splitmix64 */
  uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

double probe_random_share(probe_random *r) { return (double)(probe_random_next(r) >> 11) * 0x1p-53; }

double probe_random_normal(probe_random *r) { /* the sum of twelve uniform ones has variance 1 */
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += probe_random_share(r);
  return sum;
}

bool probe_in_range(const meter *m, uint64_t a) { return a >= m->base && a - m->base <= m->bytes - PROBE_LINE; }

uint64_t probe_random_line(probe_random *r, const meter *m) {
  return m->base + probe_random_next(r) % (m->bytes / PROBE_LINE) * PROBE_LINE;
}

uint64_t probe_random_near(probe_random *r, const meter *m, uint64_t a) {
  if (!m->span) return probe_random_line(r, m);
  return (a & ~(m->span - 1)) + probe_random_next(r) % (m->span / PROBE_LINE) * PROBE_LINE;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double *sorted(const double *samples, size_t count) {
  double *copy = ff_alloc(count * sizeof *copy + 1);
  for (size_t i = 0; i < count; i++) copy[i] = samples[i];
  qsort(copy, count, sizeof *copy, compare);
  return copy;
}

/* The middle of the widest gap between samples above the bulk; NAN if none is wider than the bulk itself. */
static double widest_gap(const double *s, size_t count) {
  double widest = 0;
  size_t at = 0;
  for (size_t i = count / 2; i + MIN_SLOW < count; i++) /* of half the samples at most; few may be outliers */
    if (s[i + 1] - s[i] > widest) {
      widest = s[i + 1] - s[i];
      at = i;
    }
  return widest > MIN_APART * s[count / 2] && widest > s[count * 3 / 4] - s[count / 4] ? (s[at] + s[at + 1]) / 2 : NAN;
}

static size_t count_below(const double *s, size_t count, double value) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t half = low + (high - low) / 2;
    if (s[half] < value) low = half + 1;
    else high = half;
  }
  return low;
}

/* Where samples scatter so far that no gap is left: the lowest place below a second peak above the bulk; NAN if no
 * place is lower than the peak by more than SIGNIFICANT standard deviations of the difference. */
static double lowest_valley(const double *s, size_t count) {
  double from = s[count / 2] * (1 + MIN_APART / 2), to = s[count - MIN_SLOW],
         window = fmax((s[count * 3 / 4] - s[count / 4]) / 2, 0.0025 * from);
  size_t counts[STEPS], peak = 0, run = 0;
  double step = fmax(window / 4, (to - from) / STEPS), best = SIGNIFICANT, at = NAN;
  size_t steps = to > from ? (size_t)fmin((to - from) / step + 1, STEPS) : 0;
  for (size_t i = 0; i < steps; i++)
    counts[i] = count_below(s, count, from + (double)i * step + window / 2) -
                count_below(s, count, from + (double)i * step - window / 2);
  for (size_t i = steps; i-- > 0;) { /* from above, so that the peak is that of all places above */
    double valley = (double)counts[i], better = ((double)peak - valley) / sqrt((double)peak + valley + 1);
    if (counts[i] > peak && from + (double)i * step > s[count / 2] * (1 + MIN_APART)) peak = counts[i];
    if (better < best) continue;
    run = better > best ? 0 : run + 1; /* of equally good places the middle */
    at = from + ((double)i + (double)run / 2) * step;
    best = better;
  }
  return at;
}

bool modes_split(const double *samples, size_t count, double *fast, double *slow, double *threshold) {
  if (count < 2 * MIN_SLOW) return false;
  double *s = sorted(samples, count), at = widest_gap(s, count);
  if (isnan(at)) at = lowest_valley(s, count);
  *fast = s[count / 2];
  if (!isnan(at)) {
    size_t below = count_below(s, count, at);
    *slow = s[below + (count - below) / 2];
    *threshold = at;
  }
  free(s);
  return !isnan(at);
}

void modes_histogram(const double *samples, size_t count, probe_histogram *out) {
  *out = (probe_histogram){0};
  if (!count) return;
  double *s = sorted(samples, count);
  double low = s[0], high = s[count - 1 - count / 5000]; /* a few far outliers are in the last bar */
  out->low = low;
  out->width = high > low ? (high - low) / (PROBE_BARS - 1) : 1;
  for (size_t i = 0; i < count; i++) {
    double bar = (s[i] - low) / out->width;
    out->bars[bar < PROBE_BARS - 1 ? (size_t)bar : PROBE_BARS - 1]++;
  }
  free(s);
}
