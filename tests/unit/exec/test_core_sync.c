/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a block, exchanges within a warp, and the orders in which threads may come to them. */
#include "core_harness.h"

#define AT "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */

/* Each round every thread reads what its neighbour in the next warp wrote in the round before. */
static void test_barrier(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[1024];", AT
      "shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r6, %r5, %r4; add.u32 %r7, %r3, 40; and.b32 %r7, %r7, 255; shl.b32 %r7, %r7, 2;"
      "add.u32 %r7, %r5, %r7; mov.u32 %r8, %r3; mov.u32 %r9, 0; LOOP: st.shared.u32 [%r6], %r8; bar.sync 0; ld.shared.u32 %r8, [%r7]; barrier.sync 0;"
      "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %n; @%p1 bra LOOP; st.global.u32 [%rd2], %r8;");
  uint64_t out = buffer(t, 1024);
  run(t, "k", 1, 256, out, 5);
  for (uint32_t i = 0; i < 256; i++) assert_int_equal(u32_at(out)[i], (i + 200) & 255);
  assert_int_equal(t->stats.barriers, 10);
  close_ptx(t);
}

/* Threads that have exited count as arrived, whole warps and single lanes. */
static void test_barrier_after_exit(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[512];", AT
      "shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r5, %r5, %r4; setp.ge.u32 %p1, %r3, %n; @%p1 bra END; and.b32 %r6, %r3, 3; setp.eq.u32 %p2, %r6, 1;"
      "@%p2 exit; st.shared.u32 [%r5], %r3; bar.sync 1; xor.b32 %r7, %r4, 8; mov.u32 %r8, sh; add.u32 %r7, %r7, %r8; ld.shared.u32 %r9, [%r7];"
      "st.global.u32 [%rd2], %r9; END:");
  uint64_t out = buffer(t, 512);
  for (uint32_t n = 44; n <= 100; n += 28) {
    memset(u32_at(out), 0, 512);
    run(t, "k", 1, 100, out, n);
    for (uint32_t i = 0; i < 100; i++)
      assert_int_equal(u32_at(out)[i], i < n && (i & 3) != 1 && ((i ^ 2) & 3) != 1 && (i ^ 2) < n ? i ^ 2 : 0);
  }
  close_ptx(t);
}

/* Producers arrive and go on, consumers wait; both by count, on two barriers that change roles. */
static void test_arrive(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[128];", AT
      "and.b32 %r4, %r3, 31; shl.b32 %r4, %r4, 2; mov.u32 %r5, sh; add.u32 %r5, %r5, %r4; mov.u32 %r9, 0; mov.u32 %r10, 0; setp.ge.u32 %p1, %r3, 32; @%p1 bra EAT;"
      "MAKE: bar.sync 2, 64; add.u32 %r8, %r9, %r3; st.shared.u32 [%r5], %r8; bar.arrive 1, 64; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %n; @%p2 bra MAKE; bra END;"
      "EAT: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r8, [%r5]; add.u32 %r10, %r10, %r8; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %n; @%p2 bra EAT;"
      "st.global.u32 [%rd2], %r10; END:");
  uint64_t out = buffer(t, 512);
  run(t, "k", 1, 64, out, 6);
  for (uint32_t i = 32; i < 64; i++) assert_int_equal(u32_at(out)[i], 6 * (i - 32) + 15);
  close_ptx(t);
}

static void test_barrier_reductions(void **state) {
  kernel_test *t = open_body(
      "", AT
      "setp.lt.u32 %p1, %r3, %n; setp.lt.u32 %p2, %r3, 96; bar.red.popc.u32 %r5, 0, %p1; bar.red.and.pred %p3, 0, %p2; bar.red.or.pred %p4, 0, 96, !%p2;"
      "barrier.red.or.pred %p5, 3, !%p1; selp.u32 %r6, 1, 0, %p3; selp.u32 %r7, 2, 0, %p4; selp.u32 %r8, 4, 0, %p5; or.b32 %r6, %r6, %r7; or.b32 %r6, %r6, %r8;"
      "shl.b32 %r5, %r5, 8; or.b32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;");
  uint64_t out = buffer(t, 512);
  run(t, "k", 1, 96, out, 50);
  for (uint32_t i = 0; i < 96; i++) assert_int_equal(u32_at(out)[i], 50 << 8 | 4 | 1);
  run(t, "k", 1, 90, out, 90);
  for (uint32_t i = 0; i < 90; i++) assert_int_equal(u32_at(out)[i], 90 << 8 | 1);
  close_ptx(t);
}

