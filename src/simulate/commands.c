/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run something: each makes the command line that a user would write, and reads what the command left.
 *
 *   options -> words of the command -> simulate_child_run -> results in a temporary folder -> ff_simulate_result
 *
 * The folder is gone when a call returns. */
#define _GNU_SOURCE /* dladdr */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "simulate/child.h"
#include "simulate/simulate.h"

/* Exit statuses of the program (docs/usage.md). */
enum { EXIT_BAD_FILE = 2, EXIT_NONE_RAN = 4, EXIT_USAGE = 64, EXIT_NOT_EXECUTABLE = 126, EXIT_NO_PROGRAM = 127 };

typedef struct words {
  char **items; /* all owned, NULL-ended while a command runs */
  size_t count, capacity;
} words;

static void add(words *w, const char *word) { FF_PUSH(w, word ? ff_strdup(word) : NULL); }

static void add_option(words *w, const char *option, const char *value) {
  ff_text word = {0};
  ff_text_add(&word, "%s=%s", option, value);
  FF_PUSH(w, word.chars);
}

static void words_free(words *w) {
  for (size_t i = 0; i < w->count; i++) free(w->items[i]);
  free(w->items);
}

/* ---- the program `farfault` ---- */

static char *absolute(const char *folder, const char *below) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, below);
  char *real = realpath(path.chars, NULL);
  free(path.chars);
  if (real && access(real, X_OK) == 0) return real;
  free(real);
  return NULL;
}

/* Next to this library: lib/ and bin/ are neighbours in an installation and in a build folder. */
static char *installed_here(void) {
  Dl_info info;
  char *real = dladdr((void *)(uintptr_t)&ff_simulate_run, &info) ? realpath(info.dli_fname, NULL) : NULL;
  char *slash = real ? strrchr(real, '/') : NULL;
  if (slash) *slash = '\0';
  char *found = slash ? absolute(real, "../bin/farfault") : NULL;
  free(real);
  return found;
}

static char *on_path(void) {
  const char *list = getenv("PATH");
  char *folders = ff_strdup(list ? list : ""), *rest = NULL, *found = NULL;
  for (char *folder = strtok_r(folders, ":", &rest); folder && !found; folder = strtok_r(NULL, ":", &rest))
    found = absolute(folder, "farfault");
  free(folders);
  return found;
}

static ff_simulate_status find_program(const ff_simulate_options *options, words *w, ff_simulate_error *error) {
  char *found = options->program ? ff_strdup(options->program) : installed_here();
  if (!found) found = on_path();
  if (found && access(found, X_OK) == 0) {
    FF_PUSH(w, found);
    return FF_SIMULATE_OK;
  }
  simulate_fail(error, FF_SIMULATE_NOT_INSTALLED, "%s: %s", found ? found : "farfault",
                found ? strerror(errno) : "the program is neither next to this library nor on PATH");
  free(found);
  return FF_SIMULATE_NOT_INSTALLED;
}

/* ---- options ---- */

/* The caller's may be of an older version of the header, with less in it. */
static ff_simulate_status take_options(const ff_simulate_options *given, ff_simulate_options *own,
                                       ff_simulate_error *error) {
  *own = (ff_simulate_options){.size = sizeof *own};
  if (!given) return FF_SIMULATE_OK;
  if (given->size < sizeof given->size || given->size > 4096)
    return simulate_fail(error, FF_SIMULATE_INVALID, "options: `size` is %zu, not sizeof(ff_simulate_options)",
                         given->size);
  memcpy(own, given, given->size < sizeof *own ? given->size : sizeof *own);
  return FF_SIMULATE_OK;
}

static ff_simulate_status add_options(words *w, const ff_simulate_options *options, ff_simulate_error *error) {
  for (const char *const *word = options->arguments; word && *word; word++) {
    if ((*word)[0] != '-' || (*word)[1] != '-' || !isalpha((unsigned char)(*word)[2]))
      return simulate_fail(error, FF_SIMULATE_INVALID,
                           "'%.200s' is no option: one begins with -- and has its value behind =", *word);
    add(w, *word);
  }
  if (options->memory) add_option(w, "--memory", options->memory);
  if (options->machine) add_option(w, "--machine", options->machine);
  return FF_SIMULATE_OK;
}

static ff_simulate_status check_program(const char *const *argv, ff_simulate_error *error) {
  if (argv && argv[0] && argv[0][0]) return FF_SIMULATE_OK;
  return simulate_fail(error, FF_SIMULATE_INVALID, "which program? argv is empty");
}

static ff_simulate_status refuse(const char *value, const char *name, const char *why, ff_simulate_error *error) {
  if (!value) return FF_SIMULATE_OK;
  return simulate_fail(error, FF_SIMULATE_INVALID, "options: `%s` is not for this call: %s", name, why);
}

/* ---- the temporary folder ---- */

