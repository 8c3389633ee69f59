/* SPDX-License-Identifier: Apache-2.0 */
/* Ganguly's trees: TBNp (prefetch) against the traces seen on a GTX 1080 Ti, TBNe (eviction) against tables that follow
 * from its rule, worked out by hand below. */
#include "policy_view.h"

/* Touches the first page of each group. What was proposed is in m->log, what came in m->moved and m->valid. */
static void touch_groups(mini *m, const uint32_t *groups, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) assert_true(mini_touch(m, groups[i] * 16));
}

static void open_tbn(mini *m, uint64_t bytes) {
  mini_open(m, 4, MINI_ALL);
  mini_prefetcher(m, "tbn");
  mini_allocate(m, MINI_BASE, bytes);
}

/* ---- TBNp: the traces ---- */

static void test_tbnp_doubling(void **state) {
  mini m;
  open_tbn(&m, FF_BLOCK_BYTES);
  touch_groups(&m, (uint32_t[]){0, 1, 2, 4, 8, 16}, 6);
  assert_string_equal(m.log, "4+60, 4+60, 4+124, 4+252, 4+508, 4+1020");
  assert_int_equal(m.moved, 1024 * KB);
  assert_int_equal(m.valid, FF_BLOCK_PAGES);
  mini_close(&m);
}

static void test_tbnp_one_three_zero(void **state) {
  mini m;
  open_tbn(&m, FF_BLOCK_BYTES);
  touch_groups(&m, (uint32_t[]){1, 3, 0, 4, 8, 16}, 6);
  assert_string_equal(m.log, "4+60, 4+60, 4+60 64@2, 4+252, 4+508, 4+1020");
  assert_int_equal(m.valid, FF_BLOCK_PAGES);
  mini_close(&m);
}

static void test_tbnp_odd_ones_first(void **state) {
  mini m;
  open_tbn(&m, FF_BLOCK_BYTES);
  touch_groups(&m, (uint32_t[]){1, 3, 5, 7, 0, 8, 16}, 7);
  assert_string_equal(m.log, "4+60, 4+60, 4+60, 4+60, 4+60 64@2 64@4 64@6, 4+508, 4+1020");
  assert_int_equal(m.valid, FF_BLOCK_PAGES);
  mini_close(&m);
}

/* 2 MiB + 192 KiB: the tail is a tree of 256 KiB. The policy asks for its padding; what exists is 192 KiB. */
static void test_tbnp_tail(void **state) {
  mini m;
  open_tbn(&m, FF_BLOCK_BYTES + 192 * KB);
  touch_groups(&m, (uint32_t[]){32, 33, 34}, 3);
  assert_string_equal(m.log, "4+60, 4+60, 4+124");
  assert_int_equal(m.valid, 48);
  mini_close(&m);
}

/* ---- TBNp: other shapes ---- */

/* A tail of 7 groups has 8 leaves. 4, 5 and 6 fill their node of four, padding included, so that with 0 five of eight
 * are valid and the rest comes. Without the padding there would be four of eight. */
static void test_tbnp_padding_counts_once_it_would_have_come(void **state) {
  mini m;
  open_tbn(&m, 7 * FF_GROUP_BYTES);
  touch_groups(&m, (uint32_t[]){4, 5, 6, 0}, 4);
  assert_string_equal(m.log, "4+60, 4+60, 4+124, 4+252");
  assert_int_equal(m.valid, 7 * 16);
  mini_close(&m);
}

/* Exactly half is not more than half; a page more is. */
static void test_tbnp_half_is_strict(void **state) {
  mini m;
  open_tbn(&m, 4 * FF_GROUP_BYTES);
  touch_groups(&m, (uint32_t[]){0, 2}, 2); /* two of four, one of two each */
  assert_int_equal(m.valid, 32);
  mini_arrive(&m, 16);             /* one page of group 1: 17 of 32 */
  assert_true(mini_touch(&m, 48)); /* group 3 makes three of four and fills all */
  assert_int_equal(m.valid, 64);
  mini_close(&m);
  open_tbn(&m, 4 * FF_GROUP_BYTES);
  mini_arrive(&m, 16);
  touch_groups(&m, (uint32_t[]){0}, 1); /* 17 of 32: group 1 comes, but for its page; 32 of 64 above */
  assert_string_equal(m.log, "4+60 60@1");
  assert_int_equal(m.valid, 32);
  mini_close(&m);
}

