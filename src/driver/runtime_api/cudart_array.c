/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays of the runtime (CUDA Runtime API, "Memory Management"): making, asking, and the copies that name an
 * array.
 *
 * In copies of one and two dimensions x and the width count bytes, y and the height rows. The forms
 * without a height (deprecated since CUDA 10.1) go on from row to row. */
#include <string.h>

#include "driver/runtime_api/cudart_array.h"

/* ---- formats ---- */

/* cudaChannelFormatKind: CUarray_format's numbers 0xc0 to 0xcb, then 0x91 to 0x9e. */
enum { PLANAR = 4, FIRST_NORMALIZED = 5, FIRST_BLOCKS = 17, TEN_BITS = 31 };

/* The kind says all; the bits must be those of cudaCreateChannelDesc. */
static cudaError_t numbered_format(const cudaChannelFormatDesc *desc, engine_format *format) {
  unsigned kind = (unsigned)desc->f;
  engine_format_numbered(kind < FIRST_BLOCKS ? kind - FIRST_NORMALIZED + 0xc0 : kind - FIRST_BLOCKS + 0x91, format);
  cudaChannelFormatDesc want = cudart_channel_desc(*format);
  return memcmp(&want, desc, sizeof want) ? cudaErrorInvalidChannelDescriptor : cudaSuccess;
}

cudaError_t cudart_format(const cudaChannelFormatDesc *desc, engine_format *format) {
  if (!desc) return cudaErrorInvalidValue;
  if ((int)desc->f == PLANAR || (int)desc->f == TEN_BITS)
    return engine_format_refused("planar and 10-bit channel formats");
  if ((int)desc->f >= FIRST_NORMALIZED && (int)desc->f < TEN_BITS) return numbered_format(desc, format);
  int bits = desc->x;
  bool two = desc->y == bits, four = desc->z == bits && desc->w == bits;
  bool good = (bits == 8 || bits == 16 || bits == 32) && (two || !desc->y) && (four || (!desc->z && !desc->w)) &&
              (two || !four);
  if (!good || (unsigned)desc->f > cudaChannelFormatKindFloat || (desc->f == cudaChannelFormatKindFloat && bits == 8))
    return cudaErrorInvalidChannelDescriptor;
  int size = bits == 8 ? 0 : bits == 16 ? 1 : 2;
  static const exec_texel_type types[3][3] = {{EXEC_TEXEL_S8, EXEC_TEXEL_S16, EXEC_TEXEL_S32},
                                              {EXEC_TEXEL_U8, EXEC_TEXEL_U16, EXEC_TEXEL_U32},
                                              {EXEC_TEXEL_COUNT, EXEC_TEXEL_F16, EXEC_TEXEL_F32}};
  *format = (engine_format){.type = types[desc->f][size], .channels = four ? 4 : two ? 2 : 1};
  return cudaSuccess;
}

cudaChannelFormatDesc cudart_channel_desc(engine_format format) {
  int bits = 8 * (int)exec_texel_channel_bytes(format.type);
  bool is_signed = format.type == EXEC_TEXEL_S8 || format.type == EXEC_TEXEL_S16 || format.type == EXEC_TEXEL_S32;
  unsigned number = engine_format_number(format);
  cudaChannelFormatKind kind = is_signed ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned;
  if (number >= 0xc0) kind = (cudaChannelFormatKind)(number - 0xc0 + FIRST_NORMALIZED);
  else if (number) kind = (cudaChannelFormatKind)(number - 0x91 + FIRST_BLOCKS);
  else if (!exec_texel_is_integer(format.type)) kind = cudaChannelFormatKindFloat;
  uint32_t channels = engine_format_channels(format);
  return (cudaChannelFormatDesc){
      .x = bits, .y = channels > 1 ? bits : 0, .z = channels > 2 ? bits : 0, .w = channels > 3 ? bits : 0, .f = kind};
}

/* ---- life ---- */

static cudaError_t make(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags,
                        const char *call) {
  engine_array_shape shape = {.width = extent.width, .height = extent.height, .depth = extent.depth, .flags = flags};
  if (!array) return cudaErrorInvalidValue;
  cudaError_t error = cudart_format(desc, &shape.format);
  return error ? error : engine_array_create(&shape, call, (engine_array **)(void *)array);
}

CUDART_API cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                                       size_t height, unsigned flags) {
  if (flags & (cudaArrayLayered | cudaArrayCubemap)) return engine_return(cudaErrorInvalidValue);
  return engine_return(make(array, desc, (cudaExtent){width, height, 0}, flags, "cudaMallocArray"));
}

CUDART_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                                         unsigned flags) {
  return engine_return(make(array, desc, extent, flags, "cudaMalloc3DArray"));
}

CUDART_API cudaError_t cudaFreeArray(cudaArray_t array) {
  return engine_return(array ? engine_array_destroy((engine_array *)array) : engine_start());
}