static char *make_folder(ff_simulate_error *error) {
  const char *base = getenv("TMPDIR");
  ff_text path = {0};
  ff_text_add(&path, "%s/farfault-api-XXXXXX", base && *base == '/' ? base : "/tmp");
  if (mkdtemp(path.chars)) return path.chars;
  simulate_fail(error, FF_SIMULATE_FAILED, "%s: cannot make a temporary folder: %s", path.chars, strerror(errno));
  free(path.chars);
  return NULL;
}

static void remove_folder(char *folder) {
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
  rmdir(folder);
  free(folder);
}

/* run.json, run.json.2, ...: one of each process. */
static ff_simulate_status read_results(const char *folder, int exit_status, ff_simulate_result **out,
                                       ff_simulate_error *error) {
  report_run *runs = NULL;
  uint32_t count = 0;
  ff_error why;
  ff_status status = FF_OK;
  while (!status) {
    ff_text path = {0};
    ff_text_add(&path, count ? "%s/run.json.%u" : "%s/run.json", folder, count + 1);
    bool there = access(path.chars, F_OK) == 0;
    runs = ff_realloc(runs, (count + 1) * sizeof *runs);
    if (there) status = report_file_read(path.chars, &runs[count], &why);
    free(path.chars);
    if (!there) break;
    if (!status) count++;
  }
  if (!status) *out = simulate_result_make(runs, count, exit_status);
  for (uint32_t i = 0; status && i < count; i++) report_free(&runs[i]);
  free(runs);
  return status ? simulate_fail(error, FF_SIMULATE_FAILED, "%s", why.message) : FF_SIMULATE_OK;
}

/* ---- what went wrong ---- */

/* "farfault run: " -> what stands behind it; NULL: the line is not one of farfault's. */
static const char *behind_prefix(const char *line) {
  if (strncmp(line, "farfault", 8) != 0) return NULL;
  const char *c = line + 8;
  if (*c == ' ')
    for (c++; islower((unsigned char)*c) || *c == '-'; c++) {}
  return c[0] == ':' && c[1] == ' ' ? c + 2 : NULL;
}

/* What farfault said: from its first line on, so that a text with a caret below comes with it. */
static void add_message(const char *said, ff_text *message) {
  bool begun = false;
  for (const char *line = said, *next; *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    const char *text = behind_prefix(line);
    begun = begun || text;
    if (!begun || !strncmp(line, "Try ", 4)) continue; /* argp's hint at --help */
    length -= text ? (size_t)(text - line) : 0;
    ff_text_add(message, "%s%.*s", message->length ? "\n" : "", (int)length, text ? text : line);
  }
}

static ff_simulate_status kind_of(const simulate_child *child) {
  if (child->stopped || child->signal) return FF_SIMULATE_STOPPED;
  if (child->said.length && strstr(child->said.chars, "not use the virtual GPU")) return FF_SIMULATE_NO_RESULTS;
  if (child->status > 128) return FF_SIMULATE_STOPPED;
  switch (child->status) {
  case EXIT_BAD_FILE: return FF_SIMULATE_BAD_FILE;
  case EXIT_USAGE: return FF_SIMULATE_INVALID;
  case EXIT_NOT_EXECUTABLE:
  case EXIT_NO_PROGRAM: return FF_SIMULATE_NO_PROGRAM;
  default: return FF_SIMULATE_FAILED;
  }
}

static ff_simulate_status explain(const simulate_child *child, ff_simulate_error *error) {
  ff_simulate_status status = kind_of(child);
  ff_text message = {0};
  add_message(child->said.length ? child->said.chars : "", &message);
  if (child->stopped) simulate_fail(error, status, "stopped");
  else if (child->signal)
    simulate_fail(error, status, "farfault was ended by signal %d (%s)", child->signal, strsignal(child->signal));
  else if (message.length) simulate_fail(error, status, "%s", message.chars);
  else simulate_fail(error, status, "farfault ended with status %d and said nothing", child->status);
  free(message.chars);
  return status;
}

/* ---- the calls ---- */

static ff_simulate_status start(words *w, const ff_simulate_options *options, simulate_child *child,
                                ff_simulate_error *error) {
  ff_error why;
  add(w, NULL);
  *child = (simulate_child){.argv = w->items, .options = options};
  if (!simulate_child_run(child, &why)) return FF_SIMULATE_OK;
  return simulate_fail(error, FF_SIMULATE_FAILED, "%s", why.message);
}

/* A command whose results go into a file. `rest`: what stands behind its options, NULL-ended; `of_program`: the exit
 * status is that of the program, and only results tell that all went well. */
