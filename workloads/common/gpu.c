/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu.h. The driver API's types are what its manual says they are: CUresult, CUdevice int; CUdeviceptr 64 bits;
 * handles pointers to incomplete structures. The table below lists every driver function that the workloads call. */
#include "gpu.h"
#include "workload.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
typedef struct CUctx_st *context;
typedef struct CUmod_st *module;
typedef struct CUstream_st *stream;

/* CUDA_MEMCPY3D, and of CUmemorytype the two that are used. */
typedef struct copy_side {
  size_t x, y, z, level;
  unsigned type;
  const void *host;
  gpu_pointer device;
  void *array, *reserved;
  size_t pitch, height;
} copy_side;
typedef struct copy_3d {
  copy_side from, to;
  size_t width, height, depth;
} copy_3d;
enum { ON_HOST = 1, ON_DEVICE = 2 };

/* X(name without cu, exported symbol, parameters) */
#define DRIVER_CALLS(X)                                                                                                \
  X(Init, "cuInit", (unsigned flags))                                                                                  \
  X(GetErrorName, "cuGetErrorName", (result error, const char **text))                                                 \
  X(DeviceGet, "cuDeviceGet", (int *device, int ordinal))                                                              \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                               \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (context * out, int device))                                   \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                                             \
  X(CtxSetCurrent, "cuCtxSetCurrent", (context current))                                                               \
  X(CtxSynchronize, "cuCtxSynchronize", (void))                                                                        \
  X(ProfilerStart, "cuProfilerStart", (void))                                                                          \
  X(ProfilerStop, "cuProfilerStop", (void))                                                                            \
  X(ModuleLoadData, "cuModuleLoadData", (module * out, const void *image))                                             \
  X(ModuleUnload, "cuModuleUnload", (module unload))                                                                   \
  X(ModuleGetFunction, "cuModuleGetFunction", (gpu_kernel * out, module from, const char *name))                       \
  X(ModuleGetGlobal, "cuModuleGetGlobal_v2", (gpu_pointer * out, size_t * bytes, module from, const char *name))       \
  X(MemAlloc, "cuMemAlloc_v2", (gpu_pointer * out, size_t bytes))                                                      \
  X(MemAllocManaged, "cuMemAllocManaged", (gpu_pointer * out, size_t bytes, unsigned flags))                           \
  X(MemAllocHost, "cuMemAllocHost_v2", (void **out, size_t bytes))                                                     \
  X(MemFreeHost, "cuMemFreeHost", (void *memory))                                                                      \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (gpu_pointer to, const void *from, size_t bytes, stream on))              \
  X(MemFree, "cuMemFree_v2", (gpu_pointer address))                                                                    \
  X(MemcpyHtoD, "cuMemcpyHtoD_v2", (gpu_pointer to, const void *from, size_t bytes))                                   \
  X(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, gpu_pointer from, size_t bytes))                                         \
  X(Memcpy3D, "cuMemcpy3D_v2", (const copy_3d *copy))                                                                  \
  X(MemPrefetchAsync, "cuMemPrefetchAsync", (gpu_pointer address, size_t bytes, int to, stream on))                    \
  X(FuncSetAttribute, "cuFuncSetAttribute", (gpu_kernel kernel, int attribute, int value))                             \
  X(MemsetD32, "cuMemsetD32_v2", (gpu_pointer to, unsigned word, size_t words))                                        \
  X(StreamCreate, "cuStreamCreate", (stream * out, unsigned flags))                                                    \
  X(StreamDestroy, "cuStreamDestroy_v2", (stream gone))                                                                \
  X(StreamWaitEvent, "cuStreamWaitEvent", (stream later, gpu_time event, unsigned flags))                              \
  X(EventCreate, "cuEventCreate", (gpu_time * out, unsigned flags))                                                    \
  X(EventRecord, "cuEventRecord", (gpu_time event, stream on))                                                         \
  X(EventSynchronize, "cuEventSynchronize", (gpu_time event))                                                          \
  X(EventElapsedTime, "cuEventElapsedTime", (float *milliseconds, gpu_time from, gpu_time to))                         \
  X(EventDestroy, "cuEventDestroy_v2", (gpu_time event))                                                               \
  X(LaunchKernel, "cuLaunchKernel",                                                                                    \
    (gpu_kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
     unsigned block_z, unsigned shared_bytes, stream on, void **arguments, void **extra))

static struct {
#define X(name, symbol, parameters) result(*name) parameters;
  DRIVER_CALLS(X)
#undef X
} driver;

static void *library;
static module loaded;
static int device;

static void load_driver(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "no GPU driver here (%s)\nrun it on the virtual GPU: farfault run -- PROGRAM ARGUMENTS\n",
            dlerror());
    exit(2);
  }
  static const struct {
    const char *symbol;
    void *slot;
  } calls[] = {
#define X(name, symbol, parameters) {symbol, &driver.name},
      DRIVER_CALLS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *found = dlsym(library, calls[i].symbol);
    if (!found) {
      fprintf(stderr, "libcuda.so.1 has no %s\n", calls[i].symbol);
      exit(2);
    }
    memcpy(calls[i].slot, &found, sizeof found);
  }
}

