/* SPDX-License-Identifier: Apache-2.0 */
/* Grids: blocks that wait for each other, any number of workers, printing in order, device malloc, managed and host
 * memory, many launches. */
#include "core_harness.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT \
  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %out, %rd1;\n"

/* A chained scan: block b waits for the flag of block b - 1, adds its part, passes it on. In the second form the blocks
 * count from the end, so that every block waits for one that starts later. */
static void test_blocks_wait_for_blocks(void **state) {
  enum { BLOCKS = SHARE(300, 3) };
  for (uint32_t backwards = 0; backwards < 2; backwards++) {
    kernel_test *t = open_body(
        "",
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; setp.eq.u32 %p5, %n, 0; @%p5 bra GO; sub.u32 %r1, %r2, %r1; add.u32 %r1, %r1, -1; GO: mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r1, 8;"
        "add.s64 %rd2, %out, %rd1; setp.ne.u32 %p1, %r3, 0; @%p1 bra END; mov.u32 %r6, 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra ADD;"
        "WAIT: ld.acquire.gpu.global.u32 %r5, [%rd2+-8]; setp.eq.u32 %p3, %r5, 0; @%p3 bra WAIT; ld.global.u32 %r6, [%rd2+-4];"
        "ADD: add.u32 %r6, %r6, %r1; st.global.u32 [%rd2+4], %r6; membar.gl; st.release.gpu.global.u32 [%rd2], 1; END: bar.sync 0;");
    uint64_t out = buffer(t, 8 * BLOCKS);
    for (uint32_t threads = 1; threads <= 3; threads++) {
      t->config.threads = threads;
      t->config.resident_blocks = backwards ? BLOCKS : 8;
      memset(u32_at(out), 0, 8 * BLOCKS);
      run(t, "k", BLOCKS, 64, out, backwards);
      for (uint32_t b = 0; b < BLOCKS; b++) assert_int_equal(u32_at(out)[2 * b + 1], b * (b + 1) / 2);
    }
    close_ptx(t);
  }
}

/* What cooperative groups do for grid.sync(): block 0 adds a large number, the others 1; the top bit flips when all are
 * there. The workspace's address is in %envreg1 and %envreg2. */
static void test_grid_barrier(void **state) {
  kernel_test *t = open_body(
      "", AT
      "mov.u32 %r30, %envreg1; mov.u32 %r31, %envreg2; mov.b64 %rd10, {%r31, %r30}; add.s64 %rd10, %rd10, 4; mov.u32 %r20, 0; mov.u32 %r21, %nctaid.x; sub.u32 %r22, 0x80000001, %r21; setp.eq.u32 %p1, %r1, 0;"
      "selp.u32 %r23, %r22, 1, %p1; mov.u32 %r7, %r4; ROUND: st.global.u32 [%rd2], %r7; bar.sync 0; setp.ne.u32 %p2, %r3, 0; @%p2 bra PASS; membar.gl; atom.add.u32 %r24, [%rd10], %r23;"
      "SPIN: ld.volatile.u32 %r25, [%rd10]; xor.b32 %r26, %r25, %r24; setp.ge.s32 %p3, %r26, 0; @%p3 bra SPIN; PASS: bar.sync 0; mul.lo.u32 %r27, %r21, %r2; add.u32 %r28, %r4, 33; rem.u32 %r28, %r28, %r27;"
      "mul.wide.u32 %rd3, %r28, 4; add.s64 %rd4, %out, %rd3; ld.volatile.global.u32 %r7, [%rd4]; bar.sync 0; @%p2 bra PASS2; membar.gl; atom.add.u32 %r24, [%rd10], %r23;"
      "SPIN2: ld.volatile.u32 %r25, [%rd10]; xor.b32 %r26, %r25, %r24; setp.ge.s32 %p3, %r26, 0; @%p3 bra SPIN2; PASS2: bar.sync 0; add.u32 %r20, %r20, 1; setp.lt.u32 %p4, %r20, %n; @%p4 bra ROUND; st.global.u32 [%rd2], %r7;");
  uint64_t out = buffer(t, 4 * 64 * 24);
  t->cooperative = true;
  t->config.resident_blocks = 24;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    t->config.threads = threads;
    run(t, "k", 24, 64, out, 3);
    for (uint32_t i = 0; i < 24 * 64; i++) assert_int_equal(u32_at(out)[i], (i + 99) % (24 * 64));
  }
  ff_error error;
  t->config.resident_blocks = 23;
  assert_int_equal(launch(t, "k", 24, 64, out, 3, &error), FF_INVALID);
  close_ptx(t);
}

