/* SPDX-License-Identifier: Apache-2.0 */
/* SMs in rounds, on several threads (sm/rounds.h): random programs have the same results, to the byte, on any number of
 * threads, under every manager; of one warp alone they have those of the simulation event by event, to the picosecond;
 * what is counted once for each access is the same in both. */
#include <unistd.h>

#include "../share.h"
#include "rig.h"

enum { BYTES = 4 << 20, HOT_BYTES = 16 << 10, PROGRAMS = 32, WATCHDOG = 300 };

typedef struct script { /* of a program */
  uint64_t seed;
  bool copies, barriers, atomics;
  bool below; /* what is below the L1s is random, too */
} script;

static uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

static uint64_t next(uint64_t *state) { return mix(*state += UINT64_C(0x632be59bd9b4e019)); }

/* Mostly of few lines and pages: what is in a TLB, and sectors that are on their way, are what rounds are about. */
static void put_access(trace_writer *w, uint64_t *state, trace_access_op op, uint32_t flags) {
  uint64_t kind = next(state) % 4, lines = kind ? 1 + next(state) % 3 : 1 + next(state) % 40;
  uint64_t range = next(state) % 4 ? HOT_BYTES : BYTES, base = next(state) % range;
  uint64_t *at = trace_put_access(w, op, 2, flags, 0, ~0u, (uint32_t)lines);
  for (uint64_t i = 0; i < lines; i++) {
    uint64_t address = kind == 0 ? next(state) % range : (base + i * 128 * kind) % range;
    uint32_t lanes = 1 + (uint32_t)(next(state) % 32), sectors = 1 + (uint32_t)next(state) % 15;
    at[i] = trace_line(RIG_BASE + address / 128 * 128, lanes, sectors);
  }
}

/* Each block's warps take the same steps, so that all come to its barriers. */
static void random_warp(trace_writer *w, uint64_t block, uint32_t number, const void *context) {
  const script *s = context;
  uint64_t common = mix(s->seed) ^ mix(block * 8191), own = common ^ mix(number + 77);
  uint64_t steps = 4 + next(&common) % 60;
  for (uint64_t i = 0; i < steps; i++) {
    switch (next(&common) % 9) {
    case 0:
    case 1: rig_issue(w, (uint32_t)(1 + next(&own) % 100)); break;
    case 2:
    case 3: put_access(w, &own, TRACE_LOAD, next(&own) % 4 ? 0 : TRACE_BYPASS_L1); break;
    case 4: put_access(w, &own, TRACE_STORE, 0); break;
    case 5: trace_put_wait(w, (uint32_t)(next(&own) % 3)); break;
    case 6:
      if (s->barriers) trace_put_barrier(w, (uint32_t)(next(&common) % 2), false, 4);
      break;
    case 7:
      if (s->atomics) put_access(w, &own, TRACE_ATOMIC, next(&own) % 2 ? TRACE_RETURNS : 0);
      break;
    default:
      if (!s->copies) break;
      put_access(w, &own, TRACE_LOAD, TRACE_ASYNC_COPY);
      trace_put_async(w, TRACE_GROUP, 0, 0);
      if (next(&own) % 2) trace_put_async(w, TRACE_WAIT_GROUPS, 0, (uint32_t)(next(&own) % 2));
    }
  }
}

/* A machine of random size. */
static void tweak(machine_spec *m, uint64_t seed) {
  m->sm_count = 1 + next(&seed) % 20;
  m->l1_mshrs = UINT64_C(2) << next(&seed) % 6;
  m->tlb_entries = UINT64_C(4) << next(&seed) % 6;
  m->l2_latency = (double)(10 + next(&seed) % 200);
  m->l1_line_fills = next(&seed) % 2;
  m->l1_lookups = next(&seed) % 3;
  m->l2_tlb_entries = next(&seed) % 2 * 256;
  m->block_launch_cycles = (double)(next(&seed) % 2 * 100);
  if (next(&seed) % 2) m->sm_read_bytes = m->sm_write_bytes = 64;
  if (next(&seed) % 2) m->alu_latency = 4, m->fma_cycles = m->alu_cycles = m->tensor_cycles = 2;
  if (next(&seed) % 2) m->page_bytes = 65536;
  if (next(&seed) % 3 == 0) m->walkers = 1 + next(&seed) % 8;
  if (next(&seed) % 3 == 0) m->walk_cache_bytes = 0;
  if (next(&seed) % 3 == 0) {
    snprintf(m->address_map, sizeof m->address_map, "modulo");
    m->channels = m->l2_slices;
  }
}

