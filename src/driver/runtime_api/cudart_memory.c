/* SPDX-License-Identifier: Apache-2.0 */
/* Memory management of the CUDA runtime (CUDA Runtime API, "Memory Management" and "Unified Addressing"), but copies.
 *
 * Zero sizes: cudaMalloc, cudaMallocHost, cudaHostAlloc, cudaMallocManaged and the pitched forms succeed and give NULL,
 * as NVIDIA's runtimes do (tests/programs/private_runtimes.c). Freeing NULL succeeds. A pointer given to the wrong kind
 * of free, or freed twice, is cudaErrorInvalidValue. */
#include <string.h>

#include "driver/runtime_api/cudart.h"

#define PITCH_UNIT 512u /* rows of pitched allocations start at multiples of this */

static cudaError_t allocate(void **out, engine_memory memory, uint64_t bytes, unsigned flags, const char *call) {
  if (!out) return cudaErrorInvalidValue;
  uint64_t address = 0;
  cudaError_t error = bytes ? engine_allocate(memory, bytes, flags, call, &address) : engine_start();
  if (!error) *out = (void *)(uintptr_t)address;
  return error;
}

static cudaError_t release(void *pointer, unsigned allowed) {
  if (!pointer) return engine_start();
  return engine_free((uint64_t)(uintptr_t)pointer, allowed);
}

CUDART_API cudaError_t cudaMalloc(void **pointer, size_t size) {
  return engine_return(allocate(pointer, ENGINE_DEVICE, size, 0, "cudaMalloc"));
}

CUDART_API cudaError_t cudaMallocHost(void **pointer, size_t size) {
  return engine_return(allocate(pointer, ENGINE_PINNED, size, cudaHostAllocDefault, "cudaMallocHost"));
}

CUDART_API cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
  const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (flags & ~known) return engine_return(cudaErrorInvalidValue);
  return engine_return(allocate(pointer, ENGINE_PINNED, size, flags, "cudaHostAlloc"));
}

CUDART_API cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return engine_return(cudaErrorInvalidValue);
  return engine_return(allocate(pointer, ENGINE_MANAGED, size, flags, "cudaMallocManaged"));
}

static cudaError_t allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t height, size_t depth,
                                    const char *call) {
  uint64_t row = (width + (uint64_t)PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT, bytes;
  if (!pointer || !pitch || row < width) return cudaErrorInvalidValue;
  if (__builtin_mul_overflow(row, (uint64_t)height, &bytes) || __builtin_mul_overflow(bytes, (uint64_t)depth, &bytes))
    return cudaErrorMemoryAllocation;
  cudaError_t error = allocate(pointer, ENGINE_DEVICE, bytes, 0, call);
  if (!error) *pitch = bytes ? row : 0;
  return error;
}

CUDART_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  return engine_return(allocate_pitched(pointer, pitch, width, height, 1, "cudaMallocPitch"));
}

CUDART_API cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
  if (!pointer) return engine_return(cudaErrorInvalidValue);
  cudaPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
  cudaError_t error =
      allocate_pitched(&made.ptr, &made.pitch, extent.width, extent.height, extent.depth, "cudaMalloc3D");
  if (!error) *pointer = made;
  return engine_return(error);
}

CUDART_API cudaError_t cudaFree(void *pointer) {
  return engine_return(release(pointer, 1u << ENGINE_DEVICE | 1u << ENGINE_MANAGED));
}

CUDART_API cudaError_t cudaFreeHost(void *pointer) { return engine_return(release(pointer, 1u << ENGINE_PINNED)); }

/* ---- host memory ---- */

CUDART_API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags) {
  const unsigned known =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (flags & ~known) return engine_return(cudaErrorInvalidValue);
  if (flags & cudaHostRegisterIoMemory) return engine_return(cudaErrorNotSupported);
  return engine_return(engine_host_register(pointer, size, flags));
}

CUDART_API cudaError_t cudaHostUnregister(void *pointer) { return engine_return(engine_host_unregister(pointer)); }

static bool host_memory(engine_memory memory) { return memory == ENGINE_PINNED || memory == ENGINE_REGISTERED; }

static cudaError_t device_pointer(void **device, void *host, unsigned flags) {
  if (!device || !host || flags) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (error) return error;
  if (!host_memory(engine_pointer_find((uint64_t)(uintptr_t)host).memory)) return cudaErrorInvalidValue;
  *device = host; /* unified addressing */
  return cudaSuccess;
}
CUDART_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  return engine_return(device_pointer(device, host, flags));
}

CUDART_API cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  cudaError_t error = flags && host ? engine_start() : cudaErrorInvalidValue;
  if (error) return engine_return(error);
  engine_pointer pointer = engine_pointer_find((uint64_t)(uintptr_t)host);
  if (!host_memory(pointer.memory)) return engine_return(cudaErrorInvalidValue);
  *flags = pointer.flags | cudaHostAllocMapped; /* with unified addressing all of it is mapped */
  return cudaSuccess;
}