/* The two sides of a branch come to the same barrier at different places; lanes of one warp among them. */
static void test_diverged_barrier(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[256];", AT
      "shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r6, %r5, %r4; xor.b32 %r7, %r4, 4; add.u32 %r7, %r5, %r7; and.b32 %r8, %r3, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra EVEN;"
      "add.u32 %r9, %r3, 1000; st.shared.u32 [%r6], %r9; barrier.sync 0; ld.shared.u32 %r10, [%r7]; bra JOIN;"
      "EVEN: st.shared.u32 [%r6], %r3; barrier.sync 0; ld.shared.u32 %r10, [%r7]; JOIN: activemask.b32 %r11; st.global.u32 [%rd2], %r10; st.global.u32 [%rd2+256], %r11;");
  uint64_t out = buffer(t, 512);
  run(t, "k", 1, 64, out, 0);
  for (uint32_t i = 0; i < 64; i++) {
    assert_int_equal(u32_at(out)[i], i & 1 ? i - 1 : i + 1001);
    assert_int_equal(u32_at(out)[64 + i], UINT32_MAX);
  }
  close_ptx(t);
}

/* Whole warps wait, while lanes of warp n come to the barrier one half after the other, or that warp comes to another
 * barrier first, or exits without coming: the last one to come opens it for all. Each round every thread reads what the
 * warp behind its own wrote before the barrier. */
#define PARTS(way)                                                                                                  \
  AT "shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r6, %r5, %r4; add.u32 %r7, %r4, 128; and.b32 %r7, %r7, 511;\n" \
     "add.u32 %r7, %r5, %r7; shr.u32 %r10, %r3, 5; setp.eq.u32 %p1, %r10, %n; mov.u32 %r9, 0;\n"                    \
     "LOOP: add.u32 %r11, %r9, %r3; st.shared.u32 [%r6], %r11; @%p1 bra APART; bar.sync 0; bra MET; APART:" way     \
     "\nMET: ld.shared.u32 %r8, [%r7]; bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 3; @%p3 bra LOOP;\n"  \
     "st.global.u32 [%rd2], %r8;"
static void test_barrier_met_in_parts(void **state) {
  enum { HALVES, OTHER_BARRIER, EXITS, WAYS };
  static const char *const bodies[WAYS] = {PARTS("and.b32 %r8, %r3, 1; setp.eq.u32 %p2, %r8, 0; @%p2 bra EVEN;"
                                                 "barrier.sync 0; bra MET; EVEN: barrier.sync 0;"),
                                           PARTS("bar.arrive 1, 64; bar.sync 1, 64; bar.sync 0;"), PARTS("exit;")};
  for (int way = 0; way < WAYS; way++)
    for (uint32_t n = 0; n < 4; n++) {
      kernel_test *t = open_body(".shared .align 4 .b8 sh[512];", bodies[way]);
      uint64_t out = buffer(t, 512);
      memset(u32_at(out), 0xff, 512);
      run(t, "k", 1, 128, out, n);
      for (uint32_t i = 0; i < 128; i++) {
        uint32_t next = (i + 32) & 127, round = way == EXITS && next / 32 == n ? 0 : 2;
        assert_int_equal(u32_at(out)[i], way == EXITS && i / 32 == n ? UINT32_MAX : next + round);
      }
      assert_int_equal(t->stats.barriers, way == OTHER_BARRIER ? 9 : 6);
      close_ptx(t);
    }
}

/* Warp 0 comes to `first`, warp 1 to `second`, the others, as a whole, to barrier 0: none of them can open. */
#define NEVER_MET(first, second)                                                                               \
  AT "shr.u32 %r10, %r3, 5; setp.eq.u32 %p1, %r10, 0; @%p1 bra ONE; setp.eq.u32 %p1, %r10, 1; @%p1 bra TWO;\n" \
     "bar.sync 0; bra END; ONE:" first "\nbra END; TWO:" second "\nEND:"
