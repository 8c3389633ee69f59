/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that are there but may not be used: a pool's free memory, and memory of devices that a kernel's may not
 * reach.
 *
 * What always holds: a parked allocation is to every lookup as if it had been freed, and is neither released nor used
 * again before it is taken back; one that is not open is whole for the host, and out of bounds for kernels. Nothing
 * runs on the device meanwhile. */
#ifndef FF_EXEC_VISIBILITY_H
#define FF_EXEC_VISIBILITY_H

#include "exec/memory/address_space.h"

void exec_memory_park(const exec_allocation *allocation, bool parked);
/* What kernels may do with it from now on; no reservation. Nothing happens to a freed one. */
void exec_memory_open(const exec_allocation *allocation, bool read, bool write);
/* Who says why an allocation is not open, for messages: "memory of device 1, ..."; NULL: it does not know. */
typedef const char *exec_why_closed(const exec_allocation *allocation);
void exec_memory_explain(exec_why_closed *explain);
const char *exec_memory_why_closed(const exec_allocation *allocation); /* NULL: nobody knows */

#endif
