/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomics of a whole warp: the fast ways.
 *
 * An access is fast when all its active lanes stay inside one allocation (or inside shared memory, or at one offset of
 * local memory) and are aligned; then the addresses form a *row* (consecutive cells), are *uniform* (one cell), or are
 * *scattered*. Everything else, faults included, goes lane by lane (access.c), which checks everything again.
 *
 * A store writes the active lanes' own cells only; a load may read all 32 cells of a row, if they are in the
 * allocation. */
#include "exec/memory/access.h"
#include "exec/memory/access_local.h"
#include "exec/memory/overrun.h"
#include "exec/instructions/lanes.h"

/* How one element lies in memory and in its register: X(kind, memory type, cell type, value from v). */
/* clang-format off */
#define LOAD_KINDS(X)                                                                                                    \
  X(b32, uint32_t, uint32_t, v) X(b64, uint64_t, uint64_t, v) X(u8, uint8_t, uint32_t, v) X(u16, uint16_t, uint32_t, v)  \
  X(s8, int8_t, uint32_t, (uint32_t)(int32_t)v) X(s8h, int8_t, uint32_t, (uint16_t)v)                                    \
  X(s16, int16_t, uint32_t, (uint32_t)(int32_t)v) X(u8w, uint8_t, uint64_t, v) X(u16w, uint16_t, uint64_t, v)            \
  X(u32w, uint32_t, uint64_t, v) X(s8w, int8_t, uint64_t, (uint64_t)(int64_t)v)                                          \
  X(s16w, int16_t, uint64_t, (uint64_t)(int64_t)v) X(s32w, int32_t, uint64_t, (uint64_t)(int64_t)v)
/* clang-format on */
/* clang-format off */
#define STORE_KINDS(X)                                                                                                   \
  X(b32, uint32_t, uint32_t) X(b64, uint64_t, uint64_t) X(b8, uint8_t, uint32_t) X(b16, uint16_t, uint32_t)              \
  X(b8w, uint8_t, uint64_t) X(b16w, uint16_t, uint64_t) X(b32w, uint32_t, uint64_t)
/* clang-format on */

/* ---- finding a warp's bytes ---- */

typedef enum shape { SHAPE_ROW, SHAPE_UNIFORM, SHAPE_SCATTER, SHAPE_NONE } shape;

INLINE uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }
INLINE uint32_t last_lane(uint32_t mask) { return 31u - (uint32_t)__builtin_clz(mask); }

INLINE shape shape_of(const uint64_t *value, uint32_t active, uint32_t bytes) {
  uint32_t first = first_lane(active), rest = active & (active - 1);
  if (!rest) return SHAPE_UNIFORM;
  uint32_t second = first_lane(rest);
  uint64_t step = value[second] - value[first];
  if (step == (uint64_t)(second - first) * bytes)
    return lanes_off_row64(value, value[first] - (uint64_t)first * bytes, bytes) & active ? SHAPE_SCATTER : SHAPE_ROW;
  if (step == 0) return lanes_off_row64(value, value[first], 0) & active ? SHAPE_SCATTER : SHAPE_UNIFORM;
  return SHAPE_SCATTER;
}

/* Is [address, address + bytes) inside what `room` bytes from the span's start hold? */
INLINE bool inside(const exec_span *span, uint64_t room, uint64_t address, uint64_t bytes) {
  uint64_t offset = address - span->info.address;
  return offset < room && room - offset >= bytes;
}

/* Loads over the end of an allocation of which that has been told: all lanes inside of its last page, or SHAPE_NONE. */
static __attribute__((noinline)) shape locate_beyond(core_warp *w, const exec_instr *i, const uint64_t *value,
                                                     uint32_t bytes) {
  uint32_t active = w->active, first = first_lane(active);
  uint64_t add = (uint64_t)i->immediate, low = value[first] + add;
  if (UNLIKELY(w->watched)) return SHAPE_NONE;
  const exec_span *span = exec_memory_span(w->launch->memory, low - low % EXEC_PAGE_BYTES);
  uint64_t room = span ? core_overrun_room(w, span) : 0;
  if (room < bytes || (lanes_outside64(value, span->info.address - add, room - bytes) & active)) return SHAPE_NONE;
  return lanes_with64(value, add, bytes - 1) & active ? SHAPE_NONE : shape_of(value, active, bytes);
}

