/* SPDX-License-Identifier: Apache-2.0 */
/* Contiguous virtual memory over frames of some colours: page i of the range is the i-th frame that it took, wherever that lies, so that every byte of
 * every frame is used. (A range that reads as contiguous only in blocks larger than a frame would leave the other colours' part of each block unused:
 * half of it with two colours, as in Jain 2019, section V.)
 *
 * Simulated GPUs (machine/placing.c) take their frames one by one when a page is touched, as their pages come and go; this is for who maps a whole
 * allocation at once.
 *
 * What always holds: pages = ceil(bytes / frame_bytes), each page has a frame of its own, of a colour in the set. The range owns its frames. */
#ifndef FF_PARTITION_RANGE_H
#define FF_PARTITION_RANGE_H

#include "partition/frames.h"

typedef struct coloured_range {
  frames *from;
  uint64_t set, bytes;
  uint64_t *pages; /* the physical address of each */
  uint64_t page_count;
} coloured_range;

/* `bytes` (above 0) of frames of the colours in `set`. FF_NO_MEMORY: not so many are free; nothing is taken then. Free it with coloured_range_free. */
ff_status coloured_range_make(frames *from, uint64_t set, uint64_t bytes, coloured_range *out, ff_error *error);
/* Gives its frames back. A zeroed range is an empty one. */
void coloured_range_free(coloured_range *range);
/* Makes it larger or smaller (above 0): what it had stays where it is. FF_NO_MEMORY: it is as before. */
ff_status coloured_range_resize(coloured_range *range, uint64_t bytes, ff_error *error);
/* Where byte `offset` (below bytes) lies. */
uint64_t coloured_range_physical(const coloured_range *range, uint64_t offset);

#endif
