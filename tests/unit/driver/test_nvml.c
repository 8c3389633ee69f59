/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NVIDIA's management library: its devices are CUDA's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
int nvmlDeviceGetNvLinkState(nvmlDevice, unsigned, unsigned *);
int nvmlDeviceGetP2PStatus(nvmlDevice, nvmlDevice, int, int *);
int nvmlDeviceGetPciInfo_v3(nvmlDevice, pci_info *), nvmlDeviceGetPciInfo_v2(nvmlDevice, pci_info *),
    nvmlDeviceGetPciInfo(nvmlDevice, pci_info *);
typedef struct pci_info_ext {
  unsigned version, domain, bus, device, id, system, class, kind;
  char bus_id[32];
} pci_info_ext;
int nvmlDeviceGetPciInfoExt(nvmlDevice, pci_info_ext *);
int nvmlDeviceGetMemoryInfo(nvmlDevice, memory_info *);
int nvmlDeviceGetCudaComputeCapability(nvmlDevice, int *, int *);
int nvmlDeviceGetArchitecture(nvmlDevice, unsigned *);
int nvmlSystemGetCudaDriverVersion_v2(int *);
int nvmlSystemGetDriverVersion(char *, unsigned);
int nvmlSystemGetNVMLVersion(char *, unsigned);
typedef struct branch_info {
  unsigned version;
  char branch[80];
} branch_info;
int nvmlSystemGetDriverBranch(branch_info *, unsigned);
typedef struct memory_info_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory_info_v2;
typedef struct uuid_value {
  unsigned version, type;
  union {
    char text[41];
    unsigned char bytes[16];
  } value;
} uuid_value;
typedef struct process_info {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process_info;
typedef struct process_detail {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_bytes;
} process_detail;
typedef struct process_detail_list {
  unsigned version, mode, count;
  process_detail *list;
} process_detail_list;
typedef struct field_value {
  uint32_t field, scope;
  int64_t timestamp, latency;
  int type, result;
  union {
    unsigned number;
    unsigned long long large;
  } value;
} field_value;
typedef struct addressing_mode {
  unsigned version, value;
} addressing_mode;
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice, memory_info_v2 *);
int nvmlDeviceGetHandleByUUIDV(const uuid_value *, nvmlDevice *);
int nvmlDeviceGetHandleBySerial(const char *, nvmlDevice *);
int nvmlDeviceGetNumGpuCores(nvmlDevice, unsigned *);
int nvmlDeviceGetMemoryBusWidth(nvmlDevice, unsigned *);
int nvmlDeviceGetBrand(nvmlDevice, unsigned *);
int nvmlDeviceGetBoardId(nvmlDevice, unsigned *);
int nvmlDeviceGetMultiGpuBoard(nvmlDevice, unsigned *);
int nvmlDeviceOnSameBoard(nvmlDevice, nvmlDevice, int *);
int nvmlDeviceGetBusType(nvmlDevice, unsigned *);
int nvmlDeviceGetClockInfo(nvmlDevice, unsigned, unsigned *);
int nvmlDeviceGetMaxClockInfo(nvmlDevice, unsigned, unsigned *);
int nvmlDeviceGetClock(nvmlDevice, unsigned, unsigned, unsigned *);
int nvmlDeviceGetSupportedMemoryClocks(nvmlDevice, unsigned *, unsigned *);
int nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice, unsigned, unsigned *, unsigned *);
int nvmlDeviceGetPerformanceState(nvmlDevice, unsigned *);
int nvmlDeviceGetPowerState(nvmlDevice, unsigned *);
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice, unsigned long long *);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice, unsigned long long *);
int nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice, unsigned long long *);
int nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice, unsigned long long *);
int nvmlDeviceGetComputeMode(nvmlDevice, unsigned *);
int nvmlDeviceGetPersistenceMode(nvmlDevice, unsigned *);
int nvmlDeviceGetDisplayMode(nvmlDevice, unsigned *);
int nvmlDeviceGetDisplayActive(nvmlDevice, unsigned *);
int nvmlDeviceGetAccountingMode(nvmlDevice, unsigned *);
int nvmlDeviceGetVirtualizationMode(nvmlDevice, unsigned *);
int nvmlDeviceGetAddressingMode(nvmlDevice, addressing_mode *);
int nvmlDeviceGetMigMode(nvmlDevice, unsigned *, unsigned *);
int nvmlDeviceIsMigDeviceHandle(nvmlDevice, unsigned *);
int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice, unsigned *);
int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice, unsigned, nvmlDevice *);
int nvmlDeviceGetEccMode(nvmlDevice, unsigned *, unsigned *);
int nvmlDeviceGetDefaultEccMode(nvmlDevice, unsigned *);
int nvmlDeviceGetTotalEccErrors(nvmlDevice, unsigned, unsigned, unsigned long long *);
int nvmlDeviceGetMemoryErrorCounter(nvmlDevice, unsigned, unsigned, unsigned, unsigned long long *);
int nvmlDeviceGetCpuAffinity(nvmlDevice, unsigned, unsigned long *);
int nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice, unsigned, unsigned long *, unsigned);
int nvmlDeviceGetComputeRunningProcesses(nvmlDevice, unsigned *, memory_info *);
int nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice, unsigned *, process_info *);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice, unsigned *, process_info *);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice, unsigned *, const void *);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice, unsigned *, const void *);
int nvmlDeviceGetRunningProcessDetailList(nvmlDevice, process_detail_list *);
int nvmlSystemGetProcessName(unsigned, char *, unsigned);
int nvmlEventSetCreate(char **);
int nvmlEventSetFree(char *);
int nvmlDeviceGetSupportedEventTypes(nvmlDevice, unsigned long long *);
int nvmlDeviceRegisterEvents(nvmlDevice, unsigned long long, char *);
int nvmlEventSetWait_v2(char *, void *, unsigned);
int nvmlDeviceGetFieldValues(nvmlDevice, int, field_value *);
int nvmlUnitGetCount(unsigned *);
int nvmlGetExcludedDeviceCount(unsigned *);
int nvmlSystemGetHicVersion(unsigned *, const void *);
int nvmlDeviceGetTopologyCommonAncestor(nvmlDevice, nvmlDevice, unsigned *);
int nvmlDeviceGetTopologyNearestGpus(nvmlDevice, unsigned, unsigned *, nvmlDevice *);
CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int *);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuDeviceGetName(char *, int, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);

