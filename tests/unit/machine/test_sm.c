/* SPDX-License-Identifier: Apache-2.0 */
/* SMs: issue, schedulers, units, shared memory, barriers, occupancy, dispatch. The rig: a cycle is 1 ns, 2 schedulers,
 * 4 cycles between two instructions of one warp. */
#include "rig.h"

static void issue(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_issue(w, *(const uint32_t *)context);
}
static ps issue_time(uint32_t warps, uint32_t n) {
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = warps, .warp = issue, .context = &n}).kernel_ps;
}

static void test_one_warp_is_bound_by_its_interval(void **state) {
  assert_int_equal(issue_time(1, 1), 4 * NS);
  assert_int_equal(issue_time(1, 100), 400 * NS);
  assert_int_equal(issue_time(8, 100), 400 * NS); /* four warps fill a scheduler: 4 of 4 slots */
}

static void test_many_warps_are_bound_by_the_schedulers(void **state) {
  for (uint32_t warps = 10; warps <= 32; warps += 2) {
    ps t = issue_time(warps, 320);
    assert_int_equal(t, warps / 2 * 320 * NS); /* each scheduler issues one instruction per cycle, and never idles */
  }
}

static void units(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const uint32_t *n = context; /* instructions, passes, sfu, fp64 */
  trace_put_issue(w, n[0], n[1], n[2], n[3]);
}
static ps unit_time(uint32_t warps, const uint32_t n[4]) {
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = warps, .warp = units, .context = n}).kernel_ps;
}

static void test_slow_units(void **state) {
  assert_int_equal(unit_time(1, (uint32_t[]){10, 0, 0, 0}), 40 * NS);
  assert_int_equal(unit_time(1, (uint32_t[]){10, 0, 10, 0}), 80 * NS);  /* 8 cycles of the scheduler each */
  assert_int_equal(unit_time(1, (uint32_t[]){10, 0, 0, 10}), 160 * NS); /* 16 */
  assert_int_equal(unit_time(1, (uint32_t[]){10, 0, 2, 3}), (5 + 16 + 48) * NS);
  assert_int_equal(unit_time(4, (uint32_t[]){10, 0, 10, 0}), 160 * NS); /* two warps per scheduler */
  assert_int_equal(unit_time(1, (uint32_t[]){64, 0, 64, 0}), 512 * NS); /* in two pieces */
}

static void test_shared_memory_passes(void **state) {
  assert_int_equal(unit_time(1, (uint32_t[]){10, 10, 0, 0}), 60 * NS); /* 2 cycles of latency per pass */
  /* 32 warps, each ten instructions with 40 passes: the SM does one pass per cycle. */
  assert_int_equal(unit_time(32, (uint32_t[]){10, 40, 0, 0}), 32 * 40 * NS);
}

/* ---- execution pipes: fma and alu two cycles, special functions eight, tensor four; chains of four; loads 20 ---- */

static void with_pipes(machine_spec *spec) {
  spec->alu_latency = 4;
  spec->fma_cycles = spec->alu_cycles = 2;
  spec->tensor_cycles = 4;
  spec->shared_load_latency = 20;
}
static void at_half_latency(machine_spec *spec) {
  with_pipes(spec);
  spec->alu_latency = 2;
}

typedef struct piped {
  uint32_t n, units[TRACE_UNIT_COUNT];
} piped;
static void piped_work(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const piped *p = context;
  rig_units(w, p->n, p->units);
}
static ps pipe_time(rig_tweak tweak, uint32_t warps, piped p) {
  return rig_run(tweak, (rig_kernel){.blocks = 1, .warps = warps, .warp = piped_work, .context = &p}).kernel_ps;
}

static void test_pipes_overlap(void **state) {
  piped fma = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32}}, both = {32, {32, 16, 16}};
  assert_int_equal(pipe_time(with_pipes, 8, fma), 4 * 64 * NS);  /* four warps of a scheduler, one after the other */
  assert_int_equal(pipe_time(with_pipes, 8, both), 4 * 32 * NS); /* half in each pipe: the scheduler is the limit */
  piped xu = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 28, [TRACE_XU] = 4}};
  assert_int_equal(pipe_time(with_pipes, 8, xu), 4 * 56 * NS); /* the special functions are done meanwhile */
  piped tensor = {4, {[TRACE_SLOTS] = 4, [TRACE_TENSOR] = 16}};
  assert_int_equal(pipe_time(with_pipes, 2, tensor), 64 * NS);
}

static void with_all_lanes(machine_spec *spec) { /* for floats; half of them for products of integers */
  with_pipes(spec);
  spec->compute_major = 8, spec->compute_minor = 6;
  spec->fma_cycles = 1;
  spec->product_cycles = spec->half_cycles = 2;
}
static void as_turing(machine_spec *spec) {
  with_pipes(spec);
  spec->compute_major = 7, spec->compute_minor = 5;
  spec->half_latency = 6;
  spec->half_apart = 1;
}
static void as_8_0(machine_spec *spec) {
  as_turing(spec);
  spec->compute_major = 8, spec->compute_minor = 0;
  spec->half_cycles = 1;
}

