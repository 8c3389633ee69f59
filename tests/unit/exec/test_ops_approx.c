/* SPDX-License-Identifier: Apache-2.0 */
/* The approximate functions: inside the error that the manual states for each, its table of special inputs exactly, and
 * the same bits from every instruction set (the harness checks that). */
#include "unit/exec/ops_harness.h"
#include "unit/exec/ops_rounding.h"

static ptx_type type_of(const form *f) { return f->instr.types[0]; }
static bool is_approximate(const form *f) { return has(f, PTX_MOD_APPROX) || has(f, PTX_MOD_FULL); }

static long double exact(const form *f, long double a, long double b) {
  switch (f->instr.opcode) {
  case PTX_OP_EX2: return exp2l(a);
  case PTX_OP_LG2: return a < 0 ? NAN : log2l(a);
  case PTX_OP_SIN: return sinl(a);
  case PTX_OP_COS: return cosl(a);
  case PTX_OP_TANH: return tanhl(a);
  case PTX_OP_RCP: return 1 / a;
  case PTX_OP_SQRT: return sqrtl(a);
  case PTX_OP_RSQRT: return 1 / sqrtl(a);
  case PTX_OP_DIV: return a / b;
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}

static long double ulp(const format *format, long double value) {
  int exponent;
  frexpl(value, &exponent);
  int quantum = exponent - format->precision;
  return ldexpl(1, quantum < format->lowest ? format->lowest : quantum);
}

/* The manual's bound on |result - exact|; negative: there is none. */
static long double bound(const form *f, const format *format, long double a, long double b, long double wanted) {
  const long double pi = acosl(-1), size = fabsl(wanted);
  bool f32 = format == &format_f32, f16 = format == &format_f16;
  switch (f->instr.opcode) {
  case PTX_OP_EX2:
    return f32 ? 2 * ulp(format, wanted) : size * powl(2, f16 ? -9.9L : -7) + ldexpl(1, format->lowest - 1);
  case PTX_OP_LG2: return a > 0.5L && a < 2 ? 0x1p-22L : size * 0x1p-22L;
  case PTX_OP_SIN:
  case PTX_OP_COS: return fabsl(a) <= 2 * pi ? powl(2, -20.5L) : fabsl(a) <= 100 * pi ? powl(2, -14.7L) : -1;
  case PTX_OP_TANH: return f32 ? size * 0x1p-11L : powl(2, f16 ? -10.987L : -8);
  case PTX_OP_RCP: return ulp(format, wanted);
  case PTX_OP_SQRT: return size * 0x1p-23L;
  case PTX_OP_RSQRT: return size * powl(2, -22.9L);
  case PTX_OP_DIV:
    if (has(f, PTX_MOD_APPROX) && !(fabsl(b) >= 0x1p-126L && fabsl(b) <= 0x1p126L)) return -1;
    return 2 * ulp(format, wanted);
  default: return -1;
  }
}

/* The tables of special inputs and results, and div.approx of a huge divisor: true if `got` has to be *must. */
static bool special(const form *f, const format *format, long double a, long double b, long double *must) {
  bool overflow = f->instr.opcode == PTX_OP_DIV && has(f, PTX_MOD_APPROX) && fabsl(b) > 0x1p126L && !isinf(b);
  *must = overflow ? (isinf(a) || isnan(a) ? NAN : copysignl(0, a) * copysignl(1, b)) : exact(f, a, b);
  if (isnan(a) || (f->sources > 1 && isnan(b))) *must = NAN;
  if (overflow || isnan(*must) || isinf(a) || a == 0) return true;
  return isinf(*must) || (f->sources > 1 && (isinf(b) || b == 0));
}

static bool element_accepted(const form *f, const format *format, uint64_t bits_a, uint64_t bits_b, uint64_t got) {
  bool ftz = has(f, PTX_MOD_FTZ);
  uint64_t sign = UINT64_C(1) << (format->bits - 1), exponent = format->infinity;
  if (ftz && !(bits_a & exponent)) bits_a &= sign;
  if (ftz && !(bits_b & exponent)) bits_b &= sign;
  long double a = decode(format, bits_a), b = decode(format, bits_b), wanted, r = decode(format, got);
  if (special(f, format, a, b, &wanted)) {
    if (isnan(wanted)) return got == format->nan;
    return got == encode(format, wanted, FE_TONEAREST);
  }
  long double error = fabsl(r - wanted), allowed = bound(f, format, a, b, wanted);
  if (ftz && !(got & exponent))
    return !(got & ~sign) && fabsl(wanted) < ldexpl(1, format->lowest + format->precision - 1) * 1.000001L;
  if (fabsl(wanted) > format->largest) return isinf(r) || fabsl(r) == format->largest;
  if (f->instr.opcode == PTX_OP_SIN || f->instr.opcode == PTX_OP_COS)
    if (fabsl(r) > 1) return false;
  return isnan(r) ? false : allowed < 0 || error <= allowed;
}

static bool float_accepted(const form *f, const sample *x, int l, uint64_t got) {
  ptx_type type = type_of(f);
  const format *format = type == PTX_F32                        ? &format_f32
                         : type == PTX_F16 || type == PTX_F16X2 ? &format_f16
                                                                : &format_bf16;
  uint64_t a = x->s[0][l], b = x->s[1][l];
  if (type == PTX_F32) return element_accepted(f, format, a, b, got);
  if (!element_accepted(f, format, a & 0xffff, b & 0xffff, got & 0xffff)) return false;
  if (type == PTX_F16 || type == PTX_BF16) return got >> 16 == 0;
  return element_accepted(f, format, a >> 16, b >> 16, got >> 16);
}

/* --- f64: rsqrt, and the gross approximations of the upper word. --- */

static uint64_t upper_special(const form *f, uint64_t upper, bool *is_special) {
  uint64_t sign = upper & 0x80000000, magnitude = upper & 0x7fffffff;
  bool rcp = f->instr.opcode == PTX_OP_RCP;
  *is_special = true;
  if (magnitude > 0x7ff00000) return 0x7fffffff;
  if (magnitude < 0x00100000) return sign | 0x7ff00000; /* zeros and subnormals: infinity of that sign */
  if (!rcp && sign) return 0x7fffffff;
  if (magnitude == 0x7ff00000) return sign;
  *is_special = false;
  return 0;
}
static bool f64_accepted(const form *f, const sample *x, int l, uint64_t got) {
  uint64_t a = x->s[0][l];
  if (has(f, PTX_MOD_FTZ)) {
    bool is_special;
    uint64_t must = upper_special(f, a >> 32, &is_special);
    if (is_special) return got == must << 32;
    double value = f64_of(a >> 32 << 32);
    long double wanted = f->instr.opcode == PTX_OP_RCP ? 1.0L / value : 1 / sqrtl(value);
    if (fabsl(wanted) < 0x1p-1022L) return got << 1 == 0;
    return (got & 0xffffffff) == 0 && fabsl(f64_of(got) - wanted) <= fabsl(wanted) * 0x1p-20L;
  }
  double value = f64_of(a);
  if (isnan(value)) return got == (a | UINT64_C(0x8000000000000));
  if (value < 0) return got == UINT64_C(0xfff8000000000000);
  if (value == 0) return got == ((a & UINT64_C(1) << 63) | UINT64_C(0x7ff0000000000000));
  long double wanted = 1 / sqrtl(value);
  return fabsl(f64_of(got) - wanted) <= wanted * 0x1p-52L;
}

static void nothing(const form *f, sample *x, int l) { x->carry_out = x->carry; }
static bool is_narrow(const form *f) { return is_approximate(f) && type_of(f) != PTX_F64; }
static bool is_f64(const form *f) { return is_approximate(f) && type_of(f) == PTX_F64; }
static void visit_float(form *f, void *context) { form_check(f, 300, nothing, float_accepted); }
static void visit_f64(form *f, void *context) { form_check(f, 100, nothing, f64_accepted); }
static void test_float(void **state) { assert_in_range(each_form(is_narrow, visit_float, NULL), 26, 100); }
static void test_f64(void **state) { assert_int_equal(each_form(is_f64, visit_f64, NULL), 3); }

/* Integers and zeros that programs rely on. */
static void exact_at(const char *name, uint32_t a, uint32_t wanted) {
  const ops_entry *entry = ops_find(isas[0].set, name);
  assert_non_null(entry);
  form f;
  sample x;
  form_make(&f, name, strlen(name), entry);
  memset(&x, 0, sizeof x);
  for (int l = 0; l < 32; l++) {
    x.s[0][l] = a;
    x.d[l] = wanted;
  }
  sample_run(&f, &x, 0, NULL);
}
static void test_exact_points(void **state) {
  for (int n = -149; n < 128; n++)
    exact_at("ex2.approx.f32", (uint32_t)bits_f32((float)n), (uint32_t)bits_f32(ldexpf(1, n)));
  for (int n = -149; n < 128; n++)
    exact_at("lg2.approx.f32", (uint32_t)bits_f32(ldexpf(1, n)), (uint32_t)bits_f32((float)n));
  exact_at("rsqrt.approx.f32", (uint32_t)bits_f32(4), (uint32_t)bits_f32(0.5f));
  exact_at("sqrt.approx.f32", (uint32_t)bits_f32(9), (uint32_t)bits_f32(3));
  exact_at("rcp.approx.f32", (uint32_t)bits_f32(8), (uint32_t)bits_f32(0.125f));
  exact_at("tanh.approx.f32", 0x00000003, 0x00000003);
  exact_at("ex2.approx.ftz.f32", (uint32_t)bits_f32(-127), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_float), cmocka_unit_test(test_f64),
                                     cmocka_unit_test(test_exact_points)};
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
