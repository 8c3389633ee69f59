/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: what launches declare is resident before they begin. Does nothing under other managers. */
#ifndef FF_MACHINE_MEMORY_DECLARED_RESIDENCY_H
#define FF_MACHINE_MEMORY_DECLARED_RESIDENCY_H

#include "machine/host/streams.h"
#include "paging/pager.h"

enum { SEGMENTS_AHEAD = 8 };

typedef struct segments {
  const manager *manager;
  pager *pager;
  struct link_port *link;
  struct far_faults *faults;
  struct observer *observer;
  const streams *streams;
  const struct hints *hints;
  const struct host *host;
  agenda *agenda;
  const struct kernel_time *kernels;
  /* its own state */
  FF_VEC(uint32_t) ahead;          /* launches whose turn has not come, in order */
  node *kept_back[SEGMENTS_AHEAD]; /* where only one stream has work: the last ones that the host made, a ring */
  uint32_t next_kept_back;
} segments;

void segments_free(segments *g);
void segments_declare(segments *g, node *n); /* a launch has been queued */
/* One stream only: refers to the launch, one of the last SEGMENTS_AHEAD. Returns the one before these, whose reference
 * is the caller's now; NULL: there is none. */
node *segments_keep_back(segments *g, node *n);
void segments_over(segments *g, node *n); /* and is over */
bool segments_declared(const segments *g, const kernel *k, uint32_t allocation);
/* its turn: when all that it declares and that finds room is there */
ps segments_resident(segments *g, node *n, ps time);
/* the link may have nothing to do: fetches for queued launches */
void segments_idle(segments *g);
/* kernel: whose launch declares it */
ps segments_fetch(segments *g, sim_counters *kernel, uint64_t bytes, uint32_t flight, const pager_unit *first, ps room);

#endif
