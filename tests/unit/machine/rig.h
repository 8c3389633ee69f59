/* SPDX-License-Identifier: Apache-2.0 */
/* A bench for the timing model: a machine made in C, a synthetic program written straight into the access stream, one
 * simulation, its result.
 *
 *     rig r; rig_open(&r, "replay"); r.spec.fault_us = 50;         (the machine may be changed until rig_start)
 *     rig_start(&r); rig_alloc(&r, BASE, 4096, TRACE_MEMORY_DEVICE);
 *     rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = my_warp});
 *     const sim_result *result = rig_finish(&r); ... rig_close(&r);
 *
 * FARFAULT_RIG_THREADS=N: simulations run in rounds on N threads (machine/sm/rounds.h), where they can.
 *
 * Host costs are zero and the device's are round figures, so that a test can say the picosecond at which a thing
 * happens: the core's cycle is 1 ns. */
#ifndef FF_TEST_RIG_H
#define FF_TEST_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/simulation.h"

#define RIG_BASE UINT64_C(0x200000000000)
#define NS UINT64_C(1000)
#define US UINT64_C(1000000)

typedef struct rig {
  machine_spec spec;
  const char *manager;
  uint64_t gpu_memory, unit_bytes, gap_bytes; /* gap_bytes: if `gap` */
  uint32_t ranges;
  bool gap;
  const char *prefetch, *evict, *page, *faults, *access_counters, *advise;
  bool write_back_overlaps, history, l2_flush, lines, profile;
  uint32_t sample, threads;
  watermarks watermarks;
  double gpu_memory_share;
  sim_offload offload;
  const char *map;
  const sim_offloading *offloading;
  uint64_t budget; /* of the access stream */
  trace_program *program;
  trace_future *future; /* of it, once rig_start has seen that it is needed */
  sim *sim, *recorder;
  sim_result result;
  uint32_t allocations, events;
} rig;

typedef struct rig_kernel {
  uint64_t blocks;
  uint32_t warps, stream, registers, shared_bytes, carve_out, smids;
  void (*warp)(trace_writer *w, uint64_t block, uint32_t warp, const void *context);
  const void *context;
  const char *name;
  trace_l2_controls l2;
  uint32_t use_count; /* what it declares */
  trace_use uses[4];
} rig_kernel;

/* 15 SMs at 1 GHz with Zheng's far-faults and link; latencies in ns: L1 20, L2 100, DRAM 100 + timings at 1 GHz. */
static inline machine_spec rig_spec(void) {
  machine_spec s = {.name = "rig",
                    .compute_major = 7,
                    .compute_minor = 5,
                    .memory_bytes = UINT64_C(1) << 30,
                    .sm_count = 15,
                    .clock_mhz = 1000,
                    .schedulers = 2,
                    .issue_interval = 4,
                    .sfu_cycles = 8,
                    .fp64_cycles = 16,
                    .shared_latency = 2,
                    .max_threads = 1536,
                    .max_blocks = 8,
                    .registers = 32768,
                    .shared_bytes = 49152,
                    .shared_per_block = 49152,
                    .shared_per_block_optin = 49152,
                    .launch_latency_us = 0,
                    .block_launch_cycles = 0,
                    .exact_allocation = 1,
                    .l1_bytes = 16384,
                    .l1_ways = 4,
                    .l1_latency = 20,
                    .l1_mshrs = 64,
                    .tlb_entries = 128,
                    .tlb_ports = 4,
                    .tlb_miss_latency = 20,
                    .page_bytes = 4096,
                    .walkers = 64,
                    .walk_cache_bytes = 8192,
                    .walk_cache_latency = 20,
                    .walk_levels = 4,
                    .l2_bytes = 1536 << 10,
                    .l2_slices = 12,
                    .l2_ways = 8,
                    .l2_latency = 100,
                    .l2_mshrs = 128,
                    .l2_bytes_per_cycle = 32,
                    .channels = 12,
                    .dram_gbs = 384,
                    .dram_clock_mhz = 1000,
                    .banks = 16,
                    .row_bytes = 2048,
                    .t_rcd = 12,
                    .t_rp = 12,
                    .t_rc = 40,
                    .t_cl = 12,
                    .t_wr = 12,
                    .dram_latency = 100,
                    .link_h2d_gbs = 16,
                    .link_d2h_gbs = 16,
                    .link_latency_us = 0,
                    .link_copy_us = 0,
                    .copy_engines = 2,
                    .fault_us = 20,
                    .fault_mshrs = 4,
                    .host_fault_us = 0,
                    .first_touch_moves = 1,
                    .fault_page_bytes = 4096,
                    .host_gbs = 1000};
  return s;
}