/* The shape of a global (or generic) access that lies in one allocation, or SHAPE_NONE. */
INLINE shape locate(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t bytes, bool write) {
  exec_access *a = (exec_access *)(uintptr_t)i->side;
  uint32_t active = w->active, first = first_lane(active);
  uint64_t add = (uint64_t)i->immediate, low = value[first] + add;
  shape found = shape_of(value, active, bytes);
  exec_span *span = __atomic_load_n(&a->hint, __ATOMIC_RELAXED);
  for (int tries = 0;; tries++) {
    uint64_t room = write ? span->writable : span->readable;
    if (found == SHAPE_SCATTER) {
      if (room >= bytes && !(lanes_outside64(value, span->info.address - add, room - bytes) & active))
        return lanes_with64(value, add, bytes - 1) & active ? SHAPE_NONE : found;
    } else {
      uint64_t reach = found == SHAPE_ROW ? (uint64_t)(last_lane(active) - first + 1) * bytes : bytes;
      if (inside(span, room, low, reach)) return low & (bytes - 1) ? SHAPE_NONE : found;
    }
    if (tries || !(span = exec_memory_span(w->launch->memory, low)))
      return write ? SHAPE_NONE : locate_beyond(w, i, value, bytes);
    __atomic_store_n(&a->hint, span, __ATOMIC_RELAXED);
  }
}

INLINE void watch_shape(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t bytes, shape found) {
  const exec_access *a = i->side;
  if (w->block->ranges) core_declared_check(w, i, value, bytes, found != SHAPE_SCATTER);
  if (!core_tells_places(w)) return;
  uint64_t add = (uint64_t)i->immediate, low = value[first_lane(w->active)] + add;
  if (a->space == PTX_SPACE_CONST && w->trace) core_trace_const(w, i, value, w->active);
  else if (a->space == PTX_SPACE_CONST) return;
  else if (found == SHAPE_ROW) core_trace_row(w, i, low, bytes, w->active);
  else if (found == SHAPE_UNIFORM) core_trace_one(w, i, low, bytes, w->active);
  else core_trace_gather(w, i, value, add, bytes, w->active);
}

/* ---- moving the bytes: one element of `stride` bytes apart ---- */

/* Eight lanes whose addresses are `step` apart, as where rows of 16 or 8 threads access a tile. */
INLINE bool is_piece(const uint64_t *value, uint64_t step) {
#if EXEC_ISA_avx2 || EXEC_ISA_avx512
  __m256i first = _mm256_set1_epi64x((long long)value[0]),
          low = _mm256_set_epi64x((long long)(3 * step), (long long)(2 * step), (long long)step, 0);
  __m256i high = _mm256_add_epi64(_mm256_add_epi64(first, low), _mm256_set1_epi64x((long long)(4 * step)));
  __m256i off = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)value), _mm256_add_epi64(first, low));
  off = _mm256_or_si256(off, _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(value + 4)), high));
  return _mm256_testz_si256(off, off);
#else
  uint64_t off = 0;
  for (uint32_t l = 0; l < 8; l++) off |= value[l] ^ (value[0] + l * step);
  return !off;
#endif
}

/* As one store: GCC makes two of a copy of 32 bytes, for processors long gone. */
INLINE void store_eight(uint32_t *to, const void *from) {
#if EXEC_ISA_avx2 || EXEC_ISA_avx512
  _mm256_storeu_si256((__m256i *)(void *)to, _mm256_loadu_si256((const __m256i *)from));
#else
  memcpy(to, from, 32);
#endif
}

/* Written eight at a time in any case: the instructions that read the register read it so, and would wait for single
 * words. */
INLINE void load_pieces32(uint32_t *to, const uint64_t *value, uint64_t add) {
  for (uint32_t piece = 0; piece < 32; piece += 8) {
    typedef uint32_t words __attribute__((vector_size(32)));
    const uint64_t *v = value + piece;
#define WORD(l) (*(const uint32_t *)(const void *)(uintptr_t)(v[l] + add))
    if (v[1] - v[0] == 4 && is_piece(v, 4)) {
      store_eight(to + piece, &WORD(0));
    } else {
      words all = {WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7)};
      store_eight(to + piece, &all);
    }
#undef WORD
  }
}

INLINE void store_pieces32(const uint64_t *value, uint64_t add, const uint32_t *from) {
  for (uint32_t piece = 0; piece < 32; piece += 8) {
    const uint64_t *v = value + piece;
    if (v[1] - v[0] == 4 && is_piece(v, 4)) memcpy((void *)(uintptr_t)(v[0] + add), from + piece, 32);
    else
      for (uint32_t l = 0; l < 8; l++) *(uint32_t *)(void *)(uintptr_t)(v[l] + add) = from[piece + l];
  }
}

