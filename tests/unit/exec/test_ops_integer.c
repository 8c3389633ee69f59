/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic, logic, shifts, bit fields, moves and carries, against one-lane code written from the manual's
 * "Semantics" paragraphs. */
#include "unit/exec/ops_harness.h"

typedef __int128 wide;
typedef unsigned __int128 uwide;

/* The type that the operation works in. */
static ptx_type main_type(const form *f) { return f->instr.types[0]; }
static bool is_signed(ptx_type type) { return ptx_type_class(type) == 'S'; }

static wide extend(uint64_t value, uint32_t bits, bool sign) {
  uwide v = fit(value, bits);
  if (sign && bits && (v >> (bits - 1) & 1)) return (wide)v - ((wide)1 << bits);
  return (wide)v;
}
static wide clamp(wide x, wide low, wide high) { return x < low ? low : x > high ? high : x; }
static wide clamp_type(wide x, ptx_type type) {
  uint32_t bits = ptx_type_bits(type);
  return is_signed(type) ? clamp(x, -((wide)1 << (bits - 1)), ((wide)1 << (bits - 1)) - 1)
                         : clamp(x, 0, ((wide)1 << bits) - 1);
}

static bool is_packed(const form *f) {
  if (f->instr.type_count != 1) return false;
  return main_type(f) == PTX_U16X2 || main_type(f) == PTX_S16X2 || main_type(f) == PTX_U8X4 || main_type(f) == PTX_S8X4;
}

/* --- Arithmetic. --- */

static wide product_part(const form *f, wide a, wide b) {
  uint32_t bits = ptx_type_bits(main_type(f));
  wide t = (wide)((uwide)a * (uwide)b); /* signed: 64 bits times 64 bits fit; unsigned: the low 128 bits are wanted */
  if (has(f, PTX_MOD_HI)) return is_signed(main_type(f)) ? t >> bits : (wide)((uwide)a * (uwide)b >> bits);
  return t;
}
static wide product24(const form *f, const sample *x, int l) {
  bool s = is_signed(main_type(f));
  wide t = extend(x->s[0][l], 24, s) * extend(x->s[1][l], 24, s);
  return has(f, PTX_MOD_HI) ? (wide)extend((uint64_t)(t >> 16), 32, s) : t;
}
static wide divide(wide a, wide b) { return b == 0 ? -1 : a / b; }
static wide remainder_of(wide a, wide b) { return b == 0 ? a : a % b; }

/* The low 128 bits: a product of 64 by 64 bits and its addend may not fit. */
static wide sum(wide a, wide b) { return (wide)((unsigned __int128)a + (unsigned __int128)b); }

static void arithmetic(const form *f, sample *x, int l) {
  ptx_type type = main_type(f);
  uint32_t bits = ptx_type_bits(type);
  bool s = is_signed(type), is_wide = has(f, PTX_MOD_WIDE);
  uint32_t c_bits = is_wide ? 2 * bits : bits, d_bits = c_bits;
  wide a = extend(x->s[0][l], bits, s), b = extend(x->s[1][l], bits, s), c = extend(x->s[2][l], c_bits, s), r = 0;
  switch (f->instr.opcode) {
  case PTX_OP_ADD: r = a + b; break;
  case PTX_OP_SUB: r = a - b; break;
  case PTX_OP_MUL: r = product_part(f, a, b); break;
  case PTX_OP_MAD: r = sum(product_part(f, a, b), c); break;
  case PTX_OP_MUL24: r = product24(f, x, l); break;
  case PTX_OP_MAD24: r = product24(f, x, l) + c; break;
  case PTX_OP_SAD: r = c + (a < b ? b - a : a - b); break;
  case PTX_OP_DIV: r = divide(a, b); break;
  case PTX_OP_REM: r = remainder_of(a, b); break;
  case PTX_OP_ABS: r = a < 0 ? -a : a; break;
  case PTX_OP_NEG: r = -a; break;
  case PTX_OP_MIN: r = a < b ? a : b; break;
  case PTX_OP_MAX: r = a > b ? a : b; break;
  default: fail_msg("%s has no reference", f->name);
  }
  if (has(f, PTX_MOD_RELU) && r < 0) r = 0;
  if (has(f, PTX_MOD_SAT)) r = clamp_type(r, type);
  x->d[l] = fit((uint64_t)r, d_bits);
  x->carry_out = x->carry;
}

