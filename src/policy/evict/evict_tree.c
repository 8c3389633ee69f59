/* SPDX-License-Identifier: Apache-2.0 */
/* tree: tree-based neighbourhood eviction (TBNe), Ganguly et al., ISCA 2019. The victim is the least recently used 64
 * KiB group of the least recently used block; then, in post-order over the tree that has the group as a leaf, every
 * node of which less than half is in GPU memory, but something, is evicted whole.
 *
 *     a tree: one allocation's part of one block, its groups as leaves; full, so the leaves' number is a power of two
 *     evicted: inner nodes with 0 < valid < size / 2        size, valid: in pages that exist
 *
 * Leaves beyond the allocation's end do not exist here: they have size 0. (Were they to count as absent, the last group
 * of an allocation would be evicted each time for having no neighbour.) Recency is as in lru. */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

typedef struct tree_order {
  units blocks, groups; /* keys: time of the latest arrival, or of a use in between */
} tree_order;

static void *create(const char *argument, const char **problem) {
  if (argument) {
    *problem = "tree takes no argument: it evicts groups of 64K and what the tree adds to them";
    return NULL;
  }
  tree_order *o = ff_alloc(sizeof *o);
  units_init(&o->blocks, FF_BLOCK_BYTES);
  units_init(&o->groups, FF_GROUP_BYTES);
  return o;
}

static void destroy(void *state) {
  tree_order *o = state;
  units_free(&o->blocks);
  units_free(&o->groups);
  free(o);
}

/* ---- the tree ---- */

typedef struct cascade {
  ff_pages exists;    /* the allocation's pages of the block */
  ff_pages valid;     /* of all allocations, less what is being evicted */
  ff_pages evictable; /* part of valid */
  ff_pages victims;   /* found so far */
} cascade;

/* Post-order from the node of `leaves` groups that begins at page `first`. */
static void visit(cascade *c, uint32_t first, uint32_t leaves) {
  uint32_t end = first + leaves * FF_GROUP_PAGES;
  if (leaves == 1 || first >= FF_BLOCK_PAGES) return;
  visit(c, first, leaves / 2);
  visit(c, first + leaves / 2 * FF_GROUP_PAGES, leaves / 2);
  if (end > FF_BLOCK_PAGES) end = FF_BLOCK_PAGES;
  ff_pages there = pages_and(&c->exists, &c->valid);
  uint32_t size = pages_count(&c->exists, first, end), valid = pages_count(&there, first, end);
  if (valid == 0 || valid * 2 >= size) return;
  ff_pages node = pages_between(first, end), go = pages_and(&c->exists, &c->evictable);
  go = pages_and(&go, &node);
  c->victims = pages_or(&c->victims, &go);
  c->valid = pages_without(&c->valid, &go);
  c->evictable = pages_without(&c->evictable, &go);
}

/* What the tree evicts after the group that begins at page `group` has gone. */
static void visit_tree(cascade *c, const pages_piece *piece) {
  uint32_t first = piece->first / FF_GROUP_PAGES * FF_GROUP_PAGES, leaves = 1;
  while (first + leaves * FF_GROUP_PAGES < piece->end) leaves *= 2;
  c->exists = pages_between(piece->first, piece->end);
  visit(c, first, leaves);
}

/* ---- the order ---- */

static uint64_t recency(ff_view *view, const units *set, const unit *unit) {
  uint64_t used = view->last_use(view, unit->address, set->unit_bytes);
  return used > unit->key ? used : unit->key;
}

/* The first page of the least recently used group with anything to evict; FF_BLOCK_PAGES: there is none. */
static uint32_t oldest_group(const tree_order *o, ff_view *view, uint64_t block, const ff_pages *evictable) {
  uint32_t oldest = FF_BLOCK_PAGES;
  uint64_t oldest_use = UINT64_MAX;
  for (uint32_t page = 0; page < FF_BLOCK_PAGES; page += FF_GROUP_PAGES) {
    if (!pages_count(evictable, page, page + FF_GROUP_PAGES)) continue;
    uint64_t address = block + page * FF_PAGE_BYTES;
    uint64_t use = recency(view, &o->groups, &(unit){.key = units_key(&o->groups, address), .address = address});
    if (oldest < FF_BLOCK_PAGES && use >= oldest_use) continue;
    oldest = page;
    oldest_use = use;
  }
  return oldest;
}

/* Proposes group after group of the block. Returns the bytes; *gone: nothing of the block is in GPU memory. */
static uint64_t evict_block(const tree_order *o, ff_view *view, uint64_t address, uint64_t bytes, bool *gone) {
  ff_block block;
  view->block(view, address, &block);
  cascade c = {.valid = block.valid, .evictable = pages_evictable(&block)};
  *gone = pages_count(&block.valid, 0, FF_BLOCK_PAGES) == 0;
  uint64_t proposed = 0;
  for (uint32_t group; proposed < bytes && (group = oldest_group(o, view, address, &c.evictable)) < FF_BLOCK_PAGES;) {
    ff_pages leaf = pages_between(group, group + FF_GROUP_PAGES);
    leaf = pages_and(&leaf, &c.evictable);
    pages_propose(view, address, &leaf, FF_BLOCK_PAGES);
    c.valid = pages_without(&c.valid, &leaf);
    c.evictable = pages_without(&c.evictable, &leaf);
    c.victims = (ff_pages){0};
    pages_piece piece;
    if (pages_piece_of_page(view, address, pages_next(&leaf, group), &piece)) visit_tree(&c, &piece);
    pages_propose(view, address, &c.victims, FF_BLOCK_PAGES);
    proposed += (pages_count(&leaf, 0, FF_BLOCK_PAGES) + pages_count(&c.victims, 0, FF_BLOCK_PAGES)) * FF_PAGE_BYTES;
  }
  return proposed;
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  tree_order *o = state;
  FF_VEC(unit) taken = {0};
  for (uint64_t proposed = 0; proposed < bytes && units_count(&o->blocks);) {
    unit first = units_at(&o->blocks, 0);
    uint64_t use = recency(view, &o->blocks, &first);
    if (use != first.key) {
      units_put(&o->blocks, first.address, use);
      continue;
    }
    bool gone;
    uint64_t goes = evict_block(o, view, first.address, bytes - proposed, &gone);
    proposed += goes;
    if (!goes && !gone) {
      units_put_aside(&o->blocks, first.address);
      continue;
    }
    if (!gone && proposed >= bytes) break; /* it may stay where it is */
    units_drop(&o->blocks, first.address);
    if (!gone) FF_PUSH(&taken, first);
  }
  for (size_t i = 0; i < taken.count; i++) units_put(&o->blocks, taken.items[i].address, taken.items[i].key);
  free(taken.items);
}

typedef struct arrival {
  units *set;
  uint64_t now;
} arrival;
static void unit_arrived(void *context, uint64_t address) {
  const arrival *a = context;
  units_put(a->set, address, a->now);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  tree_order *o = state;
  units_each(FF_BLOCK_BYTES, address, bytes, unit_arrived, &(arrival){&o->blocks, view->now});
  units_each(FF_GROUP_BYTES, address, bytes, unit_arrived, &(arrival){&o->groups, view->now});
}

static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_settled(&((tree_order *)state)->blocks, address, bytes);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  tree_order *o = state;
  units_left(&o->blocks, view, address, bytes);
  units_left(&o->groups, view, address, bytes);
}

const ff_policy policy_evict_tree = {
    .version = FF_POLICY_VERSION,
    .name = "tree",
    .summary = "TBNe: the LRU 64K group of the LRU block, and neighbours that it leaves less than half full",
    .create = create,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