static void never_met(const char *body, const char *const lines[4]) {
  kernel_test *t = open_body("", body);
  uint64_t out = buffer(t, 512);
  const exec_fault *fault = run_fault(t, "k", 1, 128, out, 0);
  assert_int_equal(fault->kind, EXEC_FAULT_BARRIER);
  expect_text(fault->message, "no thread of the block can go on: a barrier can never be met");
  for (uint32_t n = 0; n < 4; n++) expect_text(fault->message, lines[n]);
  close_ptx(t);
}

static void test_barriers_never_met(void **state) {
#define WAITS(warp, lanes, barrier) "warp " #warp ": lanes 0x" #lanes " wait at barrier " #barrier ", PTX line"
#define OTHERS WAITS(2, ffffffff, 0), WAITS(3, ffffffff, 0)
  never_met(NEVER_MET("bar.sync 1, 64;", "bar.sync 0;"),
            (const char *const[4]){WAITS(0, ffffffff, 1), WAITS(1, ffffffff, 0), OTHERS});
  never_met(NEVER_MET("bar.sync 1;", "bar.sync 0;"),
            (const char *const[4]){WAITS(0, ffffffff, 1), WAITS(1, ffffffff, 0), OTHERS});
  never_met(NEVER_MET("and.b32 %r8, %r3, 1; setp.eq.u32 %p2, %r8, 0; @%p2 bra EVEN; barrier.sync 0; bra END;"
                      "EVEN: barrier.sync 0;",
                      "bar.sync 1;"),
            (const char *const[4]){WAITS(0, aaaaaaaa, 0), WAITS(1, ffffffff, 1), OTHERS});
}

/* A warp faults while others wait as a whole: what runs next knows nothing of them. */
static void test_barrier_after_fault(void **state) {
  kernel_test *t = open_body(
      "", AT "add.u32 %r4, %r3, %n; setp.ge.u32 %p1, %r4, 128; @%p1 trap; bar.sync 0; st.global.u32 [%rd2], %r3;");
  uint64_t out = buffer(t, 512);
  for (uint32_t round = 0; round < 2; round++) {
    assert_int_equal(run_fault(t, "k", 1, 128, out, 32)->kind, EXEC_FAULT_TRAP);
    memset(u32_at(out), 0xff, 512);
    run(t, "k", 1, 128, out, 0);
    for (uint32_t i = 0; i < 128; i++) assert_int_equal(u32_at(out)[i], i);
  }
  close_ptx(t);
}

static uint32_t shfl_reference(int mode, uint32_t lane, uint32_t b, uint32_t c, bool *valid) {
  uint32_t segment = c >> 8 & 31, clamp = c & 31;
  int delta = (int)(b & 31), low = (int)(lane & segment), high = (int)((lane & segment) | (clamp & ~segment)), source;
  if (mode == 0) *valid = (source = (int)lane - delta) >= high;
  else if (mode == 1) *valid = (source = (int)lane + delta) <= high;
  else if (mode == 2) *valid = (source = (int)lane ^ delta) <= high;
  else *valid = (source = low | (delta & (int)~segment)) <= high;
  return *valid ? (uint32_t)source : lane;
}

static void test_shfl(void **state) {
  static const char *const names[] = {"up", "down", "bfly", "idx"};
  static const uint32_t clamps[] = {0, 31, 0x181f, 0x1c1f, 0x1800, 7, 0x1f1f};
  for (int mode = 0; mode < 4; mode++)
    for (size_t n = 0; n < sizeof clamps / sizeof *clamps; n++)
      for (uint32_t b = 0; b < 32; b += 3) {
        char body[1024];
        snprintf(
            body, sizeof body,
            "%s mul.lo.u32 %%r4, %%r3, 3; mov.u32 %%r9, %u; mov.u32 %%r10, %u; shfl.sync.%s.b32 %%r5|%%p1, %%r4, %u, %u, -1; selp.u32 %%r6, 1, 0, %%p1;"
            "shfl.sync.%s.b32 %%r7|%%p2, %%r4, %%r9, %%r10, -1; setp.eq.u32 %%p3, %%r5, %%r7; @!%%p3 trap; setp.lt.u32 %%p4, %%r3, 32; shfl.sync.%s.b32 %%r4, %%r4, %%r9, %u, -1;"
            "setp.eq.u32 %%p3, %%r5, %%r4; @!%%p3 trap; shl.b32 %%r5, %%r5, 1; or.b32 %%r5, %%r5, %%r6; st.global.u32 [%%rd2], %%r5;",
            AT, b, clamps[n], names[mode], b, clamps[n], names[mode], names[mode], clamps[n]);
        kernel_test *t = open_body("", body);
        uint64_t out = buffer(t, 128);
        run(t, "k", 1, 32, out, 0);
        for (uint32_t lane = 0; lane < 32; lane++) {
          bool valid;
          uint32_t source = shfl_reference(mode, lane, b, clamps[n], &valid);
          assert_int_equal(u32_at(out)[lane], source * 3 << 1 | valid);
        }
        close_ptx(t);
      }
}

