/* SPDX-License-Identifier: Apache-2.0 */
/* Computing instructions as LLVM instructions, for vectors and scalars alike: the bits of exec/ops_*.isa.c.
 *
 * Nothing here lets LLVM take a liberty that the handlers do not take: no fast-math flags, no
 * poison (shift amounts are cut before they are used), NaNs are made canonical as ops_math.h does. */
#include "compile/generator/lanes.h"

#include <string.h>

#include "base/check.h"
#include "exec/core.h"
#include "exec/instructions/ops_table.h"
#include "exec/instructions/shuffle_lanes.h"

/* ---- kinds: cells to lanes and back ---- */

static const struct {
  uint8_t bytes, bits;
  char class;
} kinds[] = {
#define K(name, bytes, bits, class) {bytes, bits, class},
#include "exec/instructions/ops_kinds.def"
#undef K
};

static value extend(const lanes *l, value v, uint32_t bits, bool is_signed) {
  value up = number(l, 32, 32 - bits);
  v = LLVMBuildShl(l->b, v, up, "");
  return is_signed ? LLVMBuildAShr(l->b, v, up, "") : LLVMBuildLShr(l->b, v, up, "");
}

static value flush(const lanes *l, value v) { /* ops_ftz32 */
  value bits = as_int(l, v, 32), exponent = LLVMBuildAnd(l->b, bits, number(l, 32, 0x7f800000u), "");
  value zero = LLVMBuildICmp(l->b, LLVMIntEQ, exponent, number(l, 32, 0), "");
  return as_float(l, choose(l, zero, LLVMBuildAnd(l->b, bits, number(l, 32, 0x80000000u), ""), bits), 32);
}
static value canonical(const lanes *l, value v) { return choose(l, is_nan(l, v), real(l, 32, 0x7fffffffu), v); }
static value saturate(const lanes *l, value v) {
  value one = real(l, 32, 0x3f800000u), zero = real(l, 32, 0);
  value low = choose(l, LLVMBuildFCmp(l->b, LLVMRealOLT, v, one, ""), v, one);
  return choose(l, LLVMBuildFCmp(l->b, LLVMRealOGT, v, zero, ""), low, zero);
}

static value decode(const lanes *l, value v, uint8_t kind) {
  switch (kind) {
  case NATIVE_K_s16: return extend(l, v, 16, true);
  case NATIVE_K_u8: return extend(l, v, 8, false);
  case NATIVE_K_s8: return extend(l, v, 8, true);
  case NATIVE_K_m16: return extend(l, v, 16, false);
  case NATIVE_K_w8u:
  case NATIVE_K_w8s:
  case NATIVE_K_w16u:
  case NATIVE_K_w16s:
  case NATIVE_K_w32u:
  case NATIVE_K_w32s:
    v = LLVMBuildTrunc(l->b, v, int_type(l, 32), "");
    if (kind >= NATIVE_K_w32u) return v;
    return extend(l, v, kind <= NATIVE_K_w8s ? 8 : 16, kind == NATIVE_K_w8s || kind == NATIVE_K_w16s);
  case NATIVE_K_f32: return as_float(l, v, 32);
  case NATIVE_K_f32z: return flush(l, as_float(l, v, 32));
  case NATIVE_K_f64: return as_float(l, v, 64);
  case NATIVE_K_h16: return gen_half_as_f32(l, v, false);
  case NATIVE_K_h16b: return gen_half_as_f32(l, v, true);
  default: return v;
  }
}

/* An integer result, of a width and sign of its own, as the cell that the kind makes of it. */
static value encode_int(const lanes *l, value v, uint32_t bits, bool is_signed, uint8_t kind) {
  bool narrow = kind != NATIVE_K_u64 && kind != NATIVE_K_s64 && kind != NATIVE_K_t64 && kind != NATIVE_K_b64 &&
                kind != NATIVE_K_f64b;
  if (!narrow && bits == 32)
    return is_signed ? LLVMBuildSExt(l->b, v, int_type(l, 64), "") : LLVMBuildZExt(l->b, v, int_type(l, 64), "");
  if (!narrow) return v;
  if (bits == 64) v = LLVMBuildTrunc(l->b, v, int_type(l, 32), "");
  switch (kind) {
  case NATIVE_K_u16:
  case NATIVE_K_s16:
  case NATIVE_K_t16u: return extend(l, v, 16, false);
  case NATIVE_K_t8u: return extend(l, v, 8, false);
  case NATIVE_K_t8s_16: return LLVMBuildAnd(l->b, extend(l, v, 8, true), number(l, 32, 0xffff), "");
  case NATIVE_K_t8s_32: return extend(l, v, 8, true);
  case NATIVE_K_t16s_32: return extend(l, v, 16, true);
  case NATIVE_K_t8u_64: return LLVMBuildZExt(l->b, extend(l, v, 8, false), int_type(l, 64), "");
  case NATIVE_K_t8s_64: return LLVMBuildSExt(l->b, extend(l, v, 8, true), int_type(l, 64), "");
  case NATIVE_K_t16u_64: return LLVMBuildZExt(l->b, extend(l, v, 16, false), int_type(l, 64), "");
  case NATIVE_K_t16s_64: return LLVMBuildSExt(l->b, extend(l, v, 16, true), int_type(l, 64), "");
  case NATIVE_K_t32u_64: return LLVMBuildZExt(l->b, v, int_type(l, 64), "");
  case NATIVE_K_t32s_64: return LLVMBuildSExt(l->b, v, int_type(l, 64), "");
  default: return v;
  }
}

static value encode_float(const lanes *l, value v, uint8_t kind) {
  switch (kind) {
  case NATIVE_K_f32c: v = canonical(l, v); break;
  case NATIVE_K_f32z: v = flush(l, canonical(l, v)); break;
  case NATIVE_K_f32s: v = saturate(l, v); break;
  case NATIVE_K_f32zs: v = saturate(l, flush(l, v)); break;
  default: break;
  }
  return as_int(l, v, kinds[kind].bits);
}

/* f64: the first operand that is a NaN, made quiet (ops_nan1 to ops_nan3). */
static value first_nan(const lanes *l, value result, const value *a, uint32_t count) {
  value nan = real(l, 64, UINT64_C(0xfff8000000000000));
  while (count-- > 0) {
    value quiet =
        as_float(l, LLVMBuildOr(l->b, as_int(l, a[count], 64), number(l, 64, UINT64_C(0x8000000000000)), ""), 64);
    nan = choose(l, is_nan(l, a[count]), quiet, nan);
  }
  return choose(l, is_nan(l, result), nan, result);
}

