/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of writing a pipeline share. Private to pipeline*.c.
 *
 * The data: `in` has the input's tiles behind each other (matmul: A's panels, then B's), `out` the output's (matmul:
 * C's tiles, in the order of the steps, so that what is written at a time lies together). A step is a launch or several
 * that make one tile of the output. */
#ifndef FF_BENCH_PIPELINE_PRIVATE_H
#define FF_BENCH_PIPELINE_PRIVATE_H

#include "bench/bench.h"
#include "bench/pipeline.h"

enum { SEED_F = 1013904223, SEED_G = 40503, STAGES = 3, QUAD = 16, COMPUTE_STREAMS = 4, FEW_BUFFERS = 4 };

static inline bool is_matmul(const pipeline_plan *plan) { return plan->shape == PIPELINE_MATMUL; }
static inline uint64_t in_bytes(const pipeline_plan *plan) {
  return plan->tile * plan->tiles * (is_matmul(plan) ? 2 : 1);
}
static inline uint64_t out_bytes(const pipeline_plan *plan) { return plan->tile * plan->tiles; }
/* Of one step's output. */
static inline uint64_t piece_bytes(const pipeline_plan *plan) {
  return is_matmul(plan) ? (uint64_t)plan->panel * plan->panel * 4 : plan->tile;
}
static inline uint32_t quads(const pipeline_plan *plan) { return (uint32_t)(plan->tile / QUAD); }
/* Tiles that a step has in GPU memory at once: in, out, and what lies between. */
static inline uint32_t step_tiles(const pipeline_plan *plan) { return plan->shape == PIPELINE_STREAM ? 2 : 4; }

/* Matmul's steps go through C by PASS_ROWS rows of tiles at a time, column by column of these, forth and back: a panel
 * of B is used for each row of the pass, and the last panels of B are the first of the next pass. */
enum { PASS_ROWS = 2 };
typedef struct matmul_step {
  uint32_t row, column;
} matmul_step;
static inline uint32_t matmul_steps(const pipeline_plan *plan) { return plan->tiles * plan->tiles; }
static inline matmul_step matmul_step_at(const pipeline_plan *plan, uint32_t step) {
  uint32_t pass = step / (plan->tiles * PASS_ROWS), within = step % (plan->tiles * PASS_ROWS), first = pass * PASS_ROWS;
  uint32_t rows = plan->tiles - first < PASS_ROWS ? plan->tiles - first : PASS_ROWS, column = within / rows;
  return (matmul_step){first + within % rows, pass % 2 ? plan->tiles - 1 - column : column};
}
/* The step that makes a tile. */
static inline uint32_t matmul_step_of(const pipeline_plan *plan, matmul_step at) {
  uint32_t pass = at.row / PASS_ROWS, first = pass * PASS_ROWS,
           rows = plan->tiles - first < PASS_ROWS ? plan->tiles - first : PASS_ROWS;
  uint32_t column = pass % 2 ? plan->tiles - 1 - at.column : at.column;
  return first * plan->tiles + column * rows + at.row % PASS_ROWS;
}

/* The launches, on the memory given, in one stream each. */
typedef struct pipeline_kernels {
  cuda_function mix, join, product;
} pipeline_kernels;
ff_status find_kernels(const bench_gpu *gpu, pipeline_kernels *kernels, ff_error *error);
ff_status launch_mix(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address from,
                     cuda_address to, uint32_t tiles, uint32_t seed, cuda_stream stream, ff_error *error);
ff_status launch_product(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address a,
                         cuda_address b, cuda_address c, cuda_stream stream, ff_error *error);
/* A whole step of stream, chain or diamond: in -> out by way of the two tiles between. */
ff_status launch_step(const bench_gpu *gpu, const pipeline_kernels *k, const pipeline_plan *plan, cuda_address in,
                      cuda_address between, cuda_address other, cuda_address out, cuda_stream stream, ff_error *error);

void fill_input(const pipeline_plan *plan, void *in);
void check_output(const pipeline_plan *plan, const void *in, const void *out, pipeline_result *result);

/* The ways. */
ff_status run_streams(const pipeline_plan *plan, bool kernels, bool copies, pipeline_result *result, ff_error *error);
ff_status run_managed(const pipeline_plan *plan, pipeline_result *result, ff_error *error);
ff_status run_segments(const pipeline_plan *plan, pipeline_result *result, ff_error *error);
/* matmul's part of run_streams, on memory that is there. */
ff_status stream_products(const bench_gpu *gpu, const pipeline_kernels *kernels, const pipeline_plan *plan,
                          const unsigned char *in, unsigned char *out, bool with_kernels, bool with_copies,
                          pipeline_result *result, ff_error *error);

#endif
