/* SPDX-License-Identifier: Apache-2.0 */
/* Linking: which definition counts, what stays private, what is an error, and that the inputs are left alone. */
#include "ptx_test.h"

typedef struct linkage { /* modules and what they were linked to */
  ptx_module *modules[3], *linked;
  uint32_t count;
  ff_status status;
  ff_error error;
} linkage;

static linkage link_texts(const char *first, const char *second, const char *third) {
  const char *texts[] = {first, second, third};
  linkage l = {0};
  for (; l.count < 3 && texts[l.count]; l.count++) {
    ff_text text = {0};
    ff_text_add(&text, "%s%s", HEAD, texts[l.count]);
    l.modules[l.count] = parse(text.chars);
    free(text.chars);
  }
  l.status = ptx_link(l.modules, l.count, &l.linked, &l.error);
  return l;
}

static void finish(linkage *l) {
  ptx_module_free(l->linked);
  for (uint32_t i = 0; i < l->count; i++) ptx_module_free(l->modules[i]);
}

static void refuse_link(const char *first, const char *second, const char *message) {
  linkage l = link_texts(first, second, NULL);
  assert_int_not_equal(l.status, FF_OK);
  assert_null(l.linked);
  if (!strstr(l.error.message, message)) fail_msg("the message is '%s', not '%s'", l.error.message, message);
  finish(&l);
}

#define KERNEL ".visible .entry k() { .reg .b32 r; .reg .b64 d; "

static void externs_meet_definitions(void **state) {
  linkage l =
      link_texts(".extern .func (.param .b32 r) f(.param .b32 a); .extern .global .u32 x;\n" KERNEL
                 "{ .param .b32 a; .param .b32 b; call (b), f, (a); } ld.global.u32 r, [x+4]; }",
                 ".visible .global .u32 x[4] = {1, 2};\n"
                 ".visible .func (.param .b32 r) f(.param .b32 a) { .reg .b64 d; mov.u64 d, r; mov.u64 d, x; ret; }",
                 NULL);
  assert_int_equal(l.status, FF_OK);
  assert_int_equal(l.linked->func_count, 2);
  assert_int_equal(l.linked->var_count, 1);
  const ptx_func *k = ptx_find_func(l.linked, "k"), *f = ptx_find_func(l.linked, "f");
  assert_true(f->has_body);
  assert_ptr_equal(k->module, l.linked);
  assert_ptr_equal(k->source, l.modules[0]);
  assert_ptr_equal(f->source, l.modules[1]);
  ptx_call call = ptx_call_parts(&k->instrs[0]);
  assert_ptr_equal(call.callee->symbol->func, f);
  assert_ptr_equal(call.arguments->elements[0].symbol->var, k->vars[0]);
  assert_ptr_equal(k->vars[0]->func, k);
  assert_ptr_equal(k->instrs[1].operands[1].symbol->var, l.linked->vars[0]);
  assert_int_equal(l.linked->vars[0]->size, 16);
  assert_ptr_equal(f->instrs[0].operands[1].symbol->var, f->results[0]);
  assert_ptr_equal(f->results[0], f->vars[0]);
  /* the inputs are as before */
  const ptx_func *old = ptx_find_func(l.modules[0], "k");
  assert_ptr_equal(ptx_call_parts(&old->instrs[0]).callee->symbol->func, ptx_find_func(l.modules[0], "f"));
  assert_false(ptx_find_func(l.modules[0], "f")->has_body);
  assert_ptr_equal(old->instrs[1].operands[1].symbol->var, l.modules[0]->vars[0]);
  finish(&l);
}

static void private_names_stay_apart(void **state) {
  linkage l = link_texts(
      ".global .u32 s = 1; .func f() { ret; } .visible .entry a() { .reg .b64 d; mov.u64 d, s; call f; }",
      ".global .u64 s = 2; .func f() { trap; } .visible .entry b() { .reg .b64 d; mov.u64 d, s; call f; }", NULL);
  assert_int_equal(l.status, FF_OK);
  assert_int_equal(l.linked->var_count, 2);
  assert_int_equal(l.linked->func_count, 4);
  const ptx_func *a = ptx_find_func(l.linked, "a"), *b = ptx_find_func(l.linked, "b");
  assert_int_equal(a->instrs[0].operands[1].symbol->var->size, 4);
  assert_int_equal(b->instrs[0].operands[1].symbol->var->size, 8);
  assert_int_equal(a->instrs[1].operands[0].symbol->func->instrs[0].opcode, PTX_OP_RET);
  assert_int_equal(b->instrs[1].operands[0].symbol->func->instrs[0].opcode, PTX_OP_TRAP);
  /* printed, the two get different names, and the text means the same */
  ff_text text = {0};
  ptx_print_module(l.linked, &text);
  ptx_module *again = parse(text.chars);
  assert_int_equal(ptx_find_func(again, "a")->instrs[0].operands[1].symbol->var->size, 4);
  assert_int_equal(ptx_find_func(again, "b")->instrs[0].operands[1].symbol->var->size, 8);
  free(text.chars);
  ptx_module_free(again);
  finish(&l);
}

