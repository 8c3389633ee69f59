/* SPDX-License-Identifier: Apache-2.0 */
/* The offload controller's own rules, one by one - room by registers, crowding, pace, the busier of two channels,
 * packets that go first - and how learning ends before its share is seen. Each case is the smallest kernel in which the
 * rule alone decides. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack_rig.h"

static sim_stacks run_warps(uint64_t blocks, uint32_t warps, uint32_t registers, rig_tweak tweak, body warp) {
  rig r;
  sim_counters c;
  return run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", tweak,
                    (rig_kernel){.blocks = blocks, .warps = warps, .registers = registers, .warp = warp}, &c);
}

/* ---- room ---- */

/* All warps come at the same time, before any answer. */
static void instance_of(trace_writer *w, uint32_t region) {
  warm(w);
  trace_put_enter(w, region, 0);
  rig_load_wait(w, OF_STACK(1));
  rig_issue(w, 1000);
  trace_put_leave(w, region);
}

static void long_instance(trace_writer *w, uint64_t b, uint32_t i, const void *c) { instance_of(w, 10); }
static void long_instance_of_few_registers(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  instance_of(w, 70);
}

static void fewer_registers(machine_spec *spec) { spec->registers = 8000; }

static void test_room_by_registers(void **state) {
  sim_stacks few = run_warps(1, 8, 16, NULL, long_instance), many = run_warps(1, 8, 255, NULL, long_instance),
             most = run_warps(1, 8, 255, fewer_registers, long_instance);
  assert_int_equal(few.offloaded, 8);
  assert_int_equal(many.offloaded, 4); /* 4 x 255 x 32 of 32,768 */
  assert_int_equal(many.refused_full, 4);
  assert_int_equal(most.offloaded, 1); /* more than an SM has: alone */
  assert_int_equal(most.refused_full, 7);
  /* 10 x 100 x 32: what the block takes, not its kernel */
  assert_int_equal(run_warps(1, 16, 255, NULL, long_instance_of_few_registers).offloaded, 10);
  /* nor more than its kernel has */
  assert_int_equal(run_warps(1, 16, 60, NULL, long_instance_of_few_registers).offloaded, 16);
}

static void two_sms(machine_spec *s) { s->stack_sms = 2; }
static void always_busy(machine_spec *s) { s->stack_busy = 0; }
static void always_busy_five(machine_spec *s) {
  s->stack_busy = 0;
  s->stack_warps = 5;
}

static void test_crowding(void **state) {
  /* one warp resides on each SM: no more than one at a time for the stack's */
  assert_int_equal(run_warps(8, 1, 0, NULL, long_instance).offloaded, 1);
  assert_int_equal(run_warps(8, 1, 0, NULL, long_instance).refused_full, 7);
  assert_int_equal(run_warps(4, 2, 0, NULL, long_instance).offloaded, 2);
  assert_int_equal(run_warps(8, 1, 0, two_sms, long_instance).offloaded, 2);
  /* but if a channel is busy that it relieves */
  assert_int_equal(run_warps(8, 1, 0, always_busy, long_instance).offloaded, 8);
  assert_int_equal(run_warps(8, 1, 0, always_busy_five, long_instance).offloaded, 5);
}

/* ---- pace ---- */

enum { HIT = 0, SLOW = 2000 }; /* instructions in the instance that stays at home */

/* Warp 0: an instance at home, one away, and a long one away. Warp 1: one while that long one is pending, and one much
 * later, when it is over. */
static void paced(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const uint32_t *home = c;
  warm(w);
  rig_load_wait(w, OF_STACK(1));
  if (i) {
    rig_issue(w, 10000);
    load_in_block(w, 30, 5, OF_STACK(1), 0);
    rig_issue(w, 15000);
    load_in_block(w, 30, 5, OF_STACK(1), 0);
    return;
  }
  trace_put_enter(w, 30, 3); /* too few trips */
  rig_load_wait(w, OF_STACK(1));
  if (*home) rig_issue(w, *home);
  trace_put_leave(w, 30);
  load_in_block(w, 30, 5, OF_STACK(1), 0);
  trace_put_enter(w, 30, 5);
  rig_load_wait(w, OF_STACK(1));
  rig_issue(w, 15000);
  trace_put_leave(w, 30);
}

