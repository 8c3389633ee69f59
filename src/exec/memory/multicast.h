/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast memory: mappings at whose addresses the instructions multimem.ld_reduce, multimem.st and multimem.red reach
 * memory of several devices at once (PTX ISA, "multimem addresses"; CUDA Driver API, "Multicast Object Management").
 * A store does what multimem.st does: the manual leaves it open, and NCCL relies on it. Nothing else can use such an
 * address: to loads, atomics and copies it is closed. */
#ifndef FF_EXEC_MULTICAST_H
#define FF_EXEC_MULTICAST_H

#include "exec/memory/address_space.h"

enum { EXEC_TEAM_MAX = 16 }; /* devices */

typedef struct exec_multicast { /* what lies behind a mapping */
  uint32_t members;             /* devices of the team */
  uint64_t piece_bytes;         /* a power of two */
  /* of member m's bytes behind piece p of the mapping: host[p * members + m]; NULL: nothing is bound there */
  unsigned char **host;
} exec_multicast;

typedef struct exec_team_view { /* what a kernel finds at an address */
  const exec_multicast *team;   /* NULL: it is no multicast memory */
  uint64_t offset;              /* into the mapping */
  bool reads, writes;           /* what multimem instructions may do there */
} exec_team_view;

/* As exec_memory_map (address_space.h), but no host memory lies there. The team lives as long as the mapping. */
ff_status exec_memory_map_multicast(exec_memory *memory, uint64_t address, uint64_t bytes, const exec_multicast *team,
                                    uint64_t handle, const char *name, const exec_allocation **mapping,
                                    ff_error *error);
bool exec_multicast_any(void); /* is there such memory? */
/* Thread-safe, also while others map and unmap. */
exec_team_view exec_multicast_find(uint64_t address);

/* ---- for mapping.c and visibility.c ---- */

void exec_multicast_add(uint64_t address, uint64_t bytes, const exec_multicast *team);
void exec_multicast_remove(uint64_t address);                        /* nothing happens to what is none */
bool exec_multicast_open(uint64_t address, bool reads, bool writes); /* false: it is none */

#endif
