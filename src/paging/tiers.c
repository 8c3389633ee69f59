/* SPDX-License-Identifier: Apache-2.0 */
/* See tiers.h: a table of places by address, and a list of them for each tier by when they moved. */
#include "paging/tiers.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

struct tiers {
  tier of[TIERS_MAX];
  uint32_t count, host;
  FF_VEC(tier_place) places; /* [0]: none */
  uint32_t free_place, used_places;
  uint32_t *buckets;
  uint32_t bucket_count; /* a power of two */
  bool waiting;
};

tiers *tiers_create(const uint64_t *capacities, uint32_t count, uint32_t host) {
  tiers *t = ff_alloc(sizeof *t);
  FF_ASSERT(count <= TIERS_MAX && host < count);
  t->count = count;
  t->host = host;
  for (uint32_t i = 0; i < count; i++) t->of[i].capacity = capacities[i];
  FF_PUSH(&t->places, ((tier_place){0}));
  t->bucket_count = 256;
  t->buckets = ff_alloc(t->bucket_count * sizeof *t->buckets);
  return t;
}

void tiers_free(tiers *t) {
  if (!t) return;
  free(t->places.items);
  free(t->buckets);
  free(t);
}

void tiers_grow(tiers *t, uint64_t bytes) { t->of[t->host].capacity += bytes; }
uint32_t tiers_count(const tiers *t) { return t->count; }
tier *tiers_of(tiers *t, uint32_t number) { return &t->of[number]; }
bool tiers_waiting(const tiers *t) { return t->waiting; }
void tiers_settled(tiers *t) { t->waiting = false; }

/* ---- places by address ---- */

static uint32_t *bucket_of(const tiers *t, uint64_t address) {
  return &t->buckets[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (t->bucket_count - 1)];
}

static uint32_t find(const tiers *t, uint64_t address) {
  uint32_t at = *bucket_of(t, address);
  while (at && t->places.items[at].address != address) at = t->places.items[at].next;
  return at;
}

tier_place *tiers_find(tiers *t, uint64_t address) {
  uint32_t at = find(t, address);
  return at ? &t->places.items[at] : NULL;
}

static void buckets_grow(tiers *t) {
  free(t->buckets);
  t->bucket_count *= 2;
  t->buckets = ff_alloc(t->bucket_count * sizeof *t->buckets);
  for (uint32_t i = 1; i < t->places.count; i++) {
    if (!t->places.items[i].bytes) continue;
    uint32_t *bucket = bucket_of(t, t->places.items[i].address);
    t->places.items[i].next = *bucket;
    *bucket = i;
  }
}

static uint32_t make(tiers *t, uint64_t address, uint32_t bytes) {
  uint32_t at = t->free_place;
  if (++t->used_places > t->bucket_count) buckets_grow(t);
  if (at) {
    t->free_place = t->places.items[at].next;
  } else {
    FF_ASSERT(t->places.count < UINT32_MAX);
    FF_PUSH(&t->places, ((tier_place){0}));
    at = (uint32_t)t->places.count - 1;
  }
  uint32_t *bucket = bucket_of(t, address);
  t->places.items[at] = (tier_place){.address = address, .bytes = bytes, .next = *bucket};
  *bucket = at;
  return at;
}

/* ---- a tier's places, by when they moved ---- */

static void leave(tiers *t, uint32_t at) {
  tier_place *place = &t->places.items[at];
  tier *from = &t->of[place->tier];
  *(place->newer ? &t->places.items[place->newer].older : &from->newest) = place->older;
  *(place->older ? &t->places.items[place->older].newer : &from->oldest) = place->newer;
  from->used -= place->bytes;
}

/* The tier's next place below is made by those that moved longest ago; the last tier has no next one. */
static void enter(tiers *t, uint32_t number, uint32_t at) {
  tier *to = &t->of[number];
  uint32_t bytes = t->places.items[at].bytes;
  while (number + 1 < t->count && to->used + bytes > to->capacity && to->oldest) {
    uint32_t victim = to->oldest;
    uint32_t gone = t->places.items[victim].bytes;
    leave(t, victim);
    to->down += gone;
    t->of[number + 1].written += gone;
    t->waiting = true;
    enter(t, number + 1, victim);
  }
  tier_place *place = &t->places.items[at];
  place->tier = number;
  place->newer = 0;
  place->older = to->newest;
  *(to->newest ? &t->places.items[to->newest].newer : &to->oldest) = at;
  to->newest = at;
  to->used += bytes;
  if (to->used > to->peak) to->peak = to->used;
}

/* ---- what moves ---- */

static tier_place *put(tiers *t, uint32_t number, uint64_t address, uint32_t bytes) {
  uint32_t at = find(t, address);
  if (at) leave(t, at);
  else at = make(t, address, bytes);
  FF_ASSERT(t->places.items[at].bytes == bytes);
  t->places.items[at].ready = 0;
  enter(t, number, at);
  return &t->places.items[at];
}

tier_place *tiers_put(tiers *t, uint64_t address, uint32_t bytes) { return put(t, t->host, address, bytes); }

tier_place *tiers_arrive(tiers *t, uint64_t address, uint32_t bytes) {
  if (t->host) {
    t->of[0].written += bytes;
    t->waiting = true;
  }
  return put(t, 0, address, bytes);
}

tier_place *tiers_raise(tiers *t, uint64_t address) {
  uint32_t at = find(t, address);
  if (!at) return NULL;
  uint32_t from = t->places.items[at].tier, bytes = t->places.items[at].bytes;
  leave(t, at);
  if (from != t->host) {
    t->of[from].to_host += bytes;
    t->waiting = true;
  }
  enter(t, t->host, at);
  return &t->places.items[at];
}

void tiers_read(tiers *t, uint64_t address, uint32_t bytes) {
  uint32_t at = find(t, address);
  if (!at) {
    tiers_put(t, address, bytes); /* what was never written has been the host's all along */
    return;
  }
  uint32_t number = t->places.items[at].tier;
  leave(t, at);
  enter(t, number, at);
  if (number == t->host) return;
  t->of[number].to_gpu += bytes;
  t->waiting = true;
}

void tiers_drop(tiers *t, uint64_t address) {
  uint32_t *link = bucket_of(t, address);
  while (*link && t->places.items[*link].address != address) link = &t->places.items[*link].next;
  uint32_t at = *link;
  if (!at) return;
  leave(t, at);
  *link = t->places.items[at].next;
  t->places.items[at] = (tier_place){.next = t->free_place};
  t->free_place = at;
  t->used_places--;
}

void tiers_check(const tiers *t) {
  uint64_t used[TIERS_MAX] = {0};
  uint32_t places = 0;
  for (uint32_t i = 1; i < t->places.count; i++) {
    const tier_place *place = &t->places.items[i];
    if (!place->bytes) continue;
    FF_ASSERT(find(t, place->address) == i);
    used[place->tier] += place->bytes;
    places++;
  }
  FF_ASSERT(places == t->used_places);
  for (uint32_t i = 0; i < t->count; i++)
    FF_ASSERT(used[i] == t->of[i].used && (i + 1 == t->count || used[i] <= t->of[i].capacity));
}