static void test_half_of_the_lanes_multiply_integers(void **state) {
  piped floats = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32}};
  piped products = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32, [TRACE_PRODUCTS] = 32}};
  piped both = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32, [TRACE_PRODUCTS] = 16}};
  piped few = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32, [TRACE_PRODUCTS] = 20}};
  assert_int_equal(pipe_time(with_all_lanes, 8, floats), 4 * 32 * NS);
  assert_int_equal(pipe_time(with_all_lanes, 8, products), 4 * 64 * NS);
  assert_int_equal(pipe_time(with_all_lanes, 8, both), 4 * 32 * NS); /* the other half of the lanes has the floats */
  assert_int_equal(pipe_time(with_all_lanes, 8, few), 4 * 40 * NS);
  assert_int_equal(pipe_time(as_turing, 8, products), 4 * 64 * NS); /* all of them do, as of floats */
  assert_int_equal(pipe_time(as_turing, 8, floats), 4 * 64 * NS);
}

static void test_half_precision_has_its_own_pipe_or_that_of_floats(void **state) {
  piped half = {32, {[TRACE_SLOTS] = 32, [TRACE_HALF] = 32}};
  piped both = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 16, [TRACE_HALF] = 16}};
  assert_int_equal(pipe_time(as_turing, 8, half), 4 * 64 * NS); /* half_cycles is not given: as fma_cycles */
  assert_int_equal(pipe_time(as_turing, 8, both), 4 * 32 * NS);
  assert_int_equal(pipe_time(as_8_0, 8, half), 4 * 32 * NS);
  assert_int_equal(pipe_time(with_all_lanes, 8, half), 4 * 64 * NS);
  assert_int_equal(pipe_time(with_all_lanes, 8, both), 4 * (16 + 32) * NS);
}

static void test_half_precision_takes_longer_in_a_chain(void **state) {
  piped chain = {10, {[TRACE_SLOTS] = 10, [TRACE_HALF] = 10, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_turing, 1, chain), 60 * NS);
  assert_int_equal(pipe_time(with_all_lanes, 1, chain), 40 * NS);
  piped chains = {40, {[TRACE_SLOTS] = 40, [TRACE_HALF] = 40, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_turing, 1, chains), 80 * NS); /* four of them: the pipe is the limit */
  piped mixed = {10, {[TRACE_SLOTS] = 10, [TRACE_FMA] = 7, [TRACE_HALF] = 3, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_turing, 1, mixed), 46 * NS);
  piped wide = {30, {[TRACE_SLOTS] = 30, [TRACE_HALF] = 5, [TRACE_CHAIN] = 20}};
  assert_int_equal(pipe_time(as_turing, 1, wide), 30 * NS); /* the chain is over as the scheduler is */
}

static void as_volta(machine_spec *spec) { /* a minimum is a comparison and a selection */
  as_turing(spec);
  spec->compute_minor = 0;
}

static void test_minima_are_two_instructions(void **state) {
  piped chain = {10, {[TRACE_SLOTS] = 10, [TRACE_ALU] = 10, [TRACE_MINMAX] = 10, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_turing, 1, chain), 40 * NS);
  assert_int_equal(pipe_time(as_volta, 1, chain), 80 * NS);
  piped wide = {30, {[TRACE_SLOTS] = 30, [TRACE_ALU] = 30, [TRACE_MINMAX] = 15, [TRACE_CHAIN] = 8}};
  assert_int_equal(pipe_time(as_turing, 1, wide), 60 * NS); /* the pipe is the limit, at two cycles each */
  assert_int_equal(pipe_time(as_volta, 1, wide), 90 * NS);
  piped none = {10, {[TRACE_SLOTS] = 10, [TRACE_ALU] = 10, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_volta, 1, none), 40 * NS);
}

static void as_turing_in_doubles(machine_spec *spec) {
  as_turing(spec);
  spec->fp64_cycles = 64;
  spec->double_latency = 48;
}

