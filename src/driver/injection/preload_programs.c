/* SPDX-License-Identifier: Apache-2.0 */
/* Our assemblers in the place of NVIDIA's, for programs that have code assembled while they run: ptxas (XLA), whose
 * result is the PTX, and tileiras (cuTile), whose result is the bytecode.
 *
 * A compiler's own assembler stays: nvcc starts it through a shell, and what a shell or nvcc starts is left alone.
 * These functions may be called between fork and exec, or after vfork: nothing here allocates or takes a lock once main
 * has begun. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int exec_function(const char *, char *const[], char *const[]);
typedef int exec_same_function(const char *, char *const[]);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

static struct {
  exec_function *execve, *execvpe;
  exec_same_function *execv, *execvp;
  spawn_function *posix_spawn, *posix_spawnp;
} next;
/* "": there is none of ours, or this process is a compiler */
static struct {
  const char *name, *place; /* of ours: below the folder of our libraries */
  char path[PATH_MAX];
} assemblers[] = {{"ptxas", "ptxas", ""}, {"tileiras", "assemblers/tileiras", ""}};
enum { ASSEMBLERS = sizeof assemblers / sizeof *assemblers };

static const char *file_name(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static bool is_compiler(void) {
  static const char *const names[] = {"nvcc", "sh", "dash", "bash", "cmake", "make", "ninja"};
  char own[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  own[length > 0 ? length : 0] = '\0';
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(file_name(own), names[i])) return true;
  return false;
}

static void find_assemblers(void) {
  Dl_info own;
  if (is_compiler() || !dladdr((void *)assemblers, &own)) return;
  int folder = (int)(file_name(own.dli_fname) - own.dli_fname);
  for (int i = 0; i < ASSEMBLERS; i++) {
    char *path = assemblers[i].path;
    int length = snprintf(path, PATH_MAX, "%.*s%s", folder, own.dli_fname, assemblers[i].place);
    if (length >= PATH_MAX || access(path, X_OK) != 0) path[0] = '\0';
  }
}

static void find(void *function, const char *name) {
  if (!*(void **)function) *(void **)function = dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_all(void) {
  find(&next.execve, "execve");
  find(&next.execvpe, "execvpe");
  find(&next.execv, "execv");
  find(&next.execvp, "execvp");
  find(&next.posix_spawn, "posix_spawn");
  find(&next.posix_spawnp, "posix_spawnp");
  int before = errno;
  find_assemblers();
  errno = before;
}

/* `path` may be NULL, which the C library refuses. */
static const char *choose(const char *path) {
  for (int i = 0; i < ASSEMBLERS; i++)
    if (assemblers[i].path[0] && path && !strcmp(file_name(path), assemblers[i].name)) return assemblers[i].path;
  return path;
}

#define EXEC(name, parameters, ...)              \
  EXPORT int name parameters;                    \
  int name parameters {                          \
    find(&next.name, #name);                     \
    return next.name(choose(path), __VA_ARGS__); \
  }
EXEC(execve, (const char *path, char *const arguments[], char *const environment[]), arguments, environment)
EXEC(execvpe, (const char *path, char *const arguments[], char *const environment[]), arguments, environment)
EXEC(execv, (const char *path, char *const arguments[]), arguments)
EXEC(execvp, (const char *path, char *const arguments[]), arguments)

#define SPAWN(name)                                                                                          \
  EXPORT int name(pid_t *process, const char *path, const posix_spawn_file_actions_t *actions,               \
                  const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) { \
    find(&next.name, #name);                                                                                 \
    return next.name(process, choose(path), actions, attributes, arguments, environment);                    \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