/* An L2 that much has to leave, of one side or two, with parts of several slices; ports on the way to it. */
static void tweak_below(machine_spec *m, uint64_t seed) {
  seed = mix(seed + 4711);
  m->l2_slices = UINT64_C(2) << next(&seed) % 5;
  m->channels = m->l2_slices >> (m->address_map[0] || m->l2_slices == 2 ? 0 : next(&seed) % 2);
  m->l2_bytes = m->l2_slices * (UINT64_C(4096) << next(&seed) % 4);
  m->l2_ways = UINT64_C(4) << next(&seed) % 5;
  m->l2_mshrs = UINT64_C(4) << next(&seed) % 4;
  m->l2_bytes_per_cycle = (double)(8 << next(&seed) % 4);
  m->slice_permutation = next(&seed) % 2;
  if (next(&seed) % 3) {
    m->l2_copies = 1;
    m->side_latency = (double)(next(&seed) % 3 * 50);
    m->side_bytes = (double)(next(&seed) % 3 * 16);
    if (next(&seed) % 2)
      m->side_masks = (machine_mask_table){.count = 1, .masks = {UINT64_C(0x3300) << next(&seed) % 5}};
  }
  if (next(&seed) % 2) m->dram_write_batch = 4;
  if (next(&seed) % 2) m->l2_dirty_share = 0.5;
  if (next(&seed) % 3 == 0) m->l2_mshr_bytes = 512;
  if (next(&seed) % 4 == 0) m->l2_write_through = 1;
  if (next(&seed) % 2) m->sm_read_bytes = m->sm_write_bytes = 16;
  if (next(&seed) % 2) m->cluster_sms = 1 + next(&seed) % 4, m->cluster_read_bytes = m->cluster_write_bytes = 24;
}

static void run(rig *r, const char *manager, const script *s, uint32_t threads, uint64_t blocks, uint32_t warps) {
  rig_open(r, manager);
  tweak(&r->spec, s->seed);
  if (s->below) tweak_below(&r->spec, s->seed);
  r->threads = threads;
  if (s->seed % 3 == 0) r->gpu_memory_share = 0.75;
  rig_start(r);
  rig_alloc(r, RIG_BASE, BYTES, s->seed % 2 ? TRACE_MEMORY_MANAGED : TRACE_MEMORY_DEVICE);
  rig_h2d(r, RIG_BASE, BYTES / 2);
  for (int k = 0; k < 2; k++) {
    rig_launch(
        r, (rig_kernel){
               .blocks = blocks, .warps = warps, .warp = random_warp, .context = s, .stream = 0, .shared_bytes = 4096});
    if (s->seed % 5 == 0) rig_d2h(r, RIG_BASE, BYTES / 4);
  }
  rig_sync(r);
  rig_finish(r);
}

static void assert_same(const sim_result *a, const sim_result *b) {
  assert_memory_equal(&a->counters, &b->counters, sizeof a->counters);
  assert_int_equal(a->kernel_count, b->kernel_count);
  for (uint32_t i = 0; i < a->kernel_count; i++)
    assert_memory_equal(&a->kernels[i].counters, &b->kernels[i].counters, sizeof a->counters);
  assert_int_equal(a->allocation_count, b->allocation_count);
  for (uint32_t i = 0; i < a->allocation_count; i++)
    assert_memory_equal(&a->allocations[i].counters, &b->allocations[i].counters, sizeof a->counters);
}

static script script_of(uint64_t seed) {
  return (script){.seed = seed, .copies = seed % 2, .barriers = seed % 3 != 1, .atomics = seed % 5 != 2};
}

