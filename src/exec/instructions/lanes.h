/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about 32 lane values at once, answered as a mask (bit l: lane l), and moves under a mask.
 * Included by *.isa.c files only: each instruction set gets its own version of these inline functions. */
#ifndef FF_EXEC_LANES_H
#define FF_EXEC_LANES_H

#include <stdint.h>
#include <string.h>

#if EXEC_ISA_avx2 || EXEC_ISA_avx512
#include <immintrin.h>
#endif

#define LANES_JOIN_(a, b) a##_##b
#define LANES_JOIN(a, b) LANES_JOIN_(a, b)
#define ISA(name) LANES_JOIN(name, EXEC_ISA)

#define INLINE static inline __attribute__((always_inline, unused))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__clang__)
#define EVERY_LANE _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < 32; l++)
#else
#define EVERY_LANE _Pragma("GCC ivdep") for (int l = 0; l < 32; l++)
#endif
#define EACH_LANE(mask) for (uint32_t m_ = (mask), l = 0; m_ && (l = (uint32_t)__builtin_ctz(m_), 1); m_ &= m_ - 1)

/* Lanes whose value is not first + lane * stride. */
INLINE uint32_t lanes_off_row64(const uint64_t *value, uint64_t first, uint64_t stride) {
#if EXEC_ISA_avx512
  uint32_t off = 0;
  const __m512i iota = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  __m512i want = _mm512_add_epi64(_mm512_set1_epi64((long long)first),
                                  _mm512_mullo_epi64(iota, _mm512_set1_epi64((long long)stride)));
  const __m512i step = _mm512_set1_epi64((long long)(8 * stride));
  for (int v = 0; v < 4; v++) {
    off |= (uint32_t)_mm512_cmpneq_epi64_mask(_mm512_loadu_si512(value + 8 * v), want) << (8 * v);
    want = _mm512_add_epi64(want, step);
  }
  return off;
#elif EXEC_ISA_avx2
  uint32_t on = 0;
  __m256i want =
      _mm256_add_epi64(_mm256_set1_epi64x((long long)first),
                       _mm256_set_epi64x((long long)(3 * stride), (long long)(2 * stride), (long long)stride, 0));
  const __m256i step = _mm256_set1_epi64x((long long)(4 * stride));
  for (int v = 0; v < 8; v++) {
    __m256i equal = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(value + 4 * v)), want);
    on |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(equal)) << (4 * v);
    want = _mm256_add_epi64(want, step);
  }
  return ~on;
#else
  uint32_t off = 0;
  for (uint32_t l = 0; l < 32; l++) off |= (uint32_t)(value[l] != first + l * stride) << l;
  return off;
#endif
}

/* Lanes with value - low > span, unsigned. */
INLINE uint32_t lanes_outside64(const uint64_t *value, uint64_t low, uint64_t span) {
#if EXEC_ISA_avx512
  uint32_t out = 0;
  const __m512i lows = _mm512_set1_epi64((long long)low), spans = _mm512_set1_epi64((long long)span);
  for (int v = 0; v < 4; v++)
    out |= (uint32_t)_mm512_cmpgt_epu64_mask(_mm512_sub_epi64(_mm512_loadu_si512(value + 8 * v), lows), spans)
           << (8 * v);
  return out;
#elif EXEC_ISA_avx2
  uint32_t out = 0;
  const __m256i sign = _mm256_set1_epi64x(INT64_MIN), lows = _mm256_set1_epi64x((long long)(low ^ (UINT64_C(1) << 63)));
  const __m256i spans = _mm256_xor_si256(_mm256_set1_epi64x((long long)span), sign);
  for (int v = 0; v < 8; v++) { /* a - (low ^ sign) == (a - low) ^ sign */
    __m256i distance = _mm256_sub_epi64(_mm256_loadu_si256((const __m256i *)(value + 4 * v)), lows);
    out |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(distance, spans))) << (4 * v);
  }
  return out;
#else
  uint32_t out = 0;
  for (uint32_t l = 0; l < 32; l++) out |= (uint32_t)(value[l] - low > span) << l;
  return out;
#endif
}

