/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a kernel: the kind of every fault, the thread and address it names, and the words a reader needs. */
#define _GNU_SOURCE
#include "core_harness.h"
#include <sys/mman.h>
#include <unistd.h>

#include "exec/launch/program_sharing.h"
#include "exec/memory/tensor_map.h"
#include "exec/memory/overrun.h"

#define AT "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %out, %rd1;\n" /* %rd2: the thread's word */

static void expect(const exec_fault *fault, exec_fault_kind kind, uint32_t block, uint32_t thread, uint64_t address) {
  if (fault->kind != kind) fail_msg("fault kind %d, not %d: %s", fault->kind, kind, fault->message);
  assert_int_equal(fault->block[0], block);
  assert_int_equal(fault->thread[0], thread);
  assert_int_equal(fault->address, address);
}

/* The byte behind the last one, for each shape of an access: row, uniform, scattered; reads, writes, atomics,
 * vectors. */
static void test_end_of_allocation(void **state) {
  static const struct {
    const char *code;
    uint32_t thread, offset;
    const char *words;
  } cases[] = {
      {"ld.global.u32 %r5, [%rd2];", 25, 100, "illegal global read of 4 bytes"},
      {"st.global.u32 [%rd2], %r3;", 25, 100, "illegal global write of 4 bytes"},
      {"ld.global.u32 %r5, [%out+100];", 0, 100, "illegal global read of 4 bytes"},
      {"ld.global.u32 %r5, [%rd2+-4];", 0, (uint32_t)-4, "4 bytes before the nearest allocation"},
      {"shl.b32 %r4, %r3, 3; cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %out, %rd3; ld.global.u32 %r5, [%rd4];", 13, 104,
       "4 bytes behind the end of"},
      {"shl.b32 %r4, %r3, 3; cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %out, %rd3; st.global.u32 [%rd4], %r4;", 13, 104,
       "illegal global write"},
      {"atom.global.add.u32 %r5, [%rd2], 1;", 25, 100, "illegal global atomic of 4 bytes"},
      {"ld.global.u64 %rd5, [%out+96];", 0, 96, "runs over the end of buffer of 100"},
      {"ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%out+96];", 0, 96, "illegal global read of 16 bytes"},
      {"ld.global.u8 %rs1, [%rd2];", 25, 100, "illegal global read of 1 bytes"},
      {"ld.u32 %r5, [%rd2];", 25, 100, "illegal generic read of 4 bytes"},
      {"and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; @%p1 ld.global.u32 %r5, [%rd2];", 25, 100, "illegal global read"},
      {"setp.gt.u32 %p1, %r3, 27; @%p1 st.global.u32 [%rd2], %r3;", 28, 112, "12 bytes behind the end of"},
      {"cp.async.ca.shared.global [sh], [%out+100], 4;", 0, 100, "illegal global read of 4 bytes"}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char body[1024];
    snprintf(body, sizeof body, "%s%s", AT, cases[n].code);
    kernel_test *t = open_body(".shared .align 16 .b8 sh[64];", body);
    uint64_t out = buffer(t, 100);
    const exec_fault *fault = run_fault(t, "k", 1, 32, out, 0);
    expect(fault, EXEC_FAULT_ILLEGAL_ADDRESS, 0, cases[n].thread, out + (uint64_t)(int64_t)(int32_t)cases[n].offset);
    expect_text(fault->message, cases[n].words);
    expect_text(fault->message, "in kernel k, block (0,0,0), thread (");
    expect_text(fault->message, "at test.ptx:");
    assert_true(fault->line > 0);
    close_ptx(t);
  }
}

static void test_whole_message(void **state) {
  kernel_test *t = open_ptx(
      PTX_HEAD ".file 1 \"saxpy.cu\"\n.visible .entry scale(.param .u64 p)\n{\n.reg .b64 %rd<3>;\n.loc 1 12 3\n"
               "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1+400], 1;\nret;\n}\n");
  uint64_t out = buffer(t, 400);
  const exec_fault *fault = run_fault(t, "scale", 1, 1, out, 0);
  assert_string_equal(
      fault->message,
      "illegal global write of 4 bytes at 0x200000000190\n"
      "  it is 0 bytes behind the end of the nearest allocation, buffer of 400, 400 B at 0x200000000000 (400 bytes)\n"
      "  in kernel scale, block (0,0,0), thread (0,0,0)\n"
      "  at test.ptx:10: st.global.u32 [%rd1+400], 1;\n"
      "  from saxpy.cu:12");
  assert_int_equal(fault->line, 10);
  close_ptx(t);
}

/* Memory of the host's own, as of a pointer that the program forgot to copy: whose it is, and no word of
 * allocations. */
