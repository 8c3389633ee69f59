/* SPDX-License-Identifier: Apache-2.0 */
/* What textures and surfaces give, bit for bit. */
#define _GNU_SOURCE
#include "answers.h"
#include "textures.h"

#include <math.h>

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define KERNEL(name, code)                                                                                                                                                                                     \
  ".visible .entry " name                                                                                                                                                                                      \
  "(.param .u64 object, .param .u64 at, .param .u64 out) { .reg .b64 %d<9>; .reg .b32 %r<20>; .reg .f32 %f<20>; "                                                                                              \
  "ld.param.u64 %d1, [object]; ld.param.u64 %d2, [at]; ld.param.u64 %d3, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1; "                             \
  "mul.wide.u32 %d4, %r1, 16; add.u64 %d5, %d2, %d4; add.u64 %d6, %d3, %d4; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d5]; cvt.rzi.s32.f32 %r5, %f4; cvt.rzi.s32.f32 %r6, %f1; cvt.rzi.s32.f32 %r7, %f2; " code \
  " ret; }\n"
#define FLOATS "{%f11, %f12, %f13, %f14}"
#define PUT " st.global.v4.f32 [%d6], {%f11, %f12, %f13, %f14};"
#define WORDS "{%r11, %r12, %r13, %r14}"
#define PUT_WORDS " st.global.v4.u32 [%d6], {%r11, %r12, %r13, %r14};"

static const char kernels[] = HEAD KERNEL("t1d", "tex.1d.v4.f32.f32 " FLOATS ", [%d1, {%f1}];" PUT) KERNEL(
    "t2d",
    "tex.2d.v4.f32.f32 " FLOATS
    ", [%d1, {%f1, %f2}];" PUT) KERNEL("t3d",
                                       "tex.3d.v4.f32.f32 " FLOATS
                                       ", [%d1, {%f1, %f2, %f3, %f3}];" PUT) KERNEL("ta1d", "tex.a1d.v4.f32.f32 " FLOATS
                                                                                            ", [%d1, {%r5, %f1}];" PUT)
    KERNEL("ta2d", "tex.a2d.v4.f32.f32 " FLOATS ", [%d1, {%r5, %f1, %f2, %f2}];" PUT) KERNEL(
        "tcube", "tex.cube.v4.f32.f32 " FLOATS
                 ", [%d1, {%f1, %f2, %f3, %f3}];" PUT) KERNEL("tacube", "tex.acube.v4.f32.f32 " FLOATS
                                                                        ", [%d1, {%r5, %f1, %f2, %f3}];" PUT)
        KERNEL("tlevel", "tex.level.2d.v4.f32.f32 " FLOATS ", [%d1, {%f1, %f2}], %f4;" PUT) KERNEL(
            "tgrad",
            "mov.f32 %f5, 0f00000000; tex.grad.2d.v4.f32.f32 " FLOATS
            ", [%d1, {%f1, %f2}], {%f3, %f5}, {%f5, %f4};" PUT) KERNEL("tgather", "tld4.r.2d.v4.f32.f32 " FLOATS
                                                                                  ", [%d1, {%f1, %f2}];" PUT)
            KERNEL("u2d", "tex.2d.v4.u32.f32 " WORDS ", [%d1, {%f1, %f2}];" PUT_WORDS) KERNEL(
                "i1d", "tex.1d.v4.f32.s32 " FLOATS ", [%d1, {%r6}];" PUT) KERNEL("iu1d", "tex.1d.v4.u32.s32 " WORDS
                                                                                         ", [%d1, {%r6}];" PUT_WORDS)
                KERNEL("i2d", "tex.2d.v4.f32.s32 " FLOATS ", [%d1, {%r6, %r7}];" PUT) KERNEL(
                    "szero",
                    "mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u32 %r14, 0; suld.b.2d.b32.zero %r11, [%d1, {%r6, %r7}];" PUT_WORDS)
                    KERNEL(
                        "sclamp",
                        "mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u32 %r14, 0; suld.b.2d.b32.clamp %r11, [%d1, {%r6, %r7}];" PUT_WORDS)
                        KERNEL(
                            "sput",
                            "mov.u32 %r11, %f3; mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u32 %r14, 0; sust.b.2d.b32.zero [%d1, {%r6, %r7}], %r11;" PUT_WORDS)
                            KERNEL(
                                "sputclamp",
                                "mov.u32 %r11, %f3; mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u32 %r14, 0; sust.b.2d.b32.clamp [%d1, {%r6, %r7}], %r11;" PUT_WORDS);

