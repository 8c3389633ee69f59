/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events that other processes have by a handle (cudaIpc), for the files of this folder. engine.h has the
 * calls. All with the engine's lock. */
#ifndef FF_DRIVER_ENGINE_IPC_H
#define FF_DRIVER_ENGINE_IPC_H

#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_shared.h"

#define IPC_RECORDERS 64u /* processes that have an event */

typedef struct ipc_handle { /* what a program sends to the other process */
  char magic[8];
  uint64_t token[2];           /* at random: a descriptor's number is used again, a process's too */
  int32_t process, descriptor; /* where its file is */
  uint64_t bytes;              /* of memory; of an event 0 */
  uint64_t pool[2];            /* the token of the pool that it is from, else 0 */
  unsigned char zero[8];
} ipc_handle;
_Static_assert(sizeof(ipc_handle) == ENGINE_IPC_HANDLE_BYTES, "as in the driver's binary interface");

typedef enum ipc_kind { IPC_MEMORY, IPC_EVENT, IPC_POOLED } ipc_kind;

/* False: the host has no random numbers. */
bool ipc_token_make(uint64_t token[2]);
void ipc_handle_write(void *handle, ipc_kind kind, const uint64_t token[2], const uint64_t pool[2],
                      const engine_shared *file, uint64_t bytes);
/* cudaErrorInvalidValue: it is none of that kind. */
cudaError_t ipc_handle_read(ipc_handle *out, ipc_kind kind, const void *handle);
/* cudaErrorMapBufferObjectFailed: its process is gone, or another user's, or what it was of is no more. */
cudaError_t ipc_handle_reach(const ipc_handle *handle, ipc_kind kind, engine_shared *file, engine_shared_head *head);

/* ---- memory ---- */

bool engine_ipc_capable_locked(uint64_t address);
void engine_ipc_forget(const exec_allocation *allocation); /* it is freed: no process can open it any more */
void engine_ipc_reset(int device);                         /* what was opened of it is closed */
/* Was it opened by handle? May the device use it then? */
bool engine_ipc_allows(const exec_allocation *allocation, int device, bool *may);

/* Of an allocation from a pool with that token: `data` is ENGINE_IPC_HANDLE_BYTES. */
cudaError_t engine_ipc_export_pooled(const exec_allocation *allocation, const uint64_t pool[2], void *data);
/* Another allocation with the same bytes, the caller's to forget and release. cudaErrorInvalidValue: the data is none,
 * or of another pool's. */
cudaError_t engine_ipc_import_pooled(const void *data, const uint64_t pool[2], const exec_allocation **out);

/* ---- events ---- */

/* Recordings that are queued behind a kernel; those that are made at once are over before another process can ask. */
void engine_ipc_event_begin(engine_ipc_event *event);
void engine_ipc_event_end(engine_ipc_event *event);
/* What the event has to wait for now; NULL: nothing. To be given to the functions below, the last time to _free. */
typedef struct engine_ipc_wait engine_ipc_wait;
engine_ipc_wait *engine_ipc_wait_begin(const engine_event *event);
/* cudaSuccess, cudaErrorNotReady; cudaErrorLaunchFailure: a process that was to record it is gone. */
cudaError_t engine_ipc_wait_ask(engine_ipc_wait *wait);
/* Until then; gives the lock away meanwhile. */
cudaError_t engine_ipc_wait_for(engine_ipc_wait *wait);
void engine_ipc_wait_free(engine_ipc_wait *wait);
void engine_ipc_event_free(engine_ipc_event *event); /* or NULL */

#endif
