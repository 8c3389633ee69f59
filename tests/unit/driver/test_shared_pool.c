/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools that processes share, and pools on the host (Driver API: "Stream Ordered Memory Allocator"). The
 * importer is this process, too: it has the memory a second time then, at other addresses. programs/ipc has two
 * processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_pool.h"
#include "driver/graph_abi.h"

typedef engine_pool *CUmemoryPool;
typedef struct export_data {
  unsigned char bytes[ENGINE_IPC_HANDLE_BYTES];
} export_data;

CUresult cuInit(unsigned), cuCtxCreate(CUcontext *, unsigned, CUdevice), cuCtxSynchronize(void),
    cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemPoolCreate(CUmemoryPool *, const cudaMemPoolProps *), cuMemPoolDestroy(CUmemoryPool),
    cuMemPoolGetAttribute(CUmemoryPool, int, void *), cuDeviceSetMemPool(CUdevice, CUmemoryPool),
    cuDeviceGetDefaultMemPool(CUmemoryPool *, CUdevice), cuMemGetDefaultMemPool(CUmemoryPool *, CUmemLocation *, int);
CUresult cuMemPoolSetAccess(CUmemoryPool, const cudaMemAccessDesc *, size_t),
    cuMemPoolGetAccess(int *, CUmemoryPool, CUmemLocation *);
CUresult cuMemPoolExportToShareableHandle(void *, CUmemoryPool, int, unsigned long long),
    cuMemPoolImportFromShareableHandle(CUmemoryPool *, void *, int, unsigned long long),
    cuMemPoolExportPointer(export_data *, CUdeviceptr),
    cuMemPoolImportPointer(CUdeviceptr *, CUmemoryPool, const export_data *);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr), cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);

enum { PINNED = 1, MANAGED, DESCRIPTOR = 1, FABRIC = 8, RESERVED = 5, USED = 7, MAP_FAILED = 205, ILLEGAL = 700 };
enum { BYTES = 10000 }; /* no whole pages */

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

static CUmemLocation device0 = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 9},
                     node = {cudaMemLocationTypeHostNuma, 0};

static CUmemoryPool create(CUmemLocation location, int handles) {
  CUmemoryPool pool = NULL;
  cudaMemPoolProps properties = {.allocType = PINNED, .handleTypes = handles, .location = location};
  succeed(cuMemPoolCreate(&pool, &properties));
  return pool;
}

static CUdeviceptr allocate(CUmemoryPool pool) {
  CUdeviceptr at;
  succeed(cuMemAllocFromPoolAsync(&at, BYTES, pool, NULL));
  return at;
}

static CUmemoryPool import_of(CUmemoryPool pool) {
  CUmemoryPool other = NULL;
  int file = -1;
  succeed(cuMemPoolExportToShareableHandle(&file, pool, DESCRIPTOR, 0));
  succeed(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)file, DESCRIPTOR, 0));
  close(file);
  return other;
}

