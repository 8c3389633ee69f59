/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that put many copies or prefetches at once (CUDA Runtime API, cudaMemcpyBatchAsync, cudaMemPrefetchBatchAsync):
 * one operation each. Their order is not promised to programs; here it is the list's. From CUDA 13 on without an index
 * that tells which one failed. */
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_graph.h"
#include "driver/runtime_api/cudart.h"

#if CUDART_MAJOR >= 12
typedef struct copy_kinds {
  const cudaMemcpyAttributes *attributes;
  const size_t *indices;
  size_t count;
} copy_kinds;

static cudaError_t copy_all(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                            copy_kinds kinds, cudaStream_t stream, size_t *failed) {
  const engine_batch batch = {.to = (const uint64_t *)to,
                              .from = (const uint64_t *)from,
                              .sizes = sizes,
                              .indices = kinds.indices,
                              .attributes = kinds.attributes,
                              .count = count,
                              .kinds = kinds.count};
  return engine_copies_run(&batch, stream, failed);
}
#endif

#if CUDART_MAJOR == 12
#define FAILED size_t *failed,
#define FAILED_AT failed
#else
#define FAILED
#define FAILED_AT NULL
#endif

#if CUDART_MAJOR >= 12
#define COPY_PARAMETERS                                                                                          \
  void *const *to, const void *const *from, const size_t *sizes, size_t count, cudaMemcpyAttributes *attributes, \
      size_t *indices, size_t kinds, FAILED cudaStream_t stream
CUDART_DECLARE(cudaMemcpyBatchAsync, _ptsz, (COPY_PARAMETERS))
CUDART_PAIR(cudaMemcpyBatchAsync, _ptsz, (COPY_PARAMETERS), /* the legacy stream takes no batch */
            stream || own ? copy_all(to, from, sizes, count, (copy_kinds){attributes, indices, kinds},
                                     engine_stream_handle(stream, own), FAILED_AT)
                          : cudaErrorInvalidValue)

#define BOX_PARAMETERS size_t count, cudaMemcpy3DBatchOp *list, FAILED unsigned long long flags, cudaStream_t stream
CUDART_DECLARE(cudaMemcpy3DBatchAsync, _ptsz, (BOX_PARAMETERS))
CUDART_PAIR(cudaMemcpy3DBatchAsync, _ptsz, (BOX_PARAMETERS),
            engine_batch_run(list, count, flags, engine_stream_handle(stream, own), FAILED_AT))
#endif

#if CUDART_MAJOR >= 13
#define ONE_PARAMETERS void *to, const void *from, size_t bytes, cudaMemcpyAttributes *attributes, cudaStream_t stream
static cudaError_t copy_one(void *to, const void *from, size_t bytes, const cudaMemcpyAttributes *attributes,
                            cudaStream_t stream) {
  if (!attributes || !copy_order_valid(attributes->srcAccessOrder)) return cudaErrorInvalidValue;
  engine_copy copy = {.to = (uint64_t)(uintptr_t)to,
                      .from = (uint64_t)(uintptr_t)from,
                      .width = bytes,
                      .height = 1,
                      .depth = 1,
                      .stream = stream,
                      .async = true};
  return engine_copy_run(&copy);
}
CUDART_DECLARE(cudaMemcpyWithAttributesAsync, _ptsz, (ONE_PARAMETERS))
CUDART_PAIR(cudaMemcpyWithAttributesAsync, _ptsz, (ONE_PARAMETERS),
            stream || own ? copy_one(to, from, bytes, attributes, engine_stream_handle(stream, own))
                          : cudaErrorInvalidValue)
CUDART_DECLARE(cudaMemcpy3DWithAttributesAsync, _ptsz,
               (cudaMemcpy3DBatchOp * box, unsigned long long flags, cudaStream_t stream))
CUDART_PAIR(cudaMemcpy3DWithAttributesAsync, _ptsz,
            (cudaMemcpy3DBatchOp * box, unsigned long long flags, cudaStream_t stream),
            engine_batch_run(box, 1, flags, engine_stream_handle(stream, own), NULL))

static int device_of(const cudaMemLocation *location) {
  return location->type == cudaMemLocationTypeDevice ? location->id : cudaCpuDeviceId;
}

static cudaError_t prefetch_all(void **pointers, const size_t *sizes, size_t count, const cudaMemLocation *places,
                                const size_t *indices, size_t place_count, unsigned long long flags,
                                cudaStream_t stream) {
  if (!count || !pointers || !sizes || !places || !indices || !place_count || place_count > count || flags ||
      indices[0])
    return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0, place = 0; !error && i < count; i++) {
    if (place + 1 < place_count && indices[place + 1] == i) place++; /* indices: the first range of each place */
    bool device = places[place].type == cudaMemLocationTypeDevice;
    if (device && !cudart_is_device(places[place].id)) return cudaErrorInvalidDevice;
    error = engine_prefetch((uint64_t)(uintptr_t)pointers[i], sizes[i], device_of(&places[place]), stream);
  }
  return error;
}
#define PREFETCH_PARAMETERS                                                                                   \
  void **pointers, size_t *sizes, size_t count, cudaMemLocation *places, size_t *indices, size_t place_count, \
      unsigned long long flags, cudaStream_t stream
CUDART_DECLARE(cudaMemPrefetchBatchAsync, _ptsz, (PREFETCH_PARAMETERS))
CUDART_PAIR(cudaMemPrefetchBatchAsync, _ptsz, (PREFETCH_PARAMETERS),
            prefetch_all(pointers, sizes, count, places, indices, place_count, flags,
                         engine_stream_handle(stream, own)))

/* What is discarded has any contents from then on: what it had will do. */
static cudaError_t discard_all(void **pointers, const size_t *sizes, size_t count, unsigned long long flags) {
  if (!count || !pointers || !sizes || flags) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++) {
    uint64_t address = (uint64_t)(uintptr_t)pointers[i];
    engine_pointer found = engine_pointer_find(address);
    if (found.memory != ENGINE_MANAGED || !sizes[i] || sizes[i] > found.bytes - (address - found.address))
      return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}
#define DISCARD_PARAMETERS void **pointers, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream
CUDART_DECLARE(cudaMemDiscardBatchAsync, _ptsz, (DISCARD_PARAMETERS))
CUDART_PAIR(cudaMemDiscardBatchAsync, _ptsz, (DISCARD_PARAMETERS), discard_all(pointers, sizes, count, flags))

static cudaError_t discard_and_prefetch(void **pointers, const size_t *sizes, size_t count,
                                        const cudaMemLocation *places, const size_t *indices, size_t place_count,
                                        unsigned long long flags, cudaStream_t stream) {
  cudaError_t error = discard_all(pointers, sizes, count, flags);
  return error ? error : prefetch_all(pointers, sizes, count, places, indices, place_count, flags, stream);
}
CUDART_DECLARE(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, (PREFETCH_PARAMETERS))
CUDART_PAIR(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, (PREFETCH_PARAMETERS),
            discard_and_prefetch(pointers, sizes, count, places, indices, place_count, flags,
                                 engine_stream_handle(stream, own)))
#endif
