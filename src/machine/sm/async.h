/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for what no register waits for: asynchronous copies, by groups or at mbarriers of the block (trace/stream.h,
 * ASYNC). A warp's copies arrive by the data of their lines (warp_access.c); an arrival at an mbarrier is that of the
 * warp, or of its copies if they come later. */
#ifndef FF_MACHINE_SM_ASYNC_H
#define FF_MACHINE_SM_ASYNC_H

#include <stdbool.h>

#include "machine/sm/sm.h"

/* An ASYNC of the warp at *time, which moves on to when the warp goes on. true: that is not yet known: it waits, and
 * an arrival will wake it. */
bool async_record(front_end *f, warp *w, uint64_t word, ps *time);
/* All warps of the block wait: those at mbarriers go on, as a stream that lacks arrivals must not stop the
 * simulation. */
void async_unmet(front_end *f, block *b, ps time);
void async_free(block *b); /* its mbarriers; when it is over, or with the simulation */

#endif