/* Five leaves that are no more than half of anything; then one that fills node after node. The root would make it 27
 * leaves: it waits. The next fault finds it more than half full. */
static void test_tbnp_at_most_a_mebibyte(void **state) {
  mini m;
  open_tbn(&m, FF_BLOCK_BYTES);
  touch_groups(&m, (uint32_t[]){0, 2, 4, 8, 16}, 5);
  assert_int_equal(m.valid, 5 * 16);
  touch_groups(&m, (uint32_t[]){1}, 1);
  assert_int_equal(m.valid, 17 * 16);
  touch_groups(&m, (uint32_t[]){31}, 1);
  assert_int_equal(m.valid, FF_BLOCK_PAGES);
  mini_close(&m);
}

/* At most 1020 KiB along with a fault, in any order of touches; the block is complete in the end; never across
 * blocks. */
static void test_tbnp_limits_in_any_order(void **state) {
  for (int trial = 0; trial < 50; trial++) {
    mini m;
    open_tbn(&m, 2 * FF_BLOCK_BYTES);
    m.random += trial * 977;
    for (int i = 0; i < 400; i++) {
      uint64_t page = mini_random(&m.view) % (2 * FF_BLOCK_PAGES), other = page < FF_BLOCK_PAGES ? FF_BLOCK_PAGES : 0,
               before = 0, after = 0;
      for (uint32_t p = 0; p < FF_BLOCK_PAGES; p++) before += m.pages[other + p].valid;
      if (mini_touch(&m, page)) assert_in_range(m.moved, 64 * KB, 1024 * KB);
      for (uint32_t p = 0; p < FF_BLOCK_PAGES; p++) after += m.pages[other + p].valid;
      assert_int_equal(before, after);
    }
    assert_int_equal(m.valid, 2 * FF_BLOCK_PAGES);
    mini_close(&m);
  }
}

/* Several allocations in one block: each has its own tree, of its own size, and is not asked for by another's. */
static void test_tbnp_allocations_that_share_a_block(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "tbn");
  mini_allocate(&m, MINI_BASE, 96 * KB);             /* groups 0 and half of 1: a tree of two */
  mini_allocate(&m, MINI_BASE + 96 * KB, 32 * KB);   /* the other half of group 1 */
  mini_allocate(&m, MINI_BASE + 128 * KB, 128 * KB); /* groups 2 and 3 */
  assert_true(mini_touch(&m, 20)); /* group 1 with its padding is half of the tree; its pages are 16 to 23 */
  assert_int_equal(m.valid, 8);
  assert_true(mini_touch(&m, 0));
  assert_int_equal(m.valid, 24);
  assert_true(mini_touch(&m, 31)); /* pages 24 to 31 */
  assert_int_equal(m.valid, 32);
  for (uint32_t i = 32; i < 64; i++) assert_false(m.pages[i].valid);
  for (size_t i = 0; i < m.proposals.count; i++) assert_true(m.proposals.items[i].address >= MINI_BASE + 96 * KB);
  mini_close(&m);
}

/* Served together, faults bring what they would have brought one by one. */
static void test_tbnp_batch(void **state) {
  for (int trial = 0; trial < 200; trial++) {
    mini one, all;
    open_tbn(&one, FF_BLOCK_BYTES);
    open_tbn(&all, FF_BLOCK_BYTES);
    one.random += trial * 7919;
    uint64_t faults[12];
    for (int i = 0; i < 12; i++) faults[i] = mini_address((i * 37 + mini_random(&one.view) % 37) % FF_BLOCK_PAGES);
    for (int i = 0; i < 12; i++) mini_touch(&one, (faults[i] - MINI_BASE) / FF_PAGE_BYTES);
    mini_fault(&all, faults, 12);
    for (uint32_t p = 0; p < FF_BLOCK_PAGES; p++) assert_int_equal(one.pages[p].valid, all.pages[p].valid);
    mini_close(&one);
    mini_close(&all);
  }
}

