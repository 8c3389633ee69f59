/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of kernels over the end of an allocation that a GPU would not notice. */
#ifndef FF_EXEC_OVERRUN_H
#define FF_EXEC_OVERRUN_H

#include "exec/core.h"

enum { EXEC_OVERRUNS_TOLD = 8 };

/* For all launches from now on. NULL, as it is at first: such an access is a fault. Else one in the rest of an
 * allocation's last page of 4 KiB is carried out; `tell` is called, by any worker, for the first of each of
 * EXEC_OVERRUNS_TOLD allocations, and once more with NULL when there are others. */
void exec_overrun_use(void (*tell)(const char *text));

/* An access of a lane's that no allocation holds whole: may it be carried out? */
bool core_overrun(const core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                  bool writes);
/* How many bytes of the span loads of any lanes may read without asking for each: up to the end of its last page, where
 * core_overrun allows that and there is no more to tell of this allocation; else 0. */
uint64_t core_overrun_room(const core_warp *w, const exec_span *span);
/* In words (fault.c); the caller frees text->chars. */
void core_overrun_explain(const core_warp *w, const exec_instr *i, uint32_t lane, const exec_allocation *allocation,
                          uint64_t address, uint32_t bytes, ff_text *text);

#endif
