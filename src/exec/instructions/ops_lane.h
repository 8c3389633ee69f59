/* SPDX-License-Identifier: Apache-2.0 */
/* How a computing instruction is written: one expression for one lane, from which both forms of the handler are made.
 *
 * A *kind* says how one operand's cells are read and written:
 *   CELL  what stands in the slot (uint32_t, uint64_t, float, double)
 *   LANE  what the expression sees
 *   DEC   cell -> lane (8- and 16-bit values are kept zero-extended: signed ones are extended here)
 *   ENC   lane -> cell
 *   TYPE  the ptx_type that the decoder uses to lay the operand out and to convert immediates
 *
 * A handler touches its destination's and its sources' slots only; form `some` writes the lanes of the mask only. A
 * destination may be the same slot as a source, but two slots do not overlap in part (decode/layout.c checks that), so
 * the loops have no dependence between lanes: OPS_LOOP tells the compiler. */
#ifndef FF_EXEC_OPS_LANE_H
#define FF_EXEC_OPS_LANE_H

#include <string.h>

#include "exec/instructions/ops_table.h"

#define OPS_JOIN_(a, b) a##_##b
#define OPS_JOIN(a, b) OPS_JOIN_(a, b)
#define EXEC_NAME(x) OPS_JOIN(x, EXEC_ISA) /* add -> add_avx2 */

#define OPS_INLINE static inline __attribute__((always_inline, unused))
#define OPS_CHOSEN static __attribute__((unused))

#if defined(__clang__)
#define OPS_LOOP _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < 32; l++)
#else
#define OPS_LOOP _Pragma("GCC ivdep") for (int l = 0; l < 32; l++)
#endif

#define OPS_SLOT(type, offset) ((type *)__builtin_assume_aligned(exec_operand(w, (offset)), 64))

/* Sign extension by shifts: vectorises better than a cast to a narrow type. */
#define OPS_SIGN16(x) ((int32_t)((uint32_t)(x) << 16) >> 16)
#define OPS_SIGN8(x) ((int32_t)((uint32_t)(x) << 24) >> 24)

#define CELL_u32 uint32_t
#define LANE_u32 uint32_t
#define DEC_u32(x) (x)
#define ENC_u32(x) ((uint32_t)(x))
#define TYPE_u32 PTX_U32

#define CELL_s32 uint32_t
#define LANE_s32 int32_t
#define DEC_s32(x) ((int32_t)(x))
#define ENC_s32(x) ((uint32_t)(x))
#define TYPE_s32 PTX_S32

#define CELL_u64 uint64_t
#define LANE_u64 uint64_t
#define DEC_u64(x) (x)
#define ENC_u64(x) ((uint64_t)(x))
#define TYPE_u64 PTX_U64

#define CELL_s64 uint64_t
#define LANE_s64 int64_t
#define DEC_s64(x) ((int64_t)(x))
#define ENC_s64(x) ((uint64_t)(x))
#define TYPE_s64 PTX_S64

#define CELL_u16 uint32_t
#define LANE_u16 uint32_t
#define DEC_u16(x) (x)
#define ENC_u16(x) ((uint32_t)(x)&0xffffu)
#define TYPE_u16 PTX_U16

#define CELL_s16 uint32_t
#define LANE_s16 int32_t
#define DEC_s16(x) OPS_SIGN16(x)
#define ENC_s16(x) ((uint32_t)(x)&0xffffu)
#define TYPE_s16 PTX_S16

#define CELL_f32 float
#define LANE_f32 float
#define DEC_f32(x) (x)
#define ENC_f32(x) (x)
#define TYPE_f32 PTX_F32

/* In rows of handlers that an FNX maker made: a predicate (one word for all lanes), and cells of untyped bits. */
#define TYPE_pred PTX_PRED
#define TYPE_b32 PTX_B32
#define TYPE_b64 PTX_B64

