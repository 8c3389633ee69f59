/* SPDX-License-Identifier: Apache-2.0 */
/* See inputs.h. */
#include "inputs.h"

#include <stdbool.h>
#include <string.h>

#include "program.h"

static uint64_t noise(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* ---- elements of matrices ---- */

typedef struct format {
  const char *name;
  int32_t bytes, exponent_bits, mantissa_bits, shift, spread; /* spread: of exponents that are wide apart */
} format;

static const format formats[] = {{"f16", 2, 5, 10, 0, 12},   {"bf16", 2, 8, 7, 0, 20}, {"tf32", 4, 8, 10, 13, 20},
                                 {"f32", 4, 8, 23, 0, 24},   {"e4m3", 1, 4, 3, 0, 6},  {"e5m2", 1, 5, 2, 0, 6},
                                 {"f64", 8, 11, 52, 0, 100}, {NULL, 0, 0, 0, 0, 0}};

static const format *format_of(const char *name) {
  const format *f = formats;
  while (f->name && strcmp(f->name, name)) f++;
  return f;
}

static int32_t below(uint64_t *state, int32_t n) { return (int32_t)(noise(state) % (uint64_t)n); }

/* 0: anything finite; 1: near 1; 2: wide apart; 3: C above all products; 4: zeros, subnormal numbers; 5: a few that are
 * large, which often cancel */
static int32_t choose_exponent(const format *f, uint32_t run, bool is_c, uint64_t *state) {
  int32_t bias = (1 << (f->exponent_bits - 1)) - 1;
  switch (run) {
  case 0: return below(state, 2 * bias + 1) - bias;
  case 2: return below(state, 2 * f->spread + 1) - f->spread;
  case 3: return is_c ? 8 + below(state, 20) : -below(state, 4);
  case 4: return below(state, 16) ? -below(state, 4) : -bias;
  case 5: return below(state, 6) ? -below(state, 6) : 12;
  default: return -below(state, 4);
  }
}

static uint64_t element(const format *f, uint32_t run, bool is_c, uint64_t *state) {
  int32_t bias = (1 << (f->exponent_bits - 1)) - 1, top = 2 * bias;
  int32_t exponent = choose_exponent(f, run, is_c, state) + bias;
  uint64_t mantissa = noise(state) & ((UINT64_C(1) << f->mantissa_bits) - 1), sign = noise(state) & 1;
  if (run == 4 && exponent <= 0 && noise(state) & 1) mantissa = 0;
  exponent = exponent < 0 ? 0 : exponent > top ? top : exponent;
  return (sign << (f->exponent_bits + f->mantissa_bits) | (uint64_t)exponent << f->mantissa_bits | mantissa)
         << f->shift;
}

static void fill_matrix(const char *type, uint32_t run, bool is_c, uint64_t *state, unsigned char *bytes, size_t size) {
  const format *f = format_of(type);
  for (size_t at = 0; f->name && at + (size_t)f->bytes <= size; at += (size_t)f->bytes) {
    uint64_t bits = element(f, run, is_c, state);
    memcpy(bytes + at, &bits, (size_t)f->bytes);
  }
}

/* ---- everything ---- */

static void fill_words(input_kind kind, uint64_t *state, unsigned char *bytes, size_t size) {
  uint64_t step = (UINT64_C(1) << 32) / (size / 4);
  for (size_t n = 0; n < size / 4; n++) {
    uint64_t z = noise(state);
    uint32_t grid = (uint32_t)(n * step + z % step);
    uint32_t near = (uint32_t)(z >> 63) << 31 | (uint32_t)(121 + (z >> 40) % 12) << 23 | (uint32_t)(z & 0x7fffff);
    memcpy(bytes + 4 * n, kind == INPUT_GRID ? &grid : &near, 4);
  }
}

void inputs_fill(input_kind kind, const char *const types[2], uint32_t run, unsigned char *bytes, size_t size) {
  uint64_t state = UINT64_C(1000003) * (run + 1);
  switch (kind) {
  case INPUT_MIX:
    for (size_t n = 0; n < size / 8; n++) {
      uint64_t word = program_value(noise(&state));
      memcpy(bytes + 8 * n, &word, 8);
    }
    break;
  case INPUT_GRID:
  case INPUT_NEAR: fill_words(kind, &state, bytes, size); break;
  case INPUT_ALL:
    for (size_t n = 0; n < size / 2; n++) memcpy(bytes + 2 * n, &(uint16_t){(uint16_t)n}, 2);
    break;
  case INPUT_SUMS:
    fill_matrix(types[0], run, false, &state, bytes, size / 3);
    fill_matrix(types[0], run, false, &state, bytes + size / 3, size / 3);
    fill_matrix(types[1], run, true, &state, bytes + size / 3 * 2, size / 3);
  }
}
