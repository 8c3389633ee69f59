/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays, mipmapped arrays, copies of boxes between arrays and linear memory, texture and surface objects: what
 * libcudart and libcuda share.
 *
 * An array is an allocation of the device's. Its layout is rows: texel (x, y, z) of a level at z * slice + y * pitch +
 * x * bytes, rows padded to 32 bytes, a layer or face per z (of block-compressed formats: rows of blocks); the levels
 * of a mipmapped array follow each other, each on a multiple of 512 bytes. It counts in GPU memory and pages like any
 * allocation. A GPU's own layouts are tiled and secret; nothing that a program can see differs.
 *
 * Errors: a handle that is not (or no longer) an array's is cudaErrorInvalidResourceHandle, a box that leaves its array
 * cudaErrorInvalidValue; a call that fails changes nothing. */
#ifndef FF_DRIVER_ENGINE_ARRAY_H
#define FF_DRIVER_ENGINE_ARRAY_H

#include "driver/engine/engine.h"
#include "exec/texture/texture.h"

typedef struct engine_array engine_array;
typedef struct engine_mipmap engine_mipmap;

enum {
  cudaArrayDefault = 0,
  cudaArrayLayered = 1,
  cudaArraySurfaceLoadStore = 2,
  cudaArrayCubemap = 4,
  cudaArrayTextureGather = 8,
  cudaArrayColorAttachment = 0x20,
  cudaArraySparse = 0x40,
  cudaArrayDeferredMapping = 0x80
};

typedef struct engine_format {
  exec_texel_type type;
  uint32_t channels;  /* 1, 2, 4 */
  exec_blocks blocks; /* compressed: type and channels are what fetches give */
  bool normalized;    /* integers that are read as [0, 1] or [-1, 1], whatever the texture says */
  bool srgb;          /* colours are linearised, whatever the texture says */
} engine_format;

typedef struct engine_array_shape {
  engine_format format;
  /* texels, also of compressed ones; 0: it has no such dimension. depth: of a layered one its layers, faces counted one
   * by one */
  uint64_t width, height, depth;
  unsigned flags; /* cudaArray*; the driver's numbers are the same */
} engine_array_shape;

/* What copies count in is an element: a texel, or of compressed formats a block of 4 by 4 of them. */
static inline uint32_t engine_format_bytes(engine_format format) {
  return format.blocks ? exec_block_bytes(format.blocks) : format.channels * exec_texel_channel_bytes(format.type);
}
static inline uint64_t engine_format_elements(engine_format format, uint64_t texels) {
  return format.blocks ? (texels + 3) / 4 : texels;
}
static inline uint64_t engine_row_bytes(const engine_array_shape *shape) {
  return engine_format_elements(shape->format, shape->width) * engine_format_bytes(shape->format);
}

/* By CUarray_format's number, those that have one of their own; 0: it has none. */
ENGINE_API bool engine_format_numbered(unsigned number, engine_format *format);
ENGINE_API unsigned engine_format_number(engine_format format);
engine_format engine_format_of_blocks(exec_blocks blocks, bool srgb);
/* As descriptors count them: 3 of BC6H. */
ENGINE_API uint32_t engine_format_channels(engine_format format);

/* `call` names the allocation. cudaErrorInvalidValue: no such shape, or beyond the device's limits;
 * cudaErrorNotSupported: sparse or deferred memory (said on stderr); cudaErrorMemoryAllocation: the GPU is full. */
ENGINE_API cudaError_t engine_array_create(const engine_array_shape *shape, const char *call, engine_array **array);
/* cudaErrorInvalidValue: it is a level of a mipmapped array */
ENGINE_API cudaError_t engine_array_destroy(engine_array *array);
ENGINE_API cudaError_t engine_array_describe(engine_array *array, engine_array_shape *shape);
ENGINE_API cudaError_t engine_array_memory(engine_array *array, uint64_t *bytes, uint64_t *alignment);

/* `levels` is brought into [1, as many as there can be]. */
ENGINE_API cudaError_t engine_mipmap_create(const engine_array_shape *shape, uint32_t levels, const char *call,
                                            engine_mipmap **mipmap);
ENGINE_API cudaError_t engine_mipmap_destroy(engine_mipmap *mipmap);
ENGINE_API cudaError_t engine_mipmap_level(engine_mipmap *mipmap, uint32_t level, engine_array **array);
ENGINE_API cudaError_t engine_mipmap_memory(engine_mipmap *mipmap, uint64_t *bytes, uint64_t *alignment);

/* ---- copies of boxes: cudaMemcpy3D, cuMemcpy3D and all that are less ---- */

