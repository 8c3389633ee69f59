/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API's rarer calls: launches of CUDA 2 and 3, what is in a module, batches, values in streams, hints that
 * can be asked for, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/engine/engine_notify.h"
#include "driver/engine/engine_range.h"
#include "driver/driver_api/libcuda.h"

CUresult cuInit(unsigned), cuCtxCreate(CUcontext *, unsigned, CUdevice), cuCtxDestroy(CUcontext),
    cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr),
    cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t),
    cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *),
    cuModuleUnload(CUmodule);
CUresult cuFuncSetBlockShape(CUfunction, int, int, int), cuFuncSetSharedSize(CUfunction, unsigned),
    cuParamSetSize(CUfunction, unsigned);
CUresult cuParamSeti(CUfunction, int, unsigned), cuParamSetf(CUfunction, int, float),
    cuParamSetv(CUfunction, int, const void *, unsigned);
CUresult cuLaunch(CUfunction), cuLaunchGrid(CUfunction, int, int), cuLaunchGridAsync(CUfunction, int, int, CUstream);
CUresult cuModuleGetFunctionCount(unsigned *, CUmodule), cuModuleEnumerateFunctions(CUfunction *, unsigned, CUmodule),
    cuFuncGetName(const char **, CUfunction);
CUresult cuFuncGetModule(CUmodule *, CUfunction), cuLibraryGetUnifiedFunction(void **, CUlibrary, const char *);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamDestroy_v2(CUstream), cuStreamSynchronize(CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, CUstream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, size_t *,
                            CUstream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t, unsigned long long,
                                 CUstream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned),
    cuStreamWriteValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned),
    cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned, void *, unsigned);
CUresult cuMemAdvise(CUdeviceptr, size_t, int, CUdevice),
    cuMemRangeGetAttribute(void *, size_t, int, CUdeviceptr, size_t);
CUresult cuMemRangeGetAttributes(void **, size_t *, int *, size_t, CUdeviceptr, size_t);
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult cuDeviceGetP2PAttribute(int *, int, CUdevice, CUdevice),
    cuDeviceGetHostAtomicCapabilities(unsigned *, const int *, unsigned, CUdevice);
CUresult cuStreamGetAttribute(CUstream, int, cudaLaunchAttributeValue *),
    cuStreamSetAttribute(CUstream, int, const cudaLaunchAttributeValue *), cuStreamCopyAttributes(CUstream, CUstream),
    cuStreamGetPriority(CUstream, int *), cuLogsDumpToMemory(unsigned *, char *, size_t *, unsigned);
CUresult cuLaunchHostFunc_v2(CUstream, cudaHostFn_t, void *, unsigned), cuFuncGetParamCount(CUfunction, size_t *),
    cuKernelGetParamCount(CUkernel, size_t *),
    cuMemcpyWithAttributesAsync(CUdeviceptr, CUdeviceptr, size_t, void *, CUstream),
    cuMemcpy3DWithAttributesAsync(const cudaMemcpy3DBatchOp *, unsigned long long, CUstream);
CUresult cuDeviceRegisterAsyncNotification(CUdevice, engine_notify_call *, void *, engine_notify **),
    cuDeviceUnregisterAsyncNotification(CUdevice, engine_notify *), cuTensorMapEncodeIm2colWide(void);
CUresult cuGetExportTable(const void **, const CUuuid *), cuImportExternalMemory(void);