/* ---- questions ---- */

static cudaError_t pointer_attributes(cudaPointerAttributes *out, const void *pointer) {
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (error) return error;
  void *address = (void *)(uintptr_t)pointer;
  engine_pointer found = engine_pointer_find((uint64_t)(uintptr_t)pointer);
  engine_memory memory = found.memory;
  memset(out, 0, sizeof *out);
  switch (memory) {
  case ENGINE_DEVICE: out->type = cudaMemoryTypeDevice; break;
  case ENGINE_MANAGED: out->type = cudaMemoryTypeManaged; break;
  case ENGINE_PINNED:
  case ENGINE_REGISTERED: out->type = cudaMemoryTypeHost; break;
  case ENGINE_PAGEABLE: out->type = cudaMemoryTypeUnregistered; break;
  }
  out->device = memory == ENGINE_PAGEABLE ? cudaInvalidDeviceId : found.device;
  bool known = memory != ENGINE_PAGEABLE || engine_machine()->system_memory;
  out->devicePointer = known ? address : NULL;
  out->hostPointer = known && memory != ENGINE_DEVICE ? address : NULL;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  return engine_return(pointer_attributes(attributes, pointer));
}

CUDART_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  uint64_t available, total;
  if (!free_bytes && !total_bytes) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_memory_info(-1, &available, &total);
  if (error) return engine_return(error);
  if (free_bytes) *free_bytes = available;
  if (total_bytes) *total_bytes = total;
  return cudaSuccess;
}

/* ---- symbols ---- */

static cudaError_t symbol_range(const void *symbol, uint64_t *address, uint64_t *bytes) {
  cudaError_t error = engine_start();
  if (error) return error;
  engine_variable *variable = cudart_variable(symbol);
  return variable ? engine_variable_address(variable, address, bytes) : cudaErrorInvalidSymbol;
}

CUDART_API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  uint64_t start, bytes;
  if (!address) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  if (error) return engine_return(error);
  engine_variable *variable = cudart_variable(symbol);
  error = variable ? engine_variable_expose(variable, &start, &bytes) : cudaErrorInvalidSymbol;
  if (!error) *address = (void *)(uintptr_t)start;
  return engine_return(error);
}

CUDART_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
  uint64_t start, bytes;
  if (!size) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = symbol_range(symbol, &start, &bytes);
  if (!error) *size = bytes;
  return engine_return(error);
}

/* ---- hints for managed memory ---- */

static cudaError_t prefetch(const void *pointer, size_t bytes, int device, cudaStream_t stream) {
  cudaError_t error = engine_start();
  if (error) return error;
  if (device != cudaCpuDeviceId && !cudart_is_device(device)) return cudaErrorInvalidDevice;
  if (!pointer) return cudaErrorInvalidValue;
  return engine_prefetch((uint64_t)(uintptr_t)pointer, bytes, device, stream);
}

static cudaError_t advise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
  /* else it is ignored */
  bool located = advice >= cudaMemAdviseSetPreferredLocation && advice != cudaMemAdviseUnsetPreferredLocation;
  cudaError_t error = engine_start();
  if (error) return error;
  if (located && device != cudaCpuDeviceId && !cudart_is_device(device)) return cudaErrorInvalidDevice;
  return engine_advise((uint64_t)(uintptr_t)pointer, bytes, (int)advice, device);
}

/* All host locations are the one CPU. */
static int device_of(cudaMemLocation location) {
  return location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;
}

static cudaError_t prefetch_to(const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                               cudaStream_t stream) {
  if (flags || location.type == cudaMemLocationTypeInvalid) return cudaErrorInvalidValue;
  return prefetch(pointer, bytes, device_of(location), stream);
}

#if CUDART_MAJOR >= 13
CUDART_PAIR(cudaMemPrefetchAsync, _ptsz,
            (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
            prefetch_to(pointer, bytes, location, flags, engine_stream_handle(stream, own)))
CUDART_API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                                     cudaMemLocation location) {
  return engine_return(advise(pointer, bytes, advice, device_of(location)));
}
#else
CUDART_PAIR(cudaMemPrefetchAsync, _ptsz, (const void *pointer, size_t bytes, int device, cudaStream_t stream),
            prefetch(pointer, bytes, device, engine_stream_handle(stream, own)))
CUDART_PAIR(cudaMemPrefetchAsync_v2, _ptsz,
            (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
            prefetch_to(pointer, bytes, location, flags, engine_stream_handle(stream, own)))
CUDART_API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
  return engine_return(advise(pointer, bytes, advice, device));
}
CUDART_API cudaError_t cudaMemAdvise_v2(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                                        cudaMemLocation location) {
  return engine_return(advise(pointer, bytes, advice, device_of(location)));
}
#endif
