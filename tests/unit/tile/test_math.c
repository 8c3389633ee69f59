/* SPDX-License-Identifier: Apache-2.0 */
/* How far Tile IR's functions are from the exact value, in units of the last place, on a sample of all patterns of f32
 * and on random ones of f64: the limits below were measured, and rounded up. The reference is the host's library with
 * more digits (double for f32, long double for f64). TILE_MATH_STRIDE=1 takes all patterns of f32 instead of each
 * 65537th. */
#include "unit/tile/element_harness.h"

#define COUNT 65536u

static uint64_t in[2][COUNT], out[COUNT];

typedef long double exact_fn(long double a, long double b);
typedef struct math_function {
  const char *name;
  tile_opcode opcode;
  long double (*exact)(long double a, long double b);
  double limit32, limit64; /* 0: there is none of f64 */
  bool binary;
} math_function;

/* What f32 needs, double has: it is faster. */
#define EXACT1(name, function) \
  static long double exact_##name(long double a, long double b) { return function##l(a); }
EXACT1(exp, exp)
EXACT1(exp2, exp2)
EXACT1(log, log)
EXACT1(log2, log2)
EXACT1(sin, sin)
EXACT1(cos, cos)
EXACT1(tan, tan)
EXACT1(sinh, sinh)
EXACT1(cosh, cosh)
EXACT1(tanh, tanh)
static long double exact_rsqrt(long double a, long double b) { return 1 / sqrtl(a); }
static long double exact_atan2(long double a, long double b) { return atan2l(a, b); }

static long double exact_pow(long double a, long double b) { return powl(a, b); }
static long double exact_remf(long double a, long double b) { return fmodl(a, b); }

static const math_function functions[] = {
    {"exp", TILE_OP_EXP, exact_exp, 1, 1, false},        {"exp2", TILE_OP_EXP2, exact_exp2, 1, 1, false},
    {"log", TILE_OP_LOG, exact_log, 1, 1, false},        {"log2", TILE_OP_LOG2, exact_log2, 1, 1, false},
    {"sin", TILE_OP_SIN, exact_sin, 1.6, 1, false},      {"cos", TILE_OP_COS, exact_cos, 1.6, 1, false},
    {"tan", TILE_OP_TAN, exact_tan, 0.6, 1, false},      {"sinh", TILE_OP_SINH, exact_sinh, 1.7, 1.7, false},
    {"cosh", TILE_OP_COSH, exact_cosh, 1.5, 1.5, false}, {"tanh", TILE_OP_TANH, exact_tanh, 1.5, 1.5, false},
    {"rsqrt", TILE_OP_RSQRT, exact_rsqrt, 2, 2, false},  {"atan2", TILE_OP_ATAN2, exact_atan2, 1.5, 2, true},
    {"pow", TILE_OP_POW, exact_pow, 0.51, 1.2, true},    {"remf", TILE_OP_REMF, exact_remf, 0, 0.001, true},
};

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static double number_of(tile_scalar s, uint64_t bits) {
  float single;
  if (s == TILE_F64) return double_of(bits);
  memcpy(&single, &bits, 4);
  return single;
}

/* Distance of a result from the exact value in last places of the exact value; huge if one of them is no number. */
static double places(tile_scalar s, uint64_t got, long double exact) {
  int digits = s == TILE_F64 ? 53 : 24, lowest = s == TILE_F64 ? -1074 : -149, exponent;
  long double largest = s == TILE_F64 ? 0x1.fffffffffffff8p1023L : 0x1.ffffffp127L; /* and half a place */
  double value = number_of(s, got);
  if (isnan(exact)) return isnan(value) ? 0 : HUGE_VAL;
  if (isnan(value)) return HUGE_VAL;
  if (isinf(value) && fabsl(exact) >= largest) return !signbit(value) == !signbit(exact) ? 0 : HUGE_VAL;
  if (isinf(value) && fabsl(exact) >= largest * (1 - 0x1p-22L)) return 1; /* beside the largest number */
  if (isinf(value) || isinf(exact)) return HUGE_VAL;
  if (exact == 0) return value == 0 && !signbit(value) == !signbit(exact) ? 0 : HUGE_VAL;
  if (value == 0 && !signbit(value) != !signbit(exact)) return HUGE_VAL;
  frexpl(exact, &exponent);
  int place = exponent - digits < lowest ? lowest : exponent - digits;
  return (double)fabsl(ldexpl((long double)value - exact, -place));
}