#define X(kind, memory, cell, from)                                                                              \
  INLINE cell read_##kind(const unsigned char *p) {                                                              \
    memory v = *(const memory *)(const void *)p;                                                                 \
    return (cell)(from);                                                                                         \
  }                                                                                                              \
  INLINE void load_row_##kind(cell *to, const unsigned char *p, uint32_t stride, uint32_t mask) {                \
    if (LIKELY(mask == UINT32_MAX)) {                                                                            \
      EVERY_LANE to[l] = read_##kind(p + (uint32_t)l * stride);                                                  \
    } else {                                                                                                     \
      EACH_LANE(mask) to[l] = read_##kind(p + l * stride);                                                       \
    }                                                                                                            \
  }                                                                                                              \
  INLINE void load_scatter_##kind(cell *to, const uint64_t *value, uint64_t add, uint32_t mask) {                \
    if (sizeof(memory) == 4 && sizeof(cell) == 4 && LIKELY(mask == UINT32_MAX)) {                                \
      load_pieces32((uint32_t *)(void *)to, value, add);                                                         \
    } else if (LIKELY(mask == UINT32_MAX)) {                                                                     \
      for (uint32_t l = 0; l < 32; l++) to[l] = read_##kind((const unsigned char *)(uintptr_t)(value[l] + add)); \
    } else {                                                                                                     \
      EACH_LANE(mask) to[l] = read_##kind((const unsigned char *)(uintptr_t)(value[l] + add));                   \
    }                                                                                                            \
  }                                                                                                              \
  INLINE void load_offset_##kind(cell *to, const unsigned char *base, const uint32_t *value, uint32_t add,       \
                                 uint32_t mask) {                                                                \
    if (LIKELY(mask == UINT32_MAX)) {                                                                            \
      for (uint32_t l = 0; l < 32; l++) to[l] = read_##kind(base + (uint32_t)(value[l] + add));                  \
    } else {                                                                                                     \
      EACH_LANE(mask) to[l] = read_##kind(base + (uint32_t)(value[l] + add));                                    \
    }                                                                                                            \
  }                                                                                                              \
  INLINE void fill_##kind(cell *to, cell v, uint32_t mask) {                                                     \
    if (sizeof(cell) == 8) lanes_fill64((uint64_t *)(void *)to, (uint64_t)v, mask);                              \
    else lanes_fill32((uint32_t *)(void *)to, (uint32_t)v, mask);                                                \
  }
LOAD_KINDS(X)
#undef X

#define X(kind, memory, cell)                                                                                 \
  INLINE void write_##kind(unsigned char *p, cell v) { *(memory *)(void *)p = (memory)v; }                    \
  INLINE void store_row_##kind(unsigned char *p, const cell *from, uint32_t stride, uint32_t mask) {          \
    if (LIKELY(mask == UINT32_MAX)) {                                                                         \
      EVERY_LANE write_##kind(p + (uint32_t)l * stride, from[l]);                                             \
    } else {                                                                                                  \
      EACH_LANE(mask) write_##kind(p + l * stride, from[l]);                                                  \
    }                                                                                                         \
  }                                                                                                           \
  INLINE void store_scatter_##kind(const uint64_t *value, uint64_t add, const cell *from, uint32_t mask) {    \
    if (sizeof(memory) == 4 && sizeof(cell) == 4 && LIKELY(mask == UINT32_MAX)) {                             \
      store_pieces32(value, add, (const uint32_t *)(const void *)from);                                       \
      return;                                                                                                 \
    }                                                                                                         \
    EACH_LANE(mask) write_##kind((unsigned char *)(uintptr_t)(value[l] + add), from[l]);                      \
  }                                                                                                           \
  INLINE void store_offset_##kind(unsigned char *base, const uint32_t *value, uint32_t add, const cell *from, \
                                  uint32_t mask) {                                                            \
    EACH_LANE(mask) write_##kind(base + (uint32_t)(value[l] + add), from[l]);                                 \
  }
STORE_KINDS(X)
#undef X

/* A row of single 32- or 64-bit cells is a copy. */
#define ROW_COPIES_b32 32
#define ROW_COPIES_b64 64
#define LOAD_ROW1(kind, cell, to, p, mask)                                               \
  do {                                                                                   \
    if (sizeof(cell) == 4 && bytes == 4)                                                 \
      lanes_copy32((uint32_t *)(void *)(to), (const uint32_t *)(const void *)(p), mask); \
    else if (sizeof(cell) == 8 && bytes == 8)                                            \
      lanes_copy64((uint64_t *)(void *)(to), (const uint64_t *)(const void *)(p), mask); \
    else load_row_##kind(to, p, bytes, mask);                                            \
  } while (0)