static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry scale(.param .u64 to, .param .f32 by, .param .u32 plus)\n{\n.reg .b32 %r<6>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.f32 %f1, [by];\nld.param.u32 %r1, [plus];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
    "mad.lo.s32 %r2, %r3, %r4, %r2;\ncvt.rn.f32.u32 %f2, %r2;\nmul.f32 %f2, %f2, %f1;\ncvt.rzi.u32.f32 %r5, %f2;\nadd.u32 %r5, %r5, %r1;\n"
    "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r5;\nret;\n}\n"
    ".visible .func nothing()\n{\nret;\n}\n"
    ".visible .entry second()\n{\nret;\n}\n";

static CUmodule module;

#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)

static int start(void **state) {
  CUcontext context;
  setenv("FARFAULT_MACHINE", "v100", 0);
  return cuInit(0) || cuCtxCreate(&context, 0, 0) || cuModuleLoadData(&module, text);
}

static void test_prepared_launch(void **state) {
  CUfunction scale;
  CUdeviceptr data;
  uint32_t back[64];
  succeed(cuModuleGetFunction(&scale, module, "scale"));
  succeed(cuMemAlloc_v2(&data, sizeof back));
  succeed(cuFuncSetBlockShape(scale, 16, 1, 1));
  succeed(cuFuncSetSharedSize(scale, 256));
  succeed(cuParamSetv(scale, 0, &data, sizeof data));
  succeed(cuParamSetf(scale, 8, 3.0f));
  succeed(cuParamSeti(scale, 12, 5));
  succeed(cuParamSetSize(scale, 16));
  succeed(cuLaunchGrid(scale, 4, 1));
  succeed(cuMemcpyDtoH_v2(back, data, sizeof back));
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(back[i], 3 * i + 5);
  succeed(cuParamSeti(scale, 12, 1000)); /* the others are remembered */
  succeed(cuLaunch(scale));
  succeed(cuMemcpyDtoH_v2(back, data, sizeof back));
  assert_int_equal(back[15], 45 + 1000);
  assert_int_equal(back[16], 48 + 5);
  succeed(cuLaunchGridAsync(scale, 2, 1, NULL));
  succeed(cuMemcpyDtoH_v2(back, data, sizeof back));
  assert_int_equal(back[31], 93 + 1000);
  check(cuLaunchGrid(scale, 0, 1), CUDA_ERROR_INVALID_VALUE);
  check(cuFuncSetBlockShape(scale, 16, 0, 1), CUDA_ERROR_INVALID_VALUE);
  check(cuParamSetv(scale, 40000, &data, 8), CUDA_ERROR_INVALID_VALUE);
  check(cuParamSetv(scale, -1, &data, 8), CUDA_ERROR_INVALID_VALUE);
  check(cuParamSetSize(scale, 40000), CUDA_ERROR_INVALID_VALUE);
  check(cuLaunch((CUfunction)&data), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuMemFree_v2(data));
}

static void test_module_lists(void **state) {
  unsigned count = 0;
  CUfunction list[3] = {NULL};
  CUmodule of = NULL;
  const char *name;
  void *function;
  succeed(cuModuleGetFunctionCount(&count, module));
  assert_int_equal(count, 2); /* kernels only */
  succeed(cuModuleEnumerateFunctions(list, 1, module));
  assert_null(list[1]);
  succeed(cuModuleEnumerateFunctions(list, 3, module));
  succeed(cuFuncGetName(&name, list[1]));
  check(cuFuncGetName(&name, NULL), CUDA_ERROR_INVALID_VALUE);
  assert_string_equal(name, "second");
  assert_null(list[2]);
  succeed(cuFuncGetModule(&of, list[1]));
  assert_ptr_equal(of, module);
  check(cuModuleGetFunctionCount(&count, (CUmodule)&count), CUDA_ERROR_INVALID_HANDLE);
  check(cuFuncGetModule(&of, (CUfunction)&count), CUDA_ERROR_INVALID_HANDLE);
  check(cuLibraryGetUnifiedFunction(&function, module, "scale"), CUDA_ERROR_NOT_FOUND);
}

/* What is set is told; what was not is what the manual starts with. */
static void test_stream_attributes(void **state) {
  CUstream streams[2];
  cudaLaunchAttributeValue value;
  int priority;
  for (int i = 0; i < 2; i++) succeed(cuStreamCreate(&streams[i], 0));
  succeed(cuStreamGetAttribute(streams[0], cudaLaunchAttributeSynchronizationPolicy, &value));
  assert_int_equal(value.syncPolicy, 1);
  succeed(cuStreamGetAttribute(streams[0], cudaLaunchAttributeMemSyncDomain, &value));
  assert_int_equal(value.memSyncDomain, 0);
  succeed(cuStreamGetAttribute(streams[0], cudaLaunchAttributeMemSyncDomainMap, &value));
  assert_int_equal(value.memSyncDomainMap.default_ | value.memSyncDomainMap.remote, 0); /* it has one domain */

  cudaLaunchAttributeValue window = {
      .accessPolicyWindow = {.base_ptr = streams, .num_bytes = 64, .hitRatio = 0.5F, .hitProp = 2, .missProp = 1}};
  succeed(cuStreamSetAttribute(streams[0], cudaLaunchAttributeAccessPolicyWindow, &window));
  succeed(cuStreamSetAttribute(streams[0], cudaLaunchAttributeSynchronizationPolicy,
                               &(cudaLaunchAttributeValue){.syncPolicy = 4}));
  succeed(cuStreamSetAttribute(streams[0], cudaLaunchAttributePriority, &(cudaLaunchAttributeValue){.priority = -9}));
  succeed(cuStreamSetAttribute(streams[0], cudaLaunchAttributeMemSyncDomain,
                               &(cudaLaunchAttributeValue){.memSyncDomain = 1}));
  succeed(cuStreamCopyAttributes(streams[1], streams[0]));
  for (int i = 0; i < 2; i++) {
    succeed(cuStreamGetAttribute(streams[i], cudaLaunchAttributeAccessPolicyWindow, &value));
    assert_ptr_equal(value.accessPolicyWindow.base_ptr, streams);
    assert_int_equal(value.accessPolicyWindow.hitProp, 2);
    succeed(cuStreamGetAttribute(streams[i], cudaLaunchAttributeSynchronizationPolicy, &value));
    assert_int_equal(value.syncPolicy, 4);
    succeed(cuStreamGetAttribute(streams[i], cudaLaunchAttributeMemSyncDomain, &value));
    assert_int_equal(value.memSyncDomain, 1);
    succeed(cuStreamGetPriority(streams[i], &priority));
    assert_int_equal(priority, -5); /* the greatest there is */
  }
  window.accessPolicyWindow.hitRatio = 1.5F;
  check(cuStreamSetAttribute(streams[0], cudaLaunchAttributeAccessPolicyWindow, &window), CUDA_ERROR_INVALID_VALUE);
  window.accessPolicyWindow.hitRatio = 1;
  window.accessPolicyWindow.missProp = 2; /* persisting: only for hits */
  check(cuStreamSetAttribute(streams[0], cudaLaunchAttributeAccessPolicyWindow, &window), CUDA_ERROR_INVALID_VALUE);
  const cudaLaunchAttributeValue five = {.syncPolicy = 5};
  for (int attribute = cudaLaunchAttributeCooperative; attribute < 20; attribute++)
    if (attribute != cudaLaunchAttributePriority)
      check(cuStreamSetAttribute(streams[0], attribute, &five), CUDA_ERROR_INVALID_VALUE);
  check(cuStreamSetAttribute(streams[0], cudaLaunchAttributePriority, NULL), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 2; i++) succeed(cuStreamDestroy_v2(streams[i]));
}

static void test_batches(void **state) {
  CUdeviceptr a, b, managed;
  uint32_t back[4], words[4] = {1, 2, 3, 4};
  size_t sizes[2] = {8, 8}, first = 0, failed = 7;
  int attributes[16] = {1}, other[16] = {0}; /* in the stream's order; of no order */
  CUstream stream;
  succeed(cuStreamCreate(&stream, 0));
  succeed(cuMemAlloc_v2(&a, 16));
  succeed(cuMemAlloc_v2(&b, 16));
  succeed(cuMemcpyHtoD_v2(a, words, 16));
  succeed(cuMemcpyBatchAsync_v2((CUdeviceptr[]){b, b + 8}, (CUdeviceptr[]){a + 8, a}, sizes, 2, attributes, &first, 1,
                                stream));
  succeed(cuStreamSynchronize(stream));
  succeed(cuMemcpyDtoH_v2(back, b, 16));
  assert_memory_equal(back, ((uint32_t[]){3, 4, 1, 2}), 16);
  succeed(cuMemcpyBatchAsync((CUdeviceptr[]){b, b + 8}, (CUdeviceptr[]){a, a}, sizes, 2, attributes, &first, 1, &failed,
                             stream));
  assert_int_equal(failed, SIZE_MAX);
  check(cuMemcpyBatchAsync((CUdeviceptr[]){b, b + 12}, (CUdeviceptr[]){a, a}, sizes, 2, attributes, &first, 1, &failed,
                           stream),
        CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(failed, 1);
  check(cuMemcpyBatchAsync_v2(&b, &a, sizes, 0, attributes, &first, 1, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyBatchAsync_v2(&b, &a, sizes, 1, attributes, &first, 1, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyBatchAsync_v2(&b, &a, sizes, 1, attributes, &first, 0, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyBatchAsync_v2(&b, &a, sizes, 1, other, &first, 1, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyBatchAsync_v2(&b, &a, sizes, 1, attributes, (size_t[]){1}, 1, stream), CUDA_ERROR_INVALID_VALUE);
  succeed(cuStreamDestroy_v2(stream));

  succeed(cuMemAllocManaged(&managed, 16384, 1));
  CUmemLocation places[2] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeHost, 0}};
  succeed(cuMemPrefetchBatchAsync((CUdeviceptr[]){managed, managed + 4096, managed + 8192},
                                  (size_t[]){4096, 4096, 4096}, 3, places, (size_t[]){0, 2}, 2, 0, NULL));
  int where[3];
  for (int i = 0; i < 3; i++)
    succeed(cuMemRangeGetAttribute(&where[i], 4, cudaMemRangeAttributeLastPrefetchLocation,
                                   managed + 4096 * (unsigned)i, 4096));
  assert_memory_equal(where, ((int[]){0, 0, cudaCpuDeviceId}), sizeof where);
  check(cuMemPrefetchBatchAsync(&managed, sizes, 1, places, (size_t[]){1}, 1, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemDiscardBatchAsync(&managed, sizes, 1, 0, NULL));
  check(cuMemDiscardBatchAsync(&a, sizes, 1, 0, NULL), CUDA_ERROR_INVALID_VALUE); /* not managed */
  succeed(cuMemFree_v2(managed));
  succeed(cuMemFree_v2(a));
  succeed(cuMemFree_v2(b));
}

static void *write_later(void *flag) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  __atomic_store_n((uint32_t *)flag, 5, __ATOMIC_SEQ_CST);
  return NULL;
}

static void test_values(void **state) {
  CUdeviceptr data;
  uint64_t back[2];
  uint32_t *flag;
  pthread_t thread;
  succeed(cuMemAlloc_v2(&data, 16));
  succeed(cuStreamWriteValue32_v2(NULL, data, 7, 0));
  succeed(cuStreamWriteValue64_v2(NULL, data + 8, UINT64_C(0x123456789abcdef0), 0));
  succeed(cuMemcpyDtoH_v2(back, data, 16));
  assert_int_equal(back[0], 7);
  assert_int_equal(back[1], UINT64_C(0x123456789abcdef0));
  succeed(cuStreamWaitValue32_v2(NULL, data, 6, 0)); /* 7 - 6 >= 0 */
  succeed(cuStreamWaitValue32_v2(NULL, data, 7, 1));
  succeed(cuStreamWaitValue32_v2(NULL, data, 4, 2));
  succeed(cuStreamWaitValue64_v2(NULL, data + 8, UINT64_C(0x123456789abcdef0), 1));
  check(cuStreamWaitValue32_v2(NULL, data + 2, 7, 1), CUDA_ERROR_INVALID_VALUE);  /* not aligned */
  check(cuStreamWaitValue64_v2(NULL, data + 16, 7, 1), CUDA_ERROR_INVALID_VALUE); /* beyond its end */
  check(cuStreamWriteValue32_v2(NULL, (uintptr_t)back, 7, 0), CUDA_ERROR_INVALID_VALUE);
  struct {
    int type;
    CUdeviceptr at;
    uint64_t value;
    unsigned flags;
    CUdeviceptr alias;
    uint64_t room;
  } both[2] = {{.type = 2, .at = data, .value = 9}, {.type = 1, .at = data, .value = 9, .flags = 1}};
  assert_int_equal(sizeof both[0], 48);
  succeed(cuStreamBatchMemOp_v2(NULL, 2, both, 0));
  both[1].type = 77;
  check(cuStreamBatchMemOp_v2(NULL, 2, both, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemHostAlloc((void **)&flag, 4, 0));
  *flag = 0;
  assert_int_equal(pthread_create(&thread, NULL, write_later, flag), 0);
  succeed(cuStreamWaitValue32_v2(NULL, (uintptr_t)flag, 5, 1)); /* another thread writes it */
  pthread_join(thread, NULL);
  succeed(cuMemFree_v2(data));
}

static int ask(int attribute, CUdeviceptr at, size_t bytes) {
  int value = 99;
  succeed(cuMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
  return value;
}

static void test_hints(void **state) {
  CUdeviceptr data;
  const size_t page = 4096;
  succeed(cuMemAllocManaged(&data, 8 * page, 1));
  assert_int_equal(ask(1, data, 8 * page), 0);
  assert_int_equal(ask(2, data, 8 * page), cudaInvalidDeviceId);
  succeed(cuMemAdvise(data + 2 * page, 4 * page, cudaMemAdviseSetReadMostly, 0));
  assert_int_equal(ask(1, data + 2 * page, 4 * page), 1);
  assert_int_equal(ask(1, data + 3 * page, 1), 1);
  assert_int_equal(ask(1, data + page, 2 * page), 0); /* not all of it */
  assert_int_equal(ask(1, data + 5 * page, page + 1), 0);
  succeed(cuMemAdvise(data + 3 * page, page, cudaMemAdviseUnsetReadMostly, 0));
  assert_int_equal(ask(1, data + 2 * page, page), 1);
  assert_int_equal(ask(1, data + 2 * page, 2 * page), 0);
  assert_int_equal(ask(1, data + 4 * page, 2 * page), 1);
  succeed(cuMemAdvise(data, 8 * page, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
  assert_int_equal(ask(2, data, 8 * page), cudaCpuDeviceId);
  assert_int_equal(ask(5, data, 8 * page), cudaMemLocationTypeHost);
  succeed(cuMemAdvise(data, page, cudaMemAdviseSetPreferredLocation, 0));
  assert_int_equal(ask(2, data, page), 0);
  assert_int_equal(ask(2, data, 2 * page), cudaInvalidDeviceId); /* they differ */
  succeed(cuMemAdvise(data, 8 * page, cudaMemAdviseSetAccessedBy, 0));
  succeed(cuMemAdvise(data, 8 * page, cudaMemAdviseSetAccessedBy, cudaCpuDeviceId));
  int devices[3];
  succeed(cuMemRangeGetAttribute(devices, sizeof devices, 3, data, 8 * page));
  assert_memory_equal(devices, ((int[]){0, cudaCpuDeviceId, cudaInvalidDeviceId}), sizeof devices);
  succeed(cuMemPrefetchAsync(data, page, 0, NULL));
  int prefetched, preferred;
  succeed(cuMemRangeGetAttributes((void *[]){&prefetched, &preferred}, (size_t[]){4, 4}, (int[]){4, 2}, 2, data, page));
  assert_int_equal(prefetched, 0);
  assert_int_equal(preferred, 0);
  check(cuMemRangeGetAttribute(&prefetched, 8, 4, data, page), CUDA_ERROR_INVALID_VALUE);
  check(cuMemRangeGetAttribute(&prefetched, 4, 9, data, page), CUDA_ERROR_INVALID_VALUE);
  check(cuMemRangeGetAttribute(&prefetched, 4, 4, data, 9 * page), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr before = data;
  succeed(cuMemFree_v2(data));
  succeed(cuMemAllocManaged(&data, 8 * page, 1));
  if (data == before) assert_int_equal(ask(2, data, 8 * page), cudaInvalidDeviceId); /* another allocation */
  succeed(cuMemAdvise(data, page, cudaMemAdviseSetReadMostly, 0));
  assert_int_equal(ask(2, data, page), cudaInvalidDeviceId);
  succeed(cuMemFree_v2(data));
}

/* Random hints against one array of pages. */
static void test_hints_random(void **state) {
  enum { PAGES = 40 };
  CUdeviceptr data;
  bool model[PAGES] = {false};
  uint32_t random = 1;
  succeed(cuMemAllocManaged(&data, PAGES * 4096, 1));
  for (int turn = 0; turn < 400; turn++) {
    random = random * 1664525 + 1013904223;
    unsigned start = (random >> 8) % PAGES, count = 1 + (random >> 16) % (PAGES - start);
    bool set = random >> 31;
    succeed(cuMemAdvise(data + start * 4096, count * 4096,
                        set ? cudaMemAdviseSetReadMostly : cudaMemAdviseUnsetReadMostly, 0));
    for (unsigned i = start; i < start + count; i++) model[i] = set;
    for (unsigned i = 0; i < PAGES; i++) assert_int_equal(ask(1, data + i * 4096, 4096), model[i]);
  }
  succeed(cuMemFree_v2(data));
}

/* The private tables are there, unless they are switched off: then a CUDA runtime that asks is named on stderr. */
static void test_export_tables(void **state) {
  static const CUuuid runtime = {"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9"},
                      unknown = {"0123456789abcdef"};
  const void *table = &table;
  check(cuGetExportTable(&table, &unknown), CUDA_ERROR_NOT_FOUND);
  assert_null(table);
#ifndef FARFAULT_NO_PRIVATE_RUNTIMES
  check(cuGetExportTable(&table, &runtime), CUDA_SUCCESS);
  assert_non_null(table);
#endif
  setenv("FARFAULT_PRIVATE_RUNTIMES", "off", 1);
  char said[512] = "";
  int ends[2], before = dup(2);
  assert_int_equal(pipe(ends), 0);
  dup2(ends[1], 2);
  table = &table;
  CUresult result = cuGetExportTable(&table, &runtime);
  dup2(before, 2);
  close(ends[1]);
  close(before);
  check(result, CUDA_ERROR_NOT_FOUND);
  assert_null(table);
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  assert_non_null(strstr(said, "private tables of the driver"));
  assert_non_null(strstr(said, "--private-runtimes=off"));
  close(ends[0]);
  unsetenv("FARFAULT_PRIVATE_RUNTIMES");
  check(cuGetExportTable(NULL, &runtime), CUDA_ERROR_INVALID_VALUE);
}

static void test_questions(void **state) {
  int value, operation = 0;
  unsigned capability = 9;
  CUdevice device = 5;
  cudaLaunchAttributeValue attribute;
  char log[8] = "x";
  size_t size = sizeof log;
  succeed(cuCtxGetDevice_v2(&device, NULL));
  assert_int_equal(device, 0);
  check(cuDeviceGetP2PAttribute(&value, 1, 0, 0), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuDeviceGetHostAtomicCapabilities(&capability, &operation, 1, 0));
  assert_int_equal(capability, 0);
  operation = 13;
  check(cuDeviceGetHostAtomicCapabilities(&capability, &operation, 1, 0), CUDA_ERROR_INVALID_VALUE);
  succeed(cuStreamGetAttribute(NULL, cudaLaunchAttributePriority, &attribute));
  assert_int_equal(attribute.priority, 0);
  check(cuStreamGetAttribute(NULL, 77, &attribute), CUDA_ERROR_INVALID_VALUE);
  succeed(cuLogsDumpToMemory(NULL, log, &size, 0));
  assert_string_equal(log, "");
  check(cuImportExternalMemory(), CUDA_ERROR_NOT_SUPPORTED);
}

static void count_call(void *calls) { ++*(int *)calls; }

static void test_newer_forms(void **state) {
  CUmodule own;
  CUfunction scale;
  CUdeviceptr a, b;
  CUstream stream;
  size_t count = 0;
  uint32_t back[4], words[4] = {5, 6, 7, 8};
  int calls = 0, in_order[16] = {1}, in_none[16] = {0};
  succeed(cuModuleLoadData(&own, text));
  succeed(cuModuleGetFunction(&scale, own, "scale"));
  succeed(cuFuncGetParamCount(scale, &count));
  assert_int_equal(count, 3);
  count = 0;
  succeed(cuKernelGetParamCount(scale, &count));
  assert_int_equal(count, 3);
  check(cuFuncGetParamCount(scale, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuFuncGetParamCount(NULL, &count), CUDA_ERROR_INVALID_HANDLE);
  succeed(cuModuleUnload(own));

  succeed(cuStreamCreate(&stream, 0));
  for (unsigned mode = 0; mode < 2; mode++) succeed(cuLaunchHostFunc_v2(stream, count_call, &calls, mode));
  succeed(cuStreamSynchronize(stream));
  assert_int_equal(calls, 2);
  check(cuLaunchHostFunc_v2(stream, count_call, &calls, 2), CUDA_ERROR_INVALID_VALUE);
  check(cuLaunchHostFunc_v2(stream, NULL, &calls, 0), CUDA_ERROR_INVALID_VALUE);

  succeed(cuMemAlloc_v2(&a, 16));
  succeed(cuMemAlloc_v2(&b, 16));
  succeed(cuMemcpyHtoD_v2(a, words, 16));
  succeed(cuMemcpyWithAttributesAsync(b + 4, a, 8, in_order, stream));
  cudaMemcpy3DBatchOp box = {.src = {.type = 1, .op.ptr = {.ptr = (void *)(uintptr_t)(a + 12)}},
                             .dst = {.type = 1, .op.ptr = {.ptr = (void *)(uintptr_t)(b + 12)}},
                             .extent = {4, 1, 1},
                             .srcAccessOrder = 1};
  succeed(cuMemcpy3DWithAttributesAsync(&box, 0, stream));
  succeed(cuStreamSynchronize(stream));
  succeed(cuMemcpyDtoH_v2(back, b, 16));
  assert_memory_equal(back, ((uint32_t[]){0, 5, 6, 8}), 16);
  check(cuMemcpyWithAttributesAsync(b, a, 8, in_none, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyWithAttributesAsync(b, a, 8, NULL, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyWithAttributesAsync(b, a, 17, in_order, stream), CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpy3DWithAttributesAsync(&box, 1, stream), CUDA_ERROR_INVALID_VALUE);
  succeed(cuMemFree_v2(a));
  succeed(cuMemFree_v2(b));
  succeed(cuStreamDestroy_v2(stream));
}

/* Nothing is ever told: no budget of memory is set. Handles are of the device that they were made for. */
static void never_called(void *news, void *data, engine_notify *registered) {
  (void)news;
  (void)data;
  (void)registered;
  abort();
}

static void test_news_of_devices(void **state) {
  (void)state;
  engine_notify *one = NULL, *two = NULL;
  succeed(cuDeviceRegisterAsyncNotification(0, never_called, &one, &one));
  succeed(cuDeviceRegisterAsyncNotification(0, never_called, &two, &two));
  assert_true(one && two && one != two);
  CUdeviceptr memory;
  succeed(cuMemAlloc_v2(&memory, 1 << 20));
  succeed(cuMemFree_v2(memory));
  succeed(cuDeviceUnregisterAsyncNotification(0, one));
  check(cuDeviceUnregisterAsyncNotification(0, one), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceUnregisterAsyncNotification(0, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceUnregisterAsyncNotification(9, two), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuDeviceUnregisterAsyncNotification(0, two));
  check(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &one), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceRegisterAsyncNotification(0, never_called, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  check(cuDeviceRegisterAsyncNotification(-1, never_called, NULL, &one), CUDA_ERROR_INVALID_DEVICE);
  check(cuTensorMapEncodeIm2colWide(), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_prepared_launch), cmocka_unit_test(test_module_lists),
      cmocka_unit_test(test_batches),         cmocka_unit_test(test_stream_attributes),
      cmocka_unit_test(test_values),          cmocka_unit_test(test_hints),
      cmocka_unit_test(test_hints_random),    cmocka_unit_test(test_questions),
      cmocka_unit_test(test_export_tables),   cmocka_unit_test(test_newer_forms),
      cmocka_unit_test(test_news_of_devices),
  };
  return cmocka_run_group_tests(tests, start, NULL);
}
