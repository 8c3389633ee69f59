/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects and references through both interfaces: what is refused, what descriptors give back, and
 * kernels that read and write through them. Filtering itself is tested in tests/unit/exec/test_texture.c. */
#include "program.h"

#include "driver/runtime_api/cudart_array.h"
#include "driver/driver_api/libcuda_array.h"

typedef struct texref *CUtexref;
CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleUnload(CUmodule),
    cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuTexObjectCreate(CUtexObject *, const CUDA_RESOURCE_DESC *, const CUDA_TEXTURE_DESC *,
                           const CUDA_RESOURCE_VIEW_DESC *),
    cuTexObjectDestroy(CUtexObject);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *, CUtexObject),
    cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *, CUtexObject);
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *, CUtexObject),
    cuSurfObjectCreate(CUsurfObject *, const CUDA_RESOURCE_DESC *), cuSurfObjectDestroy(CUsurfObject);
CUresult cuModuleGetTexRef(CUtexref *, CUmodule, const char *), cuModuleGetSurfRef(CUtexref *, CUmodule, const char *),
    cuTexRefSetArray(CUtexref, CUarray, unsigned);
CUresult cuTexRefSetFilterMode(CUtexref, int), cuTexRefSetFlags(CUtexref, unsigned),
    cuTexRefSetAddressMode(CUtexref, int, int), cuTexRefSetFormat(CUtexref, CUarray_format, int);
CUresult cuTexRefSetAddress_v2(size_t *, CUtexref, CUdeviceptr, size_t), cuTexRefGetArray(CUarray *, CUtexref),
    cuTexRefGetFilterMode(int *, CUtexref);
CUresult cuTexRefGetFlags(unsigned *, CUtexref), cuSurfRefSetArray(CUtexref, CUarray, unsigned),
    cuTexRefCreate(CUtexref *), cuTexRefDestroy(CUtexref);

#define BEGIN                                                                                                                                                  \
  "{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [object]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n" \
  "mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2; shl.b32 %r8, %r1, 2;\n"
static const char module_text[] =
    PTX_HEAD ".global .texref reference; .global .surfref surface; .global .u64 number;\n"
             ".visible .entry sample(.param .u64 object, .param .u64 out)\n" BEGIN
             "tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [%rd1, {%f1,%f2}]; st.global.f32 [%rd4], %f3; ret;\n}\n"
             ".visible .entry linear(.param .u64 object, .param .u64 out)\n" BEGIN
             "tex.1d.v4.s32.s32 {%r5,%r6,%r7,_}, [%rd1, {%r1}]; st.global.u32 [%rd4], %r5; ret;\n}\n"
             ".visible .entry write(.param .u64 object, .param .u64 out)\n" BEGIN
             "ld.global.u32 %r5, [%rd4]; sust.b.2d.b32.trap [%rd1, {%r8,%r2}], %r5; ret;\n}\n"
             ".visible .entry named(.param .u64 object, .param .u64 out)\n" BEGIN
             "tex.2d.v4.f32.f32 {%f3,%f4,%f5,%f6}, [reference, {%f1,%f2}]; st.global.f32 [%rd4], %f3; ret;\n}\n"
             ".visible .entry named_write(.param .u64 object, .param .u64 out)\n" BEGIN
             "ld.global.u32 %r5, [%rd4]; sust.b.2d.b32.trap [surface, {%r8,%r2}], %r5; ret;\n}\n";

enum { W = 8, H = 4 };
static CUmodule module;
static float texels[W * H], back[W * H];
static float *out;
static cudaArray_t array;
static const cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat},
                                   integers = {32, 0, 0, 0, cudaChannelFormatKindSigned};

static int set_up(void **state) {
  (void)state;
  CUcontext context;
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  assert_int_equal(cuModuleLoadData(&module, module_text), CUDA_SUCCESS);
  for (int i = 0; i < W * H; i++) texels[i] = (float)(i * i);
  succeed(cudaMalloc((void **)&out, sizeof back));
  succeed(cudaMallocArray(&array, &floats, W, H, cudaArraySurfaceLoadStore));
  succeed(cudaMemcpy2DToArray(array, 0, 0, texels, W * 4, W * 4, H, cudaMemcpyHostToDevice));
  return 0;
}

