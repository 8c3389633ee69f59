/* SPDX-License-Identifier: Apache-2.0 */
/* cvt: every pair of types, every rounding, registers wider than the types. The value is decoded exactly into a long
 * double (which holds all of the types), rounded once, and then treated as the manual's notes say. */
#include "unit/exec/ops_harness.h"
#include "unit/exec/ops_rounding.h"
#include "unit/share.h"

static ptx_type dst_type(const form *f) { return f->instr.types[0]; }
static ptx_type src_type(const form *f) { return f->instr.types[1]; }
static bool is_float(ptx_type type) { return ptx_type_class(type) == 'F'; }

static int mode_of(const form *f) {
  if (has(f, PTX_MOD_RZ) || has(f, PTX_MOD_RZI)) return FE_TOWARDZERO;
  if (has(f, PTX_MOD_RM) || has(f, PTX_MOD_RMI)) return FE_DOWNWARD;
  if (has(f, PTX_MOD_RP) || has(f, PTX_MOD_RPI)) return FE_UPWARD;
  return has(f, PTX_MOD_RNA) ? TO_NEAREST_AWAY : FE_TONEAREST;
}
static bool rounds_to_integral(const form *f) {
  return has(f, PTX_MOD_RNI) || has(f, PTX_MOD_RZI) || has(f, PTX_MOD_RMI) || has(f, PTX_MOD_RPI);
}

/* --- Sources. --- */

static long double source_value(const form *f, uint64_t bits) {
  switch (src_type(f)) {
  case PTX_U8: return (uint8_t)bits;
  case PTX_S8: return (int8_t)bits;
  case PTX_U16: return (uint16_t)bits;
  case PTX_S16: return (int16_t)bits;
  case PTX_U32: return (uint32_t)bits;
  case PTX_S32: return (int32_t)bits;
  case PTX_U64: return bits;
  case PTX_S64: return (int64_t)bits;
  case PTX_F32: return decode(&format_f32, has(f, PTX_MOD_FTZ) && !(bits & 0x7f800000) ? bits & 0x80000000 : bits);
  case PTX_F64: return f64_of(bits);
  case PTX_F16: return decode(&format_f16, bits & 0xffff);
  case PTX_BF16: return decode(&format_bf16, bits & 0xffff);
  default: fail_msg("%s has no reference", f->name);
  }
  return 0;
}

/* --- To integers: clamped, then extended to the register. --- */

static uint64_t to_register(const form *f, uint64_t value) {
  uint32_t bits = ptx_type_bits(dst_type(f)), width = f->dst_bits < 16 ? 16 : f->dst_bits;
  value = fit(value, bits);
  if (ptx_type_class(dst_type(f)) == 'S' && bits < 64 && (value >> (bits - 1) & 1)) value |= ~UINT64_C(0) << bits;
  return fit(value, width);
}

static uint64_t integer_result(const form *f, uint64_t source) {
  uint32_t bits = ptx_type_bits(dst_type(f));
  bool sign = ptx_type_class(dst_type(f)) == 'S', from_float = is_float(src_type(f));
  long double value = source_value(f, source), low = sign ? -ldexpl(1, (int)bits - 1) : 0;
  long double high = ldexpl(1, (int)bits - sign) - 1;
  if (isnan(value)) return to_register(f, src_type(f) == PTX_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0);
  if (from_float) value = integral(value, mode_of(f));
  if (from_float || has(f, PTX_MOD_SAT)) value = value < low ? low : value > high ? high : value;
  return to_register(f, value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value);
}

/* --- To floats. --- */

static const format *format_of(ptx_type type) {
  switch (type) {
  case PTX_F16:
  case PTX_F16X2: return &format_f16;
  case PTX_BF16:
  case PTX_BF16X2: return &format_bf16;
  case PTX_E4M3X2: return &format_e4m3;
  case PTX_E5M2X2: return &format_e5m2;
  case PTX_E2M3X2: return &format_e2m3;
  case PTX_E3M2X2: return &format_e3m2;
  case PTX_E2M1X2: return &format_e2m1;
  default: return &format_f32;
  }
}

static uint64_t after(const form *f, const format *format, uint64_t bits, long double value) {
  uint64_t sign = UINT64_C(1) << (format->bits - 1), largest = encode_exact(format, format->largest);
  bool nan = isnan(value);
  if (has(f, PTX_MOD_SATFINITE) && !nan && (fabsl(value) > format->largest)) bits = (bits & sign) | largest;
  if (has(f, PTX_MOD_RELU) && !nan && (bits & sign)) bits = 0;
  if (has(f, PTX_MOD_FTZ) && format == &format_f32 && !(bits & 0x7f800000)) bits &= sign;
  if (has(f, PTX_MOD_SAT)) {
    long double r = decode(format, bits);
    bits = nan || r <= 0 ? 0 : r > 1 ? encode_exact(format, 1) : bits;
  }
  return bits;
}

