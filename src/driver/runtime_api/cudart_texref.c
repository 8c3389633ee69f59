/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references of the runtime up to CUDA 11 ("Texture Reference Management [DEPRECATED]", "Surface
 * Reference Management [DEPRECATED]"): `texture<...>` and `surface<...>` variables of a program, which nvcc registers
 * before main.
 *
 * A reference becomes a texture object when something is bound to it, with the settings that the host variable has
 * then; its handle goes into the module's .texref variable. `all` has one entry per registered host variable,
 * found by its address. */
#include "base/forks.h"
#include "driver/runtime_api/cudart_array.h"

#if CUDART_MAJOR == 11
#include <pthread.h>
#include <string.h>

#include "base/memory.h"

typedef struct textureReference { /* the host variable */
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, reserved[14];
} textureReference;

typedef struct reference {
  const void *host;
  engine_variable *variable;
  bool surface, as_float;
  uint64_t handle; /* 0: nothing is bound */
  size_t offset;   /* of what was bound, from where its texture begins */
} reference;

static FF_VEC(reference) all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)

static reference *find(const void *host, bool surface) {
  for (size_t n = 0; host && n < all.count; n++)
    if (all.items[n].host == host && all.items[n].surface == surface) return &all.items[n];
  return NULL;
}

static void add(void **handle, const void *host, const char *name, bool surface, bool as_float) {
  engine_variable *variable = engine_variable_declare((engine_module *)handle, name, 0);
  if (!variable || !host) return;
  pthread_mutex_lock(&lock);
  reference *known = find(host, surface),
            made = {.host = host, .variable = variable, .surface = surface, .as_float = as_float};
  if (known) *known = made;
  else FF_PUSH(&all, made);
  pthread_mutex_unlock(&lock);
}

void __cudaRegisterTexture(void **handle, const textureReference *host, const void **device, const char *name,
                           int dimensions, int normalized, int external);
void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dimensions,
                           int external);
CUDART_API void __cudaRegisterTexture(void **handle, const textureReference *host, const void **device,
                                      const char *name, int dimensions, int normalized, int external) {
  add(handle, host, name, false, normalized != 0);
}
CUDART_API void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name,
                                      int dimensions, int external) {
  add(handle, host, name, true, false);
}

/* ---- binding; with the lock ---- */

static cudaError_t attach(reference *r, uint64_t handle) {
  uint64_t cell, bytes;
  cudaError_t error = engine_variable_address(r->variable, &cell, &bytes);
  if (!error) error = engine_texture_bind(cell, handle);
  if (error) {
    if (handle) engine_texture_destroy(handle, r->surface);
    return error;
  }
  if (r->handle) engine_texture_destroy(r->handle, r->surface);
  r->handle = handle;
  return cudaSuccess;
}

static void settings(const textureReference *t, bool as_float, exec_sampler *s) {
  for (int d = 0; d < 3; d++) s->mode[d] = (exec_address_mode)t->addressMode[d];
  s->linear = t->filterMode == cudaFilterModeLinear;
  s->normalized = t->normalized != 0;
  s->as_float = as_float;
  s->srgb = t->sRGB != 0;
  s->mip_linear = t->mipmapFilterMode == cudaFilterModeLinear;
  s->bias = t->mipmapLevelBias;
  s->min_level = t->minMipmapLevelClamp;
  s->max_level = t->maxMipmapLevelClamp;
}

/* Binds what `spec` says of the resource; linear memory may begin between two places where a texture can, if the caller
 * takes the offset. */
static cudaError_t bind(const textureReference *host, engine_texture_spec spec, size_t *offset) {
  uint64_t handle, behind = spec.resource >= ENGINE_RESOURCE_LINEAR ? spec.address % 512 : 0;
  if (behind && !offset) return cudaErrorInvalidValue;
  pthread_mutex_lock(&lock);
  reference *r = find(host, false);
  cudaError_t error = r ? cudaSuccess : cudaErrorInvalidTexture;
  if (!error) {
    settings(host, r->as_float, &spec.sampler);
    spec.address -= behind;
    spec.bytes += behind;
    error = engine_texture_create(&spec, &handle);
  }
  if (!error) error = attach(r, handle);
  if (!error) r->offset = behind;
  if (!error && offset) *offset = behind;
  pthread_mutex_unlock(&lock);
  return error;
}

