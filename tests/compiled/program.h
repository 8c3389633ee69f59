/* SPDX-License-Identifier: Apache-2.0 */
/* Random valid PTX for comparing the interpreter with compiled code.
 *
 * Every program is a kernel k(.u64 out, .u64 table, .u32 n, .f32 f) with functions that it calls. `table` has
 * PROGRAM_TABLE bytes that are only read; everything else that a program may touch is its own, or one of the
 * PROGRAM_OUT bytes of `out`, which blocks share and race for: with one host thread both ways have to take the same
 * turns, and so to leave the same bytes. */
#ifndef FF_TESTS_COMPILED_PROGRAM_H
#define FF_TESTS_COMPILED_PROGRAM_H

#include <stdint.h>

#include "base/text.h"

#define PROGRAM_THREADS 256u /* of a whole launch, at most */
#define PROGRAM_SLOTS 256u   /* results of 8 bytes per thread, side by side */
#define PROGRAM_OUT (PROGRAM_THREADS * PROGRAM_SLOTS * 8u)
#define PROGRAM_TABLE 16384u
#define PROGRAM_SHARED 4096u

typedef struct program_forms program_forms;
/* Every computing form of the interpreter's tables, as a statement that parses and has a handler. */
program_forms *program_forms_make(void);
/* native: those that the compiler has code of its own for */
uint32_t program_forms_count(const program_forms *forms, bool native);
/* Names of the tables for which no statement was found. */
uint32_t program_forms_missing(const program_forms *forms, const char *const **names);
void program_forms_free(program_forms *forms);

/* The caller frees .chars. Any seed: control flow, calls, memory, exchanges. */
ff_text program_random(const program_forms *forms, uint64_t seed);
/* `count` forms from number `first` on, one after the other: with sources of all kinds (one per lane, one for all
 * lanes, constants), guarded and not. */
ff_text program_sweep(const program_forms *forms, bool native, uint32_t first, uint32_t count, uint64_t seed);

/* What a program's table has: of 64 random bits a special value of floats of any width, two small numbers, what is like
 * two floats near 1, or the bits themselves. */
uint64_t program_value(uint64_t noise);

#endif
