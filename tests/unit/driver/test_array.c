/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays of both interfaces: shapes and limits, memory, copies of every form against arrays in host memory,
 * refusals. */
#include "program.h"

#include "driver/driver_api/libcuda_array.h"
#include "driver/runtime_api/cudart_array.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuArrayCreate_v2(CUarray *, const CUDA_ARRAY_DESCRIPTOR *),
    cuArray3DCreate_v2(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *), cuArrayDestroy(CUarray);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *, CUarray),
    cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *, CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned),
    cuMipmappedArrayGetLevel(CUarray *, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray),
    cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUarray, CUdevice),
    cuArrayGetPlane(CUarray *, CUarray, unsigned);
CUresult cuMemcpyHtoA_v2(CUarray, size_t, const void *, size_t), cuMemcpyAtoH_v2(void *, CUarray, size_t, size_t),
    cuMemcpyAtoA_v2(CUarray, size_t, CUarray, size_t, size_t);
CUresult cuMemcpyDtoA_v2(CUarray, size_t, CUdeviceptr, size_t), cuMemcpyAtoD_v2(CUdeviceptr, CUarray, size_t, size_t);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *), cuMemcpy3D_v2(const CUDA_MEMCPY3D *);
CUresult cuMemcpy3DBatchAsync(size_t, cudaMemcpy3DBatchOp *, size_t *, unsigned long long, CUstream),
    cuMemcpy3DBatchAsync_v2(size_t, cudaMemcpy3DBatchOp *, unsigned long long, CUstream);
cudaError_t cudaMemcpy3DBatchAsync(size_t, cudaMemcpy3DBatchOp *, unsigned long long, cudaStream_t);

static unsigned char host[65536], back[65536];
static const cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat},
                                   bytes4 = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};

static int set_up(void **state) {
  (void)state;
  CUcontext context;
  for (size_t i = 0; i < sizeof host; i++) host[i] = (unsigned char)(i * 7 + i / 256);
  assert_int_equal(cuInit(0), CUDA_SUCCESS);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return 0;
}

/* ---- shapes ---- */

static void formats(void **state) {
  (void)state;
  static const struct {
    cudaChannelFormatDesc desc;
    cudaError_t want;
  } cases[] = {{{8, 0, 0, 0, cudaChannelFormatKindSigned}, cudaSuccess},
               {{16, 16, 0, 0, cudaChannelFormatKindUnsigned}, cudaSuccess},
               {{32, 32, 32, 32, cudaChannelFormatKindFloat}, cudaSuccess},
               {{16, 0, 0, 0, cudaChannelFormatKindFloat}, cudaSuccess},
               {{8, 0, 0, 0, cudaChannelFormatKindFloat}, cudaErrorInvalidChannelDescriptor},
               {{32, 32, 32, 0, cudaChannelFormatKindFloat}, cudaErrorInvalidChannelDescriptor},
               {{12, 0, 0, 0, cudaChannelFormatKindSigned}, cudaErrorInvalidChannelDescriptor},
               {{0, 0, 0, 0, cudaChannelFormatKindSigned}, cudaErrorInvalidChannelDescriptor},
               {{8, 16, 0, 0, cudaChannelFormatKindSigned}, cudaErrorInvalidChannelDescriptor},
               {{8, 0, 0, 0, cudaChannelFormatKindNone}, cudaErrorInvalidChannelDescriptor},
               /* all: test_format.c */
               {{8, 0, 0, 0, (cudaChannelFormatKind)5}, cudaSuccess},
               {{8, 8, 8, 8, (cudaChannelFormatKind)29}, cudaSuccess},
               {{8, 8, 0, 0, (cudaChannelFormatKind)4}, cudaErrorNotSupported},
               {{10, 10, 10, 2, (cudaChannelFormatKind)31}, cudaErrorNotSupported},
               {{8, 0, 0, 0, (cudaChannelFormatKind)99}, cudaErrorInvalidChannelDescriptor}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    cudaArray_t array;
    cudaChannelFormatDesc found;
    assert_int_equal(cudaMallocArray(&array, &cases[n].desc, 8, 8, 0), cases[n].want);
    if (cases[n].want) continue;
    succeed(cudaGetChannelDesc(&found, array));
    assert_memory_equal(&found, &cases[n].desc, sizeof found);
    succeed(cudaFreeArray(array));
  }
}

