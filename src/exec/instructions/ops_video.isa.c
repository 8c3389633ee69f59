/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of the video instructions; the forms stand in ops_video.def.
 *
 * aux is decoded once per warp instruction into uniform shifts, signs and masks, so the loops over the lanes have no
 * branch that depends on the lane. Intermediate results are int64_t (the manual's .s34), for vmad 128 bits. */
#include "exec/instructions/ops_video.h"

#include "exec/instructions/ops_lane.h"

/* --- Parts of a word. --- */

typedef struct video_part { /* shift left, then right, to have it extended */
  uint32_t left, right, is_signed;
} video_part;

OPS_INLINE uint32_t part_bits(uint32_t select) { return select == 0 ? 32 : select < 5 ? 8 : 16; }
OPS_INLINE uint32_t part_at(uint32_t select) {
  return select == 0 ? 0 : select < 5 ? 8 * (select - 1) : 16 * (select - 5);
}
OPS_INLINE video_part part_of(uint32_t select, uint32_t is_signed) {
  uint32_t bits = part_bits(select);
  return (video_part){32 - bits - part_at(select), 32 - bits, is_signed};
}
OPS_INLINE int64_t part_get(video_part part, uint32_t x) {
  uint32_t up = x << part.left;
  return part.is_signed ? (int64_t)((int32_t)up >> part.right) : (int64_t)(up >> part.right);
}

OPS_INLINE int64_t video_clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
OPS_INLINE int64_t video_compare(int64_t x, int64_t y, uint32_t compare) {
  switch (compare) {
  case 0: return x == y;
  case 1: return x != y;
  case 2: return x < y;
  case 3: return x <= y;
  case 4: return x > y;
  default: return x >= y;
  }
}
/* y is at most 32; a result that leaves 64 bits keeps its sign and stays out of every destination's range. */
OPS_INLINE int64_t video_shl(int64_t x, int64_t y) {
  __int128 wide = (__int128)x * ((int64_t)1 << y);
  int64_t low = (int64_t)(uint64_t)wide;
  return wide == low ? low : (int64_t)((uint64_t)low & 0xffffffffu) | (x < 0 ? INT64_MIN : INT64_C(0x4000000000000000));
}

/* Everything behind the primary operation: saturation, second operation, merge. */
OPS_INLINE uint32_t video_finish(int64_t r, uint32_t c_bits, uint32_t aux) {
  const uint32_t bits = part_bits(VIDEO_SELECT_D(aux)), at = part_at(VIDEO_SELECT_D(aux));
  const bool is_signed = aux & VIDEO_SIGNED_D;
  const int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  const int64_t high = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
  const int64_t c = is_signed ? (int64_t)(int32_t)c_bits : (int64_t)c_bits;
  r = aux & VIDEO_SAT ? video_clamp(r, low, high) : r;
  switch (VIDEO_SECOND(aux)) {
  case 1: r = (int64_t)((uint64_t)r + (uint64_t)c); break; /* of vshl it may be as large as that; 32 bits count */
  case 2: r = r < c ? r : c; break;
  case 3: r = r > c ? r : c; break;
  default: break;
  }
  const uint32_t field = (uint32_t)((UINT64_C(1) << bits) - 1) << at;
  return ((uint32_t)r << at & field) | (c_bits & ~field);
}

#define OPS_SCALAR_VIDEO(form, fn, is_shift, expr)                                                         \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                        \
    uint32_t *d = OPS_SLOT(uint32_t, in->dst);                                                             \
    const uint32_t aux = in->aux;                                                                          \
    const uint32_t compare __attribute__((unused)) = VIDEO_COMPARE(aux);                                   \
    const video_part pick_a = part_of(VIDEO_SELECT_A(aux), aux & VIDEO_SIGNED_A);                          \
    const video_part pick_b = part_of(VIDEO_SELECT_B(aux), aux & VIDEO_SIGNED_B);                          \
    OPS_READ(u32, a, 0)                                                                                    \
    OPS_READ(u32, b, 1)                                                                                    \
    OPS_LANES_##form const uint32_t *pc = aux & VIDEO_HAS_C ? OPS_SLOT(const uint32_t, in->src[2]) : pa;   \
    OPS_LOOP {                                                                                             \
      const int64_t x = part_get(pick_a, pa[l]), amount = part_get(pick_b, pb[l]);                         \
      const int64_t y = !(is_shift) ? amount : aux & VIDEO_WRAP ? amount & 31 : amount > 32 ? 32 : amount; \
      OPS_STORE_##form(u32, video_finish((expr), pc[l], aux));                                             \
    }                                                                                                      \
  }
#define SCALAR_VIDEO(fn, expr) FNX(OPS_SCALAR_VIDEO, fn, 0, expr) ROW3(#fn, fn, 0, u32, u32, u32, u32)

/* --- vmad: (a * b + c) >> scale, with one of the two terms negated, or one more added. --- */