/* As Triton writes it: all threads of a block pass a barrier between two looks at the counter, by one of them. With
 * `load` another way to look. No turn of a warp ends polling. */
static void check_barriers_in_a_wait(const char *load, uint32_t blocks) {
  char body[1024];
  snprintf(body, sizeof body, "%s@%%p1 %s;%s",
           AT "add.s64 %rd3, %out, 32768; st.global.u32 [%rd2], %r4; setp.eq.u32 %p1, %r3, 0; bar.sync 0;"
              "@%p1 atom.add.acq_rel.gpu.global.u32 %r5, [%rd3], 1; bar.sync 0; L: bar.sync 0;",
           load,
           "@%p1 st.shared.u32 [sh], %r6; bar.sync 0; ld.shared.u32 %r7, [sh]; setp.lt.u32 %p2, %r7, %n; @%p2 bra L;"
           "mul.lo.u32 %r8, %n, %r2; sub.u32 %r8, %r8, %r4; mul.wide.u32 %rd1, %r8, 4; add.s64 %rd4, %out, %rd1;"
           "ld.global.u32 %r9, [%rd4+-4]; st.global.u32 [%rd2+65536], %r9;");
  kernel_test *t = open_body(".shared .align 4 .b8 sh[4];", body);
  uint64_t out = buffer(t, 131072);
  t->cooperative = true;
  t->config.resident_blocks = blocks;
  for (uint32_t threads = 1; threads <= 3; threads++) {
    t->config.threads = threads;
    memset(u32_at(out), 0, 131072);
    run(t, "k", blocks, 128, out, blocks);
    for (uint32_t i = 0; i < 128 * blocks; i++) assert_int_equal(u32_at(out + 65536)[i], 128 * blocks - 1 - i);
  }
  close_ptx(t);
}

static void test_barriers_in_a_wait(void **state) {
  check_barriers_in_a_wait("ld.acquire.gpu.global.u32 %r6, [%rd3]", SHARE(48, 4));
  check_barriers_in_a_wait("ld.volatile.global.u32 %r6, [%rd3]", 5);
  check_barriers_in_a_wait("atom.cas.global.u32 %r6, [%rd3], 0, 0", 5);
  check_barriers_in_a_wait("ld.global.u32 %r6, [%rd3]", 4); /* on a device it is not kept in a register */
}

/* The same memory and the same counts whatever the number of workers. */
static void test_worker_independence(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[512];", AT
      "mov.u32 %r5, %r4; mov.u32 %r6, 0; and.b32 %r10, %r4, 15; L: mad.lo.u32 %r5, %r5, 1664525, 1013904223; shr.u32 %r7, %r5, 28; setp.lt.u32 %p1, %r7, 6; @%p1 bra S; add.u32 %r5, %r5, %r6;"
      "S: add.u32 %r6, %r6, 1; setp.le.u32 %p2, %r6, %r10; @%p2 bra L; shl.b32 %r8, %r3, 2; mov.u32 %r9, sh; add.u32 %r8, %r8, %r9; st.shared.u32 [%r8], %r5; bar.sync 0; xor.b32 %r11, %r3, 77;"
      "shl.b32 %r11, %r11, 2; add.u32 %r11, %r11, %r9; ld.shared.u32 %r12, [%r11]; st.global.u32 [%rd2], %r12; red.global.add.u32 [%out+262144], %r12;");
  uint64_t out = buffer(t, 262144 + 4);
  uint32_t *first = malloc(262148);
  exec_stats stats = {0};
  for (uint32_t threads = 1; threads <= 5; threads++) {
    t->config.threads = threads;
    memset(u32_at(out), 0, 262148);
    run(t, "k", 512, 128, out, 0);
    if (threads == 1) {
      memcpy(first, u32_at(out), 262148);
      stats = t->stats;
    }
    assert_memory_equal(first, u32_at(out), 262148);
    assert_memory_equal(&stats, &t->stats, sizeof stats);
  }
  free(first);
  close_ptx(t);
}