static W module, coordinates, results;
#define MOST 4096
static float at[MOST][4];
static unsigned got[MOST][4];

W array_make(W width, W height, W depth, int format, unsigned channels, unsigned flags) {
  array_description description = {width, height, depth, format, channels, flags};
  W array = 0;
  MUST(cuArray3DCreate_v2, &array, &description);
  return array;
}

static void array_fill(W array, const void *bytes, W row, W height, W depth) {
  W copy[25] = {0};
  copy[4] = 1; /* from the host */
  copy[5] = (W)bytes;
  copy[9] = row, copy[10] = height;
  copy[15] = 3, copy[18] = array;
  copy[22] = row, copy[23] = height ? height : 1, copy[24] = depth ? depth : 1;
  MUST(cuMemcpy3D_v2, copy);
}

static W texture_make(W array, texture description) {
  resource from = {.type = 0, .object = array};
  W object = 0;
  MUST(cuTexObjectCreate, &object, &from, &description, 0);
  return object;
}

static void sample(const char *kernel, W object, int count) {
  int blocks = (count + 63) / 64;
  MUST(cuMemcpyHtoD_v2, coordinates, at, sizeof at);
  W parameters[3] = {(W)&object, (W)&coordinates, (W)&results};
  MUST(cuLaunchKernel, answers_function(module, kernel), blocks, 1, 1, 64, 1, 1, 0, 0, parameters, 0);
  MUST(cuCtxSynchronize, 0);
  MUST(cuMemcpyDtoH_v2, got, results, sizeof got);
}

/* `channels` of the results as words, some samples to a line. */
static void say_samples(const char *key, int count, int channels) {
  char name[100], line[400], *to;
  int per_line = channels == 1 ? 16 : channels == 2 ? 8 : 4;
  for (int i = 0; i < count; i += per_line) {
    to = line;
    for (int k = i; k < i + per_line && k < count; k++)
      for (int c = 0; c < channels; c++) to += sprintf(to, "%s%08x", to == line ? "" : " ", got[k][c]);
    snprintf(name, sizeof name, "%s %04d", key, i);
    say(name, "%s", line);
  }
}

static unsigned long state = 88172645463325252ul;
static float chance(void) { /* 0 <= x < 1 */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (float)(state >> 40) / 16777216.0f;
}
static void random_at(int count, float least, float most) {
  state = 88172645463325252ul;
  for (int i = 0; i < count; i++)
    for (int c = 0; c < 4; c++) at[i][c] = least + (most - least) * chance();
}
static void open_all(void) {
  answers_context();
  module = answers_module(kernels);
  coordinates = answers_memory(sizeof at);
  results = answers_memory(sizeof got);
}

static void filter_weights(void) {
  open_all();
  float two[2] = {0, 1};
  W a = array_make(2, 0, 0, FLOAT, 1, 0);
  array_fill(a, two, 8, 0, 0);
  W t = texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1});
  for (int i = 0; i < 2048; i++) at[i][0] = 0.5f + (float)i / 2048;
  sample("t1d", t, 2048);
  say_samples("weights", 2048, 1);
  random_at(256, -0.5f, 2.5f);
  sample("t1d", t, 256);
  say_samples("weights anywhere", 256, 1);
  float wide[4] = {1e30f, -3.5f, 1e-30f, 7};
  W b = array_make(4, 0, 0, FLOAT, 1, 0);
  array_fill(b, wide, 16, 0, 0);
  t = texture_make(b, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1});
  random_at(128, -0.5f, 4.5f);
  sample("t1d", t, 128);
  say_samples("wide values", 128, 1);
  float odd[4] = {INFINITY, 1, NAN, 2};
  array_fill(b, odd, 16, 0, 0);
  sample("t1d", t, 64);
  say_samples("infinity and NaN", 64, 1);
}

