/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

driver cuda;

static void *find(void *library, const char *name) {
  void *call = library ? dlsym(library, name) : NULL;
  if (call) return call;
  fprintf(stderr, "torture_program: %s\n", dlerror());
  exit(2);
}

void driver_load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define DRIVER_CALL(name, parameters) cuda.name = (int(*) parameters)find(library, #name);
#include "driver_calls.def"
#undef DRIVER_CALL
}
