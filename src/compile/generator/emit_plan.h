/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a function before its code is made: its slots, blocks, what is live between them, and which
 * slots hold the same value in all lanes, or one that is linear in the lane's number, while the whole warp runs
 * together.
 *
 * A slot is a place of the frame as instructions name it (offset and width). A block ends at a branch, at everything
 * that only the interpreter does, and before the next block's first instruction.
 *
 * "Uniform" and "linear" are guesses that are right wherever compiled code comes from compiled code, and are tested
 * where it comes from the interpreter: lanes that have been apart may have different values where the plan expects
 * one. */
#ifndef FF_COMPILE_PLAN_H
#define FF_COMPILE_PLAN_H

#include "compile/request.h"

typedef struct plan_slot {
  uint32_t offset;
  uint32_t twin; /* the next slot at this offset, of another width: a ring; itself: there is none */
  uint8_t bytes;
} plan_slot;

#define PLAN_HAMMOCK_BLOCKS 24
#define PLAN_HAMMOCK_LONGEST 96u /* instructions */

typedef struct plan_block {
  uint32_t first, end;          /* instructions */
  uint32_t *next, next_count;   /* blocks, each once but for a branch to the next one */
  uint64_t *live_in, *live_out; /* slots */
  uint64_t *uniform_in, *uniform_out;
  struct plan_hammock *hammock; /* what a branch at its end may part lanes for; NULL: no short region */
} plan_block;

/* A short region: blocks behind a branch, without loops, from which all ways lead to one block, in the order in which
 * the splits of a warp run them (by rank): when the last of them is done, all lanes are at `meet`. Nothing in it is
 * only the interpreter's. Or an innermost loop, in that order, with this branch as its only one back and one way out,
 * to `meet`, behind all of it; none of its instructions looks whether another warp has done something. */
typedef struct plan_hammock {
  uint32_t meet, count, inside[PLAN_HAMMOCK_BLOCKS], instructions;
  bool starts;       /* a warp's first turn may end in it */
  bool loop;         /* the branch leads back to inside[0]: rounds, until no lane is left */
  uint64_t *written; /* slots, and all that share their places */
} plan_hammock;

typedef struct plan {
  const native_instr *code;
  const native_operand *operands;
  const uint32_t *lists; /* the request's waits, among them targets */
  uint32_t number;       /* 0: the kernel itself */
  bool rows;             /* NATIVE_ROWS */
  uint32_t count, slot_count, words, block_count;
  plan_slot *slots;
  uint32_t *slot_of; /* by operand index of the whole request: NATIVE_NONE for constants */
  plan_block *blocks;
  uint32_t *block_of; /* by instruction */
  uint32_t *meets;    /* by block: where lanes meet that part at its end; block_count and above: nowhere */
  int32_t *steps;     /* plan_step_in; NULL: there are none */
} plan;

static inline bool plan_has(const uint64_t *set, uint32_t slot) { return set[slot / 64] >> (slot % 64) & 1; }
static inline void plan_add(uint64_t *set, uint32_t slot) { set[slot / 64] |= UINT64_C(1) << (slot % 64); }
static inline void plan_drop(uint64_t *set, uint32_t slot) { set[slot / 64] &= ~(UINT64_C(1) << (slot % 64)); }

/* What slot s has at the beginning of block b is one value for all lanes (uniform_in), or grows by this from lane to
 * lane; 0: it does not. */
static inline int32_t plan_step_in(const plan *p, uint32_t b, uint32_t s) {
  return p->steps ? p->steps[(size_t)b * p->slot_count + s] : 0;
}
/* Is it live there, and one number, for code of full warps? */
static inline bool plan_passes(const plan *p, uint32_t b, uint32_t s) {
  return plan_has(p->blocks[b].live_in, s) && (plan_has(p->blocks[b].uniform_in, s) || plan_step_in(p, b, s));
}

/* live: what is live after the instruction -> before it. */
void plan_live_before(const plan *p, const native_instr *i, uint64_t *live);
/* number: 0 is the kernel itself. `operands`: the whole request's. rows: NATIVE_ROWS. NULL: it has too many blocks and
 * slots to be worth it. */
plan *plan_make(const native_function *function, uint32_t number, const native_instr *code,
                const native_operand *operands, uint32_t operand_count, const uint32_t *lists, bool rows);
void plan_free(plan *p);
/* Finds where lanes meet (meeting.c), when blocks are known; then, the slots that are written between the end of block
 * b and there (the caller frees them). */
void plan_find_meetings(plan *p);
uint64_t *plan_written_apart(const plan *p, uint32_t b);
/* Adds the slots that block b writes, and those that lie where it writes. */
void plan_add_written(const plan *p, uint32_t b, uint64_t *written);
/* Finds the hammocks (hammock_plan.c), when blocks are known. */
void plan_find_hammocks(plan *p);
/* What the instruction makes of values of which each source has one for all lanes, and of the slots. */
void plan_uniform_after(const plan *p, const native_instr *i, uint64_t *uniform);

#define PLAN_SOURCES 3
#define PLAN_VARIES INT32_MIN
#define PLAN_STEP_MOST (1 << 24) /* 31 of them are less than 2^31 */
/* A result that is the sum of factor[s] * source s, and of a constant (of ADD_IMMEDIATE); sources with factor 0 are not
 * in it. widens: source `first`, of 32 bits, is extended to 64 before it is multiplied, the others have 64. narrows:
 * the result has 32 bits, the source 64. product: sources 0 and 1 are the same in all lanes, or it is not linear; their
 * product is added, with `widens` that of both extended to 64 bits. */
typedef struct plan_linear {
  int64_t factor[PLAN_SOURCES];
  uint32_t first;
  bool widens, is_signed, narrows, product;
} plan_linear;
bool plan_is_linear(const plan *p, const native_instr *n, plan_linear *l); /* false: it is none */
/* A sum of steps as that of a register of so many bytes; PLAN_VARIES: it is 0, or too large. */
int32_t plan_step_of(int64_t step, uint32_t bytes);
/* Finds the steps (affine_plan.c), when it is known what is uniform. spoilt: by block, slots that were written while
 * lanes were apart. */
void plan_find_steps(plan *p, const uint64_t *spoilt);
/* A computation in a rounding of its own: of vectors only. */
bool plan_has_mode(const native_instr *n);
/* A special register that is the same in all lanes of a warp and that compiled code reads itself. */
bool plan_uniform_register(bool rows, uint32_t sreg);
/* Any special register that compiled code reads itself: all have 32 bits. */
bool plan_native_register(uint32_t sreg);
/* Is the guard or the index of the branch at the end of block b the same in all lanes? */
bool plan_branches_together(const plan *p, uint32_t b);
bool plan_ends_block(const native_instr *n);

#endif
