/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and memory apart: TRACE_OP_RESERVE and those behind it. */
#ifndef FF_MACHINE_HOST_VIRTUAL_MEMORY_H
#define FF_MACHINE_HOST_VIRTUAL_MEMORY_H

#include "base/memory.h"
#include "machine/sim.h"

/* used: was mapped once */
typedef struct created_memory {
  uint32_t id, mappings;
  uint64_t bytes;
  bool released, used;
} created_memory;
typedef struct reserved_range {
  uint64_t address, bytes;
  uint32_t id, owner;
} reserved_range;

typedef struct mappings {
  FF_VEC(created_memory) created;  /* by id */
  FF_VEC(reserved_range) reserved; /* by address */
} mappings;

void mapping_process(sim *s, const trace_op *op);
void mapping_foreign(sim *s, const trace_op *op); /* the same of other devices' memory */

#endif
