/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that only wait for the clock. */
#ifndef FF_EXEC_SPIN_H
#define FF_EXEC_SPIN_H

#include "exec/decode/decode.h"

/* Marks such loops in the code that has just been decoded, targets and attention included. */
void exec_spin_find(decoder *d);
/* A handler: the first read of the clock in such a loop. */
void core_spin(exec_warp *x, const exec_instr *i);

#endif
