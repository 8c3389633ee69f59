/* SPDX-License-Identifier: Apache-2.0 */
/* Mitigation of thrashing under `uvm`, with times on both sides of every edge: which events count, how long the other
 * processor is throttled, when a page is pinned and for how long, when a block forgets. And whole programs. */
#include "rig.h"

#include "policy/manager.h"

#define LAPSE (500 * US)
#define ADDRESS (RIG_BASE + 5 * 4096)

static uint64_t left_count;
static void on_left(void *context, uint64_t address, pager_unit *unit) { left_count++; }
static void on_moved(void *context, uint32_t owner, bool in, uint64_t bytes) {}
static uint64_t on_evicted(void *context, const fault_request *request, uint64_t address, const pager_unit *unit,
                           bool write_back) {
  return 0;
}

static pager *p;
static uint64_t until;

static int make(void **state) {
  pager_config config = {.manager = manager_find("uvm"),
                         .unit_bytes = 4096,
                         .memory_bytes = 64 << 20,
                         .sms = 1,
                         .copy_clean = true,
                         .whole_blocks = true,
                         .hooks = {.left = on_left, .moved = on_moved, .evicted = on_evicted}};
  p = pager_create(&config);
  pager_map(p, RIG_BASE, 8 << 20, TRACE_MEMORY_MANAGED, 0);
  left_count = 0;
  return 0;
}
static int unmake(void **state) {
  pager_free(p);
  return 0;
}

static void migrates(pager_processor who, ps at) { pager_thrash_event(p, ADDRESS, who, at); }
static pager_thrash_answer ask(pager_processor who, ps at) { return pager_thrash_ask(p, ADDRESS, who, at, &until); }

/* Two events that open the block's account, and three that count, `gap` apart; returns when the last was, by the
 * GPU. */
static ps thrash(ps from, ps gap) {
  for (int i = 0; i < 5; i++) migrates(i % 2 ? PAGER_CPU : PAGER_GPU, from + (ps)i * gap);
  return from + 4 * gap;
}

static void test_three_events_count(void **state) {
  ps t = US;
  for (int i = 0; i < 4; i++) migrates(i % 2 ? PAGER_CPU : PAGER_GPU, t + (ps)i * 100 * US);
  t += 300 * US;
  assert_int_equal(ask(PAGER_GPU, t + 1), PAGER_THRASH_NONE); /* two so far */
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  migrates(PAGER_GPU, t + LAPSE); /* the third, just in time */
  assert_true(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS + 4096));
}

static void test_late_events_do_not_count(void **state) {
  migrates(PAGER_GPU, US);
  migrates(PAGER_CPU, US + LAPSE + 1); /* too late to open an account */
  for (int i = 0; i < 3; i++) migrates(i % 2 ? PAGER_CPU : PAGER_GPU, 2 * US + (ps)(i + 1) * LAPSE);
  /* the first only opened it: two */
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  migrates(PAGER_CPU, 2 * US + 4 * LAPSE + 1);
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  migrates(PAGER_GPU, 2 * US + 5 * LAPSE + 1);
  assert_true(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
}

/* One processor alone never thrashes: what capacity makes go is no event. */
static void test_one_processor_never_thrashes(void **state) {
  for (int i = 0; i < 100; i++) migrates(PAGER_GPU, US + (ps)i * US);
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  migrates(PAGER_CPU, 200 * US);
  for (int i = 0; i < 100; i++) migrates(PAGER_GPU, 201 * US + (ps)i * US);
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
}

static void test_throttled_for_a_lapse(void **state) {
  ps t = thrash(US, US);
  assert_int_equal(ask(PAGER_CPU, t + LAPSE + 1), PAGER_THRASH_NONE); /* the page's last event is too long ago */
  /* just in time: a period begins, the GPU is favoured */
  assert_int_equal(ask(PAGER_GPU, t + LAPSE), PAGER_THRASH_NONE);
  ps end = t + 2 * LAPSE;
  migrates(PAGER_GPU, t + LAPSE);
  assert_int_equal(ask(PAGER_CPU, t + LAPSE + 5), PAGER_THRASH_THROTTLE);
  assert_int_equal(until, end);
  assert_int_equal(ask(PAGER_CPU, end - 1), PAGER_THRASH_THROTTLE);
  assert_int_equal(p->throttled, 1);                        /* the same one */
  assert_int_equal(ask(PAGER_CPU, end), PAGER_THRASH_NONE); /* now the CPU is favoured */
  migrates(PAGER_CPU, end);
  assert_int_equal(ask(PAGER_GPU, end + 1), PAGER_THRASH_THROTTLE);
  assert_int_equal(until, end + LAPSE);
  assert_int_equal(p->throttled, 2);
}

/* Back and forth as fast as it may; returns the processor that asks next and finds ten throttles. */
static pager_processor ten_throttles(ps *t) {
  pager_processor favoured = PAGER_CPU;
  for (int n = 0; n < 10; n++) {
    pager_processor other = favoured == PAGER_CPU ? PAGER_GPU : PAGER_CPU;
    assert_int_equal(ask(favoured, *t), PAGER_THRASH_NONE);
    migrates(favoured, *t);
    assert_int_equal(ask(other, *t + 1), PAGER_THRASH_THROTTLE);
    assert_int_equal(until, *t + LAPSE);
    *t = until;
    favoured = other;
  }
  assert_int_equal(p->throttled, 10);
  assert_int_equal(p->pinned, 0);
  return favoured;
}

static void test_pinned_after_ten_throttles(void **state) {
  ps t = thrash(US, US) + 1;
  pager_unit *unit = pager_find(p, ADDRESS);
  assert_int_equal(ten_throttles(&t), PAGER_CPU);
  assert_int_equal(ask(PAGER_CPU, t), PAGER_THRASH_PIN_CPU);
  assert_int_equal(p->pinned, 1);
  assert_int_equal(pager_away(unit), PAGER_REMOTE); /* the GPU has it mapped */
  ps due = t + 150000 * US;
  assert_int_equal(p->pins_due, due);
  pager_unpin(p, due - 1);
  assert_int_equal(pager_away(unit), PAGER_REMOTE);
  pager_unpin(p, due);
  assert_int_equal(pager_away(unit), PAGER_ABSENT);
  assert_true(p->pins_due == UINT64_MAX);
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS)); /* forgotten */
}

