/* SPDX-License-Identifier: Apache-2.0 */
/* A map that is learned from the first instances, and the copies that wait for it. */
#ifndef FF_MACHINE_STACKS_LEARN_H
#define FF_MACHINE_STACKS_LEARN_H

#include "base/memory.h"
#include "machine/sm/sm.h"
#include "machine/stacks/stacks.h"
#include "partition/colocate.h"

typedef struct delayed_range {
  uint64_t address, bytes;
  bool pageable;
} delayed_range;

typedef struct learner {
  stacks *stacks; /* that get the map; NULL: there are none, and nothing is learned */
  const machine_spec *spec;
  const manager *manager;
  struct pager *pager; /* what is allocated, and resident */
  struct dispatcher *dispatch;
  front_end *front; /* of the SMs, which stop while what waited is copied */
  struct link_port *link;
  const struct observer *observer;
  struct transfers *transfers;
  /* its own state */
  bool learns; /* instances are looked at still */
  bool delays; /* the program's own copies wait */
  bool began;  /* a kernel has */
  uint64_t wanted, seen;
  ps until; /* delays: no longer than that */
  ps from;
  colocate *stats; /* made with the first instance */
  FF_VEC(colocate_range) ranges;
  FF_VEC(delayed_range) delayed; /* sorted by address, none overlaps another */
} learner;

void learner_begin(learner *l); /* if the map is to be learned */
void learner_end(learner *l);
/* copies to the GPU wait, and kernels find their data in CPU memory */
static inline bool learner_delays(const learner *l) { return l->delays; }
void learner_delay(learner *l, const trace_op *op);
void learner_wrote(learner *l, uint64_t line); /* a kernel has, in CPU memory */
/* while it learns: a kernel begins */
void learner_kernel(learner *l, const trace_launch *launch, ps time);
void learner_look(learner *l, ps time);                              /* copies wait still: for too long? */
bool learner_holds(const learner *l, const kernel *k);               /* no further block of it need run now */
void learner_instance(learner *l, const stack_instance *i, ps time); /* while it learns: one more has ended */

#endif
