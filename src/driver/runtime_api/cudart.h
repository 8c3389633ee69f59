/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime's functions as libcudart exports them, for cudart_*.c and the tests.
 *
 * Semantics are NVIDIA's (CUDA Runtime API reference, "Modules"); what a comment here does not say is as there.
 * Every function returns through engine_return, so a failure is the thread's last error, but for the
 * few that the manual excepts (cudaGetLastError, cudaPeekAtLastError, cudaGetErrorName, cudaGetErrorString).
 *
 * Two forms of one call: the plain one means the legacy default stream by NULL, the one with _ptsz or _ptds the calling
 * thread's own (nvcc --default-stream per-thread). */
#ifndef FF_DRIVER_CUDART_H
#define FF_DRIVER_CUDART_H

#include "driver/engine/engine.h"
#include "driver/engine/engine_notify.h"

#define CUDART_API __attribute__((visibility("default")))

/* Defines NAME and NAME##SUFFIX; EXPRESSION may use `own`: whether NULL is the thread's stream. */
#define CUDART_PAIR(NAME, SUFFIX, PARAMETERS, EXPRESSION) \
  CUDART_API cudaError_t NAME PARAMETERS {                \
    const bool own = false;                               \
    (void)own;                                            \
    return engine_return(EXPRESSION);                     \
  }                                                       \
  CUDART_API cudaError_t NAME##SUFFIX PARAMETERS {        \
    const bool own = true;                                \
    (void)own;                                            \
    return engine_return(EXPRESSION);                     \
  }
#define CUDART_DECLARE(NAME, SUFFIX, PARAMETERS) \
  cudaError_t NAME PARAMETERS;                   \
  cudaError_t NAME##SUFFIX PARAMETERS;

/* cudart_register.c: what nvcc's host code calls */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                            void *tid, void *bid, void *block, void *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *device, const char *name, int external,
                              size_t size, int constant, int global);
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size);
void __cudaRegisterUnifiedTable(void **handle, void *table);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
engine_function *cudart_function(const void *function); /* a host stub's address or a kernel handle; NULL: neither */
/* cudart_function, with the error of what is neither. */
cudaError_t cudart_function_find(const void *named, engine_function **function);
const void *cudart_function_host(const engine_function *function); /* the stub it was registered with; NULL: none */
engine_variable *cudart_variable(const void *symbol);              /* a host variable's address; NULL: not one */
bool cudart_is_device(int device);                                 /* is it there? After engine_start */

/* cudart_launch.c */
CUDART_DECLARE(__cudaLaunchKernel, _ptsz,
               (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
CUDART_DECLARE(cudaLaunchKernel, _ptsz,
               (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
CUDART_DECLARE(cudaLaunchCooperativeKernel, _ptsz,
               (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream))
CUDART_DECLARE(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *config, const void *function, void **arguments))
CUDART_DECLARE(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data))
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig config);
cudaError_t cudaFuncGetName(const char **name, const void *function);
cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   size_t shared, unsigned flags);
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads);

/* cudart_memory.c */
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags);
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeHost(void *pointer);
CUDART_DECLARE(cudaFreeAsync, _ptsz, (void *pointer, cudaStream_t stream))
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaHostGetFlags(unsigned *flags, void *host);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
#if CUDART_MAJOR >= 13
CUDART_DECLARE(cudaMemPrefetchAsync, _ptsz,
               (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream))
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location);
#else
CUDART_DECLARE(cudaMemPrefetchAsync, _ptsz, (const void *pointer, size_t bytes, int device, cudaStream_t stream))
CUDART_DECLARE(cudaMemPrefetchAsync_v2, _ptsz,
               (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream))
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device);
cudaError_t cudaMemAdvise_v2(const void *pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location);
#endif

/* cudart_pool.c */
CUDART_DECLARE(cudaMallocAsync, _ptsz, (void **pointer, size_t size, cudaStream_t stream))
CUDART_DECLARE(cudaMallocFromPoolAsync, _ptsz, (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream))
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const void *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count);
cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t pool, cudaMemLocation *location);

