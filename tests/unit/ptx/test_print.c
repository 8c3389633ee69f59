/* SPDX-License-Identifier: Apache-2.0 */
/* Printing: single instructions as a message shows them, and whole modules that parse back to the same module. */
#include "ptx_test.h"

#include <dirent.h>

static void instructions(void **state) {
  ptx_module *m = parse(
      HEAD
      ".extern .func (.param .b32 r) f(.param .b64 a);\n.global .b32 g[4];\n"
      ".entry k() { .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .v2 .f32 v; .param .b64 a; .param .b32 r;\n"
      "@%p1 fma.rn.f32 %f1,%f2,%f3,0f3F800000;\n"
      "L: @!%p2 bra L;\n"
      "ld.global.nc.L2::128B.v2.u32 {%r1,_},[%rd1+-4];\n"
      "ld.global.u32 %r1, [g+8].unified;\n"
      "setp.ne.and.s32 %p1|_, %r1, 0x10, !%p2;\n"
      "call.uni (r), f, (a);\n"
      "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];\n"
      "vadd4.u32.u32.u32.sat %r1.b20, %r2.b7654, -%r3, %r4;\n"
      "mov.f64 v.x, -1.5;\n"
      "T: .branchtargets L, L; brx.idx %r1, T;\n"
      "odd.new  %r1 , [ %r2 ];\n"
      "mov.u32 %r1, %laneid; }");
  const ptx_func *k = ptx_find_func(m, "k");
  static const char *const lines[] = {"@%p1 fma.rn.f32 %f1, %f2, %f3, 0f3F800000;",
                                      "@!%p2 bra L;",
                                      "ld.global.nc.L2::128B.v2.u32 {%r1, _}, [%rd1+-4];",
                                      "ld.global.u32 %r1, [g+8].unified;",
                                      "setp.ne.and.s32 %p1|_, %r1, 16, !%p2;",
                                      "call.uni (r), f, (a);",
                                      "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
                                      "vadd4.u32.u32.u32.sat %r1.b20, %r2.b7654, -%r3, %r4;",
                                      "mov.f64 v.x, 0dBFF8000000000000;",
                                      "brx.idx %r1, {L, L};",
                                      "odd.new %r1 , [ %r2 ];",
                                      "mov.u32 %r1, %laneid;"};
  for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) expect_line(k, i, lines[i]);
  ptx_module_free(m);
}

static bool same_operand(const ptx_operand *a, const ptx_operand *b) {
  if (a->kind != b->kind || a->negated != b->negated || a->reg != b->reg || a->reg2 != b->reg2 || a->label != b->label)
    return false;
  if (a->sreg != b->sreg || a->selector != b->selector || a->offset != b->offset || a->bits != b->bits) return false;
  if (!a->symbol != !b->symbol || !a->prototype != !b->prototype || a->element_count != b->element_count) return false;
  if (a->symbol && !a->symbol->var != !b->symbol->var) return false;
  for (uint32_t i = 0; i < a->element_count; i++)
    if (!same_operand(&a->elements[i], &b->elements[i])) return false;
  return true;
}

static bool same_instr(const ptx_instr *a, const ptx_instr *b) {
  if (a->opcode != b->opcode || a->guard != b->guard || a->guard_negated != b->guard_negated || a->vector != b->vector)
    return false;
  if (a->mod_count != b->mod_count || a->type_count != b->type_count || a->operand_count != b->operand_count)
    return false;
  if (a->source_file != b->source_file || a->source_line != b->source_line) return false;
  if (memcmp(a->mods, b->mods, sizeof a->mods) || memcmp(a->types, b->types, sizeof a->types)) return false;
  if (memcmp(a->mod_set, b->mod_set, sizeof a->mod_set) || a->type_words != b->type_words) return false;
  for (uint32_t i = 0; i < a->operand_count; i++)
    if (!same_operand(&a->operands[i], &b->operands[i])) return false;
  return !a->text || strcmp(a->text, b->text) == 0;
}

static void expect_same_var(const ptx_var *a, const ptx_var *b) {
  assert_int_equal(a->space, b->space);
  assert_int_equal(a->linkage, b->linkage);
  assert_int_equal(a->type, b->type);
  assert_int_equal(a->vector, b->vector);
  assert_int_equal(a->align, b->align);
  assert_int_equal(a->size, b->size);
  assert_int_equal(a->unsized, b->unsized);
  assert_int_equal(a->managed, b->managed);
  assert_int_equal(a->pointer, b->pointer);
  assert_int_equal(a->reg, b->reg);
  assert_int_equal(!a->data, !b->data);
  if (a->data && a->size) assert_memory_equal(a->data, b->data, a->size);
  assert_int_equal(a->init_count, b->init_count);
  for (uint32_t i = 0; i < a->init_count; i++) {
    assert_int_equal(a->inits[i].at, b->inits[i].at);
    assert_int_equal(a->inits[i].bytes, b->inits[i].bytes);
    assert_int_equal(a->inits[i].shift, b->inits[i].shift);
    assert_int_equal(a->inits[i].offset, b->inits[i].offset);
    assert_int_equal(a->inits[i].generic, b->inits[i].generic);
    assert_string_equal(a->inits[i].symbol->name, b->inits[i].symbol->name);
  }
}

