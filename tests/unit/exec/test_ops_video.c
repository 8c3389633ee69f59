/* SPDX-License-Identifier: Apache-2.0 */
/* The video instructions: every mnemonic with random types, modifiers and selectors, against the manual's
 * pseudocode. */
#include "unit/exec/ops_harness.h"

typedef __int128 wide;

static wide clamp(wide x, wide low, wide high) { return x < low ? low : x > high ? high : x; }

/* --- What the instruction says. --- */

typedef struct part { /* bits, and where they start */
  uint32_t bits, at;
} part;

static part part_of(uint32_t selector) {
  if (!selector) return (part){32, 0};
  uint32_t bits = selector >> 28 == 0xb ? 8 : 16;
  return (part){bits, (selector & 15) * bits};
}
static wide take(uint64_t word, part p, bool sign) {
  uint64_t v = fit(word >> p.at, p.bits);
  return sign && (v >> (p.bits - 1) & 1) ? (wide)v - ((wide)1 << p.bits) : (wide)v;
}
static bool is_vset(const form *f) {
  return f->instr.opcode == PTX_OP_VSET || f->instr.opcode == PTX_OP_VSET2 || f->instr.opcode == PTX_OP_VSET4;
}
static bool sign_at(const form *f, int from_end) {
  return f->instr.types[f->instr.type_count - 1 - from_end] == PTX_S32;
}
static bool dst_sign(const form *f) { return !is_vset(f) && f->instr.types[0] == PTX_S32; }
static bool compare(const form *f, wide a, wide b) {
  return has(f, PTX_MOD_EQ)   ? a == b
         : has(f, PTX_MOD_NE) ? a != b
         : has(f, PTX_MOD_LT) ? a < b
         : has(f, PTX_MOD_LE) ? a <= b
         : has(f, PTX_MOD_GT) ? a > b
                              : a >= b;
}

/* --- Scalar forms. --- */

