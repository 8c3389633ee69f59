/* SPDX-License-Identifier: Apache-2.0 */
/* Evictors against naive ones under random operations, and where their orders must differ. A naive evictor scans all
 * units for the smallest key; keys are written down here by the rules, from what happened. */
#include "policy_view.h"

#include <malloc.h>
#include <time.h>

enum { BLOCKS = 3, PAGES = BLOCKS * FF_BLOCK_PAGES };

typedef enum rule { LRU, FIFO, LIFO, LRM, BELADY } rule;
static const char *const names[] = {
    [LRU] = "lru", [FIFO] = "fifo", [LIFO] = "lifo", [LRM] = "lrm", [BELADY] = "belady"};

/* What a naive evictor knows. */
typedef struct naive {
  /* per unit: arrival (first of its stay, latest), use or arrival */
  uint64_t first[PAGES], latest[PAGES], recent[PAGES];
  uint64_t arrivals;
} naive;

static bool unit_has(const mini *m, uint32_t unit, uint32_t pages, bool evictable) {
  for (uint32_t i = unit * pages; i < (unit + 1) * pages; i++)
    if (m->pages[i].valid && !(evictable && m->pages[i].moving)) return true;
  return false;
}

static uint64_t key_of(const mini *m, const naive *n, rule rule, uint32_t unit, uint32_t pages) {
  switch (rule) {
  case LRU: return n->recent[unit];
  case FIFO: return n->first[unit];
  case LIFO: return ~n->first[unit];
  case LRM: return n->latest[unit];
  default: return ~mini_next_use(&m->view, mini_address(unit * pages), pages * FF_PAGE_BYTES);
  }
}

static void arrive(mini *m, naive *n, uint32_t page, uint32_t pages) {
  uint32_t unit = page / pages;
  if (!unit_has(m, unit, pages, false)) n->first[unit] = n->arrivals + 1;
  n->latest[unit] = ++n->arrivals;
  n->recent[unit] = m->view.now;
  mini_arrive(m, page);
}

/* Asks for `wanted` pages and checks every page of the answer, in order. */
static void check_eviction(mini *m, const naive *n, rule rule, uint32_t pages, uint64_t wanted) {
  static bool taken[PAGES];
  memset(taken, 0, sizeof taken);
  mini_ask_evictor(m, wanted);
  uint64_t count = 0;
  size_t proposal = 0;
  uint64_t at = 0; /* page within the proposal */
  while (count < wanted) {
    uint32_t victim = UINT32_MAX;
    for (uint32_t u = 0; u < PAGES / pages; u++) {
      if (taken[u] || !unit_has(m, u, pages, true)) continue;
      if (victim == UINT32_MAX || key_of(m, n, rule, u, pages) < key_of(m, n, rule, victim, pages)) victim = u;
    }
    if (victim == UINT32_MAX) break;
    taken[victim] = true;
    for (uint32_t p = victim * pages; p < (victim + 1) * pages; p++) {
      if (!m->pages[p].valid || m->pages[p].moving) continue;
      assert_true(proposal < m->proposals.count);
      assert_int_equal(m->proposals.items[proposal].address + at * FF_PAGE_BYTES, mini_address(p));
      if (++at * FF_PAGE_BYTES == m->proposals.items[proposal].bytes) {
        proposal++;
        at = 0;
      }
      count++;
    }
  }
  assert_int_equal(proposal, m->proposals.count);
  assert_int_equal(at, 0);
}

static uint64_t below(mini *m, uint64_t n) { return mini_random(&m->view) % n; }

/* Thousands of arrivals, uses, evictions, pages that leave for other reasons, pages on their way. A far-fault moves
 * `moved` bytes. */
