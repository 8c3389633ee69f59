/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays: shapes and their limits (CUDA Runtime API, cudaMalloc3DArray: the table of
 * extents), layout, life.
 *
 * An array owns one allocation. A mipmapped array owns one for all its levels; each level is an array that owns nothing
 * and goes with it. */
#include "driver/engine/engine_array.h"

#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "driver/properties.h"

#define ROW_UNIT 32u    /* bytes that rows are padded to: cudaDeviceProp.texturePitchAlignment */
#define LEVEL_UNIT 512u /* where levels begin: textureAlignment */

struct engine_array {
  engine_array_shape shape;
  exec_image image;
  uint64_t address, bytes; /* of the allocation */
  uint32_t allocation;     /* its number */
  bool is_level;
  engine_array *next;
};

struct engine_mipmap {
  engine_array_shape shape;
  engine_array *levels[EXEC_TEXTURE_LEVELS];
  uint32_t count;
  uint64_t address, bytes;
  uint32_t allocation;
  engine_mipmap *next;
};

static struct {
  engine_array *arrays;
  engine_mipmap *mipmaps;
} all;

/* ---- shapes ---- */

static uint64_t limit(cudaDeviceAttr attribute) {
  int value = 0;
  properties_attribute(ff_engine.machine, 0, (int)attribute, &value);
  return value > 0 ? (uint64_t)value : 0;
}

static bool between(uint64_t value, uint64_t most) { return value >= 1 && value <= most; }
static bool absent(uint64_t value, uint64_t most) { return most ? between(value, most) : value == 0; }

typedef struct extents {
  cudaDeviceAttr width, height, depth;
} extents; /* attributes; 0: no such dimension */

static bool within(const engine_array_shape *s, extents most) {
  return between(s->width, limit(most.width)) && absent(s->height, most.height ? limit(most.height) : 0) &&
         absent(s->depth, most.depth ? limit(most.depth) : 0);
}

#define A(name) cudaDevAttrMax##name
static bool fits(const engine_array_shape *s) {
  bool layered = s->flags & cudaArrayLayered, surface = s->flags & cudaArraySurfaceLoadStore;
  if (s->flags & cudaArrayCubemap) {
    bool square = s->width == s->height && s->height && s->depth % 6 == 0 && (layered || s->depth == 6);
    extents most = layered ? (extents){A(TextureCubemapLayeredWidth), A(TextureCubemapLayeredWidth),
                                       A(TextureCubemapLayeredLayers)}
                           : (extents){A(TextureCubemapWidth), A(TextureCubemapWidth), A(TextureCubemapLayeredLayers)};
    extents most_surface =
        layered
            ? (extents){A(SurfaceCubemapLayeredWidth), A(SurfaceCubemapLayeredWidth), A(SurfaceCubemapLayeredLayers)}
            : (extents){A(SurfaceCubemapWidth), A(SurfaceCubemapWidth), A(SurfaceCubemapLayeredLayers)};
    return square && within(s, most) && (!surface || within(s, most_surface));
  }
  if (s->flags & cudaArrayTextureGather)
    return !s->depth && within(s, (extents){A(Texture2DGatherWidth), A(Texture2DGatherHeight), 0});
  static const extents texture[] = {{A(Texture1DWidth), 0, 0},
                                    {A(Texture2DWidth), A(Texture2DHeight), 0},
                                    {A(Texture3DWidth), A(Texture3DHeight), A(Texture3DDepth)},
                                    {A(Texture1DLayeredWidth), 0, A(Texture1DLayeredLayers)},
                                    {A(Texture2DLayeredWidth), A(Texture2DLayeredHeight), A(Texture2DLayeredLayers)}};
  static const extents surfaces[] = {{A(Surface1DWidth), 0, 0},
                                     {A(Surface2DWidth), A(Surface2DHeight), 0},
                                     {A(Surface3DWidth), A(Surface3DHeight), A(Surface3DDepth)},
                                     {A(Surface1DLayeredWidth), 0, A(Surface1DLayeredLayers)},
                                     {A(Surface2DLayeredWidth), A(Surface2DLayeredHeight), A(Surface2DLayeredLayers)}};
  uint32_t form = s->height ? 1 : 0;
  if (layered) form = s->height ? 4 : 3;
  else if (s->depth) form = 2;
  bool good = within(s, texture[form]);
  if (form == 2 && !good)
    good = within(s, (extents){A(Texture3DWidthAlt), A(Texture3DHeightAlt), A(Texture3DDepthAlt)});
  return good && (!surface || within(s, surfaces[form]));
}
#undef A

