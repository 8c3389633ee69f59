/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are read when they are wanted: in any order they become what they are when the module is parsed at once,
 * linked or not; what is wrong in one is told by the call that reads it; what concerns the whole module is not left
 * unread. */
#include <pthread.h>

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

static void assert_printed_same(const ptx_module *whole, const ptx_module *later) {
  ff_text expected = {0}, got = {0};
  ptx_print_module(whole, &expected);
  ptx_print_module(later, &got);
  assert_string_equal(got.chars, expected.chars);
  free(expected.chars);
  free(got.chars);
}

static void assert_same(ptx_module *whole, ptx_module *later) {
  assert_printed_same(whole, later);
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
    for (uint32_t f = 0; f < 6; f++) {
      const ptx_func *func = later->funcs[f];
      assert_true(func->unread && func->has_body && !func->instr_count && func->index == f);
      assert_int_equal(func->entry, f >= 1 && f < 5);
      assert_ptr_equal(ptx_find_func(later, func->name), func);
    }
    assert_int_equal(later->funcs[0]->param_count, 1);
    assert_int_equal(later->funcs[1]->param_count, 0);
    for (uint32_t n = 0; n < 6; n++) read_good(later->funcs[(turn % 2 ? n : 5 - n + turn) % 6]);
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
}

/* Wherever a statement may begin, a variable of the module is seen. */
static void variable_of_the_module(void **state) {
  static const char *const before[] = {"",
                                       "$L: ",
                                       "$L:",
                                       "/* c */ ",
                                       "/* c */",
                                       "\f ",
                                       "\v ",
                                       "// c\n",
                                       "$L: /*\n*/\t",
                                       "ret; /* a */ /* b */ $L: ",
                                       "{ } \f",
                                       ".loc 1 1 1 ",
                                       ".loc 1 2 3 .loc\t1 /* ; */ 2\n3 // c\n",
                                       "$L: .loc 1 1 1 $M: ",
                                       ".loc 1 2 3, function_name $L + 4, inlined_at 1 1 1 "};
  for (size_t n = 0; n < sizeof before / sizeof *before; n++) {
    ff_text text = {0};
    ff_text_add(&text, HEAD ".file 1 \"a.cu\"\n.entry v() {%s.global .u32 inside; ret; }\n", before[n]);
    ptx_module *m = parse_later(text.chars);
    if (ptx_find_func(m, "v")->unread) fail_msg("after '%s'", before[n]);
    assert_int_equal(m->var_count, 1);
    ptx_module_free(m);
    free(text.chars);
  }
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
  assert_int_equal(ptx_find_func(whole, "k")->instr_count, 0);
  read_good(ptx_find_func(whole, "k"));
  assert_int_equal(ptx_find_func(whole, "k")->instr_count, 2);
  ptx_module_free(whole);
  for (int i = 0; i < 2; i++) ptx_module_free(parts[i]);
}

/* What the head has is there before the body, and stays what it is. */
static void heads(void **state) {
  ptx_module *m = parse_later(HEAD ".entry k(.param .u64 p, .param .u32 n) .maxntid 64, 2 .minnctapersm 3 { ret; }\n"
                                   ".entry wrong(.param .u32 n) .sideways { ret; }\n.entry limited() { ret; }\n"
                                   ".func (.reg .b32 r) f(.reg .b32 x) { add.u32 r, x, 1; ret; }\n");
  ff_error error = {0};
  ptx_func *k = ptx_find_func(m, "k"), *f = ptx_find_func(m, "f"), *limited = ptx_find_func(m, "limited");
  assert_int_equal(ptx_func_read_head(k, &error), FF_OK);
  assert_non_null(k->unread);
  assert_int_equal(k->param_count, 2);
  assert_int_equal(k->params[1]->index, 1);
  assert_int_equal(k->maxntid[0] * 100 + k->maxntid[1] * 10 + k->minnctapersm, 6400 + 20 + 3);
  const ptx_var *n = k->params[1];
  read_good(k);
  assert_ptr_equal(k->params[1], n);
  assert_int_equal(k->instr_count, 1);
  assert_int_equal(ptx_func_read_head(ptx_find_func(m, "wrong"), &error), FF_PARSE);
  assert_non_null(strstr(error.message, ".sideways"));
  limited->maxnreg = 40; /* from outside: stays where the kernel says nothing */
  read_good(limited);
  assert_int_equal(limited->maxnreg, 40);
  assert_int_equal(f->params[0]->reg, PTX_NO_REG);
  read_good(f);
  assert_int_equal(f->results[0]->reg, 0);
  assert_int_equal(f->params[0]->reg, 1);
  ptx_module_free(m);
}

/* An address in the initial value of a variable of the body, which is only known once the value has been read. */
static void initial_address_in_body(void **state) {
  static const char text[] = HEAD ".global .u32 g;\n.entry k() { .local .align 8 .u64 at[1] = {g}; ret; }\n";
  ptx_module *whole = parse(text), *later = parse_later(text);
  read_good(ptx_find_func(later, "k"));
  assert_same(whole, later);
  assert_ptr_equal(ptx_find_func(later, "k")->vars[0]->inits[0].symbol->var, later->vars[0]);
  ptx_module_free(whole);
  ptx_module_free(later);
}

