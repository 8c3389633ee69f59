/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the timing model alone is: synthetic access streams, written before the clock starts.
 *
 *     bench_sim [WORKLOAD|MANAGER|MACHINE.yaml|SHARE%|history|threads=N|parts...]     prints, per stream and manager, millions per second of host time
 *     (of the one thread; with threads=N, on which the SMs run in rounds: of wall time)
 *
 * parts: each is simulated twice, without rounds and in rounds on one thread, and what the parts of rounds take is
 * printed, in processor time, so that a loaded machine does not blur it. `at best`: the time without rounds over that
 * of the serial parts and half of the parallel one, as if two threads were as quick together as one is alone and waited
 * for nothing.
 *
 * SHARE%: of the GPU memory that the stream's data takes. history: is kept. Of what is not named: all workloads, four
 * managers, enough memory. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/sim.h"
#include "trace/stream.h"

#define BASE UINT64_C(0x200000000000)

static double wall_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t resident_bytes(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (uint64_t)pages * 4096;
}

/* Zheng's Table 1, unless a machine file is named. */
static machine_spec spec = {.name = "bench",
                            .compute_major = 2,
                            .memory_bytes = UINT64_C(4) << 30,
                            .sm_count = 15,
                            .clock_mhz = 1400,
                            .schedulers = 2,
                            .issue_interval = 6,
                            .sfu_cycles = 8,
                            .fp64_cycles = 16,
                            .shared_latency = 2,
                            .max_threads = 1536,
                            .max_blocks = 8,
                            .registers = 32768,
                            .shared_bytes = 49152,
                            .shared_per_block = 49152,
                            .shared_per_block_optin = 49152,
                            .launch_latency_us = 5,
                            .block_launch_cycles = 100,
                            .l1_bytes = 16384,
                            .l1_ways = 4,
                            .l1_latency = 40,
                            .l1_mshrs = 64,
                            .tlb_entries = 128,
                            .tlb_ports = 4,
                            .tlb_miss_latency = 40,
                            .page_bytes = 4096,
                            .walkers = 64,
                            .walk_cache_bytes = 8192,
                            .walk_cache_latency = 20,
                            .walk_levels = 4,
                            .l2_bytes = 1536 << 10,
                            .l2_slices = 12,
                            .l2_ways = 8,
                            .l2_latency = 240,
                            .l2_mshrs = 128,
                            .l2_bytes_per_cycle = 32,
                            .channels = 12,
                            .dram_gbs = 384,
                            .dram_clock_mhz = 2000,
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
                            .link_latency_us = 2,
                            .link_copy_us = 5,
                            .copy_engines = 1,
                            .fault_us = 20,
                            .fault_mshrs = 4,
                            .first_touch_moves = 1,
                            .fault_page_bytes = 4096,
                            .api_us = 1,
                            .launch_us = 3,
                            .sync_us = 5,
                            .malloc_us = 10,
                            .host_gbs = 10};

static void load(trace_writer *w, uint64_t address) {
  *trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 1) = trace_line(address, 32, 15);
}

/* C = A B, 512 x 512 floats, tiles of 16 x 16 in shared memory. */
static void matrix(trace_writer *w, uint64_t block, uint32_t warp) {
  uint64_t row = block / 32 * 16 + warp * 2, column = block % 32 * 16;
  trace_put_issue(w, 20, 0, 0, 0);
  for (uint64_t tile = 0; tile < 32; tile++) {
    for (int array = 0; array < 2; array++) { /* two rows of 64 bytes: two lines with two sectors each */
      uint64_t a =
          array ? BASE + (1 << 20) + ((tile * 16 + warp * 2) * 512 + column) * 4 : BASE + (row * 512 + tile * 16) * 4;
      uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 2);
      for (int i = 0; i < 2; i++) at[i] = trace_line(a + (uint64_t)i * 2048, 16, a & 64 ? 12 : 3);
      trace_put_issue(w, 4, 0, 0, 0);
    }
    trace_put_wait(w, 0);
    trace_put_issue(w, 4, 2, 0, 0);
    trace_put_barrier(w, 0, false, 8);
    trace_put_issue(w, 56, 32, 0, 0);
    trace_put_barrier(w, 0, false, 8);
  }
  *trace_put_access(w, TRACE_STORE, 2, 0, 0, ~0u, 1) = trace_line(BASE + (2 << 20) + (row * 512 + column) * 4, 32, 3);
}