static uint64_t small_result(const form *f, const format *format, long double value) {
  if (rounds_to_integral(f)) {
    bool minus = signbit(value);
    value = isnan(value) ? value : integral(value, mode_of(f));
    if (value == 0 && minus) value = -0.0L;
    return after(f, format, encode(format, value, FE_TONEAREST), value);
  }
  return after(f, format, encode(format, value, mode_of(f)), value);
}

static uint64_t f64_result(const form *f, uint64_t source) {
  long double value = source_value(f, source);
  if (isnan(value) && has(f, PTX_MOD_SAT)) return 0;
  if (isnan(value)) switch (src_type(f)) { /* payloads are kept; the 16-bit formats have only one NaN */
    case PTX_F64: return source | UINT64_C(0x8000000000000);
    case PTX_F32: return (source & 0x80000000) << 32 | UINT64_C(0x7ff8000000000000) | (source & 0x7fffff) << 29;
    default: return UINT64_C(0x7fffffffe0000000);
    }
  if (rounds_to_integral(f)) {
    bool minus = signbit(value);
    value = integral(value, mode_of(f));
    if (value == 0 && minus) value = -0.0L;
  }
  volatile long double exact = value;
  fesetround(mode_of(f));
  volatile double r = (double)exact;
  fesetround(FE_TONEAREST);
  if (has(f, PTX_MOD_SAT)) r = r <= 0 ? 0 : r > 1 ? 1 : r;
  return bits_f64(r);
}

static uint64_t tf32_result(const form *f, uint64_t source) {
  static const format tf32 = {11, -136, 0x1.ffcp127L, 0x7f800000 >> 13, 0x7fffffff >> 13, 19};
  long double value = source_value(f, source);
  uint64_t bits = isnan(value) ? 0x7fffffff : encode(&tf32, value, mode_of(f)) << 13;
  if (isnan(value)) return bits;
  if (has(f, PTX_MOD_SATFINITE) && fabsl(value) > tf32.largest) bits = (bits & 0x80000000) | 0x7f7fe000;
  return has(f, PTX_MOD_RELU) && (bits & 0x80000000) ? 0 : bits;
}

/* An exponent without a sign; between two powers of two to the next lower one (rz), or to the next (rp). */
static uint64_t exponent_of(const form *f, long double value) {
  enum { BIAS = 127, NAN_BITS = 0xff, LARGEST = 0xfe };
  int exponent;
  if (isnan(value)) return NAN_BITS;
  if (isinf(value)) return has(f, PTX_MOD_SATFINITE) ? LARGEST : NAN_BITS;
  long double fraction = frexpl(fabsl(value), &exponent); /* in [0.5, 1) */
  if (fraction > 0.5L && has(f, PTX_MOD_RP)) exponent++;
  if (value == 0 || exponent - 1 < -BIAS) return 0;
  if (exponent - 1 > BIAS) return has(f, PTX_MOD_SATFINITE) ? LARGEST : NAN_BITS;
  return (uint64_t)(exponent - 1 + BIAS);
}

static long double of_exponent(uint64_t bits) { return bits == 0xff ? NAN : ldexpl(1, (int)bits - 127); }

/* The i-th of a pair of small numbers. */
static long double value_in_pair(const form *f, uint64_t pair, int i) {
  if (src_type(f) == PTX_UE8M0X2) return of_exponent(pair >> 8 * i & 0xff);
  return decode(format_of(src_type(f)), src_type(f) == PTX_E2M1X2 ? pair >> 4 * i & 0xf : pair >> 8 * i & 0xff);
}

static void conversion(const form *f, sample *x, int l) {
  uint64_t a = x->s[0][l], b = x->s[1][l];
  x->carry_out = x->carry;
  switch (dst_type(f)) {
  case PTX_F64: x->d[l] = f64_result(f, a); return;
  case PTX_TF32: x->d[l] = tf32_result(f, a); return;
  case PTX_F32:
  case PTX_F16:
  case PTX_BF16: x->d[l] = small_result(f, format_of(dst_type(f)), source_value(f, a)); return;
  case PTX_F16X2:
  case PTX_BF16X2:
    if (src_type(f) == PTX_F32)
      x->d[l] = small_result(f, format_of(dst_type(f)), source_value(f, a)) << 16 |
                small_result(f, format_of(dst_type(f)), source_value(f, b));
    else
      for (int i = 0; i < 2; i++) x->d[l] |= small_result(f, format_of(dst_type(f)), value_in_pair(f, a, i)) << 16 * i;
    return;
  case PTX_E2M1X2:
    x->d[l] =
        small_result(f, &format_e2m1, source_value(f, a)) << 4 | small_result(f, &format_e2m1, source_value(f, b));
    return;
  case PTX_UE8M0X2:
    if (src_type(f) == PTX_F32) x->d[l] = exponent_of(f, source_value(f, a)) << 8 | exponent_of(f, source_value(f, b));
    else
      for (int i = 0; i < 2; i++) x->d[l] |= exponent_of(f, decode(&format_bf16, a >> 16 * i & 0xffff)) << 8 * i;
    return;
  case PTX_E2M3X2:
  case PTX_E3M2X2:
  case PTX_E4M3X2:
  case PTX_E5M2X2:
    if (src_type(f) == PTX_F32)
      x->d[l] = small_result(f, format_of(dst_type(f)), source_value(f, a)) << 8 |
                small_result(f, format_of(dst_type(f)), source_value(f, b));
    else
      for (int i = 0; i < 2; i++)
        x->d[l] |= small_result(f, format_of(dst_type(f)), decode(format_of(src_type(f)), a >> 16 * i & 0xffff))
                   << 8 * i;
    return;
  default: x->d[l] = integer_result(f, a); return;
  }
}