static void test_pace(void **state) {
  rig r;
  sim_counters c;
  static const uint32_t hit = HIT, slow = SLOW;
  rig_kernel k = {.blocks = 1, .warps = 2, .warp = paced, .context = &hit};
  sim_stacks faster_at_home = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c);
  assert_int_equal(faster_at_home.refused_condition, 1);
  /* while one is pending; the one later goes, to see whether it pays again */
  assert_int_equal(faster_at_home.refused_slow, 1);
  assert_int_equal(faster_at_home.offloaded, 3);
  k.context = &slow;
  sim_stacks faster_away = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c);
  assert_int_equal(faster_away.refused_slow, 0);
  assert_int_equal(faster_away.offloaded, 4);
}

/* Nothing of that where a channel is busy that the block relieves: what is saved there is for all blocks. */
static void test_pace_matters_if_nothing_is_busy(void **state) {
  rig r;
  sim_counters c;
  static const uint32_t hit = HIT;
  rig_kernel k = {.blocks = 1, .warps = 2, .warp = paced, .context = &hit};
  sim_stacks s = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", always_busy, k, &c);
  assert_int_equal(s.refused_slow, 0);
  assert_int_equal(s.offloaded, 4);
}

/* ---- asking again ---- */

/* Block 0 fills the stack for a while (1 + `more` warps of it for `filled` instructions, others of its 1 + `fillers`
 * for `longer` loads); block 1's first warp comes meanwhile, with a loop of `trips` trips of two accesses, and `lead`
 * accesses before it; `stores`: each trip does. */
typedef struct again {
  uint32_t pc, trips, filled;
  bool stores;
  uint32_t lead, fillers, longer, more;
} again;

static void trip_begins(trace_writer *w, uint64_t address) {
  *trace_put_access(w, TRACE_LOAD, 2, 0, TRIP_PC, ~0u, 1) = trace_line(address, 32, 15);
  trace_put_wait(w, 0);
}

static void loop_of_trips(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const again *a = c;
  warm(w);
  if (!b) {
    load_in_block(w, 10, 0, OF_STACK(1), 0);
    trace_put_enter(w, 10, 0);
    rig_load_wait(w, OF_STACK(1));
    /* without holding up the others */
    for (uint32_t n = 0; i > a->more && n < a->longer; n++) rig_load_wait(w, OF_STACK(1));
    if (i <= a->more && a->filled) rig_issue(w, a->filled);
    trace_put_leave(w, 10);
    return;
  }
  if (i) return;
  rig_issue(w, a->fillers ? 8000 : 1000); /* all are there then */
  trace_put_enter(w, a->pc, a->trips);
  for (uint32_t n = 0; n < a->lead; n++) rig_load_wait(w, OF_STACK(1) + 65536 + n * 128);
  for (uint32_t n = 0; n < a->trips; n++) {
    trip_begins(w, OF_STACK(1) + n * 256);
    if (a->stores) rig_store(w, OF_STACK(1) + n * 256 + 128);
    else rig_load_wait(w, OF_STACK(1) + n * 256 + 128);
    rig_issue(w, 500);
  }
  trace_put_leave(w, a->pc);
}

static void one_warp(machine_spec *s) { s->stack_warps = 1; }
static void one_warp_slow_link(machine_spec *s) {
  s->stack_warps = 1;
  s->stack_tx_gbs = 0.05;
}

static void slow_link_back(machine_spec *s) {
  s->stack_warps = 1;
  s->stack_rx_gbs = 0.5;
}
/* with what the loop loads itself */
static void busy_link_back(machine_spec *s) {
  s->stack_warps = 1;
  s->stack_rx_gbs = 0.5;
  s->stack_busy = 0.05;
}
static void ten_warps_busy_link_back(machine_spec *s) {
  s->stack_warps = 10;
  s->stack_rx_gbs = 0.5;
  s->stack_busy = 0.05;
}

static sim_stacks run_again(again a, rig_tweak tweak) {
  rig r;
  sim_counters c;
  return run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", tweak,
                    (rig_kernel){.blocks = 2, .warps = 1 + a.fillers, .warp = loop_of_trips, .context = &a}, &c);
}

