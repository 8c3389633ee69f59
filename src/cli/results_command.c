/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault results FILE`: the points of a sweep's database, as a table, CSV or JSON. */
#include <stdlib.h>

#include "cli/cli.h"
#include "sweep/database.h"

enum { KEY_CSV = 256, KEY_JSON, KEY_WHERE, KEY_COLUMNS };

typedef struct arguments {
  const char *file;
  sweep_query query;
  sweep_format format;
} arguments;

static const struct argp_option options[] = {
    {"csv", KEY_CSV, NULL, 0, "as CSV, every column", 0},
    {"json", KEY_JSON, NULL, 0, "as JSON: a list of objects, one per point", 0},
    {"where", KEY_WHERE, "SQL", 0, "only points for which this SQL condition on the columns holds", 0},
    {"columns", KEY_COLUMNS, "A,B...", 0, "these columns, in this order", 0},
    {0}};

static void parse_format(arguments *a, sweep_format format, struct argp_state *state) {
  if (a->format != SWEEP_TABLE && a->format != format) cli_refuse(state, "either --csv or --json");
  a->format = format;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case KEY_CSV: parse_format(a, SWEEP_CSV, state); return 0;
  case KEY_JSON: parse_format(a, SWEEP_JSON, state); return 0;
  case KEY_WHERE: a->query.where = value; return 0;
  case KEY_COLUMNS: a->query.columns = value; return 0;
  default: return cli_take_file(key, value, &a->file, "file", "`farfault sweep`", state);
  }
}

static int results(int argc, char **argv) {
  static const struct argp argp = {options, parse, "DATABASE",
                                   "Prints the points of a database that `farfault sweep` wrote: what varies, and what it led to.\v"
                                   "Example:\n  farfault results saxpy.db --where \"machine = 'h200' and ratio < 1\"\n"
                                   "  farfault results saxpy.db --columns point,memory,gpu_memory,time_us,faults --csv\n\n"
                                   "The columns are in docs/results-db.md; sqlite3 reads the file, too.",
                                   NULL, NULL, NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  ff_text out = {0};
  ff_error error;
  if (sweep_results_read(a.file, &a.query, a.format, &out, &error))
    return cli_fail(error.status == FF_INVALID || error.status == FF_IO ? CLI_BAD_FILE : CLI_USAGE, "%s", error.message);
  int status = cli_print(&out);
  free(out.chars);
  return status;
}

const cli_command cli_results = {"results", "print the points of a sweep's database", results};
