/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, comparisons and conversions of Tile IR's elements, on every type, against the host's arithmetic: integers
 * in 128 bits, f32 and f64 under the rounding asked for, smaller floats in double rounded to odd and once more. */
#include "unit/tile/element_harness.h"

#define COUNT 4096u

static uint64_t in[OPERANDS_MAX][COUNT], out[COUNT];

static const char *const scalar_names[] = {"i1",  "i4",   "i8",  "i16",  "i32",  "i64",  "f16",  "bf16",
                                           "f32", "tf32", "f64", "e4m3", "e5m2", "e8m0", "e2m1", "pointer"};

static void make_values(element_test *t) {
  element_random_state = UINT64_C(0x9e3779b97f4a7c15) + t->opcode;
  uint32_t operands = t->operand_count ? t->operand_count : 2;
  for (uint32_t n = 0; n < operands; n++)
    for (uint32_t i = 0; i < COUNT; i++) in[n][i] = some_value(t->operands[n]);
}

static void compute(element_test *t) {
  uint32_t operands = t->operand_count ? t->operand_count : 2;
  run_elements(t, COUNT, in[0], operands > 1 ? in[1] : NULL, operands > 2 ? in[2] : NULL, out);
}

static void expect(const element_test *t, uint32_t i, uint64_t expected, bool any_nan) {
  if (any_nan && is_float(t->result) && is_nan(t->result, expected) && is_nan(t->result, out[i])) return;
  if (out[i] == expected) return;
  fail_msg(
      "operation %d of %s to %s (rounding %u, signed %d, predicate %u): 0x%llx 0x%llx 0x%llx gives 0x%llx, not 0x%llx",
      t->opcode, scalar_names[t->operands[0]], scalar_names[t->result], t->op.rounding, t->op.lhs_signed,
      t->op.predicate, (unsigned long long)in[0][i], (unsigned long long)in[1][i], (unsigned long long)in[2][i],
      (unsigned long long)out[i], (unsigned long long)expected);
}

/* ---- integers ---- */

static __int128 integer_of(tile_scalar scalar, bool is_signed, uint64_t bits) {
  uint32_t width = width_of(scalar);
  if (is_signed && bits >> (width - 1) & 1) return (__int128)bits - ((__int128)1 << width);
  return bits;
}

static __int128 divide(__int128 a, __int128 b, uint8_t rounding) {
  __int128 quotient = a / b, left = a % b;
  if (left && rounding == TILE_ROUND_DOWN && (left < 0) != (b < 0)) quotient--;
  if (left && rounding == TILE_ROUND_UP && (left < 0) == (b < 0)) quotient++;
  return quotient;
}

static bool compares(uint8_t predicate, int order) { /* order: -1, 0, 1 */
  switch (predicate) {
  case TILE_EQ: return order == 0;
  case TILE_NE: return order != 0;
  case TILE_LT: return order < 0;
  case TILE_LE: return order <= 0;
  case TILE_GT: return order > 0;
  default: return order >= 0;
  }
}

static __int128 integer_reference(const element_test *t, uint64_t x, uint64_t y, bool *defined) {
  tile_scalar scalar = t->operands[0];
  uint32_t width = width_of(scalar);
  bool is_signed = t->op.lhs_signed;
  __int128 a = integer_of(scalar, is_signed, x), b = integer_of(scalar, is_signed, y);
  *defined = true;
  switch (t->opcode) {
  case TILE_OP_ADDI: return a + b;
  case TILE_OP_SUBI: return a - b;
  case TILE_OP_MULI: return (__int128)(x * y);
  case TILE_OP_ANDI: return x & y;
  case TILE_OP_ORI: return x | y;
  case TILE_OP_XORI: return x ^ y;
  case TILE_OP_MAXI: return a > b ? a : b;
  case TILE_OP_MINI: return a < b ? a : b;
  case TILE_OP_DIVI: return *defined = b != 0, b ? divide(a, b, t->op.rounding) : 0;
  case TILE_OP_REMI: return *defined = b != 0, b ? a % b : 0;
  case TILE_OP_SHLI: return y >= width ? 0 : (__int128)(x << y);
  case TILE_OP_SHRI: return a >> (y >= width ? width : y);
  case TILE_OP_MULHII: return (__int128)((unsigned __int128)x * y >> width);
  case TILE_OP_ABSI: a = integer_of(scalar, true, x); return a < 0 ? -a : a;
  case TILE_OP_NEGI: return -a;
  default: return compares(t->op.predicate, a < b ? -1 : a > b);
  }
}