/* ---- TBNe ---- */

/* Fills the allocation, uses its groups in this order, and evicts so often. m->log: what each eviction proposed, as
 * KiB@group for every range. */
static void evict_after(mini *m, uint64_t bytes, const uint32_t *uses, uint32_t count, uint32_t evictions) {
  mini_open(m, 4, MINI_ALL);
  mini_evictor(m, "tree");
  mini_allocate(m, MINI_BASE, bytes);
  for (uint64_t page = 0; page < (bytes + 4095) / 4096; page++) mini_arrive(m, page);
  for (uint32_t i = 0; i < count; i++) mini_use(m, uses[i] * 16 + 1);
  for (uint32_t i = 0; i < evictions; i++) {
    mini_ask_evictor(m, 1);
    for (size_t j = 0; j < m->proposals.count; j++) {
      mini_range r = m->proposals.items[j];
      mini_log(m, "%s%d@%d",
               j         ? " "
               : *m->log ? ", "
                         : "",
               (int)(r.bytes / KB), (int)((r.address - MINI_BASE) / FF_GROUP_BYTES));
    }
    mini_carry_out(m);
  }
}

static void all_groups(uint32_t *groups, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) groups[i] = i;
}

/* A whole block, used in order 0..31. Each line: valid leaves of the nodes above the victim, after it has gone.
 *     0 goes: {0,1} 1/2, not less than half; {0-3} 3/4 ...                         64
 *     1 goes: {0,1} 0/2 is empty, {0-3} 2/4 ...                                    64
 *     2 goes: {2,3} 1/2; {0-3} 1/4 < half: 3 goes; {0-7} 4/8                       128
 *     4 goes: {4,5} 1/2; {4-7} 3/4; {0-7} 3/8: 5, 6, 7 go; {0-15} 8/16             256
 *     8 goes: {8-15} 7/8; {0-15} 7/16: 9 to 15 go; {0-31} 16/32                    512
 *     16 goes: {16-31} 15/16; {0-31} 15/32: 17 to 31 go                            1024 */
static void test_tbne_in_order(void **state) {
  uint32_t groups[32];
  mini m;
  all_groups(groups, 32);
  evict_after(&m, FF_BLOCK_BYTES, groups, 32, 7);
  assert_string_equal(m.log, "64@0, 64@1, 64@2 64@3, 64@4 192@5, 64@8 448@9, 64@16 960@17");
  assert_int_equal(m.valid, 0); /* and the seventh found nothing */
  mini_close(&m);
}

/* A tree of eight leaves, used in the order 0 2 4 6 1 3 5 7.
 *     0: {0,1} 1/2, {0-3} 3/4, {0-7} 7/8                                           64
 *     2: {2,3} 1/2, {0-3} 2/4 = half, {0-7} 6/8                                    64
 *     4: {4,5} 1/2, {4-7} 3/4, {0-7} 5/8                                           64
 *     6: {4-7} 2/4, {0-7} 4/8 = half                                               64
 *     1: {0,1} 0; {0-3} 1/4 < half: 3 goes; {0-7} 2/8: 5 and 7 go too              256
 * The ranges of the last: 1; then the victims from low to high, which do not touch. */
static void test_tbne_even_ones_first(void **state) {
  mini m;
  evict_after(&m, 8 * FF_GROUP_BYTES, (uint32_t[]){0, 2, 4, 6, 1, 3, 5, 7}, 8, 6);
  assert_string_equal(m.log, "64@0, 64@2, 64@4, 64@6, 64@1 64@3 64@5 64@7");
  assert_int_equal(m.valid, 0);
  mini_close(&m);
}

