/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects on a machine of eight devices with a switch: what multimem instructions do to the memory of each
 * device, documented errors, what may not use a multicast address, lives of handles and bound memory, waiting for a
 * device that is not yet added. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"

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
typedef struct object {
  unsigned devices;
  size_t bytes;
  unsigned long long handle_types, flags;
} object;
typedef unsigned long long handle;

CUresult cuInit(unsigned), cuCtxSetCurrent(CUcontext), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice), cuDeviceGetAttribute(int *, int, CUdevice), cuCtxSynchronize(void);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t), cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long),
    cuMemAddressFree(CUdeviceptr, size_t);
CUresult cuMemCreate(handle *, size_t, const properties *, unsigned long long), cuMemRelease(handle);
CUresult cuMemMap(CUdeviceptr, size_t, size_t, handle, unsigned long long), cuMemUnmap(CUdeviceptr, size_t);
CUresult cuMemSetAccess(CUdeviceptr, size_t, const access_to *, size_t);
CUresult cuMemExportToShareableHandle(void *, handle, int, unsigned long long),
    cuMemImportFromShareableHandle(handle *, void *, int), cuMemRetainAllocationHandle(handle *, void *),
    cuMemGetAllocationPropertiesFromHandle(properties *, handle);
CUresult cuMulticastCreate(handle *, const object *), cuMulticastAddDevice(handle, CUdevice),
    cuMulticastBindMem(handle, size_t, handle, size_t, size_t, unsigned long long),
    cuMulticastBindAddr(handle, size_t, CUdeviceptr, size_t, unsigned long long),
    cuMulticastBindMem_v2(handle, CUdevice, size_t, handle, size_t, size_t, unsigned long long),
    cuMulticastBindAddr_v2(handle, CUdevice, size_t, CUdeviceptr, size_t, unsigned long long),
    cuMulticastUnbind(handle, CUdevice, size_t, size_t), cuMulticastGetGranularity(size_t *, const object *, int);

enum { DEVICES = 4, TEAM = 3, WORDS = 64, MULTICAST_SUPPORTED = 132 };
#define PIECE ((size_t)2 << 20)
#define check(call, result) assert_int_equal(call, result)
#define succeed(call) check(call, CUDA_SUCCESS)
#define invalid(call) check(call, CUDA_ERROR_INVALID_VALUE)

static const char text[] =
    ".version 8.1\n.target sm_90\n.address_size 64\n"
    ".visible .entry sum(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [from];\nld.param.u64 %d2, [to];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\n"
    "add.u64 %d1, %d1, %d3;\nadd.u64 %d2, %d2, %d3;\n"
    "multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%d1];\nst.global.u32 [%d2], %r2;\nret;\n}\n"
    ".visible .entry store(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [to];\nld.param.u32 %r2, [value];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %d1, %r1, 4, %d1;\n"
    "multimem.st.relaxed.sys.global.u32 [%d1], %r2;\nret;\n}\n"
    ".visible .entry add(.param .u64 to, .param .u32 value)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [to];\nld.param.u32 %r2, [value];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %d1, %r1, 4, %d1;\n"
    "multimem.red.relaxed.sys.global.add.u32 [%d1], %r2;\nret;\n}\n"
    ".visible .entry load(.param .u64 from)\n{\n.reg .b32 %r<2>;\n.reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [from];\nld.global.u32 %r1, [%d1];\nret;\n}\n";

static CUfunction functions[DEVICES][4];
enum { SUM, STORE, ADD, LOAD };

static void use(int device) {
  CUcontext context;
  succeed(cuDevicePrimaryCtxRetain(&context, device));
  succeed(cuCtxSetCurrent(context));
}

static void load_module(int device) {
  static const char *const names[] = {"sum", "store", "add", "load"};
  CUmodule module;
  use(device);
  succeed(cuModuleLoadData(&module, text));
  for (int n = 0; n < 4; n++) succeed(cuModuleGetFunction(&functions[device][n], module, names[n]));
}

static int set_up(void **state) {
  succeed(cuInit(0));
  for (int d = 0; d < DEVICES; d++) load_module(d);
  return 0;
}