typedef struct worst {
  double places;
  uint64_t a, b, got;
  long double exact;
} worst;

static void measure(const math_function *f, tile_scalar s, worst *w) {
  element_test t = {.opcode = f->opcode, .operands = {s, s}, .result = s, .operand_count = f->binary ? 2 : 1};
  run_elements(&t, COUNT, in[0], f->binary ? in[1] : NULL, NULL, out);
  for (uint32_t i = 0; i < COUNT; i++) {
    long double exact = f->exact(number_of(s, in[0][i]), number_of(s, in[1][i]));
    double off = places(s, out[i], exact);
    if (off > w->places) *w = (worst){off, in[0][i], in[1][i], out[i], exact};
  }
}

static uint64_t stride(void) {
  const char *text = getenv("TILE_MATH_STRIDE");
  return text ? strtoull(text, NULL, 10) : 65537;
}

/* The bits of a value as f64, or rounded to f32. */
static uint64_t pattern_of(tile_scalar s, double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  if (s == TILE_F64) return bits;
  float single = (float)value;
  uint32_t pattern;
  memcpy(&pattern, &single, 4);
  return pattern;
}

/* Values that matter to one function or another, and numbers whose magnitude is within the range of most. */
static uint64_t special(tile_scalar s, uint32_t i) {
  static const double values[] = {0,
                                  1,
                                  2,
                                  0.5,
                                  3,
                                  INFINITY,
                                  NAN,
                                  0x1p-149,
                                  0x1p-126,
                                  0x1p-1074,
                                  0x1p-1022,
                                  88.7228391,
                                  88.72284,
                                  89.4,
                                  89.41599,
                                  90,
                                  103.97,
                                  104,
                                  127.99999,
                                  128,
                                  149,
                                  149.5,
                                  150,
                                  709.782712893384,
                                  709.78271289338409,
                                  710.4758600739439,
                                  745.13,
                                  745.2,
                                  1024,
                                  1075,
                                  0.625,
                                  0.6249999,
                                  3.14159265358979,
                                  1.5707963267948966,
                                  0.785398163,
                                  32768,
                                  32768.004,
                                  1e22,
                                  0x1.fffffep127,
                                  0x1.fffffffffffffp1023,
                                  16367173 * 0x1p+72,
                                  6381956970095103 * 0x1p797,
                                  0.70710678,
                                  1.41421356,
                                  0.70710678118654757,
                                  1.4142135623730951};
  double value = values[i / 2 % (sizeof values / sizeof *values)];
  if (i % 2) value = -value;
  return pattern_of(s, value);
}

static uint64_t number(tile_scalar s) {
  double value = ldexp((double)(int64_t)element_random(), -63 + (int)(element_random() % 13));
  if (element_random() % 4 == 0) return some_value(s);
  if (element_random() % 4 == 0) value = 1 + ldexp(value, -(int)(element_random() % 40));
  return pattern_of(s, value);
}

static void report(const math_function *f, tile_scalar s, const worst *w, double limit) {
  print_message("%s of %s: %.3f at 0x%llx 0x%llx\n", f->name, s == TILE_F64 ? "f64" : "f32", w->places,
                (unsigned long long)w->a, (unsigned long long)w->b);
  if (w->places > limit)
    fail_msg("%s of %.17g, %.17g (0x%llx, 0x%llx) gives 0x%llx, %.17g, exact is %.20Lg: %.3f places", f->name,
             number_of(s, w->a), number_of(s, w->b), (unsigned long long)w->a, (unsigned long long)w->b,
             (unsigned long long)w->got, number_of(s, w->got), w->exact, w->places);
}

