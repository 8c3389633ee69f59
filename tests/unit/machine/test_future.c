/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded future: which block uses which page when, the order of first touches, and the policies that ask for
 * it. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
#define NEVER TRACE_FUTURE_NEVER

/* ---- the table, against a naive one ---- */

enum { PAGES = 1200, BLOCKS = 40, LAUNCHES = 6 };

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

typedef struct naive {
  bool used[LAUNCHES * BLOCKS + 1][PAGES];
} naive;

static void write_random_block(trace_launch *l, uint64_t b, naive *n, uint64_t position, uint64_t *seed) {
  trace_chunk *chunk = trace_chunk_begin(l, b);
  for (uint32_t w = 0; w < l->warps_per_block; w++) {
    trace_writer writer;
    trace_chunk_writer(chunk, w, &writer);
    for (uint64_t accesses = next_random(seed) % 12; accesses-- > 0;) {
      uint32_t lines = 1 + (uint32_t)(next_random(seed) % 5);
      uint64_t *at = trace_put_access(&writer, TRACE_LOAD, 2, 0, 0, ~0u, lines);
      for (uint32_t i = 0; i < lines; i++) {
        uint64_t page = next_random(seed) % PAGES;
        at[i] = trace_line(PAGE(page) + next_random(seed) % 32 * 128, 4, 1);
        n->used[position][page] = true;
      }
      trace_put_issue(&writer, 3, 0, 0, 0);
    }
    trace_put_exit(&writer);
  }
  trace_chunk_publish(chunk);
}

static uint64_t naive_next(const naive *n, uint64_t first, uint64_t pages, uint64_t from) {
  for (uint64_t position = from; position <= LAUNCHES * BLOCKS; position++)
    for (uint64_t page = first; page < first + pages && page < PAGES; page++)
      if (n->used[position][page]) return position;
  return NEVER;
}

/* Launches are recorded in the order of the host, their blocks in any order. */
static void test_uses(void **state) {
  static naive n;
  uint64_t seed = 1;
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_future *f = trace_future_create();
  trace_launch *launches[LAUNCHES];
  for (uint64_t l = 0; l < LAUNCHES; l++) {
    launches[l] = trace_launch_create(program, BLOCKS, 2);
    trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launches[l]});
    for (uint64_t b = 0; b < BLOCKS; b++) write_random_block(launches[l], b, &n, l * BLOCKS + b, &seed);
    if (l == 3) { /* a copy before it counts as its first block's */
      trace_future_range(f, PAGE(7) + 100, 2 * 4096);
      for (int page = 7; page < 10; page++) n.used[3 * BLOCKS][page] = true;
    }
    trace_future_launch(f, launches[l]);
  }
  trace_chunk *chunks[LAUNCHES][BLOCKS];
  for (uint64_t l = 0; l < LAUNCHES; l++)
    for (uint64_t b = 0; b < BLOCKS; b++) chunks[l][b] = trace_reader_chunk(reader, launches[l], b);
  for (uint64_t i = 0; i < LAUNCHES * BLOCKS; i++) { /* 77 and 240 have no common factor */
    uint64_t at = i * 77 % (LAUNCHES * BLOCKS), l = at / BLOCKS, b = at % BLOCKS;
    trace_future_block(f, reader, chunks[l][b], launches[l], b);
    assert_int_equal(trace_future_position(f, launches[l], b), at);
  }
  trace_future_complete(f);
  trace_future_wait(f);
  for (int i = 0; i < 200000; i++) {
    uint64_t first = next_random(&seed) % PAGES, pages = i % 3 ? 1 : 1 + next_random(&seed) % 600,
             from = next_random(&seed) % (LAUNCHES * BLOCKS);
    assert_int_equal(
        trace_future_next_use(f, PAGE(first) + (pages == 1 ? i % 4096 : 0), pages == 1 ? 1 : pages * 4096, from),
        naive_next(&n, first, pages, from));
  }
  assert_int_equal(trace_future_next_use(f, PAGE(1 << 20), 64 << 20, 0), NEVER);
  assert_int_equal(trace_future_next_use(f, PAGE(0), 0, 0), NEVER);
  assert_int_equal(trace_future_first_touch(f, 0), NEVER);
  for (uint64_t l = 0; l < LAUNCHES; l++) {
    for (uint64_t b = 0; b < BLOCKS; b++) trace_reader_release(reader, chunks[l][b]);
    trace_launch_finish(launches[l]);
  }
  trace_reader_free(reader);
  trace_program_free(program);
  trace_future_free(f);
}

/* ---- through simulations ---- */

typedef struct pages {
  const uint32_t *page;
  uint32_t count;
} pages; /* block b reads page[b] */
static void read_one(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const pages *p = context;
  rig_load_wait(w, PAGE(p->page[block]));
}
static void start(rig *r, const char *manager, const char *evict, uint64_t memory) {
  rig_open(r, manager);
  r->evict = evict;
  r->gpu_memory = memory;
  r->spec.sm_count = 1;
  r->spec.max_blocks = 1;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
}

/* Belady's MIN by its definition: how often the sequence misses with so many frames. */
static uint64_t min_misses(const uint32_t *page, uint32_t count, uint32_t frames) {
  uint32_t held[64], used = 0;
  uint64_t misses = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t victim = 0, farthest = 0;
    bool hit = false;
    for (uint32_t f = 0; f < used && !hit; f++) {
      uint32_t next = i + 1;
      hit = held[f] == page[i];
      while (next < count && page[next] != held[f]) next++;
      if (next > farthest) {
        farthest = next;
        victim = f;
      }
    }
    if (hit) continue;
    misses++;
    held[used < frames ? used++ : victim] = page[i];
  }
  return misses;
}

