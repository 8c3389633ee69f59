/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references of modules (Driver API, "Texture Reference Management [DEPRECATED]"): what kernels
 * name as .texref and .surfref variables.
 *
 * A reference is a texture object that follows its settings: every change makes a new object and writes its handle into
 * the variable. While the settings do not fit together (a filter set before the format that it needs), nothing is
 * bound, and a kernel that fetches faults. What always holds: a reference is looked up in the list before it is
 * followed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/driver_api/libcuda_array.h"

typedef struct reference {
  engine_module *module; /* NULL: made by cuTexRefCreate */
  uint64_t cell;         /* the variable's address; 0 likewise */
  bool surface, bound;
  engine_texture_spec spec;
  uint64_t handle; /* 0: none */
  struct reference *next;
} reference;
typedef reference *CUtexref, *CUsurfref;

static reference *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)

/* ---- finding ---- */

static reference *add(engine_module *module, uint64_t cell, bool surface) {
  reference *made = ff_alloc(sizeof *made);
  *made = (reference){.module = module, .cell = cell, .surface = surface, .next = all};
  for (int n = 0; n < 3; n++) made->spec.sampler.mode[n] = EXEC_ADDRESS_CLAMP;
  made->spec.sampler.as_float = true;
  made->spec.format = (engine_format){.type = EXEC_TEXEL_F32, .channels = 1};
  made->spec.anisotropy = 1;
  return all = made;
}

/* CUDA_SUCCESS with the lock held: the reference is one of ours. */
static CUresult enter(const reference *wanted, bool surface) {
  LIBCUDA_TRY(libcuda_enter());
  pthread_mutex_lock(&lock);
  for (const reference *r = all; r; r = r->next)
    if (r == wanted && r->surface == surface) return CUDA_SUCCESS;
  pthread_mutex_unlock(&lock);
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult leave(CUresult result) {
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult of_module(reference **out, engine_module *module, const char *name, bool surface) {
  engine_variable *variable;
  uint64_t cell, bytes;
  LIBCUDA_TRY(libcuda_enter());
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_variable_find(module, name, &variable)));
  LIBCUDA_TRY(libcuda_result(engine_variable_address(variable, &cell, &bytes)));
  if (!engine_texture_is_cell(cell)) return CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&lock);
  reference *found = all;
  while (found && (found->module != module || found->cell != cell || found->surface != surface)) found = found->next;
  *out = found ? found : add(module, cell, surface);
  return leave(CUDA_SUCCESS);
}

LIBCUDA_CALL(cuModuleGetTexRef, (CUtexref * out, CUmodule module, const char *name)) {
  return of_module(out, module, name, false);
}
LIBCUDA_CALL(cuModuleGetSurfRef, (CUsurfref * out, CUmodule module, const char *name)) {
  return of_module(out, module, name, true);
}

LIBCUDA_CALL(cuTexRefCreate, (CUtexref * out)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  *out = add(NULL, 0, false);
  return leave(CUDA_SUCCESS);
}

/* ---- binding ---- */

static CUresult make(reference *r, uint64_t *handle) {
  return libcuda_result(r->surface ? engine_surface_create(r->spec.array, handle)
                                   : engine_texture_create(&r->spec, handle));
}

/* The settings have changed. */
static CUresult update(reference *r) {
  uint64_t handle = 0;
  CUresult result = r->bound ? make(r, &handle) : CUDA_SUCCESS;
  if (r->handle) engine_texture_destroy(r->handle, r->surface);
  r->handle = result == CUDA_SUCCESS ? handle : 0;
  if (r->cell) LIBCUDA_TRY(libcuda_result(engine_texture_bind(r->cell, r->handle)));
  return result;
}

LIBCUDA_CALL(cuTexRefDestroy, (CUtexref wanted)) {
  LIBCUDA_TRY(enter(wanted, false));
  if (wanted->module) return leave(CUDA_ERROR_INVALID_VALUE);
  reference **at = &all;
  while (*at != wanted) at = &(*at)->next;
  *at = wanted->next;
  if (wanted->handle) engine_texture_destroy(wanted->handle, false);
  free(wanted);
  return leave(CUDA_SUCCESS);
}

