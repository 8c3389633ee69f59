/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of which segment each block of one launch touches, proved from the kernel's PTX.
 *
 * An abstract interpretation of the kernel with the launch's own parameters: every value is
 * `a * ctaid.x + b * ctaid.y + c * ctaid.z + [lo, hi]` with constants a, b, c, and lies within bounds over the whole
 * grid. From that follow, for each segment, an affine range per block, or why there is none.
 *
 * Every access of block (x, y, z) to global memory lies in the range of the segment that it hits (test_ranges.c runs
 * random kernels and compares). One assumption may be needed, which the result says then (`assumed`): that an address
 * computed from a pointer into one segment by an unknown amount still points into that segment, as C demands.
 *
 *   ptx_ranges_launch launch = {grid, block, parameters, parameter_bytes, segments, segment_count};
 *   ptx_ranges found;
 *   ptx_ranges_find(kernel, &launch, &found);
 *   ... found.segments[i].all ...
 *   ptx_ranges_free(&found); */
#ifndef FF_PTX_RANGES_H
#define FF_PTX_RANGES_H

#include "ptx/ir.h"

#define PTX_RANGES_SEGMENTS 62u /* the most that a launch may have; with more nothing is analysed */

typedef struct ptx_ranges_segment { /* what the kernel's pointers may point into: no two overlap */
  uint64_t base, bytes;
} ptx_ranges_segment;

typedef struct ptx_ranges_launch {
  uint32_t grid[3], block[3]; /* all at least 1 */
  const void *params;         /* the parameter block, with the addresses that the kernel gets */
  uint32_t param_bytes;
  const ptx_ranges_segment *segments;
  uint32_t segment_count;
} ptx_ranges_launch;

/* Bytes of one segment, offsets from its base. Block (x, y, z) touches at most
 *   [start + x * per_block[0] + y * per_block[1] + z * per_block[2], + block_bytes), cut to [offset, offset + bytes).
 * `whole`: all that is known is [offset, offset + bytes); then start == offset, per_block is 0, block_bytes ==
 * bytes. */
typedef struct ptx_range {
  bool any; /* false: nothing is touched, and all below is 0 */
  bool whole;
  uint64_t offset, bytes; /* by the whole launch; within the segment, bytes > 0 */
  int64_t start, per_block[3];
  uint64_t block_bytes;
} ptx_range;

typedef struct ptx_segment_ranges {
  ptx_range reads, writes; /* atomics are both */
  ptx_range all;           /* covers both */
  /* in the PTX: of the access that made `all` whole; 0: it is not, or there are no blocks to tell apart */
  uint32_t line;
  /* why `all` is whole: "the access at line 12: its address depends on a value loaded at line 9"; or "" */
  char reason[256];
} ptx_segment_ranges;

typedef struct ptx_ranges {
  ptx_segment_ranges *segments; /* as many as the launch has, in its order */
  uint32_t segment_count;
  bool complete;         /* false: the kernel could not be analysed: all segments are whole, read and written */
  char reason[256];      /* why not; else "" */
  bool assumed;          /* true: rests on pointers staying in the segment they point into */
  uint32_t assumed_line; /* the first access that needs it */
  uint32_t steps;        /* instructions interpreted: what it cost */
} ptx_ranges;

/* Bounded: some milliseconds for a kernel of ordinary size, at most a fraction of a second. The kernel's
 * module must be linked. */
void ptx_ranges_find(const ptx_func *kernel, const ptx_ranges_launch *launch, ptx_ranges *result);
void ptx_ranges_free(ptx_ranges *result);

/* The bytes that the blocks [first, first + count) touch: [*begin, *end) as offsets into the segment; empty: begin ==
 * end. */
void ptx_range_of_blocks(const ptx_range *range, const uint32_t first[3], const uint32_t count[3], uint64_t *begin,
                         uint64_t *end);

#endif
