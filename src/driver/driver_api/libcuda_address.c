/* SPDX-License-Identifier: Apache-2.0 */
/* Finding driver functions by name (Driver API: "Driver Entry Point Access"), the profiler's switches, export tables.
 *
 * What always holds: cuGetProcAddress answers with the newest form of a function that the asking program's CUDA version
 * knows; stubs_libcuda.def says since when each form exists. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "driver/driver_api/libcuda.h"
#include "driver/private_runtimes/private_runtimes.h"

#include <dlfcn.h>
#include <string.h>

/* The symbols' addresses under other names, so that nothing here conflicts with their real types. Weak: where a program
 * links only some of libcuda_*.c (a unit test), the others are NULL. */
#define X(symbol, name, since, per_thread) extern __attribute__((weak)) char address_##symbol[] __asm__(#symbol);
#include "driver/driver_api/stubs_libcuda.def"
#undef X

typedef struct entry_point {
  const char *name;
  void *address;
  int since;
  bool per_thread;
} entry_point;

static const entry_point entry_points[] = {
#define X(symbol, name, since, per_thread) {#name, address_##symbol, since, per_thread},
#include "driver/driver_api/stubs_libcuda.def"
#undef X
};

enum { FOUND, NOT_FOUND, TOO_OLD }; /* CUdriverProcAddressQueryResult */
enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };

static const entry_point *find_entry(const char *name, int version, bool per_thread, bool *known) {
  const entry_point *best = NULL;
  for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
    const entry_point *entry = &entry_points[i];
    if (entry->per_thread != per_thread || strcmp(entry->name, name) != 0) continue;
    *known = true;
    if (entry->since <= version && entry->address && (!best || entry->since > best->since)) best = entry;
  }
  return best;
}

/* The file that a function lies in, without its folders. */
static const char *file_of(const void *function) {
  Dl_info found;
  const char *path = dladdr(function, &found) && found.dli_fname ? found.dli_fname : "this program";
  return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* farfault's libcudart lies next to this library. */
static bool is_ours(const void *function) {
  Dl_info its, mine;
  if (!dladdr(function, &its) || !dladdr(__extension__(void *) is_ours, &mine) || !its.dli_fname || !mine.dli_fname)
    return false;
  const char *end = strrchr(mine.dli_fname, '/');
  return end && strncmp(its.dli_fname, mine.dli_fname, (size_t)(end + 1 - mine.dli_fname)) == 0;
}

/* Most CUDA runtimes ask for every function that they know, look at the driver's version, and say no more than
 * "insufficient driver" of one whose major version is older than theirs. */
static void say_too_new(const void *caller, int version) {
  int driver = (int)engine_driver_version();
  if (version / 1000 != driver / 1000 + 1 || is_ours(caller)) return; /* those go on; a runtime asks for all versions */
  const char *name = file_of(caller);
  engine_say_once(
      name,
      "%s asks for functions of CUDA %d.%d, and the driver says that it is of CUDA %d.%d (--driver-version): "
      "a CUDA runtime of that version refuses such a driver (cudaErrorInsufficientDriver)",
      name, version / 1000, version % 1000 / 10, driver / 1000, driver % 1000 / 10);
}

static CUresult get_address(const char *name, void **address, int version, uint64_t flags, int *status) {
  bool known = false;
  bool both = flags == (FLAG_LEGACY | FLAG_PER_THREAD);
  if (!name || !*name || !address || version > (int)engine_driver_version() || flags > FLAG_PER_THREAD + FLAG_LEGACY ||
      both)
    return CUDA_ERROR_INVALID_VALUE;
  const entry_point *entry = flags & FLAG_PER_THREAD ? find_entry(name, version, true, &known) : NULL;
  if (!entry) entry = find_entry(name, version, false, &known);
  *address = entry ? entry->address : NULL;
  if (status) *status = entry ? FOUND : known ? TOO_OLD : NOT_FOUND;
  return CUDA_SUCCESS;
}

/* The form of CUDA 11.3 has no status, and fails instead. */
LIBCUDA_CALL(cuGetProcAddress, (const char *name, void **address, int version, uint64_t flags)) {
  int status;
  say_too_new(__builtin_return_address(0), version);
  LIBCUDA_TRY(get_address(name, address, version, flags, &status));
  return status == FOUND ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
LIBCUDA_CALL(cuGetProcAddress_v2, (const char *name, void **address, int version, uint64_t flags, int *status)) {
  say_too_new(__builtin_return_address(0), version);
  return get_address(name, address, version, flags, status);
}

/* The table that every CUDA runtime asks for. */
static const unsigned char runtime_table[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/* Private tables of functions that CUDA runtimes ask for. NVRTC asks as well, and can do without. */
LIBCUDA_CALL(cuGetExportTable, (const void **table, const CUuuid *id)) {
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = private_table_find(id, __builtin_return_address(0));
  if (*table) return CUDA_SUCCESS;
  if (memcmp(id->bytes, runtime_table, sizeof runtime_table) != 0) return CUDA_ERROR_NOT_FOUND;
  const char *name = file_of(__builtin_return_address(0));
  engine_say_once(name,
                  "%s has a CUDA runtime inside that needs private tables of the driver, which are switched off here "
                  "(--private-runtimes=off, or a build without them): every call of it fails",
                  name);
  return CUDA_ERROR_NOT_FOUND;
}

static CUresult profile(bool start) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_profile(start));
}

LIBCUDA_CALL(cuProfilerStart, (void)) { return profile(true); }
LIBCUDA_CALL(cuProfilerStop, (void)) { return profile(false); }