static bool count_instructions(void *context, const ptx_func *func) {
  *(uint32_t *)context += func->instr_count;
  return false;
}

static bool keep(void *context, const ptx_func *func) { return true; }

/* Looked at, it is whole for that time only, and limits of the module are not used up. */
static void looked_at(void **state) {
  ptx_module *m =
      parse_later(HEAD ".func (.reg .b32 r) f(.reg .b32 x) {\n .reg .b32 %a<900000>;\n"
                       " { .reg .b64 t; }\n$L: add.u32 r, x, 1; bra $L; }\n.func g() { mov.u32 %r1, 7; }\n");
  ptx_func *f = ptx_find_func(m, "f");
  ff_error error = {0};
  uint32_t count = 0;
  for (int turn = 0; turn < 10; turn++) {
    assert_int_equal(ptx_func_look(f, count_instructions, &count, &error), FF_OK);
    assert_true(f->unread && !f->instr_count && !f->label_count && !f->reg_count && f->var_count == 2);
  }
  assert_int_equal(count, 20);
  assert_int_equal(ptx_func_look(f, keep, NULL, &error), FF_OK);
  assert_null(f->unread);
  assert_int_equal(f->instr_count, 2);
  assert_int_equal(ptx_func_look(f, count_instructions, &count, &error), FF_OK);
  assert_int_equal(count, 22);
  assert_int_equal(f->instr_count, 2);
  assert_int_equal(ptx_func_look(ptx_find_func(m, "g"), count_instructions, &count, &error), FF_PARSE);
  assert_int_equal(count, 22);
  ptx_module_free(m);
}

/* Initial values count as registers do: 1 GiB of them in all. */
static void initial_values_given_back(void **state) {
  static const char text[] = HEAD ".entry k() { .local .align 8 .b8 at[300000000] = {1}; ret; }\n";
  ptx_module *alone = parse_later(text), *part = parse_later(text), *made;
  ff_error error = {0};
  assert_int_equal(ptx_link(&part, 1, &made, &error), FF_OK);
  for (int turn = 0; turn < 5; turn++) {
    uint32_t count = 0;
    if (ptx_func_look(alone->funcs[0], count_instructions, &count, &error) != FF_OK ||
        ptx_func_look(made->funcs[0], count_instructions, &count, &error) != FF_OK)
      fail_msg("%s", error.message);
  }
  ptx_module_free(made);
  ptx_module_free(part);
  ptx_module_free(alone);
}

/* Names that modules share and names that they do not, addresses in operands and initial values, lists of targets that
 * two calls have, registers and variables of the function, files. */
static const char *const pair[2] = {
    HEAD ".file 1 \"a.cu\"\n.extern .func (.param .b32 r) shared(.param .b32 x);\n.extern .global .u32 there;\n"
         ".global .u32 own = 1;\n.func (.reg .b32 r) add(.reg .b32 x) { add.u32 r, x, 1; ret; }\n"
         ".weak .func twice() { ret; }\n"
         ".visible .entry a(.param .u64 p) .maxntid 32 {\n .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
         " .local .align 8 .u64 at[2] = {own, there};\n .shared .u32 tile[4];\n .loc 1 7 3\n"
         " mov.u64 %rd1, own; ld.global.u32 %r1, [there+4]; ld.shared.u32 %r2, [tile];\n ld.param.u64 %rd2, [p];\n"
         " call (%r1), add, (%r2);\n mov.u64 %rd3, shared; call twice;\n"
         "$T: .calltargets twice;\n call %rd3, (), $T;\n call %rd3, (), $T;\n ret;\n}\n",
    HEAD ".file 1 \"b.cu\"\n.visible .global .u32 there;\n.global .u32 own = 2;\n.weak .func twice() { ret; ret; }\n"
         ".visible .func (.param .b32 r) shared(.param .b32 x) {\n .reg .b64 %rd<2>; .reg .b32 %r<2>; .loc 1 9 1\n"
         " mov.u64 %rd1, own; ld.param.u32 %r1, [x]; st.param.u32 [r], %r1; call twice; ret;\n}\n"
         ".visible .entry b() { ret; }\n"};

static ptx_module *link_pair(ptx_module *const parts[2]) {
  ptx_module *made = NULL;
  ff_error error = {0};
  if (ptx_link(parts, 2, &made, &error) != FF_OK) fail_msg("%s", error.message);
  return made;
}

