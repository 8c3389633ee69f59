/* SPDX-License-Identifier: Apache-2.0 */
/* What a test of the stand-in for cuFFT needs: its calls, a few of the CUDA runtime's, and transforms by their
 * definition. */
#ifndef TESTS_CUFFT_REFERENCE_H
#define TESTS_CUFFT_REFERENCE_H

#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "driver/stand_ins/cufft/cufft_abi.h"

cufftResult cufftCreate(cufftHandle *);
cufftResult cufftDestroy(cufftHandle);
cufftResult cufftPlan1d(cufftHandle *, int, cufftType, int);
cufftResult cufftPlan2d(cufftHandle *, int, int, cufftType);
cufftResult cufftPlan3d(cufftHandle *, int, int, int, cufftType);
cufftResult cufftPlanMany(cufftHandle *, int, int *, int *, int, int, int *, int, int, cufftType, int);
cufftResult cufftMakePlan1d(cufftHandle, int, cufftType, int, size_t *);
cufftResult cufftMakePlanMany64(cufftHandle, int, long long *, long long *, long long, long long, long long *,
                                long long, long long, cufftType, long long, size_t *);
cufftResult cufftXtMakePlanMany(cufftHandle, int, long long *, long long *, long long, long long, cudaDataType,
                                long long *, long long, long long, cudaDataType, long long, size_t *, cudaDataType);
cufftResult cufftXtExec(cufftHandle, void *, void *, int);
cufftResult cufftExecC2C(cufftHandle, void *, void *, int);
cufftResult cufftExecR2C(cufftHandle, void *, void *);
cufftResult cufftExecC2R(cufftHandle, void *, void *);
cufftResult cufftExecZ2Z(cufftHandle, void *, void *, int);
cufftResult cufftExecD2Z(cufftHandle, void *, void *);
cufftResult cufftExecZ2D(cufftHandle, void *, void *);
cufftResult cufftEstimate1d(int, cufftType, int, size_t *);
cufftResult cufftGetSize(cufftHandle, size_t *);
cufftResult cufftGetSize1d(cufftHandle, int, cufftType, int, size_t *);
cufftResult cufftSetWorkArea(cufftHandle, void *);
cufftResult cufftSetAutoAllocation(cufftHandle, int);
cufftResult cufftSetStream(cufftHandle, cudaStream_t);
cufftResult cufftGetVersion(int *);
cufftResult cufftGetProperty(int, int *);
cufftResult cufftSetPlanPropertyInt64(cufftHandle, cufftProperty, long long);
cufftResult cufftGetPlanPropertyInt64(cufftHandle, cufftProperty, long long *);
cufftResult cufftXtSetGPUs(cufftHandle, int, int *);
cufftResult cufftXtSetCallback(cufftHandle, void **, int, void **);
cufftResult cufftXtSetWorkAreaPolicy(cufftHandle, int, size_t *);

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(cudaStream_t *);
int cudaStreamDestroy(cudaStream_t);
int cudaStreamSynchronize(cudaStream_t);
int cudaStreamBeginCapture(cudaStream_t, int);
int cudaStreamEndCapture(cudaStream_t, void **);
int cudaGraphInstantiate(void **, void *, void *, char *, size_t); /* of CUDA 11; without arguments the later one too */
int cudaGraphLaunch(void *, cudaStream_t);

typedef double complex number;

number number_of(double real, double imaginary);
/* Numbers between -1 and 1, the same in every run. */
double next_random(void);
unsigned next_below(unsigned limit);

/* The transform of a contiguous array by its definition, in place; sign -1: forward. */
void transform(number *data, int rank, const int64_t *lengths, int sign);
/* Element k of the transform of one dimension. */
number transformed(const number *data, int64_t length, int64_t k, int sign);
/* sqrt(sum |a - b|^2 / sum |b|^2) */
double error_of(const number *ours, const number *right, size_t count);

#endif
