/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1: what frameworks and monitors ask of NVIDIA's management library (NVML API reference), answered
 * from the machine file and from what this process has allocated. What a simulated GPU has not (temperature, power,
 * clocks, utilisation of the moment) is not supported, as on GPUs without the sensor.
 *
 * A device handle is the address of an entry of `devices`. Strings are cut to the caller's room:
 * NVML_ERROR_INSUFFICIENT_SIZE. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "driver/engine/engine.h"
#include "driver/engine/engine_peer.h"
#include "driver/properties.h"

#define EXPORT(name, parameters)                                     \
  __attribute__((visibility("default"))) nvmlReturn name parameters; \
  nvmlReturn name parameters
#define DRIVER_VERSION "580.00"

typedef enum nvmlReturn {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
} nvmlReturn;

typedef char *nvmlDevice; /* points into `devices` */
static char devices[ENGINE_DEVICES_MAX];
static bool initialised;

typedef struct nvmlPciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} nvmlPciInfo;

typedef struct nvmlMemory {
  unsigned long long total, free, used;
} nvmlMemory;

typedef struct nvmlMemory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2;

static nvmlReturn number_of(nvmlDevice device, int *number) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!device || device < devices || device >= devices + engine_devices()) return NVML_ERROR_INVALID_ARGUMENT;
  *number = (int)(device - devices);
  return NVML_SUCCESS;
}

static nvmlReturn give(char *to, unsigned room, const char *text) {
  if (!to) return NVML_ERROR_INVALID_ARGUMENT;
  if (strlen(text) >= room) return NVML_ERROR_INSUFFICIENT_SIZE;
  strcpy(to, text);
  return NVML_SUCCESS;
}

/* ---- the library and the system ---- */

static nvmlReturn start(void) {
  if (engine_start()) return NVML_ERROR_DRIVER_NOT_LOADED;
  initialised = true;
  return NVML_SUCCESS;
}
EXPORT(nvmlInit, (void)) { return start(); }
EXPORT(nvmlInit_v2, (void)) { return start(); }
EXPORT(nvmlInitWithFlags, (unsigned flags)) { return start(); }
EXPORT(nvmlShutdown, (void)) { return initialised ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn error);
const char *nvmlErrorString(nvmlReturn error) {
  switch (error) {
  case NVML_SUCCESS: return "Success";
  case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
  case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
  case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
  case NVML_ERROR_NOT_FOUND: return "Not Found";
  case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
  case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
  default: return "Unknown Error";
  }
}

EXPORT(nvmlSystemGetDriverVersion, (char *version, unsigned room)) { return give(version, room, DRIVER_VERSION); }
EXPORT(nvmlSystemGetNVMLVersion, (char *version, unsigned room)) { return give(version, room, "13." DRIVER_VERSION); }
static nvmlReturn cuda_version(int *version) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  *version = (int)engine_driver_version();
  return NVML_SUCCESS;
}
EXPORT(nvmlSystemGetCudaDriverVersion, (int *version)) { return cuda_version(version); }
EXPORT(nvmlSystemGetCudaDriverVersion_v2, (int *version)) { return cuda_version(version); }

/* ---- which devices there are ---- */

static nvmlReturn count(unsigned *number) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!number) return NVML_ERROR_INVALID_ARGUMENT;
  *number = engine_devices();
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetCount, (unsigned *number)) { return count(number); }
EXPORT(nvmlDeviceGetCount_v2, (unsigned *number)) { return count(number); }

static nvmlReturn by_index(unsigned index, nvmlDevice *device) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!device || index >= engine_devices()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = devices + index;
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetHandleByIndex, (unsigned index, nvmlDevice *device)) { return by_index(index, device); }
EXPORT(nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvmlDevice *device)) { return by_index(index, device); }

static nvmlReturn by_bus(const char *text, nvmlDevice *device) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  int number = text ? properties_bus_read(text) : -1;
  if (number < 0 || !device) return NVML_ERROR_INVALID_ARGUMENT;
  return (uint32_t)number < engine_devices() ? by_index((unsigned)number, device) : NVML_ERROR_NOT_FOUND;
}
EXPORT(nvmlDeviceGetHandleByPciBusId, (const char *text, nvmlDevice *device)) { return by_bus(text, device); }
EXPORT(nvmlDeviceGetHandleByPciBusId_v2, (const char *text, nvmlDevice *device)) { return by_bus(text, device); }

