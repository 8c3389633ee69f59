/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled execution path: kernels as native vector code, made by farfault-compile (generator/), kept on disk.
 *
 *   decoded functions --describe.c--> request --farfault-compile, or the cache--> image --image.c--> functions (exec/launch/native.h) */
#ifndef FF_COMPILE_COMPILE_H
#define FF_COMPILE_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum compile_mode {
  COMPILE_NEVER, /* everything is interpreted */
  /* kernels that run for long are compiled in parallel with the interpreter, which goes on until the code is there */
  COMPILE_AUTO,
  COMPILE_ALWAYS, /* before a kernel's first launch */
} compile_mode;

/* "interpret", "auto" or "compile"; false: none of them. */
bool compile_mode_parse(const char *text, compile_mode *mode);
/* How all launches of this process are executed from now on. COMPILE_ALWAYS fails (FF_NOT_FOUND) if this build has no
 * compiler; with COMPILE_AUTO it does not matter. Not while a launch runs. */
ff_status compile_use(compile_mode mode, ff_error *error);
/* The path of farfault-compile; false: it is not there. */
bool compile_find(char *path, size_t room);

typedef struct compile_stats {
  uint64_t compiled, loaded, failed; /* kernels: made by the compiler, found in the cache, not possible */
  uint64_t microseconds;             /* that the compiler took for all of them */
  uint64_t code_bytes;
} compile_stats;
void compile_get_stats(compile_stats *stats);

#endif
