/* SPDX-License-Identifier: Apache-2.0 */
/* Device, error and version management of the CUDA runtime (CUDA Runtime API, "Device Management", "Error Handling",
 * "Peer Device Memory Access", "Version Management", "Driver Entry Point Access").
 *
 * All devices are the same machine. A call for a device that does not exist is cudaErrorInvalidDevice. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_peer.h"
#include "driver/errors.h"
#include "driver/properties.h"

static cudaFuncCache cache_config[ENGINE_DEVICES_MAX];

static cudaError_t check_device(int device) {
  cudaError_t error = engine_start();
  return error ? error : cudart_is_device(device) ? cudaSuccess : cudaErrorInvalidDevice;
}

bool cudart_is_device(int device) { return device >= 0 && (uint32_t)device < engine_devices(); }

/* ---- which device ---- */

CUDART_API cudaError_t cudaGetDeviceCount(int *count) {
  if (!count) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  *count = error == cudaErrorInitializationError ? 0 : (int)engine_devices();
  return engine_return(error);
}

/* Also while an error is sticky, so that the device where it arose can be reset. */
CUDART_API cudaError_t cudaSetDevice(int device) {
  cudaError_t error = engine_start();
  if (!engine_machine() || !cudart_is_device(device)) return engine_return(error ? error : cudaErrorInvalidDevice);
  engine_device_choose(device);
  return engine_return(error);
}

CUDART_API cudaError_t cudaGetDevice(int *device) {
  if (!device) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  if (!error) *device = engine_device_current();
  return engine_return(error);
}

/* as NVIDIA's runtimes take them */
#define FLAGS_MASK (CUDART_MAJOR == 11 ? 0x1fu : (unsigned)cudaDeviceMask)

static cudaError_t set_flags(unsigned flags, int device) {
  unsigned schedule = flags & cudaDeviceScheduleMask;
  if (flags & ~FLAGS_MASK || (schedule & (schedule - 1))) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (!error) engine_device_flags_set(device, flags);
  return error;
}

CUDART_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return engine_return(set_flags(flags, engine_device_current()));
}

CUDART_API cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  if (!flags) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  if (!error && !engine_context_flags(flags)) /* else of the driver API's context, where mapping is not implicit */
    *flags = engine_device_flags(engine_device_current()) | cudaDeviceMapHost;
  return engine_return(error);
}

CUDART_API cudaError_t cudaInitDevice(int device, unsigned wanted_flags, unsigned flags) {
  cudaError_t error = check_device(device);
  if (!error && flags & 1) error = set_flags(wanted_flags, device); /* 1: cudaInitDeviceFlagsAreValid */
  return engine_return(error);
}

CUDART_API cudaError_t cudaSetValidDevices(int *devices, int count) {
  if (count < 0 || (count && !devices)) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  if (!error && (uint32_t)count > engine_devices()) error = cudaErrorInvalidValue;
  for (int i = 0; i < count && !error; i++) error = check_device(devices[i]);
  if (!error) engine_device_prefer(count ? devices[0] : 0);
  return engine_return(error);
}

CUDART_API cudaError_t cudaChooseDevice(int *device, const void *properties) {
  if (!device || !properties) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = engine_start();
  if (!error) *device = 0;
  return engine_return(error);
}

/* ---- news of it ---- */

CUDART_API cudaError_t cudaDeviceRegisterAsyncNotification(int device, engine_notify_call *call, void *data,
                                                           engine_notify **registered) {
  (void)data; /* for a call that never comes */
  cudaError_t error = check_device(device);
  return engine_return(error ? error : engine_notify_add(device, call, registered));
}
CUDART_API cudaError_t cudaDeviceUnregisterAsyncNotification(int device, engine_notify *registered) {
  cudaError_t error = check_device(device);
  return engine_return(error ? error : engine_notify_remove(device, registered));
}

/* ---- what it is ---- */

CUDART_API cudaError_t cudaGetDeviceProperties(void *properties, int device) {
  if (!properties) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(device);
  if (error) return engine_return(error);
#if CUDART_MAJOR >= 13
  cudaDeviceProp_13 *filled = properties;
  properties_fill_13(engine_machine(), device, engine_gpu_memory(), filled);
#else
  cudaDeviceProp_11 *filled = properties;
  properties_fill_11(engine_machine(), device, engine_gpu_memory(), filled);
#endif
  engine_capability_tell(__builtin_return_address(0), &filled->major, &filled->minor);
  return cudaSuccess;
}

