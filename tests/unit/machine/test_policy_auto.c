/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetcher and the evictor `auto` on accesses of known shape: what comes, and what stays where it is. A group
 * that is in GPU memory is used for nothing; of any other each KiB costs the link, which is what the tests count. */
#include "policy_view.h"

#include "policy/auto_state.h"

enum { GROUP_PAGES = 16, GROUPS = 256 };

typedef struct reached_memory {
  mini m;
  uint64_t count[GROUPS]; /* bytes of the group that were read over the link since it last came */
  uint64_t over_link;     /* of all */
} reached_memory;

static void open_auto(mini *m, uint64_t blocks, uint64_t capacity_pages) {
  mini_open(m, blocks, capacity_pages);
  mini_prefetcher(m, "auto");
  mini_evictor(m, "auto");
  policy_share(&m->prefetch, &m->evict);
  m->view.now = 1;
}

/* One allocation of so many groups, of which the first `capacity` are there. */
static void open_full(reached_memory *r, uint64_t groups, uint64_t capacity) {
  memset(r, 0, sizeof *r);
  open_auto(&r->m, (groups + 31) / 32, capacity * GROUP_PAGES);
  assert_non_null(r->m.prefetch.policy->reached);
  mini_allocate(&r->m, MINI_BASE, groups * FF_GROUP_BYTES);
  for (uint64_t page = 0; page < capacity * GROUP_PAGES; page++) {
    mini_arrive(&r->m, page);
    mini_use(&r->m, page);
  }
  r->m.evicted = 0;
}

/* The GPU reads `kib` of the group: it uses it, or reads it over the link until it comes. */
static void gpu_reads(reached_memory *r, uint64_t group, uint64_t kib) {
  for (uint64_t i = 0; i < kib; i++) {
    r->m.view.now++;
    if (r->m.pages[group * GROUP_PAGES].valid) {
      mini_use(&r->m, group * GROUP_PAGES + i % GROUP_PAGES);
      continue;
    }
    r->over_link += KB;
    r->count[group] += FF_REACHED_BYTES;
    r->m.proposals.count = 0;
    r->m.prefetch.policy->reached(r->m.prefetch.state, &r->m.view, MINI_BASE + group * FF_GROUP_BYTES, r->count[group]);
    if (mini_bring(&r->m, true)) r->count[group] = 0;
  }
}

static uint64_t there(const reached_memory *r, uint64_t from, uint64_t to) {
  uint64_t count = 0;
  for (uint64_t group = from; group < to; group++) count += r->m.pages[group * GROUP_PAGES].valid;
  return count;
}

static void test_one_state(void **state) {
  mini m;
  open_auto(&m, 1, MINI_ALL);
  assert_ptr_equal(m.prefetch.state, m.evict.state);
  mini_allocate(&m, MINI_BASE, 256 * KB);
  mini_touch(&m, 0); /* where pages fault, a group comes */
  assert_int_equal(m.valid, GROUP_PAGES);
  assert_int_equal(((auto_state *)m.evict.state)->resident.count, 1); /* told once */
  mini_close(&m);
  mini_open(&m, 1, MINI_ALL);
  mini_prefetcher(&m, "auto");
  mini_evictor(&m, "lru");
  policy_share(&m.prefetch, &m.evict);
  assert_ptr_not_equal(m.prefetch.state, m.evict.state);
  mini_close(&m);
}