static void check(const math_function *f, tile_scalar s, double limit, uint32_t rounds) {
  worst w = {0};
  element_random_state = UINT64_C(0x9e3779b97f4a7c15);
  for (uint32_t round = 0; round < rounds; round++) {
    for (uint32_t i = 0; i < COUNT; i++) {
      in[0][i] = i < 256 ? special(s, i) : number(s);
      in[1][i] = i < 256 ? special(s, i / 16 + i % 16 * 12) : number(s);
    }
    measure(f, s, &w);
  }
  report(f, s, &w, limit);
}

static const char *chosen(void) { return getenv("TILE_MATH_ONLY"); }

/* The numbers next to multiples of pi/2, where what is left after the reduction is small. */
static void quarter_turns(void **state) {
  for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
    const math_function *f = &functions[n];
    if (f->opcode != TILE_OP_SIN && f->opcode != TILE_OP_COS && f->opcode != TILE_OP_TAN) continue;
    for (int wide = 0; wide < 2; wide++) {
      tile_scalar s = wide ? TILE_F64 : TILE_F32;
      worst w = {0};
      for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t turns = wide && i % 2 ? (uint64_t)i * i * i : i; /* the second reduction, too */
        double value = (double)(turns * 1.57079632679489661923L);
        float single = (float)value;
        if (wide) memcpy(&in[0][i], &value, 8);
        else in[0][i] = 0, memcpy(&in[0][i], &single, 4);
      }
      measure(f, s, &w);
      report(f, s, &w, wide ? f->limit64 : f->limit32);
    }
  }
}

static void singles(void **state) {
  for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
    const math_function *f = &functions[n];
    if (chosen() && strcmp(chosen(), f->name)) continue;
    check(f, TILE_F32, f->limit32, 1);
    if (f->binary) continue;
    worst w = {0};
    for (uint64_t next = 0, i = 0; next < UINT64_C(1) << 32; next += stride()) {
      in[0][i++] = next;
      if (i < COUNT && next + stride() < UINT64_C(1) << 32) continue;
      while (i < COUNT) in[0][i++] = next;
      measure(f, TILE_F32, &w);
      i = 0;
    }
    report(f, TILE_F32, &w, f->limit32);
  }
}

static void doubles(void **state) {
  for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
    const math_function *f = &functions[n];
    if (chosen() && strcmp(chosen(), f->name)) continue;
    if (f->limit64 > 0) check(f, TILE_F64, f->limit64, 2);
  }
}

/* All patterns of f16 and bf16: computed in f32, so little more than half a place off. */
static void halves(void **state) {
  static const tile_scalar scalars[] = {TILE_F16, TILE_BF16};
  for (size_t n = 0; n < 2 * sizeof functions / sizeof *functions; n++) {
    const math_function *f = &functions[n / 2];
    tile_scalar s = scalars[n % 2];
    if (chosen() && strcmp(chosen(), f->name)) continue;
    element_test t = {.opcode = f->opcode, .operands = {s, s}, .result = s, .operand_count = f->binary ? 2 : 1};
    for (uint32_t i = 0; i < COUNT; i++) in[0][i] = i, in[1][i] = i * 40503u & 0xffff;
    run_elements(&t, COUNT, in[0], f->binary ? in[1] : NULL, NULL, out);
    int digits = s == TILE_F16 ? 11 : 8, lowest = s == TILE_F16 ? -24 : -133;
    for (uint32_t i = 0; i < COUNT; i++) {
      long double exact = f->exact(value_of(s, in[0][i]), value_of(s, in[1][i]));
      double value = value_of(s, out[i]);
      bool same = isnan(exact) ? isnan(value) : false;
      if (!isnan(exact) && !isnan(value)) {
        int exponent;
        uint64_t nearest = rounded(s, (double)exact, TILE_ROUND_EVEN, false);
        same = value_of(s, nearest) == value && signbit(value_of(s, nearest)) == signbit(value);
        if (!same && isfinite(value) && exact != 0 && isfinite(exact)) {
          frexpl(exact, &exponent);
          int place = exponent - digits < lowest ? lowest : exponent - digits;
          same = fabsl(ldexpl((long double)value - exact, -place)) < 0.501L;
        }
      }
      if (!same)
        fail_msg("%s of %s 0x%llx 0x%llx gives 0x%llx, exact is %.20Lg", f->name, s == TILE_F16 ? "f16" : "bf16",
                 (unsigned long long)in[0][i], (unsigned long long)in[1][i], (unsigned long long)out[i], exact);
    }
  }
}

