/* SPDX-License-Identifier: Apache-2.0 */
/* A check around exec alone, on every instruction set: what is masked, what goes on, and that results are those of an unchecked launch. */
#include "unit/exec/core_harness.h"

#include <unistd.h>

#include "check/check.h"

static check *open_check(kernel_test *t, check_tool tool, char *log) {
  check_options options;
  check *made;
  check_options_default(tool, &options);
  options.backtrace = 0;
  strcpy(log, "/tmp/test_check_XXXXXX");
  close(mkstemp(log));
  strcpy(options.log, log);
  assert_int_equal(check_create(&options, t->memory, NULL, &made, NULL), FF_OK);
  return made;
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
  struct { uint64_t out; uint32_t n; } params = {out, n};
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
  static const char *const forms[] = {
      "ld.global.u32 %r5, [%rd2];", "ld.global.u8 %r5, [%rd2];", "ld.global.v2.u32 {%r5, %r6}, [%rd2];", "ld.u32 %r5, [%rd2];",
      "atom.global.add.u32 %r5, [%rd2], 0;", "ld.volatile.global.u32 %r5, [%rd2];", "@%p1 ld.global.u32 %r5, [%rd2];"};
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    char body[1024], log[64];
    snprintf(body, sizeof body,
             "mov.u32 %%r1, %%tid.x; and.b32 %%r2, %%r1, 1; mul.lo.u32 %%r3, %%r2, 1048576; mad.lo.u32 %%r3, %%r1, 8, %%r3; cvt.u64.u32 %%rd1, %%r3;\n"
             "add.u64 %%rd2, %%out, %%rd1; mov.u32 %%r5, 77; setp.eq.u32 %%p1, %%r1, %%r1;\n%s\n"
             "mul.wide.u32 %%rd3, %%r1, 4; add.u64 %%rd4, %%out, %%rd3; st.global.u32 [%%rd4+1024], %%r5; st.global.u32 [%%rd2], %%r1;", forms[f]);
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
  kernel_test *t = open_body("", "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %out, %rd1;\n"
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

static void races_are_found(void **state) {
  char log[64];
  kernel_test *t = open_body("", ".shared .align 4 .b8 s[512];\nmov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;\n"
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

static const struct CMUnitTest tests[] = {cmocka_unit_test(bad_lanes_are_masked), cmocka_unit_test(values_come_from_somewhere), cmocka_unit_test(races_are_found)};
RUN_ON_EVERY_ISA(tests)
