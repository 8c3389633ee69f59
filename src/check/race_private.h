/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of race.h: what race.c (accesses), race_order.c (clocks and knowledge) and race_cells.c (what is known of
 * each byte) share. */
#ifndef FF_CHECK_RACE_PRIVATE_H
#define FF_CHECK_RACE_PRIVATE_H

#include <stddef.h>

#include "base/memory.h"
#include "check/race.h"

enum { RACE_LANES = 32, RACE_WARPS = 32, RACE_BARRIERS = 25 };
#define RACE_WHEN_MAX ((1u << 26) - 1)

typedef struct race_visit { /* an access; clock 0: none */
  uint32_t block, clock;
  uint32_t pc : 22, thread : 10; /* thread: warp * 32 + lane */
  /* when: race.now, rounded down to RACE_WHEN_MAX */
  uint32_t when : 26, strong : 1, atomic : 1, same : 1, block_scope : 1, unused : 2;
} race_visit;

/* read: the latest; other: one that is not ordered with it */
typedef struct race_cell {
  race_visit write, read, other;
} race_cell;

typedef struct race_page { /* 4 KiB of global memory, or a block's shared memory */
  uint64_t number;         /* address / 4096 */
  uint64_t launch;         /* what it says is of this launch; otherwise it says nothing */
  uint32_t bytes;
  bool by_byte; /* a cell per byte; not: per word of 4 */
  race_cell *cells;
} race_page;

/* What is known of blocks: immutable, counted. words: per block, in ascending order, its number and its warps'
 * clocks. */
typedef struct race_view {
  uint32_t refs, count;
  uint32_t floor; /* all accesses with `when` below this are known, of every block */
  uint32_t words[];
} race_view;

typedef struct race_warp {
  uint32_t clock;
  uint32_t seen[RACE_WARPS]; /* of the block's warps: accesses up to this clock are known; its own: not used */
  race_view *others;         /* of other blocks */
  race_view *fenced[2];      /* what it knew, itself included, at its last fence: of any scope; of the device's */
  uint32_t met;              /* its lanes know each other's accesses up to this clock */
  uint32_t (*lane_seen)[RACE_LANES]; /* what single lanes know beyond that: [lane][of which lane]; NULL: nothing */
  uint32_t running;                  /* the lanes that ran together at the last access, */
  uint32_t parted, together;         /* clocks: since when it is these; when all were last in one place */
} race_warp;

typedef struct race_variable { /* a synchronisation variable */
  uint64_t address;            /* 0: no entry */
  race_view *device;           /* what its readers get */
  race_view *block;            /* what those of `owner` get */
  uint32_t owner;
} race_variable;

typedef struct race_variables {
  race_variable *items;
  size_t count, capacity;
} race_variables;

/* a barrier that some have come to */
typedef struct race_gate {
  uint32_t seen[RACE_WARPS];
  race_view *others;
} race_gate;

struct race_block {
  race *race;
  uint32_t number, warps;
  race_page shared;
  race_variables variables; /* in shared memory */
  race_gate gates[RACE_BARRIERS];
  race_warp warp[];
};

struct race {
  uint64_t limit, used;
  uint64_t launch, swept; /* swept: the launch that last freed the pages of those before it */
  uint32_t warps, now;    /* now: counts fences */
  bool overflowed;
  race_page **pages; /* open addressing by number */
  size_t page_count, page_capacity;
  race_page *last;
  race_variables variables; /* in global memory */
};

/* race_order.c */
void race_view_drop(race_view *view);
void race_variables_free(race_variables *variables);
/* Does lane `lane` of the warp know the access? */
bool race_ordered(const race_block *b, uint32_t warp, uint32_t lane, const race_visit *access);

/* race_cells.c: the cells of [address, address + bytes), how many; 0: not followed. *cell_bytes: of one. */
uint32_t race_cells_find(race_block *b, bool shared, uint64_t address, uint32_t bytes, race_cell **cells,
                         uint32_t *cell_bytes);
void race_cells_free(race *r);
void race_pages_check(const race *r); /* asserts that `used` and the counts are those of the pages */

/* race_check.c: asserts the invariants of what a block's warps know. */
void race_block_check(const race_block *b);

#endif
