/* SPDX-License-Identifier: Apache-2.0 */
/* The offload controller: which instances of candidates go to a stack, and back. */
#ifndef FF_MACHINE_STACKS_CONTROLLER_H
#define FF_MACHINE_STACKS_CONTROLLER_H

#include "machine/stacks/learn.h"
#include "machine/stacks/stacks.h"

/* of a candidate: picoseconds per access that its instances took, a running mean of the last dozen or so; 0: none
 * yet */
typedef struct stack_pace {
  const sim_candidate *candidate;
  ps home, away;
} stack_pace;

typedef struct controller {
  stacks *stacks;
  const machine_spec *spec;
  event_heap *heap;
  const warp_table *warps;
  sm *sms;
  memory *memory; /* whose L2 drops what an instance wrote in a stack */
  learner *learner;
  /* its own state */
  FF_VEC(stack_instance) instances; /* by warp index */
  FF_VEC(stack_pace) paces;
} controller;

void controller_free(controller *c);

void controller_enter(controller *c, warp *w, uint64_t word);
void controller_access(controller *c, warp *w, const uint64_t *record, ps time); /* the instance makes an access */
/* true: the warp goes, and is woken there */
bool controller_decide(controller *c, warp *w, ps time);
/* all lines of its access are on their way: w->arrival */
void controller_accessed(controller *c, const warp *w);
/* true: the warp was away and is on its own SM again, from *back_at on */
bool controller_leave(controller *c, warp *w, ps time, ps *back_at);

#endif
