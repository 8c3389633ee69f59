/* SPDX-License-Identifier: Apache-2.0 */
/* The latency of a random chase through the L1, by footprint: for the picture; no figure comes from it. */
#include <stdlib.h>

#include "calibrate/lab.h"

enum { LINE = 128, LEAST = 2048, LINES = 8192 };

/* All lines of a small footprint, gone through again and again; of a large one LINES of them, once, after all of it was
 * read: more often would find them in a cache. */
static ff_status point(lab *l, cuda_address base, uint64_t bytes) {
  bool whole = bytes / LINE <= LINES;
  uint64_t count = whole ? bytes / LINE : LINES, part = bytes / LINE / count, rounds = count / CHASE_STEPS;
  cuda_address *at = ff_alloc(count * sizeof *at), start;
  for (uint64_t i = 0; i < count; i++) at[i] = base + (i * part + lab_random(l, part)) * LINE;
  ff_status status = lab_chain(l, at, count, true);
  start = at[0];
  free(at);
  double cycles, none, us;
  if (!status && whole) status = lab_chase_hot(l, KERNEL_chase, start, count, rounds > 64 ? rounds : 64, &cycles);
  if (!status && !whole) {
    LAB_TRY(lab_chase(l, KERNEL_chase, start, 0, &none));
    LAB_TRY(lab_sweep(l, base, bytes));
    LAB_TRY(lab_chase(l, KERNEL_chase, start, rounds, &us));
    cycles = lab_cycles(l, us - none) / (double)(rounds * CHASE_STEPS);
  }
  if (!status && l->result->curve_count < CALIBRATE_CURVE)
    l->result->curve[l->result->curve_count++] = (curve_point){bytes, cycles};
  return status;
}

ff_status measure_curve(lab *l) {
  if (l->options.quick) return FF_OK;
  uint64_t l2 = l->result->device.l2_bytes > 0 ? (uint64_t)l->result->device.l2_bytes : 32 << 20,
           most = l2 < 16 << 20 ? 16 * l2 : 4 * l2;
  cuda_address base;
  LAB_TRY(lab_allocate(l, most, &base));
  ff_status status = FF_OK;
  for (uint64_t bytes = LEAST; bytes <= most && !status; bytes *= 2) {
    status = point(l, base, bytes);
    if (!status && bytes + bytes / 2 <= most) status = point(l, base, bytes + bytes / 2);
  }
  lab_free(l, base);
  return status;
}
