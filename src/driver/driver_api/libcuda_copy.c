/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets (Driver API: "Memory Management"). Every form becomes one engine_copy or engine_set.
 *
 * What always holds: an HtoD copy's source may be any host address and its destination must be known to the device,
 * DtoH the other way round, or both in the device; cuMemcpy and the UNIFIED memory type find out by the address.
 * Arrays are engine_array's. */
#include "driver/engine/engine_array.h"
#include "driver/driver_api/libcuda.h"
#include "driver/driver_api/libcuda_graph.h"

/* ---- linear copies ---- */

static engine_copy in_a_row(CUdeviceptr to, engine_side to_side, CUdeviceptr from, engine_side from_side, size_t bytes,
                            CUstream stream, bool own, bool async) {
  return (engine_copy){.to = to,
                       .from = from,
                       .width = bytes,
                       .height = 1,
                       .depth = 1,
                       .to_side = to_side,
                       .from_side = from_side,
                       .stream = engine_stream_handle(stream, own),
                       .async = async};
}

static CUresult copy_linear(CUdeviceptr to, engine_side to_side, CUdeviceptr from, engine_side from_side, size_t bytes,
                            CUstream stream, bool own, bool async) {
  engine_copy copy = in_a_row(to, to_side, from, from_side, bytes, stream, own, async);
  return libcuda_result(engine_copy_run(&copy));
}

/* The contexts only say what the addresses do. */
static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                          CUstream stream, bool own, bool async) {
  if (!libcuda_is_live(to_context) || !libcuda_is_live(from_context)) return CUDA_ERROR_INVALID_CONTEXT;
  engine_copy copy = in_a_row(to, ENGINE_SIDE_DEVICE, from, ENGINE_SIDE_DEVICE, bytes, stream, own, async);
  copy.peer = !async;
  return libcuda_result(engine_copy_run(&copy));
}

#define HOST ENGINE_SIDE_HOST
#define DEVICE ENGINE_SIDE_DEVICE
#define ANY ENGINE_SIDE_ANY

/* The destination of a DtoH copy may be device memory. The manual does not say so; PennyLane-Lightning 0.45, which is
 * in use on GPUs, gives cuBLAS an address in the device for a result of the host (CUBLAS_POINTER_MODE_HOST). */
static CUresult copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream, bool own, bool async) {
  bool there = engine_pointer_find((uintptr_t)to).memory == ENGINE_DEVICE;
  return copy_linear((uintptr_t)to, there ? DEVICE : HOST, from, DEVICE, bytes, stream, own, async);
}