static void check_integers(element_test *t) {
  make_values(t);
  compute(t);
  for (uint32_t i = 0; i < COUNT; i++) {
    bool defined;
    __int128 expected = integer_reference(t, in[0][i], in[1][i], &defined);
    if (defined) expect(t, i, (uint64_t)expected & mask_of(t->result), false);
  }
}

static void integers(void **state) {
  static const tile_opcode opcodes[] = {
      TILE_OP_ADDI, TILE_OP_SUBI, TILE_OP_MULI, TILE_OP_ANDI, TILE_OP_ORI,  TILE_OP_XORI, TILE_OP_MAXI, TILE_OP_MINI,
      TILE_OP_DIVI, TILE_OP_REMI, TILE_OP_SHLI, TILE_OP_SHRI, TILE_OP_ABSI, TILE_OP_NEGI, TILE_OP_CMPI, TILE_OP_MULHII};
  for (size_t o = 0; o < sizeof opcodes / sizeof *opcodes; o++)
    for (tile_scalar scalar = TILE_I1; scalar <= TILE_I64; scalar++)
      for (int is_signed = 0; is_signed < 2; is_signed++) {
        bool unary = opcodes[o] == TILE_OP_ABSI || opcodes[o] == TILE_OP_NEGI, compare = opcodes[o] == TILE_OP_CMPI;
        element_test t = {.opcode = opcodes[o], .operands = {scalar, scalar}, .result = compare ? TILE_I1 : scalar};
        t.operand_count = unary ? 1 : 2;
        t.op.lhs_signed = is_signed;
        if (opcodes[o] == TILE_OP_DIVI) {
          t.op.rounding = TILE_ROUND_ZERO, check_integers(&t);
          t.op.rounding = TILE_ROUND_UP, check_integers(&t);
          if (!is_signed) continue;
          t.op.rounding = TILE_ROUND_DOWN;
        }
        for (uint8_t predicate = TILE_EQ; predicate <= (compare ? TILE_GE : TILE_EQ); predicate++) {
          t.op.predicate = predicate;
          check_integers(&t);
        }
      }
}

/* ---- floats ---- */

static float f32_of(uint64_t bits) {
  uint32_t b = (uint32_t)bits;
  float value;
  memcpy(&value, &b, 4);
  return value;
}
static uint64_t bits32(float value) {
  uint32_t b;
  memcpy(&b, &value, 4);
  return b;
}
static double f64_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static uint64_t bits64(double value) {
  uint64_t b;
  memcpy(&b, &value, 8);
  return b;
}

static int host_rounding(uint8_t rounding) {
  return rounding == TILE_ROUND_ZERO   ? FE_TOWARDZERO
         : rounding == TILE_ROUND_DOWN ? FE_DOWNWARD
         : rounding == TILE_ROUND_UP   ? FE_UPWARD
                                       : FE_TONEAREST;
}

/* volatile: the operation has to take place where it stands, between the changes of the rounding. */
static double compute64(tile_opcode opcode, double x, double y, double z) {
  volatile double a = x, b = y, c = z, r;
  switch (opcode) {
  case TILE_OP_ADDF: r = a + b; break;
  case TILE_OP_SUBF: r = a - b; break;
  case TILE_OP_MULF: r = a * b; break;
  case TILE_OP_DIVF: r = a / b; break;
  case TILE_OP_SQRT: r = sqrt(a); break;
  default: r = fma(a, b, c); break;
  }
  return r;
}

static float compute32(tile_opcode opcode, float x, float y, float z) {
  volatile float a = x, b = y, c = z, r;
  switch (opcode) {
  case TILE_OP_ADDF: r = a + b; break;
  case TILE_OP_SUBF: r = a - b; break;
  case TILE_OP_MULF: r = a * b; break;
  case TILE_OP_DIVF: r = a / b; break;
  case TILE_OP_SQRT: r = sqrtf(a); break;
  default: r = fmaf(a, b, c); break;
  }
  return r;
}