static CUresult launch(int device, int function, void **arguments) {
  use(device);
  CUresult result = cuLaunchKernel(functions[device][function], 1, 1, 1, WORDS, 1, 1, 0, NULL, arguments, NULL);
  return result ? result : cuCtxSynchronize();
}

/* ---- a team of devices 0 to 2, each with memory at an address of its own ---- */

typedef struct team {
  handle object, memory[TEAM];
  CUdeviceptr multicast, own[TEAM];
} team;

static handle memory_on(int device, size_t bytes) {
  const properties p = {.type = 1, .location = {cudaMemLocationTypeDevice, device}};
  handle made;
  succeed(cuMemCreate(&made, bytes, &p, 0));
  return made;
}

static CUdeviceptr map(handle of, size_t bytes, int first, int count) {
  CUdeviceptr at;
  succeed(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  succeed(cuMemMap(at, bytes, 0, of, 0));
  for (int d = first; d < first + count; d++)
    succeed(cuMemSetAccess(at, bytes, &(access_to){{cudaMemLocationTypeDevice, d}, 3}, 1));
  return at;
}

static void unmap(CUdeviceptr at, size_t bytes) {
  succeed(cuMemUnmap(at, bytes));
  succeed(cuMemAddressFree(at, bytes));
}

static handle new_object(unsigned devices, size_t bytes) {
  handle made;
  succeed(cuMulticastCreate(&made, &(object){.devices = devices, .bytes = bytes}));
  return made;
}

static handle whole_object(size_t bytes) {
  handle made = new_object(TEAM, bytes);
  for (int d = 0; d < TEAM; d++) succeed(cuMulticastAddDevice(made, d));
  return made;
}

static void fill(team *t, int device, uint32_t first) {
  uint32_t words[WORDS];
  for (uint32_t n = 0; n < WORDS; n++) words[n] = first + n;
  use(device);
  succeed(cuMemcpyHtoD_v2(t->own[device], words, sizeof words));
}

static void begin(team *t) {
  t->object = whole_object(PIECE);
  for (int d = 0; d < TEAM; d++) {
    t->memory[d] = memory_on(d, PIECE);
    t->own[d] = map(t->memory[d], PIECE, d, 1);
    if (d) succeed(cuMulticastBindMem(t->object, 0, t->memory[d], 0, PIECE, 0));
    else succeed(cuMulticastBindAddr(t->object, 0, t->own[0], PIECE, 0));
    fill(t, d, 1000u * (uint32_t)(d + 1));
  }
  use(0); /* whose the addresses are */
  t->multicast = map(t->object, PIECE, 0, TEAM);
}

static void end(team *t) {
  unmap(t->multicast, PIECE);
  succeed(cuMemRelease(t->object));
  for (int d = 0; d < TEAM; d++) {
    unmap(t->own[d], PIECE);
    succeed(cuMemRelease(t->memory[d]));
  }
}

static uint32_t word_of(const team *t, int device, uint32_t n) {
  uint32_t value;
  use(device);
  succeed(cuMemcpyDtoH_v2(&value, t->own[device] + 4 * n, 4));
  return value;
}

/* ---- values ---- */

static void test_values(void **state) {
  team t;
  uint32_t sums[WORDS], value = 7;
  CUdeviceptr to;
  begin(&t);
  for (int d = 0; d < TEAM; d++) { /* every device finds the same sum */
    use(d);
    succeed(cuMemAlloc_v2(&to, sizeof sums));
    succeed(launch(d, SUM, (void *[]){&t.multicast, &to}));
    succeed(cuMemcpyDtoH_v2(sums, to, sizeof sums));
    for (uint32_t n = 0; n < WORDS; n++) assert_int_equal(sums[n], 6000 + 3 * n);
    succeed(cuMemFree_v2(to));
  }
  succeed(launch(1, ADD, (void *[]){&t.multicast, &value}));
  for (int d = 0; d < TEAM; d++) assert_int_equal(word_of(&t, d, 5), 1000 * (d + 1) + 5 + 7);
  succeed(launch(2, STORE, (void *[]){&t.multicast, &value}));
  for (int d = 0; d < TEAM; d++) assert_int_equal(word_of(&t, d, WORDS - 1), 7);
  end(&t);
}

/* Parts of memory, bound at other offsets; a second object over the same memory. */
static void test_offsets(void **state) {
  handle object = whole_object(3 * PIECE), again = whole_object(PIECE), memory[TEAM];
  CUdeviceptr own[TEAM], at, second;
  uint32_t value = 9, found;
  for (int d = 0; d < TEAM; d++) {
    memory[d] = memory_on(d, 2 * PIECE);
    own[d] = map(memory[d], 2 * PIECE, d, 1);
    check(cuMulticastBindMem_v2(object, !d, 2 * PIECE, memory[d], PIECE, PIECE, 0), CUDA_ERROR_INVALID_DEVICE);
    succeed(cuMulticastBindMem_v2(object, d, 2 * PIECE, memory[d], PIECE, PIECE, 0));
    check(cuMulticastBindAddr_v2(again, !d, 0, own[d] + PIECE, PIECE, 0), CUDA_ERROR_INVALID_DEVICE);
    succeed(cuMulticastBindAddr_v2(again, d, 0, own[d] + PIECE, PIECE, 0));
  }
  at = map(object, 3 * PIECE, 0, TEAM);
  second = map(again, PIECE, 0, TEAM);
  CUdeviceptr last = at + 2 * PIECE;
  succeed(launch(0, STORE, (void *[]){&last, &value}));
  succeed(launch(1, ADD, (void *[]){&second, &value}));
  for (int d = 0; d < TEAM; d++) {
    use(d);
    succeed(cuMemcpyDtoH_v2(&found, own[d] + PIECE, 4));
    assert_int_equal(found, 18);
    succeed(cuMemcpyDtoH_v2(&found, own[d], 4));
    assert_int_equal(found, 0);
  }
  unmap(at, 3 * PIECE);
  unmap(second, PIECE);
  succeed(cuMemRelease(object));
  succeed(cuMemRelease(again));
  for (int d = 0; d < TEAM; d++) {
    unmap(own[d], 2 * PIECE);
    succeed(cuMemRelease(memory[d]));
  }
}

/* ---- what is refused ---- */

static void test_create(void **state) {
  int has = 0;
  size_t granularity;
  handle made;
  object o = {.devices = 2, .bytes = PIECE};
  succeed(cuDeviceGetAttribute(&has, MULTICAST_SUPPORTED, 1));
  assert_int_equal(has, 1);
  for (int option = 0; option < 2; option++) {
    succeed(cuMulticastGetGranularity(&granularity, &o, option));
    assert_int_equal(granularity, PIECE);
  }
  invalid(cuMulticastGetGranularity(&granularity, &o, 2));
  invalid(cuMulticastGetGranularity(NULL, &o, 0));
  invalid(cuMulticastGetGranularity(&granularity, NULL, 0));
  invalid(cuMulticastCreate(NULL, &o));
  invalid(cuMulticastCreate(&made, NULL));
  invalid(cuMulticastCreate(&made, &(object){.devices = 0, .bytes = PIECE}));
  invalid(cuMulticastCreate(&made, &(object){.devices = DEVICES + 1, .bytes = PIECE}));
  invalid(cuMulticastCreate(&made, &(object){.devices = 2, .bytes = PIECE + 4096}));
  invalid(cuMulticastCreate(&made, &(object){.devices = 2, .bytes = 0}));
  invalid(cuMulticastCreate(&made, &(object){.devices = 2, .bytes = PIECE, .flags = 1}));
  check(cuMulticastCreate(&made, &(object){.devices = 2, .bytes = PIECE, .handle_types = 8}), CUDA_ERROR_NOT_SUPPORTED);
}

static void test_add(void **state) {
  handle object = new_object(2, PIECE), memory = memory_on(0, PIECE);
  invalid(cuMulticastAddDevice(memory, 0));
  invalid(cuMulticastAddDevice(12345, 0));
  check(cuMulticastAddDevice(object, DEVICES), CUDA_ERROR_INVALID_DEVICE);
  check(cuMulticastAddDevice(object, -1), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMulticastAddDevice(object, 3));
  invalid(cuMulticastAddDevice(object, 3));
  succeed(cuMulticastAddDevice(object, 1));
  invalid(cuMulticastAddDevice(object, 0)); /* there are two already */
  succeed(cuMemRelease(object));
  invalid(cuMulticastAddDevice(object, 0));
  succeed(cuMemRelease(memory));
}

static void test_bind(void **state) {
  handle object = whole_object(2 * PIECE), memory = memory_on(1, 2 * PIECE), foreign = memory_on(3, PIECE);
  CUdeviceptr plain;
  properties p;
  invalid(cuMulticastBindMem(memory, 0, memory, 0, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, object, 0, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, 77, 0, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, memory, 0, PIECE, 1));
  invalid(cuMulticastBindMem(object, 4096, memory, 0, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, memory, 4096, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, memory, 0, PIECE / 2, 0));
  invalid(cuMulticastBindMem(object, 0, memory, 0, 0, 0));
  invalid(cuMulticastBindMem(object, PIECE, memory, 0, 2 * PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, memory, PIECE, 2 * PIECE, 0));
  invalid(cuMulticastBindMem(object, (size_t)0 - PIECE, memory, 0, 2 * PIECE, 0));
  check(cuMulticastBindMem(object, 0, foreign, 0, PIECE, 0), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMulticastBindMem(object, PIECE, memory, 0, PIECE, 0));
  invalid(cuMulticastBindMem(object, 0, memory, 0, 2 * PIECE, 0)); /* over what is bound */
  invalid(cuMulticastBindAddr(object, 0, 0x1234, PIECE, 0));
  use(1);
  succeed(cuMemAlloc_v2(&plain, PIECE));
  check(cuMulticastBindAddr(object, 0, plain, PIECE, 0), CUDA_ERROR_NOT_SUPPORTED);
  succeed(cuMemFree_v2(plain));
  invalid(cuMulticastUnbind(object, 1, 0, PIECE)); /* nothing is bound there */
  invalid(cuMulticastUnbind(object, 1, PIECE, 2 * PIECE));
  check(cuMulticastUnbind(object, 3, PIECE, PIECE), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMulticastUnbind(object, 1, 0, 2 * PIECE));
  succeed(cuMulticastBindMem(object, 0, memory, 0, 2 * PIECE, 0));
  invalid(cuMulticastUnbind(object, 1, PIECE, PIECE)); /* a part of it */
  invalid(cuMemGetAllocationPropertiesFromHandle(&p, object));
  succeed(cuMemRelease(object));
  succeed(cuMemRelease(memory));
  succeed(cuMemRelease(foreign));
}

/* Memory of pools is bound by its address, in pieces, until it is freed: by a stream, by the host, or with its
 * device. */
static void test_pool(void **state) {
  handle object = whole_object(2 * PIECE), created = memory_on(2, PIECE);
  CUdeviceptr multicast = map(object, 2 * PIECE, 0, TEAM), own[2], managed;
  uint32_t value = 3, word = 0;
  for (int d = 0; d < 2; d++) {
    use(d);
    succeed(cuMemAllocAsync(&own[d], 2 * PIECE, NULL));
    succeed(cuMemsetD32_v2(own[d], (unsigned)d + 1, 2 * PIECE / 4));
  }
  invalid(cuMulticastBindAddr(object, 0, own[0] + 4096, PIECE, 0));
  invalid(cuMulticastBindAddr(object, 4096, own[0], PIECE, 0));
  invalid(cuMulticastBindAddr(object, 0, own[0] + PIECE, 2 * PIECE, 0));
  invalid(cuMulticastBindAddr(object, PIECE, own[0], 2 * PIECE, 0));
  use(3);
  CUdeviceptr outside;
  succeed(cuMemAllocAsync(&outside, PIECE, NULL));
  check(cuMulticastBindAddr(object, 0, outside, PIECE, 0), CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMemFree_v2(outside));
  check(cuMulticastBindAddr(object, 0, outside, PIECE, 0), CUDA_ERROR_INVALID_VALUE); /* parked: it is nobody's */
  succeed(cuMemAllocManaged(&managed, PIECE, 1));
  invalid(cuMulticastBindAddr(object, 0, managed, PIECE, 0));
  succeed(cuMemFree_v2(managed));
  succeed(cuMulticastBindAddr(object, 0, own[0] + PIECE, PIECE, 0));
  invalid(cuMulticastBindAddr(object, 0, own[0], PIECE, 0)); /* something is there */
  succeed(cuMulticastBindAddr(object, 0, own[1], PIECE, 0));
  succeed(cuMulticastBindMem(object, 0, created, 0, PIECE, 0));
  succeed(launch(2, ADD, (void *[]){&multicast, &value}));
  for (int d = 0; d < 2; d++) {
    use(d);
    succeed(cuMemcpyDtoH_v2(&word, own[d] + (d ? 0 : PIECE), 4));
    assert_int_equal(word, d + 1 + 3);
    succeed(cuMemcpyDtoH_v2(&word, own[d] + (d ? PIECE : 0), 4));
    assert_int_equal(word, d + 1);
  }
  succeed(cuMulticastUnbind(object, 0, 0, PIECE));
  succeed(cuMulticastBindAddr(object, 0, own[0], PIECE, 0));
  use(0);
  succeed(cuMemFreeAsync(own[0], NULL));
  invalid(cuMulticastUnbind(object, 0, 0, PIECE)); /* it went with the memory */
  use(1);
  succeed(cuMemFree_v2(own[1]));
  invalid(cuMulticastUnbind(object, 1, 0, PIECE));
  succeed(cuMulticastUnbind(object, 2, 0, PIECE));
  succeed(cuMemAllocAsync(&own[1], PIECE, NULL));
  succeed(cuMulticastBindAddr(object, 0, own[1], PIECE, 0));
  unmap(multicast, 2 * PIECE);
  succeed(cuMemRelease(object)); /* while it is bound */
  succeed(cuMemFree_v2(own[1]));
  succeed(cuMemRelease(created));
}

/* Loads and copies cannot use the addresses; nor can a device outside of the team. */
static void test_addresses(void **state) {
  team t;
  uint32_t word = 0, value = 1;
  begin(&t);
  invalid(cuMemcpyDtoH_v2(&word, t.multicast, 4));
  invalid(cuMemcpyHtoD_v2(t.multicast, &word, 4));
  invalid(cuMemsetD32_v2(t.multicast, 1, 1));
  check(cuMemSetAccess(t.multicast, PIECE, &(access_to){{cudaMemLocationTypeDevice, 3}, 3}, 1),
        CUDA_ERROR_INVALID_DEVICE);
  succeed(cuMemSetAccess(t.multicast, PIECE, &(access_to){{cudaMemLocationTypeDevice, 1}, 1}, 1));
  CUdeviceptr sums;
  use(1);
  succeed(cuMemAlloc_v2(&sums, WORDS * 4));
  succeed(launch(1, SUM, (void *[]){&t.multicast, &sums}));
  check(launch(1, STORE, (void *[]){&t.multicast, &value}), 700); /* for reading only */
  succeed(cuDevicePrimaryCtxReset_v2(1));
  load_module(0);
  load_module(1);
  check(launch(0, LOAD, (void *[]){&t.multicast}), 700);
  succeed(cuDevicePrimaryCtxReset_v2(0));
  load_module(0);
}

/* ---- lives ---- */

static size_t room(int device) {
  size_t free_bytes, total;
  use(device);
  succeed(cuMemGetInfo_v2(&free_bytes, &total));
  return free_bytes;
}

static void test_lives(void **state) {
  size_t before = room(2);
  team t;
  begin(&t);
  unmap(t.own[2], PIECE);
  succeed(cuMemRelease(t.memory[2])); /* it is bound */
  assert_int_equal(room(2), before - PIECE);
  uint32_t value = 3;
  succeed(launch(0, STORE, (void *[]){&t.multicast, &value}));
  succeed(cuMulticastUnbind(t.object, 2, 0, PIECE));
  assert_int_equal(room(2), before);
  handle again;
  succeed(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)t.multicast));
  assert_true(again == t.object);
  succeed(cuMemRelease(again));
  succeed(cuMemRelease(t.object)); /* it is mapped */
  invalid(cuMulticastUnbind(t.object, 0, 0, PIECE));
  unmap(t.multicast, PIECE);
  for (int d = 0; d < 2; d++) {
    unmap(t.own[d], PIECE);
    succeed(cuMemRelease(t.memory[d]));
  }
}

