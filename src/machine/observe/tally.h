/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request is counted: in the counters of its kernel and in those of the allocation that it is in. */
#ifndef FF_MACHINE_OBSERVE_TALLY_H
#define FF_MACHINE_OBSERVE_TALLY_H

#include "machine/observe/result.h"

typedef struct tally {
  sim_counters *kernel, *allocation;
} tally;
#define COUNT(t, field, n) ((void)((t)->kernel->field += (n), (t)->allocation->field += (n)))

#endif
