/* SPDX-License-Identifier: Apache-2.0 */
/* Which of our libraries must be loaded by name. LD_LIBRARY_PATH, where they stand first, comes after the RPATH of a
 * file that has no RUNPATH (ld.so(8)); a file whose RPATH leads to NVIDIA's libcudart would have that one, be it the
 * program or a library that the program is linked with. One that is loaded by then is taken in its place. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/running/run.h"
#include "fatbin/needed.h"

typedef struct search {
  const char *libraries; /* our folder */
  needed_files names;    /* of our libraries that must be loaded */
} search;

static bool is_ours(const search *all, const char *name) {
  if (strncmp(name, "libcudart.so.", 13) != 0 && strcmp(name, "libcuda.so.1") != 0) return false;
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", all->libraries, name);
  bool found = access(path.chars, R_OK) == 0;
  free(path.chars);
  return found;
}

static bool look_at(void *context, const fatbin_report *file, const char *name) {
  search *all = context;
  if (!is_ours(all, name)) return true;
  if (file->rpath && !file->runpath) needed_files_add(&all->names, name);
  return false;
}

char *run_needed_libraries(const char *program, const char *libraries) {
  search all = {.libraries = libraries};
  needed_files seen = {0};
  ff_text preload = {0};
  needed_walk(program, &seen, look_at, &all);
  for (size_t i = 0; i < all.names.count; i++)
    ff_text_add(&preload, "%s%s/%s", i ? " " : "", libraries, all.names.items[i]);
  needed_files_free(&seen);
  needed_files_free(&all.names);
  return preload.chars;
}
