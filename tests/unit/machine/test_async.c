/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies and mbarriers in time, against loads that are waited for and against each other. The rig: a cycle
 * is 1 ns, 4 cycles between two instructions of one warp. */
#include "rig.h"

enum { FAR = 1 << 16 }; /* to another line, page and row */

typedef struct script { /* what the warps do, by case */
  uint32_t kind, n;
} script;

static void copy_line(trace_writer *w, uint64_t address, uint32_t flags) {
  uint64_t *lines = trace_put_access(w, TRACE_LOAD, 2, flags, 0, UINT32_MAX, 1);
  lines[0] = trace_line(address, 32, 15);
}

static ps run_script(uint32_t warps, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *), uint32_t kind,
                     uint32_t n) {
  script s = {kind, n};
  return rig_run(NULL, (rig_kernel){.blocks = 1, .warps = warps, .warp = warp, .context = &s}).kernel_ps;
}

/* ---- groups ---- */

enum { BY_LOAD, BY_GROUP, BY_NOTHING, BY_ENGINE };
static void fetch(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  rig_issue(w, 1);
  copy_line(w, RIG_BASE, s->kind == BY_LOAD ? 0 : TRACE_ASYNC_COPY | (s->kind == BY_ENGINE ? TRACE_BULK : 0u));
  if (s->kind == BY_LOAD) trace_put_wait(w, 0);
  else trace_put_async(w, TRACE_GROUP, 0, 0);
  if (s->kind == BY_GROUP || s->kind == BY_ENGINE) trace_put_async(w, TRACE_WAIT_GROUPS, 0, 0);
  rig_issue(w, s->n);
}

static void test_a_group_is_waited_for_as_a_load_is(void **state) {
  ps load = run_script(1, fetch, BY_LOAD, 100), alone = run_script(1, fetch, BY_NOTHING, 100);
  assert_int_equal(run_script(1, fetch, BY_GROUP, 100), load);
  assert_int_equal(run_script(1, fetch, BY_ENGINE, 100), load);
  assert_true(load > alone); /* the kernel of BY_NOTHING is over when its copy has come, or its instructions */
}

/* Two groups of one line each, the second some instructions later: waiting for all but one waits for the first. */
enum { ALL_BUT_ONE, ALL, ALL_BUT_TWO, FIRST_ALONE };
static void two_groups(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  rig_issue(w, 1);
  copy_line(w, RIG_BASE, TRACE_ASYNC_COPY);
  trace_put_async(w, TRACE_GROUP, 0, 0);
  rig_issue(w, 10);
  if (s->kind != FIRST_ALONE) copy_line(w, RIG_BASE + FAR, TRACE_ASYNC_COPY);
  if (s->kind != FIRST_ALONE) trace_put_async(w, TRACE_GROUP, 0, 0);
  trace_put_async(w, TRACE_WAIT_GROUPS, 0, s->kind == ALL_BUT_ONE ? 1 : s->kind == ALL_BUT_TWO ? 2 : 0);
  rig_issue(w, 1000);
}

static void test_the_youngest_groups_may_be_left(void **state) {
  ps first = run_script(1, two_groups, FIRST_ALONE, 0);
  assert_int_equal(run_script(1, two_groups, ALL_BUT_ONE, 0), first);
  assert_true(run_script(1, two_groups, ALL, 0) > first);
  assert_int_equal(run_script(1, two_groups, ALL_BUT_TWO, 0), (1 + 10 + 1000) * 4 * NS); /* nothing is waited for */
}

/* More copies than a warp may have loads: none waits for the one 32 before it. */
static void many_copies(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  for (uint32_t n = 0; n < s->n; n++) copy_line(w, RIG_BASE + (uint64_t)n * FAR, s->kind ? TRACE_ASYNC_COPY : 0);
  rig_issue(w, 1);
}
static void test_copies_are_no_loads(void **state) {
  assert_int_equal(run_script(1, many_copies, 1, 30), run_script(1, many_copies, 0, 30));
  assert_true(run_script(1, many_copies, 1, 64) < run_script(1, many_copies, 0, 64));
}

static void nine_groups(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  for (uint32_t n = 0; n < 9; n++) {
    copy_line(w, RIG_BASE + (uint64_t)n * FAR, TRACE_ASYNC_COPY);
    trace_put_async(w, TRACE_GROUP, 0, 0);
  }
  trace_put_async(w, TRACE_WAIT_GROUPS, 0, s->n);
  rig_issue(w, 1000);
}
static void test_groups_too_old_to_be_known_have_arrived(void **state) {
  ps seven = run_script(1, nine_groups, 0, 7), eight = run_script(1, nine_groups, 0, 8);
  assert_true(seven > eight && eight < (1000 + 10) * 4 * NS);
}

