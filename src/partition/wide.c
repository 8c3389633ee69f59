/* SPDX-License-Identifier: Apache-2.0 */
/* Elimination over GF(2), row by row. */
#include "partition/wide.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

wide_space wide_create(uint32_t columns) {
  wide_space s = {.columns = columns, .words = (columns + 63) / 64};
  s.rows = ff_alloc((size_t)columns * s.words * sizeof *s.rows + 1);
  s.pivots = ff_alloc(columns * sizeof *s.pivots + 1);
  return s;
}

void wide_free(wide_space *space) {
  free(space->rows);
  free(space->pivots);
  *space = (wide_space){0};
}

void wide_copy(wide_space *to, const wide_space *from) {
  to->rank = from->rank;
  memcpy(to->rows, from->rows, (size_t)from->rank * from->words * sizeof *from->rows);
  memcpy(to->pivots, from->pivots, from->rank * sizeof *from->pivots);
}

static void add_row(uint64_t *to, const uint64_t *row, uint32_t words) {
  for (uint32_t i = 0; i < words; i++) to[i] ^= row[i];
}

static void reduce(const wide_space *space, uint64_t *v) {
  for (uint32_t i = 0; i < space->rank; i++)
    if (wide_bit(v, space->pivots[i])) add_row(v, space->rows + (size_t)i * space->words, space->words);
}

static uint32_t lowest(const wide_space *space, const uint64_t *v) {
  for (uint32_t i = 0; i < space->words; i++)
    if (v[i]) return i * 64 + (uint32_t)__builtin_ctzll(v[i]);
  return space->columns;
}

bool wide_contains(const wide_space *space, uint64_t *v) {
  reduce(space, v);
  return lowest(space, v) == space->columns;
}

bool wide_add(wide_space *space, uint64_t *v) {
  if (wide_contains(space, v)) return false;
  uint32_t pivot = lowest(space, v);
  for (uint32_t i = 0; i < space->rank; i++) {
    uint64_t *row = space->rows + (size_t)i * space->words;
    if (wide_bit(row, pivot)) add_row(row, v, space->words);
  }
  memcpy(space->rows + (size_t)space->rank * space->words, v, space->words * sizeof *v);
  space->pivots[space->rank++] = pivot;
  return true;
}

/* A column that is no pivot may be chosen freely; the pivots follow from it, one row each. */
uint32_t wide_null(const wide_space *space, uint64_t *out, uint32_t *own) {
  uint32_t count = 0;
  uint8_t *is_pivot = ff_alloc(space->columns + 1);
  for (uint32_t i = 0; i < space->rank; i++) is_pivot[space->pivots[i]] = 1;
  for (uint32_t column = 0; column < space->columns; column++) {
    if (is_pivot[column]) continue;
    uint64_t *v = out + (size_t)count * space->words;
    memset(v, 0, space->words * sizeof *v);
    wide_flip(v, column);
    for (uint32_t i = 0; i < space->rank; i++)
      if (wide_bit(space->rows + (size_t)i * space->words, column)) wide_flip(v, space->pivots[i]);
    own[count++] = column;
  }
  free(is_pivot);
  FF_CHECK_DEEP(space->rank + count == space->columns);
  return count;
}

uint64_t wide_bits(const uint64_t *v, uint32_t from, uint32_t count) {
  if (!count) return 0;
  uint32_t word = from / 64, shift = from % 64;
  uint64_t bits = v[word] >> shift;
  if (shift && shift + count > 64) bits |= v[word + 1] << (64 - shift);
  return count < 64 ? bits & ((UINT64_C(1) << count) - 1) : bits;
}
