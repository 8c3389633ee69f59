/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `farfault run`, `record` and `sim`: shared_options.c (what they have in common), program_check.c (may
 * this file be run?), child.c (runs it), progress.c (the line on a terminal), live.c (a file while it runs),
 * run_results.c (what it left), run_outputs.c (the files it writes), record_command.c. */
#ifndef FF_CLI_RUN_H
#define FF_CLI_RUN_H

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/estimate.h"
#include "cli/cli.h"

typedef struct run_program {
  char *path;    /* of the executable, found on PATH if need be; owned */
  char *preload; /* names of our libraries to put into LD_PRELOAD, NULL: LD_LIBRARY_PATH is enough; owned */
  int status;    /* after a failure: the exit status that goes with it */
} run_program;

/* Finds the program and looks whether it can run on the virtual GPU: not there, not executable, CUDA machine code
 * without PTX. Scripts and files without CUDA code pass: they may start or load
 * some. `libraries` is the folder of the virtual GPU's libraries. After FF_OK the caller frees with
 * run_program_free. */
ff_status run_program_find(const char *name, const char *libraries, run_program *program, ff_error *error);
void run_program_free(run_program *program);

/* The folder of the virtual GPU's libraries, next to this executable; the caller frees it. Where its path has what the
 * dynamic linker takes for a separator, a link in `folder` (temporary) stands for it. NULL: not there, *error says
 * more. */
char *run_libraries(const char *folder, ff_error *error);

/* Of the libraries in that folder by which programs reach the virtual GPU those that are not there, or not written to
 * their end: a bit for each. */
uint32_t run_missing_libraries(const char *libraries);

/* libfarfault-clock.so in that folder, which makes a program's clocks virtual; the caller frees it. NULL: it is not
 * there. */
char *run_clock(const char *libraries);

/* The libraries of ours, separated by spaces, that must be in LD_PRELOAD because the RPATH of the program, or of a
 * library that it is linked with, goes before LD_LIBRARY_PATH, which is read here as the program will have it. NULL:
 * none; the caller frees it. */
char *run_needed_libraries(const char *program, const char *libraries);

typedef struct run_executed {
  char max_instructions[32], threads[32], execute[16], devices[8], private_runtimes[8];
  char bind_sms[16];
  char driver_version[8];     /* empty: not given, as all of these */
  const char *cuda_libraries; /* a folder with NVIDIA's libraries; NULL: not given */
  bool virtual_time;
} run_executed;

typedef struct run_outputs { /* paths, NULL: not wanted */
  const char *output, *json, *csv, *record, *junit;
  struct fail_if *conditions; /* fail_if.h; NULL: there can be none */
  bool verbose;               /* the table has all */
  bool quiet;                 /* there is no table */
  bool live;                  /* `output` is written while the program runs, too */
  uint32_t lines;             /* of the code that the table shows; 0: they are not asked for */
  bool stats;                 /* summaries as `nsys stats` has them follow the table */
  bool profile_range;         /* only what happens between cudaProfilerStart and cudaProfilerStop is counted, */
  const char *profile_nvtx;   /* or in NVTX ranges of this name; NULL: those are no profile ranges */
  int rank;                   /* of mpirun's ranks that each run farfault, this one's from 1; 0: it runs alone */
} run_outputs;

typedef struct run_child {
  char **argv; /* the program and its arguments */
  const run_program *program;
  const char *libraries;
  const char *folder; /* temporary folder for results and progress; NULL: neither is written */
  const cli_setup *setup;
  const run_executed *executed;
  bool history;       /* is to be kept */
  bool lines;         /* what accesses memory is to be counted by line */
  bool profile_range; /* as in run_outputs, */
  const char *profile_nvtx;
  const run_outputs *live; /* their file is written again while the program runs (live.c); NULL: it is not */
  const char *record;      /* where each process writes its trace (run_record_pattern); NULL: none is wanted */
  /* what the child does instead of becoming the program; returns its exit status; NULL: exec */
  int (*body)(void *context);
  void *context;
} run_child;

