/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a library that a test opens as it was built; nothing of it is linked in. */
#ifndef TESTS_DRIVER_OPENED_LIBRARY_H
#define TESTS_DRIVER_OPENED_LIBRARY_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *library;
#define CALL(name, types, ...) ((int(*) types)(uintptr_t)symbol(#name))(__VA_ARGS__)
static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (!found) fail_msg("%s", dlerror());
  return found;
}

#endif
