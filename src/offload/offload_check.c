/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of the analysis, checked at the deep level.
 *
 * Of a function's facts (analysis_check):
 *     live_in[b] == uses[b] | (live_in of b's successors & ~kills[b]), and kills[b] is a subset of defines[b]
 *     a register without a bit is not read in a block before the block has written it
 *     an outer loop comes before the loops in it, and has all their blocks
 * Of a region that grows (region_state_check):
 *     in_words == sum of the weights of the registers that are in; out_words of those that are out
 * Of the list (offload_kernel_check):
 *     regions by begin, larger ones first, each once; no two chosen ones overlap; chosen_count of them are chosen
 *     a region is entered inside and goes on outside; only what may be offloaded and saves bytes is a candidate, and
 *     only candidates are chosen */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "offload/analysis.h"

/* ---- facts ---- */

static void check_live(const analysis *a, uint32_t block, uint64_t *out) {
  const ptx_block *b = &a->cfg->blocks[block];
  const uint64_t *in = block_set(a, a->live_in, block), *kills = block_set(a, a->kills, block);
  memset(out, 0, a->flow.words * sizeof *out);
  for (uint32_t s = 0; s < b->successor_count; s++)
    for (size_t w = 0; w < a->flow.words; w++) out[w] |= block_set(a, a->live_in, b->successors[s])[w];
  for (size_t w = 0; w < a->flow.words; w++) {
    FF_ASSERT(in[w] == (block_set(a, a->uses, block)[w] | (out[w] & ~kills[w])));
    FF_ASSERT(!(kills[w] & ~block_set(a, a->defines, block)[w]));
  }
}

/* `written` per register: the last block (+ 1) that wrote it for certain. */
static void check_block_locals(const analysis *a, uint32_t block, uint32_t *written) {
  const ptx_block *b = &a->cfg->blocks[block];
  for (uint32_t k = a->touch_first[b->first]; k < a->touch_first[b->end]; k++) {
    const touch *t = &a->touches[k];
    if (t->flags & TOUCH_READ) FF_ASSERT(a->flow.bit_of[t->reg] != PTX_NO_REG || written[t->reg] == block + 1);
    if (t->flags & TOUCH_WRITE && !(t->flags & TOUCH_MAYBE)) written[t->reg] = block + 1;
  }
}

static void check_loops(const analysis *a) {
  for (uint32_t i = 0; i < a->loop_count; i++) {
    const loop *l = &a->loops[i];
    FF_ASSERT(a->cfg->blocks[l->header].order == l->first_order && l->first_order <= l->last_order);
    if (l->parent == OFFLOAD_NONE_INDEX) continue;
    FF_ASSERT(l->parent < i && a->loops[l->parent].first_order <= l->first_order);
    FF_ASSERT(a->loops[l->parent].last_order >= l->last_order);
  }
}

void analysis_check(const analysis *a) {
  uint64_t *out = ff_alloc((a->flow.words + 1) * sizeof *out);
  uint32_t *written = ff_alloc((a->reg_count + 1) * sizeof *written);
  for (uint32_t b = 0; b < a->cfg->block_count; b++) {
    if (a->live_in) check_live(a, b, out);
    check_block_locals(a, b, written);
  }
  check_loops(a);
  free(out);
  free(written);
}

/* ---- a region that grows ---- */

void region_state_check(const region_state *r) {
  uint32_t in = 0, out = 0;
  for (uint32_t i = 0; i < r->changed_count; i++) {
    uint32_t reg = r->changed[i];
    in += region_state_is_in(r, reg) ? r->a->weights[reg] : 0;
    out += region_state_is_out(r, reg) ? r->a->weights[reg] : 0;
  }
  FF_ASSERT(in == r->in_words && out == r->out_words);
}

/* ---- the list ---- */

void offload_kernel_check(const offload_kernel *k) {
  uint32_t chosen = 0, end = 0; /* of the chosen one before */
  for (uint32_t i = 0; i < k->region_count; i++) {
    const offload_region *r = &k->regions[i], *before = i ? r - 1 : NULL;
    FF_ASSERT(r->begin < r->end && r->end <= k->func->instr_count);
    FF_ASSERT(!before || before->begin < r->begin || (before->begin == r->begin && before->end > r->end));
    FF_ASSERT(!r->candidate || r->bar == OFFLOAD_NONE);
    if (!r->chosen) continue;
    FF_ASSERT(r->candidate && r->begin >= end && r->threshold != OFFLOAD_NEVER);
    FF_ASSERT(r->entry >= r->begin && r->entry < r->end && (r->exit < r->begin || r->exit >= r->end));
    end = r->end;
    chosen++;
  }
  FF_ASSERT(chosen == k->chosen_count);
}
