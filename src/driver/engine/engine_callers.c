/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that NVIDIA's libraries are told. Such a library takes machine code where it has some for the
 * device, and PTX, which is what can run here, for a device that is newer than all its machine code.
 *
 * cuDNN has parts without kernels that choose which engine computes. Engines for 9.0 and later need what is not there
 * (clusters of several blocks, tensor memory access): those parts are told 8.9 at the most. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "driver/engine/engine.h"
#include "fatbin/elf.h"

/* How the files of NVIDIA's libraries begin that choose between machine code and PTX by what they are told. */
static const char *const starts[] = {"libcublas",   "libcudnn", "libcufft",  "libcurand", "libcusolver", "libcusparse",
                                     "libcutensor", "libnpp",   "libnvjpeg", "libcufile", "libnccl"};

typedef struct library {
  const void *base; /* where it is loaded */
  char *path;       /* another library may be in its place later */
  int major;        /* 0: not one of them, or without machine code */
  bool chooses;     /* a part of cuDNN without kernels */
} library;

static FF_VEC(library) libraries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *file_name(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static bool chooses(const char *name) {
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
  return false;
}

static void look_at(library *found) {
  fatbin_report report;
  const char *name = file_name(found->path);
  if (!chooses(name) || fatbin_check_executable(found->path, &report, NULL)) return;
  found->chooses = !report.images && !strncmp(name, "libcudnn", 8);
  if (found->chooses && engine_machine()->compute_major >= 9)
    engine_say_once(
        name, "%s: is told compute capability 8.9, as cuDNN's engines for 9.0 and later need clusters of blocks", name);
  int major = report.machine_code ? (int)report.code_highest / 10 + 1 : 0;
  if (major)
    engine_say_once(
        name,
        "%s: is told compute capability %d.0, above all that it has machine code for (up to %u.%u), so that "
        "it takes its PTX%s",
        name, major, report.code_highest / 10, report.code_highest % 10,
        report.ptx ? "" : "; it has none, so that its kernels cannot run");
  fatbin_report_free(&report);
  found->major = major;
}

/* The entry of the object that is there, under the lock. */
static const library *find_library(const Dl_info *info) {
  size_t at = 0;
  while (at < libraries.count && libraries.items[at].base != info->dli_fbase) at++;
  if (at < libraries.count && !strcmp(libraries.items[at].path, info->dli_fname)) return &libraries.items[at];
  library found = {.base = info->dli_fbase, .path = ff_strdup(info->dli_fname)};
  look_at(&found);
  if (at < libraries.count) {
    free(libraries.items[at].path);
    libraries.items[at] = found;
  } else FF_PUSH(&libraries, found);
  return &libraries.items[at];
}

void engine_capability_tell(const void *caller, int *major, int *minor) {
  Dl_info info;
  const char *mode = getenv("FARFAULT_PRIVATE_RUNTIMES");
  if ((mode && !strcmp(mode, "off")) || !dladdr(caller, &info) || !info.dli_fname) return;
  pthread_mutex_lock(&lock);
  library asking = *find_library(&info);
  pthread_mutex_unlock(&lock);
  bool lower = asking.chooses && engine_machine()->compute_major >= 9;
  if (!asking.major && !lower) return;
  *major = lower ? 8 : asking.major;
  *minor = lower ? 9 : 0;
}
