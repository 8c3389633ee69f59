/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of moves, logic, shifts and bit fields; the forms stand in ops_bits.def. */
#include "exec/instructions/ops_lane.h"

/* Predicates: all 32 lanes are one word. */
#define OPS_PRED(form, fn, expr) \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) { ops_put_pred(w, in->dst, (expr), OPS_LIVE_##form); }

/* SHIFT(fn, D, A, expr): two sources, the second a u32 amount b. Without AVX2 there is no shift by a different amount
 * in each lane; there a constant amount (nearly all are) gets a loop of its own. */
#if defined(__AVX2__)
#define OPS_SHIFT(form, fn, D, A, expr) OPS_FORM2(form, fn, (void)0, (void)0, D, A, u32, expr)
#else
#define OPS_SHIFT(form, fn, D, A, expr)                                                         \
  OPS_FORM2(form, fn##_lanes, (void)0, (void)0, D, A, u32, expr)                                \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                             \
    if (!(in->src[1] & 1)) {                                                                    \
      fn##_lanes_##form(w, in);                                                                 \
      return;                                                                                   \
    }                                                                                           \
    CELL_##D *d = OPS_SLOT(CELL_##D, in->dst);                                                  \
    const uint32_t b = *OPS_SLOT(const uint32_t, in->src[1]);                                   \
    OPS_READ(A, a, 0) OPS_LANES_##form OPS_LOOP { OPS_LANE(A, a) OPS_STORE_##form(D, (expr)); } \
  }
#endif

/* lop3.BoolOp: p = (d != 0) BoolOp q */
static void lop3_predicate(exec_warp *w, const exec_instr *in, uint32_t live) {
  const uint32_t *d = exec_u32(w, in->dst);
  uint32_t bits = 0;
  for (uint32_t l = 0; l < 32; l++) bits |= (uint32_t)(d[l] != 0) << l;
  if (in->aux & OPS_AUX_SECOND) ops_put_pred(w, in->dst2, ops_combine(in->aux, bits, ops_get_pred(w, in, 3)), live);
}

/* lop3: choose by a, then by b, then by c, among the table's entries spread to all bits. */
#define OPS_LOP3(form, fn, ...)                                                                                       \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                                   \
    uint32_t *d = OPS_SLOT(uint32_t, in->dst);                                                                        \
    const uint32_t table = in->aux >> OPS_AUX_SHIFT;                                                                  \
    uint32_t zero[4], change[4]; /* what c == 0 gives, and which bits c == 1 changes, for each a, b */                \
    for (int i = 0; i < 4; i++) {                                                                                     \
      zero[i] = -(table >> 2 * i & 1u);                                                                               \
      change[i] = zero[i] ^ -(table >> (2 * i + 1) & 1u);                                                             \
    }                                                                                                                 \
    const uint32_t z0 = zero[0], z1 = zero[1], z2 = zero[2], z3 = zero[3];                                            \
    const uint32_t c0 = change[0], c1 = change[1], c2 = change[2], c3 = change[3];                                    \
    OPS_READ(u32, a, 0) OPS_READ(u32, b, 1) OPS_READ(u32, c, 2) OPS_LANES_##form OPS_LOOP {                           \
      OPS_LANE(u32, a)                                                                                                \
      OPS_LANE(u32, b)                                                                                                \
      OPS_LANE(u32, c) const uint32_t r0 = z0 ^ (c & c0), r1 = z1 ^ (c & c1), r2 = z2 ^ (c & c2), r3 = z3 ^ (c & c3); \
      const uint32_t low = r0 ^ ((r0 ^ r1) & b), high = r2 ^ ((r2 ^ r3) & b);                                         \
      OPS_STORE_##form(u32, (low ^ ((low ^ high) & a)));                                                              \
    }                                                                                                                 \
    if (in->aux & OPS_AUX_BOOLEAN) lop3_predicate(w, in, OPS_LIVE_##form);                                            \
  }

/* --- Counting. Without a multiplication, so that 64-bit lanes vectorise as well. --- */