/* Warp 0 copies 32 lines, warp 1 loads one: its turn comes behind them in the load/store unit, not where an engine
 * makes them.
 */
static void beside(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  if (!warp) {
    uint64_t *lines = trace_put_access(w, TRACE_LOAD, 2, TRACE_ASYNC_COPY | s->n, 0, UINT32_MAX, 32);
    for (uint32_t i = 0; i < 32; i++) lines[i] = trace_line(RIG_BASE + i * 128, 32, 15);
  }
  if (warp) rig_load(w, RIG_BASE + FAR);
  if (warp) rig_issue(w, 5000);
}
static void test_bulk_copies_do_not_hold_up_loads(void **state) {
  ps both = run_script(2, beside, 0, TRACE_BULK), queued = run_script(2, beside, 0, 0);
  assert_true(queued >= both + 20 * NS);
}

/* ---- mbarriers ---- */

/* Warp 0 arrives after n instructions, with what it copied or without; the others wait for it. */
enum { PLAIN, COPIED };
static void hand_over(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  if (warp) {
    trace_put_async(w, TRACE_AWAIT, 3, 1);
    rig_issue(w, 100);
    return;
  }
  if (s->kind == COPIED) copy_line(w, RIG_BASE, TRACE_ASYNC_COPY | TRACE_BULK);
  if (s->n) rig_issue(w, s->n);
  trace_put_async(w, s->kind == COPIED ? TRACE_ARRIVE_COPIED : TRACE_ARRIVE, 3, 0);
}

static void test_an_arrival_wakes_all_that_wait(void **state) {
  for (uint32_t warps = 2; warps <= 5; warps++) {
    assert_int_equal(run_script(warps, hand_over, PLAIN, 50), (50 + 100) * 4 * NS);
    ps copied = run_script(warps, hand_over, COPIED, 0), fetched = run_script(1, fetch, BY_LOAD, 100);
    assert_int_equal(copied, fetched - 4 * NS); /* that one issues an instruction before it */
    assert_int_equal(run_script(warps, hand_over, COPIED, 5000), (5000 + 100) * 4 * NS); /* long there */
  }
}

/* A producer and a consumer hand n rounds to and fro; each takes a time of its own: a round is the sum of both. */
static void rounds(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  for (uint32_t n = 0; n < s->n; n++) {
    if (warp == 0 && n) trace_put_async(w, TRACE_AWAIT, 1, 1); /* the consumer has done with it */
    if (warp == 1) trace_put_async(w, TRACE_AWAIT, 0, 1);
    rig_issue(w, warp ? 20 : 30);
    trace_put_async(w, TRACE_ARRIVE, warp ? 1 : 0, 0);
  }
}
static void test_rounds_are_counted_on(void **state) {
  for (uint32_t n = 1; n <= 200; n += 66) assert_int_equal(run_script(2, rounds, 0, n), n * 50 * 4 * NS);
}

/* An arrival is there no earlier than those before it; one that 32 others have followed has long been there. */
enum { BOTH, FIRST };
static void early_and_late(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  if (!warp) {
    if (s->kind == FIRST) trace_put_async(w, TRACE_ARRIVE, 0, 0);
    copy_line(w, RIG_BASE, TRACE_ASYNC_COPY);
    for (uint32_t n = 0; n < s->n; n++) trace_put_async(w, TRACE_ARRIVE_COPIED, 0, 0);
    if (s->kind == BOTH) trace_put_async(w, TRACE_ARRIVE, 0, 0);
    return;
  }
  rig_issue(w, 10);
  trace_put_async(w, TRACE_AWAIT, 0, s->kind == BOTH ? s->n + 1 : 1);
  rig_issue(w, 1000);
}
static void test_arrivals_are_in_order(void **state) {
  ps fetched = run_script(1, fetch, BY_LOAD, 1000) - 4 * NS;
  assert_int_equal(run_script(2, early_and_late, BOTH, 1), fetched);
  for (uint32_t n = 1; n < 70; n++) assert_int_equal(run_script(2, early_and_late, FIRST, n), 1010 * 4 * NS);
}

/* A warp that asks ahead of the others' time does not go back. */
static void asks_first(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  if (warp) rig_issue(w, 10);
  if (warp) trace_put_async(w, TRACE_ARRIVE, 0, 0);
  if (warp) return;
  rig_issue(w, 30);
  trace_put_async(w, TRACE_AWAIT, 0, 1);
  rig_issue(w, 10);
}
static void test_no_warp_goes_back_in_time(void **state) {
  assert_int_equal(run_script(2, asks_first, 0, 0), 40 * 4 * NS);
}

