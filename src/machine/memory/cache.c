/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors, LRU. Only tags and masks, no values.
 *
 * Sets of few ways keep a byte of each tag's hash and an age for each way, side by side, so that all ways are compared
 * at once; only a way whose byte agrees is looked at. Sets of many ways are searched through a hash of the tags, with
 * each set's lines in a ring in order of use. Both replace the same line: the least recently used one, empty lines
 * first. The ages of a set's ways are 0 to ways - 1, each once (cache_set). */
#include "machine/memory/cache.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "trace/stream.h"

enum { CACHE_NO_WAY = 127 };

static uint64_t lines_of(const cache *c) { return c->sets.by * c->ways; }

/* ---- few ways ---- */

/* A bit for each of the first `ways` bytes that is the value. */
static inline uint32_t ways_with(const void *bytes, uint8_t value, uint32_t ways) {
#if defined(__SSE2__)
  __m128i wanted = _mm_set1_epi8((char)value);
  const __m128i *half = bytes;
  uint32_t low = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(half), wanted)),
           high = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(half + 1), wanted)),
           found = high << 16 | low;
#else
  uint32_t found = 0;
  for (uint32_t w = 0; w < CACHE_FEW_WAYS; w++) found |= (uint32_t)(((const uint8_t *)bytes)[w] == value) << w;
#endif
  return found & UINT32_MAX >> (CACHE_FEW_WAYS - ways);
}

static inline uint8_t print_of(uint64_t tag) {
  uint8_t hash = (uint8_t)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 56);
  return hash ? hash : 1;
}

/* Those that were younger are older by one now. All ages are written at once, as they are read: a byte of them that is
 * written alone would hold the next read of them up. */
static inline void use_way(cache_set *s, uint32_t way) {
  int8_t before = s->ages[way];
  if (!before) return;
  for (uint32_t w = 0; w < CACHE_FEW_WAYS; w++) {
    int8_t age = s->ages[w];
    s->ages[w] = age == before ? 0 : (int8_t)(age + (age < before));
  }
}

static bool ages_are_whole(const cache_set *s, uint32_t ways) {
  uint32_t seen = 0;
  for (uint32_t w = 0; w < ways; w++) {
    if (s->ages[w] < 0 || (uint32_t)s->ages[w] >= ways) return false;
    seen |= UINT32_C(1) << s->ages[w];
  }
  return seen == UINT32_MAX >> (CACHE_FEW_WAYS - ways);
}

static void few_close(cache *c) {
  cache_set empty = {.prints = {0}};
  for (uint32_t w = 0; w < CACHE_FEW_WAYS; w++) empty.ages[w] = (int8_t)(w < c->ways ? w : CACHE_NO_WAY);
  for (uint64_t set = 0; set < c->sets.by; set++) c->few[set] = empty;
}

/* An empty way, else the oldest. */
static inline uint32_t way_to_go(const cache *c, const cache_set *s) {
  uint32_t ways = ways_with(s->prints, 0, c->ways);
  if (!ways) ways = ways_with(s->ages, (uint8_t)(c->ways - 1), c->ways);
  return (uint32_t)__builtin_ctz(ways);
}

static inline cache_line *few_find(cache *c, uint32_t set, uint64_t tag) {
  cache_set *s = &c->few[set];
  cache_line *lines = &c->lines[(uint64_t)set * c->ways];
  for (uint32_t ways = ways_with(s->prints, print_of(tag), c->ways); ways; ways &= ways - 1) {
    uint32_t way = (uint32_t)__builtin_ctz(ways);
    if (lines[way].tag != tag) continue;
    use_way(s, way);
    return &lines[way];
  }
  return NULL;
}

/* ---- many ways ---- */