static void check(result error, const char *call, const char *about) {
  if (!error) return;
  const char *name = "unknown error";
  driver.GetErrorName(error, &name);
  fprintf(stderr, "%s(%s): %s (%d)\n", call, about, name, error);
  exit(2);
}

static void check_bytes(result error, const char *call, size_t bytes) {
  char about[32];
  snprintf(about, sizeof about, "%zu bytes", bytes);
  check(error, call, about);
}

void gpu_open(const char *ptx) {
  context primary;
  load_driver();
  check(driver.Init(0), "cuInit", "0");
  check(driver.DeviceGet(&device, 0), "cuDeviceGet", "0");
  check(driver.DevicePrimaryCtxRetain(&primary, device), "cuDevicePrimaryCtxRetain", "0");
  check(driver.CtxSetCurrent(primary), "cuCtxSetCurrent", "primary");
  if (ptx) gpu_load(ptx);
}

void gpu_load(const char *ptx) { check(driver.ModuleLoadData(&loaded, ptx), "cuModuleLoadData", "the workload's PTX"); }

void gpu_close(void) {
  check(driver.ModuleUnload(loaded), "cuModuleUnload", "the workload's PTX");
  check(driver.DevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease", "0");
}

void gpu_measure(int begins) {
  check(begins ? driver.ProfilerStart() : driver.ProfilerStop(), begins ? "cuProfilerStart" : "cuProfilerStop", "");
}

gpu_kernel gpu_find_kernel(const char *name) {
  gpu_kernel kernel;
  check(driver.ModuleGetFunction(&kernel, loaded, name), "cuModuleGetFunction", name);
  return kernel;
}

gpu_pointer gpu_find_variable(const char *name) {
  gpu_pointer address;
  size_t bytes;
  check(driver.ModuleGetGlobal(&address, &bytes, loaded, name), "cuModuleGetGlobal", name);
  return address;
}

gpu_pointer gpu_allocate(size_t bytes) {
  gpu_pointer address;
  check_bytes(driver.MemAlloc(&address, bytes), "cuMemAlloc", bytes);
  return address;
}

void *gpu_allocate_managed(size_t bytes) {
  gpu_pointer address;
  check_bytes(driver.MemAllocManaged(&address, bytes, 1 /* CU_MEM_ATTACH_GLOBAL */), "cuMemAllocManaged", bytes);
  return (void *)(uintptr_t)address;
}

void *gpu_allocate_pinned(size_t bytes) {
  void *memory;
  check_bytes(driver.MemAllocHost(&memory, bytes), "cuMemAllocHost", bytes);
  return memory;
}

void gpu_free_pinned(void *memory) { check(driver.MemFreeHost(memory), "cuMemFreeHost", "memory"); }

void gpu_copy_pinned(gpu_pointer to, const void *from, size_t bytes) {
  check_bytes(driver.MemcpyHtoDAsync(to, from, bytes, NULL), "cuMemcpyHtoDAsync", bytes);
}

gpu_stream gpu_open_stream(void) {
  stream opened;
  check(driver.StreamCreate(&opened, 1 /* CU_STREAM_NON_BLOCKING */), "cuStreamCreate", "");
  return opened;
}

void gpu_close_stream(gpu_stream gone) { check(driver.StreamDestroy(gone), "cuStreamDestroy", ""); }

void gpu_copy_pinned_on(gpu_stream on, gpu_pointer to, const void *from, size_t bytes) {
  check_bytes(driver.MemcpyHtoDAsync(to, from, bytes, on), "cuMemcpyHtoDAsync", bytes);
}

void gpu_after(gpu_stream later, gpu_stream earlier) {
  gpu_time event;
  check(driver.EventCreate(&event, 2 /* CU_EVENT_DISABLE_TIMING */), "cuEventCreate", "");
  check(driver.EventRecord(event, earlier), "cuEventRecord", "");
  check(driver.StreamWaitEvent(later, event, 0), "cuStreamWaitEvent", "");
  check(driver.EventDestroy(event), "cuEventDestroy", "");
}

void gpu_free(gpu_pointer address) { check(driver.MemFree(address), "cuMemFree", "address"); }

void gpu_copy_to_device(gpu_pointer to, const void *from, size_t bytes) {
  check_bytes(driver.MemcpyHtoD(to, from, bytes), "cuMemcpyHtoD", bytes);
}

void gpu_copy_to_host(void *to, gpu_pointer from, size_t bytes) {
  check_bytes(driver.MemcpyDtoH(to, from, bytes), "cuMemcpyDtoH", bytes);
}

void gpu_set_words(gpu_pointer to, uint32_t word, size_t words) {
  check_bytes(driver.MemsetD32(to, word, words), "cuMemsetD32", 4 * words);
}

static copy_side near_side(const void *memory, gpu_box box) {
  return (copy_side){.type = ON_HOST, .host = memory, .pitch = box.width, .height = box.rows};
}

static copy_side far_side(gpu_pointer memory, gpu_box box) {
  return (copy_side){.type = ON_DEVICE, .device = memory, .pitch = box.pitch, .height = box.plane_rows};
}

static void copy_box(copy_side from, copy_side to, gpu_box box) {
  copy_3d copy = {.from = from, .to = to, .width = box.width, .height = box.rows, .depth = box.planes};
  check_bytes(driver.Memcpy3D(&copy), "cuMemcpy3D", box.width * box.rows * box.planes);
}

void gpu_copy_box(gpu_pointer to, const void *from, gpu_box box) { copy_box(near_side(from, box), far_side(to, box), box); }

void gpu_copy_box_to_host(void *to, gpu_pointer from, gpu_box box) {
  copy_box(far_side(from, box), near_side(to, box), box);
}

gpu_pointer gpu_upload(const void *from, size_t bytes) {
  gpu_pointer address = gpu_allocate(bytes);
  gpu_copy_to_device(address, from, bytes);
  return address;
}

void gpu_launch(gpu_kernel kernel, gpu_shape shape, void **arguments) { gpu_launch_shared(kernel, shape, 0, arguments); }

void gpu_launch_shared(gpu_kernel kernel, gpu_shape shape, unsigned shared_bytes, void **arguments) {
  workload_kernels_begin();
  check(driver.LaunchKernel(kernel, shape.grid_x, shape.grid_y, 1, shape.block_x, shape.block_y, 1, shared_bytes, NULL,
                            arguments, NULL),
        "cuLaunchKernel", "kernel");
  workload_kernels_end();
}

void gpu_allow_shared(gpu_kernel kernel, unsigned bytes) {
  check_bytes(driver.FuncSetAttribute(kernel, 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */, (int)bytes),
              "cuFuncSetAttribute", bytes);
}

/* CUaccessPolicyWindow, in the 64 bytes of a CUstreamAttrValue. */
typedef union stream_attribute {
  char bytes[64];
  struct {
    gpu_pointer base;
    size_t bytes;
    float share;
    int hit, miss;
  } window;
} stream_attribute;
enum { WINDOW = 1, PERSISTING_L2_SIZE = 6, STREAMING = 1, PERSISTING = 2 };

/* A function that only some workloads need, and drivers before CUDA 11 do not have. */
static void find(const char *symbol, void *function) {
  void *found = dlsym(library, symbol);
  if (!found) {
    fprintf(stderr, "libcuda.so.1 has no %s\n", symbol);
    exit(2);
  }
  memcpy(function, &found, sizeof found);
}

void gpu_keep(gpu_pointer address, size_t bytes, size_t set_aside, double share) {
  result (*set_limit)(int limit, size_t value), (*set)(stream on, int attribute, const stream_attribute *value);
  result (*reset)(void);
  find("cuCtxSetLimit", &set_limit);
  find("cuStreamSetAttribute", &set);
  find("cuCtxResetPersistingL2Cache", &reset);
  stream_attribute value = {{0}};
  value.window.base = address;
  value.window.bytes = bytes;
  value.window.share = (float)share;
  value.window.hit = bytes ? PERSISTING : 0;
  value.window.miss = bytes ? STREAMING : 0;
  check_bytes(set_limit(PERSISTING_L2_SIZE, set_aside), "cuCtxSetLimit", set_aside);
  check_bytes(set(NULL, WINDOW, &value), "cuStreamSetAttribute", bytes);
  if (!bytes) check(reset(), "cuCtxResetPersistingL2Cache", "");
}

int gpu_attribute(int attribute) {
  int value;
  check(driver.DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute", "device 0");
  return value;
}

void gpu_prefetch(const void *address, size_t bytes) {
  check_bytes(driver.MemPrefetchAsync((gpu_pointer)(uintptr_t)address, bytes, device, NULL), "cuMemPrefetchAsync", bytes);
}

void gpu_wait(void) {
  workload_kernels_begin();
  check(driver.CtxSynchronize(), "cuCtxSynchronize", "");
  workload_kernels_end();
}

gpu_time gpu_record(void) {
  gpu_time event;
  check(driver.EventCreate(&event, 0), "cuEventCreate", "");
  check(driver.EventRecord(event, NULL), "cuEventRecord", "");
  return event;
}

double gpu_microseconds(gpu_time from, gpu_time to) {
  float milliseconds;
  check(driver.EventSynchronize(to), "cuEventSynchronize", "");
  check(driver.EventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime", "");
  check(driver.EventDestroy(from), "cuEventDestroy", "");
  check(driver.EventDestroy(to), "cuEventDestroy", "");
  return 1000 * (double)milliseconds;
}