typedef struct run_end {
  int status;       /* exit status as a shell has it: 128 + signal if one ended it */
  int signal;       /* that signal, 0: none */
  uint32_t missing; /* run_missing_libraries of the folder `libraries` (the child's), as the program began */
  const char *libraries;
} run_end;

/* Names on stderr the libraries that are missing, and their folder; nothing where none is. */
void run_say_missing(const run_end *end);

/* Starts the program with the virtual GPU in front and waits for it; signals that others sent to us go to it, signals
 * from the terminal reach it by themselves. Shows progress if stderr is a terminal. */
ff_status run_child_wait(const run_child *child, run_end *end, ff_error *error);

/* The same of a child that has a body, by this process itself, which is a sweep's child and has nothing else to do:
 * nothing is forwarded, and a crash of the body is one of this process. */
void run_child_here(const run_child *child, run_end *end);

/* How fast a count of warp instructions grows, from the moments at which it did. */
typedef struct run_pace {
  double since; /* when it had `count` first */
  uint64_t count;
  double per_second; /* smoothed; 0: not known yet */
} run_pace;

/* The progress line. `area` is the mapped file that the virtual GPU updates. */
struct session_progress;
typedef struct run_progress {
  const struct session_progress *area;
  bool simulates;       /* there are memory managers */
  double started, last; /* seconds of the monotonic clock: the first call, the last line */
  run_pace executed, simulated;
  uint64_t launch; /* the one shown, and when it was first seen */
  double launch_started;
  ff_estimate left; /* seconds, of the launch or of the simulations */
  bool left_of_simulations;
  bool shared;   /* a program writes to the terminal, too: the line has the terminal's last row for itself */
  uint32_t rows; /* of the terminal, while its last row is taken; 0: it is not */
  bool shown;
} run_progress;
void run_progress_show(run_progress *progress); /* about five times a second */
/* Takes the line from the terminal, which is then as if there had been none. */
void run_progress_clear(run_progress *progress);

/* All result files in `folder`, in the order of their process numbers. `lost`: there were some that could not be read,
 * and the user was told why. */
typedef struct run_results {
  report_run *runs;
  uint32_t count, lost;
} run_results;
void run_results_read(const char *folder, run_results *results);
/* The same while they are being written: says nothing of what cannot be read, and removes nothing. */
void run_results_peek(const char *folder, run_results *results);
void run_results_add(run_results *results, const report_run *run); /* which they own from now on */
void run_results_free(run_results *results);

/* A new temporary folder, or NULL with a message. As long as it is there, signals that would end this process wait
 * (run_hold_signals): they end it when the folder is gone, so that none stays behind. There is one at a time. */
char *run_make_folder(void);
/* Removes the folder with its files, as soon as all that is in it was read: what may take long, or wait for the reader
 * of a pipe, comes after. Again: nothing. */
void run_clear_folder(const char *folder);
void run_remove_folder(char *folder); /* the same, if it was not cleared; frees the name */

/* Signals that would end this process wait until run_release_signals: those that wait in both are taken by what runs
 * children in between (child.c, jobs.c). *mask: the signal mask that the process was started with; its children get
 * it. */
void run_hold_signals(void);
void run_release_signals(void);
void run_children_mask(sigset_t *mask);

/* The outputs of this process, owned: what the user asked for, but rank K of mpirun (from 0) writes FILE.(K+1), and
 * rank 0 FILE. What is written in place (a device, a pipe) has one name for all. */
void run_outputs_of_rank(const run_outputs *outputs, run_outputs *own);
void run_outputs_free(run_outputs *own);
/* The output of the program's process of that number, from 0: FILE, FILE.2, FILE.3; of rank 0 of several FILE.1.2, as
 * FILE.2 is that of rank 1. The caller frees. */
