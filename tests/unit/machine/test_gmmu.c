/* SPDX-License-Identifier: Apache-2.0 */
/* The GMMU: pages of 4 KiB, 64 KiB and 2 MiB that grow with what is resident and are split when a part leaves, their
 * walks, the shared TLB, the migration buffer. In the rig a miss costs 20 ns to the GMMU and back, a level in the walk
 * cache 20 ns. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
enum { MIB = 1 << 20 };

/* One warp that touches pages in order, one line each. */
typedef struct visit {
  const uint32_t *pages;
  uint32_t count, from, step;
} visit;
static void walk_over(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const visit *v = context;
  for (uint32_t n = 0; n < v->count; n++) {
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, PAGE(v->pages ? v->pages[n] : v->from + n * v->step), 1);
    trace_put_wait(w, 0);
  }
}
static void launch(rig *r, visit v) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = walk_over, .context = &v});
}

/* A paging manager on a machine with pages of up to 2 MiB, 4 KiB moving. */
static void open_paged(rig *r, const char *manager, const char *page) {
  rig_open(r, manager);
  r->spec.page_bytes = 2 * MIB;
  r->page = page;
}

/* No entry outlives its page, in size or in place. */
static void check_entries(rig *r) {
  sim *s = r->sim;
  for (uint32_t i = 0; i <= s->spec->sm_count; i++) {
    if (i == s->spec->sm_count && !s->gmmu.shared_tlb) break;
    const lru *t = i < s->spec->sm_count ? &s->sms[i].tlb : &s->gmmu.shared_tlb[0];
    for (uint32_t e = 1; e <= t->count; e++) {
      pager_leaf leaf = (pager_leaf)(t->entries[e].key >> 60);
      uint64_t address = (t->entries[e].key & ((UINT64_C(1) << 52) - 1)) << s->gmmu.leaf_shift[leaf];
      if (s->gmmu.leaves_grow) assert_int_equal(pager_leaf_of(s->pager, address), leaf);
      if (s->gmmu.leaf_shift[leaf] <= s->pager->unit_shift)
        assert_int_equal(pager_find(s->pager, address)->state, PAGER_RESIDENT);
    }
  }
}

static sim_counters finish(rig *r) {
  sim_counters c = rig_finish(r)->counters;
  check_entries(r);
  rig_close(r);
  return c;
}

/* ---- sizes ---- */

static sim_counters over(const char *page, uint64_t allocated, uint64_t filled, uint32_t pages) {
  rig r;
  open_paged(&r, "replay", page);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, allocated, TRACE_MEMORY_DEVICE);
  rig_set(&r, RIG_BASE, filled);
  launch(&r, (visit){.count = pages, .step = 1});
  return finish(&r);
}

static void test_pages_grow(void **state) {
  assert_int_equal(over(NULL, 4 * MIB, 4 * MIB, 1024).tlb_misses, 2); /* two pages of 2 MiB */
  assert_int_equal(over("auto", 4 * MIB, 4 * MIB, 1024).tlb_misses, 2);
  assert_int_equal(over(NULL, 4 * MIB, 2 * MIB - 4096, 511).tlb_misses, 31 + 15); /* the last group is not whole */
  /* the allocation holds half of its second block */
  assert_int_equal(over(NULL, 3 * MIB, 3 * MIB, 768).tlb_misses, 1 + 16);
  assert_int_equal(over(NULL, 3 * MIB + 4096, 3 * MIB + 4096, 769).tlb_misses, 1 + 16 + 1);
  assert_int_equal(over("64K", 4 * MIB, 4 * MIB, 1024).tlb_misses, 64);
  assert_int_equal(over("4K", 4 * MIB, 4 * MIB, 1024).tlb_misses, 1024);
  assert_int_equal(over("2M", 4 * MIB, 2 * MIB - 4096, 511).tlb_misses, 1); /* one entry for what there is */
}

static void up_to_64k(rig *r) { r->spec.page_bytes = 65536; }
static void up_to_4k(rig *r) { r->spec.page_bytes = 4096; }
static void test_the_machine_has_a_largest_page(void **state) {
  void (*limits[])(rig *) = {up_to_64k, up_to_4k};
  uint64_t expected[] = {64, 1024};
  for (int i = 0; i < 2; i++) {
    rig r;
    open_paged(&r, "replay", NULL);
    limits[i](&r);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
    rig_set(&r, RIG_BASE, 4 * MIB);
    launch(&r, (visit){.count = 1024, .step = 1});
    assert_int_equal(finish(&r).tlb_misses, expected[i]);
  }
}

