/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that go different ways: where they meet again, locks between lanes of one warp, calls, recursion. */
#include "core_harness.h"

#define AT "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */

/* After an if-else in a loop of different length per lane, all lanes are together again. */
static void test_reconvergence(void **state) {
  kernel_test *t = open_body(
      "", AT
      "mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r7, %r3, 7;"
      "LOOP: and.b32 %r8, %r6, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra EVEN; add.u32 %r5, %r5, 100; bra JOIN;"
      "EVEN: add.u32 %r5, %r5, 1; JOIN: activemask.b32 %r9; add.u32 %r6, %r6, 1; setp.le.u32 %p2, %r6, %r7; @%p2 bra LOOP;"
      "activemask.b32 %r10; popc.b32 %r11, %r10; shl.b32 %r11, %r11, 16; or.b32 %r5, %r5, %r11; st.global.u32 [%rd2], %r5;"
      "popc.b32 %r12, %r9; st.global.u32 [%rd2+128], %r12;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t n = (i & 7) + 1;
    assert_int_equal(u32_at(out)[i], 32 << 16 | ((n + 1) / 2 + n / 2 * 100));
    /* in its last round, lanes with a smaller bound are gone */
    assert_int_equal(u32_at(out)[32 + i], 4 * (8 - (i & 7)));
  }
  close_ptx(t);
}

/* Jumps into and out of the middle of each other's branches: A can reach C and D, B can reach C and D, C falls into
 * D. */
static void test_unstructured(void **state) {
  kernel_test *t = open_body(
      "", AT
      "mov.u32 %r5, 0; and.b32 %r6, %r3, 1; and.b32 %r7, %r3, 2; and.b32 %r8, %r3, 4; setp.ne.u32 %p1, %r6, 0; setp.ne.u32 %p2, %r7, 0;"
      "setp.ne.u32 %p3, %r8, 0; @%p1 bra B; A: add.u32 %r5, %r5, 1; @%p2 bra C; bra D; B: add.u32 %r5, %r5, 10; @%p2 bra D; bra C;"
      "C: add.u32 %r5, %r5, 100; @%p3 bra E; D: add.u32 %r5, %r5, 1000; E: activemask.b32 %r9; popc.b32 %r9, %r9; shl.b32 %r9, %r9, 16;"
      "or.b32 %r5, %r5, %r9; st.global.u32 [%rd2], %r5;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    bool one = i & 1, two = i & 2, four = i & 4, c = one ? !two : two;
    uint32_t want = (one ? 10 : 1) + (c ? 100 : 0) + (c && four ? 0 : 1000);
    assert_int_equal(u32_at(out)[i], 32 << 16 | want);
  }
  close_ptx(t);
}

/* Random programs of branches, checked against a thread-by-thread evaluation. */
static void test_random_flow(void **state) {
  enum { BLOCKS = 12 };
  uint32_t seed = 7;
  for (int round = 0; round < 40; round++) {
    struct {
      uint32_t bit, then, els;
    } blocks[BLOCKS];
    char body[8192];
    int at =
        snprintf(body, sizeof body, "%s%s", AT, "mov.u32 %r5, 1; mov.u32 %r6, 0; mul.lo.u32 %r7, %r3, 0x9E3779B1;\n");
    for (uint32_t b = 0; b < BLOCKS; b++) {
      seed = seed * 1664525 + 1013904223;
      blocks[b].bit = seed >> 8 & 31;
      blocks[b].then = (seed >> 13) % (BLOCKS + 1);
      blocks[b].els = (seed >> 20) % (BLOCKS + 1);
      at += snprintf(
          body + at, sizeof body - (size_t)at,
          "L%u: mad.lo.u32 %%r5, %%r5, 31, %u; add.u32 %%r6, %%r6, 1; setp.gt.u32 %%p1, %%r6, 50; @%%p1 bra L%u; xor.b32 %%r8, %%r5, %%r7;"
          "shr.u32 %%r8, %%r8, %u; and.b32 %%r8, %%r8, 1; setp.ne.u32 %%p2, %%r8, 0; @%%p2 bra L%u; bra L%u;\n",
          b, b, BLOCKS, blocks[b].bit, blocks[b].then, blocks[b].els);
    }
    snprintf(body + at, sizeof body - (size_t)at, "L%u: st.global.u32 [%%rd2], %%r5;", BLOCKS);
    kernel_test *t = open_body("", body);
    uint64_t out = buffer(t, 4 * 96);
    run(t, "k", 1, 96, out, 0);
    for (uint32_t i = 0; i < 96; i++) {
      uint32_t r5 = 1, r6 = 0, b = 0;
      while (b < BLOCKS) {
        r5 = r5 * 31 + b;
        if (++r6 > 50) break;
        b = ((r5 ^ (i * 0x9E3779B1u)) >> blocks[b].bit & 1) ? blocks[b].then : blocks[b].els;
      }
      assert_int_equal(u32_at(out)[i], r5);
    }
    close_ptx(t);
  }
}

