/* SPDX-License-Identifier: Apache-2.0 */
/* The regions that are listed for a kernel: the chosen ones; its loops, chosen or not; and outside of both the longest
 * runs that access memory, and the blocks with an instruction that bars them. choose.c chooses, region.c has the
 * costs. */
#include "offload/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "offload/analysis.h"

enum { LIST_WORK = 50000000 };

typedef struct lister {
  const analysis *a;
  offload_kernel *kernel;
  FF_VEC(offload_region) regions;
  choices chosen;
  region_state state;
  effects all;
  /* blocks and instructions that may still be looked at: what is not chosen is left out of a huge function */
  int64_t work;
} lister;

static bool pays(lister *l, uint32_t begin, uint32_t end) {
  const analysis *a = l->a;
  l->work -= (int64_t)(end - begin) +
             (int64_t)(a->cfg->block_of[end - 1] - a->cfg->block_of[begin]) * (int64_t)(4 * a->flow.words);
  return l->work > 0;
}

static offload_region *add(lister *l, uint32_t begin, uint32_t end) {
  offload_region region;
  region_describe(l->a, begin, end, &l->state, &l->all, &l->kernel->arena, &region);
  FF_PUSH(&l->regions, region);
  return &l->regions.items[l->regions.count - 1];
}

static void add_chosen(lister *l) {
  for (size_t i = 0; i < l->chosen.count; i++) {
    offload_region *r = add(l, l->chosen.items[i].begin, l->chosen.items[i].end);
    FF_ASSERT(r->candidate); /* choose.c saw the same */
    r->chosen = true;
    r->registers = region_registers(l->a, r);
    r->follows = region_follows(l->a, r);
  }
}

/* Does a chosen region overlap [begin, end)? */
static bool meets_chosen(const lister *l, uint32_t begin, uint32_t end) {
  size_t low = 0, high = l->chosen.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (l->chosen.items[middle].end <= begin) low = middle + 1;
    else high = middle;
  }
  return low < l->chosen.count && l->chosen.items[low].begin < end;
}

static void add_loops(lister *l) {
  const analysis *a = l->a;
  for (uint32_t i = 0; i < a->loop_count && a->live_in; i++) {
    uint32_t begin = a->cfg->blocks[a->loops[i].first_block].first, end = a->cfg->blocks[a->loops[i].last_block].end;
    if (pays(l, begin, end)) add(l, begin, end); /* a chosen one is there already: see finish() */
  }
}

static bool has_access(const analysis *a, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++)
    if (a->accesses[i]) return true;
  return false;
}

/* The longest runs of a block between what is barred: they say why nothing of it is chosen. */
static void add_runs(lister *l, uint32_t block) {
  const analysis *a = l->a;
  const ptx_block *b = &a->cfg->blocks[block];
  uint32_t i = b->first;
  while (i < b->end) {
    uint32_t begin = i;
    while (i < b->end && !a->ineligible[i]) i++;
    uint32_t end = i == b->end && a->func->instrs[i - 1].opcode == PTX_OP_BRA ? i - 1 : i;
    while (i < b->end && a->ineligible[i]) i++;
    if (begin < end && has_access(a, begin, end) && !meets_chosen(l, begin, end) && pays(l, begin, end))
      add(l, begin, end);
  }
}

/* What is in no loop and has something in it that bars it: not the end of all threads, but of some. */
static void add_barred(lister *l, uint32_t block) {
  const analysis *a = l->a;
  const ptx_block *b = &a->cfg->blocks[block];
  bool barred = false;
  for (uint32_t i = b->first; i < b->end; i++)
    barred |= a->ineligible[i] && (a->ineligible[i] != OFFLOAD_EXIT || a->func->instrs[i].guard != PTX_NO_REG);
  if (barred && a->loop_of[block] == OFFLOAD_NONE_INDEX && pays(l, b->first, b->end)) add(l, b->first, b->end);
}

/* A loop of one block says it all. */
static bool is_alone(const analysis *a, uint32_t block) {
  uint32_t l = a->loop_of[block];
  if (l == OFFLOAD_NONE_INDEX || a->loops[l].first_block != a->loops[l].last_block) return false;
  for (uint32_t i = a->cfg->blocks[block].first; i < a->cfg->blocks[block].end; i++)
    if (a->ineligible[i]) return false;
  return true;
}

/* By begin, larger ones first; chosen before its equal. */
static int by_place(const void *x, const void *y) {
  const offload_region *a = x, *b = y;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  if (a->end != b->end) return a->end > b->end ? -1 : 1;
  return b->chosen - a->chosen;
}

