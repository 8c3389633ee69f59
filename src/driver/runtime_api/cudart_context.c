/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts of CUDA 13.1 (CUDA Runtime API, "Execution Context Management"): a device's own, and green
 * contexts (engine_resource.h, engine_green.c). What is made in one is told by the stream that is made there; none is
 * ever current. */
#include "driver/engine/engine_resource.h"
#include "driver/runtime_api/cudart_graph.h"

#if CUDART_MAJOR >= 13
/* A context is an engine_green, or one of these: */
static char places[ENGINE_DEVICES_MAX]; /* places[d]: that of device d */

cudaError_t cudaDeviceGetDevResource(int device, engine_resource *resource, int type);
cudaError_t cudaDevSmResourceSplitByCount(engine_resource *result, unsigned *groups, const engine_resource *input,
                                          engine_resource *remaining, unsigned flags, unsigned wanted);
cudaError_t cudaDevSmResourceSplit(engine_resource *result, unsigned count, const engine_resource *input,
                                   engine_resource *remaining, unsigned flags, engine_resource_group *groups);
cudaError_t cudaDevResourceGenerateDesc(engine_descriptor **descriptor, engine_resource *resources, unsigned count);
cudaError_t cudaGreenCtxCreate(cudaExecutionContext_t *context, engine_descriptor *descriptor, int device,
                               unsigned flags);
