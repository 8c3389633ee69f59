/* SPDX-License-Identifier: Apache-2.0 */
/* A set of units (aligned pieces of 4 KiB, 64 KiB or 2 MiB) in an order: the one with the smallest key comes first, of
 * equal keys the lowest address. What most evictors keep.
 *
 * Neighbours of one key in one block are a *run*, and the order is over runs: a heap of four branches of 12 bytes for
 * each, and for every run its place in it (4 bytes), so that a unit can leave from the middle: every operation is
 * O(log n). What lies between a run's first unit and its last is in that run, so runs of one key are in order as their
 * first units are. A block that ever had a unit in the set has 2 bits for each of its units besides, and
 * once it has had many runs at a time a place for each unit. So a set costs up
 * to 17 bytes for a unit of 4 KiB where no two neighbours have one key, and hardly anything where what came together
 * is kept together. A unit is known by its *number*: its block's, which are numbered as they come, times the units in a
 * block, and its place in the block.
 *
 * Units of which nothing can go are put aside when an evictor comes upon them, with their keys, and are back in the
 * order when one of their pages settles or arrives. So a choice costs O(log n) for each unit that goes, that was used
 * since it was last looked at, or that has come to be in the way since then; not for all that are in the way. */
#ifndef FF_POLICY_UNITS_H
#define FF_POLICY_UNITS_H

#include "base/memory.h"
#include "farfault/policy.h"

typedef struct unit {
  uint64_t key, address;
} unit;

typedef struct units_entry {
  uint64_t key;
  uint32_t number; /* of the run's first unit */
} __attribute__((packed, aligned(4))) units_entry;

typedef struct units_runs {
  ff_pages first;                      /* the units at which a run begins, by their place in the block */
  ff_pages there;                      /* those in the set */
  uint16_t below[FF_BLOCK_PAGES / 64]; /* how many runs begin below each word of `first` */
  uint16_t count, capacity;
  bool direct;
  uint32_t places[]; /* one per run, from low to high; direct: one per unit */
} units_runs;

typedef struct units_block {
  uint64_t address;
  units_runs *runs;
} units_block;

typedef struct units {
  uint64_t unit_bytes;
  uint32_t unit_shift, block_shift; /* a unit has 1 << unit_shift bytes, a block 1 << block_shift units */
  bool apart;                       /* each unit is a run of its own */
  FF_VEC(units_entry) heap;
  FF_VEC(units_entry) aside;  /* in no order; each is a run of one unit */
  FF_VEC(units_block) blocks; /* by number */
  uint32_t *slots;            /* 1 + a block's number, by hash of its address; open addressing */
  size_t slot_count;
  uint64_t asked; /* deep checks are made at some of the calls */
} units;

void units_init(units *set, uint64_t unit_bytes);
void units_free(units *set);

bool units_has(const units *set, uint64_t address);         /* in the order, or aside */
uint64_t units_key(const units *set, uint64_t address);     /* 0 if it is not there */
void units_put(units *set, uint64_t address, uint64_t key); /* into the set, or to another place in it */
void units_drop(units *set, uint64_t address);              /* nothing if it is not there */
void units_put_aside(units *set, uint64_t address);         /* one of the set */
void units_put_back(units *set, uint64_t address);          /* nothing if it is not aside */
void units_check(const units *set);                         /* asserts what always holds; walks all */
unit units_at(const units *set, size_t index);              /* of a run of the heap, its first; [0]: of the order */
static inline size_t units_count(const units *set) { return set->heap.count; } /* the runs in the order */

/* ---- for evictors that are made of such a set ---- */

/* What comes and goes as one is one unit: raises the set's unit to what a far-fault moves at least, before its first
 * unit is put into it. What an evictor's `arrived` begins with. */
void units_fit(units *set, const ff_view *view);
/* Calls `each` for every unit that the range touches. */
void units_each(uint64_t unit_bytes, uint64_t address, uint64_t bytes, void (*each)(void *context, uint64_t unit),
                void *context);
/* Proposes what can be evicted of the unit and returns how many bytes that is. *gone: none of it is in GPU memory. */
uint64_t units_propose(ff_view *view, uint64_t unit_bytes, uint64_t address, bool *gone);

/* Evicts from the front until `bytes` have been proposed. `refresh` (or NULL) says what a unit's key should be now: if
 * that is another one, the unit takes that place instead. The units stay in the set: those that leave are dropped when
 * `left` is called, those that stay keep their place. */
void units_evict(units *set, ff_view *view, uint64_t bytes,
                 uint64_t (*refresh)(ff_view *view, const units *set, const unit *unit));
/* A `refresh` for sets in the order of use: the unit's last use, or its key (its arrival) if that is later. */
uint64_t units_last_used(ff_view *view, const units *set, const unit *unit);
/* What an evictor's `settled` does: what it put aside of the range is back. */
void units_settled(units *set, uint64_t address, uint64_t bytes);
/* What an evictor's `left` does: drops the units of which nothing is in GPU memory any more. */
void units_left(units *set, ff_view *view, uint64_t address, uint64_t bytes);

#endif
