/* SPDX-License-Identifier: Apache-2.0 */
/* When a manager is said to thrash: both sides of each edge, and in a simulation that sweeps over more than its
 * memory. And that a thrashing program comes to its end. */
#include <unistd.h>

#include "rig.h"

static void test_edges(void **state) {
  const uint64_t mib = 1 << 20;
  static const struct {
    uint64_t back, first;
    int times;
  } cases[] = {{4, 2, 3}, {3, 2, 0}, {4, 3, 0}, {14, 2, 8}, {0, 5, 0}, {5, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(
        (int)sim_thrashes(&(sim_result){.came_back = cases[i].back * mib, .came_first = cases[i].first * mib}),
        cases[i].times);
  assert_int_equal((int)sim_thrashes(&(sim_result){.came_back = mib, .came_first = 4096}), 257);
  assert_int_equal((int)sim_thrashes(&(sim_result){.came_back = mib - 4096, .came_first = 4096}), 0);
}

static void sweep(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t page = 0; page < 64; page++) rig_load_wait(w, RIG_BASE + page * 4096);
}

/* A kernel after another reads 64 pages; with 32 pages of memory each comes for each. */
static void test_sweeps(void **state) {
  for (uint64_t pages = 32; pages <= 64; pages += 32) {
    rig r;
    rig_open(&r, "replay");
    r.gpu_memory = pages * 4096;
    r.prefetch = "none";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 64 * 4096, TRACE_MEMORY_MANAGED);
    for (int i = 0; i < 6; i++) rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = sweep});
    const sim_result *result = rig_finish(&r);
    assert_int_equal(result->came_first, 64 * 4096);
    assert_int_equal(result->came_back, pages == 32 ? 5 * 64 * 4096 : 0);
    assert_int_equal((int)sim_thrashes(result), pages == 32 ? 6 : 0);
    rig_close(&r);
  }
}

static void fill(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t page = 0; page < 64; page++) rig_store(w, RIG_BASE + page * 4096);
}

/* What was first filled with zeros has come once, too: it comes back in the second sweep and in the third. */
static void test_zeros(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.gpu_memory = 32 * 4096;
  r.prefetch = "none";
  r.spec.first_touch_moves = 0;
  rig_start(&r);
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH}); /* of nothing: the host's touches are recorded */
  rig_alloc(&r, RIG_BASE, 64 * 4096, TRACE_MEMORY_MANAGED);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = fill});
  for (int i = 0; i < 8; i++) rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = sweep});
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.zero_filled_bytes, 64 * 4096);
  assert_int_equal(result->came_first, 64 * 4096);
  assert_int_equal(result->came_back, 8 * 64 * 4096);
  assert_int_equal((int)sim_thrashes(result), 9);
  rig_close(&r);
}

static void last_of_group(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  rig_load_wait(w, RIG_BASE + warp * FF_GROUP_BYTES + FF_GROUP_BYTES - FF_PAGE_BYTES);
}

/* Far-faults in each group of a block, so that the prefetcher adds all of it, to a memory of an eighth: what it adds
 * must not leave a far-fault without room again and again. With room for all of it nothing comes twice. */
static void test_faults_come_before_what_is_added(void **state) {
  static const char *const managers[] = {"hmm", "replay"};
  for (size_t m = 0; m < 2; m++)
    for (uint64_t pages = 64; pages <= 512; pages *= 8) {
      rig r;
      rig_open(&r, managers[m]);
      r.gpu_memory = pages * FF_PAGE_BYTES;
      r.faults = "batch";
      r.prefetch = "density";
      r.evict = "lrm:4K";
      rig_start(&r);
      rig_alloc(&r, RIG_BASE, FF_BLOCK_BYTES, TRACE_MEMORY_MANAGED);
      rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 32, .warp = last_of_group});
      alarm(60); /* on the way to a simulation that does not end */
      const sim_result *result = rig_finish(&r);
      alarm(0);
      assert_string_equal(result->error, "");
      assert_int_equal(result->counters.faults, 32);
      if (pages == 512) assert_int_equal(result->came_back, 0);
      rig_close(&r);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_sweeps),
                                     cmocka_unit_test(test_zeros),
                                     cmocka_unit_test(test_faults_come_before_what_is_added)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
