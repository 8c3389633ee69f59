/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded program itself says, before anything is simulated: which kernels and copies use which allocation, how
 * much of it, how often.
 *
 * Everything is counted from the trace's own records; what is beyond the limits is in no list, and
 * `left_out` says how many allocations or kernels that are. */
#ifndef FF_STUDY_ADVISE_FACTS_H
#define FF_STUDY_ADVISE_FACTS_H

#include "base/memory.h"
#include "trace/file.h"

enum { ADVISE_ALLOCATIONS_MAX = 1024, ADVISE_KERNELS_MAX = 1024 };

typedef struct advise_allocation {
  char name[64];
  uint32_t id;
  uint64_t bytes;
  trace_memory_kind memory;
  uint64_t pages, touched_pages; /* of 4 KiB: all, and those that a kernel touched; pages 0: not known (too many) */
  uint64_t loads, writes;        /* warp accesses of kernels; writes: stores and atomics */
  uint64_t sector_bytes;         /* asked for by kernels, in sectors of 32 bytes */
  uint64_t host_uses;            /* copies from or to it, and touches by the host */
  uint64_t host_uses_later;      /* of these, after a launch that touched it */
  uint64_t declared, touched;    /* launches whose parameters point to it; that accessed it */
} advise_allocation;

typedef struct advise_use {   /* of an allocation by all launches of a kernel */
  uint32_t allocation;        /* index */
  uint64_t declared, touched; /* launches */
} advise_use;

typedef struct advise_kernel {
  char name[256];
  uint32_t number; /* kernel_index of the launches */
  uint64_t launches;
  FF_VEC(advise_use) uses;
} advise_kernel;

enum { ADVISE_SYSTEM_MEMORY_HMM = 1, ADVISE_SYSTEM_MEMORY_ATS }; /* params.def: system_memory */

typedef struct advise_facts { /* all owned: advise_facts_free */
  FF_VEC(advise_allocation) allocations;
  FF_VEC(advise_kernel) kernels;
  uint64_t launches, accesses;
  /* most bytes of device and managed memory at one time; and of the 2 MiB blocks it lies in */
  uint64_t footprint;
  uint64_t footprint_blocks;
  bool managed; /* some of it is managed memory */
  /* of the machine that is simulated, by who reads the trace: as system_memory of a machine file */
  uint32_t system_memory;
  uint32_t left_out;
} advise_facts;

/* Reads the whole trace. FF_PARSE: it is damaged; *facts is then of no use, and free. `step` (may be NULL) is told of
 * each launch. */
ff_status advise_facts_read(trace_file *file, void (*step)(void *context, uint64_t launch), void *context,
                            advise_facts *facts, ff_error *error);
void advise_facts_free(advise_facts *facts);

/* The allocation with that number; NULL: not in the list. */
const advise_allocation *advise_facts_find(const advise_facts *facts, uint32_t id);

#endif