/* Lane 0 keeps a 64-bit pointer in a loop that the others have left; what they compute there takes none of its
 * bytes. */
static void test_widths_do_not_share(void **state) {
  kernel_test *t = open_body(
      "", AT
      "add.s64 %rd4, %out, 128; setp.ne.u32 %p1, %r3, 0; @%p1 bra ON;"
      "add.s64 %rd5, %rd4, 0; add.s64 %rd6, %rd4, 8; LOOP: ld.volatile.global.u32 %r4, [%rd5]; ld.volatile.global.u32 %r5, [%rd6]; and.b32 %r6, %r4, %r5;"
      "setp.eq.u32 %p2, %r6, 0; @%p2 bra LOOP;"
      "ON: mad.lo.u32 %r10, %r3, 3, 7; mad.lo.u32 %r11, %r10, 5, 1; mad.lo.u32 %r12, %r11, %r10, 2; mad.lo.u32 %r13, %r12, %r11, %r10;"
      "xor.b32 %r14, %r13, %r12; xor.b32 %r15, %r14, %r11; xor.b32 %r16, %r15, %r10; st.global.u32 [%rd2], %r16;"
      "setp.ne.u32 %p3, %r3, 31; @%p3 bra END; mov.u32 %r17, 1; st.volatile.global.u32 [%out+128], %r17; st.volatile.global.u32 [%out+136], %r17; END:");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t a = i * 3 + 7, b = a * 5 + 1, c = b * a + 2, d = c * b + a;
    assert_int_equal(u32_at(out)[i], d ^ c ^ b ^ a);
  }
  close_ptx(t);
}

static void test_guards(void **state) {
  kernel_test *t = open_body(
      "", AT
      "and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; mov.u32 %r5, 7; @%p1 mov.u32 %r5, 8; @!%p1 add.u32 %r5, %r5, 10; setp.lt.u32 %p2, %r3, 0;"
      "@%p2 mov.u32 %r5, 99; @!%p2 add.u32 %r5, %r5, 100; st.global.u32 [%rd2], 5; @%p1 st.global.u32 [%rd2], %r5; setp.eq.u32 %p3, %r3, 4; @%p3 exit;"
      "@!%p1 st.global.u32 [%rd2], %r5; setp.gt.u32 %p4, %r3, 20; @%p4 ret; activemask.b32 %r6; st.global.u32 [%rd2+128], %r6;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], i == 4 ? 5 : i & 1 ? 108 : 117);
    assert_int_equal(u32_at(out)[32 + i], i > 20 || i == 4 ? 0 : 0x1fffef);
  }
  close_ptx(t);
}

/* Each lane takes a lock that lanes of its own warp hold: they must let it go on. In a register-only critical section
 * the counter would lose updates if two lanes were inside. */
static const char spin_lock[] =
    "mov.u32 %r5, 0; SPIN: atom.global.cas.b32 %r6, [%out], 0, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra SPIN;"
    "ld.volatile.global.u32 %r7, [%out+4]; add.u32 %r7, %r7, 1; st.volatile.global.u32 [%out+4], %r7; membar.gl; atom.global.exch.b32 %r8, [%out], 0;"
    "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %n; @%p2 bra SPIN;";

static void test_spin_lock(void **state) {
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    kernel_test *t = open_body("", spin_lock);
    uint64_t out = buffer(t, 8);
    t->config.threads = threads;
    run(t, "k", 3, 64, out, 3);
    assert_int_equal(u32_at(out)[1], 3 * 64 * 3);
    assert_int_equal(u32_at(out)[0], 0);
    close_ptx(t);
  }
}

/* The lane that the others wait for comes first in the text, or last: neither may starve. */
static void test_lane_waits_for_lane(void **state) {
  for (uint32_t waiter = 0; waiter < 2; waiter++) {
    kernel_test *t = open_body(
        "", AT
        "setp.eq.u32 %p1, %r3, 5; setp.eq.u32 %p3, %n, 0; @%p3 bra ONE; @%p1 bra SET; bra WAIT; ONE: @!%p1 bra WAIT;"
        "SET: st.volatile.global.u32 [%out+256], 1; bra END;"
        "WAIT: ld.volatile.global.u32 %r4, [%out+256]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT; END: st.global.u32 [%rd2], 3;");
    uint64_t out = buffer(t, 512);
    run(t, "k", 1, 32, out, waiter);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], 3);
    close_ptx(t);
  }
}

