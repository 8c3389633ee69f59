/* SPDX-License-Identifier: Apache-2.0 */
/* What paging costs the simulator when memory is too small: processor time per far-fault that must evict, and per page
 * that a big prefetch of the program moves, for each evictor.
 *
 *     bench_faults [EVICTOR|SIZE...]      SIZE: GiB of GPU memory, "16G"; of what is not named: lru, fifo, tree, belady, auto; 1 and 16 GiB
 *
 * Two allocations of the size of GPU memory. The first one is prefetched, which fills memory (*fill*). Then a kernel
 * touches pages of the second in an order without neighbours: each is a far-fault, and one page must go for it
 * (*fault*); or the second is prefetched, too, and everything goes (*swap*). Each is a run of its own; what the fill
 * takes is subtracted. Units are 4 KiB, the manager is replay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/sim.h"
#include "trace/stream.h"

#define FIRST UINT64_C(0x200000000000)
enum { FAULTS = 1 << 19, LINES = 32, WARPS = 8, PAGE = 4096 };

typedef enum part { FILL, FAULT, SWAP } part;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void require(bool fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "bench_faults: %s\n", what);
  exit(1);
}

/* The i-th page to be touched: every page once, no two after one another near each other. */
static uint64_t page_of(uint64_t i, uint64_t pages) { return i * UINT64_C(0x9e3779b1) % pages; }

static uint64_t faults_of(uint64_t pages) { return pages / 2 < FAULTS ? pages / 2 : FAULTS; }

static void touch(trace_program *program, uint64_t base, uint64_t pages) {
  uint64_t blocks = faults_of(pages) / LINES / WARPS;
  trace_launch *launch = trace_launch_create(program, blocks, WARPS);
  strcpy(launch->kernel, "touch");
  launch->registers = 20;
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  for (uint64_t b = 0; b < blocks; b++) {
    trace_chunk *chunk = trace_chunk_begin(launch, b);
    for (uint32_t w = 0; w < WARPS; w++) {
      trace_writer writer;
      trace_chunk_writer(chunk, w, &writer);
      uint64_t *at = trace_put_access(&writer, TRACE_LOAD, 2, 0, 0, ~0u, LINES);
      for (uint64_t i = 0; i < LINES; i++)
        at[i] = trace_line(base + page_of((b * WARPS + w) * LINES + i, pages) * PAGE, 1, 1);
      trace_put_wait(&writer, 0);
      trace_put_exit(&writer);
    }
    trace_chunk_publish(chunk);
  }
  trace_launch_finish(launch);
}

static void prefetch(trace_program *program, uint64_t address, uint64_t bytes) {
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_PREFETCH, .hint = {.address = address, .bytes = bytes}});
}

static void write_program(trace_program *program, part part, uint64_t bytes) {
  uint64_t second = FIRST + 2 * bytes;
  for (int i = 0; i < 2; i++)
    trace_op_append(
        program,
        &(trace_op){
            .kind = TRACE_OP_ALLOC,
            .alloc = {.address = i ? second : FIRST, .bytes = bytes, .name = "data", .memory = TRACE_MEMORY_MANAGED}});
  prefetch(program, FIRST, bytes);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE});
  if (part == FAULT) touch(program, second, bytes / PAGE);
  if (part == SWAP) prefetch(program, second, bytes);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_SYNC_DEVICE});
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
}

static sim *make(trace_program *program, const sim_options *options) {
  sim *sim;
  ff_error error;
  require(!sim_create(program, options, &sim, &error), error.message);
  return sim;
}

/* Returns the simulation's processor time. An evictor that asks for the future gets it from a simulation in which
 * everything is where it is wanted, which is not counted. */
static double run(const machine_spec *spec, const char *evict, part part, uint64_t bytes, sim_counters *counters) {
  trace_program *program = trace_program_create(UINT64_C(8) << 30);
  trace_future *future = trace_future_create();
  sim *simulation = make(program, &(sim_options){.spec = spec,
                                                 .manager = "replay",
                                                 .evict = evict,
                                                 .gpu_memory = bytes,
                                                 .unit_bytes = PAGE,
                                                 .future = future}),
      *recorder = NULL;
  if (sim_needs_future(simulation))
    recorder =
        make(program, &(sim_options){.spec = spec, .manager = "ideal", .future = future, .records_future = true});
  write_program(program, part, bytes);
  if (recorder) sim_run(recorder);
  double start = seconds();
  sim_run(simulation);
  double took = seconds() - start;
  sim_result result;
  sim_snapshot(simulation, &result);
  *counters = result.counters;
  sim_result_free(&result);
  sim_free(simulation);
  if (recorder) sim_free(recorder);
  trace_program_free(program);
  trace_future_free(future);
  return took;
}

static void measure(const machine_spec *spec, const char *evict, uint64_t gib) {
  sim_counters fill, fault, swap;
  uint64_t bytes = gib << 30;
  double filling = run(spec, evict, FILL, bytes, &fill), faulting = run(spec, evict, FAULT, bytes, &fault),
         swapping = run(spec, evict, SWAP, bytes, &swap);
  require(fault.faults >= faults_of(bytes / PAGE) && fault.evicted_bytes >= fault.faults * PAGE &&
              swap.evicted_bytes >= bytes,
          "memory was not too small");
  printf("%-8s %3llu GiB  fill %6.2f us per page   fault %6.2f us per far-fault (%llu)   swap %6.2f us per page\n",
         evict, (unsigned long long)gib, filling / (double)(bytes / PAGE) * 1e6,
         (faulting - filling) / (double)fault.faults * 1e6, (unsigned long long)fault.faults,
         (swapping - filling) / (double)(bytes / PAGE) * 1e6);
  fflush(stdout);
}

static bool is_size(const char *text) {
  return strspn(text, "0123456789") && !strcmp(text + strspn(text, "0123456789"), "G");
}

int main(int argc, char **argv) {
  const char *evictors[16] = {"lru", "fifo", "tree", "belady", "auto"};
  uint64_t sizes[16] = {1, 16};
  int evictor_count = 0, size_count = 0;
  for (int a = 1; a < argc && a < 16; a++) {
    if (is_size(argv[a])) sizes[size_count++] = strtoull(argv[a], NULL, 10);
    else evictors[evictor_count++] = argv[a];
  }
  if (!evictor_count) evictor_count = 5;
  if (!size_count) size_count = 2;
  machine_spec spec;
  ff_error error;
  require(!machine_spec_load("gtx480", &spec, &error), error.message);
  for (int e = 0; e < evictor_count; e++)
    for (int s = 0; s < size_count; s++) measure(&spec, evictors[e], sizes[s]);
  return 0;
}
