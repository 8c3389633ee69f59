/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for the clock: the same values, counts and access stream as round by round, in few steps: forms and
 * endless would run for hours round by round, and be stopped by the tests' time limit. */
#include "core_harness.h"
#include "unit/share.h"

/* %r1: the clock before, %rd1: at the end of the loop's last round. Its condition compares what has gone by with
 * %r4. */
#define WAIT_FOR(cycles)        \
  "mov.u32 %r3, %tid.x;" cycles \
  "mov.u32 %r1, %clock; L: mov.u32 %r2, %clock; sub.u32 %r5, %r2, %r1; setp.lt.u32 %p1, %r5, %r4; @%p1 bra L;"
#define KEEP "mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; st.global.u32 [%rd2], %r5;"
/* PTX instructions of a round; from the first reading of the clock to the first in the loop */
enum { ROUND = 4, BEFORE = 1 };

static uint32_t waited(uint32_t cycles) {
  return cycles <= BEFORE ? BEFORE : BEFORE + (cycles - BEFORE + ROUND - 1) / ROUND * ROUND;
}

/* To the cycle, and every round is counted. */
static void test_exact(void **state) {
  static const uint32_t cycles[] = {0, 1, 2, 5, 6, 63, 64, 1000, 4097, 123456, 30000000, 2000000000};
  kernel_test *t = open_body("", WAIT_FOR("mov.u32 %r4, %n;") KEEP);
  uint64_t out = buffer(t, 4096);
  for (size_t c = 0; c < sizeof cycles / sizeof *cycles; c++) {
    run(t, "k", 1, 64, out, cycles[c]);
    for (uint32_t i = 0; i < 64; i++)
      if (u32_at(out)[i] != waited(cycles[c]))
        fail_msg("thread %u waited %u cycles, not %u, for %u", i, u32_at(out)[i], waited(cycles[c]), cycles[c]);
    uint64_t rounds = (waited(cycles[c]) - BEFORE) / ROUND + 1; /* three instructions before, four behind */
    assert_int_equal(t->stats.warp_instructions, 2 * (2 + 3 + rounds * ROUND + 4));
    assert_int_equal(t->stats.thread_instructions, 32 * t->stats.warp_instructions);
  }
  close_ptx(t);
}

/* Lanes that leave at different times, and some that are not there at all. */
static void test_lanes_apart(void **state) {
  kernel_test *t =
      open_body("", WAIT_FOR("mul.lo.u32 %r4, %r3, %n; setp.eq.u32 %p2, %r3, 7; @%p2 bra END;") KEEP "END:");
  uint64_t out = buffer(t, 4096);
  run(t, "k", 1, 45, out, 100000);
  for (uint32_t i = 0; i < 45; i++)
    if (u32_at(out)[i] != (i == 7 ? 0 : waited(i * 100000))) fail_msg("thread %u waited %u cycles", i, u32_at(out)[i]);
  close_ptx(t);
}

/* Nanoseconds, 64 bits, a condition that is turned round, a value that is worked out before the clock is read. */
static void test_forms(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u64 %rd1, %clock64; L: add.u32 %r7, %n, 5; mov.u64 %rd2, %clock64; sub.u64 %rd3, %rd2, %rd1; mul.wide.u32 %rd4, %r7, 256; setp.ge.u64 %p1, %rd3, %rd4; @!%p1 bra L;"
      "st.global.u64 [%out], %rd3; mov.u64 %rd5, %globaltimer; M: mov.u64 %rd6, %globaltimer; sub.u64 %rd7, %rd6, %rd5; cvt.u64.u32 %rd8, %n; setp.lt.u64 %p2, %rd7, %rd8; @%p2 bra M;"
      "st.global.u64 [%out+8], %rd7; st.global.u32 [%out+16], %r7;");
  uint64_t out = buffer(t, 64);
  t->config.clock_hz = 500000000;
  run(t, "k", 1, 1, out, 1000000000);
  assert_in_range(u64_at(out)[0], UINT64_C(1000000005) * 256, UINT64_C(1000000005) * 256 + 6);
  assert_in_range(u64_at(out)[1], 1000000000, 1000000000 + 2 * 5);
  assert_int_equal(u32_at(out)[4], 1000000005);
  close_ptx(t);
}

