/* SPDX-License-Identifier: Apache-2.0 */
/* Linear algebra over GF(2): see gf2.h. */
#include "partition/gf2.h"

#include <string.h>

#include "base/check.h"

static uint64_t pivot_of(uint64_t row) { return UINT64_C(1) << (63 - __builtin_clzll(row)); }

uint64_t gf2_reduce(const gf2_space *space, uint64_t v) {
  for (uint32_t i = 0; i < space->rank; i++)
    if (v & pivot_of(space->rows[i])) v ^= space->rows[i];
  return v;
}

bool gf2_equal(const gf2_space *a, const gf2_space *b) {
  return a->rank == b->rank && !memcmp(a->rows, b->rows, a->rank * sizeof *a->rows);
}

bool gf2_add(gf2_space *space, uint64_t v) {
  v = gf2_reduce(space, v);
  if (!v) return false;
  uint64_t pivot = pivot_of(v);
  uint32_t at = 0;
  FF_ASSERT(space->rank < GF2_BITS);
  for (uint32_t i = 0; i < space->rank; i++) {
    if (space->rows[i] & pivot) space->rows[i] ^= v; /* v's other bits are lower: this row keeps its pivot */
    if (space->rows[i] > v) at = i + 1;
  }
  memmove(&space->rows[at + 1], &space->rows[at], (space->rank - at) * sizeof *space->rows);
  space->rows[at] = v;
  space->rank++;
  return true;
}

gf2_space gf2_span(const uint64_t *vectors, size_t count) {
  gf2_space space = {.rank = 0};
  for (size_t i = 0; i < count && space.rank < GF2_BITS; i++) gf2_add(&space, vectors[i]);
  return space;
}

gf2_space gf2_restrict(const gf2_space *space, uint64_t bits) {
  gf2_space out = {.rank = 0};
  for (uint32_t i = 0; i < space->rank; i++) gf2_add(&out, space->rows[i] & bits);
  return out;
}

/* A bit that is no pivot may be chosen freely; the pivots follow from it, one row each, because no row has two. */
gf2_space gf2_null(const gf2_space *space, uint64_t bits) {
  gf2_space rows = gf2_restrict(space, bits), out = {.rank = 0};
  uint64_t pivots = 0;
  for (uint32_t i = 0; i < rows.rank; i++) pivots |= pivot_of(rows.rows[i]);
  for (uint64_t left = bits & ~pivots; left; left &= left - 1) {
    uint64_t bit = left & -left, x = bit;
    for (uint32_t i = 0; i < rows.rank; i++)
      if (rows.rows[i] & bit) x |= pivot_of(rows.rows[i]);
    gf2_add(&out, x);
  }
  FF_CHECK_DEEP(rows.rank + out.rank == (uint32_t)__builtin_popcountll(bits));
  return out;
}

gf2_space gf2_sum(const gf2_space *a, const gf2_space *b) {
  gf2_space out = *a;
  for (uint32_t i = 0; i < b->rank; i++) gf2_add(&out, b->rows[i]);
  return out;
}

gf2_space gf2_intersection(const gf2_space *a, const gf2_space *b) {
  gf2_space a_null = gf2_null(a, UINT64_MAX), b_null = gf2_null(b, UINT64_MAX), both = gf2_sum(&a_null, &b_null);
  return gf2_null(&both, UINT64_MAX);
}