/* In double, with the last bit set if the result is not exact: more than enough digits to round once more. */
static double compute_odd(tile_opcode opcode, double a, double b, double c) {
  feclearexcept(FE_ALL_EXCEPT);
  fesetround(FE_TOWARDZERO);
  double r = compute64(opcode, a, b, c);
  bool inexact = fetestexcept(FE_INEXACT) != 0;
  fesetround(FE_TONEAREST);
  return inexact && isfinite(r) ? f64_of(bits64(r) | 1) : r;
}

static float flushed(float value, bool flush) {
  return flush && fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

static uint64_t float_reference(const element_test *t, const uint64_t v[OPERANDS_MAX]) {
  uint8_t rounding = t->op.rounding;
  if (t->result == TILE_F64 || t->result == TILE_F32) {
    fesetround(host_rounding(rounding));
    bool flush = t->op.flush_to_zero;
    uint64_t bits;
    if (t->result == TILE_F64) bits = bits64(compute64(t->opcode, f64_of(v[0]), f64_of(v[1]), f64_of(v[2])));
    else
      bits = bits32(flushed(compute32(t->opcode, flushed(f32_of(v[0]), flush), flushed(f32_of(v[1]), flush),
                                      flushed(f32_of(v[2]), flush)),
                            flush));
    fesetround(FE_TONEAREST);
    return bits;
  }
  double a = value_of(t->result, v[0]), b = value_of(t->result, v[1]), c = value_of(t->result, v[2]);
  double r = compute_odd(t->opcode, a, b, c);
  if (isnan(r)) return mask_of(t->result) >> 1;
  uint64_t bits = rounded(t->result, r, rounding, false);
  if (r == 0 && (t->opcode == TILE_OP_ADDF || t->opcode == TILE_OP_SUBF || t->opcode == TILE_OP_FMA)) {
    fesetround(host_rounding(rounding)); /* the sign of an exact 0 */
    double zero = compute64(t->opcode, a, b, c);
    fesetround(FE_TONEAREST);
    bits = signbit(zero) ? mask_of(t->result) ^ mask_of(t->result) >> 1 : 0;
  }
  return bits;
}

/* A result that was rounded up to the smallest normal number may be flushed or not. */
static bool is_near_smallest(uint64_t bits) { return (bits & 0x7fffffff) == 0x00800000; }

static void check_floats(element_test *t) {
  make_values(t);
  compute(t);
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint64_t v[OPERANDS_MAX] = {in[0][i], in[1][i], in[2][i]};
    uint64_t expected = float_reference(t, v);
    if (t->op.flush_to_zero && is_near_smallest(expected)) continue;
    expect(t, i, expected, true);
  }
}

static const tile_scalar base_floats[] = {TILE_F16, TILE_BF16, TILE_F32, TILE_F64};

static void floats(void **state) {
  static const tile_opcode opcodes[] = {TILE_OP_ADDF, TILE_OP_SUBF, TILE_OP_MULF,
                                        TILE_OP_DIVF, TILE_OP_SQRT, TILE_OP_FMA};
  for (size_t o = 0; o < sizeof opcodes / sizeof *opcodes; o++)
    for (int f = 0; f < 4; f++)
      for (uint8_t rounding = TILE_ROUND_EVEN; rounding <= TILE_ROUND_UP; rounding++)
        for (int flush = 0; flush < (base_floats[f] == TILE_F32 ? 2 : 1); flush++) {
          tile_scalar s = base_floats[f];
          element_test t = {.opcode = opcodes[o], .operands = {s, s, s}, .result = s};
          t.operand_count = opcodes[o] == TILE_OP_SQRT ? 1 : opcodes[o] == TILE_OP_FMA ? 3 : 2;
          t.op.rounding = rounding;
          t.op.flush_to_zero = flush;
          check_floats(&t);
        }
}

