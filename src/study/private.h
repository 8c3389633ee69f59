/* SPDX-License-Identifier: Apache-2.0 */
/* What session.c and results.c share. */
#ifndef FF_STUDY_PRIVATE_H
#define FF_STUDY_PRIVATE_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include "report/report.h"
#include "study/session.h"

enum { SESSION_MANAGER_LIMIT = 16 };

struct session {
  session_options options;
  machine_spec spec;
  char machine[64];              /* short name of the machine, for the reports */
  uint64_t gpu_memory;           /* bytes */
  pid_t process;                 /* that made the session: a forked child must leave it alone */
  trace_program *program;        /* NULL: functional only */
  struct {
    sim *sim;
    pthread_t thread;
  } managers[SESSION_MANAGER_LIMIT];
  uint32_t manager_count;
  session_progress *progress;
  size_t progress_mapped;        /* bytes mapped, 0: it is own_progress */
  session_progress own_progress;
  struct timespec started;
  pthread_mutex_t lock;          /* guards stats and notes */
  exec_stats stats;
  report_run notes;              /* only its notes are used */
  pthread_t writer;
  pthread_cond_t wake;
  bool stopping, finished;
};

/* Collects everything into *run (report_free) as of now. */
void session_collect(session *session, bool complete, report_run *run);
/* Writes the results file, if one is wanted, and what the progress area says of simulated time. Errors are ignored: the
 * reader finds the last file that could be written. */
void session_write_results(session *session, bool complete);
/* The thread that does so about twice a second; `argument` is the session. */
void *session_writer(void *argument);

#endif
