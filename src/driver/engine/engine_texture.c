/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects: from the program's descriptors to the kernels' handles (exec/texture/texture.h), with
 * the checks of the manual (CUDA Runtime API, "Texture Object Management"; Driver API, "Texture Object Management").
 *
 * The specification of a live handle stands in `specs` at the handle's slot (engine_textures_check), so that a program
 * gets back what it gave. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "driver/engine/engine_array.h"
#include "driver/engine/engine_internal.h"
#include "driver/properties.h"
#include "exec/texture/texture_sample.h"

typedef struct kept_spec {
  uint64_t handle;
  int device;
  bool surface;
  engine_texture_spec spec;
} kept_spec;
static FF_VEC(kept_spec) specs; /* by slot, the low 20 bits of the handle - 1 */

static uint64_t limit(cudaDeviceAttr attribute) {
  int value = 0;
  properties_attribute(ff_engine.machine, 0, (int)attribute, &value);
  return value > 0 ? (uint64_t)value : 0;
}

cudaError_t engine_format_refused(const char *what) {
  engine_say_once(
      what,
      "%s: not implemented by the virtual GPU (channels of 8, 16 and 32 bits, signed, unsigned, normalised and floating-point, and BC1 to BC7 are)",
      what);
  return cudaErrorNotSupported;
}

/* ---- linear memory ---- */

/* All of the range is memory that kernels may read. */
static bool readable(uint64_t address, uint64_t bytes) {
  engine_pointer pointer = engine_pointer_find_locked(address);
  if (!bytes || address + bytes < address || pointer.memory == ENGINE_PAGEABLE) return false;
  if (pointer.range == EXEC_MAPPED) return engine_mapped_range(address, bytes, false);
  return bytes <= pointer.bytes - (address - pointer.address);
}

static cudaError_t linear_images(const engine_texture_spec *spec, exec_texture *t) {
  uint32_t texel = engine_format_bytes(spec->format);
  uint64_t texels = spec->bytes / texel, rows = spec->resource == ENGINE_RESOURCE_PITCH ? spec->height : 1, bytes;
  bool pitched = spec->resource == ENGINE_RESOURCE_PITCH;
  if (spec->format.blocks) return cudaErrorInvalidValue; /* arrays only */
  if (spec->address % limit(cudaDevAttrTextureAlignment)) return cudaErrorInvalidValue;
  if (pitched) {
    bool good = spec->width >= 1 && spec->width <= limit(cudaDevAttrMaxTexture2DLinearWidth) && rows >= 1 &&
                rows <= limit(cudaDevAttrMaxTexture2DLinearHeight) &&
                spec->pitch <= limit(cudaDevAttrMaxTexture2DLinearPitch) &&
                spec->pitch % limit(cudaDevAttrTexturePitchAlignment) == 0 && spec->pitch >= spec->width * texel;
    if (!good) return cudaErrorInvalidValue;
    bytes = spec->pitch * (rows - 1) + spec->width * texel;
  } else {
    if (!texels || texels > limit(cudaDevAttrMaxTexture1DLinearWidth)) return cudaErrorInvalidValue;
    bytes = texels * texel;
  }
  if (!readable(spec->address, bytes)) return cudaErrorInvalidValue;
  t->type = spec->format.type;
  t->channels = (uint8_t)spec->format.channels;
  t->normalized = spec->format.normalized;
  t->resource = pitched ? EXEC_RESOURCE_PITCH : EXEC_RESOURCE_LINEAR;
  t->dimensions = pitched ? 2 : 1;
  t->address = spec->address;
  t->bytes = bytes;
  t->level_count = 1;
  t->level[0] = (exec_image){.address = spec->address,
                             .pitch = pitched ? spec->pitch : 0,
                             .slice = 0,
                             .width = (uint32_t)(pitched ? spec->width : texels),
                             .height = (uint32_t)rows,
                             .depth = 1};
  return cudaSuccess;
}

/* ---- arrays ---- */

static void array_images(const engine_array_images *images, exec_texture *t) {
  const engine_array_shape *s = images->shape;
  t->resource = EXEC_RESOURCE_ARRAY;
  t->type = s->format.type;
  t->channels = (uint8_t)s->format.channels;
  t->blocks = s->format.blocks;
  t->normalized = s->format.normalized;
  t->layered = s->flags & cudaArrayLayered;
  t->cube = s->flags & cudaArrayCubemap;
  t->dimensions = !s->height ? 1 : !s->depth || t->layered || t->cube ? 2 : 3;
  t->address = images->address;
  t->bytes = images->bytes;
  t->allocation = images->allocation;
  t->level_count = images->count;
  memcpy(t->level, images->level, sizeof t->level);
}

