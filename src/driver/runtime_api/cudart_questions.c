/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA runtime is asked since 12.9: atomic operations between host and devices, and the log of errors (CUDA
 * Runtime API, "Device Management", "Error Log Management"). Messages go to stderr when they arise, so the log is
 * empty. */
#include "base/text.h"
#include "driver/properties.h"
#include "driver/runtime_api/cudart.h"

#if CUDART_MAJOR >= 12
typedef void log_callback(void *data, int level, char *message, size_t length);
cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count,
                                                int device),
    cudaDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count, int device,
                                       int peer);
cudaError_t cudaLogsRegisterCallback(log_callback *function, void *data, void **handle),
    cudaLogsUnregisterCallback(void *handle), cudaLogsCurrent(unsigned *iterator, unsigned flags),
    cudaLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags),
    cudaLogsDumpToMemory(unsigned *iterator, char *buffer, size_t *size, unsigned flags);

static cudaError_t atomics(unsigned *capabilities, const int *operations, unsigned count, bool devices) {
  cudaError_t error = engine_start();
  if (error) return error;
  if (!devices) return cudaErrorInvalidDevice;
  return properties_atomics(operations, count, capabilities) ? cudaSuccess : cudaErrorInvalidValue;
}

CUDART_API cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned *capabilities, const int *operations,
                                                           unsigned count, int device) {
  return engine_return(atomics(capabilities, operations, count, cudart_is_device(device)));
}
CUDART_API cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const int *operations, unsigned count,
                                                          int device, int peer) {
  bool devices = cudart_is_device(device) && cudart_is_device(peer) && device != peer;
  return engine_return(atomics(capabilities, operations, count, devices));
}

static cudaError_t valid(bool valid) { return engine_return(valid ? cudaSuccess : cudaErrorInvalidValue); }

CUDART_API cudaError_t cudaLogsRegisterCallback(log_callback *function, void *data, void **handle) {
  static char registered;
  (void)data;
  if (function && handle) *handle = &registered;
  return valid(function);
}
CUDART_API cudaError_t cudaLogsUnregisterCallback(void *handle) { return valid(handle); }

CUDART_API cudaError_t cudaLogsCurrent(unsigned *iterator, unsigned flags) {
  if (iterator && !flags) *iterator = 0;
  return valid(iterator && !flags);
}

CUDART_API cudaError_t cudaLogsDumpToMemory(unsigned *iterator, char *buffer, size_t *size, unsigned flags) {
  (void)iterator;
  if (!buffer || !size || !*size || flags) return valid(false);
  *buffer = '\0';
  *size = 0;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags) {
  (void)iterator;
  return valid(path && !flags && ff_file_write(path, "", 0, NULL) == FF_OK);
}
#endif