static void operations_that_move(uint64_t moved, rule rule, uint32_t pages, const char *unit_name, int steps) {
  static naive n;
  static uint32_t future[6000];
  char text[32];
  mini m;
  memset(&n, 0, sizeof n);
  mini_open(&m, BLOCKS, MINI_ALL);
  m.view.unit_bytes = moved;
  for (size_t i = 0; i < 6000; i++) future[i] = (uint32_t)below(&m, PAGES - 200); /* the last 200 are never used */
  m.future = future;
  m.future_count = 6000;
  snprintf(text, sizeof text, "%s:%s", names[rule], unit_name);
  mini_evictor(&m, text);
  mini_allocate(&m, MINI_BASE, PAGES * FF_PAGE_BYTES);
  for (int step = 0; step < steps; step++) {
    uint32_t page = (uint32_t)below(&m, PAGES), what = (uint32_t)below(&m, 100);
    m.view.now += below(&m, 2); /* equal times are common */
    if (what < 45 && !m.pages[page].valid) arrive(&m, &n, page, pages);
    else if (what < 80 && m.position < m.future_count && m.pages[future[m.position]].valid) {
      page = future[m.position++];
      mini_use(&m, page);
      n.recent[page / pages] = m.view.now;
    } else if (what < 84 && m.pages[page].valid) mini_set_moving(&m, page, !m.pages[page].moving);
    else if (what < 88 && m.pages[page].valid && !m.pages[page].moving)
      mini_leave(&m, page); /* taken back by the host */
    else if (what < 92) m.position += m.position < m.future_count && !m.pages[future[m.position]].valid;
    else if (step % 8 == 0) {
      check_eviction(&m, &n, rule, pages, 1 + below(&m, 40));
      if (below(&m, 4)) mini_carry_out(&m); /* else it was only a proposal, and everything stays */
    }
  }
  assert_true(m.evicted > 100);
  mini_close(&m);
}

static void random_operations(rule rule, uint32_t pages, const char *unit_name, int steps) {
  operations_that_move(FF_PAGE_BYTES, rule, pages, unit_name, steps);
}

static void test_lru(void **state) {
  random_operations(LRU, 1, "4K", 10000);
  random_operations(LRU, 16, "64K", 20000);
  random_operations(LRU, 512, "2M", 5000);
}
static void test_fifo(void **state) {
  random_operations(FIFO, 1, "4K", 10000);
  random_operations(FIFO, 16, "64K", 20000);
  random_operations(FIFO, 512, "2M", 5000);
}
static void test_lifo(void **state) {
  random_operations(LIFO, 1, "4K", 10000);
  random_operations(LIFO, 16, "64K", 20000);
  random_operations(LIFO, 512, "2M", 5000);
}
static void test_lrm(void **state) {
  random_operations(LRM, 1, "4K", 10000);
  random_operations(LRM, 16, "64K", 20000);
  random_operations(LRM, 512, "2M", 5000);
}
static void test_belady(void **state) {
  random_operations(BELADY, 1, "4K", 3000);
  random_operations(BELADY, 16, "64K", 8000);
  random_operations(BELADY, 512, "2M", 5000);
}

/* A smaller unit than what moves as one would name each piece of it apart. */
static void test_what_moves_as_one_is_one_unit(void **state) {
  for (rule rule = LRU; rule <= BELADY; rule++) {
    operations_that_move(FF_GROUP_BYTES, rule, 16, "4K", 8000);
    operations_that_move(FF_BLOCK_BYTES, rule, 512, "64K", 3000);
    operations_that_move(FF_GROUP_BYTES, rule, 512, "2M", 3000);
  }
}

/* The random and the tree evictor: whatever they propose is there and can go, it is enough, and nothing is named
 * twice. */
static void test_proposals_are_sound(void **state) {
  static const char *const policies[] = {"random", "random:64K", "random:2M", "tree"};
  for (int p = 0; p < 4; p++) {
    mini m;
    mini_open(&m, BLOCKS, MINI_ALL);
    mini_evictor(&m, policies[p]);
    mini_allocate(&m, MINI_BASE + 12345, FF_BLOCK_BYTES + 100 * KB);
    mini_allocate(&m, MINI_BASE + FF_BLOCK_BYTES + 200 * KB, FF_BLOCK_BYTES / 2);
    for (int step = 0; step < 20000; step++) {
      uint32_t page = (uint32_t)below(&m, PAGES), what = (uint32_t)below(&m, 100);
      m.view.now += below(&m, 2);
      if (what < 60 && m.pages[page].mapped && !m.pages[page].valid) mini_arrive(&m, page);
      else if (what < 90 && m.pages[page].valid) mini_use(&m, page);
      else if (what < 94 && m.pages[page].valid) mini_set_moving(&m, page, !m.pages[page].moving);
      else if (what < 97 && step % 8 == 0) {
        uint64_t wanted = 1 + below(&m, 40), can = 0;
        for (uint32_t i = 0; i < PAGES; i++) can += m.pages[i].valid && !m.pages[i].moving;
        mini_ask_evictor(&m, wanted);
        assert_true(mini_carry_out(&m) >= (wanted < can ? wanted : can)); /* mini_leave refuses what is not there */
      }
    }
    assert_true(m.evicted > 100);
    mini_close(&m);
  }
}

