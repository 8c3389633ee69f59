/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault report` of a sweep's database: what `farfault results` shows, and a page of it. The page holds the columns
 * of the view `results` of at most PAGE_POINTS points and says so if there are more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands/report_command.h"
#include "sweep/database.h"

enum { PAGE_POINTS = 5000 }; /* some 10 MB of JSON */

/* How many points there are. */
static ff_status count_points(const char *file, uint64_t *count, ff_error *error) {
  ff_text list = {0};
  ff_status status = sweep_results_read(file, &(sweep_query){.columns = "point"}, SWEEP_CSV, &list, error);
  uint64_t lines = 0;
  for (size_t i = 0; i < list.length; i++) lines += list.chars[i] == '\n';
  *count = lines ? lines - 1 : 0;
  free(list.chars);
  return status;
}

/* The page's data: {"total": points there are, "points": the first of them}. */
static ff_status page_data(const char *option, const char *file, ff_text *json, ff_error *error) {
  char first[96];
  uint64_t total;
  ff_status status = count_points(file, &total, error);
  if (status) return status;
  ff_text_add(json, "{\"total\": %llu, \"points\": ", (unsigned long long)total);
  snprintf(first, sizeof first, "point IN (SELECT point FROM points ORDER BY point LIMIT %d)", PAGE_POINTS);
  status = sweep_results_read(file, &(sweep_query){.where = first}, SWEEP_JSON, json, error);
  ff_text_add(json, "}");
  if (!status && total > PAGE_POINTS)
    cli_fail(CLI_DONE,
             "%sthe page holds the first %d of %llu points (`farfault results --where ... --csv -` gives the others)",
             option, PAGE_POINTS, (unsigned long long)total);
  return status;
}

int report_sweep_data(const char *option, const char *file, ff_text *json) {
  ff_error error;
  return page_data(option, file, json, &error) ? cli_fail(CLI_BAD_FILE, "%s", error.message) : CLI_DONE;
}

static int write_page(const char *file, const char *html) {
  ff_text json = {0};
  int status = report_sweep_data("--html: ", file, &json);
  if (!status) status = report_page("results", file, NULL, json.chars, json.length, html);
  free(json.chars);
  return status;
}

static int write_csv(const char *file, const char *path) {
  ff_text csv = {0};
  ff_error error;
  ff_status status = sweep_results_read(file, &(sweep_query){0}, SWEEP_CSV, &csv, &error);
  int result = status ? cli_fail(CLI_FAILED, "%s", error.message) : cli_write_or_print(path, &csv);
  free(csv.chars);
  return result;
}

int report_sweep(const char *file, const char *csv, const char *html) {
  ff_text table = {0};
  ff_error error;
  if (sweep_results_read(file, &(sweep_query){0}, SWEEP_TABLE, &table, &error)) {
    free(table.chars);
    return cli_fail(CLI_BAD_FILE, "%s", error.message);
  }
  int status = csv && !strcmp(csv, "-") ? CLI_DONE : cli_print(&table), failed;
  free(table.chars);
  if (csv && (failed = write_csv(file, csv))) status = failed;
  if (html && (failed = write_page(file, html))) status = failed;
  return status;
}
