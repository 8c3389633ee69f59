/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: TLBs, page walks, shootdowns. */
#ifndef FF_MACHINE_MEMORY_TLB_H
#define FF_MACHINE_MEMORY_TLB_H

#include "machine/sm/sm.h"
#include "machine/timing.h"
#include "paging/pager.h"

/* What of addresses translations are about, and the tables behind the SMs' TLBs. */
typedef struct gmmu {
  const machine_spec *spec;
  const manager *manager;
  const timing *t;
  uint64_t space; /* the tenant, in the upper bits of its addresses */
  sm *sms;
  uint32_t sm_total;
  slots *walkers;
  lru *walk_cache;
  pager *pager;          /* what is resident, and how it is mapped */
  struct memory *memory; /* that walks read */
  struct placing *map;
  struct stacks *stacks; /* that have walkers of their own; NULL: there are none */
  struct far_faults *faults;
  struct observer *observer;
  const agenda *agenda;
  /* the pages that TLB entries map follow what is resident; else all are PAGER_LEAF_MIN */
  bool leaves_grow;
  bool page_fixed;                   /* the user chose one size for all */
  uint8_t alias_mask;                /* 0: units share the entries of a page */
  uint32_t leaf_shift[PAGER_LEAVES]; /* of these pages */
  uint32_t walk_shift;               /* of the machine's page_bytes, whatever is mapped: see gmmu_walk */
  uint32_t seen_shift;    /* of what a translation answers for: the smallest page, or a unit if that is smaller */
  lru *shared_tlb;        /* its sets; NULL: there is none */
  lru_census *tlb_census; /* of all SMs' TLBs */
  uint64_t *removals;     /* the device's */
  divider shared_sets;
} gmmu;

typedef enum translation { TRANSLATION_DONE, TRANSLATION_ABSENT, TRANSLATION_BLOCKED } translation;
translation tlb_ask(gmmu *g, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready,
                    const tally *tally);

static inline pager_leaf tlb_leaf(gmmu *g, uint64_t address) {
  return g->leaves_grow ? pager_leaf_of(g->pager, address) : PAGER_LEAF_MIN;
}

/* Units of different allocations in one window have entries of their own, where no page is larger than the window. */
static inline uint64_t tlb_key(const gmmu *g, uint64_t address, pager_leaf leaf, const pager_unit *unit) {
  uint64_t alias = leaf == PAGER_LEAF_MIN ? unit->alias_tag & g->alias_mask : 0;
  return (address | g->space) >> g->leaf_shift[leaf] | alias << 52 | (uint64_t)leaf << 60;
}

/* What tlb_ask says; of a page that is there and in the SM's TLB at once. */
static inline translation tlb_translate(gmmu *g, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at,
                                        ps *ready, const tally *tally) {
  if (m->tlb_blocked || unit->state == PAGER_ABSENT || unit->state == PAGER_IN_FLIGHT || unit->duplicate ||
      g->pager->pins_due <= g->agenda->now)
    return tlb_ask(g, m, w, address, unit, ask, at, ready, tally);
  lru_entry *entry = lru_find(&m->tlb, tlb_key(g, address, tlb_leaf(g, address), unit));
  if (!entry) return tlb_ask(g, m, w, address, unit, ask, at, ready, tally);
  *ready = server_take(&m->tlb_port, ask, at, g->t->tlb_port);
  COUNT(tally, tlb_lookups, 1);
  if (entry->ready > *ready) {
    COUNT(tally, tlb_merged, 1);
    *ready = entry->ready;
  }
  return TRANSLATION_DONE;
}
/* The same in two halves, for rounds (sm/rounds.h), of a page that is there (tlb_reaches): what the SM's TLB says,
 * which is the SM's own, and what is asked behind it. */
typedef struct tlb_look {
  ps at; /* when the TLB's port has looked */
  uint64_t key;
  pager_leaf leaf;
  lru_entry *entry; /* NULL: the page is not in the TLB */
} tlb_look;
/* tlb_translate would be TRANSLATION_DONE. */
bool tlb_reaches(const gmmu *g, const sm *m, const pager_unit *unit);
tlb_look tlb_look_up(gmmu *g, sm *m, uint64_t address, const pager_unit *unit, ps ask, const tally *tally);
/* When the answer to a walk that is asked for then is there, as far as that can be told from what the tables have now.
 * *known: this is when; else it is not there before. Nothing changes. */
ps tlb_foresee(gmmu *g, const tlb_look *look, uint64_t address, bool *known);
/* What tlb_look_up has not found, asked for at `ask` and, after its port, at `at`: when it is there. No entry of the
 * SM's TLB is made. */
ps tlb_walk(gmmu *g, const sm *m, uint64_t address, pager_leaf leaf, uint64_t key, ps ask, ps at, const tally *tally);
/* Whether that walk reads the L2; else tables of the GMMU's own say all of it. */
bool tlb_walk_reads(const gmmu *g, uint64_t address, pager_leaf leaf, uint64_t key);
void tlb_forget_range(gmmu *g, uint64_t address, uint64_t bytes); /* all translations of it, where pages do not move */
void tlb_forget(gmmu *g, uint64_t address, const pager_unit *unit); /* shootdown in all SMs */
/* its page is no longer dirty, and entries say that it is */
void tlb_clean(gmmu *g, uint64_t address, const pager_unit *unit);
void tlb_init(gmmu *g, uint64_t unit_bytes);                           /* also the shape of the page table */
void tlb_remap(gmmu *g, uint64_t address, uint64_t bytes, bool whole); /* one page maps it now, or smaller ones do */
void tlb_check(const gmmu *g); /* paged: entries are of pages that are there; asserts, walks all */
ps gmmu_walk(gmmu *g, const sm *m, uint64_t address, pager_leaf leaf, ps ask, ps at, const tally *tally);

#endif
