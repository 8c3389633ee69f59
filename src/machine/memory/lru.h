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
typedef struct lru {
  lru_entry *entries; /* [0] is the list's head: newer/older make a ring */
  uint32_t *buckets;
  uint32_t count, capacity, mask;
} lru;
void lru_init(lru *table, arena *a, uint64_t capacity);
lru_entry *lru_find(lru *table, uint64_t key); /* and makes it the youngest; NULL: absent */
/* key must be absent; the oldest goes if it is full. NULL: it has no entries */
lru_entry *lru_insert(lru *table, uint64_t key, ps ready);
uint32_t lru_remove_range(lru *table, uint64_t first, uint64_t last); /* all keys from first to last; how many */
bool lru_remove(lru *table, uint64_t key);                            /* false: it was not there */

#endif
