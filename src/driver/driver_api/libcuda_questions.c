/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that few programs ask: of devices about their peers, of contexts about affinity, of streams about
 * attributes, of the driver about its log. Where a real driver without the hardware says no, so does this one, without
 * a message. */
#include "driver/engine/engine_notify.h"
#include "driver/engine/engine_peer.h"
#include "driver/driver_api/libcuda.h"
#include "driver/properties.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- devices ---- */

/* A LUID is of the Windows display driver. */
LIBCUDA_CALL(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return luid && mask ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* A device has no attributes towards itself. */
LIBCUDA_CALL(cuDeviceGetP2PAttribute, (int *value, int attribute, CUdevice device, CUdevice peer)) {
  LIBCUDA_TRY(libcuda_device(device));
  LIBCUDA_TRY(libcuda_device(peer));
  if (!value || attribute < 1 || attribute > 5) return CUDA_ERROR_INVALID_VALUE;
  if (device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = engine_peer_attribute(attribute, device, peer);
  return CUDA_SUCCESS;
}

static CUresult no_atomics(unsigned *capabilities, const int *operations, unsigned count) {
  return properties_atomics(operations, count, capabilities) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuDeviceGetHostAtomicCapabilities,
             (unsigned *capabilities, const int *operations, unsigned count, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return no_atomics(capabilities, operations, count);
}
LIBCUDA_CALL(cuDeviceGetP2PAtomicCapabilities,
             (unsigned *capabilities, const int *operations, unsigned count, CUdevice device, CUdevice peer)) {
  LIBCUDA_TRY(libcuda_device(device));
  LIBCUDA_TRY(libcuda_device(peer));
  return device == peer ? CUDA_ERROR_INVALID_DEVICE : no_atomics(capabilities, operations, count);
}

LIBCUDA_CALL(cuDeviceGetExecAffinitySupport, (int *supported, int type, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!supported || type) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0; /* a number of SMs for a context: needs a daemon between processes */
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuFlushGPUDirectRDMAWrites, (int target, int scope)) {
  LIBCUDA_TRY(libcuda_enter());
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- contexts ---- */

LIBCUDA_CALL(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!context) context = libcuda_current();
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = libcuda_device_of(context);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetExecAffinity, (void *affinity, int type)) {
  LIBCUDA_TRY(libcuda_enter());
  return affinity && !type ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* Events of all streams of a context; those of a device's own contexts are of all of its streams. */
LIBCUDA_CALL(cuCtxRecordEvent, (CUcontext context, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx green = libcuda_green_of(context);
  return libcuda_result(green ? engine_green_record(green, event)
                              : engine_device_record(libcuda_device_of(context), event));
}
LIBCUDA_CALL(cuCtxWaitEvent, (CUcontext context, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx green = libcuda_green_of(context);
  return libcuda_result(green ? engine_green_wait(green, event)
                              : engine_device_wait(libcuda_device_of(context), event));
}

LIBCUDA_CALL(cuProfilerInitialize, (const char *configuration, const char *output, int mode)) {
  LIBCUDA_TRY(libcuda_ready());
  return CUDA_ERROR_NOT_SUPPORTED; /* as since CUDA 11 */
}

/* ---- streams ---- */

LIBCUDA_PAIR(cuStreamSetAttribute, _ptsz, (CUstream stream, int attribute, const cudaLaunchAttributeValue *value),
             libcuda_result(engine_stream_set(engine_stream_handle(stream, own), attribute, value)))
LIBCUDA_PAIR(cuStreamGetAttribute, _ptsz, (CUstream stream, int attribute, cudaLaunchAttributeValue *value),
             libcuda_result(engine_stream_get(engine_stream_handle(stream, own), attribute, value)))
LIBCUDA_PAIR(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from),
             libcuda_result(engine_stream_copy_attributes(engine_stream_handle(to, own),
                                                          engine_stream_handle(from, own))))

/* ---- news of a device ---- */

LIBCUDA_CALL(cuDeviceRegisterAsyncNotification,
             (CUdevice device, engine_notify_call *call, void *data, engine_notify **registered)) {
  LIBCUDA_TRY(libcuda_device(device));
  (void)data; /* for a call that never comes */
  return libcuda_result(engine_notify_add(device, call, registered));
}
LIBCUDA_CALL(cuDeviceUnregisterAsyncNotification, (CUdevice device, engine_notify *registered)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_notify_remove(device, registered));
}

/* ---- the driver's log of errors: messages go to stderr when they arise, so it is empty ---- */

typedef void log_callback(void *data, int level, const char *message, size_t length);

LIBCUDA_CALL(cuLogsRegisterCallback, (log_callback * function, void *data, void **handle)) {
  static char registered;
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (handle) *handle = &registered;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuLogsUnregisterCallback, (void *handle)) { return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

LIBCUDA_CALL(cuLogsCurrent, (unsigned *iterator, unsigned flags)) {
  if (!iterator || flags) return CUDA_ERROR_INVALID_VALUE;
  *iterator = 0;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLogsDumpToMemory, (unsigned *iterator, char *buffer, size_t *size, unsigned flags)) {
  if (!buffer || !size || !*size || flags) return CUDA_ERROR_INVALID_VALUE;
  *buffer = '\0';
  *size = 0;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuLogsDumpToFile, (unsigned *iterator, const char *path, unsigned flags)) {
  if (!path || flags) return CUDA_ERROR_INVALID_VALUE;
  return ff_file_write(path, "", 0, NULL) == FF_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
