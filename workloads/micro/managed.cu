/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on managed arrays, each thread in steps of the whole grid. */
#include "device.h"

#define EACH(i, count)                                                                                                 \
  for (unsigned long long i = threadIdx.x + (unsigned long long)blockIdx.x * blockDim.x; i < (count);                  \
       i += blockDim.x * gridDim.x)

extern "C" __global__ void fill(float *x, float *y, unsigned long long count) {
  EACH(i, count) {
    x[i] = 1.0f;
    y[i] = 2.0f;
  }
}

/* The same twice, so that the first launch and the later ones can be told apart. */
#define ADD(name)                                                                                                      \
  extern "C" __global__ void name(const float *x, float *y, unsigned long long count) {                                \
    EACH(i, count) y[i] = x[i] + y[i];                                                                                 \
  }
ADD(add)
ADD(add_again)

extern "C" __global__ void triad(double *a, double *b, double *c, unsigned long long count) {
  EACH(i, count) a[i] = b[i] + c[i] * 1.3;
}