/* 24 threads: a tree of additions, as reductions are written; and a source lane given per lane. */
static void test_shfl_partial_warp(void **state) {
  kernel_test *t = open_body(
      "", AT
      "add.u32 %r4, %r3, 1; shfl.sync.down.b32 %r5, %r4, 16, 31, 0xffffff; setp.lt.u32 %p1, %r3, 8; @%p1 add.u32 %r4, %r4, %r5;"
      "shfl.sync.down.b32 %r5, %r4, 8, 31, 0xffffff; setp.lt.u32 %p1, %r3, 8; @%p1 add.u32 %r4, %r4, %r5; shfl.sync.bfly.b32 %r5, %r4, 4, 31, 0xffffff; add.u32 %r4, %r4, %r5;"
      "shfl.sync.bfly.b32 %r5, %r4, 2, 31, 0xffffff; add.u32 %r4, %r4, %r5; shfl.sync.bfly.b32 %r5, %r4, 1, 31, 0xffffff; add.u32 %r4, %r4, %r5;"
      "sub.u32 %r6, 23, %r3; shfl.sync.idx.b32 %r7, %r3, %r6, 31, 0xffffff; st.global.u32 [%rd2], %r4; st.global.u32 [%rd2+128], %r7;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 24, out, 0);
  assert_int_equal(u32_at(out)[0], 300);
  for (uint32_t i = 0; i < 24; i++) assert_int_equal(u32_at(out)[32 + i], 23 - i);
  close_ptx(t);
}

static void test_votes_and_matches(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 64; add.s64 %rd2, %out, %rd1; and.b32 %r4, %r3, 3; setp.eq.u32 %p1, %r4, 2; vote.sync.ballot.b32 %r5, %p1, -1; st.global.u32 [%rd2], %r5;"
      "vote.sync.ballot.b32 %r5, !%p1, 0xffff; st.global.u32 [%rd2+4], %r5; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, %p1, -1; vote.sync.uni.pred %p4, %p1, -1; vote.sync.all.pred %p5, !%p6, -1;"
      "selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 2, 0, %p3; selp.u32 %r8, 4, 0, %p4; selp.u32 %r9, 8, 0, %p5; or.b32 %r6, %r6, %r7; or.b32 %r6, %r6, %r8; or.b32 %r6, %r6, %r9; st.global.u32 [%rd2+8], %r6;"
      "match.any.sync.b32 %r10, %r4, -1; st.global.u32 [%rd2+12], %r10; match.all.sync.b32 %r11|%p7, %r4, -1; st.global.u32 [%rd2+16], %r11; mov.u64 %rd3, 0x100000005; match.all.sync.b64 %r12|%p8, %rd3, -1;"
      "st.global.u32 [%rd2+20], %r12; selp.u32 %r13, 1, 0, %p7; selp.u32 %r14, 2, 0, %p8; or.b32 %r13, %r13, %r14; st.global.u32 [%rd2+24], %r13; cvt.u64.u32 %rd4, %r4; shl.b64 %rd4, %rd4, 40;"
      "match.any.sync.b64 %r15, %rd4, -1; st.global.u32 [%rd2+28], %r15; sub.s32 %r16, %r3, 7; redux.sync.min.s32 %r17, %r16, -1; redux.sync.max.u32 %r18, %r16, -1; redux.sync.add.s32 %r19, %r16, -1;"
      "st.global.u32 [%rd2+32], %r17; st.global.u32 [%rd2+36], %r18; st.global.u32 [%rd2+40], %r19; redux.sync.and.b32 %r20, %r3, -1; redux.sync.or.b32 %r21, %r3, -1; redux.sync.xor.b32 %r22, %r3, -1;"
      "st.global.u32 [%rd2+44], %r20; st.global.u32 [%rd2+48], %r21; st.global.u32 [%rd2+52], %r22; setp.gt.u32 %p9, %r3, 4; @!%p9 bra END; elect.sync %r23|%p10, 0xffffffe0; selp.u32 %r24, 100, 0, %p10;"
      "add.u32 %r23, %r23, %r24; st.global.u32 [%rd2+56], %r23; END:");
  uint64_t out = buffer(t, 2048);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    const uint32_t *got = u32_at(out + 64 * i);
    const uint32_t want[] = {0x44444444,
                             0xbbbb,
                             1 | 8,
                             0x11111111u << (i & 3),
                             0,
                             UINT32_MAX,
                             2,
                             0x11111111u << (i & 3),
                             (uint32_t)-7,
                             UINT32_MAX,
                             496 - 7 * 32,
                             0,
                             31,
                             0,
                             i > 4 ? 5 + (i == 5 ? 100 : 0) : 0};
    for (uint32_t n = 0; n < 15; n++)
      if (got[n] != want[n]) fail_msg("lane %u value %u: %x, not %x", i, n, got[n], want[n]);
  }
  close_ptx(t);
}

