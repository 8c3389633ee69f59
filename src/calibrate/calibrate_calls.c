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
  lab_record(l, FIGURE_launch_latency_us, us / CALLS);
  return FF_OK;
}

/* Empty blocks of one warp, so many more per SM. */
static ff_status blocks(lab *l) {
  uint32_t sms = (uint32_t)l->result->device.sm_count, few = 8 * sms, many = 40 * sms;
  double short_us, long_us;
  LAB_TRY(lab_time_kernel(l, KERNEL_nothing, few, 32, NULL, &short_us));
  LAB_TRY(lab_time_kernel(l, KERNEL_nothing, many, 32, NULL, &long_us));
  lab_record(l, FIGURE_block_launch_cycles, lab_cycles(l, long_us - short_us) / 32);
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
