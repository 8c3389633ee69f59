/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault report RUN`: the table of a saved run again, and its page; of a sweep's database see report_sweep.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands/report_command.h"
#include "cli/running/run.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/stats.h"

typedef struct arguments {
  const char *file, *csv, *html, *svg, *nsys, *advice;
  bool verbose, stats;
  uint32_t lines; /* that are shown; 0: no table of lines */
} arguments;

enum { KEY_CSV = 256, KEY_HTML, KEY_SVG, KEY_STATS, KEY_NSYS, KEY_LINES, KEY_ADVICE };

static const struct argp_option options[] = {
    {"verbose", 'v', NULL, 0, "add tables per kernel and per allocation, and the host's numbers", 0},
    {"stats", KEY_STATS, NULL, 0,
     "add summaries as `nsys stats` has them: kernels, memory operations by time and by size, batches of far-faults",
     0},
    {"lines", KEY_LINES, "N", OPTION_ARG_OPTIONAL, CLI_LINES_HELP "; of a run that was made with --lines", 0},
    {"export-nsys", KEY_NSYS, "FILE", 0,
     "also write it as an SQLite database with the tables of `nsys export`: kernels, copies, calls, ranges (NVTX), what managed memory moved, far-faults; of one memory manager",
     0},
    {"csv", KEY_CSV, "FILE", 0, "also write it as CSV, one row per memory manager; -: to stdout instead of the table",
     0},
    {"html", KEY_HTML, "FILE", 0, "also write it as a page with charts: one file, to be opened in a browser", 0},
    {"advice", KEY_ADVICE, "FILE", 0, "show this advice in the page: what `farfault advise --json FILE` wrote", 0},
    {"svg", KEY_SVG, "FOLDER", 0,
     "also write pictures for papers into this folder: times, what memory stacks gain and cost, and per manager timeline, use of the link, memory over time, bytes by the stacks' links",
     0},
    /* as they were once */
    {NULL, 'C', "FILE", OPTION_HIDDEN, "--csv", 0},
    {NULL, 'H', "FILE", OPTION_HIDDEN, "--html", 0},
    {NULL, 'S', "FOLDER", OPTION_HIDDEN, "--svg", 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'v': a->verbose = true; return 0;
  case KEY_NSYS: a->nsys = cli_output(value, "--export-nsys", false, state); return 0;
  case KEY_LINES: a->lines = cli_lines(value, state); return 0;
  case KEY_STATS: a->stats = true; return 0;
  case 'C': cli_say_old(state, "-C", "--csv"); /* fall through */
  case KEY_CSV: a->csv = cli_output(value, "--csv", true, state); return 0;
  case 'H': cli_say_old(state, "-H", "--html"); /* fall through */
  case KEY_HTML: a->html = cli_output(value, "--html", false, state); return 0;
  case KEY_ADVICE:
    if (!*value) cli_refuse(state, "--advice: the file's name is empty");
    a->advice = value;
    return 0;
  case 'S': cli_say_old(state, "-S", "--svg"); /* fall through */
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  default: return cli_take_file(key, value, &a->file, KIND_RUN | KIND_DATABASE, state);
  }
}

int report_page_text(const char *option, const char *kind, const char *file, const char *more, const char *json,
                     size_t size, ff_text *out) {
  ff_error error;
  char *page = cli_find_installed((const char *const[]){"../share/farfault/report.html", NULL});
  if (!page)
    return cli_fail(CLI_FAILED, "%sthis farfault was built without the page (cmake found no node or no npm)", option);
  ff_status status = report_html_make(page, kind, file, more, json, size, out, &error);
  free(page);
  return status ? cli_fail(CLI_FAILED, "%s", error.message) : CLI_DONE;
}

int report_page(const char *kind, const char *file, const char *more, const char *json, size_t size, const char *html) {
  ff_text page = {0};
  ff_error error;
  int status = report_page_text("--html: ", kind, file, more, json, size, &page);
  if (!status && ff_file_write(html, page.chars, page.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  free(page.chars);
  return status;
}

static int write_pictures(const arguments *a, const report_run *run) {
  ff_error error;
  uint32_t count;
  if (report_figures_write(run, a->svg, &count, &error)) return cli_fail(CLI_FAILED, "%s", error.message);
  if (count == 1)
    cli_fail(0, "%s: holds no history, so only times.svg was written; one is saved by `farfault run -o FILE`", a->file);
  return CLI_DONE;
}

static bool has_lines(const report_run *run) {
  for (uint32_t i = 0; i < run->result_count; i++)
    if (run->results[i].lines_kept) return true;
  return false;
}

int report_page_more(const report_run *run, const char *advice, ff_text *more) {
  ff_error error;
  bool lines = has_lines(run);
  if (lines) {
    ff_text_add(more, "\"sources\":");
    report_html_sources(run, more);
  }
  if (!advice) return CLI_DONE;
  ff_text_add(more, lines ? ",\"advice\":" : "\"advice\":");
  return report_html_advice(advice, more, &error) ? cli_fail(CLI_BAD_FILE, "--advice: %s", error.message) : CLI_DONE;
}

static int of_database(const arguments *a) {
  if (a->stats || a->nsys || a->lines)
    return cli_fail(CLI_USAGE, "%s: %s is the database of a sweep; this is of a run",
                    a->stats   ? "--stats"
                    : a->lines ? "--lines"
                               : "--export-nsys",
                    a->file);
  if (a->svg)
    return cli_fail(CLI_USAGE,
                    "--svg: %s is the database of a sweep; pictures are of a run (--html makes a page of either)",
                    a->file);
  return report_sweep(a->file, a->csv, a->html);
}

/* Prints the table, unless the CSV takes its place. */
static int print_table(const arguments *a, const report_run *run) {
  ff_text table = {0};
  report_table_write(run, &(report_style){.verbose = a->verbose, .lines = a->lines}, &table);
  bool known = !a->stats || report_stats_write(run, &table);
  int status = a->csv && !strcmp(a->csv, "-") ? CLI_DONE : cli_print(&table);
  free(table.chars);
  if (!known)
    status = cli_fail(CLI_USAGE, "--stats: %s holds no history; one is saved by `farfault run -o FILE`", a->file);
  if (a->lines && !has_lines(run))
    status = cli_fail(
        CLI_USAGE,
        "--lines: %s has no lines; `farfault run --lines -o FILE` and `farfault sim --lines -o FILE` keep them",
        a->file);
  return status;
}

static int write_csv(const char *file, const report_run *run) {
  ff_text csv = {0};
  report_columns columns = {0};
  report_columns_add(run, &columns);
  report_csv_write(run, true, &columns, &csv);
  int status = cli_write_or_print(file, &csv) ? CLI_FAILED : CLI_DONE;
  free(csv.chars);
  return status;
}

/* `text`: the run's file, as its page has it. Every output is tried; the status is that of the last that failed. */
static int of_run(const arguments *a, const report_run *run, const char *text, size_t size) {
  ff_error error;
  ff_text more = {0};
  int status = a->html ? report_page_more(run, a->advice, &more) : CLI_DONE;
  if (!status) {
    status = print_table(a, run);
    if (a->csv && write_csv(a->csv, run)) status = CLI_FAILED;
    if (a->html && report_page("run", a->file, more.chars, text, size, a->html)) status = CLI_FAILED;
    if (a->nsys && report_nsys(run, a->file, a->nsys, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
    if (a->svg && write_pictures(a, run)) status = CLI_FAILED;
  }
  free(more.chars);
  return status;
}

static int report(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "RUN|DATABASE",
      "Prints the table of a run that `farfault run -o FILE` (or --json FILE) saved, or of the points of a sweep's database.\v"
      "Example:\n  farfault run -o saxpy.json ./saxpy 1000000\n  farfault report -v saxpy.json\n  farfault report saxpy.json --html saxpy.html --svg pictures\n  farfault report saxpy.json --csv - >saxpy.csv",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  if (a.advice && (!a.html || kind_of_file(a.file) == KIND_DATABASE))
    return cli_fail(CLI_USAGE, "--advice: it is for the page of a run (--html)");
  if (cli_keep_input(a.file, (const char *const[]){a.csv, a.html, a.nsys}, 3) ||
      (a.html && a.advice && cli_keep_input(a.advice, (const char *const[]){a.csv, a.html, a.nsys}, 3)))
    return CLI_USAGE;
  if (kind_of_file(a.file) == KIND_DATABASE) return of_database(&a);
  report_run run;
  ff_error error;
  char *text;
  size_t size;
  if (ff_file_read(a.file, 0, &text, &size, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  int status;
  if (report_json_read(a.file, text, size, &run, &error)) status = cli_fail(CLI_BAD_FILE, "%s", error.message);
  else {
    status = of_run(&a, &run, text, size);
    report_free(&run);
  }
  free(text);
  return status;
}

const cli_command cli_report = {"report", "show a saved run or the results of a sweep: table, page, pictures", report};