/* Both sides of a branch take part in one shfl, vote and syncwarp with the full mask, each at a place of its own. */
static void test_exchange_across_branches(void **state) {
  kernel_test *t = open_body(
      "", AT
      "and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; add.u32 %r5, %r3, 50; mul.lo.u32 %r6, %r3, 7; @%p1 bra EVEN; shfl.sync.bfly.b32 %r7|%p2, %r5, 1, 31, -1; vote.sync.ballot.b32 %r8, %p2, -1;"
      "bar.warp.sync -1; bra JOIN; EVEN: shfl.sync.bfly.b32 %r9|%p3, %r6, 1, 31, -1; setp.eq.u32 %p4, %r3, 4; vote.sync.ballot.b32 %r8, %p4, -1; mov.u32 %r7, %r9; bar.warp.sync -1;"
      "JOIN: activemask.b32 %r10; st.global.u32 [%rd2], %r7; st.global.u32 [%rd2+128], %r8; st.global.u32 [%rd2+256], %r10;");
  uint64_t out = buffer(t, 512);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], i & 1 ? (i - 1) * 7 : i + 1 + 50);
    assert_int_equal(u32_at(out)[32 + i], 0xaaaaaaaa | 1 << 4);
    assert_int_equal(u32_at(out)[64 + i], UINT32_MAX);
  }
  close_ptx(t);
}

/* Lanes come to the same exchange in two pieces (one side works longer first), or some have exited. */
static void test_late_lanes(void **state) {
  kernel_test *t = open_body(
      "", AT
      "setp.eq.u32 %p3, %r3, 9; @%p3 exit; and.b32 %r4, %r3, 4; mov.u32 %r5, 0; setp.eq.u32 %p1, %r4, 0; @%p1 bra MEET; LATE: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r3; @%p2 bra LATE;"
      "MEET: shfl.sync.idx.b32 %r6, %r5, 31, 31, -1; activemask.b32 %r7; st.global.u32 [%rd2], %r6; st.global.u32 [%rd2+128], %r7;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], i == 9 ? 0 : 31);
    assert_int_equal(u32_at(out)[32 + i], i == 9 ? 0 : ~(1u << 9));
  }
  close_ptx(t);
}

/* Without .sync: the lanes that are there take part (PTX before 6.0). */
static void test_legacy_forms(void **state) {
  kernel_test *t = open_body(
      "", AT
      "setp.lt.u32 %p1, %r3, 8; @!%p1 bra END; shfl.up.b32 %r4|%p2, %r3, 1, 0; vote.ballot.b32 %r5, %p2; vote.any.pred %p3, %p2; selp.u32 %r6, 256, 0, %p3; add.u32 %r4, %r4, %r6;"
      "st.global.u32 [%rd2], %r4; st.global.u32 [%rd2+128], %r5; END:");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 8; i++) {
    assert_int_equal(u32_at(out)[i], 256 + (i ? i - 1 : 0));
    assert_int_equal(u32_at(out)[32 + i], 0xfe);
  }
  close_ptx(t);
}

