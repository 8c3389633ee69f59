/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic handlers; the forms stand in ops_integer.def.
 *
 * No operand makes the host trap: division checks its divisor in every lane, so inactive lanes are safe as well. */
#include "exec/instructions/ops_math.h"

/* 32 bits by way of double, for vectors: no quotient of two such numbers is so near below an integer (2^-33 of it) that
 * its rounding comes to it. An integer v below 2^32 is the low word of 2^52 + v. */
OPS_INLINE double ops_f64_of_u32(uint32_t v) { return ops_f64_of(UINT64_C(0x4330000000000000) | v) - 0x1p52; }
OPS_INLINE uint32_t ops_div_u32(uint32_t a, uint32_t b) {
  double q = ops_f64_of_u32(a) / ops_f64_of_u32(b), n = (q + 0x1p52) - 0x1p52; /* to nearest */
  n -= n > q ? 1.0 : 0.0;
  return (uint32_t)ops_u64_of(n + 0x1p52) | (b ? 0 : UINT32_MAX);
}
/* A zero divisor becomes 1 for the machine's division; its result is then replaced. */
OPS_INLINE uint64_t ops_div_u64(uint64_t a, uint64_t b) { return b ? a / (b ? b : 1) : UINT64_MAX; }
OPS_INLINE uint32_t ops_rem_u32(uint32_t a, uint32_t b) { return a - ops_div_u32(a, b) * b; }
OPS_INLINE uint64_t ops_rem_u64(uint64_t a, uint64_t b) { return b ? a % (b ? b : 1) : a; }

/* Signed division by magnitudes: the smallest number divided by -1 wraps to itself. */
#define OPS_MAGNITUDE(type, x) ((x) < 0 ? -(type)(x) : (type)(x))
OPS_INLINE uint32_t ops_div_s32(int32_t a, int32_t b) {
  uint32_t q = ops_div_u32(OPS_MAGNITUDE(uint32_t, a), OPS_MAGNITUDE(uint32_t, b));
  return b == 0 ? UINT32_MAX : (a ^ b) < 0 ? -q : q;
}
OPS_INLINE uint64_t ops_div_s64(int64_t a, int64_t b) {
  uint64_t q = ops_div_u64(OPS_MAGNITUDE(uint64_t, a), OPS_MAGNITUDE(uint64_t, b));
  return b == 0 ? UINT64_MAX : (a ^ b) < 0 ? -q : q;
}
OPS_INLINE uint32_t ops_rem_s32(int32_t a, int32_t b) {
  uint32_t r = ops_rem_u32(OPS_MAGNITUDE(uint32_t, a), OPS_MAGNITUDE(uint32_t, b));
  return a < 0 ? -r : r;
}
OPS_INLINE uint64_t ops_rem_s64(int64_t a, int64_t b) {
  uint64_t r = ops_rem_u64(OPS_MAGNITUDE(uint64_t, a), OPS_MAGNITUDE(uint64_t, b));
  return a < 0 ? -r : r;
}

