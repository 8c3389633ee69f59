/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools by location and type of memory, and pools of managed memory (Driver API 13.0: "Stream Ordered Memory
 * Allocator"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_pool.h"
#include "driver/graph_abi.h"

typedef engine_pool *CUmemoryPool;
CUresult cuInit(unsigned), cuCtxCreate(CUcontext *, unsigned, CUdevice), cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *, CUmemLocation *, int),
    cuMemGetMemPool(CUmemoryPool *, CUmemLocation *, int), cuMemSetMemPool(CUmemLocation *, int, CUmemoryPool);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *, CUdevice), cuDeviceGetMemPool(CUmemoryPool *, CUdevice);
CUresult cuMemPoolCreate(CUmemoryPool *, const cudaMemPoolProps *), cuMemPoolDestroy(CUmemoryPool);
CUresult cuMemPoolGetAttribute(CUmemoryPool, int, void *), cuMemPoolTrimTo(CUmemoryPool, size_t);
CUresult cuMemPoolSetAccess(CUmemoryPool, const cudaMemAccessDesc *, size_t),
    cuMemPoolGetAccess(int *, CUmemoryPool, CUmemLocation *);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemFree_v2(CUdeviceptr), cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuMemAdvise(CUdeviceptr, size_t, int, CUdevice), cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream),
    cuMemRangeGetAttribute(void *, size_t, int, CUdeviceptr, size_t);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamSynchronize(CUstream), cuStreamDestroy_v2(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, void **);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);

enum { PINNED = 1, MANAGED };
enum { RESERVED = 5, USED = 7, USED_HIGH = 8 };                          /* CUmemPool_attribute */
enum { POINTER_IS_MANAGED = 8, POINTER_ORDINAL = 9, POINTER_POOL = 17 }; /* CUpointer_attribute */

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

static CUmemLocation nowhere = {cudaMemLocationTypeInvalid, 7}, /* CU_MEM_LOCATION_TYPE_NONE: the id means nothing */
    device0 = {cudaMemLocationTypeDevice, 0}, device1 = {cudaMemLocationTypeDevice, 1},
                     host = {cudaMemLocationTypeHost, 9}, node = {cudaMemLocationTypeHostNuma, 0};