static void test_asks_again(void **state) {
  sim_stacks at_first = run_again((again){40, 10, 100, false, 0, 0, 0, 0}, one_warp),
             late = run_again((again){40, 10, 2500, false, 0, 0, 0, 0}, one_warp);
  sim_stacks too_late = run_again((again){40, 10, 5000, false, 0, 0, 0, 0}, one_warp),
             never = run_again((again){30, 10, 2500, false, 0, 0, 0, 0}, one_warp);
  assert_int_equal(at_first.offloaded, 3);
  assert_int_equal(late.offloaded, 3);    /* the stack has room while it has trips enough, */
  assert_int_equal(late.refused_full, 0); /* and it is not one that stayed */
  assert_true(late.offloaded_instructions - 2500 < at_first.offloaded_instructions - 100);
  assert_int_equal(late.instances, 3);
  assert_int_equal(too_late.offloaded, 2); /* fewer than 4 trips are left then */
  assert_int_equal(too_late.refused_full, 1);
  assert_int_equal(never.offloaded, 2); /* where trips of that block begin is not known */
  assert_int_equal(never.refused_full, 1);
  sim_stacks stores = run_again((again){40, 10, 2500, true, 0, 0, 0, 0}, one_warp),
             held = run_again((again){40, 10, 0, true, 0, 0, 0, 0}, one_warp_slow_link);
  assert_int_equal(stores.offloaded, 3);
  assert_int_equal(held.offloaded, 2); /* it would have to wait for what it has written */
}

/* At its first access the block's registers are sent, at a later trip those that are live there: byte for byte. Trips
 * are counted by the access with which they begin. */
static void test_what_is_sent_at_a_later_trip(void **state) {
  enum { FIRST_TWO = 2 * (12 + 256), ANSWERS = 2 * (128 + 1) };
  sim_stacks at_first = run_again((again){50, 10, 100, false, 0, 0, 0, 0}, one_warp),
             with_lead = run_again((again){50, 10, 100, false, 3, 0, 0, 0}, one_warp);
  sim_stacks late = run_again((again){50, 10, 2500, false, 0, 0, 0, 0}, one_warp),
             late_with_lead = run_again((again){50, 10, 2500, false, 3, 0, 0, 0}, one_warp);
  assert_int_equal(at_first.request_bytes, FIRST_TWO + 12 + 640);
  assert_int_equal(at_first.answer_bytes, ANSWERS + 1);
  assert_int_equal(with_lead.request_bytes, FIRST_TWO + 12 + 640);
  assert_int_equal(late.request_bytes, FIRST_TWO + 12 + 896);
  assert_int_equal(late.answer_bytes, ANSWERS + 256 + 1);
  assert_int_equal(late_with_lead.request_bytes, FIRST_TWO + 12 + 896);
  assert_int_equal(late_with_lead.answer_bytes, ANSWERS + 256 + 1);
  /* from the trip on that finds room: six are left of 11, of 10 five */
  sim_stacks enough = run_again((again){50, 11, 3600, false, 3, 0, 0, 0}, one_warp),
             too_few = run_again((again){50, 10, 3600, false, 3, 0, 0, 0}, one_warp);
  assert_int_equal(enough.offloaded, 3);
  assert_int_equal(too_few.offloaded, 2);
  assert_int_equal(too_few.refused_full, 1);
}

/* With fewer than its eight trips left, but where the one busy channel is relieved and the stack has places. */
static void test_relieves_the_busy_channel(void **state) {
  again nine = {60, 9, 2500, false, 0, 0, 0, 0}, seven = {60, 7, 2500, false, 0, 0, 0, 0};
  assert_int_equal(run_again(nine, slow_link_back).offloaded, 2);
  assert_int_equal(run_again(nine, busy_link_back).offloaded, 3);
  sim_stacks stays = run_again(seven, busy_link_back);
  assert_int_equal(stays.offloaded, 2); /* too few from the start: it does not ask again */
  assert_int_equal(stays.refused_condition, 1);
  again filled = {60, 9, 9000, false, 0, 9, 9000, 0}, free = {60, 9, 9000, false, 0, 9, 9000, 1},
        enough = {60, 10, 9000, false, 0, 9, 9000, 0};
  assert_int_equal(run_again(filled, ten_warps_busy_link_back).offloaded, 20); /* nine of ten places are taken, */
  assert_int_equal(run_again(free, ten_warps_busy_link_back).offloaded, 21);   /* or eight */
  /* nine leave room for an instance with eight trips left */
  assert_int_equal(run_again(enough, ten_warps_busy_link_back).offloaded, 21);
}

/* ---- the busier of two channels ---- */

/* of each other warp in turn; instructions between two */
typedef struct mix {
  uint32_t loads, stores, between, pc;
} mix;

