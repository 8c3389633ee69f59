/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries of the CUDA runtime (CUDA Runtime API, "Library Management"): code that the program loads while it runs. A
 * library is an engine_module, a kernel an engine_function. Options of the compiler are accepted and change nothing
 * here, but for the logs: a failure's reason goes to stderr. Since CUDA 12.8. */
#include <stdlib.h>

#include "base/text.h"
#include "driver/engine/engine_list.h"
#include "driver/runtime_api/cudart.h"

#if CUDART_MAJOR >= 12
#define FILE_MAX ((size_t)1 << 30) /* bytes */
typedef engine_module *cudaLibrary_t;

static cudaError_t load(cudaLibrary_t *library, const void *code, size_t bytes, const void *caller) {
  ff_error reason = {0};
  if (!library || !code) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (!error) error = engine_library_load(code, bytes, library, &reason);
  if (error && reason.message[0]) engine_say("cudaLibraryLoadData: %s", reason.message);
  if (!error) engine_module_tell(*library, caller);
  return error;
}

#define LOAD_OPTIONS \
  int *jit_options, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, LOAD_OPTIONS);
CUDART_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, LOAD_OPTIONS) {
  return engine_return(load(library, code, 0, __builtin_return_address(0)));
}

static cudaError_t load_file(cudaLibrary_t *library, const char *path, const void *caller) {
  ff_error reason;
  char *code;
  size_t bytes;
  if (!library || !path) return cudaErrorInvalidValue;
  if (ff_file_read(path, FILE_MAX, &code, &bytes, &reason)) {
    engine_say("cudaLibraryLoadFromFile: %s", reason.message);
    return cudaErrorFileNotFound;
  }
  cudaError_t error = load(library, code, bytes, caller);
  free(code);
  return error;
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, LOAD_OPTIONS);
CUDART_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path, LOAD_OPTIONS) {
  return engine_return(load_file(library, path, __builtin_return_address(0)));
}

static cudaError_t check(cudaLibrary_t library, const void *out, const char *name) {
  if (!out || !name) return cudaErrorInvalidValue;
  return engine_module_valid(library) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library);
CUDART_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  cudaError_t error = check(library, library, "");
  return engine_return(error ? cudaErrorInvalidResourceHandle : engine_module_unload(library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name);
CUDART_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  cudaError_t error = check(library, kernel, name);
  return engine_return(error ? error : engine_function_find(library, name, (engine_function **)(void *)kernel));
}

static cudaError_t find_variable(void **address, size_t *bytes, cudaLibrary_t library, const char *name, bool managed) {
  engine_variable *variable;
  uint64_t at, size;
  cudaError_t error = address || bytes ? check(library, library, name) : cudaErrorInvalidValue;
  if (!error) error = engine_variable_find(library, name, &variable);
  if (!error) error = engine_variable_expose(variable, &at, &size);
  if (error) return error;
  if ((engine_pointer_find(at).memory == ENGINE_MANAGED) != managed) return cudaErrorSymbolNotFound;
  if (address) *address = (void *)(uintptr_t)at;
  if (bytes) *bytes = size;
  return cudaSuccess;
}
cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library, const char *name);
CUDART_API cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library, const char *name) {
  return engine_return(find_variable(address, bytes, library, name, false));
}
cudaError_t cudaLibraryGetManaged(void **address, size_t *bytes, cudaLibrary_t library, const char *name);
CUDART_API cudaError_t cudaLibraryGetManaged(void **address, size_t *bytes, cudaLibrary_t library, const char *name) {
  return engine_return(find_variable(address, bytes, library, name, true));
}

static cudaError_t count_kernels(unsigned *count, cudaLibrary_t library) {
  uint32_t found = 0;
  cudaError_t error = check(library, count, "");
  if (!error) error = engine_module_kernels(library, NULL, 0, &found);
  if (!error) *count = found;
  return error;
}
cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library);
CUDART_API cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
  return engine_return(count_kernels(count, library));
}

static cudaError_t list_kernels(cudaKernel_t *kernels, unsigned most, cudaLibrary_t library) {
  uint32_t found = 0;
  cudaError_t error = most ? check(library, kernels, "") : cudaErrorInvalidValue;
  return error ? error : engine_module_kernels(library, (engine_function **)(void *)kernels, most, &found);
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned most, cudaLibrary_t library);
CUDART_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned most, cudaLibrary_t library) {
  return engine_return(list_kernels(kernels, most, library));
}

/* Functions that host and device have at one address: PTX cannot make any. */
cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *name);
CUDART_API cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *name) {
  cudaError_t error = check(library, function, name);
  return engine_return(error ? error : cudaErrorSymbolNotFound);
}
#endif
