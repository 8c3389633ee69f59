/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16, one in each cell or two: the bits of exec/instructions/ops_half.isa.c. Both halves of a pair are lanes
 * of vectors of twice the size.
 *
 * The host widens f16 exactly and narrows to the nearest even one, as ops_of_f16 and ops_f16_rn do; only NaNs are made
 * 0x7fff here. What has to be rounded once is rounded to odd before. */
#include "compile/generator/lanes.h"

#include "exec/core.h"

typedef struct halves {
  const lanes *l;
  LLVMBuilderRef b;
  uint32_t count; /* of values in all */
  bool pairs, bf16;
} halves;

static LLVMTypeRef many(const halves *h, LLVMTypeRef type) {
  return h->count == 1 ? type : LLVMVectorType(type, h->count);
}
static LLVMTypeRef i16_of(const halves *h) { return LLVMInt16TypeInContext(LLVMGetTypeContext(h->l->g->i32)); }
static LLVMTypeRef f16_of(const halves *h) { return LLVMHalfTypeInContext(LLVMGetTypeContext(h->l->g->i32)); }

static value constant(const halves *h, LLVMTypeRef type, uint64_t v) {
  value one = LLVMConstInt(type, v, false), all[2 * EXEC_LANES];
  for (uint32_t n = 0; n < h->count; n++) all[n] = one;
  return h->count == 1 ? one : LLVMConstVector(all, h->count);
}

/* ---- cells, 16 bits, f32 ---- */

static value of_cells(const halves *h, value cells) {
  LLVMTypeRef type = many(h, i16_of(h));
  return h->pairs ? LLVMBuildBitCast(h->b, cells, type, "") : LLVMBuildTrunc(h->b, cells, type, "");
}

static value to_cells(const halves *h, value v) {
  LLVMTypeRef type = int_type(h->l, 32);
  return h->pairs ? LLVMBuildBitCast(h->b, v, type, "") : LLVMBuildZExt(h->b, v, type, "");
}

static value widen(const halves *h, value v) {
  LLVMTypeRef f32 = many(h, h->l->g->f32);
  if (!h->bf16) return LLVMBuildFPExt(h->b, LLVMBuildBitCast(h->b, v, many(h, f16_of(h)), ""), f32, "");
  v = LLVMBuildZExt(h->b, v, many(h, h->l->g->i32), "");
  return LLVMBuildBitCast(h->b, LLVMBuildShl(h->b, v, constant(h, h->l->g->i32, 16), ""), f32, "");
}

static value bf16_of_f32(const halves *h, value v) { /* ops_bf16_rn but for NaNs */
  LLVMTypeRef i32 = h->l->g->i32;
  value bits = LLVMBuildBitCast(h->b, v, many(h, i32), ""), half = constant(h, i32, 16);
  value m = LLVMBuildAnd(h->b, bits, constant(h, i32, 0x7fffffff), ""),
        odd = LLVMBuildAnd(h->b, LLVMBuildLShr(h->b, m, half, ""), constant(h, i32, 1), "");
  value finite = LLVMBuildAdd(h->b, LLVMBuildAdd(h->b, m, constant(h, i32, 0x7fff), ""), odd, "");
  value large = LLVMBuildICmp(h->b, LLVMIntUGE, m, constant(h, i32, 0x7f800000), "");
  value r = LLVMBuildSelect(h->b, large, constant(h, i32, 0x7f80), LLVMBuildLShr(h->b, finite, half, ""), "");
  value sign = LLVMBuildAnd(h->b, LLVMBuildLShr(h->b, bits, half, ""), constant(h, i32, 0x8000), "");
  return LLVMBuildTrunc(h->b, LLVMBuildOr(h->b, r, sign, ""), many(h, i16_of(h)), "");
}

static value narrow(const halves *h, value v) {
  LLVMTypeRef i16 = i16_of(h);
  value nan = LLVMBuildFCmp(h->b, LLVMRealUNO, v, v, ""), r;
  if (h->bf16) r = bf16_of_f32(h, v);
  else r = LLVMBuildBitCast(h->b, LLVMBuildFPTrunc(h->b, v, many(h, f16_of(h)), ""), many(h, i16), "");
  return LLVMBuildSelect(h->b, nan, constant(h, i16, 0x7fff), r, "");
}

value gen_half_as_f32(const lanes *l, value cell, bool bf16) {
  const halves h = {l, l->b, l->vector ? EXEC_LANES : 1, false, bf16};
  value v = widen(&h, of_cells(&h, cell));
  return choose(l, is_nan(l, v), real(l, 32, 0x7fffffff), v);
}

/* ---- rounding to odd ---- */

