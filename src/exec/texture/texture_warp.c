/* SPDX-License-Identifier: Apache-2.0 */
/* The usual texture fetches of a whole warp at once: one object, its first level, no cubemap, no offset.
 *
 * The same numbers as texture_fetch gives, bit for bit: coordinates of all lanes go through the same operations side by
 * side (loops over 32 lanes that compilers turn into vector code), then the texels are loaded, by a loop made for the
 * format. */
#include "exec/texture/texture_texel.h"
#include "exec/texture/texture_access.h"

#define EVERY_LANE for (int l = 0; l < 32; l++)

/* as axis in texture_sample.c */
typedef struct warp_axis {
  int32_t low[EXEC_LANES], high[EXEC_LANES];
  int32_t weight[EXEC_LANES];
} warp_axis;

/* floorf for what is near enough to 0 to be an integer of 32 bits. */
TEXEL_INLINE float floor_near(float x) {
  float whole = (float)(int32_t)x;
  return whole > x ? whole - 1 : whole;
}

/* ---- coordinates ---- */

/* The coordinates in texels, brought near [0, n]: in_texels of texture_sample.c. */
static void to_texels(const exec_texture *t, const float *restrict x, uint32_t n, exec_address_mode mode,
                      float *restrict out) {
  const float size = (float)n, most = (mode == EXEC_ADDRESS_MIRROR ? 2 * size : size) + 2;
  if (!t->sampler.normalized) {
    EVERY_LANE out[l] = x[l] == x[l] ? x[l] : 0;
  } else if (mode != EXEC_ADDRESS_WRAP && mode != EXEC_ADDRESS_MIRROR) {
    EVERY_LANE out[l] = (x[l] == x[l] ? x[l] : 0) * size;
  } else {
    const float period = mode == EXEC_ADDRESS_MIRROR ? 2 : 1;
    EVERY_LANE {
      float v = x[l] > -0x1p30f && x[l] < 0x1p30f ? x[l] : 0;
      out[l] = (v - period * floor_near(v / period)) * size;
    }
  }
  EVERY_LANE out[l] = out[l] < -2 ? -2 : out[l] > most ? most : out[l];
}

static void bring_inside(int32_t *restrict i, uint32_t n, exec_address_mode mode) {
  const int32_t count = (int32_t)n;
  switch (mode) {
  case EXEC_ADDRESS_WRAP: EVERY_LANE i[l] = i[l] < 0 ? i[l] + count : i[l] >= count ? i[l] - count : i[l]; break;
  case EXEC_ADDRESS_MIRROR:
    EVERY_LANE i[l] = i[l] < 0 ? -1 - i[l] : i[l] >= 2 * count ? i[l] - 2 * count : i[l];
    EVERY_LANE i[l] = i[l] >= count ? 2 * count - 1 - i[l] : i[l];
    break;
  case EXEC_ADDRESS_BORDER: EVERY_LANE i[l] = i[l] < 0 || i[l] >= count ? TEXTURE_BORDER : i[l]; break;
  default: EVERY_LANE i[l] = i[l] < 0 ? 0 : i[l] >= count ? count - 1 : i[l]; break;
  }
}

static void float_axis(const exec_texture *t, const float *x, uint32_t n, uint32_t dimension, bool linear,
                       warp_axis *a) {
  float texels[EXEC_LANES];
  exec_address_mode mode = texture_mode(t, dimension);
  to_texels(t, x, n, mode, texels);
  if (!linear) {
    EVERY_LANE a->low[l] = (int32_t)floor_near(texels[l]);
  } else {
    EVERY_LANE {
      float from = texels[l] - 0.5f, below = floor_near(from);
      a->low[l] = (int32_t)below;
      a->high[l] = (int32_t)below + 1;
      a->weight[l] = (int32_t)((from - below) * 256 + 0.5f);
    }
    bring_inside(a->high, n, mode);
  }
  bring_inside(a->low, n, mode);
}

static void integer_axis(const exec_texture *t, const int32_t *x, uint32_t n, uint32_t dimension, warp_axis *a) {
  exec_address_mode mode = texture_mode(t, dimension);
  memcpy(a->low, x, sizeof a->low);
  bring_inside(a->low, n, mode == EXEC_ADDRESS_BORDER ? mode : EXEC_ADDRESS_CLAMP);
}

/* ---- texels ---- */

typedef struct warp_place {
  warp_axis axis[3];
  uint32_t layer[EXEC_LANES];
} warp_place;

TEXEL_INLINE const unsigned char *texel_at(const exec_texture *t, const warp_place *at, uint32_t l, uint32_t texel,
                                           uint32_t high) {
  const exec_image *image = &t->level[0];
  uint64_t offset = (uint64_t)at->layer[l] * image->slice;
  int32_t outside = 0;
  for (uint32_t d = 0; d < t->dimensions; d++) {
    int32_t i = high >> d & 1 ? at->axis[d].high[l] : at->axis[d].low[l];
    outside |= i;
    offset += (uint64_t)(uint32_t)i * (d == 0 ? texel : d == 1 ? image->pitch : image->slice);
  }
  return outside < 0 ? NULL : (const unsigned char *)(uintptr_t)(image->address + offset);
}

