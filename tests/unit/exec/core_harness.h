/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of kernels as PTX text: a memory, one program, launches with plain parameters.
 *
 *   kernel_test t = open_ptx("...");            or open_body(".reg ...;", "code") for a kernel k(.u64 out, .u32 n)
 *   uint64_t out = buffer(&t, 4096);
 *   run(&t, "k", 1, 32, out, 7);                expects success
 *   run_fault(&t, "k", 1, 32, out, 7);          expects a fault and returns it
 *   close_ptx(&t); */
#ifndef FF_TESTS_CORE_HARNESS_H
#define FF_TESTS_CORE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "../share.h"
#ifdef FF_TEST_COMPILED
#include "compile/compile.h"
#endif
#include "exec/exec.h"

/* Every group of tests runs once per instruction set of this processor; open_ptx uses the one that is on. */
static const char *test_isa;

/* The same tests are built a second time to run compiled kernels (tests/CMakeLists.txt). */
static inline bool is_tested(const char *isa) {
#ifdef FF_TEST_COMPILED
  ff_error error;
  if (!strcmp(isa, "baseline")) return false; /* of which there is no compiled code */
  if (compile_use(COMPILE_ALWAYS, &error) != FF_OK) {
    printf("%s\n", error.message);
    exit(1);
  }
#endif
  return isa != NULL;
}

/* How many tests failed because nothing, or not everything, was compiled. */
static inline int not_compiled(void) {
#ifdef FF_TEST_COMPILED
  compile_stats stats;
  compile_get_stats(&stats);
  if (!(stats.compiled + stats.loaded) || stats.failed)
    return printf("%llu kernels compiled, %llu failed\n", (unsigned long long)(stats.compiled + stats.loaded),
                  (unsigned long long)stats.failed),
           1;
#endif
  return 0;
}

#define RUN_ON_EVERY_ISA(tests)                               \
  int main(void) {                                            \
    int failed = 0;                                           \
    for (const char *const *isa = exec_isas(); *isa; isa++) { \
      if (!is_tested(*isa)) continue;                         \
      printf("instruction set %s\n", test_isa = *isa);        \
      failed += cmocka_run_group_tests(tests, NULL, NULL);    \
    }                                                         \
    return failed + not_compiled() != 0;                      \
  }

#define PTX_HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

typedef struct kernel_test {
  exec_memory *memory;
  ptx_module *module;
  exec_program *program;
  exec_config config;
  exec_stats stats;
  exec_fault fault;
  trace_launch *trace;
  uint32_t shared;
  const ff_virtual_use *uses; /* NULL: nothing is declared */
  uint32_t use_count;
  bool cooperative;
  char printed[65536];
  size_t printed_length;
} kernel_test;

static inline void keep_printed(void *context, const char *text, size_t length) {
  kernel_test *t = context;
  assert_true(t->printed_length + length < sizeof t->printed);
  memcpy(t->printed + t->printed_length, text, length);
  t->printed_length += length;
  t->printed[t->printed_length] = 0;
}

static kernel_test *open_test; /* a test that failed has left it open */

static inline void close_ptx(kernel_test *t) {
  exec_program_free(t->program);
  ptx_module_free(t->module);
  exec_memory_free(t->memory);
  free(t);
  open_test = NULL;
}

static inline kernel_test *open_ptx(const char *text) {
  ff_error error = {0};
  if (open_test) close_ptx(open_test);
  kernel_test *t = open_test = calloc(1, sizeof *t);
  if (exec_memory_create(&t->memory, &error) != FF_OK) fail_msg("%s", error.message);
  if (ptx_module_parse("test.ptx", text, strlen(text), &t->module, &error) != FF_OK) fail_msg("%s", error.message);
  if (exec_program_create(t->module, t->memory, &t->program, &error) != FF_OK) fail_msg("%s", error.message);
  t->config = (exec_config){
      .memory = t->memory, .threads = 1, .sm_count = 4, .isa = test_isa, .print = keep_printed, .print_context = t};
  return t;
}