/* f32 results: canonical NaN; .ftz; .sat; both (ops_math.h). As a source only .ftz matters. */
#define CELL_f32c float
#define LANE_f32c float
#define ENC_f32c(x) ops_canon32(x)
#define TYPE_f32c PTX_F32
#define CELL_f32z float
#define LANE_f32z float
#define DEC_f32z(x) ops_ftz32(x)
#define ENC_f32z(x) ops_ftz32(ops_canon32(x))
#define TYPE_f32z PTX_F32
#define CELL_f32s float
#define LANE_f32s float
#define ENC_f32s(x) ops_sat32(x)
#define TYPE_f32s PTX_F32
#define CELL_f32zs float
#define LANE_f32zs float
#define ENC_f32zs(x) ops_sat32(ops_ftz32(x))
#define TYPE_f32zs PTX_F32

/* The bits of an f32 or f64 (moves, sign changes); immediates are still numbers of that type. */
#define CELL_f32b uint32_t
#define LANE_f32b uint32_t
#define DEC_f32b(x) (x)
#define ENC_f32b(x) (x)
#define TYPE_f32b PTX_F32
#define CELL_f64b uint64_t
#define LANE_f64b uint64_t
#define DEC_f64b(x) (x)
#define ENC_f64b(x) (x)
#define TYPE_f64b PTX_F64

#define CELL_f64 double
#define LANE_f64 double
#define DEC_f64(x) (x)
#define ENC_f64(x) (x)
#define TYPE_f64 PTX_F64

/* f16, bf16 and packed values travel as their bits. */
#define CELL_f16 uint32_t
#define LANE_f16 uint32_t
#define DEC_f16(x) (x)
#define ENC_f16(x) (x)
#define TYPE_f16 PTX_F16
#define CELL_bf16 uint32_t
#define LANE_bf16 uint32_t
#define DEC_bf16(x) (x)
#define ENC_bf16(x) (x)
#define TYPE_bf16 PTX_BF16
#define CELL_f16x2 uint32_t
#define LANE_f16x2 uint32_t
#define DEC_f16x2(x) (x)
#define ENC_f16x2(x) (x)
#define TYPE_f16x2 PTX_F16X2
#define CELL_bf16x2 uint32_t
#define LANE_bf16x2 uint32_t
#define DEC_bf16x2(x) (x)
#define ENC_bf16x2(x) (x)
#define TYPE_bf16x2 PTX_BF16X2

/* One result per lane. */
#define OPS_STORE_all(D, value) d[l] = ENC_##D(value)
#define OPS_STORE_some(D, value) d[l] = lanes[l] ? ENC_##D(value) : d[l]
#define OPS_LANES_all
#define OPS_LANES_some const int32_t *lanes = w->lanes;
#define OPS_LIVE_all UINT32_MAX
#define OPS_LIVE_some (w->mask)

#define OPS_READ(K, name, index) const CELL_##K *p##name = OPS_SLOT(const CELL_##K, in->src[index]);
#define OPS_LANE(K, name) const LANE_##K name = DEC_##K(p##name[l]);

#define OPS_FORM1(form, fn, before, after, D, A, expr)              \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) { \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                      \
    OPS_READ(A, a, 0) OPS_LANES_##form before;                      \
    OPS_LOOP { OPS_LANE(A, a) OPS_STORE_##form(D, (expr)); }        \
    after;                                                          \
  }
#define OPS_FORM2(form, fn, before, after, D, A, B, expr)                   \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {         \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                              \
    OPS_READ(A, a, 0) OPS_READ(B, b, 1) OPS_LANES_##form before;            \
    OPS_LOOP { OPS_LANE(A, a) OPS_LANE(B, b) OPS_STORE_##form(D, (expr)); } \
    after;                                                                  \
  }
#define OPS_FORM3(form, fn, before, after, D, A, B, C, expr)                               \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                        \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                             \
    OPS_READ(A, a, 0) OPS_READ(B, b, 1) OPS_READ(C, c, 2) OPS_LANES_##form before;         \
    OPS_LOOP { OPS_LANE(A, a) OPS_LANE(B, b) OPS_LANE(C, c) OPS_STORE_##form(D, (expr)); } \
    after;                                                                                 \
  }
