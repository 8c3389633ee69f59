/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface as libcudart of CUDA 12 sees it. */
#define CUDART_MAJOR 12
#include "abi_checks.h"

static void types_of_this_major(void **state) {
  (void)state;
  assert_int_equal(sizeof(cudaPointerAttributes), 24);
  assert_int_equal(sizeof(cudaFuncAttributes), 144);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(types_of_every_major), cmocka_unit_test(types_of_this_major)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
