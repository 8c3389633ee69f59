/* SPDX-License-Identifier: Apache-2.0 */
/* The result files that the program's processes left, one each: "results-PROCESS.json" in the run's temporary folder,
 * "results-PROCESS.2.json" of a program that it exec'ed, "results-rRANK-PROCESS.json" of a rank of mpirun's.
 *
 * A file that cannot be read, or is empty (a full disk), is skipped with a message: the others still count. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "cli/run.h"
#include "study/session.h"

static int is_result(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return !strncmp(entry->d_name, "results-", 8) && length > 5 && !strcmp(entry->d_name + length - 5, ".json");
}

/* Who left it, from "results-r3-1234.2.json": the numbers that sort it. */
static void read_name(const char *name, unsigned long numbers[3]) {
  char *end = (char *)(uintptr_t)name + strlen("results-");
  numbers[0] = *end == 'r' ? strtoul(end + 1, &end, 10) + 1 : 0;
  numbers[1] = strtoul(*end == '-' ? end + 1 : end, &end, 10);
  numbers[2] = end[0] == '.' && end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, NULL, 10) : 1;
}

/* By rank (those that are none first), then by process number, then by the number that follows it (1 is not written). */
static int by_process(const struct dirent **a, const struct dirent **b) {
  unsigned long first[3], second[3];
  read_name((*a)->d_name, first);
  read_name((*b)->d_name, second);
  for (int i = 0; i < 3; i++)
    if (first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
  return 0;
}

static void read_one(const char *folder, const char *name, run_results *results) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  report_run run;
  ff_error error;
  struct stat info;
  if (stat(path.chars, &info) == 0 && !info.st_size) {
    cli_fail(0, "a process of the program could not write its results to %s: is the disk full? (TMPDIR chooses another)", folder);
    results->lost++;
  } else if (report_file_read(path.chars, &run, &error)) {
    cli_fail(0, "%s", error.message);
    results->lost++;
  } else {
    results->runs = ff_realloc(results->runs, (results->count + 1) * sizeof *results->runs);
    results->runs[results->count++] = run;
  }
  free(path.chars);
}

void run_results_read(const char *folder, run_results *results) {
  *results = (run_results){0};
  struct dirent **entries;
  int count = scandir(folder, &entries, is_result, by_process);
  for (int i = 0; i < count; i++) {
    read_one(folder, entries[i]->d_name, results);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

void run_results_print(const run_job *job, const run_results *results, FILE *to) {
  ff_text text = {0};
  for (uint32_t i = 0; i < results->count; i++) {
    if (i) ff_text_add(&text, "\n");
    report_table_write(&results->runs[i], &(report_style){.verbose = job->outputs->verbose}, &text);
  }
  if (!job->setup->machine_chosen)
    ff_text_add(&text, "(" SESSION_DEFAULT_MACHINE " is the default machine; --machine chooses another)\n");
  fwrite(text.chars, 1, text.length, to);
  free(text.chars);
}

void run_results_free(run_results *results) {
  for (uint32_t i = 0; i < results->count; i++) report_free(&results->runs[i]);
  free(results->runs);
  *results = (run_results){0};
}
