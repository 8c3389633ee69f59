/* SPDX-License-Identifier: Apache-2.0 */
/* What virtual memory management costs the host: reserving addresses, creating memory, mapping it, making it
 * accessible, and all of that back. Each call is timed over MAPPINGS pieces of the least granularity, the GPU idle. */
#include "calibrate/lab.h"

enum { MAPPINGS = 16, DEVICE = 1, READ_WRITE = 3 };

typedef struct mappings {
  cuda_address at[MAPPINGS]; /* 0: not reserved */
  cuda_memory memory[MAPPINGS];
  bool created[MAPPINGS], mapped[MAPPINGS];
  size_t bytes;
  cuda_memory_properties properties;
  cuda_memory_access access;
  double reserve_us; /* of reserving alone */
} mappings;

static double per_call(const lab *l, double start) { return (lab_host_now(l) - start) / MAPPINGS; }

static ff_status map(lab *l, mappings *m) {
  double start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) LAB_CALL(l, MemAddressReserve, &m->at[i], m->bytes, 0, 0, 0);
  m->reserve_us = per_call(l, start);
  start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) {
    LAB_CALL(l, MemCreate, &m->memory[i], m->bytes, &m->properties, 0);
    m->created[i] = true;
  }
  lab_record(l, FIGURE_create_us, per_call(l, start));
  start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) {
    LAB_CALL(l, MemMap, m->at[i], m->bytes, 0, m->memory[i], 0);
    m->mapped[i] = true;
  }
  lab_record(l, FIGURE_map_us, per_call(l, start));
  start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) LAB_CALL(l, MemSetAccess, m->at[i], m->bytes, &m->access, 1);
  lab_record(l, FIGURE_set_access_us, per_call(l, start));
  return FF_OK;
}

static ff_status unmap(lab *l, mappings *m) {
  double start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) {
    LAB_CALL(l, MemUnmap, m->at[i], m->bytes);
    m->mapped[i] = false;
  }
  lab_record(l, FIGURE_unmap_us, per_call(l, start));
  start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) {
    LAB_CALL(l, MemRelease, m->memory[i]);
    m->created[i] = false;
  }
  lab_record(l, FIGURE_release_us, per_call(l, start));
  start = lab_host_now(l);
  for (int i = 0; i < MAPPINGS; i++) {
    LAB_CALL(l, MemAddressFree, m->at[i], m->bytes);
    m->at[i] = 0;
  }
  lab_record(l, FIGURE_reserve_us, (m->reserve_us + per_call(l, start)) / 2);
  return FF_OK;
}

static void clean_up(lab *l, mappings *m) {
  for (int i = 0; i < MAPPINGS; i++) {
    if (m->mapped[i]) l->cuda->MemUnmap(m->at[i], m->bytes);
    if (m->created[i]) l->cuda->MemRelease(m->memory[i]);
    if (m->at[i]) l->cuda->MemAddressFree(m->at[i], m->bytes);
  }
}

ff_status measure_mapping(lab *l) {
  int supported = 0;
  l->cuda->DeviceGetAttribute(&supported, CUDA_ATTRIBUTE_VIRTUAL_MEMORY, l->device);
  if (!supported) return FF_OK;
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < l->repeats && !status; i++) {
    mappings m = {.properties = {.type = 1, .location = {DEVICE, l->device}},
                  .access = {{DEVICE, l->device}, READ_WRITE}};
    LAB_CALL(l, MemGetAllocationGranularity, &m.bytes, &m.properties, 0);
    LAB_CALL(l, StreamSynchronize, l->stream);
    status = map(l, &m);
    if (!status) status = unmap(l, &m);
    clean_up(l, &m);
  }
  return status;
}