/* Schedulers that share a pipe of doubles: two here, so that it takes 32 cycles. */
static void test_one_pipe_of_doubles_for_all_schedulers(void **state) {
  piped chain = {4, {[TRACE_SLOTS] = 4, [TRACE_FP64] = 4, [TRACE_CHAIN] = 32}};
  assert_int_equal(pipe_time(as_turing_in_doubles, 1, chain), 4 * 48 * NS);
  assert_int_equal(pipe_time(as_turing_in_doubles, 2, chain), 8 * 32 * NS); /* on both schedulers */
  assert_int_equal(pipe_time(as_turing_in_doubles, 8, chain), 32 * 32 * NS);
  piped chains = {4, {[TRACE_SLOTS] = 4, [TRACE_FP64] = 4, [TRACE_CHAIN] = 8}};
  assert_int_equal(pipe_time(as_turing_in_doubles, 1, chains), 4 * 32 * NS);
  piped mixed = {10, {[TRACE_SLOTS] = 10, [TRACE_FMA] = 8, [TRACE_FP64] = 1, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(as_turing_in_doubles, 1, mixed), 80 * NS);
  piped wide = {32, {[TRACE_SLOTS] = 60, [TRACE_FP64] = 1, [TRACE_CHAIN] = 8}};
  assert_int_equal(pipe_time(as_turing_in_doubles, 1, wide), 60 * NS); /* the chain of 48 is over before */
}

static void test_chains_bind_one_warp(void **state) {
  piped chain = {10, {[TRACE_SLOTS] = 10, [TRACE_FMA] = 10, [TRACE_CHAIN] = 40}};
  assert_int_equal(pipe_time(with_pipes, 1, chain), 40 * NS);
  assert_int_equal(pipe_time(at_half_latency, 1, chain), 20 * NS); /* is as long as the pipe has it */
  assert_int_equal(pipe_time(with_pipes, 8, chain), 80 * NS);      /* with four warps the pipe is the limit */
  piped load = {3, {[TRACE_SLOTS] = 3, [TRACE_LSU] = 1, [TRACE_CHAIN] = 8, [TRACE_LOADS] = 1}};
  assert_int_equal(pipe_time(with_pipes, 1, load), 28 * NS);
}

static void with_tensor_latency(machine_spec *spec) {
  with_pipes(spec);
  spec->tensor_latency = 17;
}
static void with_long_tensor_latency(machine_spec *spec) {
  with_pipes(spec);
  spec->tensor_latency = 29;
}

/* Products of matrices, one after the other: of 2048 multiply-adds, of 1024, and with four additions in the chain. */
static void test_products_of_matrices_have_their_own_latency(void **state) {
  piped wide = {3, {[TRACE_SLOTS] = 3, [TRACE_TENSOR] = 12, [TRACE_CHAIN] = 75}};
  piped narrow = {3, {[TRACE_SLOTS] = 3, [TRACE_TENSOR] = 6, [TRACE_CHAIN] = 54}};
  piped mixed = {5, {[TRACE_SLOTS] = 5, [TRACE_FMA] = 4, [TRACE_TENSOR] = 4, [TRACE_CHAIN] = 41}};
  piped apart = {3, {[TRACE_SLOTS] = 3, [TRACE_TENSOR] = 12, [TRACE_CHAIN] = 25}}; /* they need nothing of each other */
  assert_int_equal(pipe_time(with_pipes, 1, wide), 75 * NS);
  assert_int_equal(pipe_time(with_tensor_latency, 1, wide), 51 * NS);
  assert_int_equal(pipe_time(with_tensor_latency, 1, narrow), 42 * NS);
  assert_int_equal(pipe_time(with_tensor_latency, 1, mixed), 33 * NS);
  assert_int_equal(pipe_time(with_long_tensor_latency, 1, wide), 87 * NS);
  assert_int_equal(pipe_time(with_long_tensor_latency, 1, apart), 48 * NS); /* the pipe has them as long */
  piped few = {8, {[TRACE_SLOTS] = 8, [TRACE_FMA] = 8, [TRACE_TENSOR] = 8, [TRACE_CHAIN] = 32}};
  assert_int_equal(pipe_time(with_long_tensor_latency, 1, few), 37 * NS); /* five units at most in 32 cycles */
}

static void test_an_sm_takes_a_shared_access_per_cycle(void **state) {
  piped shared = {30, {[TRACE_SLOTS] = 30, [TRACE_LSU] = 30}};
  assert_int_equal(pipe_time(with_pipes, 32, shared), 32 * 30 * NS);
}

/* Eight blocks on one SM, of which only the first warp works: their turns make both schedulers work. */
static void first_warp_works(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  if (!i) piped_work(w, b, i, context);
}
static void on_one_sm(machine_spec *spec) { spec->sm_count = 1; }
static void with_pipes_on_one_sm(machine_spec *spec) {
  with_pipes(spec);
  on_one_sm(spec);
}
static void test_first_warps_of_blocks_take_turns(void **state) {
  piped fma = {32, {[TRACE_SLOTS] = 32, [TRACE_FMA] = 32}};
  rig_kernel k = {.blocks = 8, .warps = 2, .warp = first_warp_works, .context = &fma};
  assert_int_equal(rig_run(with_pipes_on_one_sm, k).kernel_ps, 4 * 64 * NS);
  assert_int_equal(rig_run(on_one_sm, k).kernel_ps, 8 * 32 * NS); /* without pipes all are the first scheduler's */
  k.warps = 3; /* the second block's first warp has the other scheduler without that */
  assert_int_equal(rig_run(with_pipes_on_one_sm, k).kernel_ps, 4 * 64 * NS);
}

/* A warp's load of 8 words of constant memory: one turn of the unit, and a pass and a turn for each of the seven. */
static void constants(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  static const uint32_t turns[TRACE_UNIT_COUNT] = {[TRACE_LSU] = 1 + 7};
  rig_units(w, 1, turns);
  trace_put_issue(w, 0, 7, 0, 0);
}
static void with_half_lanes(machine_spec *spec) {
  with_pipes(spec);
  spec->l1_lanes = 16;
}
static void test_each_further_constant_takes_the_unit_again(void **state) {
  rig_kernel k = {.blocks = 1, .warps = 32, .warp = constants};
  assert_int_equal(rig_run(with_pipes, k).kernel_ps, 32 * (1 + 7 * 2) * NS);
  assert_int_equal(rig_run(with_half_lanes, k).kernel_ps, 32 * (2 + 7 * 3) * NS);
}

static void test_what_has_no_units_takes_no_time(void **state) {
  assert_int_equal(pipe_time(with_pipes, 1, (piped){.n = 10}), 0); /* moves that a compiler leaves out */
  assert_int_equal(pipe_time(NULL, 1, (piped){.n = 10}), 40 * NS); /* without pipes: instructions of the PTX */
}

static void early_wait(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, RIG_BASE);
  rig_load(w, RIG_BASE + 1024 * 128);
  trace_put_paired_wait(w, 0, TRACE_EARLY);
  rig_load(w, RIG_BASE + 2048 * 128);
  trace_put_paired_wait(w, 1, TRACE_LATE);
  trace_put_wait(w, 0);
}
static void hoisting(machine_spec *spec) { spec->hoists_loads = 1; }
static void test_early_waits_are_for_machines_that_do_not_hoist(void **state) {
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = early_wait};
  ps in_order = rig_run(NULL, k).kernel_ps, hoisted = rig_run(hoisting, k).kernel_ps;
  assert_true(in_order > hoisted + 100 * NS); /* the two misses overlap */
}

