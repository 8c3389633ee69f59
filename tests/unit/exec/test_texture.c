/* SPDX-License-Identifier: Apache-2.0 */
/* Texture fetches against a reference that follows the programming guide's formulas texel by texel: geometries,
 * filters, address modes, formats, layers, cubemaps, mipmap levels, gathers, offsets, queries. */
#include <math.h>

#include "texture_harness.h"

#include "exec/texture/texture_block.h"

/* ---- the reference ---- */

static double half_value(uint32_t h) {
  int exponent = (int)(h >> 10 & 31);
  double m = h & 1023, v = exponent ? ldexp(1024 + m, exponent - 25) : ldexp(m, -24);
  return h & 0x8000 ? -v : v;
}

/* One channel of texel (x, y, z) as a number; integers as they are unless read as floats. */
static double channel_at(const exec_texture *t, const exec_image *image, long x, long y, long z, uint32_t c) {
  if (t->blocks) { /* which test_block.c tests */
    const unsigned char *block = (const unsigned char *)(uintptr_t)(image->address + (uint64_t)z * image->slice +
                                                                    (uint64_t)(y / 4) * image->pitch) +
                                 (uint64_t)(x / 4) * exec_texel_bytes(t);
    float v[4];
    texture_block_texel(t->blocks, block, (uint32_t)x % 4, (uint32_t)y % 4, v);
    bool coloured = t->blocks <= EXEC_BLOCKS_BC3 || t->blocks == EXEC_BLOCKS_BC7;
    if (!t->sampler.srgb || !coloured || c == 3) return v[c];
    return (double)v[c] <= 0.04045 ? (double)v[c] / 12.92 : pow(((double)v[c] + 0.055) / 1.055, 2.4);
  }
  const unsigned char *p =
      (const unsigned char *)(uintptr_t)(image->address + (uint64_t)z * image->slice + (uint64_t)y * image->pitch) +
      (uint64_t)x * exec_texel_bytes(t);
  uint8_t b;
  uint16_t h;
  uint32_t w;
  float f;
  bool n = t->sampler.as_float;
  if (c >= t->channels) return 0;
  switch (t->type) {
  case EXEC_TEXEL_U8:
    b = p[c];
    return !n                         ? b
           : t->sampler.srgb && c < 3 ? (b <= 10 ? b / 255.0 / 12.92 : pow((b / 255.0 + 0.055) / 1.055, 2.4))
                                      : b / 255.0;
  case EXEC_TEXEL_S8: b = p[c]; return !n ? (int8_t)b : (int8_t)b == -128 ? -1 : (int8_t)b / 127.0;
  case EXEC_TEXEL_U16: memcpy(&h, p + 2 * c, 2); return n ? h / 65535.0 : h;
  case EXEC_TEXEL_S16:
    memcpy(&h, p + 2 * c, 2);
    return !n ? (int16_t)h : (int16_t)h == -32768 ? -1 : (int16_t)h / 32767.0;
  case EXEC_TEXEL_U32: memcpy(&w, p + 4 * c, 4); return w;
  case EXEC_TEXEL_S32: memcpy(&w, p + 4 * c, 4); return (int32_t)w;
  case EXEC_TEXEL_F16: memcpy(&h, p + 2 * c, 2); return half_value(h);
  default: memcpy(&f, p + 4 * c, 4); return f;
  }
}

/* Texel i of n; -1: the border. */
static long texel_of(long i, long n, exec_address_mode mode, bool normalized) {
  if (mode == EXEC_ADDRESS_BORDER) return i < 0 || i >= n ? -1 : i;
  if (mode == EXEC_ADDRESS_CLAMP || !normalized) return i < 0 ? 0 : i >= n ? n - 1 : i;
  if (mode == EXEC_ADDRESS_WRAP) return ((i % n) + n) % n;
  while (i < 0 || i >= n) i = i < 0 ? -1 - i : 2 * n - 1 - i; /* reflected at the edges */
  return i;
}

static double texel(const exec_texture *t, const exec_image *image, const long at[3], uint32_t layer, uint32_t c) {
  const exec_sampler *s = &t->sampler;
  const long size[3] = {image->width, image->height, image->depth};
  long where[3] = {0, 0, (long)layer};
  for (int d = 0; d < t->dimensions; d++)
    if ((where[d] = texel_of(at[d], size[d], s->mode[d], s->normalized)) < 0)
      return c < t->channels ? (double)s->border[c] : 0;
  return channel_at(t, image, where[0], where[1], where[2], c);
}

