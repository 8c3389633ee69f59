/* SPDX-License-Identifier: Apache-2.0 */
/* Computing instructions under construction, for vectors of 32 lanes or for one value, and the small steps that
 * forms.c, integers.c and halves.c share. */
#ifndef FF_COMPILE_LANES_H
#define FF_COMPILE_LANES_H

#include "compile/generator/generate.h"

typedef struct lanes { /* one form under construction */
  generator *g;
  LLVMBuilderRef b;
  bool vector;
  const native_instr *n;
} lanes;

static inline LLVMTypeRef typed(const lanes *l, LLVMTypeRef type) { return l->vector ? gen_vector_type(type) : type; }
static inline LLVMTypeRef int_type(const lanes *l, uint32_t bits) {
  return typed(l, bits == 64 ? l->g->i64 : bits == 32 ? l->g->i32 : l->g->i1);
}
static inline LLVMTypeRef float_type(const lanes *l, uint32_t bits) {
  return typed(l, bits == 64 ? l->g->f64 : l->g->f32);
}

static inline value number(const lanes *l, uint32_t bits, uint64_t v) {
  value one = LLVMConstInt(bits == 64 ? l->g->i64 : l->g->i32, v, false);
  return l->vector ? gen_splat(l->g, one) : one;
}
static inline value real(const lanes *l, uint32_t bits, uint64_t pattern) {
  return LLVMConstBitCast(number(l, bits, pattern), float_type(l, bits));
}
static inline value as_float(const lanes *l, value v, uint32_t bits) {
  return LLVMBuildBitCast(l->b, v, float_type(l, bits), "");
}
static inline value as_int(const lanes *l, value v, uint32_t bits) {
  return LLVMBuildBitCast(l->b, v, int_type(l, bits), "");
}
static inline value choose(const lanes *l, value condition, value yes, value no) {
  return LLVMBuildSelect(l->b, condition, yes, no, "");
}
static inline value call1(const lanes *l, const char *name, value a, LLVMTypeRef type) {
  return gen_intrinsic(l->g, name, &type, 1, &a, 1);
}
static inline value is_nan(const lanes *l, value v) { return LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, ""); }

/* A lane's result as the destination's cell: integers.c, halves.c. NULL: the operation is none of theirs. a: what
 * the kinds make of the sources; of halves as values of arithmetic, and of pairs, the cells. */
value gen_more_integers(const lanes *l, const value *a, uint32_t bits, bool is_signed);
value gen_halves(const lanes *l, const value *a);
/* One value only: of 64 bits, as the handlers divide. */
value gen_divide64(const lanes *l, value a, value b, bool is_signed, bool remainder);
/* An f16 or bf16 in the low half of a cell as an f32, whose NaN is the canonical one. */
value gen_half_as_f32(const lanes *l, value cell, bool bf16);

#endif
