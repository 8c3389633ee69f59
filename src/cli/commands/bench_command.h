/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `farfault bench`: bench_command.c (arguments), bench_managed.c, bench_pipeline.c (what is run for each),
 * bench_child.c (one measurement in a process of its own). */
#ifndef FF_CLI_BENCH_H
#define FF_CLI_BENCH_H

#include "bench/managed.h"
#include "bench/pipeline.h"
#include "cli/cli.h"

enum { BENCH_MACHINES = 16 };

typedef struct bench_arguments {
  const char *what;               /* "managed", "pipeline" */
  char *machines[BENCH_MACHINES]; /* borrowed from argv's copies; count 0: the default */
  uint32_t machine_count;
  const char *memory;          /* the manager of managed memory; NULL: the machine's */
  cli_setup setup;             /* --set */
  uint32_t repeat;             /* 0: the default */
  uint32_t shapes;             /* a set of 1 << pipeline_shape; 0: all but matmul */
  uint32_t ways;               /* a set of 1 << managed_way or pipeline_way; 0: all */
  const char *only;            /* as it was given */
  uint64_t data, budget, tile; /* 0: the default */
  uint32_t rounds;
  const char *csv, *svg, *keep;
  const char *json; /* "-": instead of the table */
  char *command;    /* as the user would write it again; owned */
} bench_arguments;

int bench_managed(const bench_arguments *a);
int bench_pipeline(const bench_arguments *a);
/* What was printed and written. Returns the exit status. */
int bench_write(const bench_arguments *a, const ff_text *table, const ff_text *json, const ff_text *csv,
                const ff_text *svg);

/* ---- bench_child.c ---- */

typedef struct bench_job {
  const char *label;                         /* "segments on v100": messages */
  const char *machine, *memory, *gpu_memory; /* of the virtual GPU; gpu_memory NULL: the machine's */
  const char *set;                           /* as --set; "": none */
  const char *keep;                          /* file that takes the run with its history, NULL: none */
  /* Runs in the child: fills *result (`bytes` of shared memory, zeroed) or *error. */
  ff_status (*body)(const void *context, void *result, ff_error *error);
  const void *context;
  size_t bytes;
} bench_job;

/* by the simulation; not known on a real GPU */
typedef struct bench_moved {
  bool known;
  uint64_t to_gpu, from_gpu;
} bench_moved;

/* Runs the job; CLI_DONE, or an exit status after a message. */
int bench_child_run(const bench_job *job, void *result, bench_moved *moved);

#endif
