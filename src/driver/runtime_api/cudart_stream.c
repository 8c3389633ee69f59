/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events of the CUDA runtime (CUDA Runtime API, "Stream Management", "Event Management").
 *
 * Flags and NULL pointers are checked here, handles by the engine. Captures are in cudart_graph_exec.c. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "driver/runtime_api/cudart.h"
#include "driver/engine/engine_graph.h"

/* ---- streams ---- */

CUDART_API cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return engine_return(engine_stream_create(cudaStreamDefault, 0, stream));
}

CUDART_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return engine_return(engine_stream_create(flags, 0, stream));
}

CUDART_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  return engine_return(engine_stream_create(flags, priority, stream));
}

CUDART_API cudaError_t cudaStreamDestroy(cudaStream_t stream) { return engine_return(engine_stream_destroy(stream)); }

CUDART_PAIR(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
            engine_stream_synchronize(engine_stream_handle(stream, own)))
CUDART_PAIR(cudaStreamQuery, _ptsz, (cudaStream_t stream), engine_stream_query(engine_stream_handle(stream, own)))

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags > 1) return cudaErrorInvalidValue; /* 1: cudaEventWaitExternal */
  return flags ? engine_stream_wait_external(stream, event) : engine_stream_wait(stream, event);
}
CUDART_PAIR(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
            wait_event(engine_stream_handle(stream, own), event, flags))

/* A callback is a host function that also hears its stream and how things went. */
typedef struct callback {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void *data;
} callback;

static void run_callback(void *data) {
  callback call = *(callback *)data;
  free(data);
  call.function(call.stream, cudaSuccess, call.data);
}

static cudaError_t add_callback(cudaStream_t stream, bool own, cudaStreamCallback_t function, void *data,
                                unsigned flags) {
  if (!function || flags) return cudaErrorInvalidValue;
  callback *call = ff_alloc(sizeof *call);
  *call = (callback){.function = function, .stream = stream, .data = data};
  cudaError_t error = engine_stream_host(engine_stream_handle(stream, own), run_callback, call);
  if (error) free(call);
  return error;
}
CUDART_PAIR(cudaStreamAddCallback, _ptsz,
            (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
            add_callback(stream, own, function, data, flags))

static cudaError_t describe(cudaStream_t stream, const void *out, engine_stream_info *info) {
  return out ? engine_stream_describe(stream, info) : cudaErrorInvalidValue;
}

static cudaError_t stream_flags(cudaStream_t stream, unsigned *flags) {
  engine_stream_info info;
  cudaError_t error = describe(stream, flags, &info);
  if (!error) *flags = info.flags;
  return error;
}
CUDART_PAIR(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags),
            stream_flags(engine_stream_handle(stream, own), flags))

static cudaError_t stream_priority(cudaStream_t stream, int *priority) {
  engine_stream_info info;
  cudaError_t error = describe(stream, priority, &info);
  if (!error) *priority = info.priority;
  return error;
}
CUDART_PAIR(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
            stream_priority(engine_stream_handle(stream, own), priority))

static cudaError_t stream_id(cudaStream_t stream, unsigned long long *id) {
  engine_stream_info info;
  cudaError_t error = describe(stream, id, &info);
  if (!error) *id = info.id;
  return error;
}
CUDART_PAIR(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),
            stream_id(engine_stream_handle(stream, own), id))

static cudaError_t stream_device(cudaStream_t stream, int *device) {
  engine_stream_info info;
  cudaError_t error = describe(stream, device, &info);
  if (!error) *device = info.device;
  return error;
}
CUDART_PAIR(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),
            stream_device(engine_stream_handle(stream, own), device))
/* Where managed memory may be used from is not enforced: all of it may be, from everywhere. */
static cudaError_t attach(cudaStream_t stream, void *pointer, size_t bytes, unsigned flags) {
  engine_stream_info info;
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
    return cudaErrorInvalidValue;
  cudaError_t error = describe(stream, pointer, &info);
  if (error) return error;
  engine_pointer found = engine_pointer_find((uint64_t)(uintptr_t)pointer);
  bool whole = !bytes || bytes == found.bytes;
  return found.memory == ENGINE_MANAGED && whole ? cudaSuccess : cudaErrorInvalidValue;
}
CUDART_PAIR(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
            attach(engine_stream_handle(stream, own), pointer, bytes, flags))

CUDART_PAIR(cudaStreamSetAttribute, _ptsz, (cudaStream_t stream, int attribute, const cudaLaunchAttributeValue *value),
            engine_stream_set(engine_stream_handle(stream, own), attribute, value))
CUDART_PAIR(cudaStreamGetAttribute, _ptsz, (cudaStream_t stream, int attribute, cudaLaunchAttributeValue *value),
            engine_stream_get(engine_stream_handle(stream, own), attribute, value))
CUDART_PAIR(cudaStreamCopyAttributes, _ptsz, (cudaStream_t to, cudaStream_t from),
            engine_stream_copy_attributes(engine_stream_handle(to, own), engine_stream_handle(from, own)))

/* ---- events ---- */

CUDART_API cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return engine_return(engine_event_create(cudaEventDefault, event));
}

CUDART_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  return engine_return(engine_event_create(flags, event));
}

CUDART_API cudaError_t cudaEventDestroy(cudaEvent_t event) { return engine_return(engine_event_destroy(event)); }

CUDART_PAIR(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
            engine_event_record(event, engine_stream_handle(stream, own)))

static cudaError_t record_with_flags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags > 1) return cudaErrorInvalidValue; /* 1: cudaEventRecordExternal */
  return flags ? engine_event_record_external(event, stream) : engine_event_record(event, stream);
}
CUDART_PAIR(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
            record_with_flags(event, engine_stream_handle(stream, own), flags))

CUDART_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return engine_return(engine_event_synchronize(event));
}

CUDART_API cudaError_t cudaEventQuery(cudaEvent_t event) { return engine_return(engine_event_query(event)); }

CUDART_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return engine_return(engine_event_elapsed(start, stop, milliseconds));
}
#if CUDART_MAJOR == 12
cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t stop);
CUDART_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return cudaEventElapsedTime(milliseconds, start, stop);
}
#endif
