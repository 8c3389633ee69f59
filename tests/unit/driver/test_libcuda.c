/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API: the order of initialisation and contexts, memory, copies, modules, launches, linking, entry
 * points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "fatbin/fatbin.h"

CUresult cuInit(unsigned), cuDriverGetVersion(int *), cuGetErrorName(CUresult, const char **),
    cuGetErrorString(CUresult, const char **);
CUresult cuDeviceGetCount(int *), cuDeviceGet(CUdevice *, int), cuDeviceGetName(char *, int, CUdevice),
    cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDeviceTotalMem_v2(size_t *, CUdevice), cuDeviceGetByPCIBusId(CUdevice *, const char *),
    cuDeviceGetPCIBusId(char *, int, CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice),
    cuCtxCreate_v4(CUcontext *, const void *const *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext), cuCtxPushCurrent_v2(CUcontext), cuCtxPopCurrent_v2(CUcontext *),
    cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext *), cuCtxGetDevice(CUdevice *), cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxRelease_v2(CUdevice),
    cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemGetInfo_v2(size_t *, size_t *),
    cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemFreeHost(void *), cuMemAllocManaged(CUdeviceptr *, size_t, unsigned),
    cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr),
    cuPointerGetAttributes(unsigned, const int *, void **, CUdeviceptr);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *), cuMemcpy3D_v2(const CUDA_MEMCPY3D *),
    cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t),
    cuMemsetD2D16_v2(CUdeviceptr, size_t, unsigned short, size_t, size_t);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream),
    cuStreamGetFlags(CUstream, unsigned *);
CUresult cuStreamGetCtx(CUstream, CUcontext *), cuStreamGetDevice(CUstream, CUdevice *),
    cuStreamGetId(CUstream, unsigned long long *), cuStreamGetPriority(CUstream, int *),
    cuStreamWaitEvent(CUstream, CUevent, unsigned), cuStreamQuery(CUstream), cuEventSynchronize(CUevent),
    cuEventQuery(CUevent);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuStreamAddCallback(CUstream, void (*)(CUstream, CUresult, void *), void *, unsigned);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventRecord(CUevent, CUstream),
    cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuModuleLoadData(CUmodule *, const void *),
    cuModuleLoadDataEx(CUmodule *, const void *, unsigned, const int *, void **), cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *),
    cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **),
    cuFuncGetAttribute(int *, int, CUfunction), cuFuncSetAttribute(CUfunction, int, int);
CUresult cuOccupancyMaxPotentialBlockSize(int *, int *, CUfunction, size_t (*)(int), size_t, int);
CUresult cuLinkCreate_v2(unsigned, const int *, void **, CUlinkState *), cuLinkComplete(CUlinkState, void **, size_t *),
    cuLinkDestroy(CUlinkState);
CUresult cuLinkAddData_v2(CUlinkState, int, void *, size_t, const char *, unsigned, const int *, void **);
CUresult cuGetProcAddress(const char *, void **, int, uint64_t),
    cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char module_text[] = HEAD
    ".visible .global .align 4 .u32 counter = 40;\n"
    ".visible .entry add(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [value];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.s32 %r2, %r3, %r4, %r2;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, %r1;\nst.global.u32 [%rd3], %r5;\nret;\n}\n"
    ".visible .entry bounded() .maxntid 64, 1, 1\n{\nret;\n}\n"
    ".visible .entry poke(.param .u64 at)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [at];\nmov.u32 %r1, 5;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
static const char constant_text[] = HEAD
    ".visible .const .align 4 .u32 cell[2] = {1, 2};\n"
    ".visible .entry write(.param .u64 to, .param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r1, 5;\nst.global.u32 [%rd1+4], %r1;\nret;\n}\n"
    ".visible .entry read(.param .u64 at, .param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [at];\nld.param.u64 %rd2, [out];\nld.const.u32 %r1, [cell+4];\nst.global.u32 [%rd2], %r1;\n"
    "isspacep.const %p1, %rd1;\nselp.u32 %r2, 1, 0, %p1;\nst.global.u32 [%rd2+4], %r2;\nret;\n}\n";
static const char caller_text[] = HEAD
    ".extern .func (.param .b32 result) twice(.param .b32 value);\n"
    ".visible .entry linked(.param .u64 to)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [to];\nmov.u32 %r1, 21;\n"
    "{\n.param .b32 a;\nst.param.b32 [a], %r1;\n.param .b32 r;\ncall.uni (r), twice, (a);\nld.param.b32 %r2, [r];\n}\n"
    "st.global.u32 [%rd1], %r2;\nret;\n}\n";