static bool is_conversion(const form *f) { return f->instr.opcode == PTX_OP_CVT && !has(f, PTX_MOD_PACK); }
static void visit_conversion(form *f, void *context) { form_check(f, 24, conversion, NULL); }
static void test_conversions(void **state) {
  assert_in_range(each_form(is_conversion, visit_conversion, NULL), 700, 3000);
}

/* Sources of 16 bits: all of them. */
static bool is_small_source(const form *f) {
  if (!is_conversion(f) || f->sources != 1 || f->source_bits[0] > 16) return false;
  return is_float(src_type(f)) && !has(f, PTX_MOD_SAT) && !has(f, PTX_MOD_FTZ) && f->dst_bits >= 16;
}
static void visit_small(form *f, void *context) {
  static sample x;
  for (uint32_t batch = 0; batch < 2048; batch += CHECKED_BUILD ? 19 : 1 + batch % 3) {
    memset(&x, 0, sizeof x);
    for (int l = 0; l < 32; l++) x.s[0][l] = batch * 32 + (uint32_t)l;
    reference_lanes(f, &x, conversion);
    sample_run(f, &x, 2, NULL);
  }
}
static void test_small_sources(void **state) {
  assert_in_range(each_form(is_small_source, visit_small, NULL), 60, 200);
}

/* f32 around every boundary of a format of 16 bits and less: each of its numbers, the midpoint to the next, and both of
 * their neighbours. */
static bool is_narrowing(const form *f) {
  if (!is_conversion(f) || src_type(f) != PTX_F32 || f->sources > 2) return false;
  switch (dst_type(f)) {
  case PTX_F16:
  case PTX_BF16:
  case PTX_F16X2:
  case PTX_BF16X2:
  case PTX_E4M3X2:
  case PTX_E5M2X2:
  case PTX_E2M3X2:
  case PTX_E3M2X2:
  case PTX_E2M1X2:
  case PTX_TF32: return true;
  default: return false;
  }
}
static void visit_narrowing(form *f, void *context) {
  static sample x;
  const format *format = format_of(dst_type(f));
  uint32_t count = 1u << (format->bits < 16 ? format->bits - 1 : 15), step = count > 128 ? 37 : 1;
  for (uint32_t i = 0; i < count; i += 5 * step) {
    memset(&x, 0, sizeof x);
    for (uint32_t l = 0; l < 30; l++) {
      uint32_t pattern = (i + l / 6 * step) % count;
      float low = (float)decode(format, pattern), high = (float)decode(format, (pattern + 1) % count);
      float middle = (float)(((long double)low + high) / 2);
      uint64_t base = l % 6 < 3 ? bits_f32(low) : bits_f32(middle);
      x.s[0][l] = fit(base + l % 3 - 1, 32) ^ (uint64_t)random_below(2) << 31;
      x.s[1][l] = fit(base - l % 3 + 1, 32) ^ (uint64_t)random_below(2) << 31;
    }
    reference_lanes(f, &x, conversion);
    sample_run(f, &x, 2, NULL);
  }
}
static void test_narrowing_boundaries(void **state) {
  assert_in_range(each_form(is_narrowing, visit_narrowing, NULL), 60, 300);
}

/* cvt.pack: two clamped numbers side by side, c above them. */
static void packing(const form *f, sample *x, int l) {
  uint32_t bits = ptx_type_bits(dst_type(f));
  bool sign = ptx_type_class(dst_type(f)) == 'S';
  int64_t low = sign ? -(INT64_C(1) << (bits - 1)) : 0, high = (INT64_C(1) << (bits - sign)) - 1;
  uint64_t d = bits < 16 ? x->s[2][l] << 2 * bits : 0;
  for (uint32_t i = 0; i < 2; i++) {
    int64_t v = (int32_t)x->s[1 - i][l];
    d |= fit((uint64_t)(v < low ? low : v > high ? high : v), bits) << bits * i;
  }
  x->d[l] = fit(d, 32);
  x->carry_out = x->carry;
}
static bool is_packing(const form *f) { return f->instr.opcode == PTX_OP_CVT && has(f, PTX_MOD_PACK); }
static void visit_packing(form *f, void *context) { form_check(f, 24, packing, NULL); }
static void test_packing(void **state) { assert_int_equal(each_form(is_packing, visit_packing, NULL), 6); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions), cmocka_unit_test(test_small_sources),
                                     cmocka_unit_test(test_narrowing_boundaries), cmocka_unit_test(test_packing)};
  find_isas();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
