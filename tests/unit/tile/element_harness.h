/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of one operation of elements: it is lowered once, and a thread of the virtual GPU computes it for each
 * value. Values are patterns of bits in 64-bit words. The reference's formats and rounding stand here too, and share
 * nothing with the lowering.
 *
 *   element_test t = {.opcode = TILE_OP_ADDF, .operands = {TILE_F16, TILE_F16}, .result = TILE_F16};
 *   t.op.rounding = TILE_ROUND_UP;
 *   run_elements(&t, count, a, b, NULL, out); */
#ifndef FF_TESTS_ELEMENT_HARNESS_H
#define FF_TESTS_ELEMENT_HARNESS_H

#include <fenv.h>
#include <math.h>

#include "tile/lower.h"
#include "unit/exec/core_harness.h"

#define OPERANDS_MAX 3u

typedef struct element_test {
  tile_opcode opcode;
  tile_scalar operands[OPERANDS_MAX], result;
  uint32_t operand_count;                   /* 0: 2 */
  tile_op op;                               /* its attributes */
  uint64_t divisors[OPERANDS_MAX], divisor; /* known of the operands (0: nothing), and then of the result */
} element_test;

static inline void load_operand(lower *l, uint32_t n, const lowered *value) {
  uint32_t to = value->registers[0];
  lower_emit(l, "ld.param.u64 %%x1, [p%u];", n);
  lower_emit(l, "add.u64 %%x1, %%x1, %%x0;");
  lower_emit(l, "ld.global.u64 %%x2, [%%x1];");
  if (value->class == CLASS_PREDICATE) lower_emit(l, "setp.ne.u64 %%p%u, %%x2, 0;", to);
  else if (value->class == CLASS_DOUBLE) lower_emit(l, "mov.b64 %%d%u, %%x2;", to);
  else lower_emit(l, "cvt.u%u.u64 %%%c%u, %%x2;", value->class == CLASS_HALF ? 16 : 32, lower_letter(value->class), to);
}

static inline void store_result(lower *l, const lowered *value) {
  uint32_t from = value->registers[0];
  if (value->class == CLASS_PREDICATE) lower_emit(l, "selp.u64 %%x2, 1, 0, %%p%u;", from);
  else if (value->class == CLASS_DOUBLE) lower_emit(l, "mov.b64 %%x2, %%d%u;", from);
  else
    lower_emit(l, "cvt.u64.u%u %%x2, %%%c%u;", value->class == CLASS_HALF ? 16 : 32, lower_letter(value->class), from);
  lower_emit(l, "ld.param.u64 %%x1, [p3];\n add.u64 %%x1, %%x1, %%x0;\n st.global.u64 [%%x1], %%x2;");
}

/* The status of the lowering, with its message; on success the whole module's text, which the caller frees. */
static inline ff_status lower_element(element_test *t, char **text, ff_error *error) {
  ff_arena arena = {0};
  ff_text body = {0}, data = {0}, whole = {0};
  tile_function function = {.name = "k", .entry = true};
  lower l = {.text = &body, .data = &data, .function = &function, .arena = &arena, .error = error, .architecture = 80};
  uint32_t count = t->operand_count ? t->operand_count : 2;
  tile_type types[OPERANDS_MAX + 1];
  tile_value operands[OPERANDS_MAX] = {0}, result = {0}, *list[OPERANDS_MAX];
  for (uint32_t n = 0; n < count; n++) {
    types[n] = (tile_type){.kind = TILE_KIND_TILE, .scalar = t->operands[n], .pointee = TILE_I32};
    operands[n].type = &types[n];
    list[n] = &operands[n];
    lowered *operand = lower_result(&l, &operands[n], NULL);
    if (t->divisors[n]) operand->divisor = t->divisors[n];
    load_operand(&l, n, operand);
  }
  types[OPERANDS_MAX] = (tile_type){.kind = TILE_KIND_TILE, .scalar = t->result, .pointee = TILE_I32};
  result.type = &types[OPERANDS_MAX];
  tile_op op = t->op;
  op.opcode = t->opcode;
  op.operands = list;
  op.operand_count = count;
  op.results = &result;
  op.result_count = 1;
  result.op = &op;
  bool known = lower_elements_op(&l, &op);
  assert_true(known);
  if (!l.status) store_result(&l, lower_value(&l, &result));
  t->divisor = l.status ? 0 : lower_value(&l, &result)->divisor;
  if (!l.status) {
    ff_text_add(&whole, ".version 8.1\n.target sm_%u\n.address_size 64\n", l.architecture);
    lower_helpers_text(l.helpers, &whole);
    ff_text_add(&whole,
                ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
                ".reg .pred %%p<%u>; .reg .b16 %%h<%u>; .reg .b32 %%r<%u>; .reg .b64 %%d<%u>;\n"
                ".reg .b64 %%x<3>; .reg .b32 %%y<4>;\n"
                "mov.u32 %%y0, %%ctaid.x; mov.u32 %%y1, %%ntid.x; mov.u32 %%y2, %%tid.x;\n"
                "mad.lo.u32 %%y0, %%y0, %%y1, %%y2; mul.wide.u32 %%x0, %%y0, 8;\n%sret;\n}\n",
                l.registers[CLASS_PREDICATE] + 1, l.registers[CLASS_HALF] + 1, l.registers[CLASS_WORD] + 1,
                l.registers[CLASS_DOUBLE] + 1, body.chars);
    *text = whole.chars;
  }
  free(body.chars);
  free(data.chars);
  ff_arena_free(&arena);
  return l.status;
}

