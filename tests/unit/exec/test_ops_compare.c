/* SPDX-License-Identifier: Apache-2.0 */
/* setp, set, selp, slct: every comparison of every type, alone and combined with a predicate, with one and with two
 * destinations. */
#include "unit/exec/ops_harness.h"
#include "unit/exec/ops_rounding.h"

/* --- Comparison: less, equal, greater or unordered; then which of these the operator accepts. --- */

enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static int relation(long double a, long double b) {
  return isnan(a) || isnan(b) ? UNORDERED : a < b ? LESS : a > b ? GREATER : EQUAL;
}

static int accepted(const form *f) {
  static const struct {
    ptx_mod mod;
    int relations;
  } table[] = {
      {PTX_MOD_EQ, EQUAL},
      {PTX_MOD_NE, LESS | GREATER},
      {PTX_MOD_LT, LESS},
      {PTX_MOD_LE, LESS | EQUAL},
      {PTX_MOD_GT, GREATER},
      {PTX_MOD_GE, GREATER | EQUAL},
      {PTX_MOD_LO, LESS},
      {PTX_MOD_LS, LESS | EQUAL},
      {PTX_MOD_HI, GREATER},
      {PTX_MOD_HS, GREATER | EQUAL},
      {PTX_MOD_EQU, EQUAL | UNORDERED},
      {PTX_MOD_NEU, LESS | GREATER | UNORDERED},
      {PTX_MOD_LTU, LESS | UNORDERED},
      {PTX_MOD_LEU, LESS | EQUAL | UNORDERED},
      {PTX_MOD_GTU, GREATER | UNORDERED},
      {PTX_MOD_GEU, GREATER | EQUAL | UNORDERED},
      {PTX_MOD_NUM, LESS | EQUAL | GREATER},
      {PTX_MOD_NAN, UNORDERED},
  };
  for (uint32_t i = 0; i < COUNT(table); i++)
    if (has(f, table[i].mod)) return table[i].relations;
  fail_msg("%s has no comparison", f->name);
  return 0;
}

static ptx_type compared_type(const form *f) { return f->instr.types[f->instr.type_count - 1]; }

static long double value_of(const form *f, uint64_t bits) {
  bool ftz = has(f, PTX_MOD_FTZ);
  switch (compared_type(f)) {
  case PTX_F32: return decode(&format_f32, ftz && !(bits & 0x7f800000) ? bits & 0x80000000 : bits);
  case PTX_F64: return f64_of(bits);
  case PTX_F16:
  case PTX_F16X2: return decode(&format_f16, ftz && !(bits & 0x7c00) ? bits & 0x8000 : bits);
  case PTX_BF16:
  case PTX_BF16X2: return decode(&format_bf16, bits);
  case PTX_S16: return (int16_t)bits;
  case PTX_S32: return (int32_t)bits;
  case PTX_S64: return (int64_t)bits;
  default: return bits; /* long double holds 64 bits */
  }
}

/* The predicate source stands behind a and b; how it is combined is the variant of the instruction. */
static bool combined(const form *f, const sample *x, int l, bool compared) {
  bool c = lane_pred(x, 2, l) != f->operands[3].negated;
  if (f->instr.operand_count < 4) return compared;
  ptx_mod last = f->instr.mods[f->instr.mod_count - 1];
  for (int i = 1; i < f->instr.mod_count; i++)
    if (f->instr.mods[i] == PTX_MOD_AND || f->instr.mods[i] == PTX_MOD_OR || f->instr.mods[i] == PTX_MOD_XOR)
      last = f->instr.mods[i];
  return last == PTX_MOD_AND ? compared && c : last == PTX_MOD_OR ? compared || c : compared != c;
}

static bool is_pair(const form *f) { return compared_type(f) == PTX_F16X2 || compared_type(f) == PTX_BF16X2; }

