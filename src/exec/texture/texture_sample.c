/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching: address modes, formats, point and linear filters, cubemap faces, mipmap levels.
 *
 * Per axis a coordinate becomes one or two texel indices and the weight of the second in 256ths: the hardware keeps
 * weights in 9 bits of fixed point with 8 bits behind the point, so that 1.0 is exact. Those of four texels
 * of a plane are also 256ths (texture_square_weight). Texels of weight 0 are not read. Sums are of doubles, in the
 * order of the texels, so a fetch gives the same bits everywhere. */
#include "exec/texture/texture_sample.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "exec/texture/texture_block.h"
#include "exec/texture/texture_texel.h"

/* weight of index[1] in 256ths; an index may be TEXTURE_BORDER */
typedef struct axis {
  int32_t index[2];
  uint32_t weight;
} axis;

/* ---- coordinates ---- */

/* Texel i of n, by the address mode. */
static int32_t wrap_index(int64_t i, uint32_t n, exec_address_mode mode) {
  int64_t count = n;
  if (i >= 0 && i < count) return (int32_t)i;
  switch (mode) {
  case EXEC_ADDRESS_WRAP: i %= count; return (int32_t)(i < 0 ? i + count : i);
  case EXEC_ADDRESS_MIRROR:
    i %= 2 * count;
    if (i < 0) i += 2 * count;
    return (int32_t)(i < count ? i : 2 * count - 1 - i);
  case EXEC_ADDRESS_BORDER: return TEXTURE_BORDER;
  default: return i < 0 ? 0 : (int32_t)(count - 1);
  }
}

/* The coordinate in texels, brought near [0, n] so that it is safe to make it an integer; where it is mirrored, near
 * [0, 2n]. GPUs mirror the texel that a coordinate lies in, as OpenGL 4.6 has it (table 8.20), and not the coordinate,
 * as the programming guide's formula: it matters where one texel ends and the next begins. */
static float in_texels(const exec_texture *t, float x, uint32_t n, exec_address_mode mode) {
  if (x != x) x = 0;
  if (t->sampler.normalized) {
    bool near = fabsf(x) < 0x1p30f; /* beyond it there is no fraction, and no infinity minus itself */
    if (mode == EXEC_ADDRESS_WRAP) x = near ? x - floorf(x) : 0;
    if (mode == EXEC_ADDRESS_MIRROR) x = near ? x - 2 * floorf(x / 2) : 0;
    x *= (float)n;
  }
  float most = (float)(mode == EXEC_ADDRESS_MIRROR ? 2 * n : n) + 2;
  return x < -2 ? -2 : x > most ? most : x;
}

static axis point_axis(const exec_texture *t, float x, int32_t offset, uint32_t n, uint32_t dimension) {
  exec_address_mode mode = texture_mode(t, dimension);
  return (axis){.index = {wrap_index((int64_t)floorf(in_texels(t, x, n, mode)) + offset, n, mode)}};
}

static axis linear_axis(const exec_texture *t, float x, int32_t offset, uint32_t n, uint32_t dimension) {
  exec_address_mode mode = texture_mode(t, dimension);
  float from = in_texels(t, x, n, mode) - 0.5f, below = floorf(from);
  int64_t i = (int64_t)below + offset;
  return (axis){.index = {wrap_index(i, n, mode), wrap_index(i + 1, n, mode)},
                .weight = (uint32_t)((from - below) * 256 + 0.5f)};
}

static axis integer_axis(const exec_texture *t, int32_t x, int32_t offset, uint32_t n, uint32_t dimension) {
  exec_address_mode mode = texture_mode(t, dimension);
  if (mode == EXEC_ADDRESS_WRAP || mode == EXEC_ADDRESS_MIRROR) mode = EXEC_ADDRESS_CLAMP;
  return (axis){.index = {wrap_index((int64_t)x + offset, n, mode)}};
}

/* ---- cubemaps ---- */

typedef struct face {
  uint32_t number;
  float major, s, t;
} face;

