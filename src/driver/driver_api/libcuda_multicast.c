/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects (Driver API: "Multicast Object Management"). None of these calls needs a current context. */
#include "driver/driver_api/libcuda.h"

typedef struct CUmulticastObjectProp {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types; /* to share it with: CUmemAllocationHandleType */
  unsigned long long flags;        /* must be zero */
} CUmulticastObjectProp;
_Static_assert(sizeof(CUmulticastObjectProp) == 32, "as in the driver's binary interface");

enum { HANDLE_FILE_DESCRIPTOR = 1, GRANULARITY_MINIMUM = 0, GRANULARITY_RECOMMENDED = 1 };

static CUresult check_properties(const CUmulticastObjectProp *properties) {
  if (!properties || properties->flags || !properties->devices) return CUDA_ERROR_INVALID_VALUE;
  return properties->handle_types & ~(unsigned long long)HANDLE_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED
                                                                                : CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMulticastGetGranularity, (size_t * granularity, const CUmulticastObjectProp *properties, int option)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!granularity || (option != GRANULARITY_MINIMUM && option != GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_properties(properties));
  *granularity = ENGINE_GRANULARITY;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMulticastCreate, (unsigned long long *handle, const CUmulticastObjectProp *properties)) {
  LIBCUDA_TRY(libcuda_ready());
  uint64_t made;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_properties(properties));
  LIBCUDA_TRY(libcuda_result(
      engine_multicast_create(properties->devices, properties->bytes, properties->handle_types != 0, &made)));
  *handle = made;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuMulticastAddDevice, (unsigned long long handle, CUdevice device)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_multicast_add(handle, device));
}

LIBCUDA_CALL(cuMulticastBindMem, (unsigned long long handle, size_t offset, unsigned long long memory, size_t from,
                                  size_t bytes, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_multicast_bind(handle, offset, memory, from, bytes));
}

LIBCUDA_CALL(cuMulticastBindAddr,
             (unsigned long long handle, size_t offset, CUdeviceptr address, size_t bytes, unsigned long long flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_multicast_bind_address(handle, offset, address, bytes));
}

/* The forms of 13.1 also name the device, which is that of the memory in the first forms and must be here. */
LIBCUDA_CALL(cuMulticastBindMem_v2, (unsigned long long handle, CUdevice device, size_t offset,
                                     unsigned long long memory, size_t from, size_t bytes, unsigned long long flags)) {
  int owner;
  LIBCUDA_TRY(libcuda_device(device));
  if (!engine_memory_owner(memory, &owner) && owner != device) return CUDA_ERROR_INVALID_DEVICE;
  return cuMulticastBindMem(handle, offset, memory, from, bytes, flags);
}

LIBCUDA_CALL(cuMulticastBindAddr_v2, (unsigned long long handle, CUdevice device, size_t offset, CUdeviceptr address,
                                      size_t bytes, unsigned long long flags)) {
  engine_pointer found = engine_pointer_find(address);
  LIBCUDA_TRY(libcuda_device(device));
  if (found.memory == ENGINE_DEVICE && found.device != device) return CUDA_ERROR_INVALID_DEVICE;
  return cuMulticastBindAddr(handle, offset, address, bytes, flags);
}

LIBCUDA_CALL(cuMulticastUnbind, (unsigned long long handle, CUdevice device, size_t offset, size_t bytes)) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_multicast_unbind(handle, device, offset, bytes));
}
