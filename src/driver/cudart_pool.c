/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of the CUDA runtime (CUDA Runtime API, "Stream Ordered Memory Allocator").
 *
 * Here the stream's order is the host's, so memory comes and goes at once; a pool is a set of attributes and a count of
 * what was allocated from it. What always holds: used <= used_high; a pool keeps nothing back, so reserved == used. The
 * default pool (the first entry) cannot be destroyed, and is the current one until cudaDeviceSetMemPool. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "driver/cudart.h"

typedef enum pool_attribute { /* cudaMemPoolAttr */
  POOL_REUSE_EVENTS = 1, POOL_REUSE_OPPORTUNISTIC, POOL_REUSE_INTERNAL, POOL_RELEASE_THRESHOLD, POOL_RESERVED,
  POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH,
} pool_attribute;

typedef struct pool {
  bool live;
  int reuse[3];                /* the first three attributes: on unless turned off */
  uint64_t release_threshold, used, used_high;
} pool;

typedef struct piece { uint64_t address, bytes; pool *owner; } piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FF_VEC(pool *) pools;
static FF_VEC(piece) pieces;
static pool *current;

static pool *add_pool(void) {
  pool *made = ff_alloc(sizeof *made);
  *made = (pool){.live = true, .reuse = {1, 1, 1}};
  FF_PUSH(&pools, made);
  return made;
}

static pool *default_pool(void) {
  if (!pools.count) current = add_pool();
  return pools.items[0];
}

static pool *find(cudaMemPool_t handle) {
  default_pool();
  for (size_t i = 0; i < pools.count; i++)
    if ((cudaMemPool_t)pools.items[i] == handle && pools.items[i]->live) return pools.items[i];
  return NULL;
}

/* ---- which pool ---- */

static cudaError_t get_pool(cudaMemPool_t *out, int device, bool the_default) {
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (error || device) return error ? error : cudaErrorInvalidDevice;
  pthread_mutex_lock(&lock);
  pool *first = default_pool();
  *out = (cudaMemPool_t)(the_default ? first : current);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) { return engine_return(get_pool(out, device, true)); }
CUDART_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device) { return engine_return(get_pool(out, device, false)); }

CUDART_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
  if (device) return engine_return(cudaErrorInvalidDevice);
  pthread_mutex_lock(&lock);
  pool *found = find(handle);
  if (found) current = found;
  pthread_mutex_unlock(&lock);
  return engine_return(found ? cudaSuccess : cudaErrorInvalidValue);
}

CUDART_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const void *properties) {
  cudaError_t error = out && properties ? engine_start() : cudaErrorInvalidValue;
  if (error) return engine_return(error);
  pthread_mutex_lock(&lock);
  default_pool();
  *out = (cudaMemPool_t)add_pool();
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

/* Memory that is still in use stays valid; only the handle dies, and the default pool takes over. */
CUDART_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  pthread_mutex_lock(&lock);
  pool *found = find(handle);
  bool allowed = found && found != pools.items[0];
  if (allowed) found->live = false;
  if (allowed && current == found) current = pools.items[0];
  pthread_mutex_unlock(&lock);
  return engine_return(allowed ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- attributes ---- */

static cudaError_t set_attribute(pool *p, int attribute, const void *value) {
  uint64_t number = 0;
  memcpy(&number, value, attribute <= POOL_REUSE_INTERNAL ? sizeof(int) : sizeof number);
  switch ((pool_attribute)attribute) {
    case POOL_REUSE_EVENTS: case POOL_REUSE_OPPORTUNISTIC: case POOL_REUSE_INTERNAL:
      p->reuse[attribute - POOL_REUSE_EVENTS] = (int)number;
      return cudaSuccess;
    case POOL_RELEASE_THRESHOLD: p->release_threshold = number; return cudaSuccess;
    case POOL_RESERVED_HIGH: case POOL_USED_HIGH: /* may only be set back */
      if (number) return cudaErrorInvalidValue;
      p->used_high = p->used;
      return cudaSuccess;
    case POOL_RESERVED: case POOL_USED: break;
  }
  return cudaErrorInvalidValue;
}

static cudaError_t get_attribute(const pool *p, int attribute, void *value) {
  uint64_t number = 0;
  switch ((pool_attribute)attribute) {
    case POOL_REUSE_EVENTS: case POOL_REUSE_OPPORTUNISTIC: case POOL_REUSE_INTERNAL:
      memcpy(value, &p->reuse[attribute - POOL_REUSE_EVENTS], sizeof(int));
      return cudaSuccess;
    case POOL_RELEASE_THRESHOLD: number = p->release_threshold; break;
    case POOL_RESERVED: case POOL_USED: number = p->used; break;
    case POOL_RESERVED_HIGH: case POOL_USED_HIGH: number = p->used_high; break;
    default: return cudaErrorInvalidValue;
  }
  memcpy(value, &number, sizeof number);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, int attribute, void *value) {
  pthread_mutex_lock(&lock);
  pool *found = find(handle);
  cudaError_t error = found && value ? set_attribute(found, attribute, value) : cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return engine_return(error);
}

CUDART_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, int attribute, void *value) {
  pthread_mutex_lock(&lock);
  pool *found = find(handle);
  cudaError_t error = found && value ? get_attribute(found, attribute, value) : cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return engine_return(error);
}

static cudaError_t known(cudaMemPool_t handle) {
  pthread_mutex_lock(&lock);
  pool *found = find(handle);
  pthread_mutex_unlock(&lock);
  return found ? cudaSuccess : cudaErrorInvalidValue;
}

CUDART_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep) { return engine_return(known(handle)); }