/* A guarded exchange: the lanes whose guard is true take part, and all go on together. */
static void test_guarded_exchange(void **state) {
  kernel_test *t = open_body(
      "", AT
      "setp.ge.u32 %p1, %r3, 16; mov.u32 %r4, 5; @%p1 shfl.sync.bfly.b32 %r4, %r3, 1, 31, 0xffff0000; activemask.b32 %r5; st.global.u32 [%rd2], %r4; st.global.u32 [%rd2+128], %r5;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], i < 16 ? 5 : i ^ 1);
    assert_int_equal(u32_at(out)[32 + i], UINT32_MAX);
  }
  close_ptx(t);
}

/* A warp that waits at an mbarrier gives way to those that have not arrived, instead of asking again and again. */
static void test_mbarrier_waits_cheaply(void **state) {
  kernel_test *t = open_body(
      ".shared .align 8 .b64 flag;", AT
      "setp.ne.u32 %p1, %r3, 0; @%p1 bra GO; mbarrier.init.shared.b64 [flag], 256; GO: bar.sync 0; mov.u32 %r4, 0;"
      "ROUND: mbarrier.arrive.shared.b64 %rd4, [flag]; WAIT: mbarrier.test_wait.shared.b64 %p2, [flag], %rd4; @!%p2 bra WAIT;"
      "add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, %n; @%p3 bra ROUND; st.global.u32 [%rd2], %r4;");
  uint64_t out = buffer(t, 1024);
  run(t, "k", 1, 256, out, 500);
  for (uint32_t i = 0; i < 256; i++) assert_int_equal(u32_at(out)[i], 500);
  assert_in_range(t->stats.warp_instructions, 500 * 8 * 6, 500 * 8 * 12); /* no more than a few questions per round */
  close_ptx(t);
}

/* The first warp ends the phase and sets the mbarrier up again before the second, which waits, has another turn. */
#define FLAG ".shared .align 8 .b64 flag;"
#define ROUNDS(WAIT)                                                                                         \
  AT "setp.eq.u32 %p1, %r3, 0; mov.u32 %r4, 0;"                                                              \
     "ROUND: @%p1 mbarrier.init.shared.b64 [flag], 64; bar.sync 0; mbarrier.arrive.shared.b64 %rd4, [flag];" \
     "WAIT: " WAIT " @!%p2 bra WAIT; add.u32 %r4, %r4, 1;"                                                   \
     "setp.lt.u32 %p3, %r4, %n; @%p3 bra ROUND; st.global.u32 [%rd2], %r4;"
static void test_mbarrier_set_up_again(void **state) {
  static const char *const bodies[] = {ROUNDS("mbarrier.try_wait.shared.b64 %p2, [flag], %rd4;"),
                                       ROUNDS("mbarrier.test_wait.parity.shared.b64 %p2, [flag], 0;")};
  for (size_t n = 0; n < sizeof bodies / sizeof *bodies; n++) {
    kernel_test *t = open_body(FLAG, bodies[n]);
    t->config.max_instructions = 100000;
    uint64_t out = buffer(t, 256);
    run(t, "k", 1, 64, out, 20);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], 20);
    close_ptx(t);
  }
}

/* The second warp asks in vain and is told otherwise that the first has set the mbarrier up again: by memory, by a
 * barrier, by another mbarrier. Then it does not wait any more, and what it asks of the new one is asked anew. */
#define ANEW(LEARN, TELL)                                                                           \
  AT "setp.lt.u32 %p1, %r3, 32; setp.eq.u32 %p4, %r3, 0; @%p1 bra FIRST; bar.sync 0;\n"             \
     "mbarrier.test_wait.parity.shared.b64 %p2, [flag], 0; selp.u32 %r4, 1, 0, %p2;\n" LEARN "\n"   \
     "mbarrier.test_wait.parity.shared.b64 %p2, [flag], 0; selp.u32 %r5, 2, 0, %p2;\n"              \
     "add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, 7; st.global.u32 [%rd2], %r4; ret;\n"                \
     "FIRST: @%p4 mbarrier.init.shared.b64 [flag], 32; @%p4 mbarrier.init.shared.b64 [more], 32;\n" \
     "bar.sync 0; mbarrier.arrive.shared.b64 %rd4, [flag]; @%p4 mbarrier.init.shared.b64 [flag], 32;\n" TELL
