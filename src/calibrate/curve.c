/* SPDX-License-Identifier: Apache-2.0 */
/* The latency of a random chase through the L1, by footprint: for the picture; no figure comes from it. */
#include <stdlib.h>

#include "calibrate/lab.h"

enum { LINE = 128, LEAST = 2048, LINES = 8192 };

/* A chain over at most LINES lines of the footprint, after all of it was read. */
static ff_status point(lab *l, cuda_address base, uint64_t bytes) {
  uint64_t count = bytes / LINE < LINES ? bytes / LINE : LINES, part = bytes / LINE / count;
  cuda_address *at = ff_alloc(count * sizeof *at), start;
  for (uint64_t i = 0; i < count; i++) at[i] = base + (i * part + lab_random(l, part)) * LINE;
  start = at[0];
  double cycles, us;
  ff_status status = lab_chain(l, at, count, true);
  if (!status && bytes > lab_read_unit(l)) status = lab_read(l, base, bytes / lab_read_unit(l) * lab_read_unit(l), &us);
  uint64_t rounds = 2 * count / CHASE_STEPS;
  if (!status) status = lab_chase_hot(l, KERNEL_chase, start, count, rounds > 64 ? rounds : 64, &cycles);
  free(at);
  if (!status && l->result->curve_count < CALIBRATE_CURVE) l->result->curve[l->result->curve_count++] = (curve_point){bytes, cycles};
  return status;
}

ff_status measure_curve(lab *l) {
  if (l->options.quick) return FF_OK;
  uint64_t l2 = l->result->device.l2_bytes > 0 ? (uint64_t)l->result->device.l2_bytes : 32 << 20, most = 4 * l2;
  cuda_address base;
  LAB_TRY(lab_allocate(l, most + lab_read_unit(l), &base));
  ff_status status = FF_OK;
  for (uint64_t bytes = LEAST; bytes <= most && !status; bytes *= 2) {
    status = point(l, base, bytes);
    if (!status && bytes + bytes / 2 <= most) status = point(l, base, bytes + bytes / 2);
  }
  lab_free(l, base);
  return status;
}