OPS_INLINE int32_t ops_clamp_s32(int64_t x) {
  return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/* --- Packed 16-bit operands. --- */

#define OPS_PAIR(low, high) (((uint32_t)(low)&0xffffu) | (uint32_t)(high) << 16)
#define OPS_EACH_U16(fn, a, b) OPS_PAIR(fn((a)&0xffffu, (b)&0xffffu), fn((a) >> 16, (b) >> 16))
#define OPS_EACH_S16(fn, a, b) OPS_PAIR(fn(OPS_SIGN16(a), OPS_SIGN16(b)), fn((int32_t)(a) >> 16, (int32_t)(b) >> 16))
OPS_INLINE uint32_t ops_add_sat_u16(uint32_t a, uint32_t b) { return a + b > 0xffffu ? 0xffffu : a + b; }
OPS_INLINE int32_t ops_add_sat_s16(int32_t a, int32_t b) {
  return a + b > 0x7fff ? 0x7fff : a + b < -0x8000 ? -0x8000 : a + b;
}
OPS_INLINE uint32_t ops_min_u(uint32_t a, uint32_t b) { return a < b ? a : b; }
OPS_INLINE uint32_t ops_max_u(uint32_t a, uint32_t b) { return a > b ? a : b; }
OPS_INLINE int32_t ops_min_s(int32_t a, int32_t b) { return a < b ? a : b; }
OPS_INLINE int32_t ops_max_s(int32_t a, int32_t b) { return a > b ? a : b; }
OPS_INLINE int32_t ops_min_relu(int32_t a, int32_t b) { return ops_max_s(ops_min_s(a, b), 0); }
OPS_INLINE int32_t ops_max_relu(int32_t a, int32_t b) { return ops_max_s(ops_max_s(a, b), 0); }

/* --- Packed bytes. --- */

#define OPS_QUAD(b0, b1, b2, b3) \
  (((uint32_t)(b0)&0xffu) | ((uint32_t)(b1)&0xffu) << 8 | ((uint32_t)(b2)&0xffu) << 16 | (uint32_t)(b3) << 24)
#define OPS_EACH_8(fn, part, a, b)                                                             \
  OPS_QUAD(fn(part(a, 0), part(b, 0)), fn(part(a, 1), part(b, 1)), fn(part(a, 2), part(b, 2)), \
           fn(part(a, 3), part(b, 3)))
#define OPS_EACH_U8(fn, a, b) OPS_EACH_8(fn, OPS_BYTE_U, a, b)
#define OPS_EACH_S8(fn, a, b) OPS_EACH_8(fn, OPS_SIGNED_BYTE, a, b)
#define OPS_SIGNED_BYTE(x, i) ((int32_t)OPS_BYTE_S(x, i))
OPS_INLINE uint32_t ops_add_u(uint32_t a, uint32_t b) { return a + b; }
OPS_INLINE uint32_t ops_sub_u(uint32_t a, uint32_t b) { return a - b; }
OPS_INLINE uint32_t ops_add_sat_u8(uint32_t a, uint32_t b) { return a + b > 0xffu ? 0xffu : a + b; }
OPS_INLINE uint32_t ops_sub_sat_u8(uint32_t a, uint32_t b) { return a < b ? 0 : a - b; }
OPS_INLINE int32_t ops_clamp_s8(int32_t x) { return x > 0x7f ? 0x7f : x < -0x80 ? -0x80 : x; }
OPS_INLINE int32_t ops_add_sat_s8(int32_t a, int32_t b) { return ops_clamp_s8(a + b); }
OPS_INLINE int32_t ops_sub_sat_s8(int32_t a, int32_t b) { return ops_clamp_s8(a - b); }

/* --- 24-bit products and dot products. --- */

#define OPS_LOW24(x) ((x)&0xffffffu)
#define OPS_SIGN24(x) ((int32_t)((uint32_t)(x) << 8) >> 8)
#define OPS_BYTE_U(x, i) ((x) >> 8 * (i)&0xffu)
#define OPS_BYTE_S(x, i) ((uint32_t)((int32_t)((x) << (24 - 8 * (i))) >> 24))
#define OPS_HALF_U(x, i) ((x) >> 16 * (i)&0xffffu)
#define OPS_HALF_S(x, i) ((uint32_t)((int32_t)((x) << (16 - 16 * (i))) >> 16))
#define OPS_DP4A(A, B, a, b) (A(a, 0) * B(b, 0) + A(a, 1) * B(b, 1) + A(a, 2) * B(b, 2) + A(a, 3) * B(b, 3))
#define OPS_DP2A(A, B, a, b, first) (A(a, 0) * B(b, first) + A(a, 1) * B(b, (first) + 1))

/* --- Carries. CC.CF is one bit per lane; lanes outside the mask keep theirs. The manual calls it the borrow of a
 * subtraction and leaves open what an addc finds after one. GPUs compute x - y as x + ~y + 1 and keep the carry of
 * that: 1 where nothing is borrowed. nvcc's division of __int128 asks addc whether a subtraction has borrowed. --- */

#define OPS_CARRY_add(x, y, in) ((x) + (y) + (in))
#define OPS_CARRY_sub(x, y, in) ((x) - (y) - !(in))
#define OPS_OUT_add(x, y, in, r) ((r) < (x) || ((in) && (r) == (x)))
#define OPS_OUT_sub(x, y, in, r) ((x) > (y) || ((in) && (x) == (y)))
#define OPS_FIRST_add 0 /* what comes in where a chain begins */
#define OPS_FIRST_sub 1
#define OPS_CARRY(form, fn, D, reads, lanes_read, x, y, op, takes, gives)                                           \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                                 \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                                                      \
    _Alignas(64) OPS_FLAG_(OPS_WIDE_##D) t[32];                                                                     \
    const CELL_##D carry = w->carry;                                                                                \
    reads OPS_LANES_##form OPS_LOOP {                                                                               \
      lanes_read const CELL_##D c_in = (takes) ? (carry & OPS_BIT(OPS_WIDE_##D)) != 0 : OPS_FIRST_##op, left = (x), \
                                right = (y);                                                                        \
      const CELL_##D r = OPS_CARRY_##op(left, right, c_in);                                                         \
      t[l] = OPS_OUT_##op(left, right, c_in, r) ? -1 : 0;                                                           \
      OPS_STORE_##form(D, r);                                                                                       \
    }                                                                                                               \
    if (gives) w->carry = (w->carry & ~OPS_LIVE_##form) | (OPS_BITS_(OPS_WIDE_##D)(t) & OPS_LIVE_##form);           \
  }
#define OPS_CARRY2(form, fn, D, op, takes, gives) \
  OPS_CARRY(form, fn, D, OPS_READ(D, a, 0) OPS_READ(D, b, 1), OPS_LANE(D, a) OPS_LANE(D, b), a, b, op, takes, gives)
#define OPS_CARRY3(form, fn, D, A, product, takes, gives)                       \
  OPS_CARRY(form, fn, D, OPS_READ(A, a, 0) OPS_READ(A, b, 1) OPS_READ(D, c, 2), \
            OPS_LANE(A, a) OPS_LANE(A, b) OPS_LANE(D, c), product, c, add, takes, gives)

#define CARRY_2(op, U, S, fn, D, way, takes, gives) \
  FNX(OPS_CARRY2, fn, D, way, takes, gives) ROW2(op "." U " " op "." S, fn, 0, D, D, D)
#define CARRY_MAD(half, T, fn, D, A, product)            \
  FNX(OPS_CARRY3, mad_cc_##fn, D, A, product, 0, 1)      \
  ROW3("mad." half ".cc." T, mad_cc_##fn, 0, D, A, A, D) \
  FNX(OPS_CARRY3, madc_##fn, D, A, product, 1, 0)        \
  ROW3("madc." half "." T, madc_##fn, 0, D, A, A, D)     \
  FNX(OPS_CARRY3, madc_cc_##fn, D, A, product, 1, 1) ROW3("madc." half ".cc." T, madc_cc_##fn, 0, D, A, A, D)

#define OPS_DEF "exec/instructions/ops_integer.def"
#define OPS_TABLE ops_integer
#include "exec/instructions/ops_expand.h"
