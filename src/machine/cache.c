/* SPDX-License-Identifier: Apache-2.0 */
/* A set-associative cache of 128-byte lines in four sectors. Only tags and masks: it never holds a value. */
#include <stdlib.h>

#include "machine/model.h"

void cache_init(cache *c, uint64_t bytes, uint64_t ways) {
  uint64_t lines = bytes / TRACE_LINE_BYTES ? bytes / TRACE_LINE_BYTES : 1;
  c->ways = (uint32_t)(ways < lines ? ways : lines);
  c->sets = (uint32_t)(lines / c->ways);
  c->tags = ff_alloc((uint64_t)c->sets * c->ways * sizeof *c->tags);
  c->lines = ff_alloc((uint64_t)c->sets * c->ways * sizeof *c->lines);
}

void cache_free(cache *c) {
  free(c->tags);
  free(c->lines);
}

cache_line *cache_find(cache *c, uint32_t set, uint64_t tag) {
  const uint64_t *tags = &c->tags[(uint64_t)set * c->ways];
  for (uint32_t w = 0; w < c->ways; w++)
    if (tags[w] == tag) {
      cache_line *line = &c->lines[(uint64_t)set * c->ways + w];
      line->used = ++c->clock;
      return line;
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
    uint32_t age = c->clock - c->lines[base + w].used;
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
  *line = (cache_line){.used = ++c->clock};
}
