/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes, as sorted ranges.
 *
 * What always holds: the ranges are not empty, sorted, and do not touch: items[i].end < items[i + 1].begin. */
#ifndef FF_RUNTIME_SPANS_H
#define FF_RUNTIME_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct span {
  uint64_t begin, end;
} span; /* bytes [begin, end) */
typedef FF_VEC(span) spans;

/* An empty range (begin >= end) changes nothing and is covered by everything. */
void spans_add(spans *set, uint64_t begin, uint64_t end);
void spans_remove(spans *set, uint64_t begin, uint64_t end);
void spans_free(spans *set);
bool spans_cover(const spans *set, uint64_t begin, uint64_t end);
uint64_t spans_bytes(const spans *set, uint64_t begin, uint64_t end); /* how many of [begin, end) are in it */
/* The first longest range of [*at, end) whose bytes all are (`inside`) or all are not in the set; moves *at behind it.
 * false: there is none. */
bool spans_next(const spans *set, bool inside, uint64_t *at, uint64_t end, span *found);
void spans_check(const spans *set); /* what always holds */

#endif
