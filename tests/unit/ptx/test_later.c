/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are read when they are wanted: in any order they become what they are when the module is parsed at once;
 * what is wrong in one is told by the call that reads it; what concerns the whole module is not left unread. */
#include "ptx_test.h"

static ptx_module *parse_later(const char *text) {
  ff_error error = {0};
  ptx_module *module = NULL;
  if (ptx_module_parse_later("test.ptx", text, strlen(text), &module, &error) != FF_OK) fail_msg("%s", error.message);
  return module;
}

static void read_good(ptx_func *func) {
  ff_error error = {0};
  if (ptx_func_read(func, &error) != FF_OK) fail_msg("%s", error.message);
  assert_null(func->unread);
}

static void assert_same(ptx_module *whole, ptx_module *later) {
  ff_text expected = {0}, got = {0};
  ptx_print_module(whole, &expected);
  ptx_print_module(later, &got);
  assert_string_equal(got.chars, expected.chars);
  free(expected.chars);
  free(got.chars);
  for (uint32_t f = 0; f < whole->func_count; f++) {
    const ptx_func *a = whole->funcs[f], *b = later->funcs[f];
    assert_int_equal(a->place.line, b->place.line);
    assert_int_equal(a->place.column, b->place.column);
    assert_int_equal(a->instr_count, b->instr_count);
    for (uint32_t n = 0; n < a->instr_count; n++) {
      assert_int_equal(a->instrs[n].place.line, b->instrs[n].place.line);
      assert_int_equal(a->instrs[n].place.column, b->instrs[n].place.column);
      assert_int_equal(a->instrs[n].source_line, b->instrs[n].source_line);
    }
  }
}

static const char three[] = HEAD
    ".file 1 \"a.cu\"\n.global .u32 g;\n.func (.param .b32 r) f(.param .b32 x) { ret; }\n"
    ".visible .entry a(.param .u64 p, .param .u32 n)\n.maxntid 256, 1, 1\n{\n\t.reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
    "\t.shared .align 4 .b8 tile[64];\n\t.loc 1 7 3\n\tld.param.u64 %rd1, [p]; // not the end: }\n"
    "/* nor } this\n } */\t{ .reg .b32 t; mov.u32 t, 1; }\n$L: ld.global.u32 %r1, [g];\n\tbra $L;\n}\n"
    ".visible .entry b() { .pragma \"}\\\"{\"; ret; }\n"
    ".weak .entry c(.param .u32 n) { .reg .b32 %r<2>; ld.param.u32 %r1, [n]; .loc 5 1 1\n ret; }\n"
    ".entry d() { call later; ret; }\n.func later() { ret; }\n";

static void like_at_once(void **state) {
  char text[sizeof three];
  memcpy(text, three, sizeof three);
  memset(strstr(text, "call later;"), ' ', strlen("call later;")); /* only the later way accepts that */
  for (uint32_t turn = 0; turn < 4; turn++) {
    ptx_module *whole = parse(text), *later = parse_later(text);
    assert_int_equal(later->func_count, 6);
    for (uint32_t f = 1; f < 5; f++) {
      const ptx_func *func = later->funcs[f];
      assert_true(func->unread && func->entry && func->has_body && !func->instr_count && func->index == f);
      assert_ptr_equal(ptx_find_func(later, func->name), func);
    }
    assert_null(later->funcs[0]->unread);
    for (uint32_t n = 0; n < 4; n++) read_good(later->funcs[1 + (turn % 2 ? n : 3 - n + turn) % 4]);
    assert_same(whole, later);
    ptx_module_free(whole);
    ptx_module_free(later);
  }
}

static void only_what_is_wanted(void **state) {
  ptx_module *m = parse_later(three);
  read_good(ptx_find_func(m, "c"));
  read_good(ptx_find_func(m, "c"));                                  /* does nothing */
  assert_int_equal(ptx_find_func(m, "c")->instrs[1].source_line, 0); /* there is no file 5 */
  assert_non_null(ptx_find_func(m, "a")->unread);
  read_good(ptx_find_func(m, "d")); /* what it calls stands behind it */
  ff_error error;
  assert_int_equal(ptx_module_read(m, &error), FF_OK);
  assert_int_equal(ptx_find_func(m, "a")->maxntid[0], 256);
  ptx_module_free(m);
}