/* ---- differences ---- */

static uint32_t victim(mini *m) { /* its first page */
  mini_ask_evictor(m, 1);
  assert_true(m->proposals.count >= 1);
  return (uint32_t)((m->proposals.items[0].address - MINI_BASE) / FF_PAGE_BYTES);
}

/* Blocks 0, 1, 2 come in this order; then block 0 is used, and block 1 gets a second page. */
static void test_orders_differ_where_they_must(void **state) {
  static const struct {
    const char *policy;
    uint32_t block;
  } expected[] = {
      {"lru:2M", 2}, {"fifo:2M", 0}, {"lifo:2M", 2}, {"lrm", 0}, {"lrm:2M", 0},
  };
  for (int i = 0; i < 5; i++) {
    mini m;
    mini_open(&m, BLOCKS, MINI_ALL);
    mini_evictor(&m, expected[i].policy);
    mini_allocate(&m, MINI_BASE, BLOCKS * FF_BLOCK_BYTES);
    for (uint32_t b = 0; b < BLOCKS; b++) {
      mini_arrive(&m, b * FF_BLOCK_PAGES);
      m.view.now++;
    }
    mini_use(&m, 0);
    m.view.now++;
    mini_arrive(&m, FF_BLOCK_PAGES + 7);
    /* a hit does not save block 0 from fifo and lrm */
    assert_int_equal(victim(&m), expected[i].block * FF_BLOCK_PAGES);
    mini_arrive(&m, 9);
    /* its second page does from lrm */
    assert_int_equal(victim(&m) / FF_BLOCK_PAGES, !strncmp(expected[i].policy, "fifo", 4) ? 0 : 2);
    mini_close(&m);
  }
}

static void test_a_page_that_has_just_come_is_not_the_victim_of_lru(void **state) {
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_evictor(&m, "lru");
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  m.view.now = 100;
  mini_arrive(&m, 0);
  mini_use(&m, 0);
  m.view.now = 200;
  mini_arrive(&m, 1); /* prefetched: never used */
  assert_int_equal(victim(&m), 0);
  mini_use(&m, 0);
  assert_int_equal(victim(&m), 1);
  mini_close(&m);
}

/* The classical string 1 2 3 4 1 2 5 1 2 3 4 5 in three frames: FIFO 9 faults, LRU 10, LIFO 8, Belady 7. */
static void test_textbook_string(void **state) {
  static const uint32_t uses[] = {1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5};
  static const struct {
    const char *policy;
    uint32_t frames;
    uint64_t faults;
  } expected[] = {
      {"fifo", 3, 9},   {"fifo", 4, 10},  {"lru", 3, 10}, {"lru", 4, 8},  {"belady", 3, 7},
      {"belady", 4, 6}, {"lrm:4K", 3, 9}, {"lifo", 3, 8}, {"lifo", 4, 7},
  };
  for (int i = 0; i < 9; i++) {
    mini m;
    mini_open(&m, 1, expected[i].frames);
    mini_evictor(&m, expected[i].policy);
    mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
    m.future = uses;
    m.future_count = 12;
    for (uint32_t u = 0; u < 12; u++) {
      m.position = u + 1;
      mini_touch(&m, uses[u]);
    }
    assert_int_equal(m.faults, expected[i].faults);
    mini_close(&m);
  }
}

static void test_random_reaches_every_page(void **state) {
  uint32_t hits[64] = {0};
  mini m;
  mini_open(&m, 1, MINI_ALL);
  mini_evictor(&m, "random");
  mini_allocate(&m, MINI_BASE, FF_BLOCK_BYTES);
  for (uint32_t i = 0; i < 64; i++) mini_arrive(&m, i);
  for (int i = 0; i < 6400; i++) hits[victim(&m)]++;
  for (uint32_t i = 0; i < 64; i++) assert_in_range(hits[i], 50, 160); /* 100 expected, sigma 10 */
  mini_close(&m);
}

/* ---- what is in the way ---- */

static uint64_t looks;
static void counting_block(const ff_view *view, uint64_t address, ff_block *block) {
  looks++;
  mini_block(view, address, block);
}

/* A thousand pages that cannot go are older than one that can. They are looked at once at most, and again only when
 * they have settled. */