/* Lines that the L1 has, of pages that the TLB has not, and that all warps ask for at once. */
static void few_translations(trace_writer *w, uint64_t block, uint32_t number, const void *context) {
  for (uint64_t i = 0; i < 40; i++) {
    uint64_t page = (i * 7 + block + number) % 24;
    rig_access(w, TRACE_LOAD, 0, RIG_BASE + page * 4096 + i % 3 * 128, 1 + (uint32_t)i % 15);
    if (i % 4 == 3) trace_put_wait(w, 0);
    if (i % 9 == 8) rig_access(w, TRACE_STORE, 0, RIG_BASE + page * 4096, 3);
  }
}

static void run_translations(rig *r, uint32_t threads, uint64_t walkers, uint64_t walk_cache, uint32_t warps) {
  rig_open(r, "ideal");
  r->spec.sm_count = 4;
  r->spec.tlb_entries = 8;
  r->spec.l1_mshrs = 8;
  r->spec.walkers = walkers;
  r->spec.walk_cache_bytes = walk_cache;
  r->threads = threads;
  rig_start(r);
  rig_alloc(r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_launch(r, (rig_kernel){.blocks = warps == 1 ? 1 : 12, .warps = warps, .warp = few_translations});
  rig_finish(r);
}

static void test_translations(void **state) {
  static const uint64_t walkers[] = {1, 2, 64}, walk_cache[] = {0, 8192};
  for (int i = 0; i < 6; i++) {
    rig one, many, alone, none;
    run_translations(&one, 1, walkers[i % 3], walk_cache[i / 3], 6);
    run_translations(&many, 3, walkers[i % 3], walk_cache[i / 3], 6);
    assert_same(&one.result, &many.result);
    run_translations(&alone, 2, walkers[i % 3], walk_cache[i / 3], 1);
    run_translations(&none, 0, walkers[i % 3], walk_cache[i / 3], 1);
    assert_same(&alone.result, &none.result);
    assert_true(one.result.counters.tlb_misses > 100 && one.result.counters.tlb_merged);
    rig_close(&one);
    rig_close(&many);
    rig_close(&alone);
    rig_close(&none);
  }
}

/* The only walker is busy with 32 pages for one warp; another one's lines are in the L1 and their page in the walk
 * cache, which answers without a walker, long before anything could come from the L2. */
static void cached_under_walks(trace_writer *w, uint64_t block, uint32_t number, const void *context) {
  rig_load_wait(w, RIG_BASE + 40 * 4096 + 128);
  trace_put_barrier(w, 0, false, 2);
  if (number == 0) {
    uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 32);
    for (uint64_t p = 0; p < 32; p++) at[p] = trace_line(RIG_BASE + p * 4096, 1, 1);
    return;
  }
  rig_issue(w, 64);
  for (int i = 0; i < 1000; i++) rig_load_wait(w, RIG_BASE + 40 * 4096 + 128);
}

static void test_walk_cache_answers_without_a_walker(void **state) {
  ps time[3];
  for (uint32_t threads = 0; threads < 3; threads++) {
    rig r;
    rig_open(&r, "ideal");
    r.spec.walkers = 1;
    r.spec.tlb_entries = 0;
    r.spec.l2_latency = 1000;
    r.threads = threads;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 2, .warp = cached_under_walks});
    time[threads] = rig_finish(&r)->counters.kernel_ps;
    rig_close(&r);
  }
  assert_int_equal(time[1], time[0]);
  assert_int_equal(time[2], time[0]);
}