/* What comes where pinned memory was is translated anew. */
static void test_pinned_memory_leaves_no_entry(void **state) {
  static const char *const pages[] = {NULL, "4K"};
  uint64_t misses[] = {1, 512}; /* of what comes; pinned memory is mapped by pages of 4 KiB */
  for (int i = 0; i < 2; i++) {
    rig r;
    open_paged(&r, "replay", pages[i]);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 2 * MIB, TRACE_MEMORY_PINNED);
    launch(&r, (visit){.count = 512, .step = 1});
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE}});
    rig_alloc(&r, RIG_BASE, 2 * MIB, TRACE_MEMORY_DEVICE);
    rig_set(&r, RIG_BASE, 2 * MIB);
    launch(&r, (visit){.count = 512, .step = 1});
    sim_counters c = finish(&r);
    assert_int_equal(c.tlb_misses, 512 + misses[i]);
    assert_int_equal(c.tlb_shootdowns, 128); /* as many entries as a TLB has */
  }
}

/* Allocations that fill a block together are mapped by one page; where nothing is allocated there is none. */
static void test_two_allocations_in_a_block(void **state) {
  uint64_t second[] = {MIB, MIB - 4096, 4096, 0}; /* bytes of it */
  uint64_t misses[] = {1, 31 + 15, 16 + 1, 16};
  for (int i = 0; i < 4; i++) {
    rig r;
    open_paged(&r, "replay", NULL);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, MIB, TRACE_MEMORY_DEVICE);
    if (second[i]) rig_alloc(&r, RIG_BASE + MIB, second[i], TRACE_MEMORY_DEVICE);
    rig_set(&r, RIG_BASE, MIB);
    if (second[i]) rig_set(&r, RIG_BASE + MIB, second[i]);
    launch(&r, (visit){.count = (uint32_t)((MIB + second[i]) / 4096), .step = 1});
    assert_int_equal(finish(&r).tlb_misses, misses[i]);
  }
}

/* Two allocations meet within a page of 4 KiB: one page maps the group when both are there. */
static void test_two_allocations_in_a_page(void **state) {
  rig r;
  open_paged(&r, "replay", NULL);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 6144, TRACE_MEMORY_DEVICE);
  rig_alloc(&r, RIG_BASE + 6144, 65536 - 6144, TRACE_MEMORY_DEVICE);
  rig_set(&r, RIG_BASE, 6144);
  rig_set(&r, RIG_BASE + 6144, 65536 - 6144);
  launch(&r, (visit){.count = 16, .step = 1});
  assert_int_equal(finish(&r).tlb_misses, 1);
}

/* What the GPU reaches over the link is mapped as what is in its memory: a block, a group, or where a page is
 * elsewhere, a page. */
static void test_pages_over_the_link_grow(void **state) {
  uint64_t resident[] = {0, 4096, MIB}, misses[] = {1, 31 + 16, 32};
  for (int i = 0; i < 3; i++) {
    rig r;
    open_paged(&r, "auto", NULL);
    r.prefetch = "none";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 2 * MIB, TRACE_MEMORY_DEVICE);
    if (resident[i]) rig_set(&r, RIG_BASE, resident[i]);
    launch(&r, (visit){.count = 512, .step = 1});
    sim_counters c = rig_finish(&r)->counters;
    assert_int_equal(c.faults, 0);
    assert_int_equal(c.tlb_misses, misses[i]);
    rig_close(&r);
  }
}

/* ---- growing and splitting under way ---- */

/* The sixteenth page of a group lands: the fifteen entries of its neighbours go, one entry serves all from then on. */
static void test_a_group_becomes_one_page(void **state) {
  static const uint32_t pages[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 15};
  for (uint32_t last = 15; last <= 21; last += last == 15 ? 1 : 5) {
    rig r;
    open_paged(&r, "replay", NULL);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 2 * MIB, TRACE_MEMORY_DEVICE);
    launch(&r, (visit){.pages = pages, .count = last});
    sim_counters c = finish(&r);
    assert_int_equal(c.faults, last < 16 ? last : 16);
    assert_int_equal(c.tlb_misses, 2 * c.faults); /* the far-fault, and its replay */
    assert_int_equal(c.tlb_shootdowns, last < 16 ? 0 : 15);
  }
}