/* The same of a vector, by a way of its own that is taken only if a lane's result is a NaN: choosing takes several
 * times as long as the arithmetic. */
static value seldom_first_nan(const lanes *l, value result, const value *a, uint32_t count) {
  generator *g = l->g;
  LLVMBasicBlockRef before, nans = gen_block(g, "nans"), on = gen_block(g, "numbers");
  value any = gen_any_nan(g, result);
  before = LLVMGetInsertBlock(g->b);
  gen_branch(g, any, nans, on, on, GEN_NEARLY_ALWAYS);
  LLVMPositionBuilderAtEnd(g->b, nans);
  value ways[2] = {result, first_nan(l, result, a, count)};
  LLVMBasicBlockRef from[2] = {before, nans};
  LLVMBuildBr(g->b, on);
  LLVMPositionBuilderAtEnd(g->b, on);
  value made = LLVMBuildPhi(g->b, LLVMTypeOf(result), "");
  LLVMAddIncoming(made, ways, from, 2);
  return made;
}

static value finish_float(const lanes *l, value result, const value *a, uint32_t count) {
  if (l->n->dst_kind == NATIVE_K_f64)
    result = l->vector ? seldom_first_nan(l, result, a, count) : first_nan(l, result, a, count);
  return encode_float(l, result, l->n->dst_kind);
}

/* ---- families ---- */

static value shift(const lanes *l, value a, value amount, bool left) {
  uint32_t bits = kinds[l->n->src_kind[0]].bits;
  bool arithmetic = !left && kinds[l->n->src_kind[0]].class == 'S';
  value last = number(l, 32, bits - 1), cut;
  value inside = LLVMBuildICmp(l->b, LLVMIntULT, amount, number(l, 32, bits), "");
  if (arithmetic) cut = choose(l, inside, amount, last);
  else cut = LLVMBuildAnd(l->b, amount, last, "");
  if (bits == 64) cut = LLVMBuildZExt(l->b, cut, int_type(l, 64), "");
  if (arithmetic) return LLVMBuildAShr(l->b, a, cut, "");
  value moved = left ? LLVMBuildShl(l->b, a, cut, "") : LLVMBuildLShr(l->b, a, cut, "");
  return choose(l, inside, moved, number(l, bits, 0));
}

static value funnel(const lanes *l, value low, value high, value amount, bool left) {
  value a[3] = {high, low, amount};
  LLVMTypeRef type = int_type(l, 32);
  return gen_intrinsic(l->g, left ? "llvm.fshl" : "llvm.fshr", &type, 1, a, 3);
}

static value lop3(const lanes *l, value a, value b, value c) {
  uint32_t table = l->n->aux >> OPS_AUX_SHIFT;
  value result = number(l, 32, 0), all[3] = {a, b, c};
  for (uint32_t term = 0; term < 8; term++) {
    if (!(table >> term & 1)) continue;
    value product = NULL;
    for (uint32_t v = 0; v < 3; v++) {
      value part = term >> (2 - v) & 1 ? all[v] : LLVMBuildNot(l->b, all[v], "");
      product = product ? LLVMBuildAnd(l->b, product, part, "") : part;
    }
    result = LLVMBuildOr(l->b, result, product, "");
  }
  return result;
}

static value low_bits(const lanes *l, value count) { /* ops_low_bits32 */
  value inside = LLVMBuildICmp(l->b, LLVMIntULT, count, number(l, 32, 32), "");
  value bit = LLVMBuildShl(l->b, number(l, 32, 1), LLVMBuildAnd(l->b, count, number(l, 32, 31), ""), "");
  return choose(l, inside, LLVMBuildSub(l->b, bit, number(l, 32, 1), ""), number(l, 32, UINT32_MAX));
}

static value shifted_in(const lanes *l, value v, value at, bool left) { /* 0 from 32 on */
  value inside = LLVMBuildICmp(l->b, LLVMIntULT, at, number(l, 32, 32), ""),
        cut = LLVMBuildAnd(l->b, at, number(l, 32, 31), "");
  return choose(l, inside, left ? LLVMBuildShl(l->b, v, cut, "") : LLVMBuildLShr(l->b, v, cut, ""), number(l, 32, 0));
}

static value bit_field(const lanes *l, const value *a, bool insert) {
  value byte = number(l, 32, 255), at = LLVMBuildAnd(l->b, a[insert ? 2 : 1], byte, ""),
        count = LLVMBuildAnd(l->b, a[insert ? 3 : 2], byte, "");
  if (!insert) return LLVMBuildAnd(l->b, shifted_in(l, a[0], at, false), low_bits(l, count), "");
  value field = shifted_in(l, low_bits(l, count), at, true);
  value moved = LLVMBuildShl(l->b, a[0], LLVMBuildAnd(l->b, at, number(l, 32, 31), ""), "");
  return LLVMBuildOr(l->b, LLVMBuildAnd(l->b, a[1], LLVMBuildNot(l->b, field, ""), ""),
                     LLVMBuildAnd(l->b, moved, field, ""), "");
}

static value smaller(const lanes *l, value a, value b, bool largest) {
  bool is_signed = kinds[l->n->src_kind[0]].class == 'S';
  LLVMIntPredicate before = largest ? LLVMIntUGT : LLVMIntULT;
  if (is_signed) before = largest ? LLVMIntSGT : LLVMIntSLT;
  return choose(l, LLVMBuildICmp(l->b, before, a, b, ""), a, b);
}

static value smaller_float(const lanes *l, value a, value b, bool largest) { /* ops_min32, ops_max32, ops_min64 ... */
  uint32_t bits = kinds[l->n->src_kind[0]].bits;
  value x = as_int(l, a, bits), y = as_int(l, b, bits);
  value equal = as_float(l, largest ? LLVMBuildAnd(l->b, x, y, "") : LLVMBuildOr(l->b, x, y, ""), bits);
  value less = choose(l, LLVMBuildFCmp(l->b, largest ? LLVMRealOGT : LLVMRealOLT, a, b, ""), a, b);
  value result = choose(l, LLVMBuildFCmp(l->b, LLVMRealOEQ, a, b, ""), equal, less);
  result = choose(l, is_nan(l, b), a, result);
  return choose(l, is_nan(l, a), b, result);
}

