/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management through the driver API: documented errors, aliases, contents that stay, what kernels,
 * copies and sets may reach, faults that name what was hit, GPU memory that is used up, and random operations against a
 * model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "farfault/virtual.h"

typedef struct properties {
  int type, handle_types;
  CUmemLocation location;
  void *security;
  unsigned char flags[8];
} properties;
typedef struct access_to {
  CUmemLocation location;
  int flags;
} access_to;

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext),
    cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t),
    cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long),
    cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(unsigned long long *, size_t, const properties *, unsigned long long),
    cuMemRelease(unsigned long long);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long), cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const access_to *, size_t),
    cuMemGetAccess(unsigned long long *, const CUmemLocation *, CUdeviceptr);
CUresult cuMemGetAllocationGranularity(size_t *, const properties *, int);
CUresult cuMemGetAllocationPropertiesFromHandle(properties *, unsigned long long),
    cuMemRetainAllocationHandle(unsigned long long *, void *);

#define MIB (UINT64_C(1) << 20)
#define PIECE (2 * MIB)
#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)

static const CUmemLocation device = {cudaMemLocationTypeDevice, 0};
static const properties pinned = {.type = 1, .location = {cudaMemLocationTypeDevice, 0}};

static const char module_text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [value];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.s32 %r2, %r3, %r4, %r2;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, %r1;\nst.global.u32 [%rd3], %r5;\nret;\n}\n"
    ".visible .entry peek(.param .u64 at)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [at];\nld.global.u32 %r1, [%rd1];\nret;\n}\n"
    ".visible .entry poke(.param .u64 at)\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [at];\nmov.u32 %r1, 5;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";

static CUfunction function(const char *name) {
  CUmodule module;
  CUfunction found;
  succeed(cuModuleLoadData(&module, module_text));
  succeed(cuModuleGetFunction(&found, module, name));
  return found;
}

static void make_current(void) {
  CUcontext context;
  succeed(cuInit(0));
  succeed(cuDevicePrimaryCtxRetain(&context, 0));
  succeed(cuCtxSetCurrent(context));
}

static size_t available(void) {
  size_t free_bytes, total;
  succeed(cuMemGetInfo_v2(&free_bytes, &total));
  return free_bytes;
}

static CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr address = 0;
  succeed(cuMemAddressReserve(&address, bytes, 0, 0, 0));
  assert_true(address && address % PIECE == 0);
  return address;
}

static unsigned long long create(size_t bytes) {
  unsigned long long handle = 0;
  succeed(cuMemCreate(&handle, bytes, &pinned, 0));
  return handle;
}

static CUresult give_access(CUdeviceptr address, size_t bytes, int flags) {
  return cuMemSetAccess(address, bytes, &(access_to){device, flags}, 1);
}

static void map(CUdeviceptr address, size_t bytes, unsigned long long handle) {
  succeed(cuMemMap(address, bytes, 0, handle, 0));
  succeed(give_access(address, bytes, 3));
}

static uint32_t word_at(CUdeviceptr address) {
  uint32_t word = 0xdeadbeef;
  succeed(cuMemcpyDtoH_v2(&word, address, sizeof word));
  return word;
}

/* ---- what must be refused ---- */

static void test_layout(void **state) {
  int supported = 0;
  assert_int_equal(sizeof(properties), 32);
  assert_int_equal(sizeof(access_to), 12);
  succeed(cuDeviceGetAttribute(&supported, 102, 0));
  assert_int_equal(supported, 1);
}

static void test_granularity(void **state) {
  size_t bytes = 0;
  for (int option = 0; option < 2; option++) {
    succeed(cuMemGetAllocationGranularity(&bytes, &pinned, option));
    assert_int_equal(bytes, PIECE);
  }
  properties wrong = pinned;
  invalid(cuMemGetAllocationGranularity(&bytes, &pinned, 2));
  invalid(cuMemGetAllocationGranularity(NULL, &pinned, 0));
  invalid(cuMemGetAllocationGranularity(&bytes, NULL, 0));
  wrong.location.id = 1;
  succeed(cuMemGetAllocationGranularity(&bytes, &wrong, 0)); /* cuMemCreate is it that refuses */
}

