/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors, LRU. */
#ifndef FF_MACHINE_MEMORY_CACHE_H
#define FF_MACHINE_MEMORY_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "machine/time.h"
#include "trace/stream.h"

static inline uint32_t sector_count(uint32_t mask) { /* of four sectors */
  static const uint8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[mask & 15];
}

typedef struct cache_line {
  uint64_t tag;                  /* 0: empty */
  ps ready;                      /* when the pending sectors arrive */
  uint8_t valid, dirty, pending; /* sector masks; pending is part of valid */
  uint8_t priority;              /* trace_l2_priority: PLAIN, FIRST or LAST; of an empty line PLAIN */
  uint32_t filled;               /* machines with stacks: versions_now when it became this line */
} cache_line;
enum { CACHE_FEW_WAYS = 64 };
typedef struct cache_ring {
  uint32_t newer, older, next;
} cache_ring;
typedef struct cache_dirt { /* of a set: its dirty lines, and where the last one was that had to be written back */
  uint32_t lines, hand;
} cache_dirt;
typedef struct cache {
  cache_line *lines; /* sets x ways */
  /* Few ways: for each set a byte for each way that says which tags it may have (by a hash of the tag; 0: it is empty),
   * and behind `half` bytes another one for each that says when it was used: 0 is the youngest, each way's is another,
   * and that of no way is CACHE_NO_WAY. NULL: */
  uint8_t *few;
  cache_ring *rings; /* many ways: each set's lines in order of use, and what hangs behind them in a bucket */
  uint32_t *buckets; /* many ways: line + 1 by hash of the tag */
  cache_dirt *dirt;  /* per set; NULL: all lines may be dirty */
  divider sets;
  uint64_t room; /* sets that it began with; `sets` are the first of them */
  uint32_t ways; /* of each set */
  uint32_t half; /* few ways: 8, 16, 32 or 64, no less than `ways` */
  uint32_t bucket_mask;
  uint32_t dirty_ways; /* with `dirt`: of a set, how many may be */
  bool ranks;          /* a line may have a priority: cache_take_ranked */
} cache;
void cache_init(cache *c, arena *a, uint64_t bytes, uint64_t ways);
/* From now on this share of each set's lines may be dirty, at least one. For a cache that keeps its size. */
void cache_limit_dirty(cache *c, arena *a, double share);
/* From now on it has as many sets as `bytes` hold, at least one and no more than it began with; it is empty then. */
void cache_resize(cache *c, uint64_t bytes);
cache_line *cache_find(cache *c, uint32_t set, uint64_t tag); /* NULL: absent */
/* The line to replace (an empty one, else the least recently used); its old tag in *tag. */
cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag);
/* The set's line now holds nothing of `tag` (0: is empty). */
void cache_retag(cache *c, uint32_t set, cache_line *line, uint64_t tag);
/* These sectors of the set's line are dirty from now on. Returns those of *tag that are not any more, and have to be
 * written back: of another line of the set, by turns, if more of them would be dirty than may; else 0. */
uint8_t cache_write(cache *c, uint32_t set, cache_line *line, uint8_t sectors, uint64_t *tag);
void cache_clear(cache *c);
void cache_drop(cache *c, uint64_t first_tag, uint64_t count); /* all lines with one of so many tags are empty now */

/* The line of `tag`, which becomes the youngest: cache_find, and where that finds none cache_victim and cache_retag in
 * one. */
typedef struct cache_taken {
  cache_line *line;
  bool fresh;        /* it was another line, or empty: all of it but `ready` and `pending` is cleared, and it was */
  uint8_t old_dirty; /* these sectors */
  uint64_t old_tag;  /* of that one; 0: empty */
} cache_taken;
static inline void cache_take(cache *c, uint32_t set, uint64_t tag, cache_taken *t);

/* ---- what is inline, as every line goes through it ---- */

static inline uint8_t *cache_prints(const cache *c, uint32_t set) { return c->few + (uint64_t)set * 2 * c->half; }
static inline int8_t *cache_ages(const cache *c, uint32_t set) { return (int8_t *)cache_prints(c, set) + c->half; }

#if defined(__SSE2__)
static inline uint64_t cache_equal(const __m128i *bytes, __m128i wanted) {
  return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(bytes), wanted));
}
#endif

/* A bit for each way whose byte is the value. */
static inline uint64_t cache_ways_with(const cache *c, const void *bytes, uint8_t value) {
  uint64_t found = 0;
#if defined(__SSE2__)
  __m128i wanted = _mm_set1_epi8((char)value);
  const __m128i *piece = bytes;
  if (c->half == 8) {
    found = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadl_epi64(piece), wanted));
  } else {
    found = cache_equal(piece, wanted);
    if (c->half > 16) found |= cache_equal(piece + 1, wanted) << 16;
    if (c->half > 32) found |= cache_equal(piece + 2, wanted) << 32 | cache_equal(piece + 3, wanted) << 48;
  }
#else
  for (uint32_t w = 0; w < c->ways; w++) found |= (uint64_t)(((const uint8_t *)bytes)[w] == value) << w;
#endif
  return found & UINT64_MAX >> (CACHE_FEW_WAYS - c->ways);
}

static inline uint8_t cache_print(uint64_t tag) {
  uint8_t hash = (uint8_t)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 56);
  return hash ? hash : 1;
}