static void test_memory_of_the_host(void **state) {
  static uint32_t variable = 1; /* of the file, not of the pages behind it */
  uint32_t on_stack = 0, *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const struct {
    const void *at;
    const char *words;
  } cases[] = {
      {&on_stack, "\n  it is in the host's own memory (the stack), which kernels of this machine cannot access; what "},
      {sbrk(4096), "(the heap of malloc), which"},
      {mapped, "(mapped, as by malloc), which"},
      {&variable, "(of exec_"}};
  assert_true(mapped != MAP_FAILED);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    kernel_test *t = open_body("", "ld.global.u32 %r5, [%out];");
    buffer(t, 100);
    const exec_fault *fault = run_fault(t, "k", 1, 1, (uint64_t)(uintptr_t)cases[n].at, 0);
    expect(fault, EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, (uint64_t)(uintptr_t)cases[n].at);
    expect_text(fault->message, cases[n].words);
    assert_null(strstr(fault->message, "nearest"));
    close_ptx(t);
  }
  munmap(mapped, 4096);
  kernel_test *t = open_body("", "ld.global.u32 %r5, [%out];"); /* nothing is there now */
  buffer(t, 100);
  expect_text(run_fault(t, "k", 1, 1, (uint64_t)(uintptr_t)mapped, 0)->message,
              "the nearest allocation, buffer of 100");
  close_ptx(t);
}

/* Over the end of an allocation, but not of its last page: told once for each, and carried out, if the launch's owner
 * wants it so. */
static char overrun_text[2048];
static uint32_t overruns, others_told;
static void keep_overrun(const char *text) {
  if (text) snprintf(overrun_text, sizeof overrun_text, "%s", text);
  else others_told++;
  overruns++;
}

static void test_overrun_in_page(void **state) {
  kernel_test *t = open_body(
      "", AT
      "ld.global.u32 %r5, [%rd2]; add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5; ld.global.u32 %r6, [%rd2]; st.global.u32 [%rd2], %r6;");
  /* from there on an allocation has 2 MiB of its own, but its last page is still one of 4 KiB */
  enum { LARGE = 2 << 20 };
  uint64_t out = buffer(t, 100), large = buffer(t, LARGE + 100);
  exec_overrun_use(keep_overrun);
  overruns = others_told = 0;
  run(t, "k", 1, 64, out, 0);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], 1);
  assert_int_equal(overruns, 1);
  assert_string_equal(
      overrun_text,
      "a read of 4 bytes at 0x200000000064 goes over the end of buffer of 100, 100 B at 0x200000000000 (100 bytes), but not of its last page\n"
      "  in kernel k, block (0,0,0), thread (25,0,0)\n"
      "  at test.ptx:11: ld.global.u32 %r5, [%rd2];");
  run(t, "k", 1, 64, out, 0); /* told already */
  assert_int_equal(overruns, 1);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], 2);
  run(t, "k", 1, 1024, out, 0); /* all of the page */
  assert_int_equal(u32_at(out)[1023], 1);
  expect(run_fault(t, "k", 1, 32, large + LARGE + 4096, 0), EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, large + LARGE + 4096);
  expect(run_fault(t, "k", 1, 32, large - 64, 0), EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, large - 64);
  assert_int_equal(overruns, 1);
  for (uint32_t n = 0; n < 10; n++) run(t, "k", 1, 32, buffer(t, 64), 0); /* and that there are others */
  assert_int_equal(overruns, EXEC_OVERRUNS_TOLD + 1);
  assert_int_equal(others_told, 1);
  exec_overrun_use(NULL);
  close_ptx(t);
}

/* Gathers over the end, before that is told and after; of several widths, and not behind the page. */
static void test_overrun_by_gathers(void **state) {
  kernel_test *t =
      open_body("", "mov.u32 %r4, %tid.x; mul.lo.u32 %r5, %r4, 5; and.b32 %r5, %r5, 31; mul.wide.u32 %rd3, %r5, 8;"
                    "add.s64 %rd3, %rd3, %out; ld.global.u64 %rd4, [%rd3]; setp.lt.u32 %p1, %r4, %n; @%p1 bra E;"
                    "ld.global.u8 %r6, [%rd3+3]; ld.global.v2.u32 {%r7, %r8}, [%rd3]; xor.b32 %r7, %r7, %r6;"
                    "mov.b64 %rd5, {%r7, %r8}; st.global.u64 [%rd3], %rd5; E: st.global.u64 [%rd3+256], %rd4;");
  uint64_t out = buffer(t, 100);
  exec_overrun_use(keep_overrun);
  overruns = 0;
  uint64_t *words = (uint64_t *)(void *)u32_at(out);
  for (uint32_t round = 0; round < 3; round++) {
    for (uint32_t n = 0; n < 32; n++) words[n] = UINT64_C(0x123456789abcdef1) * (n + 1);
    run(t, "k", 1, 32, out, 7);
    for (uint32_t l = 0; l < 32; l++) {
      uint64_t before = UINT64_C(0x123456789abcdef1) * (l * 5 % 32 + 1), after = before ^ (before >> 24 & 255);
      assert_true(words[32 + l * 5 % 32] == before);
      assert_true(words[l * 5 % 32] == (l < 7 ? before : after));
    }
    assert_int_equal(overruns, 1);
  }
  const exec_fault *fault = run_fault(t, "k", 1, 32, out + 4096 - 128, 0); /* half of the lanes read behind the page */
  assert_int_equal(fault->kind, EXEC_FAULT_ILLEGAL_ADDRESS);
  assert_int_equal(fault->address, out + 4096 + 32); /* thread 4's */
  fault = run_fault(t, "k", 1, 32, out + 4, 0);
  assert_int_equal(fault->kind, EXEC_FAULT_MISALIGNED);
  exec_overrun_use(NULL);
  close_ptx(t);
}

