/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the range analysis share.
 *
 *   ranges_value.c   arithmetic on abstract values
 *   ranges_eval.c    what one instruction computes
 *   ranges_refine.c  what a condition tells of registers
 *   ranges_flow.c    states along the control flow, loops
 *   ranges.c         which registers matter; accesses gathered per segment
 *
 * Only registers that an address or a condition may depend on are followed: each has a *slot*. A *state* describes the
 * point before an instruction: a value per slot, and per slot the instruction that defined it, as long as none of that
 * instruction's sources was written since. So a condition on one register also bounds the registers computed from it,
 * and those it was computed from. A state also has the blocks that can reach the point: `if (blockIdx.x == 0)`, or an
 * index that is clamped at one edge only. */
#ifndef FF_PTX_RANGES_PRIVATE_H
#define FF_PTX_RANGES_PRIVATE_H

#include "ptx/analysis/cfg.h"
#include "ptx/ranges/ranges.h"
#include "ptx/ranges/ranges_value.h"

#define RANGES_NONE UINT32_MAX
#define RANGES_MADE_UP (INT64_C(1) << 60) /* addresses of parameters and variables, whose real ones are unknown */
#define RANGES_MADE_UP_STEP (INT64_C(1) << 36)
enum { RANGES_LOOPS_NESTED = 32 };

typedef struct ranges_state {
  affine *values;     /* per slot */
  uint32_t *defs;     /* per slot: instruction, or RANGES_NONE */
  affine_grid blocks; /* only these get here */
} ranges_state;

typedef struct ranges_compared { /* what a setp compared, at that moment */
  uint32_t instr;
  affine a, b;
} ranges_compared;

typedef struct ranges_access { /* of one instruction, over all ways to it */
  bool seen, reads, writes;
  affine address; /* of its first byte; hi and max count to its last */
  affine_grid blocks;
} ranges_access;

typedef struct ranges_loop { /* being interpreted */
  uint32_t first, last;      /* orders of its blocks */
  bool final;                /* what leaves it goes on */
  uint32_t base_first;       /* while its trips are counted, what it writes has base base_first + slot at the head */
  int64_t trips;             /* at most; -1: not known */
  const ranges_state *entry; /* at its head, coming from outside */
  ranges_state *back;        /* what came round so far, or NULL */
} ranges_loop;

typedef struct ranges_finder {
  const ptx_func *func;
  const ptx_ranges_launch *launch;
  affine_grid grid;
  ptx_cfg *cfg;
  uint32_t *dominator; /* per block */
  uint32_t *param_offsets;
  uint32_t *slot_of; /* register -> slot */
  uint32_t *reg_of;  /* slot -> register */
  uint32_t slot_count;
  uint32_t *user_first, *users; /* per slot: the instructions that read it */
  ranges_state **pending;       /* per block: what holds at its start, of the ways seen; NULL: not reached */
  ranges_access *accesses;      /* per instruction */
  ranges_loop loops[RANGES_LOOPS_NESTED];
  uint32_t loop_count;
  uint32_t next_base, next_root;
  FF_VEC(ranges_compared) compared; /* a predicate's root is an index in here, + 1 */
  uint64_t steps, step_limit;       /* of work; about one per instruction interpreted */
  uint64_t states;                  /* how many there are */
  bool recording;
  bool failed;
  char reason[256];
} ranges_finder;

/* Gives up, with the first reason. */
void ranges_fail(ranges_finder *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ranges_eval.c */
affine_type ranges_type(ptx_type type);
bool ranges_is_integer(ptx_type type);
affine ranges_operand(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr,
                      const ptx_operand *operand);
/* The address that an operand in brackets names. */
affine ranges_address(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr,
                      const ptx_operand *operand);
/* What register `reg`, one that the instruction writes, holds afterwards. */
affine ranges_evaluate(ranges_finder *f, const ranges_state *state, const ptx_instr *instr, uint32_t reg);
/* Of a comparison: 0, 1, or -1 if that is not known. */
int ranges_compare(const affine_grid *grid, const ptx_instr *instr, ptx_mod comparison, const affine *a,
                   const affine *b);
/* The comparison that a setp makes, else PTX_MODS. `opposite`: the one that is true when it is false. */
ptx_mod ranges_comparison(const ptx_instr *instr);
ptx_mod ranges_opposite(ptx_mod comparison);
bool ranges_compares_signed(const ptx_instr *instr, ptx_mod comparison);

/* ranges_refine.c */
/* Register `pred` is known to be `truth`. False: that cannot be. */
bool ranges_refine(ranges_finder *f, ranges_state *state, uint32_t pred, bool truth);
/* Whether the loop in hand ends, from a branch that stays in it only if `pred` is `truth`: sets loop->trips. */
void ranges_count_trips(ranges_finder *f, ranges_loop *loop, const ranges_state *state, uint32_t pred, bool truth);

/* ranges_flow.c */
ranges_state *ranges_copy(ranges_finder *f, const ranges_state *state);
void ranges_drop(ranges_finder *f, ranges_state *state);
void ranges_run(ranges_finder *f);

static inline uint32_t ranges_slot(const ranges_finder *f, uint32_t reg) {
  return reg == PTX_NO_REG ? RANGES_NONE : f->slot_of[reg];
}

#endif
