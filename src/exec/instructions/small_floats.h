/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point numbers of 8 bits and less (PTX ISA, "Alternate Floating-Point Data Formats"), as doubles. For files
 * that are compiled per instruction set. */
#ifndef FF_EXEC_SMALL_FLOATS_H
#define FF_EXEC_SMALL_FLOATS_H

#include <math.h>

#include "exec/instructions/lanes.h"
#include "ptx/ir.h"

/* Every pattern is a number. */
INLINE double finite_float(uint32_t bits, uint32_t exponent_bits, uint32_t fraction_bits) {
  int32_t bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1),
           fraction = bits & ((1u << fraction_bits) - 1);
  double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
  if (!exponent) return sign * ldexp(fraction, 1 - bias - (int32_t)fraction_bits);
  return sign * ldexp((1u << fraction_bits) | fraction, (int32_t)exponent - bias - (int32_t)fraction_bits);
}

INLINE double small_float(uint32_t bits, uint32_t exponent_bits, uint32_t fraction_bits, bool infinite) {
  uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1),
           fraction = bits & ((1u << fraction_bits) - 1);
  bool highest = exponent == (1u << exponent_bits) - 1;
  if (highest && infinite && !fraction) return finite_float(bits, exponent_bits, fraction_bits) * __builtin_inf();
  if (highest && infinite) return __builtin_nan("");
  if (highest && fraction == (1u << fraction_bits) - 1) return __builtin_nan(""); /* e4m3: no infinity, one NaN */
  return finite_float(bits, exponent_bits, fraction_bits);
}

/* The numbers of a type of 4 to 8 bits, by their bits. */
static inline __attribute__((unused)) const double *small_floats(ptx_type type) {
  static double e4m3[256], e5m2[256], e2m3[64], e3m2[64], e2m1[16];
  static bool made;
  if (UNLIKELY(!__atomic_load_n(&made, __ATOMIC_ACQUIRE))) { /* the same values, whoever comes first */
    for (uint32_t b = 0; b < 256; b++) {
      e4m3[b] = small_float(b, 4, 3, false);
      e5m2[b] = small_float(b, 5, 2, true);
      e2m3[b % 64] = finite_float(b % 64, 2, 3);
      e3m2[b % 64] = finite_float(b % 64, 3, 2);
      e2m1[b % 16] = finite_float(b % 16, 2, 1);
    }
    __atomic_store_n(&made, true, __ATOMIC_RELEASE);
  }
  return type == PTX_E4M3 ? e4m3 : type == PTX_E5M2 ? e5m2 : type == PTX_E2M3 ? e2m3 : type == PTX_E3M2 ? e3m2 : e2m1;
}

#endif
