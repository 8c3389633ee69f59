/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault memcheck` and `farfault racecheck`: run the program as `farfault record` does, with a check in its virtual
 * GPU (src/check), and sum up what each of its processes found.
 *
 * The program's output is its own; reports go to stderr or the log; a program without findings ends
 * with its own status. */
#define _GNU_SOURCE /* versionsort */
#include "cli/commands/check_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum { KEY_EXITCODE = 256, KEY_LIMIT, KEY_LOG, KEY_JSON, KEY_BACKTRACE };

static const struct argp_option options[] = {
    {"machine", 'M', "NAME|FILE", 0, "the GPU that the program finds (default: h200)", 1},
    {"kernel", 'k', "NAME", 0,
     "look only at kernels whose name has this in it (also --kernel-name, as in compute-sanitizer)", 1},
    {"kernel-name", 0, NULL, OPTION_ALIAS, NULL, 1},
    {"error-exitcode", KEY_EXITCODE, "N", 0,
     "exit status if there were errors and the program's own status is 0 (default: 1)", 1},
    {"print-limit", KEY_LIMIT, "N", 0, "print so many findings, each with its place and a first example (default: 100)",
     1},
    {"show-backtrace", KEY_BACKTRACE, "no|yes", 0,
     "show the program's own call stack at launches and allocations (default: yes)", 1},
    {"log-file", KEY_LOG, "FILE", 0, "write the report there instead of to stderr", 1},
    {"json", KEY_JSON, "FILE", 0, "also write all findings as JSON", 1},
    {0}};

void checker_begin(checker_arguments *a, check_tool tool) {
  *a = (checker_arguments){.error_status = CLI_FAILED};
  check_options_default(tool, &a->check);
  strcpy(a->setup.managers, "none");
}

void checker_set(checker_arguments *a, const char *name, const char *value, struct argp_state *state) {
  ff_error error;
  if (check_option_set(&a->check, name, value, &error)) cli_refuse(state, "%s", error.message);
}

static int exit_status(const char *value, struct argp_state *state) {
  char *end;
  long number = strtol(value, &end, 10);
  if (!*value || *end || number < 0 || number > 255)
    cli_refuse(state, "--error-exitcode: '%s' is not a number from 0 to 255", value);
  return (int)number;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  checker_arguments *a = state->input;
  switch (key) {
  case ARGP_KEY_INIT: return 0;
  case 'M':
    cli_copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state);
    a->setup.machine_chosen = true;
    return 0;
  case 'k': cli_copy_option(a->check.kernel, sizeof a->check.kernel, value, "kernel", state); return 0;
  case KEY_EXITCODE: a->error_status = exit_status(value, state); return 0;
  case KEY_LIMIT: checker_set(a, "print-limit", value, state); return 0;
  case KEY_BACKTRACE: checker_set(a, "show-backtrace", value, state); return 0;
  case KEY_LOG: a->log = cli_output(value, "--log-file", false, state); return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", false, state); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

const struct argp cli_checker_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

error_t checker_parse_program(int key, char *value, struct argp_state *state, checker_arguments *a) {
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = a;
    state->child_inputs[1] = &a->executed;
    return 0;
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

/* ---- what the processes left ---- */

typedef struct found {
  json_t *processes;
  uint64_t errors, warnings, infos, leaked, leaked_bytes;
  bool cut; /* one did not come to its end */
} found;

static uint64_t number(const json_t *o, const char *name) {
  return (uint64_t)json_integer_value(json_object_get(o, name));
}

static void take(found *f, json_t *process) {
  f->errors += number(process, "errors");
  f->warnings += number(process, "warnings");
  f->infos += number(process, "infos");
  f->leaked += number(process, "leaked_allocations");
  f->leaked_bytes += number(process, "leaked_bytes");
  f->cut |= !json_is_true(json_object_get(process, "ended"));
  json_array_append_new(f->processes, process);
}

static int is_result(const struct dirent *entry) { return !strncmp(entry->d_name, "check-", 6); }

static void read_found(const char *folder, found *f) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, is_result, versionsort);
  *f = (found){.processes = json_array()};
  for (int n = 0; n < count; n++) {
    ff_text path = {0};
    json_error_t error;
    ff_text_add(&path, "%s/%s", folder, entries[n]->d_name);
    json_t *process = json_load_file(path.chars, 0, &error);
    if (process) take(f, process);
    free(path.chars);
    free(entries[n]);
  }
  if (count >= 0) free(entries);
}

/* ---- the last words ---- */

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void add_summary(const checker_arguments *a, const found *f, ff_text *out) {
  if (f->cut) ff_text_add(out, "========= The program was stopped: what it did until then was checked\n");
  if (f->leaked)
    ff_text_add(out, "========= LEAK SUMMARY: %" PRIu64 " bytes leaked in %" PRIu64 " allocation%s%s\n",
                f->leaked_bytes, f->leaked, plural(f->leaked),
                a->check.leaks ? "" : " (--leak-check full: where each was allocated)");
  bool race = a->check.tool == CHECK_RACECHECK;
  uint64_t shown = (a->check.level <= CHECK_ERROR ? f->errors : 0) +
                   (a->check.level <= CHECK_WARNING ? f->warnings : 0) + (a->check.level == CHECK_INFO ? f->infos : 0);
  if (race)
    ff_text_add(out,
                "========= RACECHECK SUMMARY: %" PRIu64 " hazard%s displayed (%" PRIu64 " error%s, %" PRIu64
                " warning%s)\n",
                shown, plural(shown), f->errors, plural(f->errors), f->warnings, plural(f->warnings));
  else ff_text_add(out, "========= ERROR SUMMARY: %" PRIu64 " error%s\n", f->errors, plural(f->errors));
}

static bool say(const checker_arguments *a, const char *text) {
  FILE *out = a->log ? fopen(a->log, "ae") : stderr;
  if (!out) return cli_fail(false, "%s: cannot be written: %s", a->log, strerror(errno));
  bool good = fputs(text, out) >= 0;
  if (a->log) good = fclose(out) == 0 && good;
  if (!good && !a->log && (errno == EPIPE || errno == EBADF)) return true; /* nobody is to read it */
  return good || cli_fail(false, "%s: cannot be written: %s", a->log ? a->log : "stderr", strerror(errno));
}

static bool write_json(const checker_arguments *a, const found *f) {
  json_t *o = json_object(), *command = json_array();
  for (char **word = a->program; *word; word++) json_array_append_new(command, json_string(*word) ?: json_string("?"));
  json_object_set_new(o, "tool", json_string(check_tool_name(a->check.tool)));
  json_object_set_new(o, "command", command);
  json_object_set_new(o, "errors", json_integer((json_int_t)f->errors));
  json_object_set_new(o, "warnings", json_integer((json_int_t)f->warnings));
  json_object_set_new(o, "infos", json_integer((json_int_t)f->infos));
  json_object_set_new(o, "leaked_bytes", json_integer((json_int_t)f->leaked_bytes));
  json_object_set_new(o, "leaked_allocations", json_integer((json_int_t)f->leaked));
  json_object_set(o, "processes", f->processes);
  char *text = json_dumps(o, JSON_INDENT(2));
  ff_error error = {0};
  ff_status status = text ? ff_file_write(a->json, text, strlen(text), &error) : FF_IO;
  if (status) cli_fail(0, "%s", error.message);
  free(text);
  json_decref(o);
  return !status;
}

static int report(const checker_arguments *a, const char *folder, const run_end *end) {
  found f;
  run_results results;
  ff_text text = {0};
  signal(SIGPIPE, SIG_IGN); /* nobody may read stderr any more: the JSON is written all the same */
  fflush(stdout);
  read_found(folder, &f);
  f.cut |= end->signal != 0;
  run_results_read(folder, &results);
  run_clear_folder(folder);
  if (end->signal) cli_fail(0, "%s was ended by signal %d (%s)", a->program[0], end->signal, strsignal(end->signal));
  if (!json_array_size(f.processes) && !results.count) {
    cli_fail(0, "%s did not use the virtual GPU: there was nothing to check", a->program[0]);
    run_say_missing(end);
  }
  add_summary(a, &f, &text);
  bool good = say(a, text.chars);
  if (a->json) good = write_json(a, &f) && good;
  int status = end->status ? end->status : f.errors ? a->error_status : good ? CLI_DONE : CLI_FAILED;
  run_results_free(&results);
  json_decref(f.processes);
  free(text.chars);
  return status;
}

/* ---- running it ---- */

static void set_path(const char *name, const char *value) {
  char folder[PATH_MAX];
  ff_text path = {0};
  /* the program may change its folder */
  if (value[0] != '/' && getcwd(folder, sizeof folder)) ff_text_add(&path, "%s/", folder);
  ff_text_add(&path, "%s", value);
  setenv(name, path.chars, 1);
  free(path.chars);
}

/* What the child's virtual GPU is to do (check/check_options.h). */
static void set_environment(const checker_arguments *a, const char *folder) {
  ff_text words = {0}, results = {0};
  check_options_write(&a->check, &words);
  setenv("FARFAULT_CHECKER", words.chars, 1);
  ff_text_add(&results, "%s/check-%%p.json", folder);
  setenv("FARFAULT_CHECKER_RESULTS", results.chars, 1);
  if (a->check.kernel[0]) setenv("FARFAULT_CHECKER_KERNEL", a->check.kernel, 1);
  else unsetenv("FARFAULT_CHECKER_KERNEL");
  if (a->log) set_path("FARFAULT_CHECKER_LOG", a->log);
  else unsetenv("FARFAULT_CHECKER_LOG");
  free(words.chars);
  free(results.chars);
}

static int run_in(const checker_arguments *a, const run_program *program, const char *libraries, const char *folder) {
  run_child child = {.argv = a->program,
                     .program = program,
                     .libraries = libraries,
                     .folder = folder,
                     .setup = &a->setup,
                     .executed = &a->executed};
  run_end end;
  ff_error error;
  set_environment(a, folder);
  if (run_child_wait(&child, &end, &error)) return cli_fail(CLI_NOT_EXECUTABLE, "%s", error.message);
  return report(a, folder, &end);
}

static bool begin_log(const checker_arguments *a) {
  ff_text text = {0};
  ff_text_add(&text, "========= FARFAULT %s\n", a->check.tool == CHECK_RACECHECK ? "RACECHECK" : "MEMCHECK");
  bool good = true;
  ff_error error;
  if (a->log) good = !ff_file_write(a->log, text.chars, text.length, &error) || cli_fail(false, "%s", error.message);
  else good = say(a, text.chars);
  free(text.chars);
  return good;
}

/* A pipe's reader is at its end when no process has it open for writing: we have it until the last words. -1: no
 * pipe. */
static int hold_pipe(const char *path) {
  struct stat there;
  return path && !stat(path, &there) && S_ISFIFO(there.st_mode) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
}

static int do_check(checker_arguments *a) {
  ff_error error;
  if (cli_setup_check(&a->setup, &error)) return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  run_outputs outputs = {.json = a->json, .csv = a->log};
  if (run_outputs_check(&outputs, a->program[0], "the program", a->setup.machine, &error))
    return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  int held = hold_pipe(a->log); /* it may wait for the pipe's reader: before signals wait for the folder */
  char *folder = run_make_folder();
  if (!folder) {
    if (held >= 0) close(held);
    return CLI_FAILED;
  }
  char *libraries = run_libraries(folder, &error);
  run_program program = {0};
  int status = CLI_FAILED;
  if (!libraries) cli_fail(CLI_FAILED, "%s", error.message);
  else if (run_program_find(a->program[0], libraries, &program, &error))
    status = cli_fail(program.status, "%s", error.message);
  else if (begin_log(a)) status = run_in(a, &program, libraries, folder);
  if (held >= 0) close(held);
  run_program_free(&program);
  free(libraries);
  run_remove_folder(folder);
  return status;
}

int checker_do(checker_arguments *a) {
  run_outputs own;
  run_outputs_of_rank(&(run_outputs){.json = a->json, .csv = a->log}, &own);
  a->json = own.json;
  a->log = own.csv;
  int status = do_check(a);
  run_outputs_free(&own);
  return status;
}