#define STORE_ROW1(kind, cell, p, from, mask)                                              \
  do {                                                                                     \
    if (sizeof(cell) == 4 && bytes == 4)                                                   \
      lanes_copy32((uint32_t *)(void *)(p), (const uint32_t *)(const void *)(from), mask); \
    else if (sizeof(cell) == 8 && bytes == 8)                                              \
      lanes_copy64((uint64_t *)(void *)(p), (const uint64_t *)(const void *)(from), mask); \
    else store_row_##kind(p, from, bytes, mask);                                           \
  } while (0)

/* ---- global and generic memory ---- */

INLINE void after_load(core_warp *w, const exec_access *a) {
  w->accesses++;
  if (UNLIKELY(a->poll)) core_poll(w);
}

#define X(kind, memory, cell, from)                                                                                 \
  INLINE void global_load_##kind(exec_warp *x, const exec_instr *i, const uint32_t elements) {                      \
    core_warp *w = (core_warp *)x;                                                                                  \
    const exec_access *a = i->side;                                                                                 \
    const uint32_t bytes = (uint32_t)sizeof(memory), total = bytes * elements;                                      \
    const uint64_t *value = exec_u64(x, i->src[0]);                                                                 \
    uint64_t add = (uint64_t)i->immediate, saved[32];                                                               \
    uint32_t active = w->active;                                                                                    \
    shape found = locate(w, i, value, total, false);                                                                \
    if (UNLIKELY(found == SHAPE_NONE)) {                                                                            \
      ISA(core_access_windows)(x, i);                                                                               \
      return;                                                                                                       \
    }                                                                                                               \
    if (UNLIKELY(w->watched)) watch_shape(w, i, value, total, found);                                               \
    uint32_t lane = first_lane(active);                                                                             \
    const unsigned char *p = (const unsigned char *)(uintptr_t)(value[lane] + add);                                 \
    if (found == SHAPE_ROW) {                                                                                       \
      p -= (size_t)lane * total;                                                                                    \
      if (elements == 1) LOAD_ROW1(kind, cell, (cell *)exec_operand(x, a->data[0]), p, active);                     \
      else                                                                                                          \
        for (uint32_t e = 0; e < elements; e++)                                                                     \
          load_row_##kind((cell *)exec_operand(x, a->data[e]), p + e * bytes, total, active);                       \
    } else if (found == SHAPE_UNIFORM) {                                                                            \
      for (uint32_t e = 0; e < elements; e++)                                                                       \
        fill_##kind((cell *)exec_operand(x, a->data[e]), read_##kind(p + e * bytes), active);                       \
    } else {                                                                                                        \
      if (elements > 1) value = memcpy(saved, value, sizeof saved); /* a destination may be the address register */ \
      for (uint32_t e = 0; e < elements; e++)                                                                       \
        load_scatter_##kind((cell *)exec_operand(x, a->data[e]), value, add + e * bytes, active);                   \
    }                                                                                                               \
    after_load(w, a);                                                                                               \
  }                                                                                                                 \
  static void global_load_##kind##_1(exec_warp *x, const exec_instr *i) { global_load_##kind(x, i, 1); }            \
  static void global_load_##kind##_2(exec_warp *x, const exec_instr *i) { global_load_##kind(x, i, 2); }            \
  static void global_load_##kind##_4(exec_warp *x, const exec_instr *i) { global_load_##kind(x, i, 4); }

static void ISA(core_access_windows)(exec_warp *x, const exec_instr *i);
LOAD_KINDS(X)
#undef X

