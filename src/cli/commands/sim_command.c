/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault sim TRACE`: what `farfault run` says, of a recorded program.
 *
 * The simulation runs in a child process, a copy of this one, as a program would: progress, interruption and what is
 * left behind are the same. The same options give the same results as `farfault run` with the
 * program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/running/fail_if.h"
#include "cli/running/run.h"
#include "session/replay.h"
#include "session/session.h"

typedef struct arguments {
  cli_setup setup;
  run_outputs outputs;
  const char *file;
  int device; /* -1: all */
} arguments;

enum { KEY_DEVICE = 512 };

static const struct argp_option options[] = {
    {"device", KEY_DEVICE, "K", 0,
     "of a program that had several GPUs, simulate only this one, numbered from 0 (default: all)", 0},
    {0}};

typedef struct job {
  trace_file *file;
  const char *name; /* of the file */
  uint32_t devices, device;
  run_results *results; /* of a sweep's point: where they go; NULL: to a file that the environment names */
} job;                  /* what the child does: as session_options */

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &a->setup;
    state->child_inputs[1] = &a->outputs;
    return 0;
  case KEY_DEVICE:
    if (!*value || strlen(value) > 2 || strspn(value, "0123456789") != strlen(value) ||
        atoi(value) >= SESSION_DEVICE_LIMIT)
      cli_refuse(state, "--device: '%s' is not a number from 0 to %d", value, SESSION_DEVICE_LIMIT - 1);
    a->device = atoi(value);
    return 0;
  default: return cli_take_file(key, value, &a->file, KIND_TRACE, state);
  }
}

static void take_results(void *context, report_run *run) { run_results_add(context, run); }

/* In the child; the environment says what is wanted, as to a program's libraries. */
static int replay(void *context) {
  job *job = context;
  session_options wanted;
  ff_error error;
  session_options_from_environment(&wanted);
  wanted.devices = job->devices;
  wanted.device = job->device;
  if (job->results) wanted.take = take_results;
  wanted.take_context = job->results;
  ff_status status = replay_run(job->file, &wanted, &error);
  const bool whole = trace_file_information(job->file)->whole;
  trace_file_close(job->file);
  job->file = NULL;
  if (!status && whole) return CLI_DONE;
  if (!status) return cli_fail(CLI_BAD_FILE, "%s: its recording was cut off: this is of what stands before", job->name);
  int exit_status = CLI_FAILED;
  if (status == FF_PARSE || status == FF_UNSUPPORTED)
    exit_status = CLI_BAD_FILE; /* damaged, or without what the options need */
  if (status == FF_INVALID) exit_status = CLI_USAGE;
  return cli_fail(exit_status, "%s", error.message);
}

static bool is_point; /* this process is a sweep's child, for one simulation, to which a manager left out is a result */

/* Results are there, and none of them has numbers: each manager was left out. */
static bool none_ran(const run_results *results) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < results->count; i++)
    for (uint32_t k = 0; k < results->runs[i].result_count; k++, count++)
      if (!results->runs[i].results[k].error[0]) return false;
  return count > 0;
}

/* The results are freed. */
static int report(const run_job *job, run_results *results, const run_end *end) {
  if (end->signal) cli_fail(0, "the simulation was ended by signal %d (%s)", end->signal, strsignal(end->signal));
  bool good = !results->lost && (!results->count || run_outputs_write(job->outputs, results));
  if (results->count) good = run_results_print(job, results, stdout) && good;
  int status = end->status                      ? end->status
               : !good                          ? CLI_FAILED
               : none_ran(results) && !is_point ? CLI_NONE_RAN
                                                : CLI_DONE;
  status = fail_if_settle(job->outputs, results, job->argv[0], status);
  run_results_free(results);
  return status;
}

static run_child child_of(const run_job *job, const char *folder, struct job *replayed) {
  return (run_child){.folder = folder,
                     .setup = job->setup,
                     .body = replay,
                     .context = replayed,
                     .history = job->outputs->output || job->outputs->stats,
                     .live = job->outputs->live ? job->outputs : NULL,
                     .lines = job->outputs->lines != 0,
                     .profile_range = job->outputs->profile_range};
}

/* In this process, which leaves nothing but its outputs on the disk. */
static int simulate_point(const run_job *job, struct job *replayed) {
  run_results results = {0};
  run_end end;
  replayed->results = &results;
  run_child child = child_of(job, NULL, replayed);
  run_child_here(&child, &end);
  return report(job, &results, &end);
}

static int simulate(const run_job *job, struct job *replayed) {
  char *folder = run_make_folder();
  if (!folder) return CLI_FAILED;
  run_child child = child_of(job, folder, replayed);
  run_end end;
  ff_error error;
  int status;
  if (run_child_wait(&child, &end, &error)) {
    status = cli_fail(CLI_FAILED, "%s", error.message);
  } else {
    run_results results;
    run_results_read(folder, &results);
    run_clear_folder(folder);
    status = report(job, &results, &end);
  }
  run_remove_folder(folder);
  return status;
}

void cli_choose_machine(cli_setup *setup, const trace_file_info *info) {
  const char *machine = info->about.machine;
  const char *how = info->nameless ? "is damaged where it says" : machine && *machine ? NULL : "does not say";
  if (setup->machine[0]) return;
  if (how) {
    cli_fail(0, "the recording %s on which machine it was made: %s is simulated (--machine chooses another)", how,
             MACHINE_DEFAULT);
    return;
  }
  if (machine_of_recording(machine, sizeof setup->machine - 1) != machine) {
    cli_fail(0, "the machine of the recording, %s, is not there: %s is simulated (--machine chooses another)", machine,
             MACHINE_DEFAULT);
    return;
  }
  strcpy(setup->machine, machine);
  setup->machine_chosen = true;
}

static int sim_command(int argc, char **argv) {
  static const struct argp_child children[] = {
      {&cli_simulated_argp, 0, NULL, 0}, {&run_reported_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      options,
      parse,
      "TRACE",
      "Simulates a recorded program: prints per memory manager how long it would take and what its memory would do, as `farfault run` does "
      "while the program runs.\v"
      "Example:\n  farfault record -o saxpy.fft ./saxpy 1000000\n"
      "  farfault sim saxpy.fft --memory copy,uvm,auto --machine v100 --gpu-memory 75%\n"
      "  farfault sim saxpy.fft --machine tom --offload none,controlled --map baseline,learned\n\n"
      "Exit status: 0; 64 wrong arguments, 2 a file is of no use, damaged or cut off (what stands before that is simulated and reported), "
      "3 a condition of --fail-if holds or cannot be evaluated, 4 none of the managers could run the program (each is reported with why), 1 something else failed.",
      children,
      NULL,
      NULL};
  arguments a = {.device = -1};
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  if (a.outputs.profile_nvtx)
    return cli_fail(CLI_USAGE,
                    "--profile-range=%s: a recording has the profile ranges that it was made with: `farfault record "
                    "--profile-range=%s`, then `farfault sim --profile-range`",
                    a.outputs.profile_nvtx, a.outputs.profile_nvtx);
  trace_file *file;
  ff_error error;
  if (trace_file_open(a.file, &file, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  cli_choose_machine(&a.setup, trace_file_information(file));
  int status = CLI_DONE;
  a.setup.recorded = true;
  a.setup.tried = is_point;
  job replayed = {.file = file, .name = a.file, .devices = replay_devices(file), .device = (uint32_t)(a.device + 1)};
  if (replayed.device > replayed.devices)
    status = cli_fail(CLI_USAGE, "--device %d: the program had %u GPU%s, numbered from 0", a.device, replayed.devices,
                      replayed.devices == 1 ? "" : "s");
  else if (cli_combine(&a.setup, &error) || cli_setup_check(&a.setup, &error))
    status = cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  else if (a.outputs.conditions && fail_if_check(a.outputs.conditions, &a.setup, &error))
    status = cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  else if (run_outputs_check(&a.outputs, a.file, "the trace", a.setup.machine, &error))
    status = cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  else
    status = (is_point ? simulate_point : simulate)(
        &(run_job){.argv = (char *[]){(char *)(uintptr_t)a.file, NULL}, .setup = &a.setup, .outputs = &a.outputs},
        &replayed);
  trace_file_close(replayed.file);
  return status;
}

const cli_command cli_sim = {"sim", "simulate a recorded program", sim_command};

/* A plug-in's path has a slash or ends in .so (policies.h). */
bool cli_point_ends(char *const *argv) {
  static const char *const policies[] = {"--memory", "--prefetch", "--evict"};
  for (; *argv; argv++) {
    if (strstr(*argv, ".so")) return true;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
      if (!strcmp(*argv, policies[i]) && argv[1] && strchr(argv[1], '/')) return true;
  }
  return false;
}

int cli_sim_point(int argc, char **argv) {
  is_point = true;
  argv[1] = (char[]){"farfault sim"};
  return sim_command(argc - 1, argv + 1);
}
