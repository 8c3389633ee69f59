/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of `farfault run` and `farfault sim` as child processes, some at a time: what a study needs (jobs.c). */
#ifndef FF_CLI_JOBS_H
#define FF_CLI_JOBS_H

#include <sys/types.h>

#include "base/memory.h"
#include "cli/cli.h"

typedef struct job {
  char **argv;       /* of the child, NULL-ended; owned: jobs_free */
  char *log;         /* file that takes its stdout and stderr; owned */
  const char *label; /* what the progress line calls it; borrowed */
  double seconds;    /* about how long it takes, for the estimate */
  uint32_t task;     /* jobs_run's */
  pid_t process;     /* while it runs, else 0 */
  bool started, ended;
  int status; /* as a shell has it */
} job;

typedef struct jobs {
  FF_VEC(job) list;
  const char *title; /* of the progress line */
  uint32_t at_once;
  bool compared; /* `seconds` of jobs only compare them: how long they take is not known before one has ended */
  /* After each job that has ended. NULL: nothing. */
  void (*ended)(void *context, job *job);
  void *context;
} jobs;

/* Runs them all, in order, at most `at_once` at a time; shows progress on stderr: a line that changes on a terminal,
 * else a line now and then (ff_progress_period). A signal that
 * would end us is passed on to the children instead, and no further job is started: its number is returned; 0: there
 * was none. */
int jobs_run(jobs *jobs);
void jobs_free(jobs *jobs);

#endif
