/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that leave their uses (R3), on the virtual GPU, which checks them itself, and with FF_CHECK=1, where kernels
 * do: both say the same. Every case runs in a process of its own, because the first way ends the context. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "farfault/farfault.h"

enum { MIB = 1 << 20, BLOCK = 256, WORDS = 4096 };

/* copy: y[i] = x[i + shift] for i < n */
static const char code[] =
    ".version 6.3\n.target sm_50\n.address_size 64\n"
    ".visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n, .param .s32 shift)\n{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n]; ld.param.s32 %r6, [shift];\n"
    "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "  setp.ge.u32 %p1, %r5, %r1; @%p1 bra END;\n"
    "  add.s32 %r7, %r5, %r6; mul.wide.s32 %rd3, %r7, 4; add.s64 %rd4, %rd1, %rd3; mul.wide.u32 %rd6, %r5, 4; add.s64 %rd5, %rd2, %rd6;\n"
    "  ld.global.u32 %r8, [%rd4]; st.global.u32 [%rd5], %r8;\n"
    "END: ret;\n}\n";
/* heap: y = 7 + 1, by way of what malloc gives and a variable, both through generic addresses */
static const char heap_code[] =
    ".version 6.3\n.target sm_50\n.address_size 64\n.visible .global .u32 hits;\n.extern .func (.param .b64 r) malloc (.param .b64 n);\n"
    ".visible .entry heap(.param .u64 y)\n{\n  .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
    "  {.param .b64 a; .param .b64 r; st.param.b64 [a], 64; call (r), malloc, (a); ld.param.b64 %rd1, [r];}\n"
    "  mov.u64 %rd2, hits; atom.add.u32 %r1, [%rd2], 1;\n"
    "  st.u32 [%rd1], 7; ld.u32 %r1, [%rd1]; ld.global.u32 %r2, [hits]; add.u32 %r1, %r1, %r2; ld.param.u64 %rd2, [y]; st.global.u32 [%rd2], %r1;\n  ret;\n}\n";

typedef struct fixture {
  ff_gpu *gpu;
  ff_module *module, *other;
  ff_kernel *copy, *heap;
  ff_segment *x, *y;
} fixture;

#define OK(call) must(call, __LINE__)
static void must(ff_result result, int line) { /* in the child */
  if (result) {
    fprintf(stderr, "line %d: %s: %s\n", line, ff_result_name(result), ff_message());
    _exit(9);
  }
}
#define HOLDS(condition) hold(condition, __LINE__)
static void hold(bool condition, int line) {
  if (!condition) {
    fprintf(stderr, "line %d: it does not hold; %s\n", line, ff_message());
    _exit(9);
  }
}

static fixture start(bool check, uint32_t words, uint64_t budget) {
  fixture f;
  void *host;
  ff_options o = {.size = sizeof o, .driver = "virtual", .budget = budget, .check = check};
  OK(ff_open(&o, &f.gpu));
  OK(ff_module_load(f.gpu, "test.ptx", code, 0, &f.module));
  OK(ff_kernel_find(f.module, "copy", &f.copy));
  OK(ff_module_load(f.gpu, "heap.ptx", heap_code, 0, &f.other));
  OK(ff_kernel_find(f.other, "heap", &f.heap));
  OK(ff_segment_create(f.gpu, "x", words * 4ull, &f.x));
  OK(ff_segment_create(f.gpu, "y", words * 4ull, &f.y));
  OK(ff_segment_map(f.x, FF_WRITE, 0, 0, &host));
  for (uint32_t i = 0; i < words; i++) ((uint32_t *)host)[i] = i * 3;
  OK(ff_segment_unmap(f.x, host));
  return f;
}

