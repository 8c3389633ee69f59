/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point formats for the references: decoding to long double, and rounding a long double once, by the C library
 * in the asked mode, to any format of up to 24 bits. Written for plainness, not for speed. */
#ifndef FF_TESTS_OPS_ROUNDING_H
#define FF_TESTS_OPS_ROUNDING_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NO_NAN UINT32_MAX

typedef struct format {
  int precision; /* bits of significand with the hidden one */
  int lowest;    /* exponent of the smallest subnormal */
  long double largest;
  uint32_t infinity; /* as bits; 0: the format has none */
  uint32_t nan;      /* canonical; NO_NAN: the largest number stands for it */
  int bits;
} format;

static const format format_f32 __attribute__((unused)) = {24, -149, 0x1.fffffep127L, 0x7f800000, 0x7fffffff, 32};
static const format format_f16 __attribute__((unused)) = {11, -24, 65504.0L, 0x7c00, 0x7fff, 16};
static const format format_bf16 __attribute__((unused)) = {8, -133, 0x1.fep127L, 0x7f80, 0x7fff, 16};
static const format format_e4m3 __attribute__((unused)) = {4, -9, 448.0L, 0, 0x7f, 8};
static const format format_e5m2 __attribute__((unused)) = {3, -16, 57344.0L, 0x7c, 0x7f, 8};

static const format format_e2m3 __attribute__((unused)) = {4, -3, 7.5L, 0, NO_NAN, 6};
static const format format_e3m2 __attribute__((unused)) = {3, -4, 28.0L, 0, NO_NAN, 6};
static const format format_e2m1 __attribute__((unused)) = {2, -1, 6.0L, 0, NO_NAN, 4};

static inline float f32_of(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float f;
  memcpy(&f, &low, 4);
  return f;
}
static inline double f64_of(uint64_t bits) {
  double f;
  memcpy(&f, &bits, 8);
  return f;
}
static inline uint64_t bits_f32(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
static inline uint64_t bits_f64(double f) {
  uint64_t bits;
  memcpy(&bits, &f, 8);
  return bits;
}

/* The value of a pattern; NaN for a NaN. */
static inline long double decode(const format *format, uint64_t bits) {
  int fraction_bits = format->precision - 1;
  uint64_t magnitude = bits & ((UINT64_C(1) << (format->bits - 1)) - 1), sign = bits >> (format->bits - 1) & 1;
  uint64_t fraction = magnitude & ((UINT64_C(1) << fraction_bits) - 1);
  int exponent = (int)(magnitude >> fraction_bits);
  long double value;
  if (format->infinity && magnitude == format->infinity) value = INFINITY;
  else if (format->infinity ? magnitude > format->infinity : magnitude == format->nan) value = NAN;
  else if (exponent == 0) value = ldexpl((long double)fraction, format->lowest);
  else value = ldexpl((long double)(fraction | UINT64_C(1) << fraction_bits), format->lowest + exponent - 1);
  return sign ? -value : value;
}

static inline uint64_t encode_exact(const format *format, long double value) { /* |value| is a number of the format */
  int fraction_bits = format->precision - 1, exponent;
  uint64_t sign = signbit(value) ? UINT64_C(1) << (format->bits - 1) : 0;
  value = fabsl(value);
  if (value == 0) return sign;
  frexpl(value, &exponent);                                   /* value in [2^(exponent - 1), 2^exponent) */
  int normal = exponent - 1 - fraction_bits - format->lowest; /* exponent field minus one; negative: subnormal */
  if (normal < 0) normal = 0;
  uint64_t significand = (uint64_t)ldexpl(value, -(format->lowest + normal));
  return sign | (((uint64_t)normal << fraction_bits) + significand);
}

enum { TO_NEAREST_AWAY = -1 }; /* in addition to FE_TONEAREST and its like */

static inline long double integral(long double value, int mode) {
  if (mode == TO_NEAREST_AWAY) return roundl(value);
  int saved = fegetround();
  fesetround(mode);
  long double result = nearbyintl(value);
  fesetround(saved);
  return result;
}

/* `value` rounded once. */
static inline uint64_t encode(const format *format, long double value, int mode) {
  if (isnan(value)) return format->nan == NO_NAN ? encode_exact(format, format->largest) : format->nan;
  uint64_t sign = signbit(value) ? UINT64_C(1) << (format->bits - 1) : 0;
  if (isinf(value)) return sign | format->infinity;
  if (value == 0) return sign;
  int exponent;
  frexpl(value, &exponent);
  int quantum = exponent - format->precision;
  if (quantum < format->lowest) quantum = format->lowest;
  long double rounded = ldexpl(integral(ldexpl(value, -quantum), mode), quantum);
  if (fabsl(rounded) > format->largest) {
    bool away = mode == FE_TONEAREST || mode == TO_NEAREST_AWAY || (mode == FE_UPWARD && !sign) ||
                (mode == FE_DOWNWARD && sign);
    return sign | (away ? format->infinity : encode_exact(format, format->largest));
  }
  return rounded == 0 ? sign : encode_exact(format, rounded);
}

#endif
