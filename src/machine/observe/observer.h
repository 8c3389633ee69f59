/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted, and what is added to the history. */
#ifndef FF_MACHINE_OBSERVE_OBSERVER_H
#define FF_MACHINE_OBSERVE_OBSERVER_H

#include "base/memory.h"
#include "machine/observe/history.h"
#include "machine/observe/lines.h"
#include "machine/sm/sm.h"
#include "paging/pager.h"

/* Of kernels in ranges: what comes then has one range. */
enum { ALLOCATIONS_SHOWN = 4096, KERNELS_SHOWN = 4096 };

typedef struct observer {
  pager *pager; /* which allocation a unit is in, and what is resident: */
  bool paged;   /* what the pager says; else all that is mapped */
  const uint64_t *mapped;
  sim_history *history;  /* NULL: none is kept */
  line_table *lines;     /* NULL: nothing is counted by instruction */
  bool watched;          /* there is a history, or there are lines */
  ps next_sample;        /* of what is resident, for the history; UINT64_MAX: none */
  sim_counters counters; /* of the run; the kernels' are added when asked for */
  FF_VEC(sim_kernel_result *) kernels;
  FF_VEC(sim_allocation_result *) allocations; /* [0]: accesses that belong to no allocation */
} observer;

/* What is added to the history (history_record.c): callers look whether one is kept, where that is asked often. */
void record_access(observer *o, const pager_unit *unit, uint64_t address, ps time);
void record_accesses(observer *o, const pager_unit *unit, uint64_t address, ps time, uint64_t count);
void record_fault(observer *o, const pager_unit *unit, uint64_t address, ps time); /* a far-fault that is served */
void record_evicted(observer *o, const pager_unit *unit, uint64_t address, bool write_back, ps time);
void record_link(sim_history *h, history_cause cause, bool in, uint64_t bytes, ps begin, ps end);
/* The same of a link that is not the one to the host. */
void record_peer(sim_history *h, history_cause cause, bool in, uint64_t bytes, ps begin, ps end);
/* a copy, a set, a prefetch of the program, which was called for at that time of the host's */
void record_operation(observer *o, const trace_op *op, host_call call, ps begin, ps end);
void record_range(observer *o, const trace_op *op, ps time); /* TRACE_OP_RANGE, at the host's time */
void record_arguments(observer *o, const trace_launch *launch, const sim_counters *counters); /* before it begins */
void record_kernel(observer *o, const kernel *k, uint32_t stream);
void record_released(observer *o, uint32_t owner, ps time); /* allocation number `owner` is about to be */
/* what has been resident up to now, when time has come to next_sample */
void record_sample(observer *o, ps time);
sim_history *record_copy(observer *o, ps end); /* history_copy_of; there must be one */

/* What is counted: per kernel and per allocation; the run's totals are made from these when someone asks
 * (counters.c). */
void observer_free(observer *o);
sim_counters *counters_of_kernel(observer *o, const trace_launch *launch);
/* Of a launch with these counters; NULL: nothing is counted by instruction. */
kernel_lines *lines_of_kernel(observer *o, const trace_launch *launch, sim_counters *counters);
/* Kernel `number`, with what its instructions have counted. */
void counters_of_all(const observer *o, uint32_t number, sim_counters *total);
uint32_t counters_of_allocation(observer *o, const trace_op *op); /* the index */
/* Of the run, without what is made from other parts' state: times, the link's busy time, what the pager has counted. */
void counters_of_run(const observer *o, sim_counters *total);

/* Of the access that the warp is at. */
static inline tally tally_of(const observer *o, const warp *w, const pager_unit *unit) {
  return (tally){w->counted, &o->allocations.items[o->pager->allocations.items[unit->allocation].owner]->counters};
}

#endif