static void integer_powers(void **state) {
  static const tile_scalar floats[] = {TILE_F32, TILE_F64}, exponents[] = {TILE_I8, TILE_I16, TILE_I32, TILE_I64};
  for (int n = 0; n < 8; n++) {
    tile_scalar s = floats[n / 4], e = exponents[n % 4];
    element_test t = {.opcode = TILE_OP_FPOW_I, .operands = {s, e}, .result = s};
    for (uint32_t i = 0; i < COUNT; i++) {
      in[0][i] = i % 4096 < 256 ? special(s, i % 4096) : number(s);
      in[1][i] = i % 3 ? some_value(e) : (i % 16 - 8) & mask_of(e);
    }
    run_elements(&t, COUNT, in[0], in[1], NULL, out);
    for (uint32_t i = 0; i < COUNT; i++) {
      int64_t power = (int64_t)(in[1][i] << (64 - width_of(e))) >> (64 - width_of(e));
      double base = number_of(s, in[0][i]);
      long double exact = powl(fabs(base), (long double)power); /* 64 bits: exact; glibc's of -infinity is not */
      if (signbit(base) && power & 1) exact = -exact;
      if (places(s, out[i], exact) > 2)
        fail_msg("%.17g ^ %lld gives %.17g, exact is %.20Lg", number_of(s, in[0][i]), (long long)power,
                 number_of(s, out[i]), exact);
    }
  }
}

/* exp2 with denormal results made 0, exp and tanh by the instructions that are near them. */
static void modes(void **state) {
  element_test t = {.opcode = TILE_OP_EXP2, .operands = {TILE_F32}, .result = TILE_F32, .operand_count = 1};
  t.op.flush_to_zero = true;
  for (uint32_t i = 0; i < COUNT; i++) {
    float value = -(float)i / 400;
    in[0][i] = 0;
    memcpy(&in[0][i], &value, 4);
  }
  run_elements(&t, COUNT, in[0], NULL, NULL, out);
  for (uint32_t i = 0; i < COUNT; i++) {
    double exact = exp2(number_of(TILE_F32, in[0][i])), got = number_of(TILE_F32, out[i]);
    if (exact < 0x1p-126) assert_true(got == 0);
    else assert_true(fabs(got / exact - 1) < 0x1p-22);
  }
  for (int n = 0; n < 2; n++) {
    t = (element_test){
        .opcode = n ? TILE_OP_TANH : TILE_OP_EXP, .operands = {TILE_F32}, .result = TILE_F32, .operand_count = 1};
    t.op.rounding = TILE_ROUND_APPROX;
    run_elements(&t, COUNT, in[0], NULL, NULL, out);
    for (uint32_t i = 1; i < 20000; i++) {
      double exact = n ? tanh(number_of(TILE_F32, in[0][i])) : exp(number_of(TILE_F32, in[0][i]));
      assert_true(fabs(number_of(TILE_F32, out[i]) / exact - 1) < (n ? 0x1p-10 : 0x1p-17));
    }
  }
}

/* A module that needs all functions gets each once, what a function calls before it. */
static void all_helpers(void **state) {
  ff_text text = {0};
  ff_text_add(&text, ".version 8.1\n.target sm_80\n.address_size 64\n");
  lower_helpers_text(~UINT64_C(0) >> (64 - HELPER_COUNT), &text);
  close_ptx(open_ptx(text.chars));
  free(text.chars);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(quarter_turns),  cmocka_unit_test(singles), cmocka_unit_test(doubles),    cmocka_unit_test(halves),
    cmocka_unit_test(integer_powers), cmocka_unit_test(modes),   cmocka_unit_test(all_helpers)};

RUN_ON_FIRST_ISA(tests)