static value number_of(const lanes *l, uint32_t bits, double v) {
  value one = LLVMConstReal(bits == 64 ? l->g->f64 : l->g->f32, v);
  return l->vector ? gen_splat(l->g, one) : one;
}

/* A float, cut, as so many bits; of a NaN the top bit if one of both has 64 bits, and 0 else. */
static value to_integer(const lanes *l, value a, uint32_t result_bits, bool is_signed) {
  uint32_t bits = kinds[l->n->src_kind[0]].bits;
  LLVMTypeRef types[2] = {int_type(l, result_bits), float_type(l, bits)};
  uint64_t top = UINT64_C(1) << (result_bits - 1), of_nan = bits == 64 || result_bits == 64 ? top : 0;
  /* LLVM's saturating conversions take vectors apart */
  double over = is_signed ? (double)top : 2 * (double)top;
  value above = LLVMBuildFCmp(l->b, LLVMRealOGE, a, number_of(l, bits, over), ""),
        enough = LLVMBuildFCmp(l->b, LLVMRealOGE, a, number_of(l, bits, is_signed ? -over : 0), ""),
        below = LLVMBuildFCmp(l->b, LLVMRealOLT, a, number_of(l, bits, is_signed ? -over : 0), "");
  value inside = LLVMBuildAnd(l->b, enough, LLVMBuildNot(l->b, above, ""), ""),
        safe = choose(l, inside, a, number_of(l, bits, 0));
  value cut = is_signed ? LLVMBuildFPToSI(l->b, safe, types[0], "") : LLVMBuildFPToUI(l->b, safe, types[0], "");
  value rest = choose(l, below, number(l, result_bits, is_signed ? top : 0), number(l, result_bits, of_nan));
  rest = choose(l, above, number(l, result_bits, is_signed ? top - 1 : 2 * top - 1), rest);
  return choose(l, inside, cut, rest);
}

/* ops_ftz_upper */
static value flush_upper(const lanes *l, value bits) {
  value magnitude = LLVMBuildAnd(l->b, bits, number(l, 64, UINT64_C(0x7fffffff00000000)), "");
  value small = LLVMBuildICmp(l->b, LLVMIntULT, magnitude, number(l, 64, UINT64_C(0x0010000000000000)), "");
  value sign = LLVMBuildAnd(l->b, bits, number(l, 64, UINT64_C(1) << 63), "");
  return choose(l, small, sign, LLVMBuildAnd(l->b, bits, number(l, 64, UINT64_C(0xffffffff00000000)), ""));
}

/* ops_rcp_upper, ops_rsqrt_upper */
static value upper_reciprocal(const lanes *l, value a, bool root) {
  value x = as_float(l, flush_upper(l, a), 64);
  if (root) x = call1(l, "llvm.sqrt", x, float_type(l, 64));
  value r = LLVMBuildFDiv(l->b, real(l, 64, UINT64_C(0x3ff0000000000000)), x, "");
  value nearest = LLVMBuildAdd(l->b, as_int(l, r, 64), number(l, 64, UINT64_C(0x80000000)), "");
  return choose(l, is_nan(l, r), number(l, 64, UINT64_C(0x7fffffff00000000)), flush_upper(l, nearest));
}

/* One value only: a vector of divisions is the handler's. */
static value divide(const lanes *l, value a, value b, bool remainder) {
  bool is_signed = kinds[l->n->src_kind[0]].class == 'S';
  value zero = number(l, 32, 0), none, result;
  if (kinds[l->n->src_kind[0]].bits == 64) return gen_divide64(l, a, b, is_signed, remainder);
  none = LLVMBuildICmp(l->b, LLVMIntEQ, b, zero, "");
  LLVMTypeRef wide = l->g->i64; /* the smallest number by -1 does not fit 32 bits */
  value x = is_signed ? LLVMBuildSExt(l->b, a, wide, "") : LLVMBuildZExt(l->b, a, wide, "");
  value y = choose(l, none, number(l, 32, 1), b);
  y = is_signed ? LLVMBuildSExt(l->b, y, wide, "") : LLVMBuildZExt(l->b, y, wide, "");
  if (remainder) result = is_signed ? LLVMBuildSRem(l->b, x, y, "") : LLVMBuildURem(l->b, x, y, "");
  else result = is_signed ? LLVMBuildSDiv(l->b, x, y, "") : LLVMBuildUDiv(l->b, x, y, "");
  result = LLVMBuildTrunc(l->b, result, l->g->i32, "");
  return choose(l, none, remainder ? a : number(l, 32, UINT32_MAX), result);
}

static value compare(const lanes *l, value a, value b) {
  static const LLVMIntPredicate unsigned_ints[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                                   LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
  static const LLVMIntPredicate signed_ints[] = {LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
  static const LLVMRealPredicate floats[] = {LLVMRealOEQ, LLVMRealONE, LLVMRealOLT, LLVMRealOLE, LLVMRealOGT,
                                             LLVMRealOGE, LLVMRealUEQ, LLVMRealUNE, LLVMRealULT, LLVMRealULE,
                                             LLVMRealUGT, LLVMRealUGE, LLVMRealORD, LLVMRealUNO};
  uint32_t which = l->n->op - NATIVE_CMP_EQ;
  char class = kinds[l->n->src_kind[0]].class;
  if (class == 'F' || class == 'H') return LLVMBuildFCmp(l->b, floats[which], a, b, "");
  return LLVMBuildICmp(l->b, class == 'S' ? signed_ints[which] : unsigned_ints[which], a, b, "");
}

/* ---- integers, floats ---- */

static value wide_product(const lanes *l, value a, value b) {
  bool is_signed = kinds[l->n->src_kind[0]].class == 'S';
  LLVMTypeRef wide = int_type(l, 64);
  value x = is_signed ? LLVMBuildSExt(l->b, a, wide, "") : LLVMBuildZExt(l->b, a, wide, "");
  value y = is_signed ? LLVMBuildSExt(l->b, b, wide, "") : LLVMBuildZExt(l->b, b, wide, "");
  return LLVMBuildMul(l->b, x, y, "");
}

/* Of vectors: lanes with even numbers and those with odd ones are multiplied apart, where they stand in 64 bits, and
 * the upper halves come together again. Extending all lanes would take twice as many registers and moves between
 * them. */
static value high_products(const lanes *l, value a, value b) {
  generator *g = l->g;
  LLVMTypeRef pairs = LLVMVectorType(g->i64, EXEC_LANES / 2), words = gen_vector_type(g->i32);
  bool is_signed = kinds[l->n->src_kind[0]].class == 'S';
  value of[2] = {a, b}, products[2], pick[EXEC_LANES];
  for (uint32_t n = 0; n < EXEC_LANES / 2; n++) pick[n] = gen_i64(g, 32);
  value half = LLVMConstVector(pick, EXEC_LANES / 2);
  for (uint32_t odd = 0; odd < 2; odd++) {
    value part[2];
    for (uint32_t s = 0; s < 2; s++) {
      part[s] = LLVMBuildBitCast(l->b, of[s], pairs, "");
      if (!odd) part[s] = LLVMBuildShl(l->b, part[s], half, "");
      part[s] = is_signed ? LLVMBuildAShr(l->b, part[s], half, "") : LLVMBuildLShr(l->b, part[s], half, "");
    }
    products[odd] = LLVMBuildBitCast(l->b, LLVMBuildMul(l->b, part[0], part[1], ""), words, "");
  }
  for (uint32_t n = 0; n < EXEC_LANES; n++) pick[n] = gen_i32(g, n % 2 ? EXEC_LANES + n : n + 1);
  return LLVMBuildShuffleVector(l->b, products[0], products[1], LLVMConstVector(pick, EXEC_LANES), "");
}

static value high_product(const lanes *l, value a, value b) {
  if (l->vector) return high_products(l, a, b);
  return LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, wide_product(l, a, b), number(l, 64, 32), ""), l->g->i32, "");
}