static uint64_t true_value(const form *f) {
  switch (f->instr.types[0]) {
  case PTX_F32: return 0x3f800000;
  case PTX_F16:
  case PTX_F16X2: return 0x3c00;
  case PTX_BF16:
  case PTX_BF16X2: return 0x3f80;
  case PTX_U16:
  case PTX_S16: return 0xffff;
  default: return is_pair(f) ? 0xffff : 0xffffffff;
  }
}

static void comparison(const form *f, sample *x, int l) {
  uint64_t a = x->s[0][l], b = x->s[1][l], half = 0xffff;
  int wanted = accepted(f);
  x->carry_out = x->carry;
  if (!is_pair(f)) {
    bool t = wanted & relation(value_of(f, a), value_of(f, b));
    expect_pred(&x->p, l, combined(f, x, l, t));
    expect_pred(&x->q, l, combined(f, x, l, !t));
    x->d[l] = combined(f, x, l, t) ? true_value(f) : 0;
    return;
  }
  bool low = wanted & relation(value_of(f, a & half), value_of(f, b & half));
  bool high = wanted & relation(value_of(f, a >> 16), value_of(f, b >> 16));
  expect_pred(&x->p, l, combined(f, x, l, low));
  expect_pred(&x->q, l, combined(f, x, l, high));
  x->d[l] = (combined(f, x, l, low) ? true_value(f) : 0) | (combined(f, x, l, high) ? true_value(f) << 16 : 0);
}

static void add_mod(form *f, ptx_mod mod) { /* second place: behind the comparison */
  memmove(f->instr.mods + 2, f->instr.mods + 1, sizeof *f->instr.mods * (size_t)(f->instr.mod_count - 1));
  f->instr.mods[1] = (uint16_t)mod;
  f->instr.mod_count++;
}

static void visit_comparison(form *f, void *context) {
  static const ptx_mod booleans[] = {PTX_MOD_AND, PTX_MOD_OR, PTX_MOD_XOR};
  form_check(f, 16, comparison, NULL);
  bool setp = f->instr.opcode == PTX_OP_SETP;
  if (setp) {
    f->operands[0].kind = PTX_OPERAND_REG_PAIR;
    f->operands[0].reg2 = 0;
    form_check(f, 8, comparison, NULL);
  }
  for (int variant = 0; variant < 6; variant++) {
    form g = *f;
    g.instr.operands = g.operands;
    g.func.regs = g.regs;
    add_mod(&g, booleans[variant % 3]);
    g.operands[3] = (ptx_operand){.kind = PTX_OPERAND_REG, .reg = 0, .negated = variant & 1};
    g.instr.operand_count = 4;
    if (variant < 3) g.operands[0].kind = PTX_OPERAND_REG;
    form_check(&g, 4, comparison, NULL);
  }
}
static bool is_comparison(const form *f) { return f->instr.opcode == PTX_OP_SETP || f->instr.opcode == PTX_OP_SET; }

/* --- Selection. --- */

static void selection(const form *f, sample *x, int l) {
  bool first;
  if (f->instr.opcode == PTX_OP_SELP) first = lane_pred(x, 2, l) != f->operands[3].negated;
  else if (compared_type(f) == PTX_S32) first = (int32_t)x->s[2][l] >= 0;
  else first = f32_of(has(f, PTX_MOD_FTZ) && !(x->s[2][l] & 0x7f800000) ? 0 : x->s[2][l]) >= 0;
  x->d[l] = x->s[first ? 0 : 1][l];
  x->carry_out = x->carry;
}
static void visit_selection(form *f, void *context) {
  form_check(f, 32, selection, NULL);
  if (f->instr.opcode != PTX_OP_SELP) return;
  f->operands[3].negated = true;
  form_check(f, 8, selection, NULL);
}
static bool is_selection(const form *f) { return f->instr.opcode == PTX_OP_SELP || f->instr.opcode == PTX_OP_SLCT; }

static void test_comparison(void **state) {
  assert_in_range(each_form(is_comparison, visit_comparison, NULL), 600, 2000);
}
static void test_selection(void **state) { assert_in_range(each_form(is_selection, visit_selection, NULL), 40, 100); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_comparison), cmocka_unit_test(test_selection)};
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
