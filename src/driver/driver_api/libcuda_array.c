/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays of the driver API ("Memory Management": cuArray..., cuMipmappedArray...). Copies:
 * libcuda_copy.c. */
#include <string.h>

#include "driver/driver_api/libcuda_array.h"
#include "driver/private_runtimes/private_runtimes.h"

static const struct {
  CUarray_format number;
  exec_texel_type type;
} formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, EXEC_TEXEL_U8},   {CU_AD_FORMAT_UNSIGNED_INT16, EXEC_TEXEL_U16},
               {CU_AD_FORMAT_UNSIGNED_INT32, EXEC_TEXEL_U32}, {CU_AD_FORMAT_SIGNED_INT8, EXEC_TEXEL_S8},
               {CU_AD_FORMAT_SIGNED_INT16, EXEC_TEXEL_S16},   {CU_AD_FORMAT_SIGNED_INT32, EXEC_TEXEL_S32},
               {CU_AD_FORMAT_HALF, EXEC_TEXEL_F16},           {CU_AD_FORMAT_FLOAT, EXEC_TEXEL_F32}};

/* Planar and 10-bit formats of the manual. */
static bool known_elsewhere(unsigned number) { return number == 0x50 || (number >= 0x9f && number <= 0xb5); }

CUresult libcuda_format(CUarray_format format, unsigned channels, engine_format *out) {
  if (known_elsewhere((unsigned)format))
    return libcuda_result(engine_format_refused("planar and 10-bit array formats"));
  if (engine_format_numbered((unsigned)format, out))
    return channels == engine_format_channels(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (size_t n = 0; n < sizeof formats / sizeof *formats; n++)
    if (formats[n].number == format && (channels == 1 || channels == 2 || channels == 4)) {
      *out = (engine_format){.type = formats[n].type, .channels = channels};
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUarray_format libcuda_format_number(engine_format format) {
  unsigned number = engine_format_number(format);
  if (number) return (CUarray_format)number;
  size_t n = 0;
  while (formats[n].type != format.type) n++;
  return formats[n].number;
}

/* ---- arrays ---- */

static CUresult create(CUarray *array, size_t width, size_t height, size_t depth, CUarray_format format,
                       unsigned channels, unsigned flags, const char *call) {
  engine_array_shape shape = {.width = width, .height = height, .depth = depth, .flags = flags};
  LIBCUDA_TRY(libcuda_enter());
  if (!array) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_format(format, channels, &shape.format));
  return libcuda_result(engine_array_create(&shape, call, array));
}

LIBCUDA_CALL(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *d)) {
  return d ? create(array, d->Width, d->Height, 0, d->Format, d->NumChannels, 0,
                    private_call_name("cuArrayCreate", "cudaMallocArray"))
           : CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *d)) {
  return d ? create(array, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags,
                    private_call_name("cuArray3DCreate", d->Depth ? "cudaMalloc3DArray" : "cudaMallocArray"))
           : CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuArrayDestroy, (CUarray array)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_array_destroy(array));
}

LIBCUDA_CALL(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray array)) {
  engine_array_shape shape;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_array_describe(array, &shape)));
  *out = (CUDA_ARRAY3D_DESCRIPTOR){.Width = shape.width,
                                   .Height = shape.height,
                                   .Depth = shape.depth,
                                   .Format = libcuda_format_number(shape.format),
                                   .NumChannels = engine_format_channels(shape.format),
                                   .Flags = shape.flags};
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * out, CUarray array)) {
  engine_array_shape shape;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_array_describe(array, &shape)));
  *out = (CUDA_ARRAY_DESCRIPTOR){.Width = shape.width,
                                 .Height = shape.height,
                                 .Format = libcuda_format_number(shape.format),
                                 .NumChannels = engine_format_channels(shape.format)};
  return CUDA_SUCCESS;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, cudaError_t error, uint64_t bytes, uint64_t alignment,
                             CUdevice device) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(error));
  *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = bytes, .alignment = alignment};
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS * out, CUarray array, CUdevice device)) {
  uint64_t bytes = 0, alignment = 0;
  LIBCUDA_TRY(libcuda_enter());
  cudaError_t error = engine_array_memory(array, &bytes, &alignment);
  return requirements(out, error, bytes, alignment, device);
}

/* Formats of several planes (NV12) are not there, and of an array with one plane there is none to be had. */
LIBCUDA_CALL(cuArrayGetPlane, (CUarray * plane, CUarray array, unsigned index)) {
  uint64_t bytes = 0, alignment = 0;
  (void)index;
  LIBCUDA_TRY(libcuda_enter());
  LIBCUDA_TRY(libcuda_result(plane ? engine_array_memory(array, &bytes, &alignment) : cudaErrorInvalidValue));
  return CUDA_ERROR_INVALID_VALUE;
}

/* ---- mipmapped arrays ---- */

LIBCUDA_CALL(cuMipmappedArrayCreate, (CUmipmappedArray * mipmap, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!mipmap || !d) return CUDA_ERROR_INVALID_VALUE;
  engine_array_shape shape = {.width = d->Width, .height = d->Height, .depth = d->Depth, .flags = d->Flags};
  LIBCUDA_TRY(libcuda_format(d->Format, d->NumChannels, &shape.format));
  return libcuda_result(engine_mipmap_create(
      &shape, levels, private_call_name("cuMipmappedArrayCreate", "cudaMallocMipmappedArray"), mipmap));
}

LIBCUDA_CALL(cuMipmappedArrayGetLevel, (CUarray * array, CUmipmappedArray mipmap, unsigned level)) {
  LIBCUDA_TRY(libcuda_enter());
  return array ? libcuda_result(engine_mipmap_level(mipmap, level, array)) : CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_mipmap_destroy(mipmap));
}

LIBCUDA_CALL(cuMipmappedArrayGetMemoryRequirements,
             (CUDA_ARRAY_MEMORY_REQUIREMENTS * out, CUmipmappedArray mipmap, CUdevice device)) {
  uint64_t bytes = 0, alignment = 0;
  LIBCUDA_TRY(libcuda_enter());
  cudaError_t error = engine_mipmap_memory(mipmap, &bytes, &alignment);
  return requirements(out, error, bytes, alignment, device);
}