#define THREADS 128u

/* Computes `count` (a multiple of THREADS) elements; operands that the operation does not have are NULL. */
static inline void run_elements(element_test *t, uint32_t count, const uint64_t *a, const uint64_t *b,
                                const uint64_t *c, uint64_t *out) {
  ff_error error = {0};
  char *text;
  if (lower_element(t, &text, &error) != FF_OK) fail_msg("%s", error.message);
  if (getenv("SHOW_PTX")) printf("%s\n", text);
  kernel_test *k = open_ptx(text);
  free(text);
  k->config.threads = 2;
  uint64_t buffers[OPERANDS_MAX + 1];
  const uint64_t *in[OPERANDS_MAX] = {a, b, c};
  for (uint32_t n = 0; n <= OPERANDS_MAX; n++) {
    bool used = n == OPERANDS_MAX || in[n];
    buffers[n] = used ? buffer(k, (uint64_t)count * 8) : 0;
    if (n < OPERANDS_MAX && used) memcpy(u64_at(buffers[n]), in[n], (size_t)count * 8);
  }
  if (launch_with(k, "k", (uint32_t[3]){count / THREADS, 1, 1}, (uint32_t[3]){THREADS, 1, 1}, buffers, &error) != FF_OK)
    fail_msg("%s", error.message);
  memcpy(out, u64_at(buffers[OPERANDS_MAX]), (size_t)count * 8);
  close_ptx(k);
}

/* ---- formats ---- */

typedef struct float_format {
  uint32_t exponent_bits, fraction_bits;
  bool infinite; /* has infinities and NaNs as IEEE 754 does */
} float_format;

static inline float_format format_of(tile_scalar scalar) {
  switch (scalar) {
  case TILE_F16: return (float_format){5, 10, true};
  case TILE_BF16: return (float_format){8, 7, true};
  case TILE_F64: return (float_format){11, 52, true};
  case TILE_E4M3: return (float_format){4, 3, false};
  case TILE_E5M2: return (float_format){5, 2, true};
  case TILE_E2M1: return (float_format){2, 1, false};
  default: return (float_format){8, 23, true}; /* f32; tf32 of which the last 13 bits are 0 */
  }
}

/* The value of a pattern; every format here is exact in double. */
static inline double value_of(tile_scalar scalar, uint64_t bits) {
  if (scalar == TILE_E8M0) return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
  float_format f = format_of(scalar);
  uint64_t exponents = (UINT64_C(1) << f.exponent_bits) - 1;
  uint64_t exponent = bits >> f.fraction_bits & exponents, fraction = bits & ((UINT64_C(1) << f.fraction_bits) - 1);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  double sign = bits >> (f.exponent_bits + f.fraction_bits) & 1 ? -1 : 1;
  if (exponent == exponents && f.infinite) return fraction ? NAN : sign * INFINITY;
  if (scalar == TILE_E4M3 && (bits & 0x7f) == 0x7f) return NAN;
  if (!exponent) return sign * ldexp((double)fraction, 1 - bias - (int)f.fraction_bits);
  return sign * ldexp((double)(fraction | UINT64_C(1) << f.fraction_bits), (int)exponent - bias - (int)f.fraction_bits);
}

