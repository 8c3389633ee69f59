/* SPDX-License-Identifier: Apache-2.0 */
/* Texels as registers see them, and address modes: what texture_sample.c (one thread) and texture_warp.c (32 of them)
 * share. */
#ifndef FF_EXEC_TEXTURE_TEXEL_H
#define FF_EXEC_TEXTURE_TEXEL_H

#include <string.h>

#include "exec/instructions/ops_half.h"
#include "exec/texture/texture_sample.h"

#define TEXTURE_BORDER (-1) /* a texel index outside, where that has a colour */
#define TEXEL_INLINE static inline __attribute__((always_inline, unused))

extern float texture_srgb[256]; /* once texture_prepare was called for such a texture */
void texture_prepare(const exec_texture *t);
void texture_border(const exec_texture *t, texture_value *value);

/* Wrap and mirror are for normalised coordinates; otherwise they are clamp. Memory without rows has no modes: outside
 * is nothing. */
TEXEL_INLINE exec_address_mode texture_mode(const exec_texture *t, uint32_t dimension) {
  exec_address_mode mode = t->sampler.mode[dimension];
  if (t->resource == EXEC_RESOURCE_LINEAR) return EXEC_ADDRESS_BORDER;
  if (t->cube) return EXEC_ADDRESS_CLAMP;
  return t->sampler.normalized || mode == EXEC_ADDRESS_BORDER ? mode : EXEC_ADDRESS_CLAMP;
}

/* The weight, in 256ths, of one of the four texels that a linear filter takes from a plane: corner bit 0 says whether
 * it is the right one, bit 1 whether it is in the second row; x and y, 0 to 256, are the weights of those. GPUs round
 * the product of the two to 256ths, and the other three weights are such that those of a row, of a column and of all
 * four add up to what they should (docs/textures.md). */
TEXEL_INLINE uint32_t texture_square_weight(uint32_t x, uint32_t y, uint32_t corner) {
  uint32_t both = (x * y + 128) / 256;
  switch (corner) {
  case 0: return 256 - x - y + both;
  case 1: return x - both;
  case 2: return y - both;
  default: return both;
  }
}

TEXEL_INLINE float texel_normalized(exec_texel_type type, uint32_t bits) {
  switch (type) {
  case EXEC_TEXEL_U8: return (float)(int32_t)bits / 255;
  case EXEC_TEXEL_U16: return (float)(int32_t)bits / 65535;
  case EXEC_TEXEL_S8: return (int32_t)bits < -127 ? -1 : (float)(int32_t)bits / 127;
  default: return (int32_t)bits < -32767 ? -1 : (float)(int32_t)bits / 32767;
  }
}

TEXEL_INLINE uint32_t texel_channel(exec_texel_type type, const unsigned char *p) {
  uint16_t half;
  uint32_t word;
  switch (type) {
  case EXEC_TEXEL_U8: return *p;
  case EXEC_TEXEL_S8: return (uint32_t)(int32_t)(int8_t)*p;
  case EXEC_TEXEL_U16:
  case EXEC_TEXEL_F16: memcpy(&half, p, 2); return half;
  case EXEC_TEXEL_S16: memcpy(&half, p, 2); return (uint32_t)(int32_t)(int16_t)half;
  default: memcpy(&word, p, 4); return word;
  }
}

/* The texel in memory as registers see it: floating-point numbers, or integers extended to 32 bits. floats:
 * texture_gives_floats. */
TEXEL_INLINE void texel_unpack(exec_texel_type type, uint32_t channels, bool floats, bool srgb, const unsigned char *p,
                               texture_value *value) {
  uint32_t step = exec_texel_channel_bytes(type);
  bool integer = exec_texel_is_integer(type);
  memset(value, 0, sizeof *value);
  for (uint32_t c = 0; c < channels; c++, p += step) {
    uint32_t bits = texel_channel(type, p);
    if (type == EXEC_TEXEL_F16) value->real[c] = ops_of_f16(bits);
    else if (!floats || !integer) value->bits[c] = bits;
    else if (srgb && type == EXEC_TEXEL_U8 && c < 3) value->real[c] = texture_srgb[bits & 0xff];
    else value->real[c] = texel_normalized(type, bits);
  }
}

#endif
