/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors, LRU. Only tags and masks, no values.
 *
 * Sets of few ways are searched one by one, with a stamp per line; sets of many ways (the L1 of recent GPUs is nearly
 * fully associative) through a hash of the tags, with each set's lines in a ring in order of use. Both replace the same
 * line: the least recently used one, empty lines first. */
#include "machine/memory/cache.h"

#include <string.h>

#include "trace/stream.h"

enum { MANY_WAYS = 33 };

static uint64_t lines_of(const cache *c) { return c->sets.by * c->stride; }

/* Each set's ring has its first `ways` lines, all empty. */
static void rings_close(cache *c) {
  for (uint64_t set = 0; set < c->sets.by; set++) {
    uint32_t head = (uint32_t)(lines_of(c) + set), last = head;
    for (uint32_t w = 0; w < c->ways; w++) {
      uint32_t line = (uint32_t)(set * c->stride + w);
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

void cache_init(cache *c, arena *a, uint64_t bytes, uint64_t ways) {
  uint64_t lines = bytes / TRACE_LINE_BYTES ? bytes / TRACE_LINE_BYTES : 1;
  c->ways = c->stride = (uint32_t)(ways < lines ? ways : lines);
  c->sets = divider_make(lines / c->ways);
  lines = c->sets.by * c->ways;
  c->tags = arena_alloc(a, lines * sizeof *c->tags);
  c->lines = arena_alloc(a, lines * sizeof *c->lines);
  if (c->ways >= MANY_WAYS) rings_init(c, a);
  else c->used = arena_alloc(a, lines * sizeof *c->used);
}

void cache_limit_dirty(cache *c, arena *a, double share) {
  c->dirty_ways = (uint32_t)(c->ways * share);
  if (!c->dirty_ways) c->dirty_ways = 1;
  c->dirt = arena_alloc(a, c->sets.by * sizeof *c->dirt);
}

/* ---- many ways ---- */

static uint32_t *bucket_of(const cache *c, uint64_t tag) {
  uint64_t hash = tag * UINT64_C(0x9e3779b97f4a7c15);
  return &c->buckets[hash >> 32 & c->bucket_mask];
}

static uint32_t head_of(const cache *c, uint32_t set) { return (uint32_t)lines_of(c) + set; }

static void make_youngest(cache *c, uint32_t index, uint32_t set) {
  cache_ring *r = &c->rings[index];
  uint32_t head = head_of(c, set);
  if (c->rings[head].older == index) return;
  c->rings[r->newer].older = r->older;
  c->rings[r->older].newer = r->newer;
  r->newer = head;
  r->older = c->rings[head].older;
  c->rings[r->older].newer = index;
  c->rings[head].older = index;
}

static cache_line *find_hashed(cache *c, uint32_t set, uint64_t tag) {
  uint32_t at = *bucket_of(c, tag);
  while (at && c->tags[at - 1] != tag) at = c->rings[at - 1].next;
  if (!at) return NULL;
  make_youngest(c, at - 1, set);
  return &c->lines[at - 1];
}

static void rehash(cache *c, uint32_t index, uint64_t tag) {
  if (c->tags[index]) {
    uint32_t *link = bucket_of(c, c->tags[index]);
    while (*link != index + 1) link = &c->rings[*link - 1].next;
    *link = c->rings[index].next;
  }
  if (!tag) return;
  uint32_t *bucket = bucket_of(c, tag);
  c->rings[index].next = *bucket;
  *bucket = index + 1;
}

/* ---- both ---- */

cache_line *cache_find(cache *c, uint32_t set, uint64_t tag) {
  if (c->rings) return find_hashed(c, set, tag);
  const uint64_t *tags = &c->tags[(uint64_t)set * c->stride];
  for (uint32_t w = 0; w < c->ways; w++)
    if (tags[w] == tag) {
      c->used[(uint64_t)set * c->stride + w] = ++c->clock;
      return &c->lines[(uint64_t)set * c->stride + w];
    }
  return NULL;
}

void cache_prefetch_far(const cache *c, uint32_t set, uint64_t tag) {
  if (c->rings) {
    __builtin_prefetch(bucket_of(c, tag));
    return;
  }
  const char *tags = (const char *)&c->tags[(uint64_t)set * c->stride];
  for (uint32_t byte = 0; byte < c->ways * sizeof *c->tags; byte += 64) __builtin_prefetch(tags + byte);
}

void cache_prefetch_near(const cache *c, uint64_t tag) {
  uint32_t at = c->rings ? *bucket_of(c, tag) : 0;
  if (!at) return;
  __builtin_prefetch(&c->tags[at - 1]);
  __builtin_prefetch(&c->rings[at - 1]);
  __builtin_prefetch(&c->lines[at - 1]);
}

cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag) {
  uint64_t base = (uint64_t)set * c->stride, victim = base;
  uint32_t oldest = 0;
  if (c->rings) {
    victim = c->rings[head_of(c, set)].newer;
  } else {
    for (uint32_t w = 0; w < c->ways; w++) {
      if (!c->tags[base + w]) {
        victim = base + w;
        break;
      }
      uint32_t age = c->clock - c->used[base + w];
      if (age >= oldest) {
        oldest = age;
        victim = base + w;
      }
    }
  }
  *old_tag = c->tags[victim];
  return &c->lines[victim];
}

uint8_t cache_write(cache *c, uint32_t set, cache_line *line, uint8_t sectors, uint64_t *tag) {
  bool was_dirty = line->dirty != 0;
  line->dirty |= sectors;
  if (!c->dirt || was_dirty || ++c->dirt[set].lines <= c->dirty_ways) return 0;
  cache_line *lines = &c->lines[(uint64_t)set * c->stride], *next;
  uint32_t *hand = &c->dirt[set].hand;
  do {
    *hand = *hand + 1 < c->ways ? *hand + 1 : 0;
    next = &lines[*hand];
  } while (next == line || !next->dirty);
  c->dirt[set].lines--;
  *tag = c->tags[next - c->lines];
  uint8_t dirty = next->dirty;
  next->dirty = 0;
  return dirty;
}

/* An emptied line becomes the first to be taken. */
static void make_oldest(cache *c, uint32_t index, uint32_t set) {
  cache_ring *r = &c->rings[index];
  uint32_t head = head_of(c, set);
  c->rings[r->newer].older = r->older;
  c->rings[r->older].newer = r->newer;
  r->older = head;
  r->newer = c->rings[head].newer;
  c->rings[r->newer].older = index;
  c->rings[head].newer = index;
}

void cache_retag(cache *c, cache_line *line, uint64_t tag) {
  uint32_t index = (uint32_t)(line - c->lines);
  if (c->dirt && line->dirty) c->dirt[index / c->stride].lines--;
  if (c->rings) {
    rehash(c, index, tag);
    if (tag) make_youngest(c, index, index / c->stride);
    else make_oldest(c, index, index / c->stride);
  } else {
    c->used[index] = ++c->clock;
  }
  c->tags[index] = tag;
  *line = (cache_line){0};
}

void cache_clear(cache *c) {
  for (uint64_t l = 0; l < lines_of(c); l++)
    if (c->tags[l]) cache_retag(c, &c->lines[l], 0);
}

void cache_resize(cache *c, uint64_t bytes) {
  uint64_t ways = bytes / TRACE_LINE_BYTES / c->sets.by;
  memset(c->tags, 0, lines_of(c) * sizeof *c->tags);
  if (c->rings) memset(c->buckets, 0, ((uint64_t)c->bucket_mask + 1) * sizeof *c->buckets);
  c->ways = ways < c->stride ? (uint32_t)ways : c->stride;
  if (!c->ways) c->ways = 1;
  if (c->rings) rings_close(c);
}
