/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects as kernels see them: images in memory, how they are read, and the handles that name them.
 *
 *   image     texels in rows: texel (x, y, z) stands at address + z * slice + y * pitch + x * texel_bytes; z is the layer of a layered
 *             one (a cubemap's faces are six layers, +x -x +y -y +z -z). Of a block-compressed one: its block at
 *             address + z * slice + y / 4 * pitch + x / 4 * texel_bytes
 *   texture   one image per mipmap level, and the sampler: CUDA C++ Programming Guide, "Texture Fetching"
 *   handle    what a kernel has in a register: 64 bits, neither 0 nor an address; a stale or invented one is a fault
 *
 * exec_texture_add takes only textures whose images lie inside their memory, so that a fetch needs no bounds check once
 * that memory is known to be live. The caller changes the table only while nothing runs on the device. */
#ifndef FF_EXEC_TEXTURE_H
#define FF_EXEC_TEXTURE_H

#include "exec/memory/address_space.h"

#define EXEC_TEXTURE_LEVELS 18u /* mipmap levels of the largest image */

/* X(NAME, bytes of a channel, is an integer, is signed, OpenCL's number for it) */
/* clang-format off */
#define EXEC_TEXEL_TYPES(X)                                                                                        \
  X(U8, 1, true, false, 0x10DA) X(U16, 2, true, false, 0x10DB) X(U32, 4, true, false, 0x10DC)                      \
  X(S8, 1, true, true, 0x10D7) X(S16, 2, true, true, 0x10D8) X(S32, 4, true, true, 0x10D9)                         \
  X(F16, 2, false, true, 0x10DD) X(F32, 4, false, true, 0x10DE)
/* clang-format on */

typedef enum exec_texel_type {
#define X(name, bytes, integer, is_signed, number) EXEC_TEXEL_##name,
  EXEC_TEXEL_TYPES(X)
#undef X
      EXEC_TEXEL_COUNT
} exec_texel_type;

/* X(NAME, bytes of a block of 4 by 4 texels, channels that it has, their type as txq has it, may its colours be
 * sRGB's); in the order of cudaResourceViewFormat. */
/* clang-format off */
#define EXEC_BLOCK_FORMATS(X)                                                                                      \
  X(BC1, 8, 4, U8, true) X(BC2, 16, 4, U8, true) X(BC3, 16, 4, U8, true) X(BC4, 8, 1, U8, false)                   \
  X(BC4_SIGNED, 8, 1, S8, false) X(BC5, 16, 2, U8, false) X(BC5_SIGNED, 16, 2, S8, false)                          \
  X(BC6H, 16, 4, F16, false) X(BC6H_SIGNED, 16, 4, F16, false) X(BC7, 16, 4, U8, true)
/* clang-format on */

typedef enum exec_blocks { /* how texels are compressed */
                           EXEC_BLOCKS_NONE,
#define X(name, bytes, channels, type, srgb) EXEC_BLOCKS_##name,
                           EXEC_BLOCK_FORMATS(X)
#undef X
                               EXEC_BLOCKS_COUNT
} exec_blocks;

typedef enum exec_address_mode {
  EXEC_ADDRESS_WRAP,
  EXEC_ADDRESS_CLAMP,
  EXEC_ADDRESS_MIRROR,
  EXEC_ADDRESS_BORDER
} exec_address_mode;
typedef enum exec_resource { EXEC_RESOURCE_ARRAY, EXEC_RESOURCE_LINEAR, EXEC_RESOURCE_PITCH } exec_resource;

typedef struct exec_image {
  uint64_t address, pitch, slice;
  uint32_t width, height, depth; /* texels, at least 1 each; block-compressed images may end within a block */
} exec_image;

typedef struct exec_sampler {
  exec_address_mode mode[3];
  bool linear;     /* filter; else the nearest texel */
  bool normalized; /* coordinates in [0, 1) */
  bool as_float;   /* 8- and 16-bit integers become [0, 1] or [-1, 1] */
  bool srgb;       /* 8-bit unsigned ones are sRGB; only with as_float */
  float border[4];
  bool mip_linear;
  float bias, min_level, max_level;
} exec_sampler;

typedef struct exec_texture {
  exec_resource resource;
  exec_texel_type type;
  uint8_t channels;   /* 1, 2, 4 */
  exec_blocks blocks; /* type and channels: what is in the blocks; as_float is set */
  /* 8- and 16-bit integers that stand for [0, 1] or [-1, 1], in surfaces as well; as_float is set */
  bool normalized;
  uint8_t dimensions; /* 1, 2, 3; of one layer */
  bool layered, cube;
  bool surface; /* only for suld, sust, sured, suq */
  bool mipmapped;
  uint32_t level_count;
  exec_image level[EXEC_TEXTURE_LEVELS];
  uint64_t address, bytes; /* the memory that all of it lies in */
  uint32_t allocation;     /* its exec_allocation.id, if that may not change; else 0 */
  exec_sampler sampler;
} exec_texture;

static inline uint32_t exec_texel_channel_bytes(exec_texel_type type) {
  static const uint8_t bytes[] = {
#define X(name, count, integer, is_signed, number) count,
      EXEC_TEXEL_TYPES(X)
#undef X
  };
  return bytes[type];
}
static inline uint32_t exec_block_bytes(exec_blocks format) {
  static const uint8_t bytes[] = {0,
#define X(name, count, channels, type, srgb) count,
                                  EXEC_BLOCK_FORMATS(X)
#undef X
  };
  return bytes[format];
}
/* Of what stands in memory: a texel, or a block. */
static inline uint32_t exec_texel_bytes(const exec_texture *texture) {
  return texture->blocks ? exec_block_bytes(texture->blocks)
                         : texture->channels * exec_texel_channel_bytes(texture->type);
}
/* How many of them the texels of a row take, or rows of them those of a column. */
static inline uint32_t exec_texels_across(exec_blocks format, uint32_t texels) {
  return format ? texels / 4 + (texels % 4 != 0) : texels;
}
static inline bool exec_texel_is_integer(exec_texel_type type) {
  return type != EXEC_TEXEL_F16 && type != EXEC_TEXEL_F32;
}

/* The texture is copied. FF_INVALID: an image that is not inside its memory, or a texel that is not aligned; FF_LIMIT:
 * too many. */
ff_status exec_texture_add(exec_memory *memory, const exec_texture *texture, uint64_t *handle, ff_error *error);
/* FF_NOT_FOUND: not a handle, or not any more. */
ff_status exec_texture_remove(exec_memory *memory, uint64_t handle, ff_error *error);
/* NULL: not a handle. An address of a .texref or .surfref variable stands for the handle that it holds. No lock. */
const exec_texture *exec_texture_find(const exec_memory *memory, uint64_t handle);

/* A variable of type .texref, .samplerref or .surfref: one 8-byte cell per element, 0 until something is bound to
 * it. */
void exec_texture_cells(exec_memory *memory, uint64_t address, uint64_t bytes);
bool exec_texture_is_cell(const exec_memory *memory, uint64_t address); /* a live one */

#endif