static cudaError_t make_mipmap(cudaMipmappedArray_t *mipmap, const cudaChannelFormatDesc *desc, cudaExtent extent,
                               unsigned levels, unsigned flags) {
  engine_array_shape shape = {.width = extent.width, .height = extent.height, .depth = extent.depth, .flags = flags};
  if (!mipmap) return cudaErrorInvalidValue;
  cudaError_t error = cudart_format(desc, &shape.format);
  return error ? error
               : engine_mipmap_create(&shape, levels, "cudaMallocMipmappedArray", (engine_mipmap **)(void *)mipmap);
}
CUDART_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap, const cudaChannelFormatDesc *desc,
                                                cudaExtent extent, unsigned levels, unsigned flags) {
  return engine_return(make_mipmap(mipmap, desc, extent, levels, flags));
}

CUDART_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t mipmap, unsigned level) {
  if (!array) return engine_return(cudaErrorInvalidValue);
  return engine_return(engine_mipmap_level((engine_mipmap *)mipmap, level, (engine_array **)(void *)array));
}

CUDART_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap) {
  return engine_return(mipmap ? engine_mipmap_destroy((engine_mipmap *)mipmap) : engine_start());
}

/* ---- questions ---- */

CUDART_API cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned *flags,
                                        cudaArray_t array) {
  engine_array_shape shape;
  cudaError_t error = engine_array_describe((engine_array *)array, &shape);
  if (error) return engine_return(error);
  if (desc) *desc = cudart_channel_desc(shape.format);
  if (extent) *extent = (cudaExtent){shape.width, shape.height, shape.depth};
  if (flags) *flags = shape.flags;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_t array) {
  return desc ? cudaArrayGetInfo(desc, NULL, NULL, array) : engine_return(cudaErrorInvalidValue);
}

static cudaError_t requirements(cudaArrayMemoryRequirements *out, cudaError_t error, uint64_t bytes, uint64_t alignment,
                                int device) {
  if (error) return error;
  if (!out) return cudaErrorInvalidValue;
  if (!cudart_is_device(device)) return cudaErrorInvalidDevice;
  *out = (cudaArrayMemoryRequirements){.size = bytes, .alignment = alignment};
  return cudaSuccess;
}

CUDART_API cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements *out, cudaArray_t array, int device) {
  uint64_t bytes = 0, alignment = 0;
  cudaError_t error = engine_array_memory((engine_array *)array, &bytes, &alignment);
  return engine_return(requirements(out, error, bytes, alignment, device));
}

CUDART_API cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements *out,
                                                               cudaMipmappedArray_t mipmap, int device) {
  uint64_t bytes = 0, alignment = 0;
  cudaError_t error = engine_mipmap_memory((engine_mipmap *)mipmap, &bytes, &alignment);
  return engine_return(requirements(out, error, bytes, alignment, device));
}

/* Formats of several planes (NV12) are not there, and of an array with one plane there is none to be had; nor is any
 * array sparse. */
static cudaError_t has_none(const void *out, cudaArray_t array) {
  uint64_t bytes = 0, alignment = 0;
  cudaError_t error = out ? engine_array_memory((engine_array *)array, &bytes, &alignment) : cudaErrorInvalidValue;
  return engine_return(error ? error : cudaErrorInvalidValue);
}

CUDART_API cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned index) {
  (void)index;
  return has_none(plane, array);
}

CUDART_API cudaError_t cudaArrayGetSparseProperties(void *properties, cudaArray_t array) {
  return has_none(properties, array);
}

CUDART_API cudaError_t cudaMipmappedArrayGetSparseProperties(void *properties, cudaMipmappedArray_t mipmap) {
  uint64_t bytes = 0, alignment = 0;
  cudaError_t error = properties ? engine_mipmap_memory((engine_mipmap *)mipmap, &bytes, &alignment) : cudaSuccess;
  return engine_return(error ? error : cudaErrorInvalidValue);
}

/* ---- copies of two dimensions ---- */

static bool host_side(cudaMemcpyKind kind, bool to) {
  return kind == cudaMemcpyHostToHost || kind == (to ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice);
}

