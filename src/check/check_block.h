/* SPDX-License-Identifier: Apache-2.0 */
/* A bit per byte of a running block's shared memory and of its threads' local memory: has it been written?
 *
 * Shared memory has no values when the block begins, a function's local variables have none whenever it is called. A
 * block is run by one worker, so nothing here is locked. */
#ifndef FF_CHECK_BLOCK_H
#define FF_CHECK_BLOCK_H

#include "exec/launch/checker.h"

typedef struct check_block check_block;

check_block *check_block_create(const core_block *block);
void check_block_free(check_block *state);
/* The lanes inside a frame have no values in its local memory. */
void check_block_enter(check_block *state, const core_warp *w, const exec_frame *frame);
/* `space`: SHARED or LOCAL; `bytes` from `offset` on, inside of that memory. */
void check_block_set(check_block *state, const core_warp *w, ptx_space space, uint32_t lane, uint64_t offset,
                     uint32_t bytes);
bool check_block_any(const check_block *state, const core_warp *w, ptx_space space, uint32_t lane, uint64_t offset,
                     uint32_t bytes);

/* ---- compilers copy structures with their holes; what no instruction looks at on the way is no error ---- */

/* A load from local memory gives a value that nothing has written. True: its function does nothing with that register
 * but store it in local memory or in a structure that is a parameter, where it goes on unwritten, or choose between it
 * and another value. */
bool check_block_carry(check_block *state, const exec_watched *a, uint32_t lane, uint32_t element);
/* before check_block_carry of its elements; from any memory */
void check_block_loaded(check_block *state, const exec_watched *a, uint32_t lane);
/* all elements; of shared memory, too */
void check_block_stored(check_block *state, const exec_watched *a, uint32_t lane);

#endif
