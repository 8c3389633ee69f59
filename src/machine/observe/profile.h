/* SPDX-License-Identifier: Apache-2.0 */
/* Counting only between the program's calls of cudaProfilerStart and cudaProfilerStop (sim_options.profile).
 *
 * The simulation counts everything, as ever. Each counter has an offset, modulo 2^64:
 *
 *     at a start  offset -= counter
 *     at a stop   offset += counter
 *     reported == counter + offset within a range, == offset outside
 *
 * so that what is reported is the sum over all ranges of what was added in them. A start within a range does nothing,
 * nor does a stop outside; a range without a stop ends with the program.
 *
 *   profile_call            all operations called before it are over
 *   ------------> PENDING --------------------------------------------> takes effect, at
 *                                          max(host's clock at the call, end of the last of these operations)
 *
 * A mark is no operation: nothing waits for it, and the simulation is the same with and without. */
#ifndef FF_MACHINE_OBSERVE_PROFILE_H
#define FF_MACHINE_OBSERVE_PROFILE_H

#include "base/memory.h"
#include "machine/events.h"
#include "machine/observe/result.h"

typedef struct profile_mark { /* a call that has not taken effect */
  bool start;
  uint64_t left;                      /* operations called before it that are not over */
  ps clock, end;                      /* the host's at the call; of those operations that are over, the latest */
  uint64_t host_api_ps, host_wait_ps; /* counted at the call */
} profile_mark;

typedef struct profile {
  bool asked; /* false: everything is reported, and no call does anything */
  struct observer *observer;
  const struct streams *streams;
  const struct host *host;
  const struct tier_store *tiers;
  struct pager *pager;
  /* all counters of the run, at this time */
  void (*totals)(void *context, ps time, sim_counters *total);
  void *context;
  /* its own state */
  bool called; /* the last call was a start */
  bool inside; /* the last one that took effect was */
  uint32_t made;
  uint64_t ranges; /* begun */
  FF_VEC(profile_mark) pending;
  sim_counters run;               /* offsets; and the peaks of the ranges that are over */
  uint64_t came_back, came_first; /* in the ranges; from the beginning to the end of the last one */
  sim_tiers tier_offsets;
  FF_VEC(sim_counters) kernels, allocations; /* by number in the observer; further ones have none yet: 0 */
} profile;

void profile_free(profile *p);
/* The program has called cudaProfilerStart (else ...Stop): the host has come to it. */
void profile_call(profile *p, bool start);
/* An operation is over that was made when there had been `made` calls. */
void profile_operation_over(profile *p, uint32_t made, ps time);

/* What is to be reported, in the place of what was counted. Nothing changes unless it is asked for. */
void profile_run(const profile *p, sim_counters *run);
void profile_kernel(const profile *p, size_t number, sim_counters *kernel);
void profile_allocation(const profile *p, size_t number, sim_counters *allocation);
void profile_paging(const profile *p, uint64_t *came_back, uint64_t *came_first);
void profile_tiers(const profile *p, sim_tiers *tiers);

#endif