/* Distance in places of f32, of numbers of the same sign. */
static uint64_t places32(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static void approximate_division(void **state) {
  for (uint8_t rounding = TILE_ROUND_APPROX; rounding <= TILE_ROUND_FULL; rounding++) {
    element_test t = {.opcode = TILE_OP_DIVF, .operands = {TILE_F32, TILE_F32}, .result = TILE_F32};
    t.op.rounding = rounding;
    make_values(&t);
    compute(&t);
    for (uint32_t i = 0; i < COUNT; i++) {
      float a = f32_of(in[0][i]), b = f32_of(in[1][i]), q = a / b;
      if (!(fabsf(b) >= 0x1p-126f && fabsf(b) <= 0x1p126f) || !(fabsf(a) >= 0x1p-126f) || !isfinite(q) ||
          fabsf(q) < 0x1p-120f)
        continue;
      if (places32(bits32(q), out[i]) > 2) expect(&t, i, bits32(q), true);
    }
  }
  element_test t = {.opcode = TILE_OP_SQRT, .operands = {TILE_F32}, .result = TILE_F32, .operand_count = 1};
  t.op.rounding = TILE_ROUND_APPROX;
  make_values(&t);
  compute(&t);
  for (uint32_t i = 0; i < COUNT; i++) {
    float r = sqrtf(f32_of(in[0][i]));
    if (f32_of(in[0][i]) >= 0x1p-126f && isfinite(r) && places32(bits32(r), out[i]) > 4) expect(&t, i, bits32(r), true);
  }
}

static void signs_and_integral_values(void **state) {
  static const tile_opcode opcodes[] = {TILE_OP_ABSF, TILE_OP_NEGF, TILE_OP_CEIL, TILE_OP_FLOOR};
  for (int o = 0; o < 4; o++)
    for (int f = 0; f < 4; f++) {
      tile_scalar s = base_floats[f];
      uint64_t sign = mask_of(s) ^ mask_of(s) >> 1;
      element_test t = {.opcode = opcodes[o], .operands = {s}, .result = s, .operand_count = 1};
      make_values(&t);
      compute(&t);
      for (uint32_t i = 0; i < COUNT; i++) {
        double value = value_of(s, in[0][i]);
        if (t.opcode == TILE_OP_ABSF) expect(&t, i, in[0][i] & ~sign, false);
        else if (t.opcode == TILE_OP_NEGF) expect(&t, i, in[0][i] ^ sign, false);
        else if (isnan(value)) expect(&t, i, in[0][i], true);
        else
          expect(&t, i, rounded(s, t.opcode == TILE_OP_CEIL ? ceil(value) : floor(value), TILE_ROUND_EVEN, false),
                 true);
      }
    }
}

static uint64_t extremum(const element_test *t, uint64_t a, uint64_t b) {
  tile_scalar s = t->result;
  uint64_t sign = mask_of(s) ^ mask_of(s) >> 1, nan = s == TILE_F64 ? UINT64_C(0x7ff8000000000000) : mask_of(s) >> 1;
  bool largest = t->opcode == TILE_OP_MAXF;
  if (is_nan(s, a) || is_nan(s, b)) {
    if (t->op.propagate_nan || (is_nan(s, a) && is_nan(s, b))) return nan;
    return is_nan(s, a) ? b : a;
  }
  double x = value_of(s, a), y = value_of(s, b);
  if (x == y) return largest ? (a & sign ? b : a) : (a & sign ? a : b); /* -0 is less than 0 */
  return (x > y) == largest ? a : b;
}

static void extrema(void **state) {
  for (int f = 0; f < 4; f++)
    for (int propagate = 0; propagate < 2; propagate++)
      for (int largest = 0; largest < 2; largest++)
        for (int flush = 0; flush < (base_floats[f] == TILE_F32 ? 2 : 1); flush++) {
          tile_scalar s = base_floats[f];
          element_test t = {.opcode = largest ? TILE_OP_MAXF : TILE_OP_MINF, .operands = {s, s}, .result = s};
          t.op.propagate_nan = propagate;
          t.op.flush_to_zero = flush;
          make_values(&t);
          compute(&t);
          for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t a = in[0][i], b = in[1][i];
            if (flush) a = bits32(flushed(f32_of(a), true)), b = bits32(flushed(f32_of(b), true));
            expect(&t, i, extremum(&t, a, b), true);
          }
        }
}

