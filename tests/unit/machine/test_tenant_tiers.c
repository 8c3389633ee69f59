/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory that several programs on one GPU share: one table of places, one drive, which serves requests
 * in the order of time, whosever they are. The drive reads 4 GB/s (a page of 4 KiB in 1024 ns) and writes 2 GB/s (2048
 * ns), 100 us after it was asked. */
#include "tenants.h"

#define PAGE UINT64_C(4096)
#define READ_PS (1024 * NS)
#define WRITE_PS (2048 * NS)
#define LATENCY (100 * US)
#define PAUSE_US UINT64_C(5000) /* of a call that does nothing else */

enum { PAGES = 512 };
#define BYTES (PAGES * PAGE)

static void start(bench *b, sim_isolation isolation, uint64_t host_memory, uint64_t drive) {
  bench_open(b, isolation, 2);
  b->manager = "replay";
  b->spec.api_us = 0;
  b->spec.fault_us = 0;
  b->spec.host_memory_bytes = host_memory;
  b->spec.below_host = (machine_tier_table){
      .count = 1,
      .tiers = {
          {.name = "drive", .bytes = drive, .unit_bytes = 4096, .read_gbs = 4, .write_gbs = 2, .latency_us = 100}}};
}

static const sim_tier *of_host(const bench *b, uint32_t i) { return &b->lanes[i].r.result.tiers.of[0]; }
static const sim_tier *of_drive(const bench *b, uint32_t i) { return &b->lanes[i].r.result.tiers.of[1]; }
static ps time_of(const bench *b, uint32_t i) { return b->lanes[i].r.result.counters.time_ps; }

static const plan_step writes[] = {
    {.kind = PLAN_ALLOC, .bytes = BYTES}, {.kind = PLAN_H2D, .bytes = BYTES}, {.kind = PLAN_END}};

/* Both write N bytes at the beginning, of which the host's memory holds 16 pages. The second one's pages wait behind
 * the first one's. */
static void test_the_drive_serves_one_after_the_other(void **state) {
  bench b;
  start(&b, SIM_ISOLATION_MPS, 16 * PAGE, 1 << 30);
  b.lanes[0].plan = b.lanes[1].plan = writes;
  bench_run(&b);
  assert_int_equal(time_of(&b, 0), LATENCY + (PAGES - 16) * WRITE_PS);
  assert_int_equal(time_of(&b, 1), LATENCY + (PAGES - 16 + PAGES) * WRITE_PS);
  assert_int_equal(of_drive(&b, 0)->written_bytes, (PAGES - 16) * PAGE);
  assert_int_equal(of_drive(&b, 1)->written_bytes, PAGES * PAGE);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(of_host(&b, i)->peak_bytes, 16 * PAGE);
    assert_int_equal(of_drive(&b, i)->peak_bytes, (2 * PAGES - 16) * PAGE);
  }
  bench_close(&b);
}

/* The host's memory holds what one of them writes: the first one's pages go down for the second one's. The first one's
 * host copies four of them later: they come up, and as many of the second one's go down, unless that is over: then
 * there is room. */