#define X(kind, memory, cell)                                                                              \
  INLINE void global_store_##kind(exec_warp *x, const exec_instr *i, const uint32_t elements) {            \
    core_warp *w = (core_warp *)x;                                                                         \
    const exec_access *a = i->side;                                                                        \
    const uint32_t bytes = (uint32_t)sizeof(memory), total = bytes * elements;                             \
    const uint64_t *value = exec_u64(x, i->src[0]);                                                        \
    uint64_t add = (uint64_t)i->immediate;                                                                 \
    uint32_t active = w->active;                                                                           \
    shape found = locate(w, i, value, total, true);                                                        \
    if (UNLIKELY(found == SHAPE_NONE)) {                                                                   \
      ISA(core_access_windows)(x, i);                                                                      \
      return;                                                                                              \
    }                                                                                                      \
    if (UNLIKELY(w->watched)) watch_shape(w, i, value, total, found);                                      \
    if (found == SHAPE_ROW) {                                                                              \
      uint32_t lane = first_lane(active);                                                                  \
      unsigned char *p = (unsigned char *)(uintptr_t)(value[lane] + add) - (size_t)lane * total;           \
      if (elements == 1) STORE_ROW1(kind, cell, p, (const cell *)exec_operand(x, a->data[0]), active);     \
      else                                                                                                 \
        for (uint32_t e = 0; e < elements; e++)                                                            \
          store_row_##kind(p + e * bytes, (const cell *)exec_operand(x, a->data[e]), total, active);       \
    } else if (found == SHAPE_UNIFORM) {                                                                   \
      uint32_t lane = last_lane(active); /* in lane order: the last one stays */                           \
      unsigned char *p = (unsigned char *)(uintptr_t)(value[lane] + add);                                  \
      for (uint32_t e = 0; e < elements; e++)                                                              \
        write_##kind(p + e * bytes, ((const cell *)exec_operand(x, a->data[e]))[lane]);                    \
    } else {                                                                                               \
      for (uint32_t e = 0; e < elements; e++)                                                              \
        store_scatter_##kind(value, add + e * bytes, (const cell *)exec_operand(x, a->data[e]), active);   \
    }                                                                                                      \
    w->accesses++;                                                                                         \
  }                                                                                                        \
  static void global_store_##kind##_1(exec_warp *x, const exec_instr *i) { global_store_##kind(x, i, 1); } \
  static void global_store_##kind##_2(exec_warp *x, const exec_instr *i) { global_store_##kind(x, i, 2); } \
  static void global_store_##kind##_4(exec_warp *x, const exec_instr *i) { global_store_##kind(x, i, 4); }
STORE_KINDS(X)
#undef X

/* ---- shared memory ---- */

/* Offsets in shared memory as 32 bits; false: some lane's do not fit. base is subtracted first (the generic window). */
INLINE bool narrow(const core_warp *w, const uint64_t *value, uint64_t base, uint64_t add, uint32_t *offset) {
  if (lanes_outside64(value, base - add, UINT32_MAX) & w->active) return false;
  EVERY_LANE offset[l] = (uint32_t)(value[l] - base);
  return true;
}

/* Good: aligned and in bounds for every active lane. */
INLINE bool shared_good(const core_warp *w, const uint32_t *offset, uint32_t add, uint32_t total) {
  if (UNLIKELY(w->shared_bytes < total)) return false;
  return !(lanes_bad32(offset, add, w->shared_bytes - total, total - 1) & w->active);
}

/* The access stream: a row or one cell for each half of the warp is settled here; anything else is counted bank by
 * bank. Two halves are one pass if they are the same row or cell, or use different banks. */
INLINE void trace_shared(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t total) {
  if (total == 4 && w->active == UINT32_MAX) {
    uint32_t step = offset[1] - offset[0], apart = (offset[16] - offset[0]) / 4 % 32;
    uint32_t off = lanes_off_row32(offset, offset[0], step) & 0xffff;
    off |= lanes_off_row32(offset, offset[16] - 16 * step, step) & 0xffff0000;
    if ((step == 4 || step == 0) && !off) {
      if (offset[0] == offset[16] || (step ? apart == 16 : apart != 0)) return;
      core_trace_passes(w, i, 1);
      return;
    }
  }
  core_trace_shared(w, i, offset, total, w->active);
}

#if EXEC_ISA_avx512
#define PIECE 16u
#else
#define PIECE 8u
#endif

/* 32-bit cells, all lanes: each piece of the warp is a row, one cell, or scattered. */
INLINE void shared_load_pieces(uint32_t *to, const unsigned char *base, const uint32_t *value, uint32_t add) {
  for (uint32_t piece = 0; piece < 32; piece += PIECE) {
    const uint32_t *v = value + piece;
    const unsigned char *p = base + (uint32_t)(v[0] + add);
    uint32_t step = v[1] - v[0];
    if (step == 4 || step == 0) {
      uint32_t off = 0;
#if EXEC_ISA_avx512
      __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
      __m512i want =
          _mm512_add_epi32(_mm512_set1_epi32((int)v[0]), _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)step)));
      off = _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(v), want);
#else
      for (uint32_t l = 0; l < PIECE; l++) off |= v[l] ^ (v[0] + l * step);
#endif
      if (LIKELY(!off)) {
        if (step) memcpy(to + piece, p, PIECE * 4);
        else {
          uint32_t cell = read_b32(p);
          for (uint32_t l = 0; l < PIECE; l++) to[piece + l] = cell;
        }
        continue;
      }
    }
    for (uint32_t l = 0; l < PIECE; l++) to[piece + l] = read_b32(base + (uint32_t)(v[l] + add));
  }
}

