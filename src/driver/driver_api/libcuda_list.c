/* SPDX-License-Identifier: Apache-2.0 */
/* Asking modules, libraries and kernels about each other (Driver API: "Module Management", "Library Management"). */
#include "driver/driver_api/libcuda.h"

#include "driver/engine/engine_list.h"

static CUresult count_kernels(unsigned *count, engine_module *module) {
  uint32_t found = 0;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_module_kernels(module, NULL, 0, &found)));
  *count = found;
  return CUDA_SUCCESS;
}

static CUresult list_kernels(engine_function **list, unsigned most, engine_module *module) {
  uint32_t found = 0;
  if (!list || !most) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_module_valid(module)) return CUDA_ERROR_INVALID_HANDLE;
  return libcuda_result(engine_module_kernels(module, list, most, &found));
}

LIBCUDA_CALL(cuModuleGetFunctionCount, (unsigned *count, CUmodule module)) {
  LIBCUDA_TRY(libcuda_enter());
  return count_kernels(count, module);
}
LIBCUDA_CALL(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned most, CUmodule module)) {
  LIBCUDA_TRY(libcuda_enter());
  return list_kernels(functions, most, module);
}
LIBCUDA_CALL(cuLibraryGetKernelCount, (unsigned *count, CUlibrary library)) {
  LIBCUDA_TRY(libcuda_ready());
  return count_kernels(count, library);
}
LIBCUDA_CALL(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned most, CUlibrary library)) {
  LIBCUDA_TRY(libcuda_ready());
  return list_kernels(kernels, most, library);
}

LIBCUDA_CALL(cuFuncGetModule, (CUmodule * module, CUfunction function)) {
  LIBCUDA_TRY(libcuda_enter());
  return module ? libcuda_result(engine_function_module(function, module)) : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel)) {
  LIBCUDA_TRY(libcuda_ready());
  return library ? libcuda_result(engine_function_module(kernel, library)) : CUDA_ERROR_INVALID_VALUE;
}

/* Functions that host and device have at one address: PTX cannot make any. */
LIBCUDA_CALL(cuLibraryGetUnifiedFunction, (void **function, CUlibrary library, const char *name)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  return engine_module_valid(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}