/* A register that is written before the clock is read and not needed at the end of the round: another may have its slot
 * by then. */
static void test_shared_slots(void **state) {
  kernel_test *t = open_body(
      "",
      "add.u32 %r10, %n, %n; mov.u32 %r1, %clock; L: add.u32 %r7, %n, 5; mov.u32 %r2, %clock; sub.u32 %r5, %r2, %r1; add.u32 %r8, %r5, %r7; add.u32 %r11, %r8, 21; sub.u32 %r12, %r11, 21;"
      "sub.u32 %r9, %r12, 5; setp.lt.u32 %p1, %r9, %r10; @%p1 bra L; st.global.u32 [%out], %r5; st.global.u32 [%out+4], %r8;");
  uint64_t out = buffer(t, 64);
  for (uint32_t n = 1000; n < 1040; n++) {
    run(t, "k", 1, 1, out, n);
    assert_in_range(u32_at(out)[0], n, n + 8);
    assert_int_equal(u32_at(out)[1], u32_at(out)[0] + n + 5);
  }
  close_ptx(t);
}

/* A loop that is entered behind its head, where it is left at once. */
static void test_entered_behind(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r7, 0; mov.u32 %r1, %clock; setp.eq.u32 %p2, %n, 0; @%p2 bra M; L: add.u32 %r7, %n, 70000; M: mov.u32 %r2, %clock; sub.u32 %r5, %r2, %r1; setp.lt.u32 %p1, %r5, %r7; @%p1 bra L;"
      "st.global.u32 [%out], %r5;");
  uint64_t out = buffer(t, 64);
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(u32_at(out)[0], 3);
  run(t, "k", 1, 1, out, 1);
  assert_in_range(u32_at(out)[0], 70001, 70006);
  close_ptx(t);
}

/* A carry of the round before is not one that a trial has left. */
static void test_carry(void **state) {
  kernel_test *t = open_body(
      "",
      "sub.u32 %r4, 0, %n; mov.u32 %r1, %clock; L: mov.u32 %r2, %clock; sub.u32 %r5, %r2, %r1; addc.u32 %r6, %r5, 0; add.cc.u32 %r7, %r5, %r4; setp.lt.u32 %p1, %r5, %n; @%p1 bra L;"
      "st.global.u32 [%out], %r5; st.global.u32 [%out+4], %r6;");
  uint64_t out = buffer(t, 64);
  for (uint32_t n = 1000; n < 1040; n++) {
    run(t, "k", 1, 1, out, n);
    assert_int_equal(u32_at(out)[1], u32_at(out)[0]);
  }
  close_ptx(t);
}

/* What does more than wait does all of it: a sum over the rounds, a store, a look at memory, a condition of two
 * kinds. */
static void test_other_loops(void **state) {
  static const char *const more[] = {
      "add.u32 %r6, %r6, 1;",
      "st.global.u32 [%out+4], %r5; ld.volatile.global.u32 %r7, [%out+8]; add.u32 %r7, %r7, 1; st.global.u32 [%out+8], %r7; mov.u32 %r6, %r7;",
      "red.global.add.u32 [%out+8], 1;", "@%p3 mov.u32 %r7, %r6; add.u32 %r6, %r6, 1;",
      "setp.eq.u32 %p4, %r6, 249; add.u32 %r6, %r6, 1; @%p4 bra M; M:"};
  for (size_t n = 0; n < sizeof more / sizeof *more; n++) {
    char body[1024];
    snprintf(
        body, sizeof body,
        "mov.u32 %%r6, 0; mov.u32 %%r7, 0; setp.ne.u32 %%p3, %%n, 0; mov.u32 %%r1, %%clock; L: mov.u32 %%r2, %%clock; sub.u32 %%r5, %%r2, %%r1; %s setp.lt.u32 %%p1, %%r5, %%n; @%%p1 bra L; st.global.u32 [%%out], %%r6;",
        more[n]);
    kernel_test *t = open_body("", body);
    uint64_t out = buffer(t, 64);
    run(t, "k", 1, 1, out, 2000);
    uint32_t round = ROUND + (n == 1 ? 5 : n == 3 ? 2 : n == 4 ? 3 : 1);
    assert_int_equal(u32_at(out)[n == 2 ? 2 : 0], (2000 - BEFORE + round - 1) / round + 1);
    close_ptx(t);
  }
}

