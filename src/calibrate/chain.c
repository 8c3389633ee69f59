/* SPDX-License-Identifier: Apache-2.0 */
/* Pointer chases: chains in the GPU's memory, the time of following them with one thread; and streams by all SMs.
 *
 * The time of a chase is a difference of two launches, so that what a launch takes, and the first
 * way through the chain, are not in it. */
#include <stdlib.h>

#include "calibrate/kernels.h"
#include "calibrate/lab.h"

static void shuffle_addresses(lab *l, cuda_address *at, size_t count) {
  for (size_t i = count; i > 1; i--) {
    size_t k = (size_t)lab_random(l, i);
    cuda_address other = at[k];
    at[k] = at[i - 1];
    at[i - 1] = other;
  }
}

static ff_status scatter(lab *l, const cuda_address *pairs, size_t count) {
  cuda_address device;
  LAB_TRY(lab_allocate(l, count * 16, &device));
  uint64_t n = count;
  void *arguments[] = {&device, &n};
  int result = l->cuda->MemcpyHtoD(device, pairs, count * 16);
  ff_status status = result ? cuda_fail(l->cuda, result, "cuMemcpyHtoD", l->error)
                            : lab_launch(l, KERNEL_scatter, (uint32_t)((count + 127) / 128), 128, arguments);
  if (!status && (result = l->cuda->StreamSynchronize(l->stream)))
    status = cuda_fail(l->cuda, result, "cuStreamSynchronize", l->error);
  lab_free(l, device);
  return status;
}

ff_status lab_chain(lab *l, cuda_address *at, size_t count, bool shuffle) {
  if (shuffle) shuffle_addresses(l, at, count);
  cuda_address *pairs = ff_alloc(count * 16);
  for (size_t i = 0; i < count; i++) {
    pairs[2 * i] = at[i];
    pairs[2 * i + 1] = at[i + 1 < count ? i + 1 : 0];
  }
  ff_status status = scatter(l, pairs, count);
  free(pairs);
  return status;
}

ff_status lab_chase(lab *l, lab_kernel kernel, cuda_address start, uint64_t rounds, double *us) {
  void *arguments[] = {&start, &rounds, &l->sink};
  return lab_time_kernel(l, kernel, 1, 1, arguments, us);
}

ff_status lab_chase_hot(lab *l, lab_kernel kernel, cuda_address start, size_t count, uint64_t rounds, double *cycles) {
  uint64_t pass = (count + CHASE_STEPS - 1) / CHASE_STEPS;
  double once, more;
  for (int i = 0; i < 3; i++) LAB_TRY(lab_chase(l, kernel, start, pass, &once));
  LAB_TRY(lab_chase(l, kernel, start, pass + rounds, &more));
  *cycles = lab_cycles(l, more - once) / (double)(rounds * CHASE_STEPS);
  return FF_OK;
}

/* The model of a machine file adds issue_interval to a load's latency; the loop's instructions are issued while a load
 * is waited for. */
double lab_latency(const lab *l, double step_cycles) { return step_cycles - lab_figure(l, FIGURE_issue_interval); }

/* ---- all SMs ---- */

enum { STREAM_THREADS = 1024 };

enum { BLOCK_UNIT = STREAM_THREADS * 16 * STREAM_ROUND };

uint64_t lab_read_unit(const lab *l) { return (uint64_t)l->result->device.sm_count * BLOCK_UNIT; }

static ff_status stream(lab *l, lab_kernel kernel, uint32_t blocks, cuda_address base, uint64_t bytes, double *us) {
  uint64_t unit = (uint64_t)blocks * BLOCK_UNIT, rounds = (bytes + unit - 1) / unit;
  void *arguments[] = {&base, &rounds, &unit, &l->sink};
  return lab_time_kernel(l, kernel, blocks, STREAM_THREADS, arguments, us);
}

ff_status lab_read(lab *l, cuda_address base, uint64_t bytes, double *us) {
  return stream(l, KERNEL_read, (uint32_t)l->result->device.sm_count, base, bytes, us);
}

ff_status lab_write(lab *l, cuda_address base, uint64_t bytes, double *us) {
  return stream(l, KERNEL_write, (uint32_t)l->result->device.sm_count, base, bytes, us);
}

ff_status lab_sweep(lab *l, cuda_address base, uint64_t bytes) {
  uint32_t blocks = 1;
  double us;
  while (2 * blocks <= (uint32_t)l->result->device.sm_count && bytes % ((uint64_t)2 * blocks * BLOCK_UNIT) == 0)
    blocks *= 2;
  return stream(l, KERNEL_read, blocks, base, bytes, &us);
}