static void test_overrun_by_atomics(void **state) {
  kernel_test *t = open_body("", "atom.global.add.u32 %r5, [%out+100], 7; red.global.add.u32 [%out+100], %r5;");
  uint64_t out = buffer(t, 100);
  exec_overrun_use(keep_overrun);
  overruns = 0;
  run(t, "k", 1, 1, out, 0);
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(u32_at(out)[25], 21);
  assert_int_equal(overruns, 1);
  assert_memory_equal(overrun_text, "an atomic of 4 bytes at 0x200000000064 goes over the end of ", 59);
  exec_overrun_use(NULL);
  close_ptx(t);
}

/* Variables may be read so, but not written. */
static void test_overrun_of_variables(void **state) {
  kernel_test *t =
      open_body(".const .align 4 .b8 fixed[8]; .global .align 4 .b8 table[8];",
                "setp.eq.u32 %p1, %n, 1; mov.u64 %rd1, fixed; cvta.const.u64 %rd2, %rd1;"
                "@!%p1 ld.const.u32 %r1, [%rd1+8]; @!%p1 ld.u32 %r2, [%rd2+12]; @%p1 st.u32 [%rd2+8], 1;"
                "setp.eq.u32 %p2, %n, 2; @!%p2 ld.global.u32 %r2, [table+8]; @%p2 st.global.u32 [table+8], 1;"
                "mov.u32 %r3, 7; st.global.u32 [%out], %r3;");
  exec_overrun_use(keep_overrun);
  overruns = 0;
  uint64_t out = buffer(t, 8);
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(u32_at(out)[0], 7);
  assert_int_equal(overruns, 2);
  expect_text(overrun_text, "goes over the end of table");
  run_fault(t, "k", 1, 1, out, 1);
  run_fault(t, "k", 1, 1, out, 2);
  exec_overrun_use(NULL);
  run_fault(t, "k", 1, 1, out, 0);
  close_ptx(t);
}

/* Not what is freed, and memory of the host's. */
static void test_no_overrun(void **state) {
  kernel_test *t = open_body("", "ld.u32 %r1, [%out+8];");
  exec_overrun_use(keep_overrun);
  overruns = others_told = 0;
  uint64_t out = buffer(t, 8);
  uint32_t *host = aligned_alloc(4096, 4096);
  const exec_allocation *registered;
  assert_int_equal(exec_memory_register(t->memory, host, 8, &registered, NULL), FF_OK);
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(overruns, 1);
  run_fault(t, "k", 1, 1, registered->address, 0);
  assert_int_equal(exec_memory_release(t->memory, out, NULL), FF_OK);
  run_fault(t, "k", 1, 1, out, 0);
  assert_int_equal(overruns, 1);
  assert_int_equal(exec_memory_unregister(t->memory, host, NULL), FF_OK);
  exec_overrun_use(NULL);
  free(host);
  close_ptx(t);
}

static void test_misaligned(void **state) {
  static const char *const codes[] = {
      "ld.global.u32 %r5, [%rd2+2];",          "add.s64 %rd3, %rd1, %rd2; ld.global.u64 %rd4, [%rd3+4];",
      "st.global.u16 [%rd2+1], %rs1;",         "ld.global.v2.u32 {%r5,%r6}, [%out+4];",
      "atom.global.add.u32 %r5, [%out+1], 1;", "mov.u32 %r7, sh; ld.shared.u32 %r5, [%r7+2];",
      "st.local.u32 [depot+1], %r3;",          "mov.u64 %rd4, sh; ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%rd4+8];"};
  for (size_t n = 0; n < sizeof codes / sizeof *codes; n++) {
    char body[1024];
    snprintf(body, sizeof body, ".local .align 8 .b8 depot[16]; %s%s", AT, codes[n]);
    kernel_test *t = open_body(".shared .align 16 .b8 sh[64];", body);
    const exec_fault *fault = run_fault(t, "k", 1, 32, buffer(t, 1024), 0);
    if (fault->kind != EXEC_FAULT_MISALIGNED) fail_msg("%s: %s", codes[n], fault->message);
    expect_text(fault->message, "misaligned");
    expect_text(fault->message, "must be a multiple of");
    close_ptx(t);
  }
}