static inline void rig_open(rig *r, const char *manager) {
  memset(r, 0, sizeof *r);
  r->spec = rig_spec();
  r->manager = manager;
}

static inline void rig_start(rig *r) {
  ff_error error = {0};
  const char *threads = getenv("FARFAULT_RIG_THREADS");
  r->program = trace_program_create(r->budget);
  trace_program_mark(r->program, true);
  trace_program_units(r->program, true);
  sim_options options = {.spec = &r->spec,
                         .manager = r->manager,
                         .gpu_memory = r->gpu_memory,
                         .prefetch = r->prefetch,
                         .evict = r->evict,
                         .page = r->page,
                         .faults = r->faults,
                         .access_counters = r->access_counters,
                         .advise = r->advise,
                         .unit_bytes = r->unit_bytes,
                         .ranges = r->ranges,
                         .gap_bytes = r->gap_bytes,
                         .gap_chosen = r->gap,
                         .write_back_overlaps = r->write_back_overlaps,
                         .history = r->history,
                         .lines = r->lines,
                         .profile = r->profile,
                         .l2_flush = r->l2_flush,
                         .sample = r->sample,
                         .threads = r->threads,
                         .offload = r->offload,
                         .map = r->map,
                         .offloading = r->offloading,
                         .watermarks = r->watermarks,
                         .watermarks_chosen = r->watermarks.low > 0,
                         .gpu_memory_share = r->gpu_memory_share,
                         .future = r->future = trace_future_create()};
  bool rounds = threads && !r->threads;
  if (rounds) options.threads = (uint32_t)strtoul(threads, NULL, 10);
  if (rounds && sim_create(r->program, &options, &r->sim, &error) == FF_UNSUPPORTED) options.threads = 0;
  if (!r->sim && sim_create(r->program, &options, &r->sim, &error)) fail_msg("%s", error.message);
  sim_options recorder = {.spec = &r->spec, .manager = "ideal", .future = r->future, .records_future = true};
  if (sim_needs_future(r->sim) && sim_create(r->program, &recorder, &r->recorder, &error))
    fail_msg("%s", error.message);
}

static inline uint64_t rig_op(rig *r, trace_op op) { return trace_op_append(r->program, &op); }

static inline void rig_alloc(rig *r, uint64_t address, uint64_t bytes, trace_memory_kind kind) {
  trace_op op = {.kind = TRACE_OP_ALLOC,
                 .alloc = {.address = address, .bytes = bytes, .memory = kind, .id = ++r->allocations}};
  snprintf(op.alloc.name, sizeof op.alloc.name, "array #%u", r->allocations);
  rig_op(r, op);
}

static inline uint64_t rig_copy(rig *r, trace_direction direction, uint64_t to, uint64_t from, uint64_t bytes,
                                bool blocking, uint32_t stream) {
  return rig_op(r, (trace_op){.kind = TRACE_OP_COPY,
                              .blocking = blocking,
                              .stream = stream,
                              .copy = {.to = to,
                                       .from = from,
                                       .width = bytes,
                                       .height = 1,
                                       .to_pitch = bytes,
                                       .from_pitch = bytes,
                                       .direction = direction,
                                       .pinned = true}});
}
static inline uint64_t rig_h2d(rig *r, uint64_t to, uint64_t bytes) {
  return rig_copy(r, TRACE_H2D, to, 0x1000, bytes, true, 0);
}
static inline uint64_t rig_d2h(rig *r, uint64_t from, uint64_t bytes) {
  return rig_copy(r, TRACE_D2H, 0x1000, from, bytes, true, 0);
}
static inline uint64_t rig_set(rig *r, uint64_t to, uint64_t bytes) {
  return rig_op(r, (trace_op){.kind = TRACE_OP_SET, .set = {.to = to, .width = bytes, .height = 1, .pitch = bytes}});
}
static inline uint64_t rig_sync(rig *r) { return rig_op(r, (trace_op){.kind = TRACE_OP_SYNC_DEVICE}); }
static inline uint32_t rig_record(rig *r, uint32_t stream, uint64_t *sequence) {
  *sequence = rig_op(r, (trace_op){.kind = TRACE_OP_EVENT_RECORD, .stream = stream, .event = {++r->events}});
  return r->events;
}

