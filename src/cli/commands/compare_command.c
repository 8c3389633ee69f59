/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault compare BEFORE AFTER ...`: what changed between runs (src/compare/). Each file is a saved run, the database
 * of a sweep, or a recording, which is simulated first: as `farfault sim FILE --json RESULT` in a child process.
 *
 * The exit status is that of diff: 0 no change, 1 changes, 2 trouble, and 64 for wrong arguments as everywhere. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/commands/report_command.h"
#include "cli/running/jobs.h"
#include "cli/running/run.h"
#include "compare/compare.h"
#include "sweep/database.h"

enum { KEY_THRESHOLD = 256, KEY_METRIC, KEY_JSON, KEY_WORSE, KEY_HTML };
enum { COMPARE_SAME = 0, COMPARE_CHANGED = 1, COMPARE_TROUBLE = 2, FILES = KIND_RUN | KIND_DATABASE | KIND_TRACE };

typedef struct arguments {
  FF_VEC(const char *) files;
  compare_options options;
  const char *json, *html, *memory, *machine;
  bool all, only_worse;
} arguments;

static const struct argp_option options[] = {
    {"threshold", KEY_THRESHOLD, "SHARE", 0,
     "what changes by no more than this counts as the same: 5%, 0.05 (default: 0; a simulation gives the same numbers every time)",
     0},
    {"metric", KEY_METRIC, "NAME,...", 0,
     "compare these numbers: time, tlb_miss_rate ..., any counter, or all (default: times, far-faults, bytes moved)",
     0},
    {"worse", KEY_WORSE, NULL, 0, "only what got worse makes the exit status 1", 0},
    {"verbose", 'v', NULL, 0, "show all changes (default: the 20 of most effect of each table)", 0},
    {"json", KEY_JSON, "FILE", 0, "write the changes as JSON; -: to stdout instead of the tables", 0},
    {"html", KEY_HTML, "FILE", 0, "also write them as a page with charts: one file, to be opened in a browser", 0},
    {NULL, 0, NULL, 0, "Of recordings, which are simulated first:", 1},
    {"memory", 'm', "MANAGER,...", 0, "memory managers, as of `farfault sim`", 1},
    {"machine", 'M', "NAME|FILE", 0, "the GPU, as of `farfault sim`", 1},
    {0}};

static bool to_stdout(const arguments *a) { return a->json && !strcmp(a->json, "-"); }

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  ff_error error;
  switch (key) {
  case KEY_THRESHOLD:
    if (compare_threshold(value, &a->options, &error)) cli_refuse(state, "--threshold: %s", error.message);
    return 0;
  case KEY_METRIC:
    if (compare_choose(value, &a->options, &error)) cli_refuse(state, "--metric: %s", error.message);
    return 0;
  case KEY_WORSE: a->only_worse = true; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_HTML: a->html = cli_output(value, "--html", false, state); return 0;
  case 'v': a->all = true; return 0;
  case 'm': a->memory = value; return 0;
  case 'M': a->machine = value; return 0;
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "a file's name is empty");
    FF_PUSH(&a->files, value);
    return 0;
  case ARGP_KEY_END:
    if (a->files.count < 2) cli_refuse(state, "which runs? (two files or more: before, after ...)");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- reading ---- */

typedef struct simulated { /* a recording on its way to a run */
  const char *file;
  char *json, *log;
} simulated;

typedef struct comparing {
  const arguments *arguments;
  report_run *runs; /* one per file */
  char *folder;     /* for simulations; NULL: there are none */
  jobs jobs;
  FF_VEC(simulated) simulated;
} comparing;

static char *path_in(const comparing *k, size_t file, const char *ending) {
  ff_text path = {0};
  ff_text_add(&path, "%s/compare-%zu.%s", k->folder, file, ending);
  return path.chars;
}

static void add_job(comparing *k, const char *self, size_t file) {
  const arguments *a = k->arguments;
  FF_VEC(char *) words = {0};
  simulated made = {a->files.items[file], path_in(k, file, "json"), path_in(k, file, "log")};
  const char *const given[] = {
      self,       "sim", "--json", made.json, a->memory ? "--memory" : NULL, a->memory, a->machine ? "--machine" : NULL,
      a->machine, "--",  made.file};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    if (given[i]) FF_PUSH(&words, ff_strdup(given[i]));
  FF_PUSH(&words, NULL);
  job j = {.argv = words.items, .log = ff_strdup(made.log), .label = made.file, .seconds = 1};
  FF_PUSH(&k->jobs.list, j);
  FF_PUSH(&k->simulated, made);
}

/* The simulation's own words, if it failed. */
static bool say_log(const simulated *made, int status) {
  char *text = NULL;
  size_t size;
  if (!ff_file_read(made->log, 1 << 20, &text, &size, NULL)) fputs(text, stderr);
  free(text);
  return cli_fail(false, "%s: the simulation ended with status %d", made->file, status);
}

/* Simulates all recordings. The number of a signal that stopped it; -1: one failed. */
static int simulate(comparing *k) {
  char self[PATH_MAX] = "";
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return cli_fail(-1, "cannot find the program farfault: there is no /proc");
  for (size_t i = 0; i < k->arguments->files.count; i++)
    if (kind_of_file(k->arguments->files.items[i]) == KIND_TRACE) add_job(k, self, i);
  k->jobs.title = "compare";
  k->jobs.at_once = 2;
  int stopped = jobs_run(&k->jobs);
  for (size_t i = 0; i < k->jobs.list.count && !stopped; i++) {
    int status = k->jobs.list.items[i].status;
    if (status && status != CLI_NONE_RAN && !say_log(&k->simulated.items[i], status)) stopped = -1;
  }
  return stopped;
}

static ff_status read_file(const comparing *k, size_t file, report_run *run, ff_error *error) {
  const char *path = k->arguments->files.items[file];
  file_kind kind = kind_of_file(path);
  if (kind == KIND_DATABASE) return sweep_run_read(path, run, error);
  if (kind != KIND_TRACE) return report_file_read(path, run, error);
  for (size_t i = 0; i < k->simulated.count; i++)
    if (k->simulated.items[i].file == path) return report_file_read(k->simulated.items[i].json, run, error);
  return ff_fail(error, FF_IO, "%s: became a recording while it was read", path);
}

static bool read_files(comparing *k) {
  ff_error error;
  bool good = true;
  for (size_t i = 0; i < k->arguments->files.count && good; i++)
    if (read_file(k, i, &k->runs[i], &error)) good = cli_fail(false, "%s", error.message);
  return good;
}

/* ---- comparing ---- */

/* The comparisons with the runs that they are of. */
static bool write_page(const comparing *k, const ff_text *comparisons) {
  const arguments *a = k->arguments;
  ff_text page = {0};
  ff_text_add(&page, "{\"version\":\"%s\",\"comparisons\":%s,\"runs\":[", FARFAULT_VERSION, comparisons->chars);
  for (size_t i = 0; i < a->files.count; i++) {
    ff_text_add(&page, i ? "," : "");
    report_json_write(&k->runs[i], &page);
  }
  ff_text_add(&page, "]}");
  bool good = !report_page("comparison", a->files.items[0], NULL, page.chars, page.length, a->html);
  free(page.chars);
  return good;
}

static int compare_all(const comparing *k) {
  const arguments *a = k->arguments;
  ff_text table = {0}, json = {0};
  int status = COMPARE_SAME;
  ff_text_add(&json, "[");
  for (size_t i = 1; i < a->files.count; i++) {
    comparison c;
    compare_names names = {a->files.items[0], a->files.items[i], {&k->runs[0], &k->runs[i]}};
    compare_runs(&k->runs[0], &k->runs[i], &a->options, &c);
    if (i > 1) ff_text_add(&table, "\n");
    compare_table_write(&c, &names, &a->options, a->all, &table);
    ff_text_add(&json, i > 1 ? ",\n" : "\n");
    compare_json_write(&c, &names, &a->options, &json);
    if (a->only_worse ? c.worse : c.changes.count) status = COMPARE_CHANGED;
    comparison_free(&c);
  }
  ff_text_add(&json, "\n]\n");
  if (!to_stdout(a) && cli_print(&table)) status = COMPARE_TROUBLE;
  if (a->json && cli_write_or_print(a->json, &json)) status = COMPARE_TROUBLE;
  if (a->html && !write_page(k, &json)) status = COMPARE_TROUBLE;
  free(table.chars);
  free(json.chars);
  return status;
}

static bool needs_simulation(const arguments *a) {
  for (size_t i = 0; i < a->files.count; i++)
    if (kind_of_file(a->files.items[i]) == KIND_TRACE) return true;
  return false;
}

static void clear(comparing *k) {
  for (size_t i = 0; i < k->arguments->files.count; i++) report_free(&k->runs[i]);
  for (size_t i = 0; i < k->simulated.count; i++) {
    free(k->simulated.items[i].json);
    free(k->simulated.items[i].log);
  }
  free(k->simulated.items);
  jobs_free(&k->jobs);
  free(k->runs);
}

static int compare_files(const arguments *a) {
  comparing k = {.arguments = a, .runs = ff_alloc(a->files.count * sizeof *k.runs)};
  int stopped = 0, status = COMPARE_TROUBLE;
  if (needs_simulation(a)) {
    k.folder = run_make_folder();
    stopped = k.folder ? simulate(&k) : -1;
  }
  if (!stopped && read_files(&k)) {
    if (k.folder) run_clear_folder(k.folder);
    status = compare_all(&k);
  }
  clear(&k);
  if (k.folder) run_remove_folder(k.folder);
  return stopped > 0 ? 128 + stopped : status;
}

static int compare(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "BEFORE AFTER...",
      "Says what changed between runs: per memory manager, kernel and allocation, what matters most first. A file is a run that "
      "`farfault run -o FILE` (or --json FILE) saved, the database of a sweep, or a recording; each one behind the first is compared with the first.\v"
      "Example:\n  farfault run -o main.ffr ./saxpy 1000000\n  farfault run -o mine.ffr ./saxpy-mine 1000000\n"
      "  farfault compare --threshold 5% main.ffr mine.ffr\n"
      "  farfault compare --memory uvm,auto --worse before.fft after.fft\n\n"
      "Exit status, as of diff: 0 nothing changed by more than the threshold, 1 something did (with --worse: something got worse), "
      "2 a file cannot be read or compared, 64 wrong arguments.",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  compare_choose(NULL, &a.options, NULL);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  int status = COMPARE_SAME;
  for (size_t i = 0; i < a.files.count && !status; i++)
    if (kind_refused(a.files.items[i], FILES)) status = COMPARE_TROUBLE;
    else status = cli_keep_input(a.files.items[i], (const char *const[]){a.json, a.html}, 2);
  if (!status) status = compare_files(&a);
  free(a.files.items);
  return status;
}

const cli_command cli_compare = {"compare", "say what changed between runs, or sweeps", compare};
