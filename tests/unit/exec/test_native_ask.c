/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of one block that runs for long asks for compiled code meanwhile, and its warps go on in what comes. */
#include "core_harness.h"

#include "exec/launch/native.h"

static uint32_t asked, entered;

/* Code that leaves everything to the interpreter. */
static uint32_t declines(core_warp *w, uint32_t at, const exec_native_api *api) {
  entered++;
  return EXEC_NATIVE_DECLINE;
}
static const exec_native_code code[1] = {{.full = declines}};

static const exec_native_code *begins(core_launch *launch, const exec_code *decoded, void **job) {
  *job = &asked;
  return NULL;
}
static const exec_native_code *is_there(core_launch *launch, void *job) { return ++asked < 3 ? NULL : code; }
static void ends(core_launch *launch, void *job) {}
static void wishes(core_launch *launch) {}
static const exec_native_provider provider = {begins, is_there, ends, wishes};

static void expect_code(const char *body, uint32_t rounds) {
  kernel_test *t = open_body("", body);
  uint64_t out = buffer(t, 4 * 64);
  exec_native_use(&provider);
  for (uint32_t threads = 1; threads <= 2; threads++) {
    t->config.threads = threads;
    asked = entered = 0;
    memset(u32_at(out), 0, 4 * 64);
    run(t, "k", 1, 64, out, rounds);
    assert_int_equal(asked, 3); /* once as the block began, and not again when the code was there */
    assert_true(entered > 0);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(u32_at(out)[i], rounds + i);
  }
  exec_native_use(NULL);
  close_ptx(t);
}

#define BEGIN "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %out, %rd1; mov.u32 %r2, 0; L: "
#define END \
  "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %n; @%p1 bra L; add.u32 %r2, %r2, %r1; st.global.u32 [%rd2], %r2;"

static void test_long_turns(void **state) { expect_code(BEGIN END, 900000); }
static void test_barriers(void **state) { expect_code(BEGIN "bar.sync 0; " END, 60000); }

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_turns), cmocka_unit_test(test_barriers)};
RUN_ON_EVERY_ISA(tests)