/* What a launch declares comes side by side, each array as far as the others, and then the rest; nothing twice. */
static void test_idle_fills(void **state) {
  mini m;
  open_auto(&m, 2, MINI_ALL);
  mini_allocate(&m, MINI_BASE, 1 << 20);          /* 16 groups */
  mini_allocate(&m, mini_address(256), 256 * KB); /* 4 groups */
  mini_allocate(&m, mini_address(512), 128 * KB); /* 2 groups, not declared */
  assert_non_null(m.prefetch.policy->launching);
  m.prefetch.policy->launching(m.prefetch.state, &m.view, m.allocations.items, 2);
  uint64_t groups = 0;
  for (;; groups++) {
    m.proposals.count = 0;
    m.prefetch.policy->idle(m.prefetch.state, &m.view);
    if (!m.proposals.count) break;
    assert_int_equal(mini_bring(&m, false), 64 * KB);
    if (groups == 9)
      assert_true(m.pages[7 * 16].valid && !m.pages[8 * 16].valid && m.pages[256 + 16].valid &&
                  !m.pages[256 + 32].valid);
    if (groups < 20) assert_false(m.pages[512].valid);
  }
  assert_int_equal(groups, 22);
  mini_close(&m);
}

/* A launch asks once for what needs no transfer; if what it declares does not fit, not at all. */
static void test_launch_asks_for_blank_pages(void **state) {
  for (int fits = 0; fits < 2; fits++) {
    mini m;
    open_auto(&m, 2, fits ? MINI_ALL : 64);
    mini_allocate(&m, MINI_BASE, 1 << 20);
    for (int launch = 0; launch < 2; launch++) {
      m.proposals.count = 0;
      m.prefetch.policy->launching(m.prefetch.state, &m.view, m.allocations.items, 1);
      assert_int_equal(m.proposals.count, fits && launch == 0);
    }
    mini_close(&m);
  }
}

/* Everything is read once, in addition to a set that is read all the time: the set stays, the stream is read where it
 * is. */
static void test_stream_and_hot_set(void **state) {
  reached_memory r;
  open_full(&r, 128, 16);
  for (uint64_t group = 16; group < 128; group++) {
    for (uint64_t kib = 0; kib < 64; kib += 4) {
      gpu_reads(&r, group, 4);
      for (uint64_t hot = 0; hot < 16; hot++) gpu_reads(&r, hot, 1);
    }
  }
  assert_int_equal(r.m.evicted, 0);
  assert_int_equal(r.over_link, 112 * 64 * KB);
  mini_close(&r.m);
}

/* Sweeps over a quarter more than fits: what does not fit is read over the link, and nothing moves (lru would bring
 * everything each time). */
static void test_loop_larger_than_memory(void **state) {
  reached_memory r;
  open_full(&r, 80, 64);
  r.m.view.queued = UINT64_C(1) << 20; /* others wait for the link */
  for (int sweep = 0; sweep < 10; sweep++)
    for (uint64_t group = 0; group < 80; group++) gpu_reads(&r, group, 64);
  assert_int_equal(r.m.evicted, 0);
  assert_int_equal(r.over_link, 10 * 16 * 64 * KB);
  mini_close(&r.m);
}

/* Few bytes here and there: no group is worth its place. */
static void test_random_probes(void **state) {
  reached_memory r;
  open_full(&r, 256, 128);
  uint64_t random = 1;
  for (int i = 0; i < 20000; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    gpu_reads(&r, random >> 33 & 255, 1);
  }
  assert_true(r.m.evicted < 5 * GROUP_PAGES);
  mini_close(&r.m);
}

/* The program goes over to other data: that comes, for about what it takes to find out and to move it. */
static void test_other_phase(void **state) {
  reached_memory r;
  open_full(&r, 64, 32);
  for (int sweep = 0; sweep < 10; sweep++)
    for (uint64_t group = 32; group < 64; group++) gpu_reads(&r, group, 64);
  assert_int_equal(there(&r, 32, 64), 32);
  assert_true(r.over_link <= 2 * 32 * 64 * KB);
  mini_close(&r.m);
}

/* A graph: a few groups are read all the time (what has been visited), the others now and then. Those few come, and
 * stay. */