static void float_comparisons(void **state) {
  for (int f = 0; f < 4; f++)
    for (int ordered = 0; ordered < 2; ordered++)
      for (uint8_t predicate = TILE_EQ; predicate <= TILE_GE; predicate++) {
        tile_scalar s = base_floats[f];
        element_test t = {.opcode = TILE_OP_CMPF, .operands = {s, s}, .result = TILE_I1};
        t.op.predicate = predicate;
        t.op.ordered = ordered;
        make_values(&t);
        compute(&t);
        for (uint32_t i = 0; i < COUNT; i++) {
          double a = value_of(s, in[0][i]), b = value_of(s, in[1][i]);
          expect(&t, i, isnan(a) || isnan(b) ? !ordered : compares(predicate, a < b ? -1 : a > b), false);
        }
      }
}

/* ---- selection, pointers ---- */

static void selection(void **state) {
  for (tile_scalar s = TILE_I1; s <= TILE_POINTER; s++) {
    element_test t = {.opcode = TILE_OP_SELECT, .operands = {TILE_I1, s, s}, .result = s, .operand_count = 3};
    make_values(&t);
    compute(&t);
    for (uint32_t i = 0; i < COUNT; i++) expect(&t, i, in[0][i] ? in[1][i] : in[2][i], false);
  }
}

static void offsets(void **state) { /* the harness's pointers are to i32 */
  for (tile_scalar s = TILE_I8; s <= TILE_I64; s++) {
    element_test t = {.opcode = TILE_OP_OFFSET, .operands = {TILE_POINTER, s}, .result = TILE_POINTER};
    make_values(&t);
    compute(&t);
    for (uint32_t i = 0; i < COUNT; i++) expect(&t, i, in[0][i] + (uint64_t)integer_of(s, true, in[1][i]) * 4, false);
  }
}

/* ---- conversions ---- */

static void integer_widths(void **state) {
  for (tile_scalar from = TILE_I1; from <= TILE_I64; from++)
    for (tile_scalar to = TILE_I1; to <= TILE_I64; to++)
      for (int is_signed = 0; is_signed < 2; is_signed++) {
        if (from == to) continue;
        element_test t = {
            .opcode = from < to ? TILE_OP_EXTI : TILE_OP_TRUNCI, .operands = {from}, .result = to, .operand_count = 1};
        t.op.lhs_signed = is_signed;
        make_values(&t);
        compute(&t);
        for (uint32_t i = 0; i < COUNT; i++)
          expect(&t, i, (uint64_t)integer_of(from, is_signed, in[0][i]) & mask_of(to), false);
      }
}

static void same_bits(void **state) {
  static const tile_scalar pairs[][2] = {{TILE_I16, TILE_F16}, {TILE_BF16, TILE_I16}, {TILE_F16, TILE_BF16},
                                         {TILE_I32, TILE_F32}, {TILE_F64, TILE_I64},  {TILE_I8, TILE_E4M3},
                                         {TILE_I4, TILE_E2M1}, {TILE_I1, TILE_I1}};
  for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
    element_test t = {.opcode = TILE_OP_BITCAST, .operands = {pairs[n][0]}, .result = pairs[n][1], .operand_count = 1};
    make_values(&t);
    compute(&t);
    for (uint32_t i = 0; i < COUNT; i++) expect(&t, i, in[0][i], false);
  }
  static const tile_opcode opcodes[] = {TILE_OP_INT_TO_PTR, TILE_OP_PTR_TO_INT, TILE_OP_PTR_TO_PTR};
  for (int n = 0; n < 3; n++) {
    tile_scalar from = opcodes[n] == TILE_OP_INT_TO_PTR ? TILE_I64 : TILE_POINTER;
    element_test t = {.opcode = opcodes[n],
                      .operands = {from},
                      .result = opcodes[n] == TILE_OP_PTR_TO_INT ? TILE_I64 : TILE_POINTER,
                      .operand_count = 1};
    make_values(&t);
    compute(&t);
    for (uint32_t i = 0; i < COUNT; i++) expect(&t, i, in[0][i], false);
  }
}

