/* SPDX-License-Identifier: Apache-2.0 */
/* For programs of tests that load the driver's library themselves: `library` is what dlopen gave. */
#ifndef FF_TESTS_DRIVER_CALL_H
#define FF_TESTS_DRIVER_CALL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

/* Calls a function of the driver's; whatever goes wrong is the end. */
#define CALL(name, types, ...)                                                   \
  do {                                                                           \
    int(*function) types = (int(*) types)dlsym(library, #name);                  \
    int result = function ? function(__VA_ARGS__) : -1;                          \
    if (result) {                                                                \
      fprintf(stderr, "%s: %d (line %d)\n", #name, result, __LINE__);            \
      exit(2);                                                                   \
    }                                                                            \
  } while (0)

#endif
