/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and memory apart: TRACE_OP_RESERVE and those behind it. */
#ifndef FF_MACHINE_HOST_VIRTUAL_MEMORY_H
#define FF_MACHINE_HOST_VIRTUAL_MEMORY_H

#include "base/memory.h"
#include "machine/sim.h"
#include "machine/timing.h"
#include "paging/owners.h"

/* used: was mapped once */
typedef struct created_memory {
  uint32_t id, mappings;
  uint64_t bytes;
  bool released, used;
  owners_set team; /* a multicast object of these devices, which has no memory; 0: it is none */
} created_memory;
typedef struct reserved_range {
  uint64_t address, bytes;
  uint32_t id, owner;
} reserved_range;

typedef struct mappings {
  const manager *manager;
  const timing *t;
  struct host *host; /* whose time it takes, and whose memory */
  struct pager *pager;
  struct gmmu *gmmu;
  struct memory *memory; /* whose L2 forgets what was mapped */
  struct placing *map;
  struct hints *hints;
  struct observer *observer;
  /* its own state */
  FF_VEC(created_memory) created;  /* by id */
  FF_VEC(reserved_range) reserved; /* by address */
} mappings;

void mappings_free(mappings *v);
void mapping_process(mappings *v, const trace_op *op);
/* Memory of the program's own becomes known, which kernels may have touched already: so far as memory that is always in
 * the GPU. Where pages move, nothing of that may be left. */
void mappings_show(mappings *v, uint64_t address, uint64_t bytes);
void mapping_foreign(mappings *v, const trace_op *op); /* the same of other devices' memory and multicast objects */

#endif
