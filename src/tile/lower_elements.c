/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, comparisons and selection of elements, and what is known of their divisors. What each operation computes
 * is said in the specification of Tile IR, "Operations"; where it leaves a result open (division by zero, shifts by the
 * width or more) the result is the one of the PTX instruction. */
#include <stdio.h>
#include <string.h>

#include "tile/lower_elements.h"

#define DIVISOR_MAX (UINT64_C(1) << 62)

/* ---- integers ---- */

uint32_t element_extend(lower *l, tile_scalar scalar, bool is_signed, uint32_t from) {
  if (scalar == TILE_I32) return from;
  if (scalar != TILE_I1 && !is_signed) return from;
  uint32_t to = lower_register(l, CLASS_WORD);
  if (scalar == TILE_I1) {
    lower_emit(l, "selp.b32 %%r%u, %d, 0, %%p%u;", to, is_signed ? -1 : 1, from);
  } else { /* two shifts, as compiled code has no bfe.s32 */
    uint32_t unused = 32 - tile_scalar_bits(scalar);
    lower_emit(l, "shl.b32 %%r%u, %%r%u, %u;", to, from, unused);
    lower_emit(l, "shr.s32 %%r%u, %%r%u, %u;", to, to, unused);
  }
  return to;
}

void element_cut(lower *l, tile_scalar scalar, uint32_t to, uint32_t from) {
  if (scalar == TILE_I1) {
    uint32_t bit = lower_register(l, CLASS_WORD);
    lower_emit(l, "and.b32 %%r%u, %%r%u, 1;", bit, from);
    lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", to, bit);
  } else if (tile_scalar_bits(scalar) < 32) {
    lower_emit(l, "and.b32 %%r%u, %%r%u, 0x%x;", to, from, (1u << tile_scalar_bits(scalar)) - 1);
  } else if (to != from) {
    lower_emit(l, "mov.b32 %%r%u, %%r%u;", to, from);
  }
}

/* Where a result of up to 32 bits is computed before it is cut. */
static uint32_t uncut(lower *l, tile_scalar scalar, uint32_t to) {
  return scalar == TILE_I32 ? to : lower_register(l, CLASS_WORD);
}

static bool is_integer_op(lower *l, const tile_op *op, tile_scalar scalar) {
  if (scalar_is_integer(scalar)) return true;
  lower_fail(l, op, FF_PARSE, "%s takes integers, not %s", tile_opcode_name(op->opcode), tile_scalar_name(scalar));
  return false;
}

/* The instruction without its width, and whether it looks at the sign. */
static const char *integer_instruction(const tile_op *op, bool *looks_at_sign) {
  bool is_signed = op->lhs_signed;
  *looks_at_sign = true;
  switch (op->opcode) {
  case TILE_OP_MAXI: return is_signed ? "max.s" : "max.u";
  case TILE_OP_MINI: return is_signed ? "min.s" : "min.u";
  case TILE_OP_REMI: return is_signed ? "rem.s" : "rem.u";
  case TILE_OP_DIVI: return is_signed ? "div.s" : "div.u";
  default: break;
  }
  *looks_at_sign = false;
  switch (op->opcode) {
  case TILE_OP_ADDI: return "add.s";
  case TILE_OP_SUBI: return "sub.s";
  case TILE_OP_MULI: return "mul.lo.s";
  case TILE_OP_ANDI: return "and.b";
  case TILE_OP_ORI: return "or.b";
  default: return "xor.b";
  }
}

static void integer_binary(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  bool looks_at_sign;
  const char *instruction = integer_instruction(op, &looks_at_sign);
  if (scalar == TILE_I64) {
    lower_emit(l, "%s64 %%d%u, %%d%u, %%d%u;", instruction, to, from[0], from[1]);
    return;
  }
  bool is_signed = looks_at_sign && op->lhs_signed;
  uint32_t a = element_extend(l, scalar, is_signed, from[0]), b = element_extend(l, scalar, is_signed, from[1]);
  uint32_t result = uncut(l, scalar, to);
  lower_emit(l, "%s32 %%r%u, %%r%u, %%r%u;", instruction, result, a, b);
  element_cut(l, scalar, to, result);
}