static void test_any_number_of_threads(void **state) {
  static const char *const managers[] = {"ideal", "copy", "demand", "replay", "uvm", "auto", "tbn", "zero-copy"};
  static const uint32_t threads[] = {2, 3, 8};
  for (uint64_t seed = 1; seed <= fewer(PROGRAMS, 3); seed++) {
    script s = script_of(seed);
    s.below = seed % 4 != 1;
    const char *manager = managers[seed % 4 == 2 ? 0 : seed % 8];
    rig one, many, none;
    run(&one, manager, &s, 1, 1 + seed * 3, 4);
    for (int i = 0; i < 3; i++) {
      run(&many, manager, &s, threads[i], 1 + seed * 3, 4);
      assert_same(&one.result, &many.result);
      rig_close(&many);
    }
    run(&none, manager, &s, 0, 1 + seed * 3, 4);
    const sim_counters *a = &one.result.counters, *b = &none.result.counters;
    assert_int_equal(a->warp_instructions, b->warp_instructions);
    assert_int_equal(a->accesses, b->accesses);
    assert_int_equal(a->load_accesses, b->load_accesses);
    assert_int_equal(a->store_accesses, b->store_accesses);
    assert_int_equal(a->atomic_accesses, b->atomic_accesses);
    assert_int_equal(a->lines, b->lines);
    assert_int_equal(a->sectors, b->sectors);
    assert_int_equal(a->blocks, b->blocks);
    if (!strcmp(manager, "ideal")) assert_near(a->time_ps, b->time_ps, 0.1);
    rig_close(&one);
    rig_close(&none);
  }
}

/* Accesses to a small L2 of two sides, each step for all of them before the next one's (l2_find), have the times that
 * they have one by one. */
static void open_small_l2(rig *r, uint64_t seed) {
  rig_open(r, "ideal");
  r->spec.l2_slices = r->spec.channels = 4;
  r->spec.l2_bytes = 4 * 2048;
  r->spec.l2_ways = 4;
  r->spec.l2_mshrs = 4;
  r->spec.l2_copies = 1;
  r->spec.side_latency = 50;
  r->spec.side_bytes = 32;
  if (seed % 2) r->spec.l2_dirty_share = 0.5;
  rig_start(r);
}

static void test_steps_of_many_accesses(void **state) {
  enum { ACCESSES = 64, BATCHES = 40, LINES = 96 };
  for (uint64_t seed = 1; seed <= fewer(8, 2); seed++) {
    rig one, many;
    open_small_l2(&one, seed);
    open_small_l2(&many, seed);
    sim_counters kernel[2] = {{0}}, allocation[2] = {{0}};
    tally tallies[2] = {{&kernel[0], &allocation[0]}, {&kernel[1], &allocation[1]}};
    uint64_t random = seed, now = 0, turns_over = 0;
    char *ways = test_calloc(ACCESSES, l2_way_bytes());
    for (int b = 0; b < BATCHES; b++) {
      request requests[ACCESSES];
      l2_turn turns[ACCESSES];
      ps times[ACCESSES];
      for (int i = 0; i < ACCESSES; i++) {
        static const trace_access_op ops[] = {TRACE_LOAD, TRACE_LOAD, TRACE_LOAD, TRACE_STORE, TRACE_ATOMIC};
        now += next(&random) % 20000;
        requests[i] = (request){.address = RIG_BASE + next(&random) % LINES * 128,
                                .sectors = 1 + (uint32_t)next(&random) % 15,
                                .lanes = 1,
                                .sm = (uint32_t)(next(&random) % 8),
                                .op = ops[next(&random) % 5],
                                .ask = now,
                                .at = now + next(&random) % 1000,
                                .tally = &tallies[0]};
        times[i] = l2_access(&one.sim->memory, &requests[i]);
        requests[i].tally = &tallies[1];
      }
      memory *y = &many.sim->memory;
      for (int i = 0; i < ACCESSES; i++) {
        line_place place;
        l2_find_place(y, requests[i].address, &place);
        l2_find(y, &requests[i], &place, (l2_way *)(ways + i * l2_way_bytes()), &turns[i]);
      }
      for (int i = 0; i < ACCESSES; i++) {
        turns_over += turns[i].sectors > 0;
        l2_cross(y, &turns[i]);
      }
      for (int i = 0; i < ACCESSES; i++)
        assert_int_equal(l2_take(y, &requests[i], (l2_way *)(ways + i * l2_way_bytes()), &turns[i]), times[i]);
    }
    assert_memory_equal(&kernel[0], &kernel[1], sizeof kernel[0]);
    assert_true(kernel[0].l2_hits > 100 && kernel[0].l2_misses > 100 && kernel[0].dram_write_bytes && turns_over > 100);
    test_free(ways);
    rig_sync(&one);
    rig_sync(&many);
    rig_finish(&one);
    rig_finish(&many);
    rig_close(&one);
    rig_close(&many);
  }
}

