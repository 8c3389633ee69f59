/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's density prefetcher: KiB migrated fault by fault in one block of 2 MiB, for the orders and thresholds
 * whose results are known; and where a part of a block begins and ends elsewhere. Also sl, which is its 64 KiB without
 * a tree. */
#include "policy_view.h"

enum { PAGES = FF_BLOCK_PAGES };

/* Touches the pages in this order, one fault at a time. Returns the KiB of each fault as text. */
static const char *migrated(const char *policy, const uint32_t *order, uint32_t count, uint64_t *faults) {
  static char text[8192];
  mini m;
  text[0] = '\0';
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, policy);
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  for (uint32_t i = 0; i < count; i++)
    if (mini_touch(&m, order[i]))
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", *text ? " " : "", (int)(m.moved / KB));
  if (faults) *faults = m.faults;
  mini_close(&m);
  return text;
}

static void ascending(uint32_t *order) {
  for (uint32_t i = 0; i < PAGES; i++) order[i] = i;
}
static void descending(uint32_t *order) {
  for (uint32_t i = 0; i < PAGES; i++) order[i] = PAGES - 1 - i;
}

static void test_sequential(void **state) {
  static const char *const policies[] = {"density", "density:51", "density:50"};
  uint32_t order[PAGES];
  for (int p = 0; p < 3; p++) {
    ascending(order);
    assert_string_equal(migrated(policies[p], order, PAGES, NULL), "64 64 128 256 512 1024");
    descending(order);
    assert_string_equal(migrated(policies[p], order, PAGES, NULL), "64 64 128 256 512 1024");
    for (uint32_t i = 0; i < 32; i++) order[i] = i * 16 + i % 16; /* one in each group */
    assert_string_equal(migrated(policies[p], order, 32, NULL), "64 64 128 256 512 1024");
  }
}

static void test_thresholds(void **state) {
  uint32_t order[PAGES];
  uint64_t faults;
  ascending(order);
  assert_string_equal(migrated("density:25", order, PAGES, NULL), "128 384 1536");
  assert_string_equal(migrated("density:1", order, PAGES, NULL), "2048");
  assert_string_equal(migrated("density:0", order, PAGES, NULL), "2048");
  migrated("density:75", order, PAGES, &faults);
  assert_int_equal(faults, 20);
  const char *four = migrated("density:100", order, PAGES, &faults); /* 512 times 4: never more than was asked for */
  assert_int_equal(faults, PAGES);
  assert_int_equal(strspn(four, "4 "), strlen(four));
  assert_int_equal(strlen(four), 2 * PAGES - 1);
}

static void test_even_groups_then_odd(void **state) {
  uint32_t order[32];
  for (uint32_t i = 0; i < 16; i++) {
    order[i] = i * 2 * 16;
    order[16 + i] = (i * 2 + 1) * 16;
  }
  assert_string_equal(migrated("density", order, 32, NULL), "64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 1024");
}

static void test_three_adjacent_groups_in_a_batch(void **state) {
  for (int order = 0; order < 2; order++) {
    mini m;
    mini_open(&m, 1, MINI_ALL);
    mini_prefetcher(&m, "density");
    mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
    uint64_t up[] = {mini_address(3), mini_address(20), mini_address(47)}, down[] = {up[2], up[1], up[0]};
    mini_fault(&m, order ? down : up, 3);
    assert_int_equal(m.moved, 256 * KB);
    assert_int_equal(m.valid, 64);
    mini_close(&m);
  }
}

/* Group 4 is there, groups 0, 1 and 2 fault together: their node of four has 48 of 64, the one of eight 64 of 128,
 * which is not more than half. A tree that already had group 3 at the second fault would see 80 of 128. */
static void test_the_tree_is_not_updated_within_a_batch(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "density");
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  mini_touch(&m, 64);
  mini_fault(&m, (uint64_t[]){mini_address(0), mini_address(16), mini_address(32)}, 3);
  assert_int_equal(m.moved, 256 * KB);
  mini_fault(&m, (uint64_t[]){mini_address(80)}, 1); /* the next call sees it: 96 of 128 */
  assert_int_equal(m.moved, 192 * KB);
  assert_int_equal(m.valid, 128);
  mini_close(&m);
}

