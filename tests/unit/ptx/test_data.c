/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and their initial values, and constant expressions. */
#include "ptx_test.h"

static ptx_module *module;

static const ptx_var *declare(const char *text) {
  ff_text whole = {0};
  ff_text_add(&whole, "%s%s", HEAD, text);
  ptx_module_free(module);
  module = parse(whole.chars);
  free(whole.chars);
  assert_true(module->var_count > 0);
  return module->vars[module->var_count - 1];
}

static int release(void **state) {
  ptx_module_free(module);
  module = NULL;
  return 0;
}

static uint64_t number_at(const ptx_var *var, uint64_t at, size_t bytes) {
  uint64_t value = 0;
  assert_true(at + bytes <= var->size);
  memcpy(&value, var->data + at, bytes);
  return value;
}

static void shapes(void **state) {
  const ptx_var *var = declare(".global .align 16 .b8 a[3][5];");
  assert_int_equal(var->size, 15);
  assert_int_equal(var->align, 16);
  assert_null(var->data);
  var = declare(".const .v4 .f32 v[2];");
  assert_int_equal(var->size, 32);
  assert_int_equal(var->align, 16);
  assert_int_equal(var->space, PTX_SPACE_CONST);
  var = declare(".extern .shared .align 8 .b8 dynamic[];");
  assert_true(var->unsized && var->size == 0 && var->linkage == PTX_LINK_EXTERN);
  var = declare(".visible .global .attribute(.managed) .u64 m;");
  assert_true(var->managed && var->linkage == PTX_LINK_VISIBLE);
  var = declare(".global .texref t;");
  assert_int_equal(var->size, 8);
  var = declare(".global .b8 n[0x10 * (1 << 2) - 64 / 8 % 3];");
  assert_int_equal(var->size, 62);
}

static void numbers(void **state) {
  const ptx_var *var = declare(".global .u16 a[5] = {1, -1, 0xFFFF, 70000};");
  assert_int_equal(number_at(var, 0, 2), 1);
  assert_int_equal(number_at(var, 2, 2), 0xFFFF);
  assert_int_equal(number_at(var, 6, 2), 70000 & 0xFFFF);
  assert_int_equal(number_at(var, 8, 2), 0);
  var = declare(".global .s64 a = -2;");
  assert_true(number_at(var, 0, 8) == UINT64_MAX - 1);
  var = declare(".global .u32 a[] = {1, 2, 3};");
  assert_int_equal(var->size, 12);
  assert_false(var->unsized);
  var = declare(".global .u8 a[2][3] = {{1}, {4, 5}};");
  assert_int_equal(number_at(var, 0, 6), 0x504000001);
  var = declare(".global .u8 a[][2] = {1, 2, 3};");
  assert_int_equal(var->size, 4);
}

static void float_bits(void **state) {
  const ptx_var *var = declare(".global .f32 a[6] = {1.0, 0f7F800001, -0.5, 2, 1e-46, 0dC000000000000000};");
  static const uint32_t singles[] = {0x3F800000, 0x7F800001, 0xBF000000, 0x40000000, 0, 0xC0000000};
  for (int i = 0; i < 6; i++) assert_int_equal(number_at(var, (uint64_t)i * 4, 4), singles[i]);
  var = declare(".global .f64 a[2] = {0.1, 0f3F800000};");
  assert_true(number_at(var, 0, 8) == 0x3FB999999999999Aull);
  assert_true(number_at(var, 8, 8) == 0x3FF0000000000000ull);
  var = declare(
      ".global .f16 a[11] = {1, 65504, 65519.99, 65520, 5.9604644775390625e-8, 2.98e-8, 0.00006103515625, -2, 2049, 0.0, 0d8000000000000000};");
  static const uint16_t halves[] = {0x3C00, 0x7BFF, 0x7BFF, 0x7C00, 1, 0, 0x0400, 0xC000, 0x6800, 0, 0x8000};
  for (int i = 0; i < 11; i++) assert_int_equal(number_at(var, (uint64_t)i * 2, 2), halves[i]);
  var = declare(".global .bf16 a[3] = {1.0, 0f3F808000, 0f3F818000};");
  assert_int_equal(number_at(var, 0, 2), 0x3F80);
  assert_int_equal(number_at(var, 2, 2), 0x3F80); /* a tie goes to even */
  assert_int_equal(number_at(var, 4, 2), 0x3F82);
}

