/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the driver library and its functions.
 *
 *   virtual  libcuda.so.1 in the folder lib/farfault next to this library, next to the program, or of the farfault that
 *   the shell would start
 *   cuda     libcuda.so.1 as the system finds it
 *   PATH     that file */
#define _GNU_SOURCE /* dladdr */
#include "runtime/cuda.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/installed.h"
#include "base/memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static FF_VEC(cuda_driver *) opened; /* live as long as the process, as their libraries do */

static bool virtual_library(char *path, size_t room) {
#ifdef FARFAULT_LIBRARY_FOLDER
  static const char folder[] = FARFAULT_LIBRARY_FOLDER;
#else
  static const char *folder;
#endif
  return ff_find_installed("libcuda.so.1", R_OK, (void *)virtual_library, folder, false, path, room);
}

/* Fills the table; NULL, or the name of the first function that is missing. */
static const char *find_functions(void *library, cuda_driver *driver) {
#define X(name, symbol, parameters) \
  if (!(driver->name = (int(*) parameters)dlsym(library, #symbol))) return #symbol;
#include "runtime/cuda.def"
#undef X
#define X(name, symbol, parameters) driver->name = (int(*) parameters)dlsym(library, #symbol);
#include "runtime/cuda_newer.def"
#undef X
  driver->declare = (ff_virtual_declare_function *)dlsym(library, "farfaultDeclareUses");
  driver->host_time = (ff_virtual_time_function *)dlsym(library, "farfaultHostTime");
  driver->fault = (ff_virtual_fault_function *)dlsym(library, "farfaultFault");
  driver->physical = (ff_virtual_physical_function *)dlsym(library, "farfaultPhysical");
  driver->is_virtual = driver->host_time != NULL;
  return NULL;
}

static ff_status start(cuda_driver *driver, ff_error *error) {
  int count = 0, result = driver->Init(0);
  if (result)
    return cuda_fail(driver, result, "cuInit", error) ? ff_fail_at(error, FF_NOT_FOUND, driver->path) : FF_NOT_FOUND;
  result = driver->DeviceGetCount(&count);
  if (result) return cuda_fail(driver, result, "cuDeviceGetCount", error);
  return count ? FF_OK : ff_fail(error, FF_NOT_FOUND, "%s: there is no GPU", driver->path);
}

static ff_status open_library(const char *path, const cuda_driver **out, ff_error *error) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return ff_fail(error, FF_NOT_FOUND, "%s", dlerror());
  cuda_driver made = {0};
  const char *missing = find_functions(library, &made);
  if (missing) {
    dlclose(library);
    return ff_fail(error, FF_UNSUPPORTED, "%s: it has no %s; farfault needs the driver of CUDA 11.2 or newer", path,
                   missing);
  }
  Dl_info info;
  snprintf(made.path, sizeof made.path, "%s",
           dladdr((void *)made.Init, &info) && info.dli_fname ? info.dli_fname : path);
  for (size_t i = 0; i < opened.count; i++)
    if (opened.items[i]->Init == made.Init) {
      *out = opened.items[i];
      return FF_OK;
    }
  ff_status status = start(&made, error);
  if (status) return status;
  cuda_driver *kept = ff_alloc(sizeof *kept);
  *kept = made;
  FF_PUSH(&opened, kept);
  *out = kept;
  return FF_OK;
}

static ff_status open_virtual(const cuda_driver **driver, ff_error *error) {
  char path[PATH_MAX];
  if (virtual_library(path, sizeof path)) return open_library(path, driver, error);
  return ff_fail(
      error, FF_NOT_FOUND,
      "the virtual GPU's libcuda.so.1 is neither next to libfarfault (lib/farfault of an installation), nor next to the program, "
      "nor is there a farfault on PATH; FARFAULT_DRIVER=PATH names it");
}

static ff_status open_which(const char *which, const cuda_driver **driver, ff_error *error) {
  if (which && !strcmp(which, "virtual")) return open_virtual(driver, error);
  if (which && !strcmp(which, "cuda")) return open_library("libcuda.so.1", driver, error);
  if (which) return open_library(which, driver, error);
  return open_library("libcuda.so.1", driver, NULL) ? open_virtual(driver, error) : FF_OK;
}

ff_status cuda_open(const char *which, const cuda_driver **driver, ff_error *error) {
  const char *wanted = getenv("FARFAULT_DRIVER");
  if (wanted && *wanted) which = wanted;
  if (which && !*which) which = NULL;
  pthread_mutex_lock(&lock);
  ff_status status = open_which(which, driver, error);
  pthread_mutex_unlock(&lock);
  return status;
}

ff_status cuda_fail(const cuda_driver *driver, int result, const char *call, ff_error *error) {
  const char *name = NULL, *text = NULL;
  if (driver->GetErrorName(result, &name) || !name) name = "unknown error";
  if (driver->GetErrorString(result, &text) || !text) text = "no description";
  return ff_fail(error, result == CUDA_OUT_OF_MEMORY ? FF_NO_MEMORY : FF_INTERNAL, "%s: %s (%s, %d)", call, text, name,
                 result);
}
