/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for several programs on one simulated device: each is a plan (kernels, copies, synchronisations), in a thread
 * of its own, and comes bit by bit from a callback of its access stream, as a recording does; with `jitter` after a
 * while that is another one each time.
 *
 *     bench b; bench_open(&b, SIM_ISOLATION_SM, 2);
 *     b.lanes[0].plan = ...; b.lanes[0].given.sm_count = 5;           (the machine, b.spec, may be changed, too)
 *     bench_run(&b); ... b.lanes[0].result.counters ...; bench_close(&b);
 *
 * `alone` runs the first plan on a device of its own: what a program on a shared device is compared with. */
#ifndef FF_TEST_TENANTS_H
#define FF_TEST_TENANTS_H

#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

typedef enum plan_kind {
  PLAN_END,
  PLAN_ALLOC,
  PLAN_FREE,
  PLAN_KERNEL,
  PLAN_H2D,
  PLAN_D2H,
  PLAN_SYNC,
  PLAN_HOST,
  PLAN_STREAM
} plan_kind;
typedef struct plan_step {
  plan_kind kind;
  uint64_t at, bytes; /* of memory, from RIG_BASE on */
  rig_kernel kernel;  /* or which stream is made: kernel.stream */
  uint32_t repeat;    /* so many times; 0: once */
} plan_step;

struct bench;
typedef struct lane {
  struct bench *bench;
  const plan_step *plan;
  sim_tenant given;
  rig r;
  pthread_t thread;
  uint32_t number, step, repeated;
  trace_launch *launch; /* whose blocks are being written */
  rig_kernel kernel;
  uint64_t block;
  uint64_t passes;
  sim_history *history;
  sim_tenant_result tenant;
  unsigned seed;
} lane;

typedef struct bench {
  machine_spec spec;
  const char *manager, *page;
  sim_isolation isolation;
  bool borrow, jitter, alone;
  bool fails; /* programs may end with an error */
  uint32_t count;
  lane lanes[SIM_TENANTS];
  sim_device *device;
  void (*inspect)(struct bench *b); /* while all is there still */
} bench;

/* All SMs, all colours and all threads for each; tests that divide them say so. */
static inline void bench_open(bench *b, sim_isolation isolation, uint32_t count) {
  memset(b, 0, sizeof *b);
  b->spec = rig_spec();
  b->manager = "copy";
  b->isolation = isolation;
  b->count = count;
  for (uint32_t i = 0; i < SIM_TENANTS; i++)
    b->lanes[i].given = (sim_tenant){.sm_count = (uint32_t)b->spec.sm_count, .colours = UINT64_MAX, .thread_share = 1};
}

/* ---- an address hash ---- */

#define BIT(n) (UINT64_C(1) << (n))

static inline void bench_masks(machine_mask_table *t, uint32_t count, const uint64_t *m) {
  t->count = count;
  memcpy(t->masks, m, count * sizeof *m);
}

/* Eight modules by bits 12 to 18, so that a page of 4 KiB is in one of them. */
static inline void bench_hashed(machine_spec *s) {
  s->l2_slices = s->channels = 8;
  s->l2_bytes = 1 << 20;
  snprintf(s->address_map, sizeof s->address_map, "xor");
  uint64_t m[] = {BIT(12) | BIT(16), BIT(13) | BIT(17), BIT(14) | BIT(18), BIT(19), BIT(20), BIT(21), BIT(22)};
  uint64_t sets[] = {m[0], m[1], m[2], BIT(7), BIT(8), BIT(9), BIT(10), BIT(11), BIT(15), BIT(23)};
  bench_masks(&s->module_masks, 3, m);
  bench_masks(&s->bank_masks, 7, m);
  bench_masks(&s->set_masks, 10, sets);
}

/* ---- a program, bit by bit ---- */

static inline void lane_append(lane *l, const plan_step *p) {
  rig *r = &l->r;
  switch (p->kind) {
  case PLAN_ALLOC: rig_alloc(r, RIG_BASE + p->at, p->bytes, TRACE_MEMORY_DEVICE); break;
  case PLAN_FREE: rig_op(r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE + p->at}}); break;
  case PLAN_H2D: rig_h2d(r, RIG_BASE + p->at, p->bytes); break;
  case PLAN_D2H: rig_d2h(r, RIG_BASE + p->at, p->bytes); break;
  case PLAN_SYNC: rig_sync(r); break;
  case PLAN_HOST: rig_op(r, (trace_op){.kind = TRACE_OP_HOST}); break;
  case PLAN_STREAM:
    rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE,
                         .stream = p->kernel.stream,
                         .stream_create = {TRACE_STREAM_NON_BLOCKING}});
    break;
  case PLAN_END: rig_op(r, (trace_op){.kind = TRACE_OP_END}); break;
  case PLAN_KERNEL:
    l->kernel = p->kernel;
    l->launch = rig_launch_begin(r, p->kernel);
    l->block = 0;
    break;
  }
}