static uint64_t random_state = 1;
static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* Neighbours of 32 nodes in 64 MB: a coalesced load, then scattered ones that diverge. */
static void search(trace_writer *w, uint64_t block, uint32_t warp) {
  trace_put_issue(w, 12, 0, 0, 0);
  load(w, BASE + (block * 8 + warp) * 128);
  trace_put_wait(w, 0);
  for (int edge = 0; edge < 4; edge++) {
    for (int step = 0; step < 2; step++) {
      uint32_t lines = 8 + next_random() % 16;
      trace_put_issue(w, 8, 0, 0, 0);
      uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, lines);
      for (uint32_t i = 0; i < lines; i++)
        at[i] = trace_line(BASE + next_random() % (64 << 20) / 128 * 128, 1, 1u << next_random() % 4);
      trace_put_wait(w, 0);
    }
    trace_put_issue(w, 6, 0, 0, 0);
    *trace_put_access(w, TRACE_STORE, 2, 0, 0, 1, 1) = trace_line(BASE + next_random() % (64 << 20) / 128 * 128, 1, 1);
  }
}

/* c[i] = a[i] + b[i] */
static void vector(trace_writer *w, uint64_t block, uint32_t warp) {
  uint64_t i = (block * 8 + warp) * 128;
  trace_put_issue(w, 10, 0, 0, 0);
  load(w, BASE + i);
  trace_put_issue(w, 1, 0, 0, 0);
  load(w, BASE + (16 << 20) + i);
  trace_put_wait(w, 0);
  trace_put_issue(w, 2, 0, 0, 0);
  *trace_put_access(w, TRACE_STORE, 2, 0, 0, ~0u, 1) = trace_line(BASE + (32 << 20) + i, 32, 15);
}

/* A line in each page of 16 GiB. */
static void footprint(trace_writer *w, uint64_t block, uint32_t warp) {
  trace_put_issue(w, 10, 0, 0, 0);
  uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 32);
  for (uint64_t i = 0; i < 32; i++) at[i] = trace_line(BASE + ((block * 8 + warp) * 32 + i) * 4096, 1, 1);
  trace_put_wait(w, 0);
}

typedef struct workload {
  const char *name;
  uint64_t blocks, bytes;
  void (*warp)(trace_writer *, uint64_t, uint32_t);
} workload;

static double memory_share; /* 0: enough */
static uint32_t threads;    /* on which SMs run in rounds; 0: event by event */
static bool history;        /* is kept */
static bool parts;          /* are measured: in */
static round_parts measured;

/* Returns how long it took. */
static double run(const workload *work, const char *manager) {
  trace_program *program = trace_program_create(UINT64_C(8) << 30);
  sim *sim;
  ff_error error;
  sim_options options = {.spec = &spec,
                         .manager = manager,
                         .gpu_memory_share = memory_share,
                         .history = history,
                         .threads = threads,
                         .parts = parts};
  if (sim_create(program, &options, &sim, &error)) {
    fprintf(stderr, "bench_sim: %s\n", error.message);
    exit(1);
  }
  trace_op_append(
      program, &(trace_op){.kind = TRACE_OP_ALLOC, .alloc = {.address = BASE, .bytes = work->bytes, .name = "data"}});
  trace_launch *launch = trace_launch_create(program, work->blocks, 8);
  strcpy(launch->kernel, work->name);
  launch->shared_bytes = 2048;
  launch->registers = 20;
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  for (uint64_t b = 0; b < work->blocks; b++) {
    trace_chunk *chunk = trace_chunk_begin(launch, b);
    for (uint32_t i = 0; i < 8; i++) {
      trace_writer writer;
      trace_chunk_writer(chunk, i, &writer);
      work->warp(&writer, b, i);
      trace_put_exit(&writer);
    }
    trace_chunk_publish(chunk);
  }
  trace_launch_finish(launch);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  uint64_t before = resident_bytes();
  double start = seconds(), wall = wall_seconds();
  sim_run(sim);
  double took = seconds() - start;
  if (threads && !parts) took = wall_seconds() - wall;
  uint64_t after = resident_bytes();
  sim_result result;
  sim_snapshot(sim, &result);
  const sim_counters *c = &result.counters;
  printf(
      "%-8s %-8s %8.3f s  %7.2f M warp instructions/s  %6.2f M accesses/s  %6.2f M lines/s  simulated %9.1f us, %4.1f %% of DRAM peak, %.2f row hits, %4.0f bytes of memory per page\n",
      work->name, manager, took, (double)c->warp_instructions / took / 1e6, (double)c->accesses / took / 1e6,
      (double)c->lines / took / 1e6, (double)c->time_ps / 1e6,
      (double)(c->dram_read_bytes + c->dram_write_bytes) / ((double)c->kernel_ps / 1000) / spec.dram_gbs * 100,
      (double)c->dram_row_hits / (double)(c->dram_row_hits + c->dram_row_misses + 1),
      after > before ? (double)(after - before) / ((double)work->bytes / 4096) : 0.0);
  if (parts && threads) sim_round_parts(sim, &measured);
  sim_result_free(&result);
  sim_free(sim);
  trace_program_free(program);
  return took;
}