static void test_reservation_errors(void **state) {
  CUdeviceptr address, other;
  invalid(cuMemAddressReserve(NULL, PIECE, 0, 0, 0));
  check(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  check(cuMemAddressReserve(&address, PIECE + 1, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  check(cuMemAddressReserve(&address, PIECE, 3, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  invalid(cuMemAddressReserve(&address, PIECE, 0, 1, 0));
  invalid(cuMemAddressReserve(&address, PIECE, 0, 0, 1));
  check(cuMemAddressReserve(&address, UINT64_C(1) << 50, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  succeed(cuMemAddressReserve(&address, 4 * PIECE, 64 * MIB, 0, 0));
  assert_int_equal(address % (64 * MIB), 0);
  invalid(cuMemAddressFree(address, PIECE));
  invalid(cuMemAddressFree(address + PIECE, 3 * PIECE));
  invalid(cuMemFree_v2(address));
  invalid(cuMemcpyHtoD_v2(address, "abcd", 4));
  succeed(cuMemAddressReserve(&other, 4 * PIECE, 0, address, 0)); /* a hint only */
  assert_int_not_equal(other, address);
  succeed(cuMemAddressFree(other, 4 * PIECE));
  succeed(cuMemAddressFree(address, 4 * PIECE));
  invalid(cuMemAddressFree(address, 4 * PIECE));
  succeed(cuMemAddressReserve(&other, 4 * PIECE, 0, address, 0)); /* and followed where it can be */
  assert_int_equal(other, address);
  succeed(cuMemAddressFree(address, 4 * PIECE));
}

static void test_memory_errors(void **state) {
  unsigned long long handle = 0, other;
  properties wrong = pinned, read_back;
  invalid(cuMemCreate(NULL, PIECE, &pinned, 0));
  invalid(cuMemCreate(&handle, 0, &pinned, 0));
  invalid(cuMemCreate(&handle, MIB, &pinned, 0));
  invalid(cuMemCreate(&handle, PIECE + 4096, &pinned, 0));
  invalid(cuMemCreate(&handle, PIECE, &pinned, 1));
  invalid(cuMemCreate(&handle, PIECE, NULL, 0));
  wrong.type = 2;
  invalid(cuMemCreate(&handle, PIECE, &wrong, 0));
  wrong = pinned;
  wrong.location.type = 0;
  invalid(cuMemCreate(&handle, PIECE, &wrong, 0));
  wrong.location.type = cudaMemLocationTypeHostNuma;
  size_t granularity; /* NCCL asks for this first, and takes an error of it for "there is such memory" */
  succeed(cuMemGetAllocationGranularity(&granularity, &wrong, 0));
  check(cuMemCreate(&handle, PIECE, &wrong, 0), CUDA_ERROR_NOT_SUPPORTED);
  wrong = pinned;
  wrong.location.id = 7;
  check(cuMemCreate(&handle, PIECE, &wrong, 0), CUDA_ERROR_INVALID_DEVICE);
  wrong = pinned;
  wrong.handle_types = 8; /* fabric handles */
  check(cuMemCreate(&handle, PIECE, &wrong, 0), CUDA_ERROR_NOT_SUPPORTED);
  handle = create(PIECE);
  succeed(cuMemGetAllocationPropertiesFromHandle(&read_back, handle));
  assert_memory_equal(&read_back, &pinned, sizeof pinned);
  invalid(cuMemGetAllocationPropertiesFromHandle(NULL, handle));
  succeed(cuMemRelease(handle));
  invalid(cuMemRelease(handle));
  invalid(cuMemGetAllocationPropertiesFromHandle(&read_back, handle));
  other = create(PIECE); /* in the same place, but not the same */
  assert_int_not_equal(other, handle);
  invalid(cuMemRelease(handle));
  invalid(cuMemRelease(0));
  invalid(cuMemRelease(UINT64_MAX));
  succeed(cuMemRelease(other));
}

static void test_mapping_errors(void **state) {
  CUdeviceptr at = reserve(8 * PIECE), plain;
  unsigned long long a = create(2 * PIECE), b = create(PIECE), stale = create(PIECE), flags;
  succeed(cuMemRelease(stale));
  succeed(cuMemAlloc_v2(&plain, PIECE));
  invalid(cuMemMap(at + 4096, PIECE, 0, a, 0));
  invalid(cuMemMap(at, PIECE + 4096, 0, a, 0));
  invalid(cuMemMap(at, 0, 0, a, 0));
  invalid(cuMemMap(at, PIECE, PIECE, a, 0)); /* so far the offset must be zero */
  invalid(cuMemMap(at, PIECE, 0, a, 1));
  invalid(cuMemMap(at, 4 * PIECE, 0, a, 0)); /* more than there is */
  invalid(cuMemMap(at, PIECE, 0, stale, 0));
  invalid(cuMemMap(at, PIECE, 0, 12345, 0));
  invalid(cuMemMap(at + 7 * PIECE, 2 * PIECE, 0, a, 0)); /* over the end */
  invalid(cuMemMap(at - PIECE, 2 * PIECE, 0, a, 0));
  invalid(cuMemMap(plain, PIECE, 0, b, 0));
  succeed(cuMemMap(at + PIECE, 2 * PIECE, 0, a, 0));
  invalid(cuMemMap(at, 2 * PIECE, 0, a, 0)); /* over a mapping */
  invalid(cuMemMap(at + 2 * PIECE, PIECE, 0, b, 0));
  invalid(cuMemUnmap(at + PIECE, PIECE)); /* a part */
  invalid(cuMemUnmap(at + 2 * PIECE, PIECE));
  invalid(cuMemUnmap(at, 3 * PIECE));
  invalid(cuMemUnmap(at + PIECE, 3 * PIECE));
  invalid(cuMemUnmap(at + PIECE, 0));
  invalid(cuMemAddressFree(at, 8 * PIECE)); /* something is mapped */
  invalid(give_access(at, PIECE, 3));
  invalid(give_access(at + PIECE, PIECE, 3));
  invalid(give_access(at + PIECE, 2 * PIECE, 2));
  invalid(cuMemSetAccess(at + PIECE, 2 * PIECE, NULL, 1));
  invalid(cuMemGetAccess(&flags, &device, at));
  invalid(cuMemMap(UINT64_MAX - PIECE + 1, PIECE, 0, b, 0));
  invalid(cuMemUnmap(UINT64_MAX - PIECE + 1, 2 * PIECE));
  succeed(cuMemMap(at + 3 * PIECE, PIECE, 0, b, 0));
  succeed(cuMemUnmap(at + PIECE, 3 * PIECE)); /* two whole ones at once */
  succeed(cuMemAddressFree(at, 8 * PIECE));
  invalid(cuMemMap(at, PIECE, 0, b, 0));
  succeed(cuMemRelease(a));
  succeed(cuMemRelease(b));
  succeed(cuMemFree_v2(plain));
}

static void test_access(void **state) {
  CUdeviceptr at = reserve(2 * PIECE);
  unsigned long long a = create(PIECE), flags = 9;
  char bytes[4] = "abc";
  succeed(cuMemMap(at, PIECE, 0, a, 0));
  succeed(cuMemGetAccess(&flags, &device, at));
  assert_int_equal(flags, 0);
  invalid(cuMemcpyHtoD_v2(at, bytes, 4));
  invalid(cuMemcpyDtoH_v2(bytes, at, 4));
  invalid(cuMemsetD8_v2(at, 1, 4));
  succeed(give_access(at, PIECE, 1));
  succeed(cuMemGetAccess(&flags, &device, at + 100));
  assert_int_equal(flags, 1);
  succeed(cuMemcpyDtoH_v2(bytes, at, 4));
  assert_memory_equal(bytes, "\0\0\0\0", 4);
  invalid(cuMemcpyHtoD_v2(at, bytes, 4));
  invalid(cuMemsetD8_v2(at, 1, 4));
  succeed(give_access(at, PIECE, 3));
  succeed(cuMemsetD8_v2(at, 1, 4));
  succeed(give_access(at, PIECE, 0));
  invalid(cuMemcpyDtoH_v2(bytes, at, 4));
  succeed(cuMemUnmap(at, PIECE));
  invalid(cuMemcpyDtoH_v2(bytes, at, 4));
  map(at, PIECE, a);
  assert_int_equal(word_at(at), 0x01010101);
  succeed(cuMemUnmap(at, PIECE));
  succeed(cuMemRelease(a));
  succeed(cuMemAddressFree(at, 2 * PIECE));
}

/* ---- contents ---- */

static void test_contents(void **state) {
  CUdeviceptr at = reserve(4 * PIECE), other = reserve(4 * PIECE);
  unsigned long long a = create(2 * PIECE), b = create(PIECE);
  map(at, 2 * PIECE, a);
  map(at + 2 * PIECE, PIECE, b);
  assert_int_equal(word_at(at + 2 * PIECE - 4), 0);
  enum { COUNT = 4096 };
  static uint32_t words[COUNT], back[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) words[i] = i * 2654435761u;
  CUdeviceptr middle = at + 2 * PIECE - 8192; /* half in a, half in b */
  succeed(cuMemcpyHtoD_v2(middle, words, sizeof words));
  invalid(cuMemcpyHtoD_v2(at + 3 * PIECE - 8192, words, sizeof words)); /* over the last mapping's end */
  map(other + PIECE, 2 * PIECE, a);                                     /* an alias */
  assert_int_equal(word_at(other + 3 * PIECE - 4), words[2047]);
  succeed(cuMemsetD8_v2(other + 3 * PIECE - 4, 7, 4));
  assert_int_equal(word_at(at + 2 * PIECE - 4), 0x07070707);
  succeed(cuMemUnmap(at, 2 * PIECE)); /* the alias keeps it */
  succeed(cuMemUnmap(at + 2 * PIECE, PIECE));
  succeed(cuMemUnmap(other + PIECE, 2 * PIECE));
  map(other, PIECE, b);
  map(other + PIECE, 2 * PIECE, a);
  succeed(cuMemcpyDtoH_v2(back, other, sizeof words / 2));
  assert_memory_equal(back, words + COUNT / 2, sizeof words / 2);
  succeed(cuMemcpyDtoH_v2(back, other + 3 * PIECE - 8192, 8192));
  assert_memory_equal(back, words, 8188);
  succeed(cuMemcpyDtoD_v2(other, other + 3 * PIECE - 8192, 8192));
  assert_int_equal(word_at(other + 4), words[1]);
  succeed(cuMemUnmap(other, 3 * PIECE));
  succeed(cuMemRelease(a));
  succeed(cuMemRelease(b));
  a = create(2 * PIECE); /* what others wrote is not in new memory */
  map(at, 2 * PIECE, a);
  for (uint64_t i = 0; i < 2 * PIECE; i += PIECE / 8) assert_int_equal(word_at(at + i), 0);
  assert_int_equal(word_at(at + 2 * PIECE - 4), 0);
  succeed(cuMemUnmap(at, 2 * PIECE));
  succeed(cuMemRelease(a));
  succeed(cuMemAddressFree(at, 4 * PIECE));
  succeed(cuMemAddressFree(other, 4 * PIECE));
}

static void test_questions(void **state) {
  CUdeviceptr at = reserve(4 * PIECE), base;
  unsigned long long a = create(PIECE), again, value = 0;
  size_t bytes;
  int number = 9;
  map(at + PIECE, PIECE, a);
  succeed(cuMemGetAddressRange_v2(&base, &bytes, at + PIECE + 5));
  assert_int_equal(base, at + PIECE);
  assert_int_equal(bytes, PIECE);
  check(cuMemGetAddressRange_v2(&base, &bytes, at), CUDA_ERROR_NOT_FOUND);
  succeed(cuPointerGetAttribute(&number, 13, at + PIECE)); /* MAPPED */
  assert_int_equal(number, 1);
  succeed(cuPointerGetAttribute(&number, 13, at));
  assert_int_equal(number, 0);
  succeed(cuPointerGetAttribute(&value, 11, at)); /* RANGE_START_ADDR */
  assert_int_equal(value, at);
  succeed(cuPointerGetAttribute(&value, 12, at + PIECE));
  assert_int_equal(value, PIECE);
  succeed(cuPointerGetAttribute(&number, 2, at + PIECE)); /* MEMORY_TYPE */
  assert_int_equal(number, CU_MEMORYTYPE_DEVICE);
  invalid(cuPointerGetAttribute(&number, 2, at));
  succeed(cuPointerGetAttribute(&number, 16, at + PIECE)); /* ACCESS_FLAGS */
  assert_int_equal(number, 3);
  invalid(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
  succeed(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + PIECE + 77)));
  assert_int_equal(again, a);
  succeed(cuMemRelease(a));
  succeed(cuMemRelease(a));
  invalid(cuMemRelease(a));
  succeed(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + PIECE))); /* mapped, so it is there still */
  assert_int_equal(again, a);
  succeed(cuMemUnmap(at + PIECE, PIECE));
  map(at, PIECE, again);
  succeed(cuMemRelease(again));
  succeed(cuMemUnmap(at, PIECE));
  invalid(cuMemMap(at, PIECE, 0, again, 0));
  succeed(cuMemAddressFree(at, 4 * PIECE));
}

static void test_room(void **state) {
  CUdeviceptr at = reserve(64 * PIECE), plain;
  size_t before = available();
  unsigned long long a = create(4 * PIECE), all, more;
  assert_int_equal(available(), before - 4 * PIECE);
  map(at, 4 * PIECE, a);
  map(at + 8 * PIECE, 4 * PIECE, a); /* once more takes nothing */
  assert_int_equal(available(), before - 4 * PIECE);
  succeed(cuMemRelease(a));
  assert_int_equal(available(), before - 4 * PIECE);
  succeed(cuMemUnmap(at, 4 * PIECE));
  assert_int_equal(available(), before - 4 * PIECE);
  succeed(cuMemUnmap(at + 8 * PIECE, 4 * PIECE));
  assert_int_equal(available(), before);
  all = create(before / PIECE * PIECE);
  check(cuMemCreate(&more, PIECE, &pinned, 0), CUDA_ERROR_OUT_OF_MEMORY);
  check(cuMemAlloc_v2(&plain, PIECE), CUDA_ERROR_OUT_OF_MEMORY);
  succeed(cuMemRelease(all));
  succeed(cuMemAlloc_v2(&plain, before / PIECE * PIECE));
  check(cuMemCreate(&more, PIECE, &pinned, 0), CUDA_ERROR_OUT_OF_MEMORY);
  succeed(cuMemFree_v2(plain));
  assert_int_equal(available(), before);
  succeed(cuMemAddressFree(at, 64 * PIECE));
}

/* 100,000 times, without anything that grows: the process's own memory stays as it is. */
static uint64_t resident_pages(void) {
  unsigned long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
  fclose(file);
  return resident;
}

static void test_many(void **state) {
  CUdeviceptr at = reserve(16 * PIECE);
  unsigned long long a = create(PIECE);
  uint64_t before = 0;
  for (int i = 0; i < 100000; i++) {
    CUdeviceptr place = at + (CUdeviceptr)(i * 7 % 16) * PIECE;
    if (i == 1000) before = resident_pages();
    succeed(cuMemMap(place, PIECE, 0, a, 0));
    succeed(cuMemUnmap(place, PIECE));
  }
  assert_true(resident_pages() < before + 256);
  succeed(cuMemRelease(a));
  succeed(cuMemAddressFree(at, 16 * PIECE));
}

/* ---- kernels ---- */

static void test_kernel(void **state) {
  CUdeviceptr at = reserve(4 * PIECE), start = at + 2 * PIECE - 4 * 300; /* unaligned to warps, across two mappings */
  unsigned long long a = create(2 * PIECE), b = create(PIECE);
  CUfunction add = function("add");
  map(at, 2 * PIECE, a);
  map(at + 2 * PIECE, PIECE, b);
  uint32_t value = 3, words[640];
  for (int i = 0; i < 2; i++)
    succeed(cuLaunchKernel(add, 5, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&start, &value}, NULL));
  succeed(cuMemcpyDtoH_v2(words, start, sizeof words));
  for (int i = 0; i < 640; i++) assert_int_equal(words[i], 6);
  /* the same kernel, the memory elsewhere: what it remembers must not be used */
  succeed(cuMemUnmap(at + 2 * PIECE, PIECE));
  succeed(cuMemUnmap(at, 2 * PIECE));
  map(at, PIECE, b);
  map(at + PIECE, 2 * PIECE, a);
  start = at + 3 * PIECE - 4 * 300;
  succeed(cuLaunchKernel(add, 2, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&start, &value}, NULL));
  succeed(cuMemcpyDtoH_v2(words, start, 300 * 4));
  for (int i = 0; i < 300; i++) assert_int_equal(words[i], i < 256 ? 9 : 6);
  assert_int_equal(word_at(at), 6);
  assert_string_equal(farfaultFault(), "");
  succeed(cuMemUnmap(at, 3 * PIECE));
  succeed(cuMemRelease(a));
  succeed(cuMemRelease(b));
  succeed(cuMemAddressFree(at, 4 * PIECE));
}

/* Runs the kernel at an address, expects a fault that says `text`, and starts anew. */
static void expect_fault(const char *kernel, CUdeviceptr address, const char *text) {
  CUfunction run = function(kernel);
  succeed(cuLaunchKernel(run, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&address}, NULL));
  check(cuCtxSynchronize(), 700);
  check(cuMemUnmap(address, PIECE), 700);
  assert_non_null(strstr(farfaultFault(), "illegal global"));
  if (!strstr(farfaultFault(), text)) fail_msg("not \"%s\" in: %s", text, farfaultFault());
  assert_non_null(strstr(farfaultFault(), "in kernel "));
  assert_non_null(strstr(farfaultFault(), "cuMemAddressReserve #"));
  succeed(cuDevicePrimaryCtxReset_v2(0));
  assert_string_equal(farfaultFault(), "");
  make_current();
}

static void test_faults(void **state) {
  for (int i = 0; i < 6; i++) {
    CUdeviceptr at = reserve(4 * PIECE);
    unsigned long long a = create(PIECE);
    succeed(cuMemMap(at + PIECE, PIECE, 0, a, 0));
    if (i == 0) expect_fault("peek", at + 16, "it is 16 bytes into cuMemAddressReserve #");
    if (i == 1) expect_fault("poke", at + 2 * PIECE, ": reserved but not mapped");
    if (i == 2) expect_fault("peek", at + PIECE + 8, ": mapped without access");
    succeed(i < 3 ? CUDA_SUCCESS : give_access(at + PIECE, PIECE, 1));
    if (i == 3) expect_fault("poke", at + PIECE, ": mapped for reading only");
    if (i == 4)
      expect_fault("peek", at + 4 * PIECE, "bytes behind the end of the nearest allocation, cuMemAddressReserve #");
    if (i < 5) { /* the reset took everything */
      invalid(cuMemRelease(a));
      invalid(cuMemAddressFree(at, 4 * PIECE));
      continue;
    }
    succeed(cuMemUnmap(at + PIECE, PIECE));
    expect_fault("peek", at + PIECE, ": reserved but not mapped");
  }
}

/* ---- random operations against a model ---- */

enum { PIECES = 24, MEMORIES = 6, STEPS = 6000 };

typedef struct model {
  /* first word of each piece */
  struct {
    unsigned long long handle;
    uint32_t pieces, references, mappings;
    uint32_t words[4];
  } memory[MEMORIES];
  int mapped[PIECES], piece[PIECES]; /* which memory, and which piece of it; -1: none */
  int access[PIECES];
} model;

static uint32_t below(uint32_t *seed, uint32_t limit) {
  *seed = *seed * 1664525 + 1013904223;
  return (uint32_t)((uint64_t)(*seed >> 8) * limit >> 24);
}

static bool starts(const model *m, uint32_t p) { return p < PIECES && m->mapped[p] >= 0 && m->piece[p] == 0; }

/* Do [from, from + count) hold whole mappings and nothing else? */
static bool whole(const model *m, uint32_t from, uint32_t count) {
  if (!count || from + count > PIECES || !starts(m, from)) return false;
  for (uint32_t p = from; p < from + count; p++)
    if (m->mapped[p] < 0) return false;
  return from + count == PIECES || m->mapped[from + count] < 0 || m->piece[from + count] == 0;
}

static void model_map(model *m, CUdeviceptr base, uint32_t *seed) {
  uint32_t i = below(seed, MEMORIES), at = below(seed, PIECES), count = 1 + below(seed, 4);
  bool fits = m->memory[i].references && count <= m->memory[i].pieces && at + count <= PIECES;
  for (uint32_t p = at; p < at + count && p < PIECES; p++) fits = fits && m->mapped[p] < 0;
  check(cuMemMap(base + at * PIECE, count * PIECE, 0, m->memory[i].handle, 0),
        fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  for (uint32_t p = 0; fits && p < count; p++) {
    m->mapped[at + p] = (int)i;
    m->piece[at + p] = (int)p;
    m->access[at + p] = 0;
  }
  m->memory[i].mappings += fits;
}

static void model_unmap(model *m, CUdeviceptr base, uint32_t *seed) {
  uint32_t at = below(seed, PIECES), count = 1 + below(seed, 5);
  bool good = whole(m, at, count);
  check(cuMemUnmap(base + at * PIECE, count * PIECE), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  for (uint32_t p = at; good && p < at + count; p++) {
    if (m->piece[p] == 0) m->memory[m->mapped[p]].mappings--;
    m->mapped[p] = -1;
  }
}

static void model_access(model *m, CUdeviceptr base, uint32_t *seed) {
  static const int flags[3] = {0, 1, 3};
  uint32_t at = below(seed, PIECES), count = 1 + below(seed, 5), choice = below(seed, 3);
  bool good = whole(m, at, count);
  check(give_access(base + at * PIECE, count * PIECE, flags[choice]), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  for (uint32_t p = at; good && p < at + count; p++) m->access[p] = flags[choice];
}

static void model_memory(model *m, uint32_t *seed) {
  uint32_t i = below(seed, MEMORIES);
  if (m->memory[i].references) {
    succeed(cuMemRelease(m->memory[i].handle));
    m->memory[i].references = 0;
  } else {
    invalid(cuMemRelease(m->memory[i].handle));
    if (m->memory[i].mappings) return;
    m->memory[i].pieces = 1 + below(seed, 4);
    m->memory[i].handle = create(m->memory[i].pieces * PIECE);
    m->memory[i].references = 1;
    memset(m->memory[i].words, 0, sizeof m->memory[i].words);
  }
}

static void model_use(model *m, CUdeviceptr base, uint32_t *seed) {
  uint32_t at = below(seed, PIECES), word = below(seed, 1u << 24);
  bool mapped = m->mapped[at] >= 0, may_read = mapped && m->access[at] & 1, may_write = mapped && m->access[at] == 3;
  check(cuMemcpyHtoD_v2(base + at * PIECE, &word, 4), may_write ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  if (may_write) m->memory[m->mapped[at]].words[m->piece[at]] = word;
  if (may_read) assert_int_equal(word_at(base + at * PIECE), m->memory[m->mapped[at]].words[m->piece[at]]);
  else invalid(cuMemcpyDtoH_v2(&word, base + at * PIECE, 4));
}

static void test_model(void **state) {
  static model m;
  uint32_t seed = 12345;
  CUdeviceptr base = reserve(PIECES * PIECE);
  size_t before = available();
  for (int p = 0; p < PIECES; p++) m.mapped[p] = -1;
  for (int step = 0; step < STEPS; step++) {
    switch (below(&seed, 6)) {
    case 0: model_memory(&m, &seed); break;
    case 1:
    case 2: model_map(&m, base, &seed); break;
    case 3: model_unmap(&m, base, &seed); break;
    case 4: model_access(&m, base, &seed); break;
    default: model_use(&m, base, &seed);
    }
    size_t used = 0;
    for (int i = 0; i < MEMORIES; i++)
      used += m.memory[i].references || m.memory[i].mappings ? m.memory[i].pieces * PIECE : 0;
    if (step % 16 == 0) assert_int_equal(available(), before - used);
  }
  succeed(cuDevicePrimaryCtxReset_v2(0));
  make_current();
  assert_int_equal(available(), before);
}

int main(void) {
  setenv("FARFAULT_MACHINE", "gtx1080ti", 1);
  make_current();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_granularity),
      cmocka_unit_test(test_reservation_errors),
      cmocka_unit_test(test_memory_errors),
      cmocka_unit_test(test_mapping_errors),
      cmocka_unit_test(test_access),
      cmocka_unit_test(test_contents),
      cmocka_unit_test(test_questions),
      cmocka_unit_test(test_room),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_kernel),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