#if CUDART_MAJOR == 12
CUDART_API cudaError_t cudaGetDeviceProperties_v2(void *properties, int device);
CUDART_API cudaError_t cudaGetDeviceProperties_v2(void *properties, int device) {
  if (!properties) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(device);
  if (error) return engine_return(error);
  cudaDeviceProp_12 *filled = properties;
  properties_fill_12(engine_machine(), device, engine_gpu_memory(), filled);
  engine_capability_tell(__builtin_return_address(0), &filled->major, &filled->minor);
  return cudaSuccess;
}
#endif

CUDART_API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  if (!value) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(device);
  if (!error && !properties_attribute(engine_machine(), device, (int)attribute, value)) error = cudaErrorInvalidValue;
  if (error) return engine_return(error);
  int other = 0;
  if ((int)attribute == ATTRIBUTE_COMPUTE_MAJOR) engine_capability_tell(__builtin_return_address(0), value, &other);
  if ((int)attribute == ATTRIBUTE_COMPUTE_MINOR) engine_capability_tell(__builtin_return_address(0), &other, value);
  return cudaSuccess;
}

CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  cudaError_t error = engine_start();
  if (!error && least) *least = ENGINE_PRIORITY_LEAST;
  if (!error && greatest) *greatest = ENGINE_PRIORITY_GREATEST;
  return engine_return(error);
}

/* "the maximum length of the string that may be returned": a longer one is cut off. */
CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  if (!text || size <= 0) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(device);
  char address[16];
  if (!error) {
    properties_bus_write(device, address);
    snprintf(text, (size_t)size, "%s", address);
  }
  return engine_return(error);
}

CUDART_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
  int found = device && text ? properties_bus_read(text) : -1;
  if (found < 0) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(found);
  if (!error) *device = found;
  return engine_return(error);
}

/* ---- what it does ---- */

CUDART_API cudaError_t cudaDeviceSynchronize(void) {
  return engine_return(engine_device_synchronize(engine_device_current()));
}

CUDART_API cudaError_t cudaDeviceReset(void) {
  int device = engine_device_current();
  engine_device_flags_set(device, 0);
  cache_config[device] = cudaFuncCachePreferNone;
  return engine_return(engine_reset(device));
}

CUDART_API cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
  return engine_return(engine_limit_get(limit, value));
}

CUDART_API cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return engine_return(engine_limit_set(limit, value));
}

CUDART_API cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
  cudaError_t error = config ? engine_start() : cudaErrorInvalidValue;
  if (!error) *config = cache_config[engine_device_current()];
  return engine_return(error);
}

CUDART_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  cudaError_t error = (unsigned)config <= cudaFuncCachePreferEqual ? engine_start() : cudaErrorInvalidValue;
  if (!error) cache_config[engine_device_current()] = config;
  return engine_return(error);
}

/* Banks are four bytes wide on every device since compute capability 5.0; setting another width changes nothing. */
CUDART_API cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
  cudaError_t error = config ? engine_start() : cudaErrorInvalidValue;
  if (!error) *config = cudaSharedMemBankSizeFourByte;
  return engine_return(error);
}

CUDART_API cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return engine_return((unsigned)config <= cudaSharedMemBankSizeEightByte ? engine_start() : cudaErrorInvalidValue);
}

CUDART_API cudaError_t cudaProfilerStart(void) { return engine_return(engine_profile(true)); }
CUDART_API cudaError_t cudaProfilerStop(void) { return engine_return(engine_profile(false)); }
CUDART_API cudaError_t cudaCtxResetPersistingL2Cache(void) { return engine_return(engine_l2_reset()); }

#if CUDART_MAJOR < 13 /* the names of CUDA 3, which lived until CUDA 12 */
CUDART_API cudaError_t cudaThreadSynchronize(void);
CUDART_API cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
CUDART_API cudaError_t cudaThreadExit(void);
CUDART_API cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }
CUDART_API cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value);
CUDART_API cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
CUDART_API cudaError_t cudaThreadGetLimit(size_t *value, cudaLimit limit);
CUDART_API cudaError_t cudaThreadGetLimit(size_t *value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
CUDART_API cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config);
CUDART_API cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }
CUDART_API cudaError_t cudaThreadGetCacheConfig(cudaFuncCache *config);
CUDART_API cudaError_t cudaThreadGetCacheConfig(cudaFuncCache *config) { return cudaDeviceGetCacheConfig(config); }
#endif