static void test_one_program_sends_the_others_pages_down(void **state) {
  static const plan_step stays[] = {{.kind = PLAN_ALLOC, .bytes = BYTES},
                                    {.kind = PLAN_H2D, .bytes = BYTES},
                                    {.kind = PLAN_HOST},
                                    {.kind = PLAN_HOST},
                                    {.kind = PLAN_END}};
  static const plan_step copies[] = {{.kind = PLAN_ALLOC, .bytes = BYTES},
                                     {.kind = PLAN_H2D, .bytes = BYTES},
                                     {.kind = PLAN_HOST},
                                     {.kind = PLAN_D2H, .bytes = 4 * PAGE},
                                     {.kind = PLAN_END}};
  static const plan_step short_one[] = {
      {.kind = PLAN_ALLOC, .bytes = BYTES}, {.kind = PLAN_H2D, .bytes = BYTES}, {.kind = PLAN_END}};
  for (uint32_t over = 0; over < 2; over++) {
    bench b;
    start(&b, SIM_ISOLATION_MPS, BYTES, 1 << 30);
    b.spec.api_us = (double)PAUSE_US;
    b.lanes[0].plan = copies;
    b.lanes[1].plan = over ? short_one : stays;
    bench_run(&b);
    /* each copy is a call, too */
    assert_int_equal(time_of(&b, 0), 3 * PAUSE_US * US + LATENCY + 4 * (over ? READ_PS : WRITE_PS));
    assert_int_equal(of_drive(&b, 0)->read_bytes, 4 * PAGE);
    assert_int_equal(of_drive(&b, 0)->written_bytes, over ? 0 : 4 * PAGE);
    assert_int_equal(of_drive(&b, 1)->written_bytes, BYTES);
    assert_int_equal(of_drive(&b, 1)->wait_ps, LATENCY + PAGES * WRITE_PS);
    bench_close(&b);
  }
}

static void test_memory_that_no_tier_holds(void **state) {
  bench b;
  start(&b, SIM_ISOLATION_MPS, BYTES, BYTES / 2);
  b.fails = true;
  b.spec.api_us = (double)PAUSE_US; /* both have allocated before one of them is over */
  b.lanes[0].plan = b.lanes[1].plan = writes;
  bench_run(&b);
  assert_string_equal(b.lanes[0].r.result.error, "");
  assert_non_null(strstr(b.lanes[1].r.result.error, "there are 4.00 MiB of pages, but the host's memory and the tiers "
                                                    "below it hold 3.00 MiB"));
  bench_close(&b);
}

/* What a program had is free for others when it is over. */
static void test_room_after_a_program(void **state) {
  static const plan_step late[] = {{.kind = PLAN_HOST, .repeat = 8},
                                   {.kind = PLAN_ALLOC, .bytes = BYTES},
                                   {.kind = PLAN_H2D, .bytes = BYTES},
                                   {.kind = PLAN_END}};
  bench b;
  start(&b, SIM_ISOLATION_MPS, BYTES, BYTES / 2);
  b.spec.api_us = (double)PAUSE_US;
  b.lanes[0].plan = writes;
  b.lanes[1].plan = late;
  bench_run(&b);
  assert_true(time_of(&b, 0) < 8 * PAUSE_US * US);
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(of_host(&b, i)->peak_bytes, BYTES);
  bench_close(&b);
}

/* ---- kernels of all, under each isolation ---- */

static void use_pages(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 8; n++) {
    rig_load_wait(w, RIG_BASE + (b * 8 + n) * PAGE);
    if (n % 2) rig_store(w, RIG_BASE + (b * 8 + n) * PAGE);
  }
}
static const plan_step busy[] = {{.kind = PLAN_ALLOC, .bytes = BYTES},
                                 {.kind = PLAN_H2D, .bytes = BYTES},
                                 {.kind = PLAN_KERNEL, .kernel = {.blocks = PAGES / 8, .warps = 1, .warp = use_pages}},
                                 {.kind = PLAN_SYNC},
                                 {.kind = PLAN_D2H, .bytes = BYTES / 2},
                                 {.kind = PLAN_KERNEL, .kernel = {.blocks = PAGES / 8, .warps = 1, .warp = use_pages}},
                                 {.kind = PLAN_SYNC},
                                 {.kind = PLAN_END}};

static uint64_t held; /* in the tiers when all is over */
static void see_places(bench *b) {
  tiers *t = b->device ? b->lanes[0].r.sim->d->whole->tiers.places : NULL;
  held = 0;
  for (uint32_t i = 0; t && i < 2; i++) held += tiers_of(t, i)->used;
}