static void test_on_chip_bounds(void **state) {
  static const struct {
    const char *code, *words;
    uint32_t thread;
  } cases[] = {
      {"shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r4, %r4, %r5; ld.shared.u32 %r6, [%r4];",
       "the block has 64 bytes of shared memory", 16},
      {"shl.b32 %r4, %r3, 2; mov.u32 %r5, sh; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], 1;", "illegal shared write",
       16},
      {"mov.u64 %rd3, sh; cvta.shared.u64 %rd4, %rd3; ld.u32 %r5, [%rd4+64];", "illegal shared read of 4 bytes", 0},
      /* of 64 bits the lower half counts */
      {"mov.u64 %rd3, sh; add.s64 %rd3, %rd3, 0x100000040; ld.shared.u32 %r5, [%rd3];",
       "illegal shared read of 4 bytes at 0x40", 0},
      {"atom.shared.add.u32 %r5, [sh+64], 1;", "illegal shared atomic", 0},
      {"st.local.u32 [depot+16], %r3;", "the thread has 16 bytes of local memory", 0},
      {"mov.u64 %rd3, depot; add.s64 %rd3, %rd3, %rd1; ld.local.u32 %r5, [%rd3];", "illegal local read of 4 bytes", 4},
      {"mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; add.s64 %rd4, %rd4, %rd1; ld.u32 %r5, [%rd4];",
       "illegal local read of 4 bytes", 4}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char body[1024];
    snprintf(body, sizeof body, ".local .align 8 .b8 depot[16]; %s%s", AT, cases[n].code);
    kernel_test *t = open_body(".shared .align 16 .b8 sh[64];", body);
    const exec_fault *fault = run_fault(t, "k", 1, 32, buffer(t, 1024), 0);
    if (fault->kind != EXEC_FAULT_ILLEGAL_ADDRESS) fail_msg("%s: %s", cases[n].code, fault->message);
    expect_text(fault->message, cases[n].words);
    assert_int_equal(fault->thread[0], cases[n].thread);
    close_ptx(t);
  }
}

/* A vector that begins in dynamic shared memory is read whole, as compilers do it; the next one is not there. */
static void test_end_of_dynamic_shared(void **state) {
  kernel_test *t = open_body(
      ".extern .shared .align 16 .b8 sh[];",
      "st.shared.u32 [sh+24], 7; ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [sh+16];"
      "add.u32 %r9, %r7, %r8; st.global.u32 [%out], %r9; setp.eq.u32 %p1, %n, 1; @%p1 ld.shared.u32 %r5, [sh+32];");
  uint64_t out = buffer(t, 128);
  t->shared = 28;
  run(t, "k", 1, 1, out, 0);
  assert_int_equal(*(uint32_t *)(uintptr_t)out, 7);
  const exec_fault *fault = run_fault(t, "k", 1, 1, out, 1);
  expect_text(fault->message, "illegal shared read of 4 bytes at 0x20");
  expect_text(fault->message, "the block has 28 bytes of shared memory");
  close_ptx(t);
}

static void test_freed_and_constant(void **state) {
  kernel_test *t = open_body(
      ".const .align 4 .u32 table[4] = {1, 2, 3, 4};", AT
      "setp.eq.u32 %p1, %n, 1; @%p1 bra C; ld.global.u32 %r5, [%rd2]; bra E; C: cvta.const.u64 %rd3, table; st.u32 [%rd3+4], 5; E:");
  uint64_t first = buffer(t, 128), out = buffer(t, 4096);
  assert_int_equal(exec_memory_release(t->memory, out, NULL), FF_OK);
  const exec_fault *fault = run_fault(t, "k", 1, 32, out, 0);
  expect(fault, EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, out);
  expect_text(fault->message, "0 bytes into buffer of 4096");
  expect_text(fault->message, "which was freed");
  run(t, "k", 1, 32, first, 0); /* a fault leaves nothing behind */
  fault = run_fault(t, "k", 1, 32, first, 1);
  expect_text(fault->message, "in constant memory: table");
  expect_text(fault->message, "write of 4 bytes");
  fault = run_fault(t, "k", 1, 32, 0, 0);
  expect(fault, EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, 0);
  fault = run_fault(t, "k", 1, 32, UINT64_MAX - 3, 0);
  expect(fault, EXEC_FAULT_ILLEGAL_ADDRESS, 0, 0, UINT64_MAX - 3);
  close_ptx(t);
}

static void test_trap_and_spaces(void **state) {
  kernel_test *t = open_body(
      "", AT
      ".local .align 8 .b8 depot[16]; setp.eq.u32 %p1, %r3, 40; @%p1 trap; st.global.u32 [%rd2], 1; mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3;"
      "setp.eq.u32 %p2, %n, 1; @%p2 atom.add.u32 %r5, [%rd4], 1;");
  uint64_t out = buffer(t, 256);
  expect(run_fault(t, "k", 3, 64, out, 0), EXEC_FAULT_TRAP, 0, 40, 0);
  run(t, "k", 1, 32, out, 0);
  const exec_fault *fault = run_fault(t, "k", 1, 32, out, 1);
  assert_int_equal(fault->kind, EXEC_FAULT_INVALID_SPACE);
  expect_text(fault->message, "not possible in local memory");
  close_ptx(t);
}