static uint64_t number(CUmemoryPool pool, int attribute) {
  uint64_t value = 0;
  succeed(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static CUmemoryPool default_of(CUmemLocation *location, int type) {
  CUmemoryPool pool = NULL, now;
  succeed(cuMemGetDefaultMemPool(&pool, location, type));
  succeed(cuMemGetMemPool(&now, location, type));
  assert_ptr_equal(now, pool);
  return pool;
}

static CUmemoryPool create(CUmemLocation location) {
  CUmemoryPool pool;
  succeed(cuMemPoolCreate(&pool, &(cudaMemPoolProps){.allocType = MANAGED, .location = location}));
  return pool;
}

static CUdeviceptr allocate(size_t bytes, CUmemoryPool pool, CUstream stream) {
  CUdeviceptr p;
  succeed(cuMemAllocFromPoolAsync(&p, bytes, pool, stream));
  return p;
}

static int hint(int attribute, CUdeviceptr at, size_t bytes) {
  int value = 99;
  succeed(cuMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
  return value;
}

/* Every place has a default pool of its own. */
static void test_places(void **state) {
  CUmemLocation *managed[] = {&nowhere, &device0, &device1, &host, &node};
  CUmemoryPool pools[6], device;
  for (int i = 0; i < 5; i++) pools[i] = default_of(managed[i], MANAGED);
  pools[5] = default_of(&device0, PINNED);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < i; j++) assert_ptr_not_equal(pools[i], pools[j]);
  succeed(cuDeviceGetDefaultMemPool(&device, 0));
  assert_ptr_equal(device, pools[5]);
  for (int i = 0; i < 6; i++) check(cuMemPoolDestroy(pools[i]), CUDA_ERROR_INVALID_VALUE);
}

static void test_wrong_places(void **state) {
  CUmemLocation device2 = {cudaMemLocationTypeDevice, 2}, node1 = {cudaMemLocationTypeHostNuma, 1},
                current = {cudaMemLocationTypeHostNumaCurrent, 0};
  const struct {
    CUmemLocation *location;
    int type;
    CUresult error;
  } rows[] = {
      {&nowhere, PINNED, CUDA_ERROR_INVALID_VALUE},  {&device0, 0, CUDA_ERROR_INVALID_VALUE},
      {&device0, 3, CUDA_ERROR_INVALID_VALUE},       {&device2, MANAGED, CUDA_ERROR_INVALID_DEVICE},
      {&device2, PINNED, CUDA_ERROR_INVALID_DEVICE}, {&node1, MANAGED, CUDA_ERROR_INVALID_VALUE},
      {&node1, PINNED, CUDA_ERROR_INVALID_VALUE},    {&current, MANAGED, CUDA_ERROR_INVALID_VALUE},
      {NULL, MANAGED, CUDA_ERROR_INVALID_VALUE},
  };
  CUmemoryPool pool = default_of(&device0, PINNED), none;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    check(cuMemGetDefaultMemPool(&none, rows[i].location, rows[i].type), rows[i].error);
    check(cuMemGetMemPool(&none, rows[i].location, rows[i].type), CUDA_ERROR_INVALID_VALUE);
    check(cuMemSetMemPool(rows[i].location, rows[i].type, pool), CUDA_ERROR_INVALID_VALUE);
    if (!rows[i].location) continue;
    cudaMemPoolProps properties = {.allocType = rows[i].type, .location = *rows[i].location};
    check(cuMemPoolCreate(&none, &properties), CUDA_ERROR_INVALID_VALUE);
  }
  check(cuMemGetDefaultMemPool(NULL, &device0, MANAGED), CUDA_ERROR_INVALID_VALUE);
  check(cuMemGetMemPool(NULL, &device0, MANAGED), CUDA_ERROR_INVALID_VALUE);
  check(cuMemPoolCreate(NULL, &(cudaMemPoolProps){.allocType = MANAGED}), CUDA_ERROR_INVALID_VALUE);
}

static void test_current(void **state) {
  CUmemoryPool mine = create(device0), now, first = default_of(&device0, MANAGED), pinned;
  check(cuMemSetMemPool(&device1, MANAGED, mine), CUDA_ERROR_INVALID_VALUE); /* another location, */
  check(cuMemSetMemPool(&device0, PINNED, mine), CUDA_ERROR_INVALID_VALUE);  /* another type */
  check(cuMemSetMemPool(&nowhere, MANAGED, mine), CUDA_ERROR_INVALID_VALUE);
  check(cuMemSetMemPool(&device0, MANAGED, (CUmemoryPool)&now), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemSetMemPool(&device0, MANAGED, mine));
  succeed(cuMemGetMemPool(&now, &device0, MANAGED));
  assert_ptr_equal(now, mine);
  succeed(cuMemGetDefaultMemPool(&now, &device0, MANAGED));
  assert_ptr_equal(now, first);
  succeed(cuDeviceGetMemPool(&now, 0)); /* of device memory: as before */
  succeed(cuDeviceGetDefaultMemPool(&pinned, 0));
  assert_ptr_equal(now, pinned);
  succeed(cuMemPoolDestroy(mine));
  succeed(cuMemGetMemPool(&now, &device0, MANAGED));
  assert_ptr_equal(now, first);
  /* of device memory it is cuDeviceSetMemPool */
  succeed(cuMemPoolCreate(&mine, &(cudaMemPoolProps){.allocType = PINNED, .location = device0}));
  succeed(cuMemSetMemPool(&device0, PINNED, mine));
  succeed(cuDeviceGetMemPool(&now, 0));
  assert_ptr_equal(now, mine);
  succeed(cuMemPoolDestroy(mine));
}

static const char text[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
                           ".visible .entry add(.param .u64 at)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
                           "ld.param.u64 %rd1, [at];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
                           "add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, %r1;\n"
                           "st.global.u32 [%rd3], %r2;\nret;\n}\n";

/* Host and kernel use the same memory. */
static void test_memory(void **state) {
  enum { COUNT = 64 };
  CUmemoryPool pool = default_of(&nowhere, MANAGED), of = NULL;
  CUmodule module;
  CUfunction add;
  int managed = 0, ordinal = -1;
  CUdeviceptr at = allocate(4 * COUNT, pool, NULL);
  unsigned *words = (unsigned *)(uintptr_t)at;
  succeed(cuStreamSynchronize(NULL));
  for (unsigned i = 0; i < COUNT; i++) words[i] = 1000;
  succeed(cuModuleLoadData(&module, text));
  succeed(cuModuleGetFunction(&add, module, "add"));
  succeed(cuLaunchKernel(add, 1, 1, 1, COUNT, 1, 1, 0, NULL, (void *[]){&at}, NULL));
  succeed(cuStreamSynchronize(NULL));
  for (unsigned i = 0; i < COUNT; i++) assert_int_equal(words[i], 1000 + i);
  succeed(cuPointerGetAttribute(&managed, POINTER_IS_MANAGED, at));
  succeed(cuPointerGetAttribute(&of, POINTER_POOL, at + 4));
  succeed(cuPointerGetAttribute(&ordinal, POINTER_ORDINAL, at));
  assert_int_equal(managed, 1);
  assert_int_equal(ordinal, 0);
  assert_ptr_equal(of, pool);
  assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, at, 4), cudaInvalidDeviceId);
  assert_int_equal(number(pool, USED), 4 * COUNT);
  succeed(cuMemFreeAsync(at, NULL));
  check(cuMemsetD32Async(at, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuPointerGetAttribute(&of, POINTER_POOL, at), CUDA_ERROR_INVALID_VALUE);
  at = allocate(100, pool, NULL);
  succeed(cuMemFree_v2(at));
  assert_int_equal(number(pool, USED), 0);
  succeed(cuStreamSynchronize(NULL));
  assert_int_equal(number(pool, RESERVED), 0); /* the threshold is 0 */
  assert_int_equal(number(pool, USED_HIGH), 4 * COUNT);
}

/* The location is the preferred one. Memory is given out again, but not with hints of its last owner's. */
static void test_hints(void **state) {
  enum { BYTES = 8192 };
  CUmemoryPool on_device = create(device1), on_host = create(host), on_node = create(node);
  CUdeviceptr a = allocate(BYTES, on_device, NULL), b = allocate(BYTES, on_host, NULL),
              c = allocate(BYTES, on_node, NULL), again;
  int ordinal = -1;
  assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, a, BYTES), 1);
  assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, b, BYTES), cudaCpuDeviceId);
  assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, c, BYTES), cudaCpuDeviceId);
  succeed(cuPointerGetAttribute(&ordinal, POINTER_ORDINAL, a));
  assert_int_equal(ordinal, 1);
  succeed(cuMemPrefetchAsync(a, BYTES, 0, NULL));
  succeed(cuMemFreeAsync(a, NULL));
  again = allocate(BYTES, on_device, NULL);
  assert_int_equal(again, a);
  assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, a, BYTES), 1);
  assert_int_equal(hint(cudaMemRangeAttributeLastPrefetchLocation, a, BYTES), cudaInvalidDeviceId);
  for (int i = 0; i < 3; i++) {
    static const int advice[] = {cudaMemAdviseSetReadMostly, cudaMemAdviseSetPreferredLocation,
                                 cudaMemAdviseSetAccessedBy};
    succeed(cuMemAdvise(again + 4096, 4096, advice[i], 0));
    succeed(cuMemFreeAsync(again, NULL));
    a = again;
    again = allocate(BYTES, on_device, NULL);
    assert_int_not_equal(again, a);
    assert_int_equal(hint(cudaMemRangeAttributeReadMostly, again, BYTES), 0);
    assert_int_equal(hint(cudaMemRangeAttributePreferredLocation, again, BYTES), 1);
  }
  succeed(cuMemFreeAsync(again, NULL));
  succeed(cuMemPoolDestroy(on_device));
  succeed(cuMemPoolDestroy(on_host));
  succeed(cuMemPoolDestroy(on_node));
  *(char *)(uintptr_t)b = 1; /* memory in use outlives its pool */
  succeed(cuMemFreeAsync(b, NULL));
  succeed(cuMemFreeAsync(c, NULL));
}

