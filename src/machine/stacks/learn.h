/* SPDX-License-Identifier: Apache-2.0 */
/* A map that is learned from the first instances, and the copies that wait for it. */
#ifndef FF_MACHINE_STACKS_LEARN_H
#define FF_MACHINE_STACKS_LEARN_H

#include "machine/stacks/stacks.h"

void learner_create(sim *s); /* if the map is to be learned */
void learner_free(stacks *k);
bool learner_delays(const sim *s); /* copies to the GPU wait, and kernels find their data in CPU memory */
void learner_delay(sim *s, const trace_op *op);
void learner_wrote(sim *s, uint64_t line);                        /* a kernel has, in CPU memory */
void learner_kernel(sim *s, const trace_launch *launch, ps time); /* one begins */
void learner_look(sim *s, ps time);                               /* copies wait still: for too long? */
bool learner_holds(const sim *s, const kernel *k);                /* no further block of it need run now */
void learner_instance(sim *s, const stack_instance *i, ps time);  /* one more has ended */

#endif
