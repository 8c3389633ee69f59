/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a function before its regions are looked at: see analysis.h. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "offload/analysis.h"
#include "offload/eligibility.h"
#include "ptx/analysis/dominators.h"

/* ---- registers ---- */

/* Can the lanes tell it themselves wherever they run? */
static bool is_known(ptx_sreg sreg) {
  return sreg == PTX_SREG_LANEID || (sreg >= PTX_SREG_LANEMASK_EQ && sreg <= PTX_SREG_LANEMASK_GT);
}

static uint32_t other_of(analysis *a, ptx_sreg sreg, const ptx_var *param) {
  for (size_t i = 0; i < a->others.count; i++)
    if (a->others.items[i].sreg == sreg && a->others.items[i].param == param) return a->func->reg_count + (uint32_t)i;
  FF_PUSH(&a->others, ((offload_other){sreg, param}));
  return a->func->reg_count + (uint32_t)a->others.count - 1;
}

typedef FF_VEC(touch) touch_list;

static void touch_others(analysis *a, const ptx_operand *operand, touch_list *all) {
  const ptx_var *var = operand->kind == PTX_OPERAND_ADDRESS && operand->symbol ? operand->symbol->var : NULL;
  if (operand->kind == PTX_OPERAND_SREG && !is_known(operand->sreg))
    FF_PUSH(all, ((touch){other_of(a, operand->sreg, NULL), TOUCH_READ}));
  if (var && var->space == PTX_SPACE_PARAM) FF_PUSH(all, ((touch){other_of(a, (ptx_sreg)0, var), TOUCH_READ}));
  for (uint32_t i = 0; i < operand->element_count; i++) touch_others(a, &operand->elements[i], all);
}

static void find_touches(analysis *a) {
  const ptx_func *func = a->func;
  touch_list all = {0};
  touched t = {0};
  a->touch_first = ff_alloc((func->instr_count + 1) * sizeof *a->touch_first);
  for (uint32_t i = 0; i < func->instr_count; i++) {
    a->touch_first[i] = (uint32_t)all.count;
    ptx_touched(&func->instrs[i], &t);
    for (uint32_t k = 0; k < func->instrs[i].operand_count && func->entry; k++)
      touch_others(a, &func->instrs[i].operands[k], &all);
    uint8_t write = func->instrs[i].guard == PTX_NO_REG ? TOUCH_WRITE : TOUCH_WRITE | TOUCH_MAYBE;
    for (uint32_t k = 0; k < t.reads + t.writes; k++)
      FF_PUSH(&all, ((touch){t.regs[k], k < t.reads ? TOUCH_READ : write}));
  }
  a->touch_first[func->instr_count] = (uint32_t)all.count;
  a->touches = all.items;
  free(t.regs);
  a->reg_count = func->reg_count + (uint32_t)a->others.count;
  a->weights = ff_alloc((a->reg_count + 1) * sizeof *a->weights);
  for (uint32_t r = 0; r < a->reg_count; r++)
    a->weights[r] = r < func->reg_count && func->regs[r].type == PTX_PRED ? 1 : 32;
}

/* Registers that a block reads before it writes them get bits. `written` marks (block + 1). */
static void find_exposed(analysis *a) {
  uint32_t *written = ff_alloc((a->reg_count + 1) * sizeof *written);
  a->flow.bit_of = ff_alloc((a->reg_count + 1) * sizeof *a->flow.bit_of);
  memset(a->flow.bit_of, 0xff, (a->reg_count + 1) * sizeof *a->flow.bit_of);
  for (uint32_t i = 0; i < a->func->instr_count; i++) {
    uint32_t block = a->cfg->block_of[i] + 1;
    for (uint32_t k = a->touch_first[i]; k < a->touch_first[i + 1]; k++) {
      const touch *t = &a->touches[k];
      if (t->flags & TOUCH_READ && written[t->reg] != block) ptx_dataflow_add(&a->flow, t->reg);
      if (t->flags & TOUCH_WRITE && !(t->flags & TOUCH_MAYBE)) written[t->reg] = block;
    }
  }
  free(written);
  a->flow.words = (a->flow.bit_count + 63) / 64;
  a->reg_of_bit = ff_alloc((a->flow.bit_count + 1) * sizeof *a->reg_of_bit);
  for (uint32_t r = 0; r < a->reg_count; r++)
    if (a->flow.bit_of[r] != PTX_NO_REG) a->reg_of_bit[a->flow.bit_of[r]] = r;
}

