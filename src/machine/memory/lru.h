/* SPDX-License-Identifier: Apache-2.0 */
/* A fully associative table with LRU replacement: TLBs, the page walk cache. */
#ifndef FF_MACHINE_MEMORY_LRU_H
#define FF_MACHINE_MEMORY_LRU_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/time.h"

typedef struct lru_entry {
  uint64_t key;
  ps ready;
  uint32_t newer, older, next;
} lru_entry;
/* What several tables hold, by a hash of the keys: the entries of all of them whose keys share a slot. Where a slot has
 * none, none of the tables needs to be looked into. */
typedef struct lru_census {
  uint32_t *counts, mask;
} lru_census;
typedef struct lru {
  lru_entry *entries; /* [0] is the list's head: newer/older make a ring */
  uint32_t *buckets;
  uint32_t count, capacity, mask;
  lru_census *census; /* NULL: its entries are not counted */
} lru;
void lru_init(lru *table, arena *a, uint64_t capacity);
void lru_census_init(lru_census *census, arena *a,
                     uint64_t entries); /* entries: of all its tables, when they are full */
/* No table of the census has the key. false: one may have it. */
bool lru_census_lacks(const lru_census *census, uint64_t key);
lru_entry *lru_find(lru *table, uint64_t key); /* and makes it the youngest; NULL: absent */
/* key must be absent; the oldest goes if it is full. NULL: it has no entries */
lru_entry *lru_insert(lru *table, uint64_t key, ps ready);
uint32_t lru_remove_range(lru *table, uint64_t first, uint64_t last); /* all keys from first to last; how many */
bool lru_remove(lru *table, uint64_t key);                            /* false: it was not there */

#endif
