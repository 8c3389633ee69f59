/* SPDX-License-Identifier: Apache-2.0 */
/* The places, in order; the first that has the file is taken. Links are followed before a folder is taken for the
 * file's own. */
#define _GNU_SOURCE /* dladdr, secure_getenv */
#include "base/installed.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

typedef struct search {
  const char *name;
  int mode;
  char *path;
  size_t room;
} search;

static bool is_there(const search *s, const char *folder, const char *below) {
  int length = snprintf(s->path, s->room, "%s/%s%s", folder, below, s->name);
  return length > 0 && (size_t)length < s->room && access(s->path, s->mode) == 0;
}

static bool is_next_to(const search *s, const char *module, const char *below) {
  char real[PATH_MAX];
  if (!module || !realpath(module, real)) return false;
  *strrchr(real, '/') = '\0';
  return is_there(s, real, below);
}

/* The shell's way to the program farfault. */
static bool on_path(const search *s, const char *folders) {
  bool found = false;
  char *list = ff_strdup(folders ? folders : ""), *rest = NULL;
  for (char *folder = strtok_r(list, ":", &rest); folder && !found; folder = strtok_r(NULL, ":", &rest)) {
    char program[PATH_MAX];
    int length = snprintf(program, sizeof program, "%s/farfault", folder);
    if (length > 0 && (size_t)length < sizeof program && access(program, X_OK) == 0)
      found = is_next_to(s, program, "../lib/farfault/");
  }
  free(list);
  return found;
}

bool ff_find_installed(const char *name, int mode, void *inside, const char *folder, bool secure, char *path,
                       size_t room) {
  static const char *const below[] = {"farfault/", "../lib/farfault/", "", "../../lib/farfault/"};
  search s = {name, mode, path, room};
  Dl_info info;
  const char *modules[] = {dladdr(inside, &info) ? info.dli_fname : NULL, "/proc/self/exe"};
  for (size_t m = 0; m < 2; m++)
    for (size_t b = 0; b < sizeof below / sizeof *below; b++)
      if (is_next_to(&s, modules[m], below[b])) return true;
  return on_path(&s, secure ? secure_getenv("PATH") : getenv("PATH")) || (folder && is_there(&s, folder, ""));
}
