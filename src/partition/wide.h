/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra over GF(2) on vectors of any length (gf2.h has 64 bits): systems over the address bits of several
 * ranges at once.
 *
 * A vector is `words` words of 64 columns each. A space is kept as its reduced row echelon basis: each row has a pivot,
 * its lowest column, which stands in no other row. The rank and the rank of the null space make the count of columns;
 * wide_null asserts that at the deep check level. */
#ifndef FF_PARTITION_WIDE_H
#define FF_PARTITION_WIDE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wide_space {
  uint32_t columns, words, rank;
  uint64_t *rows;   /* rank * words, room for columns * words */
  uint32_t *pivots; /* column of each row */
} wide_space;

wide_space wide_create(uint32_t columns);
void wide_free(wide_space *space);
void wide_copy(wide_space *to, const wide_space *from); /* of as many columns */
/* Adds v, which is used up, to what spans the space. true: it was not in it. */
bool wide_add(wide_space *space, uint64_t *v);
bool wide_contains(const wide_space *space, uint64_t *v); /* v is used up */
/* A basis of all x with row * x = 0 for each row: columns - rank vectors of `words` words into `out`. Vector i's own
 * column, which no other vector has, into own[i]. Returns how many. */
uint32_t wide_null(const wide_space *space, uint64_t *out, uint32_t *own);

static inline bool wide_bit(const uint64_t *v, uint32_t column) { return v[column / 64] >> column % 64 & 1; }
static inline void wide_flip(uint64_t *v, uint32_t column) { v[column / 64] ^= UINT64_C(1) << column % 64; }
/* `count` columns from `from` on, at most 64. */
uint64_t wide_bits(const uint64_t *v, uint32_t from, uint32_t count);

#endif