#define OPS_FORM4(form, fn, before, after, D, A, B, C, E, expr)                                           \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                       \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                                            \
    OPS_READ(A, a, 0) OPS_READ(B, b, 1) OPS_READ(C, c, 2) OPS_READ(E, e, 3) OPS_LANES_##form before;      \
    OPS_LOOP { OPS_LANE(A, a) OPS_LANE(B, b) OPS_LANE(C, c) OPS_LANE(E, e) OPS_STORE_##form(D, (expr)); } \
    after;                                                                                                \
  }

/* Form `some` of a family that takes long to compile and is rarely masked (OPS_MASKED_AFTER): `all`, then the other
 * lanes get back what they had. */
#define OPS_AFTER(fn, D)                                          \
  OPS_CHOSEN void fn##_some(exec_warp *w, const exec_instr *in) { \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                    \
    _Alignas(64) CELL_##D had[32];                                \
    OPS_LANES_some OPS_LOOP had[l] = d[l];                        \
    fn##_all(w, in);                                              \
    OPS_LOOP d[l] = lanes[l] ? d[l] : had[l];                     \
  }

/* One bit per lane: `expr` is the bit. The comparison's result goes through ops_put_compared. Cells as wide as the
 * operands keep the loop in one vector width. */
#define OPS_WIDE_u32 32
#define OPS_WIDE_s32 32
#define OPS_WIDE_u16 32
#define OPS_WIDE_s16 32
#define OPS_WIDE_f32 32
#define OPS_WIDE_f32z 32
#define OPS_WIDE_f16 32
#define OPS_WIDE_bf16 32
#define OPS_WIDE_f16x2 32
#define OPS_WIDE_bf16x2 32
#define OPS_WIDE_u64 64
#define OPS_WIDE_s64 64
#define OPS_WIDE_f64 64
#define OPS_BITS_(bits) OPS_JOIN(ops_bits, bits)
#define OPS_FLAG_(bits) OPS_JOIN(ops_flag, bits)

typedef int32_t ops_flag_32;
typedef int64_t ops_flag_64;

/* One function is both forms of a comparison: the mask of form `all` is full. Twice the functions would take twice as
 * long to compile. */
#define OPS_BOTH(fn) OPS_CHOSEN void fn##_some(exec_warp *w, const exec_instr *in) __attribute__((alias(#fn "_all")));

#define OPS_TEST1(fn, A, expr)                                    \
  OPS_CHOSEN void fn##_all(exec_warp *w, const exec_instr *in) {  \
    _Alignas(64) OPS_FLAG_(OPS_WIDE_##A) t[32];                   \
    OPS_READ(A, a, 0)                                             \
    OPS_LOOP { OPS_LANE(A, a) t[l] = (expr) ? -1 : 0; }           \
    ops_put_compared(w, in, OPS_BITS_(OPS_WIDE_##A)(t), w->mask); \
  }                                                               \
  OPS_BOTH(fn)
#define OPS_TEST2(fn, A, B, expr)                                                                          \
  OPS_CHOSEN void fn##_all(exec_warp *w, const exec_instr *in) {                                           \
    _Alignas(64) OPS_FLAG_(OPS_WIDE_##A) t[32];                                                            \
    OPS_READ(A, a, 0) OPS_READ(B, b, 1) OPS_LOOP { OPS_LANE(A, a) OPS_LANE(B, b) t[l] = (expr) ? -1 : 0; } \
    ops_put_compared(w, in, OPS_BITS_(OPS_WIDE_##A)(t), w->mask);                                          \
  }                                                                                                        \
  OPS_BOTH(fn)

/* The other direction: bit l of a predicate as a lane condition, by a table of the bits. */
#define OPS_EIGHT(type, n)                                                                                \
  (type)1 << (n), (type)1 << ((n) + 1), (type)1 << ((n) + 2), (type)1 << ((n) + 3), (type)1 << ((n) + 4), \
      (type)1 << ((n) + 5), (type)1 << ((n) + 6), (type)1 << ((n) + 7)
OPS_CHOSEN const _Alignas(64) uint32_t ops_bit_32[32] = {OPS_EIGHT(uint32_t, 0), OPS_EIGHT(uint32_t, 8),
                                                         OPS_EIGHT(uint32_t, 16), OPS_EIGHT(uint32_t, 24)};
OPS_CHOSEN const _Alignas(64) uint64_t ops_bit_64[32] = {OPS_EIGHT(uint64_t, 0), OPS_EIGHT(uint64_t, 8),
                                                         OPS_EIGHT(uint64_t, 16), OPS_EIGHT(uint64_t, 24)};
#define OPS_BIT_(bits) OPS_JOIN(ops_bit, bits)
#define OPS_BIT(bits) OPS_BIT_(bits)[l]

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* 32 flags (0 or -1) -> one bit per lane. */
OPS_INLINE uint32_t ops_bits_32(const int32_t t[32]) {
#if defined(__AVX512DQ__)
  return (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(t)) |
         (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(t + 16)) << 16;
#elif defined(__AVX2__)
  uint32_t bits = 0;
  for (int i = 0; i < 4; i++) bits |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)(t + 8 * i))) << 8 * i;
  return bits;
#elif defined(__SSE2__)
  uint32_t bits = 0;
  for (int i = 0; i < 8; i++) bits |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)(t + 4 * i))) << 4 * i;
  return bits;
