/* SPDX-License-Identifier: Apache-2.0 */
/* A fully associative table with LRU replacement: TLBs, the page walk cache. */
#ifndef FF_MACHINE_MEMORY_LRU_H
#define FF_MACHINE_MEMORY_LRU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/time.h"

typedef struct lru_entry {
  uint64_t key;
  ps ready;
  uint32_t newer, older, next;
} lru_entry;
/* What several tables hold, by a hash of the keys: how many entries of all of them have keys of a slot, and in which
 * tables they may be: only these need to be looked into. */
typedef struct lru_census_slot {
  uint32_t count;
  uint32_t holders; /* the `bit` of each table that had one since there were none */
} lru_census_slot;
typedef struct lru_census {
  lru_census_slot *slots;
  uint32_t mask;
} lru_census;
typedef struct lru {
  lru_entry *entries; /* [0] is the list's head: newer/older make a ring */
  uint32_t *buckets;
  uint32_t count, capacity, mask;
  lru_census *census; /* NULL: its entries are not counted */
  uint32_t bit;       /* the table's in the census, perhaps with others */
} lru;
void lru_init(lru *table, arena *a, uint64_t capacity);
void lru_census_init(lru_census *census, arena *a,
                     uint64_t entries); /* entries: of all its tables, when they are full */
/* The bits of the tables of the census that may have the key. */
uint32_t lru_census_holders(const lru_census *census, uint64_t key);
/* key must be absent; the oldest goes if it is full. NULL: it has no entries */
lru_entry *lru_insert(lru *table, uint64_t key, ps ready);
/* The same, without a word to the census. true: the key *gone went for it. The caller tells the census: lru_count. */
bool lru_insert_uncounted(lru *table, uint64_t key, ps ready, uint64_t *gone);
void lru_count(const lru *table, uint64_t key, bool in);              /* has come in, or gone */
lru_entry *lru_peek(const lru *table, uint64_t key);                  /* as lru_find; nothing becomes younger */
uint32_t lru_remove_range(lru *table, uint64_t first, uint64_t last); /* all keys from first to last; how many */
bool lru_remove(lru *table, uint64_t key);                            /* false: it was not there */

static inline uint32_t *lru_bucket(const lru *t, uint64_t key) {
  uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
  return &t->buckets[(hash >> 32) & t->mask];
}

static inline void lru_ring_remove(lru *t, const lru_entry *e) {
  t->entries[e->newer].older = e->older;
  t->entries[e->older].newer = e->newer;
}

static inline void lru_make_youngest(lru *t, uint32_t index) {
  lru_entry *e = &t->entries[index];
  e->newer = 0;
  e->older = t->entries[0].older;
  t->entries[e->older].newer = index;
  t->entries[0].older = index;
}

/* The entry of the key, which becomes the youngest; NULL: absent. */
static inline lru_entry *lru_find(lru *t, uint64_t key) {
  uint32_t index = *lru_bucket(t, key);
  while (index && t->entries[index].key != key) index = t->entries[index].next;
  if (!index) return NULL;
  if (t->entries[0].older != index) {
    lru_ring_remove(t, &t->entries[index]);
    lru_make_youngest(t, index);
  }
  return &t->entries[index];
}

#endif
