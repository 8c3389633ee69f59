/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for several devices of one program: a simulation and a thread for each, one program (rig.h). */
#ifndef FF_TEST_DEVICES_H
#define FF_TEST_DEVICES_H

#include "rig.h"

#include <pthread.h>

#include "trace/origin.h"

typedef struct devices {
  rig r;
  uint32_t count;
  sim_peers *peers;
  sim *sims[TRACE_DEVICES_MAX];
  sim_result results[TRACE_DEVICES_MAX];
} devices;

static inline uint32_t on(uint32_t device) { return trace_origin(0, device, false); }

/* The machine may be changed until devices_start. */
static inline void devices_open(devices *d, const char *manager, uint32_t count) {
  *d = (devices){.count = count, .peers = sim_peers_create(0, count)};
  rig_open(&d->r, manager);
}

static inline void devices_start(devices *d, uint64_t gpu_memory) {
  ff_error error = {0};
  d->r.program = trace_program_create(0);
  for (uint32_t i = 0; i < d->count; i++) {
    sim_options options = {.device_index = i,
                           .peers = d->peers,
                           .spec = &d->r.spec,
                           .manager = d->r.manager,
                           .gpu_memory = gpu_memory,
                           .history = true};
    if (sim_create(d->r.program, &options, &d->sims[i], &error)) fail_msg("%s", error.message);
  }
}

static inline void begin(devices *d, const char *manager, uint32_t count, uint64_t gpu_memory) {
  devices_open(d, manager, count);
  devices_start(d, gpu_memory);
}

static inline void *run(void *of) {
  sim_run(of);
  return NULL;
}

/* Runs everything that was written. */
static inline void run_all_devices(devices *d) {
  pthread_t threads[TRACE_DEVICES_MAX];
  rig_op(&d->r, (trace_op){.kind = TRACE_OP_END});
  for (uint32_t i = 0; i < d->count; i++) assert_int_equal(pthread_create(&threads[i], NULL, run, d->sims[i]), 0);
  for (uint32_t i = 0; i < d->count; i++) pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < d->count; i++) sim_snapshot(d->sims[i], &d->results[i]);
}

static inline void finish(devices *d) {
  run_all_devices(d);
  for (uint32_t i = 0; i < d->count; i++) assert_string_equal(d->results[i].error, "");
}

static inline void end(devices *d) {
  for (uint32_t i = 0; i < d->count; i++) {
    sim_result_free(&d->results[i]);
    sim_free(d->sims[i]);
  }
  sim_peers_free(d->peers);
  trace_program_free(d->r.program);
}

static inline const sim_counters *of(const devices *d, uint32_t device) { return &d->results[device].counters; }

#endif