static void test_assert(void **state) {
  kernel_test *t = open_body(
      ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
      ".global .align 1 .b8 text[6] = {120, 32, 62, 32, 48, 0};\n.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n.global .align 1 .b8 name[8] = {118, 111, 105, 100, 32, 107, 40, 41};\n.global .align 1 .b8 nul[1];",
      AT
      "setp.ne.u32 %p1, %r3, 3; @%p1 bra E; mov.u64 %rd3, text; mov.u64 %rd4, file; mov.u64 %rd5, name; { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;"
      "st.param.b64 [a], %rd3; st.param.b64 [b], %rd4; st.param.b32 [c], 17; cvta.global.u64 %rd6, file; st.param.b64 [d], %rd6; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); } E:");
  const exec_fault *fault = run_fault(t, "k", 1, 32, buffer(t, 128), 0);
  expect(fault, EXEC_FAULT_ASSERT, 0, 3, 0);
  expect_text(fault->message, "a.cu:17: a.cu: block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.");
  close_ptx(t);
}

static void test_stack(void **state) {
  kernel_test *t = open_body(
      ".func (.param .b32 r) down(.param .b32 n)\n{\n.local .align 8 .b8 d[48]; .reg .b32 %r<5>; .reg .pred %p<2>; .reg .b64 %rd<3>;\n"
      "ld.param.u32 %r1, [n]; mov.u64 %rd1, d; st.local.u32 [%rd1+8], %r1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 bra E; add.u32 %r2, %r1, -1;\n"
      "{ .param .b32 a; st.param.b32 [a], %r2; .param .b32 b; call.uni (b), down, (a); ld.param.b32 %r3, [b]; } E: ld.local.u32 %r4, [d+8]; add.u32 %r3, %r3, %r4; st.param.b32 [r], %r3; ret;\n}\n",
      AT
      "{ .param .b32 a; st.param.b32 [a], %n; .param .b32 b; call.uni (b), down, (a); ld.param.b32 %r5, [b]; } st.global.u32 [%rd2], %r5;");
  uint64_t out = buffer(t, 256);
  run(t, "k", 1, 64, out, 10);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], 55);
  const exec_fault *fault = run_fault(t, "k", 2, 64, out, 100000);
  expect(fault, EXEC_FAULT_STACK, 0, 0, 0);
  expect_text(fault->message, "stack overflow: down needs 64 bytes");
  expect_text(fault->message, "in function down");
  t->config.stack_bytes = 32768;
  run(t, "k", 1, 64, out, 500);
  assert_int_equal(u32_at(out)[63], 500 * 501 / 2);
  close_ptx(t);
}

static void test_barrier_never_met(void **state) {
  kernel_test *t = open_body(
      "", AT "setp.lt.u32 %p1, %r3, 32; @%p1 bra A; bar.sync 1; bra E; A: bar.sync 2; E: st.global.u32 [%rd2], 1;");
  const exec_fault *fault = run_fault(t, "k", 1, 64, buffer(t, 256), 0);
  expect(fault, EXEC_FAULT_BARRIER, 0, 0, 0);
  expect_text(fault->message, "warp 0: lanes 0xffffffff wait at barrier 2, PTX line");
  expect_text(fault->message, "warp 1: lanes 0xffffffff wait at barrier 1, PTX line");
  close_ptx(t);
  t = open_body(
      "",
      AT "setp.lt.u32 %p1, %r3, 16; @%p1 bra A; bar.warp.sync -1; bra E; A: bar.sync 0; E: st.global.u32 [%rd2], 1;");
  fault = run_fault(t, "k", 1, 32, buffer(t, 256), 0);
  expect(fault, EXEC_FAULT_BARRIER, 0, 16, 0);
  expect_text(fault->message, "lanes 0xffff0000 wait for lanes 0x0000ffff");
  close_ptx(t);
  t = open_body(
      ".shared .align 4 .b8 s[4];",
      AT "setp.lt.u32 %p1, %r3, 32; @!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 512;"
         "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32; A: bar.sync 3; st.global.u32 [%rd2], 1;");
  fault = run_fault(t, "k", 1, 64, buffer(t, 256), 0);
  expect(fault, EXEC_FAULT_BARRIER, 0, 0, 0);
  expect_text(fault->message,
              "warp 0: waits for columns of tensor memory that no other warp can free or allocate with it, PTX line");
  expect_text(fault->message, "warp 1: lanes 0xffffffff wait at barrier 3, PTX line");
  close_ptx(t);
  t = open_body("", "bar.sync %n;");
  fault = run_fault(t, "k", 1, 32, buffer(t, 256), 16);
  assert_int_equal(fault->kind, EXEC_FAULT_ILLEGAL_INSTRUCTION);
  close_ptx(t);
}

/* A kernel that copies a box by the map at p_out. */
static kernel_test *open_tensor_copy(const char *dimensions, const char *coordinates) {
  char text[1024];
  snprintf(
      text, sizeof text,
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n"
      ".shared .align 128 .b8 area[256]; .shared .align 8 .b64 mark; .reg .b64 %%map;\n"
      "ld.param.u64 %%map, [p_out]; mbarrier.init.shared.b64 [mark], 1;\n"
      "cp.async.bulk.tensor.%s.shared::cluster.global.tile.mbarrier::complete_tx::bytes [area], [%%map, {%s}], [mark];"
      "\nret;\n}\n",
      dimensions, coordinates);
  return open_ptx(text);
}