static void find_block_sets(analysis *a) {
  for (uint32_t i = 0; i < a->func->instr_count; i++) {
    uint32_t block = a->cfg->block_of[i];
    uint64_t *uses = block_set(a, a->uses, block), *kills = block_set(a, a->kills, block),
             *defines = block_set(a, a->defines, block);
    for (uint32_t k = a->touch_first[i]; k < a->touch_first[i + 1]; k++) {
      uint32_t bit = a->flow.bit_of[a->touches[k].reg];
      uint8_t flags = a->touches[k].flags;
      if (bit == PTX_NO_REG) continue;
      if (flags & TOUCH_READ && !bit_get(kills, bit)) bit_set(uses, bit);
      if (flags & TOUCH_WRITE) bit_set(defines, bit);
      if (flags & TOUCH_WRITE && !(flags & TOUCH_MAYBE)) bit_set(kills, bit);
    }
  }
}

/* Live behind the block, into `out`. */
static void join(const analysis *a, const ptx_block *block, uint64_t *out) {
  memset(out, 0, a->flow.words * sizeof *out);
  for (uint32_t s = 0; s < block->successor_count; s++) {
    const uint64_t *next = block_set(a, a->live_in, block->successors[s]);
    for (size_t w = 0; w < a->flow.words; w++) out[w] |= next[w];
  }
}

static bool live_pass(analysis *a, uint64_t *out) {
  bool changed = false;
  for (uint32_t i = a->cfg->block_count; i-- > 0;) {
    uint32_t b = a->cfg->by_order[i];
    uint64_t *in = block_set(a, a->live_in, b);
    const uint64_t *uses = block_set(a, a->uses, b), *kills = block_set(a, a->kills, b);
    join(a, &a->cfg->blocks[b], out);
    for (size_t w = 0; w < a->flow.words; w++) {
      uint64_t now = uses[w] | (out[w] & ~kills[w]);
      changed |= now != in[w];
      in[w] = now;
    }
  }
  return changed;
}

/* Sets TOUCH_LIVE in one block. `live`, per register: what is live behind it; what is live before it when this
 * returns. */
static void mark_live(analysis *a, const ptx_block *block, uint8_t *live) {
  for (uint32_t i = block->end; i-- > block->first;) {
    uint32_t first = a->touch_first[i], end = a->touch_first[i + 1];
    for (uint32_t k = first; k < end; k++)
      if (live[a->touches[k].reg]) a->touches[k].flags |= TOUCH_LIVE;
    for (uint32_t k = first; k < end; k++)
      if (a->touches[k].flags & TOUCH_WRITE && !(a->touches[k].flags & TOUCH_MAYBE)) live[a->touches[k].reg] = 0;
    for (uint32_t k = first; k < end; k++)
      if (a->touches[k].flags & TOUCH_READ) live[a->touches[k].reg] = 1;
  }
}

static void set_live(const analysis *a, const uint64_t *set, uint8_t *live, uint8_t value) {
  for (size_t w = 0; w < a->flow.words; w++)
    for (uint64_t rest = set[w]; rest; rest &= rest - 1)
      live[a->reg_of_bit[w * 64 + (size_t)__builtin_ctzll(rest)]] = value;
}

