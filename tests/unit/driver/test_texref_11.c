/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references of programs of CUDA 11: registered as nvcc's host code does it, bound, read and
 * written by kernels. libcudart.so.11.0 is opened as it was built; nothing of it is linked in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "opened_library.h"

typedef struct channel {
  int x, y, z, w, kind;
} channel;
typedef struct reference { /* textureReference */
  int normalized, filter, mode[3];
  channel channels;
  int srgb;
  unsigned anisotropy;
  int mipmap_filter;
  float bias, least, most;
  int unoptimized, reserved[14];
} reference;
typedef struct dim {
  unsigned x, y, z;
} dim;

static const char text[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.global .texref image;\n.global .surfref sheet;\n.global .texref list;\n"
    ".visible .entry look(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<5>;\nld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;\n"
    "mov.f32 %f2, 0f3F800000; tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [image, {%f1,%f2}]; tex.1d.v4.s32.s32 {%r2,%r3,%r4,%r5}, [list, {%r1}];\n"
    "cvt.rn.f32.s32 %f7, %r2; add.f32 %f3, %f3, %f7; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.f32 [%rd3], %f3;\n"
    "shl.b32 %r6, %r1, 2; sust.b.2d.b32.trap [sheet, {%r6,0}], %f3;\nret;\n}\n";

static void references(void **state) {
  static const char kernel[1], sheet[20];
  static reference image = {.mode = {1, 1, 1}, .filter = 1, .channels = {32, 0, 0, 0, 2}},
                   list = {.channels = {32, 0, 0, 0, 0}};
  static const reference never;
  static struct {
    uint32_t magic, version;
    const void *data, *extra;
  } wrapper = {0x466243b1, 1, NULL, NULL};
  fatbin_item item = {.kind = FATBIN_KIND_PTX,
                      .arch = 50,
                      .version_major = 7,
                      .packing = FATBIN_ZSTD,
                      .bytes = text,
                      .size = sizeof text};
  ff_text bytes = {0};
  assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
  wrapper.data = bytes.chars;
  library = dlopen(FF_BUILD_DIR "/lib/farfault/libcudart.so.11.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void **module = ((void **(*)(void *))(uintptr_t)symbol("__cudaRegisterFatBinary"))(&wrapper);
  ((void (*)(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *))(uintptr_t)symbol(
      "__cudaRegisterFunction"))(module, kernel, (char *)(uintptr_t)kernel, "look", -1, NULL, NULL, NULL, NULL, NULL);
  void (*texture)(void **, const reference *, const void **, const char *, int, int, int) =
      (void (*)(void **, const reference *, const void **, const char *, int, int, int))(uintptr_t)symbol(
          "__cudaRegisterTexture");
  texture(module, &image, NULL, "image", 2, 0, 0);
  texture(module, &list, NULL, "list", 1, 0, 0);
  ((void (*)(void **, const void *, const void **, const char *, int, int))(uintptr_t)symbol("__cudaRegisterSurface"))(
      module, sheet, NULL, "sheet", 2, 0);
  ((void (*)(void **))(uintptr_t)symbol("__cudaRegisterFatBinaryEnd"))(module);

  enum { W = 8, H = 4 };
  float texels[W * H], back[W], want[W];
  int numbers[W + 4];
  for (int i = 0; i < W * H; i++) texels[i] = (float)(i * i);
  for (int i = 0; i < W + 4; i++) numbers[i] = 10 * i;
  void *array, *other, *memory, *out;
  assert_int_equal(
      CALL(cudaMallocArray, (void **, const channel *, size_t, size_t, unsigned), &array, &image.channels, W, H, 0), 0);
  assert_int_equal(
      CALL(cudaMallocArray, (void **, const channel *, size_t, size_t, unsigned), &other, &image.channels, W, H, 2), 0);
  assert_int_equal(CALL(cudaMemcpyToArray, (void *, size_t, size_t, const void *, size_t, int), array, 0, 0, texels,
                        sizeof texels, 1),
                   0);
  assert_int_equal(CALL(cudaMalloc, (void **, size_t), &memory, sizeof numbers), 0);
  assert_int_equal(CALL(cudaMalloc, (void **, size_t), &out, sizeof back), 0);
  assert_int_equal(CALL(cudaMemcpy, (void *, const void *, size_t, int), memory, numbers, sizeof numbers, 1), 0);

  size_t offset = 99;
  /* nothing is bound */
  assert_int_equal(CALL(cudaGetTextureAlignmentOffset, (size_t *, const reference *), &offset, &image), 19);
  assert_int_equal(
      CALL(cudaBindTextureToArray, (const reference *, void *, const channel *), &image, array, &image.channels), 0);
  /* no reference */
  assert_int_equal(
      CALL(cudaBindTextureToArray, (const reference *, void *, const channel *), &never, array, &image.channels), 18);
  assert_int_equal(CALL(cudaBindTexture, (size_t *, const reference *, const void *, const channel *, size_t), NULL,
                        &list, (char *)memory + 16, &list.channels, 32),
                   1);
  assert_int_equal(CALL(cudaBindTexture, (size_t *, const reference *, const void *, const channel *, size_t), &offset,
                        &list, (char *)memory + 16, &list.channels, UINT32_MAX),
                   0);
  assert_int_equal(offset, 16);
  assert_int_equal(CALL(cudaGetTextureAlignmentOffset, (size_t *, const reference *), &offset, &list), 0);
  assert_int_equal(offset, 16);
  assert_int_equal(CALL(cudaBindTexture, (size_t *, const reference *, const void *, const channel *, size_t), &offset,
                        &list, memory, &list.channels, sizeof numbers),
                   0);
  /* not made for surfaces */
  assert_int_equal(CALL(cudaBindSurfaceToArray, (const void *, void *, const channel *), sheet, array, &image.channels),
                   1);
  assert_int_equal(CALL(cudaBindSurfaceToArray, (const void *, void *, const channel *), sheet, other, &image.channels),
                   0);
  void *arguments[] = {&out};
  assert_int_equal(CALL(cudaLaunchKernel, (const void *, dim, dim, void **, size_t, void *), kernel, ((dim){1, 1, 1}),
                        ((dim){W, 1, 1}), arguments, 0, NULL),
                   0);
  assert_int_equal(CALL(cudaMemcpy, (void *, const void *, size_t, int), back, out, sizeof back, 2), 0);
  for (int x = 0; x < W; x++) { /* at the corners between the first two rows, and the list */
    int left = x ? x - 1 : 0;
    want[x] = (texels[left] + texels[x] + texels[W + left] + texels[W + x]) / 4 + (float)numbers[x];
  }
  assert_memory_equal(back, want, sizeof want);
  memset(back, 0, sizeof back);
  assert_int_equal(
      CALL(cudaMemcpyFromArray, (void *, void *, size_t, size_t, size_t, int), back, other, 0, 0, sizeof back, 2), 0);
  assert_memory_equal(back, want, sizeof want);
  const reference *found;
  assert_int_equal(CALL(cudaGetTextureReference, (const reference **, const void *), &found, &image), 0);
  assert_ptr_equal(found, &image);
  assert_int_equal(CALL(cudaUnbindTexture, (const reference *), &image), 0);
  assert_int_equal(CALL(cudaLaunchKernel, (const void *, dim, dim, void **, size_t, void *), kernel, ((dim){1, 1, 1}),
                        ((dim){W, 1, 1}), arguments, 0, NULL),
                   0);
  assert_int_equal(((int (*)(void))(uintptr_t)symbol("cudaDeviceSynchronize"))(), 700); /* nothing is bound: a fault */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(references)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