/* Pinned in GPU memory by the GPU's turn, then, by the CPU's, where both reach it. */
static void test_pinned_at_the_gpu_first(void **state) {
  ps t = thrash(US, US) + 1;
  assert_int_equal(ask(PAGER_CPU, t), PAGER_THRASH_NONE);
  migrates(PAGER_CPU, t);
  assert_int_equal(ask(PAGER_GPU, t + 1), PAGER_THRASH_THROTTLE);
  t = until;
  for (int n = 1; n < 10; n++) { /* from here on as above, the GPU being favoured first */
    pager_processor favoured = n % 2 ? PAGER_GPU : PAGER_CPU, other = n % 2 ? PAGER_CPU : PAGER_GPU;
    assert_int_equal(ask(favoured, t), PAGER_THRASH_NONE);
    migrates(favoured, t);
    if (n == 9) break; /* nine throttles; the CPU has not asked in this period */
    assert_int_equal(ask(other, t + 1), PAGER_THRASH_THROTTLE);
    t = until;
  }
  assert_int_equal(p->throttled, 9);
  assert_int_equal(ask(PAGER_CPU, t + LAPSE), PAGER_THRASH_THROTTLE); /* the last moment of the period */
  assert_int_equal(p->throttled, 10);
  assert_int_equal(ask(PAGER_GPU, t + LAPSE), PAGER_THRASH_PIN_GPU); /* favoured still */
  assert_int_equal(p->pinned, 1);
  /* the CPU's page is not mapped: it comes to the GPU */
  assert_int_equal(pager_away(pager_find(p, ADDRESS)), PAGER_ABSENT);
  /* the pin has ended the period, now the CPU is favoured */
  assert_int_equal(ask(PAGER_CPU, t + LAPSE + 1), PAGER_THRASH_PIN_CPU);
  assert_int_equal(p->pinned, 1);
  assert_int_equal(pager_away(pager_find(p, ADDRESS)), PAGER_REMOTE);
}

static void test_preferred_location_decides(void **state) {
  pager_advise(p, RIG_BASE, 8 << 20, TRACE_ADVICE_SET_PREFERRED_LOCATION, -1);
  ps t = thrash(US, US);
  assert_int_equal(ask(PAGER_CPU, t + 1), PAGER_THRASH_PIN_CPU); /* the GPU can map it there */
  assert_int_equal(p->throttled, 0);
}

static void test_blocks_forget_after_an_epoch(void **state) {
  const ps epoch = 1000000 * US;
  ps t = US;
  for (int reset = 0; reset < 5; reset++) {
    t = thrash(t, US);
    assert_int_equal(ask(PAGER_CPU, t + epoch), PAGER_THRASH_NONE); /* not longer than an epoch: still known */
    assert_true(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
    assert_int_equal(ask(PAGER_CPU, t + epoch + 1), PAGER_THRASH_NONE);
    /* four times at most */
    assert_int_equal(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS), reset == 4);
    t += 2 * epoch;
  }
}

static void test_a_pinned_block_never_forgets(void **state) {
  ps t = thrash(US, US) + 1;
  pager_advise(p, RIG_BASE, 4096, TRACE_ADVICE_SET_PREFERRED_LOCATION, -1);
  ten_throttles(&t);
  ask(PAGER_CPU, t);
  pager_thrash_event(p, ADDRESS + 4096, PAGER_GPU, t);
  for (int i = 1; i <= 3; i++) pager_thrash_event(p, ADDRESS + 4096, i % 2 ? PAGER_CPU : PAGER_GPU, t + (ps)i * US);
  pager_unpin(p, t + 200000 * US);
  assert_int_equal(ask(PAGER_CPU, t + 3000000 * US), PAGER_THRASH_NONE);
  assert_true(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS + 4096));
}

