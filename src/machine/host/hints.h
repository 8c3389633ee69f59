/* SPDX-License-Identifier: Apache-2.0 */
/* Hints given from outside, applied to the program's operations. Does nothing without them. */
#ifndef FF_MACHINE_HOST_HINTS_H
#define FF_MACHINE_HOST_HINTS_H

#include "base/memory.h"
#include "machine/host/given_hints.h"
#include "machine/sim.h"

typedef struct hinted { /* an allocation that is to be prefetched */
  uint64_t address, bytes;
  bool away; /* it has not come since the host had it last */
} hinted;

typedef struct hints {
  const manager *manager;
  struct host *host; /* that makes the calls */
  struct pager *pager;
  sim_hints given;
  /* its own state */
  FF_VEC(hinted) prefetched; /* what of them is prefetched and alive */
} hints;

void hints_free(hints *g);
trace_memory_kind hints_memory(const hints *g, const trace_op *op); /* what the allocation counts as */
void hints_allocated(hints *g, const trace_op *op);                 /* it is mapped */
void hints_released(hints *g, uint64_t address);
void hints_touched(hints *g, const trace_op *op); /* a copy, or a touch of the host's */
/* What is to be prefetched before the launch: one operation after the other, until false. */
bool hints_launch(hints *g, const trace_op *op, trace_op *prefetch);

#endif