static void test_frontier(void **state) {
  reached_memory r;
  open_full(&r, 128, 64);
  uint64_t random = 1, late = 0;
  for (int i = 0; i < 8000; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    gpu_reads(&r, random >> 33 & 127, 1);
    uint64_t before = r.over_link;
    for (uint64_t hot = 120; hot < 128; hot++) gpu_reads(&r, hot, 1);
    if (i >= 1000) late += r.over_link - before;
  }
  assert_int_equal(there(&r, 120, 128), 8);
  assert_int_equal(late, 0);
  mini_close(&r.m);
}

/* KiB that a group costs before it comes in place of one that is not used. */
static uint64_t price(reached_memory *r, uint64_t group) {
  uint64_t kib = 0;
  for (; !r->m.pages[group * GROUP_PAGES].valid; kib++) gpu_reads(r, group, 1);
  return kib;
}

/* Where others wait for the link, a group must have cost several times as much; less, when what went for others did not
 * come back; and as much again when it did. */
static void test_price(void **state) {
  reached_memory r;
  open_full(&r, 256, 64);
  assert_int_equal(price(&r, 64), 48);
  r.m.view.queued = UINT64_C(1) << 20;
  for (int i = 0; i < 100; i++) gpu_reads(&r, 156 + (uint64_t)i, 1); /* the mean of what waits follows */
  uint64_t busy = price(&r, 65), later = 0;
  assert_true(busy > 4 * 48);
  for (uint64_t group = 66; group < 100; group++) later = price(&r, group);
  assert_true(later < busy / 2);
  for (int round = 0; round < 4; round++)
    for (uint64_t group = 0; group < 100; group++) price(&r, group);
  for (uint64_t group = 0; r.m.pages[group * GROUP_PAGES].valid || (later = price(&r, group)) == 0; group++) continue;
  assert_true(later > 4 * 48);
  mini_close(&r.m);
}

/* What was never written comes without a transfer: only the rest of a group has a price. */
static void test_blank_is_cheap(void **state) {
  reached_memory r;
  open_full(&r, 256, 64);
  assert_int_equal(price(&r, 64), 48);
  for (uint64_t page = 4; page < GROUP_PAGES; page++) r.m.pages[65 * GROUP_PAGES + page].blank = true;
  assert_int_equal(price(&r, 65), 12); /* a quarter of it was written */
  for (uint64_t page = 0; page < GROUP_PAGES; page++) r.m.pages[66 * GROUP_PAGES + page].blank = true;
  assert_int_equal(price(&r, 66), 1);
  mini_close(&r.m);
}

/* Four groups, of which the pages in [first, end) were written, and no other. The GPU reaches the group for the first
 * time. */
static void open_written(mini *m, uint64_t capacity_pages, uint64_t first, uint64_t end) {
  open_auto(m, 1, capacity_pages);
  mini_allocate(m, MINI_BASE, 4 * FF_GROUP_BYTES);
  for (uint64_t page = 0; page < 4 * GROUP_PAGES; page++) m->pages[page].blank = page < first || page >= end;
}

/* Pages that come with the group. */
static uint64_t across(mini *m, uint64_t group) {
  uint64_t before = m->valid;
  m->proposals.count = 0;
  m->prefetch.policy->reached(m->prefetch.state, &m->view, MINI_BASE + group * FF_GROUP_BYTES, KB);
  mini_bring(m, false);
  return m->valid - before - GROUP_PAGES;
}

static uint64_t across_of(uint64_t capacity_pages, uint64_t first, uint64_t end, uint64_t group) {
  mini m;
  open_written(&m, capacity_pages, first, end);
  uint64_t pages = across(&m, group);
  for (uint64_t page = first; page < end && pages; page++) assert_true(m.pages[page].valid);
  mini_close(&m);
  return pages;
}

/* Of a group of which part was never written what was written in a row across its border comes with it, the rest of the
 * neighbour does not; if that is all of the neighbour, or there is no room for it, nothing of that. */