static void test_exports(void **state) {
  handle object, imported, plain = new_object(2, PIECE);
  int file = -1;
  succeed(cuMulticastCreate(&object, &(struct object){.devices = 1, .bytes = PIECE, .handle_types = 1}));
  invalid(cuMemExportToShareableHandle(&file, plain, 1, 0));
  succeed(cuMemExportToShareableHandle(&file, object, 1, 0));
  succeed(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, 1));
  succeed(cuMemRelease(object));
  succeed(cuMulticastAddDevice(imported, 0));
  succeed(cuMemRelease(imported));
  invalid(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, 1));
  close(file);
  succeed(cuMemRelease(plain));
}

/* A call that needs all devices returns when another thread has added the last. */
static void *add_later(void *of) {
  usleep(20000);
  succeed(cuMulticastAddDevice(*(const handle *)of, 1));
  return NULL;
}

static void test_waiting(void **state) {
  for (int how = 0; how < 2; how++) {
    handle object = new_object(2, PIECE), memory = memory_on(0, PIECE);
    pthread_t thread;
    succeed(cuMulticastAddDevice(object, 0));
    assert_int_equal(pthread_create(&thread, NULL, add_later, &object), 0);
    if (how) unmap(map(object, PIECE, 0, 1), PIECE);
    else succeed(cuMulticastBindMem(object, 0, memory, 0, PIECE, 0));
    pthread_join(thread, NULL);
    succeed(cuMemRelease(object));
    succeed(cuMemRelease(memory));
  }
}