/* A fetch from one level at coordinates that are exact in binary. */
static double reference(const exec_texture *t, uint32_t level, const float coordinates[3], uint32_t layer, uint32_t c) {
  const exec_image *image = &t->level[level];
  const double size[3] = {image->width, image->height, image->depth};
  long low[3] = {0};
  double weight[3] = {0}, sum = 0;
  for (int d = 0; d < t->dimensions; d++) {
    double x = t->sampler.normalized ? coordinates[d] * size[d] : (double)coordinates[d];
    if (t->sampler.linear) x -= 0.5;
    low[d] = (long)floor(x);
    weight[d] = t->sampler.linear ? floor((x - floor(x)) * 256 + 0.5) / 256 : 0;
  }
  double both = floor(weight[0] * weight[1] * 256 + 0.5) / 256; /* of the texel that is right and above */
  double square[4] = {1 - weight[0] - weight[1] + both, weight[0] - both, weight[1] - both, both};
  for (int corner = 0; corner < 8; corner++) {
    long at[3];
    for (int d = 0; d < 3; d++) at[d] = low[d] + (corner >> d & 1);
    double share = square[corner & 3] * (corner >> 2 ? weight[2] : 1 - weight[2]);
    if (share > 0) sum += share * texel(t, image, at, layer, c);
  }
  return sum;
}

static bool gives_floats(const exec_texture *t) {
  return !exec_texel_is_integer(t->type) || (t->sampler.as_float && exec_texel_channel_bytes(t->type) < 4);
}

static void expect_channel(const exec_texture *t, double want, words got, uint32_t c, const char *what,
                           uint32_t point) {
  if (gives_floats(t)) {
    double off = fabs(got.f[c] - want);
    if (!(off <= 2e-7 * fmax(1, fabs(want))))
      fail_msg("%s, point %u, channel %u: %.9g, not %.9g", what, point, c, (double)got.f[c], want);
  } else if (got.u[c] != (uint32_t)(int64_t)want) {
    fail_msg("%s, point %u, channel %u: 0x%x, not 0x%x", what, point, c, got.u[c], (uint32_t)(int64_t)want);
  }
}

/* ---- points ---- */

/* Coordinates around and inside the image in steps that floats and their products hold exactly. */
static float coordinate(uint32_t seed, uint32_t size, bool normalized) {
  float texels = (float)((int)(hash(seed) % (6 * 64 * size)) - (int)(2 * 64 * size)) / 64;
  return normalized ? texels / (float)size : texels; /* sizes are powers of two where normalised */
}

static void make_points(words *points, const exec_texture *t, uint32_t seed) {
  const uint32_t size[3] = {t->level[0].width, t->level[0].height, t->level[0].depth};
  for (uint32_t n = 0; n < POINTS; n++)
    for (uint32_t d = 0; d < 4; d++)
      points[n].f[d] = d < 3 ? coordinate(seed + 4 * n + d, size[d], t->sampler.normalized) : 0;
}

static const char *const plain[] = {NULL, "tex.1d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0}];",
                                    "tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];",
                                    "tex.3d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1,%f2,%f2}];"};

/* When a checker watches, lanes go one after the other: the same bits. */
static void expect_same_lane_by_lane(uint64_t handle, const words *points, const words *got, uint32_t count,
                                     const char *what) {
  words again[POINTS];
  ff_virtual_use use = {.base = given, .bytes = 16 + 2 * POINTS * 16, .read = 1, .write = 1, .segment = "block"};
  test->uses = &use;
  test->use_count = 1;
  fetch(handle, points, again, count);
  test->uses = NULL;
  test->use_count = 0;
  for (uint32_t n = 0; n < count; n++)
    if (memcmp(&again[n], &got[n], sizeof again[n]))
      fail_msg("%s, point %u: the warp's ways differ: %x and %x", what, n, got[n].u[0], again[n].u[0]);
}

static void compare_plain(const image *i, const exec_sampler *sampler, uint32_t seed, const char *what) {
  words points[POINTS], got[POINTS];
  exec_texture t = i->texture;
  t.sampler = *sampler;
  make_points(points, &t, seed);
  uint64_t handle = add_texture(i, sampler);
  fetch(handle, points, got, POINTS);
  for (uint32_t n = 0; n < POINTS; n++)
    for (uint32_t c = 0; c < 4; c++) expect_channel(&t, reference(&t, 0, points[n].f, 0, c), got[n], c, what, n);
  expect_same_lane_by_lane(handle, points, got, POINTS, what);
}

