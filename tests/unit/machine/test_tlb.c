/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: what a TLB reaches, hits under misses, ports, walks and their cache. In the rig a miss costs 20 ns to
 * the GMMU and back, a level in the walk cache 20 ns, and there are four levels. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)

/* Twice over `pages` pages, one line each (the L1 is passed by, so that only translation differs). */
static void twice(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint64_t pages = *(const uint64_t *)context;
  for (int round = 0; round < 2; round++)
    for (uint64_t p = 0; p < pages; p++) {
      rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, PAGE(p) + p % 32 * 128, 15);
      trace_put_wait(w, 0);
    }
}

static sim_counters over_pages(uint64_t pages) {
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = twice, .context = &pages});
}

static void test_reach(void **state) {
  sim_counters c = over_pages(128);
  assert_int_equal(c.tlb_lookups, 256);
  assert_int_equal(c.tlb_misses, 128); /* 128 entries hold 128 pages */
  c = over_pages(129);
  assert_int_equal(c.tlb_misses, 258); /* one more, and LRU loses every one */
  assert_int_equal(c.tlb_evictions, 258 - 128);
}

static void four_entries(machine_spec *s) { s->tlb_entries = 4; }
static void use_and_replace(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  static const uint32_t pages[] = {0, 1, 2, 3, 0, 4, 0, 1}; /* 4 replaces 1, the least recently used; 0 stays */
  for (size_t n = 0; n < sizeof pages / sizeof *pages; n++) {
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, PAGE(pages[n]), 15);
    trace_put_wait(w, 0);
  }
}
static void test_replacement(void **state) {
  sim_counters c = rig_run(four_entries, (rig_kernel){.blocks = 1, .warps = 1, .warp = use_and_replace});
  assert_int_equal(c.tlb_misses, 6);
}

static void test_walk_cache(void **state) {
  sim_counters c = over_pages(100);
  assert_int_equal(c.walks, 100);
  /* The first walk misses on four levels; each other one only on its own last-level entry. */
  assert_int_equal(c.walk_cache_hits, 99 * 3);
}

static void two_pages(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  rig_load_wait(w, PAGE(0));
  rig_load_wait(w, PAGE(1));
}
static void two_pages_again(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  two_pages(w, b, i, c);
  rig_load_wait(w, PAGE(1) + 12 * 256); /* the same channel and row state matter not: another channel's first line */
}
static void two_pages_and_third(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  two_pages(w, b, i, c);
  rig_load_wait(w, PAGE(2));
}

/* What a miss adds: the way to the GMMU, three levels in the walk cache, and the last level's entry from the L2. */
static void test_miss_time(void **state) {
  ps base = rig_time(NULL, two_pages);
  ps hit = rig_time(NULL, two_pages_again) - base, miss = rig_time(NULL, two_pages_and_third) - base;
  assert_true(hit >= 216 * NS && hit <= 240 * NS); /* DRAM, its row open or not */
  ps walk = (20 + 3 * 20 + 100) * NS;              /* the entry's line is in the L2 since page 0's walk */
  assert_true(miss >= walk + 216 * NS && miss <= walk + 240 * NS);
}

/* One warp misses the TLB; another one's hit, later, goes on meanwhile. */
static void hit_under_miss(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  bool misses = *(const bool *)context;
  rig_load_wait(w, PAGE(0));
  trace_put_barrier(w, 0, false, 2);
  if (warp == 0 && misses) rig_load_wait(w, PAGE(7));
  if (warp == 1) {
    rig_issue(w, 4);
    for (int i = 0; i < 40; i++) rig_load_wait(w, PAGE(0)); /* L1 hits: 20 ns each */
  }
}
static void test_hit_under_miss(void **state) {
  bool misses[2] = {false, true};
  ps without =
      rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 2, .warp = hit_under_miss, .context = &misses[0]}).kernel_ps;
  ps with =
      rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 2, .warp = hit_under_miss, .context = &misses[1]}).kernel_ps;
  assert_int_equal(with, without);
}

/* A gather over 32 pages that are all in the TLB: four translations per cycle, one line per cycle. */
static void gather(trace_writer *w, uint32_t pages) {
  uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, pages);
  for (uint32_t p = 0; p < pages; p++) at[p] = trace_line(PAGE(p), 1, 1);
}
static void gather_twice(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  gather(w, 32);
  trace_put_wait(w, 0);
  gather(w, 32);
  trace_put_wait(w, 0);
}
static void gather_once(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  gather(w, 32);
  trace_put_wait(w, 0);
}
static void slow_port(machine_spec *s) {
  s->tlb_ports = 1;
  s->clock_mhz = 1000;
  s->l1_bytes = 1 << 20;
}
static void four_ports(machine_spec *s) { s->l1_bytes = 1 << 20; }