static void test_access(void **state) {
  CUmemoryPool pool = create(device0);
  cudaMemAccessDesc full = {device1, 3}, read = {device1, 1};
  int flags = 0;
  succeed(cuMemPoolGetAccess(&flags, pool, &device1));
  assert_int_equal(flags, 3);
  succeed(cuMemPoolSetAccess(pool, &full, 1));
  check(cuMemPoolSetAccess(pool, &read, 1), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemPoolDestroy(pool));
}

/* The host may use managed and its own memory, and never a device's. */
static void test_host_access(void **state) {
  struct {
    CUmemLocation location;
    int type, flags;
  } pools[] = {
      {host, PINNED, 3}, {node, PINNED, 3}, {device1, MANAGED, 3}, {nowhere, MANAGED, 3}, {device0, PINNED, 0}};
  CUmemLocation hosts[] = {host, node}, far_node = {cudaMemLocationTypeHostNuma, 1};
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
    CUmemoryPool pool;
    int flags = -1;
    succeed(cuMemPoolCreate(&pool, &(cudaMemPoolProps){.allocType = pools[i].type, .location = pools[i].location}));
    for (int h = 0; h < 2; h++) {
      succeed(cuMemPoolGetAccess(&flags, pool, &hosts[h]));
      assert_int_equal(flags, pools[i].flags);
      succeed(cuMemPoolSetAccess(pool, &(cudaMemAccessDesc){hosts[h], pools[i].flags}, 1));
      check(cuMemPoolSetAccess(pool, &(cudaMemAccessDesc){hosts[h], 3 - pools[i].flags}, 1), CUDA_ERROR_INVALID_VALUE);
      check(cuMemPoolSetAccess(pool, &(cudaMemAccessDesc){hosts[h], 1}, 1), CUDA_ERROR_INVALID_VALUE);
    }
    check(cuMemPoolGetAccess(&flags, pool, &far_node), CUDA_ERROR_INVALID_VALUE);
    check(cuMemPoolSetAccess(pool, &(cudaMemAccessDesc){far_node, 3}, 1), CUDA_ERROR_INVALID_VALUE);
    succeed(cuMemPoolDestroy(pool));
  }
}