static void addresses(void **state) {
  const ptx_var *var = declare(".func f();\n.global .u32 x;\n.func f() { ret; }\n"
                               ".global .u64 t[4] = {f, x + 8 - 4, generic(x), later};\n.const .u32 later = 1;\n"
                               ".global .b8 p[12] = {7, 0xFF(x), 0xFF00(x), 0xFF00000000000000(generic(x) + 1)};");
  const ptx_var *t = ptx_find_var(module, "t");
  assert_int_equal(t->init_count, 4);
  assert_ptr_equal(t->inits[0].symbol->func, ptx_find_func(module, "f"));
  assert_int_equal(t->inits[1].offset, 4);
  assert_int_equal(t->inits[1].at, 8);
  assert_int_equal(t->inits[1].bytes, 8);
  assert_false(t->inits[1].generic);
  assert_true(t->inits[2].generic);
  assert_ptr_equal(t->inits[3].symbol->var, ptx_find_var(module, "later"));
  assert_int_equal(var->init_count, 3);
  assert_int_equal(var->inits[0].at, 1);
  assert_int_equal(var->inits[0].bytes, 1);
  assert_int_equal(var->inits[1].shift, 8);
  assert_int_equal(var->inits[2].shift, 56);
  assert_true(var->inits[2].generic && var->inits[2].offset == 1);
}

static void merging(void **state) {
  declare(
      ".extern .global .u32 x[];\n.entry k() { .reg .b64 d; mov.u64 d, x; ret; }\n.visible .global .u32 x[2] = {1, 2};\n.extern .global .u32 x[];");
  assert_int_equal(module->var_count, 1);
  const ptx_var *x = module->vars[0];
  assert_int_equal(x->size, 8);
  assert_int_equal(x->linkage, PTX_LINK_VISIBLE);
  assert_ptr_equal(module->funcs[0]->instrs[0].operands[1].symbol->var, x);
}

static void locals(void **state) {
  declare(
      ".global .u32 g;\n.entry k(.param .u64 p) { .shared .u32 s[4], t; { .param .b32 q; .param .b32 r; } { .param .b32 q; }\n"
      ".global .u32 kept = 9; .reg .b64 d; mov.u64 d, kept; }");
  const ptx_func *k = module->funcs[0];
  assert_int_equal(k->var_count, 1 + 2 + 3);
  assert_string_equal(k->vars[2]->name, "t");
  assert_ptr_equal(k->vars[4]->func, k);
  assert_int_equal(k->vars[4]->index, 4);
  assert_int_equal(module->var_count, 2);
  assert_null(module->vars[1]->func);
  assert_ptr_equal(k->instrs[0].operands[1].symbol->var, module->vars[1]);
  assert_int_equal(number_at(module->vars[1], 0, 4), 9);
}