/* cudaResourceViewFormat: 0x01 to 0x18, three numbers of channels of each of these; from 0x19 on block compression. */
static bool view_format(unsigned number, engine_format *format) {
  static const exec_texel_type types[] = {EXEC_TEXEL_U8,  EXEC_TEXEL_S8,  EXEC_TEXEL_U16, EXEC_TEXEL_S16,
                                          EXEC_TEXEL_U32, EXEC_TEXEL_S32, EXEC_TEXEL_F16, EXEC_TEXEL_F32};
  if (number > 0x18 && number - 0x18 < EXEC_BLOCKS_COUNT) {
    *format = engine_format_of_blocks((exec_blocks)(number - 0x18), false);
    return true;
  }
  if (number < 1 || number > 0x18) return false;
  *format = (engine_format){.type = types[(number - 1) / 3], .channels = 1u << (number - 1) % 3};
  return true;
}

static uint32_t level_texels(uint64_t halved, uint32_t blocks) {
  if (halved >= 4ull * blocks) return 4 * blocks;
  return halved ? (uint32_t)halved : 1;
}

/* The levels' texels: halved from the view's, but within the blocks that there are. */
static void view_blocks(const engine_view *v, exec_texture *t) {
  for (uint32_t l = 0; l < t->level_count; l++) {
    exec_image *image = &t->level[l];
    image->width = level_texels(v->width >> l, image->width);
    image->height = level_texels(v->height >> l, image->height);
  }
}

static cudaError_t apply_view(const engine_view *v, exec_texture *t) {
  engine_format format = {.type = t->type, .channels = t->channels, .normalized = t->normalized};
  bool layers = t->layered || t->cube;
  const exec_image *base = &t->level[0];
  if (t->blocks) return cudaErrorInvalidValue; /* "not in a block compressed format" */
  if (v->format && (!view_format(v->format, &format) || engine_format_bytes(format) != exec_texel_bytes(t)))
    return cudaErrorInvalidValue;
  /* each texel of the array is a block */
  if (format.blocks && (t->type != EXEC_TEXEL_U32 || t->dimensions < 2)) return cudaErrorInvalidValue;
  if (v->first_level > v->last_level || v->last_level >= t->level_count) return cudaErrorInvalidValue;
  if (layers && (v->first_layer > v->last_layer || v->last_layer >= base->depth)) return cudaErrorInvalidValue;
  if (t->cube && ((v->last_layer - v->first_layer + 1) % 6 || (!t->layered && v->last_layer - v->first_layer != 5)))
    return cudaErrorInvalidValue;
  uint32_t side = format.blocks ? 4 : 1;
  if (v->width != (uint64_t)base->width * side || (t->dimensions > 1 && v->height != (uint64_t)base->height * side) ||
      (t->dimensions > 2 && v->depth != base->depth))
    return cudaErrorInvalidValue;
  t->type = format.type;
  t->channels = (uint8_t)format.channels;
  t->blocks = format.blocks;
  t->normalized = format.normalized;
  if (t->blocks) view_blocks(v, t);
  t->level_count = v->last_level - v->first_level + 1;
  memmove(t->level, t->level + v->first_level, t->level_count * sizeof *t->level);
  for (uint32_t l = 0; layers && l < t->level_count; l++) {
    t->level[l].address += v->first_layer * t->level[l].slice;
    t->level[l].depth = v->last_layer - v->first_layer + 1;
  }
  return cudaSuccess;
}

/* ---- making ---- */

