/* SPDX-License-Identifier: Apache-2.0 */
/* Memory stacks: the picosecond at which a line is there from the GPU and from an SM in a stack; every byte on every
 * link; condition, channels and room; what is learned. (What the controller has in addition to the paper's steps, and
 * how learning ends: test_controller.c.) */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack_rig.h"

/* ---- the way of a line ---- */

static void only_warm(trace_writer *w, uint64_t b, uint32_t i, const void *c) { warm(w); }
static void one_load(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, OF_STACK(1));
}

static void test_load_from_gpu(void **state) {
  ps before, after;
  sim_stacks none = run_one(SIM_OFFLOAD_NONE, NULL, only_warm, &before),
             one = run_one(SIM_OFFLOAD_NONE, NULL, one_load, &after);
  assert_int_equal(after - before, (L2_NS + 2 * LINK_NS + CONTROLLER_NS + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS +
                                       TX_PS(4) + TX_PS(128));
  assert_int_equal(one.tx[1] - none.tx[1], 4);
  assert_int_equal(one.rx[1] - none.rx[1], 128);
  assert_int_equal(one.internal[1] - none.internal[1], 128);
  assert_int_equal(one.tx[2], none.tx[2]);
  assert_int_equal(one.count, 4);
}

static void no_walks(machine_spec *s) { s->tlb_miss_latency = s->walk_cache_latency = 0; }

static void one_store(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_access(w, TRACE_STORE, 0, OF_STACK(2), 3); /* two sectors */
}

static void test_store_from_gpu(void **state) {
  ps before, after;
  sim_stacks none = run_one(SIM_OFFLOAD_NONE, NULL, only_warm, &before),
             one = run_one(SIM_OFFLOAD_NONE, NULL, one_store, &after);
  assert_int_equal(one.tx[2] - none.tx[2], 4 + 64);
  assert_int_equal(one.rx[2] - none.rx[2], 1);
  assert_int_equal(one.internal[2] - none.internal[2], 64);
}

/* Neighbouring lines of a vault's row are in one row of one bank. Row 1 is asked for while row 0 is open still, and
 * then row 0 again: first ready, first come first served, so that two rows are opened; in order it would be three.
 * Addresses of stack 1: a line of a vault is 16 lines of the stack on, its row 32 of its lines; rows of one bank are
 * those whose number r and r / 16 have the same exclusive or. */
static uint64_t of_vault(uint64_t row, uint64_t column) {
  uint64_t inside = row * 32 + column, vault = (inside ^ inside / 16) & 15, line = inside * 16 + vault;
  return RIG_BASE + (line / 32 << 14 | 1 << 12 | line % 32 << 7); /* the stack's lines are 4 KiB of each 16 */
}
static void two_rows(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const uint64_t *rows = c;
  warm(w);
  for (int n = 0; n < 4; n++) rig_load(w, of_vault(rows[n], (uint64_t)n));
  trace_put_wait(w, 0);
}

static void one_page(machine_spec *s) { s->page_bytes = 32 << 20; }

static uint64_t rows_opened(const uint64_t *rows) {
  rig r;
  sim_counters c, before;
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = two_rows, .context = rows},
             none = {.blocks = 1, .warps = 1, .warp = only_warm};
  run_stacks(&r, "ideal", SIM_OFFLOAD_NONE, "12:13", one_page, none, &before);
  run_stacks(&r, "ideal", SIM_OFFLOAD_NONE, "12:13", one_page, k, &c);
  return c.dram_row_misses - before.dram_row_misses;
}

static void test_rows_of_a_vault(void **state) {
  /* 17 ^ 17 / 16 == 0 ^ 0: the same bank */
  assert_int_equal(rows_opened((uint64_t[]){0, 0, 0, 0}), 1);
  assert_int_equal(rows_opened((uint64_t[]){0, 17, 0, 17}), 2);
  assert_int_equal(rows_opened((uint64_t[]){0, 17, 0, 0}), 2);
  assert_int_equal(rows_opened((uint64_t[]){0, 17, 34, 0}), 3);
}

/* ---- whole lines ---- */

static void one_sector(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_access(w, TRACE_LOAD, 0, OF_STACK(1), 1);
  trace_put_wait(w, 0);
  rig_access(w, TRACE_LOAD, 0, OF_STACK(1), 2); /* a hit if the line came */
  trace_put_wait(w, 0);
}
static void one_sector_in_block(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  trace_put_enter(w, 10, 0);
  rig_access(w, TRACE_LOAD, 0, OF_STACK(1), 1);
  trace_put_wait(w, 0);
  trace_put_leave(w, 10);
}
static void line_fills(machine_spec *s) {
  no_walks(s);
  s->l1_line_fills = 1;
}

