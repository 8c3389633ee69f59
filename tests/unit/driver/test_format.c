/* SPDX-License-Identifier: Apache-2.0 */
/* Normalised and block-compressed channel formats through both interfaces: descriptors, copies that count blocks, and
 * kernels that read them, as arrays of their own and as resource views of arrays of integers. Decoding itself is tested
 * in tests/unit/exec/test_block.c. */
#include <math.h>

#include "program.h"

#include "driver/runtime_api/cudart_array.h"
#include "driver/driver_api/libcuda_array.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuArrayCreate_v2(CUarray *, const CUDA_ARRAY_DESCRIPTOR *);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *, CUarray), cuArrayDestroy(CUarray),
    cuMemcpyHtoA_v2(CUarray, size_t, const void *, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);

static const char module_text[] = PTX_HEAD
    ".visible .entry sample(.param .u64 object, .param .u64 out)\n{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n"
    "ld.param.u64 %rd1, [object]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;\n"
    "mul.wide.u32 %rd3, %r4, 16; add.s64 %rd4, %rd2, %rd3; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; add.f32 %f1, %f1, 0f3f000000; add.f32 %f2, %f2, 0f3f000000;\n"
    "tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%rd1, {%f1,%f2}]; st.global.v4.f32 [%rd4], {%f3,%f4,%f5,%f6}; ret;\n}\n";

enum { W = 13, H = 9, BLOCKS = 4 * 3, KINDS = 31 };
static CUmodule module;
static float texels[W * H][4];
static float *out;
static unsigned char blocks[BLOCKS * 16], back[BLOCKS * 16];

static int set_up(void **state) {
  (void)state;
  CUcontext context;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  assert_int_equal(cuModuleLoadData(&module, module_text), CUDA_SUCCESS);
  succeed(cudaMalloc((void **)&out, sizeof texels));
  for (size_t n = 0; n < sizeof blocks; n++) blocks[n] = (unsigned char)(n * n * 31 + n * 7 + 1);
  return 0;
}

static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureDesc sampler, const cudaResourceViewDesc *view) {
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = array};
  cudaTextureObject_t texture;
  sampler.addressMode[0] = sampler.addressMode[1] = cudaAddressModeClamp;
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, view));
  return texture;
}