/* `and`, `or`, `xor` of i1, and + - * modulo 2. */
static void predicate_binary(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  bool is_and = op->opcode == TILE_OP_ANDI || op->opcode == TILE_OP_MULI;
  const char *instruction = is_and ? "and" : op->opcode == TILE_OP_ORI ? "or" : "xor";
  lower_emit(l, "%s.pred %%p%u, %%p%u, %%p%u;", instruction, to, from[0], from[1]);
}

/* Rounding to an infinity: the quotient towards zero, one more or less if something is left and the signs say so. */
static void integer_divide_rounded(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  bool wide = scalar == TILE_I64, up = op->rounding == TILE_ROUND_UP;
  register_class class = wide ? CLASS_DOUBLE : CLASS_WORD;
  char c = lower_letter(class), s = op->lhs_signed ? 's' : 'u';
  uint32_t bits = wide ? 64 : 32;
  uint32_t a = wide ? from[0] : element_extend(l, scalar, op->lhs_signed, from[0]);
  uint32_t b = wide ? from[1] : element_extend(l, scalar, op->lhs_signed, from[1]);
  uint32_t quotient = lower_register(l, class), product = lower_register(l, class), signs = lower_register(l, class);
  uint32_t left = lower_register(l, CLASS_PREDICATE), one = lower_register(l, class);
  uint32_t result = wide ? to : uncut(l, scalar, to);
  lower_emit(l, "div.%c%u %%%c%u, %%%c%u, %%%c%u;", s, bits, c, quotient, c, a, c, b);
  lower_emit(l, "mul.lo.%c%u %%%c%u, %%%c%u, %%%c%u;", s, bits, c, product, c, quotient, c, b);
  lower_emit(l, "setp.ne.%c%u %%p%u, %%%c%u, %%%c%u;", s, bits, left, c, product, c, a);
  if (op->lhs_signed) { /* the exact quotient is negative: its rounding towards zero went up */
    lower_emit(l, "xor.b%u %%%c%u, %%%c%u, %%%c%u;", bits, c, signs, c, a, c, b);
    lower_emit(l, "setp.%s.and.s%u %%p%u, %%%c%u, 0, %%p%u;", up ? "ge" : "lt", bits, left, c, signs, left);
  } else if (!up) {
    lower_fail(l, op, FF_PARSE, "divi of unsigned integers does not round to negative infinity");
  }
  lower_emit(l, "selp.b%u %%%c%u, %d, 0, %%p%u;", bits, c, one, up ? 1 : -1, left);
  lower_emit(l, "add.s%u %%%c%u, %%%c%u, %%%c%u;", bits, c, result, c, quotient, c, one);
  if (!wide) element_cut(l, scalar, to, result);
}

static void integer_shift(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  bool left = op->opcode == TILE_OP_SHLI, is_signed = !left && op->lhs_signed;
  const char *instruction = left ? "shl.b" : is_signed ? "shr.s" : "shr.u";
  uint32_t amount = lower_register(l, CLASS_WORD);
  if (scalar == TILE_I64) { /* the amount of a PTX shift has 32 bits */
    uint32_t clamped = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "min.u64 %%d%u, %%d%u, 64;", clamped, from[1]);
    lower_emit(l, "cvt.u32.u64 %%r%u, %%d%u;", amount, clamped);
    lower_emit(l, "%s64 %%d%u, %%d%u, %%r%u;", instruction, to, from[0], amount);
    return;
  }
  uint32_t a = element_extend(l, scalar, is_signed, from[0]), b = element_extend(l, scalar, false, from[1]);
  uint32_t result = uncut(l, scalar, to);
  lower_emit(l, "%s32 %%r%u, %%r%u, %%r%u;", instruction, result, a, b);
  element_cut(l, scalar, to, result);
}

static void integer_multiply_high(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  if (scalar == TILE_I64 || scalar == TILE_I32) {
    char c = scalar == TILE_I64 ? 'd' : 'r';
    lower_emit(l, "mul.hi.u%u %%%c%u, %%%c%u, %%%c%u;", tile_scalar_bits(scalar), c, to, c, from[0], c, from[1]);
    return;
  }
  uint32_t a = element_extend(l, scalar, false, from[0]), b = element_extend(l, scalar, false, from[1]);
  uint32_t product = lower_register(l, CLASS_WORD), result = lower_register(l, CLASS_WORD);
  lower_emit(l, "mul.lo.u32 %%r%u, %%r%u, %%r%u;", product, a, b);
  lower_emit(l, "shr.u32 %%r%u, %%r%u, %u;", result, product, tile_scalar_bits(scalar));
  element_cut(l, scalar, to, result);
}