static void test_ports(void **state) {
  ps four = rig_time(four_ports, gather_twice) - rig_time(four_ports, gather_once);
  assert_int_equal(four, (31 + 20) * NS); /* the 32nd line is taken 31 cycles after the first */
  ps one = rig_time(slow_port, gather_twice) - rig_time(slow_port, gather_once);
  assert_int_equal(one, (31 + 20) * NS); /* one port keeps up with one line per cycle */
  sim_counters c = rig_run(four_ports, (rig_kernel){.blocks = 1, .warps = 1, .warp = gather_twice});
  assert_int_equal(c.tlb_lookups, 64);
  assert_int_equal(c.tlb_misses, 32);
  assert_int_equal(c.lines, 64);
}

/* Several lines of one page in one access are translated once. */
static void one_page(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  uint64_t *at = trace_put_access(w, TRACE_LOAD, 2, 0, 0, ~0u, 8);
  for (uint32_t l = 0; l < 8; l++) at[l] = trace_line(PAGE(l % 2) + l * 128, 4, 15);
}
static void test_once_per_page_of_an_access(void **state) {
  sim_counters c = rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_page});
  assert_int_equal(c.tlb_lookups, 2);
  assert_int_equal(c.lines, 8);
}

/* With one walker, what walks read from memory follows each other. */
static void many_walks(trace_writer *w, uint64_t b, uint32_t i, const void *c) { gather(w, 32); }
static void one_walker(machine_spec *s) { s->walkers = 1; }
static void one_walker_looks(machine_spec *s) {
  s->walkers = 1;
  s->walk_cache_walker = 1;
}
static void test_walkers(void **state) {
  ps many = rig_run(NULL, (rig_kernel){.blocks = 1, .warps = 1, .warp = many_walks}).kernel_ps;
  ps one = rig_run(one_walker, (rig_kernel){.blocks = 1, .warps = 1, .warp = many_walks}).kernel_ps;
  assert_true(one >= many + 30 * 100 * NS); /* each: an L2 access at least */
  ps looks = rig_run(one_walker_looks, (rig_kernel){.blocks = 1, .warps = 1, .warp = many_walks}).kernel_ps;
  assert_true(looks >= many + 30 * (3 * 20 + 100) * NS); /* and three cached levels */
}

/* The only walker is busy with 32 pages for one warp. What another one asks for is in the walk cache, which answers
 * without a walker. */
static void cached_under_walks(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  bool walks = *(const bool *)context;
  rig_load_wait(w, PAGE(40) + 128); /* in another set of the L1 than the 32 pages' first lines */
  trace_put_barrier(w, 0, false, 2);
  if (warp == 0 && walks) gather(w, 32);
  if (warp == 1) {
    rig_issue(w, 64);
    for (int i = 0; i < 100; i++) rig_load_wait(w, PAGE(40) + 128); /* the way there and back, four levels, an L1 hit */
  }
}
static void one_walker_no_tlb(machine_spec *s) {
  s->walkers = 1;
  s->tlb_entries = 0;
}
static void one_walker_looks_no_tlb(machine_spec *s) {
  one_walker_no_tlb(s);
  s->walk_cache_walker = 1;
}
static ps cached_time(rig_tweak tweak, bool walks) {
  return rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 2, .warp = cached_under_walks, .context = &walks}).kernel_ps;
}
static void test_walk_cache_answers_without_a_walker(void **state) {
  ps alone = cached_time(one_walker_no_tlb, false);
  assert_true(alone >= 100 * (20 + 4 * 20 + 20) * NS);
  assert_int_equal(cached_time(one_walker_no_tlb, true), alone);
  assert_int_equal(cached_time(one_walker_looks_no_tlb, false), alone);
  assert_true(cached_time(one_walker_looks_no_tlb, true) > alone);
}

/* Two SMs ask for one page at the same moment: the second walk finds the first's entries in the walk cache, on their
 * way, and waits for them as long as the first does. */
static void one_load(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, RIG_BASE + b * 1024);
}

static void test_walks_share_what_is_on_its_way(void **state) {
  uint64_t stall[2];
  for (int n = 0; n < 2; n++) {
    rig r;
    rig_open(&r, "copy");
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = (uint64_t)n + 1, .warps = 1, .warp = one_load});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->walks, n + 1);
    assert_int_equal(c->walk_cache_hits > 0, n > 0);
    stall[n] = c->warp_stall_ps;
    rig_close(&r);
  }
  assert_true(stall[1] >= 19 * stall[0] / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reach),
      cmocka_unit_test(test_replacement),
      cmocka_unit_test(test_walk_cache),
      cmocka_unit_test(test_miss_time),
      cmocka_unit_test(test_hit_under_miss),
      cmocka_unit_test(test_ports),
      cmocka_unit_test(test_once_per_page_of_an_access),
      cmocka_unit_test(test_walkers),
      cmocka_unit_test(test_walk_cache_answers_without_a_walker),
      cmocka_unit_test(test_walks_share_what_is_on_its_way),
  };
  return cmocka_run_group_tests_name("tlb", tests, NULL, NULL);
}