enum {
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  TIMEOUT = 10,
  VERSION_MISMATCH = 25
};
enum { MACHINE_CLOCK = 1530, MACHINE_MEMORY_CLOCK = 877 }; /* MHz: machines/v100.yaml */

static void test_before(void **state) {
  unsigned number;
  nvmlDevice device;
  assert_int_equal(nvmlDeviceGetCount_v2(&number), UNINITIALIZED);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), UNINITIALIZED);
  assert_int_equal(nvmlUnitGetCount(&number), UNINITIALIZED);
  assert_int_equal(nvmlDeviceGetNumGpuCores((nvmlDevice)&number, &number), UNINITIALIZED);
  assert_int_equal(nvmlDeviceGetEccMode((nvmlDevice)&number, &number, &number), UNINITIALIZED);
  assert_int_equal(nvmlShutdown(), UNINITIALIZED);
  assert_int_equal(nvmlInit_v2(), 0);
  assert_int_equal(nvmlInit_v2(), 0);
  assert_int_equal(nvmlShutdown(), 0); /* once for each */
  assert_int_equal(nvmlDeviceGetCount_v2(&number), 0);
  assert_int_equal(nvmlShutdown(), 0);
  assert_int_equal(nvmlDeviceGetCount_v2(&number), UNINITIALIZED);
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
    same = NULL;
    assert_int_equal(nvmlDeviceGetHandleByUUID(uuid + 4, &same), 0); /* without "GPU-" */
    assert_ptr_equal(same, device);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
    assert_int_equal(pci.bus, i + 1);
    enum { FIRST = 32, SECOND = 36 }; /* bytes of the older structs that are filled */
    pci_info first, second;
    memset(&first, 0x5a, sizeof first);
    memset(&second, 0x5a, sizeof second);
    assert_int_equal(nvmlDeviceGetPciInfo(device, &first), 0);
    assert_int_equal(nvmlDeviceGetPciInfo_v2(device, &second), 0);
    assert_memory_equal(&first, &pci, FIRST);
    assert_memory_equal(&second, &pci, SECOND);
    for (unsigned b = FIRST; b < sizeof first; b++) assert_int_equal(((unsigned char *)&first)[b], 0x5a);
    for (unsigned b = SECOND; b < sizeof second; b++) assert_int_equal(((unsigned char *)&second)[b], 0x5a);
    pci_info_ext more = {.version = 1u << 24 | sizeof more};
    assert_int_equal(nvmlDeviceGetPciInfoExt(device, &more), 0);
    assert_true(more.bus == i + 1 && more.class == 3 && more.kind == 2);
    assert_string_equal(more.bus_id, pci.bus_id);
    more.version = 2u << 24 | sizeof more;
    assert_int_equal(nvmlDeviceGetPciInfoExt(device, &more), VERSION_MISMATCH);
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
  memory_info_v2 second = {.version = sizeof second | 2 << 24};
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
  assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &second), 0);
  assert_int_equal(second.used, after.used);
  assert_int_equal(second.free, after.free);
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
    const char *driver; /* a driver's number and, behind the CUDA major, the management library's */
  } rows[] = {{NULL, 13050, "620.70.06"},   {"12.4", 12040, "550.54.15"}, {"13.5", 13050, "620.70.06"},
              {"13.0", 13000, "580.95.05"}, {"12.9", 12090, "550.54.15"}, {"11.0", 11000, "450.51.06"},
              {"12", 13050, "620.70.06"},   {"12.4x", 13050, "620.70.06"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int driver = 0, nvml = 0, status;
    void *function;
    if (rows[i].text) setenv("FARFAULT_DRIVER_VERSION", rows[i].text, 1);
    assert_int_equal(cuDriverGetVersion(&driver), CUDA_SUCCESS);
    assert_int_equal(nvmlSystemGetCudaDriverVersion_v2(&nvml), 0);
    assert_int_equal(driver, rows[i].version);
    assert_int_equal(nvml, rows[i].version);
    char said[32], library[32], expected[32];
    snprintf(expected, sizeof expected, "%d.%s", rows[i].version / 1000, rows[i].driver);
    assert_int_equal(nvmlSystemGetDriverVersion(said, sizeof said), 0);
    assert_int_equal(nvmlSystemGetNVMLVersion(library, sizeof library), 0);
    assert_string_equal(said, rows[i].driver);
    branch_info info = {.version = sizeof info | 1u << 24};
    assert_int_equal(nvmlSystemGetDriverBranch(&info, sizeof info.branch), 0);
    assert_true(info.branch[0] == 'r' && !strncmp(info.branch + 1, said, 3) && !strcmp(info.branch + 4, "_00"));
    assert_int_equal(nvmlSystemGetDriverBranch(&info, 4), INSUFFICIENT_SIZE);
    info.version = 0;
    assert_int_equal(nvmlSystemGetDriverBranch(&info, sizeof info.branch), VERSION_MISMATCH);
    assert_string_equal(library, expected);
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

/* Queries of one number: what a V100 answers. */
static void test_numbers(void **state) {
  static const struct {
    int (*query)(nvmlDevice, unsigned *);
    unsigned value;
  } rows[] = {
      {nvmlDeviceGetNumGpuCores, 80 * 64}, {nvmlDeviceGetMemoryBusWidth, 4096},  {nvmlDeviceGetBrand, 2},   /* Tesla */
      {nvmlDeviceGetBoardId, 0x200},       {nvmlDeviceGetMultiGpuBoard, 0},      {nvmlDeviceGetBusType, 2}, /* PCIe */
      {nvmlDeviceGetPerformanceState, 0},  {nvmlDeviceGetPowerState, 0},         {nvmlDeviceGetComputeMode, 0},
      {nvmlDeviceGetPersistenceMode, 0},   {nvmlDeviceGetDisplayMode, 0},        {nvmlDeviceGetDisplayActive, 0},
      {nvmlDeviceGetAccountingMode, 0},    {nvmlDeviceGetVirtualizationMode, 0}, {nvmlDeviceIsMigDeviceHandle, 0},
      {nvmlDeviceGetMaxMigDeviceCount, 0}, {nvmlDeviceGetDefaultEccMode, 1},
  };
  nvmlDevice device;
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    unsigned value = ~0u;
    assert_int_equal(rows[i].query(device, &value), 0);
    assert_int_equal(value, rows[i].value);
    assert_int_equal(rows[i].query(device, NULL), INVALID_ARGUMENT);
    assert_int_equal(rows[i].query(NULL, &value), INVALID_ARGUMENT);
  }
}

static void test_clocks(void **state) {
  nvmlDevice device;
  unsigned mhz, count = 0, list[2];
  unsigned long long mask;
  static const unsigned right[] = {MACHINE_CLOCK, MACHINE_CLOCK, MACHINE_MEMORY_CLOCK};
  int (*const reasons[])(nvmlDevice, unsigned long long *) = {
      nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons,
      nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons};
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  for (unsigned type = 0; type < 3; type++) { /* graphics, SM, memory */
    assert_int_equal(nvmlDeviceGetClockInfo(device, type, &mhz), 0);
    assert_int_equal(mhz, right[type]);
    assert_int_equal(nvmlDeviceGetMaxClockInfo(device, type, &mhz), 0);
    assert_int_equal(mhz, right[type]);
    assert_int_equal(nvmlDeviceGetClock(device, type, 0, &mhz), 0);
    assert_int_equal(mhz, right[type]);
    assert_int_equal(nvmlDeviceGetClock(device, type, 2, &mhz), NOT_SUPPORTED);
  }
  assert_int_equal(nvmlDeviceGetClockInfo(device, 3, &mhz), NOT_SUPPORTED); /* video */
  assert_int_equal(nvmlDeviceGetClockInfo(device, 4, &mhz), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetClock(device, 0, 4, &mhz), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetSupportedMemoryClocks(device, &count, NULL), INSUFFICIENT_SIZE);
  assert_int_equal(count, 1);
  count = 2;
  assert_int_equal(nvmlDeviceGetSupportedMemoryClocks(device, &count, list), 0);
  assert_int_equal(count, 1);
  assert_int_equal(list[0], MACHINE_MEMORY_CLOCK);
  assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, list[0], &count, list), 0);
  assert_int_equal(list[0], MACHINE_CLOCK);
  assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 1, &count, list), NOT_FOUND);
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    mask = ~0ull;
    assert_int_equal(reasons[i](device, &mask), 0);
    assert_int_equal(mask, 0);
  }
}