static void integer_unary(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  const char *instruction = op->opcode == TILE_OP_ABSI ? "abs" : "neg";
  if (scalar == TILE_I64) {
    lower_emit(l, "%s.s64 %%d%u, %%d%u;", instruction, to, from[0]);
    return;
  }
  uint32_t a = element_extend(l, scalar, true, from[0]), result = uncut(l, scalar, to);
  lower_emit(l, "%s.s32 %%r%u, %%r%u;", instruction, result, a);
  element_cut(l, scalar, to, result);
}

static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};

static bool is_comparison(lower *l, const tile_op *op) {
  if (op->predicate < sizeof comparisons / sizeof *comparisons) return true;
  lower_fail(l, op, FF_PARSE, "there is no comparison %u", op->predicate);
  return false;
}

static void integer_compare(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = operand_scalar(op, 0);
  const char *comparison = comparisons[op->predicate];
  char s = op->lhs_signed ? 's' : 'u';
  if (scalar == TILE_I64) {
    lower_emit(l, "setp.%s.%c64 %%p%u, %%d%u, %%d%u;", comparison, s, to, from[0], from[1]);
    return;
  }
  uint32_t a = element_extend(l, scalar, op->lhs_signed, from[0]);
  uint32_t b = element_extend(l, scalar, op->lhs_signed, from[1]);
  lower_emit(l, "setp.%s.%c32 %%p%u, %%r%u, %%r%u;", comparison, s, to, a, b);
}

/* ---- floats ---- */

const char *element_rounding(uint8_t rounding) {
  return rounding == TILE_ROUND_ZERO   ? "rz"
         : rounding == TILE_ROUND_DOWN ? "rm"
         : rounding == TILE_ROUND_UP   ? "rp"
                                       : "rn";
}

static bool is_float_op(lower *l, const tile_op *op, tile_scalar scalar) {
  if (scalar_is_base_float(scalar)) return true;
  lower_fail(l, op, FF_UNSUPPORTED, "%s of %s", tile_opcode_name(op->opcode), tile_scalar_name(scalar));
  return false;
}

/* Signs are bits: a NaN keeps what it carries. */
static void float_sign(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  char c = lower_letter(lower_class(scalar));
  uint32_t bits = tile_scalar_bits(scalar);
  uint64_t sign = UINT64_C(1) << (bits - 1);
  bool negate = op->opcode == TILE_OP_NEGF;
  lower_emit(l, "%s.b%u %%%c%u, %%%c%u, 0x%llx;", negate ? "xor" : "and", bits, c, to, c, from[0],
             (unsigned long long)(negate ? sign : sign - 1));
}

static void float_integral(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  const char *rounding = op->opcode == TILE_OP_CEIL ? "rpi" : "rmi";
  if (scalar == TILE_BF16) {
    uint32_t wide = lower_register(l, CLASS_WORD), a = element_to_f32(l, scalar, from[0]);
    lower_emit(l, "cvt.%s.f32.f32 %%r%u, %%r%u;", rounding, wide, a);
    element_of_f32(l, scalar, TILE_ROUND_EVEN, to, wide);
    return;
  }
  char c = lower_letter(lower_class(scalar));
  const char *name = tile_scalar_name(scalar);
  lower_emit(l, "cvt.%s.%s.%s %%%c%u, %%%c%u;", rounding, name, name, c, to, c, from[0]);
}

/* An instruction of f32 on operands of f16 or bf16. */
static void float_in_f32(lower *l, tile_scalar scalar, uint8_t rounding, const char *instruction, uint32_t to,
                         const uint32_t *from, uint32_t count) {
  uint32_t a[3] = {0}, result = lower_register(l, CLASS_WORD);
  for (uint32_t n = 0; n < count; n++) a[n] = element_to_f32(l, scalar, from[n]);
  if (count == 1) lower_emit(l, "%s.f32 %%r%u, %%r%u;", instruction, result, a[0]);
  else if (count == 2) lower_emit(l, "%s.f32 %%r%u, %%r%u, %%r%u;", instruction, result, a[0], a[1]);
  else lower_emit(l, "%s.f32 %%r%u, %%r%u, %%r%u, %%r%u;", instruction, result, a[0], a[1], a[2]);
  element_of_f32(l, scalar, rounding, to, result);
}

