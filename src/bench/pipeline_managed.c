/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines on managed memory: the same launches, over the same tiles, in streams as the hand-written ones; no copies,
 * no hints. The end is when the host has read a word of each page of the output. */
#include "bench/pipeline_private.h"

enum { ATTACH_GLOBAL = 1, PAGE = 4096 };

typedef struct memory {
  cuda_address in, out, between[FEW_BUFFERS], other[FEW_BUFFERS];
  cuda_stream streams[FEW_BUFFERS];
} memory;

static ff_status take_memory(const bench_gpu *gpu, const pipeline_plan *plan, memory *m, ff_error *error) {
  BENCH_TRY(gpu, MemAllocManaged, &m->in, in_bytes(plan), ATTACH_GLOBAL);
  BENCH_TRY(gpu, MemAllocManaged, &m->out, out_bytes(plan), ATTACH_GLOBAL);
  for (int i = 0; i < FEW_BUFFERS; i++) {
    BENCH_TRY(gpu, StreamCreate, &m->streams[i], CUDA_STREAM_NON_BLOCKING);
    if (plan->shape != PIPELINE_CHAIN && plan->shape != PIPELINE_DIAMOND) continue;
    BENCH_TRY(gpu, MemAllocManaged, &m->between[i], plan->tile, ATTACH_GLOBAL);
    BENCH_TRY(gpu, MemAllocManaged, &m->other[i], plan->tile, ATTACH_GLOBAL);
  }
  return FF_OK;
}

static ff_status give_memory(const bench_gpu *gpu, memory *m, ff_error *error) {
  BENCH_TRY(gpu, MemFree, m->in);
  BENCH_TRY(gpu, MemFree, m->out);
  for (int i = 0; i < FEW_BUFFERS; i++) {
    BENCH_TRY(gpu, StreamDestroy, m->streams[i]);
    if (m->between[i]) BENCH_TRY(gpu, MemFree, m->between[i]);
    if (m->other[i]) BENCH_TRY(gpu, MemFree, m->other[i]);
  }
  return FF_OK;
}

static ff_status launch_all(const bench_gpu *gpu, const pipeline_kernels *kernels, const pipeline_plan *plan,
                            const memory *m, ff_error *error) {
  if (plan->shape == PIPELINE_STREAM)
    return launch_mix(gpu, kernels, plan, m->in, m->out, plan->tiles, SEED_F, m->streams[0], error);
  for (uint32_t step = 0; is_matmul(plan) && step < matmul_steps(plan); step++) {
    matmul_step at = matmul_step_at(plan, step);
    BENCH_DO(launch_product(gpu, kernels, plan, m->in + at.row * plan->tile,
                            m->in + (plan->tiles + at.column) * plan->tile, m->out + step * piece_bytes(plan),
                            m->streams[step % COMPUTE_STREAMS], error));
  }
  for (uint32_t tile = 0; !is_matmul(plan) && tile < plan->tiles; tile++) {
    uint32_t i = tile % FEW_BUFFERS;
    BENCH_DO(launch_step(gpu, kernels, plan, m->in + tile * plan->tile, m->between[i], m->other[i],
                         m->out + tile * plan->tile, m->streams[i], error));
  }
  return FF_OK;
}

/* A real GPU has more than the budget: what is more is taken away. The virtual one was made with the budget. */
static ff_status take_the_rest(const bench_gpu *gpu, const pipeline_plan *plan, cuda_address *rest, ff_error *error) {
  size_t available, total;
  *rest = 0;
  if (gpu->driver->is_virtual) return FF_OK;
  BENCH_TRY(gpu, MemGetInfo, &available, &total);
  if (available > plan->budget) BENCH_TRY(gpu, MemAlloc, rest, available - plan->budget);
  return FF_OK;
}

static void read_pages(const volatile unsigned char *bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; i += PAGE) (void)bytes[i];
}

ff_status run_managed(const pipeline_plan *plan, pipeline_result *result, ff_error *error) {
  bench_gpu gpu;
  pipeline_kernels kernels;
  memory m = {0};
  cuda_address rest;
  BENCH_DO(bench_open(&gpu, error));
  BENCH_TRY(&gpu, DeviceGetName, result->device, sizeof result->device, 0);
  BENCH_DO(find_kernels(&gpu, &kernels, error));
  BENCH_DO(take_the_rest(&gpu, plan, &rest, error));
  BENCH_DO(take_memory(&gpu, plan, &m, error));
  fill_input(plan, (void *)(uintptr_t)m.in);
  BENCH_TRY(&gpu, CtxSynchronize, );
  double begin = bench_now(&gpu);
  BENCH_DO(launch_all(&gpu, &kernels, plan, &m, error));
  BENCH_TRY(&gpu, CtxSynchronize, );
  read_pages((const unsigned char *)(uintptr_t)m.out, out_bytes(plan));
  BENCH_TRY(&gpu, CtxSynchronize, ); /* the virtual GPU sees what the host has read at the next call */
  result->seconds = bench_now(&gpu) - begin;
  result->to_gpu = result->from_gpu = UINT64_MAX;
  check_output(plan, (const void *)(uintptr_t)m.in, (const void *)(uintptr_t)m.out, result);
  BENCH_DO(give_memory(&gpu, &m, error));
  if (rest) BENCH_TRY(&gpu, MemFree, rest);
  bench_close(&gpu);
  return FF_OK;
}