static void expressions(void **state) {
  static const struct {
    const char *text;
    uint64_t value;
  } cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},
      {"7 / 2 * 2", 6},
      {"-7 / 2", (uint64_t)-3},
      {"-7 % 3", (uint64_t)-1},
      {"1 << 2 + 1", 8},
      {"-1 >> 1", UINT64_MAX},
      {"0xFFFFFFFFFFFFFFFF >> 63", 1},
      {"1 << 64", 0},
      {"-8 >> 70", UINT64_MAX},
      {"6 & 3 | 8 ^ 1", 11},
      {"~0 == -1", 1},
      {"!3", 0},
      {"!0", 1},
      {"2 < 3", 1},
      {"-1 < 0", 1},
      {"-1 < 0U", 0},
      {"1 ? 2 : 3", 2},
      {"0 ? 2 : 0 ? 4 : 5", 5},
      {"1 || 1 / 1 && 0", 1},
      {"(.u64) -1 > 0", 1},
      {"(.s64) 2.9", 2},
      {"2.5 > 2 && 1.0 == 1", 1},
      {"WARP_SZ * 2", 64},
      {"(-9223372036854775807 - 1) / -1", UINT64_C(1) << 63},
      {"-9223372036854775808 / -1", 0},
      {"- - 5", 5},
      {"+3", 3},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text text = {0};
    ff_text_add(&text, ".global .u64 a = %s;", cases[i].text);
    const ptx_var *var = declare(text.chars);
    if (number_at(var, 0, 8) != cases[i].value)
      fail_msg("%s gives %llu", cases[i].text, (unsigned long long)number_at(var, 0, 8));
    free(text.chars);
  }
}

static void float_expressions(void **state) {
  static const struct {
    const char *text;
    double value;
  } cases[] = {
      {"1.5 + 2", 3.5},
      {"1 - 0.25", 0.75},
      {"1.5 * -2", -3},
      {"1 / 4.0", 0.25},
      {"0f3F000000 + 1", 1.5},
      {"-(2.5)", -2.5},
      {"1.0 < 2 ? 3.5 : 4", 3.5},
      {"1.0 >= 2", 0},
      {"1.5 <= 1.5", 1},
      {"2.0 != 2", 0},
      {"!0.0", 1},
      {"18446744073709551615", 0x1p64},
      {"(.s64) 1e30", 0x1p63},
      {"(.s64) -1e30", -0x1p63},
      {"(.u64) -1.5", 0},
      {"(.u64) 1e30", 0x1p64},
      {"1.5 > 1", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text text = {0};
    ff_text_add(&text, ".global .f64 a = %s;", cases[i].text);
    uint64_t bits = number_at(declare(text.chars), 0, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (value != cases[i].value) fail_msg("%s gives %g", cases[i].text, value);
    free(text.chars);
  }
}

static void refused(void **state) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {".global .u32 a[2] = {1, 2, 3};", "more initial values than 'a' has room for"},
      {".global .u32 a = missing;", "'missing' is not declared"},
      {".global .u16 a = a;", "an address does not fit in an element of type .u16"},
      {".global .f64 a = a;", "an address does not fit"},
      {".global .b8 a[4] = {0xF0(a)};", "a mask selects one byte"},
      {".global .u32 a = 1 % 0;", "division by zero"},
      {".global .u32 a = ~1.5;", "does not take a floating-point number"},
      {".global .u32 a = 1.5 & 1;", "this operator does not take floating-point numbers"},
      {".global .u32 a = (.u32) 1;", "a cast is (.s64) or (.u64)"},
      {".global .b8 a[1073741825] = {1};", "more than 1 GiB of initial values"},
      {".global .b8 a[2][1099511627775] = {{}, {1}};", "larger than 1 TiB"},
      {".global .v4 .f32 a[1099511627776];", "'a' is larger than 1 TiB"},
      {".entry k() { .shared .u32 a; .local .u32 a; }", "'a' is declared already"},
      {".global a;", "a declaration needs a type"},
      {".global .u32 a[-1];", "a dimension from 0"},
      {".global .u32 a[1][1][1][1][1][1][1][1][1];", "more than 8 dimensions"},
      {".global .u32 1a;", "this is not a number"},
      {".shared .loud .u32 a;", "'.loud' does not belong in a declaration"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ff_text text = {0};
    ff_text_add(&text, "%s%s", HEAD, cases[i].text);
    refuse(text.chars, cases[i].message);
    free(text.chars);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes),      cmocka_unit_test(numbers),           cmocka_unit_test(float_bits),
      cmocka_unit_test(addresses),   cmocka_unit_test(merging),           cmocka_unit_test(locals),
      cmocka_unit_test(expressions), cmocka_unit_test(float_expressions), cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, release);
}
