/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that has no address (engine_vmm.c) and teams of devices whose memory has addresses together
 * (engine_multicast.c), for these two. All with the lock. */
#ifndef FF_DRIVER_ENGINE_VMM_H
#define FF_DRIVER_ENGINE_VMM_H

#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_shared.h"

#define ENGINE_NOTE_BYTES 32u

typedef struct engine_team engine_team;

typedef struct engine_created { /* what cuMemCreate or cuMulticastCreate has made */
  uint64_t bytes, offset;       /* 0 bytes: the slot is free */
  engine_shared shared;         /* what other processes can have lies in a file of its own, at 0 */
  bool imported;                /* it is another's: device_used does not count it */
  uint32_t generation, references, mappings;
  uint32_t bindings;   /* to multicast objects */
  unsigned char *view; /* all of it in host memory, from the first binding on; else NULL */
  engine_team *team;   /* of a multicast object, which has no memory; else NULL */
  uint32_t number;     /* in the access stream, not used again */
  int device;
  unsigned char note[ENGINE_NOTE_BYTES];
} engine_created;

/* Valid until the next one is made. NULL: there is none, or none any more. */
engine_created *engine_created_of(uint64_t handle);                                      /* that has a handle */
engine_created *engine_created_bound(uint64_t handle);                                   /* or is bound, or mapped */
engine_created *engine_created_at(uint64_t address, uint64_t *offset, uint64_t *handle); /* that is mapped there */
uint64_t engine_created_handle(const engine_created *p);
engine_created *engine_created_new(int device, uint64_t bytes);
void engine_created_told(const engine_created *p); /* its TRACE_OP_CREATE */
void engine_created_settle(engine_created *p);     /* gives it back if nothing refers to it any more */
/* Its bytes in host memory; NULL: the host has no room. */
unsigned char *engine_created_view(engine_created *p);
/* Calls `visit` for each that has a team, until it returns false. */
void engine_teams_each(bool (*visit)(engine_created *p, void *context), void *context);

/* ---- engine_multicast.c ---- */

cudaError_t engine_team_map(engine_created *p, uint64_t address, uint64_t bytes, uint64_t handle, const char *name,
                            const exec_allocation **mapping);
uint32_t engine_team_set(const engine_team *team); /* its devices, a bit each */
bool engine_team_has(const engine_team *team, int device);
/* The multicast object, when all of its devices have been added; waits for that. cudaErrorInvalidValue: it is none, or
 * none any more. */
cudaError_t engine_team_whole(uint64_t handle, engine_created **object);
void engine_team_end(engine_team *team);
void engine_teams_forget(int device);                      /* memory of the device's is bound no longer */
void engine_teams_forget_pool(exec_allocation allocation); /* nor is this part of a pool's, which is freed */
cudaError_t engine_team_import(const engine_shared_head *head, uint64_t *handle);

#endif
