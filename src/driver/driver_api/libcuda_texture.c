/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects of the driver API ("Texture Object Management", "Surface Object Management"): descriptors
 * become an engine_texture_spec and back. Unlike in the runtime, integers are read as normalised floats unless
 * CU_TRSF_READ_AS_INTEGER is set. */
#include <string.h>

#include "driver/driver_api/libcuda_array.h"

/* ---- to the engine ---- */

static CUresult set_resource(const CUDA_RESOURCE_DESC *d, engine_texture_spec *spec) {
  spec->resource = (engine_resource)d->resType;
  if (d->flags) return CUDA_ERROR_INVALID_VALUE;
  switch (d->resType) {
  case CU_RESOURCE_TYPE_ARRAY: spec->array = d->res.array.hArray; return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: spec->mipmap = d->res.mipmap.hMipmappedArray; return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_LINEAR:
    spec->address = d->res.linear.devPtr;
    spec->bytes = d->res.linear.sizeInBytes;
    return libcuda_format(d->res.linear.format, d->res.linear.numChannels, &spec->format);
  case CU_RESOURCE_TYPE_PITCH2D:
    spec->address = d->res.pitch2D.devPtr;
    spec->width = d->res.pitch2D.width;
    spec->height = d->res.pitch2D.height;
    spec->pitch = d->res.pitch2D.pitchInBytes;
    return libcuda_format(d->res.pitch2D.format, d->res.pitch2D.numChannels, &spec->format);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_sampler(const CUDA_TEXTURE_DESC *d, engine_texture_spec *spec) {
  exec_sampler *s = &spec->sampler;
  const unsigned kept = CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
  if ((unsigned)d->filterMode > 1 || (unsigned)d->mipmapFilterMode > 1) return CUDA_ERROR_INVALID_VALUE;
  if (d->flags & ~(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | kept))
    return CUDA_ERROR_INVALID_VALUE;
  for (int n = 0; n < 3; n++) s->mode[n] = (exec_address_mode)d->addressMode[n];
  s->linear = d->filterMode == 1;
  s->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
  s->as_float = !(d->flags & CU_TRSF_READ_AS_INTEGER);
  s->srgb = d->flags & CU_TRSF_SRGB;
  memcpy(s->border, d->borderColor, sizeof s->border);
  s->mip_linear = d->mipmapFilterMode == 1;
  s->bias = d->mipmapLevelBias;
  s->min_level = d->minMipmapLevelClamp;
  s->max_level = d->maxMipmapLevelClamp;
  spec->anisotropy = d->maxAnisotropy;
  spec->more = (d->flags & kept) >> 5; /* the runtime's numbers: 1, 2 */
  return CUDA_SUCCESS;
}

static void set_view(const CUDA_RESOURCE_VIEW_DESC *d, engine_texture_spec *spec) {
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

LIBCUDA_CALL(cuTexObjectCreate, (CUtexObject * object, const CUDA_RESOURCE_DESC *resource,
                                 const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)) {
  engine_texture_spec spec = {0};
  uint64_t handle;
  LIBCUDA_TRY(libcuda_enter());
  if (!object || !resource || !texture) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(set_resource(resource, &spec));
  LIBCUDA_TRY(set_sampler(texture, &spec));
  if (view) set_view(view, &spec);
  LIBCUDA_TRY(libcuda_result(engine_texture_create(&spec, &handle)));
  *object = handle;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuTexObjectDestroy, (CUtexObject object)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_texture_destroy(object, false));
}

/* ---- and back ---- */

static CUresult get_resource(CUDA_RESOURCE_DESC *out, uint64_t object, bool surface) {
  engine_texture_spec spec;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_texture_describe(object, surface, &spec)));
  memset(out, 0, sizeof *out);
  out->resType = (CUresourcetype)spec.resource;
  switch (out->resType) {
  case CU_RESOURCE_TYPE_ARRAY: out->res.array.hArray = spec.array; break;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: out->res.mipmap.hMipmappedArray = spec.mipmap; break;
  case CU_RESOURCE_TYPE_LINEAR:
    out->res.linear.devPtr = spec.address;
    out->res.linear.format = libcuda_format_number(spec.format);
    out->res.linear.numChannels = spec.format.channels;
    out->res.linear.sizeInBytes = spec.bytes;
    break;
  case CU_RESOURCE_TYPE_PITCH2D:
    out->res.pitch2D.devPtr = spec.address;
    out->res.pitch2D.format = libcuda_format_number(spec.format);
    out->res.pitch2D.numChannels = spec.format.channels;
    out->res.pitch2D.width = spec.width;
    out->res.pitch2D.height = spec.height;
    out->res.pitch2D.pitchInBytes = spec.pitch;
    break;
  }
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUtexObject object)) {
  return get_resource(out, object, false);
}
LIBCUDA_CALL(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC * out, CUsurfObject object)) {
  return get_resource(out, object, true);
}

LIBCUDA_CALL(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC * out, CUtexObject object)) {
  engine_texture_spec spec;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_texture_describe(object, false, &spec)));
  const exec_sampler *s = &spec.sampler;
  memset(out, 0, sizeof *out);
  for (int n = 0; n < 3; n++) out->addressMode[n] = (int)s->mode[n];
  out->filterMode = s->linear;
  out->flags = (s->as_float ? 0u : CU_TRSF_READ_AS_INTEGER) | (s->normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
               (s->srgb ? CU_TRSF_SRGB : 0u) | spec.more << 5;
  out->maxAnisotropy = spec.anisotropy;
  out->mipmapFilterMode = s->mip_linear;
  out->mipmapLevelBias = s->bias;
  out->minMipmapLevelClamp = s->min_level;
  out->maxMipmapLevelClamp = s->max_level;
  memcpy(out->borderColor, s->border, sizeof s->border);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC * out, CUtexObject object)) {
  engine_texture_spec spec;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_texture_describe(object, false, &spec)));
  if (!spec.viewed) return CUDA_ERROR_INVALID_VALUE;
  *out = (CUDA_RESOURCE_VIEW_DESC){.format = (int)spec.view.format,
                                   .width = spec.view.width,
                                   .height = spec.view.height,
                                   .depth = spec.view.depth,
                                   .firstMipmapLevel = spec.view.first_level,
                                   .lastMipmapLevel = spec.view.last_level,
                                   .firstLayer = spec.view.first_layer,
                                   .lastLayer = spec.view.last_layer};
  return CUDA_SUCCESS;
}

/* ---- surfaces, limits ---- */

LIBCUDA_CALL(cuSurfObjectCreate, (CUsurfObject * object, const CUDA_RESOURCE_DESC *resource)) {
  uint64_t handle;
  LIBCUDA_TRY(libcuda_enter());
  if (!object || !resource || resource->resType != CU_RESOURCE_TYPE_ARRAY || resource->flags)
    return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result(engine_surface_create(resource->res.array.hArray, &handle)));
  *object = handle;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuSurfObjectDestroy, (CUsurfObject object)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_texture_destroy(object, true));
}

LIBCUDA_CALL(cuDeviceGetTexture1DLinearMaxWidth,
             (size_t * texels, CUarray_format format, unsigned channels, CUdevice device)) {
  engine_format known;
  uint64_t most;
  LIBCUDA_TRY(libcuda_device(device));
  if (!texels) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_format(format, channels, &known));
  LIBCUDA_TRY(libcuda_result(engine_texture_linear_width(known, &most)));
  *texels = most;
  return CUDA_SUCCESS;
}
