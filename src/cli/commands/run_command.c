/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault run`: runs an unmodified CUDA program on the virtual GPU, then says what its memory would do.
 *
 *   check the options -> check the program -> run it as a child (child.c) -> read what it left (run_results.c) -> table
 *
 * Stdout is the program's; the exit status is the program's once it ran; whatever happens but
 * SIGKILL, the temporary folder is removed (signals wait for it), and everything that can be refused is refused before
 * the program starts. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/running/fail_if.h"
#include "cli/running/run.h"
#include "session/session.h"

typedef struct arguments {
  cli_setup setup;
  run_executed executed;
  run_outputs outputs;
  char **program; /* and its arguments, NULL-ended */
} arguments;

enum { FOLDER_LENGTH = sizeof((session_options *)0)->results - 32 };
enum { KEY_RECORD = 512, OPEN_TRIES = 10 };

static const struct argp_option options[] = {
    {"record", KEY_RECORD, "FILE", 0, "also record the program, for `farfault sim` and others", 3}, {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &a->setup;
    state->child_inputs[1] = &a->executed;
    state->child_inputs[2] = &a->outputs;
    return 0;
  case KEY_RECORD: a->outputs.record = cli_output(value, "--record", false, state); return 0;
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the program's name is empty");
    a->program = state->argv + state->next - 1;
    state->next = state->argc; /* the rest is the program's */
    return 0;
  case ARGP_KEY_END:
    if (!a->program) cli_refuse(state, "which program?");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* The folder that this process has to remove, however it ends by itself (exit for want of memory, too). NULL: it was
 * cleared. */
static char *folder_to_remove;
static pid_t folder_owner;

void run_clear_folder(const char *folder) {
  if (folder != folder_to_remove) return;
  DIR *dir = opendir(folder);
  for (int i = 0; !dir && i < OPEN_TRIES; i++) { /* no descriptor, no memory: for a moment, perhaps */
    nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    dir = opendir(folder);
  }
  struct dirent *entry;
  while (dir && (entry = readdir(dir)))
    if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
  rmdir(folder);
  folder_to_remove = NULL;
  run_release_signals();
}

static void remove_at_exit(void) {
  if (folder_to_remove && folder_owner == getpid()) run_clear_folder(folder_to_remove);
}

static char *remember_folder(char *folder) {
  static bool registered;
  folder_to_remove = folder;
  folder_owner = getpid();
  if (!registered) atexit(remove_at_exit);
  registered = true;
  return folder;
}

/* A new folder in `base`; NULL: errno says why. */
static char *make_folder_in(const char *base, ff_text *path) {
  *path = (ff_text){0};
  ff_text_add(path, "%s/" SESSION_FOLDER "XXXXXX", base);
  if (path->length > FOLDER_LENGTH) errno = ENAMETOOLONG; /* the files' names go through session_options */
  else if (mkdtemp(path->chars)) return path->chars;
  return NULL;
}

/* A full disk is no reason to stop where there is another. */
static char *make_other_folder(void) {
  ff_text path;
  char *made = NULL;
  for (int i = 0; session_other_folders[i] && !made; i++)
    if (!(made = make_folder_in(session_other_folders[i], &path))) free(path.chars);
  return made;
}

static char *make_folder(void) {
  const char *base = getenv("TMPDIR");
  bool chosen = base && *base == '/';
  ff_text path;
  if (make_folder_in(chosen ? base : "/tmp", &path)) return remember_folder(path.chars);
  int failed = errno;
  char *other = failed == ENOSPC || failed == EDQUOT ? make_other_folder() : NULL;
  cli_fail(0, "%s: cannot make a temporary folder: %s%s%s", path.chars, strerror(failed),
           other    ? "; using "
           : chosen ? " (TMPDIR is where)"
                    : " (TMPDIR chooses another place)",
           other ? other : "");
  free(path.chars);
  return other ? remember_folder(other) : NULL;
}

char *run_make_folder(void) {
  run_hold_signals();
  char *folder = make_folder();
  if (!folder) run_release_signals();
  return folder;
}

void run_remove_folder(char *folder) {
  run_clear_folder(folder);
  free(folder);
}

/* Of a program that was only recorded. */
static void print_notes(const run_results *results) {
  for (uint32_t i = 0; i < results->count; i++)
    for (uint32_t n = 0; n < results->runs[i].note_count; n++) cli_fail(0, "note: %s", results->runs[i].notes[n]);
}

/* Everything after the program's end. Returns the exit status. */
static int report(const run_job *job, const char *folder, const char *record, const run_end *end) {
  run_results results;
  signal(SIGPIPE, SIG_IGN); /* nobody may read stderr any more: files are written all the same */
  run_results_read(folder, &results);
  bool good = !results.lost;
  if (record) good = run_record_settle(job->outputs, record, folder, end) && good;
  else run_clear_folder(folder);
  fflush(stdout);
  if (end->signal) cli_fail(0, "%s was ended by signal %d (%s)", job->argv[0], end->signal, strsignal(end->signal));
  int status = end->status;
  if (results.count) {
    if (job->setup->managers[0] || !job->outputs->record) good = run_results_print(job, &results, stderr) && good;
    else print_notes(&results);
    good = run_outputs_write(job->outputs, &results) && good;
  } else if (good) {
    /* A file that was asked for and is not there is a failure, which scripts have to see. Of the ranks of one job some
     * may have no work for a GPU, and a failure of one would end all. */
    bool asked = job->outputs->output || job->outputs->json || job->outputs->csv;
    good = !asked || job->outputs->rank > 0;
    cli_fail(0, "%s did not use the virtual GPU: there is nothing to report%s", job->argv[0],
             asked ? ", and no file was written" : "");
    run_say_missing(end);
  }
  if (!good && !status) status = CLI_FAILED;
  status = fail_if_settle(job->outputs, &results, job->argv[0], status);
  run_results_free(&results);
  return status;
}

static int run_in(const run_job *job, const run_program *program, const char *libraries, const char *folder) {
  char *record = job->outputs->record ? run_record_pattern(job->outputs->record, folder) : NULL;
  run_child child = {.argv = job->argv,
                     .program = program,
                     .libraries = libraries,
                     .folder = folder,
                     .setup = job->setup,
                     .executed = job->executed,
                     .record = record,
                     .history = job->outputs->output || job->outputs->stats,
                     .live = job->outputs->live ? job->outputs : NULL,
                     .lines = job->outputs->lines != 0,
                     .profile_range = job->outputs->profile_range,
                     .profile_nvtx = job->outputs->profile_nvtx};
  run_end end;
  ff_error error;
  int status;
  if (run_child_wait(&child, &end, &error)) status = cli_fail(CLI_NOT_EXECUTABLE, "%s", error.message);
  else status = report(job, folder, record, &end);
  free(record);
  return status;
}

/* `--profile-range step ./app` and `--lines 5 ./app` take the value for the program. */
static void hint_at_value(const run_job *job, const run_program *program) {
  const char *word = job->argv[0];
  if (program->status != CLI_NO_PROGRAM || !job->argv[1]) return;
  if (job->outputs->profile_range && !job->outputs->profile_nvtx)
    cli_fail(0, "if that is the name of an NVTX range: --profile-range=%s", word);
  if (job->outputs->lines && strspn(word, "0123456789") == strlen(word))
    cli_fail(0, "if that is how many lines to show: --lines=%s", word);
}

static int do_job(const run_job *job) {
  ff_error error;
  if (run_outputs_check(job->outputs, job->argv[0], "the program", job->setup->machine, &error))
    return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  char *folder = run_make_folder();
  if (!folder) return CLI_FAILED;
  char *libraries = run_libraries(folder, &error);
  run_program program = {0};
  int status = CLI_FAILED;
  char *clock = run_clock(libraries);
  if (!libraries) cli_fail(CLI_FAILED, "%s", error.message);
  else if (job->executed && job->executed->virtual_time && !clock)
    cli_fail(CLI_FAILED, "--virtual-time: this farfault was built without the library that it needs");
  else if (run_program_find(job->argv[0], libraries, &program, &error)) {
    status = cli_fail(program.status, "%s", error.message);
    hint_at_value(job, &program);
  } else status = run_in(job, &program, libraries, folder);
  run_program_free(&program);
  free(clock);
  free(libraries);
  run_remove_folder(folder);
  return status;
}

int run_job_do(const run_job *job) {
  run_outputs own;
  run_job of_rank = *job;
  run_outputs_of_rank(job->outputs, &own);
  of_rank.outputs = &own;
  int status = do_job(&of_rank);
  run_outputs_free(&own);
  return status;
}

/* Each manager is simulated on each device. */
static ff_status check_devices(const cli_setup *setup, const run_executed *executed, ff_error *error) {
  int count = setup->managers[0] != '\0', devices = executed->devices[0] ? atoi(executed->devices) : 1;
  for (const char *c = setup->managers; *c; c++) count += *c == ',';
  if (count * devices <= SESSION_MANAGER_LIMIT || devices == 1) return FF_OK;
  return ff_fail(error, FF_LIMIT, "%d memory managers on %d devices are more than %d simulations at once", count,
                 devices, SESSION_MANAGER_LIMIT);
}

/* Does any manager sample: by --sample, or by a choice of its own? */
static bool any_samples(const cli_setup *setup) {
  char names[sizeof setup->managers], *rest = NULL;
  strcpy(names, setup->managers);
  for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
    const char *own = strstr(name, "+sample="), *value = own ? own + 8 : setup->choices.text[SIM_CHOICE_SAMPLE];
    if (*value && strncmp(value, "none", 4)) return true;
  }
  return false;
}

/* What the simulations would refuse only when the program has begun. */
static ff_status check_sample(const arguments *a, ff_error *error) {
  const char *why = a->outputs.lines                ? "counting by instruction"
                    : a->outputs.profile_range      ? "counting between cudaProfilerStart and cudaProfilerStop"
                    : atoi(a->executed.devices) > 1 ? "a program with several GPUs"
                                                    : NULL;
  if (!why || !any_samples(&a->setup)) return FF_OK;
  return ff_fail(error, FF_UNSUPPORTED, "sample: %s needs every launch timed", why);
}

static int run(int argc, char **argv) {
  static const struct argp_child children[] = {
      {&cli_simulated_argp, 0, NULL, 0}, {&run_executed_argp, 0, NULL, 0}, {&run_reported_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      options,
      parse,
      "[--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on a virtual GPU, and prints per memory manager how long it would take and what its memory would "
      "do. A far-fault is an access of a kernel to a page that is not in GPU memory. The program's output and exit "
      "status are its own; the table goes to stderr. Options for farfault stand before PROGRAM, everything after it is the program's.\v"
      "Example:\n  nvcc saxpy.cu -o saxpy\n"
      "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n"
      "  farfault run -v --machine v100 --gpu-memory 4G -o saxpy.json ./saxpy 1000000\n\n"
      "The program needs the PTX of its kernels inside, which nvcc embeds unless it is told not to. A CUDA runtime that is linked in, "
      "as nvcc does by default, is served as a driver would.\n\n"
      "Exit status: the program's; 128 + N if signal N ended it; 64 wrong arguments, 127 no such program, 126 it cannot be "
      "executed, 2 a file is of no use (a program without PTX, a broken machine file), 3 a condition of --fail-if holds or cannot be evaluated, 1 something else failed.",
      children,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse_tabular(&argp, argc, argv, &a, STDERR_FILENO);
  ff_error error;
  if (cli_setup_check(&a.setup, &error) || check_devices(&a.setup, &a.executed, &error) || check_sample(&a, &error))
    return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  if (a.outputs.conditions && fail_if_check(a.outputs.conditions, &a.setup, &error))
    return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  return run_job_do(&(run_job){.argv = a.program, .setup = &a.setup, .executed = &a.executed, .outputs = &a.outputs});
}

const cli_command cli_run = {"run", "run a CUDA program on a virtual GPU and report its memory", run};