static void weak_and_common(void **state) {
  linkage l = link_texts(
      ".weak .func f() { ret; } .weak .global .u32 x = 1; .common .global .b8 c[4]; .weak .func g() { ret; }",
      ".visible .func f() { trap; } .visible .global .u32 x = 2; .common .global .b8 c[9]; .weak .func g() { trap; }",
      ".extern .func f(); .extern .func g(); .extern .global .u32 x; .common .global .b8 c[6];\n"
      ".entry k() { .reg .b64 d; mov.u64 d, x; mov.u64 d, c; call f; call g; }");
  assert_int_equal(l.status, FF_OK);
  assert_int_equal(ptx_find_func(l.linked, "f")->instrs[0].opcode, PTX_OP_TRAP); /* a definition beats a weak one */
  assert_int_equal(ptx_find_func(l.linked, "g")->instrs[0].opcode, PTX_OP_RET);  /* of two weak ones the first */
  assert_int_equal(ptx_find_var(l.linked, "x")->data[0], 2);
  assert_int_equal(ptx_find_var(l.linked, "c")->size, 9);
  const ptx_func *k = ptx_find_func(l.linked, "k");
  assert_ptr_equal(k->instrs[2].operands[0].symbol->func, ptx_find_func(l.linked, "f"));
  finish(&l);
}

static void initial_values_and_aliases(void **state) {
  linkage l = link_texts(".extern .func f(); .extern .global .u32 x; .visible .global .u64 t[2] = {f, x + 4};",
                         ".func g() { ret; } .visible .func f(); .alias f, g; .visible .global .u32 x = 3;", NULL);
  assert_int_equal(l.status, FF_OK);
  const ptx_var *t = ptx_find_var(l.linked, "t");
  assert_true(t->inits[0].symbol->func->has_body);
  assert_string_equal(t->inits[0].symbol->func->name, "g");
  assert_ptr_equal(t->inits[0].symbol->func->module, l.linked);
  assert_ptr_equal(t->inits[1].symbol->var, ptx_find_var(l.linked, "x"));
  assert_int_equal(t->inits[1].offset, 4);
  finish(&l);
}

static void provided_and_unused(void **state) {
  linkage l = link_texts(
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b); .extern .func nowhere(); .extern .global .u32 unused;\n"
      ".extern .shared .b8 dynamic[];\n" KERNEL
      "{ .param .b32 q; .param .b64 a; call (q), vprintf, (a, a); } mov.u64 d, dynamic; }",
      NULL, NULL);
  assert_int_equal(l.status, FF_OK);
  assert_false(ptx_find_func(l.linked, "vprintf")->has_body);
  finish(&l);
}

static void files_are_renumbered(void **state) {
  linkage l = link_texts(".file 1 \"a.cu\"\n.entry a() {\n.loc 1 5 0\nret; }",
                         ".file 1 \"b.cu\"\n.entry b() {\n.loc 1 6 0\nret; }", NULL);
  const ptx_instr *a = ptx_find_func(l.linked, "a")->instrs, *b = ptx_find_func(l.linked, "b")->instrs;
  assert_string_equal(l.linked->files[a->source_file], "a.cu");
  assert_string_equal(l.linked->files[b->source_file], "b.cu");
  assert_int_equal(b->source_line, 6);
  finish(&l);
}

static void refused(void **state) {
  refuse_link(".address_size 32\n.global .u32 x;", ".global .u32 y;", "have different address sizes");
  refuse_link(".extern .func f();\n" KERNEL "call f; }", NULL, "test.ptx:5:49: 'f' is declared but defined nowhere");
  refuse_link(".extern .global .u32 x;\n" KERNEL "mov.u64 d, x; }", NULL, "'x' is declared but defined nowhere");
  refuse_link(".extern .global .u32 x; .global .u64 t = x;", NULL, "'x' is declared but defined nowhere");
  refuse_link(".visible .func f() { ret; }", ".visible .func f() { ret; }", "'f' is defined twice");
  refuse_link(".visible .global .u32 x;", ".visible .global .u32 x;", "'x' is defined twice");
  refuse_link(".visible .global .u32 x;", ".visible .const .u32 x;", "as different things");
  refuse_link(".visible .global .u32 x;", ".visible .func x() { ret; }", "as different things");
  refuse_link(".extern .func f(.param .b32 a);", ".visible .func f(.param .b64 a) { ret; }",
              "with different parameters");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(externs_meet_definitions),
      cmocka_unit_test(private_names_stay_apart),
      cmocka_unit_test(weak_and_common),
      cmocka_unit_test(initial_values_and_aliases),
      cmocka_unit_test(provided_and_unused),
      cmocka_unit_test(files_are_renumbered),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