static ff_result copy(const fixture *f, uint32_t words, int32_t shift, ff_access y, bool per_block) {
  ff_argument arguments[] = {FF_ADDRESS(f->x), FF_ADDRESS(f->y), FF_VALUE(words), FF_VALUE(shift)};
  ff_use uses[] = {{f->x, FF_READ, 0, words * 4ull, {0}, 0}, {f->y, y, 0, words * 4ull, {0}, 0}};
  for (int i = 0; i < 2 && per_block; i++) uses[i].per_block[0] = uses[i].block_bytes = BLOCK * 4;
  ff_launch_request r = {.kernel = f->copy,
                         .grid = {(words + BLOCK - 1) / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 4,
                         .uses = uses,
                         .use_count = 2};
  ff_ticket ticket;
  ff_result result = ff_launch(f->gpu, &r, &ticket);
  return result ? result : ff_wait(f->gpu, ticket);
}

static void compare(const fixture *f, uint32_t words) {
  void *host;
  OK(ff_segment_map(f->y, FF_READ, 0, 0, &host));
  for (uint32_t i = 0; i < words; i++) HOLDS(((uint32_t *)host)[i] == i * 3);
  OK(ff_segment_unmap(f->y, host));
}

/* ---- cases: each in a child, which writes the message that it got ---- */

typedef struct fault_case {
  int32_t shift;
  ff_access y;
  bool per_block, windows;
  const char *words;
} fault_case;

static void leaves_its_uses(const fault_case *c, bool check) {
  uint32_t words = c->windows ? 4 * MIB : WORDS;
  fixture f = start(check, words, c->windows ? 16 * MIB : 0);
  HOLDS(copy(&f, words, c->shift, c->y, c->per_block) == FF_ERROR_FAULT);
  printf("%s", strstr(ff_message(), "undeclared"));
  if (!check) HOLDS(copy(&f, words, 0, FF_WRITE, false) == FF_ERROR_LOST);
  if (check) { /* all goes on */
    OK(copy(&f, words, 0, FF_WRITE, c->windows));
    compare(&f, words);
    OK(ff_close(f.gpu));
  }
  fflush(stdout);
}

/* What the child writes; it must end well. */
static void child_says(void (*run)(const void *context), const void *context, char text[4096]) {
  int ends[2], status;
  size_t length = 0;
  ssize_t got;
  assert_int_equal(pipe(ends), 0);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDOUT_FILENO);
    run(context);
    fflush(stdout);
    _exit(0);
  }
  close(ends[1]);
  while (length < 4095 && (got = read(ends[0], text + length, 4095 - length)) > 0) length += (size_t)got;
  text[length] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("status %d: %s", status, text);
}

static void run_own(const void *context) { leaves_its_uses(context, false); }
static void run_instrumented(const void *context) { leaves_its_uses(context, true); }

static char *in_child(const fault_case *c, bool check) {
  static char texts[2][4096];
  child_says(check ? run_instrumented : run_own, c, texts[check]);
  return texts[check];
}

/* Addresses and the modules' names may differ. */
static void simplify(char *text) {
  char *to = text;
  for (char *from = text; *from;)
    if (!strncmp(from, "0x", 2)) from += 2 + strspn(from + 2, "0123456789abcdef");
    else if (!strncmp(from, "  at ", 5)) {
      from += 5;
      from += strcspn(from, ":");
    } else *to++ = *from++;
  *to = '\0';
}