#define X(kind, memory, cell, from)                                                                                 \
  INLINE void shared_load_at_##kind(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t add,        \
                                    const uint32_t elements) {                                                      \
    const exec_access *a = i->side;                                                                                 \
    const uint32_t bytes = (uint32_t)sizeof(memory), total = bytes * elements;                                      \
    uint32_t saved[32];                                                                                             \
    if (UNLIKELY(!shared_good(w, offset, add, total))) {                                                            \
      core_access_lanes(&w->x, i);                                                                                  \
      return;                                                                                                       \
    }                                                                                                               \
    if (UNLIKELY(w->trace != NULL)) trace_shared(w, i, offset, total);                                              \
    if (sizeof(memory) == 4 && sizeof(cell) == 4 && elements == 1 && LIKELY(w->active == UINT32_MAX)) {             \
      shared_load_pieces((uint32_t *)exec_operand(&w->x, a->data[0]), w->shared, offset, add);                      \
    } else {                                                                                                        \
      if (elements > 1) offset = memcpy(saved, offset, sizeof saved);                                               \
      for (uint32_t e = 0; e < elements; e++)                                                                       \
        load_offset_##kind((cell *)exec_operand(&w->x, a->data[e]), w->shared, offset, add + e * bytes, w->active); \
    }                                                                                                               \
    if (UNLIKELY(a->poll)) core_poll(w);                                                                            \
  }                                                                                                                 \
  INLINE void shared_load_##kind(exec_warp *x, const exec_instr *i, const uint32_t elements) {                      \
    core_warp *w = (core_warp *)x;                                                                                  \
    const exec_access *a = i->side;                                                                                 \
    uint32_t offset[32];                                                                                            \
    if (LIKELY(!a->wide)) shared_load_at_##kind(w, i, exec_u32(x, i->src[0]), (uint32_t)i->immediate, elements);    \
    else if (narrow(w, exec_u64(x, i->src[0]), 0, (uint64_t)i->immediate, offset))                                  \
      shared_load_at_##kind(w, i, offset, (uint32_t)i->immediate, elements);                                        \
    else core_access_lanes(x, i);                                                                                   \
  }                                                                                                                 \
  static void shared_load_##kind##_1(exec_warp *x, const exec_instr *i) { shared_load_##kind(x, i, 1); }            \
  static void shared_load_##kind##_2(exec_warp *x, const exec_instr *i) { shared_load_##kind(x, i, 2); }            \
  static void shared_load_##kind##_4(exec_warp *x, const exec_instr *i) { shared_load_##kind(x, i, 4); }
LOAD_KINDS(X)
#undef X

#define X(kind, memory, cell)                                                                                        \
  INLINE void shared_store_at_##kind(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t add,        \
                                     const uint32_t elements) {                                                      \
    const exec_access *a = i->side;                                                                                  \
    const uint32_t bytes = (uint32_t)sizeof(memory), total = bytes * elements;                                       \
    if (UNLIKELY(!shared_good(w, offset, add, total))) {                                                             \
      core_access_lanes(&w->x, i);                                                                                   \
      return;                                                                                                        \
    }                                                                                                                \
    if (UNLIKELY(w->trace != NULL)) trace_shared(w, i, offset, total);                                               \
    if (elements == 1 && sizeof(memory) == 4 && !lanes_off_row32(offset, offset[0], 4) && w->active == UINT32_MAX) { \
      STORE_ROW1(kind, cell, w->shared + (uint32_t)(offset[0] + add), (const cell *)exec_operand(&w->x, a->data[0]), \
                 UINT32_MAX);                                                                                        \
      return;                                                                                                        \
    }                                                                                                                \
    for (uint32_t e = 0; e < elements; e++)                                                                          \
      store_offset_##kind(w->shared, offset, add + e * bytes, (const cell *)exec_operand(&w->x, a->data[e]),         \
                          w->active);                                                                                \
  }                                                                                                                  \
  INLINE void shared_store_##kind(exec_warp *x, const exec_instr *i, const uint32_t elements) {                      \
    core_warp *w = (core_warp *)x;                                                                                   \
    const exec_access *a = i->side;                                                                                  \
    uint32_t offset[32];                                                                                             \
    if (LIKELY(!a->wide)) shared_store_at_##kind(w, i, exec_u32(x, i->src[0]), (uint32_t)i->immediate, elements);    \
    else if (narrow(w, exec_u64(x, i->src[0]), 0, (uint64_t)i->immediate, offset))                                   \
      shared_store_at_##kind(w, i, offset, (uint32_t)i->immediate, elements);                                        \
    else core_access_lanes(x, i);                                                                                    \
  }                                                                                                                  \
  static void shared_store_##kind##_1(exec_warp *x, const exec_instr *i) { shared_store_##kind(x, i, 1); }           \
  static void shared_store_##kind##_2(exec_warp *x, const exec_instr *i) { shared_store_##kind(x, i, 2); }           \
  static void shared_store_##kind##_4(exec_warp *x, const exec_instr *i) { shared_store_##kind(x, i, 4); }
