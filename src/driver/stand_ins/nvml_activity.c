/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on the devices, events, field values, and what lies between devices, for NVML.
 *
 * What always holds: the only process that is known is this one; no event ever arises, so that a wait for one ends by
 * its timeout. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/engine/engine_peer.h"
#include "driver/stand_ins/nvml.h"

/* ---- processes ---- */

typedef struct nvmlProcessInfo_v1 {
  unsigned pid;
  unsigned long long used; /* bytes */
} nvmlProcessInfo_v1;
typedef struct nvmlProcessInfo { /* _v2 and _v3 */
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance; /* all bits: MIG is off */
} nvmlProcessInfo;
typedef struct nvmlProcessDetail {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_bytes;
} nvmlProcessDetail;
typedef struct nvmlProcessDetailList {
  unsigned version, mode, count;
  nvmlProcessDetail *list;
} nvmlProcessDetailList;

/* How many processes compute on the device: this one, if it has memory there, or none. */
static nvmlReturn computing(nvmlDevice device, unsigned *count, unsigned long long *used) {
  nvmlMemory memory;
  nvmlReturn error = nvml_memory(device, &memory);
  if (error) return error;
  *count = memory.used > 0;
  *used = memory.used;
  return NVML_SUCCESS;
}

/* *count: room in `list`, then how many there are. *used: bytes, if *write, where the caller has room for the one. */
static nvmlReturn compute_list(nvmlDevice device, unsigned *count, const void *list, bool *write,
                               unsigned long long *used) {
  unsigned found;
  *write = false;
  nvmlReturn error = count ? computing(device, &found, used) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  bool room = *count >= found;
  if (room && found && !list) return NVML_ERROR_INVALID_ARGUMENT;
  *count = found;
  *write = room && found;
  return room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
static nvmlReturn compute_processes(nvmlDevice device, unsigned *count, nvmlProcessInfo *list) {
  bool write;
  unsigned long long used;
  nvmlReturn error = compute_list(device, count, list, &write, &used);
  if (write) *list = (nvmlProcessInfo){(unsigned)getpid(), used, ~0u, ~0u};
  return error;
}
EXPORT(nvmlDeviceGetComputeRunningProcesses, (nvmlDevice device, unsigned *count, nvmlProcessInfo_v1 *list)) {
  bool write;
  unsigned long long used;
  nvmlReturn error = compute_list(device, count, list, &write, &used);
  if (write) *list = (nvmlProcessInfo_v1){(unsigned)getpid(), used};
  return error;
}
EXPORT(nvmlDeviceGetComputeRunningProcesses_v2, (nvmlDevice device, unsigned *count, nvmlProcessInfo *list)) {
  return compute_processes(device, count, list);
}
EXPORT(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice device, unsigned *count, nvmlProcessInfo *list)) {
  return compute_processes(device, count, list);
}

/* Of graphics and of MPS there are none. */
static nvmlReturn no_processes(nvmlDevice device, unsigned *count) {
  int number;
  nvmlReturn error = count ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *count = 0;
  return error;
}
#define NO_PROCESSES(name) \
  EXPORT(name, (nvmlDevice device, unsigned *count, const void *list)) { return no_processes(device, count); }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* mode: 0 compute, 1 graphics, 2 MPS */
EXPORT(nvmlDeviceGetRunningProcessDetailList, (nvmlDevice device, nvmlProcessDetailList *list)) {
  int number;
  nvmlReturn error = list ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (list->version != NVML_STRUCT_VERSION(nvmlProcessDetailList, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (list->mode > 2) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->mode) return no_processes(device, &list->count);
  bool write;
  unsigned long long used;
  if (!list->list) list->count = 0; /* only how many */
  error = compute_list(device, &list->count, list->list, &write, &used);
  if (write) *list->list = (nvmlProcessDetail){(unsigned)getpid(), used, ~0u, ~0u, 0};
  return error;
}

/* The first word of a process's command line, cut to `room`. */
EXPORT(nvmlSystemGetProcessName, (unsigned pid, char *name, unsigned room)) {
  char path[32], text[1024];
  nvmlReturn error = nvml_ready();
  if (error) return error;
  if (!name || !room) return NVML_ERROR_INVALID_ARGUMENT;
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  FILE *file = fopen(path, "re");
  if (!file) return NVML_ERROR_NOT_FOUND;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  snprintf(name, room, "%s", text);
  return NVML_SUCCESS;
}

/* ---- events: sets that nothing ever comes into ---- */

enum { EVENT_SETS_MAX = 256, WAIT_MAX_MS = 1000 };
typedef char *nvmlEventSet;             /* points into `event_sets` */
static char event_sets[EVENT_SETS_MAX]; /* 1: in use */

static nvmlReturn event_set_check(nvmlEventSet set) {
  nvmlReturn error = nvml_ready();
  if (error) return error;
  bool live = set && set >= event_sets && set < event_sets + EVENT_SETS_MAX && __atomic_load_n(set, __ATOMIC_ACQUIRE);
  return live ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
EXPORT(nvmlEventSetCreate, (nvmlEventSet * set)) {
  nvmlReturn error = nvml_ready();
  if (error || !set) return error ? error : NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < EVENT_SETS_MAX; i++)
    if (!__atomic_exchange_n(event_sets + i, 1, __ATOMIC_ACQ_REL)) {
      *set = event_sets + i;
      return NVML_SUCCESS;
    }
  return NVML_ERROR_MEMORY;
}
EXPORT(nvmlEventSetFree, (nvmlEventSet set)) {
  nvmlReturn error = event_set_check(set);
  if (!error) __atomic_store_n(set, 0, __ATOMIC_RELEASE);
  return error;
}
EXPORT(nvmlDeviceGetSupportedEventTypes, (nvmlDevice device, unsigned long long *types)) {
  int number;
  nvmlReturn error = types ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) *types = 0;
  return error;
}
EXPORT(nvmlDeviceRegisterEvents, (nvmlDevice device, unsigned long long types, nvmlEventSet set)) {
  int number;
  nvmlReturn error = nvml_device_number(device, &number);
  if (!error) error = event_set_check(set);
  return error || !types ? error : NVML_ERROR_NOT_SUPPORTED;
}
/* Waits `ms` milliseconds, a second at most: nobody would end a longer wait. */
static nvmlReturn event_wait(nvmlEventSet set, const void *data, unsigned ms) {
  nvmlReturn error = event_set_check(set);
  if (error || !data) return error ? error : NVML_ERROR_INVALID_ARGUMENT;
  if (ms > WAIT_MAX_MS) ms = WAIT_MAX_MS;
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
  return NVML_ERROR_TIMEOUT;
}
EXPORT(nvmlEventSetWait, (nvmlEventSet set, void *data, unsigned ms)) { return event_wait(set, data, ms); }
EXPORT(nvmlEventSetWait_v2, (nvmlEventSet set, void *data, unsigned ms)) { return event_wait(set, data, ms); }

