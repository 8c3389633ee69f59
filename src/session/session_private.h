/* SPDX-License-Identifier: Apache-2.0 */
/* What session.c, session_results.c and session_ending.c share. */
#ifndef FF_STUDY_PRIVATE_H
#define FF_STUDY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "base/ending.h"
#include "report/report.h"
#include "session/session.h"
#include "trace/origin.h"

struct session {
  session_options options;
  machine_spec spec;
  char machine[64];        /* short name of the machine, for the reports */
  uint64_t gpu_memory;     /* bytes that the program finds: the machine's, or more if more is simulated */
  uint64_t managed_memory; /* bytes that the managers have; 0: managed_share of what the program allocates */
  double managed_share;
  pid_t process;          /* that made the session: a forked child must leave it alone */
  char *results;          /* the file to write, "%p" replaced; NULL: none */
  bool elsewhere;         /* it had no room, and was last written to one of session_other_folders */
  trace_program *program; /* NULL: functional only */
  struct {
    sim_choice choice;
    sim *sim;
    pthread_t thread;
  } managers[SESSION_MANAGER_LIMIT]; /* each manager on each device, devices last */
  uint32_t manager_count;
  uint32_t device_first, device_count;     /* that are simulated */
  sim_peers *peers[SESSION_MANAGER_LIMIT]; /* of several: where each manager's simulations meet */
  uint32_t peers_count;
  struct recording *recording; /* to a trace file; NULL: none is wanted */
  pthread_t recording_thread;
  struct {                /* of each device: */
    trace_future *future; /* for managers that ask for it; recorded by `sim` */
    sim *sim;             /* a simulation that shows no results; NULL: no manager asks */
    pthread_t thread;
    bool started;
  } recorders[TRACE_DEVICES_MAX];
  session_progress *progress;
  size_t progress_mapped; /* bytes mapped, 0: it is own_progress */
  session_progress own_progress;
  struct timespec started;
  pthread_mutex_t lock; /* guards stats and notes */
  exec_stats stats;
  uint64_t launches, compiled_launches;
  report_run notes;   /* only its notes and streams are used */
  uint32_t own_notes; /* how many of them say what the session was told; the others are the program's */
  char *command;      /* of the program that was recorded; NULL: this process's own */
  pthread_t writer;
  ff_ending ending;          /* its `wake` is the writer's, posted after `stopping` or its `number` was set */
  atomic_bool stopping;      /* the writer is to end */
  atomic_bool stream_ended;  /* TRACE_OP_END was appended */
  atomic_bool no_room_noted; /* session_note_no_room was called */
  bool finished;
};

/* Collects everything into *run (report_free) as of now; whole: with histories and lines, if they are kept. */
void session_collect(session *session, bool complete, bool whole, report_run *run);
/* Writes the results file, if one is wanted, and what the progress area says of simulated time. Errors are ignored: the
 * reader finds the last file that could be written. */
void session_write_results(session *session, bool complete);
/* The last time: with histories and lines, if they are kept. */
void session_write_final_results(session *session, bool complete);
/* The thread that does so, more often at first, then twice a second; `argument` is the session. */
void *session_writer(void *argument);
bool session_has_recorder(const session *session);
/* Tells the simulations that nothing follows (once; further calls do nothing). */
void session_end_stream(session *session);

/* The program's command as a shell would take it; NULL: unknown. The caller frees it. */
char *session_command(const session *session);
/* A path of the options with "%p" replaced so that no file of that name is there. The caller frees it. */
char *session_own_path(const session *session, const char *pattern);

/* ---- session_record.c ---- */

typedef struct recording recording;
/* Opens the file of options.record and a reader of the stream: before its first operation. */
ff_status recording_create(session *session, recording **out, ff_error *error);
void *recording_run(void *recording);                   /* its thread; returns at the program's end */
bool recording_is_over(const recording *recording);     /* it has got there; NULL: true */
void recording_finish(session *session, bool complete); /* ends the file; further calls do nothing */
void recording_free(recording *recording);

/* ---- session_ending.c ---- */

/* In the writer's thread, after the ending's number was set: gives the simulations a little time to get to the end of
 * what the program did, and writes the results as they are then. */
void session_write_ending(session *session);

#endif
