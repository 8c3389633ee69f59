/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of a machine's NVLinks. For test_nvlink_*.c: a machine is chosen once per process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct nvmlDevice *nvmlDevice;
typedef struct nvmlPciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} nvmlPciInfo;
typedef struct nvmlFieldValue {
  unsigned field, scope;
  int64_t timestamp, latency;
  int type, result;
  union {
    unsigned number;
    unsigned long long large;
  } value;
} nvmlFieldValue;
int nvmlInit_v2(void), nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice *);
int nvmlDeviceGetNvLinkState(nvmlDevice, unsigned, unsigned *),
    nvmlDeviceGetNvLinkVersion(nvmlDevice, unsigned, unsigned *),
    nvmlDeviceGetNvLinkCapability(nvmlDevice, unsigned, int, unsigned *),
    nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice, unsigned, int *),
    nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice, unsigned, nvmlPciInfo *),
    nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice, unsigned, nvmlPciInfo *),
    nvmlDeviceGetFieldValues(nvmlDevice, int, nvmlFieldValue *);

enum {
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  LINKS = 18,
  GPU = 0,
  SWITCH = 2,
  LINK_COUNT = 91,
  SPEED = 164,
  STATE,
  VERSION
};
enum { P2P = 0, SYSTEM_MEMORY = 1, ATOMICS = 2, VALID = 5, CAPABILITIES = 6 };

static void start(const char *machine, const char *devices) {
  setenv("FARFAULT_MACHINE", machine, 1);
  setenv("FARFAULT_DEVICES", devices, 1);
  assert_int_equal(nvmlInit_v2(), 0);
}

static nvmlDevice device_at(unsigned number) {
  nvmlDevice device;
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(number, &device), 0);
  return device;
}

static void expect_count(nvmlDevice device, unsigned count) {
  nvmlFieldValue field = {.field = LINK_COUNT};
  assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &field), 0);
  assert_int_equal(field.value.number, count);
}

/* The link leads to what is on the bus; bus 0: it is down. */
static void expect_link(nvmlDevice device, unsigned link, unsigned bus, int type) {
  unsigned value = 9;
  int found = 9;
  nvmlPciInfo info;
  assert_int_equal(nvmlDeviceGetNvLinkState(device, link, &value), 0);
  assert_int_equal(value, bus != 0);
  for (int which = 0; which < CAPABILITIES; which++) {
    assert_int_equal(nvmlDeviceGetNvLinkCapability(device, link, which, &value), 0);
    assert_int_equal(value, bus && (which == P2P || which == ATOMICS || which == VALID));
  }
  assert_int_equal(nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &found), bus ? 0 : NOT_SUPPORTED);
  assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &info), bus ? 0 : NOT_SUPPORTED);
  nvmlFieldValue fields[3] = {
      {.field = SPEED, .scope = link}, {.field = STATE, .scope = link}, {.field = VERSION, .scope = link}};
  assert_int_equal(nvmlDeviceGetFieldValues(device, 3, fields), 0);
  for (int i = 0; i < 3; i++) assert_int_equal(fields[i].result, 0);
  assert_int_equal(fields[0].value.number, bus ? 25000 : 0); /* MB/s, of both generations here */
  assert_int_equal(fields[1].value.number, bus != 0);
  assert_int_equal(fields[2].value.number, !bus ? 0 : type == SWITCH ? 6 : 2);
  if (!bus) return;
  assert_int_equal(found, type);
  assert_int_equal(info.bus, bus);
}