/* addf, subf, mulf, fma */
static void float_arithmetic(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  bool is_fma = op->opcode == TILE_OP_FMA;
  const char *name = op->opcode == TILE_OP_ADDF   ? "add"
                     : op->opcode == TILE_OP_SUBF ? "sub"
                     : op->opcode == TILE_OP_MULF ? "mul"
                                                  : "fma";
  const char *rounding = element_rounding(op->rounding);
  bool nearest = !strcmp(rounding, "rn");
  bool native = scalar == TILE_F16 ? nearest : scalar != TILE_BF16 || (nearest && is_fma);
  char instruction[24];
  if (!native) {
    snprintf(instruction, sizeof instruction, "%s.%s", name, rounding);
    float_in_f32(l, scalar, op->rounding, instruction, to, from, is_fma ? 3 : 2);
    return;
  }
  char c = lower_letter(lower_class(scalar));
  snprintf(instruction, sizeof instruction, "%s.%s%s.%s", name, rounding,
           op->flush_to_zero && scalar == TILE_F32 ? ".ftz" : "", tile_scalar_name(scalar));
  if (is_fma)
    lower_emit(l, "%s %%%c%u, %%%c%u, %%%c%u, %%%c%u;", instruction, c, to, c, from[0], c, from[1], c, from[2]);
  else lower_emit(l, "%s %%%c%u, %%%c%u, %%%c%u;", instruction, c, to, c, from[0], c, from[1]);
}

/* divf, sqrt: `approx` and `full` are of f32 only. */
static void float_divide(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  bool is_root = op->opcode == TILE_OP_SQRT, single = scalar == TILE_F32;
  const char *rounding = element_rounding(op->rounding);
  if (single && op->rounding == TILE_ROUND_APPROX) rounding = "approx";
  if (single && op->rounding == TILE_ROUND_FULL) rounding = is_root ? "rn" : "full";
  char instruction[24];
  snprintf(instruction, sizeof instruction, "%s.%s%s", is_root ? "sqrt" : "div", rounding,
           op->flush_to_zero && single ? ".ftz" : "");
  if (scalar_is_half(scalar)) {
    float_in_f32(l, scalar, op->rounding, instruction, to, from, is_root ? 1 : 2);
    return;
  }
  char c = lower_letter(lower_class(scalar));
  if (is_root) lower_emit(l, "%s.f%u %%%c%u, %%%c%u;", instruction, tile_scalar_bits(scalar), c, to, c, from[0]);
  else
    lower_emit(l, "%s.f%u %%%c%u, %%%c%u, %%%c%u;", instruction, tile_scalar_bits(scalar), c, to, c, from[0], c,
               from[1]);
}

static void float_extremum(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = result_scalar(op);
  const char *name = op->opcode == TILE_OP_MAXF ? "max" : "min";
  if (scalar != TILE_F64) {
    char c = lower_letter(lower_class(scalar));
    lower_emit(l, "%s%s%s.%s %%%c%u, %%%c%u, %%%c%u;", name, op->flush_to_zero && scalar == TILE_F32 ? ".ftz" : "",
               op->propagate_nan ? ".NaN" : "", tile_scalar_name(scalar), c, to, c, from[0], c, from[1]);
    return;
  }
  uint32_t number = op->propagate_nan ? lower_register(l, CLASS_DOUBLE) : to;
  lower_emit(l, "%s.f64 %%d%u, %%d%u, %%d%u;", name, number, from[0], from[1]);
  if (!op->propagate_nan) return;
  uint32_t is_nan = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "setp.nan.f64 %%p%u, %%d%u, %%d%u;", is_nan, from[0], from[1]);
  lower_emit(l, "selp.b64 %%d%u, 0x7ff8000000000000, %%d%u, %%p%u;", to, number, is_nan);
}

