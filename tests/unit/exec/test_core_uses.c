/* SPDX-License-Identifier: Apache-2.0 */
/* Declared uses: an access of the program's memory that no use covers is a fault that names use, thread and place;
 * everything else runs as if nothing were declared. */
#include "core_harness.h"
#include "ptx/analysis/declared.h"

#define AT "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */
#define SCATTERED "mul.lo.u32 %r4, %r3, 7; and.b32 %r4, %r4, 31; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %out, %rd3;\n"
#define ALL 4096u

static kernel_test *test;
static uint64_t base;

/* A kernel with this body, and a buffer of 4096 bytes in %out. */
static void open_code(const char *code) {
  char body[2048];
  snprintf(body, sizeof body, "%s%s", AT, code);
  test = open_body(
      ".shared .align 16 .b8 sh[64]; .global .align 16 .b8 variable[256]; .const .align 4 .u32 constant[2] = {3, 4};\n"
      ".extern .func (.param .b64 r) malloc (.param .b64 n);\n",
      body);
  base = buffer(test, ALL);
}

static void declare(const ff_virtual_use *uses, uint32_t count) {
  test->uses = uses;
  test->use_count = count;
}

static ff_virtual_use whole(int read, int write) {
  return (ff_virtual_use){.base = base, .bytes = ALL, .read = read, .write = write, .segment = "all"};
}

typedef struct expected {
  uint32_t block, thread;
  int64_t offset;
  const char *words;
} expected;

static void expect_undeclared(uint32_t blocks, expected e) {
  const exec_fault *fault = run_fault(test, "k", blocks, 32, base, 0);
  if (fault->kind != EXEC_FAULT_UNDECLARED) fail_msg("fault kind %d: %s", fault->kind, fault->message);
  if (fault->block[0] != e.block || fault->thread[0] != e.thread || fault->address != base + (uint64_t)e.offset)
    fail_msg("block %u, thread %u, %lld bytes in: %s", fault->block[0], fault->thread[0],
             (long long)(fault->address - base), fault->message);
  expect_text(fault->message, e.words);
  expect_text(fault->message, "in kernel k, block (");
  expect_text(fault->message, "at test.ptx:");
}

