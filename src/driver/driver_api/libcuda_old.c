/* SPDX-License-Identifier: Apache-2.0 */
/* What driver programs of earlier versions call: names without a version that meant the same as today's, and launches
 * in the way of CUDA 2 and 3 (Driver API: "Execution Control [DEPRECATED]"), where a function remembers its block, its
 * shared memory and its parameters until it is launched.
 *
 * The forms whose addresses had 32 bits are not here: there is no memory that they could name. What always holds: what
 * is remembered of a function is found by its handle, and a handle is asked for validity before it is used. */
#include "base/forks.h"
#include "driver/driver_api/libcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MAX_PARAMETERS 32764u /* bytes, as a kernel may have */

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuLinkCreate_v2(unsigned count, const int *options, void **values, CUlinkState *state);
CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count,
                          const int *options, void **values);
CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, const int *options,
                          void **values);

LIBCUDA_CALL(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device)) {
  return cuCtxCreate_v2(context, flags, device);
}
LIBCUDA_CALL(cuCtxDestroy, (CUcontext context)) { return cuCtxDestroy_v2(context); }
LIBCUDA_CALL(cuCtxPushCurrent, (CUcontext context)) { return cuCtxPushCurrent_v2(context); }
LIBCUDA_CALL(cuCtxPopCurrent, (CUcontext * context)) { return cuCtxPopCurrent_v2(context); }
LIBCUDA_CALL(cuStreamDestroy, (CUstream stream)) { return cuStreamDestroy_v2(stream); }
LIBCUDA_CALL(cuEventDestroy, (CUevent event)) { return cuEventDestroy_v2(event); }
LIBCUDA_CALL(cuLinkCreate, (unsigned count, const int *options, void **values, CUlinkState *state)) {
  return cuLinkCreate_v2(count, options, values, state);
}
LIBCUDA_CALL(cuLinkAddData, (CUlinkState state, int type, void *data, size_t size, const char *name, unsigned count,
                             const int *options, void **values)) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}
LIBCUDA_CALL(cuLinkAddFile,
             (CUlinkState state, int type, const char *path, unsigned count, const int *options, void **values)) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

/* ---- launches that are prepared ---- */

typedef struct prepared { /* of one function */
  CUfunction function;
  unsigned block[3], shared;
  size_t bytes;     /* of the parameters */
  char *parameters; /* MAX_PARAMETERS, zero where nothing was set; NULL: none yet */
} prepared;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static FF_VEC(prepared) functions; /* as many as a program has launched this way; never freed */

/* With the lock held. */
static prepared *find(CUfunction function) {
  for (size_t i = 0; i < functions.count; i++)
    if (functions.items[i].function == function) return &functions.items[i];
  FF_PUSH(&functions, ((prepared){.function = function, .block = {1, 1, 1}}));
  return &functions.items[functions.count - 1];
}

static CUresult check(CUfunction function) {
  LIBCUDA_TRY(libcuda_enter());
  return engine_function_valid(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

LIBCUDA_CALL(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z)) {
  LIBCUDA_TRY(check(function));
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  memcpy(find(function)->block, (unsigned[3]){(unsigned)x, (unsigned)y, (unsigned)z}, sizeof(unsigned[3]));
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuFuncSetSharedSize, (CUfunction function, unsigned bytes)) {
  LIBCUDA_TRY(check(function));
  pthread_mutex_lock(&lock);
  find(function)->shared = bytes;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuParamSetSize, (CUfunction function, unsigned bytes)) {
  LIBCUDA_TRY(check(function));
  if (bytes > MAX_PARAMETERS) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  find(function)->bytes = bytes;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static CUresult set_parameter(CUfunction function, int offset, const void *value, size_t bytes) {
  LIBCUDA_TRY(check(function));
  if (offset < 0 || !value || bytes > MAX_PARAMETERS || (size_t)offset > MAX_PARAMETERS - bytes)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  prepared *of = find(function);
  if (!of->parameters) of->parameters = ff_alloc(MAX_PARAMETERS);
  memcpy(of->parameters + offset, value, bytes);
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuParamSeti, (CUfunction function, int offset, unsigned value)) {
  return set_parameter(function, offset, &value, sizeof value);
}
LIBCUDA_CALL(cuParamSetf, (CUfunction function, int offset, float value)) {
  return set_parameter(function, offset, &value, sizeof value);
}
LIBCUDA_CALL(cuParamSetv, (CUfunction function, int offset, const void *value, unsigned bytes)) {
  return set_parameter(function, offset, value, bytes);
}

static CUresult launch(CUfunction function, int width, int height, CUstream stream) {
  LIBCUDA_TRY(check(function));
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  char *parameters = ff_alloc(MAX_PARAMETERS);
  pthread_mutex_lock(&lock);
  prepared now = *find(function);
  if (now.parameters) memcpy(parameters, now.parameters, now.bytes);
  pthread_mutex_unlock(&lock);
  engine_launch request = {.function = function,
                           .grid = {(uint32_t)width, (uint32_t)height, 1},
                           .block = {now.block[0], now.block[1], now.block[2]},
                           .dynamic_shared = now.shared,
                           .stream = engine_stream_handle(stream, false),
                           .packed = parameters,
                           .packed_bytes = now.bytes};
  CUresult result = libcuda_result(engine_launch_run(&request));
  free(parameters);
  return result;
}
LIBCUDA_CALL(cuLaunch, (CUfunction function)) { return launch(function, 1, 1, NULL); }
LIBCUDA_CALL(cuLaunchGrid, (CUfunction function, int width, int height)) {
  return launch(function, width, height, NULL);
}
LIBCUDA_CALL(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream)) {
  return launch(function, width, height, stream);
}
