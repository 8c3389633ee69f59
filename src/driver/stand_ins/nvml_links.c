/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks for NVML, from the machine file's links: a join of two GPUs is as many links as its rate asks for, a switch
 * has all links of each GPU. Links of a device are numbered by the GPU at their other end; those that lead to a switch
 * are alone. */
#include "driver/engine/engine_peer.h"
#include "driver/stand_ins/nvml.h"

#include <stddef.h>
#include <string.h>

enum { LINKS_MAX = 18, SWITCH_BUS = 0xe0, TO_SWITCH = -1 };

/* NVIDIA's white papers of P100, V100, A100 and H100: links of a GPU, and what one carries each way. version: nvml.h's
 * number. */
typedef struct generation {
  unsigned from, version, links;
  double gbs;
} generation;

static const generation *generation_of(void) {
  static const generation list[] = {{90, 6, 18, 25}, {80, 4, 12, 25}, {70, 2, 6, 25}, {0, 1, 4, 20}};
  unsigned capability = (unsigned)(10 * engine_machine()->compute_major + engine_machine()->compute_minor);
  const generation *g = list;
  while (capability < g->from) g++;
  return g;
}

/* Of one join. */
static unsigned links_between(int device, int other) {
  double gbs = engine_peer_joined_gbs(device, other);
  unsigned count = (unsigned)(gbs / generation_of()->gbs + 0.5);
  return gbs > 0 && !count ? 1 : count;
}

/* Where the device's link leads: a device's number, or TO_SWITCH. False: it has no such link. */
static bool end_of(int device, unsigned link, int *end) {
  unsigned first = 0;
  if (link >= LINKS_MAX) return false;
  for (int other = 0; other < (int)engine_devices(); other++) {
    unsigned count = other == device ? 0 : links_between(device, other);
    *end = other;
    if (link - first < count) return true;
    first += count;
  }
  *end = TO_SWITCH;
  return engine_machine()->switch_gbs > 0 && link < generation_of()->links;
}

static unsigned link_count(int device) {
  unsigned count = 0;
  int end;
  while (end_of(device, count, &end)) count++;
  return count;
}

/* A number of a link that the device has, or could have. */
static nvmlReturn check(nvmlDevice device, unsigned link, const void *to, int *number) {
  nvmlReturn error = to ? nvml_device_number(device, number) : NVML_ERROR_INVALID_ARGUMENT;
  if (error) return error;
  if (link >= LINKS_MAX) return NVML_ERROR_INVALID_ARGUMENT;
  return link_count(*number) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

enum { FIELD_COUNT = 91, FIELD_SPEED = 164, FIELD_STATE, FIELD_VERSION }; /* NVML_FI_DEV_NVLINK_* */

bool nvml_link_field(int device, unsigned field, unsigned link, unsigned *value) {
  unsigned count = link_count(device);
  int end;
  if (field == FIELD_COUNT) *value = count;
  else if (field < FIELD_SPEED || field > FIELD_VERSION || !count || link >= LINKS_MAX) return false;
  else if (!end_of(device, link, &end)) *value = 0;
  else
    *value = field == FIELD_STATE   ? 1
             : field == FIELD_SPEED ? (unsigned)(1000 * generation_of()->gbs)
                                    : generation_of()->version;
  return true;
}

EXPORT(nvmlDeviceGetNvLinkState, (nvmlDevice device, unsigned link, unsigned *active)) {
  int number, end;
  nvmlReturn error = check(device, link, active, &number);
  if (!error) *active = end_of(number, link, &end);
  return error;
}

EXPORT(nvmlDeviceGetNvLinkVersion, (nvmlDevice device, unsigned link, unsigned *version)) {
  int number;
  nvmlReturn error = check(device, link, version, &number);
  if (!error) *version = generation_of()->version;
  return error;
}

typedef enum nvmlNvLinkCapability {
  NVML_NVLINK_CAP_P2P_SUPPORTED,
  NVML_NVLINK_CAP_SYSMEM_ACCESS,
  NVML_NVLINK_CAP_P2P_ATOMICS,
  NVML_NVLINK_CAP_SYSMEM_ATOMICS,
  NVML_NVLINK_CAP_SLI_BRIDGE,
  NVML_NVLINK_CAP_VALID,
  NVML_NVLINK_CAP_COUNT
} nvmlNvLinkCapability;

EXPORT(nvmlDeviceGetNvLinkCapability, (nvmlDevice device, unsigned link, nvmlNvLinkCapability which, unsigned *has)) {
  int number, end;
  nvmlReturn error = check(device, link, has, &number);
  if (error) return error;
  if ((unsigned)which >= NVML_NVLINK_CAP_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  bool can =
      which == NVML_NVLINK_CAP_P2P_SUPPORTED || which == NVML_NVLINK_CAP_P2P_ATOMICS || which == NVML_NVLINK_CAP_VALID;
  *has = can && end_of(number, link, &end);
  return NVML_SUCCESS;
}

typedef enum nvmlRemoteDevice { NVML_REMOTE_GPU = 0, NVML_REMOTE_SWITCH = 2 } nvmlRemoteDevice;

EXPORT(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice device, unsigned link, nvmlRemoteDevice *type)) {
  int number, end;
  nvmlReturn error = check(device, link, type, &number);
  if (error) return error;
  if (!end_of(number, link, &end)) return NVML_ERROR_NOT_SUPPORTED; /* it is down */
  *type = end == TO_SWITCH ? NVML_REMOTE_SWITCH : NVML_REMOTE_GPU;
  return NVML_SUCCESS;
}

static nvmlReturn remote_pci(nvmlDevice device, unsigned link, nvmlPciInfo *info) {
  int number, end;
  nvmlReturn error = check(device, link, info, &number);
  if (error) return error;
  if (!end_of(number, link, &end)) return NVML_ERROR_NOT_SUPPORTED;
  nvml_pci_info(end == TO_SWITCH ? SWITCH_BUS : (unsigned)end + 1, info);
  return NVML_SUCCESS;
}
/* The first form's struct is that of nvmlDeviceGetPciInfo_v2. */
EXPORT(nvmlDeviceGetNvLinkRemotePciInfo, (nvmlDevice device, unsigned link, void *info)) {
  nvmlPciInfo whole;
  nvmlReturn error = remote_pci(device, link, info ? &whole : NULL);
  if (!error) memcpy(info, &whole, offsetof(nvmlPciInfo, busId));
  return error;
}
EXPORT(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice device, unsigned link, nvmlPciInfo *info)) {
  return remote_pci(device, link, info);
}