/* Every geometry with every address mode and both filters, normalised and not. */
static void test_modes(void **state) {
  static const char *const names[] = {"wrap", "clamp", "mirror", "border"};
  for (uint8_t dimensions = 1; dimensions <= 3; dimensions++) {
    open_instruction(plain[dimensions]);
    image even = make_image(EXEC_TEXEL_F32, 2, dimensions, 16, dimensions > 1 ? 8 : 1, dimensions > 2 ? 4 : 1);
    image odd = make_image(EXEC_TEXEL_F32, 1, dimensions, 13, dimensions > 1 ? 7 : 1, dimensions > 2 ? 5 : 1);
    for (uint32_t m = 0; m < 4; m++)
      for (uint32_t form = 0; form < 4; form++) {
        char what[80];
        exec_address_mode mode = (exec_address_mode)m, other = (exec_address_mode)((m + form) % 4);
        exec_sampler s = {
            .mode = {mode, other, mode}, .linear = form & 1, .normalized = form >> 1, .border = {0.25f, -3}};
        snprintf(what, sizeof what, "%uD %s/%s %s%s", dimensions, names[m], names[other], form & 1 ? "linear" : "point",
                 form >> 1 ? " normalised" : "");
        compare_plain(form >> 1 ? &even : &odd, &s, 1000 * m + form, what);
      }
  }
}

/* Every format, one, two and four channels, as integers, as normalised floats, filtered. */
/* The weights of four texels are 256ths that add up to one: of texels of 1 before a border of 0, a fetch gives the
 * weights themselves. 0.4 is 102/256, 0.8 is 205/256, and their products are rounded to the nearest. */
static void test_weights_of_squares(void **state) {
  static const struct {
    float x, y, want;
  } cases[] = {{-0.1f, -0.1f, 41}, {0.3f, 0.3f, 164}, {-0.1f, 0.3f, 82}, {0.5f, -0.1f, 102}, {2.1f, 0.3f, 82},
               {2.1f, 2.1f, 41},   {1, 1, 256},       {-0.45f, 2.4f, 1}, {-0.49f, -0.25f, 1}};
  const uint32_t count = sizeof cases / sizeof *cases;
  words points[POINTS] = {0}, got[POINTS];
  open_instruction("tex.2d.v4.f32.f32 {%f10,%f11,%f12,%f13}, [%h, {%f0,%f1}];");
  image i = make_image(EXEC_TEXEL_F32, 1, 2, 2, 2, 1);
  for (uint32_t row = 0; row < 2; row++)
    for (uint32_t column = 0; column < 2; column++) {
      const float one = 1;
      memcpy((char *)(uintptr_t)i.texture.level[0].address + row * i.texture.level[0].pitch + column * sizeof one, &one,
             sizeof one);
    }
  exec_sampler s = {.mode = {EXEC_ADDRESS_BORDER, EXEC_ADDRESS_BORDER}, .linear = true};
  for (uint32_t n = 0; n < count; n++) points[n].f[0] = cases[n].x, points[n].f[1] = cases[n].y;
  uint64_t handle = add_texture(&i, &s);
  fetch(handle, points, got, count);
  for (uint32_t n = 0; n < count; n++)
    if (got[n].f[0] * 256 != cases[n].want)
      fail_msg("(%g, %g) gives %g / 256, not %g", (double)cases[n].x, (double)cases[n].y, (double)(got[n].f[0] * 256),
               (double)cases[n].want);
  expect_same_lane_by_lane(handle, points, got, count, "weights of squares");
}

static void test_formats(void **state) {
  open_instruction(plain[2]);
  for (int type = 0; type < EXEC_TEXEL_COUNT; type++)
    for (uint8_t channels = 1; channels <= 4; channels *= 2) {
      image i = make_image((exec_texel_type)type, channels, 2, 16, 8, 1);
      for (uint32_t form = 0; form < 4; form++) {
        exec_sampler s = {.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP}, .as_float = form & 1, .linear = form >> 1};
        exec_texture t = i.texture;
        t.sampler = s;
        char what[80];
        snprintf(what, sizeof what, "type %d, %u channels, form %u", type, channels, form);
        if (!s.linear || gives_floats(&t)) compare_plain(&i, &s, 7 * form + (uint32_t)type, what);
      }
    }
  image i = make_image(EXEC_TEXEL_U8, 4, 2, 16, 16, 1);
  compare_plain(
      &i,
      &(exec_sampler){.as_float = true, .srgb = true, .linear = true, .mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP}},
      3, "sRGB");
}