static cudaError_t run(const char *kernel, uint64_t object) {
  CUfunction function;
  void *arguments[] = {&object, &out};
  assert_int_equal(cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
  assert_int_equal(cuLaunchKernel(function, 1, 1, 1, W, H, 1, 0, NULL, arguments, NULL), CUDA_SUCCESS);
  return cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
}

static cudaResourceDesc of_array(void) {
  return (cudaResourceDesc){.resType = cudaResourceTypeArray, .res.array.array = array};
}

/* ---- the runtime's objects ---- */

static void kernels(void **state) {
  (void)state;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaResourceDesc resource = of_array();
  cudaTextureDesc sampler = {.filterMode = cudaFilterModeLinear,
                             .addressMode = {cudaAddressModeClamp, cudaAddressModeBorder},
                             .borderColor = {8}};
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, NULL));
  assert_int_not_equal(texture, 0);
  succeed(run("sample", texture)); /* at corners: the mean of four texels, the border above */
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      const float *low = texels + y * W, *high = texels + (y ? y - 1 : 0) * W;
      int left = x ? x - 1 : 0;
      float above = y ? high[left] + high[x] : 16, want = (low[left] + low[x] + above) / 4;
      if (back[y * W + x] != want) fail_msg("%d %d: %g, not %g", x, y, (double)back[y * W + x], (double)want);
    }
  succeed(cudaCreateSurfaceObject(&surface, &resource));
  float other[W * H];
  for (int i = 0; i < W * H; i++) other[i] = (float)(1000 - i);
  succeed(cudaMemcpy(out, other, sizeof other, cudaMemcpyHostToDevice));
  succeed(run("write", surface));
  memset(back, 0, sizeof back);
  succeed(cudaMemcpy2DFromArray(back, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, other, sizeof back);
  succeed(cudaMemcpy2DToArray(array, 0, 0, texels, W * 4, W * 4, H, cudaMemcpyHostToDevice));
  succeed(cudaDestroyTextureObject(texture));
  succeed(cudaDestroySurfaceObject(surface));
  expect(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
  expect(cudaDestroySurfaceObject(texture), cudaErrorInvalidValue);
  succeed(cudaDestroyTextureObject(0));
}

static void linear_memory(void **state) {
  (void)state;
  cudaTextureObject_t texture;
  int *memory, numbers[W * H];
  for (int i = 0; i < W * H; i++) numbers[i] = 3 * i - 5;
  succeed(cudaMalloc((void **)&memory, sizeof numbers));
  succeed(cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {.resType = cudaResourceTypeLinear, .res.linear = {memory, integers, 6 * sizeof(int)}};
  cudaTextureDesc sampler = {.filterMode = cudaFilterModeLinear}; /* filters do not apply, but must fit the format */
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidFilterSetting);
  sampler.filterMode = cudaFilterModePoint;
  sampler.readMode = cudaReadModeNormalizedFloat;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidNormSetting);
  sampler.readMode = cudaReadModeElementType;
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, NULL));
  succeed(run("linear", texture));
  int got[W];
  memcpy(got, back, sizeof got);
  for (int x = 0; x < W; x++) assert_int_equal(got[x], x < 6 ? numbers[x] : 0);
  succeed(cudaDestroyTextureObject(texture));
  resource.res.linear.devPtr = memory + 1;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue); /* not aligned */
  resource.res.linear = (__typeof__(resource.res.linear)){memory, integers, sizeof numbers + 4};
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue); /* more than is there */
  resource.res.linear.sizeInBytes = 3;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue); /* no texel */
  resource.res.linear = (__typeof__(resource.res.linear)){NULL, integers, 64};
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue);
  size_t pitch, most;
  float *image;
  succeed(cudaMallocPitch((void **)&image, &pitch, W * 4, H));
  succeed(cudaMemcpy2D(image, pitch, texels, W * 4, W * 4, H, cudaMemcpyHostToDevice));
  resource = (cudaResourceDesc){.resType = cudaResourceTypePitch2D, .res.pitch2D = {image, floats, W, H, pitch}};
  sampler = (cudaTextureDesc){.addressMode = {cudaAddressModeClamp, cudaAddressModeClamp}};
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, NULL));
  succeed(run("sample", texture));
  assert_memory_equal(back, texels, sizeof back);
  succeed(cudaDestroyTextureObject(texture));
  resource.res.pitch2D.pitchInBytes = pitch + 16;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue);
  resource.res.pitch2D.pitchInBytes = pitch;
  resource.res.pitch2D.height = 1 << 20;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue);
  succeed(cudaDeviceGetTexture1DLinearMaxWidth(&most, &floats, 0));
  assert_in_range(most, 1 << 27, 1 << 28);
  expect(cudaDeviceGetTexture1DLinearMaxWidth(&most, &floats, 1), cudaErrorInvalidDevice);
  succeed(cudaFree(memory));
  succeed(cudaFree(image));
}