static void test_modes(void **state) {
  nvmlDevice device, instance;
  unsigned current = 0, pending = 0;
  unsigned long long errors = 1;
  addressing_mode mode = {sizeof mode | 1 << 24, ~0u};
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  assert_int_equal(nvmlDeviceGetEccMode(device, &current, &pending), 0);
  assert_int_equal(current, 1);
  assert_int_equal(pending, 1);
  assert_int_equal(nvmlDeviceGetTotalEccErrors(device, 1, 0, &errors), 0);
  assert_int_equal(errors, 0);
  errors = 1;
  assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 1, 2, &errors), 0);
  assert_int_equal(errors, 0);
  assert_int_equal(nvmlDeviceGetTotalEccErrors(device, 2, 0, &errors), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 0, 8, &errors), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetMigMode(device, &current, &pending), NOT_SUPPORTED); /* a V100 */
  assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &instance), NOT_SUPPORTED);
  assert_int_equal(nvmlDeviceGetAddressingMode(device, &mode), 0);
  assert_int_equal(mode.value, 0);
  mode.version = 1;
  assert_int_equal(nvmlDeviceGetAddressingMode(device, &mode), VERSION_MISMATCH);
}

static void test_handles(void **state) {
  nvmlDevice device, same;
  uuid_value id = {sizeof id | 1 << 24, 1, {{0}}};
  memory_info_v2 memory = {.version = sizeof memory | 2 << 24};
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), 0);
  assert_int_equal(nvmlDeviceGetUUID(device, id.value.text, sizeof id.value.text), 0);
  assert_int_equal(nvmlDeviceGetHandleByUUIDV(&id, &same), 0);
  assert_ptr_equal(same, device);
  unsigned char bytes[16];
  for (int i = 0, at = 4; i < 16; i++, at += 2) { /* behind "GPU-" */
    if (id.value.text[at] == '-') at++;
    bytes[i] = (unsigned char)strtoul((char[]){id.value.text[at], id.value.text[at + 1], 0}, NULL, 16);
  }
  id.type = 2;
  memcpy(id.value.bytes, bytes, sizeof bytes);
  assert_int_equal(nvmlDeviceGetHandleByUUIDV(&id, &same), 0);
  assert_ptr_equal(same, device);
  id.value.bytes[0]++;
  assert_int_equal(nvmlDeviceGetHandleByUUIDV(&id, &same), NOT_FOUND);
  id.type = 0;
  assert_int_equal(nvmlDeviceGetHandleByUUIDV(&id, &same), INVALID_ARGUMENT);
  id.version = 0;
  assert_int_equal(nvmlDeviceGetHandleByUUIDV(&id, &same), VERSION_MISMATCH);
  assert_int_equal(nvmlDeviceGetHandleBySerial("0123", &same), NOT_FOUND);
  assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &memory), 0);
  assert_int_equal(memory.total, memory.free + memory.used + memory.reserved);
  memory.version = 1;
  assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &memory), VERSION_MISMATCH);
}

