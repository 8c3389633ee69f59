/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the handlers in moves.isa.c. */
#ifndef FF_EXEC_MOVES_H
#define FF_EXEC_MOVES_H

#include "exec/core.h"

typedef enum exec_move {
#define X(name) EXEC_MOVE_##name,
#include "exec/instructions/moves.def"
#undef X
} exec_move;

#endif
