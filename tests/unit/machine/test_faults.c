/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults in the machine: when a page is there, which warps merge, are throttled, may go on meanwhile. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)

typedef struct setup {
  double fault_us;
  uint64_t mshrs, merge_mshrs, sms, unit;
  double link_gbs;
} setup;

static sim_result faulting(const char *manager, setup c, rig_kernel k) {
  rig r;
  rig_open(&r, manager);
  r.spec.fault_us = c.fault_us;
  r.spec.fault_mshrs = c.mshrs ? c.mshrs : 4;
  r.spec.fault_merge_mshrs = c.merge_mshrs;
  if (c.sms) r.spec.sm_count = c.sms;
  if (c.unit) r.spec.fault_page_bytes = c.unit;
  if (c.link_gbs > 0) r.spec.link_h2d_gbs = c.link_gbs;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, k);
  sim_result result = *rig_finish(&r);
  result.kernels = NULL; /* only the totals are looked at */
  result.allocations = NULL;
  pager_check_all(r.sim->pager);
  rig_close(&r);
  return result;
}

/* ---- one fault ---- */

static void load_one(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_load_wait(w, PAGE(0)); }

static void test_service_time(void **state) {
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = load_one};
  for (int m = 0; m < 2; m++) {
    const char *manager = m ? "demand" : "replay";
    ps at_20 = faulting(manager, (setup){.fault_us = 20}, k).counters.kernel_ps;
    ps at_50 = faulting(manager, (setup){.fault_us = 50}, k).counters.kernel_ps;
    assert_int_equal(at_50 - at_20, 30 * US);
    ps none = faulting("ideal", (setup){.fault_us = 20}, k).counters.kernel_ps;
    ps replayed = (10 + 4 * 20 + 10) * NS; /* the second walk finds all four levels in the walk cache */
    /* the fault's walk ends at the GMMU: the 10 ns back are only paid by the replay; the data comes from a closed
     * row */
    assert_int_equal(at_20, 20 * US + none - 10 * NS + replayed);
  }
}

/* A page that is already late for the link: max(start + fault_us, backlog + transfer). */
static void test_slow_link(void **state) {
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = load_one};
  /* 20 us per page */
  sim_counters fast = faulting("replay", (setup){.fault_us = 20, .link_gbs = 4096 / 20e3}, k).counters;
  /* 30 us per page */
  sim_counters slow = faulting("replay", (setup){.fault_us = 20, .link_gbs = 4096 / 30e3}, k).counters;
  assert_int_equal(fast.fault_wait_ps, 20 * US);
  assert_int_equal(slow.fault_wait_ps, 30 * US);
  assert_int_equal(slow.h2d_busy_ps, 30 * US);
  assert_int_equal(slow.kernel_ps - fast.kernel_ps, 10 * US);
}

/* ---- merging ---- */

static void test_merging_over_sms_and_warps(void **state) {
  sim_counters one =
      faulting("replay", (setup){.fault_us = 20}, (rig_kernel){.blocks = 1, .warps = 1, .warp = load_one}).counters;
  sim_counters c =
      faulting("replay", (setup){.fault_us = 20}, (rig_kernel){.blocks = 3, .warps = 4, .warp = load_one}).counters;
  assert_int_equal(c.faults, 1);
  assert_int_equal(c.faults_merged, 11);
  assert_int_equal(c.faults_throttled, 0);
  assert_int_equal(c.h2d_bytes, 4096);
  assert_int_equal(c.pages_moved_in, 1);
  assert_true(c.kernel_ps < one.kernel_ps + 1 * US); /* all of them are woken by the one arrival */
  assert_true(c.warp_stall_ps >= 12 * 20 * US);
}

/* ---- the throttle ---- */

static void gather(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint32_t pages = *(const uint32_t *)context;
  uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, pages);
  for (uint32_t p = 0; p < pages; p++) at[p] = trace_line(PAGE(p), 1, 1);
  trace_put_wait(w, 0);
}