static void test_line_fills(void **state) {
  ps time;
  sim_stacks before = run_one(SIM_OFFLOAD_NONE, no_walks, only_warm, &time),
             sectors = run_one(SIM_OFFLOAD_NONE, no_walks, one_sector, &time),
             lines = run_one(SIM_OFFLOAD_NONE, line_fills, one_sector, &time);
  assert_int_equal(sectors.rx[1] - before.rx[1], 2 * 32);
  assert_int_equal(sectors.tx[1] - before.tx[1], 2 * 4);
  assert_int_equal(lines.rx[1] - before.rx[1], 128);
  assert_int_equal(lines.tx[1] - before.tx[1], 4);
  sim_stacks away = run_one(SIM_OFFLOAD_CONTROLLED, line_fills, one_sector_in_block, &time); /* a stack's SM, too */
  assert_int_equal(away.offloaded, 1);
  assert_int_equal(away.internal[1] - before.internal[1], 128);
}

/* ---- an instance in a stack ---- */

static void local_twice(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 10, 0, OF_STACK(1), OF_STACK(5));
}
static void remote_second(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 10, 0, OF_STACK(1), OF_STACK(6));
}


static void test_instance(void **state) {
  ps before, local, twice, remote;
  sim_stacks none = run_one(SIM_OFFLOAD_CONTROLLED, no_walks, only_warm, &before),
             one = run_one(SIM_OFFLOAD_CONTROLLED, no_walks, local_load, &local);
  assert_int_equal(one.instances, 1);
  assert_int_equal(one.colocated, 1);
  assert_int_equal(one.offloaded, 1);
  assert_int_equal(one.request_bytes, 12 + 256);
  assert_int_equal(one.answer_bytes, 128 + 1);
  assert_int_equal(one.local_bytes >= 128, 1); /* and the tables of its walk */
  assert_int_equal(one.tx[1] - none.tx[1], 12 + 256);
  assert_int_equal(one.rx[1] - none.rx[1], 128 + 1);
  sim_stacks two = run_one(SIM_OFFLOAD_CONTROLLED, no_walks, local_twice, &twice),
             far = run_one(SIM_OFFLOAD_CONTROLLED, no_walks, remote_second, &remote);
  assert_int_equal(two.colocated, 1);
  assert_int_equal(far.colocated, 0);
  /* The second load: local, in an open row or another bank's; or over the link between the stacks and back. */
  assert_int_equal(far.cross[1][2] - two.cross[1][2], 4);
  assert_int_equal(far.cross[2][1] - two.cross[2][1], 128);
  assert_int_equal(remote - twice, 2 * LINK_NS * NS + CROSS_PS(4 + 128));
  assert_int_equal(twice - local, (CONTROLLER_NS + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS);
}

static void store_in_block(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, OF_STACK(1)); /* now in the L1 and the L2 */
  trace_put_enter(w, 10, 0);
  rig_store(w, OF_STACK(1));
  rig_store(w, OF_STACK(1) + 128);
  trace_put_leave(w, 10);
  rig_load_wait(w, OF_STACK(1));
}

static void test_written_lines(void **state) {
  rig r;
  sim_counters c, kept;
  rig_kernel k = {.blocks = 1, .warps = 1, .warp = store_in_block};
  sim_stacks away = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c),
             at_home = run_stacks(&r, "ideal", SIM_OFFLOAD_NONE, "12:13", NULL, k, &kept);
  assert_int_equal(away.dirty_lines, 2);
  assert_int_equal(away.invalidated_lines, 2); /* the first one, in both caches */
  assert_int_equal(away.answer_bytes, 128 + 2 * 4 + 1);
  assert_int_equal(at_home.dirty_lines, 0);
  assert_int_equal(kept.l1_misses, 8); /* the load behind it hits at home, and misses after the stack wrote */
  assert_int_equal(c.l1_misses, 12);
}

/* ---- the version oracle: a step of coherence is left out ---- */

static void store_then_block(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 10, 0, OF_STACK(5), 0); /* the stack's SM knows the page */
  rig_store(w, OF_STACK(1));
  trace_put_enter(w, 10, 0);
  rig_load_wait(w, OF_STACK(1));
  trace_put_leave(w, 10);
}
/* The stack's SM keeps a line from one instance to the next, and the GPU writes it between. */
static void block_store_block(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 10, 0, OF_STACK(1), 0);
  rig_store(w, OF_STACK(1));
  rig_issue(w, 2000);
  load_in_block(w, 10, 0, OF_STACK(1), 0);
}
static void bypass_after_block(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, OF_STACK(1));
  trace_put_enter(w, 10, 0);
  rig_store(w, OF_STACK(1));
  trace_put_leave(w, 10);
  rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, OF_STACK(1), 15);
  trace_put_wait(w, 0);
}