/* The axis with the largest magnitude; z before y before x where they are equal. */
static face face_of(float x, float y, float z) {
  float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
  if (az >= ax && az >= ay) return signbit(z) ? (face){5, az, -x, -y} : (face){4, az, x, -y};
  if (ay >= ax) return signbit(y) ? (face){3, ay, x, -z} : (face){2, ay, x, z};
  return signbit(x) ? (face){1, ax, z, -y} : (face){0, ax, -z, -y};
}

/* Turns a direction into coordinates of one layer. */
static texture_at onto_face(const exec_texture *t, const texture_at *at, uint32_t *layer) {
  texture_at flat = *at;
  face f = face_of(at->x, at->y, at->z);
  uint32_t cubes = t->level[0].depth / 6, cube = !t->layered ? 0 : at->layer < cubes ? at->layer : cubes - 1;
  float scale = t->sampler.normalized ? 1 : (float)t->level[0].width;
  flat.x = f.major > 0 ? (f.s / f.major + 1) * 0.5f * scale : 0.5f * scale;
  flat.y = f.major > 0 ? (f.t / f.major + 1) * 0.5f * scale : 0.5f * scale;
  *layer = 6 * cube + f.number;
  return flat;
}

static uint32_t layer_of(const exec_texture *t, const texture_at *at) {
  if (!t->layered) return 0;
  uint32_t layers = t->level[0].depth;
  return at->layer < layers ? at->layer : layers - 1;
}

/* ---- formats ---- */

float texture_srgb[256];
static pthread_once_t srgb_once = PTHREAD_ONCE_INIT;
static float of_srgb(double v) { return (float)(v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)); }
static void make_srgb(void) {
  for (int i = 0; i < 256; i++) texture_srgb[i] = of_srgb(i / 255.0);
}

void texture_prepare(const exec_texture *t) {
  if (t->sampler.srgb) pthread_once(&srgb_once, make_srgb);
}

void texture_border(const exec_texture *t, texture_value *value) {
  memset(value, 0, sizeof *value);
  if (t->resource == EXEC_RESOURCE_LINEAR) return;
  for (uint32_t c = 0; c < t->channels; c++) {
    float border = t->sampler.border[c];
    if (texture_gives_floats(t)) value->real[c] = border;
    else
      value->bits[c] = border != border    ? 0
                       : border < -0x1p31f ? 0x80000000u
                       : border >= 0x1p32f ? UINT32_MAX
                                           : (uint32_t)(int64_t)border;
  }
}

static bool may_be_srgb(exec_blocks format) {
  static const bool may[] = {false,
#define X(name, bytes, channels, type, srgb) srgb,
                             EXEC_BLOCK_FORMATS(X)
#undef X
  };
  return may[format];
}

/* ---- reading ---- */

static void unpack_block(const exec_texture *t, const unsigned char *block, uint32_t x, uint32_t y,
                         texture_value *value) {
  texture_block_texel(t->blocks, block, x, y, value->real);
  for (uint32_t c = 0; c < 3 && t->sampler.srgb && may_be_srgb(t->blocks); c++)
    value->real[c] = of_srgb(value->real[c]);
}

static void read_texel(const exec_texture *t, const exec_image *image, int32_t x, int32_t y, int32_t z,
                       texture_value *value, texture_reads *reads) {
  if (x == TEXTURE_BORDER || y == TEXTURE_BORDER || z == TEXTURE_BORDER) {
    texture_border(t, value);
    return;
  }
  uint32_t side = t->blocks ? 4 : 1;
  uint64_t address = image->address + (uint64_t)z * image->slice + (uint64_t)((uint32_t)y / side) * image->pitch +
                     (uint64_t)((uint32_t)x / side) * exec_texel_bytes(t);
  if (reads->count < TEXTURE_TEXELS) reads->address[reads->count++] = address;
  if (t->blocks) {
    unpack_block(t, (const unsigned char *)(uintptr_t)address, (uint32_t)x % side, (uint32_t)y % side, value);
    return;
  }
  texel_unpack(t->type, t->channels, texture_gives_floats(t), t->sampler.srgb,
               (const unsigned char *)(uintptr_t)address, value);
}

