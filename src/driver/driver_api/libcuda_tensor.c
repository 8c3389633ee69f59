/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps (Driver API: "Tensor Map Object Management"): checks what the manual asks of each argument, and writes
 * what cp.async.bulk.tensor reads (exec/memory/tensor_map.h). Interleaved layouts, packed types of 4 and 6 bits and
 * swizzles of later GPUs are refused by name. */
#include <string.h>

#include "driver/driver_api/libcuda.h"
#include "exec/memory/tensor_map.h"

#define ADDRESS_ALIGN 16u
#define INTERLEAVED_MOST 2u
#define PROMOTION_MOST 3u
#define TYPES_OF_CUDA 16u /* CUtensorMapDataType */
#define SWIZZLES_OF_CUDA 7u

typedef struct tensor_request { /* what both calls have in common */
  tensor_map *map;
  int type;
  unsigned rank;
  void *address;
  const uint64_t *sizes, *strides; /* strides: bytes, of dimensions from 1 on */
  const uint32_t *steps;
  int interleave, swizzle, promotion, fill;
} tensor_request;

static CUresult refuse(const char *what) {
  engine_say_once(what, "tensor maps with %s are not implemented by the virtual GPU", what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_supported(const tensor_request *r) {
  if (r->type < 0 || (unsigned)r->type >= TYPES_OF_CUDA || r->interleave < 0 ||
      (unsigned)r->interleave > INTERLEAVED_MOST || r->swizzle < 0 || (unsigned)r->swizzle >= SWIZZLES_OF_CUDA ||
      r->promotion < 0 || (unsigned)r->promotion > PROMOTION_MOST || (r->fill & ~1))
    return CUDA_ERROR_INVALID_VALUE;
  if ((unsigned)r->type >= TENSOR_MAP_TYPES) return refuse("packed types");
  if (r->interleave) return refuse("interleaved layouts");
  if ((unsigned)r->swizzle >= TENSOR_MAP_SWIZZLES) return refuse("swizzles of other atoms");
  return CUDA_SUCCESS;
}

static bool is_real(int type) { return type >= TENSOR_MAP_F16; }

/* The manual wants a map at a multiple of 64 bytes; the driver takes any, as those of cuda.core and cuda.bindings lie
 * where Python puts them. */
static CUresult check_tensor(const tensor_request *r, unsigned fewest) {
  if (!r->map || r->rank < fewest || r->rank > TENSOR_MAP_DIMENSIONS || !r->address ||
      (uintptr_t)r->address % ADDRESS_ALIGN || !r->sizes || (r->rank > 1 && !r->strides) || !r->steps)
    return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(check_supported(r));
  for (unsigned n = 0; n < r->rank; n++) {
    if (!r->sizes[n] || r->sizes[n] > UINT64_C(1) << 32 || !r->steps[n] || r->steps[n] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    if (n && (r->strides[n - 1] % ADDRESS_ALIGN || r->strides[n - 1] >= UINT64_C(1) << 40))
      return CUDA_ERROR_INVALID_VALUE;
  }
  return r->fill && !is_real(r->type) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static tensor_map common(const tensor_request *r) {
  tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                    .address = (uint64_t)(uintptr_t)r->address,
                    .type = (uint8_t)r->type,
                    .rank = (uint8_t)r->rank,
                    .swizzle = (uint8_t)r->swizzle,
                    .nan = (uint8_t)r->fill};
  for (unsigned n = 0; n < TENSOR_MAP_DIMENSIONS; n++) {
    map.last[n] = n < r->rank ? (uint32_t)(r->sizes[n] - 1) : 0;
    map.step[n] = n < r->rank ? (uint8_t)r->steps[n] : 1;
    map.box[n] = 1;
    if (n && n < r->rank) map.stride[n - 1] = r->strides[n - 1];
  }
  return map;
}

/* Bytes of a row of the box: a multiple of 16, no more than a swizzled row has. */
static bool good_row(const tensor_request *r, uint32_t elements) {
  uint32_t bytes = elements * tensor_map_element((uint32_t)r->type);
  return bytes % ADDRESS_ALIGN == 0 && (!r->swizzle || bytes <= 16u << r->swizzle);
}

static CUresult encode_tiled(const tensor_request *r, const uint32_t *box) {
  LIBCUDA_TRY(check_tensor(r, 1));
  if (!box) return CUDA_ERROR_INVALID_VALUE;
  tensor_map map = common(r);
  for (unsigned n = 0; n < r->rank; n++) {
    if (!box[n] || box[n] > 256) return CUDA_ERROR_INVALID_VALUE;
    map.box[n] = (uint16_t)box[n];
  }
  if (!good_row(r, box[0])) return CUDA_ERROR_INVALID_VALUE;
  memcpy(r->map, &map, sizeof map);
  return CUDA_SUCCESS;
}

static CUresult encode_im2col(const tensor_request *r, const int *lower, const int *upper, uint32_t channels,
                              uint32_t pixels) {
  LIBCUDA_TRY(check_tensor(r, 3));
  if (!lower || !upper || !channels || channels > 256 || !pixels || pixels > 1024 || !good_row(r, channels))
    return CUDA_ERROR_INVALID_VALUE;
  tensor_map map = common(r);
  int most = 1 << (16 / (r->rank - 2) - 1); /* bits of a corner: 16, 8 or 5 */
  for (unsigned n = 0; n < r->rank - 2; n++) {
    if (lower[n] < -most || lower[n] >= most || upper[n] < -most || upper[n] >= most) return CUDA_ERROR_INVALID_VALUE;
    map.lower[n] = (int16_t)lower[n];
    map.upper[n] = (int16_t)upper[n];
  }
  map.im2col = 1;
  map.channels = (uint16_t)channels;
  map.pixels = (uint16_t)pixels;
  memcpy(r->map, &map, sizeof map);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuTensorMapEncodeTiled,
             (tensor_map * map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
              const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill)) {
  LIBCUDA_TRY(libcuda_ready());
  return encode_tiled(
      &(tensor_request){map, type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill}, box);
}

LIBCUDA_CALL(cuTensorMapEncodeIm2col,
             (tensor_map * map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
              const int *lower, const int *upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
              int interleave, int swizzle, int promotion, int fill)) {
  LIBCUDA_TRY(libcuda_ready());
  return encode_im2col(
      &(tensor_request){map, type, rank, address, sizes, strides, steps, interleave, swizzle, promotion, fill}, lower,
      upper, channels, pixels);
}

static bool is_map(const tensor_map *at, tensor_map *found) {
  if (!at) return false;
  memcpy(found, at, sizeof *found);
  return found->magic == TENSOR_MAP_MAGIC;
}

LIBCUDA_CALL(cuTensorMapReplaceAddress, (tensor_map * map, void *address)) {
  LIBCUDA_TRY(libcuda_ready());
  tensor_map changed;
  if (!is_map(map, &changed) || !address || (uintptr_t)address % ADDRESS_ALIGN) return CUDA_ERROR_INVALID_VALUE;
  changed.address = (uint64_t)(uintptr_t)address;
  memcpy(map, &changed, sizeof changed);
  return CUDA_SUCCESS;
}

/* Which accesses beyond a tensor's end a GPU may make: none is simulated that has a choice. */
enum { ALLOCATION_AUTO, ALLOCATION_SMALL, ALLOCATION_LARGE };
LIBCUDA_CALL(cuTensorMapSetAllocationClass, (tensor_map * map, int wanted, int *effective)) {
  LIBCUDA_TRY(libcuda_ready());
  if (effective) *effective = ALLOCATION_SMALL;
  tensor_map found;
  if (!is_map(map, &found) || wanted < ALLOCATION_AUTO || wanted > ALLOCATION_LARGE) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