static inline void lane_pull(void *context) {
  lane *l = context;
  if (l->bench->jitter) usleep((unsigned)rand_r(&l->seed) % 150);
  if (l->launch) {
    rig_block(l->launch, &l->kernel, l->block);
    if (++l->block < l->kernel.blocks) return;
    trace_launch_finish(l->launch);
    l->launch = NULL;
    return;
  }
  const plan_step *p = &l->plan[l->step];
  lane_append(l, p);
  if (++l->repeated < p->repeat) return;
  l->repeated = 0;
  l->step++;
}

static inline void lane_open(lane *l) {
  const bench *b = l->bench;
  ff_error error = {0};
  rig_open(&l->r, b->manager);
  l->step = l->repeated = 0;
  l->r.program = trace_program_create(0);
  sim_options options = {.spec = b->device && l->given.slice ? l->given.slice : &b->spec,
                         .manager = b->manager,
                         .page = b->page,
                         .history = true,
                         .device = b->device,
                         .tenant = b->device ? l->number : 0};
  if (sim_create(l->r.program, &options, &l->r.sim, &error)) fail_msg("%s", error.message);
  trace_program_pull(l->r.program, lane_pull, l);
}

static inline void lane_close(lane *l) {
  if (!l->r.sim) return;
  sim_result_free(&l->r.result);
  sim_free(l->r.sim);
  if (l->launch) trace_launch_finish(l->launch);
  l->launch = NULL;
  trace_program_free(l->r.program);
  memset(&l->r, 0, sizeof l->r);
}

/* ---- all of them ---- */

static inline void *lane_run(void *argument) {
  lane *l = argument;
  for (;;) {
    sim_run(l->r.sim);
    if (!l->given.loops || sim_device_stopped(l->bench->device)) return NULL;
    l->passes++;
    lane_close(l);
    lane_open(l);
  }
}

static inline void bench_run(bench *b) {
  ff_error error = {0};
  sim_tenant tenants[SIM_TENANTS];
  for (uint32_t i = 0; i < b->count; i++) tenants[i] = b->lanes[i].given;
  sim_device_options options = {
      .spec = &b->spec, .isolation = b->isolation, .borrow = b->borrow, .tenants = tenants, .count = b->count};
  if (!b->alone && sim_device_create(&options, &b->device, &error)) fail_msg("%s", error.message);
  for (uint32_t i = 0; i < b->count; i++) {
    lane *l = &b->lanes[i];
    l->bench = b;
    l->number = i;
    l->seed = (unsigned)getpid() * 31 + i;
    if (!l->given.idle) lane_open(l);
  }
  for (uint32_t i = 0; i < b->count; i++)
    if (!b->lanes[i].given.idle) assert_int_equal(pthread_create(&b->lanes[i].thread, NULL, lane_run, &b->lanes[i]), 0);
  for (uint32_t i = 0; i < b->count; i++)
    if (!b->lanes[i].given.idle) pthread_join(b->lanes[i].thread, NULL);
  for (uint32_t i = 0; i < b->count; i++) {
    lane *l = &b->lanes[i];
    if (b->device) sim_device_tenant(b->device, i, &l->tenant);
    if (l->given.idle) continue;
    sim_snapshot(l->r.sim, &l->r.result);
    l->history = sim_history_take(l->r.sim);
    if (b->fails) continue;
    assert_string_equal(l->r.result.error, "");
    assert_true(l->r.result.complete);
  }
  if (b->inspect) b->inspect(b);
}

static inline void bench_close(bench *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    history_free(b->lanes[i].history);
    lane_close(&b->lanes[i]);
  }
  if (b->device) sim_device_free(b->device); /* where all frames must have been given back */
}

/* The first plan of `b` on a device of its own. */
static inline sim_counters bench_alone(const bench *b) {
  bench own = *b;
  own.alone = true;
  own.count = 1;
  own.inspect = NULL;
  own.lanes[0].given = (sim_tenant){0};
  bench_run(&own);
  sim_counters c = own.lanes[0].r.result.counters;
  bench_close(&own);
  return c;
}

/* Counter for counter, by name. */
static inline void counters_equal(const sim_counters *a, const sim_counters *b) {
#define X(name, unit, help) \
  if (a->name != b->name) fail_msg(#name ": %llu and %llu", (unsigned long long)a->name, (unsigned long long)b->name);
#include "machine/observe/counters.def"
#undef X
}

#endif
