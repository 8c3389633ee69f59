/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of modules whose bodies are read when something needs them: what cannot be read fails what reaches it, with
 * its own message, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "exec/decode/program.h"
#include "exec/exec.h"
#include "exec/launch/program_sharing.h"
#include "unit/share.h"

typedef struct opened {
  ff_text text;
  exec_memory *memory;
  ptx_module *module;
  exec_program *program;
} opened;

static opened *now; /* a test that failed has left it open */

static void close_module(opened *o) {
  exec_program_free(o->program);
  ptx_module_free(o->module);
  exec_memory_free(o->memory);
  free(o->text.chars);
  free(o);
  now = NULL;
}

static opened *start(void) {
  if (now) close_module(now);
  now = calloc(1, sizeof *now);
  ff_text_add(&now->text, ".version 8.0\n.target sm_80\n.address_size 64\n");
  return now;
}

static void open_module(opened *o) {
  ff_error error = {0};
  if (exec_memory_create(&o->memory, &error) != FF_OK ||
      ptx_module_parse_later("test.ptx", o->text.chars, o->text.length, &o->module, &error) != FF_OK ||
      exec_program_create(o->module, o->memory, &o->program, &error) != FF_OK)
    fail_msg("%s", error.message);
}

static void good_kernel(const opened *o, const char *name, exec_kernel **kernel) {
  ff_error error = {0};
  if (exec_program_kernel(o->program, name, kernel, &error) != FF_OK) fail_msg("%s", error.message);
}

static void assert_says(const ff_error *error, const char *expected) {
  if (!strstr(error->message, expected)) fail_msg("the message is\n%s\nand not '%s'", error->message, expected);
}

/* ---- more than a module may have in all ---- */

/* Five functions, of which four have as many registers as a module may have, in a table; `k` calls all of them. */
static opened *open_large(uint32_t instructions) {
  opened *o = start();
  for (int f = 0; f < 5; f++) {
    ff_text_add(&o->text, ".func (.reg .b32 r) f%d(.reg .b32 x) {\n .reg .b32 %%t<1000000>;\n mov.u32 r, x;\n", f);
    for (uint32_t n = 0; f == 0 && n < instructions; n++) ff_text_add(&o->text, " add.u32 r, r, 1;\n");
    ff_text_add(&o->text, " ret;\n}\n");
  }
  ff_text_add(&o->text, ".global .u64 table[5] = {f0, f1, f2, f3, f4};\n"
                        ".entry k() {\n .reg .b64 %%d; .reg .b32 %%a;\n mov.u32 %%a, 1;\n"
                        " P: .callprototype (.reg .b32 r) _ (.reg .b32 x);\n");
  for (int f = 0; f < 5; f++)
    ff_text_add(&o->text, " ld.global.u64 %%d, [table+%d]; call (%%a), %%d, (%%a), P;\n", 8 * f);
  ff_text_add(&o->text, " ret;\n}\n.entry small() { ret; }\n");
  open_module(o);
  return o;
}

