/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `farfault share`: share_command.c (the command, its options), share_run.c (simulations as child
 * processes), share_one.c (one simulation, which is what such a child does). What is simulated and what is made of it
 * are in share/share_matrix.h and share/share_slo.h. */
#ifndef FF_CLI_SHARE_H
#define FF_CLI_SHARE_H

#include "cli/cli.h"
#include "base/tasks.h"
#include "share/share_matrix.h"

typedef struct share_arguments {
  cli_setup setup;
  machine_spec spec;                /* the machine, with what --set says */
  const char *partitions;           /* texts are argv's, but for `command`; NULL: not given */
  const char *mig;                  /* profiles; NULL: the largest of which so many fit */
  const char *isolate;              /* the list; NULL: all that the machine has */
  FF_VEC(const char *) files;       /* as given; "-": idle (--one) */
  FF_VEC(const char *) interferers; /* lists with commas, as are deadlines */
  FF_VEC(const char *) deadlines;
  const char *json, *csv, *svg;
  uint32_t jobs; /* 0: one per core */
  bool borrow, one;
  char *command; /* owned; "farfault share ...", without what says only where the output goes */
} share_arguments;

/* A number of simulations, each in a process of its own. */
typedef struct share_pool {
  const share_arguments *arguments;
  const share_matrix *m; /* programs */
  void *context;
  /* What is to be simulated. */
  void (*request)(const void *context, uint32_t task, share_request *request);
  /* Its outcomes, of malloc (the callee's); NULL: why there are none. */
  void (*take)(void *context, uint32_t task, share_outcome *outcomes, const char *why);
  uint32_t done;  /* simulations that ended so far, over all calls */
  uint32_t later; /* about how many come after this call: for the progress line */
  ff_tasks tasks; /* of all calls; the caller frees it */
} share_pool;

/* Runs tasks 0 .. count - 1. Returns the signal that stopped it, 0: none. */
int share_pool_run(share_pool *pool, uint32_t count);
/* "sm=25%,memory=50%:sm=75%,memory=50%": percentages with six decimals, rounded down. */
void share_request_text(const share_request *request, ff_text *out);
/* --one: returns the exit status. */
int share_one(const share_arguments *a, const share_matrix *m);

#endif
