/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks take of an SM: registers, shared memory and, where both share one memory, what is left to the L1. The
 * units are those of the machine's compute capability (allocation.def); a machine with exact_allocation has none.
 * CUDA C++ Programming Guide, "Hardware Multithreading" and "Shared Memory" of each compute capability. */
#ifndef FF_MACHINE_ALLOCATION_H
#define FF_MACHINE_ALLOCATION_H

#include <stddef.h>
#include <stdint.h>

#include "machine/spec/spec.h"

/* Registers that a thread of a kernel has which wants so many: what is above the compute capability's limit is spilled.
 */
uint64_t allocation_of_thread(const machine_spec *spec, uint64_t registers);

/* Warps of so many registers per thread that an SM holds: registers are divided over the schedulers first. */
uint64_t allocation_warps(const machine_spec *spec, uint64_t registers);

/* The part of spec->registers that a block takes: of a block size that fits n times, n blocks never take more than
 * all. */
uint64_t allocation_registers(const machine_spec *spec, uint64_t warps, uint64_t registers);

/* Bytes of spec->shared_bytes that a block takes which uses `bytes` itself, static and dynamic. */
uint64_t allocation_shared(const machine_spec *spec, uint64_t bytes);

/* Are the L1 and shared memory one memory, which kernels divide? */
bool allocation_shares_memory(const machine_spec *spec);

/* How much of the memory that the L1 and shared memory have together is shared memory while blocks of a kernel run, in
 * bytes: one of the carve-outs of the compute capability. preferred: percent of the largest one, or -1; then the
 * smallest one that holds as many blocks as threads and registers allow. One block always fits. A machine whose
 * l1_bytes is not that whole memory has spec->shared_bytes. `registers`, `shared`: what one block takes. */
uint64_t allocation_carve_out(const machine_spec *spec, uint64_t threads, uint64_t registers, uint64_t shared,
                              int preferred);

/* What the L1 has beside so much shared memory. */
uint64_t allocation_l1(const machine_spec *spec, uint64_t carve_out);

/* The same while blocks of one warp run that use no shared memory and prefer nothing. */
uint64_t allocation_l1_of_small_blocks(const machine_spec *spec);

/* l1_bytes of a machine that is `spec` but for an L1 of which such blocks found `measured` bytes: that of the compute
 * capability, if so much is left of it within a tenth; else it shares nothing. */
uint64_t allocation_l1_from_small_blocks(const machine_spec *spec, uint64_t measured);

/* The most that each of `blocks` blocks can use itself; 0: not even what is reserved for it fits. */
uint64_t allocation_shared_each(const machine_spec *spec, uint64_t blocks);

#endif