static void planes(void) {
  static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
  float texels[64];
  char key[60];
  open_all();
  state = 5;
  for (int i = 0; i < 64; i++) texels[i] = chance() * 10 - 5;
  W a = array_make(8, 8, 0, FLOAT, 1, 0);
  array_fill(a, texels, 32, 8, 0);
  for (int mode = 0; mode < 4; mode++)
    for (int filter = 0; filter < 2; filter++)
      for (unsigned flags = 0; flags < 3; flags += NORMALIZED) {
        W t = texture_make(
            a, (texture){.address = {mode, mode, mode}, .filter = filter, .flags = flags, .border = {9, 8, 7, 6}});
        if (flags) random_at(128, -1.5f, 2.5f);
        else random_at(128, -4, 12);
        sample("t2d", t, 128);
        snprintf(key, sizeof key, "%s %s %s", modes[mode], filter ? "linear" : "point",
                 flags ? "normalised" : "in texels");
        say_samples(key, 128, 1);
      }
  /* edges of texels, and coordinates that are no places */
  static const float edges[] = {0,           -0.0f,     0.99999994f, 1,        1.0000001f,    7.9999995f,
                                8,           8.000001f, -1e-20f,     1e-20f,   0.5f,          0.49999997f,
                                0.50195312f, 0.501f,    1e10f,       -1e10f,   INFINITY,      -INFINITY,
                                NAN,         3e38f,     -3e38f,      16777216, 2147483648.0f, 0.0019531f};
  for (int mode = 0; mode < 4; mode++)
    for (int filter = 0; filter < 2; filter++)
      for (unsigned flags = 0; flags < 3; flags += NORMALIZED) {
        W t = texture_make(a, (texture){.address = {mode, mode, mode}, .filter = filter, .flags = flags});
        for (int i = 0; i < 24; i++) at[i][0] = edges[i], at[i][1] = 1.5f / (flags ? 8 : 1);
        sample("t2d", t, 24);
        snprintf(key, sizeof key, "edges %s %s %s", modes[mode], filter ? "linear" : "point",
                 flags ? "normalised" : "in texels");
        say_samples(key, 24, 1);
      }
  W t = texture_make(a, (texture){.address = {WRAP, MIRROR, CLAMP}, .filter = 1, .flags = NORMALIZED});
  random_at(64, -1.5f, 2.5f);
  sample("t2d", t, 64);
  say_samples("wrap and mirror", 64, 1);
  W g = array_make(8, 8, 0, FLOAT, 1, 8);
  array_fill(g, texels, 32, 8, 0);
  t = texture_make(g, (texture){.address = {CLAMP, CLAMP, CLAMP}});
  random_at(64, -1, 9);
  sample("tgather", t, 64);
  say_samples("gather", 64, 4);
}

