/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a plan, computed in extended precision and rounded once; the spectrum of a chirp in double
 * precision. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/stand_ins/cufft/cufft_plan.h"

#define ALIGNMENT 256u

typedef double complex number;

/* exp(-2 pi i k / n), of an angle of at most an eighth of a turn. */
static number turn_of(uint64_t k, uint64_t n) {
  const long double two_pi = 6.283185307179586476925286766559005768L;
  k %= n;
  bool negative = k > n - k; /* below the axis: the other half is mirrored */
  if (negative) k = n - k;
  bool behind = 4 * (__uint128_t)k > n; /* left of the other axis: n / 2 - k, in halves */
  long double part = behind ? (long double)n - 2 * (long double)k : 2 * (long double)k; /* of 2 n */
  bool steep = 4 * part > (long double)n;
  long double angle = two_pi * (steep ? (long double)n / 2 - part : part) / (2 * (long double)n);
  long double c = steep ? sinl(angle) : cosl(angle), s = steep ? cosl(angle) : sinl(angle);
  if (behind) c = -c;
  if (!negative) s = -s;
  return (double)c + (double)s * I;
}

/* exp(-pi i k^2 / n) */
static number chirp_of(uint64_t k, uint64_t n) { return turn_of((uint64_t)((__uint128_t)k * k % (2 * n)), 2 * n); }

/* A transform of a power of two in place, by Stockham's algorithm; turns: e(k / count), k < count / 2. */
static void transform(number *data, uint64_t count, const number *turns) {
  number *other = ff_alloc(count * sizeof *other), *from = data, *to = other;
  for (uint64_t before = 1; before < count; before *= 2) {
    for (uint64_t j = 0; j < count / 2; j++) {
      uint64_t q = j % before;
      number a = from[j], b = from[j + count / 2] * turns[q * (count / 2 / before)];
      to[2 * (j - q) + q] = a + b;
      to[2 * (j - q) + q + before] = a - b;
    }
    number *swap = from;
    from = to;
    to = swap;
  }
  if (from != data) memcpy(data, from, count * sizeof *data);
  free(other);
}

static void fill_spectrum(number *data, const cufft_table *table) {
  number *turns = ff_alloc((table->count / 2 + 1) * sizeof *turns);
  for (uint64_t k = 0; k < table->count / 2; k++) turns[k] = turn_of(k, table->count);
  for (uint64_t k = 0; k < table->length; k++) {
    number chirp = conj(chirp_of(k, table->length)) / (double)table->count;
    data[k] = chirp;
    if (k) data[table->count - k] = chirp;
  }
  transform(data, table->count, turns);
  free(turns);
}

static void fill(number *data, const cufft_table *table) {
  if (table->kind == CUFFT_TABLE_SPECTRUM) {
    fill_spectrum(data, table);
    return;
  }
  for (uint64_t k = 0; k < table->count; k++) switch (table->kind) {
    case CUFFT_TABLE_CHIRP: data[k] = chirp_of(k, table->length); break;
    case CUFFT_TABLE_COARSE: data[k] = turn_of(k * table->step, table->length); break;
    default: data[k] = turn_of(k, table->length);
    }
}

static uint64_t bytes_of(const cufft_table *table, bool is_double) {
  return table->count * (is_double ? sizeof(double complex) : sizeof(float complex));
}

uint64_t cufft_tables_place(cufft_tables *tables, bool is_double) {
  uint64_t end = 0;
  for (size_t i = 0; i < tables->count; i++) {
    tables->items[i].offset = end;
    end += (bytes_of(&tables->items[i], is_double) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return end;
}

void cufft_tables_fill(const cufft_tables *tables, bool is_double, void *bytes) {
  for (size_t i = 0; i < tables->count; i++) {
    const cufft_table *table = &tables->items[i];
    number *data = ff_alloc(table->count * sizeof *data);
    char *to = (char *)bytes + table->offset;
    fill(data, table);
    if (is_double) memcpy(to, data, table->count * sizeof *data);
    else
      for (uint64_t k = 0; k < table->count; k++) ((float complex *)(void *)to)[k] = (float complex)data[k];
    free(data);
  }
}
