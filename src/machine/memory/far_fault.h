/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults: what the pager asks of the machine. */
#ifndef FF_MACHINE_MEMORY_FAR_FAULT_H
#define FF_MACHINE_MEMORY_FAR_FAULT_H

#include "machine/observe/tally.h"
#include "machine/sm/sm.h"
#include "machine/timing.h"
#include "paging/pager.h"

typedef struct batch_fault {
  tally tally;
  ps time;
} batch_fault;

typedef struct freed_ahead {
  uint64_t bytes;
  ps at;
} freed_ahead; /* `at`: it has been written back */

typedef struct far_faults {
  const machine_spec *spec;
  const manager *manager;
  const timing *t;
  pager *pager;
  struct link_port *link;
  struct peer_link *peers; /* the way to other devices */
  struct tier_store *tiers;
  struct gmmu *gmmu;
  struct memory *memory;
  struct placing *map;
  struct segments *segments;
  struct observer *observer;
  agenda *agenda;
  const struct kernel_time *kernels;
  const warp_table *warps;
  sm *sms;
  bool write_back_overlaps; /* the transfer in need not wait for what it replaces */
  /* its own state */
  enum { BATCH_NONE, BATCH_CALLED, BATCH_SERVED } batch; /* the driver: idle, on its way, at work */
  ps batch_began, batch_at;                              /* how far the driver has come */
  ps batch_lands;                                        /* when all that it has queued will have landed */
  uint64_t batch_bytes;                                  /* that it has moved */
  FF_VEC(batch_fault) batch_faults;                      /* what it serves, for the counters */
  bool idle_pending;                                     /* an EVENT_LINK_IDLE is in the heap */
  bool clean_pending;                                    /* an EVENT_CLEAN is in the heap */
  FF_VEC(freed_ahead) freed; /* memory that was evicted ahead and may still be being written back, oldest first */
  size_t freed_first;
  uint64_t freed_bytes; /* sum of what is in it */
} far_faults;

void fault_free(far_faults *f);
void fault_hooks(far_faults *f, pager_hooks *hooks);
void fault_view(const far_faults *f, ff_view *view); /* what the machine says of the link */
void fault_batch(far_faults *f);                     /* the driver begins or ends a batch */
void fault_clean(far_faults *f); /* lets the evictor use a link to the host that has nothing to do while kernels run */
/* the GPU reaches the unit, which departs later, over the link rather than wait for it */
bool fault_reaches(const far_faults *f, const pager_unit *unit, ps at);
/* the GPU has read or written so much over the link that the prefetcher is told, or so often, `at` last, that an access
 * counter brings it */
void fault_reached(far_faults *f, sim_counters *kernel, uint64_t address, ps at);
void fault_idle(far_faults *f); /* lets the prefetcher use a link that has nothing to do while kernels run */
void fault_idle_at(far_faults *f, ps time); /* the same at that time; an EVENT_LINK_IDLE is not in the queue yet */
/* The events. */
void fault_link_idle(far_faults *f);
void fault_clean_over(far_faults *f);

#endif
