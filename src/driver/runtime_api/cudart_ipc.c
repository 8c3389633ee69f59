/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events of other processes by handle (CUDA Runtime API, "Device Management", cudaIpc), thin on the
 * engine's. */
#include "driver/runtime_api/cudart.h"

#define LAZY_ENABLE_PEER_ACCESS 1u /* cudaIpcMemLazyEnablePeerAccess: the only flag, and the manual asks for it */

CUDART_API cudaError_t cudaIpcGetMemHandle(cudaIpcHandle *handle, void *pointer) {
  return engine_return(handle ? engine_ipc_export((uint64_t)(uintptr_t)pointer, handle) : cudaErrorInvalidValue);
}

static cudaError_t open_memory(void **pointer, const cudaIpcHandle *handle, unsigned flags) {
  uint64_t address;
  if (!pointer || flags != LAZY_ENABLE_PEER_ACCESS) return cudaErrorInvalidValue;
  cudaError_t error = engine_ipc_import(handle, &address);
  if (!error) *pointer = (void *)(uintptr_t)address;
  return error;
}
CUDART_API cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcHandle handle, unsigned flags) {
  return engine_return(open_memory(pointer, &handle, flags));
}

CUDART_API cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  return engine_return(engine_ipc_close((uint64_t)(uintptr_t)pointer));
}

CUDART_API cudaError_t cudaIpcGetEventHandle(cudaIpcHandle *handle, cudaEvent_t event) {
  return engine_return(handle ? engine_ipc_event_export(event, handle) : cudaErrorInvalidValue);
}

CUDART_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcHandle handle) {
  return engine_return(event ? engine_ipc_event_import(&handle, event) : cudaErrorInvalidValue);
}