/* A tail of 3 groups + 8 KiB (2 pages): leaves of 16, 16, 16 and 2 pages, nodes of 32, 18 and 50.
 *     used 1 0 3 2:  1 goes: {0,1} 16/32 = half; all 34/50                         64
 *     0 goes: {0,1} empty; {2,3} 18/18; all 18/50 < half: 2 and 3 go               64 + 72 */
static void test_tbne_tail(void **state) {
  mini m;
  evict_after(&m, 3 * FF_GROUP_BYTES + 8 * KB, (uint32_t[]){1, 0, 3, 2}, 4, 2);
  assert_string_equal(m.log, "64@1, 64@0 72@2");
  assert_int_equal(m.valid, 0);
  mini_close(&m);
}

/* Two blocks: the block whose latest use is older gives the victim, even if the other has the group used longest
 * ago. */
static void test_tbne_takes_the_oldest_block_first(void **state) {
  mini m;
  uint32_t uses[64];
  uses[0] = 32;                                           /* the second block's first group: used longest ago */
  for (uint32_t i = 0; i < 32; i++) uses[1 + i] = 31 - i; /* then the first block, downwards */
  for (uint32_t i = 33; i < 64; i++) uses[i] = i;         /* then the rest of the second */
  evict_after(&m, 2 * FF_BLOCK_BYTES, uses, 64, 7);
  assert_string_equal(m.log, "64@31, 64@30, 64@29 64@28, 64@27 192@24, 64@23 448@16, 64@15 960@0, 64@32");
  mini_close(&m);
}

/* More than one victim in a call: the same as call after call. What is on its way stays and counts as valid. */
static void test_tbne_many_bytes_and_pages_on_their_way(void **state) {
  uint32_t groups[32];
  mini m;
  all_groups(groups, 32);
  evict_after(&m, FF_BLOCK_BYTES, groups, 32, 0);
  mini_ask_evictor(&m, 16 + 16 + 32 + 1);
  assert_int_equal(mini_carry_out(&m), 16 + 16 + 32 + 64);
  mini_close(&m);
  evict_after(&m, 4 * FF_GROUP_BYTES, groups, 4, 0);
  m.pages[3 * 16 + 5].moving = true;
  mini_ask_evictor(&m, 64); /* all but that page */
  assert_int_equal(mini_carry_out(&m), 63);
  mini_ask_evictor(&m, 1);
  assert_int_equal(m.proposals.count, 0);
  mini_close(&m);
}

/* The two rules together, oversubscribed: they never propose what cannot go, and the program goes on. */
static void test_tbn_with_tree(void **state) {
  mini m;
  mini_open(&m, 4, 700);
  mini_prefetcher(&m, "tbn");
  mini_evictor(&m, "tree");
  mini_allocate(&m, MINI_BASE, 3 * FF_BLOCK_BYTES + 300 * KB);
  for (int round = 0; round < 4; round++)
    for (uint64_t page = 0; page < 3 * FF_BLOCK_PAGES + 75; page++) mini_touch(&m, page);
  assert_true(m.evicted > 3 * 1000);
  assert_in_range(m.faults, 40, 400);
  mini_close(&m);
}

/* ":fit": nothing more is brought once less than 1 MiB is free, even when more is free again. */
static void test_tbn_fit(void **state) {
  mini m;
  mini_open(&m, 4, FF_BLOCK_PAGES); /* 2 MiB */
  mini_prefetcher(&m, "tbn:fit");
  mini_evictor(&m, "lru");
  mini_allocate(&m, MINI_BASE, 4 * FF_BLOCK_BYTES);
  assert_true(mini_touch(&m, 0));
  assert_int_equal(m.moved, 64 * KB);
  for (uint64_t page = 1; page < 300; page++) mini_touch(&m, page);
  uint64_t faults = m.faults;
  for (uint64_t page = 2 * FF_BLOCK_PAGES; page < 2 * FF_BLOCK_PAGES + 16; page++) {
    assert_true(mini_touch(&m, page)); /* a fault for each page */
    assert_int_equal(m.moved, 4 * KB);
  }
  assert_int_equal(m.faults, faults + 16);
  for (uint64_t page = 0; page < 2 * FF_BLOCK_PAGES; page++)
    if (m.pages[page].valid) mini_leave(&m, page);
  assert_true(mini_touch(&m, 3 * FF_BLOCK_PAGES));
  assert_int_equal(m.moved, 4 * KB);
  mini_close(&m);
}

