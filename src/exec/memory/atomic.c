/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations on host memory, lane by lane in lane order (PTX ISA, "atom", "red").
 *
 * Every operation is one function from the old value to the new one; the loop around it makes it atomic with a host
 * compare-and-swap, unless no other thread can reach the memory (`plain`). Lanes of one warp that hit the same cell see
 * each other's results in lane order, on every run. */
#include <math.h>
#include <string.h>

#include "exec/memory/multimem.h"

/* ---- floating point on bits; addition rounds to nearest even ---- */

static float f32_from(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
static uint32_t f32_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
static bool nan32(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

static uint32_t add_f32(uint32_t a, uint32_t b) {
  uint32_t sum = f32_bits(f32_from(a) + f32_from(b));
  return nan32(sum) ? 0x7fffffff : sum;
}
/* In global memory atom.add.f32 flushes subnormal inputs and results to zeros of their sign; in shared memory it keeps
 * them (PTX ISA, "atom", semantics of .add). */
static uint32_t flush(uint32_t a) { return a & 0x7f800000 ? a : a & 0x80000000; }
static uint32_t add_f32_flushed(uint32_t a, uint32_t b) { return flush(add_f32(flush(a), flush(b))); }
static uint64_t add_f64(uint64_t a, uint64_t b) {
  double x, y;
  memcpy(&x, &a, 8);
  memcpy(&y, &b, 8);
  double sum = x + y;
  uint64_t bits;
  memcpy(&bits, &sum, 8);
  return bits;
}

static float f16_value(uint32_t h) {
  uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return f32_from(sign | 0x7f800000 | fraction << 13);
  if (exponent) return f32_from(sign | (exponent + 112) << 23 | fraction << 13);
  float small = (float)fraction * 0x1p-24f;
  return sign ? -small : small;
}

/* Rounds an exact sum of two halves (exact in double) to half, to nearest even. */
static uint16_t f16_round(double v) {
  if (isnan(v)) return 0x7fff;
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  v = fabs(v);
  if (v >= 65520) return sign | 0x7c00;
  int exponent = v < 0x1p-14 ? -14 : ilogb(v);
  double scaled = rint(ldexp(v, 10 - exponent)); /* the host rounds to nearest even */
  uint32_t units = (uint32_t)scaled;             /* up to 2048: carries into the exponent by itself */
  return (uint16_t)(sign | (units + (uint32_t)(exponent + 14) * 1024u));
}
static uint16_t add_f16(uint32_t a, uint32_t b) {
  return f16_round((double)f16_value(a & 0xffff) + (double)f16_value(b & 0xffff));
}

static float bf16_value(uint32_t h) { return f32_from((h & 0xffff) << 16); }
static uint16_t bf16_round(double v) {
  if (isnan(v)) return 0x7fff;
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  v = fabs(v);
  if (v == 0) return sign;
  if (v >= 0x1.ffp127) return sign | 0x7f80;
  int exponent = v < 0x1p-126 ? -126 : ilogb(v);
  uint32_t units = (uint32_t)rint(ldexp(v, 7 - exponent));
  return (uint16_t)(sign | (units + (uint32_t)(exponent + 126) * 128u));
}
/* Sums of bfloat16 may be wider than a double: far apart, the smaller one only decides the direction of rounding. */
static uint16_t add_bf16(uint32_t a, uint32_t b) {
  double x = bf16_value(a), y = bf16_value(b), sum = x + y, high = fabs(x) > fabs(y) ? x : y, low = high == x ? y : x;
  double lost = low - (sum - high);
  if (lost != 0 && isfinite(sum)) { /* make the sum odd in its last place: round-to-odd, then rounding again is right */
    uint64_t bits;
    memcpy(&bits, &sum, 8);
    if (!(bits & 1)) {
      bits += (lost > 0) == (sum > 0) ? 1 : UINT64_MAX;
      memcpy(&sum, &bits, 8);
    }
  }
  return bf16_round(sum);
}

uint16_t exec_sum_halves(bool bf16, const uint16_t *values, uint32_t count) {
  float sum = bf16 ? bf16_value(values[0]) : f16_value(values[0]);
  for (uint32_t n = 1; n < count; n++) sum += bf16 ? bf16_value(values[n]) : f16_value(values[n]);
  return bf16 ? bf16_round((double)sum) : f16_round((double)sum);
}

static uint16_t pick_half(uint32_t a, uint32_t b, float x, float y, bool smaller) {
  if (isnan(x) && isnan(y)) return 0x7fff;
  if (isnan(x)) return (uint16_t)b;
  if (isnan(y)) return (uint16_t)a;
  if (x == y) return (uint16_t)((signbit(x) != 0) == smaller ? a : b); /* -0 is below +0 */
  return (uint16_t)((x < y) == smaller ? a : b);
}
static uint16_t min_f16(uint32_t a, uint32_t b) {
  return pick_half(a, b, f16_value(a & 0xffff), f16_value(b & 0xffff), true);
}
static uint16_t max_f16(uint32_t a, uint32_t b) {
  return pick_half(a, b, f16_value(a & 0xffff), f16_value(b & 0xffff), false);
}
static uint16_t min_bf16(uint32_t a, uint32_t b) { return pick_half(a, b, bf16_value(a), bf16_value(b), true); }
static uint16_t max_bf16(uint32_t a, uint32_t b) { return pick_half(a, b, bf16_value(a), bf16_value(b), false); }

static uint32_t pairwise(uint32_t a, uint32_t b, uint16_t (*f)(uint32_t, uint32_t)) {
  return (uint32_t)f(a & 0xffff, b & 0xffff) | (uint32_t)f(a >> 16, b >> 16) << 16;
}

/* ---- the operations ---- */

/* The destination is an operand's register: tried again, the operand would be gone. */
static bool overlap(const void *operand, const void *old) { return operand == old; }

typedef uint64_t two_cells __attribute__((vector_size(16), aligned(8), may_alias));

/* All lanes of the mask at one cell: what they do together is one exchange of the cell. */
static bool one_cell(void *const *address, uint32_t mask) {
  const void *first = address[__builtin_ctz(mask)];
  if (mask == EXEC_ALL_LANES) {
    const two_cells *at = (const two_cells *)(const void *)address, want = {(uintptr_t)first, (uintptr_t)first};
    two_cells other = {0, 0};
    if (address[1] != first) return false;
    for (uint32_t n = 1; n < EXEC_LANES / 2; n++) other |= at[n] ^ want;
    return !(other[0] | other[1]);
  }
  for (uint32_t m = mask & (mask - 1); m; m &= m - 1)
    if (address[__builtin_ctz(m)] != first) return false;
  return true;
}

#define EACH_OF(mask) for (uint32_t m = (mask), lane; m && (lane = (uint32_t)__builtin_ctz(m), true); m &= m - 1)
#define NAME_(op, type) atomic_##op##_##type
#define X(op, type, cell, slot, folds, expression)                                                                    \
  static inline cell op##_##type##_new(cell old, cell b, cell c) { return (cell)(expression); }                       \
  /* The old values are not needed: one operation with all that the lanes give. */                                    \
  static inline uint32_t op##_##type##_folded(cell *at, const slot *b, uint32_t mask, bool plain) {                   \
    cell part[4], old, new;                                                                                           \
    if (mask == EXEC_ALL_LANES) {                                                                                     \
      for (uint32_t n = 0; n < 4; n++) part[n] = (cell)b[n];                                                          \
      for (uint32_t l = 4; l < EXEC_LANES; l += 4)                                                                    \
        for (uint32_t n = 0; n < 4; n++) part[n] = op##_##type##_new(part[n], (cell)b[l + n], 0);                     \
      part[0] = op##_##type##_new(op##_##type##_new(part[0], part[1], 0), op##_##type##_new(part[2], part[3], 0), 0); \
    } else {                                                                                                          \
      part[0] = (cell)b[__builtin_ctz(mask)];                                                                         \
      EACH_OF(mask &(mask - 1)) part[0] = op##_##type##_new(part[0], (cell)b[lane], 0);                               \
    }                                                                                                                 \
    old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                                      \
    do new = op##_##type##_new(old, part[0], 0);                                                                      \
    while (!plain && !__atomic_compare_exchange_n(at, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));          \
    if (plain && new != old) *at = new;                                                                               \
    if (new != old) return mask;                                                                                      \
    EACH_OF(mask) if (op##_##type##_new(old, (cell)b[lane], 0) != old) return mask; /* they undo each other */        \
    return 0;                                                                                                         \
  }                                                                                                                   \
  static uint32_t op##_##type##_together(cell *at, const slot *b, const slot *c, slot *olds, uint32_t mask,           \
                                         bool plain) {                                                                \
    uint32_t changed;                                                                                                 \
    cell first = __atomic_load_n(at, __ATOMIC_RELAXED), old, new;                                                     \
    if (folds && !olds) return op##_##type##_folded(at, b, mask, plain);                                              \
    do {                                                                                                              \
      changed = 0;                                                                                                    \
      new = first;                                                                                                    \
      EACH_OF(mask) {                                                                                                 \
        old = new;                                                                                                    \
        if (olds) olds[lane] = old;                                                                                   \
        new = op##_##type##_new(old, (cell)b[lane], (cell)c[lane]);                                                   \
        changed |= (uint32_t)(new != old) << lane;                                                                    \
      }                                                                                                               \
    } while (!plain && !__atomic_compare_exchange_n(at, &first, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));      \
    if (plain && changed) *at = new;                                                                                  \
    return changed;                                                                                                   \
  }                                                                                                                   \
  static uint32_t NAME_(op, type)(void *const *address, const void *vb, const void *vc, void *vold, uint32_t mask,    \
                                  bool plain) {                                                                       \
    const slot *b = vb, *c = vc;                                                                                      \
    slot *olds = vold;                                                                                                \
    uint32_t changed = 0;                                                                                             \
    if (!overlap(vb, vold) && !overlap(vc, vold) && one_cell(address, mask))                                          \
      return op##_##type##_together(address[__builtin_ctz(mask)], b, c, olds, mask, plain);                           \
    EACH_OF(mask) {                                                                                                   \
      cell *at = address[lane], old, new;                                                                             \
      if (plain) {                                                                                                    \
        old = *at;                                                                                                    \
        new = op##_##type##_new(old, (cell)b[lane], (cell)c[lane]);                                                   \
        if (new != old) *at = new;                                                                                    \
      } else {                                                                                                        \
        old = __atomic_load_n(at, __ATOMIC_RELAXED);                                                                  \
        do new = op##_##type##_new(old, (cell)b[lane], (cell)c[lane]);                                                \
        while (!__atomic_compare_exchange_n(at, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));                \
      }                                                                                                               \
      changed |= (uint32_t)(new != old) << lane;                                                                      \
      if (olds) olds[lane] = old;                                                                                     \
    }                                                                                                                 \
    return changed;                                                                                                   \
  }
#include "exec/memory/atomic.def"
X(ADDGLOBAL, F32, uint32_t, uint32_t, 0, add_f32_flushed(old, b))
#undef X

/* 128 bits: exch and cas, under a lock that all of them share. */
typedef struct cell128 {
  uint64_t low, high;
} cell128;
static pthread_mutex_t lock128 = PTHREAD_MUTEX_INITIALIZER;

static uint32_t wide_operation(void *const *address, const void *vb, const void *vc, void *vold, uint32_t mask,
                               bool compares) {
  const uint64_t *b = vb, *c = vc;
  uint64_t *olds = vold;
  uint32_t changed = 0;
  pthread_mutex_lock(&lock128);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    cell128 *at = address[lane], old = *at, given = {b[lane], b[lane + EXEC_LANES]}, new = given;
    if (compares) {
      bool equal = old.low == given.low && old.high == given.high;
      new = equal ? (cell128){c[lane], c[lane + EXEC_LANES]} : old;
    }
    *at = new;
    changed |= (uint32_t)(new.low != old.low || new.high != old.high) << lane;
    if (olds) {
      olds[lane] = old.low;
      olds[lane + EXEC_LANES] = old.high;
    }
  }
  pthread_mutex_unlock(&lock128);
  return changed;
}
static uint32_t exchange128(void *const *address, const void *b, const void *c, void *old, uint32_t mask, bool plain) {
  return wide_operation(address, b, c, old, mask, false);
}
static uint32_t compare128(void *const *address, const void *b, const void *c, void *old, uint32_t mask, bool plain) {
  return wide_operation(address, b, c, old, mask, true);
}