static void by_halves(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint32_t half = 0; half < 32; half++) {
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + half * 2048, 1);
    trace_put_wait(w, 0);
  }
}

/* So do those of both allocations that meet within a page. */
static void test_a_group_of_two_allocations_becomes_one_page(void **state) {
  rig r;
  open_paged(&r, "replay", NULL);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 6144, TRACE_MEMORY_DEVICE);
  rig_alloc(&r, RIG_BASE + 6144, 65536 - 6144, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = by_halves});
  sim_counters c = finish(&r);
  assert_int_equal(c.faults, 17);
  assert_int_equal(c.tlb_shootdowns, 16); /* of pages 0 to 14, one of which has two entries */
}

/* A page of 2 MiB loses 4 KiB to an eviction: its entry goes from the TLBs, its groups but one stay whole. */
static void test_eviction_splits(void **state) {
  static const uint32_t pages[] = {5, 700, 1024, 5, 0, 20, 700};
  rig r;
  open_paged(&r, "replay", NULL);
  r.gpu_memory = 4 * MIB;
  r.evict = "fifo";
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 6 * MIB, TRACE_MEMORY_DEVICE);
  rig_set(&r, RIG_BASE, 4 * MIB); /* page 0 came first */
  launch(&r, (visit){.pages = pages, .count = 4});
  sim_counters c = finish(&r);
  assert_int_equal(c.evicted_bytes, 4096);
  assert_int_equal(c.tlb_shootdowns, 1);
  assert_int_equal(c.tlb_misses, 1 + 1 + 2 + 1); /* page 5 again: now of 4 KiB */
  open_paged(&r, "replay", NULL);
  r.gpu_memory = 4 * MIB;
  r.evict = "fifo";
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 6 * MIB, TRACE_MEMORY_DEVICE);
  rig_set(&r, RIG_BASE, 4 * MIB);
  launch(&r, (visit){.pages = pages, .count = 7});
  c = finish(&r);
  assert_int_equal(c.evicted_bytes, 2 * 4096); /* page 0 comes back for page 1 */
  assert_int_equal(c.tlb_misses, 5 + 2 + 1);   /* page 20: of the next group, of 64 KiB; 700 is in the TLB */
}

/* Chosen pages of 2 MiB over units of 4 KiB: one entry, which knows what is there: one walk for the page, not one per
 * part. */
static void test_one_entry_for_a_partly_resident_page(void **state) {
  static const struct {
    const char *manager, *page;
    uint64_t misses;
  } rows[] = {{"replay", "2M", 2},        {"replay", "4K", 32},       {"demand", "2M", 2},
              {"partial-multi", NULL, 2}, {"partial-multi", "2M", 2}, {"partial-multi", "4K", 32},
              {"partial-single", NULL, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rig r;
    open_paged(&r, rows[i].manager, rows[i].page);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
    launch(&r, (visit){.count = 16, .step = strcmp(rows[i].manager, "partial-single") ? 16 : 1});
    sim_counters c = finish(&r);
    assert_int_equal(c.faults, 16);
    assert_int_equal(c.tlb_misses, rows[i].misses);
    assert_int_equal(c.walks, rows[i].misses);
  }
}

/* Random accesses in little memory, with every size of page: the entries fit the page table in the end. */
static void scatter(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  uint64_t x = b * 977 + warp * 131 + 7;
  for (int i = 0; i < 24; i++) {
    x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
    /* mostly in the first block, so that it becomes whole at times */
    uint64_t page = x >> 40 & 3 ? x >> 33 & 511 : (x >> 33) % 3072;
    rig_access(w, x & 1 << 20 ? TRACE_STORE : TRACE_LOAD, 0, PAGE(page), 1);
    if (i % 4 == 3) trace_put_wait(w, 0);
  }
}
static void test_random_accesses(void **state) {
  static const char *const managers_[] = {"replay", "demand", "tbn", "uvm", "sl", "sequential", "partial-multi"};
  static const char *const pages[] = {NULL, "64K", "2M"};
  for (size_t m = 0; m < sizeof managers_ / sizeof *managers_; m++)
    for (size_t chosen = 0; chosen < sizeof pages / sizeof *pages; chosen++) {
      rig r;
      open_paged(&r, managers_[m], pages[chosen]);
      r.gpu_memory = 6 * MIB;
      r.spec.fault_us = 1;
      r.spec.tlb_entries = 24;
      r.spec.l2_tlb_entries = 100;
      rig_start(&r);
      rig_alloc(&r, RIG_BASE, 9 * MIB + 20480, TRACE_MEMORY_DEVICE);
      rig_alloc(&r, RIG_BASE + 9 * MIB + 20480, 3 * MIB - 20480, TRACE_MEMORY_MANAGED);
      for (int k = 0; k < 2; k++) {
        /* whole pages thrash */
        rig_launch(&r,
                   (rig_kernel){.blocks = manager_find(managers_[m])->ranges ? 6 : 60, .warps = 4, .warp = scatter});
        rig_d2h(&r, RIG_BASE + 40960, 1 << 20);
      }
      sim_counters c = finish(&r);
      assert_true(c.tlb_shootdowns > 0 && c.tlb_l2_hits > 0);
    }
}

/* ---- walks ---- */

static ps third_page(const char *page, uint32_t count, sim_counters *c) {
  static const uint32_t pages[] = {0, 1 << 9, 2 << 9};
  rig r;
  rig_open(&r, "ideal"); /* page_bytes 4 KiB: four levels */
  r.page = page;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 16 * MIB, TRACE_MEMORY_DEVICE);
  launch(&r, (visit){.pages = pages, .count = count});
  *c = finish(&r);
  return c->kernel_ps;
}