static bool is_arithmetic(const form *f) {
  if (f->instr.type_count != 1 || has(f, PTX_MOD_CC)) return false;
  ptx_type type = main_type(f);
  if ((ptx_type_class(type) != 'U' && ptx_type_class(type) != 'S') || is_packed(f)) return false;
  switch (f->instr.opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_MUL:
  case PTX_OP_MAD:
  case PTX_OP_MUL24:
  case PTX_OP_MAD24:
  case PTX_OP_SAD:
  case PTX_OP_DIV:
  case PTX_OP_REM:
  case PTX_OP_ABS:
  case PTX_OP_NEG:
  case PTX_OP_MIN:
  case PTX_OP_MAX: return true;
  default: return false;
  }
}

/* --- Packed halves and bytes. --- */

static void packed(const form *f, sample *x, int l) {
  ptx_type type = main_type(f);
  bool s = type == PTX_S16X2 || type == PTX_S8X4;
  uint32_t bits = type == PTX_U8X4 || type == PTX_S8X4 ? 8 : 16;
  uint64_t d = 0;
  for (uint32_t i = 0; i < 32 / bits; i++) {
    wide a = extend(x->s[0][l] >> bits * i, bits, s), b = extend(x->s[1][l] >> bits * i, bits, s), r = 0;
    switch (f->instr.opcode) {
    case PTX_OP_ADD: r = a + b; break;
    case PTX_OP_SUB: r = a - b; break;
    case PTX_OP_NEG: r = -a; break;
    case PTX_OP_MIN: r = a < b ? a : b; break;
    case PTX_OP_MAX: r = a > b ? a : b; break;
    default: fail_msg("%s has no reference", f->name);
    }
    if (has(f, PTX_MOD_RELU) && r < 0) r = 0;
    if (has(f, PTX_MOD_SAT)) r = clamp_type(r, bits == 8 ? (s ? PTX_S8 : PTX_U8) : (s ? PTX_S16 : PTX_U16));
    d |= fit((uint64_t)r, bits) << bits * i;
  }
  x->d[l] = d;
  x->carry_out = x->carry;
}

/* --- Carries. --- */

static void carries(const form *f, sample *x, int l) {
  uint32_t bits = ptx_type_bits(main_type(f));
  bool s = is_signed(main_type(f));
  uwide a = fit(x->s[0][l], bits), b = fit(x->s[1][l], bits), c = fit(x->s[2][l], bits), r;
  ptx_opcode op = f->instr.opcode;
  bool takes = op == PTX_OP_ADDC || op == PTX_OP_SUBC || op == PTX_OP_MADC;
  bool subtracts = op == PTX_OP_SUB || op == PTX_OP_SUBC;
  uwide in = takes ? x->carry >> l & 1 : subtracts;
  if (subtracts) r = a + fit((uint64_t)~b, bits) + in; /* the adder's carry, not a borrow */
  else {
    if (op == PTX_OP_MAD || op == PTX_OP_MADC) {
      a = fit((uint64_t)product_part(f, extend((uint64_t)a, bits, s), extend((uint64_t)b, bits, s)), bits);
      b = c;
    }
    r = a + b + in;
  }
  x->d[l] = fit((uint64_t)r, bits);
  bool out = r >> bits & 1;
  if (has(f, PTX_MOD_CC)) expect_pred(&x->carry_out, l, out);
  else x->carry_out = x->carry;
}
static bool is_carry(const form *f) {
  ptx_opcode op = f->instr.opcode;
  return has(f, PTX_MOD_CC) || op == PTX_OP_ADDC || op == PTX_OP_SUBC || op == PTX_OP_MADC;
}