static void run_parts(const workload *work, const char *manager) {
  threads = 0;
  double without = run(work, manager);
  threads = 1;
  double took = run(work, manager), sms = (double)measured.sms * 1e-9, serving = (double)measured.serving * 1e-9,
         steps = (double)measured.steps * 1e-9, shared = (double)measured.side_by_side * 1e-9;
  printf(
      "         SMs %.3f s, serving %.3f s (%.3f s side by side), steps %.3f s, rest %.3f s; at best %.2f; %.3f M rounds, %.3f M turns of %.1f SMs, %.3f M steps, %.3f M requests\n",
      sms, serving, shared, steps, took - sms - serving - steps, without / (took - (sms + shared) / 2),
      (double)measured.rounds / 1e6, (double)measured.turns / 1e6,
      (double)measured.listed / (double)(measured.turns + 1), (double)measured.stepped / 1e6,
      (double)measured.served / 1e6);
}

static void run_only(const workload *work, const char *manager) { (void)run(work, manager); }

static bool among(const char *name, int argc, char **argv, bool (*known)(const char *)) {
  bool any = false;
  for (int a = 1; a < argc; a++) {
    if (!strcmp(argv[a], name)) return true;
    any |= known(argv[a]);
  }
  return !any; /* none of this sort was named: all of them */
}

static const workload workloads[] = {{"matrix", 1024, 3 << 20, matrix},
                                     {"search", 4096, 64 << 20, search},
                                     {"vector", 16384, 48 << 20, vector},
                                     {"footprint", 16384, UINT64_C(16) << 30, footprint}};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static bool is_workload(const char *name) {
  for (int i = 0; i < WORKLOADS; i++)
    if (!strcmp(workloads[i].name, name)) return true;
  return false;
}
static bool is_machine(const char *name) { return strstr(name, ".yaml") != NULL; }
static bool is_share(const char *name) { return strchr(name, '%') != NULL; }
static bool is_threads(const char *name) { return !strncmp(name, "threads=", 8); }
static bool is_history(const char *name) { return !strcmp(name, "history"); }
static bool is_parts(const char *name) { return !strcmp(name, "parts"); }
static bool is_manager(const char *name) {
  return !is_workload(name) && !is_machine(name) && !is_share(name) && !is_history(name) && !is_threads(name) &&
         !is_parts(name);
}

int main(int argc, char **argv) {
  static const char *const all[] = {"copy", "demand", "replay", "ideal"};
  for (int a = 1; a < argc; a++) {
    ff_error error;
    if (is_machine(argv[a]) && machine_spec_load(argv[a], &spec, &error)) {
      fprintf(stderr, "bench_sim: %s\n", error.message);
      return 1;
    }
  }
  for (int a = 1; a < argc; a++)
    if (is_history(argv[a])) history = true;
    else if (is_parts(argv[a])) parts = true;
    else if (is_threads(argv[a])) threads = (uint32_t)strtoul(argv[a] + 8, NULL, 10);
    else if (is_share(argv[a])) memory_share = strtod(argv[a], NULL) / 100;
  const char **chosen = malloc((size_t)(argc + 4) * sizeof *chosen);
  int count = 0;
  for (int a = 1; a < argc; a++)
    if (is_manager(argv[a])) chosen[count++] = argv[a];
  if (!count)
    while (count < 4) {
      chosen[count] = all[count];
      count++;
    }
  for (int i = 0; i < WORKLOADS; i++)
    for (int m = 0; m < count; m++)
      if (among(workloads[i].name, argc, argv, is_workload)) (parts ? run_parts : run_only)(&workloads[i], chosen[m]);
  free(chosen);
  return 0;
}