static void test_allotment(void **state) {
  static const struct {
    uint64_t mshrs;
    uint32_t pages, throttled, rounds;
  } cases[] = {{1, 1, 0, 1}, {1, 3, 2, 3}, {2, 5, 3, 3}, {4, 4, 0, 1}, {4, 5, 1, 2}, {4, 9, 5, 3}, {16, 32, 16, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sim_counters c = faulting("replay", (setup){.fault_us = 20, .mshrs = cases[i].mshrs},
                              (rig_kernel){.blocks = 1, .warps = 1, .warp = gather, .context = &cases[i].pages})
                         .counters;
    assert_int_equal(c.faults, cases[i].pages);
    assert_int_equal(c.faults_throttled, cases[i].throttled);
    assert_int_equal(c.faults_merged, 0);
    assert_true(c.kernel_ps >= cases[i].rounds * 20 * US);
    /* walks, and transfers of a round behind each other */
    assert_true(c.kernel_ps < cases[i].rounds * 20 * US + 5 * US);
  }
}

/* SM 0 may have one fault: it waits for page 0 and is throttled on page 1, which SM 1 brings meanwhile. */
static void throttled_page_comes_by_another(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  if (b == 1) {
    rig_issue(w, 1000); /* 4 us later */
    rig_load_wait(w, PAGE(1));
    return;
  }
  uint32_t two = 2;
  gather(w, b, i, &two);
}
static void test_throttled_request_meets_a_flight(void **state) {
  sim_counters c = faulting("replay", (setup){.fault_us = 20, .mshrs = 1},
                            (rig_kernel){.blocks = 2, .warps = 1, .warp = throttled_page_comes_by_another})
                       .counters;
  assert_int_equal(c.faults, 2);
  assert_int_equal(c.faults_throttled, 1);
  assert_true(c.kernel_ps >= 24 * US && c.kernel_ps < 27 * US); /* not 40: the replay finds page 1 on its way */
}

/* SM 0 brings page 0. SM 1 may have one fault: it asks for page 0, which is on its way, and for page 1. */
static void joins_and_asks(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint32_t two = 2;
  if (b == 0) {
    rig_load_wait(w, PAGE(0));
    return;
  }
  rig_issue(w, 1000); /* 4 us later */
  gather(w, b, i, &two);
}
static void test_merged_fault_takes_no_mshr(void **state) {
  rig_kernel k = {.blocks = 2, .warps = 1, .warp = joins_and_asks};
  sim_counters c = faulting("replay", (setup){.fault_us = 20, .mshrs = 1}, k).counters;
  assert_int_equal(c.faults, 2);
  assert_int_equal(c.faults_merged, 1);
  assert_int_equal(c.faults_throttled, 0);
  assert_true(c.kernel_ps >= 24 * US && c.kernel_ps < 27 * US); /* page 1 at once */
  c = faulting("replay", (setup){.fault_us = 20, .mshrs = 1, .merge_mshrs = 1}, k).counters;
  assert_int_equal(c.faults, 2);
  assert_int_equal(c.faults_throttled, 1);
  assert_true(c.kernel_ps >= 40 * US && c.kernel_ps < 43 * US); /* page 1 when page 0 is there */
}

/* ---- which warps go on ---- */

/* Block 0 (SM 0): warp 0 faults on a new page while warp 1 hits a resident one, 100 times. Block 1 (SM 1) hits too. */
static void fault_during_hits(trace_writer *w, uint64_t b, uint32_t warp, const void *c) {
  rig_load_wait(w, PAGE(0));
  trace_put_barrier(w, 0, false, 2);
  if (warp == 0 && b == 0) {
    rig_load_wait(w, PAGE(5));
    return;
  }
  rig_issue(w, 200);
  for (int n = 0; n < 100; n++) rig_load_wait(w, PAGE(0));
  rig_issue(w, 1000);
}

static ps stall(const char *manager, uint64_t blocks) {
  rig_kernel k = {.blocks = blocks, .warps = 2, .warp = fault_during_hits};
  return faulting(manager, (setup){.fault_us = 20}, k).counters.warp_stall_ps;
}

static void test_replay_lets_the_others_go_on(void **state) {
  /* Stalls of 20 us: both warps of each block at first, then the faulting one. (And 2 us of L1 hits, and walks.) */
  assert_between(stall("replay", 1), (2 + 1) * 20 * US, (2 + 1) * 20 * US + 6 * US);
  assert_between(stall("replay", 2), (4 + 1) * 20 * US, (4 + 1) * 20 * US + 12 * US);
}

static void test_demand_stops_its_sm_only(void **state) {
  /* Of SM 0 the hitting warp stalls too. At first both warps of a block fault on one page, one behind the other's
   * blocked TLB: 20 us each. Block 1 on its SM goes on. */
  assert_between(stall("demand", 1), (2 + 2) * 20 * US, (2 + 2) * 20 * US + 6 * US);
  assert_between(stall("demand", 2), (4 + 2) * 20 * US, (4 + 2) * 20 * US + 12 * US);
}

/* Two pages in one access: blocking faults come one after the other. */
static void test_blocking_faults_are_serial(void **state) {
  uint32_t pages = 5;
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = gather, .context = &pages};
  sim_counters c = faulting("demand", (setup){.fault_us = 20}, k).counters;
  assert_int_equal(c.faults, 5);
  assert_near(c.kernel_ps, 100 * US, 0.03);
}