static void extents(void **state) {
  (void)state;
  static const struct {
    cudaExtent extent;
    unsigned flags;
    bool good;
  } cases[] = {{{100, 0, 0}, 0, true},
               {{100, 50, 0}, 0, true},
               {{10, 20, 30}, 0, true},
               {{100, 0, 7}, cudaArrayLayered, true},
               {{100, 50, 7}, cudaArrayLayered, true},
               {{16, 16, 6}, cudaArrayCubemap, true},
               {{16, 16, 12}, cudaArrayCubemap | cudaArrayLayered, true},
               {{64, 64, 0}, cudaArrayTextureGather, true},
               {{0, 0, 0}, 0, false},
               {{0, 10, 0}, 0, false},
               {{10, 0, 10}, 0, false},
               {{100, 50, 0}, cudaArrayLayered, false},
               {{16, 8, 6}, cudaArrayCubemap, false},
               {{16, 16, 7}, cudaArrayCubemap, false},
               {{16, 16, 12}, cudaArrayCubemap, false},
               {{16, 16, 2}, cudaArrayTextureGather, false},
               {{1 << 20, 0, 0}, 0, false},
               {{64, 1 << 20, 0}, 0, false},
               {{64, 64, 1 << 20}, 0, false},
               {{64, 64, 3000}, cudaArrayLayered, false},
               {{8, 8, 0}, 0x1000, false}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    cudaArray_t array;
    cudaExtent found;
    unsigned flags;
    cudaError_t error = cudaMalloc3DArray(&array, &floats, cases[n].extent, cases[n].flags);
    if (error != (cases[n].good ? cudaSuccess : cudaErrorInvalidValue)) fail_msg("case %zu: error %d", n, error);
    if (error) continue;
    succeed(cudaArrayGetInfo(NULL, &found, &flags, array));
    assert_memory_equal(&found, &cases[n].extent, sizeof found);
    assert_int_equal(flags, cases[n].flags);
    succeed(cudaFreeArray(array));
  }
  cudaGetLastError();
  cudaArray_t array;
  expect(cudaMalloc3DArray(&array, &floats, (cudaExtent){8, 8, 0}, cudaArraySparse), cudaErrorNotSupported);
  expect(cudaMallocArray(&array, &floats, 8, 8, cudaArrayCubemap), cudaErrorInvalidValue);
  expect(cudaMallocArray(NULL, &floats, 8, 8, 0), cudaErrorInvalidValue);
  expect(cudaMallocArray(&array, NULL, 8, 8, 0), cudaErrorInvalidValue);
}