/* Rounds a finite or infinite value, no NaN, to a format with infinities (saturate: its largest number instead). */
static inline uint64_t rounded(tile_scalar scalar, double value, uint8_t rounding, bool saturate) {
  float_format f = format_of(scalar);
  uint32_t digits = f.fraction_bits, bits = 1 + f.exponent_bits + digits;
  if (scalar == TILE_TF32) digits = 10;
  uint64_t sign = signbit(value) ? UINT64_C(1) << (bits - 1) : 0;
  int bias = (1 << (f.exponent_bits - 1)) - 1, exponent;
  double magnitude = fabs(value);
  uint64_t infinity = ((UINT64_C(1) << f.exponent_bits) - 1) << digits;
  uint64_t largest = f.infinite ? infinity - 1 : scalar == TILE_E4M3 ? 0x7e : 7, pattern;
  if (isinf(value)) {
    pattern = saturate ? largest : infinity;
  } else if (magnitude == 0) {
    pattern = 0;
  } else {
    frexp(magnitude, &exponent);
    exponent--;
    if (exponent < 1 - bias) exponent = 1 - bias;
    double scaled = ldexp(magnitude, (int)digits - exponent); /* a whole number of last places; exact */
    double down = floor(scaled), rest = scaled - down;
    bool up = rest > 0 && (rounding == TILE_ROUND_UP     ? !sign
                           : rounding == TILE_ROUND_DOWN ? sign != 0
                           : rounding == TILE_ROUND_ZERO ? false
                           : rounding == TILE_ROUND_AWAY ? rest >= 0.5
                                                         : rest > 0.5 || (rest == 0.5 && fmod(down, 2) == 1));
    pattern = ((uint64_t)(exponent + bias - 1) << digits) + (uint64_t)down + up;
    bool inward =
        rounding == TILE_ROUND_ZERO || (rounding == TILE_ROUND_UP && sign) || (rounding == TILE_ROUND_DOWN && !sign);
    if (pattern > largest) pattern = saturate || inward ? largest : f.infinite ? infinity : largest;
  }
  if (scalar == TILE_TF32) pattern <<= 13;
  return sign | pattern;
}

static inline bool is_nan(tile_scalar scalar, uint64_t bits) { return isnan(value_of(scalar, bits)); }

/* ---- values ---- */

static uint64_t element_random_state;
static inline uint64_t element_random(void) {
  element_random_state ^= element_random_state << 13;
  element_random_state ^= element_random_state >> 7;
  element_random_state ^= element_random_state << 17;
  return element_random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t width_of(tile_scalar scalar) {
  static const uint8_t bits[] = {1, 4, 8, 16, 32, 64, 16, 16, 32, 32, 64, 8, 8, 8, 4, 64};
  return bits[scalar];
}
static inline uint64_t mask_of(tile_scalar scalar) { return ~UINT64_C(0) >> (64 - width_of(scalar)); }
static inline bool is_float(tile_scalar scalar) { return scalar >= TILE_F16 && scalar <= TILE_E2M1; }

/* A value worth a test: edges of the type half of the time, else any pattern, or a float near 1. */
static inline uint64_t some_value(tile_scalar scalar) {
  uint32_t bits = width_of(scalar);
  uint64_t mask = mask_of(scalar), top = UINT64_C(1) << (bits - 1), pick = element_random() >> 32;
  float_format f = format_of(scalar);
  if (is_float(scalar) && bits > 8) {
    uint64_t infinity = ((UINT64_C(1) << f.exponent_bits) - 1) << f.fraction_bits, one = infinity >> 1 & infinity;
    const uint64_t edges[] = {0,
                              1,
                              2,
                              infinity,
                              infinity - 1,
                              infinity + 1,
                              infinity | infinity >> 1,
                              one,
                              one + 1,
                              one - 1,
                              (UINT64_C(1) << f.fraction_bits) - 1,
                              UINT64_C(1) << f.fraction_bits,
                              (UINT64_C(1) << f.fraction_bits) + 1,
                              one + (UINT64_C(1) << f.fraction_bits)};
    uint64_t value = element_random();
    if (pick % 4 == 0) value = edges[element_random() % (sizeof edges / sizeof *edges)] | (element_random() & top);
    if (pick % 4 == 1)
      value =
          (one & ~(infinity >> 4)) + (element_random() & (infinity >> 4 | ((1u << 7) - 1))) + (element_random() & top);
    value &= mask;
    return scalar == TILE_TF32 ? value & ~UINT64_C(0x1fff) : value;
  }
  if (pick % 3 == 0) {
    const uint64_t edges[] = {0, 1, 2, mask, mask - 1, top, top - 1, top + 1, bits, bits - 1, bits + 1, 3, 7};
    return edges[element_random() % (sizeof edges / sizeof *edges)] & mask;
  }
  uint64_t value = element_random() & mask;
  return pick % 3 == 1 ? value >> (element_random() % bits) : value;
}

/* What is tested is the translation; that instruction sets compute alike is tested in exec/. */
#define RUN_ON_FIRST_ISA(tests)                       \
  int main(void) {                                    \
    test_isa = exec_isas()[0];                        \
    return cmocka_run_group_tests(tests, NULL, NULL); \
  }

#endif
