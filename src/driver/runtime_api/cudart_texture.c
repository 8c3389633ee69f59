/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects of the CUDA runtime (CUDA Runtime API, "Texture Object Management", "Surface Object
 * Management"): the descriptors become an engine_texture_spec and back. */
#include <string.h>

#include "driver/runtime_api/cudart_array.h"

enum { MORE_UNOPTIMIZED = 1, MORE_SEAMLESS = 2 }; /* engine_texture_spec.more */

/* ---- to the engine ---- */

static cudaError_t set_resource(const cudaResourceDesc *d, engine_texture_spec *spec) {
  spec->resource = (engine_resource)d->resType;
  switch (d->resType) {
  case cudaResourceTypeArray: spec->array = (engine_array *)d->res.array.array; return cudaSuccess;
  case cudaResourceTypeMipmappedArray: spec->mipmap = (engine_mipmap *)d->res.mipmap.mipmap; return cudaSuccess;
  case cudaResourceTypeLinear:
    spec->address = (uint64_t)(uintptr_t)d->res.linear.devPtr;
    spec->bytes = d->res.linear.sizeInBytes;
    return cudart_format(&d->res.linear.desc, &spec->format);
  case cudaResourceTypePitch2D:
    spec->address = (uint64_t)(uintptr_t)d->res.pitch2D.devPtr;
    spec->width = d->res.pitch2D.width;
    spec->height = d->res.pitch2D.height;
    spec->pitch = d->res.pitch2D.pitchInBytes;
    return cudart_format(&d->res.pitch2D.desc, &spec->format);
  }
  return cudaErrorInvalidValue;
}

/* Whether a caller's cudaTextureDesc has its last field; CUDA 11 has calls of both kinds. */
enum { WITH_SEAMLESS = true, OF_THIS_MAJOR = CUDART_MAJOR >= 12 };

static cudaError_t set_sampler(const cudaTextureDesc *d, bool whole, engine_texture_spec *spec) {
  exec_sampler *s = &spec->sampler;
  if ((unsigned)d->filterMode > cudaFilterModeLinear || (unsigned)d->mipmapFilterMode > cudaFilterModeLinear ||
      (unsigned)d->readMode > cudaReadModeNormalizedFloat)
    return cudaErrorInvalidValue;
  for (int n = 0; n < 3; n++) s->mode[n] = (exec_address_mode)d->addressMode[n];
  s->linear = d->filterMode == cudaFilterModeLinear;
  s->normalized = d->normalizedCoords != 0;
  s->as_float = d->readMode == cudaReadModeNormalizedFloat;
  s->srgb = d->sRGB != 0;
  memcpy(s->border, d->borderColor, sizeof s->border);
  s->mip_linear = d->mipmapFilterMode == cudaFilterModeLinear;
  s->bias = d->mipmapLevelBias;
  s->min_level = d->minMipmapLevelClamp;
  s->max_level = d->maxMipmapLevelClamp;
  spec->anisotropy = d->maxAnisotropy;
  spec->more = d->disableTrilinearOptimization ? MORE_UNOPTIMIZED : 0;
  if (whole && d->seamlessCubemap) spec->more |= MORE_SEAMLESS;
  return cudaSuccess;
}

/* The format that is read of an array, a mipmap or linear memory. */
static cudaError_t format_of(const engine_texture_spec *spec, engine_format *format) {
  engine_array_shape shape;
  engine_array *array = spec->array;
  cudaError_t error = cudaSuccess;
  *format = spec->format;
  if (spec->resource == ENGINE_RESOURCE_MIPMAP) error = engine_mipmap_level(spec->mipmap, 0, &array);
  else if (spec->resource != ENGINE_RESOURCE_ARRAY) return cudaSuccess;
  if (!error) error = engine_array_describe(array, &shape);
  if (!error) *format = shape.format;
  return error;
}

/* NVIDIA's runtime wants floats to filter, and integers of 8 or 16 bits to read as a fraction
 * (tests/programs/private_runtimes.c). */
static cudaError_t check_reading(const engine_texture_spec *spec) {
  engine_format format;
  cudaError_t error = format_of(spec, &format);
  if (error) return error;
  cudaChannelFormatDesc desc = cudart_channel_desc(format);
  bool integer = desc.f == cudaChannelFormatKindSigned || desc.f == cudaChannelFormatKindUnsigned;
  bool wide = desc.f == cudaChannelFormatKindFloat || (integer && desc.x == 32);
  if (spec->sampler.linear && integer && (!spec->sampler.as_float || wide)) return cudaErrorInvalidFilterSetting;
  return spec->sampler.as_float && wide ? cudaErrorInvalidNormSetting : cudaSuccess;
}

static void set_view(const cudaResourceViewDesc *d, engine_texture_spec *spec) {
  spec->viewed = true;
  spec->view = (engine_view){.format = (unsigned)d->format,
                             .width = d->width,
                             .height = d->height,
                             .depth = d->depth,
                             .first_level = d->firstMipmapLevel,
                             .last_level = d->lastMipmapLevel,
                             .first_layer = d->firstLayer,
                             .last_layer = d->lastLayer};
}

static cudaError_t create(cudaTextureObject_t *object, const cudaResourceDesc *resource, const cudaTextureDesc *texture,
                          bool whole, const cudaResourceViewDesc *view) {
  engine_texture_spec spec = {0};
  uint64_t handle;
  if (!object || !resource || !texture) return cudaErrorInvalidValue;
  cudaError_t error = set_resource(resource, &spec);
  if (!error) error = set_sampler(texture, whole, &spec);
  if (!error && view) set_view(view, &spec);
  if (!error && !view) error = check_reading(&spec);
  if (!error) error = engine_texture_create(&spec, &handle);
  if (!error) *object = handle;
  return error;
}

CUDART_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                               const cudaTextureDesc *texture, const cudaResourceViewDesc *view) {
  return engine_return(create(object, resource, texture, OF_THIS_MAJOR, view));
}
#if CUDART_MAJOR == 11
cudaError_t cudaCreateTextureObject_v2(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                       const cudaTextureDesc *texture, const cudaResourceViewDesc *view);
cudaError_t cudaGetTextureObjectTextureDesc_v2(cudaTextureDesc *out, cudaTextureObject_t object);
CUDART_API cudaError_t cudaCreateTextureObject_v2(cudaTextureObject_t *object, const cudaResourceDesc *resource,
                                                  const cudaTextureDesc *texture, const cudaResourceViewDesc *view) {
  return engine_return(create(object, resource, texture, WITH_SEAMLESS, view));
}
#endif

