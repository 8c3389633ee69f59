/* SPDX-License-Identifier: Apache-2.0 */
/* A check around exec alone, on every instruction set: what is masked, what goes on, and that results are those of an
 * unchecked launch. */
#include "unit/exec/core_harness.h"

#include <unistd.h>

#include "check/launch_check.h"

static check *open_with(kernel_test *t, check_tool tool, uint32_t initcheck, char *log) {
  check_options options;
  check *made;
  check_options_default(tool, &options);
  options.backtrace = 0;
  options.initcheck = initcheck;
  strcpy(log, "/tmp/test_check_XXXXXX");
  close(mkstemp(log));
  strcpy(options.log, log);
  assert_int_equal(check_create(&options, t->memory, NULL, &made, NULL), FF_OK);
  return made;
}

static check *open_check(kernel_test *t, check_tool tool, char *log) {
  return open_with(t, tool, CHECK_INIT_GLOBAL, log);
}

/* A buffer that the check knows as the program's own. */
static uint64_t known_buffer(kernel_test *t, check *c, uint64_t bytes) {
  uint64_t address = buffer(t, bytes);
  trace_op op = {.kind = TRACE_OP_ALLOC};
  op.alloc.address = address;
  op.alloc.bytes = bytes;
  op.alloc.id = exec_memory_find(t->memory, address)->id;
  strcpy(op.alloc.name, "buffer");
  check_operation(c, &op);
  return address;
}

static void launch_checked(kernel_test *t, check *c, uint32_t block, uint64_t out, uint32_t n) {
  struct {
    uint64_t out;
    uint32_t n;
  } params = {out, n};
  exec_kernel *kernel;
  assert_int_equal(exec_program_kernel(t->program, "k", &kernel, NULL), FF_OK);
  exec_launch_request request = {.kernel = kernel, .grid = {1, 1, 1}, .block = {block, 1, 1}, .params = &params};
  check_launch(c, "k");
  assert_int_equal(exec_launch_checked(&t->config, &request, check_hooks(c), &t->stats, &t->fault, NULL), FF_OK);
}

static void expect_in_log(const char *log, const char *text, bool there) {
  char *data;
  size_t size;
  assert_int_equal(ff_file_read(log, 0, &data, &size, NULL), FF_OK);
  if ((strstr(data, text) != NULL) != there) fail_msg("'%s' is %s in:\n%s", text, there ? "not" : "", data);
  free(data);
}

static void close_check(kernel_test *t, check *c, const char *log) {
  unlink(log);
  check_free(c);
  close_ptx(t);
}

/* Every second lane reads and writes behind the end; the others are served, of each form of access. */
static void bad_lanes_are_masked(void **state) {
  static const char *const forms[] = {"ld.global.u32 %r5, [%rd2];",           "ld.global.u8 %r5, [%rd2];",
                                      "ld.global.v2.u32 {%r5, %r6}, [%rd2];", "ld.u32 %r5, [%rd2];",
                                      "atom.global.add.u32 %r5, [%rd2], 0;",  "ld.volatile.global.u32 %r5, [%rd2];",
                                      "@%p1 ld.global.u32 %r5, [%rd2];"};
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    char body[1024], log[64];
    snprintf(
        body, sizeof body,
        "mov.u32 %%r1, %%tid.x; and.b32 %%r2, %%r1, 1; mul.lo.u32 %%r3, %%r2, 1048576; mad.lo.u32 %%r3, %%r1, 8, %%r3; cvt.u64.u32 %%rd1, %%r3;\n"
        "add.u64 %%rd2, %%out, %%rd1; mov.u32 %%r5, 77; setp.eq.u32 %%p1, %%r1, %%r1;\n%s\n"
        "mul.wide.u32 %%rd3, %%r1, 4; add.u64 %%rd4, %%out, %%rd3; st.global.u32 [%%rd4+1024], %%r5; st.global.u32 [%%rd2], %%r1;",
        forms[f]);
    kernel_test *t = open_body("", body);
    check *c = open_check(t, CHECK_MEMCHECK, log);
    uint64_t out = buffer(t, 4096);
    for (uint32_t n = 0; n < 64; n++) u32_at(out)[n] = 5;
    launch_checked(t, c, 32, out, 0);
    for (uint32_t n = 0; n < 32; n++) assert_int_equal(u32_at(out)[256 + n], n & 1 ? 0 : 5);
    for (uint32_t n = 0; n < 32; n += 2) assert_int_equal(u32_at(out)[2 * n], n);
    check_finish(c, true);
    expect_in_log(log, "ERROR SUMMARY: 2 errors", true);
    expect_in_log(log, "and 15 more of the same", true);
    close_check(t, c, log);
  }
}