/* Block compression, also of images that end within a block, of layers, by gathers. */
static void test_blocks(void **state) {
  static const struct {
    uint8_t channels;
    exec_texel_type type;
  } inside[EXEC_BLOCKS_COUNT] = {{0},
#define X(name, bytes, channels, type, srgb) {channels, EXEC_TEXEL_##type},
                                 EXEC_BLOCK_FORMATS(X)
#undef X
  };
  for (int blocks = 1; blocks < EXEC_BLOCKS_COUNT; blocks++)
    for (uint32_t form = 0; form < 8; form++) {
      bool odd = form & 1, linear = form >> 1 & 1;
      open_instruction(plain[form == 4 ? 3 : 2]);
      /* room for more */
      image i = make_image(EXEC_TEXEL_U32, 4, form == 4 ? 3 : 2, odd ? 13 : 16, odd ? 10 : 16, form == 4 ? 4 : 1);
      i.texture.blocks = (exec_blocks)blocks;
      i.texture.type = inside[blocks].type;
      i.texture.channels = inside[blocks].channels;
      if (blocks == EXEC_BLOCKS_BC6H_SIGNED && linear) continue; /* random blocks have infinities */
      exec_sampler s = {.mode = {EXEC_ADDRESS_BORDER, EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP},
                        .as_float = true,
                        .linear = linear,
                        .srgb = form >> 2,
                        .border = {0.25f, 0.5f},
                        .normalized = form == 6};
      char what[80];
      snprintf(what, sizeof what, "block compression %d, form %u", blocks, form);
      compare_plain(&i, &s, 5 * form + (uint32_t)blocks, what);
    }
}

/* One channel of the four texels around a place; and the block that they share is read once. */
static void test_gather_of_blocks(void **state) {
  open_instruction("tld4.g.2d.v4.f32.f32 {%f10,%f11,%f12,%f13}, [%h, {6.0, 7.0}];");
  image i = make_image(EXEC_TEXEL_U8, 4, 2, 16, 16, 1);
  words nothing = {{0}}, got;
  float want[4];
  i.texture.blocks = EXEC_BLOCKS_BC7;
  fetch(add_texture(&i, &(exec_sampler){.as_float = true}), &nothing, &got, 1);
  const exec_image *image = &i.texture.level[0];
  for (uint32_t n = 0; n < 4; n++) { /* (5, 7) (6, 7) (6, 6) (5, 6) */
    uint32_t x = n == 1 || n == 2 ? 6 : 5, y = n < 2 ? 7 : 6;
    texture_block_texel(EXEC_BLOCKS_BC7,
                        (const unsigned char *)(uintptr_t)(image->address + y / 4 * image->pitch + x / 4 * 16), x % 4,
                        y % 4, want);
    assert_true(got.f[n] == want[1]);
  }
}

/* What may not be in the table: blocks outside of the memory, surfaces and lines of blocks. */
static void test_wrong_blocks(void **state) {
  open_instruction(plain[2]);
  image i = make_image(EXEC_TEXEL_U8, 4, 2, 16, 16, 1);
  uint64_t handle;
  exec_texture good = i.texture;
  good.blocks = EXEC_BLOCKS_BC7;
  good.sampler.as_float = true;
  good.bytes = 3 * good.level[0].pitch + 4 * 16;
  assert_int_equal(exec_texture_add(test->memory, &good, &handle, NULL), FF_OK);
  exec_texture wrong = good;
  wrong.bytes--;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.level[0].width = 17;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.level[0].height = 17;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.surface = true;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.dimensions = 1;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.sampler.as_float = false;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
  wrong = good, wrong.blocks = EXEC_BLOCKS_COUNT;
  assert_int_equal(exec_texture_add(test->memory, &wrong, &handle, NULL), FF_INVALID);
}

/* Coordinates that are no numbers, infinite or huge give some texel of the image, or the border. */
static void test_extreme_coordinates(void **state) {
  static const float extremes[] = {NAN, INFINITY, -INFINITY, 3e38f,     -3e38f,     1e10f,       -1e10f,
                                   0,   -0.0f,    1,         0x1p-149f, -0x1p-149f, 0.99999994f, 16777216};
  enum { COUNT = sizeof extremes / sizeof *extremes };
  open_instruction(plain[2]);
  image i = make_image(EXEC_TEXEL_U8, 1, 2, 8, 8, 1);
  for (uint32_t form = 0; form < 16; form++) {
    exec_sampler s = {.mode = {(exec_address_mode)(form & 3), (exec_address_mode)(form & 3)},
                      .normalized = form >> 2 & 1,
                      .linear = form >> 3,
                      .as_float = form >> 3,
                      .border = {0.5f}};
    words points[COUNT * COUNT], got[COUNT * COUNT];
    for (uint32_t n = 0; n < COUNT * COUNT; n++) points[n] = (words){.f = {extremes[n % COUNT], extremes[n / COUNT]}};
    uint64_t handle = add_texture(&i, &s);
    fetch(handle, points, got, COUNT * COUNT);
    expect_same_lane_by_lane(handle, points, got, COUNT * COUNT, "extremes");
    for (uint32_t n = 0; n < COUNT * COUNT; n++)
      assert_true(s.linear ? got[n].f[0] >= 0 && got[n].f[0] <= 1 : got[n].u[0] <= 255);
  }
  words at[1] = {{.f = {INFINITY, -INFINITY}}}, got[1];
  fetch(add_texture(&i, &(exec_sampler){.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP}}), at, got, 1);
  assert_int_equal(got[0].u[0], *(const uint8_t *)(uintptr_t)(i.texture.address + 7));
}