/* The axes of a fetch from one level. */
static void axes_of(const exec_texture *t, const exec_image *image, const texture_at *at, uint32_t layer, bool linear,
                    axis axes[3]) {
  const float where[3] = {at->x, at->y, at->z};
  const uint32_t size[3] = {image->width, image->height, image->depth};
  for (uint32_t d = 0; d < 3; d++) {
    if (d >= t->dimensions) axes[d] = (axis){.index = {d == 2 ? (int32_t)layer : 0}};
    else if (at->integer) axes[d] = integer_axis(t, at->index[d], at->offset[d], size[d], d);
    else if (linear) axes[d] = linear_axis(t, where[d], at->offset[d], size[d], d);
    else axes[d] = point_axis(t, where[d], at->offset[d], size[d], d);
  }
}

/* Adds the level's filtered value, times `share`, to sum. */
static void add_level(const exec_texture *t, uint32_t level, const texture_at *at, uint32_t layer, double share,
                      double sum[4], texture_reads *reads) {
  axis axes[3];
  const exec_image *image = &t->level[level];
  axes_of(t, image, at, layer, true, axes);
  for (uint32_t corner = 0; corner < 8; corner++) {
    uint32_t ix = corner & 1, iy = corner >> 1 & 1, iz = corner >> 2;
    uint32_t weight = texture_square_weight(axes[0].weight, axes[1].weight, corner & 3) *
                      (iz ? axes[2].weight : 256 - axes[2].weight);
    if (!weight) continue;
    texture_value value;
    read_texel(t, image, axes[0].index[ix], axes[1].index[iy], axes[2].index[iz], &value, reads);
    for (uint32_t c = 0; c < 4; c++) sum[c] += share * weight / (256.0 * 256) * value.real[c];
  }
}

static void point_level(const exec_texture *t, uint32_t level, const texture_at *at, uint32_t layer,
                        texture_value *value, texture_reads *reads) {
  axis axes[3];
  axes_of(t, &t->level[level], at, layer, false, axes);
  read_texel(t, &t->level[level], axes[0].index[0], axes[1].index[0], axes[2].index[0], value, reads);
}

/* ---- mipmap levels ---- */

/* The level below, and the weight of the next one in 256ths. */
static uint32_t pick_level(const exec_texture *t, const texture_at *at, uint32_t *weight) {
  *weight = 0;
  if (!at->mipmap || t->level_count == 1) return 0;
  const exec_sampler *s = &t->sampler;
  float last = (float)(t->level_count - 1), lod = at->lod + s->bias;
  if (!(lod >= s->min_level)) lod = s->min_level;
  if (lod > s->max_level) lod = s->max_level;
  if (!(lod > 0)) lod = 0;
  if (lod > last) lod = last;
  if (!s->mip_linear) return (uint32_t)(lod + 0.5f) < t->level_count ? (uint32_t)(lod + 0.5f) : t->level_count - 1;
  float below = floorf(lod);
  *weight = (uint32_t)((lod - below) * 256 + 0.5f);
  return (uint32_t)below;
}

float texture_lod(const exec_texture *t, const texture_at *at, const float dx[3], const float dy[3]) {
  const exec_image *base = &t->level[0];
  float size[3] = {(float)base->width, (float)base->height, (float)base->depth};
  double x = 0, y = 0;
  if (t->cube) size[0] = size[1] = size[2] = size[0] / 2 / fmaxf(face_of(at->x, at->y, at->z).major, 0x1p-126f);
  for (uint32_t d = 0; d < (t->cube ? 3u : t->dimensions); d++) {
    double scale = t->sampler.normalized ? (double)size[d] : 1;
    x += dx[d] * scale * (dx[d] * scale);
    y += dy[d] * scale * (dy[d] * scale);
  }
  double most = x > y ? x : y;
  return most > 0 ? (float)(0.5 * log2(most)) : -128;
}

/* ---- fetches ---- */

