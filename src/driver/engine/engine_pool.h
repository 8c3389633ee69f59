/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools and stream-ordered allocation of the virtual GPU, for libcudart and libcuda (CUDA Runtime API, "Stream
 * Ordered Memory Allocator"). A handle that is no live pool: cudaErrorInvalidValue. */
#ifndef FF_DRIVER_ENGINE_POOL_H
#define FF_DRIVER_ENGINE_POOL_H

#include "driver/engine/engine.h"

typedef struct engine_pool engine_pool;

enum { /* cudaMemPoolAttr, CUmemPool_attribute; REUSE_* are int, and so are those behind USED_HIGH but for MOST, which
          cannot be set; the others are uint64_t */
       ENGINE_POOL_REUSE_EVENTS = 1,
       ENGINE_POOL_REUSE_OPPORTUNISTIC,
       ENGINE_POOL_REUSE_INTERNAL,
       ENGINE_POOL_RELEASE_THRESHOLD,
       ENGINE_POOL_RESERVED,
       ENGINE_POOL_RESERVED_HIGH,
       ENGINE_POOL_USED,
       ENGINE_POOL_USED_HIGH,
       ENGINE_POOL_TYPE,          /* engine_pool_type */
       ENGINE_POOL_HANDLES,       /* as it was created with; an imported one: 0 */
       ENGINE_POOL_LOCATION,      /* its id */
       ENGINE_POOL_LOCATION_TYPE, /* cudaMemLocationType */
       ENGINE_POOL_MOST,          /* as it was created with */
       ENGINE_POOL_DECOMPRESS,    /* likewise */
       ENGINE_POOL_DOMAIN,        /* a part of a device: -1 */
};

/* cudaMemAllocationType */
typedef enum engine_pool_type { ENGINE_POOL_PINNED = 1, ENGINE_POOL_MANAGED } engine_pool_type;

/* Where a pool's memory is: a type and a location. PINNED: on a device, or on the host (or its NUMA node 0), where
 * devices may use it only once engine_pool_set_access says so. MANAGED: anywhere, and the location (a device, the host,
 * its NUMA node 0) is the preferred one, or none (cudaMemLocationTypeInvalid, CU_MEM_LOCATION_TYPE_NONE); every device
 * may use it. cudaErrorInvalidDevice: no such device; cudaErrorInvalidValue: anything else. */

#define ENGINE_POOL_FILE_DESCRIPTOR 1 /* cudaMemHandleTypePosixFileDescriptor, the only way to another process */

/* most: bytes; 0: no limit of its own. handles: how other processes may have it, ENGINE_POOL_FILE_DESCRIPTOR or 0.
 * decompress: it is told back, and changes nothing. cudaErrorInvalidValue: with handles on the host, of managed memory
 * with a limit; cudaErrorNotSupported: with other handles, or of managed memory. */
ENGINE_API cudaError_t engine_pool_create(engine_pool_type type, cudaMemLocation location, uint64_t most, int handles,
                                          bool decompress, engine_pool **pool);
/* Not a default pool. What was allocated from it stays until it is freed. */
ENGINE_API cudaError_t engine_pool_destroy(engine_pool *pool);
ENGINE_API cudaError_t engine_pool_default(engine_pool_type type, cudaMemLocation location, engine_pool **pool);
/* of device memory: what engine_pool_allocate means by NULL */
ENGINE_API cudaError_t engine_pool_current(engine_pool_type type, cudaMemLocation location, engine_pool **pool);
/* cudaErrorInvalidValue: the pool is of another type or location */
ENGINE_API cudaError_t engine_pool_set_current(engine_pool_type type, cudaMemLocation location, engine_pool *pool);
/* The pool that memory in use came from; NULL: from none. */
ENGINE_API cudaError_t engine_pool_of(uint64_t address, engine_pool **pool);
ENGINE_API cudaError_t engine_pool_get(engine_pool *pool, int attribute, void *value);
ENGINE_API cudaError_t engine_pool_set(engine_pool *pool, int attribute, const void *value);
/* gives unused memory back, as long as at least `keep` bytes stay */
ENGINE_API cudaError_t engine_pool_trim(engine_pool *pool, uint64_t keep);
/* Who may use its memory: 0 none, 1 to read, 3. Its own device, and all of managed memory, may in any case; so may the
 * host (or its NUMA node 0) use managed and host memory, and never a device's: cudaErrorInvalidValue for anything
 * else. */
ENGINE_API cudaError_t engine_pool_set_access(engine_pool *pool, cudaMemLocation location, int access);
ENGINE_API cudaError_t engine_pool_access(engine_pool *pool, cudaMemLocation location, int *access);

/* To other processes. *descriptor: a new one, the caller's. cudaErrorInvalidValue: the pool was made without handles.
 * An imported pool has the access of its device, and nothing is allocated from it. */
ENGINE_API cudaError_t engine_pool_export(engine_pool *pool, int *descriptor);
ENGINE_API cudaError_t engine_pool_import(int descriptor, engine_pool **pool);
/* An allocation of such a pool: `data` is ENGINE_IPC_HANDLE_BYTES of it. What is imported is freed as any other of a
 * pool, and keeps its bytes until then. cudaErrorInvalidValue: the address is no start of one in use; the data is of
 * another pool's; cudaErrorMapBufferObjectFailed: its process is gone, or has freed it. */
ENGINE_API cudaError_t engine_pool_export_pointer(uint64_t address, void *data);
ENGINE_API cudaError_t engine_pool_import_pointer(engine_pool *pool, const void *data, uint64_t *address);

/* In the stream's order, and in a captured stream a node (of managed memory: cudaErrorStreamCaptureUnsupported). bytes
 * 0: *address is 0. */
ENGINE_API cudaError_t engine_pool_allocate(engine_pool *pool, uint64_t bytes, cudaStream_t stream, const char *call,
                                            uint64_t *address);
/* also of memory that is from no pool */
ENGINE_API cudaError_t engine_pool_free(uint64_t address, cudaStream_t stream);

#endif