static void solids(void) {
  static float texels[6 * 4 * 4 * 4];
  open_all();
  state = 6;
  for (int i = 0; i < 384; i++) texels[i] = chance() * 2 - 1;
  W a = array_make(4, 4, 4, FLOAT, 1, 0);
  array_fill(a, texels, 16, 4, 4);
  random_at(128, -1, 5);
  sample("t3d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1}), 128);
  say_samples("3d linear", 128, 1);
  random_at(64, -1, 2);
  sample("t3d", texture_make(a, (texture){.address = {WRAP, MIRROR, BORDER}, .filter = 1, .flags = NORMALIZED}), 64);
  say_samples("3d wrap mirror border", 64, 1);
  sample("t3d", texture_make(a, (texture){.address = {WRAP, WRAP, WRAP}, .filter = 0, .flags = NORMALIZED}), 64);
  say_samples("3d point", 64, 1);
  W layered = array_make(4, 0, 3, FLOAT, 1, 1);
  array_fill(layered, texels, 16, 1, 3);
  for (int i = 0; i < 64; i++) at[i][0] = (float)(i % 8) * 0.7f - 0.5f, at[i][3] = (float)(i / 8 - 2);
  sample("ta1d", texture_make(layered, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1}), 64);
  say_samples("1d layers", 64, 1);
  W layers = array_make(4, 4, 3, FLOAT, 1, 1);
  array_fill(layers, texels, 16, 4, 3);
  for (int i = 0; i < 64; i++) at[i][1] = (float)(i % 5);
  sample("ta2d", texture_make(layers, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1}), 64);
  say_samples("2d layers", 64, 1);
  W cube = array_make(4, 4, 6, FLOAT, 1, 4);
  array_fill(cube, texels, 16, 4, 6);
  random_at(128, -1, 1);
  for (int filter = 0; filter < 2; filter++) {
    sample("tcube",
           texture_make(cube, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = filter, .flags = NORMALIZED}), 128);
    say_samples(filter ? "cube linear" : "cube point", 128, 1);
  }
  sample("tcube", texture_make(cube, (texture){.address = {WRAP, WRAP, WRAP}, .filter = 1, .flags = NORMALIZED}), 64);
  say_samples("cube linear wrap", 64, 1);
  sample("tcube",
         texture_make(cube, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1, .flags = NORMALIZED | SEAMLESS}),
         128);
  say_samples("cube seamless", 128, 1);
  for (int i = 0; i < 27; i++)
    at[i][0] = (float)(i % 3 - 1), at[i][1] = (float)(i / 3 % 3 - 1), at[i][2] = (float)(i / 9 - 1);
  sample("tcube", texture_make(cube, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 0, .flags = NORMALIZED}),
         27);
  say_samples("cube corners", 27, 1);
  static float many[2 * 6 * 4];
  for (int i = 0; i < 48; i++) many[i] = (float)i;
  W cubes = array_make(2, 2, 12, FLOAT, 1, 5);
  array_fill(cubes, many, 8, 2, 12);
  random_at(64, -1, 1);
  for (int i = 0; i < 64; i++) at[i][3] = (float)(i % 4 - 1);
  sample("tacube", texture_make(cubes, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 0, .flags = NORMALIZED}),
         64);
  say_samples("cubes point", 64, 1);
}

