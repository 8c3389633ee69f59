/* SPDX-License-Identifier: Apache-2.0 */
/* Several copies or hints in one call, and operations of a stream on one value in memory (Driver API: "Memory
 * Management", "Stream Memory Operations"; engine_values.h). A batch is carried out in its order, which is one of those
 * that it allows. */
#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_values.h"

/* ---- copies ---- */

typedef struct copy_list {
  const CUdeviceptr *to, *from;
  const size_t *sizes;
  size_t count;
} copy_list;

static CUresult copy_all(copy_list list, const cudaMemcpyAttributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *failed, CUstream stream, bool own) {
  if (failed) *failed = SIZE_MAX;
  if (!stream && !own) return CUDA_ERROR_INVALID_VALUE; /* the one stream that takes no batch */
  const engine_batch batch = {.to = (const uint64_t *)list.to,
                              .from = (const uint64_t *)list.from,
                              .sizes = list.sizes,
                              .indices = indices,
                              .attributes = attributes,
                              .count = list.count,
                              .kinds = attribute_count};
  return libcuda_result(engine_copies_run(&batch, engine_stream_handle(stream, own), failed));
}

#define COPIES                                                                                                        \
  CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, cudaMemcpyAttributes *attributes, size_t *indices, \
      size_t attribute_count
LIBCUDA_PAIR(cuMemcpyBatchAsync, _ptsz, (COPIES, size_t *failed, CUstream stream),
             copy_all((copy_list){to, from, sizes, count}, attributes, indices, attribute_count, failed, stream, own))
LIBCUDA_PAIR(cuMemcpyBatchAsync_v2, _ptsz, (COPIES, CUstream stream),
             copy_all((copy_list){to, from, sizes, count}, attributes, indices, attribute_count, NULL, stream, own))

static CUresult copy_one(CUdeviceptr to, CUdeviceptr from, size_t bytes, const cudaMemcpyAttributes *attributes,
                         CUstream stream, bool own) {
  if ((!stream && !own) || !attributes || !copy_order_valid(attributes->srcAccessOrder))
    return CUDA_ERROR_INVALID_VALUE;
  engine_copy copy = {.to = to,
                      .from = from,
                      .width = bytes,
                      .height = 1,
                      .depth = 1,
                      .stream = engine_stream_handle(stream, own),
                      .async = true};
  return libcuda_result(engine_copy_run(&copy));
}
LIBCUDA_PAIR(cuMemcpyWithAttributesAsync, _ptsz,
             (CUdeviceptr to, CUdeviceptr from, size_t bytes, cudaMemcpyAttributes *attributes, CUstream stream),
             copy_one(to, from, bytes, attributes, stream, own))

static CUresult copy_boxes(size_t count, const cudaMemcpy3DBatchOp *list, size_t *failed, unsigned long long flags,
                           CUstream stream, bool own) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_batch_run(list, count, flags, engine_stream_handle(stream, own), failed));
}

#define BOXES size_t count, const cudaMemcpy3DBatchOp *list
LIBCUDA_PAIR(cuMemcpy3DBatchAsync, _ptsz, (BOXES, size_t *failed, unsigned long long flags, CUstream stream),
             copy_boxes(count, list, failed, flags, stream, own))
LIBCUDA_PAIR(cuMemcpy3DBatchAsync_v2, _ptsz, (BOXES, unsigned long long flags, CUstream stream),
             copy_boxes(count, list, NULL, flags, stream, own))
LIBCUDA_PAIR(cuMemcpy3DWithAttributesAsync, _ptsz,
             (const cudaMemcpy3DBatchOp *box, unsigned long long flags, CUstream stream),
             copy_boxes(1, box, NULL, flags, stream, own))

/* ---- hints ---- */

static bool is_managed(CUdeviceptr address, size_t bytes) {
  engine_pointer found = engine_pointer_find(address);
  return found.memory == ENGINE_MANAGED && bytes && bytes <= found.bytes - (address - found.address);
}