static value zero_count(const lanes *l, value a, uint32_t bits) {
  value arguments[2] = {a, LLVMConstInt(l->g->i1, 0, false)};
  LLVMTypeRef type = int_type(l, bits);
  return gen_intrinsic(l->g, "llvm.ctlz", &type, 1, arguments, 2);
}

/* The lane's result as the destination's cell; NULL: not an integer operation. */
static value integer_form(const lanes *l, const value *a) {
  const native_instr *n = l->n;
  LLVMBuilderRef b = l->b;
  uint32_t bits = kinds[n->src_kind[0]].bits, result_bits = bits;
  bool is_signed = kinds[n->src_kind[0]].class == 'S';
  value r;
  switch (n->op) {
  case NATIVE_ADD: r = LLVMBuildAdd(b, a[0], a[1], ""); break;
  case NATIVE_SUB: r = LLVMBuildSub(b, a[0], a[1], ""); break;
  case NATIVE_MUL: r = LLVMBuildMul(b, a[0], a[1], ""); break;
  case NATIVE_MUL_HIGH: r = high_product(l, a[0], a[1]); break;
  case NATIVE_MAD_HIGH: r = LLVMBuildAdd(b, high_product(l, a[0], a[1]), a[2], ""); break;
  case NATIVE_MUL_WIDE:
    r = wide_product(l, a[0], a[1]);
    result_bits = 64;
    break;
  case NATIVE_MAD: r = LLVMBuildAdd(b, LLVMBuildMul(b, a[0], a[1], ""), a[2], ""); break;
  case NATIVE_MAD_WIDE:
    r = LLVMBuildAdd(b, wide_product(l, a[0], a[1]), a[2], "");
    result_bits = 64;
    break;
  case NATIVE_DIV: r = divide(l, a[0], a[1], false); break;
  case NATIVE_REM: r = divide(l, a[0], a[1], true); break;
  case NATIVE_ABS:
    r = choose(l, LLVMBuildICmp(b, LLVMIntSLT, a[0], number(l, bits, 0), ""), LLVMBuildNeg(b, a[0], ""), a[0]);
    break;
  case NATIVE_NEG: r = LLVMBuildNeg(b, a[0], ""); break;
  case NATIVE_MIN: r = smaller(l, a[0], a[1], false); break;
  case NATIVE_MAX: r = smaller(l, a[0], a[1], true); break;
  case NATIVE_MOVE:
  case NATIVE_CONVERT: r = a[0]; break;
  case NATIVE_AND: r = LLVMBuildAnd(b, a[0], a[1], ""); break;
  case NATIVE_OR: r = LLVMBuildOr(b, a[0], a[1], ""); break;
  case NATIVE_XOR: r = LLVMBuildXor(b, a[0], a[1], ""); break;
  case NATIVE_NOT: r = LLVMBuildNot(b, a[0], ""); break;
  case NATIVE_SHL: r = shift(l, a[0], a[1], true); break;
  case NATIVE_SHR: r = shift(l, a[0], a[1], false); break;
  case NATIVE_FUNNEL_LEFT: r = funnel(l, a[0], a[1], a[2], true); break;
  case NATIVE_FUNNEL_RIGHT: r = funnel(l, a[0], a[1], a[2], false); break;
  case NATIVE_LOP3: r = lop3(l, a[0], a[1], a[2]); break;
  case NATIVE_POPC: r = call1(l, "llvm.ctpop", a[0], int_type(l, bits)); break;
  case NATIVE_CLZ: r = zero_count(l, a[0], bits); break;
  case NATIVE_BREV: r = call1(l, "llvm.bitreverse", a[0], int_type(l, bits)); break;
  case NATIVE_BFE_U: r = bit_field(l, a, false); break;
  case NATIVE_BFI: r = bit_field(l, a, true); break;
  case NATIVE_SELECT: r = choose(l, a[2], a[0], a[1]); break;
  case NATIVE_FNEG: r = LLVMBuildXor(b, as_int(l, a[0], bits), number(l, bits, UINT64_C(1) << (bits - 1)), ""); break;
  case NATIVE_FABS:
    if (bits == 64) return NULL; /* NaNs keep their sign */
    r = LLVMBuildAnd(b, as_int(l, a[0], bits), number(l, bits, 0x7fffffffu), "");
    break;
  case NATIVE_FLOAT_TO_S32: r = to_integer(l, a[0], 32, true); break;
  case NATIVE_FLOAT_TO_U32: r = to_integer(l, a[0], 32, false); break;
  case NATIVE_FLOAT_ROUND_S32: { /* as MXCSR counts: to nearest, down, up */
    static const char *const names[] = {"llvm.roundeven", "llvm.floor", "llvm.ceil", "llvm.trunc"};
    const char *name = names[n->aux >> OPS_AUX_SHIFT & 3];
    r = to_integer(l, call1(l, name, a[0], float_type(l, bits)), 32, true);
    break;
  }
  case NATIVE_FLOAT_TO_S64:
  case NATIVE_FLOAT_TO_U64:
    r = to_integer(l, a[0], 64, n->op == NATIVE_FLOAT_TO_S64);
    result_bits = 64;
    break;
  case NATIVE_RCP_UPPER: r = upper_reciprocal(l, a[0], false); break;
  case NATIVE_RSQRT_UPPER: r = upper_reciprocal(l, a[0], true); break;
  default:
    r = gen_more_integers(l, a, bits, is_signed);
    if (!r) return gen_halves(l, a);
    break;
  }
  return encode_int(l, r, result_bits, is_signed, n->dst_kind);
}

