/* SPDX-License-Identifier: Apache-2.0 */
/* What calls cost the host, and what launches cost the device. */
#include "calibrate/lab.h"

enum { CALLS = 32 };

/* Host time of CALLS calls each, the GPU idle before. */
static ff_status host_calls(lab *l) {
  cuda_address freed;
  LAB_CALL(l, StreamSynchronize, l->stream);
  double start = lab_host_now(l);
  for (int i = 0; i < CALLS; i++) LAB_TRY(lab_launch(l, KERNEL_nothing, 1, 1, NULL));
  lab_record(l, FIGURE_launch_us, (lab_host_now(l) - start) / CALLS);
  LAB_CALL(l, StreamSynchronize, l->stream);
  start = lab_host_now(l);
  for (int i = 0; i < CALLS; i++) LAB_CALL(l, EventRecord, l->begin, l->stream);
  lab_record(l, FIGURE_api_us, (lab_host_now(l) - start) / CALLS);
  LAB_CALL(l, StreamSynchronize, l->stream);
  start = lab_host_now(l);
  for (int i = 0; i < CALLS; i++) LAB_CALL(l, StreamSynchronize, l->stream);
  lab_record(l, FIGURE_sync_us, (lab_host_now(l) - start) / CALLS);
  start = lab_host_now(l);
  for (int i = 0; i < CALLS; i++) {
    LAB_TRY(lab_allocate(l, 1 << 16, &freed));
    lab_free(l, freed);
  }
  lab_record(l, FIGURE_malloc_us, (lab_host_now(l) - start) / (2 * CALLS));
  return FF_OK;
}

/* The device takes a queue of null launches: time from the first's turn to the last's end. */
static ff_status launches(lab *l) {
  double us;
  LAB_TRY(lab_burn(l, 4 * CALLS * lab_figure(l, FIGURE_launch_us)));
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  for (int i = 0; i < CALLS; i++) LAB_TRY(lab_launch(l, KERNEL_nothing, 1, 1, NULL));
  LAB_CALL(l, EventRecord, l->end, l->stream);
  LAB_TRY(lab_elapsed(l, l->begin, l->end, &us));
  lab_record(l, FIGURE_launch_interval_us, us / CALLS);
  return FF_OK;
}

/* Empty blocks of one warp, each with so many bytes of shared memory: cycles from one to the next on an SM. */
static ff_status block_interval(lab *l, uint32_t shared, double *cycles) {
  uint32_t sms = (uint32_t)l->result->device.sm_count, few = 8 * sms, many = 40 * sms;
  double short_us, long_us;
  LAB_TRY(lab_time_blocks(l, KERNEL_nothing, few, shared, &short_us));
  LAB_TRY(lab_time_blocks(l, KERNEL_nothing, many, shared, &long_us));
  *cycles = lab_cycles(l, long_us - short_us) / 32;
  return FF_OK;
}

static ff_status blocks(lab *l) {
  const calibrate_device *d = &l->result->device;
  double cycles;
  LAB_TRY(block_interval(l, 0, &cycles));
  lab_record(l, FIGURE_block_interval_cycles, cycles);
  int shared = d->shared_per_block_optin ? d->shared_per_block_optin : d->shared_per_block;
  if (2 * shared <= d->shared_bytes) return FF_OK; /* there would be room for two */
  LAB_CALL(l, FuncSetAttribute, l->kernels[KERNEL_nothing], CUDA_FUNCTION_DYNAMIC_SHARED, shared);
  LAB_TRY(block_interval(l, (uint32_t)shared, &cycles));
  lab_record(l, FIGURE_place_interval_cycles, cycles);
  return FF_OK;
}

ff_status measure_calls(lab *l) {
  for (uint32_t i = 0; i < l->repeats; i++) {
    LAB_TRY(host_calls(l));
    LAB_TRY(launches(l));
    LAB_TRY(blocks(l));
  }
  return FF_OK;
}
