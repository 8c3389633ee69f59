/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the blocks' prints are output. */
#ifndef FF_EXEC_OUTPUT_H
#define FF_EXEC_OUTPUT_H

#include "exec/core.h"

typedef struct core_output core_output;
core_output *core_output_create(const exec_config *config);
/* Moves the block's text on if all blocks before it have finished. end: the block prints no more. NULL: does
 * nothing. */
void core_output_flush(core_output *output, core_block *block, bool end);
void core_output_finish(core_output *output); /* what is left, in block order; frees it */

#endif