static void test_mbarrier_asked_anew(void **state) {
  static const char *const bodies[] = {
      ANEW("AGAIN: ld.volatile.shared.u32 %r6, [ready]; setp.eq.u32 %p3, %r6, 0; @%p3 bra AGAIN;",
           "st.volatile.shared.u32 [ready], 1;"),
      ANEW("bar.sync 1;", "bar.sync 1;"),
      ANEW("AGAIN: mbarrier.try_wait.parity.shared.b64 %p3, [more], 0; @!%p3 bra AGAIN;",
           "mbarrier.arrive.shared.b64 %rd4, [more];")};
  for (size_t n = 0; n < sizeof bodies / sizeof *bodies; n++) {
    kernel_test *t = open_body(FLAG ".shared .align 8 .b64 more; .shared .b32 ready;", bodies[n]);
    t->config.max_instructions = 100000;
    uint64_t out = buffer(t, 256);
    run(t, "k", 1, 64, out, 0);
    for (uint32_t i = 32; i < 64; i++) assert_int_equal(u32_at(out)[i], 7);
    close_ptx(t);
  }
}

/* 64 threads arrive, and 65 are wanted. */
#define NEVER(MORE)                                                                     \
  AT "setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [flag], 65; bar.sync 0;\n" \
     "mbarrier.arrive.shared.b64 %rd4, [flag];\n"                                       \
     "WAIT: mbarrier.try_wait.shared.b64 %p2, [flag], %rd4;" MORE " @!%p2 bra WAIT;\n"
static void test_mbarrier_never_met(void **state) {
  kernel_test *t = open_body(FLAG, NEVER("nanosleep.u32 20; mov.u64 %rd5, %globaltimer;"));
  t->config.waiting_ms = 10;
  uint64_t out = buffer(t, 256);
  const exec_fault *fault = run_fault(t, "k", 1, 64, out, 0);
  assert_int_equal(fault->kind, EXEC_FAULT_BARRIER);
  expect_text(fault->message, "no thread of the block can go on: the phase of an mbarrier can never end");
  expect_text(fault->message, "warp 1: lanes 0xffffffff wait at an mbarrier, PTX line");
  expect_text(fault->message, "in kernel k, block (0,0,0), thread (0,0,0)");
  close_ptx(t);
}

/* What else the loop looks at may end it, from outside; and without a limit it goes on. */
static void test_mbarrier_and_memory(void **state) {
  static const struct {
    const char *body;
    uint32_t waiting_ms;
  } cases[] = {
      {NEVER("ld.volatile.global.u32 %r5, [%out]; setp.ne.u32 %p3, %r5, 0; @%p3 bra OUT;") "OUT:", 1},
      {NEVER(""), 0},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    kernel_test *t = open_body(FLAG, cases[n].body);
    t->config.waiting_ms = cases[n].waiting_ms;
    t->config.max_instructions = 200000;
    uint64_t out = buffer(t, 256);
    assert_int_equal(run_fault(t, "k", 1, 64, out, 0)->kind, EXEC_FAULT_TIMEOUT);
    close_ptx(t);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_barrier),
                                          cmocka_unit_test(test_barrier_after_exit),
                                          cmocka_unit_test(test_arrive),
                                          cmocka_unit_test(test_barrier_reductions),
                                          cmocka_unit_test(test_diverged_barrier),
                                          cmocka_unit_test(test_barrier_met_in_parts),
                                          cmocka_unit_test(test_barriers_never_met),
                                          cmocka_unit_test(test_barrier_after_fault),
                                          cmocka_unit_test(test_shfl),
                                          cmocka_unit_test(test_shfl_partial_warp),
                                          cmocka_unit_test(test_votes_and_matches),
                                          cmocka_unit_test(test_exchange_across_branches),
                                          cmocka_unit_test(test_late_lanes),
                                          cmocka_unit_test(test_legacy_forms),
                                          cmocka_unit_test(test_guarded_exchange),
                                          cmocka_unit_test(test_mbarrier_waits_cheaply),
                                          cmocka_unit_test(test_mbarrier_set_up_again),
                                          cmocka_unit_test(test_mbarrier_asked_anew),
                                          cmocka_unit_test(test_mbarrier_never_met),
                                          cmocka_unit_test(test_mbarrier_and_memory)};
RUN_ON_EVERY_ISA(tests)
