/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for what no register waits for: asynchronous copies, by groups or at mbarriers of the block (trace/stream.h,
 * ASYNC). A warp's copies arrive by the data of their lines (warp_access.c); an arrival at an mbarrier is that of the
 * warp, or of its copies if they come later, at once wherever in the cluster the mbarrier is. */
#ifndef FF_MACHINE_SM_ASYNC_H
#define FF_MACHINE_SM_ASYNC_H

#include <stdbool.h>

#include "machine/sm/sm.h"

/* An ASYNC of the warp at *time, which moves on to when the warp goes on. true: that is not yet known: it waits, and
 * an arrival will wake it. */
bool async_record(front_end *f, warp *w, uint64_t word, ps *time);
/* All warps of the block wait, none of them for another block: those at mbarriers go on, as a stream that lacks
 * arrivals must not stop the simulation. */
void async_unmet(block *b, ps time);
/* All warps of the block wait, one for another block of its cluster at least: it is *held* (block.held,
 * dispatcher.held). */
void async_held(block *b, ps time);
/* If every block that runs is held, their warps that wait for other blocks go on: what would arrive is in a block that
 * cannot start. To be asked when one is over and those that could start have; async_held does. */
void async_held_unmet(struct dispatcher *q, ps time);
/* A warp of the block, which may have been held, goes on. */
void async_goes_on(block *b);
void async_over(block *b);      /* no warp of it arrives or waits any more */
void async_free(block *b);      /* its mbarriers, if it was not over */
void async_far_free(kernel *k); /* what other blocks have arrived at in the launch */

#endif