/* ---- loads and waits ---- */

static void load_work_wait(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, RIG_BASE);
  rig_load_wait(w, RIG_BASE + 128);
  rig_load(w, RIG_BASE); /* a hit: 20 ns */
  rig_issue(w, *(const uint32_t *)context);
  trace_put_wait(w, 0);
  rig_issue(w, 1);
}
static ps overlap_time(uint32_t n) {
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = load_work_wait, .context = &n}).kernel_ps;
}

static void test_work_hides_latency(void **state) {
  ps none = overlap_time(0);
  assert_int_equal(overlap_time(3), none);          /* 12 ns of work under 20 ns of load */
  assert_int_equal(overlap_time(5), none);          /* 20 under 20 */
  assert_int_equal(overlap_time(6), none + 4 * NS); /* 24 */
}

static void wait_for_older(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, RIG_BASE);  /* translates */
  rig_load(w, RIG_BASE + 256); /* DRAM */
  rig_load(w, RIG_BASE);       /* hit */
  trace_put_wait(w, *(const uint32_t *)context);
}
static void test_wait_names_one_load(void **state) {
  /* The kernel ends when the last load has arrived, so the stall tells what the wait waited for. */
  uint32_t k[3] = {0, 1, 7};
  uint64_t stalls[3];
  for (int i = 0; i < 3; i++)
    stalls[i] =
        rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = wait_for_older, .context = &k[i]}).warp_stall_ps;
  assert_int_equal(stalls[0] - stalls[2], 20 * NS); /* the hit */
  assert_true(stalls[1] - stalls[2] > 200 * NS);    /* the miss before it */
}

static void forty_loads(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, RIG_BASE + 4095 / 128 * 128);
  uint32_t n = *(const uint32_t *)context;
  for (uint32_t l = 0; l < n; l++) rig_load(w, RIG_BASE + l % 31 * 128);
  rig_issue(w, 1);
}
static void test_outstanding_loads_are_bounded(void **state) {
  uint32_t n[2] = {LOAD_RING, LOAD_RING + 1};
  sim_counters few = rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = forty_loads, .context = &n[0]});
  sim_counters more = rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = forty_loads, .context = &n[1]});
  assert_true(more.warp_stall_ps > few.warp_stall_ps + 100 * NS); /* one more than fit: the warp waits for the first */
}

/* ---- the load/store unit ---- */

typedef struct pace_case {
  uint32_t lines, passes, times;
} pace_case;

/* All lines are in the L1 once; then hits. */
static void hits(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const pace_case *c = context;
  for (uint32_t l = 0; l < c->lines; l++) rig_load_wait(w, RIG_BASE + l * 128);
  for (uint32_t n = 0; n < c->times; n++) {
    uint64_t *at = trace_put_banked(w, TRACE_LOAD, 2, 0, 0, UINT32_MAX, c->lines, c->passes);
    for (uint32_t l = 0; l < c->lines; l++) at[l] = trace_line(RIG_BASE + l * 128, 32 / c->lines, 15);
  }
  rig_issue(w, 1);
}

static void four_lookups(machine_spec *spec) { spec->l1_lookups = 4; }
static void half_the_lanes(machine_spec *spec) {
  spec->l1_lookups = 4;
  spec->l1_lanes = 16;
}

/* Picoseconds of one more access in the unit, of as many lines and passes. */
static ps pace(rig_tweak tweak, uint32_t lines, uint32_t passes) {
  pace_case few = {lines, passes, 8}, many = {lines, passes, 24};
  ps a = rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = hits, .context = &few}).kernel_ps;
  ps b = rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = hits, .context = &many}).kernel_ps;
  return (b - a) / 16;
}

static void test_lines_and_passes_take_the_load_unit(void **state) {
  assert_int_equal(pace(NULL, 1, 1), NS); /* a line per cycle, whatever its words */
  assert_int_equal(pace(NULL, 32, 1), 32 * NS);
  assert_int_equal(pace(NULL, 2, 16), 2 * NS);
  assert_int_equal(pace(four_lookups, 1, 1), NS);
  assert_int_equal(pace(four_lookups, 2, 1), NS);
  assert_int_equal(pace(four_lookups, 6, 1), 2 * NS); /* 1 + (lines - 2) / 4 */
  assert_int_equal(pace(four_lookups, 3, 1), NS + NS / 4);
  assert_int_equal(pace(four_lookups, 32, 1), 8500);
  assert_int_equal(pace(four_lookups, 4, 4), 4 * NS); /* the banks take longer */
  assert_int_equal(pace(four_lookups, 2, 16), 16 * NS);
  assert_int_equal(pace(four_lookups, 1, 2), 2 * NS);
  assert_int_equal(pace(four_lookups, 32, 32), 32 * NS);
  assert_int_equal(pace(half_the_lanes, 1, 1), 2 * NS); /* 32 lanes, 16 per cycle */
  assert_int_equal(pace(half_the_lanes, 4, 4), 4 * NS);
}

