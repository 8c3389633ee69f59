/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools and stream-ordered allocation (Driver API: "Stream Ordered Memory Allocator"), thin on the engine's. */
#include "driver/engine/engine_pool.h"
#include "driver/graph_abi.h"
#include "driver/driver_api/libcuda.h"
#include "driver/private_runtimes/private_runtimes.h"

typedef engine_pool *CUmemoryPool;

static cudaMemLocation on_device(CUdevice device) { return (cudaMemLocation){cudaMemLocationTypeDevice, device}; }

LIBCUDA_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_pool_default(ENGINE_POOL_PINNED, on_device(device), pool));
}
LIBCUDA_CALL(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_current(ENGINE_POOL_PINNED, on_device(device), pool));
}
LIBCUDA_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_set_current(ENGINE_POOL_PINNED, on_device(device), pool));
}

/* CUDA 13: by location and type of memory */
LIBCUDA_CALL(cuMemGetDefaultMemPool, (CUmemoryPool * pool, CUmemLocation *location, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  return location ? libcuda_result(engine_pool_default((engine_pool_type)type, *location, pool))
                  : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation *location, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  return location ? libcuda_result(engine_pool_current((engine_pool_type)type, *location, pool))
                  : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuMemSetMemPool, (CUmemLocation * location, int type, CUmemoryPool pool)) {
  LIBCUDA_TRY(libcuda_ready());
  return location ? libcuda_result(engine_pool_set_current((engine_pool_type)type, *location, pool))
                  : CUDA_ERROR_INVALID_VALUE;
}

enum { CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS = 2 };

LIBCUDA_CALL(cuMemPoolCreate, (CUmemoryPool * pool, const cudaMemPoolProps *properties)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!properties) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_pool_create((engine_pool_type)properties->allocType, properties->location,
                                           properties->maxSize, properties->handleTypes,
                                           properties->usage & CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS, pool));
}
LIBCUDA_CALL(cuMemPoolDestroy, (CUmemoryPool pool)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_destroy(pool));
}
LIBCUDA_CALL(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_trim(pool, keep));
}
LIBCUDA_CALL(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void *value)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_set(pool, attribute, value));
}
LIBCUDA_CALL(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *value)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_get(pool, attribute, value));
}
LIBCUDA_CALL(cuMemPoolSetAccess, (CUmemoryPool pool, const cudaMemAccessDesc *list, size_t count)) {
  LIBCUDA_TRY(libcuda_ready());
  if (count && !list) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    LIBCUDA_TRY(libcuda_result(engine_pool_set_access(pool, list[i].location, list[i].flags)));
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuMemPoolGetAccess, (int *flags, CUmemoryPool pool, CUmemLocation *location)) {
  LIBCUDA_TRY(libcuda_ready());
  return location ? libcuda_result(engine_pool_access(pool, *location, flags)) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- other processes ---- */

LIBCUDA_CALL(cuMemPoolExportToShareableHandle,
             (void *shareable, CUmemoryPool pool, int type, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (type != ENGINE_POOL_FILE_DESCRIPTOR || flags) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_pool_export(pool, shareable));
}
/* `shareable` is the descriptor itself. */
LIBCUDA_CALL(cuMemPoolImportFromShareableHandle,
             (CUmemoryPool * pool, void *shareable, int type, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (type != ENGINE_POOL_FILE_DESCRIPTOR || flags) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_pool_import((int)(intptr_t)shareable, pool));
}
/* `data` is a CUmemPoolPtrExportData, ENGINE_IPC_HANDLE_BYTES. */
LIBCUDA_CALL(cuMemPoolExportPointer, (void *data, CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_pool_export_pointer(pointer, data));
}
LIBCUDA_CALL(cuMemPoolImportPointer, (CUdeviceptr * pointer, CUmemoryPool pool, const void *data)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t address;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result_from("cuMemPoolImportPointer", engine_pool_import_pointer(pool, data, &address)));
  *pointer = address;
  return CUDA_SUCCESS;
}

/* ---- allocating ---- */

/* No bytes are NULL, and NULL is freed: NVIDIA's runtimes hand on both, which succeed. */
static CUresult allocate(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream, const char *call) {
  uint64_t address;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_pool_allocate(pool, bytes, stream, call, &address)));
  *out = address;
  return CUDA_SUCCESS;
}
LIBCUDA_STREAM_PAIR(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
                    allocate(address, bytes, NULL, engine_stream_handle(stream, own),
                             private_call_name("cuMemAllocAsync", "cudaMallocAsync")))
LIBCUDA_STREAM_PAIR(cuMemAllocFromPoolAsync, _ptsz,
                    (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
                    pool ? allocate(address, bytes, pool, engine_stream_handle(stream, own),
                                    private_call_name("cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"))
                         : CUDA_ERROR_INVALID_VALUE)
LIBCUDA_STREAM_PAIR(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
                    libcuda_result(engine_pool_free(address, engine_stream_handle(stream, own))))