/* An allocation node is of device memory. */
static void test_capture(void **state) {
  CUmemoryPool pool = create(nowhere);
  CUstream stream;
  CUdeviceptr at;
  void *graph = NULL;
  succeed(cuStreamCreate(&stream, 1));
  succeed(cuStreamBeginCapture_v2(stream, 2));
  check(cuMemAllocFromPoolAsync(&at, 64, pool, stream), 900);
  check(cuStreamEndCapture(stream, &graph), 901);
  succeed(cuStreamDestroy_v2(stream));
  succeed(cuMemPoolDestroy(pool));
}

/* A pool's memory may be larger than the GPU's, and no limit can be given. */
static void test_size(void **state) {
  CUmemoryPool pool;
  CUdeviceptr at;
  cudaMemPoolProps properties = {.allocType = MANAGED, .location = device0, .maxSize = 1 << 20};
  check(cuMemPoolCreate(&pool, &properties), CUDA_ERROR_INVALID_VALUE);
  at = allocate((size_t)20 << 30, default_of(&device0, MANAGED), NULL); /* v100: 16 GiB */
  check(cuMemAllocFromPoolAsync(&at, (size_t)20 << 30, default_of(&device0, PINNED), NULL), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Resetting a device takes what lies in its name, of every pool. */
static void test_reset(void **state) {
  CUmemoryPool anywhere = default_of(&nowhere, MANAGED), mine = create(device0), other = create(device1), now;
  allocate(64, anywhere, NULL);
  allocate(64, mine, NULL);
  CUdeviceptr kept = allocate(64, other, NULL);
  succeed(cuMemSetMemPool(&device0, MANAGED, mine));
  succeed(cuDevicePrimaryCtxReset_v2(0));
  assert_int_equal(number(anywhere, USED), 0);
  assert_int_equal(number(other, USED), 64);
  check(cuMemPoolTrimTo(mine, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemGetMemPool(&now, &device0, MANAGED));
  assert_ptr_not_equal(now, mine);
  *(char *)(uintptr_t)kept = 1;
}

static int start(void **state) {
  CUcontext context;
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return cuInit(0) || cuCtxCreate(&context, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),      cmocka_unit_test(test_wrong_places),
                                     cmocka_unit_test(test_current),     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_hints),       cmocka_unit_test(test_access),
                                     cmocka_unit_test(test_host_access), cmocka_unit_test(test_capture),
                                     cmocka_unit_test(test_size),        cmocka_unit_test(test_reset)};
  return cmocka_run_group_tests(tests, start, NULL);
}