TEXEL_INLINE void load(const exec_texture *t, exec_texel_type type, uint32_t channels, bool floats,
                       const unsigned char *p, texture_value *value) {
  if (p) texel_unpack(type, channels, floats, t->sampler.srgb, p, value);
  else texture_border(t, value);
}

TEXEL_INLINE void point_lanes(const exec_texture *t, exec_texel_type type, uint32_t channels, bool floats,
                              const warp_place *at, uint32_t mask, texture_value *out) {
  uint32_t texel = channels * exec_texel_channel_bytes(type);
  for (uint32_t m = mask; m; m &= m - 1)
    load(t, type, channels, floats, texel_at(t, at, (uint32_t)__builtin_ctz(m), texel, 0), &out[__builtin_ctz(m)]);
}

TEXEL_INLINE void linear_lanes(const exec_texture *t, exec_texel_type type, uint32_t channels, const warp_place *at,
                               uint32_t mask, texture_value *out) {
  uint32_t texel = channels * exec_texel_channel_bytes(type), corners = 1u << t->dimensions;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    double sum[4] = {0};
    for (uint32_t corner = 0; corner < corners; corner++) {
      uint32_t w[3];
      for (uint32_t d = 0; d < 3; d++) w[d] = d < t->dimensions ? (uint32_t)at->axis[d].weight[l] : 0;
      uint32_t weight = texture_square_weight(w[0], w[1], corner & 3) * (corner >> 2 ? w[2] : 256 - w[2]);
      if (!weight) continue;
      texture_value value;
      load(t, type, channels, true, texel_at(t, at, l, texel, corner), &value);
      for (uint32_t c = 0; c < channels; c++) sum[c] += weight / (256.0 * 256) * value.real[c];
    }
    for (uint32_t c = 0; c < 4; c++) out[l].real[c] = (float)sum[c];
  }
}

/* A loop for each format that is usual, one for the rest. */
static void fetch_lanes(const exec_texture *t, bool linear, bool floats, const warp_place *at, uint32_t mask,
                        texture_value *out) {
#define FORMAT(TYPE, CHANNELS)                                                         \
  if (t->type == EXEC_TEXEL_##TYPE && t->channels == CHANNELS) {                       \
    if (linear) linear_lanes(t, EXEC_TEXEL_##TYPE, CHANNELS, at, mask, out);           \
    else if (floats) point_lanes(t, EXEC_TEXEL_##TYPE, CHANNELS, true, at, mask, out); \
    else point_lanes(t, EXEC_TEXEL_##TYPE, CHANNELS, false, at, mask, out);            \
    return;                                                                            \
  }
  /* clang-format off */
  FORMAT(F32, 1) FORMAT(F32, 2) FORMAT(F32, 4) FORMAT(U8, 1) FORMAT(U8, 4) FORMAT(U32, 1) FORMAT(S32, 1)
/* clang-format on */
#undef FORMAT
      if (linear) linear_lanes(t, t->type, t->channels, at, mask, out);
  else point_lanes(t, t->type, t->channels, floats, at, mask, out); }

bool texture_fetch_warp(const exec_warp *x, const exec_texture_access *a, const exec_texture *t, uint32_t mask,
                        texture_value *out) {
  warp_place at;
  const exec_image *image = &t->level[0];
  const uint32_t size[3] = {image->width, image->height, image->depth};
  bool floats = texture_gives_floats(t), linear = t->sampler.linear && floats && !a->integer,
       layers = t->layered && t->dimensions < 3;
  if (t->blocks || a->gather || a->level || a->gradient || a->cube || t->cube || a->offset[0] != EXEC_NO_OFFSET ||
      a->dimensions < t->dimensions)
    return false;
  for (uint32_t d = 0; d < t->dimensions; d++)
    if (size[d] > INT32_MAX / 4) return false;
  texture_prepare(t);
  for (uint32_t d = 0; d < t->dimensions; d++) {
    const uint32_t *slot = exec_u32(x, a->coordinate[d]);
    if (a->integer) integer_axis(t, (const int32_t *)slot, size[d], d, &at.axis[d]);
    else float_axis(t, (const float *)(const void *)slot, size[d], d, linear, &at.axis[d]);
  }
  if (layers && a->layered) {
    const uint32_t *layer = exec_u32(x, a->layer);
    EVERY_LANE at.layer[l] = layer[l] < size[2] ? layer[l] : size[2] - 1;
  } else {
    memset(at.layer, 0, sizeof at.layer);
  }
  fetch_lanes(t, linear, floats, &at, mask, out);
  return true;
}