/* A line whose data is late has to go: what takes its place, from another bank, does not wait for it. */
static void test_what_was_replaced_is_not_waited_for(void **state) {
  rig r;
  rig_open(&r, "ideal");
  r.spec.l2_slices = r.spec.channels = 1;
  r.spec.l2_bytes = 128;
  r.spec.l2_ways = 1;
  rig_start(&r);
  sim_counters kernel = {0}, allocation = {0};
  tally counted = {&kernel, &allocation};
  request
      late = {.address = RIG_BASE, .sectors = 1, .lanes = 1, .ask = 1, .at = 1000 * US, .tally = &counted},
      other = {.address = RIG_BASE + r.spec.row_bytes, .sectors = 1, .lanes = 1, .ask = 2, .at = 2, .tally = &counted},
      again = {.address = RIG_BASE + r.spec.row_bytes, .sectors = 1, .lanes = 1, .ask = 3, .at = 3, .tally = &counted};
  assert_true(l2_access(&r.sim->memory, &late) > 1000 * US);
  ps arrives = l2_access(&r.sim->memory, &other);
  assert_true(arrives < 10 * US);
  assert_int_equal(l2_access(&r.sim->memory, &again), arrives);
  rig_sync(&r);
  rig_finish(&r);
  rig_close(&r);
}

/* Pages grow while walks of their smaller ones are asked for and not made. */
static void test_pages_grow_under_walks(void **state) {
  script s = script_of(118);
  rig r;
  run(&r, "tbn", &s, 2, 163, 4);
  assert_true(r.result.counters.tlb_shootdowns > 0);
  rig_close(&r);
}

/* Nothing but its own requests is on the machine: no order can differ. */
static void one_warp_alone(uint64_t seed) {
  script s = script_of(seed);
  s.barriers = false;
  rig one, none;
  run(&one, "ideal", &s, 2, 1, 1);
  run(&none, "ideal", &s, 0, 1, 1);
  assert_same(&one.result, &none.result);
  rig_close(&one);
  rig_close(&none);
}

static void test_one_warp_alone(void **state) {
  static const uint64_t busy_walkers[] = {86, 295, 329, 337, 383, 389}; /* and what is asked for is in the walk cache */
  for (uint64_t seed = 1; seed <= fewer(PROGRAMS, 3); seed++) one_warp_alone(seed);
  for (size_t i = 0; i < sizeof busy_walkers / sizeof *busy_walkers; i++) one_warp_alone(busy_walkers[i]);
  static const uint64_t late[] = {139, 287, 371, 395}; /* takes the MSHR that is free first, which is not known yet */
  for (size_t i = 0; i < sizeof late / sizeof *late; i++) one_warp_alone(late[i]);
}

/* Of a line, the L2 has sector 1 and not sector 0: sector 0 comes later, though it was asked for first. Who waits for
 * the line's sectors waits for the later one; with `both`, for one more that is asked for with them. */
static void sectors_out_of_order(trace_writer *w, uint64_t block, uint32_t number, const void *context) {
  const bool *both = context;
  rig_load_wait(w, RIG_BASE + 1024); /* the page is in the TLB then */
  rig_access(w, TRACE_STORE, 0, RIG_BASE, 2);
  for (int i = 0; i < 10; i++) rig_issue(w, 100);
  rig_access(w, TRACE_LOAD, 0, RIG_BASE, 1);
  rig_access(w, TRACE_LOAD, 0, RIG_BASE, 2);
  rig_access(w, TRACE_LOAD, 0, RIG_BASE, *both ? 7 : 3);
  trace_put_wait(w, 0);
  rig_issue(w, 1000);
}

