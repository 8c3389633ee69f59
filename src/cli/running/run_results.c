/* SPDX-License-Identifier: Apache-2.0 */
/* The result files that the program's processes left, one each: "results-PROCESS.json" in the run's temporary folder,
 * "results-PROCESS.2.json" of a program that it exec'ed, "results-rRANK-PROCESS.json" of a rank of mpirun's. One for
 * which the folder had no room is in one of session_other_folders.
 *
 * A file that cannot be read, or is empty (a full disk), is skipped with a message: the others still count. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/running/run.h"
#include "report/stats.h"
#include "session/session.h"

typedef FF_VEC(char *) file_names; /* owned */

static bool is_result(const char *name) {
  size_t length = strlen(name);
  return !strncmp(name, "results-", 8) && length > 5 && !strcmp(name + length - 5, ".json");
}

/* Who left it, from "results-r3-1234.2.json": the numbers that sort it. */
static void read_name(const char *name, unsigned long numbers[3]) {
  char *end = (char *)(uintptr_t)name + strlen("results-");
  numbers[0] = *end == 'r' ? strtoul(end + 1, &end, 10) + 1 : 0;
  numbers[1] = strtoul(*end == '-' ? end + 1 : end, &end, 10);
  numbers[2] = end[0] == '.' && end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, NULL, 10) : 1;
}

/* By rank (those that are none first), then by process number, then by the number that follows it (1 is not
 * written). */
static int by_process(const void *a, const void *b) {
  unsigned long first[3], second[3];
  read_name(*(char *const *)a, first);
  read_name(*(char *const *)b, second);
  for (int i = 0; i < 3; i++)
    if (first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
  return 0;
}

/* Where the file was written when there was no room for it; NULL: in its folder. The caller frees it. */
static char *found_elsewhere(const char *path) {
  for (int i = 0; session_other_folders[i]; i++) {
    char *other = session_elsewhere(path, session_other_folders[i]);
    if (other && access(other, R_OK) == 0) return other;
    free(other);
  }
  return NULL;
}

/* What stands elsewhere is newer than what may be in the folder from before. Whether there is such a file. */
static bool take_from_elsewhere(const char *folder, ff_text *path) {
  char *other = found_elsewhere(path->chars);
  if (!other) return false;
  cli_fail(0, "%s has no room for the results: they went through %.*s", folder, (int)(strrchr(other, '/') - other),
           other);
  free(path->chars);
  *path = (ff_text){0};
  ff_text_add(path, "%s", other);
  free(other);
  return true;
}

void run_results_add(run_results *results, const report_run *run) {
  results->runs = ff_realloc(results->runs, (results->count + 1) * sizeof *results->runs);
  results->runs[results->count++] = *run;
}

static void read_one(const char *folder, const char *name, run_results *results) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  bool elsewhere = take_from_elsewhere(folder, &path);
  report_run run;
  ff_error error;
  struct stat info;
  if (stat(path.chars, &info) == 0 && !info.st_size) {
    cli_fail(0,
             "a process of the program could not write its results to %s: is the disk full? (TMPDIR chooses another)",
             folder);
    results->lost++;
  } else if (report_file_read(path.chars, &run, &error)) {
    cli_fail(0, "%s", error.message);
    results->lost++;
  } else {
    run_results_add(results, &run);
  }
  if (elsewhere) unlink(path.chars);
  free(path.chars);
}

/* Adds the names of results in the folder: those that begin with `prefix`, without it. */
static void find_names(const char *folder, const char *prefix, file_names *names) {
  DIR *dir = opendir(folder);
  size_t length = strlen(prefix);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    if (strncmp(entry->d_name, prefix, length) || !is_result(entry->d_name + length)) continue;
    const char *name = entry->d_name + length;
    bool known = false;
    for (size_t i = 0; i < names->count; i++) known = known || !strcmp(names->items[i], name);
    if (!known) FF_PUSH(names, ff_strdup(name));
  }
  if (dir) closedir(dir);
}

void run_results_read(const char *folder, run_results *results) {
  *results = (run_results){0};
  file_names names = {0};
  ff_text prefix = {0};
  ff_text_add(&prefix, "%s-", strrchr(folder, '/') + 1); /* a folder of run_make_folder */
  find_names(folder, "", &names);
  for (int i = 0; session_other_folders[i]; i++) find_names(session_other_folders[i], prefix.chars, &names);
  if (names.count) qsort(names.items, names.count, sizeof *names.items, by_process);
  for (size_t i = 0; i < names.count; i++) {
    read_one(folder, names.items[i], results);
    free(names.items[i]);
  }
  free(names.items);
  free(prefix.chars);
}

void run_results_peek(const char *folder, run_results *results) {
  *results = (run_results){0};
  file_names names = {0};
  find_names(folder, "", &names);
  if (names.count) qsort(names.items, names.count, sizeof *names.items, by_process);
  for (size_t i = 0; i < names.count; i++) {
    ff_text path = {0};
    report_run run;
    ff_text_add(&path, "%s/%s", folder, names.items[i]);
    if (!report_file_read(path.chars, &run, NULL)) run_results_add(results, &run);
    free(path.chars);
    free(names.items[i]);
  }
  free(names.items);
}

/* Whether a process did nothing that has a time: a framework's helpers open the GPU and leave it alone. */
static bool is_idle(const report_run *run) {
  bool idle = run->complete && !run->note_count && !run->host.launches;
  for (uint32_t i = 0; i < run->result_count; i++)
    idle = idle && !run->results[i].error[0] && !run->results[i].counters.launches && !run->results[i].counters.time_ps;
  return idle;
}

/* A reader that has gone has seen enough, and who closes stderr wants no table. */
static bool print(const ff_text *text, FILE *to) {
  signal(SIGPIPE, SIG_IGN);
  bool good = !text->length || fwrite(text->chars, 1, text->length, to) == text->length;
  if (fflush(to)) good = false;
  if (good || errno == EPIPE || (errno == EBADF && to == stderr)) return true;
  return cli_fail(false, "cannot write the table: %s", strerror(errno));
}

bool run_results_print(const run_job *job, const run_results *results, FILE *to) {
  if (job->outputs->quiet) return true;
  ff_text text = {0};
  uint32_t idle = 0;
  for (uint32_t i = 0; i < results->count; i++) idle += is_idle(&results->runs[i]);
  bool all = job->outputs->verbose || idle == results->count;
  for (uint32_t i = 0; i < results->count; i++) {
    if (!all && is_idle(&results->runs[i])) continue;
    if (text.length) ff_text_add(&text, "\n");
    report_table_write(&results->runs[i],
                       &(report_style){.verbose = job->outputs->verbose, .lines = job->outputs->lines}, &text);
    if (job->outputs->stats) report_stats_write(&results->runs[i], &text);
  }
  if (!all && idle)
    ff_text_add(&text,
                "(%" PRIu32 " more process%s of the program opened the GPU and launched nothing; --verbose shows %s)\n",
                idle, idle > 1 ? "es" : "", idle > 1 ? "them" : "it");
  if (!job->setup->machine_chosen)
    ff_text_add(&text, "(" MACHINE_DEFAULT " is the default machine; --machine chooses another)\n");
  ff_text shown = {0};
  cli_wrap(text.chars ? text.chars : "", cli_text_width(fileno(to)), 0, &shown);
  bool good = print(&shown, to);
  free(shown.chars);
  free(text.chars);
  return good;
}

void run_results_free(run_results *results) {
  for (uint32_t i = 0; i < results->count; i++) report_free(&results->runs[i]);
  free(results->runs);
  *results = (run_results){0};
}