/* ---- barriers ---- */

typedef struct barrier_case {
  uint32_t late;
  bool barrier;
} barrier_case;
static void meet(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const barrier_case *c = context;
  rig_issue(w, warp == 0 ? c->late : 1);
  if (c->barrier) trace_put_barrier(w, 0, false, 4);
  rig_issue(w, warp == 3 ? 10 : 1);
}
static ps meet_time(uint32_t late, bool barrier) {
  barrier_case c = {late, barrier};
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 4, .warp = meet, .context = &c}).kernel_ps;
}

static void test_barrier(void **state) {
  assert_int_equal(meet_time(100, false), (400 + 4) * NS);
  assert_int_equal(meet_time(100, true), (400 + 40) * NS); /* warp 3 goes on when warp 0 has come, not before */
  assert_int_equal(meet_time(101, true), (404 + 40) * NS);
  /* warp 0's whole burst is one piece: it is first in the heap */
  assert_int_equal(meet_time(20, true), (80 + 40) * NS);
}

static void produce(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  rig_issue(w, warp == 0 ? 5 : 50);
  trace_put_barrier(w, 1, warp == 0, 2); /* warp 0 arrives and goes on; warp 1 waits for it */
  rig_issue(w, warp == 0 ? 200 : 1);
}
static void test_arrive_does_not_wait(void **state) {
  sim_counters c = rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 2, .warp = produce});
  assert_int_equal(c.kernel_ps, 205 * 4 * NS);
}

static void wait_last(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  rig_issue(w, warp == 0 ? 5 : 50);
  trace_put_barrier(w, 1, warp == 0, 2);
  rig_issue(w, 1);
}
static void slow_barriers(machine_spec *s) { s->barrier_latency = 28; }
/* Warp 0 comes after `late` instructions, the others after one; all go on 28 cycles after it. */
static void test_barrier_latency(void **state) {
  barrier_case c = {100, true}, none = {100, false};
  rig_kernel met = {.blocks = 1, .warps = 4, .warp = meet, .context = &c};
  assert_int_equal(rig_run(slow_barriers, met).kernel_ps, (400 + 28 + 40) * NS);
  met.context = &none;
  assert_int_equal(rig_run(slow_barriers, met).kernel_ps, (400 + 4) * NS); /* no barrier, no latency */
  /* who only arrives is not held; who waits for it is, though it came last */
  sim_counters produced = rig_run(slow_barriers, (rig_kernel){.blocks = 1, .warps = 2, .warp = produce});
  assert_int_equal(produced.kernel_ps, 205 * 4 * NS);
  sim_counters lone = rig_run(slow_barriers, (rig_kernel){.blocks = 1, .warps = 2, .warp = wait_last});
  assert_int_equal(lone.kernel_ps, (200 + 28 + 4) * NS);
}

static void meet_at_once(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  trace_put_barrier(w, 0, false, *(const uint32_t *)context);
}
static void barriers_by_warp(machine_spec *s) { s->barrier_latency = 20, s->barrier_warp_cycles = 2; }
/* n warps that come at once go on 20 + 2 n cycles later; those that come one by one, 22 after the last. */
static void test_a_barrier_takes_one_arrival_after_the_other(void **state) {
  for (uint32_t n = 1; n <= 32; n *= 2) {
    rig_kernel k = {.blocks = 1, .warps = n, .warp = meet_at_once, .context = &n};
    assert_int_equal(rig_run(barriers_by_warp, k).kernel_ps, (20 + 2 * n) * NS);
    k.blocks = 2; /* each block's barrier takes its own */
    assert_int_equal(rig_run(barriers_by_warp, k).kernel_ps, (20 + 2 * n) * NS);
  }
  barrier_case late = {100, true};
  rig_kernel met = {.blocks = 1, .warps = 4, .warp = meet, .context = &late};
  assert_int_equal(rig_run(barriers_by_warp, met).kernel_ps, (400 + 22 + 40) * NS);
}

static void lonely(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  if (warp) trace_put_barrier(w, 0, false, 4); /* warp 0 exits without having arrived */
  rig_issue(w, 10);
}
static void test_unmet_barrier_does_not_stop_the_simulation(void **state) {
  sim_counters c = rig_run(NULL, (rig_kernel){.blocks = 3, .warps = 4, .warp = lonely});
  assert_int_equal(c.kernel_ps, 80 * NS);
  assert_int_equal(c.blocks, 3);
}

/* ---- occupancy: blocks that run at once finish in one wave ---- */

static void one_sm(machine_spec *s) { s->sm_count = 1; }
static void wait_often(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (int n = 0; n < 100; n++) { /* latency bound: a wave takes about as long whatever is in it */
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE, 1);
    trace_put_wait(w, 0);
  }
}
static uint64_t waves_on(void (*machine)(machine_spec *), rig_kernel k) {
  k.warp = wait_often;
  rig_kernel one = k;
  one.blocks = 1;
  ps single = rig_run(machine, one).kernel_ps;
  return (rig_run(machine, k).kernel_ps + single / 2) / single;
}
static uint64_t waves(rig_kernel k) { return waves_on(one_sm, k); }