static ff_simulate_status run_for_results(const char *command, const char *const *rest, bool of_program,
                                          const ff_simulate_options *given, ff_simulate_result **out,
                                          ff_simulate_error *error) {
  ff_simulate_options options;
  words w = {0};
  simulate_child child = {0};
  char *folder = NULL;
  ff_simulate_status status = take_options(given, &options, error);
  if (!status) status = find_program(&options, &w, error);
  if (!status) add(&w, command);
  if (!status) status = add_options(&w, &options, error);
  if (!status && !(folder = make_folder(error))) status = FF_SIMULATE_FAILED;
  if (!status) {
    ff_text file = {0};
    ff_text_add(&file, "%s/run.json", folder);
    add(&w, "--quiet");
    add_option(&w, options.history ? "--output" : "--json", file.chars);
    free(file.chars);
    add(&w, "--");
    for (; *rest; rest++) add(&w, *rest);
    status = start(&w, &options, &child, error);
  }
  bool failed = !of_program && child.status && child.status != EXIT_NONE_RAN; /* with that each result says why */
  if (!status && (child.stopped || child.signal || failed)) status = explain(&child, error);
  if (!status) status = read_results(folder, of_program ? child.status : 0, out, error);
  if (!status && !(*out)->process_count) {
    ff_simulate_free(*out);
    *out = NULL;
    status = explain(&child, error);
  }
  if (folder) remove_folder(folder);
  simulate_child_free(&child);
  words_free(&w);
  return status;
}

ff_simulate_status ff_simulate_run(const char *const *argv, const ff_simulate_options *options,
                                   ff_simulate_result **out, ff_simulate_error *error) {
  if (!out) return simulate_fail(error, FF_SIMULATE_INVALID, "there is no place for the result");
  *out = NULL;
  ff_simulate_status status = check_program(argv, error);
  return status ? status : run_for_results("run", argv, true, options, out, error);
}

ff_simulate_status ff_simulate_recording(const char *trace, const ff_simulate_options *options,
                                         ff_simulate_result **out, ff_simulate_error *error) {
  if (!out) return simulate_fail(error, FF_SIMULATE_INVALID, "there is no place for the result");
  *out = NULL;
  if (!trace || !*trace) return simulate_fail(error, FF_SIMULATE_INVALID, "the trace's name is empty");
  const char *const rest[] = {trace, NULL};
  return run_for_results("sim", rest, false, options, out, error);
}

/* "farfault: app.fft: 7 operations, ...": the trace is there, whole. The program may have failed with any status. */
static bool was_recorded(const simulate_child *child, const char *trace) {
  ff_text line = {0};
  ff_text_add(&line, "farfault: %s: ", trace);
  bool found = false;
  for (const char *at = child->said.length ? child->said.chars : ""; (at = strstr(at, line.chars)) && !found;) {
    at += line.length;
    found = strspn(at, "0123456789") && !strncmp(at + strspn(at, "0123456789"), " operations, ", 13);
  }
  free(line.chars);
  return found;
}

ff_simulate_status ff_simulate_record(const char *const *argv, const char *trace, const ff_simulate_options *given,
                                      int *exit_status, ff_simulate_error *error) {
  ff_simulate_options options;
  words w = {0};
  simulate_child child = {0};
  ff_simulate_status status = check_program(argv, error);
  if (!status && (!trace || !*trace)) status = simulate_fail(error, FF_SIMULATE_INVALID, "the trace's name is empty");
  if (!status) status = take_options(given, &options, error);
  if (!status) status = refuse(options.memory, "memory", "a recording is of the program alone", error);
  if (!status) status = find_program(&options, &w, error);
  if (!status) add(&w, "record");
  if (!status) status = add_options(&w, &options, error);
  if (!status) {
    add_option(&w, "--output", trace);
    add(&w, "--");
    for (; *argv; argv++) add(&w, *argv);
    status = start(&w, &options, &child, error);
  }
  if (!status && (child.stopped || child.signal || !was_recorded(&child, trace))) status = explain(&child, error);
  if (!status && exit_status) *exit_status = child.status;
  simulate_child_free(&child);
  words_free(&w);
  return status;
}

ff_simulate_status ff_simulate_sweep(const char *study, const char *database, const ff_simulate_options *given,
                                     ff_simulate_error *error) {
  ff_simulate_options options;
  words w = {0};
  simulate_child child = {0};
  ff_simulate_status status = take_options(given, &options, error);
  if (!status && (!study || !*study)) status = simulate_fail(error, FF_SIMULATE_INVALID, "the study's name is empty");
  if (!status && (!database || !*database))
    status = simulate_fail(error, FF_SIMULATE_INVALID, "the database's name is empty");
  if (!status) status = refuse(options.memory, "memory", "the study says it", error);
  if (!status) status = refuse(options.machine, "machine", "the study says it", error);
  if (!status) status = find_program(&options, &w, error);
  if (!status) add(&w, "sweep");
  if (!status) status = add_options(&w, &options, error);
  if (!status) {
    add_option(&w, "--output", database);
    add(&w, "--");
    add(&w, study);
    status = start(&w, &options, &child, error);
  }
  if (!status && (child.stopped || child.signal || child.status)) status = explain(&child, error);
  simulate_child_free(&child);
  words_free(&w);
  return status;
}
