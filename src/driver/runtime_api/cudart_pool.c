/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of the CUDA runtime (CUDA Runtime API, "Stream Ordered Memory Allocator"), thin on the engine's. */
#include <string.h>

#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_pool.h"
#include "driver/graph_abi.h"

static engine_pool *pool_of(cudaMemPool_t handle) { return (engine_pool *)handle; }

static cudaMemLocation on_device(int device) { return (cudaMemLocation){cudaMemLocationTypeDevice, device}; }

CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) {
  return engine_return(engine_pool_default(ENGINE_POOL_PINNED, on_device(device), (engine_pool **)out));
}
CUDART_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device) {
  return engine_return(engine_pool_current(ENGINE_POOL_PINNED, on_device(device), (engine_pool **)out));
}
CUDART_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return engine_return(engine_pool_set_current(ENGINE_POOL_PINNED, on_device(device), pool_of(pool)));
}

enum { DECOMPRESS = 2 }; /* cudaMemPoolCreateUsageHwDecompress */

static cudaError_t create(cudaMemPool_t *out, const cudaMemPoolProps *properties) {
  if (!properties) return cudaErrorInvalidValue;
  return engine_pool_create((engine_pool_type)properties->allocType, properties->location, properties->maxSize,
                            properties->handleTypes, properties->usage & DECOMPRESS, (engine_pool **)out);
}
CUDART_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const void *properties) {
  return engine_return(create(out, properties));
}

CUDART_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return engine_return(engine_pool_destroy(pool_of(pool)));
}
CUDART_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  return engine_return(engine_pool_set(pool_of(pool), attribute, value));
}
CUDART_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  return engine_return(engine_pool_get(pool_of(pool), attribute, value));
}
CUDART_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return engine_return(engine_pool_trim(pool_of(pool), keep));
}

static cudaError_t set_access(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count) {
  if (count && !list) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count && !error; i++)
    error = engine_pool_set_access(pool_of(pool), list[i].location, list[i].flags);
  return error;
}
CUDART_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count) {
  return engine_return(set_access(pool, list, count));
}

CUDART_API cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t pool, cudaMemLocation *location) {
  return engine_return(location ? engine_pool_access(pool_of(pool), *location, flags) : cudaErrorInvalidValue);
}

/* ---- other processes ---- */

static bool by_descriptor(int type, unsigned flags) { return type == ENGINE_POOL_FILE_DESCRIPTOR && !flags; }

CUDART_API cudaError_t cudaMemPoolExportToShareableHandle(void *shareable, cudaMemPool_t pool, int type,
                                                          unsigned flags) {
  return engine_return(by_descriptor(type, flags) ? engine_pool_export(pool_of(pool), shareable)
                                                  : cudaErrorInvalidValue);
}
/* `shareable` is the descriptor itself. */
CUDART_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *shareable, int type,
                                                            unsigned flags) {
  return engine_return(by_descriptor(type, flags) ? engine_pool_import((int)(intptr_t)shareable, (engine_pool **)pool)
                                                  : cudaErrorInvalidValue);
}
/* `data` is a cudaMemPoolPtrExportData, ENGINE_IPC_HANDLE_BYTES. */
CUDART_API cudaError_t cudaMemPoolExportPointer(void *data, void *pointer) {
  return engine_return(engine_pool_export_pointer((uint64_t)(uintptr_t)pointer, data));
}
static cudaError_t import_pointer(void **pointer, cudaMemPool_t pool, const void *data) {
  uint64_t address;
  if (!pointer) return cudaErrorInvalidValue;
  cudaError_t error = engine_pool_import_pointer(pool_of(pool), data, &address);
  if (!error) *pointer = (void *)(uintptr_t)address;
  return error;
}
CUDART_API cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool, void *data) {
  return engine_return(import_pointer(pointer, pool, data));
}

/* ---- allocating ---- */

static cudaError_t allocate(void **out, size_t size, engine_pool *pool, cudaStream_t stream, const char *call) {
  uint64_t address;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_pool_allocate(pool, size, stream, call, &address);
  if (!error) *out = (void *)(uintptr_t)address;
  return error;
}
CUDART_PAIR(cudaMallocAsync, _ptsz, (void **pointer, size_t size, cudaStream_t stream),
            allocate(pointer, size, NULL, engine_stream_handle(stream, own), "cudaMallocAsync"))
CUDART_PAIR(cudaMallocFromPoolAsync, _ptsz, (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream),
            pool ? allocate(pointer, size, pool_of(pool), engine_stream_handle(stream, own), "cudaMallocFromPoolAsync")
                 : cudaErrorInvalidValue)
CUDART_PAIR(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream),
            engine_pool_free((uint64_t)(uintptr_t)pointer, engine_stream_handle(stream, own)))

/* ---- CUDA 13: pools by location and kind of memory ---- */

#if CUDART_MAJOR >= 13
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type);
CUDART_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type) {
  return engine_return(location ? engine_pool_default((engine_pool_type)type, *location, (engine_pool **)out)
                                : cudaErrorInvalidValue);
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type);
CUDART_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type) {
  return engine_return(location ? engine_pool_current((engine_pool_type)type, *location, (engine_pool **)out)
                                : cudaErrorInvalidValue);
}
cudaError_t cudaMemSetMemPool(cudaMemLocation *location, int type, cudaMemPool_t pool);
CUDART_API cudaError_t cudaMemSetMemPool(cudaMemLocation *location, int type, cudaMemPool_t pool) {
  return engine_return(location ? engine_pool_set_current((engine_pool_type)type, *location, pool_of(pool))
                                : cudaErrorInvalidValue);
}
#endif