/* Or when it can be added no more, because a kernel has faulted. */
static void *fault_later(void *unused) {
  uint32_t value = 1;
  CUdeviceptr nowhere = 16;
  usleep(20000);
  use(0);
  launch(0, STORE, (void *[]){&nowhere, &value});
  return unused;
}

static void test_waiting_in_vain(void **state) {
  enum { ILLEGAL_ADDRESS = 700, WATCHDOG = 60 };
  handle object = new_object(2, PIECE), memory = memory_on(0, PIECE);
  pthread_t thread;
  succeed(cuMulticastAddDevice(object, 0));
  assert_int_equal(pthread_create(&thread, NULL, fault_later, NULL), 0);
  alarm(WATCHDOG);
  assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, PIECE, 0), ILLEGAL_ADDRESS);
  alarm(0);
  pthread_join(thread, NULL);
}

/* A device that is reset takes its memory from the teams. */
static void test_reset(void **state) {
  team t;
  uint32_t value = 4;
  begin(&t);
  size_t before = room(2);
  succeed(cuDevicePrimaryCtxReset_v2(2));
  assert_true(room(2) >= before + PIECE);
  check(launch(0, STORE, (void *[]){&t.multicast, &value}), 700);
}

/* In a process of its own, as it leaves an error, too. */
static int run_in_vain(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_waiting_in_vain)};
  int status = 1;
  pid_t child = fork();
  if (!child) exit(cmocka_run_group_tests(tests, set_up, NULL));
  return waitpid(child, &status, 0) != child || status;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),    cmocka_unit_test(test_offsets), cmocka_unit_test(test_create),
      cmocka_unit_test(test_add),       cmocka_unit_test(test_bind),    cmocka_unit_test(test_lives),
      cmocka_unit_test(test_exports),   cmocka_unit_test(test_waiting), cmocka_unit_test(test_pool),
      cmocka_unit_test(test_addresses), cmocka_unit_test(test_reset), /* the last: it leaves an error */
  };
  setenv("FARFAULT_MACHINE", "dgx-h100", 1);
  setenv("FARFAULT_DEVICES", "4", 1);
  const int in_vain = run_in_vain();
  return cmocka_run_group_tests(tests, set_up, NULL) + in_vain;
}
