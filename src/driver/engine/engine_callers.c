/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that NVIDIA's libraries are told. Such a library takes machine code where it has some for the
 * device, and PTX, which is what can run here, for a device that is newer than all its machine code.
 *
 * cuDNN has parts without kernels that choose which engine computes. They are told what the library with the kernels
 * is told, which lies in the same folder: most engines for a device that they know have machine code only, and those
 * that are left for an unknown one have PTX. Where that library is not found, they are told 8.9 at the most: engines
 * for 9.0 and later need clusters of several blocks and tensor memory access. A device before 8.0 stays what it is, as
 * engines for it do without the tensor cores' later formats. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "base/memory.h"
#include "base/text.h"
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
  int chosen_major; /* of its engines' kernels; 0: not known */
} library;

static FF_VEC(library) libraries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)

static const char *file_name(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static bool chooses(const char *name) {
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
  return false;
}

/* The first compute capability above all machine code; 0: there is none. */
static int major_above(const fatbin_report *report) {
  return report->machine_code ? (int)report->code_highest / 10 + 1 : 0;
}

/* libcudnn_graph.so.9 chooses among the kernels of libcudnn_engines_precompiled.so.9, which is next to it. */
static int major_of_engines(const char *path) {
  const char *name = file_name(path), *suffix = strstr(name, ".so");
  ff_text engines = {0};
  fatbin_report report;
  ff_text_add(&engines, "%.*slibcudnn_engines_precompiled%s", (int)(name - path), path, suffix ? suffix : ".so");
  ff_status status = fatbin_check_executable(engines.chars, &report, NULL);
  free(engines.chars);
  int major = status ? 0 : major_above(&report);
  if (!status) fatbin_report_free(&report);
  return major;
}

static void say_what_chooser(const library *found) {
  const char *name = file_name(found->path);
  if (engine_machine()->compute_major >= 8 && found->chosen_major)
    engine_say_once(
        name, "%s: is told compute capability %d.0, above all that cuDNN has machine code for, so that it chooses PTX",
        name, found->chosen_major);
  else if (engine_machine()->compute_major >= 9)
    engine_say_once(
        name, "%s: is told compute capability 8.9, as cuDNN's engines for 9.0 and later need clusters of blocks", name);
}

static void look_at(library *found) {
  fatbin_report report;
  const char *name = file_name(found->path);
  if (!chooses(name) || fatbin_check_executable(found->path, &report, NULL)) return;
  found->chooses = !report.images && !strncmp(name, "libcudnn", 8);
  if (found->chooses) {
    found->chosen_major = major_of_engines(found->path);
    say_what_chooser(found);
  }
  found->major = major_above(&report);
  if (found->major)
    engine_say_once(
        name,
        "%s: is told compute capability %d.0, above all that it has machine code for (up to %u.%u), so that "
        "it takes its PTX%s",
        name, found->major, report.code_highest / 10, report.code_highest % 10,
        report.ptx || report.tile ? "" : "; it has none, so that its kernels cannot run");
  fatbin_report_free(&report);
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
  if (asking.chooses && engine_machine()->compute_major >= 8) {
    bool lower = !asking.chosen_major && engine_machine()->compute_major >= 9;
    if (!asking.chosen_major && !lower) return;
    *major = lower ? 8 : asking.chosen_major;
    *minor = lower ? 9 : 0;
  } else if (asking.major) {
    *major = asking.major;
    *minor = 0;
  }
}
