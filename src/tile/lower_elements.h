/* SPDX-License-Identifier: Apache-2.0 */
/* What lower_elements.c, lower_convert.c and lower_math.c share: one element at a time, in registers of its class.
 *
 * Integers narrower than 32 bits are worked on in 32 bits and cut when they are done, so that a register's upper bits
 * are always 0. f16 and bf16 that have no instruction are worked on in f32, and rounded once more when they are done:
 * f32 has more than twice their digits, so for +, -, *, / and square root that is the correctly rounded result. */
#ifndef FF_TILE_LOWER_ELEMENTS_H
#define FF_TILE_LOWER_ELEMENTS_H

#include "tile/lower.h"

/* Element types of an operation. */
static inline tile_scalar operand_scalar(const tile_op *op, uint32_t n) { return op->operands[n]->type->scalar; }
static inline tile_scalar result_scalar(const tile_op *op) { return op->results[0].type->scalar; }

static inline bool scalar_is_integer(tile_scalar scalar) { return scalar <= TILE_I64; }
static inline bool scalar_is_half(tile_scalar scalar) { return scalar == TILE_F16 || scalar == TILE_BF16; }
/* The types that arithmetic of floats takes; the others can only be converted. */
static inline bool scalar_is_base_float(tile_scalar scalar) {
  return scalar_is_half(scalar) || scalar == TILE_F32 || scalar == TILE_F64;
}

/* ---- lower_elements.c ---- */

/* An integer of up to 32 bits in an 'r' register, extended by its sign or by zeros. */
uint32_t element_extend(lower *l, tile_scalar scalar, bool is_signed, uint32_t from);
/* Sets `to` of a type of up to 32 bits to the low bits of an 'r' register. */
void element_cut(lower *l, tile_scalar scalar, uint32_t to, uint32_t from);
/* The suffix of a rounding: "rn" (also for approximations), "rz", "rm", "rp". */
const char *element_rounding(uint8_t rounding);

/* ---- lower_convert.c ---- */

bool lower_convert_op(lower *l, tile_op *op); /* conversions; false: not one of its operations */
/* A float of any type but f64 as f32 in an 'r' register; always exact. */
uint32_t element_to_f32(lower *l, tile_scalar scalar, uint32_t from);
/* Sets `to` to an f32 in an 'r' register, rounded to its type (any but f64). */
void element_of_f32(lower *l, tile_scalar scalar, uint8_t rounding, uint32_t to, uint32_t from);

/* ---- lower_math.c ---- */

bool lower_math_op(lower *l, tile_op *op); /* functions that PTX has no exact instruction for */

#endif
