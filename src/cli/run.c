/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault run`: runs an unmodified CUDA program on the virtual GPU, then says what its memory would do.
 *
 *   check the options -> check the program -> run it as a child (child.c) -> read what it left (results.c) -> table
 *
 * What always holds: stdout is the program's; the exit status is the program's once it ran; whatever happens, the
 * temporary folder is removed, and everything that can be refused is refused before the program starts. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/run.h"
#include "study/session.h"

typedef struct arguments {
  cli_setup setup;
  char max_instructions[32], threads[32];
  run_outputs outputs;
  bool verbose;
  char **program; /* and its arguments, NULL-ended */
} arguments;

enum { FOLDER_LENGTH = sizeof((session_options *)0)->results - 32 };
enum { KEY_CSV = 256, KEY_JSON, KEY_MAX, KEY_SET, KEY_CHOICE };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What is simulated:", 1},
    {"memory", 'm', "MANAGER,...", 0,
     "memory managers to compare (default: " CLI_DEFAULT_MANAGERS "; none: only execute the program). MANAGER+NAME=VALUE changes a part of one: an option "
     "below without its dashes, or a value of the machine (uvm+evict=lru:64K+gpu-memory=50%+fault_us=5)", 1},
    {"machine", 'M', "NAME|FILE", 0, "the GPU: a name that `farfault list machines` prints, or a machine file (default: " SESSION_DEFAULT_MACHINE ")", 1},
#define X(id, name, variable, pages, value, help) {name, KEY_CHOICE + SIM_CHOICE_##id, value, 0, help, 1},
#include "machine/choices.def"
#undef X
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machine, as in its file (fault_us=50); may be repeated", 1},
    {NULL, 0, NULL, 0, "How the program is executed:", 2},
    {"threads", 't', "N", 0, "threads of the host that execute kernels (default: all cores; 1: floating-point atomics, too, come in a fixed order)", 2},
    {"max-instructions", KEY_MAX, "N", 0,
     "stop a kernel launch soon after its warps together have executed N warp instructions (20M); the program gets "
     "cudaErrorLaunchTimeout. Each launch counts from 0 (default: no limit)", 2},
    {NULL, 0, NULL, 0, "What is reported:", 3},
    {"verbose", 'v', NULL, 0, "add tables per kernel and per allocation, and what the run cost the host", 3},
    {"output", 'o', "FILE", 0, "save the run with its history as JSON, for `farfault report`, `farfault timeline` and others (run.ffr)", 3},
    {"json", KEY_JSON, "FILE", 0, "write the run as JSON, without the history", 3},
    {"csv", KEY_CSV, "FILE", 0, "write a header row and one row per memory manager", 3},
    {0}};

static void copy_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state) {
  if (!*value) cli_refuse(state, "--%s is empty", name);
  if (strlen(value) >= size) cli_refuse(state, "--%s is longer than %zu characters", name, size - 1);
  strcpy(to, value);
}

/* Adds the value to the comma-separated list of an option that may be repeated. */
static void add_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state) {
  size_t used = strlen(to);
  if (!*value) cli_refuse(state, "--%s is empty", name);
  if (used + strlen(value) + 2 > size) cli_refuse(state, "--%s is longer than %zu characters", name, size - 1);
  snprintf(to + used, size - used, "%s%s", used ? "," : "", value);
}

/* "20M" -> "20000000": k, M and G are thousands, millions, thousand millions. */
static void parse_count(char *to, size_t size, const char *value, const char *name, uint64_t limit, struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10), scale = 1;
  if (*end && strchr("kKmMgG", *end)) {
    scale = *end == 'k' || *end == 'K' ? 1000 : *end == 'm' || *end == 'M' ? 1000000 : 1000000000;
    end++;
  }
  bool digits = value[0] >= '0' && value[0] <= '9';
  if (!digits || *end || errno || !number || number > limit / scale)
    cli_refuse(state, "--%s: '%s' is not a number from 1 to %llu (also 500k, 20M, 3G)", name, value, (unsigned long long)limit);
  snprintf(to, size, "%llu", number * scale);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  if (key >= KEY_CHOICE && key < KEY_CHOICE + SIM_CHOICE_COUNT) {
    copy_option(a->setup.choices.text[key - KEY_CHOICE], SIM_CHOICE_LENGTH, value, sim_choice_infos[key - KEY_CHOICE].name, state);
    return 0;
  }
  switch (key) {
  case 'm': add_option(a->setup.managers, sizeof a->setup.managers, value, "memory", state); return 0;
  case 'M':
    copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state);
    a->setup.machine_chosen = true;
    return 0;
  case KEY_SET: add_option(a->setup.choices.set, sizeof a->setup.choices.set, value, "set", state); return 0;
  case 't': parse_count(a->threads, sizeof a->threads, value, "threads", 4096, state); return 0;
  case KEY_MAX: parse_count(a->max_instructions, sizeof a->max_instructions, value, "max-instructions", INT64_MAX, state); return 0;
  case 'v': a->verbose = true; return 0;
  case 'o': a->outputs.output = value; return 0;
  case KEY_CSV: a->outputs.csv = value; return 0;
  case KEY_JSON: a->outputs.json = value; return 0;
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

char *run_make_folder(void) {
  const char *base = getenv("TMPDIR");
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault-XXXXXX", base && *base == '/' ? base : "/tmp");
  if (path.length > FOLDER_LENGTH) errno = ENAMETOOLONG; /* the files' names go through session_options */
  else if (mkdtemp(path.chars)) return path.chars;
  cli_fail(CLI_FAILED, "%s: cannot make a temporary folder: %s", path.chars, strerror(errno));
  free(path.chars);
  return NULL;
}

void run_remove_folder(char *folder) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && (entry = readdir(dir)))
    if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
  rmdir(folder);
  free(folder);
}

static void print_tables(const arguments *a, const run_results *results) {
  ff_text text = {0};
  for (uint32_t i = 0; i < results->count; i++) {
    if (i) ff_text_add(&text, "\n");
    report_table_write(&results->runs[i], &(report_style){.verbose = a->verbose}, &text);
  }
  if (!a->setup.machine_chosen)
    ff_text_add(&text, "(" SESSION_DEFAULT_MACHINE " is the default machine; --machine chooses another)\n");
  fwrite(text.chars, 1, text.length, stderr);
  free(text.chars);
}

/* Everything after the program's end. Returns the exit status. */
static int report(const arguments *a, const char *folder, const run_end *end) {
  run_results results;
  run_results_read(folder, &results);
  fflush(stdout);
  if (end->signal) cli_fail(0, "%s was ended by signal %d (%s)", a->program[0], end->signal, strsignal(end->signal));
  int status = end->status;
  bool good = !results.lost;
  if (results.count) {
    print_tables(a, &results);
    good = run_outputs_write(&a->outputs, &results) && good;
  } else if (good) {
    cli_fail(0, "%s did not use the virtual GPU: there is nothing to report", a->program[0]);
  }
  if (!good && !status) status = CLI_FAILED;
  run_results_free(&results);
  return status;
}

static int run_in(const arguments *a, const run_program *program, const char *libraries, const char *folder) {
  run_child child = {.argv = a->program, .program = program, .libraries = libraries, .folder = folder, .setup = &a->setup,
                     .max_instructions = a->max_instructions[0] ? a->max_instructions : NULL,
                     .threads = a->threads[0] ? a->threads : NULL, .history = a->outputs.output != NULL};
  run_end end;
  ff_error error;
  if (run_child_wait(&child, &end, &error)) return cli_fail(CLI_NOT_EXECUTABLE, "%s", error.message);
  return report(a, folder, &end);
}

static int run(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "[--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on a virtual GPU, and prints per memory manager how long it would take and what its memory would "
      "do. The program's output and exit status are its own; the table goes to stderr. Options for farfault stand before "
      "PROGRAM, everything after it is the program's.\v"
      "Example:\n  nvcc -cudart shared saxpy.cu -o saxpy\n"
      "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n"
      "  farfault run -v --machine v100 --gpu-memory 4G -o saxpy.json ./saxpy 1000000\n\n"
      "The program needs the shared CUDA runtime (nvcc -cudart shared) and the PTX of its kernels inside, which nvcc embeds "
      "unless it is told not to.\n\n"
      "Exit status: the program's; 128 + N if signal N ended it; 64 wrong arguments, 127 no such program, 126 it cannot be "
      "executed, 2 a file is of no use (a program without PTX, a broken machine file), 1 something else failed.",
      NULL, NULL, NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  ff_error error;
  if (cli_setup_check(&a.setup, &error)) return cli_fail(error.status == FF_IO || error.status == FF_PARSE ? CLI_BAD_FILE : CLI_USAGE, "%s", error.message);
  if (run_outputs_check(&a.outputs, a.program[0], a.setup.machine, &error))
    return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  char *folder = run_make_folder();
  if (!folder) return CLI_FAILED;
  char *libraries = run_libraries(folder, &error);
  run_program program = {0};
  int status = CLI_FAILED;
  if (!libraries) cli_fail(CLI_FAILED, "%s", error.message);
  else if (run_program_find(a.program[0], libraries, &program, &error)) status = cli_fail(program.status, "%s", error.message);
  else status = run_in(&a, &program, libraries, folder);
  run_program_free(&program);
  free(libraries);
  run_remove_folder(folder);
  return status;
}

const cli_command cli_run = {"run", "run a CUDA program on a virtual GPU and report its memory", run};