static void test_random_order(void **state) {
  mini source; /* of random numbers */
  mini_open(&source, 1, MINI_ALL);
  uint64_t total = 0, least = PAGES, most = 0;
  for (int trial = 0; trial < 200; trial++) {
    uint32_t order[PAGES];
    uint64_t faults;
    ascending(order);
    for (uint32_t i = PAGES - 1; i > 0; i--) {
      uint32_t j = (uint32_t)(mini_random(&source.view) % (i + 1)), swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
    migrated("density", order, PAGES, &faults);
    total += faults;
    least = faults < least ? faults : least;
    most = faults > most ? faults : most;
  }
  double mean = (double)total / 200.0;
  if (mean < 13.5 || mean > 14.1)
    fail_msg("mean of %.2f faults (%d to %d), expected 13.8 (9 to 17)", mean, (int)least, (int)most);
  assert_in_range(least, 8, 11);
  assert_in_range(most, 16, 18);
  mini_close(&source);
}

/* ---- parts of blocks ---- */

/* An allocation of 2 MiB + 200 KiB: the tail has 50 pages; its groups are 16, 16, 16 and 2, its upper nodes 32 and 18,
 * and 50. */
static void test_node_sizes_end_with_the_allocation(void **state) {
  mini m;
  mini_open(&m, 2, MINI_ALL);
  mini_prefetcher(&m, "density");
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES + 200 * KB);
  assert_true(mini_touch(&m, 512 + 49)); /* the last group: 2 of 2 pages; 2 of 18 above */
  assert_int_equal(m.moved, 8 * KB);
  assert_true(mini_touch(&m, 512 + 33)); /* 16 of 16, 18 of 18; 18 of 50 above */
  assert_int_equal(m.moved, 64 * KB);
  assert_true(mini_touch(&m, 512 + 0)); /* 16 of 32; 34 of 50 is 68 %: all of it */
  assert_int_equal(m.moved, 128 * KB);
  assert_int_equal(m.valid, 50);
  mini_close(&m);
  mini_open(&m, 2, MINI_ALL); /* a tail of 40 pages: 16, 16 and 8 */
  mini_prefetcher(&m, "density");
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES + 160 * KB);
  assert_true(mini_touch(&m, 512));
  assert_int_equal(m.moved, 64 * KB);
  assert_true(mini_touch(&m, 512 + 39)); /* 24 of 40 is 60 %; of a whole node of 64 it would be 38 % */
  assert_int_equal(m.moved, 96 * KB);
  mini_close(&m);
}

/* Two allocations in one block, neither aligned to anything: each has a tree of its own, and nothing of the other
 * comes. */
static void test_allocations_that_share_a_block(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "density");
  mini_allocate(&m, MINI_BASE + 24 * KB + 256, 100 * KB); /* pages 6 to 31: 124.25 KiB from the base */
  mini_allocate(&m, MINI_BASE + 128 * KB, 64 * KB);       /* pages 32 to 47 */
  mini_fault(&m, (uint64_t[]){MINI_BASE + 24 * KB + 256}, 1);
  assert_int_equal(m.moved, 40 * KB); /* pages 6 to 15: all that the group has of it; 10 of 32 in the node above */
  for (uint32_t i = 6; i < 16; i++) assert_true(m.pages[i].valid);
  assert_true(mini_touch(&m, 20)); /* 26 pages of the tree's 32, begun at the group's first */
  assert_int_equal(m.moved, 64 * KB);
  assert_int_equal(m.valid, 26);
  /* One batch with a fault in each: each piece is served by itself. */
  mini n;
  mini_open(&n, 1, MINI_ALL);
  mini_prefetcher(&n, "density");
  mini_allocate(&n, MINI_BASE + 24 * KB + 256, 100 * KB);
  mini_allocate(&n, MINI_BASE + 128 * KB, 64 * KB);
  mini_fault(&n, (uint64_t[]){mini_address(8), mini_address(40)}, 2);
  assert_int_equal(n.valid, 10 + 16);
  mini_close(&n);
  mini_close(&m);
}

static void test_fault_in_no_allocation(void **state) {
  static const char *const policies[] = {"density", "sl", "tbn", "locality", "random"};
  for (int p = 0; p < 5; p++) {
    mini m;
    mini_open(&m, 1, MINI_ALL);
    mini_prefetcher(&m, policies[p]);
    mini_allocate(&m, MINI_BASE, 4096);
    const ff_fault nowhere[] = {{.address = MINI_BASE + 8192}, {.address = 0}, {.address = UINT64_MAX}};
    m.prefetch.policy->faulted(m.prefetch.state, &m.view, nowhere, 3);
    assert_int_equal(m.proposals.count, 0);
    mini_close(&m);
  }
}