static void test_processes(void **state) {
  nvmlDevice device, other;
  unsigned count = 0;
  process_info one[2];
  memory_info old[1];
  CUdeviceptr memory;
  char name[512];
  process_detail detail;
  process_detail_list list = {sizeof list | 1 << 24, 0, 0, NULL};
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &other), 0);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), 0);
  assert_int_equal(cuMemAlloc_v2(&memory, 1 << 20), CUDA_SUCCESS);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), INSUFFICIENT_SIZE);
  assert_int_equal(count, 1);
  count = 2;
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, one), 0);
  assert_int_equal(count, 1);
  assert_int_equal(one[0].pid, getpid());
  assert_int_equal(one[0].used, 1 << 20);
  assert_int_equal(one[0].gpu_instance, ~0u);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v2(device, &count, one), 0);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device, &count, old), 0); /* 16 bytes each */
  assert_int_equal(old[0].free, 1 << 20);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device, &list), INSUFFICIENT_SIZE);
  assert_int_equal(list.count, 1);
  list.list = &detail;
  assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device, &list), 0);
  assert_int_equal(detail.pid, getpid());
  assert_int_equal(detail.used, 1 << 20);
  list.mode = 1;
  assert_int_equal(nvmlDeviceGetRunningProcessDetailList(device, &list), 0);
  assert_int_equal(list.count, 0);
  assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(other, &count, one), 0);
  assert_int_equal(count, 0);
  count = 2;
  assert_int_equal(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, one), 0);
  assert_int_equal(count, 0);
  count = 2;
  assert_int_equal(nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &count, one), 0);
  assert_int_equal(count, 0);
  assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
  assert_int_equal(nvmlSystemGetProcessName((unsigned)getpid(), name, sizeof name), 0);
  assert_non_null(strstr(name, "test_nvml"));
  assert_int_equal(nvmlSystemGetProcessName(0, name, sizeof name), NOT_FOUND);
}