static const char vprintf_head[] =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n.global .align 1 .b8 fmt[24] = {98, 108, 111, 99, 107, 32, 37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 108, 120, 10, 0};\n";

static void test_printing(void **state) {
  kernel_test *t = open_body(
      vprintf_head, AT
      ".local .align 8 .b8 depot[24]; mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; rem.u32 %r5, %r4, 33; setp.ne.u32 %p1, %r5, 0; @%p1 bra E; st.local.u32 [%rd3], %r1;"
      "cvt.rn.f64.u32 %fd1, %r3; mul.f64 %fd1, %fd1, 0d3FE0000000000000; st.local.f64 [%rd3+8], %fd1; mov.u64 %rd5, 0xabcdef0123; st.local.u64 [%rd3+16], %rd5; mov.u64 %rd6, fmt; cvta.global.u64 %rd7, %rd6;"
      "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd7; st.param.b64 [a], %rd4; call.uni (r), vprintf, (f, a); ld.param.b32 %r6, [r]; } st.global.u32 [%rd2], %r6; E:");
  char want[4096];
  int at = 0;
  uint64_t out = buffer(t, 4096);
  for (uint32_t i = 0; i < 640; i += 33)
    at += snprintf(want + at, sizeof want - (size_t)at, "block %u %5.2f abcdef0123\n", i / 64, i % 64 * 0.5);
  for (uint32_t threads = 1; threads <= 3; threads++) {
    t->config.threads = threads;
    t->printed_length = 0;
    run(t, "k", 10, 64, out, 0);
    assert_string_equal(t->printed, want);
    assert_int_equal(u32_at(out)[33], 3);
  }
  close_ptx(t);
}

/* %s of strings in local and in shared memory, lane by lane. */
static void test_printing_own_strings(void **state) {
  kernel_test *t = open_body(
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n.global .align 1 .b8 fmt[8] = {37, 115, 44, 37, 115, 10, 0};\n",
      ".shared .align 8 .b8 common[8]; .local .align 8 .b8 depot[24]; mov.u32 %r1, 6513507; st.shared.u32 [common], %r1;" /* "ccc" */
      "mov.u32 %r2, %tid.x; add.u32 %r2, %r2, 25185; mov.u64 %rd3, depot; st.local.u32 [%rd3+16], %r2;" /* "ab", "bb" */
      "cvta.local.u64 %rd4, %rd3; add.u64 %rd5, %rd4, 16; st.local.u64 [%rd3], %rd5; mov.u64 %rd6, common; cvta.shared.u64 %rd6, %rd6; st.local.u64 [%rd3+8], %rd6;"
      "mov.u64 %rd7, fmt; { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd7; st.param.b64 [a], %rd4; call.uni (r), vprintf, (f, a); }");
  run(t, "k", 1, 2, buffer(t, 64), 0);
  assert_string_equal(t->printed, "ab,ccc\nbb,ccc\n");
  close_ptx(t);
}

/* What was printed before a fault comes out. */
static void test_printing_before_fault(void **state) {
  kernel_test *t = open_body(
      vprintf_head,
      "mov.u64 %rd7, fmt; mov.u64 %rd4, 0; { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd7; st.param.b64 [a], %out; call.uni (r), vprintf, (f, a); } trap;");
  uint64_t out = buffer(t, 64);
  memset(u32_at(out), 0, 64);
  run_fault(t, "k", 1, 1, out, 0);
  assert_string_equal(t->printed, "block 0  0.00 0\n");
  close_ptx(t);
}

