/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors. Only tags and masks: it never holds a value. */
#include <stdlib.h>

#include "machine/model.h"

void cache_init(cache *c, uint64_t bytes, uint64_t ways) {
  uint64_t lines = bytes / TRACE_LINE_BYTES ? bytes / TRACE_LINE_BYTES : 1;
  c->ways = (uint32_t)(ways < lines ? ways : lines);
  c->sets = divider_make(lines / c->ways);
  lines = c->sets.by * c->ways;
  c->tags = ff_alloc(lines * sizeof *c->tags);
  c->used = ff_alloc(lines * sizeof *c->used);
  c->lines = ff_alloc(lines * sizeof *c->lines);
}

void cache_free(cache *c) {
  free(c->tags);
  free(c->used);
  free(c->lines);
}

cache_line *cache_find(cache *c, uint32_t set, uint64_t tag) {
  const uint64_t *tags = &c->tags[(uint64_t)set * c->ways];
  for (uint32_t w = 0; w < c->ways; w++)
    if (tags[w] == tag) {
      c->used[(uint64_t)set * c->ways + w] = ++c->clock;
      return &c->lines[(uint64_t)set * c->ways + w];
    }
  return NULL;
}

cache_line *cache_victim(cache *c, uint32_t set, uint64_t *old_tag) {
  uint64_t base = (uint64_t)set * c->ways, victim = base;
  uint32_t oldest = 0;
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
  *old_tag = c->tags[victim];
  return &c->lines[victim];
}

void cache_retag(cache *c, cache_line *line, uint64_t tag) {
  c->tags[line - c->lines] = tag;
  c->used[line - c->lines] = ++c->clock;
  *line = (cache_line){0};
}
