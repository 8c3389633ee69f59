/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of far-faults, as anyone can do it on paper (Zheng et al., HPCA 2016, for 20 us and 16 GB/s):
 * n faults of 4 KiB in flight on each of 15 SMs move 15 n x 4096 B / 20 us, until the link is full. */
#include "rig.h"

enum { WARPS = 16, BLOCKS = 30, PAGES_PER_WARP = 10 };
#define PAGES ((uint64_t)WARPS * BLOCKS * PAGES_PER_WARP)
#define BYTES (PAGES * 4096)

/* Every warp reads the first line of pages of its own, one after the other. */
static void touch_pages(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t i = 0; i < PAGES_PER_WARP; i++) {
    rig_issue(w, 1);
    rig_load_wait(w, RIG_BASE + ((i * BLOCKS + block) * WARPS + warp) * 4096);
  }
}

static sim_counters run(const char *manager, double fault_us, uint64_t mshrs) {
  rig r;
  rig_open(&r, manager);
  r.spec.fault_us = fault_us;
  r.spec.fault_mshrs = mshrs;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  rig_launch(&r, (rig_kernel){.blocks = BLOCKS, .warps = WARPS, .warp = touch_pages});
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_string_equal(r.result.error, "");
  rig_close(&r);
  return c;
}

static double bandwidth(const sim_counters *c) { return (double)c->h2d_bytes / (double)c->time_ps * 1000; } /* GB/s */

static void test_bandwidth_of_faults_in_flight(void **state) {
  static const struct {
    uint64_t n;
    double gbs;
  } cases[] = {{1, 3.072}, {2, 6.144}, {4, 12.288}, {6, 16}, {16, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sim_counters c = run("replay", 20, cases[i].n);
    assert_near(bandwidth(&c), cases[i].gbs, 0.05);
    assert_int_equal(c.faults, PAGES);
    assert_int_equal(c.h2d_bytes, BYTES);
    assert_near(sim_link_utilisation(&c), cases[i].gbs / 16, 0.05);
  }
}

static void test_blocking_penalty(void **state) {
  sim_counters copy = run("copy", 20, 4);
  assert_near(bandwidth(&copy), 16, 0.05);
  static const struct { double us, penalty; } cases[] = {{5, 1.302}, {20, 5.208}, {50, 13.02}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sim_counters c = run("demand", cases[i].us, 4);
    assert_near((double)c.time_ps / (double)copy.time_ps, cases[i].penalty, 0.05);
    assert_int_equal(c.faults, PAGES);
    assert_int_equal(c.faults_throttled, 0);
  }
}

static void test_ideal_is_the_bound(void **state) {
  sim_counters ideal = run("ideal", 20, 4);
  assert_int_equal(ideal.h2d_bytes, 0);
  assert_int_equal(ideal.transfer_ps, 0);
  assert_true(ideal.time_ps < run("copy", 20, 4).time_ps / 20);
  assert_true(ideal.time_ps == ideal.kernel_ps);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bandwidth_of_faults_in_flight),
      cmocka_unit_test(test_blocking_penalty),
      cmocka_unit_test(test_ideal_is_the_bound),
  };
  return cmocka_run_group_tests_name("closed forms", tests, NULL, NULL);
}