static void test_device_malloc(void **state) {
  kernel_test *t = open_body(
      ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n", AT
      "mul.wide.u32 %rd1, %r4, 8; add.s64 %rd2, %out, %rd1; setp.eq.u32 %p1, %n, 1; @%p1 bra USE; { .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call.uni (r), malloc, (n); ld.param.b64 %rd5, [r]; }"
      "st.global.u64 [%rd2], %rd5; st.u32 [%rd5+20], %r4; bra E; USE: ld.global.u64 %rd5, [%rd2]; ld.u32 %r6, [%rd5+20]; st.global.u64 [%rd2], 0; st.global.u32 [%rd2], %r6;"
      "{ .param .b64 p; st.param.b64 [p], %rd5; call.uni free, (p); } E:");
  uint64_t out = buffer(t, 8 * 256);
  t->config.heap_bytes = 1 << 20;
  t->config.threads = 2;
  for (int round = 0; round < 3; round++) {
    run(t, "k", 4, 64, out, 0); /* the pointers live from launch to launch */
    for (uint32_t i = 1; i < 256; i++) assert_true(u64_at(out)[i] != u64_at(out)[i - 1] && u64_at(out)[i]);
    run(t, "k", 4, 64, out, 1);
    for (uint32_t i = 0; i < 256; i++) assert_int_equal(u64_at(out)[i], i);
  }
  /* address 0: the words hold 0 now */
  assert_int_equal(run_fault(t, "k", 1, 1, out, 1)->kind, EXEC_FAULT_ILLEGAL_ADDRESS);
  close_ptx(t);
}

/* Threads that ask for more than the heap has until others free theirs: lanes of a warp, warps and blocks, which get it
 * one after the other. A try without success ends a turn as a look at memory does, or these would take minutes. */
static void test_threads_wait_for_heap(void **state) {
  kernel_test *t = open_body(
      ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n", AT
      "mov.u32 %r5, 0; L: { .param .b64 n; .param .b64 r; st.param.b64 [n], 40000; call.uni (r), malloc, (n); ld.param.b64 %rd5, [r]; } setp.eq.s64 %p1, %rd5, 0; @%p1 bra L;"
      "st.u32 [%rd5], %r4; ld.u32 %r5, [%rd5]; { .param .b64 p; st.param.b64 [p], %rd5; call.uni free, (p); } st.global.u32 [%rd2], %r5;");
  enum { BLOCKS = 8, THREADS = 64 };
  uint64_t out = buffer(t, 4 * BLOCKS * THREADS);
  t->config.heap_bytes = 100000;
  t->config.resident_blocks = BLOCKS;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    t->config.threads = threads;
    memset(u32_at(out), 0xff, 4 * BLOCKS * THREADS);
    run(t, "k", BLOCKS, THREADS, out, 0);
    for (uint32_t n = 0; n < BLOCKS * THREADS; n++) assert_int_equal(u32_at(out)[n], n);
    assert_true(t->stats.warp_instructions < 3000000);
  }
  close_ptx(t);
}

/* One block makes the heap, which another one, on another thread, finds to free what the first one got. What it reads
 * of the heap is guarded: ThreadSanitizer sees where it is not. */
static void test_blocks_share_a_new_heap(void **state) {
  for (int round = 0; round < 8; round++) {
    kernel_test *t = open_body(
        ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n", AT
        "setp.ne.u32 %p1, %r4, 0; @%p1 bra OTHER; { .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call.uni (r), malloc, (n); ld.param.b64 %rd5, [r]; }"
        "st.volatile.global.u64 [%out], %rd5; bra E; OTHER: ld.volatile.global.u64 %rd5, [%out]; setp.eq.s64 %p2, %rd5, 0; @%p2 bra OTHER;"
        "{ .param .b64 p; st.param.b64 [p], %rd5; call.uni free, (p); } st.global.u64 [%out+8], %rd5; E:");
    uint64_t out = buffer(t, 16);
    t->config.threads = t->config.resident_blocks = 2;
    run(t, "k", 2, 1, out, 0);
    assert_true(u64_at(out)[0] && u64_at(out)[1] == u64_at(out)[0]);
    close_ptx(t);
  }
}

static void test_host_memory(void **state) {
  kernel_test *t = open_body("", AT "ld.global.u32 %r5, [%rd2]; add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5;");
  static uint32_t host[64];
  memset(host, 0, sizeof host);
  host[0] = 5;
  const exec_allocation *a;
  assert_int_equal(run_fault(t, "k", 1, 64, (uintptr_t)host, 0)->kind, EXEC_FAULT_ILLEGAL_ADDRESS);
  assert_int_equal(exec_memory_register(t->memory, host, sizeof host, &a, NULL), FF_OK);
  run(t, "k", 1, 64, (uintptr_t)host, 0);
  assert_int_equal(host[0], 6);
  assert_int_equal(host[63], 1);
  assert_int_equal(exec_memory_unregister(t->memory, host, NULL), FF_OK);
  expect_text(run_fault(t, "k", 1, 64, (uintptr_t)host, 0)->message, "which was freed");
  close_ptx(t);
}

