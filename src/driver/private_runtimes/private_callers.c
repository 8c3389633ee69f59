/* SPDX-License-Identifier: Apache-2.0 */
/* Which library a call comes from, and which machine code that library has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "driver/private_runtimes/private_runtimes.h"
#include "fatbin/elf.h"

/* How the files of NVIDIA's libraries begin that choose between machine code and PTX by what they are told. */
static const char *const starts[] = {"libcublas",   "libcudnn",    "libcufft", "libcurand", "libcusolver",
                                     "libcusparse", "libcutensor", "libnpp",   "libnvjpeg", "libcufile"};

typedef struct caller {
  const void *base; /* where it is loaded */
  char *path;
  bool runtime; /* it has asked for a table */
  bool looked;  /* `major` is known */
  int major;    /* private_capability_for */
} caller;

static FF_VEC(caller) callers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *file_name(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static bool is_such_a_library(const char *name) {
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
  return false;
}

static int look_at(const char *path) {
  fatbin_report report;
  const char *name = file_name(path);
  if (!is_such_a_library(name) || fatbin_check_executable(path, &report, NULL)) return 0;
  int major = report.machine_code ? (int)report.code_highest / 10 + 1 : 0;
  if (major)
    engine_say_once(
        name,
        "%s: is told compute capability %d.0, above all that it has machine code for (up to %u.%u), so that "
        "it takes its PTX%s",
        name, major, report.code_highest / 10, report.code_highest % 10,
        report.ptx ? "" : "; it has none, so that its kernels cannot run");
  fatbin_report_free(&report);
  return major;
}

/* The caller's entry, under the lock; NULL: no object that was loaded by the dynamic loader. The library may have been
 * unloaded and another be in its place. */
static caller *find_caller(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return NULL;
  size_t at = 0;
  while (at < callers.count && callers.items[at].base != info.dli_fbase) at++;
  if (at == callers.count) {
    caller new = {.base = info.dli_fbase, .path = ff_strdup(info.dli_fname)};
    FF_PUSH(&callers, new);
  }
  caller *found = &callers.items[at];
  if (strcmp(found->path, info.dli_fname) != 0) {
    free(found->path);
    *found = (caller){.base = info.dli_fbase, .path = ff_strdup(info.dli_fname)};
  }
  return found;
}

int private_capability_for(const void *address) {
  if (private_runtimes_off()) return 0;
  pthread_mutex_lock(&lock);
  caller *found = find_caller(address);
  if (found && !found->looked) {
    found->looked = true;
    found->major = look_at(found->path);
  }
  int major = found ? found->major : 0;
  pthread_mutex_unlock(&lock);
  return major;
}

static atomic_bool any_runtime; /* most programs have none: they need not look */

void private_runtime_note(const void *address) {
  pthread_mutex_lock(&lock);
  caller *found = find_caller(address);
  if (found) found->runtime = true;
  pthread_mutex_unlock(&lock);
  atomic_store(&any_runtime, true);
}

bool private_is_runtime(const void *address) {
  if (!atomic_load(&any_runtime)) return false;
  pthread_mutex_lock(&lock);
  caller *found = find_caller(address);
  bool runtime = found && found->runtime;
  pthread_mutex_unlock(&lock);
  return runtime;
}