/* Integer coordinates: arrays clamp or have a border; linear memory gives nothing outside. */
static void test_integer_coordinates(void **state) {
  words points[64], got[64];
  open_instruction("tex.1d.v4.s32.s32 {%r20,%r21,%r22,%r23}, [%h, {%r10}];");
  image i = make_image(EXEC_TEXEL_S32, 1, 1, 16, 1, 1);
  i.texture.resource = EXEC_RESOURCE_LINEAR;
  i.texture.level[0].pitch = i.texture.level[0].slice = 0;
  for (int n = 0; n < 64; n++) points[n] = (words){.s = {n == 63 ? INT32_MIN : n == 62 ? INT32_MAX : n - 20}};
  fetch(add_texture(&i, &(exec_sampler){.border = {9}}), points, got, 64);
  const int32_t *texels = (const int32_t *)(uintptr_t)i.texture.address;
  for (int n = 0; n < 64; n++)
    assert_int_equal(got[n].s[0], points[n].s[0] >= 0 && points[n].s[0] < 16 ? texels[points[n].s[0]] : 0);
  i.texture.resource = EXEC_RESOURCE_ARRAY;
  fetch(add_texture(&i, &(exec_sampler){0}), points, got, 64);
  for (int n = 0; n < 64; n++)
    assert_int_equal(got[n].s[0], texels[points[n].s[0] < 0 ? 0 : points[n].s[0] > 15 ? 15 : points[n].s[0]]);
}

static void test_layers(void **state) {
  static const char *const forms[] = {"tex.a1d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%r13,%f0}];",
                                      "tex.a2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%r13,%f0,%f1,%f1}];"};
  for (uint8_t dimensions = 1; dimensions <= 2; dimensions++) {
    words points[POINTS], got[POINTS];
    open_instruction(forms[dimensions - 1]);
    image i = make_levels(EXEC_TEXEL_F32, 1, dimensions, 16, dimensions > 1 ? 8 : 1, 5, 1, true);
    exec_sampler s = {.mode = {EXEC_ADDRESS_WRAP, EXEC_ADDRESS_CLAMP}, .linear = true, .normalized = true};
    exec_texture t = i.texture;
    t.sampler = s;
    make_points(points, &t, 5);
    for (uint32_t n = 0; n < POINTS; n++) points[n].u[3] = n % 7 == 6 ? UINT32_MAX : n % 7;
    uint64_t handle = add_texture(&i, &s);
    fetch(handle, points, got, POINTS);
    for (uint32_t n = 0; n < POINTS; n++)
      expect_channel(&t, reference(&t, 0, points[n].f, points[n].u[3] > 4 ? 4 : points[n].u[3], 0), got[n], 0, "layers",
                     n);
    expect_same_lane_by_lane(handle, points, got, POINTS, "layers");
  }
}

/* The programming guide's table of faces: the axis m, and what s and t are. */
static uint32_t face_reference(const float v[3], float *s, float *t) {
  float x = v[0], y = v[1], z = v[2], ax = fabsf(x), ay = fabsf(y), az = fabsf(z), m;
  uint32_t face;
  if (ax > ay && ax > az) face = x > 0 ? 0 : 1, m = ax, *s = x > 0 ? -z : z, *t = -y;
  else if (ay > az) face = y > 0 ? 2 : 3, m = ay, *s = x, *t = y > 0 ? z : -z;
  else face = z > 0 ? 4 : 5, m = az, *s = z > 0 ? x : -x, *t = -y;
  *s = (*s / m + 1) / 2;
  *t = (*t / m + 1) / 2;
  return face;
}

static void test_cubemaps(void **state) {
  words points[POINTS], got[POINTS];
  for (uint32_t n = 0; n < POINTS; n++) {
    float largest = hash(n) & 1 ? 64 : -64; /* the other two are smaller odd numbers of 64ths: exact, and no ties */
    for (uint32_t d = 0; d < 3; d++)
      points[n].f[d] = d == n % 3 ? largest : (float)((int)(hash(4 * n + d) % 63) - 31) * 2 + 1;
    points[n].u[3] = hash(n + 9) % 4;
  }
  for (uint32_t layered = 0; layered < 2; layered++) {
    open_instruction(layered ? "tex.acube.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%r13,%f0,%f1,%f2}];"
                             : "tex.cube.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1,%f2,%f2}];");
    image i = make_levels(EXEC_TEXEL_F32, 1, 2, 8, 8, layered ? 18 : 6, 1, layered);
    i.texture.cube = true;
    exec_sampler s = {.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_CLAMP}, .linear = true, .normalized = true};
    exec_texture t = i.texture;
    t.sampler = s;
    fetch(add_texture(&i, &s), points, got, POINTS);
    for (uint32_t n = 0; n < POINTS; n++) {
      float on_face[3] = {0};
      uint32_t face = face_reference(points[n].f, &on_face[0], &on_face[1]), cube = !layered ? 0
                                                                                    : points[n].u[3] > 2
                                                                                        ? 2
                                                                                        : points[n].u[3];
      expect_channel(&t, reference(&t, 0, on_face, 6 * cube + face, 0), got[n], 0, "cubemap", n);
    }
  }
}

