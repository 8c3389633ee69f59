/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a pipeline, its input, and whether its output is right. */
#include "bench/pipeline.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "bench/pipeline_private.h"

const char *const pipeline_shape_names[PIPELINE_SHAPES + 1] = {"stream", "chain", "diamond", "matmul", NULL};
const pipeline_way_info pipeline_ways[PIPELINE_WAYS] = {
#define X(id, key, name, memory, help) {#key, name, memory, help},
#include "bench/pipeline.def"
#undef X
};

/* ---- the plan ---- */

static const uint64_t data_limit = UINT64_C(16) << 30;
enum { BLOCK_SIDE = 64 };

/* So many panels of `tile` bytes, more or less, that make a square of whole blocks. */
static ff_status plan_matmul(pipeline_plan *plan, uint64_t data, ff_error *error) {
  double side = sqrt((double)data / 12), panels = side * side * 4 / (double)plan->tile;
  plan->tiles = panels < 1.5 ? 1 : (uint32_t)(panels + 0.5);
  plan->panel = (uint32_t)(side / plan->tiles / BLOCK_SIDE) * BLOCK_SIDE;
  plan->side = plan->panel * plan->tiles;
  if (!plan->panel)
    return ff_fail(
        error, FF_INVALID,
        "a matrix product of %llu bytes in %u panels has less than %d rows in a panel: more --data or a larger --tile",
        (unsigned long long)data, plan->tiles, BLOCK_SIDE);
  plan->tile = (uint64_t)plan->panel * plan->side * 4;
  uint64_t needed = 4 * plan->tile + 2 * piece_bytes(plan);
  if (needed <= plan->budget) return FF_OK;
  return ff_fail(
      error, FF_INVALID,
      "the hand-written matrix product needs %llu bytes of GPU memory: four panels and two tiles; --budget is %llu",
      (unsigned long long)needed, (unsigned long long)plan->budget);
}

ff_status pipeline_make_plan(pipeline_shape shape, uint64_t data, uint64_t budget, uint64_t tile, uint32_t rounds,
                             pipeline_plan *plan, ff_error *error) {
  *plan = (pipeline_plan){.shape = shape, .budget = budget, .tile = tile, .rounds = rounds};
  if (data > data_limit)
    return ff_fail(error, FF_LIMIT, "--data: %llu bytes are more than %llu", (unsigned long long)data,
                   (unsigned long long)data_limit);
  if (!tile || tile % 4096 || tile > data / 2 || tile > UINT32_MAX)
    return ff_fail(error, FF_INVALID, "--tile: %llu is not a multiple of 4096 of which --data holds two",
                   (unsigned long long)tile);
  if (shape == PIPELINE_MATMUL) return plan_matmul(plan, data, error);
  if (data / 2 % tile)
    return ff_fail(error, FF_INVALID, "--data: half of %llu bytes is not a multiple of --tile, %llu",
                   (unsigned long long)data, (unsigned long long)tile);
  plan->tiles = (uint32_t)(data / 2 / tile);
  uint64_t needed = 2 * step_tiles(plan) * tile;
  if (needed > budget)
    return ff_fail(error, FF_INVALID, "%s needs %llu bytes of GPU memory: two times %u tiles; --budget is %llu",
                   pipeline_shape_names[shape], (unsigned long long)needed, step_tiles(plan),
                   (unsigned long long)budget);
  return FF_OK;
}

/* ---- the data ---- */

static uint32_t word_at(uint64_t i) { return (uint32_t)(i * UINT64_C(0x9E3779B97F4A7C15) >> 29); }

static uint32_t mixed(uint32_t value, uint32_t seed, uint32_t rounds) {
  while (rounds--) value = value * 1664525u + seed;
  return value;
}

void fill_input(const pipeline_plan *plan, void *in) {
  uint32_t *words = in;
  float *values = in;
  for (uint64_t i = 0; i < in_bytes(plan) / 4; i++)
    if (is_matmul(plan)) values[i] = (float)(word_at(i) % 5) - 2;
    else words[i] = word_at(i);
}

static uint32_t expected(const pipeline_plan *plan, uint32_t value) {
  uint32_t r = plan->rounds, f = mixed(value, SEED_F, r);
  if (plan->shape == PIPELINE_STREAM) return f;
  if (plan->shape == PIPELINE_CHAIN) return mixed(mixed(f, SEED_G, r), SEED_F, r);
  return f * 3 ^ mixed(value, SEED_G, r);
}