/* The message is that of parsing at once, each time; the other kernels are not touched by it. */
static void wrong_kernel(void **state) {
  static const char text[] = HEAD ".entry good() { ret; }\n.entry bad() {\n { mov.u32 %r1, 7; }\n}\n"
                                  ".entry fine() { .reg .b32 %r<2>; mov.u32 %r1, 7; ret; }\n";
  ff_error at_once = {0}, error = {0};
  ptx_module *none, *m = parse_later(text);
  assert_int_equal(parse_exact("test.ptx", text, &none, &at_once), FF_PARSE);
  for (int turn = 0; turn < 2; turn++) {
    assert_int_equal(ptx_func_read(ptx_find_func(m, "bad"), &error), FF_PARSE);
    assert_string_equal(error.message, at_once.message);
  }
  read_good(ptx_find_func(m, "fine"));
  assert_int_equal(ptx_find_func(m, "fine")->instr_count, 2);
  assert_int_equal(ptx_module_read(m, &error), FF_PARSE);
  ptx_module_free(m);
}

static void refused_at_once(const char *text, const char *expected) {
  ff_error error = {0};
  ptx_module *m = NULL;
  assert_int_equal(ptx_module_parse_later("test.ptx", text, strlen(text), &m, &error), FF_PARSE);
  assert_null(m);
  if (!strstr(error.message, expected)) fail_msg("the message is\n%s\nand not '%s'", error.message, expected);
}

static void whole_module(void **state) {
  refused_at_once(HEAD ".entry k() { ret;\n", "never closed");
  refused_at_once(HEAD ".entry k() }\n", "expected");
  refused_at_once(HEAD ".entry k() { ret; }\n.entry k() { ret; }\n", "declared already");
  refused_at_once(HEAD ".entry k() { ret; }\n.func k() { ret; }\n", "declared");
  refused_at_once(HEAD ".entry k() { ret; }\n.global .u32 k;\n", "k");
  refused_at_once(HEAD ".entry k() { mov.u32 %r1, 7; }\n.entry k();\n", "%r1");
  ptx_module *m = parse_later(HEAD ".entry k();\n.entry k() { ret; }\n.entry k();\n"
                                   ".entry v() {\n .global .u32 inside;\n ret; }\n.entry w() { ret; }\n");
  assert_null(ptx_find_func(m, "k")->unread);
  assert_null(ptx_find_func(m, "v")->unread);
  assert_non_null(ptx_find_func(m, "w")->unread);
  assert_int_equal(m->var_count, 1);
  ptx_module_free(m);
  /* seen neither by its place: refused where it is read, and the module stays as it was */
  ff_error error = {0};
  m = parse_later(HEAD ".entry v() { $L: .global .u32 inside; ret; }\n");
  assert_int_equal(ptx_func_read(ptx_find_func(m, "v"), &error), FF_UNSUPPORTED);
  assert_int_equal(m->var_count, 0);
  ptx_module_free(m);
}

/* The brace in a statement that the parser keeps without knowing it is not the kernel's: all is parsed at once. Where
 * what stands behind it might be a function of its own, the kernel is refused when it is read. */
static void unpaired_braces(void **state) {
  static const char text[] = HEAD ".entry k() {\n future.thing a}, {b};\n ret;\n}\n.entry w() { ret; }\n";
  ptx_module *whole = parse(text), *later = parse_later(text);
  assert_int_equal(later->func_count, 2);
  for (uint32_t f = 0; f < 2; f++) assert_null(later->funcs[f]->unread);
  assert_same(whole, later);
  ptx_module_free(whole);
  ptx_module_free(later);
  ff_error error = {0};
  later = parse_later(HEAD ".entry k() { future.thing } .func f() { ret; }\n");
  assert_int_equal(ptx_func_read(ptx_find_func(later, "k"), &error), FF_UNSUPPORTED);
  ptx_module_free(later);
}

static void linked(void **state) {
  ptx_module *parts[2] = {parse_later(HEAD ".extern .func f();\n.entry k() { call f; ret; }\n"),
                          parse_later(HEAD ".visible .func f() { ret; }\n")};
  ptx_module *whole;
  ff_error error = {0};
  if (ptx_link(parts, 2, &whole, &error) != FF_OK) fail_msg("%s", error.message);
  assert_int_equal(ptx_find_func(whole, "k")->instr_count, 2);
  ptx_module_free(whole);
  for (int i = 0; i < 2; i++) ptx_module_free(parts[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_at_once),    cmocka_unit_test(only_what_is_wanted),
                                     cmocka_unit_test(wrong_kernel),    cmocka_unit_test(whole_module),
                                     cmocka_unit_test(unpaired_braces), cmocka_unit_test(linked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