/* ---- mipmap levels ---- */

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double level_reference(const exec_texture *t, const float at[3], double lod) {
  const exec_sampler *s = &t->sampler;
  lod = clamp(clamp(lod + (double)s->bias, s->min_level, s->max_level), 0, t->level_count - 1);
  if (!s->mip_linear) return reference(t, (uint32_t)fmin(floor(lod + 0.5), t->level_count - 1), at, 0, 0);
  uint32_t below = (uint32_t)lod;
  double share = floor((lod - below) * 256 + 0.5) / 256;
  return (1 - share) * reference(t, below, at, 0, 0) + (share > 0 ? share * reference(t, below + 1, at, 0, 0) : 0);
}

static void test_levels(void **state) {
  words points[POINTS], got[POINTS];
  open_instruction("tex.level.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}], %f3;");
  image i = make_levels(EXEC_TEXEL_F32, 1, 2, 16, 16, 1, 5, false);
  for (uint32_t form = 0; form < 8; form++) {
    exec_sampler s = {.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_WRAP},
                      .normalized = true,
                      .linear = form & 1,
                      .mip_linear = form >> 1 & 1,
                      .bias = form >> 2 ? 0.75f : 0,
                      .min_level = form >> 2 ? 0.5f : 0,
                      .max_level = form >> 2 ? 2.25f : 100};
    exec_texture t = i.texture;
    t.sampler = s;
    make_points(points, &t, form);
    for (uint32_t n = 0; n < POINTS; n++) points[n].f[3] = (float)(int)(hash(n) % 256) / 32 - 1.5f;
    fetch(add_texture(&i, &s), points, got, POINTS);
    for (uint32_t n = 0; n < POINTS; n++)
      expect_channel(&t, level_reference(&t, points[n].f, (double)points[n].f[3]), got[n], 0, "levels", n);
  }
  /* without .level it is the first one */
  open_instruction("tex.base.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}];");
  i = make_levels(EXEC_TEXEL_F32, 1, 2, 16, 16, 1, 5, false);
  i.texture.sampler = (exec_sampler){.normalized = true, .bias = 3, .min_level = 2, .max_level = 4};
  compare_plain(&i, &i.texture.sampler, 4, "base");
}

static void test_gradients(void **state) {
  words points[6], got[6];
  open_instruction(
      "tex.grad.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {0f3F000000,0f3F000000}], {%f0,%f1}, {%f2,%f3};");
  image i = make_levels(EXEC_TEXEL_F32, 1, 2, 16, 16, 1, 5, false);
  exec_sampler s = {.normalized = true, .mip_linear = true, .max_level = 10};
  exec_texture t = i.texture;
  t.sampler = s;
  static const struct {
    float d[4];
    double lod;
  } cases[] = {{{1 / 16.f, 0, 0, 0}, 0}, {{2 / 16.f, 0, 0, 1 / 16.f}, 1},
               {{0, 0, 0, 8 / 16.f}, 3}, {{0, 4 / 16.f, 0, 0}, 2},
               {{0, 0, 0, 0}, 0},        {{100, 100, 100, 100}, 4}};
  for (int n = 0; n < 6; n++) memcpy(points[n].f, cases[n].d, sizeof cases[n].d);
  fetch(add_texture(&i, &s), points, got, 6);
  for (uint32_t n = 0; n < 6; n++)
    expect_channel(&t, level_reference(&t, (const float[3]){0.5f, 0.5f}, cases[n].lod), got[n], 0, "gradients", n);
}

/* ---- the rest of the forms ---- */

