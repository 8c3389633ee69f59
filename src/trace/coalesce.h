/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes' addresses of one warp access cost: the lines that it touches, and the rounds that memories on the
 * chip need.
 *
 * Used by all that make access records: the interpreter, the public library, importers. A set has the lines in the
 * order in which lanes 0, 1, ... first touch them, each line once; the lanes of all lines add up to the lanes of the
 * mask (checked at the deep level by trace_lines_collect). */
#ifndef FF_TRACE_COALESCE_H
#define FF_TRACE_COALESCE_H

#include "trace/stream.h"

enum { TRACE_LANES = 32 };

typedef struct trace_line_set {
  uint64_t line[TRACE_LANES]; /* address / TRACE_LINE_BYTES */
  uint32_t lanes[TRACE_LANES], sectors[TRACE_LANES];
  uint32_t count;
  uint32_t passes; /* as trace_shared_passes of these addresses; 0: no lane */
} trace_line_set;

/* The lines of address[lane] + add for the lanes of `mask`, `bytes` each (a power of two up to TRACE_LINE_BYTES),
 * aligned to it. */
void trace_lines_collect(trace_line_set *set, const uint64_t address[TRACE_LANES], uint64_t add, uint32_t bytes,
                         uint32_t mask);

/* Cycles in which shared memory serves the lanes of `mask`, `bytes` each at these offsets: 32 banks of 4 bytes, each
 * serving one word a cycle to any number of lanes; wider accesses go by half and quarter warps. 0: no lane. */
uint32_t trace_shared_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask);
/* Of an atomic operation: the lanes of a word take turns, those of different words side by side (a TU102 takes 25
 * cycles for one lane of a word, 31 for four, 87 for 32, two for each pass as of bank conflicts:
 * connollydavid/tu102). */
uint32_t trace_shared_atomic_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask);
/* The same for lanes of which no two need the same bank: all at one place, or one after the other. */
uint32_t trace_plain_group_passes(uint32_t bytes, uint32_t mask); /* of more than four bytes */
static inline uint32_t trace_plain_passes(uint32_t bytes, uint32_t mask) {
  return bytes <= 4 ? mask != 0 : trace_plain_group_passes(bytes, mask);
}
/* The same for local memory, which lies interleaved by words: lanes at one offset share a row; each other offset is
 * another pass. */
uint32_t trace_local_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask);

/* How many of a line's sectors are set. */
static inline uint32_t trace_sector_count(uint32_t sectors) {
  return (uint32_t)(UINT64_C(0x4332322132212110) >> (4 * sectors)) & 15;
}

#endif
