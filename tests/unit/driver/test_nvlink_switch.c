/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks of a system with a switch: all 18 of each GPU lead there. */
#include "nvlink_cases.h"

#include <string.h>

static void test_switch(void **state) {
  start("dgx-h100", "8");
  unsigned version;
  nvmlPciInfo info;
  nvmlDevice device = device_at(5);
  expect_count(device, LINKS);
  for (unsigned link = 0; link < LINKS; link++) expect_link(device, link, 0xe0, SWITCH);
  assert_int_equal(nvmlDeviceGetNvLinkVersion(device, 0, &version), 0);
  assert_int_equal(version, 6); /* NVLink 4.0 */
  assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 3, &info), 0);
  assert_string_equal(info.busId, "00000000:e0:00.0");
  enum { FILLED = 36 }; /* bytes of the older struct */
  nvmlPciInfo older;
  memset(&older, 0x5a, sizeof older);
  assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo(device, 3, &older), 0);
  assert_memory_equal(&older, &info, FILLED);
  for (unsigned b = FILLED; b < sizeof older; b++) assert_int_equal(((unsigned char *)&older)[b], 0x5a);
  assert_int_equal(nvmlDeviceGetNvLinkState(device, LINKS, &version), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetNvLinkState(device, 0, NULL), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetNvLinkState(NULL, 0, &version), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetNvLinkCapability(device, 0, CAPABILITIES, &version), INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_switch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
