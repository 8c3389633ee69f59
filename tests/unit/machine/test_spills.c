/* SPDX-License-Identifier: Apache-2.0 */
/* Spills: registers that a kernel may not have go to local memory, through the L1 and the L2, without pages and
 * translations. The rig: a cycle is 1 ns; an L1 of 128 lines with 20 ns, an L2 with 100; a line from a closed row of
 * DRAM takes 228 ns: 100 to the L2 and back, 100 to the DRAM and back, 12 and 12 for row and column, 4 for its
 * bytes. */
#include "stack_rig.h"

typedef struct work { /* of each warp: all stores, all loads, then a wait for each */
  uint32_t stores, loads, words, sectors;
} work;

static void spill(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const work *k = context;
  for (uint32_t n = 0; n < k->stores; n++) trace_put_spill(w, true, k->words, k->sectors, n * k->words, n);
  for (uint32_t n = 0; n < k->loads; n++) trace_put_spill(w, false, k->words, k->sectors, n * k->words, 100 + n);
  for (uint32_t n = k->loads; n-- > 0;) trace_put_wait(w, n);
}

static sim_counters run(const char *manager, uint32_t threads, rig_kernel k) {
  rig r;
  rig_open(&r, manager);
  r.threads = threads;
  r.lines = threads == 0;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, k);
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_string_equal(r.result.error, "");
  assert_true(r.result.kernel_count == 1 && r.result.kernels[0].counters.spill_loads == c.spill_loads &&
              r.result.kernels[0].counters.spill_stores == c.spill_stores);
  rig_close(&r);
  return c;
}

static sim_counters of_warp(work k) {
  return run("ideal", 0, (rig_kernel){.blocks = 1, .warps = 1, .warp = spill, .context = &k});
}
static ps time_of(uint32_t stores, uint32_t loads, uint32_t words) {
  return of_warp((work){stores, loads, words, 15}).kernel_ps;
}

/* A line per cycle; the last store is over when the L2 has it, the last load when DRAM's row has been read. */
static void test_stores_and_loads_of_nothing_stored(void **state) {
  for (uint32_t n = 1; n < 6; n++) /* later lines meet others in a bank */
    for (uint32_t words = 1; words <= 4; words++) {
      assert_int_equal(time_of(n, 0, words), (100 + n * words) * NS);
      assert_int_equal(time_of(0, n, words), (228 + n * words) * NS);
    }
}

static void round_trips(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  trace_put_spill(w, true, 1, 15, 3, 0);
  for (uint32_t n = *(const uint32_t *)context; n-- > 0;) {
    trace_put_spill(w, false, 1, 15, 3, 1);
    trace_put_wait(w, 0);
  }
}

/* What was stored is in the L1: each load takes the scheduler's cycle and the L1's twenty. */
static void test_a_round_trip(void **state) {
  for (uint32_t n = 10; n < 14; n++)
    assert_int_equal(
        run("ideal", 0, (rig_kernel){.blocks = 1, .warps = 1, .warp = round_trips, .context = &n}).kernel_ps,
        (1 + 21 * n) * NS);
}

/* As many lines as the L1 has are all found there; twice as many, in turn, none, and all in the L2. */
static void test_more_than_the_l1_holds(void **state) {
  sim_counters few = of_warp((work){100, 100, 1, 15}), many = of_warp((work){256, 256, 1, 15});
  assert_int_equal(few.l1_hits, 400);
  assert_int_equal(few.l1_misses, 0);
  assert_int_equal(few.l2_hits, 0);
  assert_int_equal(many.l1_hits, 0);
  assert_int_equal(many.l1_misses, 1024);
  assert_int_equal(many.l2_hits, 1024);
  assert_int_equal(many.dram_read_bytes, 0);
  assert_int_equal(of_warp((work){10, 10, 1, 5}).l1_hits, 20); /* two sectors a line */
}

/* Lines of two warps are not the same. */
static void test_warps_have_lines_of_their_own(void **state) {
  work k = {1, 1, 2, 15};
  for (uint32_t warps = 1; warps <= 16; warps *= 2)
    assert_int_equal(run("ideal", 0, (rig_kernel){.blocks = 1, .warps = warps, .warp = spill, .context = &k}).l2_misses,
                     2 * 4 * warps);
}

