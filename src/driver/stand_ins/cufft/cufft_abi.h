/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface of cuFFT (cuFFT API reference): numbers, and the functions that cufft.c and cufft_xt.c have. No
 * header of NVIDIA's is used. */
#ifndef FF_CUFFT_ABI_H
#define FF_CUFFT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef enum cufftResult {
  CUFFT_SUCCESS = 0,
  CUFFT_INVALID_PLAN = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_INVALID_TYPE = 3,
  CUFFT_INVALID_VALUE = 4,
  CUFFT_INTERNAL_ERROR = 5,
  CUFFT_EXEC_FAILED = 6,
  CUFFT_SETUP_FAILED = 7,
  CUFFT_INVALID_SIZE = 8,
  CUFFT_INVALID_DEVICE = 11,
  CUFFT_NO_WORKSPACE = 13,
  CUFFT_NOT_IMPLEMENTED = 14,
  CUFFT_NOT_SUPPORTED = 16,
} cufftResult;

enum { CUFFT_FORWARD = -1, CUFFT_INVERSE = 1 };
typedef enum cufftType {
  CUFFT_C2C = 0x29,
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_Z2Z = 0x69,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c
} cufftType;

typedef enum cudaDataType { /* those of a transform */
                            CUDA_R_32F = 0,
                            CUDA_R_64F = 1,
                            CUDA_R_16F = 2,
                            CUDA_C_32F = 4,
                            CUDA_C_64F = 5,
                            CUDA_C_16F = 6,
                            CUDA_R_16BF = 14,
                            CUDA_C_16BF = 15
} cudaDataType;

typedef enum cufftProperty {
  CUFFT_PATIENT_JIT = 1,
  CUFFT_MAX_HOST_THREADS = 2,
  CUFFT_BLUESTEIN_ONLY = 3,
  CUFFT_DISABLE_FMA = 4,
  CUFFT_PROPERTIES
} cufftProperty;

typedef int cufftHandle;
enum { CUFFT_PLAN_NULL = -1 };
typedef struct CUstream_st *cudaStream_t;

/* A public function: declared, and defined after it. */
#define CUFFT_CALL(name, parameters)                                  \
  __attribute__((visibility("default"))) cufftResult name parameters; \
  cufftResult name parameters

#endif
