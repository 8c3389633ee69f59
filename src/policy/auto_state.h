/* SPDX-License-Identifier: Apache-2.0 */
/* What the prefetcher `auto` and the evictor `auto` keep of a simulation: one state for both, if both are chosen.
 *
 * Per group of 64 KiB: which pages are in GPU memory, since when it is reached over the link, whether the host has
 * taken it back. Per allocation: how far its filling has come.
 *
 * A group is in `resident` if a page of it is in GPU memory, and only then: asserted now and then at the deep check
 * level. 32 groups' records are made when a page of their block first arrives or is first reached. A decision looks at
 * a fixed number of groups. */
#ifndef FF_POLICY_AUTO_STATE_H
#define FF_POLICY_AUTO_STATE_H

#include "base/memory.h"
#include "policy/pages.h"

typedef struct auto_group {
  uint64_t came; /* when the first page of it came */
  /* when the count of what the GPU reaches of it over the link began; 0: nothing was since it left */
  uint64_t since;
  uint64_t from;  /* bytes that had been reached when it began */
  uint32_t place; /* 1 + its index in `resident`; 0: nothing of it is there */
  uint16_t pages; /* those in GPU memory */
  bool swapped;   /* it went for another one that was reached, and nothing of it was reached since */
  /* the host has touched a page of it that was in GPU memory, and has that back; until the group comes again */
  bool taken;
} auto_group;

typedef struct auto_allocation {
  uint64_t address, bytes; /* 0: not known yet */
  bool taken;              /* the host has taken pages of it back: nothing of it comes that no launch declares */
  bool offered;            /* its pages that need no transfer have been asked for */
  uint64_t cursor;         /* where the filling of free memory goes on; 0: no launch has declared it */
} auto_allocation;

typedef struct auto_state {
  struct auto_block *blocks; /* open addressing */
  size_t block_count, block_capacity;
  FF_VEC(uint64_t) resident;           /* groups, by address, in no order */
  FF_VEC(auto_allocation) allocations; /* by number */
  /* eviction */
  size_t hand;       /* index in `resident` where the next look begins */
  uint64_t victim;   /* the group that is to go for what is brought now; FF_NEVER: not chosen */
  size_t clean_hand; /* index in `blocks`, where the search for what can be written back ahead goes on */
  /* prefetch */
  /* groups that went for others that were reached; of these, reached again. Halved now and then */
  uint64_t swaps, regrets;
  FF_VEC(uint64_t) declared; /* addresses of the allocations that the latest launch declared */
  bool fits;                 /* all that it declared together */
  bool begins;               /* a launch has begun and the link was not idle since */
  bool rests;                /* nothing is absent; until something leaves or a launch begins */
  /* what no launch declares has been looked through from the first address on, and nothing was to come so far */
  bool swept;
  uint64_t next;   /* where the filling goes on when all that is declared is there */
  uint32_t told;   /* arrivals and departures, for the check */
  uint64_t queued; /* of the link to the GPU, when groups were reached: the mean, the latest weighing most */
} auto_state;

void *auto_create(const char *argument, const char **problem);
void auto_destroy(void *state);
void auto_arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes);
void auto_left(void *state, ff_view *view, uint64_t address, uint64_t bytes);

/* The group's record; NULL: nothing of its block has ever come. */
auto_group *auto_group_find(const auto_state *s, uint64_t address);
auto_group *auto_group_make(auto_state *s, uint64_t address);
/* The block whose records are in a slot of `blocks`; FF_NEVER: it is empty. */
uint64_t auto_block_in(const auto_state *s, size_t slot);
/* The allocation around the address; NULL: there is none. Valid until another one is asked for. */
auto_allocation *auto_allocation_at(auto_state *s, const ff_view *view, uint64_t address);
/* Of the next groups in GPU memory the one that was used longest ago; FF_NEVER: none was last used before `since`. */
uint64_t auto_coldest(auto_state *s, const ff_view *view, uint64_t since);

#endif
