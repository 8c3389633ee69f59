/* SPDX-License-Identifier: Apache-2.0 */
/* The code of a recorded program: its modules as they come in the access stream, parsed, and linked when the first
 * kernel of one is asked for. For one thread at a time. */
#ifndef FF_OFFLOAD_RECORDED_CODE_H
#define FF_OFFLOAD_RECORDED_CODE_H

#include "ptx/ir.h"
#include "trace/stream.h"

typedef struct recorded_code recorded_code;

recorded_code *recorded_code_create(void);
void recorded_code_free(recorded_code *code); /* NULL: nothing. Its modules and functions go with it */
/* A translation unit of module `id`; the text is only read now. Nothing is done with one of no bytes (it was too large
 * to be recorded), nor once the module was linked. */
void recorded_code_add(recorded_code *code, uint32_t id, const char *ptx, uint64_t bytes);
/* The kernel: by its symbol (trace_symbol), or if that is 0 by the name that the launch has, mangled or not. NULL: it
 * is not there, or what could be meant is more than one. */
const ptx_func *recorded_code_find(recorded_code *code, uint32_t id, uint64_t symbol, const char *name);
/* The first thing that was wrong with the code; NULL: nothing. Belongs to the code. */
const char *recorded_code_problem(const recorded_code *code);

#endif