#if defined(__SSE2__)
static inline __m128i cache_older(__m128i ages, __m128i was) {
  __m128i older = _mm_sub_epi8(ages, _mm_cmpgt_epi8(was, ages));
  return _mm_andnot_si128(_mm_cmpeq_epi8(ages, was), older);
}
static inline void cache_make_older(__m128i *ages, __m128i was) {
  _mm_store_si128(ages, cache_older(_mm_load_si128(ages), was));
}
#endif

/* Ways that were younger are older by one now. All ages are written at once, as they are read: a byte of them that is
 * written alone would hold the next read of them up. */
static inline void cache_use_way(cache *c, uint32_t set, uint32_t way) {
  int8_t *ages = cache_ages(c, set), before = ages[way];
  if (!before) return;
#if defined(__SSE2__)
  __m128i *piece = (__m128i *)(void *)ages, was = _mm_set1_epi8(before);
  if (c->half == 8) {
    _mm_storel_epi64(piece, cache_older(_mm_loadl_epi64(piece), was));
    return;
  }
  cache_make_older(piece, was);
  if (c->half > 16) cache_make_older(piece + 1, was);
  if (c->half > 32) cache_make_older(piece + 2, was);
  if (c->half > 32) cache_make_older(piece + 3, was);
#else
  for (uint32_t w = 0; w < c->ways; w++) ages[w] = ages[w] == before ? 0 : (int8_t)(ages[w] + (ages[w] < before));
#endif
}

/* An empty way, else the oldest. */
static inline uint32_t cache_way_to_go(const cache *c, uint32_t set) {
  uint64_t ways = cache_ways_with(c, cache_prints(c, set), 0);
  if (!ways) ways = cache_ways_with(c, cache_ages(c, set), (uint8_t)(c->ways - 1));
  return (uint32_t)__builtin_ctzll(ways);
}

static inline uint32_t *cache_bucket(const cache *c, uint64_t tag) {
  uint64_t hash = tag * UINT64_C(0x9e3779b97f4a7c15);
  return &c->buckets[hash >> 32 & c->bucket_mask];
}

/* Ask the host's caches for what cache_find(c, set, tag) and cache_victim will read: `far` first, `near` some lines
 * later. (gcc drops calls of functions that do nothing else: they must be no calls.) */
__attribute__((always_inline)) static inline void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag) {
  if (!c->few) {
    __builtin_prefetch(cache_bucket(c, tag));
    return;
  }
  __builtin_prefetch(cache_prints(c, set));
  if (c->half == CACHE_FEW_WAYS) __builtin_prefetch(cache_ages(c, set)); /* a line of the host's each */
}

__attribute__((always_inline)) static inline void cache_prefetch_near(const cache *c, uint32_t set, uint64_t tag) {
  if (c->few) {
    uint64_t ways = cache_ways_with(c, cache_prints(c, set), cache_print(tag));
    uint32_t way = ways ? (uint32_t)__builtin_ctzll(ways) : cache_way_to_go(c, set);
    const cache_line *line = &c->lines[(uint64_t)set * c->ways + way];
    __builtin_prefetch(line);
    __builtin_prefetch(&line->filled); /* every fourth lies in two lines of the host's */
    return;
  }
  uint32_t at = *cache_bucket(c, tag);
  if (!at) return;
  __builtin_prefetch(&c->rings[at - 1]);
  __builtin_prefetch(&c->lines[at - 1]);
}

/* cache_take for a cache in which lines have priorities, and for an access with one: of a set's lines those that are
 * FIRST go first, and at most `lasts` that are LAST go last; another one becomes LAST in the place of the oldest of
 * these. A line that is found keeps its priority if `priority` is PLAIN. */
void cache_take_ranked(cache *c, uint32_t set, uint64_t tag, trace_l2_priority priority, uint32_t lasts,
                       cache_taken *t);
void cache_forget_last(cache *c); /* no line is LAST any more */

void cache_take_hashed(cache *c, uint32_t set, uint64_t tag, cache_taken *t); /* a cache of many ways */
bool cache_set_is_whole(const cache *c, uint32_t set); /* of few ways: their ages are 0 to ways - 1, each once */

__attribute__((always_inline)) static inline void cache_take(cache *c, uint32_t set, uint64_t tag, cache_taken *t) {
  if (__builtin_expect(!c->few, 0)) {
    cache_take_hashed(c, set, tag, t);
    return;
  }
  uint8_t *prints = cache_prints(c, set), print = cache_print(tag);
  cache_line *lines = &c->lines[(uint64_t)set * c->ways];
  t->fresh = false;
  for (uint64_t ways = cache_ways_with(c, prints, print); ways; ways &= ways - 1) {
    uint32_t way = (uint32_t)__builtin_ctzll(ways);
    t->line = &lines[way];
    if (t->line->tag != tag) continue;
    cache_use_way(c, set, way);
    return;
  }
  uint32_t way = cache_way_to_go(c, set);
  cache_line *line = t->line = &lines[way];
  t->fresh = true;
  t->old_tag = line->tag;
  t->old_dirty = line->dirty;
  if (c->dirt && line->dirty) c->dirt[set].lines--;
  prints[way] = print;
  cache_use_way(c, set, way);
  FF_CHECK_DEEP(cache_set_is_whole(c, set));
  line->tag = tag;
  line->valid = line->dirty = line->priority = 0;
  line->filled = 0;
}

#endif