/* Warps from the second on load the channels of stack 1; the first comes in the midst of that. */
static void mixed(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const mix *m = c;
  uint64_t at = OF_STACK(1) + (uint64_t)i * 256 * 16384;
  warm(w);
  for (uint32_t n = 0; i && n < 250; n++) {
    if (n % (m->loads + m->stores) < m->loads) rig_load(w, at + n * 16384);
    else rig_store(w, at + n * 16384);
    if (m->between) rig_issue(w, m->between);
  }
  if (i) return;
  rig_issue(w, 1000);
  trace_put_enter(w, m->pc, 0);
  rig_load_wait(w, OF_STACK(1));
  trace_put_leave(w, m->pc);
}

static void never_above(machine_spec *s) { s->stack_busy = 1e9; }
static void slow_back(machine_spec *s) {
  s->stack_busy = 1e9;
  s->stack_rx_gbs = 4;
}

static sim_stacks run_mix(mix m, rig_tweak tweak) {
  rig r;
  sim_counters c;
  return run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", tweak,
                    (rig_kernel){.blocks = 1, .warps = 4, .warp = mixed, .context = &m}, &c);
}

/* No load is above the threshold here. Candidate 20 saves on the channel from the stack, and not on the one to it. */
static void test_the_busier_channel(void **state) {
  assert_int_equal(run_mix((mix){0, 1, 0, 20}, never_above).refused_tx, 1);
  assert_int_equal(run_mix((mix){0, 1, 0, 10}, never_above).offloaded, 1); /* it saves there */
  /* both for more than half of the time, the one from the stack for longer */
  assert_int_equal(run_mix((mix){2, 3, 0, 20}, slow_back).offloaded, 1);
  /* the busier one, but not for half of the time */
  assert_int_equal(run_mix((mix){0, 1, 80, 20}, never_above).offloaded, 1);
}

/* ---- the paper's controller alone ---- */

static sim_stacks run_paper(uint64_t blocks, uint32_t warps, uint32_t registers, rig_tweak tweak, body warp,
                            const void *context) {
  rig r;
  sim_counters c;
  return run_stacks(
      &r, "ideal", SIM_OFFLOAD_PAPER, "12:13", tweak,
      (rig_kernel){.blocks = blocks, .warps = warps, .registers = registers, .warp = warp, .context = context}, &c);
}
static void five_warps(machine_spec *s) { s->stack_warps = 5; }

/* What a test above says of ours, on the same kernels: neither registers nor crowding nor pace keeps an instance, none
 * is asked again, and a channel is busy above the threshold only. */
static void test_paper(void **state) {
  assert_int_equal(run_paper(1, 8, 255, NULL, long_instance, NULL).offloaded, 8);
  assert_int_equal(run_paper(8, 1, 0, NULL, long_instance, NULL).offloaded, 8);
  sim_stacks full = run_paper(8, 1, 0, five_warps, long_instance, NULL);
  assert_int_equal(full.offloaded, 5);
  assert_int_equal(full.refused_full, 3);
  static const uint32_t hit = HIT;
  sim_stacks home = run_paper(1, 2, 0, NULL, paced, &hit);
  assert_int_equal(home.offloaded, 4);
  assert_int_equal(home.refused_condition, 1);
  again late = {40, 10, 2500, false, 0, 0, 0, 0};
  sim_stacks once = run_paper(2, 1, 0, one_warp, loop_of_trips, &late);
  assert_int_equal(once.offloaded, 2);
  assert_int_equal(once.refused_full, 1);
  mix busier = {0, 1, 0, 20};
  assert_int_equal(run_paper(1, 4, 0, never_above, mixed, &busier).offloaded, 1);
  sim_stacks above = run_paper(1, 4, 0, NULL, mixed, &busier);
  assert_int_equal(above.offloaded, 0);
  assert_int_equal(above.refused_tx, 1);
}

/* ---- packets that go first ---- */

static void test_first_packets(void **state) {
  stack_channel c = {.bus = {.free = 10 * US}, .byte_fixed = 125 << 20, .length = US};
  assert_int_equal(stacks_send_first(&c, 100, 2 * US), 2 * US + TX_PS(100)); /* it does not wait */
  assert_int_equal(c.bus.free, 10 * US + TX_PS(100));                        /* and what waits is late by as much */
  assert_int_equal(c.bytes, 100);
  assert_int_equal(c.carried, TX_PS(100));
}

/* Another block's writes fill the channel for 12 us; the instance comes after 4. (Its own block's it would wait
 * for.) */
static void late_instance(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const bool *writes = c;
  warm(w);
  for (uint64_t n = 0; !b && *writes && n < 250; n++) rig_store(w, OF_STACK(1) + (i * 250 + n) * 16384);
  if (!b || i) return;
  rig_issue(w, 1000);
  load_in_block(w, 10, 0, OF_STACK(5), 0);
}

