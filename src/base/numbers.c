/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of numbers: see numbers.h. Levels are counted from the leaves, which are level 0 and have no branches
 * but their bits. */
#include "base/numbers.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

enum { DIGIT = 6, MAX_LEVELS = 11 };

typedef struct ff_numbers_node {
  uint64_t used;
  struct ff_numbers_node *branches[]; /* 64, but for leaves */
} node;

static node *node_make(uint32_t level) { return ff_alloc(sizeof(node) + (level ? 64 * sizeof(node *) : 0)); }

static uint32_t digit_of(uint64_t number, uint32_t level) { return (uint32_t)(number >> level * DIGIT & 63); }

static bool has_room(const ff_numbers *set, uint64_t number) {
  return set->levels == MAX_LEVELS || (set->levels && number >> set->levels * DIGIT == 0);
}

static void node_free(node *n, uint32_t level) {
  for (uint32_t i = 0; level && i < 64; i++)
    if (n->branches[i]) node_free(n->branches[i], level - 1);
  free(n);
}

void ff_numbers_free(ff_numbers *set) {
  if (set->root) node_free(set->root, set->levels - 1);
  *set = (ff_numbers){0};
}

bool ff_numbers_has(const ff_numbers *set, uint64_t number) {
  const node *n = set->root;
  if (!n || !has_room(set, number)) return false;
  for (uint32_t level = set->levels - 1; level; level--)
    if (!(n = n->branches[digit_of(number, level)])) return false;
  return n->used >> digit_of(number, 0) & 1;
}

/* One level more: what there was is the first branch of the new root. */
static void grow(ff_numbers *set) {
  node *root = node_make(set->levels);
  if (set->root && set->root->used) {
    root->used = 1;
    root->branches[0] = set->root;
  } else {
    free(set->root);
  }
  set->root = root;
  set->levels++;
}

void ff_numbers_add(ff_numbers *set, uint64_t number) {
  while (!has_room(set, number)) grow(set);
  node *n = set->root;
  for (uint32_t level = set->levels - 1; level; level--) {
    uint32_t digit = digit_of(number, level);
    n->used |= UINT64_C(1) << digit;
    if (!n->branches[digit]) n->branches[digit] = node_make(level - 1);
    n = n->branches[digit];
  }
  set->count += !(n->used >> digit_of(number, 0) & 1);
  n->used |= UINT64_C(1) << digit_of(number, 0);
}

void ff_numbers_remove(ff_numbers *set, uint64_t number) {
  node *path[MAX_LEVELS];
  if (!ff_numbers_has(set, number)) return;
  path[set->levels - 1] = set->root;
  for (uint32_t level = set->levels - 1; level; level--)
    path[level - 1] = path[level]->branches[digit_of(number, level)];
  for (uint32_t level = 0; level < set->levels; level++) { /* up, as long as a node becomes empty */
    path[level]->used &= ~(UINT64_C(1) << digit_of(number, level));
    if (level) path[level]->branches[digit_of(number, level)] = NULL;
    if (path[level]->used || level == set->levels - 1) break;
    free(path[level]);
  }
  set->count--;
}

/* The smallest number of the branch that is `from` or more; `from` counts only within the branch. */
static bool node_next(const node *n, uint32_t level, uint64_t from, uint64_t *found) {
  uint32_t digit = digit_of(from, level);
  uint64_t base = level + 1 < MAX_LEVELS ? from >> (level + 1) * DIGIT << (level + 1) * DIGIT : 0;
  for (uint64_t left = n->used >> digit << digit; left; left &= left - 1) {
    uint32_t at = (uint32_t)__builtin_ctzll(left);
    uint64_t begin = at == digit ? from : base | (uint64_t)at << level * DIGIT;
    if (!level) {
      *found = base | at;
      return true;
    }
    /* fails for one branch at most: that of `from` */
    if (node_next(n->branches[at], level - 1, begin, found)) return true;
  }
  return false;
}

bool ff_numbers_next(const ff_numbers *set, uint64_t from, uint64_t *found) {
  return set->count && has_room(set, from) && node_next(set->root, set->levels - 1, from, found);
}

/* The largest number of the branch that is `to` or less; `to` counts only within the branch. */
static bool node_previous(const node *n, uint32_t level, uint64_t to, uint64_t *found) {
  uint32_t digit = digit_of(to, level);
  uint64_t base = level + 1 < MAX_LEVELS ? to >> (level + 1) * DIGIT << (level + 1) * DIGIT : 0;
  for (uint64_t left = n->used & UINT64_MAX >> (63 - digit); left;) {
    uint32_t at = 63 - (uint32_t)__builtin_clzll(left);
    uint64_t end = at == digit ? to : base | (uint64_t)at << level * DIGIT | ((UINT64_C(1) << level * DIGIT) - 1);
    if (!level) {
      *found = base | at;
      return true;
    }
    /* fails for one branch at most: that of `to` */
    if (node_previous(n->branches[at], level - 1, end, found)) return true;
    left &= ~(UINT64_C(1) << at);
  }
  return false;
}

bool ff_numbers_previous(const ff_numbers *set, uint64_t to, uint64_t *found) {
  if (!set->count) return false;
  if (!has_room(set, to)) to = (UINT64_C(1) << set->levels * DIGIT) - 1;
  return node_previous(set->root, set->levels - 1, to, found);
}