/* What the kind says of the linear end; the array's must be the device's. */
static cudaError_t check_kind(cudaMemcpyKind kind, bool to_array, bool from_array, engine_side *linear) {
  if ((unsigned)kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if ((to_array && host_side(kind, true)) || (from_array && host_side(kind, false)))
    return cudaErrorInvalidMemcpyDirection;
  bool host = host_side(kind, !to_array);
  *linear = kind == cudaMemcpyDefault ? ENGINE_SIDE_ANY : host ? ENGINE_SIDE_HOST : ENGINE_SIDE_DEVICE;
  return cudaSuccess;
}

typedef struct flat {
  engine_box_end to, from;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  bool async;
} flat;

static engine_box_end in_array(cudaArray_t array, size_t x, size_t y) {
  return (engine_box_end){.array = (engine_array *)array, .x = x, .y = y};
}
static engine_box_end in_memory(const void *address, size_t pitch) {
  return (engine_box_end){.address = (uint64_t)(uintptr_t)address, .pitch = pitch};
}

static cudaError_t copy_rows(flat f, uint64_t width, uint64_t height) {
  engine_side side;
  cudaError_t error = check_kind(f.kind, f.to.array != NULL, f.from.array != NULL, &side);
  if (error) return error;
  engine_box box = {
      .to = f.to, .from = f.from, .width = width, .height = height, .depth = 1, .stream = f.stream, .async = f.async};
  if (!box.to.array && !box.to.address && !box.from.array) return cudaErrorInvalidValue;
  *(box.to.array ? &box.from.side : &box.to.side) = side;
  if (width && height && !box.to.array) error = cudart_pitch(&box.to.pitch, width, height > 1);
  if (!error && width && height && !box.from.array) error = cudart_pitch(&box.from.pitch, width, height > 1);
  return error ? error : engine_box_run(&box);
}

#define SEND(to_, from_, kind_, stream_, async_) \
  ((flat){.to = to_, .from = from_, .kind = kind_, .stream = stream_, .async = async_})

/* A NULL array is not linear memory. */
static cudaError_t with_arrays(cudaArray_t first, cudaArray_t second, flat f, uint64_t width, uint64_t height) {
  return first && second ? copy_rows(f, width, height) : cudaErrorInvalidResourceHandle;
}

CUDART_PAIR(cudaMemcpy2DToArray, _ptds,
            (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
             cudaMemcpyKind kind),
            with_arrays(to, to,
                        SEND(in_array(to, x, y), in_memory(from, pitch), kind, engine_stream_handle(NULL, own), false),
                        width, height))
CUDART_PAIR(cudaMemcpy2DToArrayAsync, _ptsz,
            (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
             cudaMemcpyKind kind, cudaStream_t stream),
            with_arrays(to, to,
                        SEND(in_array(to, x, y), in_memory(from, pitch), kind, engine_stream_handle(stream, own), true),
                        width, height))
CUDART_PAIR(cudaMemcpy2DFromArray, _ptds,
            (void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
             cudaMemcpyKind kind),
            with_arrays(from, from,
                        SEND(in_memory(to, pitch), in_array(from, x, y), kind, engine_stream_handle(NULL, own), false),
                        width, height))
CUDART_PAIR(cudaMemcpy2DFromArrayAsync, _ptsz,
            (void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
             cudaMemcpyKind kind, cudaStream_t stream),
            with_arrays(from, from,
                        SEND(in_memory(to, pitch), in_array(from, x, y), kind, engine_stream_handle(stream, own), true),
                        width, height))
CUDART_PAIR(cudaMemcpy2DArrayToArray, _ptds,
            (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x, size_t from_y, size_t width,
             size_t height, cudaMemcpyKind kind),
            with_arrays(to, from,
                        SEND(in_array(to, to_x, to_y), in_array(from, from_x, from_y), kind,
                             engine_stream_handle(NULL, own), false),
                        width, height))

/* ---- copies that go on from row to row ---- */

static cudaError_t copy_stretch(flat f, uint64_t bytes) {
  engine_side side;
  engine_box box = {.to = f.to, .from = f.from, .stream = f.stream, .async = f.async};
  if (!f.to.array && !f.from.array) return cudaErrorInvalidResourceHandle;
  cudaError_t error = check_kind(f.kind, f.to.array != NULL, f.from.array != NULL, &side);
  if (error) return error;
  *(box.to.array ? &box.from.side : &box.to.side) = side;
  return engine_stretch_run(&box, bytes);
}

static cudaError_t copy_between(flat f, uint64_t bytes) {
  return f.to.array && f.from.array ? copy_stretch(f, bytes) : cudaErrorInvalidResourceHandle;
}

CUDART_PAIR(cudaMemcpyToArray, _ptds,
            (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind),
            copy_stretch(SEND(in_array(to, x, y), in_memory(from, 0), kind, engine_stream_handle(NULL, own), false),
                         bytes))
CUDART_PAIR(cudaMemcpyToArrayAsync, _ptsz,
            (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind,
             cudaStream_t stream),
            copy_stretch(SEND(in_array(to, x, y), in_memory(from, 0), kind, engine_stream_handle(stream, own), true),
                         bytes))
CUDART_PAIR(cudaMemcpyFromArray, _ptds,
            (void *to, cudaArray_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind),
            copy_stretch(SEND(in_memory(to, 0), in_array(from, x, y), kind, engine_stream_handle(NULL, own), false),
                         bytes))
CUDART_PAIR(cudaMemcpyFromArrayAsync, _ptsz,
            (void *to, cudaArray_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
            copy_stretch(SEND(in_memory(to, 0), in_array(from, x, y), kind, engine_stream_handle(stream, own), true),
                         bytes))
CUDART_PAIR(cudaMemcpyArrayToArray, _ptds,
            (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x, size_t from_y, size_t bytes,
             cudaMemcpyKind kind),
            copy_between(SEND(in_array(to, to_x, to_y), in_array(from, from_x, from_y), kind,
                              engine_stream_handle(NULL, own), false),
                         bytes))