static void test_events(void **state) {
  nvmlDevice device;
  unsigned long long types = 1;
  char *set, *sets[256], data[32];
  int made = 0;
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  assert_int_equal(nvmlDeviceGetSupportedEventTypes(device, &types), 0);
  assert_int_equal(types, 0);
  assert_int_equal(nvmlEventSetCreate(&set), 0);
  assert_int_equal(nvmlDeviceRegisterEvents(device, 0, set), 0);
  assert_int_equal(nvmlDeviceRegisterEvents(device, 8, set), NOT_SUPPORTED); /* Xid */
  assert_int_equal(nvmlEventSetWait_v2(set, data, 1), TIMEOUT);
  assert_int_equal(nvmlEventSetWait_v2(set, NULL, 1), INVALID_ARGUMENT);
  assert_int_equal(nvmlEventSetFree(set), 0);
  assert_int_equal(nvmlEventSetFree(set), INVALID_ARGUMENT);
  assert_int_equal(nvmlEventSetWait_v2(set, data, 1), INVALID_ARGUMENT);
  while (made < 256 && !nvmlEventSetCreate(sets + made)) made++;
  assert_int_equal(made, 256);
  assert_int_equal(nvmlEventSetCreate(&set), 20); /* NVML_ERROR_MEMORY */
  while (made--) assert_int_equal(nvmlEventSetFree(sets[made]), 0);
}

