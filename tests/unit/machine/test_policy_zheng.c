/* SPDX-License-Identifier: Apache-2.0 */
/* Zheng's prefetchers, page by page as the link gets idle: order, ends of allocations, exhaustion, full memory. */
#include "policy_view.h"

#define NONE UINT64_MAX

/* The pages of the next idle calls, as text; "-": the policy proposed nothing. */
static const char *idle_pages(mini *m, int calls) {
  static char text[4096];
  text[0] = '\0';
  for (int i = 0; i < calls; i++) {
    uint64_t page = mini_idle(m);
    size_t length = strlen(text);
    if (page == NONE) snprintf(text + length, sizeof text - length, "%s-", length ? " " : "");
    else snprintf(text + length, sizeof text - length, "%s%d", length ? " " : "", (int)page);
  }
  return text;
}

static void open_with(mini *m, const char *policy, uint64_t capacity) {
  mini_open(m, 8, capacity);
  mini_prefetcher(m, policy);
}

/* ---- sequential ---- */

/* Three allocations, made from high to low: one that begins and ends inside pages, one of a few bytes, one over a
 * block's end. */
static void three_allocations(mini *m) {
  mini_allocate(m, mini_address(1022), 4 * 4096);      /* 1022 to 1025 */
  mini_allocate(m, mini_address(20) + 100, 3);         /* 20 */
  mini_allocate(m, mini_address(10) + 4000, 2 * 4096); /* 10 to 12 */
}

static void test_sequential(void **state) {
  mini m;
  open_with(&m, "sequential", MINI_ALL);
  three_allocations(&m);
  mini_touch(&m, 1024); /* where the fault is does not matter; what is there is skipped */
  assert_string_equal(idle_pages(&m, 9), "10 11 12 20 1022 1023 1025 - -");
  mini_allocate(&m, MINI_BASE, 4096); /* below: a fault wakes it */
  assert_string_equal(idle_pages(&m, 1), "-");
  mini_allocate(&m, mini_address(2000), 2 * 4096);
  mini_touch(&m, 2001);
  assert_string_equal(idle_pages(&m, 3), "0 2000 -");
  mini_leave(&m, 11);
  mini_leave(&m, 2000);
  assert_string_equal(idle_pages(&m, 3), "11 2000 -");
  mini_close(&m);
}

static void test_sequential_goes_on_upwards(void **state) {
  mini m;
  open_with(&m, "sequential", MINI_ALL);
  mini_allocate(&m, MINI_BASE, 5 * 4096);
  assert_string_equal(idle_pages(&m, 3), "0 1 2");
  mini_leave(&m, 0); /* behind it: comes in the next round */
  assert_string_equal(idle_pages(&m, 4), "3 4 0 -");
  mini_close(&m);
}

/* ---- locality ---- */

static void test_locality_regions(void **state) {
  mini m;
  open_with(&m, "locality", MINI_ALL);
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  assert_string_equal(idle_pages(&m, 1), "-"); /* no fault yet */
  mini_touch(&m, 100);
  assert_string_equal(idle_pages(&m, 3), "101 102 103");
  mini_touch(&m, 300); /* a second region waits for the first */
  mini_touch(&m, 150); /* lies in the first */
  for (uint64_t page = 104; page < 228; page++)
    if (page != 150) assert_int_equal(mini_idle(&m), page);
  /* 128 pages with the faulting one */
  for (uint64_t page = 301; page < 428; page++) assert_int_equal(mini_idle(&m), page);
  for (uint64_t page = 428; page < 512; page++) assert_int_equal(mini_idle(&m), page); /* on, to the allocation's end */
  assert_string_equal(idle_pages(&m, 2), "- -");
  mini_touch(&m, 0);
  for (uint64_t page = 1; page < 100; page++) assert_int_equal(mini_idle(&m), page);
  assert_string_equal(idle_pages(&m, 1), "228"); /* 0 to 127 is done; 128 to 255 has something absent from 228 on */
  mini_close(&m);
}

