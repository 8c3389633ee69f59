/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's functions that look at a file by its path, each with the path that preload_files.c gives, and else as
 * they are. */
#undef _FORTIFY_SOURCE /* it makes inline functions of these names */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/injection/preload_files.h"

typedef int open_file(const char *, int, ...);
typedef int open_file_at(int, const char *, int, ...);

/* The C library's own functions. They are looked up once, before main where possible: a signal handler may open a
 * file. */
static struct {
#define X(result, name, parameters, arguments, failed) result(*name) parameters;
#include "driver/injection/preload_paths.def"
#undef X
  open_file *open, *open64;
  open_file_at *openat, *openat64;
  char *(*realpath)(const char *, char *);
} next;

static void find(void *function, const char *name) {
  if (!*(void **)function) *(void **)function = dlsym(RTLD_NEXT, name);
}

/* Since glibc 2.3 it allocates where it is given no place; the name alone may mean the one before. */
static void find_realpath(void) {
  if (!next.realpath) *(void **)&next.realpath = dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");
  find(&next.realpath, "realpath");
}

__attribute__((constructor)) static void find_all(void) {
#define X(result, name, parameters, arguments, failed) find(&next.name, #name);
#include "driver/injection/preload_paths.def"
#undef X
  find(&next.open, "open");
  find(&next.open64, "open64");
  find(&next.openat, "openat");
  find(&next.openat64, "openat64");
  find_realpath();
}

#define X(result, name, parameters, arguments, failed)           \
  __attribute__((visibility("default"))) result name parameters; \
  result name parameters {                                       \
    find(&next.name, #name);                                     \
    if (next.name) return next.name arguments;                   \
    errno = ENOSYS;                                              \
    return failed;                                               \
  }
#include "driver/injection/preload_paths.def"
#undef X

/* The mode is there only with flags that make a file. */
static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name)                                                                    \
  __attribute__((visibility("default"))) int name(const char *path, int flags, ...) { \
    va_list rest;                                                                     \
    va_start(rest, flags);                                                            \
    mode_t mode = mode_of(flags, rest);                                               \
    va_end(rest);                                                                     \
    find(&next.name, #name);                                                          \
    return next.name(preload_file(path), flags, mode);                                \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                                                             \
  __attribute__((visibility("default"))) int name(int folder, const char *path, int flags, ...) { \
    va_list rest;                                                                                 \
    va_start(rest, flags);                                                                        \
    mode_t mode = mode_of(flags, rest);                                                           \
    va_end(rest);                                                                                 \
    find(&next.name, #name);                                                                      \
    return next.name(folder, preload_file(path), flags, mode);                                    \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

__attribute__((visibility("default"))) char *realpath(const char *path, char *resolved) {
  char real[PRELOAD_FOLDER_LENGTH];
  find_realpath();
  if (!preload_real_folder(path, real)) return next.realpath(path, resolved);
  return resolved ? strcpy(resolved, real) : strdup(real);
}

__attribute__((visibility("default"))) char *__realpath_chk(const char *path, char *resolved, size_t length);
char *__realpath_chk(const char *path, char *resolved, size_t length) {
  if (length < PATH_MAX) abort(); /* the C library says so, too */
  return realpath(path, resolved);
}