OPS_INLINE uint32_t ops_popc32(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  x += x >> 8;
  return (x + (x >> 16)) & 63u;
}
OPS_INLINE uint32_t ops_popc64(uint64_t x) {
  x -= x >> 1 & UINT64_C(0x5555555555555555);
  x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
  x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  x += x >> 8;
  x += x >> 16;
  return (uint32_t)(x + (x >> 32)) & 127u;
}
/* All bits below the highest one set as well. */
OPS_INLINE uint32_t ops_smear32(uint32_t x) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  return x | x >> 16;
}
OPS_INLINE uint64_t ops_smear64(uint64_t x) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return x | x >> 32;
}
OPS_INLINE uint32_t ops_brev32(uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}
/* The offset-th set bit from `base` upwards (downwards if negative; 0: the base itself). */
OPS_INLINE uint32_t ops_fns(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return UINT32_MAX;
  if (offset == 0) return mask >> base & 1u ? base : UINT32_MAX;
  uint32_t left = offset > 0 ? (uint32_t)offset : -(uint32_t)offset;
  for (int32_t at = (int32_t)base; at >= 0 && at<32; at += offset> 0 ? 1 : -1)
    if ((mask >> at & 1u) && --left == 0) return (uint32_t)at;
  return UINT32_MAX;
}

/* --- Bit fields. --- */

OPS_INLINE uint32_t ops_low_bits32(uint32_t n) { return n < 32 ? (1u << (n & 31)) - 1 : UINT32_MAX; }
OPS_INLINE uint64_t ops_low_bits64(uint32_t n) { return n < 64 ? (UINT64_C(1) << (n & 63)) - 1 : UINT64_MAX; }
/* n in 0..32 */
OPS_INLINE uint32_t ops_sign_extend32(uint32_t x, uint32_t n) {
  uint32_t up = (32 - n) & 31, r = (uint32_t)((int32_t)(x << up) >> up);
  return n ? r : 0;
}
OPS_INLINE uint32_t ops_bfe_u32(uint32_t a, uint32_t at, uint32_t n) {
  return (at < 32 ? a >> (at & 31) : 0) & ops_low_bits32(n);
}
OPS_INLINE uint64_t ops_bfe_u64(uint64_t a, uint32_t at, uint32_t n) {
  return (at < 64 ? a >> (at & 63) : 0) & ops_low_bits64(n);
}
OPS_INLINE uint32_t ops_bfe_s32(int32_t a, uint32_t at, uint32_t n) {
  return ops_sign_extend32((uint32_t)(a >> (at < 31 ? at : 31)), n < 32 ? n : 32);
}
OPS_INLINE uint64_t ops_bfe_s64(int64_t a, uint32_t at, uint32_t n) {
  uint64_t x = (uint64_t)(a >> (at < 63 ? at : 63));
  uint32_t up = n < 64 ? (64 - n) & 63 : 0;
  return n ? (uint64_t)((int64_t)(x << up) >> up) : 0;
}
OPS_INLINE uint32_t ops_bfi32(uint32_t a, uint32_t b, uint32_t at, uint32_t n) {
  uint32_t field = at < 32 ? ops_low_bits32(n) << (at & 31) : 0;
  return (b & ~field) | (a << (at & 31) & field);
}
OPS_INLINE uint64_t ops_bfi64(uint64_t a, uint64_t b, uint32_t at, uint32_t n) {
  uint64_t field = at < 64 ? ops_low_bits64(n) << (at & 63) : 0;
  return (b & ~field) | (a << (at & 63) & field);
}

/* --- Bytes. --- */

OPS_INLINE uint32_t ops_prmt_byte(uint32_t a, uint32_t b, uint32_t select) {
  uint32_t word = select & 4 ? b : a, byte = word >> 8 * (select & 3) & 0xffu;
  uint32_t sign = byte & 0x80u ? 0xffu : 0;
  return select & 8 ? sign : byte;
}
OPS_INLINE uint32_t ops_prmt(uint32_t a, uint32_t b, uint32_t c) {
  return ops_prmt_byte(a, b, c) | ops_prmt_byte(a, b, c >> 4) << 8 | ops_prmt_byte(a, b, c >> 8) << 16 |
         ops_prmt_byte(a, b, c >> 12) << 24;
}
#define OPS_FOURTH(c, k0, k1, k2, k3) ((c)&2 ? ((c)&1 ? (k3) : (k2)) : ((c)&1 ? (k1) : (k0)))

#define OPS_DEF "exec/instructions/ops_bits.def"
#define OPS_TABLE ops_bits
#include "exec/instructions/ops_expand.h"
