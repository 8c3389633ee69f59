/* SPDX-License-Identifier: Apache-2.0 */
/* Our assemblers in the place of NVIDIA's, for programs that have code assembled while they run: ptxas (XLA), whose
 * result is the PTX, and tileiras (cuTile), whose result is the bytecode.
 *
 * A compiler's own assembler stays: nvcc starts it through a shell, and what a shell or nvcc starts is left alone. Only
 * where a program itself starts nvcc for a cubin (PyCUDA, TileLang), which it will load, nvcc gets the stand-in, too.
 * Any other nvcc is told to keep its PTX beside the machine code (preload_nvcc.c).
 * These functions may be called between fork and exec, or after vfork: nothing here allocates or takes a lock once main
 * has begun. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "driver/injection/preload_nvcc.h"

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

/* Of a process by its folder below /proc: the file that it executes, without folders; "" if that is not to be known. */
static const char *executed_file(const char *process, char path[static PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%s/exe", process);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return file_name(path);
}

static bool is_one_of(const char *name, const char *const names[], size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

static bool is_compiler(const char *process) {
  static const char *const names[] = {"nvcc", "sh", "dash", "bash", "cmake", "make", "ninja"};
  char path[PATH_MAX];
  return is_one_of(executed_file(process, path), names, sizeof names / sizeof *names);
}

/* As much of a file below /proc as there is room for, ended by a NUL; its length, 0 if it cannot be read. */
static size_t read_process(const char *process, const char *name, char *to, size_t room) {
  char path[64];
  size_t length = 0;
  snprintf(path, sizeof path, "/proc/%s/%s", process, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 1; file >= 0 && length < room - 1 && got > 0; length += got > 0 ? (size_t)got : 0)
    got = read(file, to + length, room - 1 - length);
  if (file >= 0) close(file);
  to[length] = '\0';
  return length;
}

/* proc(5): the fourth field, and the second, in brackets, may have anything in it. */
static bool find_parent(const char *process, char to[static 32]) {
  char stat[1024], *bracket;
  int parent;
  read_process(process, "stat", stat, sizeof stat);
  if (!(bracket = strrchr(stat, ')')) || sscanf(bracket, ") %*c %d", &parent) != 1) return false;
  snprintf(to, 32, "%d", parent);
  return true;
}

static bool makes_cubin(const char *process) {
  static const char *const options[] = {"-cubin", "--cubin"};
  char words[16384];
  size_t length = read_process(process, "cmdline", words, sizeof words);
  for (size_t at = 0; at < length; at += strlen(words + at) + 1)
    if (is_one_of(words + at, options, 2)) return true;
  return false;
}

/* This process assembles for an nvcc that a program, and not a shell or a build, started for a cubin. */
static bool makes_what_is_loaded(void) {
  char path[PATH_MAX], nvcc[32], starter[32];
  return find_parent("self", nvcc) && !strcmp(executed_file(nvcc, path), "nvcc") && makes_cubin(nvcc) &&
         find_parent(nvcc, starter) && !is_compiler(starter);
}

static void keep_ptx(void) {
  static char words[1 << 17]; /* in nvcc alone */
  char path[PATH_MAX];
  if (!strcmp(executed_file("self", path), "nvcc"))
    preload_nvcc_keep_ptx(words, read_process("self", "cmdline", words, sizeof words), sizeof words);
}

static void find_assemblers(void) {
  Dl_info own;
  if ((is_compiler("self") && !makes_what_is_loaded()) || !dladdr((void *)assemblers, &own)) return;
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
  keep_ptx();
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