static void sample(cudaTextureObject_t texture, unsigned width, unsigned height) {
  CUfunction function;
  uint64_t object = texture;
  void *arguments[] = {&object, &out};
  assert_int_equal(cuModuleGetFunction(&function, module, "sample"), CUDA_SUCCESS);
  assert_int_equal(cuLaunchKernel(function, 1, 1, 1, width, height, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
  succeed(cudaMemcpy(texels, out, (size_t)width * height * 16, cudaMemcpyDeviceToHost));
  succeed(cudaDestroyTextureObject(texture));
}

static cudaArray_t new_array(const cudaChannelFormatDesc *desc, size_t width, size_t height) {
  cudaArray_t array;
  succeed(cudaMallocArray(&array, desc, width, height, 0));
  return array;
}

/* ---- descriptors ---- */

/* What cudaCreateChannelDesc<kind>() gives, by kind. */
static cudaChannelFormatDesc desc_of(int kind) {
  int bits = kind < 17 ? ((kind - 5) / 3 % 2 ? 16 : 8) : kind == 27 || kind == 28 ? 16 : 8;
  int channels = kind < 17                  ? 1 << (kind - 5) % 3
                 : kind == 23 || kind == 24 ? 1
                 : kind == 25 || kind == 26 ? 2
                 : kind == 27 || kind == 28 ? 3
                                            : 4;
  return (cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0,
                                 (cudaChannelFormatKind)kind};
}

static void descriptors(void **state) {
  (void)state;
  for (int kind = 5; kind < KINDS; kind++) {
    cudaChannelFormatDesc desc = desc_of(kind), found, wrong = desc;
    cudaArray_t array = new_array(&desc, W, H);
    succeed(cudaGetChannelDesc(&found, array));
    assert_memory_equal(&found, &desc, sizeof found);
    CUDA_ARRAY_DESCRIPTOR driver, again;
    assert_int_equal(cuArrayGetDescriptor_v2(&driver, (CUarray)array), CUDA_SUCCESS);
    assert_int_equal(driver.Format, kind < 17 ? 0xc0 + kind - 5 : 0x91 + kind - 17);
    assert_int_equal(driver.NumChannels, (desc.x > 0) + (desc.y > 0) + (desc.z > 0) + (desc.w > 0));
    assert_int_equal(driver.Width, W);
    CUarray other;
    assert_int_equal(cuArrayCreate_v2(&other, &driver), CUDA_SUCCESS);
    assert_int_equal(cuArrayGetDescriptor_v2(&again, other), CUDA_SUCCESS);
    assert_memory_equal(&again, &driver, sizeof driver);
    assert_int_equal(cuArrayDestroy(other), CUDA_SUCCESS);
    driver.NumChannels = driver.NumChannels == 4 ? 2 : 4;
    assert_int_equal(cuArrayCreate_v2(&other, &driver), CUDA_ERROR_INVALID_VALUE);
    succeed(cudaFreeArray(array));
    wrong.x = 32;
    expect(cudaMallocArray(&array, &wrong, W, H, 0), cudaErrorInvalidChannelDescriptor);
    if (kind < 17) continue;
    expect(cudaMallocArray(&array, &desc, W, H, cudaArraySurfaceLoadStore), cudaErrorInvalidValue);
    expect(cudaMallocArray(&array, &desc, W, 0, 0), cudaErrorInvalidValue);
    cudaResourceDesc linear = {.resType = cudaResourceTypeLinear, .res.linear = {out, desc, sizeof texels}};
    cudaTextureObject_t texture;
    expect(cudaCreateTextureObject(&texture, &linear, &(cudaTextureDesc){0}, NULL), cudaErrorInvalidValue);
  }
}

/* ---- copies ---- */

static void copies(void **state) {
  (void)state;
  cudaChannelFormatDesc bc1 = desc_of(17), pairs = {32, 32, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array = new_array(&bc1, W, H), plain = new_array(&pairs, 4, 3);
  succeed(cudaMemcpy2DToArray(array, 0, 0, blocks, 32, 32, 3, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy2DFromArray(back, 32, array, 0, 0, 32, 3, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, blocks, 96);
  expect(cudaMemcpy2DToArray(array, 0, 0, blocks, 40, 40, 3, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy2DToArray(array, 0, 0, blocks, 32, 32, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  /* within a block */
  expect(cudaMemcpy2DToArray(array, 4, 0, blocks, 32, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  cudaMemcpy3DParms box = {.srcPtr = {blocks + 96, 16, 16, 2},
                           .dstArray = array,
                           .dstPos = {1, 1, 0},
                           .extent = {2, 2, 1},
                           .kind = cudaMemcpyHostToDevice};
  succeed(cudaMemcpy3D(&box));
  memcpy(back + 32 + 8, blocks + 96, 16);
  memcpy(back + 64 + 8, blocks + 112, 16);
  unsigned char now[96];
  succeed(cudaMemcpyFromArray(now, array, 0, 0, 96, cudaMemcpyDeviceToHost));
  assert_memory_equal(now, back, 96);
  box.dstPos.x = 3;
  expect(cudaMemcpy3D(&box), cudaErrorInvalidValue);
  assert_int_equal(cuMemcpyHtoA_v2((CUarray)array, 40, blocks, 16), CUDA_SUCCESS);
  /* a block is a texel of as many bytes */
  succeed(cudaMemcpy2DArrayToArray(plain, 0, 0, array, 0, 0, 32, 3, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy2DFromArray(now, 32, plain, 0, 0, 32, 3, cudaMemcpyDeviceToHost));
  assert_memory_equal(now + 40, blocks, 16);
  assert_memory_equal(now, back, 40);
  succeed(cudaFreeArray(array));
  succeed(cudaFreeArray(plain));
  /* a fourth row of the first slice would be the second one's */
  succeed(cudaMalloc3DArray(&array, &bc1, (cudaExtent){W, H, 2}, 0));
  box = (cudaMemcpy3DParms){
      .srcPtr = {blocks, 32, 32, 4}, .dstArray = array, .extent = {4, 4, 1}, .kind = cudaMemcpyHostToDevice};
  expect(cudaMemcpy3D(&box), cudaErrorInvalidValue);
  box.extent.height = 3;
  succeed(cudaMemcpy3D(&box));
  succeed(cudaFreeArray(array));
}

/* ---- what kernels read ---- */

static double of_srgb(double v) { return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4); }

static void expect_near(double got, double want, int texel, int channel) {
  if (!(fabs(got - want) <= 2e-7 * fmax(1, fabs(want))))
    fail_msg("texel %d, channel %d: %.9g, not %.9g", texel, channel, got, want);
}

/* Every BC format: its array, its sRGB form, and views give the same; the texels against the decoder. */
static void compressed(void **state) {
  (void)state;
  static const struct {
    int kind, view, srgb, bytes;
  } formats[] = {{17, 0x19, 18, 8}, {19, 0x1a, 20, 16}, {21, 0x1b, 22, 16}, {23, 0x1c, 0, 8},  {24, 0x1d, 0, 8},
                 {25, 0x1e, 0, 16}, {26, 0x1f, 0, 16},  {27, 0x20, 0, 16},  {29, 0x22, 30, 16}};
  for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
    size_t row = 4 * (size_t)formats[n].bytes;
    cudaChannelFormatDesc desc = desc_of(formats[n].kind),
                          under = {32, 32, formats[n].bytes / 16 * 32, formats[n].bytes / 16 * 32,
                                   cudaChannelFormatKindUnsigned};
    cudaArray_t array = new_array(&desc, W, H), plain = new_array(&under, 4, 3), wrong;
    float first[W * H][4];
    succeed(cudaMemcpy2DToArray(array, 0, 0, blocks, row, row, 3, cudaMemcpyHostToDevice));
    succeed(cudaMemcpy2DToArray(plain, 0, 0, blocks, row, row, 3, cudaMemcpyHostToDevice));
    sample(texture_of(array, (cudaTextureDesc){.readMode = cudaReadModeElementType}, NULL), W, H);
    memcpy(first, texels, sizeof first);
    int different = 0;
    for (int i = 1; i < W * H; i++) different += texels[i][0] != texels[0][0];
    assert_true(different > W * H / 2);
    cudaResourceViewDesc view = {.format = formats[n].view, .width = 16, .height = 12};
    /* at the texels' middles */
    sample(texture_of(plain, (cudaTextureDesc){.filterMode = cudaFilterModeLinear}, &view), W, H);
    assert_memory_equal(texels, first, sizeof first);
    cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = array};
    cudaTextureObject_t texture;
    /* a view of a compressed array */
    expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, &view), cudaErrorInvalidValue);
    resource.res.array.array = plain;
    view.width = 13;
    expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, &view), cudaErrorInvalidValue);
    view.width = 16;
    view.format = formats[n].bytes == 8 ? 0x22 : 0x19; /* blocks of another size */
    expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, &view), cudaErrorInvalidValue);
    view.format = formats[n].view;
    under.f = cudaChannelFormatKindSigned;
    wrong = resource.res.array.array = new_array(&under, 4, 3);
    expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, &view), cudaErrorInvalidValue);
    if (formats[n].srgb) {
      cudaChannelFormatDesc other = desc_of(formats[n].srgb);
      cudaArray_t coloured = new_array(&other, W, H);
      succeed(cudaMemcpy2DToArray(coloured, 0, 0, blocks, row, row, 3, cudaMemcpyHostToDevice));
      sample(texture_of(coloured, (cudaTextureDesc){0}, NULL), W, H);
      for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 4; c++)
          expect_near((double)texels[i][c], c < 3 ? of_srgb((double)first[i][c]) : (double)first[i][c], i, c);
      memcpy(first, texels, sizeof first);
      sample(texture_of(plain, (cudaTextureDesc){.sRGB = 1}, &view), W, H);
      assert_memory_equal(texels, first, sizeof first);
      succeed(cudaFreeArray(coloured));
    }
    succeed(cudaFreeArray(array));
    succeed(cudaFreeArray(plain));
    succeed(cudaFreeArray(wrong));
  }
}

