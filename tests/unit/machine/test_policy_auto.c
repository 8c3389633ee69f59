/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetcher and the evictor `auto`: what they bring and let go for each kind of access, against lru where it matters. */
#include "policy_view.h"

#include "policy/auto_state.h"

static void open_auto(mini *m, uint64_t blocks, uint64_t capacity_pages) {
  mini_open(m, blocks, capacity_pages);
  mini_prefetcher(m, "auto");
  mini_evictor(m, "auto");
  policy_share(&m->prefetch, &m->evict);
}

static void test_one_state(void **state) {
  mini m;
  open_auto(&m, 1, MINI_ALL);
  assert_ptr_equal(m.prefetch.state, m.evict.state);
  mini_allocate(&m, MINI_BASE, 256 * KB);
  mini_touch(&m, 0);
  assert_int_equal(((auto_state *)m.evict.state)->clock, 64 * KB); /* told once */
  mini_close(&m);
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "auto");
  mini_evictor(&m, "lru");
  policy_share(&m.prefetch, &m.evict);
  assert_ptr_not_equal(m.prefetch.state, m.evict.state);
  mini_close(&m);
}

/* Each fault right behind what has come doubles the depth; at most four groups come beside the fault itself. */
static void test_streams(void **state) {
  mini m;
  open_auto(&m, 2, MINI_ALL);
  mini_allocate(&m, MINI_BASE, 4 << 20);
  uint64_t moved[5];
  for (uint32_t page = 0, i = 0; i < 5; page++)
    if (mini_touch(&m, page)) moved[i++] = m.moved;
  uint64_t expected[5] = {64 * KB, 5 * 64 * KB, 5 * 64 * KB, 5 * 64 * KB, 5 * 64 * KB};
  for (int i = 0; i < 5; i++) assert_int_equal(moved[i], expected[i]);
  mini_close(&m);
}

/* An idle link fills memory with what is left of the allocation: every group once, and nothing of others. */
static void test_idle_fills(void **state) {
  mini m;
  open_auto(&m, 2, MINI_ALL);
  mini_allocate(&m, MINI_BASE, 1 << 20);
  mini_allocate(&m, mini_address(600), 1 << 20);
  mini_touch(&m, 100);
  uint64_t groups = 0;
  for (;; groups++) {
    m.proposals.count = 0;
    m.prefetch.policy->idle(m.prefetch.state, &m.view);
    if (!m.proposals.count) break;
    assert_int_equal(mini_bring(&m, false), 64 * KB);
  }
  assert_int_equal(groups, 15);
  assert_int_equal(m.valid, 256);
  mini_close(&m);
}

/* Sweeps over more than fits: pages that come, in sweeps after the first. */
static uint64_t sweep(const char *prefetch, const char *evict, uint64_t pages, uint64_t capacity, int times) {
  mini m;
  mini_open(&m, 8, capacity);
  mini_prefetcher(&m, prefetch);
  mini_evictor(&m, evict);
  policy_share(&m.prefetch, &m.evict);
  mini_allocate(&m, MINI_BASE, pages * FF_PAGE_BYTES);
  uint64_t came = 0;
  for (int t = 0; t < times; t++)
    for (uint64_t page = 0; page < pages; page++)
      if (mini_touch(&m, page) && t) came += m.moved / FF_PAGE_BYTES;
  mini_close(&m);
  return came;
}

static void test_cyclic_sweeps(void **state) {
  uint64_t lru = sweep("sl", "lru:64K", 4096, 3072, 6), own = sweep("auto", "auto", 4096, 3072, 6);
  assert_int_equal(lru, 5 * 4096); /* everything, each time */
  assert_true(own < lru * 2 / 3);
  assert_true(own >= 5 * 1024);    /* a quarter does not fit */
}

/* What fits stays. */
static void test_what_fits_is_not_evicted(void **state) { assert_int_equal(sweep("auto", "auto", 4096, 4096, 3), 0); }

/* A chain: each array is written, read once more, and never again. The youngest is the wrong one; auto finds out. */
static void test_chain(void **state) {
  uint64_t came[2];
  for (int own = 0; own < 2; own++) {
    mini m;
    mini_open(&m, 64, 5 * 512);
    mini_prefetcher(&m, own ? "auto" : "sl");
    mini_evictor(&m, own ? "auto" : "lru:64K");
    policy_share(&m.prefetch, &m.evict);
    mini_allocate(&m, MINI_BASE, 64 << 21);
    for (uint64_t stage = 0; stage + 1 < 32; stage++)
      for (uint64_t page = 0; page < 1024; page++) {
        mini_touch(&m, stage * 1024 + page);
        mini_touch(&m, (stage + 1) * 1024 + page);
      }
    came[own] = m.evicted;
    mini_close(&m);
  }
  assert_true(came[1] < came[0] * 5 / 4);
}

/* Single pages here and there in far more than fits: groups are given up. */
static void test_sparse(void **state) {
  mini m;
  open_auto(&m, 32, 1024);
  mini_allocate(&m, MINI_BASE, 32 << 21);
  uint64_t random = 1, late = 0, faults = 0;
  for (int i = 0; i < 6000; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    bool fault = mini_touch(&m, random >> 33 & 16383);
    for (uint64_t page = 0; page < m.count; page++)
      if (!m.pages[page].valid) m.pages[page].used = 0; /* as the pager has it */
    if (!fault || i < 3000) continue;
    late += m.moved;
    faults++;
  }
  assert_true(faults > 1000 && late / faults < 2 * FF_PAGE_BYTES);
  mini_close(&m);
}

/* Allocations that share groups, end within pages, come and go: everything that is asked for is found. */
static void test_odd_allocations(void **state) {
  mini m;
  open_auto(&m, 4, 300);
  for (uint64_t i = 0; i < 40; i++) mini_allocate(&m, mini_address(i * 50) + i * 8 % 4096, 4096 * (1 + i % 13) + i);
  uint64_t random = 7;
  for (int i = 0; i < 5000; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t page = random >> 33 & 2047;
    if (m.pages[page].mapped) mini_touch(&m, page);
    assert_true(m.valid <= 300);
  }
  mini_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_state), cmocka_unit_test(test_streams), cmocka_unit_test(test_idle_fills), cmocka_unit_test(test_cyclic_sweeps),
      cmocka_unit_test(test_what_fits_is_not_evicted), cmocka_unit_test(test_chain), cmocka_unit_test(test_sparse), cmocka_unit_test(test_odd_allocations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