static void formats(void) {
  static const struct {
    const char *name;
    int format, bytes;
    unsigned channels;
  } kinds[] = {{"u8", U8, 1, 1},        {"u8x4", U8, 1, 4},       {"s8", S8, 1, 1},   {"s8x2", S8, 1, 2},
               {"u16", U16, 2, 1},      {"u16x4", U16, 2, 4},     {"s16", S16, 2, 1}, {"half", HALF, 2, 1},
               {"half x4", HALF, 2, 4}, {"float x4", FLOAT, 4, 4}};
  static unsigned char bytes[256 * 16];
  char key[60];
  open_all();
  for (int k = 0; k < 10; k++) {
    int size = kinds[k].bytes * (int)kinds[k].channels;
    state = 9;
    for (int i = 0; i < 256 * size; i++) bytes[i] = (unsigned char)(chance() * 256);
    if (size == 1)
      for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    if (kinds[k].format == HALF)
      for (int i = 0; i < 256 * (int)kinds[k].channels; i++) bytes[2 * i + 1] &= 0xbb; /* finite */
    if (kinds[k].format == FLOAT)
      for (int i = 0; i < 1024; i++) ((float *)bytes)[i] = chance() * 100;
    W a = array_make(16, 16, 0, kinds[k].format, kinds[k].channels, 0);
    array_fill(a, bytes, 16 * (W)size, 16, 0);
    for (int i = 0; i < 256; i++) at[i][0] = (float)(i % 16) + 0.5f, at[i][1] = (float)(i / 16) + 0.5f;
    sample("t2d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}}), 256);
    snprintf(key, sizeof key, "%s point", kinds[k].name);
    say_samples(key, size == 1 ? 256 : 64, kinds[k].channels == 1 ? 1 : 4);
    random_at(128, 0, 16);
    sample("t2d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1}), 128);
    snprintf(key, sizeof key, "%s linear", kinds[k].name);
    say_samples(key, kinds[k].channels == 1 ? 128 : 32, kinds[k].channels == 1 ? 1 : 4);
    if (kinds[k].format == HALF || kinds[k].format == FLOAT) continue;
    for (int i = 0; i < 64; i++) at[i][0] = (float)(i % 16) + 0.5f, at[i][1] = (float)(i / 16) + 0.5f;
    sample("u2d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .flags = INTEGER}), 64);
    snprintf(key, sizeof key, "%s as integers", kinds[k].name);
    say_samples(key, 64, kinds[k].channels == 1 ? 1 : 4);
    if (kinds[k].format != U8) continue;
    for (int i = 0; i < 256; i++) at[i][0] = (float)(i % 16) + 0.5f, at[i][1] = (float)(i / 16) + 0.5f;
    sample("t2d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .flags = SRGB}), 256);
    snprintf(key, sizeof key, "%s sRGB point", kinds[k].name);
    say_samples(key, size == 1 ? 256 : 64, kinds[k].channels == 1 ? 1 : 4);
    random_at(64, 0, 16);
    sample("t2d", texture_make(a, (texture){.address = {CLAMP, CLAMP, CLAMP}, .filter = 1, .flags = SRGB}), 64);
    snprintf(key, sizeof key, "%s sRGB linear", kinds[k].name);
    say_samples(key, 64, kinds[k].channels == 1 ? 1 : 4);
    sample("t2d",
           texture_make(a, (texture){.address = {BORDER, BORDER, BORDER},
                                     .filter = 1,
                                     .flags = SRGB,
                                     .border = {0.5f, 0.25f, 0.75f, 0.1f}}),
           64);
    snprintf(key, sizeof key, "%s sRGB linear border", kinds[k].name);
    say_samples(key, 64, kinds[k].channels == 1 ? 1 : 4);
  }
}

static void mipmaps(void) {
  static float texels[3][64];
  char key[60];
  open_all();
  array_description description = {8, 8, 0, FLOAT, 1, 0};
  W m = 0, level = 0;
  MUST(cuMipmappedArrayCreate, &m, &description, 3);
  state = 7;
  for (int l = 0; l < 3; l++) {
    int side = 8 >> l;
    for (int i = 0; i < side * side; i++) texels[l][i] = (float)(l * 10) + chance();
    MUST(cuMipmappedArrayGetLevel, &level, m, l);
    array_fill(level, texels[l], (W)side * 4, (W)side, 0);
  }
  ASK("level 3", cuMipmappedArrayGetLevel, &level, m, 3);
  for (int kind = 0; kind < 8; kind++) {
    texture t = {.address = {CLAMP, CLAMP, CLAMP},
                 .filter = kind & 1,
                 .flags = NORMALIZED,
                 .mipmap_filter = kind >> 1 & 1,
                 .least = 0,
                 .most = 10};
    if (kind >= 4) t.bias = 0.3f, t.least = 0.25f, t.most = 1.6f;
    resource from = {.type = 1, .object = m};
    W object = 0;
    MUST(cuTexObjectCreate, &object, &from, &t, 0);
    random_at(64, 0, 1);
    for (int i = 0; i < 64; i++) at[i][3] = (float)i / 16 - 1;
    sample("tlevel", object, 64);
    snprintf(key, sizeof key, "level, %s, %s mipmaps%s", kind & 1 ? "linear" : "point", kind & 2 ? "linear" : "point",
             kind & 4 ? ", biased" : "");
    say_samples(key, 64, 1);
    random_at(64, 0, 1);
    for (int i = 0; i < 64; i++) at[i][2] = (float)(i % 8 + 1) / 16, at[i][3] = (float)(i / 8 + 1) / 16;
    sample("tgrad", object, 64);
    snprintf(key, sizeof key, "gradients, %s, %s mipmaps%s", kind & 1 ? "linear" : "point",
             kind & 2 ? "linear" : "point", kind & 4 ? ", biased" : "");
    say_samples(key, 64, 1);
    sample("t2d", object, 32);
    snprintf(key, sizeof key, "no level, %s, %s mipmaps%s", kind & 1 ? "linear" : "point",
             kind & 2 ? "linear" : "point", kind & 4 ? ", biased" : "");
    say_samples(key, 32, 1);
  }
}

static void buffers(void) {
  open_all();
  float values[256];
  for (int i = 0; i < 256; i++) values[i] = (float)i * 1.5f;
  W d = answers_memory(4096), object = 0;
  MUST(cuMemcpyHtoD_v2, d, values, sizeof values);
  resource from = {.type = 2, .object = d, .format = FLOAT, .channels = 1, .size = 400};
  texture t = {.address = {WRAP, WRAP, WRAP}};
  MUST(cuTexObjectCreate, &object, &from, &t, 0);
  for (int i = 0; i < 128; i++) at[i][0] = (float)(i - 10);
  sample("i1d", object, 128);
  say_samples("linear memory of 100", 128, 1);
  from.format = U8, from.channels = 4, from.size = 64;
  MUST(cuTexObjectCreate, &object, &from, &t, 0);
  sample("i1d", object, 32);
  say_samples("linear memory of 16 times four bytes", 32, 4);
  t.flags = INTEGER;
  MUST(cuTexObjectCreate, &object, &from, &t, 0);
  sample("iu1d", object, 32);
  say_samples("the same as integers", 32, 4);
  t.flags = 0;
  resource plane = {.type = 3, .object = d, .format = FLOAT, .channels = 1, .size = 8, .height = 4, .pitch = 64};
  t.filter = 1, t.address[0] = t.address[1] = CLAMP;
  MUST(cuTexObjectCreate, &object, &plane, &t, 0);
  random_at(64, -1, 9);
  sample("t2d", object, 64);
  say_samples("pitched memory", 64, 1);
  t.flags = NORMALIZED, t.address[0] = WRAP, t.address[1] = MIRROR;
  MUST(cuTexObjectCreate, &object, &plane, &t, 0);
  random_at(64, -1, 2);
  sample("t2d", object, 64);
  say_samples("pitched memory, wrap and mirror", 64, 1);
}

static void surfaces(void) {
  open_all();
  unsigned words[64];
  for (unsigned i = 0; i < 64; i++) words[i] = i * 3;
  W a = array_make(8, 8, 0, U32, 1, 2), object = 0;
  array_fill(a, words, 32, 8, 0);
  resource from = {.type = 0, .object = a};
  MUST(cuSurfObjectCreate, &object, &from);
  for (int i = 0; i < 128; i++)
    at[i][0] = (float)((i % 12 - 2) * 4), at[i][1] = (float)(i / 12 - 1), at[i][2] = (float)i;
  sample("szero", object, 128);
  say_samples("load, zero", 128, 1);
  sample("sclamp", object, 128);
  say_samples("load, clamp", 128, 1);
  sample("sput", object, 128);
  sample("szero", object, 128);
  say_samples("after stores, zero", 128, 1);
  for (int i = 0; i < 64; i++) at[i][0] = (float)(i * 4 + 2), at[i][1] = 2, at[i][2] = 99;
  MUST(cuMemcpyHtoD_v2, coordinates, at, sizeof at);
  W parameters[3] = {(W)&object, (W)&coordinates, (W)&results};
  ASK("misaligned load", cuLaunchKernel, answers_function(module, "szero"), 1, 1, 1, 8, 1, 1, 0, 0, parameters, 0);
  ASK("misaligned load", cuCtxSynchronize, 0);
}

const section sections_textures[] = {{"filter", filter_weights}, {"planes", planes},   {"solids", solids},
                                     {"formats", formats},       {"mipmaps", mipmaps}, {"buffers", buffers},
                                     {"surfaces", surfaces},     {NULL, NULL}};
