/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands have: what is simulated (`run`, `sim`), what is reported, how a program is executed
 * (`run`, `record`). Each is an argp child with an input of its own (cli.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/running/fail_if.h"
#include "cli/running/run.h"
#include "session/session.h"

void cli_copy_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state) {
  if (!*value) cli_refuse(state, "--%s is empty", name);
  if (strlen(value) >= size) cli_refuse(state, "--%s is longer than %zu characters", name, size - 1);
  strcpy(to, value);
}

void cli_add_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state) {
  size_t used = strlen(to);
  if (!*value) cli_refuse(state, "--%s is empty", name);
  if (used + strlen(value) + 2 > size) cli_refuse(state, "--%s is longer than %zu characters", name, size - 1);
  snprintf(to + used, size - used, "%s%s", used ? "," : "", value);
}

/* "20M" -> "20000000": k, M and G are thousands, millions, thousand millions. */
static void parse_count(char *to, size_t size, const char *value, const char *name, uint64_t limit,
                        struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10), scale = 1;
  if (*end && strchr("kKmMgG", *end)) {
    scale = *end == 'k' || *end == 'K' ? 1000 : *end == 'm' || *end == 'M' ? 1000000 : 1000000000;
    end++;
  }
  bool digits = value[0] >= '0' && value[0] <= '9';
  if (!digits || *end || errno || !number || number > limit / scale)
    cli_refuse(state, "--%s: '%s' is not a number from 1 to %llu (also 500k, 20M, 3G)", name, value,
               (unsigned long long)limit);
  snprintf(to, size, "%llu", number * scale);
}

/* ---- what is simulated ---- */

enum { KEY_SET = 256, KEY_CHOICE };

static const struct argp_option simulated_options[] = {
    {NULL, 0, NULL, 0, "What is simulated:", 1},
    {"memory", 'm', "MANAGER,...", 0,
     "memory managers to compare (default: " CLI_DEFAULT_MANAGERS
     "; none: only execute the program). MANAGER+NAME=VALUE changes a part of one: an option "
     "below without its dashes, or a value of the machine (uvm+evict=lru:64K+gpu-memory=50%+fault_us=5)",
     1},
    {"machine", 'M', "NAME|FILE", 0,
     "the GPU: a name that `farfault list machines` prints, or a machine file (default: " MACHINE_DEFAULT
     "; of a trace: the machine that it was recorded on)",
     1},
#define X(id, name, variable, pages, value, help) {name, KEY_CHOICE + SIM_CHOICE_##id, value, 0, help, 1},
#include "machine/spec/choices.def"
#undef X
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machine, as in its file (fault_us=50); may be repeated",
     1},
    {0}};