/* Levels are halved in texels, and end within blocks; a view's never leave the blocks that are there. */
static void levels(void **state) {
  (void)state;
  cudaChannelFormatDesc bc4 = desc_of(23), pairs = {32, 32, 0, 0, cudaChannelFormatKindUnsigned};
  cudaMipmappedArray_t mipmap;
  cudaArray_t level;
  const unsigned char block[8] = {200, 100, 0x88, 0xc6, 0xfa, 0x88, 0xc6, 0xfa};
  for (int view = 0; view < 2; view++) {
    succeed(cudaMallocMipmappedArray(&mipmap, view ? &pairs : &bc4,
                                     view ? (cudaExtent){3, 3, 0} : (cudaExtent){12, 12, 0}, 2, 0));
    succeed(cudaGetMipmappedArrayLevel(&level, mipmap, 1)); /* 6 by 6 texels in 2 by 2 blocks; of the view: one block */
    for (int n = 0; n < (view ? 1 : 4); n++)
      succeed(cudaMemcpy2DToArray(level, (size_t)(n & 1) * 8, (size_t)n / 2, block, 8, 8, 1, cudaMemcpyHostToDevice));
    expect(cudaMemcpy2DToArray(level, view ? 8 : 16, 0, block, 8, 8, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    cudaResourceDesc resource = {.resType = cudaResourceTypeMipmappedArray, .res.mipmap.mipmap = mipmap};
    cudaResourceViewDesc as_blocks = {
        .format = 0x1c, .width = 12, .height = 12, .firstMipmapLevel = 1, .lastMipmapLevel = 1};
    cudaTextureDesc sampler = {.addressMode = {cudaAddressModeWrap, cudaAddressModeWrap}, .normalizedCoords = 1};
    cudaTextureObject_t texture;
    if (!view) {
      succeed(cudaCreateTextureObject(&texture, &resource, &sampler, NULL));
      succeed(cudaDestroyTextureObject(texture));
      sample(texture_of(level, (cudaTextureDesc){0}, NULL), 6, 6);
      for (int i = 0; i < 36; i++) {
        int code = (i / 6 % 4 * 4 + i % 6 % 4) % 8;
        expect_near((double)texels[i][0],
                    (code == 0   ? 200
                     : code == 1 ? 100
                                 : ((8 - code) * 200 + (code - 1) * 100) / 7.0) /
                        255,
                    i, 0);
      }
    } else {
      succeed(cudaCreateTextureObject(&texture, &resource, &sampler, &as_blocks));
      sample(texture, 3, 3); /* at half texels of a whole image: all the same place */
      for (int i = 0; i < 9; i++) expect_near((double)texels[i][0], ((8 - 2) * 200 + (2 - 1) * 100) / 7.0 / 255, i, 0);
    }
    succeed(cudaFreeMipmappedArray(mipmap));
  }
}

/* Integers that are numbers whatever the texture asks for. */
static void normalized(void **state) {
  (void)state;
  unsigned char data[W * H * 8];
  for (size_t n = 0; n < sizeof data; n++) data[n] = (unsigned char)(n * 37 + n / 19);
  for (int kind = 5; kind < 17; kind++) {
    cudaChannelFormatDesc desc = desc_of(kind);
    uint32_t channels = 1u << (kind - 5) % 3, wide = desc.x == 16, is_signed = kind >= 11;
    size_t row = (size_t)W * channels << wide;
    cudaArray_t array = new_array(&desc, W, H);
    succeed(cudaMemcpy2DToArray(array, 0, 0, data, row, row, H, cudaMemcpyHostToDevice));
    for (int linear = 0; linear < 2; linear++) {
      sample(texture_of(array,
                        (cudaTextureDesc){.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint,
                                          .readMode = cudaReadModeElementType},
                        NULL),
             W, H);
      for (int i = 0; i < W * H; i++)
        for (uint32_t c = 0; c < channels; c++) {
          uint32_t at = (uint32_t)i * channels + c,
                   u = wide ? data[2 * at] | (uint32_t)data[2 * at + 1] << 8 : data[at];
          int s = wide ? (int16_t)u : (int8_t)u, most = wide ? 32767 : 127;
          expect_near((double)texels[i][c],
                      is_signed ? (s < -most ? -1 : (double)s / most) : (double)u / (2 * most + 1), i, (int)c);
        }
    }
    succeed(cudaFreeArray(array));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(descriptors), cmocka_unit_test(copies),
                                     cmocka_unit_test(compressed), cmocka_unit_test(levels),
                                     cmocka_unit_test(normalized)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
