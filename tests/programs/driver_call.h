/* SPDX-License-Identifier: Apache-2.0 */
/* For programs of tests that load the driver's library themselves: `library` is what dlopen gave. */
#ifndef FF_TESTS_DRIVER_CALL_H
#define FF_TESTS_DRIVER_CALL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

/* Calls a function of the driver's; whatever goes wrong is the end. */
#define CALL(name, types, ...)                                        \
  do {                                                                \
    int(*function) types = (int(*) types)dlsym(library, #name);       \
    int result = function ? function(__VA_ARGS__) : -1;               \
    if (result) {                                                     \
      fprintf(stderr, "%s: %d (line %d)\n", #name, result, __LINE__); \
      exit(2);                                                        \
    }                                                                 \
  } while (0)

/* A text file of at most 64 KiB; free() it. Without one: exit status 4. */
static inline char *driver_text(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 16);
  if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) exit(4);
  fclose(file);
  return text;
}

/* Loads the driver's library, makes device 0 current and loads `code`; the module. Without a library: exit status 3. */
static inline void *driver_open(const char *code) {
  void *context, *module;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) exit(3);
  CALL(cuInit, (unsigned), 0);
  CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
  CALL(cuCtxSetCurrent, (void *), context);
  CALL(cuModuleLoadData, (void **, const void *), &module, code);
  return module;
}

#endif
