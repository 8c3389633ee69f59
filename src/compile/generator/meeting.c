/* SPDX-License-Identifier: Apache-2.0 */
/* Where lanes meet that a branch has taken apart: at the first block that every way from the branch to an end of the
 * function goes through, its immediate postdominator (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm",
 * on the edges turned round). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compile/generator/emit_plan.h"

typedef struct graph {
  const plan *p;
  uint32_t *first, *before; /* edges turned round: the blocks before block b are before[first[b]] up to first[b + 1] */
  uint32_t *order, *place;  /* blocks from the ends on; where each is in the order, UINT32_MAX: no end is reached */
  uint32_t count;
} graph;

/* The end of the function is a block behind all others. */
static uint32_t end_of(const plan *p) { return p->block_count; }

static void turn_round(graph *g) {
  const plan *p = g->p;
  uint32_t n = p->block_count + 1;
  g->first = ff_alloc((n + 2) * sizeof *g->first);
  for (int fill = 0; fill < 2; fill++) {
    if (fill) {
      for (uint32_t b = 0; b <= n; b++) g->first[b + 1] += g->first[b];
      g->before = ff_alloc((g->first[n] + (size_t)1) * sizeof *g->before);
    }
    for (uint32_t b = 0; b < p->block_count; b++) {
      const plan_block *block = &p->blocks[b];
      for (uint32_t s = 0; s < block->next_count + !block->next_count; s++) {
        uint32_t to = block->next_count ? block->next[s] : end_of(p);
        if (fill) g->before[g->first[to]++] = b;
        else g->first[to + 1]++;
      }
    }
  }
  memmove(g->first + 1, g->first, n * sizeof *g->first); /* each was moved to the next one's */
  g->first[0] = 0;
}

/* Depth first from the end, in the order in which blocks are left. */
static void find_order(graph *g) {
  uint32_t n = g->p->block_count + 1, depth = 0, *stack = ff_alloc((n + (size_t)1) * sizeof *stack),
           *at = ff_alloc((n + (size_t)1) * sizeof *at);
  g->order = ff_alloc((n + (size_t)1) * sizeof *g->order);
  g->place = ff_alloc((n + (size_t)1) * sizeof *g->place);
  memset(g->place, 0xff, n * sizeof *g->place);
  uint8_t *seen = ff_alloc(n + (size_t)1);
  stack[depth++] = end_of(g->p);
  seen[end_of(g->p)] = 1;
  while (depth) {
    uint32_t b = stack[depth - 1];
    if (at[b] < g->first[b + 1] - g->first[b]) {
      uint32_t to = g->before[g->first[b] + at[b]++];
      if (!seen[to]) stack[depth++] = to;
      seen[to] = 1;
    } else {
      g->place[b] = g->count;
      g->order[g->count++] = b;
      depth--;
    }
  }
  free(stack);
  free(at);
  free(seen);
}

static uint32_t common(const graph *g, const uint32_t *meets, uint32_t x, uint32_t y) {
  while (x != y) {
    while (g->place[x] < g->place[y]) x = meets[x];
    while (g->place[y] < g->place[x]) y = meets[y];
  }
  return x;
}

static uint32_t meet_of(const graph *g, const uint32_t *meets, uint32_t b) {
  const plan_block *block = &g->p->blocks[b];
  uint32_t meet = UINT32_MAX;
  if (!block->next_count) return end_of(g->p);
  for (uint32_t s = 0; s < block->next_count; s++)
    if (meets[block->next[s]] != UINT32_MAX)
      meet = meet == UINT32_MAX ? block->next[s] : common(g, meets, meet, block->next[s]);
  return meet;
}

void plan_find_meetings(plan *p) {
  graph g = {.p = p};
  turn_round(&g);
  find_order(&g);
  p->meets = ff_alloc((p->block_count + (size_t)1) * sizeof *p->meets);
  memset(p->meets, 0xff, (p->block_count + (size_t)1) * sizeof *p->meets);
  p->meets[end_of(p)] = end_of(p);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = g.count - 1; n-- > 0;) { /* the last is the end */
      uint32_t b = g.order[n], meet = meet_of(&g, p->meets, b);
      changed |= p->meets[b] != meet;
      p->meets[b] = meet;
    }
  }
  free(g.first);
  free(g.before);
  free(g.order);
  free(g.place);
}

/* Slots that blocks behind b write, up to where its ways meet. */
uint64_t *plan_written_apart(const plan *p, uint32_t b) {
  uint64_t *written = ff_alloc(p->words * sizeof *written);
  uint32_t depth = 0, *stack = ff_alloc((p->block_count + (size_t)1) * sizeof *stack);
  uint8_t *seen = ff_alloc(p->block_count + (size_t)1);
  stack[depth++] = b;
  for (bool first = true; depth; first = false) {
    const plan_block *block = &p->blocks[stack[--depth]];
    for (uint32_t n = block->first; n < block->end && !first; n++)
      for (uint32_t w = 0; w < p->code[n].write_count; w++)
        plan_add(written, p->slot_of[p->code[n].operands + p->code[n].read_count + w]);
    for (uint32_t s = 0; s < block->next_count; s++) {
      if (block->next[s] == p->meets[b] || seen[block->next[s]]) continue;
      seen[block->next[s]] = 1;
      stack[depth++] = block->next[s];
    }
  }
  free(stack);
  free(seen);
  return written;
}