static void test_what_is_in_the_way_is_not_walked_again(void **state) {
  static const char *const policies[] = {"lru", "fifo", "lifo", "lrm:4K", "random", "belady", "tree"};
  static const uint32_t one[] = {BLOCKS * FF_BLOCK_PAGES - 1};
  for (int i = 0; i < 7; i++) {
    mini m;
    mini_open(&m, BLOCKS, MINI_ALL);
    m.view.block = counting_block;
    m.future = one;
    m.future_count = 1;
    mini_evictor(&m, policies[i]);
    mini_allocate(&m, MINI_BASE, BLOCKS * FF_BLOCK_BYTES);
    for (uint32_t page = 0; page < 1024; page++) {
      mini_arrive(&m, page);
      mini_set_moving(&m, page, true);
      m.view.now++;
    }
    mini_arrive(&m, 1024);
    looks = 0;
    for (int asked = 0; asked < 100; asked++) assert_int_equal(victim(&m), 1024);
    assert_in_range(looks, 100, 1024 + 100 * 2);
    mini_set_moving(&m, 7, false);
    if (!strcmp(policies[i], "lifo")) assert_int_equal(victim(&m), 1024);
    else if (strcmp(policies[i], "random")) assert_int_equal(victim(&m), 7);
    mini_set_moving(&m, 1024, true);
    assert_int_equal(victim(&m), 7);
    mini_close(&m);
  }
}

/* ---- size ---- */

static uint64_t last_victim, victims;

/* A view of which only what LRU asks is real: everything is there but the last victim; the use of a page is a function
 * of its number. */
static void all_there(const ff_view *view, uint64_t address, ff_block *block) {
  memset(block, 0, sizeof *block);
  memset(&block->mapped, 0xff, sizeof block->mapped);
  memset(&block->valid, 0xff, sizeof block->valid);
  uint64_t page = last_victim / FF_PAGE_BYTES % FF_BLOCK_PAGES;
  if (last_victim / FF_BLOCK_BYTES == address / FF_BLOCK_BYTES)
    block->valid.word[page / 64] &= ~(UINT64_C(1) << page % 64);
}
static uint64_t some_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  return (address / FF_PAGE_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 40) + view->capacity;
}
static void note(ff_view *view, uint64_t address, uint64_t bytes) {
  last_victim = address;
  victims += bytes / FF_PAGE_BYTES;
}

static size_t allocated(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/* Half a million pages (2 GiB): each page is looked at a few times, not once per victim, and takes less than a byte, or
 * some 20 bytes once all have been used in no order. */
static void test_many_pages(void **state) {
  enum { MANY = 512 << 10 };
  ff_policy_instance lru;
  ff_view view = {.unit_bytes = FF_PAGE_BYTES, .block = all_there, .last_use = some_use, .propose = note};
  size_t before = allocated();
  mini_choose(POLICY_EVICT, "lru", &lru);
  for (uint64_t page = 0; page < MANY; page += 512)
    lru.policy->arrived(lru.state, &view, MINI_BASE + page * FF_PAGE_BYTES, FF_BLOCK_BYTES);
  assert_in_range(allocated() - before, 0, (size_t)MANY);
  uint64_t previous = 0;
  last_victim = 0;
  for (int i = 0; i < 2000; i++) {
    if (i == 1000) view.capacity = UINT64_C(1) << 40; /* all pages have been used since */
    victims = 0;
    lru.policy->evict(lru.state, &view, FF_PAGE_BYTES);
    assert_int_equal(victims, 1);
    uint64_t use = some_use(&view, last_victim, FF_PAGE_BYTES);
    assert_true(use >= previous);
    previous = use;
    lru.policy->left(lru.state, &view, last_victim, FF_PAGE_BYTES);
  }
  size_t bytes = allocated() - before;
  assert_in_range(bytes, bytes ? (size_t)MANY * 16 : 0, (size_t)MANY * 40); /* a sanitizer's allocator reports 0 */
  policy_close(&lru);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lru),
      cmocka_unit_test(test_fifo),
      cmocka_unit_test(test_lifo),
      cmocka_unit_test(test_lrm),
      cmocka_unit_test(test_belady),
      cmocka_unit_test(test_what_moves_as_one_is_one_unit),
      cmocka_unit_test(test_proposals_are_sound),
      cmocka_unit_test(test_orders_differ_where_they_must),
      cmocka_unit_test(test_a_page_that_has_just_come_is_not_the_victim_of_lru),
      cmocka_unit_test(test_textbook_string),
      cmocka_unit_test(test_random_reaches_every_page),
      cmocka_unit_test(test_what_is_in_the_way_is_not_walked_again),
      cmocka_unit_test(test_many_pages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
