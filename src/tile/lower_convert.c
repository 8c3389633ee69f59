/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between element types. Every float of up to 32 bits is exact in f32, so a conversion between two of them
 * goes through f32 and is rounded once. What has more digits than f32 (f64, i32, i64) and goes to a type that has
 * no instruction for it is first rounded to f32 *to odd* (towards zero, with the last bit set if anything was lost): a
 * second rounding to a type with at least two digits less then gives what one rounding would have given.
 *
 * Out of range: f16, bf16, f32 and f64 give an infinity. e4m3, e5m2 and e2m1 give their largest number, as the PTX
 * instructions (.satfinite), but itof gives an infinity or NaN where the type has one. */
#include <stdio.h>

#include "tile/lower_elements.h"

/* ---- between f32 and the others ---- */

/* e4m3 and e5m2 are exact in f16. */
static uint32_t of_eight_bits(lower *l, const char *pair, uint32_t from) {
  uint32_t half = lower_register(l, CLASS_HALF), both = lower_register(l, CLASS_WORD);
  uint32_t low = lower_register(l, CLASS_HALF), to = lower_register(l, CLASS_WORD);
  if (l->architecture < 89) l->architecture = 89;
  lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", half, from);
  lower_emit(l, "cvt.rn.f16x2.%s %%r%u, %%h%u;", pair, both, half);
  lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", low, both);
  lower_emit(l, "cvt.f32.f16 %%r%u, %%h%u;", to, low);
  return to;
}

/* e2m1's bits s ee m, put where f32 has them, are the number times 2^-126 (denormals as well). */
static uint32_t of_e2m1(lower *l, uint32_t from) {
  uint32_t magnitude = lower_register(l, CLASS_WORD), sign = lower_register(l, CLASS_WORD);
  uint32_t to = lower_register(l, CLASS_WORD);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 7;", magnitude, from);
  lower_emit(l, "shl.b32 %%r%u, %%r%u, 22;", magnitude, magnitude);
  lower_emit(l, "mul.rn.f32 %%r%u, %%r%u, 0f7E800000;", magnitude, magnitude);
  lower_emit(l, "shl.b32 %%r%u, %%r%u, 28;", sign, from);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x80000000;", sign, sign);
  lower_emit(l, "or.b32 %%r%u, %%r%u, %%r%u;", to, magnitude, sign);
  return to;
}

/* e8m0 is f32's exponent; 0 is 2^-127, a denormal number of f32, and 255 NaN. */
static uint32_t of_e8m0(lower *l, uint32_t from) {
  uint32_t to = lower_register(l, CLASS_WORD), special = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "shl.b32 %%r%u, %%r%u, 23;", to, from);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, 0;", special, from);
  lower_emit(l, "selp.b32 %%r%u, 0x00400000, %%r%u, %%p%u;", to, to, special);
  lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, 255;", special, from);
  lower_emit(l, "selp.b32 %%r%u, 0x7fffffff, %%r%u, %%p%u;", to, to, special);
  return to;
}

uint32_t element_to_f32(lower *l, tile_scalar scalar, uint32_t from) {
  uint32_t to;
  switch (scalar) {
  case TILE_F16:
    to = lower_register(l, CLASS_WORD);
    lower_emit(l, "cvt.f32.f16 %%r%u, %%h%u;", to, from);
    return to;
  case TILE_BF16: /* cvt.f32.bf16 is of sm_90 */
    to = lower_register(l, CLASS_WORD);
    lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", to, from);
    lower_emit(l, "shl.b32 %%r%u, %%r%u, 16;", to, to);
    return to;
  case TILE_E4M3: return of_eight_bits(l, "e4m3x2", from);
  case TILE_E5M2: return of_eight_bits(l, "e5m2x2", from);
  case TILE_E2M1: return of_e2m1(l, from);
  case TILE_E8M0: return of_e8m0(l, from);
  default: return from; /* f32, tf32 */
  }
}

