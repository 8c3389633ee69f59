/* SPDX-License-Identifier: Apache-2.0 */
/* Races: which accesses of shared and global memory are ordered by what the threads of a launch synchronise with, after
 * FastTrack (Flanagan, Freund, PLDI 2009), in the shape that a GPU gives it. It does not depend on exec: one thread
 * passes it the events in the order in which they happen.
 *
 * Time. Every warp has a clock that counts what may separate its accesses: barriers, fences, synchronisation of its
 * lanes, changes of divergence. An access is named by (block, warp, lane, clock). A later access is ordered behind it
 *   - in the same lane;
 *   - in the same warp: if the lanes have synchronised in between (__syncwarp), or one lane knows it through memory;
 *   - in another warp of the block: if that warp's knowledge has reached the clock: `seen[warp] >= clock`;
 *   - in another block: if the warp has that block's knowledge, got through memory, and that has reached the clock.
 * Knowledge moves with barriers (all of the block), barriers of some warps, and through memory: what a warp knew at its
 * last fence goes into the synchronisation variable that it writes with a strong access (atomic, volatile, relaxed,
 * release), and a warp that reads that variable with a strong access gets it. A fence of the block's scope counts in
 * the block only.
 *
 * No two accesses that happens-before orders are reported (test_race.c compares with a model). Races may be missed: see
 * docs/checkers.md (what a warp's lanes learn through memory the whole warp knows; of many unordered readers of a byte
 * two are kept; what is known of more than RACE_VIEW_BLOCKS blocks is rounded up). race_check.c has the invariants. */
#ifndef FF_CHECK_RACE_H
#define FF_CHECK_RACE_H

#include <stdbool.h>
#include <stdint.h>

#define RACE_VIEW_BLOCKS 256u

typedef struct race race;
typedef struct race_block race_block;

typedef struct race_who {
  uint32_t block, warp, lane;
} race_who;

enum {                 /* of an access */
       RACE_WRITE = 1, /* or atomic */
       RACE_READ = 2,
       RACE_ATOMIC = 4,       /* read and write in one */
       RACE_STRONG = 8,       /* volatile, relaxed, acquire, release, atomic: does not race with its like */
       RACE_SAME = 16,        /* the write changes nothing */
       RACE_BLOCK_SCOPE = 32, /* strong for threads of the block only */
       RACE_ACQUIRES = 64,    /* reads a synchronisation variable: a strong load, an atomic that returns */
       RACE_RELEASES = 128,   /* has a fence of its own in front (st.release, atom.acq_rel) */
};

typedef enum race_hazard { RACE_RAW, RACE_WAR, RACE_WAW } race_hazard;

typedef struct race_found {
  race_hazard hazard;
  race_who before, now;
  uint32_t before_pc;
  bool before_atomic;
  bool benign;   /* the later or earlier write changed nothing */
  bool lockstep; /* lanes of one warp that had not parted: in order if the warp keeps in step */
  uint64_t address;
} race_found;

/* limit: bytes for what is known of global memory, at least 1 MiB. */
race *race_create(uint64_t limit);
void race_free(race *r);
/* A launch begins: everything before it is ordered before it. */
void race_launch(race *r, uint32_t warps_per_block);
/* These bytes of global memory are new (a block of device malloc): what was done to what stood there before counts no
 * more. */
void race_forget(race *r, uint64_t address, uint64_t bytes);
/* Global memory that was not followed because `limit` was reached: some races were missed. */
bool race_overflowed(const race *r);

race_block *race_block_begin(race *r, uint32_t block, uint32_t shared_bytes);
void race_block_end(race_block *b);

/* Does a lane's access. shared: the address is an offset in the block's shared memory. Returns how many of `found` (at
 * most `room`) were filled in: hazards with earlier accesses. running: the lanes that run together with this one; all
 * bits: the warp has not parted. */
uint32_t race_access(race_block *b, uint32_t warp, uint32_t lane, bool shared, uint64_t address, uint32_t bytes,
                     uint32_t flags, uint32_t pc, uint32_t running, race_found *found, uint32_t room);
/* Has every byte of the block's shared memory there been written? */
bool race_shared_written(race_block *b, uint64_t offset, uint32_t bytes);
/* After all lanes of a strong access: the synchronisation variable of each gets and gives knowledge. */
void race_synchronise(race_block *b, uint32_t warp, uint32_t lane, bool shared, uint64_t address, uint32_t flags);

void race_fence(race_block *b, uint32_t warp, bool block_scope);
/* Lanes of a warp synchronise; live: those that have not exited. orders: memory, too (__syncwarp); not: shfl, vote and
 * the like. */
void race_meet(race_block *b, uint32_t warp, uint32_t lanes, uint32_t live, bool orders);
/* A barrier of all threads of the block is complete. */
void race_barrier(race_block *b);
/* A warp arrives at a barrier of some warps; is let go when it is complete; afterwards the barrier begins anew. */
void race_arrive(race_block *b, uint32_t warp, uint32_t id);
void race_depart(race_block *b, uint32_t warp, uint32_t id);
void race_barrier_over(race_block *b, uint32_t id);

#endif
