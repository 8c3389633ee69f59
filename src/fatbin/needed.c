/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a file needs (needed.h). */
#include "fatbin/needed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static bool has(const needed_files *files, const char *text) {
  size_t at = 0;
  while (at < files->count && strcmp(files->items[at], text) != 0) at++;
  return at < files->count;
}

void needed_files_add(needed_files *files, const char *text) {
  if (!has(files, text)) FF_PUSH(files, ff_strdup(text));
}

void needed_files_free(needed_files *files) {
  for (size_t i = 0; i < files->count; i++) free(files->items[i]);
  free(files->items);
  memset(files, 0, sizeof *files);
}

static char *file_below(const char *folder, int length, const char *name) {
  ff_text path = {0};
  ff_text_add(&path, "%.*s/%s", length, folder, name);
  if (access(path.chars, R_OK) == 0) return path.chars;
  free(path.chars);
  return NULL;
}

/* "$ORIGIN/../lib" of the file PATH. */
static char *expand(const char *path, const char *folder, int length) {
  static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
  const char *end = strrchr(path, '/');
  ff_text expanded = {0};
  for (size_t i = 0; i < 2; i++) {
    int skipped = (int)strlen(origins[i]);
    if (length < skipped || strncmp(folder, origins[i], (size_t)skipped) != 0) continue;
    ff_text_add(&expanded, "%.*s%.*s", end ? (int)(end - path) : 1, end ? path : ".", length - skipped,
                folder + skipped);
    return expanded.chars;
  }
  ff_text_add(&expanded, "%.*s", length, folder);
  return expanded.chars;
}

/* The file of that name in a list of folders that belongs to the file `path`; NULL: none. The caller frees it. */
static char *find_in(const char *path, const char *folders, const char *name) {
  char *found = NULL;
  while (folders && *folders && !found) {
    int length = (int)strcspn(folders, ":");
    char *folder = expand(path, folders, length);
    found = file_below(folder, (int)strlen(folder), name);
    free(folder);
    folders += length + (folders[length] == ':');
  }
  return found;
}

static char *find_needed(const char *path, const fatbin_report *file, const char *name) {
  if (strchr(name, '/')) return ff_strdup(name);
  char *found = file->runpath ? NULL : find_in(path, file->rpath, name);
  if (!found) found = find_in(path, getenv("LD_LIBRARY_PATH"), name);
  return found ? found : find_in(path, file->runpath, name);
}

static void look_at(const char *path, needed_files *seen, needed_each *each, void *context) {
  fatbin_report file;
  if (fatbin_check_links(path, &file, NULL)) return;
  for (uint32_t i = 0; i < file.needed_count; i++) {
    if (!each(context, &file, file.needed[i])) continue;
    char *found = find_needed(path, &file, file.needed[i]);
    if (found) needed_files_add(seen, found);
    free(found);
  }
  fatbin_report_free(&file);
}

void needed_walk(const char *path, needed_files *seen, needed_each *each, void *context) {
  size_t next = seen->count;
  needed_files_add(seen, path);
  for (; next < seen->count; next++) look_at(seen->items[next], seen, each, context);
}