static void refusals(void **state) {
  (void)state;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaArray_t ints, plain;
  cudaMipmappedArray_t mipmap;
  cudaResourceDesc resource = of_array();
  cudaTextureDesc sampler = {0};
  expect(cudaCreateTextureObject(NULL, &resource, &sampler, NULL), cudaErrorInvalidValue);
  expect(cudaCreateTextureObject(&texture, NULL, &sampler, NULL), cudaErrorInvalidValue);
  expect(cudaCreateTextureObject(&texture, &resource, NULL, NULL), cudaErrorInvalidValue);
  resource.resType = (cudaResourceType)7;
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue);
  sampler.addressMode[1] = (cudaTextureAddressMode)4;
  resource = of_array();
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidValue);
  succeed(cudaMallocArray(&ints, &integers, W, H, 0));
  resource.res.array.array = ints;
  sampler = (cudaTextureDesc){.filterMode = cudaFilterModeLinear, .readMode = cudaReadModeNormalizedFloat};
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, NULL), cudaErrorInvalidFilterSetting);
  /* made without cudaArraySurfaceLoadStore */
  expect(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidValue);
  succeed(cudaFreeArray(ints));
  expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, NULL), cudaErrorInvalidResourceHandle);
  expect(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidResourceHandle);
  succeed(cudaMallocMipmappedArray(&mipmap, &floats, (cudaExtent){W, H, 0}, 3, 0));
  resource = (cudaResourceDesc){.resType = cudaResourceTypeMipmappedArray, .res.mipmap.mipmap = mipmap};
  /* coordinates not normalised */
  expect(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, NULL), cudaErrorInvalidValue);
  cudaResourceViewDesc view = {.width = W, .height = H, .firstMipmapLevel = 1, .lastMipmapLevel = 3};
  sampler = (cudaTextureDesc){.normalizedCoords = 1};
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, &view), cudaErrorInvalidValue);
  view.lastMipmapLevel = 2;
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, &view));
  succeed(cudaDestroyTextureObject(texture));
  view.format = 0x02; /* unsigned char2: not as large as a float */
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, &view), cudaErrorInvalidValue);
  view.format = 0x19; /* blocks of 8 bytes; more in test_format.c */
  expect(cudaCreateTextureObject(&texture, &resource, &sampler, &view), cudaErrorInvalidValue);
  succeed(cudaFreeMipmappedArray(mipmap));
  succeed(cudaMallocArray(&plain, &floats, W, H, 0));
  resource = (cudaResourceDesc){.resType = cudaResourceTypeArray, .res.array.array = plain};
  expect(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidValue);
  succeed(cudaFreeArray(plain));
}

