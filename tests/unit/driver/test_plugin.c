/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA only through a plug-in: closing the plug-in takes nothing of the virtual GPU away. */
#include <dlfcn.h>

#include "program.h"

typedef cudaError_t (*allocate_function)(void **pointer, size_t size);

static void *open_cudart(allocate_function *allocate) {
  void *library = dlopen(FF_BUILD_DIR "/lib/farfault/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void *symbol = dlsym(library, "cudaMalloc");
  assert_non_null(symbol);
  memcpy(allocate, &symbol, sizeof symbol);
  return library;
}

static void memory_outlives_the_plugin(void **state) {
  (void)state;
  allocate_function allocate;
  char *first, *second;
  void *library = open_cudart(&allocate);
  succeed(allocate((void **)&first, 4096));
  first[100] = 42;
  assert_int_equal(dlclose(library), 0);
  library = open_cudart(&allocate);
  succeed(allocate((void **)&second, 4096));
  assert_ptr_not_equal(first, second);
  assert_int_equal(first[100], 42);
  dlclose(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_outlives_the_plugin)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