static void test_across_the_border(void **state) {
  assert_int_equal(across_of(MINI_ALL, 14, 19, 0), 3);
  assert_int_equal(across_of(MINI_ALL, 14, 19, 1), 2);
  assert_int_equal(across_of(MINI_ALL, 16 + 15, 16 + 20, 1), 4);
  assert_int_equal(across_of(MINI_ALL, 15, 16, 0), 0); /* it ends at the border */
  assert_int_equal(across_of(MINI_ALL, 16, 19, 0), 0); /* or begins there */
  assert_int_equal(across_of(MINI_ALL, 13, 16, 1), 0);
  assert_int_equal(across_of(MINI_ALL, 15, 31, 0), 15);
  assert_int_equal(across_of(MINI_ALL, 15, 32, 0), 0); /* the whole neighbour */
  assert_int_equal(across_of(MINI_ALL, 1, 17, 1), 15);
  assert_int_equal(across_of(MINI_ALL, 0, 17, 1), 0);
  assert_int_equal(across_of(MINI_ALL, 16, 33, 1), 0); /* nothing of the group is blank */
  assert_int_equal(across_of(GROUP_PAGES + 3, 14, 19, 0), 3);
  assert_int_equal(across_of(GROUP_PAGES + 2, 14, 19, 0), 0);
}

/* Written on both sides; and of the second the host has taken a page back, which must earn its place. */
static void test_across_both_borders(void **state) {
  for (int taken = 0; taken < 2; taken++) {
    mini m;
    open_written(&m, MINI_ALL, 14, 34);
    m.pages[20].blank = true; /* of group 1, which is reached */
    if (taken) {
      mini_arrive(&m, 47);
      m.view.by_host = true;
      mini_leave(&m, 47);
      m.view.by_host = false;
    }
    assert_int_equal(across(&m, 1), taken ? 2 : 4);
    assert_true(m.pages[14].valid && m.pages[33].valid == !taken && !m.pages[34].valid && !m.pages[13].valid);
    mini_close(&m);
  }
}

/* ---- what a decision costs ---- */

static uint64_t looks;
static uint64_t (*last_use)(const ff_view *view, uint64_t address, uint64_t bytes);
static uint64_t counted_last_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  looks++;
  return last_use(view, address, bytes);
}