/* No page, no translation and no far-fault, whatever the manager; a spill is no instruction or access of the
 * program's. */
static void test_what_is_counted(void **state) {
  static const char *const managers[] = {"ideal", "copy", "demand", "replay", "uvm", "segments"};
  work k = {3, 2, 1, 15};
  for (size_t m = 0; m < sizeof managers / sizeof *managers; m++) {
    sim_counters c = run(managers[m], 0, (rig_kernel){.blocks = 4, .warps = 2, .warp = spill, .context = &k});
    assert_int_equal(c.spill_stores, 24);
    assert_int_equal(c.spill_loads, 16);
    assert_int_equal(c.tlb_lookups + c.faults + c.pages_moved_in + c.h2d_bytes + c.accesses + c.warp_instructions, 0);
  }
}

/* On any number of threads the same. */
static void test_rounds(void **state) {
  work k = {20, 20, 3, 15};
  sim_counters one = {0};
  for (uint32_t threads = 1; threads <= 3; threads++) {
    sim_counters c = run("ideal", threads, (rig_kernel){.blocks = 30, .warps = 8, .warp = spill, .context = &k});
    assert_int_equal(c.spill_loads, 20 * 8 * 30);
    assert_true(c.l1_misses > 0 && c.l2_hits > 0);
    if (threads == 1) one = c;
    assert_memory_equal(&c, &one, sizeof c);
  }
  sim_counters whole = run("ideal", 0, (rig_kernel){.blocks = 30, .warps = 8, .warp = spill, .context = &k});
  assert_int_equal(whole.spill_stores, one.spill_stores);
  assert_near(one.kernel_ps, whole.kernel_ps, 0.05);
}

/* Thousand loads of few lines, of which a warp remembers the last ones: those before have come. */
static void endless(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint32_t n = 0; n < 1000; n++) trace_put_spill(w, false, 1, 15, n % 10, n);
}

static void test_many_loads_without_waits(void **state) {
  for (uint32_t threads = 0; threads <= 2; threads++) {
    sim_counters c = run("ideal", threads, (rig_kernel){.blocks = 2, .warps = 2, .warp = endless});
    assert_int_equal(c.spill_loads, 4000);
    assert_true(c.l1_misses == 4 * 4 * 10 || c.l1_hits == 4 * 4 * 990);
    assert_between(c.kernel_ps, 2000 * NS, 2300 * NS); /* a line a cycle of two warps, and the misses once */
  }
}

/* On a machine with memory stacks a spill stays on the chip and takes no time; one that loads is a load that has come,
 * and those before it keep their numbers. */
static void between_loads(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint32_t spills = *(const uint32_t *)context;
  rig_load(w, RIG_BASE);
  for (uint32_t n = 0; n < spills; n++) trace_put_spill(w, n % 2, 2, 15, 0, n);
  trace_put_wait(w, (spills + 1) / 2);
  rig_load_wait(w, RIG_BASE + 8192);
}

static void test_stacks(void **state) {
  ps none = 0;
  for (uint32_t spills = 0; spills < 5; spills++) {
    rig r;
    rig_open(&r, "ideal");
    four_stacks(&r.spec);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = between_loads, .context = &spills});
    sim_counters c = rig_finish(&r)->counters;
    rig_close(&r);
    if (!spills) none = c.kernel_ps;
    assert_true(none > 400 * NS); /* one load after the other */
    assert_int_equal(c.kernel_ps, none);
    assert_int_equal(c.spill_loads + c.spill_stores, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stores_and_loads_of_nothing_stored),
      cmocka_unit_test(test_a_round_trip),
      cmocka_unit_test(test_more_than_the_l1_holds),
      cmocka_unit_test(test_warps_have_lines_of_their_own),
      cmocka_unit_test(test_what_is_counted),
      cmocka_unit_test(test_rounds),
      cmocka_unit_test(test_many_loads_without_waits),
      cmocka_unit_test(test_stacks),
  };
  return cmocka_run_group_tests_name("spills", tests, NULL, NULL);
}
