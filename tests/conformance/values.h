/* SPDX-License-Identifier: Apache-2.0 */
/* Typed values of a conformance file: reading them, writing them, and comparing a result with what was expected.
 *
 * A value has one part, or two for the packed half types (lower half first, "1.5,-2"). Integers are written as in C.
 * Floating-point values are decimal or C hexadecimal ("0x1.8p3"), inf, -inf; "nan" expects any NaN; a hexadecimal
 * integer gives the bits. */
#ifndef TESTS_CONFORMANCE_VALUES_H
#define TESTS_CONFORMANCE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct value_type {
  const char *name;                      /* "s32", "f16x2" */
  const char *reg;                       /* the PTX type of a register for it */
  const char *memory;                    /* the PTX type of a load or store of it */
  unsigned part_bits;                    /* of one part */
  unsigned parts;                        /* 1 or 2 */
  unsigned exponent_bits, mantissa_bits; /* 0: an integer */
  bool is_signed;
} value_type;

typedef struct value_part {
  uint64_t bits;
  double number; /* as written: more exact than the bits, for approximate results */
  bool any_nan;  /* "nan" */
} value_part;

typedef struct value_bound { /* how far a result may be from what is expected */
  enum { BOUND_EXACT, BOUND_ULP, BOUND_ABSOLUTE, BOUND_RELATIVE } kind;
  double limit;
} value_bound;

const value_type *value_type_find(const char *name, size_t length);
static inline unsigned value_bytes(const value_type *type) { return type->part_bits * type->parts / 8; }

/* One word of a list, into type->parts parts; false if it is not a value of that type. */
bool value_parse(const value_type *type, const char *word, size_t length, value_part *parts);
void value_store(const value_type *type, const value_part *parts, unsigned char *bytes);
void value_print(const value_type *type, const unsigned char *bytes, char *text, size_t size);

bool value_matches(const value_type *type, const value_part *expected, const unsigned char *bytes, value_bound bound);

/* "ulp 2", "absolute 2^-20.5", "relative 1e-6". */
bool value_bound_parse(const char *text, value_bound *bound);

#endif
