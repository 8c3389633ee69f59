/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX of a file, whatever it is: PTX text, Tile IR's bytecode, which is translated, an executable or fat binary
 * with PTX inside, or a recorded program. */
#ifndef FF_CLI_CODE_H
#define FF_CLI_CODE_H

#include "base/memory.h"
#include "ptx/ir.h"

typedef struct code { /* modules in the file's order; each is named for messages and has its text */
  FF_VEC(ptx_module *) modules;
} code;

/* Of an executable the modules for its newest architecture: the same program again is in it for older ones. Of a trace
 * each text once. FF_NOT_FOUND: there is none. After an error there is nothing to free. */
ff_status code_load(const char *path, code *code, ff_error *error);
void code_free(code *code);

/* *text, of malloc, becomes PTX if it is Tile IR's bytecode, and stays as it is if not, or after an error. */
ff_status code_translate(const char *path, char **text, size_t *size, ff_error *error);

#endif
