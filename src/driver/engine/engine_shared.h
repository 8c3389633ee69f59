/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the virtual GPU that another process can have, too: a file in memory of its own. A program sends its
 * descriptor to the other process (cuMemExportToShareableHandle), or that finds it in the first one's table of
 * descriptors (cudaIpc, engine_ipc.c). Behind the memory the file has a page that says what it is. */
#ifndef FF_DRIVER_ENGINE_SHARED_H
#define FF_DRIVER_ENGINE_SHARED_H

#include <stdbool.h>
#include <stdint.h>

typedef struct engine_shared {
  bool open;
  int file;               /* once `open`; */
  uint64_t device, inode; /* which file that was: a program may close what it did not open */
} engine_shared;

typedef struct engine_shared_head { /* in the file's last page */
  char magic[16];
  uint64_t bytes;
  int32_t device;         /* of the process that made it */
  uint32_t kind;          /* engine_shared_kind */
  unsigned char note[32]; /* engine_memory_create's; of what has a handle, the handle's token, and its pool's */
} engine_shared_head;

typedef enum engine_shared_kind {
  ENGINE_SHARED_CREATED,
  ENGINE_SHARED_BY_HANDLE,
  ENGINE_SHARED_EVENT,
  ENGINE_SHARED_POOL,   /* has no memory, only the pool's token */
  ENGINE_SHARED_POOLED, /* an allocation from such a pool */
  ENGINE_SHARED_TEAM    /* a multicast object, which has no memory, either: its process and handle are in the note */
} engine_shared_kind;

/* Zero-filled; head->magic is filled in. Its size never changes. False: the host has no such file. */
bool engine_shared_make(engine_shared *shared, engine_shared_head *head);
/* The file that the descriptor is of, by a descriptor of our own. False: none of ours, or none of that kind. */
bool engine_shared_take(engine_shared *shared, int descriptor, engine_shared_kind kind, engine_shared_head *head);
/* The file of another process's descriptor. False: the process is gone, or another user's; no such descriptor; or as
 * engine_shared_take. Opens nothing but a regular file, and never waits. */
bool engine_shared_reach(engine_shared *shared, int process, int descriptor, engine_shared_kind kind,
                         engine_shared_head *head);
/* The file is still the one that was made or taken. */
bool engine_shared_lives(const engine_shared *shared);
/* A new descriptor, the caller's; -1: there is none. */
int engine_shared_give(const engine_shared *shared);
void engine_shared_close(engine_shared *shared);

#endif