static uint64_t e8m0_reference(double value, uint8_t rounding) {
  int exponent;
  double magnitude = fabs(value);
  if (isnan(value)) return 255;
  if (isinf(value)) return 254;
  if (magnitude <= 0x1p-127) return 0;
  double half = frexp(magnitude, &exponent);
  if (rounding == TILE_ROUND_EVEN) {
    if (half < 0.75 || (half == 0.75 && (exponent + 126) % 2 == 0)) exponent--; /* 1.5 is between 1 and 2 */
  } else if (rounding != TILE_ROUND_UP || half == 0.5) {
    exponent--;
  }
  return exponent + 127 > 254 ? 254 : exponent + 127 < 0 ? 0 : (uint64_t)(exponent + 127);
}

static void check_float_conversion(tile_scalar from, tile_scalar to, uint8_t rounding) {
  element_test t = {.opcode = TILE_OP_FTOF, .operands = {from}, .result = to, .operand_count = 1};
  t.op.rounding = rounding;
  make_values(&t);
  bool all = width_of(from) <= 8; /* all patterns of small types; near the values of small types else */
  for (uint32_t i = 0; i < COUNT; i++) {
    if (all) in[0][i] = i & mask_of(from);
    else if (i % 2 && (from == TILE_F32 || from == TILE_F64) && width_of(to) <= 16) {
      double value = value_of(to, element_random() & mask_of(to)), next = value_of(to, element_random() & mask_of(to));
      if (i % 4 == 1) next = value * (1 + ldexp(1, -(int)format_of(to).fraction_bits - 1)); /* between two */
      if (i % 8 == 1)
        next = value * (1 + ldexp(1, -(int)format_of(to).fraction_bits - 1) *
                                (1 + ldexp(1, -18 + (int)format_of(to).fraction_bits)));
      in[0][i] = from == TILE_F64 ? bits64(next) : bits32((float)next);
    }
  }
  compute(&t);
  bool saturates = to == TILE_E4M3 || to == TILE_E5M2 || to == TILE_E2M1;
  for (uint32_t i = 0; i < COUNT; i++) {
    double value = value_of(from, in[0][i]);
    if (to == TILE_E8M0) expect(&t, i, e8m0_reference(value, rounding), false);
    else if (isnan(value)) expect(&t, i, to == TILE_E2M1 ? 7 : mask_of(to) >> 1, true);
    else expect(&t, i, rounded(to, value, rounding, saturates), false);
  }
}

static void float_conversions(void **state) {
  for (tile_scalar from = TILE_F16; from <= TILE_E2M1; from++)
    for (tile_scalar to = TILE_F16; to <= TILE_E2M1; to++) {
      if (from == to) continue;
      if (to == TILE_E8M0) {
        check_float_conversion(from, to, TILE_ROUND_ZERO);
        check_float_conversion(from, to, TILE_ROUND_UP);
        continue;
      }
      check_float_conversion(from, to, TILE_ROUND_EVEN);
    }
  for (int i = 0; i < 2; i++) {
    check_float_conversion(TILE_F32, i ? TILE_TF32 : TILE_BF16, TILE_ROUND_ZERO);
    check_float_conversion(TILE_F32, i ? TILE_TF32 : TILE_BF16, TILE_ROUND_AWAY);
  }
}

static uint64_t integer_to_float_reference(tile_scalar to, __int128 value) {
  double odd = (double)value; /* to odd: what is lost of 64 bits is of no other use */
  fesetround(FE_TOWARDZERO);
  volatile __int128 v = value;
  odd = (double)v;
  fesetround(FE_TONEAREST);
  if ((__int128)odd != value) odd = f64_of(bits64(odd) | 1);
  if (to == TILE_F64) return bits64((double)value);
  if (to == TILE_E8M0) return e8m0_reference(odd, TILE_ROUND_EVEN);
  uint64_t bits = rounded(to, odd, TILE_ROUND_EVEN, to == TILE_E2M1);
  if (to == TILE_E4M3 && fabs(odd) > 464) bits = 0x7f | (odd < 0 ? 0x80 : 0);
  return bits;
}

