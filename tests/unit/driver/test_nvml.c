/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NVIDIA's management library: its devices are CUDA's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"

typedef struct nvmlDevice *nvmlDevice;
typedef struct pci_info {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} pci_info;
typedef struct memory_info {
  unsigned long long total, free, used;
} memory_info;
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *);
int nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice *);
int nvmlDeviceGetHandleByUUID(const char *, nvmlDevice *);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice *);
int nvmlDeviceGetName(nvmlDevice, char *, unsigned);
int nvmlDeviceGetUUID(nvmlDevice, char *, unsigned);
int nvmlDeviceGetIndex(nvmlDevice, unsigned *);
int nvmlDeviceGetP2PStatus(nvmlDevice, nvmlDevice, int, int *);
int nvmlDeviceGetPciInfo_v3(nvmlDevice, pci_info *);
int nvmlDeviceGetMemoryInfo(nvmlDevice, memory_info *);
int nvmlDeviceGetCudaComputeCapability(nvmlDevice, int *, int *);
int nvmlDeviceGetArchitecture(nvmlDevice, unsigned *);
int nvmlSystemGetCudaDriverVersion_v2(int *);
CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int *);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuDeviceGetName(char *, int, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);

enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

static void test_before(void **state) {
  unsigned number;
  nvmlDevice device;
  assert_int_equal(nvmlDeviceGetCount_v2(&number), UNINITIALIZED);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), UNINITIALIZED);
  assert_int_equal(nvmlShutdown(), UNINITIALIZED);
  assert_int_equal(nvmlInit_v2(), 0);
}

static void test_devices(void **state) {
  unsigned count, index;
  assert_int_equal(nvmlDeviceGetCount_v2(&count), 0);
  assert_int_equal(count, 2);
  for (unsigned i = 0; i < count; i++) {
    nvmlDevice device, same;
    char uuid[96], name[96], right[96];
    pci_info pci;
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(i, &device), 0);
    assert_int_equal(nvmlDeviceGetUUID(device, uuid, sizeof uuid), 0);
    assert_int_equal(strlen(uuid), 40);
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
    assert_int_equal(pci.bus, i + 1);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &same), 0);
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetIndex(device, &index), 0);
    assert_int_equal(index, i);
    assert_int_equal(nvmlDeviceGetName(device, name, sizeof name), 0);
    assert_int_equal(cuDeviceGetName(right, sizeof right, (int)i), CUDA_SUCCESS);
    assert_string_equal(name, right);
    assert_int_equal(nvmlDeviceGetName(device, name, 4), INSUFFICIENT_SIZE);
  }
}

static void test_what(void **state) {
  nvmlDevice device;
  memory_info before, after;
  CUdeviceptr memory;
  int major, minor;
  unsigned architecture;
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  assert_int_equal(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), 0);
  assert_int_equal(major, 7);
  assert_int_equal(nvmlDeviceGetArchitecture(device, &architecture), 0);
  assert_int_equal(architecture, 5); /* Volta */
  assert_int_equal(nvmlDeviceGetMemoryInfo(device, &before), 0);
  assert_int_equal(cuMemAlloc_v2(&memory, 1 << 20), CUDA_SUCCESS);
  assert_int_equal(nvmlDeviceGetMemoryInfo(device, &after), 0);
  assert_int_equal(after.used - before.used, 1 << 20);
  assert_int_equal(after.total, after.free + after.used);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), 0); /* which is not the current one */
  assert_int_equal(nvmlDeviceGetMemoryInfo(device, &after), 0);
  assert_int_equal(after.used, 0);
  assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
}

/* All libraries say the same version of CUDA, and the driver's functions of later ones are refused. */
static void test_version(void **state) {
  static const struct {
    const char *text;
    int version;
  } rows[] = {{NULL, 13000}, {"12.4", 12040}, {"13.5", 13050}, {"11.0", 11000}, {"12", 13000}, {"12.4x", 13000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int driver = 0, nvml = 0, status;
    void *function;
    if (rows[i].text) setenv("FARFAULT_DRIVER_VERSION", rows[i].text, 1);
    assert_int_equal(cuDriverGetVersion(&driver), CUDA_SUCCESS);
    assert_int_equal(nvmlSystemGetCudaDriverVersion_v2(&nvml), 0);
    assert_int_equal(driver, rows[i].version);
    assert_int_equal(nvml, rows[i].version);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &function, driver, 0, &status), CUDA_SUCCESS);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &function, driver + 10, 0, &status), CUDA_ERROR_INVALID_VALUE);
  }
  unsetenv("FARFAULT_DRIVER_VERSION");
}

static void test_pairs(void **state) {
  nvmlDevice a, b;
  int status = -1;
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &a), 0);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &b), 0);
  for (int index = 0; index < 5; index++) { /* read, write, NVLink, atomics, PCI */
    assert_int_equal(nvmlDeviceGetP2PStatus(a, b, index, &status), 0);
    assert_int_equal(status, index == 2 ? 5 : 0); /* NVML_P2P_STATUS_NOT_SUPPORTED, _OK */
  }
  assert_int_equal(nvmlDeviceGetP2PStatus(a, b, 5, &status), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetP2PStatus(a, NULL, 0, &status), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetP2PStatus(a, b, 0, NULL), INVALID_ARGUMENT);
}

static void test_wrong(void **state) {
  nvmlDevice device;
  unsigned number;
  char name[8];
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &device), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-none", &device), NOT_FOUND);
  assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0000:07:00.0", &device), NOT_FOUND);
  assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("nonsense", &device), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetIndex(NULL, &number), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetName((nvmlDevice)name, name, sizeof name), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetCount_v2(NULL), INVALID_ARGUMENT);
}

static int open_devices(void **state) {
  CUcontext context;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_before),  cmocka_unit_test(test_devices), cmocka_unit_test(test_what),
      cmocka_unit_test(test_version), cmocka_unit_test(test_pairs),   cmocka_unit_test(test_wrong),
  };
  return cmocka_run_group_tests(tests, open_devices, NULL);
}