static void test_occupancy(void **state) {
  assert_int_equal(waves((rig_kernel){.blocks = 8, .warps = 1}), 1); /* max_blocks = 8 */
  assert_int_equal(waves((rig_kernel){.blocks = 9, .warps = 1}), 2);
  assert_int_equal(waves((rig_kernel){.blocks = 3, .warps = 16}), 1); /* 1536 threads */
  assert_int_equal(waves((rig_kernel){.blocks = 4, .warps = 16}), 2);
  assert_int_equal(waves((rig_kernel){.blocks = 2, .warps = 16, .registers = 32}), 1); /* 32768 registers */
  assert_int_equal(waves((rig_kernel){.blocks = 2, .warps = 16, .registers = 33}), 2);
  assert_int_equal(waves((rig_kernel){.blocks = 4, .warps = 1, .shared_bytes = 12288}), 1); /* 48 KiB */
  assert_int_equal(waves((rig_kernel){.blocks = 4, .warps = 1, .shared_bytes = 12289}), 2);
  assert_int_equal(waves((rig_kernel){.blocks = 2, .warps = 32, .registers = 255}), 2); /* fits nowhere: alone */
}

/* Compute capability 7.5: a warp takes registers in 256, of a scheduler's 16384; shared memory in 256 bytes. */
static void volta(machine_spec *s) {
  s->exact_allocation = 0;
  s->compute_major = 7;
  s->registers = 32768;
  s->sm_count = 1;
}
/* 8.0: 128 bytes, and 1 KiB of each block is the system's */
static void ampere(machine_spec *s) {
  volta(s);
  s->compute_major = 8;
  s->compute_minor = 0;
}
static void test_allocation_units(void **state) {
  /* 40 registers: 1280 of a warp, 12 warps of a scheduler, 24 of the SM, where 25 would have enough in all */
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 6, .warps = 4, .registers = 40}), 1);
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 5, .warps = 5, .registers = 40}), 2);
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 6, .warps = 4, .registers = 33}), 1); /* as 40 */
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 6, .warps = 4, .registers = 41}), 2);
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 6, .warps = 1, .shared_bytes = 8192}), 1);
  assert_int_equal(waves_on(volta, (rig_kernel){.blocks = 6, .warps = 1, .shared_bytes = 8193}), 2); /* as 8448 */
  assert_int_equal(waves_on(ampere, (rig_kernel){.blocks = 6, .warps = 1, .shared_bytes = 8192 - 1024}), 1);
  assert_int_equal(waves_on(ampere, (rig_kernel){.blocks = 6, .warps = 1, .shared_bytes = 8192 - 1023}), 2);
}

/* The L1 of volta() has 96 KiB with shared memory: 64 or 32 KiB are left to it, less 8. */
static void unified(machine_spec *s) {
  volta(s);
  s->shared_bytes = 64 << 10;
  s->l1_bytes = 96 << 10;
  s->l1_ways = 64;
}
enum { TOUCHED = 48 << 10 };
static void read_twice(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (int round = 0; round < 2; round++)
    for (uint64_t line = 0; line < TOUCHED / TRACE_LINE_BYTES; line++) {
      rig_access(w, TRACE_LOAD, 0, RIG_BASE + line * TRACE_LINE_BYTES, 1);
      trace_put_wait(w, 0);
    }
}
static bool l1_keeps_all(rig_kernel k) {
  k.blocks = 1;
  k.warps = 1;
  k.warp = read_twice;
  sim_counters c = rig_run(unified, k);
  assert_int_equal(c.l1_hits + c.l1_misses, 2 * TOUCHED / TRACE_LINE_BYTES);
  assert_true(c.l1_hits == 0 || c.l1_hits == c.l1_misses); /* round and round through too small an LRU cache: never */
  return c.l1_hits > 0;
}
/* Warp 0 reads out of the L1, or by bulk copies if there are no lines, while warp 1 keeps shared memory busy. */
static void hits_beside_shared(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  static const uint32_t shared[TRACE_UNIT_COUNT] = {[TRACE_SLOTS] = 30, [TRACE_LSU] = 30};
  const pace_case *c = context;
  if (warp > 0)
    for (int burst = 0; burst < 100; burst++) rig_units(w, 30, shared);
  else if (c->lines) hits(w, b, warp, context);
  else
    for (uint32_t n = 0; n < c->times; n++) rig_access(w, TRACE_LOAD, TRACE_ASYNC_COPY | TRACE_BULK, RIG_BASE, 15);
}
static ps beside_shared(rig_tweak tweak, uint32_t lines, uint32_t passes, uint32_t times) {
  pace_case c = {lines, passes, times};
  return rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 2, .warp = hits_beside_shared, .context = &c}).kernel_ps;
}
static void unified_with_pipes(machine_spec *s) {
  unified(s);
  with_pipes(s);
  four_lookups(s);
}
static void divided_with_pipes(machine_spec *s) {
  unified_with_pipes(s);
  s->l1_bytes = 32 << 10; /* not the memory of both: each has its own */
}
static void test_accesses_of_one_memory_take_each_others_banks(void **state) {
  assert_int_equal(beside_shared(divided_with_pipes, 4, 4, 24), beside_shared(divided_with_pipes, 4, 4, 8));
  ps before = beside_shared(unified_with_pipes, 4, 4, 8), after = beside_shared(unified_with_pipes, 4, 4, 24);
  assert_int_equal(after - before, 16 * 4 * NS);
  before = beside_shared(unified_with_pipes, 2, 1, 8), after = beside_shared(unified_with_pipes, 2, 1, 24);
  assert_int_equal(after - before, 16 * NS); /* two lines go together */
  before = beside_shared(unified_with_pipes, 6, 1, 8), after = beside_shared(unified_with_pipes, 6, 1, 24);
  assert_int_equal(after - before, 16 * 2 * NS);
  before = beside_shared(unified_with_pipes, 1, 3, 8), after = beside_shared(unified_with_pipes, 1, 3, 24);
  assert_int_equal(after - before, 16 * 3 * NS); /* one line of three passes */
  before = beside_shared(unified_with_pipes, 0, 0, 8), after = beside_shared(unified_with_pipes, 0, 0, 24);
  assert_int_equal(after, before); /* bulk copies are another unit's */
}

