/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that only wait for the clock. */
#ifndef FF_EXEC_SPIN_H
#define FF_EXEC_SPIN_H

#include "exec/decode/decode.h"

/* Marks such loops in the code that has just been decoded, targets and attention included. */
void exec_spin_find(decoder *d);
/* A handler: the first read of the clock in such a loop. */
void core_spin(exec_warp *x, const exec_instr *i);
/* access_records.c: as core_trace_issue of all instructions of so many rounds, one after the other, of the loop from
 * PTX instruction `first`, to which the warp has come, to `last`; in steps of whole ISSUEs. */
void core_trace_rounds(core_warp *w, uint32_t first, uint32_t last, uint64_t rounds);

#endif
