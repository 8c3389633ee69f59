/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault results FILE`: the points of a sweep's database, as a table, CSV or JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sweep/database.h"

enum { KEY_CSV = 256, KEY_JSON, KEY_WHERE, KEY_COLUMNS };

typedef struct arguments {
  const char *file;
  sweep_query query;
  const char *csv, *json; /* "-": instead of the table */
} arguments;

static const struct argp_option options[] = {
    {"csv", KEY_CSV, "FILE", 0, "write every column as CSV; -: to stdout instead of the table", 0},
    {"json", KEY_JSON, "FILE", 0, "write a list of objects, one per point, as JSON; -: to stdout instead of the table",
     0},
    {"where", KEY_WHERE, "SQL", 0, "only points for which this SQL condition on the columns holds", 0},
    {"columns", KEY_COLUMNS, "A,B...", 0, "these columns, in this order", 0},
    {0}};

static bool is_stdout(const char *file) { return file && !strcmp(file, "-"); }

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case KEY_CSV: a->csv = cli_output(value, "--csv", true, state); return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_WHERE: a->query.where = value; return 0;
  case KEY_COLUMNS: a->query.columns = value; return 0;
  case ARGP_KEY_END:
    if (!a->file) a->file = cli_old_argument("--json", &a->json, state);
    if (!a->file) a->file = cli_old_argument("--csv", &a->csv, state);
    if (is_stdout(a->csv) && is_stdout(a->json)) cli_refuse(state, "--csv - and --json - both write to stdout");
    return cli_take_file(key, value, &a->file, KIND_DATABASE, state);
  default: return cli_take_file(key, value, &a->file, KIND_DATABASE, state);
  }
}

static int put(const arguments *a, sweep_format format, const char *file) {
  ff_text out = {0};
  ff_error error;
  if (sweep_results_read(a->file, &a->query, format, &out, &error))
    return cli_fail(error.status == FF_INVALID || error.status == FF_IO ? CLI_BAD_FILE : CLI_USAGE, "%s",
                    error.message);
  int status = cli_write_or_print(file, &out);
  free(out.chars);
  return status;
}

static int results(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "DATABASE",
      "Prints the points of a database that `farfault sweep` wrote: what varies, and what it led to.\v"
      "Example:\n  farfault results saxpy.db --where \"machine = 'h200' and ratio < 1\"\n"
      "  farfault results saxpy.db --columns point,memory,gpu_memory,time_us,faults --csv -\n\n"
      "The columns are in docs/results-db.md; sqlite3 reads the file, too.",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_old_flag("--json", &argc, &argv);
  cli_old_flag("--csv", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  if (cli_keep_input(a.file, (const char *const[]){a.csv, a.json}, 2)) return CLI_USAGE;
  int status = is_stdout(a.csv) || is_stdout(a.json) ? CLI_DONE : put(&a, SWEEP_TABLE, "-");
  if (a.csv && !status) status = put(&a, SWEEP_CSV, a.csv);
  if (a.json && !status) status = put(&a, SWEEP_JSON, a.json);
  return status;
}

const cli_command cli_results = {"results", "print the points of a sweep's database", results};
