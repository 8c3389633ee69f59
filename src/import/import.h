/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of other simulators as ours (trace/file.h). So far: Accel-Sim's SASS traces, as its NVBit tool and
 * post-traces-processing leave them in a folder: kernelslist.g, and per launch kernel-N.traceg, also compressed (.xz,
 * .gz).
 *
 * The trace is written aside and is whole or not there; what is wrong with the input is said with
 * file and line. */
#ifndef FF_IMPORT_IMPORT_H
#define FF_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct import_progress {
  const char *file;          /* that is read */
  uint64_t launch, launches; /* from 1 */
  uint64_t block, blocks;    /* of it */
} import_progress;

typedef struct import_result {
  uint64_t operations, launches, blocks, accesses, bytes; /* of the trace */
  uint64_t allocations;                                   /* inferred */
  uint64_t allocated;                                     /* bytes of them */
} import_result;

/* `from`: the folder, or its kernelslist.g. `command`: what reports call the program. FF_NOT_FOUND: the input cannot be
 * read; FF_PARSE; FF_IO: the trace cannot be written. `step` (may be NULL) is called
 * after each block. */
ff_status import_accelsim(const char *from, const char *to, const char *command,
                          void (*step)(void *context, const import_progress *progress), void *context,
                          import_result *result, ff_error *error);

#endif
