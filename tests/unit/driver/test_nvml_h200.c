/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of a machine of compute capability 9.0: other cores per SM than below, MIG, a brand of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct nvmlDevice *nvmlDevice;
int nvmlInit_v2(void), nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice *);
int nvmlDeviceGetNumGpuCores(nvmlDevice, unsigned *), nvmlDeviceGetMemoryBusWidth(nvmlDevice, unsigned *),
    nvmlDeviceGetBrand(nvmlDevice, unsigned *), nvmlDeviceGetArchitecture(nvmlDevice, unsigned *);
int nvmlDeviceGetClockInfo(nvmlDevice, unsigned, unsigned *);
int nvmlDeviceGetMigMode(nvmlDevice, unsigned *, unsigned *),
    nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice, unsigned, nvmlDevice *);

enum { INVALID_ARGUMENT = 2, NOT_FOUND = 6 };

static nvmlDevice device;

static int start(void **state) {
  setenv("FARFAULT_MACHINE", "h200", 1);
  return nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device);
}

static void test_board(void **state) {
  static const struct {
    int (*query)(nvmlDevice, unsigned *);
    unsigned value;
  } rows[] = {{nvmlDeviceGetNumGpuCores, 132 * 128},
              {nvmlDeviceGetMemoryBusWidth, 6144},
              {nvmlDeviceGetBrand, 14}, /* NVIDIA */
              {nvmlDeviceGetArchitecture, 9}};
  static const unsigned mhz[] = {1980, 1980, 3125}; /* graphics, SM, memory: machines/h200.yaml */
  unsigned value;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(rows[i].query(device, &value), 0);
    assert_int_equal(value, rows[i].value);
  }
  for (unsigned type = 0; type < 3; type++) {
    assert_int_equal(nvmlDeviceGetClockInfo(device, type, &value), 0);
    assert_int_equal(value, mhz[type]);
  }
}

/* It could be divided, and is not. */
static void test_mig(void **state) {
  unsigned current = 9, pending = 9;
  nvmlDevice instance;
  assert_int_equal(nvmlDeviceGetMigMode(device, &current, &pending), 0);
  assert_int_equal(current, 0);
  assert_int_equal(pending, 0);
  assert_int_equal(nvmlDeviceGetMigMode(device, &current, NULL), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &instance), NOT_FOUND);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_board), cmocka_unit_test(test_mig)};
  return cmocka_run_group_tests(tests, start, NULL);
}
