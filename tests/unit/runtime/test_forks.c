/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread looks for the driver looks for it itself. */
#define _GNU_SOURCE
#include "unit/forks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/cuda.h"

static void open_nothing(void) {
  const cuda_driver *driver;
  ff_error error;
  cuda_open("/nonexistent/libcuda.so.1", &driver, &error);
}

static void a_child_waits_for_no_thread(void **state) {
  (void)state;
  assert_true(forks_with_each_lock(NULL, open_nothing) > 0);
}

int main(void) {
  unsetenv("FARFAULT_DRIVER");
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_waits_for_no_thread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
