/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks take of an SM: registers, shared memory and, where both share one memory, what is left to the L1. The
 * units are those of the machine's compute capability (allocation.def); a machine with exact_allocation has none.
 * CUDA C++ Programming Guide, "Hardware Multithreading" and "Shared Memory" of each compute capability. */
#ifndef FF_MACHINE_ALLOCATION_H
#define FF_MACHINE_ALLOCATION_H

#include <stddef.h>
#include <stdint.h>

#include "machine/spec/spec.h"

/* Warps of so many registers per thread that an SM holds: registers are divided over the schedulers first. */
uint64_t allocation_warps(const machine_spec *spec, uint64_t registers);

/* The part of spec->registers that a block takes: of a block size that fits n times, n blocks never take more than
 * all. */
uint64_t allocation_registers(const machine_spec *spec, uint64_t warps, uint64_t registers);

/* Bytes of spec->shared_bytes that a block takes which uses `bytes` itself, static and dynamic. */
uint64_t allocation_shared(const machine_spec *spec, uint64_t bytes);

/* The most that each of `blocks` blocks can use itself; 0: not even what is reserved for it fits. */
uint64_t allocation_shared_each(const machine_spec *spec, uint64_t blocks);

#endif