static void test_gather(void **state) {
  static const char letters[] = "rgba";
  for (uint32_t component = 0; component < 4; component++) {
    char text[128];
    words points[POINTS], got[POINTS];
    snprintf(text, sizeof text, "tld4.%c.2d.v4.f32.f32 {%%f10,%%f11,%%f12,%%f13}, [%%h, {%%f0,%%f1}];",
             letters[component]);
    open_instruction(text);
    image i = make_image(EXEC_TEXEL_F32, 4, 2, 16, 8, 1);
    exec_texture t = i.texture;
    t.sampler = (exec_sampler){.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_BORDER}, .border = {1, 2, 3, 4}};
    make_points(points, &t, component);
    fetch(add_texture(&i, &t.sampler), points, got, POINTS);
    for (uint32_t n = 0; n < POINTS; n++) {
      long x = (long)floor((double)points[n].f[0] - 0.5), y = (long)floor((double)points[n].f[1] - 0.5);
      const long corners[4][3] = {{x, y + 1}, {x + 1, y + 1}, {x + 1, y}, {x, y}};
      for (uint32_t c = 0; c < 4; c++)
        expect_channel(&t, texel(&t, &t.level[0], corners[c], 0, component), got[n], c, "gather", n);
    }
  }
}

static void test_offsets(void **state) {
  words points[POINTS], moved[POINTS], got[POINTS];
  open_instruction("tex.2d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0,%f1}], {-3, 5};");
  image i = make_image(EXEC_TEXEL_F32, 1, 2, 16, 8, 1);
  exec_texture t = i.texture;
  t.sampler = (exec_sampler){.mode = {EXEC_ADDRESS_WRAP, EXEC_ADDRESS_MIRROR}, .linear = true, .normalized = true};
  make_points(points, &t, 11);
  fetch(add_texture(&i, &t.sampler), points, got, POINTS);
  for (uint32_t n = 0; n < POINTS; n++) {
    moved[n] = (words){.f = {points[n].f[0] - 3 / 16.f, points[n].f[1] + 5 / 8.f}}; /* and is mirrored then */
    expect_channel(&t, reference(&t, 0, moved[n].f, 0, 0), got[n], 0, "offset", n);
  }
}

/* Weights are 1.8 fixed point, rounded to the nearest: between texels of 0 and 1 what is read is the weight itself. And
 * mirroring is of texels: at an edge it is the one that the coordinate begins. */
static void test_every_weight(void **state) {
  words points[POINTS], got[POINTS];
  open_instruction("tex.1d.v4.u32.f32 {%r20,%r21,%r22,%r23}, [%h, {%f0}];");
  image i = make_image(EXEC_TEXEL_F32, 1, 1, 2, 1, 1);
  memcpy((void *)(uintptr_t)i.texture.address, (float[2]){0, 1}, 8);
  uint64_t linear = add_texture(&i, &(exec_sampler){.mode = {EXEC_ADDRESS_CLAMP}, .linear = true});
  for (uint32_t part = 0; part < 4096; part += POINTS) {
    for (uint32_t n = 0; n < POINTS; n++) points[n].f[0] = 0.5f + (float)(part + n) / 4096;
    fetch(linear, points, got, POINTS);
    for (uint32_t n = 0; n < POINTS; n++) assert_true(got[n].f[0] == (float)((part + n + 8) / 16) / 256);
  }
  uint64_t mirror = add_texture(&i, &(exec_sampler){.mode = {EXEC_ADDRESS_MIRROR}, .normalized = true});
  static const float at[] = {-3, -2.5f, -2, -1.5f, -1, -0.5f, 0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 4};
  static const float want[] = {1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0};
  for (uint32_t n = 0; n < 14; n++) points[n].f[0] = at[n];
  fetch(mirror, points, got, 14);
  for (uint32_t n = 0; n < 14; n++) assert_true(got[n].f[0] == want[n]);
}

static void test_half_results(void **state) {
  words points[2] = {{.f = {0, 0}}, {.f = {1, 0}}}, got[2];
  static const char *const forms[] = {
      ".reg .b16 %h<4>; tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%h, {%f0,%f1}]; cvt.u32.u16 %r20, %h0; cvt.u32.u16 %r21, %h1; cvt.u32.u16 %r22, %h2; cvt.u32.u16 %r23, %h3;",
      "tex.2d.v2.f16x2.f32 {%r20,%r21}, [%h, {%f0,%f1}];"};
  for (int form = 0; form < 2; form++) {
    open_instruction(forms[form]);
    image i = make_image(EXEC_TEXEL_F32, 4, 2, 4, 4, 1);
    const float values[8] = {1, -2, 0.5f, 65536, 0, 1.0009765625f, 3, 4};
    memcpy((void *)(uintptr_t)i.texture.address, values, sizeof values);
    fetch(add_texture(&i, &(exec_sampler){0}), points, got, 2);
    const uint32_t want[2][4] = {{0x3c00, 0xc000, 0x3800, 0x7c00}, {0, 0x3c01, 0x4200, 0x4400}};
    for (int n = 0; n < 2; n++)
      for (int c = 0; c < 4; c++)
        assert_int_equal(form ? got[n].u[c / 2] >> c % 2 * 16 & 0xffff : got[n].u[c], want[n][c]);
  }
}

