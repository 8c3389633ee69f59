/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events (Driver API: "Stream Management", "Event Management"), thin on the engine's. */
#include "driver/engine/engine_graph.h"
#include "driver/driver_api/libcuda.h"

#include <stdlib.h>

#include "base/memory.h"

/* ---- streams ---- */

static CUresult stream_create(CUstream *stream, unsigned flags, int priority) {
  LIBCUDA_TRY(libcuda_enter());
  if (!stream || flags & ~(unsigned)cudaStreamNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_stream_create(flags, priority, stream));
}
LIBCUDA_CALL(cuStreamCreate, (CUstream * stream, unsigned flags)) { return stream_create(stream, flags, 0); }
LIBCUDA_CALL(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority)) {
  return stream_create(stream, flags, priority);
}

LIBCUDA_CALL(cuStreamDestroy_v2, (CUstream stream)) {
  LIBCUDA_TRY(libcuda_enter_by(stream));
  return stream ? libcuda_result(engine_stream_destroy(stream)) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult describe(CUstream stream, bool own, engine_stream_info *info) {
  return libcuda_result(engine_stream_describe(engine_stream_handle(stream, own), info));
}

static CUresult stream_priority(CUstream stream, bool own, int *priority) {
  engine_stream_info info;
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *priority = info.priority;
  return CUDA_SUCCESS;
}

static CUresult stream_flags(CUstream stream, bool own, unsigned *flags) {
  engine_stream_info info;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *flags = info.flags;
  return CUDA_SUCCESS;
}

static CUresult stream_id(CUstream stream, bool own, unsigned long long *id) {
  engine_stream_info info;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *id = info.id;
  return CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, bool own, CUcontext *context) {
  engine_stream_info info;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *context = info.green ? libcuda_green_context(info.green) : libcuda_context_on(info.device);
  return CUDA_SUCCESS;
}

static CUresult stream_contexts(CUstream stream, bool own, CUcontext *context, CUgreenCtx *green) {
  engine_stream_info info;
  if (!context || !green) return CUDA_ERROR_INVALID_VALUE;
  if (engine_stream_handle(stream, own) == cudaStreamPerThread && libcuda_green_of(libcuda_current()))
    return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *green = info.green;
  return info.green ? libcuda_primary(info.device, context) : stream_context(stream, own, context);
}

static CUresult stream_green(CUstream stream, CUgreenCtx *green) {
  engine_stream_info info;
  if (!green) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, false, &info));
  *green = info.green;
  return CUDA_SUCCESS;
}

static CUresult stream_device(CUstream stream, bool own, CUdevice *device) {
  engine_stream_info info;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(describe(stream, own, &info));
  *device = info.device;
  return CUDA_SUCCESS;
}

LIBCUDA_STREAM_PAIR(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),
                    stream_priority(stream, own, priority))
LIBCUDA_STREAM_PAIR(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags), stream_flags(stream, own, flags))
LIBCUDA_STREAM_PAIR(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id), stream_id(stream, own, id))
LIBCUDA_STREAM_PAIR(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *context), stream_context(stream, own, context))
LIBCUDA_STREAM_PAIR(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *context, CUgreenCtx *green),
                    stream_contexts(stream, own, context, green))
LIBCUDA_CALL(cuStreamGetGreenCtx, (CUstream stream, CUgreenCtx *green)) {
  LIBCUDA_TRY(libcuda_enter_by(stream));
  return stream_green(stream, green);
}
LIBCUDA_STREAM_PAIR(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device), stream_device(stream, own, device))
LIBCUDA_STREAM_PAIR(cuStreamSynchronize, _ptsz, (CUstream stream),
                    libcuda_result(engine_stream_synchronize(engine_stream_handle(stream, own))))
LIBCUDA_STREAM_PAIR(cuStreamQuery, _ptsz, (CUstream stream),
                    libcuda_result(engine_stream_query(engine_stream_handle(stream, own))))
LIBCUDA_STREAM_PAIR(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
                    flags & ~1u
                        ? CUDA_ERROR_INVALID_VALUE
                        : libcuda_result(flags ? engine_stream_wait_external(engine_stream_handle(stream, own), event)
                                               : engine_stream_wait(engine_stream_handle(stream, own), event)))