static void test_shared_memory_takes_from_the_l1(void **state) {
  assert_true(l1_keeps_all((rig_kernel){.shared_bytes = 0}));
  assert_true(l1_keeps_all((rig_kernel){.shared_bytes = 4 << 10})); /* eight blocks of 4 KiB have 32 */
  assert_false(l1_keeps_all((rig_kernel){.shared_bytes = (4 << 10) + 1}));
  assert_false(l1_keeps_all((rig_kernel){.carve_out = 101}));
  assert_false(l1_keeps_all((rig_kernel){.carve_out = 52})); /* 51 % of 64 KiB: more than 32 */
  assert_true(l1_keeps_all((rig_kernel){.carve_out = 51}));
  assert_true(l1_keeps_all((rig_kernel){.carve_out = 1, .shared_bytes = 32 << 10}));
  assert_false(l1_keeps_all((rig_kernel){.carve_out = 1, .shared_bytes = (32 << 10) + 1})); /* one block must fit */
  /* and what a kernel prefers is what its blocks have */
  assert_int_equal(waves_on(unified, (rig_kernel){.blocks = 4, .warps = 1, .shared_bytes = 16 << 10}), 1);
  assert_int_equal(waves_on(unified, (rig_kernel){.blocks = 4, .warps = 1, .shared_bytes = 16 << 10, .carve_out = 1}),
                   2);
}

/* A V100's L1 without shared memory: 120 KiB in 320 sets of three lines. */
static void whole_l1(machine_spec *s) {
  volta(s);
  s->compute_minor = 0;
  s->shared_bytes = 96 << 10;
  s->l1_bytes = 128 << 10;
  s->l1_ways = 3;
  s->l1_hash = 1;
}
enum { L1_SETS = 320, WARP_LANES = 32 };
static void read_lines_twice(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const uint64_t *lines = context, first = RIG_BASE / TRACE_LINE_BYTES / L1_SETS * L1_SETS + L1_SETS;
  for (uint64_t n = 0; n < 2 * *lines; n++) {
    rig_access(w, TRACE_LOAD, 0, (first + n % *lines) * TRACE_LINE_BYTES, 1);
    trace_put_wait(w, 0);
  }
}
/* Each line beyond those that fit makes a set of three miss four times: so rises the latency of a pointer chase on a
 * V100 from 120 to 160 KiB. */
static void test_a_line_too_many_makes_its_set_miss(void **state) {
  static const uint64_t fit = 3 * L1_SETS, lines[] = {900, 960, 961, 1044, 1266, 1280, 1300};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    uint64_t n = lines[i], more = n < fit ? 0 : n - fit, missed = more < L1_SETS ? 4 * more : n;
    sim_counters c = rig_run(whole_l1, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_lines_twice, .context = &n});
    assert_int_equal(c.l1_misses, n + missed);
  }
}

static void read_rows_twice(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint64_t n = 0; n < 2 * WARP_LANES; n++) {
    uint64_t at = RIG_BASE + n % WARP_LANES * 16392;
    rig_access(w, TRACE_LOAD, 0, at - at % TRACE_LINE_BYTES, 1);
    trace_put_wait(w, 0);
  }
}
/* Rows 16392 bytes apart stay in an H200's L1 (RRZE-HPC/gpu-benches, gpu-strides); by line number modulo sets they
 * would share five of these sets. */
static void test_lines_at_a_stride_stay(void **state) {
  sim_counters c = rig_run(whole_l1, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_rows_twice});
  assert_int_equal(c.l1_misses, WARP_LANES);
  assert_int_equal(c.l1_hits, WARP_LANES);
}

static void test_blocks_go_round_the_sms(void **state) {
  uint32_t n = 400;
  ps one = issue_time(1, n);
  for (uint64_t blocks = 1; blocks <= 15; blocks += 7) /* one warp per SM each: no one shares a scheduler */
    assert_int_equal(rig_run(NULL, (rig_kernel){.blocks = blocks, .warps = 1, .warp = issue, .context = &n}).kernel_ps,
                     one);
}

