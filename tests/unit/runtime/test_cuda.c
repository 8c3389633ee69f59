/* SPDX-License-Identifier: Apache-2.0 */
/* The driver library: found where it is said to be, with all its functions, once; what is none is refused with its
 * reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cuda.h"

static void finds_the_virtual_gpu(void **state) {
  const cuda_driver *driver, *again;
  ff_error error;
  unsetenv("FARFAULT_DRIVER");
  assert_int_equal(cuda_open("virtual", &driver, &error), FF_OK);
  assert_true(driver->is_virtual);
  assert_non_null(strstr(driver->path, "lib/farfault/libcuda.so.1"));
  int count = 0;
  assert_int_equal(driver->DeviceGetCount(&count), CUDA_OK);
  assert_int_equal(count, 1);
  assert_int_equal(cuda_open(driver->path, &again, &error), FF_OK);
  assert_ptr_equal(again, driver);
}

static void refuses_what_is_no_driver(void **state) {
  const cuda_driver *driver;
  ff_error error;
  assert_int_equal(cuda_open("/nowhere/libcuda.so.1", &driver, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "/nowhere/libcuda.so.1"));
  assert_int_equal(cuda_open("libm.so.6", &driver, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "cuInit"));
}

static void environment_goes_first(void **state) {
  const cuda_driver *driver;
  ff_error error;
  setenv("FARFAULT_DRIVER", "/nowhere/else.so", 1);
  assert_int_equal(cuda_open("virtual", &driver, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "/nowhere/else.so"));
  setenv("FARFAULT_DRIVER", "virtual", 1);
  assert_int_equal(cuda_open("/nowhere/libcuda.so.1", &driver, &error), FF_OK);
  unsetenv("FARFAULT_DRIVER");
}

static void names_errors(void **state) {
  const cuda_driver *driver;
  ff_error error;
  assert_int_equal(cuda_open("virtual", &driver, &error), FF_OK);
  assert_int_equal(cuda_fail(driver, CUDA_OUT_OF_MEMORY, "cuMemCreate", &error), FF_NO_MEMORY);
  assert_non_null(strstr(error.message, "cuMemCreate"));
  assert_non_null(strstr(error.message, "CUDA_ERROR_OUT_OF_MEMORY"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_virtual_gpu),
      cmocka_unit_test(refuses_what_is_no_driver),
      cmocka_unit_test(environment_goes_first),
      cmocka_unit_test(names_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