/* All arrive after a time of their own, and wait for all: the slowest. Two mbarriers, one after the other. */
static uint32_t pause_of(const script *s, uint32_t round, uint32_t warp) {
  return 1 + (uint32_t)((s->n * 7 + round * 13 + warp * 29) * UINT64_C(2654435761) >> 7) % 90;
}
static void meet(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  for (uint32_t round = 0; round < 6; round++) {
    rig_issue(w, pause_of(s, round, warp));
    trace_put_async(w, TRACE_ARRIVE, round % 2, 0);
    trace_put_async(w, TRACE_AWAIT, round % 2, 4);
  }
}
static void test_all_wait_for_the_slowest(void **state) {
  for (uint32_t n = 0; n < 20; n++) {
    ps sum = 0;
    for (uint32_t round = 0; round < 6; round++) {
      uint32_t longest = 0;
      for (uint32_t warp = 0; warp < 4; warp++) {
        uint32_t one = pause_of(&(script){.n = n}, round, warp);
        if (one > longest) longest = one;
      }
      sum += longest;
    }
    assert_int_equal(run_script(4, meet, 0, n), sum * 4 * NS);
  }
}

/* ---- mbarriers of other blocks of the cluster ---- */

static void arrive_far(trace_writer *w, trace_async what, uint32_t id, int away) {
  trace_put_async(w, what, id, (uint32_t)away & 0xffff);
}

static ps run_blocks(rig_tweak tweak, uint64_t blocks, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *),
                     uint32_t kind, uint32_t n) {
  script s = {kind, n};
  return rig_run(tweak, (rig_kernel){.blocks = blocks, .warps = 1, .warp = warp, .context = &s}).kernel_ps;
}

/* One block arrives after n instructions at the mbarrier of another one, before or behind it. */
enum { FORWARDS, BACKWARDS, WITH_COPY };
static void hand_to_block(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  bool gives = s->kind == BACKWARDS ? b : !b;
  if (!gives) {
    trace_put_async(w, TRACE_AWAIT_FAR, 3, 1);
    rig_issue(w, 100);
    return;
  }
  if (s->kind == WITH_COPY) copy_line(w, RIG_BASE, TRACE_ASYNC_COPY | TRACE_BULK);
  if (s->n) rig_issue(w, s->n);
  arrive_far(w, s->kind == WITH_COPY ? TRACE_ARRIVE_FAR_COPIED : TRACE_ARRIVE_FAR, 3, s->kind == BACKWARDS ? -1 : 1);
}
static void test_a_block_waits_for_another(void **state) {
  for (uint32_t n = 0; n <= 300; n += 50) {
    assert_int_equal(run_blocks(NULL, 2, hand_to_block, FORWARDS, n), (n + 100) * 4 * NS);
    assert_int_equal(run_blocks(NULL, 2, hand_to_block, BACKWARDS, n), (n + 100) * 4 * NS);
  }
  ps fetched = run_script(1, fetch, BY_LOAD, 100);
  assert_int_equal(run_blocks(NULL, 2, hand_to_block, WITH_COPY, 0), fetched - 4 * NS);
  assert_int_equal(run_blocks(NULL, 2, hand_to_block, WITH_COPY, 5000), (5000 + 100) * 4 * NS);
}

/* A round is the sum of what both take: each waits for the other. */
static void far_rounds(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  for (uint32_t n = 0; n < s->n; n++) {
    if (b % 2 || n) trace_put_async(w, TRACE_AWAIT_FAR, 1, 1);
    rig_issue(w, b % 2 ? 20 : 30);
    arrive_far(w, TRACE_ARRIVE_FAR, 1, b % 2 ? -1 : 1);
  }
}
static void test_blocks_take_turns(void **state) {
  for (uint32_t n = 1; n <= 200; n += 66)
    for (uint64_t pairs = 1; pairs <= 4; pairs++)
      assert_int_equal(run_blocks(NULL, 2 * pairs, far_rounds, 0, n), n * 50 * 4 * NS);
}

