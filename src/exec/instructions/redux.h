/* SPDX-License-Identifier: Apache-2.0 */
/* Two words made one, by the operations of redux.sync (PTX ISA, "redux.sync"). The order of operands does not
 * matter. */
#ifndef FF_EXEC_REDUX_H
#define FF_EXEC_REDUX_H

#include "exec/core.h"

static inline uint32_t redux_integer(uint32_t mode, bool is_signed, uint32_t a, uint32_t b) {
  switch (mode) {
  case EXEC_REDUX_ADD: return a + b;
  case EXEC_REDUX_AND: return a & b;
  case EXEC_REDUX_OR: return a | b;
  case EXEC_REDUX_XOR: return a ^ b;
  default: {
    bool less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    return less == (mode == EXEC_REDUX_MIN) ? a : b;
  }
  }
}

static inline bool redux_is_nan(uint32_t a) { return (a & 0x7fffffff) > 0x7f800000; }
/* Floats in an order of integers: -0 below +0. */
static inline int32_t redux_order(uint32_t a) { return (int32_t)a < 0 ? (int32_t)(0x80000000u - a) - 1 : (int32_t)a; }

/* EXEC_REDUX_FMIN, EXEC_REDUX_FMAX of f32. nan: one NaN is enough for the result to be the canonical one; else only two
 * are. */
static inline uint32_t redux_float(uint32_t mode, bool nan, uint32_t a, uint32_t b) {
  if (redux_is_nan(a) || redux_is_nan(b)) {
    if (nan || (redux_is_nan(a) && redux_is_nan(b))) return 0x7fffffff;
    return redux_is_nan(a) ? b : a;
  }
  bool less = redux_order(a) < redux_order(b);
  return less == (mode == EXEC_REDUX_FMIN) ? a : b;
}

#endif
