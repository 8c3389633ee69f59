/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms by their definition, in long double precision. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

static uint64_t state = 1;

static uint64_t next(void) { /* xorshift64 */
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
double next_random(void) { return (double)(next() >> 11) * 0x1p-52 - 1; }
unsigned next_below(unsigned limit) { return (unsigned)(next() >> 33) % limit; }

number number_of(double real, double imaginary) { return real + imaginary * I; }

static long double complex turn(int64_t k, int64_t n, int sign) {
  long double angle = sign * 2 * 3.141592653589793238462643383279502884L * (long double)(k % n) / (long double)n;
  return cosl(angle) + sinl(angle) * I;
}

number transformed(const number *data, int64_t length, int64_t k, int sign) {
  enum { FRESH = 64 }; /* turns in a row that are products of one */
  long double complex sum = 0, step = turn(k, length, sign), at = 1;
  for (int64_t i = 0; i < length; i++) {
    at = i % FRESH ? at * step : turn((int64_t)((__int128_t)i * k % length), length, sign);
    sum += (long double complex)data[i] * at;
  }
  return (number)sum;
}

enum { FACTOR_MAX = 2048 };

/* By the definition for each prime factor of n: that of the parts, and then of the sums of the parts' elements. */
static void transform_line(long double complex *to, const long double complex *from, int64_t n, int64_t stride,
                           int sign) {
  long double complex parts[FACTOR_MAX], turns[FACTOR_MAX];
  int64_t factor = 2;
  while (factor < n && n % factor) factor++;
  if (n == 1) to[0] = from[0];
  if (n == 1) return;
  int64_t rest = n / factor;
  assert_true(factor <= FACTOR_MAX);
  for (int64_t r = 0; r < factor; r++) transform_line(to + r * rest, from + r * stride, rest, stride * factor, sign);
  for (int64_t r = 0; r < factor; r++) turns[r] = turn(r, factor, sign);
  for (int64_t k = 0; k < rest; k++) {
    for (int64_t r = 0; r < factor; r++) parts[r] = to[r * rest + k] * turn(r * k, n, sign);
    for (int64_t q = 0; q < factor; q++) {
      long double complex sum = 0;
      for (int64_t r = 0; r < factor; r++) sum += parts[r] * turns[r * q % factor];
      to[q * rest + k] = sum;
    }
  }
}

/* Lines of n elements that are `stride` apart. */
static void transform_lines(number *data, int64_t count, int64_t n, int64_t stride, int sign) {
  long double complex *line = calloc((size_t)n, sizeof *line), *out = calloc((size_t)n, sizeof *out);
  for (int64_t at = 0; at < count; at++) {
    number *from = data + at / stride * stride * n + at % stride;
    for (int64_t i = 0; i < n; i++) line[i] = from[i * stride];
    transform_line(out, line, n, 1, sign);
    for (int64_t i = 0; i < n; i++) from[i * stride] = (number)out[i];
  }
  free(out);
  free(line);
}

void transform(number *data, int rank, const int64_t *lengths, int sign) {
  int64_t all = 1, stride = 1;
  for (int i = 0; i < rank; i++) all *= lengths[i];
  for (int i = rank - 1; i >= 0; i--) {
    transform_lines(data, all / lengths[i], lengths[i], stride, sign);
    stride *= lengths[i];
  }
}

double error_of(const number *ours, const number *right, size_t count) {
  long double wrong = 0, whole = 0;
  for (size_t i = 0; i < count; i++) {
    number difference = ours[i] - right[i];
    wrong += (long double)(creal(difference) * creal(difference) + cimag(difference) * cimag(difference));
    whole += (long double)(creal(right[i]) * creal(right[i]) + cimag(right[i]) * cimag(right[i]));
  }
  return wrong == 0 ? 0 : whole > 0 ? (double)sqrtl(wrong / whole) : INFINITY;
}
