/* SPDX-License-Identifier: Apache-2.0 */
/* Which of NVIDIA's files a program finds under `farfault run`. Programs test for them before they load libcuda (JAX
 * does); what they would do with them is the driver library's business, and ours needs none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/injection/preload_files.h"

#define VERSION_FILE "driver-version" /* next to this library */

/* The system's own answer: not by a function that preload_paths.c stands before. */
static bool exists(const char *path) { return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0; }

static bool is_device(const char *name) {
  if (!strcmp(name, "ctl") || !strcmp(name, "-uvm")) return true;
  const char *given = getenv("FARFAULT_DEVICES");
  unsigned long devices = given && *given ? strtoul(given, NULL, 10) : 1, number;
  char *end;
  if (*name < '0' || *name > '9' || (*name == '0' && name[1])) return false;
  number = strtoul(name, &end, 10);
  return !*end && number < devices;
}

static const char *version_file(void) {
  static _Thread_local char path[PATH_MAX];
  Dl_info own;
  if (!dladdr((void *)preload_file, &own)) return NULL;
  const char *slash = strrchr(own.dli_fname, '/');
  int folder = slash ? (int)(slash - own.dli_fname) + 1 : 0;
  int length = snprintf(path, sizeof path, "%.*s" VERSION_FILE, folder, own.dli_fname);
  return length < (int)sizeof path && exists(path) ? path : NULL;
}

static const char *stand_in(const char *path) {
  if (!strncmp(path, "/dev/nvidia", 11)) return is_device(path + 11) ? "/dev/null" : NULL;
  return !strcmp(path, "/proc/driver/nvidia/version") ? version_file() : NULL;
}

const char *preload_file(const char *path) {
  if (!path || path[0] != '/' || (strncmp(path, "/dev/nv", 7) != 0 && strncmp(path, "/proc/d", 7) != 0)) return path;
  int before = errno;
  const char *other = stand_in(path);
  if (other && exists(path)) other = NULL;
  errno = before;
  return other ? other : path;
}