/* ops_odd_sum of f64, and the same of f32; p + c with its last bit set if that lost anything. */
static value odd_sum(const halves *h, value p, value c, bool wide) {
  LLVMBuilderRef b = h->b;
  LLVMTypeRef integer = wide ? h->l->g->i64 : h->l->g->i32, real = wide ? h->l->g->f64 : h->l->g->f32;
  value zero = LLVMConstNull(many(h, real)), s = LLVMBuildFAdd(b, p, c, ""), back = LLVMBuildFSub(b, s, p, "");
  value lost =
      LLVMBuildFAdd(b, LLVMBuildFSub(b, p, LLVMBuildFSub(b, s, back, ""), ""), LLVMBuildFSub(b, c, back, ""), "");
  value more = LLVMBuildFCmp(b, LLVMRealOGT, lost, zero, ""), up = LLVMBuildFCmp(b, LLVMRealOGT, s, zero, "");
  value bits = LLVMBuildBitCast(b, s, many(h, integer), ""), one = constant(h, integer, 1),
        last = LLVMBuildAnd(b, bits, one, "");
  value step = LLVMBuildSelect(b, LLVMBuildXor(b, more, up, ""), constant(h, integer, UINT64_MAX), one, "");
  value any = LLVMBuildFCmp(b, LLVMRealONE, lost, zero, ""), none = LLVMConstNull(many(h, integer));
  any = LLVMBuildAnd(b, any, LLVMBuildICmp(b, LLVMIntEQ, last, none, ""), "");
  bits = LLVMBuildAdd(b, bits, LLVMBuildSelect(b, any, step, none, ""), "");
  return LLVMBuildBitCast(b, bits, many(h, real), "");
}

static value odd32(const halves *h, value x) { /* ops_odd32 */
  LLVMBuilderRef b = h->b;
  LLVMTypeRef i32 = many(h, h->l->g->i32), f32 = many(h, h->l->g->f32), f64 = many(h, h->l->g->f64);
  value r = LLVMBuildFPTrunc(b, x, f32, ""), back = LLVMBuildFPExt(b, r, f64, "");
  value m = gen_intrinsic(h->l->g, "llvm.fabs", &f64, 1, &x, 1),
        n = gen_intrinsic(h->l->g, "llvm.fabs", &f64, 1, &back, 1);
  value above = LLVMBuildZExt(b, LLVMBuildFCmp(b, LLVMRealOGT, n, m, ""), i32, ""),
        other = LLVMBuildZExt(b, LLVMBuildFCmp(b, LLVMRealONE, n, m, ""), i32, "");
  value bits = LLVMBuildSub(b, LLVMBuildBitCast(b, r, i32, ""), above, "");
  return LLVMBuildBitCast(b, LLVMBuildOr(b, bits, other, ""), f32, "");
}

/* ---- arithmetic ---- */

static value as_f64(const halves *h, value v) { return LLVMBuildFPExt(h->b, v, many(h, h->l->g->f64), ""); }

static value product(const halves *h, const value *v) {
  if (!h->bf16) return LLVMBuildFMul(h->b, v[0], v[1], "");
  return odd32(h, LLVMBuildFMul(h->b, as_f64(h, v[0]), as_f64(h, v[1]), ""));
}

static value product_and_sum(const halves *h, const value *v) {
  if (!h->bf16) return odd_sum(h, LLVMBuildFMul(h->b, v[0], v[1], ""), v[2], false);
  value p = LLVMBuildFMul(h->b, as_f64(h, v[0]), as_f64(h, v[1]), "");
  return odd32(h, odd_sum(h, p, as_f64(h, v[2]), true));
}

static value arithmetic(const halves *h, const value *a, uint32_t count) {
  value v[3] = {NULL}, r;
  for (uint32_t s = 0; s < count; s++) v[s] = widen(h, of_cells(h, a[s]));
  switch (h->l->n->op) {
  case NATIVE_HALF_ADD: r = LLVMBuildFAdd(h->b, v[0], v[1], ""); break;
  case NATIVE_HALF_SUB: r = LLVMBuildFSub(h->b, v[0], v[1], ""); break;
  case NATIVE_HALF_MUL: r = product(h, v); break;
  default: r = product_and_sum(h, v); break;
  }
  return to_cells(h, narrow(h, r));
}

static value pair(const halves *h, const value *a) {
  const halves one = {h->l, h->b, h->count / 2, false, h->bf16};
  value high = to_cells(&one, narrow(&one, a[0])), low = to_cells(&one, narrow(&one, a[1]));
  return LLVMBuildOr(h->b, low, LLVMBuildShl(h->b, high, number(h->l, 32, 16), ""), "");
}

value gen_halves(const lanes *l, const value *a) {
  uint8_t kind = l->n->dst_kind;
  bool pairs = kind == NATIVE_K_f16x2 || kind == NATIVE_K_bf16x2;
  const halves h = {.l = l,
                    .b = l->b,
                    .count = (l->vector ? EXEC_LANES : 1) * (pairs ? 2 : 1),
                    .pairs = pairs,
                    .bf16 = kind == NATIVE_K_bf16 || kind == NATIVE_K_bf16x2};
  switch (l->n->op) {
  case NATIVE_HALF_ADD:
  case NATIVE_HALF_SUB:
  case NATIVE_HALF_MUL: return arithmetic(&h, a, 2);
  case NATIVE_HALF_FMA: return arithmetic(&h, a, 3);
  case NATIVE_HALF_NEG: return LLVMBuildXor(l->b, a[0], number(l, 32, pairs ? 0x80008000 : 0x8000), "");
  case NATIVE_HALF_ABS: return LLVMBuildAnd(l->b, a[0], number(l, 32, pairs ? 0x7fff7fff : 0x7fff), "");
  case NATIVE_HALF_NARROW: return to_cells(&h, narrow(&h, a[0]));
  case NATIVE_HALF_PAIR: return pair(&h, a);
  default: return NULL;
  }
}