static void descriptors(void **state) {
  (void)state;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  cudaResourceDesc resource = of_array(), found;
  cudaTextureDesc sampler = {.addressMode = {cudaAddressModeMirror, cudaAddressModeBorder, cudaAddressModeWrap},
                             .filterMode = cudaFilterModeLinear,
                             .readMode = cudaReadModeNormalizedFloat,
                             .borderColor = {1, 2, 3, 4},
                             .normalizedCoords = 1,
                             .maxAnisotropy = 4,
                             .mipmapFilterMode = cudaFilterModeLinear,
                             .mipmapLevelBias = 0.5f,
                             .minMipmapLevelClamp = 1,
                             .maxMipmapLevelClamp = 2,
                             .disableTrilinearOptimization = 1,
                             .seamlessCubemap = 1},
                  given;
  cudaResourceViewDesc view = {.format = 0x16, .width = W, .height = H}, seen;
  succeed(cudaCreateTextureObject(&texture, &resource, &sampler, &view));
  succeed(cudaGetTextureObjectResourceDesc(&found, texture));
  assert_int_equal(found.resType, cudaResourceTypeArray);
  assert_ptr_equal(found.res.array.array, array);
  succeed(cudaGetTextureObjectTextureDesc(&given, texture));
  assert_memory_equal(&given, &sampler, sizeof sampler);
  succeed(cudaGetTextureObjectResourceViewDesc(&seen, texture));
  assert_int_equal(seen.format, 0x16);
  assert_int_equal(seen.width, W);
  CUDA_TEXTURE_DESC driver; /* the same object in the driver's words */
  assert_int_equal(cuTexObjectGetTextureDesc(&driver, texture), CUDA_SUCCESS);
  assert_int_equal(driver.flags,
                   CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP);
  assert_int_equal(driver.addressMode[0], cudaAddressModeMirror);
  succeed(cudaDestroyTextureObject(texture));
  expect(cudaGetTextureObjectResourceDesc(&found, texture), cudaErrorInvalidValue);
  succeed(cudaCreateSurfaceObject(&surface, &resource));
  succeed(cudaGetSurfaceObjectResourceDesc(&found, surface));
  assert_ptr_equal(found.res.array.array, array);
  expect(cudaGetTextureObjectResourceDesc(&found, surface), cudaErrorInvalidValue);
  succeed(cudaDestroySurfaceObject(surface));
}

/* ---- the driver's objects ---- */

static void driver_objects(void **state) {
  (void)state;
  CUtexObject texture;
  CUsurfObject surface;
  CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = (CUarray)array}, found;
  CUDA_TEXTURE_DESC sampler = {.addressMode = {1, 1}, .flags = CU_TRSF_READ_AS_INTEGER};
  CUDA_RESOURCE_VIEW_DESC view;
  assert_int_equal(cuTexObjectCreate(&texture, &resource, &sampler, NULL), CUDA_SUCCESS);
  succeed(run("sample", texture));
  assert_memory_equal(back, texels, sizeof back);
  assert_int_equal(cuTexObjectGetResourceDesc(&found, texture), CUDA_SUCCESS);
  assert_ptr_equal(found.res.array.hArray, array);
  assert_int_equal(cuTexObjectGetResourceViewDesc(&view, texture), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuTexObjectDestroy(texture), CUDA_SUCCESS);
  assert_int_equal(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
  assert_int_equal(cuSurfObjectDestroy(surface), CUDA_SUCCESS);
  sampler.flags = 0x1000;
  assert_int_equal(cuTexObjectCreate(&texture, &resource, &sampler, NULL), CUDA_ERROR_INVALID_VALUE);
  resource.flags = 1;
  assert_int_equal(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
  /* bytes are normalised floats unless they are to be integers */
  unsigned char bytes[W * H];
  cudaArray_t small;
  for (int i = 0; i < W * H; i++) bytes[i] = (unsigned char)(i * 8 + 7);
  succeed(cudaMallocArray(&small, &(cudaChannelFormatDesc){8, 0, 0, 0, cudaChannelFormatKindUnsigned}, W, H, 0));
  succeed(cudaMemcpy2DToArray(small, 0, 0, bytes, W, W, H, cudaMemcpyHostToDevice));
  resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = (CUarray)small};
  sampler = (CUDA_TEXTURE_DESC){.addressMode = {1, 1}};
  assert_int_equal(cuTexObjectCreate(&texture, &resource, &sampler, NULL), CUDA_SUCCESS);
  succeed(run("sample", texture));
  for (int i = 0; i < W * H; i++) assert_true(back[i] == (float)bytes[i] / 255);
  assert_int_equal(cuTexObjectDestroy(texture), CUDA_SUCCESS);
  succeed(cudaFreeArray(small));
}

