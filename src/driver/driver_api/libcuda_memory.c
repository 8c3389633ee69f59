/* SPDX-License-Identifier: Apache-2.0 */
/* Device, host and managed memory, and what is known of an address (Driver API: "Memory Management", "Unified
 * Addressing", "Stream Ordered Memory Allocator"). Copies and sets are in libcuda_copy.c. */
#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_pool.h"
#include "driver/private_runtimes/private_runtimes.h"

#include <string.h>


#define PITCH_ALIGNMENT 512u

static CUresult allocate(engine_memory memory, size_t bytes, unsigned flags, const char *call, uint64_t *address) {
  if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_allocate(memory, bytes, flags, call, address));
}

static CUresult allocate_device(CUdeviceptr *pointer, size_t bytes, const char *call) {
  uint64_t address;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(allocate(ENGINE_DEVICE, bytes, 0, call, &address));
  *pointer = address;
  return CUDA_SUCCESS;
}

static CUresult allocate_host(void **pointer, size_t bytes, unsigned flags, const char *call) {
  uint64_t address;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(allocate(ENGINE_PINNED, bytes, flags, call, &address));
  *pointer = (void *)(uintptr_t)address;
  return CUDA_SUCCESS;
}

/* ---- allocating and freeing ---- */

LIBCUDA_CALL(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!free_bytes && !total_bytes) return CUDA_ERROR_INVALID_VALUE;
  uint64_t available, total;
  LIBCUDA_TRY(libcuda_result(engine_memory_info(-1, &available, &total)));
  if (free_bytes) *free_bytes = available;
  if (total_bytes) *total_bytes = total;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes)) {
  LIBCUDA_TRY(libcuda_enter());
  return allocate_device(pointer, bytes, private_call_name("cuMemAlloc", "cudaMalloc"));
}

LIBCUDA_CALL(cuMemAllocPitch_v2,
             (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned element)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  if (width > SIZE_MAX - PITCH_ALIGNMENT) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t row = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT, bytes;
  if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  LIBCUDA_TRY(allocate_device(pointer, bytes, private_call_name("cuMemAllocPitch", "cudaMallocPitch")));
  *pitch = row;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemFree_v2, (CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!pointer) return CUDA_SUCCESS;
  return libcuda_result(engine_free(pointer, 1u << ENGINE_DEVICE | 1u << ENGINE_MANAGED));
}

LIBCUDA_CALL(cuMemAllocHost_v2, (void **pointer, size_t bytes)) {
  LIBCUDA_TRY(libcuda_enter());
  return allocate_host(pointer, bytes, 0, private_call_name("cuMemAllocHost", "cudaMallocHost"));
}

LIBCUDA_CALL(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  return allocate_host(pointer, bytes, flags, private_call_name("cuMemHostAlloc", "cudaHostAlloc"));
}

LIBCUDA_CALL(cuMemFreeHost, (void *pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!pointer) return CUDA_SUCCESS;
  return libcuda_result(engine_free((uintptr_t)pointer, 1u << ENGINE_PINNED));
}

LIBCUDA_CALL(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  uint64_t address;
  if (!pointer || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(
      allocate(ENGINE_MANAGED, bytes, flags, private_call_name("cuMemAllocManaged", "cudaMallocManaged"), &address));
  *pointer = address;
  return CUDA_SUCCESS;
}

static CUresult host_register(void *host, size_t bytes, unsigned flags) {
  LIBCUDA_TRY(libcuda_enter());
  if (!host || !bytes || flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
  if (flags & cudaHostRegisterIoMemory) return CUDA_ERROR_NOT_SUPPORTED;
  return libcuda_result(engine_host_register(host, bytes, flags));
}
LIBCUDA_CALL(cuMemHostRegister_v2, (void *host, size_t bytes, unsigned flags)) {
  return host_register(host, bytes, flags);
}
LIBCUDA_CALL(cuMemHostRegister, (void *host, size_t bytes, unsigned flags)) {
  return host_register(host, bytes, flags);
}

LIBCUDA_CALL(cuMemHostUnregister, (void *host)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_host_unregister(host));
}

LIBCUDA_CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr * pointer, void *host, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  engine_memory memory = engine_pointer_find((uintptr_t)host).memory;
  if (!pointer || flags || (memory != ENGINE_PINNED && memory != ENGINE_REGISTERED)) return CUDA_ERROR_INVALID_VALUE;
  *pointer = (uintptr_t)host;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemHostGetFlags, (unsigned *flags, void *host)) {
  LIBCUDA_TRY(libcuda_enter());
  engine_pointer found = engine_pointer_find((uintptr_t)host);
  if (!flags || (found.memory != ENGINE_PINNED && found.memory != ENGINE_REGISTERED)) return CUDA_ERROR_INVALID_VALUE;
  *flags = found.flags | cudaHostAllocMapped; /* with unified addressing all of it is mapped */
  return CUDA_SUCCESS;
}

