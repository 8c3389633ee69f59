/* SPDX-License-Identifier: Apache-2.0 */
/* A child that is forked while another thread makes a plan makes none itself, but its call returns. */
#define _GNU_SOURCE
#include "unit/forks.h"

#include <stdlib.h>

#include "reference.h"

static void make_plan(void) {
  cufftHandle plan;
  if (!cufftPlan1d(&plan, 8, CUFFT_C2C, 1)) cufftDestroy(plan);
}

static void a_child_waits_for_no_thread(void **state) {
  (void)state;
  make_plan(); /* what is made once */
  const int locks = forks_with_each_lock(NULL, make_plan);
  print_message("%d locks\n", locks);
  assert_true(locks > 0);
}

int main(void) {
  setenv("FARFAULT_MACHINE", "gtx480", 1);
  setenv("FARFAULT_MEMORY", "none", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_waits_for_no_thread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