static void mark_all_live(analysis *a) {
  uint64_t *out = ff_alloc((a->flow.words + 1) * sizeof *out);
  uint8_t *live = ff_alloc(a->reg_count + 1);
  for (uint32_t r = 0; r < a->reg_count && !a->live_in; r++) live[r] = a->flow.bit_of[r] != PTX_NO_REG;
  for (uint32_t b = 0; b < a->cfg->block_count; b++) {
    const ptx_block *block = &a->cfg->blocks[b];
    if (a->live_in) {
      join(a, block, out);
      set_live(a, out, live, 1);
    }
    mark_live(a, block, live);
    if (a->live_in) set_live(a, out, live, 0);
    for (uint32_t k = a->touch_first[block->first]; k < a->touch_first[block->end]; k++)
      live[a->touches[k].reg] = !a->live_in && a->flow.bit_of[a->touches[k].reg] != PTX_NO_REG;
  }
  free(out);
  free(live);
}

/* A function whose sets would be too large: each register that some block reads first counts as live everywhere. */
static void find_liveness(analysis *a) {
  size_t words = a->flow.words * a->cfg->block_count;
  if (words <= DATAFLOW_WORDS / 4) {
    uint64_t **sets[] = {&a->live_in, &a->uses, &a->kills, &a->defines},
             *out = ff_alloc((a->flow.words + 1) * sizeof *out);
    int passes = 0;
    for (int i = 0; i < 4; i++) *sets[i] = ff_alloc((words + 1) * sizeof **sets[i]);
    find_block_sets(a);
    while (passes < DATAFLOW_PASSES && live_pass(a, out)) passes++;
    free(out);
    if (passes == DATAFLOW_PASSES) { /* did not settle */
      free(a->live_in);
      a->live_in = NULL;
    }
  }
  mark_all_live(a);
}

/* ---- loops ---- */

static bool has_self_edge(const ptx_block *block, uint32_t index) {
  for (uint32_t i = 0; i < block->successor_count; i++)
    if (block->successors[i] == index) return true;
  return false;
}

static bool entered_elsewhere(const analysis *a, const loop *l, uint32_t block) {
  const ptx_block *b = &a->cfg->blocks[block];
  for (uint32_t i = 0; block != l->header && i < b->predecessor_count; i++)
    if (a->cfg->blocks[b->predecessors[i]].reachable && !in_loop(a, l, b->predecessors[i])) return true;
  return false;
}

/* In the cfg's order a loop's header comes before its other blocks, so outer loops come before inner ones. */
static void find_loops(analysis *a) {
  ptx_cfg *cfg = a->cfg;
  FF_VEC(loop) all = {0};
  uint32_t open = OFFLOAD_NONE_INDEX;
  a->loop_of = ff_alloc((cfg->block_count + 1) * sizeof *a->loop_of);
  for (uint32_t order = 0; order < cfg->block_count; order++) {
    uint32_t b = cfg->by_order[order];
    const ptx_block *block = &cfg->blocks[b];
    while (open != OFFLOAD_NONE_INDEX && all.items[open].last_order < order) open = all.items[open].parent;
    if (block->reachable && (block->loop_end > order || has_self_edge(block, b))) {
      loop l = {.header = b,
                .first_order = order,
                .last_order = block->loop_end,
                .first_block = b,
                .last_block = b,
                .parent = open,
                .times = 1};
      open = (uint32_t)all.count;
      FF_PUSH(&all, l);
    }
    a->loop_of[b] = open;
    for (uint32_t i = open; i != OFFLOAD_NONE_INDEX; i = all.items[i].parent) {
      loop *l = &all.items[i];
      if (b < l->first_block) l->first_block = b;
      if (b > l->last_block) l->last_block = b;
      l->entered_elsewhere |= entered_elsewhere(a, l, b);
    }
  }
  a->loops = all.items;
  a->loop_count = (uint32_t)all.count;
}

static uint32_t add_capped(uint32_t sum, uint64_t more) {
  return more > (1u << 24) - sum ? 1u << 24 : sum + (uint32_t)more;
}