/* Large and odd grids, and one kernel after the other with other shapes. */
static void test_shapes(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r1, %r1, %r2, %r3; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r1, %r2, %r3;"
      "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %out, %rd1; red.global.add.u32 [%rd2], 1;");
  static const uint32_t shapes[][6] = {{1, 1, 1, 1024, 1, 1},  {33, 1, 1, 1, 1, 1},  {3, 5, 7, 3, 5, 7},
                                       {2000, 1, 1, 33, 1, 1}, {1, 1, 50, 1, 1, 64}, {1, 60, 1, 8, 8, 8}};
  uint64_t out = buffer(t, 8192);
  t->config.threads = 2;
  for (int round = 0; round < 2; round++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const uint32_t *g = shapes[s];
      struct {
        uint64_t out;
        uint32_t n;
      } params = {out, 0};
      ff_error error;
      memset(u32_at(out), 0, 8192);
      assert_int_equal(launch_with(t, "k", g, g + 3, &params, &error), FF_OK);
      uint32_t blocks = g[0] * g[1] * g[2], threads = g[3] * g[4] * g[5];
      for (uint32_t b = 0; b < blocks; b++) assert_int_equal(u32_at(out)[b], threads);
      assert_int_equal(t->stats.blocks, blocks);
      assert_int_equal(t->stats.thread_instructions % (blocks * threads), 0);
    }
  close_ptx(t);
}

/* Thread ids of one launch after the other, whose blocks have some sides in common, and as many threads. */
static void test_thread_ids(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;"
      "mul.wide.u32 %rd1, %r6, 4; add.s64 %rd2, %out, %rd1; mad.lo.u32 %r7, %r3, 100, %r2; mad.lo.u32 %r7, %r7, 100, %r1; st.global.u32 [%rd2], %r7;");
  static const uint32_t sides[][3] = {{32, 2, 3}, {32, 3, 2}, {32, 3, 2}, {16, 3, 4}, {16, 3, 5}, {32, 2, 3}};
  uint64_t out = buffer(t, 1024);
  t->config.threads = 1;
  for (size_t n = 0; n < sizeof sides / sizeof *sides; n++) {
    const uint32_t *side = sides[n];
    struct {
      uint64_t out;
      uint32_t n;
    } params = {out, 0};
    ff_error error;
    memset(u32_at(out), 0xff, 1024);
    assert_int_equal(launch_with(t, "k", (const uint32_t[3]){1, 1, 1}, side, &params, &error), FF_OK);
    for (uint32_t i = 0; i < side[0] * side[1] * side[2]; i++)
      assert_int_equal(u32_at(out)[i], 10000 * (i / side[0] / side[1]) + 100 * (i / side[0] % side[1]) + i % side[0]);
  }
  close_ptx(t);
}

/* A forked child has no workers of its parent's and makes its own. */
static void test_fork(void **state) {
  kernel_test *t = open_body("", AT "st.global.u32 [%rd2], %r4;");
  uint64_t out = buffer(t, 40000);
  t->config.threads = 3;
  run(t, "k", 100, 64, out, 0);
  pid_t child = fork();
  if (!child) {
    memset(u32_at(out), 0, 40000);
    ff_error error;
    bool good = launch(t, "k", 100, 64, out, 0, &error) == FF_OK;
    for (uint32_t i = 0; i < 6400; i++) good = good && u32_at(out)[i] == i;
    _exit(good ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close_ptx(t);
}

/* Eight warps (the rows of a 32x8 block) do the same work on the same elements: each reads the start, adds in a loop
 * and writes the sum after every step. On a device they start together, and so the race is not seen; it must not be
 * here. */
static void test_warps_start_together(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r3, %tid.x; and.b32 %r3, %r3, 31; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1; ld.global.u32 %r5, [%rd2]; mov.u32 %r6, 0;"
      "L: add.u32 %r5, %r5, %r3; st.global.u32 [%rd2], %r5; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %n; @%p1 bra L;");
  uint64_t out = buffer(t, 128);
  for (uint32_t i = 0; i < 32; i++) u32_at(out)[i] = 1000;
  run(t, "k", 1, 256, out, 50);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[i], 1000 + 50 * i);
  close_ptx(t);
}

