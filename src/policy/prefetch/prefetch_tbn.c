/* SPDX-License-Identifier: Apache-2.0 */
/* tbn: the tree-based neighbourhood prefetcher (TBNp), Ganguly et al., ISCA 2019. The group of the fault becomes valid;
 * then, in post-order, every inner node of which more than half is valid, but not all, is filled.
 *
 *     a tree: one allocation's part of one block, its 64 KiB groups as leaves; full, so the part is rounded up to 2^i
 *     groups
 *     filled: inner nodes with size / 2 < valid < size       size, valid: in pages, those of the padding included
 *     a fault brings at most 1 MiB, its own 4 KiB included: a node that would make it more waits for another fault
 *
 * Padding, pages of the tree beyond the allocation's end, counts as valid from when the rule would have brought it.
 * That need not be remembered: in a group that the allocation shares it does once the allocation's pages are valid, and
 * in a group of its own once a node above it is filled, which a visit of what is there finds again. It is proposed
 * once, like the rest; the pager cuts it off. Pages of another allocation are not proposed.
 *
 * With ":fit" it stops for good when less than 1 MiB of GPU memory is free: prefetch only until memory is full, as the
 * paper has it together with evictors without trees. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

enum { MAX_PAGES = 256 };

/* Pages are counted from the tree's first leaf, which need not be the block's. */
typedef struct tree {
  uint32_t origin, leaves; /* the first leaf's page in the block; a power of two */
  ff_pages there;
} tree;

/* A group of which another allocation, or nothing, has the rest is there when all that the piece has of it is. */
static void round_up_edge(tree *t, const pages_piece *piece, const ff_pages *valid, uint32_t page) {
  uint32_t first = page / FF_GROUP_PAGES * FF_GROUP_PAGES, end = first + FF_GROUP_PAGES;
  uint32_t own_first = first > piece->first ? first : piece->first, own_end = end < piece->end ? end : piece->end;
  if (pages_count(valid, own_first, own_end) == own_end - own_first)
    pages_add(&t->there, first - t->origin, end - t->origin);
}

static tree tree_of(const pages_piece *piece, const ff_pages *valid) {
  tree t = {.origin = piece->first / FF_GROUP_PAGES * FF_GROUP_PAGES, .leaves = 1};
  while (t.origin + t.leaves * FF_GROUP_PAGES < piece->end) t.leaves *= 2;
  ff_pages own = pages_between(piece->first, piece->end), there = pages_and(valid, &own);
  t.there = pages_down(&there, t.origin);
  round_up_edge(&t, piece, valid, piece->first);
  round_up_edge(&t, piece, valid, piece->end - 1);
  return t;
}

/* Post-order from a node; at most `*room` pages are added. */
static void visit(tree *t, uint32_t first, uint32_t leaves, uint32_t *room) {
  if (leaves == 1) return;
  visit(t, first, leaves / 2, room);
  visit(t, first + leaves / 2 * FF_GROUP_PAGES, leaves / 2, room);
  uint32_t size = leaves * FF_GROUP_PAGES, valid = pages_count(&t->there, first, first + size);
  if (valid * 2 <= size || size - valid > *room) return;
  *room -= size - valid;
  pages_add(&t->there, first, first + size);
}

/* The tree's pages as pages of the block, without those that belong to another allocation. */
static ff_pages tree_pages(const tree *t, const pages_piece *piece, const ff_pages *mapped) {
  ff_pages own = pages_between(piece->first, piece->end), others = pages_without(mapped, &own),
           pages = pages_up(&t->there, t->origin);
  return pages_without(&pages, &others);
}

/* The padding that counts as valid before the fault. */
static ff_pages padding_of(tree t, const pages_piece *piece, const ff_pages *mapped) {
  uint32_t room = FF_BLOCK_PAGES;
  visit(&t, 0, t.leaves, &room);
  ff_pages all = tree_pages(&t, piece, mapped), own = pages_between(piece->first, piece->end);
  return pages_without(&all, &own);
}

/* `known`: what is valid, comes by itself, or was proposed; it grows. */
static void fault(ff_view *view, const ff_fault *fault, const ff_block *block, ff_pages *known) {
  pages_piece piece;
  if (!pages_piece_at(view, fault->address, &piece)) return;
  uint32_t page = pages_index(fault->address), room = MAX_PAGES;
  ff_pages unit = {0};
  pages_add_faulted(view, piece.block, fault, 1, &unit);
  ff_pages before = pages_without(known, &unit), padding = padding_of(tree_of(&piece, &before), &piece, &block->mapped);
  *known = pages_or(known, &unit);
  tree t = tree_of(&piece, known);
  uint32_t leaf = (page - t.origin) / FF_GROUP_PAGES * FF_GROUP_PAGES;
  room -= 1 + FF_GROUP_PAGES - pages_count(&t.there, leaf, leaf + FF_GROUP_PAGES);
  pages_add(&t.there, leaf, leaf + FF_GROUP_PAGES);
  visit(&t, 0, t.leaves, &room);
  ff_pages wanted = tree_pages(&t, &piece, &block->mapped);
  wanted = pages_without(&wanted, &padding);
  wanted = pages_without(&wanted, known);
  pages_propose(view, piece.block, &wanted, page);
  *known = pages_or(known, &wanted);
}

typedef struct tbn {
  bool fit, full;
} tbn;

static void *create(const char *argument, const char **problem) {
  if (argument && strcmp(argument, "fit")) {
    *problem = "its argument is 'fit', or none";
    return NULL;
  }
  tbn *state = ff_alloc(sizeof *state);
  state->fit = argument != NULL;
  return state;
}

static void faulted(void *context, ff_view *view, const ff_fault *faults, size_t count) {
  tbn *state = context;
  if (state->fit && view->free_bytes(view) < MAX_PAGES * FF_PAGE_BYTES) state->full = true;
  if (state->full) return;
  ff_block block;
  ff_pages known, proposed;
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || pages_block_of(faults[i].address) != pages_block_of(faults[i - 1].address)) {
      view->block(view, faults[i].address, &block);
      known = block.valid;
    }
    proposed = pages_without(&known, &block.valid);
    if (!pages_has(&proposed, pages_index(faults[i].address))) fault(view, &faults[i], &block, &known);
  }
}

const ff_policy policy_prefetch_tbn = {
    .version = FF_POLICY_VERSION,
    .name = "tbn",
    .summary = "TBNp: the fault's 64K group, and nodes of its block's tree that are more than half there",
    .create = create,
    .destroy = free,
    .faulted = faulted,
};
