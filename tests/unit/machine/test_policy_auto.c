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

/* What the evictor proposes to write back ahead: the group's number; -1: nothing. It is carried out. */
static int clean(mini *m) {
  m->proposals.count = 0;
  m->evict.policy->clean(m->evict.state, &m->view);
  if (!m->proposals.count) return -1;
  uint64_t first, end;
  mini_range_pages(m, m->proposals.items[0].address, m->proposals.items[0].bytes, &first, &end);
  assert_true(m->proposals.count == 1 && end - first == 16);
  for (uint64_t page = first; page < end; page++) m->pages[page].dirty = false;
  return (int)first / 16;
}

/* Dirty groups are written back ahead once they rest; a group that is soon dirty again makes the allocation's others rest longer. */
static void test_cleaning(void **state) {
  const uint64_t us = 1000000;
  mini m;
  open_auto(&m, 1, MINI_ALL);
  mini_allocate(&m, MINI_BASE, 1 << 20);
  for (uint64_t page = 0; page < 64; page += 16) mini_touch(&m, page);
  assert_int_equal(clean(&m), -1); /* nothing is dirty */
  m.pages[5].dirty = m.pages[40].dirty = true;
  assert_int_equal(clean(&m), -1); /* just now */
  m.view.now += 30 * us;
  mini_use(&m, 40);
  assert_int_equal(clean(&m), 0);  /* the other one was used */
  assert_int_equal(clean(&m), -1);
  m.view.now += 10 * us;
  mini_use(&m, 5);
  m.pages[5].dirty = true;         /* that was too early */
  assert_int_equal(clean(&m), -1);
  m.view.now += 25 * us;
  assert_int_equal(clean(&m), -1); /* one has rested for 35 us, the other for 25: enough before, but not now */
  m.view.now += 10 * us;
  assert_int_equal(clean(&m), 2);
  m.view.now += 10 * us;
  assert_int_equal(clean(&m), 0);
  assert_int_equal(clean(&m), -1);
  mini_close(&m);
}

/* Sweeps over four times what fits. Streams bring groups beside a fault, unless those that they brought were evicted unused: then
 * only if the link has idled since the last fault. */
static void test_wasteful_streams(void **state) {
  for (int apart = 1; apart <= 4; apart += 3) { /* every group is used; one in four */
    mini m;
    open_auto(&m, 8, 1024);
    mini_allocate(&m, MINI_BASE, 16 << 20);
    uint64_t alone[2] = {0}, streams[2] = {0}; /* faults that bring no more than their group, and those that do; by whether the link idled before */
    bool idled = false;
    for (uint64_t group = 0; group < 6 * 256; group += (uint64_t)apart)
      for (uint64_t page = group % 256 * 16, i = 0; i < 16; i++) {
        if (group / 16 % 2) {
          m.prefetch.policy->idle(m.prefetch.state, &m.view);
          idled = true;
        }
        if (!mini_touch(&m, page + i)) continue;
        if (group >= 3 * 256) (m.moved > 64 * KB ? streams : alone)[idled]++;
        idled = false;
      }
    assert_true(streams[1] > 0);
    if (apart == 1) assert_true(streams[0] > 0);
    else assert_true(streams[0] == 0 && alone[0] > 0);
    mini_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_state), cmocka_unit_test(test_streams), cmocka_unit_test(test_idle_fills), cmocka_unit_test(test_cyclic_sweeps),
      cmocka_unit_test(test_what_fits_is_not_evicted), cmocka_unit_test(test_chain), cmocka_unit_test(test_sparse), cmocka_unit_test(test_odd_allocations), cmocka_unit_test(test_cleaning), cmocka_unit_test(test_wasteful_streams)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
