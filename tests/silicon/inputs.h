/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from a seed, the same on every machine. */
#ifndef TESTS_SILICON_INPUTS_H
#define TESTS_SILICON_INPUTS_H

#include <stddef.h>
#include <stdint.h>

typedef enum input_kind {
  INPUT_MIX,  /* special values of floats of all widths, small integers, fractions, noise */
  INPUT_GRID, /* f32: every 2^12th pattern or so */
  INPUT_NEAR, /* f32: magnitudes from 2^-6 to 2^6 */
  INPUT_ALL,  /* all patterns of 16 bits, in their order */
  INPUT_SUMS, /* matrices A, B and C; `run` chooses how their exponents lie */
} input_kind;

enum { INPUT_SUM_RUNS = 6 };

/* types: of A and B, of C ("f16", "bf16", "tf32", "f32", "e4m3", "e5m2", "f64"), for INPUT_SUMS. */
void inputs_fill(input_kind kind, const char *const types[2], uint32_t run, unsigned char *bytes, size_t size);

#endif
