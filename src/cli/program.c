/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the program before it runs: is it there, may it be executed, can its GPU code run here?
 *
 * What always holds: a program is refused only if it certainly cannot work on the virtual GPU; anything else is left to
 * run and to fail by itself. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/run.h"

char *run_libraries(void) {
  char *folder = cli_own_folder();
  ff_text path = {0};
  ff_text_add(&path, "%s/../lib/farfault/libfarfault-gpu.so", folder);
  char *real = realpath(path.chars, NULL);
  if (real) *strrchr(real, '/') = '\0';
  free(path.chars);
  free(folder);
  return real;
}

static bool is_executable_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* The first executable of that name on PATH, or NULL. The caller frees it. */
static char *find_on_path(const char *name) {
  const char *path = getenv("PATH");
  while (path && *path) {
    size_t length = strcspn(path, ":");
    ff_text candidate = {0};
    ff_text_add(&candidate, "%.*s%s%s", (int)length, path, length ? "/" : "./", name);
    if (is_executable_file(candidate.chars)) return candidate.chars;
    free(candidate.chars);
    path += length + (path[length] == ':');
  }
  return NULL;
}

static ff_status fail_missing(const char *name, run_program *program, ff_error *error) {
  program->status = CLI_NO_PROGRAM;
  if (strchr(name, '/')) return ff_fail(error, FF_NOT_FOUND, "%s: %s", name, strerror(errno));
  if (access(name, F_OK) == 0)
    return ff_fail(error, FF_NOT_FOUND, "%s: not found on PATH; for the file in this folder write ./%s", name, name);
  return ff_fail(error, FF_NOT_FOUND, "%s: not found on PATH", name);
}

static ff_status find(const char *name, run_program *program, ff_error *error) {
  program->path = strchr(name, '/') ? ff_strdup(name) : find_on_path(name);
  struct stat info;
  if (!program->path || stat(program->path, &info)) return fail_missing(name, program, error);
  program->status = CLI_NOT_EXECUTABLE;
  if (S_ISDIR(info.st_mode)) return ff_fail(error, FF_INVALID, "%s: is a directory", name);
  if (!S_ISREG(info.st_mode) || access(program->path, X_OK))
    return ff_fail(error, FF_INVALID, "%s: is not executable (chmod +x %s, if it is a program)", name, name);
  return FF_OK;
}

ff_status run_program_find(const char *name, const char *libraries, run_program *program, ff_error *error) {
  *program = (run_program){0};
  return find(name, program, error);
}

void run_program_free(run_program *program) {
  free(program->path);
  free(program->preload);
}
