/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1: what frameworks and monitors ask of NVIDIA's management library (NVML API reference), answered
 * from the machine file and from what this process has allocated. What a simulated GPU has not (temperature, power,
 * clocks, utilisation of the moment) is not supported, as on GPUs without the sensor.
 *
 * A device handle is the address of an entry of `devices`. Strings are cut to the caller's room:
 * NVML_ERROR_INSUFFICIENT_SIZE. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/properties.h"
#include "driver/stand_ins/nvml.h"

/* Which driver has a version of CUDA: of those that NVIDIA offers with its libraries, the newest of each (the release
 * notes of CUDA name the first). For a version between two the older one. */
static const struct {
  uint32_t cuda;
  const char *driver;
} drivers[] = {{13050, "620.70.06"}, {13030, "610.57.04"}, {13020, "595.71.05"},
               {13010, "590.48.01"}, {13000, "580.95.05"}, {12040, "550.54.15"},
               {12000, "525.60.13"}, {11040, "470.57.02"}, {0, "450.51.06"}};

static char devices[ENGINE_DEVICES_MAX];
static _Atomic uint32_t initialised; /* as often as it was, and was not shut down since */

typedef struct nvmlMemory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2;

typedef struct nvmlSystemDriverBranchInfo {
  unsigned version;
  char branch[80];
} nvmlSystemDriverBranchInfo;

nvmlReturn nvml_ready(void) { return initialised ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }

nvmlReturn nvml_device_number(nvmlDevice device, int *number) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!device || device < devices || device >= devices + engine_devices()) return NVML_ERROR_INVALID_ARGUMENT;
  *number = (int)(device - devices);
  return NVML_SUCCESS;
}

nvmlDevice nvml_device(unsigned number) { return devices + number; }

nvmlReturn nvml_attribute(nvmlDevice device, int attribute, unsigned *value) {
  int number, found;
  nvmlReturn error = value ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (!properties_attribute(engine_machine(), number, attribute, &found)) return NVML_ERROR_NOT_SUPPORTED;
  *value = (unsigned)found;
  return NVML_SUCCESS;
}

nvmlReturn nvml_text(char *to, unsigned room, const char *text) {
  if (!to) return NVML_ERROR_INVALID_ARGUMENT;
  if (strlen(text) >= room) return NVML_ERROR_INSUFFICIENT_SIZE;
  strcpy(to, text);
  return NVML_SUCCESS;
}

/* ---- the library and the system ---- */

static nvmlReturn start(void) {
  if (engine_start()) return NVML_ERROR_DRIVER_NOT_LOADED;
  initialised++;
  return NVML_SUCCESS;
}
EXPORT(nvmlInit, (void)) { return start(); }
EXPORT(nvmlInit_v2, (void)) { return start(); }
EXPORT(nvmlInitWithFlags, (unsigned flags)) { return start(); }
EXPORT(nvmlShutdown, (void)) {
  uint32_t before = initialised;
  while (before && !atomic_compare_exchange_weak(&initialised, &before, before - 1)) continue;
  return before ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn error);
const char *nvmlErrorString(nvmlReturn error) {
  switch (error) {
  case NVML_SUCCESS: return "Success";
  case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
  case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
  case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
  case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
  case NVML_ERROR_ALREADY_INITIALIZED: return "Already Initialized";
  case NVML_ERROR_NOT_FOUND: return "Not Found";
  case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
  case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
  case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
  case NVML_ERROR_TIMEOUT: return "Timeout";
  case NVML_ERROR_MEMORY: return "Insufficient Memory";
  case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
  default: return "Unknown Error";
  }
}