static int run_left_out(uint32_t step, body warp) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    signal(SIGABRT, SIG_DFL);
    ff_check_level = 2;
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    rig r;
    rig_open(&r, "ideal");
    four_stacks(&r.spec);
    r.offload = SIM_OFFLOAD_CONTROLLED;
    r.map = "12:13";
    r.offloading = &offloading;
    rig_start(&r);
    r.sim->stacks->left_out = step;
    rig_alloc(&r, RIG_BASE, 64 << 20, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = warp});
    _exit(rig_finish(&r)->stacks.offloaded > 0 ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_the_oracle_sees_stale_lines(void **state) {
  static const struct {
    uint32_t step;
    body warp;
  } steps[] = {{COHERENCE_PUSH, store_then_block},
               {COHERENCE_EMPTY, block_store_block},
               {COHERENCE_DROP_L2, bypass_after_block},
               {COHERENCE_DROP_L1, store_in_block}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    assert_int_equal(run_left_out(0, steps[i].warp), 0);
    assert_int_equal(run_left_out(steps[i].step, steps[i].warp), SIGABRT);
  }
}

/* ---- the controller ---- */

static void few_trips(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 30, 3, OF_STACK(1), 0);
}
static void enough_trips(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_in_block(w, 30, 4, OF_STACK(1), 0);
}

static void test_condition(void **state) {
  ps time;
  sim_stacks few = run_one(SIM_OFFLOAD_CONTROLLED, NULL, few_trips, &time),
             always = run_one(SIM_OFFLOAD_ALWAYS, NULL, few_trips, &time);
  assert_int_equal(few.refused_condition, 1);
  assert_int_equal(few.offloaded, 0);
  assert_int_equal(always.refused_condition, 1); /* the condition is the compiler's */
  assert_int_equal(run_one(SIM_OFFLOAD_CONTROLLED, NULL, enough_trips, &time).offloaded, 1);
}

/* Many warps at once: the stack holds two. */
static void two_warps(machine_spec *s) { s->stack_warps = 2; }

static void test_room(void **state) {
  rig r;
  sim_counters c;
  rig_kernel k = {.blocks = 1, .warps = 8, .warp = local_load};
  sim_stacks controlled = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", two_warps, k, &c);
  assert_int_equal(controlled.instances, 8);
  assert_true(controlled.refused_full > 0);
  assert_int_equal(controlled.offloaded + controlled.refused_full, 8);
  sim_stacks always = run_stacks(&r, "ideal", SIM_OFFLOAD_ALWAYS, "12:13", two_warps, k, &c);
  assert_int_equal(always.offloaded, 8); /* the others wait there */
  assert_int_equal(always.refused_full, 0);
}

/* The channel to the stack is busy with other warps' writes; the block saves there, or does not. */
static void busy_writer(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  const uint32_t *pc = c;
  warm(w);
  if (i) {
    for (uint32_t n = 0; n < 200; n++) rig_store(w, OF_STACK(1) + (uint64_t)(i * 200 + n) * 16384);
    return;
  }
  rig_issue(w, 1000);
  trace_put_enter(w, *pc, 0);
  rig_load_wait(w, OF_STACK(1));
  trace_put_leave(w, *pc);
}

static void test_channels(void **state) {
  rig r;
  sim_counters c;
  static const uint32_t saves = 10, saves_not = 20;
  rig_kernel k = {.blocks = 1, .warps = 4, .warp = busy_writer, .context = &saves_not};
  sim_stacks refused = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c);
  assert_int_equal(refused.refused_tx, 1);
  assert_int_equal(run_stacks(&r, "ideal", SIM_OFFLOAD_ALWAYS, "12:13", NULL, k, &c).offloaded, 1);
  k.context = &saves;
  assert_int_equal(run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL, k, &c).offloaded, 1);
}

static void test_ideal(void **state) {
  ps time, controlled;
  sim_stacks s = run_one(SIM_OFFLOAD_IDEAL, no_walks, remote_second, &time);
  run_one(SIM_OFFLOAD_CONTROLLED, no_walks, remote_second, &controlled);
  assert_int_equal(s.offloaded, 1);
  assert_int_equal(s.request_bytes + s.answer_bytes, 0);
  for (int i = 0; i < 4; i++)
    for (int n = 0; n < 4; n++) assert_int_equal(s.cross[i][n], 0);
  assert_true(time < controlled);
}

/* ---- learning ---- */

