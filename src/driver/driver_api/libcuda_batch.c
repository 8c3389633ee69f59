/* SPDX-License-Identifier: Apache-2.0 */
/* Several copies or hints in one call, and operations of a stream on one value in memory (Driver API: "Memory
 * Management", "Stream Memory Operations").
 *
 * A batch is carried out in its order, which is one of those that it allows. A stream writes a value like a set of one
 * element. A stream that waits for a value holds up the program's thread, as every device operation does here: so it
 * can only wait for what is there already, or what another thread of the program writes; after a while it is given up
 * with a message. */
#include "driver/copy_attributes.h"
#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_array.h"

#include <stdatomic.h>
#include <time.h>

#define PATIENCE_MS 2000 /* for another thread to write what is waited for */

/* ---- copies ---- */

typedef struct copy_list {
  const CUdeviceptr *to, *from;
  const size_t *sizes;
  size_t count;
} copy_list;

static CUresult copy_all(copy_list list, const cudaMemcpyAttributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *failed, CUstream stream, bool own) {
  if (failed) *failed = SIZE_MAX;
  bool legacy = !stream && !own; /* the one stream that takes no batch */
  if (legacy || !list.to || !list.from || !list.sizes || !list.count ||
      !copy_attributes_valid(attributes, indices, attribute_count, list.count))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < list.count; i++) {
    engine_copy copy = {.to = list.to[i],
                        .from = list.from[i],
                        .width = list.sizes[i],
                        .height = 1,
                        .depth = 1,
                        .stream = engine_stream_handle(stream, own),
                        .async = true};
    cudaError_t error = engine_copy_run(&copy);
    if (error && failed) *failed = i;
    if (error) return libcuda_result(error);
  }
  return CUDA_SUCCESS;
}

#define COPIES                                                                                                        \
  CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, cudaMemcpyAttributes *attributes, size_t *indices, \
      size_t attribute_count
LIBCUDA_PAIR(cuMemcpyBatchAsync, _ptsz, (COPIES, size_t *failed, CUstream stream),
             copy_all((copy_list){to, from, sizes, count}, attributes, indices, attribute_count, failed, stream, own))
LIBCUDA_PAIR(cuMemcpyBatchAsync_v2, _ptsz, (COPIES, CUstream stream),
             copy_all((copy_list){to, from, sizes, count}, attributes, indices, attribute_count, NULL, stream, own))

static const size_t first_copy; /* the attributes are those of copy 0 */
LIBCUDA_PAIR(cuMemcpyWithAttributesAsync, _ptsz,
             (CUdeviceptr to, CUdeviceptr from, size_t bytes, cudaMemcpyAttributes *attributes, CUstream stream),
             copy_all((copy_list){&to, &from, &bytes, 1}, attributes, &first_copy, 1, NULL, stream, own))

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

/* CUstreamWaitValue_flags */
enum { WAIT_GREATER, WAIT_EQUAL, WAIT_AND, WAIT_NOR, WAIT_FLUSH = 1 << 30 };
/* CUstreamBatchMemOpType */
enum {
  OPERATION_WAIT_32 = 1,
  OPERATION_WRITE_32,
  OPERATION_FLUSH,
  OPERATION_WAIT_64,
  OPERATION_WRITE_64,
  OPERATION_BARRIER
};

typedef union memory_operation { /* CUstreamBatchMemOpParams */
  int type;
  struct {
    int type;
    CUdeviceptr address;
    uint64_t value;
    unsigned flags;
    CUdeviceptr alias;
  } of;
  uint64_t room[6];
} memory_operation;

static bool is_met(uint64_t found, uint64_t wanted, unsigned bytes, unsigned how) {
  if (bytes == 4) {
    found = (uint32_t)found;
    wanted = (uint32_t)wanted;
  }
  switch (how) {
  case WAIT_GREATER: return bytes == 4 ? (int32_t)(uint32_t)(found - wanted) >= 0 : (int64_t)(found - wanted) >= 0;
  case WAIT_EQUAL: return found == wanted;
  case WAIT_AND: return (found & wanted) != 0;
  default: return (bytes == 4 ? (uint32_t) ~(found | wanted) : ~(found | wanted)) != 0;
  }
}