/* The one device always has access, and there is no other to give it to. */
CUDART_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc *list, size_t count) {
  cudaError_t error = known(handle);
  if (count && !list) error = cudaErrorInvalidValue;
  for (size_t i = 0; i < count && !error; i++)
    if (list[i].location.type != cudaMemLocationTypeDevice || list[i].location.id || list[i].flags != 3) error = cudaErrorInvalidDevice;
  return engine_return(error);
}

CUDART_API cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t handle, cudaMemLocation *location) {
  cudaError_t error = flags && location ? known(handle) : cudaErrorInvalidValue;
  if (!error) *flags = location->type == cudaMemLocationTypeDevice && !location->id ? 3 : 0;
  return engine_return(error);
}

/* ---- allocation ---- */

static cudaError_t allocate(void **out, size_t size, cudaMemPool_t handle, bool from_current, cudaStream_t stream) {
  engine_stream_info info;
  uint64_t address = 0;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_stream_describe(stream, &info);
  if (error) return error;
  pthread_mutex_lock(&lock);
  default_pool();
  pool *from = from_current ? current : find(handle);
  if (!from) error = cudaErrorInvalidValue;
  if (!error && size) error = engine_allocate(ENGINE_DEVICE, size, 0, "cudaMallocAsync", &address);
  if (!error) *out = (void *)(uintptr_t)address;
  if (!error && size) {
    piece made = {.address = address, .bytes = size, .owner = from};
    FF_PUSH(&pieces, made);
    from->used += size;
    if (from->used > from->used_high) from->used_high = from->used;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* Whatever frees it: the pool has it back. Addresses that are not from a pool are ignored. */
void cudart_pool_forget(const void *pointer) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < pieces.count; i++)
    if (pieces.items[i].address == (uint64_t)(uintptr_t)pointer) {
      pieces.items[i].owner->used -= pieces.items[i].bytes;
      pieces.items[i] = pieces.items[--pieces.count];
      break;
    }
  pthread_mutex_unlock(&lock);
}

void cudart_pool_reset(void) {
  pthread_mutex_lock(&lock);
  pieces.count = 0;
  for (size_t i = 0; i < pools.count; i++) pools.items[i]->used = pools.items[i]->used_high = 0;
  if (pools.count) current = pools.items[0];
  pthread_mutex_unlock(&lock);
}

CUDART_PAIR(cudaMallocAsync, _ptsz, (void **pointer, size_t size, cudaStream_t stream),
            allocate(pointer, size, NULL, true, engine_stream_handle(stream, own)))
CUDART_PAIR(cudaMallocFromPoolAsync, _ptsz, (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),
            allocate(pointer, size, pool, false, engine_stream_handle(stream, own)))