static void finish(lister *l) {
  uint32_t count = 0;
  if (l->regions.count) qsort(l->regions.items, l->regions.count, sizeof *l->regions.items, by_place);
  offload_region *kept = ff_arena_alloc(&l->kernel->arena, (l->regions.count + 1) * sizeof *kept);
  for (size_t i = 0; i < l->regions.count; i++) {
    const offload_region *r = &l->regions.items[i];
    if (!count || kept[count - 1].begin != r->begin || kept[count - 1].end != r->end) kept[count++] = *r;
  }
  l->kernel->regions = kept;
  l->kernel->region_count = count;
  l->kernel->chosen_count = (uint32_t)l->chosen.count;
  l->kernel->others = ff_arena_alloc(&l->kernel->arena, (l->a->others.count + 1) * sizeof *l->kernel->others);
  if (l->a->others.count) memcpy(l->kernel->others, l->a->others.items, l->a->others.count * sizeof *l->kernel->others);
}

offload_kernel *offload_analyze(const ptx_func *func) {
  offload_kernel *kernel = ff_alloc(sizeof *kernel);
  analysis a;
  kernel->func = func;
  if (!func->instr_count) return kernel;
  analysis_make(&a, func);
  lister l = {.a = &a, .kernel = kernel, .work = LIST_WORK};
  region_state_make(&l.state, &a);
  choose(&a, &l.chosen);
  add_chosen(&l);
  add_loops(&l);
  for (uint32_t b = 0; b < a.cfg->block_count; b++) {
    if (!a.cfg->blocks[b].reachable) continue;
    if (!is_alone(&a, b)) add_runs(&l, b);
    add_barred(&l, b);
  }
  finish(&l);
  if (ff_check_level >= 2) offload_kernel_check(kernel);
  region_state_free(&l.state);
  free(l.regions.items);
  free(l.chosen.items);
  free(l.all.items);
  analysis_free(&a);
  return kernel;
}

void offload_kernel_free(offload_kernel *kernel) {
  if (!kernel) return;
  ff_arena_free(&kernel->arena);
  free(kernel);
}

/* ---- for the machine ---- */

static uint32_t trips_of(const offload_region *region) {
  return region->trips.kind == OFFLOAD_TRIPS_STATIC ? region->trips.count : 1;
}

/* Trips from which on the words of both channels fall below zero. */
static uint32_t first_saving(double fixed, double trip) {
  if (trip >= 0) return fixed < 0 ? 1 : OFFLOAD_NEVER;
  double trips = floor(fixed / -trip) + 1;
  return trips < 1 ? 1 : trips < (double)OFFLOAD_NEVER ? (uint32_t)trips : OFFLOAD_NEVER;
}

/* What is sent counts in full here: a register of 64 bits is two words, where the equations count one. */
static double in_full(double fixed, uint32_t words, uint32_t bytes) { return fixed + bytes / 4.0 - words; }

static sim_sending left_of(const offload_region *r) {
  const offload_again *a = &r->again;
  offload_region left = {.in_words = a->in_words,
                         .out_words = a->out_words,
                         .once_loads = a->once_loads,
                         .once_stores = a->once_stores,
                         .loads = r->loads,
                         .stores = r->stores};
  region_cost(&left);
  double tx = in_full(left.tx_fixed, a->in_words, a->in_bytes), rx = in_full(left.rx_fixed, a->out_words, a->out_bytes);
  return (sim_sending){a->in_bytes, a->out_bytes, tx, rx, first_saving(tx + rx, left.tx_trip + left.rx_trip)};
}

/* As ptx_register_estimate for a kernel: what the assembler takes in addition, and the fewest that there are. */
static uint32_t registers_of(const offload_region *r) {
  enum { EXTRA = 4, FEWEST = 8 };
  return !r->registers ? 0 : r->registers + EXTRA < FEWEST ? FEWEST : r->registers + EXTRA;
}

sim_candidate offload_candidate(const offload_region *r) {
  double tx = in_full(r->tx_fixed, r->in_words, r->in_bytes), rx = in_full(r->rx_fixed, r->out_words, r->out_bytes);
  return (sim_candidate){.pc = r->entry,
                         .in_bytes = r->in_bytes,
                         .out_bytes = r->out_bytes,
                         .tx_fixed = tx,
                         .tx_trip = r->tx_trip,
                         .rx_fixed = rx,
                         .rx_trip = r->rx_trip,
                         .threshold = first_saving(tx + rx, r->tx_trip + r->rx_trip),
                         .conditional = r->trips.kind == OFFLOAD_TRIPS_KNOWN,
                         .trips = trips_of(r),
                         .again = r->again.any,
                         .again_pc = r->again.pc,
                         .left = left_of(r),
                         .registers = registers_of(r),
                         .follows = r->follows};
}
