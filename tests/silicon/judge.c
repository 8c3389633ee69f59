/* SPDX-License-Identifier: Apache-2.0 */
/* See judge.h. */
#include "judge.h"

#include <math.h>
#include <string.h>

enum { MOST_SHOWN = 3 };

static uint64_t word_at(const unsigned char *bytes, uint32_t size, size_t n) {
  uint64_t word = 0;
  memcpy(&word, bytes + n * size, size);
  return word;
}

static double small(uint64_t bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, exponent = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int mantissa = (int)bits & ((1 << mantissa_bits) - 1);
  double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  if (!exponent) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static double number(const item *it, uint64_t bits) {
  float single;
  uint32_t word = (uint32_t)bits;
  if (it->word == 2) return item_is_bf16(it) ? small(bits, 8, 7) : small(bits, 5, 10);
  memcpy(&single, &word, 4);
  return single;
}

/* Of one result in units of the bound; 0 where the manual has none: outside of the normal numbers. */
static double error_of(const item *it, uint64_t input, uint64_t bits) {
  double x = number(it, input), exact = item_exact(it, x), got = number(it, bits);
  double least = it->word == 2 && !item_is_bf16(it) ? 0x1p-14 : 0x1p-126;
  double most = it->word == 2 && !item_is_bf16(it) ? 65504 : 0x1.fep127;
  if (!isfinite(x) || fabs(x) < least || !isfinite(exact) || fabs(exact) < least || fabs(exact) > most) return 0;
  double bound = item_bound(it, x, exact);
  if (bound <= 0) return 0;
  /* the nearest value of the type may itself be off by half a unit */
  double unit = it->word == 4 ? 0 : ldexp(1, ilogb(exact) - (item_is_bf16(it) ? 7 : 10)) / 2;
  double off = fabs(got - exact) - unit;
  return isnan(off) ? INFINITY : off > 0 ? off / bound : 0;
}

/* Two NaNs of f32 or f16 are the same: their bits are not compared where only the sum is. */
static bool both_nan(const item *it, uint64_t a, uint64_t b) {
  if (it->kind == ITEM_FORM) return false;
  if (it->kind == ITEM_SUM && it->word == 8)
    return (a & INT64_MAX) > UINT64_C(0x7ff0000000000000) && (b & INT64_MAX) > UINT64_C(0x7ff0000000000000);
  if (it->kind == ITEM_SUM && it->word == 2) return isnan(small(a, 5, 10)) && isnan(small(b, 5, 10));
  return isnan(number(it, a)) && isnan(number(it, b));
}

void judge(const item *it, uint32_t run, const unsigned char *inputs, const unsigned char *theirs,
           const unsigned char *ours, verdict *v, ff_text *out) {
  uint32_t shown = 0;
  for (size_t n = 0; n < it->output_bytes / it->word; n++) {
    uint64_t a = word_at(theirs, it->word, n), b = word_at(ours, it->word, n);
    v->words++;
    if (it->kind == ITEM_FUNCTION) {
      uint64_t input = word_at(inputs, it->word, n);
      v->worst_theirs = fmax(v->worst_theirs, error_of(it, input, a));
      v->worst_ours = fmax(v->worst_ours, error_of(it, input, b));
    }
    if (a == b || both_nan(it, a, b)) continue;
    v->different++;
    if (shown++ >= MOST_SHOWN) continue;
    ff_text_add(out, "%s: run %u, word %zu: the driver has 0x%llx, the executor 0x%llx", it->name, run, n,
                (unsigned long long)a, (unsigned long long)b);
    if (it->kind == ITEM_FUNCTION) ff_text_add(out, " for 0x%llx", (unsigned long long)word_at(inputs, it->word, n));
    ff_text_add(out, "\n");
  }
}