static void test_indexed_branch(void **state) {
  kernel_test *t = open_body(
      "", AT
      "and.b32 %r4, %r3, 3; ts: .branchtargets A, B, C, A; brx.idx %r4, ts; A: mov.u32 %r5, 1; bra E; B: mov.u32 %r5, 2; bra E;"
      "C: mov.u32 %r5, 3; E: activemask.b32 %r6; st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+128], %r6;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  const uint32_t want[] = {1, 2, 3, 1};
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], want[i & 3]);
    assert_int_equal(u32_at(out)[32 + i], UINT32_MAX);
  }
  close_ptx(t);
}

static const char fibonacci[] =
    ".func (.param .b32 fr) fib(.param .b32 fn)\n{\n.reg .b32 %r<9>; .reg .pred %p<3>;\n"
    "ld.param.u32 %r1, [fn]; mov.u32 %r6, %r1; setp.lt.u32 %p1, %r1, 2; @%p1 bra DONE;\n"
    "add.u32 %r2, %r1, -1; { .param .b32 a; st.param.b32 [a+0], %r2; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r3, [b+0]; }\n"
    "add.u32 %r4, %r1, -2; { .param .b32 a; st.param.b32 [a+0], %r4; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r5, [b+0]; }\n"
    "add.u32 %r6, %r3, %r5; DONE: st.param.b32 [fr+0], %r6; ret;\n}\n";

static void test_recursion(void **state) {
  kernel_test *t = open_body(
      fibonacci,
      AT "and.b32 %r4, %r3, 15; { .param .b32 a; st.param.b32 [a], %r4; .param .b32 b; call.uni (b), fib, (a);"
         "ld.param.b32 %r5, [b]; } activemask.b32 %r6; st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+128], %r6;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  uint32_t fib[16] = {0, 1};
  for (uint32_t i = 2; i < 16; i++) fib[i] = fib[i - 1] + fib[i - 2];
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(u32_at(out)[i], fib[i & 15]);
    assert_int_equal(u32_at(out)[32 + i], UINT32_MAX);
  }
  close_ptx(t);
}

/* Structures, 64-bit, 8- and 16-bit parameters and results; a local array whose address goes down; registers as
 * parameters. */