CUDART_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return engine_return(object ? engine_texture_destroy(object, false) : engine_start());
}

/* ---- and back ---- */

static cudaError_t get_resource(cudaResourceDesc *out, uint64_t object, bool surface) {
  engine_texture_spec spec;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_texture_describe(object, surface, &spec);
  if (error) return error;
  memset(out, 0, sizeof *out);
  out->resType = (cudaResourceType)spec.resource;
  switch (out->resType) {
  case cudaResourceTypeArray: out->res.array.array = (cudaArray_t)spec.array; break;
  case cudaResourceTypeMipmappedArray: out->res.mipmap.mipmap = (cudaMipmappedArray_t)spec.mipmap; break;
  case cudaResourceTypeLinear:
    out->res.linear.devPtr = (void *)(uintptr_t)spec.address;
    out->res.linear.desc = cudart_channel_desc(spec.format);
    out->res.linear.sizeInBytes = spec.bytes;
    break;
  case cudaResourceTypePitch2D:
    out->res.pitch2D.devPtr = (void *)(uintptr_t)spec.address;
    out->res.pitch2D.desc = cudart_channel_desc(spec.format);
    out->res.pitch2D.width = spec.width;
    out->res.pitch2D.height = spec.height;
    out->res.pitch2D.pitchInBytes = spec.pitch;
    break;
  }
  return cudaSuccess;
}

static cudaError_t get_sampler(cudaTextureDesc *out, bool whole, uint64_t object) {
  engine_texture_spec spec;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_texture_describe(object, false, &spec);
  if (error) return error;
  const exec_sampler *s = &spec.sampler;
  for (int n = 0; n < 3; n++) out->addressMode[n] = (cudaTextureAddressMode)s->mode[n];
  out->filterMode = s->linear ? cudaFilterModeLinear : cudaFilterModePoint;
  out->readMode = s->as_float ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  out->sRGB = s->srgb;
  memcpy(out->borderColor, s->border, sizeof s->border);
  out->normalizedCoords = s->normalized;
  out->maxAnisotropy = spec.anisotropy;
  out->mipmapFilterMode = s->mip_linear ? cudaFilterModeLinear : cudaFilterModePoint;
  out->mipmapLevelBias = s->bias;
  out->minMipmapLevelClamp = s->min_level;
  out->maxMipmapLevelClamp = s->max_level;
  out->disableTrilinearOptimization = (spec.more & MORE_UNOPTIMIZED) != 0;
  if (whole) out->seamlessCubemap = (spec.more & MORE_SEAMLESS) != 0;
  return cudaSuccess;
}

static cudaError_t get_view(cudaResourceViewDesc *out, uint64_t object) {
  engine_texture_spec spec;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = engine_texture_describe(object, false, &spec);
  if (error) return error;
  if (!spec.viewed) return cudaErrorInvalidValue;
  *out = (cudaResourceViewDesc){.format = (int)spec.view.format,
                                .width = spec.view.width,
                                .height = spec.view.height,
                                .depth = spec.view.depth,
                                .firstMipmapLevel = spec.view.first_level,
                                .lastMipmapLevel = spec.view.last_level,
                                .firstLayer = spec.view.first_layer,
                                .lastLayer = spec.view.last_layer};
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *out, cudaTextureObject_t object) {
  return engine_return(get_resource(out, object, false));
}
CUDART_API cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *out, cudaTextureObject_t object) {
  return engine_return(get_sampler(out, OF_THIS_MAJOR, object));
}
#if CUDART_MAJOR == 11
CUDART_API cudaError_t cudaGetTextureObjectTextureDesc_v2(cudaTextureDesc *out, cudaTextureObject_t object) {
  return engine_return(get_sampler(out, WITH_SEAMLESS, object));
}
#endif
CUDART_API cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc *out, cudaTextureObject_t object) {
  return engine_return(get_view(out, object));
}
CUDART_API cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *out, cudaSurfaceObject_t object) {
  return engine_return(get_resource(out, object, true));
}

/* ---- surfaces ---- */

CUDART_API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const cudaResourceDesc *resource) {
  uint64_t handle;
  if (!object || !resource || resource->resType != cudaResourceTypeArray) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_surface_create((engine_array *)resource->res.array.array, &handle);
  if (!error) *object = handle;
  return engine_return(error);
}

CUDART_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return engine_return(object ? engine_texture_destroy(object, true) : engine_start());
}

/* ---- limits ---- */

CUDART_API cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *texels, const cudaChannelFormatDesc *desc,
                                                            int device) {
  engine_format format;
  uint64_t most;
  if (!texels) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = cudart_format(desc, &format);
  if (!error) error = engine_texture_linear_width(format, &most);
  if (!error && !cudart_is_device(device)) error = cudaErrorInvalidDevice;
  if (!error) *texels = most;
  return engine_return(error);
}
