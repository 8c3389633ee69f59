/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product written by hand: a stream that copies in, four that compute (a tile alone does not fill a GPU),
 * one that copies out, and events between them.
 *
 * GPU memory is divided into buffers for panels of A (those of a pass), for tiles of C (up to eight), and for as many
 * panels of B as fit then. Guarantees
 *   - a panel that is in a buffer is not copied again; a buffer is taken from the panel whose next use is the furthest
 *     away, of several the one that was used first;
 *   - a copy into a buffer waits for the last kernels that read it, a kernel for the copies of what it reads, and for
 *     the copy out of the tile that it overwrites. */
#include <stdlib.h>

#include "base/memory.h"
#include "bench/pipeline_private.h"

enum { C_BUFFERS = 8, A_BUFFERS = PASS_ROWS, NO_PANEL = UINT32_MAX };

typedef struct buffer {
  cuda_address address;
  uint32_t panel; /* NO_PANEL: none yet */
  uint32_t last;  /* step that used it last */
  cuda_event loaded;
  cuda_event used[COMPUTE_STREAMS]; /* by the last kernel of each stream */
  bool in_use[COMPUTE_STREAMS];     /* there was one */
} buffer;

typedef struct products {
  const bench_gpu *gpu;
  const pipeline_kernels *kernels;
  const pipeline_plan *plan;
  const unsigned char *in;
  unsigned char *out;
  bool with_kernels, with_copies;
  cuda_stream in_stream, out_stream, compute[COMPUTE_STREAMS];
  buffer a[A_BUFFERS], *b, c[C_BUFFERS];
  uint32_t b_count, c_count;
  pipeline_result *result;
} products;

static ff_status make_buffer(const products *p, buffer *buffer, uint64_t bytes, ff_error *error) {
  buffer->panel = NO_PANEL;
  BENCH_TRY(p->gpu, MemAlloc, &buffer->address, bytes);
  BENCH_TRY(p->gpu, EventCreate, &buffer->loaded, CUDA_EVENT_DISABLE_TIMING);
  for (int i = 0; i < COMPUTE_STREAMS; i++) BENCH_TRY(p->gpu, EventCreate, &buffer->used[i], CUDA_EVENT_DISABLE_TIMING);
  return FF_OK;
}

static ff_status make_all(products *p, ff_error *error) {
  uint64_t piece = piece_bytes(p->plan), left = p->plan->budget - A_BUFFERS * p->plan->tile;
  p->b_count = (uint32_t)((left - 2 * piece) / p->plan->tile);
  if (p->b_count > p->plan->tiles) p->b_count = p->plan->tiles;
  uint64_t tiles = (left - p->b_count * p->plan->tile) / piece;
  p->c_count = tiles < C_BUFFERS ? (uint32_t)tiles : C_BUFFERS;
  p->b = ff_alloc((p->b_count + 1) * sizeof *p->b);
  for (uint32_t i = 0; i < A_BUFFERS; i++) BENCH_DO(make_buffer(p, &p->a[i], p->plan->tile, error));
  for (uint32_t i = 0; i < p->b_count; i++) BENCH_DO(make_buffer(p, &p->b[i], p->plan->tile, error));
  for (uint32_t i = 0; i < p->c_count; i++) BENCH_DO(make_buffer(p, &p->c[i], piece, error));
  BENCH_TRY(p->gpu, StreamCreate, &p->in_stream, CUDA_STREAM_NON_BLOCKING);
  BENCH_TRY(p->gpu, StreamCreate, &p->out_stream, CUDA_STREAM_NON_BLOCKING);
  for (int i = 0; i < COMPUTE_STREAMS; i++) BENCH_TRY(p->gpu, StreamCreate, &p->compute[i], CUDA_STREAM_NON_BLOCKING);
  return FF_OK;
}

static ff_status free_buffer(const products *p, const buffer *buffer, ff_error *error) {
  BENCH_TRY(p->gpu, MemFree, buffer->address);
  BENCH_TRY(p->gpu, EventDestroy, buffer->loaded);
  for (int i = 0; i < COMPUTE_STREAMS; i++) BENCH_TRY(p->gpu, EventDestroy, buffer->used[i]);
  return FF_OK;
}

static ff_status free_all(products *p, ff_error *error) {
  for (uint32_t i = 0; i < A_BUFFERS; i++) BENCH_DO(free_buffer(p, &p->a[i], error));
  for (uint32_t i = 0; i < p->b_count; i++) BENCH_DO(free_buffer(p, &p->b[i], error));
  for (uint32_t i = 0; i < p->c_count; i++) BENCH_DO(free_buffer(p, &p->c[i], error));
  BENCH_TRY(p->gpu, StreamDestroy, p->in_stream);
  BENCH_TRY(p->gpu, StreamDestroy, p->out_stream);
  for (int i = 0; i < COMPUTE_STREAMS; i++) BENCH_TRY(p->gpu, StreamDestroy, p->compute[i]);
  free(p->b);
  return FF_OK;
}