static void test_units_larger_than_a_page(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "density");
  m.view.unit_bytes = FF_GROUP_BYTES; /* the fault moves its group by itself: nothing is left to propose */
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  const ff_fault fault = {.address = mini_address(5)};
  m.prefetch.policy->faulted(m.prefetch.state, &m.view, &fault, 1);
  assert_int_equal(m.proposals.count, 0);
  mini_close(&m);
}

/* ---- faults of the CPU ---- */

/* The CPU touches the pages in this order, all of which the GPU has. Returns the KiB of each fault as text. */
static const char *taken_back(const char *policy, const uint32_t *order, uint32_t count) {
  static char text[8192];
  mini m;
  ff_pages there = {0};
  text[0] = '\0';
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, policy);
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  for (uint32_t i = 0; i < PAGES; i++) mini_arrive(&m, i); /* what the GPU has does not matter */
  for (uint32_t i = 0; i < count; i++) {
    if (there.word[order[i] / 64] >> order[i] % 64 & 1) continue;
    m.proposals.count = 0;
    m.prefetch.policy->host_faulted(m.prefetch.state, &m.view, mini_address(order[i]), &there);
    uint64_t bytes = FF_PAGE_BYTES, first, end;
    there.word[order[i] / 64] |= UINT64_C(1) << order[i] % 64;
    for (size_t p = 0; p < m.proposals.count; p++) {
      mini_range_pages(&m, m.proposals.items[p].address, m.proposals.items[p].bytes, &first, &end);
      for (uint64_t page = first; page < end; page++) {
        assert_false(there.word[page / 64] >> page % 64 & 1); /* nothing that the host has, nor the fault's own */
        there.word[page / 64] |= UINT64_C(1) << page % 64;
        bytes += FF_PAGE_BYTES;
      }
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", *text ? " " : "", (int)(bytes / KB));
  }
  mini_close(&m);
  return text;
}

/* As those of the GPU: 6 for a block in order. */
static void test_host_faults(void **state) {
  uint32_t order[PAGES];
  ascending(order);
  assert_string_equal(taken_back("density", order, PAGES), "64 64 128 256 512 1024");
  assert_string_equal(taken_back("density:25", order, PAGES), "128 384 1536");
  assert_int_equal(strlen(taken_back("density:100", order, PAGES)), 2 * PAGES - 1);
  descending(order);
  assert_string_equal(taken_back("density", order, PAGES), "64 64 128 256 512 1024");
}

/* ---- sl ---- */

static void test_sl(void **state) {
  uint32_t order[PAGES];
  uint64_t faults;
  descending(order);
  const char *text = migrated("sl", order, PAGES, &faults);
  assert_int_equal(faults, 32);
  assert_int_equal(strlen(text), 32 * 3 - 1); /* "64 64 ...": 32 times 64 KiB */
  assert_string_equal(text + strlen(text) - 5, "64 64");
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "sl");
  mini_allocate(&m, MINI_BASE + 8 * KB, 4 * KB);   /* page 2 */
  mini_allocate(&m, MINI_BASE + 12 * KB, 10 * KB); /* pages 3 to 5, the last in part */
  mini_allocate(&m, MINI_BASE + 24 * KB, 80 * KB); /* pages 6 to 25 */
  assert_true(mini_touch(&m, 4));
  assert_int_equal(m.moved, 12 * KB);
  assert_true(mini_touch(&m, 2));
  assert_int_equal(m.moved, 4 * KB);
  assert_true(mini_touch(&m, 10));
  assert_int_equal(m.moved, 40 * KB);                                  /* 6 to 15 */
  mini_fault(&m, (uint64_t[]){mini_address(25), mini_address(17)}, 2); /* a batch in one group: the group comes once */
  assert_int_equal(m.moved, 40 * KB);
  uint64_t bytes = 0;
  for (size_t i = 0; i < m.proposals.count; i++) bytes += m.proposals.items[i].bytes;
  assert_int_equal(bytes, 32 * KB);
  mini_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequential),
      cmocka_unit_test(test_thresholds),
      cmocka_unit_test(test_even_groups_then_odd),
      cmocka_unit_test(test_three_adjacent_groups_in_a_batch),
      cmocka_unit_test(test_the_tree_is_not_updated_within_a_batch),
      cmocka_unit_test(test_random_order),
      cmocka_unit_test(test_node_sizes_end_with_the_allocation),
      cmocka_unit_test(test_allocations_that_share_a_block),
      cmocka_unit_test(test_fault_in_no_allocation),
      cmocka_unit_test(test_units_larger_than_a_page),
      cmocka_unit_test(test_host_faults),
      cmocka_unit_test(test_sl),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
