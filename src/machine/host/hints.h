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
  sim_hints given;
  FF_VEC(hinted) prefetched; /* what of them is prefetched and alive */
} hints;

trace_memory_kind hints_memory(const sim *s, const trace_op *op); /* what the allocation counts as */
void hints_allocated(sim *s, const trace_op *op);                 /* it is mapped */
void hints_released(sim *s, uint64_t address);
void hints_touched(sim *s, const trace_op *op); /* a copy, or a touch of the host's */
/* What is to be prefetched before the launch: one operation after the other, until false. */
bool hints_launch(sim *s, const trace_op *op, trace_op *prefetch);

#endif