/* ---- field values ---- */

typedef struct nvmlFieldValue {
  uint32_t field, scope;
  int64_t timestamp, latency; /* us */
  int type, result;           /* type 1: unsigned int; 3: unsigned long long */
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
} nvmlFieldValue;

enum { /* NVML_FI_DEV_* */
       FIELD_ECC_CURRENT = 1,
       FIELD_ECC_PENDING = 2,
       FIELD_ECC_FIRST_COUNT = 3, /* errors by kind and place */
       FIELD_ECC_LAST_COUNT = 28,
};

static void field_fill(int device, nvmlFieldValue *field) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  field->timestamp = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  field->latency = 0;
  field->value.large = 0;
  field->result = NVML_SUCCESS;
  bool ecc = nvml_has_ecc();
  if (nvml_link_field(device, field->field, field->scope, &field->value.number)) {
    field->type = 1;
  } else if (ecc && (field->field == FIELD_ECC_CURRENT || field->field == FIELD_ECC_PENDING)) {
    field->type = 1;
    field->value.number = 1;
  } else if (ecc && field->field >= FIELD_ECC_FIRST_COUNT && field->field <= FIELD_ECC_LAST_COUNT) {
    field->type = 3;
  } else {
    field->result = NVML_ERROR_NOT_SUPPORTED;
  }
}
/* Each field has a result of its own. */
EXPORT(nvmlDeviceGetFieldValues, (nvmlDevice device, int count, nvmlFieldValue *fields)) {
  int number;
  nvmlReturn error = count > 0 && fields ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; !error && i < count; i++) field_fill(number, fields + i);
  return error;
}

/* ---- other things that there are none of ---- */

static nvmlReturn none(unsigned *count) {
  nvmlReturn error = nvml_ready();
  if (error || !count) return error ? error : NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}
EXPORT(nvmlUnitGetCount, (unsigned *count)) { return none(count); } /* S-class systems */
EXPORT(nvmlGetExcludedDeviceCount, (unsigned *count)) { return none(count); }
EXPORT(nvmlSystemGetHicVersion, (unsigned *count, const void *list)) { return none(count); }

/* ---- pairs of devices: each has a PCIe link of its own to the one host ---- */

typedef enum nvmlTopologyLevel { NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_HOSTBRIDGE = 30 } nvmlTopologyLevel;

EXPORT(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice a, nvmlDevice b, unsigned *level)) {
  int first, second;
  nvmlReturn error = level ? nvml_device_number(a, &first) : NVML_ERROR_INVALID_ARGUMENT;
  if (!error) error = nvml_device_number(b, &second);
  if (!error) *level = first == second ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_HOSTBRIDGE;
  return error;
}
/* *count: room in `list`, then how many there are; list NULL: only how many */
EXPORT(nvmlDeviceGetTopologyNearestGpus, (nvmlDevice device, unsigned level, unsigned *count, nvmlDevice *list)) {
  int number;
  nvmlReturn error = count ? nvml_device_number(device, &number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  unsigned room = *count, found = 0;
  for (unsigned i = 0; level == NVML_TOPOLOGY_HOSTBRIDGE && i < engine_devices(); i++) {
    if ((int)i == number) continue;
    if (list && found < room) list[found] = nvml_device(i);
    found++;
  }
  *count = found;
  return list && found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

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
  nvmlReturn error = nvml_device_number(device, &number);
  if (!error) error = nvml_device_number(peer, &other);
  if (error) return error;
  if (!status || (unsigned)index >= NVML_P2P_CAPS_INDEX_UNKNOWN) return NVML_ERROR_INVALID_ARGUMENT;
  bool there = index == NVML_P2P_CAPS_INDEX_NVLINK ? engine_peer_has_nvlink(number, other)
                                                   : number == other || engine_peer_possible(number, other);
  *status = there ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