/* A condition that comes and goes with the clock is met when it is first there: nothing is jumped over. */
static void test_comes_and_goes(void **state) {
  static const char *const conditions[] = {
      "and.b32 %r5, %r2, 1020; setp.ne.u32 %p1, %r5, 512;",
      "rem.u32 %r5, %r2, 1000; setp.gt.u32 %p1, %r5, 9;",
      "shl.b32 %r5, %r2, 22; setp.lt.u32 %p1, %r5, 0xf8000000;",
      "mul.lo.u32 %r5, %r2, 4194304; setp.lt.u32 %p1, %r5, 0xf8000000;",
      "sub.u32 %r5, %r2, %r1; setp.lt.u32 %p2, %r5, 500; setp.gt.u32 %p3, %r5, 520; or.pred %p1, %p2, %p3;",
      "sub.u32 %r5, %r2, %r1; setp.lt.u32 %p2, %r5, 500; setp.gt.or.u32 %p1, %r5, 520, %p2;",
      "mov.b32 {%rs1, %rs2}, %r2; shr.u16 %rs1, %rs1, 3; cvt.u32.u16 %r5, %rs1; setp.lt.u32 %p1, %r5, 8000;"};
  for (size_t n = 0; n < sizeof conditions / sizeof *conditions; n++) {
    char body[1024];
    snprintf(
        body, sizeof body,
        "mov.u32 %%r1, %%clock; L: mov.u32 %%r2, %%clock; %s @%%p1 bra L; mov.u32 %%r3, %%clock; sub.u32 %%r3, %%r3, %%r1; st.global.u32 [%%out], %%r3;",
        conditions[n]);
    kernel_test *t = open_body("", body);
    uint64_t out = buffer(t, 64);
    run(t, "k", 1, 1, out, 0);
    if (u32_at(out)[0] > 70000) fail_msg("%u cycles until %s", u32_at(out)[0], conditions[n]);
    close_ptx(t);
  }
}

/* One that never ends is stopped as others are, and does not keep the launch's other warps from running. */
static void test_endless(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; setp.lt.u32 %p2, %r3, 32; @%p2 bra L; st.global.u32 [%out], 1; bra END; L: mov.u32 %r2, %clock; setp.ge.u32 %p1, %r2, 0; @%p1 bra L; END:");
  uint64_t out = buffer(t, 64);
  t->config.max_instructions = UINT64_C(1) << 40;
  assert_int_equal(run_fault(t, "k", 1, 64, out, 0)->kind, EXEC_FAULT_TIMEOUT);
  assert_int_equal(u32_at(out)[0], 1);
  close_ptx(t);
}

/* What the access stream counts. */
typedef struct stream_sums {
  uint64_t instructions, fp64;
  uint64_t units[TRACE_UNIT_COUNT];
  uint32_t records; /* but for UNITS */
} stream_sums;

