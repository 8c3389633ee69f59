/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's functions that look at a file by its path, each with the path that preload_files.c gives, and else as
 * they are. */
#undef _FORTIFY_SOURCE /* it makes inline functions of these names */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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
} next;

static void find(void *function, const char *name) {
  if (!*(void **)function) *(void **)function = dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_all(void) {
#define X(result, name, parameters, arguments, failed) find(&next.name, #name);
#include "driver/injection/preload_paths.def"
#undef X
  find(&next.open, "open");
  find(&next.open64, "open64");
  find(&next.openat, "openat");
  find(&next.openat64, "openat64");
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