/* raw: the result before its NaNs were made canonical, if that is a step of its own. */
/* In the rounding that the instruction names: an operand of AVX-512's instructions. */
static value directed(const lanes *l, const char *name, const value *a, uint32_t count, uint32_t bits) {
  generator *g = l->g;
  uint32_t lanes_of_part = 512 / bits;
  value parts[8], pick[EXEC_LANES], mode = gen_i32(g, 8 | (l->n->aux >> OPS_AUX_SHIFT & 3));
  for (uint32_t from = 0, p = 0; from < EXEC_LANES; from += lanes_of_part, p++) {
    value arguments[4];
    for (uint32_t lane = 0; lane < lanes_of_part; lane++) pick[lane] = gen_i32(g, from + lane);
    for (uint32_t s = 0; s < count; s++)
      arguments[s] =
          LLVMBuildShuffleVector(l->b, a[s], LLVMGetUndef(LLVMTypeOf(a[s])), LLVMConstVector(pick, lanes_of_part), "");
    arguments[count] = mode;
    parts[p] = gen_intrinsic(g, name, NULL, 0, arguments, count + 1);
  }
  for (uint32_t lane = 0; lane < EXEC_LANES; lane++) pick[lane] = gen_i32(g, lane);
  for (uint32_t left = EXEC_LANES / lanes_of_part, size = 2 * lanes_of_part; left > 1; left /= 2, size *= 2)
    for (uint32_t p = 0; p < left / 2; p++)
      parts[p] = LLVMBuildShuffleVector(l->b, parts[2 * p], parts[2 * p + 1], LLVMConstVector(pick, size), "");
  return parts[0];
}

/* p * x + next, rounded twice. */
static value horner(const lanes *l, value p, value x, double next) {
  uint64_t pattern;
  memcpy(&pattern, &next, sizeof pattern);
  return LLVMBuildFAdd(l->b, LLVMBuildFMul(l->b, p, x, ""), real(l, 64, pattern), "");
}

static value number_f64(const lanes *l, double v) {
  uint64_t pattern;
  memcpy(&pattern, &v, sizeof pattern);
  return real(l, 64, pattern);
}

static value to_f64(const lanes *l, value a) { return LLVMBuildFPExt(l->b, a, float_type(l, 64), ""); }

/* ops_ex2 */
static value exponential(const lanes *l, value a) {
  static const double terms[] = {0x1.62c0223a5c824p-20, 0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,
                                 0x1.5d87fe78a6731p-10, 0x1.3b2ab6fba4e77p-7,  0x1.c6b08d704a0c0p-5,
                                 0x1.ebfbdff82c58fp-3,  0x1.62e42fefa39efp-1,  1.0};
  LLVMBuilderRef b = l->b;
  value above = LLVMBuildFCmp(b, LLVMRealOGT, a, real(l, 32, 0x43480000u), ""), /* 200 */
      below = LLVMBuildFCmp(b, LLVMRealOLT, a, real(l, 32, 0xc3480000u), "");
  value x = choose(l, above, number_f64(l, 200), to_f64(l, a)), shifter = number_f64(l, 0x1.8p52);
  x = choose(l, below, number_f64(l, -200), x);
  value shifted = LLVMBuildFAdd(b, x, shifter, ""), f = LLVMBuildFSub(b, x, LLVMBuildFSub(b, shifted, shifter, ""), ""),
        p = number_f64(l, 0x1.b5253d395e7c4p-24);
  for (size_t t = 0; t < sizeof terms / sizeof *terms; t++) p = horner(l, p, f, terms[t]);
  value scale = LLVMBuildShl(b, as_int(l, shifted, 64), number(l, 64, 52), "");
  scale = LLVMBuildAdd(b, scale, number(l, 64, UINT64_C(0x3ff0000000000000)), "");
  return LLVMBuildFPTrunc(b, LLVMBuildFMul(b, p, as_float(l, scale, 64), ""), float_type(l, 32), "");
}

/* ops_lg2 */
static value logarithm(const lanes *l, value a) {
  static const double terms[] = {0x1.0c9a84994022dp-2, 0x1.484b13d7c02a9p-2, 0x1.a61762a7aded9p-2,
                                 0x1.2776c50ef9bfep-1, 0x1.ec709dc3a03fdp-1, 0x1.71547652b82fep+1};
  LLVMBuilderRef b = l->b;
  value bits = as_int(l, to_f64(l, a), 64), one = number_f64(l, 1);
  value above = LLVMBuildSub(b, bits, number(l, 64, UINT64_C(0x3fe6a09e667f3bcd)), "");
  value high = LLVMBuildTrunc(b, LLVMBuildLShr(b, above, number(l, 64, 32), ""), int_type(l, 32), "");
  value e = LLVMBuildSIToFP(b, LLVMBuildAShr(b, high, number(l, 32, 20), ""), float_type(l, 64), "");
  value power = LLVMBuildAnd(b, above, number(l, 64, UINT64_C(0xfff0000000000000)), ""),
        m = as_float(l, LLVMBuildSub(b, bits, power, ""), 64);
  value t = LLVMBuildFDiv(b, LLVMBuildFSub(b, m, one, ""), LLVMBuildFAdd(b, m, one, ""), ""),
        s = LLVMBuildFMul(b, t, t, ""), p = number_f64(l, 0x1.c68f568d31760p-3);
  for (size_t n = 0; n < sizeof terms / sizeof *terms; n++) p = horner(l, p, s, terms[n]);
  value r = LLVMBuildFPTrunc(b, LLVMBuildFAdd(b, e, LLVMBuildFMul(b, p, t, ""), ""), float_type(l, 32), "");
  value zero = real(l, 32, 0), infinity = real(l, 32, 0x7f800000u);
  r = choose(l, LLVMBuildFCmp(b, LLVMRealOLT, a, infinity, ""), r, a);
  value rest =
      choose(l, LLVMBuildFCmp(b, LLVMRealOEQ, a, zero, ""), real(l, 32, 0xff800000u), real(l, 32, 0x7fffffffu));
  return choose(l, LLVMBuildFCmp(b, LLVMRealOGT, a, zero, ""), r, rest);
}