static cudaError_t check_shape(const engine_array_shape *s) {
  const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather |
                         cudaArrayColorAttachment;
  const unsigned gathered = cudaArrayTextureGather | cudaArrayCubemap; /* of planes only */
  if (s->flags & ~(known | cudaArraySparse | cudaArrayDeferredMapping) || (s->flags & gathered) == gathered)
    return cudaErrorInvalidValue;
  if (s->flags & (cudaArraySparse | cudaArrayDeferredMapping)) {
    engine_say_once("sparse arrays", "sparse and deferred-mapping CUDA arrays are not implemented by the virtual GPU");
    return cudaErrorNotSupported;
  }
  /* blocks have two dimensions, and are only read */
  if (s->format.blocks && (!s->height || s->flags & cudaArraySurfaceLoadStore)) return cudaErrorInvalidValue;
  return fits(s) ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- layout ---- */

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
static uint64_t at_least_one(uint64_t value) { return value ? value : 1; }
static bool has_layers(const engine_array_shape *s) { return s->flags & (cudaArrayLayered | cudaArrayCubemap); }

static engine_array_shape level_shape(const engine_array_shape *s, uint32_t level) {
  engine_array_shape small = *s;
  small.width = at_least_one(s->width >> level);
  if (s->height) small.height = at_least_one(s->height >> level);
  if (s->depth && !has_layers(s)) small.depth = at_least_one(s->depth >> level);
  return small;
}

/* Its image from `address` on; *end: the first byte behind it. The limits keep all products far below 2^64. */
static exec_image lay_out(const engine_array_shape *s, uint64_t address, uint64_t *end) {
  uint64_t pitch = round_up(engine_row_bytes(s), ROW_UNIT),
           slice = pitch * at_least_one(engine_format_elements(s->format, s->height));
  *end = address + slice * at_least_one(s->depth);
  return (exec_image){.address = address,
                      .pitch = pitch,
                      .slice = slice,
                      .width = (uint32_t)s->width,
                      .height = (uint32_t)at_least_one(s->height),
                      .depth = (uint32_t)at_least_one(s->depth)};
}

/* ---- life ---- */

static engine_array *new_array(const engine_array_shape *shape, exec_image image, uint64_t address, uint64_t bytes,
                               bool is_level) {
  engine_array *array = ff_alloc(sizeof *array);
  *array = (engine_array){.shape = *shape, .image = image, .address = address, .bytes = bytes, .is_level = is_level};
  array->allocation = engine_pointer_find_locked(address).id;
  array->next = all.arrays;
  all.arrays = array;
  engine_handles_add(&ff_engine.handles, array, ENGINE_HANDLE_ARRAY);
  return array;
}

size_t engine_arrays_check(void) {
  size_t count = 0;
  for (const engine_array *a = all.arrays; a; a = a->next, count++)
    FF_ASSERT(engine_handles_have(&ff_engine.handles, a, ENGINE_HANDLE_ARRAY));
  for (const engine_mipmap *m = all.mipmaps; m; m = m->next, count++)
    FF_ASSERT(engine_handles_have(&ff_engine.handles, m, ENGINE_HANDLE_MIPMAP));
  return count;
}

static void drop_array(engine_array *array) {
  engine_array **at = &all.arrays;
  while (*at != array) at = &(*at)->next;
  *at = array->next;
  engine_handles_remove(&ff_engine.handles, array);
  free(array);
}

static bool is_array(const engine_array *array) {
  return engine_handles_have(&ff_engine.handles, array, ENGINE_HANDLE_ARRAY);
}
static bool is_mipmap(const engine_mipmap *mipmap) {
  return engine_handles_have(&ff_engine.handles, mipmap, ENGINE_HANDLE_MIPMAP);
}

cudaError_t engine_array_create(const engine_array_shape *shape, const char *call, engine_array **array) {
  uint64_t bytes, address;
  cudaError_t error = engine_start();
  if (!error) error = check_shape(shape);
  if (error) return error;
  lay_out(shape, 0, &bytes);
  error = engine_allocate(ENGINE_DEVICE, bytes, 0, call, &address);
  if (error) return error;
  error = engine_enter();
  if (error) return error;
  uint64_t end;
  exec_image image = lay_out(shape, address, &end);
  *array = new_array(shape, image, address, bytes, false);
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_array_destroy(engine_array *array) {
  cudaError_t error = engine_enter();
  if (error) return error;
  uint64_t address = 0;
  if (!is_array(array)) error = cudaErrorInvalidResourceHandle;
  else if (array->is_level) error = cudaErrorInvalidValue;
  else {
    address = array->address;
    drop_array(array);
  }
  engine_leave();
  return error ? error : engine_free(address, 1u << ENGINE_DEVICE);
}

cudaError_t engine_array_describe(engine_array *array, engine_array_shape *shape) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (is_array(array)) *shape = array->shape;
  else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

cudaError_t engine_array_memory(engine_array *array, uint64_t *bytes, uint64_t *alignment) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (is_array(array)) {
    *bytes = array->bytes;
    *alignment = LEVEL_UNIT;
  } else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

/* ---- mipmapped arrays ---- */

static uint32_t most_levels(const engine_array_shape *s) {
  uint64_t largest = s->width > s->height ? s->width : s->height;
  if (!has_layers(s) && s->depth > largest) largest = s->depth;
  uint32_t levels = 1;
  while (levels < EXEC_TEXTURE_LEVELS && largest >> levels) levels++;
  return levels;
}

static bool mipmap_fits(const engine_array_shape *s) {
  if (!has_layers(s) && !s->depth && !s->height) return s->width <= limit(cudaDevAttrMaxTexture1DMipmappedWidth);
  if (!has_layers(s) && !s->depth)
    return s->width <= limit(cudaDevAttrMaxTexture2DMipmappedWidth) &&
           s->height <= limit(cudaDevAttrMaxTexture2DMipmappedHeight);
  return true;
}

cudaError_t engine_mipmap_create(const engine_array_shape *shape, uint32_t levels, const char *call,
                                 engine_mipmap **mipmap) {
  uint64_t bytes = 0, address;
  cudaError_t error = engine_start();
  if (!error) error = check_shape(shape);
  if (error) return error;
  if (!mipmap_fits(shape)) return cudaErrorInvalidValue;
  uint32_t most = most_levels(shape), count = levels < 1 ? 1 : levels > most ? most : levels;
  for (uint32_t l = 0; l < count; l++) {
    engine_array_shape small = level_shape(shape, l);
    lay_out(&small, round_up(bytes, LEVEL_UNIT), &bytes);
  }
  error = engine_allocate(ENGINE_DEVICE, bytes, 0, call, &address);
  if (!error) error = engine_enter();
  if (error) return error;
  engine_mipmap *made = ff_alloc(sizeof *made);
  *made = (engine_mipmap){.shape = *shape,
                          .count = count,
                          .address = address,
                          .bytes = bytes,
                          .allocation = engine_pointer_find_locked(address).id};
  uint64_t end = address;
  for (uint32_t l = 0; l < count; l++) {
    engine_array_shape small = level_shape(shape, l);
    exec_image image = lay_out(&small, round_up(end, LEVEL_UNIT), &end);
    made->levels[l] = new_array(&small, image, address, bytes, true);
  }
  made->next = all.mipmaps;
  all.mipmaps = made;
  engine_handles_add(&ff_engine.handles, made, ENGINE_HANDLE_MIPMAP);
  *mipmap = made;
  engine_leave();
  return cudaSuccess;
}

static void drop_mipmap(engine_mipmap *mipmap) {
  engine_mipmap **at = &all.mipmaps;
  while (*at != mipmap) at = &(*at)->next;
  *at = mipmap->next;
  for (uint32_t l = 0; l < mipmap->count; l++) drop_array(mipmap->levels[l]);
  engine_handles_remove(&ff_engine.handles, mipmap);
  free(mipmap);
}

cudaError_t engine_mipmap_destroy(engine_mipmap *mipmap) {
  cudaError_t error = engine_enter();
  if (error) return error;
  uint64_t address = 0;
  if (!is_mipmap(mipmap)) error = cudaErrorInvalidResourceHandle;
  else {
    address = mipmap->address;
    drop_mipmap(mipmap);
  }
  engine_leave();
  return error ? error : engine_free(address, 1u << ENGINE_DEVICE);
}

cudaError_t engine_mipmap_level(engine_mipmap *mipmap, uint32_t level, engine_array **array) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!is_mipmap(mipmap)) error = cudaErrorInvalidResourceHandle;
  else if (level >= mipmap->count) error = cudaErrorInvalidValue;
  else *array = mipmap->levels[level];
  engine_leave();
  return error;
}

