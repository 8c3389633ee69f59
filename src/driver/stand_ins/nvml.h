/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libnvidia-ml.so.1 share (numbers and layouts: NVML API reference). nvml.c has the library, which
 * devices there are and their memory; nvml_board.c what a board is and how it is set; nvml_activity.c processes,
 * events, field values and what lies between devices, nvml_links.c NVLinks.
 *
 * What always holds: an answer comes from the machine file, from what this process has allocated, or is true of the
 * simulated GPU (its clocks are constant, its memory has no errors). Anything else is NVML_ERROR_NOT_SUPPORTED. */
#ifndef FF_DRIVER_NVML_H
#define FF_DRIVER_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/engine/engine.h"

#define EXPORT(name, parameters)                                     \
  __attribute__((visibility("default"))) nvmlReturn name parameters; \
  nvmlReturn name parameters
/* the version member of a struct that has one: its size, and the layout's number */
#define NVML_STRUCT_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

typedef enum nvmlReturn {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
} nvmlReturn;

typedef char *nvmlDevice; /* opaque: nvml_device_number */

typedef struct nvmlMemory { /* bytes */
  unsigned long long total, free, used;
} nvmlMemory;

typedef struct nvmlPciInfo {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} nvmlPciInfo;

void nvml_pci_info(unsigned bus, nvmlPciInfo *info); /* of what is alone on that PCI bus */
/* A field that is about NVLinks: how many the device has, or speed in MB/s, state, version of one, which are 0 where it
 * is down. False: it is not such a field, or the machine has no NVLinks. */
bool nvml_link_field(int device, unsigned field, unsigned link, unsigned *value);
/* The device's number; NVML_ERROR_UNINITIALIZED before nvmlInit, NVML_ERROR_INVALID_ARGUMENT for what is no handle. */
nvmlReturn nvml_device_number(nvmlDevice device, int *number);
nvmlReturn nvml_ready(void); /* NVML_ERROR_UNINITIALIZED before nvmlInit */
nvmlDevice nvml_device(unsigned number);
/* A device attribute (attributes.def) of the device, into *value. value NULL: NVML_ERROR_INVALID_ARGUMENT. */
nvmlReturn nvml_attribute(nvmlDevice device, int attribute, unsigned *value);
nvmlReturn nvml_memory(nvmlDevice device, nvmlMemory *memory);
/* Copies text into the caller's room of so many bytes; NVML_ERROR_INSUFFICIENT_SIZE, and nothing is written. */
nvmlReturn nvml_text(char *to, unsigned room, const char *text);
bool nvml_has_ecc(void); /* boards of the machine have error correction, and it is on */

#endif
