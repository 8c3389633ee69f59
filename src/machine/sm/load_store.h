/* SPDX-License-Identifier: Apache-2.0 */
/* The SM's load/store unit: one warp's access at a time, a line or several per cycle (warp_access.c). */
#ifndef FF_MACHINE_SM_LOAD_STORE_H
#define FF_MACHINE_SM_LOAD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/events.h"
#include "machine/sim.h"
#include "machine/timing.h"

enum { SEEN_PAGES = 64 };

typedef struct seen_page { /* a page that the access in the load/store unit has asked the TLB for */
  uint64_t page;           /* address >> seen_shift */
  ps ready;
  uint8_t alias_tag;
  bool here;
} seen_page;

typedef struct load_store {
  server port;                 /* when it can take the next line */
  uint32_t owner, first, last; /* the warp whose access it works on; those that wait, by warp.next */
  uint32_t seen_count;
  uint64_t seen_filter;       /* a bit for each page among them, by a hash */
  uint64_t seen_at;           /* what *removals was then; */
  const uint64_t *removals;   /* the device's: how often a page has left, or has come to lie elsewhere */
  seen_page seen[SEEN_PAGES]; /* of the owner's access */
} load_store;

static inline void load_store_forget(load_store *u) {
  u->seen_count = 0;
  u->seen_filter = 0;
}

/* Where a page has left, or lies elsewhere, an access that was held up asks for its translations again. Before any look
 * at what it has seen. */
static inline void load_store_refresh(load_store *u) {
  if (u->seen_at != *u->removals) load_store_forget(u);
  u->seen_at = *u->removals;
}

/* Where the accesses of one simulation go from the load/store units. */
typedef struct access_path {
  event_heap *heap;
  const timing *t;
  const struct warp_table *warps;
  struct pager *pager;
  struct gmmu *gmmu;
  struct memory *memory;
  struct placing *map;
  struct far_faults *faults;
  struct tier_store *tiers; /* where what is reached over the link may be; NULL: in the host's memory */
  struct observer *observer;
  struct controller *controller; /* NULL: the machine has no memory stacks */
  struct learner *learner;
  trace_future *written;  /* of the program's first touches; NULL: none is written */
  struct round_sm *round; /* as front_end.round */
  bool plain;             /* there are none of: rounds, memory stacks, tiers, a future that is written */
} access_path;

/* The warp's ACCESS in progress. false: the warp sleeps and will be woken; else *time has moved on. */
struct warp;
/* false: it begins later (rounds.h). */
bool access_begin(access_path *a, struct warp *w, const uint64_t *record, ps *time);
bool spill_begin(access_path *a, struct warp *w, const uint64_t *record, ps *time); /* the same of a SPILL */
bool access_continue(access_path *a, struct warp *w, ps *time);
/* Asks the host's caches for what the warp's next access_continue will read first. */
void access_prefetch(const access_path *a, const struct warp *w);
void access_prefetch_near(const access_path *a, struct warp *w); /* a little later */

#endif