static cudaError_t bind_linear(size_t *offset, const textureReference *host, const void *address,
                               const cudaChannelFormatDesc *desc, size_t bytes) {
  engine_texture_spec spec = {.resource = ENGINE_RESOURCE_LINEAR, .address = (uint64_t)(uintptr_t)address};
  cudaError_t error = cudart_format(desc, &spec.format);
  if (!error) error = engine_start();
  if (error) return error;
  engine_pointer pointer = engine_pointer_find(spec.address); /* the default size, UINT_MAX, is "to its end" */
  uint64_t room = pointer.memory == ENGINE_PAGEABLE ? 0 : pointer.bytes - (spec.address - pointer.address);
  spec.bytes = bytes >= UINT32_MAX && bytes > room ? room : bytes;
  return bind(host, spec, offset);
}

static cudaError_t bind_pitched(size_t *offset, const textureReference *host, const void *address,
                                const cudaChannelFormatDesc *desc, size_t width, size_t height, size_t pitch) {
  engine_texture_spec spec = {.resource = ENGINE_RESOURCE_PITCH,
                              .address = (uint64_t)(uintptr_t)address,
                              .width = width,
                              .height = height,
                              .pitch = pitch};
  cudaError_t error = cudart_format(desc, &spec.format);
  return error ? error : bind(host, spec, offset);
}

#define DEFINE(NAME, PARAMETERS, EXPRESSION) \
  cudaError_t NAME PARAMETERS;               \
  CUDART_API cudaError_t NAME PARAMETERS { return engine_return(EXPRESSION); }

DEFINE(cudaBindTexture,
       (size_t * offset, const textureReference *host, const void *address, const cudaChannelFormatDesc *desc,
        size_t bytes),
       bind_linear(offset, host, address, desc, bytes))
DEFINE(cudaBindTexture2D,
       (size_t * offset, const textureReference *host, const void *address, const cudaChannelFormatDesc *desc,
        size_t width, size_t height, size_t pitch),
       bind_pitched(offset, host, address, desc, width, height, pitch))
DEFINE(cudaBindTextureToArray, (const textureReference *host, cudaArray_t array, const cudaChannelFormatDesc *desc),
       bind(host, (engine_texture_spec){.resource = ENGINE_RESOURCE_ARRAY, .array = (engine_array *)array}, NULL))
DEFINE(cudaBindTextureToMipmappedArray,
       (const textureReference *host, cudaMipmappedArray_t mipmap, const cudaChannelFormatDesc *desc),
       bind(host, (engine_texture_spec){.resource = ENGINE_RESOURCE_MIPMAP, .mipmap = (engine_mipmap *)mipmap}, NULL))

static cudaError_t unbind(const textureReference *host) {
  pthread_mutex_lock(&lock);
  reference *r = find(host, false);
  cudaError_t error = !r ? cudaErrorInvalidTexture : r->handle ? attach(r, 0) : cudaSuccess;
  pthread_mutex_unlock(&lock);
  return error;
}
DEFINE(cudaUnbindTexture, (const textureReference *host), unbind(host))

static cudaError_t alignment_offset(size_t *offset, const textureReference *host) {
  if (!offset) return cudaErrorInvalidValue;
  pthread_mutex_lock(&lock);
  const reference *r = find(host, false);
  cudaError_t error = !r ? cudaErrorInvalidTexture : !r->handle ? cudaErrorInvalidTextureBinding : cudaSuccess;
  if (!error) *offset = r->offset;
  pthread_mutex_unlock(&lock);
  return error;
}
DEFINE(cudaGetTextureAlignmentOffset, (size_t * offset, const textureReference *host), alignment_offset(offset, host))

static cudaError_t bind_surface(const void *host, cudaArray_t array) {
  uint64_t handle;
  pthread_mutex_lock(&lock);
  reference *r = find(host, true);
  cudaError_t error = r ? engine_surface_create((engine_array *)array, &handle) : cudaErrorInvalidValue;
  if (!error) error = attach(r, handle);
  pthread_mutex_unlock(&lock);
  return error;
}
DEFINE(cudaBindSurfaceToArray, (const void *host, cudaArray_t array, const cudaChannelFormatDesc *desc),
       bind_surface(host, array))

/* The host variable is the reference. */
static cudaError_t same(const void **out, const void *symbol, bool surface) {
  if (!out) return cudaErrorInvalidValue;
  pthread_mutex_lock(&lock);
  bool known = find(symbol, surface) != NULL;
  pthread_mutex_unlock(&lock);
  if (known) *out = symbol;
  return known ? cudaSuccess : surface ? cudaErrorInvalidValue : cudaErrorInvalidTexture;
}
DEFINE(cudaGetTextureReference, (const textureReference **out, const void *symbol),
       same((const void **)out, symbol, false))
DEFINE(cudaGetSurfaceReference, (const void **out, const void *symbol), same(out, symbol, true))
#endif
