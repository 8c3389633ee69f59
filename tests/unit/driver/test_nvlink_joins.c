/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks of a hybrid cube mesh: GPU 0 has one with GPUs 1 and 2, and two with 3 and 4 (machines/dgx-v100.yaml). */
#include "nvlink_cases.h"

static void test_joins(void **state) {
  static const unsigned buses[LINKS] = {2, 3, 4, 4, 5, 5};
  start("dgx-v100", "8");
  unsigned version;
  nvmlDevice device = device_at(0);
  expect_count(device, 6);
  for (unsigned link = 0; link < LINKS; link++) expect_link(device, link, buses[link], GPU);
  for (unsigned d = 1; d < 8; d++) expect_count(device_at(d), 6);
  assert_int_equal(nvmlDeviceGetNvLinkVersion(device, 0, &version), 0);
  assert_int_equal(version, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_joins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