static uint64_t number(CUmemoryPool pool, int attribute) {
  uint64_t value = 0;
  succeed(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static int byte_at(CUdeviceptr at) {
  unsigned char byte;
  succeed(cuMemcpyDtoH_v2(&byte, at, 1));
  return byte;
}

/* The bytes are the same ones, written before or after the import, by either side. */
static void test_bytes(void **state) {
  CUmemoryPool pool = create(device0, DESCRIPTOR), other = import_of(pool), again = import_of(pool);
  CUdeviceptr at = allocate(pool), there, second;
  export_data data;
  size_t before, after, all;
  succeed(cuMemsetD8_v2(at, 3, BYTES));
  succeed(cuMemPoolExportPointer(&data, at));
  succeed(cuMemGetInfo_v2(&before, &all));
  succeed(cuMemPoolImportPointer(&there, other, &data));
  succeed(cuMemPoolImportPointer(&second, again, &data));
  succeed(cuMemGetInfo_v2(&after, &all));
  assert_int_equal(before, after); /* it is used once */
  assert_int_equal(byte_at(there + BYTES - 1), 3);
  succeed(cuMemsetD8_v2(there, 4, BYTES));
  assert_int_equal(byte_at(at), 4);
  assert_int_equal(byte_at(second), 4);
  assert_int_equal(number(other, USED), BYTES);
  succeed(cuMemFreeAsync(there, NULL));
  check(cuMemFreeAsync(there, NULL), CUDA_ERROR_INVALID_VALUE);
  succeed(cuCtxSynchronize());
  assert_int_equal(number(other, RESERVED), 0);
  succeed(cuMemFree_v2(second));
  succeed(cuCtxSynchronize());
  assert_int_equal(number(again, RESERVED), 0);
  assert_int_equal(byte_at(at), 4);
  succeed(cuMemFree_v2(at));
  check(cuMemPoolImportPointer(&there, other, &data), MAP_FAILED);
  succeed(cuMemPoolDestroy(other));
  succeed(cuMemPoolDestroy(again));
  succeed(cuMemPoolDestroy(pool));
}

/* A piece that is used again is another allocation: what was exported of the first one does not open it. */
static void test_reuse(void **state) {
  CUmemoryPool pool = create(device0, DESCRIPTOR), other = import_of(pool);
  CUdeviceptr at = allocate(pool), there;
  export_data first, second;
  succeed(cuMemPoolExportPointer(&first, at));
  succeed(cuMemFreeAsync(at, NULL));
  assert_int_equal(allocate(pool), at);
  check(cuMemPoolImportPointer(&there, other, &first), MAP_FAILED);
  succeed(cuMemPoolExportPointer(&second, at));
  succeed(cuMemsetD8_v2(at, 6, BYTES));
  succeed(cuMemPoolImportPointer(&there, other, &second));
  assert_int_equal(byte_at(there), 6);
}

static void test_refused(void **state) {
  CUmemoryPool pool = create(device0, DESCRIPTOR), private = create(device0, 0), other = import_of(pool), none, first;
  CUdeviceptr at = allocate(pool), hidden = allocate(private), plain, there;
  export_data data, wrong;
  int file;
  succeed(cuMemAlloc_v2(&plain, BYTES));
  succeed(cuDeviceGetDefaultMemPool(&first, 0));
  check(cuMemPoolExportToShareableHandle(&file, private, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportToShareableHandle(&file, first, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportToShareableHandle(&file, other, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportToShareableHandle(&file, pool, FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportToShareableHandle(&file, pool, DESCRIPTOR, 1), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportToShareableHandle(NULL, pool, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolImportFromShareableHandle(&none, NULL, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportPointer(&data, hidden), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportPointer(&data, plain), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportPointer(&data, at + 256), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolExportPointer(NULL, at), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemPoolExportPointer(&data, at));
  check(cuMemPoolImportPointer(&there, private, &data), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolImportPointer(&there, import_of(create(device0, DESCRIPTOR)), &data), CUDA_ERROR_INVALID_VALUE);
  memset(&wrong, 0, sizeof wrong);
  check(cuMemPoolImportPointer(&there, other, &wrong), CUDA_ERROR_INVALID_VALUE);
  check(cuMemAllocFromPoolAsync(&there, BYTES, other, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceSetMemPool(0, other), CUDA_ERROR_INVALID_VALUE);
  cudaMemPoolProps properties = {.allocType = PINNED, .handleTypes = FABRIC, .location = device0};
  check(cuMemPoolCreate(&none, &properties), CUDA_ERROR_NOT_SUPPORTED);
  properties = (cudaMemPoolProps){.allocType = MANAGED, .handleTypes = DESCRIPTOR, .location = device0};
  check(cuMemPoolCreate(&none, &properties), CUDA_ERROR_NOT_SUPPORTED);
  properties = (cudaMemPoolProps){.allocType = PINNED, .handleTypes = DESCRIPTOR, .location = host};
  check(cuMemPoolCreate(&none, &properties), CUDA_ERROR_INVALID_VALUE);
}

/* ---- on the host ---- */

static const char add_one[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry add_one(.param .u64 at)\n{\n.reg .b32 %r<2>;\n"
    ".reg .b64 %rd<2>;\nld.param.u64 %rd1, [at];\nld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\n"
    "st.global.u32 [%rd1], %r1;\nret;\n}\n";

static CUresult run(CUdeviceptr at) {
  static CUmodule module;
  CUfunction kernel;
  void *arguments[] = {&at};
  if (!module) succeed(cuModuleLoadData(&module, add_one));
  succeed(cuModuleGetFunction(&kernel, module, "add_one"));
  succeed(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  return cuCtxSynchronize();
}

static void test_host(void **state) {
  CUmemLocation *places[] = {&host, &node};
  cudaMemAccessDesc all = {.location = device0, .flags = 3};
  for (int i = 0; i < 2; i++) {
    CUmemoryPool pool, mine = create(*places[i], 0);
    succeed(cuMemGetDefaultMemPool(&pool, places[i], PINNED));
    assert_ptr_not_equal(pool, mine);
    CUdeviceptr at = allocate(mine);
    volatile uint32_t *word = (uint32_t *)(uintptr_t)at;
    int access = 9, type = 0, supported = 0;
    *word = 41;
    succeed(cuPointerGetAttribute(&type, 2, at)); /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: */
    assert_int_equal(type, 1);                    /* of the host */
    succeed(cuMemPoolGetAccess(&access, mine, &device0));
    assert_int_equal(access, 0);
    succeed(cuMemPoolSetAccess(mine, &all, 1));
    succeed(cuMemPoolGetAccess(&access, mine, &device0));
    assert_int_equal(access, 3);
    succeed(run(at));
    assert_int_equal(*word, 42);
    assert_int_equal(number(mine, USED), BYTES);
    succeed(cuMemFreeAsync(at, NULL));
    assert_int_equal(allocate(mine), at);
    succeed(cuDeviceGetAttribute(&supported, i ? 142 : 144, 0)); /* HOST_NUMA_, HOST_MEMORY_POOLS_SUPPORTED */
    assert_int_equal(supported, 1);
  }
}

/* The last test: what no device was let use is an illegal address there. */
static void test_host_closed(void **state) { check(run(allocate(create(host, 0))), ILLEGAL); }

static int start(void **state) {
  CUcontext context;
  int handles = 0;
  setenv("FARFAULT_MACHINE", "v100", 1);
  return cuInit(0) || cuCtxCreate(&context, 0, 0) || cuDeviceGetAttribute(&handles, 119, 0) || handles != DESCRIPTOR;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_reuse),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_host),
                                     cmocka_unit_test(test_host_closed)};
  return cmocka_run_group_tests(tests, start, NULL);
}