static void linked_bodies(void **state) {
  ptx_module *whole[2] = {parse(pair[0]), parse(pair[1])}, *expected = link_pair(whole);
  for (uint32_t turn = 0; turn < 3; turn++) {
    ptx_module *parts[2] = {parse_later(pair[0]), parse_later(pair[1])};
    ptx_module *later = link_pair(parts), *again = link_pair(parts);
    for (uint32_t n = 0; n < later->func_count; n++) {
      ptx_func *func = later->funcs[turn % 2 ? later->func_count - 1 - n : n];
      uint32_t count = 0;
      ff_error error = {0};
      if (turn == 2) assert_int_equal(ptx_func_look(func, count_instructions, &count, &error), FF_OK);
      read_good(func);
      if (turn == 2) assert_int_equal(count, func->instr_count);
    }
    assert_same(expected, later);
    const ptx_func *a = ptx_find_func(later, "a");
    assert_int_equal(a->instrs[0].source_file, ptx_find_func(expected, "a")->instrs[0].source_file);
    assert_ptr_equal(a->source, parts[0]);
    ff_error error = {0};
    assert_int_equal(ptx_module_read(again, &error), FF_OK); /* the parts are as they were */
    assert_same(expected, again);
    ptx_module_free(again);
    ptx_module_free(later);
    for (int i = 0; i < 2; i++) ptx_module_free(parts[i]);
  }
  ptx_module_free(expected);
  for (int i = 0; i < 2; i++) ptx_module_free(whole[i]);
}

/* What no module defines is told by who uses it; a wrong body as in its own module. */
static void linked_errors(void **state) {
  static const char text[] = HEAD ".extern .func nowhere();\n.entry k() { call nowhere; ret; }\n"
                                  ".entry bad() { mov.u32 %r1, 7; }\n.entry good() { ret; }\n";
  ptx_module *part = parse_later(text), *alone = parse_later(text), *made = NULL;
  ff_error error = {0}, expected = {0};
  assert_int_equal(ptx_link(&part, 1, &made, &error), FF_OK);
  for (int turn = 0; turn < 2; turn++) {
    assert_int_equal(ptx_func_read(ptx_find_func(made, "k"), &error), FF_INVALID);
    assert_non_null(strstr(error.message, "'nowhere' is declared but defined nowhere"));
    assert_non_null(ptx_find_func(made, "k")->unread);
    assert_int_equal(ptx_func_read(ptx_find_func(made, "bad"), &error), FF_PARSE);
    assert_int_equal(ptx_func_read(ptx_find_func(alone, "bad"), &expected), FF_PARSE);
    assert_string_equal(error.message, expected.message);
  }
  read_good(ptx_find_func(made, "good"));
  ptx_module_free(made);
  ptx_module_free(part);
  ptx_module_free(alone);
}

/* Parameters of kernels that two modules have are compared, though neither has been read. */
static void linked_heads(void **state) {
  static const char *const texts[3] = {HEAD ".weak .entry k(.param .u32 n) { ret; }\n",
                                       HEAD ".weak .entry k(.param .u32 n) { ret; ret; }\n",
                                       HEAD ".weak .entry k(.param .u64 n) { ret; }\n"};
  ptx_module *parts[3] = {parse_later(texts[0]), parse_later(texts[1]), parse_later(texts[2])}, *made = NULL;
  ff_error error = {0};
  assert_int_equal(ptx_link(parts, 2, &made, &error), FF_OK);
  assert_non_null(ptx_find_func(made, "k")->unread);
  assert_int_equal(ptx_find_func(made, "k")->param_count, 1);
  ptx_module_free(made);
  assert_int_equal(ptx_link(parts, 3, &made, &error), FF_INVALID);
  assert_non_null(strstr(error.message, "with different parameters"));
  for (int i = 0; i < 3; i++) ptx_module_free(parts[i]);
}

static void *read_all(void *module) {
  ff_error error = {0};
  ptx_module *m = module;
  for (int turn = 0; turn < 20; turn++)
    for (uint32_t f = 0; f < m->func_count; f++) {
      uint32_t count = 0;
      if (ptx_func_look(m->funcs[f], count_instructions, &count, &error) != FF_OK) return m;
      if (turn > 10 && (ptx_func_read(m->funcs[f], &error) != FF_OK || m->funcs[f]->instr_count != count)) return m;
    }
  return NULL;
}

static void threads(void **state) {
  ptx_module *parts[2] = {parse_later(pair[0]), parse_later(pair[1])}, *made = link_pair(parts);
  pthread_t others[3];
  void *failed;
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&others[i], NULL, read_all, made), 0);
  assert_null(read_all(made));
  for (int i = 0; i < 3; i++) {
    pthread_join(others[i], &failed);
    assert_null(failed);
  }
  ptx_module_free(made);
  for (int i = 0; i < 2; i++) ptx_module_free(parts[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(like_at_once),
                                     cmocka_unit_test(only_what_is_wanted),
                                     cmocka_unit_test(wrong_kernel),
                                     cmocka_unit_test(whole_module),
                                     cmocka_unit_test(unpaired_braces),
                                     cmocka_unit_test(linked),
                                     cmocka_unit_test(heads),
                                     cmocka_unit_test(initial_address_in_body),
                                     cmocka_unit_test(looked_at),
                                     cmocka_unit_test(linked_bodies),
                                     cmocka_unit_test(linked_errors),
                                     cmocka_unit_test(linked_heads),
                                     cmocka_unit_test(variable_of_the_module),
                                     cmocka_unit_test(initial_values_given_back),
                                     cmocka_unit_test(threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