static void test_locality_small_allocations(void **state) {
  mini m;
  open_with(&m, "locality", MINI_ALL);
  three_allocations(&m);
  mini_allocate(&m, mini_address(13), 4096); /* right behind another one */
  mini_touch(&m, 11);
  /* from the faulting page on; not into the neighbour, nor to the one before */
  assert_string_equal(idle_pages(&m, 3), "12 - -");
  mini_fault(&m, (uint64_t[]){mini_address(20) + 101, mini_address(1023)}, 2);
  assert_string_equal(idle_pages(&m, 3), "1024 1025 -");
  mini_close(&m);
}

static void test_locality_with_many_faults(void **state) {
  mini m;
  open_with(&m, "locality", MINI_ALL);
  mini_allocate(&m, MINI_BASE, 8 * FF_BLOCK_BYTES);
  for (uint64_t i = 0; i < 30; i++) mini_touch(&m, i * 130); /* apart from each other: 30 regions */
  for (uint64_t i = 0; i < 30; i++)
    for (uint64_t page = 1; page < 128; page++) assert_int_equal(mini_idle(&m), i * 130 + page);
  assert_int_equal(mini_idle(&m), 29 * 130 + 128);
  ff_fault fault = {0}; /* more regions than it keeps: it goes on with the youngest ones */
  for (uint64_t i = 0; i < 300; i++) {
    fault.address = mini_address(4095 - i % 100);
    m.prefetch.policy->faulted(m.prefetch.state, &m.view, &fault, 1);
  }
  assert_true(mini_idle(&m) != NONE);
  mini_close(&m);
}

/* ---- random ---- */

static void test_random(void **state) {
  uint32_t first[40] = {0}; /* how often each page was drawn first */
  for (int trial = 0; trial < 4000; trial++) {
    mini m;
    mini_open(&m, 3, MINI_ALL);
    mini_prefetcher(&m, "random");
    mini_allocate(&m, mini_address(500) + 7, 40 * 4096 - 100); /* 500 to 539: 12 pages in one block, 28 in the next */
    mini_allocate(&m, mini_address(600), 100 * 4096);          /* the other one: not touched */
    m.random += (uint64_t)trial * 0x9e3779b9;
    assert_int_equal(mini_idle(&m), NONE); /* before the first fault */
    mini_fault(&m, (uint64_t[]){mini_address(510)}, 1);
    uint64_t page = mini_idle(&m);
    assert_in_range(page, 500, 539);
    first[page - 500]++;
    if (trial < 50) {
      /* each once: mini_idle refuses a page that is there */
      for (int i = 0; i < 38; i++) assert_in_range(mini_idle(&m), 500, 539);
      assert_int_equal(mini_idle(&m), NONE);
      mini_leave(&m, 503);
      mini_leave(&m, 530);
      assert_in_range(mini_idle(&m), 503, 530);
      assert_in_range(mini_idle(&m), 503, 530);
      assert_int_equal(mini_idle(&m), NONE);
      mini_fault(&m, (uint64_t[]){mini_address(650)}, 1);
      for (int i = 0; i < 99; i++) assert_in_range(mini_idle(&m), 600, 699);
      assert_int_equal(mini_idle(&m), NONE);
    }
    mini_close(&m);
  }
  assert_int_equal(first[10], 0); /* the fault's own */
  for (int i = 0; i < 40; i++)
    if (i != 10) assert_in_range(first[i], 60, 150); /* 103 expected, sigma 10 */
}

static void test_random_is_the_same_in_every_run(void **state) {
  uint64_t pages[2][200];
  for (int run = 0; run < 2; run++) {
    mini m;
    open_with(&m, "random", MINI_ALL);
    mini_allocate(&m, MINI_BASE, 4 * FF_BLOCK_BYTES);
    mini_touch(&m, 7);
    for (int i = 0; i < 200; i++) pages[run][i] = mini_idle(&m);
    mini_close(&m);
  }
  assert_memory_equal(pages[0], pages[1], sizeof pages[0]);
}