static void expect_same_func(const ptx_func *a, const ptx_func *b) {
  assert_int_equal(a->entry, b->entry);
  assert_int_equal(a->has_body, b->has_body);
  assert_int_equal(a->noreturn, b->noreturn);
  assert_int_equal(a->linkage, b->linkage);
  assert_int_equal(a->param_count, b->param_count);
  assert_int_equal(a->result_count, b->result_count);
  assert_int_equal(a->var_count, b->var_count);
  for (uint32_t i = 0; i < a->var_count; i++) expect_same_var(a->vars[i], b->vars[i]);
  assert_int_equal(a->reg_count, b->reg_count);
  for (uint32_t i = 0; i < a->reg_count; i++) assert_int_equal(a->regs[i].type, b->regs[i].type);
  assert_memory_equal(a->maxntid, b->maxntid, sizeof a->maxntid);
  assert_memory_equal(a->reqntid, b->reqntid, sizeof a->reqntid);
  assert_memory_equal(a->cluster, b->cluster, sizeof a->cluster);
  assert_int_equal(a->minnctapersm, b->minnctapersm);
  assert_int_equal(a->maxnreg, b->maxnreg);
  assert_int_equal(a->instr_count, b->instr_count);
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (same_instr(&a->instrs[i], &b->instrs[i])) continue;
    ff_text line = {0};
    ptx_print_instr(a, &a->instrs[i], &line);
    fail_msg("%s: instruction %u changed: %s", a->name, i, line.chars);
  }
}

static void expect_same_module(const ptx_module *a, const ptx_module *b) {
  assert_int_equal(a->version_major, b->version_major);
  assert_int_equal(a->version_minor, b->version_minor);
  assert_int_equal(a->target, b->target);
  assert_int_equal(a->target_suffix, b->target_suffix);
  assert_int_equal(a->address_size, b->address_size);
  assert_int_equal(a->var_count, b->var_count);
  for (uint32_t i = 0; i < a->var_count; i++) {
    assert_string_equal(a->vars[i]->name, b->vars[i]->name);
    expect_same_var(a->vars[i], b->vars[i]);
  }
  assert_int_equal(a->func_count, b->func_count);
  for (uint32_t i = 0; i < a->func_count; i++) {
    const ptx_func *other = ptx_find_func(b, a->funcs[i]->name);
    assert_non_null(other);
    expect_same_func(a->funcs[i]->symbol.func, other);
  }
}

/* Text -> module -> text -> module -> text: the modules are the same, and so are the texts. */
static void expect_round_trip(const char *text) {
  ff_text first = {0}, second = {0};
  ptx_module *m = parse(text);
  ptx_print_module(m, &first);
  ptx_module *again = parse(first.chars);
  expect_same_module(m, again);
  ptx_print_module(again, &second);
  assert_string_equal(first.chars, second.chars);
  ptx_module_free(m);
  ptx_module_free(again);
  free(first.chars);
  free(second.chars);
}

/* The seeds of the fuzzer hold every form of statement. */
static void corpus(void **state) {
  static const char folder[] = FF_SOURCE_DIR "/tests/fuzz/corpus/ptx";
  DIR *entries = opendir(folder);
  int files = 0;
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (!strstr(entry->d_name, ".ptx")) continue;
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", folder, entry->d_name);
    char *text;
    size_t size;
    assert_int_equal(ff_file_read(path.chars, 0, &text, &size, NULL), FF_OK);
    expect_round_trip(text);
    free(text);
    free(path.chars);
    files++;
  }
  closedir(entries);
  assert_true(files >= 8);
}

static void names_that_repeat(void **state) {
  expect_round_trip(HEAD ".global .u32 x; .global .u32 %r3;\n"
                         ".entry k(.param .u32 x) { .reg .b32 %r<4>; .local .b8 x$1[4];\n"
                         "{ .reg .b32 %r<4>; .reg .b32 x; .param .b32 q; mov.b32 %r3, x; L: bra L; }\n"
                         "{ .reg .v2 .b32 v; .reg .b32 v_x; .param .b32 q; mov.b32 v.x, v_x; L: bra L; }\n"
                         "ld.param.u32 %r1, [x]; mov.u64 %r2, x$1; }");
}

static void small_floats(void **state) {
  expect_round_trip(HEAD
                    ".global .bf16 b[4] = {1.0, 0f7FC00000, -2.5, 0f7F800000};\n"
                    ".global .f16 h[6] = {1.0, 0f7FC00000, -5.9604644775390625e-8, 0fFF800000, 65504, 0.333};\n"
                    ".global .f16x2 x[2] = {0f12345678, 0f7F800001};\n.global .b128 w = 5;\n.global .pred p = 1;\n");
}

static void unified_addresses(void **state) {
  expect_round_trip(
      HEAD ".entry k() { .reg .b32 r; .reg .b64 d; ld.global.b32 r, [d].unified; ld.global.unified.b32 r, [d];\n"
           "ld.global.b32.unified r, r; st.global.b32 [d].unified, r; ld.unified.b32 r, [d].unified, d; }");
}

static void registers_by_range(void **state) {
  ff_text text = {0};
  ptx_module *m = parse(HEAD ".entry k() { .reg .b32 %r<100>; .reg .b32 %r100, one0, a5; .reg .b64 %r1x<2>; ret; }");
  ptx_print_module(m, &text);
  assert_non_null(strstr(text.chars, ".reg .b32 %r<101>;"));
  assert_non_null(strstr(text.chars, ".reg .b32 one0;"));
  assert_non_null(strstr(text.chars, ".reg .b32 a5;"));
  assert_non_null(strstr(text.chars, ".reg .b64 %r1x<2>;"));
  free(text.chars);
  ptx_module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(instructions),       cmocka_unit_test(corpus),       cmocka_unit_test(names_that_repeat),
      cmocka_unit_test(registers_by_range), cmocka_unit_test(small_floats), cmocka_unit_test(unified_addresses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