/* Everything between the braces of `.visible .entry k(.param .u64 out, .param .u32 n)`; %out holds the pointer, %n
 * n. */
static inline kernel_test *open_body(const char *functions, const char *body) {
  size_t size = strlen(functions) + strlen(body) + 2048;
  char *text = malloc(size);
  snprintf(
      text, size,
      PTX_HEAD
      "%s\n.visible .entry k(.param .u64 p_out, .param .u32 p_n)\n{\n"
      ".reg .b64 %%out; .reg .b32 %%n; .reg .pred %%p<20>; .reg .b32 %%r<60>; .reg .b64 %%rd<40>; .reg .f32 %%f<20>;\n"
      ".reg .b16 %%rs<20>; .reg .f64 %%fd<10>;\n"
      "ld.param.u64 %%out, [p_out]; ld.param.u32 %%n, [p_n];\n%s\nret;\n}\n",
      functions, body);
  kernel_test *t = open_ptx(text);
  free(text);
  return t;
}

static inline uint64_t buffer(kernel_test *t, uint64_t bytes) {
  const exec_allocation *allocation;
  char name[64];
  snprintf(name, sizeof name, "buffer of %llu", (unsigned long long)bytes);
  assert_int_equal(exec_memory_allocate(t->memory, bytes, 0, EXEC_MEMORY_DEVICE, name, &allocation, NULL), FF_OK);
  return allocation->address;
}

static inline uint32_t *u32_at(uint64_t address) { return (uint32_t *)(uintptr_t)address; }
static inline uint64_t *u64_at(uint64_t address) { return (uint64_t *)(uintptr_t)address; }
static inline float *f32_at(uint64_t address) { return (float *)(uintptr_t)address; }

/* Parameters as bytes. */
static inline ff_status launch_with(kernel_test *t, const char *name, const uint32_t grid[3], const uint32_t block[3],
                                    const void *params, ff_error *error) {
  exec_kernel *kernel;
  ff_status status = exec_program_kernel(t->program, name, &kernel, error);
  if (status != FF_OK) return status;
  exec_launch_request request = {.kernel = kernel,
                                 .grid = {grid[0], grid[1], grid[2]},
                                 .block = {block[0], block[1], block[2]},
                                 .dynamic_shared = t->shared,
                                 .params = params,
                                 .trace = t->trace,
                                 .cooperative = t->cooperative,
                                 .uses = t->uses,
                                 .use_count = t->use_count};
  memset(&t->stats, 0, sizeof t->stats);
  return exec_launch(&t->config, &request, &t->stats, &t->fault, error);
}

static inline ff_status launch(kernel_test *t, const char *name, uint32_t blocks, uint32_t threads, uint64_t out,
                               uint32_t n, ff_error *error) {
  struct {
    uint64_t out;
    uint32_t n;
  } params = {out, n};
  return launch_with(t, name, (uint32_t[3]){blocks, 1, 1}, (uint32_t[3]){threads, 1, 1}, &params, error);
}

static inline void run(kernel_test *t, const char *name, uint32_t blocks, uint32_t threads, uint64_t out, uint32_t n) {
  ff_error error = {0};
  if (launch(t, name, blocks, threads, out, n, &error) != FF_OK) fail_msg("%s", error.message);
}

static inline const exec_fault *run_fault(kernel_test *t, const char *name, uint32_t blocks, uint32_t threads,
                                          uint64_t out, uint32_t n) {
  ff_error error = {0};
  ff_status status = launch(t, name, blocks, threads, out, n, &error);
  if (status != FF_FAULT) fail_msg("a fault was expected, status %d: %s", status, error.message);
  assert_string_equal(error.message, t->fault.message);
  return &t->fault;
}

static inline void expect_text(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("\"%s\" is missing in:\n%s", part, text);
}

#endif