char *run_output_name(const run_outputs *outputs, const char *path, uint32_t process);
/* Refuses what cannot be written (FF_IO), or would overwrite what it must not (FF_INVALID): the input (`what`: "the
 * program"), the machine's file, another report. */
ff_status run_outputs_check(const run_outputs *outputs, const char *input, const char *what, const char *machine,
                            ff_error *error);
/* Writes the reports; what fails is told to the user. True: all was written. */
bool run_outputs_write(const run_outputs *outputs, const run_results *results);
/* Of --live: writes `output` only, as of a run that goes on. */
ff_status run_outputs_write_live(const run_outputs *outputs, run_results *results, ff_error *error);

/* live.c: writes the file of --live from what the program's processes have left in the folder, about once a second. */
typedef struct run_live {
  const run_outputs *outputs; /* NULL: nothing is written, as after a failure, which is said once */
  const char *folder;
  double next; /* seconds of the monotonic clock */
} run_live;
void run_live_write(run_live *live); /* some times a second */

/* --lines[=N], of several commands: N, or the default. */
enum { CLI_LINES_SHOWN = 10, CLI_LINES_MAX = 10000 };
#define CLI_LINES_HELP \
  "show the N lines of the kernels' code that cause the most far-faults, by memory manager (default 10): of the source if nvcc had -lineinfo, and of the PTX"
uint32_t cli_lines(const char *value, struct argp_state *state);

/* --profile-range=NAME, of several commands: the name, or it is refused. */
const char *cli_nvtx_range(const char *value, struct argp_state *state);

/* Argp children: their inputs are a cli_setup, a run_executed, a run_outputs. */
extern const struct argp cli_simulated_argp, run_executed_argp, run_reported_argp;
void cli_copy_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state);
/* Adds the value to the comma-separated list of an option that may be repeated. */
void cli_add_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state);
/* combine.c: lists behind --offload and --map become simulations of their own, and with one of these the default of
 * --memory is copy. Before cli_setup_check. FF_INVALID: a list of nothing; FF_LIMIT: too many. */
ff_status cli_combine(cli_setup *setup, ff_error *error);
/* sim_command.c: what a copy of this process does for a point of a sweep (slots.h): `farfault sim`, in this process
 * itself. The first two words are a program and "sim". */
int cli_sim_point(int argc, char **argv);
/* A point with a plug-in is the last one of its process: what a plug-in keeps may outlive its simulation. */
bool cli_point_ends(char *const *argv);
/* sim_command.c: without --machine it is the one that the recorded program found, if that is still there. */
struct trace_file_info;
void cli_choose_machine(cli_setup *setup, const struct trace_file_info *info);

typedef struct run_job { /* a program and what is wanted of it; the setup has been checked */
  char **argv;
  const cli_setup *setup;
  const run_executed *executed;
  const run_outputs *outputs;
} run_job;
/* Runs it, prints the table, writes the files. Returns the exit status. */
int run_job_do(const run_job *job);
/* false: the table could not be written, which is said. */
bool run_results_print(const run_job *job, const run_results *results, FILE *to);

/* ---- dropped_packages.c ---- */

/* Names on stderr each of NVIDIA's packages that pip has recorded in the folder without its files. */
void run_name_dropped_packages(const char *folder);

/* ---- record_command.c ---- */

/* Where a process of the program writes its trace until the program has ended: next to the file, or, if that is no
 * regular file, in `folder` (temporary): "FILE.part-OURS-%p". The caller frees it. */
char *run_record_pattern(const char *file, const char *folder);
/* Gives the traces that the processes left under that pattern their names, FILE, FILE.2 ..., and clears `folder`: after
 * those that are whole, which takes no time, and before those that were cut off are copied as far as they are whole. A
 * trace that goes to a pipe or a device comes from the folder, which is cleared behind it. Says what was recorded.
 * True: all are there, whole. */
bool run_record_settle(const run_outputs *outputs, const char *pattern, const char *folder, const run_end *end);

#endif