/* A launch's instructions: as many as were counted, none in a record of another kind. */
static stream_sums issued(kernel_test *t, uint32_t n, uint64_t out) {
  stream_sums sums = {0};
  trace_program *program = trace_program_create(0);
  trace_program_units(program, true);
  trace_reader *reader = trace_reader_create(program);
  t->trace = trace_launch_create(program, 1, 1);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = t->trace});
  run(t, "k", 1, 32, out, n);
  trace_launch_finish(t->trace);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  trace_chunk *chunk = trace_reader_chunk(reader, trace_reader_next_op(reader)->launch, 0);
  trace_cursor cursor;
  const uint64_t *word;
  trace_cursor_open(reader, chunk, 0, &cursor);
  while (trace_word_kind(*(word = trace_cursor_next(reader, &cursor))) != TRACE_EXIT) {
    if (trace_word_kind(*word) == TRACE_UNITS) {
      trace_counts counts = {{0}};
      trace_add_units(&counts, *word);
      for (trace_unit unit = 0; unit < TRACE_UNIT_COUNT; unit++) sums.units[unit] += trace_count(&counts, unit);
      continue;
    }
    sums.records++;
    if (trace_word_kind(*word) != TRACE_ISSUE) continue;
    sums.instructions += trace_issue_count(*word);
    sums.fp64 += trace_issue_fp64(*word);
  }
  trace_reader_release(reader, chunk);
  trace_reader_next_op(reader);
  trace_reader_free(reader);
  trace_program_free(program);
  t->trace = NULL;
  return sums;
}

static void test_stream(void **state) {
  kernel_test *t = open_body("", WAIT_FOR("mov.u32 %r4, %n;") KEEP);
  uint64_t out = buffer(t, 4096);
  for (uint32_t cycles = 10; cycles < 5000000; cycles *= 7) {
    stream_sums sums = issued(t, cycles, out);
    assert_int_equal(u32_at(out)[5], waited(cycles));
    assert_int_equal(sums.instructions, t->stats.warp_instructions);
    assert_in_range(sums.records, 2, 2 + sums.instructions / TRACE_ISSUE_MAX + 1);
  }
  close_ptx(t);
}

/* Each round counts the same units, however many there are and wherever a record ends in them: a loop of five
 * instructions, of which two are of other units than those around them. */
static void test_stream_units(void **state) {
  kernel_test *t = open_body(
      "", "mov.u32 %r4, %n; mov.u32 %r3, %tid.x; mov.u32 %r1, %clock; L: mov.u32 %r2, %clock; sub.u32 %r5, %r2, %r1;"
          "cvt.rn.f64.u32 %fd1, %r5; setp.lt.u32 %p1, %r5, %r4; @%p1 bra L;" KEEP);
  uint64_t out = buffer(t, 4096);
  stream_sums one = issued(t, 1, out), two = issued(t, 4, out);
  uint64_t rounds = (two.instructions - one.instructions) / 5;
  assert_int_equal(rounds, 1);
  assert_true(two.fp64 > one.fp64 || two.units[TRACE_CHAIN] > one.units[TRACE_CHAIN]);
  for (uint32_t cycles = 10; cycles < 100000000; cycles *= CHECKED_BUILD ? 49 : 7) {
    stream_sums sums = issued(t, cycles, out);
    rounds = (sums.instructions - one.instructions) / 5;
    assert_int_equal(sums.instructions, t->stats.warp_instructions);
    assert_int_equal(sums.instructions, one.instructions + 5 * rounds);
    assert_int_equal(sums.fp64, one.fp64 + rounds * (two.fp64 - one.fp64));
    for (trace_unit unit = 0; unit < TRACE_UNIT_COUNT; unit++)
      assert_int_equal(sums.units[unit], one.units[unit] + rounds * (two.units[unit] - one.units[unit]));
  }
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exact),        cmocka_unit_test(test_lanes_apart),    cmocka_unit_test(test_forms),
    cmocka_unit_test(test_shared_slots), cmocka_unit_test(test_entered_behind), cmocka_unit_test(test_carry),
    cmocka_unit_test(test_other_loops),  cmocka_unit_test(test_comes_and_goes), cmocka_unit_test(test_endless),
    cmocka_unit_test(test_stream),       cmocka_unit_test(test_stream_units)};
RUN_ON_EVERY_ISA(tests)