static void test_fields(void **state) {
  nvmlDevice device;
  field_value fields[] = {{.field = 1}, {.field = 4}, {.field = 91}, {.field = 82}}; /* ECC, errors, NVLinks, heat */
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
  assert_int_equal(nvmlDeviceGetFieldValues(device, 4, fields), 0);
  assert_int_equal(fields[0].result, 0);
  assert_int_equal(fields[0].value.number, 1);
  assert_int_equal(fields[1].result, 0);
  assert_int_equal(fields[1].value.large, 0);
  assert_int_equal(fields[2].result, 0);
  assert_int_equal(fields[2].value.number, 0);
  assert_int_equal(fields[3].result, NOT_SUPPORTED);
  assert_int_equal(nvmlDeviceGetFieldValues(device, 0, fields), INVALID_ARGUMENT);
}

static void test_topology(void **state) {
  nvmlDevice a, b, list[2];
  unsigned level, count = 0;
  int same;
  unsigned long set[4];
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &a), 0);
  assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &b), 0);
  assert_int_equal(nvmlDeviceGetTopologyCommonAncestor(a, a, &level), 0);
  assert_int_equal(level, 0);
  assert_int_equal(nvmlDeviceGetTopologyCommonAncestor(a, b, &level), 0);
  assert_int_equal(level, 30); /* host bridge */
  assert_int_equal(nvmlDeviceGetTopologyNearestGpus(a, 30, &count, NULL), 0);
  assert_int_equal(count, 1);
  assert_int_equal(nvmlDeviceGetTopologyNearestGpus(a, 30, &count, list), 0);
  assert_ptr_equal(list[0], b);
  assert_int_equal(nvmlDeviceGetTopologyNearestGpus(a, 10, &count, list), 0);
  assert_int_equal(count, 0);
  assert_int_equal(nvmlDeviceGetTopologyNearestGpus(a, 30, &count, list), INSUFFICIENT_SIZE);
  assert_int_equal(nvmlDeviceOnSameBoard(a, b, &same), 0);
  assert_int_equal(same, 0);
  assert_int_equal(nvmlDeviceGetCpuAffinity(a, 4, set), 0);
  assert_int_equal(set[0] & 1, 1);
  assert_int_equal(nvmlDeviceGetCpuAffinityWithinScope(a, 4, set, 1), 0);
  assert_int_equal(nvmlDeviceGetCpuAffinityWithinScope(a, 4, set, 2), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetCpuAffinity(a, 0, set), INVALID_ARGUMENT);
  assert_int_equal(nvmlDeviceGetNvLinkState(a, 0, &count), NOT_SUPPORTED); /* it has none: nvlink_*.c */
  assert_int_equal(nvmlUnitGetCount(&count), 0);
  assert_int_equal(count, 0);
  assert_int_equal(nvmlGetExcludedDeviceCount(&count), 0);
  assert_int_equal(nvmlSystemGetHicVersion(&count, NULL), 0);
}

static int open_devices(void **state) {
  CUcontext context;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_before),  cmocka_unit_test(test_devices),   cmocka_unit_test(test_what),
      cmocka_unit_test(test_version), cmocka_unit_test(test_pairs),     cmocka_unit_test(test_wrong),
      cmocka_unit_test(test_numbers), cmocka_unit_test(test_clocks),    cmocka_unit_test(test_modes),
      cmocka_unit_test(test_handles), cmocka_unit_test(test_processes), cmocka_unit_test(test_events),
      cmocka_unit_test(test_fields),  cmocka_unit_test(test_topology),
  };
  return cmocka_run_group_tests(tests, open_devices, NULL);
}
