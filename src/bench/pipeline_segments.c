/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines with segments: the same launches, each with what it uses; no buffers, streams, events or copies. Then the
 * host takes the output, tile by tile.
 *
 * stream is one launch over the whole, declared per block: the library runs it in windows. */
#include "bench/pipeline_private.h"
#include "farfault/farfault.h"

enum { PAIRS = 2, BLOCK_THREADS = 256, MEMORY_PARTS = 8, LARGE_PAGE = 2 << 20 };

typedef struct program {
  const pipeline_plan *plan;
  ff_gpu *gpu;
  ff_kernel *mix, *join, *product;
  ff_segment *in, *out, *between[PAIRS], *other[PAIRS];
} program;

static ff_status failed(const char *call, ff_error *error) {
  return ff_fail(error, FF_INTERNAL, "%s: %s", call, ff_message());
}
#define TRY(call, ...)                                  \
  do {                                                  \
    if (call(__VA_ARGS__)) return failed(#call, error); \
  } while (0)

static ff_status open_program(program *p, ff_error *error) {
  const pipeline_plan *plan = p->plan;
  /* a tile comes and goes as a whole */
  ff_options options = {
      .size = sizeof options, .budget = plan->budget, .piece = plan->tile % LARGE_PAGE ? 0 : plan->tile};
  ff_module *module;
  TRY(ff_open, &options, &p->gpu);
  TRY(ff_module_load, p->gpu, "bench_kernels.ptx", bench_ptx, 0, &module);
  TRY(ff_kernel_find, module, "mix", &p->mix);
  TRY(ff_kernel_find, module, "join", &p->join);
  TRY(ff_kernel_find, module, "product", &p->product);
  TRY(ff_segment_create, p->gpu, "in", in_bytes(plan), &p->in);
  TRY(ff_segment_create, p->gpu, "out", out_bytes(plan), &p->out);
  for (int i = 0; i < PAIRS; i++) {
    TRY(ff_segment_create, p->gpu, "between", plan->tile, &p->between[i]);
    TRY(ff_segment_create, p->gpu, "other", plan->tile, &p->other[i]);
  }
  return FF_OK;
}

/* The GPU's memory is taken before the clock starts, as the other ways take theirs: by segments that are pinned, as
 * many as fit, and freed. */
static ff_status take_memory(program *p, ff_error *error) {
  ff_segment *taken[MEMORY_PARTS];
  uint32_t count = 0;
  while (count < MEMORY_PARTS) {
    TRY(ff_segment_create, p->gpu, "budget", p->plan->budget / MEMORY_PARTS, &taken[count]);
    if (ff_segment_pin(taken[count++], 0, true)) break;
  }
  while (count) TRY(ff_segment_free, taken[--count]);
  return FF_OK;
}

typedef struct place {
  ff_segment *segment;
  uint64_t offset;
} place;

static ff_status mix(program *p, place from, place to, uint32_t seed, ff_error *error) {
  uint32_t count = quads(p->plan), rounds = p->plan->rounds;
  ff_argument arguments[] = {FF_ADDRESS_AT(from.segment, from.offset), FF_ADDRESS_AT(to.segment, to.offset),
                             FF_VALUE(count), FF_VALUE(seed), FF_VALUE(rounds)};
  ff_use uses[] = {{.segment = from.segment, .access = FF_READ, .offset = from.offset, .bytes = p->plan->tile},
                   {.segment = to.segment, .access = FF_WRITE, .offset = to.offset, .bytes = p->plan->tile}};
  ff_launch_request request = {.kernel = p->mix,
                               .grid = {count / BLOCK_THREADS},
                               .block = {BLOCK_THREADS},
                               .arguments = arguments,
                               .argument_count = 5,
                               .uses = uses,
                               .use_count = 2};
  TRY(ff_launch, p->gpu, &request, NULL);
  return FF_OK;
}

static ff_status join(program *p, place left, place right, place to, ff_error *error) {
  uint32_t count = quads(p->plan);
  uint64_t bytes = p->plan->tile;
  ff_argument arguments[] = {FF_ADDRESS_AT(left.segment, left.offset), FF_ADDRESS_AT(right.segment, right.offset),
                             FF_ADDRESS_AT(to.segment, to.offset), FF_VALUE(count)};
  ff_use uses[] = {{.segment = left.segment, .access = FF_READ, .offset = left.offset, .bytes = bytes},
                   {.segment = right.segment, .access = FF_READ, .offset = right.offset, .bytes = bytes},
                   {.segment = to.segment, .access = FF_WRITE, .offset = to.offset, .bytes = bytes}};
  ff_launch_request request = {.kernel = p->join,
                               .grid = {count / BLOCK_THREADS},
                               .block = {BLOCK_THREADS},
                               .arguments = arguments,
                               .argument_count = 4,
                               .uses = uses,
                               .use_count = 3};
  TRY(ff_launch, p->gpu, &request, NULL);
  return FF_OK;
}

static ff_status product(program *p, place a, place b, place c, ff_error *error) {
  uint32_t depth = p->plan->side, width = p->plan->panel, blocks = width / 64;
  ff_argument arguments[] = {FF_ADDRESS_AT(a.segment, a.offset), FF_ADDRESS_AT(b.segment, b.offset),
                             FF_ADDRESS_AT(c.segment, c.offset), FF_VALUE(depth), FF_VALUE(width)};
  ff_use uses[] = {{.segment = a.segment, .access = FF_READ, .offset = a.offset, .bytes = p->plan->tile},
                   {.segment = b.segment, .access = FF_READ, .offset = b.offset, .bytes = p->plan->tile},
                   {.segment = c.segment, .access = FF_WRITE, .offset = c.offset, .bytes = piece_bytes(p->plan)}};
  ff_launch_request request = {.kernel = p->product,
                               .grid = {blocks, blocks},
                               .block = {BLOCK_THREADS},
                               .arguments = arguments,
                               .argument_count = 5,
                               .uses = uses,
                               .use_count = 3};
  TRY(ff_launch, p->gpu, &request, NULL);
  return FF_OK;
}

/* The whole of `stream` at once: block b reads and writes its 4 KiB. */
static ff_status launch_whole(program *p, ff_error *error) {
  uint32_t count = quads(p->plan) * p->plan->tiles, rounds = p->plan->rounds, seed = SEED_F;
  ff_argument arguments[] = {FF_ADDRESS(p->in), FF_ADDRESS(p->out), FF_VALUE(count), FF_VALUE(seed), FF_VALUE(rounds)};
  ff_use uses[] = {
      {.segment = p->in, .access = FF_READ, .per_block = {BLOCK_THREADS * QUAD}, .block_bytes = BLOCK_THREADS * QUAD},
      {.segment = p->out,
       .access = FF_WRITE,
       .per_block = {BLOCK_THREADS * QUAD},
       .block_bytes = BLOCK_THREADS * QUAD}};
  ff_launch_request request = {.kernel = p->mix,
                               .grid = {count / BLOCK_THREADS},
                               .block = {BLOCK_THREADS},
                               .arguments = arguments,
                               .argument_count = 5,
                               .uses = uses,
                               .use_count = 2};
  TRY(ff_launch, p->gpu, &request, NULL);
  return FF_OK;
}

static ff_status launch_one(program *p, uint32_t step, ff_error *error) {
  const pipeline_plan *plan = p->plan;
  if (is_matmul(plan)) {
    matmul_step at = matmul_step_at(plan, step);
    return product(p, (place){p->in, at.row * plan->tile}, (place){p->in, (plan->tiles + at.column) * plan->tile},
                   (place){p->out, step * piece_bytes(plan)}, error);
  }
  place in = {p->in, step * plan->tile}, out = {p->out, step * plan->tile}, between = {p->between[step % PAIRS], 0},
        other = {p->other[step % PAIRS], 0};
  BENCH_DO(mix(p, in, between, SEED_F, error));
  if (plan->shape == PIPELINE_CHAIN) {
    BENCH_DO(mix(p, between, other, SEED_G, error));
    return mix(p, other, out, SEED_F, error);
  }
  BENCH_DO(mix(p, in, other, SEED_G, error));
  return join(p, between, other, out, error);
}

/* The host has the output of this step. */
static ff_status take_output(program *p, uint32_t step, ff_error *error) {
  const pipeline_plan *plan = p->plan;
  uint64_t at = step * piece_bytes(plan);
  void *host;
  TRY(ff_segment_map, p->out, FF_READ, at, piece_bytes(plan), &host);
  TRY(ff_segment_unmap, p->out, host);
  return FF_OK;
}

static ff_status run_all(program *p, ff_error *error) {
  uint32_t steps = is_matmul(p->plan) ? matmul_steps(p->plan) : p->plan->tiles;
  if (p->plan->shape == PIPELINE_STREAM) {
    BENCH_DO(launch_whole(p, error));
    TRY(ff_segment_flush, p->out);
    return FF_OK;
  }
  for (uint32_t step = 0; step < steps; step++) BENCH_DO(launch_one(p, step, error));
  for (uint32_t step = 0; step < steps; step++) BENCH_DO(take_output(p, step, error));
  return FF_OK;
}

static ff_status fill(program *p, ff_error *error) {
  void *in;
  TRY(ff_segment_map, p->in, FF_WRITE, 0, 0, &in);
  fill_input(p->plan, in);
  TRY(ff_segment_unmap, p->in, in);
  return FF_OK;
}

static ff_status check(program *p, pipeline_result *result, ff_error *error) {
  void *in, *out;
  TRY(ff_segment_map, p->in, FF_READ, 0, 0, &in);
  TRY(ff_segment_map, p->out, FF_READ, 0, 0, &out);
  check_output(p->plan, in, out, result);
  TRY(ff_segment_unmap, p->in, in);
  TRY(ff_segment_unmap, p->out, out);
  return FF_OK;
}

ff_status run_segments(const pipeline_plan *plan, pipeline_result *result, ff_error *error) {
  program p = {.plan = plan};
  bench_gpu clock; /* the same driver, for its time */
  ff_statistics before, after;
  BENCH_DO(bench_open(&clock, error));
  BENCH_TRY(&clock, DeviceGetName, result->device, sizeof result->device, 0);
  BENCH_DO(open_program(&p, error));
  BENCH_DO(take_memory(&p, error));
  BENCH_DO(fill(&p, error));
  TRY(ff_statistics_get, p.gpu, &before);
  double begin = bench_now(&clock);
  BENCH_DO(run_all(&p, error));
  result->seconds = bench_now(&clock) - begin;
  TRY(ff_statistics_get, p.gpu, &after);
  result->to_gpu = after.to_gpu_bytes - before.to_gpu_bytes;
  result->from_gpu = after.from_gpu_bytes - before.from_gpu_bytes;
  BENCH_DO(check(&p, result, error));
  TRY(ff_close, p.gpu);
  bench_close(&clock);
  return FF_OK;
}