/* Arrays take GPU memory and give it back; what is no array is refused wherever it is named. */
static void memory_and_handles(void **state) {
  (void)state;
  size_t before, during, after, total;
  cudaArray_t array, level;
  cudaMipmappedArray_t mipmap;
  cudaArrayMemoryRequirements needs;
  succeed(cudaMemGetInfo(&before, &total));
  succeed(cudaMallocArray(&array, &floats, 1000, 1000, 0));
  succeed(cudaMemGetInfo(&during, &total));
  assert_in_range(before - during, 4000000, 4000 * 1024 + 65536);
  succeed(cudaArrayGetMemoryRequirements(&needs, array, 0));
  assert_in_range(needs.size, 4000000, 4000 * 1024);
  assert_int_equal(needs.alignment, 512);
  char properties[64];
  expect(cudaArrayGetPlane(&level, array, 0), cudaErrorInvalidValue); /* it has one plane, and is not sparse */
  expect(cudaArrayGetPlane(NULL, array, 0), cudaErrorInvalidValue);
  expect(cudaArrayGetSparseProperties(properties, array), cudaErrorInvalidValue);
  succeed(cudaFreeArray(array));
  succeed(cudaMemGetInfo(&after, &total));
  assert_int_equal(after, before);
  expect(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
  expect(cudaArrayGetPlane(&level, array, 0), cudaErrorInvalidResourceHandle);
  expect(cudaArrayGetSparseProperties(properties, array), cudaErrorInvalidResourceHandle);
  expect(cudaArrayGetInfo(NULL, NULL, NULL, array), cudaErrorInvalidResourceHandle);
  expect(cudaMemcpy2DToArray(array, 0, 0, host, 16, 16, 1, cudaMemcpyHostToDevice), cudaErrorInvalidResourceHandle);
  expect(cudaMemcpy2DToArray((cudaArray_t)(void *)host, 0, 0, host, 16, 16, 1, cudaMemcpyHostToDevice),
         cudaErrorInvalidResourceHandle);
  expect(cudaMemcpy2DToArray(NULL, 0, 0, host, 16, 16, 1, cudaMemcpyHostToDevice), cudaErrorInvalidResourceHandle);
  succeed(cudaFreeArray(NULL));

  succeed(cudaMallocMipmappedArray(&mipmap, &floats, (cudaExtent){64, 16, 0}, 100, 0));
  cudaExtent extent;
  for (unsigned l = 0; l < 7; l++) { /* 1 + log2(64) */
    succeed(cudaGetMipmappedArrayLevel(&level, mipmap, l));
    succeed(cudaArrayGetInfo(NULL, &extent, NULL, level));
    assert_int_equal(extent.width, 64 >> l);
    assert_int_equal(extent.height, l > 4 ? 1 : 16 >> l);
  }
  expect(cudaGetMipmappedArrayLevel(&level, mipmap, 7), cudaErrorInvalidValue);
  expect(cudaMipmappedArrayGetSparseProperties(properties, mipmap), cudaErrorInvalidValue);
  succeed(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
  expect(cudaFreeArray(level), cudaErrorInvalidValue);
  succeed(cudaFreeMipmappedArray(mipmap));
  expect(cudaFreeMipmappedArray(mipmap), cudaErrorInvalidResourceHandle);
  expect(cudaArrayGetInfo(NULL, &extent, NULL, level), cudaErrorInvalidResourceHandle);
  succeed(cudaMemGetInfo(&after, &total));
  assert_int_equal(after, before);
}

/* ---- copies ---- */

static void rows(void **state) {
  (void)state;
  cudaArray_t a, b;
  char *device;
  succeed(cudaMallocArray(&a, &bytes4, 25, 20, 0)); /* rows of 100 bytes */
  succeed(cudaMallocArray(&b, &bytes4, 40, 10, 0));
  succeed(cudaMalloc((void **)&device, 65536));
  succeed(cudaMemcpy2DToArray(a, 0, 0, host, 128, 100, 20, cudaMemcpyHostToDevice));
  succeed(cudaMemcpy2DFromArray(back, 200, a, 0, 0, 100, 20, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 20; y++) assert_memory_equal(back + 200 * y, host + 128 * y, 100);
  /* a window, through device memory, into another array and out of it */
  succeed(cudaMemcpy2DFromArray(device, 512, a, 8, 3, 40, 5, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy2DToArray(b, 16, 2, device, 512, 40, 5, cudaMemcpyDefault));
  succeed(cudaMemcpy2DArrayToArray(b, 100, 4, a, 8, 3, 40, 5, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpy2DFromArrayAsync(back, 160, b, 0, 0, 160, 10, cudaMemcpyDeviceToHost, NULL));
  for (int y = 0; y < 5; y++) {
    assert_memory_equal(back + 160 * (y + 2) + 16, host + 128 * (y + 3) + 8, 40);
    assert_memory_equal(back + 160 * (y + 4) + 100, host + 128 * (y + 3) + 8, 40);
  }
  /* beyond a row */
  expect(cudaMemcpy2DToArray(a, 4, 0, host, 128, 100, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  /* beyond the last */
  expect(cudaMemcpy2DToArray(a, 0, 1, host, 128, 100, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  /* between texels */
  expect(cudaMemcpy2DToArray(a, 2, 0, host, 128, 96, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy2DToArray(a, 0, 0, host, 99, 100, 20, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  expect(cudaMemcpy2DToArray(a, 0, 0, host, 128, 100, 20, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  /* host memory is no device's */
  expect(cudaMemcpy2DToArray(a, 0, 0, host, 128, 100, 20, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy2DToArray(a, SIZE_MAX - 3, 0, host, 128, 100, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 100, 11, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  succeed(cudaMemcpy2DToArray(a, 0, 0, host, 128, 0, 20, cudaMemcpyHostToDevice)); /* nothing */
  succeed(cudaFree(device));
  succeed(cudaFreeArray(a));
  succeed(cudaFreeArray(b));
}

/* Without a height a copy goes on from row to row. */
static void stretches(void **state) {
  (void)state;
  cudaArray_t a, b;
  succeed(cudaMallocArray(&a, &bytes4, 25, 20, 0));
  succeed(cudaMallocArray(&b, &bytes4, 15, 40, 0));
  static const struct {
    size_t x, y, bytes;
  } cases[] = {{0, 0, 2000}, {0, 0, 40},    {20, 1, 80},  {20, 1, 84},
               {96, 3, 4},   {52, 0, 1000}, {0, 19, 100}, {40, 2, 1760}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    memset(back, 0, sizeof back);
    succeed(cudaMemcpy2DToArray(a, 0, 0, back, 100, 100, 20, cudaMemcpyHostToDevice));
    succeed(cudaMemcpyToArray(a, cases[n].x, cases[n].y, host, cases[n].bytes, cudaMemcpyHostToDevice));
    succeed(cudaMemcpy2DFromArray(back, 100, a, 0, 0, 100, 20, cudaMemcpyDeviceToHost));
    size_t start = cases[n].y * 100 + cases[n].x;
    assert_memory_equal(back + start, host, cases[n].bytes);
    for (size_t i = 0; i < 2000; i++)
      if (i < start || i >= start + cases[n].bytes) assert_int_equal(back[i], 0);
    succeed(cudaMemcpyFromArray(back, a, cases[n].x, cases[n].y, cases[n].bytes, cudaMemcpyDeviceToHost));
    assert_memory_equal(back, host, cases[n].bytes);
  }
  succeed(cudaMemcpyToArray(a, 0, 0, host, 2000, cudaMemcpyHostToDevice));
  succeed(cudaMemcpyArrayToArray(b, 8, 1, a, 52, 2, 1500, cudaMemcpyDeviceToDevice));
  succeed(cudaMemcpyFromArray(back, b, 8, 1, 1500, cudaMemcpyDeviceToHost));
  assert_memory_equal(back, host + 252, 1500);
  expect(cudaMemcpyToArray(a, 0, 0, host, 2004, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect(cudaMemcpyToArray(a, 100, 0, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  succeed(cudaFreeArray(a));
  succeed(cudaFreeArray(b));
}

static void boxes(void **state) {
  (void)state;
  cudaArray_t a, b;
  succeed(cudaMalloc3DArray(&a, &bytes4, (cudaExtent){16, 8, 10}, 0));
  succeed(cudaMalloc3DArray(&b, &bytes4, (cudaExtent){16, 8, 10}, cudaArrayLayered));
  cudaMemcpy3DParms in = {
      .srcPtr = {host, 64, 64, 8}, .dstArray = a, .extent = {16, 8, 10}, .kind = cudaMemcpyHostToDevice};
  succeed(cudaMemcpy3D(&in));
  /* positions and extents are texels where an array takes part */
  cudaMemcpy3DParms across = {.srcArray = a,
                              .srcPos = {3, 2, 1},
                              .dstArray = b,
                              .dstPos = {5, 1, 4},
                              .extent = {7, 4, 3},
                              .kind = cudaMemcpyDeviceToDevice};
  succeed(cudaMemcpy3DAsync(&across, NULL));
  cudaMemcpy3DParms out = {.srcArray = b,
                           .srcPos = {5, 1, 4},
                           .dstPtr = {back, 48, 40, 6},
                           .dstPos = {8, 1, 2},
                           .extent = {7, 4, 3},
                           .kind = cudaMemcpyDeviceToHost};
  memset(back, 0, sizeof back);
  succeed(cudaMemcpy3D(&out));
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 4; y++)
      assert_memory_equal(back + (z + 2) * 48 * 6 + (y + 1) * 48 + 8, host + (z + 1) * 512 + (y + 2) * 64 + 12, 28);
  across.extent.depth = 7;
  expect(cudaMemcpy3D(&across), cudaErrorInvalidValue);
  in.dstPtr = in.srcPtr;
  expect(cudaMemcpy3D(&in), cudaErrorInvalidValue); /* both an array and a pointer */
  in = (cudaMemcpy3DParms){
      .srcPtr = {host, 64, 64, 8}, .dstArray = a, .extent = {16, 8, 10}, .kind = cudaMemcpyDeviceToHost};
  expect(cudaMemcpy3D(&in), cudaErrorInvalidMemcpyDirection);
  in.kind = cudaMemcpyHostToDevice;
  in.extent.width = SIZE_MAX / 2;
  expect(cudaMemcpy3D(&in), cudaErrorInvalidValue);
  cudaArray_t wide;
  succeed(cudaMalloc3DArray(&wide, &(cudaChannelFormatDesc){32, 32, 32, 32, cudaChannelFormatKindFloat},
                            (cudaExtent){16, 8, 10}, 0));
  across = (cudaMemcpy3DParms){.srcArray = a, .dstArray = wide, .extent = {4, 4, 4}, .kind = cudaMemcpyDeviceToDevice};
  expect(cudaMemcpy3D(&across), cudaErrorInvalidValue); /* texels of different sizes */
  succeed(cudaFreeArray(wide));
  succeed(cudaFreeArray(a));
  succeed(cudaFreeArray(b));
}

static cudaMemcpy3DOperand at(void *pointer, size_t row, size_t layer) {
  return (cudaMemcpy3DOperand){cudaMemcpyOperandTypePointer, .op.ptr = {.ptr = pointer, row, layer}};
}
static cudaMemcpy3DOperand in(cudaArray_t array, size_t x, size_t y, size_t z) {
  return (cudaMemcpy3DOperand){cudaMemcpyOperandTypeArray, .op.array = {array, {x, y, z}}};
}

static void refused(cudaMemcpy3DBatchOp good, cudaMemcpy3DBatchOp bad, cudaStream_t stream) {
  size_t failed = 7;
  cudaMemcpy3DBatchOp list[] = {good, bad};
  expect(cudaMemcpy3DBatchAsync(2, list, 0, stream), cudaErrorInvalidValue);
  assert_int_equal(cuMemcpy3DBatchAsync(2, list, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(failed, 1);
}

static void batches(void **state) {
  (void)state;
  cudaArray_t a, wide;
  cudaStream_t stream;
  char *device;
  size_t failed = 7;
  succeed(cudaStreamCreate(&stream));
  succeed(cudaMalloc((void **)&device, 4096));
  succeed(cudaMalloc3DArray(&a, &bytes4, (cudaExtent){16, 8, 10}, 0));
  succeed(cudaMalloc3DArray(&wide, &(cudaChannelFormatDesc){32, 32, 32, 32, cudaChannelFormatKindFloat},
                            (cudaExtent){16, 8, 10}, 0));
  /* texels where an array takes part, else bytes; a pointer is where the copy begins */
  cudaMemcpy3DBatchOp into[] = {{at(host, 0, 0), in(a, 0, 0, 0), {16, 8, 10}, 1, 0},
                                {at(host, 100, 7), at(device, 0, 0), {90, 5, 3}, 2, 1}};
  cudaMemcpy3DBatchOp out[] = {{in(a, 3, 2, 1), at(back, 12, 6), {7, 4, 3}, 3, 0},
                               {at(device + 90, 90, 5), at(back + 8192, 128, 0), {90, 4, 2}, 1, 0}};
  memset(back, 0, sizeof back);
  succeed(cudaMemcpy3DBatchAsync(2, into, 0, stream));
  assert_int_equal(cuMemcpy3DBatchAsync(2, out, &failed, 0, stream), CUDA_SUCCESS);
  assert_int_equal(failed, SIZE_MAX);
  succeed(cudaStreamSynchronize(stream));
  for (int z = 0; z < 3; z++)
    for (int y = 0; y < 4; y++)
      assert_memory_equal(back + 48 * (6 * z + y), host + (z + 1) * 512 + (y + 2) * 64 + 12, 28);
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 4; y++) assert_memory_equal(back + 8192 + 128 * (4 * z + y), host + 100 * (7 * z + y + 1), 90);
  /* nothing is copied by a batch with a wrong one */
  cudaMemcpy3DBatchOp clear = {at(host, 0, 0), at(back, 0, 0), {64, 1, 1}, 1, 0};
  memset(back, 0, 64);
  cudaMemcpy3DBatchOp bad = clear;
  bad.extent.height = 0;
  refused(clear, bad, stream);
  bad = clear;
  bad.srcAccessOrder = 0;
  refused(clear, bad, stream);
  bad = clear;
  bad.dst.type = 3;
  refused(clear, bad, stream);
  refused(clear, (cudaMemcpy3DBatchOp){at(host, 63, 0), at(back, 0, 0), {64, 2, 1}, 1, 0}, stream);
  refused(clear, (cudaMemcpy3DBatchOp){at(host, 0, 0), at(back, 0, 1), {64, 2, 1}, 1, 0}, stream);
  refused(clear, (cudaMemcpy3DBatchOp){at(host, 0, 0), in(a, SIZE_MAX / 2, 0, 0), {1, 1, 1}, 1, 0}, stream);
  refused(clear, (cudaMemcpy3DBatchOp){in(a, 0, 0, 0), in(wide, 0, 0, 0), {4, 4, 4}, 1, 0}, stream);
  assert_int_equal(back[1] | back[2], 0);
  refused(clear, (cudaMemcpy3DBatchOp){at(host, 0, 0), in(a, 1, 0, 0), {16, 1, 1}, 1, 0}, stream); /* after the first */
  assert_memory_equal(back, host, 64);
  assert_int_equal(cuMemcpy3DBatchAsync_v2(0, into, 0, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemcpy3DBatchAsync_v2(1, NULL, 0, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemcpy3DBatchAsync_v2(1, into, 1, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemcpy3DBatchAsync_v2(1, into, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  cudaArray_t gone = wide;
  succeed(cudaFreeArray(wide));
  into[0].dst = in(gone, 0, 0, 0);
  assert_int_equal(cuMemcpy3DBatchAsync_v2(1, into, 0, stream), CUDA_ERROR_INVALID_HANDLE);
  succeed(cudaFreeArray(a));
  succeed(cudaFree(device));
  succeed(cudaStreamDestroy(stream));
}

/* ---- the driver's interface ---- */

static void driver_interface(void **state) {
  (void)state;
  CUarray a, b;
  CUmipmappedArray mipmap;
  CUdeviceptr device;
  CUDA_ARRAY_DESCRIPTOR flat = {.Width = 25, .Height = 20, .Format = CU_AD_FORMAT_SIGNED_INT16, .NumChannels = 2};
  CUDA_ARRAY3D_DESCRIPTOR deep = {.Width = 25,
                                  .Height = 20,
                                  .Depth = 3,
                                  .Format = CU_AD_FORMAT_FLOAT,
                                  .NumChannels = 1,
                                  .Flags = cudaArraySurfaceLoadStore},
                          found;
  assert_int_equal(cuArrayCreate_v2(&a, &flat), CUDA_SUCCESS);
  assert_int_equal(cuArray3DCreate_v2(&b, &deep), CUDA_SUCCESS);
  assert_int_equal(cuArray3DGetDescriptor_v2(&found, b), CUDA_SUCCESS);
  assert_memory_equal(&found, &deep, offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags) + 4);
  CUDA_ARRAY_DESCRIPTOR again;
  assert_int_equal(cuArrayGetDescriptor_v2(&again, a), CUDA_SUCCESS);
  assert_memory_equal(&again, &flat, sizeof flat);
  succeed(cudaMalloc((void **)&device, 4096));
  assert_int_equal(cuMemcpyHtoA_v2(a, 48, host, 1000), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyAtoH_v2(back, a, 48, 1000), CUDA_SUCCESS);
  assert_memory_equal(back, host, 1000);
  assert_int_equal(cuMemcpyAtoD_v2(device, a, 48, 1000), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyDtoA_v2(b, 96, device, 1000), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyAtoA_v2(a, 500, b, 96, 1000), CUDA_SUCCESS);
  assert_int_equal(cuMemcpyAtoH_v2(back, a, 500, 1000), CUDA_SUCCESS);
  assert_memory_equal(back, host, 1000);
  assert_int_equal(cuMemcpyHtoA_v2(a, 1500, host, 504), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = host,
                       .srcPitch = 128,
                       .srcHeight = 24,
                       .dstXInBytes = 8,
                       .dstY = 2,
                       .dstZ = 1,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = b,
                       .WidthInBytes = 64,
                       .Height = 6,
                       .Depth = 2};
  assert_int_equal(cuMemcpy3D_v2(&box), CUDA_SUCCESS);
  CUDA_MEMCPY2D row = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                       .srcArray = b,
                       .srcXInBytes = 8,
                       .srcY = 2,
                       .dstMemoryType = CU_MEMORYTYPE_HOST,
                       .dstHost = back,
                       .WidthInBytes = 64,
                       .Height = 1};
  assert_int_equal(cuMemcpy2D_v2(&row), CUDA_SUCCESS); /* slice 0: not what was written */
  assert_memory_not_equal(back, host, 64);
  box = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                        .srcArray = b,
                        .srcXInBytes = 8,
                        .srcY = 2,
                        .srcZ = 1,
                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = back,
                        .dstPitch = 128,
                        .dstHeight = 24,
                        .WidthInBytes = 64,
                        .Height = 6,
                        .Depth = 2};
  assert_int_equal(cuMemcpy3D_v2(&box), CUDA_SUCCESS);
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 6; y++) assert_memory_equal(back + z * 128 * 24 + y * 128, host + z * 128 * 24 + y * 128, 64);
  box.Depth = 3;
  assert_int_equal(cuMemcpy3D_v2(&box), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
  assert_int_equal(cuArrayGetMemoryRequirements(&needs, b, 0), CUDA_SUCCESS);
  assert_int_equal(needs.size, 128 * 20 * 3);
  CUarray plane;
  assert_int_equal(cuArrayGetPlane(&plane, b, 0), CUDA_ERROR_INVALID_VALUE); /* it has one */
  assert_int_equal(cuArrayGetPlane(NULL, b, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuArrayDestroy(a), CUDA_SUCCESS);
  assert_int_equal(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(cuArrayDestroy(b), CUDA_SUCCESS);
  flat.NumChannels = 3;
  assert_int_equal(cuArrayCreate_v2(&a, &flat), CUDA_ERROR_INVALID_VALUE);
  for (unsigned number = 0x9f; number <= 0xb5; number++) {
    flat = (CUDA_ARRAY_DESCRIPTOR){.Width = 8, .Height = 8, .Format = (CUarray_format)number, .NumChannels = 4};
    assert_int_equal(cuArrayCreate_v2(&a, &flat), CUDA_ERROR_NOT_SUPPORTED);
  }
  assert_int_equal(cuArrayCreate_v2(&a, NULL), CUDA_ERROR_INVALID_VALUE);
  deep.Depth = 0;
  assert_int_equal(cuMipmappedArrayCreate(&mipmap, &deep, 3), CUDA_SUCCESS);
  assert_int_equal(cuMipmappedArrayGetLevel(&a, mipmap, 2), CUDA_SUCCESS);
  assert_int_equal(cuArrayGetDescriptor_v2(&again, a), CUDA_SUCCESS);
  assert_int_equal(again.Width, 6);
  assert_int_equal(cuMipmappedArrayGetLevel(&a, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
  succeed(cudaFree((void *)(uintptr_t)device));
}

/* A reset takes arrays and objects along. */
static void reset(void **state) {
  (void)state;
  cudaArray_t array;
  cudaTextureObject_t object;
  succeed(cudaMallocArray(&array, &floats, 8, 8, 0));
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = array};
  cudaTextureDesc sampler = {0};
  succeed(cudaCreateTextureObject(&object, &resource, &sampler, NULL));
  succeed(cudaDeviceReset());
  expect(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
  expect(cudaDestroyTextureObject(object), cudaErrorInvalidValue);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats), cmocka_unit_test(extents),          cmocka_unit_test(memory_and_handles),
      cmocka_unit_test(rows),    cmocka_unit_test(stretches),        cmocka_unit_test(boxes),
      cmocka_unit_test(batches), cmocka_unit_test(driver_interface), cmocka_unit_test(reset)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
