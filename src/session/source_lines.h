/* SPDX-License-Identifier: Apache-2.0 */
/* From what is counted by instruction to lines: of the PTX, and of the source where the PTX names them (.loc, which
 * nvcc writes with -lineinfo; of an inlined function they are those of its own body). */
#ifndef FF_SESSION_SOURCE_LINES_H
#define FF_SESSION_SOURCE_LINES_H

#include "machine/observe/result.h"

/* Fills in place, source, file and text of all lines, as far as the program's code says; the rest stays not known. Of
 * one program, by one thread. */
void source_lines_fill(sim_result *results, uint32_t count);

#endif