typedef struct engine_box_end {
  engine_array *array;  /* NULL: linear memory: */
  uint64_t address;     /* of its first byte, before x, y, z */
  uint64_t pitch, rows; /* bytes from row to row, rows from slice to slice */
  uint64_t x, y, z;     /* bytes, rows, slices to begin at */
  engine_side side;     /* linear memory: what the caller says it is */
} engine_box_end;

typedef struct engine_box {
  engine_box_end to, from;
  uint64_t width, height, depth; /* bytes, rows, slices */
  cudaStream_t stream;           /* already resolved */
  bool async;
} engine_box;

/* The box as a copy of linear memory, checked against its arrays. cudaErrorInvalidPitchValue: rows that overlap. */
ENGINE_API cudaError_t engine_box_resolve(const engine_box *box, engine_copy *copy);
ENGINE_API cudaError_t engine_box_run(const engine_box *box);
/* A batch of `count` copies, in the list's order. All of them are checked for what the manual says of their numbers
 * before the first is made: cudaErrorInvalidValue for no copy, an extent of 0, a row or layer shorter than the copy, an
 * order that there is not, arrays of different elements, or the legacy stream. *failed (which may be NULL): the copy
 * that failed; SIZE_MAX: none, or the batch itself is wrong. */
ENGINE_API cudaError_t engine_batch_run(const cudaMemcpy3DBatchOp *list, size_t count, unsigned long long flags,
                                        cudaStream_t stream, size_t *failed);
/* `bytes` bytes from both ends' x and y on, going on from row to row of an array; width, height and depth are not
 * looked at. */
ENGINE_API cudaError_t engine_stretch_run(const engine_box *stretch, uint64_t bytes);

/* ---- texture and surface objects ---- */

typedef struct engine_view { /* of an array or mipmapped array in a texture */
  unsigned format;           /* cudaResourceViewFormat; 0: the array's own */
  uint64_t width, height, depth;
  uint32_t first_level, last_level, first_layer, last_layer;
} engine_view;

/* cudaResourceType */
typedef enum engine_resource {
  ENGINE_RESOURCE_ARRAY,
  ENGINE_RESOURCE_MIPMAP,
  ENGINE_RESOURCE_LINEAR,
  ENGINE_RESOURCE_PITCH
} engine_resource;

typedef struct engine_texture_spec {
  engine_resource resource;
  engine_array *array;
  engine_mipmap *mipmap;
  uint64_t address, bytes;       /* LINEAR, PITCH */
  uint64_t width, height, pitch; /* PITCH: texels, rows, bytes */
  engine_format format;          /* LINEAR, PITCH */
  exec_sampler sampler;
  uint32_t anisotropy; /* kept for the descriptor; filtering is isotropic */
  uint32_t more;       /* flags that change nothing here, kept likewise */
  bool viewed;
  engine_view view;
} engine_texture_spec;

/* cudaErrorInvalidFilterSetting: linear filtering of integers; cudaErrorInvalidValue: alignment, sizes, a view that
 * does not fit, mipmaps without normalised coordinates, a surface of an array without cudaArraySurfaceLoadStore. */
ENGINE_API cudaError_t engine_texture_create(const engine_texture_spec *spec, uint64_t *handle);
ENGINE_API cudaError_t engine_surface_create(engine_array *array, uint64_t *handle);
ENGINE_API cudaError_t engine_texture_destroy(uint64_t handle, bool surface);
/* cudaErrorInvalidValue: there is no such object. */
ENGINE_API cudaError_t engine_texture_describe(uint64_t handle, bool surface, engine_texture_spec *spec);
/* Writes a handle (0: none) into a .texref or .surfref variable's cell. */
ENGINE_API cudaError_t engine_texture_bind(uint64_t cell, uint64_t handle);
ENGINE_API bool engine_texture_is_cell(uint64_t address); /* of such a variable */
/* The most texels of this format in a texture of linear memory. */
ENGINE_API cudaError_t engine_texture_linear_width(engine_format format, uint64_t *texels);

/* Says once that the format is not there, and gives cudaErrorNotSupported. */
ENGINE_API cudaError_t engine_format_refused(const char *what);

/* For engine_reset, with the lock. */
void engine_arrays_reset(int device);
void engine_textures_reset(int device);
/* The array's images, for textures; NULL: no such array. With the lock. */
typedef struct engine_array_images {
  const engine_array_shape *shape;
  exec_image level[EXEC_TEXTURE_LEVELS];
  uint32_t count;
  uint64_t address, bytes;
  uint32_t allocation;
} engine_array_images;
bool engine_array_images_of(const engine_array *array, engine_array_images *out);
bool engine_mipmap_images_of(const engine_mipmap *mipmap, engine_array_images *out);

#endif