static void slow_start(machine_spec *s) {
  s->block_launch_cycles = 100;
  s->sm_count = 1;
}
static void slow_gpu(machine_spec *s) {
  s->gpu_block_launch_cycles = 10;
  s->block_launch_cycles = 100;
  s->sm_count = 4;
}
/* Round the SMs, a block every 10 ns; an SM's second one waits until 100 ns after its first. */
static void test_the_gpu_starts_one_block_after_the_other(void **state) {
  uint32_t n = 1;
  rig_kernel k = {.warps = 1, .warp = issue, .context = &n};
  for (k.blocks = 1; k.blocks <= 4; k.blocks++)
    assert_int_equal(rig_run(slow_gpu, k).kernel_ps, ((k.blocks - 1) * 10 + 4) * NS);
  for (k.blocks = 5; k.blocks <= 8; k.blocks++)
    assert_int_equal(rig_run(slow_gpu, k).kernel_ps, (100 + (k.blocks - 5) * 10 + 4) * NS);
}

static void slow_place(machine_spec *s) {
  s->block_start_cycles = 360;
  s->max_blocks = 2;
  s->sm_count = 1;
}
/* Two places: each block that follows another begins 360 ns after it. */
static void test_a_place_is_taken_before_the_first_instruction(void **state) {
  uint32_t n = 10;
  rig_kernel k = {.warps = 1, .warp = issue, .context = &n};
  for (k.blocks = 1; k.blocks <= 6; k.blocks++)
    assert_int_equal(rig_run(slow_place, k).kernel_ps, (k.blocks + 1) / 2 * (360 + 40) * NS);
}

static void slow_kernel(machine_spec *s) { s->launch_latency_us = 7; }
static void test_launch_latencies(void **state) {
  uint32_t n = 1;
  sim_counters c = rig_run(slow_start, (rig_kernel){.blocks = 5, .warps = 1, .warp = issue, .context = &n});
  assert_int_equal(c.kernel_ps, (4 * 100 + 4) * NS);
  c = rig_run(slow_kernel, (rig_kernel){.blocks = 1, .warps = 1, .warp = issue, .context = &n});
  assert_int_equal(c.time_ps, 7 * US + 4 * NS);
  assert_int_equal(c.kernel_ps, 4 * NS);
}

static void test_idle_time_costs_no_events(void **state) {
  rig r;
  rig_open(&r, "ideal");
  r.spec.api_us = 1e6; /* a second per call */
  rig_start(&r);
  for (int i = 0; i < 1000; i++) rig_op(&r, (trace_op){.kind = TRACE_OP_HOST});
  assert_int_equal(rig_finish(&r)->counters.time_ps, UINT64_C(1000000000000) * 1000);
  assert_int_equal(r.sim->d->heap.order, 0);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_warp_is_bound_by_its_interval),
      cmocka_unit_test(test_many_warps_are_bound_by_the_schedulers),
      cmocka_unit_test(test_slow_units),
      cmocka_unit_test(test_shared_memory_passes),
      cmocka_unit_test(test_pipes_overlap),
      cmocka_unit_test(test_half_of_the_lanes_multiply_integers),
      cmocka_unit_test(test_half_precision_has_its_own_pipe_or_that_of_floats),
      cmocka_unit_test(test_minima_are_two_instructions),
      cmocka_unit_test(test_half_precision_takes_longer_in_a_chain),
      cmocka_unit_test(test_one_pipe_of_doubles_for_all_schedulers),
      cmocka_unit_test(test_products_of_matrices_have_their_own_latency),
      cmocka_unit_test(test_chains_bind_one_warp),
      cmocka_unit_test(test_an_sm_takes_a_shared_access_per_cycle),
      cmocka_unit_test(test_first_warps_of_blocks_take_turns),
      cmocka_unit_test(test_each_further_constant_takes_the_unit_again),
      cmocka_unit_test(test_what_has_no_units_takes_no_time),
      cmocka_unit_test(test_early_waits_are_for_machines_that_do_not_hoist),
      cmocka_unit_test(test_work_hides_latency),
      cmocka_unit_test(test_wait_names_one_load),
      cmocka_unit_test(test_outstanding_loads_are_bounded),
      cmocka_unit_test(test_lines_and_passes_take_the_load_unit),
      cmocka_unit_test(test_barrier),
      cmocka_unit_test(test_barrier_latency),
      cmocka_unit_test(test_a_barrier_takes_one_arrival_after_the_other),
      cmocka_unit_test(test_arrive_does_not_wait),
      cmocka_unit_test(test_unmet_barrier_does_not_stop_the_simulation),
      cmocka_unit_test(test_occupancy),
      cmocka_unit_test(test_allocation_units),
      cmocka_unit_test(test_shared_memory_takes_from_the_l1),
      cmocka_unit_test(test_accesses_of_one_memory_take_each_others_banks),
      cmocka_unit_test(test_a_line_too_many_makes_its_set_miss),
      cmocka_unit_test(test_lines_at_a_stride_stay),
      cmocka_unit_test(test_blocks_go_round_the_sms),
      cmocka_unit_test(test_launch_latencies),
      cmocka_unit_test(test_the_gpu_starts_one_block_after_the_other),
      cmocka_unit_test(test_a_place_is_taken_before_the_first_instruction),
      cmocka_unit_test(test_idle_time_costs_no_events),
  };
  return cmocka_run_group_tests_name("sm", tests, NULL, NULL);
}
