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
  const char *output, *csv, *json;
  bool verbose;
  char **program; /* and its arguments, NULL-ended */
} arguments;

enum { KEY_CSV = 256, KEY_JSON, KEY_MAX, KEY_SET, KEY_GPU_MEMORY };

static const struct argp_option options[] = {
    {"memory", 'm', "MANAGER,...", 0, "memory managers to compare (default: copy,demand,replay,ideal; none: only execute)", 0},
    {"machine", 'M', "NAME|FILE", 0, "the GPU to be (default: " SESSION_DEFAULT_MACHINE "; `farfault list machines`)", 0},
    {"gpu-memory", KEY_GPU_MEMORY, "SIZE", 0, "its memory: 8G, 512M, or 75% of the machine's", 0},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machine, as in its file (fault_us=50); may be repeated", 0},
    {"threads", 't', "N", 0, "execute on N threads (default: all cores; 1: also floating-point atomics in a fixed order)", 0},
    {"max-instructions", KEY_MAX, "N", 0, "stop a kernel after N warp instructions (1000000, 500k, 20M, 3G)", 0},
    {"verbose", 'v', NULL, 0, "add tables per kernel and per allocation, and the host's numbers", 0},
    {"output", 'o', "FILE", 0, "save the run for `farfault report`", 0},
    {"csv", KEY_CSV, "FILE", 0, "write one row per memory manager", 0},
    {"json", KEY_JSON, "FILE", 0, "write the run as JSON (what -o writes)", 0},
    {0}};

static void copy_option(char *to, size_t size, const char *value, const char *name, struct argp_state *state) {
  if (!*value) cli_refuse(state, "--%s is empty", name);
  if (strlen(value) >= size) cli_refuse(state, "--%s is longer than %zu characters", name, size - 1);
  strcpy(to, value);
}

/* Adds NAME=VALUE to the comma-separated list that the virtual GPU gets. */
static void add_setting(cli_setup *setup, const char *value, struct argp_state *state) {
  size_t used = strlen(setup->set);
  if (used + strlen(value) + 2 > sizeof setup->set) cli_refuse(state, "--set: too much of it");
  snprintf(setup->set + used, sizeof setup->set - used, "%s%s", used ? "," : "", value);
}

/* "20M" -> "20000000" */
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
    cli_refuse(state, "--%s: '%s' is not a number from 1 to %llu", name, value, (unsigned long long)limit);
  snprintf(to, size, "%llu", number * scale);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'm': copy_option(a->setup.managers, sizeof a->setup.managers, value, "memory", state); return 0;
  case 'M':
    copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state);
    a->setup.machine_chosen = true;
    return 0;
  case KEY_GPU_MEMORY: copy_option(a->setup.gpu_memory, sizeof a->setup.gpu_memory, value, "gpu-memory", state); return 0;
  case KEY_SET: add_setting(&a->setup, value, state); return 0;
  case 't': parse_count(a->threads, sizeof a->threads, value, "threads", 4096, state); return 0;
  case KEY_MAX: parse_count(a->max_instructions, sizeof a->max_instructions, value, "max-instructions", INT64_MAX, state); return 0;
  case 'v': a->verbose = true; return 0;
  case 'o': a->output = value; return 0;
  case KEY_CSV: a->csv = value; return 0;
  case KEY_JSON: a->json = value; return 0;
  case ARGP_KEY_ARG:
    a->program = state->argv + state->next - 1;
    state->next = state->argc; /* the rest is the program's */
    return 0;
  case ARGP_KEY_END:
    if (!a->program) cli_refuse(state, "which program?");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* A file that cannot be written is refused before the program runs, not after. */
static ff_status check_output(const char *path, ff_error *error) {
  if (!path || access(path, W_OK) == 0) return FF_OK;
  if (errno != ENOENT) return ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  char *folder = ff_strdup(path);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = '\0';
  ff_status status = FF_OK;
  if (access(slash ? folder : ".", W_OK)) status = ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  free(folder);
  return status;
}

static ff_status check_outputs(const arguments *a, ff_error *error) {
  ff_status status = check_output(a->output, error);
  if (!status) status = check_output(a->csv, error);
  return status ? status : check_output(a->json, error);
}

