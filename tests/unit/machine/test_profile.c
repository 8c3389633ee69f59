/* SPDX-License-Identifier: Apache-2.0 */
/* Counting between cudaProfilerStart and cudaProfilerStop (observe/profile.h): when a mark takes effect, and what is
 * reported of the ranges. A block of `busy` keeps its SM busy for 100 us, one of `busy_twice` for 200 us. */
#include "rig.h"

static void busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 25,000 instructions of 4 ns */
  for (int n = 0; n < 5; n++) rig_issue(w, 5000);
}
static void busy_twice(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  busy(w, b, i, c);
  busy(w, b, i, c);
}
static void loads(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t page = 0; page < 4; page++) rig_load_wait(w, RIG_BASE + (4 * b + page) * 4096);
}

static const rig_kernel shorter = {
    .blocks = 1, .warps = 1, .shared_bytes = 49152, .warp = busy, .name = "shorter", .stream = 1};
static const rig_kernel longer = {
    .blocks = 1, .warps = 1, .shared_bytes = 49152, .warp = busy_twice, .name = "longer", .stream = 2};

static void mark(rig *r, bool start) { rig_op(r, (trace_op){.kind = TRACE_OP_PROFILE, .profile = {start}}); }

static void begin(rig *r, const char *manager) {
  rig_open(r, manager);
  r->profile = r->history = r->lines = true;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
}

static void two_streams(rig *r) {
  for (uint32_t n = 1; n <= 2; n++)
    rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = n, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
}

static const sim_kernel_result *kernel_of(const sim_result *result, const char *name) {
  for (uint32_t i = 0; i < result->kernel_count; i++)
    if (!strcmp(result->kernels[i].name, name)) return &result->kernels[i];
  fail_msg("there is no kernel %s", name);
  return NULL;
}

static void test_ranges_add_up(void **state) {
  rig r;
  begin(&r, "copy");
  for (int i = 0; i < 3; i++) {
    rig_launch(&r, shorter); /* outside */
    mark(&r, true);
    rig_launch(&r, shorter);
    mark(&r, false);
  }
  const sim_result *result = rig_finish(&r);
  assert_true(result->profiled);
  assert_int_equal(result->profiles, 3);
  assert_int_equal(result->counters.launches, 3);
  assert_int_equal(result->counters.time_ps, 300 * US);
  assert_int_equal(result->counters.kernel_ps, 300 * US);
  assert_int_equal(result->counters.warp_instructions, 3 * 25000);
  rig_close(&r);
}

/* Not before what was called before it is over, though the host has long come to it, and work behind it runs. */
static void test_a_mark_waits_for_what_is_before_it(void **state) {
  rig r;
  begin(&r, "copy");
  two_streams(&r);
  rig_launch(&r, shorter); /* 0 to 100 us */
  mark(&r, true);          /* at 100 us */
  rig_launch(&r, longer);  /* 0 to 200 us, in the other stream */
  mark(&r, false);         /* at 200 us */
  rig_launch(&r, shorter); /* 100 to 200 us */
  rig_sync(&r);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.time_ps, 100 * US);
  assert_int_equal(result->counters.kernel_ps, 100 * US);
  assert_int_equal(kernel_of(result, "longer")->counters.launches, 1);
  rig_close(&r);
}

static void test_without_a_stop_it_ends_with_the_program(void **state) {
  rig r;
  begin(&r, "copy");
  mark(&r, false);
  rig_launch(&r, shorter);
  mark(&r, true);
  mark(&r, true);
  rig_launch(&r, shorter);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->profiles, 1);
  assert_int_equal(result->counters.time_ps, 100 * US);
  assert_int_equal(result->counters.launches, 1);
  rig_close(&r);
}

static void test_without_a_start_there_is_nothing(void **state) {
  rig r;
  sim_counters none = {0};
  begin(&r, "demand");
  rig_launch(&r, (rig_kernel){.blocks = 8, .warps = 1, .warp = loads});
  mark(&r, false);
  const sim_result *result = rig_finish(&r);
  assert_memory_equal(&result->counters, &none, sizeof none);
  assert_memory_equal(&result->kernels[0].counters, &none, sizeof none);
  rig_close(&r);
}