/* What is discarded has any contents from then on: what it had will do. */
static CUresult discard_all(const CUdeviceptr *ranges, const size_t *sizes, size_t count, unsigned long long flags) {
  if (!ranges || !sizes || !count || flags) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (!is_managed(ranges[i], sizes[i])) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/* The location `at` holds from range starts[at] on. */
static CUresult prefetch_all(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
                             const CUmemLocation *locations, const size_t *starts, size_t location_count,
                             unsigned long long flags, CUstream stream, bool own) {
  if (!ranges || !sizes || !count || !locations || !starts || !location_count || location_count > count || starts[0] ||
      flags)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0, at = 0; i < count; i++) {
    while (at + 1 < location_count && starts[at + 1] <= i) at++;
    int device = locations[at].type == cudaMemLocationTypeDevice ? locations[at].id : cudaCpuDeviceId;
    if (device != cudaCpuDeviceId) LIBCUDA_TRY(libcuda_device(device));
    LIBCUDA_TRY(libcuda_result(engine_prefetch(ranges[i], sizes[i], device, engine_stream_handle(stream, own))));
  }
  return CUDA_SUCCESS;
}

static CUresult discard_and_prefetch(const CUdeviceptr *ranges, const size_t *sizes, size_t count,
                                     const CUmemLocation *locations, const size_t *starts, size_t location_count,
                                     unsigned long long flags, CUstream stream, bool own) {
  LIBCUDA_TRY(discard_all(ranges, sizes, count, flags));
  return prefetch_all(ranges, sizes, count, locations, starts, location_count, flags, stream, own);
}

#define RANGES CUdeviceptr *ranges, size_t *sizes, size_t count
#define LOCATIONS CUmemLocation *locations, size_t *starts, size_t location_count
LIBCUDA_PAIR(cuMemDiscardBatchAsync, _ptsz, (RANGES, unsigned long long flags, CUstream stream),
             discard_all(ranges, sizes, count, flags))
LIBCUDA_PAIR(cuMemPrefetchBatchAsync, _ptsz, (RANGES, LOCATIONS, unsigned long long flags, CUstream stream),
             prefetch_all(ranges, sizes, count, locations, starts, location_count, flags, stream, own))
LIBCUDA_PAIR(cuMemDiscardAndPrefetchBatchAsync, _ptsz, (RANGES, LOCATIONS, unsigned long long flags, CUstream stream),
             discard_and_prefetch(ranges, sizes, count, locations, starts, location_count, flags, stream, own))

/* ---- values ---- */

static CUresult run_one(CUstream stream, bool own, int type, CUdeviceptr address, uint64_t value, unsigned flags) {
  const engine_value operation = {.of = {.type = type, .address = address, .value = value, .flags = flags}};
  return libcuda_result(engine_values_run(engine_stream_handle(stream, own), &operation, 1));
}

static CUresult run_all(CUstream stream, bool own, unsigned count, const engine_value *operations, unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_values_run(engine_stream_handle(stream, own), operations, count));
}

/* The two versions differ in what the device says it can do, not in what they do. */
#define VALUE_CALL(NAME, TYPE, BITS, SUFFIX, PAIR)                                                               \
  LIBCUDA_PAIR(NAME##SUFFIX, PAIR, (CUstream stream, CUdeviceptr address, uint##BITS##_t value, unsigned flags), \
               run_one(stream, own, TYPE##_##BITS, address, value, flags))
#define VALUE_CALLS(SUFFIX, PAIR)                                                           \
  VALUE_CALL(cuStreamWriteValue32, ENGINE_VALUE_WRITE, 32, SUFFIX, PAIR)                    \
  VALUE_CALL(cuStreamWriteValue64, ENGINE_VALUE_WRITE, 64, SUFFIX, PAIR)                    \
  VALUE_CALL(cuStreamWaitValue32, ENGINE_VALUE_WAIT, 32, SUFFIX, PAIR)                      \
  VALUE_CALL(cuStreamWaitValue64, ENGINE_VALUE_WAIT, 64, SUFFIX, PAIR)                      \
  LIBCUDA_PAIR(cuStreamBatchMemOp##SUFFIX, PAIR,                                            \
               (CUstream stream, unsigned count, engine_value *operations, unsigned flags), \
               run_all(stream, own, count, operations, flags))
VALUE_CALLS(, _ptsz)
VALUE_CALLS(_v2, _ptsz)