/* Lanes with any of `bits` set in value + add. */
INLINE uint32_t lanes_with64(const uint64_t *value, uint64_t add, uint64_t bits) {
#if EXEC_ISA_avx512
  uint32_t with = 0;
  const __m512i adds = _mm512_set1_epi64((long long)add), wanted = _mm512_set1_epi64((long long)bits);
  for (int v = 0; v < 4; v++)
    with |= (uint32_t)_mm512_test_epi64_mask(_mm512_add_epi64(_mm512_loadu_si512(value + 8 * v), adds), wanted)
            << (8 * v);
  return with;
#elif EXEC_ISA_avx2
  uint32_t without = 0;
  const __m256i adds = _mm256_set1_epi64x((long long)add), wanted = _mm256_set1_epi64x((long long)bits);
  for (int v = 0; v < 8; v++) {
    __m256i rest =
        _mm256_and_si256(_mm256_add_epi64(_mm256_loadu_si256((const __m256i *)(value + 4 * v)), adds), wanted);
    without |= (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(rest, _mm256_setzero_si256())))
               << (4 * v);
  }
  return ~without;
#else
  uint32_t with = 0;
  for (uint32_t l = 0; l < 32; l++) with |= (uint32_t)(((value[l] + add) & bits) != 0) << l;
  return with;
#endif
}

/* The same for 32-bit values, with value + add throughout. */
INLINE uint32_t lanes_off_row32(const uint32_t *value, uint32_t first, uint32_t stride) {
#if EXEC_ISA_avx512
  const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  __m512i want =
      _mm512_add_epi32(_mm512_set1_epi32((int)first), _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)stride)));
  uint32_t low = _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(value), want);
  want = _mm512_add_epi32(want, _mm512_set1_epi32((int)(16 * stride)));
  return low | (uint32_t)_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(value + 16), want) << 16;
#elif EXEC_ISA_avx2
  uint32_t on = 0;
  const __m256i iota = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), step = _mm256_set1_epi32((int)(8 * stride));
  __m256i want =
      _mm256_add_epi32(_mm256_set1_epi32((int)first), _mm256_mullo_epi32(iota, _mm256_set1_epi32((int)stride)));
  for (int v = 0; v < 4; v++) {
    __m256i equal = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(value + 8 * v)), want);
    on |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(equal)) << (8 * v);
    want = _mm256_add_epi32(want, step);
  }
  return ~on;
#else
  uint32_t off = 0;
  for (uint32_t l = 0; l < 32; l++) off |= (uint32_t)(value[l] != first + l * stride) << l;
  return off;
#endif
}

/* Lanes where value + add > limit (unsigned) or has any of `bits` set. */
INLINE uint32_t lanes_bad32(const uint32_t *value, uint32_t add, uint32_t limit, uint32_t bits) {
#if EXEC_ISA_avx512
  const __m512i adds = _mm512_set1_epi32((int)add), limits = _mm512_set1_epi32((int)limit),
                wanted = _mm512_set1_epi32((int)bits);
  __m512i a = _mm512_add_epi32(_mm512_loadu_si512(value), adds),
          b = _mm512_add_epi32(_mm512_loadu_si512(value + 16), adds);
  uint32_t low = _mm512_cmpgt_epu32_mask(a, limits) | _mm512_test_epi32_mask(a, wanted);
  uint32_t high = _mm512_cmpgt_epu32_mask(b, limits) | _mm512_test_epi32_mask(b, wanted);
  return low | high << 16;
#elif EXEC_ISA_avx2
  uint32_t good = 0;
  const __m256i adds = _mm256_set1_epi32((int)add), limits = _mm256_set1_epi32((int)limit),
                wanted = _mm256_set1_epi32((int)bits);
  for (int v = 0; v < 4; v++) {
    __m256i a = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(value + 8 * v)), adds);
    __m256i inside = _mm256_cmpeq_epi32(_mm256_min_epu32(a, limits), a);
    __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(a, wanted), _mm256_setzero_si256());
    good |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_and_si256(inside, even))) << (8 * v);
  }
  return ~good;
