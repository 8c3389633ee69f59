/* SPDX-License-Identifier: Apache-2.0 */
/* The files that `farfault run` writes: -o (with the history), --json (without) and --csv.
 *
 * What can be known to fail is refused before the program runs - no name, a folder, nowhere to
 * write, the program itself, two reports in one file; a file is written whole or not at all. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/rank.h"
#include "cli/running/fail_if.h"
#include "cli/running/run.h"

static ff_status check_one(const char *path, ff_error *error) { return path ? ff_output_check(path, error) : FF_OK; }

static ff_status fail_same(const char *path, const char *what, ff_error *error) {
  return ff_fail(error, FF_INVALID, "%s: is %s: the report would take its place", path, what);
}

/* A file that is written again and again has to be one. */
static ff_status check_live(const run_outputs *outputs, ff_error *error) {
  if (!outputs->live) return FF_OK;
  if (!outputs->output) return ff_fail(error, FF_INVALID, "--live: into which file? -o FILE says it");
  char *target = ff_output_target(outputs->output);
  bool file = target != NULL;
  free(target);
  return file ? FF_OK : ff_fail(error, FF_INVALID, "--live: %s is not a file that can be replaced", outputs->output);
}

ff_status run_outputs_check(const run_outputs *outputs, const char *input, const char *what, const char *machine,
                            ff_error *error) {
  ff_status status = check_one(outputs->output, error);
  if (!status) status = check_one(outputs->json, error);
  if (!status) status = check_one(outputs->csv, error);
  if (!status) status = check_one(outputs->junit, error);
  if (!status) status = check_one(outputs->record, error);
  if (!status) status = check_live(outputs, error);
  if (status) return status;
  const char *paths[] = {outputs->output, outputs->json, outputs->csv, outputs->junit, outputs->record};
  for (int i = 0; i < 5; i++) {
    if (ff_output_same(paths[i], input)) return fail_same(paths[i], what, error);
    if (outputs->conditions && ff_output_same(paths[i], outputs->conditions->baseline))
      return fail_same(paths[i], "the baseline", error);
    if (ff_output_same(paths[i], machine)) return fail_same(paths[i], "the machine's file", error);
  }
  if (ff_output_same(outputs->csv, outputs->output) || ff_output_same(outputs->csv, outputs->json))
    return ff_fail(error, FF_INVALID, "%s: is named twice: CSV and JSON need a file each", outputs->csv);
  for (int i = 0; i < 3; i++)
    if (ff_output_same(outputs->junit, paths[i]))
      return ff_fail(error, FF_INVALID, "%s: is named twice: verdicts and a report need a file each", paths[i]);
  for (int i = 0; i < 4; i++)
    if (ff_output_same(outputs->record, paths[i]))
      return ff_fail(error, FF_INVALID, "%s: is named twice: a trace and a report need a file each", paths[i]);
  return FF_OK;
}

char *run_output_name(const run_outputs *outputs, const char *path, uint32_t process) {
  char *target = process ? ff_output_target(path) : NULL;
  ff_text name = {0};
  ff_text_add(&name, "%s", path);
  if (target) ff_text_add(&name, outputs->rank == 1 ? ".1.%u" : ".%u", process + 1);
  free(target);
  return name.chars;
}

static char *of_rank(const char *path, int rank) {
  char *target = path && *path ? ff_output_target(path) : NULL;
  ff_text name = {0};
  if (path) ff_text_add(&name, "%s", path);
  if (target && rank > 0) ff_text_add(&name, ".%d", rank + 1);
  free(target);
  return name.chars;
}

void run_outputs_of_rank(const run_outputs *outputs, run_outputs *own) {
  int rank = ff_rank();
  *own = (run_outputs){.output = of_rank(outputs->output, rank),
                       .json = of_rank(outputs->json, rank),
                       .csv = of_rank(outputs->csv, rank),
                       .record = of_rank(outputs->record, rank),
                       .junit = of_rank(outputs->junit, rank),
                       .conditions = outputs->conditions,
                       .verbose = outputs->verbose,
                       .quiet = outputs->quiet,
                       .live = outputs->live,
                       .lines = outputs->lines,
                       .stats = outputs->stats,
                       .profile_range = outputs->profile_range,
                       .profile_nvtx = outputs->profile_nvtx,
                       .rank = rank + 1};
}

void run_outputs_free(run_outputs *own) {
  free((char *)(uintptr_t)own->output);
  free((char *)(uintptr_t)own->json);
  free((char *)(uintptr_t)own->csv);
  free((char *)(uintptr_t)own->record);
  free((char *)(uintptr_t)own->junit);
}

/* A file for each process; into a device or a pipe all of them, one behind the other. */
static ff_status write_json(const run_outputs *outputs, const char *path, bool history, const run_results *results,
                            ff_error *error) {
  ff_text text = {0};
  ff_status status = FF_OK;
  char *target = path ? ff_output_target(path) : NULL;
  for (uint32_t i = 0; path && !status && i < results->count; i++) {
    (history ? report_json_write_whole : report_json_write)(&results->runs[i], &text);
    if (!target && i + 1 < results->count) continue;
    char *name = run_output_name(outputs, path, i);
    status = ff_file_write(name, text.chars, text.length, error);
    text.length = 0;
    free(name);
  }
  free(text.chars);
  free(target);
  return status;
}

static ff_status write_csv(const char *path, const run_results *results, ff_error *error) {
  if (!path) return FF_OK;
  ff_text text = {0};
  report_columns columns = {0};
  for (uint32_t i = 0; i < results->count; i++) report_columns_add(&results->runs[i], &columns);
  for (uint32_t i = 0; i < results->count; i++) report_csv_write(&results->runs[i], i == 0, &columns, &text);
  ff_status status = ff_file_write(path, text.chars, text.length, error);
  free(text.chars);
  return status;
}

ff_status run_outputs_write_live(const run_outputs *outputs, run_results *results, ff_error *error) {
  for (uint32_t i = 0; i < results->count; i++) results->runs[i].running = (uint64_t)getpid();
  return write_json(outputs, outputs->output, true, results, error);
}

/* A program that ended before it could write what happened when: only the last snapshot of its numbers is left. */
static void note_missing_history(const run_outputs *outputs, const run_results *results) {
  for (uint32_t i = 0; outputs->output && i < results->count; i++) {
    bool missing = false;
    for (uint32_t k = 0; k < results->runs[i].result_count; k++) {
      const sim_result *result = &results->runs[i].results[k];
      missing = missing || (!result->complete && !result->error[0] && !result->history);
    }
    if (!missing) continue;
    char *name = run_output_name(outputs, outputs->output, i);
    cli_fail(0,
             "%s has no history of what happened when: the program ended before it was written; a single Ctrl-C "
             "(SIGINT) or SIGTERM, and a smaller problem, leave it more time",
             name);
    free(name);
  }
}

bool run_outputs_write(const run_outputs *outputs, const run_results *results) {
  ff_error error;
  bool good = true;
  if (write_json(outputs, outputs->json, false, results, &error)) good = cli_fail(false, "%s", error.message);
  /* last: it may be the same file */
  if (write_json(outputs, outputs->output, true, results, &error)) good = cli_fail(false, "%s", error.message);
  else note_missing_history(outputs, results);
  if (write_csv(outputs->csv, results, &error)) good = cli_fail(false, "%s", error.message);
  return good;
}