/* Far-faults of the second launch's pages only; by allocation, by instruction and in the history, too. */
static void test_every_table_has_the_same(void **state) {
  rig r;
  begin(&r, "demand");
  rig_launch(&r, (rig_kernel){.blocks = 8, .warps = 1, .warp = loads});
  rig_sync(&r);
  mark(&r, true);
  rig_launch(&r, (rig_kernel){.blocks = 24, .warps = 1, .warp = loads, .name = "more"}); /* 16 blocks have new pages */
  rig_sync(&r);
  mark(&r, false);
  rig_launch(&r, (rig_kernel){.blocks = 64, .warps = 1, .warp = loads, .name = "most"});
  sim_result *result = (sim_result *)(uintptr_t)rig_finish(&r);
  assert_int_equal(result->counters.faults, 64);
  assert_int_equal(result->counters.accesses, 96);
  assert_int_equal(result->counters.pages_moved_in, 64);
  assert_int_equal(kernel_of(result, "more")->counters.faults, 64);
  assert_int_equal(kernel_of(result, "kernel")->counters.faults, 0);
  assert_int_equal(kernel_of(result, "most")->counters.faults, 0);
  assert_int_equal(result->allocations[result->allocation_count - 1].counters.faults, 64);
  assert_int_equal(result->allocations[result->allocation_count - 1].counters.footprint_bytes, 1 << 20);
  result->history = sim_history_take(r.sim);
  sim_lines_take(r.sim, result);
  uint64_t faults = 0, accesses = 0;
  for (uint32_t i = 0; i < result->history->bins; i++) faults += result->history->series[HISTORY_faults][i];
  for (uint32_t i = 0; i < result->line_count; i++) accesses += result->lines[i].counters.accesses;
  assert_int_equal(faults, 64);
  assert_int_equal(accesses, 96);
  assert_int_equal(result->history->kernels.count, 1);
  sim_result_drop_idle(result);
  assert_int_equal(result->kernel_count, 1);
  assert_string_equal(result->kernels[0].name, "more");
  assert_int_equal(result->history->kernels.items[0].kernel, 0);
  for (uint32_t i = 0; i < result->line_count; i++) assert_int_equal(result->lines[i].kernel, 0);
  rig_close(&r);
}

/* Pages that come in a range: for the first time, or again because they had to leave. */
static void test_what_came_back_is_of_the_ranges(void **state) {
  rig r;
  rig_open(&r, "demand");
  r.profile = true;
  r.gpu_memory = 64 * 4096;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 32, .warps = 1, .warp = loads}); /* 128 pages, twice what there is room for */
  mark(&r, true);
  rig_launch(&r, (rig_kernel){.blocks = 48, .warps = 1, .warp = loads}); /* and 64 new ones */
  mark(&r, false);
  rig_launch(&r, (rig_kernel){.blocks = 64, .warps = 1, .warp = loads});
  mark(&r, true);
  mark(&r, false);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->came_first, 256 * 4096);
  assert_int_equal(result->came_back, (result->counters.pages_moved_in - 64) * 4096);
  assert_true(result->came_back >= 64 * 4096); /* more than 64 of the 128 cannot have stayed */
  rig_close(&r);
}

/* All pages came before the range, and again and again in it. */
static void test_thrashing_of_pages_that_came_before(void **state) {
  rig r;
  rig_open(&r, "demand");
  r.profile = true;
  r.gpu_memory = 128 * 4096;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 128, .warps = 1, .warp = loads}); /* 512 pages */
  mark(&r, true);
  for (int i = 0; i < 3; i++) rig_launch(&r, (rig_kernel){.blocks = 128, .warps = 1, .warp = loads});
  mark(&r, false);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->came_first, 512 * 4096);
  assert_int_equal(result->came_back, result->counters.pages_moved_in * 4096);
  assert_true(sim_thrashes(result) > 2);
  rig_close(&r);
}

/* The most that was there in a range, from what there is when it begins. */
static void test_peaks_are_of_the_ranges(void **state) {
  rig r;
  begin(&r, "copy");
  rig_alloc(&r, RIG_BASE + (4 << 20), 8 << 20, TRACE_MEMORY_DEVICE);
  rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE + (4 << 20), .id = 2}});
  mark(&r, true);
  rig_alloc(&r, RIG_BASE + (4 << 20), 2 << 20, TRACE_MEMORY_DEVICE);
  mark(&r, false);
  rig_alloc(&r, RIG_BASE + (16 << 20), 16 << 20, TRACE_MEMORY_DEVICE);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.footprint_bytes, 3 << 20);
  assert_int_equal(result->counters.resident_peak_bytes, 3 << 20);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_add_up),
      cmocka_unit_test(test_a_mark_waits_for_what_is_before_it),
      cmocka_unit_test(test_without_a_stop_it_ends_with_the_program),
      cmocka_unit_test(test_without_a_start_there_is_nothing),
      cmocka_unit_test(test_every_table_has_the_same),
      cmocka_unit_test(test_what_came_back_is_of_the_ranges),
      cmocka_unit_test(test_thrashing_of_pages_that_came_before),
      cmocka_unit_test(test_peaks_are_of_the_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