static void test_call_parameters(void **state) {
  kernel_test *t = open_body(
      ".func (.param .align 8 .b8 r[16]) mix(.param .b64 a, .param .b8 b, .param .b16 c, .param .align 8 .b8 s[12], .param .b64 p)\n{\n"
      ".reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %rs<5>;\n"
      "ld.param.u64 %rd1, [a]; ld.param.s8 %r1, [b]; ld.param.u16 %rs1, [c]; ld.param.u32 %r2, [s+8]; ld.param.v2.u32 {%r3,%r4}, [s]; ld.param.u64 %rd2, [p];\n"
      "ld.u32 %r5, [%rd2+4]; st.u32 [%rd2+4], 55; cvt.u32.u16 %r6, %rs1; add.u32 %r6, %r6, %r2; add.u32 %r6, %r6, %r3; add.u32 %r6, %r6, %r4; add.u32 %r6, %r6, %r5; add.u32 %r6, %r6, %r1;\n"
      "st.param.b64 [r+0], %rd1; st.param.b32 [r+8], %r6; st.param.b8 [r+12], 9; st.param.b8 [r+13], 8; st.param.b16 [r+14], 7; ret;\n}\n"
      ".func (.reg .b64 rr) twice(.reg .b32 x, .reg .b64 y)\n{\n .reg .b64 %rd<3>; cvt.u64.u32 %rd1, x; add.s64 rr, %rd1, y; add.s64 rr, rr, rr; ret;\n}\n"
      ".func byval(.param .align 4 .b8 s[16], .param .b32 i, .param .b64 to)\n{\n.reg .b64 %rd<9>; .reg .b32 %r<5>;\n"
      "mov.b64 %rd1, s; ld.param.u32 %r1, [i]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.param.u32 %r2, [%rd3]; ld.param.u32 %r3, [s+4];\n"
      "cvta.param.u64 %rd5, %rd3; ld.u32 %r4, [%rd5]; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r3; ld.param.u64 %rd4, [to]; st.global.u32 [%rd4], %r2; ret;\n}\n",
      ".local .align 8 .b8 depot[16]; .reg .b64 %SPL; mov.u64 %SPL, depot; cvta.local.u64 %rd10, %SPL; mov.u32 %r3, %tid.x; st.local.u32 [%SPL+4], %r3;"
      "mul.wide.u32 %rd1, %r3, 32; add.s64 %rd2, %out, %rd1; add.s64 %rd3, %rd2, 0;"
      "{ .param .b64 a; .param .b8 b; .param .b16 c; .param .align 8 .b8 s[12]; .param .b64 p; .param .align 8 .b8 r[16];"
      "st.param.b64 [a], %rd2; st.param.b8 [b], -5; st.param.b16 [c], 1000; st.param.v2.b32 [s], {1, 2}; st.param.b32 [s+8], %r3; st.param.b64 [p], %rd10;"
      "call.uni (r), mix, (a, b, c, s, p); ld.param.b64 %rd4, [r]; ld.param.b32 %r5, [r+8]; ld.param.b8 %rs1, [r+12]; ld.param.u8 %rs2, [r+13]; ld.param.u16 %rs3, [r+14]; }"
      "sub.s64 %rd4, %rd4, %out; st.global.u64 [%rd2], %rd4; st.global.u32 [%rd2+8], %r5; cvt.u32.u16 %r6, %rs1; cvt.u32.u16 %r7, %rs2; cvt.u32.u16 %r8, %rs3;"
      "mad.lo.u32 %r6, %r6, 100, %r7; mad.lo.u32 %r6, %r6, 100, %r8; st.global.u32 [%rd2+12], %r6; ld.local.u32 %r9, [%SPL+4]; st.global.u32 [%rd2+16], %r9;"
      "call.uni (%rd5), twice, (%r3, 5); cvt.u32.u64 %r10, %rd5; st.global.u32 [%rd2+20], %r10; and.b32 %r11, %r3, 3; add.s64 %rd6, %rd2, 24;"
      "{ .param .align 4 .b8 s[16]; .param .b32 i; .param .b64 to; st.param.v4.b32 [s], {10, 20, 30, 40}; st.param.b32 [i], %r11; st.param.b64 [to], %rd6; call.uni byval, (s, i, to); }");
  uint64_t out = buffer(t, 1024);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t i = 0; i < 32; i++) {
    const uint32_t *got = u32_at(out + 32 * i);
    assert_int_equal(got[0], 32 * i);
    assert_int_equal(got[2], 1000 + i + 1 + 2 + i - 5);
    assert_int_equal(got[3], 90807);
    assert_int_equal(got[4], 55);
    assert_int_equal(got[5], 2 * (i + 5));
    assert_int_equal(got[6], 2 * (10 + 10 * (i & 3)) + 20);
  }
  close_ptx(t);
}

/* Function pointers from a table; lanes call different functions, some of them calling deeper, some exiting inside. */
static void test_indirect_calls(void **state) {
  kernel_test *t = open_body(
      ".func (.param .b32 r) one(.param .b32 x)\n{\n.reg .b32 %r<4>; ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret;\n}\n"
      ".func (.param .b32 r) two(.param .b32 x)\n{\n.reg .b32 %r<4>; ld.param.u32 %r1, [x]; { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b;"
      "call.uni (b), one, (a); ld.param.b32 %r2, [b]; } mul.lo.u32 %r2, %r2, 100; st.param.b32 [r], %r2; ret;\n}\n"
      ".func (.param .b32 r) three(.param .b32 x)\n{\n.reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [x]; setp.gt.u32 %p1, %r1, 20; @%p1 exit; st.param.b32 [r], 3; ret;\n}\n"
      ".global .align 8 .u64 table[3] = {one, two, three};\n",
      AT
      "rem.u32 %r4, %r3, 3; mul.wide.u32 %rd3, %r4, 8; mov.u64 %rd4, table; add.s64 %rd5, %rd4, %rd3; ld.global.u64 %rd6, [%rd5];"
      "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b; proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %rd6, (a), proto; ld.param.b32 %r5, [b]; }"
      "activemask.b32 %r6; st.global.u32 [%rd2], %r5; st.global.u32 [%rd2+128], %r6;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 32, out, 0);
  uint32_t left = 0;
  for (uint32_t i = 0; i < 32; i++) left |= (uint32_t)(i % 3 != 2 || i <= 20) << i;
  for (uint32_t i = 0; i < 32; i++) {
    bool gone = !(left >> i & 1);
    assert_int_equal(u32_at(out)[i], gone ? 0 : i % 3 == 0 ? i + 1 : i % 3 == 1 ? (i + 1) * 100 : 3);
    assert_int_equal(u32_at(out)[32 + i], gone ? 0 : left);
  }
  close_ptx(t);
}

/* So many instructions that functions are decoded when they are first called: the large one never is. */
static void test_a_very_large_module(void **state) {
  enum { LARGE = 250000 };
  ff_text functions = {0};
  ff_text_add(
      &functions,
      ".func (.param .b32 r) deep(.param .b32 x)\n{\n.reg .b32 %%r<4>; ld.param.u32 %%r1, [x]; add.u32 %%r1, %%r1, 1; "
      "st.param.b32 [r], %%r1; ret;\n}\n");
  ff_text_add(&functions, ".func (.param .b32 r) large(.param .b32 x)\n{\n.reg .b32 %%r<4>; ld.param.u32 %%r1, [x];\n");
  for (int n = 0; n < LARGE; n++) ff_text_add(&functions, "add.u32 %%r1, %%r1, 1;\n");
  ff_text_add(&functions, "st.param.b32 [r], %%r1; ret;\n}\n");
  ff_text_add(
      &functions,
      ".func (.param .b32 r) small(.param .b32 x)\n{\n.reg .b32 %%r<4>; ld.param.u32 %%r1, [x]; { .param .b32 a; st.param.b32 [a], %%r1; "
      ".param .b32 b; call.uni (b), deep, (a); ld.param.b32 %%r2, [b]; } mul.lo.u32 %%r2, %%r2, 3; st.param.b32 [r], %%r2; ret;\n}\n"
      ".global .align 8 .u64 table[2] = {large, small};\n");
  kernel_test *t = open_body(
      functions.chars, AT
      "mov.u64 %rd4, table; ld.global.u64 %rd6, [%rd4+8];"
      "{ .param .b32 a; st.param.b32 [a], %r3; .param .b32 b; proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (b), %rd6, (a), proto; ld.param.b32 %r5, [b]; }"
      "st.global.u32 [%rd2], %r5;");
  uint64_t out = buffer(t, 128);
  for (int again = 0; again < 2; again++) {
    memset(u32_at(out), 0, 128);
    run(t, "k", 1, 32, out, 0);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], 3 * (i + 1));
  }
  close_ptx(t);
  free(functions.chars);
}

