/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the microbenchmark, each way, and the loop around it. */
#include "bench/managed.h"

#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "farfault/farfault.h"

const managed_way_info managed_ways[MANAGED_WAYS] = {
#define X(id, key, name, help) {#key, name, help},
#include "bench/managed.def"
#undef X
};

enum { WARM_TURNS = 2, ATTACH_GLOBAL = 1, TURNS_VIRTUAL = 10, TURNS_REAL = 1000 };

typedef struct turn_state {
  bench_gpu gpu;
  cuda_function kernel;
  cuda_address device; /* managed: the host's address too */
  unsigned char *host; /* page-locked */
  size_t bytes;
  ff_gpu *segments;
  ff_segment *segment;
  ff_kernel *segment_kernel;
} turn_state;

typedef struct way {
  ff_status (*take)(turn_state *s, ff_error *error); /* memory of s->bytes; not called for 0 */
  ff_status (*turn)(turn_state *s, bool touch, ff_error *error);
  ff_status (*give)(turn_state *s, ff_error *error);
} way;

uint32_t managed_pages(uint32_t size) { return size ? 1u << (size - 1) : 0; }

static void touch_pages(volatile unsigned char *pages, size_t bytes) {
  for (size_t i = 0; i < bytes; i += MANAGED_PAGE) pages[i]++;
}

/* ---- managed memory ---- */

static ff_status managed_take(turn_state *s, ff_error *error) {
  BENCH_TRY(&s->gpu, MemAllocManaged, &s->device, s->bytes, ATTACH_GLOBAL);
  return FF_OK;
}

static ff_status managed_turn(turn_state *s, bool touch, ff_error *error) {
  BENCH_DO(bench_launch(&s->gpu, s->kernel, 1, 1, NULL, NULL, error));
  BENCH_TRY(&s->gpu, CtxSynchronize, );
  if (touch) touch_pages((unsigned char *)(uintptr_t)s->device, s->bytes);
  return FF_OK;
}

static ff_status managed_give(turn_state *s, ff_error *error) {
  BENCH_TRY(&s->gpu, MemFree, s->device);
  return FF_OK;
}

/* ---- copies ---- */

static ff_status copies_take(turn_state *s, ff_error *error) {
  void *host;
  BENCH_TRY(&s->gpu, MemAlloc, &s->device, s->bytes);
  BENCH_TRY(&s->gpu, MemHostAlloc, &host, s->bytes, 0);
  s->host = host;
  return FF_OK;
}

static ff_status copies_give(turn_state *s, ff_error *error) {
  BENCH_TRY(&s->gpu, MemFree, s->device);
  BENCH_TRY(&s->gpu, MemFreeHost, s->host);
  return FF_OK;
}

static ff_status turn_with_copies(turn_state *s, bool touch, bool back, ff_error *error) {
  bool copy = touch && s->bytes;
  if (copy) BENCH_TRY(&s->gpu, MemcpyHtoDAsync, s->device, s->host, s->bytes, NULL);
  BENCH_DO(bench_launch(&s->gpu, s->kernel, 1, 1, NULL, NULL, error));
  if (copy && back) BENCH_TRY(&s->gpu, MemcpyDtoHAsync, s->host, s->device, s->bytes, NULL);
  BENCH_TRY(&s->gpu, CtxSynchronize, );
  if (touch) touch_pages(s->host, s->bytes);
  return FF_OK;
}

static ff_status copies_in_turn(turn_state *s, bool touch, ff_error *error) {
  return turn_with_copies(s, touch, false, error);
}
static ff_status copies_turn(turn_state *s, bool touch, ff_error *error) {
  return turn_with_copies(s, touch, true, error);
}

/* ---- segments ---- */

static ff_status segments_fail(ff_error *error) { return ff_fail(error, FF_INTERNAL, "libfarfault: %s", ff_message()); }
#define SEGMENTS_TRY(call)                 \
  do {                                     \
    if (call) return segments_fail(error); \
  } while (0)

static ff_status segments_open(turn_state *s, ff_error *error) {
  ff_module *module;
  SEGMENTS_TRY(ff_open(NULL, &s->segments));
  SEGMENTS_TRY(ff_module_load(s->segments, "bench_kernels.ptx", bench_ptx, 0, &module));
  SEGMENTS_TRY(ff_kernel_find(module, "null_kernel", &s->segment_kernel));
  return FF_OK;
}