/* ops_div_approx */
static value divide_approx(const lanes *l, value a, value b) {
  value bits = as_int(l, b, 32), m = as_float(l, LLVMBuildAnd(l->b, bits, number(l, 32, 0x7fffffffu), ""), 32),
        sign = as_float(l, LLVMBuildAnd(l->b, bits, number(l, 32, 0x80000000u), ""), 32);
  value large = LLVMBuildAnd(l->b, LLVMBuildFCmp(l->b, LLVMRealOGT, m, real(l, 32, 0x7e800000u), ""), /* 2^126 */
                             LLVMBuildFCmp(l->b, LLVMRealOLT, m, real(l, 32, 0x7f800000u), ""), "");
  return choose(l, large, LLVMBuildFMul(l->b, a, sign, ""), LLVMBuildFDiv(l->b, a, b, ""));
}

static value directed_form(const lanes *l, const value *a, uint32_t bits) {
  bool wide = bits == 64;
  switch (l->n->op) {
  case NATIVE_FADD_DIRECTED:
    return directed(l, wide ? "llvm.x86.avx512.add.pd.512" : "llvm.x86.avx512.add.ps.512", a, 2, bits);
  case NATIVE_FSUB_DIRECTED:
    return directed(l, wide ? "llvm.x86.avx512.sub.pd.512" : "llvm.x86.avx512.sub.ps.512", a, 2, bits);
  case NATIVE_FMUL_DIRECTED:
    return directed(l, wide ? "llvm.x86.avx512.mul.pd.512" : "llvm.x86.avx512.mul.ps.512", a, 2, bits);
  case NATIVE_FDIV_DIRECTED:
    return directed(l, wide ? "llvm.x86.avx512.div.pd.512" : "llvm.x86.avx512.div.ps.512", a, 2, bits);
  default: return directed(l, wide ? "llvm.x86.avx512.vfmadd.pd.512" : "llvm.x86.avx512.vfmadd.ps.512", a, 3, bits);
  }
}

static value float_form(const lanes *l, const value *a, value *raw) {
  const native_instr *n = l->n;
  LLVMBuilderRef b = l->b;
  uint32_t bits = kinds[n->src_kind[0]].bits, count = 2;
  value r;
  switch (n->op) {
  case NATIVE_FADD: r = LLVMBuildFAdd(b, a[0], a[1], ""); break;
  case NATIVE_FSUB: r = LLVMBuildFSub(b, a[0], a[1], ""); break;
  case NATIVE_FMUL: r = LLVMBuildFMul(b, a[0], a[1], ""); break;
  case NATIVE_FDIV: r = LLVMBuildFDiv(b, a[0], a[1], ""); break;
  case NATIVE_FMA: {
    LLVMTypeRef type = float_type(l, bits);
    value arguments[3] = {a[0], a[1], a[2]};
    r = gen_intrinsic(l->g, "llvm.fma", &type, 1, arguments, 3);
    count = 3;
    break;
  }
  case NATIVE_FADD_DIRECTED:
  case NATIVE_FSUB_DIRECTED:
  case NATIVE_FMUL_DIRECTED:
  case NATIVE_FDIV_DIRECTED:
  case NATIVE_FMA_DIRECTED:
    r = directed_form(l, a, bits);
    count = n->op == NATIVE_FMA_DIRECTED ? 3 : 2;
    break;
  case NATIVE_FDIV_APPROX: r = divide_approx(l, a[0], a[1]); break;
  case NATIVE_FRSQRT:
    r = LLVMBuildFDiv(b, real(l, 32, 0x3f800000u), call1(l, "llvm.sqrt", a[0], float_type(l, 32)), "");
    break;
  case NATIVE_FEX2: r = exponential(l, a[0]); break;
  case NATIVE_FLG2: r = logarithm(l, a[0]); break;
  case NATIVE_FRCP:
    r = LLVMBuildFDiv(b, real(l, bits, bits == 64 ? UINT64_C(0x3ff0000000000000) : 0x3f800000u), a[0], "");
    count = 1;
    break;
  case NATIVE_FSQRT:
    r = call1(l, "llvm.sqrt", a[0], float_type(l, bits));
    count = 1;
    break;
  case NATIVE_FMIN: r = smaller_float(l, a[0], a[1], false); break;
  case NATIVE_FMAX: r = smaller_float(l, a[0], a[1], true); break;
  case NATIVE_FABS:
    r = choose(l, is_nan(l, a[0]), a[0], call1(l, "llvm.fabs", a[0], float_type(l, bits)));
    return encode_float(l, r, n->dst_kind);
  case NATIVE_FNEAREST:
  case NATIVE_FCUT:
  case NATIVE_FDOWN:
  case NATIVE_FUP: {
    static const char *const names[] = {"llvm.roundeven", "llvm.trunc", "llvm.floor", "llvm.ceil"};
    r = call1(l, names[n->op - NATIVE_FNEAREST], a[0], float_type(l, bits));
    count = 1;
    break;
  }
  case NATIVE_FCOPY:
    r = a[0];
    count = 1;
    break;
  case NATIVE_TO_FLOAT: {
    LLVMTypeRef type = float_type(l, kinds[n->dst_kind].bits);
    r = kinds[n->src_kind[0]].class == 'S' ? LLVMBuildSIToFP(b, a[0], type, "") : LLVMBuildUIToFP(b, a[0], type, "");
    return encode_float(l, r, n->dst_kind);
  }
  case NATIVE_FLOAT_EXTEND: return encode_float(l, LLVMBuildFPExt(b, a[0], float_type(l, 64), ""), n->dst_kind);
  case NATIVE_FLOAT_TRUNCATE: return encode_float(l, LLVMBuildFPTrunc(b, a[0], float_type(l, 32), ""), n->dst_kind);
  default: return NULL;
  }
  if (n->dst_kind == NATIVE_K_f32c) *raw = as_int(l, r, 32);
  if (n->dst_kind == NATIVE_K_f32z) *raw = as_int(l, flush(l, r), 32);
  return finish_float(l, r, a, count);
}

/* ---- predicates: i1 for all lanes together, or an i32 with a bit for each ---- */

