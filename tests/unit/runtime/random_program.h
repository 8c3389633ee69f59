/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs on libfarfault, on the model driver, each checked byte for byte against the host running its launches
 * one after another.
 *
 * program  an ff_open, then steps (segments made, mapped, launched on, evicted, pinned, freed ...), then everything
 * read back, ff_close
 * world    some segments and what was done to them, in order (the log); a program of threads has one for each and a shared one
 * replay   the log done again on the host, with the outcomes that the library told: every byte that was seen must be the one then */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stddef.h>

#include "model_driver.h"

typedef enum program_failures {
  PROGRAM_NO_FAILURES,
  PROGRAM_FAILURES,    /* calls fail by chance and all goes on */
  PROGRAM_ONE_FAILURE, /* one call does, wherever */
  PROGRAM_LOST         /* the context is lost at some point */
} program_failures;

typedef struct program_options {
  uint64_t seed;
  const uint8_t *bytes; /* not NULL: the choices come from these, not from the seed */
  size_t byte_count;
  program_failures failures;
  uint32_t threads; /* 0, 1: the caller's only */
  uint32_t steps;   /* 0: as the seed says */
  bool verbose;     /* every step and every driver call on stderr */
} program_options;

typedef struct program_result {
  bool good;
  char why[4096]; /* what was wrong */
  char *trace;    /* the steps, one a line; the caller frees */
  uint64_t launches, refused, failed_calls, failed_launches, windows, evicted_bytes, torn;
} program_result;

/* Once: the kernels, the folder for files. `driver`: the model driver's file. False: it cannot be loaded. */
bool program_start(const char *driver);
void program_run(const program_options *options, program_result *result);
void program_end(void);
#endif
