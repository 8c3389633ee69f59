/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management (Driver API: "Virtual Memory Management"). Memory is the device's and pinned; to have it on
 * the host is not supported. Other processes can have it by a file descriptor, and by no other handle. None of these
 * calls needs a current context. */
#include "driver/driver_api/libcuda.h"

#include <string.h>

typedef struct CUmemAllocationProp {
  int type;         /* CUmemAllocationType: 1, pinned, is the only one */
  int handle_types; /* to share it with */
  CUmemLocation location;
  void *security; /* Windows */
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} CUmemAllocationProp;
_Static_assert(sizeof(CUmemAllocationProp) == 32, "as in the driver's binary interface");

typedef struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
} CUmemAccessDesc;
_Static_assert(sizeof(CUmemAccessDesc) == 12, "as in the driver's binary interface");

enum { HANDLE_NONE = 0, HANDLE_FILE_DESCRIPTOR = 1 }; /* CUmemAllocationHandleType */
enum { ALLOCATION_PINNED = 1, GRANULARITY_MINIMUM = 0, GRANULARITY_RECOMMENDED = 1 };

static bool is_host(CUmemLocation location) {
  return location.type >= cudaMemLocationTypeHost && location.type <= cudaMemLocationTypeHostNumaCurrent;
}

static CUresult check_location(CUmemLocation location) {
  if (location.type == cudaMemLocationTypeDevice) return libcuda_device(location.id);
  return is_host(location) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_properties(const CUmemAllocationProp *properties) {
  if (!properties || properties->type != ALLOCATION_PINNED) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_location(properties->location));
  return properties->handle_types & ~HANDLE_FILE_DESCRIPTOR || properties->flags.compression ? CUDA_ERROR_NOT_SUPPORTED
                                                                                             : CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp *properties, int option)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!granularity || !properties || (option != GRANULARITY_MINIMUM && option != GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  /* NVIDIA's driver does not look at the properties either: cuMemCreate refuses what is not there */
  *granularity = ENGINE_GRANULARITY;
  return CUDA_SUCCESS;
}

/* ---- addresses ---- */

LIBCUDA_CALL(cuMemAddressReserve,
             (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t address;
  if (!pointer || flags) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_reserve(bytes, alignment, wanted, &address)));
  *pointer = address;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_unreserve(pointer, bytes));
}

/* ---- memory ---- */

LIBCUDA_CALL(cuMemCreate, (unsigned long long *handle, size_t bytes, const CUmemAllocationProp *properties,
                           unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t made;
  if (!handle || flags) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_properties(properties));
  LIBCUDA_TRY(libcuda_result(engine_memory_create(properties->location.id, bytes, properties, sizeof *properties,
                                                  properties->handle_types != HANDLE_NONE, &made)));
  *handle = made;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemRelease, (unsigned long long handle)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_memory_release(handle));
}

LIBCUDA_CALL(cuMemRetainAllocationHandle, (unsigned long long *handle, void *address)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t found;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_memory_retain((uintptr_t)address, &found)));
  *handle = found;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * properties, unsigned long long handle)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!properties) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_memory_note(handle, properties, sizeof *properties));
}

/* ---- other processes ---- */

LIBCUDA_CALL(cuMemExportToShareableHandle,
             (void *shareable, unsigned long long handle, int type, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!shareable || flags) return CUDA_ERROR_INVALID_VALUE;
  if (type != HANDLE_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return libcuda_result(engine_memory_export(handle, shareable));
}

/* `shareable` is the descriptor itself. */
LIBCUDA_CALL(cuMemImportFromShareableHandle, (unsigned long long *handle, void *shareable, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t made;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (type != HANDLE_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  LIBCUDA_TRY(libcuda_result(engine_memory_import((int)(intptr_t)shareable, &made)));
  *handle = made;
  return CUDA_SUCCESS;
}

/* ---- mappings ---- */

LIBCUDA_CALL(cuMemMap,
             (CUdeviceptr pointer, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (offset || flags) return CUDA_ERROR_INVALID_VALUE; /* the manual: both must be zero so far */
  return libcuda_result(engine_map(pointer, bytes, handle));
}

LIBCUDA_CALL(cuMemUnmap, (CUdeviceptr pointer, size_t bytes)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_unmap(pointer, bytes));
}

LIBCUDA_CALL(cuMemSetAccess, (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!access || !count) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    LIBCUDA_TRY(check_location(access[i].location));
    if (access[i].flags != ENGINE_ACCESS_NONE && access[i].flags != ENGINE_ACCESS_READ &&
        access[i].flags != ENGINE_ACCESS_READ_WRITE)
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; i++)
    LIBCUDA_TRY(libcuda_result(engine_set_access(access[i].location.id, pointer, bytes, (unsigned)access[i].flags)));
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_ready());
  unsigned access;
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_location(*location));
  LIBCUDA_TRY(libcuda_result(engine_get_access(location->id, pointer, &access)));
  *flags = access;
  return CUDA_SUCCESS;
}