static void values_come_from_somewhere(void **state) {
  char log[64];
  kernel_test *t = open_body(
      "",
      "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %out, %rd1;\n"
      "setp.lt.u32 %p1, %r1, %n; @%p1 st.global.u32 [%rd2], %r1; ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd2+128], %r2;");
  check *c = open_check(t, CHECK_MEMCHECK, log);
  uint64_t out = known_buffer(t, c, 256);
  launch_checked(t, c, 32, out, 32);
  check_finish(c, false);
  expect_in_log(log, "Uninitialized", false);
  uint64_t other = known_buffer(t, c, 256);
  launch_checked(t, c, 32, other, 30);
  check_finish(c, true);
  expect_in_log(log, "Uninitialized __global__ read of size 4 bytes", true);
  expect_in_log(log, "by thread (30,0,0)", true);
  expect_in_log(log, "and 1 more of the same", true);
  close_check(t, c, log);
}

/* Local and shared memory with --initcheck all: what is read of it, 32 threads at once, and what is said of that. */
typedef struct unwritten_case {
  const char *body, *said;
} unwritten_case; /* said: NULL: nothing */

#define OUT "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %out, %rd1; st.global.u32 [%rd2], %r5;\n"
#define LOCAL                                                                                                                       \
  ".local .align 16 .b8 l[64]; .shared .align 16 .b8 s[2048]; mov.u32 %r1, %tid.x; mov.u32 %r7, s; mad.lo.u32 %r6, %r1, 16, %r7;\n" \
  "mov.u64 %rd10, l; cvta.local.u64 %rd11, %rd10; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n"
#define CALL "{ .param .b32 q; st.param.b32 [q], %r9; .param .b32 r; call (r), f, (q); ld.param.b32 %r5, [r]; }\n"