/* Each set's ring has its first `ways` lines, all empty. */
static void rings_close(cache *c) {
  for (uint64_t set = 0; set < c->sets.by; set++) {
    uint32_t head = (uint32_t)(lines_of(c) + set), last = head;
    for (uint32_t w = 0; w < c->ways; w++) {
      uint32_t line = (uint32_t)(set * c->ways + w);
      c->rings[last].newer = line;
      c->rings[line].older = last;
      last = line;
    }
    c->rings[last].newer = head;
    c->rings[head].older = last; /* the head's `newer` is the oldest line, its `older` the youngest */
  }
}

static void rings_init(cache *c, arena *a) {
  uint64_t lines = lines_of(c);
  uint32_t buckets = 1;
  while (buckets < 2 * lines) buckets *= 2;
  c->bucket_mask = buckets - 1;
  c->buckets = arena_alloc(a, buckets * sizeof *c->buckets);
  c->rings = arena_alloc(a, (lines + c->sets.by) * sizeof *c->rings); /* behind the lines: a head per set */
  rings_close(c);
}

static uint32_t *bucket_of(const cache *c, uint64_t tag) {
  uint64_t hash = tag * UINT64_C(0x9e3779b97f4a7c15);
  return &c->buckets[hash >> 32 & c->bucket_mask];
}

static uint32_t head_of(const cache *c, uint32_t set) { return (uint32_t)lines_of(c) + set; }

/* The line goes to the older side of `newer`, a line or a head. */
static void put_behind(cache *c, uint32_t index, uint32_t newer) {
  cache_ring *r = &c->rings[index];
  c->rings[r->newer].older = r->older;
  c->rings[r->older].newer = r->newer;
  r->newer = newer;
  r->older = c->rings[newer].older;
  c->rings[r->older].newer = index;
  c->rings[newer].older = index;
}

static void make_youngest(cache *c, uint32_t index, uint32_t set) {
  uint32_t head = head_of(c, set);
  if (c->rings[head].older != index) put_behind(c, index, head);
}

/* An emptied line becomes the first to be taken. */
static void make_oldest(cache *c, uint32_t index, uint32_t set) {
  uint32_t oldest = c->rings[head_of(c, set)].newer;
  if (oldest != index) put_behind(c, index, oldest);
}

static cache_line *find_hashed(cache *c, uint32_t set, uint64_t tag) {
  uint32_t at = *bucket_of(c, tag);
  while (at && c->lines[at - 1].tag != tag) at = c->rings[at - 1].next;
  if (!at) return NULL;
  make_youngest(c, at - 1, set);
  return &c->lines[at - 1];
}

static void rehash(cache *c, uint32_t index, uint64_t tag) {
  if (c->lines[index].tag) {
    uint32_t *link = bucket_of(c, c->lines[index].tag);
    while (*link != index + 1) link = &c->rings[*link - 1].next;
    *link = c->rings[index].next;
  }
  if (!tag) return;
  uint32_t *bucket = bucket_of(c, tag);
  c->rings[index].next = *bucket;
  *bucket = index + 1;
}

/* ---- both ---- */

void cache_init(cache *c, arena *a, uint64_t bytes, uint64_t ways) {
  uint64_t lines = bytes / TRACE_LINE_BYTES ? bytes / TRACE_LINE_BYTES : 1;
  c->ways = (uint32_t)(ways < lines ? ways : lines);
  c->sets = divider_make(lines / c->ways);
  c->room = c->sets.by;
  c->lines = arena_alloc(a, c->sets.by * c->ways * sizeof *c->lines);
  if (c->ways > CACHE_FEW_WAYS) {
    rings_init(c, a);
    return;
  }
  c->few = arena_alloc(a, c->sets.by * sizeof *c->few);
  few_close(c);
}

void cache_limit_dirty(cache *c, arena *a, double share) {
  c->dirty_ways = (uint32_t)(c->ways * share);
  if (!c->dirty_ways) c->dirty_ways = 1;
  c->dirt = arena_alloc(a, c->sets.by * sizeof *c->dirt);
}

cache_line *cache_find(cache *c, uint32_t set, uint64_t tag) {
  return c->few ? few_find(c, set, tag) : find_hashed(c, set, tag);
}