static void float_compare(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  tile_scalar scalar = operand_scalar(op, 0);
  const char *comparison = comparisons[op->predicate], *unordered = op->ordered ? "" : "u";
  uint32_t a = from[0], b = from[1];
  if (scalar == TILE_BF16) { /* exact, and setp.bf16 is of sm_90 */
    a = element_to_f32(l, scalar, a), b = element_to_f32(l, scalar, b);
    scalar = TILE_F32;
  }
  char c = lower_letter(lower_class(scalar));
  lower_emit(l, "setp.%s%s.%s %%p%u, %%%c%u, %%%c%u;", comparison, unordered, tile_scalar_name(scalar), to, c, a, c, b);
}

/* ---- others ---- */

static void element_select(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  register_class class = lower_class(result_scalar(op));
  char c = lower_letter(class);
  if (class != CLASS_PREDICATE) {
    lower_emit(l, "selp.%s %%%c%u, %%%c%u, %%%c%u, %%p%u;", lower_untyped(class), c, to, c, from[1], c, from[2],
               from[0]);
    return;
  }
  uint32_t chosen = lower_register(l, class), otherwise = lower_register(l, class);
  lower_emit(l, "not.pred %%p%u, %%p%u;", otherwise, from[0]);
  lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", otherwise, otherwise, from[2]);
  lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", chosen, from[0], from[1]);
  lower_emit(l, "or.pred %%p%u, %%p%u, %%p%u;", to, chosen, otherwise);
}

static uint32_t pointee_bytes(const tile_type *type) {
  if (type->pointee == TILE_POINTER) return 8;
  uint32_t bits = tile_scalar_bits(type->pointee);
  return bits == 1 ? 1 : bits / 8;
}

static void element_offset(lower *l, const tile_op *op, uint32_t to, const uint32_t *from) {
  uint32_t bytes = pointee_bytes(op->operands[0]->type);
  tile_scalar scalar = operand_scalar(op, 1);
  if (scalar == TILE_I64) {
    lower_emit(l, "mad.lo.s64 %%d%u, %%d%u, %u, %%d%u;", to, from[1], bytes, from[0]);
    return;
  }
  uint32_t index = element_extend(l, scalar, true, from[1]);
  lower_emit(l, "mad.wide.s32 %%d%u, %%r%u, %u, %%d%u;", to, index, bytes, from[0]);
}

/* ---- divisors ---- */

static uint64_t divisor_of(lower *l, const tile_value *value) {
  const lowered *v = lower_value(l, value);
  return v && v->divisor ? v->divisor : 1;
}
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t divisor_product(uint64_t a, uint64_t b) { /* both powers of two */
  return a > DIVISOR_MAX / b ? DIVISOR_MAX : a * b;
}

/* What is known of the result's divisor: every element is a multiple of it. All are powers of two, so wrapping around
 * changes nothing. */
static void note_divisor(lower *l, tile_op *op) {
  if (l->status != FF_OK) return;
  uint64_t a = divisor_of(l, op->operands[0]), b = op->operand_count > 1 ? divisor_of(l, op->operands[1]) : 1,
           known = 1;
  uint64_t amount;
  switch (op->opcode) {
  case TILE_OP_ADDI:
  case TILE_OP_SUBI:
  case TILE_OP_MINI:
  case TILE_OP_MAXI:
  case TILE_OP_REMI: known = smaller(a, b); break;
  case TILE_OP_MULI: known = divisor_product(a, b); break;
  case TILE_OP_ANDI: known = a > b ? a : b; break;
  case TILE_OP_NEGI: known = a; break;
  case TILE_OP_SHLI:
    known = a;
    if (lower_known(op->operands[1], &amount) && amount < 62) known = divisor_product(a, UINT64_C(1) << amount);
    break;
  case TILE_OP_SELECT: known = smaller(b, divisor_of(l, op->operands[2])); break;
  case TILE_OP_OFFSET: {
    uint64_t bytes = pointee_bytes(op->operands[0]->type);
    known = smaller(a, divisor_product(b, bytes & -bytes));
    break;
  }
  default: return;
  }
  lower_value(l, &op->results[0])->divisor = known;
}