/* A new temporary folder, or NULL with a message. The caller frees it. */
static char *make_folder(void) {
  const char *base = getenv("TMPDIR");
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault-XXXXXX", base && *base == '/' ? base : "/tmp");
  if (mkdtemp(path.chars)) return path.chars;
  cli_fail(CLI_FAILED, "%s: cannot make a temporary folder: %s", path.chars, strerror(errno));
  free(path.chars);
  return NULL;
}

static void remove_folder(char *folder) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && (entry = readdir(dir)))
    if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
  rmdir(folder);
  free(folder);
}

/* FILE for the first process, FILE.2, FILE.3 for further ones. */
static ff_status write_json(const char *path, const run_results *results, ff_error *error) {
  for (uint32_t i = 0; path && i < results->count; i++) {
    ff_text name = {0}, text = {0};
    ff_text_add(&name, "%s", path);
    if (i) ff_text_add(&name, ".%u", i + 1);
    report_json_write(&results->runs[i], &text);
    ff_status status = ff_file_write(name.chars, text.chars, text.length, error);
    free(name.chars);
    free(text.chars);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status write_csv(const char *path, const run_results *results, ff_error *error) {
  if (!path) return FF_OK;
  ff_text text = {0};
  for (uint32_t i = 0; i < results->count; i++) report_csv_write(&results->runs[i], i == 0, &text);
  ff_status status = ff_file_write(path, text.chars, text.length, error);
  free(text.chars);
  return status;
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
  ff_error error;
  if (!results.count) {
    cli_fail(0, "%s made no CUDA call: there is nothing to report", a->program[0]);
  } else {
    print_tables(a, &results);
    if (write_json(a->output, &results, &error) || write_json(a->json, &results, &error) || write_csv(a->csv, &results, &error)) {
      cli_fail(0, "%s", error.message);
      if (!status) status = CLI_FAILED;
    }
  }
  run_results_free(&results);
  return status;
}

static int run_in(const arguments *a, const run_program *program, const char *libraries, const char *folder) {
  run_child child = {.argv = a->program, .program = program, .libraries = libraries, .folder = folder, .setup = &a->setup,
                     .max_instructions = a->max_instructions[0] ? a->max_instructions : NULL,
                     .threads = a->threads[0] ? a->threads : NULL};
  run_end end;
  ff_error error;
  if (run_child_wait(&child, &end, &error)) return cli_fail(CLI_NOT_EXECUTABLE, "%s", error.message);
  return report(a, folder, &end);
}

static int run(int argc, char **argv) {
  static const struct argp argp = {
      options, parse, "[--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on a virtual GPU, and prints per memory manager how long it would take and what its memory would "
      "do. The program's output and exit status are its own; the table goes to stderr.\v"
      "Example:\n  nvcc -cudart shared saxpy.cu -o saxpy\n"
      "  farfault run --memory copy,demand,replay,ideal ./saxpy 1000000\n\n"
      "The program needs the shared CUDA runtime and PTX of its kernels inside, which nvcc embeds unless it is told not to.",
      NULL, NULL, NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  ff_error error;
  if (cli_setup_check(&a.setup, &error)) return cli_fail(error.status == FF_IO || error.status == FF_PARSE ? CLI_BAD_FILE : CLI_USAGE, "%s", error.message);
  if (check_outputs(&a, &error)) return cli_fail(CLI_FAILED, "%s", error.message);
  char *libraries = run_libraries(), *folder = NULL;
  run_program program = {0};
  int status = CLI_FAILED;
  if (!libraries) cli_fail(CLI_FAILED, "the virtual GPU's libraries (lib/farfault/libfarfault-gpu.so) are not beside this program");
  else if (run_program_find(a.program[0], libraries, &program, &error)) status = cli_fail(program.status, "%s", error.message);
  else if ((folder = make_folder())) status = run_in(&a, &program, libraries, folder);
  if (folder) remove_folder(folder);
  run_program_free(&program);
  free(libraries);
  return status;
}

const cli_command cli_run = {"run", "run a CUDA program on a virtual GPU and report its memory", run};
