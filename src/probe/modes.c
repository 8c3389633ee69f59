/* SPDX-License-Identifier: Apache-2.0 */
/* Two modes of measured times, and chance.
 *
 * What always holds: no constant of a machine stands here; the bulk of the samples says what is fast, and what counts as a gap. */
#include <math.h>
#include <stdlib.h>

#include "probe/meter.h"

enum { LEAST_SLOW = 8 };

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

uint64_t probe_random_line(probe_random *r, const meter *m) { return m->base + probe_random_next(r) % (m->bytes / PROBE_LINE) * PROBE_LINE; }

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

bool modes_split(const double *samples, size_t count, double *fast, double *slow, double *threshold) {
  if (count < 2 * LEAST_SLOW) return false;
  double *s = sorted(samples, count), widest = 0;
  size_t at = 0;
  double median = s[count / 2], width = s[count * 3 / 4] - s[count / 4];
  for (size_t i = count / 2; i + LEAST_SLOW < count; i++) /* of half the samples at most; few may be outliers */
    if (s[i + 1] - s[i] > widest) widest = s[i + 1] - s[i], at = i;
  bool two = widest > 0.02 * median && widest > width; /* else one mode with a tail */
  *fast = median;
  if (two) {
    *slow = s[at + 1 + (count - at - 1) / 2];
    *threshold = (s[at] + s[at + 1]) / 2;
  }
  free(s);
  return two;
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
