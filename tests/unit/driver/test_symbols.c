/* SPDX-License-Identifier: Apache-2.0 */
/* The shared objects that stand in for NVIDIA's: sonames, symbol versions, every symbol there, found the usual ways.
 *
 * Built with AddressSanitizer they load into this program only because it has the sanitizer's runtime too; any other
 * program then needs LD_PRELOAD=$(cc -print-file-name=libasan.so). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fatbin/elf.h"

#define LIBRARIES FF_BUILD_DIR "/lib/farfault/"

typedef struct runtime_symbol {
  const char *name;
  int first, last;
} runtime_symbol;
static const runtime_symbol runtime_symbols[] = {
#define X(name, first, last) {#name, first, last},
#include "driver/runtime_api/stubs_cudart.def"
#undef X
};
static const char *const driver_symbols[] = {
#define X(symbol, name, since, per_thread) #symbol,
#include "driver/driver_api/stubs_libcuda.def"
#undef X
};

typedef struct library {
  const char *file;
  int major;
} library;
static const library runtimes[] = {{"libcudart.so.11.0", 11}, {"libcudart.so.12", 12}, {"libcudart.so.13", 13}};

static void *open_library(const char *file) {
  char path[512];
  snprintf(path, sizeof path, LIBRARIES "%s", file);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail_msg("%s", dlerror());
  return handle;
}

static void test_files(void **state) {
  static const char *const files[] = {"libfarfault-gpu.so", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13",
                                      "libcuda.so.1"};
  for (int i = 0; i < 5; i++) {
    char path[512];
    snprintf(path, sizeof path, LIBRARIES "%s", files[i]);
    fatbin_report report;
    ff_error error = {.message = ""};
    if (fatbin_check_executable(path, &report, &error)) fail_msg("%s", error.message);
    assert_non_null(report.soname);
    assert_string_equal(report.soname, files[i]);
    assert_non_null(report.runpath); /* finds the engine next to itself */
    assert_string_equal(report.runpath, "$ORIGIN");
    assert_null(report.rpath);
    bool needs_engine = false;
    for (uint32_t k = 0; k < report.needed_count; k++) needs_engine |= !strcmp(report.needed[k], "libfarfault-gpu.so");
    assert_int_equal(needs_engine, i > 0);
    fatbin_report_free(&report);
  }
}

static void test_runtime_symbols(void **state) {
  for (int i = 0; i < 3; i++) {
    void *handle = open_library(runtimes[i].file);
    uint32_t here = 0;
    for (size_t s = 0; s < sizeof runtime_symbols / sizeof *runtime_symbols; s++) {
      const runtime_symbol *symbol = &runtime_symbols[s];
      bool wanted = symbol->first <= runtimes[i].major && runtimes[i].major <= symbol->last;
      void *found = dlvsym(handle, symbol->name, runtimes[i].file);
      if (wanted && !found) fail_msg("%s lacks %s", runtimes[i].file, symbol->name); /* having more does no harm */
      if (found) assert_ptr_equal(dlsym(handle, symbol->name), found);
      here += found != NULL;
    }
    assert_true(here > 400);
    assert_null(dlvsym(handle, "cudaMalloc", runtimes[(i + 1) % 3].file));
    assert_null(dlsym(handle, "engine_sticky_internal"));
    dlclose(handle);
  }
}

static void test_driver_symbols(void **state) {
  void *handle = open_library("libcuda.so.1");
  for (size_t s = 0; s < sizeof driver_symbols / sizeof *driver_symbols; s++)
    if (!dlsym(handle, driver_symbols[s])) fail_msg("libcuda.so.1 lacks %s", driver_symbols[s]);
  dlclose(handle);
}

/* A function that is not implemented says so and is an error, in both libraries. */
static void test_unimplemented(void **state) {
  void *runtime = open_library("libcudart.so.13"), *driver = open_library("libcuda.so.1");
  int (*map)(void) = (int (*)(void))dlsym(runtime, "cudaVDPAUSetVDPAUDevice");
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*checkpoint)(void) = (int (*)(void))dlsym(driver, "cuCheckpointProcessLock");
  assert_int_equal(map(), 801);
  assert_int_equal(map(), 801);
  assert_int_equal(checkpoint(), 3); /* not initialised yet */
  assert_int_equal(init(0), 0);
  assert_int_equal(checkpoint(), 801);
  const char *(*name)(int) = (const char *(*)(int))dlsym(runtime, "cudaGetErrorName");
  int (*last)(void) = (int (*)(void))dlsym(runtime, "cudaGetLastError");
  assert_string_equal(name(801), "cudaErrorNotSupported");
  assert_int_equal(last(), 801);
  assert_int_equal(last(), 0);
  dlclose(runtime);
  dlclose(driver);
}