static void test_requests_go_first(void **state) {
  rig r;
  sim_counters c;
  bool writes = false;
  rig_kernel k = {.blocks = 2, .warps = 3, .warp = late_instance, .context = &writes};
  sim_stacks idle = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c);
  writes = true;
  sim_stacks busy = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c);
  assert_true(TX_PS(busy.tx[1]) > 12 * US);
  assert_int_equal(busy.offloaded, 1);
  assert_true(busy.away_ps >= idle.away_ps && busy.away_ps < idle.away_ps + US);
}

/* ---- blocks are told apart ---- */

/* One block at a time: the second has the first one's place, in the simulator's memory as well. */
static void one_after_the_other(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  if (!b) {
    for (uint32_t n = 0; n < 64; n++) rig_store(w, OF_STACK(1) + n * 16384);
    return;
  }
  trace_put_enter(w, 10, 0);
  rig_load_wait(w, OF_STACK(1) + 63 * 16384);
  trace_put_leave(w, 10);
}

static void one_block(machine_spec *s) {
  s->sm_count = 1;
  s->max_blocks = 1;
  s->stack_tx_gbs = 1;
}

static void test_blocks_are_told_apart(void **state) {
  assert_int_equal(ff_check_level, 2);
  /* what another block has still under way it need not see */
  assert_int_equal(run_warps(2, 1, 0, one_block, one_after_the_other).offloaded, 1);
}

/* ---- how learning ends ---- */

static bool any_but_plain(void *context, const trace_launch *launch) { return strcmp(launch->kernel, "plain") != 0; }

static void plain(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_load_wait(w, OF_STACK(b)); }

/* Lines that the bits from 9 on keep together, in each of 16 instances of a warp; `context`: instructions between
 * two. */
static void learnable(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const uint32_t *between = c;
  for (uint32_t n = 0; n < 16; n++) {
    trace_put_enter(w, 10, 0);
    rig_load_wait(w, RIG_BASE + (b * 16 + n) * 512);
    rig_load_wait(w, RIG_BASE + (b * 16 + n) * 512 + 384);
    trace_put_leave(w, 10);
    if (*between) rig_issue(w, *between);
  }
}

static sim_stacks run_learning(const char *map, bool plain_first, uint32_t between, sim_counters *counters) {
  rig r;
  sim_offloading of = {.find = find, .any = any_but_plain, .instances = 16};
  rig_open(&r, "copy");
  four_stacks(&r.spec);
  r.offload = SIM_OFFLOAD_CONTROLLED;
  r.map = map;
  r.offloading = &of;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, 1 << 20);
  if (plain_first) rig_launch(&r, (rig_kernel){.blocks = 4, .warps = 1, .warp = plain, .name = "plain"});
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = learnable, .context = &between});
  const sim_result *result = rig_finish(&r);
  sim_stacks s = result->stacks;
  *counters = result->counters;
  rig_close(&r);
  return s;
}

static void test_kernels_without_candidates(void **state) {
  sim_counters c;
  sim_stacks s = run_learning("learned:50%", false, 0, &c);
  assert_int_equal(c.remote_bytes, 8 * 256);
  assert_int_equal(s.moved_bytes, 0);
  s = run_learning("learned:50%", true, 0, &c);
  /* the copies were over before the first kernel, whose data none of them waits for */
  assert_int_equal(c.remote_bytes, 0);
  assert_int_equal(s.delayed_bytes, 1 << 20);
  assert_int_equal(s.learned_instances, 8);
  assert_string_equal(s.found, "9:10");
  assert_int_equal(s.moved_bytes, 1 << 20); /* what got another place then, in the kernel's own time */
  assert_int_equal(s.stopped_ps, (1 << 20) * UINT64_C(125) / 2);
  assert_int_equal(c.h2d_bytes, 1 << 20);
}

static void test_patience(void **state) {
  sim_counters c;
  sim_stacks s = run_learning("learned:100%", false, 1000, &c); /* 4 us each */
  assert_between(c.remote_bytes, 4 * 256, 6 * 256);             /* of 16 those of the first 20 us */
  assert_int_equal(s.delayed_bytes, 1 << 20);
  assert_int_equal(c.h2d_bytes, 1 << 20);
  assert_between(s.learned_instances, 4, 6);
  assert_string_equal(s.found, "baseline");
  assert_int_equal(s.moved_bytes, 0);
  assert_true(s.stopped_ps >= (1 << 20) * UINT64_C(62));
  assert_true(s.offloaded >= 9);
  s = run_learning("learned:100%", false, 250, &c); /* 1 us each: all are seen in time */
  assert_string_equal(s.found, "9:10");
  assert_int_equal(c.remote_bytes, 16 * 256);
}