static ps sectors_time(uint32_t threads, bool both) {
  rig r;
  rig_open(&r, "ideal");
  r.threads = threads;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = sectors_out_of_order, .context = &both});
  ps time = rig_finish(&r)->counters.kernel_ps;
  rig_close(&r);
  return time;
}

static void test_sectors_out_of_order(void **state) {
  assert_int_equal(sectors_time(2, false), sectors_time(0, false));
  assert_int_equal(sectors_time(2, true), sectors_time(0, true));
}

/* Prefetches of 16 lines stand in a queue before a narrow network, and the L2 answers faster than the L1. The block
 * ends when all have arrived: the L1's latency does not begin behind the queue. */
static void prefetches(trace_writer *w, uint64_t block, uint32_t number, const void *context) {
  rig_load_wait(w, RIG_BASE + 2048); /* the page is in the TLB then */
  for (int i = 0; i < 16; i++) rig_access(w, TRACE_PREFETCH, 0, RIG_BASE + (uint64_t)i * 128, 15);
}

static ps prefetch_time(uint32_t threads, double l1_latency) {
  rig r;
  rig_open(&r, "ideal");
  r.spec.sm_read_bytes = r.spec.sm_write_bytes = 4;
  r.spec.l1_latency = l1_latency;
  r.spec.l2_latency = 10;
  r.threads = threads;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = prefetches});
  ps time = rig_finish(&r)->counters.kernel_ps;
  rig_close(&r);
  return time;
}

static void test_prefetches_through_a_narrow_network(void **state) {
  static const double l1_latency[] = {10, 600, 5000};
  for (int i = 0; i < 3; i++) {
    ps one_by_one = prefetch_time(0, l1_latency[i]);
    for (uint32_t threads = 1; threads <= 2; threads++)
      assert_int_equal(prefetch_time(threads, l1_latency[i]), one_by_one);
  }
  assert_true(prefetch_time(0, 5000) > prefetch_time(0, 600) + 1000000); /* the L1 is what is waited for */
}

/* A history is the same, too, and changes nothing. */
static void test_history_changes_nothing(void **state) {
  script s = script_of(7);
  rig without, with;
  run(&without, "uvm", &s, 2, 20, 4);
  rig_open(&with, "uvm");
  tweak(&with.spec, s.seed);
  with.threads = 2;
  with.history = with.lines = true;
  rig_start(&with);
  rig_alloc(&with, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
  rig_h2d(&with, RIG_BASE, BYTES / 2);
  for (int k = 0; k < 2; k++)
    rig_launch(&with, (rig_kernel){.blocks = 20, .warps = 4, .warp = random_warp, .context = &s, .shared_bytes = 4096});
  rig_sync(&with);
  rig_finish(&with);
  assert_memory_equal(&without.result.counters, &with.result.counters, sizeof with.result.counters);
  rig_close(&without);
  rig_close(&with);
}

static void test_what_is_refused(void **state) {
  rig r;
  ff_error error = {0};
  sim *made = NULL;
  rig_open(&r, "ideal");
  trace_program *program = trace_program_create(0);
  sim_options options = {.spec = &r.spec, .manager = "ideal", .threads = 2, .sample = 3};
  assert_int_equal(sim_create(program, &options, &made, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "model-threads: sampling"));
  trace_program_free(program);
}

int main(void) {
  alarm(WATCHDOG); /* a wait that nothing ends must not be waited for */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_any_number_of_threads),
      cmocka_unit_test(test_steps_of_many_accesses),
      cmocka_unit_test(test_what_was_replaced_is_not_waited_for),
      cmocka_unit_test(test_pages_grow_under_walks),
      cmocka_unit_test(test_one_warp_alone),
      cmocka_unit_test(test_translations),
      cmocka_unit_test(test_walk_cache_answers_without_a_walker),
      cmocka_unit_test(test_sectors_out_of_order),
      cmocka_unit_test(test_prefetches_through_a_narrow_network),
      cmocka_unit_test(test_history_changes_nothing),
      cmocka_unit_test(test_what_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