void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag) {
  if (c->few) __builtin_prefetch(&c->few[set]);
  else __builtin_prefetch(bucket_of(c, tag));
}

void cache_prefetch_near(const cache *c, uint32_t set, uint64_t tag) {
  if (c->few) {
    uint32_t ways = ways_with(c->few[set].prints, print_of(tag), c->ways),
             way = ways ? (uint32_t)__builtin_ctz(ways) : way_to_go(c, &c->few[set]);
    __builtin_prefetch(&c->lines[(uint64_t)set * c->ways + way]);
    return;
  }
  uint32_t at = *bucket_of(c, tag);
  if (!at) return;
  __builtin_prefetch(&c->rings[at - 1]);
  __builtin_prefetch(&c->lines[at - 1]);
}

cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag) {
  uint64_t victim = c->few ? (uint64_t)set * c->ways + way_to_go(c, &c->few[set]) : c->rings[head_of(c, set)].newer;
  *old_tag = c->lines[victim].tag;
  return &c->lines[victim];
}

static uint32_t dirty_lines(const cache *c, uint32_t set) {
  uint32_t found = 0;
  for (uint32_t w = 0; w < c->ways; w++) found += c->lines[(uint64_t)set * c->ways + w].dirty != 0;
  return found;
}

uint8_t cache_write(cache *c, uint32_t set, cache_line *line, uint8_t sectors, uint64_t *tag) {
  FF_CHECK_DEEP(!c->dirt || c->dirt[set].lines == dirty_lines(c, set));
  bool was_dirty = line->dirty != 0;
  line->dirty |= sectors;
  if (!c->dirt || was_dirty || !line->dirty || ++c->dirt[set].lines <= c->dirty_ways) return 0;
  cache_line *lines = &c->lines[(uint64_t)set * c->ways], *next;
  uint32_t *hand = &c->dirt[set].hand;
  do {
    *hand = *hand + 1 < c->ways ? *hand + 1 : 0;
    next = &lines[*hand];
  } while (next == line || !next->dirty);
  c->dirt[set].lines--;
  *tag = next->tag;
  uint8_t dirty = next->dirty;
  next->dirty = 0;
  return dirty;
}

void cache_retag(cache *c, uint32_t set, cache_line *line, uint64_t tag) {
  uint32_t index = (uint32_t)(line - c->lines);
  if (c->dirt && line->dirty) c->dirt[set].lines--;
  if (c->few) {
    uint32_t way = index - set * c->ways;
    FF_CHECK(way < c->ways);
    c->few[set].prints[way] = tag ? print_of(tag) : 0;
    use_way(&c->few[set], way);
    FF_CHECK_DEEP(ages_are_whole(&c->few[set], c->ways));
  } else {
    rehash(c, index, tag);
    if (tag) make_youngest(c, index, set);
    else make_oldest(c, index, set);
  }
  *line = (cache_line){.tag = tag};
}

void cache_drop(cache *c, uint64_t first_tag, uint64_t count) {
  for (uint32_t set = 0; set < c->sets.by; set++)
    for (uint32_t w = 0; w < c->ways; w++) {
      cache_line *line = &c->lines[(uint64_t)set * c->ways + w];
      if (line->tag && line->tag - first_tag < count) cache_retag(c, set, line, 0);
    }
}

void cache_clear(cache *c) { cache_drop(c, 0, UINT64_MAX); }

void cache_resize(cache *c, uint64_t bytes) {
  FF_CHECK(!c->dirt);
  uint64_t sets = bytes / TRACE_LINE_BYTES / c->ways;
  for (uint64_t l = 0; l < lines_of(c); l++) c->lines[l].tag = 0;
  if (c->rings) memset(c->buckets, 0, ((uint64_t)c->bucket_mask + 1) * sizeof *c->buckets);
  c->sets = divider_make(sets > c->room ? c->room : sets ? sets : 1);
  if (c->few) few_close(c);
  else rings_close(c);
}
