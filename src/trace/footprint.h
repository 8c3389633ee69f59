/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks of a launch touch, without order and time: for each page which sectors were read and written, by how many
 * accesses, and which block was the last. It is made from the blocks' ACCESS records and stands for them where only
 * places and counts matter (sampling: machine/sm/sample.h).
 *
 * A piece is a page of 4 KiB, or one line of a page in which two allocations meet, so that all that is counted of a
 * piece belongs to one allocation:
 *
 *     sum over pieces of loads + stores + atomics + prefetches == ACCESS records with lines
 *     sum over pieces of lines                                 == their lines,    the same for sectors
 *     a sector's bit is set in read or written                 == a record had it */
#ifndef FF_TRACE_FOOTPRINT_H
#define FF_TRACE_FOOTPRINT_H

#include "base/memory.h"
#include "trace/stream.h"

enum { FOOTPRINT_LINES = 32 }; /* of a page */

typedef struct footprint_piece {
  uint64_t line;                /* its first one: address / 128 */
  uint64_t last;                /* block that touched it last */
  uint64_t read[2], written[2]; /* sectors, 4 bits a line; atomics write, prefetches read */
  /* accesses whose first line lies in it */
  uint64_t loads, stores, atomics, prefetches;
  uint64_t lines, sectors; /* of all accesses; a line counts once for each */
  uint64_t span;           /* lines: FOOTPRINT_LINES, or 1 */
} footprint_piece;

/* Do parts of several allocations lie in the page of this address? */
typedef bool footprint_meets(void *context, uint64_t page);

typedef struct footprint {
  FF_VEC(footprint_piece) pieces; /* by first touch; once it is sorted, by last block */
  footprint_piece sum;            /* of the counts of all pieces */
  footprint_meets *meets;
  void *context;
  /* private: */
  uint64_t block;
  uint64_t *table; /* by hash: epoch << 32 | index into pieces; of another epoch: empty */
  size_t size;
  uint32_t epoch;
} footprint;

void footprint_open(footprint *f, footprint_meets *meets, void *context); /* empty */
void footprint_free(footprint *f);
void footprint_clear(footprint *f);
/* The accesses that follow are of this block. */
void footprint_block(footprint *f, uint64_t block);
void footprint_access(footprint *f, const uint64_t *record); /* an ACCESS with its lines */
/* A piece of another footprint; false: it divides the page otherwise. */
bool footprint_join(footprint *f, const footprint_piece *piece);
bool footprint_joins(footprint *f, const footprint_piece *piece); /* whether it would */
/* Pieces by last block; of the same block, by address. */
void footprint_sort(footprint *f);

/* Of half a mask, 16 lines, those of which a sector is set: the lowest bit of each. */
static inline uint64_t footprint_lines(uint64_t half) {
  half |= half >> 1;
  half |= half >> 2;
  return half & UINT64_C(0x1111111111111111);
}

static inline uint32_t footprint_sectors(const uint64_t mask[2], uint32_t line) {
  return (uint32_t)(mask[line / 16] >> line % 16 * 4) & 15;
}

#endif