/* A map with the magic that no encoder made: its box or a step of its rows is 0; its type or swizzle is none. */
static void test_broken_tensor_map(void **state) {
  kernel_test *t = open_tensor_copy("2d", "0, 0");
  uint64_t at = buffer(t, 4096);
  tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                    .address = at,
                    .stride = {32},
                    .last = {7, 7},
                    .box = {8, 2},
                    .step = {0, 1},
                    .type = TENSOR_MAP_U32,
                    .rank = 2};
  memcpy((void *)(uintptr_t)at, &map, sizeof map);
  run(t, "k", 1, 1, at, 0); /* the step along a row is not looked at */
  map.step[1] = 0;
  memcpy((void *)(uintptr_t)at, &map, sizeof map);
  const exec_fault *fault = run_fault(t, "k", 1, 1, at, 0);
  assert_int_equal(fault->kind, EXEC_FAULT_ILLEGAL_INSTRUCTION);
  expect_text(fault->message, "has a step or a box of 0 along dimension 1");
  map.step[1] = 1;
  map.box[0] = 0;
  memcpy((void *)(uintptr_t)at, &map, sizeof map);
  expect_text(run_fault(t, "k", 1, 1, at, 0)->message, "has a step or a box of 0 along dimension 0");
  map.box[0] = 8;
  map.type = TENSOR_MAP_TYPES;
  memcpy((void *)(uintptr_t)at, &map, sizeof map);
  expect_text(run_fault(t, "k", 1, 1, at, 0)->message, "there is no tensor map at");
  map.type = TENSOR_MAP_U32;
  map.swizzle = 40;
  memcpy((void *)(uintptr_t)at, &map, sizeof map);
  expect_text(run_fault(t, "k", 1, 1, at, 0)->message, "there is no tensor map at");
  close_ptx(t);
}

/* Boxes whose bytes, or whose rows, are 0 in 32 bits; one of as many rows as a map could say; and one just too
 * large. */
static void test_tensor_map_with_a_huge_box(void **state) {
  kernel_test *t = open_tensor_copy("5d", "0, 0, 0, 0, 0");
  uint64_t at = buffer(t, 4096);
  static const uint16_t boxes[][5] = {
      {1, 256, 256, 256, 128}, {1, 256, 256, 256, 256}, {8, 65535, 65535, 65535, 65535}, {8, 256, 257, 1, 1}};
  for (size_t n = 0; n < sizeof boxes / sizeof *boxes; n++) {
    tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                      .address = at,
                      .stride = {32, 32, 32, 32},
                      .last = {7, 7, 7, 7, 7},
                      .step = {1, 1, 1, 1, 1},
                      .type = TENSOR_MAP_U16,
                      .rank = 5};
    memcpy(map.box, boxes[n], sizeof map.box);
    memcpy((void *)(uintptr_t)at, &map, sizeof map);
    const exec_fault *fault = run_fault(t, "k", 1, 1, at, 0);
    assert_int_equal(fault->kind, EXEC_FAULT_ILLEGAL_INSTRUCTION);
    expect_text(fault->message, "is too large");
  }
  close_ptx(t);
}

static void test_shape_of_f8f6f4(void **state) {
  static const char body[] =
      ".version 8.7\n.target sm_120a\n.address_size 64\n.visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n"
      ".reg .f32 %%d<4>; .reg .b32 %%a<4>;\n"
      "mma.sync.aligned.%s.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%%d0, %%d1, %%d2, %%d3}, %s, {%%d0, %%d1, %%d2, %%d3};"
      "\nret;\n}\n";
  char text[1024];
  snprintf(text, sizeof text, body, "m16n8k32", "{%a0, %a1, %a2, %a3}, {%a0, %a1}");
  kernel_test *t = open_ptx(text);
  run(t, "k", 1, 32, buffer(t, 256), 0);
  snprintf(text, sizeof text, body, "m16n8k16", "{%a0, %a1}, {%a0}");
  t = open_ptx(text);
  const exec_fault *fault = run_fault(t, "k", 1, 32, buffer(t, 256), 0);
  assert_int_equal(fault->kind, EXEC_FAULT_UNSUPPORTED);
  expect_text(fault->message, ".kind::f8f6f4 of m16n8k16");
  close_ptx(t);
}

static void test_endless(void **state) {
  kernel_test *t = open_body("", AT "LOOP: add.u32 %r5, %r5, 1; setp.ne.u32 %p1, %n, 9; @%p1 bra LOOP;");
  t->config.max_instructions = 3000000;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    t->config.threads = threads;
    const exec_fault *fault = run_fault(t, "k", 4, 64, buffer(t, 256), 0);
    assert_int_equal(fault->kind, EXEC_FAULT_TIMEOUT);
    expect_text(fault->message, "the limit is 3000000");
    assert_true(t->stats.warp_instructions < 12000000);
  }
  for (uint32_t threads = 1; threads <= 2; threads++) { /* short blocks, but too many */
    t->config.threads = threads;
    t->config.max_instructions = 5000;
    expect_text(run_fault(t, "k", 100000, 64, buffer(t, 256), 9)->message, "the limit is 5000");
    assert_true(t->stats.warp_instructions < 10000);
  }
  static bool cancel = true;
  t->config.cancel = &cancel;
  t->config.max_instructions = 0;
  expect_text(run_fault(t, "k", 1, 32, buffer(t, 256), 0)->message, "the kernel was stopped");
  close_ptx(t);
}