cudaError_t engine_mipmap_memory(engine_mipmap *mipmap, uint64_t *bytes, uint64_t *alignment) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (is_mipmap(mipmap)) {
    *bytes = mipmap->bytes;
    *alignment = LEVEL_UNIT;
  } else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}

static bool is_of(uint64_t address, int device) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  return allocation && engine_memory_device(allocation) == device;
}

/* The memory goes with all other allocations of the device. */
void engine_arrays_reset(int device) {
  for (engine_mipmap *m = all.mipmaps, *next; m; m = next) {
    next = m->next;
    if (is_of(m->address, device)) drop_mipmap(m);
  }
  for (engine_array *a = all.arrays, *next; a; a = next) {
    next = a->next;
    if (is_of(a->address, device)) drop_array(a);
  }
}

/* ---- for textures ---- */

bool engine_array_images_of(const engine_array *array, engine_array_images *out) {
  if (!is_array(array)) return false;
  *out = (engine_array_images){.shape = &array->shape,
                               .level = {array->image},
                               .count = 1,
                               .address = array->address,
                               .bytes = array->bytes,
                               .allocation = array->allocation};
  return true;
}

bool engine_mipmap_images_of(const engine_mipmap *mipmap, engine_array_images *out) {
  if (!is_mipmap(mipmap)) return false;
  *out = (engine_array_images){.shape = &mipmap->shape,
                               .count = mipmap->count,
                               .address = mipmap->address,
                               .bytes = mipmap->bytes,
                               .allocation = mipmap->allocation};
  for (uint32_t l = 0; l < mipmap->count; l++) out->level[l] = mipmap->levels[l]->image;
  return true;
}