/* ---- oracle ---- */

static void test_oracle(void **state) {
  static const uint32_t future[] = {5, 5, 900, 2, 5, 700, 2, 3, 901};
  mini m;
  open_with(&m, "oracle", MINI_ALL);
  m.future = future;
  m.future_count = 9;
  mini_allocate(&m, MINI_BASE, 10 * 4096);
  mini_allocate(&m, mini_address(900), 2 * 4096);
  mini_arrive(&m, 2);
  assert_string_equal(idle_pages(&m, 4), "5 900 - -"); /* 2 is there; 700 does not exist yet, but will be used */
  mini_allocate(&m, mini_address(700), 4096);
  assert_string_equal(idle_pages(&m, 4), "700 3 901 -");
  mini_leave(&m, 5);
  assert_string_equal(idle_pages(&m, 1), "-"); /* not twice */
  mini_close(&m);
  open_with(&m, "oracle", MINI_ALL);
  m.future = future;
  m.future_count = 9;
  m.position = 6; /* the use of 700 has passed: it has been freed */
  mini_allocate(&m, MINI_BASE, 10 * 4096);
  mini_allocate(&m, mini_address(900), 2 * 4096);
  assert_string_equal(idle_pages(&m, 6), "5 900 2 3 901 -");
  mini_close(&m);
}

static void test_without_a_future_the_oracle_rests(void **state) {
  mini m;
  open_with(&m, "oracle", MINI_ALL);
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  mini_touch(&m, 3);
  assert_string_equal(idle_pages(&m, 2), "- -");
  mini_close(&m);
}

/* ---- all of them ---- */

/* With memory full they propose nothing: what they would bring is not worth what would go. */
static void test_none_of_them_makes_others_leave(void **state) {
  static const char *const policies[] = {"random", "sequential", "locality", "oracle"};
  static const uint32_t future[] = {100, 101, 102, 103, 104, 105};
  for (int p = 0; p < 4; p++) {
    mini m;
    open_with(&m, policies[p], 5);
    m.future = future;
    m.future_count = 6;
    mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
    mini_touch(&m, 100);
    for (int i = 0; i < 4; i++) assert_true(mini_idle(&m) != NONE);
    assert_string_equal(idle_pages(&m, 3), "- - -");
    mini_leave(&m, 100);
    assert_true(mini_idle(&m) != NONE);
    mini_close(&m);
  }
}

/* What an idle link brings in the end is the whole of what the policy covers, each page once. */
static void test_everything_comes_once(void **state) {
  static const struct {
    const char *policy;
    uint64_t pages;
  } expected[] = {{"sequential", 2 * 512 + 75 + 1}, {"locality", 2 * 512 + 75}, {"random", 2 * 512 + 75}};
  for (int p = 0; p < 3; p++) {
    mini m;
    open_with(&m, expected[p].policy, MINI_ALL);
    mini_allocate(&m, MINI_BASE, 2 * FF_BLOCK_BYTES + 300 * KB);
    mini_allocate(&m, MINI_BASE + 3 * FF_BLOCK_BYTES, 1);
    mini_touch(&m, 0);
    while (mini_idle(&m) != NONE) {}
    assert_int_equal(m.valid, expected[p].pages);
    mini_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequential),
      cmocka_unit_test(test_sequential_goes_on_upwards),
      cmocka_unit_test(test_locality_regions),
      cmocka_unit_test(test_locality_small_allocations),
      cmocka_unit_test(test_locality_with_many_faults),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_random_is_the_same_in_every_run),
      cmocka_unit_test(test_oracle),
      cmocka_unit_test(test_without_a_future_the_oracle_rests),
      cmocka_unit_test(test_none_of_them_makes_others_leave),
      cmocka_unit_test(test_everything_comes_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