/* What the program orders takes precedence: the page's past is forgotten, its pin ends. */
static void test_prefetches_forget(void **state) {
  ps t = thrash(US, US) + 1;
  pager_prefetch_in(p, ADDRESS, 4096);
  assert_false(pager_thrashes(p, pager_chunk_find(p, ADDRESS >> PAGER_CHUNK_SHIFT), ADDRESS));
  pager_prefetch_out(p, ADDRESS, 4096);
  /* the account is open: one to start from, three that count */
  for (int i = 0; i < 4; i++) migrates(i % 2 ? PAGER_CPU : PAGER_GPU, ++t);
  ten_throttles(&t);
  assert_int_equal(ask(PAGER_CPU, t), PAGER_THRASH_PIN_CPU);
  pager_prefetch_in(p, ADDRESS, 4096);
  assert_int_equal(pager_find(p, ADDRESS)->state, PAGER_RESIDENT);
  assert_int_equal(pager_away(pager_find(p, ADDRESS)), PAGER_ABSENT);
  pager_unpin(p, t + 150000 * US);
  assert_int_equal(pager_find(p, ADDRESS)->state, PAGER_RESIDENT);
}

static void test_freed_pages_are_forgotten(void **state) {
  ps t = thrash(US, US) + 1;
  ten_throttles(&t);
  assert_int_equal(ask(PAGER_CPU, t), PAGER_THRASH_PIN_CPU);
  pager_unmap(p, RIG_BASE);
  pager_map(p, RIG_BASE, 8 << 20, TRACE_MEMORY_MANAGED, 0);
  assert_int_equal(pager_away(pager_find(p, ADDRESS)), PAGER_ABSENT);
  pager_unpin(p, t + 150000 * US);
  assert_int_equal(pager_find(p, ADDRESS)->state, PAGER_ABSENT);
}

/* ---- programs ---- */

static void touch_page(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  rig_load_wait(w, ADDRESS);
  rig_store(w, ADDRESS);
}

/* A kernel and the host write a page in turn. */
static sim_counters ping_pong(const char *manager, int rounds) {
  rig r;
  rig_open(&r, manager);
  r.prefetch = "none";
  r.spec.fault_batch_us = 10;
  r.spec.host_fault_us = 5;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_MANAGED);
  for (int i = 0; i < rounds; i++) {
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_page});
    rig_sync(&r);
    rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {ADDRESS, 4096, true}});
  }
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}

static void test_ping_pong(void **state) {
  sim_counters few = ping_pong("uvm", 2), many = ping_pong("uvm", 40), other = ping_pong("replay", 40);
  assert_int_equal(few.faults, 2);
  assert_int_equal(few.throttles, 0);
  /* eleven until the favoured one asks, one while the page is pinned in GPU memory */
  assert_int_equal(many.throttles, 12);
  assert_int_equal(many.pins, 1);
  assert_int_equal(many.faults, 27); /* what was throttled once is free for three events, then thrashes again */
  assert_int_equal(many.host_faults, 27);
  assert_int_equal(many.remote_bytes, (40 - 27) * 2 * 128); /* pinned: no fault any more */
  assert_true(many.time_ps >= 10 * LAPSE);
  assert_int_equal(other.faults, 40); /* without mitigation it goes on for ever */
  assert_int_equal(other.throttles + other.pins, 0);
}

/* Without the host's touches a GPU that has too little memory is never throttled. */
static void touch_all(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (int round = 0; round < 4; round++)
    for (uint64_t n = 0; n < 4; n++) rig_load_wait(w, RIG_BASE + n * (2 << 20));
}
static void test_capacity_is_not_thrashing(void **state) {
  rig r;
  rig_open(&r, "uvm");
  r.prefetch = "none";
  r.gpu_memory = 4 << 20;
  r.spec.fault_batch_us = 10;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 8 << 20, TRACE_MEMORY_MANAGED);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_all});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_true(c->refaults >= 8);
  assert_int_equal(c->throttles, 0);
  rig_close(&r);
}

int main(void) {
#define PAGER(name) cmocka_unit_test_setup_teardown(name, make, unmake)
  const struct CMUnitTest tests[] = {
      PAGER(test_three_events_count),
      PAGER(test_late_events_do_not_count),
      PAGER(test_one_processor_never_thrashes),
      PAGER(test_throttled_for_a_lapse),
      PAGER(test_pinned_after_ten_throttles),
      PAGER(test_pinned_at_the_gpu_first),
      PAGER(test_preferred_location_decides),
      PAGER(test_blocks_forget_after_an_epoch),
      PAGER(test_a_pinned_block_never_forgets),
      PAGER(test_prefetches_forget),
      PAGER(test_freed_pages_are_forgotten),
      cmocka_unit_test(test_ping_pong),
      cmocka_unit_test(test_capacity_is_not_thrashing),
  };
  return cmocka_run_group_tests_name("thrash", tests, NULL, NULL);
}