static void test_cost_of_a_decision(void **state) {
  uint64_t most[2];
  for (int large = 0; large < 2; large++) {
    reached_memory r;
    open_full(&r, large ? 256 : 66, large ? 240 : 64);
    last_use = r.m.view.last_use;
    r.m.view.last_use = counted_last_use;
    most[large] = 0;
    for (int i = 0; i < 200; i++) {
      looks = 0;
      gpu_reads(&r, large ? 250 : 65, 1);
      if (looks > most[large]) most[large] = looks;
    }
    mini_close(&r.m);
  }
  assert_int_equal(most[0], most[1]);
  assert_true(most[0] > 0 && most[0] <= 64);
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

/* A dirty group is written back ahead when it has not been used for the time that a group takes over the link; of
 * several the one that has rested longest. */
static void test_cleaning(void **state) {
  const uint64_t us = 1000000;
  mini m;
  open_auto(&m, 2, MINI_ALL);
  m.view.group_time = 5 * us;
  mini_allocate(&m, MINI_BASE, 4 << 20);
  for (uint64_t page = 0; page < 1024; page += 16) mini_touch(&m, page);
  m.view.now += 100 * us;
  assert_int_equal(clean(&m), -1); /* nothing is dirty */
  for (uint64_t i = 0; i < 3; i++) {
    const uint64_t pages[] = {40, 600, 5};
    mini_use(&m, pages[i]);
    m.pages[pages[i]].dirty = true;
    m.view.now += us;
  }
  assert_int_equal(clean(&m), -1); /* 3 us at most */
  m.view.now += 5 * us - 3 * us - 1;
  assert_int_equal(clean(&m), 2); /* exactly 5 us; the next one rests for a microsecond less */
  assert_int_equal(clean(&m), -1);
  m.view.now += 10 * us;
  assert_int_equal(clean(&m), 37); /* of two the one that has rested longer */
  assert_int_equal(clean(&m), 0);
  assert_int_equal(clean(&m), -1);
  mini_close(&m);
}

/* Bytes that the idle link brings, at once. */
static uint64_t idle(mini *m) {
  m->proposals.count = 0;
  m->prefetch.policy->idle(m->prefetch.state, &m->view);
  return mini_bring(m, false);
}

static void launch(mini *m) {
  m->proposals.count = 0;
  m->prefetch.policy->launching(m->prefetch.state, &m->view, m->allocations.items, m->allocations.count);
}

/* What a launch declares comes at once if the link carries it in the time of a far-fault's service, or less; else group
 * by group. */
static void test_comes_at_once(void **state) {
  for (int more = 0; more < 2; more++) {
    mini m;
    open_auto(&m, 2, MINI_ALL);
    m.view.service_bytes = 512 * KB - more;
    mini_allocate(&m, MINI_BASE, 384 * KB);
    mini_allocate(&m, mini_address(256), 256 * KB);
    for (uint64_t page = 256; page < 288; page++) mini_arrive(&m, page); /* half of it is there */
    launch(&m);
    assert_int_equal(idle(&m), more ? 64 * KB : 512 * KB);
    assert_int_equal(idle(&m), more ? 64 * KB : 0);
    mini_close(&m);
  }
}

/* What there is room for comes at once, too, if that is four fifths of what is absent and the link carries it in the
 * time of a far-fault's service. */
static void test_room_is_filled_at_once(void **state) {
  for (int way = 0; way < 3; way++) {
    mini m;
    open_auto(&m, 2, 8 * GROUP_PAGES);
    m.view.service_bytes = 512 * KB - (way == 1);
    mini_allocate(&m, MINI_BASE, way == 2 ? 644 * KB : 640 * KB);
    launch(&m);
    assert_int_equal(idle(&m), way ? 64 * KB : 512 * KB);
    mini_close(&m);
  }
}

/* If not all fits that a launch declares, but all that must cross the link, and that within a far-fault's service: what
 * is blank of the smaller allocations that fit together is asked for when it begins. */
static void test_launch_asks_for_smaller(void **state) {
  mini m;
  open_auto(&m, 3, 20 * GROUP_PAGES);
  m.view.service_bytes = 8 * KB;
  mini_allocate(&m, MINI_BASE, 1 << 20);
  mini_allocate(&m, mini_address(512), 256 * KB);
  mini_allocate(&m, mini_address(1024), 512 * KB);
  for (uint64_t page = 0; page < 1536; page++) m.pages[page].blank = page != 3 && page != 200;
  launch(&m);
  assert_int_equal(m.proposals.count, 2);
  assert_int_equal(m.proposals.items[0].address, mini_address(512));
  assert_int_equal(m.proposals.items[1].address, mini_address(1024));
  m.pages[100].blank = false; /* a page more than the link carries meanwhile */
  launch(&m);
  assert_int_equal(m.proposals.count, 0);
  for (uint64_t page = 0; page < 160; page++) mini_arrive(&m, page); /* now there is room for the smallest only */
  launch(&m);
  assert_int_equal(m.proposals.count, 1);
  assert_int_equal(m.proposals.items[0].address, mini_address(512));
  mini_close(&m);
}

/* And what was written comes at once before what is blank, if all of it fits and comes within a far-fault's service. */
static void test_written_before_blank(void **state) {
  for (int less = 0; less < 2; less++) {
    mini m;
    open_auto(&m, 1, 16 * GROUP_PAGES);
    m.view.service_bytes = (less ? 11 : 12) * KB;
    mini_allocate(&m, MINI_BASE, 2 << 20);
    for (uint64_t page = 0; page < 512; page++) m.pages[page].blank = page != 5 && page != 100 && page != 511;
    launch(&m);
    uint64_t first = idle(&m);
    assert_int_equal(first, less ? 64 * KB : 12 * KB + 60 * KB); /* and the first group's blank ones, as always */
    assert_true(m.pages[5].valid && m.pages[511].valid == !less);
    mini_close(&m);
  }
}

/* If not all fits that a launch declares, the smaller allocations come first; those of one size side by side. */
static void test_smaller_first(void **state) {
  mini m;
  open_auto(&m, 3, 20 * GROUP_PAGES);
  mini_allocate(&m, MINI_BASE, 1 << 20);
  mini_allocate(&m, mini_address(512), 256 * KB);
  mini_allocate(&m, mini_address(1024), 256 * KB);
  launch(&m);
  for (int group = 0; group < 4; group++) assert_int_equal(idle(&m) + idle(&m), 128 * KB);
  assert_true(m.pages[512 + 63].valid && m.pages[1024 + 63].valid && !m.pages[0].valid);
  for (int group = 0; group < 12; group++) assert_int_equal(idle(&m), 64 * KB);
  assert_true(m.pages[12 * 16 - 1].valid && !m.pages[12 * 16].valid);
  assert_int_equal(idle(&m), 0);
  mini_close(&m);
}

/* Room for less than a group takes what is absent of one. */
static void test_last_pages(void **state) {
  mini m;
  open_auto(&m, 1, 10);
  mini_allocate(&m, MINI_BASE, 40 * KB);
  mini_arrive(&m, 9);
  launch(&m);
  assert_int_equal(idle(&m), 36 * KB);
  mini_close(&m);
}

/* What the host has touched in GPU memory does not come by itself again, nor anything of that allocation which no
 * launch declares; what the GPU then reaches of such a group over the link must be the way there and back. */
static void test_taken_back(void **state) {
  reached_memory r = {0};
  open_auto(&r.m, 1, MINI_ALL);
  mini_allocate(&r.m, MINI_BASE, 256 * KB);
  assert_int_equal(idle(&r.m), 64 * KB);
  r.m.view.by_host = true;
  for (uint64_t page = 0; page < 16; page++) mini_leave(&r.m, page);
  r.m.view.by_host = false;
  assert_int_equal(idle(&r.m), 0);
  launch(&r.m);
  for (int group = 1; group < 4; group++) assert_int_equal(idle(&r.m), 64 * KB);
  assert_int_equal(idle(&r.m), 0);
  assert_false(r.m.pages[0].valid);
  assert_int_equal(price(&r, 0), 128);
  mini_leave(&r.m, 0); /* evicted: that is another matter */
  launch(&r.m);
  assert_int_equal(idle(&r.m), 4 * KB);
  mini_close(&r.m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_state),
                                     cmocka_unit_test(test_idle_fills),
                                     cmocka_unit_test(test_launch_asks_for_blank_pages),
                                     cmocka_unit_test(test_stream_and_hot_set),
                                     cmocka_unit_test(test_loop_larger_than_memory),
                                     cmocka_unit_test(test_random_probes),
                                     cmocka_unit_test(test_other_phase),
                                     cmocka_unit_test(test_frontier),
                                     cmocka_unit_test(test_price),
                                     cmocka_unit_test(test_blank_is_cheap),
                                     cmocka_unit_test(test_across_the_border),
                                     cmocka_unit_test(test_across_both_borders),
                                     cmocka_unit_test(test_cost_of_a_decision),
                                     cmocka_unit_test(test_odd_allocations),
                                     cmocka_unit_test(test_cleaning),
                                     cmocka_unit_test(test_comes_at_once),
                                     cmocka_unit_test(test_room_is_filled_at_once),
                                     cmocka_unit_test(test_launch_asks_for_smaller),
                                     cmocka_unit_test(test_written_before_blank),
                                     cmocka_unit_test(test_smaller_first),
                                     cmocka_unit_test(test_last_pages),
                                     cmocka_unit_test(test_taken_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