/* A page of 2 MiB is found one level earlier. */
static void test_levels(void **state) {
  sim_counters c;
  third_page("4K", 3, &c);
  /* of the later walks: levels 3 and 2; their level 1 entry is another one */
  assert_int_equal(c.walk_cache_hits, 2 * 2);
  assert_int_equal(c.l2_hits + c.l2_misses - c.sectors, 4 + 2 + 2);
  ps two = third_page("2M", 2, &c), three = third_page("2M", 3, &c);
  assert_int_equal(c.walk_cache_hits, 2 * 2);
  assert_int_equal(c.l2_hits + c.l2_misses - c.sectors, 3 + 1 + 1);
  ps walk = (20 + 2 * 20 + 100) * NS; /* the entry's line is in the L2 since the first walk */
  assert_between(three - two, walk + 216 * NS, walk + 240 * NS);
}

/* The other way round: a machine whose walk_levels are those of its pages of 2 MiB needs one more for smaller ones. */
static void test_levels_of_a_machine_with_large_pages(void **state) {
  static const struct {
    const char *page;
    uint64_t accesses;
  } rows[] = {{NULL, 4}, {"2M", 4}, {"64K", 5}, {"4K", 5}};
  for (int i = 0; i < 4; i++) {
    rig r;
    open_paged(&r, "ideal", rows[i].page);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 16 * MIB, TRACE_MEMORY_DEVICE);
    launch(&r, (visit){.count = 1});
    sim_counters c = finish(&r);
    assert_int_equal(c.l2_hits + c.l2_misses - c.sectors, rows[i].accesses);
  }
}

/* ---- the shared TLB ---- */

static void shared(machine_spec *s) {
  s->l2_tlb_entries = 64;
  s->l2_tlb_latency = 10;
}

/* Block 0 on the first SM touches a page, block 1 on the second one does so 4 us later, or at the same time. */
static void one_after_the_other(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  if (b && *(const bool *)context) rig_issue(w, 1000);
  rig_load_wait(w, PAGE(0) + b * 1024);
}
static sim_counters two_sms(rig_tweak tweak, bool later) {
  return rig_run(tweak, (rig_kernel){.blocks = 2, .warps = 1, .warp = one_after_the_other, .context = &later});
}

static void test_shared_hit(void **state) {
  sim_counters without = two_sms(NULL, true), with = two_sms(shared, true);
  assert_int_equal(without.tlb_misses, 2);
  assert_int_equal(with.tlb_misses, 1);
  assert_int_equal(with.tlb_l2_hits, 1);
  /* instead of four levels in the walk cache */
  assert_int_equal(without.kernel_ps - with.kernel_ps, (4 * 20 - 10) * NS);
}

