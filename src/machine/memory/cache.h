/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors, LRU. */
#ifndef FF_MACHINE_MEMORY_CACHE_H
#define FF_MACHINE_MEMORY_CACHE_H

#include <stdbool.h>
#include <stdint.h>

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
/* Ask the host's caches for what cache_find(c, set, tag) and cache_victim will read: `far` first, `near` some lines
 * later. */
void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag);
void cache_prefetch_near(const cache *c, uint32_t set, uint64_t tag);

#endif
