/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines written by hand, as well as we can: everything is enqueued at once, the host waits once.
 *
 * stream, chain, diamond: a slot has the buffers of one step and a stream: copy in, kernels, copy out. With three slots
 * or more one copies in, one computes, one copies out. matmul: matmul's panels are kept as long as they fit
 * (stream_products). */
#include "bench/pipeline_private.h"

enum { SLOTS = 4 };

typedef struct slot {
  cuda_stream stream;
  cuda_address in, between, other, out;
} slot;

static uint32_t slot_count(const pipeline_plan *plan) {
  uint64_t fit = plan->budget / (step_tiles(plan) * plan->tile);
  uint32_t count = fit > SLOTS ? SLOTS : (uint32_t)fit;
  return count < plan->tiles ? count : plan->tiles;
}

static ff_status make_slot(const bench_gpu *gpu, const pipeline_plan *plan, slot *s, ff_error *error) {
  BENCH_TRY(gpu, StreamCreate, &s->stream, CUDA_STREAM_NON_BLOCKING);
  BENCH_TRY(gpu, MemAlloc, &s->in, plan->tile);
  BENCH_TRY(gpu, MemAlloc, &s->out, plan->tile);
  if (plan->shape == PIPELINE_STREAM) return FF_OK;
  BENCH_TRY(gpu, MemAlloc, &s->between, plan->tile);
  BENCH_TRY(gpu, MemAlloc, &s->other, plan->tile);
  return FF_OK;
}

static ff_status free_slot(const bench_gpu *gpu, slot *s, ff_error *error) {
  cuda_address all[] = {s->in, s->out, s->between, s->other};
  for (int i = 0; i < 4; i++)
    if (all[i]) BENCH_TRY(gpu, MemFree, all[i]);
  BENCH_TRY(gpu, StreamDestroy, s->stream);
  return FF_OK;
}

static ff_status stream_tiles(const bench_gpu *gpu, const pipeline_kernels *kernels, const pipeline_plan *plan,
                              const unsigned char *in, unsigned char *out, bool with_kernels, bool with_copies,
                              pipeline_result *result, ff_error *error) {
  slot slots[SLOTS] = {0};
  uint32_t count = slot_count(plan);
  for (uint32_t i = 0; i < count; i++) BENCH_DO(make_slot(gpu, plan, &slots[i], error));
  BENCH_TRY(gpu, CtxSynchronize, );
  double begin = bench_now(gpu);
  for (uint32_t tile = 0; tile < plan->tiles; tile++) {
    slot *s = &slots[tile % count];
    uint64_t at = tile * plan->tile;
    if (with_copies) BENCH_TRY(gpu, MemcpyHtoDAsync, s->in, in + at, plan->tile, s->stream);
    if (with_kernels) BENCH_DO(launch_step(gpu, kernels, plan, s->in, s->between, s->other, s->out, s->stream, error));
    if (with_copies) BENCH_TRY(gpu, MemcpyDtoHAsync, out + at, s->out, plan->tile, s->stream);
  }
  BENCH_TRY(gpu, CtxSynchronize, );
  result->seconds = bench_now(gpu) - begin;
  result->to_gpu = with_copies ? in_bytes(plan) : 0;
  result->from_gpu = with_copies ? out_bytes(plan) : 0;
  for (uint32_t i = 0; i < count; i++) BENCH_DO(free_slot(gpu, &slots[i], error));
  return FF_OK;
}

ff_status run_streams(const pipeline_plan *plan, bool with_kernels, bool with_copies, pipeline_result *result,
                      ff_error *error) {
  bench_gpu gpu;
  pipeline_kernels kernels;
  void *in, *out;
  BENCH_DO(bench_open(&gpu, error));
  BENCH_TRY(&gpu, DeviceGetName, result->device, sizeof result->device, 0);
  BENCH_DO(find_kernels(&gpu, &kernels, error));
  BENCH_TRY(&gpu, MemHostAlloc, &in, in_bytes(plan), 0);
  BENCH_TRY(&gpu, MemHostAlloc, &out, out_bytes(plan), 0);
  fill_input(plan, in);
  BENCH_DO((is_matmul(plan) ? stream_products : stream_tiles)(&gpu, &kernels, plan, in, out, with_kernels, with_copies,
                                                              result, error));
  if (with_kernels && with_copies) check_output(plan, in, out, result);
  BENCH_TRY(&gpu, MemFreeHost, in);
  BENCH_TRY(&gpu, MemFreeHost, out);
  bench_close(&gpu);
  return FF_OK;
}
