/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch declares in the access stream: allocations that its parameters point into, and variables that its code
 * names. */
#define _GNU_SOURCE
#include "driver/engine/engine_internal.h"
#include "program.h"

static const char code[] = PTX_HEAD
    ".visible .global .align 4 .u32 named = 7;\n"
    ".visible .global .align 4 .u32 through = 7;\n"
    ".visible .global .align 4 .u32 unnamed = 7;\n"
    ".func callee()\n{\n.reg .b32 %r<2>;\nld.global.u32 %r1, [through];\nret;\n}\n"
    ".visible .entry plain(.param .u64 p, .param .u32 n, .param .u64 q)\n{\nret;\n}\n"
    ".visible .entry inside(.param .align 8 .b8 s[32])\n{\nret;\n}\n"
    ".visible .entry variables(.param .u64 p)\n{\n.reg .b32 %r<2>;\nld.global.u32 %r1, [named];\ncall callee, ();\nret;\n}\n";
STUB(plain);
STUB(inside);
STUB(variables);
static trace_reader *reader;
static char *device, *managed, *pinned;

static int set_up(void **state) {
  (void)state;
  setenv("FARFAULT_MEMORY", "ideal", 0);
  const char *texts[] = {code};
  void **handle = register_ptx(texts, 1);
  register_kernel(handle, plain, "plain");
  register_kernel(handle, inside, "inside");
  register_kernel(handle, variables, "variables");
  succeed(cudaFree(NULL));
  reader = trace_reader_create(ff_engine.trace);
  assert_non_null(reader);
  succeed(cudaMalloc((void **)&device, 10000));
  succeed(cudaMallocManaged((void **)&managed, 10000, cudaMemAttachGlobal));
  succeed(cudaHostAlloc((void **)&pinned, 10000, 0));
  return 0;
}

/* The last launch's uses; what it points to lives as long as the launch. */
static trace_launch last_launch(void) {
  trace_launch last = {.kernel = ""};
  while (trace_reader_has_op(reader)) {
    const trace_op *op = trace_reader_next_op(reader);
    if (op->kind != TRACE_OP_LAUNCH) continue;
    last = *op->launch;
    trace_reader_skip(reader, op->launch);
  }
  return last;
}

static void assert_use(const trace_launch *l, uint32_t i, const void *address, uint64_t bytes) {
  assert_int_equal(l->uses[i].address, (uint64_t)(uintptr_t)address);
  assert_int_equal(l->uses[i].bytes, bytes);
}

static void pointers_are_declared(void **state) {
  (void)state;
  void *p = device + 5000, *q = managed;
  unsigned n = 3;
  succeed(launch(plain, 1, 1, (void *[]){&p, &n, &q}));
  trace_launch l = last_launch();
  assert_int_equal(l.use_count, 2);
  assert_use(&l, 0, device, 10000);
  assert_use(&l, 1, managed, 10000);
  p = q = device + 9999; /* once */
  succeed(launch(plain, 1, 1, (void *[]){&p, &n, &q}));
  l = last_launch();
  assert_int_equal(l.use_count, 1);
  p = pinned, q = NULL; /* neither moves */
  succeed(launch(plain, 1, 1, (void *[]){&p, &n, &q}));
  l = last_launch();
  assert_int_equal(l.use_count, 0);
}

static void pointers_in_structures_are_declared(void **state) {
  (void)state;
  struct {
    uint64_t number;
    void *p;
    uint32_t a, b;
    void *q;
  } s = {17, managed + 1, 1, 2, device};
  succeed(launch(inside, 1, 1, (void *[]){&s}));
  trace_launch l = last_launch();
  assert_int_equal(l.use_count, 2);
  assert_use(&l, 0, managed, 10000);
  assert_use(&l, 1, device, 10000);
}

/* Those that the kernel names, and the functions it calls; not the others of the module. */
static void variables_are_declared(void **state) {
  (void)state;
  void *p = NULL;
  succeed(launch(variables, 1, 1, (void *[]){&p}));
  trace_launch l = last_launch();
  assert_int_equal(l.use_count, 2);
  assert_int_equal(l.uses[0].bytes, 4);
  assert_int_equal(l.uses[1].bytes, 4);
  assert_true(l.uses[0].address != l.uses[1].address);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointers_are_declared),
      cmocka_unit_test(pointers_in_structures_are_declared),
      cmocka_unit_test(variables_are_declared),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