/* Many values alive at once across branches and loops: slots that are shared must not mix values up. */
static void test_register_pressure(void **state) {
  char body[16384];
  int at = snprintf(body, sizeof body, "%s%s", AT, ".reg .b32 %v<64>; .reg .b64 %w<64>; .reg .pred %q<64>;\n");
  for (int i = 0; i < 64; i++)
    at += snprintf(body + at, sizeof body - (size_t)at,
                   "mad.lo.u32 %%v%d, %%r3, %d, %d; mul.wide.u32 %%w%d, %%v%d, 3; setp.gt.u32 %%q%d, %%v%d, 700;\n", i,
                   i + 1, i, i, i, i, i);
  at += snprintf(body + at, sizeof body - (size_t)at, "mov.u32 %%r5, 0; mov.u64 %%rd5, 0;\n");
  for (int i = 63; i >= 0; i--)
    at += snprintf(body + at, sizeof body - (size_t)at,
                   "@!%%q%d bra N%d; add.s64 %%rd5, %%rd5, %%w%d; bra M%d; N%d: add.u32 %%r5, %%r5, %%v%d; M%d:\n", i,
                   i, i, i, i, i, i);
  snprintf(body + at, sizeof body - (size_t)at,
           "st.global.u32 [%%rd2], %%r5; add.s64 %%rd2, %%rd2, %%rd1; st.global.u64 [%%rd2+128], %%rd5;");
  kernel_test *t = open_body("", body);
  uint64_t out = buffer(t, 512);
  run(t, "k", 1, 32, out, 0);
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t small = 0;
    uint64_t large = 0;
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t v = lane * (i + 1) + i;
      if (v > 700) large += 3 * (uint64_t)v;
      else small += v;
    }
    assert_int_equal(u32_at(out)[lane], small);
    assert_int_equal(u64_at(out + 128)[lane], large);
  }
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_reconvergence),
                                          cmocka_unit_test(test_unstructured),
                                          cmocka_unit_test(test_random_flow),
                                          cmocka_unit_test(test_widths_do_not_share),
                                          cmocka_unit_test(test_guards),
                                          cmocka_unit_test(test_spin_lock),
                                          cmocka_unit_test(test_lane_waits_for_lane),
                                          cmocka_unit_test(test_indexed_branch),
                                          cmocka_unit_test(test_recursion),
                                          cmocka_unit_test(test_call_parameters),
                                          cmocka_unit_test(test_indirect_calls),
                                          cmocka_unit_test(test_a_very_large_module),
                                          cmocka_unit_test(test_register_pressure)};
RUN_ON_EVERY_ISA(tests)