/* "GPU-" and the identifier as five groups of digits. */
static void write_uuid(int number, char text[41]) {
  unsigned char id[16];
  properties_uuid(engine_machine(), number, (char *)id);
  size_t at = (size_t)snprintf(text, 41, "GPU-");
  for (int i = 0; i < 16; i++) {
    bool gap = i == 4 || i == 6 || i == 8 || i == 10;
    at += (size_t)snprintf(text + at, 41 - at, "%s%02x", gap ? "-" : "", id[i]);
  }
}
EXPORT(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice *device)) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < engine_devices(); i++) {
    char text[41];
    write_uuid((int)i, text);
    if (!strcmp(text, uuid)) return by_index(i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}

/* ---- what a device is ---- */

EXPORT(nvmlDeviceGetName, (nvmlDevice device, char *name, unsigned room)) {
  int number;
  nvmlReturn error = number_of(device, &number);
  return error ? error : give(name, room, engine_machine()->name);
}
EXPORT(nvmlDeviceGetUUID, (nvmlDevice device, char *uuid, unsigned room)) {
  int number;
  char text[41];
  nvmlReturn error = number_of(device, &number);
  if (error) return error;
  write_uuid(number, text);
  return give(uuid, room, text);
}
EXPORT(nvmlDeviceGetIndex, (nvmlDevice device, unsigned *index)) {
  int number;
  nvmlReturn error = index ? number_of(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *index = (unsigned)number;
  return error;
}
EXPORT(nvmlDeviceGetMinorNumber, (nvmlDevice device, unsigned *minor)) { return nvmlDeviceGetIndex(device, minor); }

static nvmlReturn pci_info(nvmlDevice device, nvmlPciInfo *info) {
  int number;
  char text[16];
  nvmlReturn error = info ? number_of(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  *info = (nvmlPciInfo){.bus = (unsigned)number + 1};
  properties_bus_write(number, text);
  snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%s", text);
  snprintf(info->busId, sizeof info->busId, "0000%s", text);
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetPciInfo, (nvmlDevice device, nvmlPciInfo *info)) { return pci_info(device, info); }
EXPORT(nvmlDeviceGetPciInfo_v2, (nvmlDevice device, nvmlPciInfo *info)) { return pci_info(device, info); }
EXPORT(nvmlDeviceGetPciInfo_v3, (nvmlDevice device, nvmlPciInfo *info)) { return pci_info(device, info); }

EXPORT(nvmlDeviceGetCudaComputeCapability, (nvmlDevice device, int *major, int *minor)) {
  int number;
  nvmlReturn error = major && minor ? number_of(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  *major = (int)engine_machine()->compute_major;
  *minor = (int)engine_machine()->compute_minor;
  return NVML_SUCCESS;
}

/* NVML's numbers of architectures, by the least compute capability of each. */
EXPORT(nvmlDeviceGetArchitecture, (nvmlDevice device, unsigned *architecture)) {
  static const struct {
    unsigned capability, number;
  } list[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {30, 2}};
  int number, major, minor;
  nvmlReturn error = architecture ? number_of(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) error = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
  if (error) return error;
  *architecture = 0xffffffffu; /* unknown: older than all of these */
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if ((unsigned)(10 * major + minor) >= list[i].capability) {
      *architecture = list[i].number;
      break;
    }
  return NVML_SUCCESS;
}

/* ---- pairs of devices ---- */

typedef enum nvmlP2PStatus { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 } nvmlP2PStatus;
typedef enum nvmlP2PCaps { /* what a pair of devices may be able to do */
                           NVML_P2P_CAPS_INDEX_READ,
                           NVML_P2P_CAPS_INDEX_WRITE,
                           NVML_P2P_CAPS_INDEX_NVLINK,
                           NVML_P2P_CAPS_INDEX_ATOMICS,
                           NVML_P2P_CAPS_INDEX_PCI,
                           NVML_P2P_CAPS_INDEX_UNKNOWN,
} nvmlP2PCaps;

/* By the machine's links; without any, each device reaches each by PCIe. */
EXPORT(nvmlDeviceGetP2PStatus, (nvmlDevice device, nvmlDevice peer, nvmlP2PCaps index, nvmlP2PStatus *status)) {
  int number, other;
  nvmlReturn error = number_of(device, &number);
  if (!error) error = number_of(peer, &other);
  if (error) return error;
  if (!status || (unsigned)index >= NVML_P2P_CAPS_INDEX_UNKNOWN) return NVML_ERROR_INVALID_ARGUMENT;
  bool there = index == NVML_P2P_CAPS_INDEX_NVLINK ? engine_peer_has_nvlink(number, other)
                                                   : number == other || engine_peer_possible(number, other);
  *status = there ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

/* ---- memory: this process's ---- */

static nvmlReturn memory_of(nvmlDevice device, nvmlMemory *memory) {
  int number;
  uint64_t free_bytes, total;
  nvmlReturn error = number_of(device, &number);
  if (error) return error;
  if (engine_memory_info(number, &free_bytes, &total)) return NVML_ERROR_NOT_SUPPORTED;
  *memory = (nvmlMemory){total, free_bytes, total - free_bytes};
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetMemoryInfo, (nvmlDevice device, nvmlMemory *memory)) {
  return memory ? memory_of(device, memory) : NVML_ERROR_INVALID_ARGUMENT;
}
EXPORT(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice device, nvmlMemory_v2 *memory)) {
  nvmlMemory found;
  nvmlReturn error = memory ? memory_of(device, &found) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  *memory = (nvmlMemory_v2){.version = memory->version, .total = found.total, .free = found.free, .used = found.used};
  return NVML_SUCCESS;
}