/* The other program loops, its places are free after each round; the same numbers however fast each one's thread is. */
static void test_beside_a_program_that_loops(void **state) {
  static const sim_isolation isolations[] = {SIM_ISOLATION_NONE, SIM_ISOLATION_MPS, SIM_ISOLATION_SM};
  for (size_t n = 0; n < sizeof isolations / sizeof *isolations; n++) {
    sim_result first[2];
    for (uint32_t again = 0; again < 2; again++) {
      bench b;
      start(&b, isolations[n], BYTES / 2, 1 << 30);
      b.inspect = see_places;
      b.jitter = again;
      for (uint32_t i = 0; i < 2; i++) {
        b.lanes[i].plan = busy;
        b.lanes[i].given = (sim_tenant){.sm_first = i ? 7 : 0,
                                        .sm_count = i ? 8 : 7,
                                        .colours = UINT64_MAX,
                                        .thread_share = 0.5,
                                        .memory_bytes = 2 << 20,
                                        .loops = i == 1};
      }
      bench_run(&b);
      assert_true(of_drive(&b, 0)->read_bytes > 0);
      assert_true(of_drive(&b, 0)->wait_ps > 0);
      assert_true(of_host(&b, 0)->peak_bytes <= BYTES / 2);
      assert_true(b.lanes[1].passes > 0 || of_drive(&b, 1)->written_bytes > 0);
      assert_int_equal(held, 0);
      for (uint32_t i = 0; i < 2; i++) {
        if (again) {
          counters_equal(&b.lanes[i].r.result.counters, &first[i].counters);
          assert_memory_equal(&b.lanes[i].r.result.tiers, &first[i].tiers, sizeof first[i].tiers);
        }
        first[i] = b.lanes[i].r.result;
      }
      bench_close(&b);
    }
  }
}

/* Of a program that loops only kernels count: what its copies send down takes nothing of the drive. A round is eight
 * far-faults one after the other on what its copy has sent there. */
static void test_copies_of_a_program_that_loops(void **state) {
  static const plan_step round[] = {{.kind = PLAN_ALLOC, .bytes = BYTES},
                                    {.kind = PLAN_H2D, .bytes = BYTES},
                                    {.kind = PLAN_KERNEL, .kernel = {.blocks = 1, .warps = 1, .warp = use_pages}},
                                    {.kind = PLAN_SYNC},
                                    {.kind = PLAN_END}};
  static const plan_step waits[] = {{.kind = PLAN_HOST, .repeat = 4}, {.kind = PLAN_END}};
  const ps one = 8 * (LATENCY + READ_PS + 256 * NS);
  bench b;
  start(&b, SIM_ISOLATION_MPS, BYTES / 2, 1 << 30);
  b.spec.api_us = (double)PAUSE_US;
  b.lanes[0].plan = waits;
  b.lanes[1].plan = round;
  b.lanes[1].given.loops = true;
  bench_run(&b);
  assert_int_equal(time_of(&b, 0), 4 * PAUSE_US * US);
  assert_int_equal(b.lanes[1].passes, time_of(&b, 0) / one);
  bench_close(&b);
}

/* A program alone on a GPU for several takes what it takes on its own. */
static void test_alone_as_ever(void **state) {
  bench b;
  start(&b, SIM_ISOLATION_MPS, BYTES / 2, 1 << 30);
  b.lanes[0].plan = busy;
  b.lanes[1].given.idle = true;
  sim_counters alone = bench_alone(&b);
  bench_run(&b);
  counters_equal(&b.lanes[0].r.result.counters, &alone);
  bench_close(&b);
}

int main(void) {
  ff_check_level = 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_drive_serves_one_after_the_other),
      cmocka_unit_test(test_one_program_sends_the_others_pages_down),
      cmocka_unit_test(test_memory_that_no_tier_holds),
      cmocka_unit_test(test_room_after_a_program),
      cmocka_unit_test(test_beside_a_program_that_loops),
      cmocka_unit_test(test_copies_of_a_program_that_loops),
      cmocka_unit_test(test_alone_as_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
