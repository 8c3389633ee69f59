/* SPDX-License-Identifier: Apache-2.0 */
/* The result files that the program's processes left, one each: "results-PROCESS.json" in the run's temporary folder.
 *
 * A file that cannot be read (a full disk) is skipped with a message: the others still count. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/run.h"

static int by_process(const void *a, const void *b) {
  uint64_t first = ((const report_run *)a)->host.process, second = ((const report_run *)b)->host.process;
  return first < second ? -1 : first > second;
}

static bool is_result(const char *name) {
  size_t length = strlen(name);
  return !strncmp(name, "results-", 8) && length > 5 && !strcmp(name + length - 5, ".json");
}

void run_results_read(const char *folder, run_results *results) {
  *results = (run_results){0};
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && (entry = readdir(dir))) {
    if (!is_result(entry->d_name)) continue;
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", folder, entry->d_name);
    report_run run;
    ff_error error;
    if (report_file_read(path.chars, &run, &error)) {
      cli_fail(0, "%s", error.message);
    } else {
      results->runs = ff_realloc(results->runs, (results->count + 1) * sizeof *results->runs);
      results->runs[results->count++] = run;
    }
    free(path.chars);
  }
  if (dir) closedir(dir);
  if (results->count) qsort(results->runs, results->count, sizeof *results->runs, by_process);
}

void run_results_free(run_results *results) {
  for (uint32_t i = 0; i < results->count; i++) report_free(&results->runs[i]);
  free(results->runs);
  *results = (run_results){0};
}