/* --- Dot products. --- */

static void dot(const form *f, sample *x, int l) {
  bool sa = is_signed(f->instr.types[0]), sb = is_signed(f->instr.types[1]), four = f->instr.opcode == PTX_OP_DP4A;
  int first = has(f, PTX_MOD_HI) ? 2 : 0;
  wide r = (wide)x->s[2][l];
  for (int i = 0; i < (four ? 4 : 2); i++) {
    wide a = four ? extend(x->s[0][l] >> 8 * i, 8, sa) : extend(x->s[0][l] >> 16 * i, 16, sa);
    r += a * extend(x->s[1][l] >> 8 * (first + i), 8, sb);
  }
  x->d[l] = fit((uint64_t)r, 32);
  x->carry_out = x->carry;
}
static bool is_dot(const form *f) { return f->instr.opcode == PTX_OP_DP4A || f->instr.opcode == PTX_OP_DP2A; }

/* --- Bits. --- */

static uint64_t find_high(uint64_t value, uint32_t bits) { /* position of the highest set bit, or -1 */
  for (int i = (int)bits - 1; i >= 0; i--)
    if (value >> i & 1) return (uint64_t)i;
  return UINT32_MAX;
}
static uint64_t bfind(const form *f, uint64_t a, uint32_t bits) {
  if (is_signed(main_type(f)) && (a >> (bits - 1) & 1)) a = fit(~a, bits);
  uint64_t at = find_high(a, bits);
  return has(f, PTX_MOD_SHIFTAMT) && at != UINT32_MAX ? bits - 1 - at : at;
}
static uint64_t nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return UINT32_MAX;
  if (offset == 0) return mask >> base & 1 ? base : UINT32_MAX;
  int64_t left = offset > 0 ? offset : -(int64_t)offset;
  for (int at = (int)base; at >= 0 && at<32; at += offset> 0 ? 1 : -1)
    if ((mask >> at & 1) && --left == 0) return (uint64_t)at;
  return UINT32_MAX;
}
static uint64_t bfe(const form *f, uint64_t a, uint32_t at, uint32_t n, uint32_t bits) {
  uint32_t sign_at = at + n - 1 < bits - 1 ? at + n - 1 : bits - 1;
  uint64_t fill = is_signed(main_type(f)) && n ? a >> sign_at & 1 : 0, d = 0;
  for (uint32_t i = 0; i < bits; i++) d |= (i < n && at + i < bits ? a >> (at + i) & 1 : fill) << i;
  return d;
}
static uint64_t bfi(uint64_t a, uint64_t b, uint32_t at, uint32_t n, uint32_t bits) {
  for (uint32_t i = 0; i < n && at + i < bits; i++) b = (b & ~(UINT64_C(1) << (at + i))) | (a >> i & 1) << (at + i);
  return b;
}
static uint64_t bit_mask(const form *f, uint32_t a, uint32_t b) {
  if (has(f, PTX_MOD_WRAP)) a &= 31, b &= 31;
  uint64_t d = 0;
  for (uint32_t i = 0; i < b && i < 64; i++) d |= a < 32 && a + i < 32 ? UINT64_C(1) << (a + i) : 0;
  return d;
}
static uint64_t szext(const form *f, uint32_t a, uint32_t n) {
  if (has(f, PTX_MOD_WRAP)) n &= 31;
  if (n >= 32) return a;
  return n == 0 ? 0 : fit((uint64_t)extend(a, n, is_signed(main_type(f))), 32);
}
static uint64_t prmt(const form *f, uint64_t a, uint64_t b, uint32_t c) {
  static const char *const tables[6][4] = {{"3210", "4321", "5432", "6543"}, {"5670", "6701", "7012", "0123"},
                                           {"0000", "1111", "2222", "3333"}, {"3210", "3211", "3222", "3333"},
                                           {"0000", "1110", "2210", "3210"}, {"1010", "3232", "1010", "3232"}};
  static const ptx_mod modes[6] = {PTX_MOD_F4E, PTX_MOD_B4E, PTX_MOD_RC8, PTX_MOD_ECL, PTX_MOD_ECR, PTX_MOD_RC16};
  uint64_t bytes = b << 32 | a, d = 0;
  for (int m = 0; m < 6; m++)
    if (has(f, modes[m])) {
      for (int i = 0; i < 4; i++) d |= (bytes >> 8 * (tables[m][c & 3][3 - i] - '0') & 0xff) << 8 * i;
      return d;
    }
  for (int i = 0; i < 4; i++) {
    uint64_t byte = bytes >> 8 * (c >> 4 * i & 7) & 0xff;
    if (c >> 4 * i & 8) byte = byte & 0x80 ? 0xff : 0;
    d |= byte << 8 * i;
  }
  return d;
}
static uint64_t funnel(const form *f, uint64_t a, uint64_t b, uint32_t c) {
  uint32_t n = has(f, PTX_MOD_CLAMP) ? (c < 32 ? c : 32) : c & 31;
  uint64_t both = b << 32 | a;
  return has(f, PTX_MOD_L) ? (n == 32 ? a : both << n >> 32 & 0xffffffffu) : both >> n & 0xffffffffu;
}
static uint64_t shift(const form *f, uint64_t a, uint64_t n, uint32_t bits) {
  if (f->instr.opcode == PTX_OP_SHL) return n < bits ? a << n : 0;
  wide value = extend(a, bits, is_signed(main_type(f)));
  return (uint64_t)(n < bits ? value >> n : value < 0 ? -1 : 0);
}
static uint64_t population(uint64_t a) {
  uint64_t n = 0;
  for (; a; a >>= 1) n += a & 1;
  return n;
}
static uint64_t reverse(uint64_t a, uint32_t bits) {
  uint64_t d = 0;
  for (uint32_t i = 0; i < bits; i++) d |= (a >> i & 1) << (bits - 1 - i);
  return d;
}
static uint64_t look_up(const form *f, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t table = f->operands[4].bits, d = 0;
  for (int i = 0; i < 32; i++) d |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
  return d;
}