cudaError_t cudaDeviceGetExecutionCtx(cudaExecutionContext_t *context, int device);
cudaError_t cudaExecutionCtxDestroy(cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxGetDevResource(cudaExecutionContext_t context, engine_resource *resource, int type);
cudaError_t cudaExecutionCtxGetDevice(int *device, cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxGetId(cudaExecutionContext_t context, unsigned long long *id);
cudaError_t cudaExecutionCtxStreamCreate(cudaStream_t *stream, cudaExecutionContext_t context, unsigned flags,
                                         int priority);
cudaError_t cudaExecutionCtxSynchronize(cudaExecutionContext_t context);
cudaError_t cudaExecutionCtxRecordEvent(cudaExecutionContext_t context, cudaEvent_t event);
cudaError_t cudaExecutionCtxWaitEvent(cudaExecutionContext_t context, cudaEvent_t event);
cudaError_t cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                                cudaExecutionContext_t context, unsigned value, unsigned flags);

/* Of which device is it the own one? -1: of none, it is a green context or nothing. */
static int device_of(cudaExecutionContext_t context) {
  const char *place = context;
  return place >= places && place < places + ENGINE_DEVICES_MAX && cudart_is_device((int)(place - places))
             ? (int)(place - places)
             : -1;
}

static cudaError_t check(cudaExecutionContext_t context) {
  cudaError_t error = engine_start();
  if (error) return error;
  return device_of(context) >= 0 || (context && engine_green_valid(context)) ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- resources ---- */

CUDART_API cudaError_t cudaDeviceGetDevResource(int device, engine_resource *resource, int type) {
  return engine_return(engine_resource_of_device(device, resource, type));
}
CUDART_API cudaError_t cudaDevSmResourceSplitByCount(engine_resource *result, unsigned *groups,
                                                     const engine_resource *input, engine_resource *remaining,
                                                     unsigned flags, unsigned wanted) {
  cudaError_t error = engine_start();
  if (!error) error = engine_resource_split_by_count(result, groups, input, remaining, flags, wanted);
  return engine_return(error);
}
CUDART_API cudaError_t cudaDevSmResourceSplit(engine_resource *result, unsigned count, const engine_resource *input,
                                              engine_resource *remaining, unsigned flags,
                                              engine_resource_group *groups) {
  cudaError_t error = engine_start();
  if (!error) error = engine_resource_split(result, count, input, remaining, flags, groups);
  return engine_return(error);
}
CUDART_API cudaError_t cudaDevResourceGenerateDesc(engine_descriptor **descriptor, engine_resource *resources,
                                                   unsigned count) {
  cudaError_t error = engine_start();
  if (!error) error = engine_resource_describe(descriptor, resources, count);
  return engine_return(error);
}
CUDART_DECLARE(cudaStreamGetDevResource, _ptsz, (cudaStream_t stream, engine_resource *resource, int type))
CUDART_PAIR(cudaStreamGetDevResource, _ptsz, (cudaStream_t stream, engine_resource *resource, int type),
            engine_resource_of_stream(engine_stream_handle(stream, own), resource, type))

/* ---- contexts ---- */

CUDART_API cudaError_t cudaGreenCtxCreate(cudaExecutionContext_t *context, engine_descriptor *descriptor, int device,
                                          unsigned flags) {
  engine_green *green = NULL;
  cudaError_t error = context && !flags ? engine_start() : cudaErrorInvalidValue;
  if (!error && !cudart_is_device(device)) error = cudaErrorInvalidDevice;
  if (!error) error = engine_resource_green(descriptor, device, &green);
  if (!error) *context = green;
  return engine_return(error);
}

CUDART_API cudaError_t cudaDeviceGetExecutionCtx(cudaExecutionContext_t *context, int device) {
  cudaError_t error = context ? engine_start() : cudaErrorInvalidValue;
  if (!error && !cudart_is_device(device)) error = cudaErrorInvalidDevice;
  if (!error) *context = &places[device];
  return engine_return(error);
}

CUDART_API cudaError_t cudaExecutionCtxDestroy(cudaExecutionContext_t context) {
  cudaError_t error = check(context);
  if (!error) error = device_of(context) < 0 ? engine_green_destroy(context) : cudaErrorInvalidValue;
  return engine_return(error);
}

CUDART_API cudaError_t cudaExecutionCtxGetDevResource(cudaExecutionContext_t context, engine_resource *resource,
                                                      int type) {
  cudaError_t error = check(context);
  int device = device_of(context);
  if (!error)
    error = device < 0 ? engine_resource_of_green(context, resource, type)
                       : engine_resource_of_device(device, resource, type);
  return engine_return(error);
}

CUDART_API cudaError_t cudaExecutionCtxGetDevice(int *device, cudaExecutionContext_t context) {
  cudaError_t error = device ? check(context) : cudaErrorInvalidValue;
  if (!error) *device = device_of(context) < 0 ? engine_green_device(context) : device_of(context);
  return engine_return(error);
}

/* Those of devices' own contexts come first. */
CUDART_API cudaError_t cudaExecutionCtxGetId(cudaExecutionContext_t context, unsigned long long *id) {
  trace_sms sms;
  uint64_t number = 0;
  cudaError_t error = id ? check(context) : cudaErrorInvalidValue;
  if (!error && device_of(context) < 0) error = engine_green_describe(context, &sms, &number);
  if (!error) *id = device_of(context) < 0 ? ENGINE_DEVICES_MAX + number : (unsigned)device_of(context) + 1ull;
  return engine_return(error);
}

/* ---- streams and events ---- */

CUDART_API cudaError_t cudaExecutionCtxStreamCreate(cudaStream_t *stream, cudaExecutionContext_t context,
                                                    unsigned flags, int priority) {
  cudaError_t error = stream && !(flags & ~(unsigned)cudaStreamNonBlocking) ? check(context) : cudaErrorInvalidValue;
  int device = device_of(context);
  if (!error)
    error = device < 0 ? engine_green_stream(context, cudaStreamNonBlocking, priority, stream)
                       : engine_stream_create_on(device, flags, priority, stream);
  return engine_return(error);
}

CUDART_API cudaError_t cudaExecutionCtxSynchronize(cudaExecutionContext_t context) {
  cudaError_t error = check(context);
  int device = device_of(context);
  if (!error) error = device < 0 ? engine_green_synchronize(context) : engine_device_synchronize(device);
  return engine_return(error);
}
CUDART_API cudaError_t cudaExecutionCtxRecordEvent(cudaExecutionContext_t context, cudaEvent_t event) {
  cudaError_t error = check(context);
  int device = device_of(context);
  if (!error) error = device < 0 ? engine_green_record(context, event) : engine_device_record(device, event);
  return engine_return(error);
}
CUDART_API cudaError_t cudaExecutionCtxWaitEvent(cudaExecutionContext_t context, cudaEvent_t event) {
  cudaError_t error = check(context);
  int device = device_of(context);
  if (!error) error = device < 0 ? engine_green_wait(context, event) : engine_device_wait(device, event);
  return engine_return(error);
}

cudaError_t cudart_node_where(cudaExecutionContext_t context, engine_where *where) {
  if (!context) return cudaSuccess;
  cudaError_t error = check(context);
  if (error) return error;
  int device = device_of(context);
  if (device < 0) return engine_where_green(context, where);
  *where = (engine_where){.given = true, .device = device};
  return cudaSuccess;
}

cudaExecutionContext_t cudart_context_of(const engine_where *where) {
  if (!where->given) return NULL;
  return where->green ? (void *)where->green : &places[where->device];
}

/* A condition's word is memory of the device, whichever context its node runs in. */
CUDART_API cudaError_t cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                                           cudaExecutionContext_t context, unsigned value,
                                                           unsigned flags) {
  cudaError_t error = context ? check(context) : cudaSuccess;
  return error ? engine_return(error) : cudaGraphConditionalHandleCreate(handle, graph, value, flags);
}
#else
cudaError_t cudart_node_where(cudaExecutionContext_t context, engine_where *where) {
  (void)where;
  return context ? cudaErrorInvalidValue : cudaSuccess; /* there are none before CUDA 13 */
}
#endif
