/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors, LRU. Only tags and masks, no values.
 *
 * Sets of few ways keep a byte of each tag's hash and an age for each way, side by side, so that all ways are compared
 * at once; only a way whose byte agrees is looked at. Sets of many ways are searched through a hash of the tags, with
 * each set's lines in a ring in order of use. Both replace the same line: the least recently used one, empty lines
 * first. The ages of a set's ways are 0 to ways - 1, each once (cache_set_is_whole). Where lines have priorities
 * (cache_take_ranked) these come before use: at most so many lines of a set as the caller says are LAST. */
#include "machine/memory/cache.h"

#include <string.h>

#include "base/check.h"
#include "trace/stream.h"

enum { CACHE_NO_WAY = 127 };

static uint64_t lines_of(const cache *c) { return c->sets.by * c->ways; }

/* ---- few ways ---- */

bool cache_set_is_whole(const cache *c, uint32_t set) {
  const int8_t *ages = cache_ages(c, set);
  uint64_t seen = 0;
  for (uint32_t w = 0; w < c->ways; w++) {
    if (ages[w] < 0 || (uint32_t)ages[w] >= c->ways) return false;
    seen |= UINT64_C(1) << ages[w];
  }
  return seen == UINT64_MAX >> (CACHE_FEW_WAYS - c->ways);
}

static void few_init(cache *c, arena *a) {
  c->half = 8;
  while (c->half < c->ways) c->half *= 2;
  c->few = arena_alloc(a, c->sets.by * 2 * c->half);
}

static void few_close(cache *c) {
  uint8_t empty[2 * CACHE_FEW_WAYS] = {0};
  for (uint32_t w = 0; w < c->half; w++) empty[c->half + w] = (uint8_t)(w < c->ways ? w : CACHE_NO_WAY);
  for (uint32_t set = 0; set < c->sets.by; set++) memcpy(cache_prints(c, set), empty, 2 * (size_t)c->half);
}

static inline cache_line *few_find(cache *c, uint32_t set, uint64_t tag) {
  cache_line *lines = &c->lines[(uint64_t)set * c->ways];
  for (uint64_t ways = cache_ways_with(c, cache_prints(c, set), cache_print(tag)); ways; ways &= ways - 1) {
    uint32_t way = (uint32_t)__builtin_ctzll(ways);
    if (lines[way].tag != tag) continue;
    cache_use_way(c, set, way);
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
  uint32_t at = *cache_bucket(c, tag);
  while (at && c->lines[at - 1].tag != tag) at = c->rings[at - 1].next;
  if (!at) return NULL;
  make_youngest(c, at - 1, set);
  return &c->lines[at - 1];
}

static void rehash(cache *c, uint32_t index, uint64_t tag) {
  if (c->lines[index].tag) {
    uint32_t *link = cache_bucket(c, c->lines[index].tag);
    while (*link != index + 1) link = &c->rings[*link - 1].next;
    *link = c->rings[index].next;
  }
  if (!tag) return;
  uint32_t *bucket = cache_bucket(c, tag);
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
  few_init(c, a);
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

cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag) {
  uint64_t victim = c->few ? (uint64_t)set * c->ways + cache_way_to_go(c, set) : c->rings[head_of(c, set)].newer;
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
    cache_prints(c, set)[way] = tag ? cache_print(tag) : 0;
    cache_use_way(c, set, way);
    FF_CHECK_DEEP(cache_set_is_whole(c, set));
  } else {
    rehash(c, index, tag);
    if (tag) make_youngest(c, index, set);
    else make_oldest(c, index, set);
  }
  *line = (cache_line){.tag = tag};
}

/* The set's line becomes that of `tag`. */
static void replace(cache *c, uint32_t set, cache_line *line, uint64_t tag, cache_taken *t) {
  t->line = line;
  t->old_tag = line->tag;
  t->old_dirty = line->dirty;
  ps ready = line->ready;
  uint8_t pending = line->pending;
  cache_retag(c, set, line, tag);
  line->ready = ready;
  line->pending = pending;
}

void cache_take_hashed(cache *c, uint32_t set, uint64_t tag, cache_taken *t) {
  t->line = find_hashed(c, set, tag);
  t->fresh = !t->line;
  if (!t->line) replace(c, set, cache_victim(c, set, &t->old_tag), tag, t);
}

/* ---- priorities ---- */

/* The set's line that is `age` steps older than its youngest. */
static cache_line *line_of_age(const cache *c, uint32_t set, uint32_t age) {
  if (!c->few) {
    uint32_t index = c->rings[head_of(c, set)].older;
    while (age--) index = c->rings[index].older;
    return &c->lines[index];
  }
  uint64_t way = cache_ways_with(c, cache_ages(c, set), (uint8_t)age);
  return &c->lines[(uint64_t)set * c->ways + (uint32_t)__builtin_ctzll(way)];
}

/* What a set has of each priority, and the oldest line of it. */
typedef struct ranks {
  cache_line *empty, *oldest[TRACE_L2_NORMAL];
  uint32_t lasts;
} ranks;

static ranks ranks_of(const cache *c, uint32_t set) {
  ranks r = {0};
  for (uint32_t age = 0; age < c->ways; age++) {
    cache_line *line = line_of_age(c, set, age);
    if (!line->tag) r.empty = line;
    else r.oldest[line->priority] = line;
    r.lasts += line->tag && line->priority == TRACE_L2_LAST;
  }
  return r;
}

static cache_line *ranked_victim(const cache *c, uint32_t set, trace_l2_priority priority, uint32_t lasts) {
  ranks r = ranks_of(c, set);
  if (r.empty) return r.empty;
  if (priority == TRACE_L2_LAST && r.lasts >= lasts && r.lasts) return r.oldest[TRACE_L2_LAST];
  if (r.oldest[TRACE_L2_FIRST]) return r.oldest[TRACE_L2_FIRST];
  return r.oldest[TRACE_L2_PLAIN] ? r.oldest[TRACE_L2_PLAIN] : r.oldest[TRACE_L2_LAST];
}

/* A line that was found, or that replaced another, is accessed with this priority. */
static void rank(cache *c, uint32_t set, cache_line *line, trace_l2_priority priority, uint32_t lasts) {
  if (priority == TRACE_L2_PLAIN || priority == line->priority) return;
  if (priority == TRACE_L2_NORMAL || (priority == TRACE_L2_LAST && !lasts)) priority = TRACE_L2_PLAIN;
  if (priority == TRACE_L2_LAST) {
    ranks r = ranks_of(c, set);
    if (r.lasts >= lasts) r.oldest[TRACE_L2_LAST]->priority = TRACE_L2_PLAIN;
  }
  line->priority = (uint8_t)priority;
}

void cache_take_ranked(cache *c, uint32_t set, uint64_t tag, trace_l2_priority priority, uint32_t lasts,
                       cache_taken *t) {
  c->ranks = true;
  t->line = cache_find(c, set, tag);
  t->fresh = !t->line;
  if (t->fresh) replace(c, set, ranked_victim(c, set, priority, lasts), tag, t);
  rank(c, set, t->line, priority, lasts);
}

void cache_forget_last(cache *c) {
  for (uint64_t l = 0; c->ranks && l < lines_of(c); l++)
    if (c->lines[l].priority == TRACE_L2_LAST) c->lines[l].priority = TRACE_L2_PLAIN;
}

/* ---- both again ---- */

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