static void test_unsupported(void **state) {
  kernel_test *t = open_body(
      "", AT
      "setp.eq.u32 %p1, %n, 0; @%p1 bra E; tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd5], 0; E: st.global.u32 [%rd2], 1;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0); /* never reached */
  assert_int_equal(u32_at(out)[31], 1);
  const exec_fault *fault = run_fault(t, "k", 1, 32, out, 1);
  expect(fault, EXEC_FAULT_UNSUPPORTED, 0, 0, 0);
  expect_text(fault->message, "not supported");
  expect_text(fault->message, "tensormap");
  close_ptx(t);
}

/* In a module that is not linked with another. */
static void test_undefined_variables(void **state) {
  (void)state;
  static const char *const declared[] = {".extern .global .u32 far;", ".extern .const .u32 far;"};
  static const char *const uses[] = {"ld.%s.u32 %%r9, [far]; st.global.u32 [%%rd2], %%r9;",
                                     "mov.u64 %%rd5, far; st.global.u64 [%%rd2], %%rd5;"};
  for (int i = 0; i < 4; i++) {
    char use[200], body[600];
    snprintf(use, sizeof use, uses[i / 2], i % 2 ? "const" : "global");
    snprintf(body, sizeof body, "%s setp.eq.u32 %%p1, %%n, 0; @%%p1 bra E; %s E: st.global.u32 [%%rd2], 1;", AT, use);
    kernel_test *t = open_body(declared[i % 2], body);
    uint64_t out = buffer(t, 512);
    run(t, "k", 1, 32, out, 0); /* never reached */
    const exec_fault *fault = run_fault(t, "k", 1, 32, out, 1);
    expect(fault, EXEC_FAULT_UNSUPPORTED, 0, 0, 0);
    expect_text(fault->message, "far is declared but defined nowhere");
    close_ptx(t);
  }
}

/* Their addresses in 32 bits say nothing of where the others lie. */
static void test_undefined_beside_constants(void **state) {
  (void)state;
  kernel_test *t = open_body(
      ".extern .const .u32 far; .const .u32 near = 7;", AT
      "setp.eq.u32 %p1, %n, 0; @%p1 bra E; mov.b32 %r8, far; ld.const.u32 %r9, [%r8]; E: mov.b32 %r8, near; ld.const.u32 %r9, [%r8]; st.global.u32 [%rd2], %r9;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  assert_int_equal(u32_at(out)[31], 7);
  expect_text(run_fault(t, "k", 1, 32, out, 1)->message, "far is declared but defined nowhere");
  close_ptx(t);
}

#define PART_KERNEL                                                                                             \
  ".visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n.reg .b64 %out; .reg .b32 %r<4>; .reg .pred %p;\n" \
  "ld.param.u64 %out, [p_out]; ld.param.u32 %r1, [p_n]; setp.eq.u32 %p, %r1, 0;\n"

static ff_status open_part(kernel_test *t, const char *declared, ptx_module **module, exec_program **part) {
  ff_error error;
  char text[1200];
  snprintf(text, sizeof text,
           PTX_HEAD
           "%s\n%s@%%p bra E;\nld.global.u32 %%r2, [far]; st.global.u32 [%%out], %%r2;\nE: ld.global.u32 %%r2, [near]; "
           "st.global.u32 [%%out], %%r2;\nret;\n}\n",
           declared, PART_KERNEL);
  assert_int_equal(ptx_module_parse("part.ptx", text, strlen(text), module, &error), FF_OK);
  return exec_program_create_part(*module, t->program, part, &error);
}

/* A part of a module has the variables of the whole. One that neither defines is no one's, and what uses it says so;
 * one that only the part defines is a mistake. */
static void test_undefined_in_a_part(void **state) {
  (void)state;
  static const char *const whole[] = {".global .u32 near = 7;", ".extern .global .u32 far; .global .u32 near = 7;",
                                      ".global .u32 far = 9; .global .u32 near = 7;"};
  static const char *const near = ".global .u32 near;";
  for (int i = 0; i < 3; i++) {
    kernel_test *t = open_body(whole[i], "st.global.u32 [%out], %n;");
    char declared[100];
    ptx_module *module;
    exec_program *part, *own = t->program;
    snprintf(declared, sizeof declared, ".extern .global .u32 far; %s", near);
    assert_int_equal(open_part(t, declared, &module, &part), FF_OK);
    const uint64_t out = buffer(t, 128);
    t->program = part;
    run(t, "k", 1, 32, out, 0);
    assert_int_equal(u32_at(out)[0], 7); /* the whole's */
    if (i < 2) {
      expect_text(run_fault(t, "k", 1, 32, out, 1)->message, "far is declared but defined nowhere");
      uint64_t address, bytes;
      assert_int_equal(exec_program_variable(part, "far", &address, &bytes, NULL), FF_NOT_FOUND);
    } else {
      run(t, "k", 1, 32, out, 1);
    }
    t->program = own;
    exec_program_free(part);
    ptx_module_free(module);
    snprintf(declared, sizeof declared, ".global .u32 far; %s", near);
    assert_int_equal(open_part(t, declared, &module, &part), i < 2 ? FF_INVALID : FF_OK);
    if (i == 2) exec_program_free(part);
    ptx_module_free(module);
    close_ptx(t);
  }
}

static void test_wrong_call(void **state) {
  kernel_test *t = open_body(
      ".func f()\n{\n ret;\n}\n.global .align 8 .u64 table[1] = {f};\n", AT
      "ld.global.u64 %rd3, [table]; cvt.u64.u32 %rd4, %n; add.s64 %rd3, %rd3, %rd4; { proto: .callprototype _ (); call %rd3, proto; } st.global.u32 [%rd2], 1;");
  uint64_t out = buffer(t, 128);
  run(t, "k", 1, 32, out, 0);
  const exec_fault *fault = run_fault(t, "k", 1, 32, out, 8);
  expect(fault, EXEC_FAULT_INVALID_PC, 0, 0, fault->address);
  expect_text(fault->message, "where no function is");
  close_ptx(t);
}

/* Several blocks fault: the first in order is reported, with any number of workers; blocks before it are complete. */
static void test_first_block_wins(void **state) {
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0; W: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 200; @%p2 bra W; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %out, %rd1; st.global.u32 [%rd2], 7;"
      "setp.lt.u32 %p1, %r1, %n; @%p1 bra E; trap; E:");
  uint64_t out = buffer(t, 4000);
  for (uint32_t threads = 1; threads <= 4; threads++) {
    t->config.threads = threads;
    memset(u32_at(out), 0, 4000);
    expect(run_fault(t, "k", 1000, 32, out, 123), EXEC_FAULT_TRAP, 123, 0, 0);
    for (uint32_t i = 0; i <= 123; i++) assert_int_equal(u32_at(out)[i], 7);
    assert_int_equal(u32_at(out)[900], 0);
  }
  close_ptx(t);
}

static void test_impossible_launches(void **state) {
  kernel_test *t = open_body(".shared .align 4 .b8 sh[1000];", "mov.u32 %r5, sh;");
  ff_error error;
  t->config.max_shared = 1024;
  assert_int_equal(launch(t, "k", 0, 32, 0, 0, &error), FF_INVALID);
  assert_int_equal(launch(t, "k", 1, 1025, 0, 0, &error), FF_INVALID);
  expect_text(error.message, "1025 threads per block, 1024 are possible");
  t->shared = 25;
  assert_int_equal(launch(t, "k", 1, 32, 0, 0, &error), FF_INVALID);
  expect_text(error.message, "1025 bytes of shared memory per block, 1024 are possible");
  t->shared = 0;
  t->config.isa = "abacus";
  assert_int_equal(launch(t, "k", 1, 32, 0, 0, &error), FF_INVALID);
  t->config.isa = test_isa;
  assert_int_equal(launch(t, "nothing", 1, 32, 0, 0, &error), FF_NOT_FOUND);
  assert_int_equal(launch(t, "k", 1, 32, 0, 0, &error), FF_OK);
  close_ptx(t);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_of_allocation),
                                          cmocka_unit_test(test_whole_message),
                                          cmocka_unit_test(test_memory_of_the_host),
                                          cmocka_unit_test(test_overrun_in_page),
                                          cmocka_unit_test(test_overrun_by_gathers),
                                          cmocka_unit_test(test_overrun_by_atomics),
                                          cmocka_unit_test(test_overrun_of_variables),
                                          cmocka_unit_test(test_no_overrun),
                                          cmocka_unit_test(test_misaligned),
                                          cmocka_unit_test(test_on_chip_bounds),
                                          cmocka_unit_test(test_end_of_dynamic_shared),
                                          cmocka_unit_test(test_freed_and_constant),
                                          cmocka_unit_test(test_trap_and_spaces),
                                          cmocka_unit_test(test_assert),
                                          cmocka_unit_test(test_stack),
                                          cmocka_unit_test(test_barrier_never_met),
                                          cmocka_unit_test(test_broken_tensor_map),
                                          cmocka_unit_test(test_tensor_map_with_a_huge_box),
                                          cmocka_unit_test(test_shape_of_f8f6f4),
                                          cmocka_unit_test(test_endless),
                                          cmocka_unit_test(test_unsupported),
                                          cmocka_unit_test(test_undefined_variables),
                                          cmocka_unit_test(test_undefined_beside_constants),
                                          cmocka_unit_test(test_undefined_in_a_part),
                                          cmocka_unit_test(test_wrong_call),
                                          cmocka_unit_test(test_first_block_wins),
                                          cmocka_unit_test(test_impossible_launches)};
RUN_ON_EVERY_ISA(tests)