static error_t parse_simulated(int key, char *value, struct argp_state *state) {
  cli_setup *setup = state->input;
  if (key >= KEY_CHOICE && key < KEY_CHOICE + SIM_CHOICE_COUNT) {
    cli_copy_option(setup->choices.text[key - KEY_CHOICE], SIM_CHOICE_LENGTH, value,
                    sim_choice_infos[key - KEY_CHOICE].name, state);
    return 0;
  }
  switch (key) {
  case 'm': cli_add_option(setup->managers, sizeof setup->managers, value, "memory", state); return 0;
  case 'M':
    cli_copy_option(setup->machine, sizeof setup->machine, value, "machine", state);
    setup->machine_chosen = true;
    return 0;
  case KEY_SET: cli_add_option(setup->choices.set, sizeof setup->choices.set, value, "set", state); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const struct argp cli_simulated_argp = {simulated_options, parse_simulated, NULL, NULL, NULL, NULL, NULL};

/* ---- how a program is executed ---- */

enum {
  KEY_MAX = 384,
  KEY_BIND_SMS,
  KEY_EXECUTE,
  KEY_DEVICES,
  KEY_DEVICE,
  KEY_VIRTUAL_TIME,
  KEY_PRIVATE,
  KEY_DRIVER_VERSION,
  KEY_LIBRARIES,
  KEY_KERNELS,
  KEY_MISSING
};

static const struct argp_option executed_options[] = {
    {NULL, 0, NULL, 0, "How the program is executed:", 2},
    {"threads", 't', "N", 0,
     "threads of the host that execute kernels (default: 1, so that a run gives the same on every run even if blocks race; where nothing is simulated or recorded all cores)",
     2},
    {"devices", KEY_DEVICES, "N", 0, "how many GPUs the program finds, 1 to 16, all the same machine (default: 1)", 2},
    {"device", KEY_DEVICE, "K", OPTION_HIDDEN, "of `farfault sim`", 2}, /* else it would be taken for --devices */
    {"max-instructions", KEY_MAX, "N", 0,
     "stop a kernel launch soon after its warps together have executed N warp instructions (20M); the program gets "
     "cudaErrorLaunchTimeout. Each launch counts from 0 (default: no limit)",
     2},
    {"bind-sms", KEY_BIND_SMS, "FIRST-LAST", 0,
     "run kernels on these SMs only (0-9), each as persistent blocks that take the blocks of its grid from a queue, as `farfault rewrite --sm-affinity` makes them. "
     "A kernel that cannot be rewritten runs on all SMs, and a note says why",
     2},
    {"execute", KEY_EXECUTE, "HOW", 0,
     "interpret: every instruction by itself; compile: kernels become native code before they run; auto: those that run for long do, "
     "in parallel with the interpreter (default: auto). Results are the same bit for bit",
     2},
    {"virtual-time", KEY_VIRTUAL_TIME, NULL, 0,
     "the program's clocks (gettimeofday, clock_gettime, time, clock ...) show its own processor time and the simulated time of the first memory "
     "manager, instead of the host's",
     2},
    {"cuda-libraries", KEY_LIBRARIES, "FOLDER", 0,
     "where cuBLAS, cuDNN and their kin are, as `pip install --target FOLDER nvidia-cublas` puts them; they run unmodified, from their PTX (default: "
     "where the program finds them)",
     2},
    {"kernels", KEY_KERNELS, "FOLDER", 0,
     "PTX of kernels that the program has as machine code only, compiled from its sources: each .ptx file in FOLDER is one translation unit; may be "
     "repeated, the first that has a kernel counts",
     2},
    {"missing", KEY_MISSING, "FILE", 0,
     "write the source files there whose kernels were needed, and are in no folder of --kernels: a line each, a tab, the kernel",
     2},
    {"private-runtimes", KEY_PRIVATE, "on|off|trace", 0,
     "on: CUDA runtimes that are linked into programs and libraries without symbols get the driver's private tables; off: none; trace: a line for "
     "each table that is asked for (default: on)",
     2},
    {"driver-version", KEY_DRIVER_VERSION, "VERSION", 0,
     "the version of CUDA that the driver says it is, such as 12.4, for programs that refuse others; what is executed stays the same (default: "
     "13.5, the newest whose libraries were run)",
     2},
    {0}};

/* In the environment: of the check of the program, and of the program. A program may change its folder. */
static void add_kernels(const char *folder, struct argp_state *state) {
  static bool given; /* what the environment says counts where no option is given */
  ff_text list = {0};
  char *whole = realpath(folder, NULL);
  if (!whole || access(whole, R_OK | X_OK)) cli_refuse(state, "--kernels: %s: %s", folder, strerror(errno));
  if (strchr(whole, ':')) cli_refuse(state, "--kernels: %s: its path has a colon in it", folder);
  ff_text_add(&list, "%s%s%s", given ? getenv("FARFAULT_KERNELS") : "", given ? ":" : "", whole);
  setenv("FARFAULT_KERNELS", list.chars, 1);
  given = true;
  free(whole);
  free(list.chars);
}

/* An empty file, for the program's processes to add to. */
static void make_missing(const char *path, struct argp_state *state) {
  FILE *file = fopen(path, "we");
  char *whole = file ? realpath(path, NULL) : NULL;
  if (!whole) cli_refuse(state, "--missing: %s: %s", path, strerror(errno));
  fclose(file);
  setenv("FARFAULT_MISSING", whole, 1);
  free(whole);
}

static void parse_bind_sms(run_executed *executed, const char *value, struct argp_state *state) {
  uint32_t first, count;
  if (!session_sm_range(value, &first, &count))
    cli_refuse(state, "--bind-sms: '%s' is not a range of SMs, as 0-9", value);
  snprintf(executed->bind_sms, sizeof executed->bind_sms, "%s", value);
}

static error_t parse_executed(int key, char *value, struct argp_state *state) {
  run_executed *executed = state->input;
  switch (key) {
  case 't': parse_count(executed->threads, sizeof executed->threads, value, "threads", 4096, state); return 0;
  case KEY_DEVICES:
    if (strlen(value) > 2 || strspn(value, "0123456789") != strlen(value) || atoi(value) < 1 ||
        atoi(value) > SESSION_DEVICE_LIMIT)
      cli_refuse(state, "--devices: '%s' is not a number from 1 to %d", value, SESSION_DEVICE_LIMIT);
    snprintf(executed->devices, sizeof executed->devices, "%d", atoi(value));
    return 0;
  case KEY_DEVICE:
    cli_refuse(
        state,
        "--device chooses one GPU of a recording, in `farfault sim`; --devices %s gives the program so many GPUs",
        value);
    return 0;
  case KEY_EXECUTE:
    if (strcmp(value, "interpret") && strcmp(value, "compile") && strcmp(value, "auto"))
      cli_refuse(state, "--execute: '%s' is none of interpret, compile, auto", value);
    snprintf(executed->execute, sizeof executed->execute, "%s", value);
    return 0;
  case KEY_BIND_SMS: parse_bind_sms(executed, value, state); return 0;
  case KEY_VIRTUAL_TIME: executed->virtual_time = true; return 0;
  case KEY_LIBRARIES:
    if (access(value, R_OK | X_OK)) cli_refuse(state, "--cuda-libraries: %s: %s", value, strerror(errno));
    executed->cuda_libraries = value;
    return 0;
  case KEY_KERNELS: add_kernels(value, state); return 0;
  case KEY_MISSING: make_missing(value, state); return 0;
  case KEY_PRIVATE:
    if (strcmp(value, "on") && strcmp(value, "off") && strcmp(value, "trace"))
      cli_refuse(state, "--private-runtimes: '%s' is none of on, off, trace", value);
    snprintf(executed->private_runtimes, sizeof executed->private_runtimes, "%s", value);
    return 0;
  case KEY_DRIVER_VERSION:
    if (!session_driver_version(value))
      cli_refuse(state, "--driver-version: '%s' is not a version of CUDA from 11.0 on, as 12.4", value);
    snprintf(executed->driver_version, sizeof executed->driver_version, "%s", value);
    return 0;
  case KEY_MAX:
    parse_count(executed->max_instructions, sizeof executed->max_instructions, value, "max-instructions", INT64_MAX,
                state);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const struct argp run_executed_argp = {executed_options, parse_executed, NULL, NULL, NULL, NULL, NULL};

/* ---- what is reported ---- */

enum {
  KEY_CSV = 448,
  KEY_JSON,
  KEY_QUIET,
  KEY_FAIL_IF,
  KEY_BASELINE,
  KEY_JUNIT,
  KEY_LINES,
  KEY_LIVE,
  KEY_PROFILE_RANGE,
  KEY_STATS
};

static const struct argp_option reported_options[] = {
    {NULL, 0, NULL, 0, "What is reported:", 3},
    {"verbose", 'v', NULL, 0, "add tables per kernel and per allocation, and what the run cost the host", 3},
    {"lines", KEY_LINES, "N", OPTION_ARG_OPTIONAL, CLI_LINES_HELP, 3},
    {"stats", KEY_STATS, NULL, 0,
     "add summaries as `nsys stats` has them: kernels, memory operations by time and by size, batches of far-faults",
     3},
    {"profile-range", KEY_PROFILE_RANGE, "NAME", OPTION_ARG_OPTIONAL,
     "count only what happens between the program's cudaProfilerStart and cudaProfilerStop; =NAME (of `run`): in its NVTX ranges of that name",
     3},
    {"quiet", KEY_QUIET, NULL, 0, "print no table (what goes wrong is still said)", 3},
    {"output", 'o', "FILE", 0,
     "save the run with its history as JSON, for `farfault report`, `farfault timeline` and others (run.ffr)", 3},
    {"live", KEY_LIVE, NULL, 0,
     "write the file of -o about once a second while it runs, too, for `farfault view --live`", 3},
    {"json", KEY_JSON, "FILE", 0, "write the run as JSON, without the history", 3},
    {"csv", KEY_CSV, "FILE", 0, "write a header row and one row per memory manager", 3},
    {NULL, 0, NULL, 0, "What must not be:", 4},
    {"fail-if", KEY_FAIL_IF, "CONDITION", 0,
     "end with status 3 if this holds of the numbers: 'uvm.faults > 1000', 'copy.time > 1.1 * baseline.copy.time'; may be repeated",
     4},
    {"baseline", KEY_BASELINE, "FILE", 0, "the saved run that `baseline` is in conditions", 4},
    {"junit", KEY_JUNIT, "FILE", 0, "write the conditions and their verdicts as JUnit XML", 4},
    {0}};

uint32_t cli_lines(const char *value, struct argp_state *state) {
  char number[8];
  if (!value) return CLI_LINES_SHOWN;
  parse_count(number, sizeof number, value, "lines", CLI_LINES_MAX, state);
  if (atoi(number) == 0) cli_refuse(state, "--lines: '%s' is not a number from 1 to %d", value, CLI_LINES_MAX);
  return (uint32_t)atoi(number);
}

const char *cli_nvtx_range(const char *value, struct argp_state *state) {
  if (!*value) cli_refuse(state, "--profile-range=: which NVTX range?");
  if (strlen(value) >= sizeof((session_options *)0)->profile_nvtx)
    cli_refuse(state, "--profile-range: the name is longer than %zu characters",
               sizeof((session_options *)0)->profile_nvtx - 1);
  return value;
}

static fail_if *conditions(run_outputs *outputs) {
  if (!outputs->conditions) outputs->conditions = ff_alloc(sizeof *outputs->conditions);
  return outputs->conditions;
}

static error_t parse_reported(int key, char *value, struct argp_state *state) {
  run_outputs *outputs = state->input;
  switch (key) {
  case 'v': outputs->verbose = true; return 0;
  case 'o': outputs->output = cli_output(value, "-o", false, state); return 0;
  case KEY_LIVE: outputs->live = true; return 0;
  case KEY_LINES: outputs->lines = cli_lines(value, state); return 0;
  case KEY_STATS: outputs->stats = true; return 0;
  case KEY_PROFILE_RANGE:
    outputs->profile_range = true;
    outputs->profile_nvtx = value ? cli_nvtx_range(value, state) : NULL;
    return 0;
  case KEY_CSV: outputs->csv = cli_output(value, "--csv", false, state); return 0;
  case KEY_JSON: outputs->json = cli_output(value, "--json", false, state); return 0;
  case KEY_QUIET: outputs->quiet = true; return 0;
  case KEY_FAIL_IF: fail_if_add(conditions(outputs), value, state); return 0;
  case KEY_BASELINE: conditions(outputs)->baseline = value; return 0;
  case KEY_JUNIT:
    conditions(outputs);
    outputs->junit = cli_output(value, "--junit", false, state);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const struct argp run_reported_argp = {reported_options, parse_reported, NULL, NULL, NULL, NULL, NULL};
