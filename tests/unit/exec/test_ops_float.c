/* SPDX-License-Identifier: Apache-2.0 */
/* f32, f64, f16 and bf16 arithmetic: scalar C in the asked rounding mode for f32 and f64, exact values rounded once for
 * the 16-bit formats; then the rules for NaN, .ftz and .sat that the manual adds. */
#include "unit/exec/ops_harness.h"
#include "unit/exec/ops_rounding.h"

static int mode_of(const form *f) {
  return has(f, PTX_MOD_RZ)   ? FE_TOWARDZERO
         : has(f, PTX_MOD_RM) ? FE_DOWNWARD
         : has(f, PTX_MOD_RP) ? FE_UPWARD
                              : FE_TONEAREST;
}

static uint64_t flush_f32(uint64_t bits) { return (bits & 0x7f800000) ? bits : bits & 0x80000000; }
static bool nan_f32(uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
static bool nan_f64(uint64_t bits) { return bits << 1 > UINT64_C(0xffe0000000000000); }

/* --- f32. --- */

static float compute_f32(const form *f, volatile float a, volatile float b, volatile float c) {
  switch (f->instr.opcode) {
  case PTX_OP_ADD: return a + b;
  case PTX_OP_SUB: return a - b;
  case PTX_OP_MUL: return a * b;
  case PTX_OP_FMA:
  case PTX_OP_MAD: return fmaf(a, b, c);
  case PTX_OP_DIV: return a / b;
  case PTX_OP_RCP: return 1.0f / a;
  case PTX_OP_SQRT: return sqrtf(a);
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}

/* .sat and the canonical NaN. */
static uint64_t finish_f32(const form *f, uint64_t bits) {
  if (has(f, PTX_MOD_FTZ)) bits = flush_f32(bits);
  if (!has(f, PTX_MOD_SAT)) return nan_f32(bits) ? 0x7fffffff : bits;
  float value = f32_of(bits);
  return nan_f32(bits) || value <= 0 ? 0 : value > 1 ? bits_f32(1) : bits;
}

static void arithmetic_f32(const form *f, sample *x, int l) {
  float v[3] = {0, 0, 0};
  for (int i = 0; i < f->sources; i++) {
    ptx_type type = f->entry->src[i];
    uint64_t bits = x->s[i][l];
    if (type == PTX_F16) v[i] = (float)decode(&format_f16, bits);
    else if (type == PTX_BF16) v[i] = (float)decode(&format_bf16, bits);
    else v[i] = f32_of(has(f, PTX_MOD_FTZ) ? flush_f32(bits) : bits);
  }
  fesetround(mode_of(f));
  volatile float r = compute_f32(f, v[0], v[1], v[2]);
  fesetround(FE_TONEAREST);
  x->d[l] = finish_f32(f, bits_f32(r));
  x->carry_out = x->carry;
}

/* .f32x2: two of them in 64 bits. */
static void pair_f32(const form *f, sample *x, int l) {
  uint64_t d = 0;
  for (int i = 0; i < 2; i++) {
    float v[3];
    for (int k = 0; k < 3; k++) {
      uint64_t bits = x->s[k][l] >> 32 * i & 0xffffffff;
      v[k] = f32_of(has(f, PTX_MOD_FTZ) ? flush_f32(bits) : bits);
    }
    fesetround(mode_of(f));
    volatile float r = compute_f32(f, v[0], v[1], v[2]);
    fesetround(FE_TONEAREST);
    d |= finish_f32(f, bits_f32(r)) << 32 * i;
  }
  x->d[l] = d;
  x->carry_out = x->carry;
}

/* --- f64. --- */

static double compute_f64(const form *f, volatile double a, volatile double b, volatile double c) {
  switch (f->instr.opcode) {
  case PTX_OP_ADD: return a + b;
  case PTX_OP_SUB: return a - b;
  case PTX_OP_MUL: return a * b;
  case PTX_OP_FMA:
  case PTX_OP_MAD: return fma(a, b, c);
  case PTX_OP_DIV: return a / b;
  case PTX_OP_RCP: return 1.0 / a;
  case PTX_OP_SQRT: return sqrt(a);
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}

static void arithmetic_f64(const form *f, sample *x, int l) {
  double v[3] = {0, 0, 0};
  uint64_t nan = 0;
  for (int i = f->sources - 1; i >= 0; i--) {
    v[i] = f64_of(x->s[i][l]);
    if (nan_f64(x->s[i][l])) nan = x->s[i][l] | UINT64_C(0x8000000000000);
  }
  fesetround(mode_of(f));
  volatile double r = compute_f64(f, v[0], v[1], v[2]);
  fesetround(FE_TONEAREST);
  x->d[l] = nan ? nan : nan_f64(bits_f64(r)) ? UINT64_C(0xfff8000000000000) : bits_f64(r);
  x->carry_out = x->carry;
}

/* --- 16 bits. --- */

/* a * b + c in double, the last bit set if the processor says that it is not exact: enough for rounding to 11 bits. */
static long double fma_sticky(double a, double b, double c) {
  volatile double va = a, vb = b, vc = c;
  fesetround(FE_TOWARDZERO);
  feclearexcept(FE_ALL_EXCEPT);
  volatile double r = fma(va, vb, vc);
  bool inexact = fetestexcept(FE_INEXACT);
  fesetround(FE_TONEAREST);
  return inexact ? f64_of(bits_f64(r) | 1) : r;
}

static uint64_t half_element(const form *f, const format *format, const uint64_t h[3]) {
  long double v[3];
  for (int i = 0; i < 3; i++) v[i] = decode(format, has(f, PTX_MOD_FTZ) && !(h[i] & 0x7c00) ? h[i] & 0x8000 : h[i]);
  long double r = 0;
  switch (f->instr.opcode) {
  case PTX_OP_ADD: r = fma_sticky((double)v[0], 1, (double)v[1]); break;
  case PTX_OP_SUB: r = fma_sticky((double)v[0], 1, -(double)v[1]); break;
  case PTX_OP_MUL: r = (long double)((double)v[0] * (double)v[1]); break;
  case PTX_OP_FMA: r = fma_sticky((double)v[0], (double)v[1], (double)v[2]); break;
  default: fail_msg("%s has no reference", f->name);
  }
  uint64_t bits = encode(format, r, FE_TONEAREST);
  if (has(f, PTX_MOD_FTZ) && !(bits & 0x7c00)) bits &= 0x8000;
  if (has(f, PTX_MOD_RELU) && (bits & 0x8000)) bits = 0;
  if (has(f, PTX_MOD_SAT)) bits = (bits & 0x8000) || bits > 0x7c00 ? 0 : bits > 0x3c00 ? 0x3c00 : bits;
  return bits;
}

/* Applies to both halves of packed types. */
typedef uint64_t (*element_fn)(const form *f, const format *format, const uint64_t h[3]);
static void each_half(const form *f, sample *x, int l, element_fn element) {
  ptx_type type = f->instr.types[0];
  const format *format = type == PTX_F16 || type == PTX_F16X2 ? &format_f16 : &format_bf16;
  int count = type == PTX_F16X2 || type == PTX_BF16X2 ? 2 : 1;
  for (int i = 0; i < count; i++) {
    uint64_t h[3];
    for (int k = 0; k < 3; k++) h[k] = x->s[k][l] >> 16 * i & 0xffff;
    x->d[l] |= element(f, format, h) << 16 * i;
  }
  x->carry_out = x->carry;
}
static void arithmetic_half(const form *f, sample *x, int l) { each_half(f, x, l, half_element); }

static bool is_half_type(ptx_type type) {
  return type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2;
}
static bool is_arithmetic_op(const form *f) {
  if (has(f, PTX_MOD_APPROX) || has(f, PTX_MOD_FULL)) return false;
  switch (f->instr.opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_MUL:
  case PTX_OP_FMA:
  case PTX_OP_MAD:
  case PTX_OP_DIV:
  case PTX_OP_RCP:
  case PTX_OP_SQRT: return true;
  default: return false;
  }
}
static bool is_f32(const form *f) { return is_arithmetic_op(f) && f->instr.types[0] == PTX_F32; }
static bool is_f32x2(const form *f) { return is_arithmetic_op(f) && f->instr.types[0] == PTX_F32X2; }
static bool is_f64(const form *f) { return is_arithmetic_op(f) && f->instr.types[0] == PTX_F64; }
static bool is_half(const form *f) { return is_arithmetic_op(f) && is_half_type(f->instr.types[0]); }

/* --- Signs. --- */

static uint64_t sign_of(const form *f, uint64_t a, uint64_t b, uint32_t bits, uint64_t exponent) {
  uint64_t sign = UINT64_C(1) << (bits - 1);
  if (has(f, PTX_MOD_FTZ) && !(a & exponent)) a &= sign;
  switch (f->instr.opcode) {
  case PTX_OP_NEG: return a ^ sign;
  case PTX_OP_ABS: return bits == 64 && nan_f64(a) ? a : a & ~sign;
  case PTX_OP_COPYSIGN: return (a & sign) | (b & ~sign);
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}
static uint64_t sign_half(const form *f, const format *format, const uint64_t h[3]) {
  return sign_of(f, h[0], h[1], 16, 0x7c00);
}
static void signs(const form *f, sample *x, int l) {
  ptx_type type = f->instr.types[0];
  if (is_half_type(type)) each_half(f, x, l, sign_half);
  else if (type == PTX_F32) x->d[l] = sign_of(f, x->s[0][l], x->s[1][l], 32, 0x7f800000);
  else x->d[l] = sign_of(f, x->s[0][l], x->s[1][l], 64, UINT64_C(0x7ff0000000000000));
  x->carry_out = x->carry;
}
static bool is_float_type(ptx_type type) { return ptx_type_class(type) == 'F'; }
static bool is_sign(const form *f) {
  ptx_opcode op = f->instr.opcode;
  return (op == PTX_OP_NEG || op == PTX_OP_ABS || op == PTX_OP_COPYSIGN) && is_float_type(f->instr.types[0]);
}

/* --- min, max: the manual's pseudocode, on bit patterns. --- */

typedef struct layout_bits {
  uint64_t sign, exponent, nan;
} layout_bits;

static bool pattern_nan(uint64_t a, layout_bits p) { return (a & ~p.sign) > p.exponent; }
static bool pattern_less(uint64_t a, uint64_t b, layout_bits p) { /* -0 < +0 */
  bool na = a & p.sign, nb = b & p.sign;
  if (na != nb) return na;
  return na ? a > b : a < b;
}
static uint64_t two_inputs(const form *f, uint64_t a, uint64_t b, layout_bits p) {
  bool nan_a = pattern_nan(a, p), nan_b = pattern_nan(b, p);
  if ((nan_a && nan_b) || (has(f, PTX_MOD_NAN_PROPAGATE) && (nan_a || nan_b)))
    return p.nan ? p.nan : a | UINT64_C(0x8000000000000);
  if (nan_a) return b;
  if (nan_b) return a;
  bool less = pattern_less(a, b, p);
  return f->instr.opcode == PTX_OP_MIN ? (less ? a : b) : (less ? b : a);
}
static uint64_t minmax(const form *f, const uint64_t inputs[3], layout_bits p) {
  uint64_t v[3], sign = (inputs[0] ^ inputs[1]) & p.sign;
  for (int i = 0; i < 3; i++) {
    v[i] = inputs[i];
    if (has(f, PTX_MOD_FTZ) && !(v[i] & p.exponent)) v[i] &= p.sign;
    if (has(f, PTX_MOD_ABS)) v[i] &= ~p.sign;
  }
  uint64_t d = two_inputs(f, v[0], v[1], p);
  if (f->sources == 3) d = two_inputs(f, d, v[2], p);
  if (has(f, PTX_MOD_XORSIGN) && !pattern_nan(d, p)) d |= sign;
  return d;
}
static uint64_t minmax_half(const form *f, const format *format, const uint64_t h[3]) {
  return minmax(f, h, (layout_bits){0x8000, format->infinity, 0x7fff});
}
static void minmax_float(const form *f, sample *x, int l) {
  uint64_t v[3] = {x->s[0][l], x->s[1][l], x->s[2][l]};
  ptx_type type = f->instr.types[0];
  if (is_half_type(type)) each_half(f, x, l, minmax_half);
  else if (type == PTX_F32) x->d[l] = minmax(f, v, (layout_bits){0x80000000, 0x7f800000, 0x7fffffff});
  else x->d[l] = minmax(f, v, (layout_bits){UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000), 0});
  x->carry_out = x->carry;
}
static bool is_minmax(const form *f) {
  ptx_opcode op = f->instr.opcode;
  return (op == PTX_OP_MIN || op == PTX_OP_MAX) && is_float_type(f->instr.types[0]);
}

/* --- testp. --- */

static bool property(const form *f, uint64_t magnitude, uint64_t infinity, uint64_t smallest_normal) {
  if (has(f, PTX_MOD_FINITE)) return magnitude < infinity;
  if (has(f, PTX_MOD_INFINITE)) return magnitude == infinity;
  if (has(f, PTX_MOD_NUMBER)) return magnitude <= infinity;
  if (has(f, PTX_MOD_NOTANUMBER)) return magnitude > infinity;
  if (has(f, PTX_MOD_NORMAL)) return magnitude == 0 || (magnitude >= smallest_normal && magnitude < infinity);
  if (has(f, PTX_MOD_SUBNORMAL)) return magnitude != 0 && magnitude < smallest_normal;
  fail_msg("%s has no reference", f->name);
  return false;
}
static void properties(const form *f, sample *x, int l) {
  uint64_t a = x->s[0][l];
  expect_pred(&x->p, l,
              f->instr.types[0] == PTX_F32
                  ? property(f, a & 0x7fffffff, 0x7f800000, 0x00800000)
                  : property(f, a << 1 >> 1, UINT64_C(0x7ff0000000000000), UINT64_C(0x0010000000000000)));
  x->carry_out = x->carry;
}
static bool is_testp(const form *f) { return f->instr.opcode == PTX_OP_TESTP; }

/* --- The tests. --- */

static void visit_f32(form *f, void *context) { form_check(f, 60, arithmetic_f32, NULL); }
static void visit_f32x2(form *f, void *context) { form_check(f, 60, pair_f32, NULL); }
static void visit_f64(form *f, void *context) { form_check(f, 60, arithmetic_f64, NULL); }
static void visit_half(form *f, void *context) { form_check(f, 60, arithmetic_half, NULL); }
static void visit_signs(form *f, void *context) { form_check(f, 20, signs, NULL); }
static void visit_minmax(form *f, void *context) { form_check(f, 60, minmax_float, NULL); }
static void visit_testp(form *f, void *context) { form_check(f, 20, properties, NULL); }

static void test_f32(void **state) { assert_in_range(each_form(is_f32, visit_f32, NULL), 150, 1000); }
static void test_f32x2(void **state) { assert_in_range(each_form(is_f32x2, visit_f32x2, NULL), 32, 50); }
static void test_f64(void **state) { assert_in_range(each_form(is_f64, visit_f64, NULL), 35, 1000); }
static void test_half(void **state) { assert_in_range(each_form(is_half, visit_half, NULL), 60, 1000); }
static void test_signs(void **state) { assert_in_range(each_form(is_sign, visit_signs, NULL), 20, 1000); }
static void test_minmax(void **state) { assert_in_range(each_form(is_minmax, visit_minmax, NULL), 80, 1000); }
static void test_testp(void **state) { assert_int_equal(each_form(is_testp, visit_testp, NULL), 12); }

/* Rounding modes are put back, whatever the handler: later arithmetic of the process must not change. */
static void test_environment_is_kept(void **state) {
  assert_int_equal(fegetround(), FE_TONEAREST);
  unsigned int control;
  __asm__ volatile("stmxcsr %0" : "=m"(control));
  assert_int_equal(control & 0xffc0, 0x1f80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_f32),   cmocka_unit_test(test_f64),
      cmocka_unit_test(test_f32x2), cmocka_unit_test(test_half),
      cmocka_unit_test(test_signs), cmocka_unit_test(test_minmax),
      cmocka_unit_test(test_testp), cmocka_unit_test(test_environment_is_kept),
  };
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
