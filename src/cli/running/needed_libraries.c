/* SPDX-License-Identifier: Apache-2.0 */
/* Which of our libraries must be loaded by name. LD_LIBRARY_PATH, where they stand first, comes after the RPATH of a
 * file that has no RUNPATH (ld.so(8)); a file whose RPATH leads to NVIDIA's libcudart would have that one, be it the
 * program or a library that the program is linked with. One that is loaded by then is taken in its place.
 *
 * Files are looked for in RPATH, LD_LIBRARY_PATH and RUNPATH; those in the system's own folders are not followed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/running/run.h"
#include "fatbin/elf.h"

typedef FF_VEC(char *) path_list;

typedef struct search {
  const char *libraries; /* our folder */
  path_list seen;        /* files that were looked at, or will be */
  path_list names;       /* of our libraries that must be loaded */
} search;

static bool has(const path_list *list, const char *text) {
  size_t at = 0;
  while (at < list->count && strcmp(list->items[at], text) != 0) at++;
  return at < list->count;
}

static void add_once(path_list *list, const char *text) {
  if (!has(list, text)) FF_PUSH(list, ff_strdup(text));
}

static void free_list(path_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
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

static bool is_ours(const search *all, const char *name) {
  if (strncmp(name, "libcudart.so.", 13) != 0 && strcmp(name, "libcuda.so.1") != 0) return false;
  char *path = file_below(all->libraries, (int)strlen(all->libraries), name);
  free(path);
  return path != NULL;
}

static void look_at(search *all, const char *path) {
  fatbin_report file;
  if (fatbin_check_links(path, &file, NULL)) return;
  for (uint32_t i = 0; i < file.needed_count; i++) {
    const char *name = file.needed[i];
    if (is_ours(all, name)) {
      if (file.rpath && !file.runpath) add_once(&all->names, name);
      continue;
    }
    char *found = find_needed(path, &file, name);
    if (found) add_once(&all->seen, found);
    free(found);
  }
  fatbin_report_free(&file);
}

char *run_needed_libraries(const char *program, const char *libraries) {
  search all = {.libraries = libraries};
  ff_text preload = {0};
  FF_PUSH(&all.seen, ff_strdup(program));
  for (size_t i = 0; i < all.seen.count; i++) look_at(&all, all.seen.items[i]);
  for (size_t i = 0; i < all.names.count; i++)
    ff_text_add(&preload, "%s%s/%s", i ? " " : "", libraries, all.names.items[i]);
  free_list(&all.seen);
  free_list(&all.names);
  return preload.chars;
}