static const unwritten_case unwritten_cases[] = {
    {LOCAL "st.local.u32 [l+4], %r1; ld.local.u32 %r5, [l+4];" OUT, NULL},
    {LOCAL "st.local.u32 [l+4], %r1; ld.local.u32 %r5, [l+8];" OUT, "and 31 more of the same"},
    {LOCAL "st.local.u8 [l+10], %r1; ld.local.u32 %r5, [l+8];" OUT, NULL}, /* a part was written: as of global memory */
    {LOCAL "st.local.u8 [l+10], %r1; ld.local.u16 %r5, [l+8];" OUT, "Uninitialized __local__ read of size 2 bytes"},
    /* %r4 is not used */
    {LOCAL "st.local.v2.u32 [l+16], {%r1, %r1}; ld.local.v4.u32 {%r2, %r3, %r4, %r5}, [l+16];" OUT,
     "Access at 0x1c reads what nothing has written"},
    /* %rd4: no instruction reads it */
    {LOCAL "st.local.v2.u32 [l+16], {%r1, %r1}; ld.local.v2.u64 {%rd3, %rd4}, [l+16]; cvt.u32.u64 %r5, %rd3;" OUT,
     NULL},
    {LOCAL "st.local.v4.u32 [l+16], {%r1, %r1, %r1, %r1}; ld.local.v4.u32 {%r2, %r3, %r4, %r5}, [l+16];" OUT, NULL},
    /* every thread has its own */
    {LOCAL "@%p1 st.local.u32 [l], %r1; ld.local.u32 %r5, [l];" OUT, "and 15 more of the same"},
    {LOCAL "st.u64 [%rd11+8], %rd10; ld.local.u32 %r5, [l+12];" OUT, NULL},
    {LOCAL "st.local.u32 [l], %r1; ld.u32 %r5, [%rd11+4];" OUT, "Uninitialized __local__ read of size 4 bytes"},
    /* what is only copied is not reported, what is looked at is */
    {LOCAL "st.local.u32 [l], %r1; ld.local.v2.u32 {%r5, %r8}, [l]; st.local.v2.u32 [l+32], {%r5, %r8};" OUT, NULL},
    {LOCAL
     "st.local.u32 [l], %r1; ld.local.v2.u32 {%r5, %r8}, [l]; st.local.v2.u32 [l+32], {%r5, %r8}; add.u32 %r5, %r5, %r8;" OUT,
     "Access at 0x4 reads"},
    {LOCAL "ld.local.u32 %r5, [l]; st.local.u32 [l+32], %r5; st.local.u32 [l], %r5;" OUT, "Uninitialized __local__"},
    /* an address */
    {LOCAL "ld.local.u64 %rd3, [l]; mov.u32 %r5, 0; st.local.u64 [%rd3], %rd3;" OUT,
     "Uninitialized __local__ read of size 8 bytes"},
    {LOCAL
     "st.local.u32 [l], %r1; ld.local.v2.u32 {%r4, %r8}, [l]; st.local.v2.u32 [l+32], {%r4, %r8}; ld.local.u32 %r5, [l+32];" OUT,
     NULL},
    {LOCAL
     "st.local.u32 [l], %r1; ld.local.v2.u32 {%r4, %r8}, [l]; st.local.v2.u32 [l+32], {%r4, %r8}; ld.local.u32 %r5, [l+36];" OUT,
     "Access at 0x24 reads"},
    {LOCAL
     "mov.u32 %r3, 0; AGAIN: setp.eq.u32 %p2, %r3, 1; @%p2 st.local.u32 [l], %r1; ld.local.u32 %r8, [l]; st.local.u32 [l+32], %r8;\n"
     /* the second time it has a value */
     "add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 2; @%p3 bra AGAIN; ld.local.u32 %r5, [l+32];" OUT,
     NULL},
    {LOCAL "@%p1 st.local.u32 [l], %r1; ld.local.u32 %r8, [l]; st.local.u32 [l+32], %r8; ld.local.u32 %r5, [l+32];" OUT,
     "and 15 more of the same"},
    {LOCAL "ld.local.u32 %r9, [l];" CALL OUT, "Uninitialized __local__"},    /* a value */
    {LOCAL "ld.local.u32 %r8, [l]; selp.b32 %r5, %r1, %r8, %p1;" OUT, NULL}, /* loaded ahead of the condition */
    {LOCAL "ld.local.u32 %r8, [l]; selp.b32 %r5, %r8, %r1, %p1; add.u32 %r5, %r5, %r8;" OUT, "Uninitialized __local__"},
    {LOCAL
     "st.local.u32 [l], %r1; ld.local.v2.u32 {%r4, %r8}, [l]; { .param .align 4 .b8 q[8]; st.param.v2.b32 [q], {%r4, %r8}; call g, (q); } mov.u32 %r5, 0;" OUT,
     NULL},
    {LOCAL "mov.u32 %r9, 1;" CALL OUT, NULL},
    /* the call before wrote there */
    {LOCAL "mov.u32 %r9, 1;" CALL "mov.u32 %r9, 2;" CALL OUT, "and 31 more of the same"},
    {LOCAL "mov.u32 %r9, 3;" CALL OUT, NULL}, /* a parameter that stands in local memory */
    /* shared memory */
    {LOCAL
     "st.shared.u32 [%r6], %r1; bar.sync 0; xor.b32 %r4, %r1, 31; mad.lo.u32 %r4, %r4, 16, %r7; ld.shared.u32 %r5, [%r4];" OUT,
     NULL},
    {LOCAL "st.shared.u32 [%r6+4], %r1; bar.sync 0; ld.shared.u32 %r5, [%r6];" OUT,
     "and shared memory has no values when its block begins"},
    {LOCAL "@%p1 cp.async.ca.shared.global [%r6], [%out], 16; cp.async.wait_all; ld.shared.u32 %r5, [%r6+12];" OUT,
     "and 15 more of the same"},
    /* zeros */
    {LOCAL "cp.async.ca.shared.global [%r6], [%out], 16, 0; cp.async.wait_all; ld.shared.u32 %r5, [%r6+12];" OUT, NULL},
    {LOCAL "st.shared.u32 [%r6+4], %r1; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];" OUT,
     "Uninitialized __shared__ read of size 4 bytes"},
    {LOCAL
     "st.shared.v4.u32 [%r6], {%r1, %r1, %r1, %r1}; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];" OUT,
     NULL},
    {LOCAL "atom.shared.add.u32 %r5, [s], 1;" OUT, "Uninitialized __shared__ atomic of size 4 bytes"},
    /* generic addresses, truncated */
    {LOCAL
     "cvt.u64.u32 %rd3, %r6; cvta.shared.u64 %rd3, %rd3; st.shared.u32 [%rd3], %r1; bar.sync 0; ld.shared.u32 %r5, [%rd3];" OUT,
     NULL},
    {LOCAL "cvt.u64.u32 %rd3, %r6; cvta.shared.u64 %rd3, %rd3; cp.async.ca.shared.global [%rd3], [%out], 16;\n"
           "cp.async.wait_all; ld.shared.u32 %r5, [%r6+12];" OUT,
     NULL},
};