static value combine(generator *g, uint32_t how, value a, value b) {
  if (how == OPS_AUX_AND) return LLVMBuildAnd(g->b, a, b, "");
  return how == OPS_AUX_OR ? LLVMBuildOr(g->b, a, b, "") : LLVMBuildXor(g->b, a, b, "");
}

static value predicate(generator *g, const native_instr *n, uint32_t s, bool vector) {
  value v = vector ? gen_vector(g, n->operands + s) : gen_scalar(g, n->operands + s);
  return n->aux & OPS_AUX_NEGATED(s) ? LLVMBuildNot(g->b, v, "") : v;
}

static value predicate_form(generator *g, const native_instr *n, bool vector) {
  value a = predicate(g, n, 0, vector), b = n->op >= NATIVE_PRED_AND ? predicate(g, n, 1, vector) : NULL;
  switch (n->op) {
  case NATIVE_PRED_MOVE: return a;
  case NATIVE_PRED_NOT: return LLVMBuildNot(g->b, a, "");
  case NATIVE_PRED_AND: return LLVMBuildAnd(g->b, a, b, "");
  case NATIVE_PRED_OR: return LLVMBuildOr(g->b, a, b, "");
  default: return LLVMBuildXor(g->b, a, b, "");
  }
}

/* ---- putting results ---- */

/* for all lanes, or a bit for each; none of the two: there is no guard */
typedef struct guard {
  value one, bits;
} guard;

static guard read_guard(generator *g, const native_instr *n) {
  if (n->guard == NATIVE_NONE) return (guard){NULL, NULL};
  uint32_t k = n->operands + n->read_count - 1;
  value one = gen_scalar(g, k), either = one ? one : gen_vector(g, k);
  if (n->guard_negated) either = LLVMBuildNot(g->b, either, "");
  return one ? (guard){either, NULL} : (guard){NULL, either};
}

/* Where the guard is false the old value stays. w: which destination; its old value is read as an operand behind the
 * sources. */
static void put_guarded(generator *g, const native_instr *n, uint32_t w, value v, bool vector, guard guard) {
  uint32_t k = n->operands + n->read_count + w;
  if (n->guard == NATIVE_NONE) {
    gen_put(g, k, vector ? NULL : v, vector ? v : NULL);
    return;
  }
  value old = gen_scalar(g, k);
  bool is_predicate = g->plan->operands[k].bytes == 0;
  if (!vector && guard.one && old) {
    gen_put(g, k, LLVMBuildSelect(g->b, guard.one, v, old, ""), NULL);
    return;
  }
  if (!vector) v = is_predicate ? LLVMBuildSExt(g->b, v, g->i32, "") : gen_splat(g, v);
  value bits = guard.bits ? guard.bits : LLVMBuildSExt(g->b, guard.one, g->i32, ""), before = gen_vector(g, k);
  if (is_predicate)
    v = LLVMBuildOr(g->b, LLVMBuildAnd(g->b, v, bits, ""), LLVMBuildAnd(g->b, before, LLVMBuildNot(g->b, bits, ""), ""),
                    "");
  else v = LLVMBuildSelect(g->b, gen_lanes(g, bits), v, before, "");
  gen_put(g, k, NULL, v);
}

static void put(generator *g, const native_instr *n, uint32_t w, value v, bool vector) {
  put_guarded(g, n, w, v, vector, read_guard(g, n));
}

static void compare_form(generator *g, const native_instr *n, const lanes *l, const value *a) {
  bool vector = l->vector;
  value compared = compare(l, a[0], a[1]);
  uint32_t how = n->aux & OPS_AUX_BOOLEAN;
  bool mixed = how && !vector && !gen_scalar(g, n->operands + 2);
  if (vector) compared = gen_bits(g, compared);
  else if (mixed) compared = LLVMBuildSExt(g->b, compared, g->i32, "");
  vector = vector || mixed;
  value second = LLVMBuildNot(g->b, compared, ""), c = how ? predicate(g, n, 2, vector) : NULL;
  if (how) {
    compared = combine(g, how, compared, c);
    second = combine(g, how, second, c);
  }
  guard guard = read_guard(g, n); /* it may be one of the two results */
  put_guarded(g, n, 0, compared, vector, guard);
  if (n->aux & OPS_AUX_SECOND) put_guarded(g, n, 1, second, vector, guard);
}

/* ---- moves ---- */

static value special(generator *g, const native_instr *n) {
  const native_layout *at = g->at;
  uint32_t sreg = n->aux;
  if (sreg >= PTX_SREG_NTID_X && sreg <= PTX_SREG_NTID_Z)
    return gen_field(g, g->i32, gen_field(g, g->pointer, g->warp, at->warp_launch),
                     at->launch_block + 4 * (sreg - PTX_SREG_NTID_X));
  if (sreg - PTX_SREG_TID_X <= PTX_SREG_TID_Z - PTX_SREG_TID_X) /* of lane 0 */
    return gen_field(g, g->i32, g->warp, at->warp_tid + EXEC_SLOT * (sreg - PTX_SREG_TID_X));
  if (sreg >= PTX_SREG_NCTAID_X && sreg <= PTX_SREG_NCTAID_Z)
    return gen_field(g, g->i32, gen_field(g, g->pointer, g->warp, at->warp_launch),
                     at->launch_grid + 4 * (sreg - PTX_SREG_NCTAID_X));
  return gen_field(g, g->i32, gen_field(g, g->pointer, g->warp, at->warp_block),
                   at->block_ctaid + 4 * (sreg - PTX_SREG_CTAID_X));
}

static bool special_form(generator *g, const native_instr *n) {
  if (plan_uniform_register(g->rows, n->aux)) {
    put(g, n, 0, special(g, n), false);
    return true;
  }
  if (n->aux - PTX_SREG_TID_X <= PTX_SREG_TID_Z - PTX_SREG_TID_X) {
    uint32_t offset = g->at->warp_tid + EXEC_SLOT * (n->aux - PTX_SREG_TID_X);
    put(g, n, 0, gen_load(g, gen_vector_type(g->i32), gen_at(g, g->warp, offset), 64), true);
    return true;
  }
  if (n->aux != PTX_SREG_LANEID) return false;
  value number[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) number[l] = gen_i32(g, l);
  put(g, n, 0, LLVMConstVector(number, EXEC_LANES), true);
  return true;
}