static void lower_assume(lower *l, tile_op *op) {
  const lowered *value = lower_value(l, op->operands[0]);
  if (!value) return;
  lowered *result = lower_alias(l, &op->results[0], value);
  uint64_t divisor = op->assumed.divisor;
  if (op->assumed.kind != TILE_ASSUME_DIV_BY || !divisor || divisor & (divisor - 1)) return;
  if (op->assumed.has_every && op->assumed.every != 1) return; /* of some elements only */
  if (value->tensor && op->operands[0]->type->kind == TILE_KIND_TENSOR_VIEW) {
    lowered_tensor *tensor = lower_alloc(l, sizeof *tensor);
    *tensor = *value->tensor;
    if (divisor > tensor->base_divisor) tensor->base_divisor = divisor;
    result->tensor = tensor;
  } else if (divisor > result->divisor) {
    result->divisor = divisor;
  }
}

/* ---- which operation is what ---- */

static void each_integer(lower *l, tile_op *op, lower_element_fn *element) {
  if (!is_integer_op(l, op, operand_scalar(op, 0))) return;
  bool is_bit = result_scalar(op) == TILE_I1 && operand_scalar(op, 0) == TILE_I1;
  bool is_plain = op->opcode == TILE_OP_ANDI || op->opcode == TILE_OP_ORI || op->opcode == TILE_OP_XORI ||
                  op->opcode == TILE_OP_ADDI || op->opcode == TILE_OP_SUBI || op->opcode == TILE_OP_MULI;
  lower_elementwise(l, op, is_bit && is_plain ? predicate_binary : element);
  if (op->opcode != TILE_OP_CMPI) note_divisor(l, op);
}

static void each_float(lower *l, tile_op *op, lower_element_fn *element) {
  if (is_float_op(l, op, operand_scalar(op, 0))) lower_elementwise(l, op, element);
}

bool lower_elements_op(lower *l, tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_ADDI:
  case TILE_OP_SUBI:
  case TILE_OP_MULI:
  case TILE_OP_ANDI:
  case TILE_OP_ORI:
  case TILE_OP_XORI:
  case TILE_OP_MAXI:
  case TILE_OP_MINI:
  case TILE_OP_REMI: each_integer(l, op, integer_binary); return true;
  case TILE_OP_DIVI:
    each_integer(l, op,
                 op->rounding == TILE_ROUND_DOWN || op->rounding == TILE_ROUND_UP ? integer_divide_rounded
                                                                                  : integer_binary);
    return true;
  case TILE_OP_SHLI:
  case TILE_OP_SHRI: each_integer(l, op, integer_shift); return true;
  case TILE_OP_MULHII: each_integer(l, op, integer_multiply_high); return true;
  case TILE_OP_ABSI:
  case TILE_OP_NEGI: each_integer(l, op, integer_unary); return true;
  case TILE_OP_CMPI:
    if (is_comparison(l, op)) each_integer(l, op, integer_compare);
    return true;
  case TILE_OP_ABSF:
  case TILE_OP_NEGF: each_float(l, op, float_sign); return true;
  case TILE_OP_CEIL:
  case TILE_OP_FLOOR: each_float(l, op, float_integral); return true;
  case TILE_OP_ADDF:
  case TILE_OP_SUBF:
  case TILE_OP_MULF:
  case TILE_OP_FMA: each_float(l, op, float_arithmetic); return true;
  case TILE_OP_DIVF:
  case TILE_OP_SQRT: each_float(l, op, float_divide); return true;
  case TILE_OP_MAXF:
  case TILE_OP_MINF: each_float(l, op, float_extremum); return true;
  case TILE_OP_CMPF:
    if (is_comparison(l, op)) each_float(l, op, float_compare);
    return true;
  case TILE_OP_SELECT:
    lower_elementwise(l, op, element_select);
    note_divisor(l, op);
    return true;
  case TILE_OP_OFFSET:
    if (!is_integer_op(l, op, operand_scalar(op, 1))) return true;
    if (!pointee_bytes(op->operands[0]->type)) {
      lower_fail(l, op, FF_UNSUPPORTED, "offset of a pointer to %s", tile_scalar_name(op->operands[0]->type->pointee));
      return true;
    }
    lower_elementwise(l, op, element_offset);
    note_divisor(l, op);
    return true;
  case TILE_OP_ASSUME: lower_assume(l, op); return true;
  default: return lower_convert_op(l, op) || lower_math_op(l, op);
  }
}