/* ---- addresses ---- */

LIBCUDA_CALL(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  engine_pointer found = engine_pointer_find(pointer);
  if (found.memory == ENGINE_PAGEABLE) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = found.address;
  if (bytes) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

enum { /* CUpointer_attribute */
       POINTER_CONTEXT = 1,
       POINTER_MEMORY_TYPE,
       POINTER_DEVICE_POINTER,
       POINTER_HOST_POINTER,
       POINTER_P2P_TOKENS,
       POINTER_SYNC_MEMOPS,
       POINTER_BUFFER_ID,
       POINTER_IS_MANAGED,
       POINTER_DEVICE_ORDINAL,
       POINTER_IPC_CAPABLE,
       POINTER_RANGE_START,
       POINTER_RANGE_SIZE,
       POINTER_MAPPED,
       POINTER_HANDLE_TYPES,
       POINTER_RDMA_CAPABLE,
       POINTER_ACCESS_FLAGS,
       POINTER_MEMPOOL,
};

/* A value of the attribute's own size. CUDA_ERROR_INVALID_VALUE: the attribute does not apply to this memory. */
typedef struct pointer_value {
  uint64_t bits;
  size_t size;
} pointer_value;

/* Of addresses without memory only where they are is known. */
static CUresult reserved_attribute(int attribute, const engine_pointer *range, pointer_value *out) {
  switch (attribute) {
  case POINTER_RANGE_START: *out = (pointer_value){range->address, 8}; return CUDA_SUCCESS;
  case POINTER_RANGE_SIZE: *out = (pointer_value){range->bytes, 8}; return CUDA_SUCCESS;
  case POINTER_MAPPED: *out = (pointer_value){0, 4}; return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult pool_of(CUdeviceptr pointer, pointer_value *out) {
  engine_pool *pool;
  LIBCUDA_TRY(libcuda_result(engine_pool_of(pointer, &pool)));
  *out = (pointer_value){(uintptr_t)pool, 8};
  return CUDA_SUCCESS;
}

static CUresult pointer_attribute(int attribute, CUdeviceptr pointer, pointer_value *out) {
  engine_pointer found = engine_pointer_find(pointer);
  bool host = found.memory == ENGINE_PINNED || found.memory == ENGINE_REGISTERED,
       managed = found.memory == ENGINE_MANAGED;
  if (found.range == EXEC_RESERVED) return reserved_attribute(attribute, &found, out);
  if (found.memory == ENGINE_PAGEABLE) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case POINTER_CONTEXT: /* memory of a pool belongs to none (Programming Guide, "Pointer Attributes") */
    LIBCUDA_TRY(pool_of(pointer, out));
    *out = (pointer_value){out->bits ? 0 : (uintptr_t)libcuda_context_on(found.device), 8};
    return CUDA_SUCCESS;
  case POINTER_MEMORY_TYPE:
    *out = (pointer_value){host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, 4};
    return CUDA_SUCCESS;
  case POINTER_DEVICE_POINTER: *out = (pointer_value){pointer, 8}; return CUDA_SUCCESS;
  case POINTER_HOST_POINTER:
    if (!host && !managed) return CUDA_ERROR_INVALID_VALUE;
    *out = (pointer_value){pointer, 8};
    return CUDA_SUCCESS;
  case POINTER_SYNC_MEMOPS: *out = (pointer_value){0, 4}; return CUDA_SUCCESS;
  case POINTER_BUFFER_ID: *out = (pointer_value){found.id, 8}; return CUDA_SUCCESS;
  case POINTER_IS_MANAGED: *out = (pointer_value){managed, 4}; return CUDA_SUCCESS;
  case POINTER_DEVICE_ORDINAL: *out = (pointer_value){(uint64_t)found.device, 4}; return CUDA_SUCCESS;
  case POINTER_RANGE_START: *out = (pointer_value){found.address, 8}; return CUDA_SUCCESS;
  case POINTER_RANGE_SIZE: *out = (pointer_value){found.bytes, 8}; return CUDA_SUCCESS;
  case POINTER_MAPPED: *out = (pointer_value){1, 4}; return CUDA_SUCCESS;
  case POINTER_IPC_CAPABLE: *out = (pointer_value){engine_ipc_capable(pointer), 4}; return CUDA_SUCCESS;
  case POINTER_RDMA_CAPABLE: *out = (pointer_value){0, 4}; return CUDA_SUCCESS;
  case POINTER_HANDLE_TYPES: *out = (pointer_value){0, 8}; return CUDA_SUCCESS;
  case POINTER_ACCESS_FLAGS: *out = (pointer_value){found.writable ? 3 : found.readable, 4}; return CUDA_SUCCESS;
  case POINTER_MEMPOOL: return pool_of(pointer, out);
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Addresses mean the same in all contexts, so a thread needs none to ask about them. */
static CUresult start_engine(void) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_start());
}

LIBCUDA_CALL(cuPointerGetAttribute, (void *data, int attribute, CUdeviceptr pointer)) {
  LIBCUDA_TRY(start_engine());
  pointer_value value;
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(pointer_attribute(attribute, pointer, &value));
  memcpy(data, &value.bits, value.size);
  return CUDA_SUCCESS;
}

/* What an attribute is that does not apply: no device, zero, and the pointer itself where kernels may use memory of the
 * program's own. */
static uint64_t absent_attribute(int attribute, CUdeviceptr pointer) {
  bool anywhere = engine_machine()->system_memory && engine_pointer_find(pointer).memory == ENGINE_PAGEABLE;
  if (attribute == POINTER_DEVICE_ORDINAL) return (uint32_t)cudaInvalidDeviceId;
  return anywhere && (attribute == POINTER_DEVICE_POINTER || attribute == POINTER_HOST_POINTER) ? pointer : 0;
}

/* The same of several; what does not apply is zero instead of an error. */
LIBCUDA_CALL(cuPointerGetAttributes, (unsigned count, const int *attributes, void **data, CUdeviceptr pointer)) {
  LIBCUDA_TRY(start_engine());
  if (!count || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    pointer_value value = {0, attributes[i] == POINTER_DEVICE_ORDINAL || attributes[i] == POINTER_MEMORY_TYPE ||
                                      attributes[i] == POINTER_IS_MANAGED || attributes[i] == POINTER_MAPPED ||
                                      attributes[i] == POINTER_SYNC_MEMOPS
                                  ? 4
                                  : 8};
    if (pointer_attribute(attributes[i], pointer, &value)) value.bits = absent_attribute(attributes[i], pointer);
    if (!data[i]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(data[i], &value.bits, value.size);
  }
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuPointerSetAttribute, (const void *value, int attribute, CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  bool known = engine_pointer_find(pointer).memory != ENGINE_PAGEABLE;
  return value && attribute == POINTER_SYNC_MEMOPS && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- managed memory ---- */

static int location_device(CUmemLocation location) {
  return location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;
}

static CUresult check_location(int device) { return device == cudaCpuDeviceId ? CUDA_SUCCESS : libcuda_device(device); }

static CUresult advise(CUdeviceptr pointer, size_t bytes, int advice, int device) {
  LIBCUDA_TRY(libcuda_enter());
  bool located = advice >= cudaMemAdviseSetPreferredLocation && advice != cudaMemAdviseUnsetPreferredLocation;
  if (located) LIBCUDA_TRY(check_location(device));
  return libcuda_result(engine_advise(pointer, bytes, advice, device));
}
LIBCUDA_CALL(cuMemAdvise, (CUdeviceptr pointer, size_t bytes, int advice, CUdevice device)) {
  return advise(pointer, bytes, advice, device);
}
LIBCUDA_CALL(cuMemAdvise_v2, (CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location)) {
  return advise(pointer, bytes, advice, location_device(location));
}

static CUresult prefetch(CUdeviceptr pointer, size_t bytes, int device, CUstream stream, bool own) {
  LIBCUDA_TRY(check_location(device));
  return libcuda_result(engine_prefetch(pointer, bytes, device, engine_stream_handle(stream, own)));
}
LIBCUDA_PAIR(cuMemPrefetchAsync, _ptsz, (CUdeviceptr pointer, size_t bytes, CUdevice device, CUstream stream),
             prefetch(pointer, bytes, device, stream, own))
LIBCUDA_PAIR(cuMemPrefetchAsync_v2, _ptsz,
             (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
             flags || !location.type ? CUDA_ERROR_INVALID_VALUE
                                     : prefetch(pointer, bytes, location_device(location), stream, own))