static void bit_operation(const form *f, sample *x, int l) {
  uint32_t bits = ptx_type_bits(main_type(f));
  uint64_t a = x->s[0][l], b = x->s[1][l], c = x->s[2][l], e = x->s[3][l], r = 0;
  switch (f->instr.opcode) {
  case PTX_OP_MOV: r = a; break;
  case PTX_OP_AND: r = a & b; break;
  case PTX_OP_OR: r = a | b; break;
  case PTX_OP_XOR: r = a ^ b; break;
  case PTX_OP_NOT: r = ~a; break;
  case PTX_OP_CNOT: r = !a; break;
  case PTX_OP_SHL:
  case PTX_OP_SHR: r = shift(f, a, b, bits); break;
  case PTX_OP_SHF: r = funnel(f, a, b, (uint32_t)c); break;
  case PTX_OP_LOP3: r = look_up(f, a, b, c); break;
  case PTX_OP_POPC:
    r = population(a);
    bits = 32;
    break;
  case PTX_OP_CLZ:
    r = find_high(a, bits) == UINT32_MAX ? bits : bits - 1 - find_high(a, bits);
    bits = 32;
    break;
  case PTX_OP_BFIND:
    r = bfind(f, a, bits);
    bits = 32;
    break;
  case PTX_OP_BREV: r = reverse(a, bits); break;
  case PTX_OP_FNS: r = nth_set((uint32_t)a, (uint32_t)b, (int32_t)c); break;
  case PTX_OP_BFE: r = bfe(f, a, b & 255, c & 255, bits); break;
  case PTX_OP_BFI: r = bfi(a, b, c & 255, e & 255, bits); break;
  case PTX_OP_BMSK: r = bit_mask(f, (uint32_t)a, (uint32_t)b); break;
  case PTX_OP_SZEXT: r = szext(f, (uint32_t)a, (uint32_t)b); break;
  case PTX_OP_PRMT: r = prmt(f, a, b, (uint32_t)c); break;
  default: fail_msg("%s has no reference", f->name);
  }
  x->d[l] = fit(r, bits);
  x->carry_out = x->carry;
}
static bool is_bits(const form *f) {
  if (f->dst_bits == 1) return false;
  switch (f->instr.opcode) {
  case PTX_OP_MOV:
  case PTX_OP_AND:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_NOT:
  case PTX_OP_CNOT:
  case PTX_OP_SHL:
  case PTX_OP_SHR:
  case PTX_OP_SHF:
  case PTX_OP_LOP3:
  case PTX_OP_POPC:
  case PTX_OP_CLZ:
  case PTX_OP_BFIND:
  case PTX_OP_BREV:
  case PTX_OP_FNS:
  case PTX_OP_BFE:
  case PTX_OP_BFI:
  case PTX_OP_BMSK:
  case PTX_OP_SZEXT:
  case PTX_OP_PRMT: return true;
  default: return false;
  }
}

