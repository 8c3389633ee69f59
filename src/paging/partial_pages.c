/* SPDX-License-Identifier: Apache-2.0 */
/* Partial pages: of a page of 2 MiB only what was asked for moves, in units of 128 B to 64 KiB (Zhang et al., 2019).
 * The page's entry holds a few *ranges* of valid bytes; a request outside them makes a new range, or widens one:
 *
 *     one range:      the hull of all requests: what lies between moves too
 *     several ranges: a gap smaller than the threshold moves and closes; when there are more ranges than the entry
 *                     holds, the two with the smallest gap become one (the lower pair of equal ones)
 *
 * The ranges are the runs of units that are valid or on their way, so nothing can disagree with them. A request of the
 * CPU takes the whole page back (move.c): only what is newer on the GPU is copied, so the rest of the CPU's page
 * survives. */
#include <stdlib.h>

#include "paging/pager.h"

static uint32_t units_of(const pager *p) { return 1u << (PAGER_CHUNK_SHIFT - p->unit_shift); }

typedef struct gap {
  uint32_t first, last;
} gap; /* units between two ranges, both inclusive */

/* The page's gaps in order; returns how many (one less than ranges). */
static uint32_t find_gaps(const pager *p, const pager_chunk *chunk, gap *gaps, uint32_t room) {
  uint32_t units = units_of(p), count = 0, at = pager_chunk_next(p, chunk, 0, true);
  while (at < units) {
    uint32_t end = pager_chunk_next(p, chunk, at, false), next = pager_chunk_next(p, chunk, end, true);
    if (next == units) break;
    FF_ASSERT(count < room);
    gaps[count++] = (gap){end, next - 1};
    at = next;
  }
  return count;
}

static void propose_gap(pager *p, const pager_chunk *chunk, const gap *g) {
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  FF_PUSH(&p->to_bring, ((pager_range){base + ((uint64_t)g->first << p->unit_shift), (uint64_t)(g->last - g->first + 1)
                                                                                         << p->unit_shift}));
}

/* Closes the gaps that may not stay. They are proposed in order of address. */
static void close_gaps(pager *p, const pager_chunk *chunk, gap *gaps, uint32_t count) {
  uint64_t threshold = p->config.gap_bytes >> p->unit_shift; /* units; a gap of fewer closes */
  bool *closed = ff_alloc(count + 1);
  uint32_t open = 0;
  for (uint32_t i = 0; i < count; i++) {
    closed[i] = p->config.ranges == 1 || gaps[i].last - gaps[i].first + 1 < threshold;
    open += !closed[i];
  }
  while (open + 1 > p->config.ranges) {
    uint32_t smallest = UINT32_MAX, at = 0;
    for (uint32_t i = 0; i < count; i++)
      if (!closed[i] && gaps[i].last - gaps[i].first < smallest) smallest = gaps[at = i].last - gaps[i].first;
    closed[at] = true;
    open--;
  }
  for (uint32_t i = 0; i < count; i++)
    if (closed[i]) propose_gap(p, chunk, &gaps[i]);
  free(closed);
}

void pager_partial(pager *p, const fault_request *request, uint64_t address) {
  const pager_chunk *chunk = pager_chunk_at(p, address);
  uint32_t room = units_of(p) / 2 + 1;
  gap *gaps = ff_alloc(room * sizeof *gaps);
  uint32_t count = find_gaps(p, chunk, gaps, room);
  p->to_bring.count = 0;
  close_gaps(p, chunk, gaps, count);
  free(gaps);
  pager_bring(p, request, true);
}

uint32_t pager_page_ranges(pager *p, uint64_t address) {
  const pager_chunk *chunk = pager_chunk_at(p, address);
  if (!p->config.ranges) return 0;
  uint32_t units = units_of(p), count = 0;
  for (uint32_t at = pager_chunk_next(p, chunk, 0, true); at < units; count++)
    at = pager_chunk_next(p, chunk, pager_chunk_next(p, chunk, at, false), true);
  return count;
}
