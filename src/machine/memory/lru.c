/* SPDX-License-Identifier: Apache-2.0 */
/* A fully associative table with LRU replacement: a hash of the keys, and a ring in order of use. Entry 0 is the ring's
 * head: its `older` is the youngest entry, its `newer` the oldest. */
#include "machine/memory/lru.h"

#include "base/check.h"

void lru_init(lru *t, arena *a, uint64_t capacity) {
  uint32_t buckets = 4;
  t->capacity = (uint32_t)capacity;
  while (buckets < t->capacity * 2) buckets *= 2;
  t->mask = buckets - 1;
  t->entries = arena_alloc(a, (t->capacity + 1) * sizeof *t->entries);
  t->buckets = arena_alloc(a, buckets * sizeof *t->buckets);
}

/* ---- the census ---- */

void lru_census_init(lru_census *c, arena *a, uint64_t entries) {
  uint32_t slots = 1024;
  while (slots < entries * 4 && slots < UINT32_C(1) << 24) slots *= 2;
  c->mask = slots - 1;
  c->slots = arena_alloc(a, slots * sizeof *c->slots);
}

static lru_census_slot *census_slot(const lru_census *c, uint64_t key) {
  uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
  return &c->slots[(hash >> 40) & c->mask]; /* its upper bits depend on all of the key */
}

uint32_t lru_census_holders(const lru_census *c, uint64_t key) { return census_slot(c, key)->holders; }

static void count_in(const lru *t, uint64_t key) {
  if (!t->census) return;
  lru_census_slot *slot = census_slot(t->census, key);
  slot->count++;
  slot->holders |= t->bit;
}

static void count_out(const lru *t, uint64_t key) {
  if (!t->census) return;
  lru_census_slot *slot = census_slot(t->census, key);
  FF_ASSERT(slot->count);
  if (!--slot->count) slot->holders = 0;
}

/* ---- one table ---- */

lru_entry *lru_peek(const lru *t, uint64_t key) {
  uint32_t index = *lru_bucket(t, key);
  while (index && t->entries[index].key != key) index = t->entries[index].next;
  return index ? &t->entries[index] : NULL;
}

static void unhash(lru *t, uint32_t index) {
  uint32_t *link = lru_bucket(t, t->entries[index].key);
  while (*link != index) link = &t->entries[*link].next;
  *link = t->entries[index].next;
}

/* Of an entry that is no key's: the oldest one's, which was *gone's, if the table is full. */
static inline uint32_t take_entry(lru *t, bool *full, uint64_t *gone) {
  *full = t->count == t->capacity;
  if (!*full) return ++t->count;
  uint32_t index = t->entries[0].newer;
  lru_ring_remove(t, &t->entries[index]);
  unhash(t, index);
  *gone = t->entries[index].key;
  return index;
}

static inline lru_entry *put_entry(lru *t, uint32_t index, uint64_t key, ps ready) {
  uint32_t *bucket = lru_bucket(t, key);
  t->entries[index].key = key;
  t->entries[index].ready = ready;
  t->entries[index].next = *bucket;
  *bucket = index;
  lru_make_youngest(t, index);
  return &t->entries[index];
}

lru_entry *lru_insert(lru *t, uint64_t key, ps ready) {
  if (!t->capacity) return NULL;
  bool full;
  uint64_t gone;
  uint32_t index = take_entry(t, &full, &gone);
  if (full) count_out(t, gone);
  count_in(t, key);
  return put_entry(t, index, key, ready);
}

bool lru_insert_uncounted(lru *t, uint64_t key, ps ready, uint64_t *gone) {
  bool full;
  uint32_t index = take_entry(t, &full, gone);
  put_entry(t, index, key, ready);
  return full;
}

void lru_count(const lru *t, uint64_t key, bool in) {
  if (in) count_in(t, key);
  else count_out(t, key);
}

bool lru_remove(lru *t, uint64_t key) {
  uint32_t index = *lru_bucket(t, key);
  while (index && t->entries[index].key != key) index = t->entries[index].next;
  if (!index) return false;
  count_out(t, key);
  lru_ring_remove(t, &t->entries[index]);
  unhash(t, index);
  uint32_t last = t->count--;
  if (index == last) return true;
  unhash(t, last); /* the last entry moves into the hole */
  t->entries[index] = t->entries[last];
  t->entries[t->entries[index].newer].older = index;
  t->entries[t->entries[index].older].newer = index;
  uint32_t *bucket = lru_bucket(t, t->entries[index].key);
  t->entries[index].next = *bucket;
  *bucket = index;
  return true;
}

uint32_t lru_remove_range(lru *t, uint64_t first, uint64_t last) {
  uint32_t removed = 0;
  for (uint32_t i = t->count; i > 0; i--) { /* what moves into a hole was looked at before */
    uint64_t key = t->entries[i].key;
    if (key >= first && key <= last) removed += lru_remove(t, key);
  }
  return removed;
}