/* One block writes vectors of equal elements, the other reads them: it never sees elements of two different stores. A
 * value next to its flag is how blocks pass sums to each other. */
static void check_whole(const char *store, const char *load, const char *type, const char *registers) {
  char body[2048];
  const char *r = registers;
  snprintf(
      body, sizeof body,
      "mov.u32 %%r3, %%tid.x; mul.wide.u32 %%rd1, %%r3, 16; add.s64 %%rd2, %%out, %%rd1; add.s64 %%rd9, %%rd2, 1024; mov.u32 %%r6, 0; mov.u32 %%r7, 0;"
      "mov.u32 %%r1, %%ctaid.x; setp.ne.u32 %%p1, %%r1, 0; @%%p1 bra READ;"
      "WRITE: cvt.u64.u32 %%rd3, %%r6; cvt.u32.u64 %%r8, %%rd3; %s.v2.%s [%%rd2], {%%%s, %%%s}; add.u32 %%r6, %%r6, 1; setp.lt.u32 %%p2, %%r6, %%n; @%%p2 bra WRITE; bra END;"
      "READ: %s.v2.%s {%%%s1, %%%s2}, [%%rd2]; setp.ne.%s %%p3, %%%s1, %%%s2; @%%p3 add.u32 %%r7, %%r7, 1; add.u32 %%r6, %%r6, 1; setp.lt.u32 %%p2, %%r6, %%n; @%%p2 bra READ;"
      "st.global.u32 [%%rd9], %%r7; END:",
      store, type, *r == 'r' && r[1] == 'd' ? "rd3" : "r8", *r == 'r' && r[1] == 'd' ? "rd3" : "r8", load, type, r, r,
      type, r, r);
  kernel_test *t = open_body("", body);
  uint64_t out = buffer(t, 2048);
  t->config.threads = 2;
  run(t, "k", 2, 32, out, 20000);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out + 1024)[4 * i], 0);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(u32_at(out)[4 * i], 19999);
  close_ptx(t);
}

static void test_vectors_are_whole(void **state) {
  check_whole("st.relaxed.gpu.global", "ld.relaxed.gpu.global", "u32", "r1");
  check_whole("st.relaxed.gpu.global", "ld.relaxed.gpu.global", "u64", "rd1");
  check_whole("st.volatile.global", "ld.volatile.global", "u64", "rd1");
  check_whole("st.global.cg", "ld.global.cg", "u32", "r1");
}

/* Blocks that poll for long without anybody getting further are told of, once, and go on. */
static char waiting_text[2048];
static uint32_t waiting_times;
static volatile uint32_t *waiting_for;
static void keep_waiting(const char *text) {
  snprintf(waiting_text, sizeof waiting_text, "%s", text);
  waiting_times++;
  *waiting_for = 1; /* as another thread of the host would */
}

static void check_waiting_is_told(const char *body, const char *place) {
  kernel_test *t = open_body(".shared .align 4 .b8 sh[4];", body);
  uint64_t out = buffer(t, 64);
  waiting_for = u32_at(out);
  waiting_times = 0;
  t->config.waiting = keep_waiting;
  t->config.waiting_ms = 20;
  t->config.threads = 2;
  run(t, "k", 2, 64, out, 0);
  assert_int_equal(waiting_times, 1);
  expect_text(waiting_text, "a block has been waiting");
  expect_text(waiting_text, "in kernel k, block (");
  expect_text(waiting_text, place);
  run(t, "k", 2, 64, out, 0); /* nothing to wait for */
  assert_int_equal(waiting_times, 1);
  close_ptx(t);
}

static void test_waiting_is_told(void **state) {
  check_waiting_is_told("L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
                        "ld.volatile.global.u32");
  check_waiting_is_told("L: ld.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", "ld.global.u32");
  check_waiting_is_told(
      "mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; L: bar.sync 0; @%p1 ld.acquire.gpu.global.u32 %r1, [%out]; @%p1 st.shared.u32 [sh], %r1; bar.sync 0; ld.shared.u32 %r2, [sh]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;",
      "bar.sync");
}

