/* SPDX-License-Identifier: Apache-2.0 */
/* What the prefetcher `auto` and the evictor `auto` know of a simulation: one state for both, if both are chosen.
 *
 * Per group of 64 KiB: which pages are in GPU memory, when it came, when it was seen used, how it left and whether that was
 * regretted. Per allocation: how much of what came was used, and where its faults go on from one another (streams). The
 * clock is the number of bytes that have arrived: simulated time stands still for no one, arrivals are what memory
 * pressure is made of. Nothing is known of the program but its faults and, for what is in GPU memory, its latest uses.
 *
 * What always holds: a group is in `resident` exactly if a page of it is; 32 groups' records are made when a page of their
 * block first arrives (2 KiB for each block of 2 MiB). */
#ifndef FF_POLICY_AUTO_STATE_H
#define FF_POLICY_AUTO_STATE_H

#include "base/memory.h"
#include "policy/pages.h"

enum { AUTO_STREAMS = 16, AUTO_MARKS = 16, AUTO_DEPARTURES = 256 };

/* How a victim is chosen among groups that are equal otherwise. */
typedef enum auto_order { AUTO_OLDEST, AUTO_YOUNGEST, AUTO_ORDERS } auto_order;

typedef struct auto_group {
  uint64_t came, latest;  /* when the first page of it came, and the latest */
  uint64_t used;          /* when it was last seen used, since then; 0: never */
  uint64_t departure;     /* number of its eviction, from 1; 0: never, or it has come back since */
  uint64_t cleaned;       /* when it was proposed to be written back ahead; 0: not since it was last seen dirty again */
  uint64_t asked;         /* the evictor's call that proposed it last */
  uint32_t place;         /* 1 + its index in `resident`; 0: nothing of it is there */
  uint16_t pages;         /* those in GPU memory */
  bool ahead;             /* a stream brought it, once memory was full, and it has not left since */
  uint8_t rounds;         /* pauses longer than the guard after which it was used again */
} auto_group;

/* An eviction: which order chose it, when, and when the group came back (0: it has not). */
typedef struct auto_departure { uint64_t time, back; auto_order by; } auto_departure;

typedef struct auto_stream { /* faults that go up through an allocation */
  uint64_t next;          /* address behind what has been asked for; 0: no stream */
  uint64_t last_fault;    /* address of its group */
  uint32_t depth;         /* groups to keep ahead of the latest fault */
  uint64_t stamp;         /* when it last had a fault, in faults */
} auto_stream;

typedef struct auto_allocation {
  uint64_t address, bytes;  /* 0: not known yet */
  uint64_t brought, useful; /* pages of groups that were evicted; of these, used. Halved now and then */
  uint32_t ahead, wasted;   /* groups that streams brought once memory was full, and that were evicted; of these, unused. Halved now and then */
  uint64_t quiet;           /* how long a group must not have been used before it is written back ahead; 0: as at first */
  uint64_t cursor;          /* where the filling of free memory goes on */
  auto_stream streams[AUTO_STREAMS];
} auto_allocation;

typedef struct auto_state {
  struct auto_block *blocks; /* open addressing */
  size_t block_count, block_capacity;
  FF_VEC(uint64_t) resident; /* groups, by address, in no order */
  FF_VEC(auto_allocation) allocations; /* by number */
  uint64_t clock;            /* bytes that arrived */
  uint64_t marks[AUTO_MARKS], mark_count, next_mark; /* times at which the clock passed another sixty-fourth of memory */
  bool full;                 /* something has been evicted */
  uint64_t faults;
  /* eviction */
  FF_VEC(struct auto_victim) victims;
  size_t next_victim;
  auto_order order;
  auto_departure departures[AUTO_DEPARTURES]; /* the latest; number n at (n - 1) % AUTO_DEPARTURES */
  uint64_t departure_count, asked, turn;
  size_t clean_hand;         /* index in `resident`, where the search for what can be written back ahead goes on */
  /* prefetch */
  bool fits;                 /* memory holds all that is allocated */
  uint64_t served;           /* calls for faults */
  uint64_t busy_faults;      /* of these, since the link last idled */
  uint32_t latest[8];        /* allocations that faulted, the latest first */
  FF_VEC(uint64_t) ahead;    /* groups that were brought ahead and not seen used, a queue */
  size_t ahead_first;
} auto_state;

void *auto_create(const char *argument, const char **problem);
void auto_destroy(void *state);
void auto_arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes);
void auto_left(void *state, ff_view *view, uint64_t address, uint64_t bytes);

/* The group's record; NULL: nothing of its block has ever come. */
auto_group *auto_group_find(const auto_state *s, uint64_t address);
/* The allocation around the address; NULL: there is none. Valid until another one is asked for. */
auto_allocation *auto_allocation_at(auto_state *s, const ff_view *view, uint64_t address);
/* Less than a quarter of its evicted groups' pages had been used; or memory is so small that a group is a large part of it. */
bool auto_is_sparse(const ff_view *view, const auto_allocation *a);
/* More than one in sixteen of the groups that its streams brought was evicted unused. */
bool auto_is_wasteful(const auto_allocation *a);
/* How long it lately takes until as much has arrived as GPU memory holds; 0: not known yet. */
uint64_t auto_turnover(const auto_state *s, const ff_view *view);
/* What has been used since this time is not evicted: the last eighth of memory came since then. */
uint64_t auto_guard(const auto_state *s);

#endif
