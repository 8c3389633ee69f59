/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted, and what is added to the history. */
#ifndef FF_MACHINE_OBSERVE_OBSERVER_H
#define FF_MACHINE_OBSERVE_OBSERVER_H

#include "machine/host/streams.h"
#include "machine/observe/history.h"
#include "paging/pager.h"

enum { ALLOCATIONS_SHOWN = 4096 };

/* history_record.c: what is added to the history. All do nothing if none is kept. */
typedef struct observer {
  sim_history *history;         /* NULL: none is kept */
  ps next_sample;               /* of what is resident, for the history; UINT64_MAX: none */
  sim_counters counters;        /* of the run; the kernels' are added when asked for */
  FF_VEC(sim_kernel_result *) kernels;
  FF_VEC(sim_allocation_result *) allocations; /* [0]: accesses that belong to no allocation */
} observer;

void record_access(sim *s, const pager_unit *unit, uint64_t address, ps time);
void record_fault(sim *s, const pager_unit *unit, uint64_t address, ps time);   /* a far-fault that is served */
void record_evicted(sim *s, const pager_unit *unit, uint64_t address, bool write_back, ps time);
void record_link(sim_history *h, history_cause cause, bool in, uint64_t bytes, ps begin, ps end);
void record_operation(sim *s, const node *n, ps begin, ps end); /* a copy, a set, a prefetch of the program */
void record_kernel(sim *s, const kernel *k);
void record_released(sim *s, uint32_t owner, ps time);          /* allocation number `owner` is about to be */
void record_sample(sim *s, ps time);                            /* what has been resident up to now, when time has come to next_sample */
sim_history *record_copy(sim *s, ps end);                       /* history_copy_of; there must be one */

sim_counters *counters_of_kernel(sim *s, const trace_launch *launch);
uint32_t counters_of_allocation(sim *s, const trace_op *op); /* the index */
void counters_total(sim *s, sim_counters *total);

#endif