/* Bytes 128 to 228 are declared: one below and one above, in every shape and kind of access. */
static void test_edges(void **state) {
  static const struct {
    const char *code;
    uint32_t thread;
    int64_t offset;
    const char *words;
  } cases[] = {{"ld.global.u32 %r5, [%rd2+128];", 25, 228, "undeclared global read of 4 bytes"},
               {"ld.global.u32 %r5, [%rd2+128];", 25, 228,
                "of segment 's' (bytes 0 to 100, read and write): it ends 4 bytes behind"},
               {"st.global.u32 [%rd2+124], %r3;", 0, 124, "write of 4 bytes"},
               {"st.global.u32 [%rd2+124], %r3;", 0, 124, ": it begins 4 bytes before"},
               {"ld.global.u8 %rs1, [%out+127];", 0, 127, ": it begins 1 byte before"},
               {"st.global.u8 [%out+228], %rs1;", 0, 228, ": it ends 1 byte behind"},
               {SCATTERED "ld.global.u32 %r5, [%rd4+128];", 4, 240, "it ends 16 bytes behind"},
               {SCATTERED "st.global.u32 [%rd4+128], %r5;", 4, 240, "global write"},
               {"atom.global.add.u32 %r5, [%rd2+128], 1;", 25, 228, "undeclared global atomic of 4 bytes"},
               {"red.global.add.u32 [%out+228], 1;", 0, 228, "undeclared global atomic"},
               {"atom.add.u32 %r5, [%out+124], 1;", 0, 124, "undeclared generic atomic"},
               {"ld.global.v2.u32 {%r5,%r6}, [%out+224];", 0, 224, "read of 8 bytes"},
               {"ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+112];", 0, 112, "it begins 16 bytes before"},
               {"ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+224];", 0, 224, "it ends 12 bytes behind"},
               {"st.global.v2.u64 [%out+224], {%rd1,%rd2};", 0, 224, "write of 16 bytes"},
               {"ld.volatile.global.u32 %r5, [%out+228];", 0, 228, "read of 4 bytes"},
               {"ld.global.nc.u32 %r5, [%out+228];", 0, 228, "read of 4 bytes"},
               {"ld.u32 %r5, [%rd2+128];", 25, 228, "undeclared generic read"},
               {"setp.gt.u32 %p1, %r3, 27; @%p1 st.global.u32 [%rd2+128], %r3;", 28, 240, "global write"},
               {"cp.async.ca.shared.global [sh], [%out+228], 4;", 0, 228, "undeclared global read of 4 bytes"},
               {"ld.global.u32 %r5, [%out+4096];", 0, 4096, "it ends 3872 bytes behind"},
               {"ld.global.u32 %r5, [%out+-4];", 0, -4, "it begins 132 bytes before"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    open_code(cases[n].code);
    ff_virtual_use use = {.base = base + 128, .bytes = 100, .read = 1, .write = 1, .segment = "s"};
    declare(&use, 1);
    expect_undeclared(1, (expected){0, cases[n].thread, cases[n].offset, cases[n].words});
    close_ptx(test);
  }
}

/* The last bytes that are declared. */
static void test_inside(void **state) {
  static const char *const codes[] = {"ld.global.u32 %r5, [%rd2+128]; st.global.u32 [%rd2+128], %r5;",
                                      SCATTERED "ld.global.u32 %r5, [%rd4+128]; st.global.u32 [%rd4+128], %r5;",
                                      "atom.global.add.u32 %r5, [%out+252], 1; red.global.add.u32 [%rd2+128], 1;",
                                      "ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+240];",
                                      "ld.u8 %rs1, [%out+255]; st.u8 [%out+128], %rs1;",
                                      "cp.async.ca.shared.global [sh], [%out+252], 4;",
                                      "prefetch.global.L2 [%out+1024];",
                                      "setp.gt.u32 %p1, %r3, 40; @%p1 st.global.u32 [%out+1024], %r3;"};
  for (size_t n = 0; n < sizeof codes / sizeof *codes; n++) {
    open_code(codes[n]);
    ff_virtual_use use = {.base = base + 128, .bytes = 128, .read = 1, .write = 1, .segment = "s"};
    declare(&use, 1);
    run(test, "k", 2, 32, base, 0);
    close_ptx(test);
  }
}

static void test_modes(void **state) {
  static const struct {
    const char *code;
    int read, write;
    const char *words;
  } cases[] = {{"ld.global.u32 %r5, [%rd2];", 0, 1, "it reads segment 'all', which is declared for writing"},
               {"st.global.u32 [%rd2], %r5;", 1, 0, "it writes segment 'all', which is declared for reading"},
               {"atom.global.add.u32 %r5, [%out], 1;", 1, 0, "it writes segment 'all', which is declared for reading"},
               {"red.global.add.u32 [%out], 1;", 0, 1, "it reads segment 'all', which is declared for writing"},
               {"st.global.u32 [%rd2], %r5;", 0, 0, "it writes segment 'all', which is declared for nothing"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    open_code(cases[n].code);
    ff_virtual_use use = whole(cases[n].read, cases[n].write);
    declare(&use, 1);
    expect_undeclared(1, (expected){0, 0, 0, cases[n].words});
    close_ptx(test);
  }
  /* a use for each mode */
  open_code("ld.global.u32 %r5, [%rd2]; st.global.u32 [%rd2], %r5; atom.global.add.u32 %r5, [%rd2], 1;");
  ff_virtual_use uses[] = {whole(1, 0), whole(0, 1)};
  declare(uses, 2);
  run(test, "k", 1, 32, base, 0);
  close_ptx(test);
}

/* Two uses side by side are as good as one, a byte between them is not. */
static void test_straddle(void **state) {
  open_code("ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+96]; ld.global.u32 %r5, [%rd2+64];");
  ff_virtual_use uses[] = {{.base = base + 104, .bytes = 1000, .read = 1, .segment = "high"},
                           {.base = base, .bytes = 104, .read = 1, .segment = "low"}};
  declare(uses, 2);
  run(test, "k", 1, 32, base, 0);
  uses[1].bytes = 103;
  expect_undeclared(1, (expected){0, 0, 96, "segment 'high' (bytes 0 to 1000, read): it begins 8 bytes before"});
  close_ptx(test);
}

static void test_nothing_declared(void **state) {
  open_code("st.global.u32 [%rd2], %r3;");
  ff_virtual_use none = {0};
  declare(&none, 0);
  expect_undeclared(1, (expected){0, 0, 0, "the launch declares that it uses no segment"});
  close_ptx(test);
}

static void test_exempt(void **state) {
  static const char *const codes[] = {
      "st.global.u32 [variable+12], %r3; ld.global.u32 %r5, [variable+12]; atom.global.add.u32 %r5, [variable+16], 1;",
      "mov.u64 %rd5, variable; add.s64 %rd5, %rd5, %rd1; cvta.global.u64 %rd6, %rd5; st.u32 [%rd6], %r3; ld.u32 %r5, [%rd6];",
      "ld.const.u32 %r5, [constant+4]; st.shared.u32 [sh], %r5; ld.shared.u32 %r6, [sh]; cvta.shared.u64 %rd7, 0; ld.u32 %r7, [%rd7];",
      ".local .align 4 .b8 stack[16]; st.local.u32 [stack], %r3; mov.u64 %rd5, stack; cvta.local.u64 %rd6, %rd5; ld.u32 %r5, [%rd6];",
      "{.param .b64 a; .param .b64 r; st.param.b64 [a], 64; call (r), malloc, (a); ld.param.b64 %rd5, [r]; st.u32 [%rd5], %r3; ld.u32 %r6, [%rd5];}"};
  for (size_t n = 0; n < sizeof codes / sizeof *codes; n++) {
    open_code(codes[n]);
    test->config.heap_bytes = 1 << 20;
    ff_virtual_use none = {0};
    declare(&none, 0);
    run(test, "k", 1, 32, base, 0);
    close_ptx(test);
  }
}

/* Block b may touch bytes 128 b to 128 b + 128 of the first 512. */
static void test_per_block(void **state) {
  for (uint32_t threads = 1; threads <= 4; threads += 3) {
    open_code(
        "mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd5, %r6, 128; add.s64 %rd6, %rd2, %rd5; ld.global.u32 %r5, [%rd6]; st.global.u32 [%rd6], %r6;");
    test->config.threads = threads;
    ff_virtual_use use = {
        .base = base, .bytes = 1024, .per_block = {128}, .block_bytes = 128, .read = 1, .write = 1, .segment = "rows"};
    declare(&use, 1);
    run(test, "k", 8, 32, base, 0);
    assert_int_equal(u32_at(base)[7 * 32], 7);
    use.bytes = 512; /* clipped: nothing is left for block 4 */
    expect_undeclared(8, (expected){4, 0, 512, "for this block of segment 'rows' (bytes 512 to 512, read and write)"});
    use.bytes = 1024;
    use.block_bytes = 127;
    expect_undeclared(
        8, (expected){0, 31, 124,
                      "for this block of segment 'rows' (bytes 0 to 127, read and write): it ends 1 byte behind"});
    use.block_bytes = 128;
    use.start = 128; /* the second half of a grid, say */
    use.offset = 5000;
    expect_undeclared(
        8, (expected){
               0, 0, 0,
               "for this block of segment 'rows' (bytes 5128 to 5256, read and write): it begins 128 bytes before"});
    use = (ff_virtual_use){
        .base = base, .bytes = 1024, .per_block = {-128}, .block_bytes = 128, .read = 1, .write = 1, .segment = "rows"};
    expect_undeclared(8, (expected){1, 0, 128, "for this block of segment 'rows' (bytes 0 to 0, read and write)"});
    close_ptx(test);
  }
}

/* Whatever the number of workers, the first block that leaves its uses is the one that is named. */
static void test_first_block(void **state) {
  open_code("mov.u32 %r6, %ctaid.x; setp.lt.u32 %p1, %r6, 3; @%p1 bra END; ld.global.u32 %r5, [%rd2+1024]; END:");
  test->config.threads = 4;
  ff_virtual_use use = {.base = base, .bytes = 1024, .read = 1, .segment = "s"};
  declare(&use, 1);
  for (int n = 0; n < 10; n++) expect_undeclared(64, (expected){3, 0, 1024, "it ends 4 bytes behind"});
  close_ptx(test);
}

static void test_whole_message(void **state) {
  test = open_ptx(PTX_HEAD
                  ".file 1 \"saxpy.cu\"\n.visible .entry scale(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.loc 1 12 3\n"
                  "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1+400], 1;\nret;\n}\n");
  base = buffer(test, ALL);
  ff_virtual_use use = {.base = base, .bytes = 400, .write = 1, .segment = "y"};
  declare(&use, 1);
  const exec_fault *fault = run_fault(test, "scale", 1, 1, base, 0);
  assert_string_equal(
      fault->message,
      "undeclared global write of 4 bytes at 0x200000000190\n"
      "  outside of what the launch declares of segment 'y' (bytes 0 to 400, write): it ends 4 bytes behind\n"
      "  in kernel scale, block (0,0,0), thread (0,0,0)\n"
      "  at test.ptx:10: st.global.u32 [%rd1+400], 1;\n"
      "  from saxpy.cu:12");
  close_ptx(test);
}

static void test_overflow(void **state) { /* ranges that no arithmetic of 64 bits holds */
  const ff_virtual_use uses[] = {
      {.base = UINT64_MAX - 10, .bytes = 100, .read = 1},
      {.base = 1000,
       .bytes = 100,
       .per_block = {INT64_MAX, INT64_MAX, INT64_MIN},
       .block_bytes = UINT64_MAX,
       .read = 1},
      {.base = 0, .bytes = UINT64_MAX, .per_block = {INT64_MIN}, .block_bytes = 5, .read = 1}};
  const uint32_t last[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  for (size_t n = 0; n < 3; n++) {
    ptx_use_range range = ptx_use_range_of(&uses[n], last);
    assert_true(range.low >= uses[n].base && range.low <= range.high);
  }
  assert_false(ptx_use_covers(&(ptx_use_range){0, UINT64_MAX, 3}, 1, UINT64_MAX - 1, 4, 1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_edges),     cmocka_unit_test(test_inside),           cmocka_unit_test(test_modes),
    cmocka_unit_test(test_straddle),  cmocka_unit_test(test_nothing_declared), cmocka_unit_test(test_exempt),
    cmocka_unit_test(test_per_block), cmocka_unit_test(test_first_block),      cmocka_unit_test(test_whole_message),
    cmocka_unit_test(test_overflow)};

RUN_ON_EVERY_ISA(tests)