/* The message names a warp that waits for tensor memory, which the one that looks at memory has. */
static void test_waiting_for_columns_is_told(void **state) {
  check_waiting_is_told("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 0; @!%p1 bra OTHER;"
                        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [sh], 512; bar.sync 0;"
                        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [sh], 32;"
                        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32; bra END;"
                        "OTHER: bar.sync 0; L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p2, %r1, 0; @%p2 bra L;"
                        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 512; END:",
                        "warp 0 of the block waits for columns of tensor memory, PTX line ");
  expect_text(waiting_text, "ld.volatile.global.u32");
}

/* Barriers alone are no waiting, nor is a look before the first of them: a block that passes 200 goes on to its end
 * before the next one begins. */
static void test_barriers_are_no_polls(void **state) {
  static const char *const looks[] = {
      "", "bar.sync 0; W: ld.volatile.global.u32 %r9, [%out+64]; setp.ne.u32 %p5, %r9, 0; @%p5 bra W;"};
  for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
    char body[1024];
    snprintf(
        body, sizeof body,
        "mov.u32 %%r1, %%ctaid.x; setp.ne.u32 %%p1, %%r1, 0; mov.u32 %%r2, %%n; @%%p1 mov.u32 %%r2, 1; %s\n"
        "L: bar.sync 0; sub.u32 %%r2, %%r2, 1; setp.ne.u32 %%p2, %%r2, 0; @%%p2 bra L; mov.u32 %%r3, %%tid.x;\n"
        "setp.ne.u32 %%p3, %%r3, 0; @%%p3 bra E; atom.global.add.u32 %%r4, [%%out], 1; mul.wide.u32 %%rd1, %%r1, 4;\n"
        "add.u64 %%rd1, %%out, %%rd1; st.global.u32 [%%rd1+4], %%r4; E:",
        looks[i]);
    kernel_test *t = open_body("", body);
    uint64_t out = buffer(t, 128);
    run(t, "k", 3, 64, out, 200);
    for (uint32_t b = 0; b < 3; b++) assert_int_equal(u32_at(out)[1 + b], b);
    close_ptx(t);
  }
}

/* A block whose loop has barriers in it, and that looks each time, gives way long before it has passed 8192. */
static void test_polls_between_barriers(void **state) {
  kernel_test *t = open_body(
      ".shared .align 4 .b8 sh[4];",
      "mov.u32 %r1, %ctaid.x; mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r1, 1; @%p2 bra WRITE;\n"
      "L: bar.sync 0; @%p1 ld.acquire.gpu.global.u32 %r2, [%out]; @%p1 st.shared.u32 [sh], %r2;\n"
      "bar.sync 0; ld.shared.u32 %r2, [sh]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L; bra END;\n"
      "WRITE: st.volatile.global.u32 [%out], 1; END:");
  uint64_t out = buffer(t, 64);
  run(t, "k", 2, 64, out, 0);
  assert_true(t->stats.barriers >= 2 && t->stats.barriers < 1000);
  close_ptx(t);
}

/* When all blocks only poll, the launch gives way, and nothing of it runs meanwhile; it does so again if that did not
 * help. */
static uint32_t given_times, moved_meanwhile;
static void note_given(void *context) {
  volatile uint32_t *words = context;
  uint32_t before = words[1];
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  moved_meanwhile += words[1] != before;
  if (++given_times == 3) words[0] = 1;
}

static void check_gives_way(const char *body) {
  kernel_test *t = open_body(".shared .align 4 .b8 sh[4];", body);
  uint64_t out = buffer(t, 64);
  t->config.give_way = note_given;
  t->config.give_way_context = u32_at(out);
  for (uint32_t threads = 1; threads <= 3; threads++) {
    given_times = moved_meanwhile = u32_at(out)[0] = 0;
    t->config.threads = threads;
    run(t, "k", 8, 64, out, 0);
    assert_int_equal(given_times, 3);
    assert_int_equal(moved_meanwhile, 0);
  }
  close_ptx(t);
}

static void test_gives_way(void **state) {
  check_gives_way(
      "add.s64 %rd1, %out, 4; L: atom.global.add.u32 %r2, [%rd1], 1; ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;");
  check_gives_way(
      "add.s64 %rd1, %out, 4; mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; L: bar.sync 0; @%p1 red.global.add.u32 [%rd1], 1; @%p1 ld.volatile.global.u32 %r1, [%out]; @%p1 st.shared.u32 [sh], %r1; bar.sync 0; ld.shared.u32 %r2, [sh]; setp.eq.u32 %p2, %r2, 0; @%p2 bra L;");
}

