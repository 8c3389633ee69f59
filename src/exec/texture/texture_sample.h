/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's texture fetch: coordinates to texels to a filtered value (CUDA C++ Programming Guide, "Texture
 * Fetching"). Pure functions of the texture and its memory, which must be readable. */
#ifndef FF_EXEC_TEXTURE_SAMPLE_H
#define FF_EXEC_TEXTURE_SAMPLE_H

#include "exec/texture/texture.h"

#define TEXTURE_TEXELS 16u /* the most that one fetch reads: 8 of each of two mipmap levels */

typedef struct texture_at { /* where */
  float x, y, z;            /* of one layer; of a cubemap the direction */
  int32_t index[3];         /* instead, if `integer`: texels of the level */
  int32_t offset[3];        /* texels, added to the coordinates */
  uint32_t layer;           /* of a layered texture; of cubemaps which cubemap */
  float lod;                /* only if `mipmap`; else the first level */
  bool integer, mipmap;
} texture_at;

typedef union texture_value {
  float real[4];
  uint32_t bits[4];
} texture_value; /* r, g, b, a */

/* the texels that were read */
typedef struct texture_reads {
  uint32_t count;
  uint64_t address[TEXTURE_TEXELS];
} texture_reads;

/* Do fetches from it give floating-point numbers? */
static inline bool texture_gives_floats(const exec_texture *t) {
  return !exec_texel_is_integer(t->type) || (t->sampler.as_float && exec_texel_channel_bytes(t->type) < 4);
}

void texture_fetch(const exec_texture *t, const texture_at *at, texture_value *value, texture_reads *reads);
/* The four texels that linear filtering in two dimensions would read, one component of each: tld4. */
void texture_gather(const exec_texture *t, const texture_at *at, uint32_t component, texture_value *value,
                    texture_reads *reads);
/* The level of detail for these derivatives of the coordinates, in texels of level 0. */
float texture_lod(const exec_texture *t, const texture_at *at, const float dx[3], const float dy[3]);

/* A texel's bits in memory, from the value that sust.p gives. */
void texture_pack(const exec_texture *t, const uint32_t bits[4], unsigned char *texel);

#endif