/* Two lines that the bits 9:10 to 12:13 keep together; the lowest of equals is taken. */
static void learnable(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint32_t n = 0; n < 4; n++) {
    uint64_t first = RIG_BASE + (b * 4 + n) * 512;
    trace_put_enter(w, 10, 0);
    rig_load_wait(w, first);
    rig_load_wait(w, first + 384 + (16 << 10));
    trace_put_leave(w, 10);
  }
}

static void test_learned(void **state) {
  rig r;
  sim_counters c, known;
  offloading.instances = 256;
  rig_kernel k = {.blocks = 64, .warps = 1, .warp = learnable};
  sim_stacks s = run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:20%", NULL, k, &c);
  assert_string_equal(s.found, "9:10");
  assert_int_equal(s.learned_instances, 52); /* 20 % of 256, rounded up */
  assert_int_equal(s.delayed_bytes, 1 << 20);
  assert_int_equal(c.h2d_bytes, 1 << 20);
  assert_true(c.remote_bytes >= 52 * 256);
  assert_true(s.offloaded > 0 && s.offloaded <= 256 - 52);
  assert_true(s.stopped_ps > (1 << 20) * UINT64_C(62)); /* 16 GB/s: 62.5 ps a byte */
  assert_true(s.learning_kernel_ps > s.stopped_ps && s.learning_kernel_ps <= s.learning_ps &&
              s.learning_kernel_ps < c.kernel_ps);
  sim_stacks fixed = run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "9:10", NULL, k, &known);
  assert_int_equal(fixed.colocated, 256);
  assert_int_equal(known.remote_bytes, 0);
  offloading.instances = 8;
}

/* The energy of the run's parts, from its bytes and time. */
static void test_energy(void **state) {
  rig r;
  sim_counters c;
  sim_stacks s = run_stacks(&r, "ideal", SIM_OFFLOAD_NONE, "12:13", NULL,
                            (rig_kernel){.blocks = 1, .warps = 1, .warp = one_load}, &c);
  double bytes = 0;
  for (int i = 0; i < 4; i++) bytes += (double)(s.tx[i] + s.rx[i]);
  /* eight channels of 8 GB/s */
  double seconds = (double)c.kernel_ps * 1e-12, carried = bytes / 8e9, idle_bits = (8 * seconds - carried) * 8e9 * 8;
  assert_near(s.link_joule, bytes * 8 * 2e-12, 1e-9);
  assert_near(s.idle_joule, idle_bits * 1.5e-12, 1e-6);
  assert_near(s.activation_joule, (double)c.dram_row_misses * 11.8e-9, 1e-9);
  assert_near(s.read_joule, (double)c.dram_read_bytes * 8 * 4e-12, 1e-9);
  /* 15 SMs, and the four that the stacks would have; with blocks in the stacks these are there */
  assert_near(s.sm_joule, 19 * 1.5 * seconds + (double)c.warp_instructions * 2.5e-9, 1e-9);
  s = run_stacks(&r, "ideal", SIM_OFFLOAD_CONTROLLED, "12:13", NULL,
                 (rig_kernel){.blocks = 1, .warps = 1, .warp = local_load}, &c);
  assert_near(s.sm_joule, 19 * 1.5 * (double)c.kernel_ps * 1e-12 + (double)c.warp_instructions * 2.5e-9, 1e-9);
  assert_near(sim_stacks_joule(&s), s.link_joule + s.idle_joule + s.activation_joule + s.read_joule + s.sm_joule, 1e-9);
}

/* Links and SMs idle while SMs stand still for the copies that waited for a map; that is the program's copying. */
static void test_energy_without_copies(void **state) {
  rig r;
  sim_counters c;
  offloading.instances = 256;
  sim_stacks s = run_stacks(&r, "copy", SIM_OFFLOAD_CONTROLLED, "learned:20%", NULL,
                            (rig_kernel){.blocks = 8, .warps = 8, .warp = learnable}, &c);
  offloading.instances = 8;
  assert_true(s.stopped_ps > 0);
  assert_near(s.sm_joule,
              19 * 1.5 * (double)(c.kernel_ps - s.stopped_ps) * 1e-12 + (double)c.warp_instructions * 2.5e-9, 1e-9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_load_from_gpu),
      cmocka_unit_test(test_store_from_gpu),
      cmocka_unit_test(test_rows_of_a_vault),
      cmocka_unit_test(test_line_fills),
      cmocka_unit_test(test_instance),
      cmocka_unit_test(test_written_lines),
      cmocka_unit_test(test_the_oracle_sees_stale_lines),
      cmocka_unit_test(test_condition),
      cmocka_unit_test(test_room),
      cmocka_unit_test(test_channels),
      cmocka_unit_test(test_ideal),
      cmocka_unit_test(test_learned),
      cmocka_unit_test(test_energy),
      cmocka_unit_test(test_energy_without_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
