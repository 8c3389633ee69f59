/* SPDX-License-Identifier: Apache-2.0 */
/* See values.h. Formats narrower than double are decoded into double exactly and encoded with one rounding to even. */
#include "values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const value_type types[] = {
    {"u8", "u16", "u8", 8, 1, 0, 0, false},      {"s8", "s16", "s8", 8, 1, 0, 0, true},
    {"b8", "b16", "b8", 8, 1, 0, 0, false},      {"u16", "u16", "u16", 16, 1, 0, 0, false},
    {"s16", "s16", "s16", 16, 1, 0, 0, true},    {"b16", "b16", "b16", 16, 1, 0, 0, false},
    {"u32", "u32", "u32", 32, 1, 0, 0, false},   {"s32", "s32", "s32", 32, 1, 0, 0, true},
    {"b32", "b32", "b32", 32, 1, 0, 0, false},   {"u64", "u64", "u64", 64, 1, 0, 0, false},
    {"s64", "s64", "s64", 64, 1, 0, 0, true},    {"b64", "b64", "b64", 64, 1, 0, 0, false},
    {"f16", "b16", "b16", 16, 1, 5, 10, true},   {"bf16", "b16", "b16", 16, 1, 8, 7, true},
    {"f32", "f32", "f32", 32, 1, 8, 23, true},   {"f64", "f64", "f64", 64, 1, 11, 52, true},
    {"tf32", "b32", "b32", 32, 1, 0, 0, false},  {"f16x2", "b32", "b32", 16, 2, 5, 10, true},
    {"bf16x2", "b32", "b32", 16, 2, 8, 7, true}, {"u16x2", "b32", "b32", 32, 1, 0, 0, false},
    {"s16x2", "b32", "b32", 32, 1, 0, 0, false},
};

const value_type *value_type_find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) == length && !memcmp(types[i].name, name, length)) return &types[i];
  return NULL;
}

/* ---- floating-point formats ---- */

static double decode(const value_type *type, uint64_t bits) {
  unsigned m = type->mantissa_bits, e = type->exponent_bits;
  uint64_t mantissa = bits & ((UINT64_C(1) << m) - 1), exponent = bits >> m & ((UINT64_C(1) << e) - 1);
  int bias = (1 << (e - 1)) - 1;
  double sign = bits >> (m + e) & 1 ? -1 : 1;
  if (exponent == (UINT64_C(1) << e) - 1) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexp((double)mantissa, 1 - bias - (int)m);
  return sign * ldexp((double)(mantissa | UINT64_C(1) << m), (int)exponent - bias - (int)m);
}

static uint64_t encode_narrow(const value_type *type, double number) { /* f16, bf16 */
  unsigned m = type->mantissa_bits, e = type->exponent_bits;
  int bias = (1 << (e - 1)) - 1, exponent;
  uint64_t sign = (uint64_t)(signbit(number) != 0) << (m + e), infinity = ((UINT64_C(1) << e) - 1) << m;
  if (isinf(number)) return sign | infinity;
  frexp(number, &exponent);
  exponent = exponent - 1 < 1 - bias || number == 0 ? 1 - bias : exponent - 1;
  uint64_t scaled = (uint64_t)nearbyint(ldexp(fabs(number), (int)m - exponent));
  uint64_t magnitude = scaled + ((uint64_t)(exponent + bias - 1) << m);
  return sign | (magnitude > infinity ? infinity : magnitude);
}

static uint64_t encode(const value_type *type, const char *text, double number) {
  uint64_t bits = 0;
  if (type->part_bits == 64) {
    memcpy(&bits, &number, 8);
  } else if (type->part_bits == 32) {
    float single = strtof(text, NULL); /* rounds once */
    memcpy(&bits, &single, 4);
  } else {
    bits = encode_narrow(type, number);
  }
  return bits;
}

/* ---- reading ---- */

static bool is_bit_pattern(const char *text) {
  return text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && !strpbrk(text, "pP.");
}

static bool fits(const value_type *type, uint64_t bits, bool negative) {
  if (type->part_bits == 64) return true;
  uint64_t limit = UINT64_C(1) << type->part_bits;
  return negative ? (int64_t)bits >= -(int64_t)(limit / 2) && (int64_t)bits < 0 : bits < limit;
}

static bool parse_integer(const value_type *type, const char *text, value_part *part) {
  char *end;
  bool negative = text[0] == '-' && strcmp(text, "-0");
  part->bits = negative ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
  if (end == text || *end || !fits(type, part->bits, negative)) return false;
  if (type->part_bits < 64) part->bits &= (UINT64_C(1) << type->part_bits) - 1;
  part->number = (double)part->bits;
  return true;
}