/* Instances whose condition does not hold stay on the GPU whatever the map is: nothing is learned from them, and they
 * are not waited for. */
static void too_few_trips(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < 8; n++) load_in_block(w, 30, 1, RIG_BASE + n * 4096, RIG_BASE + (n + 9) * 4096);
  for (uint32_t n = 0; n < 8; n++) load_in_block(w, 30, 4, RIG_BASE + n * 512, RIG_BASE + n * 512 + 384);
}

static void test_learns_from_those_that_may_go(void **state) {
  rig r;
  sim_counters c;
  sim_stacks s = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "learned:50%", NULL,
                            (rig_kernel){.blocks = 1, .warps = 1, .warp = too_few_trips}, &c);
  assert_int_equal(s.learned_instances, 4);
  assert_int_equal(s.refused_condition, 8);
  assert_int_equal(s.refused_learning, 4);
  assert_string_equal(s.found, "9:10");
}

/* ---- the highest pair ---- */

/* Lines of an instance that only 14:15 and above keep together. */
static void spread_low(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < 16; n++) {
    trace_put_enter(w, 10, 0);
    for (uint64_t bit = 7; bit < 14; bit++) rig_load_wait(w, RIG_BASE + ((uint64_t)n << 14) + (UINT64_C(1) << bit));
    rig_load_wait(w, RIG_BASE + ((uint64_t)n << 14));
    trace_put_leave(w, 10);
  }
}

static void sixty_sms(machine_spec *s) { s->sm_count = 60; }

static void test_highest_pair(void **state) {
  /* 64 x 48 lines of 128 bytes are 384 KiB: each of four stacks twice, 48 KiB a turn */
  assert_int_equal(sim_highest_pair(64, 1536, 4), 15);
  assert_int_equal(sim_highest_pair(64, 1536, 8), 14);
  assert_int_equal(sim_highest_pair(64, 1024, 4), 15);
  assert_int_equal(sim_highest_pair(64, 1023, 4), 14);
  assert_int_equal(sim_highest_pair(1, 32, 16), STACK_MAP_LOWEST);
  assert_int_equal(sim_highest_pair(64, 1536, 0), 17); /* no stacks: as if one */
  rig r;
  sim_counters c;
  offloading.instances = 16;
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = spread_low};
  /* 15 SMs: at most 13:14, which has seven of eight lines beside */
  assert_string_equal(run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:100%", NULL, k, &c).found, "13:14");
  assert_string_equal(run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:100%", sixty_sms, k, &c).found, "14:15");
  offloading.instances = 8;
}

/* Lines that all pairs keep together and the baseline's map does not: where instances follow indices, the highest pair
 * is taken with which what runs at one time reaches each stack four times. */
static void far_apart(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 16; n++) {
    trace_put_enter(w, 10, 0);
    for (uint64_t far = 0; far < 8; far++) rig_load_wait(w, RIG_BASE + n * 128 + (far << 18));
    trace_put_leave(w, 10);
  }
}

static void test_follows_indices(void **state) {
  rig r;
  sim_counters c;
  offloading.instances = 16;
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = far_apart};
  assert_string_equal(run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:100%", sixty_sms, k, &c).found, "7:8");
  offloading.follows = true;
  assert_string_equal(run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:100%", sixty_sms, k, &c).found, "14:15");
  offloading.instances = 8;
  offloading.follows = false;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_room_by_registers),
      cmocka_unit_test(test_crowding),
      cmocka_unit_test(test_pace),
      cmocka_unit_test(test_pace_matters_if_nothing_is_busy),
      cmocka_unit_test(test_asks_again),
      cmocka_unit_test(test_what_is_sent_at_a_later_trip),
      cmocka_unit_test(test_relieves_the_busy_channel),
      cmocka_unit_test(test_the_busier_channel),
      cmocka_unit_test(test_paper),
      cmocka_unit_test(test_first_packets),
      cmocka_unit_test(test_requests_go_first),
      cmocka_unit_test(test_blocks_are_told_apart),
      cmocka_unit_test(test_kernels_without_candidates),
      cmocka_unit_test(test_patience),
      cmocka_unit_test(test_learns_from_those_that_may_go),
      cmocka_unit_test(test_highest_pair),
      cmocka_unit_test(test_follows_indices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
