/* SPDX-License-Identifier: Apache-2.0 */
/* A program with textures and surfaces: a 2D texture, filtered, is written into a surface; that array is read as a
 * texture again, together with a table in linear memory, and so is a block-compressed one. Exit status 0: every value
 * is what it must be. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

enum { N = 128, TABLE = 64 };

#define HEAD(name)                                                                                                                      \
  ".visible .entry " name                                                                                                               \
  "(.param .u64 texture, .param .u64 second, .param .u64 out)\n{\n.reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f32 %f<16>;\n"              \
  "ld.param.u64 %rd1, [texture]; ld.param.u64 %rd2, [second]; ld.param.u64 %rd3, [out];\nmov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" \
  "cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; shl.b32 %r3, %r1, 2; mad.lo.s32 %r4, %r2, 128, %r1;\n"
/* clang-format off */
static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    /* the mean of four texels, and its own place's neighbours: the texel at the corner (x, y) */
    HEAD("blur") "tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%rd1, {%f1,%f2}];\nsust.b.2d.b32.trap [%rd2, {%r3,%r2}], %f3;\nret;\n}\n"
    HEAD("look") "add.f32 %f7, %f1, 0f3F000000; add.f32 %f8, %f2, 0f3F000000; tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%rd1, {%f7,%f8}];\n"
                 "and.b32 %r5, %r4, 63; tex.1d.v4.s32.s32 {%r6,%r7,%r8,%r9}, [%rd2, {%r5}]; cvt.rn.f32.s32 %f9, %r6; add.f32 %f10, %f3, %f9;\n"
                 "mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd3, %rd4; st.global.f32 [%rd5], %f10;\nret;\n}\n";
/* clang-format on */

/* CUDA_ARRAY3D_DESCRIPTOR */
typedef struct shape {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
} shape;
typedef struct copy_side {
  size_t x, y;
  int type;
  const void *host;
  uint64_t device;
  void *array;
  size_t pitch;
} copy_side;
typedef struct copy {
  copy_side from, to;
  size_t width, height;
} copy; /* CUDA_MEMCPY2D */
typedef struct resource {
  int type;
  union {
    void *array;
    struct {
      uint64_t address;
      int format;
      unsigned channels;
      size_t bytes;
    } linear;
    int reserved[32];
  } of;
  unsigned flags;
} resource;
typedef struct sampler {
  int mode[3], filter;
  unsigned flags, rest[21];
} sampler;

static void *make_array(int format, unsigned flags) {
  const shape s = {N, N, 0, format, 1, flags};
  void *array;
  CALL(cuArray3DCreate_v2, (void **, const shape *), &array, &s);
  return array;
}

static uint64_t make_texture(resource r, int filter, unsigned flags) {
  const sampler s = {.mode = {1, 1, 1}, .filter = filter, .flags = flags};
  uint64_t object;
  CALL(cuTexObjectCreate, (uint64_t *, const resource *, const sampler *, const void *), &object, &r, &s, NULL);
  return object;
}

static void launch(void *module, const char *name, uint64_t first, uint64_t second, uint64_t out) {
  void *kernel, *arguments[] = {&first, &second, &out};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       N, 1, 1, N, 1, 1, 0, NULL, arguments, NULL);
}

static float texel(const float *image, int x, int y) { return image[(y < 0 ? 0 : y) * N + (x < 0 ? 0 : x)]; }

/* Every 4 by 4 texels of a BC4 array have one value. */
static bool reads_blocks(void *module, uint64_t table_texture, const int *table, uint64_t out, float *back) {
  static unsigned char blocks[N / 4][N / 4][8];
  void *array = make_array(0x97, 0);
  for (int y = 0; y < N / 4; y++)
    for (int x = 0; x < N / 4; x++) blocks[y][x][0] = blocks[y][x][1] = (unsigned char)(x * 7 + y * 3);
  const copy in = {.from = {.type = 1, .host = blocks, .pitch = N / 4 * 8},
                   .to = {.type = 3, .array = array},
                   .width = N / 4 * 8,
                   .height = N / 4};
  CALL(cuMemcpy2D_v2, (const copy *), &in);
  launch(module, "look", make_texture((resource){.type = 0, .of.array = array}, 1, 0), table_texture, out);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), back, out, N * N * sizeof *back);
  for (int i = 0; i < N * N; i++)
    if (back[i] != (float)blocks[i / N / 4][i % N / 4][0] / 255 + (float)table[i % TABLE]) return false;
  CALL(cuArrayDestroy, (void *), array);
  return true;
}

int main(void) {
  static float image[N * N], back[N * N];
  int table[TABLE];
  void *module;
  uint64_t out, memory, surface;
  module = driver_open(code);
  for (int i = 0; i < N * N; i++) image[i] = (float)((unsigned)i * 2654435761u >> 20);
  for (int i = 0; i < TABLE; i++) table[i] = i * i - 100;
  void *source = make_array(0x20, 2), *target = make_array(0x20, 2); /* float, with surfaces */
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &out, sizeof back);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &memory, sizeof table);
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), memory, table, sizeof table);
  const copy in = {.from = {.type = 1, .host = image, .pitch = N * 4},
                   .to = {.type = 3, .array = source},
                   .width = N * 4,
                   .height = N};
  CALL(cuMemcpy2D_v2, (const copy *), &in);
  resource of_target = {.type = 0, .of.array = target};
  CALL(cuSurfObjectCreate, (uint64_t *, const resource *), &surface, &of_target);
  launch(module, "blur", make_texture((resource){.type = 0, .of.array = source}, 1, 0), surface, 0);
  uint64_t table_texture = make_texture((resource){.type = 2, .of.linear = {memory, 0xa, 1, sizeof table}}, 0, 1);
  launch(module, "look", make_texture(of_target, 0, 0), table_texture, out);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), back, out, sizeof back);
  for (int y = 0; y < N; y++)
    for (int x = 0; x < N; x++) {
      float mean =
          (texel(image, x, y) + texel(image, x - 1, y) + texel(image, x, y - 1) + texel(image, x - 1, y - 1)) / 4;
      float want = mean + (float)table[(y * N + x) % TABLE];
      if (back[y * N + x] == want) continue;
      printf("(%d, %d): %g, not %g\n", x, y, (double)back[y * N + x], (double)want);
      return 1;
    }
  if (!reads_blocks(module, table_texture, table, out, back)) {
    puts("blocks");
    return 1;
  }
  CALL(cuArrayDestroy, (void *), source);
  CALL(cuArrayDestroy, (void *), target);
  puts("good");
  return 0;
}
