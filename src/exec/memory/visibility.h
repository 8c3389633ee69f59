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
/* Of a parked allocation, without padding: it has its first `bytes` only, and what is behind them, from the next page
 * on, is a parked allocation of `rest` bytes with the same number, which is returned. */
const exec_allocation *exec_memory_cut(exec_memory *memory, const exec_allocation *allocation, uint64_t bytes,
                                       uint64_t rest);
/* The reverse: a parked allocation takes over the pages of the part right behind it (NULL: none), which is no more, and
 * has `bytes` bytes. They are one again, and may be released, when all parts have been joined to the first. */
void exec_memory_join(exec_memory *memory, const exec_allocation *allocation, const exec_allocation *behind,
                      uint64_t bytes);
/* What messages call it. */
void exec_memory_name(const exec_allocation *allocation, const char *name);
/* What kernels may do with it from now on; no reservation. Nothing happens to a freed one. */
void exec_memory_open(const exec_allocation *allocation, bool read, bool write);
/* Says for messages why an allocation is not open: "memory of device 1, ..."; NULL: unknown. */
typedef const char *exec_why_closed(const exec_allocation *allocation);
void exec_memory_explain(exec_why_closed *explain);
const char *exec_memory_why_closed(const exec_allocation *allocation); /* NULL: unknown */

#endif
