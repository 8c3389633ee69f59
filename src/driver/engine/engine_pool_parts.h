/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of pools, for engine_pool.c: blocks, and the parts that allocations have of them.
 *
 * A *block* is memory that a pool has from the device: to the access stream one allocation, of as many bytes as the
 * first request had. A *part* is a range of it that is in use, or free. A request takes a free part, several that lie
 * side by side, or the beginning of one:
 *
 *     block  |   part, free   |       part, in use      | part, free |
 *            '--- room -------'                         '--- room ---'
 *
 * A free part knows after what in which stream it was freed, and may be had again
 *
 *     in the stream in which it was freed             in any case, and by any stream once the host has waited for that
 *     in one that has waited for that                 ENGINE_POOL_REUSE_EVENTS
 *     when the freeing is over, by luck               ENGINE_POOL_REUSE_OPPORTUNISTIC
 *     by making the stream wait                       ENGINE_POOL_REUSE_INTERNAL, if there is no room for a new block
 *
 * Blocks are never joined with others. Those of managed memory, of pools that processes share, and all where a checker
 * looks at every allocation, are taken whole, by requests of as many bytes. All functions: with the engine's lock. */
#ifndef FF_DRIVER_ENGINE_POOL_PARTS_H
#define FF_DRIVER_ENGINE_POOL_PARTS_H

#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_pool.h"
#include "driver/engine/engine_shared.h"

struct engine_pool {
  bool live;
  int place;
  int reuse[3]; /* the first three attributes */
  int access[ENGINE_DEVICES_MAX];
  uint64_t threshold, most, used, used_high, reserved, reserved_high; /* bytes */
  bool shareable, imported;                                           /* by file descriptors */
  bool decompress;                                                    /* as it was asked for; changes nothing */
  uint64_t token[2];                                                  /* of a pool that was exported or imported */
  engine_shared file;                                                 /* once it was exported */
};

/* of engine_pool.c */
bool pool_is_managed(const engine_pool *pool);
int pool_device(const engine_pool *pool);    /* -1: none */
int pool_preferred(const engine_pool *pool); /* a device, cudaCpuDeviceId, or cudaInvalidDeviceId */
engine_memory pool_memory(const engine_pool *pool);
void pools_give_back(void); /* whatever all of them can, as room is needed */

typedef struct pool_block pool_block;

typedef struct pool_part {
  const exec_allocation *allocation; /* in use: the bytes that were asked for; free and parked: its room */
  pool_block *block;
  uint64_t room; /* bytes: whole pages, but for the last one of its block */
  bool used;
  bool hinted;            /* managed memory with hints of its last owner's, which nobody else may get */
  bool legacy;            /* it was freed in the default stream, */
  bool blocking;          /* in one that waits for that and is waited for, */
  int device;             /* of this device, */
  uint32_t stream;        /* which is this one, */
  uint32_t event;         /* by this recording, */
  uint64_t sequence;      /* which is this operation; 0: the host has waited for it */
  uint64_t time_ps;       /* local clock: when it is over */
  struct pool_part *next; /* behind it in the block */
} pool_part;

struct pool_block {
  engine_pool *pool;
  uint64_t bytes;   /* the sum of its parts' rooms */
  bool surrendered; /* all of it is free, and no longer counted as reserved */
  char name[64];    /* of its first allocation */
  pool_part *parts; /* by address */
};

/* The part that an allocation is; NULL: it is no pool's. */
pool_part *pool_part_of(const exec_allocation *allocation);

/* A part in use, of `bytes` bytes, for work of the stream from here on. cudaErrorMemoryAllocation: no room. */
cudaError_t pool_part_take(engine_pool *pool, uint64_t bytes, engine_stream *stream, const char *call,
                           pool_part **part);
/* A block of another process's, in use. */
void pool_block_import(engine_pool *pool, const exec_allocation *allocation);
/* It is free from now on, once what is in the stream is over; NULL: the host has waited for whatever used it. */
void pool_part_free(pool_part *part, engine_stream *stream);

/* Gives back free blocks whose freeing is over, as long as `keep` bytes stay reserved; `surrender`: they stay, and do
 * not count any more. */
void pool_give_back(engine_pool *pool, uint64_t keep, bool surrender);

bool pool_memory_none(void); /* no pool has any */
/* The host has waited for a device (or ENGINE_ANY_DEVICE), and for a stream or an event (or NULL). */
void pool_memory_waited(int device, const engine_stream *stream, const engine_event *event);
void pool_memory_reset(int device); /* no pool has any of that device's from now on; it is not released, but for what is
                                       imported */
void pool_memory_check(const engine_pool *pool);

#endif
