/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that exist but may not be used: a pool's free memory, and memory of devices that the kernel's device may
 * not reach.
 *
 * To every lookup a parked allocation is as if it had been freed; its range stays its own until it is taken back. One
 * that is not open can be used by the host, and is out of bounds for kernels. The caller changes either while nothing
 * runs on the device. */
#ifndef FF_EXEC_VISIBILITY_H
#define FF_EXEC_VISIBILITY_H

#include "exec/memory/address_space.h"

void exec_memory_park(const exec_allocation *allocation, bool parked);
/* What kernels may do with it from now on; no reservation. Nothing happens to a freed one. */
void exec_memory_open(const exec_allocation *allocation, bool read, bool write);
/* Says for messages why an allocation is not open: "memory of device 1, ..."; NULL: unknown. */
typedef const char *exec_why_closed(const exec_allocation *allocation);
void exec_memory_explain(exec_why_closed *explain);
const char *exec_memory_why_closed(const exec_allocation *allocation); /* NULL: unknown */

#endif