typedef struct atomic_row {
  ptx_mod op;
  ptx_type type;
  exec_atomic_function function;
} atomic_row;
static const atomic_row rows[] = {
#define X(op, type, cell, slot, folds, expression) {PTX_MOD_##op, PTX_##type, NAME_(op, type)},
#include "exec/memory/atomic.def"
#undef X
    {PTX_MOD_EXCH, PTX_B128, exchange128},    {PTX_MOD_CAS, PTX_B128, compare128},
    {PTX_MOD_EXCH, PTX_U32, atomic_EXCH_B32}, {PTX_MOD_EXCH, PTX_S32, atomic_EXCH_B32},
    {PTX_MOD_EXCH, PTX_F32, atomic_EXCH_B32}, {PTX_MOD_EXCH, PTX_U64, atomic_EXCH_B64},
    {PTX_MOD_EXCH, PTX_S64, atomic_EXCH_B64}, {PTX_MOD_EXCH, PTX_F64, atomic_EXCH_B64},
};

exec_atomic_function exec_atomic_find(ptx_mod op, ptx_type type, bool global) {
  if (op == PTX_MOD_ADD && type == PTX_F32 && global) return atomic_ADDGLOBAL_F32;
  for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
    if (rows[n].op == op && rows[n].type == type) return rows[n].function;
  return NULL;
}