static uint64_t read_value(CUdeviceptr address, unsigned bytes) {
  return bytes == 4 ? atomic_load((_Atomic uint32_t *)(uintptr_t)address)
                    : atomic_load((_Atomic uint64_t *)(uintptr_t)address);
}

static CUresult check_value(CUdeviceptr address, unsigned bytes) {
  engine_pointer found = engine_pointer_find(address);
  bool inside = found.memory != ENGINE_PAGEABLE && bytes <= found.bytes - (address - found.address);
  return inside && address % bytes == 0 && found.readable && found.writable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult wait_value(CUdeviceptr address, uint64_t value, unsigned bytes, unsigned flags) {
  unsigned how = flags & ~(unsigned)WAIT_FLUSH;
  if (how > WAIT_NOR) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_value(address, bytes));
  for (int i = 0; i < PATIENCE_MS; i++) {
    if (is_met(read_value(address, bytes), value, bytes, how)) return CUDA_SUCCESS;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  engine_say_once(
      "cuStreamWaitValue",
      "cuStreamWaitValue waits for a value that nothing has written; what the same thread writes later cannot come, because "
      "a stream holds up the thread that works with it on the virtual GPU");
  return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult write_value(CUdeviceptr address, uint64_t value, unsigned bytes, unsigned flags, CUstream stream,
                            bool own) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_value(address, bytes));
  for (unsigned part = 0; part < bytes / 4; part++) {
    engine_set set = {.to = address + 4 * part,
                      .width = 1,
                      .height = 1,
                      .depth = 1,
                      .value = (uint32_t)(value >> 32 * part),
                      .element = 4,
                      .stream = engine_stream_handle(stream, own),
                      .async = true};
    LIBCUDA_TRY(libcuda_result(engine_set_run(&set)));
  }
  return CUDA_SUCCESS;
}

static CUresult wait_in(CUstream stream, bool own, CUdeviceptr address, uint64_t value, unsigned bytes,
                        unsigned flags) {
  engine_stream_info info;
  LIBCUDA_TRY(libcuda_result(engine_stream_describe(engine_stream_handle(stream, own), &info)));
  return wait_value(address, value, bytes, flags);
}

static CUresult run_all(CUstream stream, bool own, unsigned count, const memory_operation *operations, unsigned flags) {
  if (flags || !operations || count > 256) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    const memory_operation *o = &operations[i];
    switch (o->type) {
    case OPERATION_WAIT_32:
      LIBCUDA_TRY(wait_in(stream, own, o->of.address, (uint32_t)o->of.value, 4, o->of.flags));
      break;
    case OPERATION_WAIT_64: LIBCUDA_TRY(wait_in(stream, own, o->of.address, o->of.value, 8, o->of.flags)); break;
    case OPERATION_WRITE_32:
      LIBCUDA_TRY(write_value(o->of.address, (uint32_t)o->of.value, 4, o->of.flags, stream, own));
      break;
    case OPERATION_WRITE_64: LIBCUDA_TRY(write_value(o->of.address, o->of.value, 8, o->of.flags, stream, own)); break;
    case OPERATION_FLUSH:
    case OPERATION_BARRIER: break; /* memory is always up to date */
    default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

/* The two versions differ in what the device says it can do, not in what they do. */
#define VALUE_CALLS(SUFFIX, PAIR)                                                               \
  LIBCUDA_PAIR(cuStreamWriteValue32##SUFFIX, PAIR,                                              \
               (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags),          \
               write_value(address, value, 4, flags, stream, own))                              \
  LIBCUDA_PAIR(cuStreamWriteValue64##SUFFIX, PAIR,                                              \
               (CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags),          \
               write_value(address, value, 8, flags, stream, own))                              \
  LIBCUDA_PAIR(cuStreamWaitValue32##SUFFIX, PAIR,                                               \
               (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags),          \
               wait_in(stream, own, address, value, 4, flags))                                  \
  LIBCUDA_PAIR(cuStreamWaitValue64##SUFFIX, PAIR,                                               \
               (CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags),          \
               wait_in(stream, own, address, value, 8, flags))                                  \
  LIBCUDA_PAIR(cuStreamBatchMemOp##SUFFIX, PAIR,                                                \
               (CUstream stream, unsigned count, memory_operation *operations, unsigned flags), \
               run_all(stream, own, count, operations, flags))
VALUE_CALLS(, _ptsz)
VALUE_CALLS(_v2, _ptsz)
