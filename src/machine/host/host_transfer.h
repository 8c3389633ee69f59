/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, sets and prefetches that begin now. */
#ifndef FF_MACHINE_HOST_HOST_TRANSFER_H
#define FF_MACHINE_HOST_HOST_TRANSFER_H

#include "machine/observe/observer.h"
#include "machine/timing.h"

/* What moves memory for the program's own operations, and for the host's accesses. */
typedef struct transfers {
  const machine_spec *spec;
  const manager *manager;
  const timing *t;
  pager *pager;
  struct link_port *link;
  struct peer_link *peers; /* the way to other devices */
  struct tier_store *tiers;
  struct observer *observer;
  struct learner *learner; /* that lets copies wait */
  struct event_loop *loop; /* of a device that goes on while the host waits for pages */
  const struct memory_budget *budget;
  /* its own state */
  bool for_other; /* the host's touch is an operation of another device */
  /* bytes from the GPU, to it, of copies over the link with both ends elsewhere: another device counts them */
  uint64_t foreign[2];
} transfers;

/* A copy or set in a stream of another device: has it to do with memory of this one? */
bool transfer_reaches(const transfers *x, const trace_op *op);
/* The functions below return when what they begin is over. A copy, a set or a prefetch; *again: it cannot begin yet,
 * and is to be tried again at the time that is returned. */
ps transfer_begin(transfers *x, const trace_op *op, ps time, bool *again);
/* a copy that waited for a map (learn.c) */
ps transfer_delayed(transfers *x, uint64_t address, uint64_t bytes, bool pageable, ps time);
ps transfer_managed_in(transfers *x, ps time); /* copy: managed allocations to the GPU, before a kernel */
/* copy: written ones back, when the host waits. touches: the program says what the host touches; else it may touch
 * all */
ps transfer_managed_out(transfers *x, bool touches, ps time);
/* A launch on another device: where the newest bytes are the host's, it may have written them. */
void transfer_managed_elsewhere(transfers *x);
ps transfer_touch(transfers *x, const trace_op *op, ps time); /* the host's own access to managed memory */

#endif
