/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring, in one place: one running program, its access stream, and a simulation per manager in its own thread.
 *
 * Lives in the process of the CUDA program (inside libfarfault-gpu). Results go to a file that `farfault run` reads:
 * whole, written aside and renamed, about twice a second and at the end, so that a program that is killed leaves its
 * last snapshot; one that a signal ends which it does not handle leaves all it has (session_ending.c). */
#ifndef FF_STUDY_SESSION_H
#define FF_STUDY_SESSION_H

#include <limits.h>

#include "exec/exec.h"
#include "machine/spec/choice.h"

struct report_run;
typedef struct session_options { /* what `farfault run` passes through the environment */
  /* FARFAULT_MEMORY: "copy,replay+prefetch=tbn" (machine/spec/choice.h); empty: functional only */
  char managers[2048];
  char machine[256];     /* FARFAULT_MACHINE */
  sim_choices choices;   /* for all managers. FARFAULT_SET: "fault_us=50,..."; the others: machine/spec/choices.def */
  char host_touches[16]; /* FARFAULT_HOST_TOUCHES: "off"; "pages", "groups": as on a system that shows less */
  char results[512];     /* FARFAULT_RESULTS: file to write; "%p" becomes the process number; empty: none */
  char record[PATH_MAX]; /* FARFAULT_RECORD: trace file to write; "%p" likewise; empty: none */
  char progress[512];    /* FARFAULT_PROGRESS: file mapped for session_progress; empty: none */
  bool history;          /* FARFAULT_HISTORY: "1": the final results have each simulation's history */
  bool lines;            /* FARFAULT_LINES: "1": they also have accesses and far-faults by line of the code */
  /* FARFAULT_PROFILE_RANGE: "1": they have only what happens between cudaProfilerStart and cudaProfilerStop */
  bool profile;
  char profile_nvtx[136];    /* FARFAULT_PROFILE_NVTX: a name; what happens in NVTX ranges of that name instead */
  uint64_t max_instructions; /* FARFAULT_MAX_INSTRUCTIONS */
  /* FARFAULT_BIND_SMS, "0-9": kernels are bound to these SMs by persistent blocks; sm_count 0: they are not */
  uint32_t sm_first, sm_count;
  uint32_t devices; /* FARFAULT_DEVICES: how many GPUs there are, all the same machine; 1 to 16, 0: 1 */
  uint32_t device;  /* of a recorded program only this one is simulated, its number from 1; 0: all */
  uint32_t threads; /* FARFAULT_THREADS: exec threads; 0: not chosen (session_threads) */
  char isa[32];     /* FARFAULT_ISA */
  char execute[16]; /* FARFAULT_EXECUTE: "interpret", "compile", "auto"; empty: interpret */
  /* what is known of a recorded program (near_data.h), borrowed until session_free; NULL: nothing */
  const sim_offloading *offloading;
  bool marks;            /* the stream is to have ENTER and LEAVE */
  uint64_t stream_bytes; /* of the access stream that stay in memory; 0: its own choice */
  /* The final results go to this function and to no file, and it owns *run; before them none are written. NULL: they go
   * to `results`. */
  void (*take)(void *context, struct report_run *run);
  void *take_context;
  char problem[256]; /* nonempty: what was wrong with the environment; session_create fails with it */
} session_options;

/* simulations of one run: a manager on a device is one */
enum { SESSION_MANAGER_LIMIT = 32, SESSION_DEVICE_LIMIT = 16 };

typedef struct session_progress { /* shared memory, written by the program's process, read by `farfault run` */
  volatile uint64_t launches, blocks_done, blocks_total, warp_instructions, simulated_ps, done;
  char kernel[128];
  volatile uint64_t simulated_instructions; /* warp instructions; like simulated_ps of the slowest simulation */
  /* how often each page came, under the manager that thrashes most; 0: none does */
  volatile uint64_t thrashing_times;
  char thrashing[64];           /* its name */
  volatile uint64_t first_pass; /* a recorded program is being looked at before it is simulated */
} session_progress;

typedef struct session session;

/* A results file in a temporary folder of this name that has no room left is written to the first of these that has;
 * the list ends with NULL. */
#define SESSION_FOLDER "farfault-"
extern const char *const session_other_folders[];
/* Its path there: "/dev/shm/farfault-AbCdEf-results-1.json" of ".../farfault-AbCdEf/results-1.json". NULL: the folder
 * is of another name, whose owner would not look there. The caller frees it. */
char *session_elsewhere(const char *results, const char *other);

void session_options_from_environment(session_options *options);
/* "0-9" or "4": SMs from the first to the last; false: it is no such range. */
bool session_sm_range(const char *text, uint32_t *first, uint32_t *count);
/* "12.4" as cuDriverGetVersion says it: 1000 * major + 10 * minor, from CUDA 11.0 on. 0: the text is no such
 * version. */
uint32_t session_driver_version(const char *text);
ff_status session_create(const session_options *options, session **out, ff_error *error);
const machine_spec *session_machine(const session *session);
uint64_t session_gpu_memory(const session *session); /* bytes */
trace_program *session_program(session *session);    /* NULL when functional only */
uint32_t session_devices(const session *session);
/* How many threads are to execute kernels; 0: as many as the host has cores. Unless chosen otherwise, one if something
 * is simulated or recorded: blocks that race then do the same on every run. */
uint32_t session_threads(const session *session);
sim *session_primary(session *session,
                     uint32_t device); /* answers questions of time: the device under the first manager that runs
                                                           in parallel to the program; NULL: there is none */
session_progress *session_progress_area(session *session); /* not NULL */
/* The area in the file of that path, `*mapped` bytes that the caller unmaps; NULL: there is none. */
session_progress *session_progress_map(const char *path, size_t *mapped);
void session_add_exec(session *session, const exec_stats *stats); /* adds to the host section of the results */
/* so far, of them with native code; the same section */
void session_count_launches(session *session, uint64_t compiled, uint64_t all);
void session_note(session *session, const char *text); /* a line for the report ("values depend on %clock", ...) */
/* The program calls the stream so; its number in the access stream. */
void session_name_stream(session *session, uint32_t stream, const char *name);
/* Notes whose time the program's clocks show. */
void session_note_clocks(session *session);
/* A note that `call` ("cudaMalloc") asked for `bytes` that do not fit, as `used` bytes of the GPU's memory are taken.
 * Only the first one of a run is noted: a program may try smaller and smaller sizes. */
void session_note_no_room(session *session, const char *call, uint64_t bytes, uint64_t used);
/* What the reports call the program, instead of this process's own command. Before the first operation. */
void session_set_command(session *session, const char *command);
/* Ends the stream (TRACE_OP_END), waits for the simulations, writes the final results. Idempotent. */
void session_finish(session *session);
/* The same for a program that did not come to its end: the results say that they are of a part. */
void session_break_off(session *session);
/* Finishes the session if that was not done, and frees everything of it. */
void session_free(session *session);

#endif
