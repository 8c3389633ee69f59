/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events of other processes by handle (Driver API: "Memory Management", cuIpc), thin on the engine's. */
#include "driver/driver_api/libcuda.h"

typedef struct CUipcHandle { /* CUipcMemHandle and CUipcEventHandle */
  char reserved[ENGINE_IPC_HANDLE_BYTES];
} CUipcHandle;

#define LAZY_ENABLE_PEER_ACCESS 1u /* CUipcMem_flags: the only one, and the manual asks for it */

LIBCUDA_CALL(cuIpcGetMemHandle, (CUipcHandle * handle, CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  return handle ? libcuda_result(engine_ipc_export(pointer, handle)) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult open_memory(CUdeviceptr *pointer, const CUipcHandle *handle, unsigned flags) {
  uint64_t address;
  LIBCUDA_TRY(libcuda_enter());
  if (!pointer || flags != LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_result_from("cuIpcOpenMemHandle", engine_ipc_import(handle, &address)));
  *pointer = address;
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcHandle handle, unsigned flags)) {
  return open_memory(pointer, &handle, flags);
}
LIBCUDA_CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr * pointer, CUipcHandle handle, unsigned flags)) {
  return open_memory(pointer, &handle, flags);
}

LIBCUDA_CALL(cuIpcCloseMemHandle, (CUdeviceptr pointer)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_ipc_close(pointer));
}

LIBCUDA_CALL(cuIpcGetEventHandle, (CUipcHandle * handle, CUevent event)) {
  LIBCUDA_TRY(libcuda_enter());
  return handle ? libcuda_result(engine_ipc_event_export(event, handle)) : CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuIpcOpenEventHandle, (CUevent * event, CUipcHandle handle)) {
  LIBCUDA_TRY(libcuda_enter());
  return event ? libcuda_result(engine_ipc_event_import(&handle, event)) : CUDA_ERROR_INVALID_VALUE;
}