/* ---- peers: by the machine's links ---- */

CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!can) return engine_return(cudaErrorInvalidValue);
  cudaError_t error = check_device(device);
  if (!error) error = check_device(peer);
  if (!error) *can = engine_peer_possible(device, peer);
  return engine_return(error);
}

CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags) return engine_return(cudaErrorInvalidValue);
  return engine_return(engine_peer_enable(engine_device_current(), peer));
}

CUDART_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return engine_return(engine_peer_disable(engine_device_current(), peer));
}

CUDART_API cudaError_t cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer) {
  cudaError_t error = value ? check_device(device) : cudaErrorInvalidValue;
  if (!error) error = check_device(peer);
  if (!error && device == peer) error = cudaErrorInvalidDevice;
  if (!error && (attribute < 1 || attribute > 5)) error = cudaErrorInvalidValue;
  if (!error) *value = engine_peer_attribute(attribute, device, peer);
  return engine_return(error);
}

/* ---- versions and errors ---- */

CUDART_API cudaError_t cudaDriverGetVersion(int *version) {
  if (!version) return engine_return(cudaErrorInvalidValue);
  *version = (int)engine_driver_version();
  return cudaSuccess;
}

enum { RUNTIME_VERSION = CUDART_MAJOR == 11 ? 11080 : CUDART_MAJOR == 12 ? 12090 : 13000 };

CUDART_API cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return engine_return(cudaErrorInvalidValue);
  *version = RUNTIME_VERSION;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaGetLastError(void) { return engine_last_error(true); }
CUDART_API cudaError_t cudaPeekAtLastError(void) { return engine_last_error(false); }
CUDART_API const char *cudaGetErrorName(cudaError_t error) { return cuda_error_name((int)error); }
CUDART_API const char *cudaGetErrorString(cudaError_t error) { return cuda_error_string((int)error); }

CUDART_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return (cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = kind};
}

/* ---- the driver's functions by name ---- */

typedef int (*get_proc_address)(const char *symbol, void **function, int version, uint64_t flags, int *status);

static cudaError_t entry_point(const char *symbol, void **function, int version, unsigned long long flags,
                               int *status) {
  if (!symbol || !function) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (error) return error;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *asker = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  get_proc_address ask = NULL;
  memcpy(&ask, &asker, sizeof ask);
  void *address = NULL;
  int found = 1; /* cudaDriverEntryPointSymbolNotFound */
  /* of a newer driver, or flags */
  if (ask && ask(symbol, &address, version, flags, &found)) return cudaErrorInvalidValue;
  *function = address;
  if (status) *status = found;
  return cudaSuccess;
}

/* cudaEnableDefault, which is 0: as the program was compiled. */
static unsigned long long flags_of(unsigned long long flags, bool own) { return flags || !own ? flags : 2; }

/* A program without a version of its own gets the forms of functions that its runtime knows, however new the driver. */
static int default_version(void) {
  int driver = (int)engine_driver_version();
  return driver < RUNTIME_VERSION ? driver : RUNTIME_VERSION;
}

#if CUDART_MAJOR == 11 /* has no status, and fails instead */
static cudaError_t entry_point_11(const char *symbol, void **function, unsigned long long flags) {
  cudaError_t error = entry_point(symbol, function, default_version(), flags, NULL);
  return error || *function ? error : cudaErrorSymbolNotFound;
}
CUDART_PAIR(cudaGetDriverEntryPoint, _ptsz, (const char *symbol, void **function, unsigned long long flags),
            entry_point_11(symbol, function, flags_of(flags, own)))
#else
CUDART_PAIR(cudaGetDriverEntryPoint, _ptsz,
            (const char *symbol, void **function, unsigned long long flags, int *status),
            entry_point(symbol, function, default_version(), flags_of(flags, own), status))
#endif
CUDART_PAIR(cudaGetDriverEntryPointByVersion, _ptsz,
            (const char *symbol, void **function, unsigned version, unsigned long long flags, int *status),
            entry_point(symbol, function, (int)version, flags_of(flags, own), status))