LIBCUDA_CALL(cuTexRefSetArray, (CUtexref r, CUarray array, unsigned flags)) {
  engine_array_shape shape;
  LIBCUDA_TRY(enter(r, false));
  CUresult result = libcuda_result(engine_array_describe(array, &shape));
  if (result != CUDA_SUCCESS) return leave(result);
  r->spec.resource = ENGINE_RESOURCE_ARRAY;
  r->spec.array = array;
  r->spec.format = shape.format;
  r->bound = true;
  return leave(update(r));
}

LIBCUDA_CALL(cuTexRefSetMipmappedArray, (CUtexref r, CUmipmappedArray mipmap, unsigned flags)) {
  engine_array *base;
  engine_array_shape shape;
  LIBCUDA_TRY(enter(r, false));
  CUresult result = libcuda_result(engine_mipmap_level(mipmap, 0, &base));
  if (result == CUDA_SUCCESS) result = libcuda_result(engine_array_describe(base, &shape));
  if (result != CUDA_SUCCESS) return leave(result);
  r->spec.resource = ENGINE_RESOURCE_MIPMAP;
  r->spec.mipmap = mipmap;
  r->spec.format = shape.format;
  r->bound = true;
  update(r); /* may still wait for normalised coordinates */
  return leave(CUDA_SUCCESS);
}

#define ALIGNMENT 512u /* cudaDeviceProp.textureAlignment */

LIBCUDA_CALL(cuTexRefSetAddress_v2, (size_t * offset, CUtexref r, CUdeviceptr address, size_t bytes)) {
  LIBCUDA_TRY(enter(r, false));
  uint64_t behind = address % ALIGNMENT;
  if (bytes && behind && !offset) return leave(CUDA_ERROR_INVALID_VALUE);
  r->spec.resource = ENGINE_RESOURCE_LINEAR;
  r->spec.address = address - behind;
  r->spec.bytes = bytes + behind;
  r->bound = bytes != 0;
  if (offset) *offset = behind;
  return leave(update(r));
}

static CUresult set_address_2d(CUtexref r, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr address, size_t pitch) {
  LIBCUDA_TRY(enter(r, false));
  engine_format format;
  CUresult result = d ? libcuda_format(d->Format, d->NumChannels, &format) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return leave(result);
  r->spec.resource = ENGINE_RESOURCE_PITCH;
  r->spec.format = format;
  r->spec.address = address;
  r->spec.width = d->Width;
  r->spec.height = d->Height;
  r->spec.pitch = pitch;
  r->bound = true;
  return leave(update(r));
}
LIBCUDA_CALL(cuTexRefSetAddress2D_v2, (CUtexref r, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr address, size_t pitch)) {
  return set_address_2d(r, d, address, pitch);
}
LIBCUDA_CALL(cuTexRefSetAddress2D_v3, (CUtexref r, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr address, size_t pitch)) {
  return set_address_2d(r, d, address, pitch);
}

LIBCUDA_CALL(cuSurfRefSetArray, (CUsurfref r, CUarray array, unsigned flags)) {
  LIBCUDA_TRY(enter(r, true));
  if (flags) return leave(CUDA_ERROR_INVALID_VALUE);
  r->spec.array = array;
  r->bound = true;
  return leave(update(r));
}

LIBCUDA_CALL(cuSurfRefGetArray, (CUarray * out, CUsurfref r)) {
  LIBCUDA_TRY(enter(r, true));
  if (!out || !r->bound) return leave(CUDA_ERROR_INVALID_VALUE);
  *out = r->spec.array;
  return leave(CUDA_SUCCESS);
}

/* ---- settings: SETTING(Name, (parameters), condition, assignment) ---- */

#define SETTING(NAME, PARAMETERS, GOOD, ASSIGN)          \
  LIBCUDA_CALL(cuTexRefSet##NAME, PARAMETERS) {          \
    LIBCUDA_TRY(enter(r, false));                        \
    exec_sampler *s = &r->spec.sampler;                  \
    (void)s;                                             \
    if (!(GOOD)) return leave(CUDA_ERROR_INVALID_VALUE); \
    ASSIGN;                                              \
    update(r);                                           \
    return leave(CUDA_SUCCESS);                          \
  }