/* Which stream may touch a managed allocation does not change what is right here: checked and accepted. */
static CUresult attach(CUdeviceptr pointer, size_t bytes, unsigned flags) {
  bool one = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  engine_pointer found = engine_pointer_find(pointer);
  bool whole = !bytes || bytes == found.bytes;
  return one && whole && found.memory == ENGINE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_STREAM_PAIR(cuStreamAttachMemAsync, _ptsz, (CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned flags),
                    attach(pointer, bytes, flags))

/* ---- host functions ---- */

static CUresult launch_host(CUstream stream, bool own, cudaHostFn_t function, void *data) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_stream_host(engine_stream_handle(stream, own), function, data));
}
LIBCUDA_STREAM_PAIR(cuLaunchHostFunc, _ptsz, (CUstream stream, cudaHostFn_t function, void *data),
                    launch_host(stream, own, function, data))

/* How the driver's thread waits for its turn; here the function runs in the thread that works on the stream. */
enum { HOST_TASK_BLOCKING, HOST_TASK_SPIN_WAIT };
LIBCUDA_STREAM_PAIR(cuLaunchHostFunc_v2, _ptsz,
                    (CUstream stream, cudaHostFn_t function, void *data, unsigned sync_mode),
                    sync_mode > HOST_TASK_SPIN_WAIT ? CUDA_ERROR_INVALID_VALUE
                                                    : launch_host(stream, own, function, data))

typedef void (*stream_callback)(CUstream stream, CUresult status, void *data);
typedef struct callback_call {
  stream_callback function;
  CUstream stream;
  void *data;
} callback_call;

static void call_callback(void *data) {
  callback_call call = *(callback_call *)data;
  free(data);
  call.function(call.stream, CUDA_SUCCESS, call.data);
}

static CUresult add_callback(CUstream stream, bool own, stream_callback function, void *data, unsigned flags) {
  if (!function || flags) return CUDA_ERROR_INVALID_VALUE;
  callback_call *call = ff_alloc(sizeof *call);
  *call = (callback_call){function, stream, data};
  CUresult result = launch_host(stream, own, call_callback, call);
  if (result) free(call);
  return result;
}
LIBCUDA_STREAM_PAIR(cuStreamAddCallback, _ptsz, (CUstream stream, stream_callback function, void *data, unsigned flags),
                    add_callback(stream, own, function, data, flags))

/* ---- events ---- */

LIBCUDA_CALL(cuEventCreate, (CUevent * event, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!event || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_event_create(flags, event));
}

LIBCUDA_CALL(cuEventDestroy_v2, (CUevent event)) {
  LIBCUDA_TRY(libcuda_enter_by(event));
  return libcuda_result(engine_event_destroy(event));
}

LIBCUDA_STREAM_PAIR(cuEventRecord, _ptsz, (CUevent event, CUstream stream),
                    libcuda_result(engine_event_record(event, engine_stream_handle(stream, own))))
LIBCUDA_STREAM_PAIR(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
                    flags & ~1u
                        ? CUDA_ERROR_INVALID_VALUE
                        : libcuda_result(flags ? engine_event_record_external(event, engine_stream_handle(stream, own))
                                               : engine_event_record(event, engine_stream_handle(stream, own))))

LIBCUDA_CALL(cuEventQuery, (CUevent event)) {
  LIBCUDA_TRY(libcuda_enter_by(event));
  return libcuda_result(engine_event_query(event));
}

LIBCUDA_CALL(cuEventSynchronize, (CUevent event)) {
  LIBCUDA_TRY(libcuda_enter_by(event));
  return libcuda_result(engine_event_synchronize(event));
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent stop) {
  LIBCUDA_TRY(libcuda_enter_by(start));
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_event_elapsed(start, stop, milliseconds));
}
LIBCUDA_CALL(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent stop)) {
  return elapsed(milliseconds, start, stop);
}
LIBCUDA_CALL(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent stop)) {
  return elapsed(milliseconds, start, stop);
}