/* Own arrivals and those of others are counted by themselves: a warp waits for both, whichever comes last. */
static void own_and_far(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  const script *s = context;
  if (b) {
    rig_issue(w, s->n);
    arrive_far(w, TRACE_ARRIVE_FAR, 0, -1);
  } else if (warp) {
    rig_issue(w, 100);
    trace_put_async(w, TRACE_ARRIVE, 0, 0);
  } else {
    trace_put_async(w, TRACE_AWAIT, 0, 1);
    trace_put_async(w, TRACE_AWAIT_FAR, 0, 2);
    rig_issue(w, 10);
  }
}
static void test_own_and_far_arrivals_are_two_series(void **state) {
  for (uint32_t n = 20; n <= 180; n += 40) {
    script s = {0, n};
    ps both = rig_run(NULL, (rig_kernel){.blocks = 2, .warps = 2, .warp = own_and_far, .context = &s}).kernel_ps;
    assert_int_equal(both, ((n > 100 ? n : 100) + 10) * 4 * NS);
  }
}

static void room_for_two(machine_spec *spec) {
  spec->sm_count = 1;
  spec->max_blocks = 2;
}
static void room_for_one(machine_spec *spec) { spec->sm_count = spec->max_blocks = 1; }

/* Room for one cluster: the next one's blocks come in the places of the first one's, and wait for each other there. */
static void test_clusters_come_one_after_the_other(void **state) {
  for (uint64_t pairs = 1; pairs <= 3; pairs++) {
    assert_int_equal(run_blocks(room_for_two, 2 * pairs, far_rounds, 0, 40),
                     (pairs * 40 * 50 - (pairs - 1) * 20) * 4 * NS);
  }
}

/* No room for the other block: what can never arrive is not waited for; what has arrived before it began is there. */
static void test_a_block_that_cannot_start_is_not_waited_for(void **state) {
  assert_int_equal(run_blocks(room_for_one, 2, hand_to_block, BACKWARDS, 50), (100 + 50) * 4 * NS);
  assert_int_equal(run_blocks(room_for_one, 2, hand_to_block, FORWARDS, 50), (50 + 100) * 4 * NS);
  assert_int_equal(run_blocks(NULL, 1, hand_to_block, FORWARDS, 50), 50 * 4 * NS); /* there is no such block */
  /* of each pair the first is alone */
  assert_int_equal(run_blocks(room_for_one, 6, far_rounds, 0, 5), 6 * 5 * 25 * 4 * NS);
}

/* The last block that runs is over, and none is left that would arrive; later they lack one of their own. */
static void all_but_one_wait(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  rig_issue(w, 10);
  if (b) trace_put_async(w, TRACE_AWAIT_FAR, 0, 1);
  rig_issue(w, b ? 5 : 90);
  if (b) trace_put_async(w, TRACE_AWAIT, 0, 1);
  if (b) rig_issue(w, 5);
}
static void test_blocks_that_lack_arrivals_go_on(void **state) {
  assert_int_equal(run_blocks(NULL, 3, all_but_one_wait, 0, 0), (100 + 5 + 5) * 4 * NS);
}

/* ---- streams that lack something ---- */

static void lacking(trace_writer *w, uint64_t b, uint32_t warp, const void *context) {
  rig_issue(w, 10);
  if (warp) trace_put_async(w, TRACE_AWAIT, 0, 7);
  else trace_put_barrier(w, 0, false, 4);
  rig_issue(w, 5);
}
static void test_what_never_arrives_does_not_stop_the_simulation(void **state) {
  assert_int_equal(run_script(4, lacking, 0, 0), 15 * 4 * NS);
  assert_int_equal(run_script(1, hand_over, PLAIN, 50), 50 * 4 * NS); /* no warp waits */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_group_is_waited_for_as_a_load_is),
      cmocka_unit_test(test_the_youngest_groups_may_be_left),
      cmocka_unit_test(test_copies_are_no_loads),
      cmocka_unit_test(test_groups_too_old_to_be_known_have_arrived),
      cmocka_unit_test(test_bulk_copies_do_not_hold_up_loads),
      cmocka_unit_test(test_an_arrival_wakes_all_that_wait),
      cmocka_unit_test(test_rounds_are_counted_on),
      cmocka_unit_test(test_arrivals_are_in_order),
      cmocka_unit_test(test_no_warp_goes_back_in_time),
      cmocka_unit_test(test_all_wait_for_the_slowest),
      cmocka_unit_test(test_a_block_waits_for_another),
      cmocka_unit_test(test_blocks_take_turns),
      cmocka_unit_test(test_own_and_far_arrivals_are_two_series),
      cmocka_unit_test(test_clusters_come_one_after_the_other),
      cmocka_unit_test(test_a_block_that_cannot_start_is_not_waited_for),
      cmocka_unit_test(test_blocks_that_lack_arrivals_go_on),
      cmocka_unit_test(test_what_never_arrives_does_not_stop_the_simulation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