SETTING(AddressMode, (CUtexref r, int dimension, int mode),
        dimension >= 0 && dimension < 3 && (unsigned)mode <= EXEC_ADDRESS_BORDER,
        s->mode[dimension] = (exec_address_mode)mode)
SETTING(FilterMode, (CUtexref r, int mode), (unsigned)mode <= 1, s->linear = mode)
SETTING(MipmapFilterMode, (CUtexref r, int mode), (unsigned)mode <= 1, s->mip_linear = mode)
SETTING(MipmapLevelBias, (CUtexref r, float bias), true, s->bias = bias)
SETTING(MipmapLevelClamp, (CUtexref r, float least, float most), true, (s->min_level = least, s->max_level = most))
SETTING(MaxAnisotropy, (CUtexref r, unsigned most), true, r->spec.anisotropy = most)
SETTING(BorderColor, (CUtexref r, const float *color), color, memcpy(s->border, color, sizeof s->border))
SETTING(Flags, (CUtexref r, unsigned flags), true,
        (s->as_float = !(flags & CU_TRSF_READ_AS_INTEGER), s->normalized = flags & CU_TRSF_NORMALIZED_COORDINATES,
         s->srgb = flags & CU_TRSF_SRGB))

LIBCUDA_CALL(cuTexRefSetFormat, (CUtexref r, CUarray_format format, int channels)) {
  engine_format known;
  LIBCUDA_TRY(enter(r, false));
  CUresult result = libcuda_format(format, (unsigned)channels, &known);
  if (result == CUDA_SUCCESS && (!r->bound || r->spec.resource >= ENGINE_RESOURCE_LINEAR)) {
    r->spec.format = known;
    update(r);
  }
  return leave(result);
}

/* ---- questions ---- */

#define QUESTION(NAME, PARAMETERS, GOOD, ANSWER)         \
  LIBCUDA_CALL(cuTexRefGet##NAME, PARAMETERS) {          \
    LIBCUDA_TRY(enter(r, false));                        \
    const exec_sampler *s = &r->spec.sampler;            \
    (void)s;                                             \
    if (!(GOOD)) return leave(CUDA_ERROR_INVALID_VALUE); \
    ANSWER;                                              \
    return leave(CUDA_SUCCESS);                          \
  }

QUESTION(AddressMode, (int *out, CUtexref r, int dimension), out &&dimension >= 0 && dimension < 3,
         *out = (int)s->mode[dimension])
QUESTION(FilterMode, (int *out, CUtexref r), out, *out = s->linear)
QUESTION(MipmapFilterMode, (int *out, CUtexref r), out, *out = s->mip_linear)
QUESTION(MipmapLevelBias, (float *out, CUtexref r), out, *out = s->bias)
QUESTION(MipmapLevelClamp, (float *least, float *most, CUtexref r), least &&most,
         (*least = s->min_level, *most = s->max_level))
QUESTION(MaxAnisotropy, (int *out, CUtexref r), out, *out = (int)r->spec.anisotropy)
QUESTION(BorderColor, (float *out, CUtexref r), out, memcpy(out, s->border, sizeof s->border))
QUESTION(Flags, (unsigned *out, CUtexref r), out,
         *out = (s->as_float ? 0u : CU_TRSF_READ_AS_INTEGER) | (s->normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
                (s->srgb ? CU_TRSF_SRGB : 0u))
QUESTION(Format, (CUarray_format * format, int *channels, CUtexref r), true,
         (format ? (void)(*format = libcuda_format_number(r->spec.format)) : (void)0,
          channels ? (void)(*channels = (int)r->spec.format.channels) : (void)0))
QUESTION(Array, (CUarray * out, CUtexref r), out && r->bound && r->spec.resource == ENGINE_RESOURCE_ARRAY,
         *out = r->spec.array)
QUESTION(MipmappedArray, (CUmipmappedArray * out, CUtexref r),
         out && r->bound && r->spec.resource == ENGINE_RESOURCE_MIPMAP, *out = r->spec.mipmap)
QUESTION(Address_v2, (CUdeviceptr * out, CUtexref r), out && r->bound && r->spec.resource >= ENGINE_RESOURCE_LINEAR,
         *out = r->spec.address)