/* The runtime's first call initialises the driver: without cuInit, too, the flags are the current context's. Alone in
 * its process, where both libraries' names are everyone's. */
static int flags_without_cuinit(void) {
  void *runtime = dlopen(LIBRARIES "libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
  void *driver = dlopen(LIBRARIES "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!runtime || !driver) return 2;
  int (*release)(void *) = (int (*)(void *))dlsym(runtime, "cudaFree");
  int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))dlsym(driver, "cuCtxCreate_v2");
  int (*flags_of)(unsigned *) = (int (*)(unsigned *))dlsym(runtime, "cudaGetDeviceFlags");
  void *context;
  unsigned flags = 0;
  if (release(NULL) || create(&context, 4, 0) || flags_of(&flags)) return 3;
  return flags != 4; /* cudaDeviceScheduleBlockingSync, without cudaDeviceMapHost */
}

static void test_flags_without_cuinit(void **state) {
  int status = -1;
  pid_t child = fork();
  if (!child) _exit(flags_without_cuinit());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* What came after CUDA 13.0, with the version that it came with. */
static void test_newer_names(void **state) {
  static const struct {
    const char *name;
    int since;
  } rows[] = {{"cuLaunchHostFunc", 13010},
              {"cuMulticastBindMem", 13010},
              {"cuStreamGetDevResource", 13010},
              {"cuFuncGetParamCount", 13020},
              {"cuMemcpyWithAttributesAsync", 13020},
              {"cuGraphAddNode", 13040},
              {"cuTensorMapSetAllocationClass", 13050}};
  void *library = open_library("libcuda.so.1"), *old, *new;
  int (*get)(const char *, void **, int, uint64_t, int *) =
      (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "cuGetProcAddress_v2");
  int status;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(get(rows[i].name, &old, rows[i].since - 10, 0, &status), 0);
    assert_int_equal(get(rows[i].name, &new, rows[i].since, 0, &status), 0);
    assert_non_null(new);
    assert_ptr_not_equal(old, new); /* the form before, or none */
  }
  /* Dr.Jit uses no GPU without these. */
  static const char *const graphics[] = {"cuGraphicsGLRegisterBuffer", "cuGraphicsGLRegisterImage", "cuGLGetDevices",
                                         "cuGraphicsEGLRegisterImage", "cuVDPAUGetDevice"};
  for (size_t i = 0; i < sizeof graphics / sizeof *graphics; i++) {
    assert_int_equal(get(graphics[i], &new, 12000, 0, &status), 0);
    assert_non_null(new);
    assert_int_equal(((int (*)(void)) new)(), 801);
  }
  dlclose(library);
}

/* One state behind all of them: what one libcudart allocates, libcuda knows. */
static void test_shared_state(void **state) {
  void *runtime = open_library("libcudart.so.12"), *driver = open_library("libcuda.so.1");
  int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc");
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*current)(void *) = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
  int (*range)(uint64_t *, size_t *, uint64_t) =
      (int (*)(uint64_t *, size_t *, uint64_t))dlsym(driver, "cuMemGetAddressRange_v2");
  void *pointer, *context;
  uint64_t base = 0;
  size_t bytes = 0;
  assert_int_equal(allocate(&pointer, 1000), 0);
  assert_int_equal(init(0), 0);
  assert_int_equal(retain(&context, 0), 0);
  assert_int_equal(current(context), 0);
  assert_int_equal(range(&base, &bytes, (uintptr_t)pointer + 999), 0);
  assert_int_equal(base, (uintptr_t)pointer);
  assert_int_equal(bytes, 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_flags_without_cuinit), cmocka_unit_test(test_files),
      cmocka_unit_test(test_runtime_symbols),      cmocka_unit_test(test_driver_symbols),
      cmocka_unit_test(test_unimplemented),        cmocka_unit_test(test_newer_names),
      cmocka_unit_test(test_shared_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
