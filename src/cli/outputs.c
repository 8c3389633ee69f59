/* SPDX-License-Identifier: Apache-2.0 */
/* The files that `farfault run` writes: -o (with the history), --json (without) and --csv.
 *
 * What always holds: what can be known to fail is refused before the program runs - no name, a folder, nowhere to write,
 * the program itself, two reports in one file; a file is written whole or not at all. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/run.h"

/* The folder of a file that does not exist yet; the caller frees it. */
static char *folder_of(const char *path) {
  char *folder = ff_strdup(path);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = '\0';
  else strcpy(folder, "."); /* the name is not empty */
  return folder;
}

static ff_status check_one(const char *option, const char *path, ff_error *error) {
  struct stat info;
  if (!path) return FF_OK;
  if (!*path) return ff_fail(error, FF_INVALID, "%s: the file's name is empty", option);
  if (!strcmp(path, "-")) return ff_fail(error, FF_INVALID, "%s -: write /dev/stdout (or ./- for a file of that name)", option);
  if (path[strlen(path) - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
    return ff_fail(error, FF_IO, "%s: cannot write there: it is a folder", path);
  if (access(path, W_OK) == 0) return FF_OK;
  if (errno != ENOENT) return ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  char *folder = folder_of(path);
  ff_status status = FF_OK;
  if (access(folder, W_OK)) status = ff_fail(error, FF_IO, "%s: cannot write there: %s", path, strerror(errno));
  free(folder);
  return status;
}

/* The file's one absolute name, whether it exists or not; NULL for devices and pipes, which may be named twice. The
 * caller frees it. */
static char *one_name(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0) return S_ISREG(info.st_mode) ? realpath(path, NULL) : NULL;
  char *folder = folder_of(path), *real = realpath(folder, NULL);
  const char *slash = strrchr(path, '/');
  ff_text name = {0};
  if (real) ff_text_add(&name, "%s/%s", real, slash ? slash + 1 : path);
  free(folder);
  free(real);
  return name.chars;
}

static bool same_file(const char *a, const char *b) {
  if (!a || !b) return false;
  char *first = one_name(a), *second = one_name(b);
  bool same = first && second && !strcmp(first, second);
  free(first);
  free(second);
  return same;
}

static ff_status fail_same(const char *path, const char *what, ff_error *error) {
  return ff_fail(error, FF_INVALID, "%s: is %s: the report would take its place", path, what);
}

ff_status run_outputs_check(const run_outputs *outputs, const char *input, const char *what, const char *machine, ff_error *error) {
  ff_status status = check_one("-o", outputs->output, error);
  if (!status) status = check_one("--json", outputs->json, error);
  if (!status) status = check_one("--csv", outputs->csv, error);
  if (!status) status = check_one("the trace", outputs->record, error);
  if (status) return status;
  const char *paths[] = {outputs->output, outputs->json, outputs->csv, outputs->record};
  for (int i = 0; i < 4; i++) {
    if (same_file(paths[i], input)) return fail_same(paths[i], what, error);
    if (same_file(paths[i], machine)) return fail_same(paths[i], "the machine's file", error);
  }
  if (same_file(outputs->csv, outputs->output) || same_file(outputs->csv, outputs->json))
    return ff_fail(error, FF_INVALID, "%s: is named twice: CSV and JSON need a file each", outputs->csv);
  for (int i = 0; i < 3; i++)
    if (same_file(outputs->record, paths[i])) return ff_fail(error, FF_INVALID, "%s: is named twice: a trace and a report need a file each", paths[i]);
  return FF_OK;
}

/* FILE for the first process, FILE.2, FILE.3 for further ones. */
static ff_status write_json(const char *path, bool history, const run_results *results, ff_error *error) {
  for (uint32_t i = 0; path && i < results->count; i++) {
    ff_text name = {0}, text = {0};
    ff_text_add(&name, "%s", path);
    if (i) ff_text_add(&name, ".%u", i + 1);
    (history ? report_json_write_whole : report_json_write)(&results->runs[i], &text);
    ff_status status = ff_file_write(name.chars, text.chars, text.length, error);
    free(name.chars);
    free(text.chars);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status write_csv(const char *path, const run_results *results, ff_error *error) {
  if (!path) return FF_OK;
  ff_text text = {0};
  bool stacks = false;
  for (uint32_t i = 0; i < results->count; i++) stacks = stacks || report_has_stacks(&results->runs[i]);
  for (uint32_t i = 0; i < results->count; i++) report_csv_write(&results->runs[i], i == 0, stacks, &text);
  ff_status status = ff_file_write(path, text.chars, text.length, error);
  free(text.chars);
  return status;
}

bool run_outputs_write(const run_outputs *outputs, const run_results *results) {
  ff_error error;
  bool good = true;
  if (write_json(outputs->json, false, results, &error)) good = cli_fail(false, "%s", error.message);
  if (write_json(outputs->output, true, results, &error)) good = cli_fail(false, "%s", error.message); /* last: it may be the same file */
  if (write_csv(outputs->csv, results, &error)) good = cli_fail(false, "%s", error.message);
  return good;
}