/* The step from `step` on that uses the panel next; how many steps there are: none does. */
static uint32_t next_use(const pipeline_plan *plan, bool of_a, uint32_t panel, uint32_t step) {
  uint32_t steps = matmul_steps(plan);
  for (; step < steps && panel != NO_PANEL; step++) {
    matmul_step at = matmul_step_at(plan, step);
    if ((of_a ? at.row : at.column) == panel) return step;
  }
  return steps;
}

/* Brings the panel, if it is not there; *found is its buffer. */
static ff_status bring(products *p, bool of_a, uint32_t panel, uint32_t step, buffer **found, ff_error *error) {
  buffer *buffers = of_a ? p->a : p->b, *best = NULL;
  uint32_t count = of_a ? A_BUFFERS : p->b_count, furthest = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t next = next_use(p->plan, of_a, buffers[i].panel, step);
    if (buffers[i].panel == panel) return *found = &buffers[i], FF_OK;
    bool older = best && next == furthest && buffers[i].last < best->last;
    if (!best || next > furthest || older) {
      best = &buffers[i];
      furthest = next;
    }
  }
  *found = best;
  best->panel = panel;
  if (!p->with_copies) return FF_OK;
  for (int i = 0; i < COMPUTE_STREAMS; i++)
    if (best->in_use[i]) BENCH_TRY(p->gpu, StreamWaitEvent, p->in_stream, best->used[i], 0);
  const unsigned char *from = p->in + (of_a ? 0 : p->plan->tiles * p->plan->tile) + panel * p->plan->tile;
  BENCH_TRY(p->gpu, MemcpyHtoDAsync, best->address, from, p->plan->tile, p->in_stream);
  BENCH_TRY(p->gpu, EventRecord, best->loaded, p->in_stream);
  p->result->to_gpu += p->plan->tile;
  return FF_OK;
}

static ff_status multiply(products *p, const buffer *a, const buffer *b, buffer *c, cuda_stream stream,
                          ff_error *error) {
  if (p->with_copies) {
    BENCH_TRY(p->gpu, StreamWaitEvent, stream, a->loaded, 0);
    BENCH_TRY(p->gpu, StreamWaitEvent, stream, b->loaded, 0);
    if (c->panel != NO_PANEL) BENCH_TRY(p->gpu, StreamWaitEvent, stream, c->loaded, 0); /* here: its copy to the host */
  }
  return p->with_kernels
             ? launch_product(p->gpu, p->kernels, p->plan, a->address, b->address, c->address, stream, error)
             : FF_OK;
}

static ff_status do_step(products *p, uint32_t step, ff_error *error) {
  matmul_step at = matmul_step_at(p->plan, step);
  uint32_t which = step % COMPUTE_STREAMS;
  cuda_stream stream = p->compute[which];
  buffer *a, *b, *c = &p->c[step % p->c_count], *sides[2];
  BENCH_DO(bring(p, true, at.row, step, &a, error));
  BENCH_DO(bring(p, false, at.column, step, &b, error));
  BENCH_DO(multiply(p, a, b, c, stream, error));
  sides[0] = a;
  sides[1] = b;
  for (int i = 0; i < 2; i++) {
    BENCH_TRY(p->gpu, EventRecord, sides[i]->used[which], stream);
    sides[i]->in_use[which] = true;
    sides[i]->last = step;
  }
  c->panel = step;
  if (!p->with_copies) return FF_OK;
  BENCH_TRY(p->gpu, StreamWaitEvent, p->out_stream, b->used[which], 0);
  BENCH_TRY(p->gpu, MemcpyDtoHAsync, p->out + step * piece_bytes(p->plan), c->address, piece_bytes(p->plan),
            p->out_stream);
  BENCH_TRY(p->gpu, EventRecord, c->loaded, p->out_stream);
  p->result->from_gpu += piece_bytes(p->plan);
  return FF_OK;
}

ff_status stream_products(const bench_gpu *gpu, const pipeline_kernels *kernels, const pipeline_plan *plan,
                          const unsigned char *in, unsigned char *out, bool with_kernels, bool with_copies,
                          pipeline_result *result, ff_error *error) {
  products p = {.gpu = gpu,
                .kernels = kernels,
                .plan = plan,
                .in = in,
                .out = out,
                .with_kernels = with_kernels,
                .with_copies = with_copies,
                .result = result};
  BENCH_DO(make_all(&p, error));
  BENCH_TRY(gpu, CtxSynchronize, );
  double begin = bench_now(gpu);
  for (uint32_t step = 0; step < matmul_steps(plan); step++) BENCH_DO(do_step(&p, step, error));
  BENCH_TRY(gpu, CtxSynchronize, );
  result->seconds = bench_now(gpu) - begin;
  return free_all(&p, error);
}
