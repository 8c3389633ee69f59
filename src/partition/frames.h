/* SPDX-License-Identifier: Apache-2.0 */
/* Physical GPU memory as frames: which are taken; they are given out by colour.
 *
 * A frame is an aligned piece of frame_bytes; it is named by its physical address (bytes from 0). Single frames are
 * given out lowest address first among the colours that the caller may have, so that a tenant's frames lie as densely
 * as its colours allow; runs of many frames first fit, and they have all colours. No time, no tenants: the caller keeps
 * account of which tenant has which frame. Deterministic.
 *
 * frames_check asserts, for each colour and for all together:
 *
 *   taken + free == all
 *
 * Kept as one bit a frame (4.6 MiB for 143 GiB in frames of 4 KiB) and, for each colour, one bit for 64 frames that
 * says "none left here". */
#ifndef FF_PARTITION_FRAMES_H
#define FF_PARTITION_FRAMES_H

#include "partition/colours.h"

enum { FRAME_BYTES = 4096 }; /* what frame_bytes 0 stands for */

typedef struct frames frames;

/* Memory of memory_bytes (what is left over behind the last whole frame is not used), all free. frame_bytes: a power of
 * two, at least 128. hash: by which colours go, NULL: one colour; it must outlive the frames. FF_INVALID, FF_LIMIT:
 * above 2^32 frames. The caller frees it with frames_free. */
ff_status frames_create(const address_hash *hash, uint64_t memory_bytes, uint64_t frame_bytes, frames **out,
                        ff_error *error);
void frames_free(frames *f);
const colours *frames_colours(const frames *f);
uint64_t frames_frame_bytes(const frames *f);

/* Takes the lowest free frame of one of the colours in `set` (bits of colours that do not exist are ignored).
 * FF_NO_MEMORY: none is free. */
ff_status frames_take(frames *f, uint64_t set, uint64_t *physical, ff_error *error);
/* Takes the first `bytes` (rounded up to frames) in a row that begin at a multiple of `alignment` (a power of two). Of
 * all colours: a run has no choice. FF_NO_MEMORY: none is that long; FF_INVALID: 0 bytes or no power of two. */
ff_status frames_take_run(frames *f, uint64_t bytes, uint64_t alignment, uint64_t *physical, ff_error *error);
/* Gives back what was taken, a frame or any part of a run (bytes rounded up to frames). That all of it is taken is
 * asserted. */
void frames_give(frames *f, uint64_t physical, uint64_t bytes);
bool frames_is_taken(const frames *f, uint64_t physical);

/* Counts of frames, of the colours in `set`. The first call that asks for a part of the colours counts all memory's. */
uint64_t frames_all(frames *f, uint64_t set);
uint64_t frames_taken(const frames *f, uint64_t set);
uint64_t frames_left(frames *f, uint64_t set);

/* The equation above, and that no free frame hides where "none left" is said. Asserts; walks everything. */
void frames_check(frames *f);

#endif