/* Rounds an f32 to a multiple of 1 << bits of its pattern; a NaN becomes `nan`. */
static void cut_fraction(lower *l, uint8_t rounding, uint32_t bits, uint32_t to, uint32_t from) {
  uint32_t mask = (1u << bits) - 1, added = lower_register(l, CLASS_WORD);
  uint32_t is_nan = lower_register(l, CLASS_PREDICATE), is_away = lower_register(l, CLASS_PREDICATE);
  if (rounding == TILE_ROUND_DOWN || rounding == TILE_ROUND_UP) { /* away from zero on one side */
    lower_emit(l, "setp.%s.s32 %%p%u, %%r%u, 0;", rounding == TILE_ROUND_UP ? "ge" : "lt", is_away, from);
    lower_emit(l, "selp.b32 %%r%u, 0x%x, 0, %%p%u;", added, mask, is_away);
  } else if (rounding == TILE_ROUND_ZERO) {
    lower_emit(l, "mov.b32 %%r%u, 0;", added);
  } else if (rounding == TILE_ROUND_AWAY) { /* half of the last place */
    lower_emit(l, "mov.b32 %%r%u, 0x%x;", added, (mask >> 1) + 1);
  } else { /* the same, a little less if that is even */
    lower_emit(l, "bfe.u32 %%r%u, %%r%u, %u, 1;", added, from, bits);
    lower_emit(l, "add.s32 %%r%u, %%r%u, 0x%x;", added, added, mask >> 1);
  }
  lower_emit(l, "add.s32 %%r%u, %%r%u, %%r%u;", added, added, from);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x%x;", added, added, ~mask);
  lower_emit(l, "setp.nan.f32 %%p%u, %%r%u, %%r%u;", is_nan, from, from);
  lower_emit(l, "selp.b32 %%r%u, 0x%x, %%r%u, %%p%u;", to, 0x7fffffffu & ~mask, added, is_nan);
}

static void to_eight_bits(lower *l, const char *pair, uint32_t to, uint32_t from) {
  uint32_t half = lower_register(l, CLASS_HALF);
  if (l->architecture < 89) l->architecture = 89;
  lower_emit(l, "cvt.rn.satfinite.%s.f32 %%h%u, 0f00000000, %%r%u;", pair, half, from);
  lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", to, half);
}

/* e2m1 has 0 0.5 1 1.5 | 2 3 | 4 6: in each of the three ranges the code is a rounded multiple of the number, plus what
 * the codes before it are. NaN becomes +6, as in PTX. */