/* One page of the fault's block and allocation along with each fault, any of them, none twice. */
/* Two allocations of a window come with a far-fault of either; nothing of the next window. */
static void test_window(void **state) {
  mini m;
  mini_open(&m, 4, MINI_ALL);
  mini_prefetcher(&m, "window");
  m.view.unit_bytes = FF_BLOCK_BYTES;
  mini_allocate(&m, mini_address(10), 20 * 4096);
  mini_allocate(&m, mini_address(100), 500 * 4096); /* to page 599: 88 pages of it in the next block */
  mini_touch(&m, 12);
  assert_int_equal(m.moved, (20 + 412) * 4096);
  mini_touch(&m, 550);
  assert_int_equal(m.moved, 88 * 4096);
  mini_close(&m);
}

static void test_anypage(void **state) {
  mini m;
  uint64_t first = FF_BLOCK_PAGES - 40, end = FF_BLOCK_PAGES + 100, pairs = 0;
  mini_open(&m, 4, MINI_ALL);
  mini_prefetcher(&m, "anypage");
  mini_allocate(&m, mini_address(first), (end - first) * 4096);
  mini_allocate(&m, mini_address(end), 64 * 4096);
  for (uint64_t page = first; page < end; page++) {
    uint64_t before = 0, after = 0; /* of the allocation's other block */
    uint64_t other = page < FF_BLOCK_PAGES ? FF_BLOCK_PAGES : first,
             other_end = page < FF_BLOCK_PAGES ? end : FF_BLOCK_PAGES;
    for (uint64_t p = other; p < other_end; p++) before += m.pages[p].valid;
    if (mini_touch(&m, page)) {
      assert_true(m.moved == 4 * KB || m.moved == 8 * KB); /* the page it drew may be there */
      pairs += m.moved == 8 * KB;
    }
    for (uint64_t p = other; p < other_end; p++) after += m.pages[p].valid;
    assert_int_equal(before, after);
  }
  assert_int_equal(m.valid, end - first); /* and nothing of the other allocation */
  assert_int_equal(m.faults + pairs, end - first);
  assert_in_range(pairs, 20, 70);
  mini_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tbnp_doubling),
      cmocka_unit_test(test_tbnp_one_three_zero),
      cmocka_unit_test(test_tbnp_odd_ones_first),
      cmocka_unit_test(test_tbnp_tail),
      cmocka_unit_test(test_tbnp_padding_counts_once_it_would_have_come),
      cmocka_unit_test(test_tbnp_half_is_strict),
      cmocka_unit_test(test_tbnp_at_most_a_mebibyte),
      cmocka_unit_test(test_tbnp_limits_in_any_order),
      cmocka_unit_test(test_tbnp_allocations_that_share_a_block),
      cmocka_unit_test(test_tbnp_batch),
      cmocka_unit_test(test_tbne_in_order),
      cmocka_unit_test(test_tbne_even_ones_first),
      cmocka_unit_test(test_tbne_tail),
      cmocka_unit_test(test_tbne_takes_the_oldest_block_first),
      cmocka_unit_test(test_tbne_many_bytes_and_pages_on_their_way),
      cmocka_unit_test(test_tbn_with_tree),
      cmocka_unit_test(test_tbn_fit),
      cmocka_unit_test(test_anypage),
      cmocka_unit_test(test_window),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
