/* SPDX-License-Identifier: Apache-2.0 */
/* Far-faults: what the pager asks of the machine. */
#ifndef FF_MACHINE_MEMORY_FAR_FAULT_H
#define FF_MACHINE_MEMORY_FAR_FAULT_H

#include "machine/observe/tally.h"
#include "machine/sm/sm.h"
#include "paging/pager.h"

typedef struct batch_fault { tally tally; ps time; } batch_fault;

typedef struct freed_ahead { uint64_t bytes; ps at; } freed_ahead; /* `at`: it has been written back */

void fault_hooks(sim *s, pager_hooks *hooks);
void fault_batch(sim *s); /* the driver begins or ends a batch */
void fault_clean(sim *s); /* lets the evictor use a link to the host that has nothing to do while kernels run */
bool fault_reaches(const sim *s, const pager_unit *unit, ps at); /* the GPU reaches the unit, which departs later, over the link rather than wait for it */
void fault_reached(sim *s, kernel *k, uint64_t address); /* the GPU has read or written so much over the link that the prefetcher is told */
void fault_idle(sim *s); /* lets the prefetcher use a link that has nothing to do while kernels run */

#endif