static const char callee_text[] =
    HEAD ".visible .func (.param .b32 result) twice(.param .b32 value)\n{\n.reg .b32 %r<3>;\n"
         "ld.param.b32 %r1, [value];\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [result], %r2;\nret;\n}\n";

static CUcontext context;

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

/* Sizes and offsets as in cuda.h of CUDA 13.0, for x86-64. */
static void test_layout(void **state) {
  assert_int_equal(sizeof(CUDA_MEMCPY2D), 128);
  assert_int_equal(offsetof(CUDA_MEMCPY2D, dstPitch), 104);
  assert_int_equal(sizeof(CUDA_MEMCPY3D), 200);
  assert_int_equal(offsetof(CUDA_MEMCPY3D, dstHeight), 168);
  assert_int_equal(sizeof(CUlaunchConfig), 56);
  assert_int_equal(offsetof(CUlaunchConfig, numAttrs), 48);
  assert_int_equal(sizeof(cudaLaunchAttribute), 72);
  assert_int_equal(offsetof(cudaLaunchAttribute, val), 8);
  assert_int_equal(sizeof(CUdevprop), 56);
}

/* ---- before anything ---- */

static void test_not_initialised(void **state) {
  int number;
  const char *text;
  CUdeviceptr pointer;
  check(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
  check(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_NOT_INITIALIZED);
  check(cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
  succeed(cuDriverGetVersion(&number)); /* these three need no initialisation */
  assert_true(number >= 13000);
  succeed(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
  assert_string_equal(text, "CUDA_ERROR_NOT_INITIALIZED");
  succeed(cuGetErrorString(CUDA_ERROR_INVALID_PTX, &text));
  assert_string_equal(text, "a PTX JIT compilation failed");
  check(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
  assert_null(text);
  check(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
}

static void test_device(void **state) {
  int number;
  char name[64];
  size_t bytes;
  succeed(cuInit(0));
  succeed(cuInit(0));
  succeed(cuDeviceGetCount(&number));
  assert_int_equal(number, 1);
  succeed(cuDeviceGet(&number, 0));
  assert_int_equal(number, 0);
  check(cuDeviceGet(&number, 1), CUDA_ERROR_INVALID_DEVICE);
  check(cuDeviceGet(&number, -1), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuDeviceGetName(name, sizeof name, 0));
  assert_string_equal(name, engine_machine()->name);
  succeed(cuDeviceGetName(name, 4, 0));
  assert_int_equal(strlen(name), 3);
  check(cuDeviceGetName(name, 4, 1), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, 0));
  assert_int_equal(number, engine_machine()->sm_count);
  check(cuDeviceGetAttribute(&number, 0, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuDeviceTotalMem_v2(&bytes, 0));
  assert_int_equal(bytes, engine_gpu_memory());
  succeed(cuDeviceGetPCIBusId(name, sizeof name, 0));
  number = 7;
  succeed(cuDeviceGetByPCIBusId(&number, name));
  assert_int_equal(number, 0);
  check(cuDeviceGetByPCIBusId(&number, "0000:02:00.0"), CUDA_ERROR_INVALID_DEVICE);
  check(cuDeviceGetByPCIBusId(&number, "card"), CUDA_ERROR_INVALID_VALUE);
}

/* A stream or an event says its context: none need be current. The streams without a handle of their own have none. */
static void without_a_current_context(void **state) {
  (void)state;
  CUcontext before, found;
  CUstream stream;
  CUevent first, last;
  CUdevice device;
  CUdeviceptr memory;
  unsigned long long id;
  float milliseconds;
  int priority;
  succeed(cuCtxGetCurrent(&before));
  succeed(cuStreamCreate(&stream, 1));
  succeed(cuEventCreate(&first, 0));
  succeed(cuEventCreate(&last, 0));
  succeed(cuCtxSetCurrent(NULL));
  succeed(cuStreamGetCtx(stream, &found));
  assert_non_null(found);
  succeed(cuStreamGetDevice(stream, &device));
  assert_int_equal(device, 0);
  succeed(cuStreamGetId(stream, &id));
  succeed(cuStreamGetPriority(stream, &priority));
  succeed(cuEventRecord(first, stream));
  succeed(cuMemAllocAsync(&memory, 4096, stream));
  succeed(cuMemFreeAsync(memory, stream));
  succeed(cuEventRecord(last, stream));
  succeed(cuStreamWaitEvent(stream, last, 0));
  succeed(cuStreamSynchronize(stream));
  succeed(cuStreamQuery(stream));
  succeed(cuEventSynchronize(last));
  succeed(cuEventQuery(last));
  succeed(cuEventElapsedTime(&milliseconds, first, last));
  const CUstream none[] = {NULL, (CUstream)1, (CUstream)2};
  for (int i = 0; i < 3; i++) {
    check(cuStreamSynchronize(none[i]), CUDA_ERROR_INVALID_CONTEXT);
    check(cuEventRecord(last, none[i]), CUDA_ERROR_INVALID_CONTEXT);
    check(cuStreamGetCtx(none[i], &found), CUDA_ERROR_INVALID_CONTEXT);
  }
  check(cuEventCreate(&first, 0), CUDA_ERROR_INVALID_CONTEXT);
  check(cuStreamCreate(&stream, 1), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuEventDestroy_v2(first));
  succeed(cuEventDestroy_v2(last));
  succeed(cuStreamDestroy_v2(stream));
  check(cuStreamSynchronize((CUstream)&device), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuCtxSetCurrent(before));
}

static void test_contexts(void **state) {
  CUcontext other, popped, current;
  CUdevice device;
  CUdeviceptr pointer;
  int active;
  unsigned flags;
  check(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT); /* none is current */
  check(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxGetCurrent(&current));
  assert_null(current);
  check(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
  check(cuCtxCreate_v2(&context, 0, 1), CUDA_ERROR_INVALID_DEVICE);
  check(cuCtxCreate_v2(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuCtxCreate_v2(&context, 0, 0));
  succeed(cuCtxGetCurrent(&current));
  assert_ptr_equal(current, context);
  succeed(cuMemAlloc_v2(&pointer, 4));
  succeed(cuCtxCreate_v4(&other, NULL, 4, 0));
  succeed(cuCtxGetCurrent(&current));
  assert_ptr_equal(current, other);
  succeed(cuCtxPopCurrent_v2(&popped));
  assert_ptr_equal(popped, other);
  succeed(cuCtxGetCurrent(&current));
  assert_ptr_equal(current, context);
  succeed(cuCtxPushCurrent_v2(other));
  succeed(cuCtxDestroy_v2(other)); /* also pops it */
  succeed(cuCtxGetCurrent(&current));
  assert_ptr_equal(current, context);
  check(cuCtxDestroy_v2(other), CUDA_ERROR_INVALID_CONTEXT);
  check(cuCtxPushCurrent_v2(other), CUDA_ERROR_INVALID_CONTEXT);
  check(cuCtxSetCurrent((CUcontext)&device), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuMemFree_v2(pointer)); /* memory is not the context's */
  succeed(cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_false(active);
  check(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuDevicePrimaryCtxRetain(&other, 0));
  succeed(cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_true(active);
  succeed(cuCtxSetCurrent(other));
  succeed(cuCtxSetCurrent(NULL));
  check(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  succeed(cuCtxSetCurrent(context));
  succeed(cuDevicePrimaryCtxRelease_v2(0));
}

/* ---- memory ---- */

static void test_memory(void **state) {
  CUdeviceptr device, managed, wide;
  void *host;
  size_t before, after, total, pitch;
  uint64_t value = 0;
  int type = 0;
  succeed(cuMemGetInfo_v2(&before, &total));
  assert_int_equal(total, engine_gpu_memory());
  check(cuMemAlloc_v2(&device, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAlloc_v2(&device, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  succeed(cuMemAlloc_v2(&device, 1 << 20));
  succeed(cuMemGetInfo_v2(&after, &total));
  assert_true(before - after >= 1 << 20);
  succeed(cuPointerGetAttribute(&type, 2, device + 5));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  succeed(cuPointerGetAttribute(&value, 12, device + 5));
  assert_int_equal(value, 1 << 20);
  succeed(cuPointerGetAttribute(&value, 11, device + 5));
  assert_int_equal(value, device);
  check(cuPointerGetAttribute(&value, 4, device), CUDA_ERROR_INVALID_VALUE); /* no host pointer */
  check(cuPointerGetAttribute(&type, 2, (uintptr_t)&type), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAllocManaged(&managed, 100, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemAllocManaged(&managed, 100, cudaMemAttachGlobal));
  succeed(cuPointerGetAttribute(&type, 8, managed));
  assert_int_equal(type, 1);
  *(int *)(uintptr_t)managed = 5;
  succeed(cuMemHostAlloc(&host, 64, cudaHostAllocMapped));
  succeed(cuPointerGetAttribute(&type, 2, (uintptr_t)host));
  assert_int_equal(type, CU_MEMORYTYPE_HOST);
  int ordinal = 9, kind = 9;
  /* unknown address */
  succeed(cuPointerGetAttributes(2, (int[]){9, 2}, (void *[]){&ordinal, &kind}, (uintptr_t)&type));
  assert_int_equal(ordinal, -2);
  assert_int_equal(kind, 0);
  CUcontext current;
  succeed(cuCtxGetCurrent(&current)); /* what memory is can be asked by a thread without a context */
  succeed(cuCtxSetCurrent(NULL));
  succeed(cuPointerGetAttribute(&type, 2, device));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  succeed(cuPointerGetAttributes(1, (int[]){9}, (void *[]){&ordinal}, device));
  assert_int_equal(ordinal, 0);
  succeed(cuCtxSetCurrent(current));
  check(cuMemFree_v2((uintptr_t)host), CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree_v2(device + 4), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemFreeHost(host));
  succeed(cuMemFree_v2(managed));
  succeed(cuMemFree_v2(device));
  check(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAllocPitch_v2(&wide, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemAllocPitch_v2(&wide, &pitch, 100, 10, 4));
  assert_int_equal(pitch, 512);
  succeed(cuMemFree_v2(wide));
}

/* Sets of more than is written at once, and of so much zero that pages are given back. */
static void test_large_sets(void **state) {
  enum { WORDS = 20000001, BYTES = 4 * WORDS + 4 };
  CUdeviceptr at;
  uint32_t *words = malloc(BYTES);
  succeed(cuMemAlloc_v2(&at, BYTES));
  succeed(cuMemsetD32_v2(at, 0x01020304, WORDS));
  succeed(cuMemcpyDtoH_v2(words, at, BYTES));
  for (uint32_t n = 0; n < WORDS; n++) assert_int_equal(words[n], 0x01020304);
  assert_int_equal(words[WORDS], 0);
  succeed(cuMemsetD32_v2(at + 8, 0, WORDS - 3));
  succeed(cuMemcpyDtoH_v2(words, at, BYTES));
  for (uint32_t n = 0; n < WORDS; n++) assert_int_equal(words[n], n < 2 || n == WORDS - 1 ? 0x01020304 : 0);
  succeed(cuMemFree_v2(at));
  free(words);
}

static void test_copies(void **state) {
  CUdeviceptr a, b;
  unsigned char in[256], out[256];
  for (int i = 0; i < 256; i++) in[i] = (unsigned char)(i * 7 + 1);
  succeed(cuMemAlloc_v2(&a, 256));
  succeed(cuMemAlloc_v2(&b, 256));
  succeed(cuMemcpyHtoD_v2(a, in, 256));
  succeed(cuMemcpyDtoD_v2(b, a, 256));
  succeed(cuMemcpyDtoH_v2(out, b, 256));
  assert_memory_equal(in, out, 256);
  check(cuMemcpyHtoD_v2(a, in, 257), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyHtoD_v2((uintptr_t)out, in, 4), CUDA_ERROR_INVALID_VALUE);
  /* a "host" destination that is device memory: a copy in the device, within its allocation */
  succeed(cuMemcpyDtoH_v2((void *)(uintptr_t)(b + 8), a, 16));
  succeed(cuMemcpyDtoH_v2(out, b, 256));
  assert_memory_equal(out, in, 8);
  assert_memory_equal(out + 8, in, 16);
  assert_memory_equal(out + 24, in + 24, 232);
  check(cuMemcpyDtoH_v2((void *)(uintptr_t)(b + 248), a, 16), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemsetD8_v2(a, 0xab, 256));
  succeed(cuMemsetD32_v2(a + 8, 0x01020304, 2));
  succeed(cuMemsetD2D16_v2(a + 32, 32, 0x1122, 3, 2));
  check(cuMemsetD32_v2(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemcpyDtoH_v2(out, a, 256));
  assert_int_equal(out[7], 0xab);
  assert_memory_equal(out + 8, "\4\3\2\1\4\3\2\1\xab", 9);
  assert_memory_equal(out + 32, "\x22\x11\x22\x11\x22\x11\xab", 7);
  assert_memory_equal(out + 64, "\x22\x11\x22\x11\x22\x11\xab", 7);
  assert_int_equal(out[96], 0xab);
  /* a 4 x 3 window from (2, 1) of 16-byte rows to (1, 0) of 32-byte rows */
  CUDA_MEMCPY2D two = {.srcXInBytes = 2,
                       .srcY = 1,
                       .srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = in,
                       .srcPitch = 16,
                       .dstXInBytes = 1,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = b,
                       .dstPitch = 32,
                       .WidthInBytes = 4,
                       .Height = 3};
  succeed(cuMemcpy2D_v2(&two));
  succeed(cuMemcpyDtoH_v2(out, b, 256));
  for (int row = 0; row < 3; row++) assert_memory_equal(out + row * 32 + 1, in + (row + 1) * 16 + 2, 4);
  assert_int_equal(out[0], in[0]);
  assert_int_equal(out[5], in[5]);
  two.srcPitch = 5; /* less than what a row takes */
  check(cuMemcpy2D_v2(&two), CUDA_ERROR_INVALID_VALUE);
  two.Height = 1; /* of one row it does not matter, unless it says where that is */
  check(cuMemcpy2D_v2(&two), CUDA_ERROR_INVALID_VALUE);
  two.srcY = 0;
  succeed(cuMemcpy2D_v2(&two));
  succeed(cuMemcpyDtoH_v2(out, b, 256));
  assert_memory_equal(out + 1, in + 2, 4);
  two.Height = 3, two.srcY = 1;
  two.srcPitch = 16;
  two.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  check(cuMemcpy2D_v2(&two), CUDA_ERROR_INVALID_HANDLE);
  two.srcMemoryType = 0;
  check(cuMemcpy2D_v2(&two), CUDA_ERROR_INVALID_VALUE);
  two.srcMemoryType = CU_MEMORYTYPE_HOST;
  two.dstY = SIZE_MAX / 4;
  check(cuMemcpy2D_v2(&two), CUDA_ERROR_INVALID_VALUE);
  /* 2 slices of 2 rows of 4 bytes, out of slices of 4 rows of 8 bytes */
  CUDA_MEMCPY3D three = {.srcXInBytes = 1,
                         .srcY = 1,
                         .srcZ = 1,
                         .srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = in,
                         .srcPitch = 8,
                         .srcHeight = 4,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = a,
                         .dstPitch = 4,
                         .dstHeight = 2,
                         .WidthInBytes = 4,
                         .Height = 2,
                         .Depth = 2};
  succeed(cuMemcpy3D_v2(&three));
  succeed(cuMemcpyDtoH_v2(out, a, 16));
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 2; y++) assert_memory_equal(out + (z * 2 + y) * 4, in + (z + 1) * 32 + (y + 1) * 8 + 1, 4);
  succeed(cuMemFree_v2(a));
  succeed(cuMemFree_v2(b));
}

/* ---- streams and events ---- */

static void count_call(CUstream stream, CUresult status, void *data) {
  *(int *)data += status == CUDA_SUCCESS ? 1 : 100;
}

static void test_streams(void **state) {
  CUstream stream;
  CUevent start, stop;
  unsigned flags;
  int calls = 0;
  float milliseconds = -1;
  check(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
  succeed(cuStreamCreate(&stream, cudaStreamNonBlocking));
  succeed(cuStreamGetFlags(stream, &flags));
  assert_int_equal(flags, cudaStreamNonBlocking);
  succeed(cuEventCreate(&start, 0));
  succeed(cuEventCreate(&stop, 0));
  check(cuEventElapsedTime(&milliseconds, start, stop), CUDA_ERROR_INVALID_HANDLE); /* not recorded yet */
  succeed(cuEventRecord(start, stream));
  succeed(cuStreamAddCallback(stream, count_call, &calls, 0));
  succeed(cuEventRecord(stop, stream));
  succeed(cuStreamSynchronize(stream));
  assert_int_equal(calls, 1);
  succeed(cuEventElapsedTime(&milliseconds, start, stop));
  assert_true(milliseconds >= 0);
  succeed(cuEventDestroy_v2(start));
  check(cuEventDestroy_v2(start), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuEventDestroy_v2(stop));
  succeed(cuStreamDestroy_v2(stream));
  check(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  check(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* ---- modules and launches ---- */

/* CuPy writes constants so, as do programs that ask the runtime for a constant's address: by a kernel. */
static void test_constant_by_address(void **state) {
  CUmodule module;
  CUfunction write, read;
  CUdeviceptr cell, out;
  size_t bytes;
  unsigned values[2];
  succeed(cuModuleLoadData(&module, constant_text));
  succeed(cuModuleGetFunction(&write, module, "write"));
  succeed(cuModuleGetFunction(&read, module, "read"));
  succeed(cuModuleGetGlobal_v2(&cell, &bytes, module, "cell"));
  assert_int_equal(bytes, 8);
  succeed(cuMemAlloc_v2(&out, sizeof values));
  void *arguments[] = {&cell, &out};
  succeed(cuLaunchKernel(write, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  succeed(cuLaunchKernel(read, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  succeed(cuMemcpyDtoH_v2(values, out, sizeof values));
  assert_int_equal(values[0], 5);
  assert_int_equal(values[1], 1); /* it is constant memory as before */
  succeed(cuMemFree_v2(out));
  succeed(cuModuleUnload(module));
}

static void test_module(void **state) {
  CUmodule module;
  CUfunction function;
  CUdeviceptr pointer;
  size_t bytes;
  unsigned value = 0;
  succeed(cuModuleLoadData(&module, module_text));
  succeed(cuModuleGetGlobal_v2(&pointer, &bytes, module, "counter"));
  assert_int_equal(bytes, 4);
  succeed(cuMemcpyDtoH_v2(&value, pointer, 4));
  assert_int_equal(value, 40);
  check(cuModuleGetGlobal_v2(&pointer, &bytes, module, "absent"), CUDA_ERROR_NOT_FOUND);
  check(cuModuleGetFunction(&function, module, "absent"), CUDA_ERROR_NOT_FOUND);
  check(cuModuleGetFunction(&function, (CUmodule)&value, "add"), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuModuleGetFunction(&function, module, "add"));
  succeed(cuModuleUnload(module));
  check(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE); /* died with it */
  check(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
  fatbin_item item = {
      .kind = FATBIN_KIND_PTX, .arch = 75, .packing = FATBIN_LZ4, .bytes = module_text, .size = sizeof module_text};
  ff_text image = {0};
  assert_int_equal(fatbin_encode(&item, 1, &image, NULL), FF_OK);
  succeed(cuModuleLoadData(&module, image.chars));
  free(image.chars); /* it was copied */
  succeed(cuModuleGetFunction(&function, module, "add"));
  succeed(cuModuleUnload(module));
}

static void images_that_are_none(void **state) {
  (void)state;
  CUmodule module;
  static const char *const none[] = {"", "garbage", ".target sm_75\n.version 7.5\n", " ;"};
  static const char *const wrong[] = {".version 7.5\ngarbage", "\n // a comment\ngarbage", "/* a comment */ garbage"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    check(cuModuleLoadData(&module, none[i]), CUDA_ERROR_INVALID_IMAGE);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    check(cuModuleLoadData(&module, wrong[i]), CUDA_ERROR_INVALID_PTX);
  static const unsigned broken[8] = {0xba55ed50, 16 << 16 | 1, 16}; /* a fat binary that ends in its first header */
  check(cuModuleLoadData(&module, broken), CUDA_ERROR_INVALID_IMAGE);
}

static void test_jit_log(void **state) {
  CUmodule module;
  char log[256] = "untouched", small[8];
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  check(cuModuleLoadDataEx(&module, HEAD "this is no instruction\n", 2, options, values), CUDA_ERROR_INVALID_PTX);
  assert_true(strlen(log) > 10 && strcmp(log, "untouched") != 0);
  assert_int_equal((size_t)values[1], strlen(log) + 1);
  values[0] = small;
  values[1] = (void *)sizeof small;
  check(cuModuleLoadDataEx(&module, HEAD "this is no instruction\n", 2, options, values), CUDA_ERROR_INVALID_PTX);
  assert_int_equal(strlen(small), 7); /* cut, with its end */
}

static void test_launch(void **state) {
  CUmodule module;
  CUfunction add, bounded;
  CUdeviceptr data;
  unsigned value = 7, out[64], extra_block[3];
  int number, block;
  size_t size = 12;
  succeed(cuModuleLoadData(&module, module_text));
  succeed(cuModuleGetFunction(&add, module, "add"));
  succeed(cuModuleGetFunction(&bounded, module, "bounded"));
  succeed(cuMemAlloc_v2(&data, sizeof out));
  succeed(cuMemsetD32_v2(data, 100, 64));
  succeed(cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&data, &value}, NULL));
  memcpy(extra_block, &data, 8);
  extra_block[2] = 1000;
  succeed(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL,
                         (void *[]){(void *)1, extra_block, (void *)2, &size, NULL}));
  CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
  succeed(cuLaunchKernelEx(&config, add, (void *[]){&data, &value}, NULL));
  succeed(cuCtxSynchronize());
  succeed(cuMemcpyDtoH_v2(out, data, sizeof out));
  for (int i = 0; i < 64; i++) assert_int_equal(out[i], i == 0 ? 1114 : i < 32 ? 1107 : 107);
  check(cuLaunchKernel(add, 0, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&data, &value}, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, NULL, (void *[]){&data, &value}, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&data, &value}, (void *[]){NULL}),
        CUDA_ERROR_INVALID_VALUE);
  check(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
  cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension, .val.clusterDim = {2, 1, 1}};
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cuLaunchKernelEx(&config, add, (void *[]){&data, &value}, NULL), 912); /* CUDA_ERROR_INVALID_CLUSTER_SIZE */
  succeed(cuFuncGetAttribute(&number, 0, bounded));
  assert_int_equal(number, 64);
  check(cuFuncGetAttribute(&number, 99, bounded), CUDA_ERROR_INVALID_VALUE);
  int major, minor;
  succeed(cuDeviceGetAttribute(&major, 75, 0));
  succeed(cuDeviceGetAttribute(&minor, 76, 0));
  succeed(cuFuncGetAttribute(&number, 6, bounded));
  assert_int_equal(number, major * 10 + minor); /* CU_FUNC_ATTRIBUTE_BINARY_VERSION: compiled for the device */
  for (int shape = 11; shape <= 13; shape++) {  /* a cluster's width, height and depth: this device has none */
    check(cuFuncSetAttribute(bounded, shape, 2), CUDA_ERROR_NOT_SUPPORTED);
    succeed(cuFuncSetAttribute(bounded, shape, 1));
    succeed(cuFuncGetAttribute(&number, shape, bounded));
    assert_int_equal(number, 1);
    check(cuFuncSetAttribute(bounded, shape, -1), CUDA_ERROR_INVALID_VALUE);
  }
  succeed(cuFuncSetAttribute(bounded, 14, 1)); /* clusters that are not portable are allowed */
  check(cuFuncSetAttribute(bounded, 99, 1), CUDA_ERROR_INVALID_VALUE);
  succeed(cuOccupancyMaxPotentialBlockSize(&number, &block, bounded, NULL, 0, 0));
  assert_int_equal(block, 64);
  assert_true(number >= (int)engine_machine()->sm_count);
  succeed(cuMemFree_v2(data));
  succeed(cuModuleUnload(module));
}

static void test_link(void **state) {
  CUlinkState link;
  CUmodule module;
  CUfunction function;
  CUdeviceptr data;
  void *cubin;
  size_t size;
  unsigned out = 0;
  char log[512] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  succeed(cuLinkCreate_v2(0, NULL, NULL, &link));
  check(cuLinkComplete(link, &cubin, &size), CUDA_ERROR_INVALID_VALUE);              /* nothing was added */
  check(cuLinkComplete((CUlinkState)log, &cubin, &size), CUDA_ERROR_INVALID_HANDLE); /* it never was one */
  check(cuLinkDestroy((CUlinkState)log), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuLinkAddData_v2(link, 1, (void *)caller_text, sizeof caller_text, "caller", 0, NULL, NULL));
  succeed(cuLinkAddData_v2(link, 1, (void *)callee_text, sizeof callee_text, NULL, 0, NULL, NULL));
  check(cuLinkAddData_v2(link, 0, (void *)"\177ELF", 4, "cubin", 0, NULL, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
  succeed(cuLinkComplete(link, &cubin, &size));
  assert_true(size > sizeof caller_text + sizeof callee_text);
  char *kept = malloc(size); /* a program may keep it, and spoil it */
  for (size_t cut = 0; cut < 200; cut++) {
    memcpy(kept, cubin, size);
    kept[16 + cut] ^= 0x40;
    CUmodule spoiled;
    if (cuModuleLoadData(&spoiled, kept) == CUDA_SUCCESS) succeed(cuModuleUnload(spoiled));
  }
  memcpy(kept, cubin, size);
  kept[24] = 0; /* no parts */
  check(cuModuleLoadData(&module, kept), CUDA_ERROR_INVALID_IMAGE);
  free(kept);
  succeed(cuModuleLoadData(&module, cubin));
  succeed(cuLinkDestroy(link));
  check(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE); /* it is one no longer */
  succeed(cuModuleGetFunction(&function, module, "linked"));
  succeed(cuMemAlloc_v2(&data, 4));
  succeed(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&data}, NULL));
  succeed(cuMemcpyDtoH_v2(&out, data, 4));
  assert_int_equal(out, 42);
  succeed(cuMemFree_v2(data));
  succeed(cuModuleUnload(module));
  succeed(cuLinkCreate_v2(2, options, values, &link));
  succeed(cuLinkAddData_v2(link, 1, (void *)caller_text, sizeof caller_text, "caller", 0, NULL, NULL));
  succeed(cuLinkAddData_v2(link, 1, (void *)module_text, sizeof module_text, "other", 0, NULL, NULL));
  assert_int_not_equal(cuLinkComplete(link, &cubin, &size), CUDA_SUCCESS);
  assert_non_null(strstr(log, "twice")); /* the name that is missing */
  succeed(cuLinkDestroy(link));
}

static void test_entry_points(void **state) {
  void *address;
  int status;
  succeed(cuGetProcAddress_v2("cuMemAlloc", &address, 12000, 0, &status));
  assert_ptr_equal(address, (void *)cuMemAlloc_v2);
  assert_int_equal(status, 0);
  succeed(cuGetProcAddress_v2("cuCtxCreate", &address, 11030, 0, &status));
  assert_ptr_equal(address, (void *)cuCtxCreate_v2);
  succeed(cuGetProcAddress_v2("cuCtxCreate", &address, 13000, 0, &status));
  assert_ptr_equal(address, (void *)cuCtxCreate_v4);
  succeed(cuGetProcAddress_v2("cuEventElapsedTime", &address, 2000, 0, &status));
  assert_ptr_equal(address, (void *)cuEventElapsedTime);
  void *own;
  succeed(cuGetProcAddress_v2("cuLaunchKernel", &address, 13000, 1, &status));
  succeed(cuGetProcAddress_v2("cuLaunchKernel", &own, 13000, 2, &status));
  assert_ptr_equal(address, (void *)cuLaunchKernel);
  assert_ptr_not_equal(address, own);
  succeed(cuGetProcAddress_v2("cuInit", &address, 13000, 2, &status)); /* has no form of its own */
  assert_ptr_equal(address, (void *)cuInit);
  succeed(cuGetProcAddress_v2("cuNothing", &address, 13000, 0, &status));
  assert_null(address);
  assert_int_equal(status, 1);
  succeed(cuGetProcAddress_v2("cuLaunchKernelEx", &address, 11000, 0, &status));
  assert_null(address);
  assert_int_equal(status, 2);
  check(cuGetProcAddress("cuNothing", &address, 13000, 0), CUDA_ERROR_NOT_FOUND);
  check(cuGetProcAddress_v2("cuInit", &address, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  check(cuGetProcAddress_v2("cuInit", &address, 13000, 3, &status), CUDA_ERROR_INVALID_VALUE);
  check(cuGetProcAddress_v2(NULL, &address, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

/* A kernel's fault stays until the context is destroyed; a new one works again. The last test: it resets the device. */
static void test_fault(void **state) {
  CUmodule module;
  CUfunction poke;
  CUdeviceptr data, nowhere = 64;
  succeed(cuModuleLoadData(&module, module_text));
  succeed(cuModuleGetFunction(&poke, module, "poke"));
  succeed(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&nowhere}, NULL));
  check(cuCtxSynchronize(), cudaErrorIllegalAddress);
  check(cuMemAlloc_v2(&data, 4), cudaErrorIllegalAddress);
  cuCtxDestroy_v2(context);
  succeed(cuCtxCreate_v2(&context, 0, 0));
  succeed(cuMemAlloc_v2(&data, 4));
  succeed(cuCtxSynchronize());
  succeed(cuCtxDestroy_v2(context));
}

int main(void) {
  setenv("FARFAULT_MACHINE", "v100", 0);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_not_initialised),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_contexts),
      cmocka_unit_test(without_a_current_context),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_large_sets),
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_module),
      cmocka_unit_test(images_that_are_none),
      cmocka_unit_test(test_jit_log),
      cmocka_unit_test(test_constant_by_address),
      cmocka_unit_test(test_launch),
      cmocka_unit_test(test_link),
      cmocka_unit_test(test_entry_points),
      cmocka_unit_test(test_fault),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