/* Accesses of a trip, inner loops first; how often the loop goes round in all, outer loops first. */
static void count_loops(analysis *a) {
  for (uint32_t i = 0; i < a->func->instr_count; i++) {
    uint32_t l = a->loop_of[a->cfg->block_of[i]];
    if (l == OFFLOAD_NONE_INDEX) continue;
    a->loops[l].loads = add_capped(a->loops[l].loads, a->accesses[i] == ACCESS_LOAD);
    a->loops[l].stores = add_capped(a->loops[l].stores, a->accesses[i] == ACCESS_STORE);
  }
  for (uint32_t i = a->loop_count; i-- > 0;) {
    const loop *l = &a->loops[i];
    uint64_t times = l->trips.kind == OFFLOAD_TRIPS_STATIC ? l->trips.count : 1;
    if (l->parent == OFFLOAD_NONE_INDEX) continue;
    a->loops[l->parent].loads = add_capped(a->loops[l->parent].loads, l->loads * times);
    a->loops[l->parent].stores = add_capped(a->loops[l->parent].stores, l->stores * times);
  }
  for (uint32_t i = 0; i < a->loop_count; i++) {
    loop *l = &a->loops[i];
    double trips = l->trips.kind == OFFLOAD_TRIPS_STATIC  ? l->trips.count
                   : l->trips.kind == OFFLOAD_TRIPS_KNOWN ? TRIPS_NOMINAL
                                                          : 1;
    l->times = trips * (l->parent == OFFLOAD_NONE_INDEX ? 1 : a->loops[l->parent].times);
    if (l->times > 1 << 20) l->times = 1 << 20; /* sums of what is saved stay exact */
  }
}

static void find_dominators(analysis *a) {
  uint32_t count = a->cfg->block_count, edges = 0;
  for (uint32_t b = 0; b < count; b++) edges += a->cfg->blocks[b].successor_count;
  ptx_graph forward = {count, ff_alloc((count + 1) * sizeof(uint32_t)), ff_alloc((edges + 1) * sizeof(uint32_t))};
  ptx_graph backward = {count, ff_alloc((count + 1) * sizeof(uint32_t)), ff_alloc((edges + 1) * sizeof(uint32_t))};
  uint32_t to = 0, from = 0;
  for (uint32_t b = 0; b < count; b++) {
    const ptx_block *block = &a->cfg->blocks[b];
    forward.first[b] = to;
    backward.first[b] = from;
    for (uint32_t i = 0; i < block->successor_count; i++) forward.to[to++] = block->successors[i];
    for (uint32_t i = 0; i < block->predecessor_count; i++) backward.to[from++] = block->predecessors[i];
  }
  forward.first[count] = to;
  backward.first[count] = from;
  a->idom = ff_alloc((count + 1) * sizeof *a->idom);
  ptx_dominators(&forward, &backward, 0, a->idom);
  free(forward.first);
  free(forward.to);
  free(backward.first);
  free(backward.to);
}

/* ---- the whole ---- */

void analysis_make(analysis *a, const ptx_func *func) {
  *a = (analysis){.func = func, .cfg = ptx_cfg_build(func)};
  find_touches(a);
  find_exposed(a);
  find_liveness(a);
  a->ineligible = ff_alloc(func->instr_count + 1);
  a->accesses = ff_alloc(func->instr_count + 1);
  eligibility_find(func, a->ineligible, a->accesses);
  if (!func->instr_count) return;
  find_dominators(a);
  find_loops(a);
  trips_find(a);
  count_loops(a);
  if (ff_check_level >= 2) analysis_check(a);
}

void analysis_free(analysis *a) {
  ptx_cfg_free(a->cfg);
  void *owned[] = {a->touches, a->touch_first, a->ineligible, a->accesses, a->weights, a->flow.bit_of, a->reg_of_bit,
                   a->live_in, a->uses,        a->kills,      a->defines,  a->loops,   a->loop_of,     a->idom};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
  free(a->others.items);
}