static void test_shared_merge(void **state) {
  sim_counters c = two_sms(shared, false);
  assert_int_equal(c.walks, 1);
  assert_int_equal(c.tlb_misses, 1);
  assert_int_equal(c.tlb_l2_hits, 0);
  assert_int_equal(c.tlb_merged, 1); /* the second SM waits for the first one's walk */
}

static const uint32_t ping_pong[] = {0, 8, 0, 8, 0, 8};
static sim_counters of_shared_only(rig_tweak tweak) {
  static const visit v = {.pages = ping_pong, .count = 6};
  return rig_run(tweak, (rig_kernel){.blocks = 1, .warps = 1, .warp = walk_over, .context = &v});
}
static void only_shared(machine_spec *s) {
  s->tlb_entries = 0;
  s->l2_tlb_entries = 8;
}
static void direct_mapped(machine_spec *s) {
  only_shared(s);
  s->l2_tlb_ways = 1;
}
static void two_ways(machine_spec *s) {
  only_shared(s);
  s->l2_tlb_ways = 2;
}

/* No TLB in the SM: every translation asks the shared one. Pages 0 and 8 fall into one set of 8, and of 4. */
static void test_shared_only(void **state) {
  sim_counters c = of_shared_only(only_shared);
  assert_int_equal(c.tlb_misses, 2);
  assert_int_equal(c.tlb_l2_hits, 4);
  assert_int_equal(c.tlb_evictions, 0);
  c = of_shared_only(direct_mapped);
  assert_int_equal(c.tlb_misses, 6);
  assert_int_equal(c.tlb_evictions, 5);
  c = of_shared_only(two_ways);
  assert_int_equal(c.tlb_misses, 2);
}

static void refused(void (*tweak)(machine_spec *), const char *set, const char *expected) {
  machine_spec s = rig_spec();
  ff_error error = {0};
  if (tweak) tweak(&s);
  assert_int_equal(machine_spec_set_all(&s, set, &error), FF_INVALID);
  if (!strstr(error.message, expected)) fail_msg("expected '%s' in '%s'", expected, error.message);
}
static void test_refused(void **state) {
  refused(NULL, "tlb_entries=0", "there is no TLB");
  refused(NULL, "l2_tlb_entries=10,l2_tlb_ways=4", "multiple of l2_tlb_ways");
  machine_spec s = rig_spec();
  assert_int_equal(machine_spec_set_all(&s, "tlb_entries=0,l2_tlb_entries=4", NULL), FF_OK); /* together they fit */
}

/* ---- the migration buffer (Zhang et al.): 128 entries per memory partition, blocking when full ---- */

static void own_page(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  rig_load_wait(w, RIG_BASE + (b * 10 + warp) * 2 * MIB);
}
static ps requests_at_once(uint64_t blocks, uint64_t channels) {
  rig r;
  rig_open(&r, "partial-multi");
  r.spec.fault_mshrs = 1000;
  r.spec.channels = channels;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 400 * (uint64_t)MIB, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = blocks, .warps = 10, .warp = own_page});
  return finish(&r).kernel_ps;
}
static void test_migration_buffer(void **state) {
  assert_between(requests_at_once(12, 1), 20 * US, 30 * US); /* 120 requests find room */
  assert_between(requests_at_once(13, 1), 40 * US, 50 * US); /* two of 130 wait until some of the 128 have landed */
  assert_between(requests_at_once(13, 2), 20 * US, 30 * US); /* two partitions hold 256 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pages_grow),
      cmocka_unit_test(test_the_machine_has_a_largest_page),
      cmocka_unit_test(test_pinned_memory_leaves_no_entry),
      cmocka_unit_test(test_two_allocations_in_a_block),
      cmocka_unit_test(test_two_allocations_in_a_page),
      cmocka_unit_test(test_pages_over_the_link_grow),
      cmocka_unit_test(test_a_group_becomes_one_page),
      cmocka_unit_test(test_a_group_of_two_allocations_becomes_one_page),
      cmocka_unit_test(test_eviction_splits),
      cmocka_unit_test(test_one_entry_for_a_partly_resident_page),
      cmocka_unit_test(test_random_accesses),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_levels_of_a_machine_with_large_pages),
      cmocka_unit_test(test_shared_hit),
      cmocka_unit_test(test_shared_merge),
      cmocka_unit_test(test_shared_only),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_migration_buffer),
  };
  return cmocka_run_group_tests_name("gmmu", tests, NULL, NULL);
}
