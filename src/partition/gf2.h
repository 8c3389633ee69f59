/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra over GF(2), on vectors of 64 bits.
 *
 * A vector is a uint64_t; adding is XOR, and the product of a mask f with an address a is the parity of f & a. A space
 * is kept as its reduced row echelon basis: each row's highest bit (its pivot) stands in no other row, and the rows
 * fall in number. That basis is unique, so that two spaces are equal exactly if their rows are. The rank and
 * the rank of the null space make the count of bits; gf2_null asserts that at the deep check level.
 *
 * What it is for: an address hash gives bit i of the module as f_i * a. Two addresses are in one bank exactly if their
 * difference d has f * d = 0 for every f of the banks' span: spans come from differences as null spaces (Jain 2019,
 * section V, finds the same by trying masks). */
#ifndef FF_PARTITION_GF2_H
#define FF_PARTITION_GF2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GF2_BITS = 64 };

typedef struct gf2_space {
  uint64_t rows[GF2_BITS]; /* `rank` of them, by falling pivot */
  uint32_t rank;
} gf2_space;

/* f * v: 0 or 1. */
static inline uint32_t gf2_product(uint64_t f, uint64_t v) { return (uint32_t)__builtin_parityll(f & v); }

/* Adds v to what spans the space. true: v was not in it, the rank grew by one. */
bool gf2_add(gf2_space *space, uint64_t v);
/* The span of `count` vectors. */
gf2_space gf2_span(const uint64_t *vectors, size_t count);
/* v less its part in the space: the one vector of v + space that has no pivot's bit; 0 exactly if v is in the space. */
uint64_t gf2_reduce(const gf2_space *space, uint64_t v);
bool gf2_equal(const gf2_space *a, const gf2_space *b);
/* All x made of the bits in `bits` with f * x = 0 for every f of the space. Its rank is count(bits) - rank(space
 * restricted to bits). */
gf2_space gf2_null(const gf2_space *space, uint64_t bits);
/* The smallest space that has both. */
gf2_space gf2_sum(const gf2_space *a, const gf2_space *b);
/* What is in both: the null space of the sum of their null spaces. rank(a) + rank(b) = rank(sum) +
 * rank(intersection). */
gf2_space gf2_intersection(const gf2_space *a, const gf2_space *b);
/* The space of v & bits for v in `space`: what its masks see of addresses that have these bits only. */
gf2_space gf2_restrict(const gf2_space *space, uint64_t bits);

#endif