/* --- Predicates. --- */

static void predicate_logic(const form *f, sample *x, int l) {
  bool a = lane_pred(x, 0, l) != f->operands[1].negated, b = lane_pred(x, 1, l) != f->operands[2].negated, r = false;
  switch (f->instr.opcode) {
  case PTX_OP_MOV: r = a; break;
  case PTX_OP_NOT: r = !a; break;
  case PTX_OP_AND: r = a && b; break;
  case PTX_OP_OR: r = a || b; break;
  case PTX_OP_XOR: r = a != b; break;
  default: fail_msg("%s has no reference", f->name);
  }
  expect_pred(&x->p, l, r);
  x->carry_out = x->carry;
}
static bool is_predicate_logic(const form *f) { return f->instr.type_count == 1 && main_type(f) == PTX_PRED; }

/* --- The tests. --- */

static void visit_arithmetic(form *f, void *context) { form_check(f, 40, arithmetic, NULL); }
static void visit_packed(form *f, void *context) { form_check(f, 40, packed, NULL); }
static void visit_carries(form *f, void *context) { form_check(f, 40, carries, NULL); }
static void visit_dot(form *f, void *context) { form_check(f, 40, dot, NULL); }
static void visit_bits(form *f, void *context) {
  if (f->instr.opcode != PTX_OP_LOP3) {
    form_check(f, 40, bit_operation, NULL);
    return;
  }
  for (uint64_t table = 0; table < 256; table++) {
    f->operands[4] = (ptx_operand){.kind = PTX_OPERAND_INT, .bits = table};
    form_check(f, 2, bit_operation, NULL);
  }
}
static void visit_predicates(form *f, void *context) {
  for (int negated = 0; negated < 1 << f->sources; negated++) {
    for (int i = 0; i < f->sources; i++) f->operands[i + 1].negated = negated >> i & 1;
    form_check(f, 10, predicate_logic, NULL);
  }
}

static void test_arithmetic(void **state) {
  assert_in_range(each_form(is_arithmetic, visit_arithmetic, NULL), 70, 1000);
}
static void test_packed(void **state) { assert_in_range(each_form(is_packed, visit_packed, NULL), 10, 1000); }
static void test_carries(void **state) { assert_in_range(each_form(is_carry, visit_carries, NULL), 48, 1000); }
static void test_dot(void **state) { assert_in_range(each_form(is_dot, visit_dot, NULL), 12, 1000); }
static void test_bits(void **state) { assert_in_range(each_form(is_bits, visit_bits, NULL), 70, 1000); }
static void test_predicates(void **state) {
  assert_int_equal(each_form(is_predicate_logic, visit_predicates, NULL), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_packed), cmocka_unit_test(test_carries),
      cmocka_unit_test(test_dot),        cmocka_unit_test(test_bits),   cmocka_unit_test(test_predicates),
  };
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