/* cudart_ipc.c */
typedef struct cudaIpcHandle { /* cudaIpcMemHandle_t and cudaIpcEventHandle_t */
  char reserved[ENGINE_IPC_HANDLE_BYTES];
} cudaIpcHandle;
cudaError_t cudaIpcGetMemHandle(cudaIpcHandle *handle, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcHandle handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaIpcGetEventHandle(cudaIpcHandle *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcHandle handle);

/* cudart_copy.c */
cudaError_t cudart_copy_params(const cudaMemcpy3DParms *p, engine_copy *copy); /* checked; without a stream */
/* of a range in a variable */
cudaError_t cudart_symbol_part(const void *symbol, size_t bytes, size_t offset, uint64_t *address);
CUDART_DECLARE(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpyAsync, _ptsz,
               (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpy2D, _ptds,
               (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpy2DAsync, _ptsz,
               (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms *p))
CUDART_DECLARE(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms *p, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms *p))
CUDART_DECLARE(cudaMemcpy3DPeerAsync, _ptsz, (const cudaMemcpy3DPeerParms *p, cudaStream_t stream))
CUDART_DECLARE(cudaMemcpyToSymbol, _ptds,
               (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpyFromSymbol, _ptds,
               (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind))
CUDART_DECLARE(cudaMemcpyToSymbolAsync, _ptsz,
               (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                cudaStream_t stream))
CUDART_DECLARE(cudaMemcpyFromSymbolAsync, _ptsz,
               (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream))
CUDART_DECLARE(cudaMemset, _ptds, (void *to, int value, size_t bytes))
CUDART_DECLARE(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream))
CUDART_DECLARE(cudaMemset2D, _ptds, (void *to, size_t pitch, int value, size_t width, size_t height))
CUDART_DECLARE(cudaMemset2DAsync, _ptsz,
               (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream))
CUDART_DECLARE(cudaMemset3D, _ptds, (cudaPitchedPtr to, int value, cudaExtent extent))
CUDART_DECLARE(cudaMemset3DAsync, _ptsz, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream))
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);

/* cudart_stream.c */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
CUDART_DECLARE(cudaStreamSynchronize, _ptsz, (cudaStream_t stream))
CUDART_DECLARE(cudaStreamQuery, _ptsz, (cudaStream_t stream))
CUDART_DECLARE(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags))
CUDART_DECLARE(cudaStreamAddCallback, _ptsz,
               (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags))
CUDART_DECLARE(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags))
CUDART_DECLARE(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority))
CUDART_DECLARE(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id))
CUDART_DECLARE(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device))
CUDART_DECLARE(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from))
CUDART_DECLARE(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags))
CUDART_DECLARE(cudaStreamSetAttribute, _ptsz,
               (cudaStream_t stream, int attribute, const cudaLaunchAttributeValue *value))
CUDART_DECLARE(cudaStreamGetAttribute, _ptsz, (cudaStream_t stream, int attribute, cudaLaunchAttributeValue *value))
CUDART_DECLARE(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream))
CUDART_DECLARE(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags))
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop);

/* cudart_range.c */
cudaError_t cudaMemRangeGetAttribute(void *data, size_t bytes, cudaMemRangeAttribute attribute, const void *pointer,
                                     size_t range);
cudaError_t cudaMemRangeGetAttributes(void **data, size_t *bytes, cudaMemRangeAttribute *attributes, size_t count,
                                      const void *pointer, size_t range);

/* cudart_device.c */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags);
cudaError_t cudaDeviceRegisterAsyncNotification(int device, engine_notify_call *call, void *data,
                                                engine_notify **registered);
cudaError_t cudaDeviceUnregisterAsyncNotification(int device, engine_notify *registered);
cudaError_t cudaSetValidDevices(int *devices, int count);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned *flags);
cudaError_t cudaChooseDevice(int *device, const void *properties);
cudaError_t cudaGetDeviceProperties(void *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind);
#if CUDART_MAJOR == 11
CUDART_DECLARE(cudaGetDriverEntryPoint, _ptsz, (const char *symbol, void **function, unsigned long long flags))
#else
CUDART_DECLARE(cudaGetDriverEntryPoint, _ptsz,
               (const char *symbol, void **function, unsigned long long flags, int *status))
#endif
CUDART_DECLARE(cudaGetDriverEntryPointByVersion, _ptsz,
               (const char *symbol, void **function, unsigned version, unsigned long long flags, int *status))

#endif