/* ---- units larger than a page ---- */

static void touch_every_page(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (int p = 0; p < 64; p++) rig_load_wait(w, PAGE(p));
}
static void test_large_units(void **state) {
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = touch_every_page};
  sim_counters small = faulting("replay", (setup){.fault_us = 20}, k).counters;
  sim_counters large = faulting("replay", (setup){.fault_us = 20, .unit = 64 << 10}, k).counters;
  assert_int_equal(small.faults, 64);
  assert_int_equal(large.faults, 4);
  assert_int_equal(large.pages_moved_in, 64);
  assert_int_equal(large.h2d_bytes, small.h2d_bytes);
  assert_between(large.kernel_ps, 4 * 20 * US, 4 * 20 * US + 64 * US / 2); /* and 64 loads, each under half a us */
}

/* Two small allocations in one unit's window are two units: each moves alone. */
static void test_neighbours_in_one_window(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.spec.fault_page_bytes = 64 << 10;
  rig_start(&r);
  for (int i = 0; i < 5; i++) rig_alloc(&r, PAGE(i), 4096, i == 3 ? TRACE_MEMORY_PINNED : TRACE_MEMORY_DEVICE);
  uint32_t pages = 5;
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = gather, .context = &pages});
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.faults, 4);
  assert_int_equal(c.h2d_bytes, 4 * 4096);
  assert_int_equal(c.remote_bytes, 32);
  for (uint32_t i = 0; i < r.result.allocation_count; i++) {
    assert_int_equal(r.result.allocations[i].counters.faults, i == 3 ? 0 : 1);
    assert_int_equal(r.result.allocations[i].counters.lines, 1);
  }
  rig_close(&r);
}

/* While a group is on its way with a far-fault's service, what is absent of it is reached over the link: while memory
 * has room if nothing else waits for the link, later if that takes less than half of the time to the landing. */
static bool reaches(uint64_t free_bytes, ps queued, ps lands) {
  static const ps now = 7 * US;
  const manager who = {.reaches = true};
  timing t = {.link_latency = US};
  host_link wire = {.h2d.server.bus.free = now + queued};
  link_port link = {.wire = &wire};
  pager_flight flights[2] = {{0}, {.lands = now + lands}};
  pager p = {.free = free_bytes, .flights = {.items = flights, .count = 2}};
  pager_unit unit = {.state = PAGER_IN_FLIGHT, .flight = 1, .departs = true};
  return fault_reaches(&(far_faults){.manager = &who, .t = &t, .link = &link, .pager = &p}, &unit, now);
}

static void test_reached_rather_than_waited_for(void **state) {
  const uint64_t room = 64 << 10;
  assert_true(reaches(room, 0, 25 * US));
  assert_false(reaches(room, 1, 25 * US));
  assert_true(reaches(room - 1, 1, 25 * US)); /* no room for a group */
  for (int full = 0; full < 2; full++) {
    assert_false(reaches(full ? 0 : room, 0, 2 * US));
    assert_true(reaches(full ? 0 : room, 0, 2 * US + 1));
  }
  assert_false(reaches(0, 9 * US, 20 * US));
  assert_true(reaches(0, 9 * US, 20 * US + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_service_time),
      cmocka_unit_test(test_slow_link),
      cmocka_unit_test(test_merging_over_sms_and_warps),
      cmocka_unit_test(test_allotment),
      cmocka_unit_test(test_throttled_request_meets_a_flight),
      cmocka_unit_test(test_merged_fault_takes_no_mshr),
      cmocka_unit_test(test_replay_lets_the_others_go_on),
      cmocka_unit_test(test_demand_stops_its_sm_only),
      cmocka_unit_test(test_blocking_faults_are_serial),
      cmocka_unit_test(test_large_units),
      cmocka_unit_test(test_neighbours_in_one_window),
      cmocka_unit_test(test_reached_rather_than_waited_for),
  };
  return cmocka_run_group_tests_name("far-faults", tests, NULL, NULL);
}
