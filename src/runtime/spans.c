/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes: see spans.h. */
#include "runtime/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* The first range that ends at or behind `at` (behind it, if not `touching`). */
static size_t first_from(const spans *set, uint64_t at, bool touching) {
  size_t low = 0, high = set->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (set->items[middle].end < at || (!touching && set->items[middle].end == at)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Puts `count` ranges (at most two) in the place of [from, to). */
static void replace(spans *set, size_t from, size_t to, const span *ranges, size_t count) {
  if (from == to && !count) return;
  size_t behind = set->count - to;
  ff_vec_reserve((void **)&set->items, &set->capacity, from + count + behind, sizeof(span));
  memmove(set->items + from + count, set->items + to, behind * sizeof(span));
  for (size_t i = 0; i < count; i++) set->items[from + i] = ranges[i];
  set->count = from + count + behind;
  FF_CHECK_DEEP((spans_check(set), true));
}

void spans_add(spans *set, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  size_t from = first_from(set, begin, true), to = from;
  while (to < set->count && set->items[to].begin <= end) {
    if (set->items[to].begin < begin) begin = set->items[to].begin;
    if (set->items[to].end > end) end = set->items[to].end;
    to++;
  }
  replace(set, from, to, &(span){begin, end}, 1);
}

void spans_remove(spans *set, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  size_t from = first_from(set, begin, false), to = from, kept = 0;
  span rest[2];
  while (to < set->count && set->items[to].begin < end) {
    if (set->items[to].begin < begin) rest[kept++] = (span){set->items[to].begin, begin};
    if (set->items[to].end > end) rest[kept++] = (span){end, set->items[to].end};
    to++;
  }
  replace(set, from, to, rest, kept);
}

void spans_free(spans *set) {
  free(set->items);
  *set = (spans){0};
}

bool spans_cover(const spans *set, uint64_t begin, uint64_t end) {
  if (begin >= end) return true;
  size_t at = first_from(set, begin, false);
  return at < set->count && set->items[at].begin <= begin && set->items[at].end >= end;
}

uint64_t spans_bytes(const spans *set, uint64_t begin, uint64_t end) {
  uint64_t bytes = 0;
  for (size_t i = first_from(set, begin, false); i < set->count && set->items[i].begin < end; i++) {
    uint64_t from = set->items[i].begin > begin ? set->items[i].begin : begin,
             to = set->items[i].end < end ? set->items[i].end : end;
    bytes += to - from;
  }
  return bytes;
}

bool spans_next(const spans *set, bool inside, uint64_t *at, uint64_t end, span *found) {
  if (*at >= end) return false;
  size_t i = first_from(set, *at, false);
  if (inside) {
    if (i == set->count || set->items[i].begin >= end) return false;
    found->begin = set->items[i].begin > *at ? set->items[i].begin : *at;
    found->end = set->items[i].end < end ? set->items[i].end : end;
  } else {
    uint64_t begin = *at;
    if (i < set->count && set->items[i].begin <= begin) begin = set->items[i++].end;
    if (begin >= end) return false;
    *found = (span){begin, i < set->count && set->items[i].begin < end ? set->items[i].begin : end};
  }
  *at = found->end;
  return true;
}

void spans_check(const spans *set) {
  for (size_t i = 0; i < set->count; i++) {
    FF_ASSERT(set->items[i].begin < set->items[i].end);
    FF_ASSERT(!i || set->items[i - 1].end < set->items[i].begin);
  }
}
