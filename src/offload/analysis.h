/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the analysis share: facts of one function that are found once, before regions are looked at.
 *
 *   facts.c      what each instruction does to registers and memory, and what bars it; liveness; loops
 *   trips.c      how often a loop goes round
 *   span.c       what a stretch of whole blocks does to registers, seen as one instruction; live-in and live-out while a region grows
 *   choose.c     all regions, and the best set of them that do not overlap
 *   needs.c      registers that a region takes; whether it follows indices
 *   candidates.c the list that a user sees
 *
 * `live_in`, `uses`, `kills` and `defines` are sets of the registers that are live into some block (only these have
 * bits); each block writes a register without a bit before it reads it. offload_check.c has the equations. */
#ifndef FF_OFFLOAD_ANALYSIS_H
#define FF_OFFLOAD_ANALYSIS_H

#include "offload/candidates.h"
#include "ptx/analysis/dataflow.h"

#define OFFLOAD_NONE_INDEX UINT32_MAX

/* MAYBE: a guarded write keeps the old value of some lanes; LIVE: after it */
enum { TOUCH_READ = 1, TOUCH_WRITE = 2, TOUCH_MAYBE = 4, TOUCH_LIVE = 8 };
typedef struct touch {
  uint32_t reg;
  uint8_t flags;
} touch; /* reads of an instruction first */

typedef enum access { ACCESS_NONE, ACCESS_LOAD, ACCESS_STORE } access;

typedef struct loop {
  uint32_t header;                  /* block */
  uint32_t first_order, last_order; /* its blocks have these positions in the cfg's order */
  uint32_t first_block, last_block; /* in layout; others may lie between them */
  uint32_t parent;                  /* the loop around it, or OFFLOAD_NONE_INDEX; smaller than its own index */
  bool entered_elsewhere;           /* irreducible */
  offload_trips trips;
  uint32_t loads, stores; /* in one trip; of a nested loop as often as the code says, else once */
  double times;           /* a warp goes round in one run of the kernel, as far as the code says */
} loop;

/* Special registers and parameters that the function reads are registers, too, numbered behind its own: no
 * instruction writes them, so they are live in. */
typedef struct analysis {
  const ptx_func *func;
  uint32_t reg_count; /* with the others */
  FF_VEC(offload_other) others;
  ptx_cfg *cfg;
  touch *touches; /* of instruction i: touches[touch_first[i]] to touches[touch_first[i + 1] - 1] */
  uint32_t *touch_first;
  uint8_t *ineligible, *accesses; /* per instruction: offload_bar, access */
  uint32_t *weights;              /* words of 4 bytes of a warp's register, as they are counted: 32, a predicate 1 */
  dataflow flow;
  uint32_t *reg_of_bit;
  uint64_t *live_in, *uses, *kills, *defines; /* per block; NULL: the function is too large for them */
  loop *loops;
  uint32_t loop_count;
  uint32_t *loop_of; /* block -> innermost loop, or OFFLOAD_NONE_INDEX */
  uint32_t *idom;    /* block -> its immediate dominator */
} analysis;

void analysis_make(analysis *a, const ptx_func *func);
void analysis_free(analysis *a);

/* offload_check.c: assert the invariants; the last one of what offload_analyze returns. */
typedef struct region_state region_state;
void analysis_check(const analysis *a);
void region_state_check(const region_state *r);
void offload_kernel_check(const offload_kernel *kernel);

static inline uint64_t *block_set(const analysis *a, uint64_t *sets, uint32_t block) {
  return sets + (size_t)block * a->flow.words;
}
static inline bool in_loop(const analysis *a, const loop *l, uint32_t block) {
  uint32_t order = a->cfg->blocks[block].order;
  return order >= l->first_order && order <= l->last_order;
}

/* ---- trips.c ---- */

void trips_find(analysis *a); /* loops[].trips */
#define TRIPS_NOMINAL 16      /* of a loop whose trips are known only when it runs, where candidates are compared */

/* ---- span.c ---- */

/* Whole blocks [first, last] of the layout (none if first > last) behind the end of block first - 1, or entered at
 * `entry`; all ways lead to `exit`. */
/* READ: before it is written for certain; WRITE; MAYBE: not on all ways; LIVE: at the exit */
typedef struct effect {
  uint32_t reg;
  uint8_t flags;
} effect;
typedef struct span {
  uint32_t first, last, entry; /* entry: a block, or OFFLOAD_NONE_INDEX */
  uint32_t exit;               /* instruction */
  effect *effects;             /* those of spans->effects from effect_first on */
  uint32_t effect_first, effect_count;
  uint32_t once_loads, once_stores; /* outside `loop` */
  uint32_t loop;                    /* the one whose trips count, or OFFLOAD_NONE_INDEX */
  bool bounds_written;              /* its counter's bounds are, in the span but outside it */
  uint64_t work;                    /* what it took to find out */
} span;
typedef FF_VEC(effect) effects;

/* first, last, entry and exit are given; the rest is found. false: it took too long. */
bool span_make(const analysis *a, span *s, effects *all);

/* A region that grows instruction by instruction, and what has to be sent for it. */
struct region_state {
  const analysis *a;
  uint8_t *flags;    /* per register */
  uint32_t *changed; /* registers with flags */
  uint32_t changed_count;
  uint32_t in_words, out_words;
  uint32_t loads, stores;
};
typedef struct undo {
  uint32_t reg;
  uint8_t flags;
} undo;
typedef FF_VEC(undo) undo_log;

void region_state_make(region_state *r, const analysis *a);
void region_state_free(region_state *r);
void region_state_clear(region_state *r);
/* The next instruction of a block; the log, unless NULL, gets what was before. */
void region_state_add(region_state *r, uint32_t instr, undo_log *log);
void region_state_add_span(region_state *r, const effect *effects, uint32_t count, undo_log *log);
void region_state_undo(region_state *r, const undo_log *log);
bool region_state_writes(const region_state *r, uint32_t reg); /* so far, if only maybe */
bool region_state_is_in(const region_state *r, uint32_t reg);
bool region_state_is_out(const region_state *r, uint32_t reg);

/* ---- choose.c ---- */

typedef struct choice {
  uint32_t begin, end;
} choice;
typedef FF_VEC(choice) choices;
/* The regions of the best set, by begin. */
void choose(const analysis *a, choices *chosen);
/* What a region saves: words of 4 bytes for nominal trips, times its instances. Fills in costs, threshold and bits from
 * words, accesses, trips and times. */
double region_cost(offload_region *region);
/* How often a warp comes to block `first`, but for the loops that lie in blocks [first, end). */
double times_of(const analysis *a, uint32_t first, uint32_t end);
/* The region's trips are the loop's; its counter's bounds may have been overwritten before. */
offload_trips region_trips(const analysis *a, uint32_t loop, bool bounds_written);
bool bounds_written(const region_state *r, const span *s);

/* ---- needs.c ---- */

uint32_t region_registers(const analysis *a, const offload_region *r); /* 0: not known, the function is too large */
/* does an access of it have an address that another one loaded? */
bool region_follows(const analysis *a, const offload_region *r);

/* Describes any stretch of instructions as a region, with what bars it. `all` is scratch; what the region points to
 * comes from the arena. */
void region_describe(const analysis *a, uint32_t begin, uint32_t end, region_state *state, effects *all,
                     ff_arena *arena, offload_region *region);

#endif
