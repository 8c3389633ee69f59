/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver API as libcuda.so.1 exports it, on top of engine.h: types, numbers, contexts, for libcuda_*.c.
 *
 * Written from the CUDA Driver API reference; NVIDIA's headers are not needed. What always holds: a handle is the
 * engine's own (streams, events), or an engine pointer under another name (CUmodule and CUlibrary: engine_module;
 * CUfunction and CUkernel: engine_function), so runtime and driver share them; a CUdeviceptr is an address of this
 * process. A symbol's suffix says its version: cuMemAlloc_v2 is what a program's cuMemAlloc becomes.
 *
 *   not initialised --cuInit, or the runtime's first call--> no context current --cuCtxCreate, cuCtxSetCurrent...--> context current
 *
 * Calls before that are CUDA_ERROR_NOT_INITIALIZED, calls that need a context CUDA_ERROR_INVALID_CONTEXT. All
 * contexts of a device see the same memory; destroying one frees nothing, unless a kernel's fault has made it unusable:
 * then the device is reset, as a new context would find it. */
#ifndef FF_DRIVER_LIBCUDA_H
#define FF_DRIVER_LIBCUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/engine/engine.h"

#define LIBCUDA __attribute__((visibility("default")))

typedef enum cudaResult { /* the numbers that are returned here by name; errors.def has them all */
                          CUDA_SUCCESS = 0,
                          CUDA_ERROR_INVALID_VALUE = 1,
                          CUDA_ERROR_OUT_OF_MEMORY = 2,
                          CUDA_ERROR_NOT_INITIALIZED = 3,
                          CUDA_ERROR_INVALID_DEVICE = 101,
                          CUDA_ERROR_INVALID_IMAGE = 200,
                          CUDA_ERROR_INVALID_CONTEXT = 201,
                          CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
                          CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
                          CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
                          CUDA_ERROR_INVALID_PTX = 218,
                          CUDA_ERROR_FILE_NOT_FOUND = 301,
                          CUDA_ERROR_INVALID_HANDLE = 400,
                          CUDA_ERROR_NOT_FOUND = 500,
                          CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
                          CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
                          CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
                          CUDA_ERROR_NOT_PERMITTED = 800,
                          CUDA_ERROR_NOT_SUPPORTED = 801,
                          CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
                          CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct engine_green *CUgreenCtx;
typedef struct engine_module *CUmodule, *CUlibrary;
typedef struct engine_function *CUfunction, *CUkernel;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUuuid {
  char bytes[16];
} CUuuid;

typedef enum CUmemorytype {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE,
  CU_MEMORYTYPE_ARRAY,
  CU_MEMORYTYPE_UNIFIED
} CUmemorytype;

typedef struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D { /* CUDA_MEMCPY3D_PEER has the contexts where the reserved pointers are */
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray, *srcReserved;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray, *dstReserved;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  cudaLaunchAttribute *attrs; /* the same numbers and layout as the runtime's */
  unsigned numAttrs;
} CUlaunchConfig;

typedef cudaMemLocation CUmemLocation;

typedef struct CUdevprop {
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch,
      regsPerBlock, clockRate, textureAlign;
} CUdevprop;

enum { /* CUjit_option: a limit, and those that give something back */
       CU_JIT_MAX_REGISTERS = 0,
       CU_JIT_WALL_TIME = 2,
       CU_JIT_INFO_LOG_BUFFER = 3,
       CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
       CU_JIT_ERROR_LOG_BUFFER = 5,
       CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* ---- for libcuda_*.c ---- */

/* CUDA_SUCCESS if cuInit was called (libcuda_ready), and if moreover a context is current (libcuda_enter). */
CUresult libcuda_ready(void);
CUresult libcuda_enter(void);
/* As libcuda_enter; but a stream (other than NULL, the legacy and the thread's own) or an event has a context, too, so
 * that none need be current. */
CUresult libcuda_enter_by(const void *handle);
CUresult libcuda_device(CUdevice device);                      /* ready, and the device exists */
CUcontext libcuda_current(void);                               /* this thread's context; NULL: none */
CUresult libcuda_primary(CUdevice device, CUcontext *context); /* its primary context, without a hold on it */
CUcontext libcuda_context_on(int device); /* this thread's, if it is of that device, else the primary one */
CUdevice libcuda_device_of(CUcontext context);
bool libcuda_is_live(CUcontext context);
CUgreenCtx libcuda_green_of(CUcontext context); /* NULL: it is none; the context is live */
/* The context that stands for it, made at the first call; NULL: it is gone. */
CUcontext libcuda_green_context(CUgreenCtx green);

static inline CUresult libcuda_result_from(const char *call, cudaError_t error) {
  return (CUresult)engine_driver_result_from(call, error);
}
#define libcuda_result(error) libcuda_result_from(__func__, error)

#define LIBCUDA_TRY(expression)              \
  do {                                       \
    CUresult tried = (expression);           \
    if (tried != CUDA_SUCCESS) return tried; \
  } while (0)

/* Defines NAME and NAME##SUFFIX from an expression in which `own` says whether NULL is the thread's own stream. */
#define LIBCUDA_PAIR_AFTER(ENTER, NAME, SUFFIX, PARAMETERS, EXPRESSION) \
  LIBCUDA CUresult NAME PARAMETERS;                                     \
  LIBCUDA CUresult NAME##SUFFIX PARAMETERS;                             \
  LIBCUDA CUresult NAME PARAMETERS {                                    \
    const bool own = false;                                             \
    (void)own;                                                          \
    LIBCUDA_TRY(ENTER);                                                 \
    return EXPRESSION;                                                  \
  }                                                                     \
  LIBCUDA CUresult NAME##SUFFIX PARAMETERS {                            \
    const bool own = true;                                              \
    (void)own;                                                          \
    LIBCUDA_TRY(ENTER);                                                 \
    return EXPRESSION;                                                  \
  }
#define LIBCUDA_PAIR(NAME, SUFFIX, PARAMETERS, EXPRESSION) \
  LIBCUDA_PAIR_AFTER(libcuda_enter(), NAME, SUFFIX, PARAMETERS, EXPRESSION)
/* the same, in the context of the parameter `stream` */
#define LIBCUDA_STREAM_PAIR(NAME, SUFFIX, PARAMETERS, EXPRESSION) \
  LIBCUDA_PAIR_AFTER(libcuda_enter_by(stream), NAME, SUFFIX, PARAMETERS, EXPRESSION)

/* Declares and defines one function: LIBCUDA_CALL(cuInit, (unsigned flags)) { ... } */
#define LIBCUDA_CALL(NAME, PARAMETERS) \
  LIBCUDA CUresult NAME PARAMETERS;    \
  LIBCUDA CUresult NAME PARAMETERS

/* Writes the reason of a failure where the caller's options want it, and empties the info log. */
void libcuda_jit_report(unsigned count, const int *options, void **values, const char *message);

/* cuLaunchKernel's `extra`: a list {key, value, ..., 0}; 1 gives the parameter block, 2 points to its size. */
CUresult libcuda_read_extra(void **extra, engine_launch *launch);

#endif