/* Lanes with different objects, a guard, and the predicate that says all is resident. */
static void test_divergent_handles(void **state) {
  words points[64] = {0}, got[64];
  open_instruction(
      "and.b32 %r4, %r3, 1; mul.wide.u32 %rd5, %r4, 8; add.s64 %rd6, %out, %rd5; ld.global.u64 %h, [%rd6]; setp.ne.u32 %q, %r3, 5;\n"
      "@%q tex.1d.v4.u32.s32 {%r20,%r21,_,_}|%p1, [%h, {%r10}]; selp.b32 %r21, 7, 8, %p1;");
  image a = make_image(EXEC_TEXEL_U32, 1, 1, 4, 1, 1), b = make_image(EXEC_TEXEL_U8, 1, 1, 4, 1, 1);
  uint64_t first = add_texture(&a, &(exec_sampler){0}), second = add_texture(&b, &(exec_sampler){0});
  put_inputs(first, points, 64);
  *u64_at(given + 8) = second;
  run(test, "k", 1, 64, given, POINTS * 16);
  memcpy(got, (void *)(uintptr_t)(given + 16 + POINTS * 16), sizeof got);
  for (uint32_t n = 0; n < 64; n++) {
    assert_int_equal(got[n].u[0], n == 5  ? 0
                                  : n & 1 ? *(uint8_t *)(uintptr_t)b.texture.address
                                          : *u32_at(a.texture.address));
    assert_int_equal(got[n].u[1], n == 5 ? 8 : 7);
  }
}

static void test_queries(void **state) {
  static const struct {
    const char *query;
    uint32_t want;
  } cases[] = {{"txq.width.b32 %r20, [%h];", 16},
               {"txq.height.b32 %r20, [%h];", 8},
               {"txq.depth.b32 %r20, [%h];", 0},
               {"txq.array_size.b32 %r20, [%h];", 3},
               {"txq.num_mipmap_levels.b32 %r20, [%h];", 4},
               {"txq.level.width.b32 %r20, [%h], 2;", 4},
               {"txq.level.height.b32 %r20, [%h], 3;", 1},
               {"txq.channel_data_type.b32 %r20, [%h];", 0x10DB},
               {"txq.channel_order.b32 %r20, [%h];", 0x10B2},
               {"txq.normalized_coords.b32 %r20, [%h];", 1},
               {"txq.filter_mode.b32 %r20, [%h];", 0},
               {"txq.addr_mode_0.b32 %r20, [%h];", 3},
               {"txq.addr_mode_1.b32 %r20, [%h];", 1},
               {"txq.addr_mode_2.b32 %r20, [%h];", 0},
               {"txq.num_samples.b32 %r20, [%h];", 0},
               {"istypep.texref %q, %h; selp.b32 %r20, 1, 0, %q;", 1},
               {"istypep.surfref %q, %h; selp.b32 %r20, 1, 0, %q;", 0}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    words nothing[1] = {0}, got[1];
    open_instruction(cases[n].query);
    image i = make_levels(EXEC_TEXEL_U16, 2, 2, 16, 8, 3, 4, true);
    fetch(add_texture(&i, &(exec_sampler){.mode = {EXEC_ADDRESS_CLAMP, EXEC_ADDRESS_MIRROR}, .normalized = true}),
          nothing, got, 1);
    if (got[0].u[0] != cases[n].want) fail_msg("%s: %u, not %u", cases[n].query, got[0].u[0], cases[n].want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_modes),
                                     cmocka_unit_test(test_weights_of_squares),
                                     cmocka_unit_test(test_formats),
                                     cmocka_unit_test(test_extreme_coordinates),
                                     cmocka_unit_test(test_integer_coordinates),
                                     cmocka_unit_test(test_layers),
                                     cmocka_unit_test(test_cubemaps),
                                     cmocka_unit_test(test_levels),
                                     cmocka_unit_test(test_gradients),
                                     cmocka_unit_test(test_gather),
                                     cmocka_unit_test(test_offsets),
                                     cmocka_unit_test(test_every_weight),
                                     cmocka_unit_test(test_half_results),
                                     cmocka_unit_test(test_divergent_handles),
                                     cmocka_unit_test(test_queries),
                                     cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_gather_of_blocks),
                                     cmocka_unit_test(test_wrong_blocks)};
  int failed = 0;
  for (const char *const *isa = exec_isas(); *isa; isa++) {
    printf("instruction set %s\n", test_isa = *isa);
    failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  if (open_test) close_ptx(open_test);
  return failed != 0;
}