static void to_e2m1(lower *l, uint32_t to, uint32_t from) {
  uint32_t magnitude = lower_register(l, CLASS_WORD), scaled = lower_register(l, CLASS_WORD);
  uint32_t code = lower_register(l, CLASS_WORD), sign = lower_register(l, CLASS_WORD);
  uint32_t in = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x7fffffff;", magnitude, from);
  lower_emit(l, "min.f32 %%r%u, %%r%u, 0f40C00000;", magnitude, magnitude);
  lower_emit(l, "add.rn.f32 %%r%u, %%r%u, %%r%u;", scaled, magnitude, magnitude);
  lower_emit(l, "cvt.rni.s32.f32 %%r%u, %%r%u;", to, scaled);
  lower_emit(l, "cvt.rni.s32.f32 %%r%u, %%r%u;", code, magnitude);
  lower_emit(l, "add.s32 %%r%u, %%r%u, 2;", code, code);
  lower_emit(l, "setp.lt.f32 %%p%u, %%r%u, 0f40000000;", in, magnitude);
  lower_emit(l, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;", to, to, code, in);
  lower_emit(l, "mul.rn.f32 %%r%u, %%r%u, 0f3F000000;", scaled, magnitude);
  lower_emit(l, "cvt.rni.s32.f32 %%r%u, %%r%u;", code, scaled);
  lower_emit(l, "add.s32 %%r%u, %%r%u, 4;", code, code);
  lower_emit(l, "setp.lt.f32 %%p%u, %%r%u, 0f40800000;", in, magnitude);
  lower_emit(l, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;", to, to, code, in);
  lower_emit(l, "shr.u32 %%r%u, %%r%u, 28;", sign, from);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 8;", sign, sign);
  lower_emit(l, "setp.nan.f32 %%p%u, %%r%u, %%r%u;", in, from, from);
  lower_emit(l, "selp.b32 %%r%u, 0, %%r%u, %%p%u;", sign, sign, in);
  lower_emit(l, "or.b32 %%r%u, %%r%u, %%r%u;", to, to, sign);
}

/* The exponent of the magnitude, rounded towards zero, up, or to the nearer (itof; of two equally near the even code);
 * 2^-127 is the least, 2^127 (254) the largest. */
static void to_e8m0(lower *l, uint8_t rounding, uint32_t to, uint32_t from) {
  uint32_t magnitude = lower_register(l, CLASS_WORD), is_nan = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x7fffffff;", magnitude, from);
  lower_emit(l, "setp.nan.f32 %%p%u, %%r%u, %%r%u;", is_nan, from, from);
  if (rounding != TILE_ROUND_ZERO) { /* denormal numbers: 2^-127 is 0x00400000 and has the code 0 */
    uint32_t tiny = lower_register(l, CLASS_PREDICATE), added = lower_register(l, CLASS_WORD);
    bool up = rounding == TILE_ROUND_UP;
    lower_emit(l, "setp.le.u32 %%p%u, %%r%u, 0x%08x;", tiny, magnitude, up ? 0x00400000 : 0x00600000);
    if (up) lower_emit(l, "add.s32 %%r%u, %%r%u, 0x007fffff;", magnitude, magnitude);
    else {
      lower_emit(l, "bfe.u32 %%r%u, %%r%u, 23, 1;", added, magnitude);
      lower_emit(l, "add.s32 %%r%u, %%r%u, 0x003fffff;", added, added);
      lower_emit(l, "add.s32 %%r%u, %%r%u, %%r%u;", magnitude, magnitude, added);
    }
    lower_emit(l, "selp.b32 %%r%u, 0, %%r%u, %%p%u;", magnitude, magnitude, tiny);
  }
  lower_emit(l, "shr.u32 %%r%u, %%r%u, 23;", magnitude, magnitude);
  lower_emit(l, "min.u32 %%r%u, %%r%u, 254;", magnitude, magnitude);
  lower_emit(l, "selp.b32 %%r%u, 255, %%r%u, %%p%u;", to, magnitude, is_nan);
}

void element_of_f32(lower *l, tile_scalar scalar, uint8_t rounding, uint32_t to, uint32_t from) {
  uint32_t wide;
  bool has_instruction = rounding != TILE_ROUND_DOWN && rounding != TILE_ROUND_UP && rounding != TILE_ROUND_AWAY;
  switch (scalar) {
  case TILE_F16: lower_emit(l, "cvt.%s.f16.f32 %%h%u, %%r%u;", element_rounding(rounding), to, from); return;
  case TILE_BF16:
    if (has_instruction) {
      lower_emit(l, "cvt.%s.bf16.f32 %%h%u, %%r%u;", element_rounding(rounding), to, from);
      return;
    }
    wide = lower_register(l, CLASS_WORD);
    cut_fraction(l, rounding, 16, wide, from);
    lower_emit(l, "shr.u32 %%r%u, %%r%u, 16;", wide, wide);
    lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", to, wide);
    return;
  case TILE_TF32: cut_fraction(l, rounding, 13, to, from); return;
  case TILE_E4M3: to_eight_bits(l, "e4m3x2", to, from); return;
  case TILE_E5M2: to_eight_bits(l, "e5m2x2", to, from); return;
  case TILE_E2M1: to_e2m1(l, to, from); return;
  case TILE_E8M0: to_e8m0(l, rounding, to, from); return;
  default: lower_emit(l, "mov.b32 %%r%u, %%r%u;", to, from); return;
  }
}

/* Sets the last bit of a number that was rounded towards zero if it is not what `back` was before. */
static uint32_t set_odd(lower *l, const char *unequal, char c, uint32_t cut, uint32_t back, uint32_t from) {
  uint32_t inexact = lower_register(l, CLASS_PREDICATE), odd = lower_register(l, CLASS_WORD);
  lower_emit(l, "setp.%s %%p%u, %%%c%u, %%%c%u;", unequal, inexact, c, back, c, from);
  lower_emit(l, "or.b32 %%r%u, %%r%u, 1;", odd, cut);
  lower_emit(l, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;", odd, odd, cut, inexact);
  return odd;
}

static uint32_t f64_to_odd_f32(lower *l, uint32_t from) {
  uint32_t cut = lower_register(l, CLASS_WORD), back = lower_register(l, CLASS_DOUBLE);
  lower_emit(l, "cvt.rz.f32.f64 %%r%u, %%d%u;", cut, from);
  lower_emit(l, "cvt.f64.f32 %%d%u, %%r%u;", back, cut);
  return set_odd(l, "ne.f64", 'd', cut, back, from); /* false for NaN */
}

/* ---- operations ---- */

static void convert_float(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  const char *rounding = element_rounding(op->rounding);
  if (source == TILE_F64 && (result == TILE_F32 || result == TILE_F16)) {
    char c = lower_letter(lower_class(result));
    lower_emit(l, "cvt.%s.%s.f64 %%%c%u, %%d%u;", rounding, tile_scalar_name(result), c, to, from[0]);
    return;
  }
  uint32_t single = source == TILE_F64 ? f64_to_odd_f32(l, from[0]) : element_to_f32(l, source, from[0]);
  if (result == TILE_F64) lower_emit(l, "cvt.f64.f32 %%d%u, %%r%u;", to, single);
  else element_of_f32(l, result, op->rounding, to, single);
}

/* An integer as f32, exact or rounded to odd. */
static uint32_t integer_to_odd_f32(lower *l, const tile_op *op, uint32_t from) {
  tile_scalar source = operand_scalar(op, 0);
  char s = op->lhs_signed ? 's' : 'u', c = source == TILE_I64 ? 'd' : 'r';
  uint32_t bits = source == TILE_I64 ? 64 : 32, cut = lower_register(l, CLASS_WORD);
  lower_emit(l, "cvt.rz.f32.%c%u %%r%u, %%%c%u;", s, bits, cut, c, from);
  if (tile_scalar_bits(source) < 32) return cut;
  uint32_t back = lower_register(l, bits == 64 ? CLASS_DOUBLE : CLASS_WORD);
  char unequal[8];
  snprintf(unequal, sizeof unequal, "ne.%c%u", s, bits);
  lower_emit(l, "cvt.rzi.%c%u.f32 %%%c%u, %%r%u;", s, bits, c, back, cut);
  return set_odd(l, unequal, c, cut, back, from);
}

/* What is out of range becomes e4m3's NaN or e5m2's infinity; the sign stays. */
static void overflow_of_eight_bits(lower *l, tile_scalar result, uint32_t to, uint32_t single) {
  uint32_t magnitude = lower_register(l, CLASS_WORD), outside = lower_register(l, CLASS_WORD);
  uint32_t is_outside = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x7fffffff;", magnitude, single);
  if (result == TILE_E4M3) /* 464 is rounded to the even of 448 and 480 */
    lower_emit(l, "setp.gt.f32 %%p%u, %%r%u, 0f43E80000;", is_outside, magnitude);
  else /* 61440 is rounded to the even of 57344 and 65536 */
    lower_emit(l, "setp.ge.f32 %%p%u, %%r%u, 0f47700000;", is_outside, magnitude);
  lower_emit(l, "and.b32 %%r%u, %%r%u, 0x80;", outside, to);
  lower_emit(l, "or.b32 %%r%u, %%r%u, 0x%x;", outside, outside, result == TILE_E4M3 ? 0x7f : 0x7c);
  lower_emit(l, "selp.b32 %%r%u, %%r%u, %%r%u, %%p%u;", to, outside, to, is_outside);
}

static void convert_of_integer(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  uint32_t a = source == TILE_I64 ? from[0] : element_extend(l, source, op->lhs_signed, from[0]);
  if (result == TILE_F16 || result == TILE_F32 || result == TILE_F64) {
    char s = op->lhs_signed ? 's' : 'u', c = source == TILE_I64 ? 'd' : 'r';
    lower_emit(l, "cvt.%s.%s.%c%u %%%c%u, %%%c%u;", element_rounding(op->rounding), tile_scalar_name(result), s,
               source == TILE_I64 ? 64 : 32, lower_letter(lower_class(result)), to, c, a);
    return;
  }
  uint32_t single = integer_to_odd_f32(l, op, a);
  element_of_f32(l, result, op->rounding, to, single);
  if (result == TILE_E4M3 || result == TILE_E5M2) overflow_of_eight_bits(l, result, to, single);
}

/* cvt.rzi clamps to its own range, and makes 0 of a NaN unless it comes from f64 or goes to 64 bits. */
static void convert_to_integer(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  bool wide = result == TILE_I64;
  char s = op->lhs_signed ? 's' : 'u', c = wide ? 'd' : 'r', f = 'r';
  uint32_t bits = tile_scalar_bits(result), a = from[0], whole = wide ? to : lower_register(l, CLASS_WORD);
  if (source == TILE_F64) f = 'd';
  else a = element_to_f32(l, source, a);
  const char *type = f == 'd' ? "f64" : "f32";
  if (result == TILE_I1 && !op->lhs_signed && !op->saturating) { /* is it not 0, as NVIDIA's assembler has it */
    lower_emit(l, "setp.neu.%s %%p%u, %%%c%u, %s;", type, to, f, a, f == 'd' ? "0d0000000000000000" : "0f00000000");
    return;
  }
  lower_emit(l, "cvt.rzi.%c%u.%s %%%c%u, %%%c%u;", s, wide ? 64 : 32, type, c, whole, f, a);
  if (op->saturating) {
    uint32_t is_nan = lower_register(l, CLASS_PREDICATE);
    lower_emit(l, "setp.nan.%s %%p%u, %%%c%u, %%%c%u;", type, is_nan, f, a, f, a);
    lower_emit(l, "selp.b%u %%%c%u, 0, %%%c%u, %%p%u;", wide ? 64 : 32, c, whole, c, whole, is_nan);
    if (bits < 32 && op->lhs_signed) {
      lower_emit(l, "min.s32 %%r%u, %%r%u, %d;", whole, whole, (1 << (bits - 1)) - 1);
      lower_emit(l, "max.s32 %%r%u, %%r%u, %d;", whole, whole, -(1 << (bits - 1)));
    } else if (bits < 32) {
      lower_emit(l, "min.u32 %%r%u, %%r%u, %u;", whole, whole, (1u << bits) - 1);
    }
  }
  if (!wide) element_cut(l, result, to, whole);
}

static void extend_integer(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  uint32_t a = element_extend(l, source, op->lhs_signed, from[0]);
  if (result == TILE_I64)
    lower_emit(l, "cvt.%c64.%c32 %%d%u, %%r%u;", op->lhs_signed ? 's' : 'u', op->lhs_signed ? 's' : 'u', to, a);
  else if (op->lhs_signed) element_cut(l, result, to, a);
  else lower_emit(l, "mov.b32 %%r%u, %%r%u;", to, a);
}

static void truncate_integer(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  uint32_t a = from[0];
  if (operand_scalar(op, 0) == TILE_I64) {
    a = lower_register(l, CLASS_WORD);
    lower_emit(l, "cvt.u32.u64 %%r%u, %%d%u;", a, from[0]);
  }
  element_cut(l, result_scalar(op), to, a);
}

/* Between %h and %r: i16 and the floats of 16 bits. */
static void move_bits(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  if (lower_class(result_scalar(op)) == CLASS_HALF) lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", to, from[0]);
  else lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", to, from[0]);
}

static void reinterpret(lower *l, tile_op *op) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  if (tile_scalar_bits(source) != tile_scalar_bits(result))
    lower_fail(l, op, FF_PARSE, "%s from %s to %s: the widths differ", tile_opcode_name(op->opcode),
               tile_scalar_name(source), tile_scalar_name(result));
  else if (lower_class(source) == lower_class(result)) lower_alias(l, &op->results[0], lower_value(l, op->operands[0]));
  else lower_elementwise(l, op, move_bits);
}

static void keep_divisor(lower *l, tile_op *op) {
  if (l->status == FF_OK) lower_value(l, &op->results[0])->divisor = lower_value(l, op->operands[0])->divisor;
}

/* Whether the operand and the result are integers, as an operation wants them. */
static bool converts(lower *l, const tile_op *op, bool from_integer, bool to_integer) {
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  if (scalar_is_integer(source) == from_integer && scalar_is_integer(result) == to_integer && source != TILE_POINTER &&
      result != TILE_POINTER)
    return true;
  lower_fail(l, op, FF_PARSE, "%s does not take %s to %s", tile_opcode_name(op->opcode), tile_scalar_name(source),
             tile_scalar_name(result));
  return false;
}

static void resize(lower *l, tile_op *op, lower_element_fn *element) {
  if (!converts(l, op, true, true)) return;
  tile_scalar source = operand_scalar(op, 0), result = result_scalar(op);
  bool widens = tile_scalar_bits(source) < tile_scalar_bits(result), is_extension = op->opcode == TILE_OP_EXTI;
  if (widens != is_extension || source == result) {
    lower_fail(l, op, FF_PARSE, "%s does not take %s to %s", tile_opcode_name(op->opcode), tile_scalar_name(source),
               tile_scalar_name(result));
    return;
  }
  lower_elementwise(l, op, element);
  keep_divisor(l, op);
}

bool lower_convert_op(lower *l, tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_BITCAST:
  case TILE_OP_INT_TO_PTR:
  case TILE_OP_PTR_TO_INT:
  case TILE_OP_PTR_TO_PTR: reinterpret(l, op); return true;
  case TILE_OP_EXTI: resize(l, op, extend_integer); return true;
  case TILE_OP_TRUNCI: resize(l, op, truncate_integer); return true;
  case TILE_OP_FTOF:
    if (converts(l, op, false, false)) lower_elementwise(l, op, convert_float);
    return true;
  case TILE_OP_FTOI:
    if (converts(l, op, false, true)) lower_elementwise(l, op, convert_to_integer);
    return true;
  case TILE_OP_ITOF:
    if (converts(l, op, true, false)) lower_elementwise(l, op, convert_of_integer);
    return true;
  default: return false;
  }
}