/* One block at a time, 16 pages of memory, a loop over 17: LRU misses always, MIN about once in 16. */
static void test_belady_on_a_loop(void **state) {
  uint32_t order[17 * 9];
  for (uint32_t i = 0; i < 17 * 9; i++) order[i] = i % 17;
  uint64_t faults[2];
  static const char *const evictors[] = {"lru", "belady"};
  for (int e = 0; e < 2; e++) {
    rig r;
    start(&r, "replay", evictors[e], 16 * 4096);
    rig_launch(&r, (rig_kernel){.blocks = 17 * 9, .warps = 1, .warp = read_one, .context = &(pages){order, 17 * 9}});
    faults[e] = rig_finish(&r)->counters.faults;
    rig_close(&r);
  }
  assert_int_equal(faults[0], 17 * 9);
  assert_int_equal(faults[1], min_misses(order, 17 * 9, 16));
}

static void test_belady_on_random_pages(void **state) {
  static uint32_t order[600];
  uint64_t seed = 5;
  for (uint32_t i = 0; i < 600; i++) order[i] = (uint32_t)(next_random(&seed) % 40);
  rig r;
  start(&r, "replay", "belady", 24 * 4096);
  rig_launch(&r, (rig_kernel){.blocks = 600, .warps = 1, .warp = read_one, .context = &(pages){order, 600}});
  assert_int_equal(rig_finish(&r)->counters.faults, min_misses(order, 600, 24));
  rig_close(&r);
}

/* The pages are asked for from the kernel's begin on, so the first access finds its page on its way: no far-fault. */
static void test_oracle_brings_in_order_of_first_touch(void **state) {
  static const uint32_t order[] = {9, 3, 4, 3, 5, 200, 201};
  rig r;
  start(&r, "oracle", NULL, 0);
  rig_launch(&r, (rig_kernel){.blocks = 7, .warps = 1, .warp = read_one, .context = &(pages){order, 7}});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 0);
  assert_int_equal(c->h2d_bytes, 6 * 4096);
  assert_int_equal(c->prefetched_bytes, 6 * 4096);
  assert_int_equal(c->prefetched_unused_bytes, 0);
  for (uint64_t i = 0; i < 6; i++) {
    static const uint32_t first[] = {9, 3, 4, 5, 200, 201};
    assert_int_equal(trace_future_first_touch(r.future, i), PAGE(first[i]));
  }
  assert_int_equal(trace_future_first_touch(r.future, 6), NEVER);
  rig_close(&r);
}

/* What the GPU sets and copies is a use of its range, at the position of the launch that follows. */
static void test_sets_and_copies_are_uses(void **state) {
  static const uint32_t order[] = {0, 1};
  rig r;
  start(&r, "replay", "belady", 0);
  rig_launch(&r, (rig_kernel){.blocks = 2, .warps = 1, .warp = read_one, .context = &(pages){order, 2}});
  rig_set(&r, PAGE(40), 4096);
  rig_copy(&r, TRACE_D2D, PAGE(60), PAGE(50), 8192, true, 0);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_one, .context = &(pages){order, 2}});
  rig_finish(&r);
  static const struct {
    uint32_t page;
    uint64_t from, next;
  } expected[] = {{0, 0, 0},  {0, 1, 2},  {1, 0, 1},      {1, 2, NEVER}, {40, 0, 2}, {41, 0, NEVER},
                  {50, 0, 2}, {51, 1, 2}, {52, 0, NEVER}, {60, 0, 2},    {61, 2, 2}, {62, 0, NEVER}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    assert_int_equal(trace_future_next_use(r.future, PAGE(expected[i].page), 4096, expected[i].from), expected[i].next);
  pager *p = r.sim->pager;
  assert_int_equal(p->position, 3); /* all three blocks are over */
  assert_int_equal(p->position_last, 2);
  p->position = p->position_last = 0;
  assert_int_equal(p->view.next_use(&p->view, PAGE(1), 4096), 1);
  p->position_last = 1; /* if block 1 runs in parallel with block 0, what it uses is used now */
  assert_int_equal(p->view.next_use(&p->view, PAGE(1), 4096), 0);
  assert_int_equal(p->view.next_use(&p->view, PAGE(40), 4096), 2);
  rig_close(&r);
}

/* A simulation that waits for the end holds nothing up: many operations, and records far beyond the budget. */
static void test_deferred_reader_holds_nobody_up(void **state) {
  static uint32_t order[4000];
  for (uint32_t i = 0; i < 4000; i++) order[i] = i * 7 % 200;
  rig r;
  rig_open(&r, "replay");
  r.evict = "belady";
  r.gpu_memory = 64 * 4096;
  r.budget = 1 << 16;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 4000, .warps = 1, .warp = read_one, .context = &(pages){order, 4000}});
  trace_usage usage = trace_program_usage(r.program);
  assert_true(usage.spilled_bytes > 0);
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->accesses, 4000);
  assert_true(c->faults >= 200 && c->evicted_bytes > 0);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_uses),
                                     cmocka_unit_test(test_belady_on_a_loop),
                                     cmocka_unit_test(test_belady_on_random_pages),
                                     cmocka_unit_test(test_oracle_brings_in_order_of_first_touch),
                                     cmocka_unit_test(test_sets_and_copies_are_uses),
                                     cmocka_unit_test(test_deferred_reader_holds_nobody_up)};
  ff_check_level = 2;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