static void references(void **state) {
  (void)state;
  CUtexref reference, same, surface;
  CUarray bound;
  unsigned flags;
  int filter;
  assert_int_equal(cuModuleGetTexRef(&reference, module, "reference"), CUDA_SUCCESS);
  assert_int_equal(cuModuleGetTexRef(&same, module, "reference"), CUDA_SUCCESS);
  assert_ptr_equal(reference, same);
  assert_int_equal(cuModuleGetTexRef(&same, module, "number"), CUDA_ERROR_NOT_FOUND);
  assert_int_equal(cuModuleGetTexRef(&same, module, "absent"), CUDA_ERROR_NOT_FOUND);
  assert_int_equal(cuTexRefSetFilterMode((CUtexref)(void *)&reference, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuTexRefGetArray(&bound, reference), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuTexRefSetArray(reference, (CUarray)array, 1), CUDA_SUCCESS);
  assert_int_equal(cuTexRefGetArray(&bound, reference), CUDA_SUCCESS);
  assert_ptr_equal(bound, array);
  succeed(run("named", 0));
  assert_memory_equal(back, texels, sizeof back);
  assert_int_equal(cuTexRefSetFilterMode(reference, 1), CUDA_SUCCESS); /* settings reach what is bound */
  assert_int_equal(cuTexRefGetFilterMode(&filter, reference), CUDA_SUCCESS);
  assert_int_equal(filter, 1);
  succeed(run("named", 0));
  assert_true(back[W + 1] == (texels[0] + texels[1] + texels[W] + texels[W + 1]) / 4);
  assert_int_equal(cuTexRefSetFlags(reference, CU_TRSF_NORMALIZED_COORDINATES), CUDA_SUCCESS);
  assert_int_equal(cuTexRefGetFlags(&flags, reference), CUDA_SUCCESS);
  assert_int_equal(flags, CU_TRSF_NORMALIZED_COORDINATES);
  assert_int_equal(cuTexRefSetAddressMode(reference, 3, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuModuleGetSurfRef(&surface, module, "surface"), CUDA_SUCCESS);
  assert_int_equal(cuSurfRefSetArray(surface, (CUarray)array, 0), CUDA_SUCCESS);
  float other[W * H];
  for (int i = 0; i < W * H; i++) other[i] = (float)(i - 40);
  succeed(cudaMemcpy(out, other, sizeof other, cudaMemcpyHostToDevice));
  succeed(run("named_write", 0));
  succeed(cudaMemcpy2DFromArray(back, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, other, sizeof back);
  succeed(cudaMemcpy2DToArray(array, 0, 0, texels, W * 4, W * 4, H, cudaMemcpyHostToDevice));
  /* linear memory that does not begin where textures may: the caller adds the offset */
  size_t offset;
  assert_int_equal(cuTexRefSetFormat(reference, CU_AD_FORMAT_FLOAT, 1), CUDA_SUCCESS);
  assert_int_equal(cuTexRefSetAddress_v2(&offset, reference, (uint64_t)(uintptr_t)out + 16, 64), CUDA_SUCCESS);
  assert_int_equal(offset, 16);
  assert_int_equal(cuTexRefSetAddress_v2(NULL, reference, (uint64_t)(uintptr_t)out + 16, 64), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuTexRefDestroy(reference), CUDA_ERROR_INVALID_VALUE); /* the module's */
  assert_int_equal(cuTexRefCreate(&same), CUDA_SUCCESS);
  assert_int_equal(cuTexRefSetArray(same, (CUarray)array, 1), CUDA_SUCCESS);
  assert_int_equal(cuTexRefDestroy(same), CUDA_SUCCESS);
  assert_int_equal(cuTexRefDestroy(same), CUDA_ERROR_INVALID_VALUE);
}

/* ---- faults: last, because they stay ---- */

static void freed_array(void **state) {
  (void)state;
  cudaTextureObject_t texture;
  cudaArray_t doomed;
  succeed(cudaMallocArray(&doomed, &floats, W, H, 0));
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = doomed};
  succeed(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){0}, NULL));
  succeed(cudaFreeArray(doomed));
  expect(run("sample", texture), cudaErrorIllegalAddress);
  assert_non_null(strstr(engine_fault_message(), "is not there any more"));
  assert_non_null(strstr(engine_fault_message(), "cudaMallocArray #"));
  assert_non_null(strstr(engine_fault_message(), "in kernel sample"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels),        cmocka_unit_test(linear_memory),
                                     cmocka_unit_test(refusals),       cmocka_unit_test(descriptors),
                                     cmocka_unit_test(driver_objects), cmocka_unit_test(references),
                                     cmocka_unit_test(freed_array)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