static void integers_to_floats(void **state) {
  for (tile_scalar from = TILE_I1; from <= TILE_I64; from++)
    for (tile_scalar to = TILE_F16; to <= TILE_E2M1; to++)
      for (int is_signed = 0; is_signed < 2; is_signed++) {
        element_test t = {.opcode = TILE_OP_ITOF, .operands = {from}, .result = to, .operand_count = 1};
        t.op.lhs_signed = is_signed;
        make_values(&t);
        static const int edges[] = {448, 463, 464, 465, 480, 57344, 61439, 61440, 61441, 65504, 65519, 65520};
        for (uint32_t i = 0; i < 2 * sizeof edges / sizeof *edges; i++)
          in[0][i] = (uint64_t)(i % 2 ? -edges[i / 2] : edges[i / 2]) & mask_of(from);
        compute(&t);
        for (uint32_t i = 0; i < COUNT; i++)
          expect(&t, i, integer_to_float_reference(to, integer_of(from, is_signed, in[0][i])), false);
      }
}

static void floats_to_integers(void **state) {
  for (tile_scalar from = TILE_F16; from <= TILE_E2M1; from++)
    for (tile_scalar to = TILE_I1; to <= TILE_I64; to++)
      for (int choice = 0; choice < 4; choice++) {
        bool is_signed = choice & 1, saturating = choice & 2;
        element_test t = {.opcode = TILE_OP_FTOI, .operands = {from}, .result = to, .operand_count = 1};
        t.op.lhs_signed = is_signed;
        t.op.saturating = saturating;
        t.op.rounding = TILE_ROUND_INT_TO_ZERO;
        make_values(&t);
        if (from == TILE_F32 || from == TILE_F64)
          for (uint32_t i = 0; i < COUNT; i += 3) { /* in range */
            double value = ldexp((double)(int64_t)element_random(), -1 - (int)(element_random() % 64));
            in[0][i] = from == TILE_F64 ? bits64(value) : bits32((float)value);
          }
        compute(&t);
        __int128 one = 1, highest = (one << (width_of(to) - is_signed)) - 1, lowest = is_signed ? -highest - 1 : 0;
        for (uint32_t i = 0; i < COUNT; i++) {
          double value = trunc(value_of(from, in[0][i]));
          if (to == TILE_I1 && !is_signed && !saturating) { /* any other number than 0 is true */
            expect(&t, i, value_of(from, in[0][i]) != 0, false);
            continue;
          }
          bool inside = value >= (double)lowest && value < ldexp(1, (int)(width_of(to) - is_signed));
          if (!inside && !saturating) continue;
          __int128 expected = isnan(value) ? 0 : inside ? (__int128)value : value < 0 ? lowest : highest;
          expect(&t, i, (uint64_t)expected & mask_of(to), false);
        }
      }
}

/* ---- divisors ---- */

static void expect_divisor(tile_opcode opcode, tile_scalar a, tile_scalar b, uint64_t of_a, uint64_t of_b,
                           uint64_t expected) {
  ff_error error = {0};
  char *text;
  element_test t = {
      .opcode = opcode, .operands = {a, b}, .result = opcode == TILE_OP_CMPI ? TILE_I1 : a, .divisors = {of_a, of_b}};
  if (opcode == TILE_OP_EXTI) t.operand_count = 1, t.result = TILE_I64;
  assert_int_equal(lower_element(&t, &text, &error), FF_OK);
  free(text);
  if (t.divisor != expected)
    fail_msg("operation %d of divisors %d, %d: %d", opcode, (int)of_a, (int)of_b, (int)t.divisor);
}

static void divisors(void **state) {
  expect_divisor(TILE_OP_ADDI, TILE_I32, TILE_I32, 16, 4, 4);
  expect_divisor(TILE_OP_SUBI, TILE_I32, TILE_I32, 2, 8, 2);
  expect_divisor(TILE_OP_MULI, TILE_I32, TILE_I32, 16, 4, 64);
  expect_divisor(TILE_OP_MULI, TILE_I64, TILE_I64, UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 62);
  expect_divisor(TILE_OP_ANDI, TILE_I32, TILE_I32, 16, 4, 16);
  expect_divisor(TILE_OP_ORI, TILE_I32, TILE_I32, 16, 4, 1);
  expect_divisor(TILE_OP_MAXI, TILE_I32, TILE_I32, 16, 4, 4);
  expect_divisor(TILE_OP_REMI, TILE_I32, TILE_I32, 16, 4, 4);
  expect_divisor(TILE_OP_DIVI, TILE_I32, TILE_I32, 16, 4, 1);
  expect_divisor(TILE_OP_SHLI, TILE_I32, TILE_I32, 16, 4, 16);
  expect_divisor(TILE_OP_SHRI, TILE_I32, TILE_I32, 16, 4, 1);
  expect_divisor(TILE_OP_CMPI, TILE_I32, TILE_I32, 16, 4, 1);
  expect_divisor(TILE_OP_EXTI, TILE_I32, TILE_I32, 16, 1, 16);
  expect_divisor(TILE_OP_OFFSET, TILE_POINTER, TILE_I32, 64, 4, 16);
  expect_divisor(TILE_OP_OFFSET, TILE_POINTER, TILE_I32, 8, 4, 8);
}