/* Not while one block works, however long the others have been waiting for it. */
static void test_keeps_working(void **state) {
  kernel_test *t = open_body(
      "", "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 1; mov.u32 %r2, 0; @%p1 bra L;"
          "W: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %n; @%p2 bra W; st.volatile.global.u32 [%out], %r2; bra END;"
          "L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; END:");
  uint64_t out = buffer(t, 64);
  t->config.give_way = note_given;
  t->config.give_way_context = u32_at(out);
  given_times = 0;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    u32_at(out)[0] = 0;
    t->config.threads = threads;
    run(t, "k", 4, 32, out, SHARE(10000000, 16));
    assert_int_equal(u32_at(out)[0], SHARE(10000000, 16));
  }
  assert_int_equal(given_times, 0);
  close_ptx(t);
}

/* Nor while its lanes' atomic operations undo each other: who changes memory does not only look at it. */
static void test_undone_is_no_poll(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r2, 0; L: red.global.xor.b32 [%out], 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %n; @%p1 bra L;");
  uint64_t out = buffer(t, 64);
  t->config.give_way = note_given;
  t->config.give_way_context = u32_at(out);
  given_times = 0;
  t->config.threads = 1;
  run(t, "k", 1, 32, out, SHARE(4000000, 4));
  assert_int_equal(u32_at(out)[0], 0);
  assert_int_equal(given_times, 0);
  close_ptx(t);
}

/* A loop that each lane leaves in a round of its own, over more instructions than a turn has: where the turn ends, the
 * lanes that have left go on to the end before the others. */
static void test_turns_end_in_loops_of_some_lanes(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, %n, 1000; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %rd1, %out; mov.u32 %r3, 0; mov.u32 %r4, 0;"
      "L: add.u32 %r4, %r4, %r3; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L; st.global.u32 [%rd1], %r4;");
  uint64_t out = buffer(t, 256);
  const uint32_t step = 9000;
  run(t, "k", 1, 64, out, step);
  uint64_t lanes = 0, longest = 0;
  for (uint32_t i = 0; i < 64; i++) {
    uint32_t rounds = 1000 + i * step;
    assert_int_equal(u32_at(out)[i], (uint32_t)((uint64_t)rounds * (rounds - 1) / 2));
    lanes += rounds;
    if (i % 32 == 31) longest += rounds;
  }
  assert_int_equal(t->stats.warp_instructions, 2 * (10 + 2) + 4 * longest);
  assert_int_equal(t->stats.thread_instructions, 64 * 10 + 4 * lanes);
  assert_int_equal(t->stats.divergent_branches, 2 * 31);
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_wait_for_blocks),
                                          cmocka_unit_test(test_grid_barrier),
                                          cmocka_unit_test(test_barriers_in_a_wait),
                                          cmocka_unit_test(test_worker_independence),
                                          cmocka_unit_test(test_warps_start_together),
                                          cmocka_unit_test(test_vectors_are_whole),
                                          cmocka_unit_test(test_waiting_is_told),
                                          cmocka_unit_test(test_waiting_for_columns_is_told),
                                          cmocka_unit_test(test_barriers_are_no_polls),
                                          cmocka_unit_test(test_polls_between_barriers),
                                          cmocka_unit_test(test_gives_way),
                                          cmocka_unit_test(test_keeps_working),
                                          cmocka_unit_test(test_undone_is_no_poll),
                                          cmocka_unit_test(test_turns_end_in_loops_of_some_lanes),
                                          cmocka_unit_test(test_printing),
                                          cmocka_unit_test(test_printing_own_strings),
                                          cmocka_unit_test(test_printing_before_fault),
                                          cmocka_unit_test(test_device_malloc),
                                          cmocka_unit_test(test_blocks_share_a_new_heap),
                                          cmocka_unit_test(test_threads_wait_for_heap),
                                          cmocka_unit_test(test_host_memory),
                                          cmocka_unit_test(test_thread_ids),
                                          cmocka_unit_test(test_shapes),
                                          cmocka_unit_test(test_fork)};
RUN_ON_EVERY_ISA(tests)