LIBCUDA_PAIR(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
             copy_linear(to, ANY, from, ANY, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy_linear(to, ANY, from, ANY, bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes),
             copy_linear(to, DEVICE, (uintptr_t)from, HOST, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
             copy_linear(to, DEVICE, (uintptr_t)from, HOST, bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes),
             copy_to_host(to, from, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy_to_host(to, from, bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
             copy_linear(to, DEVICE, from, DEVICE, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
             copy_linear(to, DEVICE, from, DEVICE, bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyPeer, _ptds,
             (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
             copy_peer(to, to_context, from, from_context, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyPeerAsync, _ptsz,
             (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
              CUstream stream),
             copy_peer(to, to_context, from, from_context, bytes, stream, own, true))

/* ---- 2D and 3D ---- */

typedef struct copy_end { /* one side of a 2D or 3D copy, as the structs give it */
  size_t x, y, z;
  CUmemorytype type;
  const void *host;
  CUdeviceptr device;
  void *array;
  size_t pitch, height;
} copy_end;

static CUresult end_of(const copy_end *end, size_t width, engine_box_end *out) {
  *out = (engine_box_end){.rows = end->height, .x = end->x, .y = end->y, .z = end->z};
  if (end->x + width < width) return CUDA_ERROR_INVALID_VALUE;
  switch (end->type) {
  case CU_MEMORYTYPE_HOST:
    out->address = (uintptr_t)end->host;
    out->side = HOST;
    break;
  case CU_MEMORYTYPE_DEVICE:
    out->address = end->device;
    out->side = DEVICE;
    break;
  case CU_MEMORYTYPE_UNIFIED:
    out->address = end->device;
    out->side = ANY;
    break;
  case CU_MEMORYTYPE_ARRAY: out->array = end->array; return end->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  out->pitch = end->pitch ? end->pitch : end->x + width;
  return out->pitch < end->x + width ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult copy_box(const copy_end *to, const copy_end *from, size_t width, size_t height, size_t depth,
                         CUstream stream, bool own, bool async) {
  engine_box box = {
      .width = width, .height = height, .depth = depth, .stream = engine_stream_handle(stream, own), .async = async};
  LIBCUDA_TRY(end_of(to, width, &box.to));
  LIBCUDA_TRY(end_of(from, width, &box.from));
  return libcuda_result(engine_box_run(&box));
}

/* The pitch of a single row does not matter. (The manual asks that it is no less than the row; NVIDIA's own samples,
 * cuSOLVER's cusolver_irs_lapack among them, copy a row whose pitch is.) */
static size_t pitch_of(const CUDA_MEMCPY2D *c, size_t pitch, size_t y) { return c->Height == 1 && !y ? 0 : pitch; }

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool own, bool async) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  copy_end to = {.x = c->dstXInBytes,
                 .y = c->dstY,
                 .type = c->dstMemoryType,
                 .host = c->dstHost,
                 .device = c->dstDevice,
                 .array = c->dstArray,
                 .pitch = pitch_of(c, c->dstPitch, c->dstY),
                 .height = c->Height};
  copy_end from = {.x = c->srcXInBytes,
                   .y = c->srcY,
                   .type = c->srcMemoryType,
                   .host = c->srcHost,
                   .device = c->srcDevice,
                   .array = c->srcArray,
                   .pitch = pitch_of(c, c->srcPitch, c->srcY),
                   .height = c->Height};
  return copy_box(&to, &from, c->WidthInBytes, c->Height, 1, stream, own, async);
}

CUresult libcuda_box(const CUDA_MEMCPY3D *c, engine_box *box) {
  if (!c || c->srcLOD || c->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  copy_end to = {.x = c->dstXInBytes,
                 .y = c->dstY,
                 .z = c->dstZ,
                 .type = c->dstMemoryType,
                 .host = c->dstHost,
                 .device = c->dstDevice,
                 .array = c->dstArray,
                 .pitch = c->dstPitch,
                 .height = c->dstHeight ? c->dstHeight : c->Height};
  copy_end from = {.x = c->srcXInBytes,
                   .y = c->srcY,
                   .z = c->srcZ,
                   .type = c->srcMemoryType,
                   .host = c->srcHost,
                   .device = c->srcDevice,
                   .array = c->srcArray,
                   .pitch = c->srcPitch,
                   .height = c->srcHeight ? c->srcHeight : c->Height};
  *box = (engine_box){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
  LIBCUDA_TRY(end_of(&to, box->width, &box->to));
  return end_of(&from, box->width, &box->from);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool own, bool async) {
  engine_box box;
  LIBCUDA_TRY(libcuda_box(c, &box));
  box.stream = engine_stream_handle(stream, own);
  box.async = async;
  return libcuda_result(engine_box_run(&box));
}

/* The contexts only say what the addresses do; those of arrays are not looked at. */
static CUresult copy_3d_peer(const CUDA_MEMCPY3D *c, CUstream stream, bool own, bool async) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  if ((c->srcMemoryType != CU_MEMORYTYPE_ARRAY && !libcuda_is_live(c->srcReserved)) ||
      (c->dstMemoryType != CU_MEMORYTYPE_ARRAY && !libcuda_is_live(c->dstReserved)))
    return CUDA_ERROR_INVALID_CONTEXT;
  return copy_3d(c, stream, own, async);
}

LIBCUDA_PAIR(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy_2d(copy, NULL, own, false))
LIBCUDA_PAIR(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy_2d(copy, NULL, own, false))
LIBCUDA_PAIR(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream), copy_2d(copy, stream, own, true))
LIBCUDA_PAIR(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), copy_3d(copy, NULL, own, false))
LIBCUDA_PAIR(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), copy_3d(copy, stream, own, true))
LIBCUDA_PAIR(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D *copy), copy_3d_peer(copy, NULL, own, false))
LIBCUDA_PAIR(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream),
             copy_3d_peer(copy, stream, own, true))

/* ---- between arrays and linear memory, without a second dimension ---- */

static engine_box_end linear(uint64_t address, engine_side side) {
  return (engine_box_end){.address = address, .side = side};
}

/* The array from byte `offset` on, counting its rows without gaps. */
static CUresult array_end(engine_array *array, size_t offset, engine_box_end *end) {
  engine_array_shape shape;
  LIBCUDA_TRY(libcuda_result(engine_array_describe(array, &shape)));
  uint64_t row = engine_row_bytes(&shape);
  *end = (engine_box_end){.array = array, .x = offset % row, .y = offset / row};
  return CUDA_SUCCESS;
}

static CUresult to_array(engine_array *array, size_t offset, engine_box_end from, size_t bytes, CUstream stream,
                         bool own, bool async) {
  engine_box box = {.from = from, .stream = engine_stream_handle(stream, own), .async = async};
  LIBCUDA_TRY(array_end(array, offset, &box.to));
  return libcuda_result(engine_stretch_run(&box, bytes));
}

static CUresult from_array(engine_box_end to, engine_array *array, size_t offset, size_t bytes, CUstream stream,
                           bool own, bool async) {
  engine_box box = {.to = to, .stream = engine_stream_handle(stream, own), .async = async};
  LIBCUDA_TRY(array_end(array, offset, &box.from));
  return libcuda_result(engine_stretch_run(&box, bytes));
}

static CUresult between_arrays(engine_array *to, size_t to_offset, engine_array *from, size_t from_offset, size_t bytes,
                               bool own) {
  engine_box_end end;
  LIBCUDA_TRY(array_end(from, from_offset, &end));
  return to_array(to, to_offset, end, bytes, NULL, own, false);
}

LIBCUDA_PAIR(cuMemcpyHtoA_v2, _ptds, (engine_array * to, size_t offset, const void *from, size_t bytes),
             to_array(to, offset, linear((uintptr_t)from, HOST), bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyHtoAAsync_v2, _ptsz,
             (engine_array * to, size_t offset, const void *from, size_t bytes, CUstream stream),
             to_array(to, offset, linear((uintptr_t)from, HOST), bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyDtoA_v2, _ptds, (engine_array * to, size_t offset, CUdeviceptr from, size_t bytes),
             to_array(to, offset, linear(from, DEVICE), bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyAtoH_v2, _ptds, (void *to, engine_array *from, size_t offset, size_t bytes),
             from_array(linear((uintptr_t)to, HOST), from, offset, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyAtoHAsync_v2, _ptsz, (void *to, engine_array *from, size_t offset, size_t bytes, CUstream stream),
             from_array(linear((uintptr_t)to, HOST), from, offset, bytes, stream, own, true))
LIBCUDA_PAIR(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr to, engine_array *from, size_t offset, size_t bytes),
             from_array(linear(to, DEVICE), from, offset, bytes, NULL, own, false))
LIBCUDA_PAIR(cuMemcpyAtoA_v2, _ptds,
             (engine_array * to, size_t to_offset, engine_array *from, size_t from_offset, size_t bytes),
             between_arrays(to, to_offset, from, from_offset, bytes, own))

/* ---- sets ---- */

static CUresult set(CUdeviceptr to, size_t pitch, uint32_t value, uint32_t element, size_t width, size_t height,
                    CUstream stream, bool own, bool async) {
  engine_set run = {.to = to,
                    .width = width,
                    .height = height,
                    .depth = 1,
                    .pitch = pitch,
                    .value = value,
                    .element = element,
                    .stream = engine_stream_handle(stream, own),
                    .async = async};
  if (to % element || (height > 1 && pitch % element)) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_set_run(&run));
}

LIBCUDA_PAIR(cuMemsetD8_v2, _ptds, (CUdeviceptr to, unsigned char value, size_t count),
             set(to, 0, value, 1, count, 1, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD16_v2, _ptds, (CUdeviceptr to, unsigned short value, size_t count),
             set(to, 0, value, 2, count, 1, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD32_v2, _ptds, (CUdeviceptr to, unsigned value, size_t count),
             set(to, 0, value, 4, count, 1, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD8Async, _ptsz, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
             set(to, 0, value, 1, count, 1, stream, own, true))
LIBCUDA_PAIR(cuMemsetD16Async, _ptsz, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),
             set(to, 0, value, 2, count, 1, stream, own, true))
LIBCUDA_PAIR(cuMemsetD32Async, _ptsz, (CUdeviceptr to, unsigned value, size_t count, CUstream stream),
             set(to, 0, value, 4, count, 1, stream, own, true))
LIBCUDA_PAIR(cuMemsetD2D8_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
             set(to, pitch, value, 1, width, height, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD2D16_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
             set(to, pitch, value, 2, width, height, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD2D32_v2, _ptds, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),
             set(to, pitch, value, 4, width, height, NULL, own, false))
LIBCUDA_PAIR(cuMemsetD2D8Async, _ptsz,
             (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream),
             set(to, pitch, value, 1, width, height, stream, own, true))
LIBCUDA_PAIR(cuMemsetD2D16Async, _ptsz,
             (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream),
             set(to, pitch, value, 2, width, height, stream, own, true))
LIBCUDA_PAIR(cuMemsetD2D32Async, _ptsz,
             (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream),
             set(to, pitch, value, 4, width, height, stream, own, true))