/* The second and third source are constants (emit_check.c). */
static bool shuffle_form(generator *g, const native_instr *n) {
  const native_operand *sources = &g->plan->operands[n->operands];
  uint32_t lane[EXEC_LANES],
      valid = shuffle_lanes((exec_sync_mode)n->aux, (uint32_t)sources[1].value, (uint32_t)sources[2].value, lane);
  value one = gen_scalar(g, n->operands), pick[EXEC_LANES];
  for (uint32_t l = 0; l < EXEC_LANES; l++) pick[l] = gen_i32(g, lane[l]);
  if (one) {
    put(g, n, 0, one, false);
  } else {
    value from = gen_vector(g, n->operands);
    put(g, n, 0, LLVMBuildShuffleVector(g->b, from, from, LLVMConstVector(pick, EXEC_LANES), ""), true);
  }
  if (n->write_count > 1) put(g, n, 1, gen_i32(g, valid), true);
  return true;
}

static bool move_form(generator *g, const native_instr *n, const lanes *l, const value *a) {
  LLVMBuilderRef b = g->b;
  switch (n->op) {
  case NATIVE_ADD_IMMEDIATE: {
    uint32_t bits = g->plan->operands[n->operands].bytes * 8u;
    put(g, n, 0,
        LLVMBuildAdd(b, a[0], number(l, bits, (uint64_t)n->immediate & (bits == 64 ? UINT64_MAX : UINT32_MAX)), ""),
        l->vector);
    return true;
  }
  case NATIVE_NARROW: put(g, n, 0, LLVMBuildTrunc(b, a[0], int_type(l, 32), ""), l->vector); return true;
  case NATIVE_WIDEN_ZERO: put(g, n, 0, LLVMBuildZExt(b, a[0], int_type(l, 64), ""), l->vector); return true;
  case NATIVE_WIDEN_SIGN: put(g, n, 0, LLVMBuildSExt(b, a[0], int_type(l, 64), ""), l->vector); return true;
  case NATIVE_PACK32: {
    value low = LLVMBuildZExt(b, a[0], int_type(l, 64), ""), high = LLVMBuildZExt(b, a[1], int_type(l, 64), "");
    put(g, n, 0, LLVMBuildOr(b, low, LLVMBuildShl(b, high, number(l, 64, 32), ""), ""), l->vector);
    return true;
  }
  case NATIVE_UNPACK32: {
    value low = LLVMBuildTrunc(b, a[0], int_type(l, 32), "");
    value high = LLVMBuildTrunc(b, LLVMBuildLShr(b, a[0], number(l, 64, 32), ""), int_type(l, 32), "");
    put(g, n, 0, low, l->vector);
    put(g, n, 1, high, l->vector);
    return true;
  }
  default: return false;
  }
}

/* ---- all together ---- */

static uint32_t sources_of(const native_instr *n) {
  if (n->op == NATIVE_PACK32) return 2;
  if (n->op >= NATIVE_ADD_IMMEDIATE && n->op <= NATIVE_WIDEN_SIGN) return 1;
  uint32_t count = 0;
  while (count < 4 && n->src_kind[count] != NATIVE_K_none) count++;
  if (n->op >= NATIVE_CMP_EQ && n->op <= NATIVE_CMP_NAN) return 2; /* the third is a predicate of its own */
  return count;
}

static bool all_scalar(generator *g, const native_instr *n, uint32_t count) {
  for (uint32_t s = 0; s < count; s++)
    if (!gen_scalar(g, n->operands + s)) return false;
  return true;
}

/* Do the bits of a NaN of 32 bits among its sources not matter? Results that are NaNs are made canonical in their
 * turn. */
static bool any_nan_will_do(const native_instr *n) {
  bool computes = n->op >= NATIVE_FADD && n->op <= NATIVE_FSQRT,
       compares = n->op >= NATIVE_CMP_EQ && n->op <= NATIVE_CMP_NAN;
  if (kinds[n->src_kind[0]].class != 'F') return false;
  return computes || compares || n->op == NATIVE_FMIN || n->op == NATIVE_FMAX ||
         (n->op >= NATIVE_FLOAT_TO_S32 && n->op <= NATIVE_FLOAT_TO_U64) ||
         (n->op >= NATIVE_FNEAREST && n->op <= NATIVE_FCOPY);
}

bool gen_form(generator *g, const native_instr *n) {
  if (gen_affine_form(g, n)) return true;
  if (n->op == NATIVE_SREG) return special_form(g, n);
  if (n->op == NATIVE_SHUFFLE) return shuffle_form(g, n);
  uint32_t count = sources_of(n);
  bool has_mode = plan_has_mode(n), vector = has_mode || !all_scalar(g, n, count);
  if (has_mode && (!g->wide_vectors || g->emulated)) return false;
  if (n->op >= NATIVE_PRED_MOVE && n->op <= NATIVE_PRED_XOR) {
    put(g, n, 0, predicate_form(g, n, vector), vector);
    return true;
  }
  if (vector && (n->op == NATIVE_DIV || n->op == NATIVE_REM)) return false;
  if (vector && !g->wide_vectors && (n->op == NATIVE_FLOAT_TO_S64 || n->op == NATIVE_FLOAT_TO_U64)) return false;
  lanes l = {g, g->b, vector, n};
  value a[4] = {NULL};
  for (uint32_t s = 0; s < count; s++) {
    if (n->src_kind[s] == NATIVE_K_pred) {
      a[s] = predicate(g, n, s, vector && !gen_scalar(g, n->operands + s)); /* one choice for all lanes stays one */
      if (vector && !gen_scalar(g, n->operands + s)) a[s] = gen_lanes(g, a[s]);
    } else {
      value v = any_nan_will_do(n) ? gen_raw(g, n->operands + s, vector) : NULL;
      if (!v) v = vector ? gen_vector(g, n->operands + s) : gen_scalar(g, n->operands + s);
      a[s] = decode(&l, v, n->src_kind[s]);
    }
  }
  if (n->op >= NATIVE_CMP_EQ && n->op <= NATIVE_CMP_NAN) {
    compare_form(g, n, &l, a);
    return true;
  }
  if (move_form(g, n, &l, a)) return true;
  value r = integer_form(&l, a), raw = NULL;
  if (!r) r = float_form(&l, a, &raw);
  if (n->op == NATIVE_MOVE) raw = gen_raw(g, n->operands, vector);
  FF_ASSERT(r); /* every operation of compile/forms.def is one of the above */
  put(g, n, 0, r, vector);
  if (raw && n->guard == NATIVE_NONE) gen_put_raw(g, n->operands + n->read_count, raw);
  return true;
}
