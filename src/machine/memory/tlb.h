/* SPDX-License-Identifier: Apache-2.0 */
/* Translation: TLBs, page walks, shootdowns. */
#ifndef FF_MACHINE_MEMORY_TLB_H
#define FF_MACHINE_MEMORY_TLB_H

#include "machine/sm/sm.h"
#include "paging/pager.h"

typedef enum translation { TRANSLATION_DONE, TRANSLATION_ABSENT, TRANSLATION_BLOCKED } translation;
translation tlb_translate(sim *s, sm *m, warp *w, uint64_t address, pager_unit *unit, ps ask, ps at, ps *ready, const tally *tally);
void tlb_forget_range(sim *s, uint64_t address, uint64_t bytes);  /* all translations of it, where pages do not move */
void tlb_forget(sim *s, uint64_t address, const pager_unit *unit); /* shootdown in all SMs */
void tlb_clean(sim *s, uint64_t address, const pager_unit *unit); /* its page is no longer dirty, and entries say that it is */
void tlb_init(sim *s, uint64_t unit_bytes); /* also the shape of the page table */
void tlb_remap(sim *s, uint64_t address, uint64_t bytes, bool whole); /* one page maps it now, or smaller ones do */
ps gmmu_walk(sim *s, const sm *m, uint64_t address, pager_leaf leaf, ps ask, ps at, const tally *tally);

#endif