/* C x = A (B x), for an x of small whole numbers: every sum is exact in 64 bits. */
static void check_product(const pipeline_plan *plan, const float *in, const float *out, pipeline_result *result) {
  uint64_t n = plan->side;
  const float *b = in + n * n;
  int64_t *product = ff_alloc(n * sizeof *product);
  for (uint64_t j = 0; j < n; j++) /* b has columns side by side */
    for (uint64_t k = 0; k < n; k++) product[k] += (int64_t)b[j * n + k] * (int64_t)(word_at(j) % 7);
  for (uint64_t i = 0; i < n; i++) {
    int64_t left = 0, right = 0;
    for (uint64_t k = 0; k < n; k++) right += (int64_t)in[i * n + k] * product[k];
    for (uint64_t j = 0; j < n; j++) {
      uint64_t piece = matmul_step_of(plan, (matmul_step){(uint32_t)(i / plan->panel), (uint32_t)(j / plan->panel)});
      float c = out[(piece * plan->panel + i % plan->panel) * plan->panel + j % plan->panel];
      left += fabsf(c) < 1e9f ? (int64_t)c * (int64_t)(word_at(j) % 7) : INT32_MAX;
    }
    result->wrong += left != right;
  }
  result->checked = n;
  free(product);
}

void check_output(const pipeline_plan *plan, const void *in, const void *out, pipeline_result *result) {
  const uint32_t *from = in, *to = out;
  if (is_matmul(plan)) {
    check_product(plan, in, out, result);
    return;
  }
  result->checked = out_bytes(plan) / 4;
  for (uint64_t i = 0; i < result->checked; i++) result->wrong += to[i] != expected(plan, from[i]);
}

/* ---- the launches ---- */

ff_status find_kernels(const bench_gpu *gpu, pipeline_kernels *kernels, ff_error *error) {
  BENCH_DO(bench_kernel(gpu, "mix", &kernels->mix, error));
  BENCH_DO(bench_kernel(gpu, "join", &kernels->join, error));
  return bench_kernel(gpu, "product", &kernels->product, error);
}

ff_status launch_mix(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address from,
                     cuda_address to, uint32_t tiles, uint32_t seed, cuda_stream stream, ff_error *error) {
  uint32_t count = quads(plan) * tiles, rounds = plan->rounds;
  void *arguments[] = {&from, &to, &count, &seed, &rounds};
  return bench_launch(gpu, k->mix, count / 256, 1, stream, arguments, error);
}

ff_status launch_product(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address a,
                         cuda_address b, cuda_address c, cuda_stream stream, ff_error *error) {
  uint32_t depth = plan->side, width = plan->panel, blocks = plan->panel / BLOCK_SIDE;
  void *arguments[] = {&a, &b, &c, &depth, &width};
  return bench_launch(gpu, k->product, blocks, blocks, stream, arguments, error);
}

ff_status launch_step(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address in,
                      cuda_address between, cuda_address other, cuda_address out, cuda_stream stream, ff_error *error) {
  uint32_t count = quads(plan);
  void *arguments[] = {&between, &other, &out, &count};
  if (plan->shape == PIPELINE_STREAM) return launch_mix(gpu, k, plan, in, out, 1, SEED_F, stream, error);
  BENCH_DO(launch_mix(gpu, k, plan, in, between, 1, SEED_F, stream, error));
  if (plan->shape == PIPELINE_CHAIN) {
    BENCH_DO(launch_mix(gpu, k, plan, between, other, 1, SEED_G, stream, error));
    return launch_mix(gpu, k, plan, other, out, 1, SEED_F, stream, error);
  }
  BENCH_DO(launch_mix(gpu, k, plan, in, other, 1, SEED_G, stream, error));
  return bench_launch(gpu, k->join, count / 256, 1, stream, arguments, error);
}

ff_status pipeline_run(const pipeline_plan *plan, pipeline_way way, pipeline_result *result, ff_error *error) {
  *result = (pipeline_result){0};
  ff_status status;
  if (way == PIPELINE_MANAGED) status = run_managed(plan, result, error);
  else if (way == PIPELINE_SEGMENTS) status = run_segments(plan, result, error);
  else status = run_streams(plan, way != PIPELINE_TRANSFERS, way != PIPELINE_KERNELS, result, error);
  result->known = !status;
  return status;
}