STORE_KINDS(X)
#undef X

/* ---- local memory ---- */

static void local_access(exec_warp *x, const exec_instr *i) {
  if (!local_try((core_warp *)x, i, 0)) core_access_lanes(x, i);
}

/* A generic access that is not in one allocation: all lanes in the shared or the local window, or a mixture. */
static void ISA(core_access_windows)(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  uint32_t offset[32], total = (uint32_t)a->bytes * a->elements;
  bool plain = a->elements == 1 && a->bytes == a->slot_bytes && (a->bytes == 4 || a->bytes == 8);
  if (a->space == PTX_SPACE_GENERIC && a->op != EXEC_OP_ATOMIC) {
    uint64_t address = exec_u64(x, i->src[0])[first_lane(w->active)] + (uint64_t)i->immediate;
    if (address - EXEC_LOCAL_WINDOW < EXEC_WINDOW_BYTES) {
      if (local_try(w, i, EXEC_LOCAL_WINDOW)) return;
    } else if (plain && address - EXEC_SHARED_WINDOW < EXEC_WINDOW_BYTES) {
      uint32_t add = (uint32_t)i->immediate;
      if (narrow(w, exec_u64(x, i->src[0]), EXEC_SHARED_WINDOW, (uint64_t)i->immediate, offset) &&
          shared_good(w, offset, add, total)) {
        if (a->op == EXEC_OP_LOAD && a->bytes == 4) shared_load_at_b32(w, i, offset, add, 1);
        else if (a->op == EXEC_OP_LOAD) shared_load_at_b64(w, i, offset, add, 1);
        else if (a->bytes == 4) shared_store_at_b32(w, i, offset, add, 1);
        else shared_store_at_b64(w, i, offset, add, 1);
        return;
      }
    }
  }
  core_access_lanes(x, i);
}

/* ---- atomics ---- */

/* False: some lane's cell is outside of shared memory, or not aligned; nothing has happened. */
INLINE bool shared_atomic_at(core_warp *w, const exec_instr *i, const uint32_t *offset, uint32_t add) {
  const exec_access *a = i->side;
  if (UNLIKELY(!shared_good(w, offset, add, a->bytes))) return false;
  if (UNLIKELY(w->trace != NULL)) core_trace_shared_atomic(w, i, offset, a->bytes, w->active);
  void *address[32];
  EVERY_LANE address[l] = w->shared + (uint32_t)(offset[l] + add);
  core_atomic(w, i, a->atomic_shared, address, w->active, true);
  return true;
}

static void shared_atomic(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  uint32_t narrowed[32];
  const uint32_t *offset = a->wide ? narrowed : exec_u32(x, i->src[0]);
  if (a->wide && !narrow(w, exec_u64(x, i->src[0]), 0, (uint64_t)i->immediate, narrowed)) offset = NULL;
  if (UNLIKELY(!offset || !shared_atomic_at(w, i, offset, (uint32_t)i->immediate))) core_access_lanes(x, i);
}

/* A generic address: is it the block's shared memory for all lanes? As far as the first says. */
INLINE bool generic_shared_atomic(core_warp *w, const exec_instr *i, const uint64_t *value) {
  uint32_t offset[32];
  uint64_t address = value[first_lane(w->active)] + (uint64_t)i->immediate;
  return address - EXEC_SHARED_WINDOW < EXEC_WINDOW_BYTES &&
         narrow(w, value, EXEC_SHARED_WINDOW, (uint64_t)i->immediate, offset) &&
         shared_atomic_at(w, i, offset, (uint32_t)i->immediate);
}

static void global_atomic(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  const uint64_t *value = exec_u64(x, i->src[0]);
  if (a->space == PTX_SPACE_GENERIC && generic_shared_atomic(w, i, value)) return;
  shape found = locate(w, i, value, a->bytes, true);
  if (UNLIKELY(found == SHAPE_NONE)) {
    core_access_lanes(x, i);
    return;
  }
  if (UNLIKELY(w->watched)) watch_shape(w, i, value, a->bytes, found);
  void *address[32];
  EVERY_LANE address[l] = (void *)(uintptr_t)(value[l] + (uint64_t)i->immediate);
  core_atomic(w, i, a->atomic, address, w->active, false);
  w->accesses++;
}

/* ---- kernel parameters: one value for all lanes ---- */