static bool parse_float(const value_type *type, const char *text, value_part *part) {
  char *end;
  if (is_bit_pattern(text)) {
    if (!parse_integer(type, text, part)) return false;
    part->number = decode(type, part->bits);
    return true;
  }
  part->any_nan = !strcmp(text, "nan");
  part->number = strtod(text, &end);
  if (end == text || *end) return false;
  part->bits = part->any_nan ? ((UINT64_C(1) << type->exponent_bits) - 1) << type->mantissa_bits |
                                   UINT64_C(1) << (type->mantissa_bits - 1)
                             : encode(type, text, part->number);
  return true;
}

bool value_parse(const value_type *type, const char *word, size_t length, value_part *parts) {
  for (unsigned i = 0; i < type->parts; i++) {
    const char *comma = i + 1 < type->parts ? memchr(word, ',', length) : word + length;
    char text[64];
    if (!comma || (size_t)(comma - word) >= sizeof text) return false;
    memcpy(text, word, (size_t)(comma - word));
    text[comma - word] = 0;
    parts[i] = (value_part){0};
    if (!(type->exponent_bits ? parse_float(type, text, &parts[i]) : parse_integer(type, text, &parts[i])))
      return false;
    length -= (size_t)(comma - word) + (i + 1 < type->parts);
    word = comma + 1;
  }
  return true;
}

/* ---- bytes ---- */

void value_store(const value_type *type, const value_part *parts, unsigned char *bytes) {
  for (unsigned i = 0; i < type->parts; i++)
    memcpy(bytes + i * type->part_bits / 8, &parts[i].bits, type->part_bits / 8);
}

static uint64_t load_part(const value_type *type, const unsigned char *bytes, unsigned part) {
  uint64_t bits = 0;
  memcpy(&bits, bytes + part * type->part_bits / 8, type->part_bits / 8);
  return bits;
}

static int print_part(const value_type *type, uint64_t bits, char *text, size_t size) {
  if (!type->exponent_bits && type->is_signed && type->part_bits <= 64)
    return snprintf(text, size, "%lld (0x%llx)",
                    (long long)((int64_t)(bits << (64 - type->part_bits)) >> (64 - type->part_bits)),
                    (unsigned long long)bits);
  if (!type->exponent_bits)
    return snprintf(text, size, "%llu (0x%llx)", (unsigned long long)bits, (unsigned long long)bits);
  return snprintf(text, size, "%.9g (0x%0*llx)", decode(type, bits), (int)type->part_bits / 4,
                  (unsigned long long)bits);
}

void value_print(const value_type *type, const unsigned char *bytes, char *text, size_t size) {
  for (unsigned i = 0; i < type->parts; i++) {
    int length = print_part(type, load_part(type, bytes, i), text, size);
    if (length < 0 || (size_t)length + 2 > size) return;
    text += length;
    size -= (size_t)length;
    if (i + 1 < type->parts) *text++ = ',', size--;
    *text = 0;
  }
}

/* ---- comparing ---- */

/* One unit in the last place of the format at `number`. */
static double unit_at(const value_type *type, double number) {
  int exponent, least = 2 - (1 << (type->exponent_bits - 1));
  frexp(number, &exponent);
  return ldexp(1, (exponent - 1 < least ? least : exponent - 1) - (int)type->mantissa_bits);
}

/* The rounding of an exact value to the format may add half a unit to what `ulp` allows. */
static bool within(const value_type *type, double expected, double got, value_bound bound) {
  double error = fabs(got - expected);
  if (bound.kind == BOUND_ULP) return error <= (bound.limit + 0.5) * unit_at(type, expected);
  if (bound.kind == BOUND_ABSOLUTE) return error <= bound.limit;
  return error <= bound.limit * fabs(expected);
}

static bool part_matches(const value_type *type, const value_part *expected, uint64_t got, value_bound bound) {
  if (expected->any_nan) return isnan(decode(type, got));
  if (got == expected->bits) return true;
  if (bound.kind == BOUND_EXACT || !type->exponent_bits) return false;
  if (!isfinite(expected->number) || expected->number == 0 || !isfinite(decode(type, got))) return false;
  return within(type, expected->number, decode(type, got), bound);
}

bool value_matches(const value_type *type, const value_part *expected, const unsigned char *bytes, value_bound bound) {
  for (unsigned i = 0; i < type->parts; i++)
    if (!part_matches(type, &expected[i], load_part(type, bytes, i), bound)) return false;
  return true;
}

bool value_bound_parse(const char *text, value_bound *bound) {
  static const char *const names[] = {"exact", "ulp", "absolute", "relative"};
  for (int kind = BOUND_ULP; kind <= BOUND_RELATIVE; kind++) {
    size_t length = strlen(names[kind]);
    if (strncmp(text, names[kind], length) || !isspace((unsigned char)text[length])) continue;
    const char *number = text + length + strspn(text + length, " ");
    char *end;
    bool is_power = !strncmp(number, "2^", 2);
    double value = strtod(number + (is_power ? 2 : 0), &end);
    bound->kind = kind;
    bound->limit = is_power ? exp2(value) : value;
    return end != number && *end == 0 && bound->limit >= 0;
  }
  return false;
}
