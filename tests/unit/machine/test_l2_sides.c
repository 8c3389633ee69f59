/* SPDX-License-Identifier: Apache-2.0 */
/* An L2 of two sides that keep copies of each other's lines: how far a line is, which copy a store ends, what fits.
 *
 * SM 0 is on side 0. A piece of 256 bytes is on the side that the parity of its number says: RIG_BASE on side 1, its
 * neighbour on side 0. Latencies of the rig as in test_memory.c; the other side is 40 ns further. */
#include "rig.h"

#define FAR RIG_BASE
#define NEAR (RIG_BASE + 256)
#define MISS ((100 + 100 + 12 + 12 + 4) * NS)

static void sides(machine_spec *s) {
  s->page_bytes = 2 << 20;
  s->l1_mshrs = 1024;
  s->l2_copies = 1;
  s->side_latency = 40;
}
static void one_side(machine_spec *s) {
  sides(s);
  s->l2_copies = 0;
}
static void load(trace_writer *w, uint64_t address) {
  rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, address, 15);
  trace_put_wait(w, 0);
}
static void warm(trace_writer *w, uint64_t b, uint32_t i, const void *c) { load(w, RIG_BASE + (1 << 20)); }
static void near(trace_writer *w, uint64_t b, uint32_t i, const void *c) { warm(w, b, i, c), load(w, NEAR); }
static void far(trace_writer *w, uint64_t b, uint32_t i, const void *c) { warm(w, b, i, c), load(w, FAR); }
static void far_again(trace_writer *w, uint64_t b, uint32_t i, const void *c) { far(w, b, i, c), load(w, FAR); }
static void far_written(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  far(w, b, i, c);
  rig_access(w, TRACE_STORE, 0, FAR, 1); /* one sector */
  rig_issue(w, 100);
  load(w, FAR);
}
static ps beyond_warm(rig_tweak tweak, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *)) {
  return rig_time(tweak, warp) - rig_time(tweak, warm);
}

static void test_how_far_a_line_is(void **state) {
  assert_int_equal(beyond_warm(sides, near), MISS);
  assert_int_equal(beyond_warm(sides, far), MISS + 40 * NS);
  assert_int_equal(beyond_warm(sides, far_again), MISS + 40 * NS + 100 * NS); /* the copy is near */
  assert_int_equal(beyond_warm(one_side, far), MISS);
}

static void test_a_store_ends_the_copy(void **state) {
  assert_int_equal(beyond_warm(sides, far_written), MISS + 40 * NS + 100 * 4 * NS + 140 * NS);
  sim_counters c = rig_run(sides, (rig_kernel){.blocks = 1, .warps = 1, .warp = far_written}),
               before = rig_run(sides, (rig_kernel){.blocks = 1, .warps = 1, .warp = far});
  assert_int_equal(c.dram_read_bytes, before.dram_read_bytes); /* what was written is on its own side */
  assert_int_equal(c.l2_hits - before.l2_hits, 1 + 4);         /* the store's sector, then three of the copy and one */
}

/* ---- what fits ---- */

static uint64_t lines; /* of the set that is read twice */
static void twice(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 2 * lines; n++) load(w, RIG_BASE + n % lines * 128);
}
static double read_again(rig_tweak tweak, uint64_t kib) { /* from DRAM, of the set */
  lines = kib * 8;
  sim_counters c = rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = twice});
  return (double)c.dram_read_bytes / ((double)lines * 128) - 1;
}
/* Of 1536 KiB one SM's side has half. What does not fit there comes from the other side where that is its own. */
static void test_what_fits(void **state) {
  assert_true(read_again(sides, 700) < 0.01);
  assert_true(read_again(one_side, 1200) < 0.01);
  double again = read_again(sides, 1200);
  assert_true(again > 0.45 && again < 0.55);
  assert_true(read_again(sides, 2000) > 0.9);
}

/* ---- between the sides ---- */

static void narrow(machine_spec *s) {
  sides(s);
  s->sm_count = 1;
  s->side_bytes = 8;
}
static void read_on(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 64; n++)
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + ((b * 8 + i) * 64 + n) * 128, 15);
  trace_put_wait(w, 0);
}
/* One SM gets half of what it reads from the other side, at 8 bytes per ns. */
static void test_between_the_sides(void **state) {
  sim_counters c = rig_run(narrow, (rig_kernel){.blocks = 64, .warps = 8, .warp = read_on});
  double reached = (double)c.sectors * 32 / (double)c.kernel_ps * NS;
  assert_true(reached <= 16.1 && reached > 0.9 * 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_how_far_a_line_is),
      cmocka_unit_test(test_a_store_ends_the_copy),
      cmocka_unit_test(test_what_fits),
      cmocka_unit_test(test_between_the_sides),
  };
  return cmocka_run_group_tests_name("l2_sides", tests, NULL, NULL);
}
