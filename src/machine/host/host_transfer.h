/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, sets and prefetches that begin now. */
#ifndef FF_MACHINE_HOST_HOST_TRANSFER_H
#define FF_MACHINE_HOST_HOST_TRANSFER_H

#include "machine/host/streams.h"

/* All return when it is over; *again: when to ask again. */
/* a copy or set in a stream of another device: has it to do with memory of this one? */
bool transfer_reaches(sim *s, const trace_op *op);
ps operation_begin(sim *s, node *n, ps time, bool *again);
/* a copy that waited for a map (learn.c) */
ps transfer_delayed(sim *s, uint64_t address, uint64_t bytes, bool pageable, ps time);
ps transfer_managed_in(sim *s, ps time);                /* copy: managed allocations to the GPU, before a kernel */
ps transfer_managed_out(sim *s, ps time);               /* copy: written ones back, when the host waits */
ps transfer_touch(sim *s, const trace_op *op, ps time); /* the host's own access to managed memory */

#endif