#else
  uint32_t bad = 0;
  for (uint32_t l = 0; l < 32; l++) bad |= (uint32_t)(value[l] + add > limit || ((value[l] + add) & bits)) << l;
  return bad;
#endif
}

/* mask as 32 int32: 0 or -1. */
INLINE void lanes_expand(uint32_t mask, int32_t *lanes) {
#if EXEC_ISA_avx512
  _mm512_store_si512(lanes, _mm512_maskz_set1_epi32((__mmask16)mask, -1));
  _mm512_store_si512(lanes + 16, _mm512_maskz_set1_epi32((__mmask16)(mask >> 16), -1));
#else
  EVERY_LANE lanes[l] = -(int32_t)(mask >> l & 1);
#endif
}

/* to[l] = value for the lanes of the mask. */
INLINE void lanes_fill32(uint32_t *to, uint32_t value, uint32_t mask) {
  if (LIKELY(mask == UINT32_MAX)) {
    EVERY_LANE to[l] = value;
    return;
  }
#if EXEC_ISA_avx512
  _mm512_mask_storeu_epi32(to, (__mmask16)mask, _mm512_set1_epi32((int)value));
  _mm512_mask_storeu_epi32(to + 16, (__mmask16)(mask >> 16), _mm512_set1_epi32((int)value));
#else
  EACH_LANE(mask) to[l] = value;
#endif
}
INLINE void lanes_fill64(uint64_t *to, uint64_t value, uint32_t mask) {
  if (LIKELY(mask == UINT32_MAX)) {
    EVERY_LANE to[l] = value;
    return;
  }
#if EXEC_ISA_avx512
  for (int v = 0; v < 4; v++)
    _mm512_mask_storeu_epi64(to + 8 * v, (__mmask8)(mask >> (8 * v)), _mm512_set1_epi64((long long)value));
#else
  EACH_LANE(mask) to[l] = value;
#endif
}

/* to[l] = from[l] for the lanes of the mask; neither side is touched for the others (they may not be mapped, or belong
 * to another thread, which writes them now). */
INLINE void lanes_copy32(uint32_t *to, const uint32_t *from, uint32_t mask) {
  if (LIKELY(mask == UINT32_MAX)) {
    memcpy(to, from, 128);
    return;
  }
#if EXEC_ISA_avx512
  _mm512_mask_storeu_epi32(to, (__mmask16)mask, _mm512_maskz_loadu_epi32((__mmask16)mask, from));
  _mm512_mask_storeu_epi32(to + 16, (__mmask16)(mask >> 16),
                           _mm512_maskz_loadu_epi32((__mmask16)(mask >> 16), from + 16));
#elif EXEC_ISA_avx2
  const __m256i bit = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
  for (int v = 0; v < 4; v++) {
    __m256i wanted = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)(mask >> (8 * v))), bit), bit);
    _mm256_maskstore_epi32((int *)to + 8 * v, wanted, _mm256_maskload_epi32((const int *)from + 8 * v, wanted));
  }
#else
  EACH_LANE(mask) to[l] = from[l];
#endif
}
INLINE void lanes_copy64(uint64_t *to, const uint64_t *from, uint32_t mask) {
  if (LIKELY(mask == UINT32_MAX)) {
    memcpy(to, from, 256);
    return;
  }
#if EXEC_ISA_avx512
  for (int v = 0; v < 4; v++) {
    __mmask8 wanted = (__mmask8)(mask >> (8 * v));
    _mm512_mask_storeu_epi64(to + 8 * v, wanted, _mm512_maskz_loadu_epi64(wanted, from + 8 * v));
  }
#elif EXEC_ISA_avx2
  const __m256i bit = _mm256_set_epi64x(8, 4, 2, 1);
  for (int v = 0; v < 8; v++) {
    __m256i wanted = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((long long)(mask >> (4 * v))), bit), bit);
    _mm256_maskstore_epi64((long long *)to + 4 * v, wanted,
                           _mm256_maskload_epi64((const long long *)from + 4 * v, wanted));
  }
#else
  EACH_LANE(mask) to[l] = from[l];
#endif
}

#endif