static ff_status segments_take(turn_state *s, ff_error *error) {
  SEGMENTS_TRY(ff_segment_create(s->segments, "touched", s->bytes, &s->segment));
  return FF_OK;
}

static ff_status segments_give(turn_state *s, ff_error *error) {
  SEGMENTS_TRY(ff_segment_free(s->segment));
  return FF_OK;
}

/* Mapping is the synchronisation. */
static ff_status turn_with_segment(turn_state *s, bool touch, ff_access access, ff_error *error) {
  ff_use use = {.segment = s->segment, .access = access};
  ff_launch_request request = {
      .kernel = s->segment_kernel, .block = {256}, .uses = &use, .use_count = s->bytes ? 1 : 0};
  ff_ticket ticket;
  void *host;
  SEGMENTS_TRY(ff_launch(s->segments, &request, &ticket));
  if (!touch || !s->bytes) {
    SEGMENTS_TRY(ff_wait(s->segments, ticket));
    return FF_OK;
  }
  SEGMENTS_TRY(ff_segment_map(s->segment, FF_READ_WRITE, 0, 0, &host));
  touch_pages(host, s->bytes);
  SEGMENTS_TRY(ff_segment_unmap(s->segment, host));
  return FF_OK;
}

static ff_status segments_in_turn(turn_state *s, bool touch, ff_error *error) {
  return turn_with_segment(s, touch, FF_READ, error);
}
static ff_status segments_turn(turn_state *s, bool touch, ff_error *error) {
  return turn_with_segment(s, touch, FF_READ_WRITE, error);
}

/* ---- the loop ---- */

static const way ways[MANAGED_WAYS] = {
    [MANAGED_MANAGED] = {managed_take, managed_turn, managed_give},
    [MANAGED_COPIES_IN] = {copies_take, copies_in_turn, copies_give},
    [MANAGED_COPIES] = {copies_take, copies_turn, copies_give},
    [MANAGED_SEGMENTS_IN] = {segments_take, segments_in_turn, segments_give},
    [MANAGED_SEGMENTS] = {segments_take, segments_turn, segments_give},
};

static ff_status mean_turn(turn_state *s, const way *how, bool touch, uint32_t turns, double *microseconds,
                           ff_error *error) {
  for (uint32_t i = 0; i < WARM_TURNS; i++) BENCH_DO(how->turn(s, touch, error));
  double begin = bench_now(&s->gpu);
  for (uint32_t i = 0; i < turns; i++) BENCH_DO(how->turn(s, touch, error));
  *microseconds = (bench_now(&s->gpu) - begin) * 1e6 / turns;
  return FF_OK;
}

static ff_status measure_size(turn_state *s, const way *how, uint32_t turns, double *touched, double *untouched,
                              ff_error *error) {
  if (s->bytes) BENCH_DO(how->take(s, error));
  BENCH_DO(mean_turn(s, how, true, turns, touched, error));
  BENCH_DO(mean_turn(s, how, false, turns, untouched, error));
  return s->bytes ? how->give(s, error) : FF_OK;
}

ff_status managed_measure(managed_way which, uint32_t turns, managed_times *times, ff_error *error) {
  turn_state s = {0};
  BENCH_DO(bench_open(&s.gpu, error));
  times->turns = turns ? turns : s.gpu.driver->is_virtual ? TURNS_VIRTUAL : TURNS_REAL;
  BENCH_TRY(&s.gpu, DeviceGetName, times->device, sizeof times->device, 0);
  BENCH_DO(bench_kernel(&s.gpu, "null_kernel", &s.kernel, error));
  if (which == MANAGED_SEGMENTS_IN || which == MANAGED_SEGMENTS) BENCH_DO(segments_open(&s, error));
  for (uint32_t size = 0; size < MANAGED_SIZES; size++) {
    s.bytes = (size_t)managed_pages(size) * MANAGED_PAGE;
    BENCH_DO(measure_size(&s, &ways[which], times->turns, &times->touched[size], &times->untouched[size], error));
  }
  if (s.segments) SEGMENTS_TRY(ff_close(s.segments));
  bench_close(&s.gpu);
  times->known = true;
  return FF_OK;
}