static texture_at prepare(const exec_texture *t, const texture_at *at, uint32_t *layer) {
  texture_prepare(t);
  if (t->cube) return onto_face(t, at, layer);
  *layer = layer_of(t, at);
  return *at;
}

void texture_fetch(const exec_texture *t, const texture_at *at, texture_value *value, texture_reads *reads) {
  uint32_t layer, weight, level = pick_level(t, at, &weight);
  texture_at where = prepare(t, at, &layer);
  bool floats = texture_gives_floats(t);
  reads->count = 0;
  if (!floats || (!weight && (!t->sampler.linear || at->integer))) {
    point_level(t, level, &where, layer, value, reads);
    return;
  }
  double sum[4] = {0};
  for (uint32_t next = 0; next < 2; next++) {
    uint32_t part = next ? weight : 256 - weight;
    if (!part) continue;
    if (t->sampler.linear && !at->integer) {
      add_level(t, level + next, &where, layer, part / 256.0, sum, reads);
      continue;
    }
    texture_value texel;
    point_level(t, level + next, &where, layer, &texel, reads);
    for (uint32_t c = 0; c < 4; c++) sum[c] += part / 256.0 * texel.real[c];
  }
  for (uint32_t c = 0; c < 4; c++) value->real[c] = (float)sum[c];
}

void texture_gather(const exec_texture *t, const texture_at *at, uint32_t component, texture_value *value,
                    texture_reads *reads) {
  /* counter-clockwise from the lower left one, y downwards */
  static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  uint32_t layer;
  texture_at where = prepare(t, at, &layer);
  const exec_image *image = &t->level[0];
  axis axes[3];
  reads->count = 0;
  axes_of(t, image, &where, layer, true, axes);
  if (t->dimensions == 1) axes[1].index[1] = axes[1].index[0];
  for (uint32_t n = 0; n < 4; n++) {
    texture_value texel;
    read_texel(t, image, axes[0].index[order[n][0]], axes[1].index[order[n][1]], axes[2].index[0], &texel, reads);
    value->bits[n] = texel.bits[component];
  }
}

/* ---- formatted stores ---- */

static uint32_t clamp_integer(exec_texel_type type, uint32_t bits) {
  int32_t value = (int32_t)bits;
  switch (type) {
  case EXEC_TEXEL_U8: return bits > 0xff ? 0xff : bits;
  case EXEC_TEXEL_U16: return bits > 0xffff ? 0xffff : bits;
  case EXEC_TEXEL_S8: return (uint32_t)(value < -128 ? -128 : value > 127 ? 127 : value);
  case EXEC_TEXEL_S16: return (uint32_t)(value < -32768 ? -32768 : value > 32767 ? 32767 : value);
  default: return bits;
  }
}

/* The integer that stands for a number in [0, 1] or [-1, 1]; 0 for NaN. */
static uint32_t normalize(exec_texel_type type, float real) {
  bool is_signed = type == EXEC_TEXEL_S8 || type == EXEC_TEXEL_S16;
  float most = type == EXEC_TEXEL_U8    ? 255
               : type == EXEC_TEXEL_S8  ? 127
               : type == EXEC_TEXEL_U16 ? 65535
                                        : 32767,
        least = is_signed ? -1 : 0;
  float inside = real != real ? 0 : real < least ? least : real > 1 ? 1 : real;
  return (uint32_t)(int32_t)rint((double)inside * most);
}

static uint32_t pack_channel(const exec_texture *t, uint32_t bits) {
  if (t->normalized) return normalize(t->type, ops_f32_of(bits));
  return t->type == EXEC_TEXEL_F16 ? ops_f16_rn(ops_f32_of(bits)) : clamp_integer(t->type, bits);
}

void texture_pack(const exec_texture *t, const uint32_t bits[4], unsigned char *texel) {
  uint32_t step = exec_texel_channel_bytes(t->type);
  for (uint32_t c = 0; c < t->channels; c++) {
    uint32_t value = pack_channel(t, bits[c]);
    memcpy(texel + c * step, &value, step); /* little-endian */
  }
}
