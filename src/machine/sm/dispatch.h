/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks onto SMs: which kernel has which SM. */
#ifndef FF_MACHINE_SM_DISPATCH_H
#define FF_MACHINE_SM_DISPATCH_H

#include "machine/sm/sm.h"

typedef struct device device;

void kernel_begin(sim *s, kernel *k, ps time);
void block_end(sim *s, block *b);
void dispatch_again(sim *s, ps time); /* what held blocks back is over */
void dispatch_slice(device *d, ps time); /* a time slice is over */
#define SLICE UINT64_C(2000000000) /* 2 ms: NVIDIA's driver reports time slices of this order */

#endif
