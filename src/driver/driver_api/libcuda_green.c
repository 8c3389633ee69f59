/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts (Driver API: "Green Contexts", CUDA 12.4 and later) on engine_green.c and engine_resource.c: a
 * device's SMs are a resource, which is split, described, and given to a context. */
#include "driver/driver_api/libcuda.h"
#include "driver/engine/engine_resource.h"

enum { GREEN_DEFAULT_STREAM = 1 };

/* NVIDIA's runtime hands these calls the context that cuCtxFromGreenCtx gave it: that is taken for the green one. NULL:
 * neither is live. */
static CUgreenCtx meant(CUgreenCtx green) {
  if (!green || engine_green_valid(green)) return green;
  CUcontext context = (CUcontext)(void *)green;
  return libcuda_is_live(context) ? libcuda_green_of(context) : NULL;
}

/* ---- resources ---- */

LIBCUDA_CALL(cuDeviceGetDevResource, (CUdevice device, engine_resource *resource, int type)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_resource_of_device(device, resource, type));
}

static CUresult green_resource(CUgreenCtx green, engine_resource *resource, int type) {
  green = meant(green);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_resource_of_green(green, resource, type));
}
LIBCUDA_CALL(cuGreenCtxGetDevResource, (CUgreenCtx green, engine_resource *resource, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  return green_resource(green, resource, type);
}

LIBCUDA_CALL(cuCtxGetDevResource, (CUcontext context, engine_resource *resource, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx green = libcuda_green_of(context);
  return green ? green_resource(green, resource, type)
               : cuDeviceGetDevResource(libcuda_device_of(context), resource, type);
}

LIBCUDA_PAIR(cuStreamGetDevResource, _ptsz, (CUstream stream, engine_resource *resource, int type),
             libcuda_result(engine_resource_of_stream(engine_stream_handle(stream, own), resource, type)))

LIBCUDA_CALL(cuDevSmResourceSplitByCount, (engine_resource * result, unsigned *groups, const engine_resource *input,
                                           engine_resource *remaining, unsigned flags, unsigned wanted)) {
  LIBCUDA_TRY(libcuda_device(0));
  return libcuda_result(engine_resource_split_by_count(result, groups, input, remaining, flags, wanted));
}
LIBCUDA_CALL(cuDevSmResourceSplit, (engine_resource * result, unsigned count, const engine_resource *input,
                                    engine_resource *remaining, unsigned flags, engine_resource_group *groups)) {
  LIBCUDA_TRY(libcuda_device(0));
  return libcuda_result(engine_resource_split(result, count, input, remaining, flags, groups));
}
LIBCUDA_CALL(cuDevResourceGenerateDesc, (engine_descriptor * *descriptor, engine_resource *resources, unsigned count)) {
  LIBCUDA_TRY(libcuda_device(0));
  return libcuda_result(engine_resource_describe(descriptor, resources, count));
}

/* ---- contexts ---- */

/* libcuda_context.c */
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxRelease_v2(CUdevice);

LIBCUDA_CALL(cuGreenCtxCreate, (CUgreenCtx * green, engine_descriptor *descriptor, CUdevice device, unsigned flags)) {
  LIBCUDA_TRY(libcuda_device(device));
  CUcontext held;
  bool newer = engine_driver_version() >= 13010; /* before, the flag had to be set */
  if (flags != GREEN_DEFAULT_STREAM && !(newer && !flags)) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(cuDevicePrimaryCtxRetain(&held, device));
  CUresult result = libcuda_result(engine_resource_green(descriptor, device, green));
  if (result) cuDevicePrimaryCtxRelease_v2(device);
  return result;
}

LIBCUDA_CALL(cuGreenCtxDestroy, (CUgreenCtx green)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx found = meant(green);
  if (found) green = found; /* else it was destroyed */
  int device = engine_green_device(green);
  LIBCUDA_TRY(libcuda_result(engine_green_destroy(green)));
  return cuDevicePrimaryCtxRelease_v2(device);
}

LIBCUDA_CALL(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  green = meant(green);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext made = libcuda_green_context(green);
  if (!made) return CUDA_ERROR_INVALID_CONTEXT;
  *context = made;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuGreenCtxGetId, (CUgreenCtx green, unsigned long long *id)) {
  LIBCUDA_TRY(libcuda_ready());
  trace_sms sms;
  uint64_t number;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = libcuda_current();
  if (!green && current && libcuda_is_live(current)) green = libcuda_green_of(current);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx found = meant(green);
  LIBCUDA_TRY(libcuda_result(engine_green_describe(found ? found : green, &sms, &number)));
  *id = number;
  return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

LIBCUDA_CALL(cuGreenCtxStreamCreate, (CUstream * stream, CUgreenCtx green, unsigned flags, int priority)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!stream || flags != cudaStreamNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  green = meant(green);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_stream(green, flags, priority, stream));
}

LIBCUDA_CALL(cuGreenCtxRecordEvent, (CUgreenCtx green, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  green = meant(green);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_record(green, event));
}

LIBCUDA_CALL(cuGreenCtxWaitEvent, (CUgreenCtx green, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  green = meant(green);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_wait(green, event));
}
