/* SPDX-License-Identifier: Apache-2.0 */
/* Integer operations that take several instructions of the host: bytes, 24 and 128 bits, fields with a sign
 * (exec/instructions/ops_integer.def, ops_bits.def). */
#include "compile/generator/lanes.h"

#include "exec/core.h"

/* ---- prmt ---- */

static value select_byte(const lanes *l, value a, value b, value control, uint32_t n) { /* ops_prmt_byte */
  LLVMBuilderRef builder = l->b;
  value pick = LLVMBuildLShr(builder, control, number(l, 32, 4 * n), ""), zero = number(l, 32, 0);
  value second = LLVMBuildAnd(builder, pick, number(l, 32, 4), ""),
        word = choose(l, LLVMBuildICmp(builder, LLVMIntNE, second, zero, ""), b, a);
  value at = LLVMBuildShl(builder, LLVMBuildAnd(builder, pick, number(l, 32, 3), ""), number(l, 32, 3), "");
  value byte = LLVMBuildAnd(builder, LLVMBuildLShr(builder, word, at, ""), number(l, 32, 255), "");
  value top = LLVMBuildICmp(builder, LLVMIntUGE, byte, number(l, 32, 128), ""),
        sign = choose(l, top, number(l, 32, 255), zero);
  value signs = LLVMBuildAnd(builder, pick, number(l, 32, 8), "");
  byte = choose(l, LLVMBuildICmp(builder, LLVMIntNE, signs, zero, ""), sign, byte);
  return LLVMBuildShl(builder, byte, number(l, 32, 8 * n), "");
}

/* The control word is a constant without signs: bytes of vectors change places. */
static value permuted(const lanes *l, value a, value b, uint32_t control) {
  LLVMTypeRef bytes = LLVMVectorType(l->g->i8, 4 * EXEC_LANES);
  value pick[4 * EXEC_LANES];
  for (uint32_t n = 0; n < 4 * EXEC_LANES; n++) {
    uint32_t nibble = control >> 4 * (n % 4);
    pick[n] = gen_i32(l->g, (nibble & 4 ? 4 * EXEC_LANES : 0) + n / 4 * 4 + (nibble & 3));
  }
  value r = LLVMBuildShuffleVector(l->b, LLVMBuildBitCast(l->b, a, bytes, ""), LLVMBuildBitCast(l->b, b, bytes, ""),
                                   LLVMConstVector(pick, 4 * EXEC_LANES), "");
  return as_int(l, r, 32);
}

static value permute_bytes(const lanes *l, const value *a) {
  const native_operand *control = &l->g->plan->operands[l->n->operands + 2];
  if (l->vector && control->constant == 1 && !(control->value & 0x8888))
    return permuted(l, a[0], a[1], (uint32_t)control->value);
  value r = select_byte(l, a[0], a[1], a[2], 0);
  for (uint32_t n = 1; n < 4; n++) r = LLVMBuildOr(l->b, r, select_byte(l, a[0], a[1], a[2], n), "");
  return r;
}

/* ---- 64 bits ---- */

/* The upper half of the product of 128 bits, by four products of 32 bits by 32. */
static value high_product64(const lanes *l, value a, value b, bool is_signed) {
  LLVMBuilderRef builder = l->b;
  value half = number(l, 64, 32), low = number(l, 64, UINT32_MAX), zero = number(l, 64, 0);
  value a0 = LLVMBuildAnd(builder, a, low, ""), a1 = LLVMBuildLShr(builder, a, half, ""),
        b0 = LLVMBuildAnd(builder, b, low, ""), b1 = LLVMBuildLShr(builder, b, half, "");
  value p00 = LLVMBuildMul(builder, a0, b0, ""), p01 = LLVMBuildMul(builder, a0, b1, ""),
        p10 = LLVMBuildMul(builder, a1, b0, ""), p11 = LLVMBuildMul(builder, a1, b1, "");
  value middle = LLVMBuildAdd(builder, LLVMBuildLShr(builder, p00, half, ""), LLVMBuildAnd(builder, p01, low, ""), "");
  middle = LLVMBuildAdd(builder, middle, LLVMBuildAnd(builder, p10, low, ""), "");
  value r = LLVMBuildAdd(builder, p11, LLVMBuildLShr(builder, p01, half, ""), "");
  r = LLVMBuildAdd(builder, r, LLVMBuildLShr(builder, p10, half, ""), "");
  r = LLVMBuildAdd(builder, r, LLVMBuildLShr(builder, middle, half, ""), "");
  if (!is_signed) return r;
  value of_a = choose(l, LLVMBuildICmp(builder, LLVMIntSLT, a, zero, ""), b, zero),
        of_b = choose(l, LLVMBuildICmp(builder, LLVMIntSLT, b, zero, ""), a, zero);
  return LLVMBuildSub(builder, LLVMBuildSub(builder, r, of_a, ""), of_b, "");
}