OPS_INLINE uint32_t video_mad(int64_t x, int64_t y, uint32_t c, uint32_t aux) {
  const bool is_signed = aux & (VIDEO_SIGNED_A | VIDEO_SIGNED_B | VIDEO_NEGATED_PRODUCT | VIDEO_NEGATED_C);
  __int128 product = (__int128)x * y;
  if (aux & VIDEO_NEGATED_PRODUCT) product = ~product;
  if (aux & VIDEO_NEGATED_C) c = ~c;
  __int128 r = product + (is_signed ? (__int128)(int32_t)c : (__int128)c);
  if (aux & (VIDEO_NEGATED_PRODUCT | VIDEO_NEGATED_C | VIDEO_PLUS_ONE)) r += 1;
  r >>= VIDEO_SCALE(aux);
  const __int128 low = is_signed ? INT32_MIN : 0, high = is_signed ? (__int128)INT32_MAX : (__int128)UINT32_MAX;
  if (aux & VIDEO_SAT) r = r < low ? low : r > high ? high : r;
  return (uint32_t)r;
}
#define OPS_VMAD(form, fn, ...)                                                                       \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                   \
    uint32_t *d = OPS_SLOT(uint32_t, in->dst);                                                        \
    const uint32_t aux = in->aux;                                                                     \
    const video_part pick_a = part_of(VIDEO_SELECT_A(aux), aux & VIDEO_SIGNED_A);                     \
    const video_part pick_b = part_of(VIDEO_SELECT_B(aux), aux & VIDEO_SIGNED_B);                     \
    OPS_READ(u32, a, 0) OPS_READ(u32, b, 1) OPS_READ(u32, c, 2) OPS_LANES_##form OPS_LOOP {           \
      OPS_STORE_##form(u32, video_mad(part_get(pick_a, pa[l]), part_get(pick_b, pb[l]), pc[l], aux)); \
    }                                                                                                 \
  }

/* --- Packed forms: n elements of `bits` bits. --- */

/* Element `place` of b:a (places from half the count on are b's), extended. */
OPS_INLINE int32_t packed_get(uint32_t a, uint32_t b, uint32_t place, uint32_t bits, uint32_t is_signed) {
  const uint32_t count = 32 / bits, up = (place & count ? b : a) << (32 - bits - bits * (place & (count - 1)));
  return is_signed ? (int32_t)up >> (32 - bits) : (int32_t)(up >> (32 - bits));
}
OPS_INLINE int32_t packed_clamp(int32_t x, uint32_t bits, uint32_t mode) {
  const int32_t half = 1 << (bits - 1);
  if (mode == VIDEO_MERGE_SAT_S) return x < -half ? -half : x > half - 1 ? half - 1 : x;
  return x < 0 ? 0 : x > 2 * half - 1 ? 2 * half - 1 : x;
}

#define OPS_PACKED_VIDEO(form, fn, bits, expr)                                                                   \
  OPS_CHOSEN void fn##_##form(exec_warp *w, const exec_instr *in) {                                              \
    uint32_t *d = OPS_SLOT(uint32_t, in->dst);                                                                   \
    const uint32_t aux = in->aux, mode = VIDEO_PACKED_MODE(aux);                                                 \
    OPS_READ(u32, a, 0) OPS_READ(u32, b, 1) OPS_READ(u32, c, 2) OPS_LANES_##form OPS_LOOP {                      \
      OPS_LANE(u32, a) OPS_LANE(u32, b) uint32_t r = pc[l];                                                      \
      for (uint32_t i = 0; i < 32 / (bits); i++) {                                                               \
        const int32_t x = packed_get(a, b, VIDEO_PLACES_A(aux) >> 3 * i & 7, bits, aux & VIDEO_PACKED_SIGNED_A); \
        const int32_t y = packed_get(a, b, VIDEO_PLACES_B(aux) >> 3 * i & 7, bits, aux & VIDEO_PACKED_SIGNED_B); \
        const int32_t t = (expr);                                                                                \
        const uint32_t field = (uint32_t)((UINT64_C(1) << (bits)) - 1) << (bits)*i;                              \
        const uint32_t written = VIDEO_PACKED_MASK(aux) >> i & 1 ? UINT32_MAX : 0;                               \
        const uint32_t element = (uint32_t)(mode >= VIDEO_MERGE_SAT_U ? packed_clamp(t, bits, mode) : t);        \
        const uint32_t merged = (r & ~field) | (element << (bits)*i & field);                                    \
        const uint32_t next = mode == VIDEO_ACCUMULATE ? r + element : merged;                                   \
        r = (written & next) | (~written & r);                                                                   \
      }                                                                                                          \
      OPS_STORE_##form(u32, r);                                                                                  \
    }                                                                                                            \
  }
#define PACKED_VIDEO(fn, expr)                \
  FNX(OPS_PACKED_VIDEO, fn##2, 16, expr)      \
  ROW3(#fn "2", fn##2, 0, u32, u32, u32, u32) \
  FNX(OPS_PACKED_VIDEO, fn##4, 8, expr) ROW3(#fn "4", fn##4, 0, u32, u32, u32, u32)
#define PACKED_VSET(cmp, expr)                            \
  FNX(OPS_PACKED_VIDEO, vset2_##cmp, 16, expr)            \
  ROW3("vset2." #cmp, vset2_##cmp, 0, u32, u32, u32, u32) \
  FNX(OPS_PACKED_VIDEO, vset4_##cmp, 8, expr) ROW3("vset4." #cmp, vset4_##cmp, 0, u32, u32, u32, u32)

#define OPS_DEF "exec/instructions/ops_video.def"
#define OPS_TABLE ops_video
#include "exec/instructions/ops_expand.h"