static void test_both_say_the_same(void **state) {
  static const fault_case cases[] = {
      {1, FF_WRITE, false, false, "it reads segment 'y', which is declared for writing"}, /* they lie side by side */
      {WORDS, FF_WRITE, false, false, "it reads segment 'y', which is declared for writing"},
      {2 * WORDS, FF_WRITE, false, false, "of segment 'y' (bytes 0 to 16384, write): it ends 4 bytes behind"},
      {-1, FF_WRITE, false, false, "of segment 'x' (bytes 0 to 16384, read): it begins 4 bytes before"},
      {0, FF_READ, false, false, "writes segment 'y', which is declared for reading"},
      {1, FF_WRITE, true, false, "for this block of segment 'x' (bytes 0 to 1024, read): it ends 4 bytes behind"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *own = in_child(&cases[i], false), *instrumented = in_child(&cases[i], true);
    simplify(own);
    simplify(instrumented);
    assert_string_equal(own, instrumented);
    if (!strstr(own, cases[i].words)) fail_msg("'%s' is missing in: %s", cases[i].words, own);
    assert_non_null(strstr(own, "in kernel copy, block ("));
  }
}

static void test_in_windows(void **state) {
  static const fault_case last = {1, FF_WRITE, true, true,
                                  "for this block of segment 'x' (bytes 0 to 1024, read): it ends 4 bytes behind"};
  assert_non_null(strstr(in_child(&last, false), last.words));
  assert_non_null(strstr(in_child(&last, true), last.words));
}

/* In the last window the block's index is that of the whole grid. */
static void later_window(const void *context) {
  uint32_t words = 4 * MIB, less = words - 4;
  int32_t shift = 0;
  fixture f = start(true, words, 16 * MIB);
  ff_argument arguments[] = {FF_ADDRESS(f.x), FF_ADDRESS(f.y), FF_VALUE(words), FF_VALUE(shift)};
  ff_use uses[] = {{f.x, FF_READ, 0, less * 4ull, {BLOCK * 4}, BLOCK * 4},
                   {f.y, FF_WRITE, 0, words * 4ull, {BLOCK * 4}, BLOCK * 4}};
  ff_launch_request r = {.kernel = f.copy,
                         .grid = {words / BLOCK},
                         .block = {BLOCK},
                         .arguments = arguments,
                         .argument_count = 4,
                         .uses = uses,
                         .use_count = 2};
  ff_plan plan;
  OK(ff_launch_plan(f.gpu, &r, &plan));
  HOLDS(plan.windows > 1);
  OK(ff_launch(f.gpu, &r, NULL));
  HOLDS(ff_wait_all(f.gpu) == FF_ERROR_FAULT);
  printf("%s", ff_message());
  OK(ff_close(f.gpu));
}

/* More launches than there are tables, a fault among them that no call waits for: ff_close tells. */
static void many(const void *context) {
  fixture f = start(true, WORDS, 0);
  uint32_t words = WORDS;
  for (int32_t i = 0; i < 100; i++) {
    int32_t shift = i == 40 || i == 60;
    ff_argument arguments[] = {FF_ADDRESS(f.x), FF_ADDRESS(f.y), FF_VALUE(words), FF_VALUE(shift)};
    ff_use uses[] = {{f.x, FF_READ, 0, 0, {0}, 0}, {f.y, FF_WRITE, 0, 0, {0}, 0}};
    ff_launch_request r = {.kernel = f.copy,
                           .grid = {WORDS / BLOCK},
                           .block = {BLOCK},
                           .arguments = arguments,
                           .argument_count = 4,
                           .uses = uses,
                           .use_count = 2};
    ff_ticket ticket;
    OK(ff_launch(f.gpu, &r, &ticket));
    if (i == 60) HOLDS(ff_wait(f.gpu, ticket) == FF_ERROR_FAULT);
    if (i == 61) OK(ff_wait(f.gpu, ticket));
  }
  compare(&f, WORDS);
  HOLDS(ff_wait(f.gpu, 41) == FF_ERROR_FAULT);
  HOLDS(ff_wait(f.gpu, 42) == FF_SUCCESS);
  printf("%s", ff_message());
  ff_close(f.gpu);
}

/* What malloc gives need not be declared, what the kernel writes does. */
static void heap(const void *check) {
  fixture f = start(*(const bool *)check, WORDS, 0);
  ff_argument arguments[] = {FF_ADDRESS(f.y)};
  ff_use use = {f.y, FF_WRITE, 0, 4, {0}, 0};
  ff_launch_request r = {.kernel = f.heap, .arguments = arguments, .argument_count = 1, .uses = &use, .use_count = 1};
  ff_ticket ticket;
  void *host;
  OK(ff_launch(f.gpu, &r, &ticket));
  OK(ff_wait(f.gpu, ticket));
  OK(ff_segment_map(f.y, FF_READ, 0, 4, &host));
  HOLDS(*(uint32_t *)host == 8);
  OK(ff_segment_unmap(f.y, host));
  r.use_count = 0;
  OK(ff_launch(f.gpu, &r, &ticket));
  HOLDS(ff_wait(f.gpu, ticket) == FF_ERROR_FAULT);
  printf("%s", ff_message());
}

static void expect_child(void (*run)(const void *context), const void *context, const char *words) {
  char text[4096];
  child_says(run, context, text);
  if (!strstr(text, words)) fail_msg("'%s' expected in: %s", words, text);
}

static void test_later_window(void **state) { expect_child(later_window, NULL, "block (16383,0,0)"); }
static void test_many(void **state) { expect_child(many, NULL, "it reads segment 'y', which is declared for writing"); }
static void test_heap(void **state) {
  expect_child(heap, &(const bool){false}, "the launch declares that it uses no segment");
  expect_child(heap, &(const bool){true}, "the launch declares that it uses no segment");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_say_the_same), cmocka_unit_test(test_in_windows),
                                     cmocka_unit_test(test_later_window), cmocka_unit_test(test_many),
                                     cmocka_unit_test(test_heap)};
  setenv("FARFAULT_THREADS", "1", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