static value magnitude(const lanes *l, value v) {
  value below = LLVMBuildICmp(l->b, LLVMIntSLT, v, number(l, 64, 0), "");
  return choose(l, below, LLVMBuildNeg(l->b, v, ""), v);
}

value gen_divide64(const lanes *l, value a, value b, bool is_signed, bool remainder) {
  value zero = number(l, 64, 0), none = LLVMBuildICmp(l->b, LLVMIntEQ, b, zero, "");
  value x = is_signed ? magnitude(l, a) : a, y = choose(l, none, number(l, 64, 1), is_signed ? magnitude(l, b) : b);
  value r = remainder ? LLVMBuildURem(l->b, x, y, "") : LLVMBuildUDiv(l->b, x, y, "");
  value sign = remainder ? a : LLVMBuildXor(l->b, a, b, "");
  if (is_signed) r = choose(l, LLVMBuildICmp(l->b, LLVMIntSLT, sign, zero, ""), LLVMBuildNeg(l->b, r, ""), r);
  return choose(l, none, remainder ? a : number(l, 64, UINT64_MAX), r);
}

/* ---- 32 bits ---- */

static value product24(const lanes *l, const value *a, bool is_signed) {
  value up = number(l, 32, 8), part[2];
  for (uint32_t s = 0; s < 2; s++) {
    part[s] = LLVMBuildShl(l->b, a[s], up, "");
    part[s] = is_signed ? LLVMBuildAShr(l->b, part[s], up, "") : LLVMBuildLShr(l->b, part[s], up, "");
  }
  return LLVMBuildMul(l->b, part[0], part[1], "");
}

static value add_difference(const lanes *l, const value *a, bool is_signed) {
  value less = LLVMBuildICmp(l->b, is_signed ? LLVMIntSLT : LLVMIntULT, a[0], a[1], "");
  value difference = choose(l, less, LLVMBuildSub(l->b, a[1], a[0], ""), LLVMBuildSub(l->b, a[0], a[1], ""));
  return LLVMBuildAdd(l->b, a[2], difference, "");
}

static value at_most(const lanes *l, value v, uint32_t most) {
  return choose(l, LLVMBuildICmp(l->b, LLVMIntULT, v, number(l, 32, most), ""), v, number(l, 32, most));
}

static value signed_field(const lanes *l, const value *a) { /* ops_bfe_s32 */
  value byte = number(l, 32, 255), at = at_most(l, LLVMBuildAnd(l->b, a[1], byte, ""), 31),
        count = at_most(l, LLVMBuildAnd(l->b, a[2], byte, ""), 32);
  value up = LLVMBuildAnd(l->b, LLVMBuildSub(l->b, number(l, 32, 32), count, ""), number(l, 32, 31), "");
  value r = LLVMBuildShl(l->b, LLVMBuildAShr(l->b, a[0], at, ""), up, ""), zero = number(l, 32, 0);
  return choose(l, LLVMBuildICmp(l->b, LLVMIntEQ, count, zero, ""), zero, LLVMBuildAShr(l->b, r, up, ""));
}

/* All ones if no bit is set. */
static value highest_bit(const lanes *l, value a, uint32_t bits, bool is_signed) {
  if (is_signed) a = LLVMBuildXor(l->b, a, LLVMBuildAShr(l->b, a, number(l, bits, bits - 1), ""), "");
  LLVMTypeRef type = int_type(l, bits);
  value arguments[2] = {a, LLVMConstInt(l->g->i1, 0, false)};
  return LLVMBuildSub(l->b, number(l, bits, bits - 1), gen_intrinsic(l->g, "llvm.ctlz", &type, 1, arguments, 2), "");
}

static value clamped_funnel(const lanes *l, const value *a, bool left) {
  value arguments[3] = {a[1], a[0], a[2]};
  LLVMTypeRef type = int_type(l, 32);
  value r = gen_intrinsic(l->g, left ? "llvm.fshl" : "llvm.fshr", &type, 1, arguments, 3);
  value inside = LLVMBuildICmp(l->b, LLVMIntULT, a[2], number(l, 32, 32), "");
  return choose(l, inside, r, left ? a[0] : a[1]);
}

value gen_more_integers(const lanes *l, const value *a, uint32_t bits, bool is_signed) {
  switch (l->n->op) {
  case NATIVE_PRMT: return permute_bytes(l, a);
  case NATIVE_MUL_HIGH64: return high_product64(l, a[0], a[1], is_signed);
  case NATIVE_MUL24: return product24(l, a, is_signed);
  case NATIVE_SAD: return add_difference(l, a, is_signed);
  case NATIVE_BFE_S: return signed_field(l, a);
  case NATIVE_BFIND: return highest_bit(l, a[0], bits, is_signed);
  case NATIVE_FUNNEL_LEFT_CLAMP: return clamped_funnel(l, a, true);
  case NATIVE_FUNNEL_RIGHT_CLAMP: return clamped_funnel(l, a, false);
  default: return NULL;
  }
}