static inline trace_launch *rig_launch_begin(rig *r, rig_kernel k) {
  trace_launch *l = trace_launch_create(r->program, k.blocks, k.warps);
  snprintf(l->kernel, sizeof l->kernel, "%s", k.name ? k.name : "kernel");
  l->grid[0] = (uint32_t)k.blocks;
  l->block[0] = k.warps * 32;
  l->registers = k.registers;
  l->shared_bytes = k.shared_bytes;
  l->carve_out = (uint8_t)k.carve_out;
  l->smids = k.smids;
  l->l2 = k.l2;
  l->use_count = k.use_count;
  memcpy(l->uses, k.uses, sizeof k.uses);
  rig_op(r, (trace_op){.kind = TRACE_OP_LAUNCH, .stream = k.stream, .launch = l});
  return l;
}

static inline void rig_block(trace_launch *l, const rig_kernel *k, uint64_t b) {
  trace_chunk *chunk = trace_chunk_begin(l, b);
  for (uint32_t w = 0; w < k->warps; w++) {
    trace_writer writer;
    trace_chunk_writer(chunk, w, &writer);
    if (k->warp) k->warp(&writer, b, w, k->context);
    trace_put_exit(&writer);
  }
  trace_chunk_publish(chunk);
}

static inline void rig_launch(rig *r, rig_kernel k) {
  trace_launch *l = rig_launch_begin(r, k);
  for (uint64_t b = 0; b < k.blocks; b++) rig_block(l, &k, b);
  trace_launch_finish(l);
}

/* Runs everything that was written; the result belongs to the rig. */
static inline const sim_result *rig_finish(rig *r) {
  rig_op(r, (trace_op){.kind = TRACE_OP_END});
  if (r->recorder) sim_run(r->recorder);
  sim_run(r->sim);
  sim_snapshot(r->sim, &r->result);
  assert_true(r->result.complete);
  return &r->result;
}

static inline void rig_close(rig *r) {
  sim_result_free(&r->result);
  sim_free(r->sim);
  sim_free(r->recorder);
  trace_future_free(r->future);
  trace_program_free(r->program);
}

/* ---- what kernels do ---- */

static inline void rig_issue(trace_writer *w, uint32_t n) { trace_put_issue(w, n, 0, 0, 0); }
/* ... of which a compiler makes these machine instructions. */
static inline void rig_units(trace_writer *w, uint32_t n, const uint32_t units[TRACE_UNIT_COUNT]) {
  trace_counts none = {{0}}, counts = none;
  for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) counts.word[u / 3] += (uint64_t)units[u] << u % 3 * TRACE_UNIT_BITS;
  trace_put_issue(w, n, 0, 0, 0);
  trace_count_units(w, &counts, &none);
}
/* One coalesced access of a whole line, or of the sectors in `sectors` only. */
static inline void rig_access(trace_writer *w, trace_access_op op, uint32_t flags, uint64_t address, uint32_t sectors) {
  *trace_put_access(w, op, 2, flags, 0, ~0u, 1) = trace_line(address, 32, sectors);
}
static inline void rig_load(trace_writer *w, uint64_t address) { rig_access(w, TRACE_LOAD, 0, address, 15); }
static inline void rig_load_wait(trace_writer *w, uint64_t address) {
  rig_load(w, address);
  trace_put_wait(w, 0);
}
static inline void rig_store(trace_writer *w, uint64_t address) { rig_access(w, TRACE_STORE, 0, address, 15); }

/* Runs one kernel on one array of 64 MiB, everything resident; the counters of the run. */
typedef void (*rig_tweak)(machine_spec *spec);
static inline sim_counters rig_run(rig_tweak tweak, rig_kernel k) {
  rig r;
  rig_open(&r, "ideal");
  if (tweak) tweak(&r.spec);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, k);
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}
/* How long one warp alone takes. */
static inline ps rig_time(rig_tweak tweak, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *)) {
  return rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = warp}).kernel_ps;
}

#define assert_between(value, low, high)                                                               \
  do {                                                                                                 \
    if ((value) < (low) || (value) > (high))                                                           \
      fail_msg("%s is %g, expected %g to %g", #value, (double)(value), (double)(low), (double)(high)); \
  } while (0)
#define assert_near(value, expected, share)                                         \
  do {                                                                              \
    double v_ = (double)(value), e_ = (double)(expected);                           \
    if (v_ < e_ * (1 - (share)) || v_ > e_ * (1 + (share)))                         \
      fail_msg("%s is %g, expected %g within %g", #value, v_, e_, (double)(share)); \
  } while (0)

#endif