static ff_status launch(const opened *o, exec_kernel *kernel, exec_fault *fault, ff_error *error) {
  exec_config config = {.memory = o->memory, .threads = 1, .sm_count = 1};
  exec_launch_request request = {.kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  return exec_launch(&config, &request, NULL, fault, error);
}

/* The launch fails where all is decoded at once; else the call of the function that is too much. */
static void more_than_a_module_may_have(void **state) {
  for (int large = 0; large < (CHECKED_BUILD ? (int)fewer(2, 2) : 2); large++) {
    opened *o = open_large(large ? 70000 : 1);
    exec_kernel *k, *small;
    good_kernel(o, "k", &k);
    for (int turn = 0; turn < 2; turn++) {
      ff_error error = {0};
      exec_fault fault = {0};
      assert_int_equal(launch(o, k, &fault, &error), large ? FF_FAULT : FF_LIMIT);
      assert_int_equal(fault.kind, large ? EXEC_FAULT_UNSUPPORTED : EXEC_FAULT_NONE);
      assert_says(&error, "too many registers");
    }
    good_kernel(o, "small", &small);
    assert_int_equal(launch(o, small, NULL, NULL), FF_OK);
    ff_text printed = {0};
    exec_kernel_print(k, &printed);
    assert_int_equal(printed.length && strstr(printed.chars, "f4: test.ptx") != NULL, large);
    free(printed.chars);
    close_module(o);
  }
}

/* ---- bodies that are wrong ---- */

#define INDIRECT                                                                     \
  " .reg .b64 %%d; .reg .b32 %%a;\n mov.u32 %%a, 1;\n ld.global.u64 %%d, [table];\n" \
  " P: .callprototype (.reg .b32 r) _ (.reg .b32 x);\n call (%%a), %%d, (%%a), P;\n ret;\n}\n"
#define ONE_MORE ".func (.reg .b32 r) one_more(.reg .b32 x) { add.u32 r, x, 1; ret; }\n"
#define WRONG "{ mov.u32 %%nosuch, 7; }"

/* Neither a kernel nor a function that the launched kernel does not reach matters to it. */
static void wrong_elsewhere(void **state) {
  opened *o = start();
  ff_text_add(&o->text, ONE_MORE ".global .u64 table[1] = {one_more};\n.func alone() " WRONG "\n"
                                 ".entry unrelated() " WRONG "\n.entry k() {\n" INDIRECT);
  open_module(o);
  exec_kernel *k;
  good_kernel(o, "k", &k);
  assert_int_equal(launch(o, k, NULL, NULL), FF_OK);
  ff_error error = {0};
  assert_int_equal(exec_program_kernel(o->program, "unrelated", &k, &error), FF_PARSE);
  assert_says(&error, "%nosuch");
  close_module(o);
}

/* A function in the table is reached. That it is wrong is found once: here it is mended in the text in between. */
static void wrong_in_the_table(void **state) {
  opened *o = start();
  ff_text_add(&o->text, ONE_MORE ".func (.reg .b32 r) bad(.reg .b32 x) " WRONG "\n"
                                 ".global .u64 table[2] = {one_more, bad};\n.entry k() {\n" INDIRECT);
  open_module(o);
  for (int turn = 0; turn < 2; turn++) {
    ff_error error = {0};
    exec_kernel *k;
    assert_int_equal(exec_program_kernel(o->program, "k", &k, &error), FF_PARSE);
    assert_int_equal(error.status, FF_PARSE);
    assert_says(&error, "test.ptx:5:48: ");
    assert_says(&error, "%nosuch");
    char *wrong = strstr(o->text.chars, "%nosuch");
    if (wrong) memcpy(wrong, "r      ", strlen("%nosuch"));
  }
  close_module(o);
}

/* Programs of one module on several devices have one list. */
static void looked_at_once(void **state) {
  opened *o = start();
  ff_text_add(&o->text,
              ONE_MORE ".global .u64 table[1] = {one_more};\n"
                       ".entry other() { .reg .b64 %%d; mov.u64 %%d, two; ret; }\n"
                       ".func (.reg .b32 r) two(.reg .b32 x) { mov.u32 r, 2; ret; }\n.entry k() {\n" INDIRECT);
  open_module(o);
  exec_program *second;
  exec_kernel *k, *again;
  assert_int_equal(exec_program_create_sharing(o->module, o->memory, o->program, &second, NULL), FF_OK);
  good_kernel(o, "k", &k);
  memcpy(strstr(o->text.chars, "mov.u64 %d, two;"), "                ", strlen("mov.u64 %d, two;"));
  assert_int_equal(exec_program_kernel(second, "k", &again, NULL), FF_OK);
  assert_int_equal(k->reach_count, 3);
  assert_int_equal(again->reach_count, 3);
  exec_program_free(second);
  close_module(o);
}

static int end(void **state) {
  if (now) close_module(now);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(more_than_a_module_may_have), cmocka_unit_test(wrong_elsewhere),
                                     cmocka_unit_test(wrong_in_the_table), cmocka_unit_test(looked_at_once)};
  return cmocka_run_group_tests(tests, NULL, end);
}