static wide primary(const form *f, wide a, wide b) {
  switch (f->instr.opcode) {
  case PTX_OP_VADD:
  case PTX_OP_VADD2:
  case PTX_OP_VADD4: return a + b;
  case PTX_OP_VSUB:
  case PTX_OP_VSUB2:
  case PTX_OP_VSUB4: return a - b;
  case PTX_OP_VABSDIFF:
  case PTX_OP_VABSDIFF2:
  case PTX_OP_VABSDIFF4: return a > b ? a - b : b - a;
  case PTX_OP_VMIN:
  case PTX_OP_VMIN2:
  case PTX_OP_VMIN4: return a < b ? a : b;
  case PTX_OP_VMAX:
  case PTX_OP_VMAX2:
  case PTX_OP_VMAX4: return a > b ? a : b;
  case PTX_OP_VAVRG2:
  case PTX_OP_VAVRG4: return (a + b + (a + b >= 0)) >> 1;
  case PTX_OP_VSET:
  case PTX_OP_VSET2:
  case PTX_OP_VSET4: return compare(f, a, b);
  case PTX_OP_VSHL: return a * ((wide)1 << b);
  case PTX_OP_VSHR: return a >> b;
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}

static uint64_t multiply_add(const form *f, wide a, wide b, uint32_t c) {
  bool product = f->operands[1].negated != f->operands[2].negated, negated_c = f->operands[3].negated;
  bool sign = sign_at(f, 1) || sign_at(f, 0) || product || negated_c;
  wide t = a * b, lsb = has(f, PTX_MOD_PO) || product || negated_c;
  if (product) t = ~t;
  if (negated_c) c = ~c;
  t += (sign ? (wide)(int32_t)c : (wide)c) + lsb;
  t >>= has(f, PTX_MOD_SHR7) ? 7 : has(f, PTX_MOD_SHR15) ? 15 : 0;
  if (has(f, PTX_MOD_SAT)) t = sign ? clamp(t, INT32_MIN, INT32_MAX) : clamp(t, 0, UINT32_MAX);
  return fit((uint64_t)t, 32);
}

static void scalar(const form *f, sample *x, int l) {
  wide a = take(x->s[0][l], part_of(f->operands[1].selector), sign_at(f, 1));
  wide b = take(x->s[1][l], part_of(f->operands[2].selector), sign_at(f, 0));
  uint64_t word = x->s[2][l];
  x->carry_out = x->carry;
  if (f->instr.opcode == PTX_OP_VMAD) {
    x->d[l] = multiply_add(f, a, b, (uint32_t)word);
    return;
  }
  if (f->instr.opcode == PTX_OP_VSHL || f->instr.opcode == PTX_OP_VSHR)
    b = has(f, PTX_MOD_WRAP) ? b & 31 : b > 32 ? 32 : b;
  part to = part_of(f->operands[0].selector);
  wide t = primary(f, a, b), c = dst_sign(f) ? (wide)(int32_t)word : (wide)word;
  if (has(f, PTX_MOD_SAT))
    t = dst_sign(f) ? clamp(t, -((wide)1 << (to.bits - 1)), ((wide)1 << (to.bits - 1)) - 1)
                    : clamp(t, 0, ((wide)1 << to.bits) - 1);
  if (has(f, PTX_MOD_ADD)) t += c;
  if (has(f, PTX_MOD_MIN)) t = t < c ? t : c;
  if (has(f, PTX_MOD_MAX)) t = t > c ? t : c;
  uint64_t field = fit(~UINT64_C(0), to.bits) << to.at;
  x->d[l] = to.bits == 32 ? fit((uint64_t)t, 32) : ((uint64_t)t << to.at & field) | (word & ~field & 0xffffffff);
}

/* --- Packed forms. --- */

static int elements(const form *f) {
  const char *text = ptx_opcode_text(f->instr.opcode);
  return text[strlen(text) - 1] - '0';
}
static wide element(const form *f, const sample *x, int l, uint32_t selector, int i, int first, bool sign) {
  int n = elements(f), place = selector ? (int)(selector >> 4 * i & 15) : first + i;
  uint32_t bits = 32 / (uint32_t)n;
  return take(x->s[place >= n][l], (part){bits, (uint32_t)(place % n) * bits}, sign);
}
static bool is_written(uint32_t selector, int i) {
  if (!selector) return true;
  for (uint32_t k = 0; k < (selector >> 16 & 0xff); k++)
    if ((selector >> 4 * k & 15) == (uint32_t)i) return true;
  return false;
}
static void simd(const form *f, sample *x, int l) {
  int n = elements(f);
  uint32_t bits = 32 / (uint32_t)n;
  uint64_t word = x->s[2][l], d = has(f, PTX_MOD_ADD) ? word : 0;
  for (int i = 0; i < n; i++) {
    wide a = element(f, x, l, f->operands[1].selector, i, 0, sign_at(f, 1));
    wide b = element(f, x, l, f->operands[2].selector, i, n, sign_at(f, 0)), t = primary(f, a, b);
    if (has(f, PTX_MOD_SAT))
      t = dst_sign(f) ? clamp(t, -((wide)1 << (bits - 1)), ((wide)1 << (bits - 1)) - 1)
                      : clamp(t, 0, ((wide)1 << bits) - 1);
    bool written = is_written(f->operands[0].selector, i);
    if (has(f, PTX_MOD_ADD)) d += written ? (uint64_t)t : 0;
    else d |= fit(written ? (uint64_t)t : word >> bits * (uint32_t)i, bits) << bits * (uint32_t)i;
  }
  x->d[l] = fit(d, 32);
  x->carry_out = x->carry;
}

/* --- Random instructions. --- */

static void set_mod(form *f, ptx_mod mod) {
  f->instr.mods[f->instr.mod_count++] = (uint16_t)mod;
  f->instr.mod_set[mod / 64] |= UINT64_C(1) << mod % 64;
}
static uint32_t one_of_six(void) {
  return random_below(2) ? 0 : random_below(2) ? 0xb0010000 | random_below(4) : 0xa0010000 | random_below(2);
}
static uint32_t places(int n) {
  if (random_below(2)) return 0;
  uint32_t selector = (n == 4 ? 0xb0000000 : 0xa0000000) | (uint32_t)n << 16;
  for (int i = 0; i < n; i++) selector |= random_below((uint32_t)(2 * n)) << 4 * i;
  return selector;
}
static uint32_t some_elements(int n) {
  if (random_below(2)) return 0;
  uint32_t selector = n == 4 ? 0xb0000000 : 0xa0000000, count = 0;
  for (uint32_t i = 0; i < (uint32_t)n; i++)
    if (random_below(2)) selector |= i << 4 * count++;
  return count ? selector | count << 16 : 0;
}

static void decorate_mad(form *f) {
  if (random_below(2)) set_mod(f, PTX_MOD_SAT);
  if (random_below(2)) set_mod(f, random_below(2) ? PTX_MOD_SHR7 : PTX_MOD_SHR15);
  switch (random_below(4)) {
  case 0: set_mod(f, PTX_MOD_PO); break;
  case 1: f->operands[1 + random_below(2)].negated = true; break;
  case 2: f->operands[3].negated = true; break;
  default: break;
  }
}
static void decorate(form *f) {
  static const ptx_mod comparisons[] = {PTX_MOD_EQ, PTX_MOD_NE, PTX_MOD_LT, PTX_MOD_LE, PTX_MOD_GT, PTX_MOD_GE};
  static const ptx_mod seconds[] = {PTX_MOD_ADD, PTX_MOD_MIN, PTX_MOD_MAX};
  int n = elements(f);
  bool packed = n == 2 || n == 4, shift = f->instr.opcode == PTX_OP_VSHL || f->instr.opcode == PTX_OP_VSHR;
  f->instr.type_count = is_vset(f) ? 2 : 3;
  for (int i = 0; i < f->instr.type_count; i++) f->instr.types[i] = random_below(2) ? PTX_U32 : PTX_S32;
  if (is_vset(f) && f->instr.mod_count == 0) set_mod(f, comparisons[random_below(6)]);
  if (packed) {
    f->operands[0].selector = some_elements(n);
    f->operands[1].selector = places(n);
    f->operands[2].selector = places(n);
    if (random_below(2)) set_mod(f, PTX_MOD_ADD);
    else if (!is_vset(f) && random_below(2)) set_mod(f, PTX_MOD_SAT);
    return;
  }
  f->operands[1].selector = one_of_six();
  f->operands[2].selector = one_of_six();
  if (f->instr.opcode == PTX_OP_VMAD) {
    decorate_mad(f);
    return;
  }
  if (!is_vset(f) && random_below(2)) set_mod(f, PTX_MOD_SAT);
  if (shift) {
    f->instr.types[2] = PTX_U32;
    set_mod(f, random_below(2) ? PTX_MOD_CLAMP : PTX_MOD_WRAP);
  }
  f->operands[0].selector = one_of_six();
  if (f->operands[0].selector) return;
  if (random_below(2)) set_mod(f, seconds[random_below(3)]);
  else f->instr.operand_count = 3;
}

static bool is_video(const form *f) { return ops_is_video(f->instr.opcode); }
static void visit(form *f, void *context) {
  for (int i = 0; i < 120; i++) {
    form g = *f;
    g.instr.operands = g.operands;
    g.func.regs = g.regs;
    decorate(&g);
    int n = elements(&g);
    form_check(&g, 2, n == 2 || n == 4 ? simd : scalar, NULL);
  }
}
static void test_video(void **state) { assert_int_equal(each_form(is_video, visit, NULL), 33); }

/* What the manual does not have is refused. */
static void refused(ptx_opcode opcode, int mods, const ptx_mod *mod, uint32_t selector, int operands) {
  form f;
  exec_choice choice;
  ff_error error;
  const ops_entry *entry = ops_find(isas[0].set, ptx_opcode_text(opcode));
  assert_non_null(entry);
  form_make(&f, ptx_opcode_text(opcode), strlen(ptx_opcode_text(opcode)), entry);
  f.instr.type_count = 3;
  f.instr.types[0] = f.instr.types[1] = f.instr.types[2] = PTX_U32;
  for (int i = 0; i < mods; i++) set_mod(&f, mod[i]);
  f.operands[0].selector = selector;
  f.instr.operand_count = (uint8_t)operands;
  assert_int_equal(isas[0].choose(&f.func, &f.instr, &choice, &error), FF_UNSUPPORTED);
}
static void test_refusals(void **state) {
  const ptx_mod both[] = {PTX_MOD_SAT, PTX_MOD_ADD};
  refused(PTX_OP_VADD4, 2, both, 0, 4);             /* .sat.add */
  refused(PTX_OP_VADD4, 0, NULL, 0, 3);             /* no c */
  refused(PTX_OP_VADD4, 0, NULL, 0xa0010000, 4);    /* .h0 of bytes */
  refused(PTX_OP_VADD2, 0, NULL, 0xa0010002, 4);    /* .h2 */
  refused(PTX_OP_VADD, 1, both + 1, 0, 3);          /* .add without c */
  refused(PTX_OP_VADD, 1, both + 1, 0xb0010000, 4); /* merge and second operation */
  refused(PTX_OP_VSHL, 0, NULL, 0, 3);              /* no .clamp or .wrap */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_video), cmocka_unit_test(test_refusals)};
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