static cudaError_t check_sampler(const engine_texture_spec *spec, const exec_texture *t) {
  const exec_sampler *s = &t->sampler;
  for (int d = 0; d < 3; d++)
    if ((unsigned)s->mode[d] > EXEC_ADDRESS_BORDER) return cudaErrorInvalidValue;
  bool floats = texture_gives_floats(t), filters = s->linear && spec->resource != ENGINE_RESOURCE_LINEAR;
  if ((filters || (s->mip_linear && t->mipmapped)) && !floats) return cudaErrorInvalidFilterSetting;
  return t->mipmapped && !s->normalized ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t build(const engine_texture_spec *spec, exec_texture *t) {
  engine_array_images images;
  cudaError_t error = cudaSuccess;
  images.shape = NULL; /* linear memory */
  memset(t, 0, sizeof *t);
  switch (spec->resource) {
  case ENGINE_RESOURCE_ARRAY:
    if (!engine_array_images_of(spec->array, &images)) return cudaErrorInvalidResourceHandle;
    array_images(&images, t);
    break;
  case ENGINE_RESOURCE_MIPMAP:
    if (!engine_mipmap_images_of(spec->mipmap, &images)) return cudaErrorInvalidResourceHandle;
    array_images(&images, t);
    t->mipmapped = true;
    break;
  case ENGINE_RESOURCE_LINEAR:
  case ENGINE_RESOURCE_PITCH: error = linear_images(spec, t); break;
  default: return cudaErrorInvalidValue;
  }
  if (!error && spec->viewed)
    error = t->resource == EXEC_RESOURCE_ARRAY ? apply_view(&spec->view, t) : cudaErrorInvalidValue;
  t->sampler = spec->sampler;
  t->sampler.as_float |= t->normalized || t->blocks;
  if (images.shape) t->sampler.srgb |= images.shape->format.srgb;
  return error ? error : check_sampler(spec, t);
}

static cudaError_t keep(const exec_texture *t, const engine_texture_spec *spec, uint64_t *handle) {
  ff_error reason;
  ff_status status = exec_texture_add(ff_engine.memory, t, handle, &reason);
  if (status) return status == FF_LIMIT ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
  size_t slot = (*handle & 0xfffff) - 1;
  while (specs.count <= slot) FF_PUSH(&specs, (kept_spec){0});
  specs.items[slot] =
      (kept_spec){.handle = *handle, .device = engine_device_of(NULL), .surface = t->surface, .spec = *spec};
  return cudaSuccess;
}

cudaError_t engine_texture_create(const engine_texture_spec *spec, uint64_t *handle) {
  exec_texture texture;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = build(spec, &texture);
  if (!error) error = keep(&texture, spec, handle);
  engine_leave();
  return error;
}

cudaError_t engine_surface_create(engine_array *array, uint64_t *handle) {
  engine_array_images images;
  engine_texture_spec spec = {.resource = ENGINE_RESOURCE_ARRAY, .array = array};
  exec_texture texture = {.surface = true};
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_array_images_of(array, &images)) error = cudaErrorInvalidResourceHandle;
  else if (!(images.shape->flags & cudaArraySurfaceLoadStore)) error = cudaErrorInvalidValue;
  else {
    array_images(&images, &texture);
    texture.sampler.as_float = texture.normalized;
    error = keep(&texture, &spec, handle);
  }
  engine_leave();
  return error;
}

void engine_textures_check(void) {
  for (size_t n = 0; n < specs.count; n++) {
    const kept_spec *kept = &specs.items[n];
    if (!kept->handle) continue;
    const exec_texture *texture = exec_texture_find(ff_engine.memory, kept->handle);
    FF_ASSERT((kept->handle & 0xfffff) == n + 1 && texture && texture->surface == kept->surface);
  }
}

/* ---- the rest of its life ---- */

static kept_spec *find(uint64_t handle, bool surface) {
  size_t slot = (handle & 0xfffff) - 1;
  if (!handle || slot >= specs.count || specs.items[slot].handle != handle || specs.items[slot].surface != surface)
    return NULL;
  return &specs.items[slot];
}

cudaError_t engine_texture_destroy(uint64_t handle, bool surface) {
  cudaError_t error = engine_enter();
  if (error) return error;
  kept_spec *kept = find(handle, surface);
  if (kept) {
    exec_texture_remove(ff_engine.memory, handle, NULL);
    *kept = (kept_spec){0};
  }
  engine_leave();
  return kept ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t engine_texture_describe(uint64_t handle, bool surface, engine_texture_spec *spec) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const kept_spec *kept = find(handle, surface);
  if (kept) *spec = kept->spec;
  engine_leave();
  return kept ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t engine_texture_bind(uint64_t cell, uint64_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!exec_texture_is_cell(ff_engine.memory, cell)) error = cudaErrorInvalidValue;
  else memcpy((void *)(uintptr_t)cell, &handle, sizeof handle);
  engine_leave();
  return error;
}

bool engine_texture_is_cell(uint64_t address) {
  if (engine_enter()) return false;
  bool cell = exec_texture_is_cell(ff_engine.memory, address);
  engine_leave();
  return cell;
}

cudaError_t engine_texture_linear_width(engine_format format, uint64_t *texels) {
  cudaError_t error = engine_enter();
  if (error) return error;
  *texels = limit(cudaDevAttrMaxTexture1DLinearWidth);
  engine_leave();
  return cudaSuccess;
}

void engine_textures_reset(int device) {
  for (size_t n = 0; n < specs.count; n++) {
    if (!specs.items[n].handle || specs.items[n].device != device) continue;
    exec_texture_remove(ff_engine.memory, specs.items[n].handle, NULL);
    specs.items[n] = (kept_spec){0};
  }
}