static const char *driver_version(void) {
  uint32_t n = 0, cuda = engine_driver_version();
  while (drivers[n].cuda > cuda) n++;
  return drivers[n].driver;
}
EXPORT(nvmlSystemGetDriverVersion, (char *version, unsigned room)) {
  return nvml_text(version, room, driver_version());
}
/* Branches have names such as r580_00, by the major number; of which of them a version is it does not say. */
EXPORT(nvmlSystemGetDriverBranch, (nvmlSystemDriverBranchInfo * info, unsigned room)) {
  char text[sizeof info->branch];
  if (!info) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != NVML_STRUCT_VERSION(nvmlSystemDriverBranchInfo, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  snprintf(text, sizeof text, "r%d_00", atoi(driver_version()));
  return nvml_text(info->branch, room < sizeof text ? room : sizeof text, text);
}
EXPORT(nvmlSystemGetNVMLVersion, (char *version, unsigned room)) {
  char text[32];
  snprintf(text, sizeof text, "%u.%s", engine_driver_version() / 1000, driver_version());
  return nvml_text(version, room, text);
}
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
/* Without "GPU-" as well: so the runtime has it, and NVIDIA's cuda.core asks for a device by it. */
static bool same_uuid(const char text[41], const char *asked) {
  return !strncmp(text, asked, 41) || !strncmp(text + 4, asked, 37);
}
EXPORT(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice *device)) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < engine_devices(); i++) {
    char text[41];
    write_uuid((int)i, text);
    if (same_uuid(text, uuid)) return by_index(i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}

/* 1: the text of nvmlDeviceGetUUID; 2: its 16 bytes */
typedef struct nvmlUUID {
  unsigned version, type;
  union {
    char text[41];
    unsigned char bytes[16];
  } value;
} nvmlUUID;
EXPORT(nvmlDeviceGetHandleByUUIDV, (const nvmlUUID *uuid, nvmlDevice *device)) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
  if (uuid->version != NVML_STRUCT_VERSION(nvmlUUID, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type != 1 && uuid->type != 2) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned i = 0; i < engine_devices(); i++) {
    char text[41];
    unsigned char id[16];
    write_uuid((int)i, text);
    properties_uuid(engine_machine(), (int)i, (char *)id);
    if (uuid->type == 1 ? !strncmp(text, uuid->value.text, sizeof text) : !memcmp(id, uuid->value.bytes, sizeof id))
      return by_index(i, device);
  }
  return NVML_ERROR_NOT_FOUND;
}
/* No device has a serial number: nvmlDeviceGetSerial is not supported, as on boards that have none. */
EXPORT(nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice *device)) {
  if (!initialised) return NVML_ERROR_UNINITIALIZED;
  return serial && device ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- what a device is ---- */

EXPORT(nvmlDeviceGetName, (nvmlDevice device, char *name, unsigned room)) {
  int number;
  nvmlReturn error = nvml_device_number(device, &number);
  return error ? error : nvml_text(name, room, engine_machine()->name);
}
EXPORT(nvmlDeviceGetUUID, (nvmlDevice device, char *uuid, unsigned room)) {
  int number;
  char text[41];
  nvmlReturn error = nvml_device_number(device, &number);
  if (error) return error;
  write_uuid(number, text);
  return nvml_text(uuid, room, text);
}
EXPORT(nvmlDeviceGetIndex, (nvmlDevice device, unsigned *index)) {
  int number;
  nvmlReturn error = index ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *index = (unsigned)number;
  return error;
}
EXPORT(nvmlDeviceGetMinorNumber, (nvmlDevice device, unsigned *minor)) { return nvmlDeviceGetIndex(device, minor); }

void nvml_pci_info(unsigned bus, nvmlPciInfo *info) {
  char text[16];
  *info = (nvmlPciInfo){.bus = bus};
  properties_bus_write((int)bus - 1, text);
  snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%s", text);
  snprintf(info->busId, sizeof info->busId, "0000%s", text);
}

static nvmlReturn pci_info(nvmlDevice device, nvmlPciInfo *info) {
  int number;
  nvmlReturn error = info ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) nvml_pci_info((unsigned)number + 1, info);
  return error;
}
/* Programs that call the older forms have shorter structs: up to pciDeviceId, and (version 2) pciSubSystemId, behind
 * which is room that stays as it is. */
static nvmlReturn short_pci_info(nvmlDevice device, void *info, size_t bytes) {
  nvmlPciInfo whole;
  nvmlReturn error = pci_info(device, info ? &whole : NULL);
  if (!error) memcpy(info, &whole, bytes);
  return error;
}
EXPORT(nvmlDeviceGetPciInfo, (nvmlDevice device, void *info)) {
  return short_pci_info(device, info, offsetof(nvmlPciInfo, pciSubSystemId));
}
EXPORT(nvmlDeviceGetPciInfo_v2, (nvmlDevice device, void *info)) {
  return short_pci_info(device, info, offsetof(nvmlPciInfo, busId));
}
EXPORT(nvmlDeviceGetPciInfo_v3, (nvmlDevice device, nvmlPciInfo *info)) { return pci_info(device, info); }

typedef struct nvmlPciInfoExt {
  unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
} nvmlPciInfoExt;
enum { CLASS_DISPLAY = 3, CLASS_3D = 2 }; /* as in pci-gpu/class */
EXPORT(nvmlDeviceGetPciInfoExt, (nvmlDevice device, nvmlPciInfoExt *info)) {
  nvmlPciInfo plain;
  if (!info) return NVML_ERROR_INVALID_ARGUMENT;
  if (info->version != NVML_STRUCT_VERSION(nvmlPciInfoExt, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlReturn error = pci_info(device, &plain);
  if (error) return error;
  *info =
      (nvmlPciInfoExt){.version = info->version, .bus = plain.bus, .baseClass = CLASS_DISPLAY, .subClass = CLASS_3D};
  snprintf(info->busId, sizeof info->busId, "%s", plain.busId);
  return NVML_SUCCESS;
}

EXPORT(nvmlDeviceGetCudaComputeCapability, (nvmlDevice device, int *major, int *minor)) {
  int number;
  nvmlReturn error = major && minor ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
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
  nvmlReturn error = architecture ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
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

/* ---- memory: this process's ---- */

nvmlReturn nvml_memory(nvmlDevice device, nvmlMemory *memory) {
  int number;
  uint64_t free_bytes, total;
  nvmlReturn error = nvml_device_number(device, &number);
  if (error) return error;
  if (engine_memory_info(number, &free_bytes, &total)) return NVML_ERROR_NOT_SUPPORTED;
  *memory = (nvmlMemory){total, free_bytes, total - free_bytes};
  return NVML_SUCCESS;
}
EXPORT(nvmlDeviceGetMemoryInfo, (nvmlDevice device, nvmlMemory *memory)) {
  return memory ? nvml_memory(device, memory) : NVML_ERROR_INVALID_ARGUMENT;
}
EXPORT(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice device, nvmlMemory_v2 *memory)) {
  nvmlMemory found;
  nvmlReturn error = memory ? nvml_memory(device, &found) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *memory = (nvmlMemory_v2){.version = memory->version, .total = found.total, .free = found.free, .used = found.used};
  return NVML_SUCCESS;
}