/* f(1) writes a local variable, f(2) reads it, f(3) reads its parameter by an address. */
static const char unwritten_function[] =
    ".func (.param .b32 r) f (.param .b32 q)\n{\n.reg .b32 %a<8>; .reg .b64 %b<4>; .reg .pred %p<4>; .local .align 4 .b8 v[16];\n"
    "ld.param.b32 %a1, [q]; mov.u32 %a2, 0; setp.ne.u32 %p1, %a1, 1; @%p1 bra NEXT; st.local.u32 [v+4], %a1;\n"
    "NEXT: setp.ne.u32 %p2, %a1, 2; @%p2 bra LAST; ld.local.u32 %a2, [v+4];\n"
    "LAST: setp.ne.u32 %p3, %a1, 3; @%p3 bra DONE; mov.b64 %b1, q; ld.param.b32 %a2, [%b1];\nDONE: st.param.b32 [r], %a2; ret;\n}\n"
    ".func g (.param .align 4 .b8 q[8])\n{\n.reg .b32 %a<8>;\nld.param.b32 %a1, [q]; ret;\n}\n";

static void blocks_memory_has_no_values(void **state) {
  for (size_t n = 0; n < sizeof unwritten_cases / sizeof *unwritten_cases; n++) {
    char log[64];
    kernel_test *t = open_body(unwritten_function, unwritten_cases[n].body);
    check *c = open_with(t, CHECK_MEMCHECK, CHECK_INIT_ALL, log);
    launch_checked(t, c, 32, buffer(t, 256), 0);
    launch_checked(t, c, 32, buffer(t, 256), 0); /* what one launch wrote, the next one does not have */
    check_finish(c, true);
    if (unwritten_cases[n].said) expect_in_log(log, unwritten_cases[n].said, true);
    else expect_in_log(log, "ninitialized", false);
    close_check(t, c, log);
    t = open_body(unwritten_function, unwritten_cases[n].body); /* neither is looked at if not asked for */
    c = open_check(t, CHECK_MEMCHECK, log);
    launch_checked(t, c, 32, buffer(t, 256), 0);
    expect_in_log(log, "ninitialized", false);
    close_check(t, c, log);
  }
}

static void races_are_found(void **state) {
  char log[64];
  kernel_test *t = open_body(
      "",
      ".shared .align 4 .b8 s[512];\nmov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;\n"
      "setp.eq.u32 %p1, %n, 0; @%p1 bra SKIP; bar.sync 0; SKIP:\n"
      "xor.b32 %r4, %r1, 32; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r5, [%r4];\n"
      "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %out, %rd1; st.global.u32 [%rd2], %r5;");
  check *c = open_check(t, CHECK_RACECHECK, log);
  uint64_t out = buffer(t, 256);
  launch_checked(t, c, 64, out, 1);
  for (uint32_t n = 0; n < 64; n++) assert_int_equal(u32_at(out)[n], n ^ 32);
  expect_in_log(log, "Race", false);
  launch_checked(t, c, 64, out, 0);
  expect_in_log(log, "Error: Race reported between Write access at k", true);
  expect_in_log(log, "of __shared__ memory", true);
  close_check(t, c, log);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_lanes_are_masked), cmocka_unit_test(values_come_from_somewhere),
    cmocka_unit_test(blocks_memory_has_no_values), cmocka_unit_test(races_are_found)};
RUN_ON_EVERY_ISA(tests)
