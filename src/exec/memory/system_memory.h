/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the program's own that kernels may touch, on machines that have that (system_memory of a machine file): the
 * callback that is asked when a kernel accesses an address of no allocation. */
#ifndef FF_EXEC_SYSTEM_MEMORY_H
#define FF_EXEC_SYSTEM_MEMORY_H

#include "base/text.h"
#include "exec/memory/space.h"

/* For all launches from now on. NULL, as it is at first: such an access is a fault. Else `show` is called, by any
 * worker; true: it has made the memory at that address visible (exec_memory_show). */
void exec_system_memory_use(bool (*show)(uint64_t address));
/* The span that holds an address which a kernel accesses; NULL: there is none. */
exec_span *exec_system_memory_span(const exec_memory *memory, uint64_t address);

/* Goes behind "kernels cannot access": what a program does instead. */
#define EXEC_REACHED_BY "what cudaMalloc, cudaMallocManaged and cudaHostAlloc give they can"
/* Adds whose memory an address of no allocation is, where it is the host's own: "the host's own memory (the stack)".
 * The host's mappings are read for it, so it is for faults only. False, and nothing added: it is the GPU's, or nothing
 * that can be read is mapped there. */
bool exec_system_memory_describe(const exec_memory *memory, uint64_t address, ff_text *out);

#endif
