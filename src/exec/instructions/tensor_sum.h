/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of matrices as tensor cores take them. The PTX manual leaves the order and the precision open; what
 * NVIDIA's GPUs do is published (Xie and others, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix
 * Cores", arXiv 2511.10909; Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004).
 * docs/bits.md has the table.
 *
 *   top   = the largest exponent of C's element and of the products (of a product: the sum of its factors' exponents)
 *   sum   = C's element and every product, each cut off (toward zero) behind `fraction` bits below top, added exactly
 *   D     = f32: the sum cut off to `kept` bits behind the point; f16: rounded to the nearest, ties to even
 *
 * Where a rule has groups, the products of a group are one sum, and its D is the next one's C.
 *
 * Products are exact in double (two factors of at most 11 bits), so are their multiples by powers of two and the sums
 * of up to 2^20 of them; so all instruction sets give the same bits. For files that are compiled per instruction
 * set. */
#ifndef FF_EXEC_TENSOR_SUM_H
#define FF_EXEC_TENSOR_SUM_H

#include "exec/instructions/ops_half.h"
#include "exec/instructions/ops_math.h"
#include "ptx/ir.h"

#define TENSOR_AT_ONCE 8u        /* columns */
#define TENSOR_NOWHERE (-100000) /* the exponent of zero, infinity and NaN: none counts for top */
#define TENSOR_LOWEST (-700)     /* top where all are zero; below every product's */

typedef struct tensor_rule {
  int32_t fraction, kept;
  uint32_t group; /* products */
} tensor_rule;

/* compute: 90 for compute capability 9.0; 0: that. type: of A's elements. warpgroup: wgmma, else mma or tcgen05.mma. */
static inline tensor_rule tensor_rule_of(uint32_t compute, ptx_type type, bool warpgroup) {
  bool small = type != PTX_F16 && type != PTX_BF16 && type != PTX_TF32;
  tensor_rule rule = {25, 23, ~0u};
  if (!compute || compute >= 90) {
    if (small && warpgroup) rule = (tensor_rule){13, 13, ~0u};
  } else if (compute >= 80) {
    rule = (tensor_rule){24, 23, type == PTX_TF32 ? 4 : small ? 16 : 8};
    if (small) rule.fraction = rule.kept = 13;
  } else {
    rule = (tensor_rule){compute >= 75 ? 24 : 23, 23, compute >= 75 ? 8 : 4};
  }
  return rule;
}

/* The exponent of a type's smallest normal number, which its subnormal numbers have as well. */
static inline int32_t tensor_least(ptx_type type) {
  switch (type) {
  case PTX_F16:
  case PTX_E5M2: return -14;
  case PTX_E4M3: return -6;
  case PTX_E3M2: return -2;
  case PTX_E2M3:
  case PTX_E2M1: return 0;
  default: return -126;
  }
}

OPS_INLINE int32_t tensor_exponent(double value, int32_t least) {
  uint64_t bits = ops_u64_of(value) & UINT64_C(0x7fffffffffffffff);
  int32_t exponent = (int32_t)(bits >> 52) - 1023;
  exponent = exponent < least ? least : exponent;
  return bits == 0 || bits >= UINT64_C(0x7ff0000000000000) ? TENSOR_NOWHERE : exponent;
}

static inline void tensor_exponents(const double *values, uint32_t count, ptx_type type, int32_t *out) {
  int32_t least = tensor_least(type);
  for (uint32_t n = 0; n < count; n++) out[n] = tensor_exponent(values[n], least);
}

/* 2^exponent; -1022 <= exponent <= 1023 */
OPS_INLINE double tensor_power(int32_t exponent) { return ops_f64_of((uint64_t)(exponent + 1023) << 52); }

/* Cut off behind `kept` bits, or those that an f32 of the smallest exponent has. */
OPS_INLINE double tensor_cut(double value, int32_t kept) {
  double magnitude = __builtin_fabs(value), least = tensor_power(126 + kept);
  double cut = ops_f64_of(ops_u64_of(value) & ~((UINT64_C(1) << (52 - kept)) - 1));
  double tiny = __builtin_trunc(value * least) * tensor_power(-126 - kept);
  return magnitude < 0x1p-126 ? tiny : cut;
}

/* A row of A, and of B the rows that its elements meet: `row[k]` of `across` (NULL: k), `stride` apart. */
typedef struct tensor_operands {
  const double *left, *across;
  const int32_t *left_exponents, *across_exponents;
  const uint8_t *row;
  uint32_t count, columns, stride; /* columns: a multiple of TENSOR_AT_ONCE */
} tensor_operands;

/* Products first to end - 1 of TENSOR_AT_ONCE columns from `column` on, added to `sum`, these columns' elements of C.
 * to: of D, which is f16 or f32. */
OPS_INLINE void tensor_sum_group(const tensor_operands *o, tensor_rule rule, uint32_t column, uint32_t first,
                                 uint32_t end, ptx_type to, double *restrict sum) {
  int32_t top[TENSOR_AT_ONCE], least = tensor_least(to);
  double scale[TENSOR_AT_ONCE];
  for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) {
    int32_t exponent = tensor_exponent(sum[n], least);
    top[n] = exponent > TENSOR_LOWEST ? exponent : TENSOR_LOWEST;
  }
  for (uint32_t k = first; k < end; k++) {
    const int32_t *right = o->across_exponents + (o->row ? o->row[k] : k) * o->stride + column;
    int32_t left = o->left_exponents[k];
    for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) top[n] = left + right[n] > top[n] ? left + right[n] : top[n];
  }
  for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) {
    scale[n] = tensor_power(rule.fraction - top[n]);
    sum[n] = __builtin_trunc(sum[n] * scale[n]) + 0.0; /* no -0 */
  }
  for (uint32_t k = first; k < end; k++) {
    const double *right = o->across + (o->row ? o->row[k] : k) * o->stride + column;
    double left = o->left[k];
    for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) sum[n] += __builtin_trunc(left * right[n] * scale[n]);
  }
  for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) sum[n] *= tensor_power(top[n] - rule.fraction);
  if (to == PTX_F32)
    for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) sum[n] = tensor_cut(sum[n], rule.kept);
}

/* `sum`: the row's elements of C; becomes those of D, which are exactly its type's, or round to it but once. */
static inline void tensor_sum(const tensor_operands *o, tensor_rule rule, ptx_type to, double *restrict sum) {
  for (uint32_t column = 0; column < o->columns; column += TENSOR_AT_ONCE, sum += TENSOR_AT_ONCE)
    for (uint32_t first = 0; first < o->count;) {
      uint32_t end = o->count - first > rule.group ? first + rule.group : o->count;
      tensor_sum_group(o, rule, column, first, end, to, sum);
      first = end;
      if (to == PTX_F16 && end < o->count)
        for (uint32_t n = 0; n < TENSOR_AT_ONCE; n++) sum[n] = ops_of_f16(ops_f16_rn(ops_odd32(sum[n])));
    }
}

#endif