#else
  uint32_t bits = 0;
  for (int i = 0; i < 32; i++) bits |= (t[i] ? 1u : 0u) << i;
  return bits;
#endif
}

OPS_INLINE uint32_t ops_bits_64(const int64_t t[32]) {
#if defined(__AVX512DQ__)
  uint32_t bits = 0;
  for (int i = 0; i < 4; i++) bits |= (uint32_t)_mm512_movepi64_mask(_mm512_load_si512(t + 8 * i)) << 8 * i;
  return bits;
#elif defined(__AVX2__)
  uint32_t bits = 0;
  for (int i = 0; i < 8; i++)
    bits |= (uint32_t)_mm256_movemask_pd(_mm256_load_pd((const double *)(t + 4 * i))) << 4 * i;
  return bits;
#elif defined(__SSE2__)
  uint32_t bits = 0;
  for (int i = 0; i < 16; i++) bits |= (uint32_t)_mm_movemask_pd(_mm_load_pd((const double *)(t + 2 * i))) << 2 * i;
  return bits;
#else
  uint32_t bits = 0;
  for (int i = 0; i < 32; i++) bits |= (t[i] ? 1u : 0u) << i;
  return bits;
#endif
}

OPS_INLINE void ops_put_pred(const exec_warp *w, uint32_t offset, uint32_t bits, uint32_t live) {
  uint32_t *cell = exec_pred(w, offset);
  *cell = (*cell & ~live) | (bits & live);
}

/* The predicate source `index`, with the `!` that may stand before it. */
OPS_INLINE uint32_t ops_get_pred(const exec_warp *w, const exec_instr *in, int index) {
  return *exec_pred(w, in->src[index]) ^ (in->aux & OPS_AUX_NEGATED(index) ? UINT32_MAX : 0);
}

OPS_INLINE uint32_t ops_combine(uint32_t aux, uint32_t compared, uint32_t c) {
  switch (aux & OPS_AUX_BOOLEAN) {
  case OPS_AUX_AND: return compared & c;
  case OPS_AUX_OR: return compared | c;
  case OPS_AUX_XOR: return compared ^ c;
  default: return compared;
  }
}

/* setp.cmp.boolop p|q, a, b, {!}c: p = boolop(compared, c), q = boolop(!compared, c). */
OPS_INLINE void ops_put_compared(const exec_warp *w, const exec_instr *in, uint32_t compared, uint32_t live) {
  if (__builtin_expect(in->aux == 0, 1)) {
    ops_put_pred(w, in->dst, compared, live);
    return;
  }
  uint32_t c = in->aux & OPS_AUX_BOOLEAN ? ops_get_pred(w, in, 2) : 0;
  uint32_t second = ops_combine(in->aux, ~compared, c);
  ops_put_pred(w, in->dst, ops_combine(in->aux, compared, c), live);
  if (in->aux & OPS_AUX_SECOND) ops_put_pred(w, in->dst2, second, live);
}

#endif