static void assumed_divisors(void **state) {
  ff_error error = {0};
  char *text;
  element_test t = {
      .opcode = TILE_OP_ASSUME, .operands = {TILE_I32}, .result = TILE_I32, .operand_count = 1, .divisors = {4}};
  static const struct {
    tile_assumed kind;
    uint64_t divisor;
    bool has_every;
    int64_t every;
    uint64_t expected;
  } cases[] = {{TILE_ASSUME_DIV_BY, 16, false, 0, 16}, {TILE_ASSUME_DIV_BY, 2, false, 0, 4},
               {TILE_ASSUME_DIV_BY, 16, true, 4, 4},   {TILE_ASSUME_DIV_BY, 16, true, 1, 16},
               {TILE_ASSUME_DIV_BY, 24, false, 0, 4},  {TILE_ASSUME_BOUNDED, 16, false, 0, 4}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    t.op.assumed.kind = cases[n].kind;
    t.op.assumed.divisor = cases[n].divisor;
    t.op.assumed.has_every = cases[n].has_every;
    t.op.assumed.every = cases[n].every;
    assert_int_equal(lower_element(&t, &text, &error), FF_OK);
    free(text);
    assert_int_equal(t.divisor, cases[n].expected);
  }
}

/* ---- errors ---- */

static void refusals(void **state) {
  ff_error error = {0};
  char *text;
  element_test add = {.opcode = TILE_OP_ADDF, .operands = {TILE_E4M3, TILE_E4M3}, .result = TILE_E4M3};
  assert_int_equal(lower_element(&add, &text, &error), FF_UNSUPPORTED);
  expect_text(error.message, "addf of ");
  element_test and = {.opcode = TILE_OP_ANDI, .operands = {TILE_F32, TILE_F32}, .result = TILE_F32};
  assert_int_equal(lower_element(&and, &text, &error), FF_PARSE);
  element_test cast = {.opcode = TILE_OP_BITCAST, .operands = {TILE_I32}, .result = TILE_F16, .operand_count = 1};
  assert_int_equal(lower_element(&cast, &text, &error), FF_PARSE);
  expect_text(error.message, "the widths differ");
  element_test extend = {.opcode = TILE_OP_EXTI, .operands = {TILE_I32}, .result = TILE_I16, .operand_count = 1};
  assert_int_equal(lower_element(&extend, &text, &error), FF_PARSE);
  element_test divide = {.opcode = TILE_OP_DIVI, .operands = {TILE_I32, TILE_I32}, .result = TILE_I32};
  divide.op.rounding = TILE_ROUND_DOWN;
  assert_int_equal(lower_element(&divide, &text, &error), FF_PARSE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(integers),
    cmocka_unit_test(floats),
    cmocka_unit_test(approximate_division),
    cmocka_unit_test(signs_and_integral_values),
    cmocka_unit_test(extrema),
    cmocka_unit_test(float_comparisons),
    cmocka_unit_test(selection),
    cmocka_unit_test(offsets),
    cmocka_unit_test(integer_widths),
    cmocka_unit_test(same_bits),
    cmocka_unit_test(float_conversions),
    cmocka_unit_test(integers_to_floats),
    cmocka_unit_test(floats_to_integers),
    cmocka_unit_test(divisors),
    cmocka_unit_test(assumed_divisors),
    cmocka_unit_test(refusals),
};

RUN_ON_FIRST_ISA(tests)