static void param_load(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_access *a = i->side;
  const unsigned char *p = w->params + i->immediate;
  for (uint32_t e = 0; e < a->elements; e++, p += a->bytes) {
    uint64_t value = 0;
    memcpy(&value, p, a->bytes > 8 ? 8 : a->bytes);
    if (a->sign && a->bytes < 8) {
      uint32_t unused = 64 - 8u * a->bytes;
      value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    if (a->to16) value &= 0xffff;
    if (a->slot_bytes == 4) {
      lanes_fill32(exec_u32(x, a->data[e]), (uint32_t)value, w->x.mask);
      continue;
    }
    lanes_fill64(exec_u64(x, a->data[e]), value, w->x.mask);
    if (a->slot_bytes != 16) continue;
    memcpy(&value, p + 8, 8);
    lanes_fill64(exec_u64(x, a->data[e]) + EXEC_LANES, value, w->x.mask);
  }
}

/* ---- choosing ---- */

typedef struct access_row {
  uint8_t op, bytes, slot_bytes, sign, to16;
  exec_handler global[3], shared[3];
} access_row;

#define LOAD_ROW(kind, bytes, slot, sign, to16)                                                                        \
  {                                                                                                                    \
    EXEC_OP_LOAD, bytes, slot, sign, to16, {global_load_##kind##_1, global_load_##kind##_2, global_load_##kind##_4}, { \
      shared_load_##kind##_1, shared_load_##kind##_2, shared_load_##kind##_4                                           \
    }                                                                                                                  \
  }
#define STORE_ROW(kind, bytes, slot)                                                                                 \
  {                                                                                                                  \
    EXEC_OP_STORE, bytes, slot, 0, 0, {global_store_##kind##_1, global_store_##kind##_2, global_store_##kind##_4}, { \
      shared_store_##kind##_1, shared_store_##kind##_2, shared_store_##kind##_4                                      \
    }                                                                                                                \
  }

static const access_row rows[] = {
    LOAD_ROW(b32, 4, 4, 0, 0),  LOAD_ROW(b32, 4, 4, 1, 0),  LOAD_ROW(b64, 8, 8, 0, 0),  LOAD_ROW(b64, 8, 8, 1, 0),
    LOAD_ROW(u8, 1, 4, 0, 0),   LOAD_ROW(u8, 1, 4, 0, 1),   LOAD_ROW(u16, 2, 4, 0, 0),  LOAD_ROW(u16, 2, 4, 0, 1),
    LOAD_ROW(u16, 2, 4, 1, 1),  LOAD_ROW(s8, 1, 4, 1, 0),   LOAD_ROW(s8h, 1, 4, 1, 1),  LOAD_ROW(s16, 2, 4, 1, 0),
    LOAD_ROW(u8w, 1, 8, 0, 0),  LOAD_ROW(u16w, 2, 8, 0, 0), LOAD_ROW(u32w, 4, 8, 0, 0), LOAD_ROW(s8w, 1, 8, 1, 0),
    LOAD_ROW(s16w, 2, 8, 1, 0), LOAD_ROW(s32w, 4, 8, 1, 0), STORE_ROW(b8, 1, 4),        STORE_ROW(b16, 2, 4),
    STORE_ROW(b32, 4, 4),       STORE_ROW(b64, 8, 8),       STORE_ROW(b8w, 1, 8),       STORE_ROW(b16w, 2, 8),
    STORE_ROW(b32w, 4, 8),
};

static exec_handler find_row(const exec_access *a) {
  if (a->elements > 4 || (a->whole && a->space != PTX_SPACE_SHARED)) return core_access_lanes;
  uint32_t width = a->elements == 4 ? 2 : a->elements - 1u;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    const access_row *row = &rows[r];
    if (row->op != a->op || row->bytes != a->bytes || row->slot_bytes != a->slot_bytes) continue;
    if (a->op == EXEC_OP_LOAD && (row->sign != a->sign || row->to16 != a->to16)) continue;
    return a->space == PTX_SPACE_SHARED ? row->shared[width] : row->global[width];
  }
  return core_access_lanes;
}

void ISA(exec_choose_access)(const exec_access *a, exec_handler run[2]) {
  exec_handler chosen = core_access_lanes;
  if (a->space == PTX_SPACE_PARAM) chosen = param_load;
  else if (a->space == PTX_SPACE_LOCAL) chosen = local_access;
  else if (a->op == EXEC_OP_ATOMIC && a->bytes <= 8)
    chosen = a->space == PTX_SPACE_SHARED ? shared_atomic : a->wide ? global_atomic : core_access_lanes;
  else if (a->space == PTX_SPACE_SHARED || a->wide) chosen = find_row(a);
  run[0] = run[1] = chosen;
}
