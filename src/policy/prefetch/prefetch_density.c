/* SPDX-License-Identifier: Apache-2.0 */
/* density: the prefetcher of NVIDIA's managed-memory driver (release 595). In a tree over the pages of one allocation's
 * part of a block, count what is resident or faulted, every 64 KiB group with a fault counted whole; from each faulted
 * page upwards, the largest node with
 *
 *     count * 100 > size * threshold                         size: pages of the node, cut at the part's end
 *
 * is brought. All faults of a call see the same counts: the tree is not updated in between. The part's first
 * page is where the tree begins, moved down to a group's boundary so that groups are nodes. With threshold 100 nothing
 * is ever brought in addition to the faults; 51 is the driver's default.
 *
 * Faults of the CPU have the same tree, with what is resident in host memory. */
#include <stdlib.h>

#include "base/memory.h"
#include "policy/pages.h"
#include "policy/policies.h"

enum { DEFAULT_THRESHOLD = 51 };

typedef struct density {
  uint32_t threshold;
} density;

static void *create(const char *argument, const char **problem) {
  uint32_t threshold = argument ? 0 : DEFAULT_THRESHOLD;
  bool digits = !argument || *argument;
  for (const char *c = argument; digits && c && *c; c++) {
    digits = *c >= '0' && *c <= '9' && threshold <= 100;
    threshold = threshold * 10 + (uint32_t)(*c - '0');
  }
  if (!digits || threshold > 100) {
    *problem = "the threshold is a whole number of per cent, from 0 to 100";
    return NULL;
  }
  density *d = ff_alloc(sizeof *d);
  d->threshold = threshold;
  return d;
}

static void destroy(void *state) { free(state); }

/* What goes into one decision: the faults of one piece. */
typedef struct tree {
  pages_piece piece;
  uint32_t origin; /* page at which the tree begins */
  ff_pages counted;
} tree;

static bool same_piece(const pages_piece *a, const pages_piece *b) {
  return a->block == b->block && a->allocation.address == b->allocation.address && a->first == b->first;
}

/* Counts the whole group around each of the piece's faults. */
static void count_faults(tree *t, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pages_piece piece;
    if (!pages_piece_at(view, faults[i].address, &piece) || !same_piece(&piece, &t->piece)) continue;
    uint32_t first = pages_index(faults[i].address) / FF_GROUP_PAGES * FF_GROUP_PAGES, end = first + FF_GROUP_PAGES;
    pages_add(&t->counted, first > t->piece.first ? first : t->piece.first, end < t->piece.end ? end : t->piece.end);
  }
}

/* Adds the largest node above the page that is dense enough. */
static void add_node(const tree *t, uint32_t threshold, uint32_t page, ff_pages *wanted) {
  uint32_t first = page, end = page;
  for (uint32_t size = 1; size <= FF_BLOCK_PAGES; size *= 2) {
    uint32_t node = t->origin + (page - t->origin) / size * size;
    uint32_t node_end = node + size < t->piece.end ? node + size : t->piece.end;
    if (pages_count(&t->counted, node, node_end) * 100 > (node_end - node) * threshold) {
      first = node;
      end = node_end;
    }
    if (node == t->origin && node_end == t->piece.end) break;
  }
  pages_add(wanted, first > t->piece.first ? first : t->piece.first, end);
}

/* there: what is resident of the block where the pages go. */
static void serve_piece(const density *d, ff_view *view, const pages_piece *piece, const ff_pages *there,
                        const ff_fault *faults, size_t count) {
  ff_pages own = pages_between(piece->first, piece->end);
  tree t = {
      .piece = *piece, .origin = piece->first / FF_GROUP_PAGES * FF_GROUP_PAGES, .counted = pages_and(there, &own)};
  count_faults(&t, view, faults, count);
  ff_pages wanted = {0}, known = *there;
  uint32_t near = FF_BLOCK_PAGES; /* the first fault's page */
  for (size_t i = 0; i < count; i++) {
    pages_piece other;
    if (!pages_piece_at(view, faults[i].address, &other) || !same_piece(&other, piece)) continue;
    if (near == FF_BLOCK_PAGES) near = pages_index(faults[i].address);
    add_node(&t, d->threshold, pages_index(faults[i].address), &wanted);
  }
  pages_add_faulted(view, piece->block, faults, count, &known);
  wanted = pages_without(&wanted, &known);
  pages_propose(view, piece->block, &wanted, near);
}

static void faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pages_piece piece, earlier;
    if (!pages_piece_at(view, faults[i].address, &piece)) continue;
    bool served = false; /* with an earlier fault of the same piece */
    for (size_t j = 0; j < i && !served; j++)
      served = pages_piece_at(view, faults[j].address, &earlier) && same_piece(&earlier, &piece);
    if (served) continue;
    ff_block block;
    view->block(view, piece.block, &block);
    serve_piece(state, view, &piece, &block.valid, faults, count);
  }
}

static void host_faulted(void *state, ff_view *view, uint64_t address, const ff_pages *there) {
  pages_piece piece;
  if (pages_piece_at(view, address, &piece))
    serve_piece(state, view, &piece, there, &(ff_fault){.address = address}, 1);
}

const ff_policy policy_prefetch_density = {
    .version = FF_POLICY_VERSION,
    .name = "density",
    .summary = "the driver's: the largest node around the fault that is denser than the threshold",
    .create = create,
    .destroy = destroy,
    .faulted = faulted,
    .host_faulted = host_faulted,
};
