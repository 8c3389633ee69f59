/* SPDX-License-Identifier: Apache-2.0 */
/* Which branches have a short region behind them (emit_plan.h), found as a warp would run it: of the places where lanes
 * stand, the one of smallest rank goes on, until they all stand at one. And which lead back to a short loop. */
#include <stdlib.h>

#include "base/memory.h"
#include "compile/generator/emit_plan.h"
#include "exec/core.h"

typedef struct front { /* blocks where lanes stand */
  uint32_t blocks[PLAN_HAMMOCK_BLOCKS], count;
} front;

static uint32_t rank_of(const plan *p, uint32_t b) { return p->code[p->blocks[b].first].rank; }

/* False: there are too many. */
static bool add(front *f, uint32_t b) {
  for (uint32_t n = 0; n < f->count; n++)
    if (f->blocks[n] == b) return true;
  if (f->count == PLAN_HAMMOCK_BLOCKS) return false;
  f->blocks[f->count++] = b;
  return true;
}

static uint32_t take_first(const plan *p, front *f) {
  uint32_t first = 0;
  for (uint32_t n = 1; n < f->count; n++)
    if (rank_of(p, f->blocks[n]) < rank_of(p, f->blocks[first])) first = n;
  uint32_t b = f->blocks[first];
  f->blocks[first] = f->blocks[--f->count];
  return b;
}

/* Block b may be in a region: it is noted. */
static bool may_pass(const plan *p, plan_hammock *h, uint32_t b) {
  const plan_block *block = &p->blocks[b];
  if (h->count == PLAN_HAMMOCK_BLOCKS || !block->next_count ||
      (h->instructions += block->end - block->first) > PLAN_HAMMOCK_LONGEST)
    return false;
  h->inside[h->count++] = b;
  for (uint32_t n = block->first; n < block->end; n++) {
    switch (p->code[n].op) {
    case NATIVE_EXIT:
    case NATIVE_BRANCH_INDEXED:
    case NATIVE_SYNC:
    case NATIVE_SHUFFLE:
    case NATIVE_WARP_SYNC: return false;
    case NATIVE_HANDLER:
      if (h->loop && p->code[n].observes) return false;
      break;
    default: break;
    }
    h->starts |= (p->code[n].attention & EXEC_ATTEND_START) != 0;
  }
  return true;
}

static bool pass(const plan *p, plan_hammock *h, front *f, uint32_t b) {
  const plan_block *block = &p->blocks[b];
  if (!may_pass(p, h, b)) return false;
  for (uint32_t s = 0; s < block->next_count; s++)
    if (rank_of(p, block->next[s]) <= rank_of(p, b) || !add(f, block->next[s])) return false;
  return true;
}

void plan_add_written(const plan *p, uint32_t b, uint64_t *written) {
  for (uint32_t n = p->blocks[b].first; n < p->blocks[b].end; n++)
    for (uint32_t w = 0; w < p->code[n].write_count; w++) {
      uint32_t slot = p->slot_of[p->code[n].operands + p->code[n].read_count + w], twin = slot;
      do {
        plan_add(written, twin);
        twin = p->slots[twin].twin;
      } while (twin != slot);
    }
}

static void find_written(const plan *p, plan_hammock *h) {
  h->written = ff_alloc(p->words * sizeof *h->written);
  for (uint32_t c = 0; c < h->count; c++) plan_add_written(p, h->inside[c], h->written);
}

/* The branch at the end of block b leads back to `first`, else to `out`: is that such a loop? */
static bool find_loop(const plan *p, uint32_t b, uint32_t first, uint32_t out, plan_hammock *h) {
  front f = {{first, out}, 2};
  *h = (plan_hammock){.loop = true, .meet = out};
  while (f.count > 1) {
    uint32_t at = take_first(p, &f);
    if (at == out || rank_of(p, at) > rank_of(p, b) || !may_pass(p, h, at)) return false;
    for (uint32_t s = 0; at != b && s < p->blocks[at].next_count; s++)
      if (rank_of(p, p->blocks[at].next[s]) <= rank_of(p, at) || !add(&f, p->blocks[at].next[s])) return false;
  }
  return f.blocks[0] == out && h->inside[h->count - 1] == b;
}

static void keep_region(const plan *p, plan_block *block, plan_hammock *h) {
  find_written(p, h);
  block->hammock = ff_alloc(sizeof *h);
  *block->hammock = *h;
}

void plan_find_hammocks(plan *p) {
  for (uint32_t b = 0; b < p->block_count; b++) {
    plan_block *block = &p->blocks[b];
    if (p->code[block->end - 1].op != NATIVE_BRANCH_IF || block->next_count != 2) continue;
    plan_hammock loop;
    for (uint32_t n = 0; n < 2; n++)
      if (rank_of(p, block->next[n]) <= rank_of(p, b) && find_loop(p, b, block->next[n], block->next[1 - n], &loop))
        keep_region(p, block, &loop);
    plan_hammock h = {0};
    front f = {{block->next[0], block->next[1]}, 2};
    bool good = block->next[0] != block->next[1] && rank_of(p, block->next[0]) > rank_of(p, b) &&
                rank_of(p, block->next[1]) > rank_of(p, b);
    while (good && f.count > 1) good = pass(p, &h, &f, take_first(p, &f));
    if (!good) continue;
    h.meet = f.blocks[0];
    keep_region(p, block, &h);
  }
}
