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

static inline uint32_t sector_count(uint32_t mask) { /* of four sectors */
  static const uint8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[mask & 15];
}

typedef struct cache_line {
  uint64_t tag;                  /* 0: empty */
  ps ready;                      /* when the pending sectors arrive */
  uint8_t valid, dirty, pending; /* sector masks; pending is part of valid */
  uint32_t filled;               /* machines with stacks: versions_now when it became this line */
} cache_line;
enum { CACHE_FEW_WAYS = 32 };
/* A set of few ways, in one line of the host's cache: which ways may have a tag, and which was used when. */
typedef struct cache_set {
  uint8_t prints[CACHE_FEW_WAYS]; /* of the tag, by a hash; 0: empty */
  int8_t ages[CACHE_FEW_WAYS];    /* 0: the youngest; each way's is another. CACHE_NO_WAY: there is no such way */
} cache_set;
typedef struct cache_ring {
  uint32_t newer, older, next;
} cache_ring;
typedef struct cache_dirt { /* of a set: its dirty lines, and where the last one was that had to be written back */
  uint32_t lines, hand;
} cache_dirt;
typedef struct cache {
  cache_line *lines; /* sets x ways */
  cache_set *few;    /* few ways; NULL: */
  cache_ring *rings; /* many ways: each set's lines in order of use, and what hangs behind them in a bucket */
  uint32_t *buckets; /* many ways: line + 1 by hash of the tag */
  cache_dirt *dirt;  /* per set; NULL: all lines may be dirty */
  divider sets;
  uint64_t room; /* sets that it began with; `sets` are the first of them */
  uint32_t ways; /* of each set */
  uint32_t bucket_mask;
  uint32_t dirty_ways; /* with `dirt`: of a set, how many may be */
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

/* A bit for each of the first `ways` bytes that is the value. */
static inline uint32_t cache_ways_with(const void *bytes, uint8_t value, uint32_t ways) {
#if defined(__SSE2__)
  __m128i wanted = _mm_set1_epi8((char)value);
  const __m128i *half = bytes;
  uint32_t found = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(half), wanted));
  if (ways > 16) found |= (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(half + 1), wanted)) << 16;
#else
  uint32_t found = 0;
  for (uint32_t w = 0; w < CACHE_FEW_WAYS; w++) found |= (uint32_t)(((const uint8_t *)bytes)[w] == value) << w;
#endif
  return found & UINT32_MAX >> (CACHE_FEW_WAYS - ways);
}

static inline uint8_t cache_print(uint64_t tag) {
  uint8_t hash = (uint8_t)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 56);
  return hash ? hash : 1;
}

/* Those of so many ways that were younger are older by one now. All ages are written at once, as they are read: a byte
 * of them that is written alone would hold the next read of them up. */
static inline void cache_use_way(cache_set *s, uint32_t way, uint32_t ways) {
  int8_t before = s->ages[way];
  if (!before) return;
#if defined(__SSE2__)
  __m128i *half = (__m128i *)s->ages, was = _mm_set1_epi8(before);
  for (uint32_t i = 0; i <= (ways > 16); i++) {
    __m128i ages = _mm_load_si128(&half[i]), older = _mm_sub_epi8(ages, _mm_cmpgt_epi8(was, ages));
    _mm_store_si128(&half[i], _mm_andnot_si128(_mm_cmpeq_epi8(ages, was), older));
  }
#else
  for (uint32_t w = 0; w < ways; w++) {
    int8_t age = s->ages[w];
    s->ages[w] = age == before ? 0 : (int8_t)(age + (age < before));
  }
#endif
}

/* An empty way, else the oldest. */
static inline uint32_t cache_way_to_go(const cache *c, const cache_set *s) {
  uint32_t ways = cache_ways_with(s->prints, 0, c->ways);
  if (!ways) ways = cache_ways_with(s->ages, (uint8_t)(c->ways - 1), c->ways);
  return (uint32_t)__builtin_ctz(ways);
}

static inline uint32_t *cache_bucket(const cache *c, uint64_t tag) {
  uint64_t hash = tag * UINT64_C(0x9e3779b97f4a7c15);
  return &c->buckets[hash >> 32 & c->bucket_mask];
}

/* Ask the host's caches for what cache_find(c, set, tag) and cache_victim will read: `far` first, `near` some lines
 * later. (gcc drops calls of functions that do nothing else: they must be no calls.) */
__attribute__((always_inline)) static inline void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag) {
  if (c->few) __builtin_prefetch(&c->few[set]);
  else __builtin_prefetch(cache_bucket(c, tag));
}

__attribute__((always_inline)) static inline void cache_prefetch_near(const cache *c, uint32_t set, uint64_t tag) {
  if (c->few) {
    uint32_t ways = cache_ways_with(c->few[set].prints, cache_print(tag), c->ways),
             way = ways ? (uint32_t)__builtin_ctz(ways) : cache_way_to_go(c, &c->few[set]);
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

void cache_take_hashed(cache *c, uint32_t set, uint64_t tag, cache_taken *t); /* a cache of many ways */
bool cache_set_is_whole(const cache *c, uint32_t set); /* of few ways: their ages are 0 to ways - 1, each once */

__attribute__((always_inline)) static inline void cache_take(cache *c, uint32_t set, uint64_t tag, cache_taken *t) {
  if (__builtin_expect(!c->few, 0)) {
    cache_take_hashed(c, set, tag, t);
    return;
  }
  cache_set *s = &c->few[set];
  cache_line *lines = &c->lines[(uint64_t)set * c->ways];
  uint8_t print = cache_print(tag);
  t->fresh = false;
  for (uint32_t ways = cache_ways_with(s->prints, print, c->ways); ways; ways &= ways - 1) {
    uint32_t way = (uint32_t)__builtin_ctz(ways);
    t->line = &lines[way];
    if (t->line->tag != tag) continue;
    cache_use_way(s, way, c->ways);
    return;
  }
  uint32_t way = cache_way_to_go(c, s);
  cache_line *line = t->line = &lines[way];
  t->fresh = true;
  t->old_tag = line->tag;
  t->old_dirty = line->dirty;
  if (c->dirt && line->dirty) c->dirt[set].lines--;
  s->prints[way] = print;
  cache_use_way(s, way, c->ways);
  FF_CHECK_DEEP(cache_set_is_whole(c, set));
  line->tag = tag;
  line->valid = line->dirty = 0;
  line->filled = 0;
}

#endif
