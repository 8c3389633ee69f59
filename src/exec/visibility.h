/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that are there but may not be used: a pool's free memory, and memory of devices that a kernel's may not reach.
 *
 * What always holds: a parked allocation is to every lookup as if it had been freed, and is neither released nor used again
 * before it is taken back; a hidden one is whole for the host, and out of bounds for kernels. Nothing runs on the device
 * meanwhile. */
#ifndef FF_EXEC_VISIBILITY_H
#define FF_EXEC_VISIBILITY_H

#include "exec/memory.h"

void exec_memory_park(const exec_allocation *allocation, bool parked);
void exec_memory_hide(const exec_allocation *allocation, bool hidden);

#endif
